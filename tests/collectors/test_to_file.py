"""Tables in any order become the same file, and what is said of it holds of all records."""

import pickle

import numpy as np
import pandas as pd
import pytest

from auditor import InputError
from auditor.collectors import Classification, Output, RecordTable, collect, collect_to, read_losses
from auditor.collectors.base import Records, Sampled, naming_rows, sampled, sampled_groups, spread
from auditor.collectors.tables import open_groups

HARD = "hard labels"


def written(folder, frames, kind):
    """Tables of the frames, in memory or in files."""
    if kind == "memory":
        return [RecordTable(frame, label="y", id=None) for frame in frames]
    paths = [folder / f"{place}.{kind}" for place in range(len(frames))]
    for path, frame in zip(paths, frames, strict=True):
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, row_group_size=700)
    return [RecordTable(path, label="y", id=None) for path in paths]


def sorted_frames(n=3000, classes=40):
    """Members and non-members sorted by label, with features of several types."""
    rng = np.random.default_rng(1)
    return [
        pd.DataFrame(
            {
                "x": rng.normal(size=n),
                "k": np.arange(n) + shift,
                "word": rng.choice(["a", "b"], n),
                "y": np.arange(n) * classes // n,
            }
        )
        for shift in (0, n)
    ]


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_a_sample_is_spread_over_a_table(tmp_path, kind):
    """Five hundred records of a sorted table show every class, with their own features, labels and rows, each time."""
    frames = sorted_frames()
    tables = written(tmp_path, frames, kind)
    sources = open_groups(members=tables[0], nonmembers=tables[1], task=Classification())
    for source, frame in zip(sources, frames, strict=True):
        found, member = sampled(source)
        assert len(found) == len(member) == 500
        assert np.unique(found.labels).size == 40
        assert found.rows[0] == 0
        assert found.rows[-1] == 2999
        assert np.diff(found.rows).min() == 1
        own = frame.iloc[found.rows].reset_index(drop=True)
        pd.testing.assert_frame_equal(found.features, own[["x", "k", "word"]], check_dtype=kind == "memory")
        assert found.labels.tolist() == own["y"].tolist()
        again, _ = sampled(pickle.loads(pickle.dumps(source)))  # noqa: S301 - our own
        pd.testing.assert_frame_equal(found.features, again.features)
        assert found.row(499) == "row 2999, counting from 0"


def test_a_forward_file_is_read_once_for_its_sample(tmp_path, monkeypatch):
    """The stretches of a CSV file are read in their order, in one pass."""
    table = written(tmp_path, sorted_frames()[:1], "csv")[0]
    source = open_groups(
        members=table, nonmembers=RecordTable(sorted_frames()[1], label="y"), task=Classification()
    )[0]
    begun = []
    original = type(source.reader)._from
    monkeypatch.setattr(type(source.reader), "_from", lambda self, at: begun.append(at) or original(self, at))
    sampled(source)
    assert begun == [0]


def test_a_small_table_comes_whole():
    """Up to five hundred records are all of them, in one stretch."""
    frame = sorted_frames(500)[0]
    source = open_groups(
        members=RecordTable(frame, label="y"),
        nonmembers=RecordTable(frame.assign(x=0), label="y"),
        task=Classification(),
    )[0]
    found, _ = sampled(source)
    assert not isinstance(found, Sampled)
    assert found.labels.tolist() == frame["y"].tolist()


def test_both_groups_of_one_table_are_sampled():
    """Of a table that has its members first, members and non-members come, each with their rows."""
    frame = pd.concat(sorted_frames()).assign(member=np.repeat([1, 0], 3000))
    sources = open_groups(records=RecordTable(frame, label="y"), task=Classification())
    inside, outside = sampled_groups(sources)
    assert (len(inside), len(outside)) == (250, 250)
    assert inside.rows.max() < 3000 <= outside.rows.min()
    assert outside.features["k"].tolist() == outside.rows.tolist()


@pytest.mark.parametrize("make", [np.asarray, list, pd.Series, lambda x: pd.DataFrame({"x": x})])
def test_a_spread_of_a_spread_keeps_the_rows(make):
    """However often records are thinned and cut, a record keeps its features and its number."""
    (found,) = spread([Records("member", make(np.arange(1000)), np.arange(1000), first_row=50)], most=300)
    (found,) = spread([found], most=60)
    part = found.part(3, 9)
    assert part.rows.tolist() == (part.labels + 50).tolist()
    assert np.asarray(part.features).ravel().tolist() == part.labels.tolist()
    assert part.row(2) == f"row {part.labels[2] + 50}, counting from 0"


