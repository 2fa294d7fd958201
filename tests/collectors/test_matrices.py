"""Features of any kind as the dense numbers a network takes, and what cannot be numbers."""

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from scipy import sparse

from auditor.collectors.base import Records, column_array, matrix

CITIES = pd.DataFrame({"a": [1, 2], "city": ["Rome", "Oslo"]})
TABLE = [[1.0, 2.0], [3.0, 4.0]]


def of(features):
    """Records that begin at row 10 of their table."""
    return Records("member", features, np.zeros(2), 10)


def polars_frame(rows):
    """A polars table."""
    return pytest.importorskip("polars").DataFrame(rows, schema=["a", "b"], orient="row")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(
    "form",
    [
        list,
        np.array,
        lambda rows: np.array(rows, dtype=object),
        lambda rows: np.asfortranarray(np.array(rows, dtype=np.uint8)),
        sparse.csr_matrix,
        pd.DataFrame,
        lambda rows: pd.DataFrame(rows, columns=["a", "b"]).astype({"a": "Int64", "b": "float32"}),
        lambda rows: pd.DataFrame(rows, columns=["a", "b"]).astype({"a": int, "b": "category"}),
        lambda rows: pd.DataFrame({"v": [np.array(row) for row in rows]}),
        lambda rows: pd.DataFrame({"v": [row[:1] for row in rows], "w": [row[1] for row in rows]}),
        polars_frame,
    ],
)
def test_every_form_of_a_table_is_the_same_matrix(form, dtype):
    """Types, layouts, nullable and category columns of numbers, and columns of vectors, in the type that is wanted."""
    found = matrix(of(form(TABLE)), dtype=dtype)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, TABLE)


def test_missing_numbers_are_nan():
    """None and the missing values of pandas are the NaN that a network may or may not take."""
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [None, 2.0]})
    np.testing.assert_array_equal(matrix(of(frame), dtype=np.float64), [[1, np.nan], [np.nan, 2]])
    np.testing.assert_array_equal(
        matrix(of([[1, None], [None, 2]]), dtype=np.float64), [[1, np.nan], [np.nan, 2]]
    )


def test_nothing_is_copied_or_flattened_that_fits():
    """An array in the right type and layout is passed on as it is, and images in one column keep their shape."""
    images = np.arange(24.0).reshape(2, 3, 4)
    found = matrix(of(pd.DataFrame({"image": list(images)})), dtype=np.float32)
    np.testing.assert_array_equal(found, images)
    array = np.array(TABLE)
    assert np.shares_memory(matrix(of(array), dtype=np.float64), array)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (CITIES, r", column 'city', must be numbers for this model, got text \('Rome'\)"),
        (pd.DataFrame({"a": pd.Categorical(["u", "v"])}), r", column 'a', .* numbers .*, got text \('u'\)"),
        (pd.DataFrame({"a": [np.datetime64("2026-01-01")] * 2}), r", column 'a', .* numbers .* datetime64"),
        ([["a", 1]], r" must be numbers for this model, got text \('a'\)"),
        ([{"a": 1}, {"a": 2}], r" must be numbers"),
        (pd.DataFrame({"v": [[1, 2], [3]]}), r", column 'v', must hold vectors of equal length"),
        ([[1, 2], [3]], r" must hold vectors of equal length"),
    ],
)
def test_what_is_no_number_is_one_sentence(features, words):
    """The column, the value and who must fix it are named."""
    with refused(f"^member X{words}"):
        matrix(of(features), dtype=float)


@pytest.mark.parametrize(("value", "row"), [(4.5, 11), (np.nan, 10), (np.inf, 10)])
def test_what_is_no_whole_number_is_one_sentence(value, row):
    """The value and its row are named."""
    features = [[1, 2], [3, value]] if row == 11 else [[1, value]]
    with refused(rf"^member X must be whole numbers .*, got {value} \(first at row {row}, counting"):
        matrix(of(features), dtype=int)


def test_one_column_of_a_table():
    """A column is an array of its own."""
    np.testing.assert_array_equal(column_array(of(CITIES), "a", dtype=np.float32), [1, 2])
    with refused("column 'city', must be numbers"):
        column_array(of(CITIES), "city", dtype=np.float32)
