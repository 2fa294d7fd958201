"""A result for its readers: the schema that they can rely on, and reading a result from anyone, with nothing executed.

Objects that stand for a type take no other key; `data`, `provenance` and `details` may grow within a schema version.
Missing parts get their defaults.
"""

import json
import os
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.checks.registry import CHECKS, RUN_CHECKS
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.fields import described
from auditor.core.files import read_bytes
from auditor.core.lazy import docstring
from auditor.core.options import Disclosure
from auditor.core.values import Check, Claim, Comparison, Estimate, Status, Verdict
from auditor.curves.views import Histogram, NamedCurve
from auditor.results import document
from auditor.results.metrics import METRICS, METRICS_OF_RUNS, METRICS_OF_STEPS, as_evidence, describe

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Schema = dict[str, Any]

# --- The types of results, as pydantic reads and describes them ---


# The parts of a result that take no other keys than their fields.
_PARTS = (
    Estimate,
    Claim,
    Comparison,
    Check,
    NamedCurve,
    Histogram,
    document.Slice,
    document.TopRecord,
    document.PolicyFound,
)


@cache
def adapter(kind: Any) -> "TypeAdapter[document.Document]":
    """Return the adapter that reads and describes the JSON of a kind of result."""
    from pydantic import ConfigDict, TypeAdapter, with_config

    for part in _PARTS:
        # The promise of a training run has the status of each claim, which follows from the rest of it.
        with_config(ConfigDict(extra="ignore" if part is Claim else "forbid"))(part)
    return TypeAdapter(kind)


# --- The JSON Schema (2020-12) of results, for other programs, made from the types and their docstrings ---
#
# Objects that stand for a type take no other key; `data`, `provenance` and `details` may grow within a schema version.


_NULL: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string"}


def _rule(condition: Mapping[str, Schema], then: Mapping[str, Schema]) -> Schema:
    return {"if": {"properties": dict(condition)}, "then": {"properties": dict(then)}}


# Checks of several fields at once, made when a type is built.
_RULES: dict[Any, list[Schema]] = {
    Estimate: [
        # A row that could not be computed says why.
        _rule({"value": _NULL}, {"details": {"required": ["reason"]}}),
        # Adjacency belongs to the training mechanism, and a number about it needs one.
        _rule({"subject": {"const": "model"}}, {"adjacency": _NULL}),
        _rule({"subject": {"const": "mechanism"}, "value": {"not": _NULL}}, {"adjacency": _TEXT}),
        # No interval without its level: the value is then a point estimate.
        _rule({"confidence": _NULL}, {"lower": _NULL, "upper": _NULL}),
    ],
    # Only a number about the mechanism judges a claim on it; the subject of a number is never left open.
    Comparison: [
        _rule({"verdict": _TEXT}, {"subject": {"const": "mechanism"}}),
        {"properties": {"subject": {"not": _NULL}}},
    ],
}
_NO_VERDICT = _rule({"comparisons": {"maxItems": 0}}, {"verdict": _NULL})


_SCHEMAS: dict[str, tuple[Any, str]] = {
    "result": (document.AuditResult, "The result of one audit"),
    "instances": (document.InstancesResult, "The audit of several models of one training algorithm"),
    "runs": (document.RunsResult, "The audit of many runs of one training algorithm"),
    "training": (document.TrainingResult, "The audit from inside one training"),
    "labels": (document.LabelsResult, "The audit of a model's training labels"),
}


