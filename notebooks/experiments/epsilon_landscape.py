"""The landscapes of Negoescu et al. 2024: which strategies, every estimate of a model, and what the paper says of them."""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import auditor
from experiments.dp_training import DATA
from experiments.grid import run_all
from experiments.landscape import (
    Strategy,
    adult_grid,
    audit_of,
    audits,
    folder_of,
    location30_grid,
    purchase100_grid,
    run,
    small_grid,
    strategy_of,
    table,
)

__all__ = [
    "adult_claims",
    "adult_strategies",
    "averages",
    "compared",
    "estimates_of",
    "estimates_of_kept",
    "every_estimate",
    "first_model",
    "mixtures_of_noise",
    "overfitted_claims",
    "overfitted_strategies",
]

_ALL_ADULT_BELOW, _ALL_DP_BELOW = 0.3, 1.0


def adult_strategies(*, full: bool) -> list[Strategy]:
    """Return the published grid, or three strategies; on Adult where ``ADULT`` names its folder, else on a stand-in.

    Args:
        full: Whether the published grid is asked for, which needs Adult.
    """
    if full:
        return list(adult_grid())
    if not os.environ.get("ADULT"):
        return list(small_grid())
    return [replace(item, data="adult", n_train=None, n_test=None) for item in small_grid()]


def overfitted_strategies(*, full: bool) -> list[Strategy]:
    """Return the strategies for three layers of 100 nodes, on Purchase-100, Location-30 or 320 records of a stand-in.

    Args:
        full: Whether the published grid is asked for; otherwise two baselines and one with DP-SGD of it.
    """
    grids = {"purchase100": purchase100_grid, "location30": location30_grid}
    named = [grid for name, grid in grids.items() if os.environ.get(DATA[name])]
    if not named:
        base = Strategy("stand-in", 10, 64, hidden="100-100-100", n_train=320, n_test=320)
        private = replace(base, epsilon=1, clip=1, microbatches=32)
        longer = [replace(base, epochs=epochs) for epochs in (10, 50, 100)]
        return [*longer, private, replace(private, epsilon=100)]
    found = named[0]()
    return list(found) if full else [found[0], found[1], found[3]]


def first_model(results: Sequence[Mapping[str, Any]], *, private: bool) -> Mapping[str, Any]:
    """Return the first model of the last strategy with or without DP-SGD."""
    return [item for item in results if (item["epsilon"] is not None) == private and item["repeat"] == 0][-1]


def compared(results: Sequence[Mapping[str, Any]]) -> tuple[pd.DataFrame, auditor.AuditsComparison]:
    """Audit every model that did not diverge, and set the models beside each other by their published Epsilon*.

    The members count as a sample of all that might have been trained on, so that a certified bound above 0 is evidence of
    leakage; of one finite set it is above 0 by chance as well.

    Args:
        results: Of `experiments.landscape.run`.

    Returns:
        A line for each model, with the Epsilon* below which 95% of relabellings of its records are; and the comparison.
    """
    kept = [item for item in results if not item["diverged"]]
    categories = ["without DP-SGD" if item["epsilon"] is None else "with DP-SGD" for item in kept]
    about = {"result": list(range(1, len(kept) + 1)), "category": categories}
    audited = audits(kept, coverage=auditor.Sample())
    comparison = auditor.comparison.compare_audits(audited, about=about, measure="epsilon_star.gaussian")
    fits = [item.estimate("epsilon_star.gaussian").details for item in audited]
    lines = table(kept, audited)
    lines["noise floor"] = [fit["noise_floor"]["q95"] for fit in fits]
    return lines, comparison


