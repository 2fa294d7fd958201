"""Bets on pairs of runs: no gain on average by listing all outcomes, and levels under stopping at will."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from simulation import runs_for

from auditor import DPSGD
from auditor.curves import TradeoffCurve
from auditor.estimators.betting import Bets, Lines, epsilon_bound, epsilon_ceiling, grid_lines, pairs_needed
from auditor.theory import claimed_curve

GAUSSIAN = claimed_curve(DPSGD(1.0, 1.0, 1)).curve
PURE = TradeoffCurve.from_epsilon_delta(1.0, delta=0.0)
ENOUGH = math.log(20)
ODDS = math.e / (1 + math.e)


def after(lines, pairs):
    """The bets after these pairs."""
    bets = Bets(lines)
    bets.add(*np.transpose(pairs))
    return bets


def refuted(lines, pairs):
    """Whether the evidence was ever enough."""
    return after(lines, pairs).most >= ENOUGH


# --- No gain on average --------------------------------------------------------------------------------


def mean_evidence(lines, with_canary, without, pairs):
    """The mean of the e-value over all outcomes of so many pairs of discrete scores, {score: probability} each."""
    outcomes = [
        (pair, with_canary[pair[0]] * without[pair[1]]) for pair in itertools.product(with_canary, without)
    ]
    return sum(
        math.prod(chance for _, chance in run)
        * math.exp(after(lines, [pair for pair, _ in run]).log_evidence)
        for run in itertools.product(outcomes, repeat=pairs)
    )


def response(right, delta=0.0):
    """A score of 0 says "with" and is right with this chance; with chance delta it gives the world away."""
    worlds = (
        {0: (1 - delta) * right, 1: (1 - delta) * (1 - right)},
        {0: (1 - delta) * (1 - right), 1: (1 - delta) * right},
    )
    return ({**worlds[0], -9: delta}, {**worlds[1], 9: delta}) if delta else worlds


@pytest.mark.parametrize(
    ("curve", "law", "pairs"),
    [
        (PURE, response(ODDS), 5),
        (TradeoffCurve.from_epsilon_delta(1.0, delta=0.1), response(ODDS, 0.1), 3),
        (GAUSSIAN, response(stats.norm.cdf(0.5)), 5),
        # A score that gives the run away at an alarm rate of .1 in one tail only.
        (
            GAUSSIAN,
            (
                {0: stats.norm.cdf(stats.norm.ppf(0.1) + 1), 1: 1 - stats.norm.cdf(stats.norm.ppf(0.1) + 1)},
                {0: 0.1, 1: 0.9},
            ),
            5,
        ),
    ],
    ids=["pure", "delta", "gaussian", "one tail"],
)
def test_the_mean_evidence_against_a_true_claim_is_at_most_one(curve, law, pairs):
    """Summed over all outcomes of laws exactly at the claim, the e-value is 1 at most: in either world's order."""
    lines = Lines.of_curve(curve)
    assert mean_evidence(lines, *law, pairs) <= 1 + 1e-9
    mirrored = tuple({-score: chance for score, chance in world.items()} for world in reversed(law))
    assert mean_evidence(lines, *mirrored, pairs) <= 1 + 1e-9


def test_lines_lie_above_their_curve():
    """At every rate each line allows as much as the curve, and touches it."""
    for curve in (PURE, GAUSSIAN, TradeoffCurve.from_epsilon_delta(7.3, delta=1e-3)):
        lines = Lines.of_curve(curve)
        gaps = np.exp(lines.slopes)[:, None] * curve.fpr + lines.slack[:, None] - curve.tpr
        assert gaps.min() >= -1e-12
        assert gaps.min(axis=1) == pytest.approx(0, abs=1e-9)
        assert lines.weights.sum() == pytest.approx(1)


# --- Levels under stopping at will ---------------------------------------------------------------------


def sampled(rng, pairs, rate, noise):
    """The sampled Gaussian step with the canary and without it."""
    with_canary = rng.normal(0, noise, pairs) + (rng.random(pairs) < rate)
    return -with_canary, -rng.normal(0, noise, pairs)


@pytest.mark.parametrize(
    ("rate", "noise", "adding", "pairs", "runs"),
    [
        (0.09, 0.25, 0.0841, 700, 12),
        pytest.param(0.05, 0.5, 0.0243, 10_000, 40, marks=pytest.mark.long),
    ],
)
def test_the_delta_of_the_wrong_order_refutes_a_true_claim(rate, noise, adding, pairs, runs):
    """Sampled Gaussian, add/remove: at epsilon .1 removing has delta 0 and adding has not, and only its delta is safe."""
    slope, x = math.exp(0.1), np.linspace(-6, 7, 200_001)
    absent = stats.norm.pdf(x, 0, noise)
    present = (1 - rate) * absent + rate * stats.norm.pdf(x, 1, noise)
    deltas = [
        float(integrate.trapezoid(np.maximum(p - slope * q, 0), x))
        for p, q in ((present, absent), (absent, present))
    ]
    assert deltas == pytest.approx([adding, 0.0], abs=1e-4)
    assert Lines.of_curve(claimed_curve(DPSGD(noise, rate, 1)).curve).slack[0] > adding
    rng = np.random.default_rng(52)
    drawn = [np.transpose(sampled(rng, pairs, rate, noise)) for _ in range(runs)]
    right, wrong = (
        np.mean([refuted(Lines(np.array([0.1]), np.array([slack])), run) for run in drawn])
        for slack in deltas
    )
    assert wrong > 0.7
    assert right < 0.2


