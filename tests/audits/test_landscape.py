"""The privacy-utility landscape as a figure: what is drawn, in the numbers of the comparison."""

import numpy as np
import pytest

from auditor.comparison import compare_audits
from auditor.report.figures import landscape, svg


@pytest.fixture
def spread_out(trained, valued):
    """Make a comparison of strategies at these points (value, utility, category)."""

    def make(points, measure="epsilon_star.gaussian"):
        results = [
            valued(trained(0.1, 0, f"s{place}", y, twin=place), measure, value=x)
            for place, (x, y, _) in enumerate(points)
        ]
        about = {"result": list(range(1, len(points) + 1)), "category": [kind for *_, kind in points]}
        return compare_audits(results, about=about, measure=measure)

    return make


def markers(axes, shapes="os^DvP"):
    """Where single points are drawn."""
    found = set()
    for line in axes.lines:
        x, y = line.get_data()
        if len(x) == 1 and line.get_marker() in shapes and line.get_markersize() < 8:
            found.add((float(x[0]), float(y[0])))
    return found


def test_each_strategy_is_a_point_at_its_means(six):
    """The points are the means of the strategies, and the bars reach to the least and the most of each."""
    found = compare_audits(six)
    axes = landscape.landscape_figure(found).axes[0]
    assert markers(axes) == {(item.measure.mean, item.utility.mean) for item in found.strategies}
    ends = {
        tuple(np.round(segment.ravel(), 12)) for bars in axes.collections for segment in bars.get_segments()
    }
    for item in found.strategies:
        x, y = item.measure, item.utility
        assert tuple(np.round((x.least, y.mean, x.most, y.mean), 12)) in ends
        assert tuple(np.round((x.mean, y.least, x.mean, y.most), 12)) in ends


def test_the_frontier_is_straight_between_its_corners(spread_out):
    """The line goes through the corners, and between them along the chord, on a logarithmic axis too."""
    corners = [(0.01, 0.1), (1.0, 0.8), (50.0, 0.9)]
    found = spread_out([*((x, y, "a") for x, y in corners), (40.0, 0.2, "a")])
    axes = landscape.landscape_figure(found).axes[0]
    assert axes.get_xscale() == "symlog"
    (line,) = [item for item in axes.lines if item.get_label() == "Pareto frontier"]
    x, y = (np.asarray(side) for side in line.get_data())
    np.testing.assert_allclose(y, np.interp(x, *zip(*corners, strict=True)), atol=1e-12)
    for corner in corners:
        assert np.isclose(x, corner[0]).any()
    assert (x.min(), x.max()) == (0.01, 50.0)


def test_up_to_twelve_points_say_their_names(spread_out):
    """Each point of a few has the name of its strategy, and no name lies on another or leaves the picture."""
    points = [(0.1 + 0.02 * place, 0.5 + 0.004 * place, "a") for place in range(12)]
    figure = landscape.landscape_figure(spread_out(points))
    figure.draw_without_rendering()
    texts = {text.get_text(): text.get_window_extent().padded(-1.5) for text in figure.axes[0].texts}
    assert set(texts) == {f"s{place}" for place in range(12)}
    boxes = list(texts.values())
    assert not [one for place, one in enumerate(boxes) if one.count_overlaps(boxes[:place])]
    for box in boxes:
        assert figure.bbox.containsx(box.x0)
        assert figure.bbox.containsx(box.x1)


def test_the_intervals_of_the_table_are_drawn(six):
    """A broad line reaches over the intervals of all models of a strategy, from the least end to the largest."""
    found = compare_audits(six)
    drawn = [
        tuple(line.get_xdata())
        for line in landscape.landscape_figure(found).axes[0].lines
        if line.get_alpha()
    ]
    assert drawn == [(item.lower, item.upper) for item in found.strategies]


def test_left_and_up_are_better_whatever_the_measure(spread_out):
    """Of Bayes security, of which more is better, the axis runs backwards; so does that of an error rate."""
    found = spread_out([(0.9, 0.1, "a"), (0.5, 0.8, "a")], measure="bayes_security")
    axes = landscape.landscape_figure(found).axes[0]
    assert axes.xaxis_inverted()
    assert not axes.yaxis_inverted()
    for run in found.runs:
        object.__setattr__(run.utility, "higher_is_better", False)
    assert landscape.landscape_figure(found).axes[0].yaxis_inverted()


