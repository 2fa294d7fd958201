"""Stronger scores: a loss counts as low relative to its class, its features, its difficulty, or a population."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core import Attack, FixedThreshold, InputError, validate
from auditor.core.values import Array, Booleans, Floats, Integers, Losses, LossScale, PerGroup
from auditor.curves.transforms import Transform, log_odds_of_cross_entropy
from auditor.records.labels import text
from auditor.scores.references import (
    Population,
    References,
    as_population,
    encoded,
    finite_difference,
    finite_ratio,
    random_part,
    require_comparable,
    same_models,
    scored,
    units,
)

# --- RMIA: how many records of the population does the target favour less than this one? ---
#
#     score(x) = mean over z of 1[(P(x)/Phat(x)) / (P(z)/Phat(z)) > gamma]
#     offline    Phat = ((1 + a) Pout + 1 - a)/2
#     online     Phat(x) = (Pin + Pout)/2,  Phat(z) = the mean over all reference models
#
# P the target's probability of the true class, Pin and Pout its means over the reference models that were trained on the
# record and over those that were not. With r = log P - log Phat this is the share of the population with r(z) < r(x) - log gamma: one sort of the
# population and one search for each record.


_FARTHEST_SCALE = 1e300  # nats; differences of two log-ratios stay finite
# Nats; closer neighbours of the population are ties, so that the slope between others is finite.
_NEAREST = 1e-300


def rmia(reference: References, *, population: Population, a: float = 0.3, gamma: float = 1.0) -> Transform:
    """Return the transform to the negative RMIA score, continued where the published score is a step.

    Online where the reference says which of its models were trained on each record, offline elsewhere. The published score has ties: all records between two neighbours of the population share one value, and so do all
    beyond its ends, which are the ones a low false positive rate is about. Here the value is linear in the log-ratio
    between neighbours and goes on by 1/n for each nat beyond the ends, so that the order is the log-ratio's. Losses are
    read as negative log-odds or as cross-entropy of the true class by their scale, and as cross-entropy where the
    scale is unknown and no loss is negative. A probability that rounds to 1 is 1 here: very confident records differ by
    their Phat alone.

    Args:
        reference: Losses of models trained on neither group, or with ``trained_on``, on the scale of the target's losses.
        population: Other non-members with the same models' losses; none of them is audited.
        a: Offline, in [0, 1]: how well reference models do on records they have not seen; 1 trusts Pout as it is.
        gamma: Above 0: how many times more favoured than z a record must be to count.

    Raises:
        InputError: Arguments out of range; from the transform, reference losses that are not of these records, losses
            that are no probabilities, audited records in the population, or as for `References.shadows`.

    Source: Zarifzadeh, Liu and Shokri 2024, "Low-cost high-power membership inference attacks".

    >>> losses = Losses(member=[0.1, 0.2], nonmember=[0.9, 1.4])
    >>> reference = References(member=[0.8, 0.9], nonmember=[0.9, 1.2])
    >>> step = rmia(reference, population=Population(loss=[0.5, 1.0, 1.5], reference=[0.6, 1.1, 1.2]))
    >>> bool(step(losses).member.max() < step(losses).nonmember.min())
    True
    """
    validate.instance("reference", reference, (References,))
    validate.instance("population", population, (Population,))
    a, gamma = validate.fraction("a", a, zero=True, one=True), validate.positive("gamma", gamma)
    if population.reference is None:
        raise InputError(
            "rmia needs the reference models' losses on the population; give Population(reference=...)."
        )
    own = population.reference
    same_models("reference losses", reference.member, "population reference losses", own)

    online = reference.trained_on is not None
    words = (
        f"online RMIA, gamma = {gamma:g}, {reference.models:,} reference models with and without each record"
        if online
        else f"offline RMIA, a = {a:g}, gamma = {gamma:g}, {reference.models:,} reference model(s), which must have been"
        " trained on neither group"
    )

    def attacked(losses: Losses) -> Losses:
        disjoint = require_comparable(losses, population, name="population")
        at = reference.aligned(losses)
        scale = _scale("rmia", losses, (population.loss, at.member, at.nonmember, own))
        ranked = np.sort(
            _log_ratio(population.loss, _log_hat(own, a=1.0 if online else a, scale=scale), scale)
        )
        if online:
            loss, *sides = reference.shadows(losses)
            logs = _log_probability(loss, scale)
            means = (_log_mean(np.where(counted, logs, -np.inf)) for counted in sides)
            log_hats = PerGroup(*np.split(np.logaddexp(*means) - math.log(2), [losses.n_member]))
        else:
            log_hats = PerGroup(*(_log_hat(matrix, a=a, scale=scale) for matrix in at))

        def score(values: Floats, log_hat: Floats) -> Floats:
            return -_continued(_log_ratio(values, log_hat, scale) - math.log(gamma), ranked)

        step = f"{words}, losses read as {scale}, and a population of {population.n:,}, {disjoint}"
        return scored(losses, log_hats, score, step=step, attack=Attack.REFERENCE)

    return attacked


def _scale(name: str, losses: Losses, others: tuple[Floats, ...]) -> LossScale:
    """Return the common scale of the losses."""
    if losses.scale is LossScale.LOG_ODDS:
        return losses.scale
    lowest = min(float(values.min()) for values in (losses.member, losses.nonmember, *others))
    if lowest < 0:
        raise InputError(
            f"{name} needs losses of known scale, got {losses.scale!s} losses down to {lowest:g}, which no cross-entropy"
            " is; give Losses(scale='log-odds') if they are negative log-odds, and all losses on one scale."
        )
    return LossScale.CROSS_ENTROPY


def _log_ratio(loss: Floats, log_hat: Floats, scale: LossScale) -> Floats:
    """Return the log P - log Phat, in logs throughout, so that a probability below the smallest float still counts."""
    return np.asarray(np.clip(_log_probability(loss, scale) - log_hat, -_FARTHEST_SCALE, _FARTHEST_SCALE))


def _log_hat(reference: Floats, *, a: float, scale: LossScale) -> Floats:
    log_out = _log_mean(_log_probability(reference, scale))
    rest = math.log1p(-a) if a < 1 else -math.inf
    return _log_sum(math.log1p(a) + log_out, rest) - math.log(2)


def _log_probability(loss: Floats, scale: LossScale) -> Floats:
    return -_log_sum(loss, 0.0) if scale is LossScale.LOG_ODDS else -loss


def _log_sum(x: Floats, constant: float) -> Floats:
    """Return the log of exp(x) + exp(constant), several times as fast as logaddexp."""
    if constant == -math.inf:
        return x
    return np.asarray(np.maximum(x, constant) + np.log1p(np.exp(-np.abs(x - constant))))


def _log_mean(logs: Floats) -> Floats:
    """Return the log of the mean of exp(logs) over the values above -inf in each row."""
    if logs.shape[1] == 1:
        return logs[:, 0]
    top, counted = logs.max(axis=1), (logs > -np.inf).sum(axis=1)
    with np.errstate(over="ignore"):  # a difference below the smallest float counts as nothing
        return np.asarray(top + np.log(np.exp(logs - top[:, np.newaxis]).sum(axis=1) / counted))


def _continued(ratio: Floats, ranked: Floats) -> Floats:
    """Return the share of the population below each record, linear between neighbours and by 1/n a nat beyond the ends."""
    first = np.r_[True, np.diff(ranked) > _NEAREST]
    below = np.flatnonzero(first)  # the number of population records below each of its distinct values
    order = np.argsort(ratio)  # a search for neighbours one after the other finds them in the cache
    ordered = ratio[order]
    inside = np.interp(ordered, ranked[first], below)
    beyond = np.maximum(ordered - ranked[-1], 0.0) - np.maximum(ranked[0] - ordered, 0.0)
    share = np.empty_like(ordered)
    share[order] = (inside + beyond) / ranked.size
    return share


# --- The likelihood ratio (LiRA): is the loss more like those of models that saw the record, or of models that did not? ---


@dataclass(frozen=True)
class Gaussian:
    """Two normal laws with the means of the shadow losses, as published; a variance is 1e-5 of the median one at least.

    Attributes:
        pooled: Whether all records share one variance on each side, the mean square of the losses about their record's
            mean; otherwise each record has its own, which takes many shadow models (Carlini et al. change at 64).
    """

    pooled: bool = True


@dataclass(frozen=True)
class StudentT:
    """Two Student-t laws, for the uncertainty of a record's mean and variance from few shadow losses.

    The k losses of a record on one side are N(m, s^2), with a flat prior for m and s^2 ~ nu0 s0^2 / chi^2(nu0): the
    normal-inverse-gamma prior without weight on the mean. Given their mean xbar and sum of squares SS about it,

        s^2 ~ (nu0 s0^2 + SS) / chi^2(nu),  nu = nu0 + k - 1,  m | s^2 ~ N(xbar, s^2/k),

    so that the next loss is xbar + t(nu) sqrt((nu0 s0^2 + SS)/nu (1 + 1/k)). The prior is fitted to the variances
    SS/(k - 1) of all records, raised to 1e-5 of their median where losses are equal: their logarithms have mean log s0^2 + (psi - log)((k - 1)/2) - (psi - log)(nu0/2) and
    variance psi'((k - 1)/2) + psi'(nu0/2), which give nu0 and s0 (Smyth 2004). Where variances differ no more than by
    chance, nu0 is infinite and the law is the normal with a pooled variance.
    """


Law = Gaussian | StudentT


def likelihood_ratio(reference: References, *, law: Law = StudentT()) -> Transform:
    """Return the transform to the logarithm of p_out(loss)/p_in(loss), each record by its own shadow losses.

    Both laws are of the negative log-odds, into which cross-entropies are mapped. Which losses were of members of the
    target plays no part: variances and priors are of all records together, so that on shadow models that know nothing
    of the target's membership the score is a fixed function of the record, and every bound keeps its level.

    Args:
        reference: Losses of shadow models, with ``trained_on``, on the scale of the target's losses.
        law: `StudentT` (default), which is as good as the better of the others with many models and better with few, or
            `Gaussian`.

    Raises:
        InputError: Arguments of another type; from the transform, reference losses that are not of these records, losses
            that are no probabilities, too few models, or as for `References.shadows`.

    Source: Carlini et al. 2022, "Membership inference attacks from first principles"; Smyth 2004, "Linear models and
    empirical Bayes methods"; Student-t laws for few models: Brannvall 2026, "Exponential-family membership inference".

    >>> losses = Losses(member=[-1.0, 3.0], nonmember=[0.0, 5.0], scale="log-odds")
    >>> trained_on = [[True, True, False, False]] * 2
    >>> shadows = References(
    ...     member=[[-1.2, -1.0, 0.2, 0.1], [3.2, 3.0, 4.0, 4.3]],
    ...     nonmember=[[-1.3, -0.9, 0.2, 0.0], [3.9, 4.0, 5.1, 4.9]],
    ...     trained_on=(trained_on, trained_on),
    ... )
    >>> scores = likelihood_ratio(shadows)(losses)
    >>> bool(scores.member.max() < 0 < scores.nonmember.min())
    True
    """
    validate.instance("reference", reference, (References,))
    validate.instance("law", law, (Gaussian, StudentT))
    step = f"log-likelihood ratio, {law}, by {reference.models:,} shadow models, each record by those with and without it"

    def attacked(losses: Losses) -> Losses:
        loss, *sides = reference.shadows(losses)
        scale = _scale("likelihood_ratio", losses, (losses.member, losses.nonmember, loss))
        shadow, x = (
            _comparable(values, scale) for values in (loss, np.concatenate([losses.member, losses.nonmember]))
        )
        inside, outside = (_log_predictive(x, shadow, counted, law) for counted in sides)
        ratios = PerGroup(*np.split(finite_difference(outside, inside), [losses.n_member]))
        words = f"{step}, losses read as {scale}"
        return scored(losses, ratios, lambda _, ratio: ratio, step=words, attack=Attack.REFERENCE)

    return attacked


_FARTHEST_LOG_ODDS = 1e100  # whose squares are finite
_LEAST_VARIANCE = 1e-5  # of the median one, as in limma: equal losses were rounded or cut off
_NORMAL = 1e12  # degrees of freedom of what is meant as a normal law
_NEWTON = 20  # steps


def _comparable(loss: Floats, scale: LossScale) -> Floats:
    log_odds = log_odds_of_cross_entropy(loss) if scale is LossScale.CROSS_ENTROPY else loss
    return np.clip(log_odds, -_FARTHEST_LOG_ODDS, _FARTHEST_LOG_ODDS)


def _log_predictive(x: Floats, shadow: Floats, counted: Booleans, law: Law) -> Floats:
    """Return the log-density of each x by the shadow losses that count, up to a constant that all records share."""
    k = counted.sum(axis=1)
    mean = np.where(counted, shadow, 0.0).sum(axis=1) / k
    squares = np.square(np.where(counted, shadow - mean[:, np.newaxis], 0.0)).sum(axis=1)
    several = k > 1
    own = isinstance(law, Gaussian) and not law.pooled
    if not (several.all() if own else several.any()):
        raise InputError(
            "likelihood_ratio needs a variance with and without each record, got a single loss of"
            f" {int((~several).sum()):,} of {k.size:,} records; add shadow models"
            + (", or give law=auditor.scores.StudentT()." if own else ".")
        )
    variances = squares[several] / (k[several] - 1)
    spread = variances[variances > 0]
    least = _LEAST_VARIANCE * float(np.median(spread)) if spread.size else 1.0
    pooled = float(squares.sum() / (k - 1).sum())
    if isinstance(law, StudentT):
        nu0, s0 = _prior(np.maximum(variances, least), k[several] - 1, pooled=pooled)
        nu = nu0 + k - 1
        variance = (nu0 * s0 + squares) / nu * (1 + 1 / k)
    else:
        nu = np.full(k.size, _NORMAL)
        variance = squares / (k - 1) if own else np.full(k.size, pooled)
    variance = np.maximum(variance, least)
    far = finite_ratio(np.square(x - mean), variance)
    height = special.betaln(nu / 2, 0.5) + (np.log(nu) + np.log(variance)) / 2
    return np.asarray(-height - (nu + 1) / 2 * np.log1p(far / nu))


def _prior(variance: Floats, freedom: Integers, *, pooled: float) -> tuple[float, float]:
    """Return the prior's degrees of freedom and variance, by the first two moments of the logarithms."""
    logs = np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(np.var(logs) - special.polygamma(1, freedom / 2).mean())
    if excess <= 0:
        return _NORMAL, pooled
    half = 0.5 + 1 / excess
    for _ in range(_NEWTON):  # on 1/psi', which is convex and nearly linear
        slope = special.polygamma(1, half)
        half += slope * (1 - slope / excess) / special.polygamma(2, half)
    return 2 * half, math.exp(logs.mean() + special.digamma(half) - math.log(half))


