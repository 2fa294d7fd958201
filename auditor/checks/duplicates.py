"""Does a record appear twice, or in both groups?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.values import Check, Losses, Status

__all__ = ["duplicates"]


def duplicates(losses: Losses) -> Check:
    """Fail when an id is in both groups, warn when one repeats within a group; unknown without ids."""
    if losses.id is None:
        return Check(
            "duplicates", Status.UNKNOWN, "Records carry no ids, so duplicates cannot be looked for."
        )
    ids = [_given(column) for column in losses.id]
    member, nonmember = (np.unique(column) for column in ids)
    across = int(np.intersect1d(member, nonmember, assume_unique=True).size)
    within = (ids[0].size - member.size, ids[1].size - nonmember.size)
    blank = losses.n_member + losses.n_nonmember - ids[0].size - ids[1].size
    details = {
        "across": across,
        "within_members": within[0],
        "within_nonmembers": within[1],
        "without_id": blank,
    }
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
    if blank:
        message = f"No id appears twice, but {blank:,} record(s) have no id and could not be compared."
        return Check("duplicates", Status.UNKNOWN, message, details)
    return Check("duplicates", Status.OK, "No id appears twice.", details)


def _given(column: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """The ids that are there, as text: not blank, None or NaN. A whole number is the same id as an integer or a float."""
    if column.dtype.kind == "f":
        column = np.array(
            [int(x) if np.isfinite(x) and x == int(x) else x for x in column.tolist()], dtype=object
        )
    text = np.char.strip(column.astype(str))
    missing = np.isin(text, ("", "None", "nan", "NaN", "<NA>")) if column.dtype.kind in "Of" else text == ""
    return np.asarray(text[~missing])
