"""The sentences that a decision rests on."""

from dataclasses import replace

import numpy as np
import pytest
from report.conftest import changed

import auditor
from auditor.core import Adjacency, Check, Status, Verdict
from auditor.report import Row, finding, fit_sentences, render, verdict_sentence, view_of
from auditor.verdicts import check_gates


def _without(result, *names):
    return replace(result, estimates=tuple(item for item in result.estimates if item.name not in names))


RATES = ("tpr_at_fpr.0.1", "tpr_at_fpr.0.01", "tpr_at_fpr.0.001")


# --- The verdict ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_what_became_of_a_claim(overfitted, refuted, verdict):
    """A verdict comes with the claim, each form of it in a sentence, and its reason; what was not judged has one form."""
    if verdict is None:
        assert verdict_sentence(overfitted) == "No claim was given, so there is nothing to refute."
        return
    judged = replace(refuted.comparisons[0], verdict=verdict, reason="stated")
    result = replace(refuted, comparisons=(judged,), verdict=verdict)
    assert verdict_sentence(result) == "Claimed: epsilon 1 (delta 2.6e-5, replace-one). Stated."
    made = replace(refuted.claims[0], value=0.5, delta=1e-5, adjacency=Adjacency.ADD_REMOVE)
    said = verdict_sentence(replace(result, claims=(made,)))
    scale = " Converted for this audit: epsilon 1 (delta 2.6e-5, replace-one)."
    form = "" if verdict is Verdict.NOT_EVALUABLE else scale
    assert said == f"Claimed: epsilon 0.5 (delta 1e-5, add-remove).{form} Stated."
    measured = replace(judged, reason="measured: epsilon at least 3 (delta 2.6e-5, replace-one)")
    told = verdict_sentence(replace(result, comparisons=(measured,)))
    assert told == "Claimed: epsilon 1 (delta 2.6e-5, replace-one). Measured: epsilon at least 3."


# --- What was found -------------------------------------------------------------------------------


BOUND, STAR = "epsilon_bound.clopper_pearson", "epsilon_star.gaussian"
LOW_AUC = {"lower": 0.47, "upper": 0.52}
ONE_RUN = {"value": 0.4, "lower": 0.4, "confidence": 0.95, "adjacency": "replace-one"}


@pytest.mark.parametrize(
    ("name", "without", "changes", "said"),
    [
        # The AUC speaks, and then, without a point of the band, the advantage, the certified bound, the one-run bound.
        (
            "overfitted",
            (),
            {},
            "picks the right one at least 68 times in 100 (coin: 50). The confidence is about 95%",
        ),
        ("overfitted", (*RATES, "auc"), {}, "22.9 percentage points"),
        ("overfitted", (*RATES, "auc", "advantage"), {}, "epsilon is at least 1.29 (delta 1e-5)."),
        (
            *("overfitted", (*RATES, "advantage", BOUND)),
            {"auc": LOW_AUC, "epsilon_bound.one_run": ONE_RUN},
            "training algorithm's epsilon is at least 0.4",
        ),
        ("nothing", (), {"auc": {"lower": 0.2, "upper": 0.4}}, "swapped"),
        (
            "nothing",
            (),
            {},
            "is not shown to pick the right one more often than a coin. This is not proof of privacy.",
        ),
        ("nothing", (), {}, "5.57"),
        (
            "nothing",
            (),
            {BOUND: {"details": {"ceiling": 0.0}}},
            "There are too few records to certify anything at this delta.",
        ),
        ("hostile", (), {}, "This audit has no bound to report."),
    ],
)
def test_what_was_found(request, name, without, changes, said):
    """One number speaks, chosen in a fixed order, with its limit; where none is above guessing no evidence is claimed."""
    result = _without(request.getfixturevalue(name), *without)
    result = replace(result, data={**result.data, "shown": None})
    for row, fields in changes.items():
        result = changed(result, row, **fields)
    assert said in finding(result).sentence


