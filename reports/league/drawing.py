"""The two figures of the league."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from counting import by_law, interval
from laws import LAWS

_COLOURS = {"noise": "#0072b2", "law with the most": "#d55e00"}  # of Okabe and Ito
_SIZE = 1_000  # of the second figure
_BRIGHT = 0.48  # share from which a cell is light
_METADATA = {"Software": None}


def draw_figures(adapters: Sequence[Any], rows: Sequence[Any], folder: Path, *, level: float) -> None:
    """Write both figures."""
    for name, draw in (("violations", _violations), ("tightness", _tightness)):
        draw(adapters, rows, level).savefig(folder / f"{name}.png", dpi=120, metadata=_METADATA)


def _violations(adapters: Sequence[Any], rows: Sequence[Any], level: float) -> Figure:
    figure = Figure(figsize=(8, 0.4 * len(adapters) + 1.5), layout="constrained")
    axes = figure.subplots()
    for place, adapter in enumerate(adapters):
        counts = by_law([row for row in rows if row.auditor == adapter.name])
        most = next(iter(counts))
        shown = (("noise", counts.get("noise"), -0.16, "o"), ("law with the most", counts[most], 0.16, "s"))
        for kind, pair, shift, marker in shown:
            if pair is None:
                continue
            above, draws = pair
            axes.plot(
                100 * np.array(interval(above, draws)),
                [place + shift] * 2,
                color=_COLOURS[kind],
                linewidth=1.5,
            )
            label = kind if place == 0 else None
            axes.plot(100 * above / draws, place + shift, marker, color=_COLOURS[kind], label=label)
        axes.text(101.5, place, most, va="center", fontsize=8, color=_COLOURS["law with the most"])
    axes.axvline(100 * level, color="black", linestyle="--", linewidth=1, label=f"nominal {100 * level:g}%")
    names = [f"{adapter.name} (estimate)" if adapter.estimate else adapter.name for adapter in adapters]
    axes.set(yticks=range(len(adapters)), yticklabels=names, xlim=(-1, 101), ylim=(len(adapters) - 0.5, -0.5))
    axes.set_xlabel("numbers above the truth, in percent, with exact 95% intervals")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _tightness(adapters: Sequence[Any], rows: Sequence[Any], level: float) -> Figure:
    """Mean number over the truth; a frame where more are above the truth than the level explains."""
    laws = [law.name for law in LAWS if law.name != "noise"]
    cells = {(row.auditor, row.law): row for row in rows if row.size == _SIZE and row.draws}
    shares = np.full((len(adapters), len(laws)), np.nan)
    figure = Figure(figsize=(9, 0.36 * len(adapters) + 2.1), layout="constrained")
    axes = figure.subplots()
    for line, adapter in enumerate(adapters):
        for column, law in enumerate(laws):
            row = cells.get((adapter.name, law))
            if row is None:
                axes.text(column, line, "-", ha="center", va="center")
                continue
            shares[line, column] = row.share
            above = row.low > level
            colour = "black" if row.share > _BRIGHT else "white"
            axes.text(column, line, f"{row.share:.2f}", ha="center", va="center", fontsize=8, color=colour)
            if above:
                axes.add_patch(
                    Rectangle(
                        (column - 0.46, line - 0.46), 0.92, 0.92, fill=False, color="#d55e00", linewidth=2
                    )
                )
    drawn = axes.imshow(shares, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    names = [f"{adapter.name} (estimate)" if adapter.estimate else adapter.name for adapter in adapters]
    axes.set(yticks=range(len(adapters)), yticklabels=names, xticks=range(len(laws)))
    axes.set_xticklabels(laws, rotation=35, ha="right")
    axes.set_title(
        f"Mean number over the truth, {_SIZE:,} records; framed: numbers above the truth\nsignificantly more often than {100 * level:g}%",
        fontsize=10,
    )
    figure.colorbar(drawn, ax=axes, extend="max", pad=0.01)
    return figure
