"""``epsilon_bound.one_run``: a lower bound on the training mechanism's epsilon from one trained model.

It needs to know how membership was decided, and refuses otherwise. Which test judges the guesses is a choice; each
holds its level for any mechanism and any score.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor import _validate
from auditor.choices import FDP, Adjacency, AnyGuesses, MembershipSplit, OneRunTest, Steinke
from auditor.estimators import f_dp
from auditor.estimators.any_guesses import any_guesses_bound
from auditor.estimators.guesses import Guesses, NoGuesses, draw_guesses, numbers_of_guesses
from auditor.estimators.steinke import biased_bound, steinke_bound
from auditor.tradeoff import TradeoffCurve
from auditor.values import Estimate, Losses, Subject

__all__ = ["one_run"]

_NAME = "epsilon_bound.one_run"
_PURE = "pure epsilon: the bound is stated at delta 0 whatever delta the audit has, and judges no claim at a larger delta"
_FAIR_ONLY = (
    "the f-DP recursion is proven for inclusion coins of probability 0.5 only, not {inclusion:g}; take the test of"
    " Steinke et al. or the one over every number of guesses"
)
_CURVE_NEEDS_FDP = "a whole claimed curve is judged by the f-DP recursion only; choose that test"


@dataclass(frozen=True)
class _Judged:
    """What one test makes of the guesses: the rows it tried, and what a perfect attack would have shown."""

    tried: list[dict[str, Any]]
    ceiling: float
    delta: float
    method: str
    assumptions: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)


def one_run(
    losses: Losses,
    *,
    split: MembershipSplit,
    delta: float,
    confidence: float = 0.95,
    rng: np.random.Generator,
    test: OneRunTest = Steinke(),  # noqa: B008 - a frozen value
    curve: TradeoffCurve | None = None,
) -> Estimate:
    """Return the lower bound on the mechanism's epsilon that the declared split supports.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided. `RandomSplit` gives the replace-one adjacency, `BernoulliSplit` the
            add/remove adjacency, `UnknownSplit` an estimate without a value and the reason. A stratified
            `RandomSplit` pairs within the strata named by ``losses.group``.
        delta: In [0, 1). The bound of `AnyGuesses`, and that of `Steinke` on a `BernoulliSplit`, is stated at delta 0
            whatever is asked.
        confidence: In (0, 1).
        rng: Draws the pairs and breaks ties.
        test: `Steinke` (default), `FDP` (of inclusion coins only fair ones) or `AnyGuesses`.
        curve: The whole claimed trade-off curve, for the adjacency that the split audits and for both orders of two
            neighbours. With `FDP`, ``details["claimed_curve"]`` says whether the same guesses reject it. That costs
            no further error: whenever one of the two statements is wrong, the mechanism's true curve was rejected.

    Raises:
        InputError: delta outside [0, 1), confidence outside (0, 1), or a test that is not one.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024; `AnyGuesses` and the biased coins
    are [own], derived where they are computed.

    >>> from auditor.choices import RandomSplit
    >>> losses = Losses(member=np.linspace(0, 1, 100), nonmember=np.linspace(2, 3, 100))
    >>> estimate = one_run(losses, split=RandomSplit(), delta=1e-5, rng=np.random.default_rng(0))
    >>> estimate.value == estimate.details["ceiling"]
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    alpha = 1 - _validate.confidence(confidence)
    _validate.instance("test", test, (Steinke, FDP, AnyGuesses))
    guesses = draw_guesses(losses, split=split, rng=rng)
    if isinstance(guesses, NoGuesses):
        return _without_value(delta, guesses.reason)
    if isinstance(test, FDP) and not guesses.fair:
        return _without_value(delta, _FAIR_ONLY.format(inclusion=guesses.inclusion))
    judged = _judge(guesses, test, delta, alpha, curve)
    if curve is not None and not isinstance(test, FDP):
        judged.details["claimed_curve"] = {"rejected": None, "reason": _CURVE_NEEDS_FDP}
    best = max(judged.tried, key=lambda row: row["bound"])
    return Estimate(
        name=_NAME,
        value=best["bound"],
        lower=best["bound"],
        upper=None,
        confidence=round(1 - alpha, 12),
        method=f"one-run audit on {guesses.evidence}; {judged.method}",
        subject=Subject.MECHANISM,
        delta=judged.delta,
        adjacency=guesses.adjacency,
        assumptions=(*judged.assumptions, *guesses.assumptions),
        details={
            **guesses.details,
            "ceiling": judged.ceiling,
            "guesses": best["guesses"],
            "correct": best["correct"],
            "tried": judged.tried,
            **judged.details,
        },
    )


