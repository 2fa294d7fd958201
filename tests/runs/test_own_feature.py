"""Canaries with a feature of their own, the positive control beside them, and the plan that it makes."""

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run

import auditor
from auditor.canaries import Canaries, own_feature
from auditor.core import InputError

CLAIM = auditor.StatedClaim(1.0, delta=1e-5)
COINS = auditor.BernoulliSplit(0.5)
ALIKE = "These canaries tell nothing apart: a training without noise would look the same."


# --- Their geometry ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_in_a_table_of_numbers_each_has_a_column_that_is_added(kind):
    """All is 0 but one new column each, at 10, and training records are widened by as many columns of 0."""
    features = np.arange(12).reshape(4, 3).astype(kind)
    planted = own_feature(features, ["a", "b", "a", "a"], size=5, seed=0)
    assert planted.features.dtype == kind
    np.testing.assert_array_equal(planted.features[:, :3], 0)
    np.testing.assert_array_equal(planted.features[:, 3:], 10 * np.eye(5))
    assert planted.labels.tolist() == ["b"] * 5
    wide = planted.widened(features)
    np.testing.assert_array_equal(wide, np.hstack([features, np.zeros((4, 5))]))
    assert wide.dtype == kind
    assert own_feature(features, ["a", "b", "a", "a"], size=5, label="a", value=3).features.max() == 3


@pytest.fixture
def frame():
    """Records with a column of every kind."""
    return pd.DataFrame(
        {
            "age": np.int32([30, 41, 52]),
            "job": ["cook", "judge", "cook"],
            "ward": pd.Categorical(["a", "b", "b"]),
            "smokes": [True, True, False],
        },
        index=[7, 8, 9],
    )


def test_in_a_frame_the_columns_are_named_and_the_rest_is_usual(frame):
    """Numbers are 0, categories the most frequent, types are kept, and training records get the columns too."""
    planted = own_feature(frame, pd.Series([1, 0, 0]), size=2, seed=0)
    names = ["canary-000001", "canary-000002"]
    assert list(planted.features) == [*frame, *names]
    assert planted.features[frame.columns].dtypes.equals(frame.dtypes)
    assert planted.features[list(frame)].to_numpy().tolist() == [[0, "cook", "b", False]] * 2
    assert planted.features[names].to_numpy().tolist() == [[10.0, 0.0], [0.0, 10.0]]
    assert planted.labels.tolist() == [1, 1]
    wide = planted.widened(frame)
    assert list(wide) == list(planted.features)
    pd.testing.assert_frame_equal(wide[list(frame)], frame)
    assert not wide[names].to_numpy().any()


@pytest.mark.parametrize("column", ["job", ["job", "ward"]])
def test_in_named_columns_each_has_a_value_of_its_own(frame, column):
    """No column is added, and only the named ones hold the id of the canary."""
    planted = own_feature(frame, [1, 0, 0], size=3, column=column, seed=0)
    assert list(planted.features) == list(frame)
    for name in frame:
        own = planted.features[name].tolist() == planted.id.tolist()
        assert own == (name in ([column] if isinstance(column, str) else column))
    pd.testing.assert_frame_equal(planted.widened(frame), frame)


def test_in_texts_each_is_a_token_that_no_text_contains():
    """Tokens that occur are passed over, also inside a word; the others are repeated ten times, or as often as wanted."""
    texts, tokens = ["a cat sat", "the zebra"], ["cat", "ebr", "quux", "quux", " ", "flob", "wibble"]
    planted = own_feature(texts, size=2, tokens=tokens, seed=0)
    assert planted.features.tolist() == [" ".join(["quux"] * 10), " ".join(["flob"] * 10)]
    assert planted.labels is None
    assert own_feature(texts, [0, 1], size=1, tokens=tokens, value=2).features.tolist() == ["quux quux"]


@pytest.mark.parametrize(
    ("shape", "size", "area"),
    [((8, 8), 4, 16), ((8, 8), 5, 4), ((8, 6, 3), 12, 12), ((3, 8, 8), 64, 3), ((28, 28), 700, 1)],
)
@pytest.mark.parametrize(("kind", "high"), [(np.float32, 10), (np.uint8, 255)])
def test_in_images_each_has_a_block_that_no_other_has(shape, size, area, kind, high):
    """The blocks are disjoint, the largest so many that fit, of all channels, and bright."""
    planted = own_feature(np.ones((2, *shape), kind), [0, 1], size=size, seed=0).features
    lit = planted.reshape(size, -1) > 0
    assert planted.shape == (size, *shape)
    assert planted.dtype == kind
    assert lit.sum(axis=1).tolist() == [area] * size
    assert lit.sum(axis=0).max() == 1
    assert planted.max() == high


