"""Facts as enums: what is known of an audit by name; the words for them are made in `auditor.report`."""

import re
from enum import StrEnum
from typing import Self

from auditor.core import validate


class Named(StrEnum):
    """Choices by name; an error calls them by the last word of the class."""

    @classmethod
    def named(cls, name: object) -> Self:
        """Return the choice of this name.

        Raises:
            InputError: There is none of it.
        """
        what = re.findall("[A-Z][a-z]*", cls.__name__)[-1].lower()
        return cls(validate.known(what, name, [str(item) for item in cls]))


class Adjacency(Named):
    """Which two training sets count as neighbours.

    >>> Adjacency("replace-one") == "replace-one"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Disclosure(Named):
    """Who may read a result.

    ``PUBLIC`` results show nothing that few records make: see `auditor.results.disclosure`. ``INSIDERS`` results have every
    digit and every view, from which records of the audit can be recognised.
    """

    PUBLIC = "public"
    INSIDERS = "insiders"


class PrivacyUnit(Named):
    """What two neighbours differ in: one record, or all records of one person.

    >>> PrivacyUnit("person") == "person"
    True
    """

    RECORD = "record"
    PERSON = "person"

    def ending(self, records: int | None = None) -> str:
        """Return what a claim in words ends with: nothing for the usual unit."""
        if self is PrivacyUnit.RECORD:
            return ""
        some = "" if records == 1 else "s"
        return ", per person" + ("" if records is None else f" of up to {records:,} record{some}")
