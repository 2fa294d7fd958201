"""Language models in this process: log-probabilities of tokens, whatever the batch, and nothing of the model changed."""

import copy
import json
import zlib

import numpy as np
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.world import by_hand, equal, letters, logs, net, records
from command_line import run

from auditor import LossScale
from auditor.collectors import collect_texts, read_losses
from auditor.collectors.base import Records
from auditor.collectors.texts import (
    CausalModel,
    LongTexts,
    MeanTokenLoss,
    MinK,
    SumTokenLoss,
    ZlibRatio,
    text_scorer,
)

TEXTS = world.TEXTS
NETWORKS = "auditor.collectors.texts.models"


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def test_a_special_token_in_front_is_what_the_first_token_follows():
    """Where the tokenizer begins texts with a token, every token of the text itself is scored, also of one token."""
    found = logs(CausalModel(world.model(), tokenizer=world.tokenizer(bos=True)), [*TEXTS, "z"])
    equal(found, by_hand([*TEXTS, "z"], bos=True))
    assert found[-1].size == 1
    assert found[0].size == len(world.tokenizer()(TEXTS[0])["input_ids"])


@pytest.mark.parametrize(
    ("limit", "numbers"), [("_ROOM", 1), ("_ROOM", 5000), ("_ROOM", 10**9), ("_BLOCK", 1)]
)
def test_how_texts_share_a_call_of_the_model_changes_nothing(monkeypatch, limit, numbers):
    """One text at a time, a few, or all together, in blocks of any size: the numbers and their order stay."""
    monkeypatch.setattr(f"{NETWORKS}.{limit}", numbers)
    equal(logs(CausalModel(world.model(), tokenizer=world.tokenizer())), by_hand())


def test_the_log_softmax_of_single_precision_logits_does_not_saturate():
    """A token 200 nats less likely keeps its log-probability; one 40 nats more likely keeps its distance from 0."""
    import torch

    model = CausalModel(
        net(lambda ids: torch.tensor([0.0, 40.0, -200.0, 0, 0, 0, 0, 0, 0, 0]).expand(*ids.shape, 10)),
        tokenizer=letters,
    )
    found = logs(model, ["abc"])[0]
    normaliser = np.log1p(8 * np.exp(-40) + np.exp(-240))
    np.testing.assert_allclose(found, [-normaliser, -240 - normaliser], rtol=1e-12)


def test_losses_are_the_named_score_of_each_text():
    """The loss and the columns beside it follow from the log-probabilities by their definitions."""
    scorer = text_scorer(world.model(), tokenizer=world.tokenizer(), score=SumTokenLoss())
    scored = scorer.score(records())
    expected = by_hand()
    texts = [*zip(expected, TEXTS, strict=True)]
    np.testing.assert_allclose(scored.loss, [-part.sum() for part in expected], rtol=1e-12)
    for score in (MeanTokenLoss(), MinK(), ZlibRatio()):  # whose definitions have tests of their own
        want = [score.of(logs, text=text) for logs, text in texts]
        np.testing.assert_allclose(scored.more.pop(score.name), want, rtol=1e-12)
    assert not scored.more


# --- Nothing of the model changes ------------------------------------------------------------------


