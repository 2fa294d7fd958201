"""differences(): changes between two audits, from their results alone or with their losses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from auditor.comparison import runs as audited
from auditor.core import Estimate, Losses, about, count, entries, percent, rounded, unit, validate
from auditor.results import metrics
from auditor.results.document import AuditResult, find
from auditor.verdicts.judging import failed_validity, why_blind

# --- One quantity in two audits, and the conclusion from both ---


class Change(StrEnum):
    """Result of comparing two audits."""

    WORSE = "worse"
    BETTER = "better"
    NO_CHANGE_SHOWN = "no_change_shown"
    NOT_COMPARABLE = "not_comparable"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One quantity in two audits, and the conclusion about its change.

    Attributes:
        name: Name of the estimate.
        old: Its value in the older audit, or None.
        new: Its value in the newer audit, or None.
        value: new - old; None if they are not comparable.
        lower: Lower end of the interval of the true difference, or None.
        upper: Upper end, or None.
        confidence: Confidence level with which that interval and those of all other rows that are judged hold at once; None if there is
            none.
        verdict: Whether the interval shows a change, and in which direction; larger is worse in every row compared.
        sentence: The same in words.
        reason: How the interval was found, or why there is none.
        assumptions: Assumptions of the interval.
    """

    name: str
    old: float | None = None
    new: float | None = None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    confidence: float | None = None
    verdict: Change
    sentence: str
    reason: str
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Headline:
    """Conclusion from the differences, taken together.

    Attributes:
        verdict: Worse if any of them is; else not comparable if any is not; else better if any is.
        sentence: The same in words, naming the rows that showed it.
        confidence: Confidence level with which it holds; None if nothing is stated.
        reason: How it was found, or why there is nothing to state.
        assumptions: Assumptions of the verdict.
    """

    verdict: Change
    sentence: str
    confidence: float | None
    reason: str
    assumptions: tuple[str, ...] = ()


# --- Did this release get worse? The differences between two audits, from their results alone or with their losses ---
#
# Two releases are usually scored on the same records, so that their intervals depend on each other in a way that the
# results do not contain. With [l_i, u_i] an interval of each audit at error alpha/2,
#
#     l_new - u_old <= new - old <= u_new - l_old    with probability 1 - alpha or more
#
# whatever they share: it can only fail where one of the two intervals fails (union bound). The intervals are computed
# again at that error from what the results keep. A difference of two one-sided bounds bounds nothing.
# The losses of both contain more than the results: then `auditor.comparison.paired` compares them record by record.

PAIRED = "advantage.paired"  # where the losses were given
_TEXTS = entries("auditor.comparison", "texts.toml")


def _assumed(*names: str) -> tuple[str, ...]:
    """Return these assumptions, and those of every comparison."""
    return tuple(_TEXTS["assumptions"][name] for name in (*names, "same_way", "thresholds"))


def differences(
    old: AuditResult, new: AuditResult, *, together: int = 1, losses: tuple[Losses, Losses] | None = None
) -> tuple[Difference, ...]:
    """Return the changes between two audits: one row for each quantity of `COMPARED`, fixed before any audit was seen.

    With the losses the row `PAIRED`, which says more, stands in their place. All intervals hold at once with the stated
    confidence, which is that of the audits, the lower one if they differ. Members count as draws, in a census too: another training
    set of the same kind is not another model.

    Args:
        old: The audit of the older release.
        new: The audit of the newer release, by any records: the same, others, or some of both.
        together: Number of newer audits, 1 or more, that the older one is compared with, including this one: each audit gets a
            part of the error (union bound), so that the stated confidence is that of all these comparisons.
        losses: Audited losses of the older and of the newer release, with the same ids: compared record by record.

    Raises:
        InputError: Not two results of audits, ``together`` is not 1 or more, or losses that are not of the same records.

    >>> import numpy as np
    >>> from auditor import Losses, audit
    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=5000)
    >>> old = audit(Losses(member=rng.normal(-0.1, 1, 5000), nonmember=others))
    >>> new = audit(Losses(member=rng.normal(-1.0, 1, 5000), nonmember=others))
    >>> result = headline(differences(old, new))
    >>> str(result.verdict), result.confidence
    ('worse', 0.95)
    """
    for name, result in (("old", old), ("new", new)):
        validate.instance(name, result, (AuditResult,))
    releases = _Releases(old, new, validate.at_least("together", together, least=1))
    refusal = audits_refusal(old, new)
    if losses is not None:
        return (releases.paired(losses, refusal),)
    return tuple(releases.difference(name, refusal) for name in audited.COMPARED)


