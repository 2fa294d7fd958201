"""One estimate as the strings that a page shows: a tile, a table row, and what lies behind it."""

from typing import Any

from auditor.report import formatting, labels
from auditor.report.drawn import caution
from auditor.report.fit import star_notes
from auditor.report.glossary import term_of
from auditor.report.lookup import MIXTURE, STAR, amount, ceiling, dig, powerless
from auditor.values import Estimate

__all__ = ["behind", "ceiling_words", "interval_words", "row", "tile", "toward", "value"]

_POINT = "point estimate"
# Which end of the losses a number comes from, where it is not the one that people expect.
_ENDS = {
    "m2": "It comes from the high losses, which show who was not a member.",
    "upper": "It comes from the high losses, which show who was not a member.",
    "m3": "It comes from members whose losses are higher than those of the others, the wrong way round.",
    "m4": "It comes from members whose losses are higher than those of the others, the wrong way round.",
}


def tile(estimate: Estimate) -> dict[str, str]:
    """Return an estimate as one large number with a note."""
    return {
        "label": labels.describe(estimate).title,
        "value": formatting.value(estimate.value, name=estimate.name, toward=toward(estimate)),
        "note": estimate.reason or "no value" if estimate.value is None else interval_words(estimate),
        "term": term_of(estimate),
        "about": "; ".join(part for part in (_about(estimate), caution(estimate)) if part),
    }


def _about(estimate: Estimate) -> str:
    return f"about {labels.ABOUT[estimate.subject]}{_guessing(estimate)}"


def _guessing(estimate: Estimate) -> str:
    """What an attacker gets who only guesses, where a reader needs it to read the number."""
    rate = labels.rate_of(estimate)
    if rate is not None:
        return f"; guessing gives {formatting.percent(rate)}"
    return "; guessing gives 0.5" if estimate.name == "auc" else ""


def toward(estimate: Estimate) -> str:
    """Return how the value is rounded: a bound as the bound that it is, and what was observed to the nearest."""
    if not _is_bound(estimate) or estimate.lower == estimate.upper:
        return "nearest"
    if estimate.value == estimate.lower:
        return "down"
    return "up" if estimate.value == estimate.upper else "nearest"


def ceiling_words(estimate: Estimate) -> str:
    """Return the ceiling in words, or nothing where the estimate has none."""
    top = ceiling(estimate)
    return "" if top is None else f"ceiling {formatting.number(top, toward='down')}"


def _confidence(estimate: Estimate) -> str:
    if estimate.value is None:
        return formatting.MISSING
    if estimate.confidence is None:
        return _POINT
    return formatting.percent(estimate.confidence) + _condition(estimate)


def _condition(estimate: Estimate) -> str:
    """What the stated confidence hangs on, where it hangs on something that no audit can check."""
    if dig(estimate.details, "conditional"):
        return ", if the curve is Gaussian"
    return ", if the fit holds" if _is_fitted(estimate) else ""


def interval_words(estimate: Estimate) -> str:
    """Return the interval with its confidence, or that it is a point estimate."""
    if estimate.confidence is None:
        return ", ".join([_POINT, *_no_interval(estimate)])
    level = f"at {formatting.percent(estimate.confidence)} confidence"
    if dig(estimate.details, "credible"):
        credible = f"at least this, {formatting.percent(estimate.confidence)} credible"
        return ", ".join(part for part in (credible, ceiling_words(estimate)) if part)
    if _is_bound(estimate):
        if not estimate.value and powerless(estimate):
            return "too few records to certify anything"
        conditional = _condition(estimate)
        sure = "about" if dig(estimate.details, "approximate") else "certified"
        found = ("at least this" if conditional else sure) if estimate.value else "no evidence"
        return ", ".join(part for part in (f"{found} {level}{conditional}", ceiling_words(estimate)) if part)
    return f"{formatting.interval(estimate)} {level}{_condition(estimate)}"


