"""Every epsilon value of an audit on one scale: bounds with their ceilings, estimates, and the claim where it may stand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from auditor.core import numbers
from auditor.core.registry import Unit
from auditor.core.values import Claim, Estimate, Subject
from auditor.report.figures import canvas
from auditor.report.figures.canvas import ACCENT, CARD, INK, MUTED, NEUTRAL, WIDTH, plain_axis, sheet, tip
from auditor.results import metrics
from auditor.results.document import AuditDocument, ceiling, detail, powerless

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The epsilon values of an audit as rows to draw: what kind of number each is, and what may stand beside it ---


class Kind(Enum):
    """How much a number can be relied on, which decides how it is drawn."""

    BOUND = "certified"
    CONDITIONAL = "only if the curve is Gaussian"
    INTERVAL = "interval, if the fit holds"
    POINT = "point estimate"
    REJECTED = "fit rejected"
    NONE = "not evaluable"


@dataclass(frozen=True)
class _EpsilonRow:
    """One epsilon value.

    Attributes:
        title: What it is called on the page.
        subject: What it is about.
        kind: How much it can be relied on.
        value: The bound or the estimate, perhaps infinite; null where it is not evaluable.
        lower: The lower end of its interval, or null.
        upper: The upper end, or null.
        ceiling: The most that this audit could have certified, or null.
        claim: The claim that it was judged against, or null.
        adjacency: The neighbouring relation of a number about the training algorithm, else empty.
        words: The number as a reader should see it.
        note: What goes with it: kind, confidence, delta, ceiling.
    """

    title: str
    subject: Subject
    kind: Kind
    value: float | None
    lower: float | None
    upper: float | None
    ceiling: float | None
    claim: Claim | None
    adjacency: str
    words: str
    note: str


def epsilon_rows(result: AuditDocument) -> dict[Subject, list[_EpsilonRow]]:
    """Return the epsilon values about this model, then those about the training algorithm, in the order of the result."""
    judged = {
        item.estimate: item.claim
        for item in result.comparisons
        if item.verdict is not None and item.claim.metric == "epsilon" and item.claim.value is not None
    }
    rows = [_row(item, judged) for item in result.estimates if metrics.describe(item).unit is Unit.NATS]
    grouped = {subject: [row for row in rows if row.subject is subject] for subject in Subject}
    return {subject: found for subject, found in grouped.items() if found}


def _row(estimate: Estimate, judged: Mapping[str, Claim]) -> _EpsilonRow:
    kind = _kind(estimate)
    top = ceiling(estimate)
    return _EpsilonRow(
        title=metrics.describe(estimate).title,
        subject=estimate.subject,
        kind=kind,
        value=estimate.value,
        lower=estimate.lower,
        upper=estimate.upper,
        ceiling=top if top is not None and top >= 0 else None,
        claim=judged.get(estimate.name),
        adjacency="" if estimate.adjacency is None else str(estimate.adjacency),
        words=_words(estimate, kind),
        note=_note(estimate, kind),
    )


def _kind(estimate: Estimate) -> Kind:
    if estimate.value is None or math.isnan(estimate.value):
        return Kind.NONE
    if detail(estimate, "fit", "rejected") is True:
        return Kind.REJECTED
    if detail(estimate, "conditional") or detail(estimate, "approximate"):
        return Kind.CONDITIONAL
    if estimate.confidence is None or (estimate.lower is None and estimate.upper is None):
        return Kind.POINT
    return Kind.BOUND if estimate.lower == estimate.value and estimate.upper is None else Kind.INTERVAL


def _words(estimate: Estimate, kind: Kind) -> str:
    if kind is Kind.NONE:
        return "not evaluable"
    low, high = (
        numbers.number(end, toward=way) for end, way in ((estimate.lower, "down"), (estimate.upper, "up"))
    )
    if kind in {Kind.BOUND, Kind.CONDITIONAL}:
        bound = low if estimate.lower is not None else numbers.number(estimate.value)
        none = "0, too few records" if powerless(estimate) else "0, no evidence"
        return f"at least {bound}" if estimate.value else none
    value = numbers.number(estimate.value)
    if kind is not Kind.INTERVAL:
        return value
    ends = (
        f"{low} to {high}" if estimate.upper is not None and estimate.lower is not None else f"at least {low}"
    )
    return f"{value} ({ends if estimate.lower is not None else f'at most {high}'})"


def _note(estimate: Estimate, kind: Kind) -> str:
    level = (
        ""
        if estimate.confidence is None
        else f"{numbers.percent(estimate.confidence, toward='down')} confidence"
    )
    parts = {
        Kind.BOUND: ["certified" if estimate.value else "", level],
        Kind.CONDITIONAL: [_condition(estimate), level],
        Kind.INTERVAL: [_holds(estimate), level],
        Kind.POINT: ["point estimate"],
        Kind.REJECTED: ["fit rejected: do not rely on it", level or "point estimate"],
        Kind.NONE: [],
    }[kind]
    if kind is not Kind.NONE and estimate.delta is not None:
        parts.append(f"delta {numbers.given(estimate.delta)}")
    top = ceiling(estimate)
    if top is not None and kind in {Kind.BOUND, Kind.CONDITIONAL}:
        parts.append(f"ceiling {numbers.number(top, toward='down')}")
    return ", ".join(part for part in parts if part)


def _condition(estimate: Estimate) -> str:
    return "approximate, not certified" if detail(estimate, "approximate") else "conditional"


def _holds(estimate: Estimate) -> str:
    fitted = metrics.describe(estimate).curve and detail(estimate, "fit", "member", "mean") is not None
    return "if the fit holds" if fitted else "interval"


def _claim_words(row: _EpsilonRow) -> str:
    """Return the claim that a row was judged against, with its delta and adjacency; nothing without one."""
    if row.claim is None:
        return ""
    at = "" if row.claim.delta is None else f" at delta {numbers.given(row.claim.delta)}"
    return f"Claimed epsilon {numbers.given(row.claim.value)}{at} ({row.claim.adjacency})"


# --- How one epsilon value is drawn: a title and its number above, the mark in the middle, a note below ---


_SMALL = 7.4  # points
_INSET = 0.012  # of the width, so that no letter touches the line at 0
_BAR = 0.14  # of a row's height, half of a bar's
_CLAIM: dict[str, Any] = {"color": INK, "linewidth": 2.4, "linestyle": (0, (1, 0.8))}
_CEILING: dict[str, Any] = {"color": INK, "marker": "|", "markersize": 9, "markeredgewidth": 1.4}
_BOUND_UNDER_A_CONDITION: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": ACCENT,
    "linestyle": (0, (3, 1.5)),
}
# By kind: colour, mark and the colour inside, so that colour alone carries nothing.
_ESTIMATES: dict[Kind, dict[str, Any]] = {
    Kind.INTERVAL: {"color": ACCENT, "marker": "o", "markerfacecolor": ACCENT, "markersize": 6},
    Kind.POINT: {"color": INK, "marker": "o", "markerfacecolor": CARD, "markersize": 6},
    Kind.REJECTED: {"color": MUTED, "marker": "X", "markerfacecolor": NEUTRAL, "markersize": 6},
    Kind.NONE: {"color": MUTED, "marker": "x", "markersize": 4.5},
}


def _draw_row(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    """Draw a row at this place from the top; what lies beyond ``most`` ends in an arrow there."""
    text: dict[str, Any] = {"transform": panel.get_yaxis_transform(), "clip_on": False}
    quiet = row.kind in {Kind.REJECTED, Kind.NONE}
    upper = text | {"va": "bottom", "color": MUTED if quiet else INK}
    panel.text(_INSET, place - 0.2, canvas.one_line(row.title), **upper)
    words = canvas.one_line(row.words.replace("∞", "infinity"))
    panel.text(1, place - 0.2, words, ha="right", fontweight="bold", **upper)
    note = canvas.one_line(row.note, most=90)
    panel.text(_INSET, place + 0.19, note, va="top", color=MUTED, fontsize=_SMALL, **text)
    if row.kind is Kind.NONE:
        panel.plot([0], [place], linestyle="none", clip_on=False, **_ESTIMATES[row.kind])
    elif row.kind in {Kind.BOUND, Kind.CONDITIONAL}:
        _draw_bound(panel, place, row, most=most)
    else:
        _draw_estimate(panel, place, row, most=most)
    _draw_claim(panel, place, row, most=most)


def _draw_claim(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    """A dotted line through this row only, with its number beside the bar."""
    if row.claim is None or row.claim.value is None or row.claim.value < 0:
        return
    at = min(row.claim.value, most)
    ends = [place - 0.17, place + 0.17]
    panel.plot([at, at], ends, color=CARD, linewidth=5, zorder=7.9)  # sets it off from the bar
    (line,) = panel.plot([at, at], ends, zorder=8, **_CLAIM)
    tip(line, _claim_words(row))
    left = at > most / 2 and at > (row.value or 0)  # there is no room on its right
    panel.annotate(
        f"claim {numbers.given(row.claim.value)}",
        (at if left else max(at, min(row.value or 0, most)), place),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=_SMALL,
        zorder=7,
        bbox={"facecolor": CARD, "linewidth": 0, "pad": 1},
    )


def _draw_bound(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    value = min(float(row.value or 0), most)
    filled = {"facecolor": ACCENT, "edgecolor": ACCENT}
    look: dict[str, Any] = filled if row.kind is Kind.BOUND else _BOUND_UNDER_A_CONDITION
    bars = panel.barh(place, value, height=2 * _BAR, zorder=4, linewidth=1.0, **look)
    tip(bars[0], f"{row.title}: {row.words}. {row.note}")
    if row.value is not None and row.value > most:
        _arrow(panel, most, place, ACCENT)
    if row.ceiling is None:
        return
    top = min(row.ceiling, most)
    panel.plot([value, top], [place, place], color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=3)
    if row.ceiling > most:
        _arrow(panel, most, place, MUTED)
    else:
        (end,) = panel.plot([top], [place], linestyle="none", zorder=5, clip_on=False, **_CEILING)
        words = numbers.number(row.ceiling, toward="down")
        tip(end, f"Ceiling: with these records no more than {words} can be certified")


def _draw_estimate(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    value, look = float(row.value or 0), _ESTIMATES[row.kind]
    colour = look["color"]
    if row.lower is not None or row.upper is not None:
        low, high = (value if end is None else float(end) for end in (row.lower, row.upper))
        shown = (max(low, panel.get_xlim()[0]), min(high, most))
        panel.plot(shown, [place, place], color=colour, linewidth=1.8, zorder=4)
        ends = [end for end in (row.lower, row.upper) if end is not None and abs(end) <= most]
        panel.plot(
            ends,
            [place] * len(ends),
            color=colour,
            marker="|",
            markersize=7,
            markeredgewidth=1.4,
            linestyle="none",
            zorder=4,
        )
    at = min(max(value, panel.get_xlim()[0]), most)
    (dot,) = panel.plot([at], [place], linestyle="none", zorder=6, clip_on=False, **look)
    tip(dot, f"{row.title}: {row.words}. {row.note}")
    if value > most:
        _arrow(panel, most, place, colour)


def _arrow(panel: "Axes", at: float, place: int, colour: str) -> None:
    """It goes on beyond the axis."""
    panel.plot(
        [at], [place], marker=">", color=colour, markersize=6, linestyle="none", zorder=7, clip_on=False
    )


_ROW, _HEAD = 0.6, 0.12  # inches
_WIDE = 100.0  # a larger ratio of the values needs a logarithmic scale
_LARGEST = 1e200


def epsilons_figure(result: AuditDocument) -> "Figure | None":
    """Return the epsilon values as bars and dots, those of the model and those of the training algorithm apart.

    A certified bound is a filled bar, one that holds under a condition a hollow one; both end at a bracket, their
    ceiling. An estimate is a dot, with its interval where it has one; without one it is hollow. A rejected fit is a grey
    cross. A claim is a line through the rows that were judged against it, and no others.
    """
    groups = epsilon_rows(result)
    if not groups:
        return None
    ratios = [len(rows) * _ROW + _HEAD for rows in groups.values()]
    size = (WIDTH, sum(ratios) + 0.32 * len(groups) + 0.95)
    rows = [row for group in groups.values() for row in group]
    with sheet(size, nrows=len(groups), sharex=True, height_ratios=ratios) as (figure, panels):
        most = _scale(panels[0], rows)
        for panel, (subject, group) in zip(panels, groups.items(), strict=True):
            for place, row in enumerate(group):
                _draw_row(panel, place, row, most=most)
            panel.set(ylim=(len(group) - 0.45, -0.5), yticks=[])
            panel.set_title(_heading(subject, group), loc="left", fontweight="bold", pad=9)
            panel.spines["left"].set_visible(False)
            panel.axvline(0, color=MUTED, linewidth=0.9, zorder=1)
        panels[-1].set_xlabel(
            "Epsilon, evenly spaced to 1 and logarithmic beyond" if _is_log(panels[0]) else "Epsilon"
        )
        _legend(figure, rows, most=most)
    return figure


def _heading(subject: Subject, rows: Sequence[_EpsilonRow]) -> str:
    """What the rows are about, with the adjacency that those with a value have in common."""
    adjacencies = {row.adjacency for row in rows if row.adjacency}
    return ", ".join(
        [f"About {metrics.ABOUT[subject]}", *(sorted(adjacencies) if len(adjacencies) == 1 else [])]
    )


def _scale(panel: "Axes", rows: Sequence[_EpsilonRow]) -> float:
    """Set the axis to what was found; return its end, where what lies beyond is cut off with an arrow."""
    claims = [row.claim.value for row in rows if row.claim is not None]
    marks = [x for row in rows for x in (row.value, row.lower, row.upper)] + claims
    known = [float(x) for x in marks if x is not None and 0 <= x < _LARGEST]
    most = max(known, default=0.0) or 1.0
    tops = [row.ceiling for row in rows if row.ceiling is not None and row.ceiling <= 2 * most]
    most = max(most, *tops) if tops else most
    positive = [x for x in known if x > 0]
    if positive and most / min(positive) > _WIDE and most > 10:  # noqa: PLR2004 else a linear scale is plainer
        end = 1.2 * math.pow(most, 1.1)
        _spread(panel, end)
    else:
        end = most * 1.08
        plain_axis(panel.xaxis, most=6)
    low = min(
        (x for row in rows for x in (row.value, row.lower) if x is not None and -_LARGEST < x < 0),
        default=0.0,
    )
    panel.set_xlim(low * 1.05 - (0.0 if low else end * 0.004), end)
    return end


def _spread(panel: "Axes", end: float) -> None:
    """Evenly spaced to 1 and logarithmic beyond, with at most about six ticks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    panel.set_xscale("symlog", linthresh=1.0)
    powers = range(0, math.floor(math.log10(end)) + 1, max(1, math.ceil(math.log10(end) / 5)))
    panel.xaxis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in powers)]))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: numbers.number(float(f"{x:.6g}"))))
    panel.xaxis.set_minor_locator(NullLocator())


