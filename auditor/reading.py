"""Reading a result back, from anyone: nothing is executed, and every part has the type that the report relies on.

Every release reads what the releases before it wrote; what a part did not have then gets its default.
"""

import dataclasses
import os
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from auditor import _bounded, _limits, _validate
from auditor.choices import Adjacency
from auditor.errors import InputError
from auditor.result import SCHEMA_VERSION, AuditResult, Histogram, NamedCurve, TopRecord
from auditor.values import Check, Claim, Comparison, Estimate, Status, Subject, Verdict

if typing.TYPE_CHECKING:
    from auditor.slices import Slice

__all__ = ["read_result"]

T = TypeVar("T")

_NUMBER = (int, float)
_TEXT = (str,)
_MAYBE_NUMBER = (*_NUMBER, type(None))
_INFINITE = ("inf", "-inf")
_READ = ("1", SCHEMA_VERSION)
_LARGEST_FILE = 64_000_000
_OTHER_KINDS = {
    "instances": "the audit of several models",
    "runs": "the audit of many runs",
    "comparison": "a comparison of audits",
}


def read_result(path: str | os.PathLike[str]) -> AuditResult:
    """Read a result that `AuditResult.to_json` wrote, in this release or an earlier one.

    Args:
        path: A JSON file of at most 64 MB. It may come from anyone: nothing in it is executed.

    Raises:
        InputError: The file is missing or no ordinary file, is not JSON, is larger than any result, or is not a whole
            result of a known schema version.

    >>> import auditor, tempfile
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3], nonmember=[0.2, 0.4, 0.9]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = result.to_json(f"{folder}/result.json")
    ...     read_result(f"{folder}/result.json").to_json() == text
    True
    """
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"path must be a text or a path, got {path!r}.")
    named = f"result file {str(path)!r}"
    content = _bounded.read_bytes(path, what="result file", most=_LARGEST_FILE)
    raw = _bounded.json_value(content, named=named)
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise InputError(f"{named} is not an audit result: it has no schema_version.")
    _check_version(named, raw["schema_version"])
    if "kind" in raw:
        about = _OTHER_KINDS.get(str(raw["kind"]), "something else than one audit")
        raise InputError(f"{named} holds {about}; give the result of one model's audit.")
    too_large = _limits.problem(raw)
    if too_large is not None:
        raise InputError(f"{named} is larger than the result of an audit: {too_large}.")
    try:
        return _result(raw)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        words = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else _validate.one_line(error)
        raise InputError(f"{named} is damaged: {words}.") from None


def _check_version(named: str, version: Any) -> None:
    if version in _READ:
        return
    known = f"this release reads {' and '.join(map(repr, _READ))}"
    newer = isinstance(version, str) and version.isdecimal() and len(version) < 10  # noqa: PLR2004
    if newer and int(version) > int(SCHEMA_VERSION):
        raise InputError(
            f"{named} has schema_version {version!r}, which a newer release wrote; {known}: upgrade with 'pip install"
            " --upgrade privacy-auditor'."
        )
    raise InputError(f"{named} has schema_version {reprlib.repr(version)}; {known}.")


def _result(raw: dict[str, Any]) -> AuditResult:
    _typed(raw, {"data": (dict,), "provenance": (dict,)})
    return AuditResult(
        data=raw["data"],
        estimates=_each(raw, "estimates", _estimate),
        claims=_each(raw, "claims", _claim),
        comparisons=_each(raw, "comparisons", _comparison),
        checks=_each(raw, "checks", _check),
        curves=_each(raw, "curves", _curve),
        histograms=_each(raw, "histograms", _histogram),
        verdict=_maybe(Verdict, raw["verdict"]),
        provenance=raw["provenance"],
        schema_version=SCHEMA_VERSION,
        slices=_each({"slices": [], **raw}, "slices", _slice),  # not there in the first release
        top_records=_each({"top_records": [], **raw}, "top_records", _top_record),  # nor this
    )


def _each(raw: Mapping[str, Any], name: str, convert: Callable[[Any], T]) -> tuple[T, ...]:
    """Every item of a list, converted; what goes wrong is told with its place."""
    items = raw[name]
    if not isinstance(items, list):
        raise TypeError(f"{name} must be a list, not {type(items).__name__}")
    found = []
    for index, item in enumerate(items):
        try:
            found.append(convert(item))
        except KeyError as error:
            raise ValueError(f"{name}[{index}] has no {error.args[0]!r}") from None
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{name}[{index}]: {error}") from None
    return tuple(found)


