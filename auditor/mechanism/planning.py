"""records_needed() and ceiling(): what an audit of a given size can certify, and the size that a target takes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from auditor.core import options, validate
from auditor.core.numbers import given, number, plain
from auditor.core.values import Floats, Subject
from auditor.estimators.certified import grid_ceiling, ranks
from auditor.estimators.guess_tests import (
    biased_p_value,
    first_enough,
    largest_refuted,
    steinke_bound,
    steinke_p_value,
)
from auditor.estimators.limits import MemberLimits, lower_limit, upper_limit
from auditor.estimators.one_run import numbers_of_guesses
from auditor.theory.gaussian import gaussian_epsilon

# --- Assumed attacks, as values: how well losses separate members from non-members before any are seen ---
#
# An attack is its trade-off curve: the true positive rate at every false positive rate, and back. Each curve here is the
# same with the two groups exchanged, so the true negative rate at a false negative rate is the same function.

# e^epsilon stays a double; so large an epsilon is a perfect attack for any number of records.
_LARGEST = 700.0


@dataclass(frozen=True)
class PerfectAttack:
    """Every member has a smaller loss than every non-member: what no attack can beat.

    >>> PerfectAttack().tpr(np.array([0.0, 0.5]))
    array([1., 1.])
    """

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.ones_like(fpr)

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.zeros_like(tpr)

    def leak(self, delta: float) -> float:  # noqa: ARG002 - the same for every delta below 1
        """Return the largest epsilon that its rates show."""
        return math.inf

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return "a perfect attack"


@dataclass(frozen=True)
class GaussianAttack:
    """Normal losses of equal variance, those of the members lower by ``mu`` standard deviations (above 0).

    Raises:
        InputError: ``mu`` is not above 0.

    >>> float(GaussianAttack(1.0).tpr(np.array(0.01)).round(6))
    0.092362
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", validate.positive("mu", self.mu))

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.asarray(special.ndtr(special.ndtri(fpr) + self.mu))

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.asarray(special.ndtr(special.ndtri(tpr) - self.mu))

    def leak(self, delta: float) -> float:
        """Return the largest epsilon that its rates show: that of the Gaussian mechanism."""
        return gaussian_epsilon(self.mu, delta=delta)

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return f"normal losses, mu = {given(self.mu)}"


@dataclass(frozen=True)
class RandomisedResponse:
    """The strongest losses that a pure ``epsilon`` (above 0) allows: each record answers truthfully with odds e^epsilon.

    Within an answer the losses do not depend on membership, and there are no ties.

    Raises:
        InputError: ``epsilon`` is not above 0, or above 700.

    >>> float(RandomisedResponse(1.0).tpr(np.array(0.1)).round(6))
    0.271828
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = validate.positive("epsilon of the randomised response", self.epsilon)
        object.__setattr__(self, "epsilon", min(epsilon, _LARGEST))

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.minimum(math.exp(self.epsilon) * fpr, 1 - math.exp(-self.epsilon) * (1 - fpr))

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.maximum(math.exp(-self.epsilon) * tpr, 1 - math.exp(self.epsilon) * (1 - tpr))

    def leak(self, delta: float) -> float:
        """Return the largest epsilon that its rates show, at the corner of its curve."""
        kept = float(special.expit(self.epsilon)) - delta
        return max(0.0, math.log(kept) - float(special.log_expit(-self.epsilon))) if kept > 0 else 0.0

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return f"randomised response, epsilon {given(self.epsilon)}"


Attack = PerfectAttack | GaussianAttack | RandomisedResponse


# --- How many records certify an epsilon, if the attack is as assumed ---

_MOST = 10**9
_PERFECT = PerfectAttack()


@dataclass(frozen=True)
class Plan:
    """How many records certify an epsilon.

    Attributes:
        epsilon: The target, in nats.
        delta: The delta at which it would be certified.
        confidence: Of the bound.
        n_member: Members to score, or null if no number suffices; of a `BernoulliSplit` the expected number.
        n_nonmember: Likewise for the non-members.
        chance: That so many records certify the target if the attack is as assumed; 1 where nothing is random.
        power: The chance that was asked for.
        ceiling: What a perfect attack on so many records would be certified at.
        limit: The largest epsilon that the assumed attack shows by this method, however many records there are.
        subject: Whether the bound is about the model or about the training algorithm.
        adjacency: The neighbouring relation, for a bound about the training algorithm.
        estimate: The name of the planned bound.
        method: How it is computed, in words.
        attack: The assumed attack, in words.
        reason: Why no number suffices, or null.
    """

    epsilon: float
    delta: float
    confidence: float
    n_member: int | None
    n_nonmember: int | None
    chance: float | None
    power: float
    ceiling: float | None
    limit: float
    subject: Subject
    adjacency: options.Adjacency | None
    estimate: str
    method: str
    attack: str
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, infinities as strings."""
        found: dict[str, Any] = plain(self)
        return found