# --- Scores relative to a record's difficulty, its class, or its features; and a conformal threshold ---


# --- Difficulty calibration: a loss counts as low when it is low for a record that is so hard ---


def difficulty(reference: References) -> Transform:
    """Return the transform that subtracts the mean loss of reference models on each record.

    Args:
        reference: Losses of models that were trained on neither group, on the scale of the target's losses.

    Raises:
        InputError: Arguments of another type; from the transform, reference losses that are not of these records.

    Source: Watson, Guo, Cormode and Sablayrolles 2022, "On the importance of difficulty calibration in membership
    inference attacks".

    >>> losses = Losses(member=[1.0, 3.0], nonmember=[2.0, 4.0])
    >>> difficulty(References(member=[2.0, 3.5], nonmember=[2.0, 4.5]))(losses).member
    array([-1. , -0.5])
    """
    validate.instance("reference", reference, (References,))
    if reference.trained_on is not None:
        raise InputError(
            "difficulty needs models that were trained on neither group, got some with trained_on; use likelihood_ratio."
        )
    step = (
        f"difficulty: minus the mean loss of {reference.models:,} reference model(s), which must have been trained on"
        " neither group"
    )

    def calibrated(losses: Losses) -> Losses:
        # Shares keep the sums finite for losses near the largest float.
        means = ((matrix / matrix.shape[1]).sum(axis=1) for matrix in reference.aligned(losses))
        return scored(losses, PerGroup(*means), finite_difference, step=step, attack=Attack.REFERENCE)

    return calibrated


