"""The words in which a gate's outcome is told."""

import math
import re

from auditor import _format
from auditor.gate_names import ENDS
from auditor.values import Estimate

__all__ = ["EXACT", "apart", "missing", "sentence", "terms", "toward"]

EXACT = 17  # digits that hold any number


def missing(estimate: Estimate, end: str, name: str) -> str:
    """Return why there is nothing to compare."""
    if estimate.value is None and estimate.reason:
        return f"{name} has no value ({estimate.reason.rstrip('.')})"
    return f"{name} has no value" if end == "value" else f"{estimate.name} has no {ENDS[end]} here"


def toward(estimate: Estimate, end: str) -> str:
    """Return how a number is rounded so that the sentence promises no more than was found."""
    from auditor.report import rows

    return {"lower": "down", "upper": "up"}.get(end) or rows.toward(estimate)


def apart(actual: float, *, bound: float, toward: str) -> str:
    """Return the number with as many digits as it takes to see on which side of the bound it is."""
    if not math.isfinite(actual):
        return _format.number(actual)
    for digits in range(3, EXACT):
        text = _format.number(actual, toward=toward, digits=digits)
        if (float(text) > bound, float(text) < bound) == (actual > bound, actual < bound):
            return text
    return _format.number(actual, digits=EXACT)


def terms(estimate: Estimate, end: str) -> str:
    """Return what a number is, what it is about, and at which delta."""
    from auditor.report import formatting, labels, rows

    share = ""
    if labels.rate_of(estimate):
        share = f"{formatting.percent(getattr(estimate, end), toward=toward(estimate, end))}, "
    level = (
        f"at {formatting.percent(estimate.confidence)} confidence"
        if estimate.confidence
        else "of no stated confidence"
    )
    kind = rows.interval_words(estimate) if end == "value" else f"the {ENDS[end]} {level}"
    about = f"about {labels.ABOUT[estimate.subject]}"
    delta = [] if estimate.delta is None else [f"delta {formatting.given(estimate.delta)}"]
    return share + ", ".join(
        [kind, about, *delta, *([str(estimate.adjacency)] if estimate.adjacency else [])]
    )


def sentence(words: str) -> str:
    """Return the words on one line, with a capital only where they do not start with a name."""
    from auditor.report.formatting import clean, tidy

    capital = words.startswith(("the ", "this ", "no ", "a "))
    line = tidy(clean(re.sub(r"\s+", " ", words)))
    return line[0].upper() + line[1:] if capital else line
