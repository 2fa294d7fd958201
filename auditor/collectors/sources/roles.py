"""Which column of a table plays which part."""

from dataclasses import dataclass

from auditor import _validate
from auditor.collectors.record_table import RecordTable
from auditor.collectors.sources.reader import OpenTable
from auditor.errors import InputError

__all__ = ["Roles", "roles"]

_MEANING = {"id": "record ids", "group": "slices", "person": "data subjects", "member": "membership"}


@dataclass(frozen=True)
class Roles:
    """The columns that are read, by the part they play.

    Attributes:
        features: In the order in which the model takes them.
        alone: Whether the one feature is given as a column and not as a table of one column.
        labels: Of the true labels.
        beside: The columns of ids, groups and persons, by what they are.
        member: Of membership.
    """

    features: tuple[str, ...]
    alone: bool = False
    labels: tuple[str, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()
    member: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        other = () if self.member is None else (self.member,)
        return list(dict.fromkeys((*self.features, *self.labels, *(name for _, name in self.beside), *other)))

    @property
    def text(self) -> list[str]:
        """The columns that stay text, unless they are something else as well."""
        others = {*self.features, *self.labels, self.member}
        return [name for _, name in self.beside if name not in others]


def roles(table: RecordTable, opened: OpenTable) -> Roles:
    """Return the columns of an open table by their parts.

    Raises:
        InputError: A column that is missing or there twice, that plays two parts which exclude each other, or no
            feature at all.
    """
    found = {}
    for field, what in _MEANING.items():
        name = getattr(table, field)
        if name is not None and (name != field or name in opened.names):
            found[field] = _column(name, opened, what=what)
    member = found.pop("member", None)
    labels = tuple(_column(name, opened, what="labels") for name in table.label or ())
    if member in labels:
        raise InputError(f"label must not name {member!r}, the column of membership of {opened.place}.")
    features = _features(table, opened, others={*labels, *found.values(), member})
    _refuse_answers(features, opened, labels=labels, member=member)
    alone = isinstance(table.features, str)
    return Roles(features, alone=alone, labels=labels, beside=tuple(found.items()), member=member)


def _features(table: RecordTable, opened: OpenTable, *, others: set[str | None]) -> tuple[str, ...]:
    given = (table.features,) if isinstance(table.features, str) else table.features
    if given is not None:
        return tuple(_column(name, opened, what="features") for name in given)
    rest = [name for name in opened.names if name not in others and name not in opened.asides]
    if not rest:
        shown = ", ".join(map(repr, opened.names[:20])) or "no columns"
        raise InputError(
            f"{opened.place} must have a column of features beside the others, got {shown}; name the features."
        )
    return tuple(_column(name, opened, what="features") for name in rest)


def _refuse_answers(
    features: tuple[str, ...], opened: OpenTable, *, labels: tuple[str, ...], member: str | None
) -> None:
    for name in features:
        if name in labels or name == member:
            part = "membership" if name == member else "labels"
            raise InputError(
                f"features must not name {name!r}, the column of {part} of {opened.place}; leave it out."
            )


def _column(name: str, opened: OpenTable, *, what: str) -> str:
    return _validate.column_name(name, what=what, file=opened.place, options=opened.names)
