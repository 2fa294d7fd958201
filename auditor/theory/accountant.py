"""The epsilon that a training description promises, its whole trade-off curve, and the consequences for replaced records.

Sampled steps are composed exactly (`auditor.theory.composed`); simpler bounds take their place where the noise is next to none.
"""

import math
from dataclasses import dataclass, replace
from typing import cast, get_args

import numpy as np

from auditor.core import Claim, Floats, InputError, as_stated, validate
from auditor.core.options import DPSGD, Adjacency, PrivacyUnit, StatedClaim, StatedCurve, TrainingClaim
from auditor.curves.tradeoff import TradeoffCurve
from auditor.theory import gaussian
from auditor.theory.gaussian import StepPair, as_accounted, gaussian_epsilon, unsampled_mu
from auditor.theory.privacy_loss import PrivacyLoss, Unresolved, composed, only_a_bound
from auditor.theory.renyi import epsilon_from_rho, phases_epsilon

# --- The epsilon of a training run: the tightest of the bounds that work for its parameters ---

EXACT = "exact law of the composed privacy loss (Fourier inversion)"
_SAFETY = "An upper bound for an attacker who sees every iterate."
_REACHED = "For an attacker who sees every iterate; the worst two neighbours reach it."
_EVERYONE = "Gaussian composition without sampling"
_RENYI = "Renyi divergences (quadrature)"
# Of noise: below, the exact law may be out of reach, or take a bound for it.
_LITTLE = 0.1
_LITTLE_NOISE = " So little noise is beyond the exact law, so it may be loose."
_FIXED_SIZE_NEEDS_REPLACE_ONE = (
    "Batches of a fixed size are accounted for replaced records only: with one record more or less, the size would"
    " change."
)
_FIXED_SIZE = " Batches of a fixed size must be drawn again at every step; passes over the shuffled records are not covered."
_NEVER_PURE = "A Gaussian mechanism has no finite epsilon at delta 0."
_NOTHING_ADDED = "A replace-one statement implies nothing about adding or removing a record."


