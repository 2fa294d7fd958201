"""One contract for every collector: the same data give the same losses, however they arrive."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import KINDS, write
from pyarrow import dataset
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


def columns_of(mask):
    """The columns of one table, or those of one group."""
    whole = {"loss": LOSS, "member": MEMBER.astype(int), **LABELS}
    return whole if mask is None else {name: whole[name][mask] for name in whole if name != "member"}


PARTS = {" parts": ".parquet", " of CSV": ".csv"}


def saved(folder, kind, mask=None):
    """The columns in one file, or those of one group."""
    columns, path = columns_of(mask), folder / f"pertes d'été {'all' if mask is None else int(mask[0])}{kind}"
    if kind not in PARTS:
        return write(path, columns, rows=13)
    path.mkdir()
    (path / "_SUCCESS").touch()
    for name, rows in (("b", slice(7, None)), ("a", slice(7))):
        write(path / f"part-{name}{PARTS[kind]}", {key: column[rows] for key, column in columns.items()})
    return path


def one_file(kind):
    """Collect from one file."""
    return lambda folder: read_losses(str(saved(folder, kind)))


def two_files(kind):
    """Collect from one file for each group."""
    return lambda folder: read_loss_pair(saved(folder, kind, MEMBER), saved(folder, kind, ~MEMBER))


TABLES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "Arrow": pa.table,
    "dataset": lambda columns: dataset.dataset(pa.table(columns)),
    "dictionary": dict,
}


def one_table_in_memory(made):
    """Collect from a table of any library."""
    return lambda _: read_losses(made(columns_of(None)))


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
    **{f"one {kind}": one_file(kind) for kind in (*KINDS, *PARTS)},
    **{f"two {kind}": two_files(kind) for kind in (*KINDS, *PARTS)},
    **{f"one {name}": one_table_in_memory(made) for name, made in TABLES.items()},
    "model": model,
    "callable": callable_,
    "tables of records": tables,
    "one table of records": one_table,
}


@pytest.fixture(params=COLLECTORS.values(), ids=COLLECTORS.keys())
def losses(request, tmp_path):
    """The same data through each collector."""
    return request.param(tmp_path)


def test_every_collector_gives_the_same_losses(losses):
    """The same two groups bit for bit, read-only, with labels beside them and a history without a path."""
    assert isinstance(losses, Losses)
    for part, mask in ((losses.member, MEMBER), (losses.nonmember, ~MEMBER)):
        np.testing.assert_array_equal(part, LOSS[mask])
        assert part.dtype == np.float64
        assert not part.flags.writeable
    for name, column in LABELS.items():
        pair = getattr(losses, name)
        assert pair.member.tolist() == column[MEMBER].tolist()
        assert pair.nonmember.tolist() == column[~MEMBER].tolist()
    assert losses.history
    assert all(isinstance(step, str) and "/" not in step for step in losses.history)
    assert losses.saturated == (0, 0)
