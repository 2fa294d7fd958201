"""Tests of a claim's whole curve by many runs: every threshold at once, or bets that hold at any time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.values import Estimate, Losses, Subject
from auditor.curves.tradeoff import TradeoffCurve
from auditor.estimators import betting, joint_test
from auditor.estimators.betting import Bets, Lines
from auditor.estimators.exact_test import CalibratedTest, Hits, Statistic
from auditor.estimators.guess_tests import first_enough
from auditor.theory.accountant import ClaimedCurve, claimed_curve

ORDER_STATISTICS, SEQUENTIAL = "epsilon_bound.order_statistics", "epsilon_bound.sequential"

# --- How the number of runs came about: two values ---


@dataclass(frozen=True)
class FixedNumber:
    """The number of runs was fixed before anybody looked at a score.

    The joint test then looks at every threshold at once, with all of the error: no run is spent on choosing one.
    """


@dataclass(frozen=True)
class Sequential:
    """Runs may stop at any time: the evidence holds however often it is looked at.

    Bets on pairs of runs, one with the canary and one without, in the order of their numbers, which was fixed before they
    ran; see `auditor.estimators.betting`. As ``stop`` of `auditor.collect_runs` it needs the claim, and as ``test`` of
    `auditor.audit_runs` it takes that of the audit.

    Attributes:
        claim: Claim about the training; None if the audit says it.
        confidence: At which the claim is to be refuted, in (0, 1); the audit has its own.
        adjacency: Difference between the two worlds.

    Raises:
        InputError: Something else than a claim, a confidence or an adjacency.

    >>> Sequential(options.StatedClaim(1.0, 1e-5)).watch().in_words()
    'evidence 1 of 20'
    """

    claim: options.TrainingClaim | None = None
    confidence: float = 0.95
    adjacency: options.Adjacency = options.Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        validate.instance("claim", self.claim, (*get_args(options.TrainingClaim), type(None)))
        validate.confidence(self.confidence)
        object.__setattr__(self, "adjacency", options.Adjacency.named(self.adjacency))

    def watch(self) -> "Watch":
        """Return fresh evidence, to be fed with pairs of runs in the order of their numbers.

        Raises:
            InputError: There is no claim, or it has no curve for these neighbours.
        """
        if self.claim is None:
            needs = "stop=Sequential() needs the claim that the evidence is against"
            raise InputError(f"{needs}; give Sequential(claim=...).")
        curve = claimed_curve(self.claim, adjacency=self.adjacency)
        if curve.curve is None:
            raise InputError(f"runs cannot be stopped by evidence against this claim: {curve.note}.")
        return Watch(Bets(Lines.of_curve(curve.curve)), 1 - self.confidence)


RunsTest = FixedNumber | Sequential
RUNS_TESTS: dict[str, Callable[..., RunsTest]] = {"fixed-number": FixedNumber, "sequential": Sequential}


class Watch:
    """The evidence of a collection that is under way."""

    def __init__(self, bets: Bets, alpha: float) -> None:
        self._bets, self._needed = bets, -math.log(alpha)

    def add(self, with_canary: float, without: float) -> bool:
        """Add one pair, and return whether the claim is refuted."""
        self._bets.add(with_canary, without)
        return self._bets.most >= self._needed

    @property
    def evidence(self) -> float:
        """The largest evidence so far: 1 over it is a p-value of the claim at any time."""
        return math.exp(min(self._bets.most, 700.0))

    def in_words(self) -> str:
        """Return how far the evidence has grown, as a phrase."""
        return f"evidence {self.evidence:,.3g} of {math.exp(self._needed):,.3g}"


# --- The row that judges: a bound on epsilon for reading, and the claimed curve's p-value and e-value for the verdict ---


def judging_row(
    losses: Losses,
    *,
    test: RunsTest,
    promised: ClaimedCurve | None,
    claimed: float,
    one_point: bool,
    delta: float,
    confidence: float,
    adjacency: options.Adjacency,
    declared: tuple[str, ...],
) -> Estimate:
    """Return the row that judges the claim.

    Args:
        losses: The scores of all runs.
        test: Rule for the number of runs.
        promised: The claimed curve for the worlds that were run, or why there is none; None without a claim.
        claimed: The epsilon that the claim has for these worlds at this delta; infinite where it has none.
        one_point: Whether that is all that the claim says of these worlds.
        delta: At which the bound is stated.
        confidence: In (0, 1).
        adjacency: Difference between the two worlds.
        declared: Assumptions of every row of the audit.
    """
    alpha = 1 - confidence
    curve = None if promised is None else promised.curve
    if isinstance(test, Sequential):
        name, method = SEQUENTIAL, "bets on pairs of runs in the order of their numbers; Ville's inequality"
        assumed = (
            "the order of the runs was fixed before they ran, and none was left out (declared, not checked)"
        )
        numbers = _by_bets(losses, delta, curve, alpha)
    else:
        name, method = ORDER_STATISTICS, "every threshold at once, both tails calibrated together"
        assumed = "the number of runs was fixed before anybody looked at a score (declared, not checked)"
        numbers = _by_all_thresholds(losses, delta, curve, alpha, stated=claimed if one_point else None)
    if promised is not None and curve is None:
        numbers["claimed_curve"] = {"rejected": None, "reason": promised.note}
    elif promised is not None and not numbers["claimed_curve"]["rejected"]:
        # The test of the curve decides: another test's bound, which is as true below, does not stand above a claim it keeps.
        numbers["value"] = min(numbers["value"], claimed)
    return Estimate.at_least(
        name,
        numbers.pop("value"),
        confidence=confidence,
        method=method,
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=adjacency,
        assumptions=(assumed, *declared),
        details={"unit": "runs", "runs": [losses.n_member, losses.n_nonmember], **numbers},
    )


_EXACT = 10_000  # runs of a world up to which the exact bound takes a second or two
_SMALL = 1e-8  # a level that the exact test hardly distinguishes from none


def _by_all_thresholds(
    losses: Losses, delta: float, curve: TradeoffCurve | None, alpha: float, *, stated: float | None
) -> dict[str, Any]:
    sizes = losses.n_member, losses.n_nonmember
    law, drawn = Statistic(*sizes, delta, alpha), max(sizes) > _EXACT or alpha <= _SMALL
    own, best = (CalibratedTest(hits, law, drawn) for hits in (Hits.of(losses), Hits.perfect(*sizes)))
    bound: dict[str, Any] = {"value": own.epsilon_bound, "ceiling": best.epsilon_bound}
    if curve is None:
        return bound
    test = joint_test.of_curve(*sizes, curve)
    if stated is None:
        p_value, at_best = (
            test.p_value_of(hits, alpha=alpha) for hits in (test.observed(losses), test.perfect)
        )
    else:
        p_value, at_best = own.p_value_beside(stated), best.p_value_beside(stated)
    bets, point = _in_random_order(losses, curve), test.point(test.observed(losses))
    decision = _decided(rejected=p_value <= alpha, possible=at_best <= alpha, p_value=p_value, bets=bets)
    needed = {} if decision["could_have_been"] else {"needed": runs_needed(curve, alpha=alpha)}
    return {**bound, "claimed_curve": {**decision, "point": point, **needed}}


def _decided(*, rejected: bool, possible: bool, p_value: float, bets: Bets) -> dict[str, Any]:
    """Return the result of a test of the claimed curve, as a result stores it."""
    return {
        "decides": True,
        "rejected": rejected,
        "could_have_been": possible,
        "p_value": p_value,
        "e_value": math.exp(min(bets.log_evidence, 700.0)),
    }


_BETS = 2000  # pairs that are bet on where every threshold decides already


def _in_random_order(losses: Losses, curve: TradeoffCurve) -> Bets:
    """Return the bets on runs in an order of our own: that of a table may depend on the scores."""
    bets, rng = Bets(Lines.of_curve(curve)), np.random.default_rng([losses.n_member, losses.n_nonmember])
    pairs = min(losses.n_member, losses.n_nonmember, _BETS)
    bets.add(*(rng.permutation(group)[:pairs] for group in (losses.member, losses.nonmember)))
    return bets


_KEPT = 300  # points of the evidence as it grew


def _by_bets(losses: Losses, delta: float, curve: TradeoffCurve | None, alpha: float) -> dict[str, Any]:
    pairs = _pairs_in_order(losses)
    grid = Bets(betting.grid_lines(delta), together=False)
    grid.add(losses.member, losses.nonmember)
    bound: dict[str, Any] = {
        "value": betting.epsilon_bound(grid.most_of_each, alpha=alpha),
        "pairs": pairs,
        "ceiling": betting.epsilon_ceiling(pairs, delta=delta, alpha=alpha),
    }
    if curve is None:
        return bound
    bets = Bets(Lines.of_curve(curve))
    grown = bets.add(losses.member, losses.nonmember)
    enough = grown >= -math.log(alpha)
    refuted_at = int(enough.argmax()) + 1 if enough.any() else None
    needed = betting.pairs_needed(curve, alpha=alpha)
    at = np.unique(np.linspace(1, pairs, min(pairs, _KEPT)).round().astype(int))
    possible, p_value = needed is not None and pairs >= needed, math.exp(-bets.most)
    decision = _decided(rejected=refuted_at is not None, possible=possible, p_value=p_value, bets=bets)
    decision["refuted_at_pair"] = refuted_at
    decision["growth"] = {"pairs": at.tolist(), "log_evidence": grown[at - 1].tolist()}
    if not possible:
        decision["needed"] = needed and 2 * needed
    return {**bound, "claimed_curve": decision}


_SORTED = 8  # scores that rise or fall all the way by chance in one of 20,000 collections


def _pairs_in_order(losses: Losses) -> int:
    """Return the number of pairs; refused where the scores cannot be all runs in the order of their numbers."""
    if losses.n_member != losses.n_nonmember:
        raise InputError(
            f"losses must be of pairs of runs for test=Sequential(), got {losses.n_member:,} with the canary and"
            f" {losses.n_nonmember:,} without; a run that failed needs a score too, and none may be left out."
        )
    for world, scores in (("with the canary", losses.member), ("without it", losses.nonmember)):
        steps = np.diff(scores)
        if np.unique(scores).size >= _SORTED and ((steps >= 0).all() or (steps <= 0).all()):
            raise InputError(
                f"losses must be in the order of the runs for test=Sequential(), got sorted scores of the runs {world};"
                " give the rows in the order of the runs' numbers, or judge them as a number fixed in advance."
            )
    return losses.n_member


_MOST_RUNS = 2**23
_CALIBRATED = 256  # runs of each world up to which the answer is the calibrated test's, and not about that


def runs_needed(curve: TradeoffCurve, *, alpha: float) -> int | None:
    """Return about how many runs, of both worlds together, a perfect attack would refute the curve with; None if too many.

    >>> runs_needed(TradeoffCurve.from_epsilon_delta(1.0, delta=1e-5), alpha=0.05)
    12
    """

    def clear(runs: int) -> bool:
        test = joint_test.JointTest(runs, runs, curve)
        return test.number_of_ranks * math.exp(test.about(test.perfect)) <= alpha

    def enough(runs: int) -> bool:
        test = joint_test.JointTest(runs, runs, curve)
        return test.p_value_of(test.perfect, alpha=alpha, steps=1) <= alpha

    if not clear(_MOST_RUNS):
        return None
    runs_of_each = first_enough(clear, 0, _MOST_RUNS)
    return 2 * (first_enough(enough, 0, runs_of_each) if runs_of_each <= _CALIBRATED else runs_of_each)
