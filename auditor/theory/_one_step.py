"""The law of one step's privacy loss, ready for its characteristic function.

With P the outputs of the run that has the record (or the first of two records) and Q those of the other, L = log dP/dQ.
Everything here is about the measure sqrt(P Q), which both orders share:

    psi(t) = integral of sqrt(P Q) e^{i t L},    psi(0) = the Bhattacharyya coefficient of the step.

Along one record's clipped gradient, with phi_s the density of N(0, s^2), u(x) = (2 x - 1) / (2 s^2), and
l(x) = log(1 - p + p e^{u(x)}) the log-ratio of (1-p) N(0, s^2) + p N(1, s^2) to N(0, s^2):

* add/remove: L = l(x), sqrt(P Q) = phi_s e^{l/2};
* replace-one, Poisson: L = l(x) - l(-x), sqrt(P Q) = phi_s e^{(l(x) + l(-x))/2}: symmetric, so x > 0 is enough;
* replace-one, batches of fixed size (Balle, Barthe and Gaboardi 2018; Dong, Roth and Su 2022, Theorem 4.2):
  L = log(1 - p + p e^{2 (x - 1)/s^2}) and sqrt(P Q) = phi_s e^{L/2} for x > 1, their mirror image, and an atom at 0.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from auditor.values import Floats

__all__ = ["Step"]

# Normal tails beyond so many standard deviations weigh less than 1e-20.
_REACH = 9.5
# Where sqrt(P Q) weighs less than this share, also if weighed by the square of the loss, its phase need not be resolved.
_LIGHT = 1e-13
# Largest phase between two nodes, in radians.
_PHASE = 1.5
_ROUGH = 1000
# Numbers in one block of the transform: few enough for the processor's cache.
_BLOCK = 10_000
_GAUSS = 16


@dataclass(frozen=True)
class Step:
    """One step's pair of output laws, at a sampling rate below 1; see the module for its three forms."""

    noise: float
    rate: float
    replaced: bool
    fixed_size: bool

    def unlike(self, t: Floats) -> Any:
        """Return 1 - psi(t) at ascending t >= 0, real for symmetric pairs: no digits are lost where psi is near 1."""
        x, width = self._nodes(float(t[-1]))
        loss, shared, apart = self._at(x)
        weight, constant = shared * width, float(np.einsum("i,i", apart, width))
        found = []
        for block in np.array_split(t, max(1, -(-t.size * loss.size // _BLOCK))):
            # With q the tangent of half the angle a, sin(a/2)^2 = q^2 / (1 + q^2) and sin(a)/2 = q / (1 + q^2): one
            # function in place of two, and one that NumPy vectorises.
            tangent = np.multiply.outer(block, loss / 2)
            np.tan(tangent, out=tangent)
            square = tangent * tangent
            shared_weight = weight / (1 + square)
            real = np.einsum("ij,ij->i", square, shared_weight)
            if self.replaced:
                found.append(4 * real)
                continue
            found.append(2 * real - 2j * np.einsum("ij,ij->i", tangent, shared_weight))
        return np.concatenate(found) + constant

    def work(self, t: float) -> int:
        """Return how many nodes it takes at t."""
        return self._nodes(t)[0].size

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The mean and variance of the loss under sqrt(P Q)."""
        x, width = self._nodes(0.0)
        loss, shared, _ = self._at(x)
        weight = shared * width
        square = float(np.einsum("i,i,i", weight, loss, loss))
        return (0.0, 2 * square) if self.replaced else (float(np.einsum("i,i", weight, loss)), square)

    @cached_property
    def atom(self) -> float:
        """The mass of sqrt(P Q) at loss 0."""
        if not self.fixed_size:
            return 0.0
        from scipy.special import ndtr

        below, above = float(ndtr(-1 / self.noise)), float(ndtr(1 / self.noise))
        return max(0.0, (1 - self.rate) * (above - below))

    def _at(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """The loss, sqrt(P Q) and (sqrt P - sqrt Q)^2 (half of it where x covers both signs) at x."""
        log_normal = -((x / self.noise) ** 2) / 2 - math.log(self.noise * math.sqrt(2 * math.pi))
        if self.fixed_size:
            loss, base = self._log_ratio(2 * (x - 1) / self.noise**2), log_normal
        elif self.replaced:
            other = self._log_ratio((-2 * x - 1) / (2 * self.noise**2))
            loss = self._log_ratio((2 * x - 1) / (2 * self.noise**2)) - other
            base = log_normal + other
        else:
            loss, base = self._log_ratio((2 * x - 1) / (2 * self.noise**2)), log_normal
        apart = np.exp(base + np.maximum(loss, 0)) * np.expm1(-np.abs(loss) / 2) ** 2
        return loss, np.exp(base + loss / 2), apart if self.replaced else apart / 2

    def _log_ratio(self, u: Floats) -> Floats:
        """log(1 - p + p e^u), to the last digit for small p and for large u."""
        p = self.rate
        small = np.log1p(p * np.expm1(np.minimum(u, 0.0)))
        large = np.maximum(u, 0.0)
        # log(e^u (p + (1-p) e^-u)) = u + log1p((1-p) (e^-u - 1)); near u = 0 the other form keeps the digits.
        return np.where(
            u <= 0,
            small,
            np.where(
                u < 1,
                np.log1p(p * np.expm1(np.minimum(large, 1.0))),
                large + np.log1p((1 - p) * np.expm1(-large)),
            ),
        )

    def _nodes(self, t: float) -> tuple[Floats, Floats]:
        """Nodes and widths that resolve e^{i t L} wherever sqrt(P Q) has weight."""
        low, high = self._ends
        spacing = min(self.noise / 4, self.noise**2 / 2)
        if t > 0:
            spacing = min(spacing, _PHASE / (t * self._steepest))
        if self.fixed_size:
            # L = 0 at the lower end, where the trapezoid rule would see a kink.
            panels = max(4, math.ceil((high - low) / (spacing * _GAUSS / 3)))
            z, w = np.polynomial.legendre.leggauss(_GAUSS)
            half = (high - low) / panels / 2
            middles = low + half * (2 * np.arange(panels) + 1)
            return np.add.outer(middles, half * z).ravel(), np.tile(half * w, panels)
        count = math.ceil((high - low) / spacing) + 1
        x, step = np.linspace(low, high, count, retstep=True)
        width = np.full(count, float(step))
        if self.replaced:
            width[0] /= 2
        return x, width

    @property
    def _ends(self) -> tuple[float, float]:
        # The loss grows like e^u while p e^u is small, which moves the weight of its square from 0 to 2 (or 4).
        if self.fixed_size:
            return 1.0, 4 + _REACH * self.noise
        return (0.0 if self.replaced else -_REACH * self.noise), 2 + _REACH * self.noise

    @cached_property
    def _steepest(self) -> float:
        """The largest slope of the loss where sqrt(P Q) has weight."""
        x = np.linspace(*self._ends, _ROUGH)
        loss, shared, _ = self._at(x)
        slope, moved = np.abs(np.gradient(loss, x)), shared * (loss / np.abs(loss).max()) ** 2
        heavy = (shared > _LIGHT * shared.max()) | (moved > _LIGHT * moved.max())
        return float(np.max(slope[heavy]))