def test_a_marked_strategy_is_hollow(six, valued):
    """A strategy with a mark is drawn as an outline, the others are filled."""
    plain = [valued(item, details={}) for item in six]
    plain[0] = valued(plain[0], details={"fit": {"rejected": True}})
    found = compare_audits(plain, measure="epsilon_star.gaussian")
    axes = landscape.landscape_figure(found).axes[0]
    faces = {
        float(line.get_ydata()[0]): line.get_markerfacecolor() == line.get_color()
        for line in axes.lines
        if len(line.get_xdata()) == 1 and line.get_markersize() < 8
    }
    assert faces == {item.utility.mean: not item.marks for item in found.strategies}
    assert list(faces.values()).count(False) == 1


def test_values_on_several_scales_are_drawn_without_a_frontier(trained):
    """Epsilons at two deltas are points of one picture, and no line ranks them."""
    results = [trained(0.2, 1, "a", 0.5), trained(0.4, 2, "b", 0.6), trained(0.9, 3, "c", 0.7, delta=1e-3)]
    found = compare_audits(results, measure="epsilon_star.gaussian")
    axes = landscape.landscape_figure(found).axes[0]
    assert len(markers(axes)) == 3
    assert not [line for line in axes.lines if "rontier" in str(line.get_label())]
    assert "No frontier is drawn" in landscape.alt(found)


def test_one_strategy_and_strange_places_can_be_drawn(spread_out):
    """One strategy, strategies at one place, a value of 0, and huge values make a figure."""
    for points in (
        [(0.0, 0.5, "a"), (0.0, 0.5, "a")],
        [(0.0, 0.5, "a"), (1e-9, 0.5, "a"), (3.0, -4.0, "b")],
        [(1e12, 1e-12, "a"), (1.0, 1e12, "a"), (2.0, -1e12, "a")],
    ):
        found = spread_out(points)
        assert landscape.landscape_figure(found) is not None
        assert "Privacy-utility landscape of" in landscape.alt(found)


def test_lower_bounds_have_arrows_and_no_frontier(trained, valued):
    """Of lower bounds each point has an arrow to the right, and neither the line nor a ring of a frontier is drawn."""
    name = "epsilon_bound.clopper_pearson"
    results = [
        valued(trained(0.1, place, f"s{place}", y), name, value=x, lower=x)
        for place, (x, y) in enumerate([(0.5, 0.1), (1.0, 0.8), (2.0, 0.9)])
    ]
    axes = landscape.landscape_figure(compare_audits(results, measure=name)).axes[0]
    assert markers(axes) == {(0.5, 0.1), (1.0, 0.8), (2.0, 0.9)}
    assert not [line for line in axes.lines if "rontier" in str(line.get_label())]
    arrows = [text for text in axes.texts if text.arrow_patch is not None]
    assert sorted(text.xy for text in arrows) == [(0.5, 0.1), (1.0, 0.8), (2.0, 0.9)]
    assert all(text.xyann[0] > 0 and text.xyann[1] == 0 for text in arrows)  # where the head of "<-" is
    assert {text.arrowprops["arrowstyle"] for text in arrows} == {"<-"}
    estimates = landscape.landscape_figure(compare_audits(results, measure="epsilon_star.gaussian")).axes[0]
    assert not [text for text in estimates.texts if text.arrow_patch is not None]


def test_the_words_of_a_picture_never_promise_more_than_a_bound(trained, valued):
    """In the text for who cannot see the picture, and at its points, a lower bound is rounded down."""
    name = "epsilon_bound.clopper_pearson"
    results = [
        valued(trained(0.1, place, f"s{place}", 0.5), name, value=x, lower=x)
        for place, x in enumerate([1.2399, 2.7599])
    ]
    found = compare_audits(results, measure=name)
    assert "from 1.23 to 2.75" in landscape.alt(found)
    assert "at least 1.23" in svg(landscape.landscape_figure(found), alt="a")
    estimates = [valued(item, value=x) for item, x in zip(results, (1.2399, 2.7599), strict=True)]
    assert "from 1.24 to 2.76" in landscape.alt(compare_audits(estimates, measure="epsilon_star.gaussian"))


def test_the_frontier_has_its_numbers_in_any_crowd(spread_out):
    """Each of twenty numbers is written once; of ninety some are left out, but none of the frontier, and none lie on another."""
    for crowd in (20, 90):
        points = np.random.default_rng(4).uniform(0.1, 1, (crowd, 2)) ** 2
        found = spread_out([(x, y, f"kind {place % 9}") for place, (x, y) in enumerate(points)])
        figure = landscape.landscape_figure(found)
        figure.draw_without_rendering()
        texts = {text.get_text(): text.get_window_extent().padded(-1.5) for text in figure.axes[0].texts}
        assert len(texts) == len(figure.axes[0].texts)
        assert {str(item.number) for item in (found.frontier if crowd == 90 else found.strategies)} <= set(
            texts
        )
        boxes = list(texts.values())
        assert not [one for place, one in enumerate(boxes) if one.count_overlaps(boxes[:place])]
