"""Loss files of every kind, whole and broken."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, ipc, parquet

from auditor import InputError, LossScale
from auditor.collectors import RecordTable, collect, collect_to, read_loss_pair, read_losses
from auditor.collectors.tables import readable

COLUMNS = {
    "loss": [0.1, 0.9, 1 / 3, 0.7],
    "member": [1, 0, 1, 0],
    "id": ["007", "8", "009", "10"],
    "group": ["a", "b", "b", "a"],
    "person": ["p", "q", "p", "r"],
    "unused": ["text, with comma", "x", 'quote "', "two\nlines"],
}


def write(path, columns):
    """Write columns to a file of the kind its name says."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    elif path.suffix == ".npz":
        np.savez(path, **{name: np.asarray(column) for name, column in columns.items()})
    elif path.suffix in {".arrow", ".feather"}:
        table = pa.table(columns)
        with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(str(path), table.schema) as out:
            out.write_table(table, max_chunksize=3)
    else:
        pd.DataFrame(columns).to_csv(path, index=False)
    return path


def text(path, content):
    """Write text to a CSV file."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


KINDS = [".csv", ".parquet", ".npz", ".arrow", ".feather"]


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_round_trips(tmp_path, kind):
    """Losses come back bit for bit and text ids keep their leading zeros, from every kind of file."""
    losses = read_losses(write(tmp_path / f"losses{kind}", COLUMNS))
    np.testing.assert_array_equal(losses.member, [0.1, 1 / 3])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])
    assert [list(part) for part in losses.id] == [["007", "009"], ["8", "10"]]
    assert [list(part) for part in losses.group] == [["a", "b"], ["b", "a"]]
    assert [list(part) for part in losses.person] == [["p", "p"], ["q", "r"]]


@pytest.mark.parametrize("kind", KINDS)
def test_two_files_round_trip(tmp_path, kind):
    """One file for each group gives the same losses and labels as one file with membership."""
    parts = [
        write(tmp_path / f"{side}{kind}", {name: column[start::2] for name, column in COLUMNS.items()})
        for side, start in (("in", 0), ("out", 1))
    ]
    losses = read_loss_pair(*parts)
    np.testing.assert_array_equal(losses.member, [0.1, 1 / 3])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])
    assert [list(part) for part in losses.id] == [["007", "009"], ["8", "10"]]


@pytest.mark.parametrize("kind", KINDS)
def test_history_names_the_file_without_its_folder(tmp_path, kind):
    """The report may leave the house, so the history holds the file name and not the path."""
    (step,) = read_losses(write(tmp_path / f"losses{kind}", COLUMNS)).history
    assert f"losses{kind}" in step
    assert str(tmp_path) not in step


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_with_spaces_and_accents_works(tmp_path, kind):
    """Non-ASCII names with spaces are read, given as a string or as a path."""
    path = write(tmp_path / f"pertes d'été 损失{kind}", COLUMNS)
    assert read_losses(str(path)).n_member == read_losses(path).n_member == 2


@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_have_any_name(tmp_path, kind):
    """Named columns are used, and higher_is_member negates them."""
    path = write(
        tmp_path / f"x{kind}", {"score": [0.1, 0.9, 0.2], "in": [False, True, True], "n": [False] * 3}
    )
    with pytest.raises(InputError, match="at least 2 records, got 1"):
        read_losses(path, loss_column="score", member_column="in", higher_is_member=True)
    path = write(tmp_path / f"y{kind}", {"score": [0.1, 0.9, 0.2, 0.0], "in": [False, True, True, False]})
    losses = read_losses(path, loss_column="score", member_column="in", higher_is_member=True)
    np.testing.assert_array_equal(losses.member, [-0.9, -0.2])
    assert "negated" in losses.history[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_optional_columns_are_optional_under_their_default_name_only(tmp_path, kind):
    """A missing default label column is no error, a missing named one is, and None reads none."""
    path = write(tmp_path / f"x{kind}", {name: COLUMNS[name] for name in ("loss", "member", "id")})
    assert read_losses(path).group is None
    assert read_losses(path, id_column=None).id is None
    with pytest.raises(
        InputError,
        match=r"column 'grp' is not in .*, which has 'loss', 'member', 'id'\. Name the column of slices",
    ):
        read_losses(path, group_column="grp")


@pytest.mark.parametrize("kind", KINDS)
def test_a_misspelt_column_lists_what_exists_and_the_nearest(tmp_path, kind):
    """The sentence names the file, its columns and the likely one, whatever its case."""
    path = write(tmp_path / f"x{kind}", {"Losses": [0.1, 0.2], "member": [1, 0]})
    with pytest.raises(
        InputError,
        match=rf"^column 'loss' is not in file '.*x{kind}', which has 'Losses', 'member'; did you mean 'Losses'\?"
        r" Name the column of losses if it is called otherwise\.$",
    ):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_membership_column_points_to_the_pair_reader(tmp_path, kind):
    """Someone with one file for each group is told what to do, in words that fit Python and the command line."""
    path = write(tmp_path / f"x{kind}", {"loss": [0.1, 0.2]})
    with pytest.raises(
        InputError, match=r"'member' is not in .*, which has 'loss'.*give the two files as members and"
    ):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("value", "word"), [(np.nan, "2 NaN or blank"), (np.inf, "2 infinite")])
def test_losses_that_are_not_finite_are_counted_and_placed_in_the_file(tmp_path, kind, value, word):
    """The row is the row of the file, not of the group, and the sentence says how it is counted."""
    path = write(tmp_path / f"x{kind}", {"loss": [0.1, 0.2, 0.3, value, value], "member": [1, 0, 1, 0, 1]})
    with pytest.raises(
        InputError, match=rf"column 'loss' of .*x{kind}' .*got {word} \(first at row 3, counting from 0"
    ):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("member", "sentence"), [([1, 0, 7, 0], "got 7"), ([1.0, 0.0, np.nan, 0.0], "got nan")]
)
def test_membership_other_than_0_and_1_is_refused(tmp_path, kind, member, sentence):
    """The column, the file, the value and the row are named."""
    path = write(tmp_path / f"x{kind}", {"loss": [0.1, 0.2, 0.3, 0.4], "member": member})
    with pytest.raises(
        InputError,
        match=rf"column 'member' of .*x{kind}' (\(rows below the header\) )?must hold only 0 .*{sentence}.*row 2",
    ):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("value", "missing"), [(0, r"no member \(1\)"), (1, r"no non-member \(0\)")])
def test_a_file_with_one_group_is_refused(tmp_path, kind, value, missing):
    """The sentence says which group is missing and what to do."""
    path = write(tmp_path / f"x{kind}", {"loss": [0.1, 0.2], "member": [value, value]})
    fix = "code members as 1 and non-members as 0, or give the two files as members and non-members instead"
    with pytest.raises(InputError, match=f"got 2 records and {missing}; {fix}"):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_rows_is_refused(tmp_path, kind):
    """A header alone is not an audit."""
    with pytest.raises(InputError, match=r"column 'loss' of .* is empty"):
        read_losses(write(tmp_path / f"x{kind}", {"loss": np.array([], float), "member": np.array([], int)}))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_empty_directory_and_foreign_files_are_refused(tmp_path, kind):
    """Each gives one sentence with the name of the file and the fix."""
    with pytest.raises(InputError, match=rf"gone{kind}' does not exist"):
        read_losses(tmp_path / f"gone{kind}")
    with pytest.raises(InputError, match=rf"x{kind}' cannot be read: File name too long"):
        read_losses(tmp_path / f"{'x' * 5000}{kind}")
    (tmp_path / f"empty{kind}").touch()
    with pytest.raises(InputError, match=f"empty{kind}' is empty"):
        read_losses(tmp_path / f"empty{kind}")
    (tmp_path / f"folder{kind}").mkdir()
    with pytest.raises(InputError, match=f"folder{kind}' is a directory"):
        read_losses(tmp_path / f"folder{kind}")
    noise = np.random.default_rng(0).bytes(5000)
    with pytest.raises(InputError, match=rf"noise{kind}' is not .*(again|name it)"):
        read_losses(text(tmp_path / f"noise{kind}", noise))


@pytest.mark.parametrize("kind", [".parquet", ".npz"])
def test_truncated_and_mislabelled_files_are_refused(tmp_path, kind):
    """A binary file cut short anywhere, or text under its name, is one sentence."""
    whole = write(
        tmp_path / f"whole{kind}", {"loss": np.arange(4000.0), "member": np.arange(4000) % 2}
    ).read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 3):
        with pytest.raises(InputError, match=rf"cut{kind}' is not a whole {kind} "):
            read_losses(text(tmp_path / f"cut{kind}", whole[:cut]))
    with pytest.raises(InputError, match=rf"text{kind}' is not a whole {kind} "):
        read_losses(text(tmp_path / f"text{kind}", "loss,member\n0.1,1\n"))


@pytest.mark.parametrize("kind", [".parquet", ".npz"])
def test_a_file_damaged_inside_a_column_is_refused(tmp_path, kind):
    """Bytes flipped within the data are noticed when the column is read."""
    rng = np.random.default_rng(0)
    columns = {"loss": rng.normal(size=4000), "member": np.arange(4000) % 2}
    path = tmp_path / f"x{kind}"
    if kind == ".npz":
        np.savez_compressed(path, **columns)
    else:
        parquet.write_table(pa.table(columns), path, compression="zstd", write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[300:900] = bytes(600)
    with pytest.raises(InputError, match=rf"x{kind}' is not a whole {kind} "):
        read_losses(text(path, bytes(content)))


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    """The reason of the operating system is passed on."""
    path = text(tmp_path / "x.csv", "loss,member\n")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"x.csv' cannot be read: Permission denied; check its permissions"):
        read_losses(path)


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_no_reader_can_open_are_one_sentence(tmp_path, kind):
    """Bytes that are no UTF-8, NUL characters and names too long are each named for what they are."""
    with pytest.raises(InputError, match=r"\\udcff.* must have a name in UTF-8; rename it or its folder\.$"):
        read_losses(os.fsdecode(os.fsencode(tmp_path) + b"/\xff" + kind.encode()))
    for name in (f"a\0b{kind}", f"a{kind}\0"):
        with pytest.raises(InputError, match=r"\\x00.* must have a name without NUL characters"):
            read_losses(tmp_path / name)
    with pytest.raises(InputError, match=r"read: File name too long; check the name and the folder\.$"):
        read_losses(tmp_path / f"{'x' * 300}{kind}")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=rf"x{kind}' does not exist; check the name and the folder"):
        read_losses(tmp_path / "file" / f"x{kind}")


def test_bytes_that_are_no_text_in_a_parquet_file_are_one_sentence(tmp_path):
    """A string column whose bytes are no UTF-8 is a damaged file, not an error of Arrow."""
    columns = {
        "loss": [0.1, 0.2, 0.3, 0.4],
        "member": [1, 0, 1, 0],
        "id": ["wxyz0", "wxyz1", "wxyz2", "wxyz3"],
    }
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
    text(path, path.read_bytes().replace(b"wxyz", b"\xff\xfe\xfd\xfc"))
    with pytest.raises(InputError, match=r"x.parquet' is not a whole .parquet file \(.*\); write it again"):
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
    with pytest.raises(InputError, match=r"x.npz' is not a whole .npz file \(.*encrypted"):
        read_losses(text(path, bytes(content)))


@pytest.mark.parametrize("error", [RuntimeError("a\nb\x1b."), RecursionError(), AssertionError("a b?")])
def test_whatever_a_reader_raises_is_one_printable_sentence(error):
    """No type of exception escapes from a damaged file, and its words stay on one line."""

    def read():
        with readable(Path("x.npz")):
            raise error

    with pytest.raises(
        InputError, match=r"^file 'x.npz' is not a whole .npz file \((a b\?|RecursionError)\); "
    ) as got:
        read()
    assert got.value.__cause__ is error


def test_a_file_that_claims_to_be_larger_than_memory_is_one_sentence():
    """An array that cannot be allocated is told from a file that is cut short."""

    def read():
        with readable(Path("x.npz")):
            raise MemoryError("Unable to allocate 8 EiB")

    with pytest.raises(
        InputError, match=r"^file 'x.npz' does not fit in memory \(Unable to allocate 8 EiB\); "
    ):
        read()


def test_a_missing_package_is_not_called_a_damaged_file():
    """An import that fails while a file is read stays what it is."""

    def read():
        with readable(Path("x.npz")):
            raise ImportError("no pyarrow")

    with pytest.raises(ImportError, match="no pyarrow"):
        read()


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".npz"])
def test_flipped_bytes_never_escape(tmp_path, kind):
    """A file with any few bytes changed is read or refused in one sentence, without a warning."""
    rng = np.random.default_rng(0)
    columns = {
        "loss": rng.normal(size=20),
        "member": np.arange(20) % 2,
        "id": [f"r{row}" for row in range(20)],
    }
    path = write(tmp_path / f"x{kind}", columns)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    read, sentences = 0, []
    for _ in range(150):
        content = whole.copy()
        content[rng.integers(content.size, size=3)] = rng.integers(256, size=3)
        try:
            read_losses(text(path, content.tobytes()))
            read += 1
        except InputError as error:
            sentences.append(str(error))
    assert read + len(sentences) == 150
    assert sentences
    assert not any("\n" in sentence for sentence in sentences)


def test_extreme_columns_make_no_noise(tmp_path):
    """Infinities of both signs and numbers beyond the doubles are refused without a warning."""
    path = text(tmp_path / "x.csv", "loss,member\ninf,1\n-inf,0\n1,1\n2,0\n")
    with pytest.raises(InputError, match=r"got 2 infinite \(first at row 0"):
        read_losses(path)
    wide = np.array([1, 2, np.finfo(np.longdouble).max, 4])
    with pytest.raises(InputError, match=r"got 1 infinite \(first at row 2"):
        read_losses(write(tmp_path / "x.npz", {"loss": wide, "member": [1, 0, 1, 0]}))


def test_characters_that_are_none_in_an_npz_are_one_sentence(tmp_path):
    """Text whose code points do not exist is damage."""
    bad = np.frombuffer(np.array([1, 2, 0x7FFFFFFF, 4], np.uint32).tobytes(), "U1")
    path = write(tmp_path / "x.npz", {"loss": [0.1, 0.2, 0.3, 0.4], "member": [1, 0, 1, 0], "id": bad})
    with pytest.raises(InputError, match=r"x.npz' is not a whole .npz file"):
        read_losses(path)


@pytest.mark.parametrize("name", [None, 5, ["loss"]])
@pytest.mark.parametrize("argument", ["loss_column", "member_column", "id_column"])
def test_a_column_name_that_is_no_string_is_refused(tmp_path, argument, name):
    """The argument and what it holds are named; None is a choice for the label columns only."""
    path = write(tmp_path / "x.csv", COLUMNS)
    if argument == "id_column" and name is None:
        assert read_losses(path, id_column=None).id is None
        return
    with pytest.raises(InputError, match=rf"^{argument} must be the name of a column, got "):
        read_losses(path, **{argument: name})
    if name is not None:
        with pytest.raises(InputError, match=rf"^{argument} must be the name of a column, got "):
            read_loss_pair(path, write(tmp_path / "y.csv", COLUMNS), **{argument: name})


@pytest.mark.parametrize("name", ["x.pkl", "x.pickle", "x.joblib", "x.npy", "x.PKL"])
def test_pickles_are_refused_by_name_before_they_are_touched(tmp_path, name):
    """The reason is given, whether or not the file exists."""
    with pytest.raises(
        InputError, match=r"is refused: .* files may be pickled.*save the columns as \.parquet"
    ):
        read_losses(tmp_path / name)


@pytest.mark.parametrize("name", ["x.txt", "x.csv.gz", "x", "x.xlsx"])
def test_unknown_kinds_list_the_known_ones(tmp_path, name):
    """The sentence holds the list of extensions."""
    with pytest.raises(InputError, match=r"must end in \.csv, \.parquet, \.npz, \.arrow, \.feather, got"):
        read_losses(tmp_path / name)


class Bomb:
    """An object whose unpickling creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_a_pickle_inside_an_npz_is_never_loaded(tmp_path):
    """Reading an object array is refused and runs nothing."""
    proof = tmp_path / "it ran"
    bomb = np.empty(2, dtype=object)
    bomb[:] = Bomb(proof)
    path = write(tmp_path / "x.npz", {"loss": [0.1, 0.2], "member": [1, 0], "id": bomb})
    with pytest.raises(InputError, match=r"array 'id' of .* is refused: it holds Python objects"):
        read_losses(path)
    with pytest.raises(InputError, match=r"array 'id' of .* is refused"):
        read_losses(path, loss_column="id", id_column=None)
    assert not proof.exists()
    pickle.loads(pickle.dumps(Bomb(proof)))  # noqa: S301  # the bomb does work
    assert proof.exists()


