"""UCI Adult: 48,842 people of the 1994 census, and whether each earned more than 50,000 dollars.

Nothing is downloaded. Get the two files from the UCI Machine Learning Repository (data set "Adult", files
``adult.data`` and ``adult.test``) and pass their folder to `load`. Without them, `stand_in` makes a table with the same
columns and a label that can be learnt; it says in ``source`` that it is not Adult.

The encoding uses fixed public numbers (category lists of ``adult.names`` and round upper limits), nothing counted in the
data: a differential privacy guarantee for the training then also holds for what comes before it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor

__all__ = ["CATEGORIES", "COLUMNS", "LIMITS", "WHERE", "Adult", "load", "stand_in"]

WHERE = (
    'get adult.data and adult.test from the UCI Machine Learning Repository (data set "Adult") '
    "and pass their folder"
)
# Largest values, rounded up, of the numeric columns; "log" columns are scaled as log(1 + x) / log(1 + limit).
LIMITS = {
    "age": 100.0,
    "fnlwgt": 1.5e6,
    "education-num": 16.0,
    "capital-gain": 1e5,
    "capital-loss": 1e4,
    "hours-per-week": 100.0,
}
LOG = ("capital-gain", "capital-loss")
# The categories of adult.names, each with "?" (unknown) where the data have it.
CATEGORIES = {
    "workclass": (
        "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"
    ),
    "education": (
        "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters "
        "Preschool Prof-school Some-college"
    ),
    "marital-status": (
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed"
    ),
    "occupation": (
        "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
        "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
        "Transport-moving"
    ),
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "native-country": (
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany "
        "Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan "
        "Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland "
        "South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"
    ),
}
CATEGORIES = {column: tuple(words.split()) for column, words in CATEGORIES.items()}
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
LABELS = {"<=50K": 0, ">50K": 1}
# Of the stand-in: how many have gains or losses, and from where gains count as large.
SHARE_WITH_GAINS, SHARE_WITH_LOSSES, LARGE_GAIN = 0.08, 0.05, 5_000


@dataclass(frozen=True)
class Adult:
    """Adult (or its stand-in) as arrays for training and as tables for other encodings.

    Attributes:
        x_train: Shape (n, 108), float32 between 0 and 1: six scaled numbers, then the categories one-hot.
        y_train: Shape (n,), 1 where the income is above 50,000 dollars.
        x_test: As ``x_train``, for those who were not in the training set.
        y_test: As ``y_train``.
        columns: The name of each column of ``x_train``; a category's is ``column=value``.
        source: "UCI Adult" or "stand-in, not Adult".
        ages_train: Shape (n,), years.
        raw_train: The table before encoding, with the columns of ``COLUMNS``.
        raw_test: As ``raw_train``.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    columns: tuple[str, ...]
    source: str
    ages_train: np.ndarray
    raw_train: pd.DataFrame
    raw_test: pd.DataFrame


def load(folder: str | Path) -> Adult:
    """Read UCI's two files from a folder.

    Args:
        folder: Holds ``adult.data`` and ``adult.test``, or ``adult-train.csv`` and ``adult-test.csv``; with or without
            a header; labels may end in a dot, as in ``adult.test``; ``?`` (unknown) is a category of its own.

    Raises:
        auditor.InputError: If a file is missing or is not Adult; the sentence says where to get it.
    """
    train, test = (
        _read(_find(Path(folder), names))
        for names in (("adult.data", "adult-train.csv"), ("adult.test", "adult-test.csv"))
    )
    return _encoded(train, test, source="UCI Adult")


def stand_in(*, n_train: int = 1_500, n_test: int = 750, seed: int = 0) -> Adult:
    """Make a table with Adult's columns whose label depends on some of them: for trying things out, not Adult.

    Args:
        n_train: Training records.
        n_test: Records that are not in the training set, from the same population.
        seed: The same seed makes the same table.
    """
    table = _invented(np.random.default_rng(seed), size=n_train + n_test)
    return _encoded(table.iloc[:n_train], table.iloc[n_train:], source="stand-in, not Adult")


