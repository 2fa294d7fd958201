"""Promises in words: true, whole numbers, never more than the claim says."""

import functools
import math
import re

import pytest
from theory import references

from auditor.core import Adjacency
from auditor.theory import (
    belief_in_words,
    odds_in_words,
    out_of,
    rates_in_words,
    success_in_words,
    tpr_from_epsilon,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


stated = functools.partial(references.stated, adjacency=ADD_REMOVE)


def shares(sentence):
    """Every "x out of n" and "x in n" of a sentence, as (x, n)."""
    found = re.findall(r"([\d,]+) (?:out of|in) ([\d,]+)", sentence)
    return [tuple(int(text.replace(",", "")) for text in pair) for pair in found]


def test_an_advantage_is_told_by_its_middle():
    """An advantage of .22 lets 39 out of 100 become at most 61; none at all leaves 50 and 50; all is stated as all."""
    assert shares(odds_in_words(stated("advantage", 0.22))) == [(39, 100), (61, 100)]
    assert shares(odds_in_words(stated("advantage", 0.0))) == [(50, 100), (50, 100)]
    assert "all of them may" in odds_in_words(stated("advantage", 1.0))


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01, 0.3])
@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.01, 0.1, 0.447, 1.0, 2.0, 3.0, 4.0, 4.7, 5.3, 8.0, 12.0, 20.0])
def test_odds_never_contradict_the_claim(eps, delta):
    """The second number is never below what the trade-off curve allows at the first, nor above the next whole one."""
    claim = stated("epsilon", eps, delta)
    (without, base), (with_you, again) = shares(odds_in_words(claim))
    allowed = tpr_from_epsilon(claim, fpr=without / base).value * base
    assert base == again
    assert 1 <= without <= with_you <= base
    assert with_you >= allowed - 1e-6
    assert with_you < allowed + 1


@pytest.mark.parametrize("prior", [0.001, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("eps", [0.0, 0.447, 2.0, 10.0])
def test_beliefs_never_contradict_the_claim(eps, prior):
    """The lower belief is rounded down and the upper up: odds divided and multiplied by e^epsilon lie between."""
    _, (low, low_base), (high, high_base) = shares(belief_in_words(stated("epsilon", eps, 0.0), prior=prior))
    odds = prior / (1 - prior)
    least, most = (value / (1 + value) for value in (odds * math.exp(-eps), odds * math.exp(eps)))
    assert least - 1 / low_base < low / low_base <= least + 1e-11
    assert most - 1e-11 <= high / high_base < most + 1 / high_base


def test_belief_needs_delta_zero():
    """At a delta above 0 no belief is bounded, and the sentence says why."""
    assert "cannot be said in numbers" in belief_in_words(stated("epsilon", 1.0, 1e-5))
    assert "delta above 0" in belief_in_words(stated("epsilon", 1.0, 1e-5))


@pytest.mark.parametrize(
    ("share", "toward", "words"),
    [
        (0.0, "up", "0 out of 100"),
        (1.0, "up", "100 out of 100"),
        (0.07, "up", "7 out of 100"),  # 100 * 0.07 is 7.000000000000001 in floating point
        (0.29, "down", "29 out of 100"),  # and 100 * 0.29 is 28.999999999999996
        (0.61 + 1e-15, "up", "61 out of 100"),
        (0.6101, "up", "62 out of 100"),
        (0.6199, "down", "61 out of 100"),
        (0.0011, "up", "2 in 1,000"),
        (0.00035, "down", "3 in 10,000"),
        (0.9991, "up", "9,991 out of 10,000"),
        (0.99999, "down", "99,999 out of 100,000"),
        (1e-12, "up", "1 in 1,000,000,000"),
        (1e-12, "down", "0 out of 100"),
        (1e-12, "nearest", "fewer than 1 in 1,000,000,000"),
        (1 - 1e-11, "nearest", "all but fewer than 1 in 1,000,000,000"),
    ],
)
def test_shares_in_words(share, toward, words):
    """Shares are whole numbers out of 100, or of as many as it takes to see them, rounded as requested."""
    assert out_of(share, toward=toward) == words


@pytest.mark.parametrize("exponent", range(1, 10))
@pytest.mark.parametrize("digit", [1, 2, 3.7, 9.99])
def test_rounding_up_never_falls_below(exponent, digit):
    """Rounded up, small shares and their complements are never understated, nor overstated by more than twice."""
    share = digit * 10.0**-exponent
    for value in (share, 1 - share):
        count, base = shares(out_of(value))[0]
        assert count / base >= value - 1e-11
    count, base = shares(out_of(share))[0]
    assert count / base <= 2 * share + 1e-12


def test_success():
    """A success rate of .51 reads 51 against 50; under a prior of .1, against 90."""
    assert shares(success_in_words(stated("success_rate", 0.51))) == [(51, 100), (50, 100)]
    named = stated("success_rate_at_prior.0.1", 0.923)
    assert shares(success_in_words(named, prior=0.1)) == [(93, 100), (90, 100)]
    by_security = stated("success_rate_at_prior.0.9", 0.923)
    assert shares(success_in_words(by_security, prior=0.1)) == [(93, 100), (90, 100)]


SENTENCES = [
    (odds_in_words, "epsilon", 1.0, 0.0),
    (belief_in_words, "epsilon", 1.0, 0.0),
    (functools.partial(rates_in_words, fpr=0.1), "tpr_at_fpr.0.1", 0.2, None),
    (success_in_words, "success_rate", 0.6, None),
]


def test_unproven_claims_are_told_as_such():
    """A number without a proof is "about" so much, never "at most"."""
    for say, metric, value, delta in SENTENCES:
        words = say(stated(metric, value, delta, proven=False))
        assert "about" in words
        assert "at most" not in words


def test_missing_numbers_are_told_as_such():
    """A claim without a value gives a sentence with its reason, not a number."""
    for say, metric, _, delta in SENTENCES:
        assert say(stated(metric, None, delta)) == "This cannot be said in numbers here. By hand."
