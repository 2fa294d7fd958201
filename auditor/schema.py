"""The JSON Schema (2020-12) of results: what other programs can rely on, described in the words of the types.

What a type says of its attributes is what the schema says of its keys. Objects that stand for a type take no other key;
`data`, `provenance` and `details` may grow within a schema version.
"""

from collections.abc import Mapping

from auditor._schema_parts import definitions
from auditor._schema_words import (
    COUNT,
    DELTA,
    INSIDE,
    NULL,
    TEXT,
    TRUTH,
    Schema,
    growing,
    listed,
    one_of,
    or_null,
    whole,
)
from auditor.choices import Adjacency
from auditor.instances.result import InstancesResult
from auditor.result import SCHEMA_VERSION, AuditResult
from auditor.runs.result import RunsResult
from auditor.values import Verdict

__all__ = ["instances_schema", "result_schema", "runs_schema"]


_NO_VERDICT: Schema = {
    "if": {"properties": {"comparisons": {"maxItems": 0}}},
    "then": {"properties": {"verdict": NULL}},
}


def result_schema() -> Schema:
    """Return the schema of `AuditResult.to_json`: of ``auditor audit --json``.

    >>> schema = result_schema()
    >>> schema["$defs"]["estimate"]["properties"]["subject"]["enum"]
    ['model', 'mechanism']
    """
    lists = {
        "estimates": "estimate",
        "claims": "claim",
        "comparisons": "comparison",
        "checks": "check",
        "slices": "slice",
        "top_records": "top_record",
        "curves": "curve",
        "histograms": "histogram",
    }
    own = {name: listed({"$ref": f"#/$defs/{item}"}) for name, item in lists.items()}
    found = whole(AuditResult, {**_frame(), "data": _data(), "provenance": _provenance(), **own})
    return _document("result", "The result of one audit", {**found, **_NO_VERDICT}, definitions())


def instances_schema() -> Schema:
    """Return the schema of `InstancesResult.to_json`: of ``auditor instances --json``.

    >>> instances_schema()["properties"]["kind"]
    {'const': 'instances'}
    """
    lists = {"estimates": "estimate", "claims": "claim", "comparisons": "comparison"}
    own = {name: listed({"$ref": f"#/$defs/{item}"}) for name, item in lists.items()}
    fields = {**_frame(), "data": _instances_data(), "provenance": _instances_provenance(), **own}
    found = whole(InstancesResult, fields)
    found["properties"] = {"kind": {"const": "instances"}, **found["properties"]}
    found["required"] = ["kind", *found["required"]]
    parts = {name: definitions()[name] for name in lists.values()}
    return _document(
        "instances",
        "The audit of several models of one training algorithm",
        {**found, **_NO_VERDICT},
        parts,
    )


def runs_schema() -> Schema:
    """Return the schema of `RunsResult.to_json`: of ``auditor runs --json``.

    >>> runs_schema()["properties"]["kind"]
    {'const': 'runs'}
    """
    lists = {"estimates": "estimate", "claims": "claim", "comparisons": "comparison", "checks": "check"}
    own = {name: listed({"$ref": f"#/$defs/{item}"}) for name, item in lists.items()}
    found = whole(RunsResult, {**_frame(), "data": _runs_data(), "provenance": _provenance(), **own})
    found["properties"] = {"kind": {"const": "runs"}, **found["properties"]}
    found["required"] = ["kind", *found["required"]]
    parts = {name: definitions()[name] for name in lists.values()}
    title = "The audit of many runs of one training algorithm"
    return _document("runs", title, {**found, **_NO_VERDICT}, parts)


def _document(kind: str, title: str, found: Schema, parts: Mapping[str, Schema]) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:privacy-auditor:{kind}:{SCHEMA_VERSION}",
        "title": f"{title}, by privacy-auditor (schema version {SCHEMA_VERSION})",
        **found,
        "$defs": dict(parts),
    }


def _frame() -> dict[str, Schema]:
    return {
        "schema_version": {
            "const": SCHEMA_VERSION,
            "description": "Of this schema; results of other versions differ.",
        },
        "verdict": or_null(one_of(Verdict)),
    }


# --- What was audited, and where it comes from -----------------------------------------------------


