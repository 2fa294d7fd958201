"""How often each bound and interval is wrong, on losses from laws whose truth is known in closed form.

Usage, from the root of this repository (about 7 minutes on one core):

    python reports/calibration.py --runs 1000 --sizes 100,1000

A trial draws losses from a law; a bound misses when what it says of the truth is false. Printed is the table of miss rates
(Markdown); the exit code is 1 if a bound misses more often than it promises.
"""

import argparse
import copy
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from auditor.core import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    Census,
    ClopperPearson,
    Coverage,
    Estimate,
    FixedThreshold,
    InputError,
    Losses,
    Melded,
    MembershipSplit,
    OneRunTest,
    RandomSplit,
    RankGrid,
    Sample,
    Split,
    Subset,
    ThresholdRule,
    validate,
)
from auditor.curves import count, fit_gaussian_pair
from auditor.estimators import (
    advantage,
    auc,
    bayes_security,
    clopper_pearson,
    draw_guesses,
    lower_limit,
    parametric,
    pure_p_value,
    tpr_at_fpr,
    upper_limit,
)
from auditor.estimators.certified import is_exact
from auditor.estimators.exact_test import CalibratedTest, Hits, Statistic
from auditor.estimators.guess_tests import PURE_STEP
from auditor.estimators.guesses import Guesses
from auditor.estimators.one_run import one_run_bound
from auditor.theory import gaussian_epsilon

Floats = np.ndarray

# --- The laws, with every true value of each ---


_Draw = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Law:
    """A law of member losses beside one of non-member losses, independent from record to record.

    Attributes:
        name: As shown.
        member: Draws member losses.
        nonmember: Draws non-member losses.
        cdf: Distribution function of the non-member losses.
        middle: A threshold to fix in advance.
        epsilon: Largest epsilon of any threshold, as a function of delta.
        pair_epsilon: Epsilon of one record swapped for another, as a function of delta.
        auc: Chance that a member's loss is below a non-member's, ties counting half.
        advantage: Largest TPR - FPR of any threshold.
        tpr_at: Largest TPR of any threshold whose FPR is at most a rate.
        normal: Whether both laws are normal, as the parametric bound assumes.
    """

    name: str
    member: _Draw
    nonmember: _Draw
    cdf: Callable[[Floats], Floats]
    middle: float
    epsilon: Callable[[float], float]
    pair_epsilon: Callable[[float], float]
    auc: float
    advantage: float
    tpr_at: Callable[[float], float]
    normal: bool = False


def set_epsilon(training: Floats, law: Law, *, delta: float) -> float:
    """Return the largest epsilon of any threshold between a finite training set and the law of non-members.

    A miss rate below one training record counts as one record.

    >>> round(set_epsilon(np.array([-2.0, 0.0]), LAWS[0], delta=0.0), 6)
    3.090037
    """
    values, repeats = np.unique(training, return_counts=True)
    tpr, fpr = np.cumsum(repeats) / training.size, law.cdf(values)
    fnr = np.maximum(1 - tpr, 1 / training.size)
    with np.errstate(divide="ignore"):
        ratios = np.concatenate([(tpr - delta) / fpr, (1 - fpr - delta) / fnr])
    return math.log(max(1.0, float(np.max(ratios))))


def _normal(mu: float, name: str) -> Law:
    """Two normals ``mu`` standard deviations apart; 0 is no leakage at all."""
    return Law(
        name=name,
        member=lambda rng, n: rng.standard_normal(n) - mu,
        nonmember=lambda rng, n: rng.standard_normal(n),
        cdf=lambda x: np.asarray(special.ndtr(x)),
        middle=-0.5,
        epsilon=lambda delta: gaussian_epsilon(mu, delta=delta),
        pair_epsilon=lambda delta: gaussian_epsilon(math.sqrt(2) * mu, delta=delta),
        auc=float(special.ndtr(mu / math.sqrt(2))),
        advantage=float(2 * special.ndtr(mu / 2) - 1),
        tpr_at=lambda rate: float(special.ndtr(special.ndtri(rate) + mu)),
        normal=True,
    )


