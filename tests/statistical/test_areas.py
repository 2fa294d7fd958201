"""Each end of the AUC's interval errs in at most half of the error, on losses of two values in either group or in both."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from auditor.core import Losses
from auditor.curves import count
from auditor.estimators import auc

# Where the two losses of the members stand, and those of the others: whatever order two pairs can have, with ties.
ORDERS = {
    "members alike": ((1, 1), (0, 2)),
    "others alike": ((0, 2), (1, 1)),
    "crossed": ((0, 2), (1, 3)),
    "crossed back": ((1, 3), (0, 2)),
    "members inside": ((1, 2), (0, 3)),
    "others inside": ((0, 3), (1, 2)),
    "lower tie": ((0, 1), (0, 2)),
    "upper tie": ((0, 2), (1, 2)),
    "same two": ((0, 1), (0, 1)),
    "chained": ((0, 1), (1, 2)),
}
MASSES = (0.001, 0.005, 0.02, 0.04, 0.1, 0.2, 0.3, 0.5)
MASSES = (*MASSES, *(1 - mass for mass in MASSES[-2::-1]))


@cache
def ends(order, sizes, low, confidence):
    """Both ends where so many records of each group have the lower of its two losses."""
    groups = (
        np.repeat(np.array(values, float), (few, size - few))
        for values, few, size in zip(ORDERS[order], low, sizes, strict=True)
    )
    found = auc(count(Losses(*groups)), confidence=confidence)
    return found.lower, found.upper


def binomial(n, mass, alike):
    """The numbers that so many records may have of the lower loss, but for 1e-9 of the chance, with their chances."""
    if alike:
        return [n], np.ones(1)
    few, many = stats.binom.ppf((5e-10, 1 - 5e-10), n, mass).astype(int)
    numbers = np.arange(few, many + 1)
    return numbers.tolist(), stats.binom.pmf(numbers, n, mass)


def errors(order, sizes, masses, error):
    """How often each end is on the wrong side of the truth, summed over all that two binomials can be."""
    members, others = ORDERS[order]
    truth = sum(
        p * q * (0.5 + np.sign(other - member) / 2)
        for p, member in zip((masses[0], 1 - masses[0]), members, strict=True)
        for q, other in zip((masses[1], 1 - masses[1]), others, strict=True)
    )
    (x, of_x), (y, of_y) = (
        binomial(n, mass, len(set(values)) == 1)
        for n, mass, values in zip(sizes, masses, ORDERS[order], strict=True)
    )
    found = np.array([[ends(order, sizes, (i, j), 1 - error) for j in y] for i in x])
    wrong = found[..., 0] > truth + 1e-12, found[..., 1] < truth - 1e-12
    return max(float(of_x @ side @ of_y) for side in wrong)


def worst(order, sizes, error):
    """The largest error of either end over all masses of the lower losses, as a share of half of the error."""
    first, second = ((0.5,) if len(set(values)) == 1 else MASSES for values in ORDERS[order])
    return max(errors(order, sizes, (p, q), error) for p in first for q in second) / (error / 2)


@pytest.mark.parametrize("error", [0.05, 0.05 / 60])
@pytest.mark.parametrize(
    ("order", "sizes"),
    [
        *((order, (25, 2000)) for order in ("members alike", "others alike")),
        *((order, (2000, 25)) for order in ("members alike", "others alike")),
        *(
            (order, sizes)
            for order in ("members alike", "others alike", "crossed")
            for sizes in ((25, 25), (12, 30))
        ),
        *((order, (20, 20)) for order in ORDERS),
        *(
            pytest.param(order, sizes, marks=pytest.mark.long)
            for order in ORDERS
            for sizes in ((25, 25), (100, 25), (25, 100), (10, 10), (12, 30))
        ),
        *(
            pytest.param(order, sizes, marks=pytest.mark.long)
            for order in ("members alike", "others alike")
            for sizes in ((100, 25), (20_000, 1000), (1000, 20_000))
        ),
        *(
            pytest.param(order, (400, 25), marks=pytest.mark.long)
            for order in ("members inside", "others inside", "crossed")
        ),
    ],
)
def test_each_end_errs_in_half_of_the_error(order, sizes, error):
    """Summed over all that the counts can be, neither end is wrong more often than half of the error."""
    assert worst(order, sizes, error) <= 1


@pytest.mark.parametrize("sizes", [(25, 25), (2000, 25), (25, 2000), (10, 300), (2, 4)])
@pytest.mark.parametrize("error", [0.05, 0.05 / 60])
def test_the_limit_at_perfect_separation_is_exact(sizes, error):
    """All members below all others has a chance of at most AUC^k, k the smaller number, so the limit is (error/2)^(1/k)."""
    groups = np.arange(sizes[0]) + 0.0, np.arange(sizes[1]) + 1e6
    apart, swapped = (
        auc(count(Losses(*pair)), confidence=1 - error) for pair in (groups, (groups[0] + 2e6, groups[1]))
    )
    limit = (error / 2) ** (1 / min(sizes))
    assert (apart.lower, apart.upper) == pytest.approx((limit, 1))
    assert (swapped.lower, swapped.upper) == pytest.approx((0, 1 - limit))


def test_the_limit_has_no_jump_near_separation():
    """One pair out of order among 25 and 2,000 moves the limit by no more than it moves the area."""
    member, nonmember = np.arange(2000) + 0.0, np.append(np.arange(24) + 1e6, 1998.5)
    found = auc(count(Losses(member, nonmember)))
    assert found.value == pytest.approx(1 - 1 / 50_000)
    assert math.isclose(found.lower, 0.025 ** (1 / 25) * found.value, rel_tol=1e-9)


def test_perfect_separation_of_a_small_group(simulated):
    """A twenty-fifth of the others lies below all 2,000 members: the lower end is above .96 in at most 2.5% of the runs."""

    def over(rng):
        others = np.where(rng.random(25) < 0.96, 2.0, -1.0)
        return auc(count(Losses(rng.random(2000), others))).lower > 0.96

    missed = simulated(over, seed=41, runs=(400, 20_000))
    assert stats.binom.sf(missed.sum() - 1, missed.size, 0.025) > 1e-3
