"""The table that says more about the results of a comparison."""

import pandas as pd
import pytest

from auditor import InputError, Utility
from auditor.comparison import read_runs, with_table


@pytest.fixture
def runs(six):
    """Six audits by model and number."""
    return read_runs(six)


def test_every_kind_of_table_says_the_same(runs, tmp_path):
    """A CSV, a Parquet file, a DataFrame and a dictionary of the same cells give the same comparison."""
    columns = {
        "result": ["private1", "3"],
        "utility": [0.5, 0.25],
        "strategy": ["DP, 1", "café"],
        "category": ["dp", None],
    }
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for about in (tmp_path / "a.csv", str(tmp_path / "a.parquet"), frame, columns):
        found = with_table(runs, about)
        assert found[0].utility == Utility(0.5, "test accuracy")
        assert [found[0].strategy, found[2].strategy] == ["DP, 1", "café"]
        assert [run.category for run in found[:3]] == ["dp", None, None]
        assert found[1] == runs[1]


def test_an_empty_cell_leaves_what_the_result_says(runs):
    """Where the table is silent the result's own words stand."""
    about = pd.DataFrame(
        {"result": [1, 2], "utility": [None, 0.9], "strategy": ["new", ""], "model": [" ", "named"]}
    )
    found = with_table(runs, about)
    assert found[0].utility.value == runs[0].utility.value
    assert (found[0].strategy, found[0].model) == ("new", "private1")
    assert (found[1].utility.value, found[1].strategy, found[1].model) == (0.9, "plain", "named")


def test_the_name_and_direction_of_a_utility_can_be_given(runs):
    """The utility's name and whether larger is better come from the table, from numbers, truth values or words."""
    for no, yes in ((0, 1), (False, True), ("no", "yes"), ("False", "TRUE"), (0.0, 1.0)):
        about = {
            "result": [1, 2],
            "utility": [3.0, 4.0],
            "utility_name": ["log loss"] * 2,
            "strategy": [1.0, 0.5],
        }
        found = with_table(runs, pd.DataFrame(about | {"higher_is_better": [no, yes]}))
        assert [run.strategy for run in found[:2]] == ["1", "0.5"]
        assert found[0].utility == Utility(3.0, "log loss", higher_is_better=False)
        assert found[1].utility == Utility(4.0, "log loss", higher_is_better=True)


ONE, TWO = {"result": [1]}, {"utility": [1, 2]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (ONE | {"utilty": [1]}, "'utilty'; did you mean 'utility'?"),
        ({"utility": [1]}, "must have a column 'result'"),
        (ONE, "at least one more of 'utility'"),
        ({"result": [1, "private1"]} | TWO, "names result 1 twice, the second time as 'private1' (row 1"),
        ({"result": [1, "private9"]} | TWO, "got 'private9'; did you mean 'private1'? (row 1"),
        ({"result": [1, None]} | TWO, "got an empty cell (row 1"),
        (ONE | {"utility": ["good"]}, "column 'utility' must be a number, got 'good' (row 0"),
        (ONE | {"utility": ["inf"]}, "column 'utility' must be finite, got inf (row 0"),
        (ONE | {"utility": [1], "higher_is_better": ["maybe"]}, "must hold true or false, got 'maybe'"),
        ({"result": [7], "utility": [1]}, "got 7"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_sentence(runs, columns, words):
    """Each fault is one sentence that names the column, the row and the value."""
    with pytest.raises(InputError) as caught:
        with_table(runs, columns)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_direction_without_a_utility_is_refused(audited):
    """A description of a utility needs one."""
    runs = read_runs([audited(0.1), audited(0.2)])
    with pytest.raises(InputError, match="column 'utility' must hold a number"):
        with_table(runs, {"result": [1], "utility": [None], "higher_is_better": ["yes"]})
