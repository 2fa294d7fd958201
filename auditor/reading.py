"""Reading a result back, from anyone: nothing is executed, and every part has the type that the report relies on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.choices import Adjacency
from auditor.errors import InputError
from auditor.result import SCHEMA_VERSION, AuditResult, Histogram, NamedCurve, TopRecord
from auditor.values import Check, Claim, Comparison, Estimate, Status, Subject, Verdict

if TYPE_CHECKING:
    from auditor.slices import Slice

__all__ = ["read_result"]

_NUMBER = (int, float)
_TEXT = (str,)
_MAYBE_NUMBER = (*_NUMBER, type(None))
_INFINITE = ("inf", "-inf")
_READ = ("1", SCHEMA_VERSION)


def read_result(path: str | os.PathLike[str]) -> AuditResult:
    """Read a result that `AuditResult.to_json` wrote.

    Args:
        path: A JSON file.

    Raises:
        InputError: The file is missing, is not JSON, or is not a whole result of a known schema version.

    >>> import auditor, tempfile
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3], nonmember=[0.2, 0.4, 0.9]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = result.to_json(f"{folder}/result.json")
    ...     read_result(f"{folder}/result.json").to_json() == text
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be a text or a path, got {path!r}.")
    raw = _parsed(path)
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise InputError(f"result file {str(path)!r} is not an audit result: it has no schema_version.")
    if raw.get("kind") == "instances":
        raise InputError(
            f"result file {str(path)!r} holds the audit of several models; give the result of one model's audit."
        )
    if raw["schema_version"] not in _READ:
        raise InputError(
            f"result file {str(path)!r} has schema_version {raw['schema_version']!r}; this release reads"
            f" {' and '.join(map(repr, _READ))}."
        )
    try:
        return _result(raw)
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"result file {str(path)!r} is damaged: {type(error).__name__} {error}.") from None


def _parsed(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refused)
    except OSError as error:
        raise InputError(f"result file {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"result file {str(path)!r} is not valid JSON: {error}.") from None


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _result(raw: dict[str, Any]) -> AuditResult:
    lists = ("estimates", "claims", "comparisons", "checks", "curves", "histograms")
    _typed(raw, {"data": (dict,), "provenance": (dict,), **dict.fromkeys(lists, (list,))})
    return AuditResult(
        data=raw["data"],
        estimates=tuple(_estimate(item) for item in raw["estimates"]),
        claims=tuple(_claim(item) for item in raw["claims"]),
        comparisons=tuple(_comparison(item) for item in raw["comparisons"]),
        checks=tuple(_check(item) for item in raw["checks"]),
        curves=tuple(_curve(item) for item in raw["curves"]),
        histograms=tuple(_histogram(item) for item in raw["histograms"]),
        verdict=_maybe(Verdict, raw["verdict"]),
        provenance=raw["provenance"],
        schema_version=SCHEMA_VERSION,
        slices=tuple(
            _slice(item) for item in _listed(raw.get("slices", []))
        ),  # not there in the first release
        top_records=tuple(_top_record(item) for item in _listed(raw.get("top_records", []))),  # nor this
    )


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
        raise TypeError(f"expected an object with {', '.join(kinds)}, got {type(raw).__name__}")
    for name, kind in kinds.items():
        value = raw[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
            raise TypeError(f"{name} must not be {type(value).__name__}")
    return raw


def _maybe(kind: Any, value: Any) -> Any:
    return None if value is None else kind(value)


def _estimate(raw: Any) -> Estimate:
    numbers = dict.fromkeys(("value", "lower", "upper", "confidence", "delta"), _MAYBE_NUMBER)
    changed = {**_object(raw), **{name: _restored(_object(raw)[name]) for name in (*numbers, "details")}}
    _typed(changed, {**numbers, "name": _TEXT, "method": _TEXT, "details": (dict,), "assumptions": (list,)})
    changed["subject"], changed["adjacency"] = Subject(raw["subject"]), _maybe(Adjacency, raw["adjacency"])
    changed["assumptions"] = tuple(str(item) for item in raw["assumptions"])
    return Estimate(**changed)


def _object(raw: Any) -> dict[str, Any]:
    return _typed(raw, {})


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"slices must not be {type(value).__name__}")
    return value


def _slice(raw: Any) -> "Slice":
    from auditor.slices import Slice, SliceKind

    _typed(raw, {"kind": _TEXT, "label": _TEXT, "estimates": (list,), "confidence": _NUMBER})
    _typed(raw, dict.fromkeys(("n_member", "n_nonmember", "compared"), (int,)))
    estimates = tuple(_estimate(item) for item in raw["estimates"])
    if not estimates:
        raise ValueError(f"slice {raw['label']!r} has no estimates")
    return Slice(**{**raw, "kind": SliceKind(raw["kind"]), "estimates": estimates})


def _top_record(raw: Any) -> TopRecord:
    maybe = (str, type(None))
    _typed(raw, {"rank": (int,), "id": _TEXT, "group": maybe, "person": maybe, "odds": (*_NUMBER, str)})
    return TopRecord(**{**raw, "odds": float(_restored(raw["odds"]))})


def _check(raw: Any) -> Check:
    _typed(raw, {"name": _TEXT, "message": _TEXT, "details": (dict,)})
    return Check(**{**raw, "status": Status(raw["status"]), "details": _restored(raw["details"])})


def _claim(raw: Any) -> Claim:
    later = ("lower", "upper", "confidence")  # not there in the first releases
    restored = {name: _restored(_object(raw)[name]) for name in ("value", "delta")}
    changed = {**_object(raw), **restored, **{name: _restored(raw.get(name)) for name in later}}
    kinds = {
        **dict.fromkeys(later, _MAYBE_NUMBER),
        "metric": _TEXT,
        "value": _MAYBE_NUMBER,
        "delta": _MAYBE_NUMBER,
        "method": _TEXT,
        "proven": (bool,),
    }
    _typed(changed, {**kinds, "note": _TEXT})
    return Claim(**{**changed, "adjacency": Adjacency(raw["adjacency"])})


def _comparison(raw: Any) -> Comparison:
    _typed(raw, {"estimate": _TEXT, "reason": _TEXT})
    changed = {"verdict": _maybe(Verdict, raw["verdict"]), "subject": _maybe(Subject, raw.get("subject"))}
    return Comparison(**{**raw, **changed, "claim": _claim(raw["claim"])})


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
    return NamedCurve(**{**raw, "fpr": fpr, "tpr": _numbers("tpr", raw["tpr"], len(fpr))})


def _histogram(raw: Any) -> Histogram:
    _typed(raw, {"scale": _TEXT, "edges": (list,), "quantiles": (dict,)})
    edges = _numbers("edges", raw["edges"])
    changed: dict[str, Any] = {**raw, "edges": edges}
    for name in ("member", "nonmember", "member_fit", "nonmember_fit"):
        may_miss = name.endswith("_fit") and raw[name] is None
        changed[name] = None if may_miss else _numbers(name, raw[name], max(len(edges) - 1, 0))
    length = len(raw["quantiles"].get("probability", []))
    changed["quantiles"] = {name: _numbers(name, item, length) for name, item in raw["quantiles"].items()}
    return Histogram(**changed)
