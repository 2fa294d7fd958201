"""One contract for every kind of table: the same records come out, in whatever stretches they are read."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import refused, text, write
from pyarrow import dataset

from auditor import Classification
from auditor.collectors.streaming import collect
from auditor.collectors.tables import RecordTable, open_source

N = 1000


def frame():
    """Numbers with and without gaps, text with gaps, and the columns that are no features, one of them in between."""
    rng = np.random.default_rng(7)
    age = rng.integers(1, 90, N).astype(float)
    age[-3:] = np.nan  # an integer column but for the last stretch
    return pd.DataFrame(
        {
            "age": age,
            "id": [f"{row:04d}" for row in range(N)],
            "weight": rng.normal(size=N),
            "job": rng.choice(np.array(["cook", "judge", None], dtype=object), N),
            "y": rng.integers(0, 2, N),
            "person": [f"p{row // 2}" for row in range(N)],
            "count": rng.integers(-5, 2**40, N),
        }
    )


FRAME = frame()
FEATURES = ["age", "weight", "job", "count"]


def arrow():
    """The frame as Arrow has it, the ages as integers with gaps."""
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    return table.set_column(0, "age", table["age"].cast(pa.int64()))


def save_folder(folder):
    """Parts of which only the last has a gap among the ages; the others are written without gaps, as integers."""
    (folder / "parts").mkdir()
    for part, (start, stop) in enumerate(((0, 400), (400, 401), (401, 990), (990, N))):
        rows = FRAME.iloc[start:stop]
        kind = "float64" if rows["age"].isna().any() else "int64"
        rows.astype({"age": kind}).to_parquet(folder / "parts" / f"part-{part}.parquet", index=False)
    (folder / "parts" / "_SUCCESS").touch()
    return folder / "parts"


def save_csv_folder(folder):
    """Parts of different separators and orders of columns, one packed; only the last has a gap among the ages."""
    (folder / "parts").mkdir()
    for part, (start, stop) in enumerate(((0, 400), (400, 401), (401, 990), (990, N))):
        rows = FRAME.iloc[start:stop].assign(age=FRAME["age"].astype("Int64"))
        rows = rows[rows.columns[::-1]] if part == 1 else rows
        kind, mark = [("csv", ","), ("tsv", "\t"), ("csv.gz", ","), ("CSV", ",")][part]
        rows.to_csv(folder / "parts" / f"part-{part}.{kind}", sep=mark, index=False)
    (folder / "parts" / "_SUCCESS").touch()
    return folder / "parts"


def save_csv(folder):
    """Ages as integers, gaps as blanks."""
    table = FRAME.assign(age=[f"{age:.0f}" if age == age else "" for age in FRAME["age"]])  # noqa: PLR0124
    table.to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def arrays():
    """Arrays of numbers and text; a missing text is an empty one, since NumPy has no other."""
    text = {name: FRAME[name].fillna("").to_numpy(str) for name in ("id", "job", "person")}
    return {name: text.get(name, FRAME[name].to_numpy()) for name in FRAME}


def polars(_):
    """A polars frame."""
    return pytest.importorskip("polars").from_arrow(arrow())


def sent(folder):
    """A file, or a folder of parts, copied to the memory that fsspec addresses."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    if memory.exists(f"/{folder.name}"):
        memory.rm(f"/{folder.name}", recursive=True)
    memory.put(str(folder), f"/{folder.name}", recursive=True)
    return f"memory://{folder.name}"


