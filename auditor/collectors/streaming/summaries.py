"""Losses of any number of records as counts of bins, in constant memory: summaries that add up [own].

The bins. A finite double is its sign, 11 bits of exponent and 52 of mantissa; all but the first ``bits`` of these
become 0, and -0 is 0. That moves no value across another one: it is a map b that never falls and is fixed before any data are
seen, so that counts of what it gives are those of a score, and those of two sets of records add up in any order.

Why no bound grows. Let X_i be the members' losses and Y_j the non-members'. If b(X_i) < b(Y_j) then X_i < Y_j, since b
never falls: so each entry of the strict matrix 1{b(X_i) < b(Y_j)} is at most that of 1{X_i < Y_j}. Every certified lower
bound here grows with this matrix: it comes from how many members lie strictly below the (k+1)-th smallest non-member, how
many non-members strictly above the (k+1)-th largest member, at ranks that numbers of records alone decide, or from the
largest gap of the two shares below a non-member. (The (k+1)-th smallest of b(Y) is b of that of Y.) So none is larger than
that of the losses themselves, and each holds by itself at its confidence, since b(loss) is a score like any other. Only
where a bound rests on audits that are drawn (`auditor.estimators.exact_test`, from some thousands of records on) is this
said of the statistic: the draws are at other ranks, whose noise moves either bound by a hundredth of a nat.

Numbers that are no lower bound (values, upper limits, the area under the curve, where ties count half) are about an attacker who sees
bins; who sees losses may do better. Questions about single records, or about a threshold within a bin, are refused.

Disclosure by a summary. For a bin with one record nearly its loss: to a 2^(bits - 12)-th of it. It holds no loss, no id, and
no label.

Merging (`Summary.merged`). Neighbouring bins become one until each holds 0 or at least 10 members, and 0 or at
least 10 non-members. Let c map each bin to the number of its merged bin. c never falls, so c(b(X_i)) < c(b(Y_j)) implies
b(X_i) < b(Y_j): the strict matrix only shrinks once more, and with it every certified lower bound. This holds for each data
set by itself, so the data may choose c: a merged bound exceeds the truth only where the unmerged one does. (Where audits are
drawn, this is again said of the statistic.) Values and upper limits may move either way, and the area
under the curve mostly towards a half.

The number of a merged bin is the one with the most zeros at its end, as a binary number, between the quartiles of the records
in it, which is a place on a fixed grid. Records beyond the quartiles do not change it, however far out they lie. (A mean would
give an outlier away: it is the mean times the number of records, less the others.) In the first bin the range begins at the 10th smallest record of all (``least``)
or further in, and in the last it ends at the 10th largest; where so few are in that bin, it reaches halfway to the next one.
No number reaches another bin, so that c never falls.
On 1,000 normal losses in each group this moves the mean of a Gaussian fit by about .013 standard deviations, and makes the
standard deviation 1.5% smaller, since the end bins count nearer to the others than they lie; the mean of each bin would move
them by .002 and .6%.

Merged summaries do not add up. Their maps differ: a member in the bins 5 to 9, numbered 9, may have a larger loss than a
non-member of another summary in the bins 7 to 10, numbered 10. So a merged summary says that it is one, and adding it to another
is refused.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import compress, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from auditor.collectors.streaming.engines import Engine, LocalEngine, Work
from auditor.collectors.tables import sources
from auditor.collectors.tables.collected import parquet_metadata, printable_lines, read_metadata
from auditor.collectors.tables.opening import open_table, tables_at
from auditor.collectors.tables.reading import facts_of_all
from auditor.core import MEMORY, InputError, Losses, LossScale, table_content, validate, write_all
from auditor.core.facts import Attacks, Released, attack_states, released_of
from auditor.core.values import SIGN_AND_EXPONENT, Booleans, Counted, Floats, Integers, Merged
from auditor.records.labels import default_units

BITS = 22  # at which the certified bound loses at most .01 nats on the laws that were tried
_FEWEST, _MOST = 13, 24  # beyond, the counts of all bins take more memory than losses that are worth counting
_COLUMNS = ("bin", "member", "nonmember")
_SETTING = ("bits", "loss", "scale")  # properties that summaries must share to be added
_OF_LOSSES = ("scale", "saturated", "notes", "stopped_by_evidence", "attacks", "released")
_ABOUT = ("bits", "loss", "is_merged", *_OF_LOSSES)  # metadata of a file besides its counts
_MARK, _VERSION = "auditor_summary", 1  # its mark, and the version of its form
_LONGEST = 2**20  # bytes of that
_MOST_RECORDS = 2**53  # beyond, shares of them cannot be distinguished


@dataclass(frozen=True, eq=False)
class Summary:
    """Numbers of members and of non-members whose loss lies in each bin: enough for an audit of counts.

    Two summaries of different records add up: ``a + b``, or ``sum(parts)``, in any order.

    Attributes:
        bin: Shape (k,), whole numbers, ascending: the first ``bits`` bits of a double without its sign, as a number with
            that sign. A bin without records need not be there.
        member: Shape (k,), how many members' losses each bin holds.
        nonmember: The same of the non-members.
        bits: Number of bits of a loss that decide its bin, 13 to 24. Sign and exponent take 12; each bin is then up to a
            2^(bits - 12)-th of its value wide, by default 1/1,024.
        loss: The name of the counted loss, which summaries must share to be added.
        scale: Scale of the loss, which they must share too.
        saturated: Numbers of member and non-member losses from a probability of exactly 0 or 1.
        notes: Warnings of the collection of the losses.
        stopped_by_evidence: Whether any of the losses are of runs whose number their evidence decided; see `Losses`.
        attacks: Attacks that the losses come from; see `Losses`.
        released: Facts about what was released; see `Losses`.
        is_merged: Whether neighbouring bins were merged; see `merged`. Such a summary is added to no other.

    Raises:
        InputError: Bins that do not ascend or are none of so many bits, or counts that are negative or of another length.

    >>> a, b = (Summary.of(Losses(member=[0.1, low], nonmember=[0.3, 0.9])) for low in (0.2, 0.1))
    >>> a + b
    Summary(4 members, 4 non-members, 4 bins of 22 bits)
    """

    bin: Integers
    member: Integers
    nonmember: Integers
    bits: int = BITS
    loss: str = "loss"
    scale: LossScale = LossScale.UNKNOWN
    saturated: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()
    stopped_by_evidence: bool = False
    attacks: Attacks = field(default_factory=dict)
    released: Released = Released()  # noqa: RUF009 - a frozen value
    is_merged: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", _checked_bits(self.bits))
        object.__setattr__(self, "scale", LossScale.named(self.scale))
        object.__setattr__(self, "attacks", attack_states(self.attacks))
        object.__setattr__(self, "released", released_of(self.released))
        object.__setattr__(self, "saturated", tuple(map(int, self.saturated)))
        for name in _COLUMNS:
            column = validate.column(name, getattr(self, name))
            if column.dtype.kind not in "iu" or column.dtype == np.uint64:
                raise InputError(f"{name} must hold whole numbers of a summary, got type {column.dtype}.")
            object.__setattr__(self, name, column.astype(np.int64))
        validate.same_length(_COLUMNS, [getattr(self, name).size for name in _COLUMNS])
        beyond = 0x7FF << (self.bits - SIGN_AND_EXPONENT)  # the first bin of no finite number
        if np.diff(self.bin).min(initial=1) < 1 or abs(self.bin).max(initial=0) >= beyond:
            raise InputError(
                f"bin must ascend and number bins of finite losses by {self.bits} bits, got others; make the summary again."
            )
        if min(self.member.min(initial=0), self.nonmember.min(initial=0)) < 0:
            raise InputError("member and nonmember must hold counts of 0 or more, got negative ones.")
        if max(self.member.sum(dtype=np.float64), self.nonmember.sum(dtype=np.float64)) >= _MOST_RECORDS:
            raise InputError("member and nonmember must count fewer than 2^53 records each, got more.")

    def __repr__(self) -> str:
        """Say how many records are counted, in how many bins."""
        counts = f"{self.n_member:,} members, {self.n_nonmember:,} non-members"
        return f"Summary({counts}, {self.bin.size:,} {'merged ' * self.is_merged}bins of {self.bits} bits)"

    @property
    def n_member(self) -> int:
        """Number of members."""
        return int(self.member.sum())

    @property
    def n_nonmember(self) -> int:
        """Number of non-members."""
        return int(self.nonmember.sum())

    @classmethod
    def of(cls, losses: Losses, *, bits: int = BITS) -> "Summary":
        """Return the summary of losses that are at hand: of one score for each person or id where several rows share one.

        Args:
            losses: Any.
            bits: See `Summary`.
        """
        bits = _checked_bits(bits)
        units = default_units(losses).losses
        groups = ((units.member, True), (units.nonmember, False))
        counted = _counted(((group, np.full(group.size, member)) for group, member in groups), bits)
        return replace(counted, **{name: getattr(losses, name) for name in _OF_LOSSES})

    def __add__(self, other: Any) -> "Summary":
        """Return the summary of the records of both.

        Raises:
            InputError: They are of other bits, or of another loss, or the bins of either were merged.
        """
        return _added([self, other]) if isinstance(other, Summary) else NotImplemented

    def __radd__(self, other: Any) -> "Summary":
        """Let `sum` begin with its 0."""
        return self if other == 0 else NotImplemented

    def merged(self, least: int = 10) -> "Summary":
        """Return the summary to share: each bin holds 0 or at least so many members, and 0 or at least so many non-members.

        From the smallest loss on, neighbouring bins are merged until they hold enough, and all that are left do. Losses within
        one bin are no longer distinguished, which can only lower a certified bound. A merged summary is audited like any
        other, but it is added to none: add the parts first. Where every bin holds enough already, nothing is merged.

        Args:
            least: 1 or more.

        Raises:
            InputError: A group of fewer records than that.

        >>> whole = Summary.of(Losses(member=[0.1, 0.2, 0.3, 0.8], nonmember=[0.4, 0.6, 0.7, 0.9]))
        >>> whole.merged(least=2).member.tolist(), whole.merged(least=2).nonmember.tolist()
        ([2, 2], [0, 4])
        """
        least = validate.at_least("least", least, least=1)
        if min(self.n_member, self.n_nonmember) < least:
            raise InputError(
                f"a summary must count at least {least:,} members and {least:,} non-members to be merged, got"
                f" {self.n_member:,} and {self.n_nonmember:,}; add more records, or keep every bin (auditor summarise --every-bin)."
            )
        used = self.member + self.nonmember > 0
        bins, groups = self.bin[used], np.stack([self.member[used], self.nonmember[used]])
        starts = _starts(groups, least=least)
        is_merged = self.is_merged or starts.size < bins.size
        member, nonmember = np.add.reduceat(groups, starts, axis=1)
        if starts.size < bins.size:
            bins = _numbers(bins, groups.sum(axis=0), starts, least=least)
        return replace(self, bin=bins, member=member, nonmember=nonmember, is_merged=is_merged)

    @cached_property
    def losses(self) -> Losses:
        """Losses of both groups as counts, without losses of single records.

        Raises:
            InputError: Fewer than two records in a group.
        """
        kind, groups = Merged if self.is_merged else Counted, dict[str, Any]()
        for name in _COLUMNS[1:]:
            counts: Integers = getattr(self, name)
            if counts.sum() < 2:  # noqa: PLR2004
                raise InputError(
                    f"{name} losses need at least 2 records, got a summary of {counts.sum()}; add one that has them."
                )
            values = _told_by(self.bin[counts > 0], self.bits)
            groups[name] = kind(values, counts[counts > 0], self.bits)
        step = f"{self.loss!r} counted in {'merged ' * self.is_merged}bins of {self.bits} bits"
        about: Any = {name: getattr(self, name) for name in _OF_LOSSES}
        return Losses(**groups, **about, history=(step,))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a ``.parquet`` file, whole or not at all.

        Raises:
            InputError: A path with another ending.
            OutputError: The path cannot be written.
        """
        import pandas as pd

        file = Path(path)
        if file.suffix.lower() != ".parquet":
            raise InputError(f"path must end in .parquet, got {str(path)!r}; name the file so.")
        about = {name: getattr(self, name) for name in _ABOUT}
        about |= {
            "released": asdict(self.released),
            _MARK: _VERSION,
            "counts": [self.n_member, self.n_nonmember],
        }
        frame = pd.DataFrame({name: getattr(self, name) for name in _COLUMNS})
        write_all({file: table_content(frame, file, note=json.dumps(about))})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Summary":
        """Return the summary in a file that `write` wrote.

        Raises:
            InputError: The file cannot be read, is no summary or not a whole one, or a later version wrote it.
        """
        table = open_table(path)
        about = _metadata(path)
        if about is None:
            raise InputError(
                f"{table.place} must be a summary, got another table; make one with auditor summarise, or read it with"
                " auditor.read_losses."
            )
        if about[_MARK] != _VERSION:
            raise InputError(
                f"{table.place} must be a summary of version {_VERSION}, got version {about[_MARK]!r:.20}; read it"
                " with the release that wrote it."
            )
        try:
            about = {"released": {}} | about  # which summaries of earlier versions lack
            values: dict[str, Any] = {name: about[name] for name in _ABOUT} | table.columns(_COLUMNS)
            values |= {"loss": printable_lines((about["loss"],))[0], "notes": printable_lines(about["notes"])}
            result = cls(**values)
            if about["counts"] != [result.n_member, result.n_nonmember]:
                raise ValueError("its counts do not add up")  # noqa: TRY301 - all become one sentence
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{table.place} is not a whole summary ({validate.one_line(error)}); make it again."
            ) from error
        return result

    @classmethod
    def from_files(
        cls,
        files: Iterable[Any],
        *,
        loss_column: str = "loss",
        member_column: str = "member",
        higher_is_member: bool = False,
        bits: int | None = None,
        memory: float = MEMORY,
        engine: Engine | None = None,
        progress: Callable[[str, int, int], None] = lambda _stage, _done, _total: None,
    ) -> "Summary":
        """Count the losses of tables of any size, a stretch at a time; summaries among the files are added as they are.

        Args:
            files: Tables with a column of losses and one of membership, of the kinds that `read_losses` takes, files of
                summaries, folders of either, or addresses of Parquet that fsspec knows (``s3://...``). A table may hold one
                group alone.
            loss_column: The losses, finite numbers; smaller means more like a member.
            member_column: 1 for a member and 0 for a non-member.
            higher_is_member: Whether a higher score means more like a member; the scores are then negated.
            bits: See `Summary`; default those of the summaries among the files, or 22.
            memory: Largest memory in bytes for the decoded part of a file, as for `read_losses`.
            engine: Executor of the work: `LocalEngine()` (the default) or `RayEngine(workers)`.
            progress: Called with the stage, the records that are counted, and all of them.

        Raises:
            InputError: A table that cannot be read, or a loss or membership that cannot be counted, with its file and row.
            MissingExtraError: A package that an address or the engine needs is not installed.

        >>> table = {"loss": [0.1, 0.2, 0.3, 0.9], "member": [1, 1, 0, 0]}
        >>> Summary.from_files([table, table]).n_member
        4
        """
        places = [place for item in files for place in _places(item, memory=memory)]
        kinds = [is_summary(place) for place in places]

        def read(place: Any) -> Summary:
            result = cls.read(place)
            _refuse_merged([(open_table(place).place, result)] if places[1:] else [])
            return result

        result = _folded(map(read, compress(places, kinds)))
        bits = _checked_bits((result.bits if result else BITS) if bits is None else bits)
        others = (place for place, counted in zip(places, kinds, strict=True) if not counted)
        tables = tuple(open_table(place, memory=memory) for place in others)
        work = _Counting(tables, loss_column, member_column, higher_is_member, bits)
        total = sum(map(len, work.readers))
        with closing((engine or LocalEngine()).results(work, work.units)) as results:
            result = _folded(results, result, moved=lambda done: progress("Counting", done, total))
        if result is None:
            raise InputError("files must hold at least one record, got none.")
        return result

    @classmethod
    def from_counts(cls, counts: Any, **about: Any) -> "Summary":
        """Return the summary of bins that a database counted.

        Args:
            counts: A DataFrame, another table or its file with a row for each bin: its number ``bin``, the counts
                ``member`` and ``nonmember``, and ``records``, the number of all its rows whatever their membership.
            about: Other attributes of the summary, such as ``bits``.

        Raises:
            InputError: A column is missing, a loss was missing, or some rows are neither members nor non-members.

        >>> Summary.from_counts({"bin": [1, 2], "member": [3, 0], "nonmember": [1, 4], "records": [4, 5]})
        Traceback (most recent call last):
        auditor.core.errors.InputError: counts must be of rows with a membership of 0 or 1, got 8 such rows of 9, 4 of 5 in bin 2; correct the others.
        """
        table = open_table(counts, name="counts")
        hint = "See 'Count losses in a database' in the documentation of summaries."
        columns = table.columns([table.named(name, what="", hint=hint) for name in (*_COLUMNS, "records")])
        if np.asarray(columns["bin"]).dtype.kind == "f":
            raise InputError(
                "counts must be of rows with a loss, got a bin without a number; correct the others."
            )
        result, records = cls(**{name: columns[name] for name in _COLUMNS} | about), columns["records"]
        if np.asarray(records).dtype.kind not in "iu":
            raise InputError(f"records must hold whole numbers, got type {np.asarray(records).dtype}.")
        known = np.asarray(columns["member"]) + np.asarray(columns["nonmember"])
        if (known != records).any():
            at = int(np.argmax(known != records))
            raise InputError(
                f"counts must be of rows with a membership of 0 or 1, got {known.sum():,} such rows of {records.sum():,},"
                f" {known[at]:,} of {records[at]:,} in bin {columns['bin'][at]}; correct the others."
            )
        return result


