"""Servers that misbehave while records are scored: nothing is lost, nothing is asked twice, and each fault has its rows."""

import collections
import threading
import time

import numpy as np
import pytest
from collectors.served.scoring import collected

from auditor import InputError
from auditor.collectors.served import Endpoint, MLflow, Template

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


def test_a_good_server_is_asked_once_for_each_record(serve):
    """Sixty requests of ten records hold each record exactly once."""
    server = serve(lambda _method, _path, body: good(body))
    assert_all_right(collected(endpoint(server), **numbered()))
    assert sorted(row for body in server.posts for row in rows_in(body)) == list(range(N))
    assert len(server.posts) == N // 10


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


@pytest.mark.flaky(reruns=2, reruns_delay=2)  # measured beside other work
def test_concurrency_is_worth_five_times_one_at_a_time(serve):
    """Where the server sleeps, sixteen requests at a time take less than a fifth of the time of one at a time."""

    def answer(_method, _path, body):
        time.sleep(0.05)
        return good(body)

    server, seconds = serve(answer), {}
    for concurrency in (1, 16):
        begun = time.perf_counter()
        assert_all_right(collected(endpoint(server, concurrency=concurrency), **numbered()))
        seconds[concurrency] = time.perf_counter() - begun
    assert seconds[1] > 5 * seconds[16]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda p: [*p[:3], float("nan"), *p[4:]],
            r"^member outputs must be numbers, got nan \(first at row 123, ",
        ),
        (lambda p: [*p[:3], None, *p[4:]], r"^member outputs must be numbers, got nan \(first at row 123, "),
        (lambda p: [*p[:3], "NaN", *p[4:]], r"^member outputs must be numbers, got nan \(first at row 123, "),
        (
            lambda p: [*p[:3], float("inf"), *p[4:]],
            r"^member outputs must be probabilities.* got inf \(first at row 123, ",
        ),
        (
            lambda p: p[:-1],
            r"answered with 9 rows instead of 10 for member rows 120 to 129, counting from 0; ",
        ),
        (
            lambda p: [*p, 0.5],
            r"answered with 11 rows instead of 10 for member rows 120 to 129, counting from 0; ",
        ),
        (lambda _: [], r"answered with 0 rows instead of 10 for member rows 120 to 129, "),
        (lambda _: 0.5, r"answered with no rows instead of 10 for member rows 120 to 129, "),
        (
            lambda p: [p[:2], *p[2:]],
            r"answered with what is no table of numbers for member rows 120 to 129, ",
        ),
        (
            lambda p: [[1 - q, q] for q in p],
            r"answered with rows of different lengths for member rows 100 to 199, ",
        ),
        (
            lambda p: [*p[:3], "high", *p[4:]],
            r"answered with text among its numbers for member rows 120 to 129, ",
        ),
    ],
    ids=["NaN", "null", "text NaN", "inf", "too few", "too many", "none", "scalar", "ragged", "wide", "text"],
)
def test_an_answer_that_cannot_be_used_names_the_rows(serve, spoil, sentence):
    """The sentence says which records an answer of the wrong kind was for, among three hundred."""

    def answer(_method, _path, body):
        found = good(body)["predictions"]
        return {"predictions": spoil(found) if rows_in(body)[0] == 120 else found}

    server = serve(answer)
    with pytest.raises(InputError, match=sentence):
        collected(endpoint(server), **numbered())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"predictions": {}}', "answered with the outputs none"),
        (b'{"predictions": [{"a": 1}, {"b": 1}]}', "answered with rows of different outputs"),
        (b'{"predictions": [{"a": [1], "b": [2]}]}', "answered with the outputs 'a', 'b'; name the one"),
        (b'{"scores": [1]}', "answered without predictions"),
        (b"[" * 100_000, "no whole JSON"),
    ],
)
def test_strange_json_is_one_sentence(serve, body, words):
    """Objects without outputs, with different ones, and endless brackets are refused in words."""
    server = serve(lambda *_: (200, {}, body))
    with pytest.raises(InputError, match=words.replace("; name", ".*; name")):
        collected(endpoint(server, retries=0), **numbered(20))


