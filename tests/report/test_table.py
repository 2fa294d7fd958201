"""The same for a terminal."""

import numpy as np

from auditor.pipeline import audit
from auditor.report import table
from auditor.values import Losses


def test_lines(refuted):
    """The verdict comes first, then its meaning, the numbers, and the checks that are not fine."""
    text = table.text(refuted, width=120)
    assert text.startswith("✕ Claim refuted\n")
    assert "recognises at least 12.3%" in text
    assert text.index("Epsilon*, Gaussian fit") < text.index("✕ Failed Power: 31 records")
    assert "Direction" not in text


def test_every_number_says_what_it_is_about(refuted):
    """Subject and delta stand beside each number, on a terminal of 80 columns too."""
    for width in (80, 120):
        lines = table.text(refuted, width=width).splitlines()
        head = next(line for line in lines if "Quantity" in line)
        assert "Delta" in head
        assert "About" in head
        bound = next(line for line in lines if "Certified" in line and "1e-5" in line)
        assert bound.endswith("model")


def test_huge_losses():
    """Losses around 1e300 on either side of 0 are audited and rendered without a warning."""
    rng = np.random.default_rng(0)
    losses = Losses(member=rng.normal(-1e300, 1e299, 60), nonmember=rng.normal(1e300, 1e299, 60))
    result = audit(losses, delta=1e-5)
    assert "AUC" in table.text(result)
    assert "<svg" in result.to_html()


def test_width(refuted):
    """No line is longer than the terminal is wide."""
    assert max(len(line) for line in table.text(refuted, width=80).splitlines()) <= 80


def test_color(refuted):
    """Colour codes appear only when they are asked for."""
    assert "\x1b[" not in table.text(refuted)
    assert "\x1b[" in table.text(refuted, color=True)


def test_hostile(hostile):
    """Text that would steer a terminal is shown, not obeyed."""
    text = table.text(hostile, width=100)
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "<script>" in text


def test_markup_is_text(refuted):
    """Square brackets and colons in a name are not instructions to the table."""
    from dataclasses import replace

    check = replace(refuted.check("power"), message="[bold red]:smile:[/nope] 3 records")
    assert "[bold red]:smile:[/nope] 3 records" in table.text(replace(refuted, checks=(check,)))
