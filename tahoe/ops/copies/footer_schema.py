"""The schema of a table from the footers of its Parquet files: the schema of each file, and the merged schema. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.evolve import as_nullable
from tahoe.schema.geospatial import is_geospatial_name
from tahoe.schema.mapping import transform_fields
from tahoe.schema.types import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_geospatial,
    schema_from_json,
)
from tahoe.schema.walk import paths_of_type

if TYPE_CHECKING:
    import pyarrow.parquet


_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_WHOLE = ("byte", "short", "integer")  # one physical type: files of a narrower type can be read as a wider one


def footer_schema(footer: pyarrow.parquet.FileMetaData, place: str) -> StructType:
    """Return the columns of a Parquet file, all nullable: from the Spark schema in its metadata if there is one, else from its own schema.

    Args:
        place: the file's URL, for error messages.

    Raises `Unsupported`: Delta has no such type.
    """
    noted = (footer.metadata or {}).get(_SPARK_SCHEMA)
    if noted is not None:
        try:
            schema = schema_from_json(noted.decode())
            _refuse_geospatial(paths_of_type(schema, is_geospatial), place)
            return as_nullable(transform_fields(schema, _with_comment))
        except Unsupported as error:  # an interval: its physical columns look like another type
            raise Unsupported(f"{place}: {error.message}", code=error.code, file=place) from error
        except (TahoeError, UnicodeDecodeError):
            pass  # a user-defined type: use the physical columns
    try:
        converted = from_arrow_schema(footer.schema.to_arrow_schema())
    except Unsupported as error:
        raise Unsupported(f"{place}: {error.message}", code=error.code, file=place) from error
    zoned, refused, geospatial = _by_physical_type(footer)
    for column in refused:
        raise Unsupported(
            f"Column {column} of {place} contains timestamps in nanoseconds, for which Delta has no type. Rewrite the file with "
            "microseconds.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            file=place,
            column=column,
        )
    _refuse_geospatial(geospatial, place)
    return as_nullable(_with_instants(converted, zoned, ()))


def merged(schema: StructType, other: StructType, place: str) -> StructType:
    """Merge two schemas, the columns of the first one first. Of two integer types of up to 32 bits the wider one is used.

    Args:
        other: the schema of the file at `place`.

    Raises `InvalidRequest` (``DELTA_FAILED_TO_MERGE_FIELDS``): the types of a column cannot be read as one type.
    """
    try:
        return _struct(schema, other, ())
    except _TypeConflict as difference:
        path, first, second = difference.args
        raise InvalidRequest(
            f"Failed to merge schema of file {place}: column {'.'.join(path)} is of type {second} in it, and of type {first} in others. "
            "Rewrite the file with that type, or convert the files one folder at a time.",
            code="DELTA_FAILED_TO_MERGE_FIELDS",
            file=place,
            column=".".join(path),
        ) from None


class _TypeConflict(Exception):
    """Two types cannot be merged; the arguments are the column path and the two types."""


def _struct(first: StructType, second: StructType, path: tuple[str, ...]) -> StructType:
    fields = []
    for column in first:
        other = second.find(column.name)
        kind = column.data_type if other is None else _type(column.data_type, other.data_type, (*path, column.name))
        fields.append(replace(column, data_type=kind))
    return StructType((*fields, *(column for column in second if first.find(column.name) is None)))


def _type(first: DataType, second: DataType, path: tuple[str, ...]) -> DataType:
    if first == second:
        return first
    match first, second:
        case StructType(), StructType():
            return _struct(first, second, path)
        case ArrayType(), ArrayType():
            return replace(first, element_type=_type(first.element_type, second.element_type, (*path, "element")))
        case MapType(), MapType():
            return replace(
                first,
                key_type=_type(first.key_type, second.key_type, (*path, "key")),
                value_type=_type(first.value_type, second.value_type, (*path, "value")),
            )
        case PrimitiveType("void"), _:
            return second
        case _, PrimitiveType("void"):
            return first
        case PrimitiveType(left), PrimitiveType(right) if left in _WHOLE and right in _WHOLE:
            return PrimitiveType(max(left, right, key=_WHOLE.index))
    raise _TypeConflict(path, first, second)


def _with_comment(column: StructField) -> StructField:
    """Return the column with its comment as the only metadata."""
    return replace(column, metadata={key: value for key, value in column.metadata.items() if key == "comment"})


def _by_physical_type(footer: pyarrow.parquet.FileMetaData) -> tuple[set[tuple[str, ...]], list[str], list[str]]:
    """Return the INT96 columns (instants, although Arrow reads them without a zone), nanosecond columns and geospatial columns."""
    zoned, refused, geospatial = set(), [], []
    for index in range(len(footer.schema)):
        column = footer.schema.column(index)
        logical = str(column.logical_type).lower()
        if column.physical_type == "INT96":
            zoned.add(tuple(column.path.split(".")))
        elif "nanoseconds" in logical:
            refused.append(column.path)
        elif is_geospatial_name(logical):
            geospatial.append(column.path)
    return zoned, refused, geospatial


def _refuse_geospatial(columns: list[str], place: str) -> None:
    """Raise `Unsupported` for geospatial columns, as delta-spark does: their values are unchecked, and few clients can read them."""
    if columns:
        raise Unsupported(
            f"CONVERT TO DELTA is not supported for data types: geometries or geographies, the type of column '{columns[0]}' of {place}. "
            "Create a table with the column, and insert the rows.",
            code="DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
            file=place,
            column=columns[0],
        )


def _with_instants(schema: StructType, zoned: set[tuple[str, ...]], path: tuple[str, ...]) -> StructType:
    return StructType(tuple(_instant(column, zoned, (*path, column.name)) for column in schema)) if zoned else schema


def _instant(column: StructField, zoned: set[tuple[str, ...]], path: tuple[str, ...]) -> StructField:
    inside = [zoned_path for zoned_path in zoned if zoned_path[: len(path)] == path]
    return replace(column, data_type=_instants(column.data_type)) if inside else column


def _instants(kind: DataType) -> DataType:
    """Replace every TIMESTAMP_NTZ by TIMESTAMP: a file with INT96 columns has no other timestamps."""
    match kind:
        case StructType(fields):
            return StructType(tuple(replace(column, data_type=_instants(column.data_type)) for column in fields))
        case ArrayType(element):
            return replace(kind, element_type=_instants(element))
        case MapType(key, value):
            return replace(kind, key_type=_instants(key), value_type=_instants(value))
        case PrimitiveType("timestamp_ntz"):
            return PrimitiveType("timestamp")
    return kind
