"""Advice in error sentences: each says what is true, and what it advises works."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from auditor import Losses, MultiLabel, RecordTable, SquaredError, Summary, collect, read_losses
from auditor.collectors.tables.opening import open_groups
from auditor.core.errors import MissingExtraError

RNG = np.random.default_rng(4)
X = RNG.normal(size=(200, 5))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int) + (X[:, 1] > 0.5)
PAIRS = {"members": (X[:100], Y[:100]), "nonmembers": (X[100:], Y[100:])}


def aucs(losses):
    """The chance that a member's loss is below a non-member's."""
    less = losses.member[:, None] < losses.nonmember
    return float((less + 0.5 * (losses.member[:, None] == losses.nonmember)).mean())


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning:sklearn.multiclass")
def test_rows_of_zeros_of_one_vs_rest():
    """An estimator is not sent to logits, which it would refuse; equal shares in such rows are scored."""
    model = OneVsRestClassifier(DecisionTreeClassifier(random_state=0)).fit(*PAIRS["members"])
    # scikit-learn 1.5 divides such a row by its sum, 0.
    with refused(
        r"sum to 1 in each row, got 0 .*pass a function .* \(a row of zeros, as of one-vs-rest, becomes equal|got nan"
    ):
        collect(model, **PAIRS)

    def shares(features):
        p = model.predict_proba(features)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / 3)

    assert aucs(collect(shares, **PAIRS)) > 0.6


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_one_hot_labels(kind):
    """One-hot labels are sent to the class of each record, and several labels to their task."""
    model = RandomForestClassifier(20, random_state=0).fit(*PAIRS["members"])
    hot = {name: (features, kind(np.eye(3)[y])) for name, (features, y) in PAIRS.items()}
    with refused(
        r"one label for each record, got shape \(100, 3\); each row is one-hot: pass np\.argmax\(y, 1\)"
    ):
        collect(model, **hot)
    found = collect(model, **{name: (features, np.argmax(y, 1)) for name, (features, y) in hot.items()})
    np.testing.assert_array_equal(found.member, collect(model, **PAIRS).member)
    several = {
        name: (features, np.column_stack([y > 0, y > 1, y >= 0])) for name, (features, y) in PAIRS.items()
    }
    with refused(r"name the task MultiLabel\(\) if all are 0 or 1"):
        collect(model, **several)
    forest = RandomForestClassifier(20, random_state=0).fit(*several["members"])
    assert collect(forest, **several, task=MultiLabel()).n_member == 100


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_a_fitted_density(wrap):
    """A fitted mixture is not sent to fit; its own losses are audited as it advises."""
    model = wrap(GaussianMixture(20, random_state=0)).fit(X[:100])
    with refused(
        r"must be a classifier, got a fitted \w+ without classes_; .*negative log-densities -model.score_samples\(X\) of both groups"
    ):
        collect(model, **PAIRS)
    losses = Losses(member=-model.score_samples(X[:100]), nonmember=-model.score_samples(X[100:]))
    assert aucs(losses) > 0.6
    with refused("must be fitted, got GaussianMixture without classes_; call fit first"):
        collect(GaussianMixture(2), **PAIRS)


@pytest.mark.parametrize("task", [None, SquaredError()])
def test_a_search_that_keeps_no_model(task):
    """A search with refit=False is said to keep no model, whatever the task; its best estimator fitted is scored."""
    search = GridSearchCV(
        RandomForestClassifier(20, random_state=0), {"max_depth": [2, None]}, refit=False, cv=2
    )
    search.fit(*PAIRS["members"])
    with refused(
        r"got GridSearchCV with refit=False, which keeps none; search with refit=True, or fit sklearn"
    ):
        collect(search, **PAIRS, task=task)
    best = clone(search.estimator).set_params(**search.best_params_).fit(*PAIRS["members"])
    again = clone(search).set_params(refit=True).fit(*PAIRS["members"])
    np.testing.assert_array_equal(collect(best, **PAIRS).member, collect(again, **PAIRS).member)


def test_losses_in_a_column():
    """Losses of shape (n, 1) hold a value for each record: they are to be flattened."""
    one, other = RNG.normal(size=(9, 1)), RNG.normal(size=(9, 1))
    with refused(r"member losses must be one-dimensional, got shape \(9, 1\); flatten it with np\.ravel"):
        Losses(member=one, nonmember=other)
    assert Losses(member=np.ravel(one), nonmember=np.ravel(other)).n_member == 9
    with refused(r"got shape \(9, 2\); give one value for each record"):
        Losses(member=np.ones((9, 2)), nonmember=other)


def table(n=40):
    """Losses with their membership and site."""
    return pd.DataFrame(
        {"loss": RNG.normal(size=n), "member": [0, 1] * (n // 2), "site": ["a", "b", "c", "d"] * (n // 4)}
    )


def test_folders_of_partitions(tmp_path):
    """Folders that Hive and Spark write are read with the columns that their names hold, by all readers."""
    frame = table()
    frame.to_parquet(tmp_path / "hive", partition_cols=["site"])
    found = read_losses(tmp_path / "hive", group_column="site")
    assert sorted(found.member) == sorted(frame.loss[frame.member == 1])
    for site, loss in zip(found.group.member, found.member, strict=True):
        assert frame.site[frame.loss == loss].tolist() == [site]
    assert Summary.from_files([tmp_path / "hive"]).n_member == 20
    (source,) = open_groups(records=RecordTable(tmp_path / "hive", features=["loss", "site"]), task=None)
    assert len(source) == 40
    assert set(source.read(0, 40).records.features["site"]) == set("abcd")
    (tmp_path / "empty" / "site=a").mkdir(parents=True)
    with refused("empty"):
        read_losses(tmp_path / "empty")


@pytest.mark.parametrize("name", ["sep=,", '"sep=;"', "sep=|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_separator_that_a_spreadsheet_writes_first(tmp_path, name, ending):
    """A first line that names the separator is read as that, and rows are counted behind it."""
    mark, path = name.strip('"')[-1], tmp_path / "sep.csv"
    rows = ["loss,member", "1.5,1", "2,0", "0.5,1", "3,0"]
    path.write_text(
        ending.join([name, *rows, ""]).replace(",", mark) if mark != "," else ending.join([name, *rows, ""]),
        newline="",
    )
    found = read_losses(path)
    assert (found.member.tolist(), found.nonmember.tolist()) == ([1.5, 0.5], [2.0, 3.0])
    path.write_text(path.read_text() + f"4{mark}0{mark}1\n", newline="")
    with refused(r"must have 2 fields in each row, got 3 in row 4, counting from 0"):
        read_losses(path)


@pytest.mark.parametrize("address", ["gs://bucket/losses.parquet", "hf://datasets/a/b/losses.parquet"])
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_names_the_package_that_reads_it(monkeypatch, address, kind):
    """Without fsspec the extra is named, and without the package of a file system that package."""
    packages = {"gs": "gcsfs", "hf": "huggingface_hub"}
    for name in packages.values():
        monkeypatch.setitem(sys.modules, name, None)
    words = rf"^reading '{address}' needs a package of its file system: .*{packages[address[:2]]}.*\.$"
    if importlib.util.find_spec("fsspec") is None:
        words = r"^reading from an address needs fsspec, .* pip install 'privacy-auditor\[remote\]'"
    with pytest.raises(MissingExtraError, match=words):
        read_losses(kind(address))


def test_a_summary_reads_an_address():
    """A file at an address is counted there, and the summary is audited as advised."""
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/losses.parquet", "wb") as file:
        table().to_parquet(file)
    assert Summary.from_files(["memory://bucket/losses.parquet"]).losses.n_member == 20


def test_what_a_tokenizer_returns_is_no_table():
    """The output of a tokenizer of transformers has columns and not records: one array of it is."""
    from collections import UserDict

    ids = np.arange(200).reshape(100, 2)
    encoded = UserDict(input_ids=ids, attention_mask=np.ones_like(ids))
    with refused(
        r"member X must be an array, .*, got UserDict; pass one array of it as X, such as 'input_ids'"
    ):
        collect(
            lambda found: np.full(len(found), 0.5),
            members=(encoded, Y[:100] > 0),
            nonmembers=(encoded, Y[100:] > 0),
        )
    pairs = {"members": (encoded["input_ids"], Y[:100] > 0), "nonmembers": (ids, Y[100:] > 0)}
    assert collect(lambda found: np.full(len(found), 0.5), **pairs, classes=[False, True]).n_member == 100
