"""Step audits: geometry of the canaries, the sampler, watched functions, the exact check, the document, and bad input."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor.core.errors import InputError
from auditor.training import StepAudit, check_step, step
from auditor.training.blocks import Blocks
from auditor.training.sampler import SamplerBets

SHAPES = {"weights": (30, 40), "bias": (10,), "head": (40, 5)}
SIZE = 1200 + 10 + 200
NORMS = {"weights": 1.0, "bias": 0.5, "head": 2.0}
PARTS = {"weights": slice(0, 1200), "bias": slice(1200, 1210), "head": slice(1210, 1410)}


def clipped(rows, norm=1.0):
    """Rows clipped to a norm, or each tensor to its own."""
    if isinstance(norm, float):
        return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True) / norm)
    return np.concatenate([clipped(rows[:, PARTS[name]], limit) for name, limit in norm.items()], axis=1)


def train(watched, steps=100, *, records=12, seed=0):
    """Steps with a batch of large gradients that have a common direction, until the claim is refuted."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.05, SIZE)
    for _ in range(steps):
        watched(rng.normal(0, 0.05, (records, SIZE)) + common)
        if watched.refuted:
            break
    return watched


def noised(sigma, *, seed=1, norm=1.0, clip=clipped, add=None):
    """A step with noise of sigma times the norm of all limits."""
    rng = np.random.default_rng(seed)
    whole = norm if isinstance(norm, float) else math.hypot(*norm.values())

    def function(rows):
        noise = rng.normal(0, sigma * whole, SIZE)
        return clip(rows, norm).sum(axis=0) + (noise if add is None else add(noise))

    return function


def no_bias(noise):
    """Noise that leaves the bias out."""
    return np.where((np.arange(SIZE) >= 1200) & (np.arange(SIZE) < 1210), 0.0, noise)


# --- The canaries ---


@pytest.mark.parametrize("norm", [1.5, NORMS])
def test_canaries_are_orthogonal_and_score_one(norm):
    """A clipped canary scores 1 and all others 0; noise as claimed has the claimed standard deviation in every score."""
    rng = np.random.default_rng(0)
    blocks = Blocks.of(SHAPES, canaries=8, by_tensor=not isinstance(norm, float), rng=rng)
    limits = blocks.limits(norm)
    parts = blocks.rows(np.arange(blocks.canaries), limits, scale=10.0).values()
    rows = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1).astype(np.float64)
    scores = np.array([blocks.scores(row, limits) for row in clipped(rows, norm)])
    np.testing.assert_allclose(scores, np.eye(blocks.canaries), atol=1e-6)
    whole = norm if isinstance(norm, float) else math.hypot(*norm.values())
    deviation = np.sqrt(
        [np.sum(blocks.readers(limits)[blocks.owner == i] ** 2) for i in range(blocks.canaries)]
    )
    np.testing.assert_allclose(deviation * whole * blocks.shares(limits), 1, rtol=1e-5)
    assert all(len(tensor) >= 1 for tensor in blocks.tensors)


def test_fewer_parameters_than_canaries_and_more_tensors():
    """Fewer canaries are taken, or one for each tensor, and the audit says so."""
    for shapes, canaries, word in (
        ({"w": (5,)}, 64, "5 canaries in place of 64"),
        (SHAPES, 2, "3 canaries in place of 2"),
    ):
        audit = StepAudit(1.0, canaries=canaries, seed=0)
        audit.insert(shapes)
        assert audit.notes[0].startswith(word)


# --- Watched functions, correct and with planted bugs ---


@pytest.mark.parametrize("norm", [1.0, NORMS])
def test_a_correct_step_is_not_refuted(norm):
    """With one clipping norm or one for each tensor; the measured noise and contribution are as claimed."""
    watched = train(step(noised(1.3, norm=norm), SHAPES, claim=1.3, clipping_norm=norm, seed=2), 200)
    assert watched.steps == 200
    assert not watched.refuted
    tensors = watched.result().data["tensors"]
    np.testing.assert_allclose(tensors["measured"], 1, atol=0.12)
    assert watched.audit.nuisance < 0.2


BUGS = {
    "noise x0.5": (noised(0.5), 100),
    "noise x0.8": (noised(0.8), 250),
    "noise scaled by half of the clipping norm": (noised(1.0, norm=2.0, add=lambda noise: noise / 4), 100),
    "a bias without noise": (noised(1.0, add=no_bias), 300),
    "clipping off": (noised(1.0, clip=lambda rows, _: rows), 50),
    "noise of one micro-batch in two": (noised(math.sqrt(0.5)), 300),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug):
    """Within the steps that it may take; a tensor without noise is named."""
    function, within = BUGS[bug]
    watched = train(step(function, SHAPES, claim=1.0, seed=3), within)
    assert watched.refuted
    reason = watched.result().comparisons[0].reason
    assert ("In bias alone" in reason) is (bug == "a bias without noise")


