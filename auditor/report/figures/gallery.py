"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is.

One module for each figure. Only the object-oriented interface is used, and the style is set for the time of drawing:
nothing global changes. A figure for which the audit has no data is null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from auditor.core import validate
from auditor.report.figures import fit
from auditor.report.figures.epsilons import epsilons_figure, epsilons_words
from auditor.report.figures.fit import histogram_figure, quantile_figure
from auditor.report.figures.odds import odds_figure, odds_words
from auditor.report.figures.tradeoff import (
    tradeoff_figure,
    tradeoff_high_figure,
    tradeoff_high_words,
    tradeoff_log_figure,
    tradeoff_log_words,
    tradeoff_words,
)
from auditor.results.document import AuditDocument

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _FigureOf:
    """How one figure of an audit is made.

    Attributes:
        title: What it is, in a few words.
        draw: Returns the figure, or null where the audit has no data for it.
        words: Returns what it shows with the main numbers of that audit, for those who cannot see it.
    """

    title: str
    draw: "Callable[[AuditDocument], Figure | None]"
    words: Callable[[AuditDocument], str]


FIGURES: Mapping[str, _FigureOf] = MappingProxyType(
    {
        "tradeoff-log": _FigureOf(
            "Claimed against measured, logarithmic axes", tradeoff_log_figure, tradeoff_log_words
        ),
        "tradeoff-high": _FigureOf(
            "The other end: who was not in the training data", tradeoff_high_figure, tradeoff_high_words
        ),
        "tradeoff": _FigureOf("Claimed against measured, linear axes", tradeoff_figure, tradeoff_words),
        "epsilons": _FigureOf("Epsilon values", epsilons_figure, epsilons_words),
        "losses": _FigureOf(
            "Losses with their fit",
            lambda result: histogram_figure(result, index=fit.fitted_index(result)),
            lambda result: fit.histogram_words(result, index=fit.fitted_index(result)),
        ),
        "raw-losses": _FigureOf(
            "Losses as given",
            lambda result: histogram_figure(result, index=fit.raw_index(result)),
            lambda result: fit.histogram_words(result, index=fit.raw_index(result)),
        ),
        "quantiles": _FigureOf("Quantiles of records and fit", quantile_figure, fit.quantile_words),
        "odds": _FigureOf("Recognition in counts", odds_figure, odds_words),
    }
)


def figure(result: AuditDocument, name: str) -> "Figure | None":
    """Return a figure of an audit, or null where the audit has no data for it.

    Args:
        result: Any audit, one that others wrote too.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.

    >>> figure(None, "trade-off")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    auditor.core.errors.InputError: figure must be one of 'tradeoff-log', ...; did you mean 'tradeoff'?
    """
    maker = FIGURES[validate.known("figure", name, FIGURES)]
    return maker.draw(result)


def alt(result: AuditDocument, name: str) -> str:
    """Return what a figure shows in words, with the main numbers of this audit.

    Args:
        result: Any audit.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.
    """
    maker = FIGURES[validate.known("figure", name, FIGURES)]
    return maker.words(result)
