"""A fact is a typed value: no branch outside `auditor.report` looks into a sentence."""

import ast
from pathlib import Path

import pytest

import auditor

PACKAGE = Path(auditor.__file__).parent
SENTENCES = {
    "assumption",
    "assumptions",
    "history",
    "message",
    "reason",
    "note",
    "notes",
    "method",
    "sentence",
}
LOOKS = {
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "find",
    "index",
    "split",
}
PATTERNS = {"match", "search", "fullmatch", "findall", "finditer", "split"}
# Modules that read words which others wrote, and why.
READERS = {
    "cli/console.py": "prints sentences on one line each",
    "cli/parsing.py": "words of the parser's library get a full stop",
    "cli/settings.py": "an error names the file that set the option it speaks of",
    "collectors/base/records.py": "words of an exception of another library",
    "collectors/tables/csv.py": "the same",
    "collectors/tables/sources.py": "the same",
    "core/facts.py": "an earlier release said in the history which attacks were run",
    "core/errors.py": "an extra, or a command to install it",
    "many/batches.py": "an object whose text is its address",
    "results/metrics.py": "an equation is shown beside the method that it belongs to",
    "results/reading.py": "a result of an earlier release said facts in words",
    "theory/gaussian.py": "a note is not said twice",
}


def _names(node):
    """The names and attributes in an expression."""
    parts = list(ast.walk(node))
    return {item.id for item in parts if isinstance(item, ast.Name)} | {
        item.attr for item in parts if isinstance(item, ast.Attribute)
    }


def looks(source):
    """The lines of a module that look into a sentence: a word in it, what it begins with, or a pattern."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            right, left = node.comparators[0], node.left
            named = isinstance(right, ast.Name | ast.Attribute) and _names(right) & (
                SENTENCES - {"assumptions", "history", "notes"}
            )
            constant = isinstance(left, ast.Constant) and isinstance(left.value, str) and " " in left.value
            if named or constant:
                yield node.lineno
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        receiver = node.func.value
        if node.func.attr in LOOKS and _names(receiver) & SENTENCES:
            yield node.lineno
        if (
            node.func.attr in PATTERNS
            and _names(receiver) & {"re"}
            and any(_names(item) & SENTENCES for item in node.args)
        ):
            yield node.lineno


def test_no_branch_looks_into_a_sentence():
    """Outside `report` no module asks whether a sentence holds or begins with words, but those that read others' words."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("report/") or name in READERS:
            continue
        assert not list(looks(path.read_text(encoding="utf-8"))), name


@pytest.mark.parametrize(
    "line",
    [
        "finite = any(FINITE in item for item in x) or 'training set' in text",
        "stopped = history[0].startswith('stopped after')",
        "if re.search('person', item.method): pass",
        "kind = reason.partition(':')[0]",
        "if WORD in row.message: pass",
    ],
)
def test_the_search_finds_them(line):
    """Each way to look into a sentence is found in a line that does so."""
    assert list(looks(line)) == [1]