def _data() -> Schema:
    pair = {"type": "array", "minItems": 2, "maxItems": 2}
    text_or_null = or_null(TEXT)
    utility = {
        "type": "object",
        "properties": {"value": {"type": "number"}, "name": TEXT, "higher_is_better": TRUTH},
        "required": ["value", "name", "higher_is_better"],
        "additionalProperties": False,
    }
    known = {
        "model": (text_or_null, "Its name."),
        "n_member": (COUNT, "Audited members, in units."),
        "n_nonmember": (COUNT, "Audited non-members, in units."),
        "training_size": (COUNT, "Records that the model was trained on."),
        "delta": (DELTA, "At which epsilons are stated."),
        "confidence": (INSIDE, "Of every interval."),
        "members": ({"enum": ["sample", "census", "subset"]}, "What part of the training set was scored."),
        "split": ({"enum": ["unknown", "random", "bernoulli"]}, "How membership was decided, as declared."),
        "claim": (text_or_null, "What is claimed of the training algorithm, in words."),
        "scale": (TEXT, "What the losses are."),
        "saturated": (
            {**pair, "items": COUNT},
            "Losses from a probability of exactly 0 or 1: members, non-members.",
        ),
        "history": (listed(TEXT), "What was done to the losses, in order."),
    }
    later = {
        "strategy": (text_or_null, "What several audits of one way of training share."),
        "utility": (or_null(utility), "How good the model is at its task."),
        "stratified": (TRUTH, "Whether the random split was stratified."),
        "inclusion": (or_null(INSIDE), "Probability of inclusion, for a split by coins."),
        "unit": (TEXT, "What counts as one unit: a record or a person."),
        "records": ({**pair, "items": COUNT}, "Audited records: members, non-members."),
        "persons": (or_null({**pair, "items": COUNT}), "Persons among them, where records name persons."),
        "top_records": (text_or_null, "Why no records are named by id, where none are."),
        "effective": (
            or_null({**pair, "items": {"type": "number", "minimum": 0}}),
            "Of how many independent records the groups are worth, where records name persons.",
        ),
    }
    return growing({**known, **later}, required=list(known))


def _provenance() -> Schema:
    config = growing(
        {
            "file": (TEXT, "The configuration file."),
            "table": (TEXT, "The table in it."),
            "settings": ({"type": "object"}, "What was set there, and not on the command line."),
        },
        required=["file", "settings"],
    )
    known = {
        **_made_with(),
        "input_sha256": (
            {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "Of the losses as float64, members first.",
        ),
        "source": (or_null(TEXT), "Where the losses come from."),
        "command": (or_null(TEXT), "The command line, if there was one."),
        "config": (or_null(config), "What a configuration file set; not there where none did."),
    }
    return growing(known, required=[])


def _instances_data() -> Schema:
    counts = listed(or_null(COUNT))
    known = {
        "n_instances": ({"type": "integer", "minimum": 2}, "Models."),
        "n_member": (counts, "Audited members of each model."),
        "n_nonmember": (counts, "Audited non-members of each model."),
        "n_attacks": (COUNT, "Attacks of known error rate."),
        "delta": (DELTA, "At which epsilons are stated."),
        "confidence": (INSIDE, "Of every interval."),
        "split": ({"enum": ["unknown", "random", "bernoulli"]}, "How membership was decided, as declared."),
        "claim": (or_null(TEXT), "What is claimed of the training algorithm, in words."),
        "claim_delta": (or_null(DELTA), "Delta of a claim that states one."),
    }
    return growing(known, required=list(known))


def _instances_provenance() -> Schema:
    hashes = listed({"type": "string", "pattern": "^[0-9a-f]{64}$"})
    return growing({**_made_with(), "inputs_sha256": (hashes, "Of the losses of each model.")}, required=[])


def _runs_data() -> Schema:
    pair = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}
    known = {
        "n_with": (COUNT, "Runs with the canary."),
        "n_without": (COUNT, "Runs without it."),
        "judged": (pair, "Runs that are judged: with the canary, without."),
        "chosen_on": (or_null(pair), "Runs that chose the threshold, likewise; null where none did."),
        "rule": (
            {"enum": ["Split", "FixedThreshold", "threshold_runs", "RankGrid"]},
            "How the threshold was chosen.",
        ),
        "threshold": (
            or_null({"type": "number"}),
            "With the canary at or below it; null for a grid of ranks.",
        ),
        "true_positives": (or_null(COUNT), "Judged runs with the canary at or below the threshold."),
        "false_positives": (or_null(COUNT), "Judged runs without it at or below the threshold."),
        "certified": (TEXT, "Name of the estimate that judges the claim."),
        "delta": (DELTA, "At which epsilons are stated."),
        "confidence": (INSIDE, "Of every bound."),
        "adjacency": (one_of(Adjacency), "What the two kinds of runs differ by, as declared."),
        "claim": (or_null(TEXT), "What is claimed of the training algorithm, in words."),
        "claim_delta": (or_null(DELTA), "Delta of a claim that states one."),
        "history": (listed(TEXT), "Where the scores come from, in order."),
    }
    return growing(known, required=list(known))


def _made_with() -> dict[str, tuple[Schema, str]]:
    versions = {"type": "object", "additionalProperties": TEXT}
    return {
        "created": ({"type": "string", "format": "date-time"}, "When, in UTC."),
        "versions": (versions, "Of the packages that the numbers depend on."),
        "seed": (COUNT, "Of everything random."),
    }
