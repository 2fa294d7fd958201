"""Allowed content of each format, whatever the texts in it: one function each, which fails where a text became more than text."""

import csv
import io
import json
import re
import unicodedata
from html.parser import HTMLParser
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from auditor.core import clean

# Controls but the tab and the line feed, halves of pairs, lines' ends of Unicode, what is no character, and all that is unseen or
# turns the direction (format characters) but the joiners, which some scripts need, and the signs that stand over numbers.
_KINDS = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SEEN = (
    "\t\n\u200c\u200d\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_SIGNS = {sign for sign in map(chr, range(0x110000)) if unicodedata.category(sign) in _KINDS} | {
    "\ufffe",
    "\uffff",
}
UNSAFE = re.compile(f"[{''.join(sorted(_SIGNS - set(_SEEN)))}]")
_ACTIVE = "iframe object embed form img audio video input textarea base frame applet"
_ALLOWED = """h1 h2 h3 h4 p table thead tbody tr th td ul ol li strong em code br hr details summary sub sup blockquote pre"""


class Markup(HTMLParser):
    """The elements, scripts and words of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.words, self._within = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note a tag."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._within.append(tag)

    def handle_endtag(self, tag):
        """Leave a tag."""
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data):
        """Note what is run, and what is read; styles are neither."""
        if "style" not in self._within:
            (self.scripts if "script" in self._within else self.words).append(data)

    @property
    def tags(self):
        """The name of each element."""
        return [tag for tag, _ in self.elements]

    @property
    def attributes(self):
        """Each attribute with the name of its element."""
        return [(tag, name, value) for tag, attrs in self.elements for name, value in attrs.items()]

    def values(self, name):
        """The content of each attribute of that name."""
        return [value for _, key, value in self.attributes if key == name]

    @property
    def text(self):
        """All that is read, with single blanks."""
        return " ".join(" ".join(self.words).split())


def html(text, *, scripts=()):
    """A page or a part of one: no script but those, nothing active, no handler, no address outside; returns its words."""
    found = Markup(text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == list(scripts)
    assert found.tags.count("script") == len(scripts)
    assert not set(_ACTIVE.split()) & set(found.tags)
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in {"href", "src", "xlink:href", "action"}:
            assert value.startswith("#") or value == "data:,", (tag, name, value)
        if name == "style":
            assert "url(" not in value.replace("url(#", ""), value
            assert "expression" not in value
    assert UNSAFE.search(text.replace("\t", "")) is None
    return "".join(found.words)


def markdown(text):
    """A summary for a pull request: as HTML nothing but the author's own tags, no link out, no picture, no mention."""
    from markdown_it import MarkdownIt

    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    found = Markup(rendered)
    allowed = set(_ALLOWED.split())
    assert set(found.tags) <= allowed, set(found.tags) - allowed
    assert not found.attributes or {name for _, name, _ in found.attributes} <= {"style", "open"}
    plain = re.sub(r"<code>.*?</code>|<pre>.*?</pre>", "", rendered, flags=re.DOTALL)
    plain = "".join(Markup(plain).words)
    # What GitHub and GitLab make links and calls of after all else: addresses, mentions, numbers of issues.
    assert not re.search(r"(?i)\b(https?://|www\.)\w", plain), plain
    assert not re.search(r"(?<![\w`])@\w", plain), plain
    assert not re.search(r"(?<!\w)#\d", plain), plain
    assert UNSAFE.search(text) is None
    return "".join(found.words)


def junit(text):
    """A JUnit file: well-formed XML with the elements of JUnit alone; returns all words in it."""
    root = ET.fromstring(text)  # noqa: S314 - our own output
    known = {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out", "system-err"}
    found = list(root.iter())
    assert {item.tag for item in found} <= known | {"properties", "property"}
    assert UNSAFE.search(text) is None
    return " ".join(" ".join([*item.attrib.values(), item.text or ""]) for item in found)


def sarif(text):
    """A SARIF file: its messages hold no link and no placeholder, its addresses are relative; returns all words in it."""
    words = []

    def walk(value, key=""):
        if isinstance(value, dict):
            for name, item in value.items():
                if name in {"uri", "helpUri", "informationUri"}:
                    _address(name, item)
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif isinstance(value, str):
            words.append(value)
            if key == "text":
                # SARIF 2.1.0, 3.11.5 and 3.11.6: {0} and [words](target) are more than text, unless escaped.
                assert not re.search(r"(?<!\{)\{\d+\}(?!\})", value), value
                assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\([^)]*\)", value), value
            if key == "markdown":
                markdown(value)

    walk(json.loads(text))
    whole = " ".join(words)
    assert UNSAFE.search(whole.replace("\t", "")) is None
    return whole


def _address(name, address):
    parts = urlsplit(address)
    assert parts.scheme == "" or name != "uri", address
    assert parts.scheme in {"", "https"}, address
    assert re.fullmatch(r"[A-Za-z0-9._~!$&'()*+,;=:@%/?#-]*", address), address


def model_card(text):
    """A model card: metadata that YAML reads as one model's numbers, and a section as safe as a summary; returns its words."""
    import yaml

    empty, metadata, section = text.split("---\n", 2)
    (model,) = yaml.safe_load(metadata)["model-index"]
    assert empty == ""
    assert isinstance(model["name"], str)
    assert UNSAFE.search(metadata) is None
    return markdown(section)


def terminal(text, *, colour=False):
    """Lines for a terminal: no control but the line feed and, in colour, codes of colour; returns the words."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text) if colour else text
    assert UNSAFE.search(plain) is None
    assert "evil.example\x07" not in plain
    return plain


def cells(text):
    """A CSV file: no cell that a spreadsheet would run, hide or turn; returns its rows."""
    rows = list(csv.reader(io.StringIO(text)))
    for cell in (cell for row in rows for cell in row):
        formula = cell.startswith(
            ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
        )
        assert not formula or re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", cell), cell
        assert UNSAFE.search(cell) is None, cell
    return rows


def commands(text):
    """The lines, whatever ends one, that a build server takes for a command of its own; and those of a terminal."""
    lines = re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)
    begins = re.compile(r"\s*(::|section_(start|end):)")
    holds = re.compile(r"##(\[|vso\[|teamcity\[)|\x1b", re.IGNORECASE)
    return [line for line in lines if begins.match(line) or holds.search(line)]


def sentence(text):
    """An error: one line, no control, nothing that turns the direction."""
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert UNSAFE.search(text[:-1]) is None
    return text


def seen(text, words):
    """Whether a foreign text is to be seen among those words, in its clean form, whatever the line breaks."""
    flat = [re.sub(r"\s+", "", item) for item in (clean(text), words)]
    return flat[0] in flat[1]
