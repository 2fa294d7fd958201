"""Tests of guesses about membership: the epsilons, or the whole trade-off curves, that the right ones refute.

Three tests, each of which holds its level for any mechanism and any score: by the f-DP recursion of Mahloujifar, Melis and
Chaudhuri, and for pure epsilon by every order and number of guesses together, or by coins of each record's own. The first
one takes the place of Theorem 5.2 of Steinke, Nasr and Jagielski 2023: on the same guesses its bound is larger, or smaller
by 0.02 at most.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from auditor.core.values import Floats
from auditor.curves.tradeoff import TradeoffCurve, concave_corners
from auditor.estimators.guesses import Guesses, GuessSet
from auditor.estimators.limits import chance_above, kinds_of, poisson_binomial_tail, upper_limit

LARGEST_EPSILON = 60.0


def first_enough(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number that is enough, between one that is not and one that is, by halving."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- Coins of each record's own, at delta 0 ---


def own_odds_bound(guesses: Guesses, sets: Sequence[GuessSet], *, alpha: float) -> tuple[float, GuessSet]:
    """Return the largest pure epsilon that any set refutes where coins have odds of their own, 0 if none, and the set.

    Let the coins be independent, record i a member with probability p_i, and the mechanism (eps, 0)-DP. Given the outputs and
    all other coins, Bayes' rule puts the odds of "i is a member" within e^eps of p_i/(1 - p_i): a guess "in" is right with
    probability at most expit(eps + logit p_i), a guess "out" with at most expit(eps - logit p_i). Which coins are guessed, and
    in which direction, may depend on the outputs, the losses, features and the p_i, on no coin. Revealing the coins one after
    another shows the number of right guesses to be stochastically below a sum of independent coins of those probabilities, a
    Poisson-binomial law; so P[W >= v] is a p-value of eps, and rises with eps, for every term does. Coins about something
    else have other odds (`Guesses.odds`), and the same test.

    If the true prior odds of every guessed record lie within e^k of those assumed, every probability is at most that for
    eps + k: what is refuted at eps_L still refutes eps_L - k at the same level.

    Source: [own], after Steinke, Nasr and Jagielski 2023.

    Args:
        guesses: Guesses with their priors, and the odds that follow from them.
        sets: Sets of these guesses, or of a perfect attack on them.
        alpha: The error that the sets share.
    """
    kinds = {(item.order, item.share): _kinds(guesses, item) for item in sets}

    def excess(item: GuessSet, epsilon: float) -> float:
        sides = kinds[item.order, item.share]
        odds = np.concatenate([guesses.odds(prior, inside, epsilon) for inside, prior, _ in sides])
        counts = np.concatenate([number for *_, number in sides])
        # In standard deviations of a normal, which is nearly a line.
        tail = min(poisson_binomial_tail(odds, counts, item.correct), 1 - _HAIR)
        return float(special.ndtri(tail) - special.ndtri(alpha / len(sets)))

    def refuted(item: GuessSet, epsilon: float) -> bool:
        return excess(item, epsilon) <= 0

    # What refutes every epsilon is chance: labels are revealed with odds that no leak can exceed. To leave it out refutes less.
    usable = [item for item in sets if not refuted(item, LARGEST_EPSILON)]
    best, by = 0.0, [*usable, *sets][0]
    for item in usable:
        if refuted(item, best + _HAIR if best else 0.0):
            best, by = _last_below(partial(excess, item), best, LARGEST_EPSILON), item
    return best, by


def _last_below(excess: Callable[[float], float], least: float, most: float) -> float:
    """Return where a rising function ends to be at most 0, from below to within 1e-10: about ten evaluations if it is smooth."""
    result, step = float(scipy.optimize.brentq(excess, least, most, xtol=_CLOSE)), _CLOSE
    while result > least and excess(result) > 0:
        result, step = max(result - step, least), 2 * step
    return result


def _kinds(guesses: Guesses, item: GuessSet) -> list[tuple[bool, Floats, npt.NDArray[np.int64]]]:
    """Return the different priors of the guesses of a set, and how many have each: first of those that do not say "in"."""
    prior, chosen = guesses.prior, guesses.chosen(item)
    says_in = np.zeros(prior.size, dtype=bool) if guesses.inside is None else guesses.inside
    parts = ((inside, prior[chosen][says_in[chosen] == inside]) for inside in (False, True))
    return [(inside, *kinds_of(part)) for inside, part in parts if part.size]


# --- Auditing f-DP in one run (Mahloujifar, Melis and Chaudhuri 2024): the trade-off curves that the guesses refute ---
#
# m fair membership bits, r guesses fixed in number in advance, V of them right. Let T be the largest true positive
# rate at a false positive rate, concave, for both orders of any two neighbours. Flipping one bit at a time shows that
#
#     R_j = sum_{l >= j} l P[V = l]/m   and   H_j = sum_{l >= j} (r - l) P[V = l]/m   obey   R_{j+1} <= T(H_j).
#
# Suppose P[V >= v] >= alpha. The least mass that these constraints then force, with finv(y) = inf{a: T(a) >= y}, is
#
#     r_v = alpha v/m, h_v = alpha (r - v)/m, h_i = finv(r_{i+1}), r_i = r_{i+1} + i/(r - i) (h_i - h_{i+1}),
#
# and T is refuted at level alpha if r_0 + h_0 > r/m, all the mass there is. If h_i would not grow in the first step it
# never does, and nothing is refuted; once it grows, every true H_i >= h_i and R_i >= r_i (summation by parts) [own].
# A smaller T forces more mass, so refuting a curve refutes every curve below it with the same guesses.


SmallestFpr = Callable[[float], float]
"""finv: the smallest false positive rate at which a curve reaches a true positive rate."""
LARGEST_MU = 40.0  # a normal beyond so many standard deviations has no mass in a double
_LARGEST_LOG = 100.0  # of one over a p-value
_HALVINGS = 42  # of what is at most 100, to 3e-11
_HAIR, _CLOSE = 1e-9, 1e-10


def rejects(smallest_fpr: SmallestFpr, *, bits: int, guesses: int, correct: int, alpha: float) -> bool:
    """Return whether the guesses refute the trade-off curve at level ``alpha``.

    Args:
        smallest_fpr: finv of the curve (`of_gdp`, `of_epsilon_delta`, `of_curve`), which must bound both orders of
            two neighbours.
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        alpha: In (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3; the argument is above.

    >>> rejects(of_gdp(2.08), bits=1000, guesses=600, correct=600, alpha=0.05)
    True
    >>> rejects(of_gdp(2.09), bits=1000, guesses=600, correct=600, alpha=0.05)
    False
    """
    # A loop over numbers, not arrays: each step needs the one before, and about 10 sqrt(r) steps settle it.
    right, wrong, all_mass = alpha * correct / bits, alpha * (guesses - correct) / bits, guesses / bits
    previous = 0.0
    for i in range(correct - 1, -1, -1):
        least = smallest_fpr(right)
        if least <= wrong:
            return False
        mass = (least - wrong) / (guesses - i)  # P[V = i]/m
        right, wrong = right + i * mass, least
        if right + wrong > all_mass:
            return True
        # Past the peak, the i counts that are left would not add what is missing; to stop can only refute less.
        if mass < previous and mass * guesses * i < all_mass - right - wrong:
            return False
        previous = mass
    return False


def of_gdp(mu: float) -> SmallestFpr:
    """Return finv of mu-Gaussian DP: Phi(Phi^-1(y) - mu).

    >>> round(of_gdp(1.0)(0.5), 6)
    0.158655
    """
    quantile, root = NormalDist().inv_cdf, math.sqrt(0.5)

    def smallest_fpr(tpr: float) -> float:
        return 1.0 if tpr >= 1 else 0.5 * math.erfc((mu - quantile(tpr)) * root)

    return smallest_fpr


def of_epsilon_delta(epsilon: float, *, delta: float) -> SmallestFpr:
    """Return finv of (epsilon, delta)-DP: max(0, 1 - d - e^eps (1 - y), e^-eps (y - d)).

    >>> of_epsilon_delta(0.0, delta=0.25)(0.5)
    0.25
    """
    up, down = math.exp(min(epsilon, 700.0)), math.exp(-epsilon)

    def smallest_fpr(tpr: float) -> float:
        flat = max(0.0, down * (tpr - delta))
        # The steep piece begins above a half; below, its 1 - tpr would only lose digits.
        return flat if tpr < 0.5 else max(flat, 1 - delta - up * (1 - tpr))  # noqa: PLR2004

    return smallest_fpr


def of_curve(curve: TradeoffCurve) -> SmallestFpr:
    """Return finv of any trade-off curve, by way of the smallest concave curve above it.

    >>> of_curve(TradeoffCurve.from_epsilon_delta(0.0, delta=0.25))(0.5)
    0.25
    """
    fpr, tpr = (axis.tolist() for axis in concave_corners(curve.fpr, curve.tpr))

    def smallest_fpr(rate: float) -> float:
        at = min(bisect_left(tpr, rate), len(tpr) - 1)
        if at == 0:
            return float(fpr[0])
        share = (rate - tpr[at - 1]) / (tpr[at] - tpr[at - 1])
        return float(fpr[at - 1] + min(share, 1.0) * (fpr[at] - fpr[at - 1]))

    return smallest_fpr


def epsilon_bound(*, bits: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
    """Return eps_L, the largest epsilon for which the guesses refute (epsilon, delta)-DP at level ``alpha``; 0 if none.

    Args:
        bits: Membership bits m, each a fair coin.
        guesses: Guesses r <= m, their number fixed in advance.
        correct: Right guesses v <= r.
        delta: In [0, 1).
        alpha: In (0, 1).

    Source: Mahloujifar, Melis and Chaudhuri 2024.

    >>> 4 < epsilon_bound(bits=1000, guesses=1000, correct=1000, delta=1e-5, alpha=0.05) < 6
    True
    """
    return fdp_bound([GuessSet("all", 1.0, guesses, correct)], bits=bits, delta=delta, alpha=alpha)[0]


def largest_of_all_below(
    refuted: Callable[[float], bool], most: float, *, halvings: int = _HALVINGS
) -> float:
    """Return the largest refuted parameter, 0 if none: what is refuted at one is refuted at every smaller one."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, most
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


# --- Several numbers of guesses in several orders: for one error they share it ---


def largest_by_any(
    sets: Sequence[GuessSet], refuted: Callable[[GuessSet, float], bool], most: float
) -> tuple[float, GuessSet]:
    """Return the largest parameter that any set refutes, 0 if none, and the set; one that refutes refutes all below.

    Args:
        sets: Sets of guesses.
        refuted: Whether a set refutes a parameter.
        most: A parameter that none refutes.
    """
    # Those that refute the largest parameter so far, for no other can refute a larger one; of sets with equal counts the first.
    left = list({(item.guesses, item.correct, item.inside): item for item in sets[::-1]}.values())[::-1]

    def by_any(parameter: float) -> bool:
        refuting = [item for item in left if refuted(item, parameter)]
        left[:] = refuting or left
        return bool(refuting)

    return largest_of_all_below(by_any, most), left[0]


def fdp_bound(sets: Sequence[GuessSet], *, bits: int, delta: float, alpha: float) -> tuple[float, GuessSet]:
    """Return the largest epsilon for which any set refutes (epsilon, delta)-DP by `rejects`, 0 if none, and the set.

    Args:
        sets: Sets of guesses.
        bits: Membership bits m, each a fair coin.
        delta: In [0, 1).
        alpha: The error that the sets share.
    """

    def refuted(item: GuessSet, epsilon: float) -> bool:
        curve, share = of_epsilon_delta(epsilon, delta=delta), alpha / len(sets)
        return rejects(curve, bits=bits, guesses=item.guesses, correct=item.correct, alpha=share)

    return largest_by_any(sets, refuted, LARGEST_EPSILON)


def curve_p_value(smallest_fpr: SmallestFpr, *, bits: int, sets: Sequence[GuessSet]) -> float:
    """Return the p-value of a trade-off curve by `rejects` of several sets that share the error.

    >>> sets = [GuessSet("all", 1.0, guesses=1000, correct=600)]
    >>> round(curve_p_value(of_epsilon_delta(0.3, delta=1e-5), bits=1000, sets=sets), 4)
    0.0664
    """

    def not_at(item: GuessSet, log_level: float) -> bool:
        counts = {"guesses": item.guesses, "correct": item.correct}
        return log_level == 0 or rejects(smallest_fpr, bits=bits, **counts, alpha=math.exp(-log_level))

    result, _ = largest_by_any(sets, not_at, _LARGEST_LOG)
    return min(1.0, len(sets) * math.exp(-result))


# --- Every order and number of guesses at once, for pure epsilon [own] ---
#
# Each coin is guessed in one direction, whatever the order, and which guesses come first depends on no coin. Given the
# outputs and all other coins a guess is right with probability at most q = e^eps/(1 + e^eps), so that the bits "this guess
# is right" are dominated, all together, by independent coins of that probability, and with them every statistic that grows
# with the bits. That is the largest of r KL(v/r || q) over the sets, v of whose r guesses are right; P[V >= v] is at most
# e^-(r KL) (Chernoff). Its law under independent bits is drawn, cell by cell of guesses that belong to the same sets.
# Guesses in opposite directions in two orders would break the domination.
#
# "Epsilon at most eps" is a family of nested hypotheses, so the bound is the last point of a fixed grid before the first
# that is accepted. The statistic falls with eps: below where the number of sets times e^-(r KL) is under the level, all is
# rejected; above where one set alone has a larger tail than the level, all is accepted.


PURE_STEP = 1 / 32
# More of them only where the p-value is near the level, and at last about 600 that are beyond it, or 120,000.
_PURE_DRAWS, _PURE_TAIL, _MOST_PURE = (2_000, 12_000), 600, 120_000
_PURE_BATCH = 12_000
_CLEAR = 5.0  # standard errors from the level
_MISLED = 1e-3  # the chance that draws make a p-value too small
_LARGEST_PURE = 30.0


def pure_p_value(guesses: Guesses, sets: Sequence[GuessSet], *, epsilon: float, alpha: float) -> float:
    """Return the p-value of "the mechanism is (epsilon, 0)-DP" by all sets together, exact enough beside this level.

    It is the 99.9% upper limit by as many draws, so that their error costs power and no level; and it lies between the p-value
    of the most informative set and the sum over the sets alone.

    Args:
        guesses: Guesses of fair coins.
        sets: Sets of these guesses, or of a perfect attack on them.
        epsilon: 0 or more, in nats.
        alpha: In (0, 1).
    """
    every = exponents(np.array([[item.correct for item in sets]]), sets, epsilon)[0]
    least, telling = float(every.max()), sets[int(every.argmax())]
    if least == 0:
        return 1.0
    alone = float(chance_above(telling.correct - 1, telling.guesses, float(special.expit(epsilon))))
    if telling.correct == telling.guesses and sum(item.guesses >= telling.guesses for item in sets) == 1:
        return alone  # nothing else is as large
    counts, belongs = guesses.cells
    larger = drawn = 0
    for batch, enough in enumerate((*_PURE_DRAWS, min(_MOST_PURE, math.ceil(_PURE_TAIL / alpha)))):
        rng = np.random.default_rng([guesses.bits, round(epsilon / PURE_STEP * 2**20), batch])
        while drawn < enough:
            size = min(enough - drawn, _PURE_BATCH)
            # One size at a time, which is drawn three times as fast as many at once.
            bits = [rng.binomial(count, float(special.expit(epsilon)), size=size) for count in counts]
            right = np.stack(bits, axis=1) @ belongs.T.astype(np.float64)
            larger += int(np.count_nonzero(exponents(right, sets, epsilon).max(axis=1) >= least - _HAIR))
            drawn += size
        result = float(upper_limit(larger, drawn, _MISLED))
        if abs(larger / drawn - alpha) > _CLEAR * math.sqrt(alpha * (1 - alpha) / drawn):
            break
    return max(alone, min(result, len(sets) * math.exp(-least)))


def pure_bound(guesses: Guesses, sets: Sequence[GuessSet], *, alpha: float) -> tuple[float, GuessSet]:
    """Return the largest pure epsilon that the sets refute together, 0 if none, and the most informative set there.

    Args:
        guesses: Guesses of fair coins.
        sets: Sets of these guesses, or of a perfect attack on them.
        alpha: In (0, 1).
    """
    right = np.array([[item.correct for item in sets]])

    def clear(step: int) -> bool:
        return len(sets) * math.exp(-exponents(right, sets, step * PURE_STEP).max()) > alpha

    def accepted(step: int) -> bool:
        q = float(special.expit(step * PURE_STEP))
        return all(
            special.betainc(s.correct, s.guesses - s.correct + 1, q) > alpha for s in sets if s.correct
        )

    most = round(_LARGEST_PURE / PURE_STEP)
    first = first_enough(clear, -1, most)
    end = first_enough(accepted, first - 1, most)

    def accepts(step: int) -> bool:
        return pure_p_value(guesses, sets, epsilon=step * PURE_STEP, alpha=alpha) > alpha

    if all(item.correct == item.guesses for item in sets):  # a ceiling, which is for reading
        refused = first_enough(accepts, first - 1, end)
    else:
        refused = next(filter(accepts, range(first, end)), end)
    bound = max(0, refused - 1) * PURE_STEP
    return bound, sets[int(exponents(right, sets, bound).argmax())]


def exponents(right: npt.NDArray[Any], sets: Sequence[GuessSet], epsilon: float) -> Floats:
    """Return the exponent r KL(v/r || q) of the sets with more than q right, 0 of the others; shape as that of the right guesses."""
    q, rest = float(special.expit(epsilon)), float(special.expit(-epsilon))
    guesses = np.array([item.guesses for item in sets], dtype=np.float64)
    divergence = special.rel_entr(right, guesses * q) + special.rel_entr(guesses - right, guesses * rest)
    return np.where(right > guesses * q, divergence, 0.0)
