"""Optional frameworks, loaded when a tracker is built."""

import importlib
from typing import Any

from auditor.errors import MissingExtraError

__all__ = ["framework"]


def framework(name: str, *, called: str, extra: str) -> Any:
    """Return an optional module, or say in one sentence how it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"tracking sensitivities in {called} needs {called}, which cannot be imported here:"
            f" pip install 'privacy-auditor[{extra}]'."
        ) from error