def test_a_pickle_named_npz_is_never_loaded(tmp_path):
    """A pickle under an accepted name is refused and runs nothing."""
    proof = tmp_path / "it ran"
    for kind in KINDS:
        with pytest.raises(InputError, match=r"is not"):
            read_losses(text(tmp_path / f"x{kind}", pickle.dumps(Bomb(proof))))
    assert not proof.exists()


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
    ("content", "sentence"),
    [
        (
            "loss,member\n0.1,1\n0.2\n0.3,1\n",
            "must have 2 fields in each row, got 1 in row 1, counting from 0 below the header",
        ),
        ("loss,member\n0.1,1\n0.2,0\n0,3,1\n", "must have 2 fields in each row, got 3 in row 2"),
        (
            "loss,member\n0.1,1\n0.2,0\nlow,1\n",
            r"column 'loss' of .*x.csv' must hold numbers, got 'low' \(first at row 2, counting from 0 below the header\)",
        ),
        ('loss,member\n"0,1",1\n0.2,0\n', r"must hold numbers, got '0,1' \(first at row 0,.*decimal point"),
        ("loss,member\n0.1,1\ntrue,0\n", r"column 'loss' .* must hold numbers, got 'true'"),
        ("loss,member\n0.1,1\n1_0,0\n", r"column 'loss' .* must hold numbers, got '1_0'"),
        (
            "loss,member\n0.1,1\n,0\nNA,0\n",
            r"column 'loss' .* got 2 NaN or blank \(first at row 1, counting from 0 below",
        ),
        ("loss,member\n0.1,1\n0.2,\n", r"column 'member' .* got nan .*first at row 1"),
        (
            "loss,member\n0.1,yes\n0.2,no\n",
            r"column 'member' .* must hold numbers, got 'yes' \(first at row 0.*; code members as 1 and non-members",
        ),
        ('loss,member,t\n0.1,1,"abc\n0.2,0,b\n', "x.csv' must close every quotation mark, got 1 of them"),
        ("loss;member\n0.1;1\n", r"'loss' is not in .*, which has 'loss;member'.*separated by commas"),
        ("0.1,1\n0.2,0\n", r"'loss' is not in .*, which has '0.1', '1'.*first line must hold the names"),
        ("loss,member,loss\n0.1,1,2\n", "has 2 columns named 'loss'; give each its own name"),
        ("loss,member\n", "column 'loss' of .* is empty"),
        ("\n\n", "column 'loss' is not in .*, which has no columns"),
        ("loss,member\n0.1,1\n".encode("utf-16"), "x.csv' is not UTF-8 text"),
    ],
)
def test_bad_csv_files_are_refused_in_one_sentence(tmp_path, content, sentence):
    """The sentence names the file, the column, the row below the header and the fix."""
    with pytest.raises(InputError, match=sentence):
        read_losses(text(tmp_path / "x.csv", content))


