"""The Gaussian fit behind Epsilon*, in words: what to know before quoting it, and how it was tested."""

from typing import Any

from auditor.report import formatting
from auditor.report.lookup import dig
from auditor.values import Estimate

__all__ = ["fit_sentences", "star_notes"]


def star_notes(star: Estimate) -> list[str]:
    """Return what a reader should know before quoting a parametric Epsilon*, most important first."""
    notes = []
    floor = dig(star.details, "noise_floor", "q95")
    if floor is not None and star.value is not None and star.value <= floor:
        notes.append(
            f"Two groups without any difference would show up to {formatting.number(floor)} (19 times in 20), so this"
            " is no evidence."
        )
    if dig(star.details, "saturated"):
        notes.append(
            "The two groups do not overlap: it is the largest value that can be reported at this delta."
        )
    elif dig(star.details, "at", "reached_by_data") is False:
        value = formatting.number(dig(star.details, "supported", "value"))
        instead = "" if value == formatting.MISSING else f"; at rates that the records can show it is {value}"
        notes.append(f"It is read off the fitted curves beyond what the records can show{instead}.")
    return notes


def fit_sentences(star: Estimate | None) -> list[str]:
    """Return the test of the Gaussian fits in words."""
    fit = dig(star.details, "fit") if star else None
    if not fit:
        return []
    sentences = [text for side in ("member", "nonmember") if (text := _fit_of(side, dig(fit, side)))]
    gap, where = dig(fit, "curve_gap"), dig(fit, "curve_gap_fpr")
    if gap:
        place = "" if where is None else f" (at a false alarm rate of {formatting.percent(where)})"
        side = "above" if gap > 0 else "below"
        sentences.append(
            f"Where there are records to compare with, the fitted trade-off curve lies up to"
            f" {formatting.number(abs(gap))} in epsilon {side} the measured one{place}."
        )
    if fit.get("rejected"):
        sentences.append("The fit is rejected: read the certified bound, which needs no fit.")
    elif fit.get("rejected") is False:
        sentences.append(
            "The fit is not rejected. That is not proof that it is right, least of all in the tails."
        )
    return sentences


def _fit_of(side: str, fit: Any) -> str | None:
    distance, p = dig(fit, "ks_statistic"), dig(fit, "ks_p_value")
    if distance is None or p is None:
        return None
    who = "Members" if side == "member" else "Non-members"
    records = dig(fit, "ks_n")
    held = "the records" if records is None else f"{formatting.count(records)} held-out records"
    small = 0.001
    chance = "p < 0.001" if p < small else f"p = {formatting.number(p, digits=2)}"
    return (
        f"{who}: the fitted curve and {held} differ by at most {formatting.percent(distance)} of the records"
        f" (Kolmogorov–Smirnov test, {chance})."  # noqa: RUF001 two names are joined by an en dash
    )
