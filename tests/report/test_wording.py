"""The sentences that a decision rests on."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import auditor
from auditor import estimators
from auditor.core import Check, Comparison, Losses, Status, Verdict
from auditor.curves import count
from auditor.report import context, finding, headline, verdict_sentence, view_of
from auditor.results import fit_sentences, rows
from auditor.verdicts import check_gates


def _without(result, *names):
    return replace(result, estimates=tuple(item for item in result.estimates if item.name not in names))


def _changed(result, name, **fields):
    return replace(
        result,
        estimates=tuple(replace(item, **fields) if item.name == name else item for item in result.estimates),
    )


RATES = ("tpr_at_fpr.0.1", "tpr_at_fpr.0.01", "tpr_at_fpr.0.001")


# --- The verdict ----------------------------------------------------------------------------------


def test_no_claim(overfitted):
    """Without a claim there is nothing to refute, and the sentence says so."""
    assert verdict_sentence(overfitted) == "No claim was given, so there is nothing to refute."


def test_refuted(refuted):
    """A refuted claim is told with the bound, its confidence, and the claim with its delta and adjacency."""
    text = verdict_sentence(refuted)
    for part in (
        "refuted",
        "95% confidence",
        "at least 1.31",
        "claimed epsilon 1",
        "delta 2.6e-5",
        "replace-one",
    ):
        assert part in text


def test_not_refuted(refuted):
    """A claim that stands is told with the power of the audit, and that this is no proof."""
    comparison = replace(refuted.comparisons[0], verdict=Verdict.NOT_REFUTED)
    result = _changed(refuted, "epsilon_bound.one_run", value=0.7, lower=0.7)
    text = verdict_sentence(replace(result, comparisons=(comparison,), verdict=Verdict.NOT_REFUTED))
    assert "not refuted" in text
    assert "up to 5.31" in text
    assert "not proof" in text


def test_inconclusive(refuted):
    """An audit whose ceiling is below the claim says that it could not have refuted it."""
    claim = replace(refuted.claims[0], value=6.0)
    comparison = replace(refuted.comparisons[0], claim=claim, verdict=Verdict.INCONCLUSIVE)
    text = verdict_sentence(replace(refuted, comparisons=(comparison,), verdict=Verdict.INCONCLUSIVE))
    assert "inconclusive" in text
    assert "at most 5.31" in text
    assert "could not have refuted" in text


def test_inconclusive_for_another_reason(refuted):
    """An audit that had room to refute the claim is inconclusive for the reason given, not for too few records."""
    comparison = replace(refuted.comparisons[0], verdict=Verdict.INCONCLUSIVE, reason="all losses are equal")
    result = replace(refuted, comparisons=(comparison,), verdict=Verdict.INCONCLUSIVE)
    assert verdict_sentence(result) == "The audit is inconclusive. All losses are equal."


def test_too_few_records(refuted, nothing):
    """An audit with a ceiling of 0 says that there are too few records, not that it could certify up to 0."""
    name = "epsilon_bound.clopper_pearson"
    few = _changed(nothing, name, details={"ceiling": 0.0})
    assert finding(few).sentence.endswith("There are too few records to certify anything.")
    assert rows.tile(few.estimate(name))["note"] == "too few records to certify anything"
    assert rows.row(few.estimate(name))["reason"] == "There are too few records to certify anything."
    result = _changed(refuted, "epsilon_bound.one_run", value=0.0, lower=0.0, details={"ceiling": 0.0})
    comparison = replace(refuted.comparisons[0], verdict=Verdict.INCONCLUSIVE)
    text = verdict_sentence(replace(result, comparisons=(comparison,), verdict=Verdict.INCONCLUSIVE))
    assert "too few records to certify anything" in text
    assert "at most 0" not in text


def test_inconclusive_without_numbers(refuted):
    """A claim without a number in the audited form is inconclusive for the reason given, not for a small audit."""
    claim = replace(refuted.claims[0], value=None)
    comparison = Comparison(
        claim, "epsilon_bound.one_run", Verdict.INCONCLUSIVE, "the claim promises nothing here"
    )
    text = verdict_sentence(replace(refuted, comparisons=(comparison,), verdict=Verdict.INCONCLUSIVE))
    assert text.endswith("The claim promises nothing here.")


def test_not_evaluable(not_evaluable):
    """A claim that cannot be judged is told with the reason."""
    text = verdict_sentence(not_evaluable)
    assert text.startswith("The claim cannot be judged from this audit. Membership was not declared random")


# --- What was found -------------------------------------------------------------------------------


def test_meaning_quotes_the_finest_rate(overfitted):
    """The quoted rate is the smallest that the records resolve, with its certified lower bound."""
    assert finding(overfitted).sentence == (
        "At 95% confidence, an attacker who accepts 1 false alarm in 100 recognises at least 12.3% of the training"
        " records; guessing would recognise 1%."
    )


def test_meaning_does_not_pick_the_most_striking(overfitted):
    """A finer rate without a finding is not passed over for a coarser one with a larger finding."""
    result = _changed(overfitted, "tpr_at_fpr.0.01", lower=0.008)
    assert "1 false alarm in" not in finding(result).sentence
    assert "22.9 percentage points" in finding(result).sentence


def test_meaning_falls_back(overfitted):
    """Without rates and advantage the certified bound speaks, then the AUC, then the one-run bound."""
    result = _without(overfitted, *RATES, "advantage")
    assert "certified bound is epsilon 1.29" in finding(result).sentence
    result = _changed(result, "epsilon_bound.clopper_pearson", value=0.0, lower=0.0)
    assert "at least 68.4% of the time" in finding(result).sentence
    result = _changed(result, "auc", lower=0.47, upper=0.52)
    changes = {"value": 0.4, "lower": 0.4, "confidence": 0.95, "adjacency": "replace-one"}
    result = _changed(result, "epsilon_bound.one_run", **changes)
    assert "training algorithm's epsilon is at least 0.4" in finding(result).sentence


def test_meaning_of_swapped_groups(nothing):
    """Members with clearly higher losses are not called private but probably swapped."""
    assert "swapped" in finding(_changed(nothing, "auc", lower=0.2, upper=0.4)).sentence


def test_meaning_of_nothing(nothing):
    """When every bound is 0 the sentence says no evidence, no proof, and the ceiling."""
    text = finding(nothing).sentence
    assert text.startswith("No evidence of leakage found; this is not proof of privacy.")
    assert "5.57" in text


def test_meaning_without_any_bound(hostile):
    """Without a bound nothing is claimed either way."""
    assert finding(hostile).sentence.startswith("This audit has no bound to report.")


@pytest.mark.parametrize("n", [300, 1000])
def test_meaning_on_pure_noise(n):
    """On two groups without any difference the sentence finds something in about 1 of 20 audits at most."""
    rng, found, runs = np.random.default_rng(20), 0, 200
    for _ in range(runs):
        losses = Losses(member=rng.normal(size=n), nonmember=rng.normal(size=n))
        counts = count(losses)
        rows = (
            estimators.clopper_pearson(losses, delta=1e-5),
            estimators.advantage(counts),
            estimators.auc(counts),
            *(estimators.tpr_at_fpr(losses, rate=rate) for rate in (0.1, 0.01, 0.001)),
        )
        found += not finding(SimpleNamespace(estimates=rows, checks=(), data={})).sentence.startswith(
            "No evidence"
        )
    assert found <= 0.05 * runs + 2 * np.sqrt(0.05 * 0.95 * runs)


# --- The number that leads ------------------------------------------------------------------------


def test_headline_is_the_published_number(overfitted):
    """Epsilon* leads while its fit stands, with what the records do not reach."""
    lead = headline(overfitted)
    assert lead.estimate.name == "epsilon_star.gaussian"
    assert "beyond what the records can show" in lead.sentence


def test_headline_of_a_rejected_fit(refuted):
    """The certified bound leads when the fit is rejected, and the sentence says why."""
    lead = headline(refuted)
    assert lead.estimate.name == "epsilon_bound.clopper_pearson"
    assert "rejected" in lead.sentence


def test_headline_without_value(nothing):
    """The certified bound leads when Epsilon* has no value, with the reason."""
    lead = headline(nothing)
    assert lead.estimate.name == "epsilon_bound.clopper_pearson"
    assert "all losses are equal" in lead.sentence


def test_headline_within_noise(overfitted):
    """An Epsilon* that chance alone would give is called no evidence, and the certified bound leads."""
    star = overfitted.estimate("epsilon_star.gaussian")
    noisy = dict(star.details) | {"noise_floor": {"mean": 2.2, "q95": 3.5}}
    result = _changed(overfitted, star.name, details=noisy)
    lead = headline(result)
    assert lead.estimate.name == "epsilon_bound.clopper_pearson"
    assert "On this many records chance alone gives an Epsilon* of up to 3.5" in lead.sentence
    assert "no evidence" in lead.sentence


def test_headline_without_noise_floor(overfitted):
    """Where the noise floor is not known, Epsilon* leads as before."""
    star = overfitted.estimate("epsilon_star.gaussian")
    details = {key: item for key, item in star.details.items() if key != "noise_floor"}
    assert headline(_changed(overfitted, star.name, details=details)).estimate.name == star.name


def test_reason_for_no_interval(overfitted):
    """An Epsilon* without an interval says why where the interval would stand."""
    reason = "the lower bound needs at least 300 records in each group"
    star = overfitted.estimate("epsilon_star.gaussian")
    details = dict(star.details) | {"lower_reason": reason}
    bare = replace(star, lower=None, confidence=None, details=details)
    assert rows.tile(bare)["note"] == f"point estimate, no interval: {reason}"
    assert rows.row(bare)["reason"] == f"No interval: {reason}."


def test_headline_of_total_separation(overfitted):
    """A saturated Epsilon* is named as the largest value that can be reported."""
    star = overfitted.estimate("epsilon_star.gaussian")
    result = _changed(overfitted, star.name, details=dict(star.details) | {"saturated": True})
    assert "do not overlap" in headline(result).sentence


def test_fit_in_words(overfitted, refuted):
    """The test of the fit is told with its distance and p-value, and no fit is called proven."""
    text = " ".join(fit_sentences(overfitted.estimate("epsilon_star.gaussian")))
    assert "differ by at most 4.1% of the records" in text
    assert "p = 0.28" in text
    assert "not proof" in text
    assert "The Gaussian fit is rejected" in " ".join(
        fit_sentences(refuted.estimate("epsilon_star.gaussian"))
    )
    assert fit_sentences(None) == []


def test_what_was_observed_is_rounded_to_the_nearest(overfitted):
    """In a census the observed rate is its own lower end: it reads to the nearest, and only the "at least" is rounded down."""
    rate = _changed(
        overfitted, "tpr_at_fpr.0.01", value=19 / 1500, lower=19 / 1500, upper=None
    )  # 0.012666...
    row = rows.row(rate.estimate("tpr_at_fpr.0.01"))
    assert (row["value"], row["interval"]) == ("1.27%", "at least 1.26%")
    assert rows.tile(rate.estimate("tpr_at_fpr.0.01"))["value"] == "1.27%"
    assert rows.value(rate.estimate("tpr_at_fpr.0.01")) == "1.27%"
    gate = check_gates(rate, ["tpr_at_fpr.0.01 > 0.5", "tpr_at_fpr.0.01.lower > 0.5"])
    assert ["is 0.0127 (1.27%," in gate[0].sentence, "is 0.0126 (1.26%," in gate[1].sentence] == [True, True]
    bound = _changed(overfitted, "epsilon_bound.clopper_pearson", value=1.2699, lower=1.2699)
    assert rows.row(bound.estimate("epsilon_bound.clopper_pearson"))["value"] == "1.26"


def test_a_census_says_what_its_numbers_describe():
    """Beside the numbers of a census stands that chance alone can make them positive; beside those of a sample it does not."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(size=400))
    warned = {}
    for members in (auditor.Census(), auditor.Sample()):
        found = auditor.audit(losses, members=members).estimate("tpr_at_fpr.0.1")
        texts = rows.tile(found)["about"], rows.row(found)["reason"]
        warned[type(members)] = ["can be positive by chance alone" in text for text in texts]
    assert warned == {auditor.Census: [True, True], auditor.Sample: [False, False]}


