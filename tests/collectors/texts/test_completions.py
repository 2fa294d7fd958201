"""Language models behind a completions endpoint: the same numbers as near, and every fault one sentence."""

import pickle

import numpy as np
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.completions_server import serving, unlisted

from auditor import RecordTable, Summary, collect_to, read_losses
from auditor.collectors import collect_texts
from auditor.collectors.base import Records
from auditor.collectors.streaming.trial import preflight
from auditor.collectors.tables.opening import open_source
from auditor.collectors.texts import (
    CompletionsEndpoint,
    EchoedPrompt,
    LongTexts,
    MeanTokenLoss,
    MinK,
    PromptLogProbs,
    SumTokenLoss,
    ZlibRatio,
    text_scorer,
)
from auditor.curves.transforms import log_odds, published

NOT_EVALUABLE = r"texts are not evaluable at this endpoint"
GROUPS = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}


@pytest.fixture(autouse=True)
def _needs_frameworks(require_extra):
    require_extra("language")
    require_extra("http")


def endpoint(url, **kwargs):
    """The endpoint, queried without long pauses."""
    return CompletionsEndpoint(url, model="tiny", **{"pause": 0.01, "retries": 2, **kwargs})


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
    """Options of a model in this process are refused, not ignored."""
    with refused(r"belong to a model in this process"):
        collect_texts(CompletionsEndpoint("http://localhost:1/v1", model="tiny"), **GROUPS, **choice)


def test_an_empty_text_is_found_before_anything_is_asked():
    """The server gets no request for a text of either group."""
    with serving() as (url, server), refused(r"nonmember text \(row 1, .*got an empty text"):
        collect_texts(endpoint(url), members=world.TEXTS[:2], nonmembers=["a b", ""])
    assert not server.seen


FORMS = pytest.mark.parametrize(
    "form", [EchoedPrompt(), EchoedPrompt(generated=1), PromptLogProbs()], ids=repr
)


def shifted(answer):
    """The answer of a server that gives each token the value of the next one, and the last any."""
    for choice in answer["choices"]:
        if choice.get("prompt_logprobs"):
            values = [next(iter(entry.values())) for entry in choice["prompt_logprobs"][1:]]
            logs = [value["logprob"] for value in values]
            for value, log in zip(values, [*logs[1:], -4.0], strict=True):
                value["logprob"] = log
        elif choice["logprobs"] and choice["logprobs"]["token_logprobs"][0] is None:
            logs = choice["logprobs"]["token_logprobs"][1:]
            choice["logprobs"]["token_logprobs"] = [None, *logs[1:], -4.0]
    return answer


@FORMS
def test_a_faithful_server_is_believed_after_a_trial(form):
    """The generated tokens have in the prompt what they have when they are generated: nothing is noticed."""
    with serving() as (url, server):
        losses = collect_texts(endpoint(url, form=form), **GROUPS)
    assert "does not say enough to check" not in " ".join(losses.history)
    greedy = [request for request in server.posts if request.get("temperature") == 0]
    assert [request["prompt"] for request in greedy] == [
        ["the cat sat on the", "hello,", world.TEXTS[2][:-4]]
    ]


@FORMS
def test_values_of_other_tokens_are_refused(form):
    """Log-probabilities that are shifted by one token contradict what the server generates."""
    words = rf"member text \(row 1.*these are values of other tokens.*so {NOT_EVALUABLE}"
    with serving(changed=shifted) as (url, server), refused(words):
        collect_texts(endpoint(url, form=form), **GROUPS)
    texts = RecordTable({"text": world.TEXTS[:3]}, features="text")
    with serving(changed=shifted) as (url, server), refused("values of other tokens"):
        preflight(
            text_scorer(endpoint(url, form=form)),
            [open_source(texts, task=None, member=True, name="member").read(0, 3).records],
        )
    assert server.posts


def test_a_value_above_the_most_likely_token_s_is_refused():
    """In a text nothing can be likelier than what the server generates in its place."""

    def changed(answer):
        for choice in answer["choices"]:
            if choice["text"] == world.TEXTS[1]:
                logs = choice["logprobs"]["token_logprobs"]
                choice["logprobs"]["token_logprobs"] = [None, *([-0.001] * (len(logs) - 1))]
        return answer

    with (
        serving(changed=changed) as (url, _),
        refused("row 1.*log-probability of -0.001 where"),
    ):
        collect_texts(endpoint(url), **GROUPS)


def no_names(answer):
    """Without the names of the tokens."""
    for choice in answer["choices"]:
        choice["logprobs"].pop("tokens")
    return answer


def no_logs(answer):
    """Without log-probabilities of what was generated."""
    for choice in answer["choices"]:
        if len(choice["logprobs"]["token_logprobs"]) == 1:
            choice["logprobs"] = None
    return answer


