"""The page as a text: complete, offline, escaped."""

import math
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from safety.formats import Markup as Page, html as safe

import auditor
from auditor import read_result
from auditor.core import Adjacency, Check, Claim, Comparison, Status
from auditor.curves import Histogram
from auditor.report import audit_text, render, view_of

DELTA = 1e-5

FIXTURES = ["overfitted", "refuted", "not_evaluable", "nothing", "hostile", "named"]


@cache
def page_of(result):
    """The page of an audit, made once."""
    return render([result])


def headings_of(page):
    """The levels of its headings."""
    return [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]


@pytest.fixture(params=FIXTURES)
def result(request):
    """Each audit in turn."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("result", ["refuted", "hostile"], indirect=True)
def test_the_same_page_each_time(result, tmp_path):
    """The same result gives the same page, below 1.5 MB, also when it was written and read."""
    if result.curves and isinstance(
        result.data["shown"], dict
    ):  # made by hand, with a point beyond its curves
        shown = {**result.data["shown"], "point": None}
        result = replace(result, data={**result.data, "shown": shown})
    result.to_json(tmp_path / "result.json")
    assert render([result]) == render([read_result(tmp_path / "result.json")]) == page_of(result)
    assert len(page_of(result).encode()) < 1_500_000


def test_offline(result):
    """A report names no address but the SVG namespace, and holds nothing active; its policy lets nothing in."""
    text = page_of(result)
    safe(text)
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


def test_structure(result):
    """A page has one h1, no skipped heading level, unique ids, landmarks, and links that lead somewhere."""
    page = Page(page_of(result))
    headings, ids = headings_of(page), page.values("id")
    assert headings.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(headings))
    assert len(ids) == len(set(ids))
    assert {"header", "nav", "main", "footer", "title"} <= set(page.tags)
    assert page.values("lang")[0] == "en"
    named = {name for value in page.values("aria-labelledby") for name in value.split()}
    links = {value[1:] for value in page.values("href") if value.startswith("#")}
    assert named | links <= set(ids)


ONCE = [
    ("overfitted", "Claims beside measurements", 0),
    ("overfitted", "What the claim promises", 0),
    ("nothing", "A bound of 0 means “no evidence”, never “private”", 1),
    ("nothing", "None", 1),  # of "None shown", a severity
    ("hostile", "nan ", 0),
    ("hostile", " inf ", 0),
]


@pytest.mark.parametrize(("name", "words", "times"), ONCE)
def test_what_is_told_once_or_never(request, name, words, times):
    """A claim and the guide to reading appear once; missing parts, and words of Python, never."""
    assert Page(page_of(request.getfixturevalue(name))).text.count(words) == times


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refuted", "point estimate, the fit is rejected"),
        ("nothing", "The ceiling"),
        ("nothing", "All losses are equal."),
        ("nothing", "Not resolvable with 2000 non-member records"),
        ("hostile", "∞"),
    ],
)
def test_a_missing_value_has_its_reason(request, name, words):
    """A value that is missing or infinite, and one from a rejected fit, is marked as such."""
    assert words in Page(page_of(request.getfixturevalue(name))).text


def test_a_failed_validity_check_is_said_where_numbers_are_read(overfitted):
    """Curves and tables of groups that cannot be compared carry the warning, and nothing is put in odds."""
    invalid = replace(overfitted, checks=(Check("shift", Status.FAIL, "The groups differ."),))
    text = Page(render([invalid])).text
    assert text.index("Not a valid comparison") < text.index("The two groups cannot be compared")
    assert "not leakage of the model" in text
    assert "What it means, in odds" not in text
    assert "falsely accused" not in text


def test_references_are_numbered_as_cited(refuted):
    """Every number in brackets leads to the paper that stands at that place of the list."""
    text = page_of(refuted)
    listed = re.findall(r'<li id="audit-1-ref-(\w+)">', text)
    cites = re.findall(r'href="#audit-1-ref-(\w+)" aria-label="Reference (\d+)"', text)
    assert cites
    assert all(listed[int(number) - 1] == key for key, number in cites)
    assert set(listed) == {key for key, _ in cites}


def test_claim_as_made_comes_first(refuted):
    """The claim as it was made stands above its converted form, although the converted form was judged."""
    made = Claim("epsilon", 0.5, DELTA, Adjacency.ADD_REMOVE, "stated", proven=True)
    beside = (*refuted.comparisons, Comparison(made, "epsilon_star.gaussian", None, "about this model"))
    result = replace(refuted, claims=(made, *refuted.claims), comparisons=beside)
    assert [line.claimed for line in view_of(result).claims][:2] == ["0.5", "1"]
    assert "Stated." in Page(page_of(result)).text


def test_claim_shows_the_delta_of_the_measurement(refuted):
    """The measurement's delta stands in its column, marked where it differs from the claim's."""
    lines = view_of(refuted).claims
    assert [line.deltas for line in lines[1:3]] == [("1e-5", "2.6e-5"), ("", "")]
    assert "delta 1e-5, not the claim's delta of 2.6e-5" in re.sub(" (?=,)", "", Page(page_of(refuted)).text)
    same = replace(refuted.claims[0], delta=DELTA)
    result = replace(refuted, comparisons=(replace(refuted.comparisons[1], claim=same),))
    assert ("1e-5", "") in [line.deltas for line in view_of(result).claims]


_JUNK = (None, "x", -1, math.inf, [None, "x"], {"q95": "x", "fpr": []}, 10**30)


@pytest.mark.parametrize("junk", _JUNK, ids=lambda junk: repr(junk)[:20])
def test_odd_content(refuted, junk, request, tmp_path):
    """A result that others wrote, with anything in any place of its open objects, is rendered without an error."""
    odd = {"curve_gap": junk, "fit": dict.fromkeys(("member", "rejected"), junk)}
    made = []
    for details in (lambda item: dict.fromkeys(item.details, junk), lambda _: odd):
        spoiled = replace(
            refuted,
            data=dict.fromkeys(refuted.data, junk) | {"disclosure": "public"},
            estimates=tuple(replace(item, details=details(item)) for item in refuted.estimates),
            checks=tuple(replace(item, details=odd) for item in refuted.checks),
            provenance=dict.fromkeys(refuted.provenance, junk),
        )
        spoiled.to_json(tmp_path / "r.json")
        result = auditor.read_result(tmp_path / "r.json")
        assert audit_text(result)
        made.append(result)
    assert render([result])
    request.getfixturevalue("no_figures")
    for result in made:
        assert render([result, replace(result, data={}, provenance={})])


def test_empty_content(refuted):
    """A result without data, without points and without records is rendered, with what it lacks said."""
    no_records = Histogram("loss", (0.0, 1.0), (0,), (0,), (0.0,), (0.0,), {"member_fitted": ()})
    curves = tuple(replace(item, fpr=(), tpr=()) for item in refuted.curves)
    for histograms in ((), (no_records,)):
        result = replace(refuted, data={}, provenance={}, curves=curves, histograms=histograms)
        text = Page(page_of(result)).text
        assert "This result holds no trade-off curve." in text
        assert audit_text(result)


def test_several(overfitted, refuted, nothing):
    """Several audits share a page: a table that compares them, a section for each, and no id twice."""
    text = render([overfitted, refuted, nothing, refuted], title="Spring audits")
    page = Page(text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert headings_of(page).count(1) == 1
    assert "Comparison of 4 audits" in page.text
    table = page.text[page.text.index("side by side") : page.text.index("different ceilings")]
    assert table.count("fit rejected") == 2
    assert page.text.count("Glossary") == 2  # the link and the section
    assert len(text.encode()) < 1_500_000
    for key in ("audit-1", "audit-2", "audit-3", "audit-4"):
        assert f'href="#{key}"' in text


def test_the_comparison_says_what_its_numbers_are_about():
    """The table of several audits names subject, confidence and delta, like every other number on the page."""
    draws = np.random.default_rng(0)
    losses = auditor.Losses(member=draws.normal(-1, 1, 400), nonmember=draws.normal(0, 1, 400))
    page = render([auditor.audit(losses, delta=1e-5, confidence=0.9, model=name) for name in ("a", "b")])
    shown = page.partition("The audits side by side")[2].partition("Bounds of audits with different")[0]
    assert shown.count("90%, delta 1e-5") == 2
    assert "describe each model, not its training algorithm" in shown
