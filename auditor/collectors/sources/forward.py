"""Rows of something that can only be read onwards, in Arrow batches, as stretches from anywhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from auditor.errors import InputError

__all__ = ["Forward"]


class Forward(ABC):
    """Reads on where a stretch follows the one before it, and begins anew where it does not.

    What is half read stays in this process: a pickled copy begins anew.
    """

    def __init__(self, *, place: str, rows: int) -> None:
        """Keep what is known of the table: how error sentences call it and how many rows it has."""
        self.place = place
        self._rows = rows
        self._batches: Iterator[Any] | None = None
        self._held: Any = None  # the batch that is not used up
        self._at = 0  # the row of the table that comes next

    def __len__(self) -> int:
        return self._rows

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_batches": None, "_held": None, "_at": 0}

    @abstractmethod
    def _begin(self, start: int) -> int:
        """Return the nearest row at or before this one from which reading can begin."""

    @abstractmethod
    def _from(self, begin: int) -> Iterator[Any]:
        """Return the record batches from a row on which reading can begin."""

    def batches(self, start: int, stop: int) -> list[Any]:
        """Return the rows from ``start`` to before ``stop`` as Arrow record batches.

        Raises:
            InputError: There are fewer rows than there were.
        """
        if start >= stop:
            return []
        if self._batches is None or start < self._at or self._begin(start) > self._at:
            self._at = self._begin(start)
            self._batches, self._held = self._from(self._at), None
        found = []
        while self._at < stop:
            try:
                batch = self._next()
            except BaseException:
                self._batches = self._held = None  # what broke is not read on
                raise
            skipped = min(max(0, start - self._at), batch.num_rows)
            taken = min(stop - self._at, batch.num_rows)
            if taken > skipped:
                found.append(batch.slice(skipped, taken - skipped))
            self._held = batch.slice(taken) if taken < batch.num_rows else None
            self._at += taken
        return found

    def _next(self) -> Any:
        if self._held is not None:
            return self._held
        batch = next(self._batches or iter(()), None)
        if batch is None:
            raise InputError(
                f"{self.place} has only {self._at} rows and had {self._rows} when it was opened; do not change it while"
                " it is read."
            )
        return batch
