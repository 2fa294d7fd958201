"""Protocols of servers: writing records into requests, and reading answers."""

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from auditor.collectors.served.payload import CLASSES, Payload, Wanted, csv_text, json_text
from auditor.collectors.served.transport import Transport, UnusableError
from auditor.core import Array, InputError

# --- A wire: how records are written into the requests of one model on one server, and its answers read ---


@dataclass(frozen=True)
class Wire:
    """The requests of one model, and its answers.

    Attributes:
        path: Path of the requests.
        body: From some records to a request.
        outputs: Function from an answer and the requested output to the outputs, a row for each record; raises `UnusableError`.
        fix: How to make this kind of server return probabilities instead of labels.
        single: Whether a request holds one record only.
        fallback: The wire that requests less, where a server does not take the first request.
        media: Type of the requests.
    """

    path: str
    body: Callable[[Payload], bytes]
    outputs: Callable[[Any, Wanted], Any]
    fix: str
    single: bool = False
    fallback: "Wire | None" = None
    media: str = "application/json"


@dataclass(frozen=True)
class Target:
    """One model on a server, and the output that is requested of it.

    Attributes:
        transport: To the server.
        wanted: Requested output.
        path: The path as it was given.
        base: Part of the path in front of the protocol's own.
        kind: Member of `PROTOCOLS`, if declared.
        model: The name of the model, quoted for a path, where it is known.
        version: The path's part for a version of the model.
    """

    transport: Transport
    wanted: Wanted
    path: str
    base: str
    kind: str | None
    model: str | None
    version: str

    def root(self, kind: str) -> str:
        """Return where the model is, for a protocol that has several."""
        if self.model is None:
            raise InputError(f"model must name the model on a {kind.upper()} server, got none; give model=.")
        return f"{self.base}/{kind}/models/{self.model}{self.version}"


_PATH = re.compile(
    r"(?P<base>.*?)(?:/(?P<kind>v[12])/models/(?P<model>[^/:]+)(?P<version>/(?:versions|labels)/[^/:]+)?"
    r"(?::predict|/infer|/ready)?|/(?P<last>invocations|predictions/[^/]+(?:/[^/]+)?|endpoints/[^/:]+:predict)|)"
)
_LAST = {"invocations": "mlflow", "predictions": "torchserve", "endpoints": "v1"}


def located(transport: Transport, wanted: Wanted, *, model: str | None = None) -> Target:
    """Return the parts of an address; a named model takes precedence over the model of the address."""
    path = transport.connection.path
    match = re.fullmatch(_PATH, path)
    base, kind, own, version, last = match.groups("") if match else (path, "", "", "", "")
    named = quote(model, safe="") if model is not None else own or None
    kind = kind or _LAST.get(last.partition("/")[0], "")
    return Target(transport, wanted, path, base, kind or None, named, version)


