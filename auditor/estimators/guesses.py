"""Guesses of an audit: fair or biased membership coins, each with its guess, in several orders of confidence.

Guesses and orders depend on the model's output and the unordered records alone, never on who is a member, this record or
another. Each coin is guessed in one direction, whatever the order: then the right guesses of all orders together are those
of one audit. Without a declaration of how membership was decided there are no coins, and so no guesses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from auditor.core import options
from auditor.core.errors import InputError
from auditor.core.values import Floats, Losses, PerGroup
from auditor.estimators.limits import kinds_of, poisson_binomial_tail
from auditor.records.labels import codes

_Integers = npt.NDArray[np.int64]
_Booleans = npt.NDArray[np.bool_]

# Numbers of guesses to try, as shares of the coins, fixed before any data are seen; all, and fewer in each order.
_SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
_WIDTH = 1 / 4  # nats of prior log-odds in a cell
# Group sizes this unlikely under the declared coins mean that the declaration is not true of these records.
_CONTRADICTION = 1e-3
_FAIR = 0.5
_UNDECLARED = (
    "it was not declared how membership was decided; only members drawn uniformly at random, or by independent coins,"
    " and declared so, say something of it"
)
_ESTIMATED = (
    "membership was not decided by chance; what estimated odds of it support, epsilon_bound.propensity, holds only if"
    " these are right"
)
_NO_STRATA = (
    "a stratified split ties the coins of different strata together, and the losses carry no group labels to pair"
    " within; give the strata as the group of each record"
)
_NO_PAIRS = (
    "no stratum has both members and non-members, so there are no random pairs to guess about; check that the group"
    " labels are the strata of the split and are spelt alike for both"
)
_NO_HOLD_OUT_LEAK = "the hold-out took no part in training, early stopping or selection"
_TOO_FEW = (
    "thinning to fair coins left fewer than two records; audit more of them, or state the claim at delta 0"
)


Odds = Callable[[Floats, bool, float], Floats]
"""The largest log-odds of guesses to be right under (epsilon, 0)-DP: by their prior, whether they say "in", and epsilon.

