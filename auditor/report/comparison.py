"""A comparison of several audits as one offline page, and as a cell of a notebook."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from auditor.audits.readings import is_lower_bound, more_is_worse
from auditor.audits.strategies import MIXED
from auditor.report import comparison_rows as rows
from auditor.report import comparison_words as words
from auditor.report import formatting, page
from auditor.report.comparison_script import SORT
from auditor.report.comparison_titles import measure_title, utility_title
from auditor.report.figures import landscape, landscape_words
from auditor.report.figures.point_labels import CROWDED
from auditor.values import Subject

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison

__all__ = ["cell", "context", "render"]

_ABOUT_MODELS = (
    "The numbers describe the models that were audited, not the algorithm that trained them: a strategy with small numbers"
    " is not thereby private, and none of these numbers can refute or support a claimed epsilon."
)
_ABOUT_ALGORITHM = (
    "The numbers are about the algorithm that trained each model, as far as its membership was decided at random: a small"
    " number is no evidence of privacy."
)
_IN_A_CELL = 20  # strategies shown in a notebook


def render(comparison: "AuditsComparison", *, title: str = "Privacy audits compared") -> str:
    """Return a comparison as one offline HTML page.

    Args:
        comparison: From `auditor.compare_audits`.
        title: The page's title.
    """
    shown = context(comparison)
    return page.rendered(
        "comparison.html.jinja", scripts=(SORT,), title=title, figure=_figure(comparison), **shown
    )


def cell(comparison: "AuditsComparison") -> str:
    """Return a comparison as a part of a page: the sentences and the table of strategies, without a style of its own."""
    return page.rendered("comparison-cell.html.jinja", shown=_IN_A_CELL, **context(comparison))


def context(comparison: "AuditsComparison", *, command_line: bool = False) -> dict[str, Any]:
    """Return everything that the page shows about a comparison, as strings, lists and dictionaries.

    Args:
        comparison: What to show.
        command_line: Whether to name the options of the command alone, and not those of Python beside them.
    """
    shared, level = rows.shared(comparison), rows.level(comparison)
    return {
        "count": len(comparison.runs),
        "sign": asdict(words.overall(comparison)),
        "compared": words.compared(comparison),
        "frontier": words.frontier(comparison),
        "hints": words.hints(comparison, command_line=command_line),
        "warnings": words.warnings(comparison),
        "changes": words.change_sentences(comparison),
        "baseline": None
        if comparison.baseline is None
        else f"{comparison.baseline.number}. {comparison.baseline.title}",
        "measure": measure_title(comparison),
        "bounds_what": words.bounds(comparison),
        "ranked": comparison.no_frontier is None,
        "measure_name": comparison.measure,
        "utility": utility_title(comparison),
        "notes": _notes(comparison),
        "strategies": [rows.strategy_row(item, measure=comparison.measure) for item in comparison.strategies],
        "groups": landscape.categories(comparison.strategies),
        "several_instances": any(item.given > 1 for item in comparison.strategies),
        "crowded": sum(item.placed for item in comparison.strategies) > CROWDED,
        "logarithmic": landscape.logarithmic(comparison) is not None,
        "marked": any(item.marks for item in comparison.strategies),
        "landscape": comparison.no_landscape is None,
        "left_out": _left_out(comparison),
        "audits": [rows.audit_row(item, shared=shared) for item in comparison.readings],
        "differences": [row for item in comparison.changes for row in rows.change_rows(item, level=level)],
        "shared": shared.words,
        "level": ""
        if level is None
        else f"Intervals at {formatting.percent(level, toward='down')} confidence, for all rows at once.",
        "decided": _decided(comparison),
        "not_compared": rows.not_compared(comparison),
        "bounds": [rows.bound_row(run, shared=shared) for run in comparison.runs],
        "provenance": [rows.provenance_row(run) for run in comparison.runs],
    }


def _figure(comparison: "AuditsComparison") -> Any:
    from markupsafe import Markup

    from auditor.report.svg import svg

    drawn = landscape.landscape_figure(comparison)
    if drawn is None:
        return None
    # Markup is right here: the text inside was escaped when the SVG was written.
    return Markup(svg(drawn, alt=landscape_words.alt(comparison), key="landscape"))  # noqa: S704


def _notes(comparison: "AuditsComparison") -> list[str]:
    """What a reader must know of the picture before choosing a strategy by it."""
    found = [_ABOUT_ALGORITHM if _about_algorithm(comparison) else _ABOUT_MODELS]
    if is_lower_bound(comparison.measure):
        found.append(_bounds_note(comparison))
    elif any(item.given > 1 for item in comparison.strategies):
        found.append(
            "A point is the mean over the models of one strategy: a point estimate. The bars reach from the smallest to the"
            " largest model: a range, which is no confidence interval and grows with the number of models."
        )
    marks = {mark.partition(" ")[0] for item in comparison.readings for mark in item.marks}
    marks |= {mark.partition(" ")[0] for item in comparison.strategies for mark in item.marks}
    meaning = {
        "fit": "“Fit rejected” marks a number that trusts a fitted curve which a test rejects: do not choose by it.",
        "delta": "A delta marks numbers that are not at the delta of most: an epsilon at a smaller delta is larger.",
        "adjacency": "An adjacency marks bounds on the training algorithm that are not for the adjacency of most.",
        "counted": "“Counted by” marks audits whose unit, a record or a person, is not that of most.",
        "mixed": "“Mixed scales” marks a strategy whose audits differ in delta, adjacency or unit: they have no mean.",
    }
    found += [text for mark, text in meaning.items() if mark in marks]
    if not more_is_worse(comparison.measure):
        found.append(
            "Of this measure a larger value is better; its axis runs backwards, so that left is still better."
        )
    return found


def _bounds_note(comparison: "AuditsComparison") -> str:
    found = (
        f"These are {words.bounds(comparison)}: what the models give away may lie anywhere above. Bounds of audits with"
        " different ceilings are not on one scale, so a low bound may only mean few records."
    )
    several = any(len(item.runs) > 1 for item in comparison.strategies)
    more = " Each holds for its own model alone, so that the mean over several models is itself no bound."
    return found + (more if several else "")


def _about_algorithm(comparison: "AuditsComparison") -> bool:
    subjects = {item.estimate.subject for item in comparison.readings if item.estimate is not None}
    return subjects == {Subject.MECHANISM}


def _left_out(comparison: "AuditsComparison") -> list[tuple[str, str]]:
    """The results without a place in the landscape, and why."""
    some = any(run.utility is not None for run in comparison.runs)
    found = []
    for item in comparison.readings:
        reason = item.reason
        if reason is None and comparison.no_landscape is None and some and item.run.utility is None:
            reason = "no utility was given for it"
        if reason is not None:
            found.append((f"{item.run.number}. {item.run.title}", formatting.sentence(reason)))
    mixed = "Its audits differ in delta, adjacency or unit, so that their numbers have no mean."
    return found + [
        (f"Strategy “{item.name}”", mixed) for item in comparison.strategies if MIXED in item.marks
    ]


def _decided(comparison: "AuditsComparison") -> dict[str, Any] | None:
    """How the differences were found, and what they assume."""
    stated = [item for change in comparison.changes for item in change.differences if item.value is not None]
    if not stated:
        return None
    usual = Counter(item.reason for item in stated).most_common(1)[0][0]
    assumptions = dict.fromkeys(text for item in stated for text in item.assumptions)
    return {"method": formatting.sentence(usual), "assumptions": [text.rstrip(".") for text in assumptions]}
