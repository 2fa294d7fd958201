"""The grid of p-values of the published test as tables, for readers who do not see the picture."""

from typing import Any

from auditor.report import formatting
from auditor.report.lookup import MIXTURE, STAR, amount, dig, find, number
from auditor.result import AuditResult

__all__ = ["grid_tables"]

_MOST = 40
_LEVEL = 0.05


def grid_tables(result: AuditResult) -> list[dict[str, Any]]:
    """Return a table for each group: a row for each number of components, a column for each number of records."""
    tables = []
    for side, who in (("member", "Members"), ("nonmember", "Non-members")):
        found = _grid(result, side)
        if found is not None:
            tables.append({"heading": who, **found})
    return tables


def _grid(result: AuditResult, side: str) -> dict[str, Any] | None:
    """The grid of the mixture, or of the normals where no mixture was asked for."""
    for name in (MIXTURE, STAR):
        estimate = find(result, name)
        grid = dig(estimate.details, "fit", "grid", side) if estimate else None
        columns, rows, values = (_listed(grid, key) for key in ("sample_sizes", "components", "p_values"))
        if columns and rows and len(values) == len(rows):
            return {
                "columns": [formatting.count(number(size)) for size in columns],
                "rows": [
                    {"components": formatting.count(number(count)), "cells": [_cell(p) for p in _cells(line)]}
                    for count, line in zip(rows, values, strict=True)
                ],
            }
    return None


def _listed(grid: Any, key: str) -> list[Any]:
    found = dig(grid, key)
    return list(found)[:_MOST] if isinstance(found, list | tuple) else []


def _cells(line: Any) -> list[Any]:
    return list(line)[:_MOST] if isinstance(line, list | tuple) else []


def _cell(p: Any) -> dict[str, str]:
    """A p-value, marked in words where it rejects."""
    found = amount({"p": p}, "p")
    if found is None:
        return {"text": formatting.MISSING, "mark": ""}
    small = 0.001
    text = f"<{small}" if found < small else formatting.number(found, digits=2)
    return {"text": text, "mark": "rejected" if found < _LEVEL else ""}
