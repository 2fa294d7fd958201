"""Scores of a text from the log-probabilities of its tokens; in every one a smaller score looks more like a member.

With l_2, ..., l_T the log-probability of each token given those before it (the first token has none)::

    MeanTokenLoss   -(l_2 + ... + l_T) / (T - 1)
    SumTokenLoss    -(l_2 + ... + l_T), the negative log of the text's probability given its first token
    MinK(k)         -(mean of the k% lowest of l_2, ..., l_T), of at least one token (Shi et al. 2024)
    ZlibRatio       SumTokenLoss / the length in bytes of the text compressed by zlib (Carlini et al. 2021)
"""

import zlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Floats, LossScale

__all__ = ["SCORES", "MeanTokenLoss", "MinK", "SumTokenLoss", "TextScore", "ZlibRatio"]

_WHOLE = 100  # percent


class TextScore(Protocol):
    """A number for a text, from the log-probabilities of its tokens."""

    @property
    def name(self) -> str:
        """The name of its column: "mean_token_loss"."""
        ...

    @property
    def words(self) -> str:
        """What it is, for the history: "mean token log-loss"."""
        ...

    @property
    def scale(self) -> LossScale:
        """What it is as a loss: a cross-entropy where its exponential, negated, is the probability of the record."""
        ...

    def of(self, log_probabilities: Floats, *, text: str) -> float:
        """Return the score.

        Args:
            log_probabilities: Shape (T - 1,), T >= 2, of every token but the first, in nats; 0 or less.
            text: The text that these tokens make up.
        """
        ...


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
        return _positive(-log_probabilities.mean())


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
        return _positive(-log_probabilities.sum())


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

    def __post_init__(self) -> None:
        share = _validate.number("percent", self.percent)
        if not 0 < share <= _WHOLE:
            raise InputError(f"percent must lie in (0, 100], got {share:g}.")

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"min_{self.percent:g}_percent"

    @property
    def words(self) -> str:
        """What it is."""
        return f"mean log-loss of the {self.percent:g}% least likely tokens"

    @property
    def scale(self) -> LossScale:
        """What it is as a loss."""
        return LossScale.UNKNOWN

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - as above
        """Return the score, in nats for each token."""
        kept = max(1, int(log_probabilities.size * self.percent / _WHOLE))
        return _positive(-np.sort(log_probabilities)[:kept].mean())


@dataclass(frozen=True)
class ZlibRatio:
    """The sum of the tokens' log-losses over the text's length in bytes when compressed: a measure against repetition.

    The compressed length is that of this machine's zlib at its usual level; another implementation may differ by a few
    bytes, alike for members and non-members.

    Source: Carlini et al. 2021, Section 5.2.

    >>> ZlibRatio().of(np.array([-10.0, -12.0]), text="one two three")  # 21 bytes when compressed
    1.0476190476190477
    """

    name = "zlib_ratio"
    words = "sum of the token log-losses over the compressed length of the text"
    scale = LossScale.UNKNOWN

    def of(self, log_probabilities: Floats, *, text: str) -> float:
        """Return the score, in nats for each byte."""
        return _positive(-log_probabilities.sum() / len(zlib.compress(text.encode())))


# What is computed beside the chosen score unless the caller says otherwise; it costs next to nothing.
SCORES: tuple[TextScore, ...] = (MeanTokenLoss(), SumTokenLoss(), MinK(), ZlibRatio())


def _positive(value: float) -> float:
    """Return a float; a negated zero is zero."""
    return float(value) + 0.0
