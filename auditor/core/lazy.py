"""Faces of folders: the names that a folder offers, loaded from its modules when they are first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

_NONE: Mapping[str, str] = {}
Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def face(package: str, modules: Mapping[str, str], *, inside: Mapping[str, str] = _NONE) -> Face:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Args:
        package: The package's ``__name__``.
        modules: For each module, named from the package, the names that it brings, separated by spaces; for the package
            itself, modules of it that are names of their own.
        inside: Likewise, names for the other rooms and the tests: to be had, but not promised by ``__all__``.

    >>> getattribute, _, names = face("auditor.core", {"options": "Census Sample"})
    >>> names, getattribute("Census")()
    (['Census', 'Sample'], Census())
    """
    promised, more = (
        {name: f"{package}.{module}" for module, names in table.items() for name in names.split()}
        for table in (modules, inside)
    )
    home = promised | more

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home[name] == f"{package}.{package}":
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(promised), sorted(promised)


def in_stub(package: str, file: str) -> dict[str, str]:
    """Return the modules and names of the stub beside a face, where they stand for type checkers (as in SPEC 1).

    Args:
        package: The package's ``__name__``.
        file: Its ``__file__``; the stub says ``from package.module import name as name``, and nothing else.

    >>> import auditor.scores
    >>> in_stub("auditor.scores", auditor.scores.__file__)["references"]
    'HoldOut Population References hold_out'
    """
    words = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").replace(",", " ").split()
    found: dict[str, list[str]] = {}
    for before, word in pairwise(words):
        if before == "from":
            names = found.setdefault(word.removeprefix(f"{package}."), [])
        elif before == "as":
            names.append(word)
    return {module: " ".join(names) for module, names in found.items()}
