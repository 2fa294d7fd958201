"""The features of the audited records, in any form: both groups, aligned with the losses.

Importing it loads numpy only. Nothing here looks at a loss, so no statement about features can come from the model.
"""

import hashlib
import json
import numbers
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.core import Array, Booleans, Floats, InputError, Integers, Losses, PerGroup, alike, validate
from auditor.records.labels import is_missing


@dataclass(frozen=True, eq=False)
class Table:
    """The features of one group.

    Attributes:
        names: One for each column.
        cells: A numeric array of shape (n, d), a sparse matrix in CSR form, or a tuple of d columns of any type.
        n: Number of records.
    """

    names: tuple[str, ...]
    cells: Any
    n: int

    @property
    def sparse(self) -> bool:
        """Whether the cells are a sparse matrix."""
        return hasattr(self.cells, "indptr")

    def rows(self, at: Array) -> "Table":
        """Return the records at these positions."""
        whole = self.cells
        cells = tuple(column[at] for column in whole) if isinstance(whole, tuple) else whole[at]
        return Table(self.names, cells, int(np.size(at)))

    def column(self, place: int) -> Array:
        """Return one column as a dense array."""
        if isinstance(self.cells, tuple):
            return np.asarray(self.cells[place])
        if self.sparse:
            return np.asarray(self.cells[:, [place]].toarray())[:, 0]
        return np.asarray(self.cells[:, place])


