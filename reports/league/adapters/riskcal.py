"""riskcal's epsilon of a pair of error rates."""

import numpy as np
from riskcal.analysis import get_epsilon_from_err_rates

ABOUT = {
    "name": "riskcal",
    "requirements": ("riskcal==1.5.1", "scipy==1.17.1", "numpy==2.4.6"),
    "claims": "Epsilon of a pair of error rates; here the observed ones at the median of the distinct scores.",
    "quote": "Convert f-DP error rates (alpha, beta) to epsilon for (epsilon, delta)-DP.",
    "source": "riskcal/analysis/conversions.py, get_epsilon_from_err_rates",
    "estimate": True,
    "draws": (1000, 200, 100),
}


def bound(member, nonmember, delta, confidence):
    """A point estimate, without a confidence."""
    threshold = np.median(np.unique(np.concatenate([member, nonmember])))
    return get_epsilon_from_err_rates(delta, np.mean(nonmember >= threshold), np.mean(member < threshold))
