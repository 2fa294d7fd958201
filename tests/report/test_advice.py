"""Every check that is not fine says what to do."""

import ast
from pathlib import Path

import pytest

import auditor.checks
from auditor.checks import CHECKS, RUN_CHECKS
from auditor.core import Check, Status
from auditor.results import advice

ADVICE = {
    (spec.name, Status(status)): text
    for spec in CHECKS
    for status, text in spec.advice.items()
    if "/" not in status
}


def _named(call):
    return (
        isinstance(call.func, ast.Name) and call.func.id == "Check" and isinstance(call.args[0], ast.Constant)
    )


def _calls(node):
    return [item for item in ast.walk(node) if isinstance(item, ast.Call) and isinstance(item.func, ast.Name)]


def _statuses(name, functions):
    """The statuses that the functions which make a check of that name mention, with those that they call."""
    waiting = [
        node
        for node in functions.values()
        if any(_named(call) and call.args[0].value == name for call in _calls(node))
    ]
    seen = {}
    while waiting:
        node = waiting.pop()
        if seen.setdefault(node.name, node) is node:
            called = {call.func.id for call in _calls(node)} & functions.keys() - seen.keys()
            waiting += [functions[item] for item in called]
    return {
        Status[item.attr]
        for node in seen.values()
        for item in ast.walk(node)
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == "Status"
    }


def _possible():
    """Every name of a check with every status that its functions name: no fewer than can occur."""
    found = set()
    for path in Path(auditor.checks.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        names = {call.args[0].value for call in _calls(tree) if _named(call)} - set(RUN_CHECKS.names)
        found |= {(name, status) for name in names for status in _statuses(name, functions) - {Status.OK}}
    return found


def test_all_are_known():
    """There is advice for each check and status that can occur, and for no other."""
    assert _possible() == set(ADVICE)
    assert {name for name, _ in ADVICE} == set(CHECKS.names)


@pytest.mark.parametrize("pair", sorted(ADVICE))
def test_advice_is_whole_sentences(pair):
    """Advice starts with a capital and ends with a full stop."""
    text = ADVICE[pair]
    assert text[0].isupper()
    assert text.endswith(".")


def test_nothing_to_do():
    """A check that is fine asks for nothing."""
    assert advice(Check("shift", Status.OK, ""), {}) == ""


@pytest.mark.parametrize("status", [Status.FAIL, Status.WARN, Status.UNKNOWN])
def test_an_unknown_check(status):
    """A check of another version gets advice that fits any check."""
    assert advice(Check("novelty", status, ""), {}).endswith(".")


def test_a_declared_split():
    """Where the split was declared random, the declaration is to be confirmed, or cannot be true."""
    data = {"split": "random"}
    assert "Confirm the declared random split" in advice(Check("shift", Status.UNKNOWN, ""), data)
    assert "cannot be true" in advice(Check("shift", Status.FAIL, ""), data)


def test_a_mixture_is_not_asked_for_twice():
    """Where mixtures were fitted, the advice goes by whether they stand."""
    stands = Check("goodness_of_fit", Status.WARN, "", {"mixture": {"rejected": False}})
    falls = Check("goodness_of_fit", Status.WARN, "", {"mixture": {"rejected": True}})
    assert advice(stands, {}).startswith("Decide by the certified bound. The mixture")
    assert "neither normals nor mixtures" in advice(falls, {})
    assert "--mixture" in advice(Check("goodness_of_fit", Status.WARN, ""), {})


def test_own_advice_comes_first():
    """Advice that a check brings along is shown as it is."""
    assert advice(Check("ties", Status.WARN, "", {"advice": "Do this."}), {}) == "Do this."
