"""Answers of a completions endpoint, in all the forms that servers use."""

import copy

import numpy as np
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.completions_server import answered, unlisted

from auditor.collectors.base import Records
from auditor.collectors.texts import EchoedPrompt, PromptLogProbs

TEXTS = world.TEXTS[:3]
RECORDS = Records("member", TEXTS, np.zeros(3), first_row=40)
NOT_EVALUABLE = r"texts are not evaluable at this endpoint; use a completions endpoint"


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def asked(form, *, bos=False):
    """A faithful server's answer."""
    return copy.deepcopy(answered(form.request(TEXTS, model="tiny"), bos=bos))


def logs(form, answer):
    """The parsed answer."""
    return form.logs(answer, texts=TEXTS, records=RECORDS)


def equal(found, *, bos=False):
    """Compare with the truth."""
    world.equal(found, world.by_hand(TEXTS, bos=bos))


def edit(answer, function):
    """The answer with each choice's log-probabilities changed in place."""
    for choice in answer["choices"]:
        function(choice["logprobs"])
    return answer


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("form", [EchoedPrompt(), EchoedPrompt(generated=1), PromptLogProbs()], ids=repr)
def test_every_form_gives_the_prompt_s_log_probabilities(form, bos):
    """Echoed with nothing or one token generated, or in a field of their own, with or without a token in front."""
    equal(logs(form, asked(form, bos=bos)), bos=bos)


def test_choices_go_by_their_index():
    """Choices in another order are put back in the order of the prompts."""
    answer = asked(EchoedPrompt())
    answer["choices"] = [answer["choices"][place] for place in (2, 0, 1)]
    equal(logs(EchoedPrompt(), answer))


@pytest.mark.parametrize("generated", [0, 1])
def test_the_usage_says_what_was_generated(generated):
    """It counts the tokens of the prompts, also where the token in front is written out; otherwise names do, or nothing."""
    form = EchoedPrompt(generated=generated)
    answer = asked(form, bos=True)
    for choice in answer["choices"]:
        choice["text"] = f"<s>{choice['text']}"
    equal(logs(form, answer), bos=True)
    del answer["usage"]
    equal(logs(form, answer), bos=True)
    edit(answer, lambda own: own.pop("tokens"))
    with refused(r"tokens that were generated, and usage\.prompt_tokens does not say which; send one prompt"):
        logs(form, answer)


def test_a_server_may_generate_although_nothing_was_asked_for():
    """One that reads 0 as its default is found out by the usage, which says of one prompt how many tokens are its own."""
    answer = asked(EchoedPrompt(generated=1))
    for choice in answer["choices"]:
        choice["text"] += " and"
        choice["logprobs"]["token_logprobs"].append(-3.0)
    with refused(r"row 40.*which; send one prompt at a time with max_request_records=1"):
        logs(EchoedPrompt(), answer)
    alone = copy.deepcopy(answered({**EchoedPrompt(generated=1).request(TEXTS[:1], model="tiny")}))
    one = EchoedPrompt().logs(alone, texts=TEXTS[:1], records=RECORDS.part(0, 1))
    equal([*one, *logs(EchoedPrompt(), asked(EchoedPrompt()))[1:]])


@pytest.mark.parametrize("generated", [0, 1])
def test_a_special_token_that_is_counted_but_not_listed_hides_no_generated_token(generated):
    """llama-cpp-python lists no token in front, counts it, and generates: the names say which tokens are the prompt's."""
    form = EchoedPrompt(generated=generated)
    answer = unlisted(answered(EchoedPrompt(generated=1).request(TEXTS, model="tiny"), bos=True))
    world.equal(logs(form, answer), [own[1:] for own in world.by_hand(TEXTS, bos=True)])
    edit(answer, lambda own: own.pop("tokens"))
    if generated:
        with refused(r"row 40.*tokens that were generated, and usage\.prompt_tokens does not say which"):
            logs(form, answer)


@pytest.mark.parametrize(
    ("text", "strip"),
    [("the cat\n", str), (" the cat \n", str), (" the cat \n", str.lstrip), (" \n", str)],
)
def test_spaces_at_the_end_of_a_prompt_are_its_own(text, strip):
    """A generated token is distinguished from the spaces before it, also where the server strips those in front."""
    form, records = EchoedPrompt(generated=1), Records("member", [text], np.zeros(1))
    answer = unlisted(answered(form.request([text], model="tiny"), bos=True))
    answer["choices"][0]["text"] = strip(answer["choices"][0]["text"])
    found = form.logs(answer, texts=[text], records=records)
    world.equal(found, [own[1:] for own in world.by_hand([text], bos=True)])
    answer["choices"][0]["logprobs"].pop("tokens")
    with refused(r"row 0, .*tokens that were generated, and usage\.prompt_tokens does not say which"):
        form.logs(answer, texts=[text], records=records)


