"""Saved language models: loaded without a pickle, without code of theirs and without the network."""

import json
import socket

import numpy as np
import pytest
from collectors.texts import world

from auditor import InputError
from auditor.collectors.texts import collect_texts, load_language_model


@pytest.fixture(autouse=True)
def _needs_a_framework(require_extra):
    require_extra("language")


@pytest.fixture
def folder(tmp_path):
    """The tiny model and its tokenizer as transformers saves them."""
    world.model().save_pretrained(tmp_path / "saved")
    world.tokenizer().save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Any connection fails the test."""

    def refuse(*_):
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def edited(folder, name, **settings):
    """The folder with more settings in one of its files."""
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    return folder


def test_a_saved_model_scores_as_before(folder, capsys):
    """Weights, precision and tokenizer come back, without a word: the losses are the same bit for bit."""
    texts = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}
    capsys.readouterr()
    model, tokenizer = load_language_model(folder)
    assert capsys.readouterr() == ("", "")
    found = collect_texts(model, tokenizer=tokenizer, **texts)
    expected = collect_texts(world.model(), tokenizer=world.tokenizer(), **texts)
    np.testing.assert_array_equal(found.member, expected.member)
    np.testing.assert_array_equal(found.nonmember, expected.nonmember)
    assert not model.training


def test_weights_in_a_pickle_are_refused(folder):
    """A folder with pytorch_model.bin instead of safetensors is not read."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"no weights in safetensors files, only 'pytorch_model.bin', and loading"
    ):
        load_language_model(folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_is_never_run(folder, file):
    """A model or tokenizer that names classes of its own is refused, and its module is not imported."""
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    edited(
        folder,
        file,
        auto_map={"AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]},
    )
    with pytest.raises(InputError, match=rf"file '{file}' names code that comes with the model"):
        load_language_model(folder)


def test_a_model_of_unknown_kind_is_one_sentence(folder):
    """What transformers cannot build is refused without the folder's path."""
    edited(folder, "config.json", model_type="never-heard-of", architectures=["Never"])
    with pytest.raises(
        InputError, match=r"^folder 'saved' could not be loaded as a causal language model: "
    ) as error:
        load_language_model(folder)
    assert "\n" not in str(error.value)
    assert str(folder.parent) not in str(error.value)


def test_damaged_files_are_one_sentence(folder):
    """Truncated weights and settings that are no JSON are refused."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match=r"could not be loaded"):
        load_language_model(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"file 'config.json' must be JSON"):
        load_language_model(folder)


def test_weights_that_do_not_fit_are_refused(folder):
    """A file without some of the model's weights is no model: random numbers would be audited in their place."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        InputError, match=r"lacks 1 weights of GPT2LMHeadModel.*transformer\.h\.1\.mlp\.c_fc\.weight"
    ):
        load_language_model(folder)


def test_what_is_no_saved_model_is_refused(folder):
    """The name of a model to download, a folder without settings and an adapter are refused in a sentence."""
    with pytest.raises(InputError, match=r"folder 'gpt2' must be there.*models are not downloaded"):
        load_language_model("gpt2")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds an adapter"):
        load_language_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"has no config\.json"):
        load_language_model(folder)
