"""The sentences of a comparison: what was compared, what is on the frontier, and whether anything got worse."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.audits.differences import Change
from auditor.audits.readings import REJECTED, is_lower_bound
from auditor.audits.runs import Run
from auditor.report import formatting
from auditor.report.comparison_titles import higher_is_better, measure_title, utility_title
from auditor.report.labels import Sign
from auditor.report.lookup import amount, dig

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison, RunChange
    from auditor.audits.readings import Reading

__all__ = [
    "CHANGE",
    "NO_BASELINE",
    "bounds",
    "change_sentences",
    "compared",
    "frontier",
    "hints",
    "listed",
    "overall",
    "stopped",
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
_UNLIKE = 1.5  # ratio of the sizes of two audits from which on their records may be of other populations
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
    if comparison.measure_reason is not None:
        what += f", since {comparison.measure_reason}"
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


def bounds(comparison: "AuditsComparison") -> str:
    """Return what the values are where they are lower bounds, or nothing."""
    if not is_lower_bound(comparison.measure):
        return ""
    details = [item.estimate.details for item in comparison.readings if item.estimate is not None]
    if any(dig(item, "conditional") for item in details):
        return "lower bounds that hold only if the trade-off curve is Gaussian"
    if any(dig(item, "approximate") for item in details):
        return "approximate lower bounds, which certify nothing"
    return "certified lower bounds"


def frontier(comparison: "AuditsComparison") -> str:
    """Return which strategies are on the frontier, or why there is none."""
    if comparison.no_landscape is not None:
        return f"There is no privacy-utility landscape: {comparison.no_landscape}."
    placed = [item for item in comparison.strategies if item.placed]
    if len(placed) == 1:
        return f"Only “{placed[0].name}” has a place in the privacy-utility landscape, so there is nothing to choose among."
    if comparison.no_frontier is not None:
        return f"No frontier is drawn and no strategy is called better: {comparison.no_frontier}."
    names = [f"“{item.name}”" for item in comparison.frontier]
    better = "more" if higher_is_better(comparison) else "smaller"
    are = "is" if len(names) == 1 else "are"
    what = "averages" if any(len(item.runs) > 1 for item in placed) else "values of single audits"
    return (
        f"On the frontier {are} {listed(names)}, {len(names)} of {len(placed)} strategies: nothing else here, and no mix of"
        f" others, gives {better} {utility_title(comparison)} without giving more away. These are {what}, taken as point"
        " estimates, so chance may have put a strategy on the frontier, or kept one off it."
    )


def hints(comparison: "AuditsComparison", *, command_line: bool = False) -> list[str]:
    """Return how to get what is missing here, in sentences.

    Args:
        comparison: What to say it of.
        command_line: Whether to name the options of the command alone, and not those of Python beside them.
    """

    def spelled(python: str, option: str) -> str:
        return option if command_line else f"{python}, on the command line {option}"

    found = []
    if not any(run.utility for run in comparison.runs):
        with_audit = spelled("utility=auditor.Utility(0.87, 'test accuracy')", "--utility")
        found.append(
            f"A utility places an audit in the landscape: give it with each audit ({with_audit}), or in a table with the columns"
            f" result and utility ({spelled('about=', '--about')})."
        )
    if _rejected(comparison):
        how = spelled("measure='advantage'", "--measure advantage")
        found.append(f"To compare by the advantage, which needs no fit: {how}.")
    if comparison.measure_reason is not None:
        how = spelled("measure='epsilon_star.gaussian'", "--measure epsilon_star.gaussian")
        found.append(f"To compare by Epsilon* all the same: {how}.")
    if comparison.baseline is None:
        found.append(
            f"Name a baseline ({spelled('baseline=', '--baseline')}) to see whether the others give away more."
        )
    return found


def _rejected(comparison: "AuditsComparison") -> list["Reading"]:
    return [item for item in comparison.readings if item.reason is None and REJECTED in item.marks]


def warnings(comparison: "AuditsComparison") -> list[str]:
    """Return what to know before choosing or deciding by these numbers, in sentences."""
    found = []
    if rejected := _rejected(comparison):
        used = [item for item in comparison.readings if item.reason is None]
        found.append(
            f"In {len(rejected)} of {len(used)} audits the fit that Epsilon* rests on is rejected: do not choose by it. The"
            " advantage and the AUC need no fit."
        )
    others = [item.run for item in comparison.changes if item.headline.confidence is not None]
    unlike = [_called(run) for run in others if comparison.baseline and _other_size(comparison.baseline, run)]
    if unlike:
        found.append(
            f"{listed(unlike)} and the baseline were scored on numbers of records that differ by more than half. A difference"
            " is one of the models only if both audits draw from the same populations: check that they do."
        )
    return found


def _other_size(base: Run, other: Run) -> bool:
    """Whether one audit has more than one and a half times the members or the others of the other."""
    for name in ("n_member", "n_nonmember"):
        sizes = [amount(run.result.data, name) or 0.0 for run in (base, other)]
        if min(sizes) > 0 and max(sizes) > _UNLIKE * min(sizes):
            return True
    return False


def stopped(comparison: "AuditsComparison") -> list[str]:
    """Return why a pipeline that must not get worse stops: a line for each audit that is worse, or not comparable."""
    return [
        f"{_called(item.run)}: {item.headline.sentence}"
        for verdict in (Change.WORSE, Change.NOT_COMPARABLE)
        for item in comparison.changes
        if item.headline.verdict is verdict
    ]


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
        *_together(changes),
    ]


def _together(changes: Sequence["RunChange"]) -> list[str]:
    """At which confidence the statements hold all at once: that of the least certain, as each has its part of the error."""
    levels = [item.headline.confidence for item in changes if item.headline.confidence is not None]
    if not levels:
        return []
    level = formatting.percent(min(levels), toward="down")
    return [f"All of this holds at once at {level} confidence: the intervals are made wider for it."]


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
