"""The smaller parts of a page: gates, named records, methods, the glossary, the tables of p-values, the provenance."""

from dataclasses import replace

import pytest

import auditor
from auditor.core import Check, Status, Verdict
from auditor.report import (
    REFERENCES,
    cited,
    context,
    exposed_section,
    finding,
    gate_section,
    grid_tables,
    methods_section,
    render,
    risk_section,
    view_of,
)
from auditor.results import TERMS, VERDICT, describe, find, glossary
from auditor.verdicts import judged, parse

# --- Gates ----------------------------------------------------------------------------------------


def test_no_gates(overfitted):
    """Without a gate there is nothing to show."""
    assert gate_section((), [overfitted]) is None


def test_all_gates_passed(overfitted):
    """When every condition was looked at and none was met, the pipeline goes on."""
    shown = gate_section(judged(overfitted, [parse("auc > 0.9")]), [overfitted])
    assert shown["rows"][0]["outcome"]["word"] == "Passed"
    assert "the pipeline goes on" in shown["note"]


def test_passed_gates_and_a_refuted_claim(refuted):
    """A refuted claim stops the pipeline although every gate passed, and the page does not say that it goes on."""
    shown = gate_section(judged(refuted, [parse("auc > 0.9")]), [refuted])
    assert "with or without a gate" in shown["note"]
    assert "goes on" not in shown["note"]


def test_a_gate_that_cannot_be_evaluated(overfitted):
    """What cannot be evaluated is told as not passed."""
    shown = gate_section(judged(overfitted, [parse("tpr_at_fpr.0.001 > 0.5")]), [overfitted])
    assert shown["rows"][0]["outcome"]["word"] == "Not evaluable"
    assert "has not passed" in shown["note"]


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (("auc > 0.6", "auc > 0.9", "tpr_at_fpr.0.001 > 0.5"), "2 of 3 gates stop the pipeline"),
        (("auc > 0.9",), ""),
        ((), ""),
    ],
)
def test_the_verdict_says_that_gates_stopped(overfitted, gates, said):
    """The card that a reader sees first says how many gates stopped the pipeline, and leads to them; else nothing."""
    page = render([overfitted], gates=judged(overfitted, [parse(gate) for gate in gates]))
    card = page[page.index('<section class="verdict') :].partition("</section>")[0]
    assert said in card
    assert ('href="#gates"' in card) is bool(said)
    assert ("the pipeline" in card) is bool(said)


# --- Who is at risk ---------------------------------------------------------------------------------


def test_named_records(named):
    """Records are listed with their odds as people say them, and with the labels that any of them has."""
    shown = exposed_section(named)
    assert shown["columns"] == ["Group", "Person"]
    assert [row["odds"] for row in shown["rows"]] == ["42 to 1", "1 to 2", "over 1,000,000 to 1"]
    assert [row["shared"] for row in shown["rows"]] == ["shared by 12", "", ""]
    assert shown["rows"][1]["more"] == ["—", "—"]
    assert "not a certified probability for any one person" in shown["note"]
    assert "--top-records 0" in shown["personal"]


def test_named_persons(named):
    """Where a score stands for a person, persons are listed."""
    shown = exposed_section(replace(named, data={**named.data, "unit": "person (mean loss)"}))
    assert shown["who"] == "Person"
    assert shown["note"].startswith("The persons in the training data whose losses")


def test_no_record_is_named(overfitted):
    """Without named records there is no table of them."""
    assert exposed_section(overfitted) is None


def test_one_record_is_not_records(named):
    """A group of one is counted in the singular."""
    shown = risk_section(named)
    sizes = {row["label"]: row["sizes"] for table in shown["tables"] for row in table["rows"]}
    assert sizes == {"ill": "900 training records, 800 others", "north": "1 training record, 1,100 others"}


def test_slices_without_intervals_are_not_listed(named):
    """Where no slice has enough records for an interval, that is said, and no empty table is shown."""
    slices = tuple(replace(item, compared=0) for item in named.slices)
    shown = risk_section(replace(named, slices=slices))
    assert shown["note"] == "No slice has enough records for an interval."
    assert (shown["tables"], shown["bands"]) == ([], [])


