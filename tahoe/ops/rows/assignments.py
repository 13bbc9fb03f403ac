"""Assignments: `column = expression`, and what they make of rows. What UPDATE and MERGE share.

A value is cast to its column as a write casts it: a value that would change by it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tahoe.exceptions import InvalidRequest, SchemaMismatch
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import Schemas, parse_expression
from tahoe.expr.tree.expression import Expression, Reference
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.expr.tree.signatures import cast_to
from tahoe.lazy import pc
from tahoe.protocol.constraints import recomputed
from tahoe.schema.arrow import to_arrow_schema, to_arrow_type
from tahoe.schema.cast import GIVEN, CannotCast, conform
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType

__all__ = ["Assignment", "assigned", "assigned_places", "parse_assignments", "stored"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, or a field of a struct, and its new value.

    Args:
        path: the names that lead to it, as the schema spells them.
        data_type: of the column or field.
    """

    path: tuple[str, ...]
    data_type: DataType
    value: Expression

    @property
    def assigns_whole_column(self) -> bool:
        """Whether it is a column that gets a value, not a field inside of one."""
        return len(self.path) == 1


def parse_assignments(
    texts: Sequence[tuple[str, str]],
    target: StructType,
    schemas: Schemas,
    *,
    qualifier: str | None = None,
    time_zone: str = "UTC",
    inserts: bool = False,
) -> tuple[Assignment, ...]:
    """The assignments of a SET or VALUES clause.

    Args:
        texts: pairs of a column or nested field (SQL, as ``a.b``) and an expression.
        target: the schema that is assigned to.
        schemas: what the expressions may name.
        qualifier: a name that may stand before a column that is assigned to.
        inserts: whether the values make new rows.

    Raises:
        InvalidRequest: text that is not understood; two assignments to the same place (`assigned_places`).
    """
    assignments: list[Assignment] = []
    places = assigned_places((key for key, _ in texts), target, qualifier, inserts=inserts)
    for place, (_, text) in zip(places, texts, strict=True):
        value = parse_expression(text, schemas, time_zone)
        if not isinstance(place.data_type, StructType | ArrayType | MapType):
            value = cast_to(value, place.data_type, time_zone)
        assignments.append(Assignment(place.path, place.data_type, value))
    return tuple(assignments)


def assigned_places(
    keys: Iterable[str], target: StructType, qualifier: str | None = None, *, inserts: bool = False
) -> list[Reference]:
    """What the keys of a SET or VALUES clause name, each a column or a nested field.

    Args:
        inserts: whether the values make new rows.

    Raises:
        InvalidRequest: text that names no column; two assignments to the same place, ``DELTA_DUPLICATE_COLUMNS_ON_INSERT`` for new rows
            and else ``DELTA_CONFLICT_SET_COLUMN``.
    """
    places: list[Reference] = []
    for key in keys:
        place = parse_expression(key, target if qualifier is None else {qualifier: target})
        if not isinstance(place, Reference):
            raise InvalidRequest(
                f"'{key}' is no column that a value could be assigned to.", code="TAHOE_NOT_ASSIGNABLE", column=key
            )
        for other in places:
            shorter = min(len(other.path), len(place.path))
            if other.path[:shorter] == place.path[:shorter]:
                raise _assigned_twice(other, place, inserts)
        places.append(place)
    return places


def _assigned_twice(first: Reference, second: Reference, inserts: bool) -> InvalidRequest:
    names = [quote_identifier(".".join(place.path)) for place in (first, second)]
    if inserts:
        return InvalidRequest(
            f"Duplicate column names in INSERT clause: {', '.join(names)}. List each column once.",
            code="DELTA_DUPLICATE_COLUMNS_ON_INSERT",
            column=".".join(second.path),
        )
    return InvalidRequest(
        f"There is a conflict from these SET columns: [{', '.join(names)}]. Assign to each column or field once.",
        code="DELTA_CONFLICT_SET_COLUMN",
        column=".".join(second.path),
    )


def assigned(rows: pa.Table, schema: StructType, assignments: Sequence[Assignment], context: pa.Table) -> pa.Table:
    """The rows with the new values.

    Args:
        rows: the columns of `schema`, or some of them; missing ones begin as null. Columns that are assigned to as a whole are not
            looked at.
        schema: of the result.
        context: what the expressions see, row for row beside `rows`.
    """
    arrow_schema = to_arrow_schema(schema)
    arrays = []
    for column in schema:
        ours = [one for one in assignments if one.path[0] == column.name]
        if ours and ours[0].assigns_whole_column:
            arrays.append(stored(compute(ours[0].value, context), column))
            continue
        position = rows.schema.get_field_index(column.name)
        wanted = arrow_schema.field(column.name).type
        if not ours and position >= 0 and rows.schema.field(position).type == wanted:
            arrays.append(rows.column(position))
            continue
        array = stored(pa.nulls(context.num_rows, wanted) if position < 0 else _whole(rows.column(position)), column)
        for one in ours:
            array = _assigned(array, column, one.path[1:], compute(one.value, context))
        arrays.append(array)
    table = pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in arrow_schema]))
    return recomputed(schema, table, {one.path[0] for one in assignments}) if assignments else table


def stored(values: pa.Array, column: StructField) -> pa.Array:
    """The values in the column's type. Raises `SchemaMismatch` (``DELTA_CAST_OVERFLOW_IN_TABLE_WRITE``) where they do not fit."""
    try:
        return conform(values, column.data_type, to_arrow_type(column.data_type), GIVEN, (column.name,))
    except CannotCast as error:
        name = ".".join(error.path)
        raise SchemaMismatch(
            f"Values of type {error.source} do not fit column '{name}', whose type is {error.target}"
            f"{f': {error.reason}' if error.reason else ''}. Correct or cast the expression; nothing was committed.",
            code="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            column=name,
        ) from error


def _assigned(old: pa.Array, column: StructField, path: tuple[str, ...], value: pa.Array) -> pa.Array:
    """The column with the value at `path` inside of it; a null struct on the way becomes one of nulls."""
    if not path:
        return stored(value, column)
    assert isinstance(column.data_type, StructType)
    children = []
    for field in column.data_type:
        inner = pc.struct_field(old, [field.name])
        inner = inner.combine_chunks() if isinstance(inner, pa.ChunkedArray) else inner
        children.append(_assigned(inner, field, path[1:], value) if field.name == path[0] else inner)
    return pa.StructArray.from_arrays(children, fields=list(to_arrow_type(column.data_type)))


def _whole(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
