"""JUnit XML: what build servers find in it, that it keeps the schema's rules, and that foreign text stays text."""

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from auditor.core import Check, Status, Verdict
from auditor.report import junit

# The rules of Jenkins' schema (xunit-plugin, junit-10.xsd): children, and required and allowed attributes.
RULES = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name"},
        {"classname", "time", "group"},
    ),
    **dict.fromkeys(("failure", "error", "skipped"), (set(), set(), {"type", "message"})),
    **dict.fromkeys(("system-out", "system-err"), (set(), set(), set())),
}


def read(result, gates=()):
    """The document of a result, once it keeps the rules."""
    root = ET.fromstring(junit(result.with_policy(gates=gates)))  # noqa: S314 - written here
    assert root.tag == "testsuites"
    for element in root.iter():
        children, required, allowed = RULES[element.tag]
        assert {child.tag for child in element} <= children
        assert required <= set(element.attrib) <= required | allowed
    suite = root.find("testsuite")
    for name, tag in (("tests", None), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counted = sum(tag is None or case.find(tag) is not None for case in suite.iter("testcase"))
        assert suite.get(name) == str(counted)
    return root


def outcomes(result, gates=()):
    """Return the outcome of each test, by class and name."""
    found = {}
    for case in read(result, gates).iter("testcase"):
        kinds = [child.tag for child in case if child.tag != "system-out"]
        assert len(kinds) <= 1
        key = case.get("classname").removeprefix("auditor."), case.get("name")
        assert key not in found
        found[key] = kinds[0] if kinds else "passed"
    return found


def test_a_test_for_the_claim_each_gate_and_each_check(refuted):
    """There is one test for the claim, each gate and each check, and it fails, errs, is skipped or passes as it should."""
    found = outcomes(refuted, ["auc > 0.6", "auc > 0.9", "epsilon_star.mixture > 1"])
    assert found == {
        ("claim", "claim"): "failure",
        ("gates", "auc > 0.6"): "failure",
        ("gates", "auc > 0.9"): "passed",
        ("gates", "epsilon_star.mixture > 1"): "error",
        **{("checks", check.name): "passed" for check in refuted.checks},
        ("checks", "shift"): "skipped",
        ("checks", "power"): "failure",
    }


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (None, "skipped"),
        (Verdict.REFUTED, "failure"),
        (Verdict.NOT_REFUTED, "passed"),
        (Verdict.INCONCLUSIVE, "error"),
        (Verdict.NOT_EVALUABLE, "error"),
    ],
)
def test_the_claim(not_evaluable, verdict, expected):
    """Only a claim that was judged and stood passes; one that could not be judged is an error."""
    assert outcomes(dataclasses.replace(not_evaluable, verdict=verdict))["claim", "claim"] == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [("ok", "passed"), ("warn", "passed"), ("fail", "failure"), ("unknown", "skipped")],
)
def test_checks(overfitted, status, expected):
    """A failed check is a failure, one that could not be made is skipped, and a warning passes with its words."""
    result = dataclasses.replace(overfitted, checks=(Check("ties", Status(status), "many ties"),))
    assert outcomes(result)["checks", "ties"] == expected
    case = next(case for case in read(result).iter("testcase") if case.get("name") == "ties")
    told = case.findtext("system-out")
    assert told.startswith("Warning: Many ties.") if status == "warn" else told is None


def test_a_failure_says_why(refuted):
    """The message of a failure is the sentence of the gate; the suite's output holds the decision, the verdict and the main numbers."""
    root = read(refuted, ["auc > 0.6"])
    failure = next(case for case in root.iter("testcase") if case.get("name") == "auc > 0.6").find("failure")
    assert failure.get("message") == failure.text
    assert failure.text.startswith("auc is 0.72 (")
    output = root.find("testsuite/system-out").text
    assert "Training algorithm bound: 1.31 (certified at 95% confidence" in output
    assert output.startswith(
        "Do not release. The claim is refuted: epsilon 1 claimed, at least 1.31 measured (delta 1e-5, 95% confidence). Also failed: “auc > 0.6”."
    )
    assert "\nClaim refuted. " in output


@pytest.mark.parametrize(
    ("created", "told"),
    [
        ("2026-02-03T10:11:12+00:00", "2026-02-03T10:11:12"),
        ("2026-02-03T10:11:12.5+02:00", "2026-02-03T08:11:12"),
        *((odd, None) for odd in (None, "yesterday", 7, "9999-12-31T23:59:59-12:00")),
    ],
)
def test_the_time_is_the_audits(overfitted, created, told):
    """The timestamp is when the audit was made, in UTC and without a zone; without one there is none."""
    made = dataclasses.replace(overfitted, provenance={"created": created})
    assert read(made).find("testsuite").get("timestamp") == told


ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_stays_text(overfitted, text):
    """Whatever a check is called and says, the document is well-formed, legal XML 1.0 and shows it as text."""
    made = dataclasses.replace(
        overfitted, checks=(Check(text, Status.FAIL, text),), data={"model": text, "split": text}
    )
    assert not ILLEGAL.search(junit(made))
    assert len(list(read(made).iter("testcase"))) == 2
