"""Strategies in the privacy-utility plane: averages, ranges, marks, and what is left out."""

import numpy as np
import pytest

from auditor import InputError
from auditor.audits.runs import read_runs
from auditor.audits.strategies import leakage, more_is_worse, read, strategies

STAR = "epsilon_star.gaussian"


def placed(results, measure=STAR):
    """The strategies of some results."""
    return strategies(read(read_runs(results), measure=measure), measure=measure)


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
    assert [item.given for item in found] == [1, 2, 3]


def test_the_mean_of_the_largest_numbers_is_finite(trained, valued):
    """Two values near the largest double have their mean."""
    results = [valued(trained(0.1, seed, "s", 0.5), value=1.7e308) for seed in (1, 2)]
    assert placed(results)[0].measure.mean == pytest.approx(1.7e308)


def test_a_result_without_a_strategy_stands_for_itself(audited):
    """Two results of one model's name and no strategy are two strategies."""
    found = placed([audited(0.1, seed, model="m") for seed in (1, 2)])
    assert [(item.name, item.runs) for item in found] == [("m", (1,)), ("m", (2,))]
    assert all(item.utility is None and not item.on_frontier for item in found)


def made(trained, valued, points):
    """One result for each point (value, utility)."""
    return [valued(trained(0.1, place, f"s{place}", y), value=x) for place, (x, y) in enumerate(points)]


def test_the_frontier_is_the_convex_hull(trained, valued):
    """By hand: of a triangle above a point, the corners are on the frontier, and a point below the line is not."""
    points = [(0.0, 0.0), (1.0, 0.8), (2.0, 1.0), (1.0, 0.5), (0.5, 0.3), (3.0, 0.9)]
    assert [item.on_frontier for item in placed(made(trained, valued, points))] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_dominated_strategy_above_no_line_is_left_off(trained, valued):
    """By hand: (0.5, 0.3) lies above no other point, but below the line from (0, 0) to (1, 0.8), so a mix beats it."""
    points = [(0.0, 0.0), (0.5, 0.3), (1.0, 0.8)]
    assert [item.on_frontier for item in placed(made(trained, valued, points))] == [True, False, True]


def test_a_smaller_utility_can_be_better(trained, valued):
    """With an error rate as the utility the frontier is the mirror image."""
    points = [(0.0, 1.0), (1.0, 0.2), (1.0, 0.5)]
    results = made(trained, valued, points)
    for result in results:
        result.data["utility"]["higher_is_better"] = False
    assert [item.on_frontier for item in placed(results)] == [True, True, False]


def test_a_larger_bayes_security_is_better(trained, valued):
    """Of Bayes security the larger value gives less away, so the frontier turns round."""
    assert not more_is_worse("bayes_security")
    assert leakage(0.9, measure="bayes_security") < leakage(0.8, measure="bayes_security")
    results = [
        valued(trained(0.1, place, f"s{place}", y), "bayes_security", value=x)
        for place, (x, y) in enumerate([(0.9, 0.5), (0.8, 0.5), (0.7, 0.9)])
    ]
    assert [item.on_frontier for item in placed(results, "bayes_security")] == [True, False, True]


def test_a_failed_validity_check_leaves_a_result_out(six, failed):
    """A result with a failed validity check is in no average and on no frontier, and the reason names the check."""
    results = [*six[:5], failed(six[5])]
    readings = read(read_runs(results), measure=STAR)
    assert [item.reason is None for item in readings] == [True] * 5 + [False]
    assert "duplicates" in readings[5].reason
    found = strategies(readings, measure=STAR)[2]
    assert (found.given, found.runs) == (3, (4, 5))
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
    """What has no finite value has no place, and says why."""
    readings = read(read_runs([valued(six[0], **changed), six[1]]), measure=STAR)
    assert words in readings[0].reason
    assert strategies(readings, measure=STAR)[0].measure is None


def test_averages_are_over_the_same_models(trained, audited):
    """Where only some models of a strategy have a utility, both averages are over those."""
    results = [trained(0.2, 1, "s", 0.7), audited(0.9, 2, strategy="s"), trained(0.1, 3, "t", 0.5)]
    found = placed(results)[0]
    assert (found.runs, found.given) == ((1,), 2)
    assert found.measure.most == results[0].estimate(STAR).value


def test_marks_name_what_is_not_on_one_scale(trained, valued):
    """A rejected fit, another delta than most and another unit are marked, and nothing else is."""
    results = [trained(0.2, seed, f"s{seed}", 0.7) for seed in (1, 2, 3)]
    other = trained(0.2, 4, "s4", 0.7, delta=1e-3)
    people = trained(0.2, 5, "s5", 0.7, unit="person (mean)")
    rejected = valued(trained(0.2, 6, "s6", 0.7), details={"fit": {"rejected": True}})
    plain = [valued(item, details={}) for item in (*results, other, people)]
    readings = read(read_runs([*plain, rejected]), measure=STAR)
    assert [item.marks for item in readings] == [
        (), (), (), ("delta 0.001",), ("counted by person",), ("fit rejected",),
    ]  # fmt: skip


def test_a_strategy_of_two_categories_is_refused(six):
    """Two stated categories of one strategy are one sentence with both."""
    runs = read_runs(six)
    from auditor.audits.about import with_table

    runs = with_table(runs, {"result": [2, 3], "category": ["a", "b"]})
    with pytest.raises(InputError, match="strategy 'plain' must be of one category, got 'a' and 'b'"):
        strategies(read(runs, measure=STAR), measure=STAR)


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
