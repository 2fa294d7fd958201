"""Measurements as natural frequencies: the sentences that people decide by."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditor.report import finding, out_of_many, promised


def _shown(result, errors, hits, *, end="low", **data):
    shown = {**result.data["shown"], "point": {"errors": errors, "hits": hits, "end": end}}
    return replace(result, data={**result.data, "shown": shown, **data})


def test_counts(overfitted):
    """The point furthest from guessing is stated in records after the pair where it is the stronger evidence."""
    # 0.123006 / (0.123006 + 0.01) = 0.9248; 0.01 * 0.123006 / (0.01 * 0.123006 + 0.99 * 0.01) = 0.1105
    level = "At 95% confidence, an attacker can"
    assert finding(overfitted).sentence == (
        # The AUC is at least 0.684 with all that is looked at; of those accused 0.9248 are members, which is more.
        "Shown one training record and one other record, an attacker picks the right one at least 68 times in 100 (coin: 50)."
        f" {level} recognise at least 12 of 100 training records, while of 100 other records at most 1 is falsely accused."
    )
    other = _shown(overfitted, 0.01, 0.123006, end="high")
    assert finding(other).sentence.endswith(
        f" (coin: 50). {level} tell who was not in the training data: of 100 other records at least 12 can be ruled out, while of 100"
        " training records at most 1 is wrongly ruled out."
    )
    # Of people, people; a limit of 1 is all.
    persons = _shown(overfitted, 0.01, 0.123006, unit="person", combined="mean")
    assert "12 of 100 people in the training data, while of 100 other people" in finding(persons).sentence
    assert "can recognise all of 100 training records" in finding(_shown(overfitted, 0.01, 1.0)).sentence


def test_every_count_is_on_the_safe_side():
    """No hit more than the lower limit gives, no false alarm fewer than the rate allows, and the two differ."""
    rng = np.random.default_rng(0)
    for rate, more in zip(10 ** rng.uniform(-5, -0.5, 300), rng.uniform(0, 1, 300), strict=True):
        low = rate + (1 - rate) * more**4
        base, hits, alarms = out_of_many(rate, low)
        assert hits <= low * base + 1e-6
        assert alarms >= rate * base - 1e-6
        assert alarms >= 1
        assert hits > alarms or base == 1_000_000
        assert hits / alarms >= 0.95 * low / rate or base == 1_000_000


@pytest.mark.parametrize(
    ("rate", "low", "counts"),
    [
        (0.05, 1.0, (100, 100, 5)),
        (0.001, 0.0209, (1_000, 20, 1)),
        (0.0025, 0.5, (10_000, 5_000, 25)),  # 500 and 3 out of 1,000 would tell five sixths of the ratio
        (0.00333, 0.5, (10_000, 5_000, 34)),  # 33.3 accused: rounded up
        (0.0001, 0.9999, (10_000, 9_999, 1)),
        (0.07, 0.29, (100, 29, 7)),  # 0.07 * 100 and 0.29 * 100 are not whole in binary
    ],
)
def test_counts_are_rounded_against_the_finding(rate, low, counts):
    """The smallest round number is taken in which whole numbers keep the ratio: hits rounded down, false alarms up."""
    assert out_of_many(rate, low) == counts


def test_the_claim_in_the_words_of_the_study(refuted, overfitted):
    """An epsilon of ln(61/39) at delta 0 is 39 and 61 out of 100, as on the slide; without a claim nothing is promised."""
    claim = replace(refuted.claims[0], value=math.log(61 / 39), delta=0.0)
    odds, belief = promised(replace(refuted, claims=(claim,)))
    assert "39 out of 100 potential outcomes" in odds
    assert "at most 61 out of 100" in odds
    assert "at most 61 out of 100 afterwards" in belief
    assert promised(overfitted) == []


def test_a_training_promises_what_its_whole_curve_allows(refuted):
    """For DP-SGD of which the exact advantage is 0.1 the odds are those of 0.1, not the wider ones of one epsilon."""
    claim = refuted.claims[0]  # epsilon 1, whose corner is 1/(1 + e) = 27 and 74 out of 100
    training = replace(claim, metric="advantage", value=0.1, delta=None)
    assert "27 out of 100" in promised(replace(refuted, claims=(claim,)))[0]
    (odds,) = promised(replace(refuted, claims=(claim, training)))
    # (1 - 0.1)/2 = 45 out of 100 without, and 55 with.
    assert "45 out of 100" in odds
    assert "at most 55 out of 100" in odds


@pytest.mark.parametrize("value", [None, math.nan, -0.1, 1.5, 0.9])
def test_an_advantage_that_says_no_more_is_passed_over(refuted, value):
    """An advantage that is none, or no smaller than what the epsilon implies, changes nothing."""
    claim = refuted.claims[0]
    other = replace(claim, metric="advantage", value=value, delta=None)
    assert promised(replace(refuted, claims=(claim, other))) == promised(replace(refuted, claims=(claim,)))


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, None])
@pytest.mark.parametrize("delta", [0.0, 1.0, None, -0.5])
def test_a_claim_that_is_none(refuted, value, delta):
    """A claim that no promise can be read from is passed over, unless it is in order."""
    claim = replace(refuted.claims[0], value=value, delta=delta)
    assert promised(replace(refuted, claims=(claim,))) == []
