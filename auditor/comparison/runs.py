"""The audits of a comparison: their sources, the facts declared beside them, and their values of the measure."""

import hashlib
import math
import os
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from auditor.core import Adjacency, Disclosure, Estimate, InputError, Utility, as_stated, rounded, validate
from auditor.records.labels import is_missing
from auditor.results.document import CONTENT_HASH, AuditResult, ceiling, detail, find, made_at
from auditor.results.metrics import metric
from auditor.verdicts.judging import failed_validity, why_blind

# --- The audits of a comparison, each with further facts: its source, its model, strategy and utility ---


_LEAST = 2
_SHOWN = 5  # names listed before the rest are left out


@dataclass(frozen=True, eq=False)
class Run:
    """One audit of a comparison.

    Attributes:
        number: Its place among the results, from 1.
        result: Result of the audit.
        source: The file it was read from, or None.
        path: The same with its folders as they were given, or None; never shown.
        model: The model's name, or None.
        strategy: Name shared by several audits of one way of training, or None: then the audit stands for itself.
        category: A kind of strategies, or None.
        utility: Performance of the model at its task, or None.
    """

    number: int
    result: AuditResult
    source: str | None = None
    path: str | None = None
    model: str | None = None
    strategy: str | None = None
    category: str | None = None
    utility: Utility | None = None

    @property
    def title(self) -> str:
        """Title of the audit: the model, or else the file, or else the number."""
        return self.model or self.source or f"Audit {self.number}"

    @property
    def sha256(self) -> str | None:
        """The hash of the losses that were audited, or None."""
        return _text(self.result.provenance.get("input_sha256"))


def is_public(*data: Mapping[str, Any]) -> bool:
    """Return whether everybody may read the products of results with these data: not all of them are for insiders."""
    return any(item.get("disclosure") != Disclosure.INSIDERS for item in data)


def read_runs(results: Iterable[AuditResult | str | os.PathLike[str]]) -> tuple[Run, ...]:
    """Return the audits to compare, read where they are files, in the order given.

    Args:
        results: Two or more results, or paths of files that `AuditResult.to_json` wrote.

    Raises:
        InputError: Fewer than two, something that is no result, or one result twice.
    """
    if isinstance(results, AuditResult | str | bytes | os.PathLike) or not isinstance(results, Iterable):
        kind = type(results).__name__
        raise InputError(f"results must be a list of at least two audits to compare, got one {kind}.")
    items = list(results)
    _refuse_copies(items)
    result = tuple(_run(item, place) for place, item in enumerate(items, start=1))
    if len(result) < _LEAST:
        raise InputError(
            f"results must be at least two audits to compare, got {len(result)}; a single one has its own report."
        )
    _refuse_twins(result)
    return result


def _run(item: Any, place: int) -> Run:
    """Return the description of the model in a result, or in a file of one; a value of the wrong type counts as missing."""
    source = path = None
    if isinstance(item, str | os.PathLike):
        from auditor.results.reading import read_result

        item, source, path = read_result(item), Path(item).name, str(item)
    if not isinstance(item, AuditResult):
        kind = type(item).__name__
        raise InputError(f"result {place} must be an audit result or the path of one, got {kind}.")
    model, strategy = (_text(item.data.get(name)) for name in ("model", "strategy"))
    return Run(place, item, source, path, model, strategy, utility=_utility(item.data.get("utility")))


def _text(x: str | None) -> str | None:
    return (x or "").strip() or None


def _utility(x: Any) -> Utility | None:
    value, name = (x.get("value"), _text(x.get("name"))) if x else (None, None)
    if value is None or not math.isfinite(value) or name is None:
        return None
    return Utility(float(value), name, higher_is_better=x.get("higher_is_better") is not False)


