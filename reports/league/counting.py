"""Numbers above the truth: rates with exact intervals, and counts by law."""

from collections.abc import Sequence
from typing import Any

from scipy import stats


def interval(count: int, draws: int) -> tuple[float, float]:
    """Return the exact 95% interval of a rate."""
    if draws == 0:
        return 0.0, 1.0
    low, high = stats.binomtest(count, draws).proportion_ci(method="exact")
    return float(low), float(high)


def by_law(rows: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Return the numbers above the truth and all numbers, at all sizes, for each law; the largest rate comes first."""
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        above, draws = counts.get(row.law, (0, 0))
        counts[row.law] = above + row.above, draws + row.draws
    numbers = {law: pair for law, pair in counts.items() if pair[1]}
    return dict(sorted(numbers.items(), key=lambda item: -item[1][0] / item[1][1]))
