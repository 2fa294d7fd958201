"""Hockey-stick divergences of many composed steps, by an inversion of their transform whose error is bounded.

With M(z) = integral of P^z Q^(1-z), the product of the steps' transforms (see `auditor.theory.steps`), any order k > 1 and
z = k + i t [Lewis 2001 for the price of an option; Zhu, Dong and Wang 2022; own for the bounds],

    sup_A P(A) - e^eps Q(A) = (1/pi) integral over t > 0 of Re[M(z) e^(-(z-1) eps) / (z (z-1))] = integral of Re G(t).

At the order where |G(0)| is least (a saddle point) little cancels, so that a tiny divergence keeps its digits. Each M_1(z) of
a step is M_1(k) F(t), F(t) = sum of w_j e^(i t L_j), Im L_j >= 0, to within a known error at every t >= 0. Then, with B(t) =
sum of |w_j| e^(-t Im L_j) >= |F(t)|, which falls:

* **Tail.** |F| <= 1 too, as F is the transform of a law; let B be the smaller. Beyond t the integral is at most product of
  B^T / (pi t). And where the loss drifts, L_j = l + L'_j with real l, parts with e^(i c t), c = sum of T l - eps, give
  product of B^T (2/t + sum of T D/B) / (pi |c| t), D = sum of |w_j L'_j| e^(-t Im L_j): |F'| <= D, both fall, and the kernel
  1/(z (z-1)) is at most 1/t^2 and its slope 2/t^3. A Gaussian shift beside the steps adds 1/t, as the integral of mu^2 t
  e^(-mu^2 t^2/2) / t^2 is at most e^(-mu^2 t^2/2) / t^2 at its start. (Lemma: |M_1(t)| <= V/t, V the total variation of the density over L', is
  the same idea on the real line; moving the path needs no derivative of it.)
* **Terms** that have fallen below 1e-23 at t are left out from there on, and their size is added to the error.
* **Panels.** On a Bernstein ellipse around a panel [c - H, c + H], its points c + d with |d| <= R, Taylor's formula gives
  |F(c + d)| <= |F(c) + d F'(c)| + R^2 S/2 with S = sum of |w_j L'_j^2 e^(i (c + d) L'_j)| at most, and |1 + v|^T <= e^(T (Re v +
  |v|^2/2)). So |G| <= m on the ellipse, and n Gauss-Legendre nodes are wrong by at most (64/15) H m rho^(-2 (n-1)) /
  (1 - rho^-2) (Trefethen 2013, Theorem 19.3). Panels are halved until that is nothing, and passed over where |G| is.
* **Rounding**, of every term a few units in the last place, is carried along (Higham 2002, Section 3.1).

Batches of a fixed size have an atom at loss 0, of the same mass in both laws: it adds nothing at eps >= 0 and is taken off M.
The rest of M is at most the product of B^T less the atom's, as each F less its atom is the transform of the rest; its
slope is that of M, so there l = 0 and the two terms of the tail have sizes of their own.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.core.values import Floats
from auditor.theory.steps import Complexes, Exponentials, Steps, log1p_complex

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
# Of the Bernstein ellipse, and what is left of a bound on it after so many nodes, as a logarithm.
_RHO = 4.0
_WIDE, _HIGH = (_RHO + 1 / _RHO) / 2, (_RHO - 1 / _RHO) / 2
_GAIN = math.log(64 / 15) - 2 * (_NODES.size - 1) * math.log(_RHO) - math.log1p(-(_RHO**-2))
# The share that a tail may add, relative to the integral so far; and relative to the height of the integrand times the distance of its
# poles, as all panels.
_TAIL = 1e-10
_LEAST_TAIL = 1e-14
_PANEL = 2e-13
_SKIPPED = 1e-13
# Terms below this share, over the number of steps, are left out.
_NOTHING = 1e-20
# Panels are widened by this much after each that is good, and narrowed by this much until one is.
_WIDER, _NARROWER = 1.6, 0.6
# Numbers evaluated, a fraction of a second's work, more for each term of further kinds of step, and at most: some seconds' work.
_BUDGET, _FOR_EACH, _MOST = 3e7, 1e4, 4e8
# From so much work on the tail may be longer, with this power of it.
_CHEAP, _LAXER = 4e6, 4.0
# The cost of a panel, in numbers evaluated.
_ATTEMPT = 2e4
# Numbers in one block of the transform: few enough for the processor's cache.
_BLOCK = 12_000
_UNIT = 2.0**-53
_LARGEST = 600.0
_SMALLEST = 1e-300
_HUGE = 1e100


class _Falling:
    """The remaining terms of F from some t on.

    Attributes:
        weight, loss, size: Shape (K, J).
        gone: Shape (K,), sum of the weights left out.
        error: Shape (K,), how far F is from the truth at most.
    """

    def __init__(self, terms: Exponentials) -> None:
        self.weight, self.loss, self.size = terms.weight, terms.loss, terms.size
        self.gone, self.error = np.zeros(terms.error.size, dtype=np.complex128), terms.error

    def drop(self, t: float, *, least: float) -> None:
        """Leave out terms that have fallen below this at t."""
        now = self.size * np.exp(-t * self.loss.imag)
        keep = (now > least).any(axis=0)
        if not keep.all():
            self.gone = self.gone + self.weight[:, ~keep].sum(axis=1)
            self.error = self.error + now[:, ~keep].sum(axis=1)
            self.weight, self.loss = self.weight[:, keep], self.loss[:, keep]
            self.size = self.size[:, keep]

    def unlike(self, t: Floats) -> Complexes:
        """Return F(t) - 1, shape (n, K)."""
        result = np.empty((t.size, self.gone.size), dtype=np.complex128)
        kinds = max(1, _BLOCK // max(self.loss.shape[1], 1))
        for first in range(0, self.gone.size, kinds):
            here = slice(first, first + kinds)
            result[:, here] = _sums(t, self.loss[here], self.weight[here])
        return np.asarray(result - self.gone)

    def slope(self, t: float) -> tuple[Complexes, Complexes]:
        """Return F(t) and the sums of w_j L_j e^(i t L_j), shape (K,) each."""
        turned = self.weight * np.exp(-t * self.loss.imag) * _turn(t * self.loss.real)
        return 1 + self.unlike(np.array([t]))[0], np.asarray((turned * self.loss).sum(axis=1))

    def bound(self, t: float, *, still: bool) -> tuple[Floats, Floats, Floats]:
        """Return B, D and l at t, shape (K,) each; l is 0 where the loss is to stay as it is."""
        now = self.size * np.exp(-t * self.loss.imag)
        total = now.sum(axis=1) + self.error
        middle = np.zeros(total.shape) if still else (now * self.loss.real).sum(axis=1) / total
        # On the real line F is the transform of a law, so it is never larger than 1.
        return (
            np.minimum(total, 1 + self.error),
            (now * np.abs(self.loss - middle[:, None])).sum(axis=1),
            middle,
        )


def _sums(t: Floats, loss: Complexes, weight: Complexes) -> Complexes:
    """Return the sums of w_j (e^(i t L_j) - 1), shape (n, K)."""
    half, down = np.ascontiguousarray(loss.real) / 2, -np.ascontiguousarray(loss.imag)
    real, imaginary = np.ascontiguousarray(weight.real), np.ascontiguousarray(weight.imag)
    result = np.empty((t.size, loss.shape[0]), dtype=np.complex128)
    for block in np.array_split(np.arange(t.size), max(1, -(-t.size * loss.size // _BLOCK))):
        at = t[block, None, None]
        # With q the tangent of half the angle, sin = 2 q/(1 + q^2) and cos - 1 = -2 q^2/(1 + q^2): a function that NumPy
        # vectorises, and no digit lost near 0.
        tangent, fallen = np.tan(at * half), np.expm1(at * down)
        sine = tangent * (2 * (fallen + 1) / (1 + tangent * tangent))
        fallen -= tangent * sine  # e^-y cos - 1
        result[block] = np.einsum("kj,nkj->nk", real, fallen) - np.einsum("kj,nkj->nk", imaginary, sine)
        turned = np.einsum("kj,nkj->nk", real, sine) + np.einsum("kj,nkj->nk", imaginary, fallen)
        result[block] += 1j * turned
    return result


def _turn(angle: Floats) -> Complexes:
    """Return e^(i angle)."""
    tangent = np.tan(angle / 2)
    square = tangent * tangent
    return np.asarray((1 - square + 2j * tangent) / (1 + square))


@dataclass(frozen=True, eq=False)
class Line:
    """The transform on a line Re z = order, ready for epsilons around a centre.

    Attributes:
        order: k.
        log_mass: log M(k).
        t: Shape (n,), nodes.
        value: Shape (n,), M(k + i t) / M(k) / (z (z - 1)) with the weights of the nodes.
        error: Bound on the error of their sum.
    """

    order: float
    log_mass: float
    t: Floats
    value: Complexes
    error: float

    def between(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return bounds on sup P(A) - e^eps Q(A), lower and upper, at epsilons within the reach, shape (m,)."""
        result = np.array([self._sum(value) for value in epsilon.tolist()]).reshape(-1, 2)
        scale = np.exp(np.minimum(self.log_mass - (self.order - 1) * epsilon, _LARGEST))
        error = scale * (self.error + result[:, 1])
        return scale * result[:, 0] - error, scale * result[:, 0] + error

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """Return the sum at one epsilon, over its scale, and its rounding."""
        angle = epsilon * self.t
        turned = _turn(angle).conj() * self.value
        return float(turned.real.sum()), 8 * _UNIT * float((np.abs(angle) + 8) @ np.abs(self.value))


