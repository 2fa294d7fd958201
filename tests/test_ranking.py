"""The ranking: its order is that of its odds, these follow the true likelihood ratio, and it says what it is not."""

import csv
import math

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy import stats

from auditor.core import InputError, Losses, OutputError
from auditor.risk import COLUMN, NOTE, estimate, rank_records
from auditor.risk.ranking import _isotonic


def normals(rng, n1, n0, shift=1.0):
    """Normal losses whose likelihood ratio is exp(-shift x - shift^2/2)."""
    return Losses(member=rng.normal(-shift, 1, n1), nonmember=rng.normal(0, 1, n0))


def log_ratio(x, shift=1.0):
    """The log of the true likelihood ratio of `normals`."""
    return -shift * x - shift * shift / 2


def spreads(rng, n, spread=0.5):
    """Normal losses of one mean of which the members' are less spread: members are in the middle, not at an end."""
    return Losses(member=rng.normal(0, spread, n), nonmember=rng.normal(0, 1, n))


def lift(found, share):
    """Members among this share of all records, first ones first, over the share of members; ties count in part."""
    rank = np.concatenate(found.rank)
    member = np.arange(rank.size) < found.rank.member.size
    take = share * rank.size
    before = np.array([(rank < at).sum() for at in np.unique(rank)])
    size = np.diff(np.append(before, rank.size))
    hits = np.array([member[rank == at].sum() for at in np.unique(rank)])
    part = np.clip((take - before) / size, 0, 1)
    return float((part * hits).sum() / take / member.mean())


def test_a_monotone_leak_is_ranked_by_the_loss(rng):
    """With a monotone likelihood ratio ranks never go against the loss, and the odds follow the true ratio closely."""
    losses = normals(rng, 3000, 2000)
    found = rank_records(losses, rng=rng)
    truth = log_ratio(np.concatenate([losses.member, losses.nonmember]))
    assert found.monotone
    assert (np.diff(np.concatenate(found.rank)[np.argsort(-truth)]) >= 0).all()
    assert stats.spearmanr(np.concatenate(found.odds), truth).statistic > 0.98


def test_a_leak_in_the_middle_comes_first(rng):
    """When the ratio is highest at middle losses the first ranks are enriched as much as they can be.

    The ratio of N(0, 1/4) to N(0, 1) is highest where |loss| is least, so the best first q of the records are those
    with |loss| under c: their share of members is found from the two normal distributions.
    """
    losses = spreads(rng, 20_000)
    found = rank_records(losses, rng=rng)
    assert not found.monotone
    for share in (0.05, 0.25, 0.5):
        cut = np.quantile(np.abs(np.concatenate([losses.member, losses.nonmember])), share)
        inside = [2 * stats.norm.cdf(cut / spread) - 1 for spread in (0.5, 1)]
        best = 2 * inside[0] / sum(inside)
        assert best - 0.06 < lift(found, share) < best + 0.06
    truth = -np.abs(np.concatenate([losses.member, losses.nonmember]))
    assert stats.spearmanr(np.concatenate(found.odds), truth).statistic > 0.95


@pytest.mark.parametrize("draw", [lambda rng: normals(rng, 900, 700), lambda rng: spreads(rng, 4000)])
def test_the_order_of_ranks_is_the_order_of_odds(rng, draw):
    """Ranks are the competition ranks of the odds by SciPy: equal odds share a place, and equal losses equal odds."""
    losses = draw(rng)
    rounded = Losses(member=losses.member.round(1), nonmember=losses.nonmember.round(1))
    for each in (losses, rounded):
        found = rank_records(each, rng=rng)
        odds = np.concatenate(found.odds)
        np.testing.assert_array_equal(np.concatenate(found.rank), stats.rankdata(-odds, method="min"))
    loss = np.concatenate([rounded.member, rounded.nonmember])
    assert all(np.unique(odds[loss == value]).size == 1 for value in np.unique(loss))


def test_bands_are_seldom_taken_for_a_monotone_leak(rng):
    """Where the ratio is monotone, with a weak, a strong and no leak, the isotonic estimate is kept nearly always."""
    kept = [
        rank_records(normals(rng, 1000, 1000, shift=shift), rng=rng).monotone
        for shift in (0.0, 0.3, 1.0, 3.0)
        for _ in range(20)
    ]
    assert sum(kept) >= 72


