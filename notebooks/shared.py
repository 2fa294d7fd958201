"""What all notebooks share: small or full settings, printed numbers beside ours, and the look of the report for the figures."""

import math
import os
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from cycler import cycler
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from auditor.report.figures.canvas import ACCENT, CARD, INK, MUTED, NEUTRAL, STYLE

__all__ = [
    "ACCENT",
    "FULL",
    "INK",
    "MUTED",
    "NEUTRAL",
    "Row",
    "agreement",
    "figures_alike",
    "finish",
    "runs_folder",
    "setting",
    "titled",
]

# Colours are the report's: one accent for what a figure is about, ink for what is exact, grey for the rest.
FROM_CARD = LinearSegmentedColormap.from_list("auditor", [CARD, ACCENT])
LETTERS_IN_AN_INCH = 9.5  # of a title, at most
mpl.colormaps.register(FROM_CARD, force=True)

FULL = os.environ.get("FULL") == "1"


def setting(small: Any, full: Any) -> Any:
    """Return the value for the settings that were asked for: ``FULL=1`` in the environment asks for the real ones."""
    return full if FULL else small


def runs_folder(name: str) -> Path:
    """Return where results of that name are kept: in the folder that ``RUNS`` names, or in ``runs`` beside the notebooks."""
    return Path(os.environ.get("RUNS") or Path(__file__).parent / "runs") / name


@dataclass(frozen=True)
class Row:
    """A number printed in a paper, beside ours.

    Attributes:
        where: Figure, table or equation.
        quantity: What the number is, with its settings.
        printed: As printed.
        ours: As computed here.
        within: How far apart the two may be.
        because: Where that tolerance comes from; or, where they differ, why.
        erratum: Whether the printed number is wrong, so that the two must differ.
    """

    where: str
    quantity: str
    printed: float
    ours: float
    within: float
    because: str
    erratum: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the two numbers are within the tolerance of each other."""
        return abs(self.printed - self.ours) <= self.within

    @property
    def outcome(self) -> str:
        """In words: reproduced, differs, or differs as the erratum says."""
        if self.agrees:
            return "no erratum after all" if self.erratum else "reproduced"
        return "erratum" if self.erratum else "differs"


def agreement(rows: Iterable[Row]) -> pd.DataFrame:
    """Return a table with a line for each printed number."""
    return pd.DataFrame([{**asdict(row), "outcome": row.outcome} for row in rows]).drop(columns="erratum")


def figures_alike() -> None:
    """Give every figure of a notebook the report's look, with letters large enough for a page of text."""
    plt.rcParams.update(STYLE)
    plt.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.labelsize": 10,
            "axes.prop_cycle": cycler(color=(ACCENT, INK, NEUTRAL, MUTED)),
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.figsize": (7.0, 4.2),
            "figure.titlesize": 11,
            "figure.titleweight": "bold",
            "font.size": 10,
            "image.cmap": FROM_CARD.name,
            "legend.fontsize": 9.5,
            "text.parse_math": True,
            "xtick.labelsize": 9.5,
            "ytick.labelsize": 9.5,
        }
    )


def titled(figure: Figure, message: str) -> Figure:
    """Return a figure of the report with a message above it, and large enough for a page of text.

    Args:
        figure: Of a result or a comparison.
        message: As for `finish`.
    """
    figure.set_dpi(140)
    with plt.rc_context({"figure.titlesize": 9.5}):
        _title(figure, message)
    return figure


def _title(figure: Figure, message: str) -> None:
    wide = round(LETTERS_IN_AN_INCH * figure.get_figwidth() * 11 / plt.rcParams["figure.titlesize"])
    even = math.ceil(len(message) / math.ceil(len(message) / wide)) + 8  # no word alone in the last line
    figure.suptitle(textwrap.fill(message, min(even, wide)), x=0.01, ha="left")


def finish(figure: Figure, message: str, *, columns: int = 3) -> None:
    """Show a figure with what one sees in it as its title, and below it one legend for all panels, away from the data.

    Args:
        figure: With everything drawn.
        message: A sentence; it goes on in another line where it is longer than the figure is wide.
        columns: Of the legend.
    """
    found = [pair for panel in figure.axes for pair in zip(*panel.get_legend_handles_labels(), strict=True)]
    unique = {label: handle for handle, label in reversed(found)}
    order = [label for _, label in found]
    labels = sorted(unique, key=order.index)
    _title(figure, message)
    if len(labels) > 1:
        figure.legend([unique[label] for label in labels], labels, loc="outside lower center", ncols=columns)
    plt.show()
