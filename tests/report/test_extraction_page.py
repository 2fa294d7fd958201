"""Secrets that sampling writes, in every output: the share, its interval and the difference, and nothing of it elsewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor.report.figures.gallery import alt, figure
from auditor.report.rows import extraction_rows


@pytest.fixture(scope="module")
def result():
    """An audit of 300 secrets in each group, of which members' are likely."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(rng.gamma(3, 2, 300), rng.gamma(8, 3, 300), attacks={"extraction": "run"})
    return auditor.audit(losses, delta=1e-5, model="writer")


def shown(result, tries=100):
    """The share of members, and the least difference, as the numbers of the result are shown."""
    row, beyond = result[f"extraction.{tries}"], result[f"extraction_beyond.{tries}"]
    percent = auditor.core.numbers.percent
    return percent(row.value), f"at least {percent(beyond.lower, toward='down')}"


def test_every_output_states_the_share_and_the_difference(result, tmp_path):
    """Page, terminal and Markdown have the share within 100 tries with its difference from the others."""
    page = Path(result.to_html(tmp_path / "page.html")).read_text(encoding="utf-8")
    outputs = [re.sub(r"<[^>]+>", " ", page), str(result), result.to_markdown()]
    for text in outputs:
        words = " ".join(text.split())
        assert all(number in words for number in shown(result)), words[:400]
        assert "Within 100 tries, sampling writes" in words
    assert 'href="#audit-1-extraction"' in page


def test_the_table_has_a_row_for_each_number_of_tries(result):
    """Five rows, the shares of members ascending, with others' shares, differences and records with an even chance."""
    rows = extraction_rows(result)
    assert [row.tries for row in rows] == ["1", "10", "100", "1,000", "10,000"]
    shares = [float(row.members[0].rstrip("%")) for row in rows]
    assert shares == sorted(shares)
    assert (rows[2].members[0], rows[2].beyond) == shown(result)
    assert rows[0].likely == ("—", "")  # of fewer than 10 records
    assert all(row.likely[0].endswith("%") for row in rows[1:])


def test_the_figure_draws_both_groups_with_their_intervals(result):
    """Two lines of five marks with an interval each, described in words with the same numbers."""
    (panel,) = figure(result, "extraction").axes
    marks = [line.get_xydata() for line in panel.get_lines()]
    assert [points.shape for points in marks] == [(5, 2), (5, 2)]
    np.testing.assert_allclose(marks[0][:, 1], [result[f"extraction.{10**k}"].value for k in range(5)])
    assert shown(result)[0] in alt(result, "extraction")


def test_the_annex_says_what_was_extracted(result, tmp_path):
    """The row of extraction is no longer "not run": it has the share within 100 tries; the loss was an attack too."""
    page = Path(result.to_html(tmp_path / "page.html")).read_text(encoding="utf-8")
    annex = " ".join(re.sub(r"<[^>]+>", " ", page[page.index('id="audit-1-annex"') :]).split())
    assert f"Within 100 tries {shown(result)[0]}" in annex
    assert result.data["attacks"]["loss"] == "run"


def test_other_audits_have_nothing_of_it(tmp_path):
    """An audit of losses has no section, no figure and no sentence on extraction."""
    rng = np.random.default_rng(0)
    other = auditor.audit(auditor.Losses(rng.normal(size=100), rng.normal(size=100)), delta=1e-5)
    assert extraction_rows(other) == ()
    assert figure(other, "extraction") is None
    page = Path(other.to_html(tmp_path / "page.html")).read_text(encoding="utf-8")
    assert "audit-1-extraction" not in page
    assert "sampling writes" not in page + str(other)


def test_a_result_comes_back_with_its_shares(result, tmp_path):
    """Written and read again the rows are the same, and a row of another kind in the details is left out."""
    path = result.save(tmp_path / "result.json")
    assert extraction_rows(auditor.read_result(path)) == extraction_rows(result)
