"""Scores of a text from the log-probabilities of its tokens."""

import math
import zlib

import numpy as np
import pytest
from collectors.common import refused
from hypothesis import given, strategies as st

from auditor import LossScale
from auditor.collectors.texts import SCORES, MeanTokenLoss, MinK, SumTokenLoss, ZlibRatio

ALL = tuple(kind() for kind in SCORES.values())

LOGS = np.array([-0.5, -4.0, -1.0, -2.5, -2.0])  # sums to -10
LOG_LISTS = st.lists(st.floats(-50, 0), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (MeanTokenLoss(), 2.0),
        (SumTokenLoss(), 10.0),
        (MinK(percent=2.5), 4.0),  # one token at least
        (MinK(percent=20), 4.0),  # one token of five
        (MinK(percent=40), 3.25),  # (4 + 2.5) / 2
        (MinK(percent=59), 3.25),  # 2.95 tokens are two
        (MinK(percent=60), 8.5 / 3),
        (MinK(percent=100), 2.0),
    ],
    ids=repr,
)
def test_scores_are_those_computed_by_hand(score, expected):
    """Each score of five tokens is the number worked out on paper."""
    assert score.of(LOGS, text="any") == pytest.approx(expected, rel=1e-15)
    text = "日本語 " * 50  # whose zlib length is of the compressed UTF-8, not of characters
    assert ZlibRatio().of(LOGS, text=text) == 10 / len(zlib.compress(text.encode("utf-8"))) > 10 / len(text)


@given(LOG_LISTS, st.integers(0, 59), st.floats(0.01, 5))
def test_a_likelier_token_never_raises_a_score(logs, place, amount):
    """Smaller means more like a member: a text whose token becomes likelier scores no higher."""
    likelier = np.array(logs)
    likelier[place % len(logs)] = min(0.0, likelier[place % len(logs)] + amount)
    for score in ALL:
        assert score.of(likelier, text="any") <= score.of(np.array(logs), text="any") + 1e-12


def test_an_excluded_token_makes_every_score_infinite():
    """A token of probability 0 is the least like a member that a text can be."""
    for score in ALL:
        assert score.of(np.array([-1.0, -np.inf]), text="any") == math.inf


def test_only_the_sum_is_a_cross_entropy():
    """Its exponential, negated, is the probability of the text; that of a mean is the probability of nothing."""
    scales = {score.name: score.scale for score in ALL}
    assert scales.pop("sum_token_loss") is LossScale.CROSS_ENTROPY
    assert set(scales.values()) == {LossScale.UNKNOWN}


@pytest.mark.parametrize("percent", [0, -1, 100.5, math.nan, "many"])
def test_a_share_of_tokens_that_is_none_is_refused(percent):
    """The percentage lies above 0 and is at most 100."""
    with refused(r"percent must"):
        MinK(percent=percent)
