"""What every output says alike: the terminal, the summary, the card, the page, and the files for build servers."""

import re

import pytest
from safety.formats import Markup

import auditor
from auditor.report import audit_text, gates_first, markdown, render
from auditor.verdicts import check_gates


def read(text):
    """The words of an output, whatever its marks, with single blanks."""
    return re.sub(r"[\s\u200b│|*\\]+", " ", Markup(text).text)


def _card(result, *, gates=()):
    return "" if gates else result._repr_html_()


def _terminal(result, *, gates=()):
    return audit_text(result, gates=gates, width=300)


def _page(result, *, gates=()):
    return render([result], gates=gates)


pytestmark = pytest.mark.usefixtures("no_figures")
FOR_READERS = {"terminal": _terminal, "markdown": markdown, "card": _card, "page": _page}


@pytest.mark.parametrize("output", FOR_READERS)
def test_the_facts_of_an_audit(refuted, output):
    """The verdict and its sentence, a number with confidence, delta and subject, and the checks to read."""
    told = read(FOR_READERS[output](refuted))
    for words in (
        *("sentiment-dp", "Claim refuted", "epsilon is at least 1.31 at 95% confidence, above the claimed 1"),
        *("Training algorithm bound", "1.31", "95%", "1e-5", "training algorithm", "point estimate"),
        *("Power", "31 records are too few.", "Goodness of fit"),
    ):
        assert words.lower() in told.lower(), words


@pytest.mark.parametrize("output", FOR_READERS)
def test_what_was_found_leads_without_a_claim(overfitted, refuted, output):
    """Without a claim what was found comes before it; with one the verdict on it comes first."""
    for result, words in (
        (overfitted, ["Leakage found", "No claim"]),
        (refuted, ["Claim refuted", "Leakage found"]),
    ):
        told = read(FOR_READERS[output](result))
        places = [told.index(text) for text in words]
        assert places == sorted(places)


@pytest.mark.parametrize("output", ["terminal", "markdown"])
def test_gates_that_stop_are_told_first(overfitted, output):
    """How many gates stop the pipeline stands above what was found, each gate with its outcome; gates that pass do not."""
    gates = check_gates(overfitted, ["auc > 0.1", "auc > 0.99", "tpr_at_fpr.0.001 > 0.5"])
    told = read(FOR_READERS[output](overfitted, gates=gates))
    assert told.index("2 of 3 gates stop the pipeline") < told.index("Leakage found")
    passed = read(FOR_READERS[output](overfitted, gates=gates[1:2]))
    assert "stops the pipeline" not in passed
    assert "stop the pipeline" not in passed


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ([], ""),
        (["auc > 0.99"], ""),
        (["auc > 0.1"], "The gate stops the pipeline: it failed."),
        (["epsilon_star.mixture > 1"], "The gate stops the pipeline: it could not be evaluated."),
        (["auc > 0.99", "auc > 0.1"], "1 of 2 gates stops the pipeline: it failed."),
        (["auc > 0.1", "auc > 0.2"], "2 of 2 gates stop the pipeline: 2 failed."),
    ],
)
def test_how_many_gates_stop(overfitted, gates, words):
    """The sentence counts what stops, and why; there is none where all pass."""
    assert gates_first(check_gates(overfitted, gates)) == words


def test_several_models_have_a_card_too(rng):
    """The audit of several models shows its numbers, what they are about, and how many models there were."""
    models = [
        auditor.Losses(member=rng.normal(-2, 1, 200), nonmember=rng.normal(0, 1, 200)) for _ in range(8)
    ]
    result = auditor.audit_instances(
        models, delta=1e-5, split=auditor.RandomSplit(), claim=auditor.StatedClaim(0.2, 1e-5)
    )
    told = read(result._repr_html_())
    # The claim, as it reads for one replaced record: 1e-5 (1 + e^0.2).
    for words in (
        "8 models of one training algorithm, delta 2.22e-5",
        "the training algorithm (replace-one)",
        "Epsilon-bar",
    ):
        assert words in told