KINDS = {
    "parquet": lambda folder: write(folder / "x.parquet", arrow(), rows=170),
    "folder": save_folder,
    "address": lambda folder: sent(write(folder / "x.parquet", arrow(), rows=170)),
    "csv": save_csv,
    "csv folder": save_csv_folder,
    "csv address": lambda folder: sent(save_csv(folder)),
    "csv folder address": lambda folder: sent(save_csv_folder(folder)),
    "arrow": lambda folder: write(folder / "x.arrow", arrow(), rows=170),
    "stream": lambda folder: write(folder / "x.feather", arrow(), rows=170),
    "npz": lambda folder: write(folder / "x.npz", arrays()),
    "pandas": lambda _: FRAME,
    "polars": polars,
    "table": lambda _: arrow(),
    "dataset": lambda folder: dataset.dataset(write(folder / "x.parquet", arrow(), rows=170)),
    "dictionary": lambda _: {name: FRAME[name].to_numpy() for name in FRAME},
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def data(request, tmp_path):
    """The same records in each kind of table."""
    return request.param(tmp_path)


@pytest.fixture
def source(data):
    """Each as a source, in another process so to say."""
    table = RecordTable(data, label="y")
    return pickle.loads(pickle.dumps(open_source(table, task=Classification(), member=True, name="members")))  # noqa: S301


def test_records_are_features_labels_and_what_stands_beside_them(source):
    """Numbers, gaps and text are those of the frame; ids keep their zeros; a stretch ends with the table."""
    assert len(source) == N
    assert len(source.read(990, 2 * N).records) == 10
    batch = source.read(0, N)
    features = batch.records.features
    assert list(features.columns) == FEATURES
    for name in ("age", "weight", "count"):
        np.testing.assert_array_equal(features[name].astype(float), FRAME[name].astype(float))
    assert ["" if pd.isna(job) else job for job in features["job"]] == FRAME["job"].fillna("").tolist()
    assert batch.records.labels.tolist() == FRAME["y"].tolist()
    assert {name: column.tolist() for name, column in batch.columns.items()} == {
        "id": FRAME["id"].tolist(),
        "person": FRAME["person"].tolist(),
        "label": FRAME["y"].tolist(),
    }
    assert batch.member.tolist() == [True] * N


def test_a_stretch_does_not_depend_on_where_it_begins_and_ends(source):
    """Read onwards, in leaps or backwards, types, values and fingerprints are those of the whole."""
    whole = source.read(0, N)
    for start, stop in ((0, 300), (300, 301), (700, 999), (999, N), (900, N), (500, 900), (0, 500)):
        batch = source.read(start, stop)
        assert batch.records.first_row == start
        assert batch.records.features.dtypes.tolist() == whole.records.features.dtypes.tolist()
        pd.testing.assert_frame_equal(
            batch.records.features.reset_index(drop=True),
            whole.records.features.iloc[start:stop].reset_index(drop=True),
        )
        np.testing.assert_array_equal(batch.fingerprint, whole.fingerprint[start:stop])
        assert batch.records.labels.tolist() == whole.records.labels.tolist()[start:stop]


def test_the_fingerprints_are_those_of_collection_in_memory(source):
    """The hashes of stretches are what `collect` says of the features as one frame."""
    features = FRAME[FEATURES]
    if source.name.endswith(".npz'"):
        features = features.fillna({"job": ""})
    pair = features, FRAME["y"]
    losses = collect(lambda table: np.full((len(table), 2), 0.5), members=pair, nonmembers=pair)
    found = np.concatenate([source.read(start, start + 130).fingerprint for start in range(0, N, 130)])
    np.testing.assert_array_equal(found, losses.fingerprint.member)


def test_features_may_be_chosen_and_ordered(data):
    """The columns come in the order requested, and one name without a list is the column itself."""
    table = RecordTable(data, label="y", features=["count", "age"])
    source = open_source(table, task=Classification(), member=False, name="x")
    batch = source.read(0, 5)
    assert list(batch.records.features.columns) == ["count", "age"]
    assert not batch.member.any()
    table = RecordTable(data, features="person", person=None)
    alone = open_source(table, task=None, member=True, name="x").read(3, 6)
    assert alone.records.features.tolist() == FRAME["person"].tolist()[3:6]
    assert alone.records.labels.tolist() == [0, 0, 0]
    assert "person" not in alone.columns
    table = RecordTable(data, label="y", id=None)  # a column that plays no part is a feature like any other
    roles = open_source(table, task=Classification(), member=True, name="x").roles
    assert roles.features == ("age", "id", *FEATURES[1:])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"label": "Y"}, r"column 'Y' is not in .* did you mean 'y'\? Name the column of labels"),
        ({"features": ["ages"]}, r"column 'ages' is not in .* did you mean 'age'\?"),
        ({"group": "grp"}, r"column 'grp' is not in .* Name the column of slices"),
        ({"features": ["age", "y"]}, r"^features must not name 'y', the column of labels of "),
        ({"features": ["age", "weight"], "member": "age", "label": "age"}, r"^label must not name 'age'"),
        ({"label": None}, r"^label must name the column of true labels of .*, got none; its columns are"),
    ],
)
def test_names_that_do_not_fit_are_one_sentence(data, names, words):
    """A missing column is named with the nearest, and one that plays two parts with both."""
    table = RecordTable(data, **{"label": "y", **names})
    with refused(words):
        open_source(table, task=Classification(), member=True, name="members")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (
            "age,job\n3,cook\n",
            r"column 'y' is not in file '.*b\.csv', .*must have the columns of file '.*a\.csv'",
        ),
        ("age,y\n3,1\n4,1,5\n", r"file '.*b\.csv' must have 2 fields in each row, got 3 in row 3"),
        (b"\xff\xfe", r"file '.*b\.csv' is not UTF-8 text"),
        ("age,y\n3,1\n4,\n", r"'y' of folder '.*' must have a label in each row.*first at row 3"),
    ],
)
def test_a_fault_in_one_of_many_csv_files_names_the_file(tmp_path, second, words):
    """Columns, rows and text that are wrong name the file; cells are counted over the whole folder."""
    text(tmp_path / "a.csv", "age,y\n1,0\n2,1\n")
    text(tmp_path / "b.csv", second)
    with refused(words):
        source = open_source(
            RecordTable(tmp_path, label="y", features=["age"]), task=Classification(), member=True, name="x"
        )
        source.read(0, 9)