@pytest.mark.parametrize(
    ("predictions", "shown"),
    [(["b", "a"] * 5, "'b', 'a'"), ([0, 2] * 5, "0, 2"), ([[2.0], [1.0]] * 5, "2, 1")],
)
def test_labels_instead_of_probabilities_are_refused_with_the_fix(serve, predictions, shown):
    """Text, and whole numbers that are no probabilities, are named as labels with what the server needs."""
    server = serve(lambda *_: {"predictions": predictions})
    sentence = rf"answered with predicted labels \({shown}\) instead of probabilities .*pyfunc_predict_fn='predict_proba'"
    with pytest.raises(InputError, match=sentence):
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
    features = np.zeros((4, 1))
    losses = collected(
        endpoint(server, labels=list(labels)), members=(features, truth), nonmembers=(features, truth)
    )
    right = [a == b for a, b in zip(predictions, truth, strict=True)]
    assert 0 < sum(right) < 4
    assert (losses.member < 0).tolist() == right
    assert len(set(np.abs(losses.member))) == 1
    assert "weaker 0/1-loss audit" in losses.history[-1]


def test_an_unknown_label_of_the_server_is_refused(serve):
    """A label that is not among those accepted is named."""
    server = serve(lambda *_: {"predictions": ["a", "d"]})
    group = (np.zeros((2, 1)), ["a", "b"])
    with pytest.raises(InputError, match=r"answered with the label 'd', which is not in labels="):
        collected(endpoint(server, labels=["a", "b"]), members=group, nonmembers=group)


def test_a_batch_is_cut_by_bytes(serve):
    """No request is larger than allowed, and each could not have taken one record more."""
    server = serve(lambda *_: {"predictions": [0.5]})
    server.answer = lambda _method, _path, body: {"predictions": [0.5] * len(body["inputs"])}
    texts = ["x" * (17 * row % 400) for row in range(200)]
    groups = {"members": (texts, [1] * 200), "nonmembers": (texts[:2], [1] * 2), "batch_size": 200}
    collected(endpoint(server, max_request_bytes=2000, max_request_records=1000, concurrency=1), **groups)
    sizes = [int(headers["Content-Length"]) for headers in server.headers]
    assert max(sizes) <= 2000
    assert [text for body in server.posts for text in body["inputs"]][:200] == texts
    following = [len(body["inputs"][0]) + 3 for body in server.posts[1:-1]]
    assert all(size + more > 2000 for size, more in zip(sizes, following, strict=False))


def test_a_record_beyond_a_request_is_refused_by_row(serve):
    """A record that no request can hold is named before anything is sent."""
    server = serve(lambda *_: {})
    texts = ["a", "b" * 5000]
    with pytest.raises(
        InputError, match=r"^member X must fit into requests of 2,000 bytes, got 5,0\d\d \(first at row 1,"
    ):
        collected(
            endpoint(server, max_request_bytes=2000), members=(texts, [0, 1]), nonmembers=(texts, [0, 1])
        )
    assert server.seen == []


def test_random_answers_are_averaged_by_choice(serve):
    """With repeats= each record is asked for so often, and its loss is that of the mean."""
    turns = collections.Counter()

    def answer(_method, _path, body):
        first = rows_in(body)[0]
        turns[first] += 1
        return {"predictions": [0.2 if turns[first] % 2 else 0.6] * len(rows_in(body))}

    server = serve(answer)
    losses = collected(endpoint(server), repeats=2, **numbered(40))
    np.testing.assert_allclose(losses.member, np.log(0.6) - np.log(0.4), rtol=1e-6)
    assert set(turns.values()) == {2}


def test_a_failure_in_the_middle_is_the_only_one_told(serve):
    """A server that dies for good is named with the rows it was asked for."""

    def answer(_method, _path, body):
        return good(body) if rows_in(body)[0] < 200 else (500, {}, {"error": "out of memory"})

    server = serve(answer)
    sentence = (
        r"answered 500: 'out of memory' \(2 times\) for member rows 2\d0 to 2\d9, counting from 0; look"
    )
    with pytest.raises(InputError, match=sentence):
        collected(endpoint(server, retries=1), **numbered())


def test_a_checkpoint_is_a_round_of_requests(serve):
    """A batch is what eight requests at once hold, and a hundred records where each holds a single one."""
    from auditor.collectors import Classification
    from auditor.collectors.base import Records
    from auditor.collectors.streaming import predictor

    server = serve(lambda *_: 0.5)
    sample = [Records("member", np.zeros((10, 2)), np.zeros(10))]
    one = predictor(Endpoint(server.url, protocol=Template("{{row}}")), task=Classification(), sample=sample)
    many = predictor(endpoint(server, max_request_records=500), task=Classification(), sample=sample)
    assert (one.records_at_once, many.records_at_once) == (100, 4000)
