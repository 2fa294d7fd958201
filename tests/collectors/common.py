"""Shared parts of the tests of collectors: how a refusal is expected, and tables in files of every kind."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet
from scipy.special import logsumexp

from auditor import InputError

# What is said of models whose labels are drawn at random, as those of most tests are.
QUIET = [
    pytest.mark.filterwarnings("ignore:the labels look as if"),
    pytest.mark.filterwarnings("ignore:all outputs for"),
    pytest.mark.filterwarnings("ignore:the probabilities of a record sum"),
]
KINDS = [".csv", ".parquet", ".npz", ".arrow", ".feather", ".jsonl"]


class Trap:
    """Content of a hostile pickle: unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def refused(words):
    """Expect a refusal that says these words."""
    return pytest.raises(InputError, match=words)


def write(path, columns, *, rows=3):
    """Write columns to a file of the kind its name says, in pieces of so many rows, and return its path."""
    if path.suffix == ".npz":
        np.savez(path, **{name: np.asarray(columns[name]) for name in columns})
    elif path.suffix == ".csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        lines = map(json.dumps, pa.table(columns).to_pylist())  # without rounding
        path.write_text("\n".join(lines), encoding="utf-8")
    elif path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path, row_group_size=rows, write_page_checksum=True)
    else:
        table = pa.table(columns)
        with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(str(path), table.schema) as out:
            out.write_table(table, max_chunksize=rows)
    return path


def text(path, content):
    """A file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def from_logits(z, y):
    """The negative log-odds of the true class by the textbook formula, from the logit of class 1 or of each class."""
    if z.ndim == 1:
        return (1 - 2 * y) * z
    others = np.where(np.arange(z.shape[1]) == y[:, None], -np.inf, z)
    return logsumexp(others, axis=1) - z[np.arange(len(y)), y]
