"""Whether a function is the one that made what is kept: a fingerprint of its code, without its comments and docstrings."""

import dataclasses
import dis
import enum
import hashlib
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["PYTHON", "fingerprint"]

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Whose instructions these are: another version of Python compiles the same source to other ones."""

# Of those that change what a call does; others say whether there is a docstring or an annotation.
_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), slice)


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a text that is the same for the same code, and another where something in the code was changed.

    It covers the instructions with their constants, the defaults, what is closed over, and the functions below a decorator
    that names what it wraps. It does not cover the functions that are called, nor values of the module.

    >>> def train(with_canary, seed):
    ...     return seed + 1.0
    >>> def changed(with_canary, seed):
    ...     return seed + 2.0
    >>> fingerprint(train) == fingerprint(changed)
    False
    """
    parts = json.dumps(_function(function, ()), sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _function(function: Any, seen: tuple[int, ...]) -> Any:
    """Every level of a decorated function, the outermost first."""
    if id(function) in seen:  # a function that closes over itself
        return ["again", seen.index(id(function))]
    seen = (*seen, id(function))
    code = getattr(function, "__code__", None)
    wrapped = getattr(function, "__wrapped__", None)
    return [
        _code(code, seen) if isinstance(code, types.CodeType) else type(function).__qualname__,
        _value(getattr(function, "__defaults__", None), seen),
        _value(getattr(function, "__kwdefaults__", None), seen),
        [_value(inside, seen) for inside in _cells(function)],
        None if wrapped is None else _function(wrapped, seen),
    ]


def _cells(function: Any) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None


def _code(code: types.CodeType, seen: tuple[int, ...]) -> Any:
    # By what each instruction means and not by numbers of constants, which a docstring moves; it is never loaded itself.
    steps = [
        [step.opname, _value(step.argval, seen)]
        for step in dis.get_instructions(code)
        if step.opname != "EXTENDED_ARG"
    ]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS
    return [steps, counts, code.co_exceptiontable.hex()]


def _value(value: Any, seen: tuple[int, ...]) -> Any:
    """A constant or a default in values of JSON, alike in every process; of an object without a plain form, its kind."""
    plain: Any
    match value:
        case types.CodeType():
            plain = _code(value, seen)
        case types.FunctionType():
            plain = _function(value, seen)
        case enum.Enum():
            plain = value.name
        case np.ndarray() | np.generic() if not value.dtype.hasobject:
            plain = str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        case _ if isinstance(value, _PLAIN):
            plain = repr(value)
        case tuple() | list():
            plain = [_value(item, seen) for item in value]
        case set() | frozenset():  # in another order in every process
            plain = sorted(json.dumps(_value(item, seen)) for item in value)
        case dict():
            plain = sorted(json.dumps([_value(item, seen) for item in pair]) for pair in value.items())
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            plain = [_value(getattr(value, item.name), seen) for item in dataclasses.fields(value)]
        case _:
            plain = getattr(value, "__qualname__", None)
    return [type(value).__qualname__, plain]
