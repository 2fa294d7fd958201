"""Laws of losses whose every true value is known in closed form, to hold the bounds against."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from auditor.theory.gaussian import gaussian_epsilon
from auditor.values import Floats

__all__ = ["LAWS", "Law", "set_epsilon"]

Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Law:
    """A law of member losses beside one of non-member losses, independent from record to record.

    Attributes:
        name: As shown.
        member: Draws member losses.
        nonmember: Draws non-member losses.
        cdf: Distribution function of the non-member losses.
        middle: A threshold to fix in advance.
        epsilon: Largest epsilon of any threshold, as a function of delta.
        pair_epsilon: Epsilon of one record swapped for another, as a function of delta.
        auc: Chance that a member's loss is below a non-member's, ties counting half.
        advantage: Largest TPR - FPR of any threshold.
        tpr_at: Largest TPR of any threshold whose FPR is at most a rate.
        normal: Whether both laws are normal, as the parametric bound assumes.
    """

    name: str
    member: Draw
    nonmember: Draw
    cdf: Callable[[Floats], Floats]
    middle: float
    epsilon: Callable[[float], float]
    pair_epsilon: Callable[[float], float]
    auc: float
    advantage: float
    tpr_at: Callable[[float], float]
    normal: bool = False


def set_epsilon(training: Floats, law: Law, *, delta: float) -> float:
    """Return the largest epsilon of any threshold between a finite training set and the law of non-members.

    A miss rate below one training record counts as one record.

    >>> round(set_epsilon(np.array([-2.0, 0.0]), LAWS[0], delta=0.0), 6)
    3.090037
    """
    values, repeats = np.unique(training, return_counts=True)
    tpr, fpr = np.cumsum(repeats) / training.size, law.cdf(values)
    fnr = np.maximum(1 - tpr, 1 / training.size)
    with np.errstate(divide="ignore"):
        ratios = np.concatenate([(tpr - delta) / fpr, (1 - fpr - delta) / fnr])
    return math.log(max(1.0, float(np.max(ratios))))


# --- Normal, and no leakage at all -----------------------------------------------------------------


def _normal(mu: float, name: str) -> Law:
    return Law(
        name=name,
        member=lambda rng, n: rng.standard_normal(n) - mu,
        nonmember=lambda rng, n: rng.standard_normal(n),
        cdf=lambda x: np.asarray(special.ndtr(x)),
        middle=-0.5,
        epsilon=lambda delta: gaussian_epsilon(mu, delta=delta),
        pair_epsilon=lambda delta: gaussian_epsilon(math.sqrt(2) * mu, delta=delta),
        auc=float(special.ndtr(mu / math.sqrt(2))),
        advantage=float(2 * special.ndtr(mu / 2) - 1),
        tpr_at=lambda rate: float(special.ndtr(special.ndtri(rate) + mu)),
        normal=True,
    )


# --- Randomised response: loss 0 says "member", and is right with odds e^eps ----------------------------


def _response(epsilon: float) -> Law:
    right = 1 / (1 + math.exp(-epsilon))
    wrong = 1 - right
    return Law(
        name=f"randomised response, epsilon {epsilon:g}",
        member=lambda rng, n: np.where(rng.random(n) > right, 1.0, 0.0),
        nonmember=lambda rng, n: np.where(rng.random(n) > wrong, 1.0, 0.0),
        cdf=lambda x: np.where(x < 0, 0.0, np.where(x < 1, wrong, 1.0)),
        middle=0.5,
        epsilon=lambda delta: math.log(max(1.0, (right - delta) / wrong)),
        # Two answers: the log-ratio is 2 eps with probability right^2, and delta = right^2 - e^x wrong^2 up to there.
        pair_epsilon=lambda delta: math.log(max(1.0, (right**2 - delta) / wrong**2)),
        auc=right**2 + right * wrong,
        advantage=right - wrong,
        tpr_at=lambda rate: right if rate >= wrong else 0.0,
    )


# --- The Laplace mechanism with epsilon 1: scale 1, members one lower ----------------------------------


def _laplace_pair_delta(epsilon: float) -> float:
    """Delta of two independent Laplace mechanisms of epsilon 1 at a total of 0 <= epsilon <= 2, by integration."""
    return 1 - math.exp((epsilon - 2) / 2) * (1 + (2 - epsilon) / 4)


def _laplace_pair_epsilon(delta: float) -> float:
    if delta == 0:
        return 2.0
    return float(optimize.brentq(lambda epsilon: _laplace_pair_delta(epsilon) - delta, 0.0, 2.0))


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _laplace_tpr(rate: float) -> float:
    at = math.log(2 * rate) if rate < 1 / 2 else -math.log(2 * (1 - rate))
    return float(_laplace_cdf(np.array(at + 1)))


_LAPLACE = Law(
    name="Laplace, epsilon 1",
    member=lambda rng, n: rng.laplace(-1, 1, n),
    nonmember=lambda rng, n: rng.laplace(0, 1, n),
    cdf=_laplace_cdf,
    middle=-0.5,
    epsilon=lambda delta: max(0.0, 1 + 2 * math.log1p(-delta)),
    pair_epsilon=_laplace_pair_epsilon,
    auc=1 - 3 / (4 * math.e),
    advantage=1 - math.exp(-1 / 2),
    tpr_at=_laplace_tpr,
)

LAWS = (_normal(0.0, "no leakage"), _response(1.0), _LAPLACE, _normal(1.0, "normal, mu 1"))
