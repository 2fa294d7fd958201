"""Diameters of point sets against every pair, and the clip of Algorithm 4."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from auditor.sensitivity import Approximate, Full, clipped, largest_distance


@pytest.mark.parametrize("points", [2, 3, 7, 40])
@pytest.mark.parametrize("width", [1, 2, 30])
def test_full_is_the_largest_of_all_pairs(rng, points, width):
    """The exact distance is what scipy finds over all pairs of all sets; it is never above the approximate one."""
    for _ in range(20):
        sets = rng.normal(size=(5, points, width)) * rng.exponential(size=(5, 1, 1))
        expected = max(pdist(one).max() for one in sets)
        full = largest_distance(sets, distance=Full())
        approximate = largest_distance(sets, distance=Approximate())
        assert full == pytest.approx(expected, rel=1e-12)
        assert full <= approximate * (1 + 1e-12) <= 2 * full * (1 + 1e-12)


def test_equilateral_sets_need_all_pairs(rng):
    """Where the point farthest from the mean is not an end of the diameter, the diameter is found all the same."""
    corners = np.array([[0.0, 2.2], [-1.9, -1.0], [1.9, -1.0], [0.0, -1.2]])
    radii = np.linalg.norm(corners - corners.mean(axis=0), axis=1)
    assert radii.argmax() == 0
    assert np.linalg.norm(corners - corners[0], axis=1).max() < pdist(corners).max() == 3.8
    sets = np.stack([corners + rng.normal(size=2) for _ in range(4)])
    assert largest_distance(sets, distance=Full()) == pytest.approx(3.8, rel=1e-12)


def test_a_common_offset_costs_no_digits(rng):
    """Points a millionth apart around a point a million away keep the digits that their coordinates have."""
    sets = 1e6 + 1e-6 * rng.normal(size=(3, 10, 4))
    exact = max(pdist((one - one[0]).astype(np.longdouble).astype(float)).max() for one in sets)
    assert largest_distance(sets, distance=Full()) == pytest.approx(exact, rel=1e-3)


def test_approximate_is_twice_the_distance_to_the_mean():
    """Section 5.4: with v the mean, 2 max |g - v|."""
    points = np.array([[[0.0], [1.0], [5.0]]])
    assert largest_distance(points, distance=Approximate()) == 6.0
    assert largest_distance(points, distance=Full()) == 5.0


@pytest.mark.parametrize("distance", [Full(), Approximate()])
def test_extremes_of_size(distance):
    """All equal gives 0, no sets what is known, two points their distance, and what is known is never lost."""
    assert largest_distance(np.ones((2, 3, 4)), distance=distance) == 0.0
    assert largest_distance(np.empty((0, 3, 4)), distance=distance, known=0.3) == 0.3
    assert largest_distance(np.array([[[0.0, 0.0], [3.0, 4.0]]]), distance=distance) == pytest.approx(5.0)
    assert largest_distance(np.array([[[0.0], [1.0]]]), distance=distance, known=7.0) == 7.0


def test_clip_is_the_papers(rng):
    """The clip is g / max(1, |g| / C): short gradients stay, long ones get the norm and keep the direction."""
    gradients = rng.normal(size=(50, 6)) * np.geomspace(1e-3, 1e3, 50)[:, None]
    for norm in (0.1, 1.0, 30.0):
        expected = gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=1) / norm)[:, None]
        assert clipped(gradients, clipping_norm=norm) == pytest.approx(expected, rel=1e-13)


def test_clip_survives_extremes():
    """Gradients of 1e300 are clipped to the norm, tiny ones and zeros stay."""
    gradients = np.array([[3e300, 4e300], [0.0, 0.0], [1e-300, 0.0]])
    assert clipped(gradients, clipping_norm=1.0).tolist() == [
        pytest.approx([0.6, 0.8]),
        [0.0, 0.0],
        pytest.approx([1e-300, 0.0]),
    ]
    assert largest_distance(clipped(gradients[None], clipping_norm=1.0), distance=Full()) == pytest.approx(
        1.0
    )
