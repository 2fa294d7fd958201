"""The figures, and how they become part of a page."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from auditor.core import InputError
from auditor.report.figures import TIP, gallery as figures, svg
from auditor.results import Histogram, NamedCurve

NAMES = [
    "tradeoff-log",
    "tradeoff-high",
    "tradeoff",
    "epsilons",
    "losses",
    "raw-losses",
    "quantiles",
    "fit-grid",
    "odds",
]
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
    text = svg(figure, alt="what it shows")
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - made here
    assert len(text) < 80_000


@pytest.mark.parametrize("maker", MAKERS)
def test_no_data_no_figure(maker, refuted):
    """Without its data a figure is null."""
    assert maker(replace(refuted, curves=(), histograms=())) is None


def test_names():
    """The figures have the names, in the order, that the page and the notebooks go by."""
    assert list(figures.FIGURES) == NAMES


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


def test_nothing_found_nothing_drawn(refuted):
    """An audit without estimates, curves and histograms has no figure at all."""
    empty = replace(refuted, estimates=(), comparisons=(), curves=(), histograms=())
    assert all(figures.figure(empty, name) is None for name in NAMES)
    assert all(figures.alt(empty, name) for name in NAMES)


@pytest.mark.parametrize("ask", [figures.figure, figures.alt])
def test_unknown_figure(ask, refuted):
    """A figure that does not exist is one sentence that names the nearest."""
    with pytest.raises(InputError, match=r"figure must be one of .* did you mean 'tradeoff'\?"):
        ask(refuted, "trade-off")


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
        svg(figure, alt="a")
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
    assert min(lines["Gaussian fit, rejected"]) < 1e-4


def test_staircase_keeps_its_corners(overfitted):
    """On logarithmic axes a staircase has its own corners, not points beside them, and bends a slanted line."""
    stairs = NamedCurve("empirical", "measured", (0.0, 0.0, 0.02, 0.02, 1.0), (0.0, 0.1, 0.1, 0.6, 1.0))
    result = replace(overfitted, data=dict(overfitted.data) | {"n_nonmember": 100}, curves=(stairs,))
    axes = figures.tradeoff_log_figure(result).axes[0]
    (line,) = [line for line in axes.get_lines() if line.get_label() == "Measured"]
    x, y = line.get_data()
    assert (x[0], y[0]) == (0.01, 0.1)
    assert (
        list(zip(x, y, strict=True)).index((0.02, 0.6)) == list(zip(x, y, strict=True)).index((0.02, 0.1)) + 1
    )
    slanted = x > 0.02
    assert slanted.sum() > 20
    # A straight line from (0.02, 0.6) to (1, 1), as seen on linear axes.
    np.testing.assert_allclose(y[slanted], 0.6 + (x[slanted] - 0.02) * 0.4 / 0.98)


def test_quoted_rates_are_marked(overfitted):
    """Each quoted rate is marked from its certified lower limit to what was observed, and says so when pointed at."""
    axes = figures.tradeoff_figure(overfitted).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["Certified at a quoted rate"].get_xydata().tolist() == [[0.01, 0.741 * 0.166]]
    # Rank 12 of 2,000 non-members: the threshold that keeps 1% for certain was observed to raise 0.6%.
    assert lines["Observed at that threshold"].get_xydata().tolist() == [[0.006, 0.166]]
    said = lines["Observed at that threshold"].get_gid().removeprefix(TIP)
    assert said == (
        "With false alarms certified at most 1%: recognised at least 12.3% at 95% confidence, observed 16.6%"
    )
    text = svg(figures.tradeoff_figure(overfitted), alt="a")
    assert f"<title>{said}</title>" in text
    assert TIP not in text


def test_observed_rate_as_kept(overfitted):
    """Where the audit keeps the observed rate of false alarms, the ring stands there."""
    rows = [item for item in overfitted.estimates if item.name == "tpr_at_fpr.0.01"]
    row = replace(rows[0], details=dict(rows[0].details) | {"fpr": 0.0035})
    axes = figures.tradeoff_figure(replace(overfitted, estimates=(row,))).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert lines["Observed at that threshold"].get_xydata().tolist() == [[0.0035, 0.166]]


def test_limit_of_zero(overfitted):
    """A certified limit of 0 has no wedge on logarithmic axes, where 0 has no place, and one on linear axes."""
    rows = [item for item in overfitted.estimates if item.name == "tpr_at_fpr.0.01"]
    result = replace(overfitted, estimates=(replace(rows[0], lower=0.0),))
    labels = {
        maker: [line.get_label() for line in maker(result).axes[0].get_lines()]
        for maker in (figures.tradeoff_figure, figures.tradeoff_log_figure)
    }
    assert "Certified at a quoted rate" in labels[figures.tradeoff_figure]
    assert "Certified at a quoted rate" not in labels[figures.tradeoff_log_figure]
    assert "Observed at that threshold" in labels[figures.tradeoff_log_figure]


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
    assert (
        "At 10% false alarms: measured 10%, band 7.11% to 37.1%, most the claim allows 20%, guessing 10%."
        in words
    )
    assert "The claim is epsilon 1 at delta 2.6e-5 (replace-one)." in words
    assert "Below 0.05% false alarms, shaded" in words


@pytest.mark.parametrize("least", [1e-2, 1e-4, 1e-6, 1e-7])
def test_decades_have_room(overfitted, least):
    """Logarithmic axes have at most six ticks in words, 100% among them."""
    result = replace(overfitted, data=dict(overfitted.data) | {"n_nonmember": 0.99 / least}, estimates=())
    axes = figures.tradeoff_log_figure(result).axes[0]
    ticks = axes.get_xticks()
    assert len(ticks) <= 6
    assert 1.0 in ticks
    assert axes.get_xlim()[0] == pytest.approx(least)


def test_histogram_words(overfitted):
    """The words of a histogram say between which bin edges the central half of each group lies."""
    histogram = Histogram("loss", (0.0, 1.0, 2.0, 3.0, 4.0), (8, 1, 1, 0), (0, 1, 1, 8))
    words = figures.alt(replace(overfitted, histograms=(histogram,)), "losses")
    # 80% of the members lie in [0, 1]; a quarter of the non-members is reached in [3, 4].
    assert words == (
        "Histogram of losses, as given: half of the members lie between 0 and 1, and half of the non-members lie"
        " between 3 and 4."
    )


def test_groups_differ_without_colour(refuted):
    """In a histogram the two groups differ in the kind of their line, not only in its colour."""
    axes = figures.histogram_figure(refuted).axes[0]
    outlines = [patch for patch in axes.patches if isinstance(patch, StepPatch) and not patch.get_fill()]
    assert len({patch.get_linestyle() for patch in outlines}) == 2


def test_svg_is_deterministic(refuted):
    """The same figure gives the same text, and no date or address of a vocabulary is left in it."""
    texts = {svg(figures.tradeoff_figure(refuted), alt="a") for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert "metadata" not in text
    assert set(re.findall(r"https?://[^\"<]+", text)) == {"http://www.w3.org/2000/svg"}


def test_svg_is_inline_and_named(refuted):
    """The SVG has no prolog, keeps text as text, and carries its alternative text, escaped."""
    text = svg(figures.tradeoff_figure(refuted), alt="<b> & \x00", key="k")
    assert text.startswith("<svg ")
    assert 'role="img"' in text
    assert '<title id="k-title">&lt;b&gt; &amp; ⟨U+0000⟩</title>' in text
    assert ">False alarms (FPR)</text>" in text
    assert "<style" not in text


def test_svg_ids_do_not_clash(refuted):
    """Two figures with different keys share no id, and every reference finds its target."""
    texts = [svg(figures.quantile_figure(refuted), alt="a", key=key) for key in ("one", "two")]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for text, known in zip(texts, ids, strict=True):
        used = {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)}
        assert used <= known


def test_svg_follows_the_theme(refuted):
    """Colours are those of the page, with the light ones as fallback."""
    assert "var(--accent, #0b6e75)" in svg(figures.tradeoff_figure(refuted), alt="a")


def test_hostile_labels(hostile):
    """Names that are markup, mathematics or letters without a glyph are drawn as plain text without a warning."""
    text = svg(figures.histogram_figure(hostile), alt="a")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_nothing_global_changes(refuted):
    """Drawing leaves every global setting of matplotlib as it was."""
    before = dict(mpl.rcParams)
    svg(figures.tradeoff_figure(refuted), alt="a")
    assert dict(mpl.rcParams) == before
