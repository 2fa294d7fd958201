"""Errata of Mahloujifar, Sablayrolles, Cormode, Jha 2022 ("003"), each with a check that decides."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import special

from auditor import DPSGD, theory
from experiments.errata_checks import Errata, Erratum, five_errors, integral, normal, replacement_game

__all__ = ["MEMBERSHIP"]

_DRAWS = 2_000_000


def algorithm_1(rng: np.random.Generator) -> Iterator[Erratum]:
    """Line 9. Without the record E[e^eta] = 1, so max gives exactly minus what min gives."""
    eta = np.log1p(0.1 * np.expm1((2 * rng.normal(size=_DRAWS) - 1) / 2))
    one_step = DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=1)
    yield Erratum(
        where="003 Algorithm 1, line 9",
        says="η = max(η, 0)",
        correct="min(η, 0), by Equation 12: an output counts only where it is less likely with the record",
        quantity="advantage, one step, q = .1, σ = 1",
        printed=float(np.mean(-np.expm1(np.maximum(eta, 0)))),
        corrected=theory.total_variation(one_step, adjacency="add-remove").value,
        check=integral(lambda x: abs(0.1 * (normal(x, 1) - normal(x))) / 2, -12, 12),
        within=1e-6,
        how="half the integral of |p - q|",
        besides=f"the same simulation with min: {np.mean(-np.expm1(np.minimum(eta, 0))):.4f}",
    )


def theorem_21(rng: np.random.Generator) -> Iterator[Erratum]:
    """Equation 26. From Equation 21 to 22 the sign inside the supremum is turned round."""
    prior, half, games = 0.3, DPSGD(noise_multiplier=0.5, sampling_rate=0.5, steps=1), 4_000_000
    tv = theory.total_variation_a(half, a=prior / (1 - prior))
    inside = rng.random(games) < prior
    seen = 0.5 * rng.normal(size=games) + (inside & (rng.random(games) < 0.5))
    odds = prior / (1 - prior) * (0.5 + 0.5 * normal(seen, 1, 0.5) / normal(seen, 0, 0.5))
    yield Erratum(
        where="003 Theorem 21, Equation 26",
        says="Adv = 2(1 - p) TV + 1 - 2p",
        correct="... - (1 - 2p): equal laws must give 0, and as printed give 2(1 - 2p)",
        quantity="advantage under prior .3, one step, q = .5, σ = .5",
        printed=2 * (1 - prior) * tv + 1 - 2 * prior,
        corrected=theory.advantage_under_prior(half, prior=prior).value,
        check=float(2 * np.mean((odds > 1) == inside) - 2 * max(prior, 1 - prior)),
        within=2 * five_errors(games),
        how=f"{games:,} games played by the best attacker",
    )


def footnote_4(rng: np.random.Generator) -> Iterator[Erratum]:
    """TV_a is half the integral of |f| with f = p - a q, and |f| = 2 max(f, 0) - f, whose integral is 2 H_a - (1 - a)."""
    a, noise = math.e, rng.normal(size=_DRAWS) + 1
    tv_a = integral(lambda x: abs(normal(x, 1) - a * normal(x)) / 2, -12, 13)
    loss = noise - 0.5
    yield Erratum(
        where="003 footnote 4",
        says="TV_a “is also used by the name of Hockey stick divergence”",
        correct="it is that divergence less (1 - a)/2, and the same at a = 1 only: no δ can be read from it",
        quantity="hockey-stick divergence at a = e of two normals 1 apart: their δ at ε = 1",
        printed=tv_a,
        corrected=tv_a + (1 - a) / 2,
        check=float(np.mean(np.maximum(0.0, -np.expm1(1 - loss)))),
        within=five_errors(_DRAWS),
        how=f"{_DRAWS:,} simulated losses",
        by="arithmetic",
    )


_A, _R, _S = 0.4, 1.3, 0.7


def _lemma_5(factor: float, constant: float) -> float:
    """Half of the lemma's bracket, with this factor before s^2 ln a, and this constant left over."""
    up, down = (
        (sign * _R**2 - factor * _S**2 * math.log(_A)) / (2 * math.sqrt(2) * _S * _R) for sign in (1, -1)
    )
    return float(special.erf(up) - _A * special.erf(down) + constant) / 2


