"""The rows of an audit of several instances: the certified bound, the point value, and what bounds it from above."""

import dataclasses
from typing import Any

import numpy as np

from auditor.choices import Adjacency
from auditor.instances import bounds
from auditor.instances.curves import ATTACKS, Evidence
from auditor.values import Estimate, Subject

__all__ = ["BOUND", "LOG_MEAN_EXP", "POINT", "estimates"]

BOUND, POINT, LOG_MEAN_EXP = "epsilon_bound.instances", "epsilon_bar", "epsilon_bar.log_mean_exp"
# Where one model in 33 hardly leaks, the bootstrap is too high in 72%, 55%, 23% and 5% of simulated audits of 10, 20, 50
# and 100 instances (about as often as none of them is such a model), the certified bound in none.
_BOOTSTRAP_FROM = 100
_DECLARED = (
    "every instance had its own uniformly random split, drawn before its own training run (declared, not checked)",
    "the hold-outs took no part in training, early stopping or selection",
    "all instances come from the same training algorithm",
)


def estimates(
    evidence: Evidence,
    *,
    delta: float,
    confidence: float,
    refusal: str | None,
    about: str | None = None,
    rng: np.random.Generator,
) -> tuple[Estimate, Estimate, Estimate]:
    """Return the certified bound, the point value, and log E[exp eps*]; the first two need a random split.

    Args:
        evidence: What the instances show.
        delta: To state epsilon at.
        confidence: Of the bound.
        refusal: Why nothing can be said about the mechanism, if so.
        about: Why the bound cannot judge a claim on single records, if so.
        rng: Of the bootstrap.
    """
    certified, point = _bound(evidence, delta, confidence), _point(evidence, delta, confidence, rng)
    if about is not None:
        certified = dataclasses.replace(certified, details={**certified.details, "not_for_claim": about})
    if refusal is not None:
        certified, point = (_without_value(item, refusal) for item in (certified, point))
    return certified, point, _log_mean_exp(evidence, delta)


def _without_value(estimate: Estimate, reason: str) -> Estimate:
    return dataclasses.replace(
        estimate,
        value=None,
        lower=None,
        confidence=None,
        adjacency=None,
        assumptions=(),
        details={"reason": reason},
    )


def _bound(evidence: Evidence, delta: float, confidence: float) -> Estimate:
    bound, details = bounds.certified(evidence, delta, 1 - confidence)
    return Estimate(
        name=BOUND,
        value=bound,
        lower=bound,
        upper=None,
        confidence=confidence,
        method="bets on every instance at ranks fixed in advance, averaged; Markov's inequality",
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=Adjacency.REPLACE_ONE,
        assumptions=_DECLARED,
        details={"instances": evidence.hits.shape[0], **details},
    )


def _point(evidence: Evidence, delta: float, confidence: float, rng: np.random.Generator) -> Estimate:
    value, at = bounds.point(evidence, delta)
    details: dict[str, Any] = {"instances": evidence.hits.shape[0], "certified": BOUND}
    if value > 0:
        details |= {
            "attack": ATTACKS[evidence.names[at]],
            "error_rate": float(evidence.rates[at]),
            "mean_hit_rate": float(evidence.hits[:, at].mean()),
        }
    return Estimate(
        name=POINT,
        value=value,
        lower=None,  # the certified bound is a row of its own, and the only one that can be judged
        upper=None,
        confidence=None,
        method="largest ratio of averaged rates; Negoescu et al. 2024, Eq. 19",
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=Adjacency.REPLACE_ONE,
        assumptions=(*_DECLARED, "biased upward: a maximum over noisy ratios"),
        details=details | {"bootstrap": _bootstrap(evidence, delta, confidence, rng)},
    )


def _bootstrap(
    evidence: Evidence, delta: float, confidence: float, rng: np.random.Generator
) -> dict[str, Any]:
    method = "studentised bootstrap over instances, simultaneous over ranks; approximate"
    if evidence.hits.shape[0] < _BOOTSTRAP_FROM:
        reason = (
            f"with fewer than {_BOOTSTRAP_FROM} instances a bootstrap misses its level where a few models leak less than"
            f" the rest; {BOUND} needs no such number"
        )
        return {"lower": None, "lower_reason": reason, "method": method}
    lower = bounds.bootstrap_lower(evidence, delta, 1 - confidence, rng=rng)
    return {"lower": lower, "confidence": confidence, "method": method}


def _log_mean_exp(evidence: Evidence, delta: float) -> Estimate:
    """About models, not the mechanism's guarantee: so nothing can judge a claim by it."""
    values = bounds.instance_values(evidence, delta)
    value, error = bounds.log_mean_exp(values)
    return Estimate(
        name=LOG_MEAN_EXP,
        value=value,
        lower=None,
        upper=None,
        confidence=None,
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
