"""The largest distance of each training step, kept as training goes, and what it promises: what all trackers share."""

from dataclasses import replace

import numpy as np

from auditor import _validate
from auditor._format import unit
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity.distances import Approximate, Distance, Full
from auditor.theory.attribute_inference import ATTRIBUTE_PRIVACY_NOTE, attribute_inference
from auditor.values import Claim, Floats

__all__ = ["Steps"]

_EXTREMES_NOTE = (
    "Only the extreme values of the attribute were compared: this assumes that none between them is farther."
)
_APPROXIMATE_NOTE = (
    "The distances are upper bounds (twice the distance to the mean), which errs on the safe side."
)
_SHUFFLED_NOTE = (
    "The loader went through shuffled or ordered records instead of drawing each batch anew, which is neither of the"
    " ways of drawing that are accounted for: this number assumes draws that did not happen."
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
        self._assumptions = [
            note
            for note, holds in (
                (_APPROXIMATE_NOTE, isinstance(distance, Approximate)),
                (_EXTREMES_NOTE, extremes_only),
            )
            if holds
        ]
        self._shuffled = False
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
        self._closed.append(self._observed())
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
        """Return a claim with what the tracker knows about it: attributes by distances, and all by the draws."""
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
