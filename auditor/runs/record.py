"""The result of one run, and its file: an ``.npz`` archive, there whole or not at all, without pickles."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from auditor.errors import InputError
from auditor.runs.case import Case
from auditor.runs.fingerprint import PYTHON

__all__ = ["DAMAGE", "Result", "damaged", "plain_result", "read_result", "write_result"]

Result = dict[str, float | str | bool | np.ndarray[Any, Any]]

_FORMAT = 1
_HEADER = "header"
_KINDS = "biuf"
_BITS = 64
# What a file that was cut off, renamed or made up can raise: also sizes that no memory holds.
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, OverflowError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def plain_result(case: Case, result: Any) -> Result:
    """Return the result of a task as it would come back from its file.

    Raises:
        InputError: It is no flat mapping of names to numbers, texts or numeric arrays.
    """
    if not isinstance(result, Mapping):
        raise InputError(
            f"the task must return a mapping of names to values, got {type(result).__name__} for case {case.shown}."
        )
    return {_name(case, name): _value(case, name, value) for name, value in result.items()}


def _name(case: Case, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"results must have texts as names, got {name!r} for case {case.shown}.")
    return name


def _value(case: Case, name: str, value: Any) -> Any:
    if isinstance(value, str | bool | float) and not isinstance(value, np.generic):
        return value
    array = _array(value)
    if array is None and type(value) is int:
        raise InputError(
            f"results must be whole numbers of at most {_BITS} bits, got {name} of {value.bit_length():,} bits for case"
            f" {case.shown}; return it as a text or a floating point number."
        )
    if array is None:
        raise InputError(
            f"results must be numbers, texts, booleans or arrays of numbers, got {name} of type"
            f" {type(value).__name__} for case {case.shown}."
        )
    return array if array.ndim else array.item()


def _array(value: Any) -> np.ndarray[Any, Any] | None:
    if isinstance(value, np.ma.MaskedArray):  # its mask would be lost
        return None
    try:
        array = np.array(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if array.ndim == 0 and array.dtype.kind == "U":  # a text of NumPy's
        return array
    return array if array.dtype.kind in _KINDS else None


def write_result(path: Path, case: Case, result: Result) -> None:
    """Write a result to its file, whole or not at all.

    Raises:
        OutputError: It cannot be written, as on a full disk.
    """
    from auditor.collectors.streaming.writing import whole

    arrays = {name: value for name, value in result.items() if isinstance(value, np.ndarray)}
    header = {
        "format": _FORMAT,
        **case.identity,
        **({} if case.code is None else {"code": case.code, "python": PYTHON}),
        "order": list(result),
        "values": {name: value for name, value in result.items() if name not in arrays},
        "arrays": list(arrays),
    }
    content: dict[str, Any] = {f"array_{index}": value for index, value in enumerate(arrays.values())}
    content[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with whole(path, folder=path.parent) as draft, draft.open("wb") as file:
        np.savez(file, **content)


def read_result(path: Path, case: Case) -> Result | None:
    """Return the result in a file; none if there is no such file.

    Raises:
        InputError: The file is damaged, or holds the result of something else or of other code.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(file[_HEADER].tobytes())
            arrays = {name: file[f"array_{index}"] for index, name in enumerate(header["arrays"])}
        found = {name: arrays[name] if name in arrays else header["values"][name] for name in header["order"]}
        whose = {"format": _FORMAT, **case.identity} == {
            name: header[name] for name in ("format", *case.identity)
        }
    except DAMAGE as error:
        raise damaged(path) from error
    if not whose:
        raise InputError(
            f"file {str(path)!r} holds the result of another run than its name says; delete it, and the run is made"
            " again."
        )
    _check_code(path, case, header)
    return found


def damaged(path: Path) -> InputError:
    """Return the sentence for a file that holds no result."""
    return InputError(
        f"file {str(path)!r} of a finished run is damaged; delete it, and the run is made again."
    )


def _check_code(path: Path, case: Case, header: Mapping[str, Any]) -> None:
    """Refuse what other code made; files of earlier releases do not say by which they were made."""
    code, python = header.get("code"), header.get("python")
    if code is None or case.code is None or (code, python) == (case.code, PYTHON):
        return
    name = case.task.rsplit(".", 1)[-1]
    if python == PYTHON:
        raise InputError(
            f"file {str(path)!r} was made by another version of the function {name!r}; take another folder, or delete it."
        )
    raise InputError(
        f"file {str(path)!r} was made with Python {python}, and with {PYTHON} it cannot be told whether the function"
        f" {name!r} is still the same; take another folder, or delete it."
    )
