"""Does the parametric Epsilon* hang on a few records, or on the transform?"""

from auditor._format import number
from auditor.values import Check, Estimate, Status

__all__ = ["sensitivity"]

_LARGEST_MOVE = 0.10
# Moves below this many nats are noise at any realistic number of records.
_NOISE = 0.05
_VARIANTS = {
    "without_extremes": "without the most extreme 0.1% of each group",
    "scale_free": "with the scale-free transform",
}


def sensitivity(star: Estimate) -> Check:
    """Warn when the published value moves by more than 10% without its extreme records or with the other transform."""
    if star.value is None:
        return Check(
            "sensitivity", Status.UNKNOWN, f"There is no parametric Epsilon* to vary: {star.reason}."
        )
    others = {name: star.details[name] for name in _VARIANTS}
    details = {"value": star.value, **others}
    moved = [
        f"{number(other)} {_VARIANTS[name]}" for name, other in others.items() if _moves(star.value, other)
    ]
    if moved:
        message = (
            f"The parametric Epsilon* of {number(star.value)} becomes {' and '.join(moved)}: it hangs on a few records or"
            " on the transform, so do not base a decision on it alone."
        )
        return Check("sensitivity", Status.WARN, message, details)
    message = "The parametric Epsilon* moves by less than 10% without the extreme records and with the other transform."
    return Check("sensitivity", Status.OK, message, details)


def _moves(value: float, other: float) -> bool:
    gap = abs(value - other)
    return gap > _NOISE and gap > _LARGEST_MOVE * max(value, other)
