"""Loss files of every kind, whole and broken."""

import dataclasses
import gc
import gzip
import os
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import KINDS, Trap, refused, text, write
from pyarrow import parquet

from auditor import InputError, LossScale
from auditor.cli import run
from auditor.collectors import (
    RecordTable,
    collect,
    collect_to,
    from_columns,
    read_features,
    read_loss_pair,
    read_losses,
    read_schedule,
)
from auditor.collectors.tables import open_groups, open_source, readable
from auditor.collectors.tables.opening import open_table

COLUMNS = {
    "loss": [0.1, 0.9, 1 / 3, 0.7],
    "member": [1, 0, 1, 0],
    "id": ["007", "8", "009", "10"],
    "group": ["a", "b", "b", "a"],
    "person": ["p", "q", "p", "r"],
    "unused": ["text, with comma", "x", 'quote "', "two\nlines"],
}


FOUR = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("kind", [*KINDS, ".csv.gz"])
def test_a_file_is_opened_once(tmp_path, kind):
    """Losses, features and records are read from a table whose file is gone since it was opened."""
    columns = {"loss": FOUR, "member": [1, 0, 1, 0], "word": list("abcd")}
    path = write(tmp_path / f"x{kind.removesuffix('.gz')}", columns)
    if kind.endswith(".gz"):
        path = text(tmp_path / f"y{kind}", gzip.compress(path.read_bytes()))
    table = open_table(path)
    path.unlink()
    assert read_losses(table).nonmember.tolist() == [0.2, 0.4]
    assert read_features(table, columns=["word"]).tables[0].column(0).tolist() == ["a", "c"]
    source = open_source(RecordTable(table, label="loss"), task=None, member=None, name="x")
    assert source.read(1, 3).records.features["word"].tolist() == ["b", "c"]


def test_an_audit_opens_its_file_once(tmp_path, monkeypatch):
    """The command takes losses, features and what the file says of itself from one opening of it."""
    rng = np.random.default_rng(0)
    columns = {"loss": rng.normal(size=200), "member": np.arange(200) % 2, "age": rng.normal(size=200)}
    path, opened = write(tmp_path / "x.parquet", columns, rows=50), []
    one, other = pa.OSFile, parquet.ParquetFile
    monkeypatch.setattr(pa, "OSFile", lambda file: opened.append(file) or one(file))
    monkeypatch.setattr(
        parquet, "ParquetFile", lambda file, **more: isinstance(file, one) and other(file, **more)
    )
    assert run(["audit", str(path), "--features", "age", "--delta", "1e-5", "--quiet"]) == 0
    assert opened == [str(path)]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_have_any_name(tmp_path, kind):
    """Named columns are used, and higher_is_member negates them; None reads no ids."""
    columns = {"score": [0.1, 0.9, 0.2, 0.0], "in": [False, True, True, False], "id": [1, 2, 3, 4]}
    path = write(tmp_path / f"y{kind}", columns)
    losses = read_losses(path, loss_column="score", member_column="in", id_column=None, higher_is_member=True)
    np.testing.assert_array_equal(losses.member, [-0.9, -0.2])
    assert "negated" in losses.history[-1]
    assert losses.id is losses.group is None


def test_what_the_caller_knows_travels_with_the_columns():
    """A score that grows with membership is negated, which the history records after the caller's own steps."""
    known = {"scale": "cross-entropy", "history": ["from a notebook"], "higher_is_member": True}
    losses = from_columns(np.ma.masked_array(FOUR, mask=False), member=[1, 0, 1, 0], **known)
    np.testing.assert_array_equal(losses.member, [-0.1, -0.3])
    assert losses.scale is LossScale.CROSS_ENTROPY
    assert losses.history[0] == "from a notebook"
    assert "negated" in losses.history[1]


