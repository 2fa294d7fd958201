"""From the types of a result to its JSON Schema, from JSON to those types, and from any value to one of its kind.

A type is described where it stands, in its hints: a dataclass is a closed object, a ``TypedDict`` an open one, of which
the known keys are described; the marks of `auditor.core.values` say what a hint alone cannot.
"""

import dataclasses
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, Union

import numpy as np

from auditor.core.lazy import docstring
from auditor.core.values import FILLED_IN, LATER, OR_TEXT, Keys, Must, SameLength

Schema = dict[str, Any]

_LISTS = (tuple, list)
_INFINITE = ("inf", "-inf")
_NULL: Schema = {"type": "null"}


class Hint(NamedTuple):
    """A type hint, taken apart: what it is of, of what parts, which marks it has, and whether it may be null."""

    kind: Any
    parts: tuple[Any, ...]
    marks: tuple[Any, ...]
    nullable: bool

    @property
    def is_object(self) -> bool:
        """Whether it is an open object."""
        return self.kind is Mapping or typing.is_typeddict(self.kind)

    @property
    def keys(self) -> Keys | None:
        """The keys that are known of it, where it is an open object of which some are."""
        if typing.is_typeddict(self.kind):
            return Keys(self.kind)
        return next((mark for mark in self.marks if isinstance(mark, Keys)), None)


@cache
def hint_of(hint: Any) -> Hint:
    """Take a hint apart: ``Annotated[float, mark] | None`` is a float with a mark, which may be null."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (part for part in parts if part is not types.NoneType)
        return hint_of(inner)._replace(nullable=True)
    if origin is Annotated:
        inner = hint_of(parts[0])
        return inner._replace(marks=(*inner.marks, *parts[1:]))
    if origin in (Required, NotRequired):
        return hint_of(parts[0])
    return Hint(origin or hint, tuple(part for part in parts if part is not ...), (), nullable=hint is Any)


def _fields_of(cls: Any) -> dict[str, Hint]:
    """The hints of a dataclass's fields, or of the known keys of an open object."""
    hints = typing.get_type_hints(cls, include_extras=True)
    names = [item.name for item in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else hints
    return {name: hint_of(hints[name]) for name in names}


fields_of: Callable[[Any], dict[str, Hint]] = cache(_fields_of)


# --- JSON Schema (2020-12): what a docstring says of an attribute is what the schema says of its key ---


def object_schema(cls: Any, names: Mapping[Any, str]) -> Schema:
    """Return the schema of a dataclass, all fields there and no others, or of an open object.

    Args:
        cls: The type.
        names: Of the types that stand under ``$defs``.
    """
    about = _attributes(cls)
    described = {
        name: {**schema_of(hint, names), **_description(about.get(name))}
        for name, hint in fields_of(cls).items()
    }
    if typing.is_typeddict(cls):
        required = [name for name in described if name in cls.__required_keys__]
        return {"type": "object", "properties": described, "required": required}
    first = docstring(cls).split("\n")[0]
    closed = {"required": list(described), "additionalProperties": False}
    return {"type": "object", **_description(first), "properties": described, **closed}


def schema_of(hint: Hint, names: Mapping[Any, str]) -> Schema:
    """Return the schema of whatever has this hint."""
    if hint.nullable and FILLED_IN not in hint.marks:
        return {"anyOf": [schema_of(hint._replace(nullable=False), names), _NULL]}
    more = [mark.keywords for mark in hint.marks if isinstance(mark, Must)]
    merged = {word: item for keywords in more for word, item in keywords.items()}
    # A number within bounds is finite; one without may be one of two words.
    finite = hint.kind is float and bool(more) and "anyOf" not in merged
    return {**({"type": "number"} if finite else _schema(hint, names)), **merged}


_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"anyOf": [{"type": "number"}, {"enum": list(_INFINITE)}]},
}