def test_noise_that_is_reused_is_found():
    """The same noise in every step, which has the claimed size."""
    fixed = np.random.default_rng(5).normal(0, 1, SIZE)
    watched = train(step(lambda rows: clipped(rows).sum(axis=0) + fixed, SHAPES, claim=1.0, seed=4), 300)
    assert watched.refuted


def test_noise_by_step():
    """A claim with a noise multiplier for each step is judged by that of each; more steps than claimed are refused."""
    rng, sigmas = np.random.default_rng(6), [0.5, 2.0] * 30
    taken = iter(sigmas)
    watched = step(
        lambda rows: clipped(rows).sum(axis=0) + rng.normal(0, next(taken), SIZE),
        SHAPES,
        claim=auditor.DPSGD(sigmas, 0.1),
        seed=5,
    )
    assert not train(watched, 60).refuted
    taken = iter([1.0])
    with pytest.raises(InputError, match="claim has 60 steps, and the training takes more"):
        watched(np.zeros((3, SIZE)))


def test_detached_functions_are_as_before():
    """After detach the function gets the batch alone, and the evidence stays."""
    rows = []
    watched = step(lambda batch: rows.append(len(batch)) or batch.sum(axis=0), SHAPES, claim=1.0, seed=6)
    watched(np.zeros((3, SIZE)))
    watched.detach()
    watched.detach()
    watched(np.zeros((3, SIZE)))
    assert rows[0] > rows[1] == 3
    assert watched.steps == 1


def test_scores_without_a_centre_are_predicted():
    """Where the batch's gradients are not known, a steady batch is predicted from the past, and less noise still found."""
    rng, audit = np.random.default_rng(7), StepAudit(1.0, seed=8)
    steady = rng.normal(0, 3.0, SIZE)
    for _ in range(250):
        rows = np.concatenate([part.reshape(len(part), -1) for part in audit.insert(SHAPES).values()], axis=1)
        total = steady + clipped(rows).sum(axis=0) + rng.normal(0, 0.7, SIZE)
        audit.observe({name: total[part].reshape(SHAPES[name]) for name, part in PARTS.items()})
    assert audit.refuted


# --- The exact check of one step ---


def test_the_exact_check():
    """One step, without statistics: clipping passes; a tensor that is not clipped is named; by-tensor norms too."""
    assert check_step(lambda rows: clipped(rows).sum(axis=0), SHAPES).passed
    assert check_step(lambda rows: clipped(rows, NORMS).sum(axis=0), SHAPES, clipping_norm=NORMS).passed

    def without_bias(rows):
        low = np.array(rows)
        low[:, 1200:1210] = 0
        result = clipped(low)
        result[:, 1200:1210] = rows[:, 1200:1210]
        return result.sum(axis=0)

    found = check_step(without_bias, SHAPES)
    assert not found.passed
    assert found.message.startswith("Without clipping enough in bias:")
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state

    def reset():
        rng.bit_generator.state = state

    function = noised(1.0)
    with pytest.raises(InputError, match="must return the same for the same batch"):
        check_step(function, SHAPES)
    assert check_step(
        lambda rows: clipped(rows).sum(axis=0) + rng.normal(0, 1, SIZE), SHAPES, reset=reset
    ).passed


# --- The sampler ---


def test_poisson_sampling_is_not_refuted():
    """At its level of .01, by sizes and records together."""
    rng, refuted = np.random.default_rng(9), 0
    for _ in range(200):
        bets = SamplerBets(records=800, rate=0.03)
        for _ in range(40):
            drawn = np.flatnonzero(rng.random(800) < 0.03)
            bets.add(drawn.size, drawn)
        refuted += bets.most >= math.log(100)
    assert refuted <= 0.01 * 200 + 3 * math.sqrt(0.01 * 200)


@pytest.mark.parametrize("with_records", [False, True])
def test_shuffled_batches_are_found_within_an_epoch(with_records):
    """By their constant size, and by records that do not come again."""
    order, bets = np.random.default_rng(10).permutation(3000), SamplerBets(records=3000, rate=0.02)
    for start in range(0, 3000, 60):
        batch = order[start : start + 60]
        bets.add(60, batch if with_records else None)
    assert bets.most >= math.log(100)


