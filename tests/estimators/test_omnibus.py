"""One test of "no leak": its level on small and tied losses, its power by few records, and its invariances."""

import itertools

import numpy as np
import pytest

from auditor.core import Losses
from auditor.estimators.omnibus import omnibus


def p_values_of(member, nonmember, seed=0):
    """Both p-values of these losses."""
    losses = Losses(member=np.asarray(member, float), nonmember=np.asarray(nonmember, float))
    return omnibus(losses, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("values", [np.arange(8), [0, 0, 0, 1, 1, 2, 2, 3], [0, 0, 0, 0, 0, 1, 1, 1]])
def test_the_level_holds_over_every_relabelling(values):
    """Of all 70 ways to choose 4 members of 8 records at most a share p has a p-value of p, ties included."""
    values, found = np.asarray(values, float), []
    for chosen in itertools.combinations(range(8), 4):
        member = np.isin(np.arange(8), chosen)
        found.append(p_values_of(values[member], values[~member]))
    for p_values in np.array(found).T:
        for level in (0.05, 0.1, 0.2, 0.5):
            # By draws, so that a p-value is that of the exact test within 4 standard errors of 1,999 of them.
            slack = 4 * np.sqrt(level * (1 - level) / 1999)
            assert np.mean(p_values <= level - slack) <= level


def test_swapped_groups_swap_the_directions():
    """Members that lie apart are lower, or higher when swapped, with the smallest p-value, and never both."""
    low, high = np.arange(50), np.arange(50) + 50
    assert p_values_of(low, high) == (1 / 2000, 1.0)
    assert p_values_of(high, low) == (1.0, 1 / 2000)


def test_equal_losses_show_nothing():
    """Losses that are all the same have a p-value of 1 in both directions."""
    assert p_values_of(np.zeros(20), np.zeros(30)) == (1.0, 1.0)


def test_a_few_extreme_records_are_seen():
    """Ten members of 1,000 below every other record have a chance of about 2^-10, although the mean rank hardly moves."""
    rest = np.linspace(0, 1, 1990)
    low, _ = p_values_of(
        np.append(np.full(10, -1.0) - np.arange(10), rest[::2][:990]), np.append(rest[1::2], rest[::2][990:])
    )
    assert low < 0.01


def test_only_the_order_counts():
    """An increasing transform of all losses leaves both p-values as they are."""
    rng = np.random.default_rng(3)
    member, nonmember = rng.normal(-0.2, 1, 80), rng.normal(size=120)
    assert p_values_of(np.exp(member), np.exp(nonmember)) == p_values_of(member, nonmember)


def test_bins_have_the_p_values_of_their_records():
    """Losses that are counted in bins have the p-values of arrays that repeat each bin's value."""
    from auditor.core.values import Counted

    rng = np.random.default_rng(5)
    groups = [np.sort(rng.integers(0, 30, n)).astype(float) for n in (400, 300)]
    binned = [Counted(*np.unique(group, return_counts=True), bits=22) for group in groups]
    losses = Losses(member=groups[0], nonmember=groups[1])
    counted = Losses(member=binned[0], nonmember=binned[1])
    one, other = (omnibus(item, rng=np.random.default_rng(1)) for item in (losses, counted))
    assert one == other
