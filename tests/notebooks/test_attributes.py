"""The measurements of `notebooks/experiments/attributes.py`: distances against explicit gradients, training against a hand computation.

This is the attribute inference of Cherubin et al. 2024, Sections 5 and 6; its closed forms are held to the truth in
`tests/theory/test_closed_form.py` and `tests/theory/test_attribute_inference.py`.
"""

import numpy as np
import pytest
from experiments import attributes
from experiments.grid import run_all

from auditor import DPSGD
from auditor.theory import attribute_inference

CASE = {**attributes.SMALL, "records": 160, "batch": 16, "scaling": "standard", "epochs": 2}


def explicit(weights, record, label):
    """One record's gradient with all its numbers, by central differences of its loss."""
    sizes, flat = [w.shape for w in weights], np.concatenate([w.ravel() for w in weights])

    def loss(values):
        parts, start = [], 0
        for shape in sizes:
            count = int(np.prod(shape))
            parts.append(values[start : start + count].reshape(shape))
            start += count
        first, bias, second, offset = parts
        odds = float((np.maximum(record @ first + bias, 0) @ second + offset)[0])
        return np.logaddexp(0, odds) - label * odds

    steps = np.eye(flat.size) * 1e-6
    return np.array([(loss(flat + step) - loss(flat - step)) / 2e-6 for step in steps])


@pytest.fixture(scope="module")
def people():
    """The invented people of the small settings."""
    return attributes.people("stand-in", records=160)


def test_completions_are_as_long_and_as_far_apart_as_the_gradients(people):
    """The short gradients have the lengths and distances of the true ones, found by differences of the loss."""
    weights = attributes.initial(people.x.shape[1], hidden=3, seed=1)
    few, ages = slice(0, 3), people.ages[[0, 30, 73]]
    short = attributes.completion_gradients(weights, people.x[few], people.y[few], ages)
    for record, label, found in zip(people.x[few], people.y[few], short, strict=True):
        completed = np.repeat(record[None], 3, axis=0)
        completed[:, attributes.AGE] = ages
        true = np.array([explicit(weights, row, label) for row in completed])
        assert np.linalg.norm(found, axis=1) == pytest.approx(np.linalg.norm(true, axis=1), rel=1e-5)
        for a, b in ((0, 1), (0, 2), (1, 2)):
            assert np.linalg.norm(found[a] - found[b]) == pytest.approx(
                np.linalg.norm(true[a] - true[b]), rel=1e-4, abs=1e-7
            )


def test_the_pytorch_tracker_measures_the_same(people, require_extra):
    """R_t of a batch is the same from `TorchSensitivityTracker`, which takes the gradients of the whole network."""
    require_extra("torch")
    here, there = attributes.measured_twice(people, records=16)
    assert there == pytest.approx(here, rel=1e-10)


def test_a_step_is_dp_sgd(people):
    """Without noise, a step is the learning rate over the batch times the sum of the gradients, each clipped to 1."""
    before = attributes.initial(people.x.shape[1], hidden=2, seed=4)
    drawn = np.zeros(len(people.y), dtype=bool)
    drawn[:5] = True
    run = attributes._Run(people, before, np.random.default_rng(0))
    run.update(drawn, noise=0.0, private=True, learning_rate=0.25)
    total = 0.0
    for record, label in zip(people.x[drawn], people.y[drawn], strict=True):
        gradient = explicit(before, record, label)
        total = total + gradient / max(1.0, np.linalg.norm(gradient))
    moved = np.concatenate([(a - b).ravel() for a, b in zip(before, run.weights, strict=True)])
    assert moved == pytest.approx(0.25 * total, abs=1e-8)


def test_noise_has_the_stated_deviation(people):
    """The noise of a step is normal with the noise multiplier times the clip, on every weight."""
    before = attributes.initial(people.x.shape[1], hidden=64, seed=4)
    run = attributes._Run(people, before, np.random.default_rng(0))
    run.update(np.zeros(len(people.y), dtype=bool), noise=3.5, private=True, learning_rate=1.0)
    moved = np.concatenate([(a - b).ravel() for a, b in zip(before, run.weights, strict=True)])
    # 7,041 draws: the deviation of a sample deviation is 3.5 / sqrt(2 n), here .03; four of them.
    assert moved.std() == pytest.approx(3.5, abs=0.12)


def test_the_order_of_full_and_approximate(tmp_path):
    """In every step full <= approximate <= 2 x full, so the approximate security is the smaller (errata, Section 6.1)."""
    case = {**CASE, "analysis": "every measure"}
    run, again = (run_all(attributes.train, [case], folder=tmp_path, workers=1)[0] for _ in range(2))
    assert run["full"].shape == run["approximate"].shape == (20,)
    assert (run["full"] <= run["approximate"] * (1 + 1e-12)).all()
    assert (run["approximate"] <= 2 * run["full"] * (1 + 1e-12)).all()
    assert (run["extremes"] <= run["full"] * (1 + 1e-12)).all()
    training = DPSGD(case["noise"], 0.1, 20)
    full, approximate = (
        attribute_inference(training, sensitivities=np.minimum(run[name], 2.0))[0].value
        for name in ("full", "approximate")
    )
    assert approximate < full
    assert all(np.array_equal(run[name], again[name]) for name in ("full", "accuracy"))


def test_measuring_changes_nothing_of_the_training():
    """The analyses leave the weights and the random numbers alone, and full equals all pairs."""
    runs = {
        name: attributes.train({**CASE, "analysis": name}, seed=3)
        for name in ("DP only", "full", "all pairs", "approximate", "accountant")
    }
    assert all(np.array_equal(run["accuracy"], runs["DP only"]["accuracy"]) for run in runs.values())
    assert runs["full"]["full"] == pytest.approx(runs["all pairs"]["full"], rel=1e-9)
    assert runs["DP only"]["full"].size == 0
