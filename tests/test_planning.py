"""Power planning: ceilings against the estimators and the design's values, and the smallest number by looking at all."""

import math

import numpy as np
import pytest
from oracles import gaussian_mechanism_epsilon
from scipy import stats

from auditor.core import (
    BernoulliSplit,
    Census,
    Losses,
    RandomSplit,
    RankGrid,
    Sample,
    Subject,
    Subset,
    UnknownSplit,
)
from auditor.estimators import (
    biased_p_value,
    clopper_pearson,
    grid_ceiling,
    one_run_bound,
    steinke_bound,
)
from auditor.mechanism import (
    CoinAudit,
    GaussianAttack,
    PairAudit,
    PerfectAttack,
    RandomisedResponse,
    ceiling,
    coin_p_value,
    records_needed,
)
from auditor.report import plan_text

RANK_GRID_CEILINGS = {10**2: 2.671753, 10**3: 4.936418, 10**4: 7.198661, 10**5: 9.474546, 10**6: 11.751365}


def separated(n_member, n_nonmember):
    """Every member below every non-member."""
    return Losses(member=np.linspace(0, 1, n_member), nonmember=np.linspace(2, 3, n_nonmember))


# --- Ceilings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), RANK_GRID_CEILINGS.items())
def test_the_models_ceiling_is_that_of_the_design(n, expected):
    """Rank-grid ceilings at delta 0 as computed independently for the design, section 2.4."""
    assert ceiling(n, n, delta=0.0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("members", [Sample(), Census(), Subset(of=400)])
def test_the_models_ceiling_is_what_separated_losses_certify(members):
    """The ceiling is the bound of separated groups of those sizes, for every kind of scored members."""
    bound = clopper_pearson(separated(70, 90), delta=1e-3, members=members).value
    assert ceiling(70, 90, delta=1e-3, members=members) == pytest.approx(bound)


@pytest.mark.parametrize(("split", "sizes"), [(RandomSplit(), (60, 80)), (BernoulliSplit(0.5), (70, 70))])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_the_algorithms_ceiling_is_what_separated_losses_certify(split, sizes, confidence):
    """The ceiling is the one-run bound of separated groups of those sizes."""
    found = one_run_bound(
        separated(*sizes), split=split, delta=1e-3, confidence=confidence, rng=np.random.default_rng(0)
    )
    expected = ceiling(*sizes, delta=1e-3, confidence=confidence, split=split)
    assert found.value == pytest.approx(expected, abs=1e-6)


def test_unequal_coins_leave_a_perfect_attack_with_wrong_guesses():
    """With 80 members of 100, half of all guesses cannot be right "out" guesses: the ceiling counts what can be."""
    split = BernoulliSplit(0.8)
    found = one_run_bound(separated(80, 20), split=split, delta=0.0, rng=np.random.default_rng(0))
    assert ceiling(80, 20, delta=0.0, split=split) == pytest.approx(found.value, rel=0.02)
    assert found.value < found.details["ceiling"] or found.details["guesses"] < 100


# --- P-values without arrays -----------------------------------------------------------------------------


@pytest.mark.parametrize("inclusion", [0.5, 0.8, 0.1])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("guesses", [20, 201, 4000])
def test_the_coin_p_value_is_that_of_the_estimator(guesses, epsilon, inclusion):
    """In the range where a test is decided the p-value is within 1% of the exact sum, by the saddlepoint or not."""
    pair = (guesses // 2, guesses - guesses // 2)
    looked_at = 0
    for correct in range(guesses // 3, guesses + 1, max(1, guesses // 150)):
        exact = biased_p_value(guesses=pair, correct=correct, inclusion=inclusion, epsilon=epsilon)
        found = coin_p_value(pair, correct, inclusion, epsilon)
        if 1e-6 < exact < 0.3:
            looked_at += 1
            assert found == pytest.approx(exact, rel=0.01)
    assert looked_at or guesses == 20


# --- Plans ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0, 4.9364])
def test_a_plan_for_a_perfect_attack_is_the_smallest_that_stays_enough(epsilon):
    """Looking at every number up to 1200: from the planned one on all certify the target, and the one before does not."""
    plan = records_needed(epsilon, delta=1e-5)
    every = np.array(
        [
            grid_ceiling(n, n, delta=1e-5, alpha=1 - 0.95, rule=RankGrid(), members=Sample())
            for n in range(2, 1201)
        ]
    )
    assert plan.n_member == plan.n_nonmember == 2 + int(np.flatnonzero(every < epsilon)[-1]) + 1
    assert plan.ceiling == pytest.approx(every[plan.n_member - 2])
    assert plan.chance == 1


@pytest.mark.parametrize(("n", "expected"), RANK_GRID_CEILINGS.items())
def test_plans_invert_the_ceilings_of_the_design(n, expected):
    """The design's ceiling of n records takes at most n records, and a hundredth more takes more."""
    assert (
        records_needed(expected - 1e-6, delta=0.0).n_member
        <= n
        < records_needed(expected + 0.01, delta=0.0).n_member
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 1e-5), (3.0, 1e-5), (5.0, 1e-5)])
def test_a_plan_for_pairs_is_the_smallest(epsilon, delta):
    """The planned number of pairs reaches the target by the estimator's own bound, and one pair fewer does not."""
    plan = records_needed(epsilon, delta=delta, split=RandomSplit())

    def bound(m):
        return max(
            steinke_bound(bits=m, guesses=r, correct=r, delta=delta, alpha=0.05 / 3)
            for r in (m, max(1, round(m / 4)), max(1, round(m / 20)))
        )

    assert bound(plan.n_member) >= epsilon - 1e-9 > bound(plan.n_member - 1) - 1e-9
    assert (plan.subject, plan.adjacency) == (Subject.MECHANISM, "replace-one")


def test_fixed_rates_of_a_perfect_attack_on_coins_are_binomial():
    """With fair coins and few records the chance is that of the member counts that leave enough guesses right."""
    audit = CoinAudit(inclusion=0.5, alpha=0.05)
    chance = audit.chance(40, epsilon=1.0, attack=PerfectAttack())
    best = 0.0
    for r in (40, 10, 2):
        n_in, n_out = r // 2, r - r // 2
        right = np.array([min(m, n_in) + min(40 - m, n_out) for m in range(41)])
        enough = np.array(
            [
                biased_p_value(guesses=(n_in, n_out), correct=v, inclusion=0.5, epsilon=1.0) <= 0.05 / 3
                for v in right
            ]
        )
        best = max(best, float(stats.binom.pmf(np.arange(41), 40, 0.5)[enough].sum()))
    assert chance == pytest.approx(best)


@pytest.mark.parametrize("split", [UnknownSplit(), RandomSplit(), BernoulliSplit(0.3)])
@pytest.mark.parametrize("attack", [PerfectAttack(), GaussianAttack(2.0), RandomisedResponse(3.0)])
def test_harder_targets_and_more_certainty_take_more_records(split, attack):
    """The number grows with the target, the confidence and the power."""

    def needed(epsilon=1.0, confidence=0.95, power=0.8):
        plan = records_needed(
            epsilon, delta=1e-6, confidence=confidence, split=split, attack=attack, power=power
        )
        return plan.n_member + plan.n_nonmember

    assert needed() < needed(epsilon=2.0)
    assert needed() < needed(confidence=0.999)
    assert needed() <= needed(power=0.99)


def test_a_weaker_attack_takes_more_records():
    """The perfect attack takes the fewest records, and a smaller shift of the losses more than a larger one."""
    plans = [
        records_needed(1.0, delta=1e-5, attack=a).n_member
        for a in (PerfectAttack(), GaussianAttack(2), GaussianAttack(1))
    ]
    assert plans == sorted(plans)


# --- Targets out of reach ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_a_gaussian_attack_leaks_what_the_gaussian_mechanism_leaks(mu):
    """The limit of the model's bound is the Gaussian mechanism's epsilon, from mpmath; no plan goes beyond it."""
    limit = gaussian_mechanism_epsilon(mu, 1e-5)
    plan = records_needed(limit + 0.1, delta=1e-5, attack=GaussianAttack(mu))
    assert plan.limit == pytest.approx(limit, rel=1e-6)
    assert plan.n_member is None
    assert "however many records" in plan.reason


def test_randomised_response_leaks_its_epsilon():
    """At delta 0 the limit is the epsilon itself; at a delta, log((p - d)/q) at its corner."""
    assert RandomisedResponse(2.0).leak(0.0) == pytest.approx(2.0)
    p = math.exp(2) / (1 + math.exp(2))
    assert RandomisedResponse(2.0).leak(0.1) == pytest.approx(math.log((p - 0.1) / (1 - p)))
    assert RandomisedResponse(2.0).leak(0.95) == 0.0


@pytest.mark.parametrize("attack", [PerfectAttack(), GaussianAttack(2.0)])
@pytest.mark.parametrize("delta", [1e-3, 1e-5])
def test_delta_limits_what_pairs_can_certify(delta, attack):
    """A little below the limit a million or a billion pairs certify, a little above it they do not."""
    audit = PairAudit(delta, 0.05)
    limit = audit.limit(attack)
    chances = [audit.chance(10**9, epsilon=limit + step, attack=attack) for step in (-0.02, 0.02)]
    assert chances == pytest.approx([1.0, 0.0], abs=1e-6)
    assert "at most" in records_needed(limit + 0.02, delta=delta, split=RandomSplit(), attack=attack).reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 40.0, "delta": 0.0}, "even 1,000,000,000 records in each group"),
        ({"epsilon": 9.0, "delta": 0.0, "members": Subset(of=500)}, "the 500 records of the training set"),
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
        {"epsilon": 1.0, "delta": 0.0, "attack": GaussianAttack(1e-3)},
        {"epsilon": 1.0, "delta": 0.0, "attack": GaussianAttack(1e9), "split": RandomSplit()},
        {"epsilon": 1.0, "delta": 0.0, "attack": RandomisedResponse(1e308), "split": BernoulliSplit(1e-6)},
        {"epsilon": 5.0, "delta": 0.0, "split": BernoulliSplit(1 - 1e-6)},
        {"epsilon": 1.0, "delta": 0.0, "confidence": 1 - 1e-11},
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
