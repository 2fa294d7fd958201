"""Are the output columns in the order of the classes? Labels that another order explains far better say no."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.log_odds import Codes
from auditor.values import Floats

__all__ = ["better_order", "reordered"]

_CHANCE = 1e-6  # of a false alarm, at most, with a model that means its probabilities
_DOUBT = 0.1  # share of the uniform distribution mixed in, so that no single record decides
_LEAST_GAIN = 0.2  # nats for each record
_LEAST_SEEN = 2  # classes


def better_order(probabilities: Floats, *, codes: Codes) -> npt.NDArray[np.intp] | None:
    """Return the column of each class in an order that explains the labels far better, or none.

    With q the model's probabilities, a tenth of them spread evenly, the best assignment s of columns to classes is the
    one of the largest likelihood, sum over the records of log q[s(label)]. Were the given order true and labels drawn
    from q, each other order would have an expected likelihood ratio of 1, so by Markov's inequality any of the K! / (K - m)!
    orders of the m classes seen is ahead by more than log(K! / (K - m)!) + log(1e6) with a chance below 1e-6. Only then,
    and if the gain is 0.2 nats a record at least, an order is returned.

    Rows of a sorted table are no such draw: they may be of few classes, or of one. So an order is only returned where two
    classes at least were seen, and where it gives one of them the column of a class that was not, all but the class that
    gains most must have such a gain too: a single column can stand for one class alone.

    Args:
        probabilities: Shape (n, K).
        codes: Shape (n,), the column of each label in the given order.

    Returns:
        Shape (K,), or none where the given order stands.

    >>> swapped = np.tile([[0.95, 0.05], [0.05, 0.95]], (20, 1))
    >>> better_order(swapped, codes=np.tile([1, 0], 20))
    array([1, 0])
    >>> better_order(swapped, codes=np.tile([0, 1], 20)) is None
    True
    """
    from scipy.optimize import linear_sum_assignment

    n, width = probabilities.shape
    logs = np.log((1 - _DOUBT) * probabilities + _DOUBT / width)
    total = np.zeros((width, width))
    np.add.at(total, codes, logs)  # row: class, column: output column
    seen = np.unique(codes)
    _, columns = linear_sum_assignment(total[seen], maximize=True)
    gains = total[seen, columns] - total[seen, seen]
    gain = gains.sum()
    orders = math.lgamma(width + 1) - math.lgamma(width - seen.size + 1)
    if gain < max(orders - math.log(_CHANCE), _LEAST_GAIN * n) or seen.size < _LEAST_SEEN:
        return None
    most = int(np.argmax(gains))
    others = n - int((codes == seen[most]).sum())
    if not np.isin(columns, seen).all() and gain - gains[most] < _LEAST_GAIN * others:
        return None
    return _completed(seen, columns, width)


def _completed(seen: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], width: int) -> npt.NDArray[np.intp]:
    """Return an order of all columns: classes that were not seen keep theirs where it is free."""
    order = np.full(width, -1)
    order[seen] = columns
    free = [column for column in range(width) if column not in columns]
    for code in np.flatnonzero(order < 0).tolist():
        order[code] = code if code in free else -1
        if code in free:
            free.remove(code)
    order[order < 0] = free
    return order


def reordered(names: Sequence[Any], order: npt.NDArray[np.intp]) -> list[Any]:
    """Return the class of each column, from the column of each class.

    >>> reordered(["a", "b", "c"], np.array([2, 0, 1]))
    ['b', 'c', 'a']
    """
    return [names[code] for code in np.argsort(order).tolist()]