BAD = {
    "size must be a whole number of 1 or more": {"size": 0},
    "features must be an array of numbers": {"features": [["a", "b"]]},
    "got ndarray of 0 records": {"features": np.zeros((0, 2))},
    "got dict of 2 records": {"features": {"x": [1, 2]}},
    "column must be given with a DataFrame and with nothing else": {"column": "job"},
    "tokens must be given with texts and with nothing else, got None": {"features": ["a text"]},
    "tokens must be given with texts and with nothing else, got \\['a'\\]": {"tokens": ["a"]},
    "features and tokens must be texts": {"features": [1.0, 2.0], "tokens": ["a"]},
    "tokens must hold 2 that no text contains, got 1": {"features": ["a"], "tokens": ["a", "b"]},
    "value must be a whole number of 1 or more": {"features": ["a"], "tokens": ["b", "c"], "value": 0.5},
    "value must be a number other than 0 that the type int8 holds, got 300": {
        "features": np.zeros((2, 2), np.int8),
        "value": 300,
    },
    "value must be a number other than 0": {"value": 0},
    "features has 3, labels has 2": {"labels": [0, 1]},
    "label must be one of the 2 classes": {"labels": [0, 1, 1], "label": 7},
    "1 missing": {"labels": [0, None, 1]},
    "size must be at most 4, the number of pixels, got 5": {"features": np.zeros((3, 2, 2)), "size": 5},
    "column must name columns of features that hold no numbers": {
        "features": pd.DataFrame({"age": [1, 2]}),
        "column": "age",
    },
}


@pytest.mark.parametrize("words", BAD)
def test_bad_records_are_refused(words):
    """Each with a sentence that names the argument."""
    with pytest.raises(InputError, match=words):
        own_feature(**{"features": np.zeros((3, 2)), "size": 2, **BAD[words]})


def test_only_tables_of_the_canaries_are_widened(frame):
    """A column that the canaries lack, or another shape, is refused."""
    planted = own_feature(frame, size=2, column="job")
    for other, name in ((frame.assign(dose=1), "dose"), (frame.drop(columns="age"), "age")):
        with pytest.raises(
            InputError, match=f"the columns of the canaries, got '{name}' in one of them only"
        ):
            planted.widened(other)
    for other in (np.zeros((2, 9)), np.zeros((2, 3)), np.zeros(3)):
        with pytest.raises(InputError, match="features must be a table of the columns of the canaries"):
            own_feature(np.zeros((3, 2)), size=2).widened(other)
    with pytest.raises(InputError, match="features must be a table"):
        Canaries(None, None, planted.id, planted.member).widened(np.zeros((2, 2)))


# --- The positive control ------------------------------------------------------------------------------


def scored(mu, seed, planted):
    """Losses of canaries that are ``mu`` standard deviations lower for those that are in."""
    return planted.losses(np.random.default_rng(seed).normal(size=len(planted)) - mu * planted.member)


@pytest.fixture(scope="module")
def planted():
    """Canaries with coins, whose features do not matter."""
    return own_feature(np.zeros((2, 1)), size=400, seed=0)


def judged(planted, mu, control=None, **options):
    """Audit losses with and without a control."""
    options = {"split": COINS, "claim": CLAIM, **options}
    return auditor.audit(scored(mu, 1, planted), control=control, **options)


def test_a_claim_whose_control_is_not_refuted_stays_open(planted):
    """The verdict is inconclusive, in one sentence, and the check warns; only a refuted claim stays refuted."""
    blind = scored(0.0, 2, planted)
    result = judged(planted, 0.0, blind)
    assert judged(planted, 0.0).verdict == "not_refuted"
    assert (result.verdict, result.comparisons[0].reason) == ("inconclusive", ALIKE)
    check = result.check("control")
    assert check.status == "warn"
    assert check.message.startswith(ALIKE)
    assert judged(planted, 4.0, blind).verdict == "refuted"


@pytest.mark.parametrize(("mu", "verdict"), [(0.0, "not_refuted"), (4.0, "refuted")])
def test_a_control_that_is_refuted_leaves_verdict_and_numbers(planted, mu, verdict):
    """It adds a check and a sentence to the reason, and changes nothing else."""
    plain, result = judged(planted, mu), judged(planted, mu, scored(4.0, 3, planted))
    assert (plain.verdict, result.verdict) == (verdict, verdict)
    assert result.estimates == plain.estimates
    assert [check for check in result.checks if check.name != "control"] == list(plain.checks)
    assert result.check("control").status == "ok"
    shown = "A training without noise is refuted by the same canaries" in result.comparisons[0].reason
    assert shown == (verdict == "not_refuted")
    assert "control" not in plain.provenance["choices"]


