"""The audit of labels: odds by enumeration, where D comes from, the command, the page, and bad input."""

import itertools
import json
import math

import jsonschema
import numpy as np
import pandas as pd
import pytest
from command_line import run
from report.test_training_pages import told
from scipy import special, stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import auditor
from auditor.core import InputError, Status
from auditor.many import draw_labels, label_guesses, label_odds

BOUND = "epsilon_bound.labels"


@pytest.fixture
def world(rng):
    """Training records and others: a label that three features tell in part."""
    x = rng.normal(size=(1600, 3))
    y = (rng.random(1600) < special.expit(2 * x[:, 0] - x[:, 1])).astype(int)
    return (x[:800], y[:800]), (x[800:], y[800:])


@pytest.fixture
def remembers(world):
    """A forest that knows every training label."""
    return forest(*world[0])


def forest(rows, labels):
    """Twenty trees that grow to the last record."""
    return RandomForestClassifier(20, bootstrap=False, max_features=1, random_state=0).fit(rows, labels)


def law_of(features):
    """The true law of those labels."""
    one = special.expit(2 * features[:, 0] - features[:, 1])
    return np.stack([1 - one, one], axis=1)


# --- How right can a guess be? ---------------------------------------------------------------------


@pytest.mark.parametrize("truth", [[0.3, 0.7], [0.2, 0.3, 0.5]])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_the_odds_of_a_right_guess_by_enumeration(truth, epsilon):
    """Of randomised response over every answer and label shown: within the bound, and attained with two labels."""
    labels, law = range(len(truth)), np.array(truth)
    answers = np.where(np.eye(law.size) > 0, math.exp(epsilon), 1.0)  # [label, answer], up to a constant
    gaps = []
    for shown, answer_ in itertools.product(labels, labels):
        real, drawn = law[shown] * answers[shown, answer_], law[shown] * (law @ answers[:, answer_])
        prior = np.log([(1 - law[shown]) / law[shown]])
        for side, odds in ((True, real / drawn), (False, drawn / real)):
            gaps.append(label_odds(prior, side, epsilon)[0] - math.log(odds))
    assert min(gaps) > -1e-12
    # Each label shown beside each answer, two guesses each: with two labels half of them are attained.
    if law.size == 2:
        assert sum(gap < 1e-12 for gap in gaps) == (8 if epsilon == 0 else 4)


def test_a_law_that_is_off_costs_no_more_than_its_odds():
    """Every label shown under a law whose odds are off by e^kappa: the true odds are within the bound at epsilon + kappa."""
    for p, kappa, epsilon in itertools.product((0.1, 0.5, 0.8), (-1.0, -0.2, 0.5), (0.0, 1.5)):
        d = special.expit(special.logit(p) + kappa)
        for factor in (math.exp(epsilon), math.exp(-epsilon)):
            drawn = d / p * (p + (1 - p) * factor)  # over real, by Bayes' rule
            prior = np.array([-special.logit(d)])
            for side, odds in ((False, drawn), (True, 1 / drawn)):
                assert math.log(odds) <= label_odds(prior, side, epsilon + abs(kappa))[0] + 1e-12


def test_labels_are_shown_by_fair_coins_and_drawn_from_the_law(rng):
    """Half of the labels are real; the others have the frequencies of the law, and none that it excludes."""
    law = np.tile([0.5, 0.0, 0.2, 0.3], (40_000, 1))
    real, shown = draw_labels(law, np.full(40_000, 2), rng)
    assert abs(real.mean() - 0.5) < 4 * 0.5 / 200
    assert (shown[real] == 2).all()
    counts = np.bincount(shown[~real], minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], (~real).sum() * law[0, [0, 2, 3]]).pvalue > 1e-4


def test_guesses_and_their_order_depend_on_no_coin(rng):
    """Other coins change which guesses are right, and nothing else."""
    told_by, law = np.log(rng.random(50)), np.log(rng.random(50))
    coins = rng.random(50) < 0.5
    one, other = (label_guesses(told_by, law, real, np.random.default_rng(1)) for real in (coins, ~coins))
    assert (one.right != other.right).all()
    assert (one.inside == other.inside).all()
    assert all((one.orders[name] == other.orders[name]).all() for name in one.orders)
    assert {name: set(one.inside[order]) for name, order in one.orders.items() if name != "surest"} == {
        "real": {True},
        "drawn": {False},
    }


# --- What is found ---------------------------------------------------------------------------------


