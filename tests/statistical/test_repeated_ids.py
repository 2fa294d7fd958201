"""Rows that share an id, and people of whom a record strayed: no bound counts them as independent, and no true claim is refuted."""

import numpy as np
import pytest
from simulation import seldom

import auditor
from auditor.core import BernoulliSplit, EachRecord, Losses, Melded, OnePerPerson, RandomSplit, RankGrid
from auditor.estimators import clopper_pearson, one_run_bound
from auditor.records import default_units, per_person

MELDED = RankGrid(interval=Melded())


def scored_often(rng, *, ids=80, rows=8, noise=0.05):
    """Half of the ids are members, each is scored several times, and nothing leaks."""
    owner = np.repeat(np.arange(ids), rows)
    values = rng.normal(size=ids)[owner] + noise * rng.normal(size=owner.size)
    inside = np.isin(owner, rng.permutation(ids)[: ids // 2])
    return Losses(values[inside], values[~inside], id=(owner[inside], owner[~inside]))


def strayed(rng, *, stray, people=24, records=30):
    """Half of the people are members, a record of some of them is on the other side, and nothing leaks."""
    owner = np.repeat(np.arange(people), records)
    values = rng.normal(size=people)[owner] + 0.5 * rng.normal(size=owner.size)
    members = rng.permutation(people)[: people // 2]
    inside = np.isin(owner, members)
    inside[[np.flatnonzero(owner == one)[0] for one in members[:stray]]] = False
    return Losses(values[inside], values[~inside], person=(owner[inside], owner[~inside]))


def found_nothing(units, rng):
    """Whether a model without a leak is certified to leak, and whether a true claim about the training is refuted."""
    bound = one_run_bound(units.losses, split=RandomSplit(), delta=1e-5, rng=rng)
    return clopper_pearson(units.losses, delta=1e-5, rule=MELDED).value > 0, bound.value > 0.1


def test_one_score_per_id_keeps_the_level(simulated):
    """Of 80 records that were scored 8 times without a leak, bound and claim are wrong in 5% at most."""

    def alarms(rng):
        return found_nothing(default_units(scored_often(rng)), rng)

    assert seldom(simulated(alarms, seed=21, runs=(150, 4000)))


@pytest.mark.parametrize("stray", [1, 3])
def test_people_of_whom_a_record_strayed_do_not_turn_the_audit_per_person_off(simulated, stray):
    """With one or three of 24 people in both groups, the others have one score each, and both levels hold."""

    def alarms(rng):
        units = default_units(strayed(rng, stray=stray))
        assert len(units.left_out) == stray
        return found_nothing(units, rng)

    assert seldom(simulated(alarms, seed=23 + stray, runs=(150, 4000)))


@pytest.mark.parametrize(("people", "records"), [(12, 30), (24, 30), (40, 8)])
def test_the_rule_tells_a_split_by_person_from_one_by_record(simulated, people, records):
    """A split by record is taken for one by person once in 1,000, and few stray records do not hide a split by person."""

    def wrong(rng):
        owner = np.repeat(np.arange(people), records)
        inside = rng.random(owner.size) < rng.uniform(0.1, 0.9)
        split = Losses(
            rng.normal(size=owner.size)[inside],
            rng.normal(size=owner.size)[~inside],
            person=(owner[inside], owner[~inside]),
        )
        by_record = default_units(split).choice == EachRecord()
        by_person = isinstance(
            default_units(strayed(rng, stray=1, people=people, records=records)).choice, OnePerPerson
        )
        return not by_record, not by_person

    assert seldom(simulated(wrong, seed=28, runs=(100, 3000)), 1e-3)


def told_by_groups(rng, *, epsilon, rows, ids=400):
    """Each row was a training record; all of an id's together tell its membership as well as rows x epsilon allow."""
    inside = rng.random(ids) < 0.5
    right = rng.random(ids) < 1 / (1 + np.exp(-rows * epsilon))
    owner = np.repeat(np.arange(ids), rows)
    loss = np.where(inside == right, 0.0, 1.0)[owner] + 1e-9 * rng.random(owner.size)
    member = inside[owner]
    return Losses(loss[member], loss[~member], id=(owner[member], owner[~member]))


@pytest.mark.parametrize(("kind", "holds"), [("records", True), ("scorings", False)])
def test_a_true_claim_about_records_is_judged_for_groups_of_them(simulated, kind, holds):
    """Eight training rows of an id tell eight times epsilon, which refutes no claim unless they are said to be one record."""
    claim = auditor.StatedClaim(0.15, 0.0)

    def refuted(rng):
        losses = told_by_groups(rng, epsilon=0.15, rows=8)
        units = per_person(losses, choice=EachRecord(rows=kind))
        bound = one_run_bound(units.losses, split=BernoulliSplit(), delta=1e-9, rng=rng)
        return (bound.value or 0.0) > claim.epsilon * units.group

    assert seldom(simulated(refuted, seed=29, runs=(100, 3000))) is holds
