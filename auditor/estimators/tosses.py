"""The exact chance that no more members than known numbers lie below the non-members, under the least favourable law."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special
from scipy.linalg import lapack

from auditor.core.values import Floats, Integers

# --- The chance to stay below, by the tosses that lead to the corner from both ends ---

_LEFT_OUT = 1e-10
# Numbers of records in a jump that are treated separately; of more than so many, the worst of a group stands for all of it.
_STARTS = 40
# Standard deviations and records beyond which paths are left out, and so counted as if they did not stay below.
_FAR, _SOME = 6.0, 20


class StayBelow:
    """The chance that for all j the (j+1)-th smallest non-member, or the end, has at most most[j] members below.

    All paths between two points have one chance, which depends on epsilon through the share of the tosses alone. So the
    paths are counted once, with the chances of one share, and serve a range of epsilon.

    >>> most = np.array([1, 2, 2])  # of two records each: not both members below both non-members
    >>> round(6 * StayBelow(most, members=2, delta=0.0, low=0.0, high=1.0).chance(0.0), 9)
    5.0
    """

    def __init__(self, most: Integers, *, members: int, delta: float, low: float, high: float) -> None:
        """Count the paths.

        Args:
            most: Shape (n0 + 1,), non-decreasing, the last one n1.
            members: n1.
            delta: In [0, 1).
            low: The smallest epsilon of the range: 0 or more, in nats.
            high: The largest one.
        """
        n1, n0 = members, most.size - 1
        self.low, self.high, self._sizes = low, high, (n1, n0)
        self._first, self._last = _in_the_jump(n1, delta), _in_the_jump(n0, delta)
        first, last = self._first[0], self._last[0]
        # Where the path may cross the corner.
        ends = [float(special.expit(-epsilon)) for epsilon in (high, low)]
        j = _likely(n0, ends, int(last[-1]), 0)
        i = _likely(n1, [1 - end for end in reversed(ends)], 0, int(first[-1]))
        self._j, self._i = np.arange(j.start, j.stop), np.arange(i.start, i.stop)
        shares = [self._expected(epsilon)[1] for epsilon in (low, (low + high) / 2, high)]
        self._counted = shares[1]
        self._below = _paths(first, most, [share for share, _ in shares], rows=j, columns=i)
        # Read from above, so many members go with at most so many non-members.
        room = n0 - np.searchsorted(most, np.arange(n1, -1, -1), side="left")
        mirrored = range(n1 - i[-1], n1 - i[0] + 1), range(n0 - j[-1], n0 - j[0] + 1)
        above = _paths(last, room, [share for _, share in shares], rows=mirrored[0], columns=mirrored[1])
        self._above = above[:, ::-1, ::-1]

    def _expected(self, epsilon: float) -> tuple[tuple[float, float], ...]:
        """Return how many scores are expected below and above the corner, and which share are members, and non-members."""
        n1, n0 = self._sizes
        beyond = float(special.expit(-epsilon))  # of the members outside the jump: those above the corner
        rise, fall = n1 * (1 - beyond) + n0 * beyond, n1 * beyond + n0 * (1 - beyond)
        return (rise, fall), (n1 * (1 - beyond) / rise, n0 * (1 - beyond) / fall)

    def chance(self, epsilon: float) -> float:
        """Return it at an epsilon of the range."""
        (n1, n0), ((rise, fall), shares) = self._sizes, self._expected(epsilon)
        # Of so many scores below the corner: their chance over that of the tosses, without the binomials of each order.
        j, i = self._j, self._i
        both = np.arange(j[0] + i[0], j[-1] + i[-1] + 1)
        sides = zip(shares, self._counted, strict=True)
        below, above = ((math.log(now / then), math.log((1 - now) / (1 - then))) for now, then in sides)
        before = _weighted(self._below, self._first, _scores(both, self._first[0], n1, rise), below, j, i)
        scores = _scores(n1 + n0 - both, self._last[0], n0, fall)
        after = _weighted(self._above, self._last, scores, above, n1 - i, n0 - j)
        return float(np.einsum("ji,ij->", before, after))


def _scores(numbers: Integers, jumped: Integers, size: int, expected: float) -> Floats:
    """Return one side's factor of the chance that so many scores lie on it, with ``jumped`` of a group apart; shape (jumped, numbers)."""
    s, left = np.maximum(numbers - jumped[:, None], 0), size - jumped[:, None]
    logs = s * math.log(expected) - expected - special.gammaln(s + 1)
    # What was expected on both sides and the sizes are as large together: neither factor leaves the range of numbers.
    logs += special.gammaln(left + 1) - left * math.log(size) + size
    return np.asarray(np.exp(logs))