def test_the_number_without_a_fit_says_how_far_it_looks(overfitted):
    """Its rates end before those of the certified bound, which can be higher: the row says so, with this audit's rates."""
    found = _changed(overfitted, "epsilon_star.empirical", details={"clip": 0.001})
    text = rows.row(found.estimate("epsilon_star.empirical"))["reason"]
    assert "error rates from 0.1% to 99.9%" in text
    assert "certified bound" in text


def test_two_tests_that_decide_together_are_both_named(overfitted):
    """Of a mixture each p-value stands beside its own test, and what decides is said to be that of both."""
    star = overfitted.estimate("epsilon_star.gaussian")
    side = {"ks_statistic": 0.024, "ks_p_value": 0.004, "ks_n": 800, "level": 0.05, "components": 2}
    both = side | {"distance_p_value": 0.31, "likelihood_p_value": 0.002}
    older = side | {
        "test": "Kolmogorov-Smirnov distance; with their likelihood ratio against more components"
    }
    fit = {"rejected": True, "member": both, "nonmember": older}
    mixture = replace(star, name="epsilon_star.mixture", details={"fit": fit})
    first, second = fit_sentences(None, mixture=mixture)[1:3]
    assert first == (
        "Members: the fitted curve and 800 held-out records differ by at most 2.4% of the records (Kolmogorov–Smirnov"  # noqa: RUF001
        " test, p = 0.31); the likelihood ratio against more components has p = 0.002. The two decide together: p = 0.004,"
        " twice the smaller (at most 1)."
    )
    assert second.endswith("test and a likelihood ratio against more components decide together: p = 0.004.")


