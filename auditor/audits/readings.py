"""What each audit of a comparison says of the measure, and whether that can be set against the others."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from auditor import _validate
from auditor._format import given
from auditor.audits.runs import Run
from auditor.choices import Adjacency
from auditor.compare import failed_validity, why_blind
from auditor.report.lookup import STAR, ceiling, dig, find
from auditor.values import Estimate

__all__ = ["REJECTED", "Reading", "Scale", "chosen", "is_lower_bound", "leakage", "more_is_worse", "read"]

# The measures of which a larger value means that less is given away.
_MORE_IS_BETTER = frozenset({"bayes_security"})
REJECTED = "fit rejected"  # a mark
_WITHOUT_FIT = "advantage"
_DIGITS = 9  # in which two deltas must agree


class Scale(NamedTuple):
    """What two numbers must share before one can be called the larger.

    Attributes:
        delta: Of an epsilon, to nine digits; null for other measures.
        adjacency: Of a number about the training algorithm, or null.
        unit: What is counted: a record or a person.
    """

    delta: float | None
    adjacency: Adjacency | None
    unit: str


@dataclass(frozen=True, eq=False)
class Reading:
    """What one audit says of the measure.

    Attributes:
        run: The audit.
        estimate: Of the measure, or null where the audit has none.
        reason: Why the audit takes no part in the landscape and its frontier, or null.
        marks: What a reader must know before comparing the value with the others.
    """

    run: Run
    estimate: Estimate | None
    reason: str | None
    marks: tuple[str, ...]

    @property
    def value(self) -> float | None:
        """The value of the measure, or null."""
        return None if self.estimate is None else self.estimate.value

    @property
    def scale(self) -> Scale:
        """The scale of the value."""
        return _scale(self.run, self.estimate)

    @property
    def ceiling(self) -> float | None:
        """The largest lower bound that this audit could have certified, or null where the measure is none."""
        bound = self.estimate is not None and is_lower_bound(self.estimate.name)
        return ceiling(self.estimate) if bound else None


def more_is_worse(measure: str) -> bool:
    """Whether a larger value of the measure means that more is given away.

    >>> more_is_worse("epsilon_star.gaussian"), more_is_worse("bayes_security")
    (True, False)
    """
    return measure not in _MORE_IS_BETTER


def is_lower_bound(measure: str) -> bool:
    """Whether the value of the measure is itself a lower bound, so that the truth may lie anywhere above it.

    >>> is_lower_bound("epsilon_bound.clopper_pearson"), is_lower_bound("epsilon_star.gaussian")
    (True, False)
    """
    return measure.startswith("epsilon_bound.")


def leakage(value: float, *, measure: str) -> float:
    """Return the measure as a number that grows with what is given away, for the frontier."""
    return value if more_is_worse(measure) else -value


def chosen(runs: Sequence[Run], measure: str | None) -> tuple[str, str | None]:
    """Return the measure to compare by, and why it is another than people expect, or null.

    Args:
        runs: The audits.
        measure: As asked for. Null for the published estimate, or for the advantage where a fit of that is rejected.

    Raises:
        InputError: No audit has the measure that was asked for.
    """
    names = list(dict.fromkeys(item.name for run in runs for item in run.result.estimates))
    if measure is not None:
        return _validate.known("measure", measure, names), None
    if STAR not in names:
        return (_WITHOUT_FIT if _WITHOUT_FIT in names or not names else names[0]), None
    fits = [item for run in runs if (item := find(run.result, STAR)) is not None]
    rejected = sum(bool(dig(item.details, "fit", "rejected")) for item in fits)
    if not rejected or _WITHOUT_FIT not in names:
        return STAR, None
    return _WITHOUT_FIT, (
        f"the fit that Epsilon* rests on is rejected in {rejected} of {len(runs)} audits, and the advantage needs no fit"
    )


def read(runs: Sequence[Run], *, measure: str) -> tuple[Reading, ...]:
    """Return what each audit says of the measure."""
    estimates = [find(run.result, measure) for run in runs]
    reasons = [_reason(run, item) for run, item in zip(runs, estimates, strict=True)]
    scales = [_scale(run, item) for run, item in zip(runs, estimates, strict=True)]
    used = [at for at, reason in zip(scales, reasons, strict=True) if reason is None]
    usual = [_most(values) for values in zip(*(used or scales), strict=True)]
    return tuple(
        Reading(run, item, reason, _marks(item, at, usual))
        for run, item, reason, at in zip(runs, estimates, reasons, scales, strict=True)
    )


def _scale(run: Run, estimate: Estimate | None) -> Scale:
    delta = None if estimate is None or estimate.delta is None else float(f"{estimate.delta:.{_DIGITS}g}")
    people = str(run.result.data.get("unit") or "").startswith("person")
    return Scale(delta, None if estimate is None else estimate.adjacency, "person" if people else "record")


def _most(values: Sequence[object]) -> tuple[object, ...]:
    """The value that most of them have; none where two are as frequent."""
    counted = Counter(values).most_common(2)
    tie = len(counted) > 1 and counted[0][1] == counted[1][1]
    return () if tie else (counted[0][0],)


def _reason(run: Run, estimate: Estimate | None) -> str | None:
    failed = failed_validity(run.result.checks)
    if failed:
        names = ", ".join(check.name.replace("_", " ") for check in failed)
        return f"a validity check failed ({names}), so its numbers do not measure leakage"
    if (blind := why_blind(run.result.checks)) is not None:
        return blind
    if estimate is None:
        return "the audit has no such number"
    if estimate.value is None:
        return estimate.reason or "the audit could not compute it"
    return None if math.isfinite(estimate.value) else "it is infinite"


def _marks(estimate: Estimate | None, at: Scale, usual: Sequence[tuple[object, ...]]) -> tuple[str, ...]:
    if estimate is None or estimate.value is None:
        return ()
    found = [REJECTED] if dig(estimate.details, "fit", "rejected") else []
    words = (f"delta {given(at.delta)}", f"adjacency {at.adjacency or 'not stated'}", f"counted by {at.unit}")
    found += [text for text, mine, most in zip(words, at, usual, strict=True) if (mine,) != most]
    return tuple(found)
