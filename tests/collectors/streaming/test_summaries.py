"""Summaries: counts of bins that merge, and never certify more than the losses that were counted."""

import json
import math
import re
import shutil
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import answer, refused, run
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

import auditor
from auditor import Losses, Melded, RankGrid, Summary
from auditor.core import ClopperPearson
from auditor.curves import count
from auditor.estimators import advantage, clopper_pearson, model_gdp, tpr_at_fpr
from auditor.estimators.exact_test import Hits, Statistic

# Bounds, and by how much the search for the root of each may miss it.
BOUNDS = {
    "calibrated": (partial(clopper_pearson, delta=1e-5), 1e-12),
    "Clopper-Pearson": (partial(clopper_pearson, delta=0.0, rule=RankGrid(interval=ClopperPearson())), 1e-12),
    "melded": (partial(clopper_pearson, delta=0.0, rule=RankGrid(interval=Melded())), 1e-9),
    "TPR": (partial(tpr_at_fpr, rate=0.2), 1e-12),
    "Gaussian": (partial(model_gdp, delta=1e-5), 1e-9),
    "advantage": (lambda losses: advantage(count(losses)), 4e-6),
}
# Both zeros, the ends of the bins about 1, subnormals, and the largest doubles.
EDGES = [0.0, -0.0, 1.0, math.nextafter(1, 2), math.nextafter(1, 0), -1.0, math.nextafter(-1, 0), 5e-324]
EDGES += [-5e-324, 1e-310, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308]


def told(value, bits):
    """The representative value of the bin of a normal number, without looking at its bits: so many digits of the mantissa, cut off."""
    mantissa, exponent = math.frexp(value)
    digits = 2.0 ** (bits - 11)
    return math.ldexp(math.trunc(mantissa * digits) / digits, exponent)


def parts_of(losses, number):
    """The losses in parts, each with both groups."""
    sides = (np.array_split(group, number) for group in (losses.member, losses.nonmember))
    return [Summary.of(Losses(*pair)) for pair in zip(*sides, strict=True)]


def same(one, other):
    """Whether two summaries count the same."""
    columns = ("bin", "member", "nonmember")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


@pytest.fixture
def table(rng):
    """Losses of 3,000 records with a leak, as a table."""
    member = rng.random(3000) < 0.5
    return pd.DataFrame({"loss": rng.normal(size=3000) - member, "member": member.astype(int)})


@pytest.mark.parametrize("bits", [13, 22])
def test_a_bin_is_so_many_digits(rng, bits):
    """Each loss is in the bin that its first digits say, and zeros and what is as small share one."""
    values = np.concatenate([rng.normal(size=400) * 10.0 ** rng.integers(-300, 300, 400), [1.0, -1.0]])
    found = Summary.of(Losses(values, [5e-324, -5e-324, 0.0, -0.0]), bits=bits)
    assert found.losses.member.levels.tolist() == sorted({told(value, bits) for value in values})
    assert found.losses.nonmember.levels.tolist() == [0.0]
    assert found.losses.nonmember.counts.tolist() == [4]


_VALUES = st.lists(st.one_of(st.sampled_from(EDGES), st.floats(-50, 50)), min_size=2, max_size=40)


@settings(max_examples=25, deadline=None)
@given(_VALUES, _VALUES, st.integers(13, 24), st.integers(0, 2**32))
def test_no_bound_is_larger_than_that_of_the_losses(first, second, bits, seed):
    """Whatever the losses, no certified lower bound of a summary exceeds that of the losses, nor one of a merged summary its."""
    rng = np.random.default_rng(seed)
    member = np.concatenate([first, rng.normal(-1, 1, 40)])
    losses = Losses(member, np.concatenate([second, rng.lognormal(0, 1, 40)]))
    binned = Summary.of(losses, bits=bits)
    for name, (bound, rounding) in BOUNDS.items():
        own, counted, merged = (
            bound(item).lower or 0.0 for item in (losses, binned.losses, binned.merged().losses)
        )
        assert counted <= own + rounding, name
        assert merged <= counted + rounding, name


