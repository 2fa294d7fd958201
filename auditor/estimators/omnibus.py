"""One test of "no leak", by all thresholds and the AUC at once, for each direction in which the groups may differ [own].

The hypothesis: the losses of members and of non-members are exchangeable. It holds if both are draws of one law (F1 = F0),
and if membership was drawn at random and the training shows nothing of it.

The pooled losses are cut into cells whose edges depend on the pooled losses alone; ties stay together. Given the cells, the
numbers of members in them follow a multivariate hypergeometric law, whatever the law of the losses. An observed statistic is
ranked among the same statistic of members drawn from that law, so that its p-value is valid at any size and with any ties.

For each direction two statistics are compared: the mean rank of the members, which is their AUC, and the largest deviance
of an edge, so that a few extreme records count too (Berk and Jones 1979). The smaller of their two p-values is ranked
once more among those of the draws, as in Westfall and Young 1993.

If members lie nowhere lower than non-members (F1 <= F0), a test for lower members holds its level too: without ties the
edges are ranks, so that every statistic falls where a member's loss grows, and members of the law F0 are the worst case.
"""

import numpy as np

from auditor.core.values import Floats, Integers, Losses, weighted
from auditor.estimators.epsilon_star import relabelled
from auditor.estimators.joint_test import ranks_below_half

# Of the error of a headline: see `auditor.pipeline.shown_together`.
SHARES = {"lower": 0.6, "higher": 0.3}
# Of a headline by these tests, which have no smaller p-values: below, its limits alone decide, whose errors sum to .89 at most.
LEAST_ERROR = 0.0075
_DRAWS = 1999
_GROWTH = 1.2  # of neighbouring ranks: about 150 cells for a million records


def omnibus(losses: Losses, *, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-values of "no leak" against members with lower losses at some threshold, and with higher ones.

    Args:
        losses: Smaller means more like a member.
        rng: Draws the members under the hypothesis.

    >>> apart = Losses(member=np.arange(50), nonmember=np.arange(50) + 50)
    >>> omnibus(apart, rng=np.random.default_rng(0))
    (0.0005, 1.0)
    """
    observed, cells = _members_of_cells(losses)
    drawn = relabelled(cells, losses.n_member, size=_DRAWS, rng=rng)
    area, deviance = _statistics(np.vstack([observed, drawn]), cells)
    lower, higher = (_p_value(sign * area, (sign * deviance).max(axis=1, initial=0.0)) for sign in (1, -1))
    return lower, higher


def _members_of_cells(losses: Losses) -> tuple[Integers, Integers]:
    """Return the numbers of members and of all records in each cell; cells are narrow at both ends."""
    groups = (losses.sorted_member, losses.sorted_nonmember)
    values, counts = zip(*map(weighted, groups), strict=True)
    pooled = np.concatenate(values)
    order = np.argsort(pooled, kind="stable")  # two ascending runs, which it merges
    upto = np.arange(1, order.size + 1) if counts[0] is None else np.cumsum(np.concatenate(counts)[order])
    low = ranks_below_half(int(upto[-1]), growth=_GROWTH)
    edges = np.searchsorted(upto, np.concatenate([low, upto[-1] - 1 - low]), side="right")
    below = [np.searchsorted(group, np.unique(pooled[order[edges]]), side="right") for group in groups]
    return np.diff(below[0], prepend=0), np.diff(below[0] + below[1], prepend=0)


def _statistics(members: Integers, cells: Integers) -> tuple[Floats, Floats]:
    """Return how low the members rank on average, and the deviance of each edge, above 0 where members lie below too often.

    Args:
        members: Shape (audits, cells).
        cells: Records in each cell.
    """
    upto, records, total = np.cumsum(cells), cells.sum(), members.sum(axis=1, keepdims=True)
    area = -(members @ (2.0 * upto - cells)) / total[:, 0]
    called, below = upto[:-1], np.cumsum(members, axis=1)[:, :-1]
    table = (below, total - below, called - below, records - total - called + below)
    margins = (called, records - called, total, records - total)
    deviance = sum(map(_entropy, table)) - sum(map(_entropy, margins)) + _entropy(records)
    return area, np.where(below / total > called / records, deviance, -deviance)


def _entropy(counts: Integers) -> Floats:
    """Return x log x, 0 at 0."""
    return np.asarray(counts * np.log(np.maximum(counts, 1)))


def _p_value(*statistics: Floats) -> float:
    """Return the p-value of the first audit among all, by the smaller of those of its statistics."""
    ranks = [values.size - np.searchsorted(np.sort(values), values) for values in statistics]
    smallest = np.minimum(*ranks)
    return float(np.mean(smallest <= smallest[0]))
