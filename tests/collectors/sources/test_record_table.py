"""What a table of records is, before any of it is read."""

import dataclasses

import pandas as pd
import pytest

from auditor import InputError
from auditor.collectors.tables import RecordTable, open_source


def test_the_value_is_frozen_and_does_not_show_its_data():
    """Nobody can change it, and its text holds the names and none of the cells."""
    table = RecordTable(pd.DataFrame({"secret": [123456]}), label="y", features="x")
    assert "123456" not in repr(table)
    assert "label=('y',)" in repr(table)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.label = ("z",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"data": None}, "data must be a path, a DataFrame"),
        ({"label": 3}, "label must be the name of a column or a list of names, got 3"),
        ({"label": []}, "label must be the name of a column or a list of names, got "),
        ({"label": ["y", 3]}, "label must be the name of a column, got 3"),
        ({"label": ["y", "y"]}, "label must name each column once, got 'y' more than once"),
        ({"features": " "}, "features must be the name of a column, got an empty one"),
        ({"features": {"a"}}, "features must be the name of a column or a list of names"),
        ({"id": 5}, "id must be the name of a column, got 5"),
        ({"member": ""}, "member must be the name of a column, got an empty one"),
    ],
)
def test_names_that_are_none_are_refused(arguments, words):
    """The argument and what it holds are named."""
    with pytest.raises(InputError, match=f"^{words}"):
        RecordTable(**{"data": {"y": [1]}, **arguments})


@pytest.mark.parametrize("data", [3, [1, 2], object(), {1, 2}, b"x.csv"])
def test_data_of_no_supported_kind_are_refused(data):
    """The sentence lists what is supported, and names the type that came."""
    with pytest.raises(InputError, match=rf"^data must be the path of a table.* got {type(data).__name__};"):
        open_source(RecordTable(data), task=None, member=True, name="members")


def test_the_table_must_be_a_table():
    """A bare path is not a table of records."""
    with pytest.raises(InputError, match=r"table must be auditor\.RecordTable"):
        open_source("x.csv", task=None, member=True, name="members")
