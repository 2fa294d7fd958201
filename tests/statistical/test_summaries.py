"""The bounds of a summary exceed the truth as seldom as they say, at the law that is worst for the losses."""

import numpy as np
import pytest
from simulation import runs_for, seldom

from auditor import Losses, Summary
from auditor.curves import count
from auditor.estimators import advantage, clopper_pearson

EPSILON = 1.0


def worst(rng, size, *, member):
    """Scores of one group where epsilon is 1 at delta 0: members are e times as many low down, and non-members above.

    Spread over 40 powers of ten, so that there are bins enough to tell the thresholds that matter.
    """
    place = rng.random(size)
    if member:  # the inverse of the curve with slopes e and 1/e
        corner = 1 / (1 + np.exp(-EPSILON))
        place = np.where(place < corner, place * np.exp(-EPSILON), 1 - (1 - place) * np.exp(EPSILON))
    return 10.0 ** (40 * (place - 0.5))


@pytest.mark.parametrize(("bits", "merged"), [(13, False), (22, False), (22, True)])
@pytest.mark.parametrize("sizes", [(60, 40), (300, 350)])
def test_the_bounds_of_a_summary_hold_their_level(request, rng, bits, merged, sizes):
    """Where only bins are known, epsilon and the advantage lie below their lower limits in 5% of the audits at most."""
    misses = []
    for _ in range(runs_for(request, 30, 2000)):
        groups = (worst(rng, size, member=member) for size, member in zip(sizes, (True, False), strict=True))
        every = Summary.of(Losses(*groups), bits=bits)
        losses = (every.merged() if merged else every).losses
        bounds = clopper_pearson(losses, delta=0.0), advantage(count(losses))
        misses.append(
            [
                found.lower > truth
                for found, truth in zip(bounds, (EPSILON, np.tanh(EPSILON / 2)), strict=True)
            ]
        )
    print(  # noqa: T201 - the rate, printed with --long -s
        f"misses of {len(misses)} at {bits} bits, {sizes} records:", np.sum(misses, axis=0)
    )
    assert seldom(np.array(misses))
