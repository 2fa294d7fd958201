"""Two tables, or one with a column of membership, become the sources of both groups."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from auditor import Classification, InputError
from auditor.collectors.streaming import collect
from auditor.collectors.tables import RecordTable, open_groups

FRAME = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5], "y": [0, 1, 0, 1]})


def pair(first, second, **names):
    """The sources of two tables."""
    tables = (RecordTable(data, label="y", **names) for data in (first, second))
    return open_groups(**dict(zip(("members", "nonmembers"), tables, strict=True)), task=Classification())


def saved(path, frame):
    """A frame in a file of the kind its name says."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    return path


KINDS = [".csv", ".parquet", ".npz"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_tables_are_members_and_non_members(tmp_path, kind):
    """Each file is one group, called by its path in error sentences."""
    files = saved(tmp_path / f"in{kind}", FRAME[:3]), saved(tmp_path / f"out{kind}", FRAME[3:])
    sources = pair(*files)
    assert [len(source) for source in sources] == [3, 1]
    assert [source.read(0, 9).member.tolist() for source in sources] == [[True] * 3, [False]]
    assert [source.name for source in sources] == [f"file {str(file)!r}" for file in files]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["member", "in training"])
def test_one_table_with_a_column_of_membership(tmp_path, kind, name):
    """The marks split the table row for row, and their column is no feature."""
    file = saved(tmp_path / f"x{kind}", FRAME.assign(**{name: [1, 0, 0, 1]}))
    (source,) = open_groups(records=RecordTable(file, label="y", member=name), task=Classification())
    assert source.roles.features == ("a", "b")
    assert source.read(0, 4).member.tolist() == [True, False, False, True]
    assert source.read(2, 4).member.tolist() == [False, True]


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([True, False, True, False], None),
        ([1.0, 0.0, 1.0, 0.0], None),
        (["true", "False", "1", "0"], None),
        (
            [1, 0, 2, 0],
            r"must hold only 0 \(non-member\) and 1 \(member\), got 2 \(first at row 2, counting from 0",
        ),
        ([1, 0, None, 0], r"must hold only 0 .* got nan \(first at row 2"),
        (["yes", "no", "yes", "no"], r"must hold numbers, got 'yes' \(first at row 1"),
    ],
)
def test_marks_of_membership_are_checked_with_their_row(marks, words):
    """Truths, floats and text of 0 and 1 are marks, anything else is named with its row in the table."""
    records = RecordTable(FRAME.assign(member=marks), label="y")
    (source,) = open_groups(records=records, task=Classification())
    if words is None:
        assert source.read(1, 4).member.tolist() == [False, True, False]
        return
    if "yes" in marks:
        words = words.replace("'yes'", "'no'")
    with pytest.raises(InputError, match=f"^column 'member' of records {words}.*; code members as 1"):
        source.read(1, 4)


def test_one_table_needs_its_column_of_membership():
    """A missing column is named with the nearest, and with the other way to say it."""
    for member in ("member", None):
        records = RecordTable(FRAME.assign(Members=1), label="y", member=member)
        with pytest.raises(
            InputError,
            match=r"^column 'member' is not in records, .* 'Members'\? Name .*or give members and non-members",
        ):
            open_groups(records=records, task=Classification())


def test_a_table_of_one_group_that_marks_the_other_is_refused():
    """As with losses, a column of membership in one of two tables must agree with it."""
    inside, outside = FRAME.assign(member=[1, 1, 0, 1]), FRAME.assign(member=0)
    first, second = pair(inside, outside)
    assert first.roles.features == second.roles.features == ("a", "b")
    assert not second.read(0, 4).member.any()
    with pytest.raises(
        InputError,
        match=r"^column 'member' of member must be 1 in every row of a table of members, got 0 .*row 2",
    ):
        first.read(1, 4)
    assert pair(inside, outside, member=None)[0].roles.features == ("a", "b", "member")


def test_features_are_matched_by_name():
    """The second table's columns come in the order of the first."""
    first, second = pair(FRAME, FRAME[["y", "b", "a"]] + 1)
    assert list(second.read(0, 2).records.features.columns) == ["a", "b"]
    assert list(first.kinds) == list(second.kinds)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (FRAME.drop(columns="b"), "nonmember must have the same features as member, got no 'b'; take"),
        (FRAME.assign(c=1), "member must have the same features as nonmember, got no 'c'; take"),
        (
            FRAME.assign(b="x"),
            "column 'b' must hold the same in both tables, got numbers in member and text in",
        ),
        (
            FRAME.assign(b=pd.Timestamp(0)),
            "column 'b' must hold the same .* got numbers in member and times in nonmem",
        ),
    ],
)
def test_features_that_differ_are_named(other, words):
    """A column that only one table has, or that holds something else, is one sentence."""
    with pytest.raises(InputError, match=f"^{words}"):
        pair(FRAME, other)


def test_a_column_without_any_value_agrees_with_everything():
    """What is missing in every row of one table may be anything in the other."""
    first, _ = pair(FRAME.assign(b=None), FRAME.assign(b="x"))
    assert list(first.kinds) == ["a", "b"]


def test_the_same_table_twice_is_refused(tmp_path):
    """A table compared with itself would read as no leakage, by whatever names it goes."""
    file = saved(tmp_path / "x.csv", FRAME)
    (tmp_path / "y.csv").symlink_to(file)
    for other in (file, str(file), tmp_path / "y.csv"):
        with pytest.raises(
            InputError, match=r"^members and nonmembers must be different tables, got '.*x.csv' twice"
        ):
            pair(file, other)
    with pytest.raises(InputError, match=r"different tables, got the same object twice"):
        pair(FRAME, FRAME)


@pytest.mark.parametrize("names", [(), ("members",), ("nonmembers",), ("members", "nonmembers", "records")])
def test_either_two_tables_or_one(names):
    """Neither, half or both is refused."""
    with pytest.raises(InputError, match=r"^give either members and nonmembers, or records"):
        open_groups(**{name: RecordTable(FRAME.copy()) for name in names}, task=None)


def test_tables_give_the_losses_of_frames_in_memory(tmp_path):
    """Scored stretch by stretch, a table of two groups gives what `collect` gives for the frame."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "y": rng.integers(0, 2, 60), "member": np.arange(60) % 2})
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "x.parquet", row_group_size=7)
    (source,) = open_groups(records=RecordTable(tmp_path / "x.parquet", label="y"), task=Classification())

    def logit(table):
        return 1 / (1 + np.exp(-table["a"].to_numpy()))

    parts = [source.read(start, start + 11) for start in range(0, 60, 11)]
    losses = collect(
        logit,
        members=(
            pd.concat([part.records.features[part.member] for part in parts]),
            np.concatenate([part.records.labels[part.member] for part in parts]),
        ),
        nonmembers=(frame[["a"]][frame["member"] == 0], frame["y"][frame["member"] == 0]),
    )
    inside = frame[frame["member"] == 1]
    p = np.where(inside["y"] == 1, logit(inside), 1 - logit(inside))
    np.testing.assert_allclose(losses.member, -np.log(p / (1 - p)), rtol=1e-12)
    fingerprints = np.concatenate([part.fingerprint[part.member] for part in parts])
    np.testing.assert_array_equal(losses.fingerprint.member, fingerprints)
