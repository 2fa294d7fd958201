"""Differences of two audits: hand-computed intervals, and the rows that decide."""

from dataclasses import replace

import numpy as np
import pytest
from report.conftest import changed
from scipy import stats

import auditor
from auditor.comparison import Change, differences, headline
from auditor.core import InputError, Status
from auditor.estimators import gap_limits


def audited(rng, shift, n=3000, **options):
    """An audit of normal losses whose true advantage is 2 Phi(shift/2) - 1, with every digit."""
    losses = auditor.Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n // 2))
    return auditor.audit(losses, **{"delta": 1e-5, "disclosure": "insiders", **options})


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
    checks = (replace(item, **changes) if item.name == name else item for item in result.checks)
    return replace(result, checks=tuple(checks))


def with_data(result, key, value):
    """The same result with other data."""
    return replace(result, data={**result.data, key: value})


@pytest.mark.parametrize("together", [1, 8])
@pytest.mark.parametrize("members", ["sample", "census"])
def test_the_interval_of_the_advantage_is_that_of_both_at_half_the_error(two, together, members):
    """Its ends are those of both audits' own limits at a half of the error of one row, of the sizes and the values alone.

    There are two rows, so of 5% each row has 2.5%, each audit half of it, and with eight comparisons an eighth of that.
    In a census the members count as draws too.
    """
    old, new = (replace(item, data={**item.data, "members": members}) for item in two)
    found = differences(old, new, together=together)[0]
    error = 0.05 / 2 / (1 + together)
    values = [item.estimate("advantage").value for item in two]
    old, new = (gap_limits(value, n_member=3000, n_nonmember=1500, alpha=error) for value in values)
    assert found.value == pytest.approx(values[1] - values[0])
    assert (found.lower, found.upper) == pytest.approx((new[0] - old[1], new[1] - old[0]))
    assert (found.confidence, found.verdict) == (0.95, Change.WORSE)


def test_the_interval_of_the_auc_takes_the_normal_quantile_at_half_the_error(two):
    """Away from 0 and 1 each end is off by about z at 0.625% a side, 2.50, times the sum of both standard errors."""
    found = row(*two, "auc")
    errors = [item.estimate("auc").details["standard_error"] for item in two]
    half = stats.norm.isf(0.05 / 2 / 2 / 2) * sum(errors)
    assert found.upper - found.value == pytest.approx(half, rel=0.03)
    assert found.value - found.lower == pytest.approx(half, rel=0.03)


@pytest.mark.parametrize(
    ("first", "second", "verdict"), [(0, 1, "worse"), (1, 0, "better"), (0, 0, "no_change_shown")]
)
def test_the_verdict_is_read_off_the_interval(two, first, second, verdict):
    """Worse where the whole interval is above 0, better where it is below; swapping the audits mirrors it."""
    found = headline(differences(two[first], two[second]))
    assert found.verdict == verdict
    ahead, back = (row(*pair, "advantage") for pair in ((two[first], two[second]), (two[second], two[first])))
    assert (back.lower, back.upper) == pytest.approx((-ahead.upper, -ahead.lower))
    word = {"worse": "rose", "better": "fell", "no_change_shown": "No change shown"}[verdict]
    assert word in found.sentence
    assert "95% confidence" in found.sentence


def test_a_sentence_promises_no_more_than_the_interval(two):
    """The least rise is rounded down, and what fits both audits is rounded up."""
    worse = row(*two, "advantage")
    least = float(worse.sentence.split("at least ")[1].split(" ")[0])
    assert 0 < worse.lower - least < 0.001
    same = row(two[0], two[0], "advantage")
    fall, rise = (float(same.sentence.split(f"a {word} of ")[1].split(" ")[0]) for word in ("fall", "rise"))
    assert 0 <= fall + same.lower < 0.001
    assert 0 <= rise - same.upper < 0.001


def with_row(found, name, verdict):
    """The same differences with another verdict of one row."""
    return [replace(item, verdict=verdict) if item.name == name else item for item in found]


