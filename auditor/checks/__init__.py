"""Checks: does this audit deserve trust? Each answers one question with a sentence for a privacy reviewer.

>>> from auditor.values import Losses
>>> duplicates(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4])).status
<Status.UNKNOWN: 'unknown'>
"""

from auditor.checks.collection import collection
from auditor.checks.direction import direction
from auditor.checks.duplicates import duplicates
from auditor.checks.fit import goodness_of_fit
from auditor.checks.label_shuffle import label_shuffle
from auditor.checks.persons import persons
from auditor.checks.placebo import placebo
from auditor.checks.power import power
from auditor.checks.sensitivity import sensitivity
from auditor.checks.shift import shift
from auditor.checks.ties import saturation, ties

__all__ = [
    "collection",
    "direction",
    "duplicates",
    "goodness_of_fit",
    "label_shuffle",
    "persons",
    "placebo",
    "power",
    "saturation",
    "sensitivity",
    "shift",
    "ties",
]
