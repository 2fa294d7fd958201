"""Tables in any order become the same file, and what is said of it holds of all records."""

import pickle

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv

from auditor.collectors import Classification, Output, RecordTable, collect, collect_to, read_losses
from auditor.collectors.base import Records, sampled, sampled_groups, spread
from auditor.collectors.tables import open_groups
from auditor.core.errors import InputError


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
    other = RecordTable(sorted_frames(500)[1], label="y")
    source, small = open_groups(members=table, nonmembers=other, task=Classification())
    assert len(sampled(small)[0]) == 500  # it comes whole
    begun, original = [], csv.open_csv
    monkeypatch.setattr(csv, "open_csv", lambda *given, **more: begun.append(1) or original(*given, **more))
    sampled(source)
    assert len(begun) == 1


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
    first, last = part.labels[0] + 50, part.labels[-1] + 50
    assert part.stretch(0, 6) == f"member rows {first} to {last}, counting from 0"


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


HARD = np.arange(600) % 2.0
SOFT = np.where(np.arange(600) == 13, 0.75, HARD)


@pytest.mark.filterwarnings("ignore:all outputs for 200 records")
@pytest.mark.parametrize(
    ("outside", "announced", "written"),
    [(HARD, 1, 1), (SOFT, 1, 0), (np.tile([0.2, 0.7], 300), 0, 0)],
    ids=["all hard", "one soft", "members known by heart"],
)
def test_hard_labels_are_written_only_if_all_are(tmp_path, outside, announced, written):
    """The findings of the sample are announced; the history has them once if they hold to the end, from a file and from memory."""
    frames = [
        pd.DataFrame({"p": p, "y": (p > 0.5).astype(int), "n": np.arange(len(p)) + at})
        for at, p in ((0, HARD), (10_000, outside))
    ]
    lines = []
    tables = {"members": RecordTable(frames[0], label="y"), "nonmembers": RecordTable(frames[1], label="y")}
    path = tmp_path / "losses.parquet"
    report = collect_to(path, two, **tables, output=Output.PROBABILITIES, announce=lines.append)
    assert sum("as of a model that returns labels" in line for line in lines) == announced
    pairs = [(frame[["p"]], frame["y"]) for frame in frames]
    losses = collect(two, members=pairs[0], nonmembers=pairs[1])
    for history in (report.warnings, losses.history):
        assert sum("0/1-loss audit" in line for line in history) == written


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_at_an_address_is_collected_like_one_here(tmp_path, kind, partitioned):
    """An interrupted collection goes on, to the file that the local tables give, which is read at an address too."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    frame = pd.concat([part.assign(member=1 - place) for place, part in enumerate(sorted_frames(1000, 2))])
    here = tmp_path / f"records {partitioned}.{kind}"
    if kind == "parquet":
        frame.to_parquet(here, index=False, partition_cols=["word"] if partitioned else None)
    elif partitioned:
        for word, part in frame.groupby("word"):
            (here / f"word={word}").mkdir(parents=True)
            part.drop(columns="word").to_csv(here / f"word={word}" / "part-0.csv", index=False)
    else:
        frame.to_csv(here, index=False)
    memory.put(str(here), f"/{here.name}", recursive=True)
    left = [3]

    def model(table):
        left[0] -= len(table) == 400
        if len(table) == 400 and not left[0]:
            raise KeyboardInterrupt
        return 1 / (1 + np.exp(-table["x"].to_numpy() - (table["word"] == "a").to_numpy()))

    options = {"records": f"memory://{here.name}", "label": "y", "batch_size": 400}
    with pytest.raises(KeyboardInterrupt, match="800 of 2,000 records are scored and kept"):
        collect_to(tmp_path / "away.parquet", model, **options)
    assert collect_to(tmp_path / "away.parquet", model, **options).scored_now == 1200
    collect_to(tmp_path / "here.parquet", model, **{**options, "records": here})
    assert (tmp_path / "away.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()
    memory.put(str(tmp_path / "away.parquet"), "/losses.parquet")
    losses, true = read_losses("memory://losses.parquet"), read_losses(tmp_path / "here.parquet")
    np.testing.assert_array_equal(losses.member, true.member)
    assert (losses.history, losses.scale, losses.attacks) == (true.history, true.scale, true.attacks)
    with pytest.raises(InputError, match=r"would need .* GB of memory once decoded.* auditor summarise"):
        read_losses("memory://losses.parquet", memory=1000)


def test_every_file_at_an_address_has_all_columns(tmp_path):
    """A file without a column is named, and its cells do not become missing values."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    frame = pd.DataFrame({"x": [1.0, 2.0], "k": [0, 1], "y": [0, 1], "member": [0, 1]})
    for name, part in (("a", frame), ("b", frame.drop(columns="k"))):
        part.to_parquet(tmp_path / f"{name}.parquet")
        memory.put(str(tmp_path / f"{name}.parquet"), f"/uneven/{name}.parquet")
    with pytest.raises(InputError, match=r"column 'k' is not in file '/uneven/b\.parquet'"):
        open_groups(records=RecordTable("memory://uneven", label="y"), task=Classification())