# --- Class-conditional scores: a loss counts as low when it is low for its class ---

_LOWER = 0.1  # the quantile whose distance from the median is the spread


@dataclass(frozen=True)
class _Norms:
    """Median and spread of each class that has enough records; the last entry is the pooled one."""

    names: npt.NDArray[np.str_]
    median: Floats
    spread: Floats

    def of(self, group: Array) -> Integers:
        """Return the entry of each record."""
        words, _ = text(group)
        pooled = self.names.size
        if not pooled:
            return np.zeros(words.size, dtype=np.intp)
        at = np.minimum(np.searchsorted(self.names, words), pooled - 1)
        return np.where(self.names[at] == words, at, pooled)

    def standardised(self, losses: Floats, entry: Integers) -> Floats:
        """Return (l - median)/spread."""
        return finite_ratio(finite_difference(losses, self.median[entry]), self.spread[entry])


def class_conditional(calibration: Losses | Population, *, least: int = 20) -> Transform:
    """Return the transform that standardises each loss by its class, as held-out non-members show it.

    (l - median)/spread, over the calibration non-members of the class; the spread reaches from the median down to the
    10% quantile, on the side where members are. Unlike a p-value within the class this keeps apart the losses below all
    of the calibration's, which are the ones a low false positive rate is about. Classes with fewer than ``least``
    calibration non-members, or with none, use the pooled median and spread, and the history counts their records.
    Losses with a floor, such as a cross-entropy, are better mapped by `auditor.curves.transforms.log_odds` first.

    Args:
        calibration: Held-out losses (their non-members are used) or a `Population`, with the class as ``group``; on the
            scale of the audited losses.
        least: Fewest calibration non-members for a class to be its own norm, 2 or more.

    Raises:
        InputError: No classes; from the transform: no classes, another scale, or audited records in the calibration.

    >>> calibration = Population(loss=[1.0, 2.0, 3.0, 11.0, 12.0, 13.0], group=["a", "a", "a", "b", "b", "b"])
    >>> losses = Losses(member=[1.0, 11.0], nonmember=[2.0, 13.0], group=(["a", "b"], ["a", "b"]))
    >>> class_conditional(calibration, least=3)(losses).member
    array([-1.25, -1.25])
    """
    own = as_population("calibration", calibration)
    least = validate.at_least("least", least, least=2)
    if own.group is None:
        raise InputError("class_conditional needs the class of each calibration record; give its group.")
    norms = _norms(own.loss, own.group, least=least)

    def conditioned(losses: Losses) -> Losses:
        disjoint = require_comparable(losses, own, name="calibration")
        if losses.group is None:
            raise InputError(
                "class_conditional needs the class of each audited record; give Losses(group=...)."
            )
        entries = PerGroup(*(norms.of(column) for column in losses.group))
        pooled = sum(int(np.count_nonzero(entry == norms.names.size)) for entry in entries)
        step = (
            f"class-conditional: by the median and lower spread of {norms.names.size:,} classes over {own.n:,} calibration"
            f" non-members, {disjoint}; {pooled:,} records of classes with fewer than {least:,} by the pooled ones"
        )
        return scored(losses, entries, norms.standardised, step=step)

    return conditioned


