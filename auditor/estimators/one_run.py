"""``epsilon_bound.one_run``: a lower bound on the training mechanism's epsilon from one trained model.

It needs to know how membership was decided, and refuses otherwise. Which test judges the guesses is a choice; each
holds its level for any mechanism and any score.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from auditor.core import options
from auditor.core.numbers import about
from auditor.core.values import Estimate, Losses, Subject
from auditor.curves.tradeoff import TradeoffCurve
from auditor.estimators import guess_tests
from auditor.estimators.certified import clopper_pearson
from auditor.estimators.evidence import Evidence
from auditor.estimators.guesses import Guesses, GuessSet, NoGuesses, draw_guesses
from auditor.estimators.limits import upper_limit
from auditor.records.labels import PersonsFound, claim_reason


def mechanism_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the estimates about the training algorithm under the declared split."""
    claim, test = evidence.audited, _chosen(evidence)
    result = bound_of(
        evidence.fair_guesses if isinstance(test, options.FDP) else evidence.draw_guesses(thin=False),
        test=test,
        delta=stated_delta(evidence),
        confidence=round(1 - errors_at_delta_0(evidence)[0], 12),
        curve=evidence.promised,
        claimed=None if claim is None else claim.value,
    )
    return (of_units(result, evidence),)


def _chosen(evidence: Evidence) -> options.OneRunTest:
    """Return the test of an audit; a claim without a finite epsilon at delta 0 is judged by its whole curve there."""
    claim, test = evidence.audited, evidence.setting.one_run_test
    whole = claim is not None and not math.isfinite(math.inf if claim.value is None else claim.value)
    return options.FDP() if test is None and whole else _test(test, stated_delta(evidence))


OF_BETS = 1 / 5  # of the error of two tests at delta 0


def errors_at_delta_0(evidence: Evidence) -> tuple[float, float]:
    """Return the error of the test of the guesses, and that of bets on learnt guesses (`auditor.estimators.adaptive`).

    The bets have a bound at delta 0. Where the guesses are tested there as well, both bounds hold together: the bets, which need
    much evidence anyway, have a fifth of the error.
    """
    alpha = 1 - evidence.setting.confidence
    # By the recursion too, if it was chosen for a claim at delta 0.
    at_none = isinstance(evidence.setting.one_run_test, options.FDP) and stated_delta(evidence) == 0
    if not (at_none or isinstance(_chosen(evidence), options.AnyGuesses)):
        return alpha, alpha
    return (1 - OF_BETS) * alpha, OF_BETS * alpha


def _test(test: options.OneRunTest | None, delta: float) -> options.OneRunTest:
    """Return the chosen test, or the strongest that fits."""
    if test is None:
        return options.FDP() if delta else options.AnyGuesses()
    return test


def stated_delta(evidence: Evidence) -> float:
    """Return the delta that a bound on the training algorithm is stated at: that of the audited claim, if it has one."""
    claim = evidence.audited
    return evidence.setting.delta if claim is None or claim.delta is None else claim.delta


def of_units(estimate: Estimate, evidence: Evidence) -> Estimate:
    """Return a number about the training algorithm with the consequences of the units of the audit."""
    if isinstance(evidence.setting.split, options.NO_CHANCE):
        return estimate
    units, refusal = evidence.inputs.units, evidence.refusal
    about = claim_reason(units, evidence.setting.claim)
    details = dict(estimate.details)
    if refusal is not None:
        details["reason"] = refusal
    elif about is not None:
        details["not_for_claim"] = about
    assumptions = (*estimate.assumptions, *_of_neighbours(units))
    return replace(estimate, details=details, assumptions=assumptions)


def _of_neighbours(units: PersonsFound) -> Iterator[str]:
    """Return the difference between neighbours if a score stands for several rows."""
    if units.combined and units.trained[1] > 1:
        yield "a score stands for a person: neighbours differ in all records of one person"
    elif units.trained[1] > 1:
        yield "a score stands for an id: neighbours differ in all rows of one id"
    elif units.by_id.combined:
        yield "the rows of an id are scorings of one training record (declared, not checked)"
    if units.left_out:
        yield f"{about(len(units.left_out))} people with records in both groups were left out"