def test_fit_on_few_records(overfitted):
    """With fewer than 50 held-out records the words say that the test cannot reject anything."""
    star = overfitted.estimate("epsilon_star.gaussian")
    fit = dict(star.details["fit"])
    fit["member"] = fit["member"] | {"ks_n": 49}
    text = " ".join(fit_sentences(replace(star, details=dict(star.details) | {"fit": fit})))
    assert "So few held-out records cannot reject anything" in text
    assert "The fit is not rejected" not in text


# --- What a failed check, a person and an approximation change --------------------------------------


@pytest.mark.parametrize("name", ["shift", "duplicates", "placebo", "label_shuffle", "persons"])
def test_a_failed_validity_check_takes_the_meaning(overfitted, name):
    """Where the groups cannot be compared no sentence and no tile speaks of recognised records or of a certificate."""
    invalid = replace(overfitted, checks=(*overfitted.checks, Check(name, Status.FAIL, "The groups differ.")))
    shown = context(view_of(invalid))
    assert "do not measure what the model gives away" in shown["meaning"]
    assert "recognise" not in shown["meaning"]
    assert "no number here measures leakage" in shown["headline"]["sentence"]
    assert {tile["note"] for tile in (shown["headline"], *shown["tiles"])} == {"a validity check failed"}


def test_persons_are_called_persons(overfitted):
    """Where a score stands for a person, the sentences speak of persons and the size names both."""
    data = {**overfitted.data, "unit": "person (mean loss)", "records": [8000, 9000], "persons": [2000, 2000]}
    shown = context(view_of(replace(overfitted, data=data)))
    assert "persons in the training data" in shown["meaning"]
    assert "training record" not in shown["meaning"]
    assert shown["size"].startswith("2,000 persons in the training data (8,000 records)")


