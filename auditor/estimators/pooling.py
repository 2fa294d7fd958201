"""``auc.pooled`` and ``advantage.pooled``: the mean over several models, and its spread."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from auditor.core.values import Estimate, Subject

POOLED = ("auc", "advantage")
_METHOD = "random-effects mean with limits of Student's t"
_APPROXIMATE = "approximate: models that share records are not independent, and the interval of each counts as that of a normal estimate"


def mean_of_models(rows: Sequence[Estimate | None], *, name: str, confidence: float) -> Estimate:
    """Return the mean of one quantity over models, weighted by precision, with the heterogeneity of the models.

    Each model has its own true value, drawn around the mean with a variance tau^2 that is estimated from how much the
    models differ beyond their errors. The standard error of a model is the longer side of its interval over the normal
    quantile. ``details`` has tau, I^2 (the share of the spread that errors do not explain) and the p-value of Cochran's Q
    for equal models.

    Args:
        rows: The estimate of each model, two or more, with its interval.
        name: ``auc`` or ``advantage``.
        confidence: Confidence level of the interval, in (0, 1).

    Source: DerSimonian and Laird 1986; Paule and Mandel 1982 for tau^2; Follmann and Proschan 1999 for Student's t.

    >>> rows = [Estimate("auc", x, x - 0.1, x + 0.1, 0.95, "by hand", Subject.MODEL) for x in (0.6, 0.6, 0.9)]
    >>> together = mean_of_models(rows, name="auc", confidence=0.95)
    >>> round(together.value, 3), round(together.details["i_squared"], 2)
    (0.7, 0.91)
    """
    from statsmodels.stats.meta_analysis import combine_effects

    options = [_normal(row) for row in rows if row is not None]
    usable = [pair for pair in options if pair is not None]
    if len(usable) < len(rows):
        reason = f"{len(rows) - len(usable)} of {len(rows)} models have no {name} with an interval"
        return Estimate.missing(f"{name}.pooled", reason, method=_METHOD, subject=Subject.MODEL)
    effects, errors = np.array(usable).T
    with np.errstate(divide="ignore"):  # models that agree to the last digit
        fit = combine_effects(effects, errors**2, method_re="iterated")
    low, high = fit.conf_int(alpha=1 - confidence, use_t=True)[1]
    value = float(fit.mean_effect_re)
    return Estimate(
        name=f"{name}.pooled",
        value=value,
        lower=min(max(0.0, float(low)), value),
        upper=max(min(1.0, float(high)), value),
        confidence=confidence,
        method=_METHOD,
        subject=Subject.MODEL,
        assumptions=(_APPROXIMATE, "the models are draws from those that the training gives"),
        details={
            "models": len(usable),
            "tau": float(np.sqrt(fit.tau2)),
            "i_squared": max(0.0, float(fit.i2)),
            "heterogeneity_p_value": float(fit.test_homogeneity().pvalue),
        },
    )


def _normal(row: Estimate) -> tuple[float, float] | None:
    """Return the value of an estimate and its standard error; None without an interval that has a width."""
    if row.value is None or row.lower is None or row.upper is None or row.confidence is None:
        return None
    longer = max(row.upper - row.value, row.value - row.lower)
    return (row.value, longer / NormalDist().inv_cdf((1 + row.confidence) / 2)) if longer > 0 else None
