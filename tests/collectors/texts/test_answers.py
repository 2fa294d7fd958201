"""What comes back from a completions endpoint, in all the ways that servers have."""

import copy

import numpy as np
import pytest
from collectors.texts import world
from collectors.texts.completions_server import answered

from auditor import InputError
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
    """What is read from it."""
    return form.logs(answer, texts=TEXTS, records=RECORDS)


def by_hand(*, bos=False):
    """The truth."""
    return [world.logs_by_hand(world.model(), world.tokenizer(bos=bos)(text)["input_ids"]) for text in TEXTS]


def equal(found, *, bos=False):
    """Compare with the truth."""
    for one, other in zip(found, by_hand(bos=bos), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


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
@pytest.mark.parametrize("drop", ["usage", "text_offset"])
def test_either_the_usage_or_the_offsets_tell_what_was_generated(generated, drop):
    """Where one of the two is missing, the other says which tokens are the prompt's."""
    form = EchoedPrompt(generated=generated)
    answer = asked(form)
    if drop == "usage":
        del answer["usage"]
    else:
        edit(answer, lambda part: part.pop("text_offset"))
    equal(logs(form, answer))


def test_a_server_may_generate_although_nothing_was_asked_for():
    """One that reads 0 as its default is found out by the usage, and its tokens are dropped by their offsets."""
    answer = asked(EchoedPrompt(generated=1))
    for choice in answer["choices"]:
        choice["text"] += " and"
        choice["logprobs"]["token_logprobs"].append(-3.0)
        choice["logprobs"]["text_offset"].append(choice["logprobs"]["text_offset"][-1] + 4)
    equal(logs(EchoedPrompt(), answer))
    del answer["usage"]
    equal(logs(EchoedPrompt(), answer))


def test_an_end_of_text_that_was_generated_may_be_left_out():
    """Where one choice of several has no generated token, the offsets decide, and the usage agrees."""
    answer = asked(EchoedPrompt(generated=1))
    first = answer["choices"][0]
    first["text"] = TEXTS[0]
    for name in ("tokens", "token_logprobs", "text_offset"):
        first["logprobs"][name].pop()
    equal(logs(EchoedPrompt(generated=1), answer))
    answer["choices"][1]["logprobs"]["text_offset"][-1] -= (
        1  # the generated token now seems to be the prompt's
    )
    with pytest.raises(
        InputError, match=r"row 40.*which; ask for one prompt at a time with max_request_records=1"
    ):
        logs(EchoedPrompt(generated=1), answer)


def test_a_token_generated_without_a_sign_is_refused():
    """Without usage and offsets, which tokens were generated is not guessed."""
    answer = asked(EchoedPrompt(generated=1))
    del answer["usage"]
    edit(answer, lambda part: part.pop("text_offset"))
    with pytest.raises(
        InputError, match=r"neither usage\.prompt_tokens nor text_offset in the answer says which"
    ):
        logs(EchoedPrompt(generated=1), answer)


@pytest.mark.parametrize("generated", [0, 1])
def test_the_usage_goes_before_offsets_that_count_a_special_token(generated):
    """Where the token in front is written out, its letters shift every offset behind it, and the text is longer."""
    form = EchoedPrompt(generated=generated)
    answer = asked(form, bos=True)
    for choice in answer["choices"]:
        choice["text"] = f"<s>{choice['text']}"
        offsets = choice["logprobs"]["text_offset"]
        choice["logprobs"]["text_offset"] = [0, *(offset + 30 for offset in offsets[1:])]
    equal(logs(form, answer), bos=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda offsets: offsets.reverse(),
        lambda offsets: offsets.__setitem__(0, 1),
        lambda offsets: offsets.__setitem__(1, None),
        lambda offsets: offsets.pop(),
    ],
    ids=["reversed", "beginning late", "null", "too few"],
)
def test_offsets_that_are_none_are_not_believed(change):
    """They begin at 0 and never fall, one for each token; without them and the usage, nothing is guessed."""
    form = EchoedPrompt(generated=1)
    answer = asked(form)
    del answer["usage"]
    edit(answer, lambda part: change(part["text_offset"]))
    with pytest.raises(InputError, match=r"neither usage\.prompt_tokens nor text_offset"):
        logs(form, answer)


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.update(token_logprobs=None),
        lambda part: part.update(token_logprobs=[]),
        lambda part: part.update(token_logprobs=[None] * len(part["token_logprobs"])),
        lambda part: part.pop("token_logprobs"),
    ],
)
def test_an_answer_without_log_probabilities_is_not_evaluable(change):
    """Missing, empty, or null for every token: one sentence says what kind of endpoint is needed."""
    with pytest.raises(
        InputError, match=rf"member text \(row 40, .*without token_logprobs, so {NOT_EVALUABLE}"
    ):
        logs(EchoedPrompt(), edit(asked(EchoedPrompt()), change))


