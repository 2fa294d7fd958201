"""Intervals on one scale: every epsilon value of an audit, with ceilings and claims, and a bound by estimated odds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.core import Claim, Estimate, Subject, Unit, numbers
from auditor.report.figures import canvas
from auditor.report.figures.canvas import ACCENT, CARD, INK, MUTED, NEUTRAL
from auditor.report.rows import Row, condition
from auditor.report.words import ABOUT, claim_words, worded
from auditor.results.document import AuditResult, ceiling, detail, find

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The epsilon values of an audit as rows to draw: what kind of number each is, and what may stand beside it ---


class Kind(Enum):
    """How much a number can be relied on, which decides how it is drawn."""

    BOUND = "certified"
    CONDITIONAL = "only under a condition"
    INTERVAL = "interval, if the fit holds"
    POINT = "point estimate"
    REJECTED = "fit rejected"
    NONE = "not evaluable"


@dataclass(frozen=True, eq=False)
class _EpsilonRow(Row):
    """One epsilon value.

    Attributes:
        claim: The claim that it was judged against, or None.
    """

    claim: Claim | None = None

    @property
    def _of_score(self) -> str:
        return ""  # a line of the figure has no room

    @cached_property
    def kind(self) -> Kind:
        """How much it can be relied on."""
        item = self.estimate
        if item.value is None or math.isnan(item.value):
            return Kind.NONE
        if self.is_rejected:
            return Kind.REJECTED
        if detail(item, "conditional"):
            return Kind.CONDITIONAL
        if item.confidence is None or (item.lower is None and item.upper is None):
            return Kind.POINT
        return Kind.BOUND if item.lower == item.value and item.upper is None else Kind.INTERVAL

    @property
    def is_bound(self) -> bool:
        """Whether it is drawn as a bar that ends at a ceiling."""
        return self.kind in {Kind.BOUND, Kind.CONDITIONAL}

    @property
    def top(self) -> float | None:
        """The most that this audit could have certified, or None."""
        return ceiling(self.estimate)

    @property
    def words(self) -> str:
        """The number as a reader should see it."""
        if self.kind is Kind.NONE:
            return "not evaluable"
        return self.ends if self.is_bound and self.estimate.value else self.value

    @property
    def note(self) -> str:
        """Kind, interval, confidence, ceiling and delta of the value."""
        if self.kind is Kind.NONE:
            return ""
        # There is room for a line: a reason stands in the table, and the condition of a bound in its title.
        sure = "point estimate" if self.kind is Kind.POINT else self.interval
        sure = sure.replace(f", if {condition(self.estimate)}", "")
        return sure if self.estimate.delta is None else f"{sure}, delta {self.delta}"

    @property
    def in_words(self) -> str:
        """All of it, for who points at the mark."""
        return f"{self.title}: {self.words}" + (f" ({self.note})" if self.note else "")


def epsilon_rows(result: AuditResult) -> dict[Subject, list[_EpsilonRow]]:
    """Return the epsilon values about this model, then those about the training algorithm, in the order of the result."""
    judged = {
        item.estimate: item.claim
        for item in result.comparisons
        if item.verdict is not None and item.claim.metric == "epsilon" and item.claim.value is not None
    }
    rows = [_EpsilonRow(item, claim=judged.get(item.name)) for item in result.estimates]
    rows = [row for row in rows if row.metric.unit is Unit.NATS]
    grouped = {subject: [row for row in rows if row.estimate.subject is subject] for subject in Subject}
    return {subject: by_subject for subject, by_subject in grouped.items() if by_subject}


# --- How one epsilon value is drawn: a title and its number above, the mark in the middle, a note below ---


_SMALL = 7.4  # points
_LINE = 60  # letters of a title and its number
_INSET = 0.012  # of the width, so that no letter touches the line at 0
_BAR = 0.14  # of a row's height, half of a bar's
_CLAIM: dict[str, Any] = {"color": INK, "linewidth": 2.4, "linestyle": (0, (1, 0.8))}
_CEILING: dict[str, Any] = {"color": INK, "marker": "|", "markersize": 9, "markeredgewidth": 1.4}
_HOLLOW: dict[str, Any] = {"facecolor": "none", "edgecolor": ACCENT, "linestyle": (0, (3, 1.5))}
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
    words = canvas.one_line(row.words.replace("∞", "infinity"))
    panel.text(_INSET, place - 0.2, canvas.one_line(row.title, most=_LINE - len(words)), **upper)
    panel.text(1, place - 0.2, words, ha="right", fontweight="bold", **upper)
    note = canvas.one_line(row.note, most=90)
    panel.text(_INSET, place + 0.19, note, va="top", color=MUTED, fontsize=_SMALL, **text)
    if row.kind is Kind.NONE:
        panel.plot([0], [place], linestyle="none", clip_on=False, **_ESTIMATES[row.kind])
    elif row.is_bound:
        _draw_bound(panel, place, row, most=most)
    else:
        _draw_estimate(panel, place, row, most=most)
    _draw_claim(panel, place, row, most=most)


def _draw_claim(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    """A dotted line through this row only, with its number beside the bar."""
    if row.claim is None or row.claim.value is None or row.claim.value < 0:
        return
    at, value = min(row.claim.value, most), row.estimate.value or 0
    ends = [place - 0.17, place + 0.17]
    panel.plot([at, at], ends, color=CARD, linewidth=5, zorder=7.9)  # sets it off from the bar
    (line,) = panel.plot([at, at], ends, zorder=8, **_CLAIM)
    canvas.tip(line, f"Claimed {claim_words(row.claim)}")
    beside: dict[str, Any] = {"xytext": (5, 0), "ha": "left"}
    if at > most / 2 and at > value:  # there is no room on its right
        beside = {"xytext": (-5, 0), "ha": "right"}
    look = {"facecolor": CARD, "linewidth": 0, "pad": 1}
    place_of_words = (at if beside["ha"] == "right" else max(at, min(value, most)), place)
    words = f"claim {numbers.as_stated(row.claim.value)}"
    beside |= {"textcoords": "offset points", "va": "center", "fontsize": _SMALL, "zorder": 7}
    panel.annotate(words, place_of_words, bbox=look, **beside)


def _draw_bound(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    whole = float(row.estimate.value or 0)
    value = min(whole, most)
    filled = {"facecolor": ACCENT, "edgecolor": ACCENT}
    look: dict[str, Any] = filled if row.kind is Kind.BOUND else _HOLLOW
    bars = panel.barh(place, value, height=2 * _BAR, zorder=4, linewidth=1.0, **look)
    canvas.tip(bars[0], row.in_words)
    _goes_on(panel, whole, place, ACCENT, most=most)
    if row.top is None:
        return
    top = min(row.top, most)
    panel.plot([value, top], [place, place], color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), zorder=3)
    if not _goes_on(panel, row.top, place, MUTED, most=most):
        words = numbers.number(row.top, toward="down")
        said = f"Ceiling: with these records no more than {words} can be certified"
        canvas.mark(panel, top, place, said, zorder=5, **_CEILING)


def _draw_estimate(panel: "Axes", place: int, row: _EpsilonRow, *, most: float) -> None:
    value, look, least = float(row.estimate.value or 0), _ESTIMATES[row.kind], panel.get_xlim()[0]
    line: dict[str, Any] = {"color": look["color"], "zorder": 4}
    ends = (row.estimate.lower, row.estimate.upper)
    if ends != (None, None):
        low, high = (value if end is None else float(end) for end in ends)
        panel.plot((max(low, least), min(high, most)), [place, place], linewidth=1.8, **line)
        marks = [end for end in ends if end is not None and abs(end) <= most]
        tick: dict[str, Any] = {"marker": "|", "markersize": 7, "markeredgewidth": 1.4, "linestyle": "none"}
        panel.plot(marks, [place] * len(marks), **tick, **line)
    canvas.mark(panel, min(max(value, least), most), place, row.in_words, zorder=6, **look)
    _goes_on(panel, value, place, look["color"], most=most)


def _goes_on(panel: "Axes", value: float, place: int, colour: str, *, most: float) -> bool:
    """Draw an arrow at the end of the axis where a value lies beyond it, and return whether it does."""
    if value > most:
        look: dict[str, Any] = {"marker": ">", "color": colour, "markersize": 6, "linestyle": "none"}
        panel.plot([most], [place], zorder=7, clip_on=False, **look)
    return value > most


_ROW, _HEAD, _TITLE = 0.6, 0.12, 0.32  # inches
_WIDE = 100.0  # a larger ratio of the values needs a logarithmic scale
_LARGEST = 1e200


def epsilons_figure(result: AuditResult) -> "Figure | None":
    """Return the epsilon values as bars and dots, those of the model and those of the training algorithm apart.

    A certified bound is a filled bar, one that holds under a condition a hollow one; both end at a bracket, their
    ceiling. An estimate is a dot, with its interval where it has one; without one it is hollow. A rejected fit is a grey
    cross. A claim is a line through the rows that were judged against it, and no others.
    """
    groups = epsilon_rows(result)
    if not groups:
        return None
    ratios = [len(rows) * _ROW + _HEAD for rows in groups.values()]
    size = (canvas.WIDTH, sum(ratios) + _TITLE * len(groups) + 0.5)
    grid = {"hspace": _TITLE * len(groups) / sum(ratios)}
    rows = [row for group in groups.values() for row in group]
    with canvas.sheet(
        size, top=_TITLE, nrows=len(groups), sharex=True, height_ratios=ratios, gridspec_kw=grid
    ) as (figure, panels):
        most = _scale(panels[0], rows)
        for panel, (subject, group) in zip(panels, groups.items(), strict=True):
            for place, row in enumerate(group):
                _draw_row(panel, place, row, most=most)
            panel.set(ylim=(len(group) - 0.45, -0.5), yticks=[])
            heading = worded(_heading(subject, group), result.data)
            panel.set_title(heading, loc="left", fontweight="bold", pad=9)
            panel.spines["left"].set_visible(False)
            panel.axvline(0, color=MUTED, linewidth=0.9, zorder=1)
        beyond = ", evenly spaced to 1 and logarithmic beyond" if panels[0].get_xscale() == "symlog" else ""
        panels[-1].set_xlabel(f"Epsilon{beyond}")
        _legend(figure, rows, most=most)
    return figure


def _heading(subject: Subject, rows: Sequence[_EpsilonRow]) -> str:
    """Return the subject of the rows, with the adjacency that those with a value, and their claims, have in common."""
    adjacencies = {row.adjacency for row in rows if row.adjacency}
    adjacencies |= {str(row.claim.adjacency) for row in rows if row.claim is not None}
    common = adjacencies if len(adjacencies) == 1 else ()
    return ", ".join([f"About {ABOUT[subject]}", *common])


def _scale(panel: "Axes", rows: Sequence[_EpsilonRow]) -> float:
    """Set the axis to what was found; return its end, where what lies beyond is cut off with an arrow."""
    items = [row.estimate for row in rows]
    marks = [x for item in items for x in (item.value, item.lower, item.upper)]
    claims = [row.claim.value for row in rows if row.claim is not None]
    options = [float(x) for x in (*marks, *claims) if x is not None and 0 <= x < _LARGEST]
    most = max(options, default=0.0) or 1.0
    tops = [row.top for row in rows if row.top is not None and row.top <= 2 * most]
    most = max(most, *tops) if tops else most
    positive = [x for x in options if x > 0]
    if positive and most / min(positive) > _WIDE and most > 10:  # noqa: PLR2004 else a linear scale is plainer
        end = 1.2 * math.pow(most, 1.1)
        _spread(panel, end)
    else:
        end = most * 1.08
        canvas.plain_axis(panel.xaxis, most=6)
    low = min([0.0, *(x for x in marks if x is not None and x > -_LARGEST)])
    panel.set_xlim(low * 1.05 - (0.0 if low else end * 0.004), end)
    return end


def _spread(panel: "Axes", end: float) -> None:
    """Evenly spaced to 1 and logarithmic beyond, with at most about six ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator

    panel.set_xscale("symlog", linthresh=1.0)
    powers = range(0, math.floor(math.log10(end)) + 1, max(1, math.ceil(math.log10(end) / 5)))
    panel.xaxis.set_major_locator(FixedLocator([0.0, *(10.0**power for power in powers)]))
    panel.xaxis.set_major_formatter(lambda x, _: numbers.number(float(f"{x:.6g}")))
    panel.xaxis.set_minor_locator(NullLocator())


