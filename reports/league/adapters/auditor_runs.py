"""The bound of `auditor.audit_runs` for a number of runs fixed in advance."""

import auditor

ABOUT = {
    "name": "auditor, runs",
    "requirements": (),
    "claims": "Lower bound on the mechanism's epsilon from independent runs, all thresholds jointly.",
    "quote": "The joint test then looks at every threshold at once, with all of the error",
    "source": "auditor/many/whole_curve.py, FixedNumber",
    "subject": "mechanism",
    "draws": (300, 100, 20),
}


def bound(member, nonmember, delta, confidence):
    """Each score is that of a run with the canary or without."""
    runs = auditor.audit_runs(auditor.Losses(-member, -nonmember), delta=delta, confidence=confidence)
    return runs.estimate("epsilon_bound.order_statistics").value