def schema(kind: str = "result") -> Schema:
    """Return the JSON Schema (2020-12) that the JSON of a kind of result validates against.

    Args:
        kind: ``"result"``, of `audit`; ``"instances"``, ``"runs"``, ``"training"`` or ``"labels"``, of `audit_instances` and the like.

    Raises:
        InputError: The kind is another.

    >>> schema()["$defs"]["Subject"]["enum"]
    ['model', 'mechanism']
    >>> schema("runs")["properties"]["kind"]
    {'const': 'runs'}
    """
    cls, title = _SCHEMAS[validate.one_of("kind", kind, _SCHEMAS)]
    made = _tidied(adapter(cls).json_schema())
    parts = {item.__name__: item for item in _PARTS}
    defs = {name: _part(item, parts[name]) if name in parts else item for name, item in made["$defs"].items()}
    result = _closed(made, cls)
    result["properties"]["schema_version"] = {
        "const": document.SCHEMA_VERSION,
        "description": "Of this schema; results of other versions differ.",
    }
    if cls.kind is not None:
        result["properties"] = {"kind": {"const": cls.kind}, **result["properties"]}
        result["required"] = ["kind", *result["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:privacy-auditor:{cls.kind or 'result'}:{document.SCHEMA_VERSION}",
        **result,
        "title": f"{title}, by privacy-auditor (schema version {document.SCHEMA_VERSION})",
        **_NO_VERDICT,
        "$defs": defs,
    }


def _tidied(made: Any) -> Any:
    """Return a schema without the titles that repeat the keys, and without defaults: every key is written."""
    if isinstance(made, list):
        return [_tidied(item) for item in made]
    if not isinstance(made, dict):
        return made
    return {key: _tidied(item) for key, item in made.items() if key not in ("title", "default")}


def _part(made: Schema, cls: type) -> Schema:
    result = _closed(made, cls)
    if examples := _examples(cls):
        result["properties"]["name"]["examples"] = examples
    return {**result, **({"allOf": _RULES[cls]} if cls in _RULES else {})}


def _closed(made: Schema, cls: type) -> Schema:
    """Return the schema of an object that has each key, and no other."""
    result = described(made, cls)
    closed = {"required": list(result["properties"]), "additionalProperties": False}
    return {**result, "description": docstring(cls).split("\n")[0], **closed}


def _examples(cls: type) -> list[str]:
    """Return the names that this version gives to estimates or to checks; results of others may have more."""
    registries: dict[type, Any] = {
        Estimate: (METRICS, METRICS_OF_RUNS, METRICS_OF_STEPS),
        Check: (CHECKS, RUN_CHECKS),
    }
    names = (item.name for item in chain(*registries.get(cls, ())))
    return list(dict.fromkeys(name for name in names if not name.endswith("*")))


# --- Reading a result back, from anyone: nothing is executed, and every part has the type that the report relies on ---


# --- Files from others: only ordinary ones, no larger than is sensible, and JSON that cannot exhaust memory or the stack ---


_VALUES = 2_000_000  # commas and brackets, counted before anything is parsed
_DIGITS = 400
_INT64 = 2**63


def json_value(content: bytes, *, named: str) -> Any:
    """Return the JSON value in these bytes (UTF-8, or UTF-16 and 32 by their marks), strictly read and within limits.

    Refused are the tokens NaN and Infinity, numbers beyond the range of a float, a key that stands twice in an object,
    and more values, levels, entries or characters than any file of settings has.

    Raises:
        InputError: It is no such JSON; ``named`` begins the sentence.

    >>> json_value(b'{"a": 1, "a": 2}', named="file 'x'")
    Traceback (most recent call last):
    auditor.core.errors.InputError: file 'x' is not valid JSON: the key 'a' stands twice in one object.
    """
    value = _parsed(content, named=named)
    if (too_large := validate.problem({"value": value})) is not None:
        raise InputError(f"{named} is larger than it may be: {too_large}.")
    return value


def _parsed(content: bytes, *, named: str) -> Any:
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError as error:
        raise InputError(f"{named} is not text in UTF-8: {error.reason} at byte {error.start:,}.") from None
    # Text within quotation marks is counted too: a limit that no honest file comes near need not be exact.
    if sum(text.count(sign) for sign in ",[{") > _VALUES:
        raise InputError(f"{named} has more than {_VALUES:,} values, the largest number that is read.")
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_int, object_pairs_hook=_object)
    except RecursionError:
        raise InputError(f"{named} is nested more than 40 levels deep.") from None
    except ValueError as error:
        raise InputError(f"{named} is not valid JSON: {validate.one_line(error)}.") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _int(digits: str) -> int | float:
    """Return a whole number; beyond 64 bits the nearest float, as it would be in arrays."""
    if len(digits) > _DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    value = int(digits)
    return value if -_INT64 <= value < _INT64 else float(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {validate.shortened(twice, most=40)!r} stands twice in one object")
    return result


# --- A result ---


_LARGEST_FILE = 64_000_000
_DISCLOSED = (document.AuditResult, document.InstancesResult, document.LabelsResult)
KINDS = (*(cls for cls, _ in _SCHEMAS.values()), document.ClaimResult)
_OTHER_KINDS = {
    "instances": "the audit of several models",
    "runs": "the audit of many runs",
    "training": "the audit from inside one training",
    "labels": "the audit of training labels",
    "claim": "what a training promises",
    "comparison": "a comparison of audits",
}


def raw_result(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], bytes]:
    """Return how errors name a result of any kind, its JSON, read within limits, and the bytes of its file.

    Raises:
        InputError: It cannot be read, or is no result of a known schema version.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"path must be a text or a path, got {path!r}.")
    named = f"result file {str(path)!r}"
    content = content_of(path)
    if Path(path).suffix != ".json" and b"{" not in content[:64]:
        raise InputError(
            f"{named} is not the JSON of a result; a table of losses is audited first, and that keeps one:"
            " auditor audit FILE --json RESULT.json."
        )
    raw = _parsed(content, named=named)
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise InputError(f"{named} is not an audit result: it has no schema_version.")
    _check_version(named, raw["schema_version"])
    if (too_large := validate.problem(raw)) is not None:
        raise InputError(f"{named} is larger than the result of an audit: {too_large}.")
    return named, raw, content


def content_of(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of the file of a result, within limits."""
    return read_bytes(path, what="result file", most=_LARGEST_FILE)


