"""Planned audits, and assumed attacks: the chance that an audit of a given size reaches its target."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import scipy
from scipy import special

from auditor.core import Floats, InputError, Losses, Subject, options
from auditor.curves.tradeoff import TradeoffCurve
from auditor.estimators import betting, guess_tests
from auditor.estimators.certified import grid_ceiling, is_exact
from auditor.estimators.exact_test import Statistic, chances_up_to, drawn_places, least_epsilons
from auditor.estimators.guess_tests import first_enough, rejects
from auditor.estimators.guesses import Guesses, GuessSet, draw_guesses, pair_orders
from auditor.estimators.joint_test import JointTest
from auditor.estimators.propensity import FEWEST
from auditor.many.assumed_attacks import Attack, PerfectAttack, RandomisedResponse
from auditor.many.whole_curve import ORDER_STATISTICS, SEQUENTIAL

# --- Shared parts of the simulations ---

_Counts = npt.NDArray[np.int64]
_Booleans = npt.NDArray[np.bool_]
DRAWS, _NULL_DRAWS = 2000, 4000
_LEFT = 0.87  # of the level of guesses: what the error of their draws leaves
_ALIKE = 1e-9


def _significant(statistic: Floats, null: Floats, alpha: float) -> _Booleans:
    """Return whether these statistics, large against the null, have p-values (1 + as large ones)/(1 + draws) up to alpha."""
    larger = null.size - np.searchsorted(np.sort(null), statistic - _ALIKE, side="left")
    return np.asarray(1 + larger <= alpha * (1 + null.size))


def _doubling(most: int) -> tuple[int, ...]:
    return (*(4 * 2**power for power in range(int(math.log2(most)) - 2)), most)


# --- The model's own bound: how large its statistic must be, and how often it is ---

_MOST = 10**9
_SOME_DRAWS, _BEYOND, _CLOSE, _LEAST = 2000, 4.0, 0.01, 1e-300


@dataclass(frozen=True)
class ModelAudit:
    """``epsilon_bound.clopper_pearson`` with its default rank grid; n counts the records of each group."""

    epsilon: float
    delta: float
    alpha: float
    coverage: options.Coverage

    subject, adjacency, whole = Subject.MODEL, None, None
    unit, counted = "records", "records in each group"
    estimate, method = "epsilon_bound.clopper_pearson", "every rank of both tails, calibrated together"

    @property
    def marks(self) -> tuple[int, ...]:
        """Numbers between which the answer is searched."""
        return _doubling(min(_MOST, self.coverage.of) if isinstance(self.coverage, options.Subset) else _MOST)

    def in_reach(self, attack: Attack) -> bool:
        """Return whether any number of records could do."""
        return self.epsilon < self.limit(attack)

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return the certified bound of a perfect attack."""
        sizes, rule = (n_member, n_nonmember), options.RankGrid()
        return grid_ceiling(*sizes, delta=self.delta, alpha=self.alpha, rule=rule, coverage=self.coverage)

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows however many records there are."""
        return attack.leak(self.delta)

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that n records in each group certify the epsilon."""
        possible = self.ceiling(n, n) >= self.epsilon
        if isinstance(attack, PerfectAttack) or not possible:
            return float(possible)
        law = Statistic(n, n, self.delta, self.alpha, self.coverage)
        exact = is_exact(n, n, self.alpha, self.coverage)

        def excess(value: float) -> float:
            least, weights = least_epsilons(law.corners(value), law, near=self.epsilon, draws=_SOME_DRAWS)
            place = np.count_nonzero(least <= self.epsilon)
            # A bound by drawn audits pays for their error.
            chance = weights[:place].sum() / _SOME_DRAWS if exact else chances_up_to(weights)[place]
            return math.log(max(float(chance), _LEAST) / self.alpha)

        # The value of the statistic that certifies the epsilon, and how often the attack reaches it.
        low, high = self.epsilon / 2, self.epsilon + _BEYOND
        value = low if excess(low) <= 0 else high
        if value == high and excess(high) < 0:
            value = scipy.optimize.brentq(excess, low, high, xtol=_CLOSE)
        places = drawn_places(law.corners(value), replace(law, chosen=options.Sample()), draws=DRAWS)
        reached = [(x <= attack.tpr(y)).any(axis=0) for y, x, *_ in places]
        return float(np.mean(np.concatenate(reached))) if reached else 0.0


