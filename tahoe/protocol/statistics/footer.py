"""Statistics of a Parquet file from its footer: no data is read, and values that a footer may get wrong are left out.

Left out are, for these reasons:

- INT96 timestamps, and texts above the writer's limit, have no bounds in a footer.
- A row group without bounds that has values makes the file's bounds unknown.
- Most writers leave NaN out of their bounds, though to Spark it is the greatest value: the greatest float counts only from
  parquet-mr, which ranks NaN as Spark does and so shows it. The least float always counts.
- A footer counts the elements of arrays and maps, and empty arrays and maps as NULLs; only a count of zero can be used for them.
- Dates and timestamps in the old hybrid calendar (Spark before 3.0) are other days than they seem.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pq
from tahoe.protocol.statistics.bounds import Leaf, bound_of, has_bounds
from tahoe.protocol.statistics.file_statistics import FileStatistics, StatisticsBuilder
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType


def footer_statistics(metadata: pq.FileMetaData, indexed: Sequence[Leaf], *, by_id: bool, prefix_length: int) -> FileStatistics:
    """The implementation of `tahoe.protocol.statistics.collect.statistics_of_footer`, which other modules call."""
    built = StatisticsBuilder(metadata.num_rows)
    variants = frozenset(_key(leaf, by_id) for leaf in indexed if leaf[-1].data_type == _VARIANT)
    positions = _positions(metadata, by_id, variants)
    if positions is None:
        return built.statistics()
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    trusted = _Trust(metadata)
    for leaf in indexed:
        data_type = leaf[-1].data_type
        position = positions.get(_key(leaf, by_id))
        if position is None:
            built.add(leaf, None, None, metadata.num_rows)  # a column that the file lacks is read as NULL
            continue
        chunks = [group.column(position) for group in groups if group.num_rows]
        statistics = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
        nulls = _null_count(statistics, data_type)
        least = greatest = None
        if has_bounds(data_type):
            least, greatest = _bounds(statistics, data_type, metadata.schema.column(position), trusted)
        built.add(
            leaf,
            bound_of(least, data_type, greatest=False, prefix_length=prefix_length),
            bound_of(greatest, data_type, greatest=True, prefix_length=prefix_length),
            nulls,
        )
    return built.statistics()


def shows_nan(metadata: pq.FileMetaData) -> bool:
    """Whether this footer's greatest value of a float column is NaN if the column has NaN, so that another greatest value excludes NaN.

    True for the versions of parquet-mr, Spark's Parquet writer, that are known to do so.
    """
    match = re.match(r"parquet-mr version 1\.(\d+)\.", metadata.created_by or "")
    return match is not None and int(match[1]) <= _LAST_KNOWN_PARQUET_MR


_Key = tuple[str, ...] | int
_VARIANT = PrimitiveType("variant")
_LAST_KNOWN_PARQUET_MR = 17
_EPOCH = date(1970, 1, 1)
_PER_SECOND = {"milliseconds": 10**3, "microseconds": 10**6}


class _Trust:
    """The values that the writer of a file is known to write correctly."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.shows_nan = shows_nan(metadata)
        members: Mapping[bytes, bytes] = metadata.metadata or {}
        spark = members.get(b"org.apache.spark.version")
        self.modern_calendar = b"org.apache.spark.legacyDateTime" not in members and not (spark is not None and spark < b"3")


def _key(leaf: Leaf, by_id: bool) -> _Key:
    if by_id:
        field_id = leaf[-1].field_id
        return -1 if field_id is None else field_id
    return tuple(column.physical_name for column in leaf)


def _positions(metadata: pq.FileMetaData, by_id: bool, variants: frozenset[_Key]) -> dict[_Key, int] | None:
    """Map each column to the position of its first leaf in the file, of a variant the leaf that every value has; None if the file's schema
    is not understood."""
    try:
        leaves = list(_walk(metadata.schema.to_arrow_schema(), (), variants))
    except pa.ArrowException:
        return None
    if not leaves and metadata.num_columns:
        return None
    positions: dict[_Key, int] = {}
    position = 0
    for path, column, width in leaves:
        if not metadata.schema.column(position).path.startswith(".".join(path)):
            return None
        key = path if not by_id else _id_of(column)
        if key is not None:
            positions[key] = position + (_before_metadata(column.type) if key in variants else 0)
        position += width
    if position != metadata.num_columns:
        return None
    # Without ids a reader by id finds no column in the file; another reader may.
    return None if by_id and not positions else positions


def _walk(
    fields: pa.Schema | pa.StructType, prefix: tuple[str, ...], variants: frozenset[_Key]
) -> Iterator[tuple[tuple[str, ...], pa.Field, int]]:
    """Yield each variant, and each other column that is not a struct, with the number of its leaves in the file."""
    for column in fields:
        path = (*prefix, column.name)
        if pa.types.is_struct(column.type) and path not in variants and _id_of(column) not in variants:
            yield from _walk(column.type.fields, path, variants)
        else:
            yield path, column, _width(column.type)


