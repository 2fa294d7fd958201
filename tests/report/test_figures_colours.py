"""The colours of the figures: those of the page, and far enough from what they stand on."""

import re
from importlib import resources

import pytest

from auditor.report.figures import canvas

STYLE = resources.files("auditor.report").joinpath("templates/style.css").read_text(encoding="utf-8")


def _themes():
    """The colour variables of the light and of the dark page, by name."""
    light, dark = (
        dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)[:2]
    )
    return {"light": light, "dark": light | dark}


def _luminance(colour):
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_oracle():
    """Black on white has the contrast 21, and #767676 on white the 4.54 that WCAG names as just enough."""
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    assert _contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "least"), [("ink", 4.5), ("muted", 4.5), ("accent", 4.5), ("neutral", 3.0)])
def test_colours_stand_out(theme, name, least):
    """In light and in dark, what is written stands out by 4.5 to 1, and what is only drawn by 3 to 1."""
    colours = _themes()[theme]
    assert _contrast(colours[name], colours["card"]) >= least


def test_fallbacks_are_the_light_theme():
    """Outside a page, in a paper, a figure has the colours of the light page."""
    light = _themes()["light"]
    names = {
        "ink": canvas.INK,
        "muted": canvas.MUTED,
        "grid": canvas.GRID,
        "neutral": canvas.NEUTRAL,
        "accent": canvas.ACCENT,
    }
    assert {name: light[name] for name in names} == names
    assert _contrast(canvas.CARD, light["card"]) < 1.001


def test_text_is_never_neutral(refuted):
    """No letter of any figure has the colour that is for drawing only."""
    from auditor.report.figures import gallery as figures

    for name in figures.FIGURES:
        figure = figures.figure(refuted, name)
        text = canvas.svg(figure, alt="a") if figure is not None else ""
        for letters in re.findall(r"<text[^>]*>", text):
            assert "--neutral" not in letters
            assert "--grid" not in letters
