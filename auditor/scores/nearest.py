"""Nearness of records to the rows of a released synthetic table, a score for auditing the table.

The distance of two rows x and y over their columns is

    d(x, y)^2 = sum of (rank(x_j) - rank(y_j))^2 over the numbers
              + sum of 1 - (share(x_j) + share(y_j))/2 over the categories with x_j != y_j,

where ranks in [0, 1] and shares are those among all audited records, members and non-members together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.core import Array, Booleans, Floats, InputError, Integers, Losses, PerGroup, validate
from auditor.core.facts import Attack, AttackState, Released, SyntheticTable
from auditor.records import features
from auditor.scores.references import Population, require_comparable, scored

_FEWEST = 10  # released rows
_RARE = 0.01  # share of the non-members that are nearer than the distance of near copies
_DENSE = 64  # categories of a column that have a coordinate in the matrix product
_BLOCK = 2**25  # distances computed at a time
_CELLS = 2**24  # cells hashed at a time
_ROUNDED = 1e-6  # error for each column of a squared distance in single precision
_STEP, _COPY = 0.01, 1e-9  # added to a distance before its logarithm; and the distance of a copy there


def nearness(
    released: Any,
    records: Any,
    *,
    reference: Any = None,
    ids: Any = None,
    groups: Any = None,
    persons: Any = None,
) -> Losses:
    """Return the distance of each record to the nearest row of a released synthetic table; smaller means more like a member.

    Numbers are compared by their ranks and categories by their frequencies among all audited records, without regard
    to membership, so that under a random split members and non-members stay exchangeable. Missing values are equal to each
    other and differ from every value. The distance to a copy is exactly 0.

    Args:
        released: The released table: a DataFrame of any column types, an array or a dictionary of columns; 10 rows or more.
        records: The audited records, a pair (members, non-members) of such tables or `auditor.Features`: members are the records
            from which the table was made. Columns are matched by name.
        reference: Optional records of the same population outside both groups. The loss is then
            log((d + 0.01)/(r + 0.01)), where r is the distance to the nearest of them, so that typical records, which
            are near to any table, count less.
        ids: Optional record ids, a pair (members, non-members).
        groups: Optional slices to report by, as a pair.
        persons: Optional data subject of each record, as a pair: several records of one person count as one in the audit.

    Returns:
        Losses with a fingerprint of each record, and in ``released.table`` the numbers of copies and near copies and the share
        of the released rows that are nearer to the members.

    Raises:
        InputError: Other columns in one of the tables, records that are equal in every column, fewer than 10 released
            rows, a reference that has an audited record, or fewer than two records in a group.

    >>> rng = np.random.default_rng(0)
    >>> members, nonmembers = rng.normal(size=(2, 50, 3))
    >>> losses = nearness(np.concatenate([members[:5], rng.normal(size=(20, 3))]), (members, nonmembers))
    >>> losses.member[:5], losses.released.table.copies
    (array([0., 0., 0., 0., 0.]), (5, 0))
    """
    if not isinstance(records, features.Features):
        records = features.Features(*validate.pair("records", records, of=" of tables"))
    tables = [*records.tables]
    for name, table in (("released", released), ("reference", reference)):
        if table is not None or name == "released":
            tables.append(features.matched(tables[0], features.table_of(name, table), name=name))
    n, rows = records.n_member + records.n_nonmember, tables[2].n
    if rows < _FEWEST:
        raise InputError(
            f"released must have at least {_FEWEST} rows, got {rows}; give the whole released table."
        )
    columns = [column for place in range(len(records.names)) for column in _columns(tables, place, n)]
    if all(np.ptp(column.values[:n]) == 0 for column in columns):
        raise InputError(
            f"records must differ in at least one column, got {len(records.names)} that are constant over members and"
            " non-members; give the columns that describe the records."
        )
    search = _Search(columns, n, records.n_member)
    distance, nearer = search.distances(np.arange(n, n + rows), share=True)
    losses = Losses(
        *distance,
        id=ids,
        group=groups,
        person=persons,
        fingerprint=features.fingerprints(records),
        history=(f"distance to the nearest of {rows:,} released rows, by ranks and frequencies",),
        attacks={Attack.SYNTHETIC: AttackState.RUN},
        released=Released(table=_facts(distance, rows, nearer)),
    )
    if reference is None:
        return losses
    own = Population(loss=np.zeros(tables[3].n), fingerprint=features.hashes_of(tables[3]))
    checked = require_comparable(losses, own, name="reference")
    step = f"log ratio to the distance to the nearest of {own.n:,} reference records; {checked}"
    usual, _ = search.distances(np.arange(n + rows, n + rows + own.n))
    return scored(losses, usual, lambda here, there: _log(here) - _log(there), step=step)


def _log(distance: Floats) -> Floats:
    return np.log(np.where(distance > 0, distance + _STEP, _COPY))


def _facts(distance: PerGroup, rows: int, nearer: float) -> SyntheticTable:
    apart = [side[side > 0] for side in distance]
    cut = np.quantile(apart[1], _RARE) if apart[1].size else 0.0
    member, nonmember = (
        (side.size - part.size, int((part < cut).sum())) for side, part in zip(distance, apart, strict=True)
    )
    return SyntheticTable(rows, (member[0], nonmember[0]), (member[1], nonmember[1]), nearer)


# --- Columns of all tables as numbers; neither ranks nor frequencies depend on the membership ---


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of all tables, the audited records first.

    Attributes:
        values: Ranks in [-1/2, 1/2], or the numbers of categories, the most frequent first.
        cost: Of each category; two that differ are the sum of their costs apart. None for ranks.
    """

    values: Array
    cost: Floats | None = None


