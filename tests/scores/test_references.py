"""References: shapes, and records matched by id or by row."""

import numpy as np

from auditor.core import Losses
from auditor.scores import References, difficulty


def test_difficulty_is_the_loss_minus_the_mean():
    """Three models, by hand: the mean of 1, 2, 6 is 3."""
    losses = Losses(member=[4.0, 1.0], nonmember=[5.0, 0.0])
    reference = References(
        member=[[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]], nonmember=[[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0]]
    )
    by_mean = difficulty(reference)(losses)
    np.testing.assert_allclose(by_mean.member, [1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(by_mean.nonmember, [4.0, 0.0])
    assert "mean loss of 3 reference model(s)" in by_mean.history[-1]
    assert "trained on neither group" in by_mean.history[-1]


def test_records_are_matched_by_id(rng):
    """With ids on both sides the order and surplus of the reference rows do not matter, nor the type of the ids."""
    losses = Losses(
        member=rng.normal(size=5), nonmember=rng.normal(size=4), id=(np.arange(5), np.arange(5, 9))
    )
    own, other = rng.permutation(8), np.arange(4, 12)
    reference = References(member=own + 0.5, nonmember=other + 0.5, id=(own.astype(float), other.astype(str)))
    aligned = reference.aligned(losses)
    np.testing.assert_allclose(aligned.member.ravel(), np.arange(5) + 0.5)
    np.testing.assert_allclose(aligned.nonmember.ravel(), np.arange(5, 9) + 0.5)


def test_take_keeps_rows_and_ids_together():
    """take() of a part, then matching by id, gives the same as matching the whole."""
    reference = References(
        member=[1.0, 2.0, 3.0], nonmember=[4.0, 5.0, 6.0], id=(["a", "b", "c"], ["d", "e", "f"])
    )
    losses = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0], id=(["c", "a"], ["f", "e"]))
    part = reference.take(type(losses.id)(np.array([0, 2]), np.array([False, True, True])))
    for one, other in zip(part.aligned(losses), reference.aligned(losses), strict=True):
        assert np.array_equal(one, other)
