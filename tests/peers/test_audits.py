"""Numbers that auditing libraries publish in their own tests; each test names the file and the test they come from.

Values are copied as published and compared within the tolerance of their test. Where ours differ by design, the test states
both and proves ours. Left out are bounds and scores that the package has not (Katz, Bailey, exposure, bootstraps), and
privacy-estimates and Privacy Meter, whose tests hold no numbers.
"""

import math

import numpy as np
import pytest
from oracles import gaussian_mechanism_epsilon
from scipy import stats

from auditor import Losses, MultiLabel, SquaredError, TradeoffCurve, losses_from_probabilities
from auditor.core import FixedThreshold, InputError, Sample
from auditor.curves import count
from auditor.estimators import (
    Counts,
    MemberLimits,
    auc,
    clopper_pearson,
    epsilon_bound,
    model_gdp,
    of_gdp,
    rejects,
    threshold_bound,
    tpr_at_fpr,
)
from auditor.theory import gaussian_mu


def scored(inside, outside):
    """Losses of scores that are larger for members."""
    return Losses(-np.asarray(inside, float), -np.asarray(outside, float))


# --- TensorFlow Privacy (tensorflow/privacy, tensorflow_privacy/privacy/privacy_tests) -----------------


def test_clopper_pearson_at_one_threshold():
    """privacy_tests/epsilon_lower_bound_test.py (4.54) and research/audit_2020/audit_test.py (bound and accuracy), at 99%."""
    found = threshold_bound(Counts(500, 500, 0, 500), MemberLimits(Sample(), 500), delta=0.0, alpha=0.01)
    assert found.epsilon == pytest.approx(4.54, abs=5e-3)
    assert found.epsilon == pytest.approx(4.541915810224092, abs=5e-8)
    accuracy = (found.details["tpr_lower"] + 1 - found.details["fpr_upper"]) / 2
    assert accuracy == pytest.approx(0.9894593118113243, abs=5e-8)
    equal = scored(np.ones(500), np.ones(500))
    rule = FixedThreshold(-0.5)
    assert clopper_pearson(equal, delta=0.0, confidence=0.99, rule=rule).value == 0


def test_auc_of_twelve_losses():
    """.../membership_inference_attack_test.py, test_run_attack_threshold_calculates_correct_auc: .83, with a tie."""
    losses = Losses([0.1, 0.2, 1.3, 0.4, 0.5, 0.6], [1.1, 1.2, 1.3, 0.4, 1.5, 1.6])
    assert auc(count(losses)).value == pytest.approx(0.83, abs=5e-3)


TWO = [[0.01, 0.99], [0.1, 0.9], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [0.9, 0.1], [0.99, 0.01]]
THREE = [[0.2, 0.7, 0.1], [0.6, 0.2, 0.2], [0.6, 0.1, 0.3], [0.99, 0.002, 0.008]]
ONE = [0.2, 0.7, 0.1, 0.99, 0.002, 0.008]
LOSSES = [
    (TWO, [0] * 7, [4.60517019, 2.30258509, 1.38629436, 0.69314718, 0.28768207, 0.10536052, 0.01005034]),
    (TWO, [1] * 7, [0.01005034, 0.10536052, 0.28768207, 0.69314718, 1.38629436, 2.30258509, 4.60517019]),
    (THREE, [0] * 4, [1.60943791, 0.51082562, 0.51082562, 0.01005034]),
    (THREE, [1] * 4, [0.35667494, 1.60943791, 2.30258509, 6.2146081]),
    (THREE, [2] * 4, [2.30258509, 1.60943791, 1.2039728, 4.82831374]),
    (ONE, [0] * 6, [0.2231435513, 1.2039728043, 0.1053605157, 4.6051701860, 0.0020020027, 0.0080321717]),
    (ONE, [1] * 6, [1.6094379124, 0.3566749439, 2.3025850930, 0.0100503359, 6.2146080984, 4.8283137373]),
    ([[0.1, 0.85, 0.05], [0.1, 0.5, 0.4]], [1, 2], [0.16251893, 0.91629073]),
]
LOGIT_LOSSES = [
    ([[1, 2, 0, -1], [1, 2, 0, -1], [-1, 3, 0, 0]], [0, 3, 1], [1.4401897, 3.4401897, 0.11144278]),
    ([[1, 2, -3], [-1, 1, 0]], [1, 2], [0.31817543, 1.40760596]),
]


