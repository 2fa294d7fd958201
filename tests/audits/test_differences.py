"""Differences of two audits: hand-computed intervals, one row that decides, and never a number from two one-sided bounds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.audits.differences import COMPARED, Change, differences, headline
from auditor.errors import InputError
from auditor.values import Status


def audited(rng, shift, n=3000, **options):
    """An audit of normal losses whose true advantage is 2 Phi(shift/2) - 1."""
    losses = auditor.Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n // 2))
    return auditor.audit(losses, **{"delta": 1e-5, **options})


@pytest.fixture(scope="module")
def two():
    """A quiet release and a leaking one."""
    rng = np.random.default_rng(4)
    return audited(rng, 0.1), audited(rng, 1.0)


def row(old, new, name):
    """One difference by its name."""
    return {item.name: item for item in differences(old, new)}[name]


def with_check(result, name, **changes):
    """The same result with one check changed."""
    return replace(
        result,
        checks=tuple(replace(item, **changes) if item.name == name else item for item in result.checks),
    )


def with_estimate(result, name, **changes):
    """The same result with one estimate changed."""
    return replace(
        result,
        estimates=tuple(replace(item, **changes) if item.name == name else item for item in result.estimates),
    )


def test_the_interval_of_the_advantage_is_two_bands_at_half_the_error(two):
    """Each end is off by both audits' Dvoretzky-Kiefer-Wolfowitz bands at error 0.025, written out here."""
    found = row(*two, "advantage")
    band = sum(math.sqrt(math.log(4 / 0.025) / (2 * n)) for n in (3000, 1500))
    values = [item.estimate("advantage").value for item in two]
    old, new = ((max(0.0, value - band), min(1.0, value + band)) for value in values)
    assert found.value == pytest.approx(values[1] - values[0])
    assert (found.lower, found.upper) == pytest.approx((new[0] - old[1], new[1] - old[0]))
    assert (found.confidence, found.verdict) == (0.95, Change.WORSE)


def test_the_interval_of_the_auc_takes_the_normal_quantile_at_half_the_error(two):
    """Away from 0 and 1 each end is off by about z at 1.25% a side, 2.24, times the sum of both standard errors."""
    found = row(*two, "auc")
    errors = [item.estimate("auc").details["standard_error"] for item in two]
    half = stats.norm.isf(0.0125) * sum(errors)
    assert found.upper - found.value == pytest.approx(half, rel=0.03)
    assert found.value - found.lower == pytest.approx(half, rel=0.03)


@pytest.mark.parametrize(
    ("first", "second", "verdict"), [(0, 1, "worse"), (1, 0, "better"), (0, 0, "no_change_shown")]
)
def test_the_verdict_is_read_off_the_interval(two, first, second, verdict):
    """Worse where the whole interval is above 0, better where it is below; swapping the audits mirrors it."""
    found = headline(differences(two[first], two[second]))
    assert found.verdict == verdict
    back = headline(differences(two[second], two[first]))
    assert (back.lower, back.upper) == pytest.approx((-found.upper, -found.lower))
    word = {"worse": "rose", "better": "fell", "no_change_shown": "No change shown"}[verdict]
    assert word in found.sentence
    assert "95% confidence" in found.sentence


def test_a_sentence_promises_no_more_than_the_interval(two):
    """The least rise is rounded down, and what fits both audits is rounded up."""
    worse = headline(differences(*two))
    least = float(worse.sentence.split("at least ")[1].split(" ")[0])
    assert 0 < worse.lower - least < 0.001
    same = headline(differences(two[0], two[0]))
    fall, rise = (float(same.sentence.split(f"a {word} of ")[1].split(" ")[0]) for word in ("fall", "rise"))
    assert 0 <= fall + same.lower < 0.001
    assert 0 <= rise - same.upper < 0.001


def test_only_two_sided_rows_have_a_difference(two):
    """Every other row of the audits is there, without a number, and says why: two lower bounds bound nothing."""
    found = differences(*two)
    assert [item.name for item in found[:2]] == list(COMPARED)
    assert {item.name for item in found} == {item.name for result in two for item in result.estimates}
    for item in found[2:]:
        assert item.verdict is Change.NOT_COMPARABLE
        assert (item.value, item.lower, item.upper, item.confidence) == (None,) * 4
        assert item.sentence == f"Not comparable: {item.reason}."
    reasons = {item.name: item.reason for item in found}
    assert "two lower bounds" in reasons["epsilon_bound.clopper_pearson"]
    assert "two lower bounds" in reasons["tpr_at_fpr.0.01"]
    assert "two upper bounds" in reasons["bayes_security"]
    assert "point estimates" in reasons["epsilon_star.empirical"]
    assert "no value" in reasons["epsilon_bound.one_run"]


