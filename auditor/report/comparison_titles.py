"""What the measure and the utility of a comparison are called."""

from typing import TYPE_CHECKING

from auditor.report import labels

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison

__all__ = ["higher_is_better", "measure_title", "utility_title"]


def higher_is_better(comparison: "AuditsComparison") -> bool:
    """Whether a larger utility is a better model."""
    return next((run.utility.higher_is_better for run in comparison.runs if run.utility is not None), True)


def measure_title(comparison: "AuditsComparison") -> str:
    """Return what the measure is called."""
    found = next((item.estimate for item in comparison.readings if item.estimate is not None), None)
    return comparison.measure if found is None else labels.describe(found).title


def utility_title(comparison: "AuditsComparison") -> str:
    """Return what the utility is called."""
    return next((run.utility.name for run in comparison.runs if run.utility is not None), "utility")
