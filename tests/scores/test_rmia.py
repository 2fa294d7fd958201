"""Offline RMIA against the double loop of its definition, in floats and in mpmath."""

import mpmath
import numpy as np
import pytest

from auditor.core import InputError, Losses
from auditor.scores import Population, References, rmia


def probability(loss, scale):
    """P of the true class, from its cross-entropy or its negative log-odds, in 60 digits."""
    loss = mpmath.mpf(float(loss))
    return mpmath.exp(-loss) if scale == "cross-entropy" else 1 / (1 + mpmath.exp(loss))


def ratio(loss, references, a, scale):
    """P/Phat, as in Zarifzadeh et al. 2024."""
    out = mpmath.fsum(probability(item, scale) for item in references) / len(references)
    return probability(loss, scale) / (((1 + a) * out + (1 - a)) / 2)


def oracle(losses, references, population, own, *, a, gamma, scale):
    """The share of population records z with ratio(x)/ratio(z) > gamma, by two loops; and the ratios of x."""
    with mpmath.workdps(60):
        xs = [ratio(loss, row, a, scale) for loss, row in zip(losses, references, strict=True)]
        zs = [ratio(loss, row, a, scale) for loss, row in zip(population, own, strict=True)]
        return np.array([sum(x / z > gamma for z in zs) / len(zs) for x in xs]), xs


def draws(rng, scale, n, m, models):
    """Losses of n records and m population records, with reference losses, on a scale."""
    sizes = (n, (n, models), m, (m, models))
    if scale == "cross-entropy":
        return [rng.exponential(2.0, size) for size in sizes]
    return [rng.normal(0, 3, size) for size in sizes]


def scored(loss, refs, pop, own, *, scale="cross-entropy", **options):
    """The score of each record, larger for likelier members, with the first half of them as the members."""
    half = len(loss) // 2
    step = rmia(
        References(member=refs[:half], nonmember=refs[half:]),
        population=Population(loss=pop, reference=own, scale=scale),
        **options,
    )
    moved = step(Losses(member=loss[:half], nonmember=loss[half:], scale=scale))
    return -np.concatenate([moved.member, moved.nonmember])


@pytest.mark.parametrize("scale", ["cross-entropy", "log-odds"])
@pytest.mark.parametrize(("a", "gamma"), [(0.3, 1.0), (0.0, 1.0), (1.0, 1.5), (0.7, 0.5)])
def test_rmia_is_its_definition(rng, scale, a, gamma):
    """The score lies within one population record of the double loop's, and orders records by its ratio."""
    world = draws(rng, scale, 60, 25, 3)
    expected, ratios = oracle(*world, a=a, gamma=gamma, scale=scale)
    score = scored(*world, scale=scale, a=a, gamma=gamma)
    assert np.all(expected - np.clip(score, 0, 1) >= -1e-12)
    assert np.all(expected - np.clip(score, 0, 1) <= 1 / 25 + 1e-12)
    assert np.array_equal(np.argsort(score), np.argsort(np.array(ratios, dtype=object)))


def test_probabilities_below_the_smallest_float_do_not_tie():
    """Cross-entropies of 800 and 900, whose probabilities are 0 in float64, keep their order as mpmath's do."""
    loss, refs = np.array([800.0, 900.0, 2000.0, 1e6]), np.full((4, 1), 800.0)
    world = loss, refs, np.array([850.0, 0.1]), np.array([[800.0], [0.2]])
    score = scored(*world)
    assert np.all(np.diff(score) < 0)
    expected, _ = oracle(*world, a=0.3, gamma=1.0, scale="cross-entropy")
    np.testing.assert_array_equal(np.ceil(np.clip(2 * score, 0, 2)) / 2, expected)


def test_records_beyond_the_population_keep_their_order():
    """Where the published score ties all records beyond every population record, the losses still differ, a nat by 1/n."""
    loss = np.linspace(0.001, 0.2, 20)
    score = scored(loss, np.ones((20, 1)), np.linspace(1.0, 5.0, 40), np.ones(40))
    np.testing.assert_allclose(np.diff(score), -np.diff(loss) / 40, rtol=1e-9)


def test_unknown_scales_are_read_as_cross_entropy_or_refused():
    """Losses of unknown scale are cross-entropies when none is negative; otherwise the sentence names the fix."""
    reference = References(member=[0.5, 0.6], nonmember=[0.7, 0.8])
    values = {"member": [0.1, 0.2], "nonmember": [0.3, 0.4]}
    population = Population(loss=[0.5, 0.9], reference=[0.5, 0.9])
    declared = Population(loss=[0.5, 0.9], reference=[0.5, 0.9], scale="cross-entropy")
    unknown = rmia(reference, population=population)(Losses(**values))
    known = rmia(reference, population=declared)(Losses(**values, scale="cross-entropy"))
    assert np.array_equal(unknown.member, known.member)
    assert "read as cross-entropy" in unknown.history[-1]
    with pytest.raises(
        InputError, match=r"down to -0\.1, which no cross-entropy is; give Losses\(scale='log-odds'\)"
    ):
        rmia(reference, population=population)(Losses(member=[-0.1, 0.2], nonmember=[0.3, 0.4]))


def test_trusting_the_references_alone_is_the_likelihood_ratio(rng):
    """With a = 1 the order is that of log P - log Pout: one reference model gives difficulty calibration."""
    loss, refs, *population = draws(rng, "cross-entropy", 40, 30, 1)
    score = scored(loss, refs, *population, a=1.0)
    assert np.array_equal(np.argsort(-score), np.argsort(loss - refs[:, 0]))


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310, 1e-200])
def test_differences_below_the_smallest_normal_double(rng, size):
    """Losses that are all but equal give finite scores in the order of the ratio, as every loss does."""
    loss, *others = (values * size for values in draws(rng, "cross-entropy", 48, 20, 1))
    score = scored(loss, *others, a=1.0)
    assert np.all((score >= -1e-12) & (score <= 1 + 1e-12))
    assert np.all(np.diff(score[np.argsort(loss)]) <= 1e-12)
