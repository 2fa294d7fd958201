"""Batches of a fixed size: epsilon and curve for replaced records, against closed forms, another library and a sum."""

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent, rdp
from dp_accounting.privacy_accountant import NeighboringRelation
from oracles import fixed_size_delta

import auditor
from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory import claimed_curve, epsilon

FIXED = FixedSizeSampling()
REPLACE_ONE = Adjacency.REPLACE_ONE
RATES = np.concatenate([np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(0.5, 1e-6, 40)])


def fixed(noise, rate, steps=None):
    """A run with batches of a fixed size."""
    return DPSGD(noise, rate, steps, sampling=FIXED)


def value(training, delta=1e-5):
    """Its replace-one epsilon."""
    return epsilon(training, delta=delta, adjacency=REPLACE_ONE).value


# --- Epsilon -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "rate", "steps"), [(4.0, 0.01, 1000), (2.0, 0.1, 50), (6.0, 0.2, 300)])
def test_epsilon_lies_below_another_accountant(noise, rate, steps):
    """It is below dp-accounting's RDP bound for sampling without replacement (Wang, Balle, Kasiviswanathan 2019)."""
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    # Its noise is in units of the sensitivity, which is two clipping norms.
    batch = SampledWithoutReplacementDpEvent(1000, round(1000 * rate), GaussianDpEvent(noise / 2))
    accountant.compose(SelfComposedDpEvent(batch, steps))
    bound = accountant.get_epsilon(1e-5)
    assert bound / 3 < value(fixed(noise, rate, steps)) < bound


# --- Curve -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "rate"), [(2.0, 0.1), (0.8, 0.01), (5.0, 0.7)])
def test_the_curve_of_one_step_is_the_closed_form(noise, rate):
    """One step's curve is the lowest line of its closed-form profile: never below it, and within 2e-4."""
    found = claimed_curve(fixed(noise, rate, 1), adjacency=REPLACE_ONE).curve
    grid = np.linspace(0, 30, 30_001)
    deltas = fixed_size_delta(noise, rate, grid)
    for fpr in RATES:
        lines = np.minimum(deltas + np.exp(grid) * fpr, 1 - np.exp(-grid) * np.maximum(0, 1 - deltas - fpr))
        gap = found.tpr_at(float(fpr)) - lines.min()
        assert -1e-6 <= gap < 2e-4


# --- Audits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def losses():
    """Losses that tell most members from non-members."""
    rng = np.random.default_rng(5)
    return auditor.Losses(member=rng.normal(-4, 1, 600), nonmember=rng.normal(0, 1, 600))


@pytest.mark.parametrize(
    "split", [auditor.RandomSplit(), auditor.UnknownSplit(), auditor.BernoulliSplit(0.5)]
)
def test_an_audit_with_such_a_claim_runs(losses, split, tmp_path):
    """An audit states the replace-one epsilon and judges it where membership was random, and the report renders."""
    strict = fixed(30.0, 0.01, 100)
    result = auditor.audit(losses, claim=strict, split=split, delta=1e-5, seed=0)
    first = result.claims[0]
    assert (first.metric, first.adjacency) == ("epsilon", REPLACE_ONE)
    assert first.value == value(strict)
    refuted = isinstance(split, auditor.RandomSplit)
    assert str(result.verdict) == ("refuted" if refuted else "not_evaluable")
    path = tmp_path / "report.html"
    result.to_html(path)
    assert "fixed size" in path.read_text(encoding="utf-8")
