"""The metadata of a collected file are used only as far as they can be true."""

import json

import numpy as np
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, stream_to, tables
from pyarrow import parquet

from auditor.collectors.tables import read_losses, read_metadata
from auditor.core import InputError, LossScale


@pytest.fixture
def path(tmp_path):
    """A collected file of 57 members and 45 non-members, 4 and 3 of them saturated."""
    return stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=tables()).path


def altered(path, change):
    """The same columns with other metadata: the parsed one after a change, or bytes as they are."""
    table = parquet.read_table(path)
    text = table.schema.metadata[b"auditor"]
    if callable(change):
        values = json.loads(text)
        change(values)
        text = json.dumps(values).encode()
    else:
        text = change
    parquet.write_table(table.replace_schema_metadata({b"auditor": text}), path)


def test_other_files_say_nothing(tmp_path):
    """A Parquet file of another tool, another kind of file, a folder and a missing file have no metadata."""
    other = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"loss": [1.0]}), other)
    text = tmp_path / "text.parquet"
    text.write_text("loss\n1\n")
    for each in (other, text, tmp_path, tmp_path / "missing.parquet"):
        assert read_metadata(each) is None


def test_the_counts_are_those_of_the_whole_file(path):
    """Records that were taken out later take the counts of saturated ones with them, as for losses in memory."""
    assert read_metadata(path).saturated == (4, 3)
    table = parquet.read_table(path)
    parquet.write_table(table.filter(pa.array(np.arange(102) % 2 == 0)), path)
    found = read_metadata(path)
    assert (found.saturated, found.scale, found.manifest) == ((0, 0), LossScale.LOG_ODDS, None)


def test_signs_that_cannot_be_printed_are_not_passed_on(path):
    """A history with control characters, which could deceive a terminal, loses them."""
    altered(path, lambda values: values.update(history=["a\x1b[2Jb\u202e\nc"]))
    assert read_metadata(path).history == ("a?[2Jb??c",)


def test_notes_outlive_a_filter_of_the_file(path):
    """Warnings about the model hold when records were taken out of the file, and are as fit to print."""
    altered(path, lambda values: values.update(notes=["it answers\x1b at random"]))
    table = parquet.read_table(path)
    parquet.write_table(table.filter(pa.array(np.arange(102) % 2 == 0)), path)
    assert read_metadata(path).notes == ("it answers? at random",)
    assert read_losses(path).notes == ("it answers? at random",)


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        b'{"format": ' + b"1" * 5_000 + b"}",
        b'"' + b"x" * 2**22 + b'"',
        lambda values: values.update(format=2),
        lambda values: values.update(scale="percent"),
        lambda values: values.update(history=[1]),
        lambda values: values.update(notes="one"),
        lambda values: values.pop("notes"),
        lambda values: values.update(history=["x"] * 101),
        lambda values: values.update(history=["x" * 2_001]),
        lambda values: values.update(saturated=[1]),
        lambda values: values.update(saturated=[58, 0]),
        lambda values: values.update(saturated=[-1, 0]),
        lambda values: values.update(saturated=[1.5, 0]),
        lambda values: values.update(counts=[10**400, 1.0]),
        lambda values: values.update(eps=0),
        lambda values: values.update(eps=float("nan")),
        lambda values: values.update(eps="a"),
        lambda values: values.pop("content"),
        lambda values: values.update(content={"loss": 1}),
        lambda values: values.pop("manifest"),
    ],
)
def test_what_cannot_be_true_is_refused(path, change):
    """Metadata that is no JSON, too long, too deep, of another version or impossible is refused in a sentence."""
    altered(path, change)
    with pytest.raises(InputError, match=r"losses.parquet' describes its losses in a way that") as caught:
        read_metadata(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("manifest", [None, {}, [], "x", {"format": 1}])
def test_losses_without_their_collection_are_still_losses(path, manifest):
    """A file whose manifest another version wrote is read; it is only not known as the result of a collection."""
    altered(path, lambda values: values.update(manifest=manifest))
    assert read_metadata(path).manifest is None
    assert read_metadata(path).saturated == (4, 3)


def test_losses_that_were_changed_on_purpose_are_read_without_the_metadata(path):
    """The columns alone, in another order too, are losses like any other."""
    table = parquet.read_table(path).replace_schema_metadata(None)
    parquet.write_table(table.take(np.random.default_rng(0).permutation(102)), path)
    assert read_losses(path).n_member == 57


def test_a_filtered_file_says_that_it_cannot_be_compared(path):
    """Records that were taken out leave no hash to compare with, which the history says; of the whole file it does not."""
    assert not any("not compared" in step for step in read_losses(path).history)
    table = parquet.read_table(path)
    parquet.write_table(table.filter(pa.array(np.arange(102) % 2 == 0)), path)
    assert read_losses(path).history[-1].startswith("not compared with the collected losses")
