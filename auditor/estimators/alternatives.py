"""What the parametric Epsilon* becomes without a few records, and with the other transform."""

import math

import numpy as np

from auditor.estimators.gaussian_supremum import supremum
from auditor.fitters.gaussian import fit_gaussian
from auditor.transforms import Transform, log_odds, published
from auditor.values import Floats, Losses

__all__ = ["alternatives"]

_TRIMMED = 0.001
_EXACT_TAIL = 2000
_RUN = 32


def alternatives(losses: Losses, *, delta: float) -> dict[str, float]:
    """Return Epsilon* refitted without the most extreme 0.1% of each group, and with the scale-free transform.

    Args:
        losses: Before any transform.
        delta: In (0, 1); also the clip, as published.

    >>> values = np.linspace(0.0, 1.0, 500)
    >>> sorted(alternatives(Losses(member=values, nonmember=values), delta=1e-3))
    ['scale_free', 'without_extremes']
    """
    groups = losses.sorted_member, losses.sorted_nonmember
    trimmed, whole = [_condensed(_trim(group)) for group in groups], [_condensed(group) for group in groups]
    return {
        "without_extremes": _epsilon_star(losses, trimmed, published(), delta),
        "scale_free": _epsilon_star(losses, whole, log_odds, delta),
    }


def _trim(ordered: Floats) -> Floats:
    """Without the most extreme 0.1% of the records, half of them from each end and at least one from each."""
    cut = max(1, math.ceil(ordered.size * _TRIMMED / 2))
    return ordered[cut:-cut] if ordered.size >= 2 * cut + 2 else ordered


def _condensed(ordered: Floats) -> tuple[Floats, Floats]:
    """Values and weights that stand for a long sorted sample: exact in both tails, means of short runs between.

    The transforms are smooth, so the moments of the transformed sample change by far less than the 10% looked for.
    """
    runs = (ordered.size - 2 * _EXACT_TAIL) // _RUN
    if runs < _EXACT_TAIL:
        return ordered, np.ones(ordered.size)
    end = _EXACT_TAIL + runs * _RUN
    means = ordered[_EXACT_TAIL:end].reshape(runs, _RUN).mean(axis=1)
    values = np.concatenate([ordered[:_EXACT_TAIL], means, ordered[end:]])
    weights = np.ones(values.size)
    weights[_EXACT_TAIL : _EXACT_TAIL + runs] = _RUN
    return values, weights


def _epsilon_star(
    losses: Losses, groups: list[tuple[Floats, Floats]], transform: Transform, delta: float
) -> float:
    (member, member_weights), (nonmember, nonmember_weights) = groups
    moved = transform(Losses(member=member, nonmember=nonmember, scale=losses.scale))
    fits = fit_gaussian(moved.member, member_weights), fit_gaussian(moved.nonmember, nonmember_weights)
    return supremum(*fits, delta=delta, clip=delta).value
