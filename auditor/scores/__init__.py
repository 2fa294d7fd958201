"""Stronger scores without retraining the target: each is a step from losses to losses, fitted on other records.

Reference models say how hard a record is (`difficulty`, `rmia`); held-out non-members say what is usual for its class
(`class_conditional`) or for its features (`fit_quantile_regression`). Given data that are disjoint from the audited
records a score is a fixed function of the record, so that every estimate and bound keeps its level.
"""

from auditor.scores.class_conditional import class_conditional
from auditor.scores.conformal import conformal_threshold
from auditor.scores.difficulty import Centre, Mean, Median, difficulty
from auditor.scores.holding_out import HoldOut, hold_out
from auditor.scores.population import Population
from auditor.scores.quantile_regression import QuantileScore, fit_quantile_regression
from auditor.scores.references import References
from auditor.scores.rmia import rmia, rmia_score

__all__ = [
    "Centre",
    "HoldOut",
    "Mean",
    "Median",
    "Population",
    "QuantileScore",
    "References",
    "class_conditional",
    "conformal_threshold",
    "difficulty",
    "fit_quantile_regression",
    "hold_out",
    "rmia",
    "rmia_score",
]
