"""Many different steps as a few kinds of steps, none of them more private.

Each fact is about every hockey-stick divergence H_a of a step, and so carries over to whole compositions:

* H_a grows with the sampling rate p and falls with the noise s (noise can be added afterwards).
* H_a is convex in p: it is the largest of many straight lines, one for each event.
* [own] H_a is convex in u = 2 Phi(m/2) - 1, the advantage without sampling at m = d/s noise deviations. For added
  records and fixed sizes it is enough to look without sampling, where dH_a/du = e^{eps/2 - eps^2/(2 m^2)} grows with m.
  For replaced records and n = 1/s, dH_a/du = p e^{-c^2/2} (e^{cn} + a e^{-cn})/2 at the best threshold c; there the
  slope of its logarithm is (c^2 - c y + y^2)/n, y = n (e^{cn} - a e^{-cn})/(e^{cn} + a e^{-cn}): never negative.
* So a coin that picks a step with more or with less of p or u, right on average, is no more private than the step
  between, even if the coin is seen. The number of heads of many such coins is stochastically at most that of equal
  coins whose chance of tails is the geometric mean of theirs (Boland, Singh and Cukic 2002).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from auditor.theory._step_pairs import StepPair
from auditor.training import Phase
from auditor.values import Floats

__all__ = ["MOST_PHASES", "Kind", "kinds_of"]

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
    from scipy.special import erf, erfc

    if np.ptp(rows[:, 1]):
        return rows[:, 1]
    half = pair.distance / (2 * math.sqrt(2) * rows[:, 0])
    # u, or u - 1 where u is near 1 and only its complement keeps the digits: differences are all that counts.
    return -erfc(half) if half.min() > 1 / 2 else erf(half)
