"""Errata of Negoescu et al. 2024 ("004"), each with a check that decides."""

import math
from collections.abc import Iterator

import numpy as np
from scipy import optimize

import auditor
from auditor import DPSGD, theory
from experiments.errata_checks import NAMES, Errata, Erratum

__all__ = ["EPSILON_STAR"]


def theorem_3(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """Definition 1 speaks of regions "loss at most tau"; (12) and (13) are about their complements.

    Definition 1 is content with e^eps = 1/0.9 here; (12) asks for infinity, since no member has such a loss.
    """
    even = (np.arange(90_000) + 0.5) / 90_000
    member, population = even, np.concatenate([even, 1 + even[::9]])
    curve = auditor.TradeoffCurve.from_losses(auditor.Losses(member=member, nonmember=population))
    above, seen = member.max(), curve.fpr > 0
    sided = curve.tpr[seen] / curve.fpr[seen], curve.fpr[seen] / np.maximum(curve.tpr[seen], 1e-5)
    with np.errstate(divide="ignore"):
        complements = np.log(np.mean(population > above)) - np.log(np.mean(member > above))
    yield Erratum(
        where="004 Theorem 3",
        says="(12) and (13) follow from Definition 1",
        correct="they need it closed under complements, which “loss at most τ” is not",
        quantity="ε that (10) to (13) ask for, δ = 0, members U(0,1), population .9 U(0,1) + .1 U(1,2)",
        printed=math.log(1 / 0.9),
        corrected=math.inf,  # log((1 - fpr) / fnr)
        check=float(complements),
        within=0.0,
        how="evenly spread losses, above the members' largest",
        by="arithmetic",
        besides=f"Definition 1 on these records: e^ε = {np.max(sided):.3f}",
    )


def theorem_4(rng: np.random.Generator) -> Iterator[Erratum]:
    """The proof puts a fresh record in the place of one of D, and takes the right side's mean for that over P.

    That asks that record and fresh one can change places without changing the law of both sets: D drawn independently from
    P, or as a simple random sample of a finite P. Nothing says so. A training that ignores its data is 0-DP whatever D is.
    """
    draws, n = 100_000, 20
    share = float(
        np.mean(rng.random((draws, n)) < 0.9)
    )  # of records with a loss of at most 1, D drawn from P
    yield Erratum(
        where="004 Theorem 4",
        says="the ε̄ of (14) and (15) is a lower bound of the training's ε, for “the randomness producing” D",
        correct="if D's records and a fresh one are exchangeable (D drawn from the population); a training set"
        " collected otherwise makes ε̄ positive without any leakage",
        quantity="ε̄ of a training that ignores its data, δ = 0: D all from U(0,1), population .9 U(0,1) + .1 U(1,2)",
        printed=math.log(1 / 0.9),
        corrected=0.0,
        check=math.log(share / 0.9),
        within=5 * math.sqrt(0.1 / (0.9 * draws * n)),
        how=f"(15) at “loss at most 1”, {draws:,} training sets of {n} drawn from the population",
        by="arithmetic",
        kind="needs a premise",
    )


def theorem_1(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """The two inequalities are each other's mirror image, so every formula is unaffected."""
    yield Erratum(
        where="004 Theorem 1",
        says="the FNR is the Type I error",
        correct="the names clash with Section 3; the formulas stand",
        quantity="ε at error rates .001 and .8, δ = .001",
        printed=math.log((1 - 0.001 - 0.8) / 0.001),
        corrected=math.log((1 - 0.8 - 0.001) / 0.001),
        check=optimize.brentq(
            lambda e: min(0.001 + math.exp(e) * 0.8, 0.8 + math.exp(e) * 0.001) - 0.999, 0, 20
        ),
        within=1e-9,
        how="both inequalities solved numerically",
        by="arithmetic",
        expected=NAMES,
    )


def section_4_1(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """The optimiser clips the mean gradient of a microbatch; one record more can turn it from side to side of the ball.

    So it moves the sum by up to 2C, and the noise counts half, with the other records' places fixed. (Grouped by position,
    an added record shifts every later microbatch, too.) `printed` is what the library's accountant of version 0.5.1
    implies; its later `compute_dp_sgd_privacy_statement` doubles the sensitivity.
    """
    others = np.full(15, -1.0)
    together = [np.clip(group.mean(), -1, 1) for group in (np.append(others, 1000.0), others)]
    each = [np.clip(group, -1, 1).sum() for group in (np.append(others, 1000.0), others)]
    n = 32_561
    rate, passes, delta = 512 / n, round(10 * n / 512), 1 / (n * math.log(n))
    sigma = theory.noise_multiplier_for(
        theory.WantedEpsilon(1.0, delta=delta), sampling_rate=rate, steps=passes
    ).value
    true = theory.epsilon(DPSGD(sigma / 2, rate, passes), delta=delta).value
    yield Erratum(
        where="004 Section 4.1, microbatches",
        says="DP-SGD with microbatches of several records, accounted as if of one",
        correct="their sensitivity is 2C, so the noise counts half: every DP model of the grid",
        quantity="how far one record added to a microbatch of 15 moves the sum, in clipping norms",
        printed=1.0,
        corrected=2.0,
        check=float(together[0] - together[1]),
        within=1e-12,
        how=f"gradients in one dimension; each record clipped by itself: {each[0] - each[1]:.0f}",
        by="arithmetic",
        besides=f"trained to ε = 1 (batch 512, 10 passes), {math.ceil(100 * true) / 100:.2f} is provable, Poisson"
        " sampling assumed",
    )


def abstract(rng: np.random.Generator) -> Iterator[Erratum]:  # noqa: ARG001
    """What is not negative cannot fall by more than 100%."""
    yield Erratum(
        where="004 abstract",
        says="“reduced by up to 800%”",
        correct="a factor of 8: a reduction by 87.5%",
        quantity="reduction from 8 to 1, in per cent",
        printed=800.0,
        corrected=100 * (1 - 1 / 8),
        check=100 * (8.0 - 1.0) / 8.0,
        within=1e-12,
        how="arithmetic",
        by="arithmetic",
    )


EPSILON_STAR: tuple[Errata, ...] = (theorem_1, theorem_3, theorem_4, section_4_1, abstract)
