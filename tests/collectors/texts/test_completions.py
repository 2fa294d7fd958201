"""Language models behind a completions endpoint: the same numbers as near, and every fault one sentence."""

import json
import pickle

import numpy as np
import pytest
from collectors.texts import world
from collectors.texts.completions_server import serving

from auditor import InputError
from auditor.collectors.base import Records
from auditor.collectors.texts import (
    CompletionsEndpoint,
    EchoedPrompt,
    LongTexts,
    PromptLogProbs,
    SumTokenLoss,
    collect_texts,
    text_scorer,
)

GROUPS = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}


@pytest.fixture(autouse=True)
def _needs_frameworks(require_extra):
    require_extra("language")
    require_extra("http")


def endpoint(url, **kwargs):
    """The endpoint, asked without long pauses."""
    return CompletionsEndpoint(url, model="tiny", **{"pause": 0.01, "retries": 2, **kwargs})


def many(count):
    """Texts that are all different."""
    return [f"the cat number {place} sat" for place in range(count)]


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("form", [EchoedPrompt(), EchoedPrompt(generated=1), PromptLogProbs()], ids=repr)
def test_far_and_near_agree_to_the_printed_precision(form, bos):
    """The same model behind an address gives the same losses: JSON keeps every digit of a double."""
    with serving(bos=bos) as (url, _):
        far = collect_texts(endpoint(url, form=form), score=SumTokenLoss(), **GROUPS)
    near = collect_texts(world.model(), tokenizer=world.tokenizer(bos=bos), score=SumTokenLoss(), **GROUPS)
    np.testing.assert_allclose(far.member, near.member, rtol=1e-12)
    np.testing.assert_allclose(far.nonmember, near.nonmember, rtol=1e-12)
    assert far.history == ("sum of the token log-losses of tiny (completions endpoint)",)
    assert far.scale is near.scale


def test_every_text_is_asked_for_once_and_in_its_place():
    """Concurrent requests of a few texts each: none is lost, doubled or moved."""
    texts = many(50)
    with serving() as (url, seen):
        scorer = text_scorer(endpoint(url, max_request_records=4, concurrency=5))
        found = scorer.score(Records("member", texts, np.zeros(50)))
    asked = [prompt for _, _, request in seen for prompt in request["prompt"]]
    assert sorted(asked) == sorted(texts)
    assert [len(request["prompt"]) for _, _, request in seen].count(4) == 12
    expected = [
        -world.logs_by_hand(world.model(), world.tokenizer()(text)["input_ids"]).mean() for text in texts
    ]
    np.testing.assert_allclose(found.loss, expected, rtol=1e-12)


def test_the_request_is_openai_s():
    """The body and the path are those of the completions protocol, and a base address is completed."""
    with serving() as (url, seen):
        base = url.removesuffix("/completions")
        text_scorer(endpoint(base)).score(Records("member", world.TEXTS[:2], np.zeros(2)))
    path, headers, request = seen[0]
    assert path == "/v1/completions"
    assert headers["Content-Type"] == "application/json"
    assert request == {
        "model": "tiny",
        "prompt": world.TEXTS[:2],
        "max_tokens": 0,
        "echo": True,
        "logprobs": 1,
    }


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("http://localhost:8000", "/v1/completions"),
        ("http://localhost:8000/v1/", "/v1/completions"),
        ("http://localhost:8000/v1/completions", "/v1/completions"),
        (
            "https://models.example/openai/deployments/tiny/completions?api-version=1",
            "/openai/deployments/tiny/completions",
        ),
    ],
)
def test_an_address_is_completed_only_where_it_is_a_base(given, path):
    """The server alone or its /v1 get the usual path; any other path is taken as it is."""
    assert CompletionsEndpoint(given, model="tiny").path == path


def test_requests_are_split_by_bytes():
    """No request holds more bytes of texts than allowed, but a single longer text is sent alone."""
    texts = ["a b " * 5, "c d " * 5, "e f " * 12, "g h", "i j " * 9]  # 20, 20, 48, 3 and 36 bytes
    with serving() as (url, seen):
        scorer = text_scorer(endpoint(url, max_request_bytes=40, concurrency=1))
        scorer.score(Records("member", texts, np.zeros(5)))
    assert [request["prompt"] for _, _, request in seen] == [texts[:2], texts[2:3], texts[3:]]


# --- Faults ----------------------------------------------------------------------------------------


def test_a_server_that_fails_for_a_while_is_asked_again():
    """Two refusals of three requests: five requests in all, and the same numbers."""
    texts = world.TEXTS[:3]
    with serving(failures=2) as (url, seen):
        found = text_scorer(endpoint(url, max_request_records=1, concurrency=1)).score(
            Records("member", texts, np.zeros(3))
        )
    assert len(seen) == 5
    expected = [
        -world.logs_by_hand(world.model(), world.tokenizer()(text)["input_ids"]).mean() for text in texts
    ]
    np.testing.assert_allclose(found.loss, expected, rtol=1e-12)


