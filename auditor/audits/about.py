"""A table that says more about each result of a comparison: its utility, strategy, category and model."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor import _validate
from auditor.audits.runs import Run, named
from auditor.choices import Utility
from auditor.errors import InputError

__all__ = ["COLUMNS", "with_table"]

COLUMNS = ("result", "utility", "utility_name", "higher_is_better", "strategy", "category", "model")
_TEXTS = ("strategy", "category", "model", "utility_name")


def with_table(found: Sequence[Run], about: Any) -> tuple[Run, ...]:
    """Return the audits with what the table says about them; an empty cell leaves what the result says.

    Args:
        found: The audits.
        about: The path of a ``.csv`` or ``.parquet`` file, a DataFrame, or a dictionary of columns: ``result`` (a file
            name, a model's name, or the number of the result, from 1) and any of ``utility``, ``utility_name``,
            ``higher_is_better``, ``strategy``, ``category`` and ``model``.

    Raises:
        InputError: A table or a cell that cannot be used; the sentence names the column and the row.
    """
    from auditor.collectors import tables

    table = tables.opened(about)
    names = list(table.names)
    for name in names:
        _validate.known(f"column of {table.place}", name, COLUMNS)
        if names.count(name) > 1:
            raise InputError(f"{table.place} has {names.count(name)} columns named {name!r}; keep one.")
    if "result" not in names or len(names) == 1:
        raise InputError(
            f"{table.place} must have a column 'result' and at least one more of {', '.join(map(repr, COLUMNS[1:]))}, got"
            f" {', '.join(map(repr, names)) or 'no columns'}."
        )
    columns = {name: _cells(values) for name, values in table.read([], text=names).items()}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    told: dict[int, Run] = {}
    for place, row in enumerate(rows):
        where = f"(row {place} of {table.place}, {table.rows})"
        run = _subject(found, row["result"], where)
        if run.number in told:
            raise InputError(
                f"column 'result' names result {run.number} twice, the second time as {row['result']!r} {where}; give each"
                " result one row."
            )
        told[run.number] = _told(run, row, where)
    return tuple(told.get(run.number, run) for run in found)


def _cells(values: Any) -> list[Any]:
    """Plain Python values, null for what is missing or blank."""
    return [_cell(value) for value in np.asarray(values).tolist()]


def _cell(value: Any) -> Any:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        return value.strip() or None
    return value


def _subject(found: Sequence[Run], key: Any, where: str) -> Run:
    if key is None:
        raise InputError(f"column 'result' must name a result in every row, got an empty cell {where}.")
    try:
        return named(found, key, argument="column 'result'")
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')} {where}.") from None


def _told(run: Run, row: dict[str, Any], where: str) -> Run:
    texts = {name: _words(name, row.get(name), where) for name in _TEXTS}
    return replace(
        run,
        model=texts["model"] or run.model,
        strategy=texts["strategy"] or run.strategy,
        category=texts["category"] or run.category,
        utility=_utility(run, row, name=texts["utility_name"], where=where),
    )


def _words(name: str, cell: Any, where: str) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool | int | float):
        return f"{cell:g}" if isinstance(cell, float) else str(cell)
    raise InputError(f"column {name!r} must hold text, got {type(cell).__name__} {where}.")


def _utility(run: Run, row: dict[str, Any], *, name: str | None, where: str) -> Utility | None:
    cell, old = row.get("utility"), run.utility
    value = (old.value if old else None) if cell is None else _number(cell, where)
    higher = _truth(row.get("higher_is_better"), where)
    if value is None:
        if name is None and higher is None:
            return None
        raise InputError(
            f"column 'utility' must hold a number where the others describe it, got an empty cell {where}."
        )
    better = higher if higher is not None else (old.higher_is_better if old else True)
    return Utility(value, name or (old.name if old else "utility"), higher_is_better=better)


def _number(cell: Any, where: str) -> float:
    try:
        return _validate.number("column 'utility'", cell)
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')} {where}.") from None


def _truth(cell: Any, where: str) -> bool | None:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if cell is None:
        return None
    word = f"{cell:g}" if isinstance(cell, float) else str(cell).lower()
    if word not in words:
        raise InputError(f"column 'higher_is_better' must hold true or false, got {cell!r} {where}.")
    return words[word]
