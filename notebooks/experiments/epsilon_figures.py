"""The figures of the notebook on Epsilon*, from numbers that it has computed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from shared import ACCENT, INK, MUTED, NEUTRAL, finish

from experiments.simulation import Rates

__all__ = [
    "above_floor",
    "by_distance",
    "by_size",
    "by_strategy",
    "landscape",
    "on_frontier",
    "p_values",
    "ratios",
]

_REJECTED = 0.05
_MOST_TICKS = 9  # side by side without touching
_LOOKS = {
    "parametric": {"color": INK, "marker": "s"},
    "empirical": {"color": NEUTRAL, "marker": "^"},
    "noise floor": {"color": MUTED, "marker": "x", "ls": ":"},
    "certified": {"color": ACCENT, "marker": "o"},
}
_KINDS = {
    "baseline": {"marker": "o", "color": ACCENT, "ms": 8},
    "DP epsilon 1": {"marker": "v", "color": NEUTRAL},
    "DP epsilon 3": {"marker": "s", "color": NEUTRAL, "mfc": "none"},
    "DP epsilon 10": {"marker": "^", "color": INK},
    "DP epsilon 100": {"marker": "D", "color": INK, "mfc": "none"},
}


def ratios(exact: Rates, counted: Sequence[Rates], *, delta: float) -> None:
    """Draw Figure 3: the first two ratios of Equation 7, from the true rates and from those of samples.

    Args:
        exact: True rates, at ascending thresholds.
        counted: Rates of samples.
        delta: Of the ratios.
    """
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
    names = {"m1": ("(1 - δ - FNR)/FPR", ACCENT), "m2": ("(1 - δ - FPR)/FNR", NEUTRAL)}
    for axis, drawn, look in ((axes[0], [exact], "-"), (axes[1], counted, ".")):
        for rates in drawn:
            for name, (label, colour) in names.items():
                middle = (1 - rates.fnr + rates.fpr) / 2
                axis.semilogy(middle, rates.ratios(delta)[name], look, color=colour, ms=2, label=label)
        axis.set(xlabel="(TPR + FPR)/2", ylim=(0.5, 5e6))
    axes[0].set(title="(a) true rates", ylabel="ratio in Equation 7")
    axes[1].set(title=f"(b) {len(counted)} samples of 10,000 of each group")
    finish(figure, "Samples run out where the truth goes on: all of the signal is at the two ends")


def by_size(runs: pd.DataFrame) -> None:
    """Draw Figure 4: means and standard deviations by sample size, for identical losses.

    Args:
        runs: Of `experiments.simulation.simulated`, with identical losses.
    """
    figure, axis = plt.subplots()
    for place, name in enumerate(_LOOKS):
        _bars(axis, runs.groupby("n")[name], name, factor=1.05 ** (place - 1.5))
    axis.axhline(0, color=INK, lw=0.8, ls="--", label="truth")
    axis.set(xscale="log", xlabel="records in each group", ylabel="Epsilon* (nats), mean and s.d.")
    finish(
        figure,
        "Where nothing leaks, both estimates are above 0, as high as noise alone takes them",
        columns=5,
    )


def by_distance(runs: pd.DataFrame, truth: pd.DataFrame) -> None:
    """Draw Figure 5: means and standard deviations by the distance of the laws, a panel for each sample size.

    Args:
        runs: Of `experiments.simulation.simulated`.
        truth: True values, a column for each clip, indexed by the distance d.
    """
    sizes = runs["n"].unique()
    figure, axes = plt.subplots(1, len(sizes), figsize=(8, 4.2), sharey=True)
    for axis, n in zip(axes, sizes, strict=True):
        for clip, line in (("clip δ", "--"), ("clip 0.001", ":")):
            axis.plot(truth[clip], color=MUTED, ls=line, label=f"truth, {clip}")
        for name in ("parametric", "empirical", "certified"):
            _bars(axis, runs[runs["n"] == n].groupby("d")[name], name)
        axis.set(xlabel="distance d of the laws", title=f"n = {n:,}", xticks=truth.index)
    axes[0].set(ylabel="Epsilon* (nats)")
    finish(
        figure,
        "Each estimate is near the truth of its own clip: two normals above it, counts on it",
        columns=5,
    )


def _bars(axis: plt.Axes, groups: pd.api.typing.SeriesGroupBy, name: str, *, factor: float = 1.0) -> None:
    means = groups.mean()
    style = {"ms": 5, "lw": 1, "capsize": 3, **_LOOKS[name]}
    axis.errorbar(means.index * factor, means, yerr=groups.std(), label=name, **style)


def p_values(tests: Mapping[str, Mapping[str, list]]) -> None:
    """Draw Figure 6: p-values by components and sample size, and in the last column those of the test that decides.

    Args:
        tests: For each model its grid, as in the details of ``epsilon_star.mixture``.
    """
    figure, axes = plt.subplots(1, len(tests), figsize=(8, 4.2), sharey=True)
    for axis, (name, grid) in zip(axes, tests.items(), strict=True):
        decided = np.full(len(grid["components"]), np.nan)
        decided[: len(grid["choice_p_values"])] = grid["choice_p_values"]
        shown = np.column_stack([grid["p_values"], decided])
        image = axis.imshow(shown, vmin=0, vmax=1, aspect="auto", origin="lower")
        axis.grid(visible=False)
        axis.axvline(shown.shape[1] - 1.5, color=INK, lw=1.5)
        every = 1 if shown.shape[1] <= _MOST_TICKS else 2
        places = [*range(0, shown.shape[1] - 1, every), shown.shape[1] - 1]
        labels = [*grid["sample_sizes"], "all"]
        axis.set_xticks(places, [labels[place] for place in places])
        axis.set_yticks(range(len(decided)), grid["components"])
        axis.set(xlabel="held-out records in the test", title=name)
        for row, column in np.argwhere(shown < _REJECTED):
            axis.text(column, row, "x", color=INK, ha="center", va="center")
    axes[0].set(ylabel="components of the mixture")
    figure.colorbar(image, ax=axes, label="p-value (x: below 0.05)")
    published = np.mean([np.array(grid["p_values"]) > _REJECTED for grid in tests.values()])
    one = [grid["choice_p_values"][0] > _REJECTED for grid in tests.values()]
    verdict = "accepts" if all(one) else "rejects" if not any(one) else "is divided on"
    finish(
        figure, f"{published:.0%} of the published p-values pass; the test that decides {verdict} one normal"
    )


def _frontier(means: pd.DataFrame) -> pd.DataFrame:
    """Return the strategies that none beats in both: less Epsilon*, and more utility; by ascending Epsilon*.

    Args:
        means: Indexed by strategy, with ``epsilon_star`` and ``utility``.
    """
    ordered = means.sort_values(["epsilon_star", "utility"], ascending=[True, False])
    return ordered[ordered["utility"] > ordered["utility"].cummax().shift(fill_value=-np.inf)]


def landscape(lines: pd.DataFrame, message: str, *, utility: str, log: bool = False) -> None:
    """Draw Figures 1 and 2: each strategy's mean Epsilon* and utility, with bars from the least to the largest model.

    Args:
        lines: A line for each model: ``strategy``, ``kind``, ``epsilon_star``, ``noise floor`` and ``utility``.
        message: What one sees.
        utility: What the utility is.
        log: Whether Epsilon* is on a logarithmic axis.
    """
    figure, axis = plt.subplots(figsize=(8, 5))
    grouped = lines.groupby("strategy", sort=False)
    means = grouped[["epsilon_star", "utility"]].mean().assign(kind=grouped["kind"].first())
    low, high = grouped["epsilon_star"].min(), grouped["epsilon_star"].max()
    axis.hlines(means["utility"], low, high, color=NEUTRAL, lw=0.6, alpha=0.4)
    axis.vlines(
        means["epsilon_star"],
        grouped["utility"].min(),
        grouped["utility"].max(),
        color=NEUTRAL,
        lw=0.6,
        alpha=0.4,
    )
    floor, left = (
        lines["noise floor"].mean(),
        means["epsilon_star"].min() / 2,
    )  # on a logarithmic axis, bars may go beyond
    axis.axvspan(left if log else 0, floor, color=NEUTRAL, alpha=0.15, lw=0, label="noise floor (mean)")
    best = _frontier(means)
    axis.plot(best["epsilon_star"], best["utility"], "--", color=MUTED, lw=1, label="Pareto frontier")
    for kind, look in _KINDS.items():
        part = means[means["kind"] == kind]
        axis.plot(part["epsilon_star"], part["utility"], **{"ls": "", "ms": 5.5, "label": kind, **look})
    axis.set(xlabel="Epsilon* (nats, one normal), mean and range of the models", ylabel=utility)
    if log:
        axis.margins(y=0.15)
        _name_baselines(axis, means)
        axis.set(xscale="log", xlim=(left, high.max() * 1.2))
        ticks = [tick for tick in (0.01, 0.03, 0.1, 0.3, 1, 3, 10) if left <= tick <= high.max() * 1.2]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
    else:
        axis.set_xlim(left=0)
    finish(figure, message, columns=4)


def _name_baselines(axis: plt.Axes, means: pd.DataFrame) -> None:
    """Write the epochs of each baseline above its point, each on a line of its own."""
    for place, (name, row) in enumerate(means[means["kind"] == "baseline"].iterrows()):
        words, point = str(name).removeprefix("baseline, "), (row["epsilon_star"], row["utility"])
        look = {"color": ACCENT, "fontsize": 9.5, "ha": "center", "va": "bottom"}
        axis.annotate(words, point, xytext=(0, 6 + 13 * place), textcoords="offset points", **look)


def by_strategy(beside: pd.DataFrame, message: str) -> None:
    """Draw one row for each strategy, with every estimate of its first model, in groups of a kind.

    Args:
        beside: Indexed by strategy.
        message: What one sees.
    """
    kinds = beside.index.str.split(",").str[0]
    ordered = beside.assign(kind=kinds, group=[list(_KINDS).index(kind) for kind in kinds])
    ordered = ordered.sort_values(["group", "one normal"])
    places = np.arange(len(ordered)) + 2.0 * ordered["group"].to_numpy()
    figure, axis = plt.subplots(figsize=(8, 1.8 + 0.1 * places.max()))
    axis.barh(places, ordered["noise floor"], height=1, color=NEUTRAL, alpha=0.25, lw=0, label="noise floor")
    signs: dict[str, dict[str, Any]] = {
        "mixture": {"marker": "s", "color": INK, "mfc": "none"},
        "counts": {"marker": "^", "color": NEUTRAL},
        "one normal": {"marker": "o", "color": ACCENT},
        "certified": {"marker": "|", "color": ACCENT, "ms": 8, "mew": 2},
    }
    for name, look in signs.items():
        axis.plot(ordered[name], places, **{"ls": "", "ms": 4.5, "label": name, **look})
    middles = pd.Series(places, index=ordered["kind"]).groupby(level=0, sort=False).mean()
    axis.set_yticks(middles, middles.index)
    axis.grid(axis="y", visible=False)
    axis.set(
        xlabel="Epsilon* (nats) of one model of each strategy",
        xlim=(-0.05, None),
        ylim=(places.max() + 1, -1),
    )
    finish(figure, message, columns=5)


def above_floor(lines: pd.DataFrame) -> str:
    """Return how many models are above their noise floor, in words.

    Args:
        lines: As for `landscape`.
    """
    above = int((lines["epsilon_star"] > lines["noise floor"]).sum())
    return f"{above} of {len(lines)} models are above their noise floor"


def on_frontier(lines: pd.DataFrame) -> Collection[str]:
    """Return the names of the strategies on the Pareto frontier.

    Args:
        lines: As for `landscape`.
    """
    return list(_frontier(lines.groupby("strategy")[["epsilon_star", "utility"]].mean()).index)
