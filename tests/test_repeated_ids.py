"""Rows that share an id are one record everywhere, claims about records are judged for groups, and stray people are named."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from command_line import answer

import auditor
from auditor.checks import duplicates, label_shuffle
from auditor.collectors import Summary
from auditor.comparison.paired import same_records
from auditor.core import (
    BernoulliSplit,
    EachRecord,
    InputError,
    Losses,
    OnePerPerson,
    RandomSplit,
    StatedClaim,
    Status,
    Subset,
)
from auditor.records import Features, per_person, per_record
from auditor.risk import rank_records


def scored(rng, *, ids=80, rows=8, leak=0.0, noise=0.05, **split):
    """Half of the ids are members; each has so many rows, or as many as a sequence says."""
    rows = np.broadcast_to(rows, ids)
    owner = np.repeat(np.arange(ids), rows)
    inside = np.isin(owner, rng.permutation(ids)[: ids // 2]) if not split else split["inside"][owner]
    values = rng.normal(size=ids)[owner] - leak * inside + noise * rng.normal(size=owner.size)
    names = np.char.add("r", owner.astype(str))
    return Losses(values[inside], values[~inside], id=(names[inside], names[~inside]))


def by_hand(losses, by="mean"):
    """One loss per id, by pandas."""
    sides = [
        pd.Series(values).groupby(np.asarray(ids), sort=False).agg(by)
        for values, ids in zip((losses.member, losses.nonmember), losses.id, strict=True)
    ]
    return Losses(*(side.to_numpy() for side in sides), id=tuple(side.index.to_numpy() for side in sides))


def values_of(result):
    """Every estimate's value and limits, by name."""
    return {
        f"{row.name}.{end}": getattr(row, end)
        for row in result.estimates
        for end in ("value", "lower", "upper")
    }


@pytest.mark.parametrize("by", ["mean", "min", "max"])
def test_an_audit_of_rows_is_that_of_ids(rng, by):
    """Every number is the one of the losses that pandas combines; the result says how many rows and ids there are."""
    losses = scored(rng, leak=1.0, ids=200)
    about = {"split": RandomSplit(), "delta": 1e-5, "seed": 1}
    found = auditor.audit(losses, persons=EachRecord(by=by), **about)
    assert values_of(found) == pytest.approx(
        values_of(auditor.audit(by_hand(losses, by), training_size=800, **about)), nan_ok=True
    )
    assert (found.data["rows"], found.data["records"], found.data["n_member"]) == (
        [800, 800],
        [100, 100],
        100,
    )
    check = found.check("duplicates")
    assert check.status is Status.OK
    assert "1,600 rows have 200 ids, up to 8 rows each" in check.message


@pytest.mark.parametrize(
    ("rows", "adjacency", "group"),
    [
        ("records", "replace-one", 8),
        ("records", "add-remove", 16),
        ("scorings", "replace-one", 1),
        ("scorings", "add-remove", 2),
    ],
)
def test_a_claim_is_judged_for_as_many_records_as_rows(rng, rows, adjacency, group):
    """Eight training rows of a replaced id are eight replaced records, or sixteen added and removed; scorings are one record."""
    claim = StatedClaim(0.1, 0.0, adjacency=adjacency)
    found = auditor.audit(
        scored(rng, leak=9.0), split=RandomSplit(), delta=0.0, claim=claim, persons=EachRecord(rows=rows)
    )
    judged = found.comparisons[0]
    assert judged.claim.value == pytest.approx(0.1 * group)
    assert judged.claim.adjacency == "replace-one"
    assert found.claims[0].value == 0.1
    assert found.verdict == "refuted"
    bound = found.estimate("epsilon_bound.one_run")
    assert any(
        ("scorings" if rows == "scorings" else "neighbours differ in all rows") in item
        for item in bound.assumptions
    )