def headline(differences: Iterable[Difference]) -> Headline:
    """Return whether a release got worse.

    Where one of them is not comparable the others can say that it is worse, and nothing else.
    """
    rows = list(differences)
    order = (Change.WORSE, Change.NOT_COMPARABLE, Change.BETTER, Change.NO_CHANGE_SHOWN)
    verdict = next(one for one in order if any(item.verdict is one for item in rows))
    words = [item for item in rows if item.verdict is verdict]
    if verdict is Change.NOT_COMPARABLE:
        return Headline(verdict, words[0].sentence, None, words[0].reason)
    sentences = [item.sentence for item in words]
    if verdict is Change.NO_CHANGE_SHOWN:
        sentences[1:] = [f"Nor does {_TEXTS['measures'][item.name]} show one." for item in words[1:]]
    options = [item for item in rows if item.confidence is not None]
    return Headline(
        verdict,
        " ".join(sentences),
        min(item.confidence or 0.0 for item in options),
        " ".join(dict.fromkeys(item.reason for item in options)),
        tuple(dict.fromkeys(text for item in options for text in item.assumptions)),
    )


@dataclass(frozen=True, eq=False)
class RunChange:
    """Changes from the baseline to one other audit.

    Attributes:
        run: The other audit.
        differences: One for each quantity. All intervals of all audits of the comparison hold at once.
    """

    run: audited.Run
    differences: tuple[Difference, ...]

    @property
    def headline(self) -> Headline:
        """Conclusion from the quantities that decide, fixed in advance."""
        return headline(self.differences)


