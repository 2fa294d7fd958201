"""The privacy-utility landscape as a figure: what is drawn, in the numbers of the comparison."""

import numpy as np
import pytest

from auditor import compare_audits
from auditor.report.figures import landscape


@pytest.fixture
def spread_out(trained, valued):
    """Make a comparison of strategies at these points (value, utility, category)."""

    def make(points, measure="epsilon_star.gaussian"):
        results = [
            valued(trained(0.1, place, f"s{place}", y), measure, value=x)
            for place, (x, y, _) in enumerate(points)
        ]
        about = {"result": list(range(1, len(points) + 1)), "category": [kind for *_, kind in points]}
        return compare_audits(results, about=about, measure=measure)

    return make


def drawn(figure):
    """The axes of the plane, of the margin above and of the margin beside."""
    return figure.axes


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
    axes = drawn(landscape.landscape_figure(found))[0]
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
    axes = drawn(landscape.landscape_figure(found))[0]
    assert axes.get_xscale() == "symlog"
    (line,) = [item for item in axes.lines if item.get_label() == "Pareto frontier"]
    x, y = (np.asarray(side) for side in line.get_data())
    np.testing.assert_allclose(y, np.interp(x, *zip(*corners, strict=True)), atol=1e-12)
    for corner in corners:
        assert np.isclose(x, corner[0]).any()
    assert (x.min(), x.max()) == (0.01, 50.0)


def test_the_axis_is_linear_where_the_values_are_near(spread_out):
    """Values within a factor of 30 are drawn on a linear axis."""
    found = spread_out([(0.5, 0.1, "a"), (5.0, 0.8, "a"), (14.0, 0.9, "a")])
    assert drawn(landscape.landscape_figure(found))[0].get_xscale() == "linear"


def test_there_is_a_density_for_three_strategies_that_differ(spread_out):
    """A category has a density from three different strategies on; otherwise it has its ticks alone."""
    points = [
        (0.1, 0.5, "many"),
        (0.2, 0.6, "many"),
        (0.4, 0.7, "many"),
        (0.3, 0.1, "few"),
        (0.5, 0.2, "few"),
    ]
    points += [(0.6, 0.4, "same")] * 3
    _, above, beside = drawn(landscape.landscape_figure(spread_out(points)))
    for side, along in ((above, 0), (beside, 1)):
        curves = [line for line in side.lines if len(line.get_xdata()) > 20]
        assert len(curves) == 1
        heights = np.asarray(curves[0].get_data()[1 - along])
        assert heights.max() == pytest.approx(1)
        ticks = np.concatenate([line.get_data()[along] for line in side.lines if len(line.get_xdata()) <= 20])
        assert sorted(ticks) == sorted(point[along] for point in points)


def test_the_density_is_that_of_a_plain_kernel_estimate(spread_out):
    """On a linear axis the curve is a Gaussian kernel estimate with Scott's width, computed here by hand."""
    values = np.array([1.0, 2.0, 4.0, 4.5])
    found = spread_out([(x, 0.1 * place, "a") for place, x in enumerate(values)])
    _, above, _ = drawn(landscape.landscape_figure(found))
    (curve,) = [line for line in above.lines if len(line.get_xdata()) > 20]
    x, y = curve.get_data()
    width = values.std(ddof=1) * values.size ** (-1 / 5)
    expected = np.exp(-0.5 * ((np.asarray(x)[:, None] - values) / width) ** 2).sum(axis=1)
    np.testing.assert_allclose(y, expected / expected.max(), rtol=1e-9)


def test_left_and_up_are_better_whatever_the_measure(spread_out):
    """Of Bayes security, of which more is better, the axis runs backwards; so does that of an error rate."""
    found = spread_out([(0.9, 0.1, "a"), (0.5, 0.8, "a")], measure="bayes_security")
    axes = drawn(landscape.landscape_figure(found))[0]
    assert axes.xaxis_inverted()
    assert not axes.yaxis_inverted()
    for run in found.runs:
        object.__setattr__(run.utility, "higher_is_better", False)
    assert drawn(landscape.landscape_figure(found))[0].yaxis_inverted()


def test_many_categories_share_the_last_sign(spread_out):
    """Of more than six categories the last ones share one sign, and every strategy is still a point."""
    found = spread_out([(0.1 + 0.1 * place, 0.5 + 0.01 * place, f"kind {place}") for place in range(9)])
    assert landscape.categories(found.strategies) == (
        *(f"kind {place}" for place in range(5)),
        "Other categories",
    )
    assert len(markers(drawn(landscape.landscape_figure(found))[0])) == 9


