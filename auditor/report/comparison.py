"""A comparison of several audits as one offline page, and as a cell of a notebook."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

from auditor.comparison import AuditsComparison, runs as audited
from auditor.comparison.changes import Change, Difference, Headline, RunChange
from auditor.comparison.strategies import MIXED, Spread, Strategy
from auditor.core import Disclosure, Estimate, Role, Severity, Status, Subject, numbers
from auditor.curves.cells import LEAST
from auditor.report import html
from auditor.report.decision import Bar
from auditor.report.figures import landscape
from auditor.report.rows import Row, condition
from auditor.report.view import texts
from auditor.report.words import VERDICT, Sign, shown_value, signs
from auditor.results import metrics
from auditor.results.document import detail, find, made_at
from auditor.results.metrics import with_role
from auditor.verdicts.judging import failed_validity
from auditor.verdicts.severities import CUT_POINTS, level, points_of

# --- The sentences of a comparison: its audits, its frontier, and changes for the worse ---


_CHANGE = signs("change", Change)
_NO_ORDER = Sign("No ranking shown", "≈", "plain")
_PART = Sign("Partial ranking", "≈", "plain")
# The gravest first: it sets the sign of the comparison.
_GRAVEST = (Change.WORSE, Change.NOT_COMPARABLE, Change.NO_CHANGE_SHOWN, Change.BETTER)
_UNLIKE = 1.5  # smallest ratio of the sizes of two audits that suggests different populations
_LISTED = 6  # names listed before the rest are counted


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words, the first few of many.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _said(key: str, **words: Any) -> str:
    """Return a sentence of ``texts/comparison.toml`` with these words."""
    return str(texts("comparison")["sentences"][key]).format(**words)


def _compared(comparison: AuditsComparison) -> str:
    """Return a sentence on the compared audits."""
    runs, counts = comparison.runs, {item.audits for item in comparison.strategies}
    what = f"by {_measure_words(comparison)}"
    audits = f"{numbers.count(len(runs))} audits"
    if all(run.strategy is None for run in runs):
        return f"{audits} are compared {what}."
    each = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
    count = len(comparison.strategies)
    of = f"{numbers.count(count)} {'strategy' if count == 1 else 'strategies'}"
    return f"{audits} of {of}{'' if each == '1' else f', {each} of each,'} are compared {what}."


def _measure_words(comparison: AuditsComparison) -> str:
    """Return the name of the measure inside a sentence."""
    title = comparison.measure_title
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _bounds(comparison: AuditsComparison) -> str:
    """Return the kind of the lower bounds; empty if the values are none."""
    if not metrics.metric(comparison.measure).lower_bound:
        return ""
    estimates = (item.estimate for item in comparison.measurements)
    conditional = (item for item in estimates if item is not None and detail(item, "conditional"))
    if under := next(map(condition, conditional), None):
        return f"lower bounds that hold only if {under.replace('the curve', 'the trade-off curve')}"
    return "certified lower bounds"


def _frontier(comparison: AuditsComparison) -> str:
    """Return a sentence on the strategies on the frontier, or on why there is none."""
    if comparison.no_landscape is not None:
        return _said("no_landscape", why=comparison.no_landscape)
    placed = [item for item in comparison.strategies if item.placed]
    if len(placed) == 1:
        return _said("alone", name=numbers.quoted(placed[0].name))
    if comparison.no_frontier is not None:
        return _said("no_frontier", why=comparison.no_frontier)
    names = [numbers.quoted(item.name) for item in comparison.frontier]
    several = any(len(item.runs) > 1 for item in placed)
    return _said(
        "frontier",
        names=listed(names),
        count=len(names),
        placed=len(placed),
        better="more" if audited.higher_is_better(comparison.runs) else "smaller",
        utility=numbers.named(comparison.utility_title),
        what="averages" if several else "values of single audits",
    )


def _hints(comparison: AuditsComparison) -> list[str]:
    """Return sentences on missing utilities and baselines."""
    hints = [] if any(run.utility for run in comparison.runs) else [_said("no_utility")]
    return hints if comparison.baseline else [*hints, _said("no_baseline")]


def _warnings(comparison: AuditsComparison) -> list[str]:
    """Return warnings before a decision by these numbers, in sentences."""
    base, warnings = comparison.baseline, []
    if comparison.disclosure is Disclosure.INSIDERS:
        warnings.append(_said("insiders"))
    used = [item for item in comparison.measurements if item.reason is None]
    if rejected := sum(audited.REJECTED in item.marks for item in used):
        warnings.append(_said("rejected", rejected=rejected, used=len(used)))
    others = [item.run for item in comparison.changes if item.headline.confidence is not None]
    if unlike := [
        _called(run)
        for run in others
        if base and any(0 < min(pair) * _UNLIKE < max(pair) for pair in _sizes(base, run))
    ]:
        warnings.append(_said("sizes", names=listed(unlike)))
    if near := [
        f"{_called(one)} and {_called(other)}"
        for one, other in combinations(comparison.runs, 2)
        if any(0 < abs(first - second) < LEAST for first, second in _sizes(one, other))
    ]:
        warnings.append(_said("nearly_the_same", pairs=listed(near), least=LEAST))
    return warnings


def _sizes(one: audited.Run, other: audited.Run) -> list[tuple[float, float]]:
    """Return the numbers of members of two audits, and of non-members; 0 if unknown."""
    first, second = (
        [run.result.data.get(name) or 0 for name in ("n_member", "n_nonmember")] for run in (one, other)
    )
    return list(zip(first, second, strict=True))


def stopped(comparison: AuditsComparison) -> list[str]:
    """Return why a pipeline stops: a line for each audit that is worse than the baseline, or not comparable."""
    stops = [item for item in comparison.changes if item.headline.verdict in _GRAVEST[:2]]
    stops.sort(key=lambda item: _GRAVEST.index(item.headline.verdict))
    return [f"{_called(item.run)}: {item.headline.sentence}" for item in stops]


def _headline(comparison: AuditsComparison) -> tuple[Sign, list[str]]:
    """Return the leading sentences: changes from the baseline, or without one the ranking."""
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
        word = f"{numbers.named(change.run.title)}: {sign.word[:1].lower()}{sign.word[1:]}"
        sign = replace(sign, word=word)
    about = f"{_called(change.run)} against the baseline, {_called(base)}."
    made, then = (made_at(run.result.provenance) for run in (base, change.run))
    if made is not None and then is not None and made > then:
        about = _said("later", sentence=about)
    return sign, [change.headline.sentence, about, *_beaten(comparison)]


def _in_order(comparison: AuditsComparison) -> list[Strategy]:
    """Return the strategies, most leakage first; those without a value last."""

    def key(item: Strategy) -> float:
        mean = math.nan if item.measure is None else item.measure.mean
        return math.inf if math.isnan(mean) else -audited.leakage(mean, measure=comparison.measure)

    return sorted(comparison.strategies, key=key)


def _ranking(comparison: AuditsComparison) -> tuple[Sign, list[str]]:
    """Return the strategies with the most and the least leakage, if simultaneous intervals separate them."""
    if comparison.no_order is not None:
        return _NO_ORDER, [_said("no_order", why=comparison.no_order)]
    top, *rest = ranks = [item for item in _in_order(comparison) if item.measure is not None]
    least, name = ranks[-1], numbers.quoted(top.name)
    like = [numbers.quoted(item.name) for item in rest if not top.above(item)]
    value = f"{_measure_words(comparison)} is {_interval_of(top, comparison)}"
    sign = Sign(f"Most leakage: {numbers.named(top.name)}", "▲", "caution")
    others = "the other" if len(rest) == 1 else f"all {len(rest)} others"
    sentences = [_said("first", name=name, value=value, others=others)]
    if like:
        sign = _NO_ORDER if not any(one.above(two) for one in ranks for two in ranks) else _PART
        sentences = [_said("not_first", name=name, like=listed(like), value=value)]
    if len(ranks) > 2 and all(item.above(least) for item in ranks[:-1]):  # noqa: PLR2004
        sentences.append(
            _said("least", name=numbers.quoted(least.name), value=_interval_of(least, comparison))
        )
    return sign, [*sentences, _said("at_once", level=_level(comparison.strategies))]


def _level(stated: Sequence[Strategy | Difference | Headline]) -> str:
    """Return the lowest confidence of these; empty if there is none."""
    levels = [item.confidence for item in stated if item.confidence is not None]
    return numbers.percent(min(levels), toward="down") if levels else ""


def _interval_of(item: Strategy, comparison: AuditsComparison) -> str:
    mean = shown_value(None if item.measure is None else item.measure.mean, name=comparison.measure)
    return f"{mean} ({_ends(item, comparison)})" if item.lower is not None else mean


def _ends(item: Strategy, comparison: AuditsComparison) -> str:
    low, high = (
        shown_value(end, name=comparison.measure, toward=toward)
        for end, toward in ((item.lower, "down"), (item.upper, "up"))
    )
    return numbers.MISSING if item.lower is None else f"{low} to {high}"


def _usefulness(item: Strategy, comparison: AuditsComparison) -> float:
    """Return the mean utility, with a sign by which more is better."""
    mean = math.nan if item.utility is None else item.utility.mean
    return mean if audited.higher_is_better(comparison.runs) else -mean


def _beaten(comparison: AuditsComparison) -> list[str]:
    """Return sentences on strategies that are shown to leak more than another that is at least as useful."""
    if comparison.no_order is not None or comparison.no_landscape is not None:
        return []
    placed = [item for item in _in_order(comparison) if item.placed]
    useful = partial(_usefulness, comparison=comparison)
    by_best: dict[Strategy, list[Strategy]] = {}
    for item in placed:
        better = [other for other in placed if item.above(other) and useful(other) >= useful(item)]
        if better:
            by_best.setdefault(max(better, key=useful), []).append(item)
    sentences = []
    for best, worse in by_best.items():
        values = [item.utility.mean for item in (best, max(worse, key=useful)) if item.utility is not None]
        own, theirs = map(numbers.number, values)
        words = {"own": own, "theirs": theirs, "at_best": " at best" if len(worse) > 1 else ""}
        names = listed([numbers.quoted(item.name) for item in worse])
        words |= {"names": names, "utility": numbers.named(comparison.utility_title)}
        sentences.append(_said("beaten", name=numbers.quoted(best.name), **words))
    return sentences


def _counted(base: audited.Run, changes: Sequence[RunChange]) -> list[str]:
    """Return the number of audits that got worse, then the names by verdict."""
    names: dict[Change, list[str]] = {verdict: [] for verdict in _GRAVEST}
    for item in changes:
        names[item.headline.verdict].append(_called(item.run))
    worse, unknown = len(names[Change.WORSE]), len(names[Change.NOT_COMPARABLE])
    counts = {"worse": worse, "count": len(changes), "baseline": _called(base)}
    first = _said("worse" if worse else "none_worse", show="shows" if worse == 1 else "show", **counts)
    rest = f" {unknown} of them cannot be compared with it." if unknown else ""
    level = _level([item.headline for item in changes])
    return [
        first + rest,
        *(f"{_CHANGE[verdict].word}: {listed(those)}." for verdict, those in names.items() if those),
        *([_said("wider", level=level)] if level else []),
    ]


def _called(run: audited.Run) -> str:
    return f"{run.number}. {numbers.named(run.title)}"


# --- The rows of a comparison's tables, as strings, each with its sort key ---


_Cell = dict[str, Any]


def _cell(text: str, *notes: str, by: float | str | None = None) -> _Cell:
    """Return a cell, with the number or the text that sorts its column; missing ones come last."""
    if isinstance(by, float):
        by = None if math.isnan(by) else max(min(by, 1e308), -1e308)
    return {"text": text, "notes": list(filter(None, notes)), "by": "" if by is None else str(by)}


def _strategy_row(item: Strategy, comparison: AuditsComparison) -> dict[str, Any]:
    """Return the row of a strategy: means with ranges, interval, the strategies below it, and its models."""
    used = len(item.runs)
    models = numbers.count(item.audits) if used == item.audits else f"{used} of {item.audits}"
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


def _listed_numbers(over: Sequence[Strategy], comparison: AuditsComparison) -> str:
    whole = len(over) == len(comparison.strategies) - 1
    return "all others" if whole and len(over) > 1 else ", ".join(str(item.number) for item in over)


def _spread(spread: Spread | None, *, name: str, ceiling: Spread | None = None) -> _Cell:
    if spread is None:
        return _cell(numbers.MISSING)
    toward = "down" if metrics.metric(name).lower_bound else "nearest"
    written = partial(shown_value, name=name, toward=toward)
    span = "" if spread.least == spread.most else f"{written(spread.least)} to {written(spread.most)}"
    top = ""
    if ceiling is not None:
        low, high = (numbers.number(end, toward="down") for end in (ceiling.least, ceiling.most))
        top = f"ceiling {low}" if low == high else f"ceilings {low} to {high}"
    return _cell(written(spread.mean), span, top, by=spread.mean)


def _audit_row(item: audited.Measurement) -> dict[str, Any]:
    """Return the row of an audit: its utility, and the measure with its interval and delta."""
    run, missing = item.run, _cell(numbers.MISSING)
    useful = run.utility
    return {
        "run": run,
        "strategy": _cell(run.strategy or numbers.MISSING, run.category or "", by=run.strategy),
        "utility": _cell(numbers.number(useful.value), useful.name, by=useful.value) if useful else missing,
        "measure": _measured(item.estimate),
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
        "verdict": VERDICT[run.result.verdict],
        "bound": _measured(with_role(Role.CERTIFIED, run.result)),
        "algorithm": _measured(with_role(Role.JUDGE, run.result)),
        "failed": [check.name.replace("_", " ") for check in failed_validity(run.result.checks)],
        "warned": [check.name.replace("_", " ") for check in warned],
    }


def _difference(run: audited.Run, item: Difference) -> dict[str, Any]:
    """Return the row of a difference between the baseline and one audit."""
    written, level = partial(shown_value, name=item.name), _level([item])
    interval = numbers.MISSING
    if item.lower is not None and item.upper is not None:
        interval = f"{_signed(item.lower, toward='down')} to {_signed(item.upper, toward='up')}"
    return {
        "run": run,
        "quantity": _cell(_title(run, item.name), by=item.name),
        "old": _cell(written(item.old), by=item.old),
        "new": _cell(written(item.new), by=item.new),
        "difference": _cell(numbers.MISSING if item.value is None else _signed(item.value), by=item.value),
        "interval": _cell(interval, f"at {level} confidence" if level else "", by=item.lower),
        "sign": _CHANGE[item.verdict],
        "reason": numbers.sentence(item.reason) if item.value is None else "",
    }


def _title(run: audited.Run, name: str) -> str:
    estimate = find(run.result, name)
    return metrics.metric(name).title if estimate is None else metrics.describe(estimate).title


def _signed(x: float, *, toward: str = "nearest") -> str:
    away = toward if x >= 0 else {"down": "up", "up": "down"}.get(toward, toward)
    sign = "+" if x > 0 else "−" if x < 0 else ""  # noqa: RUF001 the true minus sign
    return sign + numbers.unit(abs(x), toward=away)


_IN_A_CELL = 20  # strategies in a notebook


def render(comparison: AuditsComparison, *, title: str = "Privacy audits compared") -> str:
    """Return a comparison as one offline HTML page.

    Args:
        comparison: From `auditor.comparison.compare_audits`.
        title: The page's title.
    """
    parts = context(comparison)
    plane, history = landscape.landscape_figure(comparison), landscape.history_figure(comparison)
    figures = {
        "figure": plane and html.drawn(plane, landscape.alt(comparison)),
        "time": history and html.drawn(history, " ".join(parts["history"])),
    }
    return html.rendered(
        "comparison.html.jinja",
        scripts=("sort.js",),
        results=[run.result for run in comparison.runs],
        title=title,
        **figures,
        **parts,
    )


def cell(comparison: AuditsComparison) -> str:
    """Return a comparison as part of a page: the sentences and the table of strategies, without its own style."""
    return html.rendered("comparison-cell.html.jinja", most=_IN_A_CELL, **context(comparison))


def context(comparison: AuditsComparison) -> dict[str, Any]:
    """Return all contents of the page of a comparison, as strings, lists and dictionaries."""
    deltas = {item.scale.delta for item in comparison.measurements if item.value is not None}
    sign, sentences = _headline(comparison)
    stated = [(change.run, item) for change in comparison.changes for item in change.differences]
    kinds = Counter(item.category for item in comparison.strategies if item.placed)
    placed, ordered = kinds.total(), _in_order(comparison)
    most = ordered[0]
    return {
        "runs": comparison.runs,
        "sign": sign,
        "severity": _severity(comparison),
        "who": _said("who" if most.measure is None else "who_first", name=numbers.quoted(most.name)),
        "compared": _compared(comparison),
        "frontier": _frontier(comparison),
        "hints": _hints(comparison),
        "warnings": _warnings(comparison),
        "changes": sentences,
        "baseline": comparison.baseline and _called(comparison.baseline),
        "measure": comparison.measure_title,
        "bounds_what": _bounds(comparison),
        "ranked": comparison.no_frontier is None,
        "measure_name": comparison.measure,
        "utility": comparison.utility_title,
        "kinds": len(kinds) > 1,
        "utility_given": any(run.utility is not None for run in comparison.runs),
        "notes": _notes(comparison),
        "pooled": [_mean_words(Row(item)) for item in comparison.pooled],
        "strategies": [_strategy_row(item, comparison) for item in ordered],
        "level": _level(comparison.strategies),
        "history": _history(comparison),
        "several_instances": any(item.audits > 1 for item in comparison.strategies),
        "named": placed <= landscape.NAMED,
        "logarithmic": landscape.logarithmic(comparison) is not None,
        "marked": any(item.marks for item in comparison.strategies),
        "left_out": _left_out(comparison),
        "audits": [_audit_row(item) for item in comparison.measurements],
        "differences": [_difference(*item) for item in stated],
        "delta": numbers.as_stated(deltas.pop() if len(deltas) == 1 else None),
        "decided": _decided([item for _, item in stated if item.value is not None]),
        "bounds": [_bound_row(run) for run in comparison.runs],
    }


def _severity(comparison: AuditsComparison) -> Bar | None:
    """Return the severity of the largest leak, if the audits are compared by the advantage."""
    low = max((item.lower or 0.0 for item in comparison.strategies), default=0.0)
    if comparison.measure != "advantage" or comparison.no_order is not None:
        return None
    points = {points_of(run.result.data) for run in comparison.runs}
    cuts = points.pop() if len(points) == 1 else CUT_POINTS
    return Bar(level(low, cuts) or (Severity.SLIGHT if low > 0 else Severity.NONE), low, cuts)


def _mean_words(row: Row) -> str:
    """Return a sentence on a mean over the audits, with their spread."""
    return _said("mean", row=row, spread=numbers.percent(detail(row.estimate, "i_squared")))


def _history(comparison: AuditsComparison) -> list[str]:
    """Return sentences on the change from the first to the last audit, and a text alternative to the picture."""
    if not (audits := comparison.history):
        return []
    first, last = audits[0], audits[-1]
    written = partial(shown_value, name=comparison.measure)
    rose = first.ends and last.ends and first.ends[1] < last.ends[0]
    fell = first.ends and last.ends and last.ends[1] < first.ends[0]
    ends = {name: f"{_called(item.run)} ({item.day})" for name, item in (("first", first), ("last", last))}
    words = {"old": written(first.value), "new": written(last.value), "measure": _measure_words(comparison)}
    changed = (
        f"shown to have {'risen' if rose else 'fallen'}" if rose or fell else "not shown to have changed"
    )
    return [_said("went", changed=changed, **ends, **words), _said("days", count=len(audits))]


def _notes(comparison: AuditsComparison) -> list[str]:
    """Return the caveats of the picture for a choice of strategy."""
    about, meaning = texts("comparison")["about"], texts("comparison")["marks"]
    subjects = {item.estimate.subject for item in comparison.measurements if item.estimate is not None}
    notes = [about["algorithm" if subjects == {Subject.MECHANISM} else "models"]]
    if metrics.metric(comparison.measure).lower_bound:
        several = any(len(item.runs) > 1 for item in comparison.strategies)
        bounds = about["bounds"].format(bounds=_bounds(comparison))
        notes.append(f"{bounds} {about['means_of_bounds']}" if several else bounds)
    elif any(item.audits > 1 for item in comparison.strategies):
        notes.append(about["means"])
    marked = [item.marks for item in comparison.measurements] + [item.marks for item in comparison.strategies]
    marks = {mark.partition(" ")[0] for marks in marked for mark in marks}
    notes += [text for mark, text in meaning.items() if mark in marks]
    return notes if metrics.metric(comparison.measure).more_is_worse else [*notes, about["backwards"]]


def _left_out(comparison: AuditsComparison) -> list[tuple[str, str]]:
    """Return the results that are not plotted, and why."""
    some = comparison.no_landscape is None and any(run.utility is not None for run in comparison.runs)
    reasons = []
    for item in comparison.measurements:
        missing = "it has no utility" if some and item.run.utility is None else None
        if reason := item.reason or missing:
            reasons.append((_called(item.run), numbers.sentence(reason)))
    strategies = (numbers.quoted(item.name) for item in comparison.strategies if MIXED in item.marks)
    return reasons + [(f"Strategy {name}", _said("mixed")) for name in strategies]


def _decided(stated: Sequence[Difference]) -> dict[str, Any] | None:
    """Return the methods of the differences, each once, and their assumptions."""
    if not stated:
        return None
    assumptions = dict.fromkeys(text for item in stated for text in item.assumptions)
    methods = [numbers.sentence(reason) for reason in dict.fromkeys(item.reason for item in stated)]
    return {"methods": methods, "assumptions": [text.rstrip(".") for text in assumptions]}
