"""Audits of what is released beside a model's answers: a synthetic table, and a file that carries training records."""

import html
import json
import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import auditor
from auditor import Losses, RandomSplit, StatedClaim, audit, read_result
from auditor.core.facts import Carried, CarriedRows, Released, Secrets, SyntheticTable
from auditor.report import (
    annex_of,
    audit_text,
    card,
    junit,
    markdown,
    model_card,
    render,
    sarif,
    view_of,
)
from auditor.report.terminal import one_line
from auditor.report.words import worded

N = 2000
NAME = "MODEL-OF-MINE the model"
TABLE = SyntheticTable(rows=50_000, copies=(600, 3), near=(450, 20), nearer=0.517)
CLAIM = {"claim": StatedClaim(0.5, 1e-5, "add-remove"), "split": RandomSplit()}
IN_FILE = (
    CarriedRows("SVC", Carried.COPIES, 412),
    CarriedRows("RandomForestClassifier", Carried.LEAVES, 5120, 9000),
)


def tabled(member, nonmember, table=TABLE, **about):
    """The losses of a synthetic table: distances to its rows."""
    return Losses(member, nonmember, attacks={"synthetic": "run"}, released=Released(table=table), **about)


def distances(shift, n=N):
    """Distances of members, and of non-members that are further away by the shift."""
    rng = np.random.default_rng(1)
    return rng.exponential(1, n), rng.exponential(1, n) + shift


def filed(*rows, **about):
    """The result of a model whose losses show nothing and whose file was searched, with these rows in it."""
    losses = Losses(*distances(0), attacks={"file": "run"}, released=Released(rows=rows))
    return audit(losses, **about)


def numbered(letter):
    """Return ids that begin with this letter."""
    return [f"{letter}{row}" for row in range(N)]


