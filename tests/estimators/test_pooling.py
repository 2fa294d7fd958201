"""Means of AUC and advantage over models: against formulas written out, in coverage, and where they stand."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import optimize, stats

from auditor import Losses, RandomSplit, StatedClaim, audit, audit_instances, compare
from auditor.core import Estimate, Subject
from auditor.estimators import mean_of_models
from auditor.report import audit_text


def rows_of(values, errors):
    """Estimates of an AUC with these standard errors."""
    reach = stats.norm.ppf(0.975)
    return [
        Estimate("auc", x, x - reach * error, x + reach * error, 0.95, "by hand", Subject.MODEL)
        for x, error in zip(values, errors, strict=True)
    ]


@pytest.mark.parametrize("values", [(0.62, 0.71, 0.55, 0.66), (0.600, 0.601, 0.599, 0.602)])
def test_the_mean_is_that_of_paule_and_mandel(values):
    """tau^2 makes Cochran's Q its degrees of freedom, or is 0; mean, Student's limits, I^2 and p-value follow."""
    effects, errors = np.array(values), np.array([0.02, 0.03, 0.025, 0.04])

    def spread(square):
        weights = 1 / (errors**2 + square)
        return float(weights @ (effects - np.average(effects, weights=weights)) ** 2)

    square = optimize.brentq(lambda x: spread(x) - 3, 0, 1, xtol=1e-14) if spread(0.0) > 3 else 0.0
    weights = 1 / (errors**2 + square)
    half = stats.t.ppf(0.975, 3) / np.sqrt(weights.sum())
    mean = np.average(effects, weights=weights)
    row = mean_of_models(rows_of(values, errors), name="auc", confidence=0.95)
    assert (row.name, row.subject, row.confidence) == ("auc.pooled", "model", 0.95)
    assert (row.value, row.lower, row.upper) == pytest.approx((mean, mean - half, mean + half), rel=1e-4)
    assert row.details["tau"] == pytest.approx(np.sqrt(square), abs=1e-4)
    assert row.details["i_squared"] == pytest.approx(max(0.0, 1 - 3 / spread(0.0)))
    assert row.details["heterogeneity_p_value"] == pytest.approx(stats.chi2.sf(spread(0.0), 3))


def test_models_that_agree_and_a_model_without_an_interval():
    """Equal values have no heterogeneity, and a mean over a model without an interval is missing, with the reason."""
    rows = rows_of([0.6, 0.6], [0.01, 0.01])
    alike = mean_of_models(rows, name="auc", confidence=0.95)
    assert (alike.value, alike.details["tau"], alike.details["i_squared"]) == (pytest.approx(0.6), 0, 0)
    bare = dataclasses.replace(rows[0], lower=None, upper=None, confidence=None)
    missing = mean_of_models([bare, rows[1]], name="auc", confidence=0.95)
    assert missing.value is None
    assert missing.reason == "1 of 2 models have no auc with an interval"


def models(rng, *, number=4):
    """Losses of models that leak differently."""
    return [Losses(rng.normal(-0.4 * i, 1, 200), rng.normal(0, 1, 200)) for i in range(number)]


def test_instances_have_means_that_judge_nothing(rng):
    """Rows of bare losses and of their results agree, stand in every form, and a false claim on them is judged by the bound."""
    losses = models(rng)
    claim = StatedClaim(epsilon=0.1, delta=1e-5, adjacency="replace-one")
    split = {"delta": 1e-5, "split": RandomSplit(), "disclosure": "insiders"}
    bare = audit_instances(losses, claim=claim, **split)
    of_results = audit_instances([audit(item, **split) for item in losses], **split)
    (judged,) = bare.comparisons
    assert judged.estimate == "epsilon_bound.instances"
    for name in ("auc", "advantage"):
        row = bare[f"{name}.pooled"]
        assert row.details["models"] == 4
        assert row.assumptions[0].startswith("approximate: models that share records")
        assert row.value == pytest.approx(of_results[f"{name}.pooled"].value)
    shown = audit_instances(losses, delta=1e-5, split=RandomSplit())
    row = shown["auc.pooled"]
    assert (row.value, row.lower) == (round(row.value, 3), round(row.lower, 3))
    assert row.lower <= bare["auc.pooled"].lower
    for text in (shown.to_html(), audit_text(shown)):
        assert "AUC, mean over the models" in text
    assert "Share of the models&#39; spread beyond their errors (I^2)" in shown.to_html()


def test_a_comparison_has_the_means_of_audits_of_one_kind(rng):
    """Releases have the means in JSON and on the page; audits that cannot be compared have none."""
    audits = [audit(item, delta=1e-5) for item in models(rng, number=3)]
    together = compare(audits)
    rows = json.loads(together.to_json())["pooled"]
    expected = mean_of_models([item["auc"] for item in audits], name="auc", confidence=0.95)
    assert [row["name"] for row in rows] == ["auc.pooled", "advantage.pooled"]
    assert rows[0]["value"] == pytest.approx(expected.value, abs=5e-4)
    assert "of the spread between the audits is beyond their errors" in together.to_html()
    other = dataclasses.replace(audits[0], data={**audits[0].data, "unit": "person"})
    assert "pooled" not in compare([other, *audits[1:]]).to_dict()