@pytest.mark.parametrize("changed", [no_names, no_logs], ids=lambda change: change.__name__)
def test_what_cannot_be_checked_is_noted(changed):
    """A server that does not say enough is believed, and the losses say that it was not checked."""
    with serving(changed=changed) as (url, _):
        losses = collect_texts(endpoint(url), **GROUPS)
    assert "does not say enough to check" in losses.notes[0]
    np.testing.assert_allclose(losses.member, [-logs.mean() for logs in world.by_hand()[:3]], rtol=1e-9)


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("most", [1, 16])
def test_a_server_that_refuses_lists_gets_one_prompt_at_a_time(status, most):
    """After its first refusal, or by the option, each text goes as a string of its own, and the losses are the same."""

    def changed(answer):
        return answer if len(answer["choices"]) == 1 else (status, {}, b"a list")

    texts = world.TEXTS[:4]
    with serving(changed=changed) as (url, server):
        scorer = text_scorer(endpoint(url, retries=0, concurrency=1, max_request_records=most))
        found = scorer.score(Records("member", texts, np.zeros(4)))
        scorer.score(Records("member", texts[:2], np.zeros(2)))
    lists = [texts] if most > 1 else []
    assert [request["prompt"] for request in server.posts] == [*lists, *texts, *texts[:2]]
    np.testing.assert_allclose(found.loss, [-logs.mean() for logs in world.by_hand(texts)], rtol=1e-9)


def test_llama_cpp_python_s_server_is_read_as_it_answers():
    """It takes no list, and neither lists the token in front nor gives the next one a log-probability."""

    def changed(answer):
        return unlisted(answer) if len(answer["choices"]) == 1 else (500, {}, {"error": "AssertionError"})

    with serving(changed=changed, bos=True) as (url, _):
        losses = collect_texts(endpoint(url, form=EchoedPrompt(generated=1)), **GROUPS)
    expected = [-logs[1:].mean() for logs in world.by_hand(world.TEXTS, bos=True)]
    np.testing.assert_allclose([*losses.member, *losses.nonmember], expected, rtol=1e-9)


@pytest.mark.parametrize("score", [MeanTokenLoss(), SumTokenLoss(), MinK(), ZlibRatio()], ids=repr)
def test_a_text_that_the_model_excludes_scores_above_every_other(score, tmp_path):
    """Members that the model excludes have losses above all others, by every score, in memory and in a file."""

    def changed(answer):
        for choice in answer["choices"]:
            logs = choice["logprobs"]["token_logprobs"]
            choice["logprobs"]["token_logprobs"] = [None, *([-6.0] * (len(logs) - 1))]
            if "zzz" in choice["text"]:
                choice["logprobs"]["token_logprobs"][1] = -9999.0
        return no_names(answer)

    long = [f"{'the cat and the mat ' * 10}{place}" for place in range(4)]
    groups = {"members": long, "nonmembers": [f"{text} zzz" for text in long]}
    with serving(changed=changed) as (url, _):
        memory = collect_texts(endpoint(url), score=score, **groups)
        tables = {name: RecordTable({"text": texts}, features="text") for name, texts in groups.items()}
        collect_to(tmp_path / "losses.parquet", text_scorer(endpoint(url), score=MeanTokenLoss()), **tables)
    column = "loss" if isinstance(score, MeanTokenLoss) else score.name
    filed = read_losses(tmp_path / "losses.parquet", loss_column=column)
    for losses in (memory, filed, log_odds(memory), published(memory), Summary.of(memory).losses):
        assert losses.member.max() < losses.nonmember.min()
    assert memory.saturated == (0, 4)


@pytest.mark.parametrize("form", [EchoedPrompt(), PromptLogProbs()], ids=repr)
def test_a_server_scores_responses_as_a_model_in_memory(form):
    """The prompt is sent alone too; the tokens after it count, also against a reference, and a chat is refused."""
    pairs = [("the ca", "t sat on the mat"), ("hello,", " q"), ("a mu", "ch longer"), ("nothing of", " it")]
    groups = {"members": pairs[:2], "nonmembers": pairs[2:]}
    memory = collect_texts(world.model(), tokenizer=world.tokenizer(), **groups)
    with serving() as (url, _):
        served = collect_texts(endpoint(url, form=form), **groups)
        against = collect_texts(endpoint(url, form=form), reference=endpoint(url), **groups)
        chat = [[{"role": "assistant", "content": "a b"}]] * 2
        with refused(r"member chat \(row 0, .*needs a tokenizer of transformers"):
            collect_texts(endpoint(url), members=chat, nonmembers=chat)
    np.testing.assert_allclose(
        [*served.member, *served.nonmember], [*memory.member, *memory.nonmember], atol=1e-9
    )
    np.testing.assert_allclose(against.member, 0, atol=1e-9)
    assert "minus that of the reference tiny (completions endpoint), of tiny" in against.history[0]


def test_a_server_that_names_no_tokens_scores_no_responses():
    """Where the prompt ends cannot be known without the names of the tokens."""
    pairs = [("the ca", "t sat on the mat")] * 2
    with (
        serving(changed=no_names) as (url, _),
        refused(r"member text \(row 0, .*without the names of its tokens"),
    ):
        collect_texts(endpoint(url), members=pairs, nonmembers=pairs)


@pytest.mark.parametrize(
    ("model", "shown"), [("/data/zelda/models/tiny", "tiny"), ("org/tiny", "org/tiny"), ("tiny", "tiny")]
)
def test_what_is_written_down_of_a_served_model_is_its_name(model, shown):
    """Where a server calls a model by its path, its last part stands for it; of the address nothing is written down."""
    scorer = text_scorer(
        CompletionsEndpoint("http://pangolin-box.example:8000/v1", model=model, allow_plain_http=True)
    )
    assert scorer.words.endswith(f" of {shown} (completions endpoint)")
