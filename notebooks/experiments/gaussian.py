"""The one-dimensional Gaussian experiment of Mahloujifar et al. 2022, Appendix F.1, and intervals for what attacks reach.

The training set is all zeros, or all zeros and a one; each step shows the noisy sum of a random batch. The best attacker
compares the likelihoods of all sums. `observe` is a task for ``experiments.grid.run_all``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Attack", "advantage", "log_ratio", "observe", "rates_at"]

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Attack:
    """How much better than guessing an attack did, 2 x (share of games won) - 1, with a Clopper-Pearson interval.

    Attributes:
        value: Observed, in [-1, 1].
        lower: Lower end of the interval.
        upper: Upper end.
        games: Number of games played.
        confidence: Of the two-sided interval.
    """

    value: float
    lower: float
    upper: float
    games: int
    confidence: float


def advantage(won: int, *, games: int, confidence: float = 0.95) -> Attack:
    """Return the advantage of an attack that won so many of its independent games.

    Args:
        won: Number of games in which the guess was right.
        games: Number of games, each decided by a fresh coin.
        confidence: In (0, 1); pass 1 - 0.05/k where k intervals are read together.
    """
    from scipy.stats import binomtest

    limits = binomtest(int(won), int(games)).proportion_ci(confidence, method="exact")
    ends = (won / games, limits.low, limits.high)
    return Attack(*(float(2 * share - 1) for share in ends), games=int(games), confidence=confidence)


def observe(case: Case, seed: int) -> dict[str, Any]:
    """Run the sampled Gaussian mechanism in one dimension and return what the best attacker makes of it.

    Args:
        case: ``noise_multiplier``, ``sampling_rate``, ``steps``, ``runs``, and ``prior`` (the probability that the
            record is there).
        seed: Of the simulation.

    Returns:
        ``present`` (was it there) and ``score`` (the log-likelihood ratio of all noisy sums, present against absent), both
        of shape (runs,).
    """
    rng = np.random.default_rng(seed)
    noise, rate, runs = case["noise_multiplier"], case["sampling_rate"], case["runs"]
    present = rng.random(runs) < case["prior"]
    score = np.zeros(runs)
    for _ in range(case["steps"]):
        drawn = present if rate == 1 else present & (rng.random(runs) < rate)
        score += log_ratio(rng.normal(0.0, noise, runs) + drawn, noise=noise, rate=rate)
    return {"present": present, "score": score}


def rates_at(
    scores: np.ndarray, present: np.ndarray, *, fpr: float, confidence: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the rates of a threshold attack that aims at a false positive rate, each as (value, lower, upper).

    The threshold is the quantile of the scores without the record in the first half of the runs; the rates are counted in
    the second half, so that their Clopper-Pearson intervals hold.

    Args:
        scores: Shape (runs,), larger where the record is more likely to be there.
        present: Shape (runs,), whether it was.
        fpr: The false positive rate that the attacker wants.
        confidence: Of each two-sided interval.
    """
    from scipy.stats import binomtest

    half = len(scores) // 2
    threshold = np.quantile(scores[:half][~present[:half]], 1 - fpr, method="higher")
    found = []
    for world in (~present[half:], present[half:]):
        accused = scores[half:][world] > threshold
        limits = binomtest(int(accused.sum()), accused.size).proportion_ci(confidence, method="exact")
        found.append((float(accused.mean()), float(limits.low), float(limits.high)))
    return found[0], found[1]


def log_ratio(move: np.ndarray, *, noise: float, rate: float) -> np.ndarray:
    """Return the log-likelihood ratio of one noisy sum: (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2)."""
    exponent = (2 * move - 1) / (2 * noise**2)
    return exponent if rate == 1 else np.log1p(rate * np.expm1(exponent))
