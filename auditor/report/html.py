"""The report: one HTML file that needs no network, no script and no font of its own."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from auditor.errors import InputError
from auditor.report import page
from auditor.report.context import context
from auditor.report.known import known
from auditor.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["render"]


def render(results: Sequence[AuditResult], *, title: str = "Privacy audit") -> str:
    """Return one or several audits as one offline HTML page.

    Args:
        results: One audit gives a report; several give the same page with a table that compares them on top.
        title: The page's title.

    Raises:
        InputError: There is no result.
    """
    if not results:
        raise InputError("a report needs at least one result, got 0.")
    audits = [
        context(result)
        | {
            "number": index,
            "key": f"audit-{index}",
            "figures": _figures(result, key=f"audit-{index}"),
            "log_caption": _log_caption(result),
        }
        for index, result in enumerate(map(known, results), start=1)
    ]
    return page.rendered("page.html.jinja", title=title, audits=audits, several=len(audits) > 1)


def _figures(result: AuditResult, *, key: str) -> dict[str, Any]:
    """Return the figures that this audit has data for, by name, each an inline SVG."""
    from markupsafe import Markup

    from auditor.report import figures

    published = next((i for i, item in enumerate(result.histograms) if item.quantiles or item.member_fit), 0)
    others = [i for i in range(len(result.histograms)) if i != published]
    makers: dict[str, Callable[[], Figure | None]] = {
        "tradeoff": lambda: figures.tradeoff_figure(result),
        "tradeoff-log": lambda: figures.tradeoff_log_figure(result),
        "losses": lambda: figures.histogram_figure(result, index=published),
        "raw-losses": lambda: figures.histogram_figure(result, index=others[0]) if others else None,
        "quantiles": lambda: figures.quantile_figure(result, index=published),
    }
    drawn = {name: figure for name, maker in makers.items() if (figure := maker()) is not None}
    # Markup is right here: the text inside was escaped when the SVG was written.
    return {
        name: Markup(figures.svg(figure, alt=_ALT[name], key=f"{key}-{name}"))  # noqa: S704
        for name, figure in drawn.items()
    }


def _log_caption(result: AuditResult) -> str:
    from auditor.report import figures, traces

    if not figures.runs_out(result):
        return "The same on logarithmic axes, which show rare false alarms."
    goes_on = "gaussian" in traces.curves(result)
    return "The same on logarithmic axes. Where the records run out, in the shaded part, " + (
        "only the fit goes on: it is an extrapolation." if goes_on else "nothing was measured."
    )


_ALT = {
    "tradeoff": "Trade-off curve on linear axes: the share of training records recognised against the share of false"
    " alarms, with its confidence band, the Gaussian fit, what the claim allows where there is one, and the diagonal"
    " of guessing. The numbers are in the table above.",
    "tradeoff-log": "The same trade-off curve on logarithmic axes, which show rare false alarms; a region finer than one"
    " non-member record, if the axes reach it, is shaded.",
    "losses": "Histogram of the losses of members and of non-members after the published transform, with the fitted"
    " normal curves where there are any.",
    "raw-losses": "Histogram of the losses of members and of non-members as they were given.",
    "quantiles": "Quantiles of the records against quantiles of the fitted normal curves, for members and non-members;"
    " points off the line are where the fit is wrong.",
}