def test_the_headline_is_fixed_in_advance(two):
    """The advantage decides even where another row is more striking, and nothing decides where it is missing."""
    old, new = two
    quiet = with_estimate(new, "advantage", value=old.estimate("advantage").value)
    found = differences(old, quiet)
    assert row(old, quiet, "auc").verdict is Change.WORSE
    assert headline(found).verdict is Change.NO_CHANGE_SHOWN
    with pytest.raises(InputError, match="advantage"):
        headline(found[1:])


def test_the_lower_confidence_is_stated(rng):
    """Audits at 90% and 99% give a difference at 90%, as two audits at 90% of the same losses do."""
    losses = [
        auditor.Losses(member=rng.normal(-s, 1, 900), nonmember=rng.normal(0, 1, 900)) for s in (0.2, 0.9)
    ]
    low, high, second = (
        auditor.audit(each, confidence=level)
        for each, level in zip([*losses, losses[1]], (0.9, 0.99, 0.9), strict=True)
    )
    found, same = headline(differences(low, high)), headline(differences(low, second))
    assert found.confidence == 0.9
    assert (found.lower, found.upper) == pytest.approx((same.lower, same.upper))


def test_an_older_result_without_standard_errors_adds_up_both_errors(two):
    """Where the result does not keep the standard error, two 95% intervals give one at 90%."""
    old, new = (with_estimate(item, "auc", details={}) for item in two)
    found = row(old, new, "auc")
    ends = [(item.estimate("auc").lower, item.estimate("auc").upper) for item in (old, new)]
    assert found.confidence == pytest.approx(0.9)
    assert (found.lower, found.upper) == pytest.approx((ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda r: with_check(r, "label_shuffle", status=Status.FAIL),
            "validity check of the newer audit failed",
        ),
        (lambda r: with_check(r, "direction", status=Status.WARN), "looked the wrong way"),
        (lambda r: with_check(r, "ties", details={"all_equal": True}), "all losses are equal"),
        (
            lambda r: replace(r, data={**r.data, "members": "census"}),
            "a sample in the older audit and a census",
        ),
        (lambda r: replace(r, data={**r.data, "unit": "person (min loss)"}), "the units differ"),
        (
            lambda r: with_estimate(r, "advantage", value=None, details={"reason": "of that"}),
            "no value: of that",
        ),
        (lambda r: with_estimate(r, "advantage", upper=None), "an interval is missing"),
        (lambda r: with_estimate(r, "advantage", value=7.0), "outside"),
    ],
)
def test_audits_that_are_not_alike_are_not_compared(two, change, words):
    """A failed check, another direction, other units or members, a missing or absurd number: a reason and no number."""
    found = headline(differences(two[0], change(two[1])))
    assert found.verdict is Change.NOT_COMPARABLE
    assert words in found.reason
    assert found.value is None


def test_other_deltas_are_said(two):
    """Epsilons at different deltas say so with enough digits to tell them apart."""
    other = with_estimate(two[1], "epsilon_bound.clopper_pearson", delta=1.0001e-5)
    found = row(two[0], other, "epsilon_bound.clopper_pearson")
    assert "different deltas, 1e-5 and 1.0001e-5" in found.reason
    assert found.delta == (1e-5, 1.0001e-5)


def test_records_of_one_person_counted_apart_are_not_compared(rng):
    """Where an audit counted every record of a person as independent its interval is too narrow, and nothing rests on it."""
    person = (np.arange(400) // 4, 1000 + np.arange(400) // 4)
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(0, 1, 400), person=person)
    apart, joined = (
        auditor.audit(losses, persons=how) for how in (auditor.EachRecord(), auditor.OnePerPerson())
    )
    assert "too narrow" in headline(differences(apart, apart)).reason
    assert headline(differences(joined, joined)).verdict is Change.NO_CHANGE_SHOWN


def test_other_things_are_refused(two):
    """What is not the result of an audit is refused by name."""
    with pytest.raises(InputError, match="new must be"):
        differences(two[0], {"a": 1})