def test_a_higher_rate_is_found_and_a_lower_one_is_not():
    """Batches of a higher rate, lost empty ones, and records drawn twice refute the claim; fewer records are as private or more."""
    rng = np.random.default_rng(11)
    for rate, found in ((0.025, True), (0.02, False), (0.012, False), (0.004, False)):
        bets = SamplerBets(records=3000, rate=0.02)
        for _ in range(200):
            drawn = np.flatnonzero(rng.random(3000) < rate)
            bets.add(drawn.size, drawn)
        assert (bets.most >= math.log(100)) is found, rate
    bets = SamplerBets(records=100, rate=0.01)
    for size in rng.binomial(100, 0.01, 400):
        if size:
            bets.add(int(size))
    assert bets.most >= math.log(100)
    for records, rate, size, listed in ((100, 0.1, 3, [1, 1, 2]), (100, 1.0, 50, None)):
        bets = SamplerBets(records=records, rate=rate)
        for _ in range(10):
            bets.add(size, listed)
        assert bets.most >= math.log(100)
    bets = SamplerBets(records=100, rate=1.0)
    for _ in range(3):
        bets.add(100, np.arange(100))
    assert bets.most == 0


def test_the_sampler_has_its_own_share_of_the_error():
    """A fifth, declared; without records the steps have all of it."""
    claim = auditor.DPSGD(1.0, 0.02, 100)
    assert StepAudit(claim, records=3000).shares == pytest.approx((0.04, 0.01))
    assert StepAudit(claim).shares == pytest.approx((0.05, 0.0))
    watched = step(noised(1.0), SHAPES, claim=claim, seed=0)
    watched.audit.sampler = SamplerBets(records=3000, rate=0.02)
    for _ in range(20):
        watched.audit.observe_batch(60)
    train(watched, 5)
    assert watched.refuted
    assert not watched.audit.noise_refuted
    result = watched.result()
    assert result.comparisons[0].claim.metric == "sampling_rate"
    assert result.comparisons[0].e_value > 100
    assert "not Poisson samples" in str(result)


# --- What a claim means where it changes by step ---


def test_clipping_norms_may_change_by_step():
    """Each canary is judged by its share of the clipping norm of the step: a correct step is not refuted."""
    for seed in range(5):
        rng, audit = np.random.default_rng(seed), StepAudit(1.0, canaries=16, seed=seed)
        for place in range(100):
            norm = (
                {"weights": 0.3, "bias": 0.2, "head": 1.0}
                if place < 1
                else {"weights": 1.0, "bias": 1.0, "head": 0.3}
            )
            rows = audit.insert(SHAPES, clipping_norm=norm)
            flat = np.concatenate([part.reshape(len(part), -1) for part in rows.values()], axis=1)
            total = clipped(flat, norm).sum(axis=0) + rng.normal(0, math.hypot(*norm.values()), SIZE)
            audit.observe({name: total[part].reshape(SHAPES[name]) for name, part in PARTS.items()})
        assert not audit.refuted


def test_the_mu_of_a_schedule_is_that_of_its_observed_steps():
    """Of noise 1.2 where 2 is claimed: no step has a mu above 1/1.2; the noise that is claimed for later steps plays no part."""
    claim = auditor.DPSGD([2.0] * 300 + [0.5] * 10, 0.1)
    result = train(step(noised(1.2), SHAPES, claim=claim, seed=1), 300).result()
    assert result.verdict == "refuted"
    assert result["step_mu"].value <= 1 / 1.2
    assert result.comparisons[0].claim.value is None


def test_canaries_that_do_not_reach_the_sum_judge_nothing():
    """A mean in place of a sum: the verdict is inconclusive, and the exact check does not pass either."""
    rng = np.random.default_rng(0)
    watched = step(
        lambda rows: clipped(rows).mean(axis=0) + rng.normal(0, 1, SIZE), SHAPES, claim=1.0, seed=1
    )
    result = train(watched, 30).result()
    assert result.verdict == "inconclusive"
    assert "may be divided" in result.comparisons[0].reason
    assert "inconclusive" in str(result).lower()
    assert "Not refuted" not in str(result)
    found = check_step(lambda rows: clipped(rows).mean(axis=0), SHAPES)
    assert not found.passed
    assert "is it divided?" in found.message


def test_a_step_that_fails_is_forgotten():
    """An exception in the function leaves a watch that can go on."""
    fails = iter([True, False])

    def function(rows):
        if next(fails):
            raise MemoryError
        return clipped(rows).sum(axis=0)

    watched = step(function, SHAPES, claim=1.0, seed=0)
    with pytest.raises(MemoryError):
        watched(np.zeros((3, SIZE)))
    watched(np.zeros((3, SIZE)))
    assert watched.steps == 1


# --- The document ---


@pytest.fixture(scope="module")
def leaking():
    """The result of a step whose bias has no noise."""
    claim = auditor.DPSGD(1.0, 0.02, 500)
    return train(step(noised(1.0, add=no_bias), SHAPES, claim=claim, seed=3), 300).result()


