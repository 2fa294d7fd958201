"""audit(): the one place that knows the order."""

import math
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np

from auditor import _validate, checks, estimators, views
from auditor.choices import (
    DPSGD,
    Adjacency,
    BernoulliSplit,
    Census,
    Members,
    MembershipSplit,
    RandomSplit,
    RankGrid,
    Sample,
    StatedClaim,
    ThresholdRule,
    TrainingClaim,
    UnknownSplit,
)
from auditor.compare import compare, overall
from auditor.errors import InputError
from auditor.estimators import empirical, epsilon_star
from auditor.estimators.alternatives import alternatives
from auditor.estimators.noise_floor import noise_floor
from auditor.fitters import fit_gaussian_pair
from auditor.provenance import provenance
from auditor.result import AuditResult
from auditor.tradeoff import ThresholdCounts, count
from auditor.transforms import published
from auditor.values import Check, Claim, Estimate, FittedPair, Losses

__all__ = ["audit", "default_delta"]

_SPLIT_NAMES = {UnknownSplit: "unknown", RandomSplit: "random", BernoulliSplit: "bernoulli"}
_RATES = (0.1, 0.01, 0.001)


def default_delta(training_size: int) -> float:
    """Return 1/(n ln n), the delta that Negoescu et al. 2024 use for n training records.

    >>> round(default_delta(1000), 6)
    0.000145
    """
    n = _validate.at_least("training_size", training_size, least=2)
    return 1.0 / (n * math.log(n))


def audit(
    losses: Losses,
    *,
    delta: float | None = None,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    split: MembershipSplit = UnknownSplit(),  # noqa: B008
    claim: TrainingClaim | None = None,
    training_size: int | None = None,
    threshold: ThresholdRule = RankGrid(),  # noqa: B008
    fpr: Iterable[float] = _RATES,
    seed: int = 0,
    model: str | None = None,
    source: str | None = None,
    command: str | None = None,
) -> AuditResult:
    """Audit a model from its losses.

    Args:
        losses: Per-record losses, smaller meaning more like a member.
        delta: In [0, 1). By default the delta of a stated claim, otherwise 1/(n ln n) with n the training size.
        confidence: Of every interval, in (0, 1).
        members: `Sample` (the scored members are a random sample of the training set) or `Census` (all of it).
        split: How membership was decided; without a declaration no verdict on a claim is possible.
        claim: What is claimed of the training algorithm: `DPSGD` or `StatedClaim`.
        training_size: Number of training records, by default the number of member losses.
        threshold: How the certified bound picks its threshold.
        fpr: False positive rates to report the true positive rate at.
        seed: Of everything random here; the same seed gives the same result.
        model: A name for the model, shown in the report.
        source: Where the losses come from, shown in the report.
        command: The command line, if there was one.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000))
    >>> result = audit(losses, delta=1e-5)
    >>> 0 < result.estimate("epsilon_bound.clopper_pearson").lower < 4.38
    True
    """
    for name, value, kinds in (
        ("losses", losses, (Losses,)),
        ("members", members, get_args(Members)),
        ("split", split, get_args(MembershipSplit)),
        ("claim", claim, (*get_args(TrainingClaim), type(None))),
        ("threshold", threshold, get_args(ThresholdRule)),
    ):
        _validate.instance(name, value, kinds)
    rates = _rates(fpr)
    confidence = _validate.confidence(confidence)
    seed = _validate.at_least("seed", seed, least=0)
    size = _training_size(training_size, losses, members)
    delta = _delta(delta, claim, size)
    fit_rng, floor_rng, pair_rng = np.random.default_rng(seed).spawn(3)
    claims, audited = _claims(claim, delta, split)

    # The counts come first: they need the most memory, and the transformed losses are not there yet.
    counts = count(losses)
    area = estimators.auc(counts, confidence=confidence)
    gap = estimators.advantage(counts, confidence=confidence, members=members)
    point = empirical.empirical(losses, delta=delta, counts=counts)
    transformed = _sorted_already(published()(_in_order(losses)))
    pair = fit_gaussian_pair(transformed, rng=fit_rng, transform="published")
    one_run_delta = delta if audited is None or audited.delta is None else audited.delta
    estimates = (
        estimators.clopper_pearson(
            losses, delta=delta, rule=threshold, confidence=confidence, members=members
        ),
        estimators.one_run(losses, split=split, delta=one_run_delta, confidence=confidence, rng=pair_rng),
        _parametric(
            losses,
            transformed,
            counts,
            pair,
            delta=delta,
            rng=floor_rng,
            confidence=confidence,
            members=members,
        ),
        point,
        gap,
        estimators.bayes_security(gap),
        area,
        *(estimators.tpr_at_fpr(losses, rate=rate, confidence=confidence, members=members) for rate in rates),
    )
    trust = _checks(losses, estimates, pair, audited)
    comparisons = compare(claims, estimates, trust, audited=audited)
    return AuditResult(
        data=_data(losses, size, delta, confidence, members, split, claim, model),
        estimates=estimates,
        claims=claims,
        comparisons=comparisons,
        checks=trust,
        curves=views.curves(losses, counts, pair, claim=audited, confidence=confidence, members=members),
        histograms=views.histograms(losses, transformed, pair),
        verdict=overall(comparisons),
        provenance=provenance(losses, seed=seed, source=source, command=command),
    )


