"""Are these the logits of those probabilities? Asked before an output that keeps going stands in for one that rounds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.outputs import resolution
from auditor.values import Floats

__all__ = ["agreement", "label_agreement"]

_TOLERANCE = 1e-6  # relative, on probabilities
_PINNED = 1e-3  # a probability known more coarsely than this (relative) says nothing about a logit


def agreement(logits: npt.NDArray[Any], *, probabilities: npt.NDArray[Any]) -> bool | None:
    """Return whether softmax(logits) is the probabilities: no, yes, or null when rounding hides the answer.

    A probability p carries a rounding error of about eps, so log p is known to within 4 eps / p. Any entry further
    from log softmax than that says no. An entry of at most one half says yes if it is known well enough (to 0.1%),
    or if it agrees to full relative precision, as the small side of a sigmoid does far beyond eps.

    Args:
        logits: Shape (n, K), or (n,) for the second of two classes.
        probabilities: Shape (n, K), or (n,) likewise.
    """
    eps = max(resolution(probabilities), resolution(logits))
    given = probabilities.astype(np.float64)
    if given.ndim == 1:
        given = np.stack([1 - given, given], axis=1)
    two = logits.ndim == 1 and given.shape[1] == 2  # noqa: PLR2004
    if given.ndim != 2 or (not two and logits.shape != given.shape):  # noqa: PLR2004
        return False
    expected = _log_softmax(logits.astype(np.float64))
    if not (np.isfinite(expected).all() and np.isfinite(given).all()):
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.abs(np.log(given) - expected)
        near = _TOLERANCE + 4 * eps * (8 + np.abs(expected))
        coarse = near + 4 * eps / given
    if np.any(np.where(given > 0, gap > coarse, expected > np.log(8 * eps))):
        return False
    evidence = (given > 0) & (given <= 0.5) & ((coarse < _PINNED) | (gap <= near))  # noqa: PLR2004
    return True if evidence.any() else None


def label_agreement(logits: npt.NDArray[Any], *, probabilities: npt.NDArray[Any]) -> bool | None:
    """Return whether each column's sigmoid is that column of probabilities, as `agreement` does for one.

    Args:
        logits: Shape (n, K), for K labels of two classes each.
        probabilities: Shape (n, K).
    """
    if logits.shape != probabilities.shape or logits.ndim != 2:  # noqa: PLR2004
        return False
    answers = [
        agreement(logits[:, column], probabilities=probabilities[:, column])
        for column in range(logits.shape[1])
    ]
    if False in answers:
        return False
    return True if answers and None not in answers else None


def _log_softmax(logits: Floats) -> Floats:
    if logits.ndim == 1:
        return np.stack([-np.logaddexp(0, logits), -np.logaddexp(0, -logits)], axis=1)
    centred = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(centred - np.log(np.exp(centred).sum(axis=1, keepdims=True)))
