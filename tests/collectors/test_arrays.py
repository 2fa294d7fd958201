"""Columns become losses."""

import numpy as np
import pytest

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
