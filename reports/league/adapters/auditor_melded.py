"""The certified bound with melded limits."""

import auditor
from auditor.estimators import clopper_pearson
from auditor.records.labels import per_person

ABOUT = {
    "name": "auditor, Melded",
    "requirements": (),
    "claims": "Lower bound on the model's epsilon, thresholds at fixed ranks.",
    "quote": "Return the certified lower bound on the model's epsilon",
    "source": "auditor/estimators/certified.py, clopper_pearson",
    "people": True,
    "draws": (1000, 200, 100),
}


def bound(member, nonmember, delta, confidence, people):
    """Every person's mean score."""
    losses = auditor.Losses(-member, -nonmember, person=people)
    units = per_person(losses, choice=auditor.OnePerPerson())
    rule = auditor.RankGrid(interval=auditor.Melded())
    return clopper_pearson(units.losses, delta=delta, confidence=confidence, rule=rule).value
