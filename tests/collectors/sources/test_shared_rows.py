"""Records that both groups hold are found, counted and named."""

import numpy as np
import pandas as pd
import pytest

from auditor import Classification, InputError, SquaredError
from auditor.collectors.record_table import RecordTable
from auditor.collectors.records import Records
from auditor.collectors.shared_rows import SharedRows
from auditor.collectors.sources import Batch, open_groups


def seen(first, second, *, step=7, task=None, **names):
    """What is said of two frames, told in stretches."""
    tables = (RecordTable(frame, label="y", **names) for frame in (first, second))
    sources = open_groups(
        **dict(zip(("members", "nonmembers"), tables, strict=True)), task=task or Classification()
    )
    shared = SharedRows(sources)
    for source in sources:
        for start in range(0, len(source), step):
            shared.add(source.read(start, start + step))
    return shared


def frame(rows, *, shift=0.0):
    """Records of which no two are alike."""
    rng = np.random.default_rng(rows)
    return pd.DataFrame({"x": rng.normal(size=rows) + shift, "k": np.arange(rows), "y": np.arange(rows) % 2})


def test_groups_without_a_record_in_common_are_silent():
    """Nothing is said where there is nothing."""
    assert seen(frame(40), frame(30, shift=9)).finish() == []


@pytest.mark.parametrize("step", [1, 7, 100])
def test_few_equal_records_are_a_warning_with_counts_and_rows(step):
    """Two of thirty non-members, one of them twice among the members: both sides are counted, the first pair named."""
    inside, outside = frame(40), frame(30, shift=9)
    outside.loc[[11, 20]] = inside.loc[[33, 5]].to_numpy()
    inside.loc[2] = inside.loc[33]
    (warning,) = seen(inside, outside.astype({"k": int}), step=step).finish()
    assert warning == (
        "there are 2 non-member and 3 member records (6.67% of the smaller group) that are equal to one of the other group"
        " in features and label (first row 11 of nonmember and row 2 of member, counting from 0): natural twins, or an"
        " overlap of the groups."
    )


def test_many_equal_records_are_refused_unless_allowed():
    """More than a tenth of the smaller group is an overlap; allowed, it is a warning."""
    inside, outside = frame(100), frame(20, shift=9)
    outside.loc[[3, 4]] = inside.loc[[50, 51]].to_numpy()
    shared = seen(inside, outside)
    assert len(shared.finish()) == 1  # exactly a tenth
    outside.loc[5] = inside.loc[52].to_numpy()
    shared = seen(inside, outside)
    with pytest.raises(
        InputError,
        match=r"got 3 non-member and 3 member .*15%.*row 3 of nonmember and row 50 of member, counting from 0\); take them"
        r" out of one group, or allow it with allow_shared_rows=True \(--allow-shared-rows\)\.$",
    ):
        shared.finish()
    (warning,) = shared.finish(allow=True)
    assert warning.startswith("there are 3 non-member and 3 member records (15%")


def test_equal_features_with_another_label_are_not_the_same_record():
    """A training record is not seen again with another answer."""
    inside = frame(20)
    assert seen(inside, inside.assign(y=1 - inside["y"])).finish() == []
    with pytest.raises(InputError, match="got 20 non-member and 20 member records"):
        seen(inside, inside.copy()).finish()


@pytest.mark.parametrize("values", [(1, 1.0), ("a", "a"), (True, 1)])
def test_labels_are_compared_by_value(values):
    """The same label in another type is the same."""
    inside = frame(5).assign(y=values[0])
    with pytest.raises(InputError, match="5 non-member and 5 member"):
        seen(inside, inside.assign(y=values[1])).finish()


def test_labels_of_regressions_count_too():
    """Numbers to predict are part of a record."""
    inside = frame(20).assign(y=np.linspace(0, 1, 20))
    assert seen(inside, inside.assign(y=inside["y"] + 1e-9), task=SquaredError()).finish() == []
    with pytest.raises(InputError, match="20 non-member and 20 member"):
        seen(inside, inside.copy(), task=SquaredError()).finish()


@pytest.mark.parametrize(
    ("ids", "others", "first"),
    [
        (["a", "b", "c"], ["d", "c", "e"], "'c', row 1 of nonmember and row 2"),
        ([1, 2, 3], [4, 2, 5], "2, row 1 of nonmember and row 1"),
        ([1, 2, 3], ["4", " 3", "x"], "' 3', row 1 of nonmember and row 2"),
        (["7", "8", "x"], [6.0, 8.0, np.nan], "8.0, row 1 of nonmember and row 1"),
        ([0.5, 1.5, 2.5], ["1.5", "a", "b"], "'1.5', row 0 of nonmember and row 1"),
        ([10**17, 2, 3], [str(10**17), "5", "6"], f"'{10**17}', row 0 of nonmember and row 0"),
    ],
)
def test_an_id_in_both_groups_is_refused_with_id_and_rows(ids, others, first):
    """Ids are compared by what they say, whatever the type that holds them."""
    inside, outside = frame(3).assign(id=ids), frame(3, shift=9).assign(id=others)
    outside["x"] = [100.0, 200.0, 300.0]
    with pytest.raises(
        InputError,
        match=rf"^members and non-members must have different ids, got 1 id\(s\) in both groups \(first {first} of member, counting from"
        r" 0\); take .* read no ids \(id=None\).*, or allow it",
    ):
        seen(inside, outside).finish()
    (warning,) = seen(inside, outside).finish(allow=True)
    assert first in warning
    assert seen(inside, outside, id=None, features=["x"]).finish() == []


def test_other_ids_are_not_the_same():
    """Leading zeros, signs, cases and blanks keep ids apart, and a missing id is none."""
    ids = ["007", "a", "+8", "", None, "-0"]
    others = ["7", "A", "8", "", None, "0"]
    found = seen(frame(6).assign(id=ids), frame(6).assign(id=others, x=np.arange(6) + 50.0))
    assert found.finish() == []


def test_ids_match_a_slow_comparison():
    """Random ids of both groups give the counts that sets give."""
    rng = np.random.default_rng(3)
    ids = [rng.integers(0, 400, 300).astype(str).astype(object) for _ in range(2)]
    both = set(ids[0]) & set(ids[1])
    shared = SharedRows()
    for column, member in zip(ids, (True, False), strict=True):
        records = Records("x", None, np.zeros(300))
        shared.add(Batch(records, np.full(300, member), {"id": column}, None))
    (warning,) = shared.finish(allow=True)
    assert f"there are {len(both)} id(s) in both groups (first in two rows, " in warning


def test_one_table_of_both_groups_is_looked_through_too():
    """Rows are those of the table, of which each group has some."""
    inside = frame(30)
    table = pd.concat([inside, inside.iloc[[4]]]).assign(member=[1, 0] * 15 + [0])
    assert table["member"].iloc[4] == 1
    (source,) = open_groups(records=RecordTable(table, label="y"), task=Classification())
    shared = SharedRows((source,))
    for start in range(0, 31, 8):
        shared.add(source.read(start, start + 8))
    (warning,) = shared.finish()
    assert "there are 1 non-member and 1 member records" in warning
    assert "(first row 30 of records and row 4 of records, counting from 0)" in warning


def test_records_that_cannot_be_hashed_are_not_compared():
    """Without fingerprints and ids there is nothing to say."""
    batch = Batch(Records("x", [[1], [2]], np.zeros(2)), np.array([True, False]), {}, None)
    shared = SharedRows()
    shared.add(batch)
    assert shared.finish() == []
