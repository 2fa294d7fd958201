"""Columns become losses."""

import numpy as np
import pytest
from collectors.common import refused

from auditor import LossScale
from auditor.collectors import from_columns

LOSS, BOTH = [0.1, 0.9, 0.2, 0.7], [1, 0, 1, 0]


@pytest.mark.parametrize("dtype", [int, float, bool, np.int8, np.float32])
def test_membership_of_any_numeric_type_splits_the_column(dtype):
    """Integer, float and boolean membership give the same two groups, in the order of the column."""
    losses = from_columns(LOSS, member=np.array([1, 0, 1, 0], dtype=dtype))
    np.testing.assert_array_equal(losses.member, [0.1, 0.2])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])


def test_what_the_caller_knows_travels_with_the_losses():
    """A score that grows with membership is negated, which the history records after the caller's own steps."""
    losses = from_columns(LOSS, member=BOTH, scale="cross-entropy", history=["from a notebook"])
    assert losses.scale is LossScale.CROSS_ENTROPY
    assert losses.history == ("from a notebook",)
    losses = from_columns(np.ma.masked_array(LOSS, mask=False), member=BOTH, higher_is_member=True)
    np.testing.assert_array_equal(losses.member, [-0.1, -0.2])
    assert "negated" in losses.history[-1]


def test_the_caller_s_array_is_not_frozen():
    """Losses hold their own copy: the column that was passed in stays writable."""
    column = np.array(LOSS)
    losses = from_columns(column, member=[1, 0, 1, 0])
    column[0] = 5.0
    assert column[0] == 5.0
    assert losses.member[0] == LOSS[0]


def test_large_losses_make_no_noise():
    """Finite losses whose sum overflows are losses, without a warning."""
    top = np.finfo(float).max
    np.testing.assert_array_equal(from_columns([top, 0, top, 1], member=[1, 0, 1, 0]).member, [top, top])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"member": [1, 0, 1]}, "same length: loss has 4, member has 3"),
        ({"member": [1, 0, 2, 0]}, r"only 0 .* and 1 .*, got 2 .*row 2, .*; code members as 1"),
        (
            {"member": ["yes", "no", "yes", "no"]},
            "member column must hold numbers, got 'yes'.*; code members as 1",
        ),
        ({"member": [[1, 0, 1, 0]]}, "member column must be one-dimensional"),
        ({"member": [0, 0, 0, 0]}, r"4 records and no member \(1\)"),
        ({"member": np.ma.masked_array(BOTH, mask=[0, 0, 1, 0])}, "member column must have no masked"),
        ({"member": [1, 0, 0, 0]}, "member losses need at least 2 records, got 1"),
        ({"loss": None}, "loss column must be one-dimensional"),
        ({"loss": [[1], [1, 2]]}, "loss column must hold rows of equal length, got rows of different len"),
        ({"loss": list("abcd")}, "loss column must hold numbers"),
        ({"loss": [0.1, np.nan, 0.3, np.nan]}, r"got 2 NaN or blank \(first at row 1,"),
        ({"loss": [np.inf, -np.inf, 0.1, 0.2]}, r"got 2 infinite \(first at row 0,"),
        ({"loss": np.array([np.finfo(np.longdouble).max, 1, 2, 3])}, r"got 1 infinite \(first at row 0,"),
        ({"loss": np.ma.masked_array(LOSS, mask=BOTH)}, r"no masked values, got 2 \(first at row 0,"),
        ({"loss": [], "member": []}, "the loss column is empty"),
        ({"id": [1, 2]}, "same length: loss has 4, member has 4, id has 2"),
        ({"id": 5}, "id column must be one-dimensional"),
    ],
)
def test_bad_columns_are_refused_in_one_sentence(changed, words):
    """The column is named with the value, the place and the fix."""
    columns = {"loss": LOSS, "member": BOTH, **changed}
    with refused(words):
        from_columns(columns.pop("loss"), **columns)