class _Integrand:
    """G on a line Re z = order, for epsilons within ``reach`` of ``centre``: its values, and bounds on it."""

    def __init__(self, steps: Steps, *, order: float, mu: float, centre: float, reach: float) -> None:
        terms = steps.exponentials(order)
        self.steps, self.order, self.mu, self.centre, self.reach = steps.count, order, mu, centre, reach
        self.terms, self.rounding = _Falling(terms), terms.rounding
        self.spread, self.apart = steps.unequal(order)
        atoms = mu == 0 and bool(np.all(terms.atom > 0))
        self.atom = float(self.steps @ np.log(terms.atom)) if atoms else -math.inf
        self.log_mass = float(self.steps @ terms.log_mass) + order * (order - 1) * mu**2 / 2
        self.seen = 0.0
        self.slack = float(self.steps @ terms.slack) + 4 * _UNIT * abs(self.log_mass)

    def tail(self, t: float) -> float:
        """Return the log of a bound on the rest beyond t."""
        atom = self.atom > -math.inf
        total, spread, middle = self.terms.bound(t, still=atom)
        whole = float(self.steps @ np.log(total)) - (t * self.mu) ** 2 / 2
        size = whole
        if atom:  # of B^T less the atom's
            size += math.log(max(-math.expm1(min(self.atom - whole, 0.0)), _SMALLEST))
        drift = float(self.steps @ middle) - self.centre + (2 * self.order - 1) * self.mu**2 / 2
        drift = abs(drift) - self.reach
        result = size - math.log(t)
        if drift > 0:
            # The kernel's two terms, one of a Gaussian part, and the slope of F.
            ends = size + math.log((3 if self.mu else 2) / t)
            slope = whole + math.log(max(float(self.steps @ (spread / total)), _SMALLEST))
            result = min(result, float(np.logaddexp(ends, slope)) - math.log(t * drift))
        if self.spread.any():  # unequal steps: V/2 |A - B|^2 / t^2 times what the others are
            shares = float(self.spread @ np.maximum(total, _SMALLEST) ** -2)
            result = float(np.logaddexp(result, whole + 2 + math.log(2 * shares / t)))
        return result - math.log(math.pi)

    def bounds(self, centre: float, half: float) -> tuple[float, float, float]:
        """Return logs of bounds on M/M(k) on a panel, and on M/M(k) e^(-i t eps) on the ellipse around it, and what unequal steps add."""
        terms = self.terms
        value, slope = terms.slope(centre)
        damped = terms.size * np.exp(-max(centre - _WIDE * half, 0.0) * terms.loss.imag)
        middle = (damped * terms.loss).sum(axis=1) / np.maximum(damped.sum(axis=1), _SMALLEST)
        apart = terms.loss - middle[:, None]
        size = np.maximum(np.abs(value), _SMALLEST)
        relative = slope / value  # F'/F, over i
        plain = size * np.exp(np.clip(centre * middle.imag, None, _LARGEST))
        linear = 1j * complex(self.steps @ relative) - centre * self.mu**2
        linear += 1j * ((2 * self.order - 1) * self.mu**2 / 2 - self.centre)
        square = terms.size * np.abs(apart) ** 2

        def growth(wide: float, high: float) -> float:
            falls = np.where(apart.imag > 0, centre - wide, centre + wide) * apart.imag
            second = (square * np.exp(np.minimum(high * np.abs(apart.real) - falls, _LARGEST))).sum(axis=1)
            bent = np.minimum((max(wide, high) ** 2 / 2) * second / plain, _HUGE)
            first = np.abs(relative - middle) * max(wide, high)
            return (
                abs(linear.real) * wide
                + (abs(linear.imag) + self.reach) * high
                + float(self.steps @ (bent + (first + bent) ** 2 / 2))
                + (self.mu * max(wide, high)) ** 2 / 2
            )

        start = float(self.steps @ np.log(size)) - (centre * self.mu) ** 2 / 2
        around = start + growth(_WIDE * half, _HIGH * half)
        atom = self.atom + (self.centre + self.reach) * _HIGH * half
        here = float(np.logaddexp(start + growth(half, 0.0), self.atom))
        ends = here, float(np.logaddexp(around, atom))
        if not self.spread.any():
            return *ends, 0.0
        # Unequal steps are V/2 |A - B|^2 off, times what the others are: each is F + (w_j - w) (A - B).
        least = np.maximum(size * np.exp(-half * np.abs(relative)), _SMALLEST)
        times = (self.order**2 + (centre + half) ** 2) / (self.order * (self.order - 1))
        apart = times * self.apart / least
        others = here + float(np.sqrt(self.steps * self.spread) @ apart)
        with np.errstate(over="ignore"):
            squares = float(self.spread @ apart**2)
        unequal = squares / times * half / (self.order * (self.order - 1)) / math.pi
        return *ends, unequal * math.exp(min(others, _LARGEST))

    def values(self, t: Floats) -> tuple[Complexes, Floats]:
        """Return M/M(k) less the atom at t, and its relative rounding error at most."""
        unlike = self.terms.unlike(t)
        gaussian = (1j * t * (2 * self.order - 1) - t**2) * self.mu**2 / 2
        each = log1p_complex(unlike)  # minus infinity where F is 0
        log = each.real @ self.steps + 1j * (each.imag @ self.steps) + gaussian
        rounded = np.minimum(self.rounding[0], np.multiply.outer(t, self.rounding[1]))
        rounded = (rounded / np.maximum(np.abs(1 + unlike), _SMALLEST)) @ self.steps
        rounded += 4 * _UNIT * np.minimum(np.abs(log), _LARGEST)
        return np.asarray(np.exp(log) - math.exp(self.atom), dtype=np.complex128), rounded

    def kernel(self, t: Any) -> Any:
        """Return 1 / (z (z - 1))."""
        z = self.order + 1j * t
        return 1 / (z * (z - 1))


