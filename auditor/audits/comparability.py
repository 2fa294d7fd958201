"""Why two audits, or two numbers of theirs, have no difference that could be stated."""

from auditor._format import distinct, given
from auditor.compare import failed_validity, why_blind
from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = ["audits_refusal", "row_refusal"]


def row_refusal(old: Estimate | None, new: Estimate | None, *, two_sided: bool) -> str | None:
    """Return why a quantity has no difference, whatever the audits are like, or None.

    Args:
        old: Its estimate in the older audit, if any.
        new: Its estimate in the newer audit, if any.
        two_sided: Whether it is one that has an interval with two ends.
    """
    if old is None or new is None:
        return "only one of the audits has this number" if old or new else "neither audit has this number"
    if (without := _no_value(old, new) or _about_different_things(old, new)) is not None:
        return without
    if not two_sided:
        return _one_sided(old, new)
    if None in {old.lower, old.upper, old.confidence, new.lower, new.upper, new.confidence}:
        return "an interval is missing"
    return None if _in_range(old) and _in_range(new) else "a value or an interval lies outside [0, 1]"


def _no_value(old: Estimate, new: Estimate) -> str | None:
    for which, item in (("older", old), ("newer", new)):
        if item.value is None:
            return f"the {which} audit has no value: {item.reason or 'no reason was given'}"
    return None


def _about_different_things(old: Estimate, new: Estimate) -> str | None:
    if (old.subject, old.adjacency) != (new.subject, new.adjacency):
        return (
            "the values are about different things: the model or the training mechanism, or another adjacency"
        )
    if old.delta == new.delta:
        return None
    return f"the values are stated at different deltas, {' and '.join(_told_apart(old.delta, new.delta))}"


def _told_apart(old: float | None, new: float | None) -> tuple[str, str]:
    return (given(old), given(new)) if old is None or new is None else distinct(old, new)


def _one_sided(old: Estimate, new: Estimate) -> str:
    if old.name == "bayes_security":
        return (
            "only an upper end is known, since stronger attackers may exist, and a difference of two upper bounds bounds"
            " nothing; for attackers who threshold the loss, the row advantage says what changed"
        )
    if old.lower is None and new.lower is None:
        return "both values are point estimates without an interval"
    if old.lower is None or new.lower is None:
        return "one of the values is a point estimate without an interval"
    return "both have a lower end only, and a difference of two lower bounds bounds nothing"


def _in_range(estimate: Estimate) -> bool:
    numbers = (estimate.lower, estimate.value, estimate.upper)
    return all(number is not None and 0 <= number <= 1 for number in numbers)


def audits_refusal(old: AuditResult, new: AuditResult) -> str | None:
    """Return why two audits cannot be set against each other at all, or None."""
    for which, result in (("older", old), ("newer", new)):
        if failed := failed_validity(result.checks):
            return f"a validity check of the {which} audit failed ({failed[0].name})"
        if (blind := why_blind(result.checks) or _too_narrow(result)) is not None:
            return f"in the {which} audit {blind}"
    units = [str(result.data.get("unit", "record")) for result in (old, new)]
    if units[0] != units[1]:
        return f"the units differ: {units[0]} in the older audit, {units[1]} in the newer"
    members = [str(result.data.get("members", "sample")) for result in (old, new)]
    if members[0] != members[1]:
        return (
            f"the intervals are about different things: the members are a {members[0]} in the older audit and a"
            f" {members[1]} in the newer"
        )
    return None


def _too_narrow(result: AuditResult) -> str | None:
    """Why the intervals of one audit are narrower than they say."""
    for check in result.checks:
        details = check.details
        if check.name == "persons" and not details.get("combined") and (details.get("largest") or 1) > 1:
            return "records of one person are counted as independent, so that the intervals are too narrow"
    return None
