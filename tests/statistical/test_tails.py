"""The lower limit of Epsilon*, on losses that are normal and on losses that no test of some hundred tells from normal ones."""

import math

import numpy as np
import pytest
from scipy import stats
from simulation import at_most

from auditor.core import Losses
from auditor.curves import fit_gaussian_pair, published
from auditor.estimators import parametric

N = 400
DELTA = 1 / (N * math.log(N))
TAILS = {"normal": stats.norm, "logistic": stats.logistic, "t8": stats.t(8), "Laplace": stats.laplace}


def true_value(law, spread):
    """Epsilon* of members one lower than the others, clipped at delta, from the rates at a dense grid of thresholds."""
    q = np.linspace(-30, 30, 60_001)
    rates = np.array([f(at / spread) for f in (law.cdf, law.sf) for at in (q + 1, q)])
    tpr, fpr, fnr, tnr = rates[:, rates.min(axis=0) >= DELTA]
    ratios = ((tpr - DELTA) / fpr, (tnr - DELTA) / fnr, (fnr - DELTA) / tnr, (fpr - DELTA) / tpr)
    return math.log(max(1.0, *(float(ratio.max()) for ratio in ratios)))


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("tails", TAILS)
def test_the_limit_is_seldom_above_the_truth(simulated, tails, spread):
    """In at most 5% of the audits, and 10% of those that show one; normal losses show one in at least 90%."""
    law = TAILS[tails]
    truth = true_value(law, spread)

    def found(rng):
        member, nonmember = (law.rvs(size=N, random_state=rng) * spread - shift for shift in (1, 0))
        pair = fit_gaussian_pair(published(Losses(member, nonmember)), rng=rng)
        lower = parametric(pair, delta=DELTA).lower
        return lower is not None, lower is not None and lower > truth

    audits = simulated(found, seed=51, runs=(40, 500))
    runs, (shown, over) = len(audits), audits.sum(axis=0).tolist()
    assert at_most(over, runs, 0.05)
    assert at_most(over, shown, 0.1)
    assert tails != "normal" or at_most(runs - shown, runs, 0.1)
