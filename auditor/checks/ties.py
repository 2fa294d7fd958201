"""Do many records share one loss, and did the model's output saturate?"""

import numpy as np

from auditor._format import percent
from auditor.values import Check, Floats, Losses, Status

__all__ = ["saturation", "ties"]

_MANY = 0.01
_MOSTLY = (
    0.5  # fewer distinct losses than this share of the records outside the largest piles are rounded ones
)
_LABELS = 2


def _longest_run(ordered: Floats) -> tuple[int, float]:
    """How often the most frequent value occurs, and which it is."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    if starts.size == ordered.size:
        return 1, float(ordered[0])
    lengths = np.diff(np.append(starts, ordered.size))
    at = int(np.argmax(lengths))
    return int(lengths[at]), float(ordered[starts[at]])


def ties(losses: Losses) -> Check:
    """Warn when losses repeat: more than 1% of a group share one, or there are far fewer different ones than records.

    The sentence names what masked the model's confidence: labels only, rounding, or an end of the scale where outputs
    were cut off (probabilities of 0 and 1, or an answer without the probabilities of the others).
    """
    groups = (losses.sorted_member, losses.sorted_nonmember)
    runs = [_longest_run(group) for group in groups]
    shares = [length / group.size for (length, _), group in zip(runs, groups, strict=True)]
    pooled = np.sort(np.concatenate(groups), kind="stable")  # a merge, since both are sorted
    distinct = 1 + int((pooled[1:] != pooled[:-1]).sum())
    details = {
        "member_share": shares[0],
        "nonmember_share": shares[1],
        # One record's loss stays out of the result; a value that many share is no record's own.
        "member_value": runs[0][1] if _piled(runs[0][0], shares[0]) else None,
        "nonmember_value": runs[1][1] if _piled(runs[1][0], shares[1]) else None,
        "distinct": distinct,
        "all_equal": distinct == 1,
    }
    if distinct == 1:
        message = (
            "All losses are equal: this score tells nothing about membership, and every bound is 0. Check that the"
            " loss was computed from probabilities or logits, not from labels."
        )
        return Check("ties", Status.WARN, message, details)
    piled = any(_piled(length, share) for (length, _), share in zip(runs, shares, strict=True))
    rounded = distinct < _MOSTLY * (pooled.size - sum(length for length, _ in runs))
    if not piled and not rounded:
        return Check("ties", Status.OK, "At most 1% of either group shares one loss.", details)
    # Where the piles differ, what is named is the larger one's.
    value = runs[int(np.argmax(shares))][1]
    masked, words = _masking(distinct, pooled.size, rounded=rounded, at_end=value in (pooled[0], pooled[-1]))
    message = (
        f"{words}: {percent(shares[0])} of the members and {percent(shares[1])} of the non-members share one loss with"
        f" others of their group. {_MASKED}"
    )
    return Check("ties", Status.WARN, message, {**details, "masked": masked})


def _piled(length: int, share: float) -> bool:
    return length > 1 and share > _MANY


_MASKED = (
    "Masked confidence hides a leak without removing it, so the leak may be larger than measured, and it can make the"
    " Gaussian Epsilon* larger too: rely on the certified bound, and collect losses from logits if you can."
)


def _masking(distinct: int, records: int, *, rounded: bool, at_end: bool) -> tuple[str, str]:
    """What seems to have masked the model's confidence, as a name and in words."""
    if distinct <= _LABELS:
        return (
            "labels",
            f"Only {distinct} different losses occur, as from a model that answers with labels alone",
        )
    if rounded:
        return "rounding", (
            f"Only {distinct:,} different losses occur among {records:,} records, as from rounded or binned outputs"
        )
    if at_end:
        return "end of scale", (
            "Losses pile up at the end of their scale, as from probabilities of exactly 0 or 1, clipping, or answers that"
            " leave out all but the top class"
        )
    return "one value", "One loss is given to many records, as a default answer or a cut-off would do"


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
