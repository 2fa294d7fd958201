"""Persons: one score each, whatever type names them, and what the numbers of records say."""

import numpy as np
import pandas as pd
import pytest
from simulation import at_most
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

import auditor
from auditor.checks import persons
from auditor.core import EachRecord, Losses, OnePerPerson, PerGroup, Status
from auditor.records import (
    MIXED,
    claim_reason,
    codes,
    effective_numbers,
    mechanism_reason,
    per_person,
    per_record,
    text,
)


def clustered(rng, n=60, people=17):
    """Records of a few people, each in one group only, with ids and groups."""
    return Losses(
        member=rng.normal(size=n),
        nonmember=rng.normal(size=n + 5),
        person=(rng.integers(0, people, n), rng.integers(people, 2 * people, n + 5)),
        id=(np.arange(n), np.arange(n, 2 * n + 5)),
        group=(np.repeat(["a"], n), np.repeat(["b"], n + 5)),
    )


@pytest.mark.parametrize("by", ["min", "mean", "max"])
def test_scores_agree_with_a_table(rng, by):
    """One score per person is what pandas' groupby gives, in both groups."""
    losses = clustered(rng)
    found = per_person(losses, choice=OnePerPerson(by)).losses
    for side in ("member", "nonmember"):
        table = pd.Series(getattr(losses, side)).groupby(getattr(losses.person, side)).agg(by)
        np.testing.assert_allclose(table[getattr(found.person, side)], getattr(found, side), rtol=1e-12)
    assert found.history[-1] == f"one score per person: the {by} of their losses"


def test_the_order_of_the_records_does_not_matter(rng):
    """Shuffled records give bit for bit the same scores, so that ties between people stay ties."""
    losses = clustered(rng)
    order = rng.permutation(losses.n_member)
    shuffled = losses.take(member=order, nonmember=np.arange(losses.n_nonmember))
    scores = [np.sort(per_person(each, choice=OnePerPerson()).losses.member) for each in (losses, shuffled)]
    np.testing.assert_array_equal(*scores)


def test_one_person_is_met_in_every_type():
    """A whole number names the same person as an integer, a float and text, and bytes are read as text."""
    integers, floats = np.array([7, 8]), np.array([7.0, 8.0])
    objects = np.array([7.0, "8 "], dtype=object)
    for other in (floats, objects, np.array(["7", " 8"]), np.array([b"7", b"8"])):
        found = codes(PerGroup(integers, other))
        np.testing.assert_array_equal(found.member, found.nonmember)
        assert [str(label) for label in found.labels.tolist()] == ["7", "8"]
    assert text(np.array([b"\xff"]))[0].tolist() == ["\\xff"]


def test_large_integers_are_told_apart():
    """Ids that differ only beyond a double's digits, signed or not, stay different."""
    found = codes(PerGroup(np.array([2**53, 2**53 + 1]), np.array([2**53 + 1, 2**53], dtype=np.uint64)))
    assert found.member.tolist() == [0, 1]
    assert found.nonmember.tolist() == [1, 0]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5, 7.0, np.nan] * 500, dtype=np.longdouble),
        np.array(["a\ud800", None, " b"] * 500, dtype=object),
        np.array([np.str_("b\0"), "b", ""] * 500, dtype=object),
        np.array([b"a\0b", b"\xff", b" a"] * 500),
        np.array([1, 2, 3] * 500, dtype=">i4"),
        np.array(["b", "a name of some length", ""] * 500),
        np.array(["é", "\u4eba", "\U0001f600"] * 500),
        np.array(["b", "b\u2003", "\x1cc"] * 500),
    ],
)
def test_long_columns_have_the_labels_of_short_ones(column):
    """Of 1,000 rows or more, whichever types and characters they hold."""
    words, missing = text(column)
    few = [text(column[start : start + 3]) for start in range(0, column.size, 3)]
    assert words.tolist() == np.concatenate([part for part, _ in few]).tolist()
    assert missing.tolist() == np.concatenate([part for _, part in few]).tolist()
    coded = codes(PerGroup(column, column[::-1]))
    names = np.append(coded.labels.astype(object), "")[coded.pooled].astype(str)
    assert (
        names.tolist() == np.where(missing, "", words).tolist() + np.where(missing, "", words)[::-1].tolist()
    )


def test_people_are_numbered_by_appearance_after_records_are_combined(rng):
    """So that draws do not depend on what was read before."""
    owner = rng.permutation(np.repeat(np.arange(20), 3))
    ids = rng.integers(0, 5, 60)
    losses = Losses(
        member=rng.normal(size=60), nonmember=rng.normal(size=60), person=(owner, owner + 20), id=(ids, ids)
    )
    combined = per_record(losses).losses.person
    found, again = codes(combined), codes(PerGroup(*map(np.copy, combined)))
    assert found.pooled.tolist() == again.pooled.tolist()
    assert found.labels.tolist() == again.labels.tolist()


