"""Parts, locks and probes: what they take and what they refuse."""

import datetime as dt
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, tables
from pyarrow import parquet

from auditor.collectors.base import BatchLosses
from auditor.collectors.streaming import (
    Unit,
    checked_part,
    locked,
    read_part,
    read_stretch,
    refuse_other_model,
    write_part,
)
from auditor.core import InputError, LossScale, OutputError

UNIT = Unit(3, 0, 0, 5)


def written(path, *, columns=None, more=None):
    """A part of five records, one of them saturated, and its report."""
    batch = read_stretch(tables()[0], start=0, stop=5)
    if columns is not None:
        batch = type(batch)(batch.records, batch.member, columns, batch.fingerprint)
    losses = BatchLosses(
        loss=np.array([0.5, -np.inf, 2.0, -3.0, 1 / 3]),
        saturated=np.array([False, True, False, False, False]),
        eps=1e-7,
        more={} if more is None else more,
    )
    return write_part(path, unit=UNIT, key="key", batch=batch, losses=losses)


def test_a_part_says_what_is_in_it(tmp_path):
    """The report has the counts, the range of the finite losses and the spacing, and comes back from the file."""
    path = tmp_path / "part.parquet"
    report = written(path)
    assert (report.counts, report.saturated) == ((5, 0), (1, 0))
    assert (report.low, report.high, report.eps, report.hard) == (-3.0, 2.0, 1e-7, False)
    assert checked_part(path, unit=UNIT, key="key") == report
    assert checked_part(path, unit=UNIT, key="another") is None
    assert checked_part(path, unit=Unit(4, 0, 0, 5), key="key") is None
    assert checked_part(tmp_path / "missing.parquet", unit=UNIT, key="key") is None


def test_no_altered_byte_goes_by(tmp_path):
    """Whichever third byte of a part is altered, it is refused, or still says exactly what was written."""
    path = tmp_path / "part.parquet"
    report = written(path)
    content, table = path.read_bytes(), read_part(path)
    refused = 0
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x11]) + content[place + 1 :])
        found = checked_part(path, unit=UNIT, key="key")
        if found is None:
            refused += 1
        else:
            assert found == report
            assert read_part(path).to_pydict() == table.to_pydict()
    assert refused > 0.1 * len(content)


@pytest.mark.parametrize("length", [0, 1, 100, -1, -8])
def test_no_truncated_part_goes_by(tmp_path, length):
    """A part that was cut off is refused."""
    path = tmp_path / "part.parquet"
    written(path)
    path.write_bytes(path.read_bytes()[:length])
    assert checked_part(path, unit=UNIT, key="key") is None


@pytest.mark.parametrize(
    ("values", "stored", "kind"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], pa.int64()),
        (np.array(list("abcde")), list("abcde"), pa.string()),
        (np.array(["a", None, np.nan, "d", "e"], dtype=object), ["a", None, None, "d", "e"], pa.string()),
        (np.array([1, "b", None, 2.5, True], dtype=object), ["1", "b", None, "2.5", "True"], pa.string()),
        (np.array([None] * 5, dtype=object), [None] * 5, pa.null()),
        (np.array([2**70, 1, 2, 3, 4], dtype=object), [str(2**70), "1", "2", "3", "4"], pa.string()),
        (np.array([True, False, True, True, True]), [True, False, True, True, True], pa.bool_()),
        (
            np.array(["2020-01-01"] * 5, dtype="datetime64[s]"),
            [dt.datetime(2020, 1, 1)] * 5,  # noqa: DTZ001
            pa.timestamp("ms"),
        ),
    ],
)
def test_columns_of_any_type_are_kept(tmp_path, values, stored, kind):
    """Ids of any type are stored in the nearest type of Arrow, mixed ones as text, missing ones as null."""
    path = tmp_path / "part.parquet"
    report = written(path, columns={"id": np.asarray(values)})
    column = read_part(path)["id"]
    assert (column.to_pylist(), column.type) == (stored, kind)
    assert checked_part(path, unit=UNIT, key="key") == report


def test_missing_values_of_pandas_are_missing(tmp_path):
    """NA and NaT become null, among values that share no type too."""
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "part.parquet"
    values = np.array(["a", pandas.NA, 3, pandas.NaT, "e"], dtype=object)
    written(path, columns={"group": values})
    assert read_part(path)["group"].to_pylist() == ["a", None, "3", None, "e"]


