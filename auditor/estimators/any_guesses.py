"""The e-process over every number of guesses at once, for pure epsilon [own].

The guesses are put in an order that depends only on the model's output and the unordered records. Given those and all
earlier outcomes, an epsilon-DP mechanism lets a guess be right with probability at most q = o e^eps/(1 + o e^eps), o
the prior odds that it is right (1 for a random pair). So, for a stake u in (0, 1),

    E_r(eps) = prod over the first r guesses of  1 + u (1 - q)/q = 1 + u e^-eps/o  if right,  1 - u  if wrong

is a supermartingale that starts at 1, and so is its mean over fixed stakes. Ville: max_r E_r >= 1/alpha with
probability at most alpha. Every factor falls with eps, so eps_L = sup{eps: max_r E_r(eps) >= 1/alpha} keeps the level.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["AnyNumber", "any_guesses_bound"]

# The stakes, fixed before any data are seen.
_STAKES = (np.arange(16, dtype=np.float64) + 0.5) / 16
_LARGEST_EPSILON = 60.0
_HALVINGS = 42  # to 2e-11


@dataclass(frozen=True)
class AnyNumber:
    """What the e-process refutes: every epsilon up to ``bound``, with these guesses and right ones among them."""

    bound: float
    guesses: int
    correct: int


def any_guesses_bound(
    right: npt.NDArray[np.bool_], *, alpha: float, odds: npt.ArrayLike = (1.0,)
) -> AnyNumber:
    """Return the largest pure epsilon that the guesses refute, whatever their number; 0 if none.

    Args:
        right: Shape (r,), which guesses are right, in an order fixed without looking at membership.
        alpha: In (0, 1).
        odds: Prior odds that a guess is right, above 0: one number, or a cycle of them along the guesses.

    Raises:
        InputError: No guesses, alpha outside (0, 1), or odds that are not above 0.

    >>> found = any_guesses_bound(np.arange(100) < 60, alpha=0.05)
    >>> found.guesses, found.correct, 2 < found.bound < 4
    (60, 60, True)
    """
    right = np.asarray(right, dtype=bool)
    _validate.at_least("guesses", right.size, least=1)
    threshold = -math.log(_validate.fraction("alpha", alpha))
    prior = np.asarray(odds, dtype=np.float64)
    if not (prior > 0).all():
        raise InputError(f"odds must be above 0, got {prior.min():g}; leave the guess out.")
    paths = _paths(right, prior.size)
    paths = paths[_log_mean(paths, prior, 0.0) >= threshold]
    if not len(paths):
        return AnyNumber(0.0, right.size, int(right.sum()))
    low, high = 0.0, _LARGEST_EPSILON
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        refuting = _log_mean(paths, prior, middle) >= threshold
        if refuting.any():
            # E falls with epsilon: what does not refute here refutes nothing larger.
            low, paths = middle, paths[refuting]
        else:
            high = middle
    best = paths[0]
    return AnyNumber(low, int(best.sum()), int(best[1:].sum()))


def _paths(right: npt.NDArray[np.bool_], kinds: int) -> Floats:
    """Wrong and right guesses of each kind, after each run of right ones: E is largest nowhere else."""
    ends = np.flatnonzero(right & np.append(~right[1:], True))
    kind = np.arange(right.size) % kinds
    columns = [np.cumsum(~right)[ends], *(np.cumsum(right & (kind == k))[ends] for k in range(kinds))]
    return np.stack(columns, axis=1).astype(np.float64)


def _log_mean(paths: Floats, odds: Floats, epsilon: float) -> Floats:
    """Log of the mean of E over the stakes, for each path."""
    logs: npt.NDArray[Any] = paths[:, :1] * np.log1p(-_STAKES)
    for kind, prior in enumerate(odds.tolist()):
        logs += paths[:, kind + 1, None] * np.log1p(_STAKES * (math.exp(-epsilon) / prior))
    most = logs.max(axis=1, initial=-math.inf)
    return np.asarray(most + np.log(np.mean(np.exp(logs - most[:, None]), axis=1)))
