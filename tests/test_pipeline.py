"""audit(): verdicts, defaults, order, reproducibility, JSON."""

import json
import math

import numpy as np
import pytest

import auditor
from auditor import DPSGD, BernoulliSplit, Census, Losses, RandomSplit, StatedClaim, Verdict
from auditor.core import Adjacency
from auditor.results import Status, Subject
from auditor.theory import claimed_curve, total_variation

NAMES = [
    "epsilon_bound.clopper_pearson",
    "epsilon_bound.one_run",
    "epsilon_star.gaussian",
    "epsilon_star.empirical",
    "advantage",
    "bayes_security",
    "auc",
    "tpr_at_fpr.0.1",
    "tpr_at_fpr.0.01",
    "tpr_at_fpr.0.001",
    "epsilon_bound.gdp",
]


@pytest.fixture
def leaky(rng):
    """A clear leak."""
    return Losses(member=rng.normal(-3, 1, 1500), nonmember=rng.normal(0, 1, 1200))


@pytest.fixture
def quiet(rng):
    """No leak."""
    return Losses(member=rng.normal(0, 1, 1500), nonmember=rng.normal(0, 1, 1200))


def test_every_row_is_there(leaky):
    """Every estimate is present in the fixed order, with its subject, method and assumptions; no claim, no verdict."""
    declared = auditor.audit(leaky, split=RandomSplit())
    assert (declared.verdict, declared.claims, declared.comparisons) == (None, (), ())
    result = auditor.audit(leaky)
    assert [estimate.name for estimate in result.estimates] == NAMES
    for estimate in result.estimates:
        assert estimate.method
        assert estimate.value is not None or estimate.reason
        expected = Subject.MECHANISM if estimate.name == "epsilon_bound.one_run" else Subject.MODEL
        assert estimate.subject is expected


def test_the_default_delta_is_the_papers(leaky):
    """Delta defaults to the stated claim's, otherwise 1/(n ln n) with n the training size, the members unless said."""
    assert auditor.audit(leaky, claim=StatedClaim(1.0, 1e-6)).data["delta"] == 1e-6
    assert auditor.audit(leaky).data["delta"] == pytest.approx(1 / (1500 * math.log(1500)))
    assert auditor.audit(leaky, training_size=9000).data["delta"] == pytest.approx(
        1 / (9000 * math.log(9000))
    )


@pytest.mark.parametrize("claim", [StatedClaim(0.1, 1e-5), DPSGD(5.0, 0.001, 100)])
def test_without_a_declared_split_nothing_is_evaluable(leaky, claim):
    """However large the leak, an undeclared split refutes nothing about the training algorithm."""
    result = auditor.audit(leaky, claim=claim)
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert any("not declared" in row.reason for row in result.comparisons)


def test_a_false_claim_is_refuted(leaky):
    """A clear leak on a random split refutes a small epsilon, in its replace-one form at the converted delta; no model number does."""
    result = auditor.audit(leaky, split=RandomSplit(), claim=StatedClaim(0.5, 1e-5))
    judged = next(row for row in result.comparisons if row.verdict is not None)
    assert result.verdict is judged.verdict is Verdict.REFUTED
    assert judged.claim.value == pytest.approx(1.0)
    assert judged.claim.delta == pytest.approx((1 + math.exp(0.5)) * 1e-5)
    assert result.estimate("epsilon_bound.one_run").delta == judged.claim.delta
    assert judged.claim.adjacency == result.estimate("epsilon_bound.one_run").adjacency == "replace-one"
    others = [row for row in result.comparisons if row.estimate != "epsilon_bound.one_run"]
    assert others
    assert all(row.verdict is None and "describes this model" in row.reason for row in others)


@pytest.mark.parametrize(
    ("losses", "claim", "verdict", "power"),
    [
        # No leak and a modest claim; what even a perfect attack could not contradict; what promises nothing once converted.
        ("quiet", StatedClaim(1.0, 1e-5), Verdict.NOT_REFUTED, Status.OK),
        ("leaky", StatedClaim(8.0, 1e-7), Verdict.INCONCLUSIVE, Status.WARN),
        ("leaky", StatedClaim(10.0, 1e-3), Verdict.INCONCLUSIVE, None),
    ],
)
def test_a_claim_is_not_refuted_only_where_it_could_have_been(request, losses, claim, verdict, power):
    """Where the audit had the power and found nothing, a claim is not refuted; else inconclusive, and the check warns."""
    result = auditor.audit(request.getfixturevalue(losses), split=RandomSplit(), claim=claim)
    assert result.verdict is verdict
    assert power in (None, result.check("power").status)


