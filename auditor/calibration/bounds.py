"""Every bound and interval that is held against known truths: one line each.

A trial draws losses from a law; the bound misses when what it says of the truth is false.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from auditor.calibration.laws import Law, set_epsilon
from auditor.choices import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    Census,
    FixedThreshold,
    Melded,
    Members,
    MembershipSplit,
    OneRunTest,
    RandomSplit,
    RankGrid,
    Sample,
    Split,
    Steinke,
    Subset,
    ThresholdRule,
)
from auditor.estimators import advantage, auc, bayes_security, clopper_pearson, one_run, tpr_at_fpr
from auditor.estimators.epsilon_star import gaussian
from auditor.fitters import fit_gaussian_pair
from auditor.tradeoff import count
from auditor.values import Estimate, Losses

__all__ = ["BOUNDS", "Bound", "Trial"]

_RATE = 0.1
_INCLUSION = 0.5
_ENOUGH_RECORDS = 300  # with fewer, the parametric row has no lower bound


@dataclass(frozen=True)
class Trial:
    """One set of losses to draw and to judge.

    Attributes:
        law: Where the losses come from.
        size: Members and non-members, each.
        delta: In [0, 1).
        confidence: In (0, 1).
        rng: Draws the losses, and what the bound itself draws.
    """

    law: Law
    size: int
    delta: float
    confidence: float
    rng: np.random.Generator

    def losses(self) -> Losses:
        """Independent draws of both groups."""
        return Losses(
            member=self.law.member(self.rng, self.size), nonmember=self.law.nonmember(self.rng, self.size)
        )


@dataclass(frozen=True)
class Bound:
    """A bound or an interval, and what it is held against.

    Attributes:
        name: Stable name.
        label: In words.
        quantity: What it bounds.
        miss: What counts as a miss.
        truth: The true value under a law at a delta; null where every trial has its own.
        missed: Whether the bound of one trial misses.
        claimed: Whether anything is promised for a law and a size; by default for all.
    """

    name: str
    label: str
    quantity: str
    miss: str
    truth: Callable[[Law, float], float] | None
    missed: Callable[[Trial], bool]
    claimed: Callable[[Law, int], bool] = lambda _law, _size: True


# --- About the model -------------------------------------------------------------------------------

_EPSILON = "largest epsilon of any threshold"
_ABOVE = "bound above the truth"
_OUTSIDE = "truth outside the interval"


def _rule(name: str, label: str, rule: Callable[[Law], ThresholdRule]) -> Bound:
    """A certified bound from a sample of the training set."""

    def missed(trial: Trial) -> bool:
        found = _certified(trial, trial.losses(), rule(trial.law), Sample())
        return found > trial.law.epsilon(trial.delta)

    return Bound(name, label, _EPSILON, _ABOVE, lambda law, delta: law.epsilon(delta), missed)


def _finite(name: str, label: str, *, times: int, choose: Callable[[int], Members]) -> Bound:
    """A certified bound for a training set ``times`` as large as what was scored, against that set's own epsilon."""

    def missed(trial: Trial) -> bool:
        training = trial.law.member(trial.rng, times * trial.size)
        scored = trial.rng.choice(training, trial.size, replace=False)
        losses = Losses(member=scored, nonmember=trial.law.nonmember(trial.rng, trial.size))
        found = _certified(trial, losses, RankGrid(), choose(training.size))
        return found > set_epsilon(training, trial.law, delta=trial.delta)

    return Bound(name, label, f"{_EPSILON}, of the training set drawn", _ABOVE, None, missed)


def _certified(trial: Trial, losses: Losses, rule: ThresholdRule, members: Members) -> float:
    found = clopper_pearson(
        losses, delta=trial.delta, confidence=trial.confidence, rule=rule, members=members
    )
    return found.value or 0.0


def _tpr_missed(trial: Trial) -> bool:
    found = tpr_at_fpr(trial.losses(), rate=_RATE, confidence=trial.confidence)
    return (found.lower or 0.0) > trial.law.tpr_at(_RATE)


def _interval(
    name: str, label: str, quantity: str, truth: Callable[[Law], float], build: Callable[[Trial], Estimate]
) -> Bound:
    def missed(trial: Trial) -> bool:
        found = build(trial)
        low = 0.0 if found.lower is None else found.lower
        high = 1.0 if found.upper is None else found.upper
        return not low <= truth(trial.law) <= high

    return Bound(name, label, quantity, _OUTSIDE, lambda law, _: truth(law), missed)


def _gap(trial: Trial) -> Estimate:
    return advantage(count(trial.losses()), confidence=trial.confidence)


