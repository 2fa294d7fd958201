"""ONNX models: the file of one, or an open onnxruntime session.

One input takes all columns, or each input takes the column of its name. Of several outputs the scores are taken and the
predicted labels left. Classes are those that the graph names.

A graph that ends in float32 probabilities keeps nothing of the rounded digits, and the history says so.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor.collectors.base.outputs import Output, shaped_outputs
from auditor.collectors.base.records import Input, Records, arrays, listed, spread
from auditor.collectors.base.scorer import Predictor, recognised_output
from auditor.collectors.base.tasks import Classifier, Task
from auditor.collectors.models.carried import rows_in_graph
from auditor.collectors.models.trust import named, readable, refuse_elsewhere
from auditor.core import Array, InputError, MissingExtraError, explained, import_optional

_PURPOSE = "scoring an ONNX model"

# --- Records into the inputs of an onnxruntime session, and its scores out ---


_TYPES = {"float": "float32", "double": "float64", "string": "object"}  # by other names than numpy's
_FLOATS = ("float", "double", "float16")
_PREFERRED = ("prob", "logit", "score")  # in the name of an output, the first that matches


class _Session:
    """A session that returns the scores of a batch.

    Args:
        session: An onnxruntime session.

    Attributes:
        halved: Whether of two columns of scores, -s and s, only s is returned.
        output: The name of the output with the scores.
        keys: The classes by which the scores were named, where they come as dictionaries, after the first call.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = [_input(item) for item in session.get_inputs()]
        # How many records every call must have, where the graph fixes it.
        first = next((item.shape[0] for item in session.get_inputs() if item.shape), None)
        self._fixed = first if isinstance(first, int) and first > 0 else None
        self.halved = False
        self.output = _chosen(session.get_outputs())
        self.keys: tuple[Any, ...] | None = None

    def __call__(self, records: Records) -> Array:
        """Return the scores of a batch; an exception of the session becomes one sentence, with the cause kept."""
        answer = self.run(records, self.output)
        if isinstance(answer, list) and answer:
            self.keys = tuple(answer[0])
            answer = np.array([list(row.values()) for row in answer], dtype=np.float32)
        values = np.asarray(answer)
        return values[:, 1] if self.halved else values

    def run(self, records: Records, output: str) -> Any:
        """Return one output for a batch; where every call has a number of records, the last is filled up with copies."""
        columns = arrays(self._inputs, records, model="the ONNX model")
        n, step = len(records), self._fixed or len(records)
        parts: list[Any] = []
        with explained(f"{records.name} X must suit the model, but onnxruntime refused it"):
            for start in range(0, n, step):
                rows = np.minimum(np.arange(start, start + step), n - 1)
                part = columns if step == n else {name: values[rows] for name, values in columns.items()}
                parts.append(self._session.run([output], part)[0])
        if isinstance(parts[0], list):
            return [item for part in parts for item in part][:n]
        return np.concatenate(parts)[:n]


def _input(item: Any) -> Input:
    kind = re.sub(r"tensor\((.*)\)", r"\1", item.type)
    try:
        dtype = np.dtype(_TYPES.get(kind, kind))
    except TypeError:
        raise InputError(
            f"model must take tensors of numbers or text, but its input {item.name!r} is {item.type}."
        ) from None
    sizes = tuple(size if isinstance(size, int) else None for size in item.shape[1:])
    return Input(item.name, sizes if item.shape else None, dtype)


def _chosen(outputs: list[Any]) -> str:
    """Return the name of the output with scores."""
    scores: list[str] = [
        item.name
        for item in outputs
        if item.type.startswith("seq(map(") or re.sub(r"tensor\((.*)\)", r"\1", item.type) in _FLOATS
    ]
    for word in _PREFERRED:
        preferred = [name for name in scores if word in name.lower()]
        if len(preferred) == 1:
            return preferred[0]
    if len(scores) != 1:
        raise InputError(
            f"model must have one output of scores, got {len(scores)} among {listed([item.name for item in outputs])};"
            " export it with probabilities or logits as its one output of floats (in skl2onnx, zipmap=False)."
        )
    return scores[0]


# --- Metadata of a model: its classes, and the files of its weights ---