They grow with each of prior and epsilon."""


def membership_odds(prior: Floats, inside: bool, epsilon: float) -> Floats:  # noqa: ARG001, FBT001 - in the prior
    """Return those of guesses about membership: e^eps times their prior odds, whichever way they go."""
    return epsilon + prior


@dataclass(frozen=True)
class GuessSet:
    """The first guesses of one order.

    Attributes:
        order: Its name; "all" where every coin is guessed.
        share: Share of the coins.
        guesses: Number of guesses.
        correct: Number of right guesses.
        inside: Number of guesses that say "in", or for labels "real"; 0 for pairs.
    """

    order: str
    share: float
    guesses: int
    correct: int
    inside: int = 0

    @property
    def details(self) -> dict[str, Any]:
        """Order, share and counts, as the details of an estimate."""
        result = {"order": self.order, "share": self.share, "guesses": self.guesses, "correct": self.correct}
        return {**result, "inside": self.inside} if self.inside else result


class _Kinds(NamedTuple):
    """Guesses of each kind, which differ in nothing, and the cells of kinds next to each other.

    Attributes:
        prior: Shape (k,), as that of the guesses.
        inside: Shape (k,), whether they say "in".
        number: Shape (k,), how many there are.
        starts: Shape (c,), the first kind of each cell.
        counts: Shape (c,), guesses in each cell.
        belongs: Shape (sets, c), which sets they belong to.
    """

    prior: Floats
    inside: _Booleans
    number: _Integers
    starts: _Integers
    counts: _Integers
    belongs: _Booleans


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about membership coins, in orders fixed without looking at membership.

    Attributes:
        right: Shape (m,), whether each guess is right.
        orders: Positions of the more confident half of the guesses in each order, most confident first.
        prior: Shape (m,), the log-odds that each guess is right by its coin alone, in nats; 0 for fair coins. Or what else
            ``odds`` go by.
        adjacency: Relation between the neighbours that the coins distinguish.
        evidence: Description of the coins.
        assumptions: Assumptions about the coins.
        details: Counts of pairs or records.
        inside: Shape (m,), which guesses say "in", or of labels "real"; of pairs none.
        odds: How right a guess can be under pure differential privacy.
        least: Guesses in a set.
    """

    right: _Booleans
    orders: Mapping[str, _Integers]
    prior: Floats
    adjacency: options.Adjacency
    evidence: str
    assumptions: tuple[str, ...]
    details: dict[str, Any]
    inside: _Booleans | None = None
    odds: Odds = membership_odds
    least: int = 1

    @property
    def fair(self) -> bool:
        """Whether the coins are fair."""
        return not self.prior.any()

    @property
    def bits(self) -> int:
        """Number of coins m."""
        return self.right.size

    @cached_property
    def sets(self) -> tuple[GuessSet, ...]:
        """Every number of guesses tried, in every order; both depend on m and, for labels, on the guessed word."""
        result = [self._set("all", 1.0, slice(None))]
        for name, order in self.orders.items():
            sizes = {max(1, round(share * self.bits)): share for share in reversed(_SHARES)}
            result += [
                self._set(name, share, order[:size])
                for size, share in reversed(sizes.items())
                if self.least <= size <= order.size
            ]
        return tuple(result)

    def chosen(self, item: GuessSet) -> "_Integers | slice":
        """Guesses that a set holds."""
        return slice(None) if item.order == "all" else self.orders[item.order][: item.guesses]

    def _set(self, name: str, share: float, chosen: "_Integers | slice") -> GuessSet:
        right = self.right[chosen]
        inside = 0 if self.inside is None else int(np.count_nonzero(self.inside[chosen]))
        return GuessSet(name, share, right.size, int(np.count_nonzero(right)), inside)

    @property
    def of_a_perfect_attack(self) -> tuple[GuessSet, ...]:
        """Same guesses, all of them right."""
        return tuple(replace(item, correct=item.guesses) for item in self.sets)

    @property
    def cells(self) -> tuple[_Integers, _Booleans]:
        """Numbers of guesses that belong to the same sets with like odds, shape (c,), and those sets, shape (sets, c)."""
        return self._kinds.counts, self._kinds.belongs

    def chances(self, epsilon: float) -> Floats:
        """Return a probability for each cell whose independent coins dominate its right guesses under (epsilon, 0)-DP; shape (c,).

        The number of successes of n independent coins is stochastically below Bin(n, q), (1 - q)^n the product of their 1 - q_i
        (Boland, Singh and Cukic 2002). In log-odds that q lies about q s/2 above the mean of the q_i, s the variance of their
        log-odds, which is _WIDTH^2/12 where these are spread evenly: 0.003 q.

        Args:
            epsilon: 0 or more, in nats.
        """
        kinds = self._kinds
        odds = np.where(
            kinds.inside, self.odds(kinds.prior, True, epsilon), self.odds(kinds.prior, False, epsilon)
        )
        log_misses = np.add.reduceat(kinds.number * special.log_expit(-odds), kinds.starts)
        return np.asarray(-np.expm1(log_misses / kinds.counts))

    @cached_property
    def _kinds(self) -> "_Kinds":
        # A bit for "in", and one for each set.
        kind = np.zeros(self.bits, dtype=np.int64) if self.inside is None else self.inside.astype(np.int64)
        for bit, item in enumerate(self.sets, 1):
            kind[self.chosen(item)] += 1 << bit
        priors, place = np.unique(self.prior, return_inverse=True)
        kinds, number = np.unique(kind * priors.size + place, return_counts=True)
        kind, prior = kinds // priors.size, priors[kinds % priors.size]
        apart = (np.diff(kind, prepend=-1) != 0) | (np.diff(prior // _WIDTH, prepend=0.0) != 0)
        starts = np.flatnonzero(apart)
        bits = np.arange(1, len(self.sets) + 1)[:, None]
        return _Kinds(
            prior,
            (kind & 1).astype(bool),
            number,
            starts,
            np.add.reduceat(number, starts),
            (kind[starts] >> bits & 1).astype(bool),
        )


@dataclass(frozen=True)
class NoGuesses:
    """Reason why there are no coins to guess about."""

    reason: str


def draw_guesses(
    losses: Losses, *, split: options.MembershipSplit, rng: np.random.Generator, thin: bool = False
) -> Guesses | NoGuesses:
    """Return the guesses that the declared split allows, or why it allows none.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided.
        rng: Draws the pairs, breaks ties, and thins.
        thin: Keep of unequal coins so many, without looking at the losses, that those that are kept are fair.

    >>> losses = Losses(member=[0.0, 0.1], nonmember=[0.2, 0.3])
    >>> draw_guesses(losses, split=options.RandomSplit(), rng=np.random.default_rng(0)).right.tolist()
    [True, True]
    """
    if losses.bits is not None and not isinstance(split, options.NO_CHANCE):
        return NoGuesses("a summary keeps no single records, and guesses are about single records")
    match split:
        case options.RandomSplit():
            return _of_pairs(losses, rng, stratified=split.stratified)
        case options.BernoulliSplit():
            return of_coins(*own_coins(losses, split), rng, thin=thin)
        case options.Propensity():
            return NoGuesses(_ESTIMATED)
        case _:
            return NoGuesses(_UNDECLARED)


def _of_pairs(losses: Losses, rng: np.random.Generator, *, stratified: bool) -> Guesses | NoGuesses:
    if stratified and losses.group is None:
        return NoGuesses(_NO_STRATA)
    pairs = random_pairs(losses, strata=losses.group if stratified else None, rng=rng)
    if pairs.right.size == 0:
        return NoGuesses(_NO_PAIRS)
    where = "within each stratum (group label), " if stratified else ""
    return Guesses(
        right=pairs.right,
        orders=pairs.orders,
        prior=np.zeros(pairs.right.size),
        adjacency=options.Adjacency.REPLACE_ONE,
        evidence="random pairs within strata" if stratified else "random pairs",
        assumptions=(
            f"{where}members and non-members were split uniformly at random before training (declared, not checked)",
            _NO_HOLD_OUT_LEAK,
        ),
        details={
            "pairs": int(pairs.right.size),
            "left_out": pairs.left_out,
            **({"strata": pairs.strata} if stratified else {}),
        },
    )


# --- Inclusion coins: "in" at the lower half of the losses, "out" at the upper half ---
#
# A coin of probability p that is kept with chance min(1, (1 - p)/p) where it says "in" and min(1, p/(1 - p)) where it says
# "out" is fair, and what is kept of independent coins is independent: it looks at membership and at nothing else.


def own_coins(losses: Losses, split: options.BernoulliSplit) -> tuple[Losses, options.BernoulliSplit]:
    """Return the losses with the split's probabilities of single records as their own, and a split without them.

    Raises:
        InputError: Both name odds, or columns of other lengths.
    """
    if split.inclusion is None:
        return losses, split
    if losses.inclusion is not None:
        raise InputError(
            "inclusion must be left out of auditor.BernoulliSplit where the losses have a column of that name, got both; take"
            " auditor.BernoulliSplit() to go by the column."
        )
    if not isinstance(split.inclusion, tuple):
        return losses, split
    pair: Any = split.inclusion
    return replace(losses, inclusion=pair), options.BernoulliSplit()


def fair_coins(prior: Floats, n_member: int, rng: np.random.Generator) -> _Booleans:
    """Return a mask of the records to keep, without looking at losses, so that the coins of those kept are fair.

    Args:
        prior: Shape (n,), log-odds of membership in nats, the members' first.
        n_member: Number of members.
        rng: Draws.
    """
    away = np.where(np.arange(prior.size) < n_member, prior, -prior)
    return np.asarray(rng.random(prior.size) < np.exp(-np.maximum(away, 0.0)))


def chances(losses: Losses, split: options.BernoulliSplit) -> Floats:
    """Return the probability of each record's coin, the members' first: its own, or that of all."""
    if losses.inclusion is not None:
        return np.concatenate(losses.inclusion)
    return np.full(
        losses.n_member + losses.n_nonmember, _FAIR if split.inclusion is None else split.inclusion
    )


def of_coins(
    losses: Losses,
    split: options.BernoulliSplit,
    rng: np.random.Generator,
    *,
    thin: bool = False,
    declared: bool = True,
) -> Guesses | NoGuesses:
    """Return guesses about coins; see `draw_guesses`.

    Args:
        losses: Smaller means more like a member; with the odds of each record, if the split names none.
        split: By coins.
        rng: Breaks ties and thins.
        thin: Keep so many that the coins of those that are kept are fair.
        declared: Whether the odds are exactly those, so that groups of other sizes contradict them.
    """
    words: Any = _FAIR if split.inclusion is None else split.inclusion
    size, chance = losses.n_member + losses.n_nonmember, chances(losses, split)
    prior = special.logit(chance)
    refusal = _wrong_proportions(prior, losses.n_member) if declared else None
    if refusal is not None:
        return NoGuesses(refusal)
    values = np.concatenate([losses.member, losses.nonmember])
    is_member = np.arange(size) < losses.n_member
    details: dict[str, Any] = {"records": size, "inclusion": words}
    of = f"of probability {words:g}"
    if losses.inclusion is not None:
        least, most = float(chance.min()), float(chance.max())
        details |= {"inclusion": None, "inclusion_range": [least, most]}
        of = f"of its own probability, {least:g} to {most:g}"
    evidence = "inclusion coins"
    if thin and prior.any():
        selected = fair_coins(prior, losses.n_member, rng)
        values, is_member, prior = values[selected], is_member[selected], np.zeros(int(selected.sum()))
        if values.size < 2:  # noqa: PLR2004
            return NoGuesses(_TOO_FEW)
        details["thinned_to"] = int(values.size)
        evidence = "inclusion coins, thinned to fair ones"
    # In ascending order of loss, ties in random order.
    shuffle = rng.permutation(values.size)
    order = shuffle[_smallest(values[shuffle], values.size)[0]]
    is_member, prior = is_member[order], prior[order]
    n_in = is_member.size // 2
    prior[n_in:] *= -1
    inside = np.arange(is_member.size) < n_in
    lowest, highest = np.arange(n_in), np.arange(is_member.size)[n_in:][::-1]
    in_turn = np.column_stack([highest[:n_in], lowest]).ravel()
    return Guesses(
        right=is_member == inside,
        orders={"extreme losses": in_turn[: (n_in + 1)], "lowest losses": lowest, "highest losses": highest},
        prior=prior,
        adjacency=options.Adjacency.ADD_REMOVE,
        evidence=evidence,
        assumptions=(
            f"each record was included by an independent coin {of} (declared, not checked)",
            "every record that had a coin was scored, or a sample of them drawn without looking at membership",
            _NO_HOLD_OUT_LEAK,
        ),
        details=details,
        inside=inside,
    )


def quarters(values: Floats) -> list[_Integers]:
    """Return the positions of the values in at most four parts from low to high; equal values are in one part.

    Members stand before non-members, so that a part that ended within equal odds would hold too many of either.

    >>> [part.tolist() for part in quarters(np.array([0.2, 0.8, 0.8, 0.2, 0.2, 0.8]))]
    [[0, 3, 4], [1, 2, 5]]
    """
    cuts = np.unique(np.quantile(values, (0.25, 0.5, 0.75), method="inverted_cdf"))
    place = np.searchsorted(cuts, values)
    return [part for turn in range(cuts.size + 1) if (part := np.flatnonzero(place == turn)).size]


def _wrong_proportions(prior: Floats, n_member: int) -> str | None:
    """Return why the numbers of members contradict the declared coins, if they do: then the declared odds are not the real ones.

    Args:
        prior: Shape (n,), log-odds of membership, the members' first.
        n_member: Number of members.
    """
    parts = quarters(prior)
    for part in parts:
        members = int((part < n_member).sum())
        more, fewer = (
            poisson_binomial_tail(*kinds_of(sign * prior[part]), count)
            for sign, count in ((1, members), (-1, part.size - members))
        )
        if 2 * len(parts) * min(more, fewer) < _CONTRADICTION:
            low, high = (f"{special.expit(end):g}" for end in (prior[part].min(), prior[part].max()))
            of = low if low == high else f"{low} to {high}"
            return (
                f"{members:,} members among {part.size:,} scored records do not come from coins of probability {of}; score every"
                " record that had a coin, or a sample of them drawn without looking at membership, and check which records"
                " have which probability"
            )
    return None


# --- Random pairs of one member and one non-member, in orders that do not depend on which is which ---


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Guesses that the lower loss of a pair is the member's.

    Attributes:
        right: Shape (m,), whether each guess is right; a tie counts as wrong, which can only lower the bound.
        orders: Positions of the more confident half of the pairs in each order, most confident first.
        left_out: Records that are in no pair.
        strata: Number of strata that gave pairs; None if the pairs were drawn from all records alike.
    """

    right: _Booleans
    orders: Mapping[str, _Integers]
    left_out: int
    strata: int | None = None


def random_pairs(losses: Losses, *, strata: PerGroup | None = None, rng: np.random.Generator) -> _Pairs:
    """Pair members with non-members at random, as many as the smaller side allows.

    Args:
        losses: Smaller means more like a member.
        strata: Labels of the records, if only records with the same one may be paired. Records without a label, and
            strata that lack members or non-members, give no pairs.
        rng: Draws the pairs and breaks ties.

    >>> pairs = random_pairs(Losses(member=[0, 1], nonmember=[2, 3, 4]), rng=np.random.default_rng(0))
    >>> pairs.right.tolist(), pairs.left_out
    ([True, True], 1)
    """
    members, nonmembers, used = positions_of_pairs(losses, strata, rng)
    inside, outside = losses.member[members], losses.nonmember[nonmembers]
    left_out = losses.n_member + losses.n_nonmember - 2 * inside.size
    return _Pairs(inside < outside, pair_orders(inside, outside), left_out, used)


def positions_of_pairs(
    losses: Losses, strata: PerGroup | None, rng: np.random.Generator
) -> tuple[_Integers, _Integers, int | None]:
    """Return the members and the non-members of random pairs, and the number of strata that gave any; see `random_pairs`."""
    members, nonmembers = rng.permutation(losses.n_member), rng.permutation(losses.n_nonmember)
    if strata is None:
        bits = min(losses.n_member, losses.n_nonmember)
        return members[:bits], nonmembers[:bits], None
    label = codes(strata)
    members, nonmembers = _same_stratum(members, nonmembers, label.member, label.nonmember)
    shuffle = rng.permutation(members.size)
    return members[shuffle], nonmembers[shuffle], int(np.unique(label.member[members]).size)


def pair_orders(member: Floats, nonmember: Floats) -> dict[str, _Integers]:
    """Return the orders of confidence that depend on the unordered pairs only: no exchange of a pair's two losses changes one.

    Which end of the losses gives most away is not known beforehand: over-fitting shows in high losses of non-members,
    which distances alone drown. Each sort is stable over randomly ordered pairs, so that chance breaks ties.
    """
    # One order at a time, for there may be ten million pairs; ascending, with the most confident pair first.
    first, second = _ranks(member, nonmember)
    in_turn: Mapping[str, Callable[[], npt.NDArray[Any]]] = {
        "distance of ranks": lambda: -np.abs(first - second),
        "distance of losses": lambda: -np.abs(member - nonmember),
        "larger loss": lambda: -np.maximum(first, second),
        "smaller loss": lambda: np.minimum(first, second),
    }
    with np.errstate(over="ignore"):
        return {name: _smallest(values(), (member.size + 1) // 2)[0] for name, values in in_turn.items()}


def _ranks(member: Floats, nonmember: Floats) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the ranks from 0 of both losses of each pair among the distinct losses of all pairs; shape (2, m)."""
    pooled = np.concatenate([member, nonmember])
    order, close = _smallest(pooled, pooled.size)
    rank = np.zeros(pooled.size, dtype=np.min_scalar_type(-pooled.size))
    steps = np.ones(order[1:].size, dtype=bool)
    steps[close] = pooled[order[close]] < pooled[order[close + 1]]
    rank[order[1:]] = np.cumsum(steps, dtype=rank.dtype)
    return rank.reshape(2, -1)


def _smallest(values: npt.NDArray[Any], number: int) -> tuple[_Integers, _Integers]:
    """Return the positions of the first values of a stable sort, so many, and places in it where the next one may be equal."""
    # Integers in the order of the values; adding 0 turns -0.0 into 0.0, which is equal to it.
    keys = np.add(values, 0.0, dtype=np.float64).view(np.int64)
    keys ^= (keys >> 63) & np.iinfo(np.int64).max
    # Positions take the place of their last bits: a sort of numbers is several times as fast as one of positions by numbers.
    bits = values.size.bit_length()
    keys &= -1 << bits
    keys += np.arange(values.size)
    if number < values.size:
        last = np.partition(keys, number - 1)[number - 1] | ~(-1 << bits)
        keys = np.compress(keys <= last, keys)  # six times as fast as keys[keys <= last]
    keys.sort()
    # Values that differ in those bits alone, which are few, can be out of order.
    close = np.diff(keys >> bits) == 0
    keys &= ~(-1 << bits)
    among = np.flatnonzero(np.append(close, False) | np.append(False, close))
    keys[among] = keys[among[np.argsort(values[keys[among]], kind="stable")]]
    return keys[:number], np.flatnonzero(close)


def _same_stratum(
    members: _Integers, nonmembers: _Integers, of_members: _Integers, of_nonmembers: _Integers
) -> tuple[_Integers, _Integers]:
    """Return the positions whose k-th entries share a stratum: the first of each stratum's shuffled members and non-members."""
    size = 1 + max(int(of_members.max()), int(of_nonmembers.max()))
    fewer = np.minimum(
        *(np.bincount(side[side >= 0], minlength=size) for side in (of_members, of_nonmembers))
    )
    matched = []
    for positions, stratum in ((members, of_members), (nonmembers, of_nonmembers)):
        names = positions[stratum[positions] >= 0]
        names = names[np.argsort(stratum[names], kind="stable")]
        label = stratum[names]
        place = np.arange(names.size) - np.searchsorted(label, label, side="left")
        matched.append(names[place < fewer[label]])
    return matched[0], matched[1]
