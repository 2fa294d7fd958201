"""The tracker without a framework, the shared part of every tracker, and the writing of an attribute's values into records."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from auditor.core import validate
from auditor.core.errors import InputError, import_optional
from auditor.core.numbers import unit
from auditor.core.options import DPSGD
from auditor.core.values import Claim, Floats
from auditor.theory.attributes import ATTRIBUTE_PRIVACY_NOTE, attribute_inference

# --- How the values of a sensitive attribute are written into a record, as values: one record becomes one for each value ---


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
            high: Highest value, or one number for each column.

        Raises:
            InputError: As in the class.

        >>> len(Columns.extremes(3, low=0.0, high=1.0).values)
        2
        """
        low, high = np.atleast_1d(low), np.atleast_1d(high)
        if low.shape != high.shape:
            raise InputError(
                f"low and high must have one number for each column, got {low.size} and {high.size}."
            )
        return cls(columns, np.stack([low, high]), extremes_only=True)

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
        rows, written = np.zeros((len(self.values), width)), np.zeros(width, dtype=bool)
        rows[:, self.columns], written[list(self.columns)] = self.values, True
        return rows, written

    def batches(self, features: Any, write: Callable[[Any, Any, Any], Any]) -> list[Any]:
        """Return the batch once for each completion.

        Args:
            features: Array or tensor with the columns on the last axis.
            write: Function from the place, the values and the features to the batch.

        Raises:
            InputError: As in `rows`, or values that whole numbers cannot hold.
        """
        rows, written = self.rows(int(features.shape[-1]))
        kind = _kind(features).removeprefix("torch.")
        with np.errstate(invalid="ignore"):
            if "float" not in kind and (rows.astype(kind) != rows).any():
                raise InputError(
                    f"completions must be whole numbers for features of type {kind}; convert the features first."
                )
        return [write(written, row, features) for row in rows]


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

    def batches(self, features: Batch, _write: Any = None) -> list[Batch]:
        """Return the batch once for each value.

        Raises:
            InputError: A batch of another shape or type came back.
        """
        # Copied before and after: the function may write into its argument, and may return the same array every time.
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
    return f"{tuple(batch.shape)} of {_kind(batch)}"


def _kind(batch: Any) -> str:
    return str(getattr(batch.dtype, "name", batch.dtype))


def _at_least_two(different: int) -> None:
    if different < _FEWEST:
        raise InputError(
            f"values must hold at least 2 different values of the attribute, got {different}; one has nothing to infer."
        )


def _indices(columns: Any) -> tuple[int, ...]:
    listed = np.atleast_1d(np.asarray(columns, dtype=object)).tolist()
    if any(isinstance(column, bool | np.bool_) for column in listed):
        raise InputError(f"columns must be indices, counting from 0, got {columns!r}.")
    indices = tuple(validate.at_least("columns", column, least=0) for column in listed)
    if not indices or len(set(indices)) < len(indices):
        raise InputError(f"columns must name at least one column, each once, got {listed}.")
    return indices


def _table(values: Any, width: int) -> Floats:
    table = np.array(validate.numbers("values", values, np.isfinite, "be finite"))
    if table.ndim == 1 and width == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != width:  # noqa: PLR2004  rows and columns
        raise InputError(
            f"values must have one row for each value of the attribute and {width} columns, got shape {table.shape}."
        )
    _at_least_two(len(np.unique(table, axis=0)))
    table.setflags(write=False)
    return table


# --- How far apart the gradients of one record are over the values of its attribute: the diameter of a set of points ---


@dataclass(frozen=True)
class Full:
    """The largest distance of any two completions, exactly.

    Only records that may hold the largest distance of the batch are compared pair by pair. That costs more than
    `Approximate`, and can cost as much as comparing all pairs of all records by one product of matrices.
    """


@dataclass(frozen=True)
class Approximate:
    """Twice the largest distance to the mean of the completions: an upper bound, at most twice the exact one.

    The paper calls it a lower bound; it bounds the distance from above, and so the Bayes security from below (erratum
    to Cherubin et al. 2024, Section 5.4).
    """


