"""The trial on a few records before many are scored."""

import itertools
import threading
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from collectors.common import refused

from auditor.collectors import Classification, MultiLabel, Output, SquaredError
from auditor.collectors.base import BatchLosses, ModelScorer, Records, misordered
from auditor.collectors.served import Endpoint, MLflow
from auditor.collectors.streaming import predictor, preflight
from auditor.core import LossScale

ORDER = "the labels look as if the output columns were in another order of the classes"


def tried(model, linear, *, classes=None, labels=None, repeats=1, task=None, n=60, output=None):
    """Try a model on the first records of the linear model."""
    task = task or Classification()
    records = Records("member", linear.x[:n], np.asarray(linear.y if labels is None else labels)[:n])
    found = predictor(model, task=task, output=output, sample=[records])
    return preflight(ModelScorer(found, task=task, classes=classes, repeats=repeats), [records])


def answering(serve, linear, change=lambda p: p):
    """An MLflow server of the linear model, its probabilities changed."""

    def answer(_method, _path, body):
        return {"predictions": change(linear.probabilities(body["inputs"])).tolist()}

    server = serve(answer)
    return Endpoint(server.url, protocol=MLflow()), server


def test_a_good_model_is_not_complained_of(serve, linear):
    """Ten records, the ten again, one, the ten in another order and the rest were requested, and nothing is warned of."""
    endpoint, server = answering(serve, linear)
    found = tried(replace(endpoint, concurrency=1), linear)
    assert found.deterministic
    assert found.warnings == found.provisional == ()
    assert [len(body["inputs"]) for body in server.posts] == [10, 10, 1, 5, 5, 60]


def test_random_answers_are_named_with_the_remedy(serve, linear):
    """Another answer on repeat is a warning that names repeats, or how many answers are averaged."""
    rng, lock = np.random.default_rng(0), threading.Lock()

    def noisy(p):
        with lock:
            return 0.9 * p + 0.1 * rng.dirichlet(np.ones(3), size=len(p))

    endpoint, _ = answering(serve, linear, noisy)
    found = tried(endpoint, linear)
    assert (found.deterministic, len(found.warnings)) == (False, 1)
    assert "answers differently on repeat" in found.warnings[0]
    assert "average several answers (repeats)" in found.warnings[0]
    assert "the average of 4 answers" in tried(endpoint, linear, repeats=4).warnings[0]


@pytest.mark.parametrize("steady", [True, False])
def test_answers_that_do_not_follow_their_records_are_refused(serve, linear, steady):
    """A server that sorts or shuffles its answers is refused, and believed once it gets one record at a time."""
    rng, lock = np.random.default_rng(0), threading.Lock()

    def moved(p):
        with lock:
            return p[np.argsort(p[:, 0])] if steady else rng.permutation(p)

    endpoint, _ = answering(serve, linear, moved)
    with refused("member answers must follow their records.*one record at a time with max_request_records=1"):
        tried(endpoint, linear)
    assert tried(replace(endpoint, max_request_records=1), linear).warnings == ()


def text_labels(p):
    """The largest class as text."""
    return np.array(["cat", "fox", "owl"])[p.argmax(axis=1)].tolist()


def by_class(p):
    """Scores by class, the largest first."""
    return [
        dict(sorted(zip(("cat", "fox", "owl"), map(float, row), strict=True), key=lambda x: -x[1]))
        for row in p
    ]


def top_one(p):
    """The largest score with its class alone."""
    return [{"label": name, "score": float(row.max())} for name, row in zip(text_labels(p), p, strict=True)]


@pytest.mark.parametrize("form", [text_labels, by_class, top_one])
@pytest.mark.parametrize("steady", [True, False])
def test_answers_of_every_form_must_follow_their_records(serve, linear, form, steady):
    """Labels of text and scores by class are believed in the order of the records, and refused in any other."""
    names = ["cat", "fox", "owl"]

    def answer(_method, _path, body):
        rows = form(linear.probabilities(body["inputs"]))
        return {"predictions": rows if steady else rows[::-1]}

    endpoint = Endpoint(serve(answer).url, protocol=MLflow(), labels=names if form is text_labels else None)
    labels = np.array(names)[linear.y]
    if steady:
        assert tried(endpoint, linear, classes=names, labels=labels).deterministic
    else:
        with refused("member answers must follow their records"):
            tried(endpoint, linear, classes=names, labels=labels)