def averages(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the means over each strategy's models.

    Args:
        lines: Of `compared`.
    """
    shown = ["epsilon_star", "noise floor", "certified", "utility", "train_accuracy", "stated", "corrected"]
    return lines.groupby("strategy", sort=False)[shown].mean().round(3)


def every_estimate(
    results: Sequence[Mapping[str, Any]], *, components: int, full: bool, verbose: int = 0
) -> pd.DataFrame:
    """Return every estimate of the first model of each strategy, indexed by strategy.

    Args:
        results: Of `experiments.landscape.run`.
        components: Of the mixtures, at most.
        full: Whether the models are kept in their folder; then their estimates are computed in parallel and kept too.
        verbose: As for `experiments.grid.run_all`.
    """
    first = [item for item in results if item["repeat"] == 0 and not item["diverged"]]
    strategies = [strategy_of(item) for item in first]
    if full:
        cases = [{**strategy.case(repeat=0), "components": components} for strategy in strategies]
        folder = folder_of(strategies[0].data).with_name(f"estimates-{strategies[0].data}")
        rows = run_all(estimates_of_kept, cases, folder=folder, verbose=verbose)
    else:
        rows = [estimates_of(item, components=components) for item in first]
    return pd.DataFrame(rows, index=[strategy.name for strategy in strategies])


def estimates_of_kept(case: Mapping[str, Any], *, seed: int) -> dict[str, Any]:  # noqa: ARG001
    """Return every estimate of a model that is in its folder: a task for `experiments.grid.run_all`.

    Args:
        case: Of `Strategy.case`, with ``components``.
        seed: Of nothing: an audit has its own.
    """
    model = {name: value for name, value in case.items() if name not in ("repeat", "components")}
    (result,) = run([Strategy(**model)], repeats=1, folder=folder_of(str(case["data"])), workers=1)
    return estimates_of(result, components=int(case["components"]))


def estimates_of(result: Mapping[str, Any], *, components: int) -> dict[str, Any]:
    """Return every estimate of one model.

    Args:
        result: Of `experiments.landscape.run`.
        components: Of the mixtures, at most.
    """
    found = audit_of(result, coverage=auditor.Sample(), mixture=auditor.Mixture(components))
    normal, mixture = found.estimate("epsilon_star.gaussian"), found.estimate("epsilon_star.mixture")
    return {
        "one normal": normal.value,
        "mixture": mixture.value,
        "counts": found.estimate("epsilon_star.empirical").value,
        "certified": found.estimate("epsilon_bound.clopper_pearson").value,
        "noise floor": normal.details["noise_floor"]["q95"],
        "trained to": math.inf if result["epsilon"] is None else float(result["epsilon"]),
        "normal rejected": bool(normal.details["fit"]["rejected"]),
        "mixture rejected": bool(mixture.details["fit"]["rejected"]),
    }


def mixtures_of_noise(result: Mapping[str, Any], *, components: int, repeats: int) -> list[float]:
    """Return the Epsilon* of mixtures where a model's records are relabelled at random, so that nothing is to be found.

    Args:
        result: Of `experiments.landscape.run`.
        components: Of the mixtures, at most.
        repeats: Relabellings.
    """
    rng = np.random.default_rng(0)
    pooled, n = np.concatenate([result["member_loss"], result["nonmember_loss"]]), len(result["member_loss"])
    values = []
    for _ in range(repeats):
        mixed = rng.permutation(pooled)
        relabelled = {**result, "member_loss": mixed[:n], "nonmember_loss": mixed[n:]}
        found = audit_of(relabelled, mixture=auditor.Mixture(components)).estimate("epsilon_star.mixture")
        values.append(float(found.value or 0.0))
    return values


def adult_claims(lines: pd.DataFrame, frontier: Collection[str]) -> pd.DataFrame:
    """Return each claim of Section 4.2 about Adult, whether it holds here, and what was found.

    Args:
        lines: Of `experiments.landscape.table`.
        frontier: Names of the strategies on the Pareto frontier.
    """
    baselines, private = _means(lines)
    longer = baselines.drop("baseline, 1 epoch", errors="ignore").min()
    largest = lines["epsilon_star"].max()
    on = [name for name in private.index if name in frontier]
    return _frame(
        [
            ("Epsilon* of every model is below 0.3", largest < _ALL_ADULT_BELOW, f"largest {largest:.2f}"),
            _rising(baselines),
            (
                "DP strategies are below all baselines of 5 or more epochs",
                private.max() < longer,
                f"{(private < longer).sum()} of {len(private)}; largest {private.max():.2f} against {longer:.2f}",
            ),
            (
                "the elbow of the frontier is the baseline of one epoch",
                "baseline, 1 epoch" in frontier,
                f"on the frontier: {'; '.join(frontier)}",
            ),
            (
                "most DP strategies are off the frontier",
                2 * len(on) < len(private),
                f"{len(on)} of {len(private)} on it",
            ),
            _below_its_epsilon(lines),
        ]
    )


def overfitted_claims(lines: pd.DataFrame) -> pd.DataFrame:
    """Return each claim of Section 4.2 about the over-fitted network, whether it holds here, and what was found.

    Args:
        lines: Of `experiments.landscape.table`.
    """
    baselines, _ = _means(lines)
    of_dp = lines.loc[lines["kind"] != "baseline", "epsilon_star"].max()
    utility = lines[lines["kind"] == "baseline"].groupby("strategy", sort=False)["utility"].mean()
    accuracy = lines.loc[lines["kind"] == "baseline", "train_accuracy"].max()
    factor = baselines.max() / of_dp
    return _frame(
        [
            _rising(baselines),
            ("so does the test accuracy", utility.is_monotonic_increasing, _listed(utility)),
            ("the training accuracy reaches 100%", accuracy == 1, f"{accuracy:.1%}"),
            ("Epsilon* of every DP model is below 1", of_dp < _ALL_DP_BELOW, f"largest {of_dp:.2f}"),
            (
                "DP brings the largest Epsilon* down by a factor of about 8 (printed: 800%)",
                factor > 7.5,
                f"{baselines.max():.2f} to {of_dp:.2f}: a factor of {factor:.1f}",
            ),
            _below_its_epsilon(lines),
        ]
    )


def _means(lines: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Mean Epsilon* of every baseline and of every strategy with DP-SGD, in the order of the lines."""
    base = lines["kind"] == "baseline"
    found = [
        part.groupby("strategy", sort=False)["epsilon_star"].mean() for part in (lines[base], lines[~base])
    ]
    return found[0], found[1]


def _rising(baselines: pd.Series) -> tuple[str, bool, str]:
    return (
        "Epsilon* of baselines rises with the epochs",
        baselines.is_monotonic_increasing,
        _listed(baselines),
    )


def _below_its_epsilon(lines: pd.DataFrame) -> tuple[str, bool, str]:
    private = lines[lines["kind"] != "baseline"]
    below = {
        name: int((private["epsilon_star"] < private[name].fillna(math.inf)).sum())
        for name in ("stated", "corrected")
    }
    return (
        "Epsilon* of every DP model is below the epsilon it was trained with",
        below["stated"] == len(private),
        f"of {len(private)}: {below['stated']} below it as stated, {below['corrected']} as corrected for microbatches",
    )


def _listed(values: pd.Series) -> str:
    return ", ".join(f"{name.removeprefix('baseline, ')}: {value:.2f}" for name, value in values.items())


def _frame(rows: list[tuple[str, bool, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        [(claim, "yes" if holds else "NO", found) for claim, holds, found in rows],
        columns=["the paper's claim", "holds here", "found"],
    )
