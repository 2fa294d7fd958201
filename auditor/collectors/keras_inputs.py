"""Records into the inputs of a Keras model: one that takes all columns, or one for each column by name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors import matrices
from auditor.collectors.records import Records
from auditor.errors import InputError

__all__ = ["Input", "given", "inputs_of"]

_SHOWN = 5  # inputs listed in an error before the rest are left out


@dataclass(frozen=True)
class Input:
    """One input of a model.

    Attributes:
        name: By which a column is found.
        shape: Of one record; sizes that are not fixed are none. None where nothing is known of it.
        dtype: The name of its type: ``float32``, ``string``.
    """

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


def inputs_of(model: Any) -> list[Input]:
    """Return the inputs of a model; one of unknown shape where it does not tell."""
    tensors = getattr(model, "inputs", None)
    if not tensors:
        return [Input("x", None, str(getattr(model, "compute_dtype", None) or "float32"))]
    names = getattr(model, "input_names", None) or [tensor.name for tensor in tensors]
    return [
        Input(str(name), tuple(tensor.shape[1:]), str(getattr(tensor.dtype, "name", tensor.dtype)))
        for name, tensor in zip(names, tensors, strict=True)
    ]


def given(inputs: Sequence[Input], records: Records, *, model: str) -> Any:
    """Return the features of a batch as the model takes them.

    Raises:
        InputError: Text where numbers are wanted, another number of columns, or an input without a column.
    """
    features = records.features
    if len(inputs) == 1:
        (item,) = inputs
        if item.dtype == "string":
            return _tensor(_text(features), item, records, model)
        array = matrices.matrix(
            features, dtype=_number_type(item), place=records.name, first_row=records.first_row
        )
        return _tensor(array, item, records, model)
    if not matrices.is_frame(features):
        raise InputError(
            f"{records.name} X must be a table with a column for each of the model's {len(inputs)} inputs"
            f" ({_listed(inputs)}), got {type(features).__name__}."
        )
    missing = [item for item in inputs if item.name not in matrices.names(features)]
    if missing:
        raise InputError(
            f"{records.name} X must have a column for each input of the model, but not all have one:"
            f" {_listed(missing)}."
        )
    return {item.name: _tensor(_column(item, records), item, records, model) for item in inputs}


def _column(item: Input, records: Records) -> npt.NDArray[Any]:
    if item.dtype == "string":
        return _text(records.features[item.name])
    return matrices.column(
        records.features,
        item.name,
        dtype=_number_type(item),
        place=records.name,
        first_row=records.first_row,
    )


def _number_type(item: Input) -> Any:
    return np.float32 if item.dtype == "bfloat16" else np.dtype(item.dtype)


def _text(features: Any) -> npt.NDArray[Any]:
    values = features.to_numpy() if hasattr(features, "to_numpy") else np.asarray(features)
    return values.astype(np.str_)


def _tensor(array: npt.NDArray[Any], item: Input, records: Records, model: str) -> Any:
    """Return an array in the shape of an input: flat rows of an image become one, and a column a table of one."""
    if item.shape is not None:
        array = _shaped(array, item.shape, records, model)
    if item.dtype != "string":
        return array
    import tensorflow as tf

    return tf.constant(array)


def _shaped(
    array: npt.NDArray[Any], shape: tuple[int | None, ...], records: Records, model: str
) -> npt.NDArray[Any]:
    own = array.shape[1:]
    if len(own) == len(shape):
        if len(shape) == 1 and shape[0] is not None:
            matrices.refuse_width(array, wanted=shape[0], model=model, place=records.name)
        return array
    fixed = [size for size in shape if size is not None]
    if len(fixed) == len(shape) and math.prod(fixed) == math.prod(own):
        return array.reshape(len(array), *fixed)
    if len(shape) == 1 and shape[0] is not None:
        matrices.refuse_width(array.reshape(len(array), -1), wanted=shape[0], model=model, place=records.name)
    return array


def _listed(inputs: Sequence[Input]) -> str:
    return ", ".join(repr(item.name) for item in inputs[:_SHOWN]) + (", ..." if len(inputs) > _SHOWN else "")
