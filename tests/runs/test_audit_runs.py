"""The audit of many runs: the whole curve judges, and for reading two methods at one threshold chosen elsewhere."""

import json
import math
from pathlib import Path
from statistics import NormalDist

import jsonschema
import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import (
    DPSGD,
    Adjacency,
    FixedSizeSampling,
    FixedThreshold,
    InputError,
    Losses,
    Melded,
    RankGrid,
    Split,
    StatedClaim,
    Status,
    Subject,
    Verdict,
)
from auditor.estimators import clopper_pearson
from auditor.many import whole_curve
from auditor.results import schema
from auditor.verdicts import judge

JUDGING, CERTIFIED, GDP = (f"epsilon_bound.{name}" for name in ("order_statistics", "clopper_pearson", "gdp"))
NORMAL = NormalDist()


def counted(hits, members, alarms, nonmembers):
    """Runs whose score is 0 where they look like runs with the canary, and 1 elsewhere."""
    return Losses(
        member=np.r_[np.zeros(hits), np.ones(members - hits)],
        nonmember=np.r_[np.zeros(alarms), np.ones(nonmembers - alarms)],
    )


def shifted(rng, *, by=3.0, runs=2000):
    """Normal scores, lower with the canary."""
    return Losses(member=rng.normal(-by, 1, runs), nonmember=rng.normal(0, 1, runs))


def audited(losses, **given):
    """An audit at 1e-5."""
    return auditor.audit_runs(losses, **{"delta": 1e-5, **given})


# --- The numbers -----------------------------------------------------------------------------------


def test_the_backpropagation_clipping_audit_is_reproduced():
    """Tramer et al. 2022 by the slides of paper 002: 4922 and 174 of 1e5, 5e-11 per side: 2.795 refutes 0.21."""
    result = audited(
        counted(4922, 100_000, 174, 100_000),
        confidence=1 - 1e-10,
        threshold=FixedThreshold(0.5),
        claim=StatedClaim(0.21, 1e-5),
    )
    row = result.estimate(CERTIFIED)
    assert abs(row.value - 2.795) < 5e-7  # statistics.md, section 7
    assert abs(row.details["fpr_upper"] - 0.00274455) < 5e-9
    assert abs(row.details["tpr_lower"] - 0.04491796) < 5e-9
    assert result.verdict is Verdict.REFUTED
    assert (result.data["true_positives"], result.data["false_positives"]) == (4922, 174)


def test_a_gaussian_curve_has_no_finite_epsilon_at_delta_zero():
    """At delta 0 the Gaussian row has no value, and says why."""
    row = audited(counted(90, 100, 10, 100), delta=0.0, threshold=FixedThreshold(0.5)).estimate(GDP)
    assert row.value is None
    assert "delta 0" in row.reason


def test_the_gaussian_row_by_the_normal_law_of_the_standard_library():
    """The mu is the sum of two normal quantiles of upper limits, and delta(mu, epsilon) is the delta requested."""
    result = audited(
        counted(4922, 100_000, 174, 100_000), confidence=1 - 1e-10, threshold=FixedThreshold(0.5)
    )
    row = result.estimate(GDP)
    mu = row.details["mu"]
    # 1 - 0.0027445454 and 0.9550820422 are the Clopper-Pearson limits of the certified row.
    assert math.isclose(mu, NORMAL.inv_cdf(1 - 0.0027445454) - NORMAL.inv_cdf(0.9550820422), rel_tol=1e-7)
    epsilon = row.value
    delta = NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NORMAL.cdf(-mu / 2 - epsilon / mu)
    assert math.isclose(delta, 1e-5, rel_tol=1e-6)


