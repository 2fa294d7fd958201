"""What is no causal model, no tokenizer and no text, and what is one without looking like it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.texts import world
from collectors.texts.world import letters, net, records

from auditor import InputError
from auditor.collectors.base import Records
from auditor.collectors.texts import MinK, causal_model, collect_texts, plain_texts

TEXTS = world.TEXTS


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def logs(model, texts=TEXTS):
    """The log-probabilities of each text."""
    return [item.log_probabilities for item in model.read(records(texts))]


def equal(found, expected, tolerance=1e-12):
    """Compare lists of arrays."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


def test_a_plain_module_and_a_callable_tokenizer_will_do():
    """Logits that depend on the last token only give the log-probabilities of a table."""
    import torch

    table = torch.from_numpy(np.random.default_rng(0).normal(size=(10, 10)))
    found = logs(causal_model(net(lambda ids: table[ids]), tokenizer=letters), ["abba", "jig"])
    exact = torch.log_softmax(table, dim=1).numpy()
    equal(found, [[exact[0, 1], exact[1, 1], exact[1, 0]], [exact[9, 8], exact[8, 6]]])


def test_an_excluded_token_is_saturated():
    """A logit of -inf excludes a token; a text that has it is counted and placed at the end of the scale."""
    import torch

    def logits(ids):
        return torch.zeros(*ids.shape, 10).index_fill(2, torch.tensor([5]), -torch.inf)

    losses = collect_texts(net(logits), tokenizer=letters, members=["ab", "abc"], nonmembers=["af", "ba"])
    assert losses.saturated == (0, 1)
    assert losses.nonmember[0] >= losses.member.max()
    assert np.isfinite(losses.nonmember).all()


def test_nan_is_refused_with_its_text_and_token():
    """The sentence names the record and the token."""
    import torch

    def logits(ids):
        return torch.where(ids[..., None] == 7, torch.nan, torch.zeros(10))

    with pytest.raises(InputError, match=r"member text \(row 1, .*got nan for token 2"):
        causal_model(net(logits), tokenizer=letters).read(records(["abc", "aha"]))


def test_a_model_that_sees_tokens_to_come_is_refused():
    """The mean of all tokens, as in a bidirectional encoder, is no prediction of the next."""

    def logits(ids):
        return ids.double().mean(dim=1, keepdim=True)[..., None].expand(*ids.shape, 10)

    with pytest.raises(InputError, match=r"change with tokens to come"):
        causal_model(net(logits), tokenizer=letters)


def test_an_encoder_and_a_translator_are_refused():
    """BERT without a decoder's mask and T5 are no causal models."""
    from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

    bert = BertConfig(
        vocab_size=50,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        initializer_range=1.0,
    )
    with pytest.raises(InputError, match=r"change with tokens to come"):
        causal_model(BertForMaskedLM(bert), tokenizer=letters)
    t5 = T5Config(vocab_size=50, d_model=8, d_kv=8, d_ff=8, num_layers=1, num_heads=1)
    with pytest.raises(InputError, match=r"translates one text into another"):
        causal_model(T5ForConditionalGeneration(t5), tokenizer=letters)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("gpt2", r"must be a causal language model of PyTorch or transformers, .*got str"),
        (
            lambda: net(lambda ids: ids),
            r"logits of shape \(texts, tokens, vocabulary\).*got \(2, 4\) from Net",
        ),
        (lambda: net(lambda _: "no"), r"got str from Net"),
        (lambda: net(lambda _: 1 / 0), r"Net refused \(2, 4\): division by zero\."),
    ],
)
def test_what_is_no_model_is_refused(model, sentence):
    """One sentence says what a model must be."""
    with pytest.raises(InputError, match=sentence):
        causal_model(model if isinstance(model, str) else model(), tokenizer=letters)


@pytest.mark.parametrize(
    ("tokenizer", "sentence"),
    [
        (None, r"tokenizer must be one of transformers or tokenizers, .*got NoneType"),
        (
            lambda texts: [["a"] for _ in texts],
            r"must return a list of whole token ids for each text, got list",
        ),
        (lambda _: [[1, 2]], r"one list of token ids for each of 2 texts, got 1"),
        (lambda _: 1 / 0, r"the tokenizer failed on 2 texts: ZeroDivisionError: division by zero"),
        (lambda _: [[1, 2], [3, 10]], r"member text \(row 1, .*has the token id 10, .*ids from 0 to 9"),
        (lambda _: [[1, 2], [-1, 0]], r"has the token id -1"),
    ],
)
def test_what_is_no_tokenizer_is_refused(tokenizer, sentence):
    """One sentence says what the tokenizer must return, or that it belongs to another model."""
    import torch

    with pytest.raises(InputError, match=sentence):
        causal_model(net(lambda ids: torch.zeros(*ids.shape, 10)), tokenizer=tokenizer).read(
            records(["ab", "cd"])
        )


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ("one text", r"member X must be an array"),
        (["one"], r"members must hold at least 2 texts, got 1"),
        (["one", None], r"member texts must be strings, got a missing value \(row 1"),
        (["one", float("nan")], r"got a missing value"),
        (pd.Series(["one", pd.NA], dtype="string"), r"got a missing value \(row 1"),
        (["one", 3], r"got int \(row 1"),
        (["one", "\ud800"], r"must be valid Unicode, got half of a surrogate pair \(row 1"),
        (np.array([["a", "b"], ["c", "d"]]), r"one column of strings, got shape \(2, 2\)"),
    ],
)
def test_what_are_no_texts_is_refused(members, sentence):
    """One sentence names the group and the record."""
    with pytest.raises(InputError, match=sentence):
        collect_texts(world.model(), tokenizer=world.tokenizer(), members=members, nonmembers=["a b", "c d"])


@pytest.mark.parametrize(
    "kind",
    [
        tuple,
        np.array,
        lambda texts: np.array(texts)[:, None],
        pd.Series,
        lambda texts: pd.DataFrame({"t": texts}),
        pa.array,
        lambda texts: pa.chunked_array([texts[:2], texts[2:]]),
    ],
)
def test_texts_come_in_any_column(kind):
    """A tuple, an array, a column of a table and a table of one column are the same texts."""
    assert plain_texts(Records("member", kind(TEXTS), np.zeros(len(TEXTS)))) == TEXTS


def test_per_record_labels_must_match_the_texts():
    """Ids of another number than texts are refused before the model runs."""
    with pytest.raises(InputError, match=r"member texts has 2, member ids has 1"):
        collect_texts(
            world.model(),
            tokenizer=world.tokenizer(),
            members=TEXTS[:2],
            nonmembers=TEXTS[2:],
            ids=(["a"], ["b", "c", "d", "e"]),
        )
    with pytest.raises(InputError, match=r"groups must be a pair"):
        collect_texts(
            world.model(), tokenizer=world.tokenizer(), members=TEXTS, nonmembers=TEXTS, groups=["a"]
        )


@pytest.mark.parametrize(
    "choice", [{"score": "mean"}, {"score": MinK}, {"long_texts": "shorten"}, {"longest": 1}]
)
def test_a_choice_that_is_none_is_refused(choice):
    """Scores are values, and a limit is two tokens or more."""
    with pytest.raises(InputError, match=r"(score|long_texts|longest) must be"):
        collect_texts(world.model(), tokenizer=world.tokenizer(), members=TEXTS, nonmembers=TEXTS, **choice)
