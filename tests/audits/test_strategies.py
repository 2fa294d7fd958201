"""Strategies in the privacy-utility plane: averages, ranges, marks, and what is left out."""

from dataclasses import replace

import numpy as np
import pytest

from auditor import InputError
from auditor.comparison import (
    MIXED,
    compare_audits,
    leakage,
    measured,
    ranked,
    read_runs,
    why_not_ranked,
    with_table,
)
from auditor.comparison.strategies import strategies
from auditor.core import Adjacency
from auditor.estimators import gap_limits
from auditor.results import Check, Status, Subject

STAR = "epsilon_star.gaussian"


def placed(results, measure=STAR):
    """The strategies of some results, ranked."""
    readings = measured(read_runs(results), measure=measure)
    return ranked(strategies(readings), readings, measure=measure)


def test_a_strategy_is_the_mean_and_the_range_of_its_models(six):
    """Each strategy has the mean, least and most of the values and of the utilities of its own results."""
    found = placed(six)
    for item, members in zip(found, ([0], [1, 2], [3, 4, 5]), strict=True):
        values = [six[place].estimate(STAR).value for place in members]
        useful = [six[place].data["utility"]["value"] for place in members]
        for spread, expected in ((item.measure, values), (item.utility, useful)):
            assert spread.mean == pytest.approx(np.mean(expected))
            assert (spread.least, spread.most) == (min(expected), max(expected))
        assert item.runs == tuple(place + 1 for place in members)
    assert [item.name for item in found] == ["private", "plain", "overfitted"]
    assert [item.audits for item in found] == [1, 2, 3]


def test_the_mean_of_the_largest_numbers_is_finite(trained, valued):
    """Two values near the largest double have their mean."""
    results = [valued(trained(0.1, seed, "s", 0.5), value=1.7e308) for seed in (1, 2)]
    assert placed(results)[0].measure.mean == pytest.approx(1.7e308)


def test_a_result_without_a_strategy_stands_for_itself(audited):
    """Two results of one model's name and no strategy are two strategies."""
    found = placed([audited(0.1, seed, model="m") for seed in (1, 2)])
    assert [(item.name, item.runs) for item in found] == [("m", (1,)), ("m", (2,))]
    assert all(item.utility is None and not item.on_frontier for item in found)


def test_with_an_error_rate_the_frontier_is_the_mirror_image(trained, valued):
    """Of a utility of which less is better, what has more of it at the same leakage is off the frontier."""
    points = [(0.0, 1.0), (1.0, 0.2), (1.0, 0.5)]
    results = [valued(trained(0.1, place, f"s{place}", y), value=x) for place, (x, y) in enumerate(points)]
    for result in results:
        result.data["utility"]["higher_is_better"] = False
    assert [item.on_frontier for item in placed(results)] == [True, True, False]


def test_a_larger_bayes_security_is_better(trained, valued):
    """Of Bayes security the larger value gives less away, so the frontier turns round."""
    assert leakage(0.9, measure="bayes_security") < leakage(0.8, measure="bayes_security")
    results = [
        valued(trained(0.1, place, f"s{place}", y), "bayes_security", value=x)
        for place, (x, y) in enumerate([(0.9, 0.5), (0.8, 0.5), (0.7, 0.9)])
    ]
    assert [item.on_frontier for item in placed(results, "bayes_security")] == [True, False, True]


def test_a_failed_validity_check_leaves_a_result_out(six, failed):
    """A result with a failed validity check is in no average and on no frontier, and the reason names the check."""
    results = [*six[:5], failed(six[5])]
    readings = measured(read_runs(results), measure=STAR)
    assert [item.reason is None for item in readings] == [True] * 5 + [False]
    assert "duplicates" in readings[5].reason
    found = strategies(readings)[2]
    assert (found.audits, found.runs) == (3, (4, 5))
    assert found.measure.mean == pytest.approx(np.mean([r.estimate(STAR).value for r in six[3:5]]))
    alone = placed([failed(six[0]), *six[1:]])[0]
    assert alone.measure is None
    assert not alone.on_frontier


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"value": None, "details": {"reason": "all losses are equal"}}, "all losses are equal"),
        ({"value": None, "details": {}}, "could not compute"),
        ({"value": float("inf")}, "infinite"),
    ],
)
def test_a_result_without_a_finite_value_is_left_out(six, valued, changed, words):
    """A strategy without a finite value has no place, and gives the reason."""
    readings = measured(read_runs([valued(six[0], **changed), six[1]]), measure=STAR)
    assert words in readings[0].reason
    assert strategies(readings)[0].measure is None


