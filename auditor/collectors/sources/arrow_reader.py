"""Stretches of a table that comes in Arrow batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.collectors.cells import Column
from auditor.collectors.sources.arrow_plan import Plan
from auditor.collectors.sources.forward import Forward
from auditor.collectors.sources.reader import Kind
from auditor.collectors.sources.vectors import stacked
from auditor.errors import InputError

__all__ = ["ArrowReader", "ArrowStretch"]


class ArrowReader(Forward):
    """Chosen columns of a table, whose batches have the plain types that the plans say."""

    _blank: Any = None

    def __init__(self, *, place: str, rows: int, plans: Mapping[str, Plan]) -> None:
        """Keep what is known of the table and its columns."""
        super().__init__(place=place, rows=rows)
        self._plans = dict(plans)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the cells of each column are."""
        return {name: plan.kind for name, plan in self._plans.items()}

    @property
    def types(self) -> dict[str, Any]:
        """The plain Arrow type of each column."""
        return {name: plan.type for name, plan in self._plans.items()}

    def read(self, start: int, stop: int) -> "ArrowStretch":
        """Return rows."""
        import pyarrow as pa

        batches = self.batches(start, stop)
        content = pa.Table.from_batches(batches, schema=pa.schema(list(self.types.items())))
        return ArrowStretch(content, self._plans, self.place, start, self._blank)


@dataclass(frozen=True, eq=False)
class ArrowStretch:
    """Some rows of an Arrow table.

    Attributes:
        content: The rows, as an Arrow table of the chosen columns in their plain types.
        plans: What each column is.
        place: The table, for error sentences.
        first_row: The number of the first row.
        blank: What a missing text is in a DataFrame; none leaves it to pandas.
    """

    content: Any
    plans: Mapping[str, Plan]
    place: str
    first_row: int
    blank: Any = None

    def column(self, name: str) -> Column:
        """Return one column as an array."""
        if self.plans[name].kind is Kind.VECTOR:
            return self._vectors(name)
        values = self.table([name]).iloc[:, 0]
        if self.plans[name].categories is not None:
            values = values.astype(object)
        column = np.asarray(values)
        if column.dtype.kind != "O":
            return column
        column = column.copy()
        column[np.asarray(values.isna())] = None
        return column

    def table(self, names: Sequence[str]) -> Any:
        """Return some columns as a DataFrame."""
        import pyarrow as pa

        columns = [_settled(self.content[name], self.plans[name]) for name in names]
        frame = pa.table(columns, names=list(names)).to_pandas(ignore_metadata=True)
        for name in names:
            changed = self._changed(name, frame[name])
            if changed is not None:
                frame[name] = changed
        return frame

    def _changed(self, name: str, values: Any) -> Any:
        """Return what pandas would have made of the whole column, where it made something else of a stretch."""
        import pandas as pd

        plan = self.plans[name]
        if plan.kind is Kind.VECTOR:
            return pd.Series(list(self._vectors(name)), index=values.index, dtype=object)
        if plan.categories is not None:
            return values.astype(pd.CategoricalDtype(list(plan.categories), ordered=plan.ordered))
        if plan.gaps and values.dtype == bool:
            return values.astype(object)
        if self.blank is not None and values.dtype == object:
            return values.where(values.notna(), self.blank)
        return None

    def _vectors(self, name: str) -> Column:
        shape = self.plans[name].shape
        found = stacked(self.content[name], name=name, place=self.place, first_row=self.first_row)
        if found.shape[0] and found.shape[1:] != shape:
            raise InputError(
                f"column {name!r} of {self.place} must hold vectors of equal length, got shape {found.shape[1:]} in row"
                f" {self.first_row}, counting from 0, and {shape} in the first row; make them equally long."
            )
        return found


def _settled(column: Any, plan: Plan) -> Any:
    """Return the column in a type of which pandas makes the same in every stretch."""
    import pyarrow as pa
    from pyarrow import types

    if plan.kind is Kind.VECTOR:
        return pa.nulls(len(column))  # the vectors are put in afterwards
    if plan.gaps and plan.categories is None and types.is_integer(plan.type):
        return column.cast(pa.float64(), safe=False)
    return column
