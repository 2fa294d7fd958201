"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is.

One module for each figure. Only the object-oriented interface is used, and the style is set for the time of drawing:
nothing global changes. A figure for which the audit has no data is None.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from auditor.core import validate
from auditor.report.figures import epsilons, extraction, fit, tradeoff
from auditor.results.document import AuditResult, Document

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The drawing of each figure, None without data, and its description for people who cannot see it.
FIGURES: Mapping[str, tuple["Callable[[Any], Figure | None]", Callable[[Any], str]]] = MappingProxyType(
    {
        "tradeoff-log": (tradeoff.tradeoff_log_figure, tradeoff.tradeoff_log_words),
        "tradeoff-high": (tradeoff.tradeoff_high_figure, tradeoff.tradeoff_high_words),
        "tradeoff": (tradeoff.tradeoff_figure, tradeoff.tradeoff_words),
        "growth": (tradeoff.growth_figure, tradeoff.growth_words),
        "epsilons": (epsilons.epsilons_figure, epsilons.epsilons_words),
        "estimated-odds": (epsilons.estimated_odds_figure, epsilons.estimated_odds_words),
        "extraction": (extraction.extraction_figure, extraction.extraction_words),
        "losses": (fit.histogram_figure, fit.histogram_words),
        "raw-losses": (partial(fit.histogram_figure, raw=True), partial(fit.histogram_words, raw=True)),
        "quantiles": (fit.quantile_figure, fit.quantile_words),
    }
)
_OF_TRAININGS = ("tradeoff-log", "tradeoff", "growth")


def figure(result: Document, name: str) -> "Figure | None":
    """Return a figure of an audit; None if the audit has no data for it.

    Args:
        result: Any audit, one that others wrote too.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.

    >>> figure(None, "trade-off")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    auditor.core.errors.InputError: figure must be one of 'tradeoff-log', ...; did you mean 'tradeoff'?
    """
    draw, _ = FIGURES[validate.one_of("figure", name, FIGURES)]
    return draw(result) if isinstance(result, AuditResult) or name in _OF_TRAININGS else None


def alt(result: Document, name: str) -> str:
    """Describe a figure, with the main numbers of this audit.

    Args:
        result: Any audit.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.
    """
    _, words = FIGURES[validate.one_of("figure", name, FIGURES)]
    return words(result)
