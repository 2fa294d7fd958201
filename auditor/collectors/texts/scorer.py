"""Scores texts by the log-probabilities that a language model gives to their tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Records, count_records, labels_beside
from auditor.collectors.base.scorer import losses_of
from auditor.collectors.base.tasks import BatchLosses
from auditor.collectors.texts.endpoints import CompletionsEndpoint, CompletionsReader
from auditor.collectors.texts.models import CausalModel, LongTexts, causal_model
from auditor.collectors.texts.scores import SCORES, MeanTokenLoss, TextScore, ZlibRatio, plain_texts
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import from_text
from auditor.core.values import Floats, Losses, LossScale
from auditor.core.verb import alike
from auditor.records.features import Features, fingerprints

TokenReader = CausalModel | CompletionsReader  # from texts to the log-probabilities of their tokens


def text_scorer(
    model: Any,
    *,
    tokenizer: Any = None,
    score: Any = MeanTokenLoss(),  # noqa: B008 - a frozen value
    also: Sequence[TextScore] | None = None,
    longest: int | None = None,
    long_texts: LongTexts = LongTexts.REFUSE,
) -> "TextScorer":
    """Return a scorer of texts by a causal language model; a smaller score looks more like a member.

    Args:
        model: A causal language model of transformers, any PyTorch module from token ids of shape (n, T) to logits of
            shape (n, T, V), or a `CompletionsEndpoint`.
        tokenizer: The tokenizer of a model in this process: of transformers or tokenizers, or a callable from a list of
            texts to a list of lists of token ids. An endpoint has its own.
        score: Score that becomes the loss: `MeanTokenLoss`, `SumTokenLoss`, `MinK` or `ZlibRatio`.
        also: Other scores of the same texts, in columns beside it; default all four kinds, as far as they can be had.
        longest: The most tokens of a text, for a model in this process; default as the model and the tokenizer declare.
        long_texts: Whether texts of more tokens are refused, cut, or scored in windows, for a model in this process.

    Raises:
        InputError: A model or tokenizer that is not supported, or a choice that does not suit it.
        MissingExtraError: A package that the model needs is not installed.
    """
    score = from_text("score", score, SCORES)
    for name, value in (("score", score), *(("also", other) for other in also or ())):
        validate.instance(name, value, get_args(TextScore))
    reader: TokenReader
    if isinstance(model, CompletionsEndpoint):
        if tokenizer is not None or longest is not None or long_texts != LongTexts.REFUSE:
            raise InputError(
                "tokenizer, longest and long_texts belong to a model in this process, got one of them with a"
                " CompletionsEndpoint, which cuts texts into tokens by itself; leave them out."
            )
        reader = CompletionsReader(model)
    else:
        reader = causal_model(model, tokenizer=tokenizer, longest=longest, long_texts=long_texts)
    if also is None:
        also = [kind() for kind in SCORES.values() if kind is not ZlibRatio or not reader.cuts]
    others = {other.name: other for other in also if other.name != score.name}
    return TextScorer(reader=reader, loss=score, also=tuple(others.values()))


@dataclass(frozen=True, eq=False)
class TextScorer:
    """Scores texts, which are the features of the records; their labels are ignored.

    Attributes:
        reader: The model.
        loss: The score that becomes the loss.
        also: Other scores of the same texts.
        identity: A hash of the files or the address of the model; None of one in memory.

    Raises:
        InputError: A zlib ratio of cut texts.
    """

    reader: TokenReader
    loss: TextScore = MeanTokenLoss()  # noqa: RUF009 - a frozen value
    also: tuple[TextScore, ...] = ()
    identity: str | None = None

    def __post_init__(self) -> None:
        needed = any(isinstance(item, ZlibRatio) for item in (self.loss, *self.also))
        if needed and self.reader.cuts:
            raise InputError(
                "ZlibRatio needs the text that the tokens make up, which is unknown where long texts are cut; shorten the"
                " texts, or refuse long ones."
            )

    @property
    def words(self) -> str:
        """Description of the losses and their source."""
        return f"{self.loss.words} of {self.reader.source}"

    @property
    def scale(self) -> LossScale:
        """Scale of the loss."""
        return self.loss.scale

    @property
    def records_at_once(self) -> int | None:
        """Batch size that the model requires."""
        return self.reader.records_at_once

    def check(self, records: Records) -> None:
        """Refuse texts that cannot be scored, as far as that is known without the model."""
        self.reader.check(records)

    def score(self, records: Records) -> BatchLosses:
        """Return the scores of a batch of texts; infinite where the model excludes a token that the text has."""
        scored = self.reader.read(records)

        def of(score: TextScore) -> Floats:
            values = [score.of(item.log_probabilities, text=item.text) for item in scored]
            return np.array(values) + 0.0  # a negated zero is zero

        loss, more = of(self.loss), {other.name: of(other) for other in self.also}
        return BatchLosses(loss=loss, saturated=np.isinf(loss), eps=self.reader.eps, more=more)


# --- Texts and a language model become `Losses` ---


_Pair = tuple[npt.ArrayLike, npt.ArrayLike]


@alike
def collect_texts(
    model: Any,
    *,
    members: Sequence[str],
    nonmembers: Sequence[str],
    tokenizer: Any = None,
    score: Any = MeanTokenLoss(),  # noqa: B008 - a frozen value
    longest: int | None = None,
    long_texts: LongTexts = LongTexts.REFUSE,
    ids: _Pair | None = None,
    groups: _Pair | None = None,
    persons: _Pair | None = None,
    batch_size: int | None = None,
) -> Losses:
    """Score a language model's texts by the log-probabilities of their tokens; smaller looks more like a member.

    Args:
        model: A causal language model of transformers, any PyTorch module from token ids of shape (n, T) to logits of
            shape (n, T, V), or a `CompletionsEndpoint`.
        members: Texts that the model was trained on: a list, an array or a column of strings.
        nonmembers: Texts of the same population that it never saw.
        tokenizer: The tokenizer of a model in this process: of transformers or tokenizers, or a callable from a list of
            texts to a list of lists of token ids. An endpoint has its own.
        score: Score that becomes the loss: ``mean`` (`MeanTokenLoss`), ``sum`` (`SumTokenLoss`), ``min-k`` or ``min-k:20``
            (`MinK`), or ``zlib`` (`ZlibRatio`).
        longest: The most tokens of a text, 2 or more; default as the model and the tokenizer declare.
        long_texts: Whether texts of more tokens are refused (``refuse``), cut (``cut``), or scored in windows (``windows``)
            that move by half their length: each token is scored once, after half a window of context at least.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, as a pair.
        persons: Optional data subject of each text, as a pair.
        batch_size: Texts for each call; default as the model requires.

    Returns:
        Losses with a fingerprint of each text and a history that says which score of which model they are. A text with
        a token to which the model gives probability 0 is counted as saturated and placed at the end of the scale.

    Raises:
        InputError: A model that is not supported; texts that are no strings, of fewer than 2 tokens or too long; token
            log-probabilities that are none; lengths that do not match.
        MissingExtraError: A package that the model needs is not installed.
    """
    member, nonmember = _group("member", "members", members), _group("nonmember", "nonmembers", nonmembers)
    labels = labels_beside((member, nonmember), values="texts", id=ids, group=groups, person=persons)
    labels["fingerprint"] = fingerprints(Features(member=member.features, nonmember=nonmember.features))
    size = None if batch_size is None else validate.at_least("batch_size", batch_size, least=1)
    scorer = text_scorer(
        model, tokenizer=tokenizer, score=score, also=(), longest=longest, long_texts=long_texts
    )
    # Texts that cannot be scored are found before the model spends any time.
    cut = (scorer.reader.check(member), scorer.reader.check(nonmember))
    counts = f" ({cut[0]} member and {cut[1]} non-member texts were)" if any(cut) else ""
    noticed = scorer.reader.trial(member)
    return losses_of(scorer, (member, nonmember), size=size, labels=labels, noticed=noticed, aside=counts)


def _group(name: str, argument: str, texts: Any) -> Records:
    """Return one group, its texts as a list of strings."""
    count = count_records(name, texts)
    if count < 2:  # noqa: PLR2004
        raise InputError(f"{argument} must hold at least 2 texts, got {count}.")
    labels = np.zeros(count, dtype=np.int64)
    return Records(name, plain_texts(Records(name, texts, labels)), labels)