def loss_of(outputs, labels, **options):
    """Our losses of some records, given as members and as non-members."""
    outputs, labels = np.asarray(outputs, float), np.asarray(labels)
    classes = range(outputs.shape[1]) if outputs.ndim > labels.ndim else None
    twice, side = np.concatenate([outputs, outputs]), np.repeat([1, 0], len(labels))
    return losses_from_probabilities(
        twice, np.concatenate([labels, labels]), member=side, classes=classes, **options
    )


@pytest.mark.parametrize(
    ("kind", "outputs", "labels", "published"),
    [("probabilities", *row) for row in LOSSES] + [("logits", *row) for row in LOGIT_LOSSES],
)
def test_losses_of_records(kind, outputs, labels, published):
    """privacy_tests/utils_test.py, TestLogLoss, and .../advanced_mia_test.py, 'xe': log(1 + e^loss) of our log-odds, to 1e-7."""
    found = loss_of(outputs, labels, output=kind).member
    assert np.logaddexp(0, found) == pytest.approx(published, abs=1e-7)


def test_log_odds_of_records():
    """.../advanced_mia_test.py, calculate_statistic, 'logit': the statistic is our loss with the other sign."""
    logits, probabilities = [[1, 2, -3], [-1, 1, 0]], [[0.1, 0.85, 0.05], [0.1, 0.5, 0.4]]
    found = -loss_of(logits, [1, 2], output="logits").member
    assert found == pytest.approx([0.98185009, -1.12692802], abs=1e-7)
    assert -loss_of(probabilities, [1, 2]).member == pytest.approx([1.73460106, -0.40546511], abs=1e-7)


TRUE = [[0, 1, 1], [1, 1, 0]], [[0, 1, 0], [1, 1, 0]]
SIDES = [
    ("probabilities", [[0.2, 0.3, 0.7], [0.8, 0.6, 0.9]], TRUE[0]),
    ("probabilities", [[0.01, 0.02, 0.04], [0.8, 0.7, 0.9]], TRUE[1]),
    ("logits", [[-1.2, -0.3, 2.1], [0.0, 0.5, 1.5]], TRUE[0]),
    ("logits", [[-1.2, -0.3, 2.1], [0.0, 0.5, 1.5]], TRUE[1]),
]
PUBLISHED = [
    [[0.22314343, 1.20397247, 0.3566748], [0.22314343, 0.51082546, 2.30258409]],
    [[0.01005033, 3.91202251, 0.04082198], [0.22314354, 0.35667493, 2.30258499]],
    [[0.26328245, 0.85435522, 0.11551951], [0.69314716, 0.47407697, 1.70141322]],
    [[0.26328245, 0.85435522, 2.21551943], [0.69314716, 0.47407697, 1.70141322]],
]


@pytest.mark.parametrize(
    ("kind", "outputs", "labels", "published"),
    [(*side, values) for side, values in zip(SIDES, PUBLISHED, strict=True)],
)
def test_losses_of_several_labels(kind, outputs, labels, published):
    """privacy_tests/utils_test.py, test_multilabel_bce_loss: our sum of log-odds is that of each label's loss, in single precision."""
    found = loss_of(outputs, labels, output=kind, task=MultiLabel()).member
    assert found == pytest.approx(np.log(np.expm1(published)).sum(axis=1), abs=1e-5)


def test_squared_losses():
    """privacy_tests/utils_test.py, test_squared_loss."""
    found = loss_of([4, 3, 2, 1], [1.0, 2.0, 3.0, 4.0], task=SquaredError()).member
    assert found == pytest.approx([9, 1, 1, 9])


@pytest.mark.parametrize("published", [18.42068074, 46.05170186, 115.12925465])
def test_a_probability_of_zero_is_no_small_value(published):
    """privacy_tests/utils_test.py, ..._boundary: theirs is minus log of a constant; ours the end of the doubles' scale, counted."""
    found = loss_of([[0.0, 1.0]] * 2, [0, 1])
    end = np.log1p(-(2.0**-52)) + 52 * math.log(2)
    assert found.member == pytest.approx([end, -end], rel=1e-12)
    assert found.saturated == (2, 2)
    assert abs(published - end) > 9
    # No constant is safe: a probability below it is less likely, and would have the larger loss.
    tiny = loss_of([[1e-60, 1.0], [0.0, 1.0]], [0, 0]).member
    assert published < tiny[0] < tiny[1]


