"""Records that both groups hold: counted in one pass over all records, and compared with a random split."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.tables.sources import Column
from auditor.core.errors import InputError
from auditor.core.numbers import about, percent
from auditor.core.values import PerGroup
from auditor.estimators.twins import SURELY, Twins, twins
from auditor.records.features import hashes_of
from auditor.records.labels import text

_Hashes = npt.NDArray[np.uint64]

_NEVER = 1e-6  # chance of a random split below which shared contents are refused
_MOST = 0.01  # of the records of the smaller group that an excess may be, and not be refused
_STEP = np.uint64(0x9E3779B97F4A7C15)  # keeps the hash of a label apart from that of the features
_TOO_MANY = "more than natural twins explain, so that some records seem to be in both groups"
_BY_CHANCE = "natural twins, which are no more than chance gives"
_ALLOW = "or allow it with allow_shared_rows=True (--set allow-shared-rows)"


class SharedRows:
    """Counts the records that both groups have in common, from every batch of both.

    An id in both groups means that records of one group are in the other too, and then the difference between the groups
    is not what is claimed for it. Equal features and labels need not mean that: records with few or coarse features have
    natural twins. So the contents in both groups are compared with how many a random split of all records would put there
    (`auditor.estimators.twins`). Counts that a random split gives are noted; larger ones are named with the expected number; and it is refused
    where a random split gives as many with a chance below 1e-6 and the excess is over 1% of the smaller group, or where
    all of the smaller group is in the other with a chance below 1%.

    >>> SharedRows([]).finish()
    []
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        """Keep the tables, from which the first shared id is read again to be named."""
        self._sources = tuple(sources)
        self._ids, self._contents = _Groups([], []), _Groups([], [])
        self.notes: list[str] = []
        self.by_chance: list[str] = []

    def add(self, batch: Batch) -> None:
        """Add the records of a batch."""
        if batch.fingerprint is not None:
            content = _content(batch.fingerprint, batch.records.labels)
            self._contents.add(batch, content, np.ones_like(batch.member))
        if "id" in batch.columns:
            self._ids.add(batch, *_id_hashes(np.asarray(batch.columns["id"])))

    def finish(self, *, allow: bool = False) -> list[str]:
        """Return warnings about records in both groups, as sentences.

        Without ids, rows and counts, ``by_chance`` has those that a random split explains, and ``notes`` the others.

        Args:
            allow: Whether to go on, with a warning, where the groups overlap.

        Raises:
            InputError: An id in both groups, or far more equal content than natural twins explain; the sentence names the
                first two rows.
        """
        by_id, by_content = self._ids.overlap(), self._contents.overlap()
        return [
            *([] if by_id is None else [self._of_ids(by_id, allow=allow)]),
            *([] if by_content is None else [self._of_contents(by_content, allow=allow)]),
        ]

    def _of_ids(self, overlap: "_Overlap", *, allow: bool) -> str:
        name, row = overlap.first
        source = next(source for source in self._sources if source.name == name)
        first = repr(source.read(row, row + 1).columns["id"].tolist()[0])
        count = overlap.twins.shared
        seen = f"{count:,} id(s) in both groups (first {first}, {overlap.where})"
        if not allow:
            raise InputError(
                f"members and non-members must have different ids, got {seen}; take those records out of one group,"
                f" read no ids (id=None) if they start again in each table, {_ALLOW}."
            )
        self.notes.append(f"{about(count)} ids are in both groups, which was allowed.")
        return f"there are {seen}: the groups overlap, which was allowed."

    def _of_contents(self, overlap: "_Overlap", *, allow: bool) -> str:
        counted, smaller = overlap.twins, min(overlap.sizes)
        counts = counted.nonmembers_with_twin, counted.members_with_twin
        share = counts[int(np.argmin(overlap.sizes))] / smaller
        seen = (
            f"{counts[0]:,} non-member and {counts[1]:,} member records ({percent(share)} of the smaller group) that are"
            f" equal to one of the other group in features and label (first {overlap.where}), and have {counted.shared:,}"
            f" different contents where a random split of all records gives about {counted.expected:,.1f}"
        )
        whole = counted.p_more < SURELY and share == 1
        excess = counted.shared - counted.expected > _MOST * smaller
        if not allow and (whole or (counted.p_more < _NEVER and excess)):
            raise InputError(
                f"members and non-members must be different records, got {seen}, far more than natural twins explain;"
                f" take them out of one group, {_ALLOW}."
            )
        why, notes = (_TOO_MANY, self.notes) if counted.p_more < SURELY else (_BY_CHANCE, self.by_chance)
        alike = " non-member and ".join(map(about, counts))
        notes.append(f"{alike} member records are equal to one of the other group: {why}.")
        return f"there are {seen}: {why}."


class _Overlap(NamedTuple):
    """Records that two groups have in common.

    Attributes:
        twins: Numbers of records and values, and the number of values that a random split puts in both.
        sizes: Records of non-members, and of members.
        first: Table and row of the first non-member with a value of a member.
        where: The same in words, and of the first member with its value.
    """

    twins: Twins
    sizes: tuple[int, int]
    first: tuple[str, int]
    where: str


class _Piece(NamedTuple):
    """Hashes of some records of one group: the table, and the row of each."""

    table: str
    rows: npt.NDArray[np.int64]
    hashes: _Hashes


class _Groups(NamedTuple):
    """Hashes of the records of both groups, with 16 bytes of memory for each."""

    nonmembers: list[_Piece]
    members: list[_Piece]

    def add(self, batch: Batch, hashes: _Hashes, has_hash: npt.NDArray[np.bool_]) -> None:
        """Add the records of a batch that have a hash."""
        for group, pieces in enumerate(self):
            rows = np.flatnonzero(has_hash & (batch.member == group))
            if rows.size:
                pieces.append(_Piece(batch.records.name, batch.records.first_row + rows, hashes[rows]))

    def overlap(self) -> _Overlap | None:
        """Return the records that the groups have in common; None if there are none."""
        if not self.nonmembers or not self.members:
            return None
        nonmember, member = (np.concatenate([piece.hashes for piece in pieces]) for pieces in self)
        counted = twins(PerGroup(member, nonmember))
        if not counted.shared:
            return None
        at = int(np.argmax(np.isin(nonmember, member)))
        one = _place(self.nonmembers, at)
        other = _place(self.members, int(np.argmax(member == nonmember[at])))
        where = f"row {one[1]} of {one[0]} and row {other[1]} of {other[0]}, counting from 0"
        return _Overlap(counted, (nonmember.size, member.size), one, where)


def _place(pieces: list[_Piece], position: int) -> tuple[str, int]:
    """Return the table and the row of a record of a group."""
    for piece in pieces:
        if position < piece.hashes.size:
            break
        position -= piece.hashes.size
    return piece.table, int(piece.rows[position])


def _content(features: _Hashes, labels: Column) -> _Hashes:
    """Return a hash of features and label of each record."""
    try:
        return features + _STEP * hashes_of(labels.reshape(labels.shape[0], -1))
    except InputError:  # labels that are no plain values
        return features


def _id_hashes(ids: Column) -> tuple[_Hashes, npt.NDArray[np.bool_]]:
    """Return a hash of each id, and which records have one; 7, 7.0 and "7" are the same id."""
    from pandas.util import hash_array

    words, missing = text(ids)
    return hash_array(words, categorize=False), ~missing
