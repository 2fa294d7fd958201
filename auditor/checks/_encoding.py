"""Features of any kind as columns of numbers that a classifier can use.

Every column becomes the normal scores of its pooled ranks, so that units, outliers and infinities do not matter. The
membership is not looked at, so under a random split the labels stay exchangeable.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from auditor.features import Table
from auditor.values import Floats

__all__ = ["Encoded", "encoded"]

_WIDEST = 1000  # columns looked at
_BUCKETS = 256  # hashed words of a column of texts
_FREE_TEXT = 0.5  # share of distinct values from which a column of several words is a text and no category
_SEVERAL = 3.0


@dataclass(frozen=True, eq=False)
class Encoded:
    """Columns of numbers without a gap, shape (n, k), members first, and the feature each column comes from."""

    values: Floats
    names: tuple[str, ...]


def encoded(member: Table, nonmember: Table, *, rng: np.random.Generator) -> Encoded:
    """Return the pooled records as normal scores; a column with gaps gets a second one that says where they are."""
    columns: list[Floats] = []
    names: list[str] = []
    for place in _places(member, nonmember, rng):
        for column in _numbers(member.column(int(place)), nonmember.column(int(place))):
            gaps = np.isnan(column)
            for part in (_scores(column, gaps), _scores(gaps + 0.0, np.zeros_like(gaps))):
                if np.any(part != part[0]):
                    columns.append(part)
                    names.append(member.names[place])
    values = np.column_stack(columns) if columns else np.empty((member.n + nonmember.n, 0))
    return Encoded(values, tuple(names))


def _places(member: Table, nonmember: Table, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Which columns to look at: all, or of very many those that are most often not 0, or some at random."""
    width = len(member.names)
    if width <= _WIDEST:
        return np.arange(width)
    if member.sparse and nonmember.sparse:
        filled = sum(np.bincount(table.cells.indices, minlength=width) for table in (member, nonmember))
        return np.sort(np.argsort(-filled, kind="stable")[:_WIDEST])
    return np.sort(rng.choice(width, _WIDEST, replace=False))


def _scores(column: Floats, gaps: npt.NDArray[np.bool_]) -> Floats:
    """Normal scores of the ranks, 0 where there is a gap."""
    result = np.zeros(column.size)
    filled = column[~gaps]
    result[~gaps] = special.ndtri((stats.rankdata(filled) - 0.5) / max(1, filled.size))
    return result


def _numbers(member: npt.NDArray[Any], nonmember: npt.NDArray[Any]) -> list[Floats]:
    """A column as one column of numbers, NaN where a value is missing; a text becomes counts of its hashed words."""
    if member.dtype.kind in "fiub" and nonmember.dtype.kind in "fiub":
        with np.errstate(over="ignore"):
            return [np.concatenate([member.astype(np.float64), nonmember.astype(np.float64)])]
    if member.dtype.kind == nonmember.dtype.kind == "M":
        times = np.concatenate([column.astype("datetime64[us]") for column in (member, nonmember)])
        return [np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))]
    values = [*member.tolist(), *nonmember.tolist()]
    missing = np.array([_missing(value) for value in values])
    given = [value for value, gap in zip(values, missing, strict=True) if not gap]
    if all(isinstance(value, int | float | np.number | np.bool_) for value in given):
        result = np.full(missing.size, np.nan)
        result[~missing] = [float(value) for value in given]
        return [result]
    texts = [str(value) for value in given]
    if _free(texts):
        return _counted([("" if gap else str(value)) for value, gap in zip(values, missing, strict=True)])
    codes = np.full(missing.size, np.nan)
    codes[~missing] = np.unique(texts, return_inverse=True)[1]
    return [codes]


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or bool(value != value)  # noqa: PLR0124


def _free(texts: list[str]) -> bool:
    words = sum(len(text.split()) for text in texts)
    return len(set(texts)) > _FREE_TEXT * len(texts) and words > _SEVERAL * len(texts)


def _counted(texts: list[str]) -> list[Floats]:
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=_BUCKETS, alternate_sign=False, norm=None)
    counts = hashing.transform(texts).toarray()
    return [np.asarray(column, dtype=np.float64) for column in counts.T]
