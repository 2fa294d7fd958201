"""Reading of the package's own files: docstrings, and the names that a folder offers, loaded when first used (PEP 562)."""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Collection
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]
_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def face(package: str) -> Face:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__`` from its stub, for type checkers too (SPEC 1).

    The stub says ``from package.module import name as name`` of a public name; ``import name`` of a name for the other rooms
    and the tests, which is not in ``__all__``; and nothing else. The modules of the package itself that it names are
    attributes, and not in ``__all__``. An ``AttributeError`` names the room that has the name.

    Args:
        package: The package's ``__name__``.

    >>> import auditor.theory
    >>> getattribute, _, names = face("auditor.theory")
    >>> "epsilon" in names, "StepPair" in names, getattribute("StepPair").__name__
    (True, False, 'StepPair')
    """
    stub = (resources.files(package) / "__init__.pyi").read_text(encoding="utf-8")
    listed = [
        (name, module, bool(again))
        for module, names in _IMPORT.findall(stub)
        for name, again in re.findall(r"(\w+)( as \w+)?", names)
    ]
    home = {name: module for name, module, _ in listed}
    rooms = [name for name, module in home.items() if module == package]
    public = sorted(name for name, module, again in listed if again and module != package)

    def room_of(name: str) -> str | None:
        if name.startswith("_") or find_spec(f"{package}.{name}"):  # Python itself looks for these here
            return None
        return next((room for room in rooms if name in _offered(f"{package}.{room}")), None)

    def load(name: str) -> Any:
        if name not in home:
            room = room_of(name)
            place = f"; it is {package}.{room}.{name}" if room else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{place}")
        if home[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*public, *rooms}), public


def _offered(room: str) -> Collection[str]:
    """Return the public names of a room with a face of its own; of a plain module none, and it is not loaded."""
    spec = find_spec(room)
    if spec is None or spec.submodule_search_locations is None:
        return ()
    return tuple(getattr(importlib.import_module(room), "__all__", ()))


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
