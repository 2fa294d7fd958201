"""Scores raise no false alarms, show more of a leak than the raw loss, and conformal thresholds hold their rate."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import ALPHA, LAWS, seldom

from auditor.core import ClopperPearson, Losses, RankGrid
from auditor.curves import count
from auditor.estimators import auc, clopper_pearson
from auditor.scores import (
    Gaussian,
    Population,
    References,
    StudentT,
    class_conditional,
    conformal_threshold,
    difficulty,
    fit_quantile_regression,
    hold_out,
    likelihood_ratio,
    rmia,
)

SLOW = "fit_quantile_regression"
SCORES = ["difficulty", "rmia", "class_conditional", SLOW]


def records(rng, n, leak=0.0):
    """Losses, reference losses, classes and features of n records that differ far more in difficulty than in noise.

    Loss (negative log-odds) = difficulty + noise, difficulty = -6, -4 .. 2 by class with a spread of .2 to 1; a member's
    loss is ``leak`` lower.
    """
    group = rng.integers(0, 5, n)
    hard = 2.0 * group - 6 + (0.2 + 0.2 * group) * rng.normal(size=n)
    noise = 0.5 * rng.normal(size=n)
    reference = hard[:, None] + 0.5 * rng.normal(size=(n, 2))
    return hard + noise - leak, reference, group, hard + 0.3 * rng.normal(size=n)


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
    if name == SLOW:
        given = {"calibration": population, "calibration_features": held, "rate": 0.1, "rng": rng}
        fitted = fit_quantile_regression(features, **given)
        return fitted.transform(losses), fitted.threshold
    steps = {
        "difficulty": lambda: difficulty(reference),
        "rmia": lambda: rmia(reference, population=population),
        "class_conditional": lambda: class_conditional(population),
    }
    return steps[name]()(losses), None


def bound(losses, **rule):
    """The certified bound at delta 1e-5, by a rule that is quick."""
    return clopper_pearson(losses, delta=1e-5, **{"rule": RankGrid(interval=ClopperPearson()), **rule}).value


def area(losses):
    """The probability that a member's loss is below a non-member's."""
    return auc(count(losses)).value


@pytest.mark.parametrize("name", SCORES)
def test_no_false_alarms_without_a_leak(simulated, name):
    """Members and non-members alike: after each score the bound, and a rank-sum test, see a leak in at most 5% of the runs."""

    def alarms(rng):
        scored, threshold = score(name, *world(rng, 150, 120), rng)
        # The bound is far from its level on so few records; the rank-sum test is at it.
        unequal = area(scored) - 0.5 > stats.norm.isf(ALPHA) * math.sqrt(301 / 12) / 150
        return bound(scored) > 0, unequal, threshold is not None and bound(scored, rule=threshold) > 0

    assert seldom(simulated(alarms, seed=1, runs=(20, 600) if name == SLOW else (200, 3000)))


@pytest.mark.parametrize("name", SCORES)
def test_every_score_shows_more_of_a_leak(simulated, name):
    """With a leak of two noise widths under difficulties six noise widths apart, each score certifies more than the loss."""

    def gained(rng):
        drawn = world(rng, 500, 600, leak=1.0)
        scored, _ = score(name, *drawn, rng)
        return bound(scored) - bound(drawn[0]), area(scored) - area(drawn[0])

    in_bound, in_area = simulated(gained, seed=3, runs=(4, 100) if name == SLOW else (30, 300)).mean(axis=0)
    assert in_bound > 0.15
    assert in_area > 0.1


def test_a_hold_out_and_a_score_hold_the_level_together(simulated):
    """Half of one audit's records calibrate its other half: no more false alarms than 5%."""

    def alarm(rng):
        audited, calibration = hold_out(world(rng, 300, 2)[0], rng=rng)
        return bound(class_conditional(calibration)(audited)) > 0

    assert seldom(simulated(alarm, seed=4, runs=(200, 2000)))


# --- Shadow models: the target is one of several models, each record in exactly half of them ---


