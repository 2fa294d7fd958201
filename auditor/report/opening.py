"""What every output says first: what was found, and the verdict on the claim; the claim's first where there is one."""

from typing import NamedTuple

from auditor.report import labels
from auditor.report.findings import finding
from auditor.report.wording import verdict_sentence
from auditor.result import AuditResult

__all__ = ["Opening", "openings"]


class Opening(NamedTuple):
    """A sign of two or three words, and its sentence."""

    sign: labels.Sign
    sentence: str


def openings(result: AuditResult) -> tuple[Opening, Opening]:
    """Return what was found and what became of the claim, the one that leads first."""
    found = Opening(*finding(result))
    claim = Opening(labels.VERDICT[result.verdict], verdict_sentence(result))
    claimed = result.claims or result.comparisons or result.data.get("claim")
    return (claim, found) if claimed else (found, claim)