def test_a_bad_value_far_below_the_first_block_is_found(tmp_path):
    """Types are not guessed from the first rows: a word two megabytes down is named with its row."""
    rows = [f"{value:.8f},{value % 2}" for value in range(120_000)]
    rows[119_000] = "oops,0"
    with pytest.raises(InputError, match=r"got 'oops' \(first at row 119000,"):
        read_losses(text(tmp_path / "x.csv", "loss,member\n" + "\n".join(rows)))


def test_a_blank_line_in_a_file_of_losses_alone_is_a_missing_loss(tmp_path):
    """With one column a blank line cannot be told from a blank value, so it is not dropped."""
    whole, holed = (
        text(tmp_path / "a.csv", "loss\n0.1\n0.2\n"),
        text(tmp_path / "b.csv", "loss\n0.1\n\n0.2\n"),
    )
    with pytest.raises(InputError, match=r"column 'loss' of .*b.csv' .* got 1 NaN or blank \(first at row 1"):
        read_loss_pair(whole, holed)


# --- Parquet -------------------------------------------------------------------------------------


def test_parquet_types_are_kept_or_read_as_numbers(tmp_path):
    """Small floats, categories, decimals and integer ids are read for what they are."""
    table = pa.table(
        {
            "loss": pa.array([0.5, 0.25, 1.5, 2.0], pa.float32()),
            "member": pa.array([True, False, True, False]),
            "group": pa.array(["a", None, "b", "b"]).dictionary_encode(),
            "id": pa.array([10, 11, 12, 13]),
        }
    )
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    losses = read_losses(tmp_path / "x.parquet")
    np.testing.assert_array_equal(losses.member, [0.5, 1.5])
    assert [list(part) for part in losses.group] == [["a", "b"], ["", "b"]]
    assert losses.id.member.dtype.kind == "i"


