"""Saved language models: loaded without a pickle, without code of theirs and without the network."""

import json
import socket

import pytest
from collectors.common import refused
from collectors.texts import world

from auditor.collectors.texts import load_language_model


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


def test_a_saved_model_is_loaded_without_a_word(folder, capsys):
    """It is there for prediction, with its tokenizer, and nothing is printed."""
    capsys.readouterr()
    model, tokenizer = load_language_model(folder)
    assert capsys.readouterr() == ("", "")
    assert not model.training
    assert tokenizer("a b")["input_ids"] == world.tokenizer()("a b")["input_ids"]


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_is_never_run(folder, file):
    """A model or tokenizer that names classes of its own is refused, and its module is not imported."""
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    code = {"AutoModelForCausalLM": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]}
    settings = json.loads((folder / file).read_text()) | {"auto_map": code}
    (folder / file).write_text(json.dumps(settings))
    with refused(rf"file '{file}' makes transformers look for code or files elsewhere .*auto_map"):
        load_language_model(folder)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.safetensors", None, "model with safetensors files, .*no file named model.safetensors"),
        (
            "config.json",
            '{"model_type": "never-heard-of"}',
            "must be a causal language model .*never-heard-of",
        ),
        ("model.safetensors", "half of it", "must be a causal language model .*deserializing"),
        ("config.json", None, "must be a causal language model"),
        ("config.json", "{", "file 'config.json' must be JSON"),
        ("adapter_config.json", "{}", "holds an adapter"),
    ],
)
def test_what_is_no_whole_model_is_one_sentence(folder, name, content, words):
    """Weights in a pickle, damaged files and models of unknown kinds are refused without the folder's path."""
    (folder / name).write_text(content) if content else (folder / name).rename(folder / "pytorch_model.bin")
    with refused(words) as error:
        load_language_model(folder)
    assert "\n" not in str(error.value)
    assert str(folder.parent) not in str(error.value)


def test_weights_that_do_not_fit_are_refused(folder):
    """A file without some of the model's weights is no model: random numbers would be audited in their place."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with refused(r"lacks 1 weights of GPT2LMHeadModel.*transformer\.h\.1\.mlp\.c_fc\.weight"):
        load_language_model(folder)


def test_the_name_of_a_model_to_download_is_refused():
    """Only a folder is read."""
    with refused(r"folder 'gpt2' must be there.*models are not downloaded"):
        load_language_model("gpt2")
