"""Records of one person are not independent: who counts them as if they were loses the level, who counts persons keeps it."""

import numpy as np
import pytest
from simulation import at_most, runs_for

from auditor.checks import persons
from auditor.core import EachRecord, Losses, OnePerPerson, Status
from auditor.curves import count
from auditor.estimators import auc, clopper_pearson
from auditor.records import mechanism_reason, per_person

WAYS = [OnePerPerson("mean"), OnePerPerson("min"), OnePerPerson("max")]


def by_person(rng, *, people=40, spread=3.0, leak=0.0, records=8):
    """A split by person with no leak but the one asked for: a person's records share most of what their losses are."""
    sizes = 1 + rng.poisson(records - 1, size=2 * people)
    level = rng.normal(0, spread, size=2 * people)
    level[:people] -= leak
    owner = np.repeat(np.arange(2 * people), sizes)
    losses = level[owner] + rng.normal(size=owner.size)
    inside = owner < people
    return Losses(member=losses[inside], nonmember=losses[~inside], person=(owner[inside], owner[~inside]))


def failures(draw, choice, runs, *, seed, truth=0.5):
    """How often the AUC's interval misses the truth, and how often the certified bound is above 0."""
    rng, missed, alarms = np.random.default_rng(seed), 0, 0
    for _ in range(runs):
        losses = per_person(draw(rng), choice=choice).losses
        area = auc(count(losses))
        missed += not area.lower <= truth <= area.upper
        alarms += clopper_pearson(losses, delta=1e-5).value > 0
    return missed, alarms


@pytest.mark.parametrize("choice", WAYS)
def test_one_score_per_person_keeps_the_level(request, choice):
    """On clustered records without a leak, AUC intervals and certified bounds of persons hold their 95%."""
    runs = runs_for(request, 400, 5000)
    missed, alarms = failures(by_person, choice, runs, seed=1)
    assert at_most(missed, runs)
    assert at_most(alarms, runs)


def test_each_record_loses_the_level(request):
    """The same records counted as independent fail at both, so the simulation can fail."""
    runs = runs_for(request, 200, 2000)
    missed, alarms = failures(by_person, EachRecord(), runs, seed=2)
    assert not at_most(missed, runs)
    assert not at_most(alarms, runs)


def test_a_leak_of_persons_is_covered(request):
    """With persons one standard deviation apart the interval of the mean scores covers their true AUC."""
    rng = np.random.default_rng(3)
    many = per_person(by_person(rng, people=20_000, leak=3.0), choice=OnePerPerson()).losses
    truth, runs = auc(count(many)).value, runs_for(request, 300, 3000)
    missed, _ = failures(
        lambda rng: by_person(rng, people=60, leak=3.0), OnePerPerson(), runs, seed=4, truth=truth
    )
    assert at_most(missed, runs)


def test_unequal_numbers_of_records_look_like_a_leak_and_are_caught(request):
    """A smallest loss of eight against one of two separates without any leak; the check fails it every time."""
    rng, runs, alarms, caught = np.random.default_rng(5), runs_for(request, 60, 600), 0, 0
    for _ in range(runs):
        owner = np.repeat(np.arange(150), 10)
        inside = rng.random(owner.size) < 0.8
        losses = rng.normal(size=owner.size)
        found = per_person(
            Losses(member=losses[inside], nonmember=losses[~inside], person=(owner[inside], owner[~inside])),
            choice=OnePerPerson("min"),
        )
        alarms += clopper_pearson(found.losses, delta=1e-5).value > 0
        caught += persons(found).status is Status.FAIL and mechanism_reason(found) is not None
    assert not at_most(alarms, runs)
    assert caught == runs


def test_fair_splits_are_seldom_called_unfair(request):
    """A split by person fails the check of equal sizes, and a split by record is called one by person, at most 0.1%."""
    rng, runs = np.random.default_rng(6), runs_for(request, 400, 4000)
    unequal = by_chance = 0
    for _ in range(runs):
        found = per_person(by_person(rng), choice=OnePerPerson())
        unequal += persons(found).status is Status.FAIL
        owner, inside = rng.integers(0, 150, 400), rng.random(400) < 0.3
        found = per_person(
            Losses(member=owner[inside], nonmember=owner[~inside], person=(owner[inside], owner[~inside])),
            choice=EachRecord(),
        )
        by_chance += mechanism_reason(found) is not None
    assert at_most(unequal, runs, level=1e-3)
    assert at_most(by_chance, runs, level=1e-3)


def test_the_effective_number_is_right(request):
    """The variance of the AUC over draws is the one of independent records in the effective numbers."""
    rng, runs = np.random.default_rng(7), runs_for(request, 600, 6000)
    values, predicted = [], []
    for _ in range(runs):
        losses = by_person(rng, people=150, spread=1.0, records=6)
        area, found = auc(count(losses)), per_person(losses, choice=EachRecord())
        values.append(area.value)
        # Both groups have the same law, so DeLong's two terms shrink by about the same factor.
        inflation = np.mean([n / worth for n, worth in zip(found.records, found.effective, strict=True)])
        predicted.append(area.details["standard_error"] ** 2 * inflation)
    ratio = np.var(values) / np.mean(predicted)
    assert abs(ratio - 1) < 5 * np.sqrt(2 / runs)
