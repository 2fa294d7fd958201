"""What a file of a model is trusted with, and how sentences speak of files."""

import os
import pkgutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.collectors.base.records import listed
from auditor.collectors.base.scorer import explained, own_words, with_kind
from auditor.core.errors import InputError, without_credentials


def named(path: Path) -> str:
    """Return a file as sentences call it: by its name, for its place is nobody's business."""
    return f"{'folder' if path.is_dir() else 'file'} {Path(without_credentials(str(path))).name!r}"


def readable(path: Path, *, kind: str) -> AbstractContextManager[None]:
    """Let whatever a reader raises become one sentence, with the cause kept."""

    def reason(error: Exception) -> str:
        words = own_words(error).replace(str(path.resolve()), path.name).replace(str(path), path.name)
        return f"{words}; is it complete?"

    return explained(f"{named(path)} must be {kind}, but it cannot be read", reason=reason)


@dataclass(frozen=True)
class Trust:
    """What may be done to load a model.

    Attributes:
        factory: What builds the network that a state dict fills: a callable, or "module:function".
        code: Whether code in the file may run.
        types: Names of further types that may be built.
    """

    factory: Callable[[], Any] | str | None = None
    code: bool = False
    types: frozenset[str] = frozenset()

    def refuse_code(self, path: Path, is_what: str, *, fix: str) -> None:
        """Refuse a file from which loading can run any code, unless that is what it is trusted with."""
        if not self.code:
            raise InputError(
                f"{named(path)} {is_what}, and so could run any code when it is loaded or used; {fix}, or, if you trust"
                " its source as you would a program, pass trust_pickle=True (--trust-pickle)."
            )

    def refuse_types(self, path: Path, found: set[str]) -> None:
        """Refuse types that the file names, are not known to be harmless, and are not trusted by name."""
        unknown = sorted(found - self.types)
        if unknown:
            raise InputError(
                f"{named(path)} holds types that are not known to be harmless: {listed(unknown)}; if you trust them, name them in"
                " trusted_types (--trusted-type), or save the model without them or as ONNX."
            )

    def built(self) -> Any:
        """Return what the factory builds.

        Raises:
            InputError: A factory that cannot be found or fails.
        """
        factory = _imported(self.factory) if isinstance(self.factory, str) else self.factory
        if not callable(factory):
            raise InputError(f"factory must be a callable or 'module:function', got {self.factory!r}.")
        with explained("factory must build the network without arguments, but it failed", reason=with_kind):
            return factory()


def _imported(name: str) -> Any:
    """Return the function of a module that lies in the working directory or is installed."""
    if not all(name.partition(":")):
        raise InputError(f"factory must be written 'module:function', got {name!r}.")
    here = os.getcwd()  # noqa: PTH109 - the import path holds strings
    sys.path.insert(0, here)
    try:
        must = f"factory {name!r} must be importable from the working directory"
        with explained(f"{must}, but that failed", reason=with_kind):
            return pkgutil.resolve_name(name)
    finally:
        if here in sys.path:
            sys.path.remove(here)
