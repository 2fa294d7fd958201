"""Shared view of a result: numbers with three digits, rounded counts, and no view of fewer than ten records."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from auditor.core import Disclosure, Estimate, rounded
from auditor.curves.cells import LEAST, STEP, Partition
from auditor.results import document

_Document = TypeVar("_Document", bound=document.Document)

# Views of single records, or of few: `Partition` has the views that are shared.
# In units of the loss: shown as the nearest cut of the partition, or not at all.
_LOSSES = frozenset({"threshold", "threshold_below", "threshold_above"})
# Counts of records, each with the key of the number that it is of.
_COUNTS = {
    "true_positives": "members",
    "false_negatives": "members",
    "false_positives": "nonmembers",
    "true_negatives": "nonmembers",
    "correct": "guesses",
    "inside": "guesses",
    "rank": "",
    "false_positives_at_most": "",
    "false_negatives_at_most": "",
}
# Counts of what should not be there: 10 stands for 1 to 10.
_FEW = re.compile(
    r"across|within_(non)?members|without_id|contents_in_both|nonmembers_with_twin|repeated_content_(non)?members"
    r"|in_both|unlabelled|left_out|saturated|records_alone|copies|near|extractable"
)
# What would give such a count away; components of a mixture, which may be of few records; and the moments on the scale of the
# published transform, from which the smallest and the largest loss would follow; and numbers about one rank or one model.
_LEFT_OUT = re.compile(
    r"nonmembers_with_twin_share|contents_in_both_expected|(more|fewer)_than_chance_p_value|inclusion_range|weights|means"
    r"|sds?|skew|kurtosis|distinct|attack|error_rate|mean_hit_rate|smallest|median"
)
# Of a fit, of right and wrong answers, and of several models: the first is left out beside the second.
_LEFT_OUT_BESIDE = {"mean": "sd", "accuracy": "accuracy_baseline", "largest": "median"}
# Chosen, not measured: they stay as they are.
_CHOSEN = re.compile(r"rate|delta|alpha|level.*|confidence.*|inclusion|clip|off|share|overlap|prior|claimed")
_DOWN = re.compile(r"(.*_)?lower|certified|shown|hits|e_value|reversed|mu|bound_.*|(.*_)?ceiling")
_UP = re.compile(r"(.*_)?upper|ceiling_of_score|largest|errors|variances|(.*_)?p_value|(.*_)?p_values")


def shared_rows(rows: tuple[Estimate, ...], partition: Partition | None = None) -> tuple[Estimate, ...]:
    """Return estimates as a shared result has them: three significant digits, limits rounded outward, counts to 5.

    Args:
        rows: Rows of one audit.
        partition: Partition of its losses; without one no threshold is kept.

    >>> from auditor.core.values import Subject
    >>> row = Estimate("auc", 0.61234, 0.58799, 0.63551, 0.95, "by hand", Subject.MODEL)
    >>> [getattr(shared_rows((row,))[0], name) for name in ("value", "lower", "upper")]
    [0.612, 0.587, 0.636]
    """
    return tuple(_row(row, partition) for row in rows)


def _row(row: Estimate, partition: Partition | None) -> Estimate:
    return replace(
        row,
        value=_between(row.value, row.lower, row.upper),
        lower=_number(row.lower, "down"),
        upper=_number(row.upper, "up"),
        details=_details(row.details, partition),
    )


def _between(value: float | None, lower: float | None, upper: float | None) -> float | None:
    """Return a value rounded as the end of its interval that it is, or else to the nearest."""
    return _number(value, "down" if value == lower else "up" if value == upper else "nearest")


def shared(result: _Document, partition: Partition | None = None) -> _Document:
    """Return a result as it may be shared; one that is shared already comes back the same.

    Args:
        result: Result of any kind; the promise of a training run is no data of anyone and stays unchanged.
        partition: Partition of the losses; without one nothing is kept that shows how they are spread.
    """
    if isinstance(result, document.ClaimResult | document.RunsResult):
        return result
    declared = {name: result.data[name] for name in ("utility", "context") if name in result.data}
    changed: dict[str, Any] = {
        "data": {**_details(result.data, partition), **declared, "disclosure": str(Disclosure.PUBLIC)},
        "estimates": shared_rows(result.estimates, partition),
        "checks": tuple(replace(item, details=_details(item.details, partition)) for item in result.checks),
        "comparisons": tuple(
            replace(item, p_value=_number(item.p_value, "up"), e_value=_number(item.e_value, "down"))
            for item in result.comparisons
        ),
    }
    if isinstance(result, document.AuditResult):
        slices = (replace(item, estimates=shared_rows(item.estimates)) for item in result.slices)
        changed["slices"] = tuple(slices)
        changed["policies"] = tuple(
            replace(
                item,
                estimates=shared_rows(item.estimates),
                at_least={name: rounded(limit, toward="down") for name, limit in item.at_least.items()},
            )
            for item in result.policies
        )
    return replace(result, **changed)


def _details(details: Mapping[str, Any], partition: Partition | None) -> dict[str, Any]:
    hidden = {key for key, other in _LEFT_OUT_BESIDE.items() if other in details}
    visible = (key for key in details if key not in hidden and not _LEFT_OUT.fullmatch(key))
    result = {key: _detail(key, details[key], details, partition) for key in visible}
    if "value" in result and {"lower", "upper"} & result.keys():  # of another row
        result["value"] = _between(details["value"], details.get("lower"), details.get("upper"))
    return result


def _detail(key: str, value: Any, beside: Mapping[str, Any], partition: Partition | None) -> Any:
    if isinstance(value, Mapping):
        if key == "limits":  # lower ones of advantage and AUC, which share the error of a headline
            return {name: _number(item, "down") for name, item in value.items()}
        return _details(value, partition)
    if isinstance(value, list | tuple):
        if "overlap" in beside and key in ("members", "others"):
            return _bars(value)
        if "variances" in beside and key in ("least", "largest"):  # of one record each
            return [float(key == "largest")] * len(value)
        return [_detail(key, item, beside, partition) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _measured(key, value, beside, partition) if is_number else value


def _measured(key: str, value: float, beside: Mapping[str, Any], partition: Partition | None) -> float | None:
    if key in _LOSSES and beside.get("rule") != "FixedThreshold":
        return None if partition is None or "fnr" in beside else partition.nearest(value)
    if (_FEW.fullmatch(key) and value) or (key == "largest" and isinstance(value, int) and value > 1):
        return max(LEAST, STEP * math.ceil(value / STEP))
    if key in _COUNTS:
        most: float = beside.get(_COUNTS[key], math.inf)
        return None if most < LEAST else min(max(STEP * round(value / STEP), STEP * (value > 0)), most)
    if key in ("members", "nonmembers") and "most_different" in beside:  # those left without copies
        return STEP * (value // STEP)
    if isinstance(value, int) or _CHOSEN.fullmatch(key):
        return value
    return _number(value, "down" if _DOWN.fullmatch(key) else "up" if _UP.fullmatch(key) else "nearest")


def _bars(counts: Sequence[int]) -> list[int]:
    """Return the bars of a histogram, each with 0 or at least 10 records: fewer are counted in the next bar."""
    result, waiting = [], 0
    for count in counts:
        waiting += count
        result.append(STEP * round(waiting / STEP) if waiting >= LEAST else 0)
        waiting = 0 if result[-1] else waiting
    return result


def _number(value: float | None, toward: str) -> float | None:
    return value if value is None else rounded(value, toward=toward)
