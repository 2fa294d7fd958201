"""The output for a terminal: every number within its width, and text that steers nothing."""

import textwrap
from dataclasses import replace

import pytest

from auditor.report import audit_text, view_of
from auditor.results import METRICS


@pytest.mark.parametrize("width", [30, 40, 60, 79, 80, 120])
def test_narrow_terminals_cut_no_number(refuted, width):
    """No line is wider than the terminal; below 80 columns each number has a paragraph, and none is cut."""
    lines = audit_text(refuted, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert ("\x1b[" in audit_text(refuted, width=width, color=True)) > ("\x1b[" in "".join(lines))
    if width >= 80:
        bound = next(line for line in lines if "Certified" in line and "1e-5" in line)
        assert bound.endswith("model")
        return
    told = " ".join(" ".join(lines).split())
    for row in view_of(refuted).in_order:
        assert f"{row.title}: {row.value} (" in told
    assert "1.31 (certified at 95% confidence, ceiling 5.31; about the training algorithm" in told
    assert "…" not in told


def test_settings_of_a_file_are_told(refuted):
    """The settings from a file come before the last line: a gate may be among them."""
    config = {"file": "auditor.toml", "table": "[audit]", "settings": {"fail-if": ["auc > 0.6"], "seed": 3}}
    told = audit_text(replace(refuted, provenance={**refuted.provenance, "config": config}), width=200)
    assert told.splitlines()[-2] == 'Settings: [audit] of auditor.toml: fail-if = ["auc > 0.6"], seed = 3'
    assert "Settings" not in audit_text(refuted)


def test_no_name_takes_three_lines():
    """At 80 columns the name of every number fits into two lines of the 24 that its column has."""
    assert [item.title for item in METRICS if len(textwrap.wrap(item.title, 24)) > 2] == []
