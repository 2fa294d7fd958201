"""The exact chance that no more members than known numbers lie below the non-members, under the least favourable law."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.linalg import lapack

from auditor.core.values import Floats

_Integers = npt.NDArray[np.int64]

# --- The chance to stay below, by the tosses that lead to the corner from both ends ---

_LEFT_OUT = 1e-10
# Numbers of records in a jump that are treated separately; of more than so many, the worst of a group stands for all of it.
_STARTS = 40
# Standard deviations and records beyond which paths are left out, and so counted as if they did not stay below.
_FAR, _SOME = 6.0, 20


def chance_to_stay_below(most: _Integers, *, members: int, epsilon: float, delta: float) -> float:
    """Return the chance that for all j the (j+1)-th smallest non-member, or the end, has at most most[j] members below.

    Args:
        most: Shape (n0 + 1,), non-decreasing, the last one n1.
        members: n1.
        epsilon: 0 or more, in nats.
        delta: In [0, 1).

    >>> most = np.array([1, 2, 2])  # of two records each: not both members below both non-members
    >>> round(6 * chance_to_stay_below(most, members=2, epsilon=0.0, delta=0.0), 9)
    5.0
    """
    n1, n0 = members, most.size - 1
    beyond = float(special.expit(-epsilon))  # of the members outside the jump: those above the corner
    (first, first_chances), (last, last_chances) = _in_the_jump(n1, delta), _in_the_jump(n0, delta)
    # Where the path may cross the corner, and how many of both groups are expected on its two sides.
    j, i = _likely(n0, beyond, int(last[-1]), 0), _likely(n1, 1 - beyond, 0, int(first[-1]))
    rise, fall = n1 * (1 - beyond) + n0 * beyond, n1 * beyond + n0 * (1 - beyond)
    below = _paths(first, most, n1 * (1 - beyond) / rise, rows=j, columns=i)
    # Read from above, so many members go with at most so many non-members.
    room = n0 - np.searchsorted(most, np.arange(n1, -1, -1), side="left")
    mirrored = range(n1 - i[-1], n1 - i[0] + 1), range(n0 - j[-1], n0 - j[0] + 1)
    above = _paths(last, room, n0 * (1 - beyond) / fall, rows=mirrored[0], columns=mirrored[1])
    # Of so many scores below the corner: their chance over that of the tosses, without the binomials of each order.
    both = np.arange(j[0] + i[0], j[-1] + i[-1] + 1)
    before = _weighted(below, first_chances, _scores(both, first, n1, rise), len(i))
    after = _weighted(above[:, ::-1, ::-1], last_chances, _scores(n1 + n0 - both, last, n0, fall), len(j))
    return float(np.einsum("ji,ij->", before, after))


def _scores(numbers: _Integers, jumped: _Integers, size: int, expected: float) -> Floats:
    """Return one side's factor of the chance that so many scores lie on it, with ``jumped`` of a group apart; shape (jumped, numbers)."""
    s, left = np.maximum(numbers - jumped[:, None], 0), size - jumped[:, None]
    logs = s * math.log(expected) - expected - special.gammaln(s + 1)
    # What was expected on both sides and the sizes are as large together: neither factor leaves the range of numbers.
    logs += special.gammaln(left + 1) - left * math.log(size) + size
    return np.asarray(np.exp(logs))


def _weighted(paths: Floats, chances: Floats, scores: Floats, columns: int) -> Floats:
    """Sum the paths over their starts, each weighed by that of its start and of the number of scores, row + column."""
    windows = np.lib.stride_tricks.sliding_window_view(scores * chances[:, None], columns, axis=1)
    return np.asarray(np.einsum("sij,sij->ij", paths, windows))


def _in_the_jump(size: int, delta: float) -> tuple[_Integers, Floats]:
    """Return the numbers of records that the jump may hold, and their chances; the largest of a group stands for all of it."""
    counts = np.arange(min(size, int(size * delta + _FAR * math.sqrt(size * delta)) + _SOME) + 1)
    at_most = special.bdtr(counts, size, delta)
    likely = counts[(at_most > _LEFT_OUT) & (np.append(0.0, at_most[:-1]) < 1 - _LEFT_OUT)]
    ends = np.array([group[-1] for group in np.array_split(likely, min(likely.size, _STARTS))])
    return ends, np.diff(at_most[ends], prepend=0.0)


def _likely(size: int, share: float, fewer: int, more: int) -> range:
    """Return the numbers of a group that may lie below the corner: all whose chance matters, for every content of the jumps."""
    reach = _FAR * math.sqrt(size * share * (1 - share)) + _SOME
    return range(max(0, int(size * share - reach) - fewer), min(size, int(size * share + reach) + more) + 1)


def _paths(
    starts: _Integers, most: _Integers, share: float, *, rows: range, columns: range
) -> npt.NDArray[np.float64]:
    """Return the chance that tosses pass through (row, column) and stay below; shape (starts, rows, columns).

    Args:
        starts: Columns in which a path may begin, in row 0.
        most: In each row the largest column; never falls.
        share: The chance that a toss leads to the next column and not to the next row.
        rows: Rows whose chances are returned.
        columns: Columns whose chances are returned.
    """
    result = np.zeros((starts.size, len(rows), len(columns)))
    steps = np.asfortranarray([np.ones(columns.stop), np.full(columns.stop, -share)])
    low, high = int(starts[0]), -1
    chances = np.zeros((starts.size, 0))
    for row in range(rows.stop):
        middle, spread = row * share / (1 - share), (_FAR * math.sqrt(row) + _SOME) / (1 - share)
        top = min(int(most[row]), columns.stop - 1, int(starts[-1] + middle + spread))
        start = max(low, int(starts[0] + middle - spread))
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