def test_the_model_is_left_as_it_was():
    """Weights, the mode of every part, gradients and the random state are the same afterwards, also after a failure."""
    import torch

    network = copy.deepcopy(world.model()).train()
    network.transformer.h[0].eval()
    modes = [part.training for part in network.modules()]
    weights = copy.deepcopy(network.state_dict())
    state = torch.get_rng_state()
    model = CausalModel(network, tokenizer=world.tokenizer())
    equal(logs(model), by_hand())  # dropout is off
    network.lm_head.forward = lambda _: (_ for _ in ()).throw(RuntimeError("out of memory\nat once"))
    with refused(r"failed on the member texts: RuntimeError: out of memory at once\.$"):
        model.read(records())
    assert [part.training for part in network.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert all(weight.grad is None and weight.requires_grad for weight in network.parameters())
    assert torch.is_grad_enabled()


def test_the_tokenizer_may_pad_and_cut_by_habit():
    """A tokenizer set to pad and to cut at 4 tokens returns whole texts, and one of tokenizers stays as it was."""
    own = world.tokenizer().backend_tokenizer
    own = type(own).from_str(own.to_str())
    own.enable_truncation(4)
    own.enable_padding(length=20)
    before = own.to_str()
    equal(logs(CausalModel(world.model(), tokenizer=own)), by_hand())
    assert own.to_str() == before


def test_texts_that_run_at_once_keep_their_logits_within_the_limit(monkeypatch):
    """Padding included, no call holds more logits than allowed, unless for one text alone; at most an eighth is padding."""
    import torch

    shapes = []

    def logits(ids):
        shapes.append(tuple(ids.shape))
        return torch.zeros(*ids.shape, 10)

    monkeypatch.setattr(f"{NETWORKS}._ROOM", 200)  # 20 tokens of 10 logits
    texts = ["ab" * length for length in (1, 12, 4, 4, 5, 4, 1, 1)]
    logs(CausalModel(net(logits), tokenizer=letters), texts)
    assert shapes[1:] == [(1, 24), (1, 10), (2, 8), (1, 8), (3, 2)]  # after the trial, the longest first


# --- Long and short texts --------------------------------------------------------------------------


def test_long_texts_are_refused_with_their_row():
    """A text of more tokens than the model takes is found before the model runs."""
    model = CausalModel(world.model(), tokenizer=world.tokenizer())
    with refused(r"member text \(row 11, counting from 0\) must have at most 64 tokens.*got"):
        model.check(records(["short", "z" * 65], first_row=10))
    assert model.check(records(["z" * 64])) == 0


def test_long_texts_may_be_cut_and_are_counted():
    """A cut text scores as its first tokens, and the history counts it."""
    long = "日本" * 30  # six tokens for two characters
    groups = {"members": [long, "hello z"], "nonmembers": ["hello q", long]}
    choices = {"score": "sum", "longest": 12, "long_texts": LongTexts.CUT}
    losses = collect_texts(world.model(), tokenizer=world.tokenizer(), **groups, **choices)
    assert losses.member[0] == pytest.approx(-by_hand(["日本日本"])[0].sum(), rel=1e-12)
    assert (
        "texts cut after 12 tokens (fewer than 10 member and fewer than 10 non-member texts were)"
        in losses.history[0]
    )


@pytest.mark.parametrize("longest", [2, 5, 12])
def test_windows_score_each_token_of_a_long_text_once(longest):
    """The sum is that of a loop over the tokens, each after the tokens of its window, and the history states the step."""
    long, step = "日本" * 9 + "cat", max(1, longest // 2)
    groups = {"members": [long, "hello z"], "nonmembers": ["hello q", "z" * (longest + 1)]}
    choices = {"score": "sum", "longest": longest, "long_texts": "windows"}
    losses = collect_texts(world.model(), tokenizer=world.tokenizer(), **groups, **choices)
    for text, loss in zip(
        [*groups["members"], *groups["nonmembers"]], [*losses.member, *losses.nonmember], strict=True
    ):
        ids, total, stop = world.tokenizer()(text)["input_ids"], 0.0, longest
        for place in range(1, len(ids)):
            while place >= stop:
                stop = min(stop + step, len(ids))
            start = max(0, min(stop, len(ids)) - longest)
            total += world.logs_by_hand(world.model(), ids[start : place + 1])[-1]
        assert loss == pytest.approx(-total, rel=1e-12)
    assert f"longer texts in windows of {longest} tokens at steps of {step} (" in losses.history[0]


def test_a_zlib_ratio_needs_whole_texts():
    """Where texts are cut it is refused as the score, and left out of what is computed by default."""
    kwargs = {"tokenizer": letters, "longest": 3, "long_texts": LongTexts.CUT}
    model = net(lambda ids: ids.new_zeros((*ids.shape, 10)).double())
    with refused(r"ZlibRatio needs the text"):
        text_scorer(model, score=ZlibRatio(), **kwargs)
    assert "zlib_ratio" not in text_scorer(model, **kwargs).score(records(["abcdef"])).more


@pytest.mark.parametrize(("text", "count"), [("", 0), ("z", 1)])
def test_a_text_without_a_second_token_is_refused(text, count):
    """The first token of a text has no log-probability, so one token says nothing."""
    groups = {"members": TEXTS[:2], "nonmembers": [TEXTS[2], text]}
    with refused(rf"nonmember text \(row 1, .*at least 2 tokens, got {count}"):
        collect_texts(world.model(), tokenizer=world.tokenizer(), **groups)


@pytest.mark.parametrize("score", [MeanTokenLoss(), SumTokenLoss(), MinK(), ZlibRatio()], ids=repr)
def test_a_text_that_the_model_excludes_scores_above_every_other(score):
    """A token of probability 0 lies above long texts without one, which have larger sums than any end of a scale."""
    import torch

    scores = torch.tensor([0.0, -20, -20, -20, -20, -20, -20, -20, -20, -torch.inf])
    texts = {"members": ["abcdefghi" * n for n in (5, 10, 20)], "nonmembers": ["aj", "aja", "bj" * 3]}
    losses = collect_texts(
        net(lambda ids: scores.expand(*ids.shape, 10)), tokenizer=letters, score=score, **texts
    )
    assert losses.member.max() < losses.nonmember.min()
    assert losses.saturated == (0, 3)


def test_a_callable_may_return_what_a_tokenizer_of_transformers_returns():
    """Its rows stand under the name input_ids: the losses are those of the rows alone."""
    import transformers

    def encoded(texts):
        return transformers.BatchEncoding({"input_ids": letters(texts), "attention_mask": None})

    model = world.net(lambda ids: world.model()(input_ids=ids).logits)
    equal(*(logs(CausalModel(model, tokenizer=item), ["abc", "ja"]) for item in (encoded, letters)))


# --- Responses, and base models --------------------------------------------------------------------

PAIRS = [("the ca", "t sat on the mat"), ("hello", ", q"), ("日", "本 and é"), ("", "zzz zzz")]
CHATS = [
    [("user", "the cat"), ("assistant", "sat on"), ("user", "hello"), ("assistant", "q, the mat")],
    [("system", "nothing of it"), ("user", "日本"), ("assistant", "é")],
    [("user", "hello"), ("assistant", "zzz"), ("user", "ever")],
]
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] + ':' + m['content'] + '<pad>' }}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)


