"""Long collections into a file: the same losses as in memory, and nothing scored twice, mixed or lost."""

import resource
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from collectors.streaming.fakes import FakeScorer, FakeSource, asked, digest, parts_of, stream_to, tables
from pyarrow import parquet

import auditor
from auditor.collectors.base import finite_pair, in_batches, losses_of
from auditor.collectors.tables import read_metadata
from auditor.core import InputError, OutputError

EVERY = 102  # records in the two tables


def interrupted(tmp_path, *, at=1030, **changes):
    """A collection that failed at a record, and its log: everything before the record's batch is on disk."""
    log = tmp_path / "log"
    scorer = FakeScorer(log=log, fail_at=at, **changes)
    with pytest.raises(ValueError, match=str(at)):
        stream_to(tmp_path / "losses.parquet", scorer=scorer, sources=tables())
    before = asked(log)
    log.unlink()
    return tmp_path / "losses.parquet", before


def test_the_file_holds_what_memory_would_hold(tmp_path):
    """Losses, places of saturated ones, counts and history are those of the whole groups scored at once."""
    path = tmp_path / "losses.parquet"
    report = stream_to(path, scorer=FakeScorer(), sources=tables())
    scorer, sources = FakeScorer(), tables()
    groups = [source.read(0, len(source)).records for source in sources]
    first, second = finite_pair(*map(scorer.score, groups))
    expected = losses_of(scorer, *in_batches(scorer, groups, size=None), labels={})
    table = parquet.read_table(path).to_pydict()
    assert table["loss"] == [*first, *second]
    assert table["member"] == [True] * 57 + [False] * 45
    assert table["id"] == [f"r{i}" for i in (*range(57), *range(1000, 1045))]
    assert table["label"] == [i % 2 for i in (*range(57), *range(1000, 1045))]
    assert table["fingerprint"] == [
        *(word for source in sources for word in source.read(0, len(source)).fingerprint)
    ]
    assert table["other"] == [i / 7 for i in (*range(57), *range(1000, 1045))]
    found = read_metadata(path)
    for name in ("scale", "saturated", "history"):
        assert getattr(found, name) == getattr(expected, name)
    assert (report.n_member, report.n_nonmember, report.scored_now, report.resumed) == (57, 45, EVERY, 0)
    assert [item.name for item in tmp_path.iterdir()] == ["losses.parquet"]


def test_a_second_call_asks_only_for_what_is_missing(tmp_path):
    """After a failure the same call requests no record on disk again, but twice for ten to know the model; same file."""
    path, before = interrupted(tmp_path)
    assert before == [*range(57), *range(1000, 1040)]
    log = tmp_path / "log"
    lines = []
    report = stream_to(path, scorer=FakeScorer(log=log), sources=tables(), announce=lines.append)
    assert asked(log) == [*range(10), *range(1030, 1045), *range(10)]
    assert (report.scored_now, report.resumed) == (15, 87)
    assert lines == ["Going on: 87 of 102 records are scored already."]
    other = tmp_path / "other.parquet"
    stream_to(other, scorer=FakeScorer(), sources=tables())
    assert digest(path) == digest(other)