def test_every_row_says_what_it_is_about(rng):
    """Three rows about the training algorithm, each with delta, adjacency, level, ceiling, counts and assumptions."""
    result = audited(shifted(rng), adjacency="replace-one")
    assert [item.name for item in result.estimates] == [JUDGING, CERTIFIED, GDP]
    assert result.estimate(JUDGING).value > result.estimate(CERTIFIED).value
    for row in result.estimates:
        assert row.subject is Subject.MECHANISM
        assert row.adjacency is Adjacency.REPLACE_ONE
        assert (row.delta, row.confidence, row.upper) == (1e-5, 0.95, None)
        assert 0 < row.value == row.lower <= row.details["ceiling"]
        counts = {"true_positives", "members", "false_positives", "nonmembers", "threshold", "chosen_on"}
        assert {"runs", "unit"} <= row.details.keys() or counts <= row.details.keys()
        assert any("another record in its place" in line for line in row.assumptions)


# --- The threshold ---------------------------------------------------------------------------------


def test_the_threshold_is_chosen_on_runs_that_it_does_not_judge(rng):
    """A split chooses on one half and counts on the other: the counts are those of the other half, at that threshold."""
    losses = shifted(rng, runs=1001)
    result = audited(losses, threshold=Split(0.4, seed=3))
    assert result.data["chosen_on"] == [400, 400]
    assert result.data["judged"] == [601, 601]
    # The same permutation, drawn here: the judged half is what is left.
    order = np.random.default_rng(3).permutation(1001)
    judged = losses.member[order[400:]]
    assert result.data["true_positives"] == int((judged <= result.data["threshold"]).sum())
    # Whatever the judged runs are, the threshold is the same.
    changed = losses.member.copy()
    changed[order[400:]] = 100.0
    moved = audited(Losses(member=changed, nonmember=losses.nonmember), threshold=Split(0.4, seed=3))
    assert moved.data["threshold"] == result.data["threshold"]
    assert moved.data["true_positives"] == 0


def test_runs_given_apart_choose_the_threshold_for_all(rng):
    """With other runs for the choice, every run is judged at their threshold."""
    losses, others = shifted(rng), shifted(rng, runs=300)
    result = audited(losses, threshold_runs=others)
    assert (result.data["judged"], result.data["chosen_on"]) == ([2000, 2000], [300, 300])
    fixed = audited(losses, threshold=FixedThreshold(result.data["threshold"]))
    for name in (CERTIFIED, GDP):
        assert result.estimate(name).value == fixed.estimate(name).value
    assert result.provenance["threshold_runs_sha256"] != result.provenance["input_sha256"]


@pytest.mark.parametrize("way", ["prefix", "whole", "permuted", "one world"])
def test_runs_that_are_judged_cannot_choose(rng, way):
    """The first runs of the judged ones, all of them and more, or in another order: refused, with what to do."""
    more = shifted(rng, runs=400)
    few = Losses(member=more.member[:200], nonmember=more.nonmember[:200])
    losses, others, words = {
        "prefix": (more, few, "400 of their 400"),
        "whole": (few, more, "400 of their 800"),
        "permuted": (few, Losses(member=few.member[::-1], nonmember=few.nonmember[::-1]), "400 of their 400"),
        "one world": (few, Losses(member=few.member, nonmember=rng.normal(size=200)), "200 of their 400"),
    }[way]
    with pytest.raises(
        InputError, match=f"{words} scores are among the judged ones; collect them with another seed"
    ):
        audited(losses, threshold_runs=others)


@pytest.mark.parametrize(
    "score",
    [
        lambda rng, runs: rng.normal(size=runs).round(1),
        lambda rng, runs: rng.poisson(100.0, runs) + 0.0,
        lambda rng, runs: rng.binomial(1, 0.3, runs) + 0.0,
        lambda rng, runs: np.maximum(rng.normal(size=runs), 0.0),
        lambda rng, runs: rng.normal(size=runs).astype(np.float16).astype(float),
    ],
)
def test_scores_that_repeat_by_chance_are_allowed(rng, score):
    """Rounded, counted, decided and clipped scores occur in both collections and twice in one, as chance has it."""
    for runs in (20, 200, 2000):
        losses, others = (Losses(member=score(rng, runs), nonmember=score(rng, runs)) for _ in range(2))
        result = audited(losses, threshold_runs=others, claim=StatedClaim(0.1, 1e-5))
        assert {item.name: item.status for item in result.checks}["repeats"] is Status.OK
        assert result.verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE)


