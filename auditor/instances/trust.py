"""Whether several instances can be trusted together: what makes one of them unusable makes the whole so."""

from collections.abc import Iterator, Sequence

from auditor import checks
from auditor.choices import EachRecord
from auditor.estimators import auc
from auditor.persons import mechanism_reason, per_person
from auditor.result import AuditResult
from auditor.tradeoff import count
from auditor.values import Check, Losses

__all__ = ["checks_of", "not_for_claim", "persons_refusal"]

Instance = Losses | AuditResult

_BY_PERSON = (
    "records of one person were counted as independent, and no person is in both groups: membership was decided by"
    " person; audit one score per person"
)


def checks_of(instances: Sequence[Instance]) -> tuple[Check, ...]:
    """Return the checks of every audit; for bare losses those that need nothing else."""
    found: list[Check] = []
    for item in instances:
        if isinstance(item, AuditResult):
            found += item.checks
        else:
            found += [checks.direction(auc(count(item))), checks.ties(item), checks.duplicates(item)]
    return tuple(found)


def persons_refusal(instances: Sequence[Instance]) -> str | None:
    """Why the units of an instance support no statement about the mechanism, if so."""
    reasons = (_of_losses(item) if isinstance(item, Losses) else _of_result(item) for item in instances)
    return next((reason for reason in reasons if reason is not None), None)


def _of_losses(losses: Losses) -> str | None:
    return mechanism_reason(per_person(losses, choice=EachRecord()))


def _of_result(result: AuditResult) -> str | None:
    """What `mechanism_reason` said, as far as a result tells."""
    for check in _persons(result):
        details = check.details
        if details.get("combined") and details.get("in_both"):
            return "persons have records in both groups, so their combined scores depend on which of them were members"
        if not details.get("combined") and (details.get("largest") or 1) > 1 and not details.get("in_both"):
            return _BY_PERSON
    return None


def not_for_claim(instances: Sequence[Instance]) -> str | None:
    """Why a bound on these units cannot judge a claim made for single records, if so."""
    results = (item for item in instances if isinstance(item, AuditResult))
    if any(check.details.get("combined") for item in results for check in _persons(item)):
        return (
            "scores combine the records of one person, so the bound is about replacing a person, and a claim about single"
            " records allows a person with several records a larger epsilon"
        )
    return None


def _persons(result: AuditResult) -> Iterator[Check]:
    return (check for check in result.checks if check.name == "persons")
