"""What a model complains of is found among the features, by row and column."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor import InputError
from auditor.collectors import collect
from auditor.collectors.base import Records, bad_value

sklearn = pytest.importorskip("sklearn")

from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

NAN = "Input X contains NaN."
INFINITE = "Input X contains infinity or a value too large for dtype('float64')."
N = 40
Y = np.arange(N) % 2


def of(features):
    """Records that begin at row 100 of their table."""
    return Records(
        "member", features, np.zeros(len(features) if isinstance(features, list) else features.shape[0]), 100
    )


def table(column, row, value):
    """Four rows of three numbers, one of them changed."""
    frame = pd.DataFrame(np.ones((4, 3)), columns=list("abc")).astype(object)
    frame.iloc[row, column] = value
    return frame


@pytest.mark.parametrize("value", [np.nan, None, pd.NA, pd.NaT, np.float32("nan")])
def test_a_missing_value_of_any_kind_has_a_place(value):
    """NaN, None and what pandas has for them are found by row and name of the column."""
    assert bad_value(of(table(1, 2, value)), reason=NAN) == "row 102, counting from 0, column 'b'"


@pytest.mark.parametrize(
    "make", [np.asarray, np.ndarray.tolist, sparse.csr_matrix, pd.DataFrame, sparse.coo_array]
)
def test_every_kind_of_table_has_rows_and_columns(make):
    """Of two bad values the one in the earlier row is named, whatever holds them; a column without a name by number."""
    x = np.zeros((6, 4))
    x[4, 0], x[3, 2] = np.nan, np.nan
    features = make(x)
    named = "'2'" if isinstance(features, pd.DataFrame) else "2"
    assert bad_value(of(features), reason=NAN) == f"row 103, counting from 0, column {named}"


def test_infinity_is_told_from_a_missing_value():
    """A model that speaks of infinity alone is shown the infinite value, not a NaN before it that it can take."""
    x = np.zeros((6, 2))
    x[1, 0], x[4, 1] = np.nan, -np.inf
    assert bad_value(of(x), reason=INFINITE) == "row 104, counting from 0, column 1"


def test_a_number_too_large_for_float32_is_found():
    """1e39 is finite, and beyond the largest float32 of about 3.4e38."""
    x = np.zeros((6, 2))
    x[2, 1] = 1e39
    assert bad_value(of(x), reason=INFINITE) is None
    assert bad_value(of(x), reason=INFINITE.replace("64", "32")) == "row 102, counting from 0, column 1"


def test_nothing_is_named_that_the_model_did_not_speak_of():
    """A NaN is no answer to another complaint, and neither is a table without any."""
    assert bad_value(of(table(1, 2, None)), reason="the server room is on fire") is None
    assert bad_value(of(np.zeros((3, 2))), reason=NAN) is None
    assert bad_value(of(["a text", "another"]), reason=NAN) is None


def test_text_that_no_number_spells_is_found():
    """The text that scikit-learn quotes is named by row and column, and not the category before it."""
    frame = pd.DataFrame({"job": ["a", "b"] * (N // 2), "age": np.arange(N) * 1.0})
    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, Y)
    broken = frame.astype({"age": object})
    broken.loc[7, "age"] = "seven. Or so"
    with pytest.raises(
        InputError, match=r"'seven\. Or so' \(first at row 7, counting from 0, column 'age'\)"
    ):
        collect(model, members=(frame, Y), nonmembers=(broken, Y))


def test_a_long_complaint_is_cut_at_a_word():
    """What a model says at length ends after a whole word, and says that it was cut."""

    class Talker(LogisticRegression):
        def predict_proba(self, _x):
            raise ValueError("longwinded " * 100)

        decision_function = predict_proba

    x = np.arange(N * 1.0)[:, None]
    with pytest.raises(InputError, match=r"refused it: (longwinded )+\.\.\.\.?$"):
        collect(Talker().fit(x, Y), members=(x, Y), nonmembers=(x, Y))
