"""Where a model's folder says that its weights and its code lie: only ordinary files in that folder are ever opened."""

import contextlib
import json
import os
import shutil
import socket
import sys
import types

import numpy as np
import pytest
from collectors.common import QUIET, refused
from collectors.texts import world

from auditor import InputError, MissingExtraError
from auditor.collectors import Classification, collect, collect_texts, load_language_model
from auditor.collectors.base import Records
from auditor.collectors.models import load_model
from auditor.collectors.streaming import predictor

pytestmark = QUIET
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 40)
WEIGHTS = RNG.normal(size=(4, 3)).astype(np.float32)


# --- Entries: how each names a file, and what lies there ------------------------------------------------


ELSEWHERE = {
    "parent": "../outside/{name}",
    "through a folder": "inner/../../outside/{name}",
    "absolute": "{outside}/{name}",
    "absolute, within": "{folder}/{name}",
    "link": "linked",
    "linked folder": "sub/{name}",
    "circle of links": "a",
    "missing": "missing.bin",
    "folder": "inner",
    "fifo": "fifo",
    "device": "/dev/zero",
    "backslashes": "..\\outside\\{name}",
    "drive": "C:{name}",
    "empty": "",
    "dot": ".",
    "NUL": "{name}\0",
    "memory": "*/_ORT_MEM_ADDR_/*",  # by which a runtime knows a place in memory
}


def laid(entry, folder, outside, name):
    """How an entry names a file, once what it leads to lies there."""
    found = ELSEWHERE[entry].format(name=name, folder=folder, outside=outside)
    match entry:
        case "absolute, within" | "NUL" | "drive":
            shutil.copy(outside / name, folder / name)
        case "link":
            (folder / found).symlink_to(outside / name)
        case "linked folder":
            (folder / "sub").symlink_to(outside, target_is_directory=True)
        case "circle of links":
            (folder / "a").symlink_to("b")
            (folder / "b").symlink_to("a")
        case "fifo":
            os.mkfifo(folder / found)
        case "folder" | "through a folder":
            (folder / "inner").mkdir()
        case "memory":
            (folder / found).parent.mkdir(parents=True)
            shutil.copy(outside / name, folder / found)
    return found


@pytest.fixture
def house(tmp_path):
    """The folder of a model, and one of somebody else."""
    for name in ("model", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "w.bin").write_bytes(WEIGHTS.tobytes())
    return tmp_path / "model", tmp_path / "outside"


# --- ONNX ---------------------------------------------------------------------------------------------


def _graph(tensor, kind):
    """A linear classifier whose weights are an initializer, a constant, or of an inner graph."""
    from onnx import TensorProto, helper

    value, node = helper.make_tensor_value_info, helper.make_node
    into, out = value("x", TensorProto.FLOAT, [None, 4]), value("logits", TensorProto.FLOAT, [None, 3])
    if kind == "initializer":
        nodes, tensors = [node("MatMul", ["x", "w"], ["logits"])], [tensor]
    elif kind == "constant":
        nodes, tensors = (
            [node("Constant", [], ["w"], value=tensor), node("MatMul", ["x", "w"], ["logits"])],
            [],
        )
    else:
        one = helper.make_graph(
            [node("MatMul", ["x", "w"], ["y"])], "one", [], [value("y", TensorProto.FLOAT, None)], [tensor]
        )
        yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
        nodes = [
            node("Constant", [], ["c"], value=yes),
            node("If", ["c"], ["logits"], then_branch=one, else_branch=one),
        ]
        tensors = []
    return helper.make_graph(nodes, "linear", [into], [out], tensors)


