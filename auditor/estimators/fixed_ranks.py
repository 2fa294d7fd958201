"""Curves of one model at ranks fixed in advance, and the curves of several models at common error rates."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.core import options
from auditor.core.errors import InputError
from auditor.core.values import Estimate, Floats, Losses, Subject
from auditor.curves.cells import FEWEST, LEAST, apart
from auditor.curves.views import NamedCurve, rounded
from auditor.estimators.exact_test import Hits
from auditor.estimators.guess_tests import largest_of_all_below
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
    """Rates of the instances at common error rates.

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
    own, mirrored = Hits.of(losses, ranks), Hits.of(losses.swapped, ranks)
    tails = (own.lower, own.upper, mirrored.upper, mirrored.lower)
    rates = (((tail.ranks + 1) / tail.ranked, tail.hits / tail.others) for tail in tails)
    return tuple(
        NamedCurve(name, label, tuple(wrongly.tolist()), tuple(rightly.tolist()))
        for (name, label), (wrongly, rightly) in zip(ATTACKS.items(), rates, strict=True)
    )


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


def averaged(measured: InstanceRates, sizes: Mapping[str, Sequence[int]] | None) -> tuple[NamedCurve, ...]:
    """Return the hits averaged over the models at the attacks' known error rates, both ends of the losses as one curve.

    To be shared, with three digits, without the rates of fewer than ten records, and with points between which each group has 0
    or at least 10 records of all models together; no curve where a model has fewer than 100 in a group.

    Args:
        measured: Rates of all models.
        sizes: Numbers of members and of non-members of all models, for a curve to be shared.
    """
    fewest = None if sizes is None else np.array([min(sizes[name]) for name in ("n_nonmember", "n_member")])
    if fewest is not None and fewest.min() < FEWEST:
        return ()
    hits, names = measured.hits.mean(axis=0), np.array(measured.names)
    least = LEAST * measured.rates.min() if sizes else 0.0  # the smallest rate is that of one record
    low, high = ((names == name) & (measured.rates >= least) for name in _EXPECTED)
    fpr = np.concatenate([[0.0], measured.rates[low], 1 - hits[high], [1.0]])
    tpr = np.concatenate([[0.0], hits[low], 1 - measured.rates[high], [1.0]])
    order = np.lexsort((tpr, fpr))
    label, digits = "measured, mean over the models, no interval", 3 if sizes else 6
    rates = np.stack([fpr[order], np.maximum.accumulate(tpr[order])])
    if fewest is not None:  # a mean of shares, each of at least so many records
        total = measured.hits.shape[0] * fewest
        cuts = apart(np.round(rates[:, 1:-1] * total[:, None], 6), total)
        rates = rates[:, [0, *(at + 1 for at in cuts), -1]]
    return (NamedCurve("empirical", label, *(rounded(column, digits=digits) for column in rates)),)


# --- Estimates of the mechanism from several instances: the point value, the certified bound, and the two limits of it ---
#
# With h_ij the share that instance i rightly calls by attack j, and f_j the mechanism's error rate of that attack, an
# (eps, d)-DP mechanism has E h_ij <= mu_j = e^eps f_j + d for every instance. Then for every stake s in [0, 1]
#
#     E_j,s, the product over i of 1 + s (h_ij/mu_j - 1),
#
# is not negative and has a mean of at most 1, and so has its average over stakes and attacks with weights fixed in
# advance: by Markov's inequality it reaches 1/alpha with probability at most alpha. The certified bound is the largest
# eps at which it does [own; the bets of Waudby-Smith and Ramdas 2024]. It needs no law of h, no variance and no
# correction for the choice among attacks, and it holds for any number of instances.


# All of the stake suits instances that agree; smaller stakes survive an instance that shows nothing.
_STAKES = (1.0, 0.75, 0.5, 0.25, 0.1)
_STAKE_WEIGHTS = (0.4, 0.15, 0.15, 0.15, 0.15)
_HALVINGS = 45


def point(evidence: InstanceRates, delta: float) -> tuple[float, int]:
    """Return eps-bar of the averaged rates (Negoescu et al. 2024, Eq. 19), and the attack that attains it."""
    logs = _log_ratios(np.einsum("ij->j", evidence.hits) / evidence.hits.shape[0], evidence.rates, delta)
    best = int(np.argmax(logs))
    return max(0.0, float(logs[best])), best


def instance_values(evidence: InstanceRates, delta: float) -> Floats:
    """Return Epsilon* of every instance, at the same attacks."""
    return np.asarray(np.maximum(0.0, _log_ratios(evidence.hits, evidence.rates, delta).max(axis=1)))


def log_mean_exp(values: Floats) -> tuple[float, float]:
    """Return log E[exp eps*] over the instances (Negoescu et al. 2024, Theorem 2), and its standard error."""
    largest = float(values.max())
    scaled = np.exp(values - largest)
    mean = float(scaled.mean())
    return largest + math.log(mean), float(scaled.std(ddof=1)) / (mean * math.sqrt(values.size))