def test_the_largest_number_of_rows_decides(rng):
    """With 1 to 5 rows an id, an add-remove claim is judged for 5 of them; replaced records say nothing of unequal sizes."""
    rows = rng.integers(1, 6, 200)
    rows[0] = 5
    losses = scored(rng, ids=200, rows=rows, leak=9.0, inside=rng.random(200) < 0.5)
    about = {"split": BernoulliSplit(), "delta": 0.0}
    added = auditor.audit(losses, claim=StatedClaim(0.1, 0.0), **about)
    assert added.comparisons[0].claim.value == pytest.approx(0.5)
    about["split"] = RandomSplit()
    for claim, verdict in (
        (StatedClaim(0.1, 0.0), "refuted"),
        (StatedClaim(0.1, 0.0, adjacency="replace-one"), "not_evaluable"),
        (StatedClaim(0.1, 0.0, adjacency="replace-one", unit="person"), "refuted"),
    ):
        assert auditor.audit(losses, claim=claim, **about).verdict == verdict


@pytest.mark.parametrize(("limit", "verdict"), [(2, "not_evaluable"), (3, "refuted"), (None, "refuted")])
def test_a_claim_for_people_with_so_many_records_judges_people(rng, limit, verdict):
    """Of people with three records a claim for two says nothing; one for three is three times that for a record."""
    owner = np.repeat(np.arange(200), 3)
    losses = Losses(rng.normal(-9, 1, 600), rng.normal(0, 1, 600), person=(owner, owner + 200))
    claim = StatedClaim(0.1, 0.0, "replace-one", "person", limit)
    found = auditor.audit(losses, split=RandomSplit(), delta=0.0, claim=claim)
    assert found.verdict == verdict
    if limit == 3:
        assert found.comparisons[0].claim.value == pytest.approx(0.3)


def test_oversampled_members_are_one_record_each(rng):
    """Copies with one loss make no difference in their number; rows of different losses do, and the check fails."""
    member, other = rng.normal(size=(2, 100))
    ids = [f"m{row}" for row in range(100)], [f"o{row}" for row in range(100)]
    eight = np.tile(member, 8), (ids[0] * 8, ids[1])
    found = auditor.audit(Losses(eight[0], other, id=eight[1]), delta=1e-5)
    plain = auditor.audit(Losses(member, other, id=ids), delta=1e-5)
    assert values_of(found)["auc.value"] == pytest.approx(values_of(plain)["auc.value"])
    assert found.check("duplicates").status is Status.OK
    augmented = Losses(eight[0] + rng.normal(size=800), other, id=eight[1])
    check = auditor.audit(augmented, delta=1e-5).check("duplicates")
    assert check.status is Status.FAIL
    assert "8 rows each among the members and 1 among the non-members" in check.message


def test_ids_that_cannot_be_combined_fail(rng):
    """One id for a whole group leaves nothing to compare: the check fails and the training algorithm gets no number."""
    losses = Losses(*rng.normal(size=(2, 50)), id=(["a"] * 50, [f"b{row}" for row in range(50)]))
    found = auditor.audit(losses, split=RandomSplit(), delta=1e-5)
    assert found.check("duplicates").status is Status.FAIL
    assert "ids repeat" in found.estimate("epsilon_bound.one_run").reason


def test_ids_count_within_a_person(rng):
    """The third visit of each patient is no record that repeats."""
    visit, who = np.tile(np.arange(4), 30), np.repeat(np.arange(30), 4)
    losses = Losses(*rng.normal(size=(2, 120)), id=(visit, visit), person=(who, who + 30))
    assert per_record(losses).largest == 1


def test_copies_by_features_leave_no_number_for_the_training(rng):
    """Records of 40 contents, each four times on one side: the check fails, and a one-run bound has no value."""
    content = np.repeat(rng.normal(size=(80, 3)), 4, axis=0)
    losses = Losses(*rng.normal(size=(2, 160)))
    found = auditor.audit(
        losses, features=Features(content[:160], content[160:]), split=RandomSplit(), delta=1e-5
    )
    assert found.check("duplicates").status is Status.FAIL
    row = found.estimate("epsilon_bound.one_run")
    assert row.value is None
    assert "copies" in row.reason
    ids = np.repeat(np.arange(80), 4)
    named = dataclasses.replace(losses, id=(ids[:160], ids[160:]))
    again = auditor.audit(
        named, features=Features(content[:160], content[160:]), split=RandomSplit(), delta=1e-5
    )
    assert again.check("duplicates").status is Status.OK
    assert again.estimate("epsilon_bound.one_run").value is not None


