"""Did this release get worse? The differences between two audits, from their results alone.

Two releases are usually scored on the same records, so that their intervals depend on each other in a way that the
results do not tell. With [l_i, u_i] an interval of each audit at error alpha/2,

    P(l_new - u_old <= new - old <= u_new - l_old) >= 1 - alpha

whatever they share: it can only fail where one of the two intervals fails (union bound). The intervals are computed
again at that error from what the results keep. A difference of two one-sided bounds bounds nothing and is not stated.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from auditor import _validate
from auditor._format import percent, unit
from auditor.audits.comparability import audits_refusal, row_refusal
from auditor.audits.difference import Change, Difference, Headline
from auditor.audits.ends import ends
from auditor.errors import InputError
from auditor.estimators.as_draws import FINITE
from auditor.result import AuditResult
from auditor.values import Estimate, Subject

__all__ = ["COMPARED", "DECIDES", "Change", "Difference", "Headline", "differences", "headline"]

# Fixed before any audit is seen, and all of them decide: each gets an equal part of the error, so none is picked for
# being striking. The advantage looks wherever a threshold can and holds for any law; the AUC sees a small change of
# all records, for which the advantage's interval is too wide.
COMPARED = ("advantage", "auc")
DECIDES = COMPARED

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


def differences(old: AuditResult, new: AuditResult, *, together: int = 1) -> tuple[Difference, ...]:
    """Return what changed between two audits, one row for each quantity that either of them has.

    The rows of `COMPARED` come first and are always there; then the others in the order of the newer result, which are
    never comparable and say why. All intervals hold at once with the stated confidence, which is that of the audits, the
    lower one if they differ. Members count as draws, in a census too: another training set of
    the same kind is not another model.

    Args:
        old: The audit of the older release.
        new: The audit of the newer release, by any records: the same, others, or some of both.
        together: How many such comparisons are read together, 1 or more: each gets that part of the error (Bonferroni),
            so that the stated confidence is that of all of them.

    Raises:
        InputError: Not two results of audits, or ``together`` is not 1 or more.

    >>> import numpy as np
    >>> from auditor import Losses, audit
    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=5000)
    >>> old = audit(Losses(member=rng.normal(-0.1, 1, 5000), nonmember=others))
    >>> new = audit(Losses(member=rng.normal(-1.0, 1, 5000), nonmember=others))
    >>> found = headline(differences(old, new))
    >>> str(found.verdict), found.confidence
    ('worse', 0.95)
    """
    for name, result in (("old", old), ("new", new)):
        _validate.instance(name, result, (AuditResult,))
    together = _validate.at_least("together", together, least=1)
    pairs = [{item.name: item for item in result.estimates} for result in (old, new)]
    names = dict.fromkeys((*COMPARED, *pairs[1], *pairs[0]))
    refusal = audits_refusal(old, new)
    return tuple(
        _difference(
            name, (pairs[0].get(name), pairs[1].get(name)), (old.data, new.data), refusal, together=together
        )
        for name in names
    )


def headline(found: Iterable[Difference]) -> Headline:
    """Return what decides whether a release got worse: the rows `DECIDES`, whichever of them shows a change.

    Raises:
        InputError: One of these rows is not there.
    """
    by_name = {item.name: item for item in found}
    if missing := [name for name in DECIDES if name not in by_name]:
        raise InputError(
            f"found must hold the difference of {missing[0]!r}, got {list(by_name)}; pass what differences returns."
        )
    rows = [by_name[name] for name in DECIDES]
    known = [item for item in rows if item.confidence is not None]
    if not known:
        return Headline(Change.NOT_COMPARABLE, rows[0].sentence, None, rows[0].reason)
    order = (Change.WORSE, Change.BETTER, Change.NO_CHANGE_SHOWN)
    verdict = next(one for one in order if any(item.verdict is one for item in known))
    if verdict is Change.NO_CHANGE_SHOWN:
        told = [known[0].sentence, *(f"Nor does {_WORDS[item.name]} show one." for item in known[1:])]
    else:
        told = [item.sentence for one in order[:2] for item in known if item.verdict is one]
    return Headline(
        verdict,
        " ".join(told),
        min(item.confidence or 0.0 for item in known),
        " ".join(dict.fromkeys(item.reason for item in known)),
        tuple(dict.fromkeys(text for item in known for text in item.assumptions)),
    )


def _difference(
    name: str,
    pair: tuple[Estimate | None, Estimate | None],
    data: tuple[Mapping[str, Any], Mapping[str, Any]],
    refusal: str | None,
    *,
    together: int,
) -> Difference:
    old, new = pair
    reason = row_refusal(old, new, two_sided=name in COMPARED) or refusal
    if old is None or new is None or old.value is None or new.value is None or reason is not None:
        return _not_comparable(name, old, new, reason or "a value is missing")
    levels = [item.confidence or 0.0 for item in (old, new)]
    looks = len(COMPARED) * together
    confidence, share = min(levels), (1 - min(levels)) / (2 * looks)
    first, second = (
        ends(name, item, data=at, alpha=share) for item, at in zip((old, new), data, strict=True)
    )
    all_at_once = "" if together == 1 else f", for all {together} comparisons together"
    reason = (
        f"each audit's own interval at {percent(1 - share, toward='down')} confidence, one end of the one against the"
        f" other end of the other: holds for all rows at once{all_at_once}, whatever the two audits share"
    )
    if first is None or second is None:
        # The results do not keep what the intervals rest on: all errors add up.
        if name == "advantage" and any(at.get("members") == "census" for at in data):
            unlike = "the intervals describe finite training sets, which differ by chance alone"
            return _not_comparable(name, old, new, unlike)
        confidence = 1 - looks * sum(1 - level for level in levels)
        if confidence <= 0:
            return _not_comparable(name, old, new, "the errors of the two intervals add up to 1 or more")
        first, second = ((item.lower or 0.0, item.upper or 0.0) for item in (old, new))
        reason = f"the audits' intervals as they are: their errors add up, over all rows{all_at_once}, whatever the two audits share"
    lower, upper = second[0] - first[1], second[1] - first[0]
    level = f"{percent(confidence, toward='down')} confidence{all_at_once}"
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
        sentence=_sentence(name, (old.value, new.value), (lower, upper), verdict, level=level),
        reason=reason,
        assumptions=(*_own_assumptions(old, new), *_ASSUMPTIONS),
    )


def _own_assumptions(old: Estimate, new: Estimate) -> tuple[str, ...]:
    """Those of both rows, less what holds of a row alone: here the members of a census count as draws."""
    both = dict.fromkeys((*old.assumptions, *new.assumptions))
    return tuple(item for item in both if FINITE not in item)


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


def _sentence(name: str, values: Ends, at: Ends, verdict: Change, *, level: str) -> str:
    went = f"from {unit(values[0])} to {unit(values[1])}"
    words = _WORDS[name]
    if verdict is Change.WORSE:
        return f"Worse: {words} rose {went}, by at least {unit(at[0], toward='down')} ({level})."
    if verdict is Change.BETTER:
        least = unit(-at[1], toward="down")
        return (
            f"Better: {words} fell {went}, by at least {least} ({level}); other attackers were not compared."
        )
    fall, rise = (unit(max(0.0, end), toward="up") for end in (-at[0], at[1]))
    return (
        f"No change shown: {words} went {went}, and anything from a fall of {fall} to a rise of {rise} fits both audits"
        f" ({level})."
    )
