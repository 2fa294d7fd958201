"""The tracker without a framework: logistic regression by hand, steps, and what it says."""

import math
import sys

import numpy as np
import pytest

from auditor.core import DPSGD, InputError, MissingExtraError
from auditor.sensitivity import (
    Approximate,
    Columns,
    SensitivityTracker,
    TensorFlowSensitivityTracker,
    TorchSensitivityTracker,
)


def logistic(features, labels, weights, values):
    """Gradients of logistic regression with the first feature set to each value: (sigma(w x) - y) x."""
    completed = np.repeat(features[:, None], len(values), axis=1)
    completed[:, :, 0] = values
    slope = 1 / (1 + np.exp(-completed @ weights)) - labels[:, None]
    return slope[..., None] * completed


def test_logistic_regression_trained_to_the_end(rng):
    """DP-SGD by hand gives one distance for each step, each that of its worst record, and Corollary 10 from them."""
    features = rng.normal(size=(200, 4))
    labels = (features[:, 1] > 0).astype(float)
    values, weights, clip, noise, rate = np.linspace(-2, 2, 9), np.zeros(4), 0.8, 1.5, 0.1
    tracker, expected = SensitivityTracker(clipping_norm=clip), []
    for _ in range(25):
        drawn = rng.random(200) < rate
        batch = logistic(features[drawn], labels[drawn], weights, values)
        tracker.observe(batch)
        tracker.end_step()
        worst = 0.0
        for record in batch:
            short = [g / max(1.0, np.linalg.norm(g) / clip) for g in record]
            worst = max(worst, *(np.linalg.norm(a - b) for a in short for b in short))
        expected.append(worst)
        slope = 1 / (1 + np.exp(-features[drawn] @ weights)) - labels[drawn]
        gradients = slope[:, None] * features[drawn]
        gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True) / clip)
        weights = weights - 0.5 * (gradients.sum(0) + noise * clip * rng.normal(size=4)) / 20
    assert tracker.sensitivities == pytest.approx(expected, rel=1e-12)
    row = tracker.claims(DPSGD(noise, rate, 25, clip))[0]
    assert row.value == pytest.approx(
        1 - math.erf(rate * np.linalg.norm(expected) / (2 * math.sqrt(2) * noise * clip)), rel=1e-12
    )


def test_steps_are_the_largest_of_their_parts():
    """Batches between two updates are one step, an empty one counts as 0, and a step without any is refused."""
    tracker = SensitivityTracker(clipping_norm=1.0)
    for distances in ([0.5, 0.7, 0.1, []], [[]], [0.0]):
        for distance in distances:
            tracker.observe(np.empty((0, 2, 1)) if distance == [] else [[[0.0], [distance]]])
        tracker.end_step()
    assert tracker.sensitivities == pytest.approx([0.7, 0.0, 0.0])
    with pytest.raises(InputError, match="step 4 ended before a batch was observed"):
        tracker.end_step()


def test_claims_say_what_was_assumed():
    """The approximate distance and the measured distances are named in the notes, and nothing is proven."""
    tracker = SensitivityTracker(clipping_norm=1.0, distance=Approximate())
    tracker.observe([[[0.0], [0.5]]])
    tracker.end_step()
    rows = [row for row in tracker.claims(DPSGD(1.0, 0.5, 1)) if row.metric.startswith("attribute")]
    assert len(rows) == 6
    for row in rows:
        assert "upper bounds" in row.note
        assert "do not publish it where membership matters" in row.note
        assert not row.proven
    assert "measured during it" in rows[-1].note


def test_bad_input_is_one_sentence():
    """Shapes, infinite gradients, another number of steps and another clip are each named."""
    tracker = SensitivityTracker(clipping_norm=1.0)
    for gradients, sentence in (
        ([1.0, 2.0], r"2 completions or more of each record, got \(2,\)"),
        (np.empty((1, 2, 0)), r"got \(1, 2, 0\)"),
        (1.0, r"got \(\)"),
        ([[[1.0, 2.0]]], r"2 completions or more of each record, got \(1, 1, 2\)"),
        ([["a"]], "gradients must be numbers"),
        ([[[np.inf], [0.0]]], "gradients must be finite"),
    ):
        with pytest.raises(InputError, match=sentence):
            tracker.observe(gradients)
    tracker.observe([[[0.0], [0.5]]])
    tracker.end_step()
    with pytest.raises(InputError, match="each of the 3 steps, got 1"):
        tracker.claims(DPSGD(1.0, 0.5, 3))
    with pytest.raises(InputError, match="clipping norm that was tracked, 1, got 2"):
        tracker.claims(DPSGD(1.0, 0.5, 1, 2.0))


@pytest.mark.parametrize(
    ("tracker", "module"), [(TorchSensitivityTracker, "torch"), (TensorFlowSensitivityTracker, "tensorflow")]
)
def test_missing_extra_is_one_sentence(monkeypatch, tracker, module):
    """Without the framework the error holds the command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingExtraError, match=rf"needs {module}, .*pip install 'privacy-auditor\[{module}\]'"
    ):
        tracker(None, None, completions=Columns(0, [0, 1]), clipping_norm=1.0)
