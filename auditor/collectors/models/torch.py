"""PyTorch modules: scored as for prediction, and left exactly as they were.

The module runs in evaluation mode and without gradients, on the device and in the type of its parameters; the mode of
every part, the random state and everything else is restored afterwards, also if the call fails. Random numbers, in
a module that draws some even then, come from a stream of their own, so that repeated calls differ.

A call has as many records as the bytes of their features allow, and no more than the batch. Where the device has too little memory
for it, it is halved, and so are all after it.

Outputs are logits unless their values say otherwise (`recognised_output`). Where the last thing that happens is a Softmax or
Sigmoid layer, its input is used instead, because it does not saturate.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from auditor.collectors.base.named import joined
from auditor.collectors.base.outputs import Output, Widened, shaped_outputs, type_name
from auditor.collectors.base.records import Records, is_frame, listed, matrix, refuse_width, spread
from auditor.collectors.base.scorer import Predictor, recognised_output
from auditor.collectors.base.tasks import MultiLabel, Task
from auditor.core import Array, AuditorError, InputError, explained, import_optional, own_words

# --- One call of a PyTorch module that leaves no trace in it, and its output ---


_LAST = ("Softmax", "Sigmoid")
_CLOSE = {"float16": 1e-2, "bfloat16": 5e-2}  # how far apart two roundings of a probability are, else 1e-5


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Use evaluation mode without gradients; restore the mode of every part."""
    import torch

    modes = [(part, part.training) for part in model.modules()]
    try:
        # Not in inference mode: a tensor that a module keeps from it could never be trained with again.
        with torch.no_grad():
            _set_modes((part, False) for part, _ in modes)
            yield
    finally:
        _set_modes(modes)


def _set_modes(modes: Iterable[tuple[Any, bool]]) -> None:
    """Set the mode of the parts that are in another; to set an attribute of a module takes much longer than to read it."""
    for part, mode in modes:
        if part.training is not mode:
            part.training = mode


@dataclass(frozen=True, eq=False)
class _Answer:
    """Output of a network, and the input of its last layer if that turns logits into probabilities."""

    output: Any
    logits: Any = None
    layer: str = ""


