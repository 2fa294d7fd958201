"""Bets against the noise of steps: their level and coverage by simulation, the inequality behind them, and their power."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.training import bets
from auditor.training.bets import RATIOS, StepBets, slack

ALPHA = 0.05


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.7])
def test_no_event_exceeds_the_slack(mu, slope):
    """Over all half lines, P1(A) - e^s P0(A) is at most the slack, and one attains it."""
    thresholds = np.linspace(-6, 9, 20_001)
    gaps = stats.norm.sf(thresholds - mu) - np.exp(slope) * stats.norm.sf(thresholds)
    assert gaps.max() == pytest.approx(float(slack(mu, slope)), abs=1e-6)


def shared(rng, coins, sigma):
    """All canaries of a step get one noise value."""
    return coins + rng.normal(0, sigma, (len(coins), 1))


def dependent(rng, coins, sigma):
    """The noise of a canary is turned and shifted by the coins of all others: given these, it is as claimed."""
    others = coins.sum(axis=1, keepdims=True) - coins
    return coins + np.where(others % 2 == 1, -1, 1) * rng.normal(0, sigma, coins.shape) + 0.3 * others


def own(rng, coins, sigma):
    """Each canary has a noise value of its own."""
    return coins + rng.normal(0, sigma, coins.shape)


def reused(rng, coins, sigma):
    """Noise of a first-order process whose innovations are as claimed: the past tells its mean, and the claim still holds."""
    reused.last = 0.8 * getattr(reused, "last", np.zeros(coins.shape)) + rng.normal(0, sigma, coins.shape)
    return coins + reused.last


@pytest.mark.parametrize(
    ("noise", "canaries", "sigmas"),
    [
        (own, 1, [1.0]),
        (own, 8, [1.0]),
        (shared, 8, [1.0]),
        (dependent, 6, [1.0]),
        (own, 4, [0.4, 2.0]),
        (reused, 4, [1.0]),
    ],
)
def test_a_true_claim_is_refuted_at_most_as_often_as_stated(noise, canaries, sigmas, monkeypatch, request):
    """Stopping at the best of 60 steps, with bets on single tensors too; canaries depend on one another as the claim allows."""
    draws = 20_000 if request.config.getoption("--long") else 4_000
    monkeypatch.setattr(bets, "RATIOS", np.ones(1))
    reused.last = 0.0
    rng = np.random.default_rng(7)
    tensors = [np.arange(1), np.arange(1, canaries)] if canaries > 1 else []
    watched = StepBets(np.ones(canaries), tensors=tensors, copies=(draws,))
    for step in range(60):
        coins = rng.random((draws, canaries)) < 0.5
        sigma = sigmas[step % len(sigmas)]
        watched.add(noise(rng, coins, sigma), coins, noise=sigma)
    refuted = (watched.most >= -math.log(ALPHA)).mean()
    assert refuted <= ALPHA + 3 * math.sqrt(ALPHA / draws)
    assert refuted > 0  # the bets do risk their capital


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.4])
def test_the_certified_noise_is_above_the_truth(ratio):
    """The limits of all canaries and of each tensor hold at once, and are not far above."""
    copies, canaries = 300, 16
    rng, tensors = np.random.default_rng(8), [np.arange(4), np.arange(4, 16)]
    watched = StepBets(np.ones(canaries), tensors=tensors, copies=(copies,))
    for _ in range(150):
        coins = rng.random((copies, canaries)) < 0.5
        watched.add(coins + rng.normal(0, ratio, coins.shape), coins, noise=1.0)
    limits = watched.at_most(ALPHA)
    assert (limits < ratio * 0.999).any(axis=1).mean() <= ALPHA + 3 * math.sqrt(ALPHA / copies)
    assert np.median(limits[:, 0]) < 1.3 * ratio


@pytest.mark.parametrize(("ratio", "within"), [(0.5, 100), (0.8, 250), (0.9, 500)])
def test_less_noise_is_found(ratio, within):
    """With 64 canaries, in 19 of 20 audits."""
    rng, watched = np.random.default_rng(9), StepBets(np.ones(64), copies=(20,))
    for _ in range(within):
        coins = rng.random((20, 64)) < 0.5
        watched.add(coins + rng.normal(0, ratio, coins.shape), coins, noise=1.0)
    assert (watched.most >= -math.log(ALPHA)).sum() >= 19


def test_a_true_claim_is_certified_closely():
    """After 1,000 steps the median of 20 limits is at most 1.06, and no limit is below 1 in most."""
    rng, watched = np.random.default_rng(10), StepBets(np.ones(64), copies=(20,))
    for _ in range(1000):
        coins = rng.random((20, 64)) < 0.5
        watched.add(coins + rng.normal(0, 1, coins.shape), coins, noise=1.0)
    assert 1 <= np.median(watched.at_most(ALPHA)[:, 0]) <= 1.06


def test_payoffs_and_stakes_keep_capital_positive():
    """Whatever the scores are, no bet loses more than it has: also canaries of unequal shares and claims of much or little noise."""
    rng = np.random.default_rng(11)
    for noise in (0.05, 1.0, 50.0):
        watched = StepBets(rng.uniform(0.05, 1, 6), tensors=[np.arange(2), np.arange(2, 6)])
        for _ in range(30):
            coins = rng.random(6) < 0.5
            watched.add(rng.normal(0, 100, 6) * (~coins), coins, noise=noise)
        assert np.isfinite(watched.most)
        assert np.isfinite(watched.grown).all()


def test_the_ratios_hold_the_claim():
    """The tested ratios increase, and are within a hundredth of each other around the claim itself."""
    assert 1.0 in RATIOS
    assert (np.diff(RATIOS) > 0).all()
    around = RATIOS[(RATIOS > 0.85) & (RATIOS < 1.2)]
    assert np.diff(np.log(around)).max() < 0.0101