@pytest.mark.parametrize("labels", [None, ["cat", "fox", "owl"]])
def test_answers_without_numbers_or_known_labels_are_refused_before(serve, linear, labels):
    """A value that is neither a number nor a known label is one sentence before the order of the answers is looked at."""
    server = serve(lambda _method, _path, body: {"predictions": ["yes" for _ in body["inputs"]]})
    endpoint = Endpoint(server.url, protocol=MLflow(), labels=labels)
    with refused("predicted labels|not in labels="):
        tried(endpoint, linear)


def test_labels_at_random_are_not_taken_for_other_records(serve, linear):
    """Of hard labels with random flips the counts may stay by chance, which says nothing of the order."""
    rng, lock = np.random.default_rng(1), threading.Lock()

    def flipped(p):
        with lock:
            return np.eye(2)[rng.integers(0, 2, size=len(p))]

    endpoint, _ = answering(serve, linear, flipped)
    for _ in range(20):
        assert not tried(endpoint, linear, labels=linear.y > 0).deterministic


def test_rounding_is_no_randomness(linear):
    """Float32 probabilities that differ by a rounding from call to call are the same answer."""
    turn = itertools.count()

    def predict(x):
        p = linear.probabilities(x).astype(np.float32)
        return np.nextafter(p, np.float32(next(turn) % 2))

    assert tried(predict, linear).deterministic


def test_an_answer_that_depends_on_the_batch_is_named(linear):
    """A model that normalises over the batch answers differently about a record alone."""
    found = tried(lambda x: linear.probabilities(x - x.mean(axis=0)), linear)
    assert found.deterministic
    assert "about a record alone than among others" in found.warnings[0]


def test_hard_labels_are_named_with_the_fix_of_the_server(serve, linear):
    """One-hot answers are a weaker audit, and the sentence says what MLflow needs."""
    endpoint, _ = answering(serve, linear, lambda p: np.eye(3)[p.argmax(axis=1)])
    found = tried(endpoint, linear)
    assert "weaker 0/1-loss audit" in found.provisional[0]
    assert "pyfunc_predict_fn='predict_proba'" in found.provisional[0]
    assert found.warnings == ()  # the history says it, if it holds of all records
    endpoint, _ = answering(serve, linear, lambda p: p.argmax(axis=1))
    accepted = tried(replace(endpoint, labels=[0, 1, 2]), linear)
    assert accepted.warnings == accepted.provisional == ()


def test_probabilities_that_do_not_sum_to_one_are_refused(serve, linear):
    """Rows that do not sum to one stop everything, with the first of them; those of four digits do so only about."""
    endpoint, _ = answering(serve, linear, lambda p: p * 0.9)
    with refused(r"^member outputs must .* sum to 1 in each row, got 0\.9 \(first at row 0"):
        tried(endpoint, linear)
    found = tried(lambda x: np.round(linear.probabilities(x), 4), linear)
    assert tried(linear.probabilities, linear, n=1).deterministic  # which is enough
    assert "sum to one only within" in found.warnings[0]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
@pytest.mark.parametrize("output", list(Output))
def test_permuted_classes_are_found(linear, order, output):
    """Columns in another order are noticed, and the classes in their true order are not."""
    names = np.array(["cat", "dog", "emu"])

    def predict(x):
        p = linear.probabilities(x)[:, list(order)]
        return p if output is Output.PROBABILITIES else np.log(p) + 3 * (output is Output.LOGITS)

    found = tried(predict, linear, classes=names.tolist(), labels=names[linear.y], output=output)
    assert [ORDER in words for words in found.warnings] == [True]
    again = tried(predict, linear, classes=names[list(order)], labels=names[linear.y], output=output)
    assert again.warnings == ()


