"""One contract for every collector: the same data give the same losses, however they arrive."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet
from sklearn.linear_model import LogisticRegression

from auditor import Losses
from auditor.collectors import Output, RecordTable, collect, from_columns, read_loss_pair, read_losses

LOSS = np.random.default_rng(0).normal(size=40)
MEMBER = np.arange(40) % 3 == 0
LABELS = {
    "id": np.array([f"{row:03d}" for row in range(40)]),
    "group": np.array(list("abcd") * 10),
    "person": np.array([f"p{row // 2}" for row in range(40)]),
}
PAIRS = {f"{name}s": (column[MEMBER], column[~MEMBER]) for name, column in LABELS.items()}


def saved(folder, kind, mask=None):
    """The columns in one file, or those of one group."""
    columns = {"loss": LOSS, "member": MEMBER.astype(int), **LABELS}
    if mask is not None:
        columns = {name: column[mask] for name, column in columns.items() if name != "member"}
    path = folder / f"{'all' if mask is None else int(mask[0])}{kind}"
    if kind == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    elif kind == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif kind == ".arrow":
        with ipc.new_file(str(path), pa.table(columns).schema) as out:
            out.write_table(pa.table(columns))
    elif kind == " parts":
        path.mkdir()
        for start in (0, 7):
            part = {
                name: column[start : start + 7 if not start else None] for name, column in columns.items()
            }
            parquet.write_table(pa.table(part), path / f"part-{start}.parquet")
    else:
        np.savez(path, **columns)
    return path


def one_file(kind):
    """Collect from one file."""
    return lambda folder: read_losses(saved(folder, kind))


def two_files(kind):
    """Collect from one file for each group."""
    return lambda folder: read_loss_pair(saved(folder, kind, MEMBER), saved(folder, kind, ~MEMBER))


def model(_):
    """Collect from a classifier whose logit is its only feature; for class 0 the loss is the logit."""
    fitted = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    fitted.coef_, fitted.intercept_ = np.array([[1.0]]), np.array([0.0])
    return collect(fitted, members=as_data(MEMBER), nonmembers=as_data(~MEMBER), **PAIRS)


def callable_(_):
    """Collect from a callable that returns the logit."""
    kwargs = {"output": Output.LOGITS, "batch_size": 7}
    return collect(lambda x: x[:, 0], members=as_data(MEMBER), nonmembers=as_data(~MEMBER), **PAIRS, **kwargs)


def tables(_):
    """Collect from tables of records, scored by a callable that returns the logit."""
    frame = pd.DataFrame({"x": LOSS, "y": 0, **LABELS})
    inside, outside = (RecordTable(frame[mask], label="y") for mask in (MEMBER, ~MEMBER))
    return collect(lambda x: x["x"].to_numpy(), members=inside, nonmembers=outside, output=Output.LOGITS)


def one_table(folder):
    """Collect from one file of records of both groups."""
    frame = pd.DataFrame({"x": LOSS, "y": 0, "member": MEMBER, **LABELS})
    frame.to_parquet(folder / "records.parquet", row_group_size=9)
    records = RecordTable(folder / "records.parquet", label="y")
    return collect(lambda x: x["x"].to_numpy(), records=records, output=Output.LOGITS, batch_size=11)


def as_data(mask):
    """Features that are the loss, and class 0 for all."""
    return LOSS[mask][:, None], np.zeros(int(mask.sum()), dtype=int)


COLLECTORS = {
    "columns": lambda _: from_columns(LOSS, member=MEMBER, **LABELS),
    "negated columns": lambda _: from_columns(-LOSS, member=MEMBER, **LABELS, higher_is_member=True),
    **{f"one {kind}": one_file(kind) for kind in (".csv", ".parquet", ".npz", ".arrow", " parts")},
    **{f"two {kind}": two_files(kind) for kind in (".csv", ".parquet", ".npz", ".arrow", " parts")},
    "model": model,
    "callable": callable_,
    "frame": lambda _: read_losses(pd.DataFrame({"loss": LOSS, "member": MEMBER, **LABELS})),
    "tables of records": tables,
    "one table of records": one_table,
}


@pytest.fixture(params=COLLECTORS.values(), ids=COLLECTORS.keys())
def losses(request, tmp_path):
    """The same data through each collector."""
    return request.param(tmp_path)


def test_the_losses_are_the_same_bit_for_bit(losses):
    """Every collector returns the same two groups, in the order of the data."""
    assert isinstance(losses, Losses)
    np.testing.assert_array_equal(losses.member, LOSS[MEMBER])
    np.testing.assert_array_equal(losses.nonmember, LOSS[~MEMBER])


def test_the_labels_stay_beside_their_losses(losses):
    """Ids, groups and persons are split exactly as the losses are."""
    for name, column in LABELS.items():
        pair = getattr(losses, name)
        assert pair.member.tolist() == column[MEMBER].tolist()
        assert pair.nonmember.tolist() == column[~MEMBER].tolist()


def test_the_losses_are_read_only_doubles(losses):
    """What leaves a collector cannot be changed by accident."""
    for part in (losses.member, losses.nonmember):
        assert part.dtype == np.float64
        assert not part.flags.writeable


def test_history_says_where_the_losses_came_from(losses):
    """The first step is a sentence without a path."""
    assert losses.history
    assert all(isinstance(step, str) and "/" not in step for step in losses.history)
    assert losses.saturated == (0, 0)


def test_importing_the_collectors_loads_numpy_only():
    """pandas, pyarrow, SciPy and scikit-learn wait for the function that needs them."""
    code = (
        "import sys, auditor.collectors;"
        "print([name for name in ('pandas', 'pyarrow', 'scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
