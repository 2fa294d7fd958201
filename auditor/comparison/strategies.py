"""Strategies in the privacy-utility plane: each is the average over its instances, with their range.

Negoescu et al. 2024, Figures 1 and 2. The averages are point estimates, and the ranges are no confidence intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from auditor.comparison import runs as audited
from auditor.comparison.runs import COMPARED, Measurement, Scale, higher_is_better, leakage
from auditor.core import InputError, as_stated, distinct, entries, number, rounded
from auditor.results.metrics import metric

if TYPE_CHECKING:
    from auditor.comparison.runs import Run


# --- The Pareto frontier of strategies in the plane of utility and privacy loss ---
#
# Negoescu et al. 2024, Section 4.2: no convex combination of other strategies has a higher utility or a higher privacy.
# Taken exactly: strategy i is off the frontier if there are weights w >= 0 that sum to 1 with
#
#     sum_j w_j u_j >= u_i   and   sum_j w_j l_j <= l_i,   one of them strictly
#
# A combination is what one gets, on average, by a coin between strategies. A strategy on the straight line between two
# corners is on the frontier. Everything is decided on the numbers as they are, without rounding.


def is_on_frontier(utility: Sequence[float], *, privacy_loss: Sequence[float]) -> tuple[bool, ...]:
    """Return the strategies on the frontier: its corners, strategies at the same place, and strategies between two.

    Args:
        utility: Shape (n,), finite, more is better.
        privacy_loss: Shape (n,), finite, less is better.

    >>> is_on_frontier([1.0, 2.0, 3.0, 2.0], privacy_loss=[1.0, 2.0, 3.0, 3.0])
    (True, True, True, False)
    """
    points = [(Fraction(u), Fraction(loss)) for u, loss in zip(utility, privacy_loss, strict=True)]
    chain: list[_Point] = []
    # Cheapest first; of equally cheap ones only the most useful rises above what came before.
    for point in sorted(set(points), key=lambda item: (item[1], -item[0])):
        if chain and point[0] <= chain[-1][0]:
            continue
        while len(chain) > 1 and _is_below(chain[-2], chain[-1], point):
            chain.pop()
        chain.append(point)
    return tuple(point in chain for point in points)


_Point = tuple[Fraction, Fraction]


def _is_below(first: _Point, middle: _Point, last: _Point) -> bool:
    """Return whether the middle lies below the straight line: the utility grows faster after it than before it."""
    return (last[0] - middle[0]) * (middle[1] - first[1]) > (middle[0] - first[0]) * (last[1] - middle[1])


_TEXTS = entries("auditor.comparison", "texts.toml")
MIXED = "mixed scales"  # a mark
_CLAIMED, _UNCLAIMED = "Audited with a claim", "Audited without a claim"


@dataclass(frozen=True)
class Spread:
    """A quantity over the instances of a strategy: their mean, which is a point estimate, and their range.

    Of lower bounds the mean is no bound of anything.
    """

    mean: float
    least: float
    most: float


@dataclass(frozen=True)
class Strategy:
    """One way of training, averaged over the models that it gave.

    Attributes:
        number: Its place, from 1, in the order in which the results name them.
        name: Declared name, or the name of its only model.
        category: Declared category, or whether its audits judged a claim.
        runs: Numbers of the results that the averages are over.
        audits: Number of results supplied.
        measure: The measure over the instances, or None if none can be used.
        utility: Their utility, or None if no instance has one.
        on_frontier: Whether it is on the Pareto frontier.
        ceiling: For lower bounds, the largest that each audit could have certified; None for other measures.
        marks: Warnings about comparing it with the others.
        lower: No model of the strategy lies below it: the least lower end of their intervals, which hold at once for all
            strategies; None if one of them has no interval.
        upper: No model of the strategy lies above it.
        confidence: Confidence level with which all those intervals hold, or None.
    """

    number: int
    name: str
    category: str
    runs: tuple[int, ...]
    audits: int
    measure: Spread | None
    utility: Spread | None
    on_frontier: bool = False
    ceiling: Spread | None = None
    marks: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None
    confidence: float | None = None

    def above(self, other: "Strategy") -> bool:
        """Return whether every model of it is shown to have a larger value than every model of the other."""
        return self.lower is not None and other.upper is not None and self.lower > other.upper

    @property
    def placed(self) -> bool:
        """Whether it has a place in the plane."""
        return self.measure is not None and self.utility is not None


def strategies(measurements: Sequence[Measurement], *, utilities: bool = True) -> tuple[Strategy, ...]:
    """Return the strategies in the order of their first result, none of them ranked.

    Results that take no part (see `Measurement.reason`) count in ``audits`` only. An audit without a strategy stands for
    itself. Values on several scales have no mean.

    Args:
        measurements: From `measured`.
        utilities: Whether the utilities are of one name and direction, so that they have averages.

    Raises:
        InputError: A strategy in two categories, or audits of the same losses as two instances of one strategy.
    """
    groups: dict[tuple[str, object], list[Measurement]] = {}
    for item in measurements:
        key = ("own", item.run.number) if item.run.strategy is None else ("given", item.run.strategy)
        groups.setdefault(key, []).append(item)
    return tuple(
        _strategy(place, group, utilities=utilities) for place, group in enumerate(groups.values(), start=1)
    )


def _strategy(place: int, group: Sequence[Measurement], *, utilities: bool) -> Strategy:
    _refuse_twins(group)
    first = group[0].run
    spread = partial(_spread, is_public=audited.is_public(first.result.data))
    used = [item for item in group if item.reason is None]
    with_utility = [item for item in used if utilities and item.run.utility is not None]
    taken = with_utility or used  # where some have a utility, both averages are over the same models
    useful = [item.run.utility.value for item in with_utility if item.run.utility is not None]
    mixed = len({item.scale for item in taken}) > 1
    ends = [item.ends for item in taken if item.ends is not None]
    options = bool(ends) and len(ends) == len(taken) and not mixed
    marks = dict.fromkeys(mark for item in taken for mark in (*item.marks, *([MIXED] if mixed else [])))
    return Strategy(
        number=place,
        name=first.strategy or first.title,
        category=_category(group),
        runs=tuple(item.run.number for item in taken),
        audits=len(group),
        measure=None if mixed else spread([item.value for item in taken]),
        utility=spread(useful),
        ceiling=spread([item.ceiling for item in taken]),
        marks=tuple(marks),
        lower=min(low for low, _ in ends) if options else None,
        upper=max(high for _, high in ends) if options else None,
        confidence=taken[0].confidence if options else None,
    )


def _spread(numbers: Sequence[float | None], *, is_public: bool = False) -> Spread | None:
    values = [value for value in numbers if value is not None]
    if not values:
        return None
    # Halved first, so that two of the largest doubles have a mean; and never beyond the ends by rounding.
    mean = math.fsum(value / len(values) for value in values)
    mean = rounded(mean, toward="nearest") if is_public else mean
    return Spread(min(max(mean, min(values)), max(values)), min(values), max(values))


def _category(group: Sequence[Measurement]) -> str:
    stated = list(dict.fromkeys(item.run.category for item in group if item.run.category is not None))
    if len(stated) > 1:
        raise InputError(
            f"strategy {group[0].run.strategy!r} must be of one category, got {stated[0]!r} and {stated[1]!r}; give one, or"
            " name two strategies."
        )
    claimed = all(item.run.result.data.get("claim") is not None for item in group)
    return stated[0] if stated else (_CLAIMED if claimed else _UNCLAIMED)


def _refuse_twins(group: Sequence[Measurement]) -> None:
    by_hash: dict[str, Run] = {}
    for run in (item.run for item in group):
        other = by_hash.setdefault(run.sha256, run) if run.sha256 else run
        if other is not run:
            raise InputError(
                f"results {other.number} and {run.number} of strategy {run.strategy!r} are audits of the same losses, so they"
                " are one instance; give one of them."
            )


# --- Strategies worth choosing among ---


def ranked(
    every: Sequence[Strategy], measurements: Sequence[Measurement], *, measure: str
) -> tuple[Strategy, ...]:
    """Return the strategies with those on the Pareto frontier marked; the values must be on one scale.

    Args:
        every: From `strategies`.
        measurements: Measurements of the strategies.
        measure: Name of the estimate.
    """
    sign = 1.0 if higher_is_better(item.run for item in measurements) else -1.0
    points = {
        item.number: (sign * item.utility.mean, leakage(item.measure.mean, measure=measure))
        for item in every
        if item.utility is not None and item.measure is not None
    }
    utility, loss = zip(*points.values(), strict=True) if points else ((), ())
    on = dict(zip(points, is_on_frontier(utility, privacy_loss=loss), strict=True))
    return tuple(replace(item, on_frontier=on.get(item.number, False)) for item in every)


def why_no_order(
    every: Sequence[Strategy], measurements: Sequence[Measurement], *, measure: str
) -> str | None:
    """Return why the strategies cannot be put in an order by their intervals, or None if they can.

    Args:
        every: From `strategies`.
        measurements: Measurements of the strategies.
        measure: Name of the estimate.
    """
    used = [item for item in every if item.runs]
    if len(used) < 2:  # noqa: PLR2004
        return "fewer than two of them have a usable value"
    if (unlike := why_not_ranked(used, measurements, measure=measure)) is not None:
        return unlike
    if measure not in COMPARED:
        return "these are point estimates, which no interval sets apart"
    options = any(item.lower is not None for item in used)
    return None if options else "no result keeps an interval that holds"


def why_not_ranked(
    used: Sequence[Strategy], measurements: Sequence[Measurement], *, measure: str
) -> str | None:
    """Return why the values of these strategies are not on one scale, or None if they are.

    Args:
        used: Some of `strategies`.
        measurements: Measurements of the strategies.
        measure: Name of the estimate.
    """
    numbers = {number for item in used for number in item.runs}
    taken = [item for item in measurements if item.run.number in numbers]
    if not metric(measure).lower_bound:
        return _several_scales([item.scale for item in taken])
    tops, span = "", _spread([item.ceiling for item in taken])
    if span is not None:
        low, high = (number(end, toward="down") for end in (span.least, span.most))
        tops = f" with a ceiling of {low}" if low == high else f" with ceilings from {low} to {high}"
    return str(_TEXTS["bounds"]["unranked"]).format(tops=tops)


def _several_scales(scales: Sequence[Scale]) -> str | None:
    for field, words in _TEXTS["scales"].items():
        values = sorted({str(getattr(item, field) or "none stated") for item in scales})
        if len(values) > 1:
            return str(words).format(*values, every=" and ".join(values))
    deltas = sorted({item.delta for item in scales}, key=lambda delta: -1.0 if delta is None else delta)
    if len(deltas) < 2:  # noqa: PLR2004
        return None
    low, high = (
        ("none", as_stated(deltas[-1])) if deltas[0] is None else distinct(deltas[0], deltas[-1] or 0.0)
    )
    span = f"{low} {'and' if len(deltas) == 2 else 'to'} {high}"  # noqa: PLR2004
    return f"the values are stated at different deltas ({span}), which are not on one scale; audit again at one delta"
