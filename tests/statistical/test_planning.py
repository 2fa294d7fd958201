"""Plans keep what they promise: audits of the planned size certify the target about as often as was said."""

import numpy as np
import pytest

from auditor.core import BernoulliSplit, Census, Losses, RandomSplit, Sample, UnknownSplit
from auditor.estimators import clopper_pearson, one_run_bound
from auditor.mechanism import GaussianAttack, RandomisedResponse, records_needed


def certified(plan, attack, split=UnknownSplit(), members=Sample(), part=1):  # noqa: B008 - frozen values
    """Whether one audit of the planned size, or a part of it, certifies the target."""

    def success(rng):
        sizes = plan.n_member // part, plan.n_nonmember // part
        if isinstance(split, BernoulliSplit):
            inside = int(np.sum(rng.random(sum(sizes)) < split.inclusion))
            sizes = (inside, sum(sizes) - inside)
        # Losses that follow the attack's curve: non-members uniform, members by its inverse.
        losses = Losses(member=attack.fpr(rng.random(sizes[0])), nonmember=rng.random(sizes[1]))
        if isinstance(split, UnknownSplit):
            return clopper_pearson(losses, delta=plan.delta, members=members).value >= plan.epsilon
        bound = one_run_bound(losses, split=split, delta=plan.delta, rng=rng).value
        return bound is not None and bound >= plan.epsilon

    return success


def promised(plan, found):
    """Whether so many successes are the planned chance or more, up to three hundredths and chance."""
    return found.mean() >= plan.chance - 0.03 - 3.1 * np.sqrt(plan.chance * (1 - plan.chance) / found.size)


@pytest.mark.parametrize("attack", [GaussianAttack(1.5), RandomisedResponse(2.5)])
@pytest.mark.parametrize(
    ("split", "members"),
    [
        (UnknownSplit(), Sample()),
        (UnknownSplit(), Census()),
        (RandomSplit(), Sample()),
        (BernoulliSplit(0.5), Sample()),
        (BernoulliSplit(0.75), Sample()),
    ],
)
def test_a_planned_audit_succeeds_as_often_as_promised(simulated, attack, split, members):
    """The share of audits that certify the target is the planned chance or more, up to three hundredths and chance."""
    plan = records_needed(1.2, delta=1e-5, split=split, attack=attack, members=members)
    assert promised(plan, simulated(certified(plan, attack, split, members), seed=40, runs=(80, 600)))


def test_the_simulation_can_fail(simulated):
    """A third of the planned records do not keep the promise."""
    attack = GaussianAttack(1.5)
    plan = records_needed(1.2, delta=1e-5, attack=attack)
    assert not promised(plan, simulated(certified(plan, attack, part=3), seed=41, runs=(80, 600)))
