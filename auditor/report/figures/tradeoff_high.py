"""The other end of the trade-off curve on logarithmic axes, where the certified bound comes from the high losses."""

from typing import TYPE_CHECKING

from auditor.report import traces
from auditor.report.figures.canvas import TALL, axes
from auditor.report.figures.high_end import certified_point, high_reach, is_high, turned
from auditor.report.figures.tradeoff_lines import draw_logarithmic, mark_bound, mark_star
from auditor.report.lookup import STAR, find
from auditor.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["tradeoff_high_figure"]


def tradeoff_high_figure(result: AuditResult) -> "Figure | None":
    """Return others cleared against training records wrongly cleared, on logarithmic axes.

    Null unless the certified bound comes from the high losses: then this end shows the leak that the usual figure, of
    rare false alarms, need not show.
    """
    curves = turned(traces.curves(result))
    if not curves or not is_high(result):
        return None
    finest, least = high_reach(result)
    point = certified_point(result)
    with axes(TALL) as (figure, panel):
        draw_logarithmic(panel, curves, result, finest=finest, least=least)
        if point is not None and point.high:
            mark_bound(panel, point, at=(point.errors, point.hits), least=least)
        mark_star(panel, find(result, STAR), high=True, least=least)
        panel.set(xlabel="Training records wrongly cleared (FNR)", ylabel="Others cleared (TNR)")
        figure.legend(loc="outside lower center", ncols=2)
    return figure
