"""Which protocol an address speaks: by its path, or else by what the server says at documented read-only addresses."""

import json
import re
from dataclasses import replace
from typing import Any

from auditor.collectors.served.mlflow import MLflow
from auditor.collectors.served.transport import Transport
from auditor.collectors.served.v1 import KServeV1
from auditor.collectors.served.v2 import KServeV2
from auditor.collectors.served.wire import ServingProtocol, Target
from auditor.errors import InputError

__all__ = ["found_protocol", "located"]

_MODEL = r"/models/(?P<model>[^/:]+)(?:/(?:versions|labels)/(?P<version>[^/:]+))?"
_V2 = re.compile(rf"(?P<base>.*)/v2{_MODEL}(?:/infer|/ready)?$")
_V1 = re.compile(rf"(?P<base>.*)/v1{_MODEL}(?::predict)?$")
_FIX = "name the protocol with protocol=, and the model with model="
_VERSION = re.compile(rb"\s*\"?\d+\.\d+[\w.+-]*\"?\s*")


def located(target: Target) -> tuple[ServingProtocol | None, Target]:
    """Return what the path alone says: the protocol, if any, and the model in it.

    >>> located(Target("", None, None, None, True, None, "/v2/models/income/infer"))[0]
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


def found_protocol(target: Target, *, transport: Transport) -> tuple[ServingProtocol, Target]:
    """Return the protocol of a server, and the model on it.

    Only the server itself is asked, and only for what it tells about itself: ``/v2/models/NAME``, ``/v1/models/NAME``,
    the lists of models, and MLflow's ``/ping`` and ``/version``.

    Raises:
        InputError: It cannot be told; the sentence says what to name.
    """
    by_path, target = located(target)
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
