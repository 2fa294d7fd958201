"""Trade-off curves: false positive rate against true positive rate, from losses, from fits and from a claim.

At threshold q the attacker says "member" if the loss is at most q: TPR = F1(q), FPR = F0(q). Whatever a curve was made
from, epsilon, delta, advantage, Bayes security, mu and the true positive rates are read off it in the same way.
"""

import sys
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from auditor.core import FittedPair, Floats, InputError, Integers, Losses, validate, weighted


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Numbers of records below and up to each distinct non-member loss: the whole empirical curve in integers.

    Between two distinct non-member losses only the true positive count changes, so these are its corners.

    Attributes:
        thresholds: Shape (u,), the distinct non-member losses, ascending.
        fp_below: Non-members strictly below each threshold.
        fp_upto: Non-members at or below each threshold.
        tp_below: Members strictly below each threshold.
        tp_upto: Members at or below each threshold.
        n_member: Number of members.
        n_nonmember: Number of non-members.
    """

    thresholds: Floats
    fp_below: Integers
    fp_upto: Integers
    tp_below: Integers
    tp_upto: Integers
    n_member: int
    n_nonmember: int


def count(losses: Losses) -> ThresholdCounts:
    """Count the records below and up to every distinct non-member loss, in O(n log n) and with ties exact.

    >>> counts = count(Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0]))
    >>> counts.tp_below.tolist(), counts.tp_upto.tolist()
    ([1, 2], [2, 2])
    """
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    thresholds, edges = distinct(nonmember)
    tp_below = np.searchsorted(member, thresholds, side="left")
    tied = member[np.minimum(tp_below, member.size - 1)] == thresholds
    tp_upto = np.searchsorted(member, thresholds, side="right") if tied.any() else tp_below
    return ThresholdCounts(
        thresholds=thresholds,
        fp_below=edges[:-1],
        fp_upto=edges[1:],
        tp_below=tp_below,
        tp_upto=tp_upto,
        n_member=losses.n_member,
        n_nonmember=losses.n_nonmember,
    )


def distinct(ordered: Floats) -> tuple[Floats, Integers]:
    """Return the different values of an ascending group, and how many records lie below each of them, and in all.

    >>> [part.tolist() for part in distinct(np.array([1.0, 1.0, 3.0]))]
    [[1.0, 3.0], [0, 2, 3]]
    """
    values, counts = weighted(ordered)
    if counts is not None:
        return values, np.append(0, np.cumsum(counts))
    new = values[1:] != values[:-1]
    if new.all():
        return values, np.arange(values.size + 1)
    starts = np.flatnonzero(np.concatenate([[True], new]))
    return values[starts], np.append(starts, values.size)


# How far rates near 1 may be from the exact ones: they are held as doubles.
_ROUNDING = 2.3e-16
# The smallest double that has all its digits.
_SMALLEST = sys.float_info.min
# The double below 1, for rates that were rounded to 1.
_LARGEST = 1 - sys.float_info.epsilon / 2
# A true positive rate at no false positive that is only rounding.
_NEGLIGIBLE = 1e-300
# Share of its value that a difference of two quantiles may lose.
_OF_QUANTILES = 1e-12


class MuAndRegret(NamedTuple):
    """The Gaussian curve nearest above another one: its mu, and its largest overstatement."""

    mu: float
    regret: float


@dataclass(frozen=True, eq=False)
class TradeoffCurve:
    """True positive rate as a function of the false positive rate, straight between the points.

    Epsilon, delta and mu are the smallest ones whose own curve lies above this one, for both orders of the two
    neighbours. The curve is taken as exact: from measured losses these are estimates, not bounds.

    Attributes:
        fpr: Shape (k,), from 0 to 1, never falling.
        tpr: Shape (k,), from 0 to 1, never falling.
        thresholds: Shape (k,), the loss at or below which a record is called a member, if the curve is empirical.

    Raises:
        InputError: The arrays differ in length, leave [0, 1], fall, or do not end at (0, 0) and (1, 1).

    >>> TradeoffCurve(fpr=[0.0, 0.2, 1.0], tpr=[0.0, 0.8, 1.0]).tpr_at(0.1)
    0.4
    """

    fpr: Floats
    tpr: Floats
    thresholds: Floats | None = None

    def __post_init__(self) -> None:
        fpr, tpr = np.asarray(self.fpr, dtype=np.float64), np.asarray(self.tpr, dtype=np.float64)
        validate.same_length(("fpr", "tpr"), (fpr.size, tpr.size))
        for name, rate in (("fpr", fpr), ("tpr", tpr)):
            if rate.size < 2 or rate[0] != 0 or rate[-1] != 1:  # noqa: PLR2004
                raise InputError(
                    f"{name} must run from 0 to 1, got {rate.size} points from {rate[:1]} to {rate[-1:]}."
                )
            falls = ~(np.diff(rate) >= 0)
            if falls.any():
                raise InputError(f"{name} must never fall, got a fall after point {int(np.argmax(falls))}.")
            rate.setflags(write=False)
        vars(self).update(fpr=fpr, tpr=tpr)

    @classmethod
    def from_losses(cls, losses: Losses) -> "TradeoffCurve":
        """Return the empirical curve through every corner.

        >>> TradeoffCurve.from_losses(Losses(member=[1.0, 2.0], nonmember=[2.0, 3.0])).tpr
        array([0. , 0.5, 1. , 1. , 1. , 1. ])
        """
        return cls.from_counts(count(losses))

    @classmethod
    def from_counts(cls, counts: ThresholdCounts) -> "TradeoffCurve":
        """Return the empirical curve from counts; see `from_losses`."""
        fp = np.stack([counts.fp_below, counts.fp_upto], axis=1).ravel()
        tp = np.stack([counts.tp_below, counts.tp_upto], axis=1).ravel()
        fpr, tpr = (_between(0.0, side, 1.0) for side in (fp / counts.n_nonmember, tp / counts.n_member))
        # "Strictly below t" is the same rule as "at or below the float before t".
        with np.errstate(over="ignore"):  # below the lowest float lies minus infinity
            before = np.nextafter(counts.thresholds, -np.inf)
        at = np.stack([before, counts.thresholds], axis=1).ravel()
        return cls(fpr=fpr, tpr=tpr, thresholds=_between(-np.inf, at, np.inf))

    @classmethod
    def from_fits(cls, pair: FittedPair, *, points: int = 2001, reach: float = 12.0) -> "TradeoffCurve":
        """Return the curve of two fitted densities, on thresholds dense in both tails of both densities.

        Args:
            pair: The fitted densities.
            points: Number of thresholds per density, and per component of a mixture.
            reach: Reach of the thresholds to each side, in standard deviations.
        """
        z = np.linspace(-reach, reach, points)
        densities = (pair.member, pair.nonmember)
        thresholds = np.sort(np.concatenate([d.spread(z) for d in densities]))
        # Neighbouring values of the normal's tail can be out of order by a rounding.
        fpr, tpr = (
            np.minimum(np.maximum.accumulate(np.exp(d.log_cdf(thresholds))), 1.0) for d in reversed(densities)
        )
        return cls(_between(0.0, fpr, 1.0), _between(0.0, tpr, 1.0), _between(-np.inf, thresholds, np.inf))

    @classmethod
    def from_epsilon_delta(cls, epsilon: float, *, delta: float) -> "TradeoffCurve":
        """Return the largest curve that (epsilon, delta) indistinguishability allows: three straight pieces.

        TPR <= min(1, delta + e^epsilon FPR, 1 - e^-epsilon (1 - delta - FPR)); Kairouz, Oh and Viswanath 2015.

        >>> TradeoffCurve.from_epsilon_delta(0.0, delta=0.1).tpr_at(0.5)
        0.6
        """
        epsilon = validate.nonnegative("epsilon", epsilon)
        delta = validate.fraction("delta", delta, zero=True)
        # The two slanted pieces meet where both are equal: FPR = (1 - delta)/(1 + e^epsilon).
        corner = (1 - delta) * np.exp(-np.logaddexp(0.0, epsilon))
        fpr = np.array([0.0, 0.0, corner, 1 - delta, 1.0])
        tpr = np.array([0.0, delta, 1 - corner, 1.0, 1.0])
        return cls(fpr=fpr, tpr=np.maximum.accumulate(tpr))

    @classmethod
    def from_profile(cls, epsilons: npt.ArrayLike, *, deltas: npt.ArrayLike) -> "TradeoffCurve":
        """Return the largest curve that several (epsilon, delta) at once allow: the lowest of their curves.

        The corners are those of that lowest curve, so nothing is cut off between them: it never lies below the curve
        of a mechanism that has all of these.

        Args:
            epsilons: Shape (k,), 0 or more, in nats, in any order.
            deltas: Shape (k,), in [0, 1], the delta at each epsilon.

        Raises:
            InputError: Arrays that are empty or differ in length, or a number out of range.

        Source: Dong, Roth and Su 2022, Proposition 2.12.

        >>> TradeoffCurve.from_profile([0.0, 1.0], deltas=[0.3, 0.1]).tpr_at(0.0)
        0.1
        """
        fpr, tpr = _lowest_corners(*_profile(epsilons, deltas))
        # The other half mirrors the first in the line TPR = 1 - FPR; a rounding there may put neighbours out of order.
        pairs = ((fpr, tpr), (tpr, fpr))
        whole = (_between(0.0, np.append(side, 1 - other[::-1]), 1.0) for side, other in pairs)
        return cls(*map(np.maximum.accumulate, whole))

    def tpr_at(self, fpr: float) -> float:
        """Return the true positive rate at a false positive rate; at a jump, its upper end.

        >>> TradeoffCurve(fpr=[0.0, 0.5, 1.0], tpr=[0.0, 1.0, 1.0]).tpr_at(0.25)
        0.5
        """
        rate = validate.fraction("fpr", fpr, zero=True, one=True)
        last = int(np.searchsorted(self.fpr, rate, side="right")) - 1
        if last == self.fpr.size - 1 or self.fpr[last] == rate:
            return float(self.tpr[last])
        share = (rate - self.fpr[last]) / (self.fpr[last + 1] - self.fpr[last])
        return float(self.tpr[last] + share * (self.tpr[last + 1] - self.tpr[last]))

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon whose (epsilon, delta) curve lies above this one.

        The largest of log((TPR - delta)/FPR) and log((1 - FPR - delta)/(1 - TPR)) over the corners; between two corners
        each ratio rises or falls throughout.

        Args:
            delta: In [0, 1).

        Returns:
            Epsilon in nats, 0 or more; infinity where a TPR above delta comes without a false positive.

        Raises:
            InputError: Delta is out of range.

        Source: Kairouz, Oh and Viswanath 2015, Theorem 2.4; Wasserman and Zhou 2010.

        >>> round(TradeoffCurve([0.0, 0.1, 1.0], [0.0, 0.5, 1.0]).epsilon_at(0.1), 6)  # log 4
        1.386294
        """
        delta = validate.fraction("delta", delta, zero=True)
        low, high = self._both_orders()
        above = high > delta + (_NEGLIGIBLE if delta == 0 else 0.0)
        low, high = low[above], high[above]
        if np.any(low == 0):
            return float("inf")
        ratios = np.log(high - delta) - np.log(low)
        return max(0.0, float(ratios.max(initial=0.0)))

    @overload
    def delta_at(self, epsilon: float) -> float: ...
    @overload
    def delta_at(self, epsilon: Floats | list[float]) -> Floats: ...
    def delta_at(self, epsilon: npt.ArrayLike) -> float | Floats:
        """Return the smallest delta whose (epsilon, delta) curve lies above this one, or the privacy profile at several.

        Args:
            epsilon: Any shape, in nats, 0 or more.

        Returns:
            In the shape of epsilon, in [0, 1], never rising with it.

        Raises:
            InputError: An epsilon is negative or not a number.

        Source: Dong, Roth and Su 2022, Proposition 2.12 (delta = 1 + f*(-e^epsilon)), for both orders.

        >>> curve = TradeoffCurve.from_epsilon_delta(1.0, delta=0.1)
        >>> round(curve.delta_at(1.0), 6), curve.delta_at([0.0, 2.0]).round(6).tolist()
        (0.1, [0.515905, 0.1])
        """
        values = _within("epsilon", epsilon, np.inf)
        low, high = self._both_orders()
        # In logs, because the slope may be beyond a double where the rate is not; at no rate even an infinite slope is 0.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            log_low = np.log(low)
            allowed = (np.exp(np.minimum(log_low + value, 1.0)) for value in values.ravel())
            gaps = [float(np.max(high - np.where(low > 0, reached, 0.0))) for reached in allowed]
        deltas = np.clip(gaps, 0.0, 1.0).reshape(values.shape)
        return deltas if values.ndim else float(deltas)

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR, in [0, 1]; Cherubin et al. 2024, Section 2.

        >>> TradeoffCurve([0.0, 0.25, 1.0], [0.0, 0.75, 1.0]).advantage
        0.5
        """
        return self.delta_at(0.0)

    @property
    def bayes_security(self) -> float:
        """1 minus the advantage, in [0, 1]: 1 if an attacker does no better than by guessing."""
        return 1 - self.advantage

    def mu_and_regret(self, *, least_rate: float = 0.0) -> MuAndRegret:
        """Return the smallest mu whose Gaussian-DP curve lies above this one, and how much that curve overstates at most.

        mu is the largest Phi^-1(TPR) - Phi^-1(FPR): exact for straight pieces, since the curve of mu-GDP is concave and so
        lies above them if it does at the corners, as far as the rates go: those within 1e-16 of 1 have been rounded.

        The regret is the smallest kappa with TPR_mu(FPR) <= TPR(FPR + kappa) + kappa at every FPR, so that Gaussian curve
        and this one differ by no more in both error rates. This one is the lowest of its straight pieces,
        TPR = d + s FPR, in both orders and with mixed tests. A Gaussian curve lies below a piece moved by kappa if its
        delta at epsilon log s is at most d + (1 + s) kappa, so that the regret is the largest of
        (delta_mu(log s) - d)/(1 + s) [own].

        Args:
            least_rate: The smallest error rate, FPR and FNR, at which the Gaussian curve has to lie above. Of sampled
                steps the smallest rates of all have the mu without sampling, however rarely a record is drawn.

        Returns:
            mu, 0 or more, infinity where a TPR above 0 comes without a false positive; and the regret, in [0, 1/2], which
            then is half the Bayes security. Both are rounded up.

        Raises:
            InputError: The rate is outside [0, 1).

        Source: Dong, Roth and Su 2022, Definition 2.6; Gomez et al. 2025 for the two together, Kaissis et al. 2024 for
        the regret (Delta-divergence).

        >>> curve = TradeoffCurve([0.0, 0.15865525393145707, 1.0], [0.0, 0.5, 1.0])
        >>> round(curve.mu_and_regret().mu, 6)
        1.0
        """
        least = validate.fraction("least_rate", least_rate, zero=True)
        low, high = self._both_orders()
        order = np.lexsort((high, low))
        hull = concave_corners(low[order], high[order])
        if least:
            # No attack with these error rates comes closer to the corner than this.
            low = np.append(low, least)
            high = np.append(high, min(np.interp(least, *hull), 1 - least))
        # A corner and its mirror image say the same, and below the line TPR = 1 - FPR no digit is lost.
        setting = (high > low) & (low >= least) & (low + high <= 1 + _ROUNDING)
        mu = _smallest_mu(low[setting], np.minimum(high[setting], _LARGEST))
        return MuAndRegret(mu, _regret(mu, *hull))

    def _both_orders(self) -> tuple[Floats, Floats]:
        """Return the corners (FPR, TPR) together with their mirror images (1 - TPR, 1 - FPR), where these say anything new.

        What holds for both orders of two neighbours is a condition on both kinds. In the upper right of a curve rates lie
        so near 1 that their distance from it has lost its digits; where the curve is its own mirror image, the corners in
        its lower left say the same with all of them.
        """
        low, high = 1 - self.tpr, 1 - self.fpr
        new = np.interp(low + _ROUNDING, self.fpr, self.tpr) < high - 4 * _ROUNDING
        return np.concatenate([self.fpr, low[new]]), np.concatenate([self.tpr, high[new] - _ROUNDING])

    def thinned(self, *, points: int = 400) -> "TradeoffCurve":
        """Return a curve of at most about ``points`` of these points, dense at both ends on a log scale."""
        if self.fpr.size <= points:
            return self
        half = np.geomspace(1.0, self.fpr.size, points // 4).round().astype(np.int64) - 1
        even = np.linspace(0, self.fpr.size - 1, points // 4).round().astype(np.int64)
        # The corners just above and below each chosen point keep a staircase a staircase.
        chosen = np.concatenate([half, even, self.fpr.size - 1 - half])
        keep = np.unique(np.clip(chosen, 0, self.fpr.size - 1))
        keep[0], keep[-1] = 0, self.fpr.size - 1
        thresholds = None if self.thresholds is None else self.thresholds[keep]
        return TradeoffCurve(fpr=self.fpr[keep], tpr=self.tpr[keep], thresholds=thresholds)


def _between(first: float, values: Floats, last: float) -> Floats:
    return np.concatenate([[first], values, [last]])


def _within(name: str, values: npt.ArrayLike, most: float) -> Floats:
    """Return numbers from 0 to this one, or name the first that is not."""
    return validate.numbers(name, values, lambda x: (x >= 0) & (x <= most), f"lie in [0, {most:g}]")


def _profile(epsilons: npt.ArrayLike, deltas: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the profile as two arrays, checked."""
    first = np.atleast_1d(_within("epsilons", epsilons, np.inf))
    second = np.atleast_1d(_within("deltas", deltas, 1.0))
    validate.same_length(("epsilons", "deltas"), (first.size, second.size))
    validate.at_least("number of epsilons", first.size, least=1)
    return first, second