def test_a_null_loss_in_parquet_is_a_missing_loss(tmp_path):
    """Arrow nulls are refused like NaN, with their row."""
    parquet.write_table(pa.table({"loss": [0.5, None, 1.5], "member": [1, 0, 1]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"got 1 NaN or blank \(first at row 1, counting from 0\)"):
        read_losses(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (
            ["a", "b"],
            r"column 'loss' of .*x.parquet' must hold numbers, got 'a' \(first at row 0, counting from 0\)",
        ),
        (
            np.array([1, 2], "datetime64[s]"),
            "column 'loss' of .* must hold numbers, got values of type datetime64",
        ),
        ([[0.1], [0.2]], "column 'loss' of .* must hold numbers"),
    ],
)
def test_a_parquet_column_that_is_no_number_is_refused(tmp_path, column, sentence):
    """Words, dates and lists are not losses."""
    parquet.write_table(pa.table({"loss": pa.array(column), "member": [1, 0]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=sentence):
        read_losses(tmp_path / "x.parquet")


# --- NumPy archives --------------------------------------------------------------------------------


def test_an_npz_of_two_loss_arrays_needs_no_membership(tmp_path):
    """The arrays member and nonmember are the losses of the two groups when there is no loss column."""
    losses = read_losses(write(tmp_path / "x.npz", {"member": [0.1, 0.2, 0.3], "nonmember": [0.9, 0.7]}))
    np.testing.assert_array_equal(losses.member, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])
    assert losses.history == ("arrays 'member' and 'nonmember' of x.npz",)


def test_an_npz_of_two_loss_arrays_is_checked(tmp_path):
    """The array with the bad value is named."""
    with pytest.raises(
        InputError, match=r"column 'nonmember' of .*x.npz' .* got 1 NaN or blank \(first at row 1"
    ):
        read_losses(write(tmp_path / "x.npz", {"member": [0.1, 0.2], "nonmember": [0.9, np.nan]}))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"loss": [[0.1], [0.2]], "member": [1, 0]},
            r"array 'loss' of .* one-dimensional, got shape \(2, 1\)",
        ),
        ({"loss": [0.1, 0.2, 0.3], "member": [1, 0]}, "same length: loss has 3, member has 2"),
        (
            {"loss": [1j, 2j], "member": [1, 0]},
            "column 'loss' of .* must hold numbers, got values of type complex128",
        ),
    ],
)
def test_npz_arrays_that_are_no_columns_are_refused(tmp_path, columns, sentence):
    """The array, the file and what is wrong are named."""
    with pytest.raises(InputError, match=sentence):
        read_losses(write(tmp_path / "x.npz", columns))


