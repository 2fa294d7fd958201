"""Does a record appear twice, or in both groups?"""

import numpy as np

from auditor.values import Check, Losses, Status

__all__ = ["duplicates"]


def duplicates(losses: Losses) -> Check:
    """Fail when an id is in both groups, warn when one repeats within a group; unknown without ids."""
    if losses.id is None:
        return Check(
            "duplicates", Status.UNKNOWN, "Records carry no ids, so duplicates cannot be looked for."
        )
    member, nonmember = (np.unique(column.astype(str)) for column in losses.id)
    across = int(np.intersect1d(member, nonmember, assume_unique=True).size)
    within = (losses.n_member - member.size, losses.n_nonmember - nonmember.size)
    details = {"across": across, "within_members": within[0], "within_nonmembers": within[1]}
    if across:
        message = (
            f"{across:,} id(s) are both member and non-member: the groups overlap, so the comparison is not valid."
            " Remove those records from one group and audit again."
        )
        return Check("duplicates", Status.FAIL, message, details)
    if any(within):
        message = (
            f"{within[0]:,} member and {within[1]:,} non-member records repeat an id: records are not independent, so"
            " the intervals are too narrow. Keep one record for each id."
        )
        return Check("duplicates", Status.WARN, message, details)
    return Check("duplicates", Status.OK, "No id appears twice.", details)
