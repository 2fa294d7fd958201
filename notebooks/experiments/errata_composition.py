"""Errata of the post on composition ("001") and of the slides on Gaussian DP and auditing ("002"), each with a check."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import optimize, special, stats

import auditor
from auditor import theory
from auditor.theory import advanced, advanced_sharper, basic, optimal
from experiments import slides
from experiments.errata_checks import (
    LOOSE,
    Errata,
    Erratum,
    answers_delta,
    answers_epsilon,
    five_errors,
    integral,
    normal,
)

__all__ = ["POST", "SLIDES"]

_DRAWS = 2_000_000
_EPS, _STEPS, _SLACK = 0.1, 100, 1e-5


def theorem_2(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """Azuma's inequality, quoted just above, with alpha = eps and z = sqrt(2 ln(1/delta')) puts eps before the root.

    True as printed: for eps <= 1 its root is the larger one, and above ln 2 its second term alone is more than the sum.
    """
    root = math.sqrt(2 * _STEPS * math.log(1 / _SLACK) * _EPS)
    corrected = advanced(_EPS, steps=_STEPS, slack=_SLACK)
    there = answers_delta(_EPS, steps=_STEPS, at=corrected)
    yield Erratum(
        where="001 Theorem 2",
        says="√(2T ln(1/δ') ε) + Tε(e^ε - 1)",
        correct="ε √(2T ln(1/δ')) + Tε(e^ε - 1)",
        quantity="ε of 100 steps of .1 at δ' = 1e-5, at most",
        printed=root + _STEPS * _EPS * math.expm1(_EPS),
        corrected=corrected,
        check=answers_epsilon(_EPS, steps=_STEPS, delta=_SLACK),
        within=0.0,
        how="all answers of 100 randomised responses",
        relation="<=",
        expected=LOOSE,
        besides=f"exact δ at {corrected:.2f}: {there:.1g}; plain addition: {basic(_EPS, steps=_STEPS):.0f}",
    )


def gaussian_mechanism(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """A variance for a standard deviation."""
    c = math.sqrt(2 * math.log(1.25 / 1e-5))
    sigma = math.sqrt(c / 0.5)
    yield Erratum(
        where="001 Gaussian mechanism",
        says="σ² ≥ cΔ/ε",
        correct="σ ≥ cΔ/ε, for ε between 0 and 1",
        quantity="δ at ε = .5 with the noise printed for δ = 1e-5",
        printed=1e-5,
        corrected=theory.gaussian_delta(1 / sigma, epsilon=0.5),
        check=integral(
            lambda x: max(0.0, normal(x, 1, sigma) - math.exp(0.5) * normal(x, 0, sigma)), -40, 60
        ),
        within=1e-8,
        how="numerical integration",
        besides=f"with σ = c/ε: {theory.gaussian_delta(0.5 / c, epsilon=0.5):.1g}, below 1e-5",
    )


def tail_of_the_loss(rng: np.random.Generator) -> Iterator[Erratum]:
    """The tail bound is enough, but not needed."""
    losses = 0.5 + rng.normal(size=_DRAWS)  # the privacy loss of two normals 1 apart
    yield Erratum(
        where="001, 002: (ε, δ)-DP by the loss's tail",
        says="“equivalent” (001), “iff” (002): P[loss ≥ ε] ≤ δ",
        correct="only “if”",
        quantity="smallest δ at ε = 1, two normals 1 apart",
        printed=float(stats.norm.sf(0.5)),
        corrected=theory.gaussian_delta(1.0, epsilon=1.0),
        check=float(np.mean(np.maximum(0.0, -np.expm1(1 - losses)))),
        within=five_errors(_DRAWS),
        how=f"{_DRAWS:,} simulated losses",
    )


def union_bound(rng: np.random.Generator) -> Iterator[Erratum]:
    """1 - prod(1 - delta) is at most the sum."""
    yield Erratum(
        where="001 below Theorem 1",
        says="1 - Π(1 - δ) is less than 1 - Σδ",
        correct="at most Σδ",
        quantity="chance that one of 100 steps exceeds its ε, δ = .01 each, at most",
        printed=1 - 100 * 0.01,
        corrected=100 * 0.01,
        check=float(np.mean((rng.random((20_000, 100)) < 0.01).any(axis=1))),
        within=0.0,
        how="20,000 simulated runs",
        relation="<=",
    )


def best_available(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """Where only each step's (eps, delta) is known, the optimal theorem says more, and randomised response attains it."""
    yield Erratum(
        where="001 after Theorem 2",
        says="“the best available”",
        correct="the optimal theorem of Kairouz, Oh and Viswanath, which is attained",
        quantity="smallest ε of 100 steps of .1 at δ = 1e-5",
        printed=advanced(_EPS, steps=_STEPS, slack=_SLACK),
        corrected=optimal(_EPS, steps=_STEPS, total_delta=_SLACK),
        check=answers_epsilon(_EPS, steps=_STEPS, delta=_SLACK),
        within=1e-8,
        how="all answers of 100 randomised responses",
    )


