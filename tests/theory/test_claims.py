"""Everything one training description promises, in order and complete."""

import math

import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, StatedClaim
from auditor.theory import claims

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def test_dpsgd_rows_in_display_order():
    """DP-SGD gives three epsilons, an advantage and three Bayes securities, each with its adjacency."""
    rows = claims(DPSGD(1.0, 0.01, 200), delta=1e-6)
    assert [(row.metric, row.adjacency, row.proven) for row in rows] == [
        ("epsilon", ADD_REMOVE, True),
        ("epsilon", REPLACE_ONE, True),
        ("epsilon", REPLACE_ONE, True),
        ("advantage", REPLACE_ONE, True),
        ("bayes_security", REPLACE_ONE, True),
        ("bayes_security", REPLACE_ONE, False),
        ("bayes_security", REPLACE_ONE, False),
    ]
    assert all(row.method and row.note for row in rows)


def test_dpsgd_rows_fit_together():
    """Deltas are the requested one, the requested one and the converted one; the exact advantage is below what epsilon implies."""
    first, accounted, converted, advantage, bound, *_ = claims(DPSGD(1.0, 0.01, 1000), delta=1e-6)
    assert (first.delta, accounted.delta) == (1e-6, 1e-6)
    assert converted.delta == pytest.approx((1 + math.exp(first.value)) * 1e-6)
    source = converted if accounted.value is None else accounted
    implied = (math.expm1(source.value) + 2 * source.delta) / (math.exp(source.value) + 1)
    assert 0 < advantage.value < implied
    assert bound.value == 1 - advantage.value


def test_batches_of_fixed_size_are_about_replaced_records():
    """Such a run promises nothing about added records, so its first row is the replace-one epsilon."""
    rows = claims(DPSGD(2.0, 0.05, 30, sampling=FixedSizeSampling()), delta=1e-5)
    assert [(row.metric, row.adjacency) for row in rows] == [
        (metric, REPLACE_ONE)
        for metric in ("epsilon", "advantage", "bayes_security", "bayes_security", "bayes_security")
    ]
    # All but the published closed form, which is about independent coins.
    assert [place for place, row in enumerate(rows) if row.value is None] == [3]


def test_stated_add_remove_rows():
    """An add/remove statement gives itself, its conversion, and the advantage and Bayes security of that."""
    own, converted, advantage, security = claims(StatedClaim(1.0, 1e-5), delta=1e-3)
    assert (own.value, own.delta, own.method) == (1.0, 1e-5, "stated")
    assert (converted.value, converted.adjacency) == (2.0, REPLACE_ONE)
    assert advantage.value == pytest.approx(math.tanh(1.0), abs=1e-4)
    assert security.value == 1 - advantage.value


def test_stated_claim_too_weak_to_convert():
    """A statement whose conversion implies nothing keeps its rows, null with the reason."""
    own, converted, advantage, security = claims(StatedClaim(20.0, 1e-5), delta=1e-5)
    assert own.value == 20.0
    assert (converted.value, advantage.value, security.value) == (None, None, None)
    assert all("implies nothing" in row.note for row in (converted, advantage, security))
