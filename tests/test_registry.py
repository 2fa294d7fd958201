"""A registered entry is everywhere: one entry for an estimator and one for a check, and every output has both."""

import contextlib
import json

import jsonschema
import numpy as np
import pytest

import auditor
from auditor.checks import CHECKS
from auditor.core import Check, CheckSpec, Equation, Estimate, Losses, Metric, Status, Subject
from auditor.estimators import ESTIMATORS, Estimator
from auditor.report import audit_text, glossary, render
from auditor.results import METRICS, describe, schema

METRIC = Metric(
    "made_up",
    "Made-up leak",
    "How much leaks by a measure that nobody has.",
    equations=(Equation("m = 2", "Nobody 2026"),),
    term="made_up",
    lower_bound=True,
    main=True,
    hint="a measure that nobody has",
)
SPEC = CheckSpec(
    name="made_up_check",
    title="Would anybody make this up?",
    advice={"warn": "Ask who made this up."},
    run=lambda evidence: Check(
        "made_up_check", Status.WARN, f"{evidence.losses.n_member} records were seen."
    ),
    hint="whether somebody made it up",
    term="made_up_check",
)
GATES = ("made_up > 1", "made_up > 3", "checks.made_up_check == fail")


def estimates(evidence):
    """A row of the made-up estimator."""
    method, delta = "by decree, Nobody 2026", evidence.setting.delta
    return (
        Estimate("made_up", 2.0, 2.0, None, 0.95, method, Subject.MODEL, delta, details={"ceiling": 7.0}),
    )


@contextlib.contextmanager
def entered(registry, entry):
    """Add an entry for the time of a ``with`` block."""
    before = dict(registry._entries)
    registry._entries[entry.name] = entry
    yield
    registry._entries = before


@pytest.fixture
def registered():
    """Register both for the time of a test."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(entered(METRICS, METRIC))
        stack.enter_context(entered(ESTIMATORS, Estimator("made up", estimates)))
        stack.enter_context(entered(CHECKS, SPEC))
        yield


@pytest.fixture
def result(registered, rng):  # noqa: ARG001
    """An audit with both."""
    return audited(rng)


def audited(rng, **more):
    """Audit losses with a leak."""
    return auditor.audit(Losses(member=rng.normal(-1, 1, 200), nonmember=rng.normal(0, 1, 200)), **more)


def test_json(result, tmp_path):
    """JSON has the row and the check, and they are read again."""
    result.to_json(tmp_path / "result.json")
    again = auditor.read_result(tmp_path / "result.json")
    assert again.estimate("made_up").value == 2.0
    assert again.check("made_up_check").status is Status.WARN


def test_schema(result):
    """The schema names both, and accepts the result."""
    made = schema()
    for part, name in (("Estimate", "made_up"), ("Check", "made_up_check")):
        assert name in made["$defs"][part]["properties"]["name"]["examples"]
    jsonschema.Draft202012Validator(made).validate(json.loads(result.to_json()))


def test_page(result):
    """The page shows the number with its equation, in the picture of the epsilons too, and the check with its advice."""
    page = render([result])
    for text in (
        METRIC.title,
        METRIC.sentence,
        "m = 2",
        SPEC.title,
        SPEC.advice["warn"],
        "200 records were seen",
    ):
        assert text in page
    terms = {item["key"]: (item["name"], item["text"]) for item in glossary()}
    assert terms["made_up"] == (METRIC.title, METRIC.sentence)
    assert terms["made_up_check"] == ("Made up check", SPEC.title)
    assert "Made-up leak at least 2 (certified at 95% confidence" in page


def test_terminal_and_summaries(result):
    """The terminal, the Markdown summary, the card and JUnit have both."""
    for text in (audit_text(result), result.to_markdown(), result._repr_html_(), result.to_junit()):
        assert "Made-up leak" in text
        assert "200 records were seen." in text
    assert SPEC.advice["warn"] in result.to_markdown()


def test_gates(result):
    """A gate can name both, and one above the ceiling of a lower bound does not pass."""
    outcomes = auditor.check_gates(result, GATES)
    assert [item.code.name for item in outcomes] == ["FAILED", "DONE", "DONE"]
    assert "about this model" in outcomes[0].sentence
    (far,) = auditor.check_gates(result, "made_up > 8")
    assert "its ceiling is 7" in far.sentence


def test_a_gate_on_what_an_audit_may_not_have(registered, rng):  # noqa: ARG001
    """Where an entry says why an audit may not have it, a gate says so instead of calling it a slip."""
    absent = Metric("rarely", "Rare", absent="nobody requested it")
    unmade = CheckSpec("seldom", "Is it?", {}, lambda _: None, absent="nobody looked")
    with entered(METRICS, absent), entered(CHECKS, unmade):
        found = auditor.check_gates(audited(rng), ["rarely > 1", "checks.seldom == fail"])
    assert "This audit has no rarely: nobody requested it" in found[0].sentence
    assert "The check seldom was not made: nobody looked" in found[1].sentence


def test_sarif(result):
    """SARIF has a rule and a result for the check, in its own words, and a result for the gate on the number."""
    run = json.loads(result.to_sarif(gates=GATES))["runs"][0]
    rules = {item["id"]: item["shortDescription"]["text"] for item in run["tool"]["driver"]["rules"]}
    assert SPEC.title in rules["check/made-up-check"]
    words = [item["message"]["text"] for item in run["results"]]
    assert any(text.startswith("made_up is 2") for text in words)
    assert any(text.endswith(SPEC.advice["warn"]) for text in words)


def test_compare(result, rng):
    """Audits can be compared by the number, as a lower bound, and the comparison names the check."""
    comparison = auditor.comparison.compare_audits([result, audited(rng, model="another")], measure="made_up")
    assert [item.value for item in comparison.measurements] == [2.0, 2.0]
    page = comparison.to_html()
    assert "Made-up leak" in page
    assert "certified lower bounds" in page
    assert "made up check" in page


def test_a_void_check_takes_the_meaning(result, rng):
    """A check that voids the result, once failed, keeps gates from passing."""
    void = CheckSpec("void", "Is it?", {}, lambda _: Check("void", Status.FAIL, "No."), voids_result=True)
    assert auditor.check_gates(result, "made_up > 3")[0].passed
    with entered(CHECKS, void):
        assert not auditor.check_gates(audited(rng), "made_up > 3")[0].passed


def test_entries_agree_with_results(rng):
    """Every number of an audit, of several models, of many runs and of labels has an entry that says what it is about."""
    losses = [Losses(member=rng.normal(-1, 1, 200), nonmember=rng.normal(0, 1, 200)) for _ in range(3)]
    found = (
        auditor.audit(losses[0], split=auditor.RandomSplit(), mixture=auditor.Mixture(max_components=2)),
        auditor.audit_instances(losses, delta=1e-3, split=auditor.RandomSplit()),
        auditor.audit_runs(losses[0], delta=1e-3),
        auditor.audit_labels(
            np.asarray, (np.full((10, 2), 0.5), np.arange(10) % 2), probabilities=np.full((10, 2), 0.5)
        ),
    )
    for estimate in (item for result in found for item in result.estimates):
        metric = describe(estimate)
        assert (metric.subject, bool(metric.title)) == (estimate.subject, True)
        assert metric.lower_bound is (estimate.name.startswith("epsilon_bound."))