@pytest.mark.parametrize(("n1", "n0", "prior"), [(4000, 4000, 0.5), (500, 5000, 0.5), (5000, 500, 0.1)])
def test_the_odds_are_calibrated(n1, n0, prior):
    """Among records with odds in a band the expected share of members is the one the odds say, within binomial error."""
    rng = np.random.default_rng(7)
    told, true = [], []
    for _ in range(20):
        losses = normals(rng, n1, n0)
        odds = np.concatenate(rank_records(losses, prior=prior, rng=rng).odds)
        exact = prior / (1 - prior) * np.exp(log_ratio(np.concatenate([losses.member, losses.nonmember])))
        told.append(odds / (1 + odds))
        true.append(exact / (1 + exact))
    told, true = np.concatenate(told), np.concatenate(true)
    order = np.argsort(told)
    for part in np.array_split(order, 20):
        share = true[part].mean()
        # One audit has a twentieth of the smaller group in a band of twenty: its binomial error.
        error = math.sqrt(share * (1 - share) / (min(n1, n0) / 20))
        assert abs(told[part].mean() - share) < error


@pytest.mark.parametrize("draw", [lambda rng: normals(rng, 2000, 2000), lambda rng: spreads(rng, 2000)])
def test_a_records_own_membership_does_not_decide_its_odds(rng, draw):
    """Counting any one record on the other side changes its own odds by less than a fifth, wherever its loss is."""
    losses = draw(rng)
    loss = np.concatenate([losses.member, losses.nonmember])
    place = np.argsort(np.argsort(loss))
    membership = np.arange(4000) < 2000
    before = estimate(place, membership, 4000, rng=np.random.default_rng(1)).levels
    for at in (0, 1, 5, 400, 2000, 3600, 3998, 3999):
        switched = membership ^ (place == at)
        after = estimate(place, switched, 4000, rng=np.random.default_rng(1)).levels
        assert abs(math.log(after[at] / before[at])) < 0.2


def test_fitted_shares_agree_with_a_slow_isotonic_regression(rng):
    """The fit is the min-max formula of isotonic regression on the records and the pseudo-records."""
    n1, n0 = 30, 20
    membership = rng.permutation(np.arange(50) < n1)
    place = np.sort(rng.integers(0, 25, 50))
    size = int(place.max()) + 1
    first, last = max(1, n0 ** (1 / 3) / 2), max(1, n1 ** (1 / 3) / 2)
    blocks = [(first * n1 / n0, first)]
    seen = sorted(set(place.tolist()))
    blocks += [(membership[place == at].sum(), (~membership[place == at]).sum()) for at in seen]
    blocks += [(last, last * n0 / n1)]

    def mean(i, j):
        member = sum(a for a, _ in blocks[i : j + 1])
        return member / (member + sum(b for _, b in blocks[i : j + 1]))

    slow = [
        min(max(mean(i, j) for j in range(k, len(blocks))) for i in range(k + 1))
        for k in range(1, len(blocks) - 1)
    ]
    member, total = np.bincount(place[membership], minlength=size), np.bincount(place, minlength=size)
    np.testing.assert_allclose(_isotonic(member, total)[seen], slow, rtol=1e-12)


def test_a_perfect_attack_is_not_told_as_certain(rng):
    """Complete separation of n and n records gives finite odds of n / (n^(1/3)/2) + 1, by the pseudo-records."""
    found = rank_records(Losses(member=-1 - np.arange(1000.0), nonmember=1 + np.arange(1000.0)), rng=rng)
    expected = 1000 / (1000 ** (1 / 3) / 2) + 1
    np.testing.assert_allclose(found.odds.member, expected, rtol=1e-9)
    np.testing.assert_allclose(found.odds.nonmember, 1 / expected, rtol=1e-9)
    assert (set(found.rank.member.tolist()), set(found.rank.nonmember.tolist())) == ({1}, {1001})


def test_swapped_groups_are_ranked_the_other_way(rng):
    """When members have the higher losses these come first, with the same odds as mirrored losses have."""
    losses = normals(rng, 400, 400)
    mirrored = Losses(member=-losses.member, nonmember=-losses.nonmember)
    one, other = (rank_records(each, rng=np.random.default_rng(3)) for each in (losses, mirrored))
    assert (one.low_is_member, other.low_is_member) == (True, False)
    np.testing.assert_array_equal(one.rank.member, other.rank.member)
    np.testing.assert_allclose(one.odds.member, other.odds.member)