def read_result(path: str | os.PathLike[str], *, kinds: Sequence[Any] = KINDS[:1]) -> Any:
    """Read a result of one of these kinds, by default the audit of one model. See `auditor.read_result`."""
    return result_of(*raw_result(path), kinds=kinds)


def result_of(named: str, raw: dict[str, Any], content: bytes, *, kinds: Sequence[Any]) -> Any:
    """Return the result of one of these kinds that `raw_result` read.

    Raises:
        InputError: It is of another kind, or damaged.
    """
    by_key = {item.kind or "": item for item in kinds}
    kind = by_key.get(str(raw.get("kind", "")))
    if kind is None:
        about = _OTHER_KINDS.get(str(raw["kind"]), "something other than one audit")
        raise InputError(f"{named} holds {about}; give the result of one model's audit.")
    kept_hash = document.take_hash(raw)  # whenever a result is written it gets a new one
    try:
        result = adapter(kind).validate_python(raw)
        _refuse_impossible(result)
    except ValueError as error:
        raise InputError(f"{named} is damaged: {validate.one_line(_first_fault(error))}.") from None
    return result if kept_hash in _hashes(raw, content) else _marked(result)


def _hashes(raw: Mapping[str, Any], content: bytes) -> Iterator[str]:
    """Return the hash of the parsed content, and of the file's own content, which may have whole numbers beyond 64 bits."""
    yield document.content_hash(raw)
    yield document.content_hash(json.loads(content))


# Messages that are worded differently for JSON.
_PLAIN = (
    (r"^(Value error, |\w+ (?=should))", ""),
    ("a valid tuple", "a list"),
    ("a valid dictionary|a dictionary or an instance of .*", "an object"),
)
_ENDINGS = {"missing": " is missing", "unexpected_keyword_argument": " is an unknown key"}


def _first_fault(error: ValueError) -> ValueError:
    """Return the first fault, with its place and the valid values."""
    from pydantic_core import ValidationError

    if not isinstance(error, ValidationError):
        return error
    fault = error.errors(include_url=False)[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key[:40]}" for key in fault["loc"])[1:]
    should = fault["msg"]
    for words, plain in _PLAIN:
        should = re.sub(words, plain, should)
    text = (
        f": {should}" if fault["type"] == "value_error" else f" {should}, got {reprlib.repr(fault['input'])}"
    )
    return ValueError(place + _ENDINGS.get(fault["type"], text))


def _refuse_impossible(result: document.Document) -> None:
    """Refuse impossible results: no audience, a bound that is not its lower end, findings that cannot hold together."""
    if isinstance(result, _DISCLOSED) and result.data.get("disclosure") not in tuple(Disclosure):
        raise ValueError(f"data.disclosure must be one of {', '.join(Disclosure)}")
    parts = (*getattr(result, "slices", ()), *getattr(result, "policies", ()))
    for item in chain(result.estimates, *(part.estimates for part in parts)):
        ends = item.value, item.lower
        if None not in ends and item.value != item.lower and describe(item).lower_bound:
            raise ValueError(f"{item.name} must equal its lower end, {item.lower!r}, got {item.value!r}")
    findings = document.shown_by(result) if result.kind is None else None
    for problem in () if findings is None else _never_shown(result, findings):
        raise ValueError(f"data.shown {problem}")


