"""A comparison of several audits as one offline page, and as a cell of a notebook."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from auditor.comparison import runs as audited
from auditor.comparison.compare import Change, Difference, measure_title, utility_title
from auditor.comparison.strategies import MIXED, Spread, Strategy
from auditor.core import numbers
from auditor.core.options import Disclosure
from auditor.core.registry import Role
from auditor.core.values import Estimate, Status, Subject
from auditor.report import html
from auditor.report.figures import landscape
from auditor.report.view import LABEL_ONLY, texts
from auditor.results import metrics
from auditor.results.document import detail, find, made_at
from auditor.results.metrics import Sign, with_role
from auditor.results.partition import LEAST
from auditor.results.rows import Row, condition, policy_rows
from auditor.verdicts.judging import failed_validity

if TYPE_CHECKING:
    from auditor.comparison.compare import ComparedAudits, Headline, RunChange


# --- The sentences of a comparison: what was compared, what is on the frontier, and whether anything got worse ---


_CHANGE = {
    Change.WORSE: Sign("More leakage", "✕", "bad"),
    Change.BETTER: Sign("Less leakage", "✓", "good"),
    Change.NO_CHANGE_SHOWN: Sign("No change shown", "≈", "plain"),
    Change.NOT_COMPARABLE: Sign("Not comparable", "?", "caution"),
    Change.NOT_JUDGED: Sign("Not judged", "–", "plain"),  # noqa: RUF001 a dash is meant
}
_NO_ORDER = Sign("No order shown", "≈", "plain")
_PART = Sign("Order shown in part", "≈", "plain")
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


def _plural(count: int, one: str, many: str) -> str:
    return f"{numbers.count(count)} {one if count == 1 else many}"


def _compared(comparison: "ComparedAudits") -> str:
    """Return what was compared, in a sentence or two."""
    runs, counts = comparison.runs, {item.given for item in comparison.strategies}
    what = f"by {_measure_words(comparison)}"
    audits = _plural(len(runs), "audit", "audits")
    if all(run.strategy is None for run in runs):
        return f"{audits} are compared {what}."
    each = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
    of = _plural(len(comparison.strategies), "strategy", "strategies")
    return f"{audits} of {of}{'' if each == '1' else f', {each} of each,'} are compared {what}."


def _measure_words(comparison: "ComparedAudits") -> str:
    """What the measure is called inside a sentence."""
    title = measure_title(comparison)
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _bounds(comparison: "ComparedAudits") -> str:
    """Return what the values are where they are lower bounds, or nothing."""
    if not audited.is_lower_bound(comparison.measure):
        return ""
    found = [item.estimate for item in comparison.measurements]
    if under := next(
        (condition(item) for item in found if item is not None and detail(item, "conditional")), None
    ):
        return f"lower bounds that hold only if {under.replace('the curve', 'the trade-off curve')}"
    if any(detail(item, "approximate") for item in found):
        return "approximate lower bounds, which certify nothing"
    return "certified lower bounds"


def _frontier(comparison: "ComparedAudits") -> str:
    """Return which strategies are on the frontier, or why there is none."""
    if comparison.no_landscape is not None:
        return f"There is no privacy-utility landscape: {comparison.no_landscape}."
    placed = [item for item in comparison.strategies if item.placed]
    if len(placed) == 1:
        return f"Only {numbers.quoted(placed[0].name)} has a place in the privacy-utility landscape, so there is nothing to choose among."
    if comparison.no_frontier is not None:
        return f"No frontier is drawn and no strategy is called better: {comparison.no_frontier}."
    names = [numbers.quoted(item.name) for item in comparison.frontier]
    better = "more" if audited.higher_is_better(comparison.runs) else "smaller"
    are = "is" if len(names) == 1 else "are"
    what = "averages" if any(len(item.runs) > 1 for item in placed) else "values of single audits"
    return (
        f"On the frontier {are} {listed(names)}, {len(names)} of {len(placed)} strategies: nothing else here, and no mix of"
        f" others, gives {better} {numbers.named(utility_title(comparison))} without giving more away. These are {what}, taken as point"
        " estimates, so chance may have put a strategy on the frontier, or kept one off it."
    )


def _hints(comparison: "ComparedAudits", *, command_line: bool = False) -> list[str]:
    """Return how to get what is missing here, in sentences.

    Args:
        comparison: What to say it of.
        command_line: Whether to name the options of the command alone, and not those of Python beside them.
    """

    def spelled(python: str, option: str) -> str:
        return option if command_line else f"{python}, on the command line {option}"

    found = []
    if not any(run.utility for run in comparison.runs):
        with_audit = spelled("utility=auditor.Utility(0.87, 'test accuracy')", "--set utility")
        found.append(
            f"A utility places an audit in the landscape: give it with each audit ({with_audit}), or in a table with the columns"
            f" result and utility ({spelled('about=', '--about')})."
        )
    if comparison.baseline is None:
        found.append(
            f"Name a baseline ({spelled('baseline=', '--baseline')}) to see whether the others give away more."
        )
    return found


def _warnings(comparison: "ComparedAudits") -> list[str]:
    """Return what to know before choosing or deciding by these numbers, in sentences."""
    found = []
    if comparison.disclosure is Disclosure.INSIDERS:
        found.append("For insiders only: in these numbers records of the audits can be recognised.")
    used = [item for item in comparison.measurements if item.reason is None]
    if rejected := sum(audited.REJECTED in item.marks for item in used):
        found.append(
            f"In {rejected} of {len(used)} audits the fit that Epsilon* rests on is rejected: do not choose by it. The"
            " advantage and the AUC need no fit."
        )
    others = [item.run for item in comparison.changes if item.headline.confidence is not None]
    unlike = [_called(run) for run in others if comparison.baseline and _other_size(comparison.baseline, run)]
    if unlike:
        found.append(
            f"{listed(unlike)} and the baseline were scored on numbers of records that differ by more than half. A difference"
            " is one of the models only if both audits draw from the same populations: check that they do."
        )
    if near := [
        f"{_called(one)} and {_called(other)}"
        for one, other in combinations(comparison.runs, 2)
        if _nearly_the_same(one, other)
    ]:
        found.append(
            f"{listed(near)} have numbers of records that differ by fewer than {LEAST} in a group. If one set of records holds the other, the"
            " two results together tell about the few records between them: publish one of the two."
        )
    return found


def _nearly_the_same(one: audited.Run, other: audited.Run) -> bool:
    """Whether the two may have nearly the same records of a group: that of one has a few more than that of the other."""
    sizes = ([run.result.data.get(name) or 0 for run in (one, other)] for name in ("n_member", "n_nonmember"))
    return any(0 < abs(first - second) < LEAST for first, second in sizes)


def _other_size(base: audited.Run, other: audited.Run) -> bool:
    """Whether one audit has more than one and a half times the members or the others of the other."""
    for name in ("n_member", "n_nonmember"):
        sizes = [run.result.data.get(name) or 0.0 for run in (base, other)]
        if min(sizes) > 0 and max(sizes) > _UNLIKE * min(sizes):
            return True
    return False


def stopped(comparison: "ComparedAudits") -> list[str]:
    """Return why a pipeline that must not get worse stops: a line for each audit that is worse, or not comparable."""
    return [
        f"{_called(item.run)}: {item.headline.sentence}"
        for verdict in (Change.WORSE, Change.NOT_COMPARABLE)
        for item in comparison.changes
        if item.headline.verdict is verdict
    ]


def _headline(comparison: "ComparedAudits") -> tuple[Sign, list[str]]:
    """Return what leads the page: whether anything got worse than the baseline, or without one who gives most away."""
    base, changes = comparison.baseline, comparison.changes
    if base is None:
        sign, sentences = _ranking(comparison)
        return sign, [*sentences, *_beaten(comparison)]
    verdicts = {item.headline.verdict for item in changes}
    sign = next(_CHANGE[item] for item in _GRAVEST if item in verdicts)
    if len(changes) > 1:
        return sign, [*_counted(base, changes), *_beaten(comparison)]
    (change,) = changes
    if change.headline.verdict is not Change.NOT_COMPARABLE:
        sign = replace(
            sign, word=f"{numbers.named(change.run.title)}: {sign.word[:1].lower()}{sign.word[1:]}"
        )
    about = f"{_called(change.run)} against the baseline, {_called(base)}."
    return sign, [
        change.headline.sentence,
        " ".join([about, *_order(base, change.run)]),
        *_beaten(comparison),
    ]


def _in_order(comparison: "ComparedAudits") -> list[Strategy]:
    """The strategies with what gives most away first; those without a value last."""

    def key(item: Strategy) -> float:
        return (
            math.inf
            if item.measure is None
            else -audited.leakage(item.measure.mean, measure=comparison.measure)
        )

    return sorted(comparison.strategies, key=key)


def _ranking(comparison: "ComparedAudits") -> tuple[Sign, list[str]]:
    """Who gives most away, and who least, as far as the intervals show it."""
    if comparison.no_order is not None:
        return _NO_ORDER, [f"What these strategies give away is not put in an order: {comparison.no_order}."]
    top, *rest = found = [item for item in _in_order(comparison) if item.measure is not None]
    least = found[-1]
    like = [numbers.quoted(item.name) for item in rest if not top.above(item)]
    value = f"{_measure_words(comparison)} is {_interval_of(top, comparison)}"
    sign = Sign(f"{numbers.named(top.name)}: most leakage{_of_least_use(top, comparison)}", "▲", "caution")
    first = f"{numbers.quoted(top.name)} gives most away: its {value}, above {'the other' if len(rest) == 1 else f'all {len(rest)} others'}."
    if like:
        sign = _NO_ORDER if not any(one.above(two) for one in found for two in found) else _PART
        first = f"{numbers.quoted(top.name)} comes first, but is not shown to give away more than {listed(like)}: its {value}."
    told = [first]
    if len(found) > 2 and all(item.above(least) for item in found[:-1]):  # noqa: PLR2004
        told.append(f"{numbers.quoted(least.name)} gives least away: {_interval_of(least, comparison)}.")
    return sign, [
        *told,
        f"The intervals of all audits hold at once at {_level(comparison.strategies)} confidence.",
    ]


def _level(stated: "Sequence[Strategy | Difference | Headline]") -> str:
    """The confidence at which all of these hold at once, that of the least certain; nothing where none has one."""
    levels = [item.confidence for item in stated if item.confidence is not None]
    return numbers.percent(min(levels), toward="down") if levels else ""


def _interval_of(item: Strategy, comparison: "ComparedAudits") -> str:
    mean = metrics.shown_value(None if item.measure is None else item.measure.mean, name=comparison.measure)
    return f"{mean} ({_ends(item, comparison)})" if item.lower is not None else mean


def _ends(item: Strategy, comparison: "ComparedAudits") -> str:
    low, high = (
        metrics.shown_value(end, name=comparison.measure, toward=toward)
        for end, toward in ((item.lower, "down"), (item.upper, "up"))
    )
    return numbers.MISSING if item.lower is None else f"{low} to {high}"


def _of_least_use(top: Strategy, comparison: "ComparedAudits") -> str:
    """That it is also the least useful, if so."""
    others = [item for item in comparison.strategies if item.placed and item is not top]
    least = min((_usefulness(item, comparison) for item in others), default=math.nan)
    if comparison.no_landscape is not None or not _usefulness(top, comparison) < least:
        return ""
    return f", {'lowest' if audited.higher_is_better(comparison.runs) else 'highest'} {numbers.named(utility_title(comparison))}"


def _usefulness(item: Strategy, comparison: "ComparedAudits") -> float:
    """The mean utility, as a number of which more is better."""
    mean = math.nan if item.utility is None else item.utility.mean
    return mean if audited.higher_is_better(comparison.runs) else -mean


def _beaten(comparison: "ComparedAudits") -> list[str]:
    """Which strategies are shown to give away more than another that is at least as useful."""
    if comparison.no_order is not None or comparison.no_landscape is not None:
        return []
    placed = [item for item in _in_order(comparison) if item.placed]
    useful = partial(_usefulness, comparison=comparison)
    by_best: dict[Strategy, list[Strategy]] = {}
    for item in placed:
        better = [other for other in placed if item.above(other) and useful(other) >= useful(item)]
        if better:
            by_best.setdefault(max(better, key=useful), []).append(item)
    told = []
    for best, worse in by_best.items():
        values = [item.utility.mean for item in (best, max(worse, key=useful)) if item.utility is not None]
        names = listed([numbers.quoted(item.name) for item in worse])
        told.append(
            f"{numbers.quoted(best.name)} gives away less than {names}, and is at least as useful: {numbers.named(utility_title(comparison))}"
            f" {numbers.number(values[0])} against {numbers.number(values[1])}{' at best' if len(worse) > 1 else ''} (point"
            " estimates)."
        )
    return told


def _counted(base: audited.Run, changes: Sequence["RunChange"]) -> list[str]:
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
    level = _level([item.headline for item in changes])
    together = f"All of this holds at once at {level} confidence: the intervals are made wider for it."
    return [
        f"{first}, {_called(base)}.{rest}",
        *(f"{_CHANGE[verdict].word}: {listed(found)}." for verdict, found in names.items() if found),
        *([together] if level else []),
    ]


def _called(run: audited.Run) -> str:
    return f"{run.number}. {numbers.named(run.title)}"


def _order(base: audited.Run, other: audited.Run) -> list[str]:
    """A warning where the baseline is the newer audit of the two."""
    made, then = (made_at(run.result.provenance) for run in (base, other))
    if made is None or then is None or made <= then:
        return []
    return ["The baseline was audited after it: check which of the two is the newer release."]


# --- The rows of a comparison's tables, as strings, each with what it sorts by ---


_Cell = dict[str, Any]


def _cell(text: str, *notes: str, by: float | str | None = None) -> _Cell:
    """What a cell shows, and the number or the text that its column is sorted by; missing ones come last."""
    missing = by is None or (isinstance(by, float) and math.isnan(by))
    order: float | str | None = None if missing else by
    if isinstance(order, float) and math.isinf(order):
        order = math.copysign(1e308, order)
    return {
        "text": text,
        "notes": [note for note in notes if note],
        "by": "" if order is None else str(order),
    }


def _strategy_row(item: Strategy, comparison: "ComparedAudits") -> dict[str, Any]:
    """Return a strategy: its averages with their ranges, its interval, what it is shown to exceed, and its instances."""
    used = len(item.runs)
    models = numbers.count(item.given) if used == item.given else f"{used} of {item.given}"
    over = [other for other in comparison.strategies if item.above(other) and comparison.no_order is None]
    return {
        "number": item.number,
        "name": item.name,
        "category": item.category,
        "measure": _spread(item.measure, name=comparison.measure, ceiling=item.ceiling),
        "ends": _cell(_ends(item, comparison), by=item.lower),
        "whisker": (item.lower, item.measure and item.measure.mean, item.upper),
        "above": _cell(_listed_numbers(over, comparison), by=float(-len(over))),
        "utility": _spread(item.utility, name="utility"),
        "models": _cell(models, by=float(used)),
        "frontier": _cell("On it" if item.on_frontier else "", by=0.0 if item.on_frontier else 1.0),
        "marks": list(item.marks),
    }


def _listed_numbers(over: Sequence[Strategy], comparison: "ComparedAudits") -> str:
    if not over:
        return ""
    whole = len(over) == len(comparison.strategies) - 1
    return "all others" if whole and len(over) > 1 else ", ".join(str(item.number) for item in over)


def _spread(spread: Spread | None, *, name: str, ceiling: Spread | None = None) -> _Cell:
    if spread is None:
        return _cell(numbers.MISSING)
    toward = "down" if audited.is_lower_bound(name) else "nearest"
    mean, low, high = (
        metrics.shown_value(x, name=name, toward=toward) for x in (spread.mean, spread.least, spread.most)
    )
    span = "" if spread.least == spread.most else f"{low} to {high}"
    return _cell(mean, span, _ceilings(ceiling), by=spread.mean)


def _ceilings(spread: Spread | None) -> str:
    if spread is None:
        return ""
    low, high = (numbers.number(end, toward="down") for end in (spread.least, spread.most))
    return f"ceiling {low}" if low == high else f"ceilings {low} to {high}"


def _audit_row(item: audited.Measurement) -> dict[str, Any]:
    """Return an audit: its utility, and the measure with its interval and delta."""
    run, estimate = item.run, item.estimate
    utility = run.utility
    return {
        "run": run,
        "strategy": _cell(run.strategy or numbers.MISSING, run.category or "", by=run.strategy),
        "utility": _cell(numbers.MISSING)
        if utility is None
        else _cell(numbers.number(utility.value), utility.name, by=utility.value),
        "measure": _measured(estimate),
        "auc": _measured(find(run.result, "auc")),
        "advantage": _measured(find(run.result, "advantage")),
        "marks": [mark for mark in item.marks if mark != audited.REJECTED],  # its cell says so
        "left_out": numbers.sentence(item.reason or ""),
    }


def _measured(estimate: Estimate | None) -> _Cell:
    if estimate is None or estimate.value is None:
        return _cell(numbers.MISSING)
    row = Row(estimate)
    at = "" if estimate.delta is None else f"delta {row.delta}"
    return _cell(row.value, row.interval, at, by=float(estimate.value))


def _bound_row(run: audited.Run) -> dict[str, Any]:
    """Return the certified bounds of an audit beside its verdict."""
    warned = [check for check in run.result.checks if check.status is Status.WARN]
    return {
        "run": run,
        "verdict": metrics.VERDICT[run.result.verdict],
        "bound": _measured(with_role(Role.CERTIFIED, run.result)),
        "algorithm": _measured(with_role(Role.JUDGE, run.result)),
        "failed": [check.name.replace("_", " ") for check in failed_validity(run.result.checks)],
        "warned": [check.name.replace("_", " ") for check in warned],
    }


def _policies_of(run: audited.Run) -> list[dict[str, Any]]:
    """Return what each policy of answering less would help in an audit."""
    return [
        {
            "run": run,
            "answer": _cell(row.title, by=row.found.policy),
            "auc": _measured(find(row.found, "auc")),
            "advantage": _measured(find(row.found, "advantage")),
            "best": _cell(row.best, by=row.found.at_least.get("advantage")),
            "algorithm": _measured(None if row.bound is None else row.bound.estimate),
        }
        for row in policy_rows(run.result)
    ]


def _difference(run: audited.Run, item: Difference) -> dict[str, Any]:
    """Return what changed from the baseline to one audit."""
    kind = item.name
    old, new = (metrics.shown_value(x, name=kind) for x in (item.old, item.new))
    interval = numbers.MISSING
    if item.lower is not None and item.upper is not None:
        interval = f"{_signed(item.lower, toward='down')} to {_signed(item.upper, toward='up')}"
    level = _level([item])
    return {
        "run": run,
        "quantity": _cell(_title(run, kind), "decides" if item.decides else "", by=kind),
        "old": _cell(old, by=item.old),
        "new": _cell(new, by=item.new),
        "difference": _cell(numbers.MISSING if item.value is None else _signed(item.value), by=item.value),
        "interval": _cell(interval, f"at {level} confidence" if level else "", by=item.lower),
        "sign": _CHANGE[item.verdict],
        "reason": numbers.sentence(item.reason) if item.value is None else "",
    }


def _title(run: audited.Run, name: str) -> str:
    estimate = find(run.result, name)
    return metrics.metric(name).title if estimate is None else metrics.describe(estimate).title


def _signed(x: float, *, toward: str = "nearest") -> str:
    shown = numbers.unit(
        abs(x), toward=toward if x >= 0 else {"down": "up", "up": "down"}.get(toward, toward)
    )
    return f"+{shown}" if x > 0 else f"−{shown}" if x < 0 else shown  # noqa: RUF001 the true minus sign


def _not_compared(stated: Sequence[tuple[audited.Run, Difference]]) -> list[dict[str, Any]]:
    """Return the quantities without a difference, once for each reason."""
    found: dict[str, dict[str, None]] = {}
    for run, item in stated:
        if item.value is None and not item.decides:
            found.setdefault(item.reason, {})[_title(run, item.name)] = None
    return [
        {"names": ", ".join(names), "reason": numbers.sentence(reason)} for reason, names in found.items()
    ]


_IN_A_CELL = 20  # strategies shown in a notebook


def render(comparison: "ComparedAudits", *, title: str = "Privacy audits compared") -> str:
    """Return a comparison as one offline HTML page.

    Args:
        comparison: From `auditor.compare_audits`.
        title: The page's title.
    """
    shown = context(comparison)
    plane, history = landscape.landscape_figure(comparison), landscape.history_figure(comparison)
    figures = {
        "figure": plane and html.drawn(plane, landscape.alt(comparison)),
        "time": history and html.drawn(history, " ".join(shown["history"])),
    }
    return html.rendered("comparison.html.jinja", scripts=("sort.js",), title=title, **figures, **shown)


def cell(comparison: "ComparedAudits") -> str:
    """Return a comparison as a part of a page: the sentences and the table of strategies, without a style of its own."""
    return html.rendered("comparison-cell.html.jinja", shown=_IN_A_CELL, **context(comparison))


def context(comparison: "ComparedAudits", *, command_line: bool = False) -> dict[str, Any]:
    """Return everything that the page shows about a comparison, as strings, lists and dictionaries.

    Args:
        comparison: What to show.
        command_line: Whether to name the options of the command alone, and not those of Python beside them.
    """
    deltas = {item.scale.delta for item in comparison.measurements if item.value is not None}
    sign, sentences = _headline(comparison)
    stated = [(change.run, item) for change in comparison.changes for item in change.differences]
    kinds = Counter(item.category for item in comparison.strategies if item.placed)
    placed = kinds.total()
    return {
        "count": len(comparison.runs),
        "runs": comparison.runs,
        "sign": sign,
        "compared": _compared(comparison),
        "frontier": _frontier(comparison),
        "hints": _hints(comparison, command_line=command_line),
        "warnings": _warnings(comparison),
        "changes": sentences,
        "baseline": comparison.baseline and _called(comparison.baseline),
        "measure": measure_title(comparison),
        "bounds_what": _bounds(comparison),
        "ranked": comparison.no_frontier is None,
        "measure_name": comparison.measure,
        "utility": utility_title(comparison),
        "kinds": len(kinds) > 1,
        "utility_given": any(run.utility is not None for run in comparison.runs),
        "notes": _notes(comparison),
        "strategies": [_strategy_row(item, comparison) for item in _in_order(comparison)],
        "level": _level(comparison.strategies),
        "history": _history(comparison),
        "densities": max(kinds.values(), default=0) >= landscape.DENSE,
        "several_instances": any(item.given > 1 for item in comparison.strategies),
        "crowded": placed > landscape.CROWDED,
        "named": placed <= landscape.NAMED,
        "logarithmic": landscape.logarithmic(comparison) is not None,
        "marked": any(item.marks for item in comparison.strategies),
        "left_out": _left_out(comparison),
        "audits": [_audit_row(item) for item in comparison.measurements],
        # What has a difference, and the deciding quantities always.
        "differences": [
            _difference(*item) for item in stated if item[1].value is not None or item[1].decides
        ],
        "delta": numbers.given(deltas.pop() if len(deltas) == 1 else None),
        "decided": _decided([item for _, item in stated if item.value is not None]),
        "not_compared": _not_compared(stated),
        "bounds": [_bound_row(run) for run in comparison.runs],
        "label_only": LABEL_ONLY,
        "policies": [row for run in comparison.runs for row in _policies_of(run)],
    }


def _history(comparison: "ComparedAudits") -> list[str]:
    """What the audits show over time, from the first to the last, and the days themselves for who cannot see them."""
    if not (told := comparison.history):
        return []
    first, last = told[0], told[-1]
    shown = partial(metrics.shown_value, name=comparison.measure)
    rose = first.ends and last.ends and first.ends[1] < last.ends[0]
    fell = first.ends and last.ends and last.ends[1] < first.ends[0]
    changed = (
        f"shown to have {'risen' if rose else 'fallen'}" if rose or fell else "not shown to have changed"
    )
    went = f"the {_measure_words(comparison)} went from {shown(first.value)} to {shown(last.value)}, and is {changed}."
    return [
        f"From {_called(first.run)} ({first.day}) to {_called(last.run)} ({last.day}), {went}",
        f"{len(told)} audits by the day on which they were made; lines reach over intervals that hold at once.",
    ]


def _notes(comparison: "ComparedAudits") -> list[str]:
    """What a reader must know of the picture before choosing a strategy by it."""
    about, meaning = texts("comparison")["about"], texts("comparison")["marks"]
    subjects = {item.estimate.subject for item in comparison.measurements if item.estimate is not None}
    found = [about["algorithm" if subjects == {Subject.MECHANISM} else "models"]]
    if audited.is_lower_bound(comparison.measure):
        several = any(len(item.runs) > 1 for item in comparison.strategies)
        bounds = about["bounds"].format(bounds=_bounds(comparison))
        found.append(f"{bounds} {about['means_of_bounds']}" if several else bounds)
    elif any(item.given > 1 for item in comparison.strategies):
        found.append(about["means"])
    told = [item.marks for item in comparison.measurements] + [item.marks for item in comparison.strategies]
    marks = {mark.partition(" ")[0] for marks in told for mark in marks}
    found += [text for mark, text in meaning.items() if mark in marks]
    return found if audited.more_is_worse(comparison.measure) else [*found, about["backwards"]]


def _left_out(comparison: "ComparedAudits") -> list[tuple[str, str]]:
    """The results without a place in the landscape, and why."""
    some = any(run.utility is not None for run in comparison.runs)
    found = []
    for item in comparison.measurements:
        reason = item.reason
        if reason is None and comparison.no_landscape is None and some and item.run.utility is None:
            reason = "no utility was given for it"
        if reason is not None:
            found.append((_called(item.run), numbers.sentence(reason)))
    mixed = "Its audits differ in delta, adjacency, unit or method, so that their numbers have no mean."
    return found + [
        (f"Strategy {numbers.quoted(item.name)}", mixed)
        for item in comparison.strategies
        if MIXED in item.marks
    ]


def _decided(stated: Sequence[Difference]) -> dict[str, Any] | None:
    """How the differences were found, each way told once, and what they assume."""
    if not stated:
        return None
    assumptions = dict.fromkeys(text for item in stated for text in item.assumptions)
    methods = [numbers.sentence(reason) for reason in dict.fromkeys(item.reason for item in stated)]
    return {"methods": methods, "assumptions": [text.rstrip(".") for text in assumptions]}
