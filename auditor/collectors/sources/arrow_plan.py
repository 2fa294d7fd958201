"""What the columns of an Arrow table are, settled for the table as a whole."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auditor.collectors.sources.arrow_types import is_category, kind_of, plain_type, unsettled
from auditor.collectors.sources.reader import Kind
from auditor.collectors.sources.vectors import is_vector, stacked

__all__ = ["Plan", "planned"]


@dataclass(frozen=True)
class Plan:
    """What is known of a column as a whole.

    Attributes:
        kind: What its cells are.
        type: The plain Arrow type that it is read in.
        gaps: Whether any cell is missing; only known of integers and truth values, which pandas then takes for others.
        categories: The values of a categorical column, in the order of the table that was written; none otherwise.
        ordered: Whether the order of the categories has a meaning.
        shape: Of one vector.
    """

    kind: Kind
    type: Any
    gaps: bool = False
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    shape: tuple[int, ...] = ()


@dataclass
class _Found:
    """What the cells of one column showed."""

    gaps: bool = False
    categories: dict[Any, None] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None


def planned(
    types: Mapping[str, Any], batches: Callable[[Sequence[str]], Iterable[Any]], *, place: str
) -> dict[str, Plan]:
    """Return what each column is.

    Args:
        types: The Arrow type of each column, as it was written.
        batches: All rows of some columns; asked for only if columns must be looked at.
        place: The table, for error sentences.

    Raises:
        InputError: A first vector that is none.
    """
    found = {name: _Found() for name in types}
    look = {name: kind for name, kind in types.items() if unsettled(kind)}
    only_vectors = all(is_vector(plain_type(kind)) for kind in look.values())
    for batch in batches(list(look)) if look else ():
        for name, kind in look.items():
            _look(found[name], batch.column(batch.schema.names.index(name)), kind, name=name, place=place)
        if only_vectors and all(found[name].shape is not None for name in look):
            break  # the first vector says it all
    return {name: _plan(kind, found[name]) for name, kind in types.items()}


def _look(found: _Found, column: Any, kind: Any, *, name: str, place: str) -> None:
    import pyarrow as pa

    found.gaps |= column.null_count > 0
    if is_category(kind):
        found.categories.update(dict.fromkeys(column.dictionary.to_pylist()))
    elif found.shape is None and len(column) and is_vector(plain_type(kind)):
        first = pa.chunked_array([column.slice(0, 1).cast(plain_type(kind))])
        found.shape = stacked(first, name=name, place=place, first_row=0).shape[1:]


def _plan(kind: Any, found: _Found) -> Plan:
    plain = plain_type(kind)
    category = is_category(kind)
    return Plan(
        kind=kind_of(plain),
        type=plain,
        gaps=found.gaps,
        categories=tuple(value for value in found.categories if value is not None) if category else None,
        ordered=bool(kind.ordered) if category else False,
        shape=found.shape or (),
    )