def test_a_swapped_probability_of_one_class_is_found(linear):
    """A single column that is the probability of class 0 instead of 1 is noticed."""
    two = linear.probabilities(linear.x)
    y = (two[:, 0] > 0.4).astype(int)

    def predict(x):
        return 1 - 0.98 * (linear.probabilities(x)[:, 0] > 0.4) - 0.01

    assert tried(predict, linear, labels=y).warnings
    assert not tried(lambda x: 1 - predict(x), linear, labels=y).warnings


@pytest.mark.parametrize("width", [2, 3, 10])
def test_calibrated_models_are_never_accused(width):
    """In 2,000 trials with labels drawn from the model's own probabilities, good or poor, no order is doubted."""
    rng = np.random.default_rng(width)
    for _ in range(2000):
        n = int(rng.integers(1, 200))
        p = rng.dirichlet(np.full(width, rng.choice([0.02, 0.3, 1.0, 20.0])), size=n)
        codes = (p.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)
        assert not misordered(p, codes=codes)


def sorted_groups(n=2000):
    """Members and non-members sorted by label: a tenth of each is of class 1, and comes first."""
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [n // 10, n - n // 10])
    return [Records(name, y + rng.normal(size=n), y) for name in ("member", "nonmember")]


def bayes(x):
    """The probabilities of the two classes of `sorted_groups`, by Bayes: most of class 1 looks like class 0."""
    odds = np.exp(x - 0.5) / 9
    return np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)


def test_a_sorted_table_raises_no_false_alarm():
    """Where the first two hundred records are of one rare class a calibrated model is not accused, and a swapped one is."""
    groups = sorted_groups()
    first = groups[0].part(0, 200)
    assert np.log(bayes(first.features)).mean(axis=0) @ [1, -1] > 0.2  # by these it is worse than swapped
    assert not preflight(ModelScorer(predictor(bayes, task=Classification())), groups).warnings
    swapped = ModelScorer(predictor(lambda x: bayes(x)[:, ::-1], task=Classification()))
    assert ORDER in preflight(swapped, groups).warnings[0]


def test_one_class_that_gains_alone_says_nothing():
    """Records of one class, or two that agree on a column that was not seen, say nothing about the order."""
    assert not misordered(np.full((10, 3), [0.3, 0.4, 0.3]), codes=np.zeros(10, dtype=int))
    p = np.full((200, 4), [0.01, 0.01, 0.97, 0.01])
    assert not misordered(p, codes=np.zeros(200, dtype=int))
    assert not misordered(p, codes=np.arange(200) % 2)
    p[1::2] = [0.01, 0.01, 0.01, 0.97]
    assert misordered(p, codes=np.arange(200) % 2)


def test_a_model_that_memorised_its_members_returns_no_labels():
    """Certainty about all members is no label where non-members get probabilities."""
    groups = [Records("member", np.repeat([0.0, 1.0], 50), np.repeat([0, 1], 50))]
    memory = ModelScorer(predictor(lambda x: np.stack([1 - x, x], axis=1), task=Classification()))
    assert preflight(memory, groups).provisional
    groups.append(Records("nonmember", np.tile([0.3, 0.6], 50), np.tile([0, 1], 50)))
    found = preflight(memory, groups)
    assert found.warnings == found.provisional == ()


def test_a_steady_model_is_tried_once():
    """Where the first ten have the same losses among all, neither these again nor one of them alone is scored."""
    sizes = []

    def predict(x, drift=0.0):
        sizes.append(len(x))
        p = x + drift * len(sizes)
        return np.stack([1 - p, p], axis=1)

    x = np.linspace(0.1, 0.4, 1000)
    groups = [Records("member", x, np.zeros(1000)), Records("nonmember", x, np.zeros(1000))]
    assert not preflight(ModelScorer(predictor(predict, task=Classification())), groups).warnings
    assert sizes == [10, 100, 100]
    sizes.clear()
    other = predictor(partial(predict, drift=1e-3), task=Classification())
    assert not preflight(ModelScorer(other), groups).deterministic
    assert sizes == [10, 100, 100, 10, 1]


