"""Scores texts by the log-probabilities that a language model gives to their tokens."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np

from auditor.collectors.base.records import Records
from auditor.collectors.base.scorer import Sender
from auditor.collectors.base.tasks import BatchLosses
from auditor.collectors.texts.endpoints import CompletionsEndpoint, CompletionsReader
from auditor.collectors.texts.models import CausalModel, LongTexts, load_language_model
from auditor.collectors.texts.scores import (
    SCORES,
    MeanTokenLoss,
    ScoredText,
    SumTokenLoss,
    TextScore,
    ZlibRatio,
    cells,
)
from auditor.collectors.texts.secrets import Secret
from auditor.core import Floats, InputError, LossScale, from_text, validate
from auditor.core.facts import Attack, Attacks, AttackState, Released, Secrets

_NEVER = 746.0  # nats: the exponential of the negative is 0, so that no number of tries writes the secret
TokenReader = CausalModel | CompletionsReader  # from texts to the log-probabilities of their tokens


def text_scorer(
    model: Any,
    *,
    tokenizer: Any = None,
    score: Any = MeanTokenLoss(),  # noqa: B008 - a frozen value
    also: Sequence[TextScore] | None = None,
    longest: int | None = None,
    long_texts: LongTexts = LongTexts.REFUSE,
    reference: Any = None,
    secret: Secret | str | None = None,
) -> "TextScorer":
    """Return a scorer of texts by a causal language model; a smaller score looks more like a member.

    Args:
        model: A causal language model of transformers (or peft), any PyTorch module from token ids of shape (n, T) to logits of
            shape (n, T, V), the folder of a saved one (see `load_language_model`), or a `CompletionsEndpoint`.
        tokenizer: The tokenizer of a model in this process: of transformers or tokenizers, or a callable from a list of
            texts to a list of lists of token ids. An endpoint and a folder have their own.
        score: Score that becomes the loss: `MeanTokenLoss`, `SumTokenLoss`, `MinK` or `ZlibRatio`.
        also: Other scores of the same texts, in columns beside it; default all four kinds, as far as they can be had.
        longest: The most tokens of a text, for a model in this process; default as the model and the tokenizer declare.
        long_texts: Whether texts of more tokens are refused, cut, or scored in windows, for a model in this process.
        reference: A base model, whose score is subtracted; see `collect_texts`.
        secret: Part of each text whose chance of extraction is scored; see `collect_texts`.

    Raises:
        InputError: A model or tokenizer that is not supported, or a choice that does not suit it.
        MissingExtraError: A package that the model needs is not installed.
    """
    score = from_text("score", score, SCORES)
    for name, value in (("score", score), *(("also", other) for other in also or ())):
        validate.instance(name, value, get_args(TextScore))
    options: dict[str, Any] = {"longest": longest, "long_texts": long_texts}
    if secret is not None:
        if reference is not None or also or score not in (MeanTokenLoss(), SumTokenLoss()):
            raise InputError(
                "score, also and reference must be left out with secret, got one of them: its score is the negative log of the"
                " chance that one sample writes it."
            )
        options["secret"] = secret = Secret.from_text(secret)
        return TextScorer(_reader(model, tokenizer, **options), SumTokenLoss(), secret=secret)
    reader, base = _reader(model, tokenizer, **options), None
    if reference is not None:
        served = isinstance(reference, CompletionsEndpoint)
        base = _reader(reference, None if served else tokenizer, **options)
    if also is None:
        also = [kind() for kind in SCORES.values() if kind is not ZlibRatio or not reader.cuts]
    others = {other.name: other for other in also if other.name != score.name}
    return TextScorer(reader=reader, loss=score, also=tuple(others.values()), reference=base)


def _reader(
    model: Any, tokenizer: Any, *, longest: int | None, long_texts: LongTexts, secret: Secret | None = None
) -> TokenReader:
    """Return the reader of a model in memory, in a folder, as a pair with its tokenizer, or at an endpoint."""
    if isinstance(model, str | os.PathLike):
        model = load_language_model(Path(model))
    if isinstance(model, tuple):
        model, tokenizer = model
    if not isinstance(model, CompletionsEndpoint):
        return CausalModel(model, tokenizer=tokenizer, longest=longest, long_texts=long_texts, secret=secret)
    if tokenizer is not None or longest is not None or long_texts != LongTexts.REFUSE:
        raise InputError(
            "tokenizer, longest and long_texts belong to a model in this process, got one of them with a"
            " CompletionsEndpoint, which cuts texts into tokens by itself; leave them out."
        )
    if secret is not None and not secret.is_plain:
        raise InputError(
            f"temperature must be 1 without top-k and top-p at an endpoint, got {secret.words}: it returns log-probabilities of"
            " that setting only; leave them out, or load the model into this process."
        )
    return CompletionsReader(model, secret)


@dataclass(frozen=True, eq=False)
class TextScorer:
    """Scores texts, which are the features of the records; their labels are ignored.

    Attributes:
        reader: The model.
        loss: The score that becomes the loss.
        also: Other scores of the same texts.
        reference: Base model, whose score is subtracted; the columns beside the loss are scores of the model alone.
        secret: Part of each text that is scored: the chance that one sample writes it.
        responses: Whether only the responses are scored.
        identity: A hash of the files or the address of the model; None of one in memory.

    Raises:
        InputError: A zlib ratio of cut texts.
    """

    reader: TokenReader
    loss: TextScore = MeanTokenLoss()  # noqa: RUF009 - a frozen value
    also: tuple[TextScore, ...] = ()
    reference: TokenReader | None = None
    secret: Secret | None = None
    responses: bool = False
    identity: str | None = None

    def __post_init__(self) -> None:
        ratios = [isinstance(item, ZlibRatio) for item in (self.loss, *self.also)]
        if (any(ratios) and self.reader.cuts) or (ratios[0] and self.readers[-1].cuts):
            raise InputError(
                "ZlibRatio needs the text that the tokens make up, which is unknown where long texts are cut; shorten the"
                " texts, or refuse long ones."
            )

    @property
    def words(self) -> str:
        """Description of the losses and their source."""
        if self.secret is not None:
            return f"negative log of the chance that one sample ({self.secret.words}) writes the secret, of {self.reader.source}"
        alone = " over the tokens of the responses alone," if self.responses else ""
        base = "" if self.reference is None else f" minus that of the reference {self.reference.source},"
        return f"{self.loss.words}{alone}{base} of {self.reader.source}"

    @property
    def scale(self) -> LossScale:
        """Scale of the loss."""
        return self.loss.scale if self.reference is None else LossScale.UNKNOWN

    @property
    def records_at_once(self) -> int | None:
        """Batch size that the model requires."""
        return self.reader.records_at_once

    @property
    def senders(self) -> Sequence[Sender]:
        """The readers at endpoints."""
        return [reader for reader in self.readers if isinstance(reader, CompletionsReader)]

    @property
    def attacks(self) -> Attacks:
        """The attack that these scores are."""
        run = {Attack.REFERENCE: self.reference, Attack.EXTRACTION: self.secret}
        return {attack: AttackState.RUN for attack, given in run.items() if given is not None}

    @property
    def released(self) -> Released:
        """Facts about the secrets."""
        return Released(secrets=None if self.secret is None else Secrets(self.secret.space))

    @property
    def readers(self) -> tuple[TokenReader, ...]:
        """The model, and the base model."""
        return (self.reader,) if self.reference is None else (self.reader, self.reference)

    def of(self, records: Records) -> "TextScorer":
        """Return the scorer of records of this kind: of texts, or of responses."""
        return replace(self, responses=not isinstance(cells(records.part(0, 1))[0], str))

    def check(self, records: Records) -> int:
        """Refuse texts that cannot be scored, as far as that is known without the model; return how many it takes in parts."""
        counts = [reader.check(records) for reader in self.readers]
        if self.of(records).responses != self.responses:
            raise InputError(
                f"{records.name} texts must be of the kind of the members, got whole texts and responses; score one kind at a"
                " time."
            )
        return counts[0]

    def trial(self, records: Records) -> tuple[str, ...]:
        """Return warnings for readers from a few texts."""
        return tuple(dict.fromkeys(chain.from_iterable(reader.trial(records) for reader in self.readers)))

    def score(self, records: Records) -> BatchLosses:
        """Return the scores of a batch of texts; infinite where the model excludes a token that the text has."""
        read = [reader.read(records) for reader in self.readers]

        def of(score: TextScore, texts: Sequence[ScoredText]) -> Floats:
            values = [score.of(item.log_probabilities, text=item.text) for item in texts]
            return np.array(values) + 0.0  # a negated zero is zero

        loss, more = of(self.loss, read[0]), {other.name: of(other, read[0]) for other in self.also}
        for base in read[1:]:
            more = {self.loss.name: loss, **more}
            loss = loss - np.where(np.isinf(loss), 0.0, of(self.loss, base))
        eps, excluded = max(reader.eps for reader in self.readers), np.isinf(loss)
        loss = loss if self.secret is None else np.minimum(loss, _NEVER)
        return BatchLosses(loss=loss, saturated=excluded, eps=eps, more=more)
