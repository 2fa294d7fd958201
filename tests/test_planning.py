"""Power planning: ceilings against the estimators and the design's values, and the smallest number by looking at all."""

import math

import numpy as np
import pytest
from oracles import gaussian_mechanism_epsilon, separated_epsilon
from scipy import special

from auditor import audit_labels
from auditor.core import (
    DPSGD,
    BernoulliSplit,
    Census,
    InputError,
    Losses,
    RandomSplit,
    RankGrid,
    Sample,
    StatedClaim,
    Subject,
    Subset,
    UnknownSplit,
)
from auditor.estimators import (
    clopper_pearson,
    grid_ceiling,
    of_epsilon_delta,
    one_run_bound,
    rejects,
)
from auditor.many import (
    FixedNumber,
    GaussianAttack,
    OneRunAudit,
    PerfectAttack,
    RandomisedResponse,
    Sequential,
    audit_runs,
    records_needed,
)
from auditor.many.planning import PlanOptions, _certifying
from auditor.report import plan_text

CEILINGS = {n: separated_epsilon(n, 0.05) for n in (10**2, 10**3, 10**4, 10**6)}


def separated(n_member, n_nonmember):
    """Every member below every non-member, in no order."""
    mixed = np.random.default_rng(0).permutation
    return Losses(mixed(np.linspace(0, 1, n_member)), mixed(np.linspace(2, 3, n_nonmember)))


# --- Ceilings ------------------------------------------------------------------------------------------


def ceiling(*sizes, delta, members=None, split=None):
    """The most that so many records can certify, by a plan."""
    setting = PlanOptions(coverage=members or Sample(), split=split or UnknownSplit())
    return _certifying(setting, 1.0, delta).ceiling(*sizes)


@pytest.mark.parametrize(("n", "expected"), CEILINGS.items())
def test_the_models_ceiling_is_where_separation_is_improbable(n, expected):
    """At delta 0: the epsilon at which all members lie below all others with the chance of the error, by quadrature."""
    assert ceiling(n, n, delta=0.0) == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("members", [Sample(), Census(), Subset(of=400)])
def test_the_models_ceiling_is_what_separated_losses_certify(members):
    """The ceiling is the bound of separated groups of those sizes, for every kind of scored members."""
    bound = clopper_pearson(separated(70, 90), delta=1e-3, coverage=members).value
    assert ceiling(70, 90, delta=1e-3, members=members) == pytest.approx(bound)


@pytest.mark.parametrize(
    ("split", "sizes"),
    [(RandomSplit(), (60, 80)), (BernoulliSplit(0.5), (70, 70)), (BernoulliSplit(0.8), (80, 20))],
)
@pytest.mark.parametrize(("delta", "within"), [(1e-3, 1e-6), (0.0, 1 / 32)])
def test_the_algorithms_ceiling_is_what_a_perfect_attack_is_bounded_at(split, sizes, delta, within):
    """The ceiling is that of the one-run bound on groups of those sizes; at delta 0, with four fifths of the error."""
    confidence = 0.95 if delta else 0.96
    rng = np.random.default_rng(0)
    found = one_run_bound(separated(*sizes), split=split, delta=delta, confidence=confidence, rng=rng)
    bits = found.details.get("thinned_to")
    if bits is None:
        assert ceiling(*sizes, delta=delta, split=split) == pytest.approx(
            found.details["ceiling"], abs=within
        )
    else:  # about so many coins are kept
        assert ceiling(*sizes, delta=delta, split=split) == pytest.approx(found.details["ceiling"], rel=0.1)


# --- Plans ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.9])
def test_a_plan_for_a_perfect_attack_is_the_smallest(epsilon):
    """Looking at every number up to the planned one: it is the first that certifies the target."""
    plan = records_needed(epsilon, delta=1e-5)
    every = [
        grid_ceiling(n, n, delta=1e-5, alpha=1 - 0.95, rule=RankGrid(), coverage=Sample())
        for n in range(2, plan.n_member + 1)
    ]
    assert [found >= epsilon for found in every] == [False] * (plan.n_member - 2) + [True]
    assert plan.n_member == plan.n_nonmember
    assert (plan.ceiling, plan.chance) == (pytest.approx(every[-1]), 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 1e-5), (3.0, 1e-5), (3.0, 1e-3)])
def test_a_plan_for_pairs_is_the_smallest(epsilon, delta):
    """The fewest pairs of which all right guesses, or a share of them, refute the target at a share of the error."""

    def enough(m):
        sizes = {max(1, round(m / 2**power)) for power in range(1, 7)}
        alpha = (1 - 0.95) / (1 + 4 * len(sizes))
        curve = of_epsilon_delta(epsilon, delta=delta)
        return any(rejects(curve, bits=m, guesses=r, correct=r, alpha=alpha) for r in {m, *sizes})

    plan = records_needed(epsilon, delta=delta, split=RandomSplit())
    assert enough(plan.n_member)
    assert not any(map(enough, range(2, plan.n_member)))
    assert (plan.subject, plan.adjacency) == (Subject.MECHANISM, "replace-one")


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_pure_epsilon_takes_so_many_pairs_that_all_are_rarely_right(epsilon):
    """At delta 0 the n right guesses of a perfect attack have the p-value expit(epsilon)^n, and four fifths of the error."""
    n = math.ceil(math.log(0.04) / -math.log1p(math.exp(-epsilon)))
    plan = records_needed(epsilon, delta=0.0, split=RandomSplit())
    assert plan.n_member == n
    assert records_needed(claim=StatedClaim(epsilon / 2, 0.0), split=RandomSplit()).n_member == n