def onnx_model(folder, location, *, kind="initializer"):
    """The file of a model whose weights lie at a location."""
    from onnx import TensorProto, helper

    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=WEIGHTS.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value=str(WEIGHTS.nbytes))
    model = helper.make_model(_graph(tensor, kind), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize("kind", ["initializer", "constant", "inner graph"])
@pytest.mark.parametrize("entry", ELSEWHERE)
def test_weights_of_an_onnx_model_lie_in_its_folder(house, require_extra, entry, kind, capfd):
    """Wherever else an entry leads, and wherever in the graph it stands, the sentence names the file and the entry."""
    require_extra("onnx")
    folder, outside = house
    location = laid(entry, folder, outside, "w.bin")
    path = onnx_model(folder, location, kind=kind)
    capfd.readouterr()
    with refused(r"^file 'm.onnx' reads '.*', which must be an ordinary file in its own folder") as error:
        load_model(path)
    assert repr(location) in str(error.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "inner/w.bin", "linked"])
@pytest.mark.parametrize("kind", ["initializer", "constant", "inner graph"])
def test_weights_in_the_folder_of_an_onnx_model_are_read(house, require_extra, location, kind):
    """Beside the model, in a folder within, or by a link within, they give the losses of the weights."""
    require_extra("onnx")
    if (location, kind) == ("linked", "inner graph"):
        pytest.skip("onnxruntime itself follows no link from an inner graph")
    folder, outside = house
    (folder / "inner").mkdir()
    shutil.copy(outside / "w.bin", folder / "w.bin")
    shutil.copy(outside / "w.bin", folder / "inner" / "w.bin")
    (folder / "linked").symlink_to("inner/w.bin")
    model = onnx_model(folder, location, kind=kind)
    z = X.astype(np.float64) @ WEIGHTS
    own = z[np.arange(40), Y]
    want = np.log(np.exp(z).sum(axis=1) - np.exp(own)) - own
    losses = collect(model, members=(X[:20], Y[:20]), nonmembers=(X[20:], Y[20:]))
    np.testing.assert_allclose(losses.member, want[:20], atol=1e-4)


@pytest.mark.parametrize(
    ("version", "old"), [("1.24.0", 1), ("1.9.2", 1), ("1.24.1", 0), ("1.30.0+cpu", 0), ("2.0.0rc1", 0)]
)
def test_an_older_runtime_is_refused(house, require_extra, monkeypatch, version, old):
    """Before 1.24.1 onnxruntime follows links out of the folder and reads memory by name: the sentence says what to install."""
    require_extra("onnx")
    import onnxruntime

    folder, outside = house
    shutil.copy(outside / "w.bin", folder / "w.bin")
    monkeypatch.setattr(onnxruntime, "__version__", version)
    if old:
        with pytest.raises(
            MissingExtraError, match=rf"needs onnxruntime 1.24.1 or later, got {version}, .*--upgrade"
        ):
            load_model(onnx_model(folder, "w.bin"))
    else:
        load_model(onnx_model(folder, "w.bin"))


def test_the_weights_of_an_onnx_model_are_those_beside_it(tmp_path, require_extra):
    """Another number in the file of weights makes another model."""
    require_extra("onnx")
    paths = []
    for name, scale in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.bin").write_bytes((scale * WEIGHTS).tobytes())
        paths.append(onnx_model(tmp_path / name, "w.bin"))
    assert len({path.read_bytes() for path in paths}) == 1
    sample = (Records("member", X, Y),)
    one, other = (predictor(load_model(path), task=Classification(), sample=sample) for path in paths)
    np.testing.assert_allclose(2 * one.predict(sample[0]), other.predict(sample[0]), rtol=1e-6)


def test_weights_of_an_onnx_model_are_found_wherever_a_tensor_can_be(house, require_extra):
    """In functions, sparse tensors, behind unknown groups, and under names that are no text."""
    require_extra("onnx")
    from onnx import ModelProto, TensorProto, helper

    folder, _ = house
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../w.bin")
    constant = helper.make_node("Constant", [], ["a"], value=tensor)
    plain, in_function, in_sparse = (
        helper.make_model(helper.make_graph(nodes, "graph", [], [])) for nodes in ([constant], [], [])
    )
    in_function.functions.add(name="f").node.add().CopyFrom(constant)
    in_sparse.graph.sparse_initializer.add().indices.CopyFrom(tensor)
    contents = [model.SerializeToString() for model in (plain, in_function, in_sparse)]
    contents.append(contents[0].replace(b"../w.bin", b"\xffalues//"))
    group = bytes([200 << 3 & 0x7F | 0x80 | 3, 200 >> 4, 200 << 3 & 0x7F | 0x80 | 4, 200 >> 4])
    contents.append(group + contents[0])
    ModelProto.FromString(contents[-1])
    for content in contents:
        (folder / "m.onnx").write_bytes(content)
        with refused(r"^file 'm.onnx' reads .*must be an ordinary file in its own"):
            load_model(folder / "m.onnx")


