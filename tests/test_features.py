"""Features of any kind become tables, and bad ones one sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from auditor import InputError, Losses
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
    """Rows are taken at the positions asked for, in any form of table."""
    table = Features(values, values).tables[0]
    whole, part = table.column(0), table.rows(np.array([2, 0]))
    assert part.n == 2
    assert part.column(0).tolist() == whole[[2, 0]].tolist()


def test_rows_must_match_the_losses():
    """One sentence says which group has how many rows of features for how many losses."""
    losses = Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4, 0.5])
    Features([1, 2], [3, 4, 5]).check_rows(losses)
    with pytest.raises(InputError, match=r"^nonmember features must have one row .* got 2 rows for 3 losses"):
        Features([1, 2], [3, 4]).check_rows(losses)


@pytest.mark.parametrize(
    ("member", "nonmember", "words"),
    [
        (np.ones((2, 2)), np.ones((2, 3)), "same columns, got 2 and 3"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "same columns, got 'a', 'b'"),
        ("text", "text", "got str"),
        (5, 5, "one row for each record"),
        ([[1], [1, 2]], [[1]], "got rows of different lengths"),
        (np.ones(2, dtype=complex), np.ones(2), "one row for each record"),
        (np.ma.array([1, 2], mask=[0, 1]), [1, 2], "got masked values"),
        ({"a": [1, 2], "b": [1]}, {"a": [1], "b": [1]}, "same length: member a has 2, member b has 1"),
        ({"a": [[1, 2]]}, {"a": [[1, 2]]}, "one-dimensional columns"),
    ],
)
def test_what_is_no_table_is_one_sentence(member, nonmember, words):
    """Whatever cannot be used is refused with the reason."""
    with pytest.raises(InputError, match=words) as caught:
        Features(member, nonmember)
    assert str(caught.value).count(". ") == 0