def test_slices_of_a_census(named):
    """In a census the members of a slice count as draws, which is said; an older one's slices may stand out by chance."""
    assert risk_section(named)["note"].endswith("so the slice that stands out most may be quoted.")
    census = replace(named, data={**named.data, "members": "census"})
    assert "Members count as draws here" in risk_section(census)["note"]
    about = (
        "every training record was scored: the bound compares this finite training set with the population",
    )
    older = tuple(
        replace(item, estimates=tuple(replace(row, assumptions=about) for row in item.estimates))
        for item in census.slices
    )
    note = risk_section(replace(census, slices=older))["note"]
    assert "may be quoted" not in note
    assert "by chance alone" in note


# --- What was found -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "word"),
    # One standard error is 0.01: 0.52 is 2.0 of them from a half, which 1.96 would show and 2.24 does not.
    [
        (0.52, "No evidence of leakage"),
        (0.48, "No evidence of leakage"),
        (0.525, "Leakage found"),
        (0.475, "The wrong way round"),
    ],
)
def test_the_area_is_looked_at_with_half_of_the_error(overfitted, value, word):
    """After the other looks found nothing the area is quoted only where its 97.5% interval leaves out a half."""
    area = replace(
        find(overfitted, "auc"),
        value=value,
        lower=value - 0.0196,
        upper=value + 0.0196,
        details={"standard_error": 0.01},
    )
    result = replace(overfitted, estimates=(area,), data={"n_member": 20_000, "n_nonmember": 20_000})
    ceiling = replace(overfitted.estimate("epsilon_bound.clopper_pearson"), value=0.0, lower=0.0)
    assert finding(replace(result, estimates=(area, ceiling))).sign.word == word


@pytest.mark.parametrize(
    ("ceiling", "word"),
    [(5.57, "No evidence of leakage"), (0.9, "Too few to tell"), (0.0, "Too few to tell")],
)
def test_a_small_audit_is_not_called_quiet(nothing, ceiling, word):
    """A bound of 0 under a ceiling that hardly any leak would reach tells nothing, and the page says so."""
    rows = tuple(
        replace(item, details={"ceiling": ceiling}) if item.name == "epsilon_bound.clopper_pearson" else item
        for item in nothing.estimates
    )
    assert context(view_of(replace(nothing, estimates=rows)))["finding"]["word"] == word


def test_an_invalid_audit_is_marked_in_the_comparison(overfitted):
    """Beside other audits, a bound of groups that cannot be compared does not stand as certified."""
    assert context(view_of(overfitted))["row"]["terms"] == "95%, delta 1e-5"
    invalid = replace(overfitted, checks=(Check("shift", Status.FAIL, "The groups differ."),))
    assert context(view_of(invalid))["row"]["terms"] == "a validity check failed"


def test_tiles_say_what_guessing_gives(overfitted):
    """A rate and an AUC stand with what guessing gives, and every tile with what it is about."""
    about = {tile["label"]: tile["about"] for tile in context(view_of(overfitted))["tiles"]}
    assert about["TPR at 1% FPR"] == "about this model; guessing gives 1%"
    assert about["AUC"] == "about this model; guessing gives 0.5"
    assert about["Certified epsilon bound"] == "about this model"


# --- Methods and glossary ---------------------------------------------------------------------------


def test_every_usual_estimate_has_an_equation():
    """Each number of an audit by default has its equation and the paper that it comes from."""
    losses = auditor.Losses(member=[0.1 * i for i in range(60)], nonmember=[0.11 * i for i in range(60)])
    result = auditor.audit(
        losses, split=auditor.RandomSplit(), mixture=auditor.Mixture(max_components=2), seed=0
    )
    for item in methods_section(result)["behind"]:
        assert item["equation"], item["names"]
        assert item["cites"], item["names"]


def test_estimates_made_alike_stand_together(overfitted):
    """Two rates by one method are explained once, under both names."""
    shown = methods_section(overfitted)["behind"]
    names = [[one["name"] for one in item["names"]] for item in shown]
    assert ["tpr_at_fpr.0.1", "tpr_at_fpr.0.01", "tpr_at_fpr.0.001"] in names