FIX = "code members as 1 and non-members as 0"
MARKS = [1, 0, 1, 0, 1]
HOLED, ENDLESS = [0.1, 0.2, 0.3, np.nan, np.nan], [0.1, 0.2, 0.3, np.inf, -np.inf]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"Losses": [0.1, 0.2], "member": [1, 0]},
            "^column 'loss' is not in .*x{}', .*did you mean 'Losses'",
        ),
        ({"loss": [0.1]}, "'member' is not in .*, which has 'loss'.*give the two files as members and"),
        ({"loss": HOLED, "member": MARKS}, r"'loss' of .*x{}' .*got 2 NaN or blank \(first at row 3,"),
        ({"loss": ENDLESS, "member": MARKS}, r"got 2 infinite \(first at row 3, "),
        (
            {"loss": FOUR, "member": [1, 0, 7, 0]},
            rf"'member' of .*x{{}}' .*got 7 \(first at row 2, .*; {FIX}",
        ),
        ({"loss": FOUR, "member": [1.0, 0.0, np.nan, 0.0]}, "must hold only 0 .*got nan .*row 2,"),
        ({"loss": FOUR, "member": [0] * 4}, rf"got 4 records and no member \(1\); {FIX}, or give the two"),
        ({"loss": [0.1, 0.2, 0.3], "member": [0, 1, 1]}, "at least 2 records, got 1"),
        ({"loss": np.array([], float), "member": np.array([], int)}, "(column 'loss' of|file) .* is empty"),
    ],
)
def test_columns_that_are_no_losses_are_one_sentence(tmp_path, kind, columns, words):
    """The sentence names the file, the column, what is wrong with the row of the file, and the fix."""
    if kind == ".csv":  # where rows are those of an editor
        words = re.sub(r"row (\d),", lambda row: f"row {int(row[1]) + 2},", words)
    with refused(words.format(kind)):
        read_losses(write(tmp_path / f"x{kind}", columns))


NOISE = np.random.default_rng(0).bytes(5000)
PICKLED = (".pkl", ".npy", ".PT")
READERS = {
    "losses": read_losses,
    "records": lambda path: open_groups(records=RecordTable(path), task=None),
    "features": lambda path: read_features(path, columns=["x"]),
    "schedule": read_schedule,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        *((f"gone{kind}", None, r"does not exist; check the name and the folder\.$") for kind in KINDS),
        *((f"empty{kind}", b"", r"is empty; write it again\.$") for kind in KINDS),
        *((f"noise{kind}", NOISE, "is not .*(again|name it)") for kind in KINDS),
        *((f"{'x' * 300}{kind}", None, r"cannot be read: File name too long; check the") for kind in KINDS),
        *(
            (f"folder{kind}/", None, r"is a directory, and there is no .parquet or .csv file in it")
            for kind in KINDS
        ),
        ("file/x.csv", None, "does not exist; check the name and the folder"),
        ("a\0b.csv", None, r"\\x00.* must have a name without NUL characters"),
        (os.fsdecode(b"\xff.npz"), None, r"\\udcff.* must have a name in UTF-8; rename it or its folder\.$"),
        *((f"x{kind}", None, r"is refused: .* files may be pickled.*save the") for kind in PICKLED),
        *((name, None, r"must end in \.csv, \.tsv, .*, \.npz, \.arr") for name in ("x.txt", "x.gz", "x")),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path, read, name, content, words):
    """Each reader says of a file that is none its name, what it is instead, and the fix."""
    (tmp_path / "file").touch()
    if name.endswith("/"):
        (tmp_path / name).mkdir()
    if content is not None:
        text(tmp_path / name, content)
    with refused(words) as error:
        read(f"{tmp_path}/{name}".removesuffix("/"))
    assert str(error.value).isprintable()