def test_where_audits_are_drawn_no_statistic_is_larger(rng):
    """Of many records, whose bound rests on drawn audits, the hits at every rank are at most those of the losses."""
    losses = Losses(rng.normal(-1, 1, 20_000), rng.normal(0, 1, 30_000))
    binned = Summary.of(losses, bits=16)
    law = Statistic(20_000, 30_000, delta=1e-5, alpha=0.05)
    found = [Hits.of(item) for item in (losses, binned.losses, binned.merged().losses)]
    for own, counted in pairwise(found):
        for fewer, more in zip(counted, own, strict=True):
            assert (fewer.hits <= more.hits).all()
        assert law.largest(counted)[0] < law.largest(own)[0]


def test_summaries_add_up_in_any_order(rng):
    """However records are divided and added, the sum is the summary of all."""
    losses = Losses(rng.normal(size=1000), rng.lognormal(size=900))
    a, b, c = parts_of(losses, 3)
    whole = Summary.of(losses)
    assert all(same(whole, item) for item in (a + (b + c), (a + b) + c, c + a + b, sum([b, c, a])))
    assert (whole.n_member, whole.n_nonmember) == (1000, 900)


LAWS = {
    "normal": lambda rng, shift, n: rng.normal(-shift, 1, n),
    "exponential": lambda rng, shift, n: rng.exponential(1 / (1 + shift), n),
    "Laplace": lambda rng, shift, n: rng.laplace(-shift, 1, n),
    "discrete": lambda rng, shift, n: rng.binomial(20, 0.45 - 0.15 * shift, n) / 20,
    "lognormal": lambda rng, shift, n: rng.lognormal(-shift, 1, n),
}


# Twenty audits of each law lose .004 nats on average at most, and the worst of them .012.
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_little_is_lost_at_the_default(rng, law):
    """At 22 bits the certified bound loses at most .01 nats on average, and nothing on few values."""
    bound, _ = BOUNDS["melded"]
    lost = []
    for _ in range(8):
        losses = Losses(law(rng, 1.0, 10_000), law(rng, 0.0, 10_000))
        lost.append(bound(losses).lower - bound(Summary.of(losses).losses).lower)
    assert 0 <= np.mean(lost) <= 0.01


def test_any_number_of_records_is_audited(rng):
    """An audit of 2 * 10^10 records takes no more memory than their bins, whatever is declared of the members."""
    small = Summary.of(Losses(rng.normal(-1, 1, 10_000), rng.normal(0, 1, 10_000)))
    much = Summary(small.bin, small.member * 10**6, small.nonmember * 10**6)
    for members in (auditor.Sample(), auditor.Census()):
        found = auditor.audit(much, coverage=members, delta=1e-5)
        assert found["auc"].value == pytest.approx(auditor.audit(small, delta=1e-5)["auc"].value, abs=1e-9)
        assert found["epsilon_bound.clopper_pearson"].lower > 3
        assert found["epsilon_star.gaussian"].details["noise_floor"]["q95"] < 1e-3


def test_rows_that_need_records_are_there_with_their_reason(table, tmp_path):
    """A summary states its limits: nothing is missing, and nothing is 0."""
    Summary.from_files([table]).write(tmp_path / "s.parquet")
    split, mixture = auditor.RandomSplit(), auditor.Mixture(max_components=2)
    found = auditor.audit(tmp_path / "s.parquet", split=split, mixture=mixture, top_records=10)
    of_all = auditor.audit(table, split=split, mixture=mixture)
    assert [row.name for row in found.estimates] == [row.name for row in of_all.estimates]
    without = {row.name for row in found.estimates if row.value is None}
    assert without == {
        "epsilon_bound.adaptive",
        "epsilon_bound.one_run",
        "epsilon_bound.one_run_gdp",
        "epsilon_bound.order_statistics",
        "epsilon_star.mixture",
    }
    assert all("a summary keeps" in found[name].reason for name in without)
    assert "a summary keeps" in found.data["top_records"]
    assert any(
        item.kind == "group" and "keeps no labels" in item.estimates[0].reason for item in found.slices
    )
    upper = [row for row in found.estimates if row.upper is not None]
    assert len(upper) > 3
    assert all("the upper end does not cover that" in row.assumptions[-1] for row in upper)
    assert {check.name: str(check.status) for check in found.checks}["bins"] == "warn"


