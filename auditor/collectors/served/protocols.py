"""What kinds of servers speak: how records are written into requests, and answers are read."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from auditor.collectors.served.payload import (
    PROBABILITIES,
    Payload,
    UnusableError,
    answer_rows,
    chosen_output,
    json_text,
    wanted_rows,
)
from auditor.collectors.served.transport import Transport, printable
from auditor.core.errors import InputError

# --- A wire: how records are written into the requests of one model on one server, and its answers read ---


@dataclass(frozen=True)
class Target:
    """One model on a server, and what is wanted of it.

    Attributes:
        base: The path before what the protocol adds, without a slash at its end.
        model: The name of the model, where it is known.
        version: Its version, where one is named.
        output_name: Which of several outputs is wanted, where the caller said so.
        probabilities: Whether class probabilities are wanted; a regression wants what there is.
        by_name: Whether cells are sent with the names of their columns; none where the wire decides.
        path: The whole path as it was given.
    """

    base: str
    model: str | None
    version: str | None
    output_name: str | None
    probabilities: bool
    by_name: bool | None
    path: str


@dataclass(frozen=True)
class Wire(ABC):
    """The requests of one model, and its answers.

    Attributes:
        path: Where requests go.
        target: The model.
        fix: What makes this kind of server return probabilities instead of labels.
    """

    path: str
    target: Target
    fix: ClassVar[str]

    @property
    def single(self) -> bool:
        """Whether a request holds one record only."""
        return False

    def texts(self, payload: Payload) -> list[str]:
        """Return the JSON of each record, as it stands in a request (or of about the size that it takes there)."""
        return payload.texts()

    @abstractmethod
    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        """Return a request for some records, whose texts are given too."""

    @abstractmethod
    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        """Return the outputs for ``n`` records.

        Raises:
            UnusableError: An answer without them.
        """

    def fallback(self) -> "Wire | None":
        """Return a wire that asks for less, to be tried where a server does not take the first request."""
        return None

    def _outputs(self, value: Any, *, n: int) -> npt.NDArray[Any]:
        """Return the output that is wanted, out of rows or of several outputs."""
        wanted, probabilities = self.target.output_name, self.target.probabilities
        return answer_rows(wanted_rows(value, wanted=wanted, probabilities=probabilities), n=n)


# --- TF Serving and KServe V1: ``POST /v1/models/NAME:predict`` ---
#
# Rows go as ``{"instances": [...]}`` and come back as ``{"predictions": [...]}``, one object for each record where the
# model has several outputs; columns go as ``{"inputs": {...}}`` and come back as ``{"outputs": ...}``.


@dataclass(frozen=True)
class KServeV1:
    """The protocol of TF Serving and of KServe's V1 servers.

    Attributes:
        signature_name: The signature of a TensorFlow model that is asked; default ``serving_default``.
        columnar: Whether columns are sent instead of rows, for a model whose inputs are named tensors.

    >>> KServeV1(signature_name="scores")
    KServeV1(signature_name='scores', columnar=False)
    """

    signature_name: str | None = None
    columnar: bool = False

    def opened(self, target: Target, *, transport: Transport) -> Wire:
        """Return the wire to a model."""
        if target.path.endswith(":predict"):
            return _WireV1(target.path, target, self, named=bool(target.by_name))
        if target.model is None:
            raise InputError("model must name the model on a V1 server, got none; give model=.")
        version = "" if target.version is None else f"/versions/{target.version}"
        root = f"{target.base}/v1/models/{target.model}{version}"
        named = _several(transport.get(f"{root}/metadata"), self.signature_name or "serving_default")
        return _WireV1(
            f"{root}:predict", target, self, named=named if target.by_name is None else target.by_name
        )


def _several(body: bytes | None, signature: str) -> bool:
    """Return whether TF Serving's metadata says that the model has several inputs, which are sent by name."""
    try:
        found = json.loads(body or b"null")
        inputs = found["metadata"]["signature_def"]["signature_def"][signature]["inputs"]
        return len(inputs) > 1
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