def with_groups():
    """The losses of a table with ids and with groups whose names are about models."""
    sides = (["the model", "b"] * (N // 2),) * 2
    return tabled(*distances(0.7), id=(numbered("m"), numbered("n")), group=sides)


@cache
def state(name):
    """Return the audit of a synthetic table in this state."""
    near, alike = distances(0.7), distances(0)
    made = {
        "leak": lambda: audit(tabled(*near), model=NAME),
        "nothing": lambda: audit(tabled(*alike), model=NAME),
        "reversed": lambda: audit(tabled(*near[::-1]), model=NAME),
        "failed": lambda: audit(tabled(*near, id=(numbered("m"), numbered("m"))), model=NAME),
        "shift": lambda: audit(
            tabled(*near), model=NAME, features=auditor.Features({"model": near[1]}, {"model": near[0]})
        ),
        "small": lambda: audit(tabled(near[0][:20], near[1][:20], replace(TABLE, copies=(2, 0))), model=NAME),
        "ties": lambda: audit(tabled(*map(np.round, near)), model=NAME),
        "blind": lambda: audit(tabled(np.ones(500), np.ones(500)), model=NAME),
        "refuted": lambda: audit(tabled(*near), model=NAME, **CLAIM),
        "not refuted": lambda: audit(tabled(*alike), model=NAME, **CLAIM),
        "not evaluable": lambda: audit(tabled(*near), model=NAME, claim=CLAIM["claim"]),
        "policy": lambda: audit(tabled(*near), model=NAME, policy="advantage.upper < 0.1"),
        "placebo": lambda: audit(tabled(*near), model=NAME, reference=Losses(*alike)),
        "insiders": lambda: audit(
            with_groups(),
            model=NAME,
            disclosure="insiders",
            top_records=3,
            context={"release": "the model"},
        ),
    }
    return made[name]()


STATES = (
    *("leak", "nothing", "reversed", "failed", "shift", "small", "ties", "blind", "refuted", "not refuted"),
    *("not evaluable", "policy", "placebo", "insiders"),
)


def visible(page):
    """The text of a page that readers see or hear, without code and without the titles of papers."""
    hidden = r'<(style|script|code)\b.*?</\1>|<ol class="references">.*?</ol>'
    page = re.sub(hidden, " ", page, flags=re.DOTALL)
    heard = re.findall(r'\b(?:aria-label|alt|title|data-label)="([^"]*)"', page)
    return html.unescape(" ".join([re.sub(r"<[^>]+>", " ", page), *heard]))


OUTPUTS = {
    "page": lambda result: visible(render([result])),
    "card": lambda result: visible(card(result)),
    "terminal": audit_text,
    "narrow terminal": lambda result: audit_text(result, width=70),
    "short": lambda result: audit_text(result, full=False),
    "line": lambda result: one_line(result, width=200, color=False),
    "Markdown": markdown,
    "model card": lambda result: model_card(result).replace("model-index", ""),
    "JUnit": junit,
    # Its driver is described as what it is for.
    "SARIF": lambda result: sarif(result).replace("privacy audits of trained models", ""),
}
USERS = ("MODEL-OF-MINE the model", "the model", "'model'", r"MODEL\-OF\-MINE the model")


# --- A synthetic table ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", STATES)
def test_no_output_of_a_synthetic_table_speaks_of_a_model(name):
    """In every state, each output says "synthetic table"; only the user's names, code and references hold "model"."""
    result = state(name)
    own = {"insiders": USERS, "shift": (USERS[0], USERS[2], USERS[3])}.get(name, (USERS[0], USERS[3]))
    for kind, written in OUTPUTS.items():
        text = " ".join(written(result).split())
        for words in own:
            text = text.replace(words, "")
        assert re.findall(r".{0,60}\bmodels?\b.{0,40}", text, re.IGNORECASE) == [], kind
        assert kind in ("line", "short", "SARIF") or "synthetic table" in text


def test_the_words_of_the_user_stay():
    """The names of a model, a group and a column, and the context, are shown as they were written."""
    page = visible(render([state("insiders")]))
    assert page.count(NAME) >= 3
    assert re.search(r"Release\s+the model\b", page)
    assert re.search(r"\bthe model\s+1,000 training records", page)
    assert "'model'" in markdown(state("shift"))
    assert view_of(state("leak")).heading == f"Privacy audit: {NAME}"


def test_a_synthetic_table_without_a_name_is_named_as_one():
    """The heading of an unnamed table, and the filing block of any, call it a synthetic table."""
    view = view_of(replace(state("leak"), data={**state("leak").data, "model": None}))
    assert view.heading == "Privacy audit: Unnamed synthetic table"
    assert dict(view_of(state("leak")).filing)["Synthetic table"] == NAME


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("The model leaks.", "The synthetic table leaks.", id="a noun"),
        pytest.param("Models differ.", "Synthetic tables differ.", id="a plural"),
        pytest.param('by “the model” and "model"', 'by “the model” and "model"', id="quoted"),
        pytest.param("the model's column 'model'", "the synthetic table's column 'model'", id="apostrophes"),
        pytest.param(
            "--model, data/model.csv, model.skops, model=1",
            "--model, data/model.csv, model.skops, model=1",
            id="code",
        ),
    ],
)
def test_words_about_a_model_are_replaced_and_names_are_not(text, words):
    """Nouns change with their number; quoted names, options, paths and assignments stay."""
    assert worded(text, {"released": {"table": {"rows": 1}}}) == words
    assert worded(text, {}) == text


def test_every_replaced_phrase_is_in_a_text():
    """Each phrase with words of its own for a table still occurs in a text, so that no change of that text leaves it behind."""
    root = Path(auditor.__file__).parent
    phrases = tomllib.loads((root / "report/texts/released.toml").read_text(encoding="utf-8"))["phrases"]
    files = [*root.rglob("*.toml"), *root.rglob("*.py")]
    sources = (file.read_text(encoding="utf-8") for file in files if file.name != "released.toml")
    # Of texts over several lines and strings.
    whole = re.sub(r'\s*\\\n\s*|"\n\s+f?"|\s+', " ", " ".join(sources)).replace("  ", " ")
    dead = [words for words in phrases if words not in whole and words[:1].lower() + words[1:] not in whole]
    assert dead == []


def test_copies_near_copies_and_typical_rows_are_told_apart_in_a_table():
    """The counts and shares of both groups are shown, those of 1 to 10 records as such: 600 of 2,000 is 30%, the rest 950."""
    kinds = view_of(state("leak")).copies.kinds
    assert [cells for _, cells in kinds] == [
        [("600", "30%"), ("1 to 10", "at most 0.5%")],
        [("450", "22.5%"), ("20", "1%")],
        [("about 950", "about 47.5%"), ("about 1,970", "about 98.5%")],
    ]
    page = render([state("leak")])
    section = page.partition('id="audit-1-copies"')[2].partition("</section>")[0]
    assert all(cell in section for _, cells in kinds for pair in cells for cell in pair)
    assert "Copies, near copies and typical rows" in page


