"""Are the two groups the right way round?"""

from auditor.values import Check, Estimate, Status

__all__ = ["direction"]


def direction(auc: Estimate) -> Check:
    """Warn when members clearly have the higher losses, as they do when the two files are swapped."""
    details = {"auc": auc.value, "auc_upper": auc.upper}
    if auc.upper is not None and auc.upper < 0.5:  # noqa: PLR2004 - chance
        return Check(
            "direction",
            Status.WARN,
            "Members have clearly higher losses than non-members, the wrong way round: check that the two groups are"
            " not swapped, and that a smaller loss means a better prediction (otherwise say that higher is member).",
            details,
        )
    return Check("direction", Status.OK, "Member losses are not higher than non-member losses.", details)
