"""Batches of a fixed size: epsilon and curve for replaced records, against closed forms, another library and a sum."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent, rdp
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.optimize import brentq
from scipy.special import ndtr

import auditor
from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.estimators import of_curve, rejects
from auditor.theory import claimed_curve, epsilon, gaussian_epsilon

FIXED = FixedSizeSampling()
REPLACE_ONE = Adjacency.REPLACE_ONE
RATES = np.concatenate([np.geomspace(1e-6, 0.5, 40), 1 - np.geomspace(0.5, 1e-6, 40)])


def fixed(noise, rate, steps=None):
    """A run with batches of a fixed size."""
    return DPSGD(noise, rate, steps, sampling=FIXED)


def value(training, delta=1e-5):
    """Its replace-one epsilon."""
    return epsilon(training, delta=delta, adjacency=REPLACE_ONE).value


# --- Oracles -----------------------------------------------------------------------------------------


def one_step_delta(noise, rate, at):
    """Return p delta(log(1 + (e^eps - 1)/p)), by the textbook formula of the plain Gaussian at mu = 2/s."""
    mu = 2 / noise
    shifted = math.log(1 + (math.exp(at) - 1) / rate)
    return rate * (ndtr(mu / 2 - shifted / mu) - math.exp(shifted) * ndtr(-mu / 2 - shifted / mu))


def convolved_delta(noise, rate, steps, at, *, rule, spacing=2e-3):
    """Delta of a few steps from privacy losses rounded to a grid by the rule, and convolved step by step.

    The loss is that of (1-p) N(0) + p N(2) against N(0) where positive, its mirror image, and 0 otherwise.
    """
    x = np.linspace(1, 2 + 9 * noise, 400_001)
    bell = np.exp(-(x**2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi)) * (x[1] - x[0])
    ratio = 1 - rate + rate * np.exp((2 * x - 2) / noise**2)
    loss = np.log(ratio)
    up, down = bell * ratio, bell
    losses = np.concatenate([loss, -loss, [0.0]])
    masses = np.concatenate([up, down, [1 - up.sum() - down.sum()]])
    index = rule(losses / spacing).astype(int)
    one = np.bincount(index - index.min(), weights=masses)
    total = one
    for _ in range(steps - 1):
        total = np.convolve(total, one)
    grid = (np.arange(total.size) + steps * index.min()) * spacing
    above = grid > at
    return float(total[above] @ -np.expm1(at - grid[above]))


# --- Epsilon -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1), (5.0, 1), (20.0, 100), (100.0, 10_000)])
def test_full_batches_are_the_exact_gaussian(noise, steps):
    """At rate 1 epsilon is that of a Gaussian 2 sqrt(T)/s away; just below, it is approached from above."""
    exact = gaussian_epsilon(2 * math.sqrt(steps) / noise, delta=1e-5)
    assert value(fixed(noise, 1.0, steps)) == pytest.approx(exact, rel=1e-12)
    assert exact - 1e-9 <= value(fixed(noise, 1 - 1e-12, steps)) <= exact + 3e-3


@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (2.0, 0.01), (0.5, 0.3), (5.0, 0.9), (30.0, 0.5)])
def test_one_step_is_the_closed_form(noise, rate):
    """One step agrees with the root of p delta(log(1 + (e^eps - 1)/p)) = delta, from above."""
    exact = brentq(lambda at: one_step_delta(noise, rate, at) - 1e-6, 0, 60, xtol=1e-12)
    assert exact - 1e-9 <= value(fixed(noise, rate, 1), delta=1e-6) <= exact + 3e-4 * max(1, exact / 10)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(2.0, 0.1, 4), (1.0, 0.02, 6), (3.0, 0.6, 5)])
def test_a_few_steps_lie_between_roundings(noise, rate, steps):
    """At the epsilon found, delta lies between those of losses rounded down and rounded up, summed directly."""
    found = value(fixed(noise, rate, steps))
    low, high = (convolved_delta(noise, rate, steps, found, rule=rule) for rule in (np.floor, np.ceil))
    assert low <= 1e-5 <= high
    assert high - low < 4e-7
    # The simulation can fail: a tenth of a nat to either side is told apart.
    assert convolved_delta(noise, rate, steps, found - 0.1, rule=np.floor) > 1e-5
    assert convolved_delta(noise, rate, steps, found + 0.1, rule=np.ceil) < 1e-5


def test_a_simulation_of_steps_agrees(rng):
    """Delta at an epsilon, as the mean of (1 - e^(eps - L))+ over sampled sums of losses, agrees within 4 errors."""
    noise, rate, steps, count = 3.0, 0.2, 10, 400_000
    at = 1.0
    total = np.zeros(count)
    drawn_up = rate * ndtr(1 / noise) + (1 - rate) * ndtr(
        -1 / noise
    )  # mass of x > 1 under (1-p) N(0) + p N(2)
    drawn_down = ndtr(-1 / noise)  # the mirrored half has the mass of x > 1 under N(0)
    for _ in range(steps):
        coin = rng.random(count)
        for sign, low, high, weight in ((1, 0.0, drawn_up, rate), (-1, drawn_up, drawn_up + drawn_down, 0.0)):
            own = np.flatnonzero((coin >= low) & (coin < high))
            x = rng.normal(2.0 * (rng.random(own.size) < weight), noise)
            while (short := x <= 1).any():  # again until above 1
                x[short] = rng.normal(2.0 * (rng.random(short.sum()) < weight), noise)
            total[own] += sign * np.log(1 - rate + rate * np.exp((2 * x - 2) / noise**2))
    gains = np.maximum(-np.expm1(at - total), 0.0)
    delta = float(gains.mean())
    error = float(gains.std() / math.sqrt(count))
    assert value(fixed(noise, rate, steps), delta=delta + 4 * error) < at
    assert value(fixed(noise, rate, steps), delta=delta - 4 * error) > at - 1e-3


@pytest.mark.parametrize(("noise", "rate", "steps"), [(4.0, 0.01, 1000), (2.0, 0.1, 50), (6.0, 0.2, 300)])
def test_epsilon_lies_below_another_accountant(noise, rate, steps):
    """It is below dp-accounting's RDP bound for sampling without replacement (Wang, Balle, Kasiviswanathan 2019)."""
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    # Its noise is in units of the sensitivity, which is two clipping norms.
    batch = SampledWithoutReplacementDpEvent(1000, round(1000 * rate), GaussianDpEvent(noise / 2))
    accountant.compose(SelfComposedDpEvent(batch, steps))
    bound = accountant.get_epsilon(1e-5)
    assert bound / 3 < value(fixed(noise, rate, steps)) < bound


