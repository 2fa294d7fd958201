"""The summary for a pull request: what it holds, and that foreign text in it stays text."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from auditor.core import clean
from auditor.report import escaped, markdown
from auditor.verdicts import check_gates

# Another implementation of the language, with the tables and the strikethrough of GitHub; HTML is let through.
_OTHER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_OWN = {
    "h2",
    "h3",
    "p",
    "strong",
    "em",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
}


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
    """What another implementation makes of it."""
    found = _Page()
    found.feed(_OTHER.render(markdown))
    return found


def visible(text):
    """Text without the marks that only keep references apart."""
    return re.sub(r"\s+", " ", text.replace("\u200b", "")).strip()


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
@pytest.mark.parametrize(
    "frame", ["{}", "- **word**: {}", "## Audit: {}", "| a | b |\n| - | - |\n| {} | c |"]
)
def test_foreign_text_stays_text(text, frame):
    """In a paragraph, a list, a heading and a table, another implementation shows exactly the text, and no mark-up."""
    plain, found = page(frame.format("word")), page(frame.format(escaped(text)))
    assert found.tags == plain.tags
    assert found.rows == plain.rows
    assert visible(found.text) == visible(plain.text.replace("word", visible(clean(text)), 1)) or (
        frame.startswith("- ") and visible(clean(text)) in visible(found.text)
    )


SIGNS = st.text(st.sampled_from("ab1 \n\\`*_{}[]()#+-.!|<>~&@:/$^='\";"), max_size=20)


@given(SIGNS)
def test_signs_stay_signs(text):
    """Whatever the signs of mark-up and their order, a heading, a paragraph and a list item show them as they are."""
    for frame, tags in (("## {}", {("h2",)}), ("{}", {("p",)}), ("- {}", {("ul",), ("li",)})):
        found = page(frame.format(escaped(text)))
        assert found.tags <= tags
        assert visible(found.text) == visible(clean(text))


@given(st.one_of(st.text(st.characters(codec="utf-8"), max_size=60), SIGNS))
def test_any_text_stays_text(text):
    """Whatever the text, a table cell shows it and keeps its place in the table."""
    found = page(f"| a | b |\n| - | - |\n| {escaped(text) or ' '} | c |")
    assert found.tags == {("table",), ("thead",), ("tbody",), ("tr",), ("th",), ("td",)}
    assert found.rows == [0, 2]
    shown = visible(found.text.replace("\xa0", " "))
    assert shown == visible(f"a b {clean(text)} c".replace("\xa0", " ")) or "\u200b" in text


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
    """What GitHub turns into mentions, references and links without any mark-up is held apart by an empty sign."""
    shown = page(escaped(text)).text
    assert visible(shown) == text
    assert not re.search(r"@\w|#\w|!\w|://|www\.|:\w", shown, re.IGNORECASE)


def test_a_very_long_text_is_cut():
    """One foreign text cannot push the rest out of sight."""
    assert len(escaped("x" * 10_000)) < 600


def test_a_summary_holds_what_a_reviewer_needs(refuted):
    """The verdict, the gates, each main number with what it is about and its confidence, and the checks to read."""
    gates = check_gates(refuted, ["verdict == refuted", "auc > 0.9", "epsilon_star.mixture > 1"])
    shown = page(markdown(refuted, gates=gates))
    for words in (
        "Privacy audit: sentiment-dp",
        "Claim refuted",
        "at least 1.31",
        "✕ failed: The verdict is refuted",
        "✓ passed: auc is 0.72",
        "? not evaluable: This audit has no epsilon_star.mixture",
        "the training algorithm (replace-one)",
        "at 95% confidence",
        "point estimate",
        "Failed: Power. 31 records are too few.",
        "Warning: Goodness of fit.",
        "losses.parquet",
        "1e-5",
    ):
        assert words in visible(shown.text), words
    assert {tag for tag, *_ in shown.tags} <= _OWN


def test_the_first_lines_say_what_to_do(overfitted, refuted):
    """First the gates that stop the pipeline; then, without a claim what was found, and with one the verdict on it."""
    gates = check_gates(overfitted, ["auc > 0.1", "auc > 0.9"])
    stopped = "1 of 2 gates stops the pipeline: it failed."
    for result, words in (
        (overfitted, [stopped, "Leakage found.", "No claim to judge."]),
        (refuted, [stopped, "Claim refuted.", "Leakage found."]),
    ):
        told = visible(page(markdown(result, gates=gates)).text)
        places = [told.index(text) for text in words]
        assert places == sorted(places)
        assert places[-1] < told.index("How to read this")
    assert "pipeline" not in markdown(overfitted, gates=gates[1:])


def test_the_leading_number_comes_first(overfitted, refuted):
    """The table starts with the number that leads: Epsilon* where its fit holds, the certified bound where not."""
    first = [re.search(r":-- \|\n\| (.*?) \|", markdown(result))[1] for result in (overfitted, refuted)]
    assert [visible(page(cell).text) for cell in first] == [
        "Epsilon*, Gaussian fit",
        "Certified epsilon bound",
    ]


def test_numbers_without_a_value_say_why(not_evaluable):
    """A number that was judged and has no value is in the table with its reason."""
    assert "no value: it was not declared how membership was decided" in visible(
        page(markdown(not_evaluable)).text
    )


@pytest.mark.parametrize("name", ["overfitted", "refuted", "not_evaluable", "nothing", "hostile"])
def test_every_kind_of_result_has_a_summary(name, request):
    """Every kind of audit gives a summary of the same few elements, without attributes and on few lines."""
    text = markdown(request.getfixturevalue(name))
    shown = page(text)
    assert {tag for tag, *_ in shown.tags} <= _OWN
    assert all(len(tag) == 1 for tag in shown.tags)
    assert len(text) < 20_000
    assert "\x00" not in text
    assert "\u202e" not in text