def _rates(fpr: Any) -> tuple[float, ...]:
    if not isinstance(fpr, Iterable) or isinstance(fpr, str):
        raise InputError(f"fpr must be a sequence of rates such as (0.1, 0.01), got {fpr!r}.")
    return tuple(dict.fromkeys(_validate.fraction("fpr", rate) for rate in fpr))


def _training_size(training_size: int | None, losses: Losses, members: Members) -> int:
    if training_size is None:
        return losses.n_member
    size = _validate.at_least("training_size", training_size, least=2)
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


def _delta(delta: float | None, claim: TrainingClaim | None, size: int) -> float:
    if delta is not None:
        return _validate.fraction("delta", delta, zero=True)
    return claim.delta if isinstance(claim, StatedClaim) else default_delta(size)


def _in_order(losses: Losses) -> Losses:
    """The same losses, sorted: the transforms are increasing, so their results need no sorting."""
    return Losses(
        member=losses.sorted_member,
        nonmember=losses.sorted_nonmember,
        scale=losses.scale,
        history=losses.history,
    )


def _sorted_already(losses: Losses) -> Losses:
    """Fill the caches of a sorted value with what they would compute."""
    losses.__dict__.update(sorted_member=losses.member, sorted_nonmember=losses.nonmember)
    return losses


def _claims(
    claim: TrainingClaim | None, delta: float, split: MembershipSplit
) -> tuple[tuple[Claim, ...], Claim | None]:
    """Everything the description promises, and the form of it that the declared split audits."""
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


def _parametric(
    losses: Losses,
    transformed: Losses,
    counts: ThresholdCounts,
    pair: FittedPair,
    *,
    delta: float,
    confidence: float,
    members: Members,
    rng: np.random.Generator,
) -> Estimate:
    extra: dict[str, Any] = dict(views.fit_gap(counts, pair))
    if delta > 0:
        extra |= alternatives(losses, delta=delta)
        floor = noise_floor(transformed, delta=delta, clip=delta, rng=rng)
        extra["noise_floor"] = {
            "mean": float(floor.mean()),
            "q95": float(np.quantile(floor, 0.95)),
            "permutations": int(floor.size),
        }
    return epsilon_star.gaussian(pair, delta=delta, confidence=confidence, members=members, extra=extra)


def _checks(
    losses: Losses, estimates: tuple[Estimate, ...], pair: FittedPair, audited: Claim | None
) -> tuple[Check, ...]:
    by_name = {estimate.name: estimate for estimate in estimates}
    return (
        checks.direction(by_name["auc"]),
        checks.ties(losses),
        checks.saturation(losses),
        checks.duplicates(losses),
        checks.shift(),
        checks.power(by_name["epsilon_bound.clopper_pearson"], by_name["epsilon_bound.one_run"], audited),
        checks.sensitivity(by_name["epsilon_star.gaussian"]),
        checks.goodness_of_fit(pair),
    )


def _data(
    losses: Losses,
    size: int,
    delta: float,
    confidence: float,
    members: Members,
    split: MembershipSplit,
    claim: TrainingClaim | None,
    model: str | None,
) -> dict[str, Any]:
    return {
        "model": model,
        "n_member": losses.n_member,
        "n_nonmember": losses.n_nonmember,
        "training_size": size,
        "delta": delta,
        "confidence": confidence,
        "members": "census" if isinstance(members, Census) else "sample",
        "split": _SPLIT_NAMES[type(split)],
        "inclusion": split.inclusion if isinstance(split, BernoulliSplit) else None,
        "claim": None if claim is None else claim.in_words(),
        "scale": str(losses.scale),
        "saturated": list(losses.saturated),
        "history": list(losses.history),
    }
