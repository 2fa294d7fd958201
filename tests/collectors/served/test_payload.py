"""Features as JSON: every digit is kept, and what JSON cannot carry is refused by row and column."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from scipy.sparse import csr_matrix

from auditor.collectors.base import Records
from auditor.collectors.served import json_payload, json_text


def of(features, **kwargs):
    """The payload of some features, of records that begin at row 100."""
    n = features.shape[0] if hasattr(features, "shape") else len(features)
    return json_payload(Records("member", features, np.zeros(n), first_row=100), **kwargs)


def texts(payload):
    """The JSON of each record."""
    return [json_text(row) for row in payload.rows]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, np.uint8, np.bool_])
def test_numbers_come_back_as_they_were(kind):
    """Numbers of each type, read back from the JSON, are bit for bit the same."""
    rng = np.random.default_rng(1)
    features = (rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-3, 2, size=(50, 3))).astype(kind)
    found = of(features)
    again = np.array([json.loads(text) for text in texts(found)]).astype(kind)
    np.testing.assert_array_equal(again, features)
    assert found.shape == (3,)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_keeps_the_types_of_its_columns(library):
    """Text, whole numbers, floats and truth values stay what they are, under their names, and missing text is null."""
    frame = pytest.importorskip(library).DataFrame
    assert texts(of(frame({"a": ["x", None]}))) == ['["x"]', "[null]"]
    found = of(frame({"job": ["cook", "judge"], "age": [31, 45], "rate": [0.1, 1.0], "new": [True, False]}))
    assert found.columns == ("job", "age", "rate", "new")
    assert texts(found) == ['["cook",31,0.1,true]', '["judge",45,1.0,false]']
    assert found.text


def test_other_shapes():
    """Sparse rows, images, vectors in cells, texts, mixed rows and pandas' own types are lists of their kind."""
    assert of(csr_matrix(np.eye(2))).rows == [[1.0, 0.0], [0.0, 1.0]]
    assert of(np.zeros((2, 2, 3))).shape == (2, 3)
    assert of(pd.DataFrame({"v": [np.arange(2), np.arange(2)]})).rows == [[[0, 1]], [[0, 1]]]
    assert of(["a", "b"]).rows == ["a", "b"]
    assert of([["a", 1], ["b", 2.5]]).rows == [["a", 1], ["b", 2.5]]
    assert of(np.array(["a", "b"])).text
    table = pd.DataFrame({"a": pd.Categorical(["x", "y"]), "b": pd.array([1, 2], dtype="Int64")})
    assert texts(of(table)) == ['["x",1]', '["y",2]']


def test_columns_name_an_array():
    """Names are given to the columns of an array, and must be as many."""
    assert of(pd.DataFrame(np.zeros((1, 2)), columns=["a", "b"])).objects() == [{"a": 0.0, "b": 0.0}]


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (
            np.array([[0.0, np.inf], [2.0, np.nan]]),
            r"inf \(first at row 100, .*, column 1\); JSON has no infinite",
        ),
        (pd.DataFrame({"v": [[1.0], [np.inf]]}), r"list \(first at row 101, .*, column 'v'\)"),
        (pd.DataFrame({"t": [pd.Timedelta(1)]}), r"Timedelta \(first at row 100, .*, column 't'\)"),
        (pd.DataFrame({"a": [object()]}), r"object \(first at row 100, .*, column 'a'\)"),
        ([b"raw"], "bytes"),
        ([[1, 2], [3]], "rows of different lengths"),
    ],
)
def test_what_json_does_not_have_is_refused_by_row_and_column(features, words):
    """Infinity, durations and objects are named with their place."""
    with refused(rf"^member X must .*{words}"):
        of(features)


@pytest.mark.parametrize(
    ("features", "rows"),
    [
        (np.array([[0.5, 1.0], [2.0, np.nan]]), ["[0.5,1.0]", "[2.0,null]"]),
        (np.array([0.5, np.nan], dtype=np.float32), ["0.5", "null"]),
        (pd.DataFrame({"a": [0.5, np.nan], "b": [1, 2]}), ["[0.5,1]", "[null,2]"]),
        (pd.DataFrame({"a": pd.array([1, None], "Int64")}), ["[1]", "[null]"]),
        (["x", None], ['"x"', "null"]),
        (pd.DataFrame({"v": [[1.0], [np.nan]]}), ["[[1.0]]", "[[null]]"]),
        (
            pd.DataFrame({"t": [pd.Timestamp("2020-01-02 03:04:05"), pd.NaT]}),
            ['["2020-01-02T03:04:05"]', "[null]"],
        ),
        (np.array(["2020-01-02", "NaT"], dtype="datetime64[D]"), ['"2020-01-02"', "null"]),
        (pd.DataFrame({"t": [dt.date(2020, 1, 2)]}), ['["2020-01-02"]']),
        (pd.DataFrame({"d": [Decimal("0.25"), Decimal(3)]}), ["[0.25]", "[3.0]"]),
    ],
)
def test_what_is_missing_is_null_and_times_and_decimals_have_their_usual_form(features, rows):
    """NaN and whatever else stands for missing becomes null, times ISO 8601 text, decimals numbers."""
    assert texts(of(features)) == rows
