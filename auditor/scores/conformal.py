"""A conformal threshold: a false positive rate that holds for any distribution and any score."""

import math

import numpy as np

from auditor import _validate
from auditor.choices import FixedThreshold
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["conformal_threshold"]


def conformal_threshold(scores: Floats, *, rate: float) -> FixedThreshold:
    """Return a threshold that a fresh non-member's score falls at or below with probability at most ``rate``.

    Strictly below the k-th smallest score, k = floor(rate (n + 1)): a fresh score is there with probability at most
    k/(n + 1), ties or not, because it would be among the k smallest of n + 1 exchangeable ones. The rate holds in the
    mean over calibration sets, not for each of them; `auditor.estimators.clopper_pearson` judges the threshold at hand.

    Args:
        scores: Shape (n,), of non-members that neither shaped the score nor are audited; smaller is more like a member.
        rate: In (0, 1).

    Raises:
        InputError: A rate outside (0, 1), scores that are not finite, or fewer than 1/rate - 1 of them.

    Source: Vovk, Gammerman and Shafer 2005, "Algorithmic learning in a random world", Chapter 2.

    >>> conformal_threshold(np.arange(199.0), rate=0.01).threshold < 1.0
    True
    """
    rate = _validate.fraction("rate", rate)
    values = _validate.loss_vector("conformal", scores, least=1)
    # A product such as 0.07 x 100 = 7.000000000000001 must not cost or gain a rank.
    k = math.floor(round(rate * (values.size + 1), 9))
    if k < 1:
        raise InputError(
            f"rate {rate:g} is not resolvable with {values.size:,} non-members for the conformal threshold: at least"
            f" {math.ceil(round(1 / rate - 1, 9)):,} are needed; give more of them or a larger rate."
        )
    kth = float(np.partition(values, k - 1)[k - 1])
    return FixedThreshold(math.nextafter(kth, -math.inf))
