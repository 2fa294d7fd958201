"""Faces of folders: the names that a folder offers, loaded from its modules when they are first used (PEP 562)."""

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]
_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def face(package: str, file: str) -> Face:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``, as told by its stub, for type checkers too (SPEC 1).

    The stub says ``from package.module import name as name`` of what is promised; ``import name`` of what is for the other
    rooms and the tests, to be had but not promised by ``__all__``; and nothing else.

    Args:
        package: The package's ``__name__``.
        file: Its ``__file__``; the stub is beside it.

    >>> import auditor.theory
    >>> getattribute, _, names = face("auditor.theory", auditor.theory.__file__)
    >>> "epsilon" in names, "StepPair" in names, getattribute("StepPair").__name__
    (True, False, 'StepPair')
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    named = [
        (name, module, bool(again))
        for module, names in _IMPORT.findall(stub)
        for name, again in re.findall(r"(\w+)( as \w+)?", names)
    ]
    home = {name: module for name, module, _ in named}
    promised = sorted(name for name, _, again in named if again)

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home[name] == package:  # a module of it that is a name of its own
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: promised, promised