def test_a_marked_strategy_is_hollow(six, valued):
    """A strategy with a mark is drawn as an outline, the others are filled."""
    plain = [valued(item, details={}) for item in six]
    plain[0] = valued(plain[0], details={"fit": {"rejected": True}})
    found = compare_audits(plain, measure="epsilon_star.gaussian")
    axes = drawn(landscape.landscape_figure(found))[0]
    faces = {
        float(line.get_ydata()[0]): line.get_markerfacecolor() == line.get_color()
        for line in axes.lines
        if len(line.get_xdata()) == 1 and line.get_markersize() < 8
    }
    assert faces == {item.utility.mean: not item.marks for item in found.strategies}
    assert list(faces.values()).count(False) == 1


def test_every_point_has_its_number_apart_from_the_others(spread_out):
    """Each strategy's number is written once, and no two numbers of ten pairs of near points lie on each other."""
    pairs = [
        (0.1 + 0.09 * place + near, 0.1 + 0.09 * place - near) for place in range(10) for near in (0, 0.008)
    ]
    found = spread_out([(x, y, "a") for x, y in pairs])
    figure = landscape.landscape_figure(found)
    axes = drawn(figure)[0]
    assert sorted(int(text.get_text()) for text in axes.texts) == list(range(1, 21))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent().padded(-1) for text in axes.texts]
    overlaps = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    assert overlaps == []


def test_of_many_points_the_frontier_has_its_numbers(spread_out):
    """Where there is no room for every number, those on the frontier are written, and no two lie on each other."""
    rng = np.random.default_rng(4)
    found = spread_out([(x, y, "a") for x, y in rng.uniform(0.1, 1, (90, 2)) ** 2])
    figure = landscape.landscape_figure(found)
    axes = drawn(figure)[0]
    written = {text.get_text() for text in axes.texts}
    assert {str(item.number) for item in found.frontier} <= written
    assert len(written) < 90
    figure.draw_without_rendering()
    boxes = [text.get_window_extent().padded(-1.5) for text in axes.texts]
    assert [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []
    assert len(markers(axes)) == 90


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
    axes = drawn(landscape.landscape_figure(compare_audits(results, measure=name)))[0]
    assert markers(axes) == {(0.5, 0.1), (1.0, 0.8), (2.0, 0.9)}
    assert not [line for line in axes.lines if "rontier" in str(line.get_label())]
    arrows = [text for text in axes.texts if text.arrow_patch is not None]
    assert sorted(text.xy for text in arrows) == [(0.5, 0.1), (1.0, 0.8), (2.0, 0.9)]
    assert all(text.xyann[0] > 0 and text.xyann[1] == 0 for text in arrows)  # where the head of "<-" is
    assert {text.arrowprops["arrowstyle"] for text in arrows} == {"<-"}
    estimates = drawn(landscape.landscape_figure(compare_audits(results, measure="epsilon_star.gaussian")))[0]
    assert not [text for text in estimates.texts if text.arrow_patch is not None]


def test_values_on_several_scales_are_drawn_without_a_frontier(trained):
    """Epsilons at two deltas are points of one picture, and no line ranks them."""
    results = [trained(0.2, 1, "a", 0.5), trained(0.4, 2, "b", 0.6), trained(0.9, 3, "c", 0.7, delta=1e-3)]
    found = compare_audits(results)
    axes = drawn(landscape.landscape_figure(found))[0]
    assert len(markers(axes)) == 3
    assert not [line for line in axes.lines if "rontier" in str(line.get_label())]
    assert "No frontier is drawn" in landscape.alt(found)


def test_the_words_of_a_picture_never_promise_more_than_a_bound(trained, valued):
    """In the text for who cannot see the picture, and at its points, a lower bound is rounded down."""
    name = "epsilon_bound.clopper_pearson"
    results = [
        valued(trained(0.1, place, f"s{place}", 0.5), name, value=x, lower=x)
        for place, x in enumerate([1.2399, 2.7599])
    ]
    found = compare_audits(results, measure=name)
    assert "from 1.23 to 2.75" in landscape.alt(found)
    assert "at least 1.23" in landscape.tip_words(found.strategies[0], found)
    estimates = [valued(item, value=x) for item, x in zip(results, (1.2399, 2.7599), strict=True)]
    assert "from 1.24 to 2.76" in landscape.alt(compare_audits(estimates, measure="epsilon_star.gaussian"))


def test_ticks_near_zero_do_not_stand_on_each_other(spread_out):
    """On a logarithmic axis that reaches 0 the ticks below its linear part have no words; 0 and the others do."""
    found = spread_out([(0.0, 0.1, "a"), (0.0664, 0.5, "a"), (2.41, 0.8, "a")])
    figure = landscape.landscape_figure(found)
    axes = drawn(figure)[0]
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 5
    assert [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)] == []