def test_averages_are_over_the_same_models(trained, audited):
    """Where only some models of a strategy have a utility, both averages are over those."""
    results = [trained(0.2, 1, "s", 0.7), audited(0.9, 2, strategy="s"), trained(0.1, 3, "t", 0.5)]
    found = placed(results)[0]
    assert (found.runs, found.audits) == ((1,), 2)
    assert found.measure.most == results[0].estimate(STAR).value


def test_marks_name_what_is_not_on_one_scale(trained, valued):
    """A rejected fit, another delta than most and another unit are marked, and nothing else is."""
    results = [trained(0.2, seed, f"s{seed}", 0.7) for seed in (1, 2, 3)]
    other = trained(0.2, 4, "s4", 0.7, delta=1e-3)
    people = trained(0.2, 5, "s5", 0.7, unit="person", combined="mean")
    rejected = valued(trained(0.2, 6, "s6", 0.7), details={"fit": {"rejected": True}})
    plain = [valued(item, details={}) for item in (*results, other, people)]
    readings = measured(read_runs([*plain, rejected]), measure=STAR)
    assert [item.marks for item in readings] == [
        (), (), (), ("delta 0.001",), ("counted by person",), ("fit rejected",),
    ]  # fmt: skip
    pair = measured(read_runs([results[0], other]), measure="epsilon_bound.clopper_pearson")
    assert [item.marks for item in pair] == [("delta 1e-5",), ("delta 0.001",)]  # neither is the usual one


@pytest.mark.parametrize(
    ("name", "status", "details", "words"),
    [
        ("ties", "warn", {"all_equal": True}, "all losses are equal"),
        ("direction", "warn", {}, "members have the higher losses"),
    ],
)
def test_a_blind_audit_is_left_out(six, name, status, details, words):
    """An audit that could not have shown a leak has no place, whatever its number; with sound checks it has one."""
    check = Check(name, Status(status), "", details)
    blind = replace(six[0], checks=(*(item for item in six[0].checks if item.name != name), check))
    readings = measured(read_runs([blind, *six[1:]]), measure=STAR)
    assert words in readings[0].reason
    assert [item.reason for item in readings[1:]] == [None] * 5
    assert strategies(readings)[0].measure is None
    assert measured(read_runs(six), measure=STAR)[0].reason is None


def unranked(results, measure=STAR):
    """Why the strategies of some results are not ranked."""
    readings = measured(read_runs(results), measure=measure)
    placed = [item for item in strategies(readings) if item.placed]
    return why_not_ranked(placed, readings, measure=measure)


def test_one_scale_is_ranked_and_several_are_not(trained, valued):
    """Values at one delta, of one adjacency and one unit are ranked; those that differ in one of them are not."""
    results = [trained(0.2, seed, f"s{seed}", 0.7) for seed in (1, 2, 3)]
    assert unranked(results) is None
    at_other = [*results, trained(0.2, 4, "s4", 0.7, delta=1e-3)]
    assert "different deltas (1e-5 and 0.001)" in unranked(at_other)
    assert unranked(at_other, "auc") is None  # which has no delta
    people = [*results, trained(0.2, 5, "s5", 0.7, unit="person", combined="mean")]
    assert "count by record and others by person" in unranked(people)
    near = [
        valued(item, subject=Subject.MECHANISM, adjacency=kind)
        for item, kind in zip(results, (*[Adjacency.REPLACE_ONE] * 2, Adjacency.ADD_REMOVE), strict=True)
    ]
    assert "different adjacencies (add-remove and replace-one)" in unranked(near)
    assert unranked(near[:2]) is None
    rounded = [*results, valued(trained(0.2, 7, "s7", 0.7), delta=1e-5 * (1 + 1e-14))]
    assert unranked(rounded) is None