@alike
@dataclass(frozen=True, eq=False)
class Features:
    """Data about the audited records besides their losses, for the checks on the two groups.

    Give the parts that a reviewer would call the record: the inputs of the model, and the label too where class proportions
    should agree. Missing values are allowed, and equal to each other.

    Attributes:
        member: An array of shape (n1, ...), a DataFrame of any column types, a dictionary of columns, a sparse matrix,
            or a list of records or texts; in the order of the member losses.
        nonmember: The same of the non-members, with the same columns.

    Raises:
        InputError: No table of records, or columns that differ between the groups.

    >>> features = Features(member=[[23, 1.5], [51, 0.2]], nonmember=[[44, 1.0]])
    >>> features.n_member, features.n_nonmember, features.names
    (2, 1, ('column 0', 'column 1'))
    """

    member: Any
    nonmember: Any
    tables: tuple[Table, Table] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        member, nonmember = table_of("member", self.member), table_of("nonmember", self.nonmember)
        object.__setattr__(self, "tables", (member, matched(member, nonmember)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.tables[0].names

    @property
    def n_member(self) -> int:
        """Number of members."""
        return self.tables[0].n

    @property
    def n_nonmember(self) -> int:
        """Number of non-members."""
        return self.tables[1].n

    def check_rows(self, losses: Losses) -> None:
        """Refuse losses of another number of records.

        Raises:
            InputError: A group has not one row of features for each loss.

        >>> Features(member=[1, 2], nonmember=[3, 4]).check_rows(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4]))
        """
        sizes = losses.n_member, losses.n_nonmember
        for name, table, n in zip(PerGroup._fields, self.tables, sizes, strict=True):
            if table.n != n:
                raise InputError(
                    f"{name} features must have one row for each loss, in the same order, got {table.n} rows for {n}"
                    " losses; give the features of the audited records."
                )


def table_of(name: str, values: Any) -> Table:
    """Return the features of one group, whatever form they come in.

    Raises:
        InputError: They are no table of records.
    """
    if isinstance(values, Table):
        return values
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        columns = tuple(_plain(series) for _, series in values.items())
        return Table(tuple(map(str, values.columns)), columns, int(values.shape[0]))
    if isinstance(values, dict):
        return _columns(name, values)
    if hasattr(values, "tocsr") and getattr(values, "ndim", 2) == 2:  # noqa: PLR2004
        cells = values.tocsr().copy()
        cells.sum_duplicates()  # in place, so on a copy
        return Table(_numbered(cells.shape[1]), cells, int(cells.shape[0]))
    array = _array(name, values)
    n = array.shape[0]
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    flat = array.reshape(n, width)
    if array.dtype.kind in "fiub":
        return Table(_numbered(width), flat, n)
    return Table(_numbered(width), tuple(flat[:, place] for place in range(width)), n)


def _array(name: str, values: Any) -> Array:
    array = validate.array(f"{name} features", values)
    if array.ndim == 0 or array.dtype.names is not None or array.dtype.kind in "cV":
        raise InputError(
            f"{name} features must hold one row for each record, got an array of shape {array.shape} and type {array.dtype}."
        )
    return array


def _columns(name: str, values: dict[str, Any]) -> Table:
    columns = [_array(f"{name} {key}", column) for key, column in values.items()]
    validate.same_length([f"{name} {key}" for key in values], [column.shape[0] for column in columns])
    if not columns or any(column.ndim > 1 for column in columns):
        raise InputError(f"{name} features must hold one-dimensional columns, got {len(columns)} columns.")
    return Table(tuple(map(str, values)), tuple(columns), int(columns[0].shape[0]))


def _plain(series: Any) -> Array:
    """Return one column of a DataFrame: numbers stay numbers, with missing ones as NaN; everything else becomes objects."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "fiubM" and isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    values = np.asarray(series, dtype=object)
    if kind in "fiub":  # a nullable type of pandas or Arrow
        missing = np.asarray(series.isna())
        if not missing.any():
            return np.asarray(series.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", np.float64)))
        values[missing] = np.nan
    return values


@lru_cache(maxsize=4)
def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {place}" for place in range(width))


def matched(member: Table, other: Table, *, name: str = "nonmember") -> Table:
    """Return the non-members, or another table, with their columns in the members' order."""
    if member.names == other.names:
        return other
    if len(member.names) != len(other.names):
        raise InputError(
            f"member and {name} features must have the same columns, got"
            f" {len(member.names)} and {len(other.names)}; give the same ones for both."
        )
    unshared = set(member.names) ^ set(other.names)
    if unshared or len(set(member.names)) < len(member.names):
        differing = ", ".join(map(repr, sorted(unshared)[:5])) or "repeated names in another order"
        raise InputError(
            f"member and {name} features must have the same columns, got {differing}; name them alike in both."
        )
    place = {name: at for at, name in enumerate(other.names)}
    order = [place[name] for name in member.names]
    cells = other.cells
    cells = tuple(cells[at] for at in order) if isinstance(cells, tuple) else cells[:, order]
    return Table(member.names, cells, other.n)


# --- Columns of any type as numbers ---


def pooled(*parts: Array) -> Floats | list[str | None]:
    """Return one column of several tables as numbers, NaN where a value is missing; else as texts, and None there.

    >>> pooled(np.array([1, 2]), np.array([None], dtype=object)), pooled(np.array(["a"]), np.array([3]))
    (array([ 1.,  2., nan]), ['a', '3'])
    """
    kinds = {part.dtype.kind for part in parts}
    if kinds <= set("fiub"):
        with np.errstate(over="ignore"):
            return np.concatenate([part.astype(np.float64) for part in parts])
    if kinds == {"M"}:
        times = np.concatenate([part.astype("datetime64[us]") for part in parts])
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    values = [None if is_missing(value) else value for part in parts for value in part.tolist()]
    if all(value is None or isinstance(value, int | float | np.number | np.bool_) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    # Whether a blank or a text among the numbers of one file made 1 into 1.0 or "1" must not tell the groups apart.
    shown = str if all(isinstance(value, str | None) for value in values) else _as_number
    return [None if value is None else shown(value) for value in values]


_EXACT = 2**53


def _as_number(value: object) -> str:
    with suppress(TypeError, ValueError):
        if not isinstance(value, bool):
            number = float(value)  # type: ignore[arg-type]  # what is no number is refused
            if abs(number) < _EXACT:  # beyond, two whole numbers may be one float
                return str(int(number) if number.is_integer() else number)
    return str(value)


def ranks_of(values: list[Any]) -> Floats:
    """Return the place of each value among the different ones, from 0; NaN for None."""
    missing = np.array([value is None for value in values])
    result = np.full(missing.size, np.nan)
    result[~missing] = np.unique([value for value in values if value is not None], return_inverse=True)[1]
    return result


# --- Records as columns of numbers that a classifier can use, and two classifiers ---
#
# Every column becomes the normal scores of its pooled ranks, so that units, outliers and infinities do not matter. The
# membership is not looked at, so under a random split the labels stay exchangeable.


_WIDEST = 1000  # columns looked at
_BUCKETS = 256  # hashed words of a column of texts
_FREE_TEXT = 0.5  # share of distinct values from which a column of several words is a text and no category
_SEVERAL = 3.0


def encoded(member: Table, nonmember: Table, *, rng: np.random.Generator) -> tuple[Floats, list[str]]:
    """Return the pooled records as normal scores, members first, and the feature that each column comes from.

    A column with gaps gets a second one that says where they are.
    """
    columns: list[Floats] = []
    names: list[str] = []
    for place in _places(member, nonmember, rng):
        for column in _numeric_columns(member.column(int(place)), nonmember.column(int(place))):
            gaps = np.isnan(column)
            for part in (_scores(column, gaps), _scores(gaps + 0.0, np.zeros_like(gaps))):
                if np.any(part != part[0]):
                    columns.append(part)
                    names.append(member.names[place])
    values = np.column_stack(columns) if columns else np.empty((member.n + nonmember.n, 0))
    return values, names


def _places(member: Table, nonmember: Table, rng: np.random.Generator) -> Integers:
    """Return the columns to examine: all, or of very many those that are most often not 0, or some at random."""
    width = len(member.names)
    if width <= _WIDEST:
        return np.arange(width)
    if member.sparse and nonmember.sparse:
        filled = sum(np.bincount(table.cells.indices, minlength=width) for table in (member, nonmember))
        return np.sort(np.argsort(-filled, kind="stable")[:_WIDEST])
    return np.sort(rng.choice(width, _WIDEST, replace=False))


def _scores(column: Floats, gaps: Booleans) -> Floats:
    """Return normal scores of the ranks, 0 where there is a gap."""
    from scipy import special, stats

    result = np.zeros(column.size)
    filled = column[~gaps]
    result[~gaps] = special.ndtri((stats.rankdata(filled) - 0.5) / max(1, filled.size))
    return result


def _numeric_columns(member: Array, nonmember: Array) -> list[Floats]:
    """Return a column as one column of numbers, NaN where a value is missing; a text becomes counts of its hashed words."""
    values = pooled(member, nonmember)
    if not isinstance(values, list):
        return [values]
    texts = [value for value in values if value is not None]
    words = sum(len(value.split()) for value in texts)
    if len(set(texts)) <= _FREE_TEXT * len(texts) or words <= _SEVERAL * len(texts):
        return [ranks_of(values)]
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=_BUCKETS, alternate_sign=False, norm=None)
    counts = hashing.transform(value or "" for value in values).toarray()
    return [np.asarray(column, dtype=np.float64) for column in counts.T]


_Learner = Callable[[Floats, Booleans, Floats], Floats]


def _linear(learnt: Floats, label: Booleans, new: Floats) -> Floats:
    """Score by logistic regression on the columns and their squares."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    learnt, new = (np.hstack([part, (np.square(part) - 1) / np.sqrt(2)]) for part in (learnt, new))
    with warnings.catch_warnings():
        # A classifier stopped early is still a classifier.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(LogisticRegression(C=0.1).fit(learnt, label).decision_function(new))


def _trees(learnt: Floats, label: Booleans, new: Floats) -> Floats:
    """Score by boosted trees, which see dependence on several columns at once."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    chosen = {"max_iter": 60, "learning_rate": 0.06, "max_leaf_nodes": 15, "l2_regularization": 1.0}
    model = HistGradientBoostingClassifier(**chosen, early_stopping=False, random_state=0)
    return np.asarray(model.fit(learnt, label).decision_function(new))


_LEARNERS: tuple[_Learner, ...] = (_linear, _trees)
CLASSIFIERS = len(_LEARNERS)
MOST_COLUMNS = 100  # a classifier gets the columns that differ most in its own training records


def classified(learnt: Floats, label: Booleans, new: Floats) -> Floats:
    """Return the scores that a linear and a tree classifier give to new records, larger for labelled ones.

    Args:
        learnt: Shape (n, k), features of the training records, without gaps.
        label: Shape (n,), of both kinds.
        new: Shape (m, k).

    Returns:
        Shape (2, m).
    """
    columns = np.argsort(-differences(learnt, member=label), kind="stable")[:MOST_COLUMNS]
    learnt, new = learnt[:, columns], new[:, columns]
    return np.array([learner(learnt, label, new) for learner in _LEARNERS])


def differences(values: Floats, *, member: Booleans) -> Floats:
    """Return, for each column, the larger |t| of the two groups' means and of the means of its square."""
    distances = []
    for part in (values, np.square(values)):
        one, other = part[member], part[~member]
        variance = one.var(axis=0) / one.shape[0] + other.var(axis=0) / other.shape[0]
        gap = one.mean(axis=0) - other.mean(axis=0)
        distances.append(np.abs(gap / np.sqrt(np.maximum(variance, 1e-12))))
    return np.asarray(np.maximum(*distances))


# --- A 64-bit hash of each record's features, so that records of equal content are found without keeping the content ---
#
# The hash of a record of few columns, or of a sparse matrix, is the sum of the hashes of its cells (with their column) modulo
# 2^64, cells of 0 counting 0. That of many columns is the XXH3 of its bytes, as float32 where these hold every cell exactly and
# else as doubles. Equal content has equal hashes in every process and on every machine, whatever the type of the array; a sparse
# matrix of many columns and its dense form differ. Among 2e6 different records, two share a hash with probability 1e-7. It
# hides nothing: who guesses a record can check the guess.


_Hashes = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15  # the step of SplitMix64
_MISSING = np.uint64(0x7FF8000000000000)  # the bits of a quiet NaN
_NEGATIVE_ZERO = np.int32(-(2**31))  # the bits of -0.0 in single precision
_LARGEST = int(np.finfo(np.float64).max)
_MASK = 2**64 - 1
_BLOCK = 2**17  # cells hashed at a time, so that they stay in the processor's cache
_STRETCH = 2**12  # rows of a table of columns at a time
_MANY = 64  # columns from which a call for each row costs less than a few operations on each cell


def fingerprints(features: Features) -> PerGroup:
    """Return one hash for each record; equal content gives equal hashes, whatever the types it is stored in.

    Numbers are equal by value (1, 1.0 and True; 0.0 and -0.0), missing values equal each other, text is equal letter
    by letter and never equals a number. Every record is hashed, none by a sample: by XXH3 of its bytes where it has 64 numbers or
    more in a dense array, and by a sum over its cells elsewhere. Which one it is follows from the features.

    Args:
        features: Features of both groups; columns are matched by place.

    Returns:
        Arrays of 64-bit unsigned integers, of shapes (n1,) and (n0,), for `Losses.fingerprint`.

    Raises:
        InputError: A cell that is no number, text, date or other plain value.

    >>> hashes = fingerprints(Features(member=[[1, 2], [3, 4]], nonmember=[[3.0, 4.0], [4.0, 3.0]]))
    >>> (hashes.member[:, None] == hashes.nonmember).tolist()
    [[False, False], [True, False]]
    """
    return PerGroup(*map(_rows, PerGroup._fields, features.tables))


def hashes_of(values: Any) -> npt.NDArray[np.uint64]:
    """Return one hash for each record of one table, as `fingerprints` does for two; with its errors."""
    return _rows("member", table_of("member", values))


def _rows(name: str, table: Table) -> _Hashes:
    if table.sparse:
        return _sparse(table)
    cells, width = table.cells, len(table.names)
    of_columns = isinstance(cells, tuple)
    keys, step = _keys(0, width), _STRETCH if of_columns else max(1, _BLOCK // max(1, width))
    places = [f"{name} features, {column}" for column in table.names] if of_columns else []
    result = np.zeros(table.n, dtype=np.uint64)
    for start in range(0, table.n if width else 0, step):
        rows = slice(start, start + step)
        if of_columns:
            columns = [_words(place, column[rows]) for place, column in zip(places, cells, strict=True)]
            words = np.stack(columns, axis=1)
        elif width >= _MANY and (small := _single(cells[rows])) is not None:
            result[rows] = _digests(small)
            continue
        else:
            words = _numeric(cells[rows])
        result[rows] = (
            _salted(words, keys).sum(axis=1, dtype=np.uint64) if width < _MANY else _digested(words)
        )
    return result


def _single(block: Array) -> npt.NDArray[np.float32] | None:
    """Return cells of a type that float32 holds exactly as such; None of another, or with a missing or a negative zero."""
    if block.dtype.itemsize > 2 and block.dtype != np.float32:  # noqa: PLR2004 - bytes, of which float32 has 3 for digits
        return None
    result = np.ascontiguousarray(block, dtype=np.float32)
    return None if np.isnan(result.max()) or result.view(np.int32).min() == _NEGATIVE_ZERO else result


def _digested(words: _Hashes) -> _Hashes:
    """Return one hash for each row of words: of the row in single precision where that loses nothing."""

    def narrow(part: _Hashes) -> tuple[npt.NDArray[np.float32], Booleans]:
        with np.errstate(over="ignore", invalid="ignore"):
            singles = np.ascontiguousarray(part).view(np.float64).astype(np.float32)
        return singles, (singles.astype(np.float64).view(np.uint64) == part).all(axis=1)

    result = _digests(words)
    rows = np.flatnonzero(narrow(words[:, :_MANY])[1])  # most rows of doubles are none of singles
    if rows.size:
        singles, exact = narrow(words[rows])
        result[rows[exact]] = _digests(singles[exact])
    return result


def _digests(block: Array) -> _Hashes:
    """Return the XXH3 of the bytes of each row."""
    from xxhash import xxh3_64_intdigest

    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
    starts = range(0, block.nbytes, block[:1].nbytes or 1)
    return np.fromiter(
        (xxh3_64_intdigest(content[at : at + starts.step]) for at in starts), np.uint64, len(block)
    )


def _sparse(table: Table) -> _Hashes:
    cells = table.cells
    hashes = _salted(_numeric(cells.data), _keys(0, cells.shape[1])[cells.indices])
    # Differences of running sums, which wrap around like everything here.
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.asarray(running[cells.indptr[1:]] - running[cells.indptr[:-1]])


def _keys(first: int, count: int) -> _Hashes:
    """Return one key for each column."""
    places = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return _mixed(places * np.uint64(_GOLDEN))


def _salted(words: _Hashes, keys: _Hashes) -> _Hashes:
    """Return the hashes of cells under the keys of their columns; a cell of 0 counts 0."""
    result = _mixed(words ^ keys)
    result[words == 0] = 0
    return result


def _mixed(x: _Hashes) -> _Hashes:
    """Return the finaliser of SplitMix64 (Steele, Lea and Flood 2014), a bijection that leaves no pattern; in place."""
    shifted = x >> np.uint64(30)
    x ^= shifted
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= np.right_shift(x, np.uint64(27), out=shifted)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= np.right_shift(x, np.uint64(31), out=shifted)
    return x


def _numeric(values: Array) -> _Hashes:
    """Return one word for each number: 0 for zero, else the bits of the float, or of the integer if no float is equal to it."""
    with np.errstate(over="ignore"):  # a longdouble beyond the doubles
        floats = values.astype(np.float64)
    floats += 0.0  # -0.0 becomes 0.0
    words = floats.view(np.uint64)
    missing = np.isnan(floats)
    if missing.any():
        words[missing] = _MISSING
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:  # noqa: PLR2004 - narrower ones are floats
        inexact = _inexact(values, floats)
        words[inexact] = values[inexact].view(np.uint64) ^ np.uint64(_GOLDEN)
    return words


def _inexact(whole: Array, floats: Floats) -> Booleans:
    """Return whether no float is equal to each integer."""
    beyond = floats >= float(np.iinfo(whole.dtype).max)
    with np.errstate(invalid="ignore"):
        return np.asarray(beyond | (np.where(beyond, 0.0, floats).astype(whole.dtype) != whole))


def _words(place: str, column: Array) -> _Hashes:
    """Return one word for each cell of a column of any type."""
    if column.dtype.kind in "fiub":
        return _numeric(column)
    if column.dtype.kind == "M":
        return _times(column)
    options: dict[Any, int] = {}
    result = np.empty(column.size, dtype=np.uint64)
    for row, value in enumerate(column.tolist()):
        # The type is part of the key because 1 == True; it is not part of the word.
        key = (type(value), value)
        try:
            word = options.get(key)
        except TypeError:
            word = None
            key = (int, row)
        if word is None:
            word = options[key] = _word(value, place)
        result[row] = word
    return result


def _word(value: Any, place: str) -> int:
    """Return the word of one cell: the bits of a number, or a hash of the text of anything else."""
    if isinstance(value, str):
        return _digest("s", value)
    if is_missing(value):
        return int(_MISSING)
    if isinstance(value, numbers.Real | np.bool_):
        return _number(value)
    if isinstance(value, bytes):
        return _digest("b", value.hex())
    if hasattr(value, "isoformat"):
        return _digest("t", value.isoformat())
    kind, words = type(value).__name__.lower(), str(value)
    if isinstance(value, list | np.ndarray) and len(value) and isinstance(value[0], dict):
        kind, words = "messages", json.dumps(list(value), sort_keys=True, default=str)  # of a chat
    if kind in {"timedelta", "decimal", "period", "interval", "uuid", "messages", "tuple"}:
        return _digest(kind, words)
    raise InputError(
        f"{place}: cells must be numbers, text or dates, got {type(value).__name__}; leave the column out."
    )


def _number(value: Any) -> int:
    """Return the word of a number; of an integer that is equal to no number of 64 bits a hash."""
    value = int(value) if isinstance(value, numbers.Integral | np.bool_) else float(value)
    if isinstance(value, int) and not -(2**63) <= value <= _MASK:
        if abs(value) > _LARGEST or float(value) != value:
            return _digest("i", str(value))
        value = float(value)
    return int(_numeric(np.array([value]))[0])


def _digest(kind: str, text: str) -> int:
    """Return 64 bits of a hash that is the same everywhere; never 0, which is kept for the number zero."""
    raw = hashlib.blake2b(f"{kind}:{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "little") or _MASK


def _times(column: Array) -> _Hashes:
    micro = column.astype("datetime64[us]")
    words = _mixed(micro.astype(np.int64).view(np.uint64) ^ np.uint64(_GOLDEN))
    words[np.isnat(micro)] = _MISSING
    words[words == 0] = np.uint64(1)
    return words
