"""The bound by guesses that are learnt from revealed coins, and the table of several scores that it combines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from collectors.common import refused
from scipy import special

import auditor
from auditor.core import (
    BernoulliSplit,
    Losses,
    PerGroup,
    RandomSplit,
    StatedClaim,
    Subject,
    UnknownSplit,
    Verdict,
)
from auditor.estimators.adaptive import Coins, Shares, _growth, largest_refuted, log_wealth


class Known:
    """Log-ratios that are known beforehand."""

    ways = 1

    def __init__(self, ratio):
        self.ratio = ratio

    def ratios(self, records):
        """Return them."""
        return self.ratio[None, records]

    def learn(self, coins, block):
        """Learn nothing."""


def near(rng, size):
    """Members of which 30% have a loss near .5, where few others have one: no threshold on the loss finds them."""
    usual = rng.normal(size=size)
    return np.where(rng.random(size) < 0.3, rng.normal(0.5, 0.01, size), usual), rng.normal(size=size)


def test_wealth_is_the_product_of_the_bets(rng):
    """Bet by bet: p/q for a right guess and (1 - p)/(1 - q) for a wrong one where p > q, and the largest at the end of a block."""
    size, grid = 100, np.arange(0, 16 + 1 / 64, 1 / 32)
    ratio = rng.integers(-40, 41, size) / 32.0  # on the grid, so that nothing is rounded
    heads, prior = rng.random(size) < 0.4, rng.integers(-16, 17, size) / 16.0
    order = rng.permutation(size)
    coins = Coins(order[None], heads, prior)
    wealth, most, won = np.zeros(grid.size), np.full(grid.size, -np.inf), np.zeros(grid.size, dtype=bool)
    ends = {32, 40, 50, 63, 79, 99, 100}
    for turn in range(size):
        gap, a = ratio[order[turn]], prior[turn]
        if gap != 0:
            a = a if gap > 0 else -a
            p, q = special.expit(abs(gap) + a), special.expit(grid + a)
            right = (gap > 0) == heads[turn]
            wealth += np.where(p > q, np.log(p / q) if right else np.log((1 - p) / (1 - q)), 0.0)
            won |= (p > q) & right
        if turn + 1 in ends:  # wealth counts once a right guess had a bet
            most = np.where(won, np.maximum(most, wealth), most)
    found = log_wealth(coins, [Known(ratio)])
    assert found[0] == pytest.approx(most, abs=1e-9)
    assert np.array_equal(found[0], found[1])


def test_a_bet_never_gains_on_average():
    """Whatever was learnt and whatever the prior: right with the largest probability allowed, a bet has mean 1 or less."""
    grid = np.arange(0, 16 + 1 / 64, 1 / 32)
    for gap in (0.1, 0.5, 2.33, 7.0):
        for prior in (-3.01, -0.3, 0.0, 0.77, 2.9):
            right, wrong = (
                np.exp(_growth(np.array([gap]), np.array([is_right]), np.array([prior]))[0])
                for is_right in (True, False)
            )
            chance = special.expit(grid + prior)
            assert (chance * right + (1 - chance) * wrong <= 1 + 1e-9).all()
            assert right[0] > 1 > wrong[0]


def test_wealth_of_each_learner_is_part_of_the_whole(rng):
    """The wealth of all is the sum of the parts at each time, so it is no less than the largest part, and no more than their sum."""
    heads = rng.random(500) < 0.5
    coins = Coins(np.arange(500)[None], heads, np.zeros(500))
    learners = [Shares(heads + rng.normal(size=500)), Shares(rng.normal(size=500))]
    whole, *parts = log_wealth(coins, learners)
    assert (whole >= np.max(parts, axis=0) - 1e-9).all()
    assert (whole <= np.logaddexp(*parts) + 1e-9).all()
    alone = log_wealth(coins, [Shares(np.zeros(500))])[0]
    assert np.all(alone <= 0)


def test_the_bound_is_before_the_first_epsilon_that_is_kept():
    """A later epsilon that is refuted by chance adds nothing."""
    most = np.array([5.0, 4.0, 3.1, 2.0, 9.0])
    assert largest_refuted(most, math.exp(-3.0)) == 2 / 32
    assert largest_refuted(most, math.exp(-6.0)) == 0.0
    assert largest_refuted(np.full(3, 9.0), 0.05) == 512 / 32


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
def test_a_leak_that_is_not_monotone_is_found(rng, split):
    """Where no threshold certifies half a nat of the algorithm, guesses that are learnt certify more than 1.5."""
    member, nonmember = near(rng, 1000)
    result = auditor.audit(Losses(member=member, nonmember=nonmember), split=split)
    row = result["epsilon_bound.adaptive"]
    assert row.value > 1.5
    assert row.lower == row.value <= row.details["ceiling"]
    assert (row.subject, row.delta, row.confidence) == (Subject.MECHANISM, 0.0, 0.95)
    assert row.details["coins"] == (1000 if isinstance(split, RandomSplit) else 2000)
    assert result["epsilon_bound.one_run"].value < 0.5


def test_a_split_without_chance_has_no_row(rng):
    """Nothing was tossed, so nothing can be revealed."""
    result = auditor.audit(Losses(member=rng.normal(size=50), nonmember=rng.normal(size=50)))
    assert "epsilon_bound.adaptive" not in {row.name for row in result.estimates}


def test_claims_at_delta_0_alone_are_judged(rng):
    """The bets refute a pure epsilon with a fifth of the error, the other test keeps four; a claim with a delta has neither shared."""
    member, nonmember = near(rng, 1000)
    losses = Losses(member=member, nonmember=nonmember)
    result = auditor.audit(losses, split=BernoulliSplit(0.5), claim=StatedClaim(1.0, delta=0.0))
    rows = [result[f"epsilon_bound.{name}"] for name in ("one_run", "adaptive")]
    assert [row.confidence for row in rows] == pytest.approx([0.96, 0.99])
    assert result.verdict is Verdict.REFUTED
    judged = result.comparisons[0]
    assert judged.estimate == "epsilon_bound.adaptive"
    assert judged.p_value < 0.01
    main_numbers = auditor.report.markdown(result).partition("### Main numbers")[2].partition("###")[0]
    assert "| Training algorithm, by learnt guesses |" in main_numbers
    asked = {
        "split": BernoulliSplit(0.5),
        "claim": StatedClaim(1.0, delta=0.0),
        "one_run_test": auditor.FDP(),
    }
    result = auditor.audit(losses, **asked)
    rows = [result[f"epsilon_bound.{name}"] for name in ("one_run", "adaptive")]
    assert [row.confidence for row in rows] == pytest.approx([0.96, 0.99])
    result = auditor.audit(losses, split=BernoulliSplit(0.5), claim=StatedClaim(1.0, delta=1e-5))
    assert result.verdict is not Verdict.REFUTED
    assert result["epsilon_bound.adaptive"].confidence == 0.95


def test_units_that_are_not_independent_have_no_bound(rng):
    """Records that are copies of each other, by their ids, support no statement on the algorithm, by these guesses either."""
    ids = PerGroup(np.repeat(np.arange(25), 2), np.repeat(np.arange(25, 50), 2))
    member, nonmember = rng.normal(size=(2, 50))
    losses = Losses(member=member, nonmember=nonmember, id=ids)
    row = auditor.audit(losses, split=RandomSplit()).estimates
    row = {item.name: item for item in row}["epsilon_bound.adaptive"]
    assert row.details["coins"] == 25


def xor(rng, size):
    """Losses, entropies and noise: loss and entropy have the same sign for members, and independent ones for others."""
    signs = rng.choice([-1.0, 1.0], (3, size))
    loss, entropy = np.abs(rng.normal(size=(2, 2, size)))
    member = Losses(member=signs[0] * loss[0], nonmember=signs[1] * loss[1])
    other = Losses(member=signs[0] * entropy[0], nonmember=signs[2] * entropy[1])
    return member.with_scores(entropy=other)


def test_several_scores_are_combined_at_one_error(rng):
    """A pattern of two scores of which neither shows anything alone is certified together, in the last row of the table."""
    result = auditor.audit(xor(rng, 1000), split=RandomSplit())
    rows = result.data["scores"]
    assert [row["score"] for row in rows] == ["full", "score=entropy", None]
    assert rows[0]["certified"] < 0.2 > rows[1]["certified"]
    assert rows[2]["certified"] == result["epsilon_bound.adaptive"].value > 0.5
    assert rows[2]["value"] is None
    for row, name in zip(rows, ("full", "entropy"), strict=False):
        assert row["lower"] <= row["value"] <= row["upper"], name
    for text in (result.to_markdown(), str(result.to_html())):
        assert "All together, learnt" in text
        assert "entropy" in text


def test_scores_of_people_are_combined_as_their_losses_are(rng):
    """Each person's scores are their smallest ones, as their losses are; the rows are in any order."""
    losses = xor(rng, 300)
    member = np.stack([losses.member, losses.policies["score=entropy"].member])
    other = np.stack([losses.nonmember, losses.policies["score=entropy"].nonmember])
    order = rng.permutation(600)

    def rows(side):
        larger = side + rng.exponential(size=side.shape)
        return np.concatenate([side, larger], axis=1)[:, order]

    person = np.tile(np.arange(300), 2)[order]
    several = PerGroup(rows(member), rows(other))
    people = PerGroup(person, 300 + person)
    by_row = Losses(several.member[0], several.nonmember[0], person=people)
    by_row = by_row.with_scores(entropy=Losses(several.member[1], several.nonmember[1]))
    found = auditor.audit(by_row, split=RandomSplit(), persons=auditor.OnePerPerson("min"))
    expected = auditor.audit(losses, split=RandomSplit())
    parts = [[(row["score"], row["value"]) for row in result.data["scores"]] for result in (found, expected)]
    assert parts[0] == parts[1]
    assert found.data["scores"][2]["certified"] > 1