def _columns(tables: Sequence[features.Table], place: int, n: int) -> Iterator[_Column]:
    """Yield one column of all tables; of numbers with gaps a second one, which says where they are."""
    values = features.pooled(*(table.column(place) for table in tables))
    if isinstance(values, list):
        yield _category(np.nan_to_num(features.ranks_of(values) + 1).astype(np.int64), n)
        return
    gaps = np.isnan(values)
    different, times = np.unique(np.clip(values[:n][~gaps[:n]], -1e300, 1e300), return_counts=True)
    if different.size:
        middle = (np.cumsum(times) - times / 2) / times.sum() - 0.5
        ranks = np.interp(np.clip(values, -1e300, 1e300), different, middle, left=-0.5, right=0.5)
        yield _Column(np.where(gaps, 0.0, ranks))
    if gaps.any():
        yield _category(gaps.astype(np.int64), n)


def _category(numbers: Integers, n: int) -> _Column:
    share = np.bincount(numbers[:n], minlength=int(numbers.max()) + 1) / n
    order = np.argsort(-share, kind="stable")
    return _Column(np.argsort(order)[numbers], (1 - share[order]) / 2)


# --- The search: all distances in single precision by one matrix product a block, and those of the rows found exactly ---


class _Search:
    """Distances of records to the nearest row of a table.

    Records of equal content are one, and stand in the order of their hashes, so that rounding does not depend on membership.
    """

    def __init__(self, columns: Sequence[_Column], n: int, n_member: int) -> None:
        self._columns, self._n_member = columns, n_member
        step, size = max(1, _CELLS // len(columns)), columns[0].values.size
        stretches = (slice(start, start + step) for start in range(0, size, step))
        self._hashes = np.concatenate(
            [
                features.hashes_of(np.column_stack([column.values[rows] for column in columns]))
                for rows in stretches
            ]
        )
        self._distinct, self._rows, self._place = np.unique(
            self._hashes[:n], return_index=True, return_inverse=True
        )

    def distances(self, targets: Integers, *, share: bool = False) -> tuple[PerGroup, float]:
        """Return the distance of each record to the nearest target, and the share of targets nearer to a member."""
        groups = self._groups_of_one_size() if share else ()
        least = np.full((len(groups), targets.size), np.inf, dtype=np.float32)
        found, right, rare = np.empty_like(self._rows), *self._coordinates(targets)
        right = np.hstack([-2 * right[:, :-1], right[:, -1:], np.ones_like(right[:, :1])]).T
        step = max(1, _BLOCK // targets.size)
        for start in range(0, found.size, step):
            rows = slice(start, start + step)
            left, own = self._coordinates(self._rows[rows])
            squared = np.insert(left, -1, 1.0, axis=1) @ right
            if rare.nnz:
                both = (own @ rare.T).tocoo()
                squared[both.row, both.col] -= 2 * both.data
            found[rows] = targets[squared.argmin(axis=1)]
            for group, best in zip(groups, least, strict=True):
                np.minimum(best, squared[group[rows]].min(axis=0, initial=np.inf), out=best)
        distance = np.sqrt(self._squared(self._rows, found))
        distance[np.isin(self._distinct, self._hashes[targets])] = 0.0
        member, nonmember = np.split(distance[self._place], [self._n_member])
        gap = least[1] - least[0] if share else np.zeros(1)
        gap[np.abs(gap) < _ROUNDED * len(self._columns)] = 0.0
        return PerGroup(member, nonmember), float(np.mean(1 + np.sign(gap)) / 2)

    def _groups_of_one_size(self) -> list[Booleans]:
        """Return which distinct records are members, and which are non-members; of the larger group a random part."""
        sides = np.split(self._place, [self._n_member])
        size, rng = min(side.size for side in sides), np.random.default_rng(0)
        everyone = np.arange(self._rows.size)
        return [np.isin(everyone, rng.choice(side, size, replace=False)) for side in sides]

    def _coordinates(self, rows: Integers) -> tuple[npt.NDArray[np.float32], Any]:
        """Return points whose squared distances are those of the rows, and their squared norms as the last coordinate.

        The coordinates of rare categories are in a sparse matrix.
        """
        from scipy import sparse

        widths = [1 if column.cost is None else min(column.cost.size, _DENSE) for column in self._columns]
        points = np.zeros((rows.size, sum(widths) + 1), dtype=np.float32)
        rare: list[Any] = [sparse.csr_array((rows.size, 1), dtype=np.float32)]
        for column, width, end in zip(self._columns, widths, np.cumsum(widths), strict=True):
            values = column.values[rows]
            if column.cost is None:
                points[:, end - 1] = values
                continue
            one = sparse.csr_array(
                (np.sqrt(column.cost[values]), values, np.arange(rows.size + 1)),
                (rows.size, column.cost.size),
                dtype=np.float32,
            )
            points[:, end - width : end] = one[:, :width].toarray()
            if column.cost.size > width:
                rare.append(one[:, width:])
        apart = sparse.hstack(rare, format="csr")
        points[:, -1] = np.square(points).sum(axis=1) + (apart * apart).sum(axis=1)
        return points, apart

    def _squared(self, rows: Integers, others: Integers) -> Floats:
        """Return the squared distance of each row to its other."""
        result = np.zeros(rows.size)
        for column in self._columns:
            one, other = column.values[rows], column.values[others]
            cost = column.cost
            result += np.square(one - other) if cost is None else (one != other) * (cost[one] + cost[other])
        return result
