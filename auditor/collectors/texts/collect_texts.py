"""Texts and a language model become `Losses`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.assembly import assembled
from auditor.collectors.records import Records, length
from auditor.collectors.scorer import in_batches
from auditor.collectors.texts.causal import LongTexts
from auditor.collectors.texts.scorer import TextScorer, text_scorer
from auditor.collectors.texts.scores import MeanTokenLoss, TextScore
from auditor.collectors.texts.tokens import plain_texts
from auditor.errors import InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints
from auditor.values import Losses, PerGroup

__all__ = ["collect_texts"]

Pair = tuple[npt.ArrayLike, npt.ArrayLike]


def collect_texts(
    model: Any,
    *,
    members: Sequence[str],
    nonmembers: Sequence[str],
    tokenizer: Any = None,
    score: TextScore = MeanTokenLoss(),  # noqa: B008 - a frozen value
    longest: int | None = None,
    long_texts: LongTexts = LongTexts.REFUSE,
    ids: Pair | None = None,
    groups: Pair | None = None,
    persons: Pair | None = None,
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
        score: What becomes the loss: `MeanTokenLoss`, `SumTokenLoss`, `MinK` or `ZlibRatio`.
        longest: The most tokens of a text, 2 or more; default what model and tokenizer say.
        long_texts: Whether texts of more tokens are refused or cut.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, likewise.
        persons: Optional data subject of each text, likewise.
        batch_size: Texts for each call; default what the model wants.

    Returns:
        Losses with a fingerprint of each text and a history that says which score of which model they are. A text with
        a token to which the model gives probability 0 is counted as saturated and placed at the end of the scale.

    Raises:
        InputError: A model that is not supported; texts that are no strings, of fewer than 2 tokens or too long; token
            log-probabilities that are none; lengths that do not match.
        MissingExtraError: A package that the model needs is not installed.
    """
    member, nonmember = _group("member", "members", members), _group("nonmember", "nonmembers", nonmembers)
    labels = {
        name: _pair(f"{name}s", pair, (member, nonmember))
        for name, pair in (("id", ids), ("group", groups), ("person", persons))
    }
    labels["fingerprint"] = fingerprints(Features(member=member.features, nonmember=nonmember.features))
    size = None if batch_size is None else _validate.at_least("batch_size", batch_size, least=1)
    scorer = text_scorer(
        model, tokenizer=tokenizer, score=score, also=(), longest=longest, long_texts=long_texts
    )
    # What cannot be scored is found in all texts before the model spends any time.
    cut = (scorer.reader.check(member), scorer.reader.check(nonmember))
    first, second = (in_batches(scorer, group, size=size) for group in (member, nonmember))
    words = _with_cuts(scorer, cut)
    return assembled(first, nonmember=second, words=words, scale=scorer.scale, labels=labels)


def _with_cuts(scorer: TextScorer, cut: tuple[int, int]) -> str:
    counts = f" ({cut[0]} member and {cut[1]} non-member texts were)" if any(cut) else ""
    return f"{scorer.words}{counts}"


def _group(name: str, argument: str, texts: Any) -> Records:
    """Return one group, its texts as a list of strings."""
    count = length(name, texts)
    if count < 2:  # noqa: PLR2004
        raise InputError(f"{argument} must hold at least 2 texts, got {count}.")
    labels = np.zeros(count, dtype=np.int64)
    return Records(name, plain_texts(Records(name, texts, labels)), labels)


def _pair(name: str, pair: Any, groups: tuple[Records, Records]) -> PerGroup | None:
    """Return per-record labels, checked before the model spends any time."""
    if pair is None:
        return None
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        raise InputError(f"{name} must be a pair (members, non-members), got {type(pair).__name__}.")
    sides = list(zip(groups, pair, strict=True))
    result = PerGroup(*(_validate.column(f"{group.name} {name}", column) for group, column in sides))
    for group, column in zip(groups, result, strict=True):
        _validate.same_length((f"{group.name} texts", f"{group.name} {name}"), (len(group), column.size))
    return result