def test_a_complete_file_is_not_made_again(tmp_path):
    """The same call on a complete file asks only for ten records to know the model, says so, and changes nothing."""
    path, log, lines = tmp_path / "losses.parquet", tmp_path / "log", []
    stream_to(path, scorer=FakeScorer(), sources=tables())
    before = digest(path)
    report = stream_to(path, scorer=FakeScorer(log=log), sources=tables(), announce=lines.append)
    assert asked(log) == list(range(10))
    assert (report.scored_now, report.resumed, digest(path)) == (0, EVERY, before)
    assert lines == ["losses.parquet is complete already: nothing is scored."]
    assert set(tmp_path.iterdir()) == {path, log}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sources": tables(seed=1)}, "the data changed: the hash of features was '"),
        ({"sources": tables(ids="number")}, "the data changed: the hash of id was '"),
        ({"sources": tables(n=58)}, "the numbers of records changed: they was [57, 45] and is now [58, 45]"),
        ({"sources": tables()[::-1]}, "the numbers of records changed"),
        ({"scorer": FakeScorer(identity="model-2")}, "its hash was 'model-1' and is now 'model-2'"),
        ({"scorer": FakeScorer(words="others")}, "is now 'others'"),
        ({"setting": {"classes": (1, 0)}}, "the setting changed: classes was unknown and is now [1, 0]"),
        ({"batch_size": 5}, "the setting changed: batch_size was 10 and is now 5"),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_what_changed_is_named_and_refused(tmp_path, changes, words, complete):
    """Another model, other data or another setting is refused, with both values, before the model is called."""
    path = tmp_path / "losses.parquet"
    if complete:
        stream_to(path, scorer=FakeScorer(), sources=tables())
    else:
        interrupted(tmp_path)
    before = {item: digest(item) for item in (*parts_of(path), *tmp_path.glob("*.parquet"))}
    log = tmp_path / "log"
    arguments = {"scorer": FakeScorer(), "sources": tables()} | changes
    arguments["scorer"] = replace(arguments["scorer"], log=log)
    with pytest.raises(InputError, match=r"name another") as caught:
        stream_to(path, **arguments)
    assert words in str(caught.value)
    assert not log.exists()
    assert before == {item: digest(item) for item in (*parts_of(path), *tmp_path.glob("*.parquet"))}
    again = tmp_path / "again.parquet"
    stream_to(again, **arguments)
    stream_to(path, **arguments, overwrite=True)
    assert digest(path) == digest(again)


def test_a_change_before_the_first_part_costs_nothing(tmp_path):
    """Where nothing was scored yet, a changed setting is no reason to refuse."""
    interrupted(tmp_path, at=3)
    path = tmp_path / "losses.parquet"
    assert stream_to(path, scorer=FakeScorer(), sources=tables(), setting={"a": 1}).resumed == 0


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("identity", "again", "refused"),
    [
        (None, {}, False),
        (None, {"noise": 1e-9}, False),
        (None, {"noise": 1e-3}, True),
        (None, {"factor": 3.001}, True),
        ("missed", {"factor": 3.001}, True),
    ],
)
def test_a_model_is_known_by_its_losses(tmp_path, complete, identity, again, refused):
    """With no hash, or one that misses what changed, a model of other losses is refused with row and both losses."""
    path = tmp_path / "losses.parquet"
    if complete:
        stream_to(path, scorer=FakeScorer(identity=identity), sources=tables())
    else:
        interrupted(tmp_path, identity=identity)
    before = {item: digest(item) for item in (*parts_of(path), *tmp_path.glob("*.parquet"))}
    scorer = FakeScorer(identity=identity, **again)
    if not refused:
        stream_to(path, scorer=scorer, sources=tables())
        return
    with pytest.raises(InputError, match=r"the loss of members row \d+, counting from 0, was .* and is now"):
        stream_to(path, scorer=scorer, sources=tables())
    assert before == {item: digest(item) for item in before}


