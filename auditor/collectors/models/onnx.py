"""ONNX models: an open onnxruntime session, the bytes of a model, or the path of a file.

One input takes all columns, or each input takes the column of its name. Of several outputs the scores are taken and the
predicted labels left. Classes are those that the graph names; elsewhere they are found by setting the predicted labels
beside the largest score of some records.

A graph that ends in float32 probabilities keeps nothing of what was rounded away, and the history says so.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.base import records as base_records
from auditor.collectors.base.outputs import Output, shaped_outputs
from auditor.collectors.base.records import Records, spread
from auditor.collectors.base.scorer import (
    Predictor,
    explained,
    import_optional,
    is_a,
    output_words,
    range_remark,
    recognised_output,
)
from auditor.collectors.base.tasks import Classification, Task
from auditor.core import validate
from auditor.core.errors import InputError

# --- Records into the inputs of an onnxruntime session, and its scores out ---


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


class _Session:
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
        with explained(f"{records.name} X must suit the model, but onnxruntime refused it"):
            if fixed is None:
                return self._session.run([output], given)[0]
            return self._in_steps(given, output, fixed, len(records))

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
        if not base_records.is_frame(records.features):
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
            array = features.to_numpy() if base_records.is_frame(features) else np.asarray(features)
            array = array.astype(np.str_).astype(object)
        else:
            array = base_records.matrix(
                features, dtype=dtype, place=records.name, first_row=records.first_row
            )
        return _fitting(array, item.shape, records.name)

    def _column(self, records: Records, item: Any) -> npt.NDArray[Any]:
        given = base_records.column_names(records.features)
        if item.name not in given:
            raise InputError(
                f"{records.name} X must have a column for each input of the model, but {item.name!r} is missing."
            )
        dtype = _dtype(item)
        if dtype == np.object_:
            array = np.asarray(records.features[item.name]).astype(np.str_).astype(object)
        else:
            array = base_records.column_array(
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
            base_records.refuse_width(array, wanted=wanted[0], model="the ONNX model", place=place)
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


# --- What an ONNX file says about its classes, read from its bytes (protocol buffers) without another package ---
#
# Only what is needed is decoded: ModelProto.graph (field 7), GraphProto.node (1), NodeProto.op_type (4), attribute (5)
# and domain (7), AttributeProto.name (1), ints (8) and strings (9).


_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)
_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
_DOMAIN = b"ai.onnx.ml"
_CLASSIFIERS = (b"LinearClassifier", b"SVMClassifier", b"TreeEnsembleClassifier")
_MOST = 10**6  # labels


@dataclass(frozen=True)
class _Graph:
    """What is known of a graph.

    Attributes:
        classes: The labels that its last classifier names, in the order of the scores; none where none does.
        classifies: Whether a classifier of the machine-learning operators is in it, which gives two scores for two classes.
    """

    classes: tuple[Any, ...] | None = None
    classifies: bool = False


def read_graph(content: bytes) -> _Graph:
    """Return what a model's bytes say; nothing where they cannot be read."""
    classes: tuple[Any, ...] | None = None
    classifies = False
    try:
        for graph in _all(content, 7):
            for node in _all(graph, 1):
                if next(_all(node, 7), b"") != _DOMAIN:
                    continue
                classifies = classifies or next(_all(node, 4), b"") in _CLASSIFIERS
                classes = _labels(node) or classes
    except (IndexError, UnicodeDecodeError, ValueError):
        return _Graph()
    return _Graph(classes, classifies)


def _labels(node: bytes) -> tuple[Any, ...] | None:
    """Return the class labels among a node's attributes."""
    for attribute in _all(node, 5):
        if bytes(next(_all(attribute, 1), b"")).decode() not in _LABELS:
            continue
        strings: tuple[Any, ...] = tuple(item.decode() for item in _all(attribute, 9))
        found = strings or tuple(_integers(attribute, 8))
        if 0 < len(found) <= _MOST:
            return found
    return None


