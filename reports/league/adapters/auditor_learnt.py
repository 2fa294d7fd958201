"""The bound on the mechanism by guesses that are learnt from the coins revealed before."""

import numpy as np
from auditor.estimators.adaptive import Coins, Shares, largest_refuted, log_wealth

ABOUT = {
    "name": "auditor, learnt guesses",
    "requirements": (),
    "claims": "Lower bound on the mechanism's epsilon at delta 0 from fair coins of one run, by guesses learnt from earlier coins.",
    "quote": "Return the bound by guesses learnt from revealed coins, where chance decided who is a member",
    "source": "auditor/estimators/adaptive.py, adaptive_bound",
    "subject": "mechanism",
    "coins": True,
    "delta": 0.0,
    "draws": (1000, 200, 50),
}


def bound(member, nonmember, delta, confidence):
    """One score of each record, and the whole error."""
    losses = np.concatenate([-member, -nonmember])
    order = np.random.default_rng(0).permutation(losses.size)
    coins = Coins(order[None], order < member.size, np.zeros(losses.size))
    return largest_refuted(log_wealth(coins, [Shares(losses)])[0], 1 - confidence)
