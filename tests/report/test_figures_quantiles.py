"""The quantile figure and its band: the limits of an order statistic under the fitted law."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from auditor.curves import Histogram
from auditor.report.figures import alt, figure
from auditor.report.figures.fit import _sides

MEAN, SD, N = 1.4, 0.3, 400


def _levels(n):
    tail = np.geomspace(0.5 / n, 0.5, 50)
    return np.concatenate([tail, 1 - tail[-2::-1]])


def _result(result, sample, *, n=None, confidence=0.95):
    """As an audit keeps them: quantiles at levels dense in the tails, rounded to six digits."""
    n, law = sample.size if n is None else n, stats.norm(MEAN, SD)
    levels = _levels(sample.size)
    at = np.clip(np.round(levels * sample.size - 0.5), 0, sample.size - 1).astype(int)
    columns = {
        "probability": levels,
        "member_observed": np.sort(sample)[at],
        "member_fitted": law.ppf((at + 0.5) / sample.size),
    }
    quantiles = {name: tuple(float(f"{x:.6g}") for x in column) for name, column in columns.items()}
    histogram = Histogram("published transform", (0.0, 1.0), (1,), (1,), None, None, quantiles)
    data = dict(result.data) | {"n_member": n, "n_nonmember": n, "confidence": confidence}
    return replace(result, histograms=(histogram,), data=data), at


@pytest.mark.parametrize("n", [5, 400, 1_000_000])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_band_is_that_of_an_order_statistic(overfitted, n, confidence):
    """The band is the normal quantile of the Beta(k, n + 1 - k) limits, at every kept record and in the far tails."""
    result, at = _result(overfitted, np.linspace(0, 1, n), confidence=confidence)
    side = _sides(result)["member"]
    k, law = at + 1, stats.norm(MEAN, SD)
    spare = (1 - confidence) / 2
    # 1e-3 of a standard deviation: the result keeps six digits.
    np.testing.assert_allclose(side.low, law.ppf(stats.beta.ppf(spare, k, n + 1 - k)), atol=1e-3 * SD)
    np.testing.assert_allclose(side.high, law.ppf(stats.beta.isf(spare, k, n + 1 - k)), atol=1e-3 * SD)


def test_points_outside_are_counted(overfitted):
    """The words count the points outside the band, by the half of the losses in which they lie."""
    sample = stats.norm(MEAN, SD).ppf((np.arange(N) + 0.5) / N)
    result, at = _result(overfitted, sample)
    assert "Members: 0 of 99 points lie outside the band" in alt(result, "quantiles")
    heavy = np.where(np.arange(N) < 3, sample - 5, sample)
    result, _ = _result(overfitted, heavy)
    moved = int((at < 3).sum())
    assert (
        f"Members: {moved} of 99 points lie outside the band, {moved} in the lower half and 0 in the upper half."
        in alt(result, "quantiles")
    )


@pytest.mark.parametrize("n", [None, float("nan"), float("inf"), 2, -5])
def test_no_count_no_band(overfitted, n):
    """Without a number of records there are points and no band."""
    result, _ = _result(overfitted, np.linspace(0, 1, 50))
    result = replace(result, data=dict(result.data) | {"n_member": n})
    side = _sides(result)["member"]
    assert side.low is None
    assert "99 points, no band" in alt(result, "quantiles")
    assert figure(result, "quantiles") is not None
