"""The annex for a reviewer: what is declared, which attacks were run, what remains, and the cards of models."""

import dataclasses
import datetime as dt
import hashlib
import json
import math
import re

import pytest
import yaml
from safety import formats

import auditor
from auditor import scores
from auditor.core import Check, InputError, Status
from auditor.report import annex_of, model_card, render, texts, view_of

LOSS, LABEL, ESTIMATED, REFERENCE, ATTRIBUTE, LABELS, EXTRACTION, INVERSION, RECONSTRUCTION = range(9)


def with_data(result, **more):
    """The result with more in its data."""
    return dataclasses.replace(result, data={**result.data, **more})


def states(result):
    """What became of each attack, in their order."""
    return [attack.state for attack in annex_of(view_of(result)).coverage]


# --- What is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "day", ["2027-01-31", dt.date(2027, 1, 31), dt.datetime(2027, 1, 31, 8, tzinfo=dt.UTC)]
)
def test_a_date_is_kept_as_a_text(day):
    """However the date is given, the result says YYYY-MM-DD."""
    assert auditor.Context(next_audit=day).next_audit == "2027-01-31"


def test_the_context_is_kept_and_changes_no_number(tmp_path):
    """A result holds what was stated, reads it back, and has the numbers of an audit without it."""
    losses = auditor.Losses(member=[0.1, 0.2, 0.3, 0.1] * 3, nonmember=[0.4, 0.2, 0.9, 0.8] * 3)
    plain, told = auditor.audit(losses), auditor.audit(losses, context=auditor.Context(release="API"))
    told.to_json(tmp_path / "r.json")
    stated = auditor.read_result(tmp_path / "r.json").data["context"]
    assert stated.pop("release") == "API"
    assert set(stated.values()) == {None}
    assert plain.data["context"] is None
    assert plain.to_dict()["estimates"] == told.to_dict()["estimates"]
    with pytest.raises(InputError, match=r"context must be auditor\.Context or None, got"):
        auditor.audit(losses, context={"release": "API"})


def test_what_is_missing_is_not_stated(overfitted):
    """Every field has its row on the page, with what was stated or "not stated"; nothing is inferred from the audit."""
    result = with_data(overfitted, context={"release": "<b>API</b>", "owner": None})
    rows = annex_of(view_of(result)).declared
    assert [value for _, value in rows] == ["<b>API</b>", *["not stated"] * 7]
    assert [value for _, value in annex_of(view_of(overfitted)).declared] == ["not stated"] * 8
    page = render([result])
    assert "<dt>Release</dt><dd><bdi>&lt;b&gt;API&lt;/b&gt;</bdi></dd>" in page
    assert page.count("<bdi>not stated</bdi>") == 7


# --- Which attacks were run -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "ran", "without"),
    [
        ([], LOSS, []),
        (["column 'loss' of losses.csv, membership from column 'member'"], LOSS, []),
        (["negative log-odds of the true class from logits of Net (PyTorch)"], LOSS, [EXTRACTION]),
        (["mean token log-loss of a language model"], LOSS, []),
        (["squared error from a model", "log-likelihood ratio, Student's t, by 8 shadow models"], REFERENCE, [EXTRACTION]),
        (["offline RMIA, a = 0.3, gamma = 1, 4 reference model(s), which must have been trained"], REFERENCE, []),
        (["it was not offline RMIA, "], LOSS, []),
    ],
)  # fmt: skip
def test_what_was_run_is_read_from_the_history(overfitted, history, ran, without):
    """One attack was run; the others were not, but for what has no meaning for such losses."""
    expected = ["not run"] * 9
    expected[ran] = "run"
    for place in without:
        expected[place] = "not applicable"
    assert states(with_data(overfitted, history=history)) == expected


def test_labels_alone_are_their_own_attack():
    """A model that answers with labels alone is attacked by the label, as its collected losses say."""

    def hard(rows):
        return [[1.0, 0.0] if row[0] > 0 else [0.0, 1.0] for row in rows]

    x = [[1.0], [-1.0], [2.0], [-2.0]]
    found = auditor.collect(hard, members=(x, [0, 1, 0, 1]), nonmembers=(x, [1, 1, 0, 0]), classes=[0, 1])
    made = states(auditor.audit(found, disclosure="insiders"))
    assert made[LABEL] == "run"
    assert made[LOSS] == "not run"
    assert made[EXTRACTION] == "not applicable"


SHADOWS = scores.References(
    member=[[-1.2, -1.0, 0.2, 0.1], [3.2, 3.0, 4.0, 4.3]],
    nonmember=[[-1.3, -0.9, 0.2, 0.0], [3.9, 4.0, 5.1, 4.9]],
    trained_on=([[True, True, False, False]] * 2,) * 2,
)
APART = scores.References(member=[0.8, 0.9], nonmember=[0.9, 1.2])
ONLINE = scores.Population(loss=[0.5, 1.0, 1.5], reference=[[0.6] * 4] * 3, scale="log-odds")
OFFLINE = scores.Population(loss=[0.5, 1.0, 1.5], reference=[0.6, 1.1, 1.2])


@pytest.mark.parametrize(
    ("score", "losses"),
    [
        (scores.likelihood_ratio(SHADOWS), [-1.0, 3.0]),
        (scores.rmia(SHADOWS, population=ONLINE), [-1.0, 3.0]),
        (scores.rmia(APART, population=OFFLINE), [0.1, 0.2]),
        (scores.difficulty(APART), [0.1, 0.2]),
    ],
    ids=["likelihood ratio", "online RMIA", "offline RMIA", "difficulty"],
)
def test_scores_leave_the_words_by_which_they_are_known(overfitted, score, losses):
    """Each attack with reference models is told by what its score itself writes into the history."""
    scale = "log-odds" if min(losses) < 0 else "unknown"
    scored = score(auditor.Losses(member=losses, nonmember=[0.9, 1.4], scale=scale))
    made = states(with_data(overfitted, history=list(scored.history)))
    assert [place for place, state in enumerate(made) if state == "run"] == [REFERENCE]


