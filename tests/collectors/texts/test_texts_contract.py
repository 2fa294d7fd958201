"""One contract for language models: the same texts give the same losses, however the model is reached."""

import sys

import numpy as np
import pytest
from collectors.texts import world
from collectors.texts.completions_server import serving

from auditor import LossScale
from auditor.collectors import collect_texts
from auditor.collectors.texts import (
    CompletionsEndpoint,
    MeanTokenLoss,
    MinK,
    PromptLogProbs,
    SumTokenLoss,
    ZlibRatio,
    load_language_model,
)

IDS = (["a", "b", "c"], ["d", "e", "f"])
GROUPS = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}
SCORES = (MeanTokenLoss(), SumTokenLoss(), MinK(), MinK(percent=60), ZlibRatio())


@pytest.fixture(autouse=True)
def _needs_frameworks(require_extra):
    require_extra("language")
    require_extra("http")


def transformers(_, score):
    """A model and a tokenizer of transformers."""
    return collect_texts(world.model(), tokenizer=world.tokenizer(), score=score, **GROUPS)


def plain(_, score):
    """A plain module that returns logits, and a callable that returns token ids."""

    def tokens(texts):
        return [world.tokenizer()(text)["input_ids"] for text in texts]

    model = world.net(lambda ids: world.model()(input_ids=ids).logits)
    return collect_texts(model, tokenizer=tokens, score=score, batch_size=1, **GROUPS)


def saved(folder, score):
    """The model from its folder, and a tokenizer of tokenizers."""
    world.model().save_pretrained(folder)
    world.tokenizer().save_pretrained(folder)
    model, tokenizer = load_language_model(folder)
    found = collect_texts(model, tokenizer=tokenizer.backend_tokenizer, score=score, **GROUPS, ids=IDS)
    assert found.id.nonmember.tolist() == IDS[1]
    return found


def echoed(_, score):
    """The model behind an address, by OpenAI's protocol."""
    with serving() as (url, _):
        return collect_texts(CompletionsEndpoint(url, model="tiny"), score=score, **GROUPS)


def prompt_logprobs(_, score):
    """The same by vLLM's, one text at a time."""
    with serving() as (url, _):
        asked = CompletionsEndpoint(url, model="tiny", form=PromptLogProbs(), max_request_records=1)
        return collect_texts(asked, score=score, **GROUPS)


WAYS = (transformers, plain, saved, echoed, prompt_logprobs)


@pytest.fixture(scope="module")
def truth(require_extra):
    """The log-probabilities, one prefix at a time."""
    require_extra("language")
    return world.by_hand()


@pytest.mark.parametrize("score", SCORES, ids=repr)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_gives_the_same_losses(way, score, truth, tmp_path):
    """To 1e-9, far within the 1e-6 of models that give doubles; with their scale, fingerprints and history."""
    losses = way(tmp_path, score)
    expected = [score.of(logs, text=text) for logs, text in zip(truth, world.TEXTS, strict=True)]
    np.testing.assert_allclose(losses.member, expected[:3], rtol=1e-9)
    np.testing.assert_allclose(losses.nonmember, expected[3:], rtol=1e-9)
    assert losses.saturated == (0, 0)
    assert losses.scale is (LossScale.CROSS_ENTROPY if isinstance(score, SumTokenLoss) else LossScale.UNKNOWN)
    assert losses.history[0].startswith(f"{score.words} of ")
    fingerprints = np.concatenate(losses.fingerprint)
    assert np.unique(fingerprints).size == len(world.TEXTS)
    assert not losses.member.flags.writeable


@pytest.mark.parametrize("module", ["torch", "transformers"])
def test_a_missing_package_is_one_sentence_with_the_command(module, monkeypatch, tmp_path):
    """Without PyTorch or transformers, the sentence holds the command that installs them."""
    from auditor import MissingExtraError

    world.model().save_pretrained(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    command = rf"needs {module}, which cannot be imported here: pip install 'privacy-auditor\[language\]'\."
    with pytest.raises(MissingExtraError, match=command):
        load_language_model(tmp_path)
