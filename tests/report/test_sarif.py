"""SARIF: what code hosts find in it, that it keeps the specification's rules, and that findings keep their identity."""

import dataclasses
import json
import re
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, strategies as st
from report.conftest import changed

from auditor.core import Check, Status, Verdict
from auditor.report import sarif
from auditor.verdicts import check_gates

# From the schema of SARIF 2.1.0: what an object must and may have, of what is written here.
OBJECTS = {
    "run": ({"tool"}, {"invocations", "artifacts", "results", "columnKind", "properties"}),
    "driver": ({"name"}, {"fullName", "version", "rules"}),
    "rule": (
        {"id"},
        {"name", "shortDescription", "fullDescription", "help", "defaultConfiguration", "properties"},
    ),
    "invocation": ({"executionSuccessful"}, {"exitCode", "exitCodeDescription", "endTimeUtc"}),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations", "partialFingerprints"}),
    "location": (set(), {"physicalLocation", "logicalLocations"}),
    "artifact": (set(), {"location"}),
}
UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # 3.9 of the specification
REFERENCE = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+")  # RFC 3986, without a scheme, a root or a query


def keeps(kind, item):
    """Assert that an object has what it must have and nothing that it may not have."""
    required, optional = OBJECTS[kind]
    assert required <= set(item) <= required | optional


def read(result, gates=()):
    """The one run of a log, once it keeps the rules."""
    log = json.loads(sarif(result.with_policy(gates=gates)))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    keeps("run", run)
    driver = run["tool"]["driver"]
    keeps("driver", driver)
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        keeps("rule", rule)
        assert rule["help"]["text"]
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
    for item in run["results"]:
        keeps("result", item)
        assert ids[item["ruleIndex"]] == item["ruleId"]
        assert item["level"] in {"none", "note", "warning", "error"}
        assert item["message"]["text"]
        assert all(isinstance(mark, str) for mark in item["partialFingerprints"].values())
        for place in item["locations"]:
            keeps("location", place)
            physical = place.get("physicalLocation")
            if physical is not None:
                found = physical["artifactLocation"]
                assert run["artifacts"][found["index"]]["location"]["uri"] == found["uri"]
                assert REFERENCE.fullmatch(found["uri"])
                assert not urlsplit(found["uri"]).scheme
                assert not found["uri"].startswith("/")
                assert ".." not in found["uri"].split("/")
                assert physical["region"]["startLine"] == 1
    (invocation,) = run["invocations"]
    keeps("invocation", invocation)
    assert UTC_TIME.fullmatch(invocation.get("endTimeUtc", "2000-01-01T00:00:00Z"))
    assert len({json.dumps(item["partialFingerprints"]) for item in run["results"]}) == len(run["results"])
    return run


def found(result, gates=()):
    """The findings as pairs of rule and level."""
    return [(item["ruleId"], item["level"]) for item in read(result, gates)["results"]]


def test_what_somebody_has_to_look_at_is_a_finding(refuted):
    """A refuted claim, gates that stop, and checks that are not fine are findings; what passed is none."""
    gates = ["auc > 0.6", "auc > 0.9", "epsilon_star.mixture > 1"]
    assert found(refuted, gates) == [
        ("claim/refuted", "error"),
        ("gate/failed", "error"),
        ("gate/not-evaluable", "error"),
        ("check/shift", "note"),
        ("check/power", "error"),
        ("check/goodness-of-fit", "warning"),
    ]
    messages = [item["message"]["text"] for item in read(refuted, gates)["results"]]
    assert messages[1] == check_gates(refuted, gates)[0].sentence
    assert "31 records are too few" in messages[4]


def test_a_claim_that_was_not_judged_is_a_warning(not_evaluable, overfitted):
    """A claim without an outcome is something to look at; no claim and a claim that stands are not."""
    assert ("claim/undecided", "warning") in found(not_evaluable)
    assert not [rule for rule, _ in found(overfitted) if rule.startswith("claim")]
    stands = dataclasses.replace(not_evaluable, verdict=Verdict.NOT_REFUTED)
    assert not [rule for rule, _ in found(stands) if rule.startswith("claim")]


@pytest.mark.parametrize(
    ("gates", "code"), [((), 0), (["auc > 0.6"], 1), (["epsilon_star.mixture > 1"], 3), (["auc > 0.9"], 0)]
)
def test_the_exit_code_is_told(overfitted, gates, code):
    """The invocation holds the exit code; nothing to look at is an empty list, which is not the same as none (3.14.23)."""
    run = read(dataclasses.replace(overfitted, checks=()), gates)
    assert run["invocations"][0]["exitCode"] == code
    assert (run["results"] == []) == (code == 0)


def test_fingerprints_outlive_the_numbers(refuted):
    """Other numbers and another time keep the fingerprints; another model, gate or file changes them."""

    def marks(result, gates):
        return [item["partialFingerprints"] for item in read(result, gates)["results"]]

    first = marks(refuted, ["auc > 0.6"])
    other = dataclasses.replace(
        changed(refuted, "auc", value=0.9, lower=0.8, upper=0.99),
        provenance={**refuted.provenance, "created": "2027-01-01T00:00:00+00:00", "seed": 7},
    )
    assert marks(other, ["auc > 0.6"]) == first
    assert marks(other, ["auc > 0.61"])[1] != first[1]
    renamed = dataclasses.replace(refuted, data={**refuted.data, "model": "another"})
    assert not [mark for mark in marks(renamed, ["auc > 0.6"]) if mark in first]


@pytest.mark.parametrize(
    ("source", "uris"),
    [
        ("losses.parquet", ["losses.parquet"]),
        ("data/losses 1.csv", ["data/losses%201.csv"]),
        ("./data//losses.csv", ["data/losses.csv"]),
        ("Verluste für uns.csv", ["Verluste%20f%C3%BCr%20uns.csv"]),
        ("in.csv (members), out.csv (non-members)", ["in.csv", "out.csv"]),
        ("in.csv (members), in.csv (non-members)", ["in.csv"]),
        ("/home/someone/secret/losses.csv", ["losses.csv"]),
        ("C:\\Users\\someone\\losses.csv", ["losses.csv"]),
        ("../../etc/passwd", ["passwd"]),
        ("..", ["losses"]),
        ("javascript:alert(1)", ["javascript%3Aalert%281%29"]),
        ("http://evil.example/x", ["http%3A/evil.example/x"]),
        ("//evil.example/x", ["x"]),
        ("a?b#c%20", ["a%3Fb%23c%2520"]),
        (None, []),
        ("  ", []),
    ],
)
def test_files_are_relative_references(refuted, source, uris):
    """Files have relative, percent-encoded references; of a path from a root, only the name."""
    run = read(dataclasses.replace(refuted, provenance={"source": source}))
    assert [item["location"]["uri"] for item in run["artifacts"]] == uris
    places = {
        item["locations"][0].get("physicalLocation", {}).get("artifactLocation", {}).get("uri")
        for item in run["results"]
    }
    assert places == {uris[0] if uris else None}


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_stays_text(overfitted, text):
    """Whatever names a result holds, the log keeps the rules, is UTF-8, and the file's name can be had back."""
    made = dataclasses.replace(
        overfitted,
        checks=(Check(text, Status.FAIL, text),),
        data={"model": text},
        provenance={"source": text, "created": text},
    )
    run = read(made)
    sarif(made).encode()
    for item in run["artifacts"]:
        assert unquote(item["location"]["uri"], errors="strict")
