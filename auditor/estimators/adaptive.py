"""``epsilon_bound.adaptive``: a bound on the training algorithm's epsilon at delta 0, by guesses learnt from revealed coins.

Let membership be decided by independent coins, or by fair coins within random pairs, and the mechanism be (eps, 0)-DP. Given its
output, all unordered records and **all other coins**, the odds of a coin lie within e^eps of its prior odds (Bayes' rule). The
coins are revealed one after another in a random order. Whatever was learnt from the revealed ones - which way to guess the next
coin, and how much to bet on it - is fixed given these, so that the guess is right with a probability of at most
q = expit(eps + a), a the prior log-odds of what is guessed. A bet multiplies the wealth by p/q if the guess is right and by
(1 - p)/(1 - q) if not, with p > q the probability that was learnt, or by 1 where p <= q: the mean of this factor is at most 1
for every true probability of at most q. So the wealth is a non-negative supermartingale, and so is a mean of several with
weights fixed in advance. By Ville's inequality it ever reaches 1/alpha with a probability of at most alpha.

The learnt probability is a prior odds times a likelihood ratio e^g, and a bet is placed where g > eps. The ratio is learnt from
shares of members among the revealed records with like scores, in cells of pooled ranks, or by classifiers on several scores
and features; no cell, rank or order depends on a coin. A leak need not be monotone in the loss.

"Epsilon at most eps" are nested hypotheses: the bound is the last point of a fixed grid before the first that is not refuted. To
round g down, and a up, places other bets, and allows more than the truth does: both keep the level.

At a delta above 0 a guess may be right with certainty where the output shows a coin, which has a probability of at most delta
for each coin; no product of bets survives this, and a union over the coins would cost m delta. So the bound stands at delta 0.

Source: Keinan, Shenfeld and Ligett 2025 for adaptive guesses in one run; the bets and their mixture are [own], after Waudby-Smith
and Ramdas 2024.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import special

from auditor.core import options
from auditor.core.values import Booleans, Estimate, Floats, Integers, OutputPolicy, PerGroup, Subject
from auditor.estimators.evidence import Evidence
from auditor.estimators.guesses import NoGuesses, chances, positions_of_pairs
from auditor.estimators.one_run import errors_at_delta_0, of_units
from auditor.records.features import CLASSIFIERS, Table, classified, encoded

ADAPTIVE = "epsilon_bound.adaptive"
_METHOD = "one-run audit on {}; bets on guesses learnt from revealed coins"
_ALL = "all"  # scores, and features, together
_OF_HEADLINE = 0.1  # of the error: see `auditor.pipeline.shown_together`
_FAIR, _HAIR = 0.5, 1e-9
_STEP, _LARGEST = 1 / 32, 16.0
_GRID = np.arange(0.0, _LARGEST + _STEP / 2, _STEP)  # of epsilon, in nats
_FINE = 1 / 16  # of prior log-odds, in nats
_CELLS = (8, 32, 128)  # into which the pooled ranks of a score are cut, each into parts of the one before
_FIRST, _GROWTH = 32, 1.25  # coins of the first block, and the growth of the revealed ones
# Growth of the revealed coins between two fits, coins of one fit, coins before the last fit and that fits score.
_AGAIN, _LEARNT, _MOST, _SCORED = 2, 5_000, 20_000, 40_000


@dataclass(frozen=True, eq=False)
class Coins:
    """Coins in the order in which they are revealed.

    Attributes:
        records: Shape (k, m), the places of the records of each coin among all, members and others: with k = 2 one of both is
            a member, with k = 1 the record is one or is not.
        heads: Shape (m,), whether the first record is a member.
        prior: Shape (m,), the log-odds of that, in nats.
    """

    records: Integers
    heads: Booleans
    prior: Floats

    def revealed(self, block: slice) -> tuple[Integers, Booleans, Floats]:
        """Return the records of a block, whether they are members, and the chance of it by the coin alone."""
        sides = [(self.heads[block], self.prior[block]), (~self.heads[block], -self.prior[block])]
        label, prior = (np.concatenate(part) for part in zip(*sides[: len(self.records)], strict=True))
        return self.records[:, block].ravel(), label, special.expit(prior)


class Learner(Protocol):
    """Learns the log of the likelihood ratio of "is a member" from the records that were revealed, in one way or several."""

    ways: int

    def ratios(self, records: Integers) -> Floats:
        """Return it for records of shape (k, b), by each way; shape (ways, k, b)."""

    def learn(self, coins: Coins, block: slice) -> None:
        """Learn from a block that was revealed."""


class Shares:
    """By the shares of members in cells of the pooled ranks of one score: few large cells, and many small ones."""

    ways = len(_CELLS)

    def __init__(self, score: Floats) -> None:
        """Cut the ranks of a score of all records, shape (n,), without a look at membership."""
        last = np.arange(1, _CELLS[-1]) * score.size // _CELLS[-1]
        ends = np.partition(score, np.unique(last))[last]
        cuts = np.unique(ends)
        self._cell = np.searchsorted(cuts, score, side="right").astype(np.uint8)
        self._seen = np.zeros((2, cuts.size + 1))
        # The large cells are made of small ones: the number of their cuts at or below the lower end of each.
        coarse = (ends[_CELLS[-1] // number - 1 :: _CELLS[-1] // number] for number in _CELLS)
        self._large = [np.append(0, np.searchsorted(np.unique(part), cuts, side="right")) for part in coarse]

    def ratios(self, records: Integers) -> Floats:
        """Return the log-ratios, with one record more of each kind in each cell, less that of all records."""
        cell, tables, (members, others) = self._cell[records], [], self._seen.sum(axis=1) + 1
        for large in self._large:
            inside, outside = (np.bincount(large, row)[large] + 1 for row in self._seen)
            tables.append(np.log(inside / outside * (others / members))[cell])
        return np.stack(tables)

    def learn(self, coins: Coins, block: slice) -> None:
        """Count, weighted by the chance of the other kind: without a leak both sums then have one mean for all odds."""
        records, label, chance = coins.revealed(block)
        kind = self._cell[records] + self._seen.shape[1] * ~label
        counts = np.bincount(kind, 2 * np.where(label, 1 - chance, chance), minlength=self._seen.size)
        self._seen += counts.reshape(self._seen.shape)


class Classifiers:
    """By a linear and a tree classifier on several columns, of the coins that are revealed first."""

    ways = CLASSIFIERS

    def __init__(
        self, tables: Sequence[Sequence[Table]], records: Integers, rng: np.random.Generator
    ) -> None:
        """Encode tables of both groups side by side, of these records alone; membership is not looked at."""
        records = np.sort(records)
        n, size = tables[0][0].n, sum(table.n for table in tables[0])
        rows = records[records < n], records[records >= n] - n
        pairs = ([table.rows(at) for table, at in zip(pair, rows, strict=True)] for pair in tables)
        self._columns = np.hstack([encoded(*pair, rng=rng)[0] for pair in pairs])
        self._row = np.zeros(size, dtype=np.int64)
        self._row[records] = np.arange(records.size)
        self._fitted, self._ratio = _FIRST, np.zeros((self.ways, size))

    def ratios(self, records: Integers) -> Floats:
        """Return the log-ratios, 0 of records that no fit has scored."""
        return self._ratio[:, records]

    def learn(self, coins: Coins, block: slice) -> None:
        """Fit whenever the revealed coins have doubled, and score the coins until the next time."""
        if not _AGAIN * self._fitted <= block.stop <= _MOST or not self._columns.size:
            return
        self._fitted = block.stop
        seen, label, _ = coins.revealed(slice(max(0, block.stop - _LEARNT), block.stop))
        to_come = coins.records[
            :, block.stop : min(_SCORED, math.ceil(_AGAIN * _GROWTH * block.stop))
        ].ravel()
        if to_come.size and 0 < np.count_nonzero(label) < label.size:
            scores = classified(self._columns[self._row[seen]], label, self._columns[self._row[to_come]])
            self._ratio[:, to_come] = scores - special.logit(label.mean())


def log_wealth(coins: Coins, learners: Sequence[Learner], *, least: int = 1) -> Floats:
    """Return the log of the largest wealth that bets against each epsilon ever had; shape (1 + learners, grid).

    The first row is that of all bets together, which is no less than that of the bets of each learner, the other rows: so at
    one error all rows hold together.

    Args:
        coins: In the order in which they are revealed.
        learners: What the bets go by. Each has as much to bet as the others, and each of its ways too.
        least: Right guesses that a way has bet on, before which its wealth against an epsilon does not count.
    """
    ways = [learner.ways for learner in learners]
    wealth, right = np.zeros((2, sum(ways), _GRID.size))
    shares = -np.log(np.repeat(ways, ways) * len(ways))[:, None]
    most, firsts = np.full((1 + len(ways), _GRID.size), -np.inf), np.cumsum([0, *ways[:-1]])
    start, size = 0, coins.heads.size
    while start < size:
        block = slice(start, min(size, max(_FIRST, math.ceil(start * _GROWTH))))
        ratios = np.concatenate([learner.ratios(coins.records[:, block]) for learner in learners])
        gaps = ratios[:, 0] - ratios[:, 1] if ratios.shape[1] > 1 else ratios[:, 0]
        for way, gap in enumerate(gaps):
            is_right = (gap > 0) == coins.heads[block]
            growth, won = _growth(np.abs(gap), is_right, np.where(gap > 0, 1, -1) * coins.prior[block])
            wealth[way] += growth
            right[way] += won
        counted = np.where(right >= least, wealth + shares, -np.inf)
        own = np.logaddexp.reduceat(counted, firsts, axis=0)
        most = np.maximum(most, np.vstack([np.logaddexp.reduce(own, axis=0), own]))
        for learner in learners:
            learner.learn(coins, block)
        start = block.stop
    return most


def _growth(gap: Floats, is_right: Booleans, prior: Floats) -> tuple[Floats, Floats]:
    """Return the growth of the log of the wealth by a block of guesses, and the right ones with a bet, shapes as the grid.

    Args:
        gap: Shape (b,), how much their log-ratios speak for the guesses, 0 or more.
        is_right: Shape (b,).
        prior: Shape (b,), the log-odds that they are right by the coin alone.
    """
    odds = np.ceil(prior / _FINE).astype(np.int64)
    level = np.minimum(gap / _STEP, _GRID.size - 1).astype(np.int64)
    kind = level + _GRID.size * (odds - odds.min())
    number = np.bincount(kind)
    kinds = np.flatnonzero(number)
    number, won = number[kinds], np.bincount(kind, is_right)[kinds]
    ratio, prior = kinds % _GRID.size * _STEP, (kinds // _GRID.size + odds.min()) * _FINE
    # right: ln(p/q), wrong: ln((1 - p)/(1 - q)), with p = expit(ratio + prior) and q = expit(epsilon + prior)
    wrong = np.logaddexp(0, _GRID + prior[:, None]) - np.logaddexp(0, ratio + prior)[:, None]
    ahead = np.maximum(ratio[:, None] - _GRID, 0.0)
    bet = ahead > 0
    return np.asarray(won @ ahead + number @ np.where(bet, wrong, 0.0)), np.asarray(won @ bet)


def largest_refuted(most: Floats, alpha: float) -> float:
    """Return the last epsilon of the grid before the first that is not refuted, 0 if there is none."""
    kept = np.flatnonzero(most < -math.log(alpha))
    return max(0, int(kept[0]) - 1 if kept.size else _GRID.size - 1) * _STEP


def adaptive_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the bound by guesses learnt from revealed coins, where chance decided who is a member.

    ``details["scores"]`` has the bounds by each score of the records alone; they and the row hold together.
    """
    if isinstance(evidence.setting.split, options.NO_CHANCE):
        return ()
    guesses, claim = evidence.fair_guesses, evidence.audited
    about: dict[str, Any] = {"subject": Subject.MECHANISM, "delta": 0.0}
    if isinstance(guesses, NoGuesses):
        return (Estimate.missing(ADAPTIVE, guesses.reason, method=_METHOD.format("coins"), **about),)
    coins, alpha = _coins(evidence), errors_at_delta_0(evidence)[1]
    learners = _learners(evidence, coins)
    wealth = log_wealth(coins, [*learners.values()], least=evidence.fewest_guesses)
    bounds = [largest_refuted(row, alpha) for row in wealth]
    named = dict(zip(learners, bounds[1:], strict=True))
    named.pop(_ALL, None)
    whole = evidence.inputs.units.losses
    outside = np.arange(whole.n_member + whole.n_nonmember) >= whole.n_member
    of_perfect = log_wealth(coins, [Shares(outside.astype(np.float64))], least=evidence.fewest_guesses)
    details: dict[str, Any] = {
        "coins": coins.heads.size,
        "ceiling": largest_refuted(of_perfect[0], alpha),
        "pure": True,
        "shown": largest_refuted(wealth[0], _OF_HEADLINE * (1 - evidence.setting.confidence)),
        **({"scores": named} if len(named) > 1 else {}),
    }
    if claim is not None and claim.value is not None and claim.value <= _LARGEST:
        # Of the next epsilon of the grid.
        log_value = wealth[0, math.ceil(claim.value / _STEP - _HAIR)]
        details["p_value"] = math.exp(-max(0.0, log_value))
    row = Estimate.at_least(
        ADAPTIVE,
        bounds[0],
        confidence=round(1 - alpha, 12),
        method=_METHOD.format(guesses.evidence.removesuffix(", thinned to fair ones")),
        adjacency=guesses.adjacency,
        assumptions=guesses.assumptions,
        details=details,
        **about,
    )
    return (of_units(row, evidence),)