def _refuse_copies(items: Sequence[Any]) -> None:
    """Refuse two files with the same content, before any is parsed."""
    from auditor.results.reading import content_of

    files = [(place, item) for place, item in enumerate(items, 1) if isinstance(item, str | os.PathLike)]
    hashes = (hashlib.sha256(content_of(item)).hexdigest() for _, item in files)
    _refuse_same((key, place, repr(str(item))) for key, (place, item) in zip(hashes, files, strict=True))


def _refuse_twins(runs: Sequence[Run]) -> None:
    """Refuse one result that is there twice; only audits of the same losses are looked at whole, each once."""
    facts = [(run.sha256, run.result.provenance.get("created"), len(run.result.estimates)) for run in runs]
    often = Counter(facts)
    alike = (run for run, key in zip(runs, facts, strict=True) if often[key] > 1)
    _refuse_same((_content_hash(run.result), run.number, _called(run)) for run in alike)


def _refuse_same(named: Iterable[tuple[str, int, str]]) -> None:
    """Refuse two results with the same hash, by their numbers and names."""
    seen = dict[str, tuple[int, str]]()
    for key, number, name in named:
        other, first = seen.setdefault(key, (number, name))
        if other != number:
            raise InputError(
                f"results {other} and {number} ({first} and {name}) are the same audit; give each once."
            )


def _content_hash(result: AuditResult) -> str:
    return str(result.to_dict()["provenance"][CONTENT_HASH])


def _called(run: Run) -> str:
    return repr(run.path or run.title)


def find_run(runs: Sequence[Run], key: Any, *, argument: str) -> Run:
    """Return the one audit of that name.

    Args:
        runs: The audits.
        key: A path or file name, a model's name, or the number of the result, counting from 1; or the result itself.
        argument: Name of the argument in error sentences.

    Raises:
        InputError: There is no such audit, or there are several.
    """
    path = str(key) if isinstance(key, str | os.PathLike) else None
    numbered = isinstance(key, int | float | str) and not isinstance(key, bool)
    ways: tuple[Callable[[Run], bool], ...] = (
        lambda run: run.result is key,
        lambda run: path is not None and run.path == path,
        lambda run: path is not None and run.source == path,
        lambda run: run.model is not None and run.model == key,
        lambda run: numbered and (key == run.number or str(key).strip() == str(run.number)),
    )
    for way in ways:
        hits = [run for run in runs if way(run)]
        if len(hits) > 1:
            numbers = " and ".join(str(run.number) for run in hits[:2])
            raise InputError(
                f"{argument} {str(key)!r} is the name of more than one result ({numbers}); name it by its number."
            )
        if hits:
            return hits[0]
    described = "a result that is not among them" if isinstance(key, AuditResult) else reprlib.repr(key)
    raise InputError(f"{argument} must name one of the results, got {described}{_nearest(runs, key)}")


def _nearest(runs: Sequence[Run], key: Any) -> str:
    names = list(dict.fromkeys(name for run in runs for name in (run.source, run.model) if name))
    close = validate.nearest(str(key), names)
    if close is not None:
        return validate.did_you_mean(close)
    listed = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    return f"; they are {listed or 'without names'}, or by number 1 to {len(runs)}."


# --- A table that says more about each result of a comparison: its utility, strategy, category and model ---


_COLUMNS = ("result", "utility", "utility_name", "higher_is_better", "strategy", "category", "model")


