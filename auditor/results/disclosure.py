"""What of a result may be shared: numbers with three digits and rounded counts, and no view of fewer than ten records."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from auditor.core.numbers import rounded
from auditor.core.options import Disclosure
from auditor.core.values import Estimate
from auditor.results import document
from auditor.results.partition import LEAST, STEP, Partition

_Document = TypeVar("_Document", bound=document.Document)

# Views of single records, or of few: `Partition` has the views that are shared.
_FINE_CURVES = re.compile(r"empirical|band_.*|ranks\..*")
# In units of the loss: shown as the nearest cut of the partition, or not at all.
_LOSSES = frozenset({"threshold", "threshold_below", "threshold_above"})
# Counts of records, each with the key of the number that it is of.
_COUNTS = {
    "true_positives": "members",
    "false_negatives": "members",
    "false_positives": "nonmembers",
    "true_negatives": "nonmembers",
    "correct": "guesses",
    "inside": "",
    "distinct": "",
}
# Counts of what should not be there: 10 stands for 1 to 10.
_FEW = frozenset(
    [
        "across",
        "within_members",
        "within_nonmembers",
        "without_id",
        "contents_in_both",
        "nonmembers_with_twin",
        "repeated_content_members",
        "repeated_content_nonmembers",
        "in_both",
        "unlabelled",
        "left_out",
        "saturated",
        "records_alone",
    ]
)
# What would give such a count away, and components of a mixture, which may be of few records.
_LEFT_OUT = frozenset({"nonmembers_with_twin_share", "contents_in_both_expected", "weights", "means", "sds"})
# Chosen, not measured: they stay as they are.
_CHOSEN = re.compile(r"rate|delta|alpha|level.*|confidence.*|inclusion|clip|off|share|overlap|prior|claimed")
_DOWN = re.compile(r"(.*_)?lower|least|hits|tpr_lower|tnr_lower|e_value|reversed")
_UP = re.compile(r"(.*_)?upper|largest|errors|variances|(.*_)?p_value|(.*_)?p_values")


def shared_rows(rows: tuple[Estimate, ...], partition: Partition | None = None) -> tuple[Estimate, ...]:
    """Return estimates as a shared result has them: three significant digits, limits rounded outward, counts to 5.

    Args:
        rows: Of one audit.
        partition: Of its losses; without one no threshold is kept.

    >>> from auditor.core.values import Subject
    >>> row = Estimate("auc", 0.61234, 0.58799, 0.63551, 0.95, "by hand", Subject.MODEL)
    >>> [getattr(shared_rows((row,))[0], name) for name in ("value", "lower", "upper")]
    [0.612, 0.587, 0.636]
    """
    return tuple(_row(row, partition) for row in rows)


def _row(row: Estimate, partition: Partition | None) -> Estimate:
    lower, upper = _number(row.lower, "down"), _number(row.upper, "up")
    ends = {row.lower: lower, row.upper: upper}
    value = ends.get(row.value, _number(row.value, "nearest"))
    return replace(row, value=value, lower=lower, upper=upper, details=_details(row.details, partition))


def shared(result: _Document, partition: Partition | None = None) -> _Document:
    """Return a result as it may be shared; one that is shared already comes back the same.

    Args:
        result: Of any kind; what a training promises is no data of anyone and stays as it is.
        partition: Of the losses; without one nothing is kept that shows how they are spread.
    """
    if isinstance(result, document.ClaimDocument | document.RunsDocument):
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
    if isinstance(result, document.AuditDocument):
        changed["slices"] = tuple(
            replace(item, estimates=shared_rows(item.estimates)) for item in result.slices
        )
        changed["policies"] = tuple(
            replace(
                item,
                estimates=shared_rows(item.estimates),
                at_least={name: rounded(limit, toward="down") for name, limit in item.at_least.items()},
            )
            for item in result.policies
        )
    return replace(result, **changed)


def as_shared(result: _Document) -> _Document:
    """Return a stored result as it may be shown: one that does not say for whom it is, as of an older release, is shared."""
    if result.data.get("disclosure") in tuple(Disclosure) or not isinstance(
        result, document.AuditDocument | document.InstancesDocument | document.LabelsDocument
    ):
        return result
    kept = tuple(item for item in result.curves if not _FINE_CURVES.fullmatch(item.name))
    less: dict[str, Any] = {"curves": kept}
    if isinstance(result, document.AuditDocument):
        less |= {"histograms": (), "top_records": ()}
        less["slices"] = tuple(
            item for item in result.slices if item.kind is not document.SliceKind.PERCENTILE
        )
    return shared(replace(result, **less))


def _details(details: Mapping[str, Any], partition: Partition | None) -> dict[str, Any]:
    kept = (key for key in details if key not in _LEFT_OUT)
    return {key: _detail(key, details[key], details, partition) for key in kept}


def _detail(key: str, value: Any, beside: Mapping[str, Any], partition: Partition | None) -> Any:
    if isinstance(value, Mapping):
        return _details(value, partition)
    if isinstance(value, list | tuple) and "overlap" in beside and key in ("members", "others"):
        return _bars(value)
    if isinstance(value, list | tuple):
        return [_detail(key, item, beside, partition) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _measured(key, value, beside, partition) if is_number else value


def _measured(key: str, value: float, beside: Mapping[str, Any], partition: Partition | None) -> float | None:
    if key in _LOSSES and "fnr" not in beside and beside.get("rule") != "FixedThreshold":
        return None if partition is None else partition.nearest(value)
    if key in _FEW and value:
        return max(LEAST, STEP * math.ceil(value / STEP))
    if key in _COUNTS:
        count = STEP * round(value / STEP)
        most: float = beside.get(_COUNTS[key], count)
        return min(count, most)
    if isinstance(value, int) or _CHOSEN.fullmatch(key):
        return value
    return _number(value, "down" if _DOWN.fullmatch(key) else "up" if _UP.fullmatch(key) else "nearest")


def _bars(counts: Sequence[int]) -> list[int]:
    """Return the bars of a histogram, each with 0 or at least 10 records: fewer are counted in the next bar."""
    found, waiting = [], 0
    for count in counts:
        waiting += count
        found.append(STEP * round(waiting / STEP) if waiting >= LEAST else 0)
        waiting = 0 if found[-1] else waiting
    return found


def _number(value: float | None, toward: str) -> float | None:
    return value if value is None else rounded(value, toward=toward)
