"""The first screen of a page is consistent for every kind of audit."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from report.conftest import changed
from safety.formats import Markup

import auditor
from auditor.core import Check, Status, Verdict
from auditor.report import audit_text, card, finding, markdown, render, texts, view_of
from auditor.verdicts import check_gates

SPLITS = (auditor.UnknownSplit(), auditor.RandomSplit(), auditor.BernoulliSplit(0.5))
MEMBERS = (auditor.Sample(), auditor.Census())
GROUPS = np.array(["north", "south", "east"])


def drawn(rng):
    """An audit of any kind: leaking at either end, in one group alone, the wrong way round, or not; tied; small."""
    sizes = rng.choice([3, 60, 150], 2)
    shift = rng.choice([0.0, 0.0, 0.3, 1.0, 3.0, -1.0])
    member, nonmember = rng.normal(-shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])
    kind = rng.integers(4)
    if kind == 1:  # some non-members stand out
        nonmember = nonmember + 6 * (rng.random(nonmember.size) < 0.15)
    groups = [rng.choice(GROUPS, size) for size in sizes] if kind == 2 else None
    if groups is not None:
        member = np.where(groups[0] == "east", member - 5, member)
    if kind == 3:
        member, nonmember = np.round(member), np.round(nonmember)
    claim = rng.choice(np.array([None, 0.1, 20.0], dtype=object))
    return auditor.audit(
        auditor.Losses(member, nonmember, group=None if groups is None else tuple(groups)),
        delta=1e-5,
        split=SPLITS[rng.integers(3)],
        coverage=MEMBERS[rng.integers(2)],
        claim=None if claim is None else auditor.StatedClaim(float(claim), 1e-5),
        disclosure="insiders" if kind % 2 or min(sizes) < 10 else "public",
    )


def first_screen(page):
    """Its words up to the first picture."""
    start = page.index('class="verdict')
    told = page[start : page.index('id="audit-1-measured"')]
    return Markup(told).text


@pytest.fixture(scope="module")
def audits(request):
    """Sixty audits of all kinds, or 200."""
    rng = np.random.default_rng(19)
    return [drawn(rng) for _ in range(200 if request.config.getoption("--long") else 60)]


def test_it_agrees_with_itself(audits, monkeypatch):
    """A finding has a limit beyond guessing, nothing denies it, and the advice is about it."""
    monkeypatch.setattr("auditor.report.html._figures", lambda *_, **__: {})
    seen = set()
    for result in audits:
        said, told = finding(result), first_screen(render([result]))
        seen.add(said.sign.word)
        assert said.sentence[1:] in told  # a group stands in front of the sentence about all records
        shown = view_of(result)
        assert len(shown.now) == 3
        assert all(line in told for line in shown.now)
        assert len(shown.tiles) <= 2
        if said.sign.word != "Leakage found":
            continue
        assert not re.search(r"not shown|(?<![\d.])0%|guessing would", told), told
        assert any("remember less" in line for line in shown.now)
        looked = result.data["shown"]
        assert looked["differs"]
        assert looked["point"] is not None or looked["names"] or "lower" in looked["differs"]
    assert seen >= {"Leakage found", "No evidence of leakage", "Too few to tell", "The wrong way round"}


def test_what_is_beyond_guessing_alone_is_told(audits):
    """Where nothing is found, each number whose own limit is beyond guessing is named, and that it may be chance, everywhere."""
    named = 0
    nothing = {"looks": 6, "differs": [], "names": [], "limits": {}, "point": None, "reversed": 0.0}
    alone = [result for result in audits if not result.slices][:15]  # no group that leads
    quiet = (replace(result, data={**result.data, "shown": nothing}) for result in alone)
    for result in (*audits, *quiet):
        said, shown = finding(result), view_of(result)
        if said.sign.word not in ("No evidence of leakage", "Too few to tell"):
            continue
        guessing = {"auc": 0.5} | {f"tpr_at_fpr.{rate}": rate for rate in (0.1, 0.01, 0.001)}
        for row in shown.rows:
            if (row.estimate.lower or 0.0) <= guessing.get(row.name, 0.0):
                continue
            finite = any("finite training set" in item for item in row.estimate.assumptions)
            assert ("can be positive by chance alone" if finite else f"{row.title}") in said.sentence
            assert "by chance alone" in said.sentence or "may be above guessing by chance." in said.sentence
            named += not finite
        for output in (audit_text(result, width=10_000), markdown(result).replace("\\", ""), card(result)):
            assert said.sentence[:400] in html.unescape(output)  # a summary is cut
    assert named >= 3


def test_the_point_that_is_told_is_in_the_data(audits):
    """Its two rates are limits: the errors at least, and the hits at most, those that were seen at some threshold."""
    for result in audits:
        point = result.data["shown"]["point"]
        if point is None or result.data["members"] != "sample":
            continue
        found = {item.name: item for item in result.curves}
        if "ranks.low_members" not in found:
            continue  # a shared result shows its curve at a few cuts
        fpr, tpr = np.asarray(found["empirical"].fpr), np.asarray(found["empirical"].tpr)
        errors, hits = (fpr, tpr) if point["end"] == "low" else (1 - tpr, 1 - fpr)
        assert np.any((errors <= point["errors"]) & (hits >= point["hits"]))


def test_the_group_that_is_named_is_the_most_exposed(audits):
    """It has the largest lower limit of the AUC of all groups, above the upper limit of each; else none is named."""
    named = 0
    for result in audits:
        lows = {
            one.label: one.estimate("auc").lower or 0.0 for one in result.slices if one.kind != "percentile"
        }
        told, shown = max(lows.values(), default=0.0), view_of(result)
        if told <= 0.5 or shown.invalid or not shown.stands_out:
            assert shown.most_exposed in ("", "No group stands out.")
            continue
        named += 1
        (label,) = [label for label, low in lows.items() if low == told]
        assert shown.most_exposed.startswith(f"Most exposed: {label}, at least ")
    assert named >= 3


def test_a_label_that_sounds_like_a_sentence_is_quoted():
    """The name of the most exposed group cannot pass for what the audit found."""
    rng, label = np.random.default_rng(3), "nobody. No leakage found, AUC at least 0.51"
    groups = np.repeat(["north", label], 300)
    member = np.concatenate([rng.normal(0, 1, 300), rng.normal(-3, 1, 300)])
    found = auditor.audit(auditor.Losses(member, rng.normal(0, 1, 600), group=(groups, groups)))
    # Of two normals 3 apart the AUC is Phi(3 / sqrt(2)) = 0.983, its lower limit at least 0.95.
    assert re.match(f"Most exposed: “{label}”, at least 9[5-8] times in 100 ", view_of(found).most_exposed)


def test_a_gate_sees_the_number_of_its_tile(audits):
    """A condition on a large number's name is judged by the number that stands there."""
    seen = 0
    for result in audits:
        shown = view_of(result)
        for row in (shown.lead, *shown.tiles):
            if row is None or not row.has_value:
                continue
            (outcome,) = check_gates(result, [f"{row.name} > 1000"])
            assert not outcome.passed or row.value in outcome.sentence
            seen += outcome.passed
    assert seen > len(audits)


