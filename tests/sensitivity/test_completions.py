"""Completions are checked when they are built."""

import numpy as np

from auditor.sensitivity import Columns, Rewritten


def test_a_completion_overwrites_only_its_columns(rng):
    """Each value of the attribute is written into its columns of every record, on the last axis."""
    features = rng.normal(size=(4, 2, 5))
    batches = Columns([3, 1], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).batches(features)
    assert [set(batch[..., 3].ravel()) for batch in batches] == [{1.0}, {3.0}, {5.0}]
    assert [set(batch[..., 1].ravel()) for batch in batches] == [{2.0}, {4.0}, {6.0}]
    assert all((batch[..., [0, 2, 4]] == features[..., [0, 2, 4]]).all() for batch in batches)


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
