"""Parts, locks and probes: what they take and what they refuse."""

import datetime as dt
import functools
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, FakeSource, asked, scoring, tables

from auditor.collectors.base import BatchLosses
from auditor.collectors.streaming import Unit, locked, parts, refuse_other_losses, unit_size
from auditor.core import InputError, LossScale, OutputError


def test_a_part_is_one_unit_of_one_collection(tmp_path):
    """It comes back as it was written, infinite losses too, and is none of another unit or another collection."""
    work = scoring(tmp_path, FakeScorer(), tables(), batch_size=10, unit_size=20)
    assert work(work.units[0]) == Unit(0, 0, 0, 20)
    table, expected = work.part(work.units[0]), FakeScorer().score(tables()[0].read(0, 20).records)
    assert table["loss"].to_pylist() == expected.loss.tolist()
    assert table["saturated"].to_pylist() == expected.saturated.tolist()
    assert np.isinf(expected.loss).any()
    assert (
        scoring(tmp_path, FakeScorer(), tables(), batch_size=10, unit_size=20, a=1).part(work.units[0])
        is None
    )
    work.path(work.units[0]).rename(work.path(work.units[1]))
    assert work.part(work.units[0]) is work.part(work.units[1]) is None


def test_no_altered_byte_goes_by(tmp_path):
    """Whichever byte of a part is altered, and wherever it is cut off, it is refused."""
    work = scoring(tmp_path, FakeScorer(), tables(), batch_size=5, unit_size=5)
    path = work.path(work(work.units[0]))
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        altered = bytes([content[place] ^ 0x11])
        for other in (content[:place] + altered + content[place + 1 :], content[:place]):
            path.write_bytes(other)
            assert work.part(work.units[0]) is None


def test_a_unit_scored_twice_gives_the_same_part(tmp_path):
    """Two workers that race for a unit write the same bytes; the work survives the way to another process, with no scorer."""
    log = tmp_path / "log"
    factory = functools.partial(FakeScorer, log=log)
    work = scoring(tmp_path, factory(), tables(), batch_size=4, unit_size=12, factory=factory)
    other = pickle.loads(pickle.dumps(work))  # noqa: S301
    assert other.scorer is None
    made = []
    for each in (work, other):
        each.prepare()
        made.append(work.path(each(work.units[1])).read_bytes())
    assert made[0] == made[1]
    assert asked(log) == [*range(12, 24)] * 2
    assert log.read_text().splitlines()[0] == "12 13 14 15"


@pytest.mark.parametrize(
    ("n", "batch"), [(10**7, 10_000), (10**7, 8), (10**9, 64), (100, 7), (10**8, 10_000)]
)
def test_there_are_few_units_of_whole_batches(n, batch):
    """A unit is a whole number of batches, one where that gives at most 10,000 units."""
    size = unit_size([FakeSource("members", n, member=True)], batch_size=batch)
    assert size % batch == 0
    assert -(-n // size) <= 10_000
    assert size == batch or -(-n // (size - batch)) > 10_000


@pytest.mark.parametrize(
    ("values", "stored", "kind"),
    [
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], pa.int64()),
        (np.array(list("abcde")), list("abcde"), pa.string()),
        (np.array(["a", None, np.nan, "d", "e"], dtype=object), ["a", None, None, "d", "e"], pa.string()),
        (np.array([1, "b", None, 2.5, True], dtype=object), ["1", "b", None, "2.5", "True"], pa.string()),
        (np.array(["a", pd.NA, 3, pd.NaT, "e"], dtype=object), ["a", None, "3", None, "e"], pa.string()),
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

    class Named(FakeSource):
        def read(self, start, stop):
            return replace(super().read(start, stop), columns={"id": np.asarray(values)})

    work = scoring(tmp_path, FakeScorer(), [Named("members", 5, member=True)], batch_size=5, unit_size=5)
    column = work.part(work(work.units[0]))["id"]
    assert (column.to_pylist(), column.type) == (stored, kind)


def test_the_lock_is_let_go_by_a_process_that_dies(tmp_path):
    """While another process holds a folder it is refused; once that process is killed it is free."""
    folder = tmp_path / "losses.parquet.parts"
    code = (
        "import sys, pathlib, time\nfrom auditor.collectors.streaming import locked\n"
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
    folder, take = tmp_path / "losses.parquet.parts", parts.take

    def removed_meanwhile(handle):
        (folder / "lock").unlink()
        folder.rmdir()
        take(handle)

    with monkeypatch.context() as patched:
        patched.setattr(parts, "take", removed_meanwhile)
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
        refuse_other_losses(
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