@pytest.mark.parametrize("data", [None, 3, [1, 2], object(), {1, 2}, b"x.csv"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_data_of_no_supported_kind_are_refused(read, data):
    """The sentence lists what is supported, and names the type that came."""
    with refused(rf"^a table must be the path of a file.* got {type(data).__name__}; convert it"):
        read(data)


@pytest.mark.parametrize("kind", [".parquet", ".npz"])
def test_damaged_and_mislabelled_files_are_refused(tmp_path, kind):
    """A binary file with bytes flipped within a column, and text under its name, are one sentence."""
    columns = {"loss": np.random.default_rng(0).normal(size=4000), "member": np.arange(4000) % 2}
    path = tmp_path / f"x{kind}"
    if kind == ".npz":
        np.savez_compressed(path, **columns)
    else:
        parquet.write_table(pa.table(columns), path, compression="zstd", write_page_checksum=True)
    whole = path.read_bytes()
    for content in (whole[:300] + bytes(600) + whole[900:], b"loss,member\n0.1,1\n"):
        with refused(rf"x{kind}' is not a whole {kind} "):
            read_losses(text(path, content))


def test_bytes_that_are_no_text_in_a_parquet_file_are_one_sentence(tmp_path):
    """A string column whose bytes are no UTF-8 is a damaged file, not an error of Arrow."""
    path = tmp_path / "x.parquet"
    columns = {"loss": FOUR, "member": [1, 0, 1, 0], "id": ["wxyz0", "wxyz1", "wxyz2", "wxyz3"]}
    parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
    text(path, path.read_bytes().replace(b"wxyz", b"\xff\xfe\xfd\xfc"))
    with refused(r"x.parquet' is not a whole .parquet file \(.*\); write it again"):
        read_losses(path)


def test_an_encrypted_archive_is_one_sentence(tmp_path):
    """An entry of an archive that is marked as encrypted cannot be read, and the reason is passed on."""
    path = write(tmp_path / "x.npz", {"loss": [0.1, 0.2], "member": [1, 0]})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + offset] |= 1
            start = content.find(mark, start + 1)
    with refused(r"x.npz' is not a whole .npz file \(.*encrypted"):
        read_losses(text(path, bytes(content)))


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (RuntimeError("a\nb\x1b."), InputError, r"^file 'x.npz' is not a whole .npz file \(a b\?\); "),
        (RecursionError(), InputError, r"^file 'x.npz' is not a whole .npz file \(RecursionError\); "),
        (MemoryError("8 EiB"), InputError, r"^file 'x.npz' does not fit in memory \(8 EiB\); "),
        (PermissionError(13, "Denied"), InputError, "x.npz' cannot be read: Denied; check its permissions"),
        (ImportError("no pyarrow"), ImportError, "^no pyarrow$"),
    ],
)
def test_whatever_a_reader_raises_is_one_printable_sentence(error, kind, words):
    """No type of exception escapes from a damaged file but that of a missing package, and its words stay on one line."""

    def read():
        with readable(Path("x.npz")):
            raise error

    with pytest.raises(kind, match=words) as got:
        read()
    assert got.value is error or got.value.__cause__ is error


@pytest.mark.parametrize("name", [None, 5, ["loss"]])
@pytest.mark.parametrize("argument", ["loss_column", "member_column", "id_column"])
def test_a_column_name_that_is_no_string_is_refused(tmp_path, argument, name):
    """The argument and what it holds are named; None is a choice for the label columns, and for membership of two files."""
    path, other = write(tmp_path / "x.csv", COLUMNS), write(tmp_path / "y.csv", COLUMNS)
    calls = [lambda: read_losses(path, **{argument: name})] if (argument, name) != ("id_column", None) else []
    calls += [lambda: read_loss_pair(path, other, **{argument: name})] if name is not None else []
    for call in calls:
        with refused(rf"^{argument} must be the name of a column, got "):
            call()


def test_a_pickle_is_never_loaded(tmp_path):
    """In an array of objects or under any accepted name it is refused and runs nothing."""
    proof = tmp_path / "it ran"
    bomb = np.empty(2, dtype=object)
    bomb[:] = Trap(proof)
    path = write(tmp_path / "x.npz", {"loss": [0.1, 0.2], "member": [1, 0], "id": bomb})
    for call in (
        lambda: read_losses(path),
        lambda: read_losses(path, loss_column="id", id_column=None),
        lambda: open_groups(records=RecordTable(path), task=None),
    ):
        with refused(r"array 'id' of .* must be a whole NumPy array .* code is in it \(Object arrays cannot"):
            call()
    for kind in KINDS:
        with refused(r"is not"):
            read_losses(text(tmp_path / f"x{kind}", pickle.dumps(Trap(proof))))
    assert not proof.exists()
    pickle.loads(pickle.dumps(Trap(proof)))  # noqa: S301  # the bomb does work
    assert proof.exists()