@dataclass(frozen=True)
class _Releases:
    """The audits of two releases, and the number of newer ones that the older is compared with."""

    old: AuditResult
    new: AuditResult
    together: int

    @property
    def data(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return self.old.data, self.new.data

    def difference(self, name: str, refusal: str | None) -> Difference:
        """Return the difference of one quantity from the data that both results keep."""
        old, new = (find(result, name) for result in (self.old, self.new))
        reason = _row_refusal(old, new) or refusal
        if old is None or new is None or old.value is None or new.value is None or reason is not None:
            return _not_comparable(name, old, new, reason or "a value is missing")
        confidence = min(item.confidence or 0.0 for item in (old, new))
        share = audited.error_share(confidence, audits=self.together + 1)
        first, second = (
            audited.interval_at(name, item, data=at, alpha=share)
            for item, at in zip((old, new), self.data, strict=True)
        )
        if first is None or second is None:
            return _not_comparable(name, old, new, "a result does not keep the data for its interval")
        level = percent(1 - share, toward="down")
        reason = _TEXTS["methods"]["intervals"].format(level=level, for_all=self._for_all)
        ends = second[0] - first[1], second[1] - first[0]
        judged = self._judged(name, (old.value, new.value), ends, confidence)
        # Without the assumptions of a row alone: here the members of a census count as draws.
        both = (item.details.get("as_draws", {}).get("assumptions", item.assumptions) for item in (old, new))
        own = dict.fromkeys(text for assumptions in both for text in assumptions)
        return replace(judged, reason=reason, assumptions=(*own, *_assumed("populations")))

    @property
    def _for_all(self) -> str:
        return "" if self.together == 1 else f", for all {self.together} comparisons together"

    def _judged(self, name: str, values: audited.Ends, at: audited.Ends, confidence: float) -> Difference:
        """Return the row with the verdict of its interval, to three digits unless both audits are for insiders."""
        value = values[1] - values[0]
        if audited.is_public(*self.data):
            nearest = partial(rounded, toward="nearest")
            values, value = (nearest(values[0]), nearest(values[1])), nearest(value)
            at = audited.outward(at)
        lower, upper = at
        hedge = "about " if metrics.metric(name).approximate else ""
        level = f"{hedge}{percent(confidence, toward='down')} confidence{self._for_all}"
        verdict = Change.WORSE if lower > 0 else Change.BETTER if upper < 0 else Change.NO_CHANGE_SHOWN
        return Difference(
            name=name,
            old=values[0],
            new=values[1],
            value=value,
            lower=lower,
            upper=upper,
            confidence=confidence,
            verdict=verdict,
            sentence=_sentence(name, values, at, verdict, level=level),
            reason="",
        )

    def paired(self, losses: tuple[Losses, Losses], refusal: str | None) -> Difference:
        """Return the difference for the same records."""
        from auditor.comparison.paired import attack_change, same_records

        confidence = min(float(data.get("confidence") or 0.0) for data in self.data)
        if refusal is not None or not 0 < confidence < 1:
            reason = refusal or "a result does not keep its confidence"
            return _not_comparable(PAIRED, None, None, reason)
        records = same_records(*losses, people=self.old.data.get("combined"))
        change = attack_change(records, alpha=(1 - confidence) / self.together)
        attack = self._judged(PAIRED, (change.old, change.new), (change.lower, change.upper), confidence)
        gained, lost = map(about if audited.is_public(*self.data) else count, (change.gained, change.lost))
        counts = {"drawn": count(change.drawn), "gained": gained, "lost": lost}
        words = _TEXTS["sentences"]["paired"].format(sentence=attack.sentence, **counts)
        method = _TEXTS["methods"]["mcnemar"]
        return replace(attack, sentence=words, reason=method, assumptions=_assumed("independent"))


def _not_comparable(name: str, old: Estimate | None, new: Estimate | None, reason: str) -> Difference:
    return Difference(
        name=name,
        old=getattr(old, "value", None),
        new=getattr(new, "value", None),
        verdict=Change.NOT_COMPARABLE,
        sentence=f"Not comparable: {reason}.",
        reason=reason,
    )


def _sentence(name: str, values: audited.Ends, at: audited.Ends, verdict: Change, *, level: str) -> str:
    least = unit(at[0] if verdict is Change.WORSE else -at[1], toward="down")
    fall, rise = (unit(max(0.0, end), toward="up") for end in (-at[0], at[1]))
    words = {"least": least, "fall": fall, "rise": rise, "measure": _TEXTS["measures"][name], "level": level}
    went = f"from {unit(values[0])} to {unit(values[1])}"
    return str(_TEXTS["sentences"][verdict]).format(went=went, **words)


# --- Why two audits, or two numbers of theirs, have no difference that could be stated ---


def _row_refusal(old: Estimate | None, new: Estimate | None) -> str | None:
    """Return why a quantity has no difference, whatever the audits are like, or None."""
    if old is None or new is None:
        return "only one of the audits has this number" if old or new else "neither audit has this number"
    for which, item in (("older", old), ("newer", new)):
        if item.value is None:
            return f"the {which} audit has no value: {item.reason or 'no reason was given'}"
    if old.method != new.method:
        return str(_TEXTS["refusals"]["methods"]).format(old=old.method, new=new.method)
    ends = [getattr(item, name) for item in (old, new) for name in ("lower", "value", "upper")]
    if None in (*ends, old.confidence, new.confidence):
        return "an interval is missing"
    return None if all(0 <= x <= 1 for x in ends) else "a value or an interval lies outside [0, 1]"


def audits_refusal(old: AuditResult, new: AuditResult) -> str | None:
    """Return why two audits cannot be set against each other at all, or None."""
    for which, result in (("older", old), ("newer", new)):
        if failed := failed_validity(result.checks):
            return f"a validity check of the {which} audit failed ({failed[0].name.replace('_', ' ')})"
        if (blind := why_blind(result.checks) or audited.too_narrow(result)) is not None:
            return f"in the {which} audit {blind}"
    units = [" by loss: ".join(filter(None, map(of.data.get, ("unit", "combined")))) for of in (old, new)]
    if units[0] != units[1]:
        return f"the units differ: {units[0]} in the older audit, {units[1]} in the newer"
    members = [str(result.data.get("members", "sample")) for result in (old, new)]
    if members[0] != members[1]:
        return str(_TEXTS["refusals"]["members"]).format(old=members[0], new=members[1])
    return None
