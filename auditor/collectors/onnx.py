"""ONNX models: an open onnxruntime session, the bytes of a model, or the path of a file.

One input takes all columns, or each input takes the column of its name. Of several outputs the scores are taken and the
predicted labels left. Classes are those that the graph names; elsewhere they are found by setting the predicted labels
beside the largest score of some records.

A graph that ends in float32 probabilities keeps nothing of what was rounded away, and the history says so.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor import _validate
from auditor.collectors.extras import is_a, needed
from auditor.collectors.onnx_external import external_files, hashed, refuse_outside
from auditor.collectors.onnx_graph import Graph, read_graph
from auditor.collectors.onnx_session import Session
from auditor.collectors.outputs import Output, shaped
from auditor.collectors.predictor import Predictor
from auditor.collectors.recognition import recognised, remark, worded
from auditor.collectors.records import Records
from auditor.collectors.samples import spread
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError

__all__ = ["accepts", "opened", "predictor"]

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


def opened(model: Any) -> Any:
    """Return an onnxruntime session, which has the threads and the processor that onnxruntime chooses.

    Args:
        model: A session, the bytes of a model, or the path of a file.

    Raises:
        InputError: A file that is missing or no ONNX model.
        MissingExtraError: onnxruntime is not installed.
    """
    runtime = needed("onnxruntime", purpose="scoring an ONNX model", extra="onnx")
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
        reason = _validate.one_line(error)
        if isinstance(model, str | Path):  # its place on this machine is nobody's business
            reason = reason.replace(str(model), Path(model).name)
        raise InputError(
            f"{named} must be an ONNX model, but onnxruntime cannot open it: {reason}."
        ) from error


def _refuse_external(source: bytes | str | Path, named: str) -> None:
    """Refuse a model with weights elsewhere than in files beside it."""
    names = external_files(source if isinstance(source, bytes) else Path(source).read_bytes())
    refuse_outside(names, named=named)
    if names and isinstance(source, bytes):
        raise InputError(
            f"model keeps weights in {names[0]!r}, so it must be the path of its file and not its content, which does not"
            " say in which folder that is."
        )


def predictor(model: Any, *, task: Task, output: Output | None, sample: Sequence[Records]) -> Predictor:
    """Return an ONNX model as the collectors see it."""
    raw = opened(model)
    content = _content(model, raw)
    graph = read_graph(content) if content is not None else Graph()
    session = Session(raw, halved=False)
    tried = spread(sample)
    answers = [shaped(session(part), n=len(part), place=part.name) for part in tried]
    if _two_halves(answers, graph, session, task):
        session = Session(raw, halved=True)
        answers = [values[:, 1] for values in answers]
    values = np.concatenate(answers) if answers else None
    kind, taken = None, ""
    if task.has_output:
        kind = output or (Output.PROBABILITIES if values is None else recognised(values, task=task))
        taken = "" if output is not None or values is None else remark(values, task=task)
    dtype = session.dtype if values is None else str(values.dtype)
    return Predictor(
        predict=session,
        source=f"{worded(kind, dtype=dtype)} of an ONNX model's output {session.output!r}{taken}",
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
    return hashed(content, names, Path() if path is None else path.parent)


def _two_halves(answers: Sequence[Any], graph: Graph, session: Session, task: Task) -> bool:
    """Return whether a classifier of two classes gives its score twice, as -s and s, which is one logit and not two."""
    if not answers or not graph.classifies or not session.labels or not isinstance(task, Classification):
        return False
    return all(
        values.ndim == 2 and values.shape[1] == 2 and np.array_equal(values[:, 0], -values[:, 1])  # noqa: PLR2004
        for values in answers
    )


def _classes(
    session: Session, graph: Graph, tried: Sequence[Records], answers: Sequence[Any]
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
    session: Session, tried: Sequence[Records], answers: Sequence[Any], width: int
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