# --- JAX Privacy (google-deepmind/jax_privacy, tests/auditing_test.py) ------------------------------

CIRCLE = [
    (n, np.sqrt(1 - np.linspace(0, 1, 10_000) ** 2), np.linspace(0, 1, n)) for n in (5000, 10_000, 15_000)
]
FPRS = np.linspace(0, 1, 10)[1:-1]


def tprs(losses, rates):
    """The observed TPR at each FPR."""
    return [tpr_at_fpr(losses, rate=float(rate)).value for rate in rates]


@pytest.mark.parametrize(("n", "inside", "outside"), CIRCLE)
def test_a_circular_curve(n, inside, outside):
    """test_tpr_at_given_fpr_circular_roc, test_attack_auroc_circular_roc and test_max_accuracy_circular_roc at prevalence 1/2."""
    assert outside.size == n
    losses = scored(inside, outside)
    assert tprs(losses, FPRS) == pytest.approx(np.sqrt(FPRS * (2 - FPRS)), rel=1e-3)
    assert auc(count(losses)).value == pytest.approx(math.pi / 4, abs=5e-4)
    assert (1 + TradeoffCurve.from_losses(losses).advantage) / 2 == pytest.approx(math.sqrt(0.5), abs=5e-4)


@pytest.mark.parametrize("n", [15, 30, 45])
def test_the_worst_and_the_best_scores(n):
    """test_tpr_at_given_fpr_worst_case and ..._best_case, and test_attack_auroc_best_case."""
    assert tprs(scored(np.zeros(30), np.ones(n)), FPRS) == pytest.approx(FPRS)
    best = scored(np.ones(30), np.zeros(n))
    assert tprs(best, FPRS) == [1.0] * 8
    assert auc(count(best)).value == 1


def test_four_scores():
    """test_tpr_at_given_fpr_simple, with mixed thresholds, and test_max_accuracy_simple at prevalence 1/2."""
    losses = scored([1, 3], [0, 2])
    assert tprs(losses, [0.25, 0.5, 0.75]) == pytest.approx([0.75, 1, 1])
    assert [TradeoffCurve.from_losses(losses).tpr_at(rate) for rate in (0.0, 1.0)] == [0.5, 1]
    assert (1 + TradeoffCurve.from_losses(losses).advantage) / 2 == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("inside", "outside", "published", "ours"),
    [([0, 4, 6, 7], [1, 2, 3, 5], 13 / 16, 11 / 16), ([0.0] * 30, [1.0] * 30, 0.5, 0.0)],
)
def test_auc_is_of_the_scores_and_not_of_their_hull(inside, outside, published, ours):
    """test_attack_auroc_simple and ..._worst_case: theirs lies under the hull; ours counts pairs, and is not biased upward."""
    pairs = np.mean(np.subtract.outer(inside, outside) > 0)
    assert auc(count(scored(inside, outside))).value == pytest.approx(pairs)
    assert pairs == ours < published


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_gaussian_scores_have_nearly_their_epsilon(mu):
    """test_epsilon_from_gdp_tight: within its 5% of the true epsilon, and not above it."""
    rng = np.random.default_rng(0xBAD5EED)
    losses = scored(rng.normal(mu, 1, 500_000), rng.normal(0, 1, 500_000))
    truth = float(gaussian_mechanism_epsilon(mu, 0.05))
    assert 0.95 * truth < model_gdp(losses, delta=0.05, confidence=0.9).value < truth


@pytest.mark.parametrize("mu", [0.0, -1.0, -3.0])
def test_no_gaussian_leakage(mu):
    """test_epsilon_from_gdp_non_positive_mu_is_zero."""
    rng = np.random.default_rng(0xBAD5EED)
    losses = scored(rng.normal(mu, 1, 5000), rng.normal(0, 1, 5000))
    assert model_gdp(losses, delta=1e-5).value == 0


