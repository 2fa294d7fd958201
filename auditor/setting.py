"""What an audit was asked: its choices, checked, with their defaults filled in."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from auditor import _validate
from auditor.choices import (
    DPSGD,
    Adjacency,
    BernoulliSplit,
    Census,
    Members,
    MembershipSplit,
    Mixture,
    OneRunTest,
    Persons,
    RandomSplit,
    StatedClaim,
    Subset,
    ThresholdRule,
    TrainingClaim,
    UnknownSplit,
)
from auditor.errors import InputError
from auditor.values import Claim, Losses

__all__ = ["Setting", "default_delta", "delta", "promises", "rates", "training_size"]

_SPLIT_NAMES = {UnknownSplit: "unknown", RandomSplit: "random", BernoulliSplit: "bernoulli"}


def default_delta(training_size: int) -> float:
    """Return 1/(n ln n), the delta that Negoescu et al. 2024 use for n training records.

    >>> round(default_delta(1000), 6)
    0.000145
    """
    n = _validate.at_least("training_size", training_size, least=2)
    return 1.0 / (n * math.log(n))


@dataclass(frozen=True)
class Setting:
    """The choices of one audit.

    Attributes:
        size: Number of training records.
        delta: In [0, 1).
        confidence: Of every interval.
        members: Whether the members are a sample of the training set or all of it.
        split: How membership was decided.
        claim: What is claimed of the training algorithm.
        threshold: How the certified bound picks its threshold.
        rates: False positive rates to report the true positive rate at.
        persons: What counts as one unit.
        mixture: Which mixtures to fit, if any.
        one_run_test: How the guesses about the training algorithm are judged.
    """

    size: int
    delta: float
    confidence: float
    members: Members
    split: MembershipSplit
    claim: TrainingClaim | None
    threshold: ThresholdRule
    rates: tuple[float, ...]
    persons: Persons
    mixture: Mixture | None
    one_run_test: OneRunTest

    def described(self, losses: Losses) -> dict[str, Any]:
        """Return the setting as the ``data`` of a result."""
        return {
            "n_member": losses.n_member,
            "n_nonmember": losses.n_nonmember,
            "training_size": self.size,
            "delta": self.delta,
            "confidence": self.confidence,
            "members": {Census: "census", Subset: "subset"}.get(type(self.members), "sample"),
            "split": _SPLIT_NAMES[type(self.split)],
            "stratified": isinstance(self.split, RandomSplit) and self.split.stratified,
            "inclusion": self.split.inclusion if isinstance(self.split, BernoulliSplit) else None,
            "claim": None if self.claim is None else self.claim.in_words(),
            "scale": str(losses.scale),
            "saturated": list(losses.saturated),
            "history": list(losses.history),
        }


def promises(
    claim: TrainingClaim | None, *, delta: float, split: MembershipSplit
) -> tuple[tuple[Claim, ...], Claim | None]:
    """Return everything that the description promises, and the form of it that the declared split audits.

    Args:
        claim: `DPSGD`, `StatedClaim` or none.
        delta: To state DP-SGD's epsilon at; a stated claim has its own.
        split: A `BernoulliSplit` audits the claim as it was made, any other its form for replaced records.
    """
    if claim is None:
        return (), None
    from auditor import theory

    at = claim.delta if isinstance(claim, StatedClaim) else delta
    claims = theory.claims(claim, delta=at)
    stated = claims[0]
    if isinstance(split, BernoulliSplit):
        return claims, stated
    if isinstance(claim, DPSGD):
        # The accountant's own replace-one epsilon, at the same delta, says more than a conversion, where there is one.
        own = theory.epsilon(claim, delta=at, adjacency=Adjacency.REPLACE_ONE)
        if own.value is not None:
            return claims, own
    return claims, theory.replace_one(stated)


def rates(fpr: Any) -> tuple[float, ...]:
    """Return distinct rates in (0, 1)."""
    if not isinstance(fpr, Iterable) or isinstance(fpr, str):
        raise InputError(f"fpr must be a sequence of rates such as (0.1, 0.01), got {fpr!r}.")
    return tuple(dict.fromkeys(_validate.fraction("fpr", rate) for rate in fpr))


def training_size(given: int | None, losses: Losses, members: Members) -> int:
    """Return the number of training records, by default that of the member losses."""
    if isinstance(members, Subset):
        given = _subset_size(given, members)
    if given is None:
        return losses.n_member
    size = _validate.at_least("training_size", given, least=2)
    if size < losses.n_member:
        raise InputError(
            f"training_size must be at least the number of member losses, got {size} for {losses.n_member} members."
        )
    if isinstance(members, Census) and size != losses.n_member:
        raise InputError(
            f"a census scores every training record, but training_size is {size} and there are {losses.n_member} member"
            " losses; declare a sample, or leave training_size out."
        )
    return size


def _subset_size(given: int | None, members: Subset) -> int:
    if given is not None and given != members.of:
        raise InputError(
            f"training_size must be that of the subset, got {given} and a subset of {members.of} records; leave training_size"
            " out."
        )
    return members.of


def delta(given: float | None, claim: TrainingClaim | None, size: int) -> float:
    """Return delta: as given, a stated claim's, or 1/(n ln n)."""
    if given is not None:
        return _validate.fraction("delta", given, zero=True)
    return claim.delta if isinstance(claim, StatedClaim) else default_delta(size)
