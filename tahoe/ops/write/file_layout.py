"""Comparison of a data file's footer with the layout that the table requires of new files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from tahoe.base.lazy import pq
from tahoe.ops.write.row_ids import config_with_row_ids
from tahoe.ops.write.stored_layout import file_schema
from tahoe.protocol.config import TableConfig

_FIELD_ID = b"PARQUET:field_id"


def expected_schema(config: TableConfig) -> pa.Schema:
    """Return the schema of new data files, including the columns of row ids."""
    return file_schema(config_with_row_ids(config))


def has_dropped_columns(footer: pq.FileMetaData, expected: pa.Schema, partition_columns: Iterable[str]) -> bool:
    """Whether the file has columns, or fields of structs, that were dropped from the table.

    Args:
        partition_columns: physical names; a file may have these even if the table does not require it.
    """
    return _has_more(_fields(footer), list(expected), set(partition_columns))


def iceberg_faults(footer: pq.FileMetaData, expected: pa.Schema, partition_columns: Iterable[str]) -> tuple[str, ...]:
    """Return the violations of the layout that IcebergCompatV2 and V3 require; empty for a compatible file.

    Args:
        expected: with ids of elements, keys and values.
        partition_columns: physical names of the partition columns, which the file must contain.
    """
    faults = []
    fields = _fields(footer)
    by_name = {column.name: column for column in fields}
    # PyIceberg ignores the ids of a file in which one is missing, be it of a column that was dropped.
    if any(map(_lacks_ids, fields)) or any(
        _differ(by_name[column.name], column) for column in expected if column.name in by_name
    ):
        faults.append("field ids")
    if any(footer.schema.column(place).physical_type == "INT96" for place in range(footer.num_columns)):
        faults.append("INT96 timestamps")
    if not set(partition_columns) <= by_name.keys():
        faults.append("partition columns")
    return tuple(faults)


def row_groups_in_layout(footer: pq.FileMetaData, expected: pa.Schema) -> list[int] | None:
    """Return the number of rows in each row group of a file whose columns are those of a new file, in types and ids; None for other files."""
    fields = {column.name: column for column in _fields(footer)}
    sizes = [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
    has_layout = fields.keys() == set(expected.names) and all(
        fields[column.name].type.equals(column.type) and not _differ(fields[column.name], column) for column in expected
    )
    return sizes if has_layout and all(sizes) else None


def _fields(footer: pq.FileMetaData) -> list[pa.Field]:
    return list(footer.schema.to_arrow_schema())


def _lacks_ids(field: pa.Field) -> bool:
    """Whether a field of the file, or a nested field, has no id."""
    return _id(field) is None or any(_lacks_ids(first) for first, _ in _pairs(field.type, field.type))


def _differ(actual: pa.Field, expected: pa.Field) -> bool:
    """Whether a field of the file, or a nested field, lacks its expected id."""
    if _id(actual) != _id(expected):
        return True
    return any(_differ(first, second) for first, second in _pairs(actual.type, expected.type))


def _id(field: pa.Field) -> bytes | None:
    field_id: bytes | None = (field.metadata or {}).get(_FIELD_ID)
    return field_id


def _pairs(actual: pa.DataType, expected: pa.DataType) -> Iterator[tuple[pa.Field, pa.Field]]:
    """Yield the nested fields of both types; elements, keys and values are matched by position, regardless of their names."""
    if pa.types.is_struct(actual) and pa.types.is_struct(expected):
        by_name = {column.name: column for column in actual.fields}
        yield from ((by_name[column.name], column) for column in expected.fields if column.name in by_name)
    elif pa.types.is_map(actual) and pa.types.is_map(expected):
        yield actual.key_field, expected.key_field
        yield actual.item_field, expected.item_field
    elif pa.types.is_list(actual) and pa.types.is_list(expected):
        yield actual.value_field, expected.value_field


def _has_more(actual: list[pa.Field], expected: list[pa.Field], allowed: set[str]) -> bool:
    by_name = {column.name: column for column in expected}
    if {column.name for column in actual} - by_name.keys() - allowed:
        return True
    both = [(column, by_name[column.name]) for column in actual if column.name in by_name]
    return any(_holds_more(first.type, second.type) for first, second in both)


def _holds_more(actual: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_struct(actual) and pa.types.is_struct(expected):
        return _has_more(actual.fields, expected.fields, set())
    return any(_holds_more(first.type, second.type) for first, second in _pairs(actual, expected))
