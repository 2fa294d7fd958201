"""Two tables, or one with a column of membership, become the sources of both groups."""

import pandas as pd
import pytest
from collectors.common import KINDS, refused, write

from auditor import Classification
from auditor.collectors.tables import RecordTable, open_groups

FRAME = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5], "y": [0, 1, 0, 1]})


def pair(first, second, **names):
    """The sources of two tables."""
    tables = (RecordTable(data, label="y", **names) for data in (first, second))
    return open_groups(**dict(zip(("members", "nonmembers"), tables, strict=True)), task=Classification())


@pytest.mark.parametrize("kind", KINDS)
def test_two_tables_are_members_and_non_members(tmp_path, kind):
    """Each file is one group, called by its path in error sentences."""
    files = write(tmp_path / f"in{kind}", FRAME[:3]), write(tmp_path / f"out{kind}", FRAME[3:])
    sources = pair(*files)
    assert [source.read(0, 9).member.tolist() for source in sources] == [[True] * 3, [False]]
    assert [source.name for source in sources] == [f"file {str(file)!r}" for file in files]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("member", [1, 0, 0, 1]),
        ("in training", [True, False, False, True]),
        ("member", [1.0, 0.0, 0.0, 1.0]),
        ("member", ["true", "False", "0", "1"]),
    ],
)
def test_one_table_with_a_column_of_membership(tmp_path, kind, name, marks):
    """Numbers, truths and text of 0 and 1 split the table row for row, and their column is no feature."""
    file = write(tmp_path / f"x{kind}", {**FRAME.to_dict("list"), name: marks})
    (source,) = open_groups(records=RecordTable(file, label="y", member=name), task=Classification())
    assert source.roles.features == ("a", "b")
    assert source.read(0, 4).member.tolist() == [True, False, False, True]
    assert source.read(2, 4).member.tolist() == [False, True]


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([1, 0, 2, 0], r"must hold only 0 .* and 1 \(member\), got 2 \(first at row 2, counting from 0"),
        ([1, 0, None, 0], r"must hold only 0 .* got nan \(first at row 2"),
        (["yes", "no", "yes", "no"], r"must hold numbers, got 'no' \(first at row 1"),
    ],
)
def test_marks_of_membership_are_checked_with_their_row(marks, words):
    """An invalid mark is named with its row in the table, wherever it is read from."""
    (source,) = open_groups(records=RecordTable(FRAME.assign(member=marks), label="y"), task=Classification())
    with refused(f"^column 'member' of records {words}.*; code members as 1"):
        source.read(1, 4)


def test_one_table_needs_its_column_of_membership():
    """A missing column is named with the nearest, and with the other way to say it."""
    for member in ("member", None):
        records = RecordTable(FRAME.assign(Members=1), label="y", member=member)
        with refused(r"^column 'member' is not in records, .*or give members and non-members"):
            open_groups(records=records, task=Classification())


def test_a_table_of_one_group_that_marks_the_other_is_refused():
    """As with losses, a column of membership in one of two tables must agree with it."""
    inside, outside = FRAME.assign(member=[1, 1, 0, 1]), FRAME.assign(member=0)
    first, second = pair(inside, outside)
    assert first.roles.features == second.roles.features == ("a", "b")
    assert not second.read(0, 4).member.any()
    with refused(r"^column 'member' of member must be 1 in every row .*, got 0 .*row 2"):
        first.read(1, 4)
    assert pair(inside, outside, member=None)[0].roles.features == ("a", "b", "member")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (FRAME.drop(columns="b"), "nonmember must have the same features as member, got no 'b'; take"),
        (FRAME.assign(c=1), "member must have the same features as nonmember, got no 'c'; take"),
        (FRAME.assign(b="x"), "column 'b' must hold the same in .*, got numbers in member and text in"),
        (FRAME.assign(b=pd.Timestamp(0)), "column 'b' .* got numbers in member and times in nonmem"),
    ],
)
def test_features_are_matched_by_name(other, words):
    """Another order does no harm; a column that only one table has, or that holds something else, is one sentence."""
    first, second = pair(FRAME, FRAME[["y", "b", "a"]] + 1)
    assert list(second.read(0, 2).records.features.columns) == list(first.kinds) == ["a", "b"]
    with refused(f"^{words}"):
        pair(FRAME, other)
    pair(FRAME.assign(b=None), FRAME.assign(b="x"))  # a column without any value agrees with everything


def test_the_same_table_twice_is_refused(tmp_path):
    """A table compared with itself would read as no leakage, by whatever names it goes."""
    file = write(tmp_path / "x.csv", FRAME)
    (tmp_path / "y.csv").symlink_to(file)
    for other in (file, str(file), tmp_path / "y.csv"):
        with refused(r"^members and nonmembers must be different tables, got '.*x.csv' twice"):
            pair(file, other)
    with refused(r"different tables, got the same object twice"):
        pair(FRAME, FRAME)
    for names in ((), ("members",), ("members", "nonmembers", "records")):
        with refused(r"^give either members and nonmembers, or records"):
            open_groups(**{name: RecordTable(FRAME.copy()) for name in names}, task=None)
