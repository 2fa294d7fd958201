"""Features of any kind become tables, and bad ones one sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor.records import Features


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6.0).reshape(3, 2),
        np.arange(12).reshape(3, 2, 2),
        pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"]}),
        {"a": [1, 2, 3], "b": ["x", "z", "y"]},
        sparse.csr_matrix(np.eye(3)),
        sparse.coo_array(np.eye(3)),
        ["one text", "another", "a third"],
        [[1, "a"], [2, "b"], [3, "c"]],
        [True, False, True],
        pd.Series(["x", "y", "z"]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_every_kind_of_table_is_taken(values):
    """Arrays of any rank, frames, dictionaries, sparse matrices, texts and lists all count their records."""
    features = Features(member=values, nonmember=values)
    assert (features.n_member, features.n_nonmember) == (3, 3)
    assert len(features.names) == len(features.tables[1].names)


def test_columns_of_a_frame_are_matched_by_name():
    """Non-member columns in another order are read in the members' order."""
    member = pd.DataFrame({"age": [1, 2], "job": ["a", "b"]})
    features = Features(member=member, nonmember=member[["job", "age"]])
    assert features.names == ("age", "job")
    assert features.tables[1].column(0).tolist() == [1, 2]
    assert features.tables[1].column(1).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    "values", [np.arange(6.0).reshape(3, 2), sparse.csc_matrix(np.eye(3)), {"a": [4, 5, 6]}]
)
def test_rows_keep_their_order(values):
    """Rows are taken at the positions requested, in any form of table."""
    table = Features(values, values).tables[0]
    whole, part = table.column(0), table.rows(np.array([2, 0]))
    assert part.n == 2
    assert part.column(0).tolist() == whole[[2, 0]].tolist()