def test_an_archive_whose_entries_are_no_arrays_is_refused(tmp_path):
    """A zip of something else under the name .npz is found out when its entry is read."""
    for name, content in (("loss.npy", b"garbage"), ("loss.npy", b""), ("loss", b"0.1")):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr(name, content)
            archive.writestr("member.npy", content)
        with pytest.raises(InputError, match=r"x.npz' (must be a NumPy array|is not a whole .npz)"):
            read_losses(tmp_path / "x.npz")


def test_byte_strings_in_an_npz_become_text(tmp_path):
    """Ids saved as bytes are text, so that a report can show them."""
    columns = {
        "loss": [0.1, 0.2, 0.3, 0.4],
        "member": [1, 0, 1, 0],
        "id": np.array([b"01", b"02", b"03", b"04"]),
    }
    assert read_losses(write(tmp_path / "x.npz", columns)).id.member.tolist() == ["01", "03"]


# --- Pairs of files --------------------------------------------------------------------------------


def test_a_label_column_in_only_one_of_two_files_is_left_out_and_said(tmp_path):
    """Ids of one group alone cannot be used; the history says so."""
    first = text(tmp_path / "a.csv", "loss,id\n0.1,x\n0.2,y\n")
    second = text(tmp_path / "b.csv", "loss\n0.9\n0.7\n")
    losses = read_loss_pair(first, second)
    assert losses.id is None
    assert losses.history[-1] == "left out, because only one of the files has it: id"
    with pytest.raises(
        InputError, match=r"'key' is not in .*b.csv', which has 'loss'. Name the column of record"
    ):
        read_loss_pair(text(tmp_path / "a.csv", "loss,key\n0.1,x\n0.2,y\n"), second, id_column="key")


