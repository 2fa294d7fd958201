"""The largest distance of each training step, kept as training goes, and what it promises: the part without a framework."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._format import number, unit
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity.distances import Approximate, Distance, Full, clipped, largest_distance
from auditor.theory.attribute_inference import ATTRIBUTE_PRIVACY_NOTE, attribute_inference
from auditor.values import Claim, Floats

__all__ = ["SensitivityTracker", "Steps"]

_EXTREMES_NOTE = (
    "Only the extreme values of the attribute were compared: this assumes that none between them is farther."
)
_APPROXIMATE_NOTE = (
    "The distances are upper bounds (twice the distance to the mean), which errs on the safe side."
)


class Steps:
    """The steps of a run, each with the largest distance seen in it; what every tracker shares.

    A step is open from the end of the last one until `end_step`; what is observed in between, in one batch or in
    several, belongs to it.
    """

    def __init__(self, *, clipping_norm: float, distance: Distance, extremes_only: bool) -> None:
        self.clipping_norm = _validate.positive("clipping_norm", clipping_norm)
        _validate.instance("distance", distance, (Full, Approximate))
        self.distance = distance
        self._assumed = extremes_only
        self._closed: list[float] = []
        self._open: float | None = None

    @property
    def sensitivities(self) -> Floats:
        """R_t of the steps that have ended, in the units of the gradients, in [0, 2 C].

        Keep them to yourself: they tell in which steps a record was drawn.
        """
        return np.array(self._closed, dtype=np.float64)

    def end_step(self) -> None:
        """Close the open step; call it once for each update of the model, after its last batch was observed.

        Raises:
            InputError: Nothing was observed since the last step; an empty batch must be observed too.
        """
        if self._open is None:
            raise InputError(
                f"step {len(self._closed) + 1} ended before a batch was observed; call observe for every batch before"
                " the optimizer steps, also for an empty one."
            )
        self._closed.append(self._open)
        self._open = None

    def claims(self, training: DPSGD, *, fixed_in_advance: bool = False) -> tuple[Claim, ...]:
        """Return what the run promises against attribute inference, from the steps that have ended.

        Do not publish these numbers where membership matters (see `auditor.theory.attribute_inference`).

        Args:
            training: The run as it was tracked: as many steps, and the same clipping norm.
            fixed_in_advance: As in `auditor.theory.attribute_inference`; leave it false for what a tracker measured.

        Raises:
            InputError: Another number of steps or another clipping norm.
        """
        _validate.instance("training", training, (DPSGD,))
        norms = np.unique(np.asarray(training.clipping_norm, dtype=np.float64))
        if norms.size > 1 or not np.isclose(norms[0], self.clipping_norm, rtol=1e-9, atol=0):
            raise InputError(
                f"training must have the clipping norm that was tracked, {self.clipping_norm:g},"
                f" got {training.clipping_norm!r}; give clipping_norm in DPSGD."
            )
        rows = attribute_inference(
            training, sensitivities=self.sensitivities, fixed_in_advance=fixed_in_advance
        )
        added = " ".join(
            note
            for note, holds in (
                (_APPROXIMATE_NOTE, isinstance(self.distance, Approximate)),
                (_EXTREMES_NOTE, self._assumed),
            )
            if holds
        )
        return tuple(_noted(row, added) if row.metric.startswith("attribute_") else row for row in rows)

    def summary(self, training: DPSGD) -> str:
        """Return the claims as lines of text for the person who trained, ending in the privacy note.

        Args:
            training: As in `claims`.

        Raises:
            InputError: As in `claims`.
        """
        rows = [row for row in self.claims(training) if row.metric.endswith("bayes_security")]
        steps, most = self.sensitivities, 2 * self.clipping_norm
        farthest = float(steps.max())
        lines = [
            f"{steps.size:,} steps; largest distance {number(farthest, toward='up')}, at most {number(most)}.",
            *(
                f"Bayes security against {'attribute' if 'attribute' in row.metric else 'membership'} inference:"
                f" {unit(row.value, toward='down')} ({row.status}; {row.method})"
                for row in rows
            ),
            ATTRIBUTE_PRIVACY_NOTE,
        ]
        return "\n".join(lines)

    def _raise_to(self, distance: float) -> None:
        if not np.isfinite(distance):
            raise InputError(
                f"gradients must be finite, got some that are not in step {len(self._closed) + 1}; is the learning rate"
                " too large, or a feature missing?"
            )
        self._open = max(self._open or 0.0, min(distance, 2 * self.clipping_norm))


class SensitivityTracker(Steps):
    """The distances of each step from per-example gradients that you computed yourself, in any framework.

    PyTorch and TensorFlow have trackers of their own, which compute the gradients: `TorchSensitivityTracker` and
    `TensorFlowSensitivityTracker`.

    Attributes:
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.
        extremes_only: Whether only the extreme values of the attribute are completed, which the claims then state.

    Source: Cherubin et al. 2024, Algorithm 4.

    >>> tracker = SensitivityTracker(clipping_norm=1.0)
    >>> tracker.observe([[[3.0, 4.0], [0.0, 0.0]]])  # one record, two values of its attribute, two parameters
    >>> tracker.end_step()
    >>> tracker.sensitivities.tolist()
    [1.0]
    >>> [round(row.value, 3) for row in tracker.claims(DPSGD(1.0, 1.0, 1))[::2]]
    [0.617, 0.465, 0.617, 0.317, 0.317]
    """

    def __init__(
        self,
        *,
        clipping_norm: float,
        distance: Distance = Full(),  # noqa: B008  a frozen value
        extremes_only: bool = False,
    ) -> None:
        super().__init__(clipping_norm=clipping_norm, distance=distance, extremes_only=extremes_only)

    def observe(self, gradients: npt.ArrayLike) -> None:
        """Take in the gradients of one batch, before its update.

        Args:
            gradients: Shape (records, completions, parameters): for each record drawn, the gradient of its loss with
                each value of the attribute, not yet clipped. No records are fine, and count as distance 0.

        Raises:
            InputError: Another shape, or gradients that are not finite.
        """
        try:
            array: npt.NDArray[Any] = np.asarray(gradients, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "gradients must be numbers of shape (records, completions, parameters)."
            ) from None
        if array.ndim != 3 and array.size:  # noqa: PLR2004  records, completions, parameters
            raise InputError(
                f"gradients must have shape (records, completions, parameters), got {array.shape}."
            )
        if not np.isfinite(array).all():
            self._raise_to(np.nan)
        if not array.size:
            self._raise_to(0.0)
            return
        norm = self.clipping_norm
        self._raise_to(
            largest_distance(
                clipped(array, clipping_norm=norm), distance=self.distance, known=self._open or 0.0
            )
        )


def _noted(claim: Claim, added: str) -> Claim:
    return replace(claim, note=f"{claim.note} {added}") if added else claim