def test_a_chat_is_not_evaluable():
    """Chat endpoints give log-probabilities of what they say, if at all, and none of the prompt."""
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "logprobs": None}]}
    with pytest.raises(InputError, match=rf"came back as a chat, so {NOT_EVALUABLE}"):
        logs(EchoedPrompt(), answer)


def test_log_probabilities_of_what_was_generated_are_never_taken_for_the_prompt_s():
    """A server that ignores echo returns as many numbers as it likes, of other tokens."""
    answer = asked(EchoedPrompt())
    answer["choices"][1]["text"] = " something else altogether"
    with pytest.raises(InputError, match=rf"row 41.*ignores echo.*so {NOT_EVALUABLE}"):
        logs(EchoedPrompt(), answer)


def test_an_answer_without_prompt_log_probabilities_is_not_evaluable():
    """A server that does not know vLLM's field leaves it out or null; more than one token at a place is ambiguous."""
    answer = asked(PromptLogProbs())
    answer["choices"][2]["prompt_logprobs"] = None
    with pytest.raises(InputError, match=rf"row 42.*without prompt_logprobs, so {NOT_EVALUABLE}"):
        logs(PromptLogProbs(), answer)
    answer["choices"][0]["prompt_logprobs"][1]["99"] = {"logprob": -0.1}
    with pytest.raises(InputError, match=r"row 40.*2 alternatives for a token"):
        logs(PromptLogProbs(), answer)


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda choices: choices.pop(), r"got 2 with the indices \['0', '1'\]"),
        (lambda choices: choices.append(dict(choices[0])), r"got 4"),
        (lambda choices: choices[2].update(index=0), r"got 3 with the indices \['0', '1'\]"),
        (lambda choices: choices[2].update(index="2"), r"got 3 with the indices \['0', '1', 'None'\]"),
    ],
)
def test_every_prompt_needs_its_choice(change, got):
    """A missing, doubled or misnumbered choice is refused, not matched by luck."""
    answer = asked(EchoedPrompt())
    change(answer["choices"])
    with pytest.raises(
        InputError, match=rf"3 prompts at once, which must come back as choices 0 to 2, {got}"
    ):
        logs(EchoedPrompt(), answer)


@pytest.mark.parametrize(
    "answer", [{}, [], "text", {"choices": "none"}, {"choices": [1, 2, 3]}, {"error": "no"}]
)
def test_what_is_no_answer_is_refused(answer):
    """The sentence asks whether the address is that of a completions endpoint."""
    with pytest.raises(InputError, match=r"is this the address of a completions endpoint\?"):
        logs(EchoedPrompt(), answer)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "got null for token 2, counting from 0"),
        ("-1.5", "got str for token 2"),
        (True, "got bool for token 2"),
        (float("nan"), "got nan for token 2"),
        (0.5, "got 0.5 for token 2"),
    ],
)
def test_a_token_without_a_log_probability_is_refused_with_its_record(value, got):
    """Only the first token may have none."""
    answer = asked(EchoedPrompt())
    answer["choices"][2]["logprobs"]["token_logprobs"][2] = value
    with pytest.raises(InputError, match=rf"row 42.*{got}"):
        logs(EchoedPrompt(), answer)


def test_a_text_of_one_token_is_refused_with_its_record():
    """The only token has no log-probability, whatever was generated after it."""
    records = Records("member", ["z"], np.zeros(1), first_row=7)
    for form in (EchoedPrompt(), EchoedPrompt(generated=1), PromptLogProbs()):
        with pytest.raises(InputError, match=r"row 7.*at least 2 tokens, got 1"):
            form.logs(answered(form.request(["z"], model="tiny")), texts=["z"], records=records)


def test_the_log_of_zero_comes_back_from_its_stand_in():
    """VLLM writes -9999 for a probability of 0; it is read as what it means."""
    answer = asked(EchoedPrompt())
    answer["choices"][0]["logprobs"]["token_logprobs"][1] = -9999.0
    assert logs(EchoedPrompt(), answer)[0][0] == -np.inf


def test_more_than_one_generated_token_is_never_asked_for():
    """What is generated is dropped, so 0 or 1 is enough."""
    with pytest.raises(InputError, match=r"generated must be 0 or 1, got 2"):
        EchoedPrompt(generated=2)
