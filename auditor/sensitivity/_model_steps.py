"""What the trackers of PyTorch and TensorFlow share: steps whose gradients the tracker computes from a model."""

from collections.abc import Callable
from typing import Any

from auditor import _validate
from auditor.errors import InputError
from auditor.sensitivity.completions import Columns, Completions, Rewritten
from auditor.sensitivity.distances import Distance
from auditor.sensitivity.steps import Steps

__all__ = ["ModelSteps"]

_DROPOUT_NOTE = "Dropout was off while the distances were measured; with it they can be larger, up to 2 C."


class ModelSteps(Steps):
    """The steps of a run, and what is needed to complete a record and to take its gradients."""

    def __init__(
        self,
        loss_fn: Callable[[Any, Any], Any],
        *,
        completions: Completions,
        clipping_norm: float,
        distance: Distance,
        most_numbers: int,
    ) -> None:
        _validate.instance("completions", completions, (Columns, Rewritten))
        super().__init__(
            clipping_norm=clipping_norm, distance=distance, extremes_only=completions.extremes_only
        )
        if not callable(loss_fn):
            raise InputError(
                f"loss_fn must be a function of one batch's outputs and labels, got {type(loss_fn).__name__}."
            )
        self._loss_fn = loss_fn
        self._completions = completions
        self._most = _validate.at_least("most_numbers", most_numbers, least=1)

    def _dropout(self, *, present: bool) -> None:
        """Let the claims say that the training has a randomness which the distances have not."""
        if present:
            self._assumptions.append(_DROPOUT_NOTE)

    def _parts(self, records: int, *, parameters: int) -> list[slice]:
        """Return the records in parts whose gradients are few enough to be held at once."""
        if not parameters:
            raise InputError("model must have a parameter that is trained, got none; are all of them frozen?")
        rows = max(1, self._most // (parameters * self._completions.count))
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
