"""Several models of one mechanism: rates by counting, bounds by slow oracles, and no verdict from the wrong number."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import simulation
from scipy import optimize

from auditor import audit, audit_instances
from auditor.core import (
    BernoulliSplit,
    Check,
    Claim,
    InputError,
    Losses,
    RandomSplit,
    StatedClaim,
    Status,
    Subject,
    UnknownSplit,
    Verdict,
)
from auditor.estimators import (
    InstanceRates,
    certified_epsilon,
    instance_values,
    log_mean_exp,
    on_common_grid,
    point,
    rank_curves,
)
from auditor.report import audit_text
from auditor.results import input_hash
from auditor.verdicts import judge


def shifted(rng, *, by=2.0, sizes=(400, 500)):
    """Normal losses, those of the members lower by that much."""
    return Losses(member=rng.normal(-by, 1, sizes[0]), nonmember=rng.normal(0, 1, sizes[1]))


def result_of(losses, **parts):
    """A result that holds what an audit keeps of these losses."""
    data = {"n_member": losses.n_member, "n_nonmember": losses.n_nonmember}
    kept = {"curves": rank_curves(losses), "provenance": {"input_sha256": input_hash(losses)}}
    return dataclasses.replace(simulation.result_of(data), **{**kept, **parts})


def evidence_of(models):
    """The evidence of these losses."""
    return on_common_grid([{curve.name: curve for curve in rank_curves(losses)} for losses in models])


# --- Curves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [1000, 8])
def test_rank_curves_count_strictly_beyond_order_statistics(rng, values):
    """Every rate is (k+1)/n and every share a count strictly beyond the loss of rank k, ties or not."""
    member, nonmember = rng.integers(0, values, 30) + 0.0, rng.integers(2, values, 40) + 0.0
    curves = {curve.name: curve for curve in rank_curves(Losses(member=member, nonmember=nonmember))}
    low, high = sorted(nonmember), sorted(member, reverse=True)
    for rank in (0, 1, 2, 3, 5, 8, 11):
        row = [0, 1, 2, 3, 5, 8, 11].index(rank)
        assert curves["ranks.low_members"].fpr[row] == (rank + 1) / 40
        assert curves["ranks.low_members"].tpr[row] == sum(x < low[rank] for x in member) / 30
        assert curves["ranks.high_members"].tpr[row] == sum(x > low[-1 - rank] for x in member) / 30
        assert curves["ranks.high_nonmembers"].fpr[row] == (rank + 1) / 30
        assert curves["ranks.high_nonmembers"].tpr[row] == sum(x > high[rank] for x in nonmember) / 40
        assert curves["ranks.low_nonmembers"].tpr[row] == sum(x < high[-1 - rank] for x in nonmember) / 40


@pytest.mark.parametrize("pool", [(1, 2, 3, 4, 5, 6), (1, 1, 2, 2, 2, 3), (0, 0, 0, 0, 0, 0)])
def test_without_a_leak_no_attack_exceeds_its_rate_over_all_splits(pool):
    """Over all 20 splits of a fixed pool of losses, ties or not, the mean share called is at most the stated rate."""
    shares = []
    for chosen in itertools.combinations(range(6), 3):
        losses = Losses(
            member=[pool[i] for i in chosen], nonmember=[pool[i] for i in range(6) if i not in chosen]
        )
        shares.append(evidence_of([losses, losses]))
    mean = np.mean([item.hits[0] for item in shares], axis=0)
    assert np.all(mean <= shares[0].rates + 1e-12)


def test_randomised_response_keeps_its_promise_over_all_splits_and_outputs():
    """Each membership bit through randomised response at 0.7 is 1.4-DP for replaced records: no mean share exceeds it."""
    truthful = 1 / (1 + math.exp(-0.7))
    mean, total = 0.0, 0.0
    for chosen in itertools.combinations(range(6), 3):
        bits = [index in chosen for index in range(6)]
        for flips in itertools.product([False, True], repeat=6):
            weight = math.prod(1 - truthful if flip else truthful for flip in flips)
            said = zip(bits, flips, range(6), strict=True)
            loss = [float(not (bit ^ flip)) + index / 10 for bit, flip, index in said]
            member, nonmember = (
                [x for x, bit in zip(loss, bits, strict=True) if bit is side] for side in (True, False)
            )
            found = evidence_of([Losses(member=member, nonmember=nonmember)] * 2)
            mean, total = mean + weight * found.hits[0], total + weight
    assert total == pytest.approx(20)
    assert np.all(mean / total <= np.exp(1.4) * found.rates)
    assert np.any(mean / total > found.rates)  # and it does leak


def test_instances_of_other_sizes_meet_at_the_rates_of_the_smallest(rng):
    """At the smallest instance's rates a larger one gives its share at its largest rate that is not above."""
    small, large = shifted(rng, sizes=(20, 20)), shifted(rng, sizes=(20, 33))
    found = evidence_of([small, large])
    ordered = np.sort(large.nonmember)
    for rate, share, name in zip(found.rates, found.hits[1], found.names, strict=True):
        if name == "ranks.low_members":
            rank = max(k for k in (0, 1, 2, 3, 5, 8, 11) if (k + 1) / 33 <= rate)
            assert share == np.mean(large.member < ordered[rank])


