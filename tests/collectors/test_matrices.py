"""Features of any kind as the dense numbers a network takes, and what cannot be numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor import InputError
from auditor.collectors.base import column_array, matrix

TABLE = [[1.0, 2.0], [3.0, 4.0]]


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
    found = matrix(form(TABLE), dtype=dtype, place="member")
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, TABLE)


def test_missing_numbers_are_nan():
    """None and the missing values of pandas are the NaN that a network may or may not take."""
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [None, 2.0]})
    np.testing.assert_array_equal(matrix(frame, dtype=np.float64, place="member"), [[1, np.nan], [np.nan, 2]])
    listed = [[1, None], [None, 2]]
    np.testing.assert_array_equal(
        matrix(listed, dtype=np.float64, place="member"), [[1, np.nan], [np.nan, 2]]
    )


def test_images_in_one_column_keep_their_shape():
    """The only column of a table may hold arrays of any shape."""
    images = np.arange(24.0).reshape(2, 3, 4)
    found = matrix(pd.DataFrame({"image": list(images)}), dtype=np.float32, place="member")
    np.testing.assert_array_equal(found, images)


def test_nothing_is_copied_that_fits():
    """An array in the right type and layout is passed on as it is."""
    array = np.array(TABLE)
    assert np.shares_memory(matrix(array, dtype=np.float64, place="member"), array)


@pytest.mark.parametrize(
    ("features", "dtype", "sentence"),
    [
        (
            pd.DataFrame({"a": [1, 2], "city": ["Rome", "Oslo"]}),
            float,
            r"^member X, column 'city', must be numbers for this model, got text \('Rome'\); the model's own pipeline",
        ),
        (
            pd.DataFrame({"a": pd.Categorical(["u", "v"])}),
            float,
            r"^member X, column 'a', must be numbers for this model, got text \('u'\)",
        ),
        (
            pd.DataFrame({"a": [np.datetime64("2026-01-01")] * 2}),
            float,
            r"column 'a', must be numbers .* datetime64",
        ),
        (np.array([["a", "b"]]), float, r"^member X must be numbers for this model, got text \('a'\)"),
        ([["a", 1]], float, r"^member X must be numbers for this model, got text \('a'\)"),
        ([{"a": 1}, {"a": 2}], float, r"^member X must be numbers"),
        (
            pd.DataFrame({"v": [[1, 2], [3]]}),
            float,
            r"^member X, column 'v', must hold vectors of equal length",
        ),
        ([[1, 2], [3]], float, r"^member X must hold vectors of equal length"),
        (
            [[1, 2], [3, 4.5]],
            int,
            r"^member X must be whole numbers for this model, got 4.5 \(first at row 11, counting",
        ),
        ([[1, np.nan]], int, r"^member X must be whole numbers for this model, got nan \(first at row 10,"),
        ([[1, np.inf]], int, r"^member X must be whole numbers for this model, got inf"),
    ],
)
def test_what_is_no_number_is_one_sentence(features, dtype, sentence):
    """The column, the value, the row and who must mend it are named."""
    with pytest.raises(InputError, match=sentence):
        matrix(features, dtype=dtype, place="member", first_row=10)


def test_one_column_of_a_table():
    """A column is an array of its own."""
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    np.testing.assert_array_equal(column_array(frame, "a", dtype=np.float32, place="member"), [1, 2])
    with pytest.raises(InputError, match="column 'b', must be numbers"):
        column_array(frame, "b", dtype=np.float32, place="member")
