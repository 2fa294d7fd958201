"""The laws of the league: scores of members and of others, each with its true epsilon in closed form.

High scores are more like members. The truth at a delta is the smallest epsilon for which the two laws are (epsilon,
delta)-indistinguishable in both directions. It is one number about two subjects: the model, whose records have these
scores, and the mechanism that gives one record a score of either law, neighbours by adding or removing the record.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from auditor.theory import gaussian_epsilon
from scipy import optimize, stats

Floats = np.ndarray
Draw = Callable[[np.random.Generator, int], Floats]
_PER_PERSON, _SATURATED = 10, 0.5


@dataclass(frozen=True)
class Law:
    """Two laws of scores, and how far apart they are.

    Attributes:
        name: As shown.
        member: Draws member scores.
        nonmember: Draws the others.
        epsilon: True epsilon as a function of delta.
        share: Number of non-members for each member.
        rows: Rows of each person, all with the same score.
    """

    name: str
    member: Draw
    nonmember: Draw
    epsilon: Callable[[float], float]
    share: float = 1.0
    rows: int = 1

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Draw ``size`` member scores, and ``share`` times as many others."""
        sides = (self.member, size), (self.nonmember, round(self.share * size))
        member, nonmember = (np.repeat(draw(rng, -(-n // self.rows)), self.rows)[:n] for draw, n in sides)
        return member, nonmember


def _normal(mu: float) -> tuple[Draw, Draw]:
    return lambda rng, n: rng.normal(mu, 1, n), lambda rng, n: rng.normal(0, 1, n)


def _laplace(name: str, **options: float) -> Law:
    draws = (lambda rng, n: rng.laplace(1, 1, n)), (lambda rng, n: rng.laplace(0, 1, n))
    return Law(name, *draws, lambda delta: 1 + 2 * math.log1p(-delta), **options)


def epsilon_of_masses(p: Floats, q: Floats, delta: float) -> float:
    """Return the largest log((P(S) - delta) / Q(S)) of all events S, of both orders: S takes the largest ratios first."""
    best = 1.0
    for first, second in ((p, q), (q, p)):
        order = np.argsort(-first / second)
        best = max(best, float(np.max((first[order].cumsum() - delta) / second[order].cumsum())))
    return math.log(best)


def _steps(name: str, member: Sequence[float], nonmember: Sequence[float], *, ties: bool = False) -> Law:
    """Scores of a whole number with these chances, or spread evenly from it to the next."""
    p, q = (np.asarray(masses) / sum(masses) for masses in (member, nonmember))

    def of(masses: Floats) -> Draw:
        return lambda rng, n: rng.choice(masses.size, n, p=masses) + (0.0 if ties else rng.random(n))

    return Law(name, of(p), of(q), lambda delta: epsilon_of_masses(p, q, delta))


def _saturated(draw: Draw) -> Draw:
    """Half of the scores are 5, with membership or without."""
    return lambda rng, n: np.where(rng.random(n) < _SATURATED, 5.0, draw(rng, n))


def _cauchy_delta(ratio: float) -> float:
    """Return P(S) - ratio Q(S) on the interval S where the Cauchy law at 1 is more than ``ratio`` times that at 0."""
    root = math.sqrt(max(0.0, 3 * ratio - ratio**2 - 1))
    ends = np.sort([(-ratio + root) / (1 - ratio), (-ratio - root) / (1 - ratio)])
    inside = [float(np.diff(stats.cauchy.cdf(ends, loc))[0]) for loc in (1, 0)]
    return inside[0] - ratio * inside[1]


def _cauchy_epsilon(delta: float) -> float:
    most = (3 + math.sqrt(5)) / 2
    if delta == 0:
        return math.log(most)
    return math.log(optimize.brentq(lambda ratio: _cauchy_delta(ratio) - delta, 1.01, most, xtol=1e-12))


_RIGHT = 1 / (1 + math.exp(-1))
_RARE = 0.1 / math.e
_DENSE = 0.25 * math.e
_FIVE = np.array([1, 2, 4, 2, 1])

LAWS = (
    Law("noise", *_normal(0.0), lambda _: 0.0),
    Law("Gaussian", *_normal(1.0), lambda delta: gaussian_epsilon(1.0, delta=delta) if delta else math.inf),
    _laplace("Laplace"),
    _steps("randomised response", (1 - _RIGHT, _RIGHT), (_RIGHT, 1 - _RIGHT), ties=True),
    Law(
        "atoms",
        *map(_saturated, _normal(1.0)),
        lambda delta: gaussian_epsilon(1.0, delta=delta / (1 - _SATURATED)) if delta else math.inf,
    ),
    _steps("high tail only", (_RARE, 1 - _RARE), (0.1, 0.9)),
    _steps("ties", _FIVE * np.exp(np.arange(5) / 2), _FIVE, ties=True),
    _steps("non-monotone", (0.365, 0.27, 0.365), (0.45, 0.1, 0.45)),
    Law(
        "heavy tails",
        lambda rng, n: 1 + rng.standard_cauchy(n),
        lambda rng, n: rng.standard_cauchy(n),
        _cauchy_epsilon,
    ),
    _laplace("unequal sizes", share=0.1),
    _laplace("clustered records", rows=_PER_PERSON),
    _steps("step mechanism", (1 - _DENSE, _DENSE), (0.75, 0.25)),
)