def _without_value(delta: float, reason: str) -> Estimate:
    return Estimate(
        name=_NAME,
        value=None,
        lower=None,
        upper=None,
        confidence=None,
        method="one-run audit",
        subject=Subject.MECHANISM,
        delta=delta,
        details={"reason": reason},
    )


def _judge(
    guesses: Guesses, test: OneRunTest, delta: float, alpha: float, curve: TradeoffCurve | None
) -> _Judged:
    match test:
        case AnyGuesses():
            return _any_number(guesses, alpha)
        case FDP():
            return _f_dp(guesses, delta, alpha, curve)
        case _:
            coins = guesses.adjacency is Adjacency.ADD_REMOVE
            return _biased(guesses, alpha) if coins else _steinke(guesses, delta, alpha)


def _steinke(guesses: Guesses, delta: float, alpha: float) -> _Judged:
    bits = guesses.right.size

    def bound(r: int, v: int, share: float) -> float:
        return steinke_bound(bits=bits, guesses=r, correct=v, delta=delta, alpha=share)

    return _judged(guesses, alpha, bound, delta, "Steinke, Nasr and Jagielski 2023, Theorem 5.2")


def _biased(guesses: Guesses, alpha: float) -> _Judged:
    def bound(r: int, v: int, share: float) -> float:
        in_and_out = r // 2, r - r // 2
        return biased_bound(guesses=in_and_out, correct=v, inclusion=guesses.inclusion, alpha=share)

    return _judged(guesses, alpha, bound, 0.0, "Poisson-binomial form of Steinke, Nasr and Jagielski 2023")


def _f_dp(guesses: Guesses, delta: float, alpha: float, curve: TradeoffCurve | None) -> _Judged:
    bits = guesses.right.size

    def bound(r: int, v: int, share: float) -> float:
        return f_dp.epsilon_bound(bits=bits, guesses=r, correct=v, delta=delta, alpha=share)

    judged = _judged(guesses, alpha, bound, delta, "f-DP recursion, Mahloujifar, Melis and Chaudhuri 2024")
    if curve is not None:
        judged.details["claimed_curve"] = _claimed_curve(curve, judged.tried, bits, alpha)
    return judged


def _claimed_curve(
    curve: TradeoffCurve, tried: list[dict[str, Any]], bits: int, alpha: float
) -> dict[str, Any]:
    """Whether any of the numbers of guesses refutes the whole curve, and the first that does."""
    smallest_fpr, share = f_dp.of_curve(curve), alpha / len(tried)
    for row in tried:
        r, v = row["guesses"], row["correct"]
        if f_dp.rejects(smallest_fpr, bits=bits, guesses=r, correct=v, alpha=share):
            return {"rejected": True, "guesses": r, "correct": v}
    perfect = any(
        f_dp.rejects(smallest_fpr, bits=bits, guesses=row["guesses"], correct=row["guesses"], alpha=share)
        for row in tried
    )
    return {"rejected": False, "could_have_been": perfect}


def _any_number(guesses: Guesses, alpha: float) -> _Judged:
    prior = guesses.inclusion / (1 - guesses.inclusion)
    odds = (1.0,) if guesses.fair else (1 / prior, prior)  # "out" and "in" guesses in turn
    found, perfect = (
        any_guesses_bound(right, alpha=alpha, odds=odds)
        for right in (guesses.right, np.ones_like(guesses.right))
    )
    row = {"guesses": found.guesses, "correct": found.correct, "bound": found.bound}
    method = "e-process over every number of guesses"
    return _Judged([row], perfect.bound, 0.0, method, assumptions=(_PURE,))


def _judged(
    guesses: Guesses, alpha: float, bound: Callable[[int, int, float], float], delta: float, method: str
) -> _Judged:
    """Every number of guesses of the fixed list, at its share of the error."""
    numbers = numbers_of_guesses(guesses.right.size)
    share = alpha / len(numbers)
    tried = [
        {"guesses": r, "correct": guesses.correct(r), "bound": bound(r, guesses.correct(r), share)}
        for r in numbers
    ]
    return _Judged(tried, max(bound(r, r, share) for r in numbers), delta, method)