def chatting(*, bos=False):
    """The tiny tokenizer with a chat template."""
    own = copy.deepcopy(world.tokenizer(bos=bos))
    own.chat_template = TEMPLATE
    return own


def by_offsets(text, parts, *, bos=False, special=True):
    """The log-probabilities of the tokens that have a character in one of the parts of a text."""
    own = world.tokenizer(bos=bos)(text, return_offsets_mapping=True, add_special_tokens=special)
    spans = own["offset_mapping"]
    mask = [any(a < stop and b > start for start, stop in parts) for a, b in spans]
    return world.logs_by_hand(world.model(), own["input_ids"])[mask[1:]]


@pytest.mark.parametrize("bos", [False, True])
def test_only_the_tokens_of_a_completion_are_scored(bos):
    """Of a prompt and its completion count the tokens with a character of the completion, in every form of the records."""
    import pandas as pd

    expected = [by_offsets(a + b, [(len(a), len(a + b))], bos=bos) for a, b in PAIRS]
    named = [{"prompt": a, "completion": b, "source": "x"} for a, b in PAIRS]
    frame = pd.DataFrame(PAIRS, columns=["q", "a"])
    model = CausalModel(world.model(), tokenizer=world.tokenizer(bos=bos))
    for form in (PAIRS, named, frame, pd.DataFrame(named)[["completion", "prompt"]]):
        equal([item.log_probabilities for item in model.read(Records("member", form, np.zeros(4)))], expected)
    scorer = text_scorer(world.model(), tokenizer=world.tokenizer(bos=bos), score=ZlibRatio())
    ratio = -expected[0].sum() / len(zlib.compress(PAIRS[0][1].encode()))
    assert scorer.score(records(PAIRS)).loss[0] == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("bos", [False, True])
