"""The schemas of the types that results are made of, one for each."""

import dataclasses
import types
import typing
from typing import Any

from auditor._schema_words import (
    COUNT,
    DELTA,
    INSIDE,
    NULL,
    NUMBER,
    RATE,
    TEXT,
    TRUTH,
    Schema,
    details,
    listed,
    one_of,
    or_null,
    rule,
    whole,
)
from auditor.choices import Adjacency
from auditor.result import Histogram, NamedCurve, TopRecord
from auditor.slices import Slice, SliceKind
from auditor.values import Check, Claim, Comparison, Estimate, Status, Subject, Verdict

__all__ = ["definitions"]


def definitions() -> dict[str, Schema]:
    """Return the schemas by their names under ``$defs``."""
    return {
        "estimate": _estimate(),
        "claim": whole(
            Claim,
            {
                **dict.fromkeys(("metric", "method", "note"), TEXT),
                **dict.fromkeys(("value", "lower", "upper"), or_null(NUMBER)),
                "delta": or_null(DELTA),
                "confidence": or_null(INSIDE),
                "adjacency": one_of(Adjacency),
                "proven": TRUTH,
            },
        ),
        "comparison": _comparison(),
        "check": whole(
            Check,
            {"name": TEXT, "status": one_of(Status), "message": TEXT, "details": details()},
        ),
        "slice": whole(
            Slice,
            {
                "kind": one_of(SliceKind),
                "label": TEXT,
                **dict.fromkeys(("n_member", "n_nonmember", "compared"), COUNT),
                "confidence": INSIDE,
                "estimates": {**listed({"$ref": "#/$defs/estimate"}), "minItems": 1},
            },
        ),
        "top_record": _top_record(),
        "curve": whole(
            NamedCurve,
            {
                "name": {
                    "type": "string",
                    "pattern": r"^(empirical|band_lower|band_upper|gaussian|mixture|claim|claimed_training|ranks\.[a-z_]+)$",
                },
                "label": TEXT,
                "fpr": listed(RATE),
                "tpr": listed(RATE),
            },
        ),
        "histogram": whole(
            Histogram,
            {
                "scale": TEXT,
                "edges": {**listed({"type": "number"}), "minItems": 2},
                **dict.fromkeys(("member", "nonmember"), listed(COUNT)),
                **dict.fromkeys(
                    ("member_fit", "nonmember_fit"), or_null(listed({"type": "number", "minimum": 0}))
                ),
                "quantiles": {"type": "object", "additionalProperties": listed(NUMBER)},
            },
        ),
    }  # fmt: skip


def _estimate() -> Schema:
    found = whole(
        Estimate,
        {
            "name": TEXT,
            "method": TEXT,
            **dict.fromkeys(("value", "lower", "upper"), or_null(NUMBER)),
            "confidence": or_null(INSIDE),
            "subject": one_of(Subject),
            "delta": or_null(DELTA),
            "adjacency": or_null(one_of(Adjacency)),
            "assumptions": listed(TEXT),
            "details": details({"reason": TEXT}),
        },
    )
    mechanism: dict[str, Schema] = {"subject": {"const": "mechanism"}, "value": {"not": NULL}}
    rules = [
        # A row that could not be computed says why.
        rule({"value": NULL}, {"details": {"required": ["reason"]}}),
        # Adjacency belongs to the training mechanism, and a number about it needs one.
        rule({"subject": {"const": "model"}}, {"adjacency": NULL}),
        rule(mechanism, {"adjacency": TEXT}),
        # No interval without its level: the value is then a point estimate.
        rule({"confidence": NULL}, {"lower": NULL, "upper": NULL}),
    ]
    return {**found, "allOf": rules}


def _comparison() -> Schema:
    fields: dict[str, Schema] = {
        "claim": {"$ref": "#/$defs/claim"},
        "estimate": TEXT,
        "verdict": or_null(one_of(Verdict)),
        "reason": TEXT,
        "subject": one_of(Subject),
    }
    # Only a number about the mechanism judges a claim on it.
    judging = rule({"verdict": TEXT}, {"subject": {"const": "mechanism"}})
    return {**whole(Comparison, fields), "allOf": [judging]}


def _top_record() -> Schema:
    hints = typing.get_type_hints(TopRecord)
    known: dict[str, Schema] = {
        "rank": {"type": "integer", "minimum": 1},
        "odds": {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]},
    }
    fields: dict[str, Schema] = {
        item.name: known.get(item.name, _of_hint(hints[item.name])) for item in dataclasses.fields(TopRecord)
    }
    return whole(TopRecord, fields)


def _of_hint(hint: Any) -> Schema:
    if isinstance(hint, types.UnionType):
        return {"anyOf": [_of_hint(part) for part in typing.get_args(hint)]}
    return {str: TEXT, bool: TRUTH, int: {"type": "integer"}, float: NUMBER, types.NoneType: NULL}[hint]
