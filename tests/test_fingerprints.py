"""Equal content has equal fingerprints, different content different ones."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from command_line import printed
from hypothesis import given, settings, strategies as st
from scipy import sparse

from auditor.records import Features, fingerprints


def equal(member, nonmember):
    """Which rows of two tables have equal fingerprints."""
    found = fingerprints(Features(member, nonmember))
    return (found.member == found.nonmember).tolist()


ROWS = np.array([[0.0, 1.5, 0.0], [2.0, -0.0, np.nan], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [
        ([1, 2, 0], [1.0, 2.0, -0.0]),
        ([True, False], np.array([1, 0], dtype=np.int8)),
        (np.float32([0.5, 2]), [0.5, 2.0]),
        (np.array([1, "a", None], dtype=object), pd.Series([1.0, "a", np.nan], dtype=object)),
        (ROWS, sparse.csr_matrix(ROWS)),
        (sparse.csc_array(ROWS), pd.DataFrame(ROWS).set_axis(["column 0", "column 1", "column 2"], axis=1)),
        (pd.DataFrame({"c": pd.Categorical(["x", None])}), pd.DataFrame({"c": ["x", None]})),
        (pd.DataFrame({"c": pd.array([1, None], dtype="Int64")}), pd.DataFrame({"c": [1.0, np.nan]})),
        (pd.DataFrame({"c": pd.array([1, 2], dtype="Int64")}), pd.DataFrame({"c": [1, 2]})),
        (pd.DataFrame({"c": ["x", "y"]}, dtype="string"), {"c": np.array(["x", "y"])}),
        (np.array([2**60 + 1, -5]), np.array([2**60 + 1, -5], dtype=object)),
        (np.array([2**63], dtype=np.uint64), np.array([2.0**63])),
        (np.array([10**40, 10**400], dtype=object), np.array([10**40, 10**400], dtype=object)),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), np.array(["2020-01-01"], dtype="datetime64[ns]")),
        (np.arange(8).reshape(2, 2, 2), np.arange(8.0).reshape(2, 4)),
    ],
)
def test_the_same_content_in_other_types_has_the_same_fingerprint(member, nonmember):
    """Numbers are compared by value and missing values are equal, whatever holds them."""
    assert all(equal(member, nonmember))


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [
        ([1], ["1"]),
        (["a"], ["a "]),
        ([[1, 2]], [[2, 1]]),
        ([[0, 1]], [[1, 0]]),
        ([0], [np.nan]),
        (np.array([2**60]), np.array([2**60 + 1])),
        (np.array([10**40], dtype=object), np.array([10**40 + 1], dtype=object)),
        (["b'x'"], [b"x"]),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), np.array(["NaT"], dtype="datetime64[D]")),
        (
            np.array([dt.date(2020, 1, 1)], dtype=object),
            np.array([dt.date(2020, 1, 2)], dtype=object),
        ),
    ],
)
def test_other_content_has_another_fingerprint(member, nonmember):
    """Text is no number, order matters, missing is not 0, and integers beyond 2^53 are distinguished."""
    assert equal(member, nonmember) == [False]


CELLS = st.one_of(st.integers(-3, 3), st.floats(-2, 2), st.sampled_from(["", "a", "1", None, True, 2**60]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=8))
def test_fingerprints_are_equal_exactly_where_rows_are(rows):
    """Against the slow obvious comparison: Python's own equality of the tuples."""
    frame = pd.DataFrame({"a": [row[0] for row in rows], "b": [row[1] for row in rows]}, dtype=object)
    found = fingerprints(Features(frame, frame)).member
    expected = [[one == other for other in rows] for one in rows]
    assert (found[:, None] == found).tolist() == expected


WIDE = np.random.default_rng(0).integers(-4, 5, size=(200, 80)) / 4
WIDE[3, 7], WIDE[5, 30], WIDE[100, 0] = (
    np.nan,
    -0.0,
    2**60,
)  # of which one row is not exact in single precision
WIDE[9, 1] = 1 / 3


@pytest.mark.parametrize(
    "other",
    [
        np.asfortranarray(WIDE),
        pd.DataFrame(WIDE),
        pd.DataFrame(WIDE).astype(object),
        pd.DataFrame(WIDE, dtype="Float64"),
        np.longdouble(WIDE),
        WIDE.reshape(200, 5, 16),
    ],
    ids=["by column", "frame", "objects", "nullable", "long double", "images"],
)
def test_many_columns_have_the_same_fingerprints_in_any_form(other):
    """The bytes of a row are hashed in a form that depends on the values alone, whatever holds them."""
    if isinstance(other, pd.DataFrame):
        other = other.set_axis([f"column {place}" for place in range(80)], axis=1)
    assert all(equal(WIDE, other))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int16, np.uint8, bool])
def test_narrow_types_of_many_columns_are_equal_to_doubles(dtype):
    """Rows of small numbers are equal in every type that holds them."""
    rows = np.random.default_rng(1).integers(0, 2, size=(5000, 70))
    rows[4000:] *= 0 if dtype is bool else 1
    assert all(equal(rows.astype(dtype), rows.astype(np.float64)))


def test_many_columns_are_different_exactly_where_rows_are():
    """Against NumPy's own comparison of the rows: of doubles, and of the same rows in single precision with one bit changed."""
    rows = np.random.default_rng(2).integers(0, 2, size=(400, 70)).astype(np.float64)
    rows[:, 4:] = 0
    rows[::7, 20] = np.nextafter(1.0, 2)
    found = fingerprints(Features(rows, rows[:1])).member
    assert (found[:, None] == found).tolist() == (rows[:, None] == rows).all(axis=2).tolist()
    single = np.float32(rows)
    single[0, 3] = np.nextafter(np.float32(1), np.float32(2))
    assert equal(single, np.float32(rows))[0] is False


def test_tables_without_columns_or_rows_have_fingerprints():
    """Records without features are all equal, and no records have none."""
    empty = pd.DataFrame(index=range(3))
    assert all(equal(empty, empty))
    assert equal(WIDE[:0], WIDE[:0]) == []


def test_structured_contents_do_not_collide():
    """250,000 different rows of small integers, where a weak hash of sums would collide, all differ."""
    grid = np.stack(np.meshgrid(*[np.arange(-6, 6)] * 5), axis=-1).reshape(-1, 5)
    assert np.unique(fingerprints(Features(grid, grid[:1])).member).size == grid.shape[0] == 12**5


def test_bits_are_spread_evenly():
    """Each of the 64 bits is set in half of the hashes of consecutive numbers."""
    hashes = fingerprints(Features(np.arange(1, 20_001), [0])).member
    share = ((hashes[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).mean(axis=0)
    assert np.abs(share - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)


def test_the_hash_is_the_same_in_every_process():
    """Two processes with different hash seeds agree, so fingerprints of different runs can be compared."""
    code = (
        "from auditor.records.features import Features; from auditor.records.features import fingerprints;"
        "print(fingerprints(Features([['x', 1.5, None]], [['y', 2, 3]])))"
    )
    assert len({printed(code, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1
