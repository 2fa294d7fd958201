"""What changes behind a collection's back - model, losses, folder, disk - is found out, and nobody's files are touched."""

import errno
import fcntl
import os
import shutil
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, asked, digest, tables
from pyarrow import parquet

from auditor.collectors.streaming import Trial, locked, stream_to
from auditor.collectors.tables import read_metadata
from auditor.core import InputError, OutputError, whole


class Rolling(FakeScorer):
    """A model behind an address that is another one from a certain call on."""

    since = 0

    def score(self, records):
        """Return other losses in time."""
        if self.calls + 1 >= self.since:
            self.factor = 2.0
        return super().score(records)


def rolling(since, **settings):
    """Such a model, the same for all calls before."""
    model = Rolling(**settings)
    model.since = since
    return model


def parts_of(path):
    """The parts beside an output."""
    return sorted(path.with_name(path.name + ".parts").glob("part-*.parquet"))


@pytest.mark.parametrize("identity", [None, "model-1"])
@pytest.mark.parametrize("since", [2, 7, 11])
def test_a_model_that_changes_meanwhile_is_refused(tmp_path, since, identity):
    """Losses of two models are never merged: the sentence names a record with both losses, and the parts stay."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    sentence = (
        r"^folder '.*losses.parquet.parts' holds 102 losses of this collection, but the model changed, or answers"
        r" differently each time: the loss of members row 1, counting from 0, was 1\.970\d+ and is now 1\.313\d+; find"
        r" out when it changed, and once it stays the same delete the folder to begin anew, or name another output\.$"
    )
    with pytest.raises(InputError, match=sentence):
        stream_to(path, scorer=rolling(since, identity=identity, log=log), sources=tables())
    assert asked(log) == [*range(57), *range(1000, 1045), *range(10)]
    assert not path.exists()
    assert len(parts_of(path)) == 11


def test_a_model_that_changes_early_is_found_early(tmp_path):
    """Without an identity the model is asked again after each hundred parts, for one record in a hundred at most."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    with pytest.raises(InputError, match="holds 2,000 losses of this collection, but the model changed"):
        stream_to(path, scorer=rolling(150, identity=None), sources=tables(3000, 2000))
    assert len(parts_of(path)) == 200
    steady = tmp_path / "steady.parquet"
    stream_to(steady, scorer=FakeScorer(identity=None, log=log), sources=tables(3000, 2000))
    assert len(asked(log)) == 5000 + 5 * 10 + 10
    log.unlink()
    stream_to(tmp_path / "known.parquet", scorer=FakeScorer(log=log), sources=tables(3000, 2000))
    assert len(asked(log)) == 5000 + 10


