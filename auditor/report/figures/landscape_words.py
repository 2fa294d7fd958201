"""The words of the privacy-utility landscape: its axes, what a point says, and the whole picture for who cannot see it."""

from typing import TYPE_CHECKING

from auditor.audits.readings import is_lower_bound, more_is_worse
from auditor.audits.strategies import Strategy
from auditor.report import formatting, traces
from auditor.report.comparison_titles import higher_is_better, measure_title, utility_title

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison

__all__ = ["alt", "axis_words", "tip_words", "utility_words"]

_SHOWN = 20  # strategies named with their numbers before the rest are left to the table


def axis_words(comparison: "AuditsComparison") -> str:
    """Return what stands along the axis of the measure."""
    title = traces.plain(measure_title(comparison))
    if is_lower_bound(comparison.measure):
        return f"{title} (a lower bound: the truth may be larger)"
    worse = "more is given away" if more_is_worse(comparison.measure) else "less is given away"
    return f"{title} (larger: {worse})"


def utility_words(comparison: "AuditsComparison") -> str:
    """Return what stands along the axis of the utility."""
    name = traces.plain(utility_title(comparison))
    return (
        f"{name[:1].upper()}{name[1:]} ({'larger' if higher_is_better(comparison) else 'smaller'} is better)"
    )


def _value(x: float, comparison: "AuditsComparison") -> str:
    """A value of the measure; a lower bound is never rounded up."""
    return formatting.number(x, toward="down" if is_lower_bound(comparison.measure) else "nearest")


def tip_words(item: Strategy, comparison: "AuditsComparison") -> str:
    """Return what a point says when it is pointed at."""
    if item.measure is None or item.utility is None:
        return ""
    least = "at least " if is_lower_bound(comparison.measure) and len(item.runs) == 1 else ""
    parts = (
        f"{item.number}. {item.name}",
        f"{measure_title(comparison)} {least}{_value(item.measure.mean, comparison)}",
        f"{utility_title(comparison)} {formatting.number(item.utility.mean)}",
        *item.marks,
    )
    return ", ".join(parts)


def alt(comparison: "AuditsComparison") -> str:
    """Return what the picture shows, in words."""
    placed = [item for item in comparison.strategies if item.placed]
    values = [item.measure.mean for item in placed if item.measure is not None]
    useful = [item.utility.mean for item in placed if item.utility is not None]
    of = " (lower bounds, each with an arrow towards more)" if is_lower_bound(comparison.measure) else ""
    span = f"from {_value(min(values), comparison)} to {_value(max(values), comparison)}"
    return (
        f"Privacy-utility landscape of {len(placed)} strategies: {measure_title(comparison)}{of} {span} against"
        f" {utility_title(comparison)} from {formatting.number(min(useful))} to {formatting.number(max(useful))}, with the"
        f" range over instances, and the density of each category along the axes. {_frontier(comparison)} The table of"
        " strategies has every number."
    )


def _frontier(comparison: "AuditsComparison") -> str:
    if comparison.no_frontier is not None:
        return "No frontier is drawn."
    corners = ", ".join(
        f"{item.number} ({_value(item.measure.mean, comparison)} and {formatting.number(item.utility.mean)})"
        for item in comparison.frontier[:_SHOWN]
        if item.measure is not None and item.utility is not None
    )
    more = len(comparison.frontier) - _SHOWN
    return f"The Pareto frontier goes through the strategies numbered {corners}{f' and {more} more' if more > 0 else ''}."
