"""Unusable input is refused in one sentence: the argument, its constraint, and its value, with the place."""

import math

import numpy as np
import pytest
from theory.references import stated

from auditor import theory as t
from auditor.core import DPSGD, Adjacency, Claim, FixedSizeSampling, InputError
from auditor.curves import TradeoffCurve

RUN, FIXED = DPSGD(1.0, 0.1, 3), FixedSizeSampling()
RNG = np.random.default_rng(0)
CURVE = TradeoffCurve([0.0, 0.2, 1.0], [0.0, 0.8, 1.0])
ADVANTAGE, ADDED = t.WantedAdvantage(0.1), t.WantedAdvantage(0.1, "add-remove")


def secure(prior):
    """The success rate that a Bayes security allows."""
    return t.success_rate_from_bayes_security(stated("bayes_security"), prior=prior)


def distances(values):
    """The promise of the steps about an attribute that moves gradients so far."""
    return t.attribute_inference(RUN, sensitivities=values)


def noise(wish, rate=0.1, steps=10, **choices):
    """The noise for a wish."""
    return t.noise_multiplier_for(wish, sampling_rate=rate, steps=steps, **choices)


def rate(wish, multiplier=1.0, steps=10, **choices):
    """The sampling rate for a wish."""
    return t.sampling_rate_for(wish, noise_multiplier=multiplier, steps=steps, **choices)


def steps(wish, multiplier=1.0, sampling_rate=0.01, **choices):
    """The steps for a wish."""
    return t.steps_for(wish, noise_multiplier=multiplier, sampling_rate=sampling_rate, **choices)


RUNS = [
    t.success_rate,
    t.total_variation,
    t.mu_clt,
    t.mu_without_sampling,
    t.pinsker_renyi,
    t.bayes_security_closed_form,
    t.bayes_security_moment_matched,
    lambda run: t.overview(run, delta=1e-5),
    lambda run: t.renyi_divergence(run, order=2.0),
    lambda run: t.renyi_epsilon(run, delta=0.1),
    lambda run: t.compare_compositions(run, delta=0.1),
    lambda run: t.advantage_under_prior(run, prior=0.3),
]
CLAIMS = {
    "epsilon": [
        t.replace_one,
        t.humphries,
        lambda claim: t.tpr_from_epsilon(claim, fpr=0.1),
        lambda claim: t.attackers.posterior_from_epsilon(claim, prior=0.3),
    ],
    "advantage": [
        t.bayes_security_from_advantage,
        lambda claim: t.tpr_from_advantage(claim, fpr=0.1),
        lambda claim: t.rough_epsilon(claim, delta=0.1),
    ],
    "bayes_security": [t.success_rate_from_bayes_security],
}


@pytest.mark.parametrize("function", RUNS)
def test_only_runs_are_accounted(function):
    """Something that is no training run is refused by its type."""
    with pytest.raises(InputError, match=r"^training must be auditor\.DPSGD, got 'x'\.$"):
        function("x")


@pytest.mark.parametrize("function", [function for metric in CLAIMS.values() for function in metric])
def test_only_claims_are_converted(function):
    """Something that is no claim is refused by its type, and a claim about another quantity by its metric."""
    with pytest.raises(InputError, match=r"^claim must be auditor\.results\.Claim, got 1\.0\.$"):
        function(1.0)
    with pytest.raises(InputError, match=r"claim metric must be one of .*, got 'recall'"):
        function(stated("recall"))


@pytest.mark.parametrize("function", CLAIMS["epsilon"])
def test_an_epsilon_needs_its_delta(function):
    """An epsilon without its delta says nothing about added records, and is refused."""
    with pytest.raises(InputError, match="needs its delta"):
        function(Claim("epsilon", 1.0, None, Adjacency.ADD_REMOVE, "stated", proven=True))


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, math.nan, "even"])
def test_priors(prior):
    """A prior outside (0, 1) is refused by name in every function."""
    for call in (
        lambda: t.success_rate(RUN, prior=prior),
        lambda: t.overview(RUN, delta=0.1, prior=prior),
        lambda: t.attackers.posterior_from_epsilon(stated("epsilon", 1.0, 0.0), prior=prior),
        lambda: secure(prior=prior),
        lambda: t.success_in_words(stated("success_rate"), prior=prior),
    ):
        with pytest.raises(InputError, match="prior"):
            call()


