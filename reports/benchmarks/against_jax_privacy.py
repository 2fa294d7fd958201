"""Certified bounds beside those of jax_privacy's CanaryScoreAuditor: time, mean bound, false alarms and coverage.

Both libraries are needed, in an environment of its own (Python 3.11 or later), from the root of this repository:

    python -m venv bench
    bench/bin/pip install . jax-privacy
    OMP_NUM_THREADS=1 bench/bin/python reports/benchmarks/against_jax_privacy.py

Compared is the same kind of bound: Clopper-Pearson limits, the larger of TPR/FPR and TNR/FNR, nominal 95%, threshold
chosen by the method. Theirs: Bonferroni over the corners of the curve's hull (their default; the number of corners is
counted in the same data, so that its level is not proven) and a split in halves. The last table counts how often a claim
about training is refuted by runs, by its whole curve and by such a bound at one delta. Times are processor time, the best of
several tries, raw losses to bound. Takes a few minutes; ``--quick`` a tenth of the runs. The numbers of one run are in
``against_jax_privacy.md``.
"""

import math
import sys
import time
from collections.abc import Callable

import numpy as np
from jax_privacy import auditing
from scipy import stats

import auditor
from auditor import theory
from auditor.core import ClopperPearson, Melded, RankGrid, Split
from auditor.estimators import clopper_pearson, joint_test
from auditor.estimators.betting import Bets, Lines
from auditor.theory import claimed_curve

DELTA = 1e-5
ALPHA = 0.05
MILLION = 1_000_000
EDGE = 0.1

Method = Callable[[np.ndarray, np.ndarray], float]


def ours(rule: RankGrid) -> Method:
    """Our bound of member and non-member losses."""
    return lambda member, nonmember: (
        clopper_pearson(auditor.Losses(member, nonmember), delta=DELTA, rule=rule).value
    )


def theirs(strategy: auditing.ThresholdStrategy) -> Method:
    """jax_privacy's bound; it calls high scores members, so the losses change sign."""
    return lambda member, nonmember: auditing.CanaryScoreAuditor(-member, -nonmember).epsilon_clopper_pearson(
        ALPHA, DELTA, one_sided=False, threshold_strategy=strategy
    )


METHODS: dict[str, Method] = {
    "auditor": ours(RankGrid()),
    "auditor, melded": ours(RankGrid(interval=Melded())),
    "auditor, two limits": ours(RankGrid(interval=ClopperPearson())),
    "jax_privacy, Bonferroni": theirs(auditing.Bonferroni()),
    "jax_privacy, split": theirs(auditing.Split(0.5, seed=0)),
}


def best_time(action: Callable[[], object], tries: int) -> float:
    """The least processor time of several runs, in seconds."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return min(spent)


def times() -> None:
    """Processor time at 1e6 + 1e6 losses, as multiples of the default's."""
    rng = np.random.default_rng(0)
    draw = rng.normal(-1, 1, MILLION), rng.normal(0, 1, MILLION)
    print("\n| method | input | relative | seconds here |\n| --- | --- | ---: | ---: |")
    fastest = math.nan
    for handed_over in (False, True):
        # `Losses` copies arrays that somebody could still write to, and keeps read-only ones as they are.
        for array in draw:
            array.setflags(write=not handed_over)
        for name, method in METHODS.items():
            seconds = best_time(lambda method=method: method(*draw), 9)
            fastest = seconds if math.isnan(fastest) else fastest
            kind = "read-only" if handed_over else "writable"
            print(f"| {name} | {kind} | {seconds / fastest:.1f} | {seconds:.4f} |")


def normals(mu: float) -> Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]:
    """Members ``mu`` standard deviations below the others."""
    return lambda rng, n: (rng.normal(-mu, 1, n), rng.normal(0, 1, n))