def _schema(hint: Hint, names: Mapping[Any, str]) -> Schema:
    kind, parts = hint.kind, hint.parts
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind is Literal:
        return {"enum": list(parts)}
    if kind in _LISTS:
        return {"type": "array", "items": schema_of(hint_of(parts[0]), names)}
    if hint.is_object:
        return _open_schema(hint, names)
    if issubclass(kind, Enum):
        return {"enum": [str(item) for item in kind]}
    return {"$ref": f"#/$defs/{names[kind]}"}


def _open_schema(hint: Hint, names: Mapping[Any, str]) -> Schema:
    if hint.keys is None:
        value = hint_of(hint.parts[1])
        others = {} if value.kind is Any else {"additionalProperties": schema_of(value, names)}
        return {"type": "object", **others}
    if not hint.keys.loose:
        return object_schema(hint.keys.of, names)
    texts = {name: item for name, item in fields_of(hint.keys.of).items() if item.kind is str}
    return {"type": "object", "properties": {name: schema_of(item, names) for name, item in texts.items()}}


def _attributes(cls: type) -> dict[str, str]:
    """What a docstring says of each attribute, as plain text."""
    _, _, section = docstring(cls).partition("Attributes:\n")
    section = section.split("\n\n")[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", words).replace("``", "") for name, words in found}


def _description(words: str | None) -> Schema:
    return {"description": words} if words else {}


# --- Reading: strictly, and what is not of its kind is told with its place ---


def read(cls: Any, raw: Any, *, closed: bool = True) -> Any:
    """Return the value of a dataclass that JSON describes.

    Args:
        cls: The dataclass.
        raw: As `json` reads it.
        closed: Whether a key that is not a field is refused.

    Raises:
        KeyError: A field is missing that every release wrote.
        TypeError, ValueError: Something is not of its kind; the sentence says where.
    """
    if not isinstance(raw, dict):
        raise TypeError(f"must be an object, not {type(raw).__name__}")
    hints = fields_of(cls)
    values = {
        name: _read(name, hint, raw[name])
        for name, hint in hints.items()
        if name in raw or LATER not in hint.marks
    }
    for name in raw if closed else ():
        if name not in hints and not isinstance(getattr(cls, name, None), property):
            raise ValueError(f"has the unknown key {name[:40]!r}")
    for name, hint in hints.items():
        for mark in hint.marks:
            if isinstance(mark, SameLength) and values[name] is not None:
                _same_length(name, values[name], mark, values)
    return cls(**values)


def _read(name: str, hint: Hint, raw: Any) -> Any:
    kind = hint.kind
    if raw is None and hint.nullable:
        return None
    if kind in _LISTS:
        return _read_list(name, hint_of(hint.parts[0]), raw)
    if dataclasses.is_dataclass(kind):
        return read(kind, raw)
    if hint.is_object:
        return _read_object(name, hint, raw)
    if issubclass(kind, Enum):
        return kind(raw)
    found = restored(raw) if kind is float else raw
    if not isinstance(found, (int, float) if kind is float else kind) or (
        isinstance(found, bool) and kind is not bool
    ):
        raise TypeError(f"{name} must not be {type(found).__name__}")
    return found


def _read_list(name: str, item: Hint, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        kind = "a list of numbers" if item.kind in (int, float) else "a list"
        raise TypeError(f"{name} must be {kind}, not {type(raw).__name__}")
    if item.kind is str:
        for text in raw:
            if not isinstance(text, str):
                raise TypeError(f"{name} must hold texts, not {type(text).__name__}")
        return tuple(raw)
    if item.kind in (int, float):
        found = restored(raw)
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in found):
            raise TypeError(f"{name} must be a list of numbers")
        return tuple(found)
    return tuple(_read_item(f"{name}[{index}]", item.kind, part) for index, part in enumerate(raw))


def _read_item(place: str, cls: type, raw: Any) -> Any:
    try:
        return read(cls, raw)
    except KeyError as error:
        raise ValueError(f"{place} has no {error.args[0]!r}") from None
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _read_object(name: str, hint: Hint, raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise TypeError(f"{name} must not be {type(raw).__name__}")
    if hint.keys is not None and hint.keys.loose:
        texts = [key for key, item in fields_of(hint.keys.of).items() if item.kind is str]
        for key in texts:
            if not isinstance(raw.get(key, ""), str):
                raise TypeError(f"{name}.{key} must be a text")
        return {key: item if key in texts else restored(item) for key, item in raw.items()}
    value = hint_of(hint.parts[1])
    if value.kind not in _LISTS:
        return raw
    return {key: _read_list(key, hint_of(value.parts[0]), item) for key, item in raw.items()}


def _same_length(name: str, found: Any, mark: SameLength, values: Mapping[str, Any]) -> None:
    within = found if isinstance(found, Mapping) else values
    length = max(len(within.get(mark.field, ())) - mark.less, 0)
    for key, item in found.items() if isinstance(found, Mapping) else [(name, found)]:
        own = within.get(f"{key.split('_')[0]}_{mark.field}")  # of a group
        wanted = length if own is None else len(own)
        if len(item) != wanted:
            raise ValueError(f"{key} has {len(item)} entries, not {wanted}")


def restored(value: Any) -> Any:
    """Numbers again where JSON has the words for infinities; only ever called on numbers and their containers."""
    if isinstance(value, str):
        return float(value) if value in _INFINITE else value
    if isinstance(value, dict):
        return {key: restored(item) for key, item in value.items()}
    return [restored(item) for item in value] if isinstance(value, list) else value


# --- Cleaning: of what others wrote, a value that is not of its kind counts as missing ---


def cleaned_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not of their kind, as they should be.

    A number that is none (NaN, no number at all, an endless integer), a text that is none, and an object or a list that
    is none count as missing. A truth value is taken as it is: it is read by whether it is true.
    """
    changed = {}
    for name, hint in fields_of(type(value)).items():
        before = getattr(value, name)
        after = _of_kind(hint, before)
        after = _missing(hint) if after is None else after
        if after is not before:
            changed[name] = after
    return changed


def _missing(hint: Hint) -> Any:
    """What stands for a missing value where none may be null."""
    if hint.nullable:
        return None
    if hint.is_object:
        return {}
    return {float: math.nan, int: 0, str: "", tuple: (), list: ()}.get(hint.kind)


def _of_kind(hint: Hint, value: Any) -> Any:
    """The value, or null where it is not of its kind; the same object, where nothing had to change."""
    kind, found = hint.kind, value
    if value is None or (OR_TEXT in hint.marks and isinstance(value, str)):
        return value
    if kind in (float, int):
        found = _number(value)
    elif kind in (str, Literal):
        found = value if isinstance(value, str) else None
    elif kind in _LISTS:
        found = _list(hint_of(hint.parts[0]), value)
    elif hint.is_object:
        found = _object(hint, value)
    elif dataclasses.is_dataclass(kind) and isinstance(value, hint.kind):
        changed = cleaned_fields(value)
        found = dataclasses.replace(value, **changed) if changed else value
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if abs(value) <= sys.float_info.max or value in (math.inf, -math.inf) else None


def _list(item: Hint, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, _LISTS):
        return None
    if item.kind is float and set(map(type, value)) == {float} and not any(map(math.isnan, value)):
        return value
    empty = None if item.kind in (float, int) else _missing(item)
    found = [empty if (part := _of_kind(item, before)) is None else part for before in value]
    same = all(after is before for after, before in zip(found, value, strict=True))
    return value if same else type(value)(found)


def _object(hint: Hint, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return None
    known = dict.fromkeys(value, hint_of(hint.parts[1])) if hint.keys is None else fields_of(hint.keys.of)
    changed = {
        name: after
        for name, item in known.items()
        if name in value and (after := _of_kind(item, value[name])) is not value[name]
    }
    return {**value, **changed} if changed else value
