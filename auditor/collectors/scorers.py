"""Any model, with what was said of it, becomes a scorer; the recipe travels where the scorer cannot."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from auditor.collectors.model_file import LanguageModelFile, ModelFile
from auditor.collectors.outputs import Output
from auditor.collectors.predictors import predictor
from auditor.collectors.records import Records
from auditor.collectors.samples import sampled
from auditor.collectors.scorer import ModelScorer, Scorer
from auditor.collectors.sources.source import Source
from auditor.collectors.tasks import Task

__all__ = ["ScorerRecipe", "is_scorer", "opened_model"]


def is_scorer(model: Any) -> bool:
    """Return whether a model turns records into losses by itself, as a `TextScorer` does."""
    return isinstance(model, LanguageModelFile) or (
        hasattr(model, "score") and hasattr(model, "records_at_once") and hasattr(model, "scale")
    )


def opened_model(model: Any) -> Any:
    """Return the model itself, where a file or an address was given."""
    if isinstance(model, str) and model.lower().startswith(("http://", "https://")):
        from auditor.collectors.served import Endpoint

        return Endpoint(model)
    if isinstance(model, str | os.PathLike):
        model = ModelFile(model)
    return model.load() if isinstance(model, ModelFile | LanguageModelFile) else model


@dataclass(frozen=True, eq=False)
class ScorerRecipe:
    """Builds the scorer of a model in whatever process is to score.

    Attributes:
        model: A model, the path of its file, a `ModelFile`, the address of a served model, an `Endpoint`, or a scorer.
        task: What it was trained to predict.
        output: What it returns, if the caller knows.
        classes: The label of each output column, if the caller knows.
        repeats: Calls of the model for each batch.
        sources: The tables; the model is tried on records spread over each, the same in every process.
    """

    model: Any
    task: Task
    output: Output | None
    classes: Sequence[Any] | None
    repeats: int
    sources: Sequence[Source]

    def __call__(self) -> Scorer:
        """Return the scorer."""
        model = opened_model(self.model)
        if is_scorer(model):
            scorer: Scorer = model
            return scorer
        found = predictor(model, task=self.task, output=self.output, sample=self._sample())
        return ModelScorer(found, task=self.task, classes=self.classes, repeats=self.repeats)

    def _sample(self) -> list[Records]:
        return [sampled(source)[0] for source in self.sources]