def _coins(evidence: Evidence) -> Coins:
    """Return the coins that the declared split tosses, in a random order."""
    rng, split, losses = evidence.rng("adaptive"), evidence.usable_split, evidence.inputs.units.losses
    if isinstance(split, options.BernoulliSplit):
        order = rng.permutation(losses.n_member + losses.n_nonmember)
        chance = chances(losses, split)
        return Coins(order[None], order < losses.n_member, special.logit(chance)[order])
    strata = losses.group if options.stratified(split) else None
    members, others, _ = positions_of_pairs(losses, strata, rng)
    heads = rng.random(members.size) < _FAIR
    pairs = np.stack([members, others + losses.n_member])
    return Coins(np.where(heads, pairs, pairs[::-1]), heads, np.zeros(heads.size))


def _learners(evidence: Evidence, coins: Coins) -> dict[str, Learner]:
    """Return the learners of the bets: of each score of the records, and if there are several, or features, classifiers of all of them."""
    losses, features = evidence.inputs.units.losses, evidence.inputs.options.features
    scores = {OutputPolicy.FULL: PerGroup(losses.member, losses.nonmember), **losses.policies}
    result: dict[str, Learner] = {name: Shares(np.concatenate(pair)) for name, pair in scores.items()}
    groups = [Table(tuple(scores), side, side[0].size) for side in zip(*scores.values(), strict=True)]
    parts = [groups] if len(scores) > 1 else []
    if features is not None and losses.member is evidence.inputs.by_record.member:
        parts = [groups, [*features.tables]]
    if parts:
        result[_ALL] = Classifiers(
            parts, coins.records[:, :_SCORED].ravel(), evidence.rng("adaptive columns")
        )
    return result