@pytest.mark.parametrize("runs", [FixedNumber(), Sequential()])
def test_a_perfect_attack_refutes_with_the_planned_runs_and_not_with_fewer(runs):
    """The audit of separated scores is the judge: the planned number of runs refutes the claim, one pair less does not."""
    claim = DPSGD(1.0, 1.0, 1)
    plan = records_needed(claim=claim, runs=runs)
    assert (plan.unit, plan.epsilon, plan.ceiling, plan.adjacency) == ("runs", None, None, "add-remove")
    for n, verdict in ((plan.n_member, "refuted"), (plan.n_member - 1, "inconclusive")):
        found = audit_runs(separated(n, n), delta=1e-5, claim=claim, test=runs)
        assert found.verdict == verdict, n


def test_the_same_question_has_the_same_answer():
    """Plans are simulated from seeds of their own."""
    asked = {"claim": DPSGD(1.0, 1.0, 1), "runs": FixedNumber(), "attack": GaussianAttack(2.0)}
    assert records_needed(**asked) == records_needed(**asked)


# --- Targets out of reach ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_a_gaussian_attack_leaks_what_the_gaussian_mechanism_leaks(mu):
    """The limit of the model's bound is the Gaussian mechanism's epsilon, from mpmath; no plan goes beyond it."""
    limit = gaussian_mechanism_epsilon(mu, 1e-5)
    plan = records_needed(limit + 0.1, delta=1e-5, attack=GaussianAttack(mu))
    assert plan.limit == pytest.approx(limit, rel=1e-6)
    assert plan.n_member is None
    assert "however large it is" in plan.reason


def test_randomised_response_leaks_its_epsilon():
    """At delta 0 the limit is the epsilon itself; at a delta, log((p - d)/q) at its corner."""
    assert RandomisedResponse(2.0).leak(0.0) == pytest.approx(2.0)
    p = math.exp(2) / (1 + math.exp(2))
    assert RandomisedResponse(2.0).leak(0.1) == pytest.approx(math.log((p - 0.1) / (1 - p)))
    assert RandomisedResponse(2.0).leak(0.95) == 0.0


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.5)])
@pytest.mark.parametrize("delta", [1e-4, 1e-5])
def test_delta_limits_what_one_run_can_certify(delta, split):
    """A little below the limit ten million pairs certify, a little above it they do not."""
    attack = GaussianAttack(1.0)
    limit = OneRunAudit(split, 0.05, 1.0, delta).limit(attack)
    chances = [OneRunAudit(split, 0.05, limit + step, delta).chance(10**7, attack) for step in (-0.05, 0.05)]
    assert chances == pytest.approx([1.0, 0.0], abs=0.05)
    assert "at most" in records_needed(limit + 0.02, delta=delta, split=split, attack=attack).reason


@pytest.mark.parametrize(
    "asked",
    [{"runs": FixedNumber()}, {"runs": Sequential()}, {"split": RandomSplit()}, {"split": BernoulliSplit()}],
)
def test_what_is_claimed_is_never_refuted(asked):
    """An attack that shows what the claim allows, and no more, refutes it with no number of runs or records."""
    plan = records_needed(claim=DPSGD(1.0, 1.0, 1), attack=GaussianAttack(1.0), **asked)
    assert plan.n_member is None
    assert "stays within the claim" in plan.reason
    assert plan_text(plan).startswith("No plan refutes the claim of DP-SGD")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 40.0, "delta": 0.0}, "even 1,000,000,000 records in each group"),
        ({"epsilon": 9.0, "delta": 0.0, "coverage": Subset(of=500)}, "even 500 records in each group"),
        ({"epsilon": 3.0, "delta": 0.0, "attack": RandomisedResponse(2.0)}, "shows at most"),
        ({"epsilon": 800.0, "delta": 0.0, "attack": GaussianAttack(1e6)}, "even 1,000,000,000"),
    ],
)
def test_a_target_out_of_reach_has_no_number_and_a_reason(options, words):
    """No number, no ceiling and no chance, but one phrase that says why; the text says it too."""
    plan = records_needed(**options)
    assert (plan.n_member, plan.n_nonmember, plan.ceiling, plan.chance) == (None, None, None, None)
    assert words in plan.reason
    assert plan.reason in plan_text(plan)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1e-9, "delta": 0.0},
        {"epsilon": 1e-9, "delta": 0.9},
        {"epsilon": 18.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 0.0, "attack": GaussianAttack(1e-3), "coverage": Subset(of=10**4)},
        {"epsilon": 1.0, "delta": 0.0, "attack": GaussianAttack(1e9), "split": RandomSplit()},
        {"epsilon": 1.0, "delta": 0.0, "attack": RandomisedResponse(1e308), "split": BernoulliSplit(1e-6)},
        {"epsilon": 5.0, "delta": 0.0, "split": BernoulliSplit(1 - 1e-6)},
        {"epsilon": 1.0, "delta": 0.0, "confidence": 1 - 1e-11},
        {"epsilon": 0.01, "delta": 0.0, "attack": GaussianAttack(0.03), "split": BernoulliSplit(0.9)},
        {"claim": StatedClaim(0.0, 0.0), "attack": GaussianAttack(3.0), "split": BernoulliSplit(0.1)},
        {"claim": StatedClaim(1000.0, 1e-5), "split": BernoulliSplit(0.5)},
        {"claim": StatedClaim(1.0, 1e-5), "attack": GaussianAttack(1e9), "runs": FixedNumber()},
        {"claim": StatedClaim(0.1, 1e-5), "attack": GaussianAttack(0.1), "runs": Sequential()},
    ],
)
def test_extreme_questions_are_answered(options):
    """Tiny and huge targets, attacks and coins: a plan or a reason, without a warning."""
    plan = records_needed(**options)
    assert (plan.n_member is None) == (plan.reason is not None)