def test_monotone_in_every_parameter():
    """More noise or a larger delta lower epsilon; a larger rate or more steps raise it."""
    noise = [value(fixed(s, 0.02, 60)) for s in (1e-3, 0.05, 0.5, 1.0, 3.0, 100.0, 1e6)]
    rate = [value(fixed(2.0, p, 60)) for p in (1e-9, 1e-6, 0.001, 0.02, 0.5, 1.0)]
    steps = [value(fixed(2.0, 0.02, t)) for t in (1, 10, 99, 100, 1_000, 30_000)]
    delta = [value(fixed(2.0, 0.02, 60), delta=d) for d in (0.0, 1e-30, 1e-12, 1e-5, 0.1, 0.9)]
    assert noise == sorted(noise, reverse=True)
    assert rate == sorted(rate)
    assert steps == sorted(steps)
    assert delta == sorted(delta, reverse=True)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.05, 1.0, 10**7, 1e-5),
        (0.05, 0.5, 10**7, 1e-5),
        (1e-3, 0.1, 10, 1e-5),
        (1e6, 0.5, 10**6, 1e-5),
        (1.0, 1e-9, 10**7, 1e-5),
        (1e-200, 0.5, 1, 0.1),
        (1e200, 0.5, 10**18, 0.1),
        (1.0, 1e-200, 1, 1e-300),
    ],
)
def test_extremes_give_a_bound(noise, rate, steps, delta):
    """Extreme settings give a number or infinity with a note, and a curve, never NaN."""
    claim = epsilon(fixed(noise, rate, steps), delta=delta, adjacency=REPLACE_ONE)
    assert claim.value >= 0
    assert claim.note
    curve = claimed_curve(fixed(noise, rate, steps), adjacency=REPLACE_ONE).curve
    assert np.isfinite([curve.tpr_at(float(rate)) for rate in RATES]).all()


def test_tiny_delta_is_bounded_by_renyi():
    """A delta below rounding error gets a looser bound, above the epsilon of a larger delta, and says so."""
    claim = epsilon(fixed(4.0, 0.01, 1000), delta=1e-20, adjacency=REPLACE_ONE)
    assert (
        value(fixed(4.0, 0.01, 1000), delta=1e-12)
        < claim.value
        < 10 * value(fixed(4.0, 0.01, 1000), delta=1e-12)
    )
    assert "Renyi" in claim.method
    assert "loose" in claim.note


def test_added_records_have_no_epsilon_and_no_curve():
    """For added records there is no number, never 0, and one sentence says why."""
    claim = epsilon(fixed(1.0, 0.1, 10), delta=1e-5)
    assert claim.value is None
    assert claim.note.startswith("Batches of a fixed size are accounted for replaced records only")
    found = claimed_curve(fixed(1.0, 0.1, 10))
    assert found.curve is None
    assert "replaced records only" in found.note


def test_the_note_names_what_is_not_covered():
    """The claim says that passes over shuffled records are not what was accounted."""
    assert (
        "passes over the shuffled records are not covered"
        in epsilon(fixed(1.0, 0.1, 10), delta=1e-5, adjacency=REPLACE_ONE).note
    )


# --- Curve -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "rate"), [(2.0, 0.1), (0.8, 0.01), (5.0, 0.7)])
def test_the_curve_of_one_step_is_the_closed_form(noise, rate):
    """One step's curve is the lowest line of its closed-form profile: never below it, and within 2e-4."""
    found = claimed_curve(fixed(noise, rate, 1), adjacency=REPLACE_ONE).curve
    grid = np.linspace(0, 30, 30_001)
    deltas = np.array([one_step_delta(noise, rate, at) for at in grid])
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


def test_the_whole_curve_of_such_a_claim_can_be_rejected():
    """The curve serves the test of guesses: perfect guesses reject it, coin tosses do not."""
    curve = of_curve(claimed_curve(fixed(30.0, 0.01, 100), adjacency=REPLACE_ONE).curve)
    assert rejects(curve, bits=400, guesses=400, correct=400, alpha=0.05)
    assert not rejects(curve, bits=400, guesses=400, correct=205, alpha=0.05)
