"""Language models in this process: log-probabilities of tokens, whatever the batch, and nothing of the model changed."""

import copy
import zlib

import numpy as np
import pytest
from collectors.texts import world
from collectors.texts.world import letters, net, records

from auditor import InputError, LossScale
from auditor.collectors.texts import (
    LongTexts,
    MeanTokenLoss,
    MinK,
    Network,
    SumTokenLoss,
    ZlibRatio,
    causal_model,
    collect_texts,
    text_scorer,
)

TEXTS = world.TEXTS
NETWORKS = "auditor.collectors.texts.models"


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def logs(model, texts=TEXTS):
    """The log-probabilities of each text."""
    return [item.log_probabilities for item in model.read(records(texts))]


def by_hand(texts=TEXTS, *, tokenizer=None):
    """The same, one prefix at a time."""
    tokenizer = tokenizer or world.tokenizer()
    return [world.logs_by_hand(world.model(), tokenizer(text)["input_ids"]) for text in texts]


def equal(found, expected, tolerance=1e-12):
    """Compare lists of arrays."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def test_log_probabilities_are_those_of_one_prefix_at_a_time():
    """A padded batch of texts of different lengths gives what the model says of each prefix alone."""
    equal(logs(causal_model(world.model(), tokenizer=world.tokenizer())), by_hand())


def test_a_special_token_in_front_is_what_the_first_token_follows():
    """Where the tokenizer begins texts with a token, every token of the text itself is scored, also of one token."""
    tokenizer = world.tokenizer(bos=True)
    found = logs(causal_model(world.model(), tokenizer=tokenizer), [*TEXTS, "z"])
    equal(found, by_hand([*TEXTS, "z"], tokenizer=tokenizer))
    assert found[-1].size == 1
    assert found[0].size == len(world.tokenizer()(TEXTS[0])["input_ids"])


@pytest.mark.parametrize("numbers", [1, 5000, 10**9])
def test_how_texts_share_a_call_of_the_model_changes_nothing(monkeypatch, numbers):
    """One text at a time, a few, or all together: the numbers and their order stay."""
    monkeypatch.setattr(f"{NETWORKS}._ROOM", numbers)
    equal(logs(causal_model(world.model(), tokenizer=world.tokenizer())), by_hand())


def test_logits_are_turned_into_doubles_in_blocks_of_any_size(monkeypatch):
    """One position at a time gives the same as all at once."""
    monkeypatch.setattr(f"{NETWORKS}._BLOCK", 1)
    equal(logs(causal_model(world.model(), tokenizer=world.tokenizer())), by_hand())


def test_single_precision_batches_agree_with_single_texts():
    """In float32 a text scores in a padded batch what it scores alone, to 1e-5."""
    model = causal_model(copy.deepcopy(world.model()).float(), tokenizer=world.tokenizer())
    together = logs(model)
    alone = [logs(model, [text])[0] for text in TEXTS]
    equal(together, alone, 1e-5)
    equal(together, by_hand(), 1e-4)
    assert model.eps == np.finfo(np.float32).eps


def test_the_log_softmax_of_single_precision_logits_does_not_saturate():
    """A token 200 nats less likely keeps its log-probability; one 40 nats more likely keeps its distance from 0."""
    import torch

    model = causal_model(
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
    np.testing.assert_allclose(scored.loss, [-part.sum() for part in expected], rtol=1e-12)
    assert set(scored.more) == {"mean_token_loss", "min_20_percent", "zlib_ratio"}
    np.testing.assert_allclose(
        scored.more["mean_token_loss"], [-part.mean() for part in expected], rtol=1e-12
    )
    lengths = [len(zlib.compress(text.encode())) for text in TEXTS]
    np.testing.assert_allclose(scored.more["zlib_ratio"], scored.loss / lengths, rtol=1e-12)
    lowest = [-np.mean(sorted(part)[: max(1, len(part) // 5)]) for part in expected]
    np.testing.assert_allclose(scored.more["min_20_percent"], lowest, rtol=1e-12)


def test_collected_losses_hold_what_a_reader_must_know():
    """Both groups in order, labels beside them, fingerprints of the texts, and which score of which model they are."""
    losses = collect_texts(
        world.model(),
        tokenizer=world.tokenizer(),
        members=TEXTS[:3],
        nonmembers=np.array([*TEXTS[3:], TEXTS[0]]),
        score=SumTokenLoss(),
        ids=(["a", "b", "c"], ["d", "e", "f", "g"]),
        batch_size=2,
    )
    expected = [-part.sum() for part in by_hand()]
    np.testing.assert_allclose(losses.member, expected[:3], rtol=1e-12)
    np.testing.assert_allclose(losses.nonmember, [*expected[3:], expected[0]], rtol=1e-12)
    assert losses.history == ("sum of the token log-losses of GPT2LMHeadModel (PyTorch)",)
    assert losses.scale is LossScale.CROSS_ENTROPY
    assert losses.id.nonmember.tolist() == ["d", "e", "f", "g"]
    assert losses.fingerprint.member[0] == losses.fingerprint.nonmember[-1]
    assert len({*losses.fingerprint.member, *losses.fingerprint.nonmember}) == len(TEXTS)


def test_a_model_that_learned_its_members_scores_them_lower():
    """After a few steps on one half, every score is lower on average for that half than before and than for the other."""
    import torch

    network = copy.deepcopy(world.model()).float()
    texts = [f"{first} {second} {third}" for first in "abcd" for second in "efgh" for third in "ijkl"]
    order = np.random.default_rng(3).permutation(len(texts))
    members, nonmembers = ([texts[place] for place in part] for part in np.split(order, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    ids = torch.tensor(world.tokenizer()(members)["input_ids"])
    for _ in range(40):
        optimiser.zero_grad()
        network(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
    for score in (MeanTokenLoss(), SumTokenLoss(), MinK(), ZlibRatio()):
        found = collect_texts(
            network, tokenizer=world.tokenizer(), members=members, nonmembers=nonmembers, score=score
        )
        assert found.member.mean() < found.nonmember.mean()


# --- Nothing of the model changes ------------------------------------------------------------------


def test_the_model_is_left_as_it_was():
    """Weights, the mode of every part, gradients and the random state are the same afterwards, also after a failure."""
    import torch

    network = copy.deepcopy(world.model()).train()
    network.transformer.h[0].eval()
    modes = [part.training for part in network.modules()]
    weights = copy.deepcopy(network.state_dict())
    state = torch.get_rng_state()
    model = causal_model(network, tokenizer=world.tokenizer())
    equal(logs(model), by_hand())  # dropout is off
    network.lm_head.forward = lambda _: (_ for _ in ()).throw(RuntimeError("out of memory\nat once"))
    with pytest.raises(
        InputError, match=r"failed on the member texts: RuntimeError: out of memory at once\.$"
    ):
        model.read(records())
    assert [part.training for part in network.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert all(weight.grad is None and weight.requires_grad for weight in network.parameters())
    assert torch.is_grad_enabled()


def test_the_tokenizer_may_pad_and_cut_by_habit():
    """A tokenizer set to pad and to cut at 4 tokens is asked for whole texts, and one of tokenizers stays as it was."""
    own = world.tokenizer().backend_tokenizer
    own = type(own).from_str(own.to_str())
    own.enable_truncation(4)
    own.enable_padding(length=20)
    before = own.to_str()
    equal(logs(causal_model(world.model(), tokenizer=own)), by_hand())
    assert own.to_str() == before


def test_one_identity_for_one_model():
    """The same weights and tokenizer have the same identity; another weight, limit or tokenizer has another."""
    import torch

    first = causal_model(world.model(), tokenizer=world.tokenizer())
    same = causal_model(copy.deepcopy(world.model()), tokenizer=world.tokenizer().backend_tokenizer)
    assert first.network.identity == same.network.identity
    again = causal_model(copy.deepcopy(world.model()), tokenizer=copy.deepcopy(world.tokenizer()))
    assert again.identity == first.identity is not None
    other = copy.deepcopy(world.model())
    with torch.no_grad():
        other.lm_head.weight[0, 0] += 1e-9
    changed = [
        causal_model(other, tokenizer=world.tokenizer()),
        causal_model(world.model(), tokenizer=world.tokenizer(), longest=10),
        causal_model(world.model(), tokenizer=world.tokenizer(bos=True)),
        causal_model(copy.deepcopy(world.model()).float(), tokenizer=world.tokenizer()),
    ]
    assert len({first.identity, *(model.identity for model in changed)}) == 5
    assert causal_model(net(lambda ids: ids[..., None] * 0.0), tokenizer=letters).identity is None
    scorers = [text_scorer(world.model(), tokenizer=world.tokenizer(), score=MinK(percent=k)) for k in (5, 6)]
    assert scorers[0].identity != scorers[1].identity


def test_how_a_tokenizer_was_last_used_is_no_part_of_the_identity():
    """Padding and truncation of an earlier call, which change no score, change no identity."""
    tokenizer = copy.deepcopy(world.tokenizer())
    before = causal_model(world.model(), tokenizer=tokenizer).identity
    tokenizer(TEXTS, padding=True, truncation=True, max_length=4)
    assert causal_model(world.model(), tokenizer=tokenizer).identity == before


def test_a_setting_of_the_model_is_part_of_its_identity():
    """Equal weights in another number of heads are another model; the folder it came from is none."""
    other = copy.deepcopy(world.model())
    other.config.n_head = 4
    moved = copy.deepcopy(world.model())
    moved.config._name_or_path = "elsewhere"
    identities = [Network(model).identity for model in (world.model(), moved, other)]
    assert identities[0] == identities[1] != identities[2]


def test_texts_that_run_at_once_keep_their_logits_within_the_limit(monkeypatch):
    """Padding included, no call holds more logits than allowed, unless for one text alone."""
    import torch

    shapes = []

    def logits(ids):
        shapes.append(tuple(ids.shape))
        return torch.zeros(*ids.shape, 10)

    monkeypatch.setattr(f"{NETWORKS}._ROOM", 200)  # 20 tokens of 10 logits
    texts = ["ab" * length for length in (1, 12, 3, 2, 5, 4, 1, 1)]
    logs(causal_model(net(logits), tokenizer=letters), texts)
    assert shapes[1:] == [
        (1, 24),
        (2, 10),
        (3, 6),
        (2, 2),
    ]  # after the trial; 24, 10 and 8, 6 and 4 and 2, 2 and 2


# --- Long and short texts --------------------------------------------------------------------------


def test_long_texts_are_refused_with_their_row():
    """A text of more tokens than the model takes is found before the model runs."""
    model = causal_model(world.model(), tokenizer=world.tokenizer())
    with pytest.raises(
        InputError, match=r"member text \(row 11, counting from 0\) must have at most 64 tokens.*got"
    ):
        model.check(records(["short", "z" * 65], first_row=10))
    assert model.check(records(["z" * 64])) == 0


def test_long_texts_may_be_cut_and_are_counted():
    """A cut text scores as its first tokens, its zlib length is of what remains, and the history counts it."""
    long = "日本" * 30  # six tokens for two characters
    losses = collect_texts(
        world.model(),
        tokenizer=world.tokenizer(),
        members=[long, "hello z"],
        nonmembers=["hello q", long],
        score=ZlibRatio(),
        longest=12,
        long_texts=LongTexts.CUT,
    )
    beginning = "日本日本"
    expected = -by_hand([beginning])[0].sum() / len(zlib.compress(beginning.encode()))
    assert losses.member[0] == pytest.approx(expected, rel=1e-12)
    assert "texts cut after 12 tokens (1 member and 1 non-member texts were)" in losses.history[0]


def test_a_zlib_ratio_needs_to_know_what_was_cut():
    """A callable does not tell where tokens end: refused as the score, left out of what is computed by default."""
    kwargs = {"tokenizer": letters, "longest": 3, "long_texts": LongTexts.CUT}
    model = net(lambda ids: ids.new_zeros((*ids.shape, 10)).double())
    with pytest.raises(InputError, match=r"ZlibRatio needs the text"):
        text_scorer(model, score=ZlibRatio(), **kwargs)
    with pytest.raises(InputError, match=r"ZlibRatio needs the text"):
        text_scorer(model, also=[ZlibRatio()], **kwargs)
    assert "zlib_ratio" not in text_scorer(model, **kwargs).score(records(["abcdef"])).more


@pytest.mark.parametrize(("text", "count"), [("", 0), ("z", 1)])
def test_a_text_without_a_second_token_is_refused(text, count):
    """The first token of a text has no log-probability, so one token says nothing."""
    with pytest.raises(InputError, match=rf"nonmember text \(row 1, .*at least 2 tokens, got {count}"):
        collect_texts(
            world.model(), tokenizer=world.tokenizer(), members=TEXTS[:2], nonmembers=[TEXTS[2], text]
        )
