"""The figures, and how they become part of a page."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from report.conftest import changed

from auditor.core import Adjacency, Claim, InputError
from auditor.curves import Histogram, NamedCurve
from auditor.report.figures import TIP, canvas, fit, gallery as figures, svg, tradeoff

NAMES = [
    "tradeoff-log",
    "tradeoff-high",
    "tradeoff",
    "growth",
    "epsilons",
    "estimated-odds",
    "extraction",
    "losses",
    "raw-losses",
    "quantiles",
]


QUANTILES = ("member_fitted", "member_observed", "nonmember_fitted", "nonmember_observed")


@pytest.mark.parametrize("fixture", ["overfitted", "refuted", "not_evaluable", "nothing", "hostile"])
@pytest.mark.parametrize("name", NAMES)
def test_every_audit_has_its_figures_and_words(name, fixture, request):
    """Of every audit every figure is drawn or None, without a warning, and its words hold no control character."""
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
    """On logarithmic axes the measured curve shows no rate finer than one non-member; a fit goes on to the edge."""
    axes = tradeoff.tradeoff_log_figure(refuted).axes[0]
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    assert min(lines["Measured, 95% band"]) >= 1 / 2000 * 0.999
    assert min(lines["Gaussian fit, rejected"]) == pytest.approx(1e-4)


@pytest.mark.parametrize("rejected", [True, False])
@pytest.mark.parametrize("name", ["tradeoff-log", "tradeoff-high"])
def test_a_fit_does_not_stretch_the_axes(refuted, name, rejected):
    """Logarithmic axes begin a decade below one record, wherever Epsilon* is read; a rejected fit is a thin grey line."""
    star = refuted.estimate("epsilon_star.gaussian")
    at = {
        "branch": "m2",
        "at": {"fpr": 1e-7, "fnr": 1e-7},
        "fit": {**star.details["fit"], "rejected": rejected},
    }
    bound = {"tail": "upper", "fnr_upper": 0.01, "tnr_lower": 0.2}
    result = changed(refuted, star.name, details={**star.details, **at})
    result = changed(result, "epsilon_bound.clopper_pearson", value=2.9, lower=2.9, details=bound)
    axes = figures.figure(replace(result, data={**result.data, "shown": None}), name).axes[0]
    assert (axes.get_xlim(), axes.get_ylim()[0]) == ((1e-4, 1.0), 1e-4)
    (fit,) = [line for line in axes.get_lines() if line.get_label().startswith("Gaussian")]
    assert (fit.get_color(), fit.get_linewidth() < 1) == (canvas.MUTED if rejected else canvas.INK, rejected)


def test_at_most_five_entries_in_a_legend(overfitted):
    """With a band, two fits, a claim, quoted rates and the bound, each legend has at most five entries."""
    line = overfitted.curves[0]
    names = ("empirical", "band_lower", "band_upper", "gaussian", "mixture", "claim")
    curves = tuple(replace(line, name=name) for name in names)
    claim = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "by hand", proven=True)
    bound = {"tail": "lower", "fpr_upper": 0.01, "tpr_lower": 0.2}
    result = changed(overfitted, "epsilon_bound.clopper_pearson", value=2.9, lower=2.9, details=bound)
    result = replace(result, curves=curves, claims=(claim,), data={**result.data, "shown": None})
    for name in ("tradeoff-log", "tradeoff"):
        (legend,) = figures.figure(result, name).legends
        assert [text.get_text() for text in legend.get_texts()] == [
            "Measured, 95% band",
            "Gaussian fit;\nMixture fit",
            "Most the claim allows\n(epsilon 1, delta 1e-5)",
            "Observed, certified",
            "Certified bound is read here",
        ]
    for name in NAMES:
        drawn = figures.figure(overfitted, name)
        assert drawn is None or all(len(item.get_texts()) <= 5 for item in drawn.legends)


def _histogram(result, edges, members, others):
    histogram = Histogram("loss", tuple(edges), tuple(members), tuple(others))
    return fit.histogram_figure(replace(result, histograms=(histogram,))).axes[0]


def test_losses_far_out_do_not_flatten_the_histogram(overfitted):
    """Bars cover the centre of both groups; the outermost hold the rest, and the axis says so."""
    edges = [-1e6, *np.linspace(0, 3, 31), 1e6]
    axes = _histogram(overfitted, edges, [1, *[10] * 30, 4], [2, *[10] * 30, 6])
    low, high = axes.get_xlim()
    assert -1 < low < 0
    assert 3 < high < 4
    assert "the outermost bars hold the rest" in axes.get_xlabel()
    members = axes.patches[0].get_data()
    # An outermost bar is half as high where it is as many records and twice as wide.
    shares = members.values * np.diff(members.edges)
    np.testing.assert_allclose(shares[-1] / shares[1], 4 / 10)
    assert "outermost" not in _histogram(overfitted, edges[1:-1], [10] * 30, [10] * 30).get_xlabel()


def test_tied_losses_do_not_hide_the_other_bars(overfitted):
    """A bar many times higher than all others is cut off, with its share of both groups beside it; a mild one is not."""
    edges = np.linspace(0, 3, 31)
    axes = _histogram(overfitted, edges, [*[10] * 15, 300, *[10] * 14], [*[10] * 15, 30, *[10] * 14])
    values = axes.patches[0].get_data().values
    assert values[0] < axes.get_ylim()[1] < 5 * values[0]
    assert [text.get_text() for text in axes.texts] == ["Cut off: 50.8% of members\nand 9.38% of non-members"]
    axes = _histogram(overfitted, edges, [*[10] * 15, 30, *[10] * 14], [10] * 30)
    assert axes.get_ylim()[1] > axes.patches[0].get_data().values.max()
    assert len(axes.texts) == 0


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
    ring, wedge = (line for line in axes.get_lines() if line.get_label() == "Observed, certified")
    assert wedge.get_xydata().tolist() == [[0.01, 0.741 * 0.166]]
    assert ring.get_xydata().tolist() == [[0.01, 0.166]]
    said = ring.get_gid().removeprefix(TIP)
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
    for maker, marks in ((tradeoff.tradeoff_figure, 2), (tradeoff.tradeoff_log_figure, 1 + wedge)):
        lines = [
            line for line in maker(result).axes[0].get_lines() if line.get_label() == "Observed, certified"
        ]
        assert lines[0].get_xydata().tolist() == [[0.01, 0.166]]
        assert len(lines) == marks


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
