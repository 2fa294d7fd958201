"""One partition of the losses for every shared view: no cell holds fewer than ten records of a group."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from auditor.core import LEAST_SHOWN, Array, FittedPair, Floats, Integers, Losses, weighted
from auditor.curves.tradeoff import ThresholdCounts, TradeoffCurve

LEAST = LEAST_SHOWN  # records of a group in a cell that holds any of it
FEWEST = 100  # records of each group from which on a distribution is shown
STEP = 5  # to which published counts are rounded
_RECORDS_EACH = 25  # of a group for each cell, on average
_POINTS = 32  # of a fitted law in each cell, for its mean
_MOST = 60  # cells: more than a figure can show
_WIDEST = 8.0  # of an end cell, in widths of its neighbour


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells of the loss axis, between cuts that are short decimals, and the numbers of records of each group in each.

    The first and the last cell take in all beyond. Every published view of a group is a union of these cells, so that no
    difference of two views holds fewer records than a cell.

    Attributes:
        cuts: Shape (k - 1,), ascending, in units of the loss; a record at a cut belongs to the cell above it.
        member: Shape (k,), members in each cell, 0 or at least 10.
        nonmember: Shape (k,), non-members.
    """

    cuts: Floats
    member: Integers
    nonmember: Integers

    @classmethod
    def of(cls, losses: Losses) -> "Partition | None":
        """Return the partition of these losses; None with fewer than 100 records in a group, or where nothing can be cut.

        >>> rng = np.random.default_rng(0)
        >>> cells = Partition.of(Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500)))
        >>> cells.cuts[:3].tolist(), int(min(cells.member[cells.member > 0])) >= 10, cells.member.size <= 20
        ([-3.0, -1.9, -1.6], True, True)
        """
        groups = losses.sorted_member, losses.sorted_nonmember
        sizes = [group.size for group in groups]
        if min(sizes) < FEWEST:
            return None
        cells = min(min(sizes) // _RECORDS_EACH, _MOST)
        offered = np.unique([cut for group in groups for cut in _candidates(group, cells // 2 + 1)])
        below = np.array([np.searchsorted(group, offered, side="left") for group in groups])
        chosen = apart(below, np.array(sizes))
        while len(chosen) >= max(cells, 1):
            ends = np.concatenate([[0], below[:, chosen].sum(axis=0), [sum(sizes)]])
            chosen.pop(int(np.argmin(ends[2:] - ends[:-2])))
        if not chosen:
            return None
        member, nonmember = (
            np.diff(upto, prepend=0, append=size) for upto, size in zip(below[:, chosen], sizes, strict=True)
        )
        return cls(offered[chosen], member, nonmember)

    @cached_property
    def rounded(self) -> tuple[Integers, Integers]:
        """The counts of the cells, from numbers below each cut that are rounded to 5; those of a group sum to its size."""
        result = []
        for counts in (self.member, self.nonmember):
            upto = np.minimum(np.round(counts.cumsum()[:-1] / STEP).astype(np.int64) * STEP, counts.sum())
            result.append(np.diff(upto, prepend=0, append=counts.sum()))
        return result[0], result[1]

    @property
    def limits(self) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
        """The fewest and the most members, and non-members, below each cut that the rounded counts leave open."""
        below = (counts.cumsum()[:-1] for counts in self.rounded)
        sizes, open_ = (self.member.sum(), self.nonmember.sum()), STEP // 2
        member, nonmember = (
            (np.maximum(upto - open_, 0), np.minimum(upto + open_, size))
            for upto, size in zip(below, sizes, strict=True)
        )
        return member, nonmember

    @property
    def threshold_counts(self) -> ThresholdCounts:
        """The rounded counts below each cut, in the form in which estimators take them."""
        member, nonmember = (counts.cumsum() for counts in self.rounded)
        tp, fp, sizes = member[:-1], nonmember[:-1], (int(member[-1]), int(nonmember[-1]))
        return ThresholdCounts(self.cuts, fp, fp, tp, tp, *sizes)

    def nearest(self, loss: float) -> float:
        """Return the cut that lies nearest to a loss."""
        return float(self.cuts[np.argmin(np.abs(self.cuts - loss))])

    def at_ranks(self, ranks: Floats) -> tuple[Integers, Integers]:
        """Return the rounded numbers of members and non-members below the cuts that are nearest to these ranks, and at the end."""
        member, nonmember = (counts.cumsum() for counts in self.rounded)
        total = (member + nonmember)[:-1]
        chosen = np.unique([int(np.argmin(np.abs(total - rank))) for rank in ranks])
        return member[[*chosen, -1]], nonmember[[*chosen, -1]]

    def curve(self) -> TradeoffCurve:
        """Return the shares of both groups below each cut."""
        member, nonmember = (np.append(0, counts.cumsum() / counts.sum()) for counts in self.rounded)
        return TradeoffCurve(fpr=nonmember, tpr=member)

    def edges(self, cuts: Floats) -> Floats:
        """Return the edges of the cells on the scale of these cuts: the end cells get a width from published counts alone."""
        if cuts.size == 1:
            away = max(abs(float(cuts[0])), 1.0)
            return np.array([cuts[0] - away, cuts[0], cuts[0] + away])
        counts = np.add(*self.rounded)
        first, last = (
            width * min(max(2 * end / max(beside, 1), 1.0), _WIDEST)
            for width, end, beside in (
                (cuts[1] - cuts[0], counts[0], counts[1]),
                (cuts[-1] - cuts[-2], counts[-1], counts[-2]),
            )
        )
        return np.concatenate([[cuts[0] - first], cuts, [cuts[-1] + last]])

    def means(
        self, side: int, group: Any, drawn: Callable[[Floats], Floats], fitted: Callable[[Floats], Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return, of each cell that holds records of a group, the share of its middle rank and the mean loss, observed and fitted.

        Args:
            side: 0 for members, 1 for non-members.
            group: Their losses, ascending.
            drawn: From losses to the scale of the means.
            fitted: The fitted losses on that scale at shares of the group.
        """
        values, repeats = weighted(group)
        counts, rounded = (self.member, self.nonmember)[side], self.rounded[side]
        filled, ends = counts > 0, rounded.cumsum()
        places = np.append(0, np.searchsorted(values, self.cuts, side="left"))[filled]
        sums = np.add.reduceat(drawn(values) * (1.0 if repeats is None else repeats), places)
        starts, ends = (ends - rounded)[filled, None] / group.size, ends[filled, None] / group.size
        shares = starts + (ends - starts) * (np.arange(_POINTS) + 0.5) / _POINTS
        means = fitted(shares.ravel()).reshape(shares.shape).mean(axis=1)
        return (starts + ends)[:, 0] / 2, sums / counts[filled], means


def few_decide(fitted: FittedPair, losses: Losses) -> bool:
    """Return whether one record decides a normal fit: its squared distance from the mean is much of the sum of all.

    Much is a quarter, or 20/n where that is more: of 100 normal losses the largest has 8% on average, and of over-fitted models 3 to 12%.
    By the p% rule (p = 10) of statistical disclosure control one contribution may have about ten elevenths.
    """
    sides = (fitted.member, losses.sorted_member), (fitted.nonmember, losses.sorted_nonmember)
    return any(
        law.sd > 0
        and (max(law.mean - group.min(), group.max() - law.mean) / law.sd) ** 2 > max(group.size / 4, 20)
        for law, group in sides
    )


def apart(below: Array, sizes: Array) -> list[int]:
    """Return the cuts to keep, so that each group has 0 or at least 10 records between two of them and beyond the last.

    Args:
        below: Shape (2, k), how many records of each group lie below each cut; ascending.
        sizes: Shape (2,), how many there are.

    >>> apart(np.array([[4, 12, 25, 95], [0, 30, 30, 30]]), np.array([100, 50]))
    [1, 2]
    """
    chosen: list[int] = []
    counts = np.zeros(2)
    for at, upto in enumerate(below.T):
        if _enough(upto - counts):
            chosen.append(at)
            counts = upto
    while chosen and not _enough(sizes - below[:, chosen[-1]]):
        chosen.pop()
    return chosen


def _enough(counts: Array) -> bool:
    return bool(((counts == 0) | (counts >= LEAST)).all() and counts.any())


def _candidates(ordered: Any, cuts: int) -> list[float]:
    """Return cuts near levels that are evenly spaced in their log-odds, so that cells are small in the tails."""
    size = ordered.size
    end = math.log(LEAST / (size - LEAST))
    levels = 1 / (1 + np.exp(-np.linspace(end, -end, cuts))) if cuts > 1 else np.array([0.5])
    ranks = np.round(levels * size)
    result = []
    for before, rank, after in zip(
        np.append(0, ranks[:-1]), ranks, np.append(ranks[1:], size - 1), strict=True
    ):
        low, high = round(rank - (rank - before) / 4), round(rank + (after - rank) / 4)
        cut = _short(*map(float, ordered[np.array([max(low, 0), min(high, size - 1)])]))
        if cut is not None:
            result.append(cut)
    return result


def _short(low: float, high: float) -> float | None:
    """Return the decimal of fewest digits above ``low`` and up to ``high``; None if there is none."""
    width = high - low
    if not (width > 0 and math.isfinite(width)):
        return None
    power = math.floor(math.log10(width)) + 1
    for digits in range(power, power - 3, -1):
        for step in (5 * 10.0 ** (digits - 1), 2 * 10.0 ** (digits - 1), 10.0 ** (digits - 1)):
            multiple = math.floor(high / step) if step > 0 else math.inf
            cut = float(f"{multiple * step:.12g}") if math.isfinite(multiple) else math.nan
            if low < cut <= high:
                return cut
    return None