_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def _parsed(data: bytes) -> Any:
    """Return the message in the bytes of a model."""
    return import_optional("onnx", purpose=_PURPOSE, extra="onnx").ModelProto.FromString(data)


def _graph(session: Any) -> Any:
    """Return the graph of a session; None if it cannot be had."""
    path, data = getattr(session, "_model_path", None), getattr(session, "_model_bytes", None)
    if path is not None and Path(path).is_file():
        data = Path(path).read_bytes()
    return _parsed(data).graph if data else None


def _classifiers(graph: Any) -> list[Any]:
    """Return the nodes of the machine-learning operators."""
    return [node for node in graph.node if node.domain == "ai.onnx.ml"]


def _named_classes(graph: Any) -> tuple[Any, ...] | None:
    """Return the labels that the last classifier of a graph names, in the order of the scores; none where none does."""
    for node in reversed(_classifiers(graph)):
        for attribute in node.attribute:
            labels = [item.decode(errors="replace") for item in attribute.strings] or list(attribute.ints)
            if attribute.name in _LABELS and labels:
                return tuple(labels)
    return None


def _external_data(message: Any) -> Iterator[Any]:
    """Yield the external data entries of every tensor, at any place."""
    waiting = [message]
    while waiting:
        message = waiting.pop()
        yield from getattr(message, "external_data", ())
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else value


# --- An ONNX model as a predictor ---


_AT_ONCE = 4096  # records, for what the layers of a network hold grows with them


def open_session(path: Path) -> Any:
    """Return an onnxruntime session, which has the threads and the processor that onnxruntime chooses.

    Raises:
        InputError: A file that is no ONNX model, or weights that do not lie beside it.
        MissingExtraError: onnxruntime is not installed.
    """
    runtime = import_optional("onnxruntime", purpose=_PURPOSE, extra="onnx")
    if [*map(int, re.findall(r"\d+", runtime.__version__))] < [1, 24, 1]:
        raise MissingExtraError(
            f"{_PURPOSE} needs onnxruntime 1.24.1 or later, got {runtime.__version__}, with which a model can read files from"
            " elsewhere; pip install --upgrade 'privacy-auditor[onnx]'."
        )
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 4  # its remarks, which hold names from the model, are not for the auditor
    with readable(path, kind="an ONNX model"):
        entries = _external_data(_parsed(path.read_bytes()))
        for name in sorted({entry.value for entry in entries if entry.key == "location"}, key=repr):
            refuse_elsewhere(path.parent, name, place=named(path))
        return runtime.InferenceSession(
            str(path), sess_options=quiet, providers=runtime.get_available_providers()
        )


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return an ONNX model as the collectors see it."""
    session, graph = _Session(model), _graph(model)
    tried = spread(sample)
    answers = [shaped_outputs(session(part), part) for part in tried]
    if graph is not None and isinstance(task, Classifier) and _two_halves(answers, graph):
        session.halved = True
        answers = [values[:, 1] for values in answers]
    kind, remark = recognised_output(answers, task=task, output=output)
    return Predictor(
        predict=session,
        source=f"{answers[0].dtype} {kind or 'predictions'} of an ONNX model's output {session.output!r}{remark}",
        output=kind,
        classes=_classes(session, graph, answers) if isinstance(task, Classifier) else None,
        records_at_once=_AT_ONCE,
        carried=None if graph is None else rows_in_graph(graph),
    )


def _two_halves(answers: Sequence[Any], graph: Any) -> bool:
    """Return whether a classifier of two classes gives its score twice, as -s and s, which is one logit and not two."""
    classifies = any(node.op_type in _CLASSIFIERS for node in _classifiers(graph))
    if not classifies or len(graph.output) == 1:
        return False
    return all(
        values.ndim == 2 and values.shape[1] == 2 and np.array_equal(values[:, 0], -values[:, 1])  # noqa: PLR2004
        for values in answers
    )


def _classes(session: _Session, graph: Any, answers: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the labels of the output columns that the graph names, if there is one for each."""
    if session.keys is not None:
        return session.keys
    width = 2 if answers[0].ndim == 1 else answers[0].shape[1]
    own = None if graph is None else _named_classes(graph)
    return own if own is not None and len(own) == width else None
