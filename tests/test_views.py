"""Views for the report: nothing lost in the bins, curves that are curves, gaps with the right sign."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import DPSGD, Adjacency, Claim, Losses, Sample
from auditor.curves import claimed_line, count, fit_gaussian_pair, fitted as of_fits, histograms, published
from auditor.estimators import fit_gap, measured
from auditor.theory import claimed_curve


def curves(losses, counts, pair, *, claim, promised=None, confidence, coverage):
    """Every line of the plot."""
    found = measured(losses, counts, confidence, coverage), of_fits(pair, None, is_shared=False)
    return (*found[0], *found[1], *claimed_line(claim, promised))


def fitted(losses, rng):
    """The transformed losses and their fits."""
    moved = published(losses)
    return moved, fit_gaussian_pair(moved, rng=rng)


@pytest.mark.parametrize("outlier", [None, 1e6])
def test_every_record_is_in_a_bin(rng, outlier):
    """The bins of both scales hold every record, outliers in the outermost ones, and fits expect as many."""
    member = rng.gamma(2, 1, 500)
    losses = Losses(
        member=member if outlier is None else np.append(member, outlier), nonmember=rng.gamma(3, 1, 700)
    )
    moved, pair = fitted(losses, rng)
    transformed, raw = histograms(losses, moved, pair)
    for found in (transformed, raw):
        assert sum(found.member) == losses.n_member
        assert sum(found.nonmember) == 700
        assert len(found.edges) == len(found.member) + 1
    assert sum(transformed.nonmember_fit) == pytest.approx(700, rel=0.05)


def test_quantiles_of_a_normal_lie_on_the_line():
    """Exact normal quantiles give a straight quantile-quantile line."""
    levels = (np.arange(4000) + 0.5) / 4000
    losses = Losses(member=stats.norm.ppf(levels), nonmember=stats.norm.ppf(levels, 2, 3))
    pair = fit_gaussian_pair(losses, rng=np.random.default_rng(0))
    found = histograms(losses, losses, pair)[0].quantiles
    np.testing.assert_allclose(found["member_observed"], found["member_fitted"], atol=0.02)
    assert len(found["probability"]) == len(found["nonmember_fitted"])


def test_curves_are_monotone_and_named(rng):
    """Every line of the plot runs up and to the right, and the claim is drawn only where there is one."""
    losses = Losses(member=rng.normal(-1, 1, 3000), nonmember=rng.normal(0, 1, 2000))
    _, pair = fitted(losses, rng)
    claim = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)
    options = {"confidence": 0.95, "coverage": Sample()}
    found = curves(losses, count(losses), pair, claim=claim, **options)
    assert [curve.name for curve in found] == ["empirical", "band_lower", "band_upper", "gaussian", "claim"]
    for curve in found:
        assert np.all(np.diff(curve.fpr) >= 0)
        assert np.all(np.diff(curve.tpr) >= 0)
        assert len(curve.fpr) == len(curve.tpr) <= 700
    assert [c.name for c in curves(losses, count(losses), pair, claim=None, **options)][-1] == "gaussian"


def test_the_claimed_curve_of_a_training_is_its_whole_one(rng):
    """For unsampled DP-SGD of noise 2 and one step the line is Phi(Phi^-1(x) + 2/2) for replaced records, to a few digits."""
    losses = Losses(member=rng.normal(-1, 1, 300), nonmember=rng.normal(0, 1, 200))
    _, pair = fitted(losses, rng)
    whole = claimed_curve(DPSGD(2.0, 1.0, 1), adjacency=Adjacency.REPLACE_ONE).curve
    claim = Claim("epsilon", 4.38, 1e-5, Adjacency.REPLACE_ONE, "accountant", proven=True)
    found = curves(
        losses, count(losses), pair, claim=claim, promised=whole, confidence=0.95, coverage=Sample()
    )[-1]
    assert found.name == "claimed_training"
    assert "at every epsilon (replace-one)" in found.label
    x = np.array([1e-5, 0.001, 0.1, 0.5, 0.9])
    assert np.interp(x, found.fpr, found.tpr) == pytest.approx(
        stats.norm.cdf(stats.norm.ppf(x) + 1), rel=0.02
    )


def test_the_gap_is_fitted_minus_measured(rng):
    """At its false positive rate the gap is the fitted log TPR minus the measured one, and a misfit has a larger gap."""
    normal = Losses(member=rng.normal(-1, 1, 20_000), nonmember=rng.normal(0, 1, 20_000))
    lumpy = Losses(
        member=np.concatenate([rng.normal(0, 1, 19_000), rng.normal(-6, 0.1, 1000)]),
        nonmember=normal.nonmember,
    )
    gaps = []
    for losses in (normal, lumpy):
        pair = fit_gaussian_pair(losses, rng=rng)
        found = fit_gap(count(losses), pair)
        fpr = found["curve_gap_fpr"]
        below = np.sort(losses.nonmember)[round(fpr * 20_000)]
        measured = np.mean(losses.member < below)
        threshold = stats.norm.ppf(fpr, pair.nonmember.mean, pair.nonmember.sd)
        expected = stats.norm.logcdf(threshold, pair.member.mean, pair.member.sd) - np.log(measured)
        assert found["curve_gap"] == pytest.approx(expected, rel=1e-9)
        gaps.append(abs(found["curve_gap"]))
    assert gaps[0] < 0.7 < gaps[1]


def test_no_gap_where_too_few_records_reach():
    """With fewer than ten non-members to stand on there is no gap to give."""
    few = Losses(member=[0.0, 1.0, 2.0], nonmember=[0.5, 1.5, 2.5])
    assert fit_gap(count(few), fit_gaussian_pair(few, rng=np.random.default_rng(0))) == {}


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [
        ([-1.7e308, 0.0, 1.0, 2.0], [1.7e308, 0.0, 1.0, 2.0]),
        ([-1.7976931348623157e308, 0.0], [1.7976931348623157e308, 0.0]),
        ([1.7976931348623157e308] * 3, [1.7976931348623157e308] * 3),
        ([-1.7976e308] * 3, [-1.7976e308] * 3),
        ([5e-324, 0.0], [0.0, 5e-324]),
    ],
)
def test_bins_at_the_ends_of_the_doubles(member, nonmember):
    """Losses of any size get finite ascending edges that hold every record, a result without NaN, and pages without a warning."""
    result = auditor.audit(Losses(member=member, nonmember=nonmember), disclosure="insiders")
    for found in result.histograms:
        assert np.all(np.isfinite(found.edges))
        assert np.all(np.diff(found.edges) >= 0)
        assert min(found.member + found.nonmember) >= 0
        assert (sum(found.member), sum(found.nonmember)) == (len(member), len(nonmember))
    assert "AUC" in auditor.report.audit_text(result)
    assert "<svg" in result.to_html()
    text = result.to_json()
    json.loads(text, parse_constant=pytest.fail)  # called for NaN and infinities
    # So few records may miss any leak: the smallest one that they show is infinite, and nothing else.
    assert not re.search(r"\b(nan|inf)\b", text.replace('"smallest_mu": "inf"', ""), re.IGNORECASE)


def test_quantiles_are_no_exact_losses(rng):
    """The values that the quantile plot keeps are off by up to a thousandth of the range, and seldom a loss to six digits."""
    losses = Losses(member=rng.gamma(2, 1, 500), nonmember=rng.gamma(3, 1, 700))
    moved, pair = fitted(losses, rng)
    found = histograms(losses, moved, pair)[0].quantiles["member_observed"]
    gaps = np.abs(np.array(found)[:, None] - moved.member[None, :]).min(axis=1)
    reach = np.ptp(moved.member)
    assert gaps.max() <= reach / 1000
    assert np.mean(gaps < 1e-6 * np.abs(found)) < 0.2
