"""Records that both groups hold are found, counted and named."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused

from auditor import Classification, SquaredError
from auditor.collectors.tables import RecordTable, SharedRows, open_groups


def seen(first, second, *, step=7, task=None, **names):
    """Notes about two frames that are counted in stretches."""
    tables = {
        group: RecordTable(frame, label="y", **names)
        for group, frame in (("members", first), ("nonmembers", second))
    }
    sources = open_groups(**tables, task=task or Classification())
    shared = SharedRows(sources)
    for source in sources:
        for start in range(0, len(source), step):
            shared.add(source.read(start, start + step))
    return shared


def frame(rows, *, shift=0.0):
    """Records of which no two are alike."""
    rng = np.random.default_rng(rows)
    return pd.DataFrame({"x": rng.normal(size=rows) + shift, "k": np.arange(rows), "y": np.arange(rows) % 2})


@pytest.mark.parametrize("step", [1, 7, 100])
def test_few_equal_records_are_a_warning_with_counts_and_rows(step):
    """Two of thirty non-members, one of them twice among the members: both sides are counted, the first pair named."""
    inside, outside = frame(40), frame(30, shift=9)
    outside.loc[[11, 20]] = inside.loc[[33, 5]].to_numpy()
    inside.loc[2] = inside.loc[33]
    (warning,) = seen(inside, outside.astype({"k": int}), step=step).finish()
    pair = 1 - Fraction(40 * 39, 70 * 69) - Fraction(30 * 29, 70 * 69)  # two records, not both in one group
    three = 1 - Fraction(40 * 39 * 38, 70 * 69 * 68) - Fraction(30 * 29 * 28, 70 * 69 * 68)
    assert round(float(pair + three), 1) == 1.2
    assert "2 non-member and 3 member records (6.67% of the smaller group)" in warning
    assert "first row 11 of nonmember and row 2 of member" in warning
    assert (
        "2 different contents where a random split of all records gives about 1.2: natural twins" in warning
    )


def test_more_equal_records_than_chance_gives_are_refused_unless_allowed():
    """Forty pairs, of which a random split parts about half, are an overlap; allowed, they are named as one."""
    inside, outside = frame(100), frame(100, shift=9)
    outside.loc[20:59] = inside.loc[20:59].to_numpy()
    shared = seen(inside, outside)
    expected = 40 * (1 - 2 * Fraction(100 * 99, 200 * 199))
    assert round(float(expected), 1) == 20.1
    with refused(
        r"40 non-member and 40 member .*40%.*gives about 20\.1, far more than natural twins explain"
    ):
        shared.finish()
    (warning,) = shared.finish(allow=True)
    assert "some records seem to be in both groups" in warning


def test_a_small_excess_is_named_and_not_refused():
    """Thirty pairs among two thousand records a side are no accident (2^-30), but only 0.75% of a group beyond chance."""
    inside, outside = frame(2000), frame(2000, shift=9)
    outside.loc[:29] = inside.loc[:29].to_numpy()
    (warning,) = seen(inside, outside, step=500).finish()
    assert "random split of all records gives about 15.0: more than natural" in warning


@pytest.mark.parametrize("kinds", [3, 40, 1500])
def test_twins_of_a_random_split_are_never_refused(kinds):
    """Records of few kinds, cut in two at random, share up to all of their contents and are only noted."""
    rng = np.random.default_rng(kinds)
    for _ in range(20):
        rows = pd.DataFrame({"x": rng.zipf(1.3, 1200) % kinds, "y": rng.integers(0, 2, 1200)})
        (warning,) = seen(rows.iloc[:800], rows.iloc[800:], step=1000).finish()
        contents = [set(map(tuple, part.to_numpy().tolist())) for part in (rows.iloc[:800], rows.iloc[800:])]
        assert f"and have {len(contents[0] & contents[1]):,} different contents" in warning


@pytest.mark.parametrize(
    ("one", "same", "other", "task"),
    [
        (np.arange(20) % 2, np.arange(20) % 2, 1 - np.arange(20) % 2, None),
        (1, 1.0, 2, None),
        ("a", "a", "b", None),
        (True, 1, 0, None),
        (np.linspace(0, 1, 20), np.linspace(0, 1, 20), np.linspace(0, 1, 20) + 1e-9, SquaredError()),
    ],
)
def test_the_label_is_part_of_a_record(one, same, other, task):
    """The same label in another type is the same; a training record is not seen again with another answer."""
    inside = frame(20).assign(y=one)
    assert seen(inside, inside.assign(y=other), task=task).finish() == []
    with refused("got 20 non-member and 20 member records"):
        seen(inside, inside.assign(y=same), task=task).finish()


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
    with refused(rf"^members and non-members must have different ids, got 1 .*first {first} of member"):
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
