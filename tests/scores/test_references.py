"""References: shapes, and records matched by id or by row."""

import numpy as np
import pytest

from auditor.core import InputError, Losses
from auditor.scores import Mean, Median, Population, References, difficulty


def test_difficulty_is_the_loss_minus_the_mean_or_the_median():
    """Three models, by hand: mean of 1, 2, 6 is 3 and median 2."""
    losses = Losses(member=[4.0, 1.0], nonmember=[5.0, 0.0])
    reference = References(
        member=[[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]], nonmember=[[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0]]
    )
    by_mean = difficulty(reference, centre=Mean())(losses)
    by_median = difficulty(reference, centre=Median())(losses)
    np.testing.assert_allclose(by_mean.member, [1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(by_mean.nonmember, [4.0, 0.0])
    np.testing.assert_allclose(by_median.member, [2.0, 1.0])
    assert "median loss of 3 reference model(s)" in by_median.history[-1]
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


def test_references_cannot_change():
    """The arrays are read-only copies."""
    values = np.ones((2, 3))
    reference = References(member=values, nonmember=values)
    values[0, 0] = 5.0
    assert reference.member[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        reference.member[0, 0] = 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"member": [1.0, np.nan], "nonmember": [1.0]}, "reference member losses must be finite, got 1 NaN"),
        (
            {"member": [[1.0, 2.0], [1.0, np.inf]], "nonmember": [[1.0, 2.0]]},
            r"\(model 1\) losses must be finite.*row 1",
        ),
        ({"member": [[1.0, 2.0]], "nonmember": [1.0]}, "must come from the same models, got 2 and 1 columns"),
        (
            {"member": [], "nonmember": [1.0]},
            r"must have shape \(records,\) or \(records, models\), got \(0, 1\)",
        ),
        ({"member": np.ones((1, 1, 1)), "nonmember": [1.0]}, r"got \(1, 1, 1\)"),
        ({"member": [[1.0], [1.0, 2.0]], "nonmember": [1.0]}, "rows of different lengths"),
        ({"member": [1.0], "nonmember": [1.0], "id": ["a", "b", "c"]}, "reference id must be a pair"),
        ({"member": [1.0], "nonmember": [1.0], "id": (["a", "b"], ["c"])}, "same length"),
    ],
)
def test_bad_references_are_refused(arguments, message):
    """NaN, other numbers of models, empty or ragged tables and odd ids are refused in one sentence."""
    with pytest.raises(InputError, match=message):
        References(**arguments)


def test_records_without_references_are_refused():
    """Too few rows, an id without a reference loss, a blank id, and an id with two are refused."""
    losses = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0])
    with pytest.raises(InputError, match="member losses has 2, reference member losses has 3"):
        difficulty(References(member=[1.0] * 3, nonmember=[1.0] * 2))(losses)
    named = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0], id=(["a", "b"], ["c", "d"]))
    reference = References(member=[1.0, 2.0], nonmember=[1.0, 2.0], id=(["a", "x"], ["c", "d"]))
    with pytest.raises(InputError, match=r"got none for 1 of 2 ids \(first at row 1"):
        reference.aligned(named)
    blank = Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0], id=(["a", ""], ["c", "d"]))
    unnamed = References(member=[1.0, 2.0], nonmember=[1.0, 2.0], id=(["a", ""], ["c", "d"]))
    with pytest.raises(InputError, match="got none for 1 of 2 ids"):
        unnamed.aligned(blank)
    twice = References(member=[1.0] * 3, nonmember=[1.0] * 2, id=(["a", "b", "a"], ["c", "d"]))
    with pytest.raises(InputError, match="reference member ids must be unique, got 1 repeated"):
        twice.aligned(named)


def test_a_choice_is_a_value():
    """Names and classes in place of values are refused."""
    reference = References(member=[1.0, 2.0], nonmember=[1.0, 2.0])
    with pytest.raises(InputError, match="centre must be an instance"):
        difficulty(reference, centre=Median)
    with pytest.raises(InputError, match=r"reference must be auditor\.References"):
        difficulty([1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": [1.0]}, "population losses need at least 2 records, got 1"),
        ({"loss": [1.0, 2.0], "group": ["a"]}, "population losses has 2, population group has 1"),
        (
            {"loss": [1.0, 2.0], "reference": [1.0]},
            "population losses has 2, population reference losses has 1",
        ),
        ({"loss": [1.0, 2.0], "scale": "nats"}, "scale must be one of"),
    ],
)
def test_a_bad_population_is_refused(arguments, message):
    """Columns of another length and unknown scales are refused."""
    with pytest.raises(InputError, match=message):
        Population(**arguments)
