r"""Many different steps by few levels: a bound on their law that is close to second order [own].

Every step is replaced by a coin that all can see and one of two steps, its neighbours on a grid of levels. That is never
harder to distinguish, because sup P(A) - e^eps Q(A) is convex between the levels, at every eps:

* in the sampling rate, at one noise: P and Q are linear in it, and a largest value of linear functions is convex;
* in s^m, s the noise, at one rate, where m + 1 >= d^2/(4 s^2), d the distance of the two means. At the best edge c, with
  u = -c/s, mu = 1/s, and a and b the weights (1-p)(e^eps - 1) phi(u) and p e^eps phi(u - mu), the weight of the positive part is
  a + b, and s^2 (a + 2b)/mu times the second derivative in s is

      2 (a + 2b)^2 + (a + 2b)^2 u^2 + mu a (a + 2b) u - 4 mu^2 b (a + b) >= (a + 2b)^2 (2 - mu^2) + 3 mu^2 a^2/4

  at any u, which s^m raises by (m - 1)(a + 2b)^2. Added records have b = 0 and so m + 1 >= mu^2/4; and negative eps follow
  from the two laws exchanged.

A product of pairs that dominate dominates the product (Zhu, Dong and Wang 2022, Theorem 10). Let A and B be the transforms of
two levels, over that of their mean step at the order k, and F_j = w_j A + (1 - w_j) B those of n steps between them, w their
mean chance. Then the product of F_j is that of n mean steps F, but for V/2 |A - B|^2 times what n - 2 of them are, V = sum of
(w_j - w)^2: to replace two chances by their mean changes the product by ((w_i - w_j)/2 (A - B))^2 times the other factors, and
lowers V by (w_i - w_j)^2/2. Since M(z) - 1 = z (z - 1) times the integral of e^((z-1) eps) (sup P - e^eps Q, less 1 - e^eps
where eps < 0), and one level dominates the other, |A - B| at z = k + i t is at most q |z (z - 1)|/(k (k - 1)), q its value at k.
By the mean of the factors the others are at most (1 - q)^-2, and beyond t at most e^2 B(t)^T (see `auditor.theory.inversion`).

Batches of a fixed size take the worse of the two levels instead: less noise and a larger rate never show less. Their transforms
do not fall with t, and so that bound would not either. The same rounding stands beside other steps of many kinds, where that bound
or the work on an integral that hardly falls leaves more than the rounding does: few steps, little noise and small rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from auditor.core import Array, Floats, Phase
from auditor.theory.gaussian import StepPair
from auditor.theory.steps import Exponentials, Steps, together

# Values of what differs less (the noise, or the rate), beyond which it is rounded to the worse side.
_OTHERS = 16
_UNIT = 2.0**-53
_TINY, _HUGE = 1e-300, 1e100


@dataclass(frozen=True, eq=False)
class Mixed(Steps):
    """Steps of K kinds, each of which is one of two levels by a coin that all can see.

    Attributes:
        levels: The kinds of step that are mixed.
        worse: Shape (K,), the place of the level that shows more, and ``better`` that of the other.
        share: Shape (K,), the mean chance of the worse one.
        spread: Shape (K,), V: the sum of the squared deviations from that mean.
        least: Steps that show no more.
    """

    levels: Steps
    worse: Array
    better: Array
    share: Floats
    spread: Floats
    least: Steps

    @property
    def backward(self) -> "Steps":
        """The two laws in the other order."""
        levels = self.levels.backward
        return self if levels is self.levels else replace(self, levels=levels)

    def log_masses(self, order: float) -> tuple[Floats, Floats]:
        """See `Steps.log_masses`."""
        masses, slack = self.levels.log_masses(order)
        worse, better = masses[self.worse], masses[self.better]
        rounded = slack[self.worse] + slack[self.better] + 8 * _UNIT * (np.abs(worse) + np.abs(better))
        return better + np.log1p(self.share * np.expm1(worse - better)), rounded

    def exponentials(self, order: float) -> Exponentials:
        """See `Steps.exponentials`."""
        terms, (mass, slack) = self.levels.exponentials(order), self.log_masses(order)
        parts = [
            (share * np.exp(terms.log_mass[place] - mass), place)
            for share, place in ((self.share, self.worse), (1 - self.share, self.better))
        ]
        return Exponentials.checked(
            np.concatenate([share[:, None] * terms.weight[place] for share, place in parts], axis=1),
            np.concatenate([terms.loss[place] for _, place in parts], axis=1),
            mass,
            slack,
            np.sum([share * terms.error[place] for share, place in parts], axis=0),
            np.sum([share * terms.atom[place] for share, place in parts], axis=0),
        )

    def unequal(self, order: float) -> tuple[Floats, Floats]:
        """See `Steps.unequal`."""
        levels, mass = self.levels.log_masses(order)[0], self.log_masses(order)[0]
        apart = np.exp(levels[self.worse] - mass) - np.exp(levels[self.better] - mass)
        return self.spread, np.abs(apart)


# Kinds of step that stay as they are, and levels of what differs more (the noise, or the rate), by coins or by rounding. Batches of
# a fixed size take some thirty times as long.
_KINDS, _LEVELS, _ROUNDED = 1024, 512, 64
_KINDS_OF_FIXED_SIZE, _ROUNDED_OF_FIXED_SIZE = 64, 32


def most_kinds(*, fixed_size: bool) -> int:
    """Return how many kinds of step are composed as they are."""
    return _KINDS_OF_FIXED_SIZE if fixed_size else _KINDS


def merged(phases: Sequence[Phase], pair: StepPair) -> Steps:
    """Return steps of a few hundred kinds that show no less than the given ones, which stay as they are if they have no more."""
    steps, fixed_size = together(phases, pair), pair is StepPair.FIXED_SIZE
    if steps.count.size <= most_kinds(fixed_size=fixed_size):
        return steps
    if fixed_size:
        return rounded(phases, pair, levels=_ROUNDED_OF_FIXED_SIZE)
    cells = _Cells(steps, pair, _LEVELS)
    own, first, last = cells.own, cells.edges[cells.worse], cells.edges[cells.worse + 1]
    share = (
        _share_of_noise(own, first, last, pair.distance) if cells.by_noise else (last - own) / (last - first)
    )
    kinds, kind = np.unique(cells.worse, return_inverse=True)
    count = np.bincount(kind, steps.count).astype(np.float64)
    mean = np.bincount(kind, steps.count * share) / count
    spread = np.bincount(kind, steps.count * (share - mean[kind]) ** 2)
    used, ends = np.unique([kinds, kinds + 1], return_inverse=True)
    best = np.full(kinds.size, -np.inf)  # of the other, which the levels round to the worse side
    np.maximum.at(best, kind, cells.other)
    near, far = ends.reshape(2, -1)
    most = np.full(used.size, count.max())  # for the digits of each
    levels = cells.steps(cells.edges[used], cells.others[used], most)
    least = cells.steps(cells.edges[used][np.where(mean == 1, near, far)], best, count)
    columns = levels.noise[near], levels.rate[near]
    return Mixed(*columns, count, levels, near, far, mean, np.asarray(spread, dtype=np.float64), least)


def rounded(phases: Sequence[Phase], pair: StepPair, *, levels: int = _ROUNDED) -> Steps:
    """Return steps of so many kinds that show no less than the given ones: each at the worse of its two levels."""
    steps = together(phases, pair)
    cells = _Cells(steps, pair, levels)
    kinds, kind = np.unique(cells.worse, return_inverse=True)
    return cells.steps(
        cells.edges[kinds], cells.others[kinds], np.bincount(kind, steps.count).astype(np.float64)
    )


class _Cells:
    """The grid of levels for some steps; what is smaller is worse.

    Attributes:
        by_noise: Whether the noise differs more, or else the rate.
        own, other: Of each step what differs more, and the other; rates below 0.
        edges: Levels of the first, ascending for each value of the other.
        others: The other of each level, no better than that of its steps.
        worse: Of each step the level that shows more; the next one shows less.
    """

    def __init__(self, steps: Steps, pair: StepPair, levels: int) -> None:
        self._pair = pair
        noise, rate = steps.noise[:, 0], steps.rate[:, 0]
        self.by_noise = np.unique(noise).size >= np.unique(rate).size
        self.own, self.other = (noise, -rate) if self.by_noise else (-rate, noise)
        values = np.unique(self.other)
        if values.size > _OTHERS:
            values = np.quantile(values, np.linspace(0, 1, _OTHERS + 1)[:-1], method="lower")
        group = np.searchsorted(values, self.other, side="right") - 1
        members = [self.own[group == place] for place in range(values.size)]
        spans = np.array([np.ptp(_even(part)) for part in members])
        cells = np.ceil(levels * spans / max(spans.sum(), _TINY)).astype(int) + 1
        grids = [_grid(part, number) for part, number in zip(members, cells.tolist(), strict=True)]
        sizes = [grid.size for grid in grids]
        self.edges, self.others = np.concatenate(grids), np.repeat(values, sizes)
        self.worse = np.empty(self.own.size, dtype=np.intp)
        for place, (end, grid) in enumerate(zip(np.cumsum(sizes).tolist(), grids, strict=True)):
            first = end - grid.size
            self.worse[group == place] = first + np.searchsorted(grid, members[place], side="right") - 1

    def steps(self, own: Floats, other: Floats, count: Floats) -> Steps:
        """Return steps of these kinds."""
        noises, rates = (own, other) if self.by_noise else (other, own)
        rows = zip(noises, -rates, np.round(count).astype(int).tolist(), strict=True)
        return together([Phase(*row) for row in rows], self._pair)


def _even(values: Floats) -> Floats:
    """Return noises, or rates below 0, on a scale on which equal cells show about equally much."""
    return np.asarray(np.log(-values) if values[0] < 0 else -(values ** (-2 / 3)))


def _grid(values: Floats, cells: int) -> Floats:
    """Return the edges of so many cells, ascending, from the least value to beyond the largest."""
    low, high = values.min(), values.max()
    ends = np.linspace(_even(low[None])[0], _even(high[None])[0], cells + 1)
    grid = -np.exp(ends) if low < 0 else (-ends) ** -1.5
    grid[0], grid[-1] = low, high
    return np.append(np.unique(grid), high / 2 if high < 0 else 2 * high)


def _share_of_noise(noise: Floats, worse: Floats, better: Floats, distance: float) -> Floats:
    """Return the chance of the smaller noise: where s^m lies between both, m as above."""
    power = np.maximum((distance / (2 * worse)) ** 2 - 1, 1.0)
    return np.asarray(np.expm1(power * np.log(noise / better)) / np.expm1(power * np.log(worse / better)))
