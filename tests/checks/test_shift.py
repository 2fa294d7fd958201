"""The shift check finds a shift in features of any kind, and only where there is one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor.checks import shift
from auditor.core import PerGroup, Status
from auditor.records import Features, encoded, pooled


def test_a_shift_fails_and_names_the_feature(rng):
    """A shift of one of three named features fails with the AUC, its interval and that feature."""
    names = ["height", "age", "income"]
    member = pd.DataFrame(rng.normal([0.0, 0.8, 0.0], 1.0, (500, 3)), columns=names)
    nonmember = pd.DataFrame(rng.normal(size=(500, 3)), columns=names)
    found = shift(Features(member, nonmember), rng=rng)
    assert found.status is Status.FAIL
    # A shift of 0.8 sd has AUC Phi(0.8 / sqrt 2) = 0.714 for the best classifier.
    assert 0.6 < found.details["lower"] < found.details["auc"] < 0.75
    assert found.details["most_different"] == "age"
    assert "most by 'age'" in found.message
    assert "98% confidence" in found.message


def odd_features(rng, n, moved):
    """A frame of many kinds of columns, of which one differs on request."""
    return pd.DataFrame(
        {
            "job": rng.choice(["cook", "judge", None], n, p=[0.6, 0.2, 0.2] if moved else [0.2, 0.6, 0.2]),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 100, n), unit="D"),
            "huge": rng.choice([1e308, -1e308, np.inf, np.nan, 0.0], n),
            "yes": rng.random(n) < 0.5,
            "same": 1,
            "empty": None,
        }
    )


def gappy(rng, share):
    """One column in which so many values are missing."""
    return np.where(rng.random((400, 1)) < share, np.nan, rng.normal(size=(400, 1)))


def signed(rng, share):
    """Two columns whose signs agree more often by this share, which no column shows alone."""
    first, second = rng.normal(size=(2, 1500))
    agreeing = np.abs(second) * np.sign(first)
    return np.column_stack([first, np.where(rng.random(1500) < share, agreeing, second)])


def texts(rng, more):
    """Texts of ten words, of which one is more frequent by this much."""
    words, chances = np.array(["aa", *"bcdefgh"]), np.full(8, 1 / 8 - more / 7)
    chances[0] = 1 / 8 + more
    return ["  ".join(rng.choice(words, 10, p=chances)) for _ in range(400)]


# What draws the features of a group, and what it takes for members that differ.
KINDS = {
    "categories, dates, gaps and infinities": (lambda rng, moved: odd_features(rng, 400, moved=moved), True),
    "where values are missing": (lambda rng, more: gappy(rng, 0.1 + more), 0.3),
    "two columns together": (signed, 0.4),
    "the words of texts": (texts, 0.07),
    "shares of three values": (
        lambda rng, more: rng.choice(3, 500, p=np.array([1 + more, 1, 1]) / (3 + more)),
        2,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_any_kind_are_told_apart_where_they_differ(rng, kind):
    """A shift in features of any kind fails; equal groups are fine, which is no proof."""
    draw, differing = KINDS[kind]
    for difference, status in ((differing, Status.FAIL), (0, Status.OK)):
        found = shift(Features(draw(rng, difference), draw(rng, 0)), rng=rng)
        assert found.status is status
        assert ("no proof" in found.message) == (status is Status.OK)


@pytest.mark.parametrize("form", [sparse.csr_matrix, np.asarray])
def test_many_columns(rng, form):
    """Of 3,000 columns, the one that differs is found if it is looked at; sparse ones that are most often filled are."""
    cells = (rng.random((1200, 3000)) < 0.01) + 0.0
    cells[:, :20] = rng.random((1200, 20)) < 0.3
    alike = Features(form(cells[:600]), form(cells[600:]))
    assert shift(alike, rng=rng).status is Status.OK
    cells[:600, :20] = rng.random((600, 20)) < 0.5
    found = shift(Features(form(cells[:600]), form(cells[600:])), rng=rng)
    assert found.status is Status.FAIL
    assert found.details["columns"] <= 1000


def test_copies_are_no_evidence(rng):
    """Members that each occur six times are not distinguished by recognising their copies."""
    member, nonmember = rng.normal(size=(2, 300, 2))
    found = shift(Features(np.repeat(member, 6, axis=0), nonmember), rng=rng)
    assert found.status is Status.OK
    assert found.details["members"] == 300
    assert found.details["left_out"] == 1500


def test_persons_are_no_evidence(rng):
    """Members and non-members of other people are not distinguished by recognising people."""
    owner = np.repeat(np.arange(300), 8)
    records = rng.normal(size=(300, 3))[owner] + 0.01 * rng.normal(size=(2400, 3))
    features = Features(records[:1200], records[1200:])
    person = PerGroup(owner[:1200], owner[1200:])
    assert shift(features, rng=rng).status is Status.FAIL
    found = shift(features, person=person, rng=rng)
    assert found.status is Status.OK
    assert found.details["members"] == 150


@pytest.mark.parametrize("n", [2, 20])
def test_too_few_records_are_unknown(rng, n):
    """With a handful of records nothing is claimed, even of groups that are far apart."""
    found = shift(Features(rng.normal(9, 1, n), rng.normal(0, 1, n)), rng=rng)
    assert found.status is Status.UNKNOWN
    assert "too few" in found.message


def test_one_blank_and_one_text_do_not_tell_groups_apart(rng):
    """A blank makes a column of codes floats, and a text makes it texts: each record has the same code in both."""
    codes = [rng.integers(0, 3, 400).astype(float) for _ in range(2)]
    codes[0][0] = np.nan
    texts = codes[1].astype(int).astype(str).astype(object)
    texts[0] = "A1"
    assert (
        shift(Features(pd.DataFrame({"code": codes[0]}), pd.DataFrame({"code": texts})), rng=rng).status
        is Status.OK
    )
    both = (codes[0].astype(object), texts)
    both[0][1] = "B2"
    assert shift(Features(*(pd.DataFrame({"code": item}) for item in both)), rng=rng).status is Status.OK


def test_long_numbers_beside_texts_stay_apart():
    """Whole numbers that are one float are not one value."""
    column = np.array([2**53, 2**53 + 1, "A1"], dtype=object)
    assert pooled(column) == [str(2**53), str(2**53 + 1), "A1"]


def test_features_that_are_all_equal_are_fine(rng):
    """Where no column has two values there is nothing to differ by."""
    assert shift(Features(np.ones((400, 2)), np.ones((400, 2))), rng=rng).status is Status.OK


def test_ranks_make_columns_free_of_units(rng):
    """Every increasing map of a column gives the same encoding."""
    values = rng.normal(size=(60, 1))
    pairs = [Features(x[:30], x[30:]).tables for x in (values, np.exp(5 * values) * 1e6)]
    one, other = (encoded(*pair, rng=rng) for pair in pairs)
    np.testing.assert_array_equal(one[0], other[0])