@pytest.mark.parametrize(
    ("member", "nonmember"),
    [([0.5, 0.5], [0.5, 0.5]), ([0.1, 0.2], [0.3, 0.4]), ([1e308, -1e308], [1.7e308, -1.7e308])],
)
def test_two_records_equal_losses_and_huge_ones(rng, member, nonmember):
    """The smallest and most extreme input gives finite odds, and equal losses share the first place."""
    found = rank_records(Losses(member=member, nonmember=nonmember), rng=rng)
    odds = np.concatenate(found.odds)
    assert np.isfinite(odds).all()
    assert (odds > 0).all()
    if len({*member, *nonmember}) == 1:
        assert set(np.concatenate(found.rank).tolist()) == {1}
        np.testing.assert_allclose(odds, 1.0)


def test_the_prior_scales_the_odds_and_nothing_else(rng):
    """A prior of 1% divides the odds at even prior by 99 and leaves the ranks."""
    losses = normals(rng, 300, 300)
    even, rare = (rank_records(losses, prior=p, rng=np.random.default_rng(0)) for p in (0.5, 0.01))
    np.testing.assert_allclose(even.odds.member, 99 * rare.odds.member)
    np.testing.assert_array_equal(even.rank.member, rare.rank.member)
    with pytest.raises(InputError, match="prior must lie in"):
        rank_records(losses, prior=1.0, rng=rng)


HOSTILE = ["=1+1", "+cmd|' /C calc'!A0", "-5", 'a"b,c', "line\nbreak", "@SUM(A1)", None, "ü"]


def hostile(rng):
    """Eight members whose ids a spreadsheet might run."""
    ids = (np.array(HOSTILE, dtype=object), np.arange(8))
    return Losses(
        member=rng.normal(-3, 1, 8), nonmember=rng.normal(size=8), id=ids, group=(["a"] * 8, ["b"] * 8)
    )


def test_the_table_says_what_it_is_not(rng):
    """Members come in order, without losses, and the column of odds carries the warning in its name."""
    found = rank_records(hostile(rng), rng=rng)
    frame = found.to_frame()
    assert list(frame.columns) == ["rank", "row", "id", "group", COLUMN]
    assert "ranking_only" in COLUMN
    assert found.note == frame.attrs["note"] == f"{NOTE}; for the data's owner only"
    assert frame["rank"].is_monotonic_increasing
    assert frame[COLUMN].is_monotonic_decreasing
    assert [item["rank"] for item in found.top(3)] == frame["rank"].tolist()[:3]


def test_files_hold_the_table(rng, tmp_path):
    """CSV quotes and disarms labels, but not negative numbers; Parquet keeps them exactly and holds the note."""
    found = rank_records(hostile(rng), rng=rng)
    frame = found.to_frame()
    found.write(tmp_path / "who.csv")
    with (tmp_path / "who.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    by_row = {int(row["row"]): row for row in rows}
    assert [by_row[at]["id"] for at in range(8)] == [
        "'=1+1",
        "'+cmd|' /C calc'!A0",
        "-5",
        'a"b,c',
        "line\nbreak",
        "'@SUM(A1)",
        "",
        "ü",
    ]
    np.testing.assert_array_equal([float(row[COLUMN]) for row in rows], frame[COLUMN])
    found.write(str(tmp_path / "who.parquet"))
    table = parquet.read_table(tmp_path / "who.parquet")
    assert table.schema.metadata[b"note"].decode() == f"{NOTE}; for the data's owner only"
    back = table.to_pandas()
    ids = back.sort_values("row")["id"].tolist()
    assert [None if pd.isna(item) else item for item in ids] == HOSTILE
    assert not list(tmp_path.glob(".auditor-*"))


def test_files_that_can_not_be_written_are_refused(rng, tmp_path):
    """Another ending, a missing folder and a folder in place of a file are one sentence each, and leave nothing behind."""
    found = rank_records(hostile(rng), rng=rng)
    with pytest.raises(InputError, match=r"path must end in \.csv or \.parquet"):
        found.write(tmp_path / "who.xlsx")
    (tmp_path / "folder.parquet").mkdir()
    for path in ("absent/who.csv", "absent/who.parquet", "folder.parquet"):
        with pytest.raises(OutputError, match="output path"):
            found.write(tmp_path / path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.parquet"]


@pytest.mark.parametrize("kind", [object, str])
def test_labels_that_no_file_can_hold_are_escaped(rng, tmp_path, kind):
    """A lone surrogate in an id is written as a backslash escape, to CSV and to Parquet."""
    ids = (np.array(["a\ud800", "b"], dtype=kind), np.array(["c", "d"], dtype=kind))
    found = rank_records(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=ids), rng=rng)
    for name, read in (("who.csv", pd.read_csv), ("who.parquet", pd.read_parquet)):
        found.write(tmp_path / name)
        assert set(read(tmp_path / name)["id"]) == {"a\\ud800", "b"}
