"""The smaller parts of a page: gates, named records, methods, the glossary."""

from dataclasses import replace

import pytest
from report.conftest import changed
from safety.formats import Markup

import auditor
from auditor.core import Check, Status, Verdict
from auditor.report import VERDICT, cited, finding, glossary, methods_section, render, texts, view_of
from auditor.results import describe, find

pytestmark = pytest.mark.usefixtures("no_figures")


def words(page, first="<body>", last="</body>"):
    """The text of a page between two places, with single blanks."""
    part = page[page.index(first) :]
    return Markup(part[: part.index(last)]).text


# --- Gates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gate", "decision", "outcome", "said"),
    [
        ("overfitted", "auc > 0.9", "✓ Release", "✓ Passed", ""),
        ("refuted", "auc > 0.9", "✕ Do not release", "✓ Passed", "with or without a limit"),
        (
            "overfitted",
            "tpr_at_fpr.0.001 > 0.5",
            "? Revise",
            "? Not evaluable",
            "is not met: the exit code is 3",
        ),
        ("overfitted", "auc > 0.6", "✕ Do not release", "✕ Failed", ""),
    ],
)
def test_what_gates_mean(request, name, gate, decision, outcome, said):
    """The decision leads the page; each limit has its outcome, and a refuted claim stops a release whatever they say."""
    page = render([request.getfixturevalue(name).with_policy(gates=gate)])
    assert decision in words(page, '<section class="verdict', "</section>")
    shown = words(page, 'id="gates"', "</section>")
    assert f"gate {gate} {outcome}" in shown
    notes = ("with or without a limit", "is not met: the exit code is 3")
    assert [text for text in notes if text in shown] == [said] * bool(said)


# --- Who is at risk ---------------------------------------------------------------------------------


def at_risk(result):
    """The section on who is at risk, as text."""
    return words(render([result]), 'id="audit-1-risk"', "</section>")


def test_named_records(named, overfitted):
    """Records, or people, are listed with their odds as people say them, and with the labels that any of them has."""
    shown = at_risk(named)
    assert "Record Place Group Person Odds , estimated" in shown
    assert "12 training records with the same odds, not distinguished 1 — — 42 to 1" in shown
    assert "patient-7" not in shown
    assert "patient-3 2 — — 1 to 2" in shown
    assert "patient-9 3 south — over 1,000,000 to 1" in shown
    assert "not a certified probability for any one person" in shown
    assert "For the data owner only: ids that identify a person" in shown
    persons = at_risk(replace(named, data={**named.data, "unit": "person", "combined": "mean"}))
    assert "People that stand out The people in the training data with the strongest" in persons
    assert "No record is named" in at_risk(replace(named, top_records=()))
    assert 'id="audit-1-risk"' not in render([overfitted])


def test_slices(named):
    """Each slice has its size, a group of one in the singular, and each number its interval or its ceiling and delta."""
    shown = at_risk(named)
    assert (
        "ill 900 training records, 800 others 0.7 0.6 to 0.8 excludes guessing 1.1 ceiling 3.1 0.3 0.2 to 0.4"
        in shown
    )
    assert "north 1 training record, 1,100 others" in shown
    assert "lowest 1% of losses 30 training records, 10 others 75% 60% to 90%" in shown
    assert "Of all scored records, it is 75%." in shown
    none = at_risk(replace(named, slices=tuple(replace(item, compared=0) for item in named.slices)))
    assert "No slice has enough records for an interval." in none
    assert "Certified epsilon bound" not in none


def test_slices_of_a_census(named):
    """In a census the members of a slice count as draws, which is said; an older one's slices may stand out by chance."""
    assert "may be quoted. By class" in at_risk(named)
    census = replace(named, data={**named.data, "members": "census"})
    assert "Members count as draws here" in at_risk(census)
    about = (
        "every training record was scored: the bound compares this finite training set with the population"
    )
    rows = tuple(
        replace(row, assumptions=(about,), details={**row.details, "finite": True})
        for row in named.slices[0].estimates
    )
    note = at_risk(replace(census, slices=tuple(replace(item, estimates=rows) for item in named.slices)))
    assert "may be quoted" not in note
    assert "by chance alone" in note


