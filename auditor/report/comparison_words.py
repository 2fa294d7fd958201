"""The sentences of a comparison: what was compared, what is on the frontier, and whether anything got worse."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.audits.differences import Change
from auditor.audits.runs import Run
from auditor.audits.strategies import REJECTED
from auditor.report import formatting
from auditor.report.comparison_titles import higher_is_better, measure_title, utility_title
from auditor.report.labels import Sign

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison, RunChange

__all__ = [
    "CHANGE",
    "NO_BASELINE",
    "change_sentences",
    "compared",
    "frontier",
    "listed",
    "overall",
    "warnings",
]

CHANGE = {
    Change.WORSE: Sign("More leakage", "✕", "bad"),
    Change.BETTER: Sign("Less leakage", "✓", "good"),
    Change.NO_CHANGE_SHOWN: Sign("No change shown", "≈", "plain"),
    Change.NOT_COMPARABLE: Sign("Not comparable", "?", "caution"),
}
NO_BASELINE = Sign("No baseline", "–", "plain")  # noqa: RUF001 a dash is meant
# The gravest first: it gives the comparison its sign.
_GRAVEST = (Change.WORSE, Change.NOT_COMPARABLE, Change.NO_CHANGE_SHOWN, Change.BETTER)
_SHOWN = 6  # names listed before the rest are counted


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words, the first few of many.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _plural(count: int, noun: str) -> str:
    ending = noun if count == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{formatting.count(count)} {ending}"


def compared(comparison: "AuditsComparison") -> str:
    """Return what was compared, in a sentence or two."""
    runs, strategies = comparison.runs, comparison.strategies
    what = f"by {measure_title(comparison)}"
    if all(run.strategy is None for run in runs):
        return f"{_plural(len(runs), 'audit')} are compared {what}. Each stands for itself: no strategies were named."
    counts = {item.given for item in strategies}
    each = (
        f", {min(counts)} to {max(counts)} of each"
        if len(counts) > 1
        else f", {counts.pop()} of each"
        if counts != {1}
        else ""
    )
    return f"{_plural(len(runs), 'audit')} of {_plural(len(strategies), 'strategy')}{each}, are compared {what}.".replace(
        "strategies, are", "strategies are"
    ).replace("strategy, are", "strategy are")


def frontier(comparison: "AuditsComparison") -> str:
    """Return which strategies are on the frontier, or why there is none."""
    if comparison.no_landscape is not None:
        return f"There is no privacy-utility landscape: {comparison.no_landscape}."
    placed = [item for item in comparison.strategies if item.placed]
    names = [f"“{item.name}”" for item in comparison.frontier]
    utility = utility_title(comparison)
    if len(placed) == 1:
        return f"Only {names[0]} has a place in the privacy-utility landscape, so there is nothing to choose among."
    better = "more" if higher_is_better(comparison) else "smaller"
    are = "is" if len(names) == 1 else "are"
    return (
        f"On the frontier {are} {listed(names)}, {len(names)} of {len(placed)} strategies: nothing else here, and no mix of"
        f" others, gives {better} {utility} without giving more away. These are averages without intervals, so chance may"
        " have put a strategy on the frontier, or kept one off it."
    )


def warnings(comparison: "AuditsComparison") -> list[str]:
    """Return what to know before choosing a strategy by these numbers, in sentences."""
    used = [item for item in comparison.readings if item.reason is None]
    rejected = [item for item in used if REJECTED in item.marks]
    if not rejected:
        return []
    found = (
        f"In {len(rejected)} of {len(used)} audits the fit that Epsilon* rests on is rejected: do not choose by it."
        " The advantage and the AUC need no fit (measure='advantage', on the command line --measure advantage)."
    )
    return [found]


def overall(comparison: "AuditsComparison") -> Sign:
    """Return the sign of the comparison: of the gravest change, if there is a baseline."""
    verdicts = {item.headline.verdict for item in comparison.changes}
    found = next((item for item in _GRAVEST if item in verdicts), None)
    return NO_BASELINE if found is None else CHANGE[found]


def change_sentences(comparison: "AuditsComparison") -> list[str]:
    """Return whether anything got worse than the baseline, in sentences."""
    base, changes = comparison.baseline, comparison.changes
    if base is None:
        return ["No audit was named as the baseline, so nothing is said about what got worse."]
    if len(changes) == 1:
        (change,) = changes
        about = f"{_called(change.run)} against the baseline, {_called(base)}."
        return [change.headline.sentence, " ".join([about, *_order(base, change.run)])]
    return _counted(base, changes)


def _counted(base: Run, changes: Sequence["RunChange"]) -> list[str]:
    """How many got worse, first; then which, for each thing that can be said of one."""
    names = {
        verdict: [_called(item.run) for item in changes if item.headline.verdict is verdict]
        for verdict in _GRAVEST
    }
    worse, unknown = len(names[Change.WORSE]), len(names[Change.NOT_COMPARABLE])
    first = (
        f"{worse} of {len(changes)} audits {'shows' if worse == 1 else 'show'} more leakage than the baseline"
    )
    if not worse:
        first = f"None of {len(changes)} audits is shown to give away more than the baseline"
    rest = f" {unknown} of them cannot be compared with it." if unknown else ""
    return [
        f"{first}, {_called(base)}.{rest}",
        *(f"{CHANGE[verdict].word}: {listed(found)}." for verdict, found in names.items() if found),
        f"Each holds at its own confidence: of {len(changes)} such intervals, some may be wrong by chance.",
    ]


def _called(run: Run) -> str:
    return f"{run.number}. {run.title}"


def _order(base: Run, other: Run) -> list[str]:
    """A warning where the baseline is the newer audit of the two."""
    times = [_time(run) for run in (base, other)]
    if times[0] is None or times[1] is None or times[0] <= times[1]:
        return []
    return ["The baseline was audited after it: check which of the two is the newer release."]


def _time(run: Run) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(str(run.result.provenance.get("created")))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)