@as_accounted
def epsilon(claim: TrainingClaim, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the epsilon that a training description promises at this delta.

    DP-SGD is a Poisson-sampled Gaussian mechanism, and its steps are composed exactly: the value is rounded up by an error
    that is bounded, mostly 1e-10 of it. Where there is almost no noise it is the smaller of a bound by Renyi divergences
    and of Gaussian composition without sampling, and ``method`` says which.
    Batches of a fixed size are accounted for replaced records only; for added ones the value is None. Of shuffled batches
    it is the epsilon as it was accounted, and not proven.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        delta: In [0, 1). A Gaussian mechanism has no finite epsilon at 0.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``epsilon`` in nats. Its value is None, and ``note`` says why, when it cannot be computed or when the
        statement does not imply one; it is never silently 0.

    Raises:
        InputError: The claim is of another type, delta is outside [0, 1), or the adjacency is unknown.

    Source: `auditor.theory.composed`; Balle and Wang 2018 for a sampling rate of 1; Balle, Barthe and Gaboardi 2018,
    Theorem 11, for batches of a fixed size.

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
    elif claim.records_per_person is not None:
        value, method, note = _of_person(claim, delta=delta, adjacency=relation)
    else:
        value, method, note = _bound(claim, delta=delta, adjacency=relation)
    return Claim("epsilon", value, delta, relation, method, proven=True, note=note)


def _stated(claim: StatedClaim, *, delta: float, adjacency: Adjacency) -> Claim:
    """Return a stated epsilon where it applies: for its own neighbours or replaced ones, at its delta or above."""
    base = implied(claim, adjacency)
    value, note = base.value, base.note or "Taken at its word."
    if value is not None and base.delta is not None:
        if delta > base.delta:
            note += f" Stated at delta {as_stated(base.delta)}; the same epsilon holds at every larger delta."
        elif delta < base.delta:
            note += f" It holds from delta {as_stated(base.delta)} up and implies no epsilon at {as_stated(delta)}."
            value = None
    return Claim("epsilon", value, delta, adjacency, base.method, proven=True, note=note)


def implied(claim: StatedClaim, adjacency: Adjacency) -> Claim:
    """Return the statement for these neighbours, at its own delta."""
    own = Claim("epsilon", float(claim.epsilon), float(claim.delta), claim.adjacency, "stated", proven=True)
    if claim.records_per_person is not None:
        own = for_group(own, claim.records_per_person)
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
    note, times = "Taken at its word" + (", for removing and then adding" if replaced else ""), 1 + replaced
    if claim.records_per_person is not None:
        note, times = f"{note}, for {_group(claim.records_per_person)}", times * claim.records_per_person
    note += " a record." if replaced and times == _TWICE else "."
    if claim.mu is not None:
        return gaussian_epsilon(claim.mu * times, delta=delta), "stated mu of Gaussian DP", note
    if claim.rho is not None:
        value = epsilon_from_rho(claim.rho * times**2, delta=delta)
        return value, "stated rho of zero-concentrated DP", note
    value = _of_points(claim, times=times).epsilon_at(delta)
    if times == 1:
        # As it was stated, to the last digit.
        stated = min((point[0] for point in claim.points if point[1] <= delta), default=math.inf)
        value = stated if math.isclose(value, stated, rel_tol=1e-9) else min(value, stated)
    if math.isinf(value):
        return None, "stated points", f"{note} The points imply no epsilon at delta {as_stated(delta)}."
    return value, "stated points", note


def _of_points(claim: StatedClaim | StatedCurve, *, times: int) -> TradeoffCurve:
    """Return the lowest of the curves of the stated points, so many times in turn."""
    points = claim.points if isinstance(claim, StatedCurve) else [(claim.epsilon, claim.delta)]
    epsilons, deltas = zip(*points, strict=True)
    return group_curve(TradeoffCurve.from_profile(epsilons, deltas=deltas), times)


def _of_person(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note of a run for people with several records."""
    whole, records = claimed_curve(training, adjacency=adjacency), training.records_per_person or 1
    method = f"whole trade-off curve for {_group(records)}"
    if whole.curve is None:
        return None, method, f"{whole.note[:1].upper()}{whole.note[1:]}."
    if delta == 0:
        return math.inf, method, _NEVER_PURE
    single = of_records(training)
    everyone = records * unsampled_mu(single, StepPair.of(single, adjacency))
    values = [whole.curve.epsilon_at(delta), gaussian_epsilon(everyone, delta=delta)]
    # The curve ends at very small deltas, which grow with every record; these go further.
    for power in (1, 2, 4, 8, 16, 32):
        grown = for_group(epsilon(single, delta=delta**power, adjacency=adjacency), records)
        values += [grown.value] if grown.value is not None and delta_of(grown) <= delta else []
    return min(values), method, f"{_SAFETY} For {_group(records)}, by group privacy."


def of_records(training: DPSGD) -> DPSGD:
    """Return the run as one for single records."""
    return replace(training, unit=PrivacyUnit.RECORD, records_per_person=None)


def _group(records: int | None) -> str:
    return f"a group of {records:,} record{'' if records == 1 else 's'}"


def _bound(training: DPSGD, *, delta: float, adjacency: Adjacency) -> tuple[float | None, str, str]:
    """Return the value, the method and the note."""
    if training.fixed_size and adjacency is Adjacency.ADD_REMOVE:
        return None, EXACT, _FIXED_SIZE_NEEDS_REPLACE_ONE
    if delta == 0:
        return math.inf, "Gaussian noise", _NEVER_PURE
    if _ever_drawn(training) <= delta:
        # The two worlds differ only if the record is ever drawn: probability at most the sum of the rates.
        return 0.0, "union bound over the steps", "The record enters training with probability at most delta."
    pair = StepPair.of(training, adjacency)
    everyone = gaussian_epsilon(unsampled_mu(training, pair), delta=delta)
    if not training.sampled:
        return everyone, "exact Gaussian composition", _SAFETY
    ending = _FIXED_SIZE if training.fixed_size else ""
    # A sampled step mixes the unsampled pair with a pair of equal laws, so it is never easier to distinguish.
    loose = " It lets every record into every step, so it may be loose."
    bounds = [(everyone, _EVERYONE, _SAFETY + loose)]
    try:
        law = composed(training, adjacency=adjacency)
        value = law.epsilon_at(delta)
        bounded = only_a_bound(training) or _rounded_up(law, value, delta)
        bounds.append((value, EXACT, (f"{_SAFETY} {bounded}" if bounded else _REACHED) + ending))
    except Unresolved:
        pass
    if min(phase.noise_multiplier for phase in training.phases) < _LITTLE:
        renyi = phases_epsilon(training.phases, pair=pair, delta=delta)
        bounds.append((renyi, _RENYI, _SAFETY + _LITTLE_NOISE + ending))
    return min(bounds, key=lambda bound: bound[0])


def _rounded_up(law: PrivacyLoss, epsilon: float, delta: float) -> str:
    """Return a remark where the bounds leave open that the exact epsilon at a delta is a hundredth or more below, else nothing."""
    if not 0 < epsilon < math.inf:
        return ""
    below = np.array([0.99 * epsilon])
    least = max(float(law.between(below, backward=order)[0][0]) for order in (False, True))
    return "" if least > delta else "It is rounded up, possibly by a hundredth or more."


def _ever_drawn(training: DPSGD) -> float:
    """Return a bound on the probability that a record is ever drawn: the sum of the sampling rates, at most 1."""
    return min(1.0, sum(phase.steps * phase.sampling_rate for phase in training.phases))


# --- Claims that follow from other claims, first of all for replaced records ---


def replace_one(claim: Claim) -> Claim:
    """Return the promise of an add/remove claim for replaced records: (2 epsilon, (1 + e^epsilon) delta).

    Replacing is removing and then adding: P(S) <= e^eps P'(S) + d <= e^eps (e^eps P''(S) + d) + d.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.

    Returns:
        ``epsilon`` for replace-one neighbours at the larger delta; the claim itself if it is replace-one already.
        The value and the delta are None when the larger delta reaches 1, which implies nothing.

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
    grown = _grown(claim, _TWICE, "the add/remove epsilon", "replaced records")
    method = f"remove, then add: (2 epsilon, (1 + e^epsilon) delta); {claim.method}"
    return replace(grown, adjacency=Adjacency.REPLACE_ONE, method=method)


def for_group(claim: Claim, records: int) -> Claim:
    """Return the promise of a claim for records to groups of them: (k epsilon, (e^(k epsilon) - 1)/(e^epsilon - 1) delta).

    The records of a group change one after the other: P(S) <= e^eps P'(S) + d for each of them, so that the deltas add up
    to d (1 + e^eps + ... + e^((k - 1) eps)).

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta.
        records: k, the largest number of records of a group, 1 or more; of replaced records, their number.

    Returns:
        ``epsilon`` for the same kind of neighbours; None if the larger delta reaches 1, which implies nothing.

    Raises:
        InputError: The claim is not an epsilon with its delta, or the number is out of range.

    Source: Dwork and Roth 2014, Theorem 2.2; Vadhan 2017, Lemma 2.2, with its delta.

    >>> group = for_group(epsilon(StatedClaim(0.5, 1e-6), delta=1e-6), 3)
    >>> group.value, round(group.delta, 12)  # 1e-6 (1 + e^.5 + e)
    (1.5, 5.367003e-06)
    """
    require_metric(claim, "epsilon")
    records = validate.at_least("records", records, least=1)
    grown = _grown(claim, records, "the epsilon", _group(records))
    return replace(grown, method=f"{_group(records)}, one after the other; {claim.method}")


_TWICE = 2


def _grown(claim: Claim, times: int, origin: str, whom: str) -> Claim:
    """Return an epsilon claim after so many steps in turn: each has its epsilon, and the deltas of all before it grow."""
    if claim.value is None:
        return replace(claim, delta=None, note=f"No epsilon: {claim.note}")
    stated, each = delta_of(claim), claim.value
    # In logs, because e^epsilon may overflow: a delta of 1 or more is all that matters then.
    steps = float(np.logaddexp.reduce(each * np.arange(1, times)))
    log_grown = steps + math.log(stated) if stated else -math.inf
    delta = math.inf if log_grown > 1 else stated + math.exp(log_grown)
    before = f"{as_stated(each)} at delta {as_stated(stated)}"
    if delta < 1:
        note = f"From {origin} {before}; mind the larger delta."
        return replace(claim, value=times * each, delta=delta, note=note)
    note = f"Epsilon {before} becomes a delta of 1 or more for {whom}, which implies nothing about them."
    return replace(claim, value=None, delta=None, note=note)


def require_metric(claim: Claim, *metrics: str) -> None:
    """Refuse a value that is not a claim, or a claim about another quantity."""
    validate.instance("claim", claim, [Claim])
    validate.one_of("claim metric", claim.metric, metrics)


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
# For the last digits of a delta.
_PROFILE_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class ClaimedCurve:
    """A claim's trade-off curve.

    Attributes:
        curve: For both orders of two neighbours, never below the true one; None if there is none.
        note: Source of the curve, or the reason why there is none.
    """

    curve: TradeoffCurve | None
    note: str


def claimed_curve(claim: TrainingClaim, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ClaimedCurve:
    """Return the largest trade-off curve that a training description allows an attacker who sees every iterate.

    For DP-SGD it is the lowest of the curves of (epsilon, delta) at many epsilons, each delta an upper bound: of the exact
    law, without sampling, and from how rarely the record is drawn at all. So it never lies below the truth. Of an
    add/remove statement about points, replaced records have the curve of two records, removed and then added, `group_curve`; people
    with several records have that of as many steps, `group_curve`.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        adjacency: Relation between neighbouring training sets.

    Raises:
        InputError: The claim is of another type, or the adjacency is unknown.

    Source: Dong, Roth and Su 2022, Proposition 2.12. Replaced records: mu doubles (Dong, Roth and Su 2022, Theorem 2.14)
    and rho fourfolds (Bun and Steinke 2016, Proposition 1.9).

    >>> round(claimed_curve(DPSGD(1.0, 1.0, 1)).curve.tpr_at(0.1), 3)  # Phi(Phi^-1(.1) + 1) = .3891
    0.389
    """
    validate.instance("claim", claim, get_args(TrainingClaim))
    relation = Adjacency.named(adjacency)
    if not isinstance(claim, DPSGD):
        return _stated_curve(claim, relation)
    if claim.fixed_size and relation is Adjacency.ADD_REMOVE:
        return ClaimedCurve(None, _as_phrase(_FIXED_SIZE_NEEDS_REPLACE_ONE))
    if claim.records_per_person is not None:
        return _curve_of_group(claim, claim.records_per_person, relation)
    # The two worlds differ only if the record is ever drawn: delta at most the sum of the rates at epsilon 0.
    rarely_drawn = np.zeros(1), np.full(1, _ever_drawn(claim))
    parts = [_unsampled_profile(unsampled_mu(claim, StepPair.of(claim, relation))), rarely_drawn]
    note = "exact Gaussian composition"
    if claim.sampled:
        try:
            parts.append(composed(claim, adjacency=relation).profile())
            note = f"the whole privacy profile of the {EXACT}"
        except Unresolved:
            note = "Gaussian composition without sampling, so it may be loose"
    if claim.shuffled:
        note += f"; {_as_phrase(gaussian.SHUFFLED)}"
    epsilons, deltas = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ClaimedCurve(TradeoffCurve.from_profile(epsilons, deltas=deltas), note)


def _stated_curve(claim: StatedClaim | StatedCurve, adjacency: Adjacency) -> ClaimedCurve:
    replaced = claim.adjacency is not adjacency
    if replaced and adjacency is Adjacency.ADD_REMOVE:
        return ClaimedCurve(None, _as_phrase(_NOTHING_ADDED))
    note = f"the claim of {claim.in_words()}" + ("; remove, then add" if replaced else "")
    times = (1 + replaced) * (claim.records_per_person or 1)
    if isinstance(claim, StatedClaim) or claim.points:
        return ClaimedCurve(_of_points(claim, times=times), note)
    if claim.mu is not None:
        epsilons, deltas = _unsampled_profile(claim.mu * times)
    else:
        rho = (claim.rho or 0.0) * times**2
        deltas = np.geomspace(_PROFILE_ROUNDING, 0.99, _POINTS)
        epsilons = np.array([epsilon_from_rho(rho, delta=delta) for delta in deltas.tolist()])
        # Of Pinsker, and of Bretagnolle and Huber: the bound at epsilon 0.
        apart = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
        epsilons, deltas = np.append(epsilons, 0.0), np.append(deltas, apart)
    return ClaimedCurve(TradeoffCurve.from_profile(epsilons, deltas=deltas), note)


def _unsampled_profile(mu: float) -> tuple[Floats, Floats]:
    """Return the profile with every record in every step."""
    furthest = min(gaussian_epsilon(mu, delta=_PROFILE_ROUNDING), _EPSILON_OF_A_PROFILE)
    epsilons = furthest * np.linspace(0.0, 1.0, _POINTS)
    return epsilons, np.minimum(gaussian.gaussian_deltas(mu, epsilons=epsilons) + _PROFILE_ROUNDING, 1.0)


def _curve_of_group(training: DPSGD, records: int, adjacency: Adjacency) -> ClaimedCurve:
    """Return the curve of a run for groups of records: without sampling mu grows with them, else one after the other."""
    single = of_records(training)
    if not training.sampled:
        epsilons, deltas = _unsampled_profile(records * unsampled_mu(single, StepPair.of(single, adjacency)))
        curve, note = TradeoffCurve.from_profile(epsilons, deltas=deltas), "exact Gaussian composition"
    else:
        one = claimed_curve(single, adjacency=adjacency)
        curve, note = group_curve(cast("TradeoffCurve", one.curve), records), one.note
    return ClaimedCurve(curve, f"{note}, for {_group(records)}")


def group_curve(curve: TradeoffCurve, records: int) -> TradeoffCurve:
    """Return the curve that T allows for groups of k records that change one after the other: T(... T(FPR)), k times.

    P(S) <= T(P'(S)) <= T(T(P''(S))), since T never falls. Exact on straight pieces: the corners lie where T has one, or
    leads to one. A curve with very many corners is replaced by lines that touch it, so it never lies below the truth.
    Covers both orders of two neighbours if T does.

    Args:
        curve: For one record, concave, corners joined by straight lines.
        records: k, 1 or more.

    Raises:
        InputError: The curve is no TradeoffCurve, or the number is out of range.

    Source: Dong, Roth and Su 2022, Theorem 2.14.

    >>> pure = group_curve(TradeoffCurve.from_epsilon_delta(1.0, delta=0.0), 3)
    >>> round(pure.tpr_at(0.01), 6)  # .01 e^3
    0.200855
    """
    validate.instance("curve", curve, [TradeoffCurve])
    left = validate.at_least("records", records, least=1)
    result, power = None, curve
    while True:
        if left % 2:
            result = power if result is None else _after(power, result)
        left //= 2
        if not left:
            return cast("TradeoffCurve", result)
        power = _after(power, power)


def _after(second: TradeoffCurve, first: TradeoffCurve) -> TradeoffCurve:
    """Return second(first(FPR)), with few enough corners."""
    # Without what comes before the jump at 0, and after TPR 1: there the first is one number for each rate, and has an inverse.
    rising = np.concatenate([np.diff(first.tpr) > 0, [False]]) | (first.tpr == 1)
    start = int(np.flatnonzero(first.fpr == 0)[-1])
    fpr, tpr = first.fpr[start:], first.tpr[start:]
    rising = rising[start:] & (np.cumsum(tpr == 1) <= 1)
    jump = int(np.flatnonzero(second.fpr == 0)[-1])
    at, to = second.fpr[jump:], second.tpr[jump:]
    before = np.interp(at[at >= tpr[0]], tpr[rising], fpr[rising])
    corners = np.unique(np.concatenate([fpr, before]))
    both = np.maximum.accumulate(np.interp(np.interp(corners, fpr, tpr), at, to))
    result = TradeoffCurve(fpr=np.concatenate([[0.0], corners]), tpr=np.concatenate([[0.0], both]))
    if corners.size <= _MOST_CORNERS:
        return result
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log(np.diff(result.tpr) / np.diff(result.fpr))
    slopes = np.unique(slopes[np.isfinite(slopes) & (slopes >= 0)])
    lines = slopes[np.linspace(0, slopes.size - 1, min(_LINES, slopes.size)).astype(np.int64)]
    return TradeoffCurve.from_profile(lines, deltas=result.delta_at(lines))


_MOST_CORNERS, _LINES = 4000, 1000


def _as_phrase(sentence: str) -> str:
    words = sentence.strip().rstrip(".")
    return words[0].lower() + words[1:]