# --- CSV -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffloss,member\n0.1,1\n0.9,0\n0.2,1\n0.7,0\n",
        " loss , member \n 0.1 , 1 \n 0.9 , 0 \n 0.2 , 1 \n 0.7 , 0 \n",
        '"loss", "member"\n"0.1",1\n0.9,0\n0.2,1\n0.7,0\n',
        "loss,member\r\n0.1,1.0\r\n0.9,0.0\r\n0.2,1.0\r\n0.7,0.0",
        "loss,member\n0.1,True\n0.9,False\n0.2,true\n0.7,false\n",
        "\n,loss,x,x,member\n\n0,0.1,,,1\n1,0.9,,,0\n\n2,2e-1,,,1\n3,+0.7,,,0\n\n",
        '"two\nlines",loss,member\n"a\nb",0.1,1\n,0.9,0\n,0.2,1\n,0.7,0\n',
    ],
)
def test_csv_dialects_give_the_same_losses(tmp_path, content):
    """A byte order mark, padding, quotes, line ends, truth words, blank lines and odd other columns do no harm."""
    losses = read_losses(text(tmp_path / "x.csv", content))
    np.testing.assert_array_equal(losses.member, [0.1, 0.2])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "loss,member\n0.1,1\n0.2\n0.3,1\n",
            "must have 2 fields in each row, got 1 in row 3, the header being row 1",
        ),
        ("loss,member\n0.1,1\n0.2,0\n0,3,1\n", "must have 2 fields in each row, got 3 in row 4"),
        (
            "loss,member\n0.1,1\n0.2,0\nlow,1\n",
            r"'loss' of .*x.csv' must .* numbers, got 'low' \(first at row 4, ",
        ),
        ('loss,member\n"0,1",1\n0.2,0\n', r"must hold numbers, got '0,1' \(first at row 2,.*decimal point"),
        ("loss,member\n0.1,1\ntrue,0\n", r"column 'loss' .* must hold numbers, got 'true'"),
        ("loss,member\n0.1,1\n1_0,0\n", r"column 'loss' .* must hold numbers, got '1_0'"),
        (
            "loss,member\n0.1,1\n,0\nNA,0\n",
            r"'loss' .* got 2 NaN or blank \(first at row 3, the header being",
        ),
        (
            "loss,member\n0.1,yes\n0.2,no\n",
            r"'member' .* got 'yes' \(first at row 2.*; code members as 1 and",
        ),
        ('loss,member,t\n0.1,1,"abc\n0.2,0,b\n', "x.csv' must close every quotation mark, got 1 of them"),
        ("loss;member\n0.1;1\n", r"'loss' is not in .*, which has 'loss;member'.*separated by commas"),
        ("0.1,1\n0.2,0\n", r"'loss' is not in .*, which has '0.1', '1'"),
        ("loss,member,loss\n0.1,1,2\n", "has 2 columns named 'loss'; give each its own name"),
        ("\n\n", "column 'loss' is not in .*, which has no columns"),
        ("loss,member\n0.1,1\n".encode("utf-16"), "x.csv' is not UTF-8 text"),
    ],
)
def test_bad_csv_files_are_refused_in_one_sentence(tmp_path, content, words):
    """The sentence names the file, the column, the row as an editor shows it, what is no table in UTF-8, and the fix."""
    with refused(words):
        read_losses(text(tmp_path / "x.csv", content))


def test_tabulators_and_compressed_text_are_read_as_the_csv_is(tmp_path):
    """The same losses from .csv, .tsv, .csv.gz and .tsv.gz; a compressed file that breaks off is one sentence."""
    rows = "loss,member,id\n" + "".join(f"{place / 8},{place % 2},a{place}\n" for place in range(40))
    expected = read_losses(text(tmp_path / "x.csv", rows))
    for suffix, content in ((".tsv", rows.replace(",", "\t")), (".csv", rows)):
        plain, packed = tmp_path / f"y{suffix}", tmp_path / f"y{suffix}.gz"
        text(plain, content)
        packed.write_bytes(gzip.compress(content.encode()))
        for path in (plain, packed):
            found = read_losses(path)
            np.testing.assert_array_equal(found.member, expected.member)
            assert found.id.nonmember.tolist() == expected.id.nonmember.tolist()
        packed.write_bytes(packed.read_bytes()[:-12])
        with refused(f"y{suffix}.gz' is not a whole {suffix}.gz file"):
            read_losses(packed)


def test_a_blank_line_in_a_file_of_losses_alone_is_a_missing_loss(tmp_path):
    """With one column a blank line looks like a blank value, so it is not dropped."""
    whole = text(tmp_path / "a.csv", "loss\n0.1\n0.2\n")
    with refused(r"column 'loss' of .*b.csv' .* got 1 NaN or blank \(first at row 3"):
        read_loss_pair(whole, text(tmp_path / "b.csv", "loss\n0.1\n\n0.2\n"))


