"""Plans keep what they promise: audits of the planned size certify the target about as often as was said."""

import numpy as np
import pytest
from simulation import runs_for

from auditor.core import BernoulliSplit, Census, Losses, RandomSplit, Sample, UnknownSplit
from auditor.estimators import clopper_pearson, one_run_bound
from auditor.mechanism import GaussianAttack, RandomisedResponse, records_needed


def drawn(attack, sizes, rng):
    """Losses that follow the attack's curve: non-members uniform, members by its inverse."""
    return Losses(member=attack.fpr(rng.random(sizes[0])), nonmember=rng.random(sizes[1]))


def success(plan, attack, split, members, rng):
    """Whether one audit of the planned size certifies the target."""
    sizes = (plan.n_member, plan.n_nonmember)
    if isinstance(split, UnknownSplit):
        return (
            clopper_pearson(drawn(attack, sizes, rng), delta=plan.delta, members=members).value
            >= plan.epsilon
        )
    if isinstance(split, BernoulliSplit):
        inside = int(np.sum(rng.random(sum(sizes)) < split.inclusion))
        sizes = (inside, sum(sizes) - inside)
    bound = one_run_bound(drawn(attack, sizes, rng), split=split, delta=plan.delta, rng=rng).value
    return bound is not None and bound >= plan.epsilon


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
def test_a_planned_audit_succeeds_as_often_as_promised(request, attack, split, members):
    """The share of audits that certify the target is the planned chance or more, up to three hundredths and chance."""
    rng, runs = np.random.default_rng(40), runs_for(request, 80, 600)
    plan = records_needed(1.2, delta=1e-5, split=split, attack=attack, members=members)
    found = sum(success(plan, attack, split, members, rng) for _ in range(runs)) / runs
    assert found >= plan.chance - 0.03 - 3.1 * np.sqrt(plan.chance * (1 - plan.chance) / runs)


def test_the_simulation_can_fail(request):
    """A third of the planned records do not keep the promise."""
    rng, runs, attack = np.random.default_rng(41), runs_for(request, 80, 600), GaussianAttack(1.5)
    plan = records_needed(1.2, delta=1e-5, attack=attack)
    sizes = (plan.n_member // 3, plan.n_nonmember // 3)
    draws = (clopper_pearson(drawn(attack, sizes, rng), delta=1e-5).value >= 1.2 for _ in range(runs))
    assert sum(draws) / runs < plan.chance - 0.03 - 3.1 * np.sqrt(plan.chance * (1 - plan.chance) / runs)