@dataclass(frozen=True)
class _Panel:
    """A part of the path, with nodes unless its half-width is 0, and its contribution to the error."""

    centre: float
    half: float
    error: float


def _panels(integrand: _Integrand, pole: float) -> Iterator[_Panel]:
    """Yield panels from t = 0 on until the rest is zero, or costs more than it is worth."""
    height = pole * abs(integrand.kernel(0.0))
    least = _NOTHING / max(float(integrand.steps.max()), 1.0) / 1000
    start, half, work = 0.0, pole / (2 * _WIDE), 0.0
    most = min(_BUDGET + _FOR_EACH * integrand.terms.loss[1:].size, _MOST)
    while True:
        tail = math.log(_HUGE)
        if start:
            integrand.terms.drop(start, least=least)
            tail = min(integrand.tail(start), tail)
        # The more it costs, the less exact.
        share = _TAIL * (1 + work / _CHEAP) ** _LAXER * abs(integrand.seen)
        if tail < math.log(max(_LEAST_TAIL * height, share)) or work > most:
            yield _Panel(start, 0.0, math.exp(tail))
            return
        work += _ATTEMPT + integrand.terms.loss.size
        middle = start + half
        here, around, unequal = integrand.bounds(middle, half)
        passed = here + math.log(2 * half / math.pi / start**2) if start else math.inf
        if passed < math.log(_SKIPPED * height):
            yield _Panel(middle, 0.0, math.exp(passed) + unequal)
        else:
            near = max(middle - _WIDE * half, 0.0)
            away = max(pole - _HIGH * half, near)
            wrong = math.inf
            if away > 0:
                kernel = max(integrand.order - _HIGH * half, near) * away
                wrong = _GAIN + around + math.log(half / math.pi / kernel)
            if not wrong < math.log(_PANEL * height):
                half *= _NARROWER
                continue
            work += _NODES.size * integrand.terms.loss.size
            yield _Panel(middle, half, math.exp(wrong) + unequal)
        start, half = start + 2 * half, half * _WIDER