# --- Language models ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory, require_extra):
    """The tiny model as transformers saves it, whole and in shards."""
    require_extra("language")
    folder = tmp_path_factory.mktemp("saved")
    for name, size in (("whole", "1GB"), ("shards", "20KB")):
        world.model().save_pretrained(folder / name, max_shard_size=size)
        world.tokenizer().save_pretrained(folder / name)
    assert len(list((folder / "shards").glob("model-*.safetensors"))) > 1
    return folder


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Any connection fails the test."""

    def refuse(*_):
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def losses_of(folder):
    """The losses of the tiny model in a folder."""
    model, tokenizer = load_language_model(folder)
    return collect_texts(
        model, tokenizer=tokenizer, members=world.TEXTS[:3], nonmembers=world.TEXTS[3:]
    ).member


@pytest.mark.parametrize("name", ["whole", "shards"])
def test_an_honest_folder_loads_as_before(saved, name):
    """Whole or in shards, by a relative path too, it gives the losses of the model that was saved, and is left offline no more."""
    import huggingface_hub.constants as hub

    before = {key: value for key, value in os.environ.items() if "OFFLINE" in key}, hub.HF_HUB_OFFLINE
    expected = [-logs.mean() for logs in world.by_hand(world.TEXTS[:3])]
    np.testing.assert_allclose(losses_of(saved / name), expected, atol=1e-9)
    assert (
        {key: value for key, value in os.environ.items() if "OFFLINE" in key},
        hub.HF_HUB_OFFLINE,
    ) == before


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("entry", ELSEWHERE)
def test_shards_of_a_language_model_lie_in_its_folder(saved, house, entry, every):
    """An index that names weights of another model, for one tensor or all, is refused with the entry."""
    folder, outside = house
    shutil.copytree(saved / "shards", folder, dirs_exist_ok=True)
    shutil.copy(saved / "whole" / "model.safetensors", outside / "w.safetensors")
    location = laid(entry, folder, outside, "w.safetensors")
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    names = list(content["weight_map"])
    content["weight_map"].update(dict.fromkeys(names if every else names[:1], location))
    index.write_text(json.dumps(content))
    with refused(
        r"^(file 'model.safetensors.index.json'|folder 'model') reads '.*', which must be an ordinary file"
    ) as error:
        load_language_model(folder)
    assert repr(location) in str(error.value) or "link" in entry or entry == "fifo"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"weight_map": 3}',
        '{"weight_map": {"a": 7}}',
        '{"weight_map": {"a": null}}',
        '{"weight_map": {"a": ["x"]}}',
        "{",
    ],
)
def test_an_index_that_is_none_is_one_sentence(saved, house, content):
    """Whatever stands in place of the map or of a name, the sentence names the file."""
    folder, _ = house
    shutil.copytree(saved / "shards", folder, dirs_exist_ok=True)
    (folder / "model.safetensors.index.json").write_text(content)
    with refused("^file 'model.safetensors.index.json' (reads|must be)"):
        load_language_model(folder)


@pytest.mark.parametrize("kind", ["link", "fifo", "circle"])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_files_of_a_language_model_are_its_own(saved, house, name, kind):
    """A link to another model's file, or what is no file, is refused by its name before anything is opened."""
    folder, _ = house
    shutil.copytree(saved / "whole", folder, dirs_exist_ok=True)
    (folder / name).unlink()
    if kind == "fifo":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(saved / "whole" / name if kind == "link" else folder / name)
    with refused(rf"^folder 'model' reads '{name}', which must be an ordinary file .*no link"):
        load_language_model(folder)


