"""The noise floor against the design's values and against refitting real relabellings."""

import numpy as np
import pytest

from auditor.core import Losses
from auditor.curves import fit_gaussian, published
from auditor.estimators import gaussian_supremum, noise_floor


@pytest.mark.parametrize(
    ("law", "n", "expected"),
    [
        ("normal", 1000, 0.45),
        ("normal", 10_000, 0.12),
        ("exponential", 1000, 0.72),
        ("exponential", 10_000, 0.22),
    ],
)
def test_reference_values(rng, law, n, expected):
    """Identical laws at delta 1e-5: about .45 and .12 (normal scores), .72 and .22 (exponential, transformed); design."""
    draw = rng.normal if law == "normal" else rng.exponential
    means = []
    for _ in range(10):
        losses = Losses(member=draw(size=n), nonmember=draw(size=n))
        moved = losses if law == "normal" else published(losses)
        means.append(noise_floor(moved, delta=1e-5, clip=1e-5, rng=rng).mean())
    assert np.mean(means) == pytest.approx(expected, rel=0.2)


def test_against_real_relabellings(rng):
    """The binned draws have the mean and spread of refits to really permuted records, for lopsided groups too."""
    losses = published(Losses(member=rng.gamma(2, 1, 300), nonmember=rng.gamma(2.2, 1, 900)))
    pooled = np.concatenate([losses.member, losses.nonmember])

    def refitted():
        order = rng.permutation(pooled)
        return gaussian_supremum(
            fit_gaussian(order[:300]), fit_gaussian(order[300:]), delta=1e-3, clip=1e-3
        ).value

    real = np.array([refitted() for _ in range(600)])
    binned = noise_floor(losses, delta=1e-3, clip=1e-3, rng=rng, permutations=600)
    error = real.std() / np.sqrt(600)
    assert binned.mean() == pytest.approx(real.mean(), abs=5 * error)
    assert binned.std() == pytest.approx(real.std(), rel=0.2)


def test_constant_losses_have_no_noise(rng):
    """Where every record is the same, relabelling changes nothing."""
    losses = Losses(member=np.ones(10), nonmember=np.ones(20))
    assert noise_floor(losses, delta=1e-3, clip=1e-3, rng=rng, permutations=5).tolist() == [0.0] * 5
