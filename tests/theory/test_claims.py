"""Everything one training description promises, in order and complete."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import auditor.theory
from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError, StatedClaim
from auditor.theory import accountant as sampled, claims

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
    """Deltas are the asked one, the asked one and the converted one; the exact advantage is below what epsilon implies."""
    first, accounted, converted, advantage, bound, closed, matched = claims(
        DPSGD(1.0, 0.01, 1000), delta=1e-6
    )
    assert (first.delta, accounted.delta) == (1e-6, 1e-6)
    assert converted.delta == pytest.approx((1 + math.exp(first.value)) * 1e-6)
    source = converted if accounted.value is None else accounted
    implied = (math.expm1(source.value) + 2 * source.delta) / (math.exp(source.value) + 1)
    assert 0 < advantage.value < implied
    assert bound.value == 1 - advantage.value
    # statistics.md, section 7: exact total variation and both closed forms at (.01, 1e3, 1).
    assert advantage.value == pytest.approx(0.2643522, abs=5e-8)
    assert closed.value == pytest.approx(0.75182963, abs=5e-9)
    assert matched.value == pytest.approx(0.73173984, abs=5e-9)


def test_dpsgd_with_an_old_accountant(monkeypatch):
    """Without replace-one in the accountant that row stays, null, and the advantage is exact all the same."""
    monkeypatch.setattr(sampled, "accountant_has_replace_one", lambda: False)
    rows = claims(DPSGD(1.0, 0.01, 1000), delta=1e-6)
    assert rows[1].value is None
    assert "dp-accounting" in rows[1].note
    assert rows[3].value == pytest.approx(0.2643522, abs=5e-8)


def test_dpsgd_without_protection():
    """Almost no noise gives rows that say so: a huge epsilon, advantage 1, Bayes security 0, no conversion."""
    first, _, converted, advantage, bound, closed, matched = claims(DPSGD(0.05, 0.5, 100), delta=1e-5)
    assert first.value > 1_000
    assert converted.value is None
    assert advantage.value == pytest.approx(1.0, abs=1e-12)
    assert bound.value == pytest.approx(0.0, abs=1e-12)
    assert closed.value == pytest.approx(0, abs=1e-20)
    assert matched.value == 0.0


def test_dpsgd_at_delta_zero():
    """At delta 0 every epsilon is infinite; the advantage and the approximations, which have no delta, remain."""
    rows = claims(DPSGD(1.0, 0.01, 1000), delta=0)
    assert [row.value for row in rows[:3]] == [math.inf, math.inf, math.inf]
    assert rows[3].value == pytest.approx(0.2643522, abs=5e-8)
    assert 0 < rows[6].value <= rows[5].value < 1


def test_batches_of_fixed_size_are_about_replaced_records():
    """Such a run promises nothing about added records, so its first row is the replace-one epsilon."""
    rows = claims(DPSGD(2.0, 0.05, 30, sampling=FixedSizeSampling()), delta=1e-5)
    assert [(row.metric, row.adjacency) for row in rows] == [
        (metric, REPLACE_ONE)
        for metric in ("epsilon", "advantage", "bayes_security", "bayes_security", "bayes_security")
    ]
    # All but the published closed form, which is about independent coins.
    assert [place for place, row in enumerate(rows) if row.value is None] == [3]


def test_vectors_of_steps():
    """A run described step by step promises what the equal run promises, row by row."""
    one = claims(DPSGD(1.5, 0.05, 40), delta=1e-5)
    two = claims(DPSGD([1.5] * 40, [0.05] * 40), delta=1e-5)
    assert one == two
    mixed = claims(DPSGD([1.5] * 20 + [3.0] * 20, 0.05), delta=1e-5)
    for milder, row in zip(mixed, one, strict=True):
        if row.value is None:  # dp-accounting 0.4 has no replace-one epsilon
            assert milder.value is None
            continue
        better = milder.value > row.value if row.metric == "bayes_security" else milder.value < row.value
        assert better, row.metric


def test_stated_add_remove_rows():
    """An add/remove statement gives itself, its conversion, and the advantage and Bayes security of that."""
    own, converted, advantage, security = claims(StatedClaim(1.0, 1e-5), delta=1e-3)
    assert (own.value, own.delta, own.method) == (1.0, 1e-5, "stated")
    assert (converted.value, converted.adjacency) == (2.0, REPLACE_ONE)
    assert advantage.value == pytest.approx(math.tanh(1.0), abs=1e-4)
    assert security.value == 1 - advantage.value


def test_stated_replace_one_rows():
    """A replace-one statement needs no conversion."""
    rows = claims(StatedClaim(1.0, 1e-5, REPLACE_ONE), delta=1e-5)
    assert [row.metric for row in rows] == ["epsilon", "advantage", "bayes_security"]
    # statistics.md, section 7: Adv bound at (1, 1e-5).
    assert rows[1].value == pytest.approx(0.46212254, abs=5e-9)


def test_stated_claim_too_weak_to_convert():
    """A statement whose conversion implies nothing keeps its rows, null with the reason."""
    own, converted, advantage, security = claims(StatedClaim(20.0, 1e-5), delta=1e-5)
    assert own.value == 20.0
    assert (converted.value, advantage.value, security.value) == (None, None, None)
    assert all("implies nothing" in row.note for row in (converted, advantage, security))


@pytest.mark.parametrize("claim", [DPSGD(1.0, 0.01, 10), StatedClaim(1.0, 1e-5)])
def test_bad_delta_is_refused(claim):
    """A delta outside [0, 1) is refused for either kind of description."""
    with pytest.raises(InputError, match=r"delta must lie in \[0, 1\), got 1\."):
        claims(claim, delta=1)


def test_import_is_light():
    """Importing the theory loads neither scipy nor dp_accounting nor any plotting or table library."""
    heavy = ["scipy", "dp_accounting", "pandas", "matplotlib", "sklearn"]
    code = f"import sys, auditor.theory; print([name for name in {heavy} if name in sys.modules])"
    home = str(Path(auditor.theory.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": home},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