def test_a_column_of_that_name_is_there_already(tmp_path):
    """Another score that is called like a column of the file is refused."""
    with pytest.raises(InputError, match=r"must have each column once, got 'member' twice"):
        written(tmp_path / "part.parquet", more={"member": np.zeros(5)})


def test_nothing_is_left_of_a_part_that_cannot_be_written(tmp_path):
    """A part that cannot take its place leaves no draft behind."""
    path = tmp_path / "part.parquet"
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"part.parquet' cannot be written"):
        written(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_lock_is_let_go_by_a_process_that_dies(tmp_path):
    """While another process holds a folder it is refused; once that process is killed it is free."""
    folder = tmp_path / "losses.parquet.parts"
    code = (
        "import sys, pathlib, time\nfrom auditor.collectors.streaming.output import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OutputError, match="is being collected by another process"), locked(folder):
            pass
        holder.kill()
    with locked(folder):
        assert folder.exists()
    assert not folder.exists()


def test_a_lock_on_a_removed_file_is_no_lock(tmp_path, monkeypatch):
    """Who waits at the door while the holder removes the folder comes in by the new door."""
    from auditor.collectors.streaming import output

    folder, seen = tmp_path / "losses.parquet.parts", []
    take = output._take

    def removed_meanwhile(handle):
        if not seen:
            (folder / "lock").unlink()
            folder.rmdir()
        seen.append(handle)
        take(handle)

    monkeypatch.setattr(output, "_take", removed_meanwhile)
    with locked(folder):
        with pytest.raises(OutputError, match="by another process"), locked(folder):
            pass
        assert (folder / "lock").exists()
    assert len(seen) == 3


def probed(old, new, *, scale=LossScale.LOG_ODDS, eps=2.0**-23):
    """Whether a model that gave some losses and now gives others goes by."""

    class Fixed(FakeScorer):
        def score(self, records):
            n = len(records)
            loss = np.asarray(new, dtype=float)[:n]
            return BatchLosses(loss=loss, saturated=np.zeros(n, dtype=bool), eps=eps)

    try:
        refuse_other_model(
            Fixed(scale=scale),
            source=tables()[0],
            start=0,
            expected=np.asarray(old, dtype=float),
            kept="file x",
            fix="",
        )
    except InputError:
        return False
    return True


@pytest.mark.parametrize("loss", [-12.0, -5.0, 0.0, 2.0, 9.0])
def test_a_rounding_of_the_outputs_is_no_other_model(loss):
    """A probability one float further gives a loss that is let by; one moved by a thousandth is not."""
    p = np.float32(1 / (1 + np.exp(loss)))
    other = np.nextafter(p, np.float32(0.5))
    moved = np.log1p(-float(other)) - np.log(float(other))
    old = np.log1p(-float(p)) - np.log(float(p))
    assert probed([old] * 3, [moved] * 3)
    assert not probed([old] * 3, [old, old + 1e-2 * (1 + abs(old)) * (1 + np.exp(abs(loss) - 9)), old])


def test_saturated_losses_match_their_neighbours_only():
    """An infinite loss equals itself and one at the end of the scale, and nothing else."""
    end = np.log(2.0**23)
    assert probed([-np.inf, np.inf], [-np.inf, np.inf])
    assert probed([-np.inf], [-end])
    assert not probed([-np.inf], [np.inf])
    assert not probed([-np.inf], [-3.0])
    assert not probed([1.0, 2.0], [1.0, np.inf])


@pytest.mark.parametrize("scale", list(LossScale))
def test_without_log_odds_only_the_relative_rounding_counts(scale):
    """Losses of an unknown scale may differ by a millionth; log-odds by the rounding of a probability as well."""
    assert probed([100.0], [100.0 + 5e-5], scale=scale)
    assert probed([8.0], [8.0 + 5e-4], scale=scale) is (scale is LossScale.LOG_ODDS)


def test_a_part_is_read_with_its_checksums(tmp_path):
    """A page that was altered raises when a part is read, before the hash of its values is taken."""
    path = tmp_path / "part.parquet"
    written(path)
    content = path.read_bytes()
    chunk = parquet.read_metadata(path).row_group(0).column(0)
    last = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1
    path.write_bytes(content[:last] + bytes([content[last] ^ 1]) + content[last + 1 :])
    with pytest.raises((OSError, pa.ArrowException)):
        read_part(path)
