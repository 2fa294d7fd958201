"""How the values of a sensitive attribute are written into a record, as values: one record becomes one for each value."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["Columns", "Completions", "Rewritten"]

Batch = TypeVar("Batch")


@dataclass(frozen=True, eq=False)
class Columns:
    """The attribute is these columns of the last axis of the features; every row of ``values`` is one completion.

    Attributes:
        columns: Index of the column, counting from 0, or the indices of several; each 0 or more.
        values: Shape (completions,) for one column, else (completions, columns), at least two different ones, as the
            network sees them (after scaling).
        extremes_only: Whether values between these were left out because domain knowledge says that they are closer
            together: cheap, and an assumption, which the claims then state.

    Raises:
        InputError: A column or a value that cannot be used.

    >>> Columns(0, [17, 18, 90]).values.ravel().tolist()
    [17.0, 18.0, 90.0]
    """

    columns: Any  # a tuple of ints once built
    values: Any  # a read-only array (completions, columns) once built
    extremes_only: bool = False

    def __post_init__(self) -> None:
        columns = _indices(self.columns)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", _table(self.values, len(columns)))

    @classmethod
    def extremes(cls, columns: int | Sequence[int], *, low: npt.ArrayLike, high: npt.ArrayLike) -> "Columns":
        """Return only the lowest and the highest value, which domain knowledge says are the farthest apart.

        Args:
            columns: As in the class.
            low: Lowest value, or one number for each column.
            high: Highest value, likewise.

        Raises:
            InputError: As in the class.

        >>> Columns.extremes(3, low=0.0, high=1.0).count
        2
        """
        low, high = np.atleast_1d(low), np.atleast_1d(high)
        if low.shape != high.shape:
            raise InputError(
                f"low and high must have one number for each column, got {low.size} and {high.size}."
            )
        pair = cls(columns, np.stack([low, high]), extremes_only=True)
        if (pair.values[0] > pair.values[1]).any():
            raise InputError(
                f"low must not be above high, got {pair.values[0].tolist()} and {pair.values[1].tolist()}."
            )
        return pair

    @classmethod
    def one_hot(cls, columns: Sequence[int]) -> "Columns":
        """Return a categorical attribute with one column for each category: 1 in one of them, 0 in the others.

        Args:
            columns: Indices of the columns, at least two.

        Raises:
            InputError: As in the class.

        >>> Columns.one_hot([4, 5, 6]).values.tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        return cls(columns, np.eye(len(_indices(columns))))

    @property
    def count(self) -> int:
        """How many completions a record has."""
        return len(self.values)

    def rows(self, width: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the completions as rows of the features' width (0 elsewhere), and where they overwrite a record.

        Args:
            width: Length of the last axis of the features.

        Raises:
            InputError: A column lies beyond the features.
        """
        if max(self.columns) >= width:
            raise InputError(
                f"completions must name columns of the features, got column {max(self.columns)} of {width}, counting from 0."
            )
        rows, written = np.zeros((self.count, width)), np.zeros(width, dtype=bool)
        rows[:, self.columns], written[list(self.columns)] = self.values, True
        return rows, written


@dataclass(frozen=True, eq=False)
class Rewritten:
    """Any other attribute: ``complete(features, value)`` returns the batch with that value written into every record.

    It gets a copy of its own for every value, in which it may write, and returns an array or tensor of the same shape
    and type.

    Attributes:
        complete: The function; features come as the tracker got them (an array or a tensor).
        values: The values of the attribute, at least two different ones.
        extremes_only: As in `Columns`.

    Raises:
        InputError: No function, or fewer than two different values.

    >>> second = Rewritten(lambda batch, value: np.where(np.arange(3) == 1, value, batch), values=(0.0, 0.5, 1.0))
    >>> [batch.tolist() for batch in second.batches(np.array([[7.0, 8.0, 9.0]]))]
    [[[7.0, 0.0, 9.0]], [[7.0, 0.5, 9.0]], [[7.0, 1.0, 9.0]]]
    """

    complete: Callable[[Any, Any], Any]
    values: Any  # a tuple once built
    extremes_only: bool = False

    def __post_init__(self) -> None:
        if not callable(self.complete):
            raise InputError(
                f"complete must be a function of a batch and a value, got {type(self.complete).__name__}."
            )
        if isinstance(self.values, str | bytes) or not isinstance(self.values, Iterable):
            raise InputError(f"values must be a list of values of the attribute, got {self.values!r}.")
        values = tuple(self.values)
        _at_least_two(1 + any(not np.array_equal(values[0], value) for value in values[1:]) if values else 0)
        object.__setattr__(self, "values", values)

    @property
    def count(self) -> int:
        """How many completions a record has."""
        return len(self.values)

    def batches(self, features: Batch) -> list[Batch]:
        """Return the batch once for each value.

        Raises:
            InputError: A batch of another shape or type came back.
        """
        # Copied before and after: the function may write into what it gets, and may return the same array every time.
        completed: list[Batch] = [_copy(self.complete(_copy(features), value)) for value in self.values]
        wanted = _described(features)
        for value, batch in zip(self.values, completed, strict=True):
            got = _described(batch)
            if got != wanted:
                raise InputError(
                    f"complete must return a batch of the shape and type it got, {wanted}, got {got} for value"
                    f" {value!r}."
                )
        return completed


Completions = Columns | Rewritten
_FEWEST = 2


def _copy(batch: Any) -> Any:
    """Return an array or tensor with memory of its own; TensorFlow's tensors cannot be written to."""
    if hasattr(batch, "clone"):
        return batch.clone()
    return np.copy(batch) if isinstance(batch, np.ndarray) else batch


def _described(batch: Any) -> str:
    if not hasattr(batch, "shape") or not hasattr(batch, "dtype"):
        return type(batch).__name__
    # PyTorch's types print with its name, which an array's do not have: the two are not the same here either.
    return f"{tuple(batch.shape)} of {getattr(batch.dtype, 'name', batch.dtype)}"


def _at_least_two(different: int) -> None:
    if different < _FEWEST:
        raise InputError(
            f"values must hold at least 2 different values of the attribute, got {different}; one has nothing to infer."
        )


def _indices(columns: Any) -> tuple[int, ...]:
    listed = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
    if any(isinstance(column, bool | np.bool_) for column in listed):
        raise InputError(f"columns must be indices, counting from 0, got {columns!r}.")
    indices = tuple(_validate.at_least("columns", column, least=0) for column in listed)
    if not indices or len(set(indices)) < len(indices):
        raise InputError(f"columns must name at least one column, each once, got {listed}.")
    return indices


def _table(values: Any, width: int) -> Floats:
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("values must be numbers, with one row for each value of the attribute.") from None
    if table.ndim == 1 and width == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != width:  # noqa: PLR2004  rows and columns
        raise InputError(
            f"values must have one row for each value of the attribute and {width} columns, got shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise InputError(f"values must be finite, got {int((~np.isfinite(table)).sum())} that are not.")
    _at_least_two(len(np.unique(table, axis=0)))
    table.setflags(write=False)
    return table
