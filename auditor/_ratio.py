"""The likelihood ratio of membership as a function of the loss: monotone, unless bands of losses clearly tell more."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from auditor._labels import Integers
from auditor.values import Floats

__all__ = ["Ratio", "estimate"]

_FOLDS = 5
_HALF = 0.5
_FEWEST_BANDS, _MOST_BANDS = 4, 256
_PER_BAND = 20  # records of the smaller group that a band holds on average, at least
_ERRORS = 2.0  # standard errors by which one estimate must do better than another
_GAIN = 1.0  # and by this much log-likelihood in all: below it the two fits are the same but for rounding
# Held-out records are scored on this many cells at most, of about equally many records: an isotonic fit has far fewer
# steps, so that more cells change its score by less than its rounding.
_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class Ratio:
    """The estimated ratio of members' to non-members' density.

    Attributes:
        levels: The ratio at each level of the loss, lowest first; above 0 and finite.
        monotone: Whether it is the isotonic estimate.
        falling: Whether a member's loss is more often below a non-member's than above it, or as often.
        told: Whether it says more about held-out records than the numbers of members and non-members alone.
    """

    levels: Floats
    monotone: bool
    falling: bool
    told: bool


def estimate(
    place: Integers, membership: npt.NDArray[np.bool_], size: int, *, rng: np.random.Generator
) -> Ratio:
    """Return the ratio at each of so many levels, by the one of two estimates that does better on held-out records.

    Args:
        place: Level of each record's loss, in [0, size).
        membership: Which records are members; at least two are and two are not.
        size: Number of levels.
        rng: Deals the folds.
    """
    member = np.bincount(place[membership], minlength=size)
    other = np.bincount(place[~membership], minlength=size)
    n1, n0 = int(member.sum()), int(other.sum())
    falling = _falling(member, other)
    if not falling:
        place, member, other = size - 1 - place, member[::-1], other[::-1]
    folds = np.empty(place.size, dtype=np.int8)
    deals = min(_FOLDS, n1, n0)
    for side, n in ((membership, n1), (~membership, n0)):
        folds[side] = rng.permutation(n) % deals
    middle = _middle(member + other)
    cells = _cells(middle)
    width = int(cells[-1]) + 1
    key = (folds.astype(np.int64) * 2 + membership) * width + cells[place]
    counts = np.bincount(key, minlength=deals * 2 * width).reshape(deals, 2, width)
    held = _isotonic_held_out(counts)
    finest = _finest(min(n1, n0))
    banded = _banded(counts, _parts(middle[_starts(cells)], finest), finest) if finest else None
    monotone = banded is None or not _better(counts, banded.held, held)
    if banded is None or monotone:
        share = _isotonic(member, member + other)
    else:
        held, share = banded.held, banded.shares[_parts(middle, finest) // banded.width]
    # The shares of the other folds alone, whatever the loss.
    chance = _of_other_folds(counts.sum(axis=2))
    # A share is for the audited mix of members and non-members: divide its odds out.
    ratio = share / (1 - share) * (n0 / n1)
    return Ratio(
        levels=ratio if falling else ratio[::-1],
        monotone=monotone,
        falling=falling,
        told=_better(counts, held, chance[:, 1:] / chance.sum(axis=1, keepdims=True)),
    )


def _falling(member: Integers, other: Integers) -> bool:
    below = np.cumsum(member) - member
    return bool((other * (below + _HALF * member)).sum() >= _HALF * member.sum() * float(other.sum()))


def _finest(least: int) -> int:
    """The largest power of two of bands for so many records of the smaller group; 0 for too few of them."""
    fit = min(_MOST_BANDS, least // _PER_BAND)
    return 0 if fit < _FEWEST_BANDS else 1 << (fit.bit_length() - 1)


def _middle(records: Integers) -> Floats:
    """Where the middle of each level lies among all records, in (0, 1): ties stay together, membership has no say."""
    return np.asarray((np.cumsum(records) - _HALF * records) / records.sum())


def _parts(middle: Floats, number: int) -> Integers:
    """Which of so many parts of equally many records each level is in."""
    return np.minimum(np.floor(middle * number).astype(np.int64), number - 1)


def _cells(middle: Floats) -> Integers:
    """The cell of each level, without empty ones: every level its own, or parts that no band cuts."""
    if middle.size <= _CELLS:
        return np.arange(middle.size)
    parts = _parts(middle, _CELLS)
    return np.asarray(np.cumsum(np.diff(parts, prepend=parts[0]) > 0))


def _starts(cells: Integers) -> Integers:
    return np.flatnonzero(np.diff(cells, prepend=-1))


def _of_other_folds(counts: Integers) -> Integers:
    return np.asarray(counts.sum(axis=0) - counts)


def _better(counts: Integers, shares: Floats, rivals: Floats) -> bool:
    """Whether these shares clearly tell more about the records of the folds that they were not fitted to.

    Args:
        counts: Shape (folds, 2, cells), non-members first.
        shares: Of members, shape (folds, cells) or one that broadcasts to it.
        rivals: Likewise.
    """
    gain = np.stack([np.log1p(-shares) - np.log1p(-rivals), np.log(shares) - np.log(rivals)], axis=1)
    n, total = int(counts.sum()), float((counts * gain).sum())
    variance = max(0.0, float((counts * np.square(gain)).sum()) / n - (total / n) ** 2)
    return total > max(_GAIN, _ERRORS * math.sqrt(n * variance))


@dataclass(frozen=True, eq=False)
class _Bands:
    """The number of bands that tells most, as the finest bands that make one, and the shares of members.

    Attributes:
        width: How many of the finest bands make one.
        held: Shape (folds, cells), the shares that the other folds tell.
        shares: One for each band, from all records.
    """

    width: int
    held: Floats
    shares: Floats


def _banded(counts: Integers, band: Integers, finest: int) -> _Bands:
    rows = [np.bincount(band, weights=row, minlength=finest) for row in counts.reshape(-1, band.size)]
    in_bands = np.stack(rows).reshape(*counts.shape[:2], finest)
    best, found = -math.inf, np.empty((counts.shape[0], 0))
    number = _FEWEST_BANDS
    while number <= finest:
        merged = in_bands.reshape(*in_bands.shape[:2], number, -1).sum(axis=-1)
        shares = _smoothed(merged.sum(axis=0) - merged)
        told = float((merged[:, 1] * np.log(shares) + merged[:, 0] * np.log1p(-shares)).sum())
        if told > best:
            best, found = told, shares
        number *= 2
    width = finest // found.shape[1]
    whole = in_bands.sum(axis=0).reshape(1, 2, found.shape[1], width).sum(axis=-1)
    return _Bands(width, found[:, band // width], _smoothed(whole)[0])


def _smoothed(counts: Floats) -> Floats:
    """Shares of members in bands, from counts (set, side, band), with pseudo-records in the proportion of each set."""
    total = counts.sum(axis=2)
    weight = np.array([_pseudo(least) / least for least in total.min(axis=1).tolist()])
    member, other = ((weight * total[:, side])[:, None] for side in (1, 0))
    return np.asarray((counts[:, 1] + member) / (counts.sum(axis=1) + member + other), dtype=np.float64)


def _isotonic_held_out(counts: Integers) -> Floats:
    """Shape (folds, cells), the isotonic shares that the other folds tell."""
    others = _of_other_folds(counts)
    return np.stack([_isotonic(fold[1], fold.sum(axis=0)) for fold in others])


def _isotonic(member: Integers, total: Integers) -> Floats:
    """The isotonic share of members at every level, falling, and straight between the levels that have records."""
    seen = np.flatnonzero(total)
    n1, n0 = int(member.sum()), int(total.sum() - member.sum())
    # Pseudo-records in the proportion of the sample: counted in non-members at the members' end, and the reverse.
    first, last = _pseudo(n0) * (n1 + n0) / n0, _pseudo(n1) * (n1 + n0) / n1
    prior = n1 / (n1 + n0)
    values = np.concatenate([[prior], member[seen] / total[seen], [prior]])
    weights = np.concatenate([[first], total[seen], [last]])
    fit = optimize.isotonic_regression(values, weights=weights, increasing=False).x[1:-1]
    if seen.size == total.size:
        return np.asarray(fit, dtype=np.float64)
    return np.interp(np.arange(total.size), seen, np.asarray(fit, dtype=np.float64))


def _pseudo(size: int) -> float:
    return max(1.0, _HALF * math.cbrt(size))