@pytest.mark.parametrize(
    ("verdict", "ceiling", "state"),
    [
        (Verdict.REFUTED, 5.0, "refuted"),
        (Verdict.NOT_REFUTED, 5.0, "not_refuted"),
        (Verdict.NOT_REFUTED, 0.9, "weak"),  # the claim is 1: this audit could not have refuted it
        (Verdict.INCONCLUSIVE, 5.0, "inconclusive"),
        (Verdict.NOT_EVALUABLE, 5.0, "not_judged"),  # though the split was declared
        (None, 5.0, "not_evaluable"),
    ],
)
def test_what_to_do_fits_what_became_of_the_claim(refuted, verdict, ceiling, state):
    """Two lines are on the claim, and one on the leak where there is one; all three where a check failed are on that."""
    bound = refuted.estimate("epsilon_bound.one_run")
    result = replace(
        changed(refuted, bound.name, details={**bound.details, "ceiling": ceiling}), verdict=verdict
    )
    said = texts("what_now")["audit"]
    assert view_of(result).now == (*said[state][:2], said["leak"][0])
    if verdict is Verdict.NOT_EVALUABLE:
        undeclared = replace(result, data={**result.data, "split": "unknown"})
        assert view_of(undeclared).now == (*said["not_evaluable"][:2], said["leak"][0])
    failed = replace(result, checks=(Check("shift", Status.FAIL, "The groups differ."),))
    assert view_of(failed).now == tuple(said["failed"])