Distance = Full | Approximate


def clipped(gradients: Floats, *, clipping_norm: float) -> Floats:
    """Return gradients scaled to at most the clipping norm, g / max(1, |g| / C).

    Args:
        gradients: Shape (..., parameters).
        clipping_norm: C, above 0.

    Source: Cherubin et al. 2024, Algorithm 4.

    >>> clipped(np.array([[30.0, 40.0], [0.0, 4.0]]), clipping_norm=5.0).round(12).tolist()
    [[3.0, 4.0], [0.0, 4.0]]
    """
    # Divided by its largest entry first, so that no square is beyond a double.
    largest = np.maximum(np.abs(gradients).max(axis=-1, keepdims=True, initial=0.0), clipping_norm)
    scaled = gradients / largest
    length = np.maximum(_length(scaled)[..., None], np.finfo(np.float64).tiny)
    return np.asarray(scaled * np.minimum(largest, clipping_norm / length))


def _pick(points: Any, places: npt.NDArray[np.intp]) -> Any:
    return points[np.arange(len(places)), places]


@dataclass(frozen=True)
class Arrays:
    """Array functions that the distances need of a framework; large arrays stay on their device.

    Attributes:
        centred: Points less the mean of their set.
        lengths: Lengths of the vectors on the last axis.
        pick: Function that picks the point of each set at its place.
        numbers: A small array as one of NumPy.
    """

    centred: Callable[[Any], Any]
    lengths: Callable[[Any], Any]
    numbers: Callable[[Any], Floats]
    pick: Callable[[Any, npt.NDArray[np.intp]], Any] = _pick


def _length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)))


_NUMPY = Arrays(lambda points: points - points.mean(axis=1, keepdims=True), _length, np.asarray)