@dataclass(frozen=True)
class _WireV1(Wire):
    protocol: KServeV1
    named: bool
    fix = "set PREDICT_PROBA=true for KServe's scikit-learn server, or serve a function that returns probabilities"

    def texts(self, payload: Payload) -> list[str]:
        objects = self._by_name(payload) and not self.protocol.columnar
        return [json_text(row) for row in (payload.objects() if objects else payload.rows)]

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        name = self.protocol.signature_name
        signature = "" if name is None else f'"signature_name":{json_text(name)},'
        rows = f"[{','.join(texts)}]"
        if not self.protocol.columnar:
            return f'{{{signature}"instances":{rows}}}'.encode()
        if payload.columns is not None:
            columns = {
                name: [row[place] for row in payload.rows] for place, name in enumerate(payload.columns)
            }
            rows = json_text(columns)
        return f'{{{signature}"inputs":{rows}}}'.encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        found = answer if isinstance(answer, dict) else {}
        value = found.get("predictions", found.get("outputs"))
        if value is None:
            raise UnusableError("answered without predictions", fix="name the protocol with protocol=")
        return self._outputs(value, n=n)

    def _by_name(self, payload: Payload) -> bool:
        """Whether records are sent as objects: where the model has several inputs, or where a row mixes text and numbers."""
        if payload.columns is None:
            return False
        mixed = payload.text and self.target.by_name is None
        return self.named or mixed


# --- Input tensors of the Open Inference Protocol, as JSON ---


def _single_tensor(payload: Payload, texts: Sequence[str], *, name: str, datatype: Any, shape: Any) -> str:
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
        texts = [json_text(_typed(row, kind, name)) for row in payload.rows]
    data = ",".join(text[1:-1] for text in texts) if payload.shape else ",".join(texts)
    if len(payload.shape) > 1:
        data = data.replace("[", "").replace("]", "")  # row-major and flat, which every server takes
    sides = [len(payload.rows), *payload.shape]
    if not payload.shape and isinstance(shape, list) and len(shape) == 2:  # noqa: PLR2004
        sides.append(1)
    return _input_tensor(name, sides, kind, f"[{data}]")