def test_a_model_that_answers_at_random_is_not_held_to_its_losses(tmp_path):
    """Where the trial said that the model answers differently on repeat, going on is not refused; the warning stays."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    trials = []
    found = {
        "tried": lambda *given: trials.append(given),
        "warnings": ("it answers at random",),
        "deterministic": False,
    }
    scorer = FakeScorer(identity=None, fail_at=1030)
    with pytest.raises(ValueError, match="1030"):
        stream_to(path, scorer=scorer, sources=tables(), **found)
    stream_to(path, scorer=FakeScorer(identity=None, factor=9, log=log), sources=tables(), **found)
    assert asked(log) == [*range(1030, 1045)]
    [(tried, groups)] = trials
    assert tried is scorer
    assert [len(group) for group in groups] == [57, 45]
    assert read_metadata(path).history[-1] == "it answers at random"
    report = stream_to(path, scorer=FakeScorer(identity=None, factor=5), sources=tables(), **found)
    assert report.warnings[-1] == "it answers at random"


def test_a_model_that_rounds_by_batch_is_asked_for_the_batch(tmp_path):
    """Ten records that round otherwise alone are no other model: their whole batch is compared before it is refused."""

    class Rounds(FakeScorer):
        def score(self, records):
            found = super().score(records)
            return replace(found, loss=found.loss * (1 + 1e-4 * (len(records) < 20)))

    path, log = tmp_path / "losses.parquet", tmp_path / "log"
    with pytest.raises(ValueError, match="1030"):
        stream_to(path, scorer=Rounds(records_at_once=20, fail_at=1030), sources=tables())
    stream_to(path, scorer=Rounds(records_at_once=20, log=log), sources=tables())
    assert asked(log) == [*range(10), *range(20), *range(1020, 1045), *range(10), *range(20)]
    other = tmp_path / "other.parquet"
    stream_to(other, scorer=Rounds(records_at_once=20), sources=tables())
    assert digest(path) == digest(other)


def test_the_batches_are_those_of_the_first_run(tmp_path):
    """A scorer that wants other batches now gets those of the run that it goes on with."""
    path, _ = interrupted(tmp_path, records_at_once=10)
    calls = []
    again = FakeScorer(records_at_once=7, meanwhile=lambda records: calls.append(len(records)))
    stream_to(path, scorer=again, sources=tables())
    assert calls == [10, 10, 5, 10]


@pytest.mark.parametrize("damage", ["cut", "swap", "remove"])
def test_a_damaged_part_is_scored_again(tmp_path, damage):
    """A part that is cut off, another's or gone is found out, and only its records are scored again."""
    path, _ = interrupted(tmp_path)
    part, other = parts_of(path)[2:4]
    new = {"cut": part.read_bytes()[:-9], "swap": other.read_bytes()}
    part.write_bytes(new[damage]) if damage in new else part.unlink()
    log = tmp_path / "log"
    stream_to(path, scorer=FakeScorer(log=log), sources=tables())
    assert asked(log) == [*range(10), *range(20, 30), *range(1030, 1045), *range(10)]
    whole = tmp_path / "whole.parquet"
    stream_to(whole, scorer=FakeScorer(), sources=tables())
    assert digest(path) == digest(whole)


OTHERS = {"columns": pa.table({"loss": [1.0]})}
OTHERS["version"] = OTHERS["columns"].replace_schema_metadata({"auditor": "{}"})


@pytest.mark.parametrize("content", [b"loss\n", b"PAR1", b"", "columns", "version"])
def test_another_file_is_never_overwritten(tmp_path, content):
    """A file at the path that no collection made is refused at once and kept, even where one may be overwritten."""
    path = tmp_path / "losses.parquet"
    if content in OTHERS:
        parquet.write_table(OTHERS[content], path)
    else:
        path.write_bytes(content)
    before = digest(path)
    with pytest.raises(InputError, match=r"exists already and is not the result of a collection"):
        stream_to(path, scorer=FakeScorer(), sources=tables())
    assert digest(path) == before
    if content == "version":  # of a collection, as another version wrote it
        report = stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=True)
        assert report.scored_now == parquet.read_metadata(path).num_rows == EVERY
        return
    with pytest.raises(OutputError, match="holds no collected losses, and nothing else is overwritten"):
        stream_to(path, scorer=FakeScorer(), sources=tables(), overwrite=True)
    assert digest(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    """A file that somebody puts at the path while records are scored is not replaced, and no losses are lost."""
    path = tmp_path / "losses.parquet"
    slow = FakeScorer(meanwhile=lambda _: path.write_bytes(b"mine"))
    with pytest.raises(InputError, match=r"appeared while .*; 102 of 102 records are scored and kept in"):
        stream_to(path, scorer=slow, sources=tables())
    assert path.read_bytes() == b"mine"
    path.unlink()
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).scored_now == 0