# --- Numbers -----------------------------------------------------------------------------------------


def by_hand(evidence, delta, alpha):
    """The certified bound from its definition: loops, products and a root search."""

    def mean_bet(epsilon):
        total = 0.0
        for stake, stake_weight in zip((1, 0.75, 0.5, 0.25, 0.1), (0.4, 0.15, 0.15, 0.15, 0.15), strict=True):
            for column, (rate, weight) in enumerate(zip(evidence.rates, evidence.weights, strict=True)):
                bet = 1.0
                for share in evidence.hits[:, column]:
                    bet *= 1 + stake * (share / (math.exp(epsilon) * rate + delta) - 1)
                total += stake_weight * weight * bet
        return total - 1 / alpha

    return 0.0 if mean_bet(0.0) < 0 else optimize.brentq(mean_bet, 0, 20, xtol=1e-12)


@pytest.mark.parametrize(("by", "delta"), [(2.0, 0.0), (1.0, 1e-2), (0.0, 1e-5), (-2.0, 1e-5)])
def test_the_certified_bound_is_the_root_of_its_definition(rng, by, delta):
    """The bound equals the root of the averaged bets written out in loops, members low or high."""
    found = evidence_of([shifted(rng, by=by, sizes=(60, 50)) for _ in range(6)])
    assert certified_epsilon(found, delta, 0.05)[0] == pytest.approx(by_hand(found, delta, 0.05), abs=1e-9)


def test_instances_that_agree_lose_only_the_root_of_the_error():
    """One attack and 20 shares of c: between the full stake's log(c/f) + log(alpha w)/20 and the best possible, w = 1."""
    found = InstanceRates(np.full((20, 1), 0.3), np.array([0.001]), np.array([1.0]), ("ranks.low_members",))
    bound = certified_epsilon(found, 0.0, 0.05)[0]
    assert math.log(300) + math.log(0.05 * 0.4) / 20 <= bound <= math.log(300) + math.log(0.05) / 20


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
@pytest.mark.parametrize("by", [-1.0, 0.0, 0.5, 3.0, 50.0])
def test_eps_bar_is_at_most_log_mean_exp(rng, by, delta):
    """Theorem 2 of Negoescu et al. 2024 holds on every data set, not only in the mean: Jensen on the same curves."""
    for size in (2, 7):
        found = evidence_of([shifted(rng, by=by * rng.random(), sizes=(25, 30)) for _ in range(size)])
        assert point(found, delta)[0] <= log_mean_exp(instance_values(found, delta))[0] + 1e-12


def test_eps_bar_is_the_largest_ratio_of_averaged_rates(rng):
    """Eq. 19 with every ratio written out, at the averaged shares."""
    models = [shifted(rng) for _ in range(5)]
    found, delta = evidence_of(models), 1e-3
    ratios = [
        (sum(found.hits[i, j] for i in range(5)) / 5 - delta) / rate for j, rate in enumerate(found.rates)
    ]
    assert point(found, delta)[0] == pytest.approx(math.log(max(1.0, *ratios)))


def test_log_mean_exp_of_known_values():
    """log((e^1 + e^3)/2), and the standard error of a mean over that mean."""
    value, error = log_mean_exp(np.array([1.0, 3.0]))
    one, three = math.exp(1), math.exp(3)
    assert value == pytest.approx(math.log((one + three) / 2))
    assert error == pytest.approx((three - one) / 2 / ((one + three) / 2))


def test_total_separation_reaches_the_ceiling_and_is_finite(rng):
    """Separated groups give the ceiling itself, below log n0, however many instances there are."""
    models = [shifted(rng, by=100.0, sizes=(50, 80)) for _ in range(30)]
    bound = audit_instances(models, delta=0.0, split=RandomSplit()).estimate("epsilon_bound.instances")
    assert bound.value == bound.details["ceiling"] < math.log(80)
    assert bound.value > 4


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [([1.0, 1.0], [1.0, 1.0]), ([1e308, -1e308], [1e308, 0.0]), ([0.0, 5e-324], [5e-324, 1.0])],
)
def test_extreme_losses_are_survived(member, nonmember):
    """Two records, ties, the largest and the smallest doubles: no warning, and numbers that are finite and not below 0."""
    models = [Losses(member=member, nonmember=[*nonmember, float(i)]) for i in range(3)]
    found = audit_instances(models, delta=0.0, split=RandomSplit(), disclosure="insiders")
    assert all(0 <= item.value < 5 for item in found.estimates)