REGIONS = ["north", "a b/c=d", None]


def save_csv_folders(folder):
    """CSV files in folders that are called by year and by region, as Hive and Spark write them; and files that are not read."""
    frame = pd.DataFrame({"x": np.arange(12) / 8, "y": np.arange(12) % 2, "member": np.arange(12) // 2 % 2})
    frame["year"], frame["region"] = np.repeat([2019, 2020], 6), np.tile(np.repeat(REGIONS, 2), 2)
    options = {"partition_cols": ["year", "region"], "index": False}
    frame.to_parquet(folder / "known", **options)
    for file in sorted((folder / "known").rglob("*.parquet")):
        place = folder / "hive" / file.parent.relative_to(folder / "known")
        place.mkdir(parents=True)
        pd.read_parquet(file, partitioning=None).to_csv(place / "part-0.csv", index=False)
        (place / "_SUCCESS").touch()
    (folder / "hive" / "_log").mkdir()
    (folder / "hive" / "_log" / "other.csv").write_text("z\n1\n", encoding="utf-8")
    return folder / "hive"


@pytest.mark.parametrize("place", [str, sent], ids=["here", "address"])
def test_folders_that_name_a_value_are_columns_of_csv_files(tmp_path, place):
    """Whole numbers, text that was escaped and a missing value are those of the same folders of Parquet; stretches agree."""
    folder = save_csv_folders(tmp_path)
    source, known = (
        open_source(RecordTable(data, label="y"), task=Classification(), member=None, name="records")
        for data in (place(folder), tmp_path / "known")
    )
    source = pickle.loads(pickle.dumps(source))  # noqa: S301
    found, wanted = source.read(0, 12), known.read(0, 12)
    frames = [one.records.features.astype(object) for one in (found, wanted)]  # a missing text is None or NaN
    pd.testing.assert_frame_equal(*(frame.where(frame.notna(), None) for frame in frames))
    assert list(found.records.features["year"].unique()) == [2019, 2020]
    assert set(found.records.features["region"].dropna()) == set(REGIONS) - {None}
    np.testing.assert_array_equal(found.member, wanted.member)
    for start, stop in ((3, 4), (7, 12), (0, 9)):
        part = source.read(start, stop).records.features
        pd.testing.assert_frame_equal(part, found.records.features[start:stop].reset_index(drop=True))
    alone = RecordTable(place(folder), label="y", features="year")
    alone = open_source(alone, task=Classification(), member=None, name="records")
    np.testing.assert_array_equal(alone.read(0, 12).records.features, np.repeat([2019, 2020], 6))


def test_every_csv_file_below_a_folder_has_all_columns(tmp_path):
    """A file without a column, or outside the folders that give one, is named."""
    folder = save_csv_folders(tmp_path)
    (folder / "year=2021").mkdir()
    (folder / "year=2021" / "part.csv").write_text("x,y,member\n1,0,0\n", encoding="utf-8")
    with refused(r"column 'region' is not in file '.*part\.csv'"):
        open_source(RecordTable(folder, label="y"), task=Classification(), member=None, name="records")
