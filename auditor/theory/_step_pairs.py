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
from enum import Enum

import numpy as np

from auditor.choices import DPSGD, Adjacency
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["StepPair", "log_mixture", "loss_law"]

_REACH = 10  # in noise standard deviations: normal tails of 1e-23
# Up to here e^z - 1 is computed as such; beyond, in logs.
_LARGE = 30.0


class StepPair(Enum):
    """What one step lets an attacker tell apart."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    FIXED_SIZE = "replace-one, fixed size"

    @classmethod
    def of(cls, training: DPSGD, adjacency: Adjacency) -> "StepPair":
        """Return the pair of a training description; batches of a fixed size know replaced records only."""
        if training.fixed_size:
            return cls.FIXED_SIZE
        return cls.REPLACE_ONE if adjacency is Adjacency.REPLACE_ONE else cls.ADD_REMOVE

    @property
    def distance(self) -> float:
        """How far apart the two worlds lie if the record is drawn, in clipping norms."""
        return 1.0 if self is StepPair.ADD_REMOVE else 2.0


def log_mixture(x: Floats, *, noise: float, rate: float, mean: float) -> Floats:
    """Return log of ((1-p) N(0, s^2) + p N(mean, s^2)) / N(0, s^2) at x, to the last digits also where it is tiny."""
    z = mean * (2 * x - mean) / (2 * noise**2)
    if rate == 1:
        return z
    small = np.log1p(rate * np.expm1(np.minimum(z, _LARGE)))
    return np.where(z < _LARGE, small, np.logaddexp(math.log1p(-rate), math.log(rate) + z))


def loss_law(phase: Phase, pair: StepPair, *, points: int) -> tuple[Floats, Floats, Floats]:
    """Return one step's privacy losses, ascending, and the log-masses of the two laws there; the masses sum to 1."""
    if pair is StepPair.FIXED_SIZE:
        return _fixed_size_law(phase, points)
    from scipy.special import logsumexp

    rate, noise = phase.sampling_rate, phase.noise_multiplier
    replaced = pair is StepPair.REPLACE_ONE
    x = np.linspace(-_REACH * noise - replaced, 1 + _REACH * noise, points)
    reference = -((x / noise) ** 2) / 2
    upper = log_mixture(x, noise=noise, rate=rate, mean=1.0)
    lower = log_mixture(x, noise=noise, rate=rate, mean=-1.0) if replaced else np.zeros_like(x)
    masses = [reference + part - logsumexp(reference + part) for part in (upper, lower)]
    return upper - lower, masses[0], masses[1]


def _fixed_size_law(phase: Phase, points: int) -> tuple[Floats, Floats, Floats]:
    rate, noise = phase.sampling_rate, phase.noise_multiplier
    x = np.linspace(1.0, 2 + _REACH * noise, points // 2 + 1)
    loss = log_mixture(x, noise=noise, rate=rate, mean=2.0)
    width = np.full(x.size, x[1] - x[0])
    width[0] /= 2  # the trapezoid rule: half a cell at the edge
    below = -((x / noise) ** 2) / 2 - math.log(noise * math.sqrt(2 * math.pi)) + np.log(width)
    above = below + loss
    # The atom at 0 is what is left; never quite nothing, so that its logarithm stays finite.
    rest = math.log(max(1 - float(np.exp(above).sum() + np.exp(below).sum()), 1e-300))
    losses = np.concatenate([-loss[:0:-1], [0.0], loss[1:]])
    up = np.concatenate([below[:0:-1], [np.logaddexp(rest, np.logaddexp(above[0], below[0]))], above[1:]])
    return losses, up, up[::-1]
