"""The page of a comparison, its cell in a notebook, and its lines in a terminal."""

import base64
import hashlib
import html as escaping
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from auditor import compare_audits
from auditor.report import comparison_text, listed

SECTIONS = ("summary", "landscape", "audits", "changes", "bounds", "reading", "provenance")


class Page(HTMLParser):
    """The tags, the scripts and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.scripts, self.words, self._in = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag in ("script", "style"):
            self._in.append(tag)

    def handle_endtag(self, tag):
        """Leave a script or a style."""
        if self._in and self._in[-1] == tag:
            self._in.pop()

    def handle_data(self, data):
        """Keep what is read, and what is run."""
        if self._in == ["script"]:
            self.scripts.append(data)
        elif not self._in:
            self.words.append(data)

    @property
    def text(self):
        """All that is read, with single spaces."""
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def whole(six):
    """A comparison with a baseline and a landscape, and its page."""
    found = compare_audits(six, baseline=1)
    return found, Page(found.to_html())


def test_every_section_is_there_once(whole):
    """Each section has its heading, ids are unique, and every link leads to one of them."""
    _, page = whole
    assert all(page.ids.count(name) == 1 for name in SECTIONS)
    assert len(page.ids) == len(set(page.ids))
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert all(link.startswith("#") and link[1:] in page.ids for link in links)
    labelled = [attrs["aria-labelledby"] for tag, attrs in page.tags if tag == "section"]
    assert all(name in page.ids for name in labelled)


def test_the_only_script_is_the_one_the_policy_names(whole):
    """The policy lets nothing in, and the one script is allowed by its own hash."""
    _, page = whole
    (policy,) = [
        attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not [
        attrs for _, attrs in page.tags if "src" in attrs or any(name.startswith("on") for name in attrs)
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
    assert "no confidence interval" in page.text


def test_two_results_lead_with_the_sentence_of_their_difference(six):
    """The page of two results begins with the sentence and the interval of what changed."""
    found = compare_audits([six[0], six[5]])
    text = Page(found.to_html()).text
    sentence = found.changes[0].headline.sentence
    assert sentence in text
    assert (
        text.index("More leakage")
        < text.index(sentence)
        < text.index("Privacy and utility", text.index(sentence))
    )


def test_confidence_and_delta_stand_once_where_they_are_shared(six, trained):
    """What all audits share is said above the table; where one differs, every cell says its own."""
    words = "Intervals and bounds at 95% confidence, epsilons at delta 1e-5."
    text = Page(compare_audits(six).to_html()).text
    assert words in text
    assert text.count("at 95% confidence") == text.count(words)
    mixed = Page(compare_audits([*six, trained(0.2, 9, "other", 0.5, delta=1e-3)]).to_html()).text
    assert "Intervals and bounds at 95% confidence." in mixed
    assert mixed.count("delta 1e-5") >= 2 * len(six)
    assert mixed.count("delta 0.001") >= 2


def test_nothing_worse_is_said_with_what_cannot_be_compared(six, failed):
    """Where none is worse and one cannot be compared, both are said."""
    text = Page(compare_audits([six[5], six[0], failed(six[1])], baseline=1).to_html()).text
    assert (
        "None of 2 audits is shown to give away more than the baseline, 1. over3. 1 of them cannot be compared"
        in text
    )
    assert "Not comparable: 3. plain1." in text


def test_what_is_said_of_several_audits_holds_at_once(whole):
    """The page of a family says that its statements hold together, at the confidence of the audits."""
    _, page = whole
    assert "All of this holds at once at 95% confidence" in page.text
    assert "Intervals at 95% confidence, for all rows at once." in page.text
    assert "by chance" not in page.text[: page.text.index("On the frontier")]


BOUND = "epsilon_bound.clopper_pearson"


def test_lower_bounds_are_called_what_they_are(trained, valued):
    """Of certified bounds the page and the terminal say that they are, with ceilings, rounded down, and rank nothing."""
    values = {"private": [1.2399], "plain": [2.7599, 2.7899]}
    results = [
        valued(
            trained(0.1, int(100 * x), name, 0.5),
            BOUND, value=x, lower=x, details={"ceiling": 5.6789},
        )
        for name, found in values.items()
        for x in found
    ]  # fmt: skip
    found = compare_audits(results, measure=BOUND)
    page = Page(found.to_html())
    for text in (
        page.text,
        comparison_text(found, width=300),
        Page(found._repr_html_()).text,
    ):
        assert "without giving more away" not in text
        assert "the lowest bound is not the lowest leakage" in text
        assert "certified lower bounds" in text
        assert "without intervals" not in text
        for shown in ("1.23", "2.77", "2.75 to 2.78", "ceiling 5.67"):
            assert shown in text
        for wrong in ("1.24", "2.76 to", "5.68", "On it", "dashed line"):
            assert wrong not in text
    assert "Certified lower bounds, with their ceilings" in page.text
    assert "One model of each" not in page.text


def test_bounds_under_a_condition_are_not_called_certified(six, valued):
    """A bound that holds only if the curve is Gaussian, and an approximate one, are called so."""
    for detail, words in (
        ("conditional", "hold only if the trade-off curve is Gaussian"),
        ("approximate", "which certify nothing"),
    ):
        results = [valued(item, BOUND, details={detail: True, "ceiling": 3.0}) for item in six[:3]]
        text = Page(compare_audits(results, measure=BOUND).to_html()).text
        assert words in text
        assert "Certified lower bounds, with" not in text


def test_the_verdict_box_has_no_code(audited, six, valued):
    """The box that a reviewer reads first names neither Python nor options, and no sentence of it is said again below."""
    bare = compare_audits([audited(0.1, 1), audited(0.2, 2), audited(0.3, 3)])
    rejected = [valued(item, details={"fit": {"rejected": True}}) for item in six]
    for found in (
        bare,
        compare_audits(rejected),
        compare_audits(rejected, measure="epsilon_star.gaussian"),
    ):
        whole = Page(found.to_html()).text
        start = whole.index("Against the baseline")
        box = whole[start : whole.index("Privacy and utility", start)]
        assert not re.search(r"--\w|\w=", box)
        for sentence in re.findall(r"[^.]{40,}\.", box):
            assert whole.count(sentence.strip()) == 1, sentence
    assert (
        "(utility=auditor.Utility(0.87, 'test accuracy'), on the command line --utility)"
        in Page(bare.to_html()).text
    )
    assert (
        "since the fit that Epsilon* rests on is rejected in 6 of 6 audits"
        in Page(compare_audits(rejected).to_html()).text
    )


@pytest.mark.parametrize("name", ["n_member", "n_nonmember"])
def test_audits_of_unlike_size_are_pointed_out(audited, name):
    """Where the baseline has less than two thirds of the records the verdict names what it takes for granted."""
    old, new = audited(0.1, 1), audited(0.1, 2)
    words = "both audits draw from the same populations: check that they do"
    for factor, told in ((1.0, False), (1.4, False), (1.6, True), (0.5, True)):
        other = replace(new, data={**new.data, name: int(600 * factor)})
        text = Page(compare_audits([old, other]).to_html()).text
        assert (words in text) is told, factor


def test_a_baseline_that_is_the_newer_audit_is_pointed_out(six):
    """If the baseline was made after the other, the page says so."""
    old = replace(six[0], provenance={**six[0].provenance, "created": "2026-01-01T00:00:00+00:00"})
    new = replace(six[5], provenance={**six[5].provenance, "created": "2026-02-01T00:00:00+00:00"})
    words = "The baseline was audited after it"
    assert words in Page(compare_audits([new, old]).to_html()).text
    assert words not in Page(compare_audits([old, new]).to_html()).text


def test_what_is_left_out_is_listed_with_its_reason(six, failed):
    """A failed validity check, and a missing utility, stand on the page with the result's name."""
    last = replace(six[5], data={**six[5].data, "utility": None})
    text = Page(compare_audits([failed(six[0]), *six[1:5], last]).to_html()).text
    assert re.search(r"1\. private1\s*: A validity check failed \(duplicates\)", text)
    assert re.search(r"6\. over3\s*: No utility was given for it", text)
    assert "2 audits take no part in the landscape" in text