_NAME = "epsilon_bound.one_run"
_CURVE_NEEDS_FDP = (
    "a whole claimed curve is judged by the f-DP recursion only; leave the test out, or take FDP()"
)


def one_run_bound(
    losses: Losses,
    *,
    split: options.MembershipSplit,
    delta: float,
    confidence: float = 0.95,
    rng: np.random.Generator,
    test: options.OneRunTest | None = None,
    curve: TradeoffCurve | None = None,
    claimed: float | None = None,
) -> Estimate:
    """Return the lower bound on the mechanism's epsilon that the declared split supports.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided. `RandomSplit` gives the replace-one adjacency, `BernoulliSplit` the
            add/remove adjacency, `UnknownSplit` an estimate without a value and the reason. A stratified
            `RandomSplit` pairs within the strata named by ``losses.group``. Of unequal coins so many are kept for a
            bound at a delta above 0 that the rest are fair; at delta 0 all are guessed by their own odds, which refutes more in simulations.
        delta: In [0, 1).
        confidence: In (0, 1).
        rng: Draws the pairs, breaks ties and thins.
        test: By default `FDP` at a delta above 0 and `AnyGuesses` at 0. The bound of `AnyGuesses` is stated at delta 0
            whatever delta is requested.
        curve: The whole claimed trade-off curve, for the adjacency that the split audits and for both orders of two
            neighbours. With `FDP`, ``details["claimed_curve"]`` says whether the same guesses reject it. That costs
            no further error: whenever one of the two statements is wrong, the mechanism's true curve was rejected.
        claimed: A claimed pure epsilon, whose p-value `AnyGuesses` gives.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024; the orders of guesses, `AnyGuesses`
    and the biased coins are [own], derived where they are computed.

    >>> from auditor.core.options import RandomSplit
    >>> losses = Losses(member=np.linspace(0, 1, 100), nonmember=np.linspace(2, 3, 100))
    >>> estimate = one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=np.random.default_rng(0))
    >>> estimate.value == estimate.details["ceiling"]
    True
    """
    test = _test(test, delta)
    guesses = draw_guesses(losses, split=split, rng=rng, thin=isinstance(test, options.FDP))
    return bound_of(guesses, test=test, delta=delta, confidence=confidence, curve=curve, claimed=claimed)


def bound_of(
    guesses: Guesses | NoGuesses,
    *,
    test: options.OneRunTest,
    delta: float,
    confidence: float,
    curve: TradeoffCurve | None,
    claimed: float | None,
) -> Estimate:
    """Return the bound by guesses that were drawn; see `one_run_bound`."""
    alpha, delta = 1 - confidence, 0.0 if isinstance(test, options.AnyGuesses) else delta
    if isinstance(guesses, NoGuesses):
        method, about = "one-run audit", Subject.MECHANISM
        return Estimate.missing(_NAME, guesses.reason, method=method, subject=about, delta=delta)
    setting = Question(guesses, test, delta, alpha)
    bound, best = setting.bound(guesses.sets)
    top, right = setting.bound(guesses.of_a_perfect_attack)[0], most_right(guesses.sets, alpha=alpha)
    details = {
        **guesses.details,
        "ceiling": top,
        **({"ceiling_of_score": min(top, max(0.0, float(special.logit(right))))} if guesses.fair else {}),
        **best.details,
        "tried": [item.details for item in guesses.sets],
    }
    if isinstance(test, options.AnyGuesses):
        details["pure"] = True
    if curve is not None:
        details["claimed_curve"] = setting.of_curve(curve, refuted=claimed is not None and bound > claimed)
        details["claimed_curve"]["score_could"] = guess_tests.of_curve(curve)(right) > 1 - right
    if claimed is not None and isinstance(test, options.AnyGuesses):
        details["p_value"] = setting.p_value(claimed, bound)
    if claimed is not None and bound <= claimed:
        details["smallest_mu"] = setting.smallest_mu(claimed, curve)
    return Estimate.at_least(
        _NAME,
        bound,
        confidence=round(1 - alpha, 12),
        method=f"one-run audit on {guesses.evidence}; {setting.method}",
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=guesses.adjacency,
        assumptions=guesses.assumptions,
        details=details,
    )


