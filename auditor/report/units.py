"""What one unit of an audit is called: a record, or a person where one score stands for a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PERSONS", "RECORDS", "Units", "units"]


@dataclass(frozen=True)
class Units:
    """The words for one and for many, in the training data and outside it."""

    many: str
    member: str
    members: str
    other: str
    others: str


RECORDS = Units("records", "training record", "training records", "other record", "other records")
PERSONS = Units(
    "persons", "person in the training data", "persons in the training data", "other person", "other persons"
)


def units(data: Mapping[str, Any]) -> Units:
    """Return the words for what an audit of these data counted.

    >>> units({"unit": "person (mean loss)"}).members
    'persons in the training data'
    """
    return PERSONS if str(data.get("unit")).startswith("person") else RECORDS
