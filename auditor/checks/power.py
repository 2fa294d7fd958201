"""Could this audit have found anything?"""

import math

from auditor._format import apart, number
from auditor.values import Check, Claim, Estimate, Status

__all__ = ["power"]

_SMALL = 1.0


def power(certified: Estimate, mechanism: Estimate, claim: Claim | None) -> Check:
    """Put the ceiling of a perfect attack beside the claim.

    Args:
        certified: The model-level certified bound.
        mechanism: The mechanism-level bound; may have no value.
        claim: The claimed epsilon in the form in which it is audited, if any.
    """
    ceiling = certified.details["ceiling"]
    details = {"model_ceiling": ceiling, "mechanism_ceiling": mechanism.details.get("ceiling")}
    judged = mechanism.value is not None and "not_for_claim" not in mechanism.details
    if claim is not None and claim.value is not None and judged:
        curve = mechanism.details.get("claimed_curve") or {}
        if curve.get("rejected") or curve.get("could_have_been"):
            message = (
                "A perfect attack on these records would have had the claim's whole trade-off curve rejected: the audit had"
                " room to refute it."
            )
            return Check("power", Status.OK, message, {**details, "claimed": claim.value})
        return _against_claim(mechanism.details["ceiling"], claim.value, details)
    top = number(ceiling, toward="down")
    message = f"With these numbers of records, a perfect attack would be certified at {top} by this method."
    if ceiling < _SMALL:
        message += " That is too little to find most leaks."
        return Check("power", Status.WARN, message, details)
    return Check("power", Status.OK, message, details)


def _against_claim(ceiling: float, claimed: float, details: dict[str, float]) -> Check:
    details = {**details, "claimed": claimed}
    stated, top = apart(claimed, ceiling)
    perfect = f"A perfect attack on these records would show an epsilon of {top} for the training algorithm"
    if not math.isfinite(claimed) or ceiling <= claimed:
        message = f"{perfect} by this method, not above the claim of {stated}: the audit cannot refute it."
        return Check("power", Status.WARN, message, details)
    message = f"{perfect}, above the claim of {stated}: the audit had room to refute it."
    return Check("power", Status.OK, message, details)