def _norms(loss: Floats, group: Array, *, least: int) -> _Norms:
    words, missing = text(group)
    names, code, sizes = np.unique(words[~missing], return_inverse=True, return_counts=True)
    order = np.argsort(code, kind="stable")
    parts = np.split(loss[~missing][order], np.cumsum(sizes)[:-1])
    enough = sizes >= least
    pooled = _median_and_spread(loss, otherwise=1.0)
    own = [
        _median_and_spread(part, otherwise=pooled[1])
        for part, large in zip(parts, enough.tolist(), strict=False)
        if large
    ]
    median, spread = np.array([*own, pooled]).T
    return _Norms(names[enough], median, spread)


def _median_and_spread(values: Floats, *, otherwise: float) -> tuple[float, float]:
    """Return the median and its distance to the lower quantile; the other spread where that is 0."""
    low, middle = 2 * np.quantile(values / 2, (_LOWER, 0.5))  # halves, whose differences are finite
    spread = float(finite_difference(middle, low))
    return float(middle), spread if spread > 0 else otherwise


# --- Quantile-regression scores: a loss counts as low when it is low for a record with such features ---
#
# score = l - q(x), q the predicted low quantile of a non-member's loss given its features; a record is called a member
# where its score is at most a threshold that is set conformally on other non-members.

