"""The shift check finds a shift in features of any kind, and only where there is one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor import InputError
from auditor.checks import encoded, shift
from auditor.core import PerGroup, Status
from auditor.records import Features


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


def test_no_shift_is_no_proof(rng):
    """Equal groups are fine, and the sentence says that this is no proof."""
    found = shift(Features(rng.normal(size=(300, 3)), rng.normal(size=(300, 3))), rng=rng)
    assert found.status is Status.OK
    assert "no proof" in found.message


def odd_features(rng, n, moved):
    """A frame of many kinds of columns, of which one differs if asked."""
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


@pytest.mark.parametrize(("moved", "status"), [(True, Status.FAIL), (False, Status.OK)])
def test_mixed_columns_with_gaps_and_infinities(rng, moved, status):
    """Categories, dates, booleans, gaps, infinities and constants are encoded, and a shift in one category is found."""
    found = shift(Features(odd_features(rng, 400, moved=moved), odd_features(rng, 400, moved=False)), rng=rng)
    assert found.status is status


def test_where_values_are_missing_is_a_feature(rng):
    """Values missing more often among the members are found though what is there does not differ."""
    member, nonmember = rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
    member[rng.random(400) < 0.4] = np.nan
    nonmember[rng.random(400) < 0.1] = np.nan
    assert shift(Features(member, nonmember), rng=rng).status is Status.FAIL


def test_what_depends_on_two_columns_together_is_found(rng):
    """A shift that no column shows alone, only the sign of a product, is found by the trees."""
    member, nonmember = rng.normal(size=(2, 1500, 2))
    member[:, 1] = np.where(
        rng.random(1500) < 0.4, np.abs(member[:, 1]) * np.sign(member[:, 0]), member[:, 1]
    )
    assert shift(Features(member, nonmember), rng=rng).status is Status.FAIL


def test_texts_are_compared_by_their_words(rng):
    """A word that is more frequent among the members is found; equal frequencies are not."""
    words, plain = np.array(list("abcdefgh")), np.full(8, 1 / 8)
    more = plain + np.array([0.07, *[-0.01] * 7])
    text = lambda p: ["  ".join(np.char.multiply(rng.choice(words, 10, p=p), 2)) for _ in range(400)]  # noqa: E731
    assert shift(Features(text(more), text(plain)), rng=rng).status is Status.FAIL
    assert shift(Features(text(plain), text(plain)), rng=rng).status is Status.OK


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
    """Members that each occur six times are not told apart by recognising their copies."""
    member, nonmember = rng.normal(size=(2, 300, 2))
    found = shift(Features(np.repeat(member, 6, axis=0), nonmember), rng=rng)
    assert found.status is Status.OK
    assert found.details["members"] == 300
    assert found.details["left_out"] == 1500


def test_coarse_features_keep_their_counts(rng):
    """One column of three values counts every record, so that other shares of the values are found."""
    member, nonmember = rng.choice(3, 500, p=[0.6, 0.2, 0.2]), rng.choice(3, 500)
    assert shift(Features(member, nonmember), rng=rng).status is Status.FAIL


def test_persons_are_no_evidence(rng):
    """Members and non-members of other persons are not told apart by recognising persons."""
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


def test_features_that_are_all_equal_are_fine(rng):
    """Where no column has two values there is nothing to differ by."""
    assert shift(Features(np.ones((400, 2)), np.ones((400, 2))), rng=rng).status is Status.OK


def test_the_check_is_reproducible(rng):
    """The same generator gives the same numbers."""
    features = Features(rng.normal(size=(200, 3)), rng.normal(size=(200, 3)))
    first, second = (shift(features, rng=np.random.default_rng(5)).details for _ in range(2))
    assert first == second


def test_a_forgotten_generator_is_one_sentence():
    """Features without a generator are refused."""
    with pytest.raises(InputError, match="shift needs an rng with features, got None"):
        shift(Features([1, 2], [3, 4]))


def test_shift_is_never_decided_from_losses():
    """From losses alone a shift is unknown, and the sentence says what is assumed."""
    found = shift(None)
    assert found.status is Status.UNKNOWN
    assert "drawn like the members" in found.message


def test_ranks_make_columns_free_of_units(rng):
    """Every increasing map of a column gives the same encoding."""
    values = rng.normal(size=(60, 1))
    pairs = [Features(x[:30], x[30:]).tables for x in (values, np.exp(5 * values) * 1e6)]
    one, other = (encoded(*pair, rng=rng) for pair in pairs)
    np.testing.assert_array_equal(vars(one)["values"], vars(other)["values"])