def records_needed(
    epsilon: float,
    *,
    delta: float,
    confidence: float = 0.95,
    members: options.Members = options.Sample(),  # noqa: B008 - a frozen value
    split: options.MembershipSplit = options.UnknownSplit(),  # noqa: B008
    attack: Attack = _PERFECT,
    power: float = 0.8,
) -> Plan:
    """Return how many records in each group certify an epsilon, if the attack is as assumed.

    Without a declared split the plan is for the model's own bound, with a `RandomSplit` or a `BernoulliSplit` for the
    one-run bound on the training algorithm (its default test). A perfect attack gives the fewest records that any
    attack could do with. The plan is the smallest number from which on every larger one suffices too, up to the
    rounding of counts.

    Args:
        epsilon: The target in nats, above 0.
        delta: In [0, 1); inclusion coins are audited at delta 0 whatever is asked.
        confidence: Of the bound, in (0, 1).
        members: What the scored members will be; only the model's own bound depends on it.
        split: How membership will be decided.
        attack: `PerfectAttack`, `GaussianAttack` or `RandomisedResponse`.
        power: The chance of certifying the target that the plan should give, in (0, 1).

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> plan = records_needed(1.0, delta=1e-5, split=options.RandomSplit())
    >>> plan.n_member, plan.estimate
    (14, 'epsilon_bound.one_run')
    """
    epsilon = validate.positive("epsilon", epsilon)
    power = validate.fraction("power", power)
    validate.instance("attack", attack, get_args(Attack))
    audit, delta, confidence = _audit(delta, confidence, members, split)
    limit = audit.limit(attack)
    most = (
        min(_MOST, members.of)
        if isinstance(audit, ModelAudit) and isinstance(members, options.Subset)
        else _MOST
    )
    n = None
    if epsilon < limit:
        n = _fewest(lambda size: audit.chance(size, epsilon=epsilon, attack=attack) >= power, most)
    sizes = (None, None) if n is None else _sizes(n, split)
    return Plan(
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        n_member=sizes[0],
        n_nonmember=sizes[1],
        chance=None if n is None else min(1.0, audit.chance(n, epsilon=epsilon, attack=attack)),
        power=power,
        ceiling=None if sizes[0] is None or sizes[1] is None else audit.ceiling(sizes[0], sizes[1]),
        limit=limit,
        attack=attack.in_words(),
        reason=None
        if n is not None
        else _why_not(epsilon, limit, most, delta=delta, split=split, attack=attack),
        **_subject_of(split),
    )


def ceiling(
    n_member: int,
    n_nonmember: int,
    *,
    delta: float,
    confidence: float = 0.95,
    members: options.Members = options.Sample(),  # noqa: B008 - a frozen value
    split: options.MembershipSplit = options.UnknownSplit(),  # noqa: B008
) -> float:
    """Return the most that so many records can certify: what a perfect attack would show.

    Args:
        n_member: Members, 2 or more.
        n_nonmember: Non-members, 2 or more.
        delta: In [0, 1); inclusion coins are audited at delta 0 whatever is asked.
        confidence: Of the bound, in (0, 1).
        members: What the scored members are.
        split: How membership was decided; see `records_needed`.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> round(ceiling(1000, 1000, delta=0.0), 6)
    4.936418
    """
    sizes = [
        validate.at_least(name, size, least=2)
        for name, size in (("n_member", n_member), ("n_nonmember", n_nonmember))
    ]
    audit, _, _ = _audit(delta, confidence, members, split)
    return audit.ceiling(sizes[0], sizes[1])


def _subject_of(split: options.MembershipSplit) -> dict[str, Any]:
    """What the planned bound is about."""
    if isinstance(split, options.UnknownSplit):
        return {
            "subject": Subject.MODEL,
            "adjacency": None,
            "estimate": "epsilon_bound.clopper_pearson",
            "method": "Clopper-Pearson limits at ranks fixed in advance",
        }
    coins = isinstance(split, options.BernoulliSplit)
    return {
        "subject": Subject.MECHANISM,
        "adjacency": options.Adjacency.ADD_REMOVE if coins else options.Adjacency.REPLACE_ONE,
        "estimate": "epsilon_bound.one_run",
        "method": f"one-run audit on {'inclusion coins' if coins else 'random pairs'}, test of Steinke, Nasr and Jagielski 2023",
    }