def _named_tensors(payload: Payload, *, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
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
    return _input_tensor(name, sides, kind, json_text(cells), parameters)


def _input_tensor(name: str, shape: Sequence[int], datatype: str, data: str, parameters: str = "") -> str:
    return f'{{"name":{json_text(name)},"shape":{json_text(shape)},"datatype":{json_text(datatype)}{parameters},"data":{data}}}'


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


# --- KServe V2, the Open Inference Protocol (MLServer, Triton, KServe, OpenVINO): ``POST /v2/models/NAME/infer`` ---
#
# Tensors have a name, a shape, a datatype and data. One matrix goes as one tensor; a model with several inputs gets one
# for each column, by name. Text is of datatype BYTES. Data come back flat or nested, so they are always reshaped.


_FLOATS: Mapping[str, npt.DTypeLike] = {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
_ASKED = "predict_proba"  # what scikit-learn, XGBoost and LightGBM runtimes of MLServer call it


@dataclass(frozen=True)
class KServeV2:
    """The Open Inference Protocol.

    Attributes:
        input_name: The name of the input tensor; default what the model's metadata says.
        datatype: Its datatype (``FP32``, ``INT64``, ...); default likewise, or else FP64 for floats, which keeps every
            digit.

    >>> KServeV2(datatype="FP32")
    KServeV2(input_name=None, datatype='FP32')
    """

    input_name: str | None = None
    datatype: str | None = None

    def opened(self, target: Target, *, transport: Transport) -> Wire:
        """Return the wire to a model, by its metadata."""
        if target.model is None:
            raise InputError("model must name the model on a V2 server, got none; give model=.")
        version = "" if target.version is None else f"/versions/{target.version}"
        root = f"{target.base}/v2/models/{target.model}{version}"
        found = _metadata(transport.get(root))
        outputs = [str(item["name"]) for item in found["outputs"]]
        return _WireV2(
            path=f"{root}/infer",
            target=target,
            protocol=self,
            inputs=tuple(found["inputs"]),
            asked=_asked(outputs, target),
        )


def _metadata(body: bytes | None) -> dict[str, list[Mapping[str, Any]]]:
    """Return the inputs and outputs that a model says it has; none where it says nothing that can be understood."""
    try:
        found = json.loads(body or b"null")
    except (ValueError, RecursionError):
        found = None
    listed = {key: found.get(key) if isinstance(found, dict) else None for key in ("inputs", "outputs")}
    return {
        key: [item for item in value if isinstance(item, dict) and "name" in item]
        if isinstance(value, list)
        else []
        for key, value in listed.items()
    }


def _asked(outputs: Sequence[str], target: Target) -> str | None:
    """Return which output to ask for: by name, or probabilities where the model does not say what it has."""
    if target.output_name is not None:
        return target.output_name
    if not target.probabilities:
        return None
    if not outputs:
        return _ASKED
    return next((name for name in outputs if name.casefold() in PROBABILITIES), None)


@dataclass(frozen=True)
class _WireV2(Wire):
    protocol: KServeV2
    inputs: tuple[Mapping[str, Any], ...]
    asked: str | None
    fix = (
        "ask for probabilities with output_name='predict_proba', or have the server return them (MLServer:"
        ' "predict_fn": "predict_proba" under parameters.extra in model-settings.json)'
    )

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        outputs = "" if self.asked is None else f',"outputs":[{json.dumps({"name": self.asked})}]'
        if self._one(payload):
            known = self.inputs[0] if len(self.inputs) == 1 else {}
            tensor = _single_tensor(
                payload,
                texts,
                name=self.protocol.input_name or str(known.get("name", "input-0")),
                datatype=self.protocol.datatype or known.get("datatype"),
                shape=known.get("shape"),
            )
            return f'{{"inputs":[{tensor}]{outputs}}}'.encode()
        tensors = _named_tensors(payload, known={str(item["name"]): item for item in self.inputs})
        pandas = "" if self.inputs else '"parameters":{"content_type":"pd"},'
        return f'{{{pandas}"inputs":[{",".join(tensors)}]{outputs}}}'.encode()

    def _one(self, payload: Payload) -> bool:
        """Whether records go as one tensor: unless the model has several inputs, or columns are text and numbers."""
        if self.target.by_name is not None:
            return not self.target.by_name
        if len(self.inputs) > 1:
            return False
        return payload.columns is None or bool(self.inputs) or not payload.text

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        listed = answer.get("outputs") if isinstance(answer, dict) else None
        good = isinstance(listed, list) and all(isinstance(item, dict) and "data" in item for item in listed)
        if not good or not listed:
            raise UnusableError("answered without outputs", fix="name the protocol with protocol=")
        names = [str(item.get("name")) for item in listed]
        wanted = self.target.output_name
        name = chosen_output(names, wanted=wanted, probabilities=self.target.probabilities)
        return _tensor(listed[names.index(name)], n=n)

    def fallback(self) -> Wire | None:
        """Return a wire that takes whatever the model answers, if the output was a guess."""
        guessed = self.asked is not None and self.target.output_name is None
        return replace(self, asked=None) if guessed else None


def _tensor(output: Mapping[str, Any], *, n: int) -> npt.NDArray[Any]:
    """Return a tensor in the type and the shape that it says."""
    shape, datatype = output.get("shape"), str(output.get("datatype"))
    data = np.asarray(_flat(output["data"]))
    good = isinstance(shape, list) and all(isinstance(side, int) and side >= 0 for side in shape)
    if not good or not shape or int(np.prod(shape)) != data.size:
        raise UnusableError(
            f"answered with {data.size} numbers of the shape {shape!r}", fix="look into the server's log"
        )
    values = answer_rows(data.reshape(shape), n=n)
    kind = _FLOATS.get(datatype)
    return values if kind is None or values.dtype.kind not in "fiu" else values.astype(kind)


def _flat(data: Any) -> npt.NDArray[Any]:
    """Return the data of a tensor as a vector; nested lists are row-major as flat ones are."""
    try:
        array = np.asarray(data)
        return (array.astype(np.float64) if array.dtype.kind == "O" else array).ravel()
    except (ValueError, TypeError):
        raise UnusableError("answered with what is no tensor", fix="look into the server's log") from None


# --- MLflow's scoring server, and SageMaker containers made by it: ``POST /invocations`` ---
#
# A table goes as ``dataframe_split`` with the names of its columns, an array as ``inputs``; the answer is
# ``{"predictions": [...]}``. A scikit-learn model that is logged as usual answers with labels.


@dataclass(frozen=True)
class MLflow:
    """The protocol of MLflow's scoring server.

    >>> MLflow()
    MLflow()
    """

    def opened(self, target: Target, *, transport: Transport) -> Wire:  # noqa: ARG002 - the server tells nothing
        """Return the wire to the model; the server has only one."""
        path = target.path if target.path.endswith("/invocations") else f"{target.base}/invocations"
        return _WireMLflow(path, target)


@dataclass(frozen=True)
class _WireMLflow(Wire):
    fix = (
        "log the model with mlflow.sklearn.log_model(..., pyfunc_predict_fn='predict_proba'), or wrap it in a"
        " PythonModel whose predict returns probabilities"
    )

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        rows = ",".join(texts)
        if payload.columns is not None and self.target.by_name is not False:
            return (
                f'{{"dataframe_split":{{"columns":{json_text(payload.columns)},"data":[{rows}]}}}}'.encode()
            )
        return f'{{"inputs":[{rows}]}}'.encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        if isinstance(answer, dict):
            if "predictions" not in answer:
                raise UnusableError("answered without predictions", fix="name the protocol with protocol=")
            answer = answer["predictions"]
        return self._outputs(answer, n=n)


# --- Any other server: a request with a place for the records, and a path to the outputs in the answer ---


_PLACE = re.compile(r'"?\{\{\s*(rows|row|records|record)\s*\}\}"?')


@dataclass(frozen=True)
class Template:
    r"""A request as JSON text with one placeholder, and a path to the outputs in the answer.

    Attributes:
        request: JSON with one of ``{{rows}}`` (a list of lists of cells), ``{{records}}`` (a list of objects by column
            name), ``{{row}}`` or ``{{record}}`` (one record for each request), quoted or not.
        response: Names and positions separated by dots ("outputs.0.scores"), or a JSON pointer ("/outputs/0/scores");
            ``*`` goes through a list ("results.*.probs"). Empty is the whole answer. It leads to one output for each
            record of the request, in their order.

    Raises:
        InputError: A request that is no JSON or has no placeholder or several.

    >>> Template('{"data": {{rows}}}', "scores.*.probability").response
    'scores.*.probability'
    """

    request: str
    response: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.request, str) or not isinstance(self.response, str):
            raise InputError("request_template and response_path must be text.")
        found = _PLACE.findall(self.request)
        if len(found) != 1:
            raise InputError(
                "request_template must hold one of {{rows}}, {{records}}, {{row}} and {{record}}, once, got"
                f" {len(found)} of them."
            )
        try:
            json.loads(_PLACE.sub("null", self.request))
        except ValueError as error:
            raise InputError(f"request_template must be JSON around its placeholder: {error}.") from None

    @property
    def kind(self) -> str:
        """Which placeholder it is."""
        return str(_PLACE.findall(self.request)[0])

    @property
    def steps(self) -> list[str]:
        """The names and positions that lead to the outputs."""
        if self.response.startswith("/"):
            return [step.replace("~1", "/").replace("~0", "~") for step in self.response[1:].split("/")]
        return [step for step in self.response.removeprefix("$").strip(".").split(".") if step]

    def opened(self, target: Target, *, transport: Transport) -> Wire:  # noqa: ARG002 - nothing to ask
        """Return the wire to the address as it was given."""
        return _WireTemplate(target.path, target, self)


@dataclass(frozen=True)
class _WireTemplate(Wire):
    protocol: Template
    fix = "let the server return a probability for each class"

    @property
    def single(self) -> bool:
        return self.protocol.kind in ("row", "record")

    def texts(self, payload: Payload) -> list[str]:
        objects = self.protocol.kind in ("records", "record")
        if objects and payload.columns is None:
            raise InputError(
                "columns must name the features where the request asks for {{records}}, got an array without names; give"
                " columns=, or use {{rows}}."
            )
        return [json_text(row) for row in (payload.objects() if objects else payload.rows)]

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:  # noqa: ARG002 - the texts say all
        value = texts[0] if self.single else f"[{','.join(texts)}]"
        return _PLACE.sub(lambda _: value, self.protocol.request).encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        value = _followed(answer, self.protocol.steps, self.protocol.response)
        value = wanted_rows(value, wanted=self.target.output_name, probabilities=self.target.probabilities)
        if self.single and not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)):
            value = [value]  # the outputs of the one record, without a list of records around them
        return answer_rows(value, n=n)


