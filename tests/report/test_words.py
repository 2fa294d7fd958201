"""The words of what a user reads are those that the style sheet allows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHEET = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def forbidden(sheet):
    """What the third column of its table of words holds between quotation marks."""
    rows = (line.split("|") for line in sheet.split("\n## Words\n")[1].split("\n## ")[0].splitlines())
    return [word for row in rows if len(row) == 5 for word in re.findall('"(.+?)"', row[3])]


def sentences(module):
    """The strings of a module, one after another, but for its docstrings."""
    tree = ast.parse(module)
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and _is_text(node.body[0])
    }
    texts = (
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return "\n".join(node.value for node in texts if id(node) not in told)


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def shipped():
    """Each text that a user can read, with its file."""
    for room in ("report", "checks", "verdicts", "results"):
        for file in sorted((ROOT / "auditor" / room).rglob("*.*")):
            text = file.read_text(encoding="utf-8") if file.suffix in (".py", ".jinja", ".toml") else ""
            yield file.name, sentences(text) if file.suffix == ".py" else text


def found(words, text):
    """Which of the words a text has, whatever its line breaks and capitals."""
    flat = re.sub(r"[\s\\]+", " ", text).lower()
    return [word for word in words if re.search(rf"(?<!\w){re.escape(word.lower())}(?!\w)", flat)]


def test_no_text_has_a_word_that_is_not_written():
    """No template, text or sentence has a word of the third column, which holds more than a dozen."""
    words = forbidden(SHEET)
    assert len(words) > 12
    assert [(name, hit) for name, text in shipped() for hit in found(words, text)] == []


@pytest.mark.parametrize(
    ("module", "hits"),
    [
        ('x = "It hangs\\n  on a few records."', ["hangs on"]),
        ('def f():\n    """It hangs on."""\n    return f"{x} Hangs on {y}"', ["hangs on"]),
        ('def f():\n    """It hangs on."""\n    pass  # hangs on', []),
    ],
)
def test_a_word_would_be_found(module, hits):
    """A sentence that breaks off between two lines is looked through as well; a docstring and a comment are not."""
    assert found(["hangs on"], sentences(module)) == hits
