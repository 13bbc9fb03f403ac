"""Joins Arrow tables of different shapes, and casts columns, structs by the names of their members."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import empty_table, scalar


def concat(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate the tables; a column or a member of a struct that only some have is null in the others."""
    if not parts:
        return empty_table(schema)
    if all(part.schema == parts[0].schema for part in parts):
        return pa.concat_tables(parts)
    merged = pa.unify_schemas([part.schema for part in parts], promote_options="permissive")
    return pa.concat_tables([_with_schema(part, merged) for part in parts])


def with_fewer_chunks(table: pa.Table) -> pa.Table:
    """Join neighbouring small chunks; large chunks are not copied.

    A table that grows and shrinks by single rows would otherwise get many tiny chunks, each of which costs time in every operation.
    """
    if max((column.num_chunks for column in table.columns), default=0) <= _MOST_CHUNKS:
        return table
    groups: list[list[pa.RecordBatch]] = [[]]
    for batch in table.to_batches():
        if sum(each.num_rows for each in groups[-1]) + batch.num_rows > _ROWS_OF_SMALL_CHUNKS:
            groups.append([])
        groups[-1].append(batch)
    joined = [group[0] if len(group) == 1 else pa.concat_batches(group) for group in groups if group]
    return pa.Table.from_batches(joined, table.schema)


def rows_at(table: pa.Table, rows: pa.Array) -> pa.Table:
    """Return these rows in this order. `Table.take` copies every chunk of a column of texts, however few the rows are.

    Args:
        rows: distinct positions.
    """
    if table.num_rows <= _ROWS_OF_SMALL_CHUNKS:
        return table.take(rows)
    order = pc.sort_indices(rows)
    ascending = rows.take(order).cast(pa.int64())
    parts, start = [table.schema.empty_table()], 0
    for batch in table.to_batches():
        stop = start + batch.num_rows
        inside = ascending.filter(pc.and_(pc.greater_equal(ascending, scalar(start)), pc.less(ascending, scalar(stop))))
        if len(inside):
            parts.append(pa.Table.from_batches([batch.take(pc.subtract(inside, scalar(start)))]))
        start = stop
    return pa.concat_tables(parts).combine_chunks().take(pc.sort_indices(order))


_MOST_CHUNKS = 16
_ROWS_OF_SMALL_CHUNKS = 8_192


def cast_members(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast the values; members that a struct lacks become null, and members that the new type lacks are dropped."""
    if values.type == target:
        return values
    if pa.types.is_struct(target):
        have = {values.type.field(i).name: child for i, child in enumerate(values.flatten())}
        children = [
            cast_members(have[field.name], field.type) if field.name in have else pa.nulls(len(values), field.type)
            for field in target
        ]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=values.is_null())
    return values.cast(target)


def cast_chunks(values: pa.ChunkedArray | pa.Array, target: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Cast the values to the Arrow type `target`, chunk by chunk (see `cast_members`); return the same object if they have the type."""
    if values.type == target:
        return values
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([cast_members(chunk, target) for chunk in chunks], target)


def _with_schema(part: pa.Table, schema: pa.Schema) -> pa.Table:
    have = part.column_names
    columns = [
        cast_chunks(part.column(field.name), field.type) if field.name in have else pa.nulls(part.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
