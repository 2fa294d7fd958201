"""Tables for the notebook on membership bounds: what attacks reached, with intervals, beside what nobody can exceed.

An interval is made for all attacks of a table together (Bonferroni), so that in 95% of tables every one of them holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from shared import INK

from auditor import DPSGD, theory
from experiments import gaussian

__all__ = [
    "ADDED",
    "ALPHA",
    "DELTA",
    "REPLACED",
    "bound",
    "crossed",
    "five_epochs",
    "from_epsilon",
    "gaussian_table",
    "pinsker",
    "prior_table",
    "rate_curves",
    "rates_table",
    "same_epsilon_table",
    "training_of",
    "with_attacks",
]

Case = Mapping[str, Any]
ADDED, REPLACED = "add-remove", "replace-one"
DELTA = 1e-5  # of every epsilon
ALPHA = 0.05  # of all intervals of a table together


def bound(training: DPSGD, adjacency: str = ADDED) -> float:
    """Return the largest advantage of any attacker, exactly: the total variation (Theorem 6)."""
    return theory.total_variation(training, adjacency=adjacency).value


def from_epsilon(training: DPSGD) -> float:
    """Return the largest advantage that one epsilon at ``DELTA`` allows (Theorem 3)."""
    return theory.humphries(theory.epsilon(training, delta=DELTA)).value


def pinsker(training: DPSGD) -> float:
    """Return the largest advantage by Pinsker's inequality (Equation 5)."""
    return theory.pinsker_renyi(training).value


def five_epochs(noise: float, q: float) -> DPSGD:
    """Return training for 5 epochs at sampling rate q: int(5/q) steps."""
    return DPSGD(noise, q, int(5 / q + 1e-9))


def training_of(case: Case) -> DPSGD:
    """Return the training that a case describes."""
    steps = case["steps"] if "steps" in case else round(case["epochs"] / case["sampling_rate"])
    return DPSGD(case["noise_multiplier"], case["sampling_rate"], steps)


def crossed(table: pd.DataFrame, *, limit: str = "bound") -> str:
    """Say how many attacks of a table are shown, at 95% for all together, to do better than a column of it."""
    return f"{int((table.lower > table[limit]).sum())} of {len(table)} attacks are shown to exceed '{limit}'"


def with_attacks(
    axes: Any, table: pd.DataFrame, *, x: str, label: str, factor: float = 1.0, **look: Any
) -> None:
    """Draw attacks with their intervals, moved sideways by a factor; ``x`` has an interval too where the table has one."""
    tall = np.abs(table[["lower", "upper"]].to_numpy().T - table.attack.to_numpy())
    sides = [f"{x}_lower", f"{x}_upper"]
    wide = np.abs(table[sides].to_numpy().T - table[x].to_numpy()) if sides[0] in table else None
    place = table[x] * factor
    look = {"fmt": "o", "color": INK, "ms": 4, "lw": 1, "capsize": 2, **look}
    axes.errorbar(place, table.attack, yerr=tall, xerr=wide, label=label, **look)


def gaussian_table(cases: Sequence[Case], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a line for each run of the experiment of Appendix F.1: the best attack, and the three bounds."""
    rows = []
    for case, seen in zip(cases, results, strict=True):
        won = np.sum((seen["score"] > 0) == seen["present"])
        found = gaussian.advantage(won, games=case["runs"], confidence=1 - ALPHA / len(cases))
        run = training_of(case)
        rows.append(
            {
                "q": run.sampling_rate,
                "noise": run.noise_multiplier,
                "epsilon": theory.epsilon(run, delta=DELTA).value,
                "attack": found.value,
                "lower": found.lower,
                "upper": found.upper,
                "bound": bound(run),
                "Pinsker": pinsker(run),
                "from epsilon": from_epsilon(run),
            }
        )
    return pd.DataFrame(rows)


def same_epsilon_table(setups: Mapping[str, tuple[float, int]], *, epsilons: Sequence[float]) -> pd.DataFrame:
    """Return a line for each setup (sampling rate, steps) and epsilon: the noise for it, and what it lets attackers do."""
    rows = []
    for epsilon in epsilons:
        wanted = theory.WantedEpsilon(epsilon, delta=DELTA)
        for name, (rate, steps) in setups.items():
            noise = theory.noise_multiplier_for(wanted, sampling_rate=rate, steps=steps).value
            run = DPSGD(noise, rate, steps)
            line = {"epsilon": epsilon, "batches": name, "noise": noise, "advantage": bound(run)}
            tpr = {
                f"TPR at FPR {f:g}": theory.tpr_exact(run, fpr=f, adjacency=ADDED).value for f in (1e-3, 0.1)
            }
            rows.append(line | tpr)
    return pd.DataFrame(rows).set_index("epsilon")


def rate_curves(training: DPSGD, *, fprs: Sequence[float], slopes: Sequence[float]) -> pd.DataFrame:
    """Return, at each false positive rate, the largest true positive rate three ways.

    From one epsilon, as the best test exactly, and by Corollary 11 as the least over so many values of a.
    """
    claim = theory.epsilon(training, delta=DELTA)
    lines = [(a, theory.total_variation_a(training, a=a)) for a in slopes]
    rows = []
    for fpr in fprs:
        exact = theory.tpr_exact(training, fpr=fpr, adjacency=ADDED).value
        corollary = min((2 * fpr + 2 * value + a - 1) / (2 * a) for a, value in lines)
        corollary = min(max(corollary, fpr), 1.0)
        loose = theory.tpr_from_epsilon(claim, fpr=fpr).value
        rows.append({"fpr": fpr, "from epsilon": loose, "exact": exact, "Corollary 11": corollary})
    return pd.DataFrame(rows)


def rates_table(
    cases: Sequence[Case], results: Sequence[Mapping[str, Any]], *, aims: Sequence[float]
) -> pd.DataFrame:
    """Return a line for each false positive rate that an attacker aims at; thresholds come from other runs.

    ``bound`` is the largest true positive rate at the upper end of the interval of the false positive rate.
    """
    rows = []
    level = 1 - ALPHA / (2 * len(aims) * len(cases))
    for number, (case, seen) in enumerate(zip(cases, results, strict=True)):
        for aim in aims:
            (fpr, least, most), (tpr, lower, upper) = gaussian.rates_at(
                seen["score"], seen["present"], fpr=aim, confidence=level
            )
            allowed = theory.tpr_exact(training_of(case), fpr=most, adjacency=ADDED).value
            line = {"case": number, "fpr": fpr, "attack": tpr, "lower": lower, "upper": upper}
            rows.append(line | {"bound": allowed, "fpr_lower": least, "fpr_upper": most})
    return pd.DataFrame(rows)


def prior_table(cases: Sequence[Case], results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a line for each prior: what the best attacker gains over not looking, and the corrected bound."""
    rows = []
    for case, seen in zip(cases, results, strict=True):
        p = case["prior"]
        won = np.sum((seen["score"] > np.log((1 - p) / p)) == seen["present"])
        found = gaussian.advantage(won, games=case["runs"], confidence=1 - ALPHA / len(cases))
        # `found` is 2 x share - 1; under a prior the advantage is 2 x share - 2 max(p, 1 - p).
        free = 2 * max(p, 1 - p) - 1
        limit = theory.advantage_under_prior(training_of(case), prior=p).value
        line = {"prior": p, "attack": found.value - free, "lower": found.lower - free}
        rows.append(line | {"upper": found.upper - free, "bound": limit})
    return pd.DataFrame(rows)