CODE = {
    "attn_implementation": "evil/kernel",
    "_attn_implementation": "evil/kernel@main:function",
    "_attn_implementation_internal": "kernels-community/flash-attn2",
    "attn_implementation ": {"": "eager", "text_config": "evil/kernel"},
    "attn_implementation  ": "flash_attention_2",
    "attn_implementation   ": ["evil/kernel"],
    "experts_implementation": "sonicmoe",
    "_experts_implementation": {"text_config": "deepgemm"},
    "auto_map": {"AutoModelForCausalLM": "evil.Model"},
    "quantization_config": {"quant_method": "mxfp4"},
    "configuration_files": ["config.1.0.0.json"],
    "fast_tokenizer_files": ["../outside/tokenizer.1.0.json"],
    "transformers_weights": "../outside/w.safetensors",
}
DEPTHS = {
    "top": lambda inner: inner,
    "nested": lambda inner: {"text_config": inner},
    "deep": lambda inner: {"a": {"b": [{"c": inner}]}},
    "of a layer": lambda inner: {"per_layer_config": {"0": inner}},
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", CODE)
def test_settings_that_name_code_or_other_files_are_refused(saved, house, name, depth, monkeypatch):
    """At any depth and in any file of settings, by one sentence that names file and setting, before a kernel is requested."""
    folder, _ = house
    asked = types.ModuleType("kernels")
    asked.get_kernel = lambda *_, **__: pytest.fail("a kernel was requested")
    monkeypatch.setitem(sys.modules, "kernels", asked)
    shutil.copytree(saved / "whole", folder, dirs_exist_ok=True)
    for file in ("config.json", "tokenizer_config.json", "generation_config.json"):
        before = (folder / file).read_text()
        changed = json.loads(before) | DEPTHS[depth]({name.strip(): CODE[name]})
        (folder / file).write_text(json.dumps(changed))
        with refused(rf"^file '{file}' makes transformers look for code or files elsewhere .*{name.strip()}"):
            load_language_model(folder)
        (folder / file).write_text(before)


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", ["eager", "sdpa", None, {"": "eager"}])
def test_ways_to_compute_that_come_with_transformers_are_no_code(saved, house, name, value):
    """A model whose settings name a built-in way loads, and gives the same losses."""
    folder, _ = house
    shutil.copytree(saved / "whole", folder, dirs_exist_ok=True)
    settings = json.loads((folder / "config.json").read_text())
    extra = {name: value, "_attn_implementation_autoset": True}
    (folder / "config.json").write_text(json.dumps(settings | extra))
    np.testing.assert_allclose(losses_of(folder), losses_of(saved / "whole"), atol=1e-9)


@pytest.mark.parametrize("given", [None, "0"])
def test_no_server_of_the_hub_is_asked_while_a_model_is_loaded(saved, monkeypatch, given):
    """The hub's library is offline in the load although it was imported before and the environment says otherwise, and not after."""
    import huggingface_hub.constants as hub
    import transformers

    seen = []
    load = transformers.AutoModelForCausalLM.from_pretrained

    def watched(*args, **kwargs):
        variables = [os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")]
        seen.append((hub.is_offline_mode(), transformers.utils.hub.is_offline_mode(), *variables))
        return load(*args, **kwargs)

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", watched)
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", given) if given else monkeypatch.delenv(
        "HF_HUB_OFFLINE", raising=False
    )
    load_language_model(saved / "whole")
    assert seen == [(True, True, "1", "1")]
    assert not hub.is_offline_mode()
    assert (os.environ.get("HF_HUB_OFFLINE"), os.environ.get("TRANSFORMERS_OFFLINE")) == (given, None)


def test_values_of_settings_reach_no_terminal(saved, house, capfd):
    """A value that transformers would log, or name in its error, comes without codes and commands, if at all."""
    from safety import formats
    from safety.texts import ORDERS

    folder, _ = house
    shutil.copytree(saved / "whole", folder, dirs_exist_ok=True)
    settings = json.loads((folder / "config.json").read_text())
    for name, value in (
        ("use_return_dict", ORDERS),
        ("model_type", ORDERS),
        ("rope_scaling", {"type": ORDERS}),
        (ORDERS, 1),
        ("activation_function", ORDERS),
        ("dtype", ORDERS),
    ):
        (folder / "config.json").write_text(json.dumps(settings | {name: value}))
        with contextlib.suppress(InputError):
            load_language_model(folder)
        said = capfd.readouterr()
        assert said.out == ""
        assert formats.commands(said.err) == []
        assert formats.UNSAFE.search(said.err) is None


# --- What is no whole language model ------------------------------------------------------------------


@pytest.fixture
def folder(saved, house):
    """A copy of the whole model."""
    shutil.copytree(saved / "whole", house[0], dirs_exist_ok=True)
    return house[0]


def test_a_saved_model_is_loaded_without_a_word(folder, capsys):
    """It is there for prediction, with its tokenizer, and nothing is printed."""
    capsys.readouterr()
    model, tokenizer = load_language_model(folder)
    assert capsys.readouterr() == ("", "")
    assert not model.training
    assert tokenizer("a b")["input_ids"] == world.tokenizer()("a b")["input_ids"]


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"peft_type": "XLORA"},
            "must be of LoRA with its weights in adapter_model.safetensors, got 'XLORA'",
        ),
        (
            {"base_model_name_or_path": "org/gone"},
            "holds an adapter for a model that must be in a folder here, got 'gone'",
        ),
        ({"base_model_name_or_path": None}, "must be in a folder here, got ''; name its folder with base="),
        ({"megatron_config": {"a": 1}}, "makes transformers look for code or files elsewhere"),
        ({"base_model_name_or_path": "whole"}, "loading an adapter needs peft"),
    ],
)
def test_an_adapter_names_a_model_in_a_folder_here(saved, house, monkeypatch, settings, words):
    """An adapter of another kind, without its model, or with code, and a missing package, are one sentence each."""
    folder, _ = house
    monkeypatch.chdir(saved)
    monkeypatch.setitem(sys.modules, "peft", None)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", **settings}))
    (folder / "adapter_model.safetensors").touch()
    with pytest.raises((InputError, MissingExtraError), match=words):
        load_language_model(folder)
    with refused("base must be left out for folder 'whole', which holds no adapter_config.json"):
        load_language_model(saved / "whole", base=folder)