def _is_log(panel: "Axes") -> bool:
    return bool(panel.get_xscale() == "symlog")


# --- What the marks mean --------------------------------------------------------------------------


def _legend(figure: "Figure", rows: Sequence[_EpsilonRow], *, most: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = {row.kind for row in rows}
    lines = {kind: Line2D([], [], linestyle="none", **look) for kind, look in _ESTIMATES.items()}
    lines[Kind.INTERVAL].set_linestyle("-")
    marks = {
        Kind.BOUND: ("Certified bound", Patch(facecolor=ACCENT, edgecolor=ACCENT)),
        Kind.CONDITIONAL: ("Bound under a condition", Patch(**_BOUND_UNDER_A_CONDITION)),
        Kind.INTERVAL: ("Estimate with interval", lines[Kind.INTERVAL]),
        Kind.POINT: ("Point estimate", lines[Kind.POINT]),
        Kind.REJECTED: ("Rejected fit", lines[Kind.REJECTED]),
        Kind.NONE: ("Not evaluable", lines[Kind.NONE]),
    }
    shown = [entry for kind, entry in marks.items() if kind in kinds]
    if any(row.ceiling is not None and row.ceiling <= most for row in rows):
        shown.append(("Ceiling", Line2D([], [], linestyle="none", **_CEILING)))
    if any(x is not None and x > most for row in rows for x in (row.value, row.ceiling)):
        shown.append(("Goes on beyond", Line2D([], [], linestyle="none", marker=">", color=MUTED)))
    if any(row.claim is not None for row in rows):
        shown.append(("Claim judged", Line2D([], [], **_CLAIM)))
    words, drawn = zip(*shown, strict=True)
    figure.legend(drawn, words, loc="outside lower center", ncols=2)


def epsilons_words(result: AuditDocument) -> str:
    """Return every epsilon value in words, group by group, with the claim where one was judged."""
    sentences = []
    for subject, rows in epsilon_rows(result).items():
        said = "; ".join(_said(row) for row in rows)
        sentences.append(f"About {metrics.ABOUT[subject]}: {said}.")
    return " ".join(["Epsilon values.", *sentences]) if sentences else "Epsilon values: this audit has none."


def _said(row: _EpsilonRow) -> str:
    title = numbers.clean(row.title)
    title = title if len(title) <= 80 else f"{title[:77]}..."  # noqa: PLR2004 a name, not a text
    note = ", ".join(part for part in (row.note, row.adjacency) if part)
    text = f"{title} {row.words}" + (f" ({note})" if note else "")
    return text if row.claim is None else f"{text}, judged against: {_claim_words(row)}"