def test_a_model_that_answers_at_random_may_go_on_doing_so(tmp_path):
    """Where the trial found that answers differ on repeat, no other answers are asked for."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    scorer = rolling(5, identity=None, log=log)
    stream_to(path, scorer=scorer, sources=tables(), before=lambda *_: Trial(deterministic=False))
    assert asked(log) == [*range(57), *range(1000, 1045)]


def test_a_part_that_is_gone_before_the_model_is_asked_again_is_named(tmp_path):
    """A first part that somebody removes while the rest is scored ends in one sentence that says how to go on."""
    path = tmp_path / "losses.parquet"

    class Removes(FakeScorer):
        def score(self, records):
            if 1040 in records.features[:, 0]:
                parts_of(path)[0].unlink()
            return super().score(records)

    with pytest.raises(OutputError, match=r"part '.*part-00000000.parquet' was damaged or removed since"):
        stream_to(path, scorer=Removes(), sources=tables())
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 10


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_complete_file_of_a_changed_model_is_not_called_complete(tmp_path, deterministic):
    """A model whose hash misses what changed is asked for ten records, unless it answers at random anyway."""
    path, again = tmp_path / "losses.parquet", {"scorer": FakeScorer(factor=3.001), "sources": tables()}
    trial = Trial(deterministic=deterministic)
    stream_to(path, scorer=FakeScorer(), sources=tables(), before=lambda *_: trial)
    before = digest(path)
    if not deterministic:
        assert stream_to(path, **again).scored_now == 0
        return
    with pytest.raises(
        InputError, match=r"losses.parquet' holds the losses, but the model changed.*ask for the file to"
    ):
        stream_to(path, **again)
    assert digest(path) == before


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
        lambda table: table.take(np.random.default_rng(0).permutation(102)),
        lambda table: table.drop_columns(["member"]),
    ],
    ids=["zeros", "one bit", "rounded", "text", "missing", "members", "order", "dropped"],
)
def test_losses_that_were_rewritten_are_not_complete(tmp_path, change):
    """A file whose losses or groups were changed under its metadata is refused and kept; other columns may change."""
    path = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path
    rewritten(path, change)
    before = digest(path)
    with pytest.raises(
        InputError, match=r"exists already and holds losses that were changed since they were"
    ):
        stream_to(path, scorer=FakeScorer(), sources=tables())
    assert digest(path) == before
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


FOREIGN = ("part-0.parquet", "part-00000001-c000.snappy.parquet", "part-000000001.parquet", ".draft-letter")


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


@pytest.mark.parametrize("complete", [True, False])
def test_parts_that_no_manifest_knows_are_kept(tmp_path, complete):
    """Files of others with the very names of parts are never removed unasked; in the way of new parts they are named."""
    path, other = tmp_path / "losses.parquet", tmp_path / "losses.parquet.parts" / "part-00000003.parquet"
    if complete:
        stream_to(path, scorer=FakeScorer(), sources=tables())
    other.parent.mkdir()
    other.write_text("mine")
    if complete:
        assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 0
    else:
        sentence = (
            r"parts' must hold an interrupted collection or no parts, got 1 such as 'part-00000003.parquet'"
        )
        with pytest.raises(InputError, match=sentence):
            stream_to(path, scorer=FakeScorer(), sources=tables())
    assert other.read_text() == "mine"
    assert stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=True).scored_now == 102


def read_only(monkeypatch):
    """A disk on which no folder can be made, and no file opened for writing."""

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refuse)


def test_a_complete_file_on_a_disk_that_is_read_only_is_complete(tmp_path, monkeypatch):
    """Where no working folder can be made, a complete file is checked and answered for as anywhere."""
    path = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path
    read_only(monkeypatch)
    lines = []
    report = stream_to(path, scorer=FakeScorer(), sources=tables(), announce=lines.append)
    assert (report.scored_now, report.n_member) == (0, 57)
    assert lines == ["losses.parquet is complete already: nothing is scored."]
    for changes, words in (
        ({"scorer": FakeScorer(identity="model-2")}, "holds other losses: the model changed"),
        ({"scorer": FakeScorer(factor=4.0)}, "but the model changed"),
        ({"sources": tables(seed=1)}, "the data changed"),
    ):
        with pytest.raises(InputError, match=words):
            stream_to(path, **({"scorer": FakeScorer(), "sources": tables()} | changes))
    rewritten(path, with_column("loss", nudged))
    with pytest.raises(InputError, match="changed since they were collected"):
        stream_to(path, scorer=FakeScorer(), sources=tables())


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_disk_that_is_read_only_takes_no_new_file(tmp_path, monkeypatch, overwrite):
    """Without a complete file, or to overwrite one, the folder is needed, and that it cannot be made is said."""
    path = tmp_path / "losses.parquet"
    if overwrite:
        stream_to(path, scorer=FakeScorer(), sources=tables())
    read_only(monkeypatch)
    with pytest.raises(OutputError, match=r"parts' cannot be written: Read-only file system\.$"):
        stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=overwrite)


@pytest.fixture
def elsewhere(tmp_path):
    """An empty folder on another disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the usual second disk of Linux
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    folder = memory / f"auditor-{uuid.uuid4().hex}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_a_folder_on_another_disk_is_refused_at_once(tmp_path, elsewhere):
    """Parts that lie behind a link to another disk, from which no file moves in one step, are refused unscored."""
    log = tmp_path / "log"
    (tmp_path / "losses.parquet.parts").symlink_to(elsewhere)
    with pytest.raises(OutputError, match=r"parts' must be on the same disk as the output 'losses.parquet'"):
        stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(log=log), sources=tables())
    assert not log.exists()
    assert list(elsewhere.iterdir()) == []


def test_a_folder_behind_a_link_on_the_same_disk_is_used(tmp_path):
    """A link alone is no obstacle."""
    (tmp_path / "aside").mkdir()
    (tmp_path / "losses.parquet.parts").symlink_to(tmp_path / "aside")
    report = stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables())
    assert report.scored_now == 102


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

    monkeypatch.setattr("auditor.collectors.streaming.output._HELD_FILES_CAN_GO", False)
    for owner, name, function in ((os, "open", opens), (os, "close", closes), (Path, "unlink", unlink)):
        monkeypatch.setattr(owner, name, function)
    with locked(tmp_path / "folder"):
        assert (tmp_path / "folder" / "lock").exists()
    assert list(tmp_path.iterdir()) == []
    assert held == set()