def test_only_the_turns_of_the_assistant_are_scored(bos):
    """Of a chat count the tokens from the template's prompt to the end of each turn of the assistant, without a second special token."""
    chats = [[{"role": role, "content": text, "name": None} for role, text in chat] for chat in CHATS]
    expected = []
    for chat in CHATS:
        text, parts = "", []
        for role, content in chat:
            head = f"<s>{role}:"
            if role == "assistant":
                parts.append((len(text + head), len(text + head + content + "<pad>")))
            text += f"{head}{content}<pad>"
        expected.append(by_offsets(text, parts, special=False))
    tokenizer = chatting(bos=bos)
    for form in (
        chats,
        [{"messages": chat} for chat in chats],
        [np.array(chat, dtype=object) for chat in chats],
    ):
        model = CausalModel(world.model(), tokenizer=tokenizer)
        equal([item.log_probabilities for item in model.read(records(form))], expected)
    losses = collect_texts(world.model(), tokenizer=tokenizer, members=chats[:2], nonmembers=chats[1:])
    np.testing.assert_allclose(losses.member, [-part.mean() for part in expected[:2]], rtol=1e-12)
    assert losses.history[0].startswith(
        "mean token log-loss over the tokens of the responses alone, of GPT2LMHeadModel"
    )


def test_responses_are_scored_in_windows_and_as_far_as_texts_are_cut():
    """A cut response has the tokens before the cut; one behind the cut is refused; in windows all of its tokens count."""
    pair, options = ("hello", " " + "z" * 20), {"tokenizer": world.tokenizer(), "longest": 12}
    whole = by_offsets("".join(pair), [(5, 26)])
    cut = text_scorer(world.model(), long_texts="cut", score="sum", **options).score(records([pair, pair]))
    prompt = len(world.tokenizer()("hello")["input_ids"])
    assert cut.loss[0] == pytest.approx(-whole[: 12 - prompt].sum(), rel=1e-12)
    with refused(r"member text \(row 0, .*must have a token of the response .*, got none"):
        CausalModel(world.model(), long_texts=LongTexts.CUT, **options).read(records([pair[::-1]]))
    windows = CausalModel(world.model(), long_texts=LongTexts.WINDOWS, **options)
    assert windows.read(records([pair]))[0].log_probabilities.size == whole.size


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (["one", ("a", "b")], r"must be of one kind, got another \(row 1, "),
        (
            [[{"role": "user", "content": "a"}]] * 2,
            r"member chat \(row 0, .*must have a turn of the assistant, got none",
        ),
        (
            [[{"from": "human", "value": "a"}]] * 2,
            r"must be strings, got list .* a chat is a list of \{\"role\"",
        ),
        ([{"prompt": "a"}] * 2, r"must be strings, got tuple \(row 0, "),
        ([("a b", "")] * 2, r"must have a token of the response"),
    ],
)
def test_records_that_are_no_responses_are_refused(form, words):
    """One sentence names the record and what it lacks; members and non-members are of one kind."""
    with refused(r"nonmember texts must be of the kind of the members, got whole texts and responses"):
        collect_texts(world.model(), tokenizer=chatting(), members=PAIRS[:2], nonmembers=TEXTS[:2])
    with refused(words):
        collect_texts(world.model(), tokenizer=chatting(), members=form, nonmembers=form)


def test_a_chat_needs_a_template_that_writes_turns_alike():
    """Without a chat template, or with one that changes earlier turns, a chat is refused with the fix."""
    chat = [[{"role": role, "content": text} for role, text in CHATS[0]]]
    with refused(
        r"needs a tokenizer of transformers with a chat template.*give each prompt and its completion"
    ):
        CausalModel(world.model(), tokenizer=world.tokenizer()).read(records(chat))
    own = chatting()
    own.chat_template = "{{ messages | length }}" + TEMPLATE
    with refused(r"the chat template writes them differently"):
        CausalModel(world.model(), tokenizer=own).read(records(chat))
    own.chat_template = "{{ raise_exception('no') }}"
    with refused(r"must suit the tokenizer's chat template, which refused it: TemplateError: no"):
        CausalModel(world.model(), tokenizer=own).read(records(chat))


