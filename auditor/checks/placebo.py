"""Does a model that saw none of these records tell the groups apart too?"""

import numpy as np

from auditor import _validate
from auditor._format import number, percent
from auditor._labels import Column, codes
from auditor.choices import RankGrid, Sample, ThresholdRule
from auditor.errors import InputError
from auditor.estimators.clopper_pearson import clopper_pearson
from auditor.values import Check, Estimate, Losses, PerGroup, Status

__all__ = ["placebo"]

_TELLING = 10  # so many different losses are no coincidence when all of them agree


def placebo(
    reference: Losses | None,
    *,
    audited: Losses | None = None,
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
        audited: The losses that are audited, if the reference is to be held against them: the same ids in the same
            groups, in any order, or equally many records in each group where either has no ids.
        delta: In [0, 1); as in the audit.
        false_alarms: Probability of a failure where the groups are alike, in (0, 1).
        rule: How the certified bound picks its threshold.

    Raises:
        InputError: A number out of range, a reference of other records or other groups than the audited ones, or one
            whose losses are the audited losses.

    >>> easier = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> placebo(easier, delta=1e-5).status
    <Status.FAIL: 'fail'>
    """
    if reference is None:
        return None
    _validate.instance("reference", reference, (Losses,))
    if audited is not None:
        _validate.instance("audited", audited, (Losses,))
        _require_same_records(reference, audited)
    confidence = _validate.confidence(1 - _validate.fraction("false_alarms", false_alarms) / 2)
    swapped = Losses(member=reference.nonmember, nonmember=reference.member)
    easier, harder = (
        clopper_pearson(side, delta=delta, confidence=confidence, members=Sample(), rule=rule)
        for side in (reference, swapped)
    )
    return _judged(easier, harder, percent(1 - false_alarms, toward="down"))


def _require_same_records(reference: Losses, audited: Losses) -> None:
    """Refuse a reference that is not of the audited records in their groups, or that is the audited model's."""
    found = (reference.n_member, reference.n_nonmember)
    wanted = (audited.n_member, audited.n_nonmember)
    if found != wanted:
        raise InputError(
            f"reference must hold the audited records, {wanted[0]:,} members and {wanted[1]:,} non-members, got"
            f" {found[0]:,} and {found[1]:,}; give the losses of exactly those records, in the same groups."
        )
    if reference.id is not None and audited.id is not None:
        missing = [_missing(*columns) for columns in zip(audited.id, reference.id, strict=True)]
        if any(missing):
            raise InputError(
                f"reference must hold the audited records in the same groups, but {missing[0]:,} of {wanted[0]:,}"
                f" member ids and {missing[1]:,} of {wanted[1]:,} non-member ids are not in that group of the reference;"
                " give the losses of exactly those records, marked as in the audit."
            )
    if _same_losses(reference, audited):
        raise InputError(
            f"reference losses are the audited losses themselves (all {sum(wanted):,} of them); give the losses of the same"
            " records under a model that was trained on neither group."
        )


def _missing(wanted: Column, found: Column) -> int:
    """How many of the ids are not found, each counted as often as it is there; blanks are alike."""
    both = codes(PerGroup(wanted, found))
    counts = [np.bincount(side + 1, minlength=both.labels.size + 1) for side in (both.member, both.nonmember)]
    return int(np.maximum(counts[0] - counts[1], 0).sum())


def _same_losses(reference: Losses, audited: Losses) -> bool:
    """Whether all losses agree, in any order; a few values, such as right and wrong, may agree by coincidence."""
    ours = (audited.sorted_member, audited.sorted_nonmember)
    theirs = (reference.sorted_member, reference.sorted_nonmember)
    if not all(np.array_equal(*pair) for pair in zip(ours, theirs, strict=True)):
        return False
    records = audited.n_member + audited.n_nonmember
    return np.unique(np.concatenate(ours)).size > min(_TELLING, records // 2)


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
