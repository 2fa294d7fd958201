"""What DP-SGD leaves to an attacker who knows a record but for one sensitive attribute, and wants that attribute.

The two worlds differ in the value of that attribute in one training record, whose clipped gradients are then at most
R_t apart in step t. Both worlds draw the record with probability p and add noise of s C. The noise hides it all the
better where the attribute hardly moves the gradient: R_t is at most 2 C, and there this is membership inference.
"""

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._format import given
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._attribute_bounds import Risk, bound, gaussian, log_spread, log_total, steps_of
from auditor.theory.advantage import bayes_security_from_advantage
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.total_variation import total_variation
from auditor.values import Claim, Floats

__all__ = ["ATTRIBUTE_PRIVACY_NOTE", "attribute_inference"]

ATTRIBUTE_PRIVACY_NOTE = (
    "Measured on the training records, so it can tell who was among them: do not publish it where membership matters."
    " Where attribute inference is the only threat, it is safe to publish"
    " (Cherubin et al. 2024, Section 5.3), though not the distances of the single steps."
)
_PUBLISHED_NOTE = (
    "An approximation that can be on the unsafe side (too little risk) for little noise, and for a small sampling"
    " rate with many steps: at rate 0.01, noise 1, 1,000 steps and distances of one clipping norm the exact advantage"
    " can be 0.1610, and this gives 0.1256. The paper calls it a bound; our erratum on its Corollary 7 holds here too."
)
_MATCHED_NOTE = (
    "An approximation, not a bound: it came out on the safe side (too much risk) in every setting tried, without a"
    " proof that it always does."
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
# Distances are computed in single precision, so one of exactly 2 C may come out a little above.
_SLACK = 1e-5


def attribute_inference(
    training: DPSGD, *, sensitivities: npt.ArrayLike, fixed_in_advance: bool = False
) -> tuple[Claim, ...]:
    """Return what DP-SGD promises against an attacker who infers a sensitive attribute of a training record.

    Three forms of it, each as Bayes security beta* and as advantage 1 - beta*: the published one, 1 - erf(p |R| / (2
    sqrt2 s C)); the moment-matched one, which counts what the published one neglects [own]; and a bound: the smallest
    of three that follow from the distances [own] and of the exact advantage of membership inference, which is never
    less. Beside them stands membership: the two closed forms, which (with Poisson sampling) are their values at R = 2 C, and
    the exact one.

    The distances come from the training records: the numbers can tell who was among them. Do not publish them where
    membership inference is a concern too. Where attribute inference is the only threat, beta* is safe to publish, as
    it is the same for every value of the attribute (Section 5.3); the single distances are not, because they tell in
    which steps a record was drawn, and the sampling rate protects only where that is secret [own].

    Args:
        training: Noise multiplier s, sampling rate p, clipping norm C, steps T, each a number or one for each step.
        sensitivities: R_t, one for each step or one for all: the largest distance of the clipped gradients of one
            record over the values of its sensitive attribute, in the units of the gradients, 0 <= R_t <= 2 C.
            `auditor.sensitivity` measures them during training, with dropout off; with it they can be larger.
        fixed_in_advance: Whether the distances hold for every record, drawn or not, and were fixed before training
            (for example 2 C). Only then is the bound proven, unless membership gives the smallest; measured distances
            depend on what earlier steps gave.

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
    _validate.instance("training", training, (DPSGD,))
    steps = steps_of(training, _distances(sensitivities, training))
    spread = log_spread(steps, reach=2.0 if training.fixed_size else 1.0)
    membership = total_variation(training)
    published = gaussian(log_total(steps, 2 * (steps.log_rate + steps.log_shift)))
    matched = gaussian(log_total(steps, 2 * steps.log_rate + spread))
    return (
        *_pair(published, _PUBLISHED, _PUBLISHED_NOTE, measured=not fixed_in_advance),
        *_pair(matched, _MATCHED, _MATCHED_NOTE, measured=not fixed_in_advance),
        *_bounded(bound(steps, spread), membership, measured=not fixed_in_advance),
        bayes_security_closed_form(training),
        bayes_security_moment_matched(training),
        bayes_security_from_advantage(membership),
    )


def _bounded(own: Risk, membership: Claim, *, measured: bool) -> tuple[Claim, Claim]:
    """Return the bound: no attacker gains more from one attribute than from the whole record."""
    if membership.value is not None and membership.value <= own.advantage:
        whole = Risk(membership.value, 1 - membership.value)
        return _pair(whole, _BY_MEMBERSHIP, _MEMBERSHIP_NOTE, measured=False, proven=membership.proven)
    note = _MEASURED_NOTE if measured else _FIXED_NOTE
    return _pair(own, _BOUND, note, measured=measured, proven=not measured)


def _pair(risk: Risk, method: str, note: str, *, measured: bool, proven: bool = False) -> tuple[Claim, Claim]:
    full = f"{note} {ATTRIBUTE_PRIVACY_NOTE}" if measured else note
    return (
        Claim("attribute_bayes_security", risk.security, None, Adjacency.REPLACE_ONE, method, proven, full),
        Claim("attribute_advantage", risk.advantage, None, Adjacency.REPLACE_ONE, method, proven, full),
    )


_PUBLISHED = "closed form 1 - erf(p |R| / (2 sqrt(2) s C)) (Cherubin et al. 2024, Corollary 10)"
_MATCHED = "moment-matched form of Corollary 10"
_BOUND = "smallest of three bounds: by steps, by revealed draws, by chi-square"
_BY_MEMBERSHIP = "exact advantage of membership inference, an upper bound"


def _distances(values: npt.ArrayLike, training: DPSGD) -> Floats:
    """Return the distances over the clipping norm, one for each step or a single one."""
    try:
        raw = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("sensitivities must be numbers, one for each step.") from None
    if raw.ndim > 1 or (raw.ndim == 1 and raw.size != training.steps):
        got = f"{raw.size:,}" if raw.ndim == 1 else f"shape {raw.shape}"
        raise InputError(
            f"sensitivities must have one number for each of the {training.steps:,} steps, got {got};"
            " describe the steps that were tracked, no more and no fewer."
        )
    clip = np.asarray(training.clipping_norm, dtype=np.float64)
    distance, clip = np.broadcast_arrays(raw, clip)
    bad = ~((distance >= 0) & (distance / 2 <= clip * (1 + _SLACK)))
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            "sensitivities must lie between 0 and twice the clipping norm, got"
            f" {distance.flat[place]:g} at step {place + 1}, where the clipping norm is {given(float(clip.flat[place]))}."
        )
    return np.minimum(distance / clip, 2.0)
