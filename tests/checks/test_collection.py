"""Warnings of the collection reach the checks, and so the report."""

import dataclasses

import numpy as np
import pytest

import auditor
from auditor import checks
from auditor.collectors import Output, RecordTable, collect, collect_to
from auditor.collectors.tables import read_losses
from auditor.core import Losses, OnePerPerson, Status
from auditor.curves import log_odds, published
from auditor.records import per_person
from auditor.report import audit_text

NOTES = ("the model answers differently on repeat: use repeats=.", "the outputs are hard labels")
RANDOM = "the model answers differently on repeat"


def noted_losses(**more):
    """Ten losses of each group, with both notes."""
    rng = np.random.default_rng(0)
    return Losses(member=rng.random(10), nonmember=rng.random(10), history=("a", *NOTES), notes=NOTES, **more)


def noisy():
    """A model that answers at random, and records of two groups in memory."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % 2
    return (lambda x: rng.uniform(0.2, 0.8, len(x))), (np.arange(300.0), y), (np.arange(300.0, 600.0), y)


def test_each_note_is_a_sentence_of_the_warning():
    """Every note stands in the message as a sentence, with what it means, and in the details; without any there is no check."""
    found = checks.collection(noted_losses().notes)
    assert found.status is Status.WARN
    for words in (
        "The model answers differently on repeat: use repeats=. The outputs are hard labels. ",
        "hide a leak",
    ):
        assert words in found.message
    assert found.details["notes"] == list(NOTES)
    assert checks.collection(()) is None


@pytest.mark.parametrize(
    "change",
    [
        published,
        log_odds,
        lambda losses: losses.take(member=np.arange(3), nonmember=np.arange(3)),
        lambda losses: dataclasses.replace(losses, member=np.arange(10.0)),
        lambda losses: per_person(losses, choice=OnePerPerson()).losses,
    ],
)
def test_changed_losses_keep_the_notes(change):
    """A transform, a part, other values and one score per person fix nothing that was noticed about the losses."""
    owner = np.arange(10) // 2
    assert change(noted_losses(person=(owner, 10 + owner))).notes == NOTES


def test_random_answers_reach_the_report():
    """A model that answers at random is warned of in the terminal and in the page, by the same sentence."""
    model, inside, outside = noisy()
    with pytest.warns(UserWarning, match=RANDOM):
        losses = collect(
            model, members=inside, nonmembers=outside, output=Output.PROBABILITIES, batch_size=100
        )
    result = auditor.audit(losses)
    assert result.check("collection").status is Status.WARN
    assert "Warning Collection: Noticed when" in " ".join(audit_text(result, width=1000).split())
    assert RANDOM[1:] in result.to_html()


def test_notes_pass_through_the_file(tmp_path):
    """Warnings of a collection into a file are read back with its losses, of every column and either way round."""
    model, inside, outside = noisy()
    groups = [RecordTable({"x": x, "y": y}, label="y") for x, y in (inside, outside)]
    path = tmp_path / "losses.parquet"
    collect_to(path, model, members=groups[0], nonmembers=groups[1], output=Output.PROBABILITIES)
    for higher in (False, True):
        (note,) = read_losses(path, higher_is_member=higher).notes
        assert note.startswith(RANDOM)


def test_hard_labels_are_said_once():
    """Outputs of 0 and 1 alone are one step of the history and one note, not two that say the same."""
    y = np.arange(300) % 2
    with pytest.warns(UserWarning, match="as of a model that returns labels"):
        losses = collect(lambda x: x, members=(y * 1.0, y), nonmembers=(y * 1.0, y), batch_size=100)
    assert len(losses.history) == 2
    assert losses.notes == losses.history[1:]
    assert "hard labels" in losses.notes[0]