def test_all_equal_losses_show_nothing():
    """Ties are never calls: losses that are all equal give exactly 0 everywhere."""
    models = [Losses(member=np.ones(10) * i, nonmember=np.ones(10) * i) for i in range(12)]
    found = audit_instances(models, delta=0.0, split=RandomSplit())
    assert [item.value for item in found.estimates] == [0.0, 0.0, 0.0, 0.5, 0.0]


# --- What may be said ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "words"),
    [
        (UnknownSplit(), "not declared"),
        (RandomSplit(stratified=True), "stratified"),
        (BernoulliSplit(0.5), "declare RandomSplit()"),
    ],
)
def test_without_a_fresh_random_split_nothing_is_said_about_the_algorithm(rng, split, words):
    """Two rows without value and with the reason; the average over models needs no split and stays."""
    found = audit_instances([shifted(rng), shifted(rng)], delta=1e-5, split=split)
    for name in ("epsilon_bound.instances", "epsilon_bar"):
        row = found.estimate(name)
        assert (row.value, row.lower, row.adjacency) == (None, None, None)
        assert words in row.reason
    assert found.estimate("epsilon_bar.log_mean_exp").value > 0
    assert found.verdict is None


def test_verdicts_follow_from_the_certified_bound(rng):
    """A claim below the bound is refuted, one above the ceiling inconclusive, one between the two not refuted."""
    models = [shifted(rng) for _ in range(12)]
    plain = audit_instances(models, delta=0.0, split=RandomSplit()).estimate("epsilon_bound.instances")
    verdicts = []
    for epsilon in (plain.value - 0.01, plain.value + 0.01, plain.details["ceiling"] + 0.01):
        claim = StatedClaim(epsilon=epsilon, delta=0.0, adjacency="replace-one")
        found = audit_instances(models, delta=0.5, split=RandomSplit(), claim=claim)
        assert found.estimate("epsilon_bound.instances").value == plain.value  # at the claim's own delta
        verdicts.append(found.verdict)
    assert verdicts == [Verdict.REFUTED, Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE]
    unknown = audit_instances(models, delta=0.0, claim=claim)
    assert unknown.verdict is Verdict.NOT_EVALUABLE


def test_an_add_remove_claim_is_judged_in_its_replace_one_form(rng):
    """(1, 1e-5) for add/remove is judged as (2, (1 + e) 1e-5) for replace-one, and so is the bound stated."""
    claim = StatedClaim(epsilon=1.0, delta=1e-5)
    found = audit_instances([shifted(rng) for _ in range(12)], delta=1e-5, split=RandomSplit(), claim=claim)
    judged = found.comparisons[0]
    assert judged.claim.value == 2.0
    assert judged.claim.delta == found.estimate("epsilon_bound.instances").delta
    assert judged.claim.delta == pytest.approx((1 + math.e) * 1e-5)


def test_only_the_certified_bound_can_be_judged(rng):
    """Neither the point value nor log E[exp eps*] can judge a claim, however large: both are refused."""
    models = [shifted(rng, by=5.0) for _ in range(12)]
    found = audit_instances(models, delta=0.0, split=RandomSplit())
    claim = Claim("epsilon", 0.1, 0.0, "replace-one", "stated", proven=True)
    average = found.estimate("epsilon_bar.log_mean_exp")
    assert average.subject is Subject.MODEL
    assert judge(claim, found.estimate("epsilon_bound.instances")).verdict is Verdict.REFUTED
    for name in ("epsilon_bar", "epsilon_bar.log_mean_exp"):
        with pytest.raises(InputError, match="cannot judge a claim"):
            judge(claim, found.estimate(name))


def test_a_failed_check_of_one_audit_makes_the_whole_not_evaluable(rng):
    """A shift found in one of the audits leaves no verdict on the claim."""
    failed = Check("shift", Status.FAIL, "The two groups differ in their features.")
    models = [result_of(shifted(rng), checks=(failed,)), shifted(rng)]
    claim = StatedClaim(epsilon=0.1, delta=0.0, adjacency="replace-one")
    found = audit_instances(models, delta=0.0, split=RandomSplit(), claim=claim)
    assert found.verdict is Verdict.NOT_EVALUABLE
    assert "shift" in found.comparisons[0].reason