def _added(parts: Sequence[Summary]) -> Summary:
    """Return the sum of summaries of different records.

    Raises:
        InputError: They are of other bits, or of another loss, or the bins of one were merged.
    """
    first = parts[0]
    _refuse_merged([("one", part) for part in parts])
    for name, other in product(_SETTING, parts):
        if getattr(first, name) != getattr(other, name):
            raise InputError(
                f"summaries must share {name} to be added, got {getattr(first, name)} and {getattr(other, name)}; make"
                " them of one loss, with the same bits."
            )
    both, at = np.unique(np.concatenate([part.bin for part in parts]), return_inverse=True)
    counts = np.zeros((2, both.size), dtype=np.int64)
    for group, name in zip(counts, _COLUMNS[1:], strict=True):
        np.add.at(group, at, np.concatenate([getattr(part, name) for part in parts]))
    about: Any = {
        "saturated": tuple(np.sum([part.saturated for part in parts], axis=0).tolist()),
        "notes": tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        "stopped_by_evidence": any(part.stopped_by_evidence for part in parts),
        "attacks": {name: state for part in parts for name, state in part.attacks.items()},
        "released": next((part.released for part in parts if part.released != Released()), Released()),
    }
    return replace(first, bin=both, member=counts[0], nonmember=counts[1], **about)


