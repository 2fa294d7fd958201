"""Arrow types: what their cells are, and the plain type that each is read in."""

from collections.abc import Mapping, Sequence
from typing import Any

from auditor import _validate
from auditor.collectors.sources.reader import Kind
from auditor.collectors.sources.vectors import is_vector
from auditor.errors import InputError

__all__ = ["common_types", "is_category", "kind_of", "plain_type", "tidied", "unsettled"]


def kind_of(kind: Any) -> Kind:
    """Return what the cells of a column of this plain type are."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return Kind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind):
        return Kind.TEXT
    if types.is_temporal(kind):
        return Kind.TIME
    if types.is_null(kind):
        return Kind.BLANK
    return Kind.VECTOR if is_vector(kind) else Kind.OTHER


def is_category(kind: Any) -> bool:
    """Return whether the cells are categories."""
    from pyarrow import types

    return bool(types.is_dictionary(kind))


def plain_type(kind: Any) -> Any:
    """Return the type that a column is read in: of categories that of their values, of an extension its storage."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.FixedShapeTensorType):
        return plain_type(kind.storage_type)
    if getattr(types, "is_string_view", lambda _: False)(kind):
        return pa.large_string()
    return kind


def unsettled(kind: Any) -> bool:
    """Return whether cells must be looked at to know what a stretch of such a column becomes."""
    from pyarrow import types

    plain = plain_type(kind)
    return bool(is_category(kind) or is_vector(plain) or types.is_integer(plain) or types.is_boolean(plain))


def common_types(names: Sequence[str], *, schemas: Sequence[Any], places: Sequence[str]) -> dict[str, Any]:
    """Return for each column a type that holds what every one of several tables has in it.

    Raises:
        InputError: A table without one of the columns, with two of that name, or with another kind of cells.
    """
    found = {name: schemas[0].field(schemas[0].names.index(name)).type for name in names}
    for schema, place in zip(schemas[1:], places[1:], strict=True):
        for name in names:
            _validate.column_name(
                name,
                what="records",
                file=place,
                options=schema.names,
                hint=f"Every part must have the columns of {places[0]}.",
            )
            kind = schema.field(schema.names.index(name)).type
            found[name] = _common(found[name], kind, words=f"column {name!r} of {place}", first=places[0])
    return found


def _common(one: Any, other: Any, *, words: str, first: str) -> Any:
    import pyarrow as pa

    if one == other:
        return one
    if is_category(one) and is_category(other) and one.value_type == other.value_type:
        return one
    plain = [plain_type(kind) for kind in (one, other)]
    kinds = {kind_of(kind) for kind in plain} - {Kind.BLANK}
    try:
        if len(kinds) > 1:
            raise pa.ArrowTypeError
        fields = [pa.schema([pa.field("column", kind)]) for kind in plain]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        raise InputError(
            f"{words} must hold what it holds in {first}, got {other} and not {one}; write the parts with the same types."
        ) from None


def tidied(batch: Any, types: Mapping[str, Any]) -> Any:
    """Return these columns of a record batch in these plain types."""
    import pyarrow as pa

    columns = [_plain(batch.column(batch.schema.names.index(name)), kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(types.items())))


def _plain(column: Any, kind: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types
    from pyarrow.compute import run_end_decode

    if types.is_dictionary(column.type):
        return _plain(column.dictionary_decode(), kind)
    if types.is_run_end_encoded(column.type):
        return _plain(run_end_decode(column), kind)
    if isinstance(column.type, pa.BaseExtensionType) and column.type != kind:
        return _plain(column.storage, kind)
    return column if column.type == kind else column.cast(kind)
