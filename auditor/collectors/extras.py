"""Optional packages of the collectors, imported when a model needs them."""

import importlib
from typing import Any

from auditor.errors import MissingExtraError

__all__ = ["is_a", "needed"]


def needed(module: str, *, purpose: str, extra: str) -> Any:
    """Return an optional module, or say in one sentence how it is installed.

    Args:
        module: What to import: ``onnxruntime``.
        purpose: What it is for, the subject of the sentence: "scoring an ONNX model".
        extra: The extra of this package that brings it, or, with a space in it, the packages to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        wanted = extra.strip() if " " in extra else f"'privacy-auditor[{extra}]'"
        raise MissingExtraError(
            f"{purpose} needs {module}, which cannot be imported here: pip install {wanted}."
        ) from error


def is_a(model: Any, package: str, name: str) -> bool:
    """Return whether an object's class descends from a class of that name in that package, without importing it."""
    return any(
        cls.__name__ == name and cls.__module__.partition(".")[0] == package for cls in type(model).__mro__
    )