def test_results_and_losses_say_the_same(rng):
    """The curves in results hold all that is needed: the numbers are those of the losses."""
    models = [shifted(rng) for _ in range(4)]
    direct = audit_instances(models, delta=1e-5, split=RandomSplit())
    mixed = audit_instances(
        [result_of(models[0]), *models[1:3], result_of(models[3])], delta=1e-5, split=RandomSplit()
    )
    assert mixed.to_dict()["estimates"][:3] == direct.to_dict()["estimates"][:3]
    assert mixed.provenance["inputs_sha256"] == direct.provenance["inputs_sha256"]


# --- Inputs and outputs --------------------------------------------------------------------------------


def test_bad_instances_are_one_sentence(rng):
    """The same losses twice, no curves, damaged curves: refused with the place."""
    one, other = shifted(rng), shifted(rng)
    bare = result_of(one, curves=())
    first, *rest = rank_curves(one)
    damaged = result_of(one, curves=(dataclasses.replace(first, tpr=tuple(2.0 for _ in first.tpr)), *rest))
    for instances, words in (
        ([other, result_of(one), one], "instances 1 and 2"),
        ([other, bare], "instance 1 .* without rank curves"),
        ([other, damaged], "damaged curve 'ranks.low_members'"),
    ):
        with pytest.raises(InputError, match=words):
            audit_instances(instances, delta=1e-5)


def test_the_text_names_the_verdict_the_numbers_and_the_reasons(rng):
    """The terminal shows the verdict, what each number is about, and why one is missing."""
    models = [shifted(rng) for _ in range(12)]
    claim = StatedClaim(epsilon=0.1, delta=0.0, adjacency="replace-one")
    judged = audit_text(audit_instances(models, delta=0.0, split=RandomSplit(), claim=claim))
    for words in (
        "Claim refuted",
        "epsilon is at least",
        "at 95% confidence",
        "replace-one",
        "point estimate",
    ):
        assert words in judged
    assert "not declared" in audit_text(audit_instances(models, delta=0.0))


# --- What one model's audit would refuse ------------------------------------------------------------


def by_person(rng, instances=12):
    """Models whose leak is a person's: eight records of one person move together."""
    people = np.repeat(np.arange(200), 8)
    for _ in range(instances):
        member, nonmember = (np.repeat(rng.laplace(at, 1, 100), 8) for at in (-1, 0))
        noise = rng.normal(0, 1e-6, (2, 800))
        yield Losses(
            member=member + noise[0], nonmember=nonmember + noise[1], person=(people[:800], people[800:])
        )


def test_persons_are_not_taken_for_records(rng):
    """Records of people that were split whole say nothing here, and one score per person judges no claim on records."""
    claim = StatedClaim(0.05, 0.0, "replace-one")
    models = list(by_person(rng))
    bare = audit_instances(models, delta=1e-5, split=RandomSplit(), claim=claim)
    assert bare.verdict is Verdict.NOT_EVALUABLE
    assert "person" in bare.estimate("epsilon_bound.instances").reason
    results = [audit(model, split=RandomSplit(), disclosure="insiders") for model in models]
    combined = audit_instances(results, delta=1e-5, split=RandomSplit(), claim=claim)
    assert combined.estimate("epsilon_bound.instances").value > 0.05
    assert combined.verdict is Verdict.NOT_EVALUABLE
    assert "person" in combined.comparisons[0].reason
    persons = StatedClaim(0.05, 0.0, "replace-one", "person")
    judged = audit_instances(results, delta=1e-5, split=RandomSplit(), claim=persons)
    assert judged.verdict is Verdict.REFUTED


def test_overlap_and_blindness_are_seen_in_bare_losses(rng):
    """Ids in both groups make bare losses not evaluable, and members with the higher losses make them inconclusive."""
    claim = StatedClaim(3.0, 0.0, "replace-one")
    ids = (range(200), range(200))
    same = [Losses(member=rng.normal(-1, 1, 200), nonmember=rng.normal(0, 1, 200), id=ids) for _ in range(5)]
    found = audit_instances(same, delta=0.0, split=RandomSplit(), claim=claim)
    assert found.verdict is Verdict.NOT_EVALUABLE
    swapped = [Losses(member=rng.normal(0.5, 1, 200), nonmember=rng.normal(0, 1, 200)) for _ in range(5)]
    blind = audit_instances(swapped, delta=0.0, split=RandomSplit(), claim=claim)
    assert blind.verdict is Verdict.INCONCLUSIVE
