"""Cells come to the model in the types that pandas gives them when it reads the same table."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import refused, text, write
from pyarrow import parquet

from auditor import Classification, MultiLabel, SquaredError
from auditor.collectors.tables import RecordTable, open_source


def opened(data, task=None, **names):
    """A source of members."""
    return open_source(RecordTable(data, **names), task=task, member=True, name="members")


# --- CSV ------------------------------------------------------------------------------------------

CSV = (
    "whole,gaps,real,truth,truth_gaps,word,words_gaps,late,blank,mixed,plus\n"
    "1,1,0.1,True,true,cook,cook,1,,True,+1\n"
    "007,,1e5,False,,judge,,2,NA,1,-2\n"
    "-3,3, .5 ,True,false,NaN?,NA,3,,0, 3\n"
    "4,4,-inf,False,TRUE,a b,x,three,nan,False,4\n"
)


@pytest.mark.parametrize("stretch", [(0, 4), (0, 1), (1, 2), (3, 4), (1, 3)])
def test_csv_types_are_those_of_pandas(tmp_path, stretch):
    """Whole numbers, gaps, truths, text, and a word that comes late: each stretch is that part of what pandas reads."""
    path = text(tmp_path / "x.csv", CSV)
    expected = pd.read_csv(path, skipinitialspace=False)
    found = opened(path).read(*stretch).records.features
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), expected.iloc[slice(*stretch)].reset_index(drop=True)
    )


def test_labels_of_a_csv_are_numbers_and_ids_are_text(tmp_path):
    """Ids keep zeros and the letters NA; padding of names does no harm, and a column without a name is no feature."""
    path = text(tmp_path / "x.csv", " x , y ,id,\n0.5,1,007,\n0.25,0,NA,\n")
    assert list(opened(path, Classification(), label="y").kinds) == ["x"]
    batch = opened(path, Classification(), label="y").read(0, 2)
    assert batch.records.labels.tolist() == [1, 0]
    assert batch.records.labels.dtype.kind == "i"
    assert batch.columns["id"].tolist() == ["007", "NA"]


# --- Parquet --------------------------------------------------------------------------------------


def every_type():
    """A frame of every type that pandas writes, with gaps in the last rows only."""
    times = pd.to_datetime(["2020-01-01", "2021-02-03", "2022-03-04", None])
    return pd.DataFrame(
        {
            "category": pd.Categorical(["b", "a", "b", None], categories=["z", "b", "a"], ordered=True),
            "small": np.array([1, 2, 3, 4], np.int8),
            "single": np.array([0.1, 0.2, 0.3, np.nan], np.float32),
            "truth": [True, False, True, True],
            "time": times,
            "zoned": times.tz_localize("UTC"),
            "word": ["a", "b", "c", None],
        }
    )


@pytest.mark.parametrize("group", [1, 3, 4])
@pytest.mark.parametrize("kind", [".parquet", ".arrow"])
def test_types_of_arrow_are_those_of_pandas(tmp_path, kind, group):
    """Categories with their order, small integers, truths, times and text, in every stretch."""
    every_type().to_parquet(tmp_path / "x.parquet")
    expected = pd.read_parquet(tmp_path / "x.parquet")
    source = opened(write(tmp_path / f"x{kind}", pa.Table.from_pandas(every_type()), rows=group))
    for start, stop in ((0, 4), (0, 1), (2, 4), (1, 2), (3, 4)):
        found = source.read(start, stop).records.features
        pd.testing.assert_frame_equal(
            found.reset_index(drop=True), expected.iloc[start:stop].reset_index(drop=True)
        )


@pytest.mark.parametrize("statistics", [True, False])
def test_whole_numbers_with_a_gap_anywhere_are_floats_everywhere(tmp_path, statistics):
    """Whether the file counts its gaps or they must be looked for, a stretch without gaps has the type of the whole."""
    table = pa.table(
        {"a": pa.array([1, 2, 3, None]), "b": pa.array([True, False, None, True]), "c": [1, 2, 3, 4]}
    )
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2, write_statistics=statistics)
    features = opened(tmp_path / "x.parquet").read(0, 2).records.features
    assert [str(kind) for kind in features.dtypes] == ["float64", "object", "int64"]
    assert features["b"].tolist() == [True, False]


def test_the_index_of_pandas_is_no_feature_but_may_be_the_id(tmp_path):
    """An index that was written is left out of the features, and is still there to be named."""
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=[9, 4, 7])
    frame.to_parquet(tmp_path / "x.parquet")
    assert list(opened(tmp_path / "x.parquet").kinds) == ["a"]
    frame.index.name = "id"
    frame.to_parquet(tmp_path / "y.parquet")
    source = opened(tmp_path / "y.parquet")
    assert list(source.kinds) == ["a"]
    assert source.read(1, 3).columns["id"].tolist() == [4, 7]
    named = opened(tmp_path / "y.parquet", features=["id", "a"]).read(0, 1).records.features
    assert named.iloc[0].tolist() == [9, 1]


def test_categories_that_differ_between_row_groups_are_joined(tmp_path):
    """Each stretch has the categories of all row groups."""
    parts = [pa.table({"a": pa.array(words).dictionary_encode()}) for words in (["x", "y"], ["z", "x"])]
    with parquet.ParquetWriter(tmp_path / "x.parquet", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    features = [opened(tmp_path / "x.parquet").read(at, at + 2).records.features["a"] for at in (0, 2)]
    assert [values.tolist() for values in features] == [["x", "y"], ["z", "x"]]
    assert features[0].cat.categories.tolist() == features[1].cat.categories.tolist() == ["x", "y", "z"]


def test_parts_of_other_numbers_are_joined_and_of_other_kinds_refused(tmp_path):
    """A part of floats beside one of integers makes floats; a part of text is named."""
    for name, values in (("a", [1, 2]), ("b", [0.5, None])):
        parquet.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    source = opened(tmp_path)
    assert source.read(0, 2).records.features["x"].tolist() == [1.0, 2.0]
    assert source.read(0, 1).records.features["x"].dtype == np.float64
    parquet.write_table(pa.table({"x": ["1"]}), tmp_path / "c.parquet")
    with refused(r"^file '.*c.parquet' must have the columns of file '.*a.parquet', .* x "):
        opened(tmp_path)
    parquet.write_table(pa.table({"w": [1]}), tmp_path / "c.parquet")
    with refused(r"column 'x' is not in file '.*c.parquet'.* Every part must have the col"):
        opened(tmp_path)


def test_a_huge_row_group_is_read_in_small_batches(tmp_path):
    """A row of a large group is had without the whole group in memory."""
    rng = np.random.default_rng(0)
    table = pa.table({f"x{place}": rng.normal(size=4_000_000) for place in range(3)})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=4_000_000, compression="none")
    size = table.nbytes
    del table
    source = opened(tmp_path / "x.parquet")
    before = pa.total_allocated_bytes()
    source.read(0, 100)
    assert pa.total_allocated_bytes() - before < size / 4


# --- Vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 3)],
    ids=["list", "large list", "fixed size"],
)
def test_a_column_of_vectors_alone_is_the_array_itself(tmp_path, kind):
    """Equal-length lists become an array of two dimensions, labels stand beside."""
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    table = pa.table({"v": pa.array(rows.tolist(), kind), "y": [0, 1, 0, 1]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    batch = opened(tmp_path / "x.parquet", Classification(), label="y").read(1, 4)
    np.testing.assert_array_equal(batch.records.features, rows[1:])
    assert batch.records.features.dtype == np.float32
    assert batch.fingerprint.shape == (3,)
    beside = (
        opened(tmp_path / "x.parquet").read(1, 4).records.features
    )  # y is a feature too: a vector is a cell
    assert list(beside.columns) == ["v", "y"]
    np.testing.assert_array_equal(np.stack(beside["v"]), rows[1:])


def test_vectors_of_vectors_are_arrays_of_more_dimensions(tmp_path):
    """Images as nested lists keep their shape."""
    images = np.arange(24.0).reshape(4, 2, 3)
    parquet.write_table(pa.table({"v": images.tolist()}), tmp_path / "x.parquet")
    np.testing.assert_array_equal(opened(tmp_path / "x.parquet").read(1, 3).records.features, images[1:3])


@pytest.mark.parametrize(
    ("rows", "stretch", "words"),
    [
        (
            [[1, 2], [3, 4], [5]],
            (0, 3),
            "equal length in each row, got 1 numbers in row 2, counting from 0, after 2",
        ),
        ([[1, 2], [3, 4], None], (1, 3), "in each row, got none in row 2, counting from 0"),
        ([[1, 2], [3], [5]], (1, 3), "equal length in each row, got 1 numbers in row 1, .* after 2"),
        ([[[1], [2]], [[3], [4, 5]]], (0, 2), "equal length in each row, got 2 numbers in row 1, .* after 1"),
    ],
)
def test_vectors_that_are_not_alike_are_refused_with_their_row(rows, stretch, words):
    """The column, the table, the row and the lengths are named, whatever stretch they are in."""
    source = opened(pa.table({"v": rows}))
    source.read(0, 1)
    with refused(f"^column 'v' of members must hold .*{words}"):
        source.read(*stretch)


# --- NumPy archives and dictionaries ----------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_of_several_columns_is_itself_the_features(tmp_path, save, order):
    """The shape and type of the saved array are kept, in any stretch and either order in memory."""
    x = np.asarray(np.random.default_rng(0).integers(0, 2, (50, 7, 3)), dtype=np.uint8, order=order)
    save(tmp_path / "x.npz", x=x, y=np.arange(50) % 3)
    source = opened(tmp_path / "x.npz", Classification(), label="y")
    for start, stop in ((0, 20), (20, 50), (5, 9)):
        batch = source.read(start, stop)
        np.testing.assert_array_equal(batch.records.features, x[start:stop])
        assert batch.records.features.dtype == np.uint8
        assert batch.records.labels.tolist() == [row % 3 for row in range(start, stop)]


def test_an_array_of_features_beside_other_arrays_must_be_named(tmp_path):
    """The features are not guessed, and a named one is taken alone or with others."""
    arrays = {"x": np.ones((3, 2)), "w": np.arange(3), "y": [0, 1, 0]}
    np.savez(tmp_path / "x.npz", **arrays)
    for data in (tmp_path / "x.npz", arrays):
        with refused(r"^features must be named for .*'x' is a table.*one or more of 'x', 'w'"):
            opened(data, Classification(), label="y")
        alone = opened(data, Classification(), label="y", features="x").read(0, 3).records.features
        assert alone.shape == (3, 2)
        both = opened(data, Classification(), label="y", features=["x", "w"]).read(0, 3).records.features
        assert list(both.columns) == ["x", "w"]


def test_sparse_features_in_memory_stay_sparse():
    """A sparse matrix in a dictionary is the features, in stretches."""
    from scipy import sparse

    cells = np.random.default_rng(0).normal(size=(20, 5))
    matrix = sparse.csc_array(np.where(cells > 0.5, cells, 0))
    batch = opened({"x": matrix, "y": np.arange(20) % 2}, Classification(), label="y").read(3, 9)
    assert sparse.issparse(batch.records.features)
    np.testing.assert_array_equal(batch.records.features.toarray(), matrix.toarray()[3:9])
    assert batch.fingerprint.shape == (6,)


# --- Labels ---------------------------------------------------------------------------------------


def test_several_labels_are_a_table(tmp_path):
    """Named in order, columns of 0 and 1 are the labels of a task of several labels, and numbers those of a regression."""
    path = text(tmp_path / "x.csv", "x,a,b\n0.5,1,0\n0.25,0,0\n1,1,1\n")
    labels = opened(path, MultiLabel(), label=["b", "a"]).read(0, 3).records.labels
    assert labels.tolist() == [[False, True], [False, False], [True, True]]
    batch = opened(path, SquaredError(), label=("a", "b")).read(1, 3)
    assert batch.records.labels.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert "label" not in batch.columns
    with refused("must be one label for each record, got shape"):
        opened(path, Classification(), label=("a", "b")).read(0, 3)


@pytest.mark.parametrize(
    ("values", "task"),
    [([1.0, 0.0, None, 1.0], Classification()), (["a", "b", None, "a"], Classification())]
    + [([0.1, 0.2, value, 0.4], SquaredError()) for value in (None, np.inf, np.nan)],
)
def test_a_missing_label_is_named_by_its_row_in_the_table(values, task):
    """The row counts in the table and not in the stretch."""
    source = opened(pa.table({"x": [1, 2, 3, 4], "y": values}), task, label="y")
    source.read(0, 2)
    with refused(r"^label column 'y' of members must have a label in each row, got 1 .* row 2,"):
        source.read(1, 4)


def test_frames_keep_their_own_types():
    """A DataFrame in memory comes as it is, whatever its column names are."""
    frame = pd.DataFrame({0: pd.array([1, None], "Int64"), 1: pd.Categorical(["a", "b"]), "y": ["no", "yes"]})
    features = opened(frame, Classification(), label="y").read(0, 2).records.features
    pd.testing.assert_frame_equal(features, frame[[0, 1]])
    frame = pd.DataFrame({("a", "b"): [1]})
    pd.testing.assert_frame_equal(opened(frame).read(0, 1).records.features, frame)


def test_parts_are_read_in_the_order_of_their_names(tmp_path):
    """Hidden files, those of Spark and other files are no parts."""
    names = ["part-1.parquet", "part-10.PARQUET", "part-2.parquet", "_metadata.parquet", ".hidden.parquet"]
    for place, name in enumerate(names):
        parquet.write_table(pa.table({"x": [place]}), tmp_path / name)
    text(tmp_path / "notes.txt", "x")
    assert opened(tmp_path).read(0, 9).records.features["x"].tolist() == [0, 1, 2]


def test_foreign_byte_order_and_bytes_are_made_ours(tmp_path):
    """Big-endian numbers are numbers of this machine, and byte strings are text."""
    arrays = {"a": np.array([1.5, 2.5], ">f8"), "b": np.array([b"x", b"yz"])}
    features = opened(write(tmp_path / "x.npz", arrays)).read(0, 2).records.features
    assert features["a"].dtype.isnative
    assert features.to_numpy().tolist() == [[1.5, "x"], [2.5, "yz"]]