def _restored(value: Any) -> Any:
    """Numbers again where JSON has the words for infinities; only ever called on numbers and their containers."""
    if isinstance(value, str):
        return float(value) if value in _INFINITE else value
    if isinstance(value, dict):
        return {key: _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if isinstance(value, list) else value


def _typed(raw: Any, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """The same mapping, if every field is there and of its kind; a truth value is no number."""
    if not isinstance(raw, dict):
        raise TypeError(f"must be an object, not {type(raw).__name__}")
    for name, kind in kinds.items():
        value = raw[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
            raise TypeError(f"{name} must not be {type(value).__name__}")
    return raw


def _made(cls: type[T], values: Mapping[str, Any]) -> T:
    """The value with these fields; one that it does not have is refused, and a default stands in for a missing one."""
    fields = {item.name for item in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ValueError(f"has the unknown key {name[:40]!r}")
    return cls(**values)


def _maybe(kind: Any, value: Any) -> Any:
    return None if value is None else kind(value)


def _estimate(raw: Any) -> Estimate:
    numbers = dict.fromkeys(("value", "lower", "upper", "confidence", "delta"), _MAYBE_NUMBER)
    changed = {**_typed(raw, {}), **{name: _restored(raw[name]) for name in (*numbers, "details")}}
    _typed(changed, {**numbers, "name": _TEXT, "method": _TEXT, "details": (dict,), "assumptions": (list,)})
    if not isinstance(changed["details"].get("reason", ""), str):
        raise TypeError("details.reason must be a text")
    changed["subject"], changed["adjacency"] = Subject(raw["subject"]), _maybe(Adjacency, raw["adjacency"])
    changed["assumptions"] = tuple(_text("assumptions", item) for item in raw["assumptions"])
    return _made(Estimate, changed)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must hold texts, not {type(value).__name__}")
    return value


def _slice(raw: Any) -> "Slice":
    from auditor.slices import Slice, SliceKind

    _typed(raw, {"kind": _TEXT, "label": _TEXT, "estimates": (list,), "confidence": _NUMBER})
    _typed(raw, dict.fromkeys(("n_member", "n_nonmember", "compared"), (int,)))
    estimates = _each(raw, "estimates", _estimate)
    if not estimates:
        raise ValueError(f"slice {reprlib.repr(raw['label'])} has no estimates")
    return _made(Slice, {**raw, "kind": SliceKind(raw["kind"]), "estimates": estimates})


def _top_record(raw: Any) -> TopRecord:
    """By the types that its fields declare: one that came in a later release may be missing, if it has a default."""
    hints = typing.get_type_hints(TopRecord)
    values = {
        name: _restored(value) if hints.get(name) is float else value
        for name, value in _typed(raw, {}).items()
    }
    for item in dataclasses.fields(TopRecord):
        may_miss = item.default is not dataclasses.MISSING
        if item.name in values or not may_miss:
            _typed(values, {item.name: _kinds(hints[item.name])})
    return _made(TopRecord, {**values, "odds": float(values["odds"])})


def _kinds(hint: Any) -> tuple[type, ...]:
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return (*parts, int) if float in parts else parts


def _check(raw: Any) -> Check:
    _typed(raw, {"name": _TEXT, "message": _TEXT, "details": (dict,)})
    return _made(Check, {**raw, "status": Status(raw["status"]), "details": _restored(raw["details"])})


def _claim(raw: Any) -> Claim:
    later = ("lower", "upper", "confidence")  # not there in the first releases
    restored = {name: _restored(_typed(raw, {})[name]) for name in ("value", "delta")}
    changed = {**raw, **restored, **{name: _restored(raw.get(name)) for name in later}}
    kinds = {
        **dict.fromkeys((*later, "value", "delta"), _MAYBE_NUMBER),
        **dict.fromkeys(("metric", "method", "note"), _TEXT),
        "proven": (bool,),
    }
    _typed(changed, kinds)
    return _made(Claim, {**changed, "adjacency": Adjacency(raw["adjacency"])})


def _comparison(raw: Any) -> Comparison:
    _typed(raw, {"estimate": _TEXT, "reason": _TEXT})
    changed = {"verdict": _maybe(Verdict, raw["verdict"]), "subject": _maybe(Subject, raw.get("subject"))}
    return _made(Comparison, {**raw, **changed, "claim": _claim(raw["claim"])})


def _numbers(name: str, values: Any, length: int | None = None) -> tuple[Any, ...]:
    found = _restored(values)
    if not isinstance(found, list) or any(isinstance(x, bool) or not isinstance(x, _NUMBER) for x in found):
        raise TypeError(f"{name} must be a list of numbers")
    if length is not None and len(found) != length:
        raise ValueError(f"{name} has {len(found)} entries, not {length}")
    return tuple(found)


def _curve(raw: Any) -> NamedCurve:
    _typed(raw, {"name": _TEXT, "label": _TEXT, "fpr": (list,), "tpr": (list,)})
    fpr = _numbers("fpr", raw["fpr"])
    return _made(NamedCurve, {**raw, "fpr": fpr, "tpr": _numbers("tpr", raw["tpr"], len(fpr))})


def _histogram(raw: Any) -> Histogram:
    _typed(raw, {"scale": _TEXT, "edges": (list,), "quantiles": (dict,)})
    edges = _numbers("edges", raw["edges"])
    changed: dict[str, Any] = {**raw, "edges": edges}
    for name in ("member", "nonmember", "member_fit", "nonmember_fit"):
        may_miss = name.endswith("_fit") and raw[name] is None
        changed[name] = None if may_miss else _numbers(name, raw[name], max(len(edges) - 1, 0))
    listed = {name: _numbers(name, item) for name, item in raw["quantiles"].items()}
    length = len(listed.get("probability", ()))
    changed["quantiles"] = {name: _numbers(name, raw["quantiles"][name], length) for name in listed}
    return _made(Histogram, changed)