def test_a_model_that_depends_on_the_batch_is_found_among_few_records():
    """Also where the first group has so few records that they are scored at once."""
    found = predictor(lambda x: np.stack([1 - x / x.max(), x / x.max()], axis=1), task=Classification())
    groups = [
        Records(name, np.linspace(0.2, 0.4, n), np.zeros(n)) for name, n in (("member", 8), ("nonmember", 99))
    ]
    assert "depend on the batch" in preflight(ModelScorer(found), groups).warnings[0]


@pytest.mark.parametrize("batch_size", [None, 1, 7, 64])
def test_no_more_records_than_a_batch_are_asked_for(batch_size):
    """Two hundred records at most, half of each group, in calls that are no larger than the batch size."""
    seen = []

    def predict(x):
        seen.append(x.tolist())
        return np.stack([1 - x, x], axis=1)

    x = np.linspace(0.1, 0.4, 1000)
    groups = [Records("member", x, np.zeros(1000)), Records("nonmember", x + 0.5, np.zeros(1000))]
    preflight(ModelScorer(predictor(predict, task=Classification())), groups, batch_size=batch_size)
    assert max(map(len, seen)) == (batch_size or 100)
    tried = np.unique(np.concatenate(seen))
    assert tried.size == 200
    assert (tried < 0.45).sum() == 100
    assert tried.min() < 0.11
    assert tried.max() > 0.89


def test_a_refused_record_of_a_sample_is_named_by_its_own_row():
    """Of records spread over a group, the sentence names the row of the group."""
    groups = [Records(name, np.arange(1000.0), np.zeros(1000)) for name in ("member", "nonmember")]

    def predict(x):
        return np.where((x < 630)[:, None], 0.5, 0.4) * np.ones((1, 2))

    with refused(r"^member outputs .* got 0\.8 \(first at row 630, counting from 0\)"):
        preflight(ModelScorer(predictor(predict, task=Classification())), groups)


@dataclass
class Coarse:
    """Losses near 3 nats of a model of coarse floats, which every second call rounds up."""

    eps: float
    step: float
    scale: LossScale = LossScale.CROSS_ENTROPY
    records_at_once: int | None = None
    calls: int = 0

    def score(self, records):
        """Return the losses."""
        self.calls += 1
        loss = np.full(len(records), 3.0) + self.step * (self.calls % 2)
        return BatchLosses(loss, np.zeros(len(records), dtype=bool), eps=self.eps)


@pytest.mark.parametrize(
    ("eps", "step", "same"),
    [(2.0**-7, 2.0**-6, True), (2.0**-7, 1.0, False), (2.0**-23, 2.0**-6, False), (2.0**-23, 2.0**-22, True)],
)
def test_a_language_model_may_round_too(eps, step, same):
    """A spacing of bfloat16 near 3, which is 2^-6, is the same answer of such a model, and another one of float32."""
    found = preflight(Coarse(eps, step), [Records("member", ["a text"] * 20, np.zeros(20))])
    assert found.deterministic is same


def test_labels_of_text_need_classes(linear):
    """Where nothing says which column is which class, the names are requested after the first ten records."""
    seen = []

    def predict(x):
        seen.append(len(x))
        return linear.probabilities(x)

    with refused(r"^member label 'cat' .* name the class of each output column with classes= \(--classes\)"):
        tried(predict, linear, labels=["cat"] * 60)
    assert seen == [10]


@pytest.mark.parametrize(
    ("task", "labels", "outputs"),
    [
        (SquaredError(), np.zeros((60, 1)), lambda x: x[:, 0]),
        (MultiLabel(), np.zeros((60, 2), dtype=bool), lambda x: 1 / (1 + np.exp(x[:, :2]))),
    ],
)
def test_other_tasks_are_tried(linear, task, labels, outputs):
    """A regression and several labels have no order to judge and no sum."""
    found = tried(outputs, linear, task=task, labels=labels)
    assert found.deterministic
    assert found.warnings == ()