def with_table(runs: Sequence[Run], about: Any) -> tuple[Run, ...]:
    """Return the audits with the values of the table; an empty cell keeps the value in the result.

    Args:
        runs: The audits.
        about: The path of a ``.csv`` or ``.parquet`` file, a DataFrame, or a dictionary of columns: ``result`` (a file
            name, a model's name, or the number of the result, from 1) and any of ``utility``, ``utility_name``,
            ``higher_is_better``, ``strategy``, ``category`` and ``model``.

    Raises:
        InputError: A table or a cell that cannot be used; the sentence names the column and the row.
    """
    from auditor.collectors.tables.opening import open_table

    table = open_table(about)
    names = list(table.names)
    for name in names:
        validate.one_of(f"column of {table.place}", name, _COLUMNS)
        if names.count(name) > 1:
            raise InputError(f"{table.place} has {names.count(name)} columns named {name!r}; keep one.")
    if "result" not in names or len(names) == 1:
        raise InputError(
            f"{table.place} must have a column 'result' and at least one more of {', '.join(map(repr, _COLUMNS[1:]))}, got"
            f" {', '.join(map(repr, names)) or 'no columns'}."
        )
    columns = [
        map(_cell, np.asarray(values).tolist()) for values in table.columns(names, text=names).values()
    ]
    updated: dict[int, Run] = {}
    for place, cells in enumerate(zip(*columns, strict=True)):
        row = dict(zip(names, cells, strict=True))
        where = f"({table.rows.at(place)}, of {table.place})"
        try:
            run = _updated(runs, row)
        except InputError as error:
            raise InputError(f"{str(error).rstrip('.')} {where}.") from None
        if run.number in updated:
            raise InputError(
                f"column 'result' names result {run.number} twice, the second time as {row['result']!r} {where}; give each"
                " result one row."
            )
        updated[run.number] = run
    return tuple(updated.get(run.number, run) for run in runs)


def _cell(value: Any) -> Any:
    """Return a plain Python value, None for a missing or blank one."""
    if isinstance(value, str):
        return value.strip() or None
    return None if is_missing(value) else value


def _updated(runs: Sequence[Run], row: Mapping[str, Any]) -> Run:
    """Return the audit that a row names, updated with the row."""
    if row["result"] is None:
        raise InputError("column 'result' must name a result in every row, got an empty cell.")
    run = find_run(runs, row["result"], argument="column 'result'")
    texts = {name: _words(name, row.get(name)) for name in ("strategy", "category", "model")}
    words: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    return replace(run, **words, utility=_updated_utility(run.utility, row))


def _words(name: str, cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool | int | float):
        return f"{cell:g}" if isinstance(cell, float) else str(cell)
    raise InputError(f"column {name!r} must hold text, got {type(cell).__name__}.")


def _updated_utility(old: Utility | None, row: Mapping[str, Any]) -> Utility | None:
    name, higher = _words("utility_name", row.get("utility_name")), _truth(row.get("higher_is_better"))
    value = old.value if old else None
    if row.get("utility") is not None:
        value = validate.number("column 'utility'", row["utility"])
    if value is None:
        if name is None and higher is None:
            return None
        raise InputError(
            "column 'utility' must hold a number where the others describe it, got an empty cell."
        )
    better = higher if higher is not None else (old.higher_is_better if old else True)
    return Utility(value, name or (old.name if old else "utility"), higher_is_better=better)


def _truth(cell: Any) -> bool | None:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if cell is None:
        return None
    word = f"{cell:g}" if isinstance(cell, float) else str(cell).lower()
    if word not in words:
        raise InputError(f"column 'higher_is_better' must hold true or false, got {cell!r}.")
    return words[word]


# --- Value of the measure in each audit, and whether it can be compared with the others ---


# Fixed before any audit is seen, and all of them decide whether a release got worse: each gets an equal part of the error,
# so none is picked for being striking. The advantage looks wherever a threshold can and holds for any law, so that it alone
# puts audits in an order; the AUC sees a small change of all records, for which the advantage's interval is too wide.
COMPARED = ("advantage", "auc")
REJECTED = "fit rejected"  # a mark
Ends = tuple[float, float]
_DIGITS = 9  # in which two deltas must agree
_HALF = 0.0005  # by how much a published rate may have been rounded


class Scale(NamedTuple):
    """Properties that two numbers must share before one can be called the larger.

    Attributes:
        delta: Delta of an epsilon, rounded to nine digits; None for other measures.
        adjacency: Adjacency of a number about the training algorithm, or None.
        unit: Unit of the counts: a record or a person.
        method: How the number was made, or None if there is none.
        members: Coverage of the members: a sample, a census or a subset.
    """

    delta: float | None
    adjacency: Adjacency | None
    unit: str
    method: str | None
    members: str


