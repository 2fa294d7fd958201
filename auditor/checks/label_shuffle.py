"""Does the audit find something where there is nothing to find?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._format import percent
from auditor._labels import codes
from auditor.choices import RankGrid, Sample, ThresholdRule
from auditor.estimators.clopper_pearson import clopper_pearson
from auditor.values import Check, Losses, Status

__all__ = ["label_shuffle"]

_LARGEST = 2_000  # records of each group that are shuffled
_FEWEST_UNITS = 10
_SURELY = 0.01


def label_shuffle(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    rule: ThresholdRule = RankGrid(),  # noqa: B008 - a frozen value
    rng: np.random.Generator,
    shuffles: int = 100,
) -> Check:
    """Test the audit on its own records: with membership shuffled, the certified bound should hardly ever be positive.

    Membership is shuffled among records; among persons, all of whose records then move together, where each person is
    in one group only. The latter fails where records of one person are counted as independent and are not. At most
    2,000 records of each group are shuffled, drawn at random.

    Args:
        losses: As audited.
        delta: In [0, 1); as in the audit.
        confidence: Of the certified bound, in (0, 1).
        rule: How the certified bound picks its threshold.
        rng: Draws the records and shuffles them.
        shuffles: How often.

    Raises:
        InputError: A number out of range.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500))
    >>> label_shuffle(losses, delta=1e-5, rng=rng).status
    <Status.OK: 'ok'>
    """
    shuffles = _validate.at_least("shuffles", shuffles, least=1)
    alpha = 1 - _validate.confidence(confidence)
    values, unit, is_member, by = _units(losses, rng)
    details: dict[str, Any] = {"shuffled": by, "records": int(values.size), "units": int(is_member.size)}
    if min(is_member.sum(), (~is_member).sum()) < _FEWEST_UNITS:
        message = (
            f"Too few {by} to shuffle membership among: at least {_FEWEST_UNITS} of each group are needed."
        )
        return Check("label_shuffle", Status.UNKNOWN, message, details)
    positives = 0
    for _ in range(shuffles):
        label = rng.permutation(is_member)[unit]
        shuffled = Losses(member=values[label], nonmember=values[~label])
        found = clopper_pearson(shuffled, delta=delta, confidence=confidence, members=Sample(), rule=rule)
        positives += (found.value or 0.0) > 0
    from scipy import stats

    p_value = float(stats.binom.sf(positives - 1, shuffles, alpha))
    details |= {"shuffles": shuffles, "positive": positives, "alpha": alpha, "p_value": p_value}
    return _judged(details)


def _judged(details: dict[str, Any]) -> Check:
    seen = (
        f"With membership shuffled at random among the {details['shuffled']}, the certified bound was positive in"
        f" {details['positive']} of {details['shuffles']} shuffles"
    )
    allowed = percent(details["alpha"], toward="nearest")
    if details["p_value"] < _SURELY:
        message = (
            f"{seen}, more often than the {allowed} it promises: it does not hold its level on these records."
        )
        if details["shuffled"] == "persons":
            message += " Records of one person are not independent: ask for one score per person."
        return Check("label_shuffle", Status.FAIL, message, details)
    message = f"{seen}, within the {allowed} it promises: on these records the method does not find what is not there."
    return Check("label_shuffle", Status.OK, message, details)


def _units(
    losses: Losses, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp], npt.NDArray[np.bool_], str]:
    """The losses of a sample of records, the unit of each, which units are members, and what a unit is."""
    sides = (losses.member, losses.nonmember)
    owners = _owners(losses)
    at = [_drawn(owner, rng) for owner in owners]
    pooled = np.concatenate([owner[rows] for owner, rows in zip(owners, at, strict=True)])
    first, unit = np.unique(pooled, return_index=True, return_inverse=True)[1:]
    values = np.concatenate([side[rows] for side, rows in zip(sides, at, strict=True)])
    return values, unit, first < at[0].size, "records" if first.size == values.size else "persons"


def _owners(losses: Losses) -> list[npt.NDArray[np.int64]]:
    """The person of each record; the record itself where there are none, or where persons have records in both groups."""
    n1, n0 = losses.n_member, losses.n_nonmember
    own = [np.arange(n1), n1 + np.arange(n0)]
    if losses.person is None:
        return own
    found = codes(losses.person)
    columns = (found.member, found.nonmember)
    if np.isin(found.member[found.member >= 0], found.nonmember).any():
        return own
    return [np.where(column >= 0, n1 + n0 + column, row) for column, row in zip(columns, own, strict=True)]


def _drawn(owner: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Positions of whole persons drawn at random, until there are enough records."""
    if owner.size <= _LARGEST:
        return np.arange(owner.size)
    if (owner[1:] > owner[:-1]).all():  # every record by itself
        return rng.choice(owner.size, _LARGEST, replace=False)
    unit, inverse = np.unique(owner, return_inverse=True)
    turn = rng.permutation(unit.size)[inverse]
    order = np.argsort(turn, kind="stable")
    last = turn[order[_LARGEST - 1]]
    return np.flatnonzero(turn <= last)
