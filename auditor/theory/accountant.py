"""The epsilon that a training description promises, its whole trade-off curve, and what follows for replaced records.

Steps that leave records out are composed by dp_accounting's privacy loss distributions, as finely as pays; other bounds
take their place where those reach their limits.
"""

import heapq
import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any, get_args

import numpy as np
from scipy.special import log_ndtr

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import given, number
from auditor.core.options import DPSGD, Adjacency, Phase, StatedClaim, StatedCurve, TrainingClaim
from auditor.core.values import Claim, Floats
from auditor.curves.tradeoff import TradeoffCurve
from auditor.theory.conversions import epsilon_from_curve, replaced_curve
from auditor.theory.gaussian import SHUFFLED, StepPair, as_accounted, gaussian_epsilon, unsampled_mu
from auditor.theory.renyi import MOST_SINGLY, epsilon_from_rho, phases_epsilon
from auditor.theory.steps import MOST_PHASES, Kind, kinds_of, loss_law, rounded_up

# --- The epsilon of a training run: the tightest of the bounds that work for its parameters ---

_SAFETY = "An upper bound for an attacker who sees every iterate."
_EVERYONE = "Gaussian composition without sampling"
_RENYI = "Renyi divergences (quadrature)"
_ACCOUNTANT = "privacy loss distributions (dp-accounting)"
_NEEDS = "Replaced records of sampled DP-SGD need dp-accounting 0.6.0 or later: pip install -U dp-accounting."
_BEYOND = " Beyond the numerical range of privacy loss distributions, so it may be loose."
_FIXED_SIZE_NEEDS_REPLACE_ONE = (
    "Batches of a fixed size are accounted for replaced records only: with one record more or less, the size would"
    " change."
)
_FIXED_SIZE = " Batches of a fixed size must be drawn anew at every step; passes over the shuffled records are not covered."
_NOTHING_ADDED = "A replace-one statement implies nothing about adding or removing a record."


@dataclass(frozen=True)
class _Grid:
    """How to discretise.

    Attributes:
        spacing: Of the losses, in nats; the same for every step, since only such losses can be added.
        fine: Whether it is about as fine as wanted.
        inner: For each kind of steps, how many of its steps to compose first; 1 composes all of them at once.
    """

    spacing: float
    fine: bool
    inner: tuple[int, ...]


