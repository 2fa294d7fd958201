"""Does the audit deserve trust? Its checks as strings, and which to read first."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from auditor.report import formatting, labels
from auditor.report.advice import advice
from auditor.values import Check, Status

__all__ = ["check", "read_first"]


def check(item: Check, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a check with what to do about it."""
    return {
        "name": item.name,
        "title": _title(item),
        "question": _QUESTIONS.get(item.name, ""),
        "status": asdict(labels.STATUS[item.status]),
        "message": formatting.sentence(item.message),
        "advice": advice(item, data),
        "rank": _RANK[item.status],
    }


# In the order in which a reader should look.
_RANK = {Status.FAIL: "0", Status.WARN: "1", Status.UNKNOWN: "2", Status.OK: "3"}

_QUESTIONS = {
    "collection": "Was anything noticed while the losses were collected?",
    "direction": "Are the two groups the right way round?",
    "duplicates": "Does a record appear twice, or in both groups?",
    "goodness_of_fit": "Do the fitted curves describe the losses?",
    "label_shuffle": "Does the audit find something where there is nothing?",
    "persons": "Do several records belong to one person?",
    "placebo": "Does a model that saw none of the records tell the groups apart too?",
    "power": "Could this audit have found anything?",
    "saturation": "Did the model's outputs reach the end of their scale?",
    "sensitivity": "Does Epsilon* hang on a few records, or on the transform?",
    "shift": "Do both groups come from one population?",
    "ties": "Do many records share one loss?",
}


def _title(item: Check) -> str:
    return item.name.replace("_", " ").capitalize()


def read_first(checks: Sequence[Check]) -> str:
    """Return the checks to read before relying on the audit, failures first, or nothing."""
    kinds = ((Status.FAIL, "failed check"), (Status.WARN, "warning"))
    parts = []
    for status, kind in kinds:
        names = [_title(item).lower() for item in checks if item.status is status]
        plural = "" if len(names) == 1 else "s"
        parts += [f"{len(names)} {kind}{plural}: {', '.join(names)}"] if names else []
    return f"Before you rely on this, read {'; '.join(parts)}." if parts else ""
