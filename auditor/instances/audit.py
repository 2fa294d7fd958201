"""audit_instances(): several models of one training mechanism, and the claim on the mechanism."""

import datetime as dt
import platform
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from auditor import _validate
from auditor._version import __version__
from auditor.choices import (
    BernoulliSplit,
    MembershipSplit,
    RandomSplit,
    StatedClaim,
    TrainingClaim,
    UnknownSplit,
)
from auditor.compare import judge, overall
from auditor.errors import InputError
from auditor.instances.curves import ATTACKS, Evidence, on_common_grid, rank_curves
from auditor.instances.estimates import estimates
from auditor.instances.result import InstancesResult
from auditor.instances.trust import checks_of, not_for_claim, persons_refusal
from auditor.provenance import input_hash
from auditor.result import AuditResult, NamedCurve
from auditor.setting import promises
from auditor.values import Losses

__all__ = ["audit_instances"]

Instance = Losses | AuditResult


def audit_instances(
    instances: Sequence[Instance],
    *,
    delta: float,
    confidence: float = 0.95,
    split: MembershipSplit = UnknownSplit(),  # noqa: B008 - a frozen value
    claim: TrainingClaim | None = None,
    seed: int = 0,
) -> InstancesResult:
    """Audit a training mechanism from several models that it trained.

    Args:
        instances: One per model: its losses, or the result of its audit. Every model needs its own training run and
            its own fresh split, drawn independently of the others.
        delta: In [0, 1). With a claim, the bound that is judged is stated at the claim's own delta, or at the one that
            follows from it for replaced records.
        confidence: In (0, 1).
        split: How membership was decided in each instance. Only `RandomSplit` supports a statement about the
            mechanism; then it is about replaced records.
        claim: What is claimed of the mechanism: `DPSGD` or `StatedClaim`.
        seed: Of the bootstrap; the same seed gives the same result.

    Raises:
        InputError: An argument that cannot be used, an instance given twice, or a result without rank curves.

    Source: Negoescu et al. 2024, Theorem 2 and Eq. 18 to 21, at attacks of known error rate (see
    `auditor.instances.rank_curves`).

    >>> rng = np.random.default_rng(0)
    >>> models = [Losses(member=rng.random(100), nonmember=rng.random(100) + 2) for _ in range(3)]
    >>> audit_instances(models, delta=1e-5).estimate("epsilon_bar").reason[:46]
    'it was not declared how membership was decided'
    """
    found = _checked(instances)
    _validate.instance("split", split, get_args(MembershipSplit))
    _validate.instance("claim", claim, (*get_args(TrainingClaim), type(None)))
    delta = _validate.fraction("delta", delta, zero=True)
    confidence = _validate.confidence(confidence)
    seed = _validate.at_least("seed", seed, least=0)
    hashes = _hashes(found)
    evidence = on_common_grid([_curves(index, item) for index, item in enumerate(found)])
    claims, audited = promises(claim, delta=delta, split=RandomSplit())
    stated_at = delta if audited is None or audited.delta is None else audited.delta
    rows = estimates(
        evidence,
        delta=stated_at,
        confidence=confidence,
        refusal=_refusal(split) or persons_refusal(found),
        about=not_for_claim(found),
        rng=np.random.default_rng(seed),
    )
    judged = () if audited is None else (judge(audited, rows[0], checks=checks_of(found)),)
    return InstancesResult(
        data=_data(found, evidence, stated_at, confidence, split, claim),
        estimates=rows,
        claims=claims,
        comparisons=judged,
        verdict=overall(judged),
        provenance=_provenance(hashes, seed),
    )


def _checked(instances: Any) -> tuple[Instance, ...]:
    if isinstance(instances, Losses | AuditResult) or not isinstance(instances, Sequence):
        raise InputError(
            f"instances must be a sequence of losses or results, one for each model, got {type(instances).__name__};"
            " a single model is audited with audit()."
        )
    for index, item in enumerate(instances):
        _validate.instance(f"instance {index} (counting from 0)", item, get_args(Instance))
    if len(instances) < 2:  # noqa: PLR2004
        raise InputError(
            f"instances must be at least 2 models of the same training algorithm, got {len(instances)};"
            " a single model is audited with audit()."
        )
    return tuple(instances)


def _hashes(instances: Sequence[Instance]) -> list[str]:
    """The hash of every instance's losses; the same losses twice are one model counted twice."""
    seen: dict[str, int] = {}
    for index, item in enumerate(instances):
        found = input_hash(item) if isinstance(item, Losses) else str(item.provenance.get("input_sha256"))
        if found in seen:
            raise InputError(
                f"instances {seen[found]} and {index} (counting from 0) hold the same losses; each must be a model of"
                " its own, with its own split and training run: remove one."
            )
        seen[found] = index
    return list(seen)


def _curves(index: int, instance: Instance) -> Mapping[str, NamedCurve]:
    curves = rank_curves(instance) if isinstance(instance, Losses) else instance.curves
    by_name = {curve.name: curve for curve in curves}
    if not ATTACKS.keys() <= by_name.keys():
        raise InputError(
            f"instance {index} (counting from 0) is a result without rank curves, which earlier versions did not keep;"
            " audit its losses again, or give the losses."
        )
    return by_name


def _refusal(split: MembershipSplit) -> str | None:
    """Why the declaration supports no statement about the mechanism, if so."""
    if split == RandomSplit():
        return None
    if isinstance(split, RandomSplit):
        return (
            "in a stratified split a replaced record is not exchangeable with all non-members, only with those of its"
            " stratum; audit each stratum as an instance set of its own"
        )
    if isinstance(split, BernoulliSplit):
        return (
            "several instances are audited for replaced records, which needs a random split; given the sizes of the"
            " groups, independent coins of one probability are one: declare RandomSplit() if every record that had a"
            " coin was scored"
        )
    return (
        "it was not declared how membership was decided; a statement about the training algorithm needs a fresh,"
        " uniformly random split for every instance, and the auditor's word for it"
    )


def _data(
    instances: Sequence[Instance],
    evidence: Evidence,
    delta: float,
    confidence: float,
    split: MembershipSplit,
    claim: TrainingClaim | None,
) -> dict[str, Any]:
    sizes = [
        (item.n_member, item.n_nonmember)
        if isinstance(item, Losses)
        else (item.data.get("n_member"), item.data.get("n_nonmember"))
        for item in instances
    ]
    names = {UnknownSplit: "unknown", RandomSplit: "random", BernoulliSplit: "bernoulli"}
    return {
        "n_instances": len(instances),
        "n_member": [n1 for n1, _ in sizes],
        "n_nonmember": [n0 for _, n0 in sizes],
        "n_attacks": int(evidence.rates.size),
        "delta": delta,
        "confidence": confidence,
        "split": names[type(split)],
        "claim": None if claim is None else claim.in_words(),
        "claim_delta": claim.delta if isinstance(claim, StatedClaim) else None,
    }


def _provenance(hashes: list[str], seed: int) -> dict[str, Any]:
    versions = {
        "privacy-auditor": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return {"created": created, "versions": versions, "inputs_sha256": hashes, "seed": seed}
