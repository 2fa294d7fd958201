"""Changes behind a collection's back - model, losses, folder, disk - are detected, and nobody's files are touched."""

import errno
import fcntl
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, asked, parts_of, stream_to, tables
from pyarrow import parquet

from auditor import RecordTable, collect_to
from auditor.collectors.streaming import locked
from auditor.collectors.tables import read_losses, read_metadata
from auditor.core import InputError, OutputError, whole
from auditor.core.files import write_all, write_folder


def rolling(since, **settings):
    """A model behind an address that is another one from a certain call on."""

    def roll(_):
        if model.calls + 1 >= since:
            model.factor = 2.0

    model = FakeScorer(**settings, meanwhile=roll)
    return model


@pytest.mark.parametrize("identity", [None, "model-1"])
@pytest.mark.parametrize("since", [2, 11])
def test_a_model_that_changes_meanwhile_is_refused(tmp_path, since, identity):
    """Losses of two models are never merged: the sentence names a record with both losses, and the parts stay."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    sentence = r"the model changed, .*: the loss of members row 1, .* was 1\.970\d+ and is now 1\.313\d+"
    with pytest.raises(InputError, match=sentence):
        stream_to(path, scorer=rolling(since, identity=identity, log=log), sources=tables())
    assert asked(log) == [*range(57), *range(1000, 1045), *range(10)]
    assert not path.exists()
    assert len(parts_of(path)) == 11


@pytest.mark.parametrize("back", [False, True])
def test_columns_that_are_swapped_after_the_trial_are_noticed(tmp_path, back):
    """A server that answers with its columns swapped once it was tried is refused, whether or not it swaps them back."""
    path = tmp_path / "losses.parquet"
    frames = [
        pd.DataFrame({"x": np.linspace(-2, 2, 60) + shift, "y": np.arange(60) % 2}) for shift in (0, 0.01)
    ]
    asked = {"trial": True, "rows": 0}

    def model(table):
        p = 1 / (1 + np.exp(-table["x"].to_numpy()))
        asked["rows"] += 0 if asked["trial"] else len(table)
        swapped = not asked["trial"] and not (back and asked["rows"] > 120)
        return np.stack([p, 1 - p] if swapped else [1 - p, p], axis=1)

    def progress(stage, *_):
        asked["trial"] = stage == "Reading"

    tables = {
        "members": RecordTable(frames[0], label="y"),
        "nonmembers": RecordTable(frames[1], label="y"),
    }
    with pytest.raises(
        InputError, match=r"the model changed, .*: the loss of .* row \d+, .* was .* and is now"
    ):
        collect_to(path, model, **tables, batch_size=20, progress=progress)
    assert not path.exists()
    asked["trial"] = True
    clean = tmp_path / "clean.parquet"
    assert collect_to(clean, model, **tables, batch_size=20).scored_now == 120


@pytest.mark.parametrize("at", [0, 40])
def test_nothing_is_said_to_be_kept_where_nothing_is(tmp_path, at):
    """An interrupt before the first part is written, and one after somebody removed the parts, promise nothing."""
    path = tmp_path / "losses.parquet"

    def stop(records):
        if records.features[0, 0] == at:
            for part in parts_of(path):
                part.unlink()
            raise KeyboardInterrupt

    with pytest.raises(
        KeyboardInterrupt, match=r"^interrupted: nothing is scored yet, and the same call starts again\.$"
    ):
        stream_to(path, scorer=FakeScorer(meanwhile=stop), sources=tables())
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 102


def test_a_part_that_is_gone_before_the_model_is_asked_again_is_named(tmp_path):
    """A first part that somebody removes while the rest is scored ends in one sentence that says how to go on."""
    path = tmp_path / "losses.parquet"

    def remove(records):
        if 1040 in records.features[:, 0]:
            parts_of(path)[0].unlink()

    with pytest.raises(OutputError, match=r"part '.*part-00000000' was damaged or removed since"):
        stream_to(path, scorer=FakeScorer(meanwhile=remove), sources=tables())
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 10


def rewritten(path, change):
    """Write a file again with changed columns and the same metadata."""
    table = parquet.read_table(path)
    parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


def with_column(name, values):
    """A change of one column."""
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values(table[name])))


def nudged(column):
    """The values with the last one a little larger."""
    values = column.to_numpy().copy()
    values[-1] = np.nextafter(values[-1], np.inf)
    return values


@pytest.mark.parametrize(
    "change",
    [
        with_column("loss", lambda column: np.zeros(len(column))),
        with_column("loss", nudged),
        with_column("loss", lambda column: column.to_numpy().astype(np.float32)),
        with_column("loss", lambda column: [str(value) for value in column.to_pylist()]),
        with_column("loss", lambda column: [None, *column.to_pylist()[1:]]),
        with_column("member", lambda column: ~column.to_numpy()),
        with_column("member", lambda column: np.roll(column.to_numpy(), 1)),
        with_column("member", lambda column: 1.0 - column.to_numpy()),
        lambda table: table.take(np.random.default_rng(0).permutation(102)),
        lambda table: table.drop_columns(["member"]),
    ],
    ids=[
        "zeros",
        "one bit",
        "rounded",
        "text",
        "missing",
        "members",
        "shifted",
        "numbers",
        "order",
        "dropped",
    ],
)
def test_losses_that_were_rewritten_are_not_complete(tmp_path, change):
    """A file whose losses or groups were changed under its metadata is not read; it can be collected again."""
    path = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path
    assert read_losses(path).n_member == 57
    rewritten(path, change)
    there = "member" in parquet.read_schema(path).names
    changed = r"^file '.*losses.parquet' holds other losses or members .*; collect .* without the metadata 'auditor'"
    with pytest.raises(InputError, match=changed if there else "^column 'member' is not in"):
        read_losses(path)
    assert stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=True).scored_now == 102


def test_a_file_that_was_packed_otherwise_is_still_complete(tmp_path):
    """Other row groups, another compression and a column more leave the losses what they are."""
    path = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path
    table = parquet.read_table(path)
    table = table.append_column("more", pa.array(range(102)))
    parquet.write_table(table, path, compression="gzip", row_group_size=7)
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 0


def test_the_hashes_are_those_of_the_columns(tmp_path):
    """The metadata hold the SHA-256 of the eight bytes of each loss, and of each membership as a 64-bit word."""
    import hashlib

    path = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path
    table = parquet.read_table(path)
    words = [table["loss"].to_numpy().astype("<f8"), table["member"].to_numpy().astype("<u8")]
    expected = [hashlib.sha256(column.tobytes()).hexdigest() for column in words]
    assert read_metadata(path).content == dict(zip(("loss", "member"), expected, strict=True))


FOREIGN = ("part-0", "part-00000001-c000.snappy.parquet", "part-000000001", ".draft-letter")


def test_names_that_are_not_ours_are_never_touched(tmp_path):
    """Files with nearly the names of parts and drafts outlast collections, interruptions and overwriting."""
    path = tmp_path / "losses.parquet"
    folder = tmp_path / "losses.parquet.parts"
    folder.mkdir()
    for name in FOREIGN:
        (folder / name).write_text("mine")
    with pytest.raises(ValueError, match="1030"):
        stream_to(path, scorer=FakeScorer(fail_at=1030), sources=tables())
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).resumed == 87
    stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=True)
    assert {item.name for item in folder.iterdir()} == {*FOREIGN, "lock"}
    assert {(folder / name).read_text() for name in FOREIGN} == {"mine"}


@pytest.mark.parametrize("overwrite", [True, False])
def test_parts_that_no_manifest_knows_are_kept(tmp_path, overwrite):
    """Files of others with the very names of parts are never removed; in the way of new parts they are named."""
    path, other = tmp_path / "losses.parquet", tmp_path / "losses.parquet.parts" / "part-00000003"
    stream_to(path, scorer=FakeScorer(), sources=tables())
    other.parent.mkdir()
    other.write_text("mine")
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 0
    path.unlink()
    with pytest.raises(
        InputError, match=r"parts' must hold an interrupted collection or no parts, got 'part-00000003'"
    ):
        stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=overwrite)
    assert other.read_text() == "mine"


def test_files_are_synced_through_handles_that_may_write(tmp_path, monkeypatch):
    """Every file is put on disk through a handle for writing, without which Windows refuses to."""
    modes, plain = [], os.fsync

    def fsync(handle):
        if not os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - a number, no path
            modes.append(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE)
        plain(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with whole(tmp_path / "file", folder=tmp_path) as draft:
        draft.write_text("words")
    assert modes == [os.O_RDWR]
    write_all({tmp_path / "one": "words", tmp_path / "two": b"bytes"})
    write_folder(tmp_path / "folder", {"three": "words"})
    assert modes == [os.O_RDWR] * 4


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no names of handles")
def test_outputs_are_on_disk_before_they_take_their_places_and_so_are_their_names(tmp_path, monkeypatch):
    """Each file is synced while it is a draft, and the folder after its name is there; one that has no handles goes by."""
    steps, plain = [], os.fsync

    def fsync(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 - a number, no path
        there = (tmp_path / "one").exists() or (tmp_path / "folder" / "two").exists()
        steps.append(("folder" if path.is_dir() else "file", there))
        if path.is_dir():
            raise OSError(errno.EINVAL, "no folders here")
        plain(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_all({tmp_path / "one": "words"})
    assert steps == [("file", False), ("folder", True)]
    steps.clear()
    (tmp_path / "one").unlink()
    write_folder(tmp_path / "folder", {"two": "words"})
    assert steps == [("file", False), ("folder", False), ("folder", True)]
    assert (tmp_path / "folder" / "two").read_text() == "words"


def test_the_lock_goes_where_open_files_cannot_be_removed(tmp_path, monkeypatch):
    """On Windows, which removes no file that is open, the folder of the lock is removed nonetheless."""
    held, opened, closed, removed = set(), os.open, os.close, Path.unlink

    def opens(path, *arguments):
        handle = opened(path, *arguments)
        held.add(handle)
        return handle

    def closes(handle):
        held.discard(handle)
        closed(handle)

    def unlink(path, **arguments):
        if any(os.path.samestat(os.fstat(handle), path.stat()) for handle in held):
            raise PermissionError(errno.EACCES, "in use")
        removed(path, **arguments)

    monkeypatch.setattr("auditor.collectors.streaming.parts._HELD_FILES_CAN_GO", False)
    for owner, name, function in ((os, "open", opens), (os, "close", closes), (Path, "unlink", unlink)):
        monkeypatch.setattr(owner, name, function)
    with locked(tmp_path / "folder"):
        assert (tmp_path / "folder" / "lock").exists()
    assert list(tmp_path.iterdir()) == []
    assert held == set()
