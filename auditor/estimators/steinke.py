"""Steinke, Nasr and Jagielski 2023, Theorem 5.2: a lower bound on epsilon from guesses about one training run.

m membership bits, r guesses fixed in advance, v of them right. If the mechanism is (eps, d)-DP and W ~ Bin(r, q),
q = e^eps/(1 + e^eps), then

    P[V >= v] <= P[W >= v] + 2 m d max_{1 <= i <= v} P[v - i <= W <= v - 1]/i

and eps_L = sup{eps: the right side is at most alpha}. For biased membership coins (delta = 0 only) W is a sum of two
binomials, one for the "in" guesses and one for the "out" guesses [own].
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, special

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["biased_bound", "biased_p_value", "check_counts", "steinke_bound", "steinke_p_value"]

_LARGEST_EPSILON = 60.0
# Binomial mass further than this many standard deviations (and records) below the count never matters.
_WINDOW = 45.0


def steinke_p_value(*, bits: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return the p-value of "the mechanism is (epsilon, delta)-DP".

    Args:
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        epsilon: 0 or more, in nats.
        delta: In [0, 1).

    Raises:
        InputError: Counts that do not fit, epsilon below 0 or delta outside [0, 1).

    >>> round(steinke_p_value(bits=1000, guesses=600, correct=600, epsilon=4.0, delta=1e-5), 10)
    0.0012625634
    """
    check_counts(bits, guesses, correct)
    epsilon, delta = _validate.nonnegative("epsilon", epsilon), _validate.fraction("delta", delta, zero=True)
    if correct == 0:
        return 1.0
    q = float(special.expit(epsilon))
    tail = float(special.betainc(correct, guesses - correct + 1, q))
    return min(
        1.0, tail + (2 * bits * delta * _largest_mean_mass(guesses, correct, epsilon) if delta else 0.0)
    )


def _largest_mean_mass(guesses: int, correct: int, epsilon: float) -> float:
    """Max over i of P[v - i <= W <= v - 1]/i, for W ~ Bin(r, expit(epsilon))."""
    q, not_q = float(special.expit(epsilon)), float(special.expit(-epsilon))
    spread = math.sqrt(guesses * q * not_q)
    reach = int(_WINDOW * spread + _WINDOW) + max(0, correct - math.floor(guesses * q))
    w = np.arange(correct - 1, max(-1, correct - 1 - reach), -1, dtype=np.float64)
    log_mass = (
        special.gammaln(guesses + 1)
        - special.gammaln(w + 1)
        - special.gammaln(guesses - w + 1)
        + special.xlogy(w, q)
        + special.xlogy(guesses - w, not_q)
    )
    return float(np.max(np.cumsum(np.exp(log_mass)) / np.arange(1, w.size + 1)))


def steinke_bound(*, bits: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """Return eps_L, the largest epsilon that the guesses refute at level ``alpha``; 0 if they refute none.

    >>> round(steinke_bound(bits=1000, guesses=1000, correct=700, delta=1e-5, alpha=0.05), 6)
    0.73174
    """
    check_counts(bits, guesses, correct)
    alpha, delta = _validate.fraction("alpha", alpha), _validate.fraction("delta", delta, zero=True)
    return _bound(int(bits), int(guesses), int(correct), delta, alpha)


# Ceilings and simulations ask for the same few bounds again and again.
@functools.lru_cache(maxsize=4096)
def _bound(bits: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    return _largest_refuted(
        lambda eps: steinke_p_value(bits=bits, guesses=guesses, correct=correct, epsilon=eps, delta=delta),
        alpha,
        grid=np.concatenate([np.linspace(0, 12, 97), np.linspace(12.5, _LARGEST_EPSILON, 96)]),
    )


def biased_p_value(*, guesses: tuple[int, int], correct: int, inclusion: float, epsilon: float) -> float:
    """Return the p-value of "the mechanism is (epsilon, 0)-DP" when each record was in with probability ``inclusion``.

    Args:
        guesses: Numbers of "in" and of "out" guesses, fixed in advance.
        correct: Right guesses among them.
        inclusion: In (0, 1).
        epsilon: 0 or more, in nats.

    >>> 1024 * round(biased_p_value(guesses=(10, 0), correct=9, inclusion=0.5, epsilon=0.0), 12)
    11.0
    """
    n_in, n_out = guesses
    check_counts(n_in + n_out, n_in + n_out, correct)
    prior = float(special.logit(_validate.fraction("inclusion", inclusion)))
    right_in, right_out = float(special.expit(epsilon + prior)), float(special.expit(epsilon - prior))
    mass = _binomial(n_in, right_in)
    # P[W >= v] = sum over the "in" successes j of P[Bin(out) >= v - j].
    need = correct - np.arange(n_in + 1, dtype=np.float64)
    return min(1.0, float(np.einsum("i,i->", mass, _upper_tail(n_out, need, right_out))))


def biased_bound(*, guesses: tuple[int, int], correct: int, inclusion: float, alpha: float) -> float:
    """Return the largest pure epsilon that the guesses refute under a biased membership coin.

    >>> round(biased_bound(guesses=(200, 0), correct=190, inclusion=0.8, alpha=0.05), 6)
    1.011577
    """
    _validate.fraction("alpha", alpha)
    return _largest_refuted(
        lambda eps: biased_p_value(guesses=guesses, correct=correct, inclusion=inclusion, epsilon=eps),
        alpha,
        grid=np.array([0.0, _LARGEST_EPSILON]),  # without a delta term the p-value rises with epsilon
    )


def _binomial(n: int, p: float) -> Floats:
    k = np.arange(n + 1, dtype=np.float64)
    log_mass = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log_mass + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _upper_tail(n: int, need: Floats, p: float) -> Floats:
    """P[Bin(n, p) >= need], 1 where nothing is needed and 0 where too much is."""
    inside = np.clip(need, 1, max(n, 1))
    tail = special.betainc(inside, np.maximum(n - inside, 0) + 1, p)
    return np.where(need <= 0, 1.0, np.where(need > n, 0.0, tail))


def check_counts(bits: int, guesses: int, correct: int) -> None:
    """Refuse counts that do not fit together."""
    _validate.at_least("guesses", guesses, least=1)
    _validate.at_least("correct guesses", correct, least=0)
    if correct > guesses or guesses > bits:
        raise InputError(
            f"correct guesses <= guesses <= bits must hold, got {correct}, {guesses} and {bits}; swap the arguments?"
        )


def _largest_refuted(p_value: Callable[[float], float], alpha: float, *, grid: Floats) -> float:
    """sup{eps >= 0: p(eps) <= alpha}, or 0.

    The delta term need not be monotone in epsilon, so the last crossing is bracketed on a grid. An (eps, d)-DP
    mechanism is (eps', d)-DP for every larger eps', so the supremum keeps the level.
    """
    refuted = np.array([p_value(float(eps)) <= alpha for eps in grid])
    if not refuted.any():
        return 0.0
    last = int(np.flatnonzero(refuted)[-1])
    if last == grid.size - 1:
        return _LARGEST_EPSILON
    crossing = optimize.brentq(lambda eps: p_value(eps) - alpha, grid[last], grid[last + 1], xtol=1e-10)
    return float(crossing)
