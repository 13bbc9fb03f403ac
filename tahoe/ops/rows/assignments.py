"""Parse assignments, `column = expression`, and apply them to rows, for UPDATE and MERGE.

A value is cast to its column's type like a written value: a cast that would change the value is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.base.lazy import pc
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import Schemas, parse_expression
from tahoe.expr.tree.expression import Expression, Reference
from tahoe.expr.tree.signatures import cast_to
from tahoe.ops.rows.assigned_places import check_assignable, lacks_fields
from tahoe.protocol.constraints import recomputed
from tahoe.schema.arrow import to_arrow_schema, to_arrow_type
from tahoe.schema.arrow_values import combined
from tahoe.schema.cast import GIVEN, CannotCast, conform
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, or a field of a struct, and its new value.

    Args:
        path: the path of the column or field, in the schema's spelling.
        data_type: the type of the column or field.
        keeps_fields: whether fields that are missing in structs of the value keep their old values.
        time_zone: of the statement, in which generated columns read the wall clock of a timestamp.
    """

    path: tuple[str, ...]
    data_type: DataType
    value: Expression
    keeps_fields: bool = False
    time_zone: str = "UTC"

    @property
    def assigns_whole_column(self) -> bool:
        """Whether it replaces the value of a whole column, not of a field inside it, and keeps nothing of the old value."""
        return len(self.path) == 1 and not self.keeps_fields


def parse_assignments(
    places: Sequence[Reference], texts: Iterable[str], schemas: Schemas, moment: Moment, *, may_lack_fields: bool = False
) -> tuple[Assignment, ...]:
    """Parse the assignments of a SET or VALUES clause.

    Args:
        places: the assigned columns and fields (`assigned_places`).
        texts: the expression for each of them.
        schemas: the columns that the expressions may use.
        moment: the time and time zone of the statement.
        may_lack_fields: see `check_assignable`.

    Raises:
        InvalidRequest: an expression cannot be parsed.
        SchemaMismatch: the fields of a struct differ from those of its target (`check_assignable`).
    """
    assignments: list[Assignment] = []
    for place, text in zip(places, texts, strict=True):
        value = _value(place, text, schemas, moment)
        check_assignable(value.data_type, place.data_type, place.path, may_lack_fields=may_lack_fields)
        assignments.append(Assignment(place.path, place.data_type, value, time_zone=moment.time_zone))
    return tuple(assignments)


def _value(place: Reference, text: str, schemas: Schemas, moment: Moment) -> Expression:
    try:
        value = parse_expression(text, schemas, moment.time_zone, moment.ms)
        if isinstance(place.data_type, StructType | ArrayType | MapType):
            return value
        return cast_to(value, place.data_type, moment.time_zone)
    except InvalidRequest as error:
        # A text without quotes is read as a column, and two words as a syntax error.
        is_text = str(place.data_type) == "string" and re.fullmatch(r"[\w ]+", text) is not None
        hint = f""" To assign the text, quote it: "'{text}'".""" if is_text else ""
        error.with_hint(f"This is the value of column '{'.'.join(place.path)}'.{hint}")
        raise


def assigned(rows: pa.Table, schema: StructType, assignments: Sequence[Assignment], context: pa.Table) -> pa.Table:
    """Apply the assignments to rows.

    Args:
        rows: the columns of `schema`, or some of them; missing columns start as NULL. Columns that are assigned as a whole are not read.
        schema: the schema of the result.
        context: the input of the expressions, with one row for each row of `rows`.
    """
    arrow_schema = to_arrow_schema(schema)
    arrays = []
    for column in schema:
        ours = [assignment for assignment in assignments if assignment.path[0] == column.name]
        if ours and ours[0].assigns_whole_column:
            arrays.append(stored(compute(ours[0].value, context), column))
            continue
        position = rows.schema.get_field_index(column.name)
        arrow_type = arrow_schema.field(column.name).type
        if not ours and position >= 0 and rows.schema.field(position).type == arrow_type:
            arrays.append(rows.column(position))
            continue
        array = stored(pa.nulls(context.num_rows, arrow_type) if position < 0 else combined(rows.column(position)), column)
        for assignment in ours:
            value = compute(assignment.value, context)
            if assignment.keeps_fields:
                array = _keeping(array, value, assignment.value.data_type, column)
            else:
                array = _assigned(array, column, assignment.path[1:], value)
        arrays.append(array)
    table = pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in arrow_schema]))
    names = {assignment.path[0] for assignment in assignments}
    return recomputed(schema, table, names, time_zone=assignments[0].time_zone) if assignments else table


def stored(values: pa.Array, column: StructField) -> pa.Array:
    """Cast values to the column's type. Raises `SchemaMismatch` (``DELTA_CAST_OVERFLOW_IN_TABLE_WRITE``) if they do not fit."""
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
    """Return the column with the value at `path` inside it; a NULL struct on the path becomes a struct of NULLs."""
    if not path:
        return stored(value, column)
    assert isinstance(column.data_type, StructType)
    children = []
    for field in column.data_type:
        inner = pc.struct_field(old, [field.name])
        inner = inner.combine_chunks() if isinstance(inner, pa.ChunkedArray) else inner
        children.append(_assigned(inner, field, path[1:], value) if field.name == path[0] else inner)
    return pa.StructArray.from_arrays(children, fields=list(to_arrow_type(column.data_type)))


def _keeping(old: pa.Array, value: pa.Array, value_type: DataType, column: StructField) -> pa.Array:
    """Return the value with its missing struct fields taken from the old value; NULL if both are NULL."""
    struct = column.data_type
    if not isinstance(struct, StructType) or not isinstance(value_type, StructType) or not lacks_fields(value_type, struct):
        return stored(value, column)
    children = []
    for field in struct:
        inner, value_field = pc.struct_field(old, [field.name]), value_type.find(field.name)
        if value_field is not None:
            inner = _keeping(inner, pc.struct_field(value, [value_field.name]), value_field.data_type, field)
        children.append(inner)
    nulls = pc.and_(pc.is_null(old), pc.is_null(value))
    return pa.StructArray.from_arrays(children, fields=list(to_arrow_type(struct)), mask=nulls)
