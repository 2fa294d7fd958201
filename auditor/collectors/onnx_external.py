"""Weights that an ONNX model keeps in files of their own, found in its bytes and hashed with them.

Only what leads to tensors is decoded: ModelProto.graph (field 7) and functions (25), GraphProto.node (1), initializer (5)
and sparse_initializer (15), SparseTensorProto's values (1) and indices (2), NodeProto.attribute (5) and FunctionProto.node
(7), AttributeProto's t (5), g (6), tensors (10), graphs (11), sparse_tensor (22) and sparse_tensors (23), and
TensorProto.external_data (13) with its key (1) and value (2).
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from auditor.collectors.onnx_graph import fields
from auditor.errors import InputError

__all__ = ["external_files", "hashed", "refuse_outside"]

_LEADS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "sparse": {1: "tensor", 2: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "tensor": {13: "entry"},
}


def external_files(content: bytes) -> tuple[str, ...]:
    """Return the names of the files that a model's bytes refer to; none where they are no model."""
    try:
        return tuple(sorted(set(_locations(content))))
    except (IndexError, ValueError):
        return ()


def refuse_outside(names: tuple[str, ...], *, named: str) -> None:
    """Refuse files that are not in the folder of the model.

    Raises:
        InputError: An absolute path, or one that leads out of the folder.
    """
    for name in names:
        kinds = (PurePosixPath(name), PureWindowsPath(name))
        if any(path.is_absolute() or path.drive or ".." in path.parts or path.root for path in kinds):
            raise InputError(
                f"{named} keeps weights in {name!r}, which must be a file in its own folder; save the model again with its"
                " external data beside it."
            )


def hashed(content: bytes, names: tuple[str, ...], folder: Path) -> str:
    """Return a hash of a model's bytes and of the files that they refer to."""
    digest = hashlib.sha256(content)
    for name in names:
        digest.update(f"\n{name} ".encode("utf-8", "surrogateescape"))
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _locations(content: bytes) -> Iterator[str]:
    waiting: list[tuple[str, bytes | memoryview]] = [
        ("model", memoryview(content))
    ]  # without copies of the weights
    while waiting:
        kind, message = waiting.pop()
        leads = _LEADS[kind]
        for field, value in fields(message):
            if field not in leads or isinstance(value, int):
                continue
            if leads[field] != "entry":
                waiting.append((leads[field], value))
                continue
            entry = {number: part for number, part in fields(value) if not isinstance(part, int)}
            if entry.get(1) == b"location":
                yield bytes(entry.get(2, b"")).decode("utf-8", "surrogateescape")
