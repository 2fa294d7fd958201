"""The figures, and how they become part of a page."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from auditor.report import figures
from auditor.result import Histogram

MAKERS = [
    figures.tradeoff_figure,
    figures.tradeoff_log_figure,
    figures.histogram_figure,
    figures.quantile_figure,
]


@pytest.mark.parametrize("maker", MAKERS)
def test_every_figure_is_drawn(maker, refuted):
    """Every figure is a matplotlib Figure with axes, and its SVG is well-formed and below 80 kB."""
    figure = maker(refuted)
    assert isinstance(figure, Figure)
    text = figures.svg(figure, alt="what it shows")
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - made here
    assert len(text) < 80_000


@pytest.mark.parametrize("maker", MAKERS)
def test_no_data_no_figure(maker, refuted):
    """Without its data a figure is null."""
    assert maker(replace(refuted, curves=(), histograms=())) is None


def test_no_fit(nothing):
    """A histogram without a fit is drawn, and its quantile figure is not."""
    assert figures.histogram_figure(nothing) is not None
    assert figures.quantile_figure(nothing) is None
    assert figures.histogram_figure(nothing, index=5) is None


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 1.001), (1e6, 1e6 + 1e-3), (-1e300, 1e300), (0.0, 1e-300), (-5e-9, 5e-9)],
)
def test_ticks_stand_alone(refuted, low, high):
    """Every tick is a whole number by itself, without an offset or a power aside, and no two are the same."""
    edges = tuple(np.linspace(low, high, 61))
    quantiles = {
        f"{side}_{kind}": edges for side in ("member", "nonmember") for kind in ("fitted", "observed")
    }
    histogram = Histogram("loss", edges, (5,) * 60, (7,) * 60, None, None, quantiles)
    result = replace(refuted, histograms=(histogram,))
    for maker in (figures.histogram_figure, figures.quantile_figure):
        figure = maker(result)
        figures.svg(figure, alt="a")
        axis = figure.axes[0].xaxis
        assert axis.get_offset_text().get_text() == ""
        words = [tick.get_text() for tick in axis.get_ticklabels()]
        assert len(set(words)) == len(words)


def test_no_spread(refuted):
    """Quantiles that all lie in one place have nothing to compare and give no figure."""
    quantiles = {
        f"{side}_{kind}": (0.7,) * 9 for side in ("member", "nonmember") for kind in ("fitted", "observed")
    }
    histogram = Histogram("loss", (0.7, 0.7007), (5,), (7,), None, None, quantiles)
    assert figures.quantile_figure(replace(refuted, histograms=(histogram,))) is None


def test_too_far_to_draw(refuted):
    """Losses whose span no axis can hold give no figure and no warning."""
    edges = (-1.7e308, 0.0, 1.7e308)
    histogram = Histogram("loss", edges, (1, 2), (2, 1), None, None, {"member_fitted": edges})
    result = replace(refuted, histograms=(histogram,))
    assert figures.histogram_figure(result) is None
    assert figures.quantile_figure(result) is None


def test_missing_points(refuted):
    """Curves with unknown points are drawn from the known ones."""
    empirical = replace(refuted.curves[0], fpr=(0.0, None, 1.0), tpr=(0.0, 0.5, 1.0))
    assert figures.tradeoff_log_figure(replace(refuted, curves=(empirical,))) is not None


def test_curve_stops_where_records_do(refuted):
    """On logarithmic axes the measured curve shows no rate finer than one non-member."""
    axes = figures.tradeoff_log_figure(refuted).axes[0]
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    assert min(lines["Measured"]) >= 1 / 2000 * 0.999
    assert min(lines["Gaussian fit"]) < 1e-4


def test_svg_is_deterministic(refuted):
    """The same figure gives the same text, and no date or address of a vocabulary is left in it."""
    texts = {figures.svg(figures.tradeoff_figure(refuted), alt="a") for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert "metadata" not in text
    assert set(re.findall(r"https?://[^\"<]+", text)) == {"http://www.w3.org/2000/svg"}


def test_svg_is_inline_and_named(refuted):
    """The SVG has no prolog, keeps text as text, and carries its alternative text, escaped."""
    text = figures.svg(figures.tradeoff_figure(refuted), alt="<b> & \x00", key="k")
    assert text.startswith("<svg ")
    assert 'role="img"' in text
    assert '<title id="k-title">&lt;b&gt; &amp; ⟨U+0000⟩</title>' in text
    assert ">False alarms (FPR)</text>" in text
    assert "<style" not in text


def test_svg_ids_do_not_clash(refuted):
    """Two figures with different keys share no id, and every reference finds its target."""
    texts = [figures.svg(figures.quantile_figure(refuted), alt="a", key=key) for key in ("one", "two")]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for text, known in zip(texts, ids, strict=True):
        used = {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)}
        assert used <= known


def test_svg_follows_the_theme(refuted):
    """Colours are those of the page, with the light ones as fallback."""
    assert "var(--accent, #0b6e75)" in figures.svg(figures.tradeoff_figure(refuted), alt="a")


def test_hostile_labels(hostile):
    """Names that are markup, mathematics or letters without a glyph are drawn as plain text without a warning."""
    text = figures.svg(figures.histogram_figure(hostile), alt="a")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_nothing_global_changes(refuted):
    """Drawing leaves every global setting of matplotlib as it was."""
    before = dict(mpl.rcParams)
    figures.svg(figures.tradeoff_figure(refuted), alt="a")
    assert dict(mpl.rcParams) == before
