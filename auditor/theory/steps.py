"""One DP-SGD step's pair of output laws that is hardest on a record, and its transform as a finite sum of exponentials.

Along one record's clipped gradient, at noise s and rate p:

* add/remove: (1-p) N(0, s^2) + p N(1, s^2) against N(0, s^2);
* replace-one, batches by coins: (1-p) N(0, s^2) + p N(1, s^2) against (1-p) N(0, s^2) + p N(-1, s^2);
* replace-one, batches of a fixed size: no single pair of mechanisms, but a pair that dominates all of them. Its
  hockey-stick divergence is p delta(log(1 + (e^eps - 1)/p)), where delta is that of N(2, s^2) against N(0, s^2), and
  both orders are alike (Balle, Barthe and Gaboardi 2018, Theorem 11; Zhu, Dong and Wang 2022, Proposition 30, for
  composing it). Its privacy loss is positive as that of (1-p) N(0, s^2) + p N(2, s^2) against N(0, s^2) where that
  exceeds 0 (outputs above 1), mirrored below 0, and exactly 0 otherwise.

All three are of one form, l_a - l_b with l_m(x) = log(1 - p + p e^(m (2x - m) / (2 s^2))) and phi_s the density of N(0, s^2):
P = phi_s e^(l_a), Q = phi_s e^(l_b), a > b. The composed function is the transform

    M(z) = integral of P^z Q^(1-z) = integral over x of phi_s(x) e^(z l_a(x) + (1-z) l_b(x)),

on a line Re z = k (an order, as Renyi's): M(1) = M(0) = 1, and M of several steps is the product of theirs.

Its value at k + i t, as a sum with a proven error [own]. The integrand is analytic in |Im x| < pi s^2 / max(|a|, |b|), and
where b <= 0 <= a the loss L = l_a - l_b has an imaginary part of 0 or more in the upper half of that strip: l_m turns with
the sign of m. So the path may be moved up, to Im x = h: there |e^(i t L)| = e^(-t Im L) <= 1 at every t >= 0, and where L
changes quickly, so that the phase would need many nodes, the integrand has died away. The trapezoid rule on that path, in
the middle of the strip 0 < Im x < 2 h, is wrong by at most 2 C M(k) / (e^(2 pi h / spacing) - 1), C M(k) a bound on the
integral of the absolute value along both edges (Trefethen and Weideman 2014, Theorem 5.1), *at every t at once*:

* |phi_s(x + i y)| = phi_s(x) e^(y^2 / (2 s^2)), and |1 - p + p e^(u + i v)| lies between cos(v/2) and 1 times its value at
  v = 0, so C = e^(2 h^2 / s^2) / cos(h |b| / s^2)^(k - 1), the last factor where k > 1 only.

Where the loss has a kink (batches of a fixed size, at x = 1) the path starts there: x = 1 + c log(1 + e^w), and it is the same
rule in w between Im w = 0 and twice the path's angle, with the integrals along both edges computed. In the end the weights of
every sum are added up: how far they are from the mass on the real line, beyond rounding, counts as error too.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf, logsumexp

from auditor.core import Floats, Phase
from auditor.theory import gaussian
from auditor.theory.gaussian import StepPair

# Normal tails beyond so many standard deviations weigh less than 1e-20.
_REACH = 9.5
# e^-44 of the largest value is nothing to a double.
_NEGLIGIBLE = 44.0
# Digits of the trapezoid rule in e-folds, for one step; more for many.
_DIGITS = 40.0
# Heights of the path and angles of the ray that are tried, as shares of the largest there is.
_SHARES = np.linspace(0.02, 0.98, 33)
# Points at which an integrand is looked at to see where it has mass, at most.
_MOST_POINTS = 200_000
_FEW_POINTS = 2_000
# Up to so many reaches the grid is even.
_NEAR = 8.0
# How near a ray starts to its first point: what lies nearer weighs e^-46 of what a step weighs.
_NEAREST = -46.0
# Losses, and multiples of them by the order, up to here have a series of four terms.
_SMALL = 1e-4
# Rounding errors of one term, in units of the last place, besides those of the exponent.
_ULPS = 12.0
_UNIT = 2.0**-53
# Beyond, e^x leaves the range of a double.
_LARGEST = 700.0

Complexes = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Exponentials:
    """M(k + i t) = M(k) (1 + sum over j of weight_j (e^(i t loss_j) - 1)) for each of K kinds of step, at every t >= 0.

    Attributes:
        weight: Shape (K, J).
        loss: Shape (K, J), with imaginary parts of 0 or more.
        log_mass: Shape (K,), log M(k).
        error: Shape (K,), how far the bracket is from the truth at most, but for rounding.
        slack: Shape (K,), rounding error of ``log_mass`` at most.
        atom: Shape (K,), the weight of the one term at loss 0, if there is one.
    """

    weight: Complexes
    loss: Complexes
    log_mass: Floats
    error: Floats
    slack: Floats
    atom: Floats

    @classmethod
    def checked(
        cls, weight: Complexes, loss: Complexes, log_mass: Floats, slack: Floats, error: Floats, atom: Floats
    ) -> "Exponentials":
        """Return sums whose losses have no rounding below the real line, and whose weights are held to the mass."""
        result = cls(weight, loss.real + 1j * np.maximum(loss.imag, 0.0), log_mass, error, slack, atom)
        apart = np.abs(weight.sum(axis=1) - 1) - result.rounding[0] - slack
        return replace(result, error=error + np.maximum(apart, 0.0))

    @cached_property
    def size(self) -> Floats:
        """Shape (K, J), the absolute values of the weights."""
        return np.abs(self.weight)

    @cached_property
    def rounding(self) -> tuple[Floats, Floats]:
        """Shape (K,) each: the bracket is rounded by the first at most, and by t times the second."""
        digits = self.size * (_ULPS + np.abs(np.log(np.maximum(self.size, 1e-300))))
        return 2 * _UNIT * digits.sum(axis=1), _UNIT * (digits * np.abs(self.loss)).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Steps(ABC):
    """Kinds of step of one form.

    Attributes:
        noise: Shape (K, 1), s.
        rate: Shape (K, 1), p, in (0, 1).
        count: Shape (K,), how many steps of each kind.
    """

    noise: Floats
    rate: Floats
    count: Floats

    @property
    def backward(self) -> "Steps":
        """The two laws in the other order; by default they are equal in both."""
        return self

    @abstractmethod
    def log_masses(self, order: float) -> tuple[Floats, Floats]:
        """Return log M(order) of each kind, shape (K,), and its rounding error at most."""

    @abstractmethod
    def exponentials(self, order: float) -> Exponentials:
        """Return the transform on the line Re z = order."""

    def unequal(self, order: float) -> tuple[Floats, Floats]:  # noqa: ARG002 - they are equal
        """Return how unequal the steps of each kind are, V and q of `auditor.theory.schedules`, shape (K,) each."""
        return np.zeros(self.count.shape), np.zeros(self.count.shape)

    @property
    def digits(self) -> float:
        """Required error of one step's sum, in e-folds, for that of all steps to be small."""
        return _DIGITS + math.log(max(float(self.count.max()), 1.0))

    def _too_many(self, length: Floats, spacing: Floats) -> bool:
        """Return whether there is mass so far out that the divergence is of no use."""
        return _points(length, spacing) > max(_MOST_POINTS / self.count.size, _FEW_POINTS)

    def _log_normal(self, x: Any, width: Any) -> Any:
        """Return log(phi_s(x) width)."""
        return -((x / self.noise) ** 2) / 2 + np.log(width / (self.noise * math.sqrt(2 * math.pi)))


