"""Strategies in the privacy-utility plane: each is the average over its instances, with their range.

Negoescu et al. 2024, Figures 1 and 2. The averages are point estimates, and the ranges are no confidence intervals.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from auditor._format import given
from auditor.audits.runs import Run
from auditor.compare import failed_validity
from auditor.errors import InputError
from auditor.report.lookup import dig, find
from auditor.values import Estimate

__all__ = ["REJECTED", "Reading", "Spread", "Strategy", "leakage", "more_is_worse", "read", "strategies"]

# The measures of which a larger value means that less is given away.
_MORE_IS_BETTER = frozenset({"bayes_security"})
REJECTED = "fit rejected"  # a mark
_CLAIMED, _UNCLAIMED = "Audited with a claim", "Audited without a claim"


@dataclass(frozen=True)
class Spread:
    """A quantity over the instances of a strategy: their mean, which is a point estimate, and their range."""

    mean: float
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Reading:
    """What one audit says of the measure.

    Attributes:
        run: The audit.
        estimate: Of the measure, or null where the audit has none.
        reason: Why the audit takes no part in the landscape and its frontier, or null.
        marks: What a reader must know before comparing the value with the others.
    """

    run: Run
    estimate: Estimate | None
    reason: str | None
    marks: tuple[str, ...]

    @property
    def value(self) -> float | None:
        """The value of the measure, or null."""
        return None if self.estimate is None else self.estimate.value


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
    marks: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether it has a place in the plane."""
        return self.measure is not None and self.utility is not None


def more_is_worse(measure: str) -> bool:
    """Whether a larger value of the measure means that more is given away.

    >>> more_is_worse("epsilon_star.gaussian"), more_is_worse("bayes_security")
    (True, False)
    """
    return measure not in _MORE_IS_BETTER


def leakage(value: float, *, measure: str) -> float:
    """Return the measure as a number that grows with what is given away, for the frontier."""
    return value if more_is_worse(measure) else -value


def read(runs: Sequence[Run], *, measure: str) -> tuple[Reading, ...]:
    """Return what each audit says of the measure."""
    estimates = [find(run.result, measure) for run in runs]
    usual = _usual([item.delta for item in estimates if item is not None and item.value is not None])
    unit = _usual([_unit(run) for run in runs])
    return tuple(
        Reading(run, item, _reason(run, item), _marks(run, item, usual=usual, unit=unit))
        for run, item in zip(runs, estimates, strict=True)
    )


def _usual(values: Sequence[object]) -> object:
    counted = Counter(values).most_common(1)
    return counted[0][0] if counted else None


def _unit(run: Run) -> str:
    return "person" if str(run.result.data.get("unit") or "").startswith("person") else "record"


def _reason(run: Run, estimate: Estimate | None) -> str | None:
    failed = failed_validity(run.result.checks)
    if failed:
        names = ", ".join(check.name.replace("_", " ") for check in failed)
        return f"a validity check failed ({names}), so its numbers do not measure leakage"
    if estimate is None:
        return "the audit has no such number"
    if estimate.value is None:
        return estimate.reason or "the audit could not compute it"
    return None if math.isfinite(estimate.value) else "it is infinite"


def _marks(run: Run, estimate: Estimate | None, *, usual: object, unit: object) -> tuple[str, ...]:
    if estimate is None or estimate.value is None:
        return ()
    found = []
    if dig(estimate.details, "fit", "rejected"):
        found.append(REJECTED)
    if estimate.delta != usual and not _close(estimate.delta, usual):
        found.append(f"delta {given(estimate.delta)}")
    if _unit(run) != unit:
        found.append(f"counted by {_unit(run)}")
    return tuple(found)


def _close(x: object, y: object) -> bool:
    return isinstance(x, float | int) and isinstance(y, float | int) and math.isclose(x, y, rel_tol=1e-9)


def strategies(readings: Sequence[Reading], *, measure: str, utilities: bool = True) -> tuple[Strategy, ...]:
    """Return the strategies in the order of their first result, those on the frontier marked.

    Results that take no part (see `Reading.reason`) count in ``given`` only. An audit without a strategy stands for
    itself.

    Args:
        readings: From `read`.
        measure: Which estimate.
        utilities: Whether the utilities are of one name and direction, so that they have averages and a frontier.

    Raises:
        InputError: A strategy in two categories, or audits of the same losses as two instances of one strategy.
    """
    groups: dict[tuple[str, object], list[Reading]] = {}
    for item in readings:
        key = ("own", item.run.number) if item.run.strategy is None else ("given", item.run.strategy)
        groups.setdefault(key, []).append(item)
    found = tuple(
        _strategy(place, group, utilities=utilities) for place, group in enumerate(groups.values(), start=1)
    )
    if not utilities:
        return found
    return _with_frontier(found, higher_is_better=_higher_is_better(readings), measure=measure)


def _strategy(place: int, group: Sequence[Reading], *, utilities: bool) -> Strategy:
    _refuse_twins(group)
    first = group[0].run
    used = [item for item in group if item.reason is None]
    with_utility = [item for item in used if utilities and item.run.utility is not None]
    taken = with_utility or used  # where some have a utility, both averages are over the same models
    values = [item.value for item in taken if item.value is not None]
    useful = [item.run.utility.value for item in with_utility if item.run.utility is not None]
    marks = dict.fromkeys(mark for item in taken for mark in item.marks)
    return Strategy(
        number=place,
        name=first.strategy or first.title,
        category=_category(group),
        runs=tuple(item.run.number for item in taken),
        given=len(group),
        measure=_spread(values),
        utility=_spread(useful),
        marks=tuple(marks),
    )


def _spread(values: Sequence[float]) -> Spread | None:
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


def _higher_is_better(readings: Sequence[Reading]) -> bool:
    return next(
        (item.run.utility.higher_is_better for item in readings if item.run.utility is not None), True
    )


def _with_frontier(
    found: tuple[Strategy, ...], *, higher_is_better: bool, measure: str
) -> tuple[Strategy, ...]:
    from auditor.audits.frontier import is_on_frontier

    placed = [item for item in found if item.measure is not None and item.utility is not None]
    if not placed:
        return found
    sign = 1.0 if higher_is_better else -1.0
    utility = [sign * item.utility.mean for item in placed if item.utility is not None]
    loss = [leakage(item.measure.mean, measure=measure) for item in placed if item.measure is not None]
    on = is_on_frontier(utility, privacy_loss=loss)
    numbers = {item.number for item, yes in zip(placed, on, strict=True) if yes}
    return tuple(replace(item, on_frontier=item.number in numbers) for item in found)
