"""Foreign text in figures: every letter is drawn, and none is taken for markup or for colour."""

import warnings
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from matplotlib.figure import Figure
from safety.texts import HOSTILE

from auditor.core import clean
from auditor.report.figures import any_letter, gallery as figures, one_line, svg, tip

_SVG = "{http://www.w3.org/2000/svg}"


def _drawn(text):
    """One figure with that text as a label of an axis and as a tip."""
    figure = Figure()
    panel = figure.subplots()
    with any_letter():
        panel.set_xlabel(text, parse_math=False)
        (line,) = panel.plot([0, 1], [0, 1])
        tip(line, text)
    return ET.fromstring(svg(figure, alt=text, key="k"))  # noqa: S314 - made here


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_stay(name):
    """A label, a tip and the words for who cannot see the figure say what they should, character by character."""
    text = " ".join(clean(HOSTILE[name]).split())
    found = _drawn(text)
    assert text in [item.text for item in found.iter(f"{_SVG}text")]
    assert [item.text for item in found.iter(f"{_SVG}title")] == [text, text]


def test_letters_without_a_glyph(refuted_histogram):
    """Letters that the drawing font lacks are drawn and saved without a warning, and others still warn."""
    result = refuted_histogram("模型 Précision équilibrée")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        text = svg(figures.figure(result, "losses"), alt="a")
        warnings.warn("another", UserWarning, stacklevel=1)
    assert [str(item.message) for item in said] == ["another"]
    assert "Loss, 模型 Précision équilibrée" in text


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("模" * 30, 20, "模" * 8 + "..."),  # a letter of a wide script takes two columns
        ("é" * 20, 20, "é" * 20),
        ("e\u0301" * 20, 20, "e\u0301" * 20),  # an accent on its letter takes none
        ("x" * 21, 20, "x" * 17 + "..."),
        ("a\n b\tc", 20, "a b c"),
        (
            "abc" + "\u202e" * 3,
            15,
            "abc⟨U+202E⟩...",
        ),  # a sign shown by its number is shown whole or not at all
        ("abcdef" + "\u202e" * 3, 15, "abcdef..."),
        ("a\u200bb", 20, "a⟨U+200B⟩b"),
    ],
)
def test_labels_are_cut_by_columns(text, most, shown):
    """A label has so many columns at most, and names in other scripts can be distinguished."""
    assert one_line(text, most=most) == shown


@pytest.fixture
def refuted_histogram():
    """A result with one histogram on a scale of that name."""
    import numpy as np

    import auditor

    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.exponential(0.5, 60), nonmember=rng.exponential(1, 60))
    result = auditor.audit(losses, disclosure="insiders")

    def named(scale):
        return replace(result, histograms=(replace(result.histograms[0], scale=scale),))

    return named
