"""The page as a text: complete, offline, escaped."""

import math
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

import auditor
from auditor import read_result
from auditor.core import Adjacency, Check, Claim, Comparison, InputError, Status, plain
from auditor.report import audit_text, context, render, view_of
from auditor.results import Histogram, TopRecord
from auditor.verdicts import judged, parse

DELTA = 1e-5

FIXTURES = ["overfitted", "refuted", "not_evaluable", "nothing", "hostile", "named"]


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.ids, self.headings, self.words = set(), [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note a tag."""
        self.tags.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_data(self, data):
        """Note text."""
        self.words.append(data)

    @property
    def text(self):
        """All text, with single blanks."""
        return re.sub(r"\s+", " ", " ".join(self.words))


@cache
def page_of(result):
    """The page of an audit, made once."""
    return render([result])


@pytest.fixture(params=FIXTURES)
def result(request):
    """Each audit in turn."""
    return request.getfixturevalue(request.param)


def test_size(result):
    """A report is below 1.5 MB."""
    assert len(page_of(result).encode()) < 1_500_000


def test_offline(result):
    """A report names no address but the SVG namespace, and holds no script, frame, import or event handler."""
    text = page_of(result)
    page = Page(text)
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert not page.tags & {"script", "iframe", "object", "embed", "form", "img", "audio", "video"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "@import" not in text
    assert "url(http" not in text
    assert "default-src 'none'" in text


def test_structure(result):
    """A page has one h1, no skipped heading level, unique ids, landmarks, and links that lead somewhere."""
    page = Page(page_of(result))
    assert page.headings.count(1) == 1
    assert all(below - above <= 1 for above, below in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids))
    assert {"header", "nav", "main", "footer"} <= page.tags
    named = {name for key, value in page.attributes if key == "aria-labelledby" for name in value.split()}
    links = {
        value.removeprefix("#") for key, value in page.attributes if key == "href" and value.startswith("#")
    }
    assert named | links <= set(page.ids)


def test_same_text_twice(result):
    """The same result gives the same page."""
    assert render([result]) == page_of(result)


def test_survives_json(result, tmp_path):
    """A result that was written and read gives the same page."""
    path = tmp_path / "result.json"
    result.to_json(path)
    assert render([read_result(path)]) == page_of(result)


def test_escaped(hostile):
    """Hostile text is text: no tag of it survives, and what it hides is shown."""
    text = render([hostile], title="<script>alert(2)</script>")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "⟨U+202E⟩" in text
    text.encode("utf-8")


def test_order(refuted):
    """What a hurried reader needs comes first, then the picture, who is at risk, the fit, the checks, and the proof."""
    text = Page(page_of(refuted)).text
    parts = [
        "Claim refuted",
        "recognises at least 12.3%",
        "What it means, in odds",
        "Claimed against measured",
        "Claims beside measurements",
        "How well the curves fit the losses",
        "Does this audit deserve trust?",
        "The numbers",
        "How each number was made, and what it assumes",
        "References",
        "Glossary: how to read this",
        "Provenance",
    ]
    place = text.index("Verdict on the claim")
    for part in parts:
        place = text.index(part, place)  # fails where none comes after the one before


def test_claims_are_told_once(refuted):
    """A claim beside two measurements is explained once, and a number from a rejected fit is marked as such."""
    text = Page(page_of(refuted)).text
    assert text.count("The stated epsilon 0.5 for one record added or removed") == 1
    assert text.count("It is about this model, so it can refute nothing.") == 1
    assert "point estimate, the fit is rejected" in text


def test_no_claim_no_section(overfitted):
    """Without a claim no table of claims is shown, no promise is put in odds, and what was found leads."""
    text = Page(page_of(overfitted)).text
    assert "Claims beside measurements" not in text
    assert "What the claim promises" not in text
    assert text.index("Leakage found") < text.index("No claim was given")


def test_reading_guide(nothing):
    """The guide says what epsilon* does not mean, that 0 is no evidence, what the ceiling is, and the unit once."""
    text = Page(page_of(nothing)).text
    assert "Epsilon* above the claimed epsilon is not a violation" in text
    assert "Epsilon* below it is not evidence of differential privacy" in text
    assert "A bound of 0 means “no evidence”, never “private”" in text
    assert "The ceiling" in text
    assert len(re.findall(r"\bnats\b", text)) == 1


def test_missing_values(nothing):
    """A value that is missing is a dash with its reason, and a point estimate is called one."""
    text = Page(page_of(nothing)).text
    assert "All losses are equal." in text
    assert "Not resolvable with 2000 non-member records" in text
    assert "point estimate" in text
    assert "None" not in text


def test_infinite_values(hostile):
    """Infinity is a sign, never a word of the programming language."""
    text = Page(page_of(hostile)).text
    assert "∞" in text
    assert not re.search(r"\b(inf|nan|None)\b", text)


def test_checks_say_what_to_do(refuted):
    """A check that is not fine shows its state as a word, and the page says it before the numbers."""
    text = Page(page_of(refuted)).text
    assert "31 records are too few." in text
    assert text.index("read 1 failed check: power; 1 warning: goodness of fit.") < text.index("The numbers")


def test_worst_checks_first(refuted):
    """A failed check stands above a warning, and that above one that is fine."""
    text = Page(page_of(refuted)).text
    checks = text[text.index("Does this audit deserve trust?") :]
    places = [
        checks.index(words)
        for words in ("31 records are too few.", "The Gaussian fit of the members", "tied")
    ]
    assert places == sorted(places)


def test_a_failed_validity_check_is_said_where_numbers_are_read(overfitted):
    """Curves and tables of groups that cannot be compared carry the warning, and nothing is put in odds."""
    invalid = replace(overfitted, checks=(Check("shift", Status.FAIL, "The groups differ."),))
    text = Page(render([invalid])).text
    assert text.index("Not a valid comparison") < text.index("The two groups cannot be compared")
    assert "and not what the model gives away" in text
    assert "nothing measured can be put in odds" in text
    assert "falsely accused" not in text


def test_terms_are_explained(overfitted):
    """The names of the numbers lead to the glossary."""
    text = page_of(overfitted)
    for term in ("certified", "star", "rates", "auc", "security", "advantage"):
        assert f'href="#term-{term}"' in text
        assert f'id="term-{term}"' in text


def test_references_are_numbered_as_cited(refuted):
    """Every number in brackets leads to the paper that stands at that place of the list."""
    text = page_of(refuted)
    listed = re.findall(r'<li id="audit-1-ref-(\w+)">', text)
    cites = re.findall(r'href="#audit-1-ref-(\w+)" aria-label="Reference (\d+)"', text)
    assert cites
    assert all(listed[int(number) - 1] == key for key, number in cites)
    assert set(listed) == {key for key, _ in cites}


def test_gates_are_shown(refuted):
    """Each gate stands with its outcome and its sentence, before the curves; without gates there is no such section."""
    gates = [parse("auc > 0.6"), parse("advantage > 0.9"), parse("tpr_at_fpr.0.001 > 0.1")]
    page = render([refuted], gates=judged(refuted, gates))
    text = Page(page).text
    shown = text[
        text.index("The gates of the pipeline") : text.index("An attacker who accepts more false alarms")
    ]
    assert "auc > 0.6 ✕ Stopped" in shown
    assert "advantage > 0.9 ✓ Passed" in shown
    assert "tpr_at_fpr.0.001 > 0.1 ? Not evaluable" in shown
    assert "which stops a pipeline with or without a gate" in shown
    assert 'href="#gates"' in page
    assert "gates" not in render([refuted]).split("<body>")[1]


def test_shift_advice(overfitted, refuted):
    """A reader asks how the non-members were chosen, unless the split was declared random, which rules a shift out."""
    asked = Page(page_of(overfitted)).text
    assert "Ask how the non-members were chosen." in asked
    declared = Page(page_of(refuted)).text
    assert "Ask how the non-members were chosen." not in declared
    assert "if the declaration is true, it rules out a shift" in declared


def test_claim_as_made_comes_first(refuted):
    """The claim as it was made stands above its converted form, although the converted form was judged."""
    made = Claim("epsilon", 0.5, DELTA, Adjacency.ADD_REMOVE, "stated", proven=True)
    result = replace(
        refuted,
        claims=(made, *refuted.claims),
        comparisons=(
            *refuted.comparisons,
            Comparison(made, "epsilon_star.gaussian", None, "about this model"),
        ),
    )
    rows = context(view_of(result))["claim"]["rows"]
    assert [row["claimed"] for row in rows][:2] == ["0.5", "1"]
    assert rows[0]["basis"] == "Stated."


def test_claim_shows_the_delta_of_the_measurement(refuted):
    """The measurement's delta stands in its column, marked where it differs from the claim's."""
    rows = context(view_of(refuted))["claim"]["rows"]
    assert (rows[1]["delta"], rows[1]["mark"]) == ("delta 1e-5", "not the claim's delta of 2.6e-5")
    assert (rows[2]["delta"], rows[2]["mark"]) == ("", "")
    same = replace(refuted.claims[0], delta=DELTA)
    result = replace(refuted, comparisons=(replace(refuted.comparisons[1], claim=same),))
    rows = context(view_of(result))["claim"]["rows"]
    assert ("delta 1e-5", "") in [(row["delta"], row["mark"]) for row in rows]


def test_one_notation(refuted):
    """A quoted text spells a delta as the page does."""
    reason = "at least 4.35 (delta 3.72e-05, replace-one)"
    result = replace(refuted, comparisons=(replace(refuted.comparisons[0], reason=reason),))
    result = replace(result, data=dict(result.data) | {"claim": "epsilon 2.01352 at delta 1e-05"})
    text = Page(page_of(result)).text
    assert "delta 3.72e-5, replace-one" in text
    assert "What was claimed: epsilon 2.01352 at delta 1e-5 " in text
    assert "e-0" not in text


def test_caption_matches_the_figure(refuted, nothing):
    """The caption speaks of a shaded part only where one is drawn, and of a fit only where there is one."""
    assert "in the shaded part, only the fit goes on" in Page(page_of(refuted)).text
    coarse = replace(nothing, data=dict(nothing.data) | {"n_nonmember": 100})
    assert "shaded part" not in Page(render([coarse])).text
    assert "only the fit goes on" not in Page(page_of(nothing)).text


_LONE = "model \udcff and \ud800"


def test_lone_surrogates(hostile):
    """A name that cannot be encoded is shown by its numbers, on the page and in the terminal."""
    claim = replace(hostile.claims[0], method=_LONE, note=_LONE, metric=_LONE)
    result = replace(
        hostile,
        data=dict.fromkeys(hostile.data, _LONE),
        claims=(claim,),
        comparisons=(replace(hostile.comparisons[0], claim=claim, reason=_LONE),),
        checks=(replace(hostile.checks[0], name=_LONE, message=_LONE),),
        histograms=tuple(replace(item, scale=_LONE) for item in hostile.histograms),
        provenance={"source": _LONE, "command": [_LONE], "versions": {_LONE: _LONE}},
    )
    for text in (
        render([result], title=_LONE),
        render([result, result]),
        audit_text(result),
    ):
        text.encode("utf-8")
        assert "⟨U+DCFF⟩" in text


_JUNK = (None, "x", -1, 0, math.inf, math.nan, True, [], [None, "x"], {}, {"q95": "x", "fpr": []}, 10**400)


@pytest.mark.parametrize("junk", _JUNK, ids=lambda junk: repr(junk)[:20])
def test_odd_content(refuted, junk):
    """A result that others wrote, with anything in any place, is rendered without an error."""
    spoiled = [
        replace(
            item,
            value=junk,
            lower=junk,
            upper=junk,
            confidence=junk,
            details=dict.fromkeys(item.details, junk),
        )
        for item in refuted.estimates
    ]
    partly = [replace(item, details=dict.fromkeys(item.details, junk)) for item in refuted.estimates]
    fit = [
        replace(item, details={"curve_gap": junk, "fit": dict.fromkeys(("member", "rejected"), junk)})
        for item in spoiled
    ]
    claims = tuple(replace(item, value=junk, delta=junk, note=junk) for item in refuted.claims)
    for estimates in (spoiled, partly, fit):
        result = replace(
            refuted,
            data=dict.fromkeys(refuted.data, junk),
            estimates=tuple(estimates),
            claims=claims,
            comparisons=tuple(replace(item, claim=claims[0], reason=junk) for item in refuted.comparisons),
            checks=tuple(replace(item, message=junk, details=junk) for item in refuted.checks),
            curves=tuple(replace(item, fpr=(junk, 0.1, 0.5, junk)) for item in refuted.curves),
            histograms=tuple(replace(item, member=(junk,) * len(item.member)) for item in refuted.histograms),
            provenance=dict.fromkeys(refuted.provenance, junk),
            top_records=(TopRecord(junk, junk, junk, junk, junk, junk),),
        )
        assert context(view_of(result))
        assert audit_text(result)
    assert render([result])
    assert context(view_of(replace(result, data=junk, provenance=junk)))


def test_empty_content(refuted):
    """A result without data, without points and without records is rendered, with what it lacks said."""
    empty = Histogram("loss", (), (), ())
    no_records = Histogram("loss", (0.0, 1.0), (0,), (0,), (0.0,), (0.0,), {"member_fitted": ()})
    curves = tuple(replace(item, fpr=(), tpr=()) for item in refuted.curves)
    for histograms in ((empty,), (no_records,), (empty, no_records)):
        result = replace(refuted, data={}, provenance={}, curves=curves, histograms=histograms)
        text = Page(page_of(result)).text
        assert "This result holds no trade-off curve." in text
        assert audit_text(result)


def test_several(overfitted, refuted, nothing):
    """Several audits share a page: a table that compares them, a section for each, and no id twice."""
    text = render([overfitted, refuted, nothing, refuted], title="Spring audits")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert page.headings.count(1) == 1
    assert "Comparison of 4 audits" in page.text
    table = page.text[page.text.index("side by side") : page.text.index("different ceilings")]
    assert table.count("fit rejected") == 2
    assert page.text.count("Glossary") == 2  # the link and the section
    assert len(text.encode()) < 1_500_000
    for key in ("audit-1", "audit-2", "audit-3", "audit-4"):
        assert f'href="#{key}"' in text


def test_nothing_to_show():
    """A report on no result is refused."""
    with pytest.raises(InputError, match="at least one result, got 0"):
        render([])


def test_context_is_plain(result):
    """What the page is filled from is made of strings, lists and dictionaries alone."""

    def check(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and check(item) for key, item in value.items())
        if isinstance(value, list | tuple):
            return all(check(item) for item in value)
        return value is None or type(value) is str

    assert check(context(view_of(result)))


def test_context_changes_nothing(refuted):
    """Formatting a result leaves it as it was."""
    before = plain(refuted.to_dict())
    context(view_of(refuted))
    assert plain(refuted.to_dict()) == before


def test_the_comparison_says_what_its_numbers_are_about():
    """The table of several audits names subject, confidence and delta, like every other number on the page."""
    draws = np.random.default_rng(0)
    losses = auditor.Losses(member=draws.normal(-1, 1, 400), nonmember=draws.normal(0, 1, 400))
    page = render([auditor.audit(losses, delta=1e-5, confidence=0.9, model=name) for name in ("a", "b")])
    shown = page[
        page.index("The audits side by side") : page.index("Bounds of audits with different ceilings")
    ]
    assert shown.count("90%, delta 1e-5") == 2
    assert "describe each model, not its training algorithm" in shown
