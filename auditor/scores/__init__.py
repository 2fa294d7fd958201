"""Stronger scores without retraining the target: each is a step from losses to losses, fitted on other records.

Reference models say how hard a record is (`difficulty`, `rmia`); held-out non-members say what is usual for its class
(`class_conditional`) or for its features (`fit_quantile_regression`). Given data that are disjoint from the audited
records a score is a fixed function of the record, so that every estimate and bound keeps its level.
"""

from typing import TYPE_CHECKING

from auditor.core.lazy import face

if TYPE_CHECKING:
    from auditor.scores.calibrated import (
        Centre as Centre,
        Mean as Mean,
        Median as Median,
        QuantileScore as QuantileScore,
        class_conditional as class_conditional,
        conformal_threshold as conformal_threshold,
        difficulty as difficulty,
        fit_quantile_regression as fit_quantile_regression,
        rmia as rmia,
        rmia_score as rmia_score,
    )
    from auditor.scores.references import (
        HoldOut as HoldOut,
        Population as Population,
        References as References,
        hold_out as hold_out,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "calibrated": (
            "Centre Mean Median QuantileScore class_conditional conformal_threshold difficulty "
            "fit_quantile_regression rmia rmia_score"
        ),
        "references": "HoldOut Population References hold_out",
    },
)
