"""Where one parameter of a training run stops keeping a promise, found with few evaluations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from auditor.choices import DPSGD

__all__ = ["Axis", "boundary"]

# The first step away from the guess, in logs; each further one is twice as long.
_FIRST_STEP = 0.05
_TOLERANCE = 1e-5
_DIGITS = 6


@dataclass(frozen=True)
class Axis:
    """One parameter, with everything else held.

    Attributes:
        name: What it is called.
        make: From a value to the training run.
        upward: Whether larger values protect better.
        whole: Whether values are whole numbers.
        least: Smallest value looked at.
        most: Largest value looked at.
    """

    name: str
    make: Callable[[float], DPSGD]
    upward: bool
    whole: bool
    least: float
    most: float

    def at(self, x: float) -> float:
        """Return the value at a coordinate: a logarithm that grows with protection."""
        value = math.exp(max(-700.0, min(700.0, x if self.upward else -x)))
        return self.safer(min(self.most, max(self.least, value)))

    def coordinate(self, value: float) -> float:
        """Return where a value is."""
        log = math.log(min(self.most, max(self.least, value)))
        return log if self.upward else -log

    def safer(self, value: float) -> float:
        """Return the value with six digits (or whole), rounded to the side that protects better."""
        exact = Decimal(repr(min(self.most, max(self.least, float(value)))))
        unit = Decimal(1) if self.whole else Decimal(1).scaleb(exact.adjusted() - _DIGITS + 1)
        rounded = float(exact.quantize(unit, rounding=ROUND_CEILING if self.upward else ROUND_FLOOR))
        return min(self.most, max(self.least, rounded))

    @property
    def ends(self) -> tuple[float, float]:
        """The coordinates of the least and the most protection."""
        low, high = sorted((self.coordinate(self.least), self.coordinate(self.most)))
        return low, high


def boundary(axis: Axis, excess: Callable[[float], float], *, guess: float) -> float | None:
    """Return the value of least protection at which ``excess`` is not above 0, to about 1e-5 (relatively).

    Args:
        axis: The parameter.
        excess: Falls with protection; every call may take a second.
        guess: A value near the boundary.

    Returns:
        A value that was evaluated and keeps the promise; null where none does.
    """
    from scipy.optimize import brentq

    tried: dict[float, float] = {}

    def at(x: float) -> float:
        value = axis.at(x)
        if value not in tried:
            tried[value] = excess(value)
        return tried[value]

    low, high = _bracket(axis, at, axis.coordinate(guess))
    if at(high) > 0:
        return None
    if at(low) > 0:
        brentq(at, low, high, xtol=_TOLERANCE)
    kept = [value for value, above in tried.items() if above <= 0]
    return min(kept, key=axis.coordinate)


def _bracket(axis: Axis, at: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return two coordinates between which the boundary lies, or twice the end beyond which it does."""
    weakest, strongest = axis.ends
    low = high = start
    step = _FIRST_STEP
    if at(start) > 0:
        while at(high) > 0 and high < strongest:
            low, high = high, min(high + step, strongest)
            step *= 2
        return low, high
    while at(low) <= 0 and low > weakest:
        low, high = max(low - step, weakest), low
        step *= 2
    return low, high