def _find(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise auditor.InputError(
        f"folder must hold Adult's file {names[0]} (or {names[1]}), got {str(folder)!r} without it; {WHERE}."
    )


def _read(path: Path) -> pd.DataFrame:
    """Read one file and check that it is Adult's."""
    table = pd.read_csv(
        path, header=None, comment="|", skipinitialspace=True, dtype=str, keep_default_na=False
    )
    if table.shape[1] != len(COLUMNS):
        raise auditor.InputError(
            f"{path.name} must have Adult's {len(COLUMNS)} columns, got {table.shape[1]}; {WHERE}."
        )
    table.columns = list(COLUMNS)
    if table["age"].iloc[0].strip().lower() == "age":
        table = table.iloc[1:]
    table = table.apply(lambda column: column.str.strip()).reset_index(drop=True)
    table["income"] = table["income"].str.removesuffix(".")
    for column in LIMITS:
        numbers = pd.to_numeric(table[column], errors="coerce")
        _all_known(path, column, table[column], known=numbers.notna(), wanted="a number")
        table[column] = numbers.astype(float)
    for column, words in {**CATEGORIES, "income": tuple(LABELS)}.items():
        _all_known(
            path, column, table[column], known=table[column].isin(words), wanted="a value of adult.names"
        )
    return table


def _all_known(
    path: Path, column: str, values: "pd.Series[Any]", *, known: "pd.Series[bool]", wanted: str
) -> None:
    if not known.all():
        row = int(np.flatnonzero(~known.to_numpy())[0])
        raise auditor.InputError(
            f"{path.name} must have {wanted} in column {column}, got {values.iloc[row]!r} in record {row + 1}; {WHERE}."
        )


def _encoded(train: pd.DataFrame, test: pd.DataFrame, *, source: str) -> Adult:
    train, test = train.reset_index(drop=True), test.reset_index(drop=True)
    columns = (*LIMITS, *(f"{column}={word}" for column, words in CATEGORIES.items() for word in words))
    ages = train["age"].to_numpy(float)
    ages.flags.writeable = False
    x_train, y_train = _arrays(train)
    x_test, y_test = _arrays(test)
    return Adult(x_train, y_train, x_test, y_test, columns, source, ages, train, test)


def _arrays(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the features, between 0 and 1, and the label."""
    parts = []
    for column, limit in LIMITS.items():
        values = table[column].to_numpy(float)
        scaled = np.log1p(values) / np.log1p(limit) if column in LOG else values / limit
        parts.append(np.clip(scaled, 0.0, 1.0)[:, None])
    for column, words in CATEGORIES.items():
        parts.append(table[column].to_numpy(object)[:, None] == np.array(words, dtype=object)[None, :])
    x = np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe")
    y = table["income"].map(LABELS).to_numpy(int)
    for array in (x, y):
        array.flags.writeable = False
    return x, y


def _invented(rng: np.random.Generator, *, size: int) -> pd.DataFrame:
    """Return invented people; about a quarter earn more, mostly the older, schooled and married."""
    table: dict[str, Any] = {
        "age": np.clip(np.round(17 + rng.gamma(2.6, 8.3, size)), 17, 90),
        "fnlwgt": np.round(rng.lognormal(12.0, 0.5, size)),
        "education-num": np.clip(np.round(rng.normal(10.1, 2.6, size)), 1, 16),
        "hours-per-week": np.clip(np.round(rng.normal(40.4, 12.0, size)), 1, 99),
        "capital-gain": np.where(
            rng.random(size) < SHARE_WITH_GAINS, np.round(rng.lognormal(8.6, 1.0, size)), 0.0
        ),
        "capital-loss": np.where(
            rng.random(size) < SHARE_WITH_LOSSES, np.round(rng.normal(1870, 370, size)), 0.0
        ),
    }
    for column, words in CATEGORIES.items():
        shares = 1.0 / (1.0 + rng.permutation(len(words))) ** 1.3
        table[column] = rng.choice(np.array(words, dtype=object), size, p=shares / shares.sum())
    score = (
        0.045 * (table["age"] - 38)
        + 0.40 * (table["education-num"] - 10)
        + 0.03 * (table["hours-per-week"] - 40)
        + 1.6 * (table["marital-status"] == "Married-civ-spouse")
        + 1.5 * (table["capital-gain"] > LARGE_GAIN)
        - 1.9
    )
    table["income"] = np.where(score + rng.logistic(size=size) > 0, ">50K", "<=50K").astype(object)
    return pd.DataFrame(table)[list(COLUMNS)]
