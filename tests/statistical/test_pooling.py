"""The mean AUC over models lies in its interval, whether the models leak alike or not."""

import numpy as np
import pytest
from scipy import stats
from simulation import outside, seldom

from auditor.core import Losses
from auditor.curves import count
from auditor.estimators import auc, mean_of_models


@pytest.mark.parametrize("spread", [0.0, 0.3])
@pytest.mark.parametrize("models", [3, 8])
def test_the_interval_covers_the_mean_of_models(simulated, spread, models):
    """Whether models leak alike or not, the mean AUC of the training lies in the interval in 95% of the audits."""
    shifts = stats.norm(0.8, spread).ppf((np.arange(2000) + 0.5) / 2000) if spread else np.array([0.8])
    truth = stats.norm.cdf(shifts / np.sqrt(2)).mean()

    def missed(rng):
        rows = [
            auc(count(Losses(rng.normal(-rng.normal(0.8, spread), 1, 150), rng.normal(0, 1, 150))))
            for _ in range(models)
        ]
        return outside(truth, mean_of_models(rows, name="auc", confidence=0.95))

    assert seldom(simulated(missed, seed=71, runs=(100, 2000)))
