"""One estimate as the strings that a page shows: a tile, a table row, and what lies behind it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from auditor.core import numbers
from auditor.core.registry import Role
from auditor.core.values import Estimate
from auditor.estimators.limits import FINITE
from auditor.results import metrics
from auditor.results.document import AuditDocument, ceiling, detail, powerless
from auditor.results.metrics import describe, shown_value

# --- The fits behind Epsilon*, in words: what to know before quoting it, and how they were tested ---


_FEW = 50  # held-out records below which the test has no force


def within_noise(star: Estimate) -> str | None:
    """Return the sentence on a value that chance alone would give, or null where it is above that or not known."""
    floor = detail(star, "noise_floor", "q95")
    if floor is None or star.value is None or star.value > floor:
        return None
    if floor <= 0:
        return "An Epsilon* of 0 is no evidence of leakage."
    return (
        f"On this many records chance alone gives an Epsilon* of up to {numbers.number(floor, toward='up')} (19 times"
        " in 20, between two groups without any difference), so the value found is no evidence."
    )


def star_notes(star: Estimate) -> list[str]:
    """Return what a reader should know before quoting a parametric Epsilon*, most important first."""
    noise = within_noise(star)
    notes = [noise] if noise else []
    if detail(star, "saturated"):
        notes.append(
            "The two groups do not overlap: it is the largest value that can be reported at this delta."
        )
    elif detail(star, "at", "reached_by_data") is False:
        value = numbers.number(detail(star, "supported", "value"))
        instead = "" if value == numbers.MISSING else f"; at rates that the records can show it is {value}"
        notes.append(f"It is read off the fitted curves beyond what the records can show{instead}.")
    return notes


def fit_sentences(star: Estimate | None, *, mixture: Estimate | None = None) -> list[str]:
    """Return the tests of the Gaussian fits in words, then those of the mixtures where there are any."""
    sentences = _one_fit(star, "Gaussian")
    fit = detail(mixture, "fit")
    if not fit:
        return sentences
    counts = [detail(mixture, "fit", side, "components") for side in ("member", "nonmember")]
    if None not in counts:
        members, others = (numbers.count(int(item or 0)) for item in counts)
        sentences.append(
            f"Mixtures were fitted too: {members} normals for the members, {others} for the others."
        )
    return [*sentences, *_one_fit(mixture, "mixture")]


def _one_fit(star: Estimate | None, kind: str) -> list[str]:
    fit = detail(star, "fit")
    if not fit:
        return []
    sentences = [text for side in ("member", "nonmember") if (text := _fit_of(side, fit.get(side) or {}))]
    gap, where = (detail(star, name) for name in ("curve_gap", "curve_gap_fpr"))
    if gap:
        place = "" if where is None else f" (at a false alarm rate of {numbers.percent(where)})"
        side = "above" if gap > 0 else "below"
        sentences.append(
            f"Where there are records to compare with, the fitted trade-off curve lies up to"
            f" {numbers.number(abs(gap))} nats of epsilon {side} the measured one{place}."
        )
    if fit.get("rejected"):
        sentences.append(f"The {kind} fit is rejected: the certified bound needs no fit.")
    elif _few(fit):
        sentences.append(
            "So few held-out records cannot reject anything: whether the curves fit is not known, and the certified bound"
            " needs no fit."
        )
    elif fit.get("rejected") is False:
        sentences.append(
            f"The {kind} fit is not rejected. That is not proof that it is right, least of all in the tails."
        )
    return sentences


def _few(fit: Any) -> bool:
    sizes = [(fit.get(side) or {}).get("ks_n") for side in ("member", "nonmember")]
    return any(size is not None and size < _FEW for size in sizes)


def _fit_of(side: str, fit: Any) -> str | None:
    distance, p = fit.get("ks_statistic"), fit.get("ks_p_value")
    if distance is None or p is None:
        return None
    who = "Members" if side == "member" else "Non-members"
    records = fit.get("ks_n")
    held = (
        "the records"
        if records is None
        else f"{numbers.count(records)} held-out record{'' if records == 1 else 's'}"
    )
    apart = f"{who}: the fitted curve and {held} differ by at most {numbers.percent(distance)} of the records"
    name = "Kolmogorov–Smirnov"  # noqa: RUF001 two names are joined by an en dash
    alone, against = fit.get("distance_p_value"), fit.get("likelihood_p_value")
    if alone is not None and against is not None:
        return (
            f"{apart} ({name} test, {_p(alone)}); the likelihood ratio against more components has {_p(against)}. The two"
            f" decide together: {_p(p)}, twice the smaller (at most 1)."
        )
    if "likelihood ratio" in str(fit.get("test")):  # as an earlier release kept it
        return (
            f"{apart}. A {name} test and a likelihood ratio against more components decide together: {_p(p)}."
        )
    return f"{apart} ({name} test, {_p(p)})."


def _p(p: float) -> str:
    small, large = 0.001, 0.99
    if p < small:
        return f"p < {small}"
    return f"p > {large}" if p > large else f"p = {numbers.number(p, digits=2)}"


# --- Rows of an audit as evidence of leakage: in a census the members count as draws, so that chance is allowed for ---


_AS_DRAWS = (
    "the training records count as draws from the same source as others like them, so chance in which of them were drawn"
    " is allowed for"
)


def is_finite(estimate: Estimate) -> bool:
    """Return whether a number describes one finite training set, so that it can be positive by chance alone."""
    return any(FINITE in item for item in estimate.assumptions)


def _was_finite(estimate: Estimate, result: AuditDocument) -> bool:
    """The same in older results, whose rows do not say so."""
    return str(result.data.get("members")) in describe(estimate).of_training_set


def _caution(estimate: Estimate) -> str:
    """Return what to know of a number that describes one finite training set; nothing for other numbers."""
    if not is_finite(estimate):
        return ""
    return f"describes this {FINITE} and can be positive by chance alone"


def as_evidence(estimate: Estimate | None, result: AuditDocument) -> Estimate | None:
    """Return the estimate as evidence of leakage, with the members as draws; numbers that are none become null.

    A number that describes a finite training set is replaced by what was found beside it with the members as draws;
    null where an older result does not keep that.

    Args:
        estimate: A row of the result, or null.
        result: The audit that the row is from.
    """
    if estimate is None:
        return None
    if not (is_finite(estimate) or _was_finite(estimate, result)):
        return estimate
    kept = estimate.details.get("as_draws")
    if kept is None:
        return None
    return replace(
        estimate,
        **{name: kept.get(name) for name in ("value", "lower", "upper")},
        assumptions=(*(item for item in estimate.assumptions if FINITE not in item), _AS_DRAWS),
        details=dict(kept),
    )


def finest(result: AuditDocument) -> tuple[float, Estimate] | None:
    """Return the smallest false alarm rate that the records resolve, and its row; null where they resolve none.

    In a census the row is the one with the members as draws; see `auditor.results.rows`.
    """
    rows = [
        (rate, as_evidence(item, result))
        for item in result.estimates
        if (rate := metrics.rate_of(item)) is not None
    ]
    resolved = [
        (rate, item) for rate, item in rows if item and item.lower is not None and item.value is not None
    ]
    return min(resolved, key=lambda pair: pair[0]) if resolved else None


# --- What one unit of an audit is called: a record, or a person where one score stands for a person ---


@dataclass(frozen=True)
class Units:
    """The words for one and for many, in the training data and outside it."""

    many: str
    member: str
    members: str
    other: str
    others: str


_RECORDS = Units("records", "training record", "training records", "other record", "other records")
PERSONS = Units(
    "persons", "person in the training data", "persons in the training data", "other person", "other persons"
)


def units(data: Mapping[str, Any]) -> Units:
    """Return the words for what an audit of these data counted.

    >>> units({"unit": "person (mean loss)"}).members
    'persons in the training data'
    """
    return PERSONS if str(data.get("unit")).startswith("person") else _RECORDS


# --- A certified rate beside a false alarm rate as whole numbers out of 100, 1,000, ...: what people can picture ---


_MOST = 1_000_000
_ROUNDING = 1e-9  # of 0.29 * 100
_KEPT = 0.95  # of a ratio or a share, at least, when it is told in whole numbers: about two digits


def out_of_many(rate: float, low: float) -> tuple[int, int, int]:
    """Return the smallest base of 100, 1,000, ... in which whole numbers keep the ratio, the hits, the false alarms.

    Args:
        rate: Of false alarms, in (0, 1); rounded up.
        low: Lower limit of the rate of hits, above ``rate``; rounded down.

    >>> out_of_many(0.01, 0.016)
    (1000, 16, 10)
    >>> out_of_many(0.1, 0.29)
    (100, 29, 10)
    >>> out_of_many(0.012, 0.044)  # not 4 and 2 out of 100, which would tell half of the ratio
    (1000, 44, 12)
    """
    base = 100
    while True:
        hits, alarms = math.floor(low * base + _ROUNDING), math.ceil(rate * base - _ROUNDING)
        told = rate * base >= 1 - _ROUNDING and hits > alarms and hits * rate >= _KEPT * low * alarms
        if told or base >= _MOST:
            return base, hits, alarms
        base *= 10


def at_least(share: float) -> str:
    """Return a lower limit as a whole number out of 100, or of more where 100 would lose much of it.

    >>> at_least(0.019), at_least(0.925)
    ('19 out of 1,000', '92 out of 100')
    """
    base = 100
    while base < _MOST and math.floor(share * base + _ROUNDING) < _KEPT * share * base:
        base *= 10
    return f"{math.floor(share * base + _ROUNDING):,} out of {base:,}"


_POINT = "point estimate"
# Which end of the losses a number comes from, where it is not the one that people expect.
_ENDS = {
    "m2": "It comes from the high losses, which show who was not a member.",
    "upper": "It comes from the high losses, which show who was not a member.",
    "m3": "It comes from members whose losses are higher than those of the others, the wrong way round.",
    "m4": "It comes from members whose losses are higher than those of the others, the wrong way round.",
}


def interval(estimate: Estimate) -> str:
    """Return an estimate's interval in words, its ends rounded outwards.

    >>> from auditor.core.values import Subject
    >>> interval(Estimate("auc", 0.6, 0.58, None, 0.95, "ranks", Subject.MODEL))
    'at least 0.58'
    """
    has_low, has_high = (end is not None and not math.isnan(end) for end in (estimate.lower, estimate.upper))
    low = shown_value(estimate.lower, name=estimate.name, toward="down")
    high = shown_value(estimate.upper, name=estimate.name, toward="up")
    if has_low and has_high:
        return f"{low} to {high}"
    if has_low:
        return f"at least {low}"
    return f"at most {high}" if has_high else numbers.MISSING


def tile(estimate: Estimate) -> dict[str, str]:
    """Return an estimate as one large number with a note."""
    found = describe(estimate)
    return {
        "label": found.title,
        "value": value(estimate),
        "note": estimate.reason or "no value" if estimate.value is None else interval_words(estimate),
        "term": found.term,
        "about": "; ".join(part for part in (_about(estimate), _caution(estimate)) if part),
    }


def _about(estimate: Estimate) -> str:
    guessing = describe(estimate).guessing
    return f"about {metrics.ABOUT[estimate.subject]}{f'; guessing gives {guessing}' if guessing else ''}"


def toward(estimate: Estimate) -> str:
    """Return how the value is rounded: a bound as the bound that it is, and what was observed to the nearest."""
    if not describe(estimate).lower_bound or estimate.lower == estimate.upper:
        return "nearest"
    if estimate.value == estimate.lower:
        return "down"
    return "up" if estimate.value == estimate.upper else "nearest"


def ceiling_words(estimate: Estimate) -> str:
    """Return the ceiling in words, or nothing where the estimate has none."""
    top = ceiling(estimate)
    return "" if top is None else f"ceiling {numbers.number(top, toward='down')}"


def _confidence(estimate: Estimate) -> str:
    if estimate.value is None:
        return numbers.MISSING
    if estimate.confidence is None:
        return _POINT
    return numbers.percent(estimate.confidence) + _condition(estimate)


def _condition(estimate: Estimate) -> str:
    """What the stated confidence hangs on, where it hangs on something that no audit can check."""
    if detail(estimate, "conditional"):
        return ", if the curve is Gaussian"
    return ", if the fit holds" if describe(estimate).curve and estimate.lower is not None else ""


def interval_words(estimate: Estimate) -> str:
    """Return the interval with its confidence, or that it is a point estimate."""
    if estimate.confidence is None:
        return ", ".join([_POINT, *_no_interval(estimate)])
    level = f"at {numbers.percent(estimate.confidence)} confidence"
    if detail(estimate, "credible"):
        credible = f"at least this, {numbers.percent(estimate.confidence)} credible"
        return ", ".join(part for part in (credible, ceiling_words(estimate)) if part)
    if describe(estimate).lower_bound:
        if not estimate.value and powerless(estimate):
            return "too few records to certify anything"
        conditional = _condition(estimate)
        sure = "about" if detail(estimate, "approximate") else "certified"
        found = ("at least this" if conditional else sure) if estimate.value else "no evidence"
        return ", ".join(part for part in (f"{found} {level}{conditional}", ceiling_words(estimate)) if part)
    return f"{interval(estimate)} {level}{_condition(estimate)}"


def _no_interval(estimate: Estimate) -> list[str]:
    if detail(estimate, "fit", "rejected"):
        return ["the fit is rejected"]
    reason = detail(estimate, "lower_reason")
    return [f"no interval: {numbers.tidy(reason).rstrip('.')}"] if reason and estimate.lower is None else []


def row(estimate: Estimate) -> dict[str, str]:
    """Return an estimate as a row of the table of numbers."""
    found = describe(estimate)
    return {
        "name": estimate.name,
        "title": found.title,
        "plain": found.sentence,
        "term": found.term,
        "value": value(estimate),
        "interval": interval(estimate),
        "limit": ceiling_words(estimate),
        "confidence": _confidence(estimate),
        "delta": numbers.given(estimate.delta),
        "adjacency": str(estimate.adjacency or ""),
        "reason": _caveat(estimate),
    }


def _caveat(estimate: Estimate) -> str:
    if estimate.value is None:
        return numbers.sentence(estimate.reason or "No reason was given")
    if describe(estimate).lower_bound and estimate.value == 0:
        few = "There are too few records to certify anything."
        none = "No evidence was found, which does not mean that there is nothing to find."
        return few if powerless(estimate) else none
    if detail(estimate, "fit", "rejected"):
        return "The fit is rejected, so there is no interval and this number should not be relied on."
    finite = f"It {_caution(estimate)}." if _caution(estimate) else ""
    texts = [*map(numbers.sentence, _no_interval(estimate)), _reach(estimate), finite]
    return " ".join(text for text in texts if text)


def _reach(estimate: Estimate) -> str:
    """Which rates a number without a fit looks at, where another number on the page looks at more."""
    clip = detail(estimate, "clip") if describe(estimate).role is Role.OBSERVED else None
    if clip is None or not 0 < clip < 1 / 2:
        return ""
    return (
        f"It looks only at error rates from {numbers.percent(clip)} to {numbers.percent(1 - clip)}, so the certified"
        " bound, which looks at all of them, can be higher."
    )


def behind(estimate: Estimate) -> dict[str, Any]:
    """Return how an estimate was made and what it assumes."""
    return {
        "name": estimate.name,
        "title": describe(estimate).title,
        "method": numbers.sentence(estimate.method),
        "assumptions": [item.rstrip(".") for item in estimate.assumptions],
        "notes": [*(star_notes(estimate) if describe(estimate).curve else []), *_facts(estimate)],
    }


def _facts(estimate: Estimate) -> list[str]:
    facts = []
    place = detail(estimate, "at")
    if place:
        on = ", on the edge of the allowed range" if place.get("on_clip") else ""
        facts.append(
            f"Attained at a false alarm rate of {numbers.percent(place.get('fpr'))} and a miss rate of"
            f" {numbers.percent(place.get('fnr'))}{on}."
        )
    end = _ENDS.get(str(detail(estimate, "branch") or detail(estimate, "tail")))
    facts += [end] if end else []
    pairs = (
        ("Without a limit on the rates", detail(estimate, "unclipped")),
        ("At rates that the records can show", detail(estimate, "supported", "value")),
        ("By the best region instead of a threshold", detail(estimate, "best_region")),
        ("On losses that were not rescaled", detail(estimate, "scale_free")),
        ("Average between two groups without any difference", detail(estimate, "noise_floor", "mean")),
    )
    known = [f"{text}: {numbers.number(x)}." for text, x in pairs if x is not None]
    return facts + known


def value(estimate: Estimate | None) -> str:
    """Return an estimate's value, a dash where there is none."""
    if estimate is None:
        return numbers.MISSING
    return shown_value(estimate.value, name=estimate.name, toward=toward(estimate))