def test_the_certified_bound_leads(request):
    """The certified bound leads every audit of one model whose validity checks passed, whatever the fit of Epsilon* says."""
    for name in ("overfitted", "refuted", "nothing"):
        result = request.getfixturevalue(name)
        for details in ({}, {"at": {"reached_by_data": True}}, {"fit": {"rejected": True}}):
            lead = view_of(changed(result, STAR, details=details)).headline
            assert lead.estimate.name == BOUND
            assert lead.sentence == "The certified bound leads: it needs no fit and allows for chance."


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (
            STAR,
            {"lower": None, "confidence": None, "details": {"lower_reason": "too few"}},
            "No interval: too few.",
        ),
        (
            BOUND,
            {"value": 0.0, "lower": 0.0, "details": {"ceiling": 0.0}},
            "There are too few records to certify anything at this delta.",
        ),
        ("epsilon_star.empirical", {"details": {"clip": 0.001}}, "error rates from 0.1% to 99.9%"),
        ("epsilon_star.empirical", {"details": {"clip": 0.001}}, "certified bound"),
    ],
)
def test_caveats(overfitted, name, changes, words):
    """A row says why it has no interval, that a ceiling of 0 certifies nothing, and how far its rates look."""
    assert words in Row(replace(overfitted.estimate(name), **changes)).caveat


# --- The number that leads ------------------------------------------------------------------------


def test_fit_in_words(overfitted, refuted):
    """The test of the fit is reported with its distance and p-value, and no fit is called proven."""
    text = " ".join(fit_sentences(overfitted.estimate("epsilon_star.gaussian")))
    assert "differ by at most 4.1% of the records" in text
    assert "p = 0.28" in text
    assert "does not prove the fit" in text
    assert "The Gaussian fit is rejected" in " ".join(
        fit_sentences(refuted.estimate("epsilon_star.gaussian"))
    )
    assert fit_sentences(None) == []
    star = overfitted.estimate("epsilon_star.gaussian")
    few = star.details["fit"] | {"member": star.details["fit"]["member"] | {"ks_n": 49}}
    text = " ".join(fit_sentences(replace(star, details={**star.details, "fit": few})))
    assert "So few held-out records cannot reject any fit" in text
    assert "The fit is not rejected" not in text


def test_what_was_observed_is_rounded_to_the_nearest(overfitted):
    """In a census the observed rate is its own lower end: it reads to the nearest, and only the "at least" is rounded down."""
    rate = changed(overfitted, "tpr_at_fpr.0.01", value=19 / 1500, lower=19 / 1500, upper=None)  # 0.012666...
    row = Row(rate.estimate("tpr_at_fpr.0.01"))
    assert (row.value, row.ends) == ("1.27%", "at least 1.26%")
    gate = check_gates(rate, ["tpr_at_fpr.0.01 > 0.5", "tpr_at_fpr.0.01.lower > 0.5"])
    assert ["is 0.0127 (1.27%," in gate[0].sentence, "is 0.0126 (1.26%," in gate[1].sentence] == [True, True]
    bound = changed(overfitted, "epsilon_bound.clopper_pearson", value=1.2699, lower=1.2699)
    assert Row(bound.estimate("epsilon_bound.clopper_pearson")).value == "1.26"


def test_a_census_says_what_its_numbers_describe():
    """Beside the numbers of a census stands that chance alone can make them positive; beside those of a sample it does not."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(size=400))
    warned = {}
    for members in (auditor.Census(), auditor.Sample()):
        found = auditor.audit(losses, coverage=members).estimate("tpr_at_fpr.0.1")
        texts = Row(found).context, Row(found).caveat
        warned[type(members)] = ["can be positive by chance alone" in text for text in texts]
    assert warned == {auditor.Census: [True, True], auditor.Sample: [False, False]}


# --- What a failed check, a person and an approximation change --------------------------------------


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("name", ["shift", "duplicates", "placebo", "label_shuffle", "persons"])
def test_a_failed_validity_check_takes_the_meaning(overfitted, name):
    """Where the groups cannot be compared no sentence and no tile speaks of recognised records or of a certificate."""
    invalid = replace(overfitted, checks=(*overfitted.checks, Check(name, Status.FAIL, "The groups differ.")))
    shown = view_of(invalid)
    assert "do not measure what the model leaks" in shown.finding.sentence
    assert "recognise" not in shown.finding.sentence
    assert "no number here measures leakage" in shown.headline.sentence
    tiles = render([invalid]).partition('<dl class="tiles">')[2].partition("</dl>")[0]
    assert tiles.count("a validity check failed") == tiles.count("<dd>") > 1
    assert "certified at" not in tiles


def test_people_are_called_people(overfitted):
    """Where a score stands for a person, the sentences speak of people and the size names both."""
    data = {
        **overfitted.data,
        "unit": "person",
        "combined": "mean",
        "records": [8000, 9000],
        "persons": [2000, 2000],
    }
    result = replace(overfitted, data=data)
    assert "people in the training data" in finding(result).sentence
    assert "training record" not in finding(result).sentence
    assert "2,000 people in the training data (8,000 records) and" in render([result])
