"""Curves at ranks fixed in advance, whose error rate is known for the training mechanism and need not be estimated.

Take C, the n0 scored non-members of one uniformly random split, t the (k+1)-th smallest loss in C, x a random member
and z a random record of C. The attack "x is a member if its loss is below the (k+1)-th smallest loss of C without z"
calls at least as many members as t does. Exchange x and z before training: now x is a non-member, exchangeable with
the other n0 - 1, so it has at most k of them at or below it with probability at most (k+1)/n0, ties or not. So an
(eps, d)-DP mechanism (replace-one) has

    E[share of the members below t] <= e^eps (k+1)/n0 + d

over splits and training [own]. The same holds with the groups exchanged, and from the other end of the losses: the
four ratios of Negoescu et al. 2024, Eq. 19, each with a known denominator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.errors import InputError
from auditor.estimators.rank_grid import ranks
from auditor.result import NamedCurve
from auditor.values import Floats, Losses

__all__ = ["ATTACKS", "Evidence", "on_common_grid", "rank_curves"]

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
class Evidence:
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

    def of_a_perfect_attack(self) -> "Evidence":
        """Return the same with every member below every non-member, in all instances."""
        expected = np.array([name in _EXPECTED for name in self.names])
        return Evidence(
            np.broadcast_to(expected.astype(np.float64), self.hits.shape),
            self.rates,
            self.weights,
            self.names,
        )


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
    calls = {
        "ranks.low_members": np.searchsorted(member, nonmember[of_nonmembers], side="left"),
        "ranks.high_nonmembers": n0 - np.searchsorted(nonmember, member[n1 - 1 - of_members], side="right"),
        "ranks.high_members": n1 - np.searchsorted(member, nonmember[n0 - 1 - of_nonmembers], side="right"),
        "ranks.low_nonmembers": np.searchsorted(nonmember, member[of_members], side="left"),
    }
    return tuple(_curve(name, counts, losses) for name, counts in calls.items())


def _curve(name: str, counts: npt.NDArray[np.int64], losses: Losses) -> NamedCurve:
    called, other = losses.n_member, losses.n_nonmember
    if name.endswith("_nonmembers"):
        called, other = other, called
    rates = (ranks(other) + 1) / other
    return NamedCurve(name, ATTACKS[name], tuple(rates.tolist()), tuple((counts / called).tolist()))


def on_common_grid(instances: Sequence[Mapping[str, NamedCurve]]) -> Evidence:
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
    return Evidence(
        np.concatenate(hits, axis=1), np.concatenate(rates), np.concatenate(weights), tuple(names)
    )


def _weight(name: str) -> float:
    return (_SHARE_OF_THE_EXPECTED if name in _EXPECTED else 1 - _SHARE_OF_THE_EXPECTED) / 2


def _at(grid: Floats, fpr: Floats, tpr: Floats) -> Floats:
    last = np.searchsorted(fpr, grid, side="right") - 1
    return np.where(last >= 0, tpr[np.maximum(last, 0)], 0.0)


def _arrays(index: int, curve: NamedCurve) -> tuple[Floats, Floats]:
    fpr, tpr = np.asarray(curve.fpr, dtype=np.float64), np.asarray(curve.tpr, dtype=np.float64)
    sound = (
        fpr.size > 0
        and fpr.size == tpr.size
        and bool(np.all(np.diff(fpr) > 0))
        and bool(np.all((fpr > 0) & (fpr <= 1)))
        and bool(np.all((tpr >= 0) & (tpr <= 1)))
    )
    if not sound:
        raise InputError(
            f"instance {index} (counting from 0) has a damaged curve {curve.name!r}: its rates must rise in (0, 1];"
            " audit its losses again."
        )
    return fpr, tpr
