"""Conversion of the columns of a file, or of one file for each group, to `Losses`, `Features` or a training run."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.tables.collected import read_metadata, refuse_altered
from auditor.collectors.tables.opening import open_table
from auditor.collectors.tables.sources import Column, Table, marks, numbers, refuse_same
from auditor.core import DPSGD, MEMORY, InputError, PoissonSampling, Sampling, alike, validate
from auditor.core.facts import Attack, Attacks, AttackState, Released
from auditor.core.values import Array, Booleans, Floats, Losses, LossScale, OutputPolicy, PerGroup
from auditor.records.features import Features

# --- Shared parts of the readers of files: the membership column, and the names of columns ---


_NAMED_BY = "--{0}-column, {0}_column of auditor.read_losses"
_TWO_FILES = ", or give the two files as members and non-members instead"
_MEMBER_HINT = (
    f"Name the column of membership ({_NAMED_BY.format('member')}) if it is called otherwise{_TWO_FILES}."
)


def _place(name: str, table: Table) -> str:
    return f"column {name!r} of {table.place}"


def _member_name(name: str, table: Table) -> str:
    """Return the name of the membership column, or list the columns of the file."""
    return table.named(name, what="membership", hint=_MEMBER_HINT, argument="member_column")


def _membership(column: Column, table: Table, name: str) -> Booleans:
    """Return a mask of the members; both groups must be there."""
    mask = marks(column, place=_place(name, table), rows=table.rows)
    return _with_both(mask, place=_place(name, table), fix=_TWO_FILES)


def _with_both(mask: Booleans, *, place: str, fix: str = "") -> Booleans:
    count = int(mask.sum())
    if count in (0, mask.size):
        kind = "non-member (0)" if count else "member (1)"
        raise InputError(
            f"{place} must mark both groups, got {mask.size} records and no {kind}; {validate.CODING}{fix}."
        )
    return mask


# --- A loss column and a 0/1 membership column become `Losses` ---


_UNCHECKED = "not compared with the collected losses, because other records or another membership are read"
_NEGATED = "negated, because a higher score means more like a member"


@alike
def from_columns(
    loss: npt.ArrayLike,
    *,
    member: npt.ArrayLike,
    id: npt.ArrayLike | None = None,  # noqa: A002  # the name of the field in Losses
    group: npt.ArrayLike | None = None,
    person: npt.ArrayLike | None = None,
    label: npt.ArrayLike | None = None,
    fingerprint: npt.ArrayLike | None = None,
    correct: npt.ArrayLike | None = None,
    inclusion: npt.ArrayLike | None = None,
    policies: Mapping[str, npt.ArrayLike] = MappingProxyType({}),
    higher_is_member: bool = False,
    scale: LossScale = LossScale.UNKNOWN,
    saturated: tuple[int, int] = (0, 0),
    history: Sequence[str] = (),
    notes: Sequence[str] = (),
    stopped_by_evidence: bool = False,
    attacks: Attacks = MappingProxyType({}),
    released: Released = Released(),  # noqa: B008 - a frozen value
) -> Losses:
    """Split one column of losses into members and non-members.

    Args:
        loss: Shape (n,), finite numbers; smaller means more like a member.
        member: Shape (n,), 1 for a member and 0 for a non-member, of type int, float or bool.
        id: Optional record ids, shape (n,).
        group: Optional slices to report by, shape (n,).
        person: Optional data subject of each record, shape (n,).
        label: Optional true class of each record, shape (n,).
        fingerprint: Optional hash of each record's features, shape (n,).
        correct: Optional, whether the model classified each record correctly, shape (n,).
        inclusion: Optional probability that each record becomes a member, in (0, 1), shape (n,).
        policies: Optional losses of the same records under restricted answers, shape (n,) each, by the answer,
            such as ``label``.
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.
        scale: Scale of the loss, if that is known.
        saturated: Numbers of member and non-member losses from a probability of exactly 0 or 1.
        history: Where the column came from, first step first.
        notes: Warnings of the collection of the losses, for readers.
        stopped_by_evidence: Whether the evidence in these runs decided how many there are; see `Losses`.
        attacks: Attacks that the losses come from; see `Losses`.
        released: Facts about what was released; see `Losses`.

    Returns:
        The losses of both groups, each in the order of the column.

    Raises:
        InputError: Columns of different lengths, a loss that is not finite, a masked value, a membership other
            than 0 and 1 (NaN included), or a group with fewer than two records.

    >>> losses = from_columns([0.1, 0.9, 0.2, 0.7], member=[1, 0, 1, 0])
    >>> losses.member, losses.nonmember
    (array([0.1, 0.2]), array([0.9, 0.7]))
    """
    values = validate.finite_column("the loss column", loss)
    mask = marks(validate.column("the member column", member), place="the member column")
    labels = {"id": id, "group": group, "person": person, "label": label, "fingerprint": fingerprint}
    columns = {
        name: validate.label_column(f"the {name} column", column)
        for name, column in {**labels, "correct": correct, "inclusion": inclusion}.items()
        if column is not None
    }
    under = {name: validate.finite_column(f"the {name} losses", column) for name, column in policies.items()}
    others = (*columns.values(), *under.values())
    validate.same_length(
        ["loss", "member", *columns, *under], [column.size for column in (values, mask, *others)]
    )
    _with_both(mask, place="the member column")
    return _of_groups(
        _split(values, mask),
        higher_is_member=higher_is_member,
        history=history or ["loss and membership columns"],
        scale=scale,
        saturated=saturated,
        notes=tuple(notes),
        stopped_by_evidence=stopped_by_evidence,
        attacks=attacks,
        released=released,
        policies={
            name: _split(-column if higher_is_member else column, mask) for name, column in under.items()
        },
        **{name: _split(column, mask) for name, column in columns.items()},
    )


def _split(column: Array, mask: Booleans) -> PerGroup:
    return PerGroup(column[mask], column[~mask])


def _of_groups(losses: PerGroup, *, higher_is_member: bool, history: Sequence[str], **facts: Any) -> Losses:
    """Build losses from two checked columns, negated if they are scores of membership."""
    if higher_is_member:
        losses, history = PerGroup(-losses.member, -losses.nonmember), (*history, _NEGATED)
    return Losses(*losses, history=tuple(history), **facts)


# --- Files of losses ---


def read_losses(
    path: str | os.PathLike[str] | Any,
    *,
    loss_column: str = "loss",
    member_column: str = "member",
    id_column: str | None = "id",
    group_column: str | None = "group",
    person_column: str | None = "person",
    label_column: str | None = None,
    higher_is_member: bool = False,
    memory: float = MEMORY,
) -> Losses:
    r"""Read losses and membership from one file, or from one table in memory.

    A file of `auditor.collect_to` describes its losses, their origin and the number of saturated ones;
    together with its true classes, fingerprints and which records were classified correctly they are the losses that `auditor.collect` would have returned.
    Beside a column ``loss`` those under output policies are read too, such as ``loss.digits=2`` or ``loss.label``. A column
    (or array) ``stopped_by_evidence`` with a 1 marks runs whose number their evidence decided, and one such as
    ``attack.reference`` scores of that attack, as `Losses.to_frame` writes them.

    Args:
        path: A ``.csv`` or ``.tsv`` (UTF-8, one line of names; also with ``.gz`` behind it), ``.parquet``, ``.arrow``, ``.feather``, ``.jsonl`` or ``.npz`` file (the
            arrays are the columns; never pickled), a folder of ``.parquet`` or CSV files, or the address of Parquet that fsspec knows (``s3://...``). Or a pandas or polars
            DataFrame, a pyarrow Table or Dataset, or a dictionary of columns.
        loss_column: The losses, finite numbers; smaller means more like a member.
        member_column: 1 for a member and 0 for a non-member; integers, floats or booleans.
        id_column: Record ids, read if the file has them; an error if another name than the default is missing.
            None reads none. In a CSV ids are read as text, so that leading zeros survive.
        group_column: Slices to report by, read as ids are.
        person_column: Data subject of each record, read as ids are; a column ``inclusion`` holds the probability with which each record
            was to be a member.
        label_column: The true class of each record, to report by; read only if named, or if `auditor.collect_to` wrote
            it.
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.
        memory: Largest memory in bytes for the decoded columns of a file; a larger file is refused before it is read.

    Returns:
        The losses of both groups, each in the order of the file; ``history`` names the file without its folder.

    Raises:
        InputError: A file that cannot be read, a missing column, collected losses that were altered since, or values that
            are no finite losses or no 0/1 membership; the sentence names the file, the column and the first row.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     _ = path.write_text("loss,member\n0.1,1\n0.9,0\n0.2,1\n0.7,0\n")
    ...     read_losses(path).member
    array([0.1, 0.2])
    """
    table = open_table(path, memory=memory)
    collected = read_metadata(table)
    own = _OWN if collected else ()
    if label_column is None and collected and "label" in table.names:
        label_column = "label"
    labels = {"id": id_column, "group": group_column, "person": person_column, "label": label_column}
    fields = _fields(table, labels, own)
    names = _loss_name(loss_column, table), _member_name(member_column, table)
    under = OutputPolicy.columns_among(table.names if loss_column == "loss" else ())
    columns = _columns(table, names[0], fields, others=(names[1], *under))
    facts: dict[str, Any] = {field: columns[name] for field, name in fields.items()}
    facts |= facts_of_all(table)
    facts["history"] = [f"column {loss_column!r} of {table.title}, membership from column {member_column!r}"]
    facts["policies"] = {policy: _losses(columns[name], table, name) for name, policy in under.items()}
    if collected is not None:
        facts["notes"] = collected.notes
        checked = refuse_altered(columns, collected, place=table.place)
        if loss_column == "loss":  # and no other score that stands beside it
            facts["history"] = collected.history if checked else (*collected.history, _UNCHECKED)
            facts["attacks"] |= collected.attacks
            facts["released"] = collected.released
            if not higher_is_member:  # turned round, they are no longer on their scale
                facts |= {"scale": collected.scale, "saturated": collected.saturated}
    return from_columns(
        _losses(columns[loss_column], table, loss_column),
        member=_membership(columns[member_column], table, member_column),
        **facts,
        higher_is_member=higher_is_member,
    )


_ODDS = "inclusion"
_OWN = ("fingerprint", "correct")  # columns that only a collected file has under these names


def _fields(table: Table, names: Mapping[str, str | None], own: Sequence[str] = ()) -> dict[str, str]:
    """Return the columns of each record besides its loss, by the field of `Losses`."""
    beside = table.beside(names, ending="_column")
    return beside | {name: name for name in (*own, _ODDS) if name in table.names}


def _columns(
    table: Table, loss: str, fields: Mapping[str, str], others: Sequence[str] = ()
) -> dict[str, Column]:
    """Return the columns of losses and the columns besides them, which are checked."""
    text = [name for field, name in fields.items() if field not in (*_OWN, _ODDS)]
    columns = table.columns([loss, *others, *fields.values()], text=text)
    if _ODDS in fields:
        odds = _losses(columns[_ODDS], table, _ODDS)
        columns[_ODDS] = validate.coin_column(_place(_ODDS, table), odds, rows=table.rows)
    hashes = columns.get(fields.get("fingerprint", ""))
    if hashes is not None and hashes.dtype != np.uint64:
        raise InputError(
            f"{_place('fingerprint', table)} must hold whole numbers of 64 bits, got"
            f" {hashes.dtype}; collect the losses again, or leave the column out."
        )
    return columns


def read_loss_pair(
    member_path: str | os.PathLike[str] | Any,
    nonmember_path: str | os.PathLike[str] | Any,
    *,
    loss_column: str = "loss",
    member_column: str | None = "member",
    id_column: str | None = "id",
    group_column: str | None = "group",
    person_column: str | None = "person",
    label_column: str | None = None,
    higher_is_member: bool = False,
    memory: float = MEMORY,
) -> Losses:
    r"""Read losses from two files, one for the members and one for the non-members.

    Args:
        member_path: Losses on training records; the kinds of file are those of `read_losses`.
        nonmember_path: Losses on records that the model never saw.
        loss_column: The losses in both files, finite numbers; smaller means more like a member.
        member_column: Membership, if a file has it: it must then be 1 in every row of the members' file and 0 in
            every row of the non-members'. An error if another name than the default is missing. None ignores it.
        id_column: Record ids, read if both files have them; see `read_losses`.
        group_column: Slices to report by, read as ids are.
        person_column: Data subject of each record, read as ids are.
        label_column: The true class of each record, to report by; read only if named.
        higher_is_member: Whether a higher score means more like a member; the scores are then negated.
        memory: Bytes that the columns of each file may take once decoded, as for `read_losses`.

    Returns:
        The losses of both groups, each in the order of its file.

    Raises:
        InputError: As for `read_losses`, or both paths name the same file, or a file mixes the groups.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder) / name for name in ("in.csv", "out.csv")]
    ...     _ = [path.write_text(text) for path, text in zip(paths, ("loss\n0.1\n0.2\n", "loss\n0.9\n0.7\n"))]
    ...     read_loss_pair(*paths).nonmember
    array([0.9, 0.7])
    """
    refuse_same(member_path, nonmember_path)
    tables = [open_table(path, memory=memory) for path in (member_path, nonmember_path)]
    labels = {"id": id_column, "group": group_column, "person": person_column, "label": label_column}
    first, second = (_fields(table, labels) for table in tables)
    shared = {field: name for field, name in first.items() if field in second}
    losses, sides = [], []
    for table, group in zip(tables, (True, False), strict=True):
        columns = _columns(table, _loss_name(loss_column, table), shared)
        losses.append(_losses(columns[loss_column], table, loss_column))
        sides.append(columns)
        if member_column != loss_column:
            _refuse_mixed(table, member_column, group=group)
    history = [
        f"column {loss_column!r} of {tables[0].title} (members) and of {tables[1].title} (non-members)"
    ]
    alone = sorted({*first.values(), *second.values()} - {*shared.values(), _ODDS})
    if alone:
        history.append(f"left out, because only one of the files has it: {', '.join(alone)}")
    facts: dict[str, Any] = {
        field: PerGroup(*(columns[name] for columns in sides)) for field, name in shared.items()
    }
    facts |= facts_of_all(*tables)
    return _of_groups(PerGroup(*losses), higher_is_member=higher_is_member, history=history, **facts)


def _refuse_mixed(table: Table, name: str | None, *, group: bool) -> None:
    """Refuse a file of one group whose membership column says that it holds others."""
    if name is None or (name == "member" and name not in table.names):
        return
    table.named(name, what="membership", argument="member_column")
    marks(table.columns([name])[name], place=_place(name, table), rows=table.rows, group=group)


def _losses(column: Column, table: Table, name: str) -> Floats:
    place = _place(name, table)
    if column.dtype.kind not in "fiub":
        column = numbers(column, place=place, rows=table.rows)
    return validate.finite_column(place, column, rows=table.rows)


_STOPPED = "stopped_by_evidence"
_MARKS = {_STOPPED: "runs whose number their evidence decided"} | {
    item.column: "scores of this attack" for item in Attack
}


def facts_of_all(*tables: Table) -> dict[str, Any]:
    """Return the marks of any rows of the tables: runs whose number their evidence decided, and scores of attacks."""
    marks = {name for table in tables for name in _MARKS if _is_marked(table, name)}
    attacks = {item: AttackState.RUN for item in Attack if item.column in marks}
    return {_STOPPED: _STOPPED in marks, "attacks": attacks}


def _is_marked(table: Table, name: str) -> bool:
    alone = sorted(table.later & {name, _ODDS, "id", "person"})
    if alone:
        raise InputError(
            f"{table.place} must have the column {alone[0]!r} in each of its parts or in none, got one that the first part lacks;"
            " add it there, blank where it says nothing."
        )
    if name not in table.names:
        return False
    place, column = _place(name, table), table.columns([name])[name]
    # Blank in the rows of a table that was added to it.
    marked = np.nan_to_num(numbers(column, place=place, rows=table.rows, truth=True))
    if not np.isin(marked, (0, 1)).all():
        raise InputError(
            f"{place} must hold only 0 and 1 ({_MARKS[name]}), got {marked[~np.isin(marked, (0, 1))][0]:g}; give the column"
            " another name if it means something else."
        )
    return bool(marked.any())


def _loss_name(name: str, table: Table) -> str:
    """Return the name of the column of losses, or raise with the columns of the file and the likely fault of its header."""
    hint = f"Name the column of losses ({_NAMED_BY.format('loss')}) if it is called otherwise."
    if len(table.names) == 1 and any(mark in table.names[0] for mark in ";\t|,"):
        hint = "The columns must be separated by commas, or in a .tsv by tabulators."
    elif {"bin", "nonmember"} <= {*table.names}:
        hint = "A summary holds no losses: audit it as it is, or read it with auditor.Summary.read."
    return table.named(name, what="losses", hint=hint, argument="loss_column")


# --- Columns that describe the records become `Features`, in the order of the losses ---


def read_features(
    path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str],
    member_column: str = "member",
    not_features: Sequence[str] = (),
    memory: float = MEMORY,
) -> Features:
    r"""Read the features of the records besides their losses, from the file that holds the losses.

    Args:
        path: A file, or a table in memory; the kinds are those of `read_losses`.
        columns: The columns to read. A CSV column of which every cell is a number or blank holds numbers, any other
            one text; a blank is a missing value.
        member_column: 1 for a member and 0 for a non-member; integers, floats or booleans.
        not_features: Columns with another part to play, such as those of losses, ids and data subjects: none of them, nor
            that of membership, may be among the features. The column of groups may.
        memory: Bytes that the columns of a file may take once decoded, as for `read_losses`.

    Returns:
        The features of both groups, each in the order of the file, which is that of `read_losses`.

    Raises:
        InputError: A file that cannot be read, a missing column, one that is no feature, or membership other than 0 and 1.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "losses.csv"
    ...     _ = path.write_text("loss,member,age,job\n0.1,1,31,cook\n0.9,0,45,\n0.2,1,28,judge\n")
    ...     features = read_features(path, columns=["age", "job"])
    >>> features.names, features.n_member, features.n_nonmember
    (('age', 'job'), 2, 1)
    """
    table = open_table(path, memory=memory)
    names = _feature_names(columns, table, not_features, member_column)
    values = table.columns([_member_name(member_column, table), *names])
    mask = _membership(values.pop(member_column), table, member_column)
    cells = {name: _feature(column, table, name) for name, column in values.items()}
    return Features(*({name: column[side] for name, column in cells.items()} for side in (mask, ~mask)))


def read_feature_pair(
    member_path: str | os.PathLike[str] | Any,
    nonmember_path: str | os.PathLike[str] | Any,
    *,
    columns: Sequence[str],
    not_features: Sequence[str] = (),
    memory: float = MEMORY,
) -> Features:
    r"""Read the features of the records from one file for each group, as `read_loss_pair` reads the losses.

    Args:
        member_path: Path of the members.
        nonmember_path: Path of the non-members, with the same columns.
        columns: The columns to read, as for `read_features`.
        not_features: Columns with another part to play, as for `read_features`.
        memory: Bytes that the columns of each file may take once decoded, as for `read_losses`.

    Raises:
        InputError: A file that cannot be read, a missing column, or one that is no feature.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder) / name for name in ("in.csv", "out.csv")]
    ...     _ = [path.write_text("loss,age\n0.1,31\n0.2,40\n") for path in paths]
    ...     read_feature_pair(*paths, columns=["age"]).n_nonmember
    2
    """
    sides = []
    for path in (member_path, nonmember_path):
        table = open_table(path, memory=memory)
        values = table.columns(_feature_names(columns, table, not_features))
        sides.append({name: _feature(column, table, name) for name, column in values.items()})
    return Features(*sides)


def _feature_names(
    columns: Sequence[str], table: Table, not_features: Sequence[str], *others: str
) -> list[str]:
    for argument, names in (("columns", columns), ("not_features", not_features)):
        if isinstance(names, str) or not isinstance(names, Sequence) or (names is columns and not columns):
            raise InputError(f"{argument} must be a list of names of columns, got {names!r}.")
    for name in columns:
        if name in (*not_features, *others) and name in table.names:
            raise InputError(
                f"columns must not name {name!r} in {table.place}, which is a column of losses, membership, ids or people:"
                " naming it makes any leak look like a shift; name columns that describe the records."
            )
    return [table.named(name, what="features", argument="columns") for name in dict.fromkeys(columns)]


def _feature(column: Column, table: Table, name: str) -> Column:
    """Return a column, with text that holds only numbers as numbers, and blanks among other text as None."""
    if column.dtype.kind not in "OUT":
        return column
    try:
        return numbers(column, place=_place(name, table), rows=table.rows)
    except InputError:
        return np.array([None if cell == "" else cell for cell in column.tolist()], dtype=object)


# --- A DP-SGD run, described step by step ---


_NEEDED = ("noise_multiplier", "sampling_rate")
_OPTIONAL = ("clipping_norm", "steps")
_MOST_STEPS = 10_000_000
_SCHEDULE_HINT = "Name the columns of a schedule 'noise_multiplier' and 'sampling_rate', and 'clipping_norm' and 'steps' if any."


def read_schedule(
    path: str | os.PathLike[str],
    *,
    sampling: Sampling = PoissonSampling(),  # noqa: B008 - a frozen value
) -> DPSGD:
    r"""Read a training run from a table with one row for each step, or for several equal steps.

    Args:
        path: A ``.csv``, ``.parquet`` or ``.npz`` file with the columns ``noise_multiplier`` and ``sampling_rate``, and
            optionally ``clipping_norm`` (default 1) and ``steps`` (how many steps a row stands for, default 1).
        sampling: Sampling of the batches.

    Returns:
        The run, its rows in the order of the file.

    Raises:
        InputError: A file that cannot be read, a missing column, or a number out of range, with its column and row.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "steps.csv"
    ...     _ = path.write_text("noise_multiplier,sampling_rate,steps\n1.0,0.01,500\n2.0,0.01,500\n")
    ...     read_schedule(path).in_words()
    'DP-SGD with noise multiplier 1 to 2 (by step), sampling rate 0.01 and 1,000 steps'
    """
    table = open_table(path)
    # A column that is there in other capitals must not be passed over.
    spelled = {name.casefold() for name in table.names}
    names = [*_NEEDED, *(name for name in _OPTIONAL if name in spelled)]
    for name in names:
        table.named(name, what=name.replace("_", " "), hint=_SCHEDULE_HINT)
    values = {name: _of_steps(column, table, name) for name, column in table.columns(names).items()}
    if not values[_NEEDED[0]].size:
        raise InputError(
            f"{table.place} must describe at least one step, got a table without rows; add a row for each step."
        )
    steps = values.pop("steps", np.ones(values[_NEEDED[0]].size))
    with np.errstate(over="ignore"):
        total = steps.sum()
    if total > _MOST_STEPS:
        raise InputError(
            f"{table.place} must describe at most {_MOST_STEPS:,} steps, got {total:,.0f}; describe a run of equal steps"
            " by one noise multiplier, sampling rate and number of steps."
        )
    repeated: dict[str, Any] = {
        name: np.repeat(column, steps.astype(np.int64)) for name, column in values.items()
    }
    return DPSGD(**repeated, sampling=sampling)


def _of_steps(column: Column, table: Table, name: str) -> Floats:
    """Return one column of a schedule, with each value in its range."""
    values = numbers(column, place=_place(name, table), rows=table.rows)
    rule, good = "above 0", values > 0
    if name == "sampling_rate":
        rule, good = "in (0, 1]", (values > 0) & (values <= 1)
    elif name == "steps":
        rule, good = "a whole number of 1 or more", (values >= 1) & (values == np.floor(values))
    for words, wrong in (("a finite number", ~np.isfinite(values)), (rule, ~good)):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{_place(name, table)} must be {words} in every row, got {values[row]:g} ({table.rows.at(row)});"
                " correct that step."
            )
    return values
