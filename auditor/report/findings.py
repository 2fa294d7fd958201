"""What was found, in one sentence that a decision can rest on, and in two words.

Where every training record was scored the members count as draws here: the numbers of a finite training set are
positive without any leakage, so they show none.
"""

from typing import NamedTuple

from auditor.audits.ends import ends
from auditor.compare import failed_validity
from auditor.report import formatting, labels
from auditor.report.drawn import drawn, is_finite
from auditor.report.labels import Sign
from auditor.report.lookup import CERTIFIED, ONE_RUN, ceiling, find, powerless
from auditor.report.units import Units, units
from auditor.result import AuditResult
from auditor.values import Estimate

__all__ = ["Finding", "finding", "finest", "level", "meaning"]


class Finding(NamedTuple):
    """What was found: as a sign of two or three words, and as a sentence."""

    sign: Sign
    sentence: str


_LEAK = Sign("Leakage found", "!", "caution")
_NONE = Sign("No evidence of leakage", "–", "plain")  # noqa: RUF001 a dash is meant
_SMALL = Sign("Too few to tell", "?", "caution")
_INVALID = Sign("Not a valid comparison", "✕", "bad")
_REVERSED = Sign("The wrong way round", "!", "caution")
_NO_BOUND = Sign("No bound", "?", "caution")
_LITTLE = 1.0  # a ceiling below which the check of the audit's power warns


def meaning(result: AuditResult) -> str:
    """Return one sentence in plain words on what was found."""
    return finding(result).sentence


def finding(result: AuditResult) -> Finding:
    """Return what was found, in plain words.

    Which rate is quoted is fixed by the number of records (the smallest rate that they resolve), not by how large
    the finding is: quoting the most striking of several intervals would void its confidence.
    """
    failed = failed_validity(result.checks)
    if failed:
        names = ", ".join(dict.fromkeys(check.name.replace("_", " ") for check in failed))
        return Finding(
            _INVALID,
            f"The two groups cannot be compared as they are (failed check: {names}), so the numbers below do not measure"
            " what the model gives away about its training records.",
        )
    words = units(result.data)
    for maker in (_of_rate, _of_advantage, _of_bound, _of_auc, _of_one_run):
        found = maker(result, words)
        if found is not None:
            return found
    return _of_nothing(result, words)


def level(estimate: Estimate) -> str:
    """Return the confidence of an estimate as the start of a sentence."""
    if not estimate.confidence:
        return "As a point estimate"
    return f"At {formatting.percent(estimate.confidence)} confidence"


def finest(result: AuditResult) -> tuple[float, Estimate] | None:
    """Return the smallest false alarm rate that the records resolve, and its row; null where they resolve none.

    In a census the row is the one with the members as draws; see `auditor.report.drawn`.
    """
    rows = [
        (rate, drawn(item, result)) for item in result.estimates if (rate := labels.rate_of(item)) is not None
    ]
    resolved = [
        (rate, item) for rate, item in rows if item and item.lower is not None and item.value is not None
    ]
    return min(resolved, key=lambda pair: pair[0]) if resolved else None


def _of_rate(result: AuditResult, words: Units) -> Finding | None:
    found = finest(result)
    if found is None:
        return None
    rate, row = found
    if row.lower is None or row.lower <= rate:
        return None
    hits = "every one" if row.lower >= 1 else f"at least {formatting.percent(row.lower, toward='down')}"
    return Finding(
        _LEAK,
        f"{level(row)}, an attacker who accepts {formatting.odds(rate)} recognises {hits} of the {words.members};"
        f" guessing would recognise {formatting.percent(rate)}.",
    )


def _of_advantage(result: AuditResult, words: Units) -> Finding | None:
    row = drawn(find(result, "advantage"), result)
    if row is None or not row.lower or row.lower <= 0:
        return None
    points = formatting.percent(row.lower, toward="down").rstrip("%")
    return Finding(
        _LEAK,
        f"{level(row)}, an attacker can recognise {words.members} at least {points} percentage points more often"
        " than they raise false alarms; guessing gains nothing.",
    )


def _of_bound(result: AuditResult, words: Units) -> Finding | None:
    row = drawn(find(result, CERTIFIED), result)
    if row is None or not row.lower or row.lower <= 0 or row.details.get("approximate"):
        return None
    return Finding(
        _LEAK,
        f"{level(row)}, the losses of this model tell {words.members} from others: the certified bound is epsilon"
        f" {formatting.number(row.lower, toward='down')}, where 0 would be no evidence.",
    )


def _of_auc(result: AuditResult, words: Units) -> Finding | None:
    row, half = drawn(find(result, "auc"), result), 0.5
    if row is None:
        return None
    low, high = _at_half_the_error(row, result)
    if low is not None and low > half:
        share = formatting.percent(low, toward="down")
        return Finding(
            _LEAK,
            f"{level(row)}, a random {words.member} has a lower loss than a random {words.other} at least {share} of the"
            " time; without any leakage it would be 50%.",
        )
    if high is not None and high < half:
        return Finding(
            _REVERSED,
            f"{level(row)}, {words.members} have higher losses than {words.others}, the opposite of memorisation:"
            " check that the two groups were not swapped.",
        )
    return None


def _at_half_the_error(row: Estimate, result: AuditResult) -> tuple[float | None, float | None]:
    """The interval at half its error: looked at only after others found nothing, it pays for the further look."""
    if row.value is None or row.confidence is None or not (0 <= row.value <= 1 and 0 < row.confidence < 1):
        return None, None
    return ends("auc", row, data=result.data, alpha=(1 - row.confidence) / 2) or (row.lower, row.upper)


def _of_one_run(result: AuditResult, _words: Units) -> Finding | None:
    row = drawn(find(result, ONE_RUN), result)
    if row is None or not row.lower or row.lower <= 0:
        return None
    bound = formatting.number(row.lower, toward="down")
    return Finding(_LEAK, f"{level(row)}, the training algorithm's epsilon is at least {bound}.")


def _of_nothing(result: AuditResult, words: Units) -> Finding:
    found = find(result, CERTIFIED)
    row = drawn(found, result) or found
    if row is None or row.lower is None:
        reason = (row.reason if row else None) or f"no bound could be computed from these {words.many}"
        return Finding(_NO_BOUND, f"This audit has no bound to report. {formatting.sentence(reason)}")
    top, none = (
        ceiling(row),
        f"No evidence of leakage found; this is not proof of privacy.{_by_chance(result)}",
    )
    if top is not None and 0 < top < _LITTLE:
        most = formatting.number(top, toward="down")
        reach = f"With so few {words.many} the audit could not have certified an epsilon above {most}, however much leaks."
        return Finding(_SMALL, f"{none} {reach}")
    if powerless(row):
        return Finding(_SMALL, f"{none} There are too few {words.many} to certify anything.")
    if top is None:
        return Finding(_NONE, none)
    most = formatting.number(top, toward="down")
    reach = f"With this many {words.many} the audit could have certified an epsilon of up to {most}."
    return Finding(_NONE, f"{none} {reach}")


def _by_chance(result: AuditResult) -> str:
    """What to know of numbers above zero that stand beside this finding."""
    if not any(is_finite(item) for item in result.estimates):
        return ""
    return " Numbers that describe this finite training set can be positive by chance alone."