def _response(epsilon: float) -> Law:
    """Randomised response: a loss of 0 says "member", and is right with odds e^epsilon."""
    right = 1 / (1 + math.exp(-epsilon))
    wrong = 1 - right
    return Law(
        name=f"randomised response, epsilon {epsilon:g}",
        member=lambda rng, n: np.where(rng.random(n) > right, 1.0, 0.0),
        nonmember=lambda rng, n: np.where(rng.random(n) > wrong, 1.0, 0.0),
        cdf=lambda x: np.where(x < 0, 0.0, np.where(x < 1, wrong, 1.0)),
        middle=0.5,
        epsilon=lambda delta: math.log(max(1.0, (right - delta) / wrong)),
        # Two answers: the log-ratio is 2 eps with probability right^2, and delta = right^2 - e^x wrong^2 up to there.
        pair_epsilon=lambda delta: math.log(max(1.0, (right**2 - delta) / wrong**2)),
        auc=right**2 + right * wrong,
        advantage=right - wrong,
        tpr_at=lambda rate: right if rate >= wrong else 0.0,
    )


# The Laplace mechanism with epsilon 1: scale 1, members one lower.


def _laplace_pair_delta(epsilon: float) -> float:
    """Delta of two independent Laplace mechanisms of epsilon 1 at a total of 0 <= epsilon <= 2, by integration."""
    return 1 - math.exp((epsilon - 2) / 2) * (1 + (2 - epsilon) / 4)


def _laplace_pair_epsilon(delta: float) -> float:
    if delta == 0:
        return 2.0
    return float(optimize.brentq(lambda epsilon: _laplace_pair_delta(epsilon) - delta, 0.0, 2.0))


def _laplace_cdf(x: Floats) -> Floats:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _laplace_tpr(rate: float) -> float:
    at = math.log(2 * rate) if rate < 1 / 2 else -math.log(2 * (1 - rate))
    return float(_laplace_cdf(np.array(at + 1)))


_LAPLACE = Law(
    name="Laplace, epsilon 1",
    member=lambda rng, n: rng.laplace(-1, 1, n),
    nonmember=lambda rng, n: rng.laplace(0, 1, n),
    cdf=_laplace_cdf,
    middle=-0.5,
    epsilon=lambda delta: max(0.0, 1 + 2 * math.log1p(-delta)),
    pair_epsilon=_laplace_pair_epsilon,
    auc=1 - 3 / (4 * math.e),
    advantage=1 - math.exp(-1 / 2),
    tpr_at=_laplace_tpr,
)


# Steps: densities that are constant between whole numbers, or scores that are whole numbers.


def _steps(name: str, member: Sequence[float], nonmember: Sequence[float], *, discrete: bool) -> Law:
    """The chances of each whole number, or of each step between two."""
    p, q = (np.asarray(masses) / sum(masses) for masses in (member, nonmember))
    tpr, fpr = (np.concatenate([[0.0], np.cumsum(masses)]) for masses in (p, q))
    ratio = np.log(p / q)

    def drawn(masses: Floats, rng: np.random.Generator, n: int) -> Floats:
        return rng.choice(masses.size, n, p=masses) + (0.0 if discrete else rng.random(n))

    def epsilon(delta: float) -> float:
        # Within a step the ratio of two straight lines is monotone: the largest lies at one of its ends.
        ratios = np.concatenate([(tpr[1:] - delta) / fpr[1:], (1 - fpr[:-1] - delta) / (1 - tpr[:-1])])
        return math.log(max(1.0, float(ratios.max())))

    def pair_delta(epsilon: float) -> float:
        return float(p @ np.maximum(0.0, -np.expm1(epsilon - ratio[:, None] + ratio)) @ q)

    def pair_epsilon(delta: float) -> float:
        largest = float(ratio.max() - ratio.min())
        if delta == 0 or pair_delta(0.0) <= delta:
            return largest if delta == 0 else 0.0
        return float(optimize.brentq(lambda x: pair_delta(x) - delta, 0.0, largest))

    def cdf(x: Floats) -> Floats:
        inside = np.clip(np.floor(x) + 1 if discrete else x, 0, p.size)
        return np.asarray(np.interp(inside, np.arange(p.size + 1), fpr))

    def tpr_at(rate: float) -> float:
        return float(tpr[fpr <= rate].max() if discrete else np.interp(rate, fpr, tpr))

    return Law(
        name=name,
        member=lambda rng, n: drawn(p, rng, n),
        nonmember=lambda rng, n: drawn(q, rng, n),
        cdf=cdf,
        middle=0.5,
        epsilon=epsilon,
        pair_epsilon=pair_epsilon,
        auc=float(p @ (1 - fpr[1:]) + p @ q / 2),
        advantage=float((tpr - fpr).max()),
        tpr_at=tpr_at,
    )


