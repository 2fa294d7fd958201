"""Servers that misbehave while records are scored: nothing is lost, nothing is requested twice, and each fault has its rows."""

import collections
import threading

import numpy as np
import pytest
from collectors.common import refused
from collectors.served.scoring import collected

from auditor.collectors import Classification
from auditor.collectors.served import Endpoint, MLflow, Template
from auditor.collectors.streaming import predictor

N = 600


def numbered(n=N):
    """Records whose only feature is their number, and the groups of them."""
    x = np.arange(n, dtype=float)[:, None]
    return {
        "members": (x[: n // 2], np.ones(n // 2, dtype=int)),
        "nonmembers": (x[n // 2 :], np.ones(n - n // 2, dtype=int)),
    }


def probability(number):
    """The probability of class 1 of the record of that number."""
    return (number + 1) / (N + 2)


def rows_in(body):
    """The numbers of the records of a request."""
    return [row[0] for row in body["inputs"]]


def good(body):
    """The right answer."""
    return {"predictions": [probability(row) for row in rows_in(body)]}


def endpoint(server, **kwargs):
    """Requests of ten records, with short pauses."""
    options = {"pause": 0.01, "max_request_records": 10, "protocol": MLflow(), "timeout": 5.0, **kwargs}
    return Endpoint(server.url, **options)


def assert_all_right(losses):
    """Every record has its own loss, at its own place."""
    p = probability(np.arange(N))
    expected = np.log1p(-p) - np.log(p)
    np.testing.assert_allclose(np.r_[losses.member, losses.nonmember], expected, rtol=1e-9, atol=1e-12)


def test_only_requests_that_failed_are_sent_again(serve):
    """With a third of the requests failing once, each in its own way, those alone are repeated, and nothing is lost."""
    faults = [
        (500, {}, {"error": "hiccup"}),
        (429, {"Retry-After": "0"}, b""),
        (503, {}, b""),
        (200, {}, b'{"predictions": [0.1, '),
        (200, {"Content-Length": "999"}, b'{"predictions"'),
    ]
    failed, lock = set(), threading.Lock()

    def answer(_method, _path, body):
        first = int(rows_in(body)[0])
        with lock:
            fault = first % 30 == 0 and first not in failed
            failed.add(first)
        return faults[first // 30 % len(faults)] if fault else good(body)

    server = serve(answer)
    assert_all_right(collected(endpoint(server), **numbered()))
    count = collections.Counter(row for body in server.posts for row in rows_in(body))
    assert count == {row: 2 if row // 10 % 3 == 0 else 1 for row in range(N)}


def fourth(value):
    """A function that puts another value into the fourth place of an answer."""
    return lambda p: [*p[:3], value, *p[4:]]


ROW, ROWS = r"\(first at row 123, ", "for member rows 120 to 129"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (fourth(None), f"have outputs in the server.s answer, got none {ROW}"),
        (fourth("NaN"), f"numbers, got nan {ROW}"),
        (fourth(float("inf")), f"probabilities.* got inf {ROW}"),
        (lambda p: p[:-1], f"9 rows instead of 10 {ROWS}, counting from 0; "),
        (lambda p: [*p, 0.5], f"11 rows instead of 10 {ROWS}, "),
        (lambda _: [], f"0 rows instead of 10 {ROWS}, "),
        (lambda _: 0.5, f"no rows instead of 10 {ROWS}, "),
        (lambda p: [p[:2], *p[2:]], f"something other than a table of numbers {ROWS}, "),
        (fourth(10**400), f"something other than a table of numbers {ROWS}, "),
        (fourth("high"), f"something other than a table of numbers {ROWS}, "),
        (lambda p: [[1 - q, q] for q in p], "different lengths for member rows 100 to 199, "),
    ],
)
def test_an_answer_that_cannot_be_used_names_the_rows(serve, spoil, words):
    """The sentence says which records an answer of the wrong kind was for, among three hundred."""

    def answer(_method, _path, body):
        found = good(body)["predictions"]
        return {"predictions": spoil(found) if rows_in(body)[0] == 120 else found}

    with refused(rf"(^member (outputs|records) must|answered with) .*{words}"):
        collected(endpoint(serve(answer)), **numbered())


def named(p):
    """Probabilities by class."""
    return {"0": 1 - p, "1": p}


PAIRS, PROBS = [{"label": "1", "score": 0.5}, {"label": "0", "score": 0.5}], {"label": 1, "probs": [0.5, 0.5]}
ROWS_OF = Template('{"inputs": {{rows}}}', "predictions.*.p")
ONE = Template('{"inputs": [{{row}}]}', "predictions.0")


@pytest.mark.parametrize(
    ("protocol", "good", "bad"),
    [
        (MLflow(), 0.5, None),
        (MLflow(), "a", None),
        (MLflow(), [0.5, 0.5], None),
        (MLflow(), [0.5, 0.5], []),
        (MLflow(), named(0.5), None),
        (MLflow(), PAIRS, None),
        (MLflow(), {"classes": ["0", "1"], "scores": [0.5, 0.5]}, {"classes": ["0", "1"], "scores": None}),
        (MLflow(), PROBS, {**PROBS, "probs": None}),
        (MLflow(), PROBS, {"label": 1}),
        (MLflow(), PROBS, {"error": "out of memory"}),
        (ROWS_OF, {"p": 0.5}, {}),
        (ROWS_OF, {"p": 0.5}, None),
        (ROWS_OF, {"p": 0.5}, {"p": None}),
        (ONE, 0.5, None),
        (ONE, [0.5, 0.5], None),
    ],
)
@pytest.mark.parametrize("row", [0, 3, 9])
def test_a_record_without_an_answer_is_refused_by_its_row(serve, protocol, good, bad, row):
    """An answer that is null, empty or lacks the outputs is never scored, whatever the form of the others."""
    labels = {"labels": ["a", "b"]} if good == "a" else {}
    server = serve(lambda _m, _p, body: {"predictions": [bad if n == row else good for n in rows_in(body)]})
    truth = np.array(list("ab" * 5)) if labels else np.arange(10) % 2
    group = (np.arange(10.0)[:, None], truth)
    with refused(
        rf"^member records must .* got none \(first at row {row}, .*; leave that record out, or look into"
    ):
        collected(endpoint(server, protocol=protocol, **labels), members=group, nonmembers=group)


@pytest.mark.parametrize("bad", [{"0": None, "1": 0.5}, [{"label": "0", "score": None}, PAIRS[0]]])
def test_a_null_among_the_numbers_of_a_record_is_refused_by_its_row(serve, bad):
    """A class whose number is null is not a class that was left out."""
    good = PAIRS if isinstance(bad, list) else named(0.5)
    server = serve(lambda _m, _p, body: {"predictions": [bad if n == 7 else good for n in rows_in(body)]})
    group = (np.arange(10.0)[:, None], np.arange(10) % 2)
    with refused(r"^member outputs must be numbers, got nan \(first at row 7, "):
        collected(endpoint(server), members=group, nonmembers=group)


@pytest.mark.parametrize(
    ("predictions", "shown"),
    [(["b", "a"] * 5, "'b', 'a'"), ([0, 2] * 5, "0, 2"), ([[2.0], [1.0]] * 5, "2, 1")],
)
def test_labels_instead_of_probabilities_are_refused_with_the_fix(serve, predictions, shown):
    """Text, and whole numbers that are no probabilities, are named as labels with what the server needs."""
    server = serve(lambda *_: {"predictions": predictions})
    with refused(rf"predicted labels \({shown}\) instead of probabilities .*pyfunc_predict_fn="):
        collected(endpoint(server), **numbered(20))


@pytest.mark.parametrize(
    ("predictions", "labels", "truth"),
    [
        (["b", "a", "c", "a"], "abc", list("bbca")),
        ([0, 2, 1, 2], (0, 1, 2), [0, 2, 2, 2]),
        ([0, 1, 1, 1], (0, 1), [0, 1, 0, 1]),
    ],
)
def test_labels_that_are_accepted_give_the_weaker_loss(serve, predictions, labels, truth):
    """With labels= a right label is at one end of the scale and a wrong one at the other, and the history says so."""
    server = serve(lambda *_: {"predictions": predictions})
    group = (np.zeros((4, 1)), truth)
    losses = collected(endpoint(server, labels=list(labels)), members=group, nonmembers=group)
    right = [a == b for a, b in zip(predictions, truth, strict=True)]
    assert 0 < sum(right) < 4
    assert (losses.member < 0).tolist() == right
    assert len(set(np.abs(losses.member))) == 1
    assert "weaker 0/1-loss audit" in losses.history[-1]
    server.answer = lambda *_: {"predictions": ["d"] * 4}
    with refused(r"answered with the label 'd', which is not in labels="):
        collected(endpoint(server, labels=list(labels)), members=group, nonmembers=group)


def test_a_batch_is_cut_by_bytes(serve):
    """No request is larger than allowed, and none is needlessly small: halves of what was too large are sent."""
    server = serve(lambda _method, _path, body: {"predictions": [0.5] * len(body["inputs"])})
    texts = ["x" * (17 * row % 400) for row in range(200)]
    groups = {"members": (texts, [1] * 200), "nonmembers": (texts[:2], [1] * 2), "batch_size": 200}
    collected(endpoint(server, max_request_bytes=2000, max_request_records=1000, concurrency=1), **groups)
    sizes = [int(headers["Content-Length"]) for headers in server.headers]
    assert max(sizes) <= 2000
    assert [text for body in server.posts for text in body["inputs"]][:200] == texts
    assert sum(sizes) / len(sizes) > 900
    with refused(r"^member X must fit into requests of 300 bytes, got .*first at row 17,"):
        collected(endpoint(server, max_request_bytes=300), **groups)


@pytest.mark.parametrize(("most", "records"), [(1, 100), (30, 120), (500, 500)])
def test_a_checkpoint_is_of_whole_requests(serve, most, records):
    """A batch is a hundred records, or the next whole requests, whatever the number of requests at once."""
    server = serve(lambda *_: 0.5)
    for concurrency in (1, 64):
        model = endpoint(server, max_request_records=most, concurrency=concurrency)
        assert predictor(model, task=Classification()).records_at_once == records
