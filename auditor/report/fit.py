"""The fits behind Epsilon*, in words: what to know before quoting it, and how they were tested."""

from typing import Any

from auditor.report import formatting
from auditor.report.lookup import amount, dig
from auditor.values import Estimate

__all__ = ["fit_sentences", "star_notes", "within_noise"]

_FEW = 50  # held-out records below which the test has no force


def within_noise(star: Estimate) -> str | None:
    """Return the sentence on a value that chance alone would give, or null where it is above that or not known."""
    floor = amount(star.details, "noise_floor", "q95")
    if floor is None or star.value is None or star.value > floor:
        return None
    if floor <= 0:
        return "An Epsilon* of 0 is no evidence of leakage."
    return (
        f"On this many records chance alone gives an Epsilon* of up to {formatting.number(floor, toward='up')} (19 times"
        " in 20, between two groups without any difference), so the value found is no evidence."
    )


def star_notes(star: Estimate) -> list[str]:
    """Return what a reader should know before quoting a parametric Epsilon*, most important first."""
    noise = within_noise(star)
    notes = [noise] if noise else []
    if dig(star.details, "saturated"):
        notes.append(
            "The two groups do not overlap: it is the largest value that can be reported at this delta."
        )
    elif dig(star.details, "at", "reached_by_data") is False:
        value = formatting.number(amount(star.details, "supported", "value"))
        instead = "" if value == formatting.MISSING else f"; at rates that the records can show it is {value}"
        notes.append(f"It is read off the fitted curves beyond what the records can show{instead}.")
    return notes


def fit_sentences(star: Estimate | None, *, mixture: Estimate | None = None) -> list[str]:
    """Return the tests of the Gaussian fits in words, then those of the mixtures where there are any."""
    sentences = _one_fit(star, "Gaussian")
    fit = dig(mixture.details, "fit") if mixture else None
    if not fit or not hasattr(fit, "get"):
        return sentences
    counts = [amount(fit, side, "components") for side in ("member", "nonmember")]
    if None not in counts:
        members, others = (formatting.count(int(count or 0)) for count in counts)
        sentences.append(
            f"Mixtures were fitted too: {members} normals for the members, {others} for the others."
        )
    return [*sentences, *_one_fit(mixture, "mixture")]


def _one_fit(star: Estimate | None, kind: str) -> list[str]:
    fit = dig(star.details, "fit") if star else None
    if not fit or not hasattr(fit, "get"):
        return []
    sentences = [text for side in ("member", "nonmember") if (text := _fit_of(side, dig(fit, side)))]
    gap, where = (amount(star.details, name) if star else None for name in ("curve_gap", "curve_gap_fpr"))
    if gap:
        place = "" if where is None else f" (at a false alarm rate of {formatting.percent(where)})"
        side = "above" if gap > 0 else "below"
        sentences.append(
            f"Where there are records to compare with, the fitted trade-off curve lies up to"
            f" {formatting.number(abs(gap))} nats of epsilon {side} the measured one{place}."
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
    sizes = [size for side in ("member", "nonmember") if (size := amount(fit, side, "ks_n")) is not None]
    return any(size < _FEW for size in sizes)


def _fit_of(side: str, fit: Any) -> str | None:
    distance, p = amount(fit, "ks_statistic"), amount(fit, "ks_p_value")
    if distance is None or p is None:
        return None
    who = "Members" if side == "member" else "Non-members"
    records = amount(fit, "ks_n")
    held = (
        "the records"
        if records is None
        else f"{formatting.count(records)} held-out record{'' if records == 1 else 's'}"
    )
    apart = (
        f"{who}: the fitted curve and {held} differ by at most {formatting.percent(distance)} of the records"
    )
    name = "Kolmogorov–Smirnov"  # noqa: RUF001 two names are joined by an en dash
    alone, against = amount(fit, "distance_p_value"), amount(fit, "likelihood_p_value")
    if alone is not None and against is not None:
        return (
            f"{apart} ({name} test, {_p(alone)}); the likelihood ratio against more components has {_p(against)}. The two"
            f" decide together: {_p(p)}, twice the smaller (at most 1)."
        )
    if "likelihood ratio" in str(dig(fit, "test")):  # as an earlier release kept it
        return (
            f"{apart}. A {name} test and a likelihood ratio against more components decide together: {_p(p)}."
        )
    return f"{apart} ({name} test, {_p(p)})."


def _p(p: float) -> str:
    small, large = 0.001, 0.99
    if p < small:
        return f"p < {small}"
    return f"p > {large}" if p > large else f"p = {formatting.number(p, digits=2)}"