def test_the_table_of_scores_has_the_area_of_the_audit(rng):
    """With coins of their own odds both are of the records that thinning kept."""
    size = 2000
    hard = rng.random(size) < 0.5
    chance = np.where(hard, 0.8, 0.2)
    member = rng.random(size) < chance
    loss, noise = hard * 1.5 + rng.normal(size=size), rng.normal(size=size)
    odds = PerGroup(chance[member], chance[~member])
    losses = Losses(loss[member], loss[~member], inclusion=odds)
    both = losses.with_scores(noise=Losses(noise[member], noise[~member]))
    result = auditor.audit(both, split=BernoulliSplit())
    assert result.data["scores"][0]["value"] == pytest.approx(result.estimate("auc").value, abs=1e-9)


def test_without_a_declared_chance_the_scores_share_the_error_of_the_model(rng):
    """Each row then has a bound on the model at half of the error, and none combines them."""
    losses = xor(rng, 300)
    losses = replace(losses, member=losses.member - 1.0)
    rows = auditor.audit(losses, split=UnknownSplit(), delta=1e-3, disclosure="insiders").data["scores"]
    assert [row["score"] for row in rows] == ["full", "score=entropy"]
    single = auditor.audit(replace(losses, policies={}), delta=1e-3, confidence=0.975, disclosure="insiders")
    assert rows[0]["certified"] == single["epsilon_bound.clopper_pearson"].lower
    assert [rows[0][end] for end in ("lower", "upper")] == [
        getattr(single["auc"], end) for end in ("lower", "upper")
    ]