def test_a_grid_of_ranks_has_the_certified_row_alone(rng):
    """The rank grid certifies as it does for a model; the Gaussian row says that it needs one threshold."""
    losses = shifted(rng)
    for rule in (RankGrid(), RankGrid(interval=Melded())):
        result = audited(losses, threshold=rule)
        assert result.estimate(CERTIFIED).value == clopper_pearson(losses, delta=1e-5, rule=rule).value
        assert result.estimate(GDP).value is None
        assert "one threshold" in result.estimate(GDP).reason


# --- The verdict -----------------------------------------------------------------------------------


def test_only_the_row_of_all_thresholds_judges(rng):
    """A conditional row is refused as a judge, however large it is."""
    result = audited(shifted(rng), claim=StatedClaim(0.1, 1e-5))
    assert [item.estimate for item in result.comparisons] == [JUDGING] == [result.data["certified"]]
    with pytest.raises(InputError, match="condition"):
        judge(result.claims[0], result.estimate(GDP))


@pytest.mark.parametrize(
    ("epsilon", "verdict"),
    [(1.0, Verdict.REFUTED), (5.0, Verdict.NOT_REFUTED), (8.0, Verdict.INCONCLUSIVE)],
)
def test_the_verdict_follows_bound_and_ceiling(rng, epsilon, verdict):
    """2,000 runs of each world have a ceiling near 7: claims above it cannot be refuted, claims below may be."""
    result = audited(shifted(rng, by=1.0), claim=StatedClaim(epsilon, 1e-5))
    row, [judged] = result.estimate(JUDGING), result.comparisons
    assert 1 < row.value < 5
    assert 6.5 < row.details["ceiling"] < 7.5
    assert result.verdict is verdict
    assert "records" not in judged.reason
    assert (judged.p_value <= 0.05) == (verdict is Verdict.REFUTED)
    assert (judged.e_value >= 20) == (verdict is Verdict.REFUTED)
    # Bound and verdict agree: what is refuted lies at or below the bound, what is not at or above it.
    assert row.value >= epsilon if verdict is Verdict.REFUTED else row.value <= epsilon
    if verdict is Verdict.INCONCLUSIVE:
        assert "runs could." in judged.reason
        more = shifted(rng, by=100.0, runs=row.details["claimed_curve"]["needed"] // 2)
        assert audited(more, claim=StatedClaim(epsilon, 1e-5)).verdict is Verdict.REFUTED


def test_the_point_that_was_contradicted_is_named(rng):
    """The counts are those of the scores at that rank, and lie above what the curve allows there."""
    losses = shifted(rng, by=2.0, runs=100)
    result = audited(losses, claim=DPSGD(1.0, 1.0, 1))
    point = result.estimate(JUDGING).details["claimed_curve"]["point"]
    ranked, other = (
        (losses.nonmember, losses.member) if point["tail"] == "lower" else (-losses.member, -losses.nonmember)
    )
    threshold = np.sort(ranked)[point["alarms"]]
    assert point["hits"] == int((other < threshold).sum())
    allowed = NORMAL.cdf(NORMAL.inv_cdf(point["rate"]) + 1)  # the claim is the Gaussian mechanism with mu 1
    assert point["allowed"] == pytest.approx(allowed, abs=2e-3)
    assert point["hits"] / point["hits_of"] > point["allowed"]
    assert f"{point['hits']:,} of 100 runs" in result.comparisons[0].reason


def test_runs_in_their_order_refute_at_any_time(rng):
    """The bets refute after some pairs and stay refuted, have no rows of a fixed number, and take the claim of the watch."""
    claim = DPSGD(1.0, 1.0, 1)
    stop = auditor.Sequential(claim=claim)
    result = audited(shifted(rng, by=4.0, runs=200), test=stop)
    assert result.verdict is Verdict.REFUTED
    row = result.estimate("epsilon_bound.sequential")
    assert 1 < row.details["claimed_curve"]["refuted_at_pair"] < 50
    assert 0 < row.value <= row.details["ceiling"]
    for name in (CERTIFIED, GDP):
        assert "fixed before" in result.estimate(name).reason
    right = audited(shifted(rng, by=1.0, runs=200), claim=claim, test=auditor.Sequential())
    assert right.verdict is Verdict.NOT_REFUTED
    few = audited(shifted(rng, by=4.0, runs=4), claim=claim, test=auditor.Sequential())
    assert few.verdict is Verdict.INCONCLUSIVE
    assert "runs could." in few.comparisons[0].reason
    runs = shifted(rng, runs=20)
    for wrong, words in (
        (Losses(member=np.sort(runs.member), nonmember=runs.nonmember), "got sorted scores of the runs with"),
        (
            Losses(member=runs.member, nonmember=-np.sort(runs.nonmember)),
            "got sorted scores of the runs without",
        ),
        (Losses(member=runs.member[:-1], nonmember=runs.nonmember), "19 with the canary and 20 without"),
    ):
        with pytest.raises(InputError, match=words):
            audited(wrong, claim=claim, test=auditor.Sequential())
    with pytest.raises(InputError, match="claim must be that of"):
        audited(shifted(rng, runs=20), claim=StatedClaim(1.0, 1e-5), test=stop)
    with pytest.raises(InputError, match="adjacency must be that of"):
        audited(shifted(rng, runs=20), adjacency="replace-one", test=stop)


def test_scores_that_the_evidence_stopped_are_not_judged_as_a_fixed_number():
    """The result of a collection stopped by its evidence needs test=Sequential(), and is refused without."""

    def train(with_canary, seed):
        return -4.0 * with_canary + float(np.random.default_rng(seed).normal())

    claim = DPSGD(1.0, 1.0, 1)
    scores = auditor.collect_runs(train, runs=1000, workers=1, stop=auditor.Sequential(claim=claim))
    assert scores.n_member < 100
    assert audited(scores, claim=claim, test=auditor.Sequential()).verdict is Verdict.REFUTED
    with pytest.raises(InputError, match="stopped by their evidence"):
        audited(scores, claim=claim)


def test_declared_looks_share_the_error(rng):
    """Five looks at 95% are five at 99%: every row is stated there, and the data say so."""
    losses = shifted(rng, runs=300)
    shared, one = audited(losses, looks=5), audited(losses, confidence=0.99)
    assert shared.data["looks"] == 5
    assert [row.value for row in shared.estimates] == [row.value for row in one.estimates]
    with pytest.raises(InputError, match="looks must be"):
        audited(losses, looks=0)


def test_worlds_with_a_replaced_record_judge_what_the_claim_implies(rng):
    """An add/remove claim of (1, 1e-5) is judged as (2, (1 + e) 1e-5) by runs in which a record was replaced."""
    result = audited(shifted(rng), adjacency=Adjacency.REPLACE_ONE, claim=StatedClaim(1.0, 1e-5))
    judged = result.comparisons[0].claim
    assert judged.value == 2.0
    assert math.isclose(judged.delta, (1 + math.e) * 1e-5, rel_tol=1e-12)
    assert {row.delta for row in result.estimates} == {judged.delta}


@pytest.mark.parametrize(
    "claim",
    [StatedClaim(0.1, 1e-5, "replace-one"), DPSGD(5.0, 0.1, 10, sampling=FixedSizeSampling())],
)
def test_a_claim_on_replaced_records_says_nothing_about_added_ones(rng, claim):
    """Where the worlds differ by an added record and the claim is about replaced ones alone, nothing is refuted."""
    result = audited(shifted(rng), claim=claim)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.comparisons[0].reason.startswith(
        "On the scale that these runs audit, the claim promises nothing"
    )


def test_a_training_claim_is_judged_at_its_accountants_epsilon(rng):
    """One step of noise 1 without sampling is the Gaussian mechanism: 4.377 at 1e-5, which its own runs do not refute."""
    claim = DPSGD(noise_multiplier=1.0, sampling_rate=1.0, steps=1)
    right = audited(shifted(rng, by=1.0, runs=20_000), claim=claim)
    assert abs(right.comparisons[0].claim.value - 4.377178) < 3e-4  # statistics.md, section 7
    assert right.verdict is Verdict.NOT_REFUTED
    # The noise is a quarter of what is claimed.
    wrong = audited(shifted(rng, by=4.0, runs=20_000), claim=claim)
    assert wrong.verdict is Verdict.REFUTED
    replaced = audited(shifted(rng, by=1.0), claim=claim, adjacency="replace-one")
    assert replaced.comparisons[0].claim.delta == replaced.estimate(JUDGING).delta
    assert replaced.verdict is not Verdict.REFUTED


@pytest.mark.parametrize("epsilon", [25.0, 50.0, 700.0])
def test_claims_too_large_to_be_refuted_are_inconclusive(rng, epsilon):
    """A claim that so few runs cannot refute, however large it is, is not judged; the bound stays."""
    result = audited(shifted(rng), claim=StatedClaim(epsilon, 1e-5))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert 0 < result.estimate(JUDGING).value < 20


def test_one_test_raises_no_bound_of_another(monkeypatch):
    """Of more runs than the exact test takes, a refuted claim leaves the bound where its own test has it."""
    monkeypatch.setattr(whole_curve, "_EXACT", 10)
    rng = np.random.default_rng(3)
    losses, claims = shifted(rng, by=1.0, runs=300), np.arange(0.5, 2.0, 0.1)
    alone = audited(losses).estimate(JUDGING).value
    rows = [audited(losses, claim=StatedClaim(float(epsilon), 1e-5)) for epsilon in claims]
    refuted = [row.verdict is Verdict.REFUTED for row in rows]
    assert max(row.estimate(JUDGING).value for row in rows) <= alone
    assert any(refuted)
    assert refuted == sorted(refuted, reverse=True)


def test_scores_the_wrong_way_round_judge_nothing(rng):
    """Swapped worlds, and scores that are all equal, are named; a claim is then not "not refuted" but inconclusive."""
    swapped = Losses(member=rng.normal(3, 1, 500), nonmember=rng.normal(0, 1, 500))
    equal = Losses(member=np.ones(50), nonmember=np.ones(50))
    for losses, name in ((swapped, "direction"), (equal, "ties")):
        result = audited(losses, claim=StatedClaim(1.0, 1e-5))
        assert {item.name for item in result.checks if item.status is Status.WARN} >= {name}
        assert result.verdict is Verdict.INCONCLUSIVE
        assert result.estimate(JUDGING).value == 0


def test_a_training_that_ignores_its_seed_is_noticed():
    """Every run of a world with one and the same score is what a forgotten seed looks like."""
    result = audited(counted(50, 50, 0, 50), threshold=FixedThreshold(0.5), claim=StatedClaim(0.1, 1e-5))
    [check] = [item for item in result.checks if item.name == "repeats"]
    assert check.status is Status.FAIL
    assert result.verdict is Verdict.NOT_EVALUABLE
    # A decision that is right now and then wrong is no constant.
    once = audited(counted(49, 50, 0, 50), threshold=FixedThreshold(0.5), claim=StatedClaim(0.1, 1e-5))
    assert once.verdict is Verdict.REFUTED


@pytest.mark.parametrize(("distinct", "times"), [(50, 20), (25, 20), (500, 2)])
def test_runs_that_are_counted_more_than_once_judge_nothing(rng, distinct, times):
    """Each run listed again and again, without any leak: no claim is refuted, because no bound holds then."""
    for _ in range(5):
        once = Losses(member=rng.normal(size=distinct), nonmember=rng.normal(size=distinct))
        again = Losses(member=np.tile(once.member, times), nonmember=np.tile(once.nonmember, times))
        result = audited(again, claim=StatedClaim(0.1, 1e-5))
        assert result.verdict is Verdict.NOT_EVALUABLE
        assert "counted twice" in result.comparisons[0].reason
        assert audited(once, claim=StatedClaim(0.1, 1e-5)).verdict is not Verdict.NOT_EVALUABLE


def test_one_training_that_diverged_does_not_hide_repeats(rng):
    """A score of 1e12 beside others of about 1 leaves the check as sharp as it was."""
    member = np.append(np.tile(rng.normal(size=50), 20), 1e12)
    result = audited(Losses(member=member, nonmember=rng.normal(size=1000)))
    assert {item.name: item.status for item in result.checks}["repeats"] is Status.FAIL


# --- The result ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"claim": StatedClaim(1.0, 1e-5)},
        {"threshold": RankGrid(), "delta": 0.0},
        {"claim": DPSGD(1.0, 0.1, 10)},
    ],
)
def test_the_json_is_what_its_schema_says(rng, given, tmp_path):
    """Every kind of result validates, holds no score, and is written whole; another kind of result does not validate."""
    losses = shifted(rng, runs=100)
    result = audited(losses, **given)
    raw = json.loads(Path(result.to_json(tmp_path / "runs.json")).read_bytes())
    check = jsonschema.Draft202012Validator(schema("runs"))
    assert list(check.iter_errors(raw)) == []
    assert raw == json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))
    assert list(check.iter_errors({**raw, "kind": "instances"})) != []
    assert list(check.iter_errors({**raw, "checks": None})) != []
    read = auditor.read_result(tmp_path / "runs.json")
    assert isinstance(read, auditor.RunsResult)
    assert read.to_json() == result.to_json()
    audited(shifted(rng, runs=102)).to_json(tmp_path / "others.json")
    with pytest.raises(
        InputError, match="holds the audit of many runs; give the result of one model's audit"
    ):
        auditor.comparison.compare_audits([tmp_path / "runs.json", tmp_path / "others.json"])


