"""PyTorch modules: scored as for prediction, and left exactly as they were.

The module runs in evaluation mode and without gradients, on the device and in the type of its parameters; the mode of
every part, the random state and everything else is afterwards what it was, also if the call fails. Random numbers, in
a module that draws some even then, come from a stream of their own, so that repeated calls differ.

Outputs are logits unless their values say otherwise (`recognised_output`). Where the last thing that happens is a Softmax or
Sigmoid layer, what goes into it is used instead, for it does not saturate.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.outputs import Output, Widened, shaped_outputs
from auditor.collectors.base.records import Records, matrix, refuse_width, spread
from auditor.collectors.base.scorer import (
    Predictor,
    import_optional,
    is_a,
    output_words,
    range_remark,
    recognised_output,
)
from auditor.collectors.base.tasks import MultiLabel, Task
from auditor.core import validate
from auditor.core.errors import AuditorError, InputError

# --- A hash of what decides the outputs of a PyTorch module, as far as it is data: tensors, settings, TorchScript code ---
#
# Functions and objects that a module holds are left out; the trial of a model finds out what they change.


_NOT_DECIDING = {
    "name_or_path",
    "warnings_issued",
}  # of transformers: where a model lies, what it has warned of


def _identity(model: Any) -> str:
    """Return a hash of the class, the layers with their settings and plain attributes, and every tensor by name."""
    digest = hashlib.sha256()
    digest.update(f"{type(model).__module__}.{type(model).__qualname__}\n".encode())
    digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(model)).encode())
    weights = model.state_dict()
    for name, value in (*weights.items(), *_others(model, set(weights))):
        digest.update(f"\n{name} ".encode())
        parts = _tensor_bytes(value) if hasattr(value, "detach") else _plain(value)
        for part in parts or [repr(value).encode()]:
            digest.update(part)
    return digest.hexdigest()


def _others(model: Any, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a module holds beside its state: buffers that are not saved, plain attributes, code and its constants."""
    yield from ((name, value) for name, value in model.named_buffers() if name not in known)
    for place, part in model.named_modules():
        for name, value in sorted(_attributes(part).items()):
            if _plain(value) is not None:
                yield f"{place}:{name}", value
        code, constants = getattr(part, "code_with_constants", ("", None))
        if code:
            yield f"{place}:code", re.sub(r"___torch_mangle_\d+\.", "", code)
        if constants is not None:
            yield f"{place}:constants", dict(constants.const_mapping)


def _attributes(part: Any) -> dict[str, Any]:
    """Return the attributes of one part that its user gave it."""
    import torch

    script = getattr(part, "_actual_script_module", part)
    if isinstance(script, torch.jit.ScriptModule):
        own = {
            name
            for kind in (script.named_parameters, script.named_buffers)
            for name, _ in kind(recurse=False)
        }
        names = set(script._concrete_type.get_attributes()) - own - {"training"}  # noqa: SLF001 - the only list of them
        return {name: getattr(script, name) for name in names}
    skipped = {*vars(torch.nn.Module()), *_NOT_DECIDING}
    return {name: value for name, value in vars(part).items() if name not in skipped}


def _plain(value: Any) -> list[bytes] | None:
    """Return the bytes of a plain value, an array, a tensor or a collection of them; nothing for anything else."""
    import numpy as np
    import torch

    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return [f"{type(value).__name__} {value!r};".encode()]
    if torch.is_tensor(value):
        return None if isinstance(value, torch.nn.Parameter) else _tensor_bytes(value)
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return [f"{value.dtype} {value.shape} ".encode(), np.ascontiguousarray(value).tobytes()]
    parts = [None if item is value else _plain(item) for item in _items(value)]
    if None in parts:
        return None
    return [f"{len(parts)}(".encode(), *(piece for part in parts for piece in part or ()), b")"]


