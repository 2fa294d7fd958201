"""``advantage`` and ``bayes_security`` of the attacker who thresholds the loss, with exact limits of the largest gap [own].

    adv = sup over thresholds of TPR - FPR = sup of F1 - F0,  beta = 1 - adv

Thresholds leave their own value out or take it in: both sets {x < t} and {x <= t} count. What is observed, D, is the
largest gap over the sets {x < y} of the non-member losses y: every other such set has no larger one.

Lower limit. If adv <= a, then F1 <= T(F0) with T(y) = min(1, y + a), and D is largest, whatever the laws and ties, where
non-members are uniform and members follow T (the proof is in `auditor.estimators.joint_test`). Then A ~ Bin(n1, a) members
lie below all others and B ~ Bin(n0, a) non-members above, and the rest come in any order, all equally likely. D >= d says
that the path (members, non-members) of the pooled losses meets i/n1 - j/n0 >= d on its way from (A, 0) to (n1, n0 - B).
Reflect: let f and h be the numbers of paths from (i, j) to that end and to (n1 + m, n0 - B - m). Where paths may first
meet the line, f/h = prod over l = 1..m of (n1 - i + l)/(n0 - B - m - j + l). It falls with i, and along the line with j
if n1 <= n0 and m <= (2 (d n1 n0 - n1 B) - n0 + n1)/(n1 + n0): the logarithm's derivative pairs l with m + 1 - l. So it is
largest at (d n1, 0), and of the paths to the first end there meet the line at most so many times those to the second:

    P(D >= d given A, B) <= prod over l = 1..m of (n1 (1 - d) + l)/(n1 - A + l)

Equality holds where n1 = n0. Where n1 > n0, read the path from above: the groups change places. A known member side is
the limit of many members. The chance grows with A, B and a, so bisection is right.

Upper limit. D is at least the gap observed at the best set, where members fall with probability y + a and non-members with
y. So a is refuted where sup over y of P(Bin(n1, y + a)/n1 - Bin(n0, y)/n0 <= d) is small. With n1 = n0 = n this is the
sum of 2n coins, for which the supremum is P(Bin(2n, (1 + a)/2) <= n + dn) if a >= d + 1/n (Hoeffding 1956, Theorem 4).
Otherwise the supremum over a cell of y is bounded by the members' chance at its start and the non-members' at its end.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from auditor.core.options import Census, Coverage, Sample
from auditor.core.values import Estimate, Floats, Integers, Subject
from auditor.curves.tradeoff import ThresholdCounts
from auditor.estimators.limits import chance_above, chance_up_to, finite, upper_limit, with_draws

_ASSUMPTIONS = ("records within each group are independent draws", "membership labels are right")


def advantage(
    counts: ThresholdCounts,
    *,
    confidence: float = 0.95,
    coverage: Coverage = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the largest TPR - FPR over thresholds, with a two-sided interval that holds at every size and with ties.

    A census knows the member side, and keeps the ends with the members as draws in ``details["as_draws"]``; a subset of
    the training set is treated as a sample. The plain value is biased upward on a finite sample.

    Args:
        counts: From `auditor.curves.tradeoff.count`.
        confidence: Confidence level of the interval, in (0, 1).
        coverage: `Sample` (default), `Subset` or `Census`.

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> advantage(count(Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0]))).value
    1.0
    """
    alpha = 1 - confidence
    gap = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    at = int(np.argmax(gap))
    value = max(0.0, float(gap[at]))
    census = isinstance(coverage, Census)
    options = None if census else counts.n_member
    low, high = gap_limits(value, n_member=options, n_nonmember=counts.n_nonmember, alpha=alpha)
    # How many are called members at the best threshold; the threshold itself would be a record's loss.
    called = {"true_positives": int(counts.tp_below[at]), "false_positives": int(counts.fp_below[at])}
    result = Estimate(
        name="advantage",
        value=value,
        lower=low,
        upper=high,
        confidence=confidence,
        method="largest gap of the two empirical distribution functions; limits by its least favourable law and by binomials",
        subject=Subject.MODEL,
        assumptions=(*_ASSUMPTIONS, *(finite(coverage) if census else ())),
        details=called if value > 0 else {},
    )
    return with_draws(result, advantage(counts, confidence=confidence)) if census else result