@pytest.mark.parametrize("fpr", [0.0, -0.1, 1.5, math.nan, "low"])
def test_false_positive_rates(fpr):
    """A false positive rate outside (0, 1] is refused by name in every function."""
    for call in (
        lambda: t.tpr_from_advantage(stated("advantage"), fpr=fpr),
        lambda: t.tpr_exact(RUN, fpr=fpr),
        lambda: t.overview(RUN, delta=0.1, rates=(fpr,)),
    ):
        with pytest.raises(InputError, match="fpr must"):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: t.epsilon("x", delta=0.1), "claim must be auditor.DPSGD or"),
        (lambda: t.epsilon(RUN, delta=-1e-9), r"delta must lie in \[0, 1\), got -1e-09"),
        (lambda: t.epsilon(RUN, delta=0.1, adjacency="replace_one"), "did you mean 'replace-one'"),
        (lambda: t.mu_clt(RUN, adjacency="either"), "adjacency must be one of"),
        (lambda: t.rough_epsilon(stated("advantage"), delta=1.0), "delta must lie in"),
        (lambda: t.total_variation_a(RUN, a=0.0), "a must be above 0"),
        # Curves and divergences.
        (lambda: CURVE.epsilon_at(1.0), r"delta must lie in \[0, 1\), got 1"),
        (lambda: CURVE.delta_at([0.0, math.nan]), "epsilon must lie in .* got nan at position 1"),
        (lambda: CURVE.delta_at(-1.0), r"epsilon must lie in \[0, inf\], got -1\."),
        (lambda: CURVE.delta_at("low"), "epsilon must be numbers, got 'low'"),
        (lambda: CURVE.mu_and_regret(least_rate=1.0), r"least_rate must lie in \[0, 1\), got 1"),
        (lambda: t.renyi_divergence(RUN, order=[2.0, math.inf]), "order must be .*, got inf at position 1"),
        # Words and overviews.
        (lambda: t.overview(RUN, delta=1e-5, rates=()), "rates must be false positive rates"),
        (lambda: t.odds_in_words(stated("mu")), "claim metric must be one of 'epsilon', 'advantage'"),
        (lambda: t.odds_in_words(stated("epsilon", 1.0)), "needs its delta"),
        (lambda: t.rates_in_words(stated("tpr_at_fpr.0.1"), fpr=0.01), "'tpr_at_fpr.0.01'"),
        (lambda: t.success_in_words(stated("success_rate"), prior=0.1), "success_rate_at_prior.0.1"),
        (lambda: t.out_of(0.5, toward="sideways"), "toward must be one of"),
        # Attribute inference.
        (lambda: distances([0.1, 0.2]), "for each of the 3 steps, got 2"),
        (lambda: distances([[0.1]]), r"got shape \(1, 1\)"),
        (lambda: distances([0.1, 2.5, 0.1]), "got 2.5 at step 2, .* norm is 1"),
        (lambda: distances([0.1, -0.5, 0.1]), "got -0.5 at position 1"),
        (lambda: distances(math.inf), "got inf at step 1"),
        # Wishes out of range, or so near to nothing or all that they drown in rounding.
        (lambda: t.WantedBayesSecurity(1.0), r"wanted Bayes security must lie in \(0, 1\), got 1"),
        (lambda: t.WantedBayesSecurity(1 - 1e-16), "wanted Bayes security must be at most 1 - 1e-12"),
        (lambda: t.WantedAdvantage(1e-17), "1e-12 or more, .* got 1e-17; want a larger"),
        (lambda: t.WantedAdvantage(0.1, "add-rmove"), "did you mean 'add-remove'"),
        (lambda: t.WantedEpsilon(0.0, delta=1e-5), "wanted epsilon must be above 0"),
        (lambda: t.WantedEpsilon(1.0, delta=0.0), r"delta must lie in \(0, 1\)"),
        (lambda: t.WantedTPR(0.01, at_fpr=0.1), r"rate 0\.1, .* got 0\.01; want a larger"),
        (lambda: t.WantedTPR(0.5, at_fpr=0.0), r"at_fpr must lie in \(0, 1\)"),
        (lambda: t.WantedSuccess(0.9, prior=0.1), r"1e-12 or more above 0\.9, .* got 0\.9; want"),
        (lambda: t.WantedSuccess(0.4, prior=0.5), "which an attacker reaches by guessing, got 0.4"),
        (lambda: t.WantedSuccess(1.0, prior=0.5), r"wanted success rate must lie in \(0, 1\)"),
        (lambda: t.WantedSuccess(0.9, prior=1.0), r"prior must lie in \(0, 1\)"),
        # Parameters for wishes.
        (lambda: noise("x"), "target must be one of 'advantage', .*, got 'x'"),
        (lambda: noise(3), "target must be auditor.theory.WantedAdvantage or .*, got 3"),
        (lambda: noise(ADVANTAGE, sampling="fixed"), "sampling must be one of 'poisson'"),
        (lambda: noise(ADVANTAGE, 1.5), "sampling_rate must"),
        (lambda: rate(ADVANTAGE, 0), "noise_multiplier must"),
        (lambda: steps(ADVANTAGE, 1.0, "x"), "must be a number, got 'x'"),
        (lambda: noise(ADDED, sampling=FIXED), "for replaced records only"),
        # A record that is never drawn with probability .999^1000 = .368 is that safe without any noise.
        (lambda: noise(t.WantedAdvantage(0.7), 0.001, 1000), r"chance of only 0\.633"),
        (lambda: noise(t.WantedEpsilon(1.0, delta=1e-5), 1e-9, 50), "chance of only 5e-8"),
        (lambda: noise(t.WantedTPR(0.9, at_fpr=0.1), 0.001, 1000), "every noise multiplier keeps"),
        # .01 sqrt(1e9) sqrt(2/pi) / 1e12 = 2.52e-10
        (
            lambda: noise(t.WantedAdvantage(1e-12), 0.01, 10**9),
            r"up to 1e12 .* still 2\.5\de-10 \(.*\); ask for less",
        ),
        # Also when the number would round to the wished one.
        (lambda: noise(t.WantedBayesSecurity(1 - 1e-12), 0.01, 10**9), r"still 0\.999999999\d+ \("),
        (lambda: steps(t.WantedBayesSecurity(0.98), 0.5, 1.0), "down to 1 was found .* take more noise"),
        (lambda: steps(t.WantedBayesSecurity(0.5), 1e9, 1e-6), "even 1e12 steps keep"),
    ],
)
def test_numbers_and_choices(call, words):
    """Each is refused with its name, what it must be and what it is."""
    with pytest.raises(InputError, match=words):
        call()
