"""Duplicates by id and by content: what overlaps, what are natural twins, and what are copies."""

import itertools
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from auditor import checks
from auditor.core import Losses, PerGroup, Status
from auditor.estimators.twins import by_chance, twins
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


@pytest.mark.parametrize(
    ("member", "nonmember", "status", "across"),
    [
        (["a", "b"], ["c", "d"], Status.OK, 0),
        (["a", "a"], ["c", "d"], Status.FAIL, 0),
        (["a", "b"], ["b", "d"], Status.FAIL, 1),
        ([1, 2], ["2", "3"], Status.FAIL, 1),
        ([1, 2], [2.0, 3.0], Status.FAIL, 1),
        ([1.5, 2.0], [2.5, 3.0], Status.OK, 0),
    ],
)
def test_duplicates_by_id(member, nonmember, status, across):
    """An id in both groups fails, and where a group has no other; numbers meet their own text."""
    found = checks.duplicates(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0], id=(member, nonmember)))
    assert found.status is status
    assert found.details["across"] == across


@pytest.mark.parametrize("blank", ["", "  ", None, float("nan")])
def test_blank_ids_are_no_ids(blank):
    """Records without an id are not taken for duplicates of each other; the check says how many there are."""
    ids = np.array([blank, blank, "a"], object), np.array([blank, "x", "y"], object)
    found = checks.duplicates(Losses(member=[0.0, 1.0, 2.0], nonmember=[0.0, 1.0, 2.0], id=ids))
    assert found.status is Status.UNKNOWN
    assert found.details["without_id"] == 3


PAIRED = np.repeat(np.arange(50), 2)


@pytest.mark.parametrize(
    ("member", "nonmember", "status", "counted", "words"),
    [
        (np.arange(1000), np.arange(990, 1990), Status.FAIL, (10, 0), "the groups overlap"),
        # What a random split gives in half of the cases.
        ([1, 2, 3], [3, 4], Status.OK, (1, 0), "no more than a random split"),
        (PAIRED, np.arange(100, 200), Status.FAIL, (0, 50), "look like copies"),
        ([1, 1, 2], [4, 5], Status.OK, (0, 1), "no more than chance explains"),
        ([1, 2], [4, 5], Status.OK, (0, 0), "No two records have the same features."),
    ],
)
def test_duplicates_by_content(member, nonmember, status, counted, words):
    """Contents in both groups beyond chance fail, up to it they do not; copies within a group fail, one twin does not."""
    found = checks.duplicates(losses_of(member, nonmember))
    assert found.status is status
    assert (found.details["nonmembers_with_twin"], found.details["repeated_content_members"]) == counted
    assert words in found.message


def test_the_chance_of_an_overlap_by_hand():
    """Each of ten pairs is split with probability 1000/1999, so that a random split gives ten once in 1,000."""
    found = checks.duplicates(losses_of(np.arange(1000), np.arange(990, 1990)))
    assert found.details["more_than_chance_p_value"] == pytest.approx((1000 / 1999) ** 10, rel=1e-9)


def test_natural_twins_are_no_overlap(rng):
    """A random split of records of 2,000 contents puts most of them in both groups, and that is no overlap."""
    pooled = rng.integers(0, 2000, 4000)
    found = checks.duplicates(losses_of(pooled[:2000], pooled[2000:]))
    assert found.status is Status.OK
    assert found.details["nonmembers_with_twin_share"] > 0.5


@pytest.mark.parametrize(
    ("contents", "ids", "status", "message"),
    [
        ((np.arange(40), np.arange(40)), (range(40), range(40, 80)), Status.FAIL, "exact twin"),
        (([1, 2], [3, 4]), (["a", "b"], ["b", "c"]), Status.FAIL, "both member and non-member"),
        (([1, 2], [3, 4]), (["a", "b"], ["c", "d"]), Status.OK, "No id appears twice. No two records"),
        ((None, None), None, Status.UNKNOWN, "neither ids nor features"),
    ],
)
def test_the_worse_of_ids_and_contents_is_told(contents, ids, status, message):
    """Fine ids do not hide an overlap of contents, nor the other way; without either nothing is claimed."""
    losses = Losses([0.0, 1.0], [0.0, 1.0]) if ids is None else losses_of(*contents, id=ids)
    found = checks.duplicates(losses)
    assert found.status is status
    assert message in found.message
    assert ids is None or {"across", "contents_in_both"} <= found.details.keys()


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
    chance = by_chance(np.repeat(2, pairs), n1=n1, n0=2 * pairs - n1)
    for p_value in (chance.p_more, chance.p_fewer):
        alarm = sum(probability for split, probability in law.items() if p_value(split) < 0.01)
        assert float(alarm) <= 0.011


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
