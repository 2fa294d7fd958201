"""Attackers with prior knowledge: success, advantage, posterior and precision."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm
from simulation import runs_for

from auditor.core import DPSGD, Adjacency, Claim, FixedSizeSampling, InputError
from auditor.theory import (
    advantage_under_prior,
    bayes_security_from_advantage,
    posterior_from_epsilon,
    precision_from_tpr,
    success_rate,
    success_rate_from_bayes_security,
    total_variation,
    total_variation_a,
    tpr_exact,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
PRIORS = [1e-9, 0.01, 0.3, 0.5, 0.7, 0.99]
RUN = DPSGD(0.8, 0.05, 60)


def stated(metric, value, delta=None, *, proven=True):
    """A claim by hand."""
    return Claim(metric, value, delta, REPLACE_ONE, "stated", proven=proven, note="By hand.")


def one_step_success(noise, rate, prior, *, replaced):
    """Integral of the larger of the two weighted densities, by quadrature."""

    def mixture(x, mean):
        return (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, mean, noise)

    def larger(x):
        out = mixture(x, -1) if replaced else norm.pdf(x, 0, noise)
        return max(prior * mixture(x, 1), (1 - prior) * out)

    reach = 1 + 10 * noise
    return quad(larger, -reach, reach, limit=500, points=np.linspace(-reach, reach, 21))[0]


def test_theorem_21_corrected():
    """At q = .5, s = .5, prior .3, one step: .136631 (errata); the printed formula gives .936631."""
    found = advantage_under_prior(DPSGD(0.5, 0.5, 1), prior=0.3)
    assert found.value == pytest.approx(0.136631, abs=5e-7)
    corrected = 2 * 0.7 * total_variation_a(DPSGD(0.5, 0.5, 1), a=0.3 / 0.7) - (1 - 2 * 0.3)
    assert found.value == pytest.approx(corrected, abs=1e-9)
    assert corrected + 2 * (1 - 2 * 0.3) == pytest.approx(0.936631, abs=5e-7)


@pytest.mark.parametrize("prior", PRIORS)
def test_equal_laws_give_no_advantage(prior):
    """With noise so large that the laws coincide, nobody has an advantage, whatever the prior."""
    found = advantage_under_prior(DPSGD(1e9, 0.1, 10), prior=prior)
    assert found.value == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("prior", [0.1, 0.3, 0.5, 0.8])
def test_one_step_against_quadrature(prior, replaced):
    """For one step the success rate is the integral of the larger weighted density."""
    adjacency = REPLACE_ONE if replaced else ADD_REMOVE
    found = success_rate(DPSGD(0.7, 0.4, 1), prior=prior, adjacency=adjacency).value
    assert found == pytest.approx(one_step_success(0.7, 0.4, prior, replaced=replaced), abs=1e-8)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_even_odds_give_the_total_variation(adjacency):
    """At prior 1/2 the advantage is the total variation and the success rate (1 + TV) / 2."""
    tv = total_variation(RUN, adjacency=adjacency).value
    advantage = advantage_under_prior(RUN, prior=0.5, adjacency=adjacency)
    success = success_rate(RUN, adjacency=adjacency)
    assert (advantage.metric, success.metric) == ("advantage", "success_rate")
    assert advantage.value == pytest.approx(tv, abs=1e-9)
    assert success.value == pytest.approx((1 + tv) / 2, abs=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_success_lies_between_guessing_and_bayes_security(prior, adjacency):
    """Looking never hurts, and Bayes security bounds what it adds: success <= 1 - beta* (1 - max prior)."""
    success = success_rate(RUN, prior=prior, adjacency=adjacency).value
    security = bayes_security_from_advantage(total_variation(RUN, adjacency=adjacency))
    bound = success_rate_from_bayes_security(security, prior=prior).value
    assert max(prior, 1 - prior) <= success <= bound + 1e-12


@pytest.mark.parametrize("prior", [0.1, 0.3, 0.45])
def test_priors_above_one_half(prior):
    """For replaced records, where both orders are alike, a prior and its complement give the same success."""
    low, high = (success_rate(RUN, prior=value).value for value in (prior, 1 - prior))
    assert low == pytest.approx(high, abs=1e-8)


def test_success_is_convex_in_the_prior():
    """As the best of many lines the success rate is convex in the prior."""
    priors = np.linspace(0.02, 0.98, 25)
    success = np.array([success_rate(RUN, prior=float(p), adjacency=ADD_REMOVE).value for p in priors])
    assert np.all(np.diff(success, 2) >= -1e-8)


@pytest.mark.parametrize("prior", [0.2, 0.5])
def test_success_is_monotone_in_the_setting(prior):
    """More noise never helps the attacker; more steps and a larger rate never hurt."""

    def value(noise=1.0, rate=0.05, steps=50):
        return success_rate(DPSGD(noise, rate, steps), prior=prior).value

    assert value(noise=3.0) <= value() <= value(noise=0.6)
    assert value(rate=0.01) <= value() <= value(rate=0.5)
    assert value(steps=5) <= value() <= value(steps=500)


def test_out_of_range_runs():
    """Where the law cannot be resolved a bound stands in; fixed-size batches have none for added records."""
    claim = success_rate(DPSGD(0.01, 0.001, 100), prior=0.2)
    assert claim.value == pytest.approx(0.8 + 0.2 * (1 - 0.999**100), abs=1e-9)
    missing = success_rate(DPSGD(1.0, 0.01, 10, sampling=FixedSizeSampling()), adjacency=ADD_REMOVE)
    assert missing.value is None
    assert "fixed size" in missing.note
    none = advantage_under_prior(DPSGD(1.0, 0.01, 10, sampling=FixedSizeSampling()), prior=0.3)
    assert none.value is None


def test_section_6_2_success_rates():
    """Section 6.2: beta* .93, .88, .99, .87 are success rates of 53%, 56%, 51%, 57% (rounded up), and .98 is 51%."""
    values = [
        success_rate_from_bayes_security(stated("bayes_security", beta)).value
        for beta in (0.93, 0.88, 0.99, 0.87, 0.98)
    ]
    assert values == pytest.approx([0.535, 0.56, 0.505, 0.565, 0.51])


@pytest.mark.parametrize("seed", range(5))
def test_bayes_security_bounds_every_channel(seed):
    """On random channels from many secrets, no prior beats 1 - beta* (1 - max prior), beta* from the worst two."""
    rng = np.random.default_rng(seed)
    channel = rng.dirichlet(np.full(6, 0.5), size=4)
    pairs = [np.abs(channel[i] - channel[j]).sum() / 2 for i in range(4) for j in range(i)]
    security = stated("bayes_security", 1 - max(pairs))
    for prior in rng.dirichlet(np.ones(4), size=200):
        success = float((prior[:, None] * channel).max(axis=0).sum())
        assert success <= success_rate_from_bayes_security(security, prior=prior.tolist()).value + 1e-12


def test_bayes_security_claims():
    """No value gives none; the standing is inherited; the name carries the larger prior."""
    assert success_rate_from_bayes_security(stated("bayes_security", None)).value is None
    claim = success_rate_from_bayes_security(
        stated("bayes_security", 0.9, proven=False), prior=[0.5, 0.25, 0.25]
    )
    assert (claim.metric, claim.proven, claim.value) == ("success_rate", False, pytest.approx(0.55))
    assert success_rate_from_bayes_security(stated("bayes_security", 1.0), prior=0.3).value == 0.7


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("eps", [0.0, 0.447, 5.0, 800.0])
def test_posterior_multiplies_the_odds(prior, eps):
    """The largest posterior odds are the prior odds times e^epsilon, without overflow."""
    found = posterior_from_epsilon(stated("epsilon", eps, 0.0), prior=prior).value
    log_odds = math.log(prior) - math.log1p(-prior) + eps
    assert found == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-12)
    assert found >= prior


def test_posterior_on_randomised_response():
    """Randomised response of epsilon 1 reaches the bound: the truth is told with odds e."""
    told = math.e / (1 + math.e)
    prior = 0.2
    posterior = prior * told / (prior * told + (1 - prior) * (1 - told))
    assert posterior_from_epsilon(stated("epsilon", 1.0, 0.0), prior=prior).value == pytest.approx(posterior)


def test_posterior_needs_delta_zero():
    """A delta above 0 bounds no posterior, and the note says so; no delta and no epsilon are told apart."""
    claim = posterior_from_epsilon(stated("epsilon", 1.0, 1e-5), prior=0.5)
    assert claim.value is None
    assert "no posterior is bounded" in claim.note
    assert posterior_from_epsilon(stated("epsilon", None, 0.0), prior=0.5).note == "By hand."
    with pytest.raises(InputError, match="needs its delta"):
        posterior_from_epsilon(stated("epsilon", 1.0), prior=0.5)


@pytest.mark.parametrize("prior", PRIORS)
def test_precision_is_bayes_rule(prior):
    """Precision is pi TPR / (pi TPR + (1 - pi) FPR), and the prior itself for an attacker who guesses."""
    found = precision_from_tpr(stated("tpr_at_fpr.0.01", 0.2), fpr=0.01, prior=prior).value
    assert found == pytest.approx(prior * 0.2 / (prior * 0.2 + (1 - prior) * 0.01))
    guess = precision_from_tpr(stated("tpr_at_fpr.0.01", 0.01), fpr=0.01, prior=prior)
    assert guess.value == pytest.approx(prior)
    assert guess.metric == "precision_at_fpr.0.01"
    assert precision_from_tpr(stated("tpr_at_fpr.0.01", None), fpr=0.01, prior=prior).value is None


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.2, math.nan, "even"])
def test_bad_priors_are_refused(prior):
    """A prior outside (0, 1) is refused by name in every function."""
    for call in (
        lambda: success_rate(RUN, prior=prior),
        lambda: advantage_under_prior(RUN, prior=prior),
        lambda: posterior_from_epsilon(stated("epsilon", 1.0, 0.0), prior=prior),
        lambda: precision_from_tpr(stated("tpr_at_fpr.0.1", 0.2), fpr=0.1, prior=prior),
        lambda: success_rate_from_bayes_security(stated("bayes_security", 0.9), prior=prior),
    ):
        with pytest.raises(InputError, match="prior"):
            call()


def test_priors_over_secrets_must_sum_to_one():
    """Probabilities of several secrets that do not sum to 1, or of which one is 0, are refused with the place."""
    with pytest.raises(InputError, match=r"must sum to 1 over all secrets, got 0\.9 over 2"):
        success_rate_from_bayes_security(stated("bayes_security", 0.9), prior=[0.5, 0.4])
    with pytest.raises(InputError, match=r"prior of secret 2 must lie in \(0, 1\)"):
        success_rate_from_bayes_security(stated("bayes_security", 0.9), prior=[0.5, 0.0, 0.5])


def test_simulated_attackers_with_a_prior(request):
    """The Bayes attacker on simulated runs is right as often as computed, and more often than an equal-odds bound says."""
    noise, rate, steps, prior = 0.7, 0.1, 30, 0.25
    training, runs = DPSGD(noise, rate, steps), runs_for(request, 60_000, 2_000_000)
    rng = np.random.default_rng(5)
    member = rng.random(runs) < prior
    loss = np.zeros(runs)
    for _ in range(steps):
        x = noise * rng.standard_normal(runs) + (member & (rng.random(runs) < rate))
        loss += np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2)))
    right = (loss > math.log((1 - prior) / prior)) == member
    found = float(right.mean())
    exact = success_rate(training, prior=prior, adjacency=ADD_REMOVE).value
    assert abs(found - exact) < 4 * math.sqrt(exact * (1 - exact) / runs)
    # The simulation can fail: it refutes the success of a run with twice the noise.
    quiet = success_rate(DPSGD(2 * noise, rate, steps), prior=prior, adjacency=ADD_REMOVE).value
    assert found > quiet + 4 * math.sqrt(quiet * (1 - quiet) / runs)
    accused = loss > float(np.quantile(loss[~member], 0.95))
    claim = tpr_exact(training, fpr=0.05, adjacency=ADD_REMOVE)
    precision = precision_from_tpr(claim, fpr=0.05, prior=prior).value
    assert float(member[accused].mean()) == pytest.approx(
        precision, abs=4 * math.sqrt(0.25 / accused.sum()) * 2
    )


def test_gaussian_success():
    """Without sampling the success rate under a prior is that of two Gaussians with a shifted threshold."""
    mu, prior = 1.5, 0.2
    cut = mu / 2 + math.log((1 - prior) / prior) / mu
    expected = prior * ndtr(mu - cut) + (1 - prior) * ndtr(cut)
    found = success_rate(DPSGD(2.0, 1.0, 9), prior=prior, adjacency=ADD_REMOVE).value
    assert found == pytest.approx(expected, abs=1e-10)
