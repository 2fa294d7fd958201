"""Quantile-regression scores: a loss counts as low when it is low for a record with such features.

score = l - q(x), q the predicted low quantile of a non-member's loss given its features; a record is called a member
where its score is at most a threshold that is set conformally on other non-members.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor import _validate
from auditor.choices import FixedThreshold
from auditor.scores._disjoint import require_disjoint, require_same_scale
from auditor.scores._matrices import encoded
from auditor.scores._scored import finite_difference, scored
from auditor.scores.conformal import conformal_threshold
from auditor.scores.holding_out import random_part, units
from auditor.scores.population import Population, as_population
from auditor.transforms import Transform
from auditor.values import Floats, Losses, PerGroup

__all__ = ["QuantileScore", "fit_quantile_regression"]

_FEW = 20_000  # records
_FARTHEST = 1e290  # sums of so large losses are finite still


@dataclass(frozen=True, eq=False)
class QuantileScore:
    """A fitted score and its threshold.

    Attributes:
        transform: From losses to scores, for the records whose features it was given.
        threshold: Of false positive rate at most ``rate`` in the mean over calibration sets, for ``audit(threshold=...)``.
        rate: The false positive rate asked for.
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
        features: Of the audited records, a pair (members, non-members) of tables with one row per record, or
            `auditor.features.Features`: arrays, sparse matrices or data frames. Columns that hold no numbers are coded alike in all tables; values may be missing.
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
    rate = _validate.fraction("rate", rate)
    level = rate if quantile is None else _validate.fraction("quantile", quantile)
    member, nonmember, held = encoded(features, calibration_features)
    _validate.same_length(("calibration non-member losses", "calibration features"), (own.n, len(held)))
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
    return QuantileScore(_minus(norms, own, step=step), threshold, rate, n_fitted, scores.size)


def _regression(
    features: Floats, losses: Floats, *, level: float, rng: np.random.Generator
) -> Callable[[Floats], Floats]:
    """The predicted quantile, as a function of features."""
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


def _minus(norms: PerGroup, calibration: Population, *, step: str) -> Transform:
    """The transform that subtracts each record's predicted quantile."""

    def regressed(losses: Losses) -> Losses:
        disjoint = require_disjoint(losses, calibration, name="calibration")
        require_same_scale(losses, calibration, name="calibration")
        for side in PerGroup._fields:
            names = (f"{side} losses", f"{side} features")
            _validate.same_length(names, (getattr(losses, side).size, getattr(norms, side).size))
        return scored(
            losses,
            member=finite_difference(losses.member, norms.member),
            nonmember=finite_difference(losses.nonmember, norms.nonmember),
            step=f"{step}, {disjoint}",
        )

    return regressed
