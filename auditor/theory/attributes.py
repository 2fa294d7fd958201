"""Bounds for DP-SGD on an attacker who knows all of a record but one sensitive attribute, and infers it.

The two worlds differ in the value of that attribute in one training record, whose clipped gradients are then at most
R_t apart in step t. Both worlds draw the record with probability p and add noise of s C. The noise hides it all the
better where the attribute hardly moves the gradient: R_t is at most 2 C, and there this is membership inference.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import erf, logsumexp

from auditor.core import DPSGD, Adjacency, Claim, Floats, InputError, Integers, as_stated, validate
from auditor.theory.attackers import bayes_security_from_advantage, total_variation
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.gaussian import as_accounted
from auditor.theory.privacy_loss import _ComposedLaw
from auditor.theory.steps import Ray

# --- The promises, each form as Bayes security and as advantage ---

ATTRIBUTE_PRIVACY_NOTE = (
    "Measured on the training records, so it can reveal who was among them: do not publish it where membership matters."
    " Where attribute inference is the only threat, it is safe to publish"
    " (Cherubin et al. 2024, Section 5.3), though not the distances of the single steps."
)
_PUBLISHED_NOTE = (
    "An approximation that can be on the unsafe side (too little risk) for little noise, and for a small sampling"
    " rate with many steps: at rate 0.01, noise 1, 1,000 steps and distances of one clipping norm the exact advantage"
    " can be 0.1610, and this gives 0.1256. The paper's error term is left out."
)
_MATCHED_NOTE = (
    "An approximation, not a bound: on the safe side (too much risk) in every setting tried in which each step has the"
    " same two gradients. A training whose gradients depend on its earlier outputs can give a little more: at rate 0.01,"
    " noise 2, 1,000 steps and distances of 0.2 clipping norms 0.0155, and this gives 0.0153."
)
_BOUND_NOTE = "An upper bound on the risk from every attacker who sees all steps"
_FIXED_NOTE = f"{_BOUND_NOTE}, for distances that were fixed before training."
_MEASURED_NOTE = (
    f"{_BOUND_NOTE}, if the distances had been fixed before training. They were measured during it, and only on the"
    " records that each step drew, so this is no proof."
)
_MEMBERSHIP_NOTE = (
    f"{_BOUND_NOTE}, whatever the distances: the attribute gives away no more than the whole record. They would not give"
    " a smaller one here."
)
_PUBLISHED = "closed form 1 - erf(p |R| / (2 sqrt(2) s C)) (Cherubin et al. 2024, Corollary 10)"
_MATCHED = "moment-matched form of Corollary 10"
_BY_PAIRS = "total variation of dominating pairs (characteristic function), an upper bound"
_BY_STEPS = "sum of the steps' total variations, an upper bound"
_BY_DRAWS = "Gaussian composition of revealed draws, an upper bound"
_BY_CHI_SQUARE = "chi-square divergence, an upper bound"
_BY_MEMBERSHIP = "exact advantage of membership inference, an upper bound"
# Distances are computed in single precision, so one of exactly 2 C may come out a little above.
_SLACK = 1e-5
# Numbers of two computations that are the same.
_ALIKE = 1e-9


class _Risk(NamedTuple):
    """An advantage and its complement, each to its own last digit."""

    advantage: float
    security: float


@as_accounted
def attribute_inference(
    training: DPSGD, *, sensitivities: npt.ArrayLike, fixed_in_advance: bool = False
) -> tuple[Claim, ...]:
    """Return the promise of DP-SGD against an attacker who infers a sensitive attribute of a training record.

    Three forms of it, each as Bayes security beta* and as advantage 1 - beta*: the published one, 1 - erf(p |R| / (2
    sqrt2 s C)); the moment-matched one, which includes the terms that the published one neglects [own]; and a bound: the total
    variation of one pair for each step that dominates every two gradients at most R_t apart, composed [own]. For small
    distances and many steps a bound by chi-square [own] is smaller and takes its place. Beside them stands membership:
    the two closed forms, which (with Poisson sampling) are their values at R = 2 C, and the exact one.

    The distances come from the training records: the numbers can reveal who was among them. Do not publish them where
    membership inference is a concern too. Where attribute inference is the only threat, beta* is safe to publish, as
    it is the same for every value of the attribute (Section 5.3); the single distances are not, because they reveal in
    which steps a record was drawn, and the sampling rate protects only where that is secret [own].

    Args:
        training: Noise multiplier s, sampling rate p, clipping norm C, steps T, each a number or one for each step.
        sensitivities: R_t, one for each step or one for all: the largest distance of the clipped gradients of one
            record over the values of its sensitive attribute, in the units of the gradients, 0 <= R_t <= 2 C.
            `auditor.sensitivity` measures them during training, with dropout off; with it they can be larger.
        fixed_in_advance: Whether the distances hold for every record, drawn or not, and were fixed before training
            (for example 2 C). Only then is the bound proven, unless membership gives the smallest; measured distances
            depend on the results of earlier steps.

    Returns:
        ``attribute_bayes_security`` and ``attribute_advantage`` in [0, 1] by each of the three forms, then
        ``bayes_security`` (membership) in closed form, moment-matched and exact; all for replaced records.

    Raises:
        InputError: A distance outside [0, 2 C], or not one for each step.

    Source: Cherubin et al. 2024, Corollary 10 and Section 5.3; the other forms are derived in this module [own].

    >>> rows = attribute_inference(DPSGD(1.0, 0.01, 1000), sensitivities=0.5)
    >>> [(row.metric, round(row.value, 4), row.status) for row in rows[::2]]  # doctest: +NORMALIZE_WHITESPACE
    [('attribute_bayes_security', 0.937, 'approximation'), ('attribute_bayes_security', 0.8944, 'approximation'),
     ('attribute_bayes_security', 0.8653, 'approximation'), ('bayes_security', 0.7518, 'approximation'),
     ('bayes_security', 0.7356, 'proven')]
    """
    validate.instance("training", training, (DPSGD,))
    steps = steps_of(training, _distances(sensitivities, training))
    reach = 2.0 if training.fixed_size else 1.0
    spread = log_spread(steps, reach=reach)
    membership = total_variation(training)
    published = _gaussian(_log_total(steps, 2 * (steps.log_rate + steps.log_shift)))
    matched = _gaussian(_log_total(steps, 2 * steps.log_rate + spread))
    return (
        *_pair(published, _PUBLISHED, _PUBLISHED_NOTE, measured=not fixed_in_advance),
        *_pair(matched, _MATCHED, _MATCHED_NOTE, measured=not fixed_in_advance),
        *_bounded(*_bound(steps, spread, reach), membership, measured=not fixed_in_advance),
        bayes_security_closed_form(training),
        bayes_security_moment_matched(training),
        bayes_security_from_advantage(membership),
    )


def _bounded(own: _Risk, method: str, membership: Claim, *, measured: bool) -> tuple[Claim, Claim]:
    """Return the bound: no attacker gains more from one attribute than from the whole record."""
    if membership.value is not None and membership.value <= own.advantage * (1 + _ALIKE):
        whole = _Risk(membership.value, 1 - membership.value)
        return _pair(whole, _BY_MEMBERSHIP, _MEMBERSHIP_NOTE, measured=False, proven=membership.proven)
    note = _MEASURED_NOTE if measured else _FIXED_NOTE
    return _pair(own, method, note, measured=measured, proven=not measured)


def _pair(
    risk: _Risk, method: str, note: str, *, measured: bool, proven: bool = False
) -> tuple[Claim, Claim]:
    full = f"{note} {ATTRIBUTE_PRIVACY_NOTE}" if measured else note
    return (
        Claim("attribute_bayes_security", risk.security, None, Adjacency.REPLACE_ONE, method, proven, full),
        Claim("attribute_advantage", risk.advantage, None, Adjacency.REPLACE_ONE, method, proven, full),
    )


def _distances(values: npt.ArrayLike, training: DPSGD) -> Floats:
    """Return the distances over the clipping norm, one for each step or a single one."""
    raw = validate.numbers("sensitivities", values, lambda x: x >= 0, "be 0 or more")
    if raw.ndim > 1 or (raw.ndim == 1 and raw.size != training.steps):
        got = f"{raw.size:,}" if raw.ndim == 1 else f"shape {raw.shape}"
        raise InputError(
            f"sensitivities must have one number for each of the {training.steps:,} steps, got {got};"
            " describe the steps that were tracked, no more and no fewer."
        )
    clip = np.asarray(training.clipping_norm, dtype=np.float64)
    distance, clip = np.broadcast_arrays(raw, clip)
    bad = distance / 2 > clip * (1 + _SLACK)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            "sensitivities must be at most twice the clipping norm, got"
            f" {distance.flat[place]:g} at step {place + 1}, where the clipping norm is {as_stated(float(clip.flat[place]))}."
        )
    return np.minimum(distance / clip, 2.0)


# --- The three forms as arithmetic on the steps, in logs [own] ---

# exp(600) is still a double; whatever is capped there has long saturated the result.
_CAP = 600.0


@dataclass(frozen=True)
class _Steps:
    """Every step in logs: sampling rate, distance over noise, distance over clip, and how often it stands for a step."""

    log_rate: Floats
    log_shift: Floats
    distance: Floats
    log_inverse_variance: Floats
    times: int


def steps_of(training: DPSGD, distance: Floats) -> _Steps:
    """Return every step of a run in logs, for distances over the clipping norm."""
    with np.errstate(divide="ignore"):
        log_rate, log_noise, log_distance = (
            np.log(np.asarray(column, dtype=np.float64))
            for column in (training.sampling_rate, training.noise_multiplier, distance)
        )
    one = log_rate.size == log_noise.size == distance.size == 1
    return _Steps(
        log_rate=log_rate,
        log_shift=np.minimum(log_distance - log_noise, _CAP / 2),
        distance=distance,
        log_inverse_variance=np.minimum(-2 * log_noise, _CAP),
        times=training.steps if one else 1,
    )


def _log_total(steps: _Steps, logs: Floats) -> float:
    """Return the log of the sum over steps of exp(logs)."""
    every = np.broadcast_to(logs, np.broadcast_shapes(logs.shape, steps.distance.shape))
    return float(logsumexp(every)) + math.log(steps.times)


def _gaussian(log_squared_shift: float) -> _Risk:
    """Return the total variation of two unit normals from twice the log of their distance: erf(mu / (2 sqrt2))."""
    half = math.exp(min(log_squared_shift, _CAP) / 2) / (2 * math.sqrt(2))
    return _Risk(math.erf(half), math.erfc(half))


def log_spread(steps: _Steps, *, reach: float) -> Floats:
    """Return the log of the largest integral of (N(g) - N(h))^2 / N(0), over |g|, |h| <= 1 and |g - h| <= R.

    With u = 1 / s^2 the integral is e^(u |g|^2) + e^(u |h|^2) - 2 e^(u <g, h>) [own]. It rises in the longer of the two
    lengths, hence |h| = 1, and is then largest with g on the line to the origin, g = (1 - R) h, or with |g| = 1. The
    first is e^u [(1 - e^(-u R))^2 + e^(-u R (2 - R)) (1 - e^(-u R^2))], the second 2 e^u (1 - e^(-u R^2 / 2)).
    At R = 2 it is 4 sinh(u), as in the form for replaced records.

    In a batch of fixed size the record took the place of another one, whose gradient is then the origin: the two are
    up to 2 away from it (``reach``), which is the same with the lengths in units of 2.
    """
    u = np.exp(np.minimum(steps.log_inverse_variance + 2 * math.log(reach), _CAP))
    distance = steps.distance / reach
    with np.errstate(divide="ignore", under="ignore"):
        crossed = np.exp(-u * distance * (2 - distance)) * np.expm1(-u * distance**2)
        line = np.expm1(-u * distance) ** 2 - crossed
        circle = -2 * np.expm1(-u * distance**2 / 2)
        return np.asarray(u + np.log(np.maximum(line, circle)))


# --- The pair of laws that dominates a step, proven [own] ---
#
# One step shows P = (1-p) N_0 + p N_g to the one world and Q = (1-p) N_0 + p N_h to the other, N_v the law N(v, s^2 I)
# and g, h the record's clipped gradients over C. They lie in any direction of any dimension, |g| <= 1, |h| <= 1 and
# |g - h| <= R, and earlier outputs may decide which they are. For a >= 1 and b = (a - 1)(1 - p)/p,
#
#     H_a(P, Q) = sup_A P(A) - a Q(A) = p sup_A [N_g - a N_h - b N_0](A) = p (1 - E min(1, X + Y)),
#
# where X = a dN_h/dN_g and Y = b dN_0/dN_g under N_g: two log-normal variables of means a and b, with the variances
# |g - h|^2/s^2 and |g|^2/s^2 of their logarithms. These alone fix the law of each, the angle between h - g and -g how
# they go together. As min(1, .) is concave, H_a is largest where X + Y is largest in the convex order. For given laws
# of X and of Y that is where both rise together: h and 0 lie in the same direction from g. There the quantiles of the
# sum are the sums of the quantiles, so that it grows, in the same order, with X and with Y, which grow with |g - h| and
# with |g|. So for every a >= 1 the largest is that of g = 1 and h = 1 - R on one line, and it is reached: |1 - R| <= 1.
#
# Which world has the longer gradient is not known, and may change from step to step. For a < 1, H_a(P, Q) = 1 - a +
# a H_1/a(Q, P), so the same line is the largest with g and h exchanged. The largest of all, H_a over a > 0, is convex as
# each of them is: the curve of a pair (Zhu, Dong and Wang 2022), whose loss is that of the line where positive, its
# mirror image where negative, and 0 with the probability that is left. One order alone does not dominate: at p = .02,
# s = .7, R = 1 and 100 steps it has .173, and two gradients of length 1 have .202. Pairs that dominate each step dominate
# the run (the same authors). At R = 2 the line is its own mirror image, and this is membership inference.
#
# In a batch of fixed size the record takes the place of another one, x, and the rest of the batch is the same: given
# both, N_x stands in place of N_0, up to 2 away from g (`reach`), and h may lie between them. The mixture over x and
# over the rest has no larger H_a, which is convex in both laws together. So g = 2 and h = 2 - R.

# Below this noise, or with less than _LITTLE_NOISE and a shift of more deviations, a step that has the record shows it:
# revealed draws and the whole record are close to the truth, and the law of these losses takes long to compute.
_LEAST_NOISE, _LITTLE_NOISE, _LARGEST_SHIFT = 0.05, 0.25, 5.0
# More noise, or a smaller rate, counts as this much, which can only be worse.
_MOST_NOISE, _LEAST_RATE = 1e6, 1e-12
# So many different steps are composed as they are, more as fewer, each parameter rounded up.
_MOST_KINDS = 16


def composed_pairs(steps: _Steps, *, reach: float) -> float:
    """Return the total variation of the dominating pairs of all steps, rounded up; 1 where it cannot be computed."""
    kinds, counts = _kinds(steps)
    rate, noise, distance = kinds[:, :1], 1 / kinds[:, 1:2], kinds[:, 2:]
    sampled = rate[:, 0] < 1
    shift = distance / noise
    revealed = (noise < _LEAST_NOISE) | ((noise < _LITTLE_NOISE) & (shift > _LARGEST_SHIFT))
    # At the full distance the whole record's law is this one, and is computed anyway.
    whole = distance == 2 * reach
    if not sampled.any() or revealed[sampled].any() or whole[sampled].all():
        return 1.0
    pairs = Ray(
        np.minimum(noise, _MOST_NOISE)[sampled],
        np.maximum(rate, _LEAST_RATE)[sampled],
        counts[sampled].astype(np.float64),
        reach,
        reach - distance[sampled],
    )
    mu = math.sqrt(float(np.sum((counts[:, None] * shift**2)[~sampled])))
    return _ComposedLaw(pairs, mu).total_variation()


def _kinds(steps: _Steps) -> tuple[Floats, Integers]:
    """Return rate, inverse noise and distance of different steps, and how many there are of each."""
    columns = np.broadcast_arrays(
        np.exp(steps.log_rate), np.exp(steps.log_inverse_variance / 2), steps.distance
    )
    table = np.stack([column.ravel() for column in columns], axis=1)
    table, levels = table[table[:, 2] > 0], _MOST_KINDS
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    while len(kinds) > _MOST_KINDS:
        rounded = np.stack([_rounded_up(column, levels) for column in table.T], axis=1)
        kinds, counts = np.unique(rounded, axis=0, return_counts=True)
        levels = max(1, levels - max(1, levels // 8))
    return kinds, counts * steps.times


def _rounded_up(values: Floats, levels: int) -> Floats:
    """Return for each value the largest one in its cell, of so many equally wide ones."""
    width = max(float(np.ptp(values)) / levels, 1e-300)
    cell = np.minimum((values - values.min()) / width, levels - 1).astype(np.int64)
    largest: Floats = np.zeros(levels)
    np.maximum.at(largest, cell, values)
    return np.asarray(largest[cell])


def _bound(steps: _Steps, spread: Floats, reach: float) -> tuple[_Risk, str]:
    """Return the smallest of upper bounds on the total variation [own], and its name; r = R / (s C) is one step's shift.

    By dominating pairs (above): where it can be computed no other is smaller but, for small distances, that by chi-square.

    By steps: the total variation of a run is at most the sum over its steps, p erf(r / (2 sqrt2)) each: exact for one.

    By revealed draws: who also learns which steps drew the record sees Gaussians a distance r apart in those steps and
    nothing in the others: E erf(sqrt(sum of the drawn r^2) / (2 sqrt2)), and erf(sqrt(x)) is concave, so that the
    expectation of the sum in its place is an upper bound: exact at p = 1.

    By chi-square: one step's divergence is at most p^2 [(1 - p) spread + p (e^(r^2) - 1)], because 1/x is convex and
    the second world is a mixture, and at most p^2 spread / (1 - p), where the mixture is cut to one part. One plus
    chi-square multiplies over steps, and the total variation v satisfies chi-square >= 4 v^2 up to v = 1/2 and >= v / (1 - v) beyond (the least of v^2 / (b (1 - b)) over b <= 1 - v).
    """
    rate, shift = np.exp(steps.log_rate), np.exp(steps.log_shift)
    by_steps = float(np.sum(rate * erf(shift / (2 * math.sqrt(2))))) * steps.times
    revealed = _gaussian(_log_total(steps, steps.log_rate + 2 * steps.log_shift))
    with np.errstate(divide="ignore", under="ignore", invalid="ignore"):
        drawn = steps.log_rate + shift**2 + np.log(-np.expm1(-(shift**2)))
        rest = np.log1p(-rate)
        # At rate 1 the second form is infinite, or without meaning where the distance is 0.
        log_chi = 2 * steps.log_rate + np.fmin(np.logaddexp(rest + spread, drawn), spread - rest)
    total = float(np.sum(np.logaddexp(0.0, log_chi))) * steps.times
    by_chi_square = _Risk(-math.expm1(-total), math.exp(-total))
    if total <= math.log(2):
        half = math.sqrt(math.expm1(total)) / 2
        by_chi_square = _Risk(half, 1 - half)
    by_steps = min(by_steps, 1.0)
    result = [
        (_Risk(by_steps, 1 - by_steps), _BY_STEPS),
        (revealed, _BY_DRAWS),
        (by_chi_square, _BY_CHI_SQUARE),
    ]
    if rate.min() < 1 and steps.distance.size * steps.times > 1:
        by_pairs = composed_pairs(steps, reach=reach)
        result.append((_Risk(by_pairs, 1 - by_pairs), _BY_PAIRS))
    return min(result, key=lambda bound: bound[0].advantage)