def test_a_changed_column_is_read_again():
    """An audit of new losses counts the people whom a read-only view shows now."""
    people = np.zeros(1000, dtype=np.int64)
    view, others = people.view(), np.arange(1000, 2000)
    view.setflags(write=False)
    others.setflags(write=False)
    counted = []
    for number in (20, 50):
        people[:] = np.arange(1000) % number
        losses = Losses(member=np.arange(1000.0), nonmember=np.arange(1000.0), person=(view, others))
        counted.append(auditor.audit(losses, persons=EachRecord()).data["persons"][0])
    assert counted == [20, 50]


@pytest.mark.parametrize(
    "blank",
    [np.array([None, None]), np.array(["", " "]), np.array([np.nan, np.nan]), np.array([pd.NA, pd.NaT])],
)
def test_records_without_a_name_are_persons_of_their_own(blank):
    """Blank, None, NaN and NA name nobody: such records are never combined, and are counted."""
    losses = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], person=(blank, np.array(["a", "a"])))
    found = per_person(losses, choice=EachRecord())
    assert found.persons == (2, 1)
    assert found.unlabelled == (2, 0)
    assert found.in_both == 0


def test_a_person_called_none_in_text_is_a_person():
    """In a column of text the word None is a name like any other."""
    words, missing = text(np.array(["None", ""]))
    assert words.tolist() == ["None", ""]
    assert missing.tolist() == [False, True]


def test_labels_survive_where_they_agree():
    """A shared group stays, differing groups become mixed, and ids that differ within a person go."""
    losses = Losses(
        member=[1.0, 2.0, 3.0, 4.0],
        nonmember=[3.0, 4.0],
        person=(["a", "a", "b", "b"], ["c", "d"]),
        id=([1, 2, 3, 4], [5, 6]),
        group=([0, 0, 0, 1], [1, 1]),
        fingerprint=([9, 9, 8, 8], [7, 6]),
    )
    found = per_person(losses, choice=OnePerPerson()).losses
    assert found.person.member.tolist() == ["a", "b"]
    assert found.group.member.tolist() == ["0", MIXED]
    assert found.group.nonmember.tolist() == ["1", "1"]
    assert found.id is None
    assert found.fingerprint.member.tolist() == [9, 8]


def test_extreme_losses_stay_finite_and_exact():
    """The mean of losses near the largest double neither overflows nor leaves their range."""
    top = np.finfo(np.float64).max
    losses = Losses(
        member=[top, top, top, -top, 0.1, 0.1, 0.1],
        nonmember=[5e-324, 5e-324, 0.0],
        person=(["a", "a", "a", "b", "c", "c", "c"], ["d", "d", "e"]),
    )
    found = per_person(losses, choice=OnePerPerson()).losses
    assert found.member.tolist() == [top, -top, 0.1]
    assert found.nonmember.tolist() == [5e-324, 0.0]


@pytest.mark.parametrize("decimals", [1, 12])
def test_the_correlation_agrees_with_analysis_of_variance(rng, decimals):
    """The effective number is the design effect with the correlation of statsmodels' one-way analysis of variance."""
    owner = np.repeat(np.arange(30), rng.integers(1, 6, 30))
    values = rng.normal(size=30)[owner] + rng.normal(size=owner.size)
    values, other = np.round(values, decimals), np.round(rng.normal(size=50), decimals)
    placements = np.array([np.mean(other < x) / 2 + np.mean(other <= x) / 2 for x in values])
    table = anova_lm(ols("y ~ C(unit)", pd.DataFrame({"y": placements, "unit": owner})).fit())
    between, within = table["mean_sq"]
    sizes = np.bincount(owner)
    typical = (owner.size - (sizes**2).sum() / owner.size) / 29
    icc = (between - within) / (between + (typical - 1) * within)
    expected = owner.size / (1 + ((sizes**2).sum() / owner.size - 1) * icc)
    found = effective_numbers(Losses(member=values, nonmember=other), PerGroup(owner, np.arange(50) + 100))
    assert found == pytest.approx((expected, 50.0))


def test_effective_numbers_at_the_ends():
    """No repeats are worth all records, copies are worth their people, and one person is worth one record."""
    others = np.linspace(0, 1, 40)
    owners = PerGroup(np.repeat([0, 1, 2, 3], 5), np.arange(40) + 10)
    copies = Losses(member=np.repeat([0.1, 0.4, 0.7, 0.9], 5), nonmember=others)
    assert effective_numbers(copies, owners) == (4.0, 40.0)
    assert effective_numbers(copies, PerGroup(np.zeros(20, dtype=int), owners.nonmember))[0] == 1.0
    apart = Losses(member=-1 - np.arange(20.0), nonmember=others)
    assert effective_numbers(apart, owners)[0] == 4.0


def test_no_person_column_is_no_check():
    """Without a person column every record is a unit, and there is nothing to say."""
    found = per_person(Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0]), choice=EachRecord())
    assert found.persons == found.records == (2, 2)
    assert persons(found) is None
    assert mechanism_reason(found) is None


REPEATS = np.repeat(np.arange(10), 3)


def check_of(member, nonmember, choice):
    """The check on random losses of these people."""
    rng = np.random.default_rng(0)
    losses = Losses(
        member=rng.normal(size=len(member)),
        nonmember=rng.normal(size=len(nonmember)),
        person=(np.asarray(member), np.asarray(nonmember)),
    )
    return persons(per_person(losses, choice=choice))


