"""Functions whose options are a frozen dataclass: the signature and the docstring are made from it."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
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

    def decorate(
        function: Callable[[Subject, Options], Result],
    ) -> Callable[Concatenate[Subject, Arguments], Result]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            if first.name in kwargs:
                args = (kwargs.pop(first.name), *args)
            if not args:
                raise TypeError(f"{function.__name__}() needs its argument {first.name!r}.")
            _refuse_unknown(function, options, kwargs, renamed)
            subject, *others = args
            return function(subject, options(*others, **kwargs))

        first = next(iter(inspect.signature(function).parameters.values()))
        _describe(call, function, options, first)
        return call

    return decorate


def of_options(
    options: Callable[Arguments, Options],
) -> Callable[[Callable[[Options], Result]], Callable[Arguments, Result]]:
    """Return a decorator for a function of its options alone; see `with_options`."""

    def decorate(function: Callable[[Options], Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            _refuse_unknown(function, options, kwargs, {})
            return function(options(*args, **kwargs))

        _describe(call, function, options)
        return call

    return decorate


def _refuse_unknown(
    function: Callable[..., Any], options: Any, given: Iterable[str], renamed: Mapping[str, str]
) -> None:
    names = list(inspect.signature(options).parameters)
    for name in given:
        if name in renamed:
            raise TypeError(
                f"{function.__name__}() has no argument {name!r}: it is called {renamed[name]!r}."
            )
        if name not in names:
            meant = validate.did_you_mean(validate.nearest(name, names))
            raise TypeError(f"{function.__name__}() has no argument {name!r}{meant}")


def _describe(
    call: Callable[..., Any], function: Callable[..., Any], options: Any, *first: inspect.Parameter
) -> None:
    """Give a function the signature that its options make, and their descriptions as those of its arguments."""
    vars(call)["__signature__"] = inspect.Signature([*first, *inspect.signature(options).parameters.values()])
    own = inspect.cleandoc(docstring(function))
    about = descriptions(options)
    rows = [f"    {item.name}: {about.get(item.name, '')}" for item in dataclasses.fields(options)]
    head, mark, rest = own.partition("\n\nRaises:")
    call.__doc__ = "\n".join([head, *([] if first else ["", "Args:"]), *rows]) + mark + rest


def descriptions(options: Any) -> dict[str, str]:
    """Return what the docstrings of a dataclass, and of those that it extends, say of each attribute, on one line each."""
    documents = "\n".join(docstring(kind) for kind in reversed(options.__mro__) if kind is not object)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", documents, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
