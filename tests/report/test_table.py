"""The same for a terminal."""

from dataclasses import replace

import numpy as np
import pytest

from auditor import audit
from auditor.core import Losses
from auditor.report import audit_text, context, gates_first, view_of
from auditor.verdicts import check_gates


def test_lines(refuted):
    """The model is named first; then come the verdict, what was found, the numbers, and the checks that are not fine."""
    text = audit_text(refuted, width=120)
    assert text.startswith("Privacy audit: sentiment-dp\n✕ Claim refuted\n")
    assert "recognises at least 12.3%" in text
    assert text.index("Epsilon*, Gaussian fit") < text.index("✕ Failed Power: 31 records")
    assert "Direction" not in text


def test_every_number_says_what_it_is_about(refuted):
    """Subject and delta stand beside each number, on a terminal of 80 columns too."""
    for width in (80, 120):
        lines = audit_text(refuted, width=width).splitlines()
        head = next(line for line in lines if "Quantity" in line)
        assert "Delta" in head
        assert "About" in head
        bound = next(line for line in lines if "Certified" in line and "1e-5" in line)
        assert bound.endswith("model")


def test_what_was_found_leads_without_a_claim(overfitted, refuted):
    """Without a claim what was found comes before it, as on the page; with one the verdict on it does."""
    text = audit_text(overfitted)
    assert text.index("Leakage found") < text.index("No claim to judge")
    text = audit_text(refuted)
    assert text.index("Claim refuted") < text.index("Leakage found")


def test_gates_that_stop_are_told_first(overfitted):
    """How many gates stop the pipeline stands above what was found; gates that pass do not."""
    gates = check_gates(overfitted, ["auc > 0.1", "auc > 0.99", "epsilon_star.mixture > 1"])
    text = audit_text(overfitted, gates=gates)
    told = "✕ 2 of 3 gates stop the pipeline: 1 failed and 1 could not be evaluated.\n"
    assert text.index(told) < text.index("Leakage found")
    assert "pipeline" not in audit_text(overfitted, gates=gates[1:2])


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


@pytest.mark.parametrize("width", [30, 40, 60, 79])
def test_narrow_terminals_cut_no_number(refuted, width):
    """Below 80 columns each number has a paragraph with its interval, confidence, delta and subject, and none is cut."""
    lines = audit_text(refuted, width=width).splitlines()
    assert max(map(len, lines)) <= width
    told = " ".join(" ".join(lines).split())
    for row in (row for group in context(view_of(refuted))["groups"] for row in group["rows"]):
        assert f"{row['title']}: {row['value']} (" in told
    assert "at least 1.31, confidence 95%, ceiling" in told
    assert "delta 1e-5, about the training algorithm)" in told
    assert "…" not in told


def test_settings_of_a_file_are_told(refuted):
    """What a file set for the audit stands at the end: a gate may be among it."""
    config = {"file": "auditor.toml", "table": "[audit]", "settings": {"fail-if": ["auc > 0.6"], "seed": 3}}
    told = audit_text(replace(refuted, provenance={**refuted.provenance, "config": config}), width=200)
    assert told.endswith('Settings: [audit] of auditor.toml: fail-if = ["auc > 0.6"], seed = 3\n')
    assert "Settings" not in audit_text(refuted)


def test_huge_losses():
    """Losses around 1e300 on either side of 0 are audited and rendered without a warning."""
    rng = np.random.default_rng(0)
    losses = Losses(member=rng.normal(-1e300, 1e299, 60), nonmember=rng.normal(1e300, 1e299, 60))
    result = audit(losses, delta=1e-5)
    assert "AUC" in audit_text(result)
    assert "<svg" in result.to_html()


def test_width(refuted):
    """No line is longer than the terminal is wide."""
    assert max(len(line) for line in audit_text(refuted, width=80).splitlines()) <= 80


def test_color(refuted):
    """Colour codes appear only when they are asked for."""
    assert "\x1b[" not in audit_text(refuted)
    assert "\x1b[" in audit_text(refuted, color=True)


def test_hostile(hostile):
    """Text that would steer a terminal is shown, not obeyed."""
    text = audit_text(hostile, width=100)
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "<script>" in text


def test_markup_is_text(refuted):
    """Square brackets and colons in a name are not instructions to the table."""
    check = replace(refuted.check("power"), message="[bold red]:smile:[/nope] 3 records")
    assert "[bold red]:smile:[/nope] 3 records" in audit_text(replace(refuted, checks=(check,)))
