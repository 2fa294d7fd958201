"""What was measured, as counts of records: the sentences that people decide by."""

import math
from dataclasses import replace

import numpy as np
import pytest

from auditor.report import findings, recognition as told
from auditor.results import at_least, out_of_many

RATE = "tpr_at_fpr.0.01"


def _changed(result, name, **fields):
    rows = tuple(replace(item, **fields) if item.name == name else item for item in result.estimates)
    return replace(result, estimates=rows)


def test_the_threshold_of_the_certified_bound(overfitted):
    """The two rates of the bound are rounded away from the leak, and their ratio stays; high losses are others'."""
    name, rates = "epsilon_bound.clopper_pearson", (0.129, 0.0101)
    for tail, keys, said in (
        ("lower", ("tpr_lower", "fpr_upper"), "1,290 out of 10,000 training records have a loss below it"),
        ("upper", ("tnr_lower", "fnr_upper"), "1,290 out of 10,000 other records have a loss above it"),
    ):
        details = {"tail": tail, **dict(zip(keys, rates, strict=True))}
        assert said in told(_changed(overfitted, name, details=details))["measured"][-1]
        approximate = _changed(overfitted, name, details=details | {"approximate": True})
        assert "one threshold" not in " ".join(told(approximate)["measured"])


def test_counts(overfitted):
    """A certified TPR of 12.3% at 1% FPR is told in records, with what an accusation is worth by Bayes' rule."""
    # 0.123006 / (0.123006 + 0.01) = 0.9248; 0.01 * 0.123006 / (0.01 * 0.123006 + 0.99 * 0.01) = 0.1105
    first, half, few, *_ = told(overfitted)["measured"]
    assert first == (
        "At 95% confidence: of 100 training records, at least 12 are recognised; of 100 other records, at most 1 is falsely"
        " accused."
    )
    assert half.endswith("an accusation is right in at least 92 out of 100 cases.")
    assert half.startswith("If half of the records that the attacker looks at are in the training data")
    assert few == "If only 1 in 100 of them is, an accusation is right in at least 11 out of 100 cases."
    # The limit is told and not the value; of persons, persons; a limit of 1 is all, one below the rate shows nothing.
    assert told(_changed(overfitted, RATE, value=0.9))["measured"] == [first, half, few]
    of_persons = told(replace(overfitted, data={**overfitted.data, "unit": "person (mean loss)"}))["measured"]
    assert (
        "of 100 persons in the training data, at least 12 are recognised; of 100 other persons"
        in of_persons[0]
    )
    assert "half of the persons" in of_persons[1]
    assert "of 100 training records, all are" in told(_changed(overfitted, RATE, lower=1.0))["measured"][0]
    (sentence,) = told(_changed(overfitted, RATE, lower=0.009))["measured"]
    assert "it is not shown" in sentence


def test_every_count_is_on_the_safe_side():
    """No hit more than the lower limit gives, no false alarm fewer than the rate allows, and the two are told apart."""
    rng = np.random.default_rng(0)
    for rate, more in zip(10 ** rng.uniform(-5, -0.5, 300), rng.uniform(0, 1, 300), strict=True):
        low = rate + (1 - rate) * more**4
        base, hits, alarms = out_of_many(rate, low)
        assert hits <= low * base + 1e-6
        assert alarms >= rate * base - 1e-6
        assert alarms >= 1
        assert hits > alarms or base == 1_000_000
        assert hits / alarms >= 0.95 * low / rate or base == 1_000_000


def test_a_share_keeps_two_digits():
    """A lower limit is rounded down by at most a twentieth of itself: 1.9 in 100 is not told as 1 out of 100."""
    assert at_least(0.0193) == "19 out of 1,000"
    for share in np.random.default_rng(1).uniform(0.0001, 1, 300):
        hits, base = (int(part.replace(",", "")) for part in at_least(share).split(" out of "))
        assert 0.95 * share <= hits / base <= share + 1e-9