def lemma_5(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """The densities cross at (r^2 - 2 s^2 ln a)/(2r), and the integrals of both add up without a constant.

    With the constant no factor c_2 fits both small and large r. That TV_a grows with r survives.
    """
    common = {
        "corrected": theory.total_variation_a(DPSGD(_S / _R, 1.0, 1), a=_A),
        "check": integral(lambda x: abs(normal(x, 0, _S) - _A * normal(x, _R, _S)) / 2, -8, 10),
        "within": 1e-7,
        "how": "half the integral of |p - a q|",
    }
    yield Erratum(
        where="003 Lemma 5, arguments of erf",
        says="(r² - σ² ln a)/(2√2 σr)",
        correct="(r² - 2σ² ln a)/(2√2 σr), from the crossing (r² - 2σ² ln a)/(2r): a 2 was lost",
        quantity="TV_a at a = .4, r = 1.3, σ = .7 (with c₂ = 1/2, which the paper leaves open)",
        printed=_lemma_5(1, 0),
        besides=f"the corrected lemma by hand: {_lemma_5(2, 0):.6f}",
        **common,
    )
    yield Erratum(
        where="003 Lemma 5, constant",
        says="1 - a inside the bracket",
        correct="no constant: those of the two integrals cancel",
        quantity="the same, with 1 - a left over",
        printed=_lemma_5(2, 1 - _A),
        **common,
    )


def lemma_7(rng: np.random.Generator) -> Iterator[Erratum]:
    """Where b = (a + q - 1)/q is not positive, |p - b q| = p + |b| q everywhere, so TV_b = (1 - b)/2 for every pair.

    So the step "by Lemma 5" of the proof holds there with equality, though the lemma does not say so. It is no rare
    case: the first step of a history leads there wherever q(x)/p(x) < 1 - q.
    """
    a, q = 0.3, 0.5
    index = (a + q - 1) / q
    x = rng.normal(size=(1000, 1000)) + (rng.random((1000, 1000)) < 0.01)
    histories = -np.log1p(0.01 * np.expm1(x - 0.5)).sum(axis=1)
    share = np.mean(np.exp(histories) < 1 - 0.01)
    with np.errstate(invalid="ignore"):
        undefined = float(np.log(np.float64(index)))  # what Lemma 5 takes the logarithm of
    yield Erratum(
        where="003 Lemma 7 in the proof of Theorem 6",
        says="TV of index (a + q - 1)/q, which Lemma 5 then bounds",
        correct="the index is negative where a < 1 - q, and Definition 4 and Lemma 5 are for a > 0. There TV is"
        " (1 - index)/2 for every pair, so the proof goes on",
        quantity="TV_a of a step sampled at q = .5 and none, a = .3, r = σ = 1: q times TV of index -.4",
        printed=undefined,
        corrected=q * (1 - index) / 2,
        check=integral(lambda x: abs((1 - q) * normal(x) + q * normal(x, 1) - a * normal(x)) / 2, -12, 13),
        within=1e-9,
        how="half the integral of |p - a q|",
        by="arithmetic",
        kind="gap in a proof; the theorem stands",
        besides=f"{share:.0%} of simulated histories get there (q = .01, σ = 1, 1,000 steps)",
    )


def proposition_8(rng: np.random.Generator) -> Iterator[Erratum]:
    """The mean of three fair coins is never nearer to 1/2 than 1/6, where the printed form is below 1.

    The printed form follows from Hoeffding's wherever m delta^2 >= (3/5) ln 2 = 0.416; where it is used that is 50.
    """
    coins = (rng.random((200_000, 3)) < 0.5).mean(axis=1)
    asked, needed = math.ceil(3 * math.log(1e5) / 1e-4), math.ceil(math.log(2e5) / 2e-4)
    yield Erratum(
        where="003 Proposition 8",
        says="exp(-mδ²/3), by Chernoff-Hoeffding",
        correct="that bound is 2 exp(-2mδ²). The printed one follows from it from mδ² = .416 on, and is used at 50",
        quantity="chance that the mean of 3 fair coins is 1/6 or more off",
        printed=math.exp(-3 * (1 / 6) ** 2 / 3),
        corrected=min(1.0, 2 * math.exp(-2 * 3 * (1 / 6) ** 2)),
        check=float(np.mean(np.abs(coins - 0.5) >= 1 / 6 - 1e-9)),
        within=0.0,
        how="200,000 times three coins",
        relation="<=",
        by="arithmetic",
        kind="not the cited inequality, safe where used",
        besides=f"samples for .01 at 99.999%: printed {asked:,}, Hoeffding {needed:,}",
    )


def appendix_h(rng: np.random.Generator) -> Iterator[Erratum]:
    """By the triangle inequality the conversion of Remark 13 costs a factor of 2.

    Game OIG lets the attacker pick both records: if their gradients are opposite, he beats the number that was not
    converted.
    """
    training, runs = DPSGD(noise_multiplier=1.0, sampling_rate=0.01, steps=1000), 10_000
    first, second = (
        np.concatenate(list(replacement_game(sign, runs=runs, rate=0.01, steps=1000, rng=rng)))
        for sign in (1, -1)
    )
    added = theory.total_variation(training, adjacency="add-remove").value
    yield Erratum(
        where="003 Theorem 6 against Appendix H",
        says="the bound of Theorem 6, for a record added, beside games that replace one",
        correct="convert it first, as Remark 13 says one can (twice it), or take the bound for replaced records",
        quantity="advantage in the replacement game, q = .01, σ = 1, T = 1,000",
        printed=added,
        corrected=theory.total_variation(training, adjacency="replace-one").value,
        check=float(np.mean(first > 0) - np.mean(second > 0)),
        within=4.5 * math.sqrt(2 * 0.24 / runs),
        how=f"one attacker, {runs:,} runs of each world",
        kind="conversion left out",
        besides=f"converted: {2 * added:.3f}, which holds",
    )


def equation_14(rng: np.random.Generator) -> Iterator[Erratum]:
    """The misreading of 001 and 002 again, here with both tails: Appendix G's bound on a precision rests on it."""
    losses = 0.5 + rng.normal(size=_DRAWS)
    yield Erratum(
        where="003 Equation 14",
        says="under (ε, δ)-DP the loss stays within ±ε with probability 1 - δ",
        correct="(ε, δ)-DP does not say so",
        quantity="chance of a loss beyond ±1, two normals 1 apart, which are (1, δ)-private",
        printed=theory.gaussian_delta(1.0, epsilon=1.0),
        corrected=float(special.ndtr(-0.5) + special.ndtr(-1.5)),
        check=float(np.mean(np.abs(losses) > 1)),
        within=five_errors(_DRAWS),
        how=f"{_DRAWS:,} simulated losses",
        by="arithmetic",
    )


def section_5(rng: np.random.Generator) -> Iterator[Erratum]:
    """At the settings given no noise brings the bound below 0.0298."""
    mnist, runs = DPSGD(noise_multiplier=1.5, sampling_rate=0.001, steps=10_000), 4000
    terms = []
    for _ in range(runs // 500):
        x = 1.5 * rng.normal(size=(500, 10_000))
        eta = np.log1p(0.001 * np.expm1((2 * x - 1) / (2 * 1.5**2))).sum(axis=1)
        terms.append(-np.expm1(np.minimum(eta, 0)))
    drawn = np.concatenate(terms)
    one_epoch = theory.total_variation(DPSGD(1.5, 0.001, 1000), adjacency="add-remove").value
    yield Erratum(
        where="003 Section 5, MNIST",
        says="advantage “close to 0.01”",
        correct="not at these settings (q = .001, 10 epochs, noise up to 1.5)",
        quantity="least advantage that can be promised, noise 1.5",
        printed=0.01,
        corrected=theory.total_variation(mnist, adjacency="add-remove").value,
        check=float(np.mean(drawn)),
        within=5 * float(np.std(drawn)) / math.sqrt(runs),
        how=f"{runs:,} simulated runs",
        besides=f"after one epoch: {one_epoch:.4f}",
    )


MEMBERSHIP: tuple[Errata, ...] = (
    algorithm_1,
    footnote_4,
    lemma_5,
    lemma_7,
    appendix_h,
    proposition_8,
    theorem_21,
    equation_14,
    section_5,
)