def _no_interval(estimate: Estimate) -> list[str]:
    if dig(estimate.details, "fit", "rejected"):
        return ["the fit is rejected"]
    reason = dig(estimate.details, "lower_reason")
    return (
        [f"no interval: {formatting.tidy(reason).rstrip('.')}"] if reason and estimate.lower is None else []
    )


def _is_bound(estimate: Estimate) -> bool:
    return estimate.name.startswith("epsilon_bound.")


def _is_fitted(estimate: Estimate) -> bool:
    return estimate.name.startswith("epsilon_star.") and estimate.lower is not None


def row(estimate: Estimate) -> dict[str, str]:
    """Return an estimate as a row of the table of numbers."""
    label = labels.describe(estimate)
    return {
        "name": estimate.name,
        "title": label.title,
        "plain": label.plain,
        "term": term_of(estimate),
        "value": formatting.value(estimate.value, name=estimate.name, toward=toward(estimate)),
        "interval": formatting.interval(estimate),
        "limit": ceiling_words(estimate),
        "confidence": _confidence(estimate),
        "delta": formatting.given(estimate.delta),
        "adjacency": str(estimate.adjacency or ""),
        "reason": _caveat(estimate),
    }


def _caveat(estimate: Estimate) -> str:
    if estimate.value is None:
        return formatting.sentence(estimate.reason or "No reason was given")
    if _is_bound(estimate) and estimate.value == 0:
        few = "There are too few records to certify anything."
        none = "No evidence was found, which does not mean that there is nothing to find."
        return few if powerless(estimate) else none
    if dig(estimate.details, "fit", "rejected"):
        return "The fit is rejected, so there is no interval and this number should not be relied on."
    finite = f"It {caution(estimate)}." if caution(estimate) else ""
    texts = [*map(formatting.sentence, _no_interval(estimate)), _reach(estimate), finite]
    return " ".join(text for text in texts if text)


def _reach(estimate: Estimate) -> str:
    """Which rates a number without a fit looks at, where another number on the page looks at more."""
    clip = amount(estimate.details, "clip") if estimate.name == "epsilon_star.empirical" else None
    if clip is None or not 0 < clip < 1 / 2:
        return ""
    return (
        f"It looks only at error rates from {formatting.percent(clip)} to {formatting.percent(1 - clip)}, so the certified"
        " bound, which looks at all of them, can be higher."
    )


def behind(estimate: Estimate) -> dict[str, Any]:
    """Return how an estimate was made and what it assumes."""
    return {
        "name": estimate.name,
        "title": labels.describe(estimate).title,
        "method": formatting.sentence(estimate.method),
        "assumptions": [item.rstrip(".") for item in estimate.assumptions],
        "notes": [*(star_notes(estimate) if estimate.name in (STAR, MIXTURE) else []), *_facts(estimate)],
    }


def _facts(estimate: Estimate) -> list[str]:
    details, facts = estimate.details, []
    place = dig(details, "at")
    if place:
        on = ", on the edge of the allowed range" if dig(place, "on_clip") else ""
        facts.append(
            f"Attained at a false alarm rate of {formatting.percent(amount(place, 'fpr'))} and a miss rate of"
            f" {formatting.percent(amount(place, 'fnr'))}{on}."
        )
    end = _ENDS.get(str(dig(details, "branch") or dig(details, "tail")))
    facts += [end] if end else []
    pairs = (
        ("Without a limit on the rates", amount(details, "unclipped")),
        ("At rates that the records can show", amount(details, "supported", "value")),
        ("By the best region instead of a threshold", amount(details, "best_region")),
        ("On losses that were not rescaled", amount(details, "scale_free")),
        ("Average between two groups without any difference", amount(details, "noise_floor", "mean")),
    )
    known = [f"{text}: {formatting.number(x)}." for text, x in pairs if x is not None]
    return facts + known


def value(estimate: Estimate | None) -> str:
    """Return an estimate's value, a dash where there is none."""
    if estimate is None:
        return formatting.MISSING
    return formatting.value(estimate.value, name=estimate.name, toward=toward(estimate))
