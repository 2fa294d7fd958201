"""A scorer calls the model batch by batch, and averages answers on request."""

import numpy as np
import pytest
from collectors.common import refused

from auditor import Classification, MultiLabel
from auditor.collectors import Output, collect
from auditor.collectors.base import ModelScorer, Output as Kind, Predictor, Records, Widened, in_batches

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.25, 0.5, 0.25]])
Y = np.array([0, 1, 2, 1])
LOSS = np.log((1 - P[np.arange(4), Y]) / P[np.arange(4), Y])


def scorer(answers, output, **kwargs):
    """A model that gives the next of its answers at each call, for the records of the call."""
    queue = iter(answers)
    predictor = Predictor(
        predict=lambda records: next(queue)[records.features], source="a list of answers", output=output
    )
    return ModelScorer(predictor, **kwargs)


def records():
    """Four records whose features are their positions."""
    return Records("member", np.arange(4), Y)


def test_the_model_says_how_many_records_it_wants():
    """Where the caller leaves it open, the model's own wish is followed."""
    seen = []

    def predict(batch):
        seen.append((int(batch.numbers[0]), len(batch)))
        return P[batch.features]

    predictor = Predictor(predict=predict, source="", output=Output.PROBABILITIES, records_at_once=3)
    list(in_batches(ModelScorer(predictor), [records()], size=None))
    assert seen == [(0, 3), (3, 1)]


@pytest.mark.parametrize(
    ("output", "forward"),
    [(Kind.PROBABILITIES, np.asarray), (Kind.LOG_PROBABILITIES, np.log), (Kind.LOGITS, np.log)],
)
def test_repeats_average_the_answers(output, forward):
    """Two answers around the truth average to it: probabilities and their logs as probabilities, logits as logits."""
    noise = 0.05 * np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 0, -1]])
    up, down = forward(P + noise), forward(P - noise)
    if output is Kind.LOGITS:
        up, down = np.log(P) + noise, np.log(P) - noise
    (found,) = in_batches(scorer([up, down] * 2, output, repeats=2), [records()], size=3)
    np.testing.assert_allclose(found.loss, LOSS, rtol=1e-12, atol=1e-15)


def test_repeats_turn_random_labels_into_frequencies():
    """Four hard answers of which three name the true class are a probability of 3/4."""
    hard = np.eye(3)[Y]
    wrong = np.roll(hard, 1, axis=1)
    (found,) = in_batches(
        scorer([hard, hard, wrong, hard], Kind.PROBABILITIES, repeats=4), [records()], size=None
    )
    np.testing.assert_allclose(found.loss, np.log(1 / 3), rtol=1e-12)
    assert not found.hard


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeats_of_log_probabilities_keep_what_no_probability_can_hold(dtype):
    """Answers of -1000 and -1001 average to -1000 + log((1 + 1/e) / 2): their exponentials are never formed."""
    answers = [
        np.array([[-1000.0, 0], [0, -2000]], dtype=dtype),
        np.array([[-1001.0, 0], [0, -np.inf]], dtype=dtype),
    ]
    batch = Records("member", np.arange(2), np.array([0, 0]))
    found = scorer(answers, Kind.LOG_PROBABILITIES, repeats=2).score(batch)
    want = [1000 - np.log((1 + np.exp(-1)) / 2), -2000 - np.log(2)]
    np.testing.assert_allclose(found.loss, want, rtol=2 * np.finfo(dtype).eps)
    assert not found.saturated.any()
    assert found.eps == np.finfo(dtype).eps


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("output", list(Kind))
def test_numbers_of_a_type_that_numpy_does_not_have_keep_its_resolution(repeats, output):
    """A bfloat16 number has eight bits in any type that it comes in, in parts, batches and averages."""
    values = {Kind.PROBABILITIES: P, Kind.LOG_PROBABILITIES: np.log(P), Kind.LOGITS: np.log(P)}[output]
    answer = Widened(values.astype(np.float32), of="bfloat16")
    (found,) = in_batches(scorer([answer] * 12, output, repeats=repeats), [records()], size=1)
    assert found.eps == 2.0**-7
    assert type(found.loss) is np.ndarray
    several = Records("member", np.arange(4), np.eye(3, dtype=bool)[Y])
    assert scorer([answer] * 3, output, repeats=repeats, task=MultiLabel()).score(several).eps == 2.0**-7


def test_a_scorer_refuses_labels_before_it_asks():
    """An unknown label is found without a call of the model, with its row in the table."""
    batch = Records("file 'x.csv'", np.arange(2), np.array(["a", "z"]), first_row=40)
    with refused(r"file 'x\.csv' label 'z' \(first at row 41, counting from 0; at least 1 such"):
        scorer([], Kind.PROBABILITIES, task=Classification(), classes=["a", "b"]).check(batch)


def test_collect_averages_a_callable():
    """`collect` hands the repeats to the model: each batch is scored that often."""
    calls = []

    def noisy(x):
        calls.append(len(x))
        return np.full(len(x), 0.5 + 0.1 * (-1) ** len(calls))

    x = np.zeros((3, 1))
    with pytest.warns(UserWarning, match="answers differently on repeat"):
        losses = collect(noisy, members=(x, [0, 1, 1]), nonmembers=(x, [0, 1, 1]), repeats=2)
    np.testing.assert_allclose(losses.member, 0, atol=1e-12)
    assert "averaged over 2 answers" in losses.history[0]
