"""The bound by estimated odds of membership: covered where features explain the groups, and by its kappa where they do not."""

import numpy as np
import pytest
from scipy import special
from simulation import evidence_of, seldom

from auditor import Features, Losses, Propensity
from auditor.core import AnyGuesses, BernoulliSplit, PerGroup
from auditor.estimators import odds_error, one_run_bound

SIZE = 2000


def groups(rng, *, epsilon, hidden=0.0, size=SIZE):
    """Records whose features, and something hidden, decide the odds of membership and move the losses.

    Membership is given by randomised response: adding or removing a record is stated with odds of at most e^epsilon.
    """
    features, unseen = rng.normal(0, 1, (size, 4)), rng.normal(0, 1, size)
    odds = 0.8 * features[:, 0] + 0.4 * (features[:, 1] ** 2 - 1) + hidden * unseen
    coin = rng.random(size) < special.expit(odds)
    says_out = coin == (rng.random(size) > special.expit(epsilon))
    loss = says_out - 0.4 * features[:, 0] - 0.4 * np.sign(hidden) * unseen + 0.3 * rng.random(size)
    return loss, coin, features, odds


def estimated(rng, loss, coin, features):
    """The bound of `Propensity`."""
    split = Propensity(Features(features[coin], features[~coin]))
    losses = Losses(loss[coin], loss[~coin])
    seed = int(rng.integers(2**31))
    found = evidence_of(losses, "one run, estimated odds", split=split, seed=seed).estimates
    return next(row for row in found if row.name == "epsilon_bound.propensity")


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
def test_what_features_explain_raises_no_alarm(simulated, epsilon):
    """Groups that differ in features that are given: no bound above the truth, of nothing and of randomised response."""

    def over(rng):
        loss, coin, features, _ = groups(rng, epsilon=epsilon)
        return estimated(rng, loss, coin, features).value > epsilon

    assert seldom(simulated(over, seed=61, runs=(8, 1000)))


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 1.0), (0.5, 1.0), (-0.2, 0.6)])
def test_the_estimated_error_covers_the_true_one(simulated, intercept, slope):
    """Where the true odds lie on a line in the estimated ones, their largest error is below its limit in 95% of the audits."""

    def missed(rng):
        estimated_log_odds = rng.uniform(-1.5, 1.5, 500)
        truth = intercept + slope * estimated_log_odds
        coin, chance = rng.random(500) < special.expit(truth), special.expit(estimated_log_odds)
        error = odds_error(PerGroup(chance[coin], chance[~coin]), confidence=0.95)
        return np.abs(truth - estimated_log_odds).max() > error["upper"]

    assert seldom(simulated(missed, seed=65, runs=(200, 4000)))


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("kappa", [0.25, 0.7])
def test_odds_that_are_off_by_kappa_are_covered_by_the_bound_less_kappa(simulated, epsilon, kappa):
    """Every record's odds are off by e^kappa, this way or that, as the score knows: the bound less kappa stays below the truth."""

    def over(rng):
        odds, side = rng.normal(0, 0.8, SIZE), rng.choice([-1.0, 1.0], SIZE)
        coin = rng.random(SIZE) < special.expit(odds + kappa * side)
        says_out = coin == (rng.random(SIZE) > special.expit(epsilon))
        score = says_out * np.sign(epsilon) - 0.9 * side + 0.1 * rng.random(SIZE)
        chance = special.expit(odds)
        losses = Losses(score[coin], score[~coin], inclusion=(chance[coin], chance[~coin]))
        found = one_run_bound(losses, split=BernoulliSplit(), delta=0.0, rng=rng, test=AnyGuesses())
        value = found.value or 0.0
        return value - kappa > epsilon, value > epsilon

    found = simulated(over, seed=63, runs=(8, 3000))
    assert seldom(found[:, 0])
    if not epsilon:  # and it is kappa that is needed
        assert found[:, 1].mean() > 0.9


def test_power_beside_the_clean_audit(simulated):
    """Half of the records and a union over the sets cost something: at epsilon 2 about a quarter of what fair coins show."""

    def bounds(rng):
        loss, coin, features, _ = groups(rng, epsilon=2.0)
        fair = rng.random(SIZE) < 0.5
        says_out = fair == (rng.random(SIZE) > special.expit(2.0))
        told = says_out + 0.3 * rng.random(SIZE)
        clean = one_run_bound(
            Losses(told[fair], told[~fair]), split=BernoulliSplit(), delta=0.0, rng=rng, test=AnyGuesses()
        )
        return estimated(rng, loss, coin, features).value, clean.value

    own, clean = simulated(bounds, seed=64, runs=(6, 100)).mean(axis=0)
    assert 0.7 * clean < own < clean
