"""The page of a comparison, its cell in a notebook, and its lines in a terminal."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from safety.formats import Markup as Page

from auditor.comparison import compare_audits
from auditor.report import comparison_text


@pytest.fixture(scope="module")
def whole(six):
    """A comparison with a baseline and a landscape, and its page."""
    found = compare_audits(six, baseline=1)
    return found, Page(found.to_html())


def test_the_only_script_is_the_one_the_policy_names(whole):
    """The policy lets nothing in, and the one script is allowed by its own hash."""
    _, page = whole
    (policy,) = [attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs]
    assert "default-src 'none'" in policy
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not [
        attrs for _, attrs in page.elements if "src" in attrs or any(name.startswith("on") for name in attrs)
    ]


def test_every_result_and_its_provenance_is_on_the_page(whole, six):
    """Each audit's model, hash and time of creation are there, and what changed since the baseline."""
    found, page = whole
    for result in six:
        for words in (result.data["model"], result.provenance["input_sha256"], result.provenance["created"]):
            assert words in page.text
    assert found.changes[-1].headline.confidence is not None
    worse = [item for item in found.changes if item.headline.verdict == "worse"]
    assert f"{len(worse)} of 5 audits show more leakage than the baseline, 1. private1." in page.text
    assert len(worse) >= 2
    assert "not a confidence interval" in page.text
    assert "All intervals are widened to hold simultaneously at 95% confidence" in page.text
    assert "All intervals hold at once, at the confidence beside them." in page.text
    assert "by chance" not in page.text[: page.text.index("Pareto frontier:")]
    assert found.to_html() == found.to_html()


STAR = "epsilon_star.gaussian"


def dated(result, day):
    """The same result, made on that day."""
    return replace(result, provenance={**result.provenance, "created": f"2026-01-0{day}T00:00:00+00:00"})


def pages(six, trained, valued):
    """Comparisons that have a sentence, and one like each that has not."""
    details = {"conditional": True, "ceiling": 3.0}
    bounds = compare_audits([valued(item, BOUND, details=details) for item in six[:3]], measure=BOUND)
    later = [dated(six[0], 1), dated(six[5], 2)]
    mixed = [*six, trained(0.2, 9, "other", 0.5, delta=1e-3)]
    models = "describe the models that were audited, not the algorithm"
    certified = "Certified lower bounds, with"
    return [
        (compare_audits(later[::-1]), ["The baseline was audited later"], []),
        (compare_audits(later), [], ["The baseline was audited later"]),
        (compare_audits(six, measure=STAR), [models, "Epsilons are at delta 1e-5."], ["hold at once at"]),
        (compare_audits(six), [models, "hold at once at 95% confidence"], ["Epsilons are at delta"]),
        (compare_audits(mixed, measure=STAR), ["delta 0.001"], ["Epsilons are at delta"]),
        (compare_audits(six, measure="epsilon_bound.one_run"), [], [models]),
        (bounds, ["hold only if the trade-off curve is Gaussian"], [certified]),
    ]


def test_what_is_said_only_where_it_is_true(six, trained, valued):
    """The delta of the means where it is one, what a measure is about, conditions, a baseline made later."""
    for found, said, unsaid in pages(six, trained, valued):
        text = Page(found.to_html()).text
        assert [words for words in said if words not in text] == []
        assert [words for words in unsaid if words in text] == []


def test_nothing_worse_is_said_with_what_cannot_be_compared(six, failed):
    """Two results lead with their sentence; where none is worse and one cannot be compared, both are said."""
    found = compare_audits([six[0], six[5]])
    text = Page(found.to_html()).text
    assert text.index("over3: more leakage") < text.index(found.changes[0].headline.sentence)
    text = Page(compare_audits([six[5], six[0], failed(six[1])], baseline=1).to_html()).text
    none = "None of 2 audits is shown to leak more than the baseline, 1. over3."
    assert f"{none} 1 of them cannot be compared" in text
    assert "Not comparable: 3. plain1." in text


