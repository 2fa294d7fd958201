"""How far apart the gradients of one record are over the values of its attribute: the diameter of a set of points."""

from dataclasses import dataclass

import numpy as np

from auditor.values import Floats

__all__ = ["Approximate", "Distance", "Full", "clipped", "largest_distance"]


@dataclass(frozen=True)
class Full:
    """The largest distance of any two completions, exactly.

    Only records that may hold the largest distance of the batch are compared pair by pair. That costs more than
    `Approximate`, and can cost as much as comparing all pairs of all records by one product of matrices.
    """


@dataclass(frozen=True)
class Approximate:
    """Twice the largest distance to the mean of the completions: an upper bound, at most twice the exact one.

    The paper calls it a lower bound; it bounds the distance from above, and so the Bayes security from below (erratum
    to Cherubin et al. 2024, Section 5.4).
    """


Distance = Full | Approximate


def clipped(gradients: Floats, *, clipping_norm: float) -> Floats:
    """Return gradients scaled to at most the clipping norm, g / max(1, |g| / C).

    Args:
        gradients: Shape (..., parameters).
        clipping_norm: C, above 0.

    Source: Cherubin et al. 2024, Algorithm 4.

    >>> clipped(np.array([[30.0, 40.0], [0.0, 4.0]]), clipping_norm=5.0).round(12).tolist()
    [[3.0, 4.0], [0.0, 4.0]]
    """
    # Divided by its largest entry first, so that no square is beyond a double.
    largest = np.maximum(np.abs(gradients).max(axis=-1, keepdims=True, initial=0.0), clipping_norm)
    scaled = gradients / largest
    length = np.maximum(_length(scaled)[..., None], np.finfo(np.float64).tiny)
    return np.asarray(scaled * np.minimum(largest, clipping_norm / length))


def largest_distance(points: Floats, *, distance: Distance, known: float = 0.0) -> float:
    """Return the largest distance of two points of the same set, over all sets.

    Args:
        points: Shape (sets, points, coordinates).
        distance: `Full` or `Approximate`.
        known: A distance that is there already; the result is at least this.

    Source: Cherubin et al. 2024, Section 5.4.

    >>> corners = np.array([[[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]])
    >>> largest_distance(corners, distance=Full())
    5.0
    """
    if not points.size:
        return known
    centred = points - points.mean(axis=1, keepdims=True)
    radii = _length(centred)
    if isinstance(distance, Approximate):
        return max(known, 2 * float(radii.max()))
    # No two points are farther apart than the two largest radii together, and some point is as far from the one with
    # the largest radius as found here. Only sets that might still hold more need all pairs.
    top = np.sort(radii, axis=1)[:, -2:].sum(axis=1)
    first = np.take_along_axis(centred, radii.argmax(axis=1)[:, None, None], axis=1)
    best = max(known, float(_length(centred - first).max()))
    for row in np.flatnonzero(top > best):
        best = max(best, _diameter(centred[row]))
    return best


def _diameter(points: Floats) -> float:
    """Return the largest distance of two points with mean 0, whose inner products then cancel nothing."""
    squares = np.einsum("ij,ij->i", points, points)
    gram = np.einsum("ij,kj->ik", points, points)
    pair = np.unravel_index(int(np.argmax(squares[:, None] + squares - 2 * gram)), gram.shape)
    return float(_length(points[pair[0]] - points[pair[1]]))


def _length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)))
