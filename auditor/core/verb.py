"""Functions whose options are a frozen dataclass: the signature and the docstring are made from it."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from auditor.core import validate
from auditor.core.lazy import docstring

Subject = TypeVar("Subject")
Options = TypeVar("Options")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def with_options(
    options: Callable[Arguments, Options],
) -> Callable[[Callable[[Subject, Options], Result]], Callable[Concatenate[Subject, Arguments], Result]]:
    """Return a decorator for a function of something and of its options, which the caller gives one by one.

    Args:
        options: The dataclass of the options. Its attributes become arguments, its descriptions those of the docstring.
    """

    def decorate(
        function: Callable[[Subject, Options], Result],
    ) -> Callable[Concatenate[Subject, Arguments], Result]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Result:
            if first.name in kwargs:
                args = (kwargs.pop(first.name), *args)
            if not args and first.default is first.empty:
                raise TypeError(f"{function.__name__}() needs its argument {first.name!r}.")
            subject, *others = args or (first.default,)
            _refuse_unknown(function, options, others, kwargs)
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
            _refuse_unknown(function, options, args, kwargs)
            return function(options(*args, **kwargs))

        _describe(call, function, options)
        return call

    return decorate


def alike(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function, or a dataclass, that takes ``members`` for ``member`` and the reverse, with ``non`` before them too.

    >>> alike(lambda nonmembers: nonmembers)(non_member=3)
    3
    """
    if isinstance(function, type):
        type.__setattr__(function, "__init__", alike(vars(function)["__init__"]))
        return function
    names = {_singular(name): name for name in inspect.signature(function).parameters}

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        named: Any = {names.get(_singular(name), name): value for name, value in kwargs.items()}
        if len(named) < len(kwargs):
            raise TypeError(f"{function.__name__}() got one argument twice: {', '.join(kwargs)}.")
        return function(*args, **named)

    return call


def _singular(name: str) -> str:
    return re.sub("^(non)?_?(member)s?$", r"\1\2", name)


def _refuse_unknown(
    function: Callable[..., Any], options: Any, by_position: Sequence[Any], by_name: Iterable[str]
) -> None:
    parameters = inspect.signature(options).parameters
    free = [name for name, item in parameters.items() if item.kind is item.POSITIONAL_OR_KEYWORD]
    if len(by_position) > len(free):
        raise TypeError(f"{function.__name__}() got too many arguments by position; give them by name.")
    for name in by_name:
        if name not in parameters:
            meant = validate.did_you_mean(validate.nearest(name, parameters))
            if _singular(name) in ("member", "nonmember") and "losses" in parameters:
                meant = "; give losses=auditor.Losses(member=..., nonmember=...)."
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
    """Return the descriptions of the attributes from the docstrings of a dataclass and of its bases, on one line each."""
    documents = "\n".join(docstring(kind) for kind in reversed(options.__mro__) if kind is not object)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", documents, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
