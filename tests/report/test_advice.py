"""Every check that is not fine says what to do."""

import ast
from pathlib import Path

import pytest

import auditor.checks
from auditor.report.advice import ADVICE, advice
from auditor.values import Check, Status


def _named(call):
    return (
        isinstance(call.func, ast.Name) and call.func.id == "Check" and isinstance(call.args[0], ast.Constant)
    )


def _possible():
    """Every name of a check with every status that its module names: no fewer than can occur."""
    found = set()
    for path in Path(auditor.checks.__file__).parent.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {node.args[0].value for node in nodes if isinstance(node, ast.Call) and _named(node)}
        statuses = {
            Status[node.attr]
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "Status"
        }
        found |= {(name, status) for name in names for status in statuses - {Status.OK}}
    return found


def test_all_are_known():
    """There is advice for each check and status that can occur, and for no other."""
    assert _possible() == set(ADVICE)
    assert {name for name, _ in ADVICE} == set(auditor.checks.__all__)


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