def test_a_server_that_stays_down_is_one_sentence_with_the_rows():
    """After the last repetition the sentence names the records."""
    with (
        serving(failures=99) as (url, seen),
        pytest.raises(
            InputError, match=r"answered 503: 'no way' \(3 times\) for member rows 7 to 9, counting from 0"
        ),
    ):
        text_scorer(endpoint(url)).score(Records("member", world.TEXTS[:3], np.zeros(3), first_row=7))
    assert len(seen) == 3


def without_logs(answer):
    """A server that ignores logprobs."""
    for choice in answer["choices"]:
        choice["logprobs"] = None
    return answer


def ignoring_echo(answer):
    """A server that ignores echo and max_tokens, and answers as many tokens as there were by chance."""
    for choice in answer["choices"]:
        choice["text"] = " some other words"
    return answer


def one_choice(answer):
    """A server that answers the first of several prompts."""
    return {**answer, "choices": answer["choices"][:1]}


def not_a_number(answer):
    """A server that writes NaN."""
    answer["choices"][0]["logprobs"]["token_logprobs"][1] = float("nan")
    return answer


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (without_logs, r"member text \(row 0, .*without token_logprobs, so texts are not evaluable"),
        (ignoring_echo, r"ignores echo.*so texts are not evaluable"),
        (one_choice, r"3 prompts at once, which must come back as choices 0 to 2, got 1"),
        (
            not_a_number,
            r"member text \(row 0, counting from 0\) must have token log-probabilities of 0 or less, got nan",
        ),
        (lambda answer: json.dumps(answer).encode()[:-20], r"no whole JSON.*\(3 times\)"),
        (lambda _: {"object": "list"}, r"is this the address of a completions endpoint"),
    ],
    ids=["no logprobs", "echo ignored", "missing choice", "NaN", "truncated", "another endpoint"],
)
def test_a_server_s_fault_is_one_sentence(fault, sentence):
    """What comes back without the prompt's log-probabilities is never scored."""
    with serving(changed=fault) as (url, _), pytest.raises(InputError, match=sentence) as error:
        collect_texts(endpoint(url), **GROUPS)
    assert "\n" not in str(error.value)


def test_credentials_come_from_the_environment_and_stay_out_of_sight(monkeypatch):
    """The token reaches the server, and neither the endpoint nor the losses show it."""
    monkeypatch.setenv("TINY_TOKEN", "s3cret-value")
    with serving() as (url, seen):
        asked = endpoint(url, token_variable="TINY_TOKEN")  # noqa: S106 - the name of a variable
        losses = collect_texts(asked, **GROUPS)
    assert all(headers["Authorization"] == "Bearer s3cret-value" for _, headers, _ in seen)
    assert "s3cret" not in repr(asked) + repr(losses) + repr(pickle.dumps(asked))


def test_a_scorer_travels_to_another_process_without_its_connections():
    """After use it can be pickled, and its copy scores alike."""
    records = Records("member", world.TEXTS, np.zeros(len(world.TEXTS)))
    with serving() as (url, _):
        scorer = text_scorer(endpoint(url))
        first = scorer.score(records)
        again = pickle.loads(pickle.dumps(scorer)).score(records)  # noqa: S301 - our own
    np.testing.assert_array_equal(first.loss, again.loss)


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"url": "http://localhost/v1/chat/completions"}, r"a chat gives no log-probabilities"),
        ({"url": "http://me:pw@localhost/v1"}, r"url must hold no credentials"),
        ({"model": " "}, r"model must be the name of the model on the server"),
        ({"form": "echo"}, r"form must be"),
        ({"max_request_records": 0}, r"max_request_records must be a whole number of 1 or more"),
        ({"max_request_bytes": 0}, r"max_request_bytes must be a whole number of 1 or more"),
    ],
)
def test_an_endpoint_is_valid_once_built(kwargs, sentence):
    """Each wrong choice is one sentence, before anything is asked."""
    with pytest.raises(InputError, match=sentence):
        CompletionsEndpoint(**{"url": "http://localhost:1/v1", "model": "tiny", **kwargs})


@pytest.mark.parametrize(
    "choice",
    [{"tokenizer": world.tokenizer}, {"longest": 10}, {"long_texts": LongTexts.CUT}],
    ids=lambda choice: next(iter(choice)),
)
def test_an_endpoint_has_its_own_tokenizer_and_limit(choice):
    """What belongs to a model in this process is refused, not ignored."""
    with pytest.raises(InputError, match=r"belong to a model in this process"):
        collect_texts(CompletionsEndpoint("http://localhost:1/v1", model="tiny"), **GROUPS, **choice)


def test_an_empty_text_is_found_before_anything_is_asked():
    """The server is not asked for any text of either group."""
    with (
        serving() as (url, seen),
        pytest.raises(InputError, match=r"nonmember text \(row 1, .*got an empty text"),
    ):
        collect_texts(endpoint(url), members=world.TEXTS[:2], nonmembers=["a b", ""])
    assert not seen
