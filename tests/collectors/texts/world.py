"""A tiny language model, its tokenizer and some texts, built here."""

import functools

import numpy as np

from auditor.collectors.base import Records

TEXTS = [
    "the cat sat on the mat",
    "hello, q",
    "a much longer text, with the cat and the mat and the cat and the mat and more of the cat",
    "nothing of it, ever",
    "日本 and é",
    "zzz zzz zzz zzz zzz",
]
LIMIT = 64


@functools.cache
def tokenizer(*, bos=False):
    """A byte-level tokenizer of transformers; with ``bos`` it begins every text with a special token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "<pad>"], initial_alphabet=alphabet, show_progress=False
    )
    own.train_from_iterator(["the cat sat on the mat", "hello and nothing of it"] * 3, trainer)
    if bos:
        own.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    special = {"bos_token": "<s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=own, **special)


@functools.cache
def model():
    """A GPT-2 of two tiny layers in double precision, with weights large enough to prefer some tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    size = {"vocab_size": len(tokenizer()), "n_positions": LIMIT, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = GPT2Config(**size, bos_token_id=0, eos_token_id=0, initializer_range=0.5)
    return GPT2LMHeadModel(config).double().eval()


def logs_by_hand(network, ids):
    """The log-probability of every token but the first, one prefix at a time: slow and obvious."""
    import torch

    found = []
    for end in range(1, len(ids)):
        with torch.no_grad():
            logits = network(input_ids=torch.tensor([ids[:end]])).logits[0, -1].double().numpy()
        shifted = logits - logits.max()
        found.append(shifted[ids[end]] - np.log(np.exp(shifted).sum()))
    return np.array(found)


def by_hand(texts=TEXTS, *, bos=False):
    """Those of each text by the tiny model."""
    return [logs_by_hand(model(), tokenizer(bos=bos)(text)["input_ids"]) for text in texts]


def records(texts=TEXTS, first_row=0):
    """Texts as a batch of members."""
    return Records("member", list(texts), np.zeros(len(texts)), first_row)


def net(function):
    """A module that computes logits from token ids by a function."""
    import torch

    class Net(torch.nn.Module):
        def forward(self, ids):
            return function(ids)

    return Net()


def letters(texts):
    """A tokenizer of the ten letters a to j."""
    return [[ord(letter) - ord("a") for letter in text] for text in texts]


def logs(causal, texts=TEXTS):
    """The log-probabilities of each text, as a causal model reads them."""
    return [item.log_probabilities for item in causal.read(records(texts))]


def equal(found, expected, tolerance=1e-12):
    """Compare lists of arrays."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