def test_what_fails_only_together_is_refused_as_it_was():
    """A refusal that no run of the sample repeats alone is raised as it came."""
    (found,) = spread([Records("member", np.arange(1000), np.zeros(1000))])

    def ask(records):
        if len(records) > 1:
            raise InputError("too many.")

    with pytest.raises(InputError, match=r"^too many\.$"):
        naming_rows(ask, found)


def test_a_sorted_table_gets_the_output_that_memory_gets(tmp_path, require_extra):
    """A network whose first five hundred logits happen to lie in [0, 1] is not taken for one of probabilities."""
    require_extra("torch")
    import torch

    net = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(net.weight)
    rng = np.random.default_rng(2)
    frames = []
    for _ in range(2):
        x = np.concatenate([np.sort(rng.uniform(0, 1, 600)), rng.normal(size=600) * 4]).astype(np.float32)
        frames.append(pd.DataFrame({"x": x, "y": rng.integers(0, 2, 1200)}))
    tables = [RecordTable(frame, label="y") for frame in frames]
    path = tmp_path / "losses.parquet"
    collect_to(path, net, members=tables[0], nonmembers=tables[1])
    losses = read_losses(path)
    pairs = [(frame[["x"]].to_numpy(), frame["y"]) for frame in frames]
    whole = collect(net, members=pairs[0], nonmembers=pairs[1])
    assert "logits" in losses.history[0]
    assert losses.history[0] == whole.history[0]
    np.testing.assert_allclose(losses.member, whole.member, rtol=1e-6)
    expected = np.where(frames[0]["y"] == 1, -1, 1) * frames[0]["x"].to_numpy(dtype=float)
    np.testing.assert_allclose(losses.member, expected, rtol=1e-6)


def two(frame):
    """The probabilities of two classes, which the table holds."""
    p = frame["p"].to_numpy()
    return np.stack([1 - p, p], axis=1)


def told(folder, inside, outside, model=two):
    """What is announced, and what is written, of a model that knows its members by heart."""
    frames = [
        pd.DataFrame({"p": p, "y": (p > 0.5).astype(int), "n": np.arange(len(p)) + at})
        for at, p in ((0, inside), (10_000, outside))
    ]
    lines = []
    report = collect_to(
        folder / "losses.parquet",
        model,
        members=RecordTable(frames[0], label="y"),
        nonmembers=RecordTable(frames[1], label="y"),
        output=Output.PROBABILITIES,
        announce=lines.append,
    )
    return lines, report.warnings


def test_members_known_by_heart_are_no_hard_labels(tmp_path):
    """Certain answers about all members alone are neither announced nor written as those of a model of labels."""
    lines, history = told(tmp_path, np.arange(600) % 2.0, np.tile([0.2, 0.7], 300))
    assert not any("0 or 1, as of a model that returns labels" in line for line in lines)
    assert not any(HARD in line for line in history)


def test_hard_labels_are_written_only_if_all_are(tmp_path):
    """What the sample shows is announced; the history has it once if it holds to the end, and never otherwise."""
    inside, outside = np.arange(600) % 2.0, np.arange(600) % 2.0
    for name in "ab":
        (tmp_path / name).mkdir()
    lines, history = told(tmp_path / "a", inside, outside)
    assert sum("as of a model that returns labels" in line for line in lines) == 1
    assert [("0/1-loss audit" in line) for line in history].count(True) == 1
    outside[13] = 0.75
    lines, history = told(tmp_path / "b", inside, outside)
    assert sum("as of a model that returns labels" in line for line in lines) == 1
    assert not any("0/1-loss audit" in line for line in history)


@pytest.mark.filterwarnings("ignore:all outputs for 200 records")
def test_memory_says_the_same():
    """Losses in memory have the same words about labels as those in a file."""
    y = np.arange(600) % 2
    soft = y.astype(float)
    soft[13] = 0.75
    for outside, hard in ((y.astype(float), 1), (soft, 0)):
        losses = collect(
            lambda p: np.stack([1 - p, p], axis=1),
            members=(y.astype(float), y),
            nonmembers=(outside, (outside > 0.5) * 1),
        )
        assert sum("0/1-loss audit" in line for line in losses.history) == hard


def test_memory_judges_both_groups():
    """A model that is certain of its members alone is warned of by nobody, and a warning would fail this test."""
    y = np.arange(600) % 2
    losses = collect(
        lambda p: np.stack([1 - p, p], axis=1),
        members=(y.astype(float), y),
        nonmembers=(np.where(y == 1, 0.7, 0.2), y),
    )
    assert losses.saturated == (600, 0)