@pytest.mark.parametrize(
    ("member", "nonmember", "choice", "status"),
    [
        (REPEATS, REPEATS + 100, OnePerPerson(), Status.OK),
        (REPEATS, REPEATS + 100, EachRecord(), Status.WARN),
        (np.arange(9), np.arange(50, 60), EachRecord(), Status.OK),
        (REPEATS, REPEATS + 8, OnePerPerson(), Status.WARN),
        (["", "a"], ["b", "c"], EachRecord(), Status.UNKNOWN),
        (["", ""], ["", ""], EachRecord(), Status.UNKNOWN),
    ],
)
def test_the_check_tells_units_apart(member, nonmember, choice, status):
    """Combined records are fine; repeats counted as records and people in both groups warn; blanks are unknown."""
    assert check_of(member, nonmember, choice).status is status


def test_unequal_persons_fail_only_when_combined():
    """Eight records per member and two per non-member are no fair comparison of combined scores."""
    member, nonmember = np.repeat(np.arange(40), 8), np.repeat(np.arange(100, 140), 2)
    found = check_of(member, nonmember, OnePerPerson("min"))
    assert found.status is Status.FAIL
    assert "8 records each among the members and 2 among the non-members" in found.message
    assert check_of(member, nonmember, EachRecord()).status is Status.WARN


def test_the_training_algorithm_is_not_judged_on_the_wrong_units():
    """Combined people in both groups, and records whose people were split as one, give a reason; others do not."""
    rng = np.random.default_rng(1)
    repeats = np.repeat(np.arange(30), 3)
    whole = Losses(member=rng.normal(size=90), nonmember=rng.normal(size=90), person=(repeats, repeats + 30))
    assert "membership was decided by person" in mechanism_reason(per_person(whole, choice=EachRecord()))
    by_person = per_person(whole, choice=OnePerPerson())
    assert mechanism_reason(by_person) is None
    assert "up to 3 records of one person" in claim_reason(by_person)
    shared = Losses(member=whole.member, nonmember=whole.nonmember, person=(repeats, repeats))
    assert "records in both groups" in mechanism_reason(per_person(shared, choice=OnePerPerson()))
    assert mechanism_reason(per_person(shared, choice=EachRecord())) is None
    single = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], person=(["a", "b"], ["c", "d"]))
    assert mechanism_reason(per_person(single, choice=OnePerPerson())) is None
    assert claim_reason(per_person(single, choice=OnePerPerson())) is None


def sized(member, nonmember):
    """Persons with these numbers of records, all of different losses."""
    sizes = np.concatenate([member, nonmember])
    owner, split = np.repeat(np.arange(sizes.size), sizes), int(np.sum(member))
    values = np.arange(owner.size, dtype=float)
    return Losses(member=values[:split], nonmember=values[split:], person=(owner[:split], owner[split:]))


def test_sizes_of_few_persons_are_counted_out():
    """Three people with two records against three with one: 2 of the 20 splits are so unequal, so p is 0.1."""
    found = per_person(sized([2, 2, 2], [1, 1, 1]), choice=OnePerPerson())
    assert found.sizes_p_value == pytest.approx(2 / 20, rel=1e-12)
    assert persons(found).status is not Status.FAIL
    surely = per_person(sized([2] * 10, [1] * 10), choice=OnePerPerson())
    assert surely.sizes_p_value == pytest.approx(2 / 184756, rel=1e-6)  # 2 of the (20 choose 10) splits
    assert persons(surely).status is Status.FAIL


@pytest.mark.parametrize("people", [3, 5, 8])
def test_sizes_keep_their_level(rng, people):
    """Among all people of one law, few or many in ties, p is at most a with a chance of at most a."""
    runs = 400
    p = np.array(
        [
            per_person(
                sized(1 + rng.geometric(0.4, people), 1 + rng.geometric(0.4, people)), choice=EachRecord()
            ).sizes_p_value
            for _ in range(runs)
        ]
    )
    assert np.all((p >= 0) & (p <= 1))
    for level in (0.01, 0.1, 0.2):
        assert at_most(int((p <= level).sum()), runs, level)


@pytest.mark.parametrize(("unit", "verdict"), [("record", "not_evaluable"), ("person", "refuted")])
def test_a_claim_for_persons_is_judged_by_scores_of_persons(rng, unit, verdict):
    """A score for each person refutes a claim that is made for people, and says nothing about one for records."""
    owners = np.repeat(np.arange(400), 2)
    losses = Losses(
        member=rng.normal(-3, 1, 800), nonmember=rng.normal(0, 1, 800), person=(owners, owners + 400)
    )
    claim = auditor.StatedClaim(0.1, 0.0, "replace-one", unit)
    found = auditor.audit(losses, delta=0.0, split=auditor.RandomSplit(), claim=claim)
    assert found.data["unit"].startswith("person")
    assert found.verdict == verdict
    if unit == "record":
        assert "person" in found.comparisons[0].reason
        assert "refute" not in found.check("power").message