def _folded(
    parts: Iterable[Summary], total: Summary | None = None, *, moved: Callable[[int], None] = lambda _: None
) -> Summary | None:
    """Return the sum of parts, of which a few are held at a time; None of none.

    Args:
        parts: Summaries, as they come.
        total: What they are added to.
        moved: Called with the number of records that came.
    """
    held, bins, done = [total] if total else [], 0, 0
    for part in parts:
        held.append(part)
        bins += part.bin.size
        done += part.n_member + part.n_nonmember
        moved(done)
        if bins > max(_HELD, held[0].bin.size):
            held, bins = [_added(held)], 0
    return _added(held) if held[1:] else next(iter(held), None)


def is_summary(data: Any) -> bool:
    """Return whether data are the path of a summary's file."""
    return _metadata(data) is not None


def _refuse_merged(parts: Iterable[tuple[str, Summary]]) -> None:
    """Refuse parts of a sum whose bins were merged, by name."""
    for name, part in parts:
        if part.is_merged:
            raise InputError(
                f"summaries must hold every bin to be added, got {name} whose bins were merged; make the parts with every bin"
                " (auditor summarise --every-bin), add those, and merge the sum."
            )


def _metadata(data: Any) -> dict[str, Any] | None:
    """Return the metadata of a summary file; None for any other file, or data in memory."""
    text, _ = parquet_metadata(data, b"note")
    try:
        result = json.loads((text or b"")[:_LONGEST])
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) and _MARK in result else None


