"""Difficulty calibration: a loss counts as low when it is low for a record that is so hard.

score = l - centre of the reference models' losses on the same record (Watson et al. 2022).
"""

from dataclasses import dataclass

import numpy as np

from auditor import _validate
from auditor.scores._scored import finite_difference, scored
from auditor.scores.references import References
from auditor.transforms import Transform
from auditor.values import Floats, Losses

__all__ = ["Centre", "Mean", "Median", "difficulty"]


@dataclass(frozen=True)
class Mean:
    """The mean over the reference models, as published."""


@dataclass(frozen=True)
class Median:
    """The median over the reference models: one model that went wrong changes little."""


Centre = Mean | Median


def difficulty(reference: References, *, centre: Centre = Mean()) -> Transform:
    """Return the transform that subtracts what reference models lose on each record.

    Args:
        reference: Losses of models that were trained on neither group, on the scale of the target's losses.
        centre: `Mean` (default) or `Median` over the reference models.

    Raises:
        InputError: Arguments of another type; from the transform, reference losses that are not of these records.

    Source: Watson, Guo, Cormode and Sablayrolles 2022, "On the importance of difficulty calibration in membership
    inference attacks".

    >>> losses = Losses(member=[1.0, 3.0], nonmember=[2.0, 4.0])
    >>> difficulty(References(member=[2.0, 3.5], nonmember=[2.0, 4.5]))(losses).member
    array([-1. , -0.5])
    """
    _validate.instance("reference", reference, (References,))
    _validate.instance("centre", centre, (Mean, Median))
    word = "median" if isinstance(centre, Median) else "mean"
    step = (
        f"difficulty: minus the {word} loss of {reference.models:,} reference model(s), which must have been trained on"
        " neither group"
    )

    def calibrated(losses: Losses) -> Losses:
        own = reference.aligned(losses)
        member, nonmember = (
            finite_difference(values, _centre(matrix, centre))
            for values, matrix in ((losses.member, own.member), (losses.nonmember, own.nonmember))
        )
        return scored(losses, member=member, nonmember=nonmember, step=step)

    return calibrated


def _centre(matrix: Floats, centre: Centre) -> Floats:
    # Halves and shares keep the sums finite for losses near the largest float.
    if isinstance(centre, Median):
        return np.asarray(np.median(matrix / 2, axis=1) * 2) if matrix.shape[1] > 1 else matrix[:, 0]
    return np.asarray((matrix / matrix.shape[1]).sum(axis=1))
