"""Shuffled batches: the proven mu, by hand and between an attack and the exact loss of shuffled steps."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from oracles import gaussian_mechanism_epsilon
from scipy import stats

from auditor.core import DPSGD, Adjacency, InputError, ShuffledBatches
from auditor.theory import epsilon, shuffled_mu

REPLACE_ONE, ADD_REMOVE = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def simulated(sums, epsilon):
    """Delta at an epsilon from privacy losses drawn in the first world, and five standard errors of it."""
    terms = -np.expm1(np.minimum(epsilon - sums, 0.0))
    return terms.mean(), 5 * terms.std() / math.sqrt(terms.size) + 1e-9


def shuffled_at_least(noise, batches, passes, delta, other):
    """An epsilon that no smaller one can be proven for shuffled batches at this delta, because an attack reaches it.

    All other gradients are the opposite of the record's, so that the batch with it is moved by 2 clipping norms (in the other
    world by as many as given), and the attacker looks at the largest of a pass's N outputs, P(largest <= x) =
    Phi((x - m)/s) Phi(x/s)^(N-1) (Chua et al. 2024; for several passes Scalable DP-SGD): any events of that.
    """
    levels = np.linspace(-9 * noise, 2 + 9 * noise, 2000)
    shares = []
    for moved in (2.0, other):
        below = stats.norm.logcdf((levels - moved) / noise) + (batches - 1) * stats.norm.logcdf(
            levels / noise
        )
        share = np.maximum(np.diff(np.exp(below), prepend=0.0, append=1.0), 0.0)
        shares.append(tuple(share / share.sum()))
    logs = [
        {place: math.log(share) for place, share in enumerate(world) if share > 1e-300} for world in shares
    ]
    law = pld.from_two_probability_mass_functions(*logs[::-1], pessimistic_estimate=False, symmetric=False)
    return law.self_compose(passes).get_epsilon_for_delta(delta)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "mu"),
    [
        (2.0, 0.01, 400, 2.0),  # four passes: 2 sqrt(4) / 2
        (2.0, 0.01, 401, math.sqrt(5)),  # a fifth one was begun
        (1.0, 1 / 49, 49, 2.0),  # 1 / (1 / 49) is not 49 in doubles
        (1.0, 2 / 9, 8, 2 * math.sqrt(2)),  # batches of 2 of 9, the ninth left out: four steps a pass
        ([1.0, 4.0, 2.0, 2.0], 0.5, None, 2 * math.sqrt(1 + 1 / 4)),  # the two steps of least noise
        (1.0, [0.5, 0.5, 0.25, 0.25], None, 2 * math.sqrt(2)),
        (3.0, 1.0, 9, 2.0),
    ],
)
def test_shuffled_passes_by_hand(noise, rate, steps, mu):
    """The proven mu is that of one Gaussian step for each pass that was begun; half of it for a record zeroed out."""
    training = DPSGD(noise, rate, steps, sampling=ShuffledBatches())
    claim = shuffled_mu(training)
    assert claim.value == pytest.approx(mu, rel=1e-12)
    assert (claim.metric, claim.adjacency, claim.proven) == ("mu", REPLACE_ONE, True)
    zeroed = shuffled_mu(training, adjacency="add-remove")
    assert zeroed.value == pytest.approx(mu / 2, rel=1e-12)
    assert "counts as nothing" in zeroed.note


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize(("noise", "batches", "passes"), [(1.0, 5, 1), (1.5, 4, 3), (0.8, 20, 2)])
def test_a_shuffled_run_lies_between_its_limits(rng, noise, batches, passes, adjacency):
    """The exact loss of shuffled steps, all other gradients opposite, gives a delta between both limits."""
    training = DPSGD(noise, 1 / batches, batches * passes, sampling=ShuffledBatches())
    shifts = (2.0, 0.0 if adjacency is REPLACE_ONE else 1.0)
    sums = np.zeros((2, 100_000))
    for world, _ in itertools.product((0, 1), range(passes)):
        x = rng.normal(0.0, noise, (sums.shape[1], batches))
        x[:, 0] += shifts[world]  # the batches are alike: the record may always be in the first
        first, second = (np.exp((m * x - m * m / 2) / noise**2).mean(axis=1) for m in shifts)
        sums[world] += (1 - 2 * world) * np.log(first / second)
    mu = shuffled_mu(training, adjacency=adjacency).value
    for delta in (1e-3, 0.05):
        low = shuffled_at_least(noise, batches, passes, delta, shifts[1])
        high = float(gaussian_mechanism_epsilon(mu, delta))
        assert low < high
        above = [simulated(world, high) for world in sums]
        below = [simulated(world, low) for world in sums]
        assert max(mean - error for mean, error in above) <= delta
        assert max(mean + error for mean, error in below) >= delta


def test_poisson_sampling_is_no_stand_in_for_shuffling():
    """One pass of 1,000 batches at noise 0.5: Poisson's epsilon is 3.24, an attack on shuffled ones has 9.99 of 10.00."""
    run = {"noise_multiplier": 0.5, "sampling_rate": 0.001, "steps": 1000}
    shuffled = DPSGD(**run, sampling=ShuffledBatches())
    assert epsilon(DPSGD(**run), delta=1e-5).value == pytest.approx(3.239, abs=1e-3)
    low = shuffled_at_least(0.5, 1000, 1, 1e-5, 1.0)
    high = float(gaussian_mechanism_epsilon(shuffled_mu(shuffled, adjacency=ADD_REMOVE).value, 1e-5))
    assert 9.99 < low < high < 10.0
    # One threshold for the largest of 1,000 outputs, by hand: more than 1e-5 is left at 9.9.
    with_it, without = (
        -np.expm1(stats.norm.logcdf(4, m, 0.5) + 999 * stats.norm.logcdf(4, 0, 0.5)) for m in (2, 1)
    )
    assert with_it - math.exp(9.9) * without > 1e-5


def test_other_batches_are_refused():
    """A run whose batches are drawn by coins has no such mu; the sentence names what describes it."""
    with pytest.raises(InputError, match="training must have shuffled batches, got PoissonSampling"):
        shuffled_mu(DPSGD(1.0, 0.1, 10))
