"""Transforms: published values, a contract that every transform keeps, and extreme inputs."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from auditor.core import Losses, LossScale
from auditor.curves import fit_gaussian, log_odds, normalise, published
from auditor.estimators import gaussian_supremum

EVERY = {
    "normalise": normalise,
    "published": published,
    "log_odds": log_odds,
}


@pytest.mark.parametrize("name", EVERY)
def test_every_transform_keeps_the_order(rng, name):
    """A transform never reorders records: smaller still means more like a member."""
    losses = Losses(member=rng.exponential(2, 300), nonmember=rng.exponential(3, 200))
    moved = EVERY[name](losses)
    before, after = (np.concatenate([x.member, x.nonmember]) for x in (losses, moved))
    assert np.all(np.diff(after[np.argsort(before)]) >= 0)


@pytest.mark.parametrize("name", EVERY)
def test_every_transform_keeps_the_labels_and_says_what_it_did(rng, name):
    """Ids, groups and people travel along, the history grows, and the input is left alone."""
    pair = (np.arange(4), np.arange(3))
    losses = Losses(
        member=rng.random(4), nonmember=rng.random(3), id=pair, group=pair, person=pair, saturated=(1, 2)
    )
    before = losses.member.copy()
    moved = EVERY[name](losses)
    assert len(moved.history) > len(losses.history)
    assert np.array_equal(moved.id.nonmember, pair[1])
    assert moved.saturated == (1, 2)
    assert np.array_equal(losses.member, before)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [0.0, 3.0, 1e300])
def test_constant_losses_stay_constant(name, value):
    """Constant losses stay constant and finite under every transform."""
    moved = EVERY[name](Losses(member=np.full(3, value), nonmember=np.full(2, value)))
    assert np.unique(np.concatenate([moved.member, moved.nonmember])).size == 1


def test_the_published_range():
    """-phi runs from log(e - 1) = 0.541325 to log(e^2 - 1) = 1.854587 (Negoescu et al. 2024, Appendix B)."""
    moved = published(Losses(member=[3.0, 4.0], nonmember=[5.0, 9.0]))
    assert moved.member[0] == pytest.approx(0.541325, abs=5e-7)
    assert moved.nonmember[1] == pytest.approx(1.854587, abs=5e-7)


def test_the_published_chain_step_by_step(rng):
    """The chain equals the paper's four steps written out, negated."""
    member, nonmember = rng.normal(0, 3, 50), rng.normal(2, 3, 60)
    low, high = min(member.min(), nonmember.min()), max(member.max(), nonmember.max())
    step3 = np.exp(-((member - low) / (high - low) + 1))
    phi = np.log(step3) - np.log(1 - step3)
    np.testing.assert_allclose(published(Losses(member=member, nonmember=nonmember)).member, -phi, rtol=1e-12)


@pytest.mark.parametrize("loss", [1e-12, 1e-3, 0.5, 3.0, 40.0, 800.0])
def test_log_odds_of_a_cross_entropy(loss):
    """log(exp(l) - 1) is exact from 1e-12 to 800, where exp overflows."""
    moved = log_odds(Losses(member=[loss, loss], nonmember=[1.0, 2.0], scale=LossScale.CROSS_ENTROPY))
    with mpmath.workdps(400):
        expected = float(mpmath.log(mpmath.expm1(mpmath.mpf(loss))))
    assert moved.member[0] == pytest.approx(expected, rel=1e-13)


def test_log_odds_leaves_log_odds_alone():
    """Losses that are log-odds already, declared or negative, are not mapped again."""
    declared = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], scale="log-odds")
    negative = Losses(member=[-1.0, 2.0], nonmember=[3.0, 4.0])
    assert np.array_equal(log_odds(declared).member, declared.member)
    assert np.array_equal(log_odds(negative).member, negative.member)


def test_a_zero_cross_entropy_is_finite():
    """A cross-entropy of exactly 0 is raised to float64's rounding instead of becoming -inf."""
    moved = log_odds(Losses(member=[0.0, 1.0], nonmember=[1.0, 2.0]))
    assert moved.member[0] == pytest.approx(math.log(np.finfo(float).eps))


def test_huge_losses_do_not_overflow():
    """Losses at both ends of float64 are normalised without overflow."""
    moved = normalise(Losses(member=[-1.7e308, 0.0], nonmember=[0.0, 1.7e308]))
    np.testing.assert_allclose(np.concatenate([moved.member, moved.nonmember]), [0.0, 0.5, 0.5, 1.0])


@pytest.mark.parametrize(
    ("transform", "expected"),
    [(None, 5.208), (published, 4.998), (log_odds, 4.833)],
    ids=["raw", "published", "log-odds"],
)
def test_the_gamma_references(transform, expected):
    """Gamma(2,5) against Gamma(3,5), 5 a rate, clip = delta = 1e-5: 5.208 raw, 4.998 published, 4.833 log-odds (design)."""
    # Deterministic quantiles; the published value depends on the sample's range, so its tolerance is wider.
    levels = (np.arange(200_000) + 0.5) / 200_000
    losses = Losses(*(stats.gamma.ppf(levels, shape, scale=1 / 5) for shape in (2, 3)))
    moved = losses if transform is None else transform(losses)
    value = gaussian_supremum(
        fit_gaussian(moved.member), fit_gaussian(moved.nonmember), delta=1e-5, clip=1e-5
    ).value
    assert value == pytest.approx(expected, abs=0.08 if expected == 4.998 else 0.02)