# --- Gaussian curves beside others ---


def _smallest_mu(low: Floats, high: Floats) -> float:
    """Return the largest Phi^-1(TPR) - Phi^-1(FPR), rounded up; infinite at a jump, a TPR far above an FPR of nothing."""
    from scipy.special import ndtr, ndtri

    sure = low >= _SMALLEST
    mu = float(np.max(ndtri(high[sure]) - ndtri(low[sure]), initial=0.0)) * (1 + _OF_QUANTILES)
    # A Gaussian curve too jumps at 0 if it is held in doubles: as far as it gets below the smallest of them.
    jump = float(np.max(high[~sure], initial=0.0))
    return mu if jump <= float(ndtr(ndtri(_SMALLEST) + mu)) else float("inf")


def _regret(mu: float, fpr: Floats, tpr: Floats) -> float:
    """Return the largest (delta_mu(log s) - d)/(1 + s) over the pieces TPR = d + s FPR of a concave curve, rounded up.

    delta_mu(eps) = Phi(a) - e^eps Phi(a - mu) with a = mu/2 - eps/mu; Balle and Wang 2018, Theorem 8.
    """
    from scipy.special import log_ndtr, ndtr

    if mu == 0:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        slope = np.diff(tpr) / np.diff(fpr)
    slanted = slope < np.inf
    slope, fpr, tpr = slope[slanted], fpr[:-1][slanted], tpr[:-1][slanted]
    delta, epsilon = np.ones_like(slope), np.log(slope)
    if mu < np.inf:
        with np.errstate(over="ignore"):
            a = mu / 2 - epsilon / mu
        delta = ndtr(a) - np.exp(epsilon + log_ndtr(a - mu))
    over = (delta - (tpr - slope * fpr)) / (1 + slope)
    return float(np.max(over, initial=0.0)) + _ROUNDING


