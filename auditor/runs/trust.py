"""Whether the scores of many runs can show anything, and whether they look like runs of their own."""

import numpy as np

from auditor.estimators.auc import auc
from auditor.tradeoff import count
from auditor.values import Check, Losses, Status

__all__ = ["checks_of"]

_CHANCE = 0.5


def checks_of(losses: Losses) -> tuple[Check, ...]:
    """Return the checks on the scores of all runs.

    >>> losses = Losses(member=[0.0, 0.0, 0.0], nonmember=[1.0, 1.0, 1.0])
    >>> [(check.name, str(check.status)) for check in checks_of(losses)]
    [('direction', 'ok'), ('ties', 'ok'), ('repeats', 'warn')]
    """
    return _direction(losses), _ties(losses), _repeats(losses)


def _direction(losses: Losses) -> Check:
    found = auc(count(losses))
    details = {"auc": found.value, "auc_upper": found.upper}
    if found.upper is None or found.upper >= _CHANCE:
        return Check("direction", Status.OK, "Runs with the canary do not have the higher scores.", details)
    message = (
        "Runs with the canary have clearly higher scores than runs without, the wrong way round: check that the two worlds"
        " are not swapped, and return the negative of a score that is larger with the canary."
    )
    return Check("direction", Status.WARN, message, details)


def _ties(losses: Losses) -> Check:
    values = np.concatenate([losses.member, losses.nonmember])
    equal = bool(values.min() == values.max())
    message = (
        "All scores are equal: this score tells nothing about the canary, and every bound is 0."
        if equal
        else "The scores are not all equal."
    )
    return Check("ties", Status.WARN if equal else Status.OK, message, {"all_equal": equal})


def _repeats(losses: Losses) -> Check:
    """A training that ignores its seed separates the worlds perfectly, whatever its privacy."""
    constant = [bool(values[0] == values[-1]) for values in (losses.sorted_member, losses.sorted_nonmember)]
    details = {"constant_with": constant[0], "constant_without": constant[1]}
    if not all(constant):
        return Check("repeats", Status.OK, "The score differs from run to run.", details)
    message = (
        "Every run of a world gave the same score: check that the training draws its randomness from the seed of the run;"
        " repeated runs count as one, and no bound here holds for them."
    )
    return Check("repeats", Status.WARN, message, details)
