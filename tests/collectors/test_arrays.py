"""Columns become losses."""

import numpy as np
import pytest

from auditor import InputError, LossScale
from auditor.collectors import from_columns

LOSS = [0.1, 0.9, 0.2, 0.7]


@pytest.mark.parametrize("dtype", [int, float, bool, np.int8, np.float32])
def test_membership_of_any_numeric_type_splits_the_column(dtype):
    """Integer, float and boolean membership give the same two groups, in the order of the column."""
    losses = from_columns(LOSS, member=np.array([1, 0, 1, 0], dtype=dtype))
    np.testing.assert_array_equal(losses.member, [0.1, 0.2])
    np.testing.assert_array_equal(losses.nonmember, [0.9, 0.7])


def test_labels_are_split_with_their_losses():
    """Ids, groups and persons stay beside their losses and keep their type."""
    losses = from_columns(
        LOSS, member=[1, 0, 1, 0], id=["01", "02", "03", "04"], group=list("abab"), person=[7, 8, 7, 9]
    )
    assert [list(part) for part in losses.id] == [["01", "03"], ["02", "04"]]
    assert [list(part) for part in losses.group] == [["a", "a"], ["b", "b"]]
    assert [list(part) for part in losses.person] == [[7, 7], [8, 9]]


def test_higher_is_member_negates_and_says_so():
    """A score that grows with membership is negated, and the history records it."""
    losses = from_columns(LOSS, member=[1, 0, 1, 0], higher_is_member=True)
    np.testing.assert_array_equal(losses.member, [-0.1, -0.2])
    assert "negated" in losses.history[-1]


def test_scale_and_history_are_kept():
    """What the caller knows about the loss travels with it."""
    losses = from_columns(LOSS, member=[1, 0, 1, 0], scale="cross-entropy", history=["from a notebook"])
    assert losses.scale is LossScale.CROSS_ENTROPY
    assert losses.history == ("from a notebook",)


def test_the_caller_s_array_is_not_frozen():
    """Losses hold their own copy: the column that was passed in stays writable."""
    column = np.array(LOSS)
    losses = from_columns(column, member=[1, 0, 1, 0])
    column[0] = 5.0
    assert column[0] == 5.0
    assert losses.member[0] == LOSS[0]


def test_a_mask_that_hides_nothing_is_no_obstacle():
    """A masked array without masked values is an ordinary column."""
    losses = from_columns(np.ma.masked_array(LOSS, mask=False), member=[1, 0, 1, 0])
    np.testing.assert_array_equal(losses.member, [0.1, 0.2])


def test_large_losses_make_no_noise():
    """Finite losses whose sum overflows are losses, without a warning."""
    top = np.finfo(float).max
    np.testing.assert_array_equal(from_columns([top, 0, top, 1], member=[1, 0, 1, 0]).member, [top, top])


@pytest.mark.parametrize(
    ("loss", "kwargs", "sentence"),
    [
        (LOSS, {"member": [1, 0, 1]}, "same length: loss has 4, member has 3"),
        (LOSS, {"member": [1, 0, 1, 0], "id": [1, 2]}, "same length: loss has 4, member has 4, id has 2"),
        (
            LOSS,
            {"member": [1, 0, 2, 0]},
            r"only 0 \(non-member\) and 1 \(member\), got 2 .*row 2, counting from 0",
        ),
        (LOSS, {"member": [1, 0, np.nan, 0]}, r"got nan .*first at row 2, counting from 0"),
        (LOSS, {"member": ["yes", "no", "yes", "no"]}, "member column must hold only 0 and 1"),
        (LOSS, {"member": [[1, 0, 1, 0]]}, r"member column must be one-dimensional, got shape \(1, 4\)"),
        (LOSS, {"member": [0, 0, 0, 0]}, r"mark both groups, got 4 records and no member \(value 1\)"),
        (LOSS, {"member": [1, 1, 1, 1]}, r"mark both groups, got 4 records and no non-member \(value 0\)"),
        (LOSS, {"member": [1, 0, 0, 0]}, "member losses need at least 2 records, got 1"),
        ([0.1], {"member": [1]}, "got 1 records and no non-member"),
        ([], {"member": []}, "the loss column is empty"),
        (
            [0.1, np.nan, 0.3, np.nan],
            {"member": [1, 0, 1, 0]},
            r"finite losses, got 2 NaN or blank \(first at row 1,",
        ),
        (
            [0.1, 0.2, 0.3, -np.inf],
            {"member": [1, 0, 1, 0]},
            r"finite losses, got 1 infinite \(first at row 3,",
        ),
        (
            np.ma.masked_array(LOSS, mask=[0, 1, 0, 1]),
            {"member": [1, 0, 1, 0]},
            r"the loss column must have no masked values, got 2 \(first at row 1, counting from 0\)",
        ),
        (
            LOSS,
            {"member": np.ma.masked_array([1, 0, 1, 0], mask=[0, 0, 1, 0])},
            "the member column must have no masked values, got 1",
        ),
        (
            [[1], [1, 2]],
            {"member": [1, 0]},
            "the loss column must be one-dimensional, got rows of different len",
        ),
        (LOSS, {"member": [1, 0, 1, 0], "id": 5}, r"the id column must be one-dimensional, got shape \(\)"),
        (LOSS, {"member": [[1], [1, 2]]}, "the member column must be one-dimensional, got rows of different"),
        (None, {"member": [1, 0]}, r"the loss column must be one-dimensional, got shape \(\)"),
        (
            [np.inf, -np.inf, 0.1, 0.2],
            {"member": [1, 0, 1, 0]},
            r"finite losses, got 2 infinite \(first at row 0,",
        ),
        (
            np.array([np.finfo(np.longdouble).max, 1, 2, 3]),
            {"member": [1, 0, 1, 0]},
            r"finite losses, got 1 infinite \(first at row 0,",
        ),
        (LOSS, {"member": [1, 0, 2, 0]}, "code members as 1 and non-members as 0"),
        (LOSS, {"member": ["yes", "no", "yes", "no"]}, "code members as 1 and non-members as 0"),
        (LOSS, {"member": [1, 1, 1, 1]}, "code members as 1 and non-members as 0"),
        (["a", "b"], {"member": [1, 0]}, "loss column must hold numbers, got an array of type <U1"),
        ([[0.1, 0.2]], {"member": [1, 0]}, r"one-dimensional, got shape \(1, 2\)"),
    ],
)
def test_bad_columns_are_refused_in_one_sentence(loss, kwargs, sentence):
    """Each bad column is named with the value, the place and the fix."""
    with pytest.raises(InputError, match=sentence):
        from_columns(loss, **kwargs)