@dataclass(frozen=True, eq=False)
class Measurement:
    """Value of the measure in one audit.

    Attributes:
        run: The audit.
        estimate: Estimate of the measure, or None if the audit has none.
        reason: Reason why the audit is left out of the landscape and its frontier, or None.
        marks: Warnings about comparing the value with the others.
        ends: The interval of one of the two measures that decide; those of all audits hold at once, with
            ``confidence``. None for other measures, and if a result does not keep the data for its interval.
        confidence: The lowest of the audits; None if there are no ends.
    """

    run: Run
    estimate: Estimate | None
    reason: str | None
    marks: tuple[str, ...] = ()
    ends: Ends | None = None
    confidence: float | None = None

    @property
    def value(self) -> float | None:
        """The value of the measure, or None."""
        return None if self.estimate is None else self.estimate.value

    @property
    def day(self) -> str | None:
        """The day on which the audit was made, such as ``2026-03-01``, or None."""
        made = made_at(self.run.result.provenance)
        return None if made is None else made.date().isoformat()

    @cached_property
    def scale(self) -> Scale:
        """The scale of the value."""
        item, data = self.estimate, self.run.result.data
        delta = None if item is None or item.delta is None else float(f"{item.delta:.{_DIGITS}g}")
        adjacency, method = (getattr(item, name, None) for name in ("adjacency", "method"))
        members = str(data.get("members", "sample"))
        return Scale(delta, adjacency, str(data.get("unit") or "record"), method, members)

    @property
    def ceiling(self) -> float | None:
        """The largest lower bound that this audit could have certified, or None if the measure is none."""
        bound = self.estimate is not None and metric(self.estimate.name).lower_bound
        return ceiling(self.estimate) if bound else None


def higher_is_better(runs: Iterable[Run]) -> bool:
    """Return whether a larger utility is a better model."""
    return next((run.utility.higher_is_better for run in runs if run.utility is not None), True)


def leakage(value: float, *, measure: str) -> float:
    """Return the measure as a number that grows with the leakage, for the frontier."""
    return value if metric(measure).more_is_worse else -value


def measured(runs: Sequence[Run], *, measure: str) -> tuple[Measurement, ...]:
    """Return the value of the measure in each audit."""
    estimates = [find(run.result, measure) for run in runs]
    items = [Measurement(run, item, _reason(run, item)) for run, item in zip(runs, estimates, strict=True)]
    used = [item.scale for item in items if item.reason is None] or [item.scale for item in items]
    usual = [_most(values) for values in zip(*used, strict=True)]
    levels = [item.confidence for item in estimates if item is not None and item.confidence is not None]
    level = min(levels, default=0.0)
    result = []
    for item in items:
        ends = None if item.reason else _ends(item.run, item.estimate, confidence=level, audits=len(runs))
        confidence = None if ends is None else level
        result.append(replace(item, marks=_marks(item, usual), ends=ends, confidence=confidence))
    return tuple(result)


def _ends(run: Run, estimate: Estimate | None, *, confidence: float, audits: int) -> Ends | None:
    if estimate is None or estimate.name not in COMPARED or too_narrow(run.result) is not None:
        return None
    if not (0 < confidence < 1 and 0 <= (estimate.value or 0.0) <= 1):
        return None
    share = error_share(confidence, audits=audits)
    return interval_at(estimate.name, estimate, data=run.result.data, alpha=share)


def outward(ends: Ends) -> Ends:
    """Return an interval with three significant digits, which holds the other.

    >>> outward((0.10262414795682581, 0.5))
    (0.102, 0.5)
    """
    return rounded(ends[0], toward="down"), rounded(ends[1], toward="up")


def error_share(confidence: float, *, audits: int) -> float:
    """Return the error of each interval, so that those of both measures of all audits hold at once."""
    return (1 - confidence) / (len(COMPARED) * audits)


