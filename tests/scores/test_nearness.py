"""Nearness to a released table: against slow loops, without regard to membership, and one sentence for bad input."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from command_line import answer, refused, run
from scipy import sparse, stats
from scipy.spatial.distance import cdist
from simulation import at_most

import auditor
from auditor.core import InputError, PerGroup
from auditor.core.facts import Attack, AttackState, SyntheticTable
from auditor.records import Features
from auditor.scores import nearness


def people(rng, n, gaps=0.1):
    """A table of whole and other numbers, of categories, one of them rare, and with missing values.

    Every pandas reads numbers of so few digits from CSV exactly.
    """
    job = np.array([f"job {number}" for number in np.minimum(rng.geometric(0.4, n), 6)])
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "wage": np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(3, 1, n).round(6)),
            "job": job.astype(object),
            "height": rng.normal(size=n).round(6),
            "born": rng.choice(["here", "there"], n).astype(object),
        }
    )
    frame.loc[rng.random(n) < gaps, "wage"] = np.nan
    frame.loc[rng.random(n) < gaps, "job"] = None
    return frame


def parts(table, records):
    """Each column of a table as places among the numbers of the records, 1/2 in gaps, or as categories with their costs."""
    found = []
    for name, column in table.items():
        own, cells = list(records[name]), list(column)
        if column.dtype.kind in "if":
            known = np.sort([cell for cell in own if not pd.isna(cell)])
            middle = (stats.rankdata(known) - 0.5) / known.size
            places = np.interp(cells, known, middle, left=0, right=1)
            found.append((np.where(pd.isna(cells), 0.5, places), None))
            own, cells = [pd.isna(cell) for cell in own], [pd.isna(cell) for cell in cells]
        own, cells = ([repr(None if pd.isna(cell) else cell) for cell in side] for side in (own, cells))
        found.append((cells, {word: (1 - own.count(word) / len(own)) / 2 for word in {*own, *cells}}))
    return found


def distances(table, others, records):
    """The distance of each row to each other row by the definition, in loops; frequencies and ranks are those of the records."""
    squared = np.zeros((len(table), len(others)))
    for (one, costs), (other, _) in zip(parts(table, records), parts(others, records), strict=True):
        for row, cell in enumerate(one):
            for place, cell_there in enumerate(other):
                if costs is None:
                    squared[row, place] += (cell - cell_there) ** 2
                elif cell != cell_there:
                    squared[row, place] += costs.get(cell, 0.5) + costs.get(cell_there, 0.5)
    return np.sqrt(squared)


@pytest.fixture
def world(rng):
    """Members, non-members and a released table with copies and near copies of members, and rows beyond every record."""
    member, nonmember, released = people(rng, 40), people(rng, 30), people(rng, 25)
    released = pd.concat(
        [member[:5], member[5:10].assign(age=member.age[5:10] + 1), released], ignore_index=True
    )
    released.loc[10, "wage"], released.loc[11, "job"] = 1e6, "job of nobody"
    return member, nonmember, released


@pytest.mark.parametrize("calibrated", [False, True])
def test_losses_are_those_of_slow_loops(world, rng, calibrated):
    """Mixed columns with gaps: each loss is the least distance by the definition, or the log ratio of two such."""
    member, nonmember, released = world
    pooled = pd.concat([member, nonmember], ignore_index=True)
    expected = distances(pooled, released, pooled).min(axis=1)
    reference = people(rng, 50) if calibrated else None
    losses = nearness(released, (member, nonmember), reference=reference)
    if calibrated:
        usual = distances(pooled, reference, pooled).min(axis=1)
        expected = np.log(
            np.where(expected > 0, expected + 0.01, 1e-9) / np.where(usual > 0, usual + 0.01, 1e-9)
        )
        assert "log ratio to the distance to the nearest of 50 reference records" in losses.history[-1]
        assert "no content in common with the audited records" in losses.history[-1]
    np.testing.assert_allclose(np.concatenate([losses.member, losses.nonmember]), expected, atol=1e-6)


def test_the_table_of_copies_is_counted_by_the_definition(world):
    """Copies are at distance 0, near ones nearer than 1 in 100 other non-members, and released rows nearer to one group are counted."""
    member, nonmember, released = world
    pooled = pd.concat([member, nonmember], ignore_index=True)
    whole = distances(pooled, released, pooled)
    sides = np.split(whole.min(axis=1), [40])
    cut = np.quantile(sides[1][sides[1] > 0], 0.01)
    found = nearness(released, (member[:30], nonmember)).released.table
    part = distances(pd.concat([member[:30], nonmember]), released, pd.concat([member[:30], nonmember]))
    gap = part[30:].min(axis=0) - part[:30].min(axis=0)
    assert found.nearer == pytest.approx(np.mean(gap > 1e-9) + np.mean(np.abs(gap) < 1e-9) / 2)
    found = nearness(released, (member, nonmember)).released.table
    near = [int(((side > 0) & (side < cut)).sum()) for side in sides]
    assert (found.rows, found.copies, found.near) == (35, (5, 0), tuple(near))


def test_a_copy_is_one_in_any_type_that_a_file_gives(rng, tmp_path):
    """Written to CSV and read again as floats and texts, each member is a copy at distance exactly 0, and no non-member is."""
    member, nonmember = people(rng, 60), people(rng, 60)
    member.astype({"age": float}).to_csv(tmp_path / "released.csv", index=False)
    released = pd.read_csv(tmp_path / "released.csv").astype({"born": "category"})[
        ["born", "wage", "height", "age", "job"]
    ]
    losses = nearness(released, (member, nonmember))
    assert (losses.member == 0).all()
    assert (losses.nonmember > 0).all()
    assert losses.released.table == SyntheticTable(60, (60, 0), (0, 1), 1.0)


def test_membership_is_not_looked_at(world, rng):
    """With the groups swapped, and records of both exchanged, each record keeps its loss to the last bit."""
    member, nonmember, released = world
    pooled = pd.concat([member, nonmember, member[:3]], ignore_index=True)
    expected = nearness(released, (pooled[:40], pooled[40:]))
    expected = np.concatenate([expected.member, expected.nonmember])
    for _ in range(5):
        order = rng.permutation(73)
        losses = nearness(released, (pooled.iloc[order[:33]], pooled.iloc[order[33:]]))
        assert np.array_equal(np.concatenate([losses.member, losses.nonmember]), expected[order])


@pytest.mark.parametrize("runs", [15, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_table_made_without_regard_to_membership_shows_nothing(rng, runs, calibrated):
    """Copies of records of both groups among the rows: epsilon above 0 is certified in at most 5% of the audits."""
    alarms = 0
    for _ in range(runs):
        records, reference = people(rng, 240), people(rng, 60) if calibrated else None
        released = pd.concat([records[:20], people(rng, 100)])
        order = rng.permutation(240)
        losses = nearness(
            released, (records.iloc[order[:120]], records.iloc[order[120:]]), reference=reference
        )
        alarms += auditor.audit(losses, split="random")["epsilon_bound.clopper_pearson"].lower > 0
    assert at_most(alarms, runs)


def test_near_copies_are_certified_and_a_reference_finds_more(rng):
    """Near copies, where 7 in 10 records lie in a dense crowd of two columns: relative to a reference more is found."""
    records = rng.normal(size=(3000, 6))
    records[rng.random(3000) < 0.7, 2:] = 0
    member, nonmember, reference = np.split(records, 3)
    released = member + rng.normal(scale=0.1, size=member.shape) * (member != 0)
    both = [nearness(released, (member, nonmember), reference=given) for given in (None, reference)]
    plain, relative = (auditor.audit(losses, split="random") for losses in both)
    assert 1 < plain["epsilon_bound.clopper_pearson"].lower < relative["epsilon_bound.clopper_pearson"].lower
    assert plain["auc"].value + 0.02 < relative["auc"].value


def test_wide_and_sparse_tables_are_those_of_scipy(rng):
    """2,000 columns of continuous numbers, dense or sparse: the distances are Euclidean ones of the ranks, by SciPy."""
    records, released = rng.random((120, 2000)), rng.random((30, 2000))
    middle = (stats.rankdata(records, axis=0) - 0.5) / 120
    placed = [
        np.interp(new, np.sort(old), np.sort(rank), left=0, right=1)
        for new, old, rank in zip(released.T, records.T, middle.T, strict=True)
    ]
    expected = cdist(middle, np.transpose(placed)).min(axis=1)
    for form in (np.asarray, sparse.csr_matrix):
        losses = nearness(form(released), Features(form(records[:70]), form(records[70:])))
        np.testing.assert_allclose(np.concatenate([losses.member, losses.nonmember]), expected, rtol=1e-5)


def test_many_categories_are_compared_whole(rng):
    """Of 3,000 categories, most of them in one record, each loss is the least distance by the definition."""
    records = pd.DataFrame(
        {"zip": rng.integers(0, 3000, 400).astype(str), "age": rng.random(400), "wage": rng.random(400)}
    )
    released = pd.concat(
        [records[:50], records[50:].sample(frac=1, random_state=0).assign(age=rng.random(350))]
    )
    losses = nearness(released, (records[:200], records[200:]))
    expected = distances(records, released, records).min(axis=1)
    np.testing.assert_allclose(np.concatenate([losses.member, losses.nonmember]), expected, atol=1e-6)


def test_ties_count_half():
    """Where both groups have every value of the released table, half of its rows are nearer to the members."""
    values = np.repeat(np.arange(6.0), 5)[:, None]
    table = nearness(values, (values, values)).released.table
    assert table == SyntheticTable(30, (30, 30), (0, 0), 0.5)


def test_the_memory_is_bounded(rng):
    """20,000 released rows and 15,000 records, whose distances would fill 1.2 GB, take less than 500 MB."""
    records = rng.random((15_000, 3))
    released = rng.random((20_000, 3))
    tracemalloc.start()
    nearness(released, (records[:7000], records[7000:]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e8


def test_labels_and_facts_travel_along(world):
    """Ids, groups and people stand in the losses; content shared by the groups has one fingerprint; the attack is named."""
    member, nonmember, released = world
    nonmember = pd.concat([nonmember, member[:1]])
    labels = {f"{name}s": (np.arange(40), np.arange(40, 71)) for name in ("id", "group", "person")}
    losses = nearness(released, Features(member, nonmember), **labels)
    assert all(
        np.array_equal(getattr(losses, name).nonmember, np.arange(40, 71))
        for name in ("id", "group", "person")
    )
    assert losses.fingerprint.member[0] == losses.fingerprint.nonmember[-1]
    assert losses.attacks == {Attack.SYNTHETIC: AttackState.RUN}
    result = auditor.audit(losses, split="random")
    assert result.data["attacks"]["synthetic"] == "run"
    assert losses.released.table.copies == (5, 1)
    assert result.data["released"]["table"]["rows"] == 35


GOOD = np.arange(40.0).reshape(20, 2)


@pytest.mark.parametrize(
    ("released", "records", "more", "words"),
    [
        (
            GOOD[:, :1],
            (GOOD, GOOD),
            {},
            "member and released features must have the same columns, got 2 and 1",
        ),
        (
            pd.DataFrame(GOOD, columns=["a", "b"]),
            (GOOD, GOOD),
            {},
            "member and released features must have the same columns, got 'a'",
        ),
        (
            GOOD,
            (np.ones((20, 2)), np.ones((20, 2))),
            {},
            "records must differ in at least one column, got 2 that are constant",
        ),
        (GOOD[:9], (GOOD, GOOD), {}, "released must have at least 10 rows, got 9"),
        (GOOD, GOOD, {}, "records must be a pair"),
        (GOOD, (GOOD, GOOD), {"reference": GOOD[:3]}, "reference must hold no audited record, got 3 of 3"),
        (
            GOOD,
            (GOOD, GOOD),
            {"reference": GOOD[:, :1]},
            "member and reference features must have the same columns",
        ),
        (GOOD, (GOOD, GOOD), {"ids": (range(20), range(3))}, "columns must have the same length"),
        (GOOD, (GOOD[:1], GOOD), {}, "member losses"),
        (3, (GOOD, GOOD), {}, "released features must hold one row for each record"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(released, records, more, words):
    """Other columns, constant ones, few rows, an audited reference, and labels of another length."""
    with pytest.raises(InputError, match="^" + words.replace("(", "\\(")) as error:
        nearness(released, records, **more)
    assert "\n" not in str(error.value)


# --- The command line ---


@pytest.fixture
def files(world, rng, tmp_path, monkeypatch):
    """The files of a world, with ids, groups and a row of gaps."""
    monkeypatch.chdir(tmp_path)
    member, nonmember, released = world
    for name, frame, first in (("train", member, 0), ("holdout", nonmember, 40)):
        ids = {
            "id": [f"r{first + row:03}" for row in range(len(frame))],
            "group": rng.choice(["a", "b"], len(frame)),
        }
        frame.assign(**ids).to_csv(f"{name}.csv", index=False)
    released.to_parquet("synthetic.parquet")
    people(rng, 50).to_csv("reference.csv", index=False)
    return world


COLLECT = (
    "collect",
    "synthetic.parquet",
    "--released",
    "--members",
    "train.csv",
    "--nonmembers",
    "holdout.csv",
    "--out",
    "losses.parquet",
)


@pytest.mark.parametrize("calibrated", [False, True])
def test_one_command_writes_the_losses_that_an_audit_takes(files, capsys, calibrated):
    """The file has the losses of `nearness` with ids, groups and facts, and `auditor audit` reads it as it is."""
    member, nonmember, released = files
    reference = pd.read_csv("reference.csv") if calibrated else None
    assert run(*COLLECT, *(("--reference", "reference.csv") if calibrated else ())) == 0
    assert "Next: auditor audit losses.parquet" in capsys.readouterr().out
    expected, found = (
        nearness(released, (member, nonmember), reference=reference),
        auditor.read_losses("losses.parquet"),
    )
    for name in ("member", "nonmember"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    for name in ("history", "attacks", "released"):
        assert getattr(found, name) == getattr(expected, name)
    assert np.array_equal(found.fingerprint.member, expected.fingerprint.member)
    assert found.id.nonmember[0] == "r040"
    assert set(found.group.member) == {"a", "b"}
    data = answer(capsys, "audit", "losses.parquet", "--split", "random")["data"]
    assert data["released"]["table"]["rows"] == 35


@pytest.mark.usefixtures("files")
def test_one_table_of_both_groups_is_read_too():
    """With a column of membership in one file the losses are those of two files."""
    assert run(*COLLECT) == 0
    expected = auditor.read_losses("losses.parquet")
    both = pd.concat(
        [
            pd.read_csv("holdout.csv").assign(member=0),
            pd.read_csv("train.csv").assign(member=1),
        ]
    )
    both.to_csv("both.csv", index=False)
    assert (
        run(
            "collect",
            "synthetic.parquet",
            "--released",
            "--records",
            "both.csv",
            "--out",
            "losses.parquet",
            "--overwrite",
        )
        == 0
    )
    assert PerGroup(*map(list, auditor.read_losses("losses.parquet").id)) == PerGroup(*map(list, expected.id))
    assert np.array_equal(auditor.read_losses("losses.parquet").member, expected.member)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--label", "job"), "--label goes without --released"),
        (("--task", "regression"), "--task goes without --released"),
        (("--token-variable", "X"), "--token-variable goes without --released"),
        (("--engine", "ray"), "--engine goes without --released"),
        (("--features", "age,zip"), "column 'zip' is not in file 'train.csv'"),
        (("--reference", "train.csv"), "reference must hold no audited record"),
        (("--out", "losses.csv"), "--out must end in .parquet"),
        (("--out", "synthetic.parquet"), "output path 'synthetic.parquet' is a file that this command reads"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(capsys, more, words):
    """Options of models, unknown columns, and an output that is an input."""
    assert words in refused(capsys, *COLLECT, *more)


def test_a_file_of_losses_is_replaced_on_request_only(files, capsys):
    """Without `--overwrite` a file stays; with it only losses are replaced."""
    assert run(*COLLECT) == 0
    assert "exists already" in refused(capsys, *COLLECT)
    assert run(*COLLECT, "--overwrite") == 0
    files[0].to_parquet("other.parquet")
    assert "holds no collected losses" in refused(capsys, *COLLECT[:-1], "other.parquet", "--overwrite")
    assert "--released goes with the file" in refused(capsys, COLLECT[0], *COLLECT[2:])
