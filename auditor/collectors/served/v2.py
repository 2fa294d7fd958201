"""KServe V2, the Open Inference Protocol (MLServer, Triton, KServe, OpenVINO): ``POST /v2/models/NAME/infer``.

Tensors have a name, a shape, a datatype and data. One matrix goes as one tensor; a model with several inputs gets one
for each column, by name. Text is of datatype BYTES. Data come back flat or nested, so they are always reshaped.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.collectors.served.answers import PROBABILITIES, UnusableError, chosen, numbers
from auditor.collectors.served.payload import Payload
from auditor.collectors.served.tensors import named_tensors, single_tensor
from auditor.collectors.served.transport import Transport
from auditor.collectors.served.wire import Target, Wire
from auditor.errors import InputError

__all__ = ["KServeV2"]

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
        return _Wire(
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
class _Wire:
    path: str
    target: Target
    protocol: KServeV2
    inputs: tuple[Mapping[str, Any], ...]
    asked: str | None
    single = False
    fix = (
        "ask for probabilities with output_name='predict_proba', or have the server return them (MLServer:"
        ' "predict_fn": "predict_proba" under parameters.extra in model-settings.json)'
    )

    def texts(self, payload: Payload) -> list[str]:
        return payload.texts()

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        outputs = "" if self.asked is None else f',"outputs":[{json.dumps({"name": self.asked})}]'
        if self._one(payload):
            known = self.inputs[0] if len(self.inputs) == 1 else {}
            tensor = single_tensor(
                payload,
                texts,
                name=self.protocol.input_name or str(known.get("name", "input-0")),
                datatype=self.protocol.datatype or known.get("datatype"),
                shape=known.get("shape"),
            )
            return f'{{"inputs":[{tensor}]{outputs}}}'.encode()
        tensors = named_tensors(payload, known={str(item["name"]): item for item in self.inputs})
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
        name = chosen(names, wanted=wanted, probabilities=self.target.probabilities)
        return _tensor(listed[names.index(name)], n=n)

    def plainer(self) -> Wire | None:
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
    values = numbers(data.reshape(shape), n=n)
    kind = _FLOATS.get(datatype)
    return values if kind is None or values.dtype.kind not in "fiu" else values.astype(kind)


def _flat(data: Any) -> npt.NDArray[Any]:
    """Return the data of a tensor as a vector; nested lists are row-major as flat ones are."""
    try:
        array = np.asarray(data)
        return (array.astype(np.float64) if array.dtype.kind == "O" else array).ravel()
    except (ValueError, TypeError):
        raise UnusableError("answered with what is no tensor", fix="look into the server's log") from None
