"""One quantity in two audits, and what both together show of it."""

from dataclasses import dataclass
from enum import StrEnum

from auditor.values import Subject

__all__ = ["Change", "Difference", "Headline"]


class Change(StrEnum):
    """What two audits show about a change."""

    WORSE = "worse"
    BETTER = "better"
    NO_CHANGE_SHOWN = "no_change_shown"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True)
class Difference:
    """One quantity in two audits, and what can be said about its change.

    Attributes:
        name: Of the estimate.
        old: Its value in the older audit, or null.
        new: Its value in the newer audit, or null.
        value: new - old; null where they are not comparable.
        lower: Lower end of the interval of the true difference, or null.
        upper: Upper end, or null.
        confidence: With which that interval and those of all other rows hold at once; null where there is none.
        verdict: Whether the interval shows a change, and in which direction; larger is worse in every row compared.
        sentence: The same in words.
        reason: How the interval was found, or why there is none.
        assumptions: What must hold for the interval.
        subject: What the quantity is about.
        delta: The deltas of the old and of the new value; null where there is none.
    """

    name: str
    old: float | None
    new: float | None
    value: float | None
    lower: float | None
    upper: float | None
    confidence: float | None
    verdict: Change
    sentence: str
    reason: str
    assumptions: tuple[str, ...] = ()
    subject: Subject = Subject.MODEL
    delta: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Headline:
    """What the rows that decide show together.

    Attributes:
        verdict: Worse if any of them is; better if one is and none is worse; not comparable if none is.
        sentence: The same in words, naming the rows that showed it.
        confidence: With which it holds; null where nothing is stated.
        reason: How it was found, or why there is nothing to state.
        assumptions: What must hold for it.
    """

    verdict: Change
    sentence: str
    confidence: float | None
    reason: str
    assumptions: tuple[str, ...] = ()