def test_what_was_won_is_never_computed_again(rng):
    """The evidence after some pairs is the same whatever comes later, and the largest of it never falls."""
    pairs, lines = rng.normal(size=(60, 2)), Lines.of_curve(PURE)
    bets, path = Bets(lines), []
    for pair in pairs:
        bets.add(*pair)
        path.append((bets.log_evidence, bets.most))
    changed = np.concatenate([pairs[:40], rng.normal(5, 1, (20, 2))])
    again = after(lines, changed[:40])
    assert (again.log_evidence, again.most) == path[39]
    assert np.all(np.diff([most for _, most in path]) >= 0)
    # The first pair is looked at and not bet on: no threshold could have been fixed before it.
    assert path[0] == pytest.approx((0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("decimals", [0, 1, 15])
def test_pairs_one_by_one_or_all_at_once(rng, decimals):
    """However pairs arrive, the evidence after each is the same: a block is fixed by the pairs before it, not by calls."""
    pairs, lines = np.round(rng.normal([[-1.5], [0]], 1, (2, 400)), decimals), Lines.of_curve(PURE)
    single, parts, whole = Bets(lines), Bets(lines), Bets(lines)
    grown = [single.add(*pair)[0] for pair in pairs.T]
    for part in np.split(pairs, [1, 50, 57, 300], axis=1):
        parts.add(*part)
    np.testing.assert_allclose(whole.add(*pairs), grown, rtol=1e-12, atol=1e-12)
    for bets in (single, parts):
        assert (bets.pairs, bets.most) == (400, pytest.approx(whole.most))
        np.testing.assert_allclose(bets.most_of_each, whole.most_of_each, rtol=1e-12, atol=1e-12)


def test_the_portfolio_costs_little(rng):
    """The evidence is never below that of the bets on each line by more than log 4/3."""
    lines = Lines.of_curve(GAUSSIAN)
    pairs = rng.normal([[-1.1], [0]], 1, (2, 1000))
    beside, alone = (Bets(lines, together=together).add(*pairs) for together in (True, False))
    assert np.min(beside - alone) >= -math.log(4 / 3) - 1e-12


def test_scores_of_any_size():
    """The largest doubles are compared without overflow."""
    largest = np.finfo(float).max * np.array([-1.0, 1.0])
    assert Bets(Lines.of_curve(PURE)).add(*np.tile(largest, (2, 20))).max() == pytest.approx(0.0)


def test_a_block_is_fixed_before_its_first_pair(rng):
    """The evidence after a block, here of the pairs 995 to 1,094, is the same in whatever order its pairs came."""
    lines, pairs = Lines.of_curve(PURE), rng.normal([[-1.5], [0]], 1, (2, 1094))
    mixed = [np.append(np.arange(994), rng.permutation(np.arange(994, 1094))) for _ in range(3)]
    ends = [after(lines, pairs[:, order].T).log_evidence for order in mixed]
    assert ends == pytest.approx(ends[:1] * 3, rel=1e-12)
    across = np.append(np.arange(980), rng.permutation(np.arange(980, 1094)))
    assert after(lines, pairs[:, across].T).log_evidence != pytest.approx(ends[0], rel=1e-9)


# --- Power, bounds and what is needed ------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "most"), [(4.0, 32), (2.0, 74), (1.4, 358)])
def test_how_many_runs_refute_a_noise_bug(mu, most):
    """Claim mu = 1: half of the collections end before so many runs of both worlds at a noise 4 and 2 times too small."""
    ends, lines = [], Lines.of_curve(GAUSSIAN)
    for seed in range(25):
        rng, bets = np.random.default_rng([55, seed]), Bets(lines)
        while bets.most < ENOUGH and bets.pairs < 300:
            bets.add(rng.normal(-mu), rng.normal())
        ends.append(2 * bets.pairs)
    assert np.median(ends) <= most


def test_the_bound_at_any_time_stays_below_a_known_epsilon(request):
    """Randomised response of epsilon 1: the bound by bets exceeds it seldom, whenever it is read, and is not empty."""
    runs, pairs = runs_for(request, (12, 150), (1000, 400))
    rng, lines = np.random.default_rng(56), grid_lines(0.0)
    bounds = []
    for _ in range(runs):
        bets = Bets(lines, together=False)
        bets.add(rng.random(pairs) > ODDS, rng.random(pairs) > 1 - ODDS)
        bounds.append(epsilon_bound(bets.most_of_each, alpha=0.05))
    assert stats.binom.sf(np.sum(np.array(bounds) > 1) - 1, runs, 0.05) > 1e-3
    assert np.mean(bounds) > 0.2


def test_what_a_perfect_attack_needs():
    """Against (eps, 0) a bet on a perfect attack grows by 1 + .9/e^eps a pair, so that it needs at least that many pairs."""
    for epsilon in (0.5, 1.0, 3.0):
        needed = pairs_needed(TradeoffCurve.from_epsilon_delta(epsilon, delta=0.0), alpha=0.05)
        assert needed > ENOUGH / math.log1p(0.9 * math.exp(-epsilon))
        assert needed < 4 * ENOUGH / math.log1p(0.9 * math.exp(-epsilon)) + 10
        assert epsilon_ceiling(3 * needed, delta=0.0, alpha=0.05) >= epsilon
    assert pairs_needed(TradeoffCurve.from_epsilon_delta(50.0, delta=0.0), alpha=0.05) is None
    assert pairs_needed(TradeoffCurve.from_epsilon_delta(12.0, delta=0.0), alpha=0.05) is None
