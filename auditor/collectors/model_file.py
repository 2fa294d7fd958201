"""A file of a model, and what it takes to load it; another process can load it too."""

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from auditor.collectors.loading.load_model import load_model
from auditor.collectors.texts import LongTexts, MeanTokenLoss, load_language_model, text_scorer
from auditor.collectors.texts.scorer import TextScorer
from auditor.collectors.texts.scores import TextScore

__all__ = ["LanguageModelFile", "ModelFile"]


@dataclass(frozen=True)
class ModelFile:
    """A model on disk; see `load_model` for the kinds of file and what each argument is for.

    Attributes:
        path: A file or a folder.
        factory: What builds the module of a PyTorch state dict: a callable, or "module:function".
        trust_pickle: Whether the file may run code here: a pickle, Lambda layers, a graph that touches files.
        trusted_types: Types that a ``.skops`` file may hold besides the known ones.

    >>> ModelFile("model.onnx").path
    'model.onnx'
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    factory: str | Callable[..., Any] | None = None
    trust_pickle: bool = False
    trusted_types: tuple[str, ...] = ()

    def load(self) -> Any:
        """Return the model."""
        return load_model(
            self.path,
            factory=self.factory,
            trust_pickle=self.trust_pickle,
            trusted_types=self.trusted_types,
        )


@dataclass(frozen=True)
class LanguageModelFile:
    """The folder of a saved language model and its tokenizer, and the score of a text; see `load_language_model`.

    Attributes:
        path: A folder that transformers wrote.
        score: What becomes the loss of a text.
        longest: The most tokens of a text; default what model and tokenizer say.
        long_texts: Whether texts of more tokens are refused or cut.
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    score: TextScore = MeanTokenLoss()  # noqa: RUF009 - a frozen value
    longest: int | None = None
    long_texts: LongTexts = LongTexts.REFUSE

    def load(self) -> TextScorer:
        """Return what scores texts."""
        model, tokenizer = load_language_model(Path(self.path))
        return text_scorer(
            model, tokenizer=tokenizer, score=self.score, longest=self.longest, long_texts=self.long_texts
        )