def _most(values: Sequence[object]) -> tuple[object, ...]:
    """Return the value that most of them have; none where two are as frequent."""
    counted = Counter(values).most_common(2)
    tie = len(counted) > 1 and counted[0][1] == counted[1][1]
    return () if tie else (counted[0][0],)


def _reason(run: Run, estimate: Estimate | None) -> str | None:
    failed = failed_validity(run.result.checks)
    if failed:
        names = ", ".join(check.name.replace("_", " ") for check in failed)
        return f"a validity check failed ({names}), so its numbers do not measure leakage"
    if (blind := why_blind(run.result.checks)) is not None:
        return blind
    if estimate is None:
        return "the audit has no such number"
    if estimate.value is None:
        return estimate.reason or "the audit could not compute it"
    return None if math.isfinite(estimate.value) else "it is infinite"


def _marks(item: Measurement, usual: Sequence[tuple[object, ...]]) -> tuple[str, ...]:
    if item.value is None:
        return ()
    at, result = item.scale, [REJECTED] if detail(item.estimate, "fit", "rejected") else []
    words = (
        f"delta {as_stated(at.delta)}",
        f"adjacency {at.adjacency or 'not stated'}",
        f"counted by {at.unit}",
        "another method",
        f"members are a {at.members}",
    )
    result += [text for text, mine, most in zip(words, at, usual, strict=True) if (mine,) != most]
    return tuple(result)


# --- The interval of one row of one audit at another error, from the data in its result; the members count as draws ---

_MOST = 2**30  # records


def interval_at(name: str, estimate: Estimate, *, data: Mapping[str, Any], alpha: float) -> Ends | None:
    """Return both ends, or None if the result does not keep the data for them.

    Of a result for everybody they hold those of its value before it was rounded, and are rounded outward.

    Args:
        name: ``advantage`` or ``auc``.
        estimate: The row of that name, with a value.
        data: ``AuditResult.data``.
        alpha: The error of the interval, in (0, 1).
    """
    if not is_public(data):
        return _interval(name, estimate, data=data, alpha=alpha)
    sides = (min(max((estimate.value or 0.0) + away, 0.0), 1.0) for away in (-_HALF, _HALF))
    low, high = (_interval(name, replace(estimate, value=x), data=data, alpha=alpha) for x in sides)
    return low and high and outward((low[0], high[1]))


def _interval(name: str, estimate: Estimate, *, data: Mapping[str, Any], alpha: float) -> Ends | None:
    from auditor.estimators.gap import gap_limits
    from auditor.estimators.rates import interval, placements_of

    sizes, value = _sizes(data), estimate.value or 0.0
    if sizes is None:
        return None
    if name == "advantage":
        # In a census too: without its members' share of the error, two training sets would differ by chance alone.
        return gap_limits(value, n_member=sizes[0], n_nonmember=sizes[1], alpha=alpha)
    placements = placements_of(estimate)
    return None if placements is None else interval(value, placements, sizes=sizes, alpha=alpha)


def _sizes(data: Mapping[str, Any]) -> tuple[int, int] | None:
    sizes = data.get("n_member"), data.get("n_nonmember")
    if not all(isinstance(size, int) and 1 < size < _MOST for size in sizes):
        return None
    return int(sizes[0] or 0), int(sizes[1] or 0)


def too_narrow(result: AuditResult) -> str | None:
    """Return why the intervals of an audit are narrower than they say, or None."""
    for check in result.checks:
        details = check.details
        if check.name == "persons" and not details.get("combined") and (details.get("largest") or 1) > 1:
            return "records of one person are counted as independent, so that the intervals are too narrow"
        repeats = details.get("within_members") or details.get("within_nonmembers")
        if check.name == "duplicates" and repeats and "trained" not in details:
            return "rows of one id are counted as independent, so that the intervals are too narrow"
    return None