def strayed(rng, stray):
    """24 people of 30 records, split by person; of some members one record is on the other side."""
    owner = np.repeat(np.arange(24), 30)
    values = rng.normal(size=24)[owner] + 0.5 * rng.normal(size=720)
    inside = owner < 12
    inside[30 * np.arange(stray)] = False
    names = np.char.add("p", owner.astype(str))
    return Losses(values[inside], values[~inside], person=(names[inside], names[~inside]))


@pytest.mark.parametrize("choice", [None, OnePerPerson()])
def test_people_on_both_sides_are_left_out_counted_and_named(rng, choice):
    """Two strays leave the numbers of an audit without them, and a result that says who they are, or only how many."""
    losses = strayed(rng, 2)
    kept = [~np.isin(column, ["p0", "p1"]) for column in losses.person]
    about = {"split": RandomSplit(), "delta": 1e-5, "training_size": 400, "disclosure": "insiders"}
    without = auditor.audit(losses.take(member=kept[0], nonmember=kept[1]), **about)
    found = auditor.audit(losses, persons=choice, top_records=10, **about)
    assert values_of(found) == pytest.approx(values_of(without), nan_ok=True)
    assert (found.data["n_member"], found.data["n_nonmember"], found.data["left_out"]) == (10, 12, 2)
    check = found.check("persons")
    assert check.status is Status.WARN
    assert "Fewer than 10 more people have records in both groups" in check.message
    assert check.details["left_out_persons"] == ["p0", "p1"]
    assert (
        "fewer than 10 people with records in both groups were left out"
        in found.estimate("epsilon_bound.one_run").assumptions
    )
    unnamed = auditor.audit(losses, persons=choice, top_records=0, **about).check("persons").details
    assert (unnamed["left_out"], unnamed["left_out_persons"]) == (2, [])


@pytest.mark.parametrize("people", [2, 3])
def test_one_person_on_both_sides_of_few_is_audited(rng, people):
    """Where a group has records of one person alone, records are audited, with the warning that they are not independent."""
    owner = np.repeat(np.arange(people), 20)
    inside = (owner == 0) & (np.arange(owner.size) > 0)
    values = rng.normal(size=owner.size)
    losses = Losses(values[inside], values[~inside], person=(owner[inside], owner[~inside]))
    found = auditor.audit(losses, delta=1e-5, disclosure="insiders")
    assert found.data["unit"] == "record"
    assert found.check("persons").status is Status.WARN


def test_few_people_are_not_left_out(rng):
    """Where too few would be left, a person on both sides has one score in each group: nothing is found without a leak."""
    owner = np.repeat(np.arange(4), 20)
    inside = (owner < 2) & (np.arange(80) > 0)
    for _ in range(20):
        values = rng.normal(size=4)[owner] + 0.3 * rng.normal(size=80)
        losses = Losses(values[inside], values[~inside], person=(owner[inside], owner[~inside]))
        found = auditor.audit(losses, delta=1e-5, split=RandomSplit(), disclosure="insiders")
        assert (found.data["n_member"], found.data["n_nonmember"]) == (2, 3)
        assert found.estimate("epsilon_bound.clopper_pearson").value == 0
        assert found.estimate("epsilon_bound.one_run").value is None


def test_a_split_by_record_stays_one(rng):
    """Where coins of the records would have put as many people in both groups, each record is a unit."""
    owner = np.repeat(np.arange(60), 4)
    inside = rng.random(240) < 0.5
    values = rng.normal(size=240)
    losses = Losses(values[inside], values[~inside], person=(owner[inside], owner[~inside]))
    found = auditor.audit(losses, split=BernoulliSplit(), delta=1e-5)
    assert found.data["unit"] == "record"
    assert "left_out" not in found.data


