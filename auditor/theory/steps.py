"""The pair of output distributions of one DP-SGD step that is hardest on a record, for each way to draw batches.

Along one record's clipped gradient, at noise s and rate p:

* add/remove: (1-p) N(0, s^2) + p N(1, s^2) against N(0, s^2);
* replace-one, batches by coins: (1-p) N(0, s^2) + p N(1, s^2) against (1-p) N(0, s^2) + p N(-1, s^2);
* replace-one, batches of a fixed size: no single pair of mechanisms, but a pair that dominates all of them. Its
  hockey-stick divergence is p delta(log(1 + (e^eps - 1)/p)), where delta is that of N(2, s^2) against N(0, s^2), and
  both orders are alike (Balle, Barthe and Gaboardi 2018, Theorem 11; Zhu, Dong and Wang 2022, Proposition 30, for
  composing it). Its privacy loss is positive as that of (1-p) N(0, s^2) + p N(2, s^2) against N(0, s^2) where that
  exceeds 0 (outputs above 1), mirrored below 0, and exactly 0 otherwise.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf, erfc, log_ndtr, logsumexp, ndtr

from auditor.core.options import Phase
from auditor.core.values import Floats
from auditor.theory import gaussian
from auditor.theory.gaussian import StepPair

_REACH = 10  # in noise standard deviations: normal tails of 1e-23


def log_ratio(x: Floats, *, noise: float, rate: float, mean: float) -> Floats:
    """Return log of ((1-p) N(0, s^2) + p N(mean, s^2)) / N(0, s^2) at x, to the last digits also where it is tiny."""
    return gaussian.log_mixture(mean * (2 * x - mean) / (2 * noise**2), rate)


def loss_law(phase: Phase, pair: StepPair, *, points: int) -> tuple[Floats, Floats, Floats]:
    """Return one step's privacy losses, ascending, and the log-masses of the two laws there; the masses sum to 1."""
    if pair is StepPair.FIXED_SIZE:
        return _fixed_size_law(phase, points)
    rate, noise = phase.sampling_rate, phase.noise_multiplier
    replaced = pair is StepPair.REPLACE_ONE
    x = np.linspace(-_REACH * noise - replaced, 1 + _REACH * noise, points)
    reference = -((x / noise) ** 2) / 2
    upper = log_ratio(x, noise=noise, rate=rate, mean=1.0)
    lower = log_ratio(x, noise=noise, rate=rate, mean=-1.0) if replaced else np.zeros_like(x)
    masses = [reference + part - logsumexp(reference + part) for part in (upper, lower)]
    return upper - lower, masses[0], masses[1]


