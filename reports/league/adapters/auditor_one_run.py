"""The bound on the mechanism from one run with fair coins."""

import auditor
import numpy as np
from auditor.estimators import one_run_bound

ABOUT = {
    "name": "auditor, one run",
    "requirements": (),
    "claims": "Lower bound on the mechanism's epsilon from fair coins of one run.",
    "quote": "Return the lower bound on the mechanism's epsilon that the declared split supports",
    "source": "auditor/estimators/one_run.py, one_run_bound",
    "subject": "mechanism",
    "coins": True,
    "draws": (1000, 200, 50),
}


def bound(member, nonmember, delta, confidence):
    """By f-DP; ties are broken at random."""
    losses, coins = auditor.Losses(-member, -nonmember), auditor.BernoulliSplit(0.5)
    rng = np.random.default_rng(0)
    return one_run_bound(losses, split=coins, delta=delta, confidence=confidence, rng=rng).value
