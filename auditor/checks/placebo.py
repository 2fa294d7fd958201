"""Does a model that saw none of these records tell the groups apart too?"""

from auditor import _validate
from auditor._format import number, percent
from auditor.choices import RankGrid, Sample, ThresholdRule
from auditor.estimators.clopper_pearson import clopper_pearson
from auditor.values import Check, Estimate, Losses, Status

__all__ = ["placebo"]


def placebo(
    reference: Losses | None,
    *,
    delta: float,
    false_alarms: float = 0.01,
    rule: ThresholdRule = RankGrid(),  # noqa: B008 - a frozen value
) -> Check | None:
    """Fail when a reference model, trained on neither group, separates members from non-members; None without one.

    Both directions are looked at, with half of the error each: members that are easier for any model make the audit
    find too much, members that are harder make it find too little. Members count as a sample even in a census: the
    question is about the population they were drawn from.

    Args:
        reference: Losses of a model that was trained on none of these records, grouped like the audited ones.
        delta: In [0, 1); as in the audit.
        false_alarms: Probability of a failure where the groups are alike, in (0, 1).
        rule: How the certified bound picks its threshold.

    Raises:
        InputError: A number out of range.

    >>> import numpy as np
    >>> easier = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> placebo(easier, delta=1e-5).status
    <Status.FAIL: 'fail'>
    """
    if reference is None:
        return None
    _validate.instance("reference", reference, (Losses,))
    confidence = _validate.confidence(1 - _validate.fraction("false_alarms", false_alarms) / 2)
    swapped = Losses(member=reference.nonmember, nonmember=reference.member)
    easier, harder = (
        clopper_pearson(side, delta=delta, confidence=confidence, members=Sample(), rule=rule)
        for side in (reference, swapped)
    )
    return _judged(easier, harder, percent(1 - false_alarms, toward="down"))


def _judged(easier: Estimate, harder: Estimate, level: str) -> Check:
    found = max(easier.value or 0.0, harder.value or 0.0)
    ceiling = easier.details["ceiling"]
    details = {
        "bound_members_easier": easier.value,
        "bound_members_harder": harder.value,
        "ceiling": ceiling,
        "confidence_each": easier.confidence,
    }
    if found > 0:
        way = "easier" if (easier.value or 0.0) == found else "harder"
        message = (
            f"A reference model that was trained on none of these records separates the groups too (certified epsilon"
            f" {number(found, toward='down')} at {level} confidence; members are {way} for it): the groups differ by more than"
            " membership, so a difference in losses is no evidence of memorisation. Draw the non-members like the members"
            " and audit again."
        )
        return Check("placebo", Status.FAIL, message, details)
    message = (
        "A reference model that was trained on none of these records does not separate the groups at"
        f" {level} confidence; by this method it would have shown at most {number(ceiling, toward='down')}."
    )
    return Check("placebo", Status.OK, message, details)