def _items(value: Any) -> list[Any]:
    """Return the items of a collection in an order of their own, or a value that is none."""
    import torch

    if isinstance(value, torch.ScriptObject):  # the packed weights of quantised layers
        return [value.__getstate__()]
    if isinstance(value, dict):
        return [item for pair in value.items() for item in pair]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return list(value) if isinstance(value, list | tuple) else [value]


def _tensor_bytes(tensor: Any) -> list[bytes]:
    import torch

    head = f"{tensor.dtype} {tuple(tensor.shape)} ".encode()
    tensor = tensor.detach()
    if tensor.is_sparse or tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    flat = tensor.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return [head, bytes(flat.view(torch.uint8).numpy().data) if flat.numel() else b""]


# --- One call of a PyTorch module that leaves no trace in it, and what came out ---


_LAST = ("Softmax", "Sigmoid")
_CLOSE = {"float16": 1e-2, "bfloat16": 5e-2}  # how far apart two roundings of a probability are, else 1e-5


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a network returned, and what went into its last layer if that turns logits into probabilities."""

    output: Any
    logits: Any = None
    layer: str = ""

    @property
    def has_logits(self) -> bool:
        """Whether the logits are known."""
        return self.logits is not None


class _Network:
    """A module, with the device and the type of its parameters and a stream of random numbers of its own.

    Args:
        torch: The package.
        model: The module.
        labels: Whether each column of outputs is a label of two classes, so that a Sigmoid may end them.
    """

    def __init__(self, torch: Any, model: Any, *, labels: bool) -> None:
        self.torch, self.model, self.labels = torch, model, labels
        tensors = [*model.parameters(), *model.buffers()]
        floating = [tensor for tensor in tensors if tensor.is_floating_point()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = floating[0].dtype if floating else torch.get_default_dtype()
        self._random: list[Any] | None = None
        scripted = isinstance(model, torch.jit.ScriptModule)
        self._lasts = (
            []
            if scripted
            else [part for part in model.modules() if type(part).__name__ in _LAST and _own(part)]
        )

    def run(self, features: Any, records: Records) -> _Answer:
        """Return what the network makes of a batch; what it raises becomes one sentence, with the cause kept."""
        try:
            with self._undisturbed(), self._watched() as seen:
                output = _tensor_of(self.model(features), self.model, self.torch)
                logits = self._logits(output, seen)
                return _Answer(output, logits, "" if logits is None else type(seen[-1][0]).__name__)
        except AuditorError:
            raise
        except Exception as error:
            self._refuse_width(features, records)
            name, reason = type(self.model).__name__, validate.one_line(error) or type(error).__name__
            raise InputError(
                f"{records.name} X must suit the model, but {name} refused it: {reason}."
            ) from error

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Evaluation mode, no gradients, random numbers of its own; then everything as it was."""
        parts = list(self.model.modules())
        modes = [part.training for part in parts]
        before = self._states()
        try:
            # Not in inference mode: a tensor that a module keeps from it could never be trained with again.
            with self.torch.no_grad():
                for part in parts:
                    part.training = False
                self._set_states(self._random or before)
                yield
        finally:
            self._random = self._states()
            self._set_states(before)
            for part, mode in zip(parts, modes, strict=True):
                part.training = mode

    def _states(self) -> list[Any]:
        states = [self.torch.get_rng_state()]
        if self.device.type == "cuda":
            states.append(self.torch.cuda.get_rng_state(self.device))
        return states

    def _set_states(self, states: list[Any]) -> None:
        self.torch.set_rng_state(states[0])
        if self.device.type == "cuda":
            self.torch.cuda.set_rng_state(states[1], self.device)

    @contextmanager
    def _watched(self) -> Iterator[list[tuple[Any, Any, Any]]]:
        """Take note of what goes into and comes out of layers that may be the last."""
        seen: list[tuple[Any, Any, Any]] = []

        def note(part: Any, given: Any, output: Any) -> None:
            seen[:] = [(part, given[0] if given else None, output)]  # earlier ones may be freed

        hooks = [part.register_forward_hook(note) for part in self._lasts]
        try:
            yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def _logits(self, output: Any, seen: list[tuple[Any, Any, Any]]) -> Any:
        """Return what went into the last layer if the output is its output and the layer is of the usual kind."""
        torch = self.torch
        if not seen:
            return None
        part, given, last = seen[-1]
        same = torch.is_tensor(last) and torch.is_tensor(given) and last.numel() == output.numel()
        if not same or last.data_ptr() != output.data_ptr() or given.shape != last.shape:
            return None
        logits = given.reshape(output.shape)
        if type(part).__name__ == "Sigmoid":
            single = output.ndim == 1 or output.shape[-1] == 1
            again = torch.sigmoid(logits)
            usable = single or self.labels
        else:
            again = torch.softmax(logits, dim=-1)
            usable = output.ndim == 2  # noqa: PLR2004
        close = _CLOSE.get(str(output.dtype).removeprefix("torch."), 1e-5)
        return logits if usable and torch.allclose(again, output, rtol=0, atol=close) else None

    def _refuse_width(self, features: Any, records: Records) -> None:
        """Name the number of columns if that is what was wrong."""
        if features.ndim != 2:  # noqa: PLR2004
            return
        for part in self.model.modules():
            wanted = getattr(part, "in_features", None)
            if isinstance(wanted, int):
                refuse_width(features, wanted=wanted, model=type(self.model).__name__, place=records.name)
                return