@as_accounted
def epsilon(claim: TrainingClaim, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that a training description promises at this delta.

    DP-SGD is accounted as a Poisson-sampled Gaussian mechanism, with privacy loss distributions that are rounded
    up, so the value is an upper bound, within 3e-4 of the exact one in ordinary settings. Where those reach their
    limits (a delta near rounding error, almost no noise, very many steps) it is the smallest of theirs, of one by Renyi
    divergences and of Gaussian composition without sampling, and ``method`` says which.
    Many different steps are accounted as fewer kinds of steps, none of them more private, and ``note`` says so.
    Batches of a fixed size are accounted for replaced records only; for added ones the value is null. Of shuffled batches
    it is the epsilon as it was accounted, and not proven.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        delta: In [0, 1). A Gaussian mechanism has no finite epsilon at 0.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``epsilon`` in nats. Its value is null, and ``note`` says why, when it cannot be computed or when the
        statement does not imply one; it is never silently 0.

    Raises:
        InputError: The claim is of another type, delta is outside [0, 1), or the adjacency is unknown.

    Source: Doroshenko et al. 2022 (Connect the Dots); Balle and Wang 2018 for a sampling rate of 1; Balle, Barthe and
    Gaboardi 2018, Theorem 11, for batches of a fixed size.

    >>> from auditor.core.options import DPSGD
    >>> round(epsilon(DPSGD(1.0, 0.01, 1000), delta=1e-5).value, 3)
    1.828
    >>> epsilon(StatedClaim(2.0, 1e-6), delta=1e-5).value
    2.0
    """
    validate.instance("claim", claim, get_args(TrainingClaim))
    delta = validate.fraction("delta", delta, zero=True)
    relation = Adjacency.named(adjacency)
    if isinstance(claim, StatedClaim):
        return _stated(claim, delta=delta, adjacency=relation)
    if isinstance(claim, StatedCurve):
        value, method, note = _of_curve(claim, delta=delta, adjacency=relation)
    else:
        value, method, note = _bound(claim, delta=delta, adjacency=relation)
    return Claim("epsilon", value, delta, relation, method, proven=True, note=note)


def _stated(claim: StatedClaim, *, delta: float, adjacency: Adjacency) -> Claim:
    """Return a stated epsilon where it applies: for its own neighbours or replaced ones, at its delta or above."""
    base = _implied(claim, adjacency)
    value, note = base.value, base.note or "Taken at its word."
    if value is not None and base.delta is not None:
        if delta > base.delta:
            note += f" Stated at delta {given(base.delta)}; the same epsilon holds at every larger delta."
        elif delta < base.delta:
            note += f" It holds from delta {given(base.delta)} up and implies no epsilon at {given(delta)}."
            value = None
    return Claim("epsilon", value, delta, adjacency, base.method, proven=True, note=note)


def _implied(claim: StatedClaim, adjacency: Adjacency) -> Claim:
    """Return what a statement says of these neighbours, at the delta that it says it for."""
    own = Claim("epsilon", float(claim.epsilon), float(claim.delta), claim.adjacency, "stated", proven=True)
    if adjacency is Adjacency.REPLACE_ONE:
        return replace_one(own)
    if claim.adjacency is adjacency:
        return own
    return replace(own, value=None, note=_NOTHING_ADDED)


def _of_curve(claim: StatedCurve, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note of a stated curve; mu and rho double and fourfold for replaced records."""
    replaced = claim.adjacency is not adjacency
    if replaced and adjacency is Adjacency.ADD_REMOVE:
        return None, "stated", _NOTHING_ADDED
    note = "Taken at its word" + (", for removing and then adding a record." if replaced else ".")
    if claim.mu is not None:
        return gaussian_epsilon(claim.mu * (1 + replaced), delta=delta), "stated mu of Gaussian DP", note
    if claim.rho is not None:
        value = epsilon_from_rho(claim.rho * (1 + replaced) ** 2, delta=delta)
        return value, "stated rho of zero-concentrated DP", note
    value = epsilon_from_curve(_of_points(claim, replaced=replaced), delta=delta)
    if not replaced:
        # As it was stated, to the last digit.
        stated = min((point[0] for point in claim.points if point[1] <= delta), default=math.inf)
        value = stated if math.isclose(value, stated, rel_tol=1e-9) else min(value, stated)
    if math.isinf(value):
        return None, "stated points", f"{note} The points imply no epsilon at delta {given(delta)}."
    return value, "stated points", note


def _of_points(claim: StatedClaim | StatedCurve, *, replaced: bool) -> TradeoffCurve:
    """Return the lowest of the curves of the stated points; for removing and then adding, the curve of itself."""
    points = claim.points if isinstance(claim, StatedCurve) else [(claim.epsilon, claim.delta)]
    epsilons, deltas = zip(*points, strict=True)
    curve = TradeoffCurve.from_profile(epsilons, deltas=deltas)
    return replaced_curve(curve) if replaced else curve


def _bound(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note."""
    if training.fixed_size and adjacency is Adjacency.ADD_REMOVE:
        return None, _ACCOUNTANT, _FIXED_SIZE_NEEDS_REPLACE_ONE
    if delta == 0:
        return math.inf, "Gaussian noise", "A Gaussian mechanism has no finite epsilon at delta 0."
    if _ever_drawn(training) <= delta:
        # The two worlds differ only if the record is ever drawn: probability at most the sum of the rates.
        return 0.0, "union bound over the steps", "The record enters training with probability at most delta."
    pair = StepPair.of(training, adjacency)
    everyone = gaussian_epsilon(unsampled_mu(training, pair), delta=delta)
    if not training.sampled:
        return everyone, "exact Gaussian composition", _SAFETY
    if pair is StepPair.REPLACE_ONE and not accountant_has_replace_one():
        return None, _ACCOUNTANT, _NEEDS
    # A sampled step mixes the unsampled pair with a pair of equal laws, so it is never easier to tell apart.
    loose = " It lets every record into every step, so it may be loose."
    sampling = _amplified(training, delta=delta, pair=pair)
    return min(((everyone, _EVERYONE, _SAFETY + loose), *sampling), key=lambda bound: bound[0])


def _amplified(training: DPSGD, *, delta: float, pair: StepPair) -> Iterator[tuple[float, str, str]]:
    """Yield bounds that profit from the sampling: the accountant's, and another one where that reaches its limits."""
    merged = _merging_note(training)
    ending = _FIXED_SIZE if training.fixed_size else ""
    raised = _resolvable(training.phases)
    value, grid = _accounted(raised, delta=delta, pair=pair)
    if grid is not None:
        limits = []
        if raised != training.phases:
            least = min(phase.sampling_rate for phase in raised)
            more = "" if len(raised) == 1 else " and more"
            limits.append(
                f" Accounted at a sampling rate of {number(least)}{more}: a smaller one drowns in rounding error."
            )
        if not grid.fine:
            limits.append(
                f" The accountant's grid is coarse here ({grid.spacing:.2g} nats), so it may be loose."
            )
        yield value, _ACCOUNTANT, _SAFETY + merged + "".join(limits) + ending
        if not limits:
            return
    note = _SAFETY + (merged if len(training.phases) > MOST_SINGLY else "") + _BEYOND + ending
    yield phases_epsilon(training.phases, pair=pair, delta=delta), _RENYI, note


def _accounted(phases: tuple[Phase, ...], *, delta: float, pair: StepPair) -> tuple[float, _Grid | None]:
    """Return the accountant's bound and its grid; infinity and none beyond its range."""
    kinds, grid = _discretised(phases, pair)
    # Delta must stand far enough above the tail cut and the rounding error of the composition.
    if grid is not None and delta >= max(1e-13, 10 * _rounding(kinds)):
        value = accountant_epsilon(kinds, delta=delta, pair=pair, grid=grid)
        if math.isfinite(value):
            return value, grid
    return math.inf, None


@lru_cache(maxsize=8)
def _discretised(phases: tuple[Phase, ...], pair: StepPair) -> tuple[tuple[Kind, ...], _Grid | None]:
    """Return kinds of steps and how to discretise them; no grid beyond the accountant's range."""
    if not _in_range(phases):
        return (), None
    kinds = kinds_of(phases, pair=pair)
    return kinds, loss_grid(kinds, pair=pair)


def _ever_drawn(training: DPSGD) -> float:
    """Return a bound on the probability that a record is ever drawn: the sum of the sampling rates, at most 1."""
    return min(1.0, sum(phase.steps * phase.sampling_rate for phase in training.phases))


def _merging_note(training: DPSGD) -> str:
    """Return a sentence that says that steps were merged; empty if they were not."""
    if len(training.phases) <= MOST_PHASES:
        return ""
    return (
        f" Its {len(training.phases):,} different steps are accounted as fewer kinds of steps, none of them more private,"
        " so it may be a little loose."
    )


# --- Claims that follow from other claims, first of all for replaced records ---


def replace_one(claim: Claim) -> Claim:
    """Return what an add/remove claim promises for replaced records: (2 epsilon, (1 + e^epsilon) delta).

    Replacing is removing and then adding: P(S) <= e^eps P'(S) + d <= e^eps (e^eps P''(S) + d) + d.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.

    Returns:
        ``epsilon`` for replace-one neighbours at the larger delta; the claim itself if it is replace-one already.
        The value and the delta are null when the larger delta reaches 1, which implies nothing.

    Raises:
        InputError: The claim is not an epsilon with its delta.

    Source: Dwork and Roth 2014, group privacy (Theorem 2.2) for two steps, with its delta.

    >>> converted = replace_one(epsilon(StatedClaim(1.0, 1e-5), delta=1e-5))
    >>> converted.value, round(converted.delta, 10)
    (2.0, 3.71828e-05)
    """
    require_metric(claim, "epsilon")
    if claim.adjacency is Adjacency.REPLACE_ONE:
        return claim
    value, delta, note = None, None, f"No epsilon: {claim.note}"
    if claim.value is not None:
        stated = delta_of(claim)
        # In logs, because e^epsilon may overflow: a delta of 1 or more is all that matters then.
        log_grown = claim.value + math.log(stated) if stated else -math.inf
        delta = math.inf if log_grown > 1 else stated + math.exp(log_grown)
        if delta < 1:
            value = 2 * claim.value
            note = f"From the add/remove epsilon {given(claim.value)} at delta {given(stated)}; mind the larger delta."
        else:
            delta = None
            note = (
                f"Epsilon {given(claim.value)} at delta {given(stated)} becomes a delta of 1 or more for replaced"
                " records, which implies nothing about them."
            )
    method = f"remove, then add: (2 epsilon, (1 + e^epsilon) delta); {claim.method}"
    return Claim("epsilon", value, delta, Adjacency.REPLACE_ONE, method, proven=claim.proven, note=note)


def require_metric(claim: Claim, *metrics: str) -> None:
    """Refuse what is no claim, or a claim about another quantity."""
    validate.instance("claim", claim, [Claim])
    validate.known("claim metric", claim.metric, metrics)


def delta_of(claim: Claim) -> float:
    """Return the delta of an epsilon claim; refuse one without it."""
    if claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    return claim.delta


def derived(claim: Claim, metric: str, value: float | None, method: str, note: str) -> Claim:
    """Return a claim without a delta of its own, with the adjacency and the standing of the one it comes from.

    Without a value it keeps that one's note, which says why.
    """
    note = claim.note if value is None else note
    return Claim(metric, value, None, claim.adjacency, method, proven=claim.proven, note=note)


# --- The whole trade-off curve that a training description allows, not only its epsilon at one delta ---

_POINTS = 200
_EPSILON_OF_A_PROFILE = 700.0
# What a double may lose in the difference of two normal tails.
_PROFILE_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class ClaimedCurve:
    """A claim's trade-off curve.

    Attributes:
        curve: For both orders of two neighbours, never below the true one; null if there is none.
        note: How the curve was made, or why there is none.
    """

    curve: TradeoffCurve | None
    note: str


def claimed_curve(claim: TrainingClaim, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ClaimedCurve:
    """Return the largest trade-off curve that a training description allows an attacker who sees every iterate.

    For DP-SGD it is the lowest of the curves of (epsilon, delta) at many epsilons, each delta an upper bound: by the
    accountant, without sampling, and from how rarely the record is drawn at all. So it never lies below the truth. Of an
    add/remove statement about points, replaced records have the curve of removing and then adding, `replaced_curve`.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        adjacency: Which training sets count as neighbours.

    Raises:
        InputError: The claim is of another type, or the adjacency is unknown.

    Source: Dong, Roth and Su 2022, Proposition 2.12; Doroshenko et al. 2022 for the deltas. Replaced records: mu doubles
    (Dong, Roth and Su 2022, Theorem 2.14) and rho fourfolds (Bun and Steinke 2016, Proposition 1.9).

    >>> round(claimed_curve(DPSGD(1.0, 1.0, 1)).curve.tpr_at(0.1), 3)  # Phi(Phi^-1(.1) + 1) = .3891
    0.389
    """
    validate.instance("claim", claim, get_args(TrainingClaim))
    relation = Adjacency.named(adjacency)
    if not isinstance(claim, DPSGD):
        return _stated_curve(claim, relation)
    if claim.fixed_size and relation is Adjacency.ADD_REMOVE:
        return ClaimedCurve(None, _as_phrase(_FIXED_SIZE_NEEDS_REPLACE_ONE))
    pair = StepPair.of(claim, relation)
    if pair is StepPair.REPLACE_ONE and claim.sampled and not accountant_has_replace_one():
        return ClaimedCurve(None, _as_phrase(_NEEDS))
    # The two worlds differ only if the record is ever drawn: delta at most the sum of the rates at epsilon 0.
    rarely_drawn = np.zeros(1), np.full(1, _ever_drawn(claim))
    parts = [_unsampled_profile(unsampled_mu(claim, pair)), rarely_drawn]
    kinds, grid = _discretised(_resolvable(claim.phases), pair) if claim.sampled else ((), None)
    accounted = None if grid is None else _composed_deltas(kinds, pair=pair, grid=grid, points=_POINTS)
    if accounted is not None:
        parts.append(accounted)
    note = "the whole privacy profile of the accountant (dp-accounting)"
    if not claim.sampled:
        note = "exact Gaussian composition"
    elif accounted is None:
        note = "Gaussian composition without sampling, so it may be loose"
    elif merging := _merging_note(claim):
        note += f"; {_as_phrase(merging)}"
    if claim.shuffled:
        note += f"; {_as_phrase(SHUFFLED)}"
    epsilons, deltas = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ClaimedCurve(TradeoffCurve.from_profile(epsilons, deltas=deltas), note)


def _stated_curve(claim: StatedClaim | StatedCurve, adjacency: Adjacency) -> ClaimedCurve:
    replaced = claim.adjacency is not adjacency
    if replaced and adjacency is Adjacency.ADD_REMOVE:
        return ClaimedCurve(None, _as_phrase(_NOTHING_ADDED))
    note = f"the claim of {claim.in_words()}" + ("; remove, then add" if replaced else "")
    if isinstance(claim, StatedClaim) or claim.points:
        return ClaimedCurve(_of_points(claim, replaced=replaced), note)
    if claim.mu is not None:
        epsilons, deltas = _unsampled_profile(claim.mu * (1 + replaced))
    else:
        rho = (claim.rho or 0.0) * (1 + replaced) ** 2
        deltas = np.geomspace(_PROFILE_ROUNDING, 0.99, _POINTS)
        epsilons = np.array([epsilon_from_rho(rho, delta=delta) for delta in deltas.tolist()])
        # Of Pinsker, and of Bretagnolle and Huber: what epsilon 0 leaves.
        apart = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
        epsilons, deltas = np.append(epsilons, 0.0), np.append(deltas, apart)
    return ClaimedCurve(TradeoffCurve.from_profile(epsilons, deltas=deltas), note)


def _unsampled_profile(mu: float) -> tuple[Floats, Floats]:
    """Every record in every step: delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu); Balle and Wang 2018."""
    furthest = min(gaussian_epsilon(mu, delta=_PROFILE_ROUNDING), _EPSILON_OF_A_PROFILE)
    epsilons = furthest * np.linspace(0.0, 1.0, _POINTS)
    upper = np.exp(log_ndtr(mu / 2 - epsilons / mu))
    lower = np.exp(epsilons + log_ndtr(-mu / 2 - epsilons / mu))
    return epsilons, np.clip(upper - lower + _PROFILE_ROUNDING, 0.0, 1.0)


def _as_phrase(sentence: str) -> str:
    words = sentence.strip().rstrip(".")
    return words[0].lower() + words[1:]


# --- Compositions of DP-SGD's steps: bounds on their epsilon and delta by dp_accounting ---

# What dp_accounting may cut off each tail of a composition.
_TAIL = 1e-15
# A Fourier transform raised to the power T carries rounding errors into delta: at most T x 1e-17 was seen against
# the exact Gaussian composition (noise 1 to 3000, up to 1e6 steps). Five times that is taken off delta beforehand.
_ROUNDING_PER_STEP = 5e-17
# The same for each convolution of two kinds of steps: less than 1e-15 for up to 160 kinds was seen.
_ROUNDING_PER_KIND = 5e-16


def accountant_has_replace_one() -> bool:
    """Return whether the installed dp_accounting knows replace-one neighbours for the sampled Gaussian."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return bool("neighboring_relation" in inspect.signature(pld.from_gaussian_mechanism).parameters)


def accountant_epsilon(kinds: tuple[Kind, ...], *, delta: float, pair: StepPair, grid: _Grid) -> float:
    """Return an upper bound on epsilon by privacy loss distributions, discretised pessimistically; infinity if none."""
    composed = _composed(kinds, pair, grid)
    if composed is None:
        return math.inf
    target = delta - _rounding(kinds)
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(composed.get_epsilon_for_delta(target))
        # It divides by a sum of e^-L, which overflows between 709 and 745 nats.
        return 746.0 if math.isinf(value) and composed.get_delta_for_epsilon(746.0) <= target else value


@lru_cache(maxsize=8)
def _composed_deltas(
    kinds: tuple[Kind, ...], *, pair: StepPair, grid: _Grid, points: int
) -> tuple[Floats, Floats] | None:
    """Return epsilons from 0 to where delta drowns in rounding error, and upper bounds on delta there; null if none."""
    composed = _composed(kinds, pair, grid)
    if composed is None:
        return None
    rounding = _rounding(kinds)
    least = min(max(1e-13, 10 * rounding), 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        furthest = min(float(composed.get_epsilon_for_delta(least)), 700.0)
        # Dense near 0, where most of a curve's bend is.
        epsilons = furthest * np.linspace(0.0, 1.0, points) ** 2
        if accountant_has_replace_one():
            # One at a time: for many at once it subtracts running sums, which may round a delta down.
            deltas = np.array([float(composed.get_delta_for_epsilon(value)) for value in epsilons.tolist()])
        else:
            # dp_accounting 0.4 has one way for one and for many, a loop over all losses.
            deltas = np.asarray(composed.get_delta_for_epsilon(epsilons.tolist()), dtype=np.float64)
    deltas = np.clip(deltas + rounding, 0.0, 1.0)
    for array in (epsilons, deltas):  # they are handed out again
        array.setflags(write=False)
    return epsilons, deltas


def _rounding(kinds: tuple[Kind, ...]) -> float:
    return _ROUNDING_PER_STEP * sum(kind.steps for kind in kinds) + _ROUNDING_PER_KIND * (len(kinds) - 1)


# Epsilon, advantage and every rate of one run follow from one composition.
@lru_cache(maxsize=4)
def _composed(kinds: tuple[Kind, ...], pair: StepPair, grid: _Grid) -> Any:
    """Return the privacy loss distribution of all steps, discretised pessimistically; null if there is none."""
    if len(kinds) == 1:
        return _one_kind(kinds[0], pair, grid)
    tail = _TAIL / len(kinds)
    # The fewest steps first, so that the long convolutions are few.
    order = count()
    queue = []
    for kind, inner in zip(kinds, grid.inner, strict=True):
        step = rounded_up(kind, pair, spacing=grid.spacing)
        queue.append((kind.steps, next(order), _self_compose(step, kind.steps, inner, tail)))
    heapq.heapify(queue)
    while len(queue) > 1:
        (few, _, one), (more, _, other) = heapq.heappop(queue), heapq.heappop(queue)
        heapq.heappush(queue, (few + more, next(order), one.compose(other, tail)))
    return queue[0][2]


def _one_kind(kind: Kind, pair: StepPair, grid: _Grid) -> Any:
    try:
        step = (
            rounded_up(kind, pair, spacing=grid.spacing)
            if pair is StepPair.FIXED_SIZE
            else _sampled_step(kind.least_private, pair, grid.spacing)
        )
    except ValueError:  # dp_accounting 0.4 refuses deltas that rounding put out of order
        return None
    return _self_compose(step, kind.steps, grid.inner[0], _TAIL)


def _sampled_step(phase: Phase, pair: StepPair, spacing: float) -> Any:
    """Return the privacy loss distribution of one step with batches drawn by coins."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    # Add/remove is the default everywhere; dp_accounting 0.4 has no such argument.
    relation = (
        {"neighboring_relation": NeighboringRelation.REPLACE_ONE} if pair is StepPair.REPLACE_ONE else {}
    )
    return pld.from_gaussian_mechanism(
        phase.noise_multiplier,
        sampling_prob=phase.sampling_rate,
        value_discretization_interval=spacing,
        **relation,
    )


def _self_compose(step: Any, steps: int, inner: int, tail: float) -> Any:
    """Return the composition of equal steps, by way of a composition of ``inner`` of them."""
    if inner == 1:
        return step.self_compose(steps, tail)
    outer, rest = divmod(steps, inner)
    composed = step.self_compose(inner, tail / outer).self_compose(outer, tail)
    return composed.compose(step.self_compose(rest, tail)) if rest else composed


# --- How finely to discretise the steps' privacy losses, and how to compose them, for an answer in about a second ---

# How far the grid may move epsilon, in nats (relative to the total KL divergence once that exceeds 1).
_TOLERANCE = 5e-5
# Most grid points of one step, of all kinds of steps and of the composition: a second or a few, and 100 MB.
_STEP_POINTS = 150_000
_ALL_POINTS = 600_000
_COMPOSED_POINTS = 400_000
# Outputs at which a step's law is looked at to choose the grid.
_LAW_POINTS = 20_001
_ROUGH_POINTS = 501
# Fewer points per step say little about a step.
_FEWEST_POINTS = 100
# Up to 1000 points dp_accounting keeps a step sparse and computes points ** steps: minutes at 1e7 steps.
_DENSE_POINTS = 2_000
# Wider than this, the exponential of the spacing is no longer of use (and overflows in the end).
_WIDEST_SPACING = 50.0
# From this many steps on, composing in two stages may pay; below, dp_accounting has no trouble with few points.
_MANY_STEPS = 100
# Outside these a step's losses exceed 1e6 nats or drown in rounding; simpler bounds say as much.
_NOISE_RANGE = (1e-3, 1e6)
_LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class _Law:
    """The privacy losses of one kind of steps, their log-masses in both orders, and how many steps."""

    loss: Floats
    log_upper: Floats
    log_lower: Floats
    steps: int

    @classmethod
    def of(cls, kind: Kind, pair: StepPair, points: int) -> "_Law":
        parts = [
            (loss, math.log(weight) + upper, math.log(weight) + lower)
            for weight, phase in kind.parts
            for loss, upper, lower in [loss_law(phase, pair, points=points)]
        ]
        loss, upper, lower = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(loss, upper, lower, kind.steps)

    @property
    def variance(self) -> float:
        return float(np.sum(np.exp(self.log_lower) * self.loss**2))

    @property
    def spread(self) -> float:
        return float(np.ptp(self.loss))

    @property
    def stages(self) -> tuple[int, ...]:
        """How many steps may be composed first: one stage (1) or two."""
        return (1, math.isqrt(self.steps)) if self.steps >= _MANY_STEPS else (1,)


def loss_grid(kinds: tuple[Kind, ...], *, pair: StepPair) -> _Grid | None:
    """Return the spacing at which discretising costs little accuracy and little time, or null if there is none.

    Connecting the dots keeps each step's mass and mean of e^-L, and adds a variance of about g^2/6 and a mean of
    g^2/12 for spacing g. T steps of total standard deviation V then move epsilon by about T g^2/12 (1 + 5/V), for
    deltas some five standard deviations out.
    """
    laws = [_Law.of(kind, pair, _LAW_POINTS if len(kinds) == 1 else _ROUGH_POINTS) for kind in kinds]
    steps = sum(law.steps for law in laws)
    variance = sum(law.steps * law.variance for law in laws)
    spread = max(law.spread for law in laws)
    wanted = min(
        math.sqrt(12 * _TOLERANCE * (1 + variance / 2) / (steps * (1 + 5 / math.sqrt(variance)))),
        math.sqrt(variance / steps) / 10,
        spread / _FEWEST_POINTS,
        _WIDEST_SPACING,
    )
    # A mass is a second difference of deltas over g, so rounding adds up to 1e-16/g to each of spread/g masses
    # (never takes any away): T times their sum must stay near 1.
    least = max(
        wanted,
        spread / _STEP_POINTS,
        sum(law.spread for law in laws) / _ALL_POINTS,
        5e-9 * math.sqrt(sum(law.steps * law.spread for law in laws)),
    )
    if len(laws) == 1:
        return _one_kind_of_step(laws[0], wanted=wanted, least=least)
    return _several_kinds(laws, wanted=wanted, least=least)


def _one_kind_of_step(law: _Law, *, wanted: float, least: float) -> _Grid | None:
    grids = []
    for inner in law.stages:
        spacing = max(least, _composed_width(law, inner=inner) / _COMPOSED_POINTS)
        points = _DENSE_POINTS if inner == 1 and law.steps >= _MANY_STEPS else _FEWEST_POINTS
        if spacing <= min(law.spread / points, _WIDEST_SPACING):
            grids.append(_Grid(spacing, spacing <= 2 * wanted, (inner,)))
    return min(grids, key=lambda grid: grid.spacing, default=None)


def _several_kinds(laws: list[_Law], *, wanted: float, least: float) -> _Grid | None:
    # Each kind is composed by itself, cut where its mass ends, and then with the others.
    ways = [min((_composed_width(law, inner=inner), inner) for inner in law.stages) for law in laws]
    widest = max(*(width for width, _ in ways), _joint_width(laws))
    spacing = max(least, widest / _COMPOSED_POINTS)
    if spacing > min(max(law.spread for law in laws) / _FEWEST_POINTS, _WIDEST_SPACING):
        return None
    inner = tuple(
        # Few points and many steps at once are slow, see above.
        math.isqrt(law.steps) if law.steps >= _MANY_STEPS and law.spread / spacing < _DENSE_POINTS else count
        for law, (_, count) in zip(laws, ways, strict=True)
    )
    return _Grid(spacing, spacing <= 2 * wanted, inner)


def _composed_width(law: _Law, *, inner: int) -> float:
    """Return how wide dp_accounting will make the composed grid, in nats: its Chernoff bounds, stage by stage.

    It takes orders up to 20 / (width of what it composes): near the best order in one stage if steps are few or
    heavy-tailed, far too large (a width ten times too wide) for many light-tailed ones; two stages mend that.
    """
    widths = []
    for loss, log_mass in ((law.loss, law.log_upper), (-law.loss, law.log_lower)):
        span = law.spread
        for steps in (law.steps,) if inner == 1 else (inner, law.steps):
            orders = np.arange(1, 21) / span
            log_tail = math.log(2 * law.steps / (_TAIL * steps))
            high = (steps * _log_moments(orders, loss, log_mass) + log_tail) / orders
            low = (steps * _log_moments(-orders, loss, log_mass) + log_tail) / orders
            span = max(span, min(float(high.min() + low.min()), steps * law.spread))
        widths.append(span)
    return max(widths)


def _joint_width(laws: list[_Law]) -> float:
    """Return how wide the composition of all kinds is once its tails are cut, in nats: Chernoff bounds at any order."""
    variance = sum(law.steps * law.variance for law in laws)
    orders = np.geomspace(0.1, 1e3, 20) / math.sqrt(variance)
    widths = []
    for backward in (False, True):
        up, down = np.zeros(orders.size), np.zeros(orders.size)
        for law in laws:
            loss, log_mass = (-law.loss, law.log_lower) if backward else (law.loss, law.log_upper)
            up += law.steps * _log_moments(orders, loss, log_mass)
            down += law.steps * _log_moments(-orders, loss, log_mass)
        log_tail = math.log(2 / _TAIL)
        widths.append(float(((up + log_tail) / orders).min() + ((down + log_tail) / orders).min()))
    return min(max(widths), sum(law.steps * law.spread for law in laws))


def _log_moments(orders: Floats, loss: Floats, log_mass: Floats) -> Floats:
    """Return the logarithms of the expectations of e^(order x loss)."""
    exponents = np.multiply.outer(orders, loss) + log_mass
    largest = exponents.max(axis=1)
    return np.asarray(largest + np.log(np.exp(exponents - largest[:, None]).sum(axis=1)))


def _in_range(phases: tuple[Phase, ...]) -> bool:
    """Return whether the steps' losses can be computed with, and sampling is of any help."""
    least, most = _NOISE_RANGE
    return (
        all(phase.noise_multiplier >= least for phase in phases)
        and any(phase.noise_multiplier <= most for phase in phases)
        and any(phase.sampling_rate < 1 for phase in phases)
    )


def _resolvable(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return phases that are no more private, and whose losses stand above rounding error.

    A step at rate p is a step at a larger rate mixed with one that both neighbours share, so epsilon grows with p;
    and it falls with the noise, which can be added afterwards.
    """
    return tuple(_resolvable_step(phase) for phase in phases) if _in_range(phases) else phases


def _resolvable_step(phase: Phase) -> Phase:
    noise = min(phase.noise_multiplier, _NOISE_RANGE[1])
    # One step's standard deviation is p sqrt(e^(1/s^2) - 1); the cap only keeps a tiny noise from overflowing.
    least = _LEAST_DEVIATION / math.sqrt(math.expm1(min(noise**-2, 30.0)))
    rate = min(1.0, max(phase.sampling_rate, least))
    return replace(phase, noise_multiplier=noise, sampling_rate=rate)
