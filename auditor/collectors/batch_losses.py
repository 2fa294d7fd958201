"""Losses of one batch of records, as they leave the model, and the place that saturated ones get in the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from auditor.values import Floats

__all__ = ["BatchLosses", "far", "joined", "settled", "settled_pair"]


@dataclass(frozen=True, eq=False)
class BatchLosses:
    """Losses of some records, in the order of the records.

    Attributes:
        loss: Shape (n,), float64; -inf or +inf where a probability was exactly 1 or 0 and no place can be given yet.
        saturated: Shape (n,), which losses come from a probability of exactly 0 or 1.
        eps: The spacing near 1 of the floats that the model returned.
        hard: Whether all probabilities were 0 or 1: the model returned labels.
        more: Other scores of the same records by name, likewise smaller for what looks more like a member.
    """

    loss: Floats
    saturated: npt.NDArray[np.bool_]
    eps: float = float(np.finfo(np.float64).eps)
    hard: bool = False
    more: Mapping[str, Floats] = field(default_factory=dict)


def joined(parts: Sequence[BatchLosses]) -> BatchLosses:
    """Return the batches of one group as one."""
    return BatchLosses(
        loss=np.concatenate([part.loss for part in parts]),
        saturated=np.concatenate([part.saturated for part in parts]),
        eps=max(part.eps for part in parts),
        hard=all(part.hard for part in parts),
        more={name: np.concatenate([part.more[name] for part in parts]) for name in parts[0].more},
    )


def far(eps: float) -> float:
    """The log-odds of a probability one spacing of floats from 1."""
    return float(np.log1p(-eps) - np.log(eps))


def settled(loss: Floats, *, eps: float, low: float, high: float) -> Floats:
    """Return finite losses: infinite ones at the end of the scale, beyond or level with all others.

    Each is placed at logit(eps) of the source type, or at the most extreme finite loss on its side if that is further
    out, so that saturation never makes a record look less extreme than one that is not saturated.

    Args:
        loss: Shape (n,).
        eps: The spacing near 1 of the floats of the model, the largest over both groups.
        low: The smallest finite loss of both groups.
        high: The largest.
    """
    end = far(eps)
    return np.clip(loss, min(-end, low), max(end, high))


def settled_pair(member: BatchLosses, nonmember: BatchLosses) -> tuple[Floats, Floats]:
    """Return both groups' losses, finite, on one scale."""
    eps = max(member.eps, nonmember.eps)
    finite = np.concatenate([part.loss[np.isfinite(part.loss)] for part in (member, nonmember)])
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    first, second = (settled(part.loss, eps=eps, low=low, high=high) for part in (member, nonmember))
    return first, second