def _log_ratios(hits: Floats, rates: Floats, delta: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(hits - delta, 0.0)) - np.log(rates))


# --- The certified bound ---------------------------------------------------------------------------


def certified_epsilon(evidence: InstanceRates, delta: float, alpha: float) -> tuple[float, dict[str, Any]]:
    """Return the largest epsilon that the instances refute at level alpha, 0 if none, and the rank that refutes it."""
    bound = _largest_refuted(evidence, delta, alpha)
    ceiling = _largest_refuted(evidence.of_a_perfect_attack(), delta, alpha)
    details: dict[str, Any] = {"ceiling": ceiling}
    if bound > 0:
        bets = _log_bets(evidence, delta, bound)
        stake, at = np.unravel_index(int(np.argmax(bets)), bets.shape)
        details |= {"stake": _STAKES[int(stake)], **_attack(evidence, int(at))}
    return bound, details


def _attack(evidence: InstanceRates, at: int) -> dict[str, Any]:
    return {
        "attack": ATTACKS[evidence.names[at]],
        "error_rate": float(evidence.rates[at]),
        "mean_hit_rate": float(evidence.hits[:, at].mean()),
    }


def _largest_refuted(evidence: InstanceRates, delta: float, alpha: float) -> float:
    """Return sup{eps: the averaged bet is at least 1/alpha}: it falls in eps, and is at most 1 where every mu_j is 1 or more."""

    def refuted(epsilon: float) -> bool:
        return bool(np.logaddexp.reduce(_log_bets(evidence, delta, epsilon), axis=None) >= -math.log(alpha))

    return largest_of_all_below(refuted, -math.log(float(evidence.rates.min())), halvings=_HALVINGS)


def _log_bets(evidence: InstanceRates, delta: float, epsilon: float) -> Floats:
    """Return the log of weight times bet, shape (stakes, attacks)."""
    gains = evidence.hits / (math.exp(epsilon) * evidence.rates + delta)
    with np.errstate(divide="ignore"):  # all at stake and nothing called: the bet is lost
        logs = [np.log((1 - stake) + stake * gains).sum(axis=0) for stake in _STAKES]
    return np.asarray(np.stack(logs) + np.log(_STAKE_WEIGHTS)[:, None] + np.log(evidence.weights))


# --- The rows of an audit of several instances: the certified bound, the point value, and its upper bound ---


BOUND, POINT, LOG_MEAN_EXP = "epsilon_bound.instances", "epsilon_bar", "epsilon_bar.log_mean_exp"
# A bootstrap over instances is no lower end: where one model in 33 hardly leaks, it is too high in 72%, 55%, 23% and 5% of
# simulated audits of 10, 20, 50 and 100 instances (about as often as none of them is such a model), the bound in none.
_DECLARED = (
    "every instance had its own uniformly random split, drawn before its own training run (declared, not checked)",
    "the hold-outs took no part in training, early stopping or selection",
    "all instances come from the same training algorithm",
)


def bound_row(evidence: InstanceRates, delta: float, confidence: float) -> Estimate:
    """Return the certified bound."""
    bound, details = certified_epsilon(evidence, delta, 1 - confidence)
    return Estimate.at_least(
        BOUND,
        bound,
        confidence=confidence,
        method="bets on every instance at ranks fixed in advance, averaged; Markov's inequality",
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=options.Adjacency.REPLACE_ONE,
        assumptions=_DECLARED,
        details={"instances": evidence.hits.shape[0], **details},
    )


def point_row(evidence: InstanceRates, delta: float) -> Estimate:
    """Return the point value."""
    value, at = point(evidence, delta)
    details: dict[str, Any] = {"instances": evidence.hits.shape[0], "certified": BOUND}
    if value > 0:
        details |= _attack(evidence, at)
    return Estimate.point(  # the certified bound is a row of its own, and the only one that can be judged
        POINT,
        value,
        method="largest ratio of averaged rates; Negoescu et al. 2024, Eq. 19",
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=options.Adjacency.REPLACE_ONE,
        assumptions=(*_DECLARED, "biased upward: a maximum over noisy ratios"),
        details=details,
    )


def log_mean_exp_row(evidence: InstanceRates, delta: float) -> Estimate:
    """Return a number about models, not about the mechanism's guarantee, so that it judges no claim."""
    values = instance_values(evidence, delta)
    value, error = log_mean_exp(values)
    return Estimate.point(
        LOG_MEAN_EXP,
        value,
        method="log of the mean of exp(Epsilon*) over the instances; Negoescu et al. 2024, Theorem 2",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=(
            "an average over models: it bounds eps-bar from above, so it can neither refute nor support a claim",
            "the largest instances decide a mean of exponentials: with few instances it is often far off",
        ),
        details={
            "instances": int(values.size),
            "standard_error": error,
            "smallest": float(values.min()),
            "median": float(np.median(values)),
            "largest": float(values.max()),
        },
    )
