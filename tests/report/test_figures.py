"""The figures, and how they become part of a page."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from auditor.core import InputError
from auditor.curves import Histogram, NamedCurve
from auditor.report.figures import TIP, canvas, fit, gallery as figures, svg, tradeoff

NAMES = [
    "tradeoff-log",
    "tradeoff-high",
    "tradeoff",
    "growth",
    "epsilons",
    "estimated-odds",
    "losses",
    "raw-losses",
    "policies",
    "quantiles",
]


QUANTILES = ("member_fitted", "member_observed", "nonmember_fitted", "nonmember_observed")


@pytest.mark.parametrize("fixture", ["overfitted", "refuted", "not_evaluable", "nothing", "hostile"])
@pytest.mark.parametrize("name", NAMES)
def test_every_audit_has_its_figures_and_words(name, fixture, request):
    """Of every audit every figure is drawn or null, without a warning, and its words hold no control character."""
    result = request.getfixturevalue(fixture)
    figure = figures.figure(result, name)
    words = figures.alt(result, name)
    assert len(words) > 20
    assert not re.search(r"[\x00-\x08\u202a-\u202e]", words)
    if figure is not None:
        text = svg(figure, alt=words, key="k")
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - made here
        assert len(text) < 120_000
        assert "<script" not in text


def test_nothing_found_nothing_drawn(refuted, nothing):
    """Without its data a figure is null; all have words, and the names that the page and the notebooks go by."""
    assert list(figures.FIGURES) == NAMES
    empty = replace(
        refuted, estimates=(), comparisons=(), curves=(), histograms=(), data={**refuted.data, "shown": None}
    )
    assert all(figures.figure(empty, name) is None for name in NAMES)
    assert all(figures.alt(empty, name) for name in NAMES)
    assert fit.histogram_figure(nothing) is not None  # without a fit there are no quantiles
    assert fit.quantile_figure(nothing) is None


@pytest.mark.parametrize("ask", [figures.figure, figures.alt])
def test_unknown_figure(ask, refuted):
    """A figure that does not exist is one sentence that names the nearest."""
    with pytest.raises(InputError, match=r"figure must be one of .* did you mean 'tradeoff'\?"):
        ask(refuted, "trade-off")


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.001), (1e6, 1e6 + 1e-3), (-1e300, 1e300), (0.0, 1e-300), (-5e-9, 5e-9)]
)
def test_ticks_stand_alone(refuted, low, high):
    """Every tick is a whole number by itself, without an offset or a power aside, and no two are the same."""
    edges = tuple(np.linspace(low, high, 61))
    quantiles = dict.fromkeys((*QUANTILES, "probability"), edges)
    histogram = Histogram("loss", edges, (5,) * 60, (7,) * 60, None, None, quantiles)
    result = replace(refuted, histograms=(histogram,))
    for maker in (fit.histogram_figure, fit.quantile_figure):
        figure = maker(result)
        svg(figure, alt="a")
        axis = figure.axes[0].xaxis
        assert axis.get_offset_text().get_text() == ""
        words = [tick.get_text() for tick in axis.get_ticklabels()]
        assert len(set(words)) == len(words)


@pytest.mark.parametrize("edges", [(0.7,) * 9, (-1.7e308, 0.0, 1.7e308)])
def test_nothing_to_compare(refuted, edges):
    """Quantiles that all lie in one place, or that no axis can hold, give no figure and no warning."""
    quantiles = dict.fromkeys((*QUANTILES, "probability"), edges)
    histogram = Histogram("loss", edges[:1] + edges[-1:], (5,), (7,), None, None, quantiles)
    assert fit.quantile_figure(replace(refuted, histograms=(histogram,))) is None


def test_curve_stops_where_records_do(refuted):
    """On logarithmic axes the measured curve shows no rate finer than one non-member."""
    axes = tradeoff.tradeoff_log_figure(refuted).axes[0]
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    assert min(lines["Measured"]) >= 1 / 2000 * 0.999
    assert min(lines["Gaussian fit, rejected"]) < 1e-4


def test_staircase_keeps_its_corners(overfitted):
    """On logarithmic axes a staircase has its own corners, not points beside them, and bends a slanted line."""
    stairs = NamedCurve("empirical", "measured", (0.0, 0.0, 0.02, 0.02, 1.0), (0.0, 0.1, 0.1, 0.6, 1.0))
    data = dict(overfitted.data) | {"n_nonmember": 100, "disclosure": "insiders"}
    result = replace(overfitted, data=data, curves=(stairs,))
    axes = tradeoff.tradeoff_log_figure(result).axes[0]
    (line,) = [line for line in axes.get_lines() if line.get_label() == "Measured"]
    x, y = line.get_data()
    assert (x[0], y[0]) == (0.01, 0.1)
    points = list(zip(x, y, strict=True))
    assert points.index((0.02, 0.6)) == points.index((0.02, 0.1)) + 1
    slanted = x > 0.02
    assert slanted.sum() > 20
    # A straight line from (0.02, 0.6) to (1, 1), as seen on linear axes.
    np.testing.assert_allclose(y[slanted], 0.6 + (x[slanted] - 0.02) * 0.4 / 0.98)


def test_quoted_rates_are_marked(overfitted):
    """Each quoted rate is marked from its certified lower limit to what was observed, and says so when pointed at."""
    axes = tradeoff.tradeoff_figure(overfitted).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["Certified at a quoted rate"].get_xydata().tolist() == [[0.01, 0.741 * 0.166]]
    assert lines["Observed at that rate"].get_xydata().tolist() == [[0.01, 0.166]]
    said = lines["Observed at that rate"].get_gid().removeprefix(TIP)
    limits = "recognised at least 12.3% at 95% confidence, observed 16.6% at that rate"
    assert said == f"With false alarms certified at most 1%: {limits}"
    text = svg(tradeoff.tradeoff_figure(overfitted), alt="a")
    assert f"<title>{said}</title>" in text
    assert TIP not in text


@pytest.mark.parametrize(("changes", "wedge"), [({}, True), ({"lower": 0.0}, False)])
def test_marks_of_a_rate(overfitted, changes, wedge):
    """The ring stands at the quoted rate; a limit of 0 has no place on logarithmic axes."""
    row = replace(overfitted.estimate("tpr_at_fpr.0.01"), **changes)
    result = replace(overfitted, estimates=(row,))
    linear, log = (
        {line.get_label(): line for line in maker(result).axes[0].get_lines()}
        for maker in (tradeoff.tradeoff_figure, tradeoff.tradeoff_log_figure)
    )
    for lines in (linear, log):
        assert lines["Observed at that rate"].get_xydata().tolist() == [[0.01, 0.166]]
    assert "Certified at a quoted rate" in linear
    assert ("Certified at a quoted rate" in log) is wedge


def test_tradeoff_words(refuted):
    """The words give the rates of this audit, with the band rounded outwards, the claim, and where records run out."""
    curves = (
        NamedCurve("empirical", "measured", (0.0, 1.0), (0.0, 1.0)),
        NamedCurve("band_lower", "band", (0.0, 1.0), (0.0, 0.71119)),
        NamedCurve("band_upper", "band", (0.0, 1.0), (0.30001, 1.0)),
        NamedCurve("claim", "claim", (0.0, 0.25, 1.0), (0.0, 0.5, 1.0)),
    )
    words = figures.alt(replace(refuted, curves=curves), "tradeoff-log")
    # At 10%: 0.1 * 0.71119 = 7.1119%, down; 0.30001 + 0.1 * 0.69999 = 37.0009%, up; 0.1 * 2 = 20%.
    assert "At 10% false alarms: measured 10%, band 7.11% to 37.1%, most the claim allows 20%" in words
    assert "The claim is epsilon 1 (delta 2.6e-5, replace-one)." in words
    assert "Below 0.05% false alarms, shaded" in words


def test_histogram_words(overfitted):
    """The words of a histogram say between which bin edges the central half of each group lies."""
    histogram = Histogram("loss", (0.0, 1.0, 2.0, 3.0, 4.0), (8, 1, 1, 0), (0, 1, 1, 8))
    words = figures.alt(replace(overfitted, histograms=(histogram,)), "losses")
    # 80% of the members lie in [0, 1]; a quarter of the non-members is reached in [3, 4].
    halves = "half of the members lie between 0 and 1, and half of the non-members lie between 3 and 4."
    assert words == f"Histogram of losses, as given: {halves}"


def test_svg_is_deterministic_inline_and_named(refuted):
    """The same figure is the same text without a prolog, a date or an address, its words text, escaped."""
    texts = {svg(tradeoff.tradeoff_figure(refuted), alt="<b> & \x00", key="k") for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith("<svg ")
    assert set(re.findall(r"https?://[^\"<]+", text)) == {"http://www.w3.org/2000/svg"}
    for inside in (
        'role="img"',
        '<title id="k-title">&lt;b&gt; &amp; ⟨U+0000⟩</title>',
        ">False alarms (FPR)</text>",
    ):
        assert inside in text
    assert "metadata" not in text
    assert "<style" not in text


def test_colours_are_those_of_the_light_page():
    """Outside a page, in a paper, a figure has the colours of the light page."""
    style = resources.files("auditor.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", style[: style.index("}")]))
    for name in ("ink", "muted", "grid", "neutral", "accent"):
        assert getattr(canvas, name.upper()) == light[name]


def test_threads_draw_the_same(refuted):
    """Pages that several threads draw at once are the bytes that one draws alone, and matplotlib's settings stay."""
    before, alone = dict(mpl.rcParams), refuted.to_html()
    with ThreadPoolExecutor(4) as threads:
        pages = list(threads.map(lambda _: refuted.to_html(), range(6)))
    assert set(pages) == {alone}
    assert dict(mpl.rcParams) == before
