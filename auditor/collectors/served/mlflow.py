"""MLflow's scoring server, and SageMaker containers made by it: ``POST /invocations``.

A table goes as ``dataframe_split`` with the names of its columns, an array as ``inputs``; the answer is
``{"predictions": [...]}``. A scikit-learn model that is logged as usual answers with labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from auditor.collectors.served.answers import UnusableError, numbers, rows_of
from auditor.collectors.served.payload import Payload, written
from auditor.collectors.served.transport import Transport
from auditor.collectors.served.wire import Target, Wire

__all__ = ["MLflow"]


@dataclass(frozen=True)
class MLflow:
    """The protocol of MLflow's scoring server.

    >>> MLflow()
    MLflow()
    """

    def opened(self, target: Target, *, transport: Transport) -> Wire:  # noqa: ARG002 - the server tells nothing
        """Return the wire to the model; the server has only one."""
        path = target.path if target.path.endswith("/invocations") else f"{target.base}/invocations"
        return _Wire(path, target)


@dataclass(frozen=True)
class _Wire:
    path: str
    target: Target
    single = False
    fix = (
        "log the model with mlflow.sklearn.log_model(..., pyfunc_predict_fn='predict_proba'), or wrap it in a"
        " PythonModel whose predict returns probabilities"
    )

    def texts(self, payload: Payload) -> list[str]:
        return payload.texts()

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        rows = ",".join(texts)
        if payload.columns is not None and self.target.by_name is not False:
            return f'{{"dataframe_split":{{"columns":{written(payload.columns)},"data":[{rows}]}}}}'.encode()
        return f'{{"inputs":[{rows}]}}'.encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        if isinstance(answer, dict):
            if "predictions" not in answer:
                raise UnusableError("answered without predictions", fix="name the protocol with protocol=")
            answer = answer["predictions"]
        wanted, probabilities = self.target.output_name, self.target.probabilities
        return numbers(rows_of(answer, wanted=wanted, probabilities=probabilities), n=n)

    def plainer(self) -> Wire | None:
        return None
