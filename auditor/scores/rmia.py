"""Offline RMIA: how many records of the population does the target favour less than this one?

    score(x) = mean over z of 1[(P(x)/Phat(x)) / (P(z)/Phat(z)) > gamma],  Phat = ((1 + a) Pout + 1 - a)/2,

P the target's probability of the true class and Pout its mean over reference models that were trained on neither x nor
z. With r = log P - log Phat this is the share of the population with r(z) < r(x) - log gamma: one sort of the
population and one search for each record.
"""

import math

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.scores._disjoint import require_disjoint, require_same_scale
from auditor.scores._scored import scored
from auditor.scores.population import Population
from auditor.scores.references import References, same_models
from auditor.transforms import Transform
from auditor.values import Floats, Losses, LossScale

__all__ = ["rmia", "rmia_score"]

_FARTHEST = 1e300  # nats; differences of two log-ratios stay finite
_NEAREST = (
    1e-300  # nats; closer neighbours of the population are ties, so that the slope between others is finite
)


def rmia(reference: References, *, population: Population, a: float = 0.3, gamma: float = 1.0) -> Transform:
    """Return the transform to the negative offline RMIA score, continued where the published score is a step.

    The published score has ties: all records between two neighbours of the population share one value, and so do all
    beyond its ends, which are the ones a low false positive rate is about. Here the value is linear in the log-ratio
    between neighbours and goes on by 1/n for each nat beyond the ends, so that the order is the log-ratio's. Losses are
    read as negative log-odds or as cross-entropy of the true class by their scale, and as cross-entropy where the
    scale is unknown and no loss is negative. A probability that rounds to 1 is 1 here: very confident records differ by
    their Phat alone.

    Args:
        reference: Losses of models trained on neither group, on the scale of the target's losses.
        population: Other non-members with the same models' losses; none of them is audited.
        a: In [0, 1]: how well reference models do on records they have not seen; 1 trusts Pout as it is.
        gamma: Above 0: how many times more favoured than z a record must be to count.

    Raises:
        InputError: Arguments out of range; from the transform, reference losses that are not of these records, losses
            that are no probabilities, or audited records in the population.

    Source: Zarifzadeh, Liu and Shokri 2024, "Low-cost high-power membership inference attacks", offline version.

    >>> losses = Losses(member=[0.1, 0.2], nonmember=[0.9, 1.4])
    >>> reference = References(member=[0.8, 0.9], nonmember=[0.9, 1.2])
    >>> step = rmia(reference, population=Population(loss=[0.5, 1.0, 1.5], reference=[0.6, 1.1, 1.2]))
    >>> bool(step(losses).member.max() < step(losses).nonmember.min())
    True
    """
    _validate.instance("reference", reference, (References,))
    _validate.instance("population", population, (Population,))
    a, gamma = _validate.fraction("a", a, zero=True, one=True), _validate.positive("gamma", gamma)
    if population.reference is None:
        raise InputError(
            "rmia needs the reference models' losses on the population; give Population(reference=...)."
        )
    own = population.reference
    same_models("reference losses", reference.member, "population reference losses", own)

    def attacked(losses: Losses) -> Losses:
        disjoint = require_disjoint(losses, population, name="population")
        require_same_scale(losses, population, name="population")
        at = reference.aligned(losses)
        scale = _scale(losses, (population.loss, at.member, at.nonmember, own))
        ranked = np.sort(_log_ratio(population.loss, own, a=a, scale=scale))
        member, nonmember = (
            -_continued(_log_ratio(values, matrix, a=a, scale=scale) - math.log(gamma), ranked)
            for values, matrix in ((losses.member, at.member), (losses.nonmember, at.nonmember))
        )
        step = (
            f"offline RMIA, a = {a:g}, gamma = {gamma:g}, losses read as {scale}: {reference.models:,} reference model(s),"
            f" which must have been trained on neither group, and a population of {population.n:,}, {disjoint}"
        )
        return scored(losses, member=member, nonmember=nonmember, step=step)

    return attacked


def rmia_score(log_ratio: Floats, population: Floats, *, gamma: float = 1.0) -> Floats:
    """Return the published score of each record, in [0, 1]: higher is more like a member.

    Args:
        log_ratio: Shape (n,), log P - log Phat of the records.
        population: Shape (m,), the same of the population.
        gamma: Above 0.

    Raises:
        InputError: gamma not above 0.

    >>> rmia_score(np.array([-1.0, 0.5]), np.array([0.0, -2.0]))
    array([0.5, 1. ])
    """
    bar = math.log(_validate.positive("gamma", gamma))
    ranked = np.sort(np.asarray(population, dtype=np.float64))
    return np.asarray(
        np.searchsorted(ranked, np.asarray(log_ratio, dtype=np.float64) - bar, side="left") / ranked.size
    )


def _scale(losses: Losses, others: tuple[Floats, ...]) -> LossScale:
    """What all these losses are."""
    if losses.scale is LossScale.LOG_ODDS:
        return losses.scale
    lowest = min(float(values.min()) for values in (losses.member, losses.nonmember, *others))
    if lowest < 0:
        raise InputError(
            f"rmia needs losses of known scale, got {losses.scale!s} losses down to {lowest:g}, which no cross-entropy is;"
            " give Losses(scale='log-odds') if they are negative log-odds, and all losses on one scale."
        )
    return LossScale.CROSS_ENTROPY


def _log_ratio(loss: Floats, reference: Floats, *, a: float, scale: LossScale) -> Floats:
    """Log P - log Phat, in logs throughout, so that a probability below the smallest float still counts."""
    log_out = _log_mean(_log_probability(reference, scale))
    rest = math.log1p(-a) if a < 1 else -math.inf
    log_hat = _log_sum(math.log1p(a) + log_out, rest) - math.log(2)
    return np.asarray(np.clip(_log_probability(loss, scale) - log_hat, -_FARTHEST, _FARTHEST))


def _log_probability(loss: Floats, scale: LossScale) -> Floats:
    return -_log_sum(loss, 0.0) if scale is LossScale.LOG_ODDS else -loss


def _log_sum(x: Floats, constant: float) -> Floats:
    """Log of exp(x) + exp(constant), several times as fast as logaddexp."""
    if constant == -math.inf:
        return x
    return np.asarray(np.maximum(x, constant) + np.log1p(np.exp(-np.abs(x - constant))))


def _log_mean(logs: Floats) -> Floats:
    """The log of the mean of exp(logs) over each row."""
    if logs.shape[1] == 1:
        return logs[:, 0]
    top = logs.max(axis=1)
    with np.errstate(over="ignore"):  # a difference below the smallest float counts as nothing
        return np.asarray(top + np.log(np.exp(logs - top[:, np.newaxis]).mean(axis=1)))


def _continued(ratio: Floats, ranked: Floats) -> Floats:
    """The share of the population below each record, linear between neighbours and by 1/n a nat beyond the ends."""
    first = np.r_[True, np.diff(ranked) > _NEAREST]
    below = np.flatnonzero(first)  # the number of population records below each of its distinct values
    order = np.argsort(ratio)  # a search for neighbours one after the other finds them in the cache
    asked = ratio[order]
    inside = np.interp(asked, ranked[first], below)
    beyond = np.maximum(asked - ranked[-1], 0.0) - np.maximum(ranked[0] - asked, 0.0)
    share = np.empty_like(asked)
    share[order] = (inside + beyond) / ranked.size
    return share