def test_an_accusation_by_counting():
    """Bayes' rule agrees with counting accusations among many records, for any share of members."""
    members, others, rate, low = 3_000, 97_000, 0.002, 0.25
    accused = members * low, others * rate
    share = accused[0] / sum(accused)  # 750 of 944 accusations are right: 79.4%
    said = findings._accused(rate, low, 0.03, "So")
    assert said == f"So, an accusation is right in at least {math.floor(100 * share)} out of 100 cases."


def test_the_claim_in_the_words_of_the_study(refuted, overfitted):
    """An epsilon of ln(61/39) at delta 0 is 39 and 61 out of 100, as on the slide; without a claim nothing is promised."""
    claim = replace(refuted.claims[0], value=math.log(61 / 39), delta=0.0)
    odds, belief = told(replace(refuted, claims=(claim,)))["claim"]
    assert "39 out of 100 potential outcomes" in odds
    assert "at most 61 out of 100" in odds
    assert "at most 61 out of 100 afterwards" in belief
    assert told(overfitted)["claim"] == []


def test_a_training_promises_what_its_whole_curve_allows(refuted):
    """For DP-SGD of which the exact advantage is 0.1 the odds are those of 0.1, not the wider ones of one epsilon."""
    claim = refuted.claims[0]  # epsilon 1, whose corner is 1/(1 + e) = 27 and 74 out of 100
    training = replace(claim, metric="advantage", value=0.1, delta=None)
    assert "27 out of 100" in told(replace(refuted, claims=(claim,)))["claim"][0]
    (odds,) = told(replace(refuted, claims=(claim, training)))["claim"]
    # (1 - 0.1)/2 = 45 out of 100 without, and 55 with.
    assert "45 out of 100" in odds
    assert "at most 55 out of 100" in odds


@pytest.mark.parametrize("value", [None, math.nan, -0.1, 1.5, 0.9])
def test_an_advantage_that_says_no_more_is_passed_over(refuted, value):
    """An advantage that is none, or no smaller than what the epsilon implies, changes nothing."""
    claim = refuted.claims[0]
    other = replace(claim, metric="advantage", value=value, delta=None)
    assert (
        told(replace(refuted, claims=(claim, other)))["claim"]
        == told(replace(refuted, claims=(claim,)))["claim"]
    )


def _census(result, *, drawn):
    """The same result of a census: its limits are the observed rates, and beside them stands what is drawn."""

    def row(item):
        if not item.name.startswith("tpr_at_fpr") or item.value is None:
            return item
        about = "every training record was scored: the number compares this finite training set with the population"
        kept = {"value": item.value, "lower": drawn, "upper": None}
        details = {**item.details, "as_draws": kept} if drawn is not None else item.details
        return replace(item, lower=item.value, assumptions=(about,), details=details)

    return replace(result, estimates=tuple(row(item) for item in result.estimates))


def test_a_census_is_told_with_its_members_as_draws(overfitted):
    """The odds come from the limit that allows for chance in who was drawn, and say why the tables differ."""
    found = told(_census(overfitted, drawn=0.05))
    assert "of 100 training records, at least 5 are recognised" in found["measured"][0]
    assert "chance in which of them were drawn is allowed for" in found["rests"]
    assert "can be positive by chance alone" in found["rests"]
    assert "chance" not in told(overfitted)["rests"]
    assert "it is not shown" in told(_census(overfitted, drawn=0.001))["measured"][0]
    # Where an older result keeps only the numbers of the finite set nothing is told of them.
    plain = replace(overfitted, data={**overfitted.data, "members": "census"})
    assert told(_census(overfitted, drawn=None))["measured"] == told(plain)["measured"] == []


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, None])
@pytest.mark.parametrize("delta", [0.0, 1.0, None, -0.5])
def test_a_claim_that_is_none(refuted, value, delta):
    """A claim that no promise can be read from is passed over, unless it is in order."""
    claim = replace(refuted.claims[0], value=value, delta=delta)
    assert told(replace(refuted, claims=(claim,)))["claim"] == []
