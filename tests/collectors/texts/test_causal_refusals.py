"""Objects that are not causal models, tokenizers or texts, and objects that are without looking like it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import refused
from collectors.texts import world
from collectors.texts.world import letters, net, records

from auditor.collectors import collect_texts
from auditor.collectors.base import Records
from auditor.collectors.texts import CausalModel, MinK, passages

TEXTS = world.TEXTS


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


def test_an_encoder_and_a_translator_are_refused():
    """BERT without a decoder's mask and T5 are no causal models."""
    from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    bert = BertConfig(vocab_size=50, **size, initializer_range=1.0)
    with refused(r"change with tokens to come"):
        CausalModel(BertForMaskedLM(bert), tokenizer=letters)
    t5 = T5Config(vocab_size=50, d_model=8, d_kv=8, d_ff=8, num_layers=1, num_heads=1)
    with refused(r"must take token ids of shape .* T5ForConditionalGeneration refused"):
        CausalModel(T5ForConditionalGeneration(t5), tokenizer=letters)


LATER = "change with tokens to come"  # as in a bidirectional encoder, where it is no prediction of the next


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (None, "must be a causal language model of PyTorch or transformers, .*got str"),
        (lambda ids: ids, r"logits of shape \(texts, tokens, vocabulary\).*got \(2, 4\) from Net"),
        (lambda _: 1 / 0, r"Net refused \(2, 4\): division by zero\."),
        (lambda ids: ids.double().mean(dim=1, keepdim=True)[..., None].expand(*ids.shape, 10), LATER),
    ],
)
def test_what_is_no_model_is_refused(function, words):
    """One sentence says what a model must be."""
    with refused(words):
        CausalModel("gpt2" if function is None else net(function), tokenizer=letters)


def test_nan_is_refused_with_its_text_and_token():
    """The sentence names the record and the token."""
    import torch

    model = net(lambda ids: torch.where(ids[..., None] == 7, torch.nan, torch.zeros(10)))
    with refused(r"member text \(row 1, .*got nan for token 2"):
        CausalModel(model, tokenizer=letters).read(records(["abc", "aha"]))


@pytest.mark.parametrize(
    ("tokenizer", "sentence"),
    [
        (None, "tokenizer must be one of transformers or tokenizers, .*got NoneType"),
        (lambda texts: [["a"] for _ in texts], "a list of whole token ids for each text, got list"),
        (lambda _: [[1, 2]], "one list of token ids for each of 2 texts, got 1"),
        (lambda _: 1 / 0, "the tokenizer failed on 2 texts: ZeroDivisionError: division by zero"),
        (lambda _: [[1, 2], [3, 10]], r"member text \(row 1, .*has the token id 10, .*ids from 0 to 9"),
        (lambda _: [[1, 2], [-1, 0]], "has the token id -1"),
    ],
)
def test_what_is_no_tokenizer_is_refused(tokenizer, sentence):
    """One sentence says what the tokenizer must return, or that it belongs to another model."""
    import torch

    model = net(lambda ids: torch.zeros(*ids.shape, 10))
    with refused(sentence):
        CausalModel(model, tokenizer=tokenizer).read(records(["ab", "cd"]))


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ("one text", r"member X must be an array"),
        (["one"], r"members must hold at least 2 records, got 1 from list; give more"),
        (["one", None], r"member texts must be strings, got a missing value \(row 1"),
        (pd.Series(["one", pd.NA], dtype="string"), r"got a missing value \(row 1"),
        (["one", 3], r"got int \(row 1"),
        (["one", "\ud800"], r"must be valid Unicode, got half of a surrogate pair \(row 1"),
        (np.array([["a", "b"], ["c", "d"]]), r"one column of strings, got shape \(2, 2\)"),
    ],
)
def test_what_are_no_texts_is_refused(members, sentence):
    """One sentence names the group and the record."""
    with refused(sentence):
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
    read = passages(Records("member", kind(TEXTS), np.zeros(len(TEXTS))))
    assert [item.text for item in read] == [item.scored for item in read] == TEXTS


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"score": "median"}, "score must be one of .mean., .sum., .min-k., .zlib."),
        ({"score": MinK}, "score must be"),
        ({"long_texts": "shorten"}, "long_texts must be"),
        ({"longest": 1}, "longest must be"),
        ({"ids": (["a"], ["b", "c", "d", "e"])}, "member texts has 2, member ids has 1"),
        ({"groups": ["a"]}, "groups must be a pair"),
    ],
)
def test_a_choice_that_is_none_is_refused(choice, words):
    """Scores are values, a limit is two tokens or more, and there is an id for each text."""
    groups = {"members": TEXTS[:2], "nonmembers": TEXTS[2:]}
    with refused(words):
        collect_texts(world.model(), tokenizer=world.tokenizer(), **groups, **choice)