def _weighted(
    paths: Floats,
    starts: tuple[Integers, Floats],
    scores: Floats,
    logs: tuple[float, float],
    rows: Integers,
    columns: Integers,
) -> Floats:
    """Sum the paths over their starts, each weighed by that of its start and of the number of scores, row + column.

    The logs are those of a toss to the next column and to the next row, over those that the paths were counted with.
    """
    chances = scores * (starts[1] * np.exp(-starts[0] * logs[0]))[:, None]
    windows = np.lib.stride_tricks.sliding_window_view(chances, columns.size, axis=1)
    tosses = np.exp(rows * logs[1])[:, None] * np.exp(columns * logs[0])
    return np.asarray(np.einsum("sij,sij->ij", paths, windows) * tosses)


def _in_the_jump(size: int, delta: float) -> tuple[Integers, Floats]:
    """Return the numbers of records that the jump may hold, and their chances; the largest of a group stands for all of it."""
    counts = np.arange(min(size, int(size * delta + _FAR * math.sqrt(size * delta)) + _SOME) + 1)
    at_most = special.bdtr(counts, size, delta)
    likely = counts[(at_most > _LEFT_OUT) & (np.append(0.0, at_most[:-1]) < 1 - _LEFT_OUT)]
    ends = np.array([group[-1] for group in np.array_split(likely, min(likely.size, _STARTS))])
    return ends, np.diff(at_most[ends], prepend=0.0)


def _likely(size: int, shares: Sequence[float], fewer: int, more: int) -> range:
    """Return the numbers of a group that may lie below the corner: all whose chance matters, for every content of the jumps."""
    low, high = (
        size * share + sign * (_FAR * math.sqrt(size * share * (1 - share)) + _SOME)
        for share, sign in zip(shares, (-1, 1), strict=True)
    )
    return range(max(0, int(low) - fewer), min(size, int(high) + more) + 1)


def _paths(
    starts: Integers, most: Integers, shares: Sequence[float], *, rows: range, columns: range
) -> Floats:
    """Return the chance that tosses pass through (row, column) and stay below; shape (starts, rows, columns).

    Args:
        starts: Columns in which a path may begin, in row 0.
        most: In each row the largest column; never falls.
        shares: The chance that a toss leads to the next column and not to the next row: that of the paths, between the
            smallest and the largest one for which no path that matters may be left out.
        rows: Rows whose chances are returned.
        columns: Columns whose chances are returned.
    """
    least, share, largest = shares
    result = np.zeros((starts.size, len(rows), len(columns)))
    steps = np.asfortranarray([np.ones(columns.stop), np.full(columns.stop, -share)])
    low, high = int(starts[0]), -1
    chances = np.zeros((starts.size, 0))
    for row in range(rows.stop):
        spread = _FAR * math.sqrt(row) + _SOME
        top = min(
            int(most[row]), columns.stop - 1, int(starts[-1] + (row * largest + spread) / (1 - largest))
        )
        start = max(low, int(starts[0] + (row * least - spread) / (1 - least)))
        if start > top:
            break
        entered = np.zeros((starts.size, top - start + 1))
        if row == 0:
            inside = starts <= top
            entered[inside, starts[inside] - start] = 1.0
        elif start <= high:
            entered[:, : high - start + 1] = (1 - share) * chances[:, start - low :]
        # Each column's chance is what came from the row before, and its share of the column to its left.
        solved, _ = lapack.dtbtrs(steps[:, : top - start + 1], entered.T, uplo="L", diag="U", overwrite_b=1)
        chances, low, high = solved.T, start, top
        if row in rows and (left := max(low, columns.start)) <= high:
            result[:, row - rows.start, left - columns.start : high + 1 - columns.start] = chances[
                :, left - low :
            ]
    return result
