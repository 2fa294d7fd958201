"""TF Serving and KServe V1: ``POST /v1/models/NAME:predict``.

Rows go as ``{"instances": [...]}`` and come back as ``{"predictions": [...]}``, one object for each record where the
model has several outputs; columns go as ``{"inputs": {...}}`` and come back as ``{"outputs": ...}``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from auditor.collectors.served.answers import UnusableError, numbers, rows_of
from auditor.collectors.served.payload import Payload, written
from auditor.collectors.served.transport import Transport
from auditor.collectors.served.wire import Target, Wire
from auditor.errors import InputError

__all__ = ["KServeV1"]


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
            return _Wire(target.path, target, self, named=bool(target.by_name))
        if target.model is None:
            raise InputError("model must name the model on a V1 server, got none; give model=.")
        version = "" if target.version is None else f"/versions/{target.version}"
        root = f"{target.base}/v1/models/{target.model}{version}"
        named = _several(transport.get(f"{root}/metadata"), self.signature_name or "serving_default")
        return _Wire(
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
class _Wire:
    path: str
    target: Target
    protocol: KServeV1
    named: bool
    single = False
    fix = "set PREDICT_PROBA=true for KServe's scikit-learn server, or serve a function that returns probabilities"

    def texts(self, payload: Payload) -> list[str]:
        objects = self._by_name(payload) and not self.protocol.columnar
        return [written(row) for row in (payload.objects() if objects else payload.rows)]

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        name = self.protocol.signature_name
        signature = "" if name is None else f'"signature_name":{written(name)},'
        rows = f"[{','.join(texts)}]"
        if not self.protocol.columnar:
            return f'{{{signature}"instances":{rows}}}'.encode()
        if payload.columns is not None:
            columns = {
                name: [row[place] for row in payload.rows] for place, name in enumerate(payload.columns)
            }
            rows = written(columns)
        return f'{{{signature}"inputs":{rows}}}'.encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        found = answer if isinstance(answer, dict) else {}
        value = found.get("predictions", found.get("outputs"))
        if value is None:
            raise UnusableError("answered without predictions", fix="name the protocol with protocol=")
        wanted, probabilities = self.target.output_name, self.target.probabilities
        return numbers(rows_of(value, wanted=wanted, probabilities=probabilities), n=n)

    def plainer(self) -> Wire | None:
        return None

    def _by_name(self, payload: Payload) -> bool:
        """Whether records are sent as objects: where the model has several inputs, or where a row mixes text and numbers."""
        if payload.columns is None:
            return False
        mixed = payload.text and self.target.by_name is None
        return self.named or mixed
