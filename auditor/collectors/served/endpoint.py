"""A served model, described: where it is, what it speaks, how records are sent to it and what comes back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from auditor import _validate
from auditor.collectors.outputs import Output
from auditor.collectors.served.connection import Connection
from auditor.collectors.served.mlflow import MLflow
from auditor.collectors.served.template import Template
from auditor.collectors.served.v1 import KServeV1
from auditor.collectors.served.v2 import KServeV2
from auditor.errors import InputError

__all__ = ["PROTOCOLS", "Endpoint"]

# Protocols by their short names, as the command line spells them; a template needs more than a name.
PROTOCOLS: Final = {"v2": KServeV2, "v1": KServeV1, "mlflow": MLflow}
_LEAST_BYTES = 1000  # of a request: names and brackets alone take some hundreds


@dataclass(frozen=True, kw_only=True, repr=False)
class Endpoint(Connection):
    """A model that is served, to be passed to `auditor.collect` like any model.

    Beside the following it has the attributes of `Connection`: ``url``, ``concurrency``, ``timeout``, ``retries``,
    ``pause``, ``max_response_bytes``, ``token_variable``, ``header_variables``, ``ca_file``, ``use_proxies`` and
    ``allow_plain_http``.

    Attributes:
        protocol: `KServeV2()`, `KServeV1()`, `MLflow()` or `Template(request, response)`; default found out from the
            address, or from what the server tells about itself.
        model: The name of the model on the server, where the address has none and the server has several.
        output: What the server returns; default probabilities.
        output_name: Which of several outputs to use; default one that is called after probabilities.
        labels: The classes, for a server that answers with labels and cannot be made to return probabilities; what is
            collected is then the weaker 0/1 loss.
        columns: The names of the columns of an array, for a server that wants names.
        by_name: Whether cells are sent with the names of their columns; default where the model needs them.
        max_request_bytes: Largest request; a larger batch is sent as several.
        max_request_records: Most records in one request.

    Raises:
        InputError: A url that is none or holds credentials, or a value out of its range.

    >>> Endpoint("https://models.example/v2/models/income", token_variable="MODELS_TOKEN", concurrency=16)
    Endpoint('https://models.example/v2/models/income', concurrency=16, token_variable='MODELS_TOKEN')
    """

    protocol: KServeV2 | KServeV1 | MLflow | Template | None = None
    model: str | None = None
    output: Output | None = None
    output_name: str | None = None
    labels: Sequence[Any] | None = None
    columns: Sequence[str] | None = None
    by_name: bool | None = None
    max_request_bytes: int = 1_000_000
    max_request_records: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds = (*PROTOCOLS.values(), Template)
        if self.protocol is not None and not isinstance(self.protocol, kinds):
            names = ", ".join(f"{kind.__name__}(...)" for kind in kinds)
            raise InputError(f"protocol must be one of {names}, got {self.protocol!r}.")
        if self.output is not None:
            output = _validate.known("output", self.output, [str(item) for item in Output])
            object.__setattr__(self, "output", Output(output))
        for name in ("labels", "columns"):
            object.__setattr__(self, name, _distinct(name, getattr(self, name)))
        least = {"max_request_bytes": _LEAST_BYTES, "max_request_records": 1}
        for name, smallest in least.items():
            object.__setattr__(self, name, _validate.at_least(name, getattr(self, name), least=smallest))


def _distinct(name: str, values: Any) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or np.ndim(values) != 1:
        raise InputError(f"{name} must be a list of different names, got {values!r}.")
    listed = tuple(np.asarray(values, dtype=np.object_).tolist())
    if len(set(listed)) != len(listed) or len(listed) == 0:
        raise InputError(f"{name} must be a list of different names, got {list(listed)!r}.")
    return listed
