"""The effect of answering less: one sentence for a decision, one table and one picture, alike in every output."""

from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor import Losses, RandomSplit
from auditor.report import audit_text, card, view_of
from auditor.results import find


def audited(shift=2.0, gap=0.3, **asked):
    """An audit of normal losses, of which labels show less, and one decimal as much."""
    rng = np.random.default_rng(0)
    member, other = rng.normal(-shift, 1, 1000), rng.normal(0, 1, 1000)
    wrong = (rng.random(1000) < 0.1) * 1.0, (rng.random(1000) < 0.1 + gap) * 1.0
    losses = Losses(member, other, policies={"digits=1": (member, other), "label": wrong})
    return auditor.audit(losses, delta=1e-5, **asked)


@pytest.fixture(scope="module")
def result():
    """One whose split supports a number about the training algorithm."""
    return audited(split=RandomSplit())


def test_every_output_says_it_alike(result):
    """The sentence and each row stand in page, Markdown, terminal and, the sentence, on the card."""
    shown = view_of(result)
    words = shown.less
    label = result.policies[-1]
    for name, of in (("auc", label), ("auc", result.policies[0])):
        assert f"{find(of, name).value:.3f}".rstrip("0") in words
    assert words.startswith("With the label alone the AUC would be 0.")
    assert " instead of 0." in words
    assert "(replace-one, delta 1e-5)" in words
    terminal, page, markdown = " ".join(audit_text(result).split()), result.to_html(), result.to_markdown()
    for text in (terminal, page, markdown, card(result)):
        assert words.replace("'", "&#39;") in text or words in text
    for row in shown.policies:
        assert f"<bdi>{row.title}</bdi>" in page
        cells = [f"{value} ({ends})" if ends else value for _, value, ends in row.cells]
        assert f"| {row.title} | {' | '.join(cells)} |" in markdown
    assert [row.title for row in shown.policies] == [
        "Full outputs",
        "Outputs rounded to 1 decimal",
        "Label alone",
    ]
    for text in (page, markdown, terminal):
        assert "Choquette-Choo et al. 2021" in text
        assert "All 3 rows hold together at 95% confidence" in text
    assert "Label-Only Membership Inference Attacks" in page


@pytest.mark.parametrize(
    ("shift", "gap", "words"),
    [
        (0.0, 0.0, "answering less has no measurable benefit"),
        (0.35, 0.18, "Answering less is not shown to help"),
    ],
)
def test_it_says_so_where_less_is_not_shown_to_help(shift, gap, words):
    """Where even the full outputs show nothing, or the intervals meet, no sentence says that labels would help."""
    found = view_of(audited(shift, gap)).less
    assert words in found
    assert "instead of" not in found


def test_an_audit_without_policies_says_nothing_of_them(result):
    """No sentence, table or reference is there; nor a sentence where a validity check failed."""
    plain = replace(result, policies=())
    for text in (plain.to_html(), plain.to_markdown(), str(plain)):
        assert "nswering less" not in text
        assert "Choquette-Choo" not in text


def test_a_name_that_is_no_policy_is_shown_as_it_is(result):
    """As of a later release, or from anyone: text and nothing else."""
    odd = replace(
        result, policies=(result.policies[0], replace(result.policies[2], policy="<b>noise</b>\u202e"))
    )
    assert "<b>noise" not in odd.to_html()
    assert "&lt;b&gt;noise" in odd.to_html()
    bare = replace(
        result, policies=tuple(replace(item, estimates=item.estimates[1:]) for item in result.policies)
    )
    assert view_of(bare).less == ""
    assert "The effect of answering less" in bare.to_html()