def test_files_of_every_kind_are_counted_alike(table, tmp_path, monkeypatch, capsys):
    """Parts in a folder, a CSV, and a summary of some of them add up to the summary of the whole table."""
    monkeypatch.chdir(tmp_path)
    whole = Summary.from_files([table])
    (tmp_path / "parts").mkdir()
    for at, part in enumerate((table[:1000], table[1000:1700])):
        part.to_parquet(f"parts/{at}.parquet", row_group_size=300)
    table[1700:2500].to_csv("third.csv", index=False)
    Summary.from_files([table[2500:]]).write("fourth.parquet")
    files = ("parts", "third.csv", "fourth.parquet")
    assert run("summarise", *files, "--every-bin", "--out", "all.parquet") == 0
    assert "auditor audit all.parquet" in capsys.readouterr().out
    found = Summary.read("all.parquet")
    assert same(found, whole)
    result = answer(capsys, "audit", "all.parquet")
    assert run("audit", "all.parquet", "--json", "result.json", "--quiet") == 0
    assert run("report", "result.json", "--verify", "--losses", "all.parquet") == 0
    assert result["data"]["n_member"] == whole.n_member == int(table.member.sum())
    negated = Summary.from_files([table.assign(loss=-table.loss)], higher_is_member=True)
    assert same(negated, whole)
    assert negated.loss == "-loss"


def changed(path, **about):
    """The same file with other words about itself."""
    found = parquet.read_table(path)
    words = json.loads(found.schema.metadata[b"note"]) | about
    parquet.write_table(found.replace_schema_metadata({b"note": json.dumps(words)}), path)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (
            "summarise nan.parquet",
            "file 'nan.parquet' must hold finite losses, got 1 NaN or blank (first at row 2",
        ),
        ("summarise infinite.csv", "got 1 infinite (first at row 3, the header being row 1)"),
        ("summarise good.parquet coarse.parquet", "summaries must share bits to be added, got 22 and 14"),
        (
            "summarise good.parquet losses.csv --loss-column other",
            "must share loss to be added, got loss and other",
        ),
        ("summarise losses.csv --set bits=12", "bits must be a whole number of 13 or more, got 12"),
        ("summarise losses.csv --set bits=30", "bits must be at most 24, got 30"),
        ("summarise nothing.parquet", "file 'nothing.parquet' does not exist"),
        ("summarise later.parquet", "must be a summary of version 1, got version 7"),
        ("summarise cut.parquet", "is not a whole summary (its counts do not add up)"),
        ("summarise wrong.parquet", "is not a whole summary (scale must be one of"),
        (
            "summarise merged.parquet",
            "must count at least 10 members and 10 non-members to be merged, got 4 and 9",
        ),
        (
            "summarise good.parquet merged.parquet --every-bin",
            "must hold every bin to be added, got file 'merged.parquet' whose bins were merged",
        ),
        ("summarise alone.parquet", "at least 10 members and 10 non-members to be merged, got"),
        ("summarise empty.csv", "files must hold at least one record, got none"),
        ("audit alone.parquet", "nonmember losses need at least 2 records, got a summary of 0"),
        ("audit good.parquet --set label-column=x", "--set label-column goes with a table of losses"),
        ("audit good.parquet --reference losses.csv", "reference must be left out in the audit of a summary"),
        (
            "audit good.parquet --set records=order.csv",
            "must be those of single records to be ranked, got a summary",
        ),
        (
            "runs good.parquet --delta 1e-5",
            "losses must be the scores of single runs, got a summary",
        ),
        (
            "audit --members good.parquet --nonmembers losses.csv",
            "A summary holds no losses: audit it as it is",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    table, tmp_path, monkeypatch, capsys, command, sentence
):
    """Whatever is wrong is stated with its place, and no file appears."""
    monkeypatch.chdir(tmp_path)
    table.assign(other=1.0).to_csv("losses.csv", index=False)
    pd.DataFrame({"loss": [0.1, 0.2, math.nan], "member": [1, 0, 1]}).to_parquet("nan.parquet")
    pd.DataFrame({"loss": [0.1, math.inf], "member": [1, 0]}).to_csv("infinite.csv", index=False)
    table[:0].to_csv("empty.csv", index=False)
    Summary.from_files([table]).write("good.parquet")
    Summary.from_files([table], bits=14).write("coarse.parquet")
    Summary.from_files([table[table.member == 1]]).write("alone.parquet")
    few = Summary.of(Losses(member=[0.1, 0.2, 0.3, 0.4], nonmember=np.linspace(0.15, 0.35, 9)))
    few.merged(least=2).write("merged.parquet")
    for name, about in (
        ("later", {"auditor_summary": 7}),
        ("cut", {"counts": [1, 2]}),
        ("wrong", {"scale": "x"}),
    ):
        shutil.copy("good.parquet", f"{name}.parquet")
        changed(f"{name}.parquet", **about)
    before = sorted(tmp_path.iterdir())
    out = ["--out", "out.parquet"] if command.startswith("summarise") else []
    assert sentence in refused(capsys, *command.split(), *out)
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_no_summary_is_refused_in_python(table, tmp_path):
    """A table is not read as a summary, odd counts are none, and single records cannot be paired."""
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(auditor.InputError, match="must be a summary, got another table"):
        Summary.read(tmp_path / "t.parquet")
    for columns, words in (
        (([2, 1], [1, 1], [1, 1]), "bin must ascend"),
        (([2**31], [1], [1]), "bin must ascend"),
        (([1, 2], [1, -1], [1, 1]), "counts of 0 or more"),
        (([1.5], [1], [1]), "whole numbers"),
        (([1, 2, 3, 4, 5], [2**62] * 5, [1] * 5), "fewer than 2"),
        (([1, 2], [1], [1]), "same length"),
    ):
        with pytest.raises(auditor.InputError, match=words):
            Summary(*map(np.array, columns))
    found = Summary.from_files([table])
    results = [auditor.audit(found, delta=1e-5, model=name) for name in "ab"]
    assert auditor.compare(results).got_worse is False
    with pytest.raises(auditor.InputError, match="single records"):
        auditor.compare(results, losses=[found, found])
    with pytest.raises(auditor.InputError, match="threshold must be left out"):
        auditor.audit(found, threshold=auditor.FixedThreshold(0.5))


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # Ray leaves files and processes to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ray_counts_the_same(table, tmp_path, require_extra):
    """Two workers of Ray give the summary that this process gives."""
    require_extra("ray")
    for at in range(3):
        table[at * 1000 : at * 1000 + 1000].to_parquet(tmp_path / f"{at}.parquet")
    assert same(
        Summary.from_files([tmp_path], engine=auditor.collectors.RayEngine(workers=2)),
        Summary.from_files([table]),
    )


