"""A table of records to score, and which of its columns play which part."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from auditor.errors import InputError

__all__ = ["RecordTable"]


@dataclass(frozen=True, eq=False)
class RecordTable:
    r"""Records to score: a file, a folder, a frame or arrays, and the names of the columns.

    Numbers, text and categories come to the model in the types that pandas gives them when it reads the same table;
    whatever has to be encoded is encoded by the model's own pipeline. In a CSV a column of which every cell is a number
    or missing holds numbers, one of true and false truth values, and any other one text; missing are the cells that
    pandas takes for missing (a blank, NA, NaN, null and the like). Ids, groups and persons of a CSV stay text.

    Attributes:
        data: The path of a ``.csv``, ``.parquet``, ``.npz``, ``.arrow`` or ``.feather`` file or of a folder of
            ``.parquet`` parts (in the order of their names); a pandas or polars DataFrame; a pyarrow Table or Dataset;
            or a dictionary of arrays by name.
        label: The column of true labels, or several for several labels or outputs; none where there is nothing to
            predict, as for texts.
        features: The columns that the model takes, in its order; default all that play no other part, in the order of
            the table. One name (not in a list) gives the column itself: texts, or one array of all the features.
            Columns without a name, and those that pandas wrote for its index, are features only if named.
        id: Record ids; read if the table has the column, an error if another name than the default is missing. None
            reads none, and a column of that name is then a feature like any other.
        group: Slices to report by, likewise.
        person: Data subject of each record, likewise.
        member: Membership, 1 for a member and 0 for a non-member, likewise; needed where one table holds both groups.

    Raises:
        InputError: Names that are no text, empty or repeated, or no data.

    >>> RecordTable({"age": [31, 45], "job": ["cook", "judge"], "y": [0, 1]}, label="y").label
    ('y',)
    """

    data: Any = field(repr=False)
    _: KW_ONLY
    label: str | Sequence[str] | None = None
    features: str | Sequence[str] | None = None
    id: str | None = "id"
    group: str | None = "group"
    person: str | None = "person"
    member: str | None = "member"

    def __post_init__(self) -> None:
        if self.data is None:
            raise InputError(
                "data must be a path, a DataFrame, an Arrow table or a dictionary of arrays, got None."
            )
        for name in ("id", "group", "person", "member"):
            value = getattr(self, name)
            if value is not None:
                _name(name, value)
        label = (self.label,) if isinstance(self.label, str) else self.label
        object.__setattr__(self, "label", _names("label", label))
        if not isinstance(self.features, str):
            object.__setattr__(self, "features", _names("features", self.features))
        else:
            _name("features", self.features)


def _names(argument: str, values: Any) -> tuple[str, ...] | None:
    """Return several names, all different."""
    if values is None:
        return None
    if isinstance(values, bytes | dict | set) or not hasattr(values, "__len__") or len(values) == 0:
        raise InputError(f"{argument} must be the name of a column or a list of names, got {values!r}.")
    names = tuple(_name(argument, value) for value in values)
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise InputError(f"{argument} must name each column once, got {twice[0]!r} more than once.")
    return names


def _name(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{argument} must be the name of a column, got {value!r}.")
    if not value.strip():
        raise InputError(f"{argument} must be the name of a column, got an empty one; take it out.")
    return value