_FEW = 20_000  # records
_FARTHEST = 1e290  # sums of so large losses are finite still


@dataclass(frozen=True, eq=False)
class QuantileScore:
    """A fitted score and its threshold.

    Attributes:
        transform: From losses to scores, for the records whose features it was given.
        threshold: Threshold of false positive rate at most ``rate`` in the mean over calibration sets, for ``audit(threshold=...)``.
        rate: The false positive rate of the threshold.
        n_fitted: Calibration non-members that the regression was fitted on.
        n_conformal: Other calibration non-members, that the threshold was set on.
    """

    transform: Transform
    threshold: FixedThreshold
    rate: float
    n_fitted: int
    n_conformal: int


def fit_quantile_regression(
    features: Any,
    *,
    calibration: Losses | Population,
    calibration_features: Any,
    rate: float = 0.01,
    quantile: float | None = None,
    rng: np.random.Generator,
) -> QuantileScore:
    """Fit a quantile regression of non-member losses on features, and the threshold for a false positive rate.

    Half of the calibration non-members fit boosted trees with the pinball loss, the other half sets the threshold;
    records with an id, a person or a fingerprint in common stay in one half.

    Args:
        features: Features of the audited records, a pair (members, non-members) of tables with one row per record, or
            `auditor.records.features.Features`: arrays, sparse matrices or data frames. Columns that hold no numbers are coded alike in all tables; values may be missing.
        calibration: Held-out losses (their non-members are used) or a `Population`, on the scale of the audited losses.
        calibration_features: One row per calibration non-member, with the same columns.
        rate: The false positive rate of the threshold, in (0, 1).
        quantile: The quantile to predict, in (0, 1); by default ``rate``, as published. With fewer than a hundred
            calibration non-members per unit of 1/rate a higher one is better learned.
        rng: Splits the calibration records and seeds the regression.

    Raises:
        InputError: Tables that do not fit, or too few calibration non-members for the rate; from the transform: losses
            of other records, another scale, or audited records among the calibration's.

    Source: Bertran et al. 2023, "Scalable membership inference attacks via quantile regression".

    >>> rng = np.random.default_rng(0)
    >>> hard = rng.normal(0, 5, 1200)
    >>> loss = hard + rng.normal(size=1200) - 3 * (np.arange(1200) < 300)
    >>> losses = Losses(member=loss[:300], nonmember=loss[300:600])
    >>> fitted = fit_quantile_regression((hard[:300], hard[300:600]), calibration=Population(loss=loss[600:]),
    ...                                  calibration_features=hard[600:], rate=0.05, rng=rng)
    >>> scores = fitted.transform(losses)
    >>> bool(np.mean(scores.member <= fitted.threshold.threshold) > 0.4)
    True
    """
    own = as_population("calibration", calibration)
    rate = validate.fraction("rate", rate)
    level = rate if quantile is None else validate.fraction("quantile", quantile)
    member, nonmember, held = encoded(features, calibration_features)
    validate.same_length(("calibration non-member losses", "calibration features"), (own.n, len(held)))
    linked = [column for column in (own.id, own.person, own.fingerprint) if column is not None]
    conformal = random_part(units(linked, size=own.n), share=0.5, rng=rng)
    predict = _regression(held[~conformal], own.loss[~conformal], level=level, rng=rng)
    scores = finite_difference(own.loss[conformal], predict(held[conformal]))
    threshold = conformal_threshold(scores, rate=rate)
    norms = PerGroup(predict(member), predict(nonmember))
    n_fitted = own.n - scores.size
    step = (
        f"quantile regression: minus the {level:g} quantile of a non-member's loss given its features, learned from"
        f" {n_fitted:,} calibration non-members"
    )

    def regressed(losses: Losses) -> Losses:
        disjoint = require_comparable(losses, own, name="calibration")
        for side in PerGroup._fields:
            names = (f"{side} losses", f"{side} features")
            validate.same_length(names, (getattr(losses, side).size, getattr(norms, side).size))
        return scored(losses, norms, finite_difference, step=f"{step}, {disjoint}")

    return QuantileScore(regressed, threshold, rate, n_fitted, scores.size)


