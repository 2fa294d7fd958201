"""One call of a PyTorch module that leaves no trace in it, and what came out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors import matrices
from auditor.collectors.outputs import Widened
from auditor.collectors.records import Records
from auditor.errors import AuditorError, InputError

__all__ = ["Answer", "Network", "plain", "summing"]

_LAST = ("Softmax", "Sigmoid")
_CLOSE = {"float16": 1e-2, "bfloat16": 5e-2}  # how far apart two roundings of a probability are, else 1e-5


@dataclass(frozen=True, eq=False)
class Answer:
    """What a network returned, and what went into its last layer if that turns logits into probabilities."""

    output: Any
    logits: Any = None
    layer: str = ""

    @property
    def has_logits(self) -> bool:
        """Whether the logits are known."""
        return self.logits is not None


class Network:
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

    def run(self, features: Any, records: Records) -> Answer:
        """Return what the network makes of a batch; what it raises becomes one sentence, with the cause kept."""
        try:
            with self._undisturbed(), self._watched() as seen:
                output = _tensor_of(self.model(features), self.model, self.torch)
                logits = self._logits(output, seen)
                return Answer(output, logits, "" if logits is None else type(seen[-1][0]).__name__)
        except AuditorError:
            raise
        except Exception as error:
            self._refuse_width(features, records)
            name, reason = type(self.model).__name__, _validate.one_line(error) or type(error).__name__
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
                matrices.refuse_width(
                    features, wanted=wanted, model=type(self.model).__name__, place=records.name
                )
                return


def summing(values: npt.NDArray[Any], *, dtype: Any) -> npt.NDArray[Any]:
    """Return rows of bfloat16 probabilities that sum to 1 but for the rounding of every entry, so that they do."""
    if str(dtype) != "torch.bfloat16" or values.ndim == 1:
        return values
    sums = values.sum(axis=1, keepdims=True)
    summing_up = np.where(np.abs(sums - 1) < _CLOSE["bfloat16"], values / sums, values)
    return Widened(summing_up, of="bfloat16")


def plain(tensor: Any) -> npt.NDArray[Any]:
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