_FIVE = (1, 2, 4, 2, 1)
LAWS = (
    _normal(0.0, "no leakage"),
    _response(1.0),
    _LAPLACE,
    _normal(1.0, "normal, mu 1"),
    # What over-fitting does: some non-members stand out with high losses, and low ones say next to nothing.
    _steps("high tail only, epsilon 1", (1 - 0.1 / math.e, 0.1 / math.e), (0.9, 0.1), discrete=False),
    _steps("five values", [n * math.exp(-k / 2) for k, n in enumerate(_FIVE)], _FIVE, discrete=True),
)

# --- The bounds: one line for each that is held against the laws ---

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


# About the model.
_EPSILON = "largest epsilon of any threshold"
_ABOVE = "bound above the truth"
_OUTSIDE = "truth outside the interval"


def _rule(name: str, label: str, rule: Callable[[Law], ThresholdRule]) -> Bound:
    """A certified bound from a sample of the training set."""

    def missed(trial: Trial) -> bool:
        losses, truth, used = trial.losses(), trial.law.epsilon(trial.delta), rule(trial.law)
        if used == RankGrid():
            return _refuted(trial, losses, truth, Sample())
        return _certified(trial, losses, used, Sample()) > truth

    return Bound(name, label, _EPSILON, _ABOVE, lambda law, delta: law.epsilon(delta), missed)


def _finite(name: str, label: str, *, times: int, choose: Callable[[int], Coverage]) -> Bound:
    """A certified bound for a training set ``times`` as large as what was scored, against that set's own epsilon."""

    def missed(trial: Trial) -> bool:
        training = trial.law.member(trial.rng, times * trial.size)
        scored = trial.rng.choice(training, trial.size, replace=False)
        losses = Losses(member=scored, nonmember=trial.law.nonmember(trial.rng, trial.size))
        truth = set_epsilon(training, trial.law, delta=trial.delta)
        return _refuted(trial, losses, truth, choose(training.size))

    return Bound(name, label, f"{_EPSILON}, of the training set drawn", _ABOVE, None, missed)


def _refuted(trial: Trial, losses: Losses, truth: float, coverage: Coverage) -> bool:
    """Whether the default bound lies above the truth: its p-value is up to alpha, which is one instead of many."""
    alpha, sizes = 1 - trial.confidence, (trial.size, trial.size)
    law = Statistic(*sizes, trial.delta, alpha, coverage)
    return CalibratedTest(Hits.of(losses), law, not is_exact(*sizes, alpha, coverage)).p_value(truth) <= alpha