def _followed(answer: Any, steps: Sequence[str], path: str) -> Any:
    for place, step in enumerate(steps):
        if step == "*" and isinstance(answer, list):
            return [_followed(item, steps[place + 1 :], path) for item in answer]
        if isinstance(answer, dict) and step in answer:
            answer = answer[step]
        elif isinstance(answer, list) and step.isdecimal() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            there = (
                ", ".join(list(map(str, answer))[:5]) if isinstance(answer, dict) else type(answer).__name__
            )
            raise UnusableError(
                f"answered without {step!r} of the path {path!r} (there is {printable(there) or 'nothing'})",
                fix="correct response_path=",
            )
    return answer


# --- Which protocol an address speaks: by its path, or else by what the server says at documented read-only addresses ---


_Protocol = KServeV2 | KServeV1 | MLflow | Template

_MODEL = r"/models/(?P<model>[^/:]+)(?:/(?:versions|labels)/(?P<version>[^/:]+))?"
_V2 = re.compile(rf"(?P<base>.*)/v2{_MODEL}(?:/infer|/ready)?$")
_V1 = re.compile(rf"(?P<base>.*)/v1{_MODEL}(?::predict)?$")
_FIX = "name the protocol with protocol=, and the model with model="
_VERSION = re.compile(rb"\s*\"?\d+\.\d+[\w.+-]*\"?\s*")


