"""Are there records that both groups hold? Looked for in one pass, with 8 bytes of memory for each id and each content."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.records import Batch, Source
from auditor.collectors.base.scorer import BY_CHANCE
from auditor.collectors.tables.sources import Column
from auditor.core.errors import InputError
from auditor.core.numbers import about, percent
from auditor.records import labels
from auditor.records.features import hashes_of

if TYPE_CHECKING:
    from auditor.estimators.twins import ByChance


_Hashes = npt.NDArray[np.uint64]

_SURELY = 0.01  # chance of a random split below which shared contents are named an excess, as the audit's check does
_NEVER = 1e-6  # and below which they are refused
_MOST = 0.01  # of the records of the smaller group that an excess may be, and not be refused
_STEP = np.uint64(0x9E3779B97F4A7C15)  # keeps the hash of a label apart from that of the features
_WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,17})$"
_TOO_MANY = "more than natural twins explain, so that some records seem to be in both groups"
_ALLOW = "or allow it with allow_shared_rows=True (--allow-shared-rows)"


class SharedRows:
    """Told of every batch of both groups, it says in the end what they have in common.

    An id in both groups means that records of one group are in the other too, and then the difference between the groups
    is not what is claimed for it. Equal features and labels need not mean that: records with few or coarse features have
    natural twins. So the contents in both groups are compared with how many a random split of all records would put there
    (`auditor.estimators.twins`). What a random split gives is noted; more is named with the expected number; and it is refused
    where a random split gives as many with a chance below 1e-6 and the excess is over 1% of the smaller group, or where
    all of the smaller group is in the other with a chance below 1%.

    >>> SharedRows([]).finish()
    []
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        """Keep the tables, from which the first shared id is read again to be named."""
        self._sources = tuple(sources)
        self._ids: tuple[list[_Piece], list[_Piece]] = ([], [])  # of non-members, of members
        self._contents: tuple[list[_Piece], list[_Piece]] = ([], [])
        self.notes: list[str] = []

    def add(self, batch: Batch) -> None:
        """Take up the records of a batch."""
        if batch.fingerprint is not None:
            content = _content(batch.fingerprint, batch.records.labels)
            _keep(self._contents, batch, content, np.ones_like(batch.member))
        if "id" in batch.columns:
            hashes, known = _id_hashes(np.asarray(batch.columns["id"]))
            _keep(self._ids, batch, hashes, known)

    def finish(self, *, allow: bool = False) -> list[str]:
        """Return what must be known of records in both groups, as sentences; ``notes`` has them without ids, rows and counts.

        Args:
            allow: Whether to go on, with a warning, where the groups overlap.

        Raises:
            InputError: An id in both groups, or far more equal content than natural twins explain; the sentence names the
                first two rows.
        """
        warnings = []
        by_id, by_content = _overlap(*self._ids), _overlap(*self._contents)
        if by_id is not None:
            seen = f"{by_id.different:,} id(s) in both groups (first {self._id(by_id)}, {by_id.where})"
            if not allow:
                raise InputError(
                    f"members and non-members must have different ids, got {seen}; take those records out of one group,"
                    f" read no ids (id=None) if they count anew in each table, {_ALLOW}."
                )
            warnings.append(f"there are {seen}: the groups overlap, which was allowed.")
            self.notes.append(f"{about(by_id.different)} ids are in both groups, which was allowed.")
        if by_content is not None:
            seen = (
                f"{by_content.counts[0]:,} non-member and {by_content.counts[1]:,} member records"
                f" ({percent(by_content.share)} of the smaller group) that are equal to one of the other group in features"
                f" and label (first {by_content.where}), and have {by_content.different:,} different contents where a"
                f" random split of all records gives about {by_content.chance.expected:,.1f}"
            )
            p = by_content.chance.p_more(by_content.different)
            excess = by_content.different - by_content.chance.expected
            whole = p < _SURELY and by_content.share == 1
            if not allow and (whole or (p < _NEVER and excess > _MOST * by_content.smaller)):
                raise InputError(
                    f"members and non-members must be different records, got {seen}, far more than natural twins explain;"
                    f" take them out of one group, {_ALLOW}."
                )
            why = _TOO_MANY if p < _SURELY else BY_CHANCE
            warnings.append(f"there are {seen}: {why}.")
            alike = " non-member and ".join(map(about, by_content.counts))
            self.notes.append(f"{alike} member records are equal to one of the other group: {why}.")
        return warnings

    def _id(self, found: "_Overlap") -> str:
        """The first shared id."""
        name, row = found.first
        source = next(source for source in self._sources if source.name == name)
        return repr(source.read(row, row + 1).columns["id"].tolist()[0])


@dataclass(frozen=True, eq=False)
class _Piece:
    """Hashes of some records of one group, in the order of their table.

    Attributes:
        table: Its name.
        start: The first row that was looked at.
        chosen: Which rows are there, as bits; none if all are.
        hashes: One for each row that is there.
    """

    table: str
    start: int
    chosen: npt.NDArray[np.uint8] | None
    hashes: _Hashes

    def row(self, position: int) -> int:
        """The number of a record in its table."""
        if self.chosen is None:
            return self.start + position
        return self.start + int(np.flatnonzero(np.unpackbits(self.chosen))[position])