def test_a_mechanism_measure_is_not_called_one_of_models(six):
    """What is about the algorithm is not described as a number about models, and the other way round."""
    models = "describe the models that were audited, not the algorithm"
    assert models in Page(compare_audits(six).to_html()).text
    assert models not in Page(compare_audits(six, measure="epsilon_bound.one_run").to_html()).text


def test_hostile_text_is_text(hostile_results):
    """Names that want to be markup, or to turn the direction of text, are shown as text everywhere."""
    found = compare_audits(hostile_results, baseline=1)
    for text in (found.to_html(), found._repr_html_()):
        page = Page(text)
        assert not [script for script in page.scripts if "alert" in script]
        assert "\x00" not in text
        assert "\u202e" not in text
        assert "<script>alert(1)</script>" in escaping.unescape(page.text)
        assert {tag for tag, _ in page.tags} <= {
            *(
                "a",
                "bdi",
                "body",
                "button",
                "caption",
                "code",
                "dd",
                "div",
                "dl",
                "dt",
                "figcaption",
                "figure",
                "footer",
            ),
            *(
                "g",
                "h1",
                "h2",
                "h3",
                "head",
                "header",
                "html",
                "li",
                "link",
                "main",
                "meta",
                "nav",
                "p",
                "path",
                "rect",
            ),
            *(
                "script",
                "section",
                "small",
                "span",
                "strong",
                "style",
                "svg",
                "table",
                "tbody",
                "td",
                "text",
                "th",
            ),
            *("thead", "title", "tr", "ul", "use", "defs", "clippath"),
        }
    terminal = comparison_text(found, width=100)
    assert "\x00" not in terminal
    assert "\u202e" not in terminal