def test_two_files_may_be_of_different_kinds(tmp_path):
    """A CSV of members and an archive of non-members make one audit."""
    losses = read_loss_pair(
        text(tmp_path / "a.csv", "loss\n0.1\n0.2\n"), write(tmp_path / "b.npz", {"loss": [0.9, 0.7]})
    )
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_one_group_that_marks_the_other_is_refused(tmp_path, kind):
    """A mixed membership column in either of two files, whole or swapped, points to the single table."""
    ones, mixed, zeros = (
        write(tmp_path / f"{name}{kind}", {"loss": [0.1, 0.2, 0.3], "member": member})
        for name, member in (("ones", [1, 1, 1]), ("mixed", [1, 0, 0]), ("zeros", [0, 0, 0]))
    )
    assert read_loss_pair(ones, zeros).n_member == 3
    sentence = r"^column 'member' of '.*{}' must be {} in every row of a file of {}, got {} other values \(first {} at row"
    table = r".*; give one table that holds both groups and the membership column, instead of two files\.$"
    for first, second, words in (
        (mixed, zeros, (f"mixed{kind}", 1, "members", 2, "0")),
        (ones, mixed, (f"mixed{kind}", 0, "non-members", 1, "1")),
        (zeros, ones, (f"zeros{kind}", 1, "members", 3, "0")),
    ):
        with pytest.raises(InputError, match=sentence.format(*words) + table):
            read_loss_pair(first, second)
        assert read_loss_pair(first, second, member_column=None).n_member == 3


