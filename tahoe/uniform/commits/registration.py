"""Whether a client's data file can join a Delta table as it is, or its rows must be written again. Pure.

Every Delta reader must read the file as the client meant it. Readers find columns by the physical names of the table's schema, perhaps by
field ids, and take partition values from the log; none checks the rows against the rules of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.mapping import nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

FIELD_ID = b"PARQUET:field_id"
"""The key of a column's id in Arrow's metadata."""


def why_rewritten(config: TableConfig, footer: FileMetaData, partition: Mapping[str, Any]) -> str | None:
    """Return why the rows of a file must be written again; None if every Delta reader reads the file correctly.

    Args:
        config: the configuration of the version that adds the file, with the columns of row ids if it tracks rows.
        partition: the partition values of the manifest by physical names, as Python values.
    """
    rule = next((name for _, name in config.demands()), None)
    if rule is not None:
        return f"the table checks rows: {rule}"
    columns = list(footer.schema.to_arrow_schema())
    problem = next(_problems(config.schema.fields, columns, ()), None)
    if problem is not None:
        return problem
    for column in config.partition_schema:
        if not _has_only(footer, column.physical_name, partition.get(column.physical_name)):
            return f"the footer does not prove the partition value of column {column.name}"
    for column in config.schema:
        if not column.nullable and not _has_no_null(footer, column.physical_name):
            return f"the footer does not prove that column {column.name} has no NULL"
    return None


def ids_in(footer: FileMetaData) -> set[int | None]:
    """Return the field ids of the columns outside structs."""
    return {_id_of(field) for field in footer.schema.to_arrow_schema()}


def _problems(expected: Iterable[StructField], actual: Iterable[pa.Field], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the differences between the fields of a struct and those of the file."""
    by_id: dict[int, pa.Field] = {}
    for field in actual:
        number = _id_of(field)
        if number is None or number in by_id:
            yield f"column {'.'.join((*path, field.name))} has no field id of its own"
            return
        by_id[number] = field
    for column in expected:
        stored = by_id.pop(column.field_id if column.field_id is not None else -1, None)
        inner = (*path, column.name)
        if stored is None:
            if not column.nullable:
                yield f"the required column {'.'.join(inner)} is missing"
        elif stored.name != column.physical_name:
            yield f"column {'.'.join(inner)} is named '{stored.name}' in the file, and '{column.physical_name}' in the table's files"
        else:
            if path and not column.nullable:
                yield f"the footer does not prove that column {'.'.join(inner)} has no NULL"
            yield from _different_type(column.data_type, stored, column, column.physical_name, inner)
    # A column that is added later may get the name.
    yield from (f"column '{field.name}' with the field id {number} is not in the table" for number, field in by_id.items())


def _different_type(expected: DataType, stored: pa.Field, owner: StructField, key: str, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the differences between a type and that of a column of the file.

    Args:
        owner: the nearest field above, which has the ids of elements, keys and values.
        key: the position below it, as in these ids.
    """
    actual = stored.type
    match expected:
        case StructType() if pa.types.is_struct(actual):
            yield from _problems(expected.fields, actual.fields, path)
        case ArrayType(element) if pa.types.is_list(actual):
            yield from _different_part(element, actual.value_field, owner, f"{key}.element", path)
        case MapType(key_type, value) if pa.types.is_map(actual):
            yield from _different_part(key_type, actual.key_field, owner, f"{key}.key", path)
            yield from _different_part(value, actual.item_field, owner, f"{key}.value", path)
        case _ if isinstance(expected, StructType | ArrayType | MapType) or to_arrow_type(expected) != actual:
            yield f"column {'.'.join(path)} is of type {actual} in the file, and {expected} in the table"


def _different_part(expected: DataType, stored: pa.Field, owner: StructField, key: str, path: tuple[str, ...]) -> Iterator[str]:
    inner = (*path, key.rpartition(".")[2])
    if _id_of(stored) != nested_ids_of(owner).get(key):
        yield f"{'.'.join(inner)} has another field id than in the table"
    yield from _different_type(expected, stored, owner, key, inner)


def _id_of(field: pa.Field) -> int | None:
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else int(number)


def _has_only(footer: FileMetaData, name: str, value: Any) -> bool:
    """Whether each row has this value in a column outside structs, as far as the footer proves it."""
    for statistics, count in _statistics(footer, name):
        if statistics is None or not statistics.has_null_count:
            return False
        if value is None:
            if statistics.null_count != count:
                return False
        elif statistics.null_count or not statistics.has_min_max or not statistics.min == statistics.max == value:
            return False
    return True


def _has_no_null(footer: FileMetaData, name: str) -> bool:
    """Whether a column outside structs has no NULL, as far as the footer proves it."""
    return all(
        statistics is not None and statistics.has_null_count and not statistics.null_count
        for statistics, _ in _statistics(footer, name)
    )


def _statistics(footer: FileMetaData, name: str) -> Iterator[tuple[Any, int]]:
    """Yield the statistics of a column in each row group, and its number of values; None if there are none."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        columns = [column for column in map(group.column, range(group.num_columns)) if column.path_in_schema == name]
        yield (columns[0].statistics, columns[0].num_values) if columns else (None, 0)
