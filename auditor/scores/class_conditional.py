"""Class-conditional scores: a loss counts as low when it is low for its class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.scores._disjoint import require_disjoint, require_same_scale
from auditor.scores._labels import comparable
from auditor.scores._scored import finite_difference, finite_ratio, scored
from auditor.scores.population import Population, as_population
from auditor.transforms import Transform
from auditor.values import Floats, Losses

__all__ = ["class_conditional"]

_LOWER = 0.1  # the quantile whose distance from the median is the spread


@dataclass(frozen=True)
class _Norms:
    """Median and spread of each class that has enough records; the last entry is the pooled one."""

    names: npt.NDArray[np.str_]
    median: Floats
    spread: Floats

    def of(self, group: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The entry of each record."""
        text, _ = comparable(group)
        pooled = self.names.size
        if not pooled:
            return np.zeros(text.size, dtype=np.intp)
        at = np.minimum(np.searchsorted(self.names, text), pooled - 1)
        return np.where(self.names[at] == text, at, pooled)

    def standardised(self, losses: Floats, entry: npt.NDArray[np.intp]) -> Floats:
        """(l - median)/spread."""
        return finite_ratio(finite_difference(losses, self.median[entry]), self.spread[entry])


def class_conditional(calibration: Losses | Population, *, least: int = 20) -> Transform:
    """Return the transform that standardises each loss by its class, as held-out non-members show it.

    (l - median)/spread, over the calibration non-members of the class; the spread reaches from the median down to the
    10% quantile, on the side where members are. Unlike a p-value within the class this keeps apart the losses below all
    of the calibration's, which are the ones a low false positive rate is about. Classes with fewer than ``least``
    calibration non-members, or with none, use the pooled median and spread, and the history counts their records.
    Losses with a floor, such as a cross-entropy, are better mapped by `auditor.transforms.log_odds` first.

    Args:
        calibration: Held-out losses (their non-members are used) or a `Population`, with the class as ``group``; on the
            scale of the audited losses.
        least: Fewest calibration non-members for a class to be its own norm, 2 or more.

    Raises:
        InputError: No classes; from the transform: no classes, another scale, or audited records in the calibration.

    >>> calibration = Population(loss=[1.0, 2.0, 3.0, 11.0, 12.0, 13.0], group=["a", "a", "a", "b", "b", "b"])
    >>> losses = Losses(member=[1.0, 11.0], nonmember=[2.0, 13.0], group=(["a", "b"], ["a", "b"]))
    >>> class_conditional(calibration, least=3)(losses).member
    array([-1.25, -1.25])
    """
    own = as_population("calibration", calibration)
    least = _validate.at_least("least", least, least=2)
    if own.group is None:
        raise InputError("class_conditional needs the class of each calibration record; give its group.")
    norms = _norms(own.loss, own.group, least=least)

    def conditioned(losses: Losses) -> Losses:
        disjoint = require_disjoint(losses, own, name="calibration")
        require_same_scale(losses, own, name="calibration")
        if losses.group is None:
            raise InputError(
                "class_conditional needs the class of each audited record; give Losses(group=...)."
            )
        member, nonmember = (norms.of(column) for column in losses.group)
        pooled = sum(int(np.count_nonzero(entry == norms.names.size)) for entry in (member, nonmember))
        step = (
            f"class-conditional: by the median and lower spread of {norms.names.size:,} classes over {own.n:,} calibration"
            f" non-members, {disjoint}; {pooled:,} records of classes with fewer than {least:,} by the pooled ones"
        )
        return scored(
            losses,
            member=norms.standardised(losses.member, member),
            nonmember=norms.standardised(losses.nonmember, nonmember),
            step=step,
        )

    return conditioned


def _norms(loss: Floats, group: npt.NDArray[Any], *, least: int) -> _Norms:
    text, given = comparable(group)
    names, code, sizes = np.unique(text[given], return_inverse=True, return_counts=True)
    order = np.argsort(code, kind="stable")
    parts = np.split(loss[given][order], np.cumsum(sizes)[:-1])
    enough = sizes >= least
    pooled = _median_and_spread(loss, otherwise=1.0)
    own = [
        _median_and_spread(part, otherwise=pooled[1])
        for part, large in zip(parts, enough.tolist(), strict=False)
        if large
    ]
    median, spread = np.array([*own, pooled]).T
    return _Norms(names[enough], median, spread)


def _median_and_spread(values: Floats, *, otherwise: float) -> tuple[float, float]:
    """The median and its distance to the lower quantile; the other spread where that is 0."""
    low, middle = 2 * np.quantile(values / 2, (_LOWER, 0.5))  # halves, whose differences are finite
    spread = float(finite_difference(middle, low))
    return float(middle), spread if spread > 0 else otherwise
