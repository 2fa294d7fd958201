"""The texts of the repository are written in the English of scikit-learn's and SciPy's documentation."""

import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCANNED = ("auditor", "docs", "tests", "README.md")
ARCHAIC = {
    r"\blikewise\b": "Repeat the word.",
    r"\banew\b": 'Write "again".',
    r"\bmend(s|ed|ing)?\b": 'Write "fix" or "correct".',
    r"\bwhoever\b": "Name the person: the user, an attacker.",
    r"(?<![\w\"'{\[/=.-])persons(?![\w\"'}\]:=.])": 'Write "people"; an option or a key goes in backticks.',
    r"\btold\b(?!:)": 'Write "reported", "stated" or "distinguished".',
    r"\basked\b": 'Write "requested", "chosen" or "queried".',
    r"\bof old\b": "Name the version.",
    r"\b(hangs?|hung) on\b": 'Write "depends on".',
    r"\bnull (where|if|when|otherwise)\b|\bor null\b|; null\b": 'Write "None".',
    r"\bthe audit had room\b|\bdeserves? trust\b": "Name the conclusion, or the numbers to rely on.",
    r"\"\"\"What ": "Begin with a noun, or with what the function returns.",
    r"\bReturn what\b": "Name the returned value.",
}
CODE = re.compile(r"```.*?```|``?[^`\n]+``?|\{[{%].*?[}%]\}", re.DOTALL)


def sentences(text):
    """The comments, docstrings and sentences of a Python file; a sentence may be written in several strings."""
    strings, whole = [], ""  # from Python 3.12 on, an f-string is several tokens
    for item in tokenize.generate_tokens(iter(text.splitlines(keepends=True)).__next__):
        kind = tokenize.tok_name[item.type]
        if kind in ("STRING", "COMMENT"):
            strings.append(item.string)
        elif kind == "FSTRING_END":
            strings.append(f'f"{whole}"')
            whole = ""
        elif kind == "FSTRING_MIDDLE":
            whole += item.string
    strings = "\n".join(item for item in strings if " " in item)
    return re.sub(r'"\n[a-z]*"(?!"")', "", strings)


def archaic(text):
    """The archaic words in a text, whatever its capitals and line breaks."""
    prose = re.sub(r"(\s|\\n)+", " ", CODE.sub(" ", text))
    return [match[0] for pattern in ARCHAIC for match in re.finditer(pattern, prose, re.IGNORECASE)]


def texts():
    """The text of each file, with its path."""
    for top in SCANNED:
        for file in (ROOT / top, *sorted((ROOT / top).rglob("*"))):
            name = file.relative_to(ROOT).as_posix()
            if not file.is_file() or name.startswith("tests/data/") or file == Path(__file__):
                continue
            if file.suffix in (".py", ".jinja", ".toml", ".md"):
                text = file.read_text(encoding="utf-8")
                yield name, sentences(text) if file.suffix == ".py" else text


def test_no_text_has_an_archaic_word():
    """No docstring, comment, message, template, text or page has a word of the list."""
    assert [(name, hit) for name, text in texts() for hit in archaic(text)] == []


@pytest.mark.parametrize(
    ("module", "hits"),
    [
        ('x = "It hangs\\n" + f"on {y}, and hangs\\n  on a few."', ["hangs on", "hangs on"]),
        ('def f():\n    """What it returns."""\n    return 1  # Likewise', ['"""What ', "Likewise"]),
        ("told, asked = persons[0]['persons'], call(persons=1)  # ``told`` of persons", ["persons"]),
    ],
)
def test_an_archaic_word_would_be_found(module, hits):
    """Comments and broken sentences are searched; names, keys and code in backticks are not."""
    assert sorted(archaic(sentences(module))) == sorted(hits)
