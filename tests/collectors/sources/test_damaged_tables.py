"""Damaged, empty and odd tables are one sentence that names the file, and never half a table."""

import zipfile

import numpy as np
import pyarrow as pa
import pytest
from collectors.common import KINDS, refused, text, write
from pyarrow import csv

from auditor import Classification, InputError
from auditor.collectors.tables import RecordTable, open_source

COLUMNS = {
    "x": np.linspace(0, 1, 300),
    "k": np.arange(300),
    "word": np.array([f"w{row % 9}" for row in range(300)]),
    "id": np.array([f"r{row}" for row in range(300)]),
    "y": np.arange(300) % 2,
}


def opened(path, **names):
    """A table of members."""
    table = RecordTable(path, **{"label": "y", **names})
    return open_source(table, task=Classification(), member=True, name="members")


def read(path, **names):
    """All records of a table."""
    source = opened(path, **names)
    return [source.read(start, start + 100) for start in range(0, len(source), 100)]


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind != ".jsonl"]
)  # which has names in its records
def test_a_table_without_records_is_refused(tmp_path, kind):
    """Columns without rows are no table of records, nor are labels without features."""
    with refused(r"must have a column of features beside the others, got 'y', 'id'"):
        read(write(tmp_path / f"y{kind}", {"y": COLUMNS["y"], "id": COLUMNS["id"]}))
    columns = {name: np.asarray(values)[:0] for name, values in COLUMNS.items()}
    with refused(rf"^file '.*x{kind}' must hold records, got none"):
        read(write(tmp_path / f"x{kind}", columns))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_off_anywhere_is_refused(tmp_path, kind):
    """No cut gives fewer records without a word, but text cut at the end of a line, which nothing can tell."""
    whole = write(tmp_path / f"whole{kind}", COLUMNS, rows=70).read_bytes()
    cuts = [10, len(whole) // 3, len(whole) // 2, len(whole) - 1]
    for cut in cuts if kind != ".csv" else [len(whole) // 2]:
        path = text(tmp_path / f"cut{kind}", whole[:cut])
        try:
            parts = read(path)
        except InputError as error:
            assert f"cut{kind}'" in str(error)  # noqa: PT017 - whether it raises depends on the format
            continue
        assert kind == ".feather"  # a stream's last bytes only say that it ends
        assert sum(len(part.records) for part in parts) in (70, 140, 210, 280, 300)


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".arrow", ".feather"])
def test_columns_of_the_same_name_are_refused_if_they_are_needed(tmp_path, kind):
    """A feature that is there twice is named; with the features named, others may be there twice."""
    path = tmp_path / f"x{kind}"
    table = pa.table([[1, 4], [2, 5], [3, 6], [0, 1]], names=["a", "b", "b", "y"])
    csv.write_csv(table, path) if kind == ".csv" else write(path, table)
    with refused(rf"^file '.*x{kind}' has 2 columns named 'b'; give each its own name"):
        read(path)
    (batch,) = read(path, features=["a"])
    assert batch.records.features["a"].tolist() == [1, 4]


def test_a_ragged_row_far_down_is_found_before_any_record_is_given(tmp_path):
    """The whole file is looked at when it is opened, so nothing is scored of a file that breaks off."""
    rows = ["1.5,0"] * 900_000
    rows[-1] = "1.5,0,7"
    path = text(tmp_path / "x.csv", "x,y\n" + "\n".join(rows))
    with refused("got 3 in row 900001, the header being row 1"):
        opened(path)


def test_a_row_longer_than_a_block_is_refused(tmp_path):
    """Constant memory has a limit, and the sentence says which."""
    with refused(r"must have no row longer than 4 MB; save it as \.parquet"):
        read(text(tmp_path / "x.csv", f"x,y\n{'a' * 9_000_000},0\nb,1\n" * 2))


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    """Records that were there when the table was opened are not passed over."""
    path = write(tmp_path / "x.csv", COLUMNS)
    source = opened(path)
    write(path, {name: values[:200] for name, values in COLUMNS.items()})
    with refused(r"has only 200 rows and had 300 when it was opened; do not change it"):
        source.read(150, 250)
    write(path, {**COLUMNS, "k": ["word"] * 300})
    with refused(r"column 'k' of file .* changed while it was read"):
        source.read(0, 10)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ones((3, 2)), "must have one row for each record: 'x' has 3, 'y' has 2; name"),
        (np.float64(1), "must have one row for each record: 'x' has no rows, 'y' has 2; name"),
    ],
)
def test_arrays_that_are_no_records_are_refused(tmp_path, x, words):
    """The array, its archive or dictionary and what is wrong are named."""
    arrays = {"x": x, "y": [0, 1]}
    np.savez(tmp_path / "x.npz", **arrays)
    for data in (tmp_path / "x.npz", arrays):
        with refused(words):
            read(data)


def test_an_array_that_is_shorter_than_it_says_is_refused(tmp_path):
    """A header that promises more than the archive has is no reason to ask for the memory."""
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }"
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header.ljust(127) + b"\n" + bytes(16))
        archive.writestr("y.npy", header.ljust(127) + b"\n" + bytes(16))
    with refused(r"(array 'x' of .* must be a whole NumPy array|file .* does not fit in memory)"):
        read(tmp_path / "x.npz")