def _metadata(target: Target, path: str) -> Any:
    """Return the server's metadata at a path; None if it is not JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(target.transport.get(path) or b"null")


def _predictions(answer: Any, wanted: Wanted) -> Any:
    """Return the outputs of V1 and of MLflow: rows or objects of several as predictions, columns as outputs."""
    fields = answer if isinstance(answer, dict) else {"predictions": answer}
    value = fields.get("predictions", fields.get("outputs"))
    if value is None:
        raise UnusableError("answered without predictions", fix="name the protocol with protocol=")
    return wanted.rows(value)


# --- TF Serving, KServe V1 and Vertex AI: ``POST /v1/models/NAME:predict``, ``.../endpoints/ID:predict`` ---
#
# Rows go as ``{"instances": [...]}`` and come back as ``{"predictions": [...]}``, one object for each record where the
# model has several outputs, or as columns under ``{"outputs": ...}``. TF Serving's metadata say whether the model has
# several inputs; then a row is an object by their names. Vertex AI adds which of an endpoint's models answered.


@dataclass(frozen=True)
class KServeV1:
    """The protocol of TF Serving, of KServe's V1 servers and of Vertex AI.

    Attributes:
        signature_name: The signature of a TensorFlow model; default ``serving_default``.

    >>> KServeV1(signature_name="scores")
    KServeV1(signature_name='scores')
    """

    signature_name: str | None = None

    def opened(self, target: Target) -> Wire:
        """Return the wire to a model."""
        path = target.path if target.path.endswith(":predict") else f"{target.root('v1')}:predict"

        inputs, models = cache(partial(self._inputs, target)), set()

        def body(payload: Payload) -> bytes:
            rows, sides = payload.rows, {} if payload.columns is None else inputs()
            if payload.columns is not None and (payload.text or len(sides) > 1):
                rows = [
                    {
                        name: [cell] if sides.get(name) == 1 and not isinstance(cell, list) else cell
                        for name, cell in row.items()
                    }
                    for row in payload.objects()
                ]
            signature = {} if self.signature_name is None else {"signature_name": self.signature_name}
            return json_text({**signature, "instances": rows}).encode()

        def outputs(answer: Any, wanted: Wanted) -> Any:
            if isinstance(answer, dict) and "deployedModelId" in answer:
                models.add(str(answer["deployedModelId"]))
            if len(models) > 1:
                fix = "direct all of its traffic to one model"
                raise UnusableError(
                    "answered with several models ({said})", said=", ".join(sorted(models)), fix=fix
                )
            return _predictions(answer, wanted)

        fix = "set PREDICT_PROBA=true for KServe's scikit-learn server, or serve a function that returns probabilities"
        return Wire(path, body, outputs, fix)

    def _inputs(self, target: Target) -> dict[str, int]:
        """Return the dimensions of a record in each input, by TF Serving's metadata; none where they are not there."""
        try:
            metadata = _metadata(target, f"{target.root('v1')}/metadata")
            signatures = metadata["metadata"]["signature_def"]["signature_def"]
            inputs = signatures[self.signature_name or "serving_default"]["inputs"]
            return {
                name: len(facts.get("tensor_shape", {}).get("dim", [])) - 1 for name, facts in inputs.items()
            }
        except (InputError, KeyError, TypeError, AttributeError):
            return {}


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

    def opened(self, target: Target) -> Wire:
        """Return the wire to the model; the server has only one."""

        def body(payload: Payload) -> bytes:
            if payload.columns is None:
                return json_text({"inputs": payload.rows}).encode()
            return json_text({"dataframe_split": {"columns": payload.columns, "data": payload.rows}}).encode()

        fix = (
            "log the model with mlflow.sklearn.log_model(..., pyfunc_predict_fn='predict_proba'), or wrap it in a"
            " PythonModel whose predict returns probabilities"
        )
        return Wire(f"{target.base}/invocations", body, _predictions, fix)


# --- KServe V2, the Open Inference Protocol (MLServer, Triton, KServe, OpenVINO): ``POST /v2/models/NAME/infer`` ---
#
# Tensors have a name, a shape, a datatype and data. One matrix goes as one tensor; a model with several inputs gets one
# for each column, by name. Text is of datatype BYTES. Data come back flat or nested, so they are always reshaped.


