"""privacy-estimates' lower bound from one confusion matrix."""

import numpy as np
from privacy_estimates import AttackResults, compute_eps_lo

ABOUT = {
    "name": "privacy-estimates",
    "requirements": ("privacy-estimates==0.1.0.post1", "scipy==1.17.1", "numpy==2.4.6"),
    "claims": "Lower bound on epsilon from one confusion matrix, here that of the median of the distinct scores, by Jeffreys' limits.",
    "quote": "Computes a one-sided [eps_lo, ∞) confidence interval for epsilon",
    "source": "privacy_estimates/binomial_proportion.py, compute_eps_lo",
    "draws": (1000, 200, 100),
}


def bound(member, nonmember, delta, confidence):
    """By Jeffreys' limits, the documented default; the joint density takes half a minute a number."""
    scores = np.concatenate([member, nonmember])
    labels = np.repeat([1, 0], [member.size, nonmember.size])
    guesses = (scores >= np.median(np.unique(scores))).astype(int)
    results = AttackResults.from_guesses_and_labels(guesses, labels)
    return compute_eps_lo(results, delta, 1 - confidence, "jeffreys")