_GUESSING = {"advantage": 0.0, "auc": 0.5, "auc.upper": 0.5}
# Numbers may be rounded outward to three digits, of which a unit is at most 1%; curves have six digits.
_UNIT, _DRAWN = 1.01, 1e-6


def _never_shown(result: document.Document, findings: Any) -> Iterator[str]:
    """Yield contradictions of `auditor.pipeline.shown_together`."""
    names, limits, point, behind = (findings.get(key) for key in ("names", "limits", "point", "reversed"))
    if names is None or (findings.get("looks") or 0) < 1 or behind is None or not 0 <= behind <= 1:
        yield "must have a list of names, looks of 1 or more, and reversed from 0 to 1"
    of_training = {"epsilon_bound.one_run", "epsilon_bound.adaptive"}
    if behind and (point or {*names} - {"auc.upper", "epsilon_bound.adaptive"}):
        yield "must have reversed 0 beside a point and beside other names than auc.upper"
    if limits is not None and not {*names} & {"advantage", "auc"} <= {*limits} <= {*names}:
        yield "must have limits of advantage and auc where it names them, and no others"
    for name in names:
        above, guessing = name != "auc.upper", _GUESSING.get(name, 0.0)
        row = as_evidence(document.find(result, name if above else "auc"), result)
        own: Any = getattr(row, "lower" if above else "upper", None)
        if own is None or not (own * _UNIT > guessing if above else own < guessing * _UNIT):
            yield f"names {name[:40]!r}, of which no estimate is beyond guessing"
        elif name in (limits or {}) and not guessing <= (limits[name] or -1) <= own * _UNIT:
            yield f"has a limit of {name} that is not between {guessing:g} and that of its interval, {own:.3g}"
    coarse = result.data.get("disclosure") == Disclosure.PUBLIC  # its band is known at a few cuts
    if point is not None and not coarse and not _in_band(point, result):
        yield "has a point outside the band of the trade-off curve"
    differs = findings.get("differs")  # None in a result of an earlier release
    for end, shown in (
        ("lower", point or {*names} - {"auc.upper", *of_training}),
        ("higher", behind or "auc.upper" in names),
    ):
        if differs is not None and shown and end not in differs:
            yield f"must have {end!r} in differs beside what it shows"


def _in_band(point: Any, result: document.Document) -> bool:
    """Return whether the plotted band, at a lower confidence, has as many hits at so many errors."""
    errors, hits, end = (point.get(key) for key in ("errors", "hits", "end"))
    lower = (zip(item.fpr, item.tpr, strict=True) for item in result.curves if item.name == "band_lower")
    if None in (errors, hits, end):
        return False
    there = ((x, y) if end == "low" else (1 - y, 1 - x) for x, y in chain.from_iterable(lower))
    most = max((y for x, y in there if x <= errors * _UNIT + _DRAWN), default=0.0)
    return end in ("low", "high") and 0 < errors < hits <= most * _UNIT


_OTHER = "The content of this result is not that of its SHA-256, or it keeps none: it was altered since it was written."


def _marked(result: document.Document) -> document.Document:
    """Return an altered result with that as a failed check, so that it passes no gate and has no verdict."""
    failed = Check(document.ALTERED, Status.FAIL, _OTHER)
    none, reason = Verdict.NOT_EVALUABLE, f"A validity check failed ({failed.name}): {_OTHER}"
    rows = tuple(
        replace(item, verdict=none, reason=reason, p_value=None, e_value=None) if item.verdict else item
        for item in result.comparisons
    )
    checks = (failed, *(item for item in result.checks if item.name != failed.name))
    return replace(result, checks=checks, comparisons=rows, verdict=result.verdict and none)


def _check_version(named: str, version: Any) -> None:
    if version == document.SCHEMA_VERSION:
        return
    options = f"this release reads {document.SCHEMA_VERSION!r}"
    newer = isinstance(version, str) and version.isdecimal() and len(version) < 10  # noqa: PLR2004
    if newer and int(version) > int(document.SCHEMA_VERSION):
        raise InputError(
            f"{named} has schema_version {version!r}, which a newer release wrote; {options}: upgrade with 'pip install"
            " --upgrade privacy-auditor'."
        )
    raise InputError(f"{named} has schema_version {reprlib.repr(version)}; {options}.")
