"""Limits beyond two binomial ones hold their level: one limit for a ratio, and random subsets of a finite training set.

The sizes here suit CI; ``--long`` repeats them at ten times the size.
"""

import math

import numpy as np
import pytest
from calibration import LAWS, set_epsilon
from simulation import ALPHA, at_most, runs_for, seldom

from auditor.core import (
    Census,
    ClopperPearson,
    FixedThreshold,
    Losses,
    RankGrid,
    Split,
    Subset,
)
from auditor.estimators import clopper_pearson, melding


@pytest.mark.parametrize(
    ("k", "n0", "n1", "epsilon", "delta"), [(3, 200, 3000, 1.5, 0.0), (0, 50, 2000, 1.0, 0.1)]
)
def test_the_level_of_one_rank_is_exact(request, k, n0, n1, epsilon, delta):
    """At the boundary the melded p-value of one rank is uniform: at most 5% fall below 0.05, and far more than 2.5%."""
    rng, runs = np.random.default_rng(4), runs_for(request, 4000, 40_000)
    rate = np.minimum(1.0, math.exp(epsilon) * rng.beta(k + 1, n0 - k, runs) + delta)
    hits = rng.binomial(n1, rate)
    seen, place = np.unique(hits, return_inverse=True)
    found = melding.p_value(epsilon, melding.Ranked(np.full(seen.size, k), n0, seen, n1), delta=delta)
    below = int(np.sum(found[place] <= ALPHA))
    assert at_most(below, runs)
    assert not at_most(below, runs, level=ALPHA / 2)


# --- A random subset of a finite training set ----------------------------------------------------------


def above(truth, training, law, n, nonmembers, **options):
    """Whether the bound of members drawn from a training set, beside fresh non-members, is above the truth."""

    def over(rng):
        losses = Losses(
            member=rng.choice(training, n, replace=False), nonmember=law.nonmember(rng, nonmembers)
        )
        return clopper_pearson(losses, **options).value > truth + 1e-9

    return over


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("rule", [RankGrid(interval=ClopperPearson()), None, Split()])
@pytest.mark.parametrize("times", [1.0, 1.3, 4.0])
def test_a_subset_bound_covers_its_training_set(simulated, law, rule, times):
    """Drawn without repetition from one training set, the bound stays below that set's own epsilon."""
    training, delta = law.member(np.random.default_rng(5), int(times * 120)), 0.02
    options = {
        "delta": delta,
        "coverage": Subset(of=training.size),
        "rule": rule or FixedThreshold(law.middle),
    }
    over = above(set_epsilon(training, law, delta=delta), training, law, 120, 240, **options)
    assert seldom(simulated(over, seed=6, runs=(60, 1500)))


def test_a_subset_at_its_least_favourable_threshold(simulated):
    """One threshold at a low confidence, where little is given away: hypergeometric limits keep it, a census does not."""
    training = LAWS[0].member(np.random.default_rng(6), 120)
    truth = max(math.log(np.mean(training <= 0) / 0.5), math.log(0.5 / np.mean(training > 0)), 0.0)
    found = [
        simulated(
            above(
                truth, training, LAWS[0], 60, 5000,
                delta=0.0, confidence=0.5, coverage=members, rule=FixedThreshold(0.0),
            ),
            seed=7,
            runs=(400, 5000),
        )
        for members in (Subset(of=120), Census())
    ]  # fmt: skip
    assert seldom(found[0], 0.5)
    assert found[1].sum() > found[0].sum()