# --- Parquet and NumPy archives ---------------------------------------------------------------------


def test_parquet_types_are_kept_or_read_as_numbers(tmp_path):
    """Small floats, categories, decimals and integer ids are read for what they are."""
    table = pa.table(
        {
            "loss": pa.array([0.5, 0.25, 1.5, 2.0], pa.float32()),
            "member": pa.array([True, False, True, False]),
            "group": pa.array(["a", None, "b", "b"]).dictionary_encode(),
            "id": pa.array([2**63 - 1, 11, 12, 13]),
        }
    )
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    losses = read_losses(tmp_path / "x.parquet")
    np.testing.assert_array_equal(losses.member, [0.5, 1.5])
    assert [list(part) for part in losses.group] == [["a", "b"], ["", "b"]]
    assert losses.id.member.tolist() == [2**63 - 1, 12]


WHEN = np.array([1, 2], "datetime64[s]")
NO_TEXT = np.frombuffer(np.array([1, 2, 0x7FFFFFFF, 4], np.uint32).tobytes(), "U1")


@pytest.mark.parametrize(
    ("kind", "columns", "words"),
    [
        (".parquet", {"loss": [0.5, None], "member": [1, 0]}, r"got 1 NaN or blank \(first at row 1"),
        (".parquet", {"loss": ["a", "b"], "member": [1, 0]}, r"numbers, got 'a' \(first at row 0"),
        (".parquet", {"loss": WHEN, "member": [1, 0]}, "numbers, got values of type datetime64"),
        (".parquet", {"loss": [[0.1], [0.2]], "member": [1, 0]}, "'loss' of .* numbers or text, got arrays"),
        (".npz", {"loss": [1j, 2j], "member": [1, 0]}, "'loss' of .* numbers, got values of type complex128"),
        (".npz", {"loss": FOUR, "member": [1, 0]}, "one row for each record: 'loss' has 4, 'member' has 2"),
        (".npz", {"loss": FOUR, "member": [1, 0, 1, 0], "id": NO_TEXT}, "x.npz' is not a whole .npz file"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(tmp_path, kind, columns, words):
    """Gaps, words, dates, lists, tables, columns of other lengths and characters that are none are named with their place."""
    with refused(words):
        read_losses(write(tmp_path / f"x{kind}", columns))
    gc.collect()  # a file that was left open would be complained of here


def test_an_archive_whose_entries_are_no_arrays_is_refused(tmp_path):
    """A zip of something else under the name .npz is found out when its entry is read."""
    arrays = [("loss.npy", content) for content in (b"garbage", b"", b"\x93NUMPY\x09\x00")]
    for name, content in (*arrays, ("loss", b"0.1")):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr(name, content)
            archive.writestr("member.npy", content)
        with refused(r"x.npz' must be a whole NumPy array|'loss' is not in"):
            read_losses(tmp_path / "x.npz")


# --- Pairs of files --------------------------------------------------------------------------------


def test_a_label_column_in_only_one_of_two_files_is_left_out_and_said(tmp_path):
    """Ids of one group alone cannot be used; the history says so."""
    first = text(tmp_path / "a.csv", "loss,id\n0.1,x\n0.2,y\n")
    second = text(tmp_path / "b.csv", "loss\n0.9\n0.7\n")
    losses = read_loss_pair(first, second)
    assert losses.id is None
    assert losses.history[-1] == "left out, because only one of the files has it: id"
    with refused(r"'key' is not in .*b.csv', which has 'loss'. Name the column of ids"):
        read_loss_pair(text(tmp_path / "a.csv", "loss,key\n0.1,x\n0.2,y\n"), second, id_column="key")


@pytest.mark.parametrize(
    ("inside", "outside", "words"),
    [
        ("100", "000", r"'member' of .*a.csv' must be 1 in every row .*, got 0 \(first at row 3.*; 2 such"),
        ("111", "100", r"'member' of .*b.csv' must be 0 in every row .*, got 1 \(first at row 2.*; 1 such"),
        ("000", "111", r"'member' of .*a.csv' must be 1 in every row .*, got 0 \(first at row 2.*; 3 such"),
        (["1", "anna", "1"], "000", "'member' of .*a.csv' must .* at row 3, "),
        (["1", "", "1"], "000", "'member' of .*a.csv' must .* at row 3, "),
        ("112", "000", "'member' of .*a.csv' must .* at row 4, "),
    ],
)
def test_a_file_of_one_group_that_marks_the_other_is_refused(tmp_path, inside, outside, words):
    """A mixed or swapped membership column in either of two files points to the single table, whatever its name."""
    for name, others in (("member", {}), ("in", {"member_column": "in"})):
        first, second = (
            write(tmp_path / f"{file}.csv", {"loss": [0.1, 0.2, 0.3], name: list(marks)})
            for file, marks in (("a", inside), ("b", outside))
        )
        with refused(f"^column {words.replace('member', name, 1)}.*; give one table that holds both groups"):
            read_loss_pair(first, second, **others)
        assert read_loss_pair(first, second, member_column=None).n_member == 3
    assert read_loss_pair(first, second).n_member == 3  # the default name may be absent
    with refused("'out' is not in .* Name the column of membership"):
        read_loss_pair(first, second, member_column="out")


# --- Folders, Arrow and tables in memory ------------------------------------------------------------


def test_a_table_in_memory_has_no_name():
    """The history and the refusals speak of the table."""
    (step,) = read_losses(COLUMNS).history
    assert step == "column 'loss' of a table in memory, membership from column 'member'"
    with refused(r"^column 'score' is not in the table, which has 'loss', "):
        read_losses(COLUMNS, loss_column="score")


# --- What `collect_to` wrote ------------------------------------------------------------------------


@pytest.fixture
def collected(tmp_path):
    """Losses collected in memory and into a file, by a model that is sure of some records."""
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame(
            {"x": rng.normal(size=n), "y": rng.integers(0, 2, n), "id": [f"{n}-{row}" for row in range(n)]}
        )
        for n in (60, 40)
    ]

    def model(table):
        p = 1 / (1 + np.exp(-table["x"].to_numpy()))
        return np.where(np.abs(table["x"]) > 1.5, np.round(p), p)

    inside, outside = (RecordTable(table, label="y") for table in tables)
    collect_to(tmp_path / "losses.parquet", model, members=inside, nonmembers=outside, batch_size=7)
    pairs = [(table[["x"]], table["y"]) for table in tables]
    ids = tuple(table["id"] for table in tables)
    in_memory = collect(model, members=pairs[0], nonmembers=pairs[1], ids=ids)
    return in_memory, tmp_path / "losses.parquet"


def test_collected_losses_read_back_are_those_of_memory(collected):
    """Scale, saturation, history, classes and fingerprints come from the file, as if it had been done in memory."""
    in_memory, path = collected
    table = open_table(path)
    found = read_losses(path)
    for field in dataclasses.fields(found):
        if field.name != "history":
            one, other = (getattr(losses, field.name) for losses in (found, in_memory))
            assert str(one) == str(other), field.name
            np.testing.assert_equal(one, other)
    path.rename(path.with_suffix(".gone"))  # what it says of itself was read when it was opened
    assert read_losses(table).history == found.history
    assert sum(found.saturated) > 0
    assert found.scale is LossScale.LOG_ODDS
    assert found.history[: len(in_memory.history)] == in_memory.history


def test_another_column_of_a_collected_file_has_another_scale(collected):
    """A score that stands beside the losses does not claim to be what they are, nor do losses turned round."""
    _, path = collected
    table = parquet.read_table(path)
    parquet.write_table(table.append_column("min_20_percent", table["loss"]), path)
    other = read_losses(path, loss_column="min_20_percent")
    assert (other.scale, other.saturated) == (LossScale.UNKNOWN, (0, 0))
    assert other.history == ("column 'min_20_percent' of losses.parquet, membership from column 'member'",)
    assert other.fingerprint is not None
    turned = read_losses(path, higher_is_member=True)
    assert turned.scale is LossScale.UNKNOWN
    assert "negated" in turned.history[-1]


def test_damaged_fingerprints_of_a_collected_file_are_refused(collected):
    """Hashes that were turned into floats on the way have lost digits."""
    _, path = collected
    table = parquet.read_table(path)
    place = table.column_names.index("fingerprint")
    hashes = pa.array(table["fingerprint"].to_numpy().astype(float))
    parquet.write_table(table.set_column(place, "fingerprint", hashes), path)
    with refused(r"column 'fingerprint' of .* must hold whole numbers of 64 bits, got float64"):
        read_losses(path)
