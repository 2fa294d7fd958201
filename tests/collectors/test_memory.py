"""A table that needs more memory than it may take is refused before it is decoded, whatever kind of file it is in."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
from collectors.common import refused, text
from command_line import printed
from pyarrow import feather, ipc, parquet

from auditor import collect
from auditor.collectors import Output, read_feature_pair, read_features, read_loss_pair, read_losses
from auditor.collectors.tables import RecordTable, open_source
from auditor.core import InputError

MEGABYTE = 10**6
LONG = ["a" * 400_000] * 4
FOUR = {"loss": [0.1, 0.2, 0.3, 0.4], "member": [1, 0, 1, 0]}
MANY = {"loss": np.zeros(200_000), "member": np.arange(200_000) % 2}


def _zipped(path, columns):
    np.savez_compressed(path, **{name: np.asarray(column) for name, column in columns.items()})


def _stream(path, columns):
    table = pa.table(columns)
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(str(path), table.schema, options=options) as out:
        out.write_table(table)


def _arrow(path, columns):
    feather.write_feather(pa.table(columns), str(path), compression="lz4", chunksize=10**6)


def _dictionary(path, columns):
    listed = {name: pa.array(column).dictionary_encode() for name, column in columns.items()}
    feather.write_feather(pa.table(listed), str(path), compression="zstd")


def _listed(path, columns):
    parquet.write_table(pa.table(columns), path, compression="zstd", use_dictionary=True)


def _plain(path, columns):
    parquet.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False)


def _lines(path, columns):
    rows = "".join(f"{','.join(map(str, row))}\n" for row in zip(*columns.values(), strict=True))
    text(path, gzip.compress(f"{','.join(columns)}\n{rows}".encode()))


def test_lines_of_json_count_twice_against_the_memory_that_a_table_may_take(tmp_path):
    """A file of JSON lines is read whole, so one of more than half the memory is refused before it is parsed."""
    path = text(tmp_path / "x.jsonl", '{"loss": 0.5, "member": 1}\n' * 30_000)
    with refused(r"^file '.*x\.jsonl' would need 0\.0016 GB .*, more than the 0\.001 GB"):
        read_losses(path, memory=MEGABYTE)


WRITERS = {
    "a.npz": _zipped,
    "a.arrow": _stream,
    "a.feather": _arrow,
    "b.feather": _dictionary,
    "a.parquet": _listed,
    "b.parquet": _plain,
    "a.csv.gz": _lines,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("columns", [{**FOUR, "id": LONG}, MANY], ids=["long texts", "many rows"])
def test_a_small_file_that_becomes_large_is_refused_in_one_sentence(tmp_path, name, columns):
    """The sentence has the file, what it would need, what it may take and what to do; with more memory it is read."""
    WRITERS[name](tmp_path / name, columns)
    assert (tmp_path / name).stat().st_size < 0.7 * MEGABYTE
    words = rf"^file '.*{name}' would need (\S+) GB .*, more than the 0.001 GB that .*--set memory"
    with refused(words) as caught:
        read_losses(tmp_path / name, memory=MEGABYTE)
    assert str(caught.value).count("\n") == 0
    assert float(str(caught.value).split("would need ")[1].split()[0]) >= 0.001
    found = read_losses(tmp_path / name, memory=20 * MEGABYTE)
    assert found.n_member == len(columns["loss"]) / 2
    if "id" in columns:
        assert found.id.member.dtype == object
        assert found.id.nonmember.tolist() == LONG[:2]


@pytest.mark.parametrize("name", [name for name in WRITERS if not name.endswith(".gz")])
def test_records_are_read_in_stretches_that_fit(tmp_path, name):
    """Long texts are refused among records too, whose stretches are all that must fit; many rows are not."""
    columns = {"x": FOUR["loss"], "y": FOUR["member"], "id": LONG}
    WRITERS[name](tmp_path / name, columns)

    def read(path, memory, rows):
        source = open_source(
            RecordTable(path, label="y", memory=memory), task=None, member=True, name="member"
        )
        return [len(source.read(start, start + rows).records) for start in range(0, len(source), rows)]

    with refused(f"^file '.*{name}' would need .*--set memory"):
        read(tmp_path / name, MEGABYTE, 4)
    many = tmp_path / f"many-{name}"
    WRITERS[name](many, {"x": MANY["loss"], "y": MANY["member"]})
    if name.endswith(".parquet"):
        assert sum(read(many, 1.3 * MEGABYTE, 1000)) == 200_000


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()], ids=str
)
def test_every_kind_of_text_is_held_to_the_same_limit(tmp_path, kind):
    """Bytes, long text and views that are listed once in a Parquet file are measured before they stand in every row."""
    table = pa.table({**FOUR, "id": pa.array(LONG).cast(kind)})
    if kind == pa.string_view() and int(pa.__version__.split(".")[0]) < 21:
        pytest.skip("pyarrow writes views to Parquet files from 21 on")
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with refused("would need 0.0016 GB"):
        read_losses(tmp_path / "a.parquet", memory=MEGABYTE)
    assert len(read_losses(tmp_path / "a.parquet").id.member[0]) == 400_000


def test_declared_rows_are_not_waited_for(tmp_path):
    """A file of a few kilobytes that declares a hundred million equal rows is refused by what it declares."""
    one = pa.table({"loss": np.zeros(10**6), "member": np.zeros(10**6, dtype=np.int8)})
    with parquet.ParquetWriter(tmp_path / "a.parquet", one.schema, compression="zstd") as out:
        for _ in range(100):
            out.write_table(one)
    with refused(r"would need 1.6 GB .* more than the 1 GB"):
        read_losses(tmp_path / "a.parquet")


def test_a_line_of_names_without_end_is_not_read(tmp_path):
    """A header of five megabytes is refused, and so is one that a compressed file hides."""
    for name, content in (("a.csv", b"x" * 5_000_000), ("a.csv.gz", gzip.compress(b"x" * 5_000_000))):
        with refused(f"^file '.*{name}' must have no row longer than 4 MB; save it as .parquet"):
            read_losses(text(tmp_path / name, content))


def test_every_reader_takes_the_same_option(tmp_path):
    """Pairs and features are held to the memory of each file, and a limit that is none is refused."""
    _listed(tmp_path / "a.parquet", MANY)
    _plain(tmp_path / "b.parquet", MANY)
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for read in (
        lambda memory: read_loss_pair(*paths, member_column=None, memory=memory),
        lambda memory: read_features(paths[0], columns=["loss"], memory=memory),
        lambda memory: read_feature_pair(*paths, columns=["loss"], memory=memory),
    ):
        with refused("would need .*--set memory"):
            read(MEGABYTE)
        read(10 * MEGABYTE)
    with refused("memory must be .*, got 0"):
        read_losses(paths[0], memory=0)
    with refused("memory must be .*, got -1"):
        RecordTable(paths[0], memory=-1)


def test_nothing_large_of_a_parquet_file_is_decoded_before_the_refusal(tmp_path):
    """Arrow's own count of its memory stays far below what the refused file would have taken."""
    path = tmp_path / "a.parquet"
    _plain(path, {"loss": np.zeros(8 * MEGABYTE), "member": np.zeros(8 * MEGABYTE, dtype=np.int64)})
    code = (
        "import json, sys, pyarrow; from auditor.collectors import read_losses\n"
        "try: read_losses(sys.argv[1], memory=1e7)\n"
        "except Exception as error: print(json.dumps([str(error), pyarrow.default_memory_pool().max_memory()]))"
    )
    words, most = json.loads(printed(code, path))
    assert "would need" in words
    assert most < 10 * MEGABYTE  # of 128


def test_what_was_collected_is_read_however_large_it_is(monkeypatch):
    """Losses collected from tables in memory are never lost to the limit for files of others."""
    monkeypatch.setitem(read_losses.__kwdefaults__, "memory", 10.0)
    table = {"x": np.arange(8.0), "y": np.arange(8) % 2}
    found = collect(
        lambda rows: rows["x"].to_numpy(),
        members=RecordTable(table, label="y"),
        nonmembers=RecordTable({"x": table["x"] + 0.5, "y": table["y"]}, label="y"),
        output=Output.LOGITS,
    )
    assert found.n_member == 8


def test_arrays_of_text_stay_as_long_as_their_cells(tmp_path):
    """One long id does not make all of them long: in memory they are objects, and so are a list's."""
    ids = np.array(["a" * 100_000, *"bcd"])
    np.savez_compressed(tmp_path / "a.npz", **FOUR, id=ids)
    found = read_losses(tmp_path / "a.npz")
    assert found.id.member.nbytes < 100
    assert found.id.member.tolist() == ["a" * 100_000, "c"]
    with pytest.raises(InputError, match="member id"):
        type(found)(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a"], ["b", "c"]))