def test_several_models_of_repeated_ids_are_those_of_ids(rng):
    """Bare losses and results of rows give what losses that pandas combined give, and the claim its form for groups."""
    models = [scored(rng, ids=120, rows=3, leak=2.0) for _ in range(3)]
    combined = [by_hand(item) for item in models]
    about = {"delta": 1e-5, "split": RandomSplit()}
    for together in (None, auditor.IndependentRuns()):
        found, plain = (
            auditor.audit_instances(item, together=together, **about) for item in (models, combined)
        )
        assert values_of(found) == pytest.approx(values_of(plain), nan_ok=True)
    about["claim"] = StatedClaim(0.1, 1e-5, "replace-one")
    results = [auditor.audit(item, delta=1e-5, split=RandomSplit(), disclosure="insiders") for item in models]
    for given in (models, results):
        judged = (
            auditor.audit_instances(given, together=auditor.IndependentRuns(), **about).comparisons[0].claim
        )
        assert judged.value == pytest.approx(0.3)
        assert judged.delta == pytest.approx(1e-5 * (1 + np.exp(0.1) + np.exp(0.2)))
    older = [
        dataclasses.replace(
            item,
            checks=tuple(
                dataclasses.replace(check, details={k: v for k, v in check.details.items() if k != "trained"})
                for check in item.checks
            ),
        )
        for item in results
    ]
    assert "ids repeat" in auditor.audit_instances(older, **about).estimates[0].reason


def test_a_run_that_is_listed_several_times_is_one_run(rng):
    """A table of runs with repeated ids gives the numbers of one score for each run."""
    ids = np.repeat(np.arange(400), 2)
    member, other = rng.normal(-1, 1, 400), rng.normal(0, 1, 400)
    twice = Losses(np.repeat(member, 2), np.repeat(other, 2), id=(ids, ids))
    once = Losses(member, other)
    found, plain = (auditor.audit_runs(item, delta=1e-5) for item in (twice, once))
    assert values_of(found) == pytest.approx(values_of(plain), nan_ok=True)
    assert found.data["n_with"] == 400


@pytest.mark.parametrize("names", [1, 2, 10])
@pytest.mark.parametrize("both", [True, False])
def test_ids_of_runs_that_name_the_canary_are_refused(rng, names, both):
    """The mean of many runs of one canary tells more than a run, so no claim is judged by it; without ids it stands.

    The scores are those of a Gaussian mechanism whose curve is claimed.
    """
    ids = np.char.add("canary-", (np.arange(200) % names).astype(str))
    losses = Losses(rng.normal(-0.5, 1, 200), rng.normal(0.0, 1, 200), id=(ids, ids if both else [""] * 200))
    about = {"delta": 1e-5, "claim": StatedClaim.from_mu(0.5)}
    with pytest.raises(
        InputError, match=f"ids must name runs, .* up to {200 // names} rows of one id .* leave the ids out"
    ):
        auditor.audit_runs(losses, **about)
    with pytest.raises(InputError, match="ids must name runs"):
        auditor.audit_runs(dataclasses.replace(losses, id=None), threshold_runs=losses, **about)
    assert str(auditor.audit_runs(dataclasses.replace(losses, id=None), **about).verdict) != "refuted"


def test_a_perfect_attack_in_counts_refutes():
    """Counts are no scores that repeat each other: all of 1,000 against none leaves no doubt, at less than the ceiling."""
    found = auditor.audit_runs(counts=(1000, 1000, 0, 1000), delta=0.0, claim=StatedClaim(1.0, 0.0))
    assert str(found.verdict) == "refuted"
    one_sided = -np.log(
        -np.expm1(np.log(0.05) / 1000)
    )  # ln of 1 over the Clopper-Pearson limit of no positives
    assert 5.5 < found.estimates[0].value < one_sided + 1.0
    assert "repeats" not in {check.name for check in found.checks}


