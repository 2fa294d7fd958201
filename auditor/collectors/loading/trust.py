"""What a caller adds to a file of a model: trust, and the factory of a network."""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from auditor import _validate
from auditor.errors import AuditorError, InputError

__all__ = ["Trust"]


@dataclass(frozen=True)
class Trust:
    """What may be done to load a model.

    Attributes:
        factory: What builds the network that a state dict fills: a callable, or "module:function".
        pickles: Whether code in a pickle may run.
        types: Names of further types that may be built.
    """

    factory: Callable[[], Any] | str | None = None
    pickles: bool = False
    types: frozenset[str] = frozenset()

    def built(self) -> Any:
        """Return what the factory builds.

        Raises:
            InputError: A factory that cannot be found or fails.
        """
        factory = _imported(self.factory) if isinstance(self.factory, str) else self.factory
        if not callable(factory):
            raise InputError(f"factory must be a callable or 'module:function', got {self.factory!r}.")
        try:
            return factory()
        except AuditorError:
            raise
        except Exception as error:
            reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
            raise InputError(
                f"factory must build the network without arguments, but it failed: {reason}."
            ) from error


def _imported(name: str) -> Any:
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise InputError(f"factory must be written 'module:function', got {name!r}.")
    here = os.getcwd()  # noqa: PTH109 - the import path holds strings
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:
        reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
        raise InputError(
            f"factory {name!r} must be importable from the working directory, but that failed: {reason}."
        ) from error
    finally:
        if here in sys.path:
            sys.path.remove(here)
    return found
