"""Parts, locks and probes: what they take and what they refuse."""

import datetime as dt
import functools
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, tables

from auditor.collectors.base import BatchLosses
from auditor.collectors.streaming import (
    Unit,
    locked,
    output,
    read_part,
    read_stretch,
    refuse_other_model,
    write_part,
)
from auditor.core import InputError, LossScale, OutputError

UNIT = Unit(3, 0, 0, 5)


def written(path, *, columns=None, more=None):
    """A part of five records, one of them saturated, and a way to read it."""
    batch = read_stretch(tables()[0], start=0, stop=5)
    if columns is not None:
        batch = type(batch)(batch.records, batch.member, columns)
    losses = BatchLosses(
        loss=np.array([0.5, -np.inf, 2.0, -3.0, 1 / 3]),
        saturated=np.array([False, True, False, False, False]),
        eps=1e-7,
        more={} if more is None else more,
    )
    write_part(path, unit=UNIT, key="key", batch=batch, losses=losses)
    return functools.partial(read_part, path, unit=UNIT, key="key")


def test_a_part_is_one_unit_of_one_collection(tmp_path):
    """It comes back as it was written, and is none of another unit or another collection."""
    path = tmp_path / "part"
    read = written(path)
    table = read()
    assert table["loss"].to_pylist() == [0.5, -np.inf, 2.0, -3.0, 1 / 3]
    assert table["saturated"].to_pylist() == [False, True, False, False, False]
    assert read(key="another") is None
    assert read(unit=Unit(4, 0, 0, 5)) is None
    assert read_part(tmp_path / "missing", unit=UNIT, key="key") is None


def test_no_altered_byte_goes_by(tmp_path):
    """Whichever byte of a part is altered, and wherever it is cut off, it is refused."""
    path = tmp_path / "part"
    read = written(path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        for other in (
            content[:place] + bytes([content[place] ^ 0x11]) + content[place + 1 :],
            content[:place],
        ):
            path.write_bytes(other)
            assert read() is None


@pytest.mark.parametrize(
    ("values", "stored", "kind"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], pa.int64()),
        (np.array(list("abcde")), list("abcde"), pa.string()),
        (np.array(["a", None, np.nan, "d", "e"], dtype=object), ["a", None, None, "d", "e"], pa.string()),
        (np.array([1, "b", None, 2.5, True], dtype=object), ["1", "b", None, "2.5", "True"], pa.string()),
        (
            np.array(["a", pd.NA, 3, pd.NaT, "e"], dtype=object),
            ["a", None, "3", None, "e"],
            pa.string(),
        ),
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
    column = written(tmp_path / "part", columns={"id": np.asarray(values)})()["id"]
    assert (column.to_pylist(), column.type) == (stored, kind)


def test_a_column_of_that_name_is_there_already(tmp_path):
    """Another score that is called like a column of the file is refused."""
    with pytest.raises(InputError, match=r"must have each column once, got 'member' twice"):
        written(tmp_path / "part", more={"member": np.zeros(5)})


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
    """Who waits at the door while the holder removes the folder is sent away, and comes in the next time."""
    folder, take = tmp_path / "losses.parquet.parts", output.take

    def removed_meanwhile(handle):
        (folder / "lock").unlink()
        folder.rmdir()
        take(handle)

    with monkeypatch.context() as patched:
        patched.setattr(output, "take", removed_meanwhile)
        with pytest.raises(OutputError, match="by another process"), locked(folder):
            pass
    with locked(folder):
        assert (folder / "lock").exists()


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
            records=tables()[0].read(0, len(old)).records,
            expected=np.asarray(old, dtype=float),
            place="file x",
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


@pytest.mark.parametrize(("eps", "same"), [(2.0**-7, True), (2.0**-23, False)])
def test_a_model_of_coarse_floats_may_round_on_any_scale(eps, same):
    """Losses that are no log-odds may differ by a rounding of the model's floats: bfloat16's near 3 is 2^-6."""
    assert probed([3.0], [3.0 + 2.0**-6], scale=LossScale.CROSS_ENTROPY, eps=eps) is same