def test_an_approximate_bound_has_no_exact_equation(overfitted):
    """Limits that are not certified do not borrow the equation of those that are."""
    bound = overfitted.estimate("epsilon_bound.clopper_pearson")
    result = replace(overfitted, estimates=(replace(bound, details={"approximate": True}),))
    assert methods_section(result)["behind"][0]["equation"] == ""


def test_only_what_was_used_is_cited(overfitted, refuted):
    """The paper on the wording is cited where a claim is worded, the one on shift where features were compared."""
    plain = {item["key"] for item in methods_section(overfitted)["references"]}
    assert not plain & {"nanayakkara", "lopezpaz", "fdp"}
    assert "nanayakkara" in {item["key"] for item in methods_section(refuted)["references"]}
    looked = replace(overfitted, checks=(Check("shift", Status.OK, "alike"),))
    assert "lopezpaz" in {item["key"] for item in methods_section(looked)["references"]}


def test_references_are_whole():
    """Every reference has its own key and a year, and is found by each of its names."""
    assert len({item.key for item in REFERENCES}) == len(REFERENCES)
    for item in REFERENCES:
        assert any(str(year) in item.full for year in range(1934, 2026))
        assert all(item in cited([name]) for name in item.names)


def test_every_term_is_one():
    """Terms have their own keys, and the keys that rows point to exist."""
    keys = {item["key"] for item in glossary()}
    assert len(keys) == len(TERMS)
    for verdict in Verdict:
        text = next(item.text for item in TERMS if item.key == "verdict")
        assert VERDICT[verdict].word.removeprefix("Claim ").lower() in text.lower()


def test_every_estimate_leads_to_a_term(overfitted):
    """Each number has a term that explains it."""
    keys = {item.key for item in TERMS}
    assert all(describe(item).term in keys for item in overfitted.estimates)


# --- P-values and provenance ------------------------------------------------------------------------


def _with_grid(result, grid):
    star = result.estimate("epsilon_star.gaussian")
    details = dict(star.details) | {"fit": dict(star.details["fit"]) | {"grid": {"member": grid}}}
    rows = tuple(replace(item, details=details) if item is star else item for item in result.estimates)
    return replace(result, estimates=rows)


def test_p_values_as_a_table(overfitted):
    """The grid is a table with a mark in words where the fit is rejected at 0.05."""
    grid = {"components": [1, 2], "sample_sizes": [100, 1000], "p_values": [[0.3, 0.0001], [0.05, 0.049]]}
    (table,) = grid_tables(_with_grid(overfitted, grid))
    assert table["columns"] == ["100", "1,000"]
    assert [[cell["text"] for cell in row["cells"]] for row in table["rows"]] == [
        ["0.3", "<0.001"],
        ["0.05", "0.049"],
    ]
    assert [[cell["mark"] for cell in row["cells"]] for row in table["rows"]] == [
        ["", "rejected"],
        ["", "rejected"],
    ]


@pytest.mark.parametrize(
    "grid", [None, 3, {}, {"components": [1], "sample_sizes": [1], "p_values": []}, {"p_values": 1}]
)
def test_no_grid(overfitted, grid):
    """Without a grid, or with one that is none, there is no table."""
    assert grid_tables(_with_grid(overfitted, grid)) == []


def test_provenance(overfitted):
    """The page tells the schema version, the strategy, the utility and the configuration file."""
    data = {**overfitted.data, "strategy": "DP, epsilon 10"}
    data["utility"] = {"value": 0.87, "name": "test accuracy", "higher_is_better": True}
    shown = context(
        view_of(
            replace(overfitted, data=data, provenance={**overfitted.provenance, "config": "auditor.toml"})
        )
    )
    facts = dict(shown["data"]) | {item["name"]: item["text"] for item in shown["provenance"]}
    assert facts["Schema version of the result"] == "2"
    assert facts["Strategy"] == "DP, epsilon 10"
    assert facts["Utility, as given"] == "0.87 (test accuracy)"
    assert facts["Configuration"] == "auditor.toml"
