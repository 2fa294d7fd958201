"""What a one-run audit judges: guesses about fair or biased membership coins, most confident first.

The guesses may depend only on the model's output and on the unordered records, never on who is a member. Without a
declaration of how membership was decided there are no coins, and so no guesses.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.choices import Adjacency, BernoulliSplit, MembershipSplit, RandomSplit
from auditor.estimators.pairs import random_pairs
from auditor.values import Losses

__all__ = ["Guesses", "NoGuesses", "draw_guesses", "numbers_of_guesses"]

# Numbers of guesses to try, as shares of the bits, fixed before any data are seen; they share the error.
_SHARES = (1.0, 0.25, 0.05)
# Group sizes this unlikely under the declared coins mean that the declaration is not true of these records.
_CONTRADICTION = 1e-3
_FAIR = 0.5

_UNDECLARED = (
    "it was not declared how membership was decided; a statement about the training algorithm needs members and"
    " non-members split uniformly at random, or independent inclusion coins, and the auditor's word for it"
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


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about membership coins, in an order fixed without looking at membership.

    Attributes:
        right: Shape (m,), whether each guess is right. Of inclusion coins the guesses are "out" and "in" in turn.
        inclusion: Probability that a coin says "in"; a half for pairs.
        adjacency: Which neighbours the coins tell apart.
        evidence: What the coins are, in words.
        assumptions: What must hold for them to be coins.
        details: Counts of pairs or records.
    """

    right: npt.NDArray[np.bool_]
    inclusion: float
    adjacency: Adjacency
    evidence: str
    assumptions: tuple[str, ...]
    details: dict[str, Any]

    @property
    def fair(self) -> bool:
        """Whether the coins are fair."""
        return self.inclusion == _FAIR

    def correct(self, guesses: int) -> int:
        """Return how many of the first ``guesses`` are right."""
        return int(self.right[:guesses].sum())


@dataclass(frozen=True)
class NoGuesses:
    """Why there are no coins to guess about."""

    reason: str


def numbers_of_guesses(bits: int) -> tuple[int, ...]:
    """Return the numbers of guesses to try on so many bits, largest first, whatever the data.

    >>> numbers_of_guesses(1000)
    (1000, 250, 50)
    """
    return tuple(sorted({max(1, round(share * bits)) for share in _SHARES}, reverse=True))


def draw_guesses(losses: Losses, *, split: MembershipSplit, rng: np.random.Generator) -> Guesses | NoGuesses:
    """Return the guesses that the declared split allows, or why it allows none.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided.
        rng: Draws the pairs and breaks ties.

    >>> losses = Losses(member=[0.0, 0.1], nonmember=[0.2, 0.3])
    >>> draw_guesses(losses, split=RandomSplit(), rng=np.random.default_rng(0)).right.tolist()
    [True, True]
    """
    match split:
        case RandomSplit():
            return _of_pairs(losses, rng, stratified=split.stratified)
        case BernoulliSplit():
            return _of_coins(losses, split.inclusion, rng)
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
        inclusion=_FAIR,
        adjacency=Adjacency.REPLACE_ONE,
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


def _of_coins(losses: Losses, inclusion: float, rng: np.random.Generator) -> Guesses | NoGuesses:
    refusal = _wrong_proportion(losses, inclusion)
    if refusal is not None:
        return NoGuesses(refusal)
    is_member = _ordered_membership(losses, rng)
    return Guesses(
        right=_in_turn(is_member),
        inclusion=inclusion,
        adjacency=Adjacency.ADD_REMOVE,
        evidence="inclusion coins",
        assumptions=(
            f"each record was included by an independent coin of probability {inclusion:g} (declared, not checked)",
            "every record that had a coin was scored, or a sample of them drawn without looking at membership",
            _NO_HOLD_OUT_LEAK,
        ),
        details={"records": int(is_member.size), "inclusion": inclusion},
    )


def _wrong_proportion(losses: Losses, inclusion: float) -> str | None:
    """Why the groups' sizes contradict the declared coin, if they do: then the declared odds are not the real ones."""
    from scipy import stats

    records = losses.n_member + losses.n_nonmember
    if stats.binomtest(losses.n_member, records, inclusion).pvalue >= _CONTRADICTION:
        return None
    return (
        f"{losses.n_member:,} members among {records:,} scored records do not come from coins of probability"
        f" {inclusion:g}; score every record that had a coin, or a sample of them drawn without looking at membership"
    )


def _ordered_membership(losses: Losses, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Membership of all records in ascending order of loss, ties in random order."""
    values = np.concatenate([losses.member, losses.nonmember])
    shuffle = rng.permutation(values.size)
    order = shuffle[np.argsort(values[shuffle], kind="stable")]
    return np.asarray(order < losses.n_member)


def _in_turn(is_member: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Guess "out" for the highest loss, "in" for the lowest, "out" for the next highest and so on: which are right."""
    n_in = is_member.size // 2
    right = np.empty_like(is_member)
    right[0::2] = ~is_member[n_in:][::-1]
    right[1::2] = is_member[:n_in]
    return right