def test_a_result_for_insiders_has_the_exact_counts():
    """Nothing is rounded for insiders: 3 copied non-members of 2,000 are 0.15%."""
    assert view_of(state("insiders")).copies.kinds[0][1] == [("600", "30%"), ("3", "0.15%")]


@pytest.mark.parametrize("kind", ["page", "terminal", "Markdown", "model card", "card"])
def test_the_distance_test_stands_beside_the_copies_as_a_point_estimate(kind):
    """Every output for readers shows the copies of both groups and the share of rows nearer to the training data."""
    text = " ".join(OUTPUTS[kind](state("leak")).split()).replace("\\", "")
    assert all(words in text for words in ("600", "1 to 10", "51.7%", "guessing: 50%", "point estimate"))


def test_the_page_says_what_the_distance_test_misses():
    """Beside the test stand the copies that move it little, and its lack of an interval."""
    page = visible(render([state("leak")]))
    assert "misses a few copies among many rows" in page
    assert "has no interval" in page


def test_advice_on_a_table_is_not_that_on_a_model():
    """A leak leads to a generator with a privacy guarantee, and no advice is on training, logits or answers."""
    advice = " ".join(" ".join(view_of(state(name)).now) for name in STATES)
    assert "generator with a differential privacy guarantee" in advice
    assert not re.search(r"logits|regularise|DP-SGD|labels only|probabilities", advice)


def test_several_audits_on_a_page_are_named_by_what_they_audit():
    """A page of a table and a model has the words of each in its own part, and both in the comparison."""
    model = audit(Losses(*distances(0.7)), model="other")
    page = visible(render([state("leak"), model]))
    assert "Synthetic table or model" in page
    first, second = page.partition("Audit 2")[::2]
    assert "about this model" not in first
    assert "about this model" in second


def test_facts_of_another_form_are_left_out():
    """A result by another program, whose facts on what was released are of another form, has a page without them."""
    for released in (
        {"table": {"rows": "many"}},
        {"rows": [3]},
        ["table"],
        "table",
        {"table": None, "rows": None},
    ):
        result = replace(state("leak"), data={**state("leak").data, "released": released})
        view = view_of(result)
        assert (view.copies, view.carried, view.released) == (None, None, "")
        assert render([result])


def test_a_result_that_is_read_back_has_the_same_page(tmp_path):
    """The copies outlive JSON, and so does what the finding says."""
    result = state("leak")
    result.to_json(tmp_path / "table.json")
    again = read_result(tmp_path / "table.json")
    assert view_of(again).copies == view_of(result).copies
    assert view_of(again).opening == view_of(result).opening
    filed(*IN_FILE).to_json(tmp_path / "file.json")
    assert view_of(read_result(tmp_path / "file.json")).carried == view_of(filed(*IN_FILE)).carried


def test_a_file_with_training_records_passes_no_policy_unless_only_answers_are_released():
    """Whatever the limits say, such a file is to be revised; a model behind an API may pass, and leaves stop nothing."""
    limit = {"policy": "advantage.upper < 0.5"}
    view = view_of(filed(*IN_FILE, **limit))
    assert view.decided == "revise"
    assert "The file carries training records" in view.decision.sentence
    assert view_of(filed(*IN_FILE, **limit, context={"release": "API"})).decided == "release"
    assert view_of(filed(IN_FILE[1], **limit)).decided == "release"
    assert view_of(filed(*IN_FILE)).decided is None


# --- Training records in a file -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*OUTPUTS])
def test_training_records_in_a_file_are_a_finding_whatever_the_losses_show(kind):
    """Every output but that of tests says that the file releases training records, though the losses show nothing."""
    result = filed(*IN_FILE)
    assert view_of(result).finding.sign.word == "No evidence of leakage"
    text = " ".join(OUTPUTS[kind](result).split())
    assert "Releasing this file releases training records" in text
    assert "SVC holds 412 of them as they are" in text
    assert "5,120 of 9,000 leaves hold fewer than 3 training records" in text or kind in ("short", "line")


def test_the_statement_follows_the_finding():
    """The file comes right after the finding, also beside a claim and for insiders."""
    words = [item.sign.word for item in view_of(filed(*IN_FILE, disclosure="insiders", **CLAIM)).opening]
    assert words == [
        "Claim not refuted",
        "No evidence of leakage",
        "Training records in the file",
        "For insiders only",
    ]


