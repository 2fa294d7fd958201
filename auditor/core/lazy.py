"""What the package reads of its own files: the names that a folder offers, loaded when first used (PEP 562), and docstrings."""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import resources
from typing import Any

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]
_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def face(package: str, *, moved: Mapping[str, Collection[str]] = {}) -> Face:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``, as told by its stub, for type checkers too (SPEC 1).

    The stub says ``from package.module import name as name`` of what is promised; ``import name`` of what is for the other
    rooms and the tests, to be had but not promised by ``__all__``; and nothing else.

    Args:
        package: The package's ``__name__``.
        moved: Names that the package offered before, by the module of it that has them now.

    >>> import auditor.theory
    >>> getattribute, _, names = face("auditor.theory")
    >>> "epsilon" in names, "StepPair" in names, getattribute("StepPair").__name__
    (True, False, 'StepPair')
    """
    stub = (resources.files(package) / "__init__.pyi").read_text(encoding="utf-8")
    named = [
        (name, module, bool(again))
        for module, names in _IMPORT.findall(stub)
        for name, again in re.findall(r"(\w+)( as \w+)?", names)
    ]
    home = {name: module for name, module, _ in named}
    promised = sorted(name for name, _, again in named if again)

    def load(name: str) -> Any:
        if name not in home:
            place = next(
                (f"; it is now {package}.{module}.{name}" for module in moved if name in moved[module]), ""
            )
            raise AttributeError(f"module {package!r} has no attribute {name!r}{place}")
        if home[name] == package:  # a module of it that is a name of its own
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: promised, promised


_NO_DOCSTRINGS = 2  # python -OO


def docstring(of: Any) -> str:
    """Return the docstring of a class or function of a module, cleaned; under ``python -OO`` from the source, where there is one.

    >>> docstring(face)[:25]
    "Return a package's ``__ge"
    """
    if sys.flags.optimize < _NO_DOCSTRINGS:
        return inspect.getdoc(of) or ""
    return _in_source(of.__module__).get(of.__name__, "")


@cache
def _in_source(module: str) -> dict[str, str]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):  # compiled files alone
        return {}
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, kinds)}
