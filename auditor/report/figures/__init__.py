"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is.

One module for each figure. Only the object-oriented interface is used, and the style is set for the time of drawing:
nothing global changes. A figure for which the audit has no data is null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from auditor import _validate
from auditor.report.figures import losses, quantiles
from auditor.report.figures.epsilons import epsilons_figure, epsilons_words
from auditor.report.figures.fit_grid import fit_grid_figure, fit_grid_words
from auditor.report.figures.losses import histogram_figure
from auditor.report.figures.odds import odds_figure, odds_words
from auditor.report.figures.quantiles import quantile_figure
from auditor.report.figures.rates import runs_out
from auditor.report.figures.tradeoff import tradeoff_figure, tradeoff_log_figure
from auditor.report.figures.tradeoff_high import tradeoff_high_figure
from auditor.report.figures.tradeoff_words import tradeoff_high_words, tradeoff_log_words, tradeoff_words
from auditor.report.known import known
from auditor.report.svg import svg
from auditor.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FIGURES",
    "FigureOf",
    "alt",
    "figure",
    "histogram_figure",
    "quantile_figure",
    "runs_out",
    "svg",
    "tradeoff_figure",
    "tradeoff_log_figure",
]


@dataclass(frozen=True)
class FigureOf:
    """How one figure of an audit is made.

    Attributes:
        title: What it is, in a few words.
        draw: Returns the figure, or null where the audit has no data for it.
        words: Returns what it shows with the main numbers of that audit, for those who cannot see it.
    """

    title: str
    draw: "Callable[[AuditResult], Figure | None]"
    words: Callable[[AuditResult], str]


FIGURES: Mapping[str, FigureOf] = MappingProxyType(
    {
        "tradeoff-log": FigureOf(
            "Claimed against measured, logarithmic axes", tradeoff_log_figure, tradeoff_log_words
        ),
        "tradeoff-high": FigureOf(
            "The other end: who was not in the training data", tradeoff_high_figure, tradeoff_high_words
        ),
        "tradeoff": FigureOf("Claimed against measured, linear axes", tradeoff_figure, tradeoff_words),
        "epsilons": FigureOf("Epsilon values", epsilons_figure, epsilons_words),
        "losses": FigureOf(
            "Losses with their fit",
            lambda result: histogram_figure(result, index=losses.fitted_index(result)),
            lambda result: losses.histogram_words(result, index=losses.fitted_index(result)),
        ),
        "raw-losses": FigureOf(
            "Losses as given",
            lambda result: histogram_figure(result, index=losses.raw_index(result)),
            lambda result: losses.histogram_words(result, index=losses.raw_index(result)),
        ),
        "quantiles": FigureOf("Quantiles of records and fit", quantile_figure, quantiles.quantile_words),
        "fit-grid": FigureOf("Goodness of fit by components and records", fit_grid_figure, fit_grid_words),
        "odds": FigureOf("Recognition in counts", odds_figure, odds_words),
    }
)


def figure(result: AuditResult, name: str) -> "Figure | None":
    """Return a figure of an audit, or null where the audit has no data for it.

    Args:
        result: Any audit, one that others wrote too.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.

    >>> figure(None, "trade-off")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    auditor.errors.InputError: figure must be one of 'tradeoff-log', ...; did you mean 'tradeoff'?
    """
    maker = FIGURES[_validate.known("figure", name, FIGURES)]
    return maker.draw(known(result))


def alt(result: AuditResult, name: str) -> str:
    """Return what a figure shows in words, with the main numbers of this audit.

    Args:
        result: Any audit.
        name: One of `FIGURES`.

    Raises:
        InputError: There is no figure of that name; the message names the nearest.
    """
    maker = FIGURES[_validate.known("figure", name, FIGURES)]
    return maker.words(known(result))