def test_summaries_ranks_and_pairs_go_by_id(rng):
    """A summary counts ids, a ranking lists them, and two releases are compared by them."""
    losses = scored(rng, ids=300, rows=2, leak=2.0)
    combined = by_hand(losses)
    found, plain = Summary.of(losses), Summary.of(combined)
    assert (found.n_member, found.bin.tolist()) == (150, plain.bin.tolist())
    ranking = rank_records(losses, rng=np.random.default_rng(0))
    assert ranking.rank.member.size == 150
    newer = dataclasses.replace(losses, member=losses.member + 1, nonmember=losses.nonmember - 1)
    pairs = same_records(losses, newer)
    np.testing.assert_allclose(pairs.member[1] - pairs.member[0], 1.0)
    assert pairs.member.shape == (2, 150)


def test_a_summary_counts_people(rng):
    """People with several records count once in a summary too."""
    owner = np.repeat(np.arange(50), 4)
    losses = Losses(*rng.normal(size=(2, 200)), person=(owner, owner + 50))
    assert (Summary.of(losses).n_member, Summary.of(losses).n_nonmember) == (50, 50)


def test_shuffles_move_the_rows_of_an_id_together(rng):
    """Membership is shuffled among 80 ids, so that a bound on 640 rows is seen to lose its level."""
    found = label_shuffle(scored(rng), delta=1e-5, rng=rng)
    assert (found.details["shuffled"], found.details["units"]) == ("ids", 80)
    assert found.status is Status.FAIL


def test_odds_are_those_of_an_id(rng):
    """The rows of an id have one coin: unlike odds of them are refused, equal ones are its own."""
    losses = scored(rng, ids=60, rows=2, inside=np.arange(60) < 30)
    odds = np.full(60, 0.5), np.full(60, 0.5)
    auditor.audit(dataclasses.replace(losses, inclusion=odds), split=BernoulliSplit(), delta=1e-5)
    odds[0][0] = 0.6
    with pytest.raises(InputError, match="the same for all records of a person or an id"):
        auditor.audit(dataclasses.replace(losses, inclusion=odds), split=BernoulliSplit(), delta=1e-5)
    with pytest.raises(InputError, match="several rows of an id"):
        auditor.audit(losses, coverage=Subset(of=5000))


def test_bare_losses_say_what_their_ids_are(rng):
    """Without an audit the check counts rows and ids too, and people keep the mean of their ids."""
    assert "640 rows have 80 ids" in duplicates(scored(rng)).message
    losses = Losses(
        [0.0, 1.0, 5.0], [2.0, 3.0], id=(["a", "a", "b"], ["c", "d"]), person=(["p", "p", "q"], ["r", "s"])
    )
    found = per_person(losses, choice=OnePerPerson(rows="scorings"))
    assert found.losses.member.tolist() == [0.5, 5.0]
    assert (found.largest, found.trained) == (1, (1, 1))
    assert per_person(losses, choice=OnePerPerson()).trained == (1, 2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [([], 3), (["--set", "persons=each:scorings"], 1), (["--set", "persons=each:records"], 3)],
)
def test_rows_on_the_command_line(rng, tmp_path, capsys, asked, code):
    """``persons=each:scorings`` says that the rows of an id are one training record, whose claim then is refuted."""
    table = tmp_path / "losses.csv"
    scored(rng, leak=9.0).to_frame().to_csv(table, index=False)
    claim = ["--claim-epsilon", "0.4", "--claim-delta", "0", "--claim-adjacency", "replace-one"]
    found = answer(capsys, "audit", table, "--split", "random", *claim, *asked, code=code)
    assert found["data"]["rows"] == [320, 320]


@pytest.mark.parametrize(
    ("claim", "judged"), [((0.1, 0.0, "replace-one"), False), ((0.1, 0.0, "replace-one", "person"), True)]
)
def test_models_of_unequal_ids_judge_no_claim_about_replaced_records(rng, claim, judged):
    """Ids of one to three rows are training sets of other sizes, which a claim made for people covers."""
    models = [scored(rng, ids=60, rows=rng.integers(1, 4, 60), inside=rng.random(60) < 0.5) for _ in range(2)]
    found = auditor.audit_instances(models, delta=0.0, split=RandomSplit(), claim=StatedClaim(*claim))
    assert (found.verdict != "not_evaluable") is judged