def test_two_hundred_results_stay_small(six):
    """Two hundred audits of a hundred strategies make one page below 1.5 MB."""
    results = [
        replace(
            six[place % 6],
            data={**six[place % 6].data, "strategy": f"strategy {place // 2}", "model": f"model {place}"},
            provenance={**six[place % 6].provenance, "input_sha256": f"{place:064x}"},
        )
        for place in range(200)
    ]
    text = compare_audits(results, baseline=1).to_html()
    assert len(text.encode()) < 1_500_000
    assert text.count("<tr ") > 800


def test_the_page_is_the_same_each_time(six):
    """One comparison always makes the same page."""
    assert compare_audits(six).to_html() == compare_audits(six).to_html()


def test_sortable_cells_hold_the_numbers_they_are_sorted_by(whole, six):
    """Every cell of a sortable table says what it is sorted by, and the measure's cells hold its exact value."""
    found, page = whole
    tables = [
        place for place, (tag, attrs) in enumerate(page.tags) if tag == "table" and "data-sortable" in attrs
    ]
    assert len(tables) == 4
    cells = [attrs for tag, attrs in page.tags[tables[0] :] if tag == "td"]
    orders = {attrs.get("data-by") for attrs in cells}
    for result in six:
        assert str(result.estimate("epsilon_star.gaussian").value) in orders
    assert {str(item.measure.mean) for item in found.strategies} <= orders


def test_a_terminal_shows_every_audit_within_its_width(whole):
    """Each audit has a line, no line is wider than the terminal, and there is no colour unless asked for."""
    found, _ = whole
    for width in (80, 120):
        text = comparison_text(found, width=width)
        assert max(map(len, text.splitlines())) <= width
        for run in found.runs:
            assert f"{run.number}. {run.title}" in text
        assert "\x1b" not in text
    assert "\x1b[" in comparison_text(found, color=True)


def test_many_names_are_counted():
    """A list in words names six and counts the rest."""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed([str(x) for x in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"
