"""What was found, in one sentence that a decision can rest on."""

from auditor.compare import failed_validity
from auditor.report import formatting, labels
from auditor.report.lookup import CERTIFIED, ONE_RUN, ceiling, find, powerless
from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = ["meaning"]


def meaning(result: AuditResult) -> str:
    """Return one sentence in plain words on what was found.

    Which rate is quoted is fixed by the number of records (the smallest rate that they resolve), not by how large
    the finding is: quoting the most striking of several intervals would void its confidence.
    """
    failed = failed_validity(result.checks)
    if failed:
        names = ", ".join(dict.fromkeys(check.name.replace("_", " ") for check in failed))
        return (
            f"The two groups cannot be compared as they are (failed check: {names}), so the numbers below do not measure"
            " what the model gives away about its training records."
        )
    makers = (_of_rate, _of_advantage, _of_bound, _of_auc, _of_one_run)
    found = next((text for maker in makers if (text := maker(result)) is not None), None)
    return _of_persons(result, found or _of_nothing(result))


def _of_persons(result: AuditResult, text: str) -> str:
    """The same sentence about persons, where one score stands for a person."""
    if not str(result.data.get("unit")).startswith("person"):
        return text
    words = (
        ("training records", "persons in the training data"),
        ("training record", "person in the training data"),
        ("other records", "other persons"),
        ("other record", "other person"),
        ("this many records", "this many persons"),
        ("too few records", "too few persons"),
    )
    for record, person in words:
        text = text.replace(record, person)
    return text


def _level(estimate: Estimate) -> str:
    return (
        f"At {formatting.percent(estimate.confidence)} confidence"
        if estimate.confidence
        else "As a point estimate"
    )


def _of_rate(result: AuditResult) -> str | None:
    rows = [(rate, item) for item in result.estimates if (rate := labels.rate_of(item)) is not None]
    resolved = [(rate, item) for rate, item in rows if item.lower is not None and item.value is not None]
    if not resolved:
        return None
    rate, row = min(resolved, key=lambda pair: pair[0])
    if row.lower is None or row.lower <= rate:
        return None
    hits = "every one" if row.lower >= 1 else f"at least {formatting.percent(row.lower, toward='down')}"
    return (
        f"{_level(row)}, an attacker who accepts {formatting.odds(rate)} recognises {hits} of the training records;"
        f" guessing would recognise {formatting.percent(rate)}."
    )


def _of_advantage(result: AuditResult) -> str | None:
    row = find(result, "advantage")
    if row is None or not row.lower or row.lower <= 0:
        return None
    points = formatting.percent(row.lower, toward="down").rstrip("%")
    return (
        f"{_level(row)}, an attacker can recognise training records at least {points} percentage points more often"
        " than they raise false alarms; guessing gains nothing."
    )


def _of_bound(result: AuditResult) -> str | None:
    row = find(result, CERTIFIED)
    if row is None or not row.lower or row.lower <= 0 or row.details.get("approximate"):
        return None
    return (
        f"{_level(row)}, the losses of this model tell training records from others: the certified bound is epsilon"
        f" {formatting.number(row.lower, toward='down')}, where 0 would be no evidence."
    )


def _of_auc(result: AuditResult) -> str | None:
    row, half = find(result, "auc"), 0.5
    if row is None:
        return None
    if row.lower is not None and row.lower > half:
        share = formatting.percent(row.lower, toward="down")
        return (
            f"{_level(row)}, a random training record has a lower loss than a random other record at least {share} of the"
            " time; without any leakage it would be 50%."
        )
    if row.upper is not None and row.upper < half:
        return (
            f"{_level(row)}, training records have higher losses than other records, the opposite of memorisation:"
            " check that the two groups were not swapped."
        )
    return None


def _of_one_run(result: AuditResult) -> str | None:
    row = find(result, ONE_RUN)
    if row is None or not row.lower or row.lower <= 0:
        return None
    return f"{_level(row)}, the training algorithm's epsilon is at least {formatting.number(row.lower, toward='down')}."


def _of_nothing(result: AuditResult) -> str:
    row = find(result, CERTIFIED)
    if row is None or row.lower is None:
        reason = (row.reason if row else None) or "no bound could be computed from these records"
        return f"This audit has no bound to report. {formatting.sentence(reason)}"
    top = ceiling(row)
    limit = ""
    if powerless(row):
        limit = " There are too few records to certify anything."
    elif top is not None:
        most = formatting.number(top, toward="down")
        limit = f" With this many records the audit could have certified an epsilon of up to {most}."
    return f"No evidence of leakage found; this is not proof of privacy.{limit}"