# --- Straight-line envelopes: the lowest of many bounds on a curve, and the concave curve above one ---


def _lowest_corners(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Return the corners (FPR, TPR) of the lowest of the lines TPR = d + e^eps FPR, up to where TPR = 1 - FPR.

    Args:
        epsilons: Shape (k,), 0 or more.
        deltas: Shape (k,), in [0, 1].

    >>> [axis.tolist() for axis in _lowest_corners(np.array([0.0]), np.array([0.5]))]
    [[0.0, 0.25], [0.5, 0.75]]
    """
    order = np.lexsort((deltas, epsilons))
    with np.errstate(over="ignore"):  # a line too steep for a double is upright
        slopes, offsets = np.exp(epsilons[order]), deltas[order]
    end = float(np.max((1 - offsets) / (1 + slopes)))
    lines: list[tuple[float, float]] = []
    for slope, offset in zip(slopes.tolist(), offsets.tolist(), strict=True):
        if lines and offset >= lines[-1][1]:
            continue  # steeper, and no lower at 0
        if lines and slope == lines[-1][0]:
            lines.pop()
        while len(lines) > 1 and _meet(lines[-2], lines[-1]) <= _meet(lines[-1], (slope, offset)):
            lines.pop()
        lines.append((slope, offset))
    fpr, tpr = [0.0], [lines[-1][1]]
    for flatter, steeper in zip(lines[-2::-1], lines[:0:-1], strict=True):
        at = _meet(flatter, steeper)
        if at < end:
            fpr.append(at)
            tpr.append(flatter[1] + flatter[0] * at)
    return np.array([*fpr, end]), np.array([*tpr, 1 - end])


def _meet(flatter: tuple[float, float], steeper: tuple[float, float]) -> float:
    """Return the FPR at which two lines (slope, offset) cross."""
    return (flatter[1] - steeper[1]) / (steeper[0] - flatter[0])


def concave_corners(fpr: Floats, tpr: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the smallest concave curve above a rising one; no two share a TPR.

    >>> [axis.tolist() for axis in concave_corners(np.array([0, 0.5, 1.0]), np.array([0, 0.1, 1.0]))]
    [[0.0, 1.0], [0.0, 1.0]]
    """
    points: list[tuple[float, float]] = []
    for x, y in zip(fpr.tolist(), tpr.tolist(), strict=True):
        if points and y <= points[-1][1]:
            continue
        while len(points) > 1:
            (left, low), (middle, between) = points[-2:]
            if (between - low) * (x - left) > (y - low) * (middle - left):
                break  # above the line from the left to the new point
            points.pop()
        points.append((x, y))
    corners = np.array(points)
    return corners[:, 0], corners[:, 1]
