"""The report: one HTML file that needs no network, no script and no font of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from auditor.errors import InputError
from auditor.report import page
from auditor.report.context import context
from auditor.report.gated import gate_section
from auditor.report.glossary import glossary
from auditor.report.known import known
from auditor.result import AuditResult

if TYPE_CHECKING:
    from auditor.gates import GateOutcome

__all__ = ["render"]


def render(
    results: Sequence[AuditResult], *, title: str = "Privacy audit", gates: Sequence["GateOutcome"] = ()
) -> str:
    """Return one or several audits as one offline HTML page.

    Args:
        results: One audit gives a report; several give the same page with a table that compares them on top.
        title: The page's title.
        gates: What became of the gates of a pipeline, as `auditor.gates.judged` says; shown with their outcomes.

    Raises:
        InputError: There is no result.
    """
    if not results:
        raise InputError("a report needs at least one result, got 0.")
    sound = [known(result) for result in results]
    audits = [_audit(result, index) for index, result in enumerate(sound, start=1)]
    return page.rendered(
        "page.html.jinja",
        title=title,
        audits=audits,
        several=len(audits) > 1,
        gates=gate_section(gates, sound),
        glossary=glossary(),
    )


def _audit(result: AuditResult, index: int) -> dict[str, Any]:
    key = f"audit-{index}"
    own = {
        "number": index,
        "key": key,
        "figures": _figures(result, key=key),
        "log_caption": _log_caption(result),
    }
    return context(result) | own


def _figures(result: AuditResult, *, key: str) -> dict[str, Any]:
    """Return the figures that this audit has data for, by name, each an inline SVG."""
    from markupsafe import Markup

    from auditor.report import figures

    drawn = {name: figure for name in figures.FIGURES if (figure := figures.figure(result, name)) is not None}
    # Markup is right here: the text inside was escaped when the SVG was written.
    return {
        name: Markup(figures.svg(figure, alt=figures.alt(result, name), key=f"{key}-{name}"))  # noqa: S704
        for name, figure in drawn.items()
    }


def _log_caption(result: AuditResult) -> str:
    from auditor.report import figures, traces

    if not figures.runs_out(result):
        return "Logarithmic axes show rare false alarms."
    goes_on = "gaussian" in traces.curves(result)
    return "Logarithmic axes show rare false alarms. Where the records run out, in the shaded part, " + (
        "only the fit goes on, which is an extrapolation, and the band, which says what cannot be ruled out."
        if goes_on
        else "nothing was measured; the band says what cannot be ruled out."
    )
