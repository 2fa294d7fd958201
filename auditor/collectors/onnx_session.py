"""Records into the inputs of an onnxruntime session, and its scores out."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.collectors import matrices
from auditor.collectors.records import Records
from auditor.errors import AuditorError, InputError

__all__ = ["Session"]

_TYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    "string": np.object_,
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_FLOATS = ("float", "double", "float16")
_PREFERRED = ("prob", "logit", "score")  # in the name of an output, the first that matches


class Session:
    """A session that is asked for the scores of a batch.

    Args:
        session: Of onnxruntime.
        halved: Whether of two columns of scores, -s and s, only s is returned.

    Attributes:
        output: The name of the output with the scores.
        labels: The name of the output with the predicted labels, if there is one.
        keys: The classes by which the scores were named, where they come as dictionaries and have been asked for.
        dtype: The type of the scores.
    """

    def __init__(self, session: Any, *, halved: bool) -> None:
        self._session, self._halved = session, halved
        self._inputs = session.get_inputs()
        outputs = session.get_outputs()
        self._dictionaries = False
        self.output, self.labels = _chosen(outputs)
        kind = next(item.type for item in outputs if item.name == self.output)
        self._dictionaries = kind.startswith("seq(map(")
        self.dtype = {"double": "float64", "float16": "float16"}.get(
            re.sub(r".*\b(float16|double|float)\b.*", r"\1", kind), "float32"
        )
        self.keys: tuple[Any, ...] | None = None

    def __call__(self, records: Records) -> npt.NDArray[Any]:
        """Return the scores of a batch; what the session raises becomes one sentence, with the cause kept."""
        found = self._asked(records, self.output)
        if self._dictionaries:
            found = self._of_dictionaries(found)
        values = np.asarray(found)
        return values[:, 1] if self._halved else values

    def predicted(self, records: Records) -> Any:
        """Return the labels that the model predicts for a batch."""
        return self._asked(records, str(self.labels))

    def _asked(self, records: Records, output: str) -> Any:
        given = self._given(records)
        fixed = self._fixed()
        try:
            if fixed is None:
                return self._session.run([output], given)[0]
            return self._in_steps(given, output, fixed, len(records))
        except AuditorError:
            raise
        except Exception as error:
            raise InputError(
                f"{records.name} X must suit the model, but onnxruntime refused it: {_validate.one_line(error)}."
            ) from error

    def _fixed(self) -> int | None:
        """The number of records that every call must have, where the graph fixes it."""
        first = self._inputs[0].shape[0] if self._inputs[0].shape else None
        return first if isinstance(first, int) and first > 0 else None

    def _in_steps(self, given: dict[str, npt.NDArray[Any]], output: str, step: int, n: int) -> Any:
        """Ask for a fixed number of records at a time; the last are repeated to fill it, and left out of the answer."""
        parts: list[Any] = []
        for start in range(0, n, step):
            rows = np.minimum(np.arange(start, start + step), n - 1)
            part = {name: values[rows] for name, values in given.items()}
            parts.append(self._session.run([output], part)[0])
        if isinstance(parts[0], list):
            return [item for part in parts for item in part][:n]
        return np.concatenate(parts)[:n]

    def _of_dictionaries(self, rows: list[dict[Any, float]]) -> npt.NDArray[Any]:
        self.keys = tuple(rows[0])
        return np.array([list(row.values()) for row in rows], dtype=self.dtype)

    # --- Inputs ------------------------------------------------------------------------------------

    def _given(self, records: Records) -> dict[str, npt.NDArray[Any]]:
        if len(self._inputs) == 1:
            return {self._inputs[0].name: self._whole(records)}
        if not matrices.is_frame(records.features):
            listed = ", ".join(repr(item.name) for item in self._inputs[:5])
            raise InputError(
                f"{records.name} X must be a table with a column for each of the model's {len(self._inputs)} inputs"
                f" ({listed}{', ...' if len(self._inputs) > 5 else ''}), got {type(records.features).__name__}."  # noqa: PLR2004
            )
        return {item.name: self._column(records, item) for item in self._inputs}

    def _whole(self, records: Records) -> npt.NDArray[Any]:
        (item,) = self._inputs
        dtype = _dtype(item)
        features = records.features
        if dtype == np.object_:
            array = features.to_numpy() if matrices.is_frame(features) else np.asarray(features)
            array = array.astype(np.str_).astype(object)
        else:
            array = matrices.matrix(features, dtype=dtype, place=records.name, first_row=records.first_row)
        return _fitting(array, item.shape, records.name)

    def _column(self, records: Records, item: Any) -> npt.NDArray[Any]:
        given = matrices.names(records.features)
        if item.name not in given:
            raise InputError(
                f"{records.name} X must have a column for each input of the model, but {item.name!r} is missing."
            )
        dtype = _dtype(item)
        if dtype == np.object_:
            array = np.asarray(records.features[item.name]).astype(np.str_).astype(object)
        else:
            array = matrices.column(
                records.features, item.name, dtype=dtype, place=records.name, first_row=records.first_row
            )
        return _fitting(array, item.shape, records.name)


def _dtype(item: Any) -> np.dtype[Any]:
    kind = re.sub(r"tensor\((.*)\)", r"\1", item.type)
    if kind not in _TYPES:
        raise InputError(
            f"model must take tensors of numbers or text, but its input {item.name!r} is {item.type}."
        )
    found: np.dtype[Any] = np.dtype(_TYPES[kind])
    return found


def _fitting(array: npt.NDArray[Any], shape: list[Any], place: str) -> npt.NDArray[Any]:
    """Return an array in the shape of an input: flat rows of an image become one, and a column a table of one."""
    wanted = shape[1:]
    if not shape or len(array.shape[1:]) == len(wanted) == 1:
        if shape and isinstance(wanted[0], int):
            matrices.refuse_width(array, wanted=wanted[0], model="the ONNX model", place=place)
        return array
    known = all(isinstance(size, int) for size in wanted)
    if known and int(np.prod(wanted, dtype=np.int64)) == int(np.prod(array.shape[1:], dtype=np.int64)):
        return array.reshape(len(array), *wanted)
    return array[:, None] if array.ndim == 1 and len(wanted) == 1 else array


def _chosen(outputs: list[Any]) -> tuple[str, str | None]:
    """Return the names of the output with scores and of that with predicted labels, if there is one."""
    scores = [
        item.name
        for item in outputs
        if item.type.startswith("seq(map(") or re.sub(r"tensor\((.*)\)", r"\1", item.type) in _FLOATS
    ]
    others = [item.name for item in outputs if item.name not in scores]
    for word in _PREFERRED:
        named = [name for name in scores if word in name.lower()]
        if len(named) == 1:
            return named[0], others[0] if others else None
    if len(scores) != 1:
        listed = ", ".join(repr(item.name) for item in outputs)
        raise InputError(
            f"model must have one output of scores, got {len(scores)} among {listed}; export it with probabilities or"
            " logits as its one output of floats (in skl2onnx, zipmap=False)."
        )
    return scores[0], others[0] if others else None
