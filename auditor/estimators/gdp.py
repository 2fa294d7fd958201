"""``epsilon_bound.gdp`` and ``epsilon_bound.one_run_gdp``: consequences of the guesses if the trade-off curve is Gaussian.

mu-Gaussian DP says Phi^-1(1 - FPR) - Phi^-1(FNR) <= mu at every threshold, so upper limits of both rates give

    mu_L = Phi^-1(1 - FPR_U) - Phi^-1(FNR_U),

and one mu stands for an epsilon at every delta. Erratum to the lecture slides "Gaussian DP and Privacy Auditing"
(CSCI 699, week 4), which put the lower limit of the second rate there: both limits must be upper ones. On curves that
are not Gaussian the epsilon can exceed the truth, so both numbers are labelled conditional and refute no claim.
"""

from typing import Any

import numpy as np
from scipy import special

from auditor.core.facts import Tail
from auditor.core.options import NO_CHANCE, Census, Coverage, Sample
from auditor.core.values import Estimate, Losses, Subject
from auditor.estimators import guess_tests
from auditor.estimators.evidence import Evidence
from auditor.estimators.exact_test import Hits
from auditor.estimators.guesses import Guesses, GuessSet, NoGuesses
from auditor.estimators.limits import threshold_at, upper_limit
from auditor.estimators.melding import Ranked, ranks
from auditor.estimators.one_run import of_units, stated_delta
from auditor.theory.gaussian import gaussian_epsilon

GDP = "epsilon_bound.gdp"
_CONDITION = "conditional on a Gaussian trade-off curve: on other scores it can exceed the truth"
NO_EPSILON = "a Gaussian trade-off curve has no finite epsilon at delta 0; give a delta above 0"


# The largest certified mu, that of a perfect attack, and the details of the first.
_Result = tuple[float, float, dict[str, Any]]


def gaussian_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the epsilon that the audited losses imply if their trade-off curve is Gaussian."""
    return (model_gdp(evidence.losses, **evidence.setting.of_model),)


def gaussian_mechanism_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the same for the training algorithm, only where it was declared how membership was decided."""
    setting = evidence.setting
    if isinstance(setting.split, NO_CHANCE):
        return ()
    result = gdp_of_guesses(evidence.fair_guesses, stated_delta(evidence), 1 - setting.confidence)
    return (of_units(result, evidence),)