def _legend(figure: "Figure", rows: Sequence[_EpsilonRow], *, most: float) -> None:
    """Return the legend of the marks; those that the words of their rows explain have no entry."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def line(**look: Any) -> Line2D:
        return Line2D([], [], **{"linestyle": "none", **look})

    tops = [row.top for row in rows if row.top is not None]
    kinds = {row.kind for row in rows}
    marks = (
        ("Certified bound", Patch(facecolor=ACCENT, edgecolor=ACCENT), Kind.BOUND in kinds),
        ("Bound under a condition", Patch(**_HOLLOW), Kind.CONDITIONAL in kinds),
        ("Estimate with interval", line(**_ESTIMATES[Kind.INTERVAL], linestyle="-"), Kind.INTERVAL in kinds),
        ("Point estimate", line(**_ESTIMATES[Kind.POINT]), Kind.POINT in kinds),
        ("Ceiling", line(**_CEILING), any(top <= most for top in tops)),
    )
    canvas.legend(figure, [(words, drawn) for words, drawn, is_drawn in marks if is_drawn])


def epsilons_words(result: AuditResult) -> str:
    """Return every epsilon value in words, group by group, with the claim where one was judged."""
    groups = epsilon_rows(result).items()
    texts = [f"About {ABOUT[subject]}: {'; '.join(map(_said, rows))}." for subject, rows in groups]
    words = " ".join(["Epsilon values.", *texts]) if texts else "Epsilon values: this audit has none."
    return worded(words, result.data)


def _said(row: _EpsilonRow) -> str:
    note = ", ".join(filter(None, (row.note, row.adjacency)))
    text = f"{canvas.one_line(row.title, most=80)} {row.words}" + (f" ({note})" if note else "")
    return text if row.claim is None else f"{text}, judged against: Claimed {claim_words(row.claim)}"


# --- Where odds of membership were estimated: how the groups overlap, and what a hidden difference leaves of the bound ---


def _estimated(result: AuditResult) -> tuple[Estimate, Any] | None:
    """The bound by estimated odds, and how the groups overlap."""
    row = find(result, "epsilon_bound.propensity")
    odds = detail(row, "odds")
    if row is None or row.value is None or odds is None:
        return None
    return (row, odds) if len(odds["members"]) == len(odds["others"]) > 0 else None


def estimated_odds_figure(result: AuditResult) -> "Figure | None":
    """Return the estimated probabilities of membership of both groups, and the bound by what is hidden from the features.

    That a hidden difference of a factor e^k in the odds leaves the bound less k holds at the same confidence.
    """
    estimated = _estimated(result)
    if estimated is None:
        return None
    row, odds = estimated
    with canvas.sheet((canvas.WIDTH, 5.0), nrows=2, gridspec_kw={"hspace": 0.28}) as (figure, (above, below)):
        edges = np.linspace(0, 1, len(odds["members"]) + 1)
        above.stairs(odds["members"], edges, fill=True, color=ACCENT, alpha=0.45, label="Trained on")
        above.stairs(odds["others"], edges, color=INK, linewidth=1.2, label="Not trained on")
        for end in (odds["overlap"], 1 - odds["overlap"]):
            above.axvline(end, color=MUTED, linewidth=0.9, linestyle=canvas.DASHED)
        above.set(xlabel="Estimated probability of having been trained on", ylabel="Records", xlim=(0, 1))
        canvas.legend(figure)
        bound = min(float(row.value or 0), _FACTORS)
        below.plot(np.exp([0.0, bound, bound + 1]), [bound, 0.0, 0.0], color=ACCENT)
        below.set_xscale("log")
        ticks = [factor for factor in _TICKS if factor <= math.exp(bound + 1)]
        below.set_xticks(ticks, list(map(numbers.number, ticks)))
        below.minorticks_off()
        below.set(xlabel="Estimated odds are off by at most a factor of", ylabel="Epsilon, at least")
        below.set_ylim(0, max(bound * 1.1, 0.1))
    return figure


_FACTORS = 12.0
_TICKS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0)


def estimated_odds_words(result: AuditResult) -> str:
    """Return the same in words."""
    estimated = _estimated(result)
    if estimated is None:
        return "Estimated odds of membership: this audit has none."
    row, odds = estimated
    bound = numbers.number(row.value, toward="down")
    share = numbers.percent(odds["kept"] / max(1, odds["held"]))
    return canvas.WORDS["odds"].format(share=share, bound=bound)
