"""Did this release get worse? The differences between two audits, from their results alone.

Two releases are usually scored on the same records, so that their intervals depend on each other in a way that the
results do not tell. With [l_i, u_i] an interval of each audit at error alpha/2,

    P(l_new - u_old <= new - old <= u_new - l_old) >= 1 - alpha

whatever they share: it can only fail where one of the two intervals fails (union bound). The intervals are computed
again at that error from what the results keep. A difference of two one-sided bounds bounds nothing and is not stated.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from auditor import _validate
from auditor._format import percent, unit
from auditor.audits.comparability import audits_refusal, row_refusal
from auditor.errors import InputError
from auditor.estimators.advantage import half_width
from auditor.estimators.auc import interval
from auditor.result import AuditResult
from auditor.values import Estimate, Subject

__all__ = ["COMPARED", "DECIDES", "Change", "Difference", "differences", "headline"]

# Fixed before any audit is seen, so that the most striking of several rows is never the one that is told.
# The advantage decides: it is what an attacker gains, it looks wherever a threshold can, and its interval holds for any
# number of records and any law, where the AUC's needs many.
COMPARED = ("advantage", "auc")
DECIDES = "advantage"

_WORDS = {
    "advantage": "the advantage of the best attacker who thresholds the loss",
    "auc": "the chance that a random training record has a lower loss than a random other record (AUC)",
}
_ASSUMPTIONS = (
    "both audits drew their records from the same populations: other training or hold-out data look like another model",
    "both audits computed the loss in the same way",
    "only attackers who threshold the loss; stronger ones may see another change",
)
Ends = tuple[float, float]


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
        confidence: Of that interval, for this row alone; null where there is none.
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


def differences(old: AuditResult, new: AuditResult) -> tuple[Difference, ...]:
    """Return what changed between two audits, one row for each quantity that either of them has.

    The rows of `COMPARED` come first and are always there; then the others in the order of the newer result, which are
    never comparable and say why. Each row holds at its own confidence, not jointly with the others. The confidence is
    that of the audits, the lower one if they differ.

    Args:
        old: The audit of the older release.
        new: The audit of the newer release, by any records: the same, others, or some of both.

    Raises:
        InputError: Not two results of audits.

    >>> import numpy as np
    >>> from auditor import Losses, audit
    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=5000)
    >>> old = audit(Losses(member=rng.normal(-0.1, 1, 5000), nonmember=others))
    >>> new = audit(Losses(member=rng.normal(-1.0, 1, 5000), nonmember=others))
    >>> found = headline(differences(old, new))
    >>> found.name, str(found.verdict), found.lower < found.value < found.upper
    ('advantage', 'worse', True)
    """
    for name, result in (("old", old), ("new", new)):
        _validate.instance(name, result, (AuditResult,))
    pairs = [{item.name: item for item in result.estimates} for result in (old, new)]
    names = dict.fromkeys((*COMPARED, *pairs[1], *pairs[0]))
    refusal = audits_refusal(old, new)
    return tuple(
        _difference(name, (pairs[0].get(name), pairs[1].get(name)), (old.data, new.data), refusal)
        for name in names
    )


def headline(found: Iterable[Difference]) -> Difference:
    """Return the row that decides whether a release got worse: `DECIDES`, whatever the other rows say.

    Raises:
        InputError: The row is not there.
    """
    by_name = {item.name: item for item in found}
    if DECIDES not in by_name:
        raise InputError(
            f"found must hold the difference of {DECIDES!r}, got {list(by_name)}; pass what differences returns."
        )
    return by_name[DECIDES]


def _difference(
    name: str,
    pair: tuple[Estimate | None, Estimate | None],
    data: tuple[Mapping[str, Any], Mapping[str, Any]],
    refusal: str | None,
) -> Difference:
    old, new = pair
    reason = row_refusal(old, new, two_sided=name in COMPARED) or refusal
    if old is None or new is None or old.value is None or new.value is None or reason is not None:
        return _not_comparable(name, old, new, reason or "a value is missing")
    levels = [item.confidence or 0.0 for item in (old, new)]
    alpha = 1 - min(levels)
    ends = [_ENDS[name](item, at, alpha / 2) for item, at in zip((old, new), data, strict=True)]
    confidence = min(levels)
    reason = (
        f"each audit's own interval at {percent(1 - alpha / 2, toward='down')} confidence, one end of the one against the"
        " other end of the other: holds whatever the two audits share"
    )
    first, second = ends
    if first is None or second is None:
        # The results do not keep what the intervals rest on: both errors add up.
        confidence = 1 - sum(1 - level for level in levels)
        if confidence <= 0:
            return _not_comparable(name, old, new, "the errors of the two intervals add up to 1 or more")
        first, second = ((item.lower or 0.0, item.upper or 0.0) for item in (old, new))
        reason = "the audits' intervals as they are: their errors add up, whatever the two audits share"
    lower, upper = second[0] - first[1], second[1] - first[0]
    verdict = Change.WORSE if lower > 0 else Change.BETTER if upper < 0 else Change.NO_CHANGE_SHOWN
    return Difference(
        name=name,
        old=old.value,
        new=new.value,
        value=new.value - old.value,
        lower=lower,
        upper=upper,
        confidence=confidence,
        verdict=verdict,
        sentence=_sentence(name, (old.value, new.value), (lower, upper), confidence, verdict),
        reason=reason,
        assumptions=(*dict.fromkeys((*old.assumptions, *new.assumptions)), *_ASSUMPTIONS),
    )


def _not_comparable(name: str, old: Estimate | None, new: Estimate | None, reason: str) -> Difference:
    some = new or old
    return Difference(
        name=name,
        old=None if old is None else old.value,
        new=None if new is None else new.value,
        value=None,
        lower=None,
        upper=None,
        confidence=None,
        verdict=Change.NOT_COMPARABLE,
        sentence=f"Not comparable: {reason}.",
        reason=reason,
        subject=Subject.MODEL if some is None else some.subject,
        delta=(None if old is None else old.delta, None if new is None else new.delta),
    )


def _sentence(name: str, values: Ends, ends: Ends, confidence: float, verdict: Change) -> str:
    went = f"from {unit(values[0])} to {unit(values[1])}"
    level = f"{percent(confidence, toward='down')} confidence"
    words = _WORDS[name]
    if verdict is Change.WORSE:
        return f"Worse: {words} rose {went}, by at least {unit(ends[0], toward='down')} ({level})."
    if verdict is Change.BETTER:
        least = unit(-ends[1], toward="down")
        return (
            f"Better: {words} fell {went}, by at least {least} ({level}); other attackers were not compared."
        )
    fall, rise = (unit(max(0.0, end), toward="up") for end in (-ends[0], ends[1]))
    return (
        f"No change shown: {words} went {went}, and anything from a fall of {fall} to a rise of {rise} fits both audits"
        f" ({level})."
    )


# --- The interval of one audit, at another error -----------------------------------------------------


def _advantage_ends(estimate: Estimate, data: Mapping[str, Any], alpha: float) -> Ends | None:
    sizes = _sizes(data)
    if sizes is None:
        return None
    value = estimate.value or 0.0
    sampled = None if data.get("members") == "census" else sizes[0]
    half = half_width(alpha, n_member=sampled, n_nonmember=sizes[1])
    return max(0.0, value - half), min(1.0, value + half)


def _auc_ends(estimate: Estimate, data: Mapping[str, Any], alpha: float) -> Ends | None:
    sizes, error = _sizes(data), estimate.details.get("standard_error")
    if sizes is None or not isinstance(error, int | float) or not 0 <= error < math.inf:
        return None
    return interval(estimate.value or 0.0, error * error, sizes=sizes, alpha=alpha)


_ENDS: Mapping[str, Callable[[Estimate, Mapping[str, Any], float], Ends | None]] = {
    "advantage": _advantage_ends,
    "auc": _auc_ends,
}


def _sizes(data: Mapping[str, Any]) -> tuple[int, int] | None:
    sizes = data.get("n_member"), data.get("n_nonmember")
    if not all(isinstance(size, int) and size > 1 for size in sizes):
        return None
    return int(sizes[0] or 0), int(sizes[1] or 0)
