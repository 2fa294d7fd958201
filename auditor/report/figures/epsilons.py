"""Every epsilon value of an audit on one scale: bounds with their ceilings, estimates, and the claim where it may stand."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from auditor.report import formatting, labels
from auditor.report.figures.canvas import WIDTH, plain_axis, sheet
from auditor.report.figures.epsilon_marks import BOUND_UNDER_A_CONDITION, CEILING, CLAIM, ESTIMATES, draw_row
from auditor.report.figures.epsilon_rows import EpsilonRow, Kind, claim_words, epsilon_rows
from auditor.report.svg import ACCENT, MUTED
from auditor.result import AuditResult
from auditor.values import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["epsilons_figure", "epsilons_words"]

_ROW, _HEAD = 0.6, 0.12  # inches
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
    size = (WIDTH, sum(ratios) + 0.32 * len(groups) + 0.95)
    rows = [row for group in groups.values() for row in group]
    with sheet(size, nrows=len(groups), sharex=True, height_ratios=ratios) as (figure, panels):
        most = _scale(panels[0], rows)
        for panel, (subject, group) in zip(panels, groups.items(), strict=True):
            for place, row in enumerate(group):
                draw_row(panel, place, row, most=most)
            panel.set(ylim=(len(group) - 0.45, -0.5), yticks=[])
            panel.set_title(_heading(subject, group), loc="left", fontweight="bold", pad=9)
            panel.spines["left"].set_visible(False)
            panel.axvline(0, color=MUTED, linewidth=0.9, zorder=1)
        panels[-1].set_xlabel(
            "Epsilon, evenly spaced to 1 and logarithmic beyond" if _is_log(panels[0]) else "Epsilon"
        )
        _legend(figure, rows, most=most)
    return figure


def _heading(subject: Subject, rows: Sequence[EpsilonRow]) -> str:
    """What the rows are about, with the adjacency that those with a value have in common."""
    adjacencies = {row.adjacency for row in rows if row.adjacency}
    return ", ".join(
        [f"About {labels.ABOUT[subject]}", *(sorted(adjacencies) if len(adjacencies) == 1 else [])]
    )


def _scale(panel: "Axes", rows: Sequence[EpsilonRow]) -> float:
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
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: formatting.number(float(f"{x:.6g}"))))
    panel.xaxis.set_minor_locator(NullLocator())


def _is_log(panel: "Axes") -> bool:
    return bool(panel.get_xscale() == "symlog")


# --- What the marks mean --------------------------------------------------------------------------


def _legend(figure: "Figure", rows: Sequence[EpsilonRow], *, most: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = {row.kind for row in rows}
    lines = {kind: Line2D([], [], linestyle="none", **look) for kind, look in ESTIMATES.items()}
    lines[Kind.INTERVAL].set_linestyle("-")
    marks = {
        Kind.BOUND: ("Certified bound", Patch(facecolor=ACCENT, edgecolor=ACCENT)),
        Kind.CONDITIONAL: ("Bound under a condition", Patch(**BOUND_UNDER_A_CONDITION)),
        Kind.INTERVAL: ("Estimate with interval", lines[Kind.INTERVAL]),
        Kind.POINT: ("Point estimate", lines[Kind.POINT]),
        Kind.REJECTED: ("Rejected fit", lines[Kind.REJECTED]),
        Kind.NONE: ("Not evaluable", lines[Kind.NONE]),
    }
    shown = [entry for kind, entry in marks.items() if kind in kinds]
    if any(row.ceiling is not None and row.ceiling <= most for row in rows):
        shown.append(("Ceiling", Line2D([], [], linestyle="none", **CEILING)))
    if any(x is not None and x > most for row in rows for x in (row.value, row.ceiling)):
        shown.append(("Goes on beyond", Line2D([], [], linestyle="none", marker=">", color=MUTED)))
    if any(row.claim is not None for row in rows):
        shown.append(("Claim judged", Line2D([], [], **CLAIM)))
    words, drawn = zip(*shown, strict=True)
    figure.legend(drawn, words, loc="outside lower center", ncols=2)


def epsilons_words(result: AuditResult) -> str:
    """Return every epsilon value in words, group by group, with the claim where one was judged."""
    sentences = []
    for subject, rows in epsilon_rows(result).items():
        said = "; ".join(_said(row) for row in rows)
        sentences.append(f"About {labels.ABOUT[subject]}: {said}.")
    return " ".join(["Epsilon values.", *sentences]) if sentences else "Epsilon values: this audit has none."


def _said(row: EpsilonRow) -> str:
    title = formatting.clean(row.title)
    title = title if len(title) <= 80 else f"{title[:77]}..."  # noqa: PLR2004 a name, not a text
    note = ", ".join(part for part in (row.note, row.adjacency) if part)
    text = f"{title} {row.words}" + (f" ({note})" if note else "")
    return text if row.claim is None else f"{text}, judged against: {claim_words(row)}"