def test_dpsgd_is_judged_by_the_accountants_own_replace_one_epsilon():
    """Perfect separation refutes DP-SGD of replace-one epsilon 4.88, which the converted form (3.6 at 44 delta) hides."""
    losses = Losses(member=np.linspace(0, 1, 5000), nonmember=np.linspace(2, 3, 5000))
    result = auditor.audit(losses, split=RandomSplit(), claim=DPSGD(0.75, 0.01, 1000), delta=1e-5)
    own = next(c for c in result.claims if c.metric == "epsilon" and c.adjacency == "replace-one")
    if own.value is None:  # this dp-accounting has no replace-one: only the conversion is left
        assert "dp-accounting" in own.note
        assert result.verdict is Verdict.INCONCLUSIVE
    else:
        assert own.delta == result.estimate("epsilon_bound.one_run").delta == 1e-5
        assert result.verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (StatedClaim(0.5, 0.0), Verdict.REFUTED),
        (StatedClaim(0.5, 1e-5), Verdict.REFUTED),
        (StatedClaim(20.0, 1e-5), Verdict.INCONCLUSIVE),
        (DPSGD(5.0, 0.01, 100), Verdict.REFUTED),
        (StatedClaim(0.5, 0.0, "replace-one"), Verdict.NOT_EVALUABLE),
    ],
)
@pytest.mark.parametrize("inclusion", [0.5, 0.7])
def test_inclusion_coins_judge_add_remove_at_every_delta(rng, claim, verdict, inclusion):
    """Fair coins, and unequal ones thinned to fair, judge add/remove claims at their delta, and no others."""
    coin = rng.random(4000) < inclusion
    loss = rng.normal(0, 1, 4000) - 3 * coin
    losses = Losses(member=loss[coin], nonmember=loss[~coin])
    found = auditor.audit(losses, split=BernoulliSplit(inclusion), claim=claim, delta=1e-5)
    assert found.verdict is verdict
    thinned = "thinned_to" in found.estimate("epsilon_bound.one_run").details
    assert thinned == (inclusion != 0.5 and found.estimate("epsilon_bound.one_run").delta > 0)


@pytest.mark.parametrize("sizes", [(300, 200), (12, 11)])
@pytest.mark.parametrize("value", [1.0, 0.3])
def test_constant_losses_are_not_an_error(sizes, value):
    """Constant losses audit to zeros, however many there are, with the ties check saying so."""
    losses = Losses(member=np.full(sizes[0], value), nonmember=np.full(sizes[1], value))
    result = auditor.audit(losses, split=RandomSplit())
    for name in NAMES[:5]:
        assert result.estimate(name).value == 0
    assert result.estimate("auc").value == 0.5
    assert "every bound is 0" in result.check("ties").message
    assert result.to_html()


def test_a_score_that_could_find_nothing_refutes_nothing():
    """Constant losses, and groups the wrong way round, leave a claim inconclusive: the audit had no power."""
    constant = Losses(member=np.ones(500), nonmember=np.ones(500))
    swapped = Losses(member=np.linspace(1, 2, 500), nonmember=np.linspace(0, 1, 500))
    for losses, words in ((constant, "equal"), (swapped, "wrong sign")):
        result = auditor.audit(losses, split=RandomSplit(), claim=StatedClaim(1.0, 1e-5))
        assert result.verdict is Verdict.INCONCLUSIVE
        assert words in result.comparisons[0].reason


def test_delta_zero_runs(leaky):
    """At delta 0 only what rests on a normal has no value, and it says why."""
    result = auditor.audit(leaky, delta=0.0, split=RandomSplit(), fpr=(0.1,))
    without = {e.name: e.reason for e in result.estimates if e.value is None}
    assert set(without) == {"epsilon_star.gaussian", "epsilon_bound.gdp", "epsilon_bound.one_run_gdp"}
    assert all(without.values())
    assert result.check("sensitivity").status is Status.UNKNOWN


