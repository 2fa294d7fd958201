"""The tracker without a framework: for per-example gradients that you computed yourself."""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError
from auditor.sensitivity.distances import Distance, Full, clipped, largest_distance
from auditor.sensitivity.steps import Steps

__all__ = ["SensitivityTracker"]


class SensitivityTracker(Steps):
    """The distances of each step from per-example gradients that you computed yourself, in any framework.

    PyTorch and TensorFlow have trackers of their own, which compute the gradients: `TorchSensitivityTracker` and
    `TensorFlowSensitivityTracker`.

    Attributes:
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.
        extremes_only: Whether only the extreme values of the attribute are completed, which the claims then state.

    Source: Cherubin et al. 2024, Algorithm 4.

    >>> from auditor.choices import DPSGD
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
            gradients: Shape (records, completions, parameters), two completions or more: for each record drawn, the
                gradient of its loss with each value of the attribute, not yet clipped. No records are fine, and count
                as distance 0.

        Raises:
            InputError: Another shape, fewer than two completions, or gradients that are not finite.
        """
        try:
            array: npt.NDArray[Any] = np.asarray(gradients, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "gradients must be numbers of shape (records, completions, parameters)."
            ) from None
        if array.ndim and not len(array):
            self._raise_to(0.0)
            return
        if array.ndim != 3 or not array.size:  # noqa: PLR2004  records, completions, parameters
            raise InputError(
                f"gradients must have shape (records, completions, parameters), got {array.shape}."
            )
        if array.shape[1] < 2:  # noqa: PLR2004  two have a distance
            raise InputError(
                "gradients must hold 2 completions or more of each record, got 1; one has nothing to infer."
            )
        if not np.isfinite(array).all():
            self._raise_to(np.nan)
        norm = self.clipping_norm
        self._raise_to(
            largest_distance(
                clipped(array, clipping_norm=norm), distance=self.distance, known=self._open or 0.0
            )
        )
