"""The annex for a reviewer: what is declared, which attacks were run, what remains, and the cards of models."""

import dataclasses
import datetime as dt
import hashlib
import json
import math
import re

import numpy as np
import pytest
import yaml
from pyarrow import parquet
from safety import formats

import auditor
from auditor import scores
from auditor.collectors import RecordTable, collect_to
from auditor.core import Check, InputError, Status
from auditor.curves import published
from auditor.records import per_person
from auditor.report import annex_of, model_card, render, texts, view_of

LOSS, LABEL, ESTIMATED, REFERENCE, ATTRIBUTE, LABELS, EXTRACTION, INVERSION, RECONSTRUCTION = range(9)


def with_data(result, **more):
    """The result with more in its data."""
    return dataclasses.replace(result, data={**result.data, **more})


def states(result):
    """Return the state of each attack, in their order."""
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
    assert auditor.audit(losses, context={"release": "API"}).data["context"]["release"] == "API"
    with pytest.raises(InputError, match=r"context must be auditor\.Context or None, got"):
        auditor.audit(losses, context=7)


def test_what_is_missing_is_not_stated(overfitted):
    """Every field has its row on the page, with what was stated or "not stated"; nothing is inferred from the audit."""
    result = with_data(overfitted, context={"release": "<b>API</b>", "owner": None})
    rows = annex_of(view_of(result)).declared
    assert [value for _, value in rows] == ["<b>API</b>", *["not stated"] * 7]
    assert [value for _, value in annex_of(view_of(overfitted)).declared] == ["not stated"] * 8
    page = render([result])
    assert "<dt>Release</dt><dd><bdi>&lt;b&gt;API&lt;/b&gt;</bdi></dd>" in page
    assert (
        page.partition('id="filing"')[0].count("<bdi>not stated</bdi>") == 7
    )  # the filing block repeats the owner


# --- Which attacks were run -----------------------------------------------------------------------


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
def test_scores_with_reference_models_are_that_attack(score, losses):
    """Each score with reference models is the attack by them."""
    scale = "log-odds" if min(losses) < 0 else "unknown"
    plain = auditor.Losses(
        member=losses, nonmember=[0.9, 1.4], scale=scale, attacks={"extraction": "not applicable"}
    )
    scored = score(plain)
    assert scored.attacks == {"extraction": "not applicable", "reference": "run"}
    made = states(auditor.audit(scored, disclosure="insiders"))
    assert [place for place, state in enumerate(made) if state == "run"] == [REFERENCE]
    assert made[EXTRACTION] == "not applicable"


WRITERS = {
    "losses.csv": lambda frame, path: frame.to_csv(path, index=False),
    "losses.parquet": lambda frame, path: frame.to_parquet(path),
    "losses.feather": lambda frame, path: frame.to_feather(path),
    "losses.npz": lambda frame, path: np.savez(path, **dict(frame)),
}


def losses_by_reference(**more):
    """Losses of an attack with reference models."""
    return auditor.Losses([0.1, 0.2, 0.3], [0.4, 0.2, 0.9], attacks={"reference": "run"}, **more)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_keeps_which_attack_was_run(tmp_path, name):
    """Losses of an attack are still of that attack when they were written to a file of any kind and read again."""
    path = tmp_path / name
    WRITERS[name](losses_by_reference().to_frame(), path)
    assert auditor.read_losses(path).attacks == {"reference": "run"}
    assert auditor.Summary.from_files([path]).losses.attacks == {"reference": "run"}


def test_what_is_made_of_losses_keeps_which_attack_was_run(tmp_path):
    """Parts, other scales, people, summaries and tables of one group each keep the fact; a summary's file too."""
    losses = losses_by_reference(person=([1, 2, 2], [3, 4, 4]))
    made = [losses.take(member=np.arange(2), nonmember=np.arange(2)), losses.swapped, published(losses)]
    made += [per_person(losses, choice=auditor.OnePerPerson()).losses, auditor.Summary.of(losses).losses]
    (auditor.Summary.of(losses) + auditor.Summary.of(dataclasses.replace(losses, attacks={}))).write(
        tmp_path / "s.parquet"
    )
    made += [auditor.Summary.read(tmp_path / "s.parquet").losses]
    halves = [part.drop(columns="member") for _, part in losses.to_frame().groupby("member")]
    made += [auditor.collectors.read_loss_pair(halves[1], halves[0].drop(columns="attack.reference"))]
    assert all(item.attacks == {"reference": "run"} for item in made)


def test_a_collected_file_keeps_what_became_of_attacks(tmp_path):
    """Losses by labels alone say so in their file, and that they are of a classifier."""
    path, y = tmp_path / "losses.parquet", [0, 1] * 4
    tables = [RecordTable({"x": y, "k": range(start, start + 8), "y": y}, label="y") for start in (0, 8)]
    collect_to(path, lambda rows: rows["x"] * 1.0, members=tables[0], nonmembers=tables[1])
    expected = {"label": "run", "extraction": "not applicable", "synthetic": "not applicable"}
    assert auditor.read_losses(path).attacks == auditor.Summary.from_files([path]).attacks == expected
    table = parquet.read_table(path)
    about = json.loads(table.schema.metadata[b"auditor"])
    assert about["attacks"] == expected
    other = {
        **table.schema.metadata,
        b"auditor": json.dumps({**about, "attacks": {"reference": "yes"}}).encode(),
    }
    parquet.write_table(table.replace_schema_metadata(other), path)
    with pytest.raises(InputError, match="in a way that this version cannot read"):
        auditor.read_losses(path)


def test_the_table_says_of_what_was_run_how_much(overfitted):
    """Only the attack that was run has records, ceiling, confidence and finding; the others have dashes."""
    found = formats.Markup(render([overfitted])).text
    assert "run 2,000 training records, 2,000 other records 5.57 95% Leakage: marked" in found
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
        (overfitted, "leak", "Leakage: marked"),
        (not_evaluable, "leak", "Leakage: marked"),  # whatever became of the claim
        (nothing, "nothing", "No evidence of leakage"),
        (invalid, "failed", "Not a valid comparison"),
        (small, "small", "Too few to tell"),
        (auditor.audit(auditor.Losses([1.0] * 40, [1.0] * 40)), "blind", "Uninformative score"),
    ):
        assert annex_of(view_of(result)).residual == words[key]
        assert sign == view_of(result).finding.sign.word


# --- The hash of the content ----------------------------------------------------------------------


def test_the_hash_is_that_of_the_content(overfitted):
    """The SHA-256 of the content with sorted keys, without blanks and the hash itself, is the hash; a page shows it."""
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
    assert coverage[ESTIMATED].result.endswith("if the estimated odds of membership are right")
    auc = found.policies[1].estimates[0]
    assert f"AUC {auc.value:.3f}" in coverage[LABEL].result
    assert all(attack.result in render([found]) for attack in (coverage[ESTIMATED], coverage[LABEL]))