def invert(steps: Steps, *, order: float, mu: float, centre: float, reach: float) -> Line:
    """Return the transform of steps, and of a Gaussian shift mu beside them, on the line Re z = order > 1."""
    integrand = _Integrand(steps, order=order, mu=mu, centre=centre, reach=reach)
    nodes: list[Floats] = [np.zeros(0)]
    values: list[Complexes] = [np.zeros(0, dtype=np.complex128)]
    error = rounding = 0.0
    pole = order - 1
    for panel in _panels(integrand, pole):
        error += panel.error
        if panel.half:
            t = panel.centre + panel.half * _NODES
            value, rounded = integrand.values(t)
            value = value * (panel.half / math.pi * _WEIGHTS) * integrand.kernel(t)
            rounding += float(np.abs(value) @ rounded)
            integrand.seen += float((value * _turn(-centre * t)).real.sum())
            nodes.append(t)
            values.append(value)
    t, value = np.concatenate(nodes), np.concatenate(values)
    # What every step's sum is off, times the integral of |1/(z (z-1))|, at most.
    off = min(float(integrand.steps @ integrand.terms.error), _LARGEST)
    error += off * math.exp(off) * (math.asinh(order / pole) + 1) / (order * math.pi)
    rounding += (integrand.slack + 8 * _UNIT) * float(np.abs(value).sum())
    return Line(order, integrand.log_mass, t, value, error + rounding)
