"""Who is at risk: the audit repeated by group and by loss percentile, with one error probability for all slices.

Every quantity (the certified bound, the AUC, the advantage, the members' share of a percentile band) holds for all
slices at once with the stated confidence: each of m slices gets the error alpha/m (Bonferroni). Which slices are
compared depends on numbers of records and never on losses, so what is left out spends nothing. Holm's procedure would
need less for the tests, but it gives no interval for the hypotheses that it rejects.

Members always count as draws here, also where every training record was scored. Limits that take the members of a slice
for all there are would be positive in some slice by chance alone, the more so the smaller it is, and who is at risk is
asked about records like these.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor import _validate
from auditor._parts import Part, SliceKind, bands, groups, shares
from auditor.estimators.advantage import advantage
from auditor.estimators.auc import auc
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.clopper_pearson import clopper_pearson
from auditor.tradeoff import count
from auditor.values import Estimate, Losses, Subject

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PERCENTILES", "Slice", "SliceKind", "slices", "to_frame"]

PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0)


@dataclass(frozen=True)
class Slice:
    """Some of the audited records, and what was found among them.

    Attributes:
        kind: A label in ``Losses.group``, or a band of loss percentiles of all records.
        label: Which one; in brackets what stands for several groups or for records without a label.
        n_member: Members in it.
        n_nonmember: Non-members in it.
        confidence: With which each quantity holds for all compared slices at once.
        compared: How many slices share the error; the estimates' own confidence is 1 - (1 - confidence)/compared.
        estimates: Of a group ``epsilon_bound.clopper_pearson``, ``auc`` and ``advantage``; of a band ``member_share``.
    """

    kind: SliceKind
    label: str
    n_member: int
    n_nonmember: int
    confidence: float
    compared: int
    estimates: tuple[Estimate, ...]

    @property
    def reason(self) -> str | None:
        """Why this slice has no numbers, or null."""
        return self.estimates[0].reason

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of this name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        by_name = {item.name: item for item in self.estimates}
        return by_name[_validate.known("estimate", name, by_name)]

    def row(self) -> dict[str, Any]:
        """Return the slice as one flat row: names of estimates, with ``_lower`` and ``_upper`` for their intervals."""
        row: dict[str, Any] = {
            "kind": str(self.kind),
            "label": self.label,
            "n_member": self.n_member,
            "n_nonmember": self.n_nonmember,
        }
        for item in self.estimates:
            if item.name == _BOUND:
                row |= {_BOUND: item.value, "ceiling": item.details.get("ceiling")}
            else:
                row |= {
                    item.name: item.value,
                    f"{item.name}_lower": item.lower,
                    f"{item.name}_upper": item.upper,
                }
        extra = {"lift": self.estimates[0].details.get("lift")} if self.kind is SliceKind.PERCENTILE else {}
        return {
            **row,
            **extra,
            "confidence": self.confidence,
            "compared": self.compared,
            "reason": self.reason,
        }


_BOUND, _SHARE = "epsilon_bound.clopper_pearson", "member_share"
_SMALLEST = 1e-12  # the least error that a confidence may leave; see auditor._validate


def slices(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    min_records: int = 10,
    most: int = 50,
    percentiles: Sequence[float] = PERCENTILES,
) -> tuple[Slice, ...]:
    """Return what can be said of each group and of each band of loss percentiles, all of it at once.

    A group is audited like the whole. Within a band that is cut out by the loss itself separation means nothing: there
    the members' share is given beside their share of all records, which is how often an attacker is right who calls
    such records members. Bands are cut at quantiles of all losses together, so they do not depend on who is a member:
    given the losses, the members in a band are a sum of independent coins, or of coins tied only by their total, and
    such a sum is less spread than a binomial of the same mean (Hoeffding 1956), which Clopper-Pearson limits cover.

    Args:
        losses: With ``label`` for slices by class and ``group`` for slices by group.
        delta: In [0, 1), of the certified bounds.
        confidence: Of each quantity, for all slices at once, in (0, 1).
        min_records: Fewest members, and fewest non-members, of a group that is compared; fewest records of a band. All
            smaller groups make one slice without their labels, since the counts of a group of one would tell which side
            its record was on.
        most: With more groups than this those with most records of both kinds are compared; one slice stands for the
            rest of those that are not too small.
        percentiles: Where bands end, ascending, in (0, 100).

    Raises:
        InputError: An argument out of range.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(
    ...     member=np.concatenate([rng.normal(-3, 1, 500), rng.normal(0, 1, 500)]),
    ...     nonmember=rng.normal(0, 1, 1000),
    ...     group=(np.repeat(["cat", "dog"], 500), np.repeat(["cat", "dog"], 500)),
    ... )
    >>> cat, dog = slices(losses, delta=1e-5)[:2]
    >>> cat.estimate("epsilon_bound.clopper_pearson").value > 1, dog.estimate("epsilon_bound.clopper_pearson").value
    (True, 0.0)
    """
    _validate.instance("losses", losses, (Losses,))
    delta = _validate.fraction("delta", delta, zero=True)
    confidence = _validate.confidence(confidence)
    alpha = 1 - confidence
    least = _validate.at_least("min_records", min_records, least=2)
    most = _validate.at_least("most", most, least=1)
    parts = [*groups(losses, least, most), *bands(losses, least, shares(percentiles))]
    if alpha / len(parts) < _SMALLEST:
        reason = "the confidence is too high to be shared among slices"
        parts = [replace(part, losses=None, reason=reason) for part in parts]
    parts = _certifiable(parts, delta, alpha)
    compared = sum(not part.reason for part in parts)
    level = alpha / max(1, compared)
    return tuple(
        Slice(
            kind=part.kind,
            label=part.label,
            n_member=part.n_member,
            n_nonmember=part.n_nonmember,
            confidence=confidence,
            compared=compared,
            estimates=_estimates(part, losses, delta, level),
        )
        for part in parts
    )


def to_frame(found: Iterable[Slice]) -> "pd.DataFrame":
    """Return slices as a table, one row each."""
    import pandas as pd

    return pd.DataFrame([part.row() for part in found])


def _certifiable(parts: list[Part], delta: float, alpha: float) -> list[Part]:
    """Leave out, smallest first, the groups in which not even a perfect attack would be certified."""
    while True:
        level = alpha / max(1, sum(not part.reason for part in parts))
        lost = [part for part in parts if part.losses is not None and _ceiling(part, delta, level) <= 0]
        if not lost:
            return parts
        smallest = min(lost, key=lambda part: min(part.n_member, part.n_nonmember))
        reason = "too few records: not even a perfect attack would be certified beside the other slices"
        parts = [replace(part, losses=None, reason=reason) if part is smallest else part for part in parts]


def _ceiling(part: Part, delta: float, level: float) -> float:
    apart = Losses(member=np.zeros(part.n_member), nonmember=np.ones(part.n_nonmember))
    found = clopper_pearson(apart, delta=delta, confidence=1 - level)
    return float(found.details["ceiling"])


def _estimates(part: Part, losses: Losses, delta: float, level: float) -> tuple[Estimate, ...]:
    if part.kind is SliceKind.PERCENTILE:
        return (_none(_SHARE, part.reason) if part.reason else _share(part, losses, level),)
    if part.losses is None:
        return (_none(_BOUND, part.reason, delta), _none("auc", part.reason), _none("advantage", part.reason))
    counts, confidence = count(part.losses), 1 - level
    return (
        clopper_pearson(part.losses, delta=delta, confidence=confidence),
        auc(counts, confidence=confidence),
        advantage(counts, confidence=confidence),
    )


def _share(part: Part, losses: Losses, level: float) -> Estimate:
    k, n = part.n_member, part.n_member + part.n_nonmember
    overall = losses.n_member / (losses.n_member + losses.n_nonmember)
    value, low, high = k / n, float(lower_limit(k, n, level / 2)), float(upper_limit(k, n, level / 2))
    return Estimate(
        name=_SHARE,
        value=value,
        lower=low,
        upper=high,
        confidence=1 - level,
        method="Clopper-Pearson limits of the members' share of the records in this band",
        subject=Subject.MODEL,
        assumptions=("records are independent", "membership labels are right"),
        details={
            "overall_share": overall,
            "lift": value / overall,
            "lift_lower": low / overall,
            "lift_upper": high / overall,
        },
    )


def _none(name: str, reason: str, delta: float | None = None) -> Estimate:
    return Estimate(
        name=name,
        value=None,
        lower=None,
        upper=None,
        confidence=None,
        method="not computed for this slice",
        subject=Subject.MODEL,
        delta=delta,
        details={"reason": reason},
    )
