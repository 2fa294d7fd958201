"""A hash of what decides the outputs of a PyTorch module, as far as it is data: tensors, settings, TorchScript code.

Functions and objects that a module holds are left out; the trial of a model finds out what they change.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["identity"]

_NOT_DECIDING = {
    "name_or_path",
    "warnings_issued",
}  # of transformers: where a model lies, what it has warned of


def identity(model: Any) -> str:
    """Return a hash of the class, the layers with their settings and plain attributes, and every tensor by name."""
    digest = hashlib.sha256()
    digest.update(f"{type(model).__module__}.{type(model).__qualname__}\n".encode())
    digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(model)).encode())
    weights = model.state_dict()
    for name, value in (*weights.items(), *_others(model, set(weights))):
        digest.update(f"\n{name} ".encode())
        parts = _tensor(value) if hasattr(value, "detach") else _plain(value)
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
        return None if isinstance(value, torch.nn.Parameter) else _tensor(value)
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


def _tensor(tensor: Any) -> list[bytes]:
    import torch

    head = f"{tensor.dtype} {tuple(tensor.shape)} ".encode()
    tensor = tensor.detach()
    if tensor.is_sparse or tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    flat = tensor.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return [head, bytes(flat.view(torch.uint8).numpy().data) if flat.numel() else b""]