@pytest.mark.parametrize("claim", [None, StatedClaim(0.5, 1e-5), DPSGD(1.0, 0.01, 100)])
def test_json_round_trips(tmp_path, leaky, claim):
    """Reading a written result and writing it again gives the same text."""
    result = auditor.audit(leaky, split=RandomSplit(), claim=claim, model="m", source="s", command="c")
    read = auditor.read_result(result.to_json(tmp_path / "result.json"))
    text = read.to_json()
    assert text == result.to_json()
    assert read.verdict is result.verdict
    assert set(json.loads(text)) == {
        "schema_version", "provenance", "data", "estimates", "claims", "comparisons", "checks", "slices", "top_records", "policies", "curves",
        "histograms", "verdict",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_result(leaky):
    """Everything but the time is a function of losses, arguments and seed."""
    first, second, other = (
        auditor.audit(leaky, split=RandomSplit(), seed=seed).to_dict() for seed in (3, 3, 4)
    )
    for found in (first, second, other):
        del found["provenance"]
    assert first == second
    assert first != other


def odd_group(rng):
    """A small group of losses of some extreme kind."""
    size, spread = int(rng.choice([2, 3, 20, 100])), 10.0 ** rng.integers(-12, 13)
    middle = rng.choice([0.0, 1.0, 1e4, 1e8, -1e-10])
    return [
        rng.normal(middle, spread, size),
        rng.integers(0, 3, size) + 0.0,
        np.full(size, middle),
        np.append(np.full(size, middle), middle + spread),
        rng.standard_cauchy(size) * spread,
        np.append(rng.normal(middle, spread, size), rng.choice([-1e300, 1e300])),
    ][rng.integers(6)]


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.long) for n in range(5, 60))]
)
def test_odd_losses_are_audited_without_contradiction(seed):
    """Losses of any scale, shape and number give rows that are finite or say why, in order, and below their ceiling."""
    rng = np.random.default_rng(seed)
    losses = Losses(member=odd_group(rng), nonmember=odd_group(rng))
    result = auditor.audit(
        losses,
        disclosure="insiders" if min(losses.n_member, losses.n_nonmember) < 10 else "public",
        delta=[None, 0.0, 1e-300, 1e-5, 0.05, 0.5, 0.99][rng.integers(7)],
        confidence=float(rng.choice([0.01, 0.5, 0.95, 0.999999])),
        split=[auditor.UnknownSplit(), RandomSplit(), BernoulliSplit(0.5)][rng.integers(3)],
        coverage=[auditor.Sample(), Census()][rng.integers(2)],
        claim=[None, StatedClaim(0.5, 1e-5), StatedClaim(3, 0.0), DPSGD(1, 0.01, 10)][rng.integers(4)],
    )
    for row in result.estimates:
        assert row.value is not None or row.reason
        assert row.value is None or (row.lower or 0.0) <= row.value <= (row.upper or np.inf) + 1e-9
        assert row.value is None or 0 <= row.value <= row.details.get("ceiling", np.inf) + 1e-9
    assert result.to_html()


def test_a_census_is_declared(leaky):
    """A census changes the bounds and is written into the data; in its slices the members count as draws all the same."""
    sample, census = auditor.audit(leaky), auditor.audit(leaky, coverage=Census())
    assert census.data["members"] == "census"
    assert census.estimate(NAMES[0]).value > sample.estimate(NAMES[0]).value
    assert census.slices == sample.slices


@pytest.mark.parametrize(
    ("split", "adjacency"), [(RandomSplit(), "replace-one"), (BernoulliSplit(0.5), "add-remove")]
)
def test_the_claimed_curve_agrees_with_the_claimed_advantage(leaky, split, adjacency):
    """The line of a DP-SGD claim is that of the neighbours audited: its largest gap is the exact advantage of those."""
    training = DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=20)
    found = auditor.audit(leaky, claim=training, split=split, delta=1e-5)
    known = claimed_curve(training, adjacency=Adjacency(adjacency))
    if known.curve is None:  # the line of one (epsilon, delta) takes its place, and says so
        drawn = [item for item in found.curves if item.name.startswith("claim")]
        assert [item.name for item in drawn] == ["claim"]
        assert "epsilon" in drawn[0].label
        assert adjacency in drawn[0].label
        pytest.skip(known.note)
    curve = next(item for item in found.curves if item.name == "claimed_training")
    exact = total_variation(training, adjacency=Adjacency(adjacency)).value
    assert max(np.subtract(curve.tpr, curve.fpr)) == pytest.approx(exact, abs=2e-3)
    assert adjacency in curve.label
    stated = auditor.audit(leaky, claim=StatedClaim(1.0, 1e-5), split=split)
    assert "claim" in {item.name for item in stated.curves}