def _sizes(n: int, split: options.MembershipSplit) -> tuple[int, int]:
    if not isinstance(split, options.BernoulliSplit):
        return n, n
    inside = min(max(round(n * split.inclusion), 1), n - 1)
    return inside, n - inside


def _why_not(
    epsilon: float, limit: float, most: int, *, delta: float, split: options.MembershipSplit, attack: Attack
) -> str:
    target, at = given(epsilon), f"at delta {given(delta)}"
    if epsilon >= limit:
        return (
            f"with {attack.in_words()} this bound shows at most {number(limit, toward='down')} {at}, however many"
            f" records are audited, and the target is {target}"
        )
    where = "" if isinstance(split, options.BernoulliSplit) else " in each group"
    few = f"the {most:,} records of the training set" if most < _MOST else f"{most:,} records{where}"
    return f"even {few} do not certify {target} {at}"


# --- The chance that the model-level bound reaches an epsilon: the hits that every rank takes, and simulated hits ---
#
# F0 at the order statistics of the grid's ranks is a chain of beta variables, and given them the members in between are
# binomial: the lower tail is drawn without anything of size n. What is left above it is again uniform, so the upper tail
# is drawn from it in the same way; upper ranks that reach down into the lower tail are left out, on the safe side.

_Counts = npt.NDArray[np.int64]
_MODEL_DRAWS, _MODEL_SEED = 2000, 0


@dataclass(frozen=True)
class ModelAudit:
    """``epsilon_bound.clopper_pearson`` with its default rank grid, planned."""

    delta: float
    alpha: float
    members: options.Members

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return what a perfect attack would be certified at."""
        return grid_ceiling(
            n_member,
            n_nonmember,
            delta=self.delta,
            alpha=self.alpha,
            rule=options.RankGrid(),
            members=self.members,
        )

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows however many records there are."""
        return attack.leak(self.delta)

    def chance(self, n: int, *, epsilon: float, attack: Attack) -> float:
        """Return the chance that n records in each group certify the epsilon."""
        if isinstance(attack, PerfectAttack):
            return float(self.ceiling(n, n) >= epsilon)
        (low_ranks, low_need), (high_ranks, high_need) = self._needs(n, epsilon)
        rng = np.random.default_rng(_MODEL_SEED)
        sizes, ones = np.full(_MODEL_DRAWS, n), np.ones(_MODEL_DRAWS)
        low = _simulated_hits(low_ranks, _Group(sizes, ones), _Group(sizes, ones), attack, rng)
        members = _Group(sizes - low.hits[-1], 1 - low.called)
        nonmembers = _Group(sizes - low_ranks[-1] - 1, 1 - low.rate)
        high = _simulated_hits(high_ranks, members, nonmembers, attack, rng)
        reached = np.any(low.hits >= low_need[:, None], axis=0)
        return float(np.mean(reached | np.any(high.hits >= high_need[:, None], axis=0)))

    def _needs(self, n: int, epsilon: float) -> Iterator[tuple[_Counts, _Counts]]:
        """For each tail its ranks and the hits that they need; n + 1 where no number of hits is enough."""
        limits = MemberLimits(self.members, n)
        lower, upper = ranks(n), ranks(n)[1 if limits.known else 0 :]
        level = self.alpha / (limits.limits * (lower.size + upper.size))
        fpr, fnr = upper_limit(lower, n, level), limits.fnr_upper(upper, level)
        for ks, rate, rightly in (
            (lower, fpr, lambda hits: limits.tpr_lower(hits, level)),
            (upper, fnr, lambda hits: lower_limit(hits, n, level)),
        ):
            # Compared in logs: e^epsilon times a rate may overflow.
            target = np.exp(np.minimum(epsilon + np.log(np.maximum(rate, 1e-300)), 1.0)) + self.delta
            yield ks, _fewest_at(n, target, rightly)


