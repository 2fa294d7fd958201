"""What a table of records is, before any of it is read."""

import dataclasses

import pandas as pd
import pytest
from collectors.common import refused

from auditor.collectors.tables import RecordTable


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
        ({"label": 3}, "label must be the name of a column, or a list of different names, got 3"),
        ({"label": ["y", 3]}, "label must be the name .* 3"),
        ({"label": ["y", "y"]}, "label must be .* a list of different names, got .'y', 'y'"),
        ({"features": " "}, "features must be the name of a column, .* got ' '"),
        ({"features": {"a"}}, "features must be the name of a column, .* got {'a'}"),
        ({"id": ["id"]}, "id must be the name of a column, got "),
        ({"member": ""}, "member must be the name of a column, got ''"),
    ],
)
def test_names_that_are_none_are_refused(arguments, words):
    """The argument and what it holds are named."""
    with refused(f"^{words}"):
        RecordTable(**{"data": {"y": [1]}, **arguments})