def _certified(trial: Trial, losses: Losses, rule: ThresholdRule, coverage: Coverage) -> float:
    found = clopper_pearson(
        losses, delta=trial.delta, confidence=trial.confidence, rule=rule, coverage=coverage
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
    found = parametric(pair, delta=trial.delta, confidence=trial.confidence)
    return (found.lower or 0.0) > trial.law.epsilon(trial.delta)


# About the mechanism.


def _one_run(
    name: str, label: str, split: MembershipSplit, test: OneRunTest, *, delta: float | None = None
) -> Bound:
    """A one-run bound; ``delta`` is given where the bound is stated at that delta whatever is asked."""
    pairs = isinstance(split, RandomSplit)

    def truth(law: Law, asked: float) -> float:
        at = asked if delta is None else delta
        return law.pair_epsilon(at) if pairs else law.epsilon(at)

    def missed(trial: Trial) -> bool:
        losses, known = trial.losses() if pairs else _by_coins(trial), truth(trial.law, trial.delta)
        if isinstance(test, AnyGuesses) and not _next_refuted(losses, split, trial, known):
            return False
        found = one_run_bound(
            losses,
            split=split,
            delta=trial.delta,
            confidence=trial.confidence,
            rng=trial.rng,
            test=test,
        )
        return (found.value or 0.0) > known

    def claimed(law: Law, _size: int) -> bool:
        return bool(np.isfinite(truth(law, _DELTA)))  # at delta 0 a normal law has no finite epsilon

    adjacency = "replace-one" if pairs else "add/remove"
    at = "" if delta is None else f", at delta {delta:g}"
    return Bound(name, label, f"epsilon of the mechanism, {adjacency}{at}", _ABOVE, truth, missed, claimed)


def _next_refuted(losses: Losses, split: MembershipSplit, trial: Trial, known: float) -> bool:
    """Whether all orders together refute the first point of their grid beyond the truth, as a bound above it needs."""
    # The bound itself is drawn for with the same numbers.
    guesses = draw_guesses(losses, split=split, rng=copy.deepcopy(trial.rng))
    following = PURE_STEP * (math.floor(known / PURE_STEP + 1e-9) + 1)
    level = 1 - trial.confidence
    return isinstance(guesses, Guesses) and (
        pure_p_value(guesses, guesses.sets, epsilon=following, alpha=level) <= level
    )


def _by_coins(trial: Trial) -> Losses:
    """As many records as in the two groups, each a member by its own coin."""
    members = int(np.clip(trial.rng.binomial(2 * trial.size, _INCLUSION), 2, 2 * trial.size - 2))
    return Losses(
        member=trial.law.member(trial.rng, members),
        nonmember=trial.law.nonmember(trial.rng, 2 * trial.size - members),
    )


BOUNDS = (
    _rule("rank_grid", "Certified bound", lambda _: RankGrid()),
    _rule("rank_grid.melded", "Certified bound, melded", lambda _: RankGrid(interval=Melded())),
    _rule(
        "rank_grid.two_limits", "Certified bound, two limits", lambda _: RankGrid(interval=ClopperPearson())
    ),
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
    _one_run("one_run.pairs.f_dp", "One run, random pairs, f-DP", RandomSplit(), FDP()),
    _one_run(
        "one_run.pairs.any", "One run, random pairs, any guesses", RandomSplit(), AnyGuesses(), delta=0.0
    ),
    _one_run("one_run.coins.f_dp", "One run, inclusion coins, f-DP", BernoulliSplit(_INCLUSION), FDP()),
    _one_run(
        "one_run.coins.any",
        "One run, inclusion coins, any guesses",
        BernoulliSplit(_INCLUSION),
        AnyGuesses(),
        delta=0.0,
    ),
)


# --- How often every bound misses a known truth, with the binomial error of that count ---


_DELTA = 1e-3
_SMALLEST_SIZE = 50
_ERROR = 0.05
# So many misses or more must be at least this likely at the level; a table has a hundred cells or so.
_UNLIKELY = 1e-4


@dataclass(frozen=True)
class Row:
    """One bound under one law at one size.

    Attributes:
        bound: Its stable name.
        label: Its name in words.
        law: The law of the losses.
        n: Members and non-members, each.
        quantity: What it bounds.
        truth: The true value, infinite where there is no finite one, null where every run has its own.
        miss: What counts as a miss.
        claimed: Whether the bound promises anything here; if not, nothing was run.
        misses: Number of misses.
        runs: Number of runs.
        rate: Their ratio, null where nothing was run.
        low: Lower end of the 95% Clopper-Pearson interval of the rate, null likewise.
        high: Upper end.
        level: What the rate may be at most.
        ok: Whether the misses are compatible with the level; also where nothing is claimed.
    """

    bound: str
    label: str
    law: str
    n: int
    quantity: str
    truth: float | None
    miss: str
    claimed: bool
    misses: int
    runs: int
    rate: float | None
    low: float | None
    high: float | None
    level: float
    ok: bool


@dataclass(frozen=True)
class Calibration:
    """The rows of a calibration, and the settings that reproduce it."""

    rows: tuple[Row, ...]
    runs: int
    sizes: tuple[int, ...]
    confidence: float
    delta: float
    seed: int

    @property
    def ok(self) -> bool:
        """Whether every bound held its level."""
        return all(row.ok for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each bound, law and size."""
        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_json(self) -> str:
        """Return the settings and the rows as JSON; an infinite truth is the string ``inf``."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            row["truth"] = "inf" if row["truth"] == math.inf else row["truth"]
        settings = {**asdict(self), "sizes": list(self.sizes), "ok": self.ok, "rows": rows}
        return json.dumps(settings, indent=2, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return a table of miss rates in percent, one column for each law, with what was promised above it."""
        laws = list(dict.fromkeys(row.law for row in self.rows))
        level = f"{100 * (1 - self.confidence):.4g}"
        says = (
            f"Errors in percent of {self.runs:,} runs, with 95% binomial intervals; the nominal value is at most {level}."
            f" Delta {self.delta:g}, seed {self.seed}. A dash marks cases for which no coverage is claimed."
        )
        lines = [
            says,
            "",
            f"| bound | n | {' | '.join(laws)} |",
            f"| --- | ---: |{' ---: |' * len(laws)}",
        ]
        cells = {(row.bound, row.n, row.law): row for row in self.rows}
        for bound, label, n in dict.fromkeys((row.bound, row.label, row.n) for row in self.rows):
            shown = [_cell(cells.get((bound, n, law))) for law in laws]
            if set(shown) != {_NOTHING}:
                lines.append(f"| {label} | {n:,} | {' | '.join(shown)} |")
        return "\n".join([*lines, "", *self._truths(laws)]) + "\n"

    def _truths(self, laws: list[str]) -> list[str]:
        """The true values, one line for each quantity."""
        cells = {(row.quantity, row.law): row for row in self.rows}
        lines = [f"| true value | {' | '.join(laws)} |", f"| --- |{' ---: |' * len(laws)}"]
        for quantity in dict.fromkeys(row.quantity for row in self.rows):
            shown = [_truth(cells[quantity, law].truth) for law in laws]
            lines.append(f"| {quantity} | {' | '.join(shown)} |")
        return lines


_NOTHING = "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _truth(value: float | None) -> str:
    if value is None:
        return "differs by run"
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def _cell(row: Row | None) -> str:
    if row is None or row.rate is None or row.low is None or row.high is None:
        return _NOTHING
    text = f"{_percent(row.rate)} ({_percent(row.low)} to {_percent(row.high)})"
    return text if row.ok else f"**{text}, too many**"


def calibrate(
    *,
    runs: int = 1000,
    sizes: Iterable[int] = (100, 1000),
    confidence: float = 0.95,
    seed: int = 0,
    bounds: Iterable[str] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Calibration:
    """Return how often every bound misses on laws with a known truth; delta is 0.001.

    The laws are: no leakage (a miss is a false alarm), randomised response at epsilon 1, the Laplace mechanism at
    epsilon 1, two normals one standard deviation apart, a leak in the high losses only, and scores of five values. Every cell has its own random numbers, so that no choice
    of bounds or sizes changes another cell.

    Args:
        runs: Runs of each cell, 1 or more.
        sizes: Numbers of members (and of non-members), each 50 or more.
        confidence: Of every bound, in (0, 1).
        seed: 0 or more.
        bounds: Names of the bounds to run, by default all; see `BOUNDS`.
        announce: Told in a sentence what is being run.

    Raises:
        InputError: A number out of range, a name that is not one, or sizes or bounds of which there are none.

    >>> table = calibrate(runs=20, sizes=[60], bounds=["rank_grid", "auc"])
    >>> table.ok, len(table.rows)
    (True, 12)
    """
    runs = validate.at_least("runs", runs, least=1)
    chosen_sizes = tuple(validate.at_least("sizes", size, least=_SMALLEST_SIZE) for size in sizes)
    confidence = validate.confidence(confidence)
    seed = validate.at_least("seed", seed, least=0)
    chosen = _chosen(bounds)
    if not chosen or not chosen_sizes:
        raise InputError("a calibration needs at least one bound and at least one size, got none.")
    rows = []
    for place, bound in enumerate(chosen, start=1):
        if announce is not None:
            announce(f"Calibrating {place} of {len(chosen)}: {bound.label} ...")
        for size in chosen_sizes:
            rows += [_row(bound, law, size, runs=runs, confidence=confidence, seed=seed) for law in LAWS]
    return Calibration(tuple(rows), runs, chosen_sizes, confidence, _DELTA, seed)


def _chosen(names: Iterable[str] | None) -> tuple[Bound, ...]:
    by_name = {bound.name: bound for bound in BOUNDS}
    if names is None:
        return BOUNDS
    return tuple(by_name[validate.one_of("bounds", name, by_name)] for name in dict.fromkeys(names))


def _row(bound: Bound, law: Law, size: int, *, runs: int, confidence: float, seed: int) -> Row:
    level = round(1 - confidence, 12)
    claimed = bound.claimed(law, size)
    cell = [seed, size, *(zlib.crc32(name.encode()) for name in (bound.name, law.name))]
    trial = Trial(law, size, _DELTA, confidence, np.random.default_rng(cell))
    counts = _counted(sum(bound.missed(trial) for _ in range(runs)), runs, level) if claimed else _NOT_RUN
    truth = None if bound.truth is None else bound.truth(law, _DELTA)
    return Row(
        bound.name,
        bound.label,
        law.name,
        size,
        bound.quantity,
        truth,
        bound.miss,
        claimed,
        level=level,
        **counts,
    )


_NOT_RUN: dict[str, Any] = {"misses": 0, "runs": 0, "rate": None, "low": None, "high": None, "ok": True}


def _counted(misses: int, runs: int, level: float) -> dict[str, Any]:
    return {
        "misses": misses,
        "runs": runs,
        "rate": misses / runs,
        "low": float(lower_limit(misses, runs, _ERROR / 2)),
        "high": float(upper_limit(misses, runs, _ERROR / 2)),
        "ok": bool(stats.binom.sf(misses - 1, runs, level) > _UNLIKELY),
    }


# --- The command ---


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0 if every bound keeps its promise, 1 if one does not, 2 for a wrong argument."""
    parser = argparse.ArgumentParser(
        description="Measure how often every bound misses on laws whose truth is known."
    )
    parser.add_argument("--runs", type=int, default=1000, help="runs of each bound, law and size")
    parser.add_argument(
        "--sizes", type=_parts, default="100,1000", help="records in each group, separated by commas"
    )
    parser.add_argument("--confidence", type=float, default=0.95, help="of every bound")
    parser.add_argument("--bounds", type=_parts, help="names of bounds, separated by commas; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the table as JSON too")
    given = vars(parser.parse_args(arguments))
    path = given.pop("json")
    try:
        table = calibrate(**given, announce=lambda line: print(line, file=sys.stderr))
    except InputError as error:
        parser.error(str(error))
    if path is not None:
        path.write_text(table.to_json(), encoding="utf-8")
    print(table.to_markdown(), end="")
    return 0 if table.ok else 1


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