def _fewest_at(n: int, target: Floats, rightly: Callable[[Any], Floats]) -> _Counts:
    """The smallest numbers of hits whose limits reach the targets, by halving; n + 1 where there is none."""
    low, high = np.zeros(target.size, dtype=np.int64), np.full(target.size, n + 1, dtype=np.int64)
    while np.any(high - low > 1):
        middle = np.minimum((low + high) // 2, n)
        enough = rightly(middle) >= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


class _Group(NamedTuple):
    """Records of one group that are still to be drawn, in each simulation, and the span that they are uniform on."""

    size: _Counts
    span: Floats


class _Tail(NamedTuple):
    """Simulated hits, shape (ranks, draws), -1 where the rank is not there; and where the last rank lies."""

    hits: _Counts
    rate: Floats
    called: Floats


def _simulated_hits(
    ks: _Counts, ranked: _Group, other: _Group, attack: Attack, rng: np.random.Generator
) -> _Tail:
    """Order statistics of one group, and how many of the other lie beyond each by the attack's curve."""
    rate, called = np.zeros(_MODEL_DRAWS), np.zeros(_MODEL_DRAWS)
    hits, before = np.zeros(_MODEL_DRAWS, dtype=np.int64), -1
    rows = np.full((ks.size, _MODEL_DRAWS), -1, dtype=np.int64)
    for row, k in enumerate(ks.tolist()):
        there = ranked.size > k
        # Of those beyond the last one, uniform on what is left of the span, the (k - before)-th.
        step = rng.beta(k - before, np.where(there, ranked.size - k, 1))
        rate = rate + (ranked.span - rate) * step
        now = np.clip(attack.tpr(np.clip(rate, 0.0, 1.0)), called, np.maximum(called, other.span))
        left = other.span - called
        share = np.divide(now - called, left, out=np.ones(_MODEL_DRAWS), where=left > 0)
        hits = hits + rng.binomial(other.size - hits, np.clip(share, 0.0, 1.0))
        rows[row] = np.where(there, hits, -1)
        called, before = now, k
    return _Tail(rows, rate, called)


# --- The chance that the one-run bound on random pairs reaches an epsilon, by the test of Steinke et al ---
#
# m pairs, the r most confident guesses, each right with a probability a that the attack's curve gives: about Bin(r, a)
# right guesses. As m grows at a fixed delta, the test refutes every q = expit(eps) below a - 2 d/(s a'), s = r/m and a'
# the error of one number of guesses: the delta term is then 2 m d/(r (a - q)) [own].

_PAIR_GRID = 1000  # quantiles of each group


@dataclass(frozen=True)
class PairAudit:
    """``epsilon_bound.one_run`` on a `RandomSplit` with its default test, planned."""

    delta: float
    alpha: float

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return what a perfect attack would be certified at."""
        bits = min(n_member, n_nonmember)
        numbers = numbers_of_guesses(bits)
        share = self.alpha / len(numbers)
        return max(
            steinke_bound(bits=bits, guesses=r, correct=r, delta=self.delta, alpha=share) for r in numbers
        )

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows by this test however many pairs there are."""
        many = 1_000_000
        numbers = numbers_of_guesses(many)
        shown = 0.0
        for r in numbers:
            right = _accuracy(attack, r / many) - 2 * self.delta * len(numbers) / (self.alpha * r / many)
            shown = max(shown, float(special.logit(right)) if right > 0 else 0.0)
        return shown

    def chance(self, n: int, *, epsilon: float, attack: Attack) -> float:
        """Return the chance that n records in each group certify the epsilon."""
        numbers = numbers_of_guesses(n)
        return max(self._chance(n, r, self.alpha / len(numbers), epsilon, attack) for r in numbers)

    def _chance(self, bits: int, guesses: int, alpha: float, epsilon: float, attack: Attack) -> float:
        """Of one number of guesses: the fewest right guesses that refute, and the chance of so many."""

        def refuted(right: int) -> bool:
            found = steinke_p_value(
                bits=bits, guesses=guesses, correct=right, epsilon=epsilon, delta=self.delta
            )
            return found <= alpha

        if not refuted(guesses):
            return 0.0
        need = first_enough(refuted, 0, guesses)
        return float(special.betainc(need, guesses - need + 1, _accuracy(attack, guesses / bits)))


@lru_cache(maxsize=256)
def _accuracy(attack: Attack, share: float) -> float:
    """How often the most confident share of the guesses is right, confidence being the distance in pooled ranks."""
    if isinstance(attack, PerfectAttack):
        return 1.0
    distance, right = _all_pairs(attack)
    size = max(1, round(share * distance.size))
    chosen = np.argpartition(-distance, size - 1)[:size]
    # A grid cannot show that less than half a pair is wrong.
    return min(float(right[chosen].mean()), 1 - 0.5 / size)


@lru_cache(maxsize=4)
def _all_pairs(attack: Attack) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Distance in pooled ranks and whether the member's loss is lower, over a grid of quantiles of both groups."""
    levels = (np.arange(_PAIR_GRID) + 0.5) / _PAIR_GRID
    # On the scale of the non-members' distribution function a non-member is uniform.
    member, nonmember = attack.fpr(levels)[:, None], levels[None, :]
    pooled = [(attack.tpr(place) + place) / 2 for place in (member, nonmember)]
    return np.abs(pooled[0] - pooled[1]).ravel(), (member < nonmember).ravel()


# --- The chance that the one-run bound on inclusion coins reaches an epsilon ---
#
# N records, half of the r guesses "in" at the lowest losses and half "out" at the highest. In the scale of the pooled
# distribution function the spans of the two and of what lies between them are Dirichlet(n_in, N - r + 1, n_out), and given
# a span each of its guesses but the last is right with the same probability: so the right guesses are drawn, from a fixed
# seed.
#
# Under (eps, 0)-DP the right guesses are below a sum of two binomials; for fair coins that is one binomial, and for more
# than a few thousand guesses the tail of the sum is taken from the saddlepoint (Lugannani and Rice 1980, for lattices).

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
            p_value = partial(coin_p_value, (n_in, guesses - n_in), correct, self.inclusion)
            return largest_refuted(p_value, self.alpha / len(numbers), grid=np.array([0.0, 60.0]))

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
        return coin_p_value((n_in, guesses - n_in), correct, self.inclusion, epsilon) <= self.alpha / tried

    def _chance(self, records: int, guesses: int, tried: int, epsilon: float, attack: Attack) -> float:
        if not self._refuted(guesses, guesses, epsilon, tried):
            return 0.0
        need = first_enough(lambda right: self._refuted(guesses, right, epsilon, tried), 0, guesses)
        n_in, n_out = guesses // 2, guesses - guesses // 2
        if isinstance(attack, PerfectAttack):
            # With M members min(M, n_in) + min(N - M, n_out) guesses are right: enough for M in between.
            least, most = need - n_out, records + n_in - need
            return float(
                special.bdtr(most, records, self.inclusion)
                - (special.bdtr(least - 1, records, self.inclusion) if least > 0 else 0.0)
            )
        right = self._draws(records, guesses, attack)
        return float(np.mean(right >= need))

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


def coin_p_value(guesses: tuple[int, int], correct: int, inclusion: float, epsilon: float) -> float:
    """Return P[sum of two binomials >= correct]; of many guesses at biased coins within 1%.

    >>> round(coin_p_value((200, 0), 190, 0.8, 1.011577), 6)
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


# --- Which of the three is planned ---

_AUDITS = ModelAudit | PairAudit | CoinAudit


def _audit(
    delta: float, confidence: float, members: options.Members, split: options.MembershipSplit
) -> tuple[_AUDITS, float, float]:
    """The bound that is planned, and the delta and confidence that it is stated at."""
    delta = validate.fraction("delta", delta, zero=True)
    confidence = validate.confidence(confidence)
    validate.instance("members", members, get_args(options.Members))
    validate.instance("split", split, get_args(options.MembershipSplit))
    alpha = 1 - confidence
    match split:
        case options.RandomSplit():
            return PairAudit(delta, alpha), delta, confidence
        case options.BernoulliSplit():
            return CoinAudit(split.inclusion, alpha), 0.0, confidence
        case _:
            return ModelAudit(delta, alpha, members), delta, confidence


# --- The smallest number of records that is enough, for bounds that grow with the records but not at every step ---

# A rank grid shares the error among more ranks where it grows, so more records can certify a little less just there.
_GROWTH = 1.5
_IN_A_ROW = 4  # enough at so many marks in a row is enough from there on


def _fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number from which on all suffice, up to ``most``; null if there is none.

    It is looked for between the numbers at which a rank grid grows.

    >>> _fewest(lambda n: n * n >= 1000, 10**9)
    32
    """
    marks, power = [2], 1.0
    while marks[-1] < most:
        marks.append(max(marks[-1] + 1, min(most, 2 * round(power) + 1)))
        power *= _GROWTH
    in_a_row = 0
    low, high = 1, None
    for mark in marks:
        in_a_row = in_a_row + 1 if enough(mark) else 0
        high = mark if in_a_row == 1 else high
        low = mark if in_a_row == 0 else low
        if in_a_row == _IN_A_ROW:
            break
    if in_a_row == 0 or high is None:
        return None
    # Just before a mark the grid is still the smaller one.
    if high - 1 > low and not enough(high - 1):
        return high
    return first_enough(enough, low, high)
