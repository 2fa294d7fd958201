"""Curves of one model at ranks fixed in advance, and what the curves of several models show at common error rates."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.core.errors import InputError
from auditor.core.values import Floats, Losses
from auditor.curves.cells import FEWEST, LEAST, apart
from auditor.curves.views import NamedCurve, rounded
from auditor.estimators.melding import ranks

# --- Curves at ranks fixed in advance, whose error rate is known for the training mechanism and need not be estimated ---
#
# Take C, the n0 scored non-members of one uniformly random split, t the (k+1)-th smallest loss in C, x a random member
# and z a random record of C. The attack "x is a member if its loss is below the (k+1)-th smallest loss of C without z"
# calls at least as many members as t does. Exchange x and z before training: now x is a non-member, exchangeable with
# the other n0 - 1, so it has at most k of them at or below it with probability at most (k+1)/n0, ties or not. So an
# (eps, d)-DP mechanism (replace-one) has
#
#     E[share of the members below t] <= e^eps (k+1)/n0 + d
#
# over splits and training [own]. The same holds with the groups exchanged, and from the other end of the losses: the
# four ratios of Negoescu et al. 2024, Eq. 19, each with a known denominator.


# Who is called, and from which end of the losses; the first two are those of smaller losses for members.
ATTACKS = {
    "ranks.low_members": "members called, below ranks of the smallest non-member losses",
    "ranks.high_nonmembers": "non-members called, above ranks of the largest member losses",
    "ranks.high_members": "members called, above ranks of the largest non-member losses",
    "ranks.low_nonmembers": "non-members called, below ranks of the smallest member losses",
}
_EXPECTED = ("ranks.low_members", "ranks.high_nonmembers")
# Members are expected to have the smaller losses; the other way round is looked at, with little of the error.
_SHARE_OF_THE_EXPECTED = 0.9


@dataclass(frozen=True, eq=False)
class InstanceRates:
    """What the instances show at common error rates.

    Attributes:
        hits: Shape (instances, attacks), the share rightly called, in [0, 1].
        rates: Shape (attacks,), the mechanism's largest expected share wrongly called, in (0, 1].
        weights: Shape (attacks,), fixed in advance, summing to 1.
        names: The attack of each column, a key of ``ATTACKS``.
    """

    hits: Floats
    rates: Floats
    weights: Floats
    names: tuple[str, ...]

    def of_a_perfect_attack(self) -> "InstanceRates":
        """Return the same with every member below every non-member, in all instances."""
        expected = np.array([name in _EXPECTED for name in self.names])
        hits = np.broadcast_to(expected.astype(np.float64), self.hits.shape)
        return dataclasses.replace(self, hits=hits)


def rank_curves(losses: Losses) -> tuple[NamedCurve, ...]:
    """Return four curves at fixed ranks: all that `audit_instances` needs of one model.

    ``fpr`` is (k+1)/n, with n the size of the group that gives the ranks and k the ranks of the rank grid; ``tpr`` is
    the share of the other group strictly beyond the loss of that rank. In the two curves of non-members the positive
    call is "non-member".

    Args:
        losses: Smaller means more like a member.

    >>> low_members, *_ = rank_curves(Losses(member=[0.1, 0.2, 0.3, 0.9], nonmember=[0.25, 0.5, 0.6, 0.7]))
    >>> low_members.name, low_members.fpr, low_members.tpr
    ('ranks.low_members', (0.25, 0.5), (0.5, 0.75))
    """
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    n1, n0 = member.size, nonmember.size
    of_members, of_nonmembers = ranks(n1), ranks(n0)
    members = {
        "ranks.low_members": np.searchsorted(member, nonmember[of_nonmembers], side="left"),
        "ranks.high_members": n1 - np.searchsorted(member, nonmember[n0 - 1 - of_nonmembers], side="right"),
    }
    nonmembers = {
        "ranks.high_nonmembers": n0 - np.searchsorted(nonmember, member[n1 - 1 - of_members], side="right"),
        "ranks.low_nonmembers": np.searchsorted(nonmember, member[of_members], side="left"),
    }
    curves = {name: _curve(name, counts, n1, n0) for name, counts in members.items()}
    curves |= {name: _curve(name, counts, n0, n1) for name, counts in nonmembers.items()}
    return tuple(curves[name] for name in ATTACKS)


def _curve(name: str, counts: npt.NDArray[np.int64], called: int, other: int) -> NamedCurve:
    rates = (ranks(other) + 1) / other
    return NamedCurve(name, ATTACKS[name], tuple(rates.tolist()), tuple((counts / called).tolist()))


def on_common_grid(instances: Sequence[Mapping[str, NamedCurve]]) -> InstanceRates:
    """Bring the curves of all instances to the error rates of the smallest one.

    A larger instance gives its share at its largest rate that is not above the common one: its attack is then wrong at
    most that often, so what is certified stays certified.

    Raises:
        InputError: A curve that is no curve of rates.
    """
    hits, rates, weights, names = [], [], [], []
    for name in ATTACKS:
        curves = [_arrays(index, curves[name]) for index, curves in enumerate(instances)]
        grid = max((fpr for fpr, _ in curves), key=lambda fpr: float(fpr[0]))
        hits.append(np.stack([_at(grid, *curve) for curve in curves]))
        rates.append(grid)
        weights.append(np.full(grid.size, _weight(name) / grid.size))
        names += [name] * grid.size
    return InstanceRates(
        np.concatenate(hits, axis=1), np.concatenate(rates), np.concatenate(weights), tuple(names)
    )


def _weight(name: str) -> float:
    return (_SHARE_OF_THE_EXPECTED if name in _EXPECTED else 1 - _SHARE_OF_THE_EXPECTED) / 2


def _at(grid: Floats, fpr: Floats, tpr: Floats) -> Floats:
    last = np.searchsorted(fpr, grid, side="right") - 1
    return np.where(last >= 0, tpr[np.maximum(last, 0)], 0.0)


def _arrays(index: int, curve: NamedCurve) -> tuple[Floats, Floats]:
    fpr, tpr = np.asarray(curve.fpr, dtype=np.float64), np.asarray(curve.tpr, dtype=np.float64)
    rises = fpr.size == tpr.size > 0 and bool((np.diff(fpr, prepend=0.0) > 0).all() and fpr[-1] <= 1)
    if not (rises and ((tpr >= 0) & (tpr <= 1)).all()):
        raise InputError(
            f"instance {index} (counting from 0) has a damaged curve {curve.name!r}: its rates must rise in (0, 1];"
            " audit its losses again."
        )
    return fpr, tpr


def averaged(found: InstanceRates, sizes: Mapping[str, Sequence[int]] | None) -> tuple[NamedCurve, ...]:
    """Return the hits averaged over the models at the attacks' known error rates, both ends of the losses as one curve.

    To be shared, with three digits, without the rates of fewer than ten records, and with points between which each group has 0
    or at least 10 records of all models together; no curve where a model has fewer than 100 in a group.

    Args:
        found: The rates of all models.
        sizes: Numbers of members and of non-members of all models, for a curve to be shared.
    """
    fewest = None if sizes is None else np.array([min(sizes[name]) for name in ("n_nonmember", "n_member")])
    if fewest is not None and fewest.min() < FEWEST:
        return ()
    hits, names = found.hits.mean(axis=0), np.array(found.names)
    least = LEAST * found.rates.min() if sizes else 0.0  # the smallest rate is that of one record
    low, high = ((names == name) & (found.rates >= least) for name in _EXPECTED)
    fpr = np.concatenate([[0.0], found.rates[low], 1 - hits[high], [1.0]])
    tpr = np.concatenate([[0.0], hits[low], 1 - found.rates[high], [1.0]])
    order = np.lexsort((tpr, fpr))
    label, digits = "measured, mean over the models, no interval", 3 if sizes else 6
    rates = np.stack([fpr[order], np.maximum.accumulate(tpr[order])])
    if fewest is not None:  # a mean of shares, each of at least so many records
        total = found.hits.shape[0] * fewest
        kept = apart(np.round(rates[:, 1:-1] * total[:, None], 6), total)
        rates = rates[:, [0, *(at + 1 for at in kept), -1]]
    return (NamedCurve("empirical", label, *(rounded(column, digits=digits) for column in rates)),)
