"""Damaged, empty and odd tables are one sentence that names the file, and never half a table."""

import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from auditor import Classification, InputError
from auditor.collectors.tables import RecordTable, open_source

COLUMNS = {
    "x": np.linspace(0, 1, 300),
    "k": np.arange(300),
    "word": np.array([f"w{row % 9}" for row in range(300)]),
    "id": np.array([f"r{row}" for row in range(300)]),
    "y": np.arange(300) % 2,
}


def write(path, columns):
    """Write columns to a file of the kind its name says."""
    table = pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()})
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=70, write_page_checksum=True)
    elif path.suffix == ".npz":
        np.savez(path, **{name: np.asarray(column) for name, column in columns.items()})
    elif path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(str(path), table.schema) as out:
            out.write_table(table, max_chunksize=70)
    return path


def text(path, content):
    """A file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path, **names):
    """All records of a table."""
    source = open_source(
        RecordTable(path, **{"label": "y", **names}), task=Classification(), member=True, name="members"
    )
    return [source.read(start, start + 100) for start in range(0, len(source), 100)]


KINDS = [".csv", ".parquet", ".npz", ".arrow", ".feather"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_none_are_refused(tmp_path, kind):
    """Missing, empty, a folder without parts, noise, and names that are none."""
    for path, words in (
        (tmp_path / f"gone{kind}", "does not exist; check the name"),
        (text(tmp_path / f"empty{kind}", ""), "is empty; write it again"),
        (text(tmp_path / f"noise{kind}", np.random.default_rng(0).bytes(5000)), "is not "),
        (tmp_path / f"{'x' * 300}{kind}", "cannot be read: File name too long"),
        (f"{tmp_path}/x\0{kind}", "must have a name without NUL characters"),
        (f"{tmp_path}/\udcff{kind}", "must have a name in UTF-8"),
    ):
        with pytest.raises(InputError, match=words) as error:
            read(path)
        assert "\n" not in str(error.value)
    (tmp_path / f"folder{kind}").mkdir()
    with pytest.raises(InputError, match=r"is a directory, and there is no .parquet file in it"):
        read(tmp_path / f"folder{kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_records_is_refused(tmp_path, kind):
    """Columns without rows are no table of records."""
    columns = {name: np.asarray(values)[:0] for name, values in COLUMNS.items()}
    with pytest.raises(InputError, match=rf"^file '.*x{kind}' must hold records, got none"):
        read(write(tmp_path / f"x{kind}", columns))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_off_anywhere_is_refused(tmp_path, kind):
    """No cut gives fewer records without a word, but a CSV cut at the end of a line, which nothing can tell."""
    whole = write(tmp_path / f"whole{kind}", COLUMNS).read_bytes()
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


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bytes_never_escape(tmp_path, kind):
    """A file with a few bytes changed is read, or refused in one sentence."""
    rng = np.random.default_rng(1)
    path = write(tmp_path / f"x{kind}", COLUMNS)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    sentences = []
    for _ in range(120):
        content = whole.copy()
        content[rng.integers(content.size, size=3)] = rng.integers(256, size=3)
        text(path, content.tobytes())
        try:
            read(path)
        except InputError as error:
            sentences.append(str(error))
    assert sentences
    assert not any("\n" in sentence for sentence in sentences)


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".arrow", ".feather"])
def test_columns_of_the_same_name_are_refused_if_they_are_needed(tmp_path, kind):
    """A feature that is there twice is named; with the features named, others may be there twice."""
    path, names = tmp_path / f"x{kind}", ["a", "b", "b", "y"]
    if kind == ".csv":
        text(path, "a,b,b,y\n1,2,3,0\n4,5,6,1\n")
    else:
        table = pa.table([[1, 4], [2, 5], [3, 6], [0, 1]], names=names)
        if kind == ".parquet":
            parquet.write_table(table, path)
        else:
            with (ipc.new_file if kind == ".arrow" else ipc.new_stream)(str(path), table.schema) as out:
                out.write_table(table)
    with pytest.raises(
        InputError, match=rf"^file '.*x{kind}' has 2 columns named 'b'; give each its own name"
    ):
        read(path)
    (batch,) = read(path, features=["a"])
    assert batch.records.features["a"].tolist() == [1, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_labels_alone_is_refused(tmp_path, kind):
    """Without a feature there is nothing that a model could be asked."""
    with pytest.raises(InputError, match=r"must have a column of features beside the others, got 'y', 'id'"):
        read(write(tmp_path / f"x{kind}", {"y": COLUMNS["y"], "id": COLUMNS["id"]}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x,y\n1,0\n2\n", "must have 2 fields in each row, got 1 in row 1, counting from 0 below the header"),
        ('x,y\n1,0\n2,"1\n', "must close every quotation mark, got 1 of them"),
        ("x;y\n1;0\n", "column 'y' is not in .*, which has 'x;y'"),
        ("x,y\n", "must hold records, got none"),
        ("\n\n", "column 'y' is not in .*, which has no columns"),
        ("x,y\n1,0\n".encode("utf-16"), "is not UTF-8 text"),
        (b"x,y\n\xff,0\n", "is not "),
    ],
)
def test_bad_csv_files_are_refused_in_one_sentence(tmp_path, content, words):
    """Ragged rows, open quotes, other separators and other encodings are named with the file."""
    with pytest.raises(InputError, match=words) as error:
        read(text(tmp_path / "x.csv", content))
    assert "x.csv" in str(error.value)


def test_a_ragged_row_far_down_is_found_before_any_record_is_given(tmp_path):
    """The whole file is looked at when it is opened, so nothing is scored of a file that breaks off."""
    rows = ["1.5,0"] * 900_000
    rows[-1] = "1.5,0,7"
    path = text(tmp_path / "x.csv", "x,y\n" + "\n".join(rows))
    with pytest.raises(InputError, match="got 3 in row 899999, counting from 0 below the header"):
        open_source(RecordTable(path, label="y"), task=Classification(), member=True, name="members")


def test_a_row_longer_than_a_block_is_refused(tmp_path):
    """Constant memory has a limit, and the sentence says which."""
    with pytest.raises(InputError, match=r"must have no row longer than 4 MB; save it as \.parquet"):
        read(text(tmp_path / "x.csv", f"x,y\n{'a' * 9_000_000},0\nb,1\n" * 2))


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    """Records that were there when the table was opened are not passed over."""
    path = write(tmp_path / "x.csv", COLUMNS)
    source = open_source(RecordTable(path, label="y"), task=Classification(), member=True, name="members")
    write(path, {name: values[:200] for name, values in COLUMNS.items()})
    with pytest.raises(
        InputError, match=r"has only 200 rows and had 300 when it was opened; do not change it"
    ):
        source.read(150, 250)
    write(path, {**COLUMNS, "k": ["word"] * 300})
    with pytest.raises(InputError, match=r"column 'k' of file .* changed while it was read"):
        source.read(0, 10)


def test_pickled_arrays_are_never_loaded(tmp_path):
    """An array of Python objects is refused by its header."""

    class Bomb:
        def __reduce__(self):
            return (sys.exit, ("it ran",))

    bomb = np.empty(2, dtype=object)
    bomb[:] = Bomb()
    np.savez(tmp_path / "x.npz", x=bomb, y=[0, 1])
    with pytest.raises(InputError, match=r"^array 'x' of .* is refused: it holds Python objects"):
        read(tmp_path / "x.npz")
    with pytest.raises(SystemExit):
        pickle.loads(pickle.dumps(Bomb()))  # noqa: S301 - the bomb does work
    for name in ("x.pkl", "x.npy", "x.pt"):
        with pytest.raises(InputError, match="files may be pickled"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"x": np.ones((3, 2)), "y": [0, 1]},
            "must have one row for each record: 'x' has 3, 'y' has 2; name",
        ),
        (
            {"x": np.float64(1), "y": [0, 1]},
            "array 'x' of .* must have a row for each record, got a single value",
        ),
        (
            {"x": np.ones(2, dtype=[("a", "f8")]), "y": [0, 1]},
            "array 'x' of .* must hold numbers or text, got ",
        ),
    ],
)
def test_arrays_that_are_no_records_are_refused(tmp_path, arrays, words):
    """The array, its archive or dictionary and what is wrong are named."""
    np.savez(tmp_path / "x.npz", **arrays)
    for data in (tmp_path / "x.npz", arrays):
        with pytest.raises(InputError, match=words):
            read(data)


def test_an_array_that_is_shorter_than_it_says_is_refused(tmp_path):
    """A header that promises more than the archive has is no reason to ask for the memory."""
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }"
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header.ljust(127) + b"\n" + bytes(16))
        archive.writestr("y.npy", header.ljust(127) + b"\n" + bytes(16))
    with pytest.raises(InputError, match=r"array 'x' of .* is damaged: it is not as long as it says"):
        read(tmp_path / "x.npz")


def test_the_first_version_of_feather_is_named(tmp_path):
    """It is not what later versions of Arrow call Feather."""
    path = text(tmp_path / "x.feather", b"FEA1" + bytes(100))
    with pytest.raises(InputError, match="is in the first version of Feather; write it again in the second"):
        read(path)
    feather.write_feather(pa.table({"x": [1.0], "y": [0]}), str(path))
    assert read(path)[0].records.labels.tolist() == [0]
