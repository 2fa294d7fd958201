"""Functions whose options are a frozen dataclass: the signature and the docstring are made from it."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from auditor.core import validate
from auditor.core.lazy import docstring

Subject = TypeVar("Subject")
Options = TypeVar("Options")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def with_options(
    options: Callable[Arguments, Options], **renamed: str
) -> Callable[[Callable[[Subject, Options], Result]], Callable[Concatenate[Subject, Arguments], Result]]:
    """Return a decorator for a function of something and of its options, which the caller gives one by one.

    Args:
        options: The dataclass of the options. Its attributes become arguments, its descriptions those of the docstring.
        renamed: Present names of arguments by their former ones, which are refused with the present name.
    """
    parameters = list(inspect.signature(options).parameters.values())

    def decorate(
        function: Callable[[Subject, Options], Result],
    ) -> Callable[Concatenate[Subject, Arguments], Result]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            if first.name in kwargs:
                args = (kwargs.pop(first.name), *args)
            if not args:
                raise TypeError(f"{function.__name__}() needs its argument {first.name!r}.")
            for name in kwargs:
                if name in renamed:
                    raise TypeError(
                        f"{function.__name__}() has no argument {name!r}: it is called {renamed[name]!r}."
                    )
                if name not in names:
                    meant = validate.did_you_mean(validate.nearest(name, names))
                    raise TypeError(f"{function.__name__}() has no argument {name!r}{meant}")
            subject, *others = args
            return function(subject, options(*others, **kwargs))

        names = [item.name for item in parameters]
        first = next(iter(inspect.signature(function).parameters.values()))
        vars(call)["__signature__"] = inspect.Signature([first, *parameters])
        call.__doc__ = _described(function, options)
        return call

    return decorate


def descriptions(options: Any) -> dict[str, str]:
    """Return what the docstrings of a dataclass, and of those that it extends, say of each attribute, on one line each."""
    documents = "\n".join(docstring(kind) for kind in reversed(options.__mro__) if kind is not object)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", documents, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def _described(function: Callable[..., Any], options: Any) -> str:
    """The docstring of a function with the arguments of its options after its own."""
    own = inspect.cleandoc(docstring(function))
    about = descriptions(options)
    rows = [f"    {item.name}: {about.get(item.name, '')}" for item in dataclasses.fields(options)]
    head, mark, rest = own.partition("\n\nRaises:")
    return "\n".join([head, *rows]) + mark + rest
