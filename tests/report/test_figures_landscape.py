"""The scatter of a comparison on a phone: letters of a size to read, names apart from each other, a short legend."""

from functools import cache

import numpy as np
import pytest

import auditor
from auditor.comparison import compare_audits
from auditor.report.figures import canvas, landscape, svg


@cache
def _audit(place, utility, model):
    rng = np.random.default_rng(place)
    losses = auditor.Losses(rng.normal(-0.1 * place, 1, 200), rng.normal(0, 1, 200))
    return auditor.audit(losses, model=model, utility=auditor.Utility(utility, "accuracy"))


@pytest.mark.parametrize("utilities", [np.linspace(0.8, 0.81, 12), np.full(7, 0.8)])
def test_names_stay_apart_on_a_phone(utilities):
    """In a column of 340 pixels letters have 8 pixels or more, no name lies on another, and none leaves the axes."""
    found = compare_audits(
        [_audit(place, float(x), f"A model with a long name, {place}") for place, x in enumerate(utilities)]
    )
    figure = landscape.landscape_figure(found)
    text = svg(figure, alt="a")
    assert "min-width:0" in text
    scale = 340 / (figure.get_size_inches()[0] * 72)  # the SVG is as wide as its column
    assert min(item.get_fontsize() for item in figure.axes[0].texts) * scale > 8
    frame = figure.axes[0].get_window_extent()
    boxes = [item.get_window_extent().padded(-1) for item in figure.axes[0].texts]
    assert len(boxes) == len(utilities)
    assert not [one for place, one in enumerate(boxes) if one.count_overlaps(boxes[:place])]
    assert all(frame.containsx(box.x0) and frame.containsx(box.x1) for box in boxes)


def test_legend_of_many_categories():
    """Of seven categories three have signs of their own: with the frontier that makes five entries."""
    results = [_audit(place, 0.8 + 0.01 * place, f"Model {place}") for place in range(7)]
    about = {"result": list(range(1, 8)), "category": [f"Kind {place}" for place in range(7)]}
    (legend,) = landscape.landscape_figure(compare_audits(results, about=about)).legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["Kind 0", "Kind 1", "Kind 2", "Other categories", "Pareto frontier"]


def test_a_legend_has_room():
    """A figure grows by its legend, whatever its height: no letter lies on the axis or leaves the page."""
    with canvas.axes() as (figure, panel):
        panel.plot([0, 1], [0, 1], label="one\nof three\nlines")
        panel.set_xlabel("Loss")
        before = panel.get_window_extent().height
        canvas.legend(figure)
    legend = figure.legends[0].get_window_extent()
    assert panel.get_window_extent().height == pytest.approx(before)
    assert figure.bbox.y0 <= legend.y0 < legend.y1 <= panel.xaxis.get_tightbbox().y0
