"""What was fitted and how it was tested, JSON-like, for the details of a parametric row."""

from typing import Any

from auditor.fitters.gaussian import Gaussian
from auditor.values import FittedPair, GoodnessOfFit, KSGrid

__all__ = ["fit_details"]


def fit_details(pair: FittedPair) -> dict[str, Any]:
    """Return both laws, the test that decides, the published test and, where components were chosen, its grid."""
    sides = {
        "member": (pair.member, pair.member_fit, pair.member_grid),
        "nonmember": (pair.nonmember, pair.nonmember_fit, pair.nonmember_grid),
    }
    details: dict[str, Any] = {"rejected": pair.rejected}
    details |= {side: {**_law_details(law), **_test_details(fit)} for side, (law, fit, _) in sides.items()}
    details["paper"] = {
        side: {**_test_details(fit.paper), "rejected": fit.paper.rejected}
        for side, (_, fit, _) in sides.items()
        if fit.paper is not None
    }
    grids = {side: _grid_details(grid) for side, (_, _, grid) in sides.items() if grid is not None}
    return {**details, "grid": grids} if grids else details


def _law_details(law: Any) -> dict[str, Any]:
    moments = {"mean": law.mean, "sd": law.sd}
    if isinstance(law, Gaussian):
        return {**moments, "skew": law.skew, "kurtosis": law.kurtosis}
    columns = {"weights": list(law.weights), "means": list(law.means), "sds": list(law.sds)}
    return {**moments, "components": law.components, **columns}


def _test_details(fit: GoodnessOfFit) -> dict[str, Any]:
    details = {
        "test": fit.test,
        "ks_statistic": fit.statistic,
        "ks_p_value": fit.p_value,
        "ks_n": fit.n,
        "level": fit.level,
    }
    # Where two tests decide together, the p-value above is that of both.
    joined = {"distance_p_value": fit.distance_p_value, "likelihood_p_value": fit.likelihood_p_value}
    return details | {name: p for name, p in joined.items() if p is not None}


def _grid_details(grid: KSGrid) -> dict[str, Any]:
    return {
        "components": list(grid.components),
        "sample_sizes": list(grid.sample_sizes),
        "p_values": [list(row) for row in grid.p_values],
        "choice_p_values": list(grid.choice_p_values),
    }
