"""Labels beside the points of a figure, kept apart from each other."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from auditor.report.svg import INK, any_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["CROWDED", "label_places"]

CROWDED = 40  # labels from which on some may be left out

# Around a point, in points of the figure: the nearest place that is free is taken.
_PLACES = tuple(
    (side * reach, up * reach)
    for reach in (8.5, 13.0, 19.0)
    for side, up in ((1, 0.8), (-1, 0.8), (1, -0.8), (-1, -0.8), (0, 1.1), (0, -1.1), (1.2, 0), (-1.2, 0))
)
_WIDTH, _HEIGHT = 5.2, 8.0  # of a digit


def label_places(
    figure: "Figure",
    axes: "Axes",
    labels: Mapping[str, tuple[float, float]],
    *,
    avoid: Iterable[tuple[float, float]] = (),
    first: Collection[str] = (),
) -> None:
    """Write a short label beside each point: where it covers no point, line or other label, if there is such a place.

    Args:
        figure: Laid out here, so that distances on paper are known; nothing may move afterwards.
        axes: Where the points are.
        labels: The text of each, and its point.
        avoid: Points along a line that no label should cover.
        first: The labels that are written in any case; of more than `CROWDED` others, those without a free place are not.
    """
    with any_letter():
        figure.draw_without_rendering()
    scale = 72 / figure.dpi

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = axes.transData.transform(point)
        return float(x) * scale, float(y) * scale

    spots = {text: place(point) for text, point in labels.items()}
    taken = [_around(spot, 5.5) for spot in spots.values()]
    line = [_around(place(point), 0.5) for point in avoid]
    for text in sorted(spots, key=lambda text: text not in first):
        x, y = spots[text]
        boxes = [_box(x + right, y + up, text) for right, up in _PLACES]
        best = min(
            range(len(boxes)),
            key=lambda index: (_covered(boxes[index], taken), _covered(boxes[index], line), index),
        )
        if len(labels) > CROWDED and text not in first and _covered(boxes[best], taken):
            continue
        taken.append(boxes[best])
        axes.annotate(
            text,
            labels[text],
            xytext=_PLACES[best],
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7.5,
            color=INK,
            zorder=6,
            annotation_clip=False,
        )


def _around(spot: tuple[float, float], reach: float) -> tuple[float, float, float, float]:
    x, y = spot
    return x - reach, y - reach, x + reach, y + reach


def _box(x: float, y: float, text: str) -> tuple[float, float, float, float]:
    half = _WIDTH * len(text) / 2
    return x - half, y - _HEIGHT / 2, x + half, y + _HEIGHT / 2


def _covered(box: tuple[float, ...], taken: Sequence[tuple[float, ...]]) -> int:
    left, low, right, high = box
    return sum(left < x1 and x0 < right and low < y1 and y0 < high for x0, y0, x1, y1 in taken)
