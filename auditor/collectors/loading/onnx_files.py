"""ONNX files."""

from pathlib import Path
from typing import Any

from auditor.collectors import onnx
from auditor.collectors.loading.trust import Trust

__all__ = ["read"]


def read(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return a session of the model in a file; an ONNX graph is data and runs no code of others."""
    return onnx.opened(path)
