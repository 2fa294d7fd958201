"""Could this audit have found anything?"""

import math

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
    if claim is not None and claim.value is not None and mechanism.value is not None:
        return _against_claim(mechanism.details["ceiling"], claim.value, details)
    message = (
        f"With these numbers of records, the largest bound that any attack could certify is {ceiling:.3g}."
    )
    if ceiling < _SMALL:
        return Check(
            "power",
            Status.WARN,
            message + " That is too little to find most leaks: audit more records.",
            details,
        )
    return Check("power", Status.OK, message, details)


def _against_claim(ceiling: float, claimed: float, details: dict[str, float]) -> Check:
    details = {**details, "claimed": claimed}
    if not math.isfinite(claimed) or ceiling <= claimed:
        message = (
            f"Even a perfect attack on these records could show an epsilon of at most {ceiling:.3g} for the training"
            f" algorithm, which is not above the claim of {claimed:.3g}: this audit cannot refute it. Audit more records."
        )
        return Check("power", Status.WARN, message, details)
    message = (
        f"A perfect attack on these records could show an epsilon of {ceiling:.3g} for the training algorithm, above the"
        f" claim of {claimed:.3g}: the audit had room to refute it."
    )
    return Check("power", Status.OK, message, details)
