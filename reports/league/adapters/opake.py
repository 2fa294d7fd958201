"""opake-auditing's bound from one run, as its quick start computes it."""

import numpy as np
from opake import auditing
from opake.auditing.types import CoinFlip

ABOUT = {
    "name": "opake-auditing",
    "requirements": ("opake-auditing==0.16.1", "torch==2.13.0", "scipy==1.17.1", "numpy==2.4.6"),
    "claims": "Lower bound on epsilon from fair coins of one run, by `eps_delta()`; the default, `gdp()`, takes 20 s a number.",
    "quote": "Epsilon lower bound at the given (δ, significance).",
    "source": "opake/api/auditing/one_run/_eps_delta.py, EpsDeltaMethod.epsilon_at",
    "subject": "mechanism",
    "coins": True,
    "draws": (1000, 200, 50),
}


def bound(member, nonmember, delta, confidence):
    """By `eps_delta`; the default of ``epsilon_at`` without it takes 20 s a number."""
    number, every = member.size + nonmember.size, np.arange(member.size + nonmember.size)
    coins = CoinFlip(number, every, every < member.size, every[: member.size], every[member.size :])
    scores = auditing.canary_scores(np.concatenate([member, nonmember]), canary_indices=every)
    estimate = auditing.one_run(scores, coin_flip=coins)
    return estimate.eps_delta().epsilon_at(delta=delta, significance=1 - confidence)
