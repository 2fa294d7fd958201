"""The summary for a pull request: what it holds, and that foreign text in it stays text."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from auditor.core import clean
from auditor.report import escaped, markdown

# Another implementation of the language, with the tables and the strikethrough of GitHub; HTML is let through.
_OTHER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self.rows = set(), "", []

    def handle_starttag(self, tag, attrs):
        self.tags.add((tag, *(name for name, _ in attrs if name != "style")))
        if tag == "tr":
            self.rows.append(0)
        if tag == "td":
            self.rows[-1] += 1

    def handle_data(self, data):
        self.text += data


def page(markdown):
    """Return the page by another implementation."""
    found = _Page()
    found.feed(_OTHER.render(markdown))
    return found


def visible(text):
    """Text without the marks that only keep references apart."""
    return re.sub(r"\s+", " ", text.replace("\u200b", "")).strip()


FRAMES = ("{}", "- **word**: {}", "## Audit: {}", "| a | b |\n| - | - |\n| {} | c |")
SIGNS = "ab1 \n\\`*_{}[]()#+-.!|<>~&@:/$^='\";"
TRICKS = [
    "<script>alert(1)</script>",
    "[click](http://evil.example)",
    "![](http://evil.example/x.png)",
    "a | b || c \\| d",
    "`code` ``more``",
    "**bold** _it_ __b__ ~~gone~~ $x^2$",
    "# heading",
    "- list",
    "1. list",
    "+ list\n- list\n> quote",
    "---",
    "a\n\n<!-- b",
    "&lt;b&gt; &#60;b&#62;",
    "\\<b\\>",
    "<http://evil.example>",
    "</details>",
    "[a]: http://evil.example",
    "x\\",
    "C #",
    "x ###",
    "###",
    "=====",
    "1986\\. a",
    "1) a",
    "-",
    "> a",
    "~~~",
    "&copy; &#35; &",
    "a\u00a0\u3000b",
    "a\x00b\u202ec",
]


@pytest.mark.parametrize("text", TRICKS)
@pytest.mark.parametrize("frame", FRAMES)
def test_foreign_text_stays_text(text, frame):
    """In a paragraph, a list, a heading and a table, another implementation shows exactly the text, and no mark-up."""
    plain, found = page(frame.format("word")), page(frame.format(escaped(text)))
    assert found.tags == plain.tags
    assert found.rows == plain.rows
    assert visible(found.text) == visible(plain.text.replace("word", visible(clean(text)), 1)) or (
        frame.startswith("- ") and visible(clean(text)) in visible(found.text)
    )


@given(st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(SIGNS)), max_size=40))
def test_any_text_stays_text(text):
    """Whatever the text, a heading, a paragraph, a list item and a cell of a table show it, and it makes no mark-up."""
    shown = visible(clean(text)).replace("\xa0", " ")
    for frame in FRAMES:
        found, plain = page(frame.format(escaped(text) or " ")), page(frame.format("word"))
        assert found.tags <= plain.tags
        assert len(found.rows) == len(plain.rows)
        assert shown in visible(found.text.replace("\xa0", " ")) or "\u200b" in text


@pytest.mark.parametrize(
    "text",
    [
        "@everyone",
        "a@b.example",
        "see #12 and user/repo#3",
        "!34",
        "http://evil.example",
        "https://evil.example",
        "www.evil.example",
        "WWW.evil.example",
        "ftp://evil.example",
        ":smile:",
    ],
)
def test_nobody_is_mentioned_and_nothing_linked(text):
    """Text that GitHub turns into mentions, references and links without any mark-up is held apart by an empty sign."""
    shown = page(escaped(text)).text
    assert visible(shown) == text
    assert not re.search(r"@\w|#\w|!\w|://|www\.|:\w", shown, re.IGNORECASE)


def test_a_summary_tells_each_gate(refuted):
    """Each gate stands with its outcome and its sentence, and the source of the losses with them."""
    gates = ["verdict == refuted", "auc > 0.9", "epsilon_star.mixture > 1"]
    shown = visible(page(markdown(refuted.with_policy(gates=gates))).text)
    for words in ("✕ failed: The verdict is refuted", "✓ passed: auc is 0.72", "losses.parquet"):
        assert words in shown
    assert "? not evaluable: This audit has no epsilon_star.mixture" in shown


def test_the_leading_number_comes_first(overfitted, refuted, not_evaluable):
    """The table starts with the certified bound; a number without a value says why."""
    for result in (overfitted, refuted):
        first = re.search(r":-- \|\n\| (.*?) \|", markdown(result))[1]
        assert visible(page(first).text) == "Certified epsilon bound"
    told = visible(page(markdown(not_evaluable)).text)
    assert "no value: it was not declared how membership was decided" in told