@pytest.mark.filterwarnings("ignore:fan_in_fan_out", "ignore:`is_gradient_checkpointing`")
def test_an_adapter_is_scored_as_the_model_that_it_is_merged_into(saved, house, capsys):
    """In memory, from its folder and merged, a LoRA adapter gives the same losses; one without some weights is refused."""
    peft = pytest.importorskip("peft")
    from safetensors.numpy import load_file, save_file

    folder, _ = house
    model, tokenizer = load_language_model(saved / "whole")
    config = peft.LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False, task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    adapted.save_pretrained(folder)
    capsys.readouterr()
    both = [(adapted, tokenizer), load_language_model(folder, base=saved / "whole")]
    assert capsys.readouterr() == ("", "")
    groups = {"members": world.TEXTS[:3], "nonmembers": world.TEXTS[3:]}
    found = [collect_texts(item, tokenizer=own, **groups).member for item, own in both]
    merged = collect_texts(adapted.merge_and_unload(), tokenizer=tokenizer, **groups).member
    np.testing.assert_allclose(found, [merged, merged], atol=1e-4)
    assert np.abs(merged - losses_of(saved / "whole")).max() > 0.01
    weights = load_file(folder / "adapter_model.safetensors")
    weights.pop(min(weights))
    save_file(weights, folder / "adapter_model.safetensors")
    with refused("must be an adapter of this base model.*missing adapter keys"):
        load_language_model(folder, base=saved / "whole")


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
