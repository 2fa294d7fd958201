"""The tracker without a framework, the shared part of every tracker, and the writing of an attribute's values into records."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from auditor.core import DPSGD, Array, Claim, Floats, InputError, import_optional, validate
from auditor.theory.attributes import attribute_inference

# --- How the values of a sensitive attribute are written into a record, as values: one record becomes one for each value ---

Batch = Array
_MOST = 2**22  # gradient entries held at once; a processor's cache likes them


@dataclass(frozen=True, eq=False)
class Columns:
    """The attribute is these columns of the last axis of the features; every row of ``values`` is one completion.

    For an attribute that is no column of the features, compute the gradients yourself and give them to a `SensitivityTracker`.

    A categorical attribute with one column for each of k categories has the values ``np.eye(k)``. Give every value that a
    record may have: the lowest and the highest alone are enough only if you know that none between them is farther.

    Attributes:
        columns: Index of the column, counting from 0, or the indices of several; each 0 or more.
        values: Shape (completions,) for one column, else (completions, columns), at least two different ones, as the
            network sees them (after scaling).

    Raises:
        InputError: A column or a value that cannot be used.

    >>> Columns(0, [17, 18, 90]).values.ravel().tolist()
    [17.0, 18.0, 90.0]
    """

    columns: Any  # a tuple of ints once built
    values: Any  # a read-only array (completions, columns) once built

    def __post_init__(self) -> None:
        listed = np.atleast_1d(np.asarray(self.columns, dtype=object)).tolist()
        if any(isinstance(column, bool | np.bool_) for column in listed):
            raise InputError(f"columns must be indices, counting from 0, got {self.columns!r}.")
        columns = tuple(validate.at_least("columns", column, least=0) for column in listed)
        if not columns or len(set(columns)) < len(columns):
            raise InputError(f"columns must name at least one column, each once, got {listed}.")
        table = np.array(validate.numbers("values", self.values, np.isfinite, "be finite"))
        if table.ndim == 1 and len(columns) == 1:
            table = table[:, None]
        if table.ndim != 2 or table.shape[1] != len(columns):  # noqa: PLR2004  rows and columns
            raise InputError(
                f"values must have one row for each value of the attribute and {len(columns)} columns, got shape"
                f" {table.shape}."
            )
        different = len(np.unique(table, axis=0))
        if different < 2:  # noqa: PLR2004
            raise InputError(
                f"values must hold at least 2 different values of the attribute, got {different}; one has nothing to infer."
            )
        table.setflags(write=False)
        vars(self).update(columns=columns, values=table)

    def completed(self, features: Batch) -> Batch:
        """Return every record once for each completion, shape (records, completions, ...).

        Args:
            features: Array with the records on the first axis and the columns on the last.

        Raises:
            InputError: A column lies beyond the features, or values that whole numbers cannot hold.

        >>> Columns(1, [5, 7]).completed(np.zeros((1, 3))).tolist()
        [[[0.0, 5.0, 0.0], [0.0, 7.0, 0.0]]]
        """
        if features.ndim < 2 or max(self.columns) >= features.shape[-1]:  # noqa: PLR2004  records and columns
            raise InputError(
                f"completions must name columns of the last axis of features, got column {max(self.columns)}, counting"
                f" from 0, for shape {features.shape}."
            )
        if features.dtype.kind != "f" and (self.values.astype(features.dtype) != self.values).any():
            raise InputError(
                f"completions must be whole numbers for features of type {features.dtype}; convert the features first."
            )
        result = np.repeat(features[:, None], len(self.values), axis=1)
        middle = [1] * (features.ndim - 2)
        result[..., list(self.columns)] = self.values.reshape(len(self.values), *middle, len(self.columns))
        return result


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
    length = np.maximum(np.linalg.norm(scaled, axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(scaled * np.minimum(largest, clipping_norm / length))


def largest_distance(points: Floats, *, distance: Distance, known: float = 0.0) -> float:
    """Return the largest distance of two points of the same set, over all sets.

    Args:
        points: Shape (sets, points, coordinates).
        distance: `Full` or `Approximate`.
        known: A distance that is there already; the result is at least this.

    Returns:
        The distance; NaN where a point is not finite.

    Source: Cherubin et al. 2024, Section 5.4.

    >>> corners = np.array([[[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]])
    >>> largest_distance(corners, distance=Full())
    5.0
    """
    if 0 in points.shape:
        return known
    centred = points - points.mean(axis=1, keepdims=True)
    radii = np.linalg.norm(centred, axis=-1)
    if not np.isfinite(radii).all():
        return math.nan
    if isinstance(distance, Approximate):
        return max(known, 2 * float(radii.max()))
    # No two points are farther apart than the two largest radii together, and some point is as far from the one with
    # the largest radius as found here. Only sets that might still hold more need all pairs.
    every = np.arange(len(points))
    first = centred[every, radii.argmax(axis=1)]
    # The points have mean 0, so that their inner products cancel nothing.
    apart = radii**2 - 2 * (centred @ first[..., None])[..., 0]
    best = max(known, float(np.linalg.norm(centred[every, apart.argmax(axis=1)] - first, axis=-1).max()))
    top = np.sort(radii, axis=1)[:, -2:].sum(axis=1)
    for row in np.flatnonzero(top > best).tolist():
        one, squares = centred[row], radii[row] ** 2
        place = int(np.argmax(squares[:, None] + squares - 2 * one @ one.T))
        best = max(best, float(np.linalg.norm(one[place // len(one)] - one[place % len(one)])))
    return best


# --- The largest distance of each training step, kept during training, and the resulting promise ---

_APPROXIMATE_NOTE = (
    "The distances are upper bounds (twice the distance to the mean), which errs on the safe side."
)
_SHUFFLED_NOTE = (
    "The loader went through shuffled or ordered records instead of drawing each batch independently, which is neither of the"
    " ways of drawing that are accounted for: this number assumes draws that did not happen."
)
_DROPOUT_NOTE = "Dropout and other randomness was off; with it the distances can be larger, up to 2 C."


class _Steps:
    """The steps of a run, each with the largest distance seen in it; shared by every tracker.

    A step is open from the end of the last one until `end_step`; batches observed in between, one or
    several, belong to it.
    """

    def __init__(self, *, clipping_norm: float, distance: Distance = Full()) -> None:
        self.clipping_norm = validate.positive("clipping_norm", clipping_norm)
        validate.instance("distance", distance, (Full, Approximate))
        self.distance = distance
        self._assumptions = [_APPROXIMATE_NOTE] if isinstance(distance, Approximate) else []
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

    def _noted(self, claim: Claim) -> Claim:
        """Return a claim with the tracker's notes: about the attributes from the distances, and about the draws."""
        notes = self._assumptions * claim.metric.startswith("attribute_") + [_SHUFFLED_NOTE] * self._shuffled
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

    def _add(self, gradients: Floats) -> None:
        """Add the gradients of some records to the open step; shape (records, completions, parameters)."""
        if not np.isfinite(gradients).all():
            raise InputError(
                f"gradients must be finite, got some that are not in step {len(self._closed) + 1}; is the learning rate"
                " too large, or a feature missing?"
            )
        points, before = clipped(gradients, clipping_norm=self.clipping_norm), self._open or 0.0
        farthest = largest_distance(points, distance=self.distance, known=before)
        self._open = min(farthest, 2 * self.clipping_norm)


class SensitivityTracker(_Steps):
    """The distances of each step from per-example gradients that you computed yourself, in any framework.

    PyTorch and TensorFlow have trackers of their own, which compute the gradients: `TorchSensitivityTracker` and
    `TensorFlowSensitivityTracker`.

    Attributes:
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.

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
            array = np.empty((0, 2, 1))
        elif array.ndim != 3 or not array.size or array.shape[1] < 2:  # noqa: PLR2004  two have a distance
            raise InputError(
                "gradients must have shape (records, completions, parameters) with 2 completions or more of each"
                f" record, got {array.shape}."
            )
        self._add(array)


# --- Shared parts of the trackers of PyTorch and TensorFlow: steps whose gradients the tracker computes from a model ---


class ModelSteps(_Steps, ABC):
    """The steps of a run, and the functions that complete a record and take its gradients."""

    def __init__(
        self,
        model: Any,
        loss_fn: Callable[[Any, Any], Any],
        *,
        completions: Columns,
        clipping_norm: float,
        distance: Distance = Full(),
    ) -> None:
        name, module = self._framework
        self._library = import_optional(module, purpose=f"tracking sensitivities in {name}", extra=module)
        validate.instance("completions", completions, (Columns,))
        super().__init__(clipping_norm=clipping_norm, distance=distance)
        if not callable(loss_fn):
            raise InputError(
                f"loss_fn must be a function of one batch's outputs and labels, got {type(loss_fn).__name__}."
            )
        self._loss_fn, self._completions = loss_fn, completions
        self._model = self._usable(model)
        self._assumptions.append(_DROPOUT_NOTE)

    def detach(self) -> None:
        """Detach this tracker from the training; its steps stay. Does nothing if it is not attached."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    # Parts that each framework implements.
    _undo: Callable[[], Any] | None = None  # of what `attach` did
    _framework: ClassVar[tuple[str, str]]  # its name, and its module, which is also the extra
    _failures: tuple[type[Exception], ...] = (IndexError, RuntimeError, TypeError, ValueError)

    @abstractmethod
    def _usable(self, model: Any) -> Any:
        """Return the network whose gradients are taken; refuse one that mixes the records of a batch."""

    @abstractmethod
    def _sizes(self) -> int:
        """Return how many numbers are trained."""

    @abstractmethod
    def _gradients(self, records: Batch, labels: Batch) -> Batch:
        """Return one gradient for each record, shape (records, parameters)."""

    def observe(self, features: Any, labels: Any) -> None:
        """Observe one batch, or a part of it, before its update.

        Args:
            features: Tensor or array whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor or array with one label, or one row of labels, for each.

        Raises:
            InputError: No batch, gradients that are not finite or cannot be had record by record, completions that do
                not fit, or a model that is random at prediction.
        """
        features, labels = _numbers("features", features), _numbers("labels", labels)
        if not features.ndim or not labels.ndim or len(features) != len(labels):
            raise InputError(
                "features and labels must have the records of one batch on the first axis, got shapes"
                f" {features.shape} and {labels.shape}."
            )
        parameters, count = self._sizes(), len(self._completions.values)
        if not parameters:
            raise InputError("model must have a parameter that is trained, got none; are all of them frozen?")
        rows = max(1, _MOST // (parameters * count))
        for start in range(0, max(len(features), 1), rows):
            part = slice(start, start + rows)
            records = self._completions.completed(features[part])
            gradients = np.zeros((0, count, parameters))
            if len(records):
                flat = records.reshape(-1, *records.shape[2:])
                each = np.repeat(labels[part], count, axis=0)
                with validate.explained(_IMPOSSIBLE, reason=validate.one_line, kinds=self._failures):
                    gradients = np.asarray(self._gradients(flat, each), dtype=np.float64)
            self._add(gradients.reshape(-1, count, parameters))


_IMPOSSIBLE = (
    "gradients must be possible for one record at a time and without randomness, got from model or loss_fn"
)


def _numbers(name: str, values: Any) -> Batch:
    array = np.asarray(validate.detached(values))
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a tensor or an array of numbers, got {type(values).__name__}.")
    return array
