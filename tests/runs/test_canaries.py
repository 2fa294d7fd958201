"""Canaries: what they are made of, their coins, what their losses say, and which of them to take."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import auditor
from auditor.canaries import (
    Canaries,
    Template,
    choose_canary,
    marked_texts,
    mislabelled,
    patterned,
    read_coins,
)
from auditor.core import InputError, OutputError


def patterned_first(features, labels, **options):
    """Canaries with 7 in the first feature."""
    first = features.columns[0] if hasattr(features, "columns") else (0,) * (features.ndim - 1)
    return patterned(features, labels, pattern={first: 7}, **options)


MAKERS = (mislabelled, patterned_first)
maker = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


@pytest.fixture(scope="module")
def frame():
    """Records of every kind of column, with an index that is none of ours, and labels in words."""
    rng = np.random.default_rng(0)
    n = 200
    records = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(np.int32),
            "dose": rng.normal(size=n).astype(np.float32),
            "visits": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "job": rng.choice(["cook", "judge"], n),
            "ward": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "smokes": rng.random(n) < 0.5,
        },
        index=np.arange(n) + 1000,
    )
    labels = pd.Series(pd.Categorical(rng.choice(["ill", "well", "dead"], n)), index=np.arange(n) + 7)
    return records, labels


# --- Coins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [True, False])
def test_coins_are_fair_and_independent_of_records_and_each_other(request, seeded):
    """Neither their number, nor runs of two, nor those of each class depart from fair coins (chi-squared)."""
    size = 200_000 if request.config.getoption("--long") else 20_000
    labels = np.arange(size) % 4
    found = mislabelled(np.arange(size), labels, size=size, seed=5 if seeded else None)
    coins, p_values = found.member.astype(int), []
    p_values.append(stats.binomtest(int(coins.sum()), size).pvalue)
    pairs = np.bincount(coins[0::2] * 2 + coins[1::2], minlength=4)
    p_values.append(stats.chisquare(pairs).pvalue)
    for column in (found.labels, found.features % 4, np.arange(size) * 4 // size, found.features * 4 // size):
        table = np.array([np.bincount(coins[column == value], minlength=2) for value in range(4)])
        p_values.append(stats.chisquare(table.ravel(), np.repeat(table.sum(axis=1), 2) / 2).pvalue)
    # Of the system's randomness one test in a million may fail by chance.
    assert min(p_values) > (1e-3 if seeded else 1e-7)


def test_a_seed_repeats_records_and_coins_and_none_repeats_nothing():
    """The same seed gives the same canaries, another one others, and no seed new ones each time."""
    features, labels = np.arange(500.0).reshape(250, 2), np.arange(250) % 3

    def made(seed):
        found = mislabelled(features, labels, size=100, seed=seed)
        return found.features.tolist(), found.labels.tolist(), found.member.tolist()

    assert made(3) == made(3)
    assert all(one != other for one, other in zip(made(3), made(4), strict=True))
    assert all(one != other for one, other in zip(made(None), made(None), strict=True))


def test_coins_are_their_own_stream_of_the_seed():
    """The coins of a seed are no function of the records drawn with it: the same for any records of that number."""
    few = mislabelled(np.arange(100), np.arange(100) % 2, size=64, seed=1)
    many = patterned_first(np.random.default_rng(0).normal(size=(90, 7)), np.arange(90) % 5, size=64, seed=1)
    assert few.member.tolist() == many.member.tolist()
    # Nor are they what anybody else draws with this seed.
    plain = np.random.default_rng(1).integers(2, size=64).astype(bool)
    assert few.member.tolist() != plain.tolist()


def test_fresh_coins_for_another_model():
    """The same records get coins of their own for each model, which agree as often as chance has it."""
    first = mislabelled(np.arange(2000), np.arange(2000) % 2, size=2000, seed=1)
    second = Canaries.of(first.features, first.labels, seed=2)
    assert second.id.tolist() == first.id.tolist()
    assert stats.binomtest(int((first.member == second.member).sum()), 2000).pvalue > 1e-3


def test_the_included_are_those_whose_coin_says_so(frame):
    """Features and labels of members alone, row by row; nothing shows records or coins by accident."""
    found = mislabelled(*frame, size=50, seed=0)
    features, labels = found.included
    assert len(found) == 50
    assert features["dose"].tolist() == found.features["dose"][found.member].tolist()
    assert labels.tolist() == found.labels[found.member].tolist()
    assert repr(found) == f"Canaries(50, {found.member.sum()} of them to be trained on)"
    with pytest.raises(ValueError, match="read-only"):
        found.member[0] = True


# --- Records -------------------------------------------------------------------------------------------


@maker
def test_shapes_types_and_names_are_kept(make, frame):
    """Canaries look like the records that they were made from, of a DataFrame as of an array, and each has an id."""
    features, labels = frame
    found = make(features, labels, size=60, seed=0)
    assert found.features.dtypes.to_dict() == features.dtypes.to_dict()
    assert found.labels.dtype == labels.dtype
    assert found.id[[0, 59]].tolist() == ["canary-000001", "canary-000060"]
    assert make(features, labels, size=60.0, seed=0).features.equals(found.features)
    for kind in (np.float16, np.float32, np.float64, np.int8, np.int64):
        pictures = (np.random.default_rng(0).random((30, 4, 5, 3)) * 9).astype(kind)
        found = make(pictures, np.arange(30) % 3, size=20, seed=0)
        assert (found.features.shape, found.features.dtype) == ((20, 4, 5, 3), kind)
        assert found.labels.dtype == np.int64


@maker
def test_the_data_are_not_touched(make, frame):
    """Neither a DataFrame nor an array is changed by what is made from it."""
    features, labels = frame
    before, array = features.copy(), np.random.default_rng(0).random((20, 3))
    kept = array.copy()
    make(features, labels, size=200, seed=0)
    make(array, np.arange(20) % 2, size=20, seed=0)
    pd.testing.assert_frame_equal(features, before)
    assert (array == kept).all()


def test_wrong_labels_are_uniform_over_the_other_classes():
    """Each record is itself, taken once, and its label each of the others as often (chi-squared), never its own."""
    rows = np.arange(30_000)
    labels = np.array(["a", "b", "c", "d"])[rows % 4]
    found = mislabelled(rows, labels, size=24_000, seed=0)
    assert np.unique(found.features).size == 24_000
    own = labels[found.features]
    assert not (found.labels == own).any()
    for name in "abcd":
        _, counts = np.unique(found.labels[own == name], return_counts=True)
        assert counts.size == 3
        assert stats.chisquare(counts).pvalue > 1e-3


def test_a_pattern_is_stamped_and_the_rest_is_the_record(frame):
    """Named columns hold the value in their type, the others those of a record; one label where one is requested."""
    features, labels = frame
    stamp = {"age": 130, "ward": "b", "visits": 99, "dose": 0.1, "job": "pope"}
    found = patterned(features, labels, size=40, pattern=stamp, label="dead", seed=0)
    for name, value in stamp.items():
        assert set(found.features[name]) == {np.float32(value) if name == "dose" else value}
    assert set(found.labels) == {"dead"}
    assert found.features.dtypes.drop("job").to_dict() == features.dtypes.drop("job").to_dict()
    pictures = np.random.default_rng(0).random((9, 2, 3))
    found = patterned(pictures, np.arange(9) % 3, size=5, pattern={(1, 2): 7.0, (0, 0): -7.0}, seed=1)
    assert found.features[:, 1, 2].tolist() == [7.0] * 5
    assert found.features[:, 0, 0].tolist() == [-7.0] * 5
    rest = [pictures[row, 0, 1:] for row in range(9)]
    assert all(any((one[0, 1:] == other).all() for other in rest) for one in found.features)


# --- Tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_coins_come_back_from_their_file(ending, tmp_path):
    """Ids and coins make a round trip; a file that is there is kept unless it is requested."""
    found = mislabelled(np.arange(99), np.arange(99) % 2, size=77, seed=0)
    path = tmp_path / f"coins.{ending}"
    found.write(path)
    back = read_coins(path)
    assert back.id.tolist() == found.id.tolist()
    assert back.member.tolist() == found.member.tolist()
    scores = np.arange(77) / 7
    for side in ("member", "nonmember"):
        assert getattr(back.losses(scores), side).tolist() == getattr(found.losses(scores), side).tolist()
    with pytest.raises(OutputError, match="is there already, and coins cannot be had again"):
        back.write(path)
    back.write(path, overwrite=True)
    with pytest.raises(InputError, match=r"must end in .csv or .parquet, got .*coins.txt"):
        found.write(tmp_path / "coins.txt")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_table_of_canaries_is_one_of_records_and_one_of_losses(frame):
    """With ids, features, labels and coins by name: `collect` scores it, and what was scored by hand is joined by order."""
    found = mislabelled(*frame, size=40, seed=0)
    table = found.table(label="fate")
    assert list(table) == ["id", *frame[0], "fate", "member"]
    assert table["member"].tolist() == found.member.astype(int).tolist()
    assert table["fate"].tolist() == found.labels.tolist()
    losses = auditor.read_losses(table.assign(loss=np.arange(40.0)))
    by_order = found.losses(np.arange(40.0))
    assert losses.member.tolist() == by_order.member.tolist()
    assert losses.id.nonmember.tolist() == by_order.id.nonmember.tolist()
    assert list(mislabelled(np.eye(3), [0, 1, 1], size=2).table()) == [
        *("id", "x0", "x1", "x2", "label", "member")
    ]
    assert list(marked_texts(size=2).table()) == ["id", "text", "member"]


def test_losses_are_of_every_canary():
    """One loss for each, in order; fewer, missing or infinite ones are refused with the reason."""
    found = Canaries.of(np.eye(8), seed=1)
    losses = found.losses(np.arange(8))
    assert losses.member.tolist() == np.flatnonzero(found.member).tolist()
    assert losses.id.member.tolist() == [f"canary-{row + 1:06d}" for row in np.flatnonzero(found.member)]
    assert "each in the training set by a fair coin" in losses.history[0]
    for values, words in (
        (
            np.arange(7),
            "values must be 8 numbers, got 7 of type int64; each canary that had a coin is scored, in order",
        ),
        ([0, 1, np.nan, 3, 4, np.inf, 6, 7], r"values must be finite, got nan for canary-000003 \(2 such\)"),
        (list("abcdefgh"), "got 8 of type object"),
        (np.eye(8), r"values must be one-dimensional, got shape \(8, 8\)"),
    ):
        with pytest.raises(InputError, match=words):
            found.losses(values)
    with pytest.raises(InputError, match="in order, those left out of training too, or the audit"):
        found.losses(found.member[found.member])


# --- A whole audit -------------------------------------------------------------------------------------


def bound(losses):
    """The one-run bound at delta 0."""
    result = auditor.audit(losses, split=auditor.BernoulliSplit(0.5), one_run_test=auditor.AnyGuesses())
    found = result.estimate("epsilon_bound.one_run")
    assert found.delta == 0
    return found.value


@maker
def test_canaries_show_what_a_tree_remembers(make):
    """A tree that fits every record certifies more than 1 at delta 0; with its coins shuffled the same losses say little or nothing."""
    features, labels = load_digits(return_X_y=True)
    found = make(features[1000:], labels[1000:], size=400, seed=0)
    more, wrong = found.included
    model = DecisionTreeClassifier(random_state=0).fit(
        np.concatenate([features[:1000], more]), np.concatenate([labels[:1000], wrong])
    )
    scores = -model.predict_proba(found.features)[np.arange(400), found.labels]
    assert bound(found.losses(scores)) > 1
    for seed in range(3):
        shuffled = Canaries.of(found.features, found.labels, seed=seed + 1)
        assert bound(shuffled.losses(scores)) < 0.6  # one audit in twenty finds something in nothing


def test_collect_scores_the_table(tmp_path):
    """From the table of canaries through `collect_to` to the same losses as by hand."""
    features, labels = load_digits(return_X_y=True, as_frame=True)
    found = mislabelled(features[1500:], labels[1500:], size=100, seed=0)
    more, wrong = found.included
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(
        pd.concat([features[:300], more]), pd.concat([labels[:300], wrong])
    )
    out = tmp_path / "losses.parquet"
    records = auditor.RecordTable(found.table(), label="label")
    auditor.collect_to(out, model, records=records)
    losses = auditor.read_losses(out)
    right = model.predict_proba(found.features)[np.arange(100), found.labels]
    # The loss falls with the probability of the label, so the order is that of the probabilities.
    by_hand = found.losses(1 - right)
    assert losses.id.member.tolist() == by_hand.id.member.tolist()
    assert stats.spearmanr(losses.member, by_hand.member).statistic == pytest.approx(1)
    assert stats.spearmanr(losses.nonmember, by_hand.nonmember).statistic == pytest.approx(1)


# --- Marked texts -------------------------------------------------------------------------------------


def test_texts_are_different_and_of_the_template():
    """Each has another secret of the space; so many as there are make all of it, and drawn ones are uniform."""
    found = marked_texts("PIN ##-## #", size=5000, seed=0)
    assert len(set(found.features.tolist())) == 5000
    assert all(len(text) == 11 and text[:4] == "PIN " and text[6] == "-" for text in found.features)
    template = Template("<##>", alphabet="abc")
    every = [f"<{one}{other}>" for one in "abc" for other in "abc"]
    rng = np.random.default_rng(0)
    assert template.space == 9
    assert sorted(template.texts(9, rng=rng)) == every
    drawn = np.concatenate([template.texts(2, rng=rng) for _ in range(4500)])
    assert stats.chisquare(np.unique(drawn, return_counts=True)[1]).pvalue > 1e-3
    assert marked_texts(size=3).features[0].startswith("The random number is ")
    assert Template().space == 10**9


# --- Choosing ------------------------------------------------------------------------------------------


def scores(distance, runs, seed):
    """Scores of runs with and without a canary so many standard deviations apart."""
    rng = np.random.default_rng(seed)
    return auditor.Losses(member=rng.normal(-distance, 1, runs), nonmember=rng.normal(0, 1, runs))


def test_the_most_telling_canary_is_chosen():
    """In nearly all of 40 draws, of 40 runs each, the one at distance 3 and not those at 0, 1 and 2 (25 were tried, say)."""
    right = 0
    for draw in range(40):
        tried = {f"at {distance}": scores(distance, 40, 4 * draw + distance) for distance in (1, 3, 0, 2)}
        right += choose_canary(tried, delta=1e-5).name == "at 3"
    assert right >= 36


def test_the_choice_comes_with_its_table_and_the_seed_is_spent():
    """Rows in the order of their bound, then of the AUC; equal ones as given; the note says what to do next."""
    perfect = auditor.Losses(member=np.arange(50.0), nonmember=np.arange(50.0) + 100)
    faint = auditor.Losses(member=np.arange(50.0) - 1, nonmember=np.arange(50.0))
    none = auditor.Losses(member=np.ones(50), nonmember=np.ones(50))
    found = choose_canary({"c": none, "b": faint, "a": perfect, "a2": perfect}, delta=1e-5)
    assert found.name == "a"
    assert [row.name for row in found.tried] == ["a", "a2", "b", "c"]
    assert [row.auc for row in found.tried][::3] == [1.0, 0.5]
    assert found.tried[0].epsilon > 1
    assert found.tried[2].epsilon == found.tried[3].epsilon == 0
    assert found.tried[2].auc > 0.5
    assert found.runs == (50, 50)
    assert "collect the runs that are judged with another seed" in found.note


def test_values_outside_the_categories_are_refused(frame):
    """A category that the feature does not have, and a column that is not there."""
    for stamp, words in (
        ({"ward": "z"}, "give 'ward' a value"),
        ({"bard": 1}, r"\['age', 'dose'.*got 'bard'"),
    ):
        with pytest.raises(InputError, match=words):
            patterned(*frame, size=2, pattern=stamp)
