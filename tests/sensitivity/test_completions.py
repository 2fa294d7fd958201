"""Completions are checked when they are built."""

import numpy as np

from auditor.sensitivity import Columns, Rewritten


def test_rows_overwrite_only_their_columns():
    """A completion knows the columns it writes and the values it writes there."""
    rows, written = Columns([3, 1], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).rows(5)
    assert written.tolist() == [False, True, False, True, False]
    assert rows[:, 3].tolist() == [1.0, 3.0, 5.0]
    assert rows[:, 1].tolist() == [2.0, 4.0, 6.0]


def test_one_hot_and_extremes():
    """A categorical attribute is one row for each category; extremes say that they are an assumption."""
    assert Columns.one_hot([0, 2]).rows(3)[0].tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    pair = Columns.extremes([0, 1], low=[0, 5], high=[1, 9])
    assert pair.values.tolist() == [[0.0, 5.0], [1.0, 9.0]]
    assert pair.extremes_only
    assert not Columns(0, [1, 2]).extremes_only


def test_a_rewriting_may_write_into_its_argument(rng):
    """A function that works in place gets its own copy for every value, and the records stay as they are."""
    features = rng.normal(size=(4, 3))
    kept, buffer = features.copy(), np.empty((4, 3))

    def in_place(batch, value):
        batch[:, 1] = value
        return batch

    def reused(batch, value):
        buffer[:] = batch
        buffer[:, 1] = value
        return buffer

    for complete in (in_place, reused):
        batches = Rewritten(complete, (0.0, 1.0, 3.0)).batches(features)
        assert [set(batch[:, 1]) for batch in batches] == [{0.0}, {1.0}, {3.0}]
        assert all((batch[:, [0, 2]] == kept[:, [0, 2]]).all() for batch in batches)
    assert (features == kept).all()