def test_a_reference_is_subtracted_from_the_score_of_the_same_text(tmp_path):
    """In memory, as a pair and in a folder, the loss is the difference, and the facts name the attack."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    base = type(world.model())(world.model().config).double().eval()
    base.save_pretrained(tmp_path)
    world.tokenizer().save_pretrained(tmp_path)
    groups = {"members": TEXTS[:3], "nonmembers": TEXTS[3:]}
    ids = [world.tokenizer()(text)["input_ids"] for text in TEXTS]
    expected = [
        world.logs_by_hand(base, own).mean() - logs.mean() for own, logs in zip(ids, by_hand(), strict=True)
    ]
    for reference in (base, (base, world.tokenizer()), tmp_path):
        losses = collect_texts(world.model(), tokenizer=world.tokenizer(), reference=reference, **groups)
        np.testing.assert_allclose([*losses.member, *losses.nonmember], expected, atol=1e-6)
        assert (
            "mean token log-loss minus that of the reference GPT2LMHeadModel (PyTorch), of GPT2"
            in losses.history[0]
        )
        assert losses.attacks == {"reference": "run"}
        assert losses.scale is LossScale.UNKNOWN
    scorer = text_scorer(world.model(), tokenizer=world.tokenizer(), reference=base)
    alone = scorer.score(records()).more["mean_token_loss"]
    np.testing.assert_allclose(alone, [-logs.mean() for logs in by_hand()], rtol=1e-12)


def test_a_token_that_a_model_excludes_counts_for_the_model_before_the_reference():
    """Where both exclude a token the loss lies above all others; where the reference alone does, below."""
    import torch

    scores = torch.tensor([0.0, -1, -torch.inf, -1, -1, -1, -1, -1, -1, -torch.inf])
    model = net(lambda ids: scores.expand(*ids.shape, 10))
    base = net(lambda ids: scores.where(torch.arange(10) != 1, -torch.inf).expand(*ids.shape, 10))
    scorer = text_scorer(model, tokenizer=letters, reference=base)
    found = scorer.score(records(["aj", "ab", "ac"]))
    assert found.loss.tolist() == [np.inf, -np.inf, np.inf]
    assert found.saturated.all()


@pytest.mark.parametrize("column", ["prompt,completion", "messages"])
def test_lines_of_json_are_collected_on_the_command_line(tmp_path, column):
    """`auditor collect` reads prompts with completions, or chats, and subtracts the reference, as `collect_texts` does."""
    chats = [[{"role": "user", "content": a}, {"role": "assistant", "content": b}] for a, b in PAIRS[:3]]
    rows = [
        {"prompt": a, "completion": b, "messages": chat, "id": place}
        for place, ((a, b), chat) in enumerate(zip(PAIRS[:3], chats, strict=True))
    ]
    for name, some in (("in", rows), ("out", rows[::-1])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, some)), encoding="utf-8")
    world.model().save_pretrained(tmp_path / "model")
    chatting().save_pretrained(tmp_path / "model")
    out = tmp_path / "losses.parquet"
    command = [
        "collect",
        tmp_path / "model",
        "--members",
        tmp_path / "in.jsonl",
        "--nonmembers",
        tmp_path / "out.jsonl",
    ]
    command += ["--text-column", column, "--quiet", "--out", out]
    assert run(*command) == 0
    losses = read_losses(out)
    texts = PAIRS[:3] if "," in column else chats
    own = collect_texts(world.model(), tokenizer=chatting(), members=texts, nonmembers=texts[::-1])
    np.testing.assert_allclose(losses.member, own.member, atol=1e-6)
    assert losses.history[0] == own.history[0]
    assert losses.fingerprint.member.tolist() == losses.fingerprint.nonmember[::-1].tolist()
    assert len(set(losses.fingerprint.member)) == 3
    assert run(*command, "--overwrite", "--reference", tmp_path / "model") == 0
    losses = read_losses(out)
    np.testing.assert_allclose(losses.member, 0, atol=1e-9)
    assert losses.attacks == {"reference": "run"}
    assert "minus that of the reference" in losses.history[0]
