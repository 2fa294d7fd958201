"""Input tensors of the Open Inference Protocol, as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.collectors.served.payload import Payload, written
from auditor.errors import InputError

__all__ = ["named_tensors", "single_tensor"]


def single_tensor(payload: Payload, texts: Sequence[str], *, name: str, datatype: Any, shape: Any) -> str:
    """Return the records as one tensor.

    Args:
        payload: The records.
        texts: Their JSON.
        name: The name of the tensor.
        datatype: What the model wants, if it is known.
        shape: The shape that the model's metadata gives, if any; a model of single values may want a column of them.
    """
    kind = str(datatype) if datatype else _datatype(payload.rows)
    if kind.startswith("FP") and payload.text:
        raise InputError(
            f"X must hold numbers for the model's input {name!r} of the type {kind}, got text; the model's own pipeline"
            " must encode it, or leave the column out."
        )
    if not kind.startswith("FP"):
        texts = [written(_typed(row, kind, name)) for row in payload.rows]
    data = ",".join(text[1:-1] for text in texts) if payload.shape else ",".join(texts)
    if len(payload.shape) > 1:
        data = data.replace("[", "").replace("]", "")  # row-major and flat, which every server takes
    sides = [len(payload.rows), *payload.shape]
    if not payload.shape and isinstance(shape, list) and len(shape) == 2:  # noqa: PLR2004
        sides.append(1)
    return _tensor(name, sides, kind, f"[{data}]")


def named_tensors(payload: Payload, *, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the columns as one tensor each, in the model's order where it says one.

    Args:
        payload: The records.
        known: What the model says about its inputs, by name; empty where it says nothing.

    Raises:
        InputError: No names, or an input that no column is called after.
    """
    if payload.columns is None:
        if len(payload.shape) != 1 or payload.shape[0] != len(known):
            raise InputError(
                f"columns must name the features, for the model has the inputs {', '.join(map(repr, known))}; give"
                " columns=, or a table with these names."
            )
        columns = tuple(known)
    else:
        columns = payload.columns
    missing = [name for name in known if name not in columns]
    if missing:
        raise InputError(
            f"X must have a column for each input of the model, and has none named {missing[0]!r}; rename the columns,"
            " or name them with columns=."
        )
    return [_column(payload, columns.index(name), name, known.get(name, {})) for name in known or columns]


def _column(payload: Payload, place: int, name: str, known: Mapping[str, Any]) -> str:
    cells = [row[place] for row in payload.rows]
    kind = str(known.get("datatype") or _datatype(cells))
    cells = cells if kind.startswith("FP") else [_typed(cell, kind, name) for cell in cells]
    shape = known.get("shape")
    sides = [len(cells)] if isinstance(shape, list) and len(shape) == 1 else [len(cells), 1]
    parameters = ',"parameters":{"content_type":"str"}' if kind == "BYTES" and not known else ""
    return _tensor(name, sides, kind, written(cells), parameters)


def _tensor(name: str, shape: Sequence[int], datatype: str, data: str, parameters: str = "") -> str:
    return f'{{"name":{written(name)},"shape":{written(shape)},"datatype":{written(datatype)}{parameters},"data":{data}}}'


def _datatype(values: Any) -> str:
    """Return the datatype that loses nothing."""
    kinds = _kinds(values)
    if str in kinds:
        return "BYTES"
    if kinds <= {bool}:
        return "BOOL"
    return "INT64" if kinds <= {int} else "FP64"


def _kinds(values: Any) -> set[type]:
    return set().union(*map(_kinds, values)) if isinstance(values, list) else {type(values)}


def _typed(value: Any, kind: str, name: str) -> Any:
    """Return a value as the model's datatype writes it: whole numbers for INT, truth values for BOOL, text for BYTES."""
    if isinstance(value, list):
        return [_typed(item, kind, name) for item in value]
    if kind == "BYTES":
        return value if isinstance(value, str) else str(value)
    if isinstance(value, str) or value != int(value) or (kind == "BOOL" and value not in (0, 1)):
        raise InputError(
            f"X must hold values of the type {kind} for the model's input {name!r}, got {value!r}; convert the column."
        )
    return bool(value) if kind == "BOOL" else int(value)