# --- From losses to bins, and from bins to their representative values ---


def _checked_bits(bits: object) -> int:
    result = validate.at_least("bits", bits, least=_FEWEST)
    if result > _MOST:
        raise InputError(
            f"bits must be at most {_MOST}, got {result}: the counts of all bins would not fit in memory."
        )
    return result


def _told_by(bins: Integers, bits: int) -> Floats:
    """Return the value that represents each bin: the one nearest to 0."""
    values = (abs(bins) << (64 - bits)).view(np.float64)
    return np.where(bins < 0, -values, values)


def _starts(groups: Integers, *, least: int) -> Integers:
    """Return the starts of the merged bins, for groups with enough records; each bin, and the rest, holds enough."""

    def enough(held: Integers) -> Any:
        return ((held == 0) | (held >= least)).all(axis=0)

    before, result = np.cumsum(groups, axis=1) - groups, [0]
    for at in np.flatnonzero(enough(groups.sum(axis=1, keepdims=True) - before))[1:]:
        if enough(before[:, at] - before[:, result[-1]]):
            result.append(at)
    return np.array(result)


def _numbers(bins: Integers, counts: Integers, starts: Integers, *, least: int) -> Integers:
    """Return the number of each merged bin: the roundest between the quartiles of its records, and beyond ``least`` from either end."""
    upto = counts.cumsum()
    before = (upto - counts)[starts]
    size = np.diff(before, append=upto[-1])
    first, last = before - (-size // 4), before + size + 1 + (-size // 4)  # ranks, from 1
    first[0], last[-1] = max(first[0], least), min(last[-1], upto[-1] + 1 - least)
    last[0], first[-1] = max(last[0], first[0]), min(last[-1], first[-1])
    low, high = (bins[np.searchsorted(upto, ranks)] for ranks in (first, last))
    if starts.size > 1:  # halfway to the next record, since ``least`` may be all that an end bin holds
        beyond, within = bins[np.searchsorted(upto, [last[0] + 1, first[-1] - 1])]
        high[0] = (high[0] + beyond) // 2
        low[-1] = min(low[-1], (low[-1] + within) // 2 + 1)
    differ = (low - 1) ^ high
    zeros = np.frexp(differ)[1] - 1
    return np.where(differ < 0, 0, high >> zeros << zeros)


def _counted(stretches: Iterable[tuple[Floats, Booleans]], bits: int) -> Summary:
    """Return the summary of finite losses that come in stretches, with which of them are members'.

    Most of the bins are empty; each record is one addition.
    """
    counts = np.zeros((2, 2, 1 << (bits - 1)), dtype=np.int64)  # by group and by sign
    for values, members in stretches:
        bins = (values.view(np.uint64) >> np.uint64(64 - bits)).view(np.int64)
        np.add.at(counts.reshape(-1), bins + (members.astype(np.int64) << bits), 1)
    positive, negative = counts[:, 0], counts[:, 1]
    zero = positive[:, :1] + negative[:, :1]
    nonmember, member = np.concatenate([negative[:, :0:-1], zero, positive[:, 1:]], axis=1)
    used = np.flatnonzero(member + nonmember)
    return Summary(used - (positive.shape[1] - 1), member[used], nonmember[used], bits=bits)


# --- Tables, of which stretches are counted, here or in other processes ---

_HELD = 2**18  # bins of summaries that wait to be added
_UNIT = 2**24  # records that are counted between two looks
_STRETCH = 2**18  # records at a time


_Unit = tuple[int, int, int]  # which table, and from which row to before which


@dataclass(frozen=True, eq=False)
class _Counting(Work):
    """The work of counting two columns of tables, one stretch at a time.

    Attributes:
        tables: Open tables.
        loss: The column of losses.
        member: Column of membership.
        higher_is_member: Whether the losses are scores, which are negated.
        bits: See `Summary`.
    """

    tables: tuple[sources.Table, ...]
    loss: str
    member: str
    higher_is_member: bool
    bits: int

    sent: ClassVar[str] = "tables"
    if_not_sent: ClassVar[str] = "write them to files"
    if_too_large: ClassVar[str] = "fewer bits"

    @cached_property
    def readers(self) -> list[sources.Reader]:
        """Readers of both columns of each table."""
        readers = []
        for table in self.tables:
            loss = table.named(self.loss, what="losses", argument="loss_column")
            member = table.named(self.member, what="membership", argument="member_column")
            with sources.readable(table.origin):
                readers.append(table.reader([loss, member], text=()))
        return readers

    @property
    def units(self) -> list[_Unit]:
        """All stretches; one unit reads a table that is not a file here from beginning to end."""
        sizes = [(at, len(item), self.tables[at].path) for at, item in enumerate(self.readers)]
        steps = ((at, size, max(1, size) if path is None else _UNIT) for at, size, path in sizes)
        return [(at, row, min(size, row + step)) for at, size, step in steps for row in range(0, size, step)]

    def named(self, unit: _Unit) -> str:
        """Return whose rows these are."""
        return f"{self.tables[unit[0]].place} rows {unit[1]} to {unit[2] - 1}, counting from 0,"

    def __call__(self, unit: _Unit) -> Summary:
        """Return the summary of some rows; that from the first row on says too what is known of all.

        Raises:
            InputError: A loss or a membership that cannot be counted.
        """
        table = self.tables[unit[0]]
        with sources.readable(table.origin):
            counted = _counted(self._stretches(*unit), self.bits)
        about: dict[str, Any] = {"loss": f"-{self.loss}" if self.higher_is_member else self.loss}
        first, collected = unit[1] == 0, read_metadata(table.path)
        about |= facts_of_all(table) if first else {}
        if collected is not None:
            # And no other score, or one that is turned round.
            own = self.loss == "loss" and not self.higher_is_member
            about |= {"scale": collected.scale} if own else {}
            facts = ("saturated", "attacks", "released") if own and first else ()
            about |= {name: getattr(collected, name) for name in facts}
            about |= {"notes": collected.notes} if first else {}
        return replace(counted, **about)

    def _stretches(self, at: int, start: int, stop: int) -> Iterator[tuple[Floats, Booleans]]:
        """Yield the losses of some rows, and which of them are members'."""
        table, reader = self.tables[at], self.readers[at]
        place, of_marks = (f"column {name!r} of {table.place}" for name in (self.loss, self.member))
        for begin in range(start, stop, _STRETCH):
            stretch = reader.read(begin, min(stop, begin + _STRETCH))
            loss, member = (sources.without_gaps(stretch.column(name)) for name in (self.loss, self.member))
            rows = table.rows.after(begin)
            values = validate.finite_column(place, sources.numbers(loss, place=place, rows=rows), rows=rows)
            members = sources.marks(member, place=of_marks, rows=rows)
            yield -values if self.higher_is_member else values, members


# --- Where tables lie: here, in parts, or at an address ---


def _places(data: Any, *, memory: float) -> Iterator[Any]:
    """Yield data, or each part of a folder or an address for itself, so that an error names its file."""
    if address := sources.address_of(data):
        with sources.readable(address):
            yield from tables_at(address, memory=memory, apart=True)
        return
    path = sources.path_of(data)
    whole = path is None or not path.is_dir() or sources.is_partitioned(path)
    yield from [data] if whole else sources.parts(path)  # type: ignore[arg-type]  # there is a path
