"""The chance that the one-run bound on inclusion coins reaches an epsilon.

N records, half of the r guesses "in" at the lowest losses and half "out" at the highest. In the scale of the pooled
distribution function the spans of the two and of what lies between them are Dirichlet(n_in, N - r + 1, n_out), and given
a span each of its guesses but the last is right with the same probability: so the right guesses are drawn, from a fixed
seed.

Under (eps, 0)-DP the right guesses are below a sum of two binomials; for fair coins that is one binomial, and for more
than a few thousand guesses the tail of the sum is taken from the saddlepoint (Lugannani and Rice 1980, for lattices).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from auditor.estimators.guesses import numbers_of_guesses
from auditor.estimators.steinke import biased_p_value
from auditor.planning.attacks import Attack, PerfectAttack
from auditor.planning.pairs import largest_refuted
from auditor.values import Floats

__all__ = ["CoinAudit", "p_value"]

_FAIR = 0.5
_EXACT = 3000  # guesses up to which the sum over one of the binomials is cheap
_DRAWS, _SEED = 4000, 0
_LEAST_RATE, _GRID = 1e-15, 20_000  # the grid of rates on which the pooled distribution is inverted


@dataclass(frozen=True)
class CoinAudit:
    """``epsilon_bound.one_run`` on a `BernoulliSplit`, planned; n counts all records, members or not."""

    inclusion: float
    alpha: float

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return what a perfect attack would be certified at."""
        records = n_member + n_nonmember
        numbers = numbers_of_guesses(records)

        def perfect(guesses: int) -> float:
            n_in = guesses // 2
            correct = min(n_member, n_in) + min(n_nonmember, guesses - n_in)
            return largest_refuted(lambda eps: self._refuted(guesses, correct, eps, len(numbers)))

        return max(map(perfect, numbers))

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows by this test however many records there are."""
        if isinstance(attack, PerfectAttack):
            return math.inf
        many, odds = 1_000_000, float(special.logit(self.inclusion))

        def surplus(epsilon: float, right: float) -> float:
            return right - float(special.expit(epsilon + odds) + special.expit(epsilon - odds)) / 2

        shown = 0.0
        for r in numbers_of_guesses(many):
            half = np.array([r / many / 2])
            shares = [_lowest(attack, prior, half)[0] for prior in (self.inclusion, 1 - self.inclusion)]
            right = float(np.mean(shares))
            if surplus(0.0, right) > 0:
                shown = max(shown, float(optimize.brentq(surplus, 0.0, 700.0, args=(right,))))
        return shown

    def chance(self, n: int, *, epsilon: float, attack: Attack) -> float:
        """Return the chance that n records certify the epsilon."""
        numbers = numbers_of_guesses(n)
        return max(self._chance(n, r, len(numbers), epsilon, attack) for r in numbers)

    def _refuted(self, guesses: int, correct: int, epsilon: float, tried: int) -> bool:
        n_in = guesses // 2
        found = p_value((n_in, guesses - n_in), correct, inclusion=self.inclusion, epsilon=epsilon)
        return found <= self.alpha / tried

    def _chance(self, records: int, guesses: int, tried: int, epsilon: float, attack: Attack) -> float:
        if not self._refuted(guesses, guesses, epsilon, tried):
            return 0.0
        low, high = 0, guesses
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._refuted(guesses, middle, epsilon, tried) else (middle, high)
        n_in, n_out = guesses // 2, guesses - guesses // 2
        if isinstance(attack, PerfectAttack):
            # With M members min(M, n_in) + min(N - M, n_out) guesses are right: enough for M in between.
            least, most = high - n_out, records + n_in - high
            return float(
                special.bdtr(most, records, self.inclusion)
                - (special.bdtr(least - 1, records, self.inclusion) if least > 0 else 0.0)
            )
        right = self._draws(records, guesses, attack)
        return float(np.mean(right >= high))

    def _draws(self, records: int, guesses: int, attack: Attack) -> Floats:
        """Numbers of right guesses of simulated audits, the same for the same question."""
        rng = np.random.default_rng(_SEED)
        n_in, n_out = guesses // 2, guesses - guesses // 2
        parts = np.stack(
            [rng.standard_gamma(float(shape), _DRAWS) for shape in (n_in, records - guesses + 1, n_out)]
        )
        spans = parts / parts.sum(axis=0)
        # By symmetry the highest losses are the lowest with the groups exchanged.
        sides = ((n_in, self.inclusion, spans[0]), (n_out, 1 - self.inclusion, spans[2]))
        right = np.zeros(_DRAWS)
        for guessed, prior, span in sides:
            if guessed:
                inside, last = _lowest(attack, prior, span)
                right += rng.binomial(guessed - 1, inside) + (rng.random(_DRAWS) < last)
        return right


def _lowest(attack: Attack, prior: float, span: Floats) -> tuple[Floats, Floats]:
    """Share of members below these levels of the pooled distribution, and at them, ``prior`` of all being members."""
    fpr = np.geomspace(_LEAST_RATE, 1.0, _GRID)
    pooled = prior * attack.tpr(fpr) + (1 - prior) * fpr
    below = np.interp(span, pooled, fpr) / np.maximum(span, _LEAST_RATE)
    at = np.clip(np.searchsorted(pooled, span), 1, _GRID - 1)
    slope = (fpr[at] - fpr[at - 1]) / np.maximum(pooled[at] - pooled[at - 1], _LEAST_RATE)
    inside, last = (np.clip(1 - (1 - prior) * share, 0.0, 1.0) for share in (below, slope))
    return inside, last


def p_value(guesses: tuple[int, int], correct: int, *, inclusion: float, epsilon: float) -> float:
    """Return P[sum of two binomials >= correct]; of many guesses at biased coins within 1%.

    >>> round(p_value((200, 0), 190, inclusion=0.8, epsilon=1.011577), 6)
    0.05
    """
    n_in, n_out = guesses
    if correct <= 0:
        return 1.0
    if inclusion == _FAIR:
        q = float(special.expit(epsilon))
        return float(special.betainc(correct, n_in + n_out - correct + 1, q))
    if n_in + n_out <= _EXACT:
        return biased_p_value(guesses=guesses, correct=correct, inclusion=inclusion, epsilon=epsilon)
    prior = float(special.logit(inclusion))
    return _saddlepoint(((n_in, epsilon + prior), (n_out, epsilon - prior)), correct)


def _saddlepoint(parts: tuple[tuple[int, float], ...], v: int) -> float:
    """P[sum >= v] for binomials of these sizes and log-odds."""
    total = sum(n for n, _ in parts)
    if v >= total:
        return math.exp(sum(n * float(special.log_expit(odds)) for n, odds in parts)) if v == total else 0.0

    def slope(t: float) -> float:
        return sum(n * float(special.expit(odds + t)) for n, odds in parts) - v

    span = max(abs(odds) for _, odds in parts) + abs(float(special.logit(v / total))) + 1
    t = float(optimize.brentq(slope, -span, span, xtol=1e-14))
    # K(t) = sum n log((1 - p) + p e^t), in log-odds: softplus(odds + t) - softplus(odds).
    k = sum(n * float(np.logaddexp(0, odds + t) - np.logaddexp(0, odds)) for n, odds in parts)
    curvature = sum(n * float(special.expit(odds + t) * special.expit(-odds - t)) for n, odds in parts)
    w = math.copysign(math.sqrt(max(2 * (t * v - k), 0.0)), t)
    if abs(w) < 1e-4:  # noqa: PLR2004 - at the mean the correction is 0/0, and the tail a half
        return 0.5
    u = -math.expm1(-t) * math.sqrt(curvature)
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, float(special.ndtr(-w)) + density * (1 / u - 1 / w)))
