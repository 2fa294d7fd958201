"""A source gives stretches of a table of records, in any order, as often as asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from auditor.collectors.records import Records

__all__ = ["Batch", "Source"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some records of a table, in the order of the table, with what is known of them beside features and labels.

    Attributes:
        records: Features and labels; its name is the source's and its first row that of the table.
        member: Shape (n,), which records the model was trained on.
        columns: What is to stand beside the losses, by name: ``id``, ``group``, ``person``, and ``label`` where each
            record has one class; arrays of shape (n,).
        fingerprint: Shape (n,), a 64-bit hash of each record's features; none where they cannot be hashed.
    """

    records: Records
    member: npt.NDArray[np.bool_]
    columns: Mapping[str, npt.NDArray[Any]]
    fingerprint: npt.NDArray[np.uint64] | None


class Source(Protocol):
    """A table of records. It can be pickled, so that another process can read it too."""

    @property
    def name(self) -> str:
        """The table in error sentences: "file 'adult.csv'", "members"."""
        ...

    def __len__(self) -> int:
        """How many records there are."""
        ...

    def read(self, start: int, stop: int) -> Batch:
        """Return the records from ``start`` to before ``stop``; quick where calls follow the order of the table.

        Raises:
            InputError: Rows that cannot be read, labels or membership that are none; the sentence names the first.
        """
        ...
