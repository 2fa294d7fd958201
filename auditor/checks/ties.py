"""Do many records share one loss, and did the model's output saturate?"""

import numpy as np

from auditor._format import percent
from auditor.values import Check, Floats, Losses, Status

__all__ = ["saturation", "ties"]

_MANY = 0.01


def _longest_run(ordered: Floats) -> tuple[int, float]:
    """How often the most frequent value occurs, and which it is."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if starts.size == ordered.size:
        return 1, float(ordered[0])
    lengths = np.diff(np.append(starts, ordered.size))
    at = int(np.argmax(lengths))
    return int(lengths[at]), float(ordered[starts[at]])


def ties(losses: Losses) -> Check:
    """Warn when more than 1% of a group shares one loss, and say so when all losses are equal."""
    (n1, at1), (n0, at0) = _longest_run(losses.sorted_member), _longest_run(losses.sorted_nonmember)
    shares = n1 / losses.n_member, n0 / losses.n_nonmember
    details = {
        "member_share": shares[0],
        "nonmember_share": shares[1],
        "member_value": at1,
        "nonmember_value": at0,
        "all_equal": shares == (1.0, 1.0) and at1 == at0,
    }
    if details["all_equal"]:
        message = (
            "All losses are equal: this score tells nothing about membership, and every bound is 0. Check that the"
            " loss was computed from probabilities or logits, not from labels."
        )
        return Check("ties", Status.WARN, message, details)
    if (n1 > 1 and shares[0] > _MANY) or (n0 > 1 and shares[1] > _MANY):
        message = (
            f"{percent(shares[0])} of the members and {percent(shares[1])} of the non-members share one loss with others of their"
            " group: resolution was lost (rounding, hard labels or saturation), so the leak may be larger than measured."
            " Collect losses from logits if you can."
        )
        return Check("ties", Status.WARN, message, details)
    return Check("ties", Status.OK, "At most 1% of either group shares one loss.", details)


def saturation(losses: Losses) -> Check:
    """Warn when losses came from probabilities of exactly 0 or 1, which hide how sure the model was."""
    member, nonmember = losses.saturated
    details = {"member": member, "nonmember": nonmember}
    if member or nonmember:
        message = (
            f"{member:,} member and {nonmember:,} non-member losses come from a probability of exactly 0 or 1 and were"
            " clipped: the leak at the extremes may be larger than measured. Collect losses from logits if you can."
        )
        return Check("saturation", Status.WARN, message, details)
    return Check(
        "saturation", Status.OK, "No loss is known to come from a probability of exactly 0 or 1.", details
    )
