"""Properties of a table of records, before any of it is read."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from collectors.common import refused, write

from auditor.collectors.tables import RecordTable, open_source


def test_the_value_is_frozen_and_does_not_show_its_data():
    """Nobody can change it, and its text holds the names and none of the cells."""
    table = RecordTable(pd.DataFrame({"secret": [123456]}), label="y", features="x")
    assert "123456" not in repr(table)
    assert "label=('y',)" in repr(table)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.label = ("z",)


PAIR = np.zeros(6, dtype=[("name", "i4"), ("part", "i4")])


@pytest.mark.parametrize("suffix", [None, ".npz"])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"id": np.zeros((6, 3))},
            r"id column 'id' of .* must be one-dimensional, got shape \(6, 3\); give one",
        ),
        ({"group": np.zeros((6, 2))}, r"group column 'group' of .*, got shape \(6, 2\); give one"),
        (
            {"id": np.array([*"abcd", "\ud800", "f"])},
            r"id column .* half of a surrogate pair \(row 4, .*; write",
        ),
        (
            {"id": np.arange(6) + 2.0**53},
            r"id column .* below 2\^53 .*\(first at row 0.*; write them as text",
        ),
        (
            {"person": PAIR},
            r"array 'person' of .* must hold numbers or text, got \[.*; give one array for each",
        ),
        ({"x": PAIR}, r"array 'x' of .* must hold numbers or text, got \[.*; give one array for each"),
    ],
)
def test_columns_beside_the_features_hold_one_plain_value_for_each_record(tmp_path, columns, suffix, words):
    """A table in a column, half of a letter, structures, and floats that several ids share are refused in a sentence."""
    data = {"x": np.arange(6.0), "y": np.arange(6) % 2, **columns}
    if suffix:
        data = write(tmp_path / f"records{suffix}", data)
    with refused(words):
        open_source(RecordTable(data, label="y"), task=None, member=True, name="member").read(0, 6)