def test_scores_of_other_records_are_refused():
    """The same records in the same order, by ids where both have them, and by their number."""
    losses = Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0], id=(["a", "b"], ["c", "d"]))
    with refused("entropy must score the same records in the same order"):
        losses.with_scores(entropy=replace(losses, id=(["b", "a"], ["c", "d"])))
    with refused("entropy must be an auditor.Losses of the same records"):
        losses.with_scores(entropy=np.arange(4.0))
    with pytest.raises(auditor.InputError, match="same"):
        losses.with_scores(entropy=Losses(member=[1.0, 2.0, 3.0], nonmember=[3.0, 4.0]))


def test_few_right_guesses_by_one_score_show_nothing_of_it():
    """Five right guesses with a bet count neither alone nor beside sixty of another score, however much was bet on them."""
    size = 60
    coins = Coins(np.arange(size)[None], np.ones(size, dtype=bool), np.zeros(size))
    few, many = np.where(np.arange(size) < 5, 10.0, 1 / 32), np.full(size, 3 / 32)
    whole, of_few, of_many = log_wealth(coins, [Known(few), Known(many)], least=10)
    counted = [np.flatnonzero(np.isfinite(row)).tolist() for row in (whole, of_few, of_many)]
    assert counted == [[0, 1, 2], [0], [0, 1, 2]]  # of the grid of 1/32: below the log-ratio of ten guesses
    assert of_many[0] == pytest.approx(60 * math.log(special.expit(3 / 32) / 0.5) - math.log(2))
    assert whole[1:3] == pytest.approx(of_many[1:3])


