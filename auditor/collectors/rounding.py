"""Are two losses of a record the same answer? They may differ by some roundings of the model's floats."""

import numpy as np
import numpy.typing as npt

from auditor.collectors.batch_losses import far
from auditor.values import Floats, LossScale

__all__ = ["differences"]

_TOLERANCE = 1e-6  # relative
_ROUNDINGS = 4  # of a float, that the same model may differ by in another batch


def differences(
    first: Floats,
    second: Floats,
    *,
    eps: float,
    scale: LossScale,
    saturated: npt.NDArray[np.bool_] | None = None,
) -> Floats:
    """Return how far the losses of two answers are apart, 0 where rounding explains it.

    A log-odds loss l from a probability p of rounding eps is known to eps / (p (1 - p)) = eps (2 + e^l + e^-l), and a
    loss on any other scale, whose own size the floats round, to eps (1 + |l|). Four such roundings are allowed.

    Args:
        first: Losses of the records, shape (n,).
        second: Again, shape (n,).
        eps: The spacing near 1 of the floats that the model returned.
        scale: What the losses are.
        saturated: Which losses lie at the end of the scale wherever they were placed; default those that are infinite.

    >>> nats = np.array([3.0])
    >>> differences(nats, nats + 2**-6, eps=2**-7, scale=LossScale.CROSS_ENTROPY)
    array([0.])
    >>> differences(nats, nats + 2**-6, eps=2**-23, scale=LossScale.CROSS_ENTROPY)
    array([0.015625])
    """
    end = far(eps)
    beyond = np.isinf(first) | np.isinf(second)
    if saturated is not None:
        beyond |= saturated
    a, b = (np.where(beyond, np.clip(loss, -end, end), loss) for loss in (first, second))
    size = np.maximum(np.abs(a), np.abs(b))
    known = 2 + np.exp(np.minimum(size, end)) if scale is LossScale.LOG_ODDS else 1 + size
    apart = np.abs(a - b)
    return np.asarray(np.where(apart <= _TOLERANCE * (1 + np.abs(a)) + _ROUNDINGS * eps * known, 0.0, apart))