def _keep(
    kept: tuple[list[_Piece], list[_Piece]], batch: Batch, hashes: _Hashes, known: npt.NDArray[np.bool_]
) -> None:
    for member in (False, True):
        mask = known & (batch.member == member)
        if mask.any():
            chosen = None if mask.all() else np.packbits(mask)
            piece = _Piece(batch.records.name, batch.records.first_row, chosen, hashes[mask].copy())
            kept[member].append(piece)


@dataclass(frozen=True)
class _Overlap:
    """What two groups have in common.

    Attributes:
        different: Different values that both have.
        counts: How many non-members have a value of a member, and how many members one of a non-member.
        share: Of the records of the smaller group, those with a value of the other.
        first: Table and row of the first such non-member.
        where: The same in words, and of the first member with its value.
        smaller: Records in the smaller group.
        chance: How many different values a random split gives both.
    """

    different: int
    counts: tuple[int, int]
    share: float
    first: tuple[str, int]
    where: str
    smaller: int
    chance: "ByChance"


def _overlap(nonmembers: list[_Piece], members: list[_Piece]) -> _Overlap | None:
    from auditor.estimators.twins import by_chance

    if not nonmembers or not members:
        return None
    groups = [np.concatenate([piece.hashes for piece in pieces]) for pieces in (nonmembers, members)]
    for group in groups:
        group.sort()  # in place; and where both are sorted, the search runs along
    within = [_among(one, other) for one, other in zip(groups, reversed(groups), strict=True)]
    if not within[0].any():
        return None
    shared = np.unique(groups[0][within[0]])
    one, row, value = next(_places(nonmembers, shared))
    other, there, _ = next(_places(members, np.array([value])))
    where = f"row {row} of {one} and row {there} of {other}, counting from 0"
    counts = int(within[0].sum()), int(within[1].sum())
    smaller = 0 if groups[0].size <= groups[1].size else 1
    share = counts[smaller] / groups[smaller].size
    chance = by_chance(_repeats(groups), n1=groups[1].size, n0=groups[0].size)
    return _Overlap(shared.size, counts, share, (one, row), where, groups[smaller].size, chance)


def _repeats(groups: Sequence[_Hashes]) -> npt.NDArray[np.int64]:
    """How often each value occurs in all groups together, where it occurs more than once."""
    pooled = np.concatenate(groups)
    pooled.sort(kind="stable")  # quick, for each group is sorted already
    begins = np.flatnonzero(np.concatenate([[True], pooled[1:] != pooled[:-1]]))
    counts = np.diff(begins, append=pooled.size)
    return counts[counts > 1]


def _among(values: _Hashes, known: _Hashes) -> npt.NDArray[np.bool_]:
    """Which values are among the known ones, which are sorted."""
    at = np.searchsorted(known, values)
    np.minimum(at, known.size - 1, out=at)
    return np.asarray(known[at] == values)


def _places(pieces: list[_Piece], wanted: _Hashes) -> Iterator[tuple[str, int, np.uint64]]:
    """Yield table, row and hash of the first wanted record of each piece that has one."""
    for piece in pieces:
        found = _among(piece.hashes, wanted)
        if found.any():
            at = int(np.argmax(found))
            yield piece.table, piece.row(at), piece.hashes[at]


def _content(features: _Hashes, labels: Column) -> _Hashes:
    """A hash of features and label of each record."""
    table = labels.reshape(labels.shape[0], -1)
    try:
        hashes: _Hashes = hashes_of(table)
    except InputError:  # labels that are no plain values
        return features
    return features + _STEP * hashes


def _id_hashes(ids: Column) -> tuple[_Hashes, npt.NDArray[np.bool_]]:
    """Return a hash of each id, and which records have one; 7, 7.0 and "7" are the same id."""
    if ids.dtype.kind in "iub":
        return ids.astype(np.int64).view(np.uint64), np.ones(ids.size, dtype=np.bool_)
    import pyarrow.compute as pc
    from pandas.util import hash_array

    words = _words(ids)
    known = np.asarray(pc.fill_null(pc.not_equal(words, ""), fill_value=False))
    words = pc.fill_null(words, "")
    whole = np.asarray(pc.match_substring_regex(words, _WHOLE_NUMBER))
    result = np.empty(ids.size, dtype=np.uint64)
    result[whole] = np.asarray(words.filter(whole).cast("int64")).view(np.uint64)
    result[~whole] = hash_array(words.filter(~whole).to_numpy(zero_copy_only=False), categorize=False)
    return result, known


def _words(ids: Column) -> Any:
    """The ids as Arrow text without padding, null where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.dtype.kind in "OU":
        try:
            return pc.utf8_trim_whitespace(pa.array(ids, pa.string()))
        except (pa.ArrowException, UnicodeError):  # not only text
            pass
    words, missing = labels.text(ids)
    return pa.array(words.astype(object), pa.string(), mask=missing)