@pytest.mark.parametrize("member", ["anna", "", "2"])
def test_a_membership_column_of_something_else_in_two_files_is_refused(tmp_path, member):
    """Names, blanks and other numbers under the name of the membership column are no membership."""
    first = text(tmp_path / "a.csv", f"loss,member\n0.1,True\n0.2,{member}\n")
    second = text(tmp_path / "b.csv", "loss\n0.9\n0.7\n")
    with pytest.raises(
        InputError, match=r"^column 'member' of .*a.csv' must .* at row 1, .*; give one table that"
    ):
        read_loss_pair(first, second)


def test_a_named_membership_column_of_two_files_must_exist(tmp_path):
    """Another name than the default is looked for in both files; the default may be absent."""
    first = text(tmp_path / "a.csv", "loss,in\n0.1,1\n0.2,1\n")
    second = text(tmp_path / "b.csv", "loss\n0.9\n0.7\n")
    assert read_loss_pair(first, second).n_nonmember == 2
    with pytest.raises(InputError, match=r"'in' is not in .*b.csv', .* Name the column of membership"):
        read_loss_pair(first, second, member_column="in")
    other = text(tmp_path / "c.csv", "loss,in\n0.9,0\n0.7,1\n")
    with pytest.raises(InputError, match=r"column 'in' of .*c.csv' must be 0 in every row"):
        read_loss_pair(first, other, member_column="in")


def test_the_same_file_twice_is_refused(tmp_path):
    """A file compared with itself would read as no leakage."""
    path = text(tmp_path / "a.csv", "loss\n0.1\n0.2\n")
    with pytest.raises(InputError, match="member and non-member files must differ"):
        read_loss_pair(path, str(path))


@pytest.mark.parametrize("path", [None, 3, b"losses.csv"])
def test_a_path_that_is_no_path_is_refused(path):
    """Anything but a string or a path is named by its type."""
    with pytest.raises(InputError, match="path must be the name of a file, got"):
        read_losses(path)


# --- Folders, Arrow and tables in memory ------------------------------------------------------------


