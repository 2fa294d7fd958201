"""The posterior of epsilon given the counts at one threshold, and its lower credible limit."""

import math

import numpy as np
from scipy import optimize, special

from auditor.core.values import Floats
from auditor.estimators.certified import Counts

# --- The posterior of epsilon given the counts at one threshold: Zanella-Beguelin et al. 2023, with Jeffreys' priors ---
#
# With x the false and y the true positive rate, an (eps, d)-DP mechanism has (x, y) between
#
#     hi(x) = min(1, d + e^eps x, 1 - e^-eps (1 - d - x)),
#     lo(x) = max(0, e^-eps (x - d), 1 - d - e^eps (1 - x)),
#
# and the posterior puts x ~ Beta(FP + 1/2, TN + 1/2) and y ~ Beta(TP + 1/2, FN + 1/2). The posterior probability that
# epsilon is at most eps is that of this region: an integral over x of differences of Beta distribution functions. With
# x = sin^2(t) the integrand is smooth between its corners, and Gauss-Legendre nodes between them give it to rounding.
#
# A credible limit holds on average over the prior, not for every mechanism: of 1,000 runs in each world and a perfect
# attack it makes epsilon 7.207 at 95%, where no bound that holds for every mechanism exceeds 5.812.


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)  # between two corners
_PANELS = 24  # of the range in which the false positive rate lies
_TAIL = 1e-30  # of the posterior, beyond which nothing is added up
_LARGEST = 700.0  # of epsilon, where e^eps is still a double
# Where the other rate's distribution function does its rising.
_LEVELS = np.array([_TAIL, 1e-18, 1e-12, 1e-8, 1e-5, 1e-3, 0.02, 0.15, 0.5])


def credible_lower(counts: Counts, *, delta: float, alpha: float) -> float:
    """Return the epsilon below which the posterior has probability alpha; 0 if it has more at 0 already.

    Args:
        counts: At one threshold that does not depend on them.
        delta: In [0, 1).
        alpha: In (0, 1).

    >>> round(credible_lower(Counts(1000, 1000, 0, 1000), delta=0.0, alpha=0.05), 3)
    7.207
    """
    target = math.log(alpha)
    if log_posterior_below(0.0, counts, delta=delta) >= target:
        return 0.0
    high = 1.0
    while log_posterior_below(high, counts, delta=delta) < target:
        if high >= _LARGEST:
            return _LARGEST
        high = min(2 * high, _LARGEST)

    def excess(epsilon: float) -> float:
        return max(log_posterior_below(epsilon, counts, delta=delta), -1e6) - target

    return float(optimize.brentq(excess, high / 2 if high > 1 else 0.0, high, xtol=1e-12))


def log_posterior_below(epsilon: float, counts: Counts, *, delta: float) -> float:
    """Return the log of the posterior probability that the mechanism's epsilon is at most this."""
    misses, quiet = counts.members - counts.true_positives, counts.nonmembers - counts.false_positives
    x_law = counts.false_positives + 0.5, quiet + 0.5
    y_law = counts.true_positives + 0.5, misses + 0.5
    corners = _corners(epsilon, delta, x_law, y_law)
    half = np.diff(corners)[:, None] / 2
    angle = corners[:-1, None] + half * (1 + _NODES)
    # The density of t where sin^2(t) ~ Beta(a, b): 2 sin^(2a - 1)(t) cos^(2b - 1)(t) / B(a, b).
    (a, b), sines, cosines = x_law, np.log(np.sin(angle)), np.log(np.cos(angle))
    log_density = math.log(2) + (2 * a - 1) * sines + (2 * b - 1) * cosines - float(special.betaln(a, b))
    inside = np.log(half) + np.log(_WEIGHTS) + log_density
    with np.errstate(divide="ignore"):
        inside = inside + np.log(_between(angle, epsilon, delta, y_law))
    return min(0.0, float(special.logsumexp(inside)))


def _between(angle: Floats, epsilon: float, delta: float, law: tuple[float, float]) -> Floats:
    """Return the probability of the true positive rates that (epsilon, delta)-DP allows beside sin^2(angle)."""
    x, rest = np.sin(angle) ** 2, np.cos(angle) ** 2
    grow, shrink = math.exp(epsilon), math.exp(-epsilon)
    high = np.minimum(np.minimum(1.0, delta + grow * x), 1 - shrink * np.maximum(rest - delta, 0))
    low = np.maximum(shrink * np.maximum(x - delta, 0), np.maximum(0.0, 1 - delta - grow * rest))
    low = np.minimum(low, high)
    # In the tail that is the smaller one, so that small differences keep their digits.
    above = low > law[0] / (law[0] + law[1])
    result = np.empty_like(low)
    result[above] = special.betaincc(*law, low[above]) - special.betaincc(*law, high[above])
    result[~above] = special.betainc(*law, high[~above]) - special.betainc(*law, low[~above])
    return np.maximum(result, 0.0)


def _corners(epsilon: float, delta: float, x_law: tuple[float, float], y_law: tuple[float, float]) -> Floats:
    """Return the angles between which the integrand is smooth and tame: its range, its kinks, and where y rises."""
    grow, shrink = math.exp(epsilon), math.exp(-epsilon)
    lowest, highest = special.betaincinv(*x_law, _TAIL), special.betainccinv(*x_law, _TAIL)
    ends = _angle(np.array([lowest, highest]))
    y = np.concatenate([special.betaincinv(*y_law, _LEVELS), special.betainccinv(*y_law, _LEVELS)])
    kink = (1 - delta) / (grow + 1)
    x = np.concatenate(
        [
            (y - delta) * shrink,
            1 - delta - grow * (1 - y),
            delta + grow * y,
            1 - (1 - delta - y) * shrink,
            [delta, 1 - delta, kink, 1 - kink, (1 - delta) * shrink, 1 - (1 - delta) * shrink],
        ]
    )
    at = _angle(np.clip(x, 0.0, 1.0))
    inner = at[(at > ends[0]) & (at < ends[1])]
    return np.unique(np.concatenate([np.linspace(ends[0], ends[1], _PANELS + 1), inner]))


def _angle(x: Floats) -> Floats:
    return np.asarray(np.arcsin(np.sqrt(x)))