def _summing(values: npt.NDArray[Any], *, dtype: Any) -> npt.NDArray[Any]:
    """Return rows of bfloat16 probabilities that sum to 1 but for the rounding of every entry, so that they do."""
    if str(dtype) != "torch.bfloat16" or values.ndim == 1:
        return values
    sums = values.sum(axis=1, keepdims=True)
    summing_up = np.where(np.abs(sums - 1) < _CLOSE["bfloat16"], values / sums, values)
    return Widened(summing_up, of="bfloat16")


def as_array(tensor: Any) -> npt.NDArray[Any]:
    """Return a tensor as an array, on the processor."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # which numpy does not know
        return Widened(tensor.float().numpy(), of="bfloat16")
    return np.asarray(tensor.numpy())


def _own(part: Any) -> bool:
    return type(part).__module__.startswith("torch.nn.")


def _tensor_of(output: Any, model: Any, torch: Any) -> Any:
    """Return the tensor of outputs: itself, or the logits of what a transformers model returns."""
    if isinstance(output, dict) and "logits" in output:
        output = output["logits"]
    output = getattr(output, "logits", output)
    if isinstance(output, tuple | list) and len(output) == 1:
        output = output[0]
    if not torch.is_tensor(output):
        raise InputError(
            f"model must return one tensor of outputs, got {type(output).__name__} from {type(model).__name__}; wrap it"
            " in a callable that returns the one to score."
        )
    return output


# --- A module as a predictor ---


_AT_ONCE = 4096
_FEW = 2  # records on which types of input are tried
_EMBEDDING = "Embedding"


def accepts(model: Any) -> bool:
    """Return whether this is a PyTorch module (TorchScript modules are)."""
    return is_a(model, "torch", "Module")


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a PyTorch module as the collectors see it."""
    torch = import_optional("torch", purpose="scoring a PyTorch module", extra="torch")
    known = _identity(model)  # before it is asked, for it may remember what it saw
    network = _Network(torch, model, labels=isinstance(task, MultiLabel))
    tried = spread(sample)
    whole = _takes_integers(network, tried[:1])
    found = _found(network, tried, task=task, output=output, whole=whole)
    name = _name(model)
    before = f", the input of its last {found.layer}" if found.layer else found.remark
    return Predictor(
        predict=_asking(network, name, kind=found.kind, logits=bool(found.layer), whole=whole),
        source=f"{output_words(found.kind, dtype=found.dtype)} of {name} (PyTorch){before}",
        output=found.kind,
        identity=known,
        records_at_once=_AT_ONCE,
    )