def test_the_table_says_of_what_was_run_how_much(overfitted):
    """Only the attack that was run has records, ceiling, confidence and finding; the others have dashes."""
    found = formats.Markup(render([overfitted])).text
    assert "run 2,000 training records, 2,000 other records 5.57 95% Leakage found" in found
    assert "Attribute inference not run — — — —" in found
    assert "tested negative" not in found


# --- What remains ---------------------------------------------------------------------------------


def test_every_state_has_a_sentence_and_none_is_safe(overfitted, not_evaluable, nothing):
    """Leak, nothing, too weak and invalid differ in what remains, and no sentence calls a model safe."""
    words = texts("annex")["residual"]
    assert not re.search(r"\b(safe|secure|no risk|private)\b", " ".join(words.values()))
    invalid = dataclasses.replace(overfitted, checks=(Check("shift", Status.FAIL, "They differ."),))
    small = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.1, 0.9] * 4))
    for result, key, sign in (
        (overfitted, "leak", "Leakage found"),
        (not_evaluable, "leak", "Leakage found"),  # whatever became of the claim
        (nothing, "nothing", "No evidence of leakage"),
        (invalid, "failed", "Not a valid comparison"),
        (small, "small", "Too few to tell"),
        (auditor.audit(auditor.Losses([1.0] * 40, [1.0] * 40)), "blind", "The score tells nothing"),
    ):
        assert annex_of(view_of(result)).residual == words[key]
        assert sign == view_of(result).finding.sign.word


# --- The hash of the content ----------------------------------------------------------------------


def test_the_hash_is_that_of_the_content(overfitted):
    """Whoever sorts the keys, leaves out blanks and the hash itself, and takes the SHA-256 finds the same; a page shows it."""
    raw = json.loads(overfitted.to_json())
    kept = raw["provenance"].pop("content_sha256")
    text = json.dumps(raw, sort_keys=True, ensure_ascii=True, indent=None, separators=(",", ":"))
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == kept
    assert f"<code>{kept}</code>" in render([overfitted])
    assert json.loads(with_data(overfitted, n_member=1).to_json())["provenance"]["content_sha256"] != kept


# --- The cards of models --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["overfitted", "refuted", "not_evaluable", "nothing", "named", "hostile"])
def test_every_card_keeps_its_format(name, request):
    """Whatever an audit found and whatever texts it holds, the cards are what their format allows, and stay the same."""
    result = request.getfixturevalue(name)
    formats.model_card(model_card(result))
    assert model_card(result) == model_card(dataclasses.replace(result))


def test_a_model_card_has_the_numbers_as_numbers(overfitted):
    """YAML reads each value as the number it is, 1e-05 and infinities too, with its interval in words beside it."""
    tiny = dataclasses.replace(
        overfitted.estimate("auc"), value=1e-05, lower=None, upper=None, confidence=None
    )
    endless = dataclasses.replace(
        overfitted.estimate("advantage"), value=math.inf, lower=0.25, upper=math.inf
    )
    result = dataclasses.replace(overfitted, estimates=(tiny, endless))
    text = model_card(result)
    (model,) = yaml.safe_load(text.split("---\n")[1])["model-index"]
    (found,) = model["results"]
    first, second = found["metrics"]
    assert (model["name"], found["task"]["type"]) == ("income-classifier v3", "membership-inference")
    assert found["dataset"]["name"] == "2,000 training records and 2,000 other records"
    assert (first["type"], first["value"]) == ("auc", 1e-05)
    assert first["args"]["interval"].startswith("point estimate")
    assert (second["value"], second["args"]["lower"]) == ("inf", 0.25)


def test_a_name_cannot_leave_its_line(overfitted):
    """A model's name of several lines is one line in every card, so that it starts no line of its own."""
    result = with_data(overfitted, model='a\n::error::b\n---\n"x": <script>')
    (model,) = yaml.safe_load(model_card(result).split("\n---\n")[0])["model-index"]
    assert model["name"] == 'a ::error::b --- "x": <script>'
    assert "\n::error::" not in model_card(result) + result.to_markdown()
    assert "<script>" not in model_card(result).split("\n---\n")[1]


# --- Attacks that an audit runs beside the main one -------------------------------------------------


def test_estimated_odds_and_labels_alone_have_rows_of_their_own(rng):
    """An audit by estimated odds, with losses under policies, says of both attacks what they looked at and found."""
    member, nonmember = rng.normal(-1, 1, 400), rng.normal(0, 1, 400)
    policies = {"label": (1.0 * (member > 0), 1.0 * (nonmember > 0))}
    losses = auditor.Losses(member, nonmember, policies=policies)
    features = auditor.Features(rng.normal(0, 1, 400), rng.normal(0, 1, 400))
    found = auditor.audit(losses, split=auditor.Propensity(features))
    coverage = annex_of(view_of(found)).coverage
    row = found.estimate("epsilon_bound.propensity")
    assert states(found)[ESTIMATED] == states(found)[LABEL] == "run"
    assert states(found)[LABELS] == "not run"
    assert coverage[ESTIMATED].scored == f"{row.details['odds']['kept']} records"
    assert coverage[ESTIMATED].found.endswith("if the estimated odds of membership are right")
    auc = found.policies[1].estimates[0]
    assert f"AUC {auc.value:.3f}" in coverage[LABEL].found
    assert all(attack.found in render([found]) for attack in (coverage[ESTIMATED], coverage[LABEL]))
