"""Stronger scores without retraining the target: each is a step from losses to losses, fitted on other records.

Reference models say how hard a record is (`difficulty`, `rmia`), shadow models trained by others on some of the records
also the loss of a member (`likelihood_ratio`, online `rmia`); held-out non-members give the usual loss of its class
(`class_conditional`) or for its features (`fit_quantile_regression`). Given data that are disjoint from the audited
records a score is a fixed function of the record, so that every estimate and bound keeps its level.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