def test_a_model_that_remembers_is_found(world, remembers):
    """At D = 1/2, r right guesses of r that say "drawn" refute epsilon at least while expit^r of ((1 + e^epsilon)/2) is the share."""
    x, y = world[0]
    found = auditor.audit_labels(
        remembers, (x, y), probabilities=np.full((800, 2), 0.5), disclosure="insiders"
    )
    row = found[BOUND]
    tried = row.details["tried"]
    right = [one["guesses"] for one in tried if one["guesses"] == one["correct"] and "inside" not in one]
    odds = [math.exp(special.logit((0.05 / len(tried)) ** (1 / r))) for r in right]
    # Less one step of the grid: the joint p-value is at most the sum over the sets.
    assert row.value == row.lower > math.log(2 * max(odds) - 1) - 1 / 32 - 1e-3
    assert row.details["ceiling"] == pytest.approx(row.value, rel=1e-12)  # a perfect memory
    assert (row.delta, row.adjacency, row.subject) == (
        0.0,
        auditor.Adjacency.REPLACE_ONE,
        auditor.results.Subject.MECHANISM,
    )
    for off in (0.1, 0.25, 0.5, 1.0):
        assert found[f"{BOUND}.off_{off:g}"].value == pytest.approx(row.value - off)
    assert found.data["of_model"]["accuracy"] == 1.0
    assert found.verdict is None
    with pytest.raises(InputError):
        auditor.verdicts.judge(
            auditor.results.Claim("epsilon", 1.0, 1e-5, auditor.Adjacency.REPLACE_ONE, "", proven=True), row
        )


def test_a_model_that_knows_the_law_alone_gives_nothing_away(world):
    """One that answers with D itself is no better than guessing, and the audit could have shown more."""
    (x, y), _ = world
    row = auditor.audit_labels(law_of, (x, y), probabilities=law_of(x))[BOUND]
    assert row.value == 0
    assert row.details["ceiling"] > 2


def test_a_law_that_was_learnt_is_nearly_as_good(world, remembers):
    """Learnt from 800 other records, D predicts about as well as the true law, and the memory is found as well."""
    (x, y), others = world
    found = auditor.audit_labels(remembers, (x, y), reference=others)
    given = auditor.audit_labels(remembers, (x, y), probabilities=law_of(x))
    assert found.data["of_law"]["log_loss"] < given.data["of_law"]["log_loss"] + 0.03
    assert min(found[BOUND].value, given[BOUND].value) > 4
    assert found.data["n_reference"] == 800


def test_a_law_of_several_labels_is_learnt(rng):
    """Of three labels the odds of each against the rest: the law is nearly the true one, and a memory is found."""
    x = rng.normal(size=(1500, 2))
    truth = special.softmax(np.column_stack([x[:, 0], x[:, 1], -x[:, 0]]), axis=1)
    y = (np.cumsum(truth, axis=1) < rng.random(1500)[:, None]).sum(axis=1)
    halves = (x[:750], y[:750]), (x[750:], y[750:])
    found = auditor.audit_labels(forest(*halves[0]), halves[0], reference=halves[1])
    true_loss = -np.log(truth[np.arange(750), y[:750]]).mean()
    assert abs(found.data["of_law"]["log_loss"] - true_loss) < 0.03
    assert found[BOUND].value > 2


def test_text_labels_tables_and_outputs_at_hand_say_the_same(world, remembers):
    """Labels of text in tables, and probabilities in place of the model, give the very same numbers."""
    (x, y), others = world
    expected = auditor.audit_labels(remembers, (x, y), reference=others)[BOUND].value
    words = np.array(["no", "yes"])
    tables = [
        auditor.RecordTable(pd.DataFrame(part).add_prefix("x").assign(y=words[label]), label="y")
        for part, label in (world[0], others)
    ]
    spelled = forest(x, words[y])
    at_hand = remembers.predict_proba(x)
    law = law_of(x)
    assert auditor.audit_labels(spelled, tables[0], reference=tables[1])[BOUND].value == expected
    assert (
        auditor.audit_labels(np.asarray, (at_hand, y), probabilities=law)[BOUND].value
        == auditor.audit_labels(remembers, (x, y), probabilities=law)[BOUND].value
    )


def test_frequencies_that_contradict_the_law_are_warned_of(world, remembers):
    """A law that gives label 1 half of its odds: the check says by how much it is off."""
    (x, y), _ = world
    off = special.expit(special.logit(law_of(x)) + np.array([math.log(3), -math.log(3)]))
    check = auditor.audit_labels(remembers, (x, y), probabilities=off).check("label_law")
    assert check.status is Status.WARN
    assert 0.4 < check.details["odds_off"] < math.log(3) + 0.3
    assert (
        auditor.audit_labels(remembers, (x, y), probabilities=law_of(x)).check("label_law").status
        is Status.OK
    )


def test_a_law_that_is_sure_leaves_nothing_to_guess(world, remembers):
    """No value, and the reason; a gate on it cannot be evaluated."""
    (x, y), _ = world
    found = auditor.audit_labels(remembers, (x, y), probabilities=np.eye(2)[y])
    assert "nothing to guess" in found[BOUND].reason
    assert auditor.check_gates(found, f"{BOUND} > 1")[0].code is auditor.verdicts.ExitCode.NOT_EVALUABLE


# --- Bad input, the command and the page -------------------------------------------------------------