def _regression(
    features: Floats, losses: Floats, *, level: float, rng: np.random.Generator
) -> Callable[[Floats], Floats]:
    """Return the predicted quantile, as a function of features."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, early_stopping=False, random_state=int(rng.integers(2**31))
    )
    # Threads on few records wait for each other, on a busy machine many times as long as they compute.
    threads = 1 if losses.size < _FEW else None
    with threadpool_limits(threads):
        fitted = trees.fit(features, np.clip(losses, -_FARTHEST, _FARTHEST))

    def predict(rows: Floats) -> Floats:
        with threadpool_limits(threads):
            return np.asarray(fitted.predict(rows), dtype=np.float64)

    return predict


# --- A conformal threshold: a false positive rate that holds for any distribution and any score ---


def conformal_threshold(scores: Floats, *, rate: float) -> FixedThreshold:
    """Return a threshold that a fresh non-member's score falls at or below with probability at most ``rate``.

    Strictly below the k-th smallest score, k = floor(rate (n + 1)): a fresh score is there with probability at most
    k/(n + 1), ties or not, because it would be among the k smallest of n + 1 exchangeable ones. The rate holds in the
    mean over calibration sets, not for each of them; `auditor.estimators.clopper_pearson` judges the threshold at hand.

    Args:
        scores: Shape (n,), of non-members that neither shaped the score nor are audited; smaller is more like a member.
        rate: In (0, 1).

    Raises:
        InputError: A rate outside (0, 1), scores that are not finite, or fewer than 1/rate - 1 of them.

    Source: Vovk, Gammerman and Shafer 2005, "Algorithmic learning in a random world", Chapter 2.

    >>> conformal_threshold(np.arange(199.0), rate=0.01).threshold < 1.0
    True
    """
    rate = validate.fraction("rate", rate)
    values = validate.loss_vector("conformal", scores, least=1)
    # A product such as 0.07 x 100 = 7.000000000000001 must not cost or gain a rank.
    k = math.floor(round(rate * (values.size + 1), 9))
    if k < 1:
        raise InputError(
            f"rate {rate:g} is not resolvable with {values.size:,} non-members for the conformal threshold: at least"
            f" {math.ceil(round(1 / rate - 1, 9)):,} are needed; give more of them or a larger rate."
        )
    kth = float(np.partition(values, k - 1)[k - 1])
    return FixedThreshold(math.nextafter(kth, -math.inf))
