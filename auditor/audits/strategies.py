"""Strategies in the privacy-utility plane: each is the average over its instances, with their range.

Negoescu et al. 2024, Figures 1 and 2. The averages are point estimates, and the ranges are no confidence intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from auditor._format import distinct, given, number
from auditor.audits.readings import Reading, Scale, is_lower_bound, leakage
from auditor.errors import InputError

if TYPE_CHECKING:
    from auditor.audits.runs import Run

__all__ = ["MIXED", "Spread", "Strategy", "ranked", "strategies", "why_not_ranked"]

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
        name: As given, or the name of its only model.
        category: As given, or whether its audits were given a claim to judge.
        runs: Numbers of the results that the averages are over.
        given: How many results were given.
        measure: The measure over the instances, or null where none can be used.
        utility: Their utility, or null where no instance has one.
        on_frontier: Whether it is on the Pareto frontier.
        ceiling: Of lower bounds, the largest that each audit could have certified; null for other measures.
        marks: What a reader must know before comparing it with the others.
    """

    number: int
    name: str
    category: str
    runs: tuple[int, ...]
    given: int
    measure: Spread | None
    utility: Spread | None
    on_frontier: bool = False
    ceiling: Spread | None = None
    marks: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether it has a place in the plane."""
        return self.measure is not None and self.utility is not None


def strategies(readings: Sequence[Reading], *, utilities: bool = True) -> tuple[Strategy, ...]:
    """Return the strategies in the order of their first result, none of them ranked.

    Results that take no part (see `Reading.reason`) count in ``given`` only. An audit without a strategy stands for
    itself. Values on several scales have no mean.

    Args:
        readings: From `read`.
        utilities: Whether the utilities are of one name and direction, so that they have averages.

    Raises:
        InputError: A strategy in two categories, or audits of the same losses as two instances of one strategy.
    """
    groups: dict[tuple[str, object], list[Reading]] = {}
    for item in readings:
        key = ("own", item.run.number) if item.run.strategy is None else ("given", item.run.strategy)
        groups.setdefault(key, []).append(item)
    return tuple(
        _strategy(place, group, utilities=utilities) for place, group in enumerate(groups.values(), start=1)
    )


def _strategy(place: int, group: Sequence[Reading], *, utilities: bool) -> Strategy:
    _refuse_twins(group)
    first = group[0].run
    used = [item for item in group if item.reason is None]
    with_utility = [item for item in used if utilities and item.run.utility is not None]
    taken = with_utility or used  # where some have a utility, both averages are over the same models
    useful = [item.run.utility.value for item in with_utility if item.run.utility is not None]
    mixed = len({item.scale for item in taken}) > 1
    marks = dict.fromkeys(mark for item in taken for mark in (*item.marks, *([MIXED] if mixed else [])))
    return Strategy(
        number=place,
        name=first.strategy or first.title,
        category=_category(group),
        runs=tuple(item.run.number for item in taken),
        given=len(group),
        measure=None if mixed else _spread([item.value for item in taken]),
        utility=_spread(useful),
        ceiling=_spread([item.ceiling for item in taken]),
        marks=tuple(marks),
    )


def _spread(found: Sequence[float | None]) -> Spread | None:
    values = [value for value in found if value is not None]
    if not values:
        return None
    # Halved first, so that two of the largest doubles have a mean; and never beyond the ends by rounding.
    mean = math.fsum(value / len(values) for value in values)
    return Spread(min(max(mean, min(values)), max(values)), min(values), max(values))


def _category(group: Sequence[Reading]) -> str:
    stated = list(dict.fromkeys(item.run.category for item in group if item.run.category is not None))
    if len(stated) > 1:
        raise InputError(
            f"strategy {group[0].run.strategy!r} must be of one category, got {stated[0]!r} and {stated[1]!r}; give one, or"
            " name two strategies."
        )
    claimed = all(item.run.result.data.get("claim") is not None for item in group)
    return stated[0] if stated else (_CLAIMED if claimed else _UNCLAIMED)


def _refuse_twins(group: Sequence[Reading]) -> None:
    seen: dict[str, Run] = {}
    for run in (item.run for item in group):
        other = seen.setdefault(run.sha256, run) if run.sha256 else run
        if other is not run:
            raise InputError(
                f"results {other.number} and {run.number} of strategy {run.strategy!r} are audits of the same losses, so they"
                " are one instance; give one of them."
            )


# --- Which of them are worth choosing among ---------------------------------------------------------


def ranked(found: Sequence[Strategy], readings: Sequence[Reading], *, measure: str) -> tuple[Strategy, ...]:
    """Return the strategies with those on the Pareto frontier marked; the values must be on one scale.

    Args:
        found: From `strategies`.
        readings: What they were made of.
        measure: Which estimate.
    """
    from auditor.audits.frontier import is_on_frontier

    placed = [item for item in found if item.measure is not None and item.utility is not None]
    if not placed:
        return tuple(found)
    sign = 1.0 if _higher_is_better(readings) else -1.0
    utility = [sign * item.utility.mean for item in placed if item.utility is not None]
    loss = [leakage(item.measure.mean, measure=measure) for item in placed if item.measure is not None]
    on = is_on_frontier(utility, privacy_loss=loss)
    numbers = {item.number for item, yes in zip(placed, on, strict=True) if yes}
    return tuple(replace(item, on_frontier=item.number in numbers) for item in found)


def _higher_is_better(readings: Sequence[Reading]) -> bool:
    return next(
        (item.run.utility.higher_is_better for item in readings if item.run.utility is not None), True
    )


def why_not_ranked(found: Sequence[Strategy], readings: Sequence[Reading], *, measure: str) -> str | None:
    """Return why the values of the strategies cannot be put in an order of leakage, or null where they can.

    Args:
        found: From `strategies`.
        readings: What they were made of.
        measure: Which estimate.
    """
    used = {number for item in found if item.placed for number in item.runs}
    placed = [item for item in readings if item.run.number in used]
    if is_lower_bound(measure):
        return (
            f"these are lower bounds{_ceilings(placed)}, and the truth may lie anywhere above each, so the lowest bound"
            " is not the lowest leakage"
        )
    return _several_scales([item.scale for item in placed])


def _ceilings(placed: Sequence[Reading]) -> str:
    span = _spread([item.ceiling for item in placed])
    if span is None:
        return ""
    low, high = (number(end, toward="down") for end in (span.least, span.most))
    return f" with a ceiling of {low}" if low == high else f" with ceilings from {low} to {high}"


def _several_scales(scales: Sequence[Scale]) -> str | None:
    units = sorted({item.unit for item in scales})
    if len(units) > 1:
        return (
            f"some audits count by {units[1]} and others by {units[0]}, so their numbers are not on one scale"
        )
    adjacencies = sorted({str(item.adjacency or "none stated") for item in scales})
    if len(adjacencies) > 1:
        return f"the values are about different adjacencies ({' and '.join(adjacencies)}), which are not on one scale"
    deltas = sorted({item.delta for item in scales}, key=lambda delta: -1.0 if delta is None else delta)
    if len(deltas) < 2:  # noqa: PLR2004
        return None
    low, high = ("none", given(deltas[-1])) if deltas[0] is None else distinct(deltas[0], deltas[-1] or 0.0)
    span = f"{low} {'and' if len(deltas) == 2 else 'to'} {high}"  # noqa: PLR2004
    return f"the values are stated at different deltas ({span}), which are not on one scale; audit again at one delta"