def test_without_a_baseline_the_page_ranks_and_names(trained):
    """The one above all others leads; whom another beats in both is named; overlaps are no order."""
    forest, boosting = (
        trained(1.6, 1, None, 0.81, model="Forest"),
        trained(0.7, 2, None, 0.86, model="Boosting"),
    )
    line, twin = trained(0.0, 3, None, 0.84, model="Line"), trained(1.6, 4, None, 0.9, model="Twin")
    text = Page(compare_audits([line, forest, boosting]).to_html()).text
    assert "Most leakage: Forest" in text
    assert re.search("“Forest” leaks most: its membership advantage is 0[.][56].* above all 2 others", text)
    assert "“Line” leaks least: 0" in text
    assert (
        "“Boosting” leaks less than “Forest”, and is at least as useful: test accuracy 0.86 against 0.81"
        in text
    )
    assert "hold at once at 95% confidence" in text
    text = Page(compare_audits([forest, twin, line]).to_html()).text
    assert "Partial ranking" in text
    assert re.search("“(Twin|Forest)” ranks first, but is not shown to leak more than “(Twin|Forest)”:", text)
    assert "Most leakage:" not in text
    quiet = compare_audits([line, trained(0.05, 5, None, 0.8, model="Quiet"), trained(0.0, 6, None, 0.7)])
    assert "No ranking shown" in Page(quiet.to_html()).text
    assert "at least as useful" not in Page(quiet.to_html()).text


def test_releases_on_days_of_their_own_have_a_history(six):
    """Three audits on three days are shown in order with what changed; two days, or two audits on one day, show none."""
    made = [dated(item, day) for item, day in ((six[5], 3), (six[0], 1), (six[1], 2))]
    found = compare_audits(made)
    assert [item.day for item in found.history] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    text = Page(found.to_html()).text
    assert re.search(
        r"From 2\. private1 \(2026-01-01\) to 1\. over3 \(2026-01-03\), .* is shown to have risen", text
    )
    for fewer in (made[:2], [*made[:2], dated(six[1], 1)]):
        found = compare_audits(fewer)
        assert found.history == ()
        assert "Over time" not in Page(found.to_html()).text


BOUND = "epsilon_bound.clopper_pearson"


def test_lower_bounds_are_called_what_they_are(trained, valued):
    """Of certified bounds the page and the terminal say that they are, with ceilings, rounded down, and rank nothing."""
    places = (("private", 1.2399), ("plain", 2.7599), ("plain", 2.7899))
    ceiling = {"ceiling": 5.6789}
    results = [
        valued(trained(0.1, int(100 * x), name, 0.5), BOUND, value=x, lower=x, details=ceiling)
        for name, x in places
    ]
    found = compare_audits(results, measure=BOUND)
    page = Page(found.to_html())
    for text in (page.text, comparison_text(found, width=300), Page(found._repr_html_()).text):
        assert "without more leakage" not in text
        assert "the lowest bound is not the lowest leakage" in text
        assert "certified lower bounds" in text
        assert "without intervals" not in text
        for shown in ("1.23", "2.76", "2.75 to 2.78", "ceiling 5.67"):
            assert shown in text
        for wrong in ("1.24", "2.76 to", "5.68", "On it", "dashed line"):
            assert wrong not in text
    assert "Certified lower bounds, with their ceilings" in page.text
    assert "One model of each" not in page.text


@pytest.mark.parametrize("name", ["n_member", "n_nonmember"])
def test_audits_of_unlike_size_are_pointed_out(audited, name):
    """Where the baseline has less than two thirds of the records the verdict names what it takes for granted."""
    old, new = audited(0.1, 1), audited(0.1, 2)
    words = "Check that both audits draw from the same populations"
    for factor, told in ((1.0, False), (1.4, False), (1.6, True), (0.5, True)):
        other = replace(new, data={**new.data, name: int(600 * factor)})
        text = Page(compare_audits([old, other]).to_html()).text
        assert (words in text) is told, factor


def test_what_is_left_out_is_listed_with_its_reason(six, failed):
    """A failed validity check, and a missing utility, stand on the page with the result's name."""
    last = replace(six[5], data={**six[5].data, "utility": None})
    text = Page(compare_audits([failed(six[0]), *six[1:5], last]).to_html()).text
    assert re.search(r"1\. private1\s*: A validity check failed \(duplicates\)", text)
    assert re.search(r"6\. over3\s*: It has no utility", text)
    assert "2 audits are not plotted" in text


def test_a_terminal_shows_every_audit_within_its_width(whole):
    """Each audit has a line, no line is wider than the terminal, and there is no colour unless requested."""
    found, _ = whole
    for width in (80, 120):
        text = comparison_text(found, width=width)
        assert max(map(len, text.splitlines())) <= width
        for run in found.runs:
            assert f"{run.number}. {run.title}" in text
        assert "\x1b" not in text
    assert "\x1b[" in comparison_text(found, color=True)