def shadowed(rng, *, models, leak, of_target, n=400):
    """Losses of one model and those of the others as shadow models: difficulties and noises differ, members' are lower."""
    width, gain = np.exp(rng.normal(size=n)), leak * rng.exponential(size=n)
    inside = rng.random((n, models)).argsort(axis=1) < models // 2
    lower = gain[:, None] * np.where(np.arange(models) == 0, of_target, 1.0) * inside
    loss = 3 * rng.normal(size=(n, 1)) + width[:, None] * rng.normal(size=(n, models)) - lower
    ours, theirs = np.flatnonzero(inside[:, 0]), np.flatnonzero(~inside[:, 0])
    others = [(loss[rows, 1:], inside[rows, 1:]) for rows in (ours, theirs)]
    losses = Losses(loss[ours, 0], loss[theirs, 0], scale="log-odds")
    return losses, References(others[0][0], others[1][0], trained_on=(others[0][1], others[1][1]))


def by_shadows(rng, losses, shadows):
    """The losses after every score of shadow models."""
    held = 3 * rng.normal(size=(100, shadows.models + 1))
    population = Population(loss=held[:, 0], reference=held[:, 1:], scale="log-odds")
    own = [Gaussian(pooled=False)] * (shadows.models > 5)
    laws = [likelihood_ratio(shadows, law=law) for law in (StudentT(), Gaussian(), *own)]
    return [step(losses) for step in (*laws, rmia(shadows, population=population))]


def apart(losses):
    """Whether a two-sided rank-sum test at 5% tells the groups apart."""
    n1, n0 = losses.n_member, losses.n_nonmember
    return abs(area(losses) - 0.5) > stats.norm.isf(ALPHA / 2) * math.sqrt((n1 + n0 + 1) / (12 * n1 * n0))


@pytest.mark.parametrize("leak", [0.0, 1.0])
def test_shadow_models_raise_no_false_alarms(simulated, leak):
    """A target that leaks nothing among shadow models that leak, or not: no score finds more than chance."""

    def alarms(rng):
        drawn = shadowed(rng, models=8, leak=leak, of_target=0.0)
        return [(bound(scored) > 0, apart(scored)) for scored in by_shadows(rng, *drawn)]

    assert seldom(simulated(alarms, seed=12, runs=(150, 3000)).reshape(-1, 8))


def test_shadow_models_show_more_of_a_leak(simulated):
    """Each ratio beats the loss; with three or four models of a kind the Student-t law beats both normal ones, too."""

    def areas(rng):
        drawn = shadowed(rng, models=8, leak=1.0, of_target=1.0, n=1000)
        return [area(losses) for losses in (drawn[0], *by_shadows(rng, *drawn))]

    loss, student, pooled, own, _ = simulated(areas, seed=11, runs=(20, 200)).mean(axis=0)
    assert min(student, pooled, own) > loss + 0.05
    assert student > max(pooled, own) + 0.005


def conformal(scores, rate):
    """The threshold under test."""
    return conformal_threshold(scores, rate=rate).threshold


def caught(law, n, rate, rule=conformal):
    """The share of fresh non-members at or below the threshold that a rule sets on n others."""
    return lambda rng: np.mean(LAWS[law](rng, 400) <= rule(LAWS[law](rng, n), rate))


def too_many(found, rate):
    """Whether the mean rate is above the requested one by more than three standard errors."""
    return bool(found.mean() > rate + 3 * found.std() / math.sqrt(found.size))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "rate"), [(19, 0.05), (205, 0.01)])
def test_the_conformal_rate_holds_in_the_mean(simulated, law, n, rate):
    """For any law, ties or not, a fresh non-member is at or below the threshold at most at the rate requested."""
    assert not too_many(simulated(caught(law, n, rate), seed=5, runs=(1000, 20_000)), rate)


def test_the_conformal_rate_is_used_up(simulated):
    """For a continuous law the mean rate is k/(n + 1) exactly: the threshold wastes nothing."""
    found = simulated(caught("normal", 49, 0.1), seed=6, runs=(2000, 20_000))
    assert found.mean() == pytest.approx(5 / 50, abs=4 * found.std() / math.sqrt(found.size))


def test_the_rate_of_a_fitted_threshold_holds_in_the_mean(simulated):
    """After a quantile regression too, fresh non-members are called members at most at the rate requested."""

    def share(rng):
        scored, threshold = score(SLOW, *world(rng, 400, 118), rng)
        # No leak: members are fresh non-members too.
        return np.mean(np.concatenate([scored.member, scored.nonmember]) <= threshold.threshold)

    assert not too_many(simulated(share, seed=8, runs=(20, 400)), 0.1)
