"""The likelihood ratio of membership as a function of the loss: monotone, unless bands of losses clearly tell more."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor._labels import Integers
from auditor.values import Floats

__all__ = ["Ratio", "estimate"]

_FOLDS = 5
_HALF = 0.5
_FEWEST_BANDS, _MOST_BANDS = 4, 256
_PER_BAND = 20  # records of the smaller group that a band holds on average, at least
_ERRORS = 2.0  # standard errors by which bands must do better
_GAIN = 1.0  # and by this much log-likelihood in all: below it the two fits are the same but for rounding


@dataclass(frozen=True, eq=False)
class Ratio:
    """The estimated ratio of members' to non-members' density.

    Attributes:
        levels: The ratio at each level of the loss, lowest first; above 0 and finite.
        monotone: Whether it is the isotonic estimate.
        falling: Whether a member's loss is more often below a non-member's than above it, or as often.
    """

    levels: Floats
    monotone: bool
    falling: bool


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
    n1, n0 = int(membership.sum()), int((~membership).sum())
    falling = _falling(place, membership, size)
    if not falling:
        place = size - 1 - place
    folds = np.empty(place.size, dtype=np.int64)
    for side, n in ((membership, n1), (~membership, n0)):
        folds[side] = rng.permutation(n) % min(_FOLDS, n1, n0)
    share = None
    if (finest := _finest(min(n1, n0))) >= _FEWEST_BANDS:
        share = _banded(place, membership, folds, size, finest)
    monotone = share is None
    if share is None:
        share = _isotonic(place, membership, size)
    # A share is for the audited mix of members and non-members: divide its odds out.
    ratio = share / (1 - share) * (n0 / n1)
    return Ratio(levels=ratio if falling else ratio[::-1], monotone=monotone, falling=falling)


def _falling(place: Integers, membership: npt.NDArray[np.bool_], size: int) -> bool:
    member = np.bincount(place[membership], minlength=size)
    other = np.bincount(place[~membership], minlength=size)
    below = np.cumsum(member) - member
    return bool((other * (below + _HALF * member)).sum() >= _HALF * member.sum() * float(other.sum()))


def _finest(least: int) -> int:
    """The largest power of two of bands for so many records of the smaller group; 0 for none."""
    fit = min(_MOST_BANDS, least // _PER_BAND)
    return 1 << (fit.bit_length() - 1) if fit else 0


def _banded(
    place: Integers, membership: npt.NDArray[np.bool_], folds: Integers, size: int, finest: int
) -> Floats | None:
    """The share of members at every level by its band, or nothing if the isotonic shares do about as well."""
    records = np.bincount(place, minlength=size)
    # Cut by the middle of a level, so that ties stay together; membership has no say in where bands end.
    middle = (np.cumsum(records) - _HALF * records) / place.size
    band = np.minimum(np.floor(middle * finest).astype(np.int64), finest - 1)
    deals = int(folds.max()) + 1
    cell = (folds * 2 + membership) * finest + band[place]
    counts = np.bincount(cell, minlength=deals * 2 * finest).reshape(deals, 2, finest)
    best, held = -math.inf, np.empty((deals, 0))
    number = _FEWEST_BANDS
    while number <= finest:
        merged = counts.reshape(deals, 2, number, -1).sum(axis=-1)
        shares = _smoothed(merged.sum(axis=0) - merged)
        told = float((merged[:, 1] * np.log(shares) + merged[:, 0] * np.log1p(-shares)).sum())
        if told > best:
            best, held = told, shares
        number *= 2
    width = finest // held.shape[1]
    gain = _log_score(held[folds, band[place] // width], membership)
    for fold in range(deals):
        out = folds == fold
        rival = _isotonic(place[~out], membership[~out], size)[place[out]]
        gain[out] -= _log_score(rival, membership[out])
    if gain.sum() <= max(_GAIN, _ERRORS * math.sqrt(gain.size) * float(gain.std())):
        return None
    whole = counts.sum(axis=0).reshape(1, 2, held.shape[1], width).sum(axis=-1)
    share: Floats = _smoothed(whole)[0][band // width]
    return share


def _smoothed(counts: Integers) -> Floats:
    """Shares of members in bands, from counts (set, side, band), with pseudo-records in the proportion of each set."""
    total = counts.sum(axis=2)
    weight = np.array([_pseudo(least) / least for least in total.min(axis=1).tolist()])
    member, other = ((weight * total[:, side])[:, None] for side in (1, 0))
    return np.asarray((counts[:, 1] + member) / (counts.sum(axis=1) + member + other), dtype=np.float64)


def _log_score(share: Floats, membership: npt.NDArray[np.bool_]) -> Floats:
    return np.log(np.where(membership, share, 1 - share))


def _isotonic(place: Integers, membership: npt.NDArray[np.bool_], size: int) -> Floats:
    """The isotonic share of members at every level, falling, and straight between the levels that were seen."""
    from sklearn.isotonic import isotonic_regression

    total = np.bincount(place, minlength=size)
    member = np.bincount(place[membership], minlength=size)
    seen = np.flatnonzero(total)
    n1, n0 = int(member.sum()), int(total.sum() - member.sum())
    # Pseudo-records in the proportion of the sample: counted in non-members at the members' end, and the reverse.
    first, last = _pseudo(n0) * (n1 + n0) / n0, _pseudo(n1) * (n1 + n0) / n1
    values = np.concatenate([[n1 / (n1 + n0)], member[seen] / total[seen], [n1 / (n1 + n0)]])
    weights = np.concatenate([[first], total[seen], [last]])
    fit = isotonic_regression(values, sample_weight=weights, increasing=False)[1:-1]
    return np.interp(np.arange(size), seen, np.asarray(fit, dtype=np.float64))


def _pseudo(size: int) -> float:
    return max(1.0, _HALF * math.cbrt(size))
