"""Population: non-members that only calibrate; none of them is audited."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.scores.references import References, loss_matrix
from auditor.values import Floats, Losses, LossScale

__all__ = ["Population", "as_population"]

_LABELS = ("group", "id", "person", "fingerprint")


@dataclass(frozen=True, eq=False)
class Population:
    """Records outside the training set and outside the audit, drawn like the audited non-members.

    Attributes:
        loss: Shape (n,), the target model's losses, finite, read-only; n >= 2.
        reference: Optional losses of the reference models, shape (n,) or (n, models); `rmia` needs them.
        group: Optional class of each record; `class_conditional` needs it.
        id: Optional ids, by which an overlap with the audited records is found.
        person: Optional data subject of each record.
        fingerprint: Optional hash of each record's features, by which an overlap is found where there are no ids.
        scale: What the losses are, as in `Losses`.

    Raises:
        InputError: NaN or infinite losses, fewer than two records, or columns of different lengths.

    >>> Population(loss=[0.1, 0.5, 0.2]).n
    3
    """

    loss: Floats
    reference: Floats | None = None
    group: npt.NDArray[Any] | None = None
    id: npt.NDArray[Any] | None = None
    person: npt.NDArray[Any] | None = None
    fingerprint: npt.NDArray[Any] | None = None
    scale: LossScale = LossScale.UNKNOWN

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", _validate.loss_vector("population", self.loss))
        if self.reference is not None:
            reference = loss_matrix("population reference", self.reference)
            _validate.same_length(
                ("population losses", "population reference losses"), (self.n, len(reference))
            )
            object.__setattr__(self, "reference", reference)
        for name in _LABELS:
            labels = getattr(self, name)
            if labels is not None:
                column = _validate.column(f"population {name}", labels)
                _validate.same_length(("population losses", f"population {name}"), (self.n, column.size))
                object.__setattr__(self, name, column)
        scale = _validate.known("scale", self.scale, [str(item) for item in LossScale])
        object.__setattr__(self, "scale", LossScale(scale))

    @classmethod
    def from_losses(cls, losses: Losses, *, reference: References | None = None) -> "Population":
        """Return the non-members of these losses, with their labels; the members are left aside.

        Args:
            losses: The held-out part of `hold_out`, for example.
            reference: The reference losses of the same records, for `rmia`.

        Raises:
            InputError: Reference losses of other records.

        >>> Population.from_losses(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4])).loss
        array([0.3, 0.4])
        """
        labels = {name: pair.nonmember for name in _LABELS if (pair := getattr(losses, name)) is not None}
        own = None if reference is None else reference.aligned(losses).nonmember
        return cls(loss=losses.nonmember, reference=own, **labels, scale=losses.scale)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(np.size(self.loss))


def as_population(name: str, calibration: object) -> Population:
    """Return the calibration non-members, of a population as it is or of losses."""
    if isinstance(calibration, Population):
        return calibration
    if isinstance(calibration, Losses):
        return Population.from_losses(calibration)
    raise InputError(
        f"{name} must be auditor.Losses or auditor.scores.Population, got {type(calibration).__name__}."
    )