def test_a_folder_of_parts_is_one_table(tmp_path):
    """Parts are read in the order of their names, and a part of other columns is named."""
    for name, start in (("b", 2), ("a", 0)):
        part = {key: column[start : start + 2] for key, column in COLUMNS.items()}
        write(tmp_path / f"part-{name}.parquet", part)
    (tmp_path / "_SUCCESS").touch()
    losses = read_losses(tmp_path)
    np.testing.assert_array_equal(losses.member, [0.1, 1 / 3])
    assert [list(part) for part in losses.id] == [["007", "009"], ["8", "10"]]
    assert losses.history == (f"column 'loss' of {tmp_path.name}, membership from column 'member'",)
    write(tmp_path / "part-c.parquet", {"member": [1]})
    with pytest.raises(
        InputError, match=r"column 'loss' is not in file '.*part-c.parquet', .*Every part must have"
    ):
        read_losses(tmp_path)


TABLES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pytest.importorskip("polars").DataFrame(COLUMNS),
    "Arrow": lambda: pa.table(COLUMNS),
    "dataset": lambda: dataset.dataset(pa.table(COLUMNS)),
    "dictionary": lambda: COLUMNS,
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES.keys())
def test_tables_in_memory_are_read_like_files(made):
    """A frame of any library, an Arrow table, a dataset and a dictionary give the losses of the file."""
    losses = read_losses(made())
    np.testing.assert_array_equal(losses.member, [0.1, 1 / 3])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])
    assert [list(part) for part in losses.id] == [["007", "009"], ["8", "10"]]
    assert losses.history == ("column 'loss' of a table in memory, membership from column 'member'",)
    with pytest.raises(InputError, match=r"^column 'score' is not in the table, which has 'loss', "):
        read_losses(made(), loss_column="score")


def test_two_tables_in_memory_are_two_groups():
    """Each is a group, and the same object twice is refused."""
    first, second = pd.DataFrame({"loss": [0.1, 0.2]}), pa.table({"loss": [0.9, 0.7]})
    losses = read_loss_pair(first, second)
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])
    with pytest.raises(
        InputError, match=r"^member and non-member files must differ, got the same table twice"
    ):
        read_loss_pair(first, first)


def test_bad_cells_of_a_table_in_memory_are_named():
    """Missing losses, arrays for numbers and columns that are there twice are one sentence."""
    frame = pd.DataFrame({"loss": [0.1, None, 0.3], "member": [1, 0, 1]})
    with pytest.raises(
        InputError, match=r"^column 'loss' of the table must hold finite .* 1 NaN or blank .*row 1"
    ):
        read_losses(frame)
    with pytest.raises(
        InputError, match=r"^column 'loss' of the table must hold numbers or text, got arrays"
    ):
        read_losses(pa.table({"loss": [[0.1], [0.2]], "member": [1, 0]}))
    twice = pa.table([[0.1, 0.2], [0.3, 0.4], [1, 0]], names=["loss", "loss", "member"])
    with pytest.raises(InputError, match=r"^the table has 2 columns named 'loss'"):
        read_losses(twice)


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


def same(first, second):
    """Whether two sets of losses are the same in everything they hold."""
    for name in ("member", "nonmember"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("id", "group", "person", "label", "fingerprint"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert [part.tolist() for part in one] == [part.tolist() for part in other]
    assert (first.scale, first.saturated) == (second.scale, second.saturated)
    return True


def test_collected_losses_read_back_are_those_of_memory(collected):
    """Scale, saturation, history, classes and fingerprints come from the file, as if it had been done in memory."""
    in_memory, path = collected
    found = read_losses(path)
    assert same(found, in_memory)
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


def test_records_taken_out_of_a_collected_file_leave_its_scale(collected):
    """Counts of saturated records are of the whole and go; the scale stays."""
    _, path = collected
    parquet.write_table(parquet.read_table(path).slice(3), path)
    found = read_losses(path)
    assert found.n_member == 57
    assert (found.scale, found.saturated) == (LossScale.LOG_ODDS, (0, 0))


def test_damaged_fingerprints_of_a_collected_file_are_refused(collected):
    """Hashes that were turned into floats on the way have lost digits."""
    _, path = collected
    table = parquet.read_table(path)
    place = table.column_names.index("fingerprint")
    hashes = pa.array(table["fingerprint"].to_numpy().astype(float))
    parquet.write_table(table.set_column(place, "fingerprint", hashes), path)
    with pytest.raises(
        InputError, match=r"column 'fingerprint' of .* must hold whole numbers of 64 bits, got float64"
    ):
        read_losses(path)
