"""PyTorch modules: scored as for prediction, and left exactly as they were.

The module runs in evaluation mode and without gradients, on the device and in the type of its parameters; the mode of
every part, the random state and everything else is afterwards what it was, also if the call fails. Random numbers, in
a module that draws some even then, come from a stream of their own, so that repeated calls differ.

Outputs are logits unless their values say otherwise (`recognition`). Where the last thing that happens is a Softmax or
Sigmoid layer, what goes into it is used instead, for it does not saturate.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.collectors import matrices
from auditor.collectors.extras import is_a, needed
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.predictor import Predictor
from auditor.collectors.recognition import recognised, remark, worded
from auditor.collectors.records import Records
from auditor.collectors.samples import spread
from auditor.collectors.tasks import MultiLabel, Task
from auditor.collectors.torch_identity import identity
from auditor.collectors.torch_network import Answer, Network, plain, summing
from auditor.errors import AuditorError, InputError

__all__ = ["accepts", "predictor"]

_AT_ONCE = 4096
_FEW = 2  # records on which types of input are tried
_EMBEDDING = "Embedding"


def accepts(model: Any) -> bool:
    """Return whether this is a PyTorch module (TorchScript modules are)."""
    return is_a(model, "torch", "Module")


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return a PyTorch module as the collectors see it."""
    torch = needed("torch", purpose="scoring a PyTorch module", extra="torch")
    known = identity(model)  # before it is asked, for it may remember what it saw
    network = Network(torch, model, labels=isinstance(task, MultiLabel))
    tried = spread(sample)
    whole = _takes_integers(network, tried[:1])
    found = _found(network, tried, task=task, output=output, whole=whole)
    name = _name(model)
    before = f", the input of its last {found.layer}" if found.layer else found.remark
    return Predictor(
        predict=_asking(network, name, kind=found.kind, logits=bool(found.layer), whole=whole),
        source=f"{worded(found.kind, dtype=found.dtype)} of {name} (PyTorch){before}",
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
    network: Network, tried: Sequence[Records], *, task: Task, output: Output | None, whole: bool
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
        shaped(_values(network, found, Output.PROBABILITIES), n=len(part), place=part.name)
        for found, part in zip(answers, tried, strict=True)
    ]
    values = np.concatenate(parts)
    return _Found(recognised(values, task=task), dtype, remark=remark(values, task=task))


def _values(network: Network, found: Answer, kind: Output | None) -> npt.NDArray[Any]:
    values = plain(found.output)
    if kind is not Output.PROBABILITIES or network.labels:
        return values
    return summing(values, dtype=found.output.dtype)


def _name(model: Any) -> str:
    return str(getattr(model, "original_name", "") or type(model).__name__)


def _asking(
    network: Network, name: str, *, kind: Output | None, logits: bool, whole: bool
) -> Callable[[Records], npt.NDArray[Any]]:
    def predict(records: Records) -> npt.NDArray[Any]:
        tensor = _tensor(network, records, whole=whole)
        found = network.run(tensor, records)
        if logits and not found.has_logits:
            raise InputError(
                f"model must always end in the same layer, but {name} did not on the {records.name} records; pass"
                " output=Output.PROBABILITIES."
            )
        return plain(found.logits) if logits else _values(network, found, kind)

    return predict


def _tensor(network: Network, records: Records, *, whole: bool) -> Any:
    """Return the features as the network takes them: its own floats, or whole numbers where it looks them up."""
    torch, features = network.torch, records.features
    if isinstance(features, list | tuple) and len(features) and torch.is_tensor(features[0]):
        features = torch.stack(list(features))
    if not torch.is_tensor(features):
        dtype = np.int64 if whole else (np.float64 if network.dtype == torch.float64 else np.float32)
        array = matrices.matrix(features, dtype=dtype, place=records.name, first_row=records.first_row)
        features = torch.from_numpy(array if array.flags.writeable else array.copy())
    if whole:
        return features.to(device=network.device)
    return features.to(device=network.device, dtype=network.dtype)


def _takes_integers(network: Network, tried: Sequence[Records]) -> bool:
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
        matrices.matrix(features, dtype=np.int64, place=records.name)
    except AuditorError:
        return False
    return True
