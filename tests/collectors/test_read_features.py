"""Features are read from the file of the losses, in the order of the losses."""

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused, write

from auditor.collectors import read_feature_pair, read_features, read_losses
from auditor.records import Features, fingerprints

FRAME = pd.DataFrame(
    {
        "loss": [0.1, 0.9, 0.2, 0.7, 0.5],
        "member": [1, 0, 1, 0, 1],
        "age": [31.0, 45.0, np.nan, 52.0, 19.0],
        "job": ["cook", "judge", "", "cook", "007"],
        "zip": ["01", "2", "3", "4", "5"],
    }
)


@pytest.fixture(params=["csv", "parquet", "npz"])
def path(request, tmp_path):
    """The same table in each kind of file."""
    text = {name: FRAME[name].to_numpy(str) for name in ("job", "zip")}
    return write(tmp_path / f"losses.{request.param}", {**FRAME, **text} if request.param == "npz" else FRAME)


def test_every_kind_of_file_gives_the_same_content(path):
    """Numbers, gaps and text have the fingerprints of the frame they came from, in the order of the losses."""
    features = read_features(path, columns=["age", "job", "age"])
    features.check_rows(read_losses(path))
    frame = FRAME[["age", "job"]].replace({"job": {"": None}})
    expected = fingerprints(Features(frame[FRAME["member"] == 1], frame[FRAME["member"] == 0]))
    found = fingerprints(features)
    np.testing.assert_array_equal(found.member, expected.member)
    np.testing.assert_array_equal(found.nonmember, expected.nonmember)


def test_two_files_are_read_as_two_groups(tmp_path):
    """One file for each group gives each group its rows."""
    for name, rows in (("in", FRAME[:2]), ("out", FRAME[2:])):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    features = read_feature_pair(tmp_path / "in.csv", tmp_path / "out.csv", columns=["age", "job"])
    assert (features.n_member, features.n_nonmember) == (2, 3)
    assert features.tables[1].column(1).tolist() == [None, "cook", "007"]
    with refused(r"^columns must not name 'loss'"):
        read_feature_pair(tmp_path / "in.csv", tmp_path / "out.csv", columns=["loss"], not_features=["loss"])


@pytest.mark.parametrize(
    ("columns", "others", "words"),
    [
        (["age", "loss"], ["loss"], r"^columns must not name 'loss' .* makes any leak look like a shift"),
        (["member"], [], "^columns must not name 'member' in file"),
        (["zip", "age"], ("loss", "zip"), "^columns must not name 'zip'"),
        (["age", " "], [], "^column ' ' is not in"),
        (["age"], "loss", "^not_features must be a list of names of columns, got 'loss'"),
        (["id"], ["id"], "^column 'id' is not in"),
        ("age", [], "^columns must be a list of names of columns, got 'age'"),
        ([], [], "^columns must be a list of names"),
        ([3], [], "^columns must be the name of a column, got 3"),
        (["ag"], [], r"^column 'ag' is not in .* did you mean 'age'\?"),
    ],
)
def test_columns_that_are_no_features_are_refused(path, columns, others, words):
    """Losses, membership and what else has a part to play are no features, in one sentence."""
    with refused(words) as error:
        read_features(path, columns=columns, not_features=others)
    assert "\n" not in str(error.value)