def most_right(sets: Sequence[GuessSet], *, alpha: float) -> float:
    """Return the upper limit of the chance that a guess is right, over all sets at once.

    Of fair coins, guesses that are right with chance p show no epsilon above logit p, however many there are: randomised
    response with that epsilon gives the same guesses, so a test that refuted more would be wrong about it [own]. Nor do they
    refute a curve that passes above its corner, a TPR of p at an FPR of 1 - p.
    """
    return max(float(upper_limit(item.correct, item.guesses, alpha / len(sets))) for item in sets)


# --- Bound on the training algorithm if the scores of the records were independent draws ---


_CONDITION = (
    "conditional on records whose scores are independent draws given who was a member, as those of many runs are: in one run"
    " a shared chance can make it exceed the truth"
)


def order_statistics_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the bound at ranks fixed in advance as a number about the training algorithm, under that condition.

    A mechanism that draws one number for all records is contradicted by it in a fifth of the audits though its claim is
    true, so it refutes nothing.
    """
    if isinstance(evidence.setting.split, options.NO_CHANCE):
        return ()
    rule, delta = options.RankGrid(interval=options.Melded()), stated_delta(evidence)
    name, guesses = "epsilon_bound.order_statistics", evidence.fair_guesses
    about: dict[str, Any] = {"subject": Subject.MECHANISM, "delta": delta}
    if isinstance(guesses, NoGuesses):
        result = Estimate.missing(name, guesses.reason, method=_GRID, details={"conditional": True}, **about)
    else:
        base = clopper_pearson(
            evidence.losses, delta=delta, confidence=evidence.setting.confidence, rule=rule
        )
        result = replace(
            base,
            name=name,
            method=_GRID,
            adjacency=guesses.adjacency,
            assumptions=(_CONDITION, *guesses.assumptions),
            details={**base.details, "conditional": True},
            **about,
        )
    return (of_units(result, evidence),)


_GRID = "melded Clopper-Pearson limits at ranks fixed in advance; Xiang et al. 2025 for order statistics"


# --- The chosen test of the guesses: all sets of them share the error, or are calibrated together ---


@dataclass(frozen=True, eq=False)
class Question:
    """Guesses, and the test that judges them.

    Attributes:
        guesses: To judge.
        test: By which rule.
        delta: In [0, 1); 0 where the test is `AnyGuesses`.
        alpha: The error of all sets of guesses together, in (0, 1).
    """

    guesses: Guesses
    test: options.OneRunTest
    delta: float
    alpha: float

    @property
    def method(self) -> str:
        """The test in words."""
        if isinstance(self.test, options.FDP):
            return "f-DP recursion, Mahloujifar, Melis and Chaudhuri 2024"
        return "every order and number of guesses, calibrated together"

    def bound(self, sets: Sequence[GuessSet]) -> tuple[float, GuessSet]:
        """Return the largest epsilon that these sets refute, 0 if none, and the set that does.

        Args:
            sets: Those of the guesses, or of a perfect attack on them.
        """
        if isinstance(self.test, options.FDP):
            return guess_tests.fdp_bound(sets, bits=self.guesses.bits, delta=self.delta, alpha=self.alpha)
        return guess_tests.pure_bound(self.guesses, sets, alpha=self.alpha)

    def p_value(self, claimed: float, bound: float) -> float:
        """Return the p-value of a claimed pure epsilon; where the bound does not exceed it, also of the sets kept first."""
        if math.isinf(claimed):
            return 1.0
        # That of the next epsilon of the grid, or not below that of the first that was kept: on the bound's side of the level.
        step, sets = guess_tests.pure_step(self.guesses.bits), self.guesses.sets
        epsilons = (math.ceil(claimed / step) * step,) if bound > claimed else (claimed, bound + step)
        return max(
            guess_tests.pure_p_value(self.guesses, sets, epsilon=item, alpha=self.alpha) for item in epsilons
        )

    def of_curve(self, curve: TradeoffCurve, *, refuted: bool) -> dict[str, Any]:
        """Return whether the guesses reject a whole claimed curve, and whether a perfect attack would have.

        Args:
            curve: For both orders of two neighbours.
            refuted: Whether their bound exceeds the claim's epsilon: by the same recursion no less of it is then refuted.
        """
        if not isinstance(self.test, options.FDP):
            return {"rejected": None, "reason": _CURVE_NEEDS_FDP}
        smallest_fpr, bits = guess_tests.of_curve(curve), self.guesses.bits
        sets, perfect = self.guesses.sets, self.guesses.of_a_perfect_attack
        p_value, best = (
            guess_tests.curve_p_value(smallest_fpr, bits=bits, sets=items) for items in (sets, perfect)
        )
        p_value = min(p_value, self.alpha) if refuted else p_value
        result: dict[str, Any] = {
            "rejected": p_value <= self.alpha,
            "could_have_been": best <= self.alpha,
            "p_value": p_value,
        }
        if best > self.alpha:
            result["needed"] = pairs_needed(smallest_fpr, alpha=self.alpha / len(sets))
        return result

    def smallest_mu(self, claimed: float, curve: TradeoffCurve | None) -> float | None:
        """Return from which mu on normal scores, ``mu`` standard deviations apart, refute the claim in 80% of such audits.

        None where none do. By the best set of guesses alone, so it is a little too large. A guess is right where Z + a > 0, Z
        standard normal, with a = mu / sqrt(2) for the difference of a pair and a = mu / 2 for a coin's distance from the
        middle. The most confident share s of all has |Z + a| > t, and p of these are right: s p = Phi(a - t) and
        s (1 - p) = Phi(-a - t), so a is half of Phi^-1(s p) - Phi^-1(s (1 - p)) [own]. The p with which so many of r
        guesses as the test needs are right in 80% is a quantile of a beta law.
        """
        if not (self.guesses.fair and math.isfinite(claimed)):
            return None
        sets, bits, result = self.guesses.sets, self.guesses.bits, []
        coins, share = self.guesses.adjacency is options.Adjacency.ADD_REMOVE, self.alpha / len(sets)
        fpr = (
            guess_tests.of_curve(curve) if curve else guess_tests.of_epsilon_delta(claimed, delta=self.delta)
        )

        def enough(size: int, correct: int) -> bool:
            if isinstance(self.test, options.FDP):
                return guess_tests.rejects(fpr, bits=bits, guesses=size, correct=correct, alpha=share)
            return bool(special.bdtrc(correct - 1, size, special.expit(claimed)) <= share)

        for size, part in {item.guesses: item.share for item in sets}.items():
            # Of all coins half are guessed "in", however many are.
            if not (coins and part == 1) and enough(size, size):
                needed = guess_tests.first_enough(partial(enough, size), 0, size)
                right = float(special.betaincinv(needed, size - needed + 1, _OFTEN))
                result.append(float(special.ndtri(part * right) - special.ndtri(part * (1 - right))) / 2)
        return (2.0 if coins else math.sqrt(2)) * min(result) if result else None


_MOST_PAIRS, _OFTEN = 10**7, 0.8


def pairs_needed(smallest_fpr: guess_tests.SmallestFpr, *, alpha: float) -> int | None:
    """Return how many coins a perfect attack would have to guess to have the curve rejected; None if ten million do not.

    Args:
        smallest_fpr: finv of the curve.
        alpha: The error of one set of guesses.
    """

    def enough(bits: int) -> bool:
        return guess_tests.rejects(smallest_fpr, bits=bits, guesses=bits, correct=bits, alpha=alpha)

    return guess_tests.first_enough(enough, 0, _MOST_PAIRS) if enough(_MOST_PAIRS) else None