def answers(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response, epsilon 1: scores of two values."""
    right = 1 / (1 + math.exp(-1))
    return (rng.random(n) > right).astype(float), (rng.random(n) < right).astype(float)


def one_tail(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A tenth of the others stands out with high losses, where members are e times as rare."""
    high = rng.random(n) < EDGE / math.e, rng.random(n) < EDGE
    return high[0] + rng.random(n), high[1] + rng.random(n)


LAWS = {
    "N(-1, 1) against N(0, 1)": (normals(1.0), 4.377178),
    "N(-2, 1) against N(0, 1)": (normals(2.0), 9.997256),
    "randomised response, epsilon 1": (answers, 1.0),
    "high tail only, epsilon 1": (one_tail, 1.0),
}
RUNS = {300: 400, 1000: 400, 10_000: 100, 100_000: 20}


def mean_bounds(share: float) -> None:
    """Mean bounds, and how often they exceed the truth, on the same draws for every method."""
    print(
        "\n| losses | n | truth |", " | ".join(METHODS), "|\n| --- | ---: | ---: |" + " ---: |" * len(METHODS)
    )
    for number, (law, (draws, truth)) in enumerate(LAWS.items()):
        for n, runs in RUNS.items():
            rng = np.random.default_rng([n, number])
            every = (draws(rng, n) for _ in range(max(4, round(share * runs))))
            found = np.array([[method(*draw) for method in METHODS.values()] for draw in every])
            spread = found.std(axis=0, ddof=1) / math.sqrt(len(found))
            cells = [
                f"{mean:.3f} ({1.96 * error:.3f}), {100 * np.mean(column > truth):.0f}% above"
                for mean, error, column in zip(found.mean(axis=0), spread, found.T, strict=True)
            ]
            print(f"| {law} | {n:,} | {truth:.3f} |", " | ".join(cells), "|", flush=True)


def false_alarms(share: float) -> None:
    """How often a bound above 0 is reported for identical distributions, with the 95% binomial interval."""
    header = "\n| noise: members, non-members | runs |"
    print(header, " | ".join(METHODS), "|\n| --- | ---: |" + " ---: |" * len(METHODS))
    for n1, n0, runs in ((1000, 1000, 4000), (20_000, 200, 2000), (100_000, 50, 1500)):
        rng, tries = np.random.default_rng(n1), round(share * runs)
        alarms = np.zeros(len(METHODS), dtype=int)
        for _ in range(tries):
            draw = rng.random(n1), rng.random(n0)
            alarms += [method(*draw) > 0 for method in METHODS.values()]
        print(f"| {n1:,}, {n0:,} | {tries:,} |", " | ".join(rate(int(count), tries) for count in alarms), "|")


def rate(misses: int, runs: int) -> str:
    """A rate in percent with its interval."""
    low, high = stats.binomtest(misses, runs).proportion_ci(method="exact")
    return f"{100 * misses / runs:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def coverage(share: float) -> None:
    """How often the bound exceeds the truth where a whole range of thresholds attains it (TPR = e FPR on a quarter)."""
    epsilon, edge = 1.0, 0.25
    print("\n| members e times as dense below 0.25 | runs |", " | ".join(METHODS), "|")
    print("| --- | ---: |" + " ---: |" * len(METHODS))
    for n1, n0, runs in ((1000, 1000, 2000), (100_000, 50, 1000)):
        rng, tries = np.random.default_rng(n0), round(share * runs)
        low = edge * math.exp(epsilon)
        truth = max(epsilon, math.log((1 - edge) / (1 - low)))
        above = np.zeros(len(METHODS), dtype=int)
        for _ in range(tries):
            inside = rng.random(n1) < low
            member = np.where(inside, edge * rng.random(n1), edge + (1 - edge) * rng.random(n1))
            draw = member, rng.random(n0)
            above += [method(*draw) > truth for method in METHODS.values()]
        print(
            f"| {n1:,}, {n0:,}; truth {truth:.3f} | {tries:,} |",
            " | ".join(rate(int(c), tries) for c in above),
            "|",
        )


# --- A claim about training, refuted by runs ---

MU = 1.0
CLAIMED = claimed_curve(auditor.DPSGD(1 / MU, 1.0, 1)).curve
CLAIMED_EPSILON = theory.gaussian_epsilon(MU, delta=DELTA)


def joint(member: np.ndarray, nonmember: np.ndarray) -> bool:
    """Every threshold at once against the whole claimed curve: the verdict of `auditor.audit_runs`."""
    test = joint_test.of_curve(member.size, nonmember.size, CLAIMED)
    return test.judge(auditor.Losses(member, nonmember), alpha=ALPHA).rejected(ALPHA)


def sequential(member: np.ndarray, nonmember: np.ndarray) -> bool:
    """Bets on the pairs in their order: the verdict of `auditor.audit_runs` with `auditor.Sequential`."""
    return runs_until_refuted(member, nonmember) <= 2 * member.size


def runs_until_refuted(member: np.ndarray, nonmember: np.ndarray) -> float:
    """Runs of both worlds after which the bets have won enough; infinite if never."""
    bets = Bets(Lines.of_curve(CLAIMED))
    for pair in zip(member.tolist(), nonmember.tolist(), strict=True):
        bets.add(*pair)
        if bets.most >= -math.log(ALPHA):
            return 2 * bets.pairs
    return math.inf


def one_point(member: np.ndarray, nonmember: np.ndarray) -> bool:
    """Two limits at a threshold chosen on half of the runs, against epsilon at one delta: ours until 2026."""
    found = clopper_pearson(auditor.Losses(member, nonmember), delta=DELTA, rule=Split(0.5, seed=0))
    return found.value > CLAIMED_EPSILON


def two_limits(member: np.ndarray, nonmember: np.ndarray) -> bool:
    """The same two limits against the whole claimed curve, at the threshold that shows most on half of the runs."""
    half = member.size // 2

    def excess(thresholds: np.ndarray, part: slice) -> np.ndarray:
        groups = np.sort(member[part]), np.sort(nonmember[part])
        hits, alarms = (np.searchsorted(group, thresholds, side="right") for group in groups)
        size = groups[0].size
        least = np.nan_to_num(stats.beta.ppf(ALPHA / 2, hits, size - hits + 1))
        most = np.nan_to_num(stats.beta.isf(ALPHA / 2, alarms + 1, size - alarms), nan=1.0)
        return least - np.interp(most, CLAIMED.fpr, CLAIMED.tpr)

    scores = np.concatenate([member[:half], nonmember[:half]])
    chosen = scores[np.argmax(excess(scores, slice(half)))]
    return bool(excess(np.array([chosen]), slice(half, None))[0] > 0)


REFUTED = {
    "auditor, every threshold": joint,
    "auditor, bets": sequential,
    "two limits after a split, whole curve": two_limits,
    "two limits after a split, one delta": one_point,
    **{
        f"{name}, one delta": lambda member, nonmember, method=method: (
            method(member, nonmember) > CLAIMED_EPSILON
        )
        for name, method in METHODS.items()
        if "jax" in name
    },
}


def refutations(share: float) -> None:
    """How often a claim of mu = 1 is refuted, and after how many runs by bets; all runs of both worlds are counted."""
    tries = round(share * 300)
    print(f"\n| true mu | runs | {' | '.join(REFUTED)} |\n| ---: | ---: |{' ---: |' * len(REFUTED)}")
    for mu in (1.0, 1.5, 2.0, 4.0):
        for runs in (60, 100, 200, 400, 1000):
            rng, found = np.random.default_rng([runs, round(10 * mu)]), np.zeros(len(REFUTED))
            for _ in range(tries):
                draw = rng.normal(-mu, 1, runs // 2), rng.normal(0, 1, runs // 2)
                found += [method(*draw) for method in REFUTED.values()]
            print(f"| {mu:g} | {runs:,} |", " | ".join(f"{100 * count / tries:.0f}%" for count in found), "|")
    print("\n| true mu | median runs until the bets refute |\n| ---: | ---: |")
    for mu in (1.5, 2.0, 4.0):
        rng = np.random.default_rng(round(10 * mu))
        ends = [runs_until_refuted(rng.normal(-mu, 1, 2000), rng.normal(0, 1, 2000)) for _ in range(tries)]
        print(f"| {mu:g} | {np.median(ends):.0f} |")


def main() -> None:
    """Print all tables."""
    share = 0.1 if "--quick" in sys.argv else 1.0
    print(f"Nominal level {1 - ALPHA:.0%}, delta {DELTA:g}; mean (95% half-width); processor time.")
    times()
    mean_bounds(share)
    false_alarms(share)
    coverage(share)
    refutations(share)


if __name__ == "__main__":
    main()
