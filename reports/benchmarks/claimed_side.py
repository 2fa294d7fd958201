"""What DP-SGD promises, beside dp_accounting, riskcal and prv-accountant: values within stated errors, times, calibration.

All four are needed, in an environment of its own (Python 3.11), from the root of this repository:

    python -m venv bench
    bench/bin/pip install . dp-accounting==0.6.0 riskcal prv-accountant
    OMP_NUM_THREADS=1 bench/bin/python reports/benchmarks/claimed_side.py

Ours is an interval. dp_accounting gives one too: its optimistic estimate (privacy buckets) and its pessimistic one (its
default, connect the dots), grid 1e-4, without an error of rounding. prv-accountant states a lower and an upper bound, with
errors of 0.01 in epsilon and 1e-9 in delta. riskcal asks dp_accounting's pessimistic law and states no error of its own. Each
is asked of its own neighbours: prv-accountant knows added records only, and riskcal's rate is for both orders of two
neighbours, which at a small false positive rate is that of the run with the record, as ours. A true positive rate of
dp_accounting is the least of its lines e^x FPR + delta(x), which holds for every law. Times are processor time of one answer
from nothing, the best of several. Takes ten minutes, half of it for riskcal's rates. The numbers of one run are in ``claimed_side.md``.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import prv_accountant
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from riskcal import analysis
from riskcal.accountants import CTDAccountant
from riskcal.calibration import blackbox, dpsgd

from auditor import theory
from auditor.core import DPSGD, Adjacency
from auditor.theory import privacy_loss

ADDED, REPLACED = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
GRID, EPSILON_ERROR, DELTA_ERROR = 1e-4, 1e-2, 1e-9
# For what the others lose in a double, and the search for our rate leaves above it; far below what any of them states.
ROUNDING = 1e-8
TRIES = 3

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """A training run and what is asked of it."""

    name: str
    noises: tuple[float, ...]
    rate: float
    steps: int
    epsilon: float
    delta: float = 1e-5
    fpr: float = 1e-3
    adjacency: Adjacency = ADDED

    @property
    def training(self) -> DPSGD:
        """The run, with as many steps at each noise."""
        if len(self.noises) == 1:
            return DPSGD(self.noises[0], self.rate, self.steps)
        each = self.steps // len(self.noises)
        return DPSGD([noise for noise in self.noises for _ in range(each)], self.rate)

    @property
    def words(self) -> str:
        """The setting as a cell of a table."""
        noise = (
            f"{self.noises[0]:g}" if len(self.noises) == 1 else f"{self.noises[0]:g} to {self.noises[-1]:g}"
        )
        neighbours = "added" if self.adjacency is ADDED else "replaced"
        return f"{self.name} | {noise} | {self.rate:g} | {self.steps:,} | {neighbours}"


SETTINGS = (
    Setting("ordinary", (1.0,), 0.01, 1000, 1.0),
    Setting("ordinary", (1.0,), 0.01, 1000, 1.0, adjacency=REPLACED),
    Setting("ordinary", (0.8,), 0.004, 5000, 1.0),
    Setting("ordinary", (1.5,), 0.02, 3000, 2.0),
    Setting("ordinary", (1.5,), 0.02, 3000, 2.0, adjacency=REPLACED),
    Setting("large batches", (5.0,), 0.2, 400, 1.0),
    Setting("large batches", (5.0,), 0.2, 400, 1.0, adjacency=REPLACED),
    Setting("every record", (30.0,), 1.0, 1000, 1.0),
    Setting("one step", (1.0,), 0.5, 1, 0.5),
    Setting("few draws", (0.8,), 0.001, 2, 0.1),
    Setting("few draws", (1.0,), 1e-4, 100, 0.01),
    Setting("few draws", (1.0,), 0.01, 10, 0.1, adjacency=REPLACED),
    Setting("little noise", (0.4,), 0.01, 1000, 4.0),
    Setting("little noise", (0.3,), 0.05, 50, 8.0),
    Setting("little noise", (0.25,), 0.01, 100, 4.0),
    Setting("little noise", (0.4,), 0.01, 200, 4.0, adjacency=REPLACED),
    Setting("many steps", (10.0,), 0.01, 100_000, 0.5),
    Setting("many steps", (2.0,), 0.001, 300_000, 0.5),
    Setting("many steps", (20.0,), 0.02, 200_000, 0.5, adjacency=REPLACED),
    Setting("100 noises", tuple(np.linspace(0.8, 2.0, 100).round(6).tolist()), 0.01, 1000, 1.0),
)


# --- What each tool says ---


def ours(setting: Setting) -> dict[str, Callable[[], Bounds]]:
    """The intervals of the exact law; an epsilon and a rate are bounds from above."""

    def law() -> theory.privacy_loss.PrivacyLoss:
        privacy_loss._law_of.cache_clear()  # noqa: SLF001 - each answer from nothing
        return theory.composed(setting.training, adjacency=setting.adjacency)

    def both(value: float) -> Bounds:
        return value, value

    def deltas(epsilon: float) -> Bounds:
        found = law()
        ends = [found.between(np.array([epsilon]), backward=order) for order in (False, True)]
        return max(float(low[0]) for low, _ in ends), max(float(high[0]) for _, high in ends)

    return {
        "TV": lambda: deltas(0.0),
        "delta": lambda: deltas(setting.epsilon),
        "epsilon": lambda: both(law().epsilon_at(setting.delta)),
        "TPR": lambda: both(float(law().tpr_at(setting.fpr))),
    }


def distribution(setting: Setting, *, pessimistic: bool) -> pld.PrivacyLossDistribution:
    """dp_accounting's law."""
    relation = (
        NeighboringRelation.ADD_OR_REMOVE_ONE
        if setting.adjacency is ADDED
        else NeighboringRelation.REPLACE_ONE
    )
    composed = None
    for noise in setting.noises:
        step = pld.from_gaussian_mechanism(
            noise,
            sampling_prob=setting.rate,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            value_discretization_interval=GRID,
            neighboring_relation=relation,
        ).self_compose(setting.steps // len(setting.noises))
        composed = step if composed is None else composed.compose(step)
    return composed


def lowest(loss: np.ndarray, mass: np.ndarray, fpr: float, never: float = 0.0) -> float:
    """The least of e^x FPR + sum of (1 - e^(x - loss)) over larger losses: the rate of the run with the record."""
    above = np.cumsum(mass[::-1])[::-1]
    with np.errstate(over="ignore", invalid="ignore"):
        shared = np.cumsum((mass * np.exp(-loss))[::-1])[::-1]
        lines = np.exp(loss) * (fpr - shared) + above + never
    return float(np.nanmin(lines))


def lowest_line(law: pld.PrivacyLossDistribution, fpr: float) -> float:
    """The rate that dp_accounting's law gives."""
    mass = law._pmf_remove.to_dense_pmf()  # noqa: SLF001 - there is no other way to the losses
    loss = (mass._lower_loss + np.arange(len(mass._probs))) * mass._discretization  # noqa: SLF001
    return lowest(loss, mass._probs, fpr, mass._infinity_mass)  # noqa: SLF001


ASKED: dict[str, Callable[[pld.PrivacyLossDistribution, Setting], float]] = {
    "TV": lambda law, _: float(law.get_delta_for_epsilon(0.0)),
    "delta": lambda law, setting: float(law.get_delta_for_epsilon(setting.epsilon)),
    "epsilon": lambda law, setting: float(law.get_epsilon_for_delta(setting.delta)),
    "TPR": lambda law, setting: lowest_line(law, setting.fpr),
}
BY_RISKCAL: dict[str, Callable[[pld.PrivacyLossDistribution, Setting], float]] = {
    "TV": lambda law, _: float(analysis.get_advantage_from_pld(law)),
    "TPR": lambda law, setting: 1 - float(analysis.get_beta_from_pld(law, alpha=setting.fpr)),
}


def by_prv(setting: Setting) -> dict[str, tuple[float, float, float]]:
    """prv-accountant's lower bound, estimate and upper bound of each quantity."""
    each = [setting.steps // len(setting.noises)] * len(setting.noises)
    accountant = prv_accountant.PRVAccountant(
        [
            prv_accountant.PoissonSubsampledGaussianMechanism(
                sampling_probability=setting.rate, noise_multiplier=noise
            )
            for noise in setting.noises
        ],
        eps_error=EPSILON_ERROR,
        delta_error=DELTA_ERROR,
        max_self_compositions=each,
    )
    return {
        "TV": accountant.compute_delta(0.0, each),
        "delta": accountant.compute_delta(setting.epsilon, each),
        "epsilon": accountant.compute_epsilon(setting.delta, each),
    }


# --- The tables ---


def timed(action: Callable[[], object], tries: int = TRIES) -> tuple[object, float]:
    """What an action returns, and the least processor time of several runs."""
    spent, found = [], None
    for _ in range(tries):
        start = time.process_time()
        found = action()
        spent.append(time.process_time() - start)
        if spent[0] > 1:
            break
    return found, min(spent)


def shown(value: float) -> str:
    """Eight digits."""
    return f"{value:.8g}"


def inside(bounds: Bounds, other: Bounds) -> str:
    """Whether two intervals have a point in common."""
    slack = ROUNDING * max(abs(bounds[1]), 1e-6)
    return "" if other[0] - slack <= bounds[1] and bounds[0] <= other[1] + slack else " **outside**"


def rows_of(setting: Setting) -> dict[str, str]:
    """One row for each quantity."""
    answers = {name: timed(action, 10) for name, action in ours(setting).items()}
    optimistic = distribution(setting, pessimistic=False)
    pessimistic, built = timed(lambda: distribution(setting, pessimistic=True))
    prv, prv_time = timed(lambda: by_prv(setting)) if setting.adjacency is ADDED else ({}, math.nan)
    rows = {}
    for name, (bounds, spent) in answers.items():
        ends = (ASKED[name](optimistic, setting), ASKED[name](pessimistic, setting))
        cells = [shown(bounds[1]), f"{bounds[1] - bounds[0]:.0e}" if bounds[1] > bounds[0] else ""]
        cells += [f"{shown(ends[0])} to {shown(ends[1])}{inside(bounds, ends)}", f"{built / spent:,.0f}"]
        if name in BY_RISKCAL:
            value = BY_RISKCAL[name](pessimistic, setting)
            short = value < bounds[0] * (1 - ROUNDING)  # it is to be a bound from above
            cells.append(shown(value) + (" **too low**" if short else ""))
        if name in prv:
            low, estimate, high = prv[name]
            cells += [
                f"{shown(estimate)} ({shown(low)} to {shown(high)}){inside(bounds, (low, high))}",
                f"{prv_time / spent:,.0f}",
            ]
        elif name != "TPR":
            cells += ["", ""]
        rows[name] = f"| {setting.words} | {' | '.join(cells)} |"
    return rows


TITLES = {
    "TV": "Total variation: the largest advantage",
    "delta": "Delta at an epsilon",
    "epsilon": "Epsilon at a delta of 1e-5",
    "TPR": "True positive rate at a false positive rate of 0.001",
}


def agreement() -> None:
    """Print a table for each quantity."""
    found = []
    for setting in SETTINGS:
        found.append(rows_of(setting))
        print(setting.words, file=sys.stderr, flush=True)
    for name, title in TITLES.items():
        columns = [
            "setting",
            "noise",
            "rate",
            "steps",
            "records",
            "auditor",
            "width",
            "dp_accounting",
            "its time",
        ]
        columns += ["riskcal"] if name in BY_RISKCAL else []
        columns += [] if name == "TPR" else ["prv-accountant", "its time"]
        print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
        print("\n".join(rows[name] for rows in found))


# --- Calibration: the noise that each finds for a promise, and whether it keeps it ---


@dataclass(frozen=True)
class Wish:
    """A promise for added records, riskcal's way to it, and what prv-accountant's law says of a noise."""

    words: str
    target: theory.WantedAdvantage | theory.WantedTPR | theory.WantedEpsilon
    rate: float
    steps: int
    by_riskcal: Callable[[], float]
    reached: Callable[[prv_accountant.PRVAccountant, int], float]


def finely(noise: float, rate: float, steps: int) -> prv_accountant.PRVAccountant:
    """prv-accountant on a grid ten times finer, for its estimates; its bounds are then 0.001 apart in epsilon."""
    step = prv_accountant.PoissonSubsampledGaussianMechanism(
        sampling_probability=rate, noise_multiplier=noise
    )
    return prv_accountant.PRVAccountant(
        [step], eps_error=EPSILON_ERROR / 10, delta_error=DELTA_ERROR / 10, max_self_compositions=[steps]
    )


def rate_at(fpr: float) -> Callable[[prv_accountant.PRVAccountant, int], float]:
    """The least of the lines e^x FPR + delta(x) of prv-accountant's law."""

    def reached(law: prv_accountant.PRVAccountant, steps: int) -> float:
        composed = law.compute_composition([steps])
        return lowest(np.asarray(composed.domain.ts(), float), np.asarray(composed.pmf, float), fpr)

    return reached


WISHES = (
    Wish(
        "advantage at most 0.1",
        theory.WantedAdvantage(0.1, ADDED),
        0.01,
        1000,
        lambda: dpsgd.find_noise_multiplier_for_advantage(0.1, 0.01, 1000),
        lambda law, steps: law.compute_delta(0.0, [steps])[1],
    ),
    Wish(
        "advantage at most 0.02",
        theory.WantedAdvantage(0.02, ADDED),
        0.002,
        10_000,
        lambda: dpsgd.find_noise_multiplier_for_advantage(0.02, 0.002, 10_000),
        lambda law, steps: law.compute_delta(0.0, [steps])[1],
    ),
    Wish(
        "TPR at most 0.05 at FPR 0.01",
        theory.WantedTPR(0.05, 0.01, ADDED),
        0.01,
        1000,
        lambda: dpsgd.find_noise_multiplier_for_err_rates(0.01, 0.95, 0.01, 1000),
        rate_at(0.01),
    ),
    Wish(
        "TPR at most 0.01 at FPR 0.001",
        theory.WantedTPR(0.01, 0.001, ADDED),
        0.02,
        200,
        lambda: dpsgd.find_noise_multiplier_for_err_rates(0.001, 0.99, 0.02, 200),
        rate_at(0.001),
    ),
    Wish(
        "epsilon at most 2 at delta 1e-5",
        theory.WantedEpsilon(2.0, 1e-5, ADDED),
        0.01,
        1000,
        lambda: blackbox.find_noise_multiplier_for_epsilon_delta(CTDAccountant, 0.01, 1000, 2.0, 1e-5),
        lambda law, steps: law.compute_epsilon(1e-5, [steps])[1],
    ),
)


def calibration() -> None:
    """Print the noise that each finds, what prv-accountant says of it, and the time."""
    print(
        "\n## Calibration\n\n| wanted, added records | rate | steps | auditor: noise | reached | riskcal: noise | reached"
        " | its time |\n|" + " --- |" * 8
    )
    for wish in WISHES:

        def found(wish: Wish = wish) -> float:
            privacy_loss._law_of.cache_clear()  # noqa: SLF001
            return theory.noise_multiplier_for(wish.target, sampling_rate=wish.rate, steps=wish.steps).value

        (mine, spent), (its, took) = timed(found, 5), timed(wish.by_riskcal, 2)
        cells = []
        for noise in (mine, its):
            reached = wish.reached(finely(noise, wish.rate, wish.steps), wish.steps)
            cells += [f"{noise:.6g}", f"{reached:.6g}"]
        print(
            f"| {wish.words} | {wish.rate:g} | {wish.steps:,} | {' | '.join(cells)} | {took / spent:,.0f} |"
        )


def main() -> None:
    """Print everything."""
    names = ("dp-accounting", "riskcal", "prv-accountant", "numpy", "scipy")
    print(", ".join(f"{name} {version(name)}" for name in names))
    calibration()
    agreement()


if __name__ == "__main__":
    main()
