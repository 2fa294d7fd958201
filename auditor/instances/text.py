"""The same result for a terminal: the verdict with its reason, and a line for each number."""

from auditor.instances.estimates import BOUND, LOG_MEAN_EXP, POINT
from auditor.instances.result import InstancesResult
from auditor.report import formatting
from auditor.report.labels import ABOUT, VERDICT
from auditor.values import Estimate

__all__ = ["text"]

_TITLES = {
    BOUND: "Certified bound",
    POINT: "Epsilon-bar (estimate)",
    LOG_MEAN_EXP: "Log mean exp(Epsilon*)",
}


def text(result: InstancesResult) -> str:
    """Return a result as lines of text.

    >>> from auditor.instances import audit_instances
    >>> from auditor.values import Losses
    >>> models = [Losses(member=[0.1 * i, 0.2], nonmember=[0.2, 0.3]) for i in range(3)]
    >>> print(text(audit_instances(models, delta=0.0)).splitlines()[0][2:])
    No claim to judge
    """
    sign = VERDICT[result.verdict]
    lines = [
        f"{sign.symbol} {sign.word}",
        *_judged(result),
        *(item.reason for item in result.comparisons),
        "",
    ]
    count = formatting.count(result.data["n_instances"])
    lines.append(f"{count} models of one training algorithm, delta {formatting.given(result.data['delta'])}")
    width = max(map(len, _TITLES.values()))
    lines += [f"  {_TITLES[item.name]:<{width}}  {_value(item)}" for item in result.estimates]
    reasons = dict.fromkeys(item.reason for item in result.estimates if item.reason)
    lines += [formatting.sentence(reason) for reason in reasons]
    return formatting.clean("\n".join(lines)) + "\n"


def _judged(result: InstancesResult) -> list[str]:
    """In which form the claim was judged, where that is not how it was made."""
    stated = result.claims[0] if result.claims else None
    found = []
    for item in result.comparisons:
        if stated is not None and item.claim != stated and item.claim.value is not None:
            as_made, judged = (
                f"epsilon {formatting.given(claim.value)} at delta {formatting.given(claim.delta)} ({claim.adjacency})"
                for claim in (stated, item.claim)
            )
            found.append(f"Claimed: {as_made}; judged as {judged}, which it implies.")
    return found


def _point(estimate: Estimate) -> str:
    bootstrap = estimate.details.get("bootstrap") or {}
    if bootstrap.get("lower") is not None:
        level = formatting.percent(bootstrap.get("confidence", _LEVEL), toward="down")
        return f"point estimate; bootstrap over models: at least {formatting.number(bootstrap['lower'], toward='down')} ({level})"
    reason = bootstrap.get("lower_reason")
    return f"point estimate, no interval: {reason}" if reason else "point estimate"


_LEVEL = 0.95


def _value(estimate: Estimate) -> str:
    if estimate.value is None:
        return formatting.MISSING
    about = f"about {ABOUT[estimate.subject]}"
    if estimate.name == BOUND:
        level = formatting.percent(estimate.confidence, toward="down")
        ceiling = formatting.number(estimate.details["ceiling"], toward="down")
        at_least = formatting.number(estimate.value, toward="down")
        return f"at least {at_least} ({level} confidence, {estimate.adjacency}; ceiling {ceiling}), {about}"
    if estimate.name == LOG_MEAN_EXP:
        return f"{formatting.number(estimate.value)}, an average over models: neither refutes nor supports a claim"
    return f"{formatting.number(estimate.value)} ({estimate.adjacency}), {about}; {_point(estimate)}"