_FLOATS: Mapping[str, npt.DTypeLike] = {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
_FLOATING = ("FP", "BF")
_LIKELIEST = "predict_proba"  # what scikit-learn, XGBoost and LightGBM runtimes of MLServer call it


@dataclass(frozen=True)
class KServeV2:
    """The Open Inference Protocol.

    Attributes:
        input_name: The name of the input tensor; default from the model's metadata.
        datatype: Its datatype (``FP32``, ``INT64``, ...); default from the metadata, or else FP64 for floats, which keeps every
            digit.

    >>> KServeV2(datatype="FP32")
    KServeV2(input_name=None, datatype='FP32')
    """

    input_name: str | None = None
    datatype: str | None = None

    def opened(self, target: Target) -> Wire:
        """Return the wire to a model, by its metadata."""
        root, wanted = target.root("v2"), target.wanted
        metadata = _metadata(target, root)
        inputs, outputs = (_items(metadata, key, having="name") for key in ("inputs", "outputs"))
        likely = wanted.likely(list(outputs)) if outputs or not wanted.probabilities else _LIKELIEST

        def tensors(payload: Payload) -> dict[str, Any]:
            if len(inputs) > 1 or (payload.text and payload.columns is not None and not inputs):
                parameters = {} if inputs else {"parameters": {"content_type": "pd"}}
                return {**parameters, "inputs": _named_tensors(payload, inputs)}
            name, facts = next(iter(inputs.items())) if len(inputs) == 1 else ("input-0", {})
            facts = {**facts, "datatype": self.datatype or facts.get("datatype")}
            return {"inputs": [_tensor(self.input_name or name, payload.rows, payload.shape, facts)]}

        def asking(name: str | None) -> Callable[[Payload], bytes]:
            outputs = {} if name is None else {"outputs": [{"name": name}]}
            return lambda payload: json_text({**tensors(payload), **outputs}).encode()

        fix = (
            "ask for probabilities with output_name='predict_proba', or have the server return them (MLServer:"
            ' "predict_fn": "predict_proba" under parameters.extra in model-settings.json)'
        )
        anything = Wire(f"{root}/infer", asking(None), _of_tensors, fix)
        if wanted.name is not None or likely is None:
            return replace(anything, body=asking(wanted.name))
        return replace(anything, body=asking(likely), fallback=anything)


def _items(answer: Any, key: str, *, having: str) -> dict[str, Mapping[str, Any]]:
    """Return the inputs or outputs in an answer, by name; none where it says nothing that is understood."""
    items = answer.get(key) if isinstance(answer, dict) else None
    known = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return {str(item.get("name")): item for item in known if having in item}


def _named_tensors(payload: Payload, inputs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns as one tensor each, in the model's order where it says one.

    Raises:
        UnusableError: No names, or an input that no column is called after.
    """
    listed = ", ".join(f"'{name}'" for name in inputs)
    if payload.columns is None and payload.shape != (len(inputs),):
        fix = "give a table with these names"
        raise UnusableError("has the inputs {said}, and the columns of X have no names", said=listed, fix=fix)
    columns = payload.columns or tuple(inputs)
    cells = dict(zip(columns, zip(*payload.rows, strict=True), strict=True))
    if not set(inputs) <= set(columns):
        fix = "rename the columns"
        raise UnusableError("has the inputs {said}, and X has no column for each", said=listed, fix=fix)
    return [_tensor(name, cells[name], None, inputs.get(name, {})) for name in inputs or columns]


def _tensor(
    name: str, cells: Sequence[Any], shape: tuple[int, ...] | None, metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """Return cells as a tensor, row-major and flat, which every server takes.

    Args:
        name: Its name.
        cells: One item for each record.
        shape: The shape of each; none for a column of a table.
        metadata: Metadata of the tensor from the model.
    """
    sides = metadata.get("shape")
    wants_column = isinstance(sides, list) and len(sides) == 2  # noqa: PLR2004
    flat: list[Any] = list(cells)
    for _ in shape or ():
        flat = list(chain.from_iterable(flat))
    kind = str(metadata.get("datatype") or _datatype(flat))
    floats = kind.startswith(_FLOATING) and not {str, type(None)} & set(map(type, flat))
    data = flat if floats else [_typed(cell, kind, name) for cell in flat]
    if shape is None:
        wants_column = not (isinstance(sides, list) and len(sides) == 1)
    sizes = [len(cells), *(shape or ((1,) if wants_column else ()))]
    text = (
        {"parameters": {"content_type": "str"}} if shape is None and kind == "BYTES" and not metadata else {}
    )
    return {"name": name, "shape": sizes, "datatype": kind, **text, "data": data}


def _datatype(values: Sequence[Any]) -> str:
    """Return the datatype that loses nothing."""
    kinds = set(map(type, values))
    if str in kinds:
        return "BYTES"
    if kinds <= {bool}:
        return "BOOL"
    return "INT64" if kinds <= {int} else "FP64"


_CONVERT = "convert the column, have the model's own pipeline encode it, or leave it out"
_FILL = "fill in missing values, which tensors in JSON cannot represent, leave those records out, or use another protocol"


def _typed(value: Any, kind: str, name: str) -> Any:
    """Return a value as the model's datatype writes it: whole numbers for INT, truth values for BOOL, text for BYTES."""
    if kind == "BYTES" and value is not None:
        return str(value)
    number = isinstance(value, int | float)
    if number and kind.startswith(_FLOATING):
        return value
    if number and value == int(value) and (kind != "BOOL" or value in (0, 1)):
        return bool(value) if kind == "BOOL" else int(value)
    raise UnusableError(
        f"wants another type of values than {value!r} of X for its input {{said}}",
        said=f"'{name}' ({kind})",
        fix=_FILL if value is None else _CONVERT,
    )


def _of_tensors(answer: Any, wanted: Wanted) -> Any:
    """Return the output tensor that is wanted, in the type and the shape that it says."""
    outputs = _items(answer, "outputs", having="data")
    if not outputs:
        raise UnusableError("answered without outputs", fix="name the protocol with protocol=")
    name = wanted.one_of(list(outputs))
    values = _values(outputs[name])
    classes = next((key for key in outputs if key.casefold() in CLASSES), name)
    if classes != name and values.ndim == 2 and outputs[classes].get("shape") == list(values.shape):  # noqa: PLR2004
        return wanted.rows({classes: _values(outputs[classes]).tolist(), name: values.tolist()})
    return values


def _values(output: Mapping[str, Any]) -> Array:
    """Return the data of a tensor in its shape and type."""
    shape, kind = output.get("shape"), _FLOATS.get(str(output.get("datatype")), np.object_)
    # A number beyond the type becomes infinite, which is refused by row.
    with contextlib.suppress(ValueError, TypeError, OverflowError), np.errstate(over="ignore"):
        data = np.asarray(output["data"], dtype=kind).ravel()
        if isinstance(shape, list) and min(shape) >= 0:
            return data.reshape(shape)
    fix = "look into the server's log"
    raise UnusableError("answered with data that are no tensor of the shape {said}", said=str(shape), fix=fix)


# --- Any other server: a request with a place for the records, and a path to the outputs in the answer ---


_PLACE = re.compile(r'"?\{\{\s*(rows|row|records|record|csv)\s*\}\}"?')


@dataclass(frozen=True)
class Template:
    r"""A request as JSON text with one placeholder, and a path to the outputs in the answer.

    Attributes:
        request: JSON with one of ``{{rows}}`` (a list of lists of cells), ``{{records}}`` (a list of objects by column
            name), ``{{row}}`` or ``{{record}}`` (one record for each request), quoted or not; or ``{{csv}}`` alone for a
            request in CSV.
        response: Names and positions separated by dots ("outputs.0.scores");
            ``*`` goes through a list ("results.*.probs"). Empty is the whole answer, or its ``predictions``. It leads to
            one output for each record of the request, in their order.

    Raises:
        InputError: A request that is no JSON or has no placeholder or several, or ``{{csv}}`` within JSON.

    >>> Template('{"data": {{rows}}}', "scores.*.probability").response
    'scores.*.probability'
    """

    request: str
    response: str = ""

    def __post_init__(self) -> None:
        places = _PLACE.findall(self.request)
        if len(places) != 1:
            raise InputError(
                "request_template must hold one of {{rows}}, {{records}}, {{row}}, {{record}} and {{csv}}, once, got"
                f" {len(places)} of them."
            )
        if places == ["csv"] and not _PLACE.fullmatch(self.request.strip()):
            raise InputError(
                "request_template must be {{csv}} alone or JSON, got both; use {{rows}} in JSON."
            )
        try:
            json.loads(_PLACE.sub("null", self.request))
        except ValueError as error:
            raise InputError(f"request_template must be JSON around its placeholder: {error}.") from None

    def opened(self, target: Target) -> Wire:
        """Return the wire to the address as it was given."""
        (kind,) = _PLACE.findall(self.request)
        single = kind in ("row", "record")

        def body(payload: Payload) -> bytes:
            by_name = kind in ("records", "record")
            if by_name and payload.columns is None:
                raise InputError(
                    "X must be a table where the request has {{records}}, got an array without names; use {{rows}}."
                )
            rows = payload.objects() if by_name else payload.rows
            if kind == "csv":
                return csv_text(rows).encode()
            text = json_text(rows[0] if single else rows)
            return _PLACE.sub(lambda _: text, self.request).encode()

        def outputs(answer: Any, wanted: Wanted) -> Any:
            steps = [step for step in self.response.removeprefix("$").split(".") if step]
            value = _followed(answer, steps, self.response)
            if (
                not steps
                and isinstance(value, dict)
                and not {wanted.name, wanted.likely(list(value))} & set(value)
            ):
                value = value.get("predictions", value)
            named = wanted.by_name(value) if single else None
            value = wanted.rows(value if named is None else [value])
            rows = isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)
            # One record may come without a list around it.
            return [value] if single and not rows and named is None else value

        fix = "let the server return a probability for each class"
        media = "text/csv" if kind == "csv" else "application/json"
        return Wire(target.path, body, outputs, fix, single, media=media)


def _followed(answer: Any, steps: Sequence[str], path: str) -> Any:
    for place, step in enumerate(steps):
        if step == "*" and isinstance(answer, list):
            return _each_followed(answer, steps[place + 1 :], path)
        if isinstance(answer, dict) and step in answer:
            answer = answer[step]
        elif isinstance(answer, list) and step.isdecimal() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            there = ", ".join(answer) if isinstance(answer, dict) else type(answer).__name__
            words = f"answered without {step!r} of the path {path!r} (there is {{said}})"
            raise UnusableError(words, said=there or "nothing", fix="correct response_path=")
    return answer


def _each_followed(items: Sequence[Any], steps: Sequence[str], path: str) -> list[Any]:
    """Return where a path leads from each item, None where it ends early; raise where all do."""
    ends, error = [], None
    for item in items:
        try:
            ends.append(_followed(item, steps, path))
        except UnusableError as short:
            error = short
            ends.append(None)
    if error is not None and not any(end is not None for end in ends):
        raise error
    return ends


# --- Protocol of an address, by its path ---


Protocol = KServeV2 | KServeV1 | MLflow | Template

# By their short names, as the command line spells them; any other template needs more than a name. TorchServe's handlers
# get one record a request. SageMaker's containers take rows, and those of its own algorithms CSV.
PROTOCOLS: Mapping[str, Callable[[], Protocol]] = {
    "v2": KServeV2,
    "v1": KServeV1,
    "mlflow": MLflow,
    "torchserve": partial(Template, "{{row}}"),
    "sagemaker": partial(Template, "{{rows}}"),
    "sagemaker-csv": partial(Template, "{{csv}}"),
}


def detected(target: Target) -> Protocol:
    """Return the protocol that the path of an address says.

    Raises:
        InputError: It says none; the sentence says which argument to give.
    """
    if target.kind is not None:
        return PROTOCOLS[target.kind]()
    if target.path.endswith("completions"):
        raise InputError(
            "url must be that of a model of records, got completions; use CompletionsEndpoint for texts."
        )
    connection = target.transport.connection
    raise InputError(
        f"endpoint {connection.display_url!r} does not say which protocol it speaks; give the address of the model, such as"
        f" {connection.at(f'{target.base}/v2/models/NAME')!r}, or name the protocol with protocol=, and the model with model=."
    )