BAD = {
    "either reference": lambda _x, _y, _law: {},
    "got both": lambda x, y, law: {"probabilities": law, "reference": (x, y)},
    "reference must hold other records": lambda x, y, _law: {"reference": (x, y)},
    r"shape \(800, 2\)": lambda _x, _y, law: {"probabilities": law[:5]},
    "sum to 1 in each row, got a sum of 2": lambda _x, _y, law: {"probabilities": 2 * law},
    r"probability 0 of 1 \(first at row": lambda _x, y, _law: {"probabilities": np.eye(2)[0 * y]},
    "2 labels or more": lambda x, y, _law: {"reference": (x + 9, 0 * y)},
    "must have the same columns": lambda x, y, _law: {"reference": (x[:, :2], y)},
    "confidence must lie": lambda _x, _y, law: {"probabilities": law, "confidence": 2.0},
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_sentence(world, remembers, words):
    """It names the argument and the first bad place."""
    (x, y), _ = world
    with pytest.raises(InputError, match=words) as error:
        auditor.audit_labels(remembers, (x, y), **BAD[words](x, y, law_of(x)))
    assert str(error.value).endswith(".")


def test_labels_that_are_all_the_same_are_refused(world, remembers):
    """Nothing of them is private."""
    (x, _), others = world
    with pytest.raises(InputError, match="at least 2 different labels, got 0 alone"):
        auditor.audit_labels(remembers, (x, np.zeros(800, int)), reference=others)


def test_the_result_in_files(world, remembers, tmp_path, monkeypatch):
    """A result that validates and is read back, the exit codes of its gates, and a page of the stored result."""
    monkeypatch.chdir(tmp_path)
    found = auditor.audit_labels(remembers, world[0], reference=world[1])
    found.to_json("r.json")
    jsonschema.Draft202012Validator(auditor.schema("labels")).validate(json.loads(found.to_json()))
    again = auditor.read_result("r.json")
    assert isinstance(again, auditor.LabelsResult)
    assert again.to_dict() == json.loads(again.to_json())
    assert run("report", "r.json", "--html", "r.html", "--quiet") == 0
    assert run("report", "r.json", "--fail-if", f"{BOUND} > 1", "--quiet") == 1
    assert run("report", "r.json", "--fail-if", f"{BOUND}.off_0.5 > 30", "--quiet") == 3


def test_the_page_says_what_the_number_says_and_what_it_does_not(world, remembers):
    """Under which condition, how far D must be off to explain it, and nothing of members or features; no claim is judged."""
    found = auditor.audit_labels(remembers, world[0], reference=world[1], model_name="tree")
    words = told(found.to_html(gates=f"{BOUND} > 1"))
    bound = found[BOUND].lower
    for text in (
        "Labels leak, or the label distribution is wrong",
        "are off by a factor of",
        "says nothing about membership in the training data, or about features",
        "No claim is judged",
        "if D is the label distribution",
        "D was learnt from 800 other records",
        "the model assigns the largest probability to 100% of the real labels",
    ):
        assert text in words
        assert bound > 0
    for shown in (str(found), found.to_markdown(), found._repr_html_(), found.to_junit(), found.to_sarif()):
        assert "is the distribution of every audited" in " ".join(shown.split())
    quiet = told(auditor.audit_labels(law_of, world[0], probabilities=law_of(world[0][0])).to_html())
    assert "No evidence of leakage" in quiet


@pytest.mark.parametrize("rate", [0.5, 0.3])
def test_a_file_in_order_of_its_labels_tells_nothing(rate):
    """A model that gives every record the same probabilities leaks nothing, though its ties stand in the order of the labels."""
    bounds = []
    for seed in range(10):
        labels = np.sort(np.random.default_rng(seed).random(600) < rate).astype(int)
        outputs, law = np.tile([0.55, 0.45], (600, 1)), np.tile([1 - rate, rate], (600, 1))
        found = auditor.audit_labels(np.asarray, (outputs, labels), probabilities=law, seed=seed)
        bounds.append(found["epsilon_bound.labels"].value)
    assert np.count_nonzero(bounds) <= 2


def test_copies_and_outputs_in_place_of_features_are_told(rng):
    """Repeated features are warned of; a law learnt from the model's outputs is refused, for they saw the labels."""
    x, y = np.repeat(rng.normal(size=(50, 2)), 2, axis=0), np.repeat(rng.integers(0, 2, 50), 2)
    model = LogisticRegression().fit(x, y)
    found = auditor.audit_labels(model, (x, y), probabilities=np.full((100, 2), 0.5))
    (check,) = [check for check in found.checks if check.name == "duplicates"]
    assert check.status == "warn"
    assert "About 50 audited records repeat" in check.message
    outputs = model.predict_proba(x)
    with pytest.raises(
        auditor.InputError, match=r"probabilities must be given where the model is numpy\.asarray"
    ):
        auditor.audit_labels(np.asarray, (outputs, y), reference=(outputs, y))
