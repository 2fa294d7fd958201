"""DP-SGD with planted bugs is refuted by runs with a canary and without, and correct training is not.

Logistic regression on 300 people of UCI Adult (from the folder in the environment variable ADULT, else a stand-in), all
runs at once; the canary's features are orthogonal to everybody's. Noise 1, sampling rate .2, 20 steps.
"""

import os

import numpy as np
import pytest
from experiments import adult
from scipy import special
from simulation import runs_for

from auditor import DPSGD, Losses, Sequential, audit_runs, theory
from auditor.core import Verdict

RECORDS, NOISE, RATE, STEPS = 300, 1.0, 0.2, 20
SCALE = 100.0  # of the canary's features: its gradient is longer than the clip, whatever the model says of it
CLAIM = DPSGD(NOISE, RATE, STEPS)


@pytest.fixture(scope="module")
def people():
    """Features and labels of the first records, and one more feature that is the canary's alone."""
    found = (
        adult.load(os.environ["ADULT"])
        if "ADULT" in os.environ
        else adult.stand_in(n_train=RECORDS, n_test=9)
    )
    x = np.pad(found.x_train[:RECORDS], ((0, 0), (0, 1)))
    canary = np.zeros(x.shape[1])
    canary[-1] = SCALE
    return np.vstack([x, canary]), np.append(found.y_train[:RECORDS], 1.0)


def trained(rng, people, runs, *, canary, noise=NOISE, clip=1.0, always=False, rate=0.1):
    """The canary's logit after each of so many trainings."""
    x, y = people
    lengths = np.linalg.norm(x, axis=1)
    weights = np.zeros((runs, x.shape[1]))
    for _ in range(STEPS):
        drawn = rng.random((runs, y.size)) < RATE
        drawn[:, -1] = canary and (always or drawn[:, -1])
        slope = special.expit(weights @ x.T) - y
        slope *= drawn / np.maximum(1.0, np.abs(slope) * lengths / clip)
        gradient = slope @ x + noise * rng.standard_normal(weights.shape)
        weights -= rate / (RATE * RECORDS) * gradient
    return weights @ x[-1]


BUGS = {
    "none": {},
    "half of the noise": {"noise": 0.5},
    "a tenth of the noise": {"noise": 0.1},
    "no clipping": {"clip": np.inf},
    "in every batch": {"always": True},
}


@pytest.mark.parametrize("bug", BUGS)
def test_runs_find_planted_bugs(request, people, bug):
    """4,000 runs refute the claim (epsilon 6.62 at 1e-5) of every broken training and not of the correct one."""
    assert theory.epsilon(CLAIM, delta=1e-5).value == pytest.approx(6.62, abs=0.01)
    runs, rng = runs_for(request, 600, 2000), np.random.default_rng(81)
    with_canary, without = (-trained(rng, people, runs, canary=world, **BUGS[bug]) for world in (True, False))
    losses = Losses(with_canary, without)
    for test in ({}, {"test": Sequential()}):
        found = audit_runs(losses, delta=1e-5, claim=CLAIM, **test)
        assert found.verdict is (Verdict.NOT_REFUTED if bug == "none" else Verdict.REFUTED)