@dataclass(frozen=True, eq=False)
class Line(Steps):
    """Coins: (1-p) N(0, s^2) + p N(a, s^2) against (1-p) N(0, s^2) + p N(b, s^2), b <= 0 <= a; outputs on a line."""

    first: float
    second: float

    @property
    def backward(self) -> "Steps":
        """The two laws in the other order, seen in the mirror."""
        if self.first == -self.second:
            return self
        return Line(self.noise, self.rate, self.count, -self.second, -self.first)

    def log_masses(self, order: float) -> tuple[Floats, Floats]:
        """Return log M(order), from the integral of M - 1.

        Its integrand is phi_s e^(l_b) (r^k - 1 - k (r - 1)) with r = e^(l_a - l_b): what is taken off integrates to 0, and
        what is left is nowhere negative and keeps its digits where M is near 1.
        """
        low, high = self._window(order)
        low = np.minimum(low, self.second - _REACH * self.noise)
        high = np.maximum(high, self.first + _REACH * self.noise)
        spacing = self._strip(order)[1]
        if self._too_many(high - low, spacing):
            return np.full(self.count.shape, math.inf), np.zeros(self.count.shape)
        x, width = _even(low, high, spacing)
        upper, lower = self._losses(x)
        loss, base = upper - lower, self._log_normal(x, width)
        k, less = order, order - 1
        # For small losses its Taylor series.
        small = np.maximum(1.0, order) * np.abs(loss) < _SMALL
        near = np.where(small, loss, 0.0)
        series = 1 + near / 3 * (k + 1 + near / 4 * (k * k + k + 1 + near / 5 * (k + 1) * (k * k + 1)))
        with np.errstate(over="ignore", invalid="ignore"):
            plain = np.exp(upper) * np.expm1(less * loss), -less * np.exp(lower) * np.expm1(loss)
            parts = [
                np.where(small, np.exp(lower) * k * less / 2 * near**2 * series, plain[0]),
                np.where(small, 0.0, plain[1]),
            ]
        return _log_one_plus(base, parts, base + order * upper + (1 - order) * lower)

    def exponentials(self, order: float) -> Exponentials:
        """Return the transform on the line Re z = order, from the path in the middle of the strip."""
        log_mass, slack = self.log_masses(order)
        height, spacing = self._strip(order)
        real, width = _even(*self._window(order), spacing)
        x = real + 1j * height
        upper, lower = self._losses(x)
        loss = upper - lower
        weight = np.exp(self._log_normal(x, width) + order * upper + (1 - order) * lower - log_mass[:, None])
        error = np.full(log_mass.size, 2 * math.exp(-self.digits) + math.exp(4 - _NEGLIGIBLE))
        return Exponentials.checked(weight, loss, log_mass, slack, error, np.zeros(log_mass.size))

    def _losses(self, x: Any) -> tuple[Any, Any]:
        """Return l_a and l_b, at real or complex outputs."""
        mixture = _log_mixture if np.iscomplexobj(x) else gaussian.log_mixture
        means, square = (self.first, self.second), 2 * self.noise**2
        upper, lower = (mixture(m * (2 * x - m) / square, self.rate) if m else 0 * x for m in means)
        return upper, lower

    def _window(self, order: float) -> tuple[Floats, Floats]:
        """Return the outputs between which the integrand is not negligible, shape (K, 1) each; from a coarse grid.

        The slope of its logarithm is at most (k a + (k-1) |b| - x)/s^2, and at least -((1-k) |b| + x)/s^2, the terms
        with k - 1 and 1 - k where these are positive. Far out the grid is geometric, and ends at the mode of N(k a, s^2).
        """
        reach = _REACH * self.noise
        far = np.maximum(order * self.first - max(order - 1, 0.0) * self.second, 0.0) * np.ones_like(reach)
        low = max(1 - order, 0.0) * self.second - reach
        near = np.minimum(far, _NEAR * reach)
        growth = far / np.maximum(near, sys.float_info.min)
        x = np.concatenate(
            [
                low + (near - low) * np.linspace(0.0, 1.0, _points(near - low, self.noise / 2)),
                near
                * growth ** np.linspace(0.0, 1.0, _points(np.log(growth), np.full_like(growth, 0.05)))[1:],
                far + reach * np.linspace(0.0, 1.0, 20)[1:],
            ],
            axis=1,
        )
        upper, lower = self._losses(x)
        return _where_heavy(x, -((x / self.noise) ** 2) / 2 + order * upper + (1 - order) * lower)

    def _strip(self, order: float) -> tuple[Floats, Floats]:
        """Return the height of the path, and the spacing of the nodes that it allows, shape (K, 1) each."""
        largest = max(abs(self.first), abs(self.second))
        height = np.minimum(math.pi / 2 * self.noise**2 / largest, 1.6 * self.noise) * _SHARES
        log_c = 2 * (height / self.noise) ** 2
        if order > 1:
            log_c = log_c - (order - 1) * np.log(np.cos(height * self.second / self.noise**2))
        spacing = 2 * math.pi * height / (self.digits + log_c)
        best = spacing.argmax(axis=1)[:, None]
        return np.take_along_axis(height, best, 1), np.take_along_axis(spacing, best, 1)