def test_no_output_calls_such_a_file_harmless():
    """Who is exposed and the first advice are about the file, and no severity says that nothing was shown."""
    view = view_of(filed(*IN_FILE, policy="advantage.upper < 0.5"))
    assert view.severity is None
    assert view.who.startswith("Anyone whose record the file carries")
    assert view.now[0].startswith("Do not release the file as it is")
    assert not any("You may release" in line for line in view.now)


def test_leaves_alone_are_not_called_records():
    """A tree with small leaves shows what few records make, which is another finding than records themselves."""
    view = view_of(filed(IN_FILE[1]))
    assert view.carried.sign.word == "Few training records behind parts of the file"
    assert "releases training records" not in view.carried.sentence
    assert "leaves" in view.now[0]
    assert "carries" not in f"{view.who} {annex_of(view).residual}"


def test_a_transform_is_named():
    """Records after a transform are shown as such: it may be undone."""
    sentence = view_of(filed(CarriedRows("KNeighborsClassifier", Carried.TRANSFORMED, 1200))).carried.sentence
    assert "KNeighborsClassifier holds 1,200 of them after a transform that may be undone" in sentence


def test_the_name_of_a_part_cannot_be_a_sentence():
    """A class of a hostile name is quoted."""
    sentence = view_of(filed(CarriedRows("B. No leakage found", Carried.COPIES, 2))).carried.sentence
    assert "“B. No leakage found” holds 2 of them" in sentence


# --- The annex ------------------------------------------------------------------------------------


def rows_of(result):
    """The rows of the annex, by attack."""
    names = ("loss", "label", "estimated", "reference", "attribute", "training_labels")
    names += ("extraction", "inversion", "reconstruction", "synthetic", "file")
    return dict(zip(names, annex_of(view_of(result)).coverage, strict=True))


def test_the_annex_of_a_table_has_the_attack_by_nearness_alone():
    """Nearness was run with the counts and the finding; attacks on a model's answers are not applicable, others not run."""
    rows = rows_of(state("leak"))
    run = rows.pop("synthetic")
    assert (run.state, run.result) == ("run", view_of(state("leak")).finding.sign.word)
    assert run.scored == "2,000 training records, 2,000 other records"
    assert float(run.ceiling) > 0
    answers = ("loss", "label", "training_labels", "extraction", "inversion", "file")
    assert {name for name, row in rows.items() if row.state == "not applicable"} == set(answers)
    assert {row.state for row in rows.values()} == {"not applicable", "not run"}
    assert rows["loss"].because.startswith("a synthetic table answers no queries")


@pytest.mark.parametrize(
    ("rows", "words"), [((), "Nothing found"), (IN_FILE[:1], "SVC holds 412 of them as they are")]
)
def test_a_search_of_the_file_is_a_row_of_the_annex(rows, words):
    """The file was searched beside the attack by the loss, and its row has the rows in it, without ceiling or confidence."""
    result = filed(*rows)
    made = rows_of(result)
    assert (made["loss"].state, made["file"].state) == ("run", "run")
    assert (made["file"].result, made["file"].ceiling) == (words, "none")
    row = render([result]).partition("Training records inside the released file")[2].partition("</tr>")[0]
    assert words in row
    assert "95%" not in row


def test_residual_risk_names_the_records_in_the_file():
    """After the residual risk by the losses stands that the file carries training records."""
    assert annex_of(view_of(filed(*IN_FILE))).residual.endswith("which everyone who gets the file gets too.")
    assert "file" not in annex_of(view_of(filed())).residual


def test_an_extraction_has_the_share_of_its_secrets():
    """Of secrets of which a quarter is written surely and the rest never, 100 tries extract 25%; else the finding stands."""
    chance = np.where(np.arange(N) % 4 == 0, 0.0, 600.0)
    losses = Losses(chance, np.full(N, 600.0), attacks={"extraction": "run"}, released=Released(Secrets()))
    result = audit(losses)
    made = rows_of(result)["extraction"]
    assert made.result.startswith("Within 100 tries 25% (")
    assert (made.state, made.scored) == ("run", "2,000 training records, 2,000 other records")
    without = [item for item in result.estimates if not item.name.startswith("extraction")]
    found = rows_of(replace(result, estimates=tuple(without)))["extraction"]
    assert found.result == view_of(result).finding.sign.word


def test_a_log_of_findings_names_the_records_in_the_file():
    """SARIF has the statement beside the meaning of the result."""
    properties = json.loads(sarif(filed(*IN_FILE)))["runs"][0]["properties"]
    assert properties["file"] == view_of(filed(*IN_FILE)).carried.sentence