def _parametric_missed(trial: Trial) -> bool:
    pair = fit_gaussian_pair(trial.losses(), rng=trial.rng)
    found = gaussian(pair, delta=trial.delta, confidence=trial.confidence)
    return (found.lower or 0.0) > trial.law.epsilon(trial.delta)


# --- About the mechanism ---------------------------------------------------------------------------


def _one_run(
    name: str, label: str, split: MembershipSplit, test: OneRunTest, *, delta: float | None = None
) -> Bound:
    """A one-run bound; ``delta`` is given where the bound is stated at that delta whatever is asked."""
    pairs = isinstance(split, RandomSplit)

    def truth(law: Law, asked: float) -> float:
        at = asked if delta is None else delta
        return law.pair_epsilon(at) if pairs else law.epsilon(at)

    def missed(trial: Trial) -> bool:
        found = one_run(
            trial.losses() if pairs else _by_coins(trial),
            split=split,
            delta=trial.delta,
            confidence=trial.confidence,
            rng=trial.rng,
            test=test,
        )
        return (found.value or 0.0) > truth(trial.law, trial.delta)

    def claimed(law: Law, _size: int) -> bool:
        return bool(np.isfinite(truth(law, 1.0 / 1000)))  # at delta 0 a normal law has no finite epsilon

    adjacency = "replace-one" if pairs else "add/remove"
    at = "" if delta is None else f", at delta {delta:g}"
    return Bound(name, label, f"epsilon of the mechanism, {adjacency}{at}", _ABOVE, truth, missed, claimed)


def _by_coins(trial: Trial) -> Losses:
    """As many records as in the two groups, each a member by its own coin."""
    members = int(np.clip(trial.rng.binomial(2 * trial.size, _INCLUSION), 2, 2 * trial.size - 2))
    return Losses(
        member=trial.law.member(trial.rng, members),
        nonmember=trial.law.nonmember(trial.rng, 2 * trial.size - members),
    )


BOUNDS = (
    _rule("rank_grid", "Certified bound, rank grid", lambda _: RankGrid()),
    _rule("rank_grid.melded", "Certified bound, rank grid, melded", lambda _: RankGrid(interval=Melded())),
    _rule("fixed_threshold", "Certified bound, fixed threshold", lambda law: FixedThreshold(law.middle)),
    _rule("split", "Certified bound, split", lambda _: Split()),
    _finite("rank_grid.census", "Certified bound, census", times=1, choose=lambda _: Census()),
    _finite("rank_grid.subset", "Certified bound, half of the training set", times=2, choose=Subset),
    Bound(
        "tpr_at_fpr",
        f"TPR at FPR {_RATE:g}, lower limit",
        f"largest TPR at FPR {_RATE:g}",
        _ABOVE,
        lambda law, _: law.tpr_at(_RATE),
        _tpr_missed,
    ),
    _interval("advantage", "Advantage, interval", "largest TPR - FPR", lambda law: law.advantage, _gap),
    _interval(
        "bayes_security",
        "Bayes security, upper limit",
        "1 - (largest TPR - FPR)",
        lambda law: 1 - law.advantage,
        lambda trial: bayes_security(_gap(trial)),
    ),
    _interval(
        "auc",
        "AUC, interval",
        "chance that a member's loss is the lower",
        lambda law: law.auc,
        lambda trial: auc(count(trial.losses()), confidence=trial.confidence),
    ),
    Bound(
        "epsilon_star.gaussian",
        "Epsilon* of two normals, lower limit (normal losses only)",
        _EPSILON,
        _ABOVE,
        lambda law, delta: law.epsilon(delta),
        _parametric_missed,
        lambda law, size: law.normal and size >= _ENOUGH_RECORDS,
    ),
    _one_run("one_run.pairs", "One run, random pairs, Steinke et al.", RandomSplit(), Steinke()),
    _one_run("one_run.pairs.f_dp", "One run, random pairs, f-DP", RandomSplit(), FDP()),
    _one_run(
        "one_run.pairs.any", "One run, random pairs, any guesses", RandomSplit(), AnyGuesses(), delta=0.0
    ),
    _one_run(
        "one_run.coins",
        "One run, inclusion coins, Steinke et al.",
        BernoulliSplit(_INCLUSION),
        Steinke(),
        delta=0.0,
    ),
    _one_run(
        "one_run.coins.any",
        "One run, inclusion coins, any guesses",
        BernoulliSplit(_INCLUSION),
        AnyGuesses(),
        delta=0.0,
    ),
)