def test_bad_controls_are_refused(planted):
    """Other sizes, other coins, the audited losses, no claim, no declared split, or no losses."""
    good, other = scored(4.0, 3, planted), own_feature(np.zeros((2, 1)), size=400, seed=1)
    turned = Canaries(None, None, planted.id, ~planted.member)
    swapped = Canaries(None, None, planted.id, np.roll(planted.member, 1))
    few = own_feature(np.zeros((2, 1)), size=40, seed=0)
    cases = {
        "control must hold the audited records, ": {"control": scored(4.0, 3, few)},
        "control must hold the audited records": {"control": scored(4.0, 3, turned)},
        "control must hold the audited records in": {"control": scored(4.0, 3, swapped)},
        "control must hold": {"control": scored(4.0, 3, other)},
        "control losses are the audited losses themselves": {"control": scored(0.0, 1, planted)},
        "claim must be given with control, .* got None": {"claim": None},
        "split must be given with control, .* got UnknownSplit": {"split": auditor.UnknownSplit()},
        "control must be": {"control": [1.0, 2.0]},
    }
    for words, changed in cases.items():
        with pytest.raises(InputError, match=words):
            judged(planted, 0.0, **{"control": good, **changed})


# --- Plan and command line -----------------------------------------------------------------------------


def test_the_plan_takes_the_attack_from_the_control(planted):
    """It assumes normal losses of the same AUC; of canaries that show nothing no number suffices."""
    plan = auditor.records_needed(claim=CLAIM, split=COINS, control=scored(2.0, 3, planted))
    assert plan.attack.startswith("normal losses, mu = ")
    assert abs(float(plan.attack.split()[-1]) - 2) < 0.4
    none = auditor.records_needed(claim=CLAIM, split=COINS, control=scored(0.0, 3, planted))
    assert (none.n_member, f"{none.reason}.") == (None, ALIKE)
    perfect = auditor.records_needed(claim=CLAIM, split=COINS, control=scored(99.0, 3, planted))
    assert perfect == auditor.records_needed(claim=CLAIM, split=COINS)
    with pytest.raises(InputError, match="attack must be left out with control"):
        auditor.records_needed(claim=CLAIM, split=COINS, attack="gaussian:1", control=scored(2.0, 3, planted))


def test_the_commands_take_a_control(planted, tmp_path, monkeypatch, capsys):
    """``audit`` judges with it, ``power`` plans with it, and both name a bad one."""
    monkeypatch.chdir(tmp_path)
    for name, mu, seed in (("losses", 0.0, 1), ("blind", 0.0, 2), ("clear", 4.0, 3)):
        losses = scored(mu, seed, planted)
        values, members = np.concatenate([losses.member, losses.nonmember]), np.arange(400) < losses.n_member
        pd.DataFrame({"loss": values, "member": members.astype(int)}).to_csv(f"{name}.csv", index=False)
    claim = ("--split", "bernoulli:0.5", "--claim-epsilon", 1, "--claim-delta", 1e-5)
    for name, code, verdict in (("blind", 3, "inconclusive"), ("clear", 0, "not_refuted")):
        control = ("--control", f"{name}.csv")
        assert run("audit", "losses.csv", *claim, *control, "--quiet", "--json", "r.json") == code
        assert auditor.read_result("r.json").verdict == verdict
        assert run("power", *claim, *control) == code
    assert "tell nothing apart" in capsys.readouterr().out
    assert "claim must be given" in refused(capsys, "audit", "losses.csv", "--control", "clear.csv")
    assert "nope.csv" in refused(capsys, "power", *claim, "--control", "nope.csv")


def test_the_command_makes_them(frame, tmp_path, monkeypatch, capsys):
    """As the function does with this seed, with a line on the columns or on encoders."""
    monkeypatch.chdir(tmp_path)
    frame.assign(ill=[0, 1, 1]).to_csv("train.csv", index=False)
    about = ("canaries", "train.csv", "--label", "ill", "--size", 3, "--seed", 4, "--overwrite")
    for more, column, words in (
        ((), None, "Add the columns canary-..."),
        (("--own-column", "job,ward"), ["job", "ward"], "Fit encoders with all canaries, or with none"),
    ):
        assert run(*about, "--kind", "own-feature", *more, "--out", "c.csv") == 0
        assert words in capsys.readouterr().out
        expected = own_feature(
            pd.read_csv("train.csv").drop(columns="ill"), [0, 1, 1], size=3, column=column, seed=4
        )
        found = pd.read_csv("c.csv")
        pd.testing.assert_frame_equal(
            found.drop(columns=["id", "ill", "member"]), expected.features, check_dtype=False
        )
        assert found["member"].tolist() == expected.member.tolist()
    assert "--own-column goes with --kind own-feature" in refused(
        capsys, *about, "--own-column", "job", "--out", "c.csv"
    )