# --- What was found -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "names", "behind", "word"),
    [
        (0.525, ["auc"], 0.0, "Leakage found"),
        (0.525, [], 0.0, "No evidence of leakage"),
        (0.475, ["auc.upper"], 0.0, "The wrong way round"),
        (0.475, [], 0.0, "No evidence of leakage"),
        (0.475, [], 0.01, "The wrong way round"),
    ],
)
def test_what_is_told_holds_with_all_that_is_looked_at(overfitted, value, names, behind, word):
    """An interval that leaves out a half is reported only where it does so at a share of the error; so are reversed groups."""
    fields = {"lower": value - 0.0196, "upper": value + 0.0196, "details": {"standard_error": 0.01}}
    area = replace(find(overfitted, "auc"), value=value, **fields)
    bound = replace(overfitted.estimate("epsilon_bound.clopper_pearson"), value=0.0, lower=0.0)
    shown = {"looks": 6, "names": names, "reversed": behind}
    data = {"n_member": 20_000, "n_nonmember": 20_000, "shown": shown}
    assert finding(replace(overfitted, estimates=(area, bound), data=data)).sign.word == word


@pytest.mark.parametrize(
    ("ceiling", "word"),
    [(5.57, "No evidence of leakage"), (0.9, "Too few to tell"), (0.0, "Too few to tell")],
)
def test_a_small_audit_is_not_called_quiet(nothing, ceiling, word):
    """A bound of 0 under a ceiling that hardly any leak would reach tells nothing, and the page says so."""
    found = changed(nothing, "epsilon_bound.clopper_pearson", details={"ceiling": ceiling})
    assert finding(found).sign.word == word


def test_an_invalid_audit_is_marked_in_the_comparison(overfitted):
    """Beside other audits, a bound of groups that cannot be compared does not stand as certified."""
    invalid = replace(overfitted, checks=(Check("shift", Status.FAIL, "The groups differ."),))
    shown = words(render([overfitted, invalid]), "The audits side by side", "</table>")
    assert shown.count("1.29 95%, delta 1e-5 ceiling 5.57") == 1
    assert shown.count("1.29 a validity check failed ceiling 5.57") == 1


# --- Methods and glossary ---------------------------------------------------------------------------


def test_every_usual_estimate_has_an_equation():
    """Each number of an audit by default has its equation and the paper that it comes from."""
    losses = auditor.Losses(member=[0.1 * i for i in range(60)], nonmember=[0.11 * i for i in range(60)])
    result = auditor.audit(
        losses, split=auditor.RandomSplit(), mixture=auditor.Mixture(max_components=2), seed=0
    )
    for item in methods_section(view_of(result))["made"]:
        assert item["equation"].text, item["rows"]
        assert item["cites"], item["rows"]


def test_only_what_was_used_is_cited(overfitted, refuted):
    """The paper on the wording is cited where a claim is worded, the one on shift where features were compared."""

    def papers(result):
        return {key for key, _ in methods_section(view_of(result))["references"]}

    assert not papers(overfitted) & {"nanayakkara", "lopezpaz", "fdp"}
    assert "nanayakkara" in papers(refuted)
    assert "lopezpaz" in papers(replace(overfitted, checks=(Check("shift", Status.OK, "alike"),)))


def test_the_glossary_tells_every_verdict(overfitted):
    """Each term has a name and a text, that of the verdict names each outcome; each number has its term and paper."""
    terms = {item["key"]: item["text"] for item in glossary()}
    assert all(item["name"] and item["text"].endswith(".") for item in glossary())
    outcomes = [VERDICT[one].word.removeprefix("Claim ").lower() for one in Verdict]
    assert [word for word in outcomes if word not in terms["verdict"].lower()] == []
    assert all(describe(item).term in texts("glossary") for item in overfitted.estimates)
    for key, paper in texts("references").items():
        assert any(str(year) in paper["full"] for year in range(1934, 2026))
        assert all(key in cited([name]) for name in paper["names"])
