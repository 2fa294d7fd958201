"""``epsilon_star.empirical``: Epsilon* of Negoescu et al. 2024, Definition 2, from the counts themselves.

It describes one model, and bounds the epsilon of the training algorithm neither from above nor from below.
"""

import math
from typing import Any

import numpy as np

from auditor import _validate
from auditor.tradeoff import ThresholdCounts, count
from auditor.values import Estimate, Floats, Losses, Subject

__all__ = ["empirical"]

# The paper keeps empirical error rates inside this open interval, for numerical stability.
EMPIRICAL_CLIP = 0.001


def empirical(
    losses: Losses, *, delta: float, clip: float = EMPIRICAL_CLIP, counts: ThresholdCounts | None = None
) -> Estimate:
    """Return the paper's empirical Epsilon*: a point estimate, biased upward by taking a maximum over noise.

    Args:
        losses: Smaller means more like a member.
        delta: In [0, 1).
        counts: From `auditor.tradeoff.count`, if they are at hand.
        clip: Error rates are kept in the open interval (clip, 1 - clip); the paper's 0.001.

    An empty interval of thresholds is total separation when some threshold separates the groups that well: the value
    is then the clip's ceiling, flagged ``saturated``. When only ties empty it, the value is 0.

    >>> empirical(Losses(member=[1.0, 1.0], nonmember=[1.0, 1.0]), delta=1e-5).value
    0.0
    """
    delta = _validate.fraction("delta", delta, zero=True)
    clip = _validate.fraction("clip", clip)
    details: dict[str, Any] = {
        "clip": clip,
        "saturated": False,
        "lower_reason": "a maximum over noisy ratios has no interval of its own; the certified bound has one",
    }
    counts = count(losses) if counts is None else counts
    best = _largest_ratio(losses, counts, delta, clip)
    if best is not None:
        value = max(0.0, best[0])
        details |= {"branch": best[1], "at": {"fpr": best[2], "fnr": 1 - best[3]}} if value > 0 else {}
    elif _separated(counts, clip):
        value = max(0.0, math.log(max(1.0, (1 - clip - delta) / clip)))
        details["saturated"] = True
    else:
        value = 0.0
    return Estimate(
        name="epsilon_star.empirical",
        value=value,
        lower=None,
        upper=None,
        confidence=None,
        method="maximum over empirical error rates; Negoescu et al. 2024, Definition 2",
        subject=Subject.MODEL,
        delta=delta,
        assumptions=("biased upward: a maximum over noisy ratios",),
        details=details,
    )


def _separated(counts: ThresholdCounts, clip: float) -> bool:
    """Whether the curve passes outside the clip's square through a corner, either way round."""
    below = counts.tp_below / counts.n_member - counts.fp_below / counts.n_nonmember
    upto = counts.fp_upto / counts.n_nonmember - counts.tp_upto / counts.n_member
    return bool(max(below.max(), upto.max()) >= 1 - 2 * clip)


def _largest_ratio(
    losses: Losses, counts: ThresholdCounts, delta: float, clip: float
) -> tuple[float, str, float, float] | None:
    """The largest of the four branches over all thresholds inside the clip: (epsilon, branch, FPR, TPR).

    m1 and m2 are largest at an upper-left corner of the curve, m3 and m4 at a lower-right one. Where the curve enters
    or leaves the square between corners, the last threshold inside is a member's own loss: those few are added.
    """
    edges = _crossings(losses, clip)
    upper_left = _inside(counts.fp_below / counts.n_nonmember, counts.tp_below / counts.n_member, clip)
    lower_right = _inside(counts.fp_upto / counts.n_nonmember, counts.tp_upto / counts.n_member, clip)
    extra = _inside(*edges, clip)
    for fpr, tpr in (upper_left, lower_right):
        extra = (
            np.append(extra[0], fpr[[0, -1]] if fpr.size else []),
            np.append(extra[1], tpr[[0, -1]] if tpr.size else []),
        )
    found = [_best_of(*upper_left, delta, ("m1", "m2")), _best_of(*lower_right, delta, ("m3", "m4"))]
    found.append(_best_of(*extra, delta, ("m1", "m2", "m3", "m4")))
    return max((item for item in found if item is not None), key=lambda item: item[0], default=None)


def _inside(fpr: Floats, tpr: Floats, clip: float) -> tuple[Floats, Floats]:
    inside = (fpr > clip) & (fpr < 1 - clip) & (tpr > clip) & (tpr < 1 - clip)
    return fpr[inside], tpr[inside]


def _crossings(losses: Losses, clip: float) -> tuple[Floats, Floats]:
    """Rates at the members' own losses next to TPR = clip and TPR = 1 - clip, where no corner need be."""
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([math.floor(clip * member.size), math.ceil((1 - clip) * member.size) - 2])
    values = member[np.clip(ends, 0, member.size - 1)]
    before = member[np.maximum(np.searchsorted(member, values, side="left") - 1, 0)]
    after = member[np.minimum(np.searchsorted(member, values, side="right"), member.size - 1)]
    thresholds = np.concatenate([before, values, after])
    tp = np.searchsorted(member, thresholds, side="right")
    return np.searchsorted(nonmember, thresholds, side="right") / nonmember.size, tp / member.size


def _best_of(
    fpr: Floats, tpr: Floats, delta: float, names: tuple[str, ...]
) -> tuple[float, str, float, float] | None:
    if fpr.size == 0:
        return None
    ratios = {
        "m1": lambda: (tpr - delta) / fpr,
        "m2": lambda: (1 - fpr - delta) / (1 - tpr),
        "m3": lambda: (1 - tpr - delta) / (1 - fpr),
        "m4": lambda: (fpr - delta) / tpr,
    }
    best: tuple[float, str, float, float] | None = None
    for name in names:
        ratio = ratios[name]()
        at = int(np.argmax(ratio))
        epsilon = math.log(ratio[at]) if ratio[at] > 0 else -math.inf
        if best is None or epsilon > best[0]:
            best = (epsilon, name, float(fpr[at]), float(tpr[at]))
    return best
