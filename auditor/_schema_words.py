"""The words that schemas are written in: JSON Schema keywords under the names of what they mean here."""

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

__all__ = [
    "COUNT",
    "DELTA",
    "INSIDE",
    "NULL",
    "NUMBER",
    "RATE",
    "TEXT",
    "TRUTH",
    "Schema",
    "details",
    "growing",
    "listed",
    "one_of",
    "or_null",
    "rule",
    "whole",
]

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
RATE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
INSIDE: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
DELTA: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}


def whole(cls: type, fields: Mapping[str, Schema]) -> Schema:
    """An object with the fields of a type, all there and no others, described as the type describes them."""
    names = [item.name for item in dataclasses.fields(cls)]
    if set(names) != set(fields):
        raise TypeError(f"the schema of {cls.__name__} does not have its fields")
    about = _attributes(cls)
    described = {name: {**fields[name], **description(about.get(name))} for name in names}
    first = (inspect.getdoc(cls) or "").split("\n")[0]
    return {
        "type": "object",
        **description(first),
        "properties": described,
        "required": names,
        "additionalProperties": False,
    }


def growing(known: Mapping[str, tuple[Schema, str]], *, required: Sequence[str]) -> Schema:
    properties = {name: {**item, "description": words} for name, (item, words) in known.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


def _attributes(cls: type) -> dict[str, str]:
    """What a docstring says of each attribute, as plain text."""
    _, _, section = (inspect.getdoc(cls) or "").partition("Attributes:\n")
    section = section.split("\n\n")[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", words).replace("``", "") for name, words in found}


def description(words: str | None) -> Schema:
    return {"description": words} if words else {}


def details(known: Mapping[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": dict(known or {})}


def rule(condition: Mapping[str, Schema], then: Mapping[str, Schema]) -> Schema:
    return {"if": {"properties": dict(condition)}, "then": {"properties": dict(then)}}


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def one_of(kind: type[StrEnum]) -> Schema:
    return {"enum": [str(item) for item in kind]}


def or_null(item: Schema) -> Schema:
    return {"anyOf": [item, NULL]}
