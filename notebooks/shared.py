"""What all notebooks share: small or full settings, printed numbers beside ours, and one look for the figures."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

__all__ = ["FULL", "Row", "agreement", "figures_alike", "runs_folder", "setting"]

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
    """Give every figure of a notebook the same quiet look."""
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 4.2),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
        }
    )