def test_the_result_is_read_again_and_judged(leaking, tmp_path):
    """JSON and back; gates and policies; every output says white-box, and that nothing is acquitted."""
    result = auditor.read_result(leaking.to_json(tmp_path / "r.json") and tmp_path / "r.json")
    assert result.to_json() == leaking.to_json()
    assert result.verdict == "refuted"
    assert str(result.decision) == "refuse"
    for text in (result.to_html(), result.to_markdown(), str(result)):
        words = re.sub(r"<[^>]+>|\s+", " ", text).lower()
        assert "white-box" in words
        assert "bias" in words
        assert "claim is refuted" in words
    with pytest.raises(AssertionError, match="noise_ratio is 0"):
        auditor.assert_gates(result, ["noise_ratio < 1"])
    assert (
        result.estimate("epsilon_implied").value
        > auditor.theory.epsilon(auditor.DPSGD(1.0, 0.02, 500), delta=1e-5).value
    )


@pytest.mark.parametrize("wrong", [None, "text", -1, [], {}])
def test_a_file_with_wrong_values_has_every_output(leaking, tmp_path, wrong):
    """Each value of the data in turn is missing or of another kind: page, terminal and Markdown are still made."""
    raw = json.loads(leaking.to_json())
    for name in raw["data"]:
        changed = {**raw, "data": {**raw["data"], name: wrong}, "provenance": {}}
        (tmp_path / "r.json").write_text(json.dumps(changed), encoding="utf-8")
        result = auditor.read_result(tmp_path / "r.json")
        assert "Training" in result.to_html() + result.to_markdown() + str(result)
        if wrong is None:  # as it would be read, with its hash
            unread = replace(leaking, data={**leaking.data, name: None})
            assert "Training" in unread.to_html() + unread.to_markdown() + str(unread)
    for name in ("comparisons", "estimates", "claims"):
        changed = {**raw, name: [], "provenance": {}, **({"verdict": None} if name == "comparisons" else {})}
        (tmp_path / "r.json").write_text(json.dumps(changed), encoding="utf-8")
        assert "Training" in auditor.read_result(tmp_path / "r.json").to_html()


def test_what_is_not_refuted_is_not_acquitted():
    """The verdict says that this is no proof; a policy on the certified noise passes or not."""
    result = train(step(noised(1.0), SHAPES, claim=1.0, seed=2), 300).result()
    assert result.verdict == "not_refuted"
    assert "not proof" in str(result)
    bound = result["noise_ratio"].upper
    assert 1 <= bound < 1.3
    assert str(result.with_policy("claim not refuted").decision) == "release"


# --- Bad input ---


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: StepAudit(0.0), "claim must be above 0"),
        (lambda: StepAudit(1.0, canaries=0), "canaries must be"),
        (lambda: StepAudit(1.0, scale=1.0), "scale must be above 1"),
        (lambda: StepAudit(1.0, records=10), "records must be left out unless"),
        (lambda: StepAudit(1.0).result(), "result needs 1 observed step or more"),
        (lambda: StepAudit(1.0).observe({}), "insert must be called first"),
        (lambda: StepAudit(1.0).observe_scores(np.zeros(3)), "observe must follow insert"),
        (lambda: StepAudit(1.0).insert({}), "shapes must name parameter tensors"),
        (lambda: StepAudit(1.0).insert(SHAPES, clipping_norm=0.0), "clipping_norm must be above 0"),
        (lambda: StepAudit(1.0).insert(SHAPES, clipping_norm={"weights": 1.0}), "one number for each tensor"),
        (lambda: step(3, SHAPES, claim=1.0), "function must be a function"),
        (
            lambda: step(lambda rows: rows.sum(axis=0), SHAPES, claim=1.0)(np.zeros((2, 3))),
            r"shape \(n, 1,410\)",
        ),
        (
            lambda: check_step(lambda rows: rows.sum(axis=0), SHAPES, gradients=np.zeros((2, 3))),
            r"shape \(n, 1,410\)",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    """Which argument, what it must be, and what was got."""
    with pytest.raises(InputError, match=words):
        call()


def test_steps_are_observed_once_each():
    """Twice, not at all, of another model, or not finite."""
    audit = StepAudit(1.0, seed=0)
    audit.insert(SHAPES)
    with pytest.raises(InputError, match="step 1 must be observed before the next one"):
        audit.insert(SHAPES)
    for scores, centre in ((np.nan, 0.0), (0.0, np.nan)):
        with pytest.raises(InputError, match="gradients must be finite"):
            audit.observe_scores(*(np.full(audit.blocks.canaries, each) for each in (scores, centre)))
    audit.observe({name: np.zeros(shape) for name, shape in SHAPES.items()})
    with pytest.raises(InputError, match="observe must follow insert"):
        audit.observe({name: np.zeros(shape) for name, shape in SHAPES.items()})
    with pytest.raises(InputError, match="the model must keep its trained parameters"):
        audit.insert({"other": (3,)})