# --- Inputs and outputs --------------------------------------------------------------------------------------


def test_attacks_are_curves_that_are_the_same_from_both_groups():
    """Rates go there and back, and exchanging the groups gives the same curve: TPR(1 - TPR(u)) = 1 - u."""
    grid = np.linspace(0.01, 0.6, 30)
    for attack in (GaussianAttack(1.3), RandomisedResponse(1.1)):
        rates = attack.tpr(grid)
        assert attack.fpr(rates) == pytest.approx(grid)
        assert attack.tpr(1 - rates) == pytest.approx(1 - grid)
    assert PerfectAttack().fpr(grid).max() == 0


@pytest.mark.parametrize("attack", [GaussianAttack(1.3), RandomisedResponse(1.1)])
def test_the_odds_of_an_attack_are_the_slope_of_its_curve(attack):
    """Losses are likelier for members by the derivative of the true positive rate."""
    at = np.array([0.02, 0.1, 0.3, 0.6, 0.95])
    slope = (attack.tpr(at + 1e-6) - attack.tpr(at - 1e-6)) / 2e-6
    assert np.exp(attack.log_odds(at)) == pytest.approx(slope, rel=1e-4)


# --- Audits of labels -----------------------------------------------------------------------------------


def told_by_response(rng, size, classes, epsilon):
    """A model that names each label by randomised response, and the labels, equally likely given features."""
    labels = rng.integers(0, classes, size)
    other = (labels + rng.integers(1, classes, size)) % classes
    named = np.where(rng.random(size) < special.expit(epsilon - np.log(classes - 1)), labels, other)
    return np.where(named[:, None] == np.arange(classes), 0.9, 0.1 / (classes - 1)), labels


@pytest.mark.parametrize(("classes", "target"), [(2, 1.0), (10, 1.5)])
def test_a_plan_of_labels_holds_in_audits(rng, classes, target):
    """About the wanted share of real audits of so many records reaches the target, and far fewer of a third of them do."""
    epsilon = 2.5
    plan = records_needed(target, delta=0.0, labels=classes, attack=RandomisedResponse(epsilon))
    assert (plan.estimate, plan.n_nonmember, plan.limit) == ("epsilon_bound.labels", 0, epsilon)
    reached = []
    for size in (plan.n_member, plan.n_member // 3):
        bounds = []
        for seed in range(12):
            outputs, labels = told_by_response(rng, size, classes, epsilon)
            law = np.full((size, classes), 1 / classes)
            found = audit_labels(np.asarray, (outputs, labels), probabilities=law, seed=seed)
            bounds.append(found["epsilon_bound.labels"].value)
        reached.append(np.mean(np.array(bounds) >= target))
    assert reached[0] >= 0.55
    assert reached[1] <= reached[0] - 0.2


def test_plans_of_labels_that_cannot_be():
    """Other attacks, one class, splits, deltas and claims are refused; an attack that is too weak is said so."""
    asked = {"delta": 0.0, "labels": 2}
    for more, words in (
        ({"attack": GaussianAttack(1.0)}, "attack must be PerfectAttack"),
        ({"labels": 1}, "labels must be"),
        ({"split": RandomSplit()}, "split must be left out"),
        ({"delta": 1e-5}, "delta must be 0"),
    ):
        with pytest.raises(InputError, match=words):
            records_needed(1.0, **{**asked, **more})
    with pytest.raises(InputError, match="audits of labels none"):
        records_needed(claim=StatedClaim(1.0, 0.0), labels=2)
    assert records_needed(1.0, attack=RandomisedResponse(0.9), **asked).n_member is None