@dataclass(frozen=True, eq=False)
class Ray(Steps):
    """The losses of (1-p) N(0, s^2) + p N(a, s^2) against the same with b, above the middle, their mirror image, and 0.

    So both orders are alike: batches of a fixed size (a = 2, b = 0), and two gradients of one record (`attributes`). With
    x = (a + b)/2 + c log(1 + e^w) the path Im w = angle leaves the kink in the middle as a ray and goes on level, and the rule
    in w is as good as on a whole line.

    Attributes:
        first: a, above 0.
        second: b, shape (K, 1), in [-a, a).
    """

    first: float
    second: Floats

    def log_masses(self, order: float) -> tuple[Floats, Floats]:
        """Return log M(order): M - 1 is the integral above the middle of -phi_s e^(l_b) (e^(k l) - 1) (e^((1-k) l) - 1)."""
        (far, scale), spacing = self._far(order), self._strip(order)[1]
        if self._too_many(far / scale - _NEAREST, spacing):
            return np.full(self.count.shape, math.inf), np.zeros(self.count.shape)
        x, width, path = self._nodes(order, angle=0.0, spacing=spacing)
        loss, base = path.real, self._log_normal(x.real, width.real)
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [-np.expm1(order * loss) * np.expm1((1 - order) * loss)]
        with np.errstate(divide="ignore"):
            middle = np.log(self._middle)
        whole = np.concatenate([middle, base + order * loss, base + (1 - order) * loss], axis=1)
        return _log_one_plus(base, parts, whole)

    @property
    def _middle(self) -> Floats:
        """The mass at loss 0, shape (K, 1): up to the middle and as far beyond the origin, without the record."""
        return np.asarray((1 - self.rate) * erf(self._start / (self.noise * math.sqrt(2))))

    @property
    def _start(self) -> Floats:
        return (self.first + self.second) / 2

    def _log_normal(self, x: Any, width: Any) -> Any:
        return super()._log_normal(x, width) + self._lower(x)

    def _lower(self, x: Any) -> Any:
        mixture = _log_mixture if np.iscomplexobj(x) else gaussian.log_mixture
        return mixture(self._exponent(self.second, x), self.rate)

    def _exponent(self, mean: Any, x: Any) -> Any:
        return mean * (2 * x - mean) / (2 * self.noise**2)

    def _loss(self, x: Any, beyond: Any) -> Any:
        """Return the loss at x, so far beyond the middle: its imaginary part is 0 or more on every path of `_nodes`.

        That of l_m = log(1 - p + p e^(u + i v)) has the sign of m, so only second > 0 is in question. Both u and v > 0
        are larger for first than for second right of the middle. Where the path is left of it, v <= 1.3 and
        tan(v) |Re(x - middle)| <= 0.4 Im(x - middle) outweigh that.
        """
        lower, apart = self._lower(x), (self.first - self.second) * beyond / self.noise**2
        # Given the output, the odds that it was drawn: so no digits are lost where gradients hardly differ.
        drawn = self.rate * np.exp(self._exponent(self.second, x) - lower)
        near = log1p_complex(drawn * np.expm1(np.where(apart.real < 1, apart, 0.0)))
        return np.where(apart.real < 1, near, _log_mixture(self._exponent(self.first, x), self.rate) - lower)

    def exponentials(self, order: float) -> Exponentials:
        """Return the transform on the line Re z = order; the mirrored half is the conjugate on the mirrored path."""
        log_mass, slack = self.log_masses(order)
        angle, spacing = self._strip(order)
        x, width, loss = self._nodes(order, angle=angle, spacing=spacing)
        base = self._log_normal(x, width) - log_mass[:, None]
        first, second = np.exp(base + order * loss), np.exp(base + (1 - order) * loss).conj()
        error = np.full(log_mass.size, 4 * math.exp(-self.digits) + math.exp(4 - _NEGLIGIBLE))
        atom = self._middle * np.exp(-log_mass[:, None])
        weight = np.concatenate([atom, first, second], axis=1)
        losses = np.concatenate([np.zeros(atom.shape), loss, -loss.conj()], axis=1)
        return Exponentials.checked(weight, losses, log_mass, slack, error, atom[:, 0])

    def _strip(self, order: float) -> tuple[float, Floats]:
        """Return the angle of the path and the spacing in w, shape (K, 1), by the integrals of absolute values along both edges."""
        plain = self._along(order, 0.0)
        best, widest = 0.0, np.zeros(self.rate.shape)
        for angle in _ANGLES:
            log_c = np.maximum(self._along(order, 2 * angle) - plain, 0.0)
            spacing = 2 * math.pi * angle / (self.digits + log_c[:, None] + 1)
            if float(spacing.min()) < float(widest.min()):
                break
            best, widest = angle, spacing
        return best, widest

    def _along(self, order: float, angle: float) -> Floats:
        """Return the log of the integral of the absolute value on the path at an angle, about, shape (K,)."""
        x, width, loss = self._nodes(order, angle=angle, spacing=np.full(self.rate.shape, 0.25))
        base = self._log_normal(x, width).real
        whole = np.logaddexp(base + order * loss.real, base + (1 - order) * loss.real)
        return np.asarray(logsumexp(whole, axis=1))

    def _far(self, order: float) -> tuple[Floats, Floats]:
        """Return the reach of the mass beyond the middle, and the scale of the path, shape (K, 1) each."""
        most, near = max(order, 1 - order), _REACH * self.noise
        # Even up to the reach of the noise, then geometric.
        shares = np.linspace(0.0, 1.0, _FEW_POINTS // 2)
        growth = 1 + 2 * most * self.first / near
        even = np.broadcast_to(shares, (near.size, shares.size))
        beyond = near * np.concatenate([even, growth**shares], axis=1)
        x = self._start + beyond
        logs = self._log_normal(x, 1.0) + most * self._loss(x, beyond).real
        return _where_heavy(beyond, logs)[1], np.minimum(self.noise, 1.0) * self.noise / (2 * self.first)

    def _nodes(self, order: float, *, angle: float, spacing: Floats) -> tuple[Any, Any, Any]:
        """Return outputs, widths and losses on the path."""
        far, scale = self._far(order)
        real, width = _even(np.full_like(scale, _NEAREST), far / scale, spacing)
        grown = np.exp(-np.abs(real) + 1j * np.where(real > 0, -angle, angle))
        # log(1 + e^w), and e^w/(1 + e^w), without overflow.
        beyond = scale * (log1p_complex(grown) + np.where(real > 0, real + 1j * angle, 0.0))
        share = np.where(real > 0, 1.0, grown) / (1 + grown)
        x = self._start + beyond
        return x, scale * share * width, self._loss(x, beyond)


def together(phases: Sequence[Phase], pair: StepPair) -> Steps:
    """Return steps whose sampling rates are below 1, to be composed at once."""
    noise, rate, count = np.array(
        [(phase.noise_multiplier, phase.sampling_rate, phase.steps) for phase in phases], dtype=np.float64
    ).T
    if pair is StepPair.FIXED_SIZE:
        return Ray(noise[:, None], rate[:, None], count, 2.0, np.zeros((len(count), 1)))
    return Line(noise[:, None], rate[:, None], count, 1.0, -1.0 if pair is StepPair.REPLACE_ONE else 0.0)


# Half the width of the strip in w, of which the best is taken: its upper edge stays below pi, where log(1 + e^w) branches.
_ANGLES = (1.3, 0.6, 0.25, 0.1)


def log1p_complex(z: Any) -> Complexes:
    """Return log(1 + z) to the last digits also where z is tiny, which numpy's own does not."""
    real, imaginary = z.real, z.imag
    with np.errstate(divide="ignore"):  # at z = -1
        size = np.log1p(np.maximum(2 * real + real * real + imaginary * imaginary, -1.0)) / 2
    return np.asarray(size + 1j * np.arctan2(imaginary, 1 + real))


def _log_mixture(z: Any, rate: Floats) -> Complexes:
    """Return log(1 - p + p e^z) at complex z with an imaginary part within (-pi, pi), continuous, without overflow."""
    log_odds = np.log(rate) - np.log1p(-rate)
    far = z.real + log_odds > 0
    near = log1p_complex(rate * np.expm1(np.where(far, 0.0, z)))
    rest = np.exp(-np.where(far, z + log_odds, 1.0))
    return np.where(far, z + np.log(rate) + log1p_complex(rest), near)


def _even(low: Floats, high: Floats, spacing: Floats) -> tuple[Floats, Floats]:
    """Return the points from low to high, at most this far apart, shape (K, J), and how far apart, shape (K, 1)."""
    count = _points(high - low, spacing)
    width = (high - low) / (count - 1)
    return low + width * np.arange(count), width


def _points(length: Floats, spacing: Floats) -> int:
    """Return the number of points that are at most this far apart, on the longest of several lengths."""
    return math.ceil(float(np.max(length / spacing))) + 2


def _where_heavy(x: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Return the points around those of a grid at which a logarithm is near its largest, shape (K, 1) each."""
    keep = logs >= logs.max(axis=1, keepdims=True) - _NEGLIGIBLE
    last = keep.shape[1] - 1
    start = np.maximum(keep.argmax(axis=1) - 1, 0)[:, None]
    end = np.minimum(last + 1 - keep[:, ::-1].argmax(axis=1), last)[:, None]
    x = np.broadcast_to(x, keep.shape)
    return np.take_along_axis(x, start, 1), np.take_along_axis(x, end, 1)


def _log_one_plus(base: Floats, parts: list[Floats], logs: Floats) -> tuple[Floats, Floats]:
    """Return log(1 + sum of e^base (sum of parts)), and its rounding; where that is not near 0, the log of the sum of e^logs."""
    weight = np.exp(base)
    with np.errstate(over="ignore", invalid="ignore"):
        excess = (weight * sum(parts)).sum(axis=1)
        slack = 16 * _UNIT * (weight * sum(np.abs(part) for part in parts)).sum(axis=1)
    near = np.abs(excess) < 1 / 2
    result = np.where(
        near, np.log1p(np.clip(np.where(near, excess, 0.0), -0.5, 0.5)), logsumexp(logs, axis=1)
    )
    return result, np.where(near, 2 * slack, _UNIT * (64 + 4 * np.abs(result)))


# --- The exact epsilon of one sampled step at any delta: the step's privacy profile, inverted ---
#
# Added records and batches of a fixed size: the sampled step's larger delta is q delta_Gauss(log(1 + (e^eps - 1)/q)), so
# its epsilon is the Gaussian's at delta/q, amplified; subsampling amplification loses nothing there (Balle, Barthe and
# Gaboardi 2018, Theorems 8, 9 and 11).
#
# Replaced records and coins, P and Q of `auditor.theory.steps`: the best event is an output x > c, and with
# R(t) = Phi(-t)/phi(t) the normal tails cancel into two positive parts [own],
#
#     delta = q (Phi((1-c)/s) - (n_1/n_0) Phi(-c/s)) + q e^eps (n_-1/n_0) (Phi(-c/s) - (n_0/n_-1) Phi((-1-c)/s)),
#
# n_m the density of N(m, s^2) at c and e^eps the ratio of the two mixtures there. Each bracket is the delta of two
# Gaussians 1/s apart, which `auditor.theory.gaussian` knows to the last digits.


# Outside, the squares leave the range of a double: less noise is beyond all use, more counts as this much.
_LEAST_NOISE = 1e-150
_MOST_NOISE = 1e150


def step_epsilons(noise: Floats, rate: Floats, pair: StepPair, *, deltas: npt.ArrayLike) -> Floats:
    """Return the smallest epsilon of one step at each delta, of both orders the larger, rounded up.

    Args:
        noise: Noise multipliers, above 0.
        rate: Sampling rates in (0, 1], as many.
        pair: The pair of output laws of a step.
        deltas: A shape that goes with these, 0 or more; at 0 the epsilon is infinite.

    >>> one = np.ones(1)
    >>> step_epsilons(one, 0.01 * one, StepPair.REPLACE_ONE, deltas=1e-8).round(3).tolist()
    [0.849]
    """
    noise, rate, delta = np.broadcast_arrays(noise, rate, np.asarray(deltas, dtype=np.float64))
    with np.errstate(over="ignore"):
        unsampled = gaussian.gaussian_epsilons(pair.distance / noise, deltas=delta / rate)
    result = gaussian.log_mixture(unsampled, rate)
    if pair is not StepPair.REPLACE_ONE:
        return result
    # Amplified, it is a bound here too: good where records are always drawn, or epsilon is infinite.
    exact = (rate < 1) & (noise > _LEAST_NOISE) & (delta > 0)
    noise, rate, log_delta = np.minimum(noise[exact], _MOST_NOISE), rate[exact], np.log(delta[exact])
    none = np.log(rate) + np.log(erf(1 / (noise * np.sqrt(2)))) <= log_delta
    # By halving the range of a = (1 - c)/s.
    a = gaussian.last_below(log_delta, lambda a: _at(a, noise, rate)[1], highest=1 / noise)
    result[exact] = np.minimum(result[exact], np.where(none, 0.0, _at(a, noise, rate)[0]))
    return result


def _at(a: Floats, noise: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Return epsilon and the logarithm of delta where the event's edge is c = 1 - a s."""
    edge, mu = 1 - a * noise, 1 / noise
    towards, away = (2 * edge - 1) / (2 * noise**2), (-2 * edge - 1) / (2 * noise**2)
    epsilon = np.maximum(gaussian.log_mixture(towards, rate) - gaussian.log_mixture(away, rate), 0.0)
    first = gaussian.log_delta_at(a, mu)
    second = epsilon + away + gaussian.log_delta_at(np.maximum(-edge / noise, gaussian.FURTHEST), mu)
    return epsilon, np.log(rate) + np.logaddexp(first, second)