def largest_distance(
    points: Any, *, distance: Distance, known: float = 0.0, arrays: Arrays = _NUMPY
) -> float:
    """Return the largest distance of two points of the same set, over all sets.

    Args:
        points: Shape (sets, points, coordinates).
        distance: `Full` or `Approximate`.
        known: A distance that is there already; the result is at least this.
        arrays: Array functions for the points.

    Returns:
        The distance; NaN where a point is not finite.

    Source: Cherubin et al. 2024, Section 5.4.

    >>> corners = np.array([[[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]])
    >>> largest_distance(corners, distance=Full())
    5.0
    """
    if 0 in points.shape:
        return known
    centred = arrays.centred(points)
    radii = arrays.numbers(arrays.lengths(centred))
    if not np.isfinite(radii).all():
        return math.nan
    if isinstance(distance, Approximate):
        return max(known, 2 * float(radii.max()))
    # No two points are farther apart than the two largest radii together, and some point is as far from the one with
    # the largest radius as found here. Only sets that might still hold more need all pairs.
    first = arrays.pick(centred, radii.argmax(axis=1))
    # The points have mean 0, so that their inner products cancel nothing.
    apart = radii**2 - 2 * arrays.numbers((centred @ first[..., None])[..., 0])
    pairs = arrays.pick(centred, apart.argmax(axis=1)) - first
    best = max(known, float(arrays.numbers(arrays.lengths(pairs)).max()))
    top = np.sort(radii, axis=1)[:, -2:].sum(axis=1)
    for row in np.flatnonzero(top > best).tolist():
        one, squares = arrays.numbers(centred[row]), radii[row] ** 2
        place = int(np.argmax(squares[:, None] + squares - 2 * one @ one.T))
        best = max(best, float(np.linalg.norm(one[place // len(one)] - one[place % len(one)])))
    return best


# --- The largest distance of each training step, kept during training, and the resulting promise ---

_EXTREMES_NOTE = (
    "Only the extreme values of the attribute were compared: this assumes that none between them is farther."
)
_APPROXIMATE_NOTE = (
    "The distances are upper bounds (twice the distance to the mean), which errs on the safe side."
)
_SHUFFLED_NOTE = (
    "The loader went through shuffled or ordered records instead of drawing each batch independently, which is neither of the"
    " ways of drawing that are accounted for: this number assumes draws that did not happen."
)
_DROPOUT_NOTE = "Dropout was off while the distances were measured; with it they can be larger, up to 2 C."


class _Steps:
    """The steps of a run, each with the largest distance seen in it; shared by every tracker.

    A step is open from the end of the last one until `end_step`; batches observed in between, one or
    several, belongs to it.
    """

    def __init__(
        self, *, clipping_norm: float, distance: Distance = Full(), extremes_only: bool = False
    ) -> None:
        self.clipping_norm = validate.positive("clipping_norm", clipping_norm)
        validate.instance("distance", distance, (Full, Approximate))
        self.distance = distance
        self._assumptions = [_APPROXIMATE_NOTE] if isinstance(distance, Approximate) else []
        self._assumptions += [_EXTREMES_NOTE] if extremes_only else []
        self._shuffled = False
        self._closed: list[float] = []
        self._open: float | None = None

    @property
    def sensitivities(self) -> Floats:
        """R_t of the steps that have ended, in the units of the gradients, in [0, 2 C].

        Keep them to yourself: they reveal in which steps a record was drawn.
        """
        return np.array(self._closed, dtype=np.float64)

    def end_step(self) -> None:
        """Close the open step; call it once for each update of the model, after its last batch was observed.

        Raises:
            InputError: Nothing was observed since the last step; an empty batch must be observed too.
        """
        self._closed.append(self._observed())
        self._open = None

    def claims(self, training: DPSGD, *, fixed_in_advance: bool = False) -> tuple[Claim, ...]:
        """Return the promise of the run against attribute inference, from the steps that have ended.

        Do not publish these numbers where membership matters (see `auditor.theory.attribute_inference`).

        Args:
            training: The run as it was tracked: as many steps, and the same clipping norm.
            fixed_in_advance: As in `auditor.theory.attribute_inference`; leave it false for distances that a tracker measured.

        Raises:
            InputError: Another number of steps or another clipping norm.
        """
        validate.instance("training", training, (DPSGD,))
        norms = np.unique(np.asarray(training.clipping_norm, dtype=np.float64))
        if norms.size > 1 or not np.isclose(norms[0], self.clipping_norm, rtol=1e-9, atol=0):
            raise InputError(
                f"training must have the clipping norm that was tracked, {self.clipping_norm:g},"
                f" got {training.clipping_norm!r}; give clipping_norm in DPSGD."
            )
        rows = attribute_inference(
            training, sensitivities=self.sensitivities, fixed_in_advance=fixed_in_advance
        )
        return tuple(self._noted(row) for row in rows)

    def summary(self, training: DPSGD) -> str:
        """Return the claims as lines of text for the person who trained, ending in the privacy note.

        Args:
            training: As in `claims`.

        Raises:
            InputError: As in `claims`.
        """
        rows = [row for row in self.claims(training) if row.metric.endswith("bayes_security")]
        lines = [
            *(
                f"Bayes security against {'attribute' if 'attribute' in row.metric else 'membership'} inference:"
                f" {unit(row.value, toward='down')} ({row.status}; {row.method})"
                for row in rows
            ),
            *self._assumptions,
            *([_SHUFFLED_NOTE] if self._shuffled else []),
            ATTRIBUTE_PRIVACY_NOTE,
        ]
        return "\n".join(lines)

    def _noted(self, claim: Claim) -> Claim:
        """Return a claim with the tracker's notes: about the attributes from the distances, and about the draws."""
        notes = [*self._assumptions] if claim.metric.startswith("attribute_") else []
        if self._shuffled:
            notes.append(_SHUFFLED_NOTE)
        # A claim without a note keeps its own words only: no blank in front.
        note = " ".join(part for part in (claim.note, *notes) if part)
        return replace(claim, note=note, proven=claim.proven and not self._shuffled)

    def _observed(self) -> float:
        """Return the distance of the open step, which must be open."""
        if self._open is None:
            raise InputError(
                f"step {len(self._closed) + 1} ended before a batch was observed; call observe for every batch before"
                " the optimizer steps, also for an empty one."
            )
        return self._open

    def _raise_to(self, distance: float) -> None:
        if not np.isfinite(distance):
            raise InputError(
                f"gradients must be finite, got some that are not in step {len(self._closed) + 1}; is the learning rate"
                " too large, or a feature missing?"
            )
        self._open = max(self._open or 0.0, min(distance, 2 * self.clipping_norm))


class SensitivityTracker(_Steps):
    """The distances of each step from per-example gradients that you computed yourself, in any framework.

    PyTorch and TensorFlow have trackers of their own, which compute the gradients: `TorchSensitivityTracker` and
    `TensorFlowSensitivityTracker`.

    Attributes:
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.
        extremes_only: Whether only the extreme values of the attribute are completed, which the claims then state.

    Source: Cherubin et al. 2024, Algorithm 4.

    >>> from auditor.core.options import DPSGD
    >>> tracker = SensitivityTracker(clipping_norm=1.0)
    >>> tracker.observe([[[3.0, 4.0], [0.0, 0.0]]])  # one record, two values of its attribute, two parameters
    >>> tracker.end_step()
    >>> tracker.sensitivities.tolist()
    [1.0]
    >>> [round(row.value, 3) for row in tracker.claims(DPSGD(1.0, 1.0, 1))[::2]]
    [0.617, 0.465, 0.617, 0.317, 0.317]
    """

    def observe(self, gradients: npt.ArrayLike) -> None:
        """Observe the gradients of one batch, before its update.

        Args:
            gradients: Shape (records, completions, parameters), two completions or more: for each record drawn, the
                gradient of its loss with each value of the attribute, not yet clipped. No records are fine, and count
                as distance 0.

        Raises:
            InputError: Another shape, fewer than two completions, or gradients that are not finite.
        """
        array = validate.numbers("gradients", gradients, np.isfinite, "be finite")
        if array.ndim and not len(array):
            self._raise_to(0.0)
            return
        if array.ndim != 3 or not array.size or array.shape[1] < 2:  # noqa: PLR2004  two have a distance
            raise InputError(
                "gradients must have shape (records, completions, parameters) with 2 completions or more of each"
                f" record, got {array.shape}."
            )
        points = clipped(array, clipping_norm=self.clipping_norm)
        self._raise_to(largest_distance(points, distance=self.distance, known=self._open or 0.0))


# --- Shared parts of the trackers of PyTorch and TensorFlow: steps whose gradients the tracker computes from a model ---


class ModelSteps(_Steps, ABC):
    """The steps of a run, and the functions that complete a record and take its gradients."""

    def __init__(
        self,
        model: Any,
        loss_fn: Callable[[Any, Any], Any],
        *,
        completions: Completions,
        clipping_norm: float,
        distance: Distance = Full(),
        most_numbers: int = 2**22,
    ) -> None:
        name, module = self._framework
        self._library = import_optional(module, purpose=f"tracking sensitivities in {name}", extra=module)
        validate.instance("completions", completions, (Columns, Rewritten))
        super().__init__(
            clipping_norm=clipping_norm, distance=distance, extremes_only=completions.extremes_only
        )
        if not callable(loss_fn):
            raise InputError(
                f"loss_fn must be a function of one batch's outputs and labels, got {type(loss_fn).__name__}."
            )
        self._loss_fn, self._completions = loss_fn, completions
        self._most = validate.at_least("most_numbers", most_numbers, least=1)
        self._model = self._usable(model)
        if any(isinstance(rate, int | float) and rate > 0 for rate in self._dropped()):
            self._assumptions.append(_DROPOUT_NOTE)

    # Parts that each framework implements.
    _framework: ClassVar[tuple[str, str]]  # its name, and its module, which is also the extra
    _arrays: Arrays
    _failures: tuple[type[Exception], ...] = (IndexError, RuntimeError, TypeError, ValueError)

    @abstractmethod
    def _usable(self, model: Any) -> Any:
        """Return the network whose gradients are taken; refuse one that mixes the records of a batch."""

    @abstractmethod
    def _dropped(self) -> list[Any]:
        """Return the randomness of each layer in training; randomness inside a model's own code cannot be seen."""

    @abstractmethod
    def _tensor(self, values: Any) -> Any:
        """Return a tensor, or an array or list of numbers as one; a `TypeError` or `ValueError` for anything else."""

    @abstractmethod
    def _write(self, written: Any, row: Floats, features: Any) -> Any:
        """Return the features with the row's values where they are to be written on the last axis."""

    @abstractmethod
    def _interleaved(self, batches: list[Any]) -> Any:
        """Return the first record of every batch, then the second of every batch, and so on."""

    @abstractmethod
    def _sizes(self) -> int:
        """Return how many numbers are trained."""

    @abstractmethod
    def _gradients(self, records: Any, labels: Any) -> Any:
        """Return one gradient for each record, shape (records, parameters)."""

    @abstractmethod
    def _clipped(self, gradients: Any, completions: int) -> Any:
        """Return g / max(1, |g| / C), shape (records, completions, parameters), with no square beyond the type."""

    def _undisturbed(self) -> AbstractContextManager[None]:
        """Keep the model as training left it while its gradients are taken."""
        return nullcontext()

    def observe(self, features: Any, labels: Any) -> None:
        """Observe one batch, or a part of it, before its update.

        Args:
            features: Tensor or array whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor or array with one label, or one row of labels, for each.

        Raises:
            InputError: No batch, gradients that are not finite or cannot be had record by record, completions that do
                not fit, or a model that is random at prediction.
        """
        features, labels = self._numbers("features", features), self._numbers("labels", labels)
        self._checked(features, labels)
        farthest, choice = self._open or 0.0, self.distance
        with self._undisturbed():
            for part in self._parts(int(features.shape[0])):
                points = self._points(features[part], labels[part])
                farthest = largest_distance(points, distance=choice, known=farthest, arrays=self._arrays)
                if math.isnan(farthest):
                    break
        self._raise_to(farthest)

    def _numbers(self, name: str, values: Any) -> Any:
        try:
            return self._tensor(values)
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"{name} must be a tensor or an array of numbers, got {type(values).__name__}."
            ) from None

    def _points(self, features: Any, labels: Any) -> Any:
        """Return one clipped gradient for each record and completion, shape (records, completions, parameters)."""
        count = len(self._completions.values)
        records = self._interleaved(self._completions.batches(features, self._write))
        try:
            return self._clipped(self._gradients(records, self._interleaved([labels] * count)), count)
        except InputError:
            raise
        except self._failures as error:
            raise InputError(
                "gradients must be possible for one record at a time and without randomness, got from model or loss_fn:"
                f" {validate.one_line(error)}."
            ) from error

    def _parts(self, records: int) -> list[slice]:
        """Return the records in parts whose gradients are few enough to be held at once."""
        parameters = self._sizes()
        if not parameters:
            raise InputError("model must have a parameter that is trained, got none; are all of them frozen?")
        rows = max(1, self._most // (parameters * len(self._completions.values)))
        return [slice(start, start + rows) for start in range(0, records, rows)]

    def _checked(self, features: Any, labels: Any) -> None:
        """Refuse a batch whose axes cannot be records, and columns that its features have not."""
        axes, labelled = tuple(features.shape), tuple(labels.shape)
        if not axes or not labelled or (None not in (axes[0], labelled[0]) and axes[0] != labelled[0]):
            raise InputError(
                "features and labels must have the records of one batch on the first axis, got shapes"
                f" {axes} and {labelled}."
            )
        if isinstance(self._completions, Columns):
            if len(axes) < 2:  # noqa: PLR2004  records and columns
                raise InputError(
                    f"features must have the records on the first axis and columns on the last, got shape {axes}."
                )
            if axes[-1] is not None:  # not known to TensorFlow before the first batch
                self._completions.rows(int(axes[-1]))