def test_one_process_at_a_time(tmp_path):
    """While a collection runs, another to the same output is refused in one sentence, and scores nothing."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"

    def ask_again(_):
        with pytest.raises(OutputError, match=r"losses.parquet' is being collected by another process"):
            stream_to(path, scorer=FakeScorer(log=log), sources=tables())

    stream_to(path, scorer=FakeScorer(meanwhile=ask_again), sources=tables())
    assert not log.exists()


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (KeyboardInterrupt(), "interrupted: "),
        (InputError("endpoint is down; start it."), "endpoint is down; start it; "),
    ],
)
def test_whatever_ends_a_collection_says_how_to_go_on(tmp_path, raised, words):
    """Ctrl-C, and an endpoint that goes down, end with a sentence that counts what is kept; the same call goes on."""
    path, log = tmp_path / "losses.parquet", tmp_path / "log"

    def stop(records):
        if 40 in records.features[:, 0]:
            raise raised

    with pytest.raises(
        type(raised), match=rf"^{words}40 of 102 records are scored and kept .* goes on from there"
    ):
        stream_to(path, scorer=FakeScorer(meanwhile=stop), sources=tables())
    stream_to(path, scorer=FakeScorer(log=log), sources=tables())
    assert asked(log) == [*range(10), *range(40, 57), *range(1000, 1045), *range(10)]


@pytest.mark.parametrize("kept", [20, EVERY])
def test_a_full_disk_loses_nothing(tmp_path, kept, monkeypatch):
    """Where a file cannot grow (as on a full disk), one sentence says so, and the parts before it are kept."""
    path, limits = tmp_path / "losses.parquet", resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # half a compiled module would stay, for every other test

    def fill(_):
        if 10 * scorer.calls == kept:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))

    def merging(stage, *_):
        if stage == "Scoring" and kept == EVERY and len(parts_of(path)) == 11:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))

    scorer = FakeScorer(meanwhile=fill)
    try:
        with pytest.raises(
            OutputError, match=rf"cannot be written: File too large; {kept} of 102 records are"
        ):
            stream_to(path, scorer=scorer, sources=tables(), progress=merging)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not path.exists()
    assert stream_to(path, scorer=FakeScorer(), sources=tables()).resumed == kept


def test_no_model_is_asked_before_all_labels_are_checked(tmp_path):
    """A label at the very end that the scorer refuses is found before the first record is scored."""

    class Strict(FakeScorer):
        def check(self, records):
            if 1044 in records.features[:, 0]:
                raise InputError("bad label.")

    with pytest.raises(InputError, match=r"^bad label\.$"):
        stream_to(tmp_path / "losses.parquet", scorer=Strict(log=tmp_path / "log"), sources=tables())
    assert list(tmp_path.iterdir()) == []


def test_tables_that_change_meanwhile_are_found_out(tmp_path):
    """Records that are other ones when they are scored than when they were surveyed never get into an output."""
    path = tmp_path / "losses.parquet"
    reads = []

    class Changing(FakeSource):
        def read(self, start, stop):
            reads.append(start)
            return super(Changing, self if len(reads) < 3 else replace(self, shift=1.0)).read(start, stop)

    sources = (Changing("members", 57, member=True), tables()[1])
    with pytest.raises(
        InputError, match=r"the features of the tables changed while .*; delete the folder"
    ) as caught:
        stream_to(path, scorer=FakeScorer(), sources=sources)
    assert "goes on" not in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ((), "at least 2 members and 2 non-members, got 0 and 0"),
        (tables(m=1), "got 57 and 1"),
    ],
)
def test_too_few_records_leave_nothing_behind(tmp_path, sources, words):
    """Input that cannot be collected is refused in a sentence, without a folder left."""
    with pytest.raises(InputError, match=words):
        stream_to(tmp_path / "losses.parquet", scorer=FakeScorer(), sources=sources)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("losses.csv", "must end in .parquet, got '.csv'"),
        ("losses", "got 'no extension'"),
        ("nowhere/losses.parquet", "does not exist; create it first"),
        ("folder.parquet", "is a folder; name a file in it"),
        ("taken.parquet", "cannot be written: File exists"),
        ("nul\0.parquet", "is not a path that can be written"),
    ],
)
def test_a_path_that_cannot_be_is_refused(tmp_path, name, words):
    """An output that cannot be written is refused before anything is scored."""
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "taken.parquet.parts").write_text("a file")
    records = auditor.RecordTable({"x": np.arange(9.0), "y": [0] * 9, "member": [0, 1, 1] * 3}, label="y")
    with pytest.raises((InputError, OutputError), match=words):
        auditor.collect_to(tmp_path / name, lambda _: 1 / 0, records=records)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', "null", "[" * 100_000])
def test_a_damaged_manifest_is_refused(tmp_path, content):
    """A manifest that cannot be read is refused, and its parts are kept."""
    path, _ = interrupted(tmp_path)
    manifest = tmp_path / "losses.parquet.parts" / "manifest.json"
    manifest.write_text(content)
    with pytest.raises(InputError, match=r"manifest.json' is damaged .* delete its folder"):
        stream_to(path, scorer=FakeScorer(), sources=tables())
    assert len(parts_of(path)) == 9


def test_columns_of_two_tables_meet(tmp_path):
    """Ids that are numbers in one table and text in the other become text; a column of one only is left out and named."""
    sources = (tables(ids="number")[0], tables()[1])
    path = tmp_path / "losses.parquet"
    report = stream_to(path, scorer=FakeScorer(), sources=sources)
    ids = parquet.read_table(path)["id"].to_pylist()
    assert (ids[:2], ids[-1]) == (["0", "1"], "r1044")
    assert len(report.warnings) == 1
    other = tmp_path / "other.parquet"
    report = stream_to(
        other, scorer=FakeScorer(), sources=(tables(ids="none")[0], replace(tables()[1], hashed=False))
    )
    assert report.warnings[-1] == "left out, because only some of the tables have it: fingerprint, id"
    assert {"id", "fingerprint"}.isdisjoint(parquet.read_schema(other).names)


def test_an_empty_table_among_others_is_no_obstacle(tmp_path):
    """A table without records adds none."""
    sources = (FakeSource("none", 0, member=True), *tables())
    path = tmp_path / "losses.parquet"
    assert stream_to(path, scorer=FakeScorer(identity=None), sources=sources).n_member == 57
    assert stream_to(path, scorer=FakeScorer(identity=None), sources=sources).scored_now == 0


def test_progress_goes_through_the_stages(tmp_path):
    """Tables are read before a record is scored, and merged after all are; each stage goes to its end."""
    told = []
    stream_to(
        tmp_path / "losses.parquet",
        scorer=FakeScorer(),
        sources=tables(),
        progress=lambda *step: told.append(step),
    )
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["Reading", "Scoring", "Merging"]
    assert {total for _, _, total in told} == {EVERY}
    for stage in ("Reading", "Scoring", "Merging"):
        done = [step[1] for step in told if step[0] == stage]
        assert done == sorted(done)
        assert done[-1] == EVERY


def test_the_stretches_read_do_not_show_in_the_hashes(tmp_path):
    """The data's hashes are the same whatever the size of the batches, as is the file."""
    sources = tables(2000, 1500)
    found = []
    for size in (60, 700, 5000):
        path = tmp_path / f"{size}.parquet"
        stream_to(path, scorer=FakeScorer(), sources=sources, batch_size=size)
        found.append((read_metadata(path).manifest.data, parquet.read_table(path).to_pydict()))
    assert found[0] == found[1] == found[2]
    assert parquet.read_metadata(tmp_path / "60.parquet").num_row_groups == 1
    assert set(found[0][0]) == {"features", "labels", "membership", "id", "group"}


def test_drafts_of_a_killed_run_are_removed_first(tmp_path):
    """The unfinished files of a killed run take no room on the disk while the next one works."""
    path, _ = interrupted(tmp_path)
    draft = tmp_path / "losses.parquet.parts" / f".draft-{'0' * 32}"
    draft.write_text("half a part")

    def look(_):
        assert not draft.exists()

    assert stream_to(path, scorer=FakeScorer(meanwhile=look), sources=tables()).resumed == 87