# Right and wrong guesses at the threshold their search ends at, and how many thresholds share the error.
@pytest.mark.parametrize(
    ("right", "wrong", "thresholds", "published"),
    [(379, 27, 386, 2.164749), (934, 4, 374, 4.7218075), (5436, 0, 140, 9.133752)],
)
def test_one_run_by_gaussian_dp(right, wrong, thresholds, published):
    """test_epsilon_one_run_close, fdp: the recursion refutes Gaussian DP up to the published epsilon, to 2e-5."""
    mu = gaussian_mu(published, delta=1e-6)
    counted = {"bits": 20_000, "guesses": right + wrong, "correct": right, "alpha": 0.05 / thresholds}
    assert rejects(of_gdp(mu * (1 - 2e-5)), **counted)
    assert not rejects(of_gdp(mu * (1 + 2e-5)), **counted)


@pytest.mark.parametrize(
    ("right", "wrong", "thresholds", "published", "ours"),
    [
        (2807, 569, 386, 1.13346, 1.42443),
        (4499, 167, 374, 2.311945, 3.01139),
        (8223, 10, 140, 4.395568, 5.76103),
    ],
)
def test_one_run_by_epsilon_and_delta(right, wrong, thresholds, published, ours):
    """test_epsilon_one_run_close: theirs is Theorem 5.2, repeated here; ours, by the recursion, shows 26% more."""
    alpha, guesses = 0.05 / thresholds, right + wrong
    fewer = np.arange(1, right + 1)
    for factor, refuted in ((1 - 1e-5, True), (1 + 1e-5, False)):
        law = stats.binom(guesses, 1 / (1 + math.exp(-factor * published)))
        at_least = law.sf(right - 1)
        added = np.max((law.sf(right - fewer - 1) - at_least) / fewer) * 2 * 20_000 * 1e-6
        assert bool(at_least + added < alpha) is refuted
    found = epsilon_bound(bits=20_000, guesses=guesses, correct=right, delta=1e-6, alpha=alpha)
    assert found == pytest.approx(ours, abs=1e-5)
    # A mechanism at ours without a delta is no counterexample: fewer coins than alpha show so many right guesses.
    assert stats.binom.sf(right - 1, guesses, 1 / (1 + math.exp(-found))) < alpha


# --- Others ---


@pytest.mark.parametrize(("fpr", "published"), [(0.0, 0.75), (0.5, 1.0)])
def test_tpr_of_art(fpr, published):
    """Trusted-AI/adversarial-robustness-toolbox, tests/metrics/privacy/test_worst_case_mia_score.py, targeted_fpr."""
    curve = TradeoffCurve.from_losses(scored([0.35, 0.32, 0.6, 0.6], [0.33, 0.2]))
    assert curve.tpr_at(fpr) == published


def test_one_non_member_is_too_few():
    """Same file, test_worst_case_accuracy: TPR 1 at FPR 0 with one non-member; ours refuses fewer than two."""
    with pytest.raises(InputError, match="at least 2 records, got 1"):
        scored([0.35, 0.33, 0.6], [0.3])


@pytest.mark.parametrize(("factor", "refuted"), [(0.5, False), (2.0, True)])
def test_the_recursion_of_privacy_guard(factor, refuted):
    """facebookresearch/PrivacyGuard, .../test_fdp_analysis_node.py, test_audit_rh_with_cap: 100 of 200 guesses, 1,000 canaries."""
    assert rejects(lambda rate: factor * rate, bits=1000, guesses=200, correct=100, alpha=0.05) is refuted


def test_two_separated_scores_show_nothing():
    """Same project, test_analysis_node.py, test_turn_cap_eps_on: log 2 of two users each; ours certifies 0, as chance explains it."""
    found = clopper_pearson(scored([0.1, 0.1], [0.0, 0.0]), delta=1e-5)
    assert found.value == 0 < math.log(2)
    # Equal laws without ties separate two and two in one of six orders, far more often than 5%.
    assert 1 / math.comb(4, 2) > 0.05


def test_perfect_guesses_of_opake():
    """JetBrains-Research/opake, packages/opake-auditing/tests, test_large_eps: 1,000 right guesses show more than 5 (of 2,000)."""
    assert epsilon_bound(bits=2000, guesses=1000, correct=1000, delta=0.0, alpha=0.05) > 5