def _fixed_size_law(phase: Phase, points: int) -> tuple[Floats, Floats, Floats]:
    rate, noise = phase.sampling_rate, phase.noise_multiplier
    x = np.linspace(1.0, 2 + _REACH * noise, points // 2 + 1)
    loss = log_ratio(x, noise=noise, rate=rate, mean=2.0)
    width = np.full(x.size, x[1] - x[0])
    width[0] /= 2  # the trapezoid rule: half a cell at the edge
    below = -((x / noise) ** 2) / 2 - math.log(noise * math.sqrt(2 * math.pi)) + np.log(width)
    above = below + loss
    # The atom at 0 is what is left; never quite nothing, so that its logarithm stays finite.
    rest = math.log(max(1 - float(np.exp(above).sum() + np.exp(below).sum()), 1e-300))
    losses = np.concatenate([-loss[:0:-1], [0.0], loss[1:]])
    up = np.concatenate([below[:0:-1], [np.logaddexp(rest, np.logaddexp(above[0], below[0]))], above[1:]])
    return losses, up, up[::-1]


# --- Many different steps as a few kinds of steps, none of them more private ---
#
# Each fact is about every hockey-stick divergence H_a of a step, and so carries over to whole compositions:
#
# * H_a grows with the sampling rate p and falls with the noise s (noise can be added afterwards).
# * H_a is convex in p: it is the largest of many straight lines, one for each event.
# * [own] H_a is convex in u = 2 Phi(m/2) - 1, the advantage without sampling at m = d/s noise deviations. For added
#   records and fixed sizes it is enough to look without sampling, where dH_a/du = e^{eps/2 - eps^2/(2 m^2)} grows with m.
#   For replaced records and n = 1/s, dH_a/du = p e^{-c^2/2} (e^{cn} + a e^{-cn})/2 at the best threshold c; there the
#   slope of its logarithm is (c^2 - c y + y^2)/n, y = n (e^{cn} - a e^{-cn})/(e^{cn} + a e^{-cn}): never negative.
# * So a coin that picks a step with more or with less of p or u, right on average, is no more private than the step
#   between, even if the coin is seen. The number of heads of many such coins is stochastically at most that of equal
#   coins whose chance of tails is the geometric mean of theirs (Boland, Singh and Cukic 2002).


# So many different steps are composed as they are.
MOST_PHASES = 48
# Beyond, no more kinds than are composed in a few seconds: so many cells of a parameter and coins of so many chances,
# if one parameter varies and if two do.
_ONE_VARIES = (32, 4)
_TWO_VARY = (3, 2)
_MOST_KINDS = 240
# Rounding in the chance of a coin, many times over.
_SLACK = 1e-9


@dataclass(frozen=True)
class Kind:
    """Steps that each are one of some phases, by a coin of its own that the attacker sees.

    Attributes:
        parts: Probabilities and phases; the least private phase last.
        steps: How many steps.
    """

    parts: tuple[tuple[float, Phase], ...]
    steps: int

    @property
    def least_private(self) -> Phase:
        """The phase with the least noise or the largest rate."""
        return self.parts[-1][1]


def kinds_of(phases: tuple[Phase, ...], *, pair: StepPair) -> tuple[Kind, ...]:
    """Return kinds of steps that promise no more than these phases: the phases themselves if they are few."""
    if len(phases) <= MOST_PHASES:
        return tuple(Kind(((1.0, phase),), phase.steps) for phase in phases)
    table = np.array([(phase.noise_multiplier, phase.sampling_rate, phase.steps) for phase in phases])
    levels = _MOST_KINDS
    counts = _ONE_VARIES if min(np.ptp(table[:, :2], axis=0)) == 0 else _TWO_VARY
    while True:
        found = tuple(kind for alike in _alike(table, levels) for kind in _interpolated(alike, counts, pair))
        if len(found) <= _MOST_KINDS or levels == 1:
            return found
        levels = max(1, math.floor(levels / 1.2))


def _alike(table: Floats, levels: int) -> Iterator[Floats]:
    """Yield rows of noise, rate and steps that differ in one parameter: where both vary, rates are rounded up."""
    if np.ptp(table[:, 0]) == 0:
        yield table
        return
    level = _cells(table[:, 1], levels)
    for number in np.unique(level):
        rows = table[level == number]
        rows[:, 1] = rows[:, 1].max()
        yield rows


def _interpolated(table: Floats, counts: tuple[int, int], pair: StepPair) -> Iterator[Kind]:
    """Yield kinds for rows that differ in one parameter, by coins between the ends of its cells."""
    cells, chances = counts
    # Finest where a step matters most: at little noise, at large rates.
    cell = _cells(table[:, 1] if np.ptp(table[:, 0]) == 0 else 1 / table[:, 0], cells)
    for number in np.unique(cell):
        rows = table[cell == number]
        strength = _strength(rows, pair)
        weak, strong = (
            Phase(rows[end, 0].item(), rows[end, 1].item(), 1)
            for end in (strength.argmin(), strength.argmax())
        )
        reach = max(float(np.ptp(strength)), 1e-300)
        tails = np.clip((strength.max() - strength) / reach - _SLACK, 0.0, 1.0)
        chance = np.ceil(tails * chances)
        for value in np.unique(chance):
            few = chance == value
            steps = rows[few, 2]
            tail = math.exp(float(np.sum(steps * np.log(tails[few]))) / steps.sum()) if value else 0.0
            parts = ((tail, weak), (1 - tail, strong)) if tail else ((1.0, strong),)
            yield Kind(parts, int(steps.sum()))


def _cells(values: Floats, count: int) -> Floats:
    """Return the number of each value's cell, of so many equally wide ones."""
    width = float(np.ptp(values)) / count
    if width == 0:
        return np.zeros(values.size)
    cells: Floats = np.minimum(np.floor((values - values.min()) / width), count - 1)
    return cells


def _strength(rows: Floats, pair: StepPair) -> Floats:
    """Return the parameter in which divergences are convex, up to a constant: larger is less private."""
    if np.ptp(rows[:, 1]):
        return rows[:, 1]
    half = pair.distance / (2 * math.sqrt(2) * rows[:, 0])
    # u, or u - 1 where u is near 1 and only its complement keeps the digits: differences are all that counts.
    return -erfc(half) if half.min() > 1 / 2 else erf(half)


# --- The law of one step's privacy loss, ready for its characteristic function ---
#
# With P the outputs of the run that has the record (or the first of two records) and Q those of the other, L = log dP/dQ.
# Everything here is about the measure sqrt(P Q), which both orders share:
#
#     psi(t) = integral of sqrt(P Q) e^{i t L},    psi(0) = the Bhattacharyya coefficient of the step.
#
# Along one record's clipped gradient, with phi_s the density of N(0, s^2), u(x) = (2 x - 1) / (2 s^2), and
# l(x) = log(1 - p + p e^{u(x)}) the log-ratio of (1-p) N(0, s^2) + p N(1, s^2) to N(0, s^2):
#
# * add/remove: L = l(x), sqrt(P Q) = phi_s e^{l/2};
# * replace-one, Poisson: L = l(x) - l(-x), sqrt(P Q) = phi_s e^{(l(x) + l(-x))/2}: symmetric, so x > 0 is enough;
# * replace-one, batches of fixed size (Balle, Barthe and Gaboardi 2018; Dong, Roth and Su 2022, Theorem 4.2):
#   L = log(1 - p + p e^{2 (x - 1)/s^2}) and sqrt(P Q) = phi_s e^{L/2} for x > 1, their mirror image, and an atom at 0.


# Normal tails beyond so many standard deviations weigh less than 1e-20.
_LAW_REACH = 9.5
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
        below, above = float(ndtr(-1 / self.noise)), float(ndtr(1 / self.noise))
        return max(0.0, (1 - self.rate) * (above - below))

    def _at(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """The loss, sqrt(P Q) and (sqrt P - sqrt Q)^2 (half of it where x covers both signs) at x."""
        log_normal = -((x / self.noise) ** 2) / 2 - math.log(self.noise * math.sqrt(2 * math.pi))
        far = 2.0 if self.fixed_size else 1.0
        loss, base = log_ratio(x, noise=self.noise, rate=self.rate, mean=far), log_normal
        if self.replaced and not self.fixed_size:
            other = log_ratio(x, noise=self.noise, rate=self.rate, mean=-1.0)
            loss, base = loss - other, log_normal + other
        apart = np.exp(base + np.maximum(loss, 0)) * np.expm1(-np.abs(loss) / 2) ** 2
        return loss, np.exp(base + loss / 2), apart if self.replaced else apart / 2

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
            return 1.0, 4 + _LAW_REACH * self.noise
        return (0.0 if self.replaced else -_LAW_REACH * self.noise), 2 + _LAW_REACH * self.noise

    @cached_property
    def _steepest(self) -> float:
        """The largest slope of the loss where sqrt(P Q) has weight."""
        x = np.linspace(*self._ends, _ROUGH)
        loss, shared, _ = self._at(x)
        slope, moved = np.abs(np.gradient(loss, x)), shared * (loss / np.abs(loss).max()) ** 2
        heavy = (shared > _LIGHT * shared.max()) | (moved > _LIGHT * moved.max())
        return float(np.max(slope[heavy]))


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
        pair: What a step lets an attacker tell apart.
        deltas: A shape that goes with these, 0 or more; at 0 the epsilon is infinite.

    >>> one = np.ones(1)
    >>> step_epsilons(one, 0.01 * one, StepPair.REPLACE_ONE, deltas=1e-8).round(3).tolist()
    [0.849]
    """
    noise, rate, delta = np.broadcast_arrays(noise, rate, np.asarray(deltas, dtype=np.float64))
    with np.errstate(over="ignore"):
        unsampled = gaussian.gaussian_epsilons(pair.distance / noise, deltas=delta / rate)
    found = gaussian.log_mixture(unsampled, rate)
    if pair is not StepPair.REPLACE_ONE:
        return found
    # Amplified, it is a bound here too: good where records are always drawn, or epsilon is infinite.
    exact = (rate < 1) & (noise > _LEAST_NOISE) & (delta > 0)
    noise, rate, log_delta = np.minimum(noise[exact], _MOST_NOISE), rate[exact], np.log(delta[exact])
    none = np.log(rate) + np.log(erf(1 / (noise * np.sqrt(2)))) <= log_delta
    # By halving the range of a = (1 - c)/s.
    a = gaussian.last_below(log_delta, lambda a: _at(a, noise, rate)[1], highest=1 / noise)
    found[exact] = np.minimum(found[exact], np.where(none, 0.0, _at(a, noise, rate)[0]))
    return found


def _at(a: Floats, noise: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Return epsilon and the logarithm of delta where the event's edge is c = 1 - a s."""
    edge, mu = 1 - a * noise, 1 / noise
    towards, away = (2 * edge - 1) / (2 * noise**2), (-2 * edge - 1) / (2 * noise**2)
    epsilon = np.maximum(gaussian.log_mixture(towards, rate) - gaussian.log_mixture(away, rate), 0.0)
    first = gaussian.log_delta_at(a, mu)
    second = epsilon + away + gaussian.log_delta_at(np.maximum(-edge / noise, gaussian.FURTHEST), mu)
    return epsilon, np.log(rate) + np.logaddexp(first, second)


# --- The hockey-stick divergences of one step in closed form, and its privacy loss distribution, rounded up ---


# Normal tails beyond so many standard deviations weigh 1e-23.
_DELTA_REACH = 10.0


def step_deltas(phase: Phase, pair: StepPair, *, epsilons: Floats) -> tuple[Floats, Floats]:
    """Return delta at epsilons (of any sign), of the first law over the second and of the second over the first.

    The loss grows with the output x, so the best event is x > c with L(c) = eps, or x < c with L(c) = -eps.
    """
    if pair is StepPair.FIXED_SIZE:
        both = _fixed_size(phase, np.abs(epsilons))
        # Both orders are alike, so delta(-eps) = 1 - e^-eps + e^-eps delta(eps).
        both = np.where(epsilons < 0, -np.expm1(-np.abs(epsilons)) + np.exp(-np.abs(epsilons)) * both, both)
        return both, both
    noise, rate = phase.noise_multiplier, phase.sampling_rate
    other = -1.0 if pair is StepPair.REPLACE_ONE else 0.0

    def tails(mean: float, cut: Floats) -> Floats:
        """Log-probabilities that x > cut: of (1-p) N(0, s^2) + p N(mean, s^2)."""
        with np.errstate(divide="ignore"):
            rest = np.log1p(-rate)
        drawn = math.log(rate) + log_ndtr((mean - cut) / noise)
        total: Floats = np.logaddexp(rest + log_ndtr(-cut / noise), drawn)
        return total

    above = _cut(epsilons, noise, rate, pair)
    forward = np.exp(tails(1.0, above)) - np.exp(epsilons + tails(other, above))
    if pair is StepPair.REPLACE_ONE:
        return np.clip(forward, 0, 1), np.clip(forward, 0, 1)
    below = _cut(-epsilons, noise, rate, pair)
    backward = np.exp(tails(-other, -below)) - np.exp(epsilons + tails(-1.0, -below))
    return np.clip(forward, 0.0, 1.0), np.clip(backward, 0.0, 1.0)


def rounded_up(kind: Kind, pair: StepPair, *, spacing: float) -> Any:
    """Return the privacy loss distribution of one step on a grid of losses, pessimistic by connecting the dots."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution as pld

    furthest = math.ceil(max(_largest_loss(phase, pair) for _, phase in kind.parts) / spacing)
    # With added records no loss is below log(1 - p), in the one order, or above its negative in the other.
    rate = max(phase.sampling_rate for _, phase in kind.parts)
    least = furthest
    if pair is StepPair.ADD_REMOVE and rate < 1:
        least = min(furthest, math.ceil(-math.log1p(-rate) / spacing))
    epsilons = spacing * np.arange(-furthest, furthest + 1, dtype=np.float64)
    mixed = np.zeros((2, epsilons.size))
    for weight, phase in kind.parts:
        mixed += weight * np.stack(step_deltas(phase, pair, epsilons=epsilons))
    # Deltas fall with epsilon; rounding that says otherwise is taken upwards.
    falling = np.clip(np.maximum.accumulate(mixed[:, ::-1], axis=1)[:, ::-1], 0.0, 1.0)
    ranges = (
        [(-least, furthest), (-furthest, least)] if pair is StepPair.ADD_REMOVE else [(-furthest, furthest)]
    )
    masses = [
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            spacing, low, high, deltas[furthest + low : furthest + high + 1]
        )
        for deltas, (low, high) in zip(falling, ranges, strict=False)
    ]
    return pld.PrivacyLossDistribution(*masses)


def _largest_loss(phase: Phase, pair: StepPair) -> float:
    noise, rate = phase.noise_multiplier, phase.sampling_rate
    far = 2.0 if pair is StepPair.FIXED_SIZE else 1.0
    x = np.array([far + _DELTA_REACH * noise])
    loss = log_ratio(x, noise=noise, rate=rate, mean=far)
    if pair is StepPair.REPLACE_ONE:
        loss = loss - log_ratio(x, noise=noise, rate=rate, mean=-1.0)
    return loss.item()


def _cut(epsilons: Floats, noise: float, rate: float, pair: StepPair) -> Floats:
    """Return the output whose loss is this; minus infinity where no loss is as small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Added records: 1 - p + p e^z = e^eps, z = (2x - 1)/(2 s^2).
        grown = np.where(
            epsilons < 1,
            np.log(np.maximum(rate + np.expm1(np.minimum(epsilons, 1.0)), 0.0)),
            epsilons + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilons, 1.0))),
        )
        if pair is StepPair.ADD_REMOVE:
            return np.asarray(0.5 + noise**2 * (grown - math.log(rate)))
        # Replaced: with y = e^{x/s^2} and k = p e^{-1/(2 s^2)}, k y^2 + (1-p)(1 - a) y - a k = 0. By symmetry a >= 1.
        size = np.abs(epsilons)
        log_k = math.log(rate) - 1 / (2 * noise**2)
        log_b = np.log((1 - rate) / 2) + size + np.log(-np.expm1(-size))
        # y = (b + sqrt(b^2 + a k^2)) / k, b = (1-p)(a - 1)/2.
        log_root = np.logaddexp(2 * log_b, size + 2 * log_k) / 2
        return np.asarray(np.sign(epsilons) * noise**2 * (np.logaddexp(log_b, log_root) - log_k))


def _fixed_size(phase: Phase, epsilons: Floats) -> Floats:
    """Return p delta(log(1 + (e^eps - 1)/p)) for epsilons of 0 or more, delta that of N(2, s^2) against N(0, s^2)."""
    rate, mu = phase.sampling_rate, 2 / phase.noise_multiplier
    # log(1 + (e^eps - 1)/p) without overflow for large epsilon or loss of digits for small.
    stretched = epsilons + np.log(rate * np.exp(-epsilons) - np.expm1(-epsilons)) - math.log(rate)
    upper = np.exp(log_ndtr(mu / 2 - stretched / mu))
    lower = np.exp(stretched + log_ndtr(-mu / 2 - stretched / mu))
    return np.clip(rate * (upper - lower), 0.0, 1.0)
