"""Train an over-fitted and a regularised classifier on UCI Adult and write their losses for `auditor audit`.

Usage: python reports/sample/adult.py ADULT_TRAIN ADULT_TEST FOLDER

ADULT_TRAIN and ADULT_TEST are adult.data and adult.test of the UCI Machine Learning Repository (data set "Adult"),
comma-separated and without a header. Two files appear in FOLDER: adult-overfitted.parquet, adult-regularised.parquet.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import auditor

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]
NUMERIC = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


def read(path: str) -> tuple[pd.DataFrame, pd.Series]:
    """Read one file; the labels of the test file end in a dot, and its first line may be a comment."""
    table = pd.read_csv(path, names=COLUMNS, skipinitialspace=True, comment="|").dropna(subset=["income"])
    return table.drop(columns="income"), table["income"].str.rstrip(".")


def models(categories: list[str]) -> Iterator[tuple[str, Pipeline]]:
    """The two classifiers, each with its own preparation of the columns."""
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    boosted = HistGradientBoostingClassifier(
        learning_rate=0.3,
        max_iter=600,
        max_leaf_nodes=127,
        min_samples_leaf=2,
        early_stopping=False,
        random_state=0,
    )
    yield (
        "overfitted",
        make_pipeline(make_column_transformer((codes, categories), remainder="passthrough"), boosted),
    )
    dummies = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((dummies, categories), (StandardScaler(), NUMERIC))
    yield "regularised", make_pipeline(columns, LogisticRegression(C=0.1, max_iter=2000))


def main(train: str, test: str, folder: str) -> None:
    """Train both models and write a table of losses for each."""
    (x_in, y_in), (x_out, y_out) = read(train), read(test)
    for name, model in models([column for column in x_in.columns if column not in NUMERIC]):
        model.fit(x_in, y_in)
        losses = auditor.collect(model, members=(x_in, y_in), nonmembers=(x_out, y_out))
        table = pd.DataFrame(
            {
                "loss": np.concatenate([losses.member, losses.nonmember]),
                "member": np.repeat([1, 0], [losses.n_member, losses.n_nonmember]),
                "group": pd.concat([y_in, y_out]).to_numpy(),
            }
        )
        path = Path(folder) / f"adult-{name}.parquet"
        table.to_parquet(path, index=False)
        print(
            f"{path}: accuracy {model.score(x_in, y_in):.3f} on members, {model.score(x_out, y_out):.3f} on others"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
