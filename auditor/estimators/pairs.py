"""Random pairs of one member and one non-member, in an order that does not depend on which is which."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor._labels import codes
from auditor.values import Losses, PerGroup

__all__ = ["Pairs", "random_pairs"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Guesses that the lower loss of a pair is the member's.

    Attributes:
        right: Shape (m,), whether each guess is right, most confident pair first; a tie counts as wrong.
        left_out: Records that are in no pair.
        strata: Number of strata that gave pairs; null if the pairs were drawn from all records alike.
    """

    right: npt.NDArray[np.bool_]
    left_out: int
    strata: int | None = None


def random_pairs(losses: Losses, *, strata: PerGroup | None = None, rng: np.random.Generator) -> Pairs:
    """Pair members with non-members at random, as many as the smaller side allows.

    Args:
        losses: Smaller means more like a member.
        strata: Labels of the records, if only records with the same one may be paired. Records without a label, and
            strata that lack members or non-members, give no pairs.
        rng: Draws the pairs and breaks ties.

    >>> found = random_pairs(Losses(member=[0, 1], nonmember=[2, 3, 4]), rng=np.random.default_rng(0))
    >>> found.right.tolist(), found.left_out
    ([True, True], 1)
    """
    members, nonmembers = rng.permutation(losses.n_member), rng.permutation(losses.n_nonmember)
    used = None
    if strata is not None:
        label = codes(strata)
        members, nonmembers = _same_stratum(members, nonmembers, label.member, label.nonmember)
        used = int(np.unique(label.member[members]).size)
        shuffle = rng.permutation(members.size)
        members, nonmembers = members[shuffle], nonmembers[shuffle]
    bits = min(members.size, nonmembers.size)
    right = _ordered(losses.member[members[:bits]], losses.nonmember[nonmembers[:bits]])
    return Pairs(right, losses.n_member + losses.n_nonmember - 2 * bits, used)


def _ordered(member: npt.NDArray[np.float64], nonmember: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether the lower loss is the member's, by falling distance of the two losses in pooled ranks.

    That distance depends on the unordered pair only, and no increasing map of the losses changes it. The sort is
    stable over randomly ordered pairs, so ties in confidence are broken by chance. A tied pair counts as a wrong
    guess, which can only lower the bound.
    """
    _, rank = np.unique(np.concatenate([member, nonmember]), return_inverse=True)
    gap = np.abs(rank[: member.size] - rank[member.size :])
    return np.asarray((member < nonmember)[np.argsort(-gap, kind="stable")])


def _same_stratum(
    members: Integers, nonmembers: Integers, of_members: Integers, of_nonmembers: Integers
) -> tuple[Integers, Integers]:
    """Positions whose k-th entries share a stratum: the first of each stratum's shuffled members and non-members."""
    size = 1 + max(int(of_members.max()), int(of_nonmembers.max()))
    fewer = np.minimum(
        *(np.bincount(side[side >= 0], minlength=size) for side in (of_members, of_nonmembers))
    )
    kept = []
    for positions, stratum in ((members, of_members), (nonmembers, of_nonmembers)):
        known = positions[stratum[positions] >= 0]
        known = known[np.argsort(stratum[known], kind="stable")]
        label = stratum[known]
        place = np.arange(known.size) - np.searchsorted(label, label, side="left")
        kept.append(known[place < fewer[label]])
    return kept[0], kept[1]