def _id_of(column: pa.Field) -> int | None:
    identifier = (column.metadata or {}).get(b"PARQUET:field_id")
    return None if identifier is None else int(identifier)


def _before_metadata(variant: pa.DataType) -> int:
    """Return the number of a variant's leaves before `metadata`, which every value has, shredded or not: its NULLs are the variant's."""
    before = 0
    for field in variant.fields if pa.types.is_struct(variant) else ():
        if field.name == "metadata":
            return before
        before += _width(field.type)
    return 0


def _width(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return 1
    return sum(_width(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def _null_count(statistics: Sequence[pq.Statistics | None], data_type: DataType) -> int | None:
    total = 0
    for group in statistics:
        if group is None or not group.has_null_count:
            return None
        total += group.null_count
    return None if total and isinstance(data_type, ArrayType | MapType) else total


def _bounds(
    statistics: Sequence[pq.Statistics | None], data_type: DataType, column: pq.ColumnSchema, trusted: _Trust
) -> tuple[Any, Any]:
    decode = _decoder(data_type, column, trusted)
    if decode is None:
        return None, None
    least: list[Any] = []
    greatest: list[Any] = []
    for group in statistics:
        if group is None:
            return None, None
        if group.has_min_max:
            least.append(group.min_raw)
            greatest.append(group.max_raw)
        elif not group.has_null_count or group.num_values:
            return None, None  # there are values without bounds
    if not least:
        return None, None
    if column.physical_type in ("FLOAT", "DOUBLE"):
        return _float_bounds(least, greatest, trusted)
    try:
        return min(map(decode, least)), max(map(decode, greatest))
    except (ValueError, OverflowError):  # not UTF-8, or a year outside the range of Python's dates
        return None, None


def _float_bounds(least: list[float], greatest: list[float], trusted: _Trust) -> tuple[Any, Any]:
    lower = min((value for value in least if not math.isnan(value)), default=None)
    if not trusted.shows_nan or any(map(math.isnan, greatest)):
        return lower, None
    return lower, max(greatest)


def _decoder(data_type: DataType, column: pq.ColumnSchema, trusted: _Trust) -> Callable[[Any], Any] | None:
    """Return a function from a raw bound to a Python value; None if the file's type does not determine the column's values."""
    physical, logical = column.physical_type, str(column.logical_type)
    match data_type:
        case PrimitiveType("string"):
            return _text if physical == "BYTE_ARRAY" and logical == "String" else None
        case PrimitiveType("byte" | "short" | "integer" | "long"):
            return int if _is_signed_whole(physical, logical) else None
        case PrimitiveType("float"):
            return float if physical == "FLOAT" and logical == "None" else None
        case PrimitiveType("double"):
            if logical == "None" and physical in ("FLOAT", "DOUBLE"):
                return float
            return float if physical == "INT32" and _is_signed_whole(physical, logical) else None
        case DecimalType(_, scale):
            return _decimal_decoder(physical, logical, column, scale)
        case PrimitiveType("date"):
            return _day if logical == "Date" and trusted.modern_calendar else None
        case PrimitiveType("timestamp" | "timestamp_ntz" as name):
            return _moment_decoder(logical, name) if trusted.modern_calendar else None
    return None


def _is_signed_whole(physical: str, logical: str) -> bool:
    return physical in ("INT32", "INT64") and (logical == "None" or (logical.startswith("Int(") and "isSigned=true" in logical))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8")


def _day(raw: int) -> date:
    return _EPOCH + timedelta(days=raw)


def _decimal_decoder(physical: str, logical: str, column: pq.ColumnSchema, scale: int) -> Callable[[Any], Any] | None:
    if logical.startswith("Decimal("):
        if column.scale > scale:
            return None
        stored = column.scale
    elif _is_signed_whole(physical, logical):
        stored = 0  # a column of whole numbers before it was widened
    else:
        return None

    def decode(raw: int | bytes) -> Decimal:
        unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -stored))

    return decode


def _moment_decoder(logical: str, name: str) -> Callable[[int], int] | None:
    """Return a conversion to microseconds; Delta has no nanoseconds, so a file with them is not understood."""
    if name == "timestamp_ntz" and logical == "Date":
        return lambda raw: raw * 86_400_000_000
    match = re.fullmatch(r"Timestamp\(isAdjustedToUTC=(true|false), timeUnit=(\w+),.*", logical)
    if not match or (match[1] == "true") != (name == "timestamp"):
        return None
    per_second = _PER_SECOND.get(match[2])
    if per_second is None:
        return None
    factor = 10**6 // per_second
    return lambda raw: raw * factor
