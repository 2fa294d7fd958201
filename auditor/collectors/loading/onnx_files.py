"""ONNX files."""

from pathlib import Path
from typing import Any

from auditor.collectors import onnx
from auditor.collectors.loading.trust import Trust

__all__ = ["read"]


def read(path: Path, trust: Trust) -> Any:  # noqa: ARG001 - every reader has the same arguments
    """Return a session of the model in a file; an ONNX graph runs no code of others and reads no file but its weights."""
    return onnx.opened(path)
