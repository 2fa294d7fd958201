"""The bound of `auditor.audit_runs` that holds whenever the runs stop."""

import auditor

ABOUT = {
    "name": "auditor, bets",
    "requirements": (),
    "claims": "Lower bound on the mechanism's epsilon from pairs of independent runs, at any time.",
    "quote": "Runs may stop at any time: the evidence holds however often it is looked at",
    "source": "auditor/many/whole_curve.py, Sequential",
    "subject": "mechanism",
    "outside": ("unequal sizes",),
    "draws": (100, 30, 5),
}


def bound(member, nonmember, delta, confidence):
    """The runs come in pairs, in the order of the draws."""
    losses = auditor.Losses(-member, -nonmember)
    runs = auditor.audit_runs(losses, delta=delta, confidence=confidence, test=auditor.Sequential())
    return runs.estimate("epsilon_bound.sequential").value
