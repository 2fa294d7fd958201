"""What a notebook shows of a result: a card without scripts, complete without styles, with foreign text as text."""

from html.parser import HTMLParser

import numpy as np
import pytest

import auditor
from auditor.core import clean

ALLOWED = {"div", "h4", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
# Properties that a notebook keeps when it does not trust the page, and that set no colour of text or background.
STYLES = {
    "border",
    "border-left",
    "border-radius",
    "padding",
    "max-width",
    "overflow-wrap",
    "overflow-x",
    "text-align",
    "vertical-align",
}


class _Card(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.styles = [], [], set()

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= {"style", "scope", "tabindex", "role", "aria-label"}
        for rule in dict(attrs).get("style", "").split(";"):
            if rule.strip():
                self.styles.add(rule.split(":")[0].strip())
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(result):
    """The card's texts, once every element is allowed, closed and styled without colours of text."""
    card = _Card()
    card.feed(result._repr_html_())
    assert card.open == []
    assert card.styles <= STYLES
    return card.text


def test_a_card_says_what_the_report_says_first(refuted):
    """The verdict and its sentence, the main numbers with confidence and subject, the checks to read and the way on."""
    words = " | ".join(read(refuted))
    for expected in (
        "Privacy audit: sentiment-dp",
        "✕ Claim refuted",
        "at least 1.31",
        (
            "Training algorithm bound | 1.31 | certified at 95% confidence, ceiling 5.31 | 1e-5 | the training algorithm"
            " (replace-one)"
        ),
        "Failed: Power. 31 records are too few.",
        ".to_html(path)",
    ):
        assert expected in words, expected


def test_what_was_found_leads_without_a_claim(overfitted, refuted):
    """Without a claim the card opens with what was found, as the page does; with one, with the verdict on it."""
    for result, words in (
        (overfitted, ["! Leakage found", "No claim to judge"]),
        (refuted, ["✕ Claim refuted", "! Leakage found"]),
    ):
        told = " | ".join(read(result))
        assert told.index(words[0]) < told.index(words[1]) < told.index("Quantity")


@pytest.mark.parametrize("name", ["overfitted", "refuted", "not_evaluable", "nothing"])
def test_every_kind_of_result_has_a_card(name, request):
    """Every kind of audit has a card of plain elements, small enough for any notebook."""
    result = request.getfixturevalue(name)
    assert read(result)
    assert len(result._repr_html_()) < 20_000


def test_hostile_text_is_text(hostile):
    """Mark-up in names and reasons is shown and not obeyed, and signs that deceive are written out."""
    texts = read(hostile)
    name = clean(hostile.data["model"])
    assert f"Privacy audit: {name}" in "".join(texts)
    assert "⟨U+0000⟩" in "".join(texts)


def test_several_models_have_a_card_too(rng):
    """The audit of several models shows its numbers, what they are about, and how many models there were."""
    models = [
        auditor.Losses(member=rng.normal(-2, 1, 200), nonmember=rng.normal(0, 1, 200)) for _ in range(8)
    ]
    result = auditor.audit_instances(
        models, delta=1e-5, split=auditor.RandomSplit(), claim=auditor.StatedClaim(0.2, 1e-5)
    )
    words = " | ".join(read(result))
    assert (
        "8 models, delta 2.22e-5" in words
    )  # the claim, as it reads for one replaced record: 1e-5 (1 + e^0.2)
    assert "the training algorithm (replace-one)" in words
    assert "Epsilon-bar" in words


def test_figures_are_matplotlib_objects(overfitted):
    """Every figure of the report can be had as a matplotlib figure, and an unknown name meets the nearest."""
    from matplotlib.figure import Figure

    drawn = overfitted.figures()
    assert "tradeoff-log" in drawn
    assert all(isinstance(figure, Figure) for figure in drawn.values())
    assert overfitted.figure("tradeoff").axes
    with pytest.raises(auditor.InputError, match="did you mean 'tradeoff-log'"):
        overfitted.figure("tradeof-log")


def test_the_card_needs_no_numbers():
    """A result of the smallest audit has a card."""
    losses = auditor.Losses(member=np.array([0.1, 0.2]), nonmember=np.array([0.3, 0.4]))
    assert read(auditor.audit(losses))