@pytest.mark.parametrize("chance", [0.001, 0.3, 0.9])
def test_a_column_of_equal_odds_is_the_chance_of_each_coin(rng, chance):
    """The bets are those against coins of that chance, as where the split names it."""
    size = 2000
    member = rng.random(size) < chance
    member[:2], member[-2:] = True, False
    loss = rng.normal(size=size) - member
    pair = {"member": loss[member], "nonmember": loss[~member]}
    column = PerGroup(np.full(member.sum(), chance), np.full((~member).sum(), chance))
    of_column = auditor.audit(Losses(**pair, inclusion=column), split=BernoulliSplit(), disclosure="insiders")
    named = auditor.audit(Losses(**pair), split=BernoulliSplit(chance), disclosure="insiders")
    found, expected = (item.estimate("epsilon_bound.adaptive") for item in (of_column, named))
    assert (found.value, found.details["ceiling"]) == (expected.value, expected.details["ceiling"])


def test_scores_are_kept_in_files(rng, tmp_path):
    """A column loss.score=NAME is written and read."""
    losses = xor(rng, 50)
    losses.to_frame().to_parquet(tmp_path / "losses.parquet")
    found = auditor.read_losses(tmp_path / "losses.parquet")
    assert np.array_equal(found.policies["score=entropy"].member, losses.policies["score=entropy"].member)


def test_a_score_whose_name_cannot_be_used_is_refused(tmp_path):
    """Its column is not left out without a word."""
    (tmp_path / "losses.csv").write_text("loss,member,loss.score=a/b\n1,1,2\n2,0,3\n", encoding="utf-8")
    with refused("a column of another score must be called loss.score=NAME") as caught:
        auditor.read_losses(tmp_path / "losses.csv")
    assert "got 'loss.score=a/b'; rename it." in str(caught.value)


def test_a_classifier_is_scored_by_its_doubt_too(rng):
    """The scores of the same outputs for an attacker without labels, beside the loss, as their definitions have them."""
    outputs, labels = rng.dirichlet(np.ones(3), size=80), rng.integers(0, 3, size=80)
    policies = "score=entropy,score=largest,score=margin"
    member = np.arange(80) < 40
    losses = auditor.losses_from_probabilities(outputs, labels, member=member, policies=policies)
    ordered = np.sort(outputs, axis=1)
    expected = {
        "entropy": -(outputs * np.log(outputs)).sum(axis=1),
        "largest": -ordered[:, -1],
        "margin": ordered[:, -2] - ordered[:, -1],
    }
    for name, values in expected.items():
        assert np.concatenate(losses.policies[f"score={name}"]) == pytest.approx(values)
    with refused("policies must be of a kind that this score has"):
        auditor.losses_from_probabilities(outputs, labels, member=member, policies="score=other")