class _Network:
    """A module, with the device and the type of its parameters and its own stream of random numbers.

    Args:
        torch: The package.
        model: The module.
        labels: Whether each column of outputs is a label of two classes, so that a Sigmoid may end them.
    """

    def __init__(self, torch: ModuleType, model: Any, *, labels: bool) -> None:
        self.torch, self.model, self.labels = torch, model, labels
        tensors = [*model.parameters(), *model.buffers()]
        floating = [tensor for tensor in tensors if tensor.is_floating_point()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.dtype = floating[0].dtype if floating else torch.get_default_dtype()
        self._random: list[Any] | None = None
        scripted = isinstance(model, torch.jit.ScriptModule)
        parts = [] if scripted else model.modules()
        self.inputs = {} if scripted else inspect.signature(model.forward).parameters
        self._lasts = [
            part
            for part in parts
            if type(part).__name__ in _LAST and type(part).__module__.startswith("torch.nn.")
        ]

    def run(self, records: Records, *, whole: bool) -> _Answer:
        """Return the network's output for a batch; any exception becomes one sentence, with the cause kept."""
        refused = f"{records.name} X must suit the model, but {type(self.model).__name__} refused it"
        with explained(refused, reason=own_words):
            features = _tensor(self, records, whole=whole)
        reason = partial(self._reason, features, records)
        with explained(refused, reason=reason), self._undisturbed(), self._watched() as seen:
            answer = self.model(**features) if isinstance(features, Mapping) else self.model(features)
            output = _tensor_of(answer, self.model, self.torch)
            logits = self._logits(output, seen)
            return _Answer(output, logits, "" if logits is None else type(seen[-1][0]).__name__)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Use evaluation mode, no gradients and separate random numbers; restore everything afterwards."""
        before = self._states()
        try:
            with evaluating(self.model):
                self._set_states(self._random or before)
                yield
        finally:
            self._random = self._states()
            self._set_states(before)

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
        """Record the inputs and outputs of layers that may be the last."""
        seen: list[tuple[Any, Any, Any]] = []

        def note(part: Any, inputs: Any, output: Any) -> None:
            seen[:] = [(part, inputs[0] if inputs else None, output)]  # earlier ones may be freed

        hooks = [part.register_forward_hook(note) for part in self._lasts]
        try:
            yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def _logits(self, output: Any, seen: list[tuple[Any, Any, Any]]) -> Any:
        """Return the input of the last layer if the output is its output and the layer is of the usual kind."""
        torch = self.torch
        if not seen:
            return None
        part, before, last = seen[-1]
        same = torch.is_tensor(last) and torch.is_tensor(before) and last.numel() == output.numel()
        if not same or last.data_ptr() != output.data_ptr() or before.shape != last.shape:
            return None
        logits = before.reshape(output.shape)
        if type(part).__name__ == "Sigmoid":
            single = output.ndim == 1 or output.shape[-1] == 1
            again = torch.sigmoid(logits)
            usable = single or self.labels
        else:
            again = torch.softmax(logits, dim=-1)
            usable = output.ndim == 2  # noqa: PLR2004
        close = _CLOSE.get(str(output.dtype).removeprefix("torch."), 1e-5)
        return logits if usable and torch.allclose(again, output, rtol=0, atol=close) else None

    def _reason(self, features: Any, records: Records, error: Exception) -> str:
        """Return the network's message, or refuse the number of columns if that is the cause."""
        widths = (getattr(part, "in_features", None) for part in self.model.modules())
        wanted = next((width for width in widths if isinstance(width, int)), None)
        if wanted is not None:
            refuse_width(features, wanted=wanted, model=type(self.model).__name__, place=records.name)
        return own_words(error)


def as_array(tensor: Any) -> Array:
    """Return a tensor as an array, on the processor."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # which numpy does not know
        return Widened(tensor.float().numpy(), of="bfloat16")
    return np.asarray(tensor.numpy())


def logits_of(output: Any) -> Any:
    """Return the logits of a transformers model's output, and any other output unchanged."""
    if isinstance(output, dict) and "logits" in output:
        return output["logits"]
    return getattr(output, "logits", output)


def _tensor_of(output: Any, model: Any, torch: ModuleType) -> Any:
    """Return the tensor of outputs."""
    output = logits_of(output)
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
# Bytes of features for one call, and the fewest records: on a processor what fits into its cache is many times faster.
_ROOM, _LEAST = 2**21, 32
_ROOM_OF_DEVICE, _LEAST_OF_DEVICE = 2**25, 256
_FEW = 2  # records whose type is looked at


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a PyTorch module as the collectors see it."""
    torch = import_optional("torch", purpose="scoring a PyTorch module", extra="torch")
    network = _Network(torch, model, labels=isinstance(task, MultiLabel))
    some = spread(sample)
    whole = _takes_integers(network, some)
    answers, tried = zip(*(_fitting(network, part, whole=whole) for part in some), strict=True)
    free = task.has_output and output is None
    layer = answers[0].layer if free and all(answer.layer for answer in answers) else ""
    kind: Output | None
    if layer:
        kind, where = Output.LOGITS, f", the input of its last {layer}"
    else:
        values = [*map(shaped_outputs, map(partial(_values, network), answers), tried)]
        kind, where = recognised_output(values, task=task, output=output)
    dtype = str((answers[0].logits if layer else answers[0].output).dtype).removeprefix("torch.")
    name = _name(model)

    at_once = _at_once(network, some[0], whole=whole)

    def predict(records: Records) -> Array:
        nonlocal at_once
        n, size = len(records), at_once
        if n > size:
            return joined([predict(records.part(start, start + size)) for start in range(0, n, size)])
        answer, done = _fitting(network, records, whole=whole)
        if len(done) < n:
            at_once = len(done)  # for all that follow
            return joined([answered(answer, done), predict(records.part(len(done), n))])
        return answered(answer, records)

    def answered(answer: _Answer, records: Records) -> Array:
        if layer and not answer.layer:
            raise InputError(
                f"model must always end in the same layer, but {name} did not on the {records.name} records; pass"
                " output=Output.PROBABILITIES."
            )
        if layer:
            return as_array(answer.logits)
        return _values(network, answer) if kind is Output.PROBABILITIES else as_array(answer.output)

    return Predictor(
        predict=predict,
        source=f"{dtype} {kind or 'predictions'} of {name} (PyTorch){where}",
        output=kind,
        records_at_once=_AT_ONCE,
    )


def _at_once(network: _Network, records: Records, *, whole: bool) -> int:
    """Return the number of records for one call of a network, by the size of their features."""
    features = _tensor(network, records.part(0, 1), whole=whole)
    parts = features.values() if isinstance(features, Mapping) else [features]
    size: int = sum(part.element_size() * part.nelement() for part in parts)
    on_processor = network.device.type == "cpu"
    room, least = (_ROOM, _LEAST) if on_processor else (_ROOM_OF_DEVICE, _LEAST_OF_DEVICE)
    return min(_AT_ONCE, max(least, room // max(1, size)))


def _fitting(network: _Network, records: Records, *, whole: bool) -> tuple[_Answer, Records]:
    """Return the network's output for as many of the first records as the device has memory for, by halves; and these."""
    short, n = network.torch.OutOfMemoryError, len(records)
    try:
        return network.run(records, whole=whole), records
    except InputError as error:
        if n < 2 or not isinstance(error.__cause__, short):  # noqa: PLR2004
            raise
    network.torch.cuda.empty_cache()
    return _fitting(network, records.part(0, n // 2), whole=whole)


def _values(network: _Network, answer: _Answer) -> Array:
    """Return outputs that may be probabilities; rows of bfloat16 that sum to 1 but for the rounding of each entry, so that they do.

    Those of several labels have no sum.
    """
    values = as_array(answer.output)
    if network.labels or values.ndim == 1 or type_name(values) != "bfloat16":
        return values
    sums = values.sum(axis=1, keepdims=True)
    summing_up = np.where(np.abs(sums - 1) < _CLOSE["bfloat16"], values / sums, values)
    return Widened(summing_up, of="bfloat16")


def _name(model: Any) -> str:
    return str(getattr(model, "original_name", "") or type(model).__name__)


def _tensor(network: _Network, records: Records, *, whole: bool) -> Any:
    """Return the features as the network takes them: its own floats, or whole numbers where it looks them up.

    Columns that are named after its inputs are a tensor each, by name.
    """
    torch, features = network.torch, _stacked(records, network.torch)
    names = list(features.columns) if is_frame(features) else []
    if len(names) > 1 and network.inputs.keys() >= {*names}:
        own = {name: replace(records, features=features[[name]]) for name in names}
        return {name: _tensor(network, part, whole=whole) for name, part in own.items()}
    if len(names) > 1 and whole and any(str(kind) == "object" for kind in features.dtypes):
        raise InputError(
            f"{records.name} X must have columns named after the inputs of {_name(network.model)}, or one array, got"
            f" {listed(names)}; name the features, or pass a function of the table that calls the model."
        )
    if not torch.is_tensor(features):
        dtype = np.int64 if whole else (np.float64 if network.dtype == torch.float64 else np.float32)
        array = matrix(records, dtype=dtype)
        features = torch.from_numpy(array if array.flags.writeable else array.copy())
    return features.to(device=network.device, dtype=features.dtype if whole else network.dtype)


def _stacked(records: Records, torch: ModuleType) -> Any:
    """Return the features of records; a list of tensors is one tensor."""
    features = records.features
    if isinstance(features, list | tuple) and len(features) and torch.is_tensor(features[0]):
        return torch.stack(list(features))
    return features


def _takes_integers(network: _Network, tried: Sequence[Records]) -> bool:
    """Return whether the network looks its input up, as an embedding does, and the records are whole numbers."""
    embeds = any("Embedding" in _name(part) for part in network.model.modules())
    return embeds and all(_is_whole(part.part(0, _FEW), network.torch) for part in tried[:1])


def _is_whole(records: Records, torch: ModuleType) -> bool:
    """Return whether features are whole numbers, in any type."""
    with suppress(AuditorError, RuntimeError):
        features = _stacked(records, torch)
        if torch.is_tensor(features):
            return not (features.is_floating_point() or features.is_complex())
        matrix(records, dtype=np.int64)
        return True
    return False