# --- Counts in place of scores ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "delta", "confidence"),
    [
        ((4922, 100_000, 174, 100_000), 1e-5, 1 - 1e-10),
        ((90, 100, 10, 100), 0.0, 0.95),
        ((999, 1000, 300, 500), 1e-3, 0.99),
        ((5, 50, 4, 40), 1e-5, 0.95),
        ((0, 20, 20, 20), 0.0, 0.9),
    ],
)
def test_counts_give_the_bound_of_two_clopper_pearson_limits(counts, delta, confidence):
    """Of one threshold fixed in advance: both upper limits at half of the error, by SciPy's beta law, in either direction."""
    hits, members, alarms, others = counts
    side = (1 - confidence) / 2
    fnr = 1.0 if hits == 0 else stats.beta.isf(side, members - hits + 1, hits)
    fpr = 1.0 if alarms == others else stats.beta.isf(side, alarms + 1, others - alarms)
    ratios = ((1 - fnr - delta) / fpr, (1 - fpr - delta) / fnr)
    expected = max([0.0, *(math.log(ratio) for ratio in ratios if ratio > 0)])
    result = auditor.audit_runs(counts=counts, delta=delta, confidence=confidence)
    assert math.isclose(result[CERTIFIED].value, expected, rel_tol=1e-9, abs_tol=1e-12)
    assert result.data["judged"] == [members, others]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"counts": (1, 2, 3)}, r"counts must be four numbers .*, got \(1, 2, 3\)"),
        ({"counts": 4922}, "counts must be four numbers .*, got 4922"),
        ({"counts": (1.5, 9, 1, 9)}, "counts of positives among runs with the canary must be a whole number"),
        ({"losses": Losses(member=[1, 2], nonmember=[1, 2])}, "losses must be left out beside counts"),
        ({"threshold": RankGrid()}, "threshold must be left out beside counts"),
        ({"threshold_runs": Losses(member=[1, 2], nonmember=[1, 2])}, "threshold_runs must be left out"),
        ({"test": auditor.Sequential()}, "test must be left out beside counts"),
    ],
)
def test_counts_take_the_place_of_scores_and_of_all_that_needs_them(given, words):
    """Counts have no order, no other threshold and no scores: what goes with these is refused by its name."""
    with pytest.raises(InputError, match=words):
        auditor.audit_runs(**{"counts": (5, 9, 1, 9), "delta": 1e-5, **given})