def _all(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the byte strings in a field."""
    for field, value in _fields(message):
        if field == wanted and isinstance(value, bytes):
            yield value


def _integers(message: bytes, wanted: int) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    for field, value in _fields(message):
        if field != wanted:
            continue
        if isinstance(value, int):
            yield _signed(value)
            continue
        place = 0
        while place < len(value):
            number, place = _varint(value, place)
            yield _signed(number)


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, bytes | memoryview | int]]:
    """Yield the numbers and values of a message's fields: integers and byte strings.

    Raises:
        ValueError: What is no message.
        IndexError: A message that is cut short.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield key >> 3, value
        elif kind == _BYTES:
            size, place = _varint(message, place)
            if place + size > len(message):
                raise ValueError("cut short")
            yield key >> 3, message[place : place + size]
            place += size
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        elif kind not in (_GROUP, _END_GROUP):  # what is in a group of old is read as if it were outside
            raise ValueError("unknown")


def _varint(message: bytes | memoryview, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = message[place]
        place += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return result, place
        if shift > 63:  # noqa: PLR2004
            raise ValueError("too long")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


# --- Weights that an ONNX model keeps in files of their own, found in its bytes and hashed with them ---
#
# Only what leads to tensors is decoded: ModelProto.graph (field 7) and functions (25), GraphProto.node (1), initializer (5)
# and sparse_initializer (15), SparseTensorProto's values (1) and indices (2), NodeProto.attribute (5) and FunctionProto.node
# (7), AttributeProto's t (5), g (6), tensors (10), graphs (11), sparse_tensor (22) and sparse_tensors (23), and
# TensorProto.external_data (13) with its key (1) and value (2).


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


def _refuse_outside(names: tuple[str, ...], *, named: str) -> None:
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


def _hashed(content: bytes, names: tuple[str, ...], folder: Path) -> str:
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
        for field, value in _fields(message):
            if field not in leads or isinstance(value, int):
                continue
            if leads[field] != "entry":
                waiting.append((leads[field], value))
                continue
            entry = {number: part for number, part in _fields(value) if not isinstance(part, int)}
            if entry.get(1) == b"location":
                yield bytes(entry.get(2, b"")).decode("utf-8", "surrogateescape")


# --- An ONNX model as a predictor ---


_SUFFIX = ".onnx"


def accepts(model: Any) -> bool:
    """Return whether this is an onnxruntime session, a model in memory, or the path of an ONNX file."""
    if isinstance(model, str | Path):
        return Path(model).suffix.lower() == _SUFFIX
    return (
        isinstance(model, bytes)
        or is_a(model, "onnxruntime", "InferenceSession")
        or is_a(model, "onnx", "ModelProto")
    )


def open_session(model: Any) -> Any:
    """Return an onnxruntime session, which has the threads and the processor that onnxruntime chooses.

    Args:
        model: A session, the bytes of a model, or the path of a file.

    Raises:
        InputError: A file that is missing or no ONNX model.
        MissingExtraError: onnxruntime is not installed.
    """
    runtime = import_optional("onnxruntime", purpose="scoring an ONNX model", extra="onnx")
    if is_a(model, "onnxruntime", "InferenceSession"):
        return model
    named = f"file {Path(model).name!r}" if isinstance(model, str | Path) else "model"
    if isinstance(model, str | Path) and not Path(model).is_file():
        raise InputError(f"{named} must be an ONNX file, but there is none at that path.")
    source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    _refuse_external(source, named)
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 3  # its remarks on shapes are not for the auditor
    try:
        return runtime.InferenceSession(
            str(source) if isinstance(source, Path) else source,
            sess_options=quiet,
            providers=runtime.get_available_providers(),
        )
    except Exception as error:
        reason = validate.one_line(error)
        if isinstance(model, str | Path):  # its place on this machine is nobody's business
            reason = reason.replace(str(model), Path(model).name)
        raise InputError(
            f"{named} must be an ONNX model, but onnxruntime cannot open it: {reason}."
        ) from error


def _refuse_external(source: bytes | str | Path, named: str) -> None:
    """Refuse a model with weights elsewhere than in files beside it."""
    names = external_files(source if isinstance(source, bytes) else Path(source).read_bytes())
    _refuse_outside(names, named=named)
    if names and isinstance(source, bytes):
        raise InputError(
            f"model keeps weights in {names[0]!r}, so it must be the path of its file and not its content, which does not"
            " say in which folder that is."
        )


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return an ONNX model as the collectors see it."""
    raw = open_session(model)
    content = _content(model, raw)
    graph = read_graph(content) if content is not None else _Graph()
    session = _Session(raw, halved=False)
    tried = spread(sample)
    answers = [shaped_outputs(session(part), n=len(part), place=part.name) for part in tried]
    if _two_halves(answers, graph, session, task):
        session = _Session(raw, halved=True)
        answers = [values[:, 1] for values in answers]
    values = np.concatenate(answers) if answers else None
    kind, taken = None, ""
    if task.has_output:
        kind = output or (Output.PROBABILITIES if values is None else recognised_output(values, task=task))
        taken = "" if output is not None or values is None else range_remark(values, task=task)
    dtype = session.dtype if values is None else str(values.dtype)
    return Predictor(
        predict=session,
        source=f"{output_words(kind, dtype=dtype)} of an ONNX model's output {session.output!r}{taken}",
        output=kind,
        classes=_classes(session, graph, tried, answers) if isinstance(task, Classification) else None,
        identity=_identity(content, model, raw),
    )


def _content(model: Any, session: Any) -> bytes | None:
    """Return the bytes of a model: those given, those of the file, or those that the session was built from."""
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    if isinstance(model, bytes):
        return model
    path = _path(model, session)
    found = getattr(session, "_model_bytes", None)
    if path is None:
        return found if isinstance(found, bytes) else None
    return path.read_bytes() if path.is_file() else None


def _path(model: Any, session: Any) -> Path | None:
    path = model if isinstance(model, str | Path) else getattr(session, "_model_path", None)
    return None if path is None else Path(path)


def _identity(content: bytes | None, model: Any, session: Any) -> str | None:
    """Return a hash of the bytes of a model and of its files of weights; none where they cannot be found."""
    if content is None:
        return None
    names, path = external_files(content), _path(model, session)
    if names and path is None:
        return None
    return _hashed(content, names, Path() if path is None else path.parent)


def _two_halves(answers: Sequence[Any], graph: _Graph, session: _Session, task: Task) -> bool:
    """Return whether a classifier of two classes gives its score twice, as -s and s, which is one logit and not two."""
    if not answers or not graph.classifies or not session.labels or not isinstance(task, Classification):
        return False
    return all(
        values.ndim == 2 and values.shape[1] == 2 and np.array_equal(values[:, 0], -values[:, 1])  # noqa: PLR2004
        for values in answers
    )


def _classes(
    session: _Session, graph: _Graph, tried: Sequence[Records], answers: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Return the labels of the output columns, where the graph names them or its predictions show them."""
    if session.keys is not None:
        return session.keys
    width = 0 if not answers else (2 if answers[0].ndim == 1 else answers[0].shape[1])
    if graph.classes is not None and (not answers or len(graph.classes) == width):
        return graph.classes
    if not session.labels or not answers:
        return None
    return _shown(session, tried, answers, width)


def _shown(
    session: _Session, tried: Sequence[Records], answers: Sequence[Any], width: int
) -> tuple[Any, ...] | None:
    """Return the labels that go with the largest score of each column; none if a column is never the largest."""
    found: dict[int, set[Any]] = {}
    for part, values in zip(tried, answers, strict=True):
        labels = np.asarray(session.predicted(part)).reshape(-1).tolist()
        best = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        for column, label in zip(best.tolist(), labels, strict=True):
            found.setdefault(column, set()).add(label)
    if any(len(labels) > 1 for labels in found.values()):
        return None
    shown = {column: next(iter(labels)) for column, labels in found.items()}
    if all(label == column for column, label in shown.items()):
        return None  # the column numbers, as without names
    if len(shown) < width:
        raise InputError(
            f"classes must be given for this ONNX model, which predicted only {len(shown)} of its {width} classes on the"
            " sample and does not name them; name the label of each output column with classes= (--classes)."
        )
    return tuple(shown[column] for column in range(width))