def test_models_on_two_scales_have_no_mean(trained):
    """A strategy whose models were audited at two deltas has no mean and says so; the others are ranked."""
    results = [
        trained(0.2, 1, "a", 0.7),
        trained(0.2, 2, "a", 0.7, delta=1e-3),
        trained(0.2, 3, "b", 0.7),
        trained(0.4, 4, "c", 0.8),
    ]
    found = placed(results)
    assert [item.measure is None for item in found] == [True, False, False]
    assert MIXED in found[0].marks
    assert unranked(results) is None


def test_lower_bounds_are_never_ranked(six):
    """A small certified bound may only mean few records, so that no strategy is called better by it."""
    name = "epsilon_bound.clopper_pearson"
    tops = [result.estimate(name).details["ceiling"] for result in six]
    readings = measured(read_runs(six), measure=name)
    assert "the lowest bound is not the lowest leakage" in unranked(six, name)
    for item, places in zip(strategies(readings), ([0], [1, 2], [3, 4, 5]), strict=True):
        mine = [tops[place] for place in places]
        assert (item.ceiling.least, item.ceiling.most) == (min(mine), max(mine))
    assert all(item.ceiling is None for item in placed(six))


def test_a_strategy_of_two_categories_is_refused(six):
    """Two stated categories of one strategy are one sentence with both."""
    runs = read_runs(six)
    runs = with_table(runs, {"result": [2, 3], "category": ["a", "b"]})
    with pytest.raises(InputError, match="strategy 'plain' must be of one category, got 'a' and 'b'"):
        strategies(measured(runs, measure=STAR))


def test_categories_come_from_the_claim_where_none_is_stated(trained):
    """Without a stated category, strategies whose audits all had a claim stand apart."""
    results = [
        trained(0.2, 1, "a", 0.5, claim="epsilon 1"),
        trained(0.2, 2, "b", 0.5),
        trained(0.3, 3, "a", 0.5),
    ]
    assert [item.category for item in placed(results)] == ["Audited without a claim"] * 2
    results[2].data["claim"] = "epsilon 1"
    assert [item.category for item in placed(results)] == ["Audited with a claim", "Audited without a claim"]


def test_the_same_losses_are_one_instance(trained):
    """Two audits of the same losses cannot both count as models of one strategy."""
    results = [trained(0.2, 1, "a", 0.5), trained(0.2, 1, "a", 0.5, delta=1e-3)]
    with pytest.raises(InputError, match="results 1 and 2 of strategy 'a' are audits of the same losses"):
        placed(results)


def test_intervals_of_all_audits_hold_at_once(six, valued):
    """Six audits and two quantities share the error; a strategy's ends are the outermost of its models."""
    found = compare_audits(six)
    ends = [
        gap_limits(item.estimate("advantage").value, n_member=600, n_nonmember=600, alpha=0.05 / 2 / 6)
        for item in six
    ]
    slack = np.array([item.ends for item in found.measurements] - np.array(ends)) * [-1, 1]
    assert ((slack >= 0) & (slack < 0.002)).all()  # of values and ends with three digits
    for item, places in zip(found.strategies, ([0], [1, 2], [3, 4, 5]), strict=True):
        assert item.lower == min(found.measurements[place].ends[0] for place in places)
        assert item.upper == max(found.measurements[place].ends[1] for place in places)
        assert item.confidence == 0.95
    private, _, over = found.strategies
    assert over.above(private)
    assert not private.above(over)
    odd = valued(six[0], "advantage", value=1.5)
    assert compare_audits([odd, *six[1:]]).strategies[0].lower is None


def test_a_census_and_a_sample_are_not_on_one_scale(trained):
    """The advantage on a whole training set and on a sample of one are about different things."""
    results = [trained(0.2, 1, "a", 0.7), trained(0.9, 2, "b", 0.8, members="census")]
    found = compare_audits(results)
    assert "a census in some audits and a sample in others" in found.no_order
    assert [item.marks for item in found.measurements] == [
        ("members are a sample",),
        ("members are a census",),
    ]
