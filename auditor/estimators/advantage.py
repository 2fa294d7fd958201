"""``advantage`` and ``bayes_security`` of the attacker who thresholds the loss.

    adv = sup_q (TPR - FPR),  beta = 1 - adv

beta* of the best attacker can only be smaller, so `bayes_security` has an upper limit and no lower one.
"""

import math

import numpy as np

from auditor import _validate
from auditor.choices import Census, Members, Sample
from auditor.estimators.as_draws import finite, with_draws
from auditor.tradeoff import ThresholdCounts
from auditor.values import Estimate, Subject

__all__ = ["advantage", "bayes_security", "half_width"]

_ASSUMPTIONS = ("records within each group are independent draws", "membership labels are right")


def advantage(
    counts: ThresholdCounts,
    *,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the largest TPR - FPR over thresholds, with a two-sided interval.

    Both distribution functions lie within c_i = sqrt(log(4/alpha)/(2 n_i)) of the empirical ones, on the sides that
    matter (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant), so the supremum lies within c_1 + c_0 of the
    empirical one. A census knows the member side, and keeps the ends with the members as draws in
    ``details["as_draws"]``; a subset of the training set is treated as a sample. The plain value is biased upward on a
    finite sample.

    Args:
        counts: From `auditor.tradeoff.count`.
        confidence: Of the interval, in (0, 1).
        members: `Sample` (default), `Subset` or `Census`.

    Raises:
        InputError: A confidence outside (0, 1).

    >>> from auditor.tradeoff import count
    >>> from auditor.values import Losses
    >>> advantage(count(Losses(member=[1.0, 2.0], nonmember=[3.0, 4.0]))).value
    1.0
    """
    alpha = 1 - _validate.confidence(confidence)
    gap = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    at = int(np.argmax(gap))
    value = max(0.0, float(gap[at]))
    census = isinstance(members, Census)
    band = half_width(alpha, n_member=None if census else counts.n_member, n_nonmember=counts.n_nonmember)
    # How many are called members at the best threshold; the threshold itself would be a record's loss.
    called = {"true_positives": int(counts.tp_below[at]), "false_positives": int(counts.fp_below[at])}
    found = Estimate(
        name="advantage",
        value=value,
        lower=max(0.0, value - band),
        upper=min(1.0, value + band),
        confidence=confidence,
        method="largest gap of the two empirical distribution functions, Dvoretzky-Kiefer-Wolfowitz interval",
        subject=Subject.MODEL,
        assumptions=(*_ASSUMPTIONS, *(finite(members) if census else ())),
        details=called if value > 0 else {},
    )
    return with_draws(found, advantage(counts, confidence=confidence)) if census else found


def half_width(alpha: float, *, n_member: int | None, n_nonmember: int) -> float:
    """Return by how much the largest TPR - FPR can be off, with probability at most alpha: c_1 + c_0.

    Args:
        alpha: In (0, 1).
        n_member: Number of members, or None where the member side is known: a census.
        n_nonmember: Number of non-members.

    >>> round(half_width(0.05, n_member=None, n_nonmember=1000), 6)
    0.042947
    """
    sizes = [n_nonmember] if n_member is None else [n_member, n_nonmember]
    # Each distribution function can leave its band on two sides, and every side gets an equal part of the error.
    return sum(math.sqrt(math.log(2 * len(sizes) / alpha) / (2 * n)) for n in sizes)


def bayes_security(threshold_advantage: Estimate) -> Estimate:
    """Return 1 - advantage with its upper limit; stronger attackers may exist, so there is no lower limit.

    Args:
        threshold_advantage: From `advantage`, with a value and a lower limit.

    Raises:
        ValueError: An advantage without a value.

    Source: Cherubin et al. 2024, Section 2.3: beta = 1 - adv for two equally likely secrets.

    >>> from auditor.tradeoff import count
    >>> from auditor.values import Losses
    >>> bayes_security(advantage(count(Losses(member=[1.0, 3.0], nonmember=[2.0, 4.0])))).value
    0.5
    """
    if threshold_advantage.value is None or threshold_advantage.lower is None:
        raise ValueError("an advantage without a value has no Bayes security")
    kept = threshold_advantage.details.get("as_draws")
    draws = (
        {}
        if kept is None
        else {"as_draws": {"value": 1.0 - kept["value"], "lower": None, "upper": 1.0 - kept["lower"]}}
    )
    return Estimate(
        name="bayes_security",
        value=1.0 - threshold_advantage.value,
        lower=None,
        upper=1.0 - threshold_advantage.lower,
        confidence=threshold_advantage.confidence,
        method="1 - advantage of the loss-threshold attacker",
        subject=Subject.MODEL,
        assumptions=(
            *threshold_advantage.assumptions,
            "only attackers who threshold the loss; stronger ones may exist",
        ),
        details=draws,
    )
