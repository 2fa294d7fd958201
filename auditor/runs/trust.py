"""Whether the scores of many runs can show anything, and whether they look like runs of their own."""

import numpy as np

from auditor.estimators.auc import auc
from auditor.tradeoff import count
from auditor.values import Check, Floats, Losses, Status

__all__ = ["checks_of"]

_CHANCE = 0.5
_FEW_VALUES = 20  # of a score, such as a decision, which repeats itself by nature
_FEW = 3  # values that may repeat themselves
_SHARE = 0.01  # or as a part of all
_ERRORS = 5.0  # standard errors
_ALIKE = 1e-9  # of the spread of the scores: a rounding error, and no step


def checks_of(losses: Losses) -> tuple[Check, ...]:
    """Return the checks on the scores of all runs.

    >>> losses = Losses(member=[0.0, 0.0, 0.0], nonmember=[1.0, 1.0, 1.0])
    >>> [(check.name, str(check.status)) for check in checks_of(losses)]
    [('direction', 'ok'), ('ties', 'ok'), ('repeats', 'fail')]
    """
    return _direction(losses), _ties(losses), _repeats(losses)


def _direction(losses: Losses) -> Check:
    found = auc(count(losses))
    details = {"auc": found.value, "auc_upper": found.upper, "unit": "runs"}
    if found.upper is None or found.upper >= _CHANCE:
        return Check("direction", Status.OK, "Runs with the canary do not have the higher scores.", details)
    message = (
        "Runs with the canary have clearly higher scores than runs without, the wrong way round: check that the two worlds"
        " are not swapped, and return the negative of a score that is larger with the canary."
    )
    return Check("direction", Status.WARN, message, details)


def _ties(losses: Losses) -> Check:
    equal = _all_equal(losses)
    message = (
        "All scores are equal: this score tells nothing about the canary, and the certified bound is 0."
        if equal
        else "The scores are not all equal."
    )
    details = {"all_equal": equal, "unit": "runs"}
    return Check("ties", Status.WARN if equal else Status.OK, message, details)


def _all_equal(losses: Losses) -> bool:
    first, second = losses.sorted_member, losses.sorted_nonmember
    return bool(first[0] == first[-1] == second[0] == second[-1])


def _repeats(losses: Losses) -> Check:
    """A training that ignores its seed separates the worlds perfectly, and a run that is counted twice is one run."""
    worlds = losses.sorted_member, losses.sorted_nonmember
    constant = [bool(values[0] == values[-1]) for values in worlds]
    distinct, repeated, beside = (sum(item) for item in zip(*map(_repeated, worlds), strict=True))
    details = {
        "constant_with": constant[0],
        "constant_without": constant[1],
        "distinct": distinct,
        "repeated": repeated,
    }
    if all(constant) and not _all_equal(losses):
        message = (
            "Every run of a world gave the same score: check that the training draws its randomness from the seed of the"
            " run; repeated runs count as one, and no bound here holds for them. If it has no randomness, it is not"
            " differentially private, and no audit is needed to say so."
        )
        return Check("repeats", Status.FAIL, message, details)
    margin = max(_FEW, _SHARE * distinct) + _ERRORS * beside**0.5
    if distinct > _FEW_VALUES and repeated - beside > margin:
        message = (
            f"{repeated:,} of {distinct:,} different scores occur more than once in the same world: check that every run has"
            " a seed of its own and is listed once, because no bound here holds for runs that are counted twice; if the"
            " score moves in steps, return it in whole steps, such as a count or a rank."
        )
        return Check("repeats", Status.FAIL, message, details)
    return Check("repeats", Status.OK, "Scores do not repeat more often than chance allows.", details)


def _repeated(values: Floats) -> tuple[int, int, int]:
    """How many different scores there are, how many occur more than once, and how many might by chance.

    Scores that move in steps, as rounded ones and counts do, repeat themselves by chance. Then they also fall on
    neighbouring steps, and whatever the law, if it is smooth, at least as often: (1 - e^-k)^2 >= 1 - (1 + k) e^-k, where
    k runs are expected on a step. Runs that were made twice have equal scores without such neighbours.
    """
    scores, counts = np.unique(values, return_counts=True)
    if scores.size == 1:
        return 1, int(counts[0] > 1), 1
    gaps = np.diff(scores)
    # Of the bulk, so that one score of a training that diverged decides nothing.
    alike = _ALIKE * float(scores[int(0.9 * scores.size)] - scores[int(0.1 * scores.size)])
    even = gaps[gaps > alike]
    beside = [int((gaps < even.min() + alike).sum())]
    for kind in (np.float16, np.float32):  # whose steps grow with the number
        with np.errstate(over="ignore"):
            short = scores.astype(kind)
        if np.array_equal(short.astype(np.float64), scores):
            beside.append(int((np.nextafter(short, kind(np.inf))[:-1] == short[1:]).sum()))
    return int(scores.size), int((counts > 1).sum()), max(beside)