@pytest.mark.parametrize(
    ("advantage", "auc", "expected"),
    [
        (Change.WORSE, Change.NO_CHANGE_SHOWN, Change.WORSE),
        (Change.NO_CHANGE_SHOWN, Change.WORSE, Change.WORSE),
        (Change.BETTER, Change.WORSE, Change.WORSE),
        (Change.NO_CHANGE_SHOWN, Change.BETTER, Change.BETTER),
        (Change.NO_CHANGE_SHOWN, Change.NO_CHANGE_SHOWN, Change.NO_CHANGE_SHOWN),
    ],
)
def test_both_rows_decide(two, advantage, auc, expected):
    """Worse where either row is, better where one is and neither is worse; the sentence is that of the rows that say so."""
    found = with_row(with_row(differences(*two), "advantage", advantage), "auc", auc)
    decided = headline(found)
    assert decided.verdict is expected
    said = [item.sentence for item in found[:2] if item.verdict is expected]
    assert decided.sentence.startswith(said[0])
    assert decided.confidence == 0.95


def test_where_one_row_is_not_comparable_the_other_can_only_say_worse(two):
    """With one row not comparable the other can say that it is worse, and nothing else."""
    other = differences(two[1], changed(two[0], "advantage", upper=None))
    assert other[1].verdict is Change.BETTER
    assert headline(other).verdict is Change.NOT_COMPARABLE
    alone = differences(two[0], changed(two[1], "advantage", upper=None))
    assert alone[0].verdict is Change.NOT_COMPARABLE
    assert headline(alone).verdict is Change.WORSE
    assert headline(alone).sentence == alone[1].sentence


def test_the_lower_confidence_is_stated(rng):
    """Audits at 90% and 99% give a difference at 90%, as two audits at 90% of the same losses do."""
    losses = [
        auditor.Losses(member=rng.normal(-s, 1, 900), nonmember=rng.normal(0, 1, 900)) for s in (0.2, 0.9)
    ]
    low, high, second = (
        auditor.audit(each, confidence=level)
        for each, level in zip([*losses, losses[1]], (0.9, 0.99, 0.9), strict=True)
    )
    found, same = row(low, high, "advantage"), row(low, second, "advantage")
    assert found.confidence == 0.9
    assert (found.lower, found.upper) == pytest.approx((same.lower, same.upper))


@pytest.mark.parametrize(
    ("part", "name", "changes", "words"),
    [
        (with_check, "label_shuffle", {"status": Status.FAIL}, "validity check of the newer audit failed"),
        (with_check, "direction", {"status": Status.WARN}, "has the wrong sign"),
        (with_check, "ties", {"details": {"all_equal": True}}, "all losses are equal"),
        (with_data, "members", "census", "a sample in the older audit and a census"),
        (with_data, "unit", "person (min loss)", "the units differ"),
        (changed, "advantage", {"value": None, "details": {"reason": "of that"}}, "no value: of that"),
        (changed, "advantage", {"upper": None}, "an interval is missing"),
        (changed, "advantage", {"value": 7.0}, "outside"),
    ],
)
def test_audits_that_are_not_alike_are_not_compared(two, part, name, changes, words):
    """A failed check, another direction, other units or members, a missing or absurd number: a reason and no number."""
    other = part(two[1], name, changes) if part is with_data else part(two[1], name, **changes)
    found = row(two[0], other, "advantage")
    assert found.verdict is Change.NOT_COMPARABLE
    assert words in found.reason
    assert found.value is None


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
    """A file that is not the result of an audit is refused by name."""
    with pytest.raises(InputError, match="new must be"):
        differences(two[0], {"a": 1})


def test_a_result_that_does_not_keep_what_its_interval_rests_on_is_not_compared(two):
    """Without the sizes of the groups, or the standard error of the AUC, no interval is made up."""
    assert "does not keep" in row(two[0], changed(two[1], "auc", details={}), "auc").reason
    assert "does not keep" in row(two[0], with_data(two[1], "n_member", None), "advantage").reason