def test_an_approximate_bound_is_not_called_certified(overfitted):
    """Katz and Jeffreys limits are shown as approximate, in the row, the tile and the headline."""
    name = "epsilon_bound.clopper_pearson"
    details = {**overfitted.estimate(name).details, "approximate": True}
    result = _changed(overfitted, name, details=details)
    row = rows.row(result.estimate(name))
    assert row["title"] == "Approximate epsilon bound"
    assert "certified" not in rows.tile(result.estimate(name))["note"]
    rejected = _changed(result, "epsilon_star.gaussian", details={"fit": {"rejected": True}}, lower=None)
    assert "approximate bound leads" in headline(rejected).sentence


def test_a_claim_judged_by_its_whole_curve_is_told_so(refuted):
    """Where the bound at one delta is below the claim, the refutation rests on the whole curve and says that."""
    low = _changed(refuted, "epsilon_bound.one_run", value=0.2, lower=0.2)
    comparison = replace(refuted.comparisons[0], reason="its whole trade-off curve is rejected")
    text = verdict_sentence(replace(low, comparisons=(comparison,)))
    assert text == "The claim is refuted. Its whole trade-off curve is rejected."


def test_the_fits_are_named(refuted):
    """The sentences on two fits say which is rejected."""
    star = refuted.estimate("epsilon_star.gaussian")
    fit = {**star.details["fit"], "rejected": False}
    for side in ("member", "nonmember"):
        fit[side] = {**fit[side], "components": 3}
    mixture = replace(star, name="epsilon_star.mixture", details={"fit": fit})
    text = " ".join(fit_sentences(star, mixture=mixture))
    assert "The Gaussian fit is rejected" in text
    assert "3 normals for the members" in text
    assert "The mixture fit is not rejected" in text