class _Found(NamedTuple):
    """What the outputs are, their type, the layer whose input is taken instead, if one is, and what else to say."""

    kind: Output | None
    dtype: str
    layer: str = ""
    remark: str = ""


def _found(
    network: _Network, tried: Sequence[Records], *, task: Task, output: Output | None, whole: bool
) -> _Found:
    answers = [network.run(_tensor(network, part, whole=whole), part) for part in tried]
    if not answers or not task.has_output:
        dtype = str((answers[0].output if answers else network).dtype).removeprefix("torch.")
        return _Found((output or Output.LOGITS) if task.has_output else None, dtype)
    dtype = str(answers[0].output.dtype).removeprefix("torch.")
    if output is not None:
        return _Found(output, dtype)
    if all(found.has_logits for found in answers):
        dtype = str(answers[0].logits.dtype).removeprefix("torch.")
        return _Found(Output.LOGITS, dtype, answers[0].layer)
    parts = [
        shaped_outputs(_values(network, found, Output.PROBABILITIES), n=len(part), place=part.name)
        for found, part in zip(answers, tried, strict=True)
    ]
    values = np.concatenate(parts)
    return _Found(recognised_output(values, task=task), dtype, remark=range_remark(values, task=task))


def _values(network: _Network, found: _Answer, kind: Output | None) -> npt.NDArray[Any]:
    values = as_array(found.output)
    if kind is not Output.PROBABILITIES or network.labels:
        return values
    return _summing(values, dtype=found.output.dtype)


def _name(model: Any) -> str:
    return str(getattr(model, "original_name", "") or type(model).__name__)


def _asking(
    network: _Network, name: str, *, kind: Output | None, logits: bool, whole: bool
) -> Callable[[Records], npt.NDArray[Any]]:
    def predict(records: Records) -> npt.NDArray[Any]:
        tensor = _tensor(network, records, whole=whole)
        found = network.run(tensor, records)
        if logits and not found.has_logits:
            raise InputError(
                f"model must always end in the same layer, but {name} did not on the {records.name} records; pass"
                " output=Output.PROBABILITIES."
            )
        return as_array(found.logits) if logits else _values(network, found, kind)

    return predict


def _tensor(network: _Network, records: Records, *, whole: bool) -> Any:
    """Return the features as the network takes them: its own floats, or whole numbers where it looks them up."""
    torch, features = network.torch, records.features
    if isinstance(features, list | tuple) and len(features) and torch.is_tensor(features[0]):
        features = torch.stack(list(features))
    if not torch.is_tensor(features):
        dtype = np.int64 if whole else (np.float64 if network.dtype == torch.float64 else np.float32)
        array = matrix(features, dtype=dtype, place=records.name, first_row=records.first_row)
        features = torch.from_numpy(array if array.flags.writeable else array.copy())
    if whole:
        return features.to(device=network.device)
    return features.to(device=network.device, dtype=network.dtype)


def _takes_integers(network: _Network, tried: Sequence[Records]) -> bool:
    """Return whether the network looks its input up, as an embedding does: tried where both are possible."""
    embeds = any(_EMBEDDING in _name(part) for part in network.model.modules())
    for part in tried:
        few = part.part(0, _FEW)
        order = (True, False) if embeds else (False, True)
        if not _whole(few, network.torch):
            return False
        try:
            network.run(_tensor(network, few, whole=order[0]), few)
        except InputError:
            try:
                network.run(_tensor(network, few, whole=order[1]), few)
            except InputError:
                return order[0]  # it will say itself what is wrong
            return order[1]
        return order[0]
    return embeds


def _whole(records: Records, torch: Any) -> bool:
    """Return whether features are whole numbers, in any type."""
    features = records.features
    if isinstance(features, list | tuple) and len(features) and torch.is_tensor(features[0]):
        features = features[0]
    if torch.is_tensor(features):
        return not (features.is_floating_point() or features.is_complex())
    try:
        matrix(features, dtype=np.int64, place=records.name)
    except AuditorError:
        return False
    return True
