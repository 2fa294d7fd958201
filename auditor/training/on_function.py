"""Step audits of any DP-SGD step that is a function of per-example gradients, and the exact check of one step."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from auditor.core import DPSGD, Floats, InputError, validate
from auditor.training.blocks import Blocks, Limits, Shapes
from auditor.training.step_audit import Options, StepAudit
from auditor.training.watch import Watch

# From per-example gradients (n, d) to their noised or exact sum (d,).
Step = Callable[[Floats], npt.ArrayLike]
_LEAST = 0.5  # of the clipping norm, that a canary above it adds to a sum of clipped gradients
_ROUNDING = 1e-3  # of the clipping norm, in single precision


class StepWatch(Watch):
    """A watched step: call it in place of the function.

    >>> rng = np.random.default_rng(0)
    >>> def noised(gradients):
    ...     norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    ...     return (gradients / np.maximum(1, norms)).sum(axis=0) + rng.normal(0, 0.5, gradients.shape[1])
    >>> watched = step(noised, {"weights": (30, 10)}, claim=1.0, canaries=32, seed=1)
    >>> for _ in range(100):
    ...     update = watched(rng.normal(0, 1, (8, 300)))
    >>> watched.refuted  # half of the claimed noise
    True
    """

    def __init__(self, audit: StepAudit, function: Step, shapes: Shapes, clipping_norm: Limits) -> None:
        super().__init__(audit)
        self._function, self._shapes, self._norm = function, shapes, clipping_norm

    def _summed(self, rows: Floats, size: int) -> Floats:
        total = np.asarray(self._function(rows), dtype=np.float64)
        if total.shape != (size,):
            raise InputError(f"function must return shape ({size:,},), got {total.shape}.")
        return total

    def __call__(self, gradients: npt.ArrayLike) -> Floats:
        """Return the output of the function for the gradients and the canaries, and observe it.

        Args:
            gradients: Shape (n, d): one for each record of the batch, not clipped.

        Raises:
            InputError: Another shape of the gradients or of their sum.
        """
        size = sum(map(math.prod, self._shapes.values()))
        own = _checked(gradients, size=size)
        if not self._undo:
            return np.asarray(self._function(own))
        rows = _flat(self.audit.insert(self._shapes, clipping_norm=self._norm))
        blocks = self.audit.blocks
        limits = blocks.limits(self._norm)
        try:
            total = self._summed(np.concatenate([own, rows]), size)
        except BaseException:
            self.audit.forget()
            raise
        centre = blocks.scores(_clipped(own, blocks, limits).sum(axis=0), limits)
        self.audit.observe_scores(blocks.scores(total, limits), centre)
        return total


def step(
    function: Step,
    shapes: Shapes,
    *,
    claim: DPSGD | float,
    clipping_norm: Limits = 1.0,
    **options: Unpack[Options],
) -> StepWatch:
    """Watch a function from per-example gradients (n, d) to their noised sum (d,), of any framework or your own.

    Args:
        function: The clipping and the noise of a step.
        shapes: Shape of each parameter tensor, by name, in the order of the d numbers.
        claim: As in `StepAudit`.
        clipping_norm: The clipping norm C, above 0; of clipping by tensor one for each name.
        **options: Canaries, scale, confidence and seed, as in `StepAudit`.

    Raises:
        InputError: A bad argument.
    """
    if not callable(function):
        raise InputError(
            f"function must be a function from gradients (n, d) to (d,), got {type(function).__name__}."
        )
    return StepWatch(StepAudit(claim, **options), function, dict(shapes), clipping_norm)


@dataclass(frozen=True)
class CheckedStep:
    """The exact difference that one canary makes in one step.

    Attributes:
        passed: Whether no tensor, and not all of them together, differ by more than clipping allows, and the sum by half of
            that at least.
        differences: Norm of the difference in each tensor over what clipping allows there, by name.
        total: The same of all tensors together.
        message: A sentence that names the tensors where it is too large.
    """

    passed: bool
    differences: dict[str, float]
    total: float
    message: str


def check_step(
    function: Step,
    shapes: Shapes,
    *,
    clipping_norm: Limits = 1.0,
    gradients: npt.ArrayLike | None = None,
    reset: Callable[[], Any] | None = None,
    scale: float = 10.0,
    seed: int = 0,
) -> CheckedStep:
    """Return whether one canary changes the sum of a step by at most the clipping norm: exact, without statistics.

    The function is called for a batch with and without a canary that has ``scale`` clipping norms in every tensor.

    Args:
        function: The sum of the clipped gradients (n, d) -> (d,) before its noise; or with noise, where ``reset`` makes it
            draw the same noise again.
        shapes: As in `step`.
        clipping_norm: As in `step`.
        gradients: Shape (n, d): the batch; by default 8 records of norms around the clipping norm.
        reset: Called before each of the two calls, to set the generators of the noise to one state.
        scale: Norm of the canary before clipping, in clipping norms, above 1.
        seed: Seed of the canary and of the default batch.

    Raises:
        InputError: Another shape of the gradients, or two calls on one batch that differ.

    >>> check_step(lambda rows: rows.sum(axis=0), {"weights": (3, 2), "bias": (2,)}).message
    'Without clipping enough in weights, bias: one canary changes the sum by up to 14.1 times the clipping norm.'
    """
    if not scale > 1:
        raise InputError(f"scale must be above 1, so that clipping must act, got {scale!r}.")
    by_tensor = isinstance(clipping_norm, Mapping)
    rng = np.random.default_rng(seed)
    blocks = Blocks.of(shapes, canaries=1, by_tensor=by_tensor, rng=rng)
    limits, size = blocks.limits(clipping_norm), blocks.owner.size
    own = (
        rng.normal(0, np.linalg.norm(limits) / math.sqrt(size), (8, size)) if gradients is None else gradients
    )
    own = _checked(own, size=size)
    directions = rng.integers(0, 2, size) * 2.0 - 1.0
    parts = list(blocks.slices.values())
    for part, limit in zip(parts, limits, strict=True):
        directions[part] *= scale * limit / np.linalg.norm(directions[part])

    def once(rows: Floats) -> Floats:
        if reset is not None:
            reset()
        result = np.asarray(function(rows.copy()), dtype=np.float64)
        if result.shape != (size,) or not np.isfinite(result).all():
            raise InputError(f"function must return {size:,} finite numbers, got shape {result.shape}.")
        return result

    without = once(own)
    if not np.array_equal(without, once(own)):
        raise InputError(
            "function must return the same for the same batch; give the sum before its noise, or a reset of its generators."
        )
    change = once(np.concatenate([own, directions[None]])) - without
    lengths = {name: float(np.linalg.norm(change[part])) for name, part in blocks.slices.items()}
    allowed = dict(zip(lengths, limits, strict=True))
    ratios = {name: length / float(allowed[name]) for name, length in lengths.items()}
    whole = float(np.linalg.norm(limits)) if by_tensor else float(limits[0])
    total = math.hypot(*lengths.values()) / whole
    wrong = [name for name, ratio in ratios.items() if ratio > 1 + _ROUNDING]
    clipped, blunt = not wrong and total <= 1 + _ROUNDING, total < _LEAST
    passed = clipped and not blunt
    where = ", ".join(wrong or lengths)
    message = (
        f"One canary changes the sum by {total:.3g} times the clipping norm, where a clipped sum has 1: is it divided?"
        if blunt
        else "One canary changes the sum by at most the clipping norm."
        if clipped
        else f"Without clipping enough in {where}: one canary changes the sum by up to"
        f" {max(total, *ratios.values()):.3g} times the clipping norm."
    )
    return CheckedStep(passed, ratios, total, message)


def _checked(gradients: npt.ArrayLike, *, size: int) -> Floats:
    """Return finite gradients of so many parameters."""
    result = validate.numbers("gradients", gradients, np.isfinite, "be finite")
    if result.ndim != 2 or result.shape[1] != size:  # noqa: PLR2004  records and parameters
        raise InputError(f"gradients must have shape (n, {size:,}), got {result.shape}.")
    return result


def _flat(rows: dict[str, npt.NDArray[np.float32]]) -> Floats:
    parts = [part.reshape(len(part), math.prod(part.shape[1:])) for part in rows.values()]
    return np.concatenate(parts, axis=1, dtype=np.float64)


def _clipped(rows: Floats, blocks: Blocks, limits: Floats) -> Floats:
    """Return the gradients clipped as claimed."""
    result, parts = rows.copy(), blocks.slices.values() if blocks.by_tensor else [slice(None)]
    for part, limit in zip(parts, limits, strict=False):
        result[:, part] /= np.maximum(1, np.linalg.norm(rows[:, part], axis=1, keepdims=True) / limit)
    return result
