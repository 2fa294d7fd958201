"""Duplicates by id and by content: what overlaps, what are natural twins, and what are copies."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from auditor import checks
from auditor.checks import twins
from auditor.checks.copies import _in_both, _sum_of_coins
from auditor.core import Losses, PerGroup, Status
from auditor.records import Features, fingerprints


def losses_of(member, nonmember, **labels):
    """Losses of records with these contents."""
    pair = PerGroup(np.asarray(member), np.asarray(nonmember))
    return Losses(
        member=np.arange(len(member)) + 0.0,
        nonmember=np.arange(len(nonmember)) + 0.0,
        fingerprint=fingerprints(Features(*pair)),
        **labels,
    )


def test_content_in_both_groups_beyond_chance_fails():
    """Ten contents in both groups and none twice in one is what a random split gives once in 1,000."""
    found = checks.duplicates(losses_of(np.arange(1000), np.arange(990, 1990)))
    assert found.status is Status.FAIL
    assert found.details["nonmembers_with_twin"] == 10
    # Each of ten pairs is split with probability 1000/1999.
    assert found.details["more_than_chance_p_value"] == pytest.approx((1000 / 1999) ** 10, rel=1e-9)
    assert "10 non-member records (1%) have an exact twin among the members" in found.message
    assert "the groups overlap" in found.message


def test_natural_twins_only_warn(rng):
    """A random split of records of 2,000 contents puts most of them in both groups, and that is no overlap."""
    pooled = rng.integers(0, 2000, 4000)
    found = checks.duplicates(losses_of(pooled[:2000], pooled[2000:]))
    assert found.status is Status.WARN
    assert "no more than a random split of records with natural twins gives" in found.message
    assert found.details["nonmembers_with_twin_share"] > 0.5


def test_one_twin_only_warns():
    """One content in both groups is what a random split gives in half of the cases."""
    found = checks.duplicates(losses_of([1, 2, 3], [3, 4]))
    assert found.status is Status.WARN
    assert found.details["contents_in_both"] == 1


def test_copies_within_a_group_warn():
    """Members that each occur twice, and never among the non-members, look like copies."""
    found = checks.duplicates(losses_of(np.repeat(np.arange(50), 2), np.arange(100, 200)))
    assert found.status is Status.WARN
    assert found.details["repeated_content_members"] == 50
    assert "look like copies" in found.message


def test_a_twin_within_a_group_is_fine():
    """One repeated content within a group is no more than chance, and is counted."""
    found = checks.duplicates(losses_of([1, 1, 2], [4, 5]))
    assert found.status is Status.OK
    assert found.details["repeated_content_members"] == 1
    assert checks.duplicates(losses_of([1, 2], [4, 5])).message == "No two records have the same features."


def test_the_worse_of_ids_and_contents_is_told():
    """Fine ids do not hide an overlap of contents, and the numbers of both are kept."""
    ids = [f"a{i}" for i in range(40)], [f"b{i}" for i in range(40)]
    found = checks.duplicates(losses_of(np.arange(40), np.arange(40), id=ids))
    assert found.status is Status.FAIL
    assert found.details["across"] == 0
    assert found.details["contents_in_both"] == 40
    shared = checks.duplicates(losses_of([1, 2], [3, 4], id=(["a", "b"], ["b", "c"])))
    assert shared.status is Status.FAIL
    assert "both member and non-member" in shared.message
    fine = checks.duplicates(losses_of([1, 2], [3, 4], id=(["a", "b"], ["c", "d"])))
    assert fine.message == "No id appears twice. No two records have the same features."


def test_few_twins_of_a_real_table_do_not_fail(rng):
    """In a table like UCI Adult, with one record in 1,000 a natural twin, no random split of twenty fails."""
    n = 5000
    table = pd.DataFrame({"x": np.where(rng.random(n) < 0.01, rng.integers(0, 40, n), rng.random(n))})
    for _ in range(20):
        order = rng.permutation(n)
        parts = [table.iloc[rows] for rows in (order[:3000], order[3000:])]
        losses = Losses(
            member=np.zeros(3000), nonmember=np.zeros(2000), fingerprint=fingerprints(Features(*parts))
        )
        assert checks.duplicates(losses).status is not Status.FAIL


@pytest.mark.parametrize("contents", ["aabbcd", "aaabbc", "aaaabb", "abcdef"])
@pytest.mark.parametrize("n1", [2, 3, 4])
def test_the_expected_number_in_both_is_exact(contents, n1):
    """Against all splits of six records: the mean number of contents in both groups."""
    counts = []
    for rows in itertools.combinations(range(6), n1):
        member = {contents[row] for row in rows}
        counts.append(len(member & {contents[row] for row in range(6) if row not in rows}))
    pair = PerGroup(np.array(list(contents[:n1])), np.array(list(contents[n1:])))
    assert twins(pair).expected == pytest.approx(float(np.mean(counts)), abs=1e-12)


def exact_law_of_pairs(pairs, n1):
    """The law of the number of split pairs when 2 x pairs records are split into n1 and the rest: counted by hand."""
    from math import comb

    law = {}
    for split in range(pairs + 1):
        rest = n1 - split
        whole = comb(pairs - split, rest // 2) if rest >= 0 and rest % 2 == 0 else 0
        law[split] = Fraction(comb(pairs, split) * 2**split * whole, comb(2 * pairs, n1))
    return law


@pytest.mark.parametrize(("pairs", "n1"), [(10, 10), (30, 30), (30, 12), (100, 40), (200, 200)])
def test_the_level_holds_where_every_record_has_a_twin(pairs, n1):
    """Even there, where fixed group sizes tie the coins most, overlap and copies are each alleged in at most 1% of all splits."""
    law = exact_law_of_pairs(pairs, n1)
    assert sum(law.values()) == 1
    first, coins = _sum_of_coins(np.array([pairs]), _in_both(np.array([2]), n1, 2 * pairs - n1))
    more = fewer = Fraction(0)
    for split, probability in law.items():
        more += probability * (coins[max(0, split - first) :].sum() < 0.01)
        fewer += probability * (coins[: max(0, split - first + 1)].sum() < 0.01)
    assert float(more) <= 0.011
    assert float(fewer) <= 0.011


def test_a_sum_of_coins_is_that_of_single_coins():
    """Against adding one coin at a time."""
    numbers, chances = np.array([3, 40, 500]), np.array([0.9, 0.5, 0.02])
    slow = np.ones(1)
    for n, p in zip(numbers, chances, strict=True):
        for _ in range(n):
            slow = np.convolve(slow, [1 - p, p])
    first, law = _sum_of_coins(numbers, chances)
    np.testing.assert_allclose(law, slow[first : first + law.size], atol=1e-14)
    assert law.sum() == pytest.approx(1, abs=1e-12)


def test_counts_against_the_obvious(rng):
    """Shared labels, records with a twin and repeats, against counting with dictionaries."""
    member, nonmember = rng.integers(0, 30, 40), rng.integers(0, 30, 25)
    one, other = Counter(member.tolist()), Counter(nonmember.tolist())
    found = twins(PerGroup(member, nonmember))
    assert found.shared == len(one.keys() & other.keys())
    assert found.nonmembers_with_twin == sum(other[label] for label in one)
    assert found.repeats == (40 - len(one), 25 - len(other))


def test_large_counts_stay_numbers(rng):
    """Half a million records of three contents give probabilities between 0 and 1."""
    found = twins(PerGroup(rng.integers(0, 3, 250_000), rng.integers(0, 3, 250_000)))
    assert found.shared == found.expected == 3
    assert found.p_more == pytest.approx(1)
    assert found.p_fewer == pytest.approx(1)
