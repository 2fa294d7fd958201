"""Estimators: evidence in, one `Estimate` out that says what it is about.

>>> from auditor.values import Losses
>>> clopper_pearson(Losses(member=[0.0, 0.0], nonmember=[0.0, 0.0]), delta=0.0).value
0.0
"""

from auditor.estimators.advantage import advantage, bayes_security
from auditor.estimators.auc import auc
from auditor.estimators.clopper_pearson import clopper_pearson, confusion_bound
from auditor.estimators.gaussian_supremum import best_region, supremum
from auditor.estimators.one_run import one_run
from auditor.estimators.tpr_at_fpr import tpr_at_fpr

__all__ = [
    "advantage",
    "auc",
    "bayes_security",
    "best_region",
    "clopper_pearson",
    "confusion_bound",
    "one_run",
    "supremum",
    "tpr_at_fpr",
]
