"""Language models behind a completions endpoint: the same numbers as near, and every fault one sentence."""

import pickle

import numpy as np
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.completions_server import serving

from auditor.collectors.base import Records
from auditor.collectors.texts import CompletionsEndpoint, LongTexts, collect_texts, text_scorer

GROUPS = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}


@pytest.fixture(autouse=True)
def _needs_frameworks(require_extra):
    require_extra("language")
    require_extra("http")


def endpoint(url, **kwargs):
    """The endpoint, asked without long pauses."""
    return CompletionsEndpoint(url, model="tiny", **{"pause": 0.01, "retries": 2, **kwargs})


def test_every_text_is_asked_for_once_and_in_its_place():
    """Concurrent requests of a few texts each: none is lost, doubled or moved."""
    texts = [f"the cat number {place} sat" for place in range(50)]
    with serving() as (url, server):
        scorer = text_scorer(endpoint(url, max_request_records=4, concurrency=5))
        found = scorer.score(Records("member", texts, np.zeros(50)))
    asked = [prompt for request in server.posts for prompt in request["prompt"]]
    assert sorted(asked) == sorted(texts)
    assert [len(request["prompt"]) for request in server.posts].count(4) == 12
    expected = [-logs.mean() for logs in world.by_hand(texts)]
    np.testing.assert_allclose(found.loss, expected, rtol=1e-12)


def test_the_request_is_openai_s():
    """The body and the path are those of the completions protocol, and a base address is completed."""
    with serving() as (url, server):
        base = url.removesuffix("/completions")
        text_scorer(endpoint(base)).score(Records("member", world.TEXTS[:2], np.zeros(2)))
    assert server.seen[0][:2] == ("POST", "/v1/completions")
    assert server.headers[0]["Content-Type"] == "application/json"
    options = {"max_tokens": 0, "echo": True, "logprobs": 1}
    assert server.posts[0] == {"model": "tiny", "prompt": world.TEXTS[:2], **options}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("http://localhost:8000", "/v1/completions"),
        ("http://localhost:8000/v1/", "/v1/completions"),
        ("http://localhost:8000/v1/completions", "/v1/completions"),
        ("https://models.example/a/completions?api-version=1", "/a/completions"),
    ],
)
def test_an_address_is_completed_only_where_it_is_a_base(given, path):
    """The server alone or its /v1 get the usual path; any other path is taken as it is."""
    assert CompletionsEndpoint(given, model="tiny").path == path


def test_a_scorer_travels_to_another_process_without_its_connections():
    """After use it can be pickled, and its copy scores alike."""
    records = world.records()
    with serving() as (url, _):
        scorer = text_scorer(endpoint(url))
        first = scorer.score(records)
        again = pickle.loads(pickle.dumps(scorer)).score(records)  # noqa: S301 - our own
    np.testing.assert_array_equal(first.loss, again.loss)


@pytest.mark.parametrize(
    "choice",
    [{"tokenizer": world.tokenizer}, {"longest": 10}, {"long_texts": LongTexts.CUT}],
    ids=lambda choice: next(iter(choice)),
)
def test_an_endpoint_has_its_own_tokenizer_and_limit(choice):
    """What belongs to a model in this process is refused, not ignored."""
    with refused(r"belong to a model in this process"):
        collect_texts(CompletionsEndpoint("http://localhost:1/v1", model="tiny"), **GROUPS, **choice)


def test_an_empty_text_is_found_before_anything_is_asked():
    """The server is not asked for any text of either group."""
    with serving() as (url, server), refused(r"nonmember text \(row 1, .*got an empty text"):
        collect_texts(endpoint(url), members=world.TEXTS[:2], nonmembers=["a b", ""])
    assert not server.seen