# --- One run: how many guesses of each order and number are right, and how many the test needs ---
#
# The test looks at several orders and numbers of guesses. Given the losses, whether each guess is right is independent of
# the others: so right guesses are drawn for all sets together, cell by cell of guesses that belong to the same sets, and
# set beside what each set needs; at delta 0 beside the same statistic where every guess is right with the claimed odds.
#
# Pairs: the cells, their sizes and rates are those of all pairs of a grid of quantiles; a sample's cells are multinomial,
# and what a set then lacks, or has too much, is taken at its own threshold. Coins: the sets are intervals of the sorted
# losses, whose spans on the scale of the pooled distribution function are Dirichlet; within a span all are alike. How many
# of unequal coins are kept is binomial.

_PAIR_GRID = 600  # quantiles of each group
_MOST_GUESSES = 10**7
_LAYOUT = 4096  # guesses from which on the sets are the same shares
_ENDLESS = 10**12
_FAIR, _LEAST_COINS = 0.5, 4
_SPREAD = (np.arange(5) + 0.5) / 5  # of how many coins are kept


@dataclass(frozen=True, eq=False)
class OneRunAudit:
    """The one-run audit on a `RandomSplit` or a `BernoulliSplit` by its default test; of coins n counts all records.

    Attributes:
        split: Assignment of membership.
        alpha: The error of all sets of guesses together.
        epsilon: To certify, or of a pure claim.
        delta: At which; 0 for the calibrated test of pure epsilon.
        whole: The claimed curve, if that is to be refuted.
    """

    split: options.RandomSplit | options.BernoulliSplit
    alpha: float
    epsilon: float
    delta: float
    whole: TradeoffCurve | None = None

    subject, unit, marks = Subject.MECHANISM, "records", _doubling(_MOST_GUESSES)
    estimate: ClassVar[str] = "epsilon_bound.one_run"

    @property
    def counted(self) -> str:
        """Unit that n counts."""
        return "records" if self._coins else "records in each group"

    @property
    def adjacency(self) -> options.Adjacency:
        """Relation between the neighbours."""
        return neighbours(self.split)

    @property
    def method(self) -> str:
        """Method of the bound."""
        test = "f-DP recursion, Mahloujifar, Melis and Chaudhuri 2024"
        if self.delta == 0:
            test = "every order and number of guesses, calibrated together"
        return f"one-run audit on {'inclusion coins' if self._coins else 'random pairs'}, {test}"

    @property
    def _coins(self) -> bool:
        return isinstance(self.split, options.BernoulliSplit)

    @property
    def _inclusion(self) -> float:
        return common_inclusion(self.split)

    @property
    def _prior(self) -> Floats:
        """Log-odds that a guess "in" and a guess "out" are right by the coin alone."""
        return np.array([1.0, -1.0]) * special.logit(self._inclusion)

    @property
    def _fair(self) -> bool:
        """Whether the guessed coins are fair, unequal ones thinned."""
        return self.delta > 0 or self._inclusion == _FAIR

    @property
    def _kept(self) -> tuple[float, float]:
        """Shares of the members and of the non-members that are guessed, others being thinned away."""
        if not self._coins or not self._fair:
            return 1.0, 1.0
        odds = self._inclusion / (1 - self._inclusion)
        return min(1.0, 1 / odds), min(1.0, odds)

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return the certified bound of a perfect attack."""
        bits = min(n_member, n_nonmember)
        if self._coins:
            bits = max(_LEAST_COINS, round(n_member * self._kept[0] + n_nonmember * self._kept[1]))
        if self.delta:
            sets = _sets(bits, coins=self._coins)
            return guess_tests.fdp_bound(sets, bits=bits, delta=self.delta, alpha=self.alpha)[0]
        step = guess_tests.pure_step(bits)
        kept = guess_tests.first_enough(
            lambda at: not self._all_right_refute(bits, at * step),
            -1,
            round(guess_tests.LARGEST_EPSILON / step),
        )
        return max(0, kept - 1) * step

    def _all_right_refute(self, bits: int, epsilon: float) -> bool:
        """Return whether so many guesses, all of them right, refute a pure epsilon."""
        sides = np.array([bits // 2, bits - bits // 2])
        return bool(sides @ special.log_expit(epsilon + self._prior) <= math.log(self.alpha))

    def in_reach(self, attack: Attack) -> bool:
        """Return whether any number of records could do."""
        if self.whole is None:
            return self.epsilon < self.limit(attack)
        # For endless guesses of one set: whether the recursion begins, which then does not end.
        sets = _sets(_LAYOUT, coins=self._coins)
        mass = np.array([item.share for item in sets]) * self.alpha / len(sets)
        right = self._rates(attack)
        pairs = zip((mass * right).tolist(), (mass * (1 - right)).tolist(), strict=True)
        return any(self._smallest_fpr(rightly) > wrongly for rightly, wrongly in pairs)

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows by this test however many records there are."""
        sets, limits = _sets(_ENDLESS, coins=self._coins), [0.0]
        for item, rate in zip(sets, self._rates(attack).tolist(), strict=True):
            left = rate - self.delta * len(sets) / (self.alpha * item.share)
            if rate == 1 and left > 0:
                return math.inf
            if self._fair:
                limits.append(math.log(left) - math.log1p(-rate) if left > 0 else 0.0)
            else:
                share = np.array(self._kinds(item)) / item.guesses

                def too_many(epsilon: float, share: Floats = share, rate: float = rate) -> float:
                    return float(share @ special.expit(epsilon + self._prior)) - rate

                limits.append(
                    scipy.optimize.brentq(too_many, 0.0, guess_tests.LARGEST_EPSILON)
                    if too_many(0.0) < 0
                    else 0.0
                )
        return max(limits)

    def _rates(self, attack: Attack) -> Floats:
        """Return the rate of right guesses of each set as their number grows without end."""
        guesses = np.array([item.guesses for item in _sets(_ENDLESS, coins=self._coins)])
        return np.asarray(self._right(_ENDLESS, attack, draws=1)[:, 0] / guesses)

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that n records (of pairs, in each group) reach the target."""
        share = float(np.array([self._inclusion, 1 - self._inclusion]) @ self._kept)
        sizes = np.array([n]) if share == 1 else special.bdtrik(_SPREAD, n, share).round()
        least = _LEAST_COINS if self._coins else n
        return float(np.mean([self._chance_of(max(least, int(bits)), attack) for bits in sizes]))

    def _chance_of(self, bits: int, attack: Attack) -> float:
        sets = _sets(bits, coins=self._coins)
        all_right = np.array([[item.guesses] for item in sets])
        if self.delta == 0:
            if not self._all_right_refute(bits, self.epsilon):
                return 0.0
            if isinstance(attack, PerfectAttack) and not self._coins:
                return 1.0
            return float(np.mean(self._calibrated(bits, sets, attack)))
        if not self._enough(bits, sets, all_right).any():
            return 0.0
        return float(np.mean(self._enough(bits, sets, self._right(bits, attack))))

    def _calibrated(self, bits: int, sets: tuple[GuessSet, ...], attack: Attack) -> _Booleans:
        """Return whether all sets together refute the pure epsilon, in each simulated audit; shape (draws,)."""
        step = guess_tests.pure_step(bits)
        epsilon = math.ceil(self.epsilon / step - _ALIKE) * step  # the bound is one of a grid
        rates = special.expit(epsilon + self._prior)
        right = self._right(bits, attack)
        at_claim = self._right(bits, attack, rates=rates, draws=_NULL_DRAWS)
        kinds = np.array([self._kinds(item) for item in sets], dtype=np.float64)
        means = special.logit(kinds @ rates / kinds.sum(axis=1))
        statistic, null = (
            guess_tests.joint(guess_tests.exponents(x.T, sets, means)) for x in (right, at_claim)
        )
        clear = len(sets) * np.exp(-statistic) <= self.alpha
        return np.asarray(_significant(statistic, null, _LEFT * self.alpha) | clear)

    def _enough(self, bits: int, sets: tuple[GuessSet, ...], right: _Counts) -> _Booleans:
        """Return whether any set has enough right guesses to refute, for each column of them; shape (draws,)."""
        refuted, share = np.zeros(right.shape[1], dtype=bool), self.alpha / len(sets)
        for item in {self._kinds(item): item for item in sets}.values():
            rows = right[[self._kinds(other) == self._kinds(item) for other in sets]]
            refutes = partial(self._refutes, bits, item, share)
            if refutes(int(rows.max())):
                need = first_enough(refutes, int(rows.min()) - 1, int(rows.max()))
                refuted |= (rows >= need).any(axis=0)
        return refuted

    def _refutes(self, bits: int, item: GuessSet, alpha: float, correct: int) -> bool:
        if correct < 0:
            return False
        return rejects(self._smallest_fpr, bits=bits, guesses=item.guesses, correct=correct, alpha=alpha)

    def _kinds(self, item: GuessSet) -> tuple[int, int]:
        """Return guesses that say "in" and that say "out"; sets with the same need the same number of right ones."""
        inside = 0 if self._fair else item.inside
        return inside, item.guesses - inside

    @cached_property
    def _smallest_fpr(self) -> guess_tests.SmallestFpr:
        if self.whole is not None:
            return guess_tests.of_curve(self.whole)
        return guess_tests.of_epsilon_delta(self.epsilon, delta=self.delta)

    def _right(
        self, bits: int, attack: Attack, *, rates: Floats | None = None, draws: int = DRAWS
    ) -> _Counts:
        """Return right guesses of simulated audits, shape (sets, draws); those that say "in" and "out" at these rates, if given."""
        if self._coins:
            prior = _FAIR if self._fair else self._inclusion
            return _right_of_coins(bits, attack, prior, rates, draws)
        return _right_of_pairs(bits, attack, None if rates is None else float(rates[0]), draws)


@dataclass(frozen=True, eq=False)
class PropensityAudit(OneRunAudit):
    """Audit on estimated odds of membership, all of them even: half of the n records are learnt from and not audited."""

    estimate: ClassVar[str] = "epsilon_bound.propensity"

    @property
    def method(self) -> str:
        """Method of the bound."""
        return "one-run audit on estimated odds of membership, of groups that overlap entirely"

    def ceiling(self, n_member: int, n_nonmember: int) -> float:
        """Return the certified bound of a perfect attack."""
        return super().ceiling(n_member // 2, n_nonmember // 2)

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that n records reach the target; of too few no odds are estimated."""
        return super().chance(n // 2, attack) if n >= 4 * FEWEST else 0.0


@dataclass(frozen=True, eq=False)
class LabelsAudit:
    """The audit of labels of so many classes, each as likely as the others by D; n counts the training records.

    Attributes:
        classes: 2 or more.
        alpha: The error of all sets of guesses together.
        epsilon: To certify, at delta 0.
    """

    classes: int
    alpha: float
    epsilon: float

    marks, counted, whole = _doubling(_MOST_GUESSES), "records", None
    subject, adjacency = Subject.MECHANISM, options.Adjacency.REPLACE_ONE
    unit, estimate = "labels", "epsilon_bound.labels"

    @property
    def method(self) -> str:
        """Method of the bound."""
        return f"guesses whether labels are real or drawn, of {self.classes} classes that features make equally likely"

    def in_reach(self, attack: Attack) -> bool:
        """Return whether any number of records could do."""
        return self.epsilon < self.limit(attack)

    def limit(self, attack: Attack) -> float:
        """Return the largest epsilon that the attack shows however many records there are: its own."""
        if isinstance(attack, RandomisedResponse):
            return attack.epsilon
        if isinstance(attack, PerfectAttack):
            return math.inf
        raise InputError(
            f"attack must be PerfectAttack() or RandomisedResponse(epsilon) in the plan of an audit of labels, got {attack}."
        )

    def ceiling(self, n_member: int, _: int = 0) -> float:
        """Return the certified bound of a perfect attack: some of the labels that are drawn are the real ones."""
        counts = np.round(n_member * self._rates(PerfectAttack())).astype(np.int64)[None]
        return guess_tests.largest_of_all_below(
            lambda epsilon: bool(self._refute(counts, epsilon)[0]),
            guess_tests.LARGEST_EPSILON,
            halvings=_HALVINGS,
        )

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that n records reach the target."""
        counts = np.random.default_rng([n, _LABEL_DRAWS]).multinomial(n, self._rates(attack), _LABEL_DRAWS)
        return float(np.mean(self._refute(counts, self.epsilon)))

    def _rates(self, attack: Attack) -> Floats:
        """Return the rates of guesses that say "real" and are right, say it and are wrong, say "drawn" and are right, and are wrong."""
        share = 1 / self.classes
        words = float(special.expit(self.limit(attack) - math.log(self.classes - 1)))
        return np.array([words, share, 1 - share, 1 - words]) / 2

    def _refute(self, counts: _Counts, epsilon: float) -> _Booleans:
        """Return whether guesses that say "real", that say "drawn" or all are too often right for this epsilon; shape (draws,).

        Args:
            counts: Shape (draws, 4), as the rates.
            epsilon: Pure, in nats.
        """
        from auditor.many.label_audit import label_odds

        prior = np.array([math.log(self.classes - 1)])
        rates = special.expit(
            np.concatenate([label_odds(prior, inside, epsilon) for inside in (True, False)])
        )
        sizes = counts.reshape(-1, 2, 2).sum(axis=2)
        rng = np.random.default_rng([self.classes, _LABEL_NULLS])
        null = rng.binomial(sizes[:, None], rates, (len(counts), _LABEL_NULLS, 2))
        statistic, least = (_of_sides(right, sizes[:, None], rates) for right in (null, counts[:, None, ::2]))
        larger = (statistic >= least - _ALIKE).sum(axis=1)
        return np.asarray(1 + larger <= _LEFT * self.alpha * (1 + _LABEL_NULLS))


def _of_sides(right: _Counts, sizes: _Counts, rates: Floats) -> Floats:
    """Return the largest exponent of two sides and of both together; see `guess_tests.exponents`."""
    both = (sizes @ rates / sizes.sum(axis=-1))[..., None]
    number, mean = (
        np.concatenate(pair, axis=-1)
        for pair in (
            (sizes, sizes.sum(axis=-1, keepdims=True)),
            (np.broadcast_to(rates, sizes.shape), both),
        )
    )
    found = np.concatenate([right, right.sum(axis=-1, keepdims=True)], axis=-1)
    divergence = special.rel_entr(found, number * mean) + special.rel_entr(
        number - found, number * (1 - mean)
    )
    return np.asarray(np.where(found > number * mean, divergence, 0.0).max(axis=-1))


_LABEL_DRAWS, _LABEL_NULLS, _HALVINGS = 300, 1000, 20


def neighbours(split: options.MembershipSplit) -> options.Adjacency:
    """Return the relation of the neighbours that one run on this split distinguishes."""
    coins = isinstance(split, options.BernoulliSplit)
    return options.Adjacency.ADD_REMOVE if coins else options.Adjacency.REPLACE_ONE


def common_inclusion(split: options.MembershipSplit) -> float:
    """Return the probability of the coins of a plan, a half where none is given."""
    words = split.inclusion if isinstance(split, options.BernoulliSplit) else None
    if isinstance(words, tuple):
        raise InputError(
            "inclusion must be one number in a plan, got a pair of columns; give an average of the records' own."
        )
    return _FAIR if words is None else words


@lru_cache(maxsize=64)
def _sets(bits: int, *, coins: bool) -> tuple[GuessSet, ...]:
    """Return the sets of guesses that an audit of so many coins looks at, all right; as those of a few thousand where more."""
    few = min(bits, _LAYOUT)
    n_member = few // 2 if coins else few
    apart = np.arange(float(few if coins else 2 * few))
    split = options.BernoulliSplit() if coins else options.RandomSplit()
    losses = Losses(member=apart[:n_member], nonmember=apart[n_member:])
    # Declared, and in even groups: there are guesses.
    guesses = cast("Guesses", draw_guesses(losses, split=split, rng=np.random.default_rng(0)))
    if few == bits:
        return guesses.of_a_perfect_attack
    larger = []
    for item in guesses.sets:
        size = max(1, round(item.share * bits))
        larger.append(GuessSet(item.order, item.share, size, size, size * item.inside // item.guesses))
    return tuple(larger)


class _Cells(NamedTuple):
    """Pairs that belong to the same sets: their share of all, shape (c,), the sets, (sets, c), and their rates of right guesses."""

    share: Floats
    belongs: _Counts
    rate: Floats
    at_threshold: Floats


@lru_cache(maxsize=8)
def _cells(attack: Attack) -> _Cells:
    """Return the cells of all pairs of a grid of quantiles; and, shape (sets,), how often the pairs about a threshold are right."""
    levels = (np.arange(_PAIR_GRID) + 0.5) / _PAIR_GRID
    # Equal confidences of the grid are put in no order.
    mixed = np.random.default_rng(0).permutation(_PAIR_GRID**2)
    rates = [axis.ravel()[mixed] for axis in np.meshgrid(attack.fpr(levels), levels, indexing="ij")]
    orders = pair_orders(*map(attack.losses, rates))
    # Given an unordered pair the lower loss is the member's with these odds.
    right = special.expit(np.abs(attack.log_odds(rates[0]) - attack.log_odds(rates[1])))
    sets = _sets(_LAYOUT, coins=False)
    kind, near = np.zeros(right.size, dtype=np.int64), np.ones(len(sets))
    for row, item in enumerate(sets[1:], start=1):
        order = orders[item.order]
        end = round(item.share * right.size)
        kind[order[:end]] += 2**row
        near[row] = right[order[round(0.9 * end) : round(1.1 * end)]].mean()
    kinds, of, counts = np.unique(kind, return_inverse=True, return_counts=True)
    belongs = (kinds >> np.arange(len(sets))[:, None]) & 1
    belongs[0] = 1
    return _Cells(counts / right.size, belongs, np.bincount(of, weights=right) / counts, near)


def _right_of_pairs(bits: int, attack: Attack, rate: float | None, draws: int) -> _Counts:
    cells, rng = _cells(attack), np.random.default_rng([bits, draws])
    at = {(item.order, item.share): row for row, item in enumerate(_sets(_LAYOUT, coins=False))}
    sets = _sets(bits, coins=False)
    rows = [at[item.order, item.share] for item in sets]
    belongs, guesses = cells.belongs[rows], np.array([[item.guesses] for item in sets])
    within, near = cells.rate, cells.at_threshold[rows, None]
    if rate is not None:
        within, near = np.full_like(within, rate), np.full_like(near, rate)
    counts = rng.multinomial(bits, cells.share, size=draws)
    right = np.asarray(belongs @ rng.binomial(counts, within).T)
    lacking = guesses - np.asarray(belongs @ counts.T)
    # Their mean, rounded at random: what is taken away had its share of the variance already, what is added has none.
    right += np.floor(lacking * near + rng.random(lacking.shape)).astype(np.int64)
    return np.asarray(np.clip(right, 0, guesses))


def _right_of_coins(bits: int, attack: Attack, prior: float, rates: Floats | None, draws: int) -> _Counts:
    sets, rng = _sets(bits, coins=True), np.random.default_rng([bits, draws])
    low = np.array([[item.inside] for item in sets])
    high = np.array([[bits - item.guesses + item.inside] for item in sets])
    edges = np.unique(np.concatenate([[0, bits // 2, bits], low.ravel(), high.ravel()]))
    sizes, said_in = np.diff(edges)[:, None], edges[1:, None] <= bits // 2
    belongs = ((edges[1:] <= low) | (edges[:-1] >= high)).astype(np.int64)
    if rates is not None:
        chance = np.where(said_in, *rates)
        return np.asarray(belongs @ rng.binomial(sizes, chance, size=(sizes.size, draws)))
    spans = rng.standard_gamma(sizes, (sizes.size, draws))
    spans /= spans.sum(axis=0)
    ends = np.concatenate([np.zeros((1, draws)), np.cumsum(spans, axis=0)])
    # Where the pooled distribution function is so high, non-members' is as high as this.
    half = np.geomspace(1e-15, 0.5, _GRID)
    fpr = np.concatenate([half, 1 - half[::-1]])
    reached = np.interp(ends, prior * attack.tpr(fpr) + (1 - prior) * fpr, fpr)
    inside = np.clip(1 - (1 - prior) * np.diff(reached, axis=0) / np.maximum(spans, _TINY), 0.0, 1.0)
    return np.asarray(belongs @ rng.binomial(sizes, np.where(said_in, inside, 1 - inside)))


_GRID, _TINY = 10_000, 1e-300


# --- Many runs: the joint test on the claimed curve, and bets on pairs of runs ---

_MOST_RUNS = 2**15
_UNSEEN = 2e-12  # of a threshold's law, which the test leaves out


_RATES = special.expit(np.linspace(-30, 30, 601))


@dataclass(frozen=True, eq=False)
class _OfRuns:
    """Shared part of both audits of many runs: a claimed curve, and the error of refuting it."""

    whole: TradeoffCurve
    alpha: float
    adjacency: options.Adjacency

    subject, unit = Subject.MECHANISM, "runs"

    def in_reach(self, attack: Attack) -> bool:
        """Return whether any number of runs could do: whether the attack shows more than the curve allows anywhere."""
        allowed = np.interp(_RATES, self.whole.fpr, self.whole.tpr)
        return bool(np.any(attack.tpr(_RATES) > allowed + _ALIKE))


@dataclass(frozen=True, eq=False)
class RunsAudit(_OfRuns):
    """`auditor.audit_runs` on a fixed number of runs; n counts those of one world."""

    counted, marks = "runs of each kind", _doubling(_MOST_RUNS)
    estimate, method = ORDER_STATISTICS, "every threshold at once, both tails calibrated together"

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that n runs with the canary and n without refute the claim."""
        test = JointTest(n, n, self.whole)
        if isinstance(attack, PerfectAttack):
            return float(test.p_value_of(test.perfect, alpha=self.alpha, steps=1) <= self.alpha)
        rng = np.random.default_rng(n)
        tpr = np.minimum(attack.tpr(_RATES), 1 - _ALIKE)
        corners = (np.concatenate([[0.0], rates, [1.0]]) for rates in (_RATES, tpr))
        attacked = JointTest(n, n, TradeoffCurve(*corners))
        null, statistic = test.least(test.drawn(_NULL_DRAWS, rng)), test.least(attacked.drawn(DRAWS, rng))
        clear = test.number_of_ranks * (np.exp(statistic) + _UNSEEN) <= self.alpha
        return float(np.mean(_significant(-statistic, -null, self.alpha) | clear))


_MOST_PAIRS, _SETTLED, _AUDITS = 2000, 12_000, (20, 300)
_AT_ONCE = 50  # pairs


@dataclass(frozen=True, eq=False)
class SequentialAudit(_OfRuns):
    """`auditor.audit_runs` with `Sequential()`; n counts pairs of runs."""

    counted, marks = "pairs of runs", (_MOST_PAIRS,)
    estimate, method = SEQUENTIAL, "bets on pairs of runs in the order of their numbers"

    def chance(self, n: int, attack: Attack) -> float:
        """Return the chance that the claim is refuted by the n-th pair, if not before."""
        return float(np.mean(_refuted_after(self, attack) <= n))


@lru_cache(maxsize=4)
def _refuted_after(audit: SequentialAudit, attack: Attack) -> _Counts:
    """Return the pairs after which simulated audits refute, one more than they examine if they do not; fewer of long ones."""
    if isinstance(attack, PerfectAttack):
        return np.array([betting.pairs_needed(audit.whole, alpha=audit.alpha) or _MOST_PAIRS + 1])
    rng, lines, enough = np.random.default_rng(0), betting.Lines.of_curve(audit.whole), -math.log(audit.alpha)
    refuted: list[int] = []
    fewest, most = _AUDITS
    while sum(refuted) < _SETTLED or (len(refuted) < fewest and min(refuted) <= _MOST_PAIRS):
        bets = betting.Bets(lines)
        while bets.most < enough and bets.pairs < _MOST_PAIRS:
            tpr, fpr = rng.random((2, _AT_ONCE))
            grown = bets.add(attack.losses(attack.fpr(tpr)), attack.losses(fpr))
        after = np.flatnonzero(grown >= enough)
        refuted.append(bets.pairs - _AT_ONCE + int(after[0]) + 1 if after.size else _MOST_PAIRS + 1)
        if len(refuted) == most:
            break
    return np.array(refuted)


Audit = ModelAudit | OneRunAudit | LabelsAudit | RunsAudit | SequentialAudit