def advanced_composition(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """The mean loss of k randomised responses is k eps tanh(eps/2): safe without its eps below 1, broken above."""
    for each, k, outcome in ((0.1, 100, LOOSE), (1.5, 1000, ""), (2.0, 1000, "")):
        printed = each * math.sqrt(2 * k * math.log(1 / _SLACK)) + k * math.tanh(each / 2)
        corrected = advanced_sharper(each, steps=k, slack=_SLACK)
        there = (answers_delta(each, steps=k, at=value) for value in (printed, corrected))
        yield Erratum(
            where=f"002 advanced composition, ε = {each:g}",
            says="second term k(e^ε - 1)/(e^ε + 1)",
            correct="kε(e^ε - 1)/(e^ε + 1)",
            quantity=f"ε of {k:,} steps of {each:g} at δ' = 1e-5, at most",
            printed=printed,
            corrected=corrected,
            check=answers_epsilon(each, steps=k, delta=_SLACK),
            within=0.0,
            how=f"all answers of {k:,} randomised responses",
            relation="<=",
            expected=outcome,
            besides="exact δ as printed {:.2g}, as corrected {:.2g}".format(*there),
        )


def corollary_5_4(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """The root holds E[(w - 1)_+^2], with w the likelihood ratio of one step without sampling."""
    inner = integral(lambda x: normal(x) * max(0.0, math.expm1(x - 0.5)) ** 2, -10, 14)
    bracket = math.e * special.ndtr(1.5) + 3 * special.ndtr(-0.5) - 2
    yield Erratum(
        where="002 Corollary 5.4",
        says="no √2",
        correct="μ = √2 q √k √(e^(μ²) Φ(3μ/2) + 3Φ(-μ/2) - 2)",
        quantity="μ of 1,000 steps with μ = 1, sampled at rate .01",
        printed=0.01 * math.sqrt(1000 * bracket),
        corrected=slides.corollary_5_4(1.0, rate=0.01, steps=1000),
        check=math.sqrt(2 * 1000 * inner) * 0.01,
        within=1e-8,
        how="second moment of one step's ratio by integration",
        besides="in our text copy the root ends early as well; that would be"
        f" {0.01 * math.sqrt(1000 * math.e) * special.ndtr(1.5) + 3 * special.ndtr(-0.5) - 2:.3f}",
    )


def theorem_3_4(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """For Gaussian steps the theorem must return mu sqrt(k), as sums of normals show."""
    k1, k2 = 0.1**2 / 2, 0.1**2 + 0.1**4 / 4  # mean and second moment of the loss of two normals 0.1 apart
    yield Erratum(
        where="002 Theorem 3.4",
        says="denominator κ₁ - κ₂ with κ₂ = -∫log²|f'| (in our text copy, which may have lost a root)",
        correct="√(κ₂ - κ₁²) with κ₂ = ∫log²|f'|",
        quantity="μ of 25 Gaussian steps with μ = .1",
        printed=2 * 5 * k1 / (k1 + k2),
        corrected=slides.theorem_3_4(theory.gdp_curve(0.1), steps=25),
        by="arithmetic",
        check=25 * 0.1 / math.sqrt(25),
        within=5e-4,
        how="the sum of 25 normals",
        besides=f"with κ₂ positive: {2 * 5 * k1 / (k1 - k2):.2f}",
    )


def audit_slide(rng: np.random.Generator) -> Iterator[Erratum]:
    """A lower bound on mu needs both upper limits, and 0.00274 is one: that of 174 in 100,000.

    So the slide's own numbers give the right mu; who computes beta^- as labelled gets a "bound" that is too high.
    """
    side, n = 5e-11, 100_000
    lower, missed = stats.beta.ppf(side, 174, n - 173), stats.beta.isf(side, n - 4922 + 1, 4922)
    tails = [
        optimize.brentq(
            lambda p, k=k: stats.binom.logcdf(k, n, p) - math.log(side), (k + 0.5) / n, 0.999, xtol=1e-15
        )
        for k in (174, n - 4922)
    ]
    called = [np.repeat([0.0, 1.0], [count, n - count]) for count in (4922, 174)]
    runs = auditor.audit_runs(
        auditor.Losses(*called),
        delta=1e-5,
        confidence=1 - 2 * side,
        threshold=auditor.FixedThreshold(0.5),
    )
    shares = [_share_too_high(kind, rng) for kind in ("lower", "upper")]
    yield Erratum(
        where="002 audit slide, Gaussian test",
        says="μ⁻ = Φ⁻¹(1 - α⁺) - Φ⁻¹(β⁻), “β⁻ ≥ 0.00274”",
        correct="Φ⁻¹(1 - α⁺) - Φ⁻¹(β⁺): .00274 is the upper Clopper-Pearson limit",
        quantity="μ of the backpropagation-clipping audit, at least",
        printed=stats.norm.isf(missed) - stats.norm.ppf(lower),
        corrected=runs.estimate("epsilon_bound.gdp").details["mu"],
        check=stats.norm.isf(tails[1]) - stats.norm.ppf(tails[0]),
        within=1e-6,
        how="both tests inverted from binomial tails",
        kind="number right, label wrong",
        besides=f"audits at 95% that claim more than a true μ of 1.2: as labelled {shares[0]:.0%}, corrected"
        f" {shares[1]:.1%}",
    )


def _share_too_high(limit: str, rng: np.random.Generator) -> float:
    """The share of 20,000 audits at 95% whose bound on mu exceeds the true one, 1.2, with this limit of the FPR."""
    n, mu = 100_000, 1.2
    wins, alarms = (rng.binomial(n, special.ndtr(x), 20_000) for x in (mu - 2.5, -2.5))
    missed = stats.beta.isf(0.025, n - wins + 1, wins)
    if limit == "lower":
        fpr = stats.beta.ppf(0.025, alarms, n - alarms + 1)
    else:
        fpr = stats.beta.isf(0.025, alarms + 1, n - alarms)
    return float(np.mean(stats.norm.isf(missed) - stats.norm.ppf(fpr) > mu))


def laplace(rng: np.random.Generator) -> Iterator[Erratum]:
    """The mean loss of a Laplace step, eps + e^-eps - 1, is about eps^2/2, as for a Gaussian step."""
    noise = rng.laplace(size=_DRAWS)
    yield Erratum(
        where="002 Laplace",
        says="mean loss “≈ O(ε)”, so k steps “need ε = 1/k”",
        correct="about ε²/2; 1/√k is enough",
        quantity="mean loss of a step of ε = .1",
        printed=0.1,
        corrected=0.1**2 / 2,
        check=float(np.mean(np.abs(noise - 0.1) - np.abs(noise))),
        within=0.1**3 / 6 + 5 * 0.1 / math.sqrt(_DRAWS),
        how=f"{_DRAWS:,} simulated losses; the next term of the series is ε³/6",
        by="arithmetic",
    )


def proposition_2_5(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """An error rate would be negative."""
    yield Erratum(
        where="002 Proposition 2.5",
        says="a maximum of two terms",
        correct="and of 0",
        quantity="FNR at FPR 1, ε = 1, δ = .05",
        printed=max(1 - 0.05 - math.e, (1 - 0.05 - 1) / math.e),
        corrected=1 - auditor.TradeoffCurve.from_epsilon_delta(1.0, delta=0.05).tpr_at(1.0),
        check=0.0,
        within=1e-12,
        how="who accuses everybody misses nobody",
    )


POST: tuple[Errata, ...] = (theorem_2, best_available, gaussian_mechanism, tail_of_the_loss, union_bound)
SLIDES: tuple[Errata, ...] = (
    advanced_composition,
    laplace,
    proposition_2_5,
    theorem_3_4,
    corollary_5_4,
    audit_slide,
)
