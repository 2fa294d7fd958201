"""The certified bound that `auditor.audit` reports."""

import auditor
from auditor.estimators import clopper_pearson
from auditor.records.labels import per_person

ABOUT = {
    "name": "auditor",
    "requirements": (),
    "claims": "Lower bound on the model's epsilon, all thresholds jointly.",
    "quote": "Return the certified lower bound on the model's epsilon",
    "source": "auditor/estimators/certified.py, clopper_pearson",
    "people": True,
    "draws": (1000, 150, 30),
}


def bound(member, nonmember, delta, confidence, people):
    """Every person's mean score."""
    losses = auditor.Losses(-member, -nonmember, person=people)
    units = per_person(losses, choice=auditor.OnePerPerson())
    return clopper_pearson(units.losses, delta=delta, confidence=confidence).value
