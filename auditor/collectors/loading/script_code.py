"""What the code in a TorchScript file may call: operations that compute, none that touch files or other processes.

Some of it runs while the file is loaded, so it is looked at before, as text.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor.collectors.loading.damage import named
from auditor.errors import InputError

__all__ = ["refuse"]

_STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
    re.DOTALL,
)
# An attribute by its name as TorchScript writes it, which is not how to hide the name of an operation.
_ATTRIBUTE = re.compile(r'\bgetattr\([\w.\[\]]*(?:\(\w+\))?[\w.\[\]]*, "([^"\'\\]*)"\)')
_TOUCHING = re.compile(r"\b(?:save|from_file|rpc_\w+|PythonOp|IgnoredPythonOp|getattr)\b")
_OTHER = re.compile(
    r"(?<![\w.])ops\b(?!\.(?:aten|prim|quantized|_quantized|mkldnn|mkldnn_prepacked|sparse|torchvision)\.)(?:\W+\w+){0,2}"
    r"|\btorch\W+classes\b(?!\.(?:quantized|rnn|sparse|mkldnn)\b)(?:\W+\w+)?"
)
_HELD = re.compile(rb"torch[.\n]classes[.\n](?!(?:quantized|rnn|sparse|mkldnn)\b)\w*")
_SHOWN = 8


def refuse(torch: Any, path: Path) -> None:
    """Refuse a TorchScript file whose code touches files, other processes or libraries.

    Raises:
        InputError: Such an operation, by name.
    """
    reader = torch._C.PyTorchFileReader(str(path))  # noqa: SLF001 - what it reads is what will be loaded
    found: set[str] = set()
    for name in reader.get_all_records():
        if name.endswith(".py"):
            found.update(_touching(reader.get_record(name).decode("utf-8", "replace")))
        elif name.endswith(".pkl"):
            found.update(item.decode().replace("\n", ".") for item in _HELD.findall(reader.get_record(name)))
    if found:
        listed = ", ".join(sorted(found)[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InputError(
            f"{named(path)} holds operations that may touch files or run other code: {listed}; save the model without"
            " them or as ONNX, or, if you trust its source as you would a program, pass trust_pickle=True"
            " (--trust-pickle)."
        )


def _touching(code: str) -> Iterator[str]:
    """Yield the names of operations to refuse."""
    code = _STRING_OR_COMMENT.sub(lambda found: "" if found[0].startswith("#") else found[0], code)
    count = 1
    while count:
        yield from (name for name in _ATTRIBUTE.findall(code) if _TOUCHING.search(name))
        code, count = _ATTRIBUTE.subn("_", code)
    code = _STRING_OR_COMMENT.sub('""', code)
    yield from _TOUCHING.findall(code)
    yield from (" ".join(found.split()) for found in _OTHER.findall(code))
