"""Completions of records: each value of the attribute in its columns."""

from auditor.sensitivity import Columns


def test_a_completion_overwrites_only_its_columns(rng):
    """Each value of the attribute is written into its columns of every record, on the last axis."""
    features = rng.normal(size=(4, 2, 5))
    kept = features.copy()
    records = Columns([3, 1], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).completed(features)
    assert records.shape == (4, 3, 2, 5)
    assert [set(records[:, value, :, 3].ravel()) for value in range(3)] == [{1.0}, {3.0}, {5.0}]
    assert [set(records[:, value, :, 1].ravel()) for value in range(3)] == [{2.0}, {4.0}, {6.0}]
    assert (records[..., [0, 2, 4]] == features[:, None][..., [0, 2, 4]]).all()
    assert (features == kept).all()
