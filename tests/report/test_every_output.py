"""The common contents of every output: the terminal, the summary, the card, the page, and the files for build servers."""

import re

import pytest
from safety.formats import Markup

import auditor
from auditor.report import audit_text, card, markdown, render


def read(text):
    """The words of an output, whatever its marks, with single blanks."""
    return re.sub(r"[\s\u200b│|*\\]+", " ", Markup(text).text)


pytestmark = pytest.mark.usefixtures("no_figures")
FOR_READERS = {
    "terminal": lambda result: audit_text(result, width=300),
    "markdown": markdown,
    "card": card,
    "page": lambda result: render([result]),
}


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
    """Without a claim none is spoken of before the numbers; with one its verdict comes before the leak."""
    start = overfitted.data["model"]
    told = read(FOR_READERS[output](overfitted)).rpartition(f"Privacy audit {start}")[2]
    before = told[told.index("Leakage: marked") : told.index("What now")]
    assert "claim" not in before.lower()
    told = read(FOR_READERS[output](refuted))
    assert told.index("claim is refuted") < told.index("Leakage: marked")


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
        "2.22e-5",
        "the training algorithm (replace-one)",
        "Epsilon-bar",
    ):
        assert words in told