def protocol_of_path(target: Target) -> tuple[_Protocol | None, Target]:
    """Return what the path alone says: the protocol, if any, and the model in it.

    >>> protocol_of_path(Target("", None, None, None, True, None, "/v2/models/income/infer"))[0]
    KServeV2(input_name=None, datatype=None)
    """
    for pattern, protocol in ((_V2, KServeV2()), (_V1, KServeV1())):
        match = pattern.fullmatch(target.path)
        if match:
            base, model, version = match.group("base", "model", "version")
            named = model if target.model is None else target.model
            return protocol, replace(target, base=base, model=named, version=version)
    if target.path.endswith("/invocations"):
        return MLflow(), replace(target, base=target.path.removesuffix("/invocations"))
    return None, target


def detected_protocol(target: Target, *, transport: Transport) -> tuple[_Protocol, Target]:
    """Return the protocol of a server, and the model on it.

    Only the server itself is asked, and only for what it tells about itself: ``/v2/models/NAME``, ``/v1/models/NAME``,
    the lists of models, and MLflow's ``/ping`` and ``/version``.

    Raises:
        InputError: It cannot be told; the sentence says what to name.
    """
    by_path, target = protocol_of_path(target)
    if by_path is not None:
        return by_path, target
    if target.path.endswith("completions"):
        raise InputError(
            "url must be that of a model of records, got that of a completions endpoint; use CompletionsEndpoint for"
            " texts."
        )
    for version, protocol in (("v2", KServeV2()), ("v1", KServeV1())):
        name = target.model or _only_model(version, target, transport)
        if name is not None and _json(transport.get(f"{target.base}/{version}/models/{name}")) is not None:
            return protocol, replace(target, model=name)
    if transport.get(f"{target.base}/ping") is not None and _VERSION.fullmatch(
        transport.get(f"{target.base}/version") or b""
    ):
        return MLflow(), target
    named = "" if target.model is None else f" for the model {target.model!r}"
    raise InputError(
        f"endpoint {transport.connection.shown!r} does not say which protocol it speaks{named}: it has neither"
        f" /v2/models, /v1/models nor MLflow's /version; {_FIX}."
    )


def _only_model(version: str, target: Target, transport: Transport) -> str | None:
    """Return the model of a server that has one only, and lists it."""
    found = _json(transport.get(f"{target.base}/{version}/models"))
    listed = found.get("models") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return None
    names = [str(item.get("name") if isinstance(item, dict) else item) for item in listed]
    if len(names) > 1:
        shown = ", ".join(map(repr, names[:10]))
        raise InputError(
            f"model must name one of the models of endpoint {transport.connection.shown!r}, which has {shown}; give"
            " model=."
        )
    return names[0] if names else None


def _json(body: bytes | None) -> Any:
    try:
        return json.loads(body or b"")
    except (ValueError, RecursionError):
        return None
