"""The likelihood ratio of a run's noisy sums: against densities, what it separates, its level, and bad input."""

import numpy as np
import pytest
from scipy import stats
from simulation import at_most

import auditor
from auditor import theory
from auditor.core import InputError
from auditor.estimators import joint_test
from auditor.scores import step_likelihood_ratio
from auditor.theory.accountant import claimed_curve

CLAIM = auditor.DPSGD(noise_multiplier=0.7, sampling_rate=0.05, steps=200)


def drawn(rng, runs, *, noise=0.7, rate=0.05, steps=200):
    """Projections of the noisy sums with the canary and without it, by the laws of the sampled Gaussian mechanism."""
    along = rng.normal(0, noise, (2, runs, steps))
    along[0] += rng.random((runs, steps)) < rate
    return along


def refuted(along, curve):
    """Whether the test of the claimed curve refutes the claim by the scores of the runs."""
    losses = auditor.Losses(*step_likelihood_ratio(along, claim=CLAIM))
    return joint_test.of_curve(losses.n_member, losses.n_nonmember, curve).p_value(losses, alpha=0.05) <= 0.05


@pytest.fixture(scope="module")
def curve():
    """The claimed trade-off curve."""
    return claimed_curve(CLAIM, adjacency=auditor.Adjacency.ADD_REMOVE).curve


# --- Its value ---


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_it_is_the_ratio_of_the_two_densities(adjacency):
    """By step, with noise, rate and size of the canary each their own, as SciPy's normal densities give it."""
    noise, rate, sizes = [0.5, 1.0, 2.0], [0.1, 1.0, 0.5], [1.0, 0.3, 0.0]
    values = np.random.default_rng(0).normal(0, 1, (5, 3))
    claim = auditor.DPSGD(noise, rate)

    def density(sign):
        parts = zip(values.T, noise, rate, sizes, strict=True)
        each = [
            (1 - q) * stats.norm.pdf(g, 0, s) + q * stats.norm.pdf(g, sign * c, s) for g, s, q, c in parts
        ]
        return np.prod(each, axis=0)

    without = density(0.0) if adjacency == "add-remove" else density(-1.0)
    scores = step_likelihood_ratio(values, claim=claim, sizes=sizes, adjacency=adjacency)
    np.testing.assert_allclose(scores, -np.log(density(1.0) / without), atol=1e-12)


def test_at_sampling_rate_1_it_orders_runs_by_their_sum():
    """The score is (T - 2 sum g)/(2 s^2), of T steps of a Gaussian mechanism."""
    values = np.random.default_rng(1).normal(0, 3, (20, 50))
    scores = step_likelihood_ratio(values, claim=auditor.DPSGD(3.0, 1.0, 50))
    np.testing.assert_allclose(scores, (50 - 2 * values.sum(axis=1)) / (2 * 9), rtol=1e-10)


def test_far_projections_do_not_overflow():
    """A step that lies 10^6 clipping norms away counts as log q + (2 g - 1)/(2 s^2), or as log(1 - q)."""
    claim = auditor.DPSGD(1.0, 0.1, 1)
    near = step_likelihood_ratio([[1e6], [-1e6]], claim=claim)
    np.testing.assert_allclose(near, [-(np.log(0.1) + 1e6 - 0.5), -np.log(0.9)], rtol=1e-12)


def test_steps_beyond_the_claim_have_the_parameters_of_its_last():
    """So a training of more steps than claimed has a score, and that of fewer steps is scored by the first ones."""
    values, columns = np.random.default_rng(2).normal(size=5), ([1.0, 2.0], [0.1, 0.3])
    for count in (1, 2, 5):
        order = np.minimum(np.arange(count), 1)
        longer = auditor.DPSGD(*(np.take(column, order) for column in columns))
        short = step_likelihood_ratio(values[:count], claim=auditor.DPSGD(*columns))
        assert short == step_likelihood_ratio(values[:count], claim=longer)


def test_its_trade_off_curve_is_the_claimed_one(curve):
    """In 40,000 simulated runs: equal at low false positive rates, below it at high ones, where the reflected curve is larger."""
    with_canary, without = step_likelihood_ratio(drawn(np.random.default_rng(3), 40_000), claim=CLAIM)
    for fpr in (0.01, 0.03, 0.1, 0.3, 0.5, 0.8):
        tpr = np.mean(with_canary <= np.quantile(without, fpr))
        allowed = np.interp(fpr, curve.fpr, curve.tpr)
        assert tpr <= allowed + 0.01
        assert fpr > 0.1 or tpr >= allowed - 0.01


# --- What an audit finds with it ---


@pytest.mark.parametrize("bug", [{"noise": 0.56}, {"steps": 400}, {"rate": 0.1}])
def test_it_finds_bugs_that_are_invisible_in_a_sum(bug, curve):
    """Noise 20% too small, twice the steps or twice the rate: refuted in each of 4 audits of 1,000 runs."""
    rng = np.random.default_rng(4)
    assert all(refuted(drawn(rng, 500, **bug), curve) for _ in range(4))


def test_the_claimed_mechanism_is_not_refuted_more_often_than_at_the_level(curve):
    """In 100 audits of 200 runs, which attain the claimed curve."""
    rng = np.random.default_rng(5)
    assert at_most(sum(refuted(drawn(rng, 100), curve) for _ in range(100)), 100)


def test_an_audit_of_runs_takes_it_as_a_score():
    """From a training to a verdict, with half of the claimed noise."""

    def train(with_canary, seed):
        rng = np.random.default_rng(seed)
        along = rng.normal(0, 0.35, 200) + with_canary * (rng.random(200) < 0.05)
        return step_likelihood_ratio(along, claim=CLAIM)

    runs = auditor.collect_runs(train, runs=200, workers=1)
    result = auditor.audit_runs(runs, delta=1e-5, claim=CLAIM)
    assert result.verdict is auditor.Verdict.REFUTED
    assert theory.epsilon(CLAIM, delta=1e-5).value > 10


# --- Bad input ---


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"projections": []}, r"1 step or more on the last axis, got shape \(0,\)"),
        ({"projections": 1.0}, "1 step or more"),
        ({"projections": [0.0, np.nan]}, "projections must be finite, got nan at position 1"),
        (
            {"sizes": [1.0, 2.0, 3.0]},
            r"sizes must be one number, or as many as projections, \(2,\), got \(3,\)",
        ),
        ({"sizes": [[1.0], [2.0]]}, "sizes must be one number, or as many as projections"),
        ({"sizes": -0.5}, "sizes must be 0 or more and finite, got -0.5"),
        ({"claim": auditor.StatedClaim(1.0, delta=1e-5)}, "claim must be"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
def test_bad_input_is_refused(change, words):
    """Each with a sentence that names the argument."""
    with pytest.raises(InputError, match=words):
        step_likelihood_ratio(**{"projections": [0.0, 1.0], "claim": CLAIM, **change})