def model_gdp(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    coverage: Coverage = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the epsilon of this model's losses at ``delta`` if their trade-off curve were Gaussian.

    mu_L is the largest over thresholds at ranks fixed before the data are seen, in both tails, with a union bound.

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1); at 0 there is no value, and the reason says why.
        confidence: In (0, 1).
        coverage: Scored part of the members. A finite training set has no Gaussian curve, so a `Census` too counts as
            a draw from one.

    Source: Nasr et al. 2023, Section 4, over the rank grid [own].

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 5000), nonmember=rng.normal(0, 1, 5000))
    >>> estimate = model_gdp(losses, delta=1e-5)
    >>> 0.7 < estimate.details["mu"] < 1
    True
    """
    alpha = 1 - confidence
    scored = (
        "every training record was scored, as a draw from that curve"
        if isinstance(coverage, Census)
        else "the scored members are a random sample of the training set"
    )
    return _estimate(
        _over_the_grid(losses, alpha),
        delta=delta,
        confidence=1 - alpha,
        name=GDP,
        method="Gaussian trade-off curve through Clopper-Pearson limits on the rank grid; Nasr et al. 2023",
        subject=Subject.MODEL,
        assumptions=(
            "records within each group are independent draws",
            "membership labels are right",
            scored,
        ),
    )


def gdp_of_guesses(guesses: Guesses | NoGuesses, delta: float, alpha: float) -> Estimate:
    """Return the training mechanism's epsilon at ``delta`` if its trade-off curve were Gaussian.

    That the mechanism is not mu-Gaussian-DP for any mu below mu_L is certified; its epsilon is not.

    Args:
        guesses: About fair coins; without them there is no value.
        delta: In [0, 1); at 0 there is no value, and the reason says why.
        alpha: The error, in (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024.

    >>> from auditor.core.options import RandomSplit
    >>> from auditor.estimators.guesses import draw_guesses
    >>> losses = Losses(member=np.linspace(0, 1, 100), nonmember=np.linspace(2, 3, 100))
    >>> guesses = draw_guesses(losses, split=RandomSplit(), rng=np.random.default_rng(0))
    >>> estimate = gdp_of_guesses(guesses, 1e-5, 0.05)
    >>> estimate.value == estimate.details["ceiling"]
    True
    """
    evidence = guesses.evidence if isinstance(guesses, Guesses) else "membership coins"
    header: dict[str, Any] = {
        "name": "epsilon_bound.one_run_gdp",
        "method": f"f-DP recursion for Gaussian curves on {evidence}; Mahloujifar, Melis and Chaudhuri 2024",
        "subject": Subject.MECHANISM,
        "delta": delta,
    }
    if isinstance(guesses, NoGuesses):
        return Estimate.missing(**header, reason=guesses.reason, details={"conditional": True})
    share, bits = alpha / len(guesses.sets), guesses.bits

    def refuted(item: GuessSet, mu: float) -> bool:
        curve = guess_tests.of_gdp(mu)
        return guess_tests.rejects(curve, bits=bits, guesses=item.guesses, correct=item.correct, alpha=share)

    (mu, best), (perfect, _) = (
        guess_tests.largest_by_any(sets, refuted, guess_tests.LARGEST_MU)
        for sets in (guesses.sets, guesses.of_a_perfect_attack)
    )
    return _estimate(
        (mu, perfect, {**guesses.details, **best.details}),
        confidence=1 - alpha,
        adjacency=guesses.adjacency,
        assumptions=guesses.assumptions,
        **header,
    )


def _over_the_grid(losses: Losses, alpha: float) -> _Result:
    """Return the largest mu over the ranks of both tails; see `auditor.estimators.certified` for the limits."""
    hits, perfect = (
        Hits.of(losses, ranks),
        Hits.perfect(losses.n_member, losses.n_nonmember, ranks),
    )
    level = alpha / (2 * sum(tail.ranks.size for tail in hits))
    mu, tail, at, limits = max((_largest_mu(tail, level) for tail in hits), key=lambda item: item[0])
    rank = int(tail.ranks[at])
    fpr, fnr = limits if tail.name == Tail.LOWER else limits[::-1]
    details = {
        "tail": tail.name,
        "rank": rank,
        "threshold": threshold_at(losses, tail.name, rank),
        "fpr_upper": fpr,
        "fnr_upper": fnr,
        "level_per_limit": level,
    }
    return mu, max(_largest_mu(tail, level)[0] for tail in perfect), details


def _largest_mu(tail: Ranked, level: float) -> tuple[float, Ranked, int, tuple[float, float]]:
    """Return the largest mu of a tail, the tail, the place, and the upper limits of the errors at the rank and of the others'."""
    limits = [
        upper_limit(tail.ranks, tail.ranked, level),
        upper_limit(tail.others - tail.hits, tail.others, level),
    ]
    # Phi^-1(1 - FPR) - Phi^-1(FNR), as two lower tails so that small rates keep their digits.
    mu = -special.ndtri(limits[0]) - special.ndtri(limits[1])
    at = int(np.argmax(mu))
    return float(mu[at]), tail, at, (float(limits[0][at]), float(limits[1][at]))


def _estimate(
    result: _Result, *, delta: float, confidence: float, assumptions: tuple[str, ...], **header: Any
) -> Estimate:
    mu, perfect = max(0.0, result[0]), max(0.0, result[1])
    details = {"mu": mu, "ceiling_mu": perfect, "conditional": True, **result[2]}
    if delta == 0:
        return Estimate.missing(**header, reason=NO_EPSILON, delta=delta, details=details)
    return Estimate.at_least(
        bound=gaussian_epsilon(mu, delta=delta),
        **header,
        confidence=round(confidence, 12),
        delta=delta,
        assumptions=(_CONDITION, *assumptions),
        details={**details, "ceiling": gaussian_epsilon(perfect, delta=delta)},
    )
