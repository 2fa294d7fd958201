"""A value that a model refuses is found among the features, by row and column."""

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused
from scipy import sparse

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


MISSING = [np.nan, None, pd.NA, pd.NaT, np.float32("nan")]
EARLY = np.where(np.arange(24).reshape(6, 4) == 14, np.nan, 0.0)
EARLY[4, 0] = np.nan
LARGE = np.array([[0, 1e39]])


@pytest.mark.parametrize(
    ("features", "reason", "place"),
    [
        *((table(1, 2, value), NAN, "2, counting from 0, column 'b'") for value in MISSING),
        *(
            (make(EARLY), NAN, "3, counting from 0, column 2")
            for make in (np.asarray, np.ndarray.tolist, pd.DataFrame)
        ),
        (np.array([[np.nan, 0], [0, -np.inf]]), INFINITE, "1, counting from 0, column 1"),
        (LARGE, INFINITE, None),  # 1e39 is finite, and beyond the largest float32 of about 3.4e38
        (LARGE, INFINITE.replace("64", "32"), "0, counting from 0, column 1"),
        (table(1, 2, None), "the server room is on fire", None),
        (LARGE, NAN, None),
        (["a text", "another"], NAN, None),
        (sparse.csr_matrix([[np.nan]]), NAN, None),
    ],
)
def test_what_the_model_speaks_of_has_a_place(features, reason, place):
    """The earliest value of that kind is named by row and column, and nothing that the model did not speak of."""
    assert bad_value(of(features), reason=reason) == (place and f"row 10{place}")


def test_text_that_no_number_spells_is_found():
    """The text that scikit-learn quotes is named by row and column, and not the category before it."""
    frame = pd.DataFrame({"job": ["a", "b"] * (N // 2), "age": np.arange(N) * 1.0})
    encoder = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, Y)
    broken = frame.astype({"age": object})
    broken.loc[7, "age"] = "seven. Or so"
    with refused(r"'seven\. Or so' \(first at row 7, counting from 0, column 'age'\)"):
        collect(model, members=(frame, Y), nonmembers=(broken, Y))
