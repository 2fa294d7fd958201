"""Do members and non-members come from one population?"""

from auditor.values import Check, Status

__all__ = ["shift"]


def shift() -> Check:
    """Say that losses alone cannot tell a shift between the groups from leakage."""
    message = (
        "From losses alone, a difference between the two populations cannot be told from memorisation: every number"
        " here assumes that the non-members are drawn like the members (same time, source and filters)."
    )
    return Check("shift", Status.UNKNOWN, message)
