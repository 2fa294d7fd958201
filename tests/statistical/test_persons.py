"""Records of one person are not independent: one score for each person keeps the level."""

import numpy as np
import pytest
from simulation import outside, seldom

from auditor.checks import persons
from auditor.core import EachRecord, Losses, Melded, OnePerPerson, RankGrid, Status
from auditor.curves import count
from auditor.estimators import auc, clopper_pearson
from auditor.records import mechanism_reason, per_person

MELDED = RankGrid(interval=Melded())


def split(values, owner, inside):
    """Losses of these records, each with its person, by who is a member."""
    sides = inside, ~inside
    return Losses(*(values[side] + 0.0 for side in sides), person=tuple(owner[side] for side in sides))


def by_person(rng, *, people=40, spread=3.0, leak=0.0, records=8):
    """A split by person with no leak but the one requested: a person's records share most of what their losses are."""
    sizes = 1 + rng.poisson(records - 1, size=2 * people)
    level = rng.normal(0, spread, size=2 * people)
    level[:people] -= leak
    owner = np.repeat(np.arange(2 * people), sizes)
    return split(level[owner] + rng.normal(size=owner.size), owner, owner < people)


def failures(choice, truth=0.5, **drawn):
    """Whether the AUC's interval misses the truth, and whether the certified bound is above 0."""

    def failed(rng):
        losses = per_person(by_person(rng, **drawn), choice=choice).losses
        return outside(truth, auc(count(losses))), clopper_pearson(losses, delta=1e-5, rule=MELDED).value > 0

    return failed


@pytest.mark.parametrize("by", ["mean", "min", "max"])
def test_one_score_per_person_keeps_the_level(simulated, by):
    """On clustered records without a leak, AUC intervals and certified bounds of people hold their 95%."""
    assert seldom(simulated(failures(OnePerPerson(by)), seed=1, runs=(400, 5000)))


def test_a_leak_of_persons_is_covered(simulated):
    """With people one standard deviation apart the interval of the mean scores covers their true AUC."""
    many = by_person(np.random.default_rng(3), people=20_000, leak=3.0)
    truth = auc(count(per_person(many, choice=OnePerPerson()).losses)).value
    failed = failures(OnePerPerson(), truth, people=60, leak=3.0)
    assert seldom(simulated(failed, seed=4, runs=(300, 3000))[:, 0])


def test_unequal_numbers_of_records_look_like_a_leak_and_are_caught(simulated):
    """A smallest loss of eight against one of two separates without any leak; the check fails it every time."""
    owner = np.repeat(np.arange(150), 10)

    def looked_at(rng):
        inside = rng.random(owner.size) < 0.8
        found = per_person(split(rng.normal(size=owner.size), owner, inside), choice=OnePerPerson("min"))
        caught = persons(found).status is Status.FAIL and mechanism_reason(found) is not None
        return clopper_pearson(found.losses, delta=1e-5, rule=MELDED).value > 0, caught

    alarms, caught = simulated(looked_at, seed=5, runs=(60, 600)).T
    assert not seldom(alarms)
    assert caught.all()


def test_fair_splits_are_seldom_called_unfair(simulated):
    """A split by person fails the check of equal sizes, and a split by record is called one by person, at most 0.1%."""

    def alarms(rng):
        unequal = persons(per_person(by_person(rng), choice=OnePerPerson())).status is Status.FAIL
        owner, inside = rng.integers(0, 150, 400), rng.random(400) < 0.3
        by_record = per_person(split(owner, owner, inside), choice=EachRecord())
        return unequal, mechanism_reason(by_record) is not None

    assert seldom(simulated(alarms, seed=6, runs=(400, 4000)), 1e-3)
