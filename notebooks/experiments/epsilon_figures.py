"""The figures of the notebook on Epsilon*, from numbers that it has computed."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.simulation import Rates

__all__ = ["by_distance", "by_size", "by_strategy", "p_values", "ratios"]

_REJECTED = 0.05
_COLOURS = {"empirical": "C1", "parametric": "C0", "noise floor": "0.5", "certified": "C2"}


def ratios(exact: Rates, counted: Sequence[Rates], *, delta: float) -> None:
    """Draw Figure 3: the first two ratios of Equation 7, from the true rates and from those of samples.

    Args:
        exact: True rates, at ascending thresholds.
        counted: Rates of samples.
        delta: Of the ratios.
    """
    _, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharex=True, sharey=True)
    for axis, drawn, dots in ((axes[0], [exact], ""), (axes[1], counted, ".")):
        for rates in drawn:
            for name, colour in (("m1", "C0"), ("m2", "C1")):
                middle = (1 - rates.fnr + rates.fpr) / 2
                axis.semilogy(middle, rates.ratios(delta)[name], color=colour, lw=0.9, marker=dots, ms=2)
        axis.set(xlabel="(TPR + FPR)/2", ylim=(0.5, 5e6))
    axes[0].set(title="(a) true rates", ylabel="ratio in Equation 7 (log scale)")
    axes[1].set(title=f"(b) {len(counted)} samples")
    axes[0].legend(["(1 - δ - FNR)/FPR", "(1 - δ - FPR)/FNR"])
    plt.show()


def by_size(runs: pd.DataFrame) -> None:
    """Draw Figure 4: means and standard deviations by sample size, for identical losses.

    Args:
        runs: Of `experiments.simulation.simulated`, with identical losses.
    """
    _, axis = plt.subplots()
    for name, colour in _COLOURS.items():
        _bars(axis, runs.groupby("n")[name], name, colour)
    axis.axhline(0, color="k", lw=0.8, ls="--", label="truth")
    axis.set(
        xscale="log", xlabel="records in each group", ylabel="Epsilon* (nats), mean and s.d. of the runs"
    )
    axis.set(title="Figure 4: identical losses")
    axis.legend()
    plt.show()


def by_distance(runs: pd.DataFrame, truth: pd.DataFrame) -> None:
    """Draw Figure 5: means and standard deviations by the distance of the laws, a panel for each sample size.

    Args:
        runs: Of `experiments.simulation.simulated`.
        truth: True values, a column for each clip, indexed by the distance d.
    """
    sizes = runs["n"].unique()
    _, axes = plt.subplots(1, len(sizes), figsize=(11, 4.2), sharey=True)
    for axis, n in zip(axes, sizes, strict=True):
        for clip, line in (("clip δ", "--"), ("clip 0.001", ":")):
            axis.plot(truth[clip], color="k", ls=line, label=f"truth, {clip}")
        for name in ("parametric", "empirical", "certified"):
            _bars(axis, runs[runs["n"] == n].groupby("d")[name], name, _COLOURS[name])
        axis.set(xlabel="d (non-members are Gamma(2 + d, 5))", title=f"n = {n:,}", xticks=truth.index)
    axes[0].set(ylabel="Epsilon* (nats)")
    axes[0].legend(fontsize=8)
    plt.show()


def _bars(axis: plt.Axes, groups: pd.api.typing.SeriesGroupBy, name: str, colour: str) -> None:
    means = groups.mean()
    style = {"color": colour, "marker": "o", "ms": 4, "capsize": 3}
    axis.errorbar(means.index, means, yerr=groups.std(), label=name, **style)


def p_values(tests: Mapping[str, Mapping[str, list]]) -> None:
    """Draw Figure 6: p-values by components and sample size, and in the last column those of the test that decides.

    Args:
        tests: For each model its grid, as in the details of ``epsilon_star.mixture``.
    """
    fig, axes = plt.subplots(1, len(tests), figsize=(10, 4.6), sharey=True)
    for axis, (name, grid) in zip(axes, tests.items(), strict=True):
        decided = np.full(len(grid["components"]), np.nan)
        decided[: len(grid["choice_p_values"])] = grid["choice_p_values"]
        shown = np.column_stack([grid["p_values"], decided])
        image = axis.imshow(shown, vmin=0, vmax=1, aspect="auto", origin="lower")
        axis.grid(visible=False)
        axis.axvline(shown.shape[1] - 1.5, color="white", lw=3)
        axis.set(xlabel="n_samples", title=name, xticks=range(shown.shape[1]), yticks=range(len(decided)))
        axis.set_xticklabels([*grid["sample_sizes"], "ours"], rotation=60)
        axis.set_yticklabels(grid["components"])
        for row, column in np.argwhere(shown < _REJECTED):
            axis.text(column, row, "x", color="white", ha="center", va="center")
    axes[0].set(ylabel="components")
    fig.colorbar(image, ax=axes, label="p-value (x: below 0.05)")
    plt.show()


def by_strategy(beside: pd.DataFrame) -> None:
    """Draw one row for each strategy, with every estimate of its first model.

    Args:
        beside: Indexed by strategy.
    """
    _, axis = plt.subplots(figsize=(8, 1.6 + 0.22 * max(8, len(beside))))
    signs = {
        "one normal": ("o", "C0"),
        "mixture": ("s", "C3"),
        "counts": ("^", "C1"),
        "certified": ("D", "C2"),
        "noise floor": ("x", "0.5"),
    }
    places = range(len(beside))
    for name, (marker, colour) in signs.items():
        axis.plot(beside[name], places, ls="", marker=marker, ms=7, color=colour, label=name)
    axis.set(xlabel="Epsilon* (nats) of one model of each strategy", yticks=places, yticklabels=beside.index)
    axis.invert_yaxis()
    axis.legend(ncols=len(signs), loc="lower center", bbox_to_anchor=(0.3, 1.0))
    plt.show()