_OF_THRESHOLDS = "only attackers who threshold the loss; stronger ones may exist"


def bayes_security(threshold_advantage: Estimate) -> Estimate:
    """Return 1 - advantage with its upper limit; stronger attackers may exist, so there is no lower limit.

    Args:
        threshold_advantage: From `advantage`, with a value and a lower limit.

    Raises:
        ValueError: An advantage without a value.

    Source: Cherubin et al. 2024, Section 2.3: beta = 1 - adv for two equally likely secrets.

    >>> from auditor.curves.tradeoff import count
    >>> from auditor.core.values import Losses
    >>> bayes_security(advantage(count(Losses(member=[1.0, 3.0], nonmember=[2.0, 4.0])))).value
    0.5
    """
    if threshold_advantage.value is None or threshold_advantage.lower is None:
        raise ValueError("an advantage without a value has no Bayes security")
    drawn = threshold_advantage.details.get("as_draws")
    draws: dict[str, Any] = {}
    if drawn is not None:
        ends = {"value": 1.0 - drawn["value"], "lower": None, "upper": 1.0 - drawn["lower"]}
        draws = {"finite": True, "as_draws": {**ends, "assumptions": [*drawn["assumptions"], _OF_THRESHOLDS]}}
    return replace(
        threshold_advantage,
        name="bayes_security",
        value=1.0 - threshold_advantage.value,
        lower=None,
        upper=1.0 - threshold_advantage.lower,
        method="1 - advantage of the loss-threshold attacker",
        assumptions=(*threshold_advantage.assumptions, _OF_THRESHOLDS),
        details=draws,
    )


# --- Both limits, from the observed gap and the sizes of the groups alone ---

_PRECISION = 1e-6
# Of the distance to the limit by an inequality: so much the upper one may lie beyond the supremum.
_SLACK = 0.035
# Of 1/n1 + 1/n0: groups of unequal size that make it smaller than this would take too many cells.
_FINEST = 6e-4


def gap_limits(gap: float, *, n_member: int | None, n_nonmember: int, alpha: float) -> tuple[float, float]:
    """Return both limits of the largest TPR - FPR, each wrong with probability alpha/2 at most.

    For large groups of unequal size the upper limit is that of Hoeffding's inequality, about 40% further off.

    Args:
        gap: The largest one observed, in [0, 1]; 0 where none is above 0.
        n_member: Number of members, or None if the member side is known: a census.
        n_nonmember: Number of non-members.
        alpha: In (0, 1).

    >>> [round(end, 3) for end in gap_limits(0.4, n_member=1000, n_nonmember=1000, alpha=0.05)]
    [0.342, 0.44]
    """
    sizes = (math.inf if n_member is None else n_member, n_nonmember)
    return _lower(gap, sizes, alpha / 2), _upper(gap, sizes, alpha / 2)


def _lower(gap: float, sizes: tuple[float, int], alpha: float) -> float:
    """Return the largest advantage at which so large a gap has a chance of up to alpha."""
    small, large = min(sizes), max(sizes)

    def excess(a: float) -> float:
        return math.log(max(_reaches(gap, a, int(small), large), 1e-300) / alpha)

    result = 0.0
    if gap > 0 and excess(0.0) <= 0:
        result = scipy.optimize.brentq(excess, 0.0, gap, xtol=_PRECISION) - 2 * _PRECISION
    # What is uncertain of one group alone has a limit that is proven too, and better where that group is small.
    alone = gap - math.sqrt(math.log(1 / alpha) / (2 * small)) if large == math.inf else 0.0
    return max(0.0, result, alone)


