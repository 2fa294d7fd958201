"""A table of records as a source: its features, labels and the rest, a stretch at a time."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors.cells import Column, numbers, readable, without_gaps
from auditor.collectors.records import Records
from auditor.collectors.sources.reader import Kind, Reader, Stretch
from auditor.collectors.sources.roles import Roles
from auditor.collectors.sources.source import Batch
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError
from auditor.features import Features
from auditor.fingerprints import fingerprints

__all__ = ["TableSource"]

_ONE_TABLE = "give one table that holds both groups, with the name of its column of membership"


@dataclass(frozen=True, eq=False)
class TableSource:
    """Records of an open table.

    Attributes:
        reader: The columns.
        roles: Which column plays which part.
        task: What the labels are for; none where there is nothing to predict.
        member: Whether all records are members, or none of them is; none where a column says so.
        name: The table in error sentences.
        rows: How its rows are counted, in error sentences.
        path: Its file or folder, whose damage may show only while it is read; none in memory.
    """

    reader: Reader
    roles: Roles
    task: Task | None
    member: bool | None
    name: str
    rows: str
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.reader)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the cells of each feature are, in the order of the features."""
        return {name: self.reader.kinds[name] for name in self.roles.features}

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``."""
        with nullcontext() if self.path is None else readable(self.path):
            return self._batch(start, min(stop, len(self)))

    def _batch(self, start: int, stop: int) -> Batch:
        stretch = self.reader.read(start, stop)
        n = max(0, stop - start)
        features = self._features(stretch)
        labels = self._labels(stretch, n, start)
        columns = {field: without_gaps(stretch.column(name)) for field, name in self.roles.beside}
        if isinstance(self.task, Classification | None) and self.roles.labels:
            columns["label"] = labels if self.task else self._target(stretch, start)
        return Batch(
            records=Records(self.name, features, labels, first_row=start),
            member=self._member(stretch, n, start),
            columns=columns,
            fingerprint=_fingerprint(features),
        )

    def _features(self, stretch: Stretch) -> Any:
        names = self.roles.features
        one_array = len(names) == 1 and self.reader.kinds[names[0]] is Kind.VECTOR
        if self.roles.alone or one_array:
            return stretch.column(names[0])
        return stretch.table(names)

    def _labels(self, stretch: Stretch, n: int, start: int) -> npt.NDArray[Any]:
        if self.task is None:
            return np.zeros(n)
        return self.task.labels(self.name, self._target(stretch, start))

    def _target(self, stretch: Stretch, start: int) -> Column:
        columns = [self._label(name, stretch.column(name), start) for name in self.roles.labels]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _label(self, name: str, column: Column, start: int) -> Column:
        """Return one column of labels, none of which may be missing or infinite."""
        import pandas as pd

        flat = column.reshape(column.shape[0], -1)
        bad = np.asarray(pd.isna(flat)).any(axis=1)
        if column.dtype.kind == "f":
            bad |= np.isinf(flat).any(axis=1)
        if bad.any():
            raise InputError(
                f"label column {name!r} of {self.name} must have a label in each row, got {int(bad.sum())} that are missing"
                f" or infinite (first at row {start + int(np.argmax(bad))}, {self.rows}); leave those rows out."
            )
        return column

    def _member(self, stretch: Stretch, n: int, start: int) -> npt.NDArray[np.bool_]:
        name = self.roles.member
        if name is None:
            return np.full(n, bool(self.member))
        place = f"column {name!r} of {self.name}"
        fix = _validate.CODING if self.member is None else _ONE_TABLE
        values = numbers(
            without_gaps(stretch.column(name)),
            place=place,
            rows=self.rows,
            truth=True,
            fix=fix,
            first_row=start,
        )
        wanted = (values == 0) | (values == 1) if self.member is None else values == self.member
        if not wanted.all():
            row = int(np.argmin(wanted))
            must = "hold only 0 (non-member) and 1 (member)"
            if self.member is not None:
                must = f"be {int(self.member)} in every row of a table of {'members' if self.member else 'non-members'}"
            raise InputError(
                f"{place} must {must}, got {values[row]:g} (first at row {start + row}, {self.rows}; {int((~wanted).sum())}"
                f" such values from there to row {start + n - 1}); {fix}."
            )
        return np.asarray(values == 1)


def _fingerprint(features: Any) -> npt.NDArray[np.uint64] | None:
    """Hashes of the features, as `auditor.collect` has them; none where they are no plain values."""
    empty: Any = features.iloc[:0] if hasattr(features, "iloc") else features[:0]
    try:
        return fingerprints(Features(member=features, nonmember=empty)).member
    except InputError:
        return None
