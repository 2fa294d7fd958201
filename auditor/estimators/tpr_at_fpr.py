"""``tpr_at_fpr.*``: how many members an attacker recognises at a false positive rate that is guaranteed."""

from typing import Any

import numpy as np

from auditor import _validate
from auditor.choices import Members, Sample
from auditor.estimators.as_draws import finite, with_draws
from auditor.estimators.binomial import upper_limit
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.separating import just_below
from auditor.values import Estimate, Losses, Subject

__all__ = ["guaranteed_rank", "tpr_at_fpr"]


def guaranteed_rank(rate: float, *, n_nonmember: int, alpha: float) -> int | None:
    """Return the largest rank k with U(k; n0, alpha) <= rate, or None where not even k = 0 will do.

    k = 0 needs n0 >= ln(1/alpha)/rate, about.

    >>> guaranteed_rank(0.01, n_nonmember=1000, alpha=0.025)
    3
    >>> guaranteed_rank(0.001, n_nonmember=1000, alpha=0.025) is None
    True
    """
    low, high = -1, n_nonmember  # U rises with k: bisect for the last rank that keeps the rate
    while high - low > 1:
        middle = (low + high) // 2
        if float(upper_limit(middle, n_nonmember, alpha)) <= rate:
            low = middle
        else:
            high = middle
    return low if low >= 0 else None


def tpr_at_fpr(
    losses: Losses,
    *,
    rate: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
) -> Estimate:
    """Return the TPR at a threshold whose FPR is at most ``rate``, with a certified lower limit.

    The threshold is the (k+1)-th smallest non-member loss (strictly below it means "member"), with k fixed before the
    data are seen. Half of the error covers the FPR, half the TPR (all of it the FPR, in a census). ``value`` is the
    observed TPR there, and ``details["fpr"]`` the observed FPR. Each rate has its own guarantee; they do not hold
    jointly. There is no upper limit: an attacker who sees more than the loss can do better.

    Args:
        losses: Smaller means more like a member.
        rate: The false positive rate that must not be exceeded, in (0, 1).
        confidence: In (0, 1).
        members: `Sample` (default), `Subset` or `Census`; the TPR is then that of the law, or of the training set, and
            ``details["as_draws"]`` keeps what is found with the members as a sample.

    Raises:
        InputError: A rate or confidence outside (0, 1), or a subset of fewer records than were scored.

    >>> losses = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> tpr_at_fpr(losses, rate=0.1).value
    1.0
    >>> tpr_at_fpr(losses, rate=0.001).reason
    'not resolvable with 500 non-member records: at least 3,688 are needed'
    """
    rate = _validate.fraction("fpr", rate)
    alpha = 1 - _validate.confidence(confidence)
    limits = MemberLimits(members, losses.n_member)
    spent = alpha / limits.limits
    n1, n0 = losses.n_member, losses.n_nonmember
    rank = guaranteed_rank(rate, n_nonmember=n0, alpha=spent)
    if rank is None:
        needed = int(np.ceil(np.log(spent) / np.log1p(-rate)))
        reason = f"not resolvable with {n0:,} non-member records: at least {needed:,} are needed"
        return _estimate(rate, (None, None), None, {"rate": rate, "reason": reason}, members)
    threshold = float(losses.sorted_nonmember[rank])
    hits = int(np.searchsorted(losses.sorted_member, threshold, side="left"))
    lower = float(limits.tpr_lower(hits, spent))
    alarms = int(np.searchsorted(losses.sorted_nonmember, threshold, side="left"))
    details: dict[str, Any] = {
        "rate": rate,
        "rank": rank,
        "fpr": alarms / n0,
        "threshold_below": just_below(losses, threshold),
        "true_positives": hits,
        "fpr_upper": float(upper_limit(rank, n0, spent)),
    }
    found = _estimate(rate, (hits / n1, lower), confidence, details, members)
    if isinstance(members, Sample):
        return found
    return with_draws(found, tpr_at_fpr(losses, rate=rate, confidence=confidence))


def _estimate(
    rate: float,
    ends: tuple[float | None, float | None],
    confidence: float | None,
    details: dict[str, Any],
    members: Members,
) -> Estimate:
    value, lower = ends
    return Estimate(
        name=f"tpr_at_fpr.{rate:g}",
        value=value,
        lower=lower,
        upper=None,
        confidence=confidence,
        method="threshold at a non-member rank fixed in advance, Clopper-Pearson limits",
        subject=Subject.MODEL,
        assumptions=(
            "records within each group are independent draws",
            "membership labels are right",
            *finite(members),
        ),
        details=details,
    )