def _reaches(gap: float, a: float, small: int, large: float) -> float:
    """Return the chance, at most, that groups of these sizes show so large a gap where the true one is a."""
    first, chances, beyond = _groups(small, a)
    if large == math.inf:
        steps, others = np.floor([2 * small * (gap - a) - 1]), np.ones(1)
    else:
        last, others, rest = _groups(int(large), a)
        beyond = beyond + rest
        # As integers of any size: the product of two large groups is beyond 64 bits.
        whole = 2 * (round(gap * small * large) - int(small) * last.astype(object)) - int(large - small)
        steps = (whole // int(large + small)).astype(np.int64)
    steps = np.maximum(steps, 0)
    left = small * (1 - gap)
    logs = special.gammaln(left + steps + 1) - special.gammaln(left + 1)
    logs = logs - special.gammaln(small - first[:, None] + steps + 1)
    logs += special.gammaln(small - first + 1)[:, None]
    meets = np.exp(np.minimum(logs, 0.0))
    return float(np.einsum("i,ij,j->", chances, meets, others) + beyond)


def _upper(gap: float, sizes: tuple[float, int], alpha: float) -> float:
    """Return an advantage from which on so small a gap has a chance of up to alpha, or 1."""
    n1, n0 = sizes
    if n1 == n0:
        heads = round(gap * n0)
        most = 2 * float(upper_limit(n0 + heads, 2 * n0, alpha)) - 1
        return min(1.0, max(most, (heads + 1) / n0))
    by_inequality = gap + math.sqrt(math.log(1 / alpha) * (1 / n1 + 1 / n0) / 2)
    if n1 < math.inf and 1 / n1 + 1 / n0 < _FINEST:
        return min(1.0, by_inequality)

    def excess(a: float) -> float:
        # Where the gap varies most; what is larger elsewhere is found below.
        y = np.clip([((1 - 2 * a) / n1 + 1 / n0) / (2 / n1 + 2 / n0)], 0.0, 1 - a)
        return float(_stays(gap, y + a, y, sizes)[0]) - alpha

    if excess(1.0) > 0:
        return 1.0
    a = gap if excess(gap) <= 0 else scipy.optimize.brentq(excess, gap, 1.0, xtol=_PRECISION)
    step = _SLACK * (by_inequality - gap)
    while a < min(1.0, by_inequality):
        a += step
        if _refuted(gap, a, sizes, alpha=alpha, finest=step / 4):
            break
    return float(min(1.0, a, by_inequality))


def _refuted(gap: float, a: float, sizes: tuple[float, int], *, alpha: float, finest: float) -> bool:
    """Return whether the chance of so small a gap is up to alpha at every y, in cells that are quartered while they show more."""
    cells = np.linspace(0.0, max(0.0, 1 - a), 17)
    low, high = cells[:-1], cells[1:]
    while low.size:
        open_ = _stays(gap, np.minimum(low + a, 1.0), high, sizes) > alpha
        low, high = low[open_], high[open_]
        if low.size and float(np.max(high - low)) < finest:
            return False
        cuts = np.linspace(low, high, 5)
        low, high = cuts[:-1].ravel(), cuts[1:].ravel()
    return True


def _stays(gap: float, member: Floats, nonmember: Floats, sizes: tuple[float, int]) -> Floats:
    """Return P(Bin(n1, member)/n1 - Bin(n0, nonmember)/n0 <= gap), at most; one for each pair of chances."""
    n1, n0 = sizes
    if n1 == math.inf:
        least = np.ceil(n0 * (member - gap) * (1 - 1e-12))
        return np.where(least > 0, chance_above(np.maximum(least, 1) - 1, n0, nonmember), 1.0)
    if n1 < n0:  # read from above, so that fewer numbers of the smaller group are summed over
        return _stays(gap, 1 - nonmember, 1 - member, (n0, int(n1)))
    alarms, chances, beyond = _groups(n0, nonmember)
    hits = np.minimum((round(gap * n1 * n0) + alarms * int(n1)) // n0, n1)
    stays = chance_up_to(hits, int(n1), np.asarray(member)[:, None])
    return np.asarray(np.einsum("ij,ij->i", chances, stays) + beyond)


_NODES = 97
# Standard deviations and records beyond which numbers are not distinguished.
_FAR, _SOME = 5.5, 10


def _groups(size: int, share: npt.ArrayLike) -> tuple[Integers, Floats, Floats]:
    """Return the numbers of a binomial, each for itself and those since the one before; their chances; that of all beyond the last."""
    p = np.asarray(share, dtype=np.float64)[..., None]
    reach = _FAR * np.sqrt(size * p * (1 - p)) + _SOME
    ends = np.clip(np.floor(size * p + reach * np.linspace(-1.0, 1.0, _NODES)), 0, size)
    at_most = chance_up_to(ends, size, p)
    chances: Floats = np.diff(at_most, prepend=0.0, axis=-1)
    return ends.astype(np.int64), chances, np.asarray(1 - at_most[..., -1])