def test_an_address_is_read_by_fsspec(table, require_extra):
    """Parts at an address of fsspec are counted as if they lay here; what is wrong with an address is one sentence."""
    require_extra("remote")
    import fsspec

    system = fsspec.filesystem("memory")
    for name, part in (("a", table[:2000]), ("b", table[2000:])):
        with system.open(f"/losses/{name}.parquet", "wb") as file:
            part.to_parquet(file)
    assert same(Summary.from_files(["memory://losses"]), Summary.from_files([table]))
    for address, words in (
        ("memory://nowhere", "'memory://nowhere' cannot be read"),
        ("noprotocol://x", "cannot be read"),
        ("ftp://me:secret@host/x", "must hold no user or password"),
    ):
        with pytest.raises(auditor.InputError, match=words) as raised:
            Summary.from_files([address])
        assert "secret" not in str(raised.value)


QUERY = re.search(
    r"```sql\n(.*?)```",
    (Path(__file__).parents[3] / "docs/how-to/summaries.md").read_text(encoding="utf-8"),
    re.DOTALL,
)[1]
ENGINES = {
    "polars": lambda polars, frame: (
        polars.SQLContext(losses=polars.from_pandas(frame)).execute(QUERY).collect()
    ),
    "duckdb": lambda duckdb, losses: duckdb.query_df(losses, "losses", QUERY).df(),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_query_of_the_documentation_gives_the_same_counts(table, engine):
    """The arithmetic in SQL finds the bins that the bits say, at every power of two and beside it, and counts all rows."""
    module = pytest.importorskip(engine)
    powers = 2.0 ** np.arange(-1074, 1024)
    values = np.concatenate([EDGES, powers, np.nextafter(powers, 0), -np.nextafter(powers, np.inf)])
    whole = pd.concat([table, pd.DataFrame({"loss": values, "member": 1})])
    counts = ENGINES[engine](module, whole)
    assert same(Summary.from_counts(counts), Summary.from_files([whole]))
    unknown = pd.DataFrame({"loss": 0.1, "member": [None, 2.0]})
    counts = ENGINES[engine](module, pd.concat([table, unknown]))
    with pytest.raises(
        auditor.InputError,
        match=r"got [0-9,]+ such rows of [0-9,]+, [0-9,]+ of [0-9,]+ in bin -?[0-9]+; correct",
    ):
        Summary.from_counts(counts)


@pytest.mark.parametrize("dialect", ["bigquery", "spark", "snowflake", "duckdb"])
def test_the_query_of_the_documentation_is_spelled_for_each_database(dialect):
    """A parser of each dialect knows every function of the query by its meaning."""
    sqlglot = pytest.importorskip("sqlglot")
    tree = sqlglot.parse_one(QUERY, read=dialect)
    assert list(tree.find_all(sqlglot.exp.Anonymous)) == []
    assert {item.sql_name() for item in tree.find_all(sqlglot.exp.Func)} >= {"GREATEST", "LN", "FLOOR"}


def test_counts_of_a_database_are_of_all_rows():
    """Counts without the number of all rows, with one that is missing, of a missing loss, or of fewer rows are refused."""
    counts = {"bin": [1, 2], "member": [3, 0], "nonmember": [1, 4], "records": [4, 4]}
    assert Summary.from_counts(counts, loss="margin").loss == "margin"
    for name, column, words in (
        ("records", [4, 6], "got 8 such rows of 10, 4 of 6 in bin 2"),
        ("records", [3, 5], "got 8 such rows of 8, 4 of 3 in bin 1"),
        ("records", [4, math.nan], "records must hold whole numbers, got type float64"),
        ("bin", [1.0, math.nan], "must be of rows with a loss"),
    ):
        with pytest.raises(auditor.InputError, match=words):
            Summary.from_counts(counts | {name: column})
    with pytest.raises(auditor.InputError, match="records"):
        Summary.from_counts({name: counts[name] for name in ("bin", "member", "nonmember")})


def test_a_folder_of_summaries_is_added(table, tmp_path, monkeypatch, capsys):
    """More summaries than are held at once add up to that of the whole table, beside a table and from a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("auditor.collectors.streaming.summaries._HELD", 100)  # bins
    (tmp_path / "parts").mkdir()
    cuts = np.linspace(0, len(table) - 500, 41).astype(int)
    for at, (start, stop) in enumerate(pairwise(cuts)):
        Summary.from_files([table[start:stop]]).write(f"parts/{at}.parquet")
    table[-500:].to_csv("rest.csv", index=False)
    assert run("summarise", "parts", "rest.csv", "--every-bin", "--out", "all.parquet", "--quiet") == 0
    assert same(Summary.read("all.parquet"), Summary.from_files([table]))
    Summary.read("all.parquet").merged().write("parts/99.parquet")
    assert "'parts/99.parquet' whose bins were merged" in refused(
        capsys, "summarise", "parts", "--out", "new.parquet"
    )


# --- Merged bins ---

_COUNTS = st.lists(
    st.tuples(*[st.one_of(st.integers(0, 3), st.integers(0, 40))] * 2), min_size=1, max_size=60
)


@settings(max_examples=200, deadline=None)
@given(
    _COUNTS, st.integers(1, 25), st.sampled_from([-(2**20), -30, 0, 2**20]), st.integers(1, 1000), st.data()
)
def test_a_merged_bin_holds_no_few_records(counts, least, first, step, data):
    """Each merged bin takes in neighbours, is numbered among them, and holds none or enough of each group; nothing is lost.

    The number of an end bin may lie beyond it, up to halfway to the next.
    """
    counts.insert(data.draw(st.integers(0, len(counts))), (least, least))
    counts = np.array(counts)
    numbers = first + step * np.arange(len(counts))
    found = Summary(numbers, *counts.T).merged(least=least)
    merged = np.stack([found.member, found.nonmember], axis=1)
    assert ((merged == 0) | (merged >= least)).all()
    assert merged.any(axis=1).all()
    assert merged.sum(axis=0).tolist() == counts.sum(axis=0).tolist()
    used = counts.any(axis=1)
    numbers, upto = numbers[used], counts[used].cumsum(axis=0).tolist()
    stops = [upto.index(cut) + 1 for cut in merged.cumsum(axis=0).tolist()]
    lows, highs = numbers[[0, *stops[:-1]]], numbers[np.array(stops) - 1]
    if len(stops) > 1:
        highs[0], lows[-1] = (highs[0] + lows[1]) // 2, (highs[-2] + lows[-1]) // 2 + 1
    assert (lows <= found.bin).all()
    assert (found.bin <= highs).all()
    assert found.is_merged == (found.bin.size < numbers.size)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_merging_lowers_the_certified_bound_a_little(rng, law):
    """On every law the bound of a merged summary is at most that of the summary, and keeps more than half of it."""
    whole = Summary.of(Losses(law(rng, 1.0, 1500), law(rng, 0.0, 1000)))
    merged = whole.merged()
    every, fewer = (auditor.audit(item)["epsilon_bound.clopper_pearson"].lower for item in (whole, merged))
    assert every / 2 < fewer <= every
    fits = [auditor.audit(item)["auc"].value for item in (whole, merged)]
    assert fits[1] == pytest.approx(fits[0], abs=0.01)


@pytest.mark.parametrize("groups", [[0], [1], [0, 1]])
@pytest.mark.parametrize("few", [1, 3, 9])
@pytest.mark.parametrize("sign", [-1, 1])
def test_no_merged_bin_shows_how_far_out_a_few_records_lie(rng, sign, few, groups):
    """Up to nine records of a group, or of both together, beyond all others at either end leave every number as it is."""
    bulk, found = rng.normal(size=(2, 300)), []
    for far in (20.0, 87.654321, 1234.56789, 1e9):
        group = [part.copy() for part in bulk]
        for at in range(few):
            group[groups[at % len(groups)]][at] = sign * (far + at * far / 10)
        found.append(Summary.of(Losses(*group)).merged())
    assert all(same(found[0], item) for item in found[1:])


@pytest.mark.parametrize("few", [1, 2])
def test_no_merged_bin_shows_where_a_lone_record_lies_between_others(few):
    """A record or two in a gap of the losses leave the number of their bin as it is, wherever in the gap they lie."""
    parts = [np.linspace(1, 1.5, 50), np.linspace(40, 41, 50)]
    found = [
        Summary.of(Losses(np.concatenate([*parts, np.linspace(at, at + 1, few)]), np.linspace(60, 61, 100)))
        for at in (2.5, 9.0, 17.0, 33.0)
    ]
    assert all(same(found[0].merged(), item.merged()) for item in found[1:])


def test_a_merged_bin_is_numbered_by_the_roundest_place_between_its_quartiles():
    """By hand: 0 between the signs, the number with most zeros in a range, and up to halfway to the next bin at an end."""

    def numbered(bins, members, nonmembers):
        return Summary(bins, members, nonmembers).merged().bin.tolist()

    # One bin of 20 records: from the 10th, in 111, to the 11th, in 112; or both in one.
    assert numbered(np.arange(102, 122), [1, 0] * 10, [0, 1] * 10) == [112]
    assert numbered([-7, 9], [5, 5], [5, 5]) == [0]
    assert numbered([-133, -125], [9, 10], [9, 10]) == [-128]
    assert numbered([50, 60, 70], [9, 9, 1], [9, 9, 1]) == [56]
    # Ten members, then ten others: half the gap from 99 to 106 belongs to each.
    tens = np.repeat([[1, 0], [0, 1]], 10, axis=0)
    assert numbered([*range(90, 100), *range(106, 116)], *tens.T) == [100, 104]


def test_the_numbers_of_merged_bins_move_means_little(rng):
    """The mean of each group by the merged bins misses that of its losses by a twentieth of their spread at most."""
    losses = Losses(rng.normal(-1, 1, 1000), rng.normal(0, 1, 1000))
    found = Summary.of(losses).merged().losses
    for own, binned in ((losses.member, found.member), (losses.nonmember, found.nonmember)):
        assert np.average(binned.levels, weights=binned.counts) == pytest.approx(own.mean(), abs=0.05)
    largest = np.repeat(1.7976931348623157e308, 12)
    (level,) = Summary.of(Losses([*largest, 1.0], [-1.0, *largest])).merged().losses.member.levels
    assert 1e308 < level < math.inf


def test_merged_summaries_are_added_to_nothing(rng):
    """A sum with a merged summary on either side is refused with the way, which leads to the merged whole."""
    losses = Losses(rng.normal(-1, 1, 300), rng.normal(0, 1, 200))
    one, other = parts_of(losses, 2)
    for pair in ((one.merged(), other), (one, other.merged()), (one.merged(), other.merged())):
        with pytest.raises(
            auditor.InputError, match=r"hold every bin to be added, got one .*add those, and merge"
        ):
            sum(pair)
    assert same((one + other).merged(), Summary.of(losses).merged())
    assert (one + other).is_merged is False


def test_the_command_merges_unless_every_bin_is_kept(table, tmp_path, monkeypatch, capsys):
    """Files to share are merged, and one line says at what cost; parts keep every bin, and their sum is the merged whole."""
    monkeypatch.chdir(tmp_path)
    whole = Summary.from_files([table])
    for name, part in (("north", table[:1000]), ("south", table[1000:])):
        part.to_csv(f"{name}.csv", index=False)
        assert run("summarise", f"{name}.csv", "--every-bin", "--out", f"{name}.parquet") == 0
    assert "became" not in capsys.readouterr().out
    assert same(Summary.read("north.parquet"), Summary.from_files([table[:1000]]))
    assert run("summarise", "north.parquet", "south.parquet", "--out", "all.parquet") == 0
    found = Summary.read("all.parquet")
    assert same(found, whole.merged())
    assert found.is_merged
    (line,) = (text for text in capsys.readouterr().out.splitlines() if "became" in text)
    assert line.startswith(
        f"{whole.bin.size:,} bins became {found.bin.size:,}, each with 0 or at least 10 members"
    )
    assert "can only lower a bound" in line
    assert run("summarise", "all.parquet", "--quiet", "--out", "again.parquet") == 0
    assert capsys.readouterr().out == ""
    assert same(Summary.read("again.parquet"), found)
    assert run("summarise", "north.csv", "all.parquet", "--every-bin", "--out", "none.parquet") == 2


def test_an_audit_of_a_merged_summary_says_so(table, tmp_path, capsys):
    """The file of a merged summary is audited and verified as any other, and the check of its bins says that they were merged."""
    path, result = tmp_path / "s.parquet", tmp_path / "r.json"
    whole = Summary.from_files([table])
    for summary, words, status in (
        (whole, "each up to 1/1,024 of its value", "warn"),
        (whole.merged(), "neighbours merged", "ok"),
    ):
        summary.write(path)
        found = answer(capsys, "audit", path)
        (check,) = (item for item in found["checks"] if item["name"] == "bins")
        assert words in check["message"]
        assert check["status"] == status
        assert check["details"]["merged"] is summary.is_merged
        assert run("audit", path, "--json", result, "--quiet") == 0
        assert run("report", result, "--verify", "--losses", path) == 0


def test_files_say_whether_bins_were_merged(table, tmp_path):
    """A summary that was read is merged if the written one was."""
    for summary in (Summary.from_files([table]), Summary.from_files([table]).merged()):
        summary.write(tmp_path / "s.parquet")
        assert Summary.read(tmp_path / "s.parquet").is_merged is summary.is_merged


def test_a_few_records_are_not_merged(table, tmp_path, monkeypatch, capsys):
    """Fewer than ten records of a group cannot be merged, and are kept with every bin where that is requested."""
    monkeypatch.chdir(tmp_path)
    few = pd.concat([table[table.member == 0], table[table.member == 1][:9]])
    few.to_csv("few.csv", index=False)
    assert "--every-bin" in refused(capsys, "summarise", "few.csv", "--out", "few.parquet")
    assert not Path("few.parquet").exists()
    assert run("summarise", "few.csv", "--every-bin", "--out", "few.parquet") == 0
    assert Summary.read("few.parquet").n_member == 9
    with pytest.raises(auditor.InputError, match="least must be a whole number of 1 or more, got 0"):
        Summary.read("few.parquet").merged(least=0)