NO_GENERATED = {"content": [{"id": 11, "token": " mat", "logprob": -0.125, "top_logprobs": []}]}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text": " mat", "logprobs": NO_GENERATED}, "without token_logprobs"),  # llama.cpp
        ({"text": " mat", "logprobs": None}, "without token_logprobs"),  # Ollama
    ],
    ids=["llama.cpp", "Ollama"],
)
def test_servers_without_the_log_probabilities_of_the_prompt_are_refused(changes, sentence):
    """llama.cpp's server answers log-probabilities of generated tokens, Ollama none: the sentence says what is missing."""
    answer = {"object": "text_completion", "model": "tiny", "choices": [], "usage": {"prompt_tokens": 9}}
    answer["choices"] = [{"index": place, "finish_reason": "length", **changes} for place in range(3)]
    with refused(rf"^member text \(row 40, .*{sentence}, so {NOT_EVALUABLE}"):
        logs(EchoedPrompt(), answer)


def choice(number, **changes):
    """A function that changes one choice of an answer."""
    return lambda answer: answer["choices"][number].update(changes)


def part(number, **changes):
    """A function that changes the log-probabilities of one choice."""
    return lambda answer: answer["choices"][number]["logprobs"].update(changes)


def token(value):
    """A function that changes one log-probability of the last choice."""
    return lambda answer: answer["choices"][2]["logprobs"]["token_logprobs"].__setitem__(2, value)


ECHO, OWN = EchoedPrompt(), PromptLogProbs()
NO_LOGS = rf"row 41, .*without token_logprobs, so {NOT_EVALUABLE}"


@pytest.mark.parametrize(
    ("form", "change", "sentence"),
    [
        (ECHO, part(1, token_logprobs=None), NO_LOGS),
        (ECHO, part(1, token_logprobs=[]), NO_LOGS),
        (ECHO, part(1, token_logprobs=[None]), rf"row 41.*one value for several words.*{NOT_EVALUABLE}"),
        (
            OWN,
            choice(1, prompt_logprobs=[None]),
            rf"row 41.*one value for several words.*{NOT_EVALUABLE}",
        ),
        (ECHO, part(1, token_logprobs=[None] * 5), NO_LOGS),
        (ECHO, choice(1, logprobs=None), NO_LOGS),
        (ECHO, choice(0, message={"content": "Hi"}), rf"as a chat, so {NOT_EVALUABLE}"),
        (ECHO, choice(1, text=" something else"), rf"row 41.*ignores echo.*so {NOT_EVALUABLE}"),
        (OWN, choice(2, prompt_logprobs=None), rf"row 42.*without prompt_logprobs, so {NOT_EVALUABLE}"),
        (OWN, choice(0, prompt_logprobs=[None, {"1": {}, "2": {}}]), r"row 40.*2 alternatives for a token"),
        (ECHO, lambda answer: answer["choices"].pop(), "in 2 choices, which must be 0 to 2, one for each"),
        (ECHO, choice(2, index="2"), "in 3 choices, which must be 0 to 2, one for each"),
        (ECHO, lambda answer: answer.pop("choices"), "address of a completions endpoint"),
        (ECHO, lambda answer: answer.update(choices="none"), "address of a completions endpoint"),
        (ECHO, lambda answer: answer.update(choices=[1, 2, 3]), "address of a completions endpoint"),
        (ECHO, token(None), "row 42.*null for token 2, counting from 0"),
        (ECHO, token("-1.5"), "row 42.*str for token 2"),
        (ECHO, token(True), "row 42.*bool for token 2"),
        (ECHO, token(float("nan")), "row 42.*got nan for token 2"),
        (ECHO, token(0.5), "row 42.*got 0.5 for token 2"),
        (ECHO, token(-(10**400)), "row 42.*int for token 2"),
    ],
)
def test_an_answer_without_what_was_asked_for_is_refused_with_its_record(form, change, sentence):
    """Nothing is matched by luck: log-probabilities of other tokens, of a chat, of another prompt or none at all."""
    answer = asked(form)
    change(answer)
    with refused(f"^member text .*{sentence}"):
        logs(form, answer)
    with refused(r"is this the address of a completions endpoint\?"):
        logs(form, [answer])


def test_a_text_of_one_token_is_refused_with_its_record():
    """The only token has no log-probability, whatever was generated after it."""
    records = Records("member", ["z"], np.zeros(1), first_row=7)
    for form in (EchoedPrompt(), EchoedPrompt(generated=1), PromptLogProbs()):
        with refused(r"row 7.*at least 2 tokens, got 1"):
            form.logs(answered(form.request(["z"], model="tiny")), texts=["z"], records=records)


def test_the_log_of_zero_comes_back_from_its_stand_in():
    """VLLM writes -9999 for a probability of 0; it is read as what it means."""
    answer = asked(EchoedPrompt())
    answer["choices"][0]["logprobs"]["token_logprobs"][1] = -9999.0
    assert logs(EchoedPrompt(), answer)[0][0] == -np.inf
