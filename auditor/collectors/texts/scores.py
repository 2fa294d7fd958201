"""Scores of a text from the log-probabilities of its tokens; in every one a smaller score looks more like a member.

With l_2, ..., l_T the log-probability of each token given those before it (the first token has none)::

    MeanTokenLoss   -(l_2 + ... + l_T) / (T - 1)
    SumTokenLoss    -(l_2 + ... + l_T), the negative log of the text's probability given its first token
    MinK(k)         -(mean of the k% lowest of l_2, ..., l_T), of at least one token (Shi et al. 2024)
    ZlibRatio       SumTokenLoss / the length in bytes of the text compressed by zlib (Carlini et al. 2021)
"""

import zlib
from dataclasses import dataclass

import numpy as np

from auditor.collectors.base.records import Records
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.values import Floats, LossScale
from auditor.records.labels import is_missing

# --- Texts of a batch of records, and a language model's log-probabilities of their tokens ---


_ROUNDING = 1e-6  # a log-probability just above 0 is a rounding error of a probability of 1


@dataclass(frozen=True, eq=False)
class ScoredText:
    """A text and the log-probabilities of its tokens.

    Attributes:
        log_probabilities: Shape (T - 1,), of every token but the first given those before it, in nats; 0 or less.
        text: The whole text.
    """

    log_probabilities: Floats
    text: str


def plain_texts(records: Records) -> list[str]:
    """Return the features of records as texts: a list, an array or a column of strings, or a table of one column.

    >>> plain_texts(Records("member", np.array([["one"], ["two"]]), np.zeros(2)))
    ['one', 'two']
    """
    column = np.asarray(records.features, dtype=object)
    column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column  # noqa: PLR2004
    if column.ndim != 1:
        raise InputError(
            f"{records.name} texts must be one column of strings, got shape {column.shape}; name the column of the texts."
        )
    for row, value in enumerate(column):
        if not isinstance(value, str):
            got = "a missing value" if is_missing(value) else type(value).__name__
            raise InputError(
                f"{records.name} texts must be strings, got {got} ({records.row(row)}); leave that record out or"
                " name the column of the texts."
            )
        if validate.SURROGATE.search(value):
            raise InputError(
                f"{records.name} texts must be valid Unicode, got half of a surrogate pair ({records.row(row)});"
                " read the file in its own encoding."
            )
    return [str(value) for value in column]


def checked_log_probabilities(values: Floats, *, records: Records, row: int) -> Floats:
    """Return the log-probabilities of one text, none above 0; NaN is refused with its token."""
    bad = np.isnan(values) | (values > _ROUNDING)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"{records.name} text ({records.row(row)}) must have token log-probabilities of 0 or less, got"
            f" {values[place]:.6g} for token {place + 1}, counting from 0; fix the model."
        )
    return np.minimum(values, 0.0)


# --- Scores: a number for a text each, with the name of its column, its description, and its scale as a loss ---


_WHOLE = 100  # percent


@dataclass(frozen=True)
class MeanTokenLoss:
    """The mean of the tokens' log-losses: the logarithm of the perplexity.

    >>> MeanTokenLoss().of(np.array([-1.0, -3.0]), text="a b c")
    2.0
    """

    name = "mean_token_loss"
    words = "mean token log-loss"
    scale = LossScale.UNKNOWN  # the exponential is a mean of probabilities, and the probability of nothing

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - every score has the same method
        """Return the score, in nats for each token."""
        return float(-log_probabilities.mean())


@dataclass(frozen=True)
class SumTokenLoss:
    """The sum of the tokens' log-losses: the negative log-probability of the text, given its first token.

    >>> SumTokenLoss().of(np.array([-1.0, -3.0]), text="a b c")
    4.0
    """

    name = "sum_token_loss"
    words = "sum of the token log-losses"
    scale = LossScale.CROSS_ENTROPY

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - as above
        """Return the score, in nats."""
        return float(-log_probabilities.sum())


@dataclass(frozen=True)
class MinK:
    """The mean log-loss of the least likely tokens: a text that was seen has few tokens that surprise.

    Attributes:
        percent: Share of the tokens, in (0, 100]; rounded down to whole tokens, and one at least.

    Source: Shi et al. 2024, Section 3 (min-k% prob), negated.

    >>> MinK(percent=50).of(np.array([-1.0, -3.0, -2.0, -5.0]), text="a b c d e")
    4.0
    """

    percent: float = 20
    scale = LossScale.UNKNOWN

    def __post_init__(self) -> None:
        share = validate.number("percent", self.percent)
        if not 0 < share <= _WHOLE:
            raise InputError(f"percent must lie in (0, 100], got {share:g}.")

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"min_{self.percent:g}_percent"

    @property
    def words(self) -> str:
        """Description of the score."""
        return f"mean log-loss of the {self.percent:g}% least likely tokens"

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - as above
        """Return the score, in nats for each token."""
        lowest = max(1, int(log_probabilities.size * self.percent / _WHOLE))
        return float(-np.sort(log_probabilities)[:lowest].mean())


@dataclass(frozen=True)
class ZlibRatio:
    """The sum of the tokens' log-losses over the text's length in bytes when compressed: a measure against repetition.

    The compressed length is that of this machine's zlib at its usual level; another implementation may differ by a few
    bytes, the same for members and non-members.

    Source: Carlini et al. 2021, Section 5.2.

    >>> ZlibRatio().of(np.array([-10.0, -12.0]), text="one two three")  # 21 bytes when compressed
    1.0476190476190477
    """

    name = "zlib_ratio"
    words = "sum of the token log-losses over the compressed length of the text"
    scale = LossScale.UNKNOWN

    def of(self, log_probabilities: Floats, *, text: str) -> float:
        """Return the score, in nats for each byte."""
        return float(-log_probabilities.sum() / len(zlib.compress(text.encode())))


TextScore = MeanTokenLoss | SumTokenLoss | MinK | ZlibRatio

# Scores computed beside the chosen one by default, by name; they cost next to nothing.
SCORES: dict[str, type[TextScore]] = {
    "mean": MeanTokenLoss,
    "sum": SumTokenLoss,
    "min-k": MinK,
    "zlib": ZlibRatio,
}
