"""Scores raise no false alarms, show more of a leak than the raw loss, and conformal thresholds hold their rate."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import ALPHA, at_most, runs_for

from auditor.core import Losses
from auditor.estimators import clopper_pearson
from auditor.scores import (
    Population,
    References,
    class_conditional,
    conformal_threshold,
    difficulty,
    fit_quantile_regression,
    hold_out,
    rmia,
)

CLASSES = 5


SCORES = ["difficulty", "rmia", "class_conditional", "fit_quantile_regression"]


def records(rng, n, leak=0.0):
    """Losses, reference losses, classes and features of n records that differ far more in difficulty than in noise.

    Loss (negative log-odds) = difficulty + noise, difficulty = -6, -4 .. 2 by class with a spread of .2 to 1; a member's
    loss is ``leak`` lower.
    """
    group = rng.integers(0, CLASSES, n)
    hard = 2.0 * group - 6 + (0.2 + 0.2 * group) * rng.normal(size=n)
    noise = 0.5 * rng.normal(size=n)
    return (
        hard + noise - leak,
        hard[:, None] + 0.5 * rng.normal(size=(n, 2)),
        group,
        hard + 0.3 * rng.normal(size=n),
    )


def world(rng, n, n_held, leak=0.0):
    """Audited losses, their references and features, and calibration records with theirs."""
    member, nonmember, held = records(rng, n, leak), records(rng, n), records(rng, n_held)
    losses = Losses(
        member=member[0], nonmember=nonmember[0], group=(member[2], nonmember[2]), scale="log-odds"
    )
    reference = References(member=member[1], nonmember=nonmember[1])
    population = Population(loss=held[0], reference=held[1], group=held[2], scale="log-odds")
    return losses, reference, population, (member[3], nonmember[3]), held[3]


def score(name, losses, reference, population, features, held, rng):
    """The losses after the score of this name, and the threshold that came with it, if any."""
    if name == "difficulty":
        return difficulty(reference)(losses), None
    if name == "rmia":
        return rmia(reference, population=population)(losses), None
    if name == "class_conditional":
        return class_conditional(population)(losses), None
    fitted = fit_quantile_regression(
        features, calibration=population, calibration_features=held, rate=0.1, rng=rng
    )
    return fitted.transform(losses), fitted.threshold


def bound(losses, rule=None):
    """The certified bound at delta 1e-5."""
    given = {} if rule is None else {"rule": rule}
    return clopper_pearson(losses, delta=1e-5, **given).value


@pytest.mark.parametrize("name", SCORES)
def test_no_false_alarms_without_a_leak(request, name):
    """Members and non-members alike: after each score the bound, and a rank-sum test, see a leak in at most 5% of the runs."""
    rng = np.random.default_rng(1)
    runs = runs_for(request, 20, 600) if name == "fit_quantile_regression" else runs_for(request, 300, 3000)
    alarms, alarms_at_threshold, unequal = 0, 0, 0
    for _ in range(runs):
        scored, threshold = score(name, *world(rng, 150, 120), rng)
        alarms += bound(scored) > 0
        alarms_at_threshold += threshold is not None and bound(scored, threshold) > 0
        # The bound is far from its level on so few records; the rank-sum test is at it.
        unequal += auc(scored) - 0.5 > stats.norm.isf(ALPHA) * math.sqrt(301 / 12) / 150
    assert at_most(alarms, runs)
    assert at_most(unequal, runs)
    assert at_most(alarms_at_threshold, runs)


@pytest.mark.parametrize("nudge", [0.0, 1e-9])
def test_calibrating_on_the_audited_records_is_refused_or_false(request, nudge):
    """The same simulation with the audited non-members as calibration is refused; smuggled in, it raises false alarms."""
    rng, runs, alarms = np.random.default_rng(2), runs_for(request, 40, 600), 0
    for _ in range(runs):
        group = np.repeat(np.arange(100), 4)
        losses = Losses(member=rng.normal(size=400), nonmember=rng.normal(size=400), group=(group, group))
        own = Population(loss=losses.nonmember + nudge, group=group)
        if not nudge:
            with pytest.raises(ValueError, match="must hold no audited record"):
                class_conditional(own, least=2)(losses)
            return
        alarms += bound(class_conditional(own, least=2)(losses)) > 0
    assert not at_most(alarms, runs)


@pytest.mark.parametrize("name", SCORES)
def test_every_score_shows_more_of_a_leak(request, name):
    """With a leak of two noise widths under difficulties six noise widths apart, each score certifies more than the loss."""
    rng = np.random.default_rng(3)
    runs = runs_for(request, 4, 100) if name == "fit_quantile_regression" else runs_for(request, 30, 300)
    raw, better, area = [], [], []
    for _ in range(runs):
        drawn = world(rng, 500, 600, leak=1.0)
        scored, _ = score(name, *drawn, rng)
        raw.append(bound(drawn[0]))
        better.append(bound(scored))
        area.append(auc(scored) - auc(drawn[0]))
    assert np.mean(better) > np.mean(raw) + 0.15
    assert np.mean(area) > 0.1


def auc(losses):
    """The probability that a member's loss is below a non-member's."""
    return float(np.mean(np.searchsorted(losses.sorted_member, losses.nonmember)) / losses.n_member)


def test_a_hold_out_and_a_score_hold_the_level_together(request):
    """Half of one audit's records calibrate its other half: no more false alarms than 5%."""
    rng, runs, alarms = np.random.default_rng(4), runs_for(request, 200, 2000), 0
    for _ in range(runs):
        audited, calibration = hold_out(world(rng, 300, 2)[0], rng=rng)
        alarms += bound(class_conditional(calibration)(audited)) > 0
    assert at_most(alarms, runs)


LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "five values": lambda rng, shape: rng.integers(0, 5, shape) + 0.0,
    "mostly one value": lambda rng, shape: np.where(rng.random(shape) < 0.9, 0.0, rng.random(shape)),
}


def rates(rng, law, *, n, rate, runs, rule):
    """The share of fresh non-members at or below the threshold that a rule sets on n others, run by run."""
    return np.array([
        np.mean(LAWS[law](rng, 400) <= rule(LAWS[law](rng, n), rate)) for _ in range(runs)
    ])  # fmt: skip


def conformal(scores, rate):
    """The threshold under test."""
    return conformal_threshold(scores, rate=rate).threshold


def too_many(found, rate):
    """Whether the mean rate is above the asked one by more than three standard errors."""
    return bool(found.mean() > rate + 3 * found.std() / math.sqrt(found.size))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "rate"), [(19, 0.05), (49, 0.1), (205, 0.01)])
def test_the_conformal_rate_holds_in_the_mean(request, law, n, rate):
    """For any law, ties or not, a fresh non-member is at or below the threshold at most at the rate asked for."""
    runs = runs_for(request, 1000, 20_000)
    assert not too_many(rates(np.random.default_rng(5), law, n=n, rate=rate, runs=runs, rule=conformal), rate)


def test_the_conformal_rate_is_used_up(request):
    """For a continuous law the mean rate is k/(n + 1) exactly: the threshold wastes nothing."""
    runs = runs_for(request, 2000, 20_000)
    found = rates(np.random.default_rng(6), "normal", n=49, rate=0.1, runs=runs, rule=conformal)
    assert found.mean() == pytest.approx(5 / 50, abs=4 * found.std() / math.sqrt(runs))


@pytest.mark.parametrize(
    ("law", "rule"),
    [
        ("normal", np.quantile),
        ("five values", lambda scores, rate: np.sort(scores)[math.floor(rate * (scores.size + 1)) - 1]),
    ],
    ids=["sample quantile", "k-th score itself"],
)
def test_the_conformal_simulation_can_fail(request, law, rule):
    """The sample quantile on 19 records, and the k-th score itself where there are ties, are caught by the same test."""
    runs = runs_for(request, 1000, 20_000)
    assert too_many(rates(np.random.default_rng(7), law, n=19, rate=0.1, runs=runs, rule=rule), 0.1)


def test_the_rate_of_a_fitted_threshold_holds_in_the_mean(request):
    """After a quantile regression too, fresh non-members are called members at most at the rate asked for."""
    rng, runs = np.random.default_rng(8), runs_for(request, 20, 400)
    found = []
    for _ in range(runs):
        scored, threshold = score("fit_quantile_regression", *world(rng, 400, 118), rng)
        # No leak: members are fresh non-members too.
        found.append(np.mean(np.concatenate([scored.member, scored.nonmember]) <= threshold.threshold))
    assert not too_many(np.array(found), 0.1)
