"""Convert the partitions of an Iceberg table to partition columns of a Delta table: existing columns, and generated columns.

    identity(c) ─► c          day(at) ─► at_day DATE = cast(at as date)          bucket(4, c) ─► nothing

Names, types and expressions are those of delta-spark. A generated column is not in the files: its values come from the manifests. They must
equal the values of the expression for the rows of the file, or a filter would skip matching rows. The table is refused if they may differ.
Transforms are in UTC (Iceberg's format/spec.md, "Partition Transforms"), SQL expressions in the time zone of the session. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.ops.copies.iceberg_columns import places_in_file
from tahoe.protocol.partition import serialize
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.mapping import ID_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import GENERATION_EXPRESSION, PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

    from tahoe.ops.copies.iceberg_snapshot import IcebergFile, IcebergSnapshot


_TIMES = ("timestamp", "timestamp_ntz")
_WHOLE = ("integer", "long")
_UTC = re.compile(
    r"(?:UTC|GMT|UT|UCT|Zulu|Universal|Greenwich|GMT0|Etc/(?:UTC|GMT|UCT|Zulu|Universal))|Z|(?:UTC|GMT|UT)?[+-]0?0(?::?00)?"
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EPOCH = datetime(1970, 1, 1)

Bounds = Mapping[int, tuple[Any, Any]]
"""The minimum and the maximum of a file's columns, by column id; only columns of which the footer has both."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition column.

    Args:
        source: the id of the source column.
        transform: Iceberg's text: ``identity``, ``day``, ``truncate[4]``.
        name: the name of the partition column.
        path: the fields from the top of the schema to the source column.
        kind: the type of the partition column.
        expression: the generation expression; None for the source column itself.
    """

    source: int
    transform: str
    name: str
    path: tuple[StructField, ...]
    kind: PrimitiveType
    expression: str | None


def partitions_of(snapshot: IcebergSnapshot, schema: StructType, table: str, time_zone: str) -> list[Partition]:
    """Return the partition columns, in Iceberg's order. Bucket transforms give no partition column, as in delta-spark.

    Args:
        schema: the schema without generated columns.
        table: the table's URL, for error messages.
        time_zone: the time zone of the session, in which SQL converts instants to dates and hours.

    Raises:
        Unsupported: ``TAHOE_ICEBERG_PARTITION_TRANSFORM``: Delta has no such generated column; ``TAHOE_ICEBERG_PARTITION_TIME_ZONE``: the
            partition values are in UTC, and the session has another time zone.
    """
    partitions = []
    for transform, source, name in snapshot.specs[snapshot.spec_id]:
        if transform == "void" or transform.startswith("bucket"):
            continue
        path = _path(schema, source)
        made = None if path is None else _made(transform, path, source, name)
        if path is None or made is None:
            raise Unsupported(
                f"The Iceberg table {table} is partitioned by {name}, which is {transform} of "
                f"{'no column that it has' if path is None else f'{_spelt(path)}, of type {path[-1].data_type}'}: no column of a Delta table "
                "is generated so. Partition the table otherwise with an Iceberg engine and let it rewrite the files "
                "(rewrite_data_files), or write its rows to a Delta table with Spark.",
                code="TAHOE_ICEBERG_PARTITION_TRANSFORM",
                table=table,
                column=name,
            )
        _check_zone(made, table, time_zone)
        partitions.append(made)
    return partitions


def with_generated(schema: StructType, partitions: Iterable[Partition], last_id: int) -> tuple[StructType, int]:
    """Return the schema with the generated columns, whose ids follow `last_id`; and the new highest id."""
    columns = list(schema)
    taken = {column.physical_name.lower() for column in columns}
    for partition in partitions:
        if partition.expression is None:
            continue
        last_id += 1
        physical = partition.name if partition.name.lower() not in taken else f"{partition.name}-{last_id}"
        source = partition.path[-1]
        metadata = {ID_KEY: last_id, PHYSICAL_NAME_KEY: physical, GENERATION_EXPRESSION: partition.expression}
        if "comment" in source.metadata:
            metadata["comment"] = source.metadata["comment"]
        columns.append(StructField(partition.name, partition.kind, source.nullable or len(partition.path) > 1, metadata))
    return StructType(tuple(columns)), last_id


def partition_values(file: IcebergFile, partitions: Iterable[Partition], schema: StructType, table: str) -> dict[str, str | None]:
    """Return the partition values of a file, as the log stores them.

    Args:
        schema: the schema with the generated columns.

    Raises:
        InvalidRequest: ``DELTA_CLONE_INCOMPATIBLE_SOURCE``: the file has another partition spec.
        Unsupported: ``TAHOE_ICEBERG_EMPTY_PARTITION_VALUE``, ``TAHOE_ICEBERG_PARTITION_VALUE``: Delta cannot represent the value.
    """
    values = {}
    for partition in partitions:
        value = _value(file, partition, table)
        if value in ("", b""):
            raise Unsupported(
                f"File {file.name} of the Iceberg table {table} is of the partition {partition.name} = '', an empty text, which Delta reads "
                "as NULL (PROTOCOL.md, 'Partition Value Serialization'). Give these rows another value first.",
                code="TAHOE_ICEBERG_EMPTY_PARTITION_VALUE",
                table=table,
                file=file.name,
            )
        values[schema.field(partition.name).physical_name] = serialize(value, partition.kind)
    return values


# -- columns -----------------------------------------------------------------------------------------------------------------


def _path(schema: StructType, source: int) -> tuple[StructField, ...] | None:
    for column in schema:
        if column.field_id == source:
            return (column,)
        inner = _path(column.data_type, source) if isinstance(column.data_type, StructType) else None
        if inner is not None:
            return (column, *inner)
    return None


def _made(transform: str, path: tuple[StructField, ...], source: int, name: str) -> Partition | None:
    """Return the partition column; None if Delta cannot represent it."""
    kind = path[-1].data_type
    if not isinstance(kind, PrimitiveType) and transform != "identity":
        return None
    if transform == "identity":
        return Partition(source, transform, path[0].name, path, kind, None) if len(path) == 1 else None  # type: ignore[arg-type]
    column = _spelt(path)
    generated = _generated(transform, column, str(kind))
    if generated is None:
        return None
    expression, made = generated
    return Partition(source, transform, name, path, PrimitiveType(made), expression)


def _generated(transform: str, column: str, kind: str) -> tuple[str, str] | None:
    """Return delta-spark's generation expression and its type; None if there is no such expression."""
    if kind in (*_TIMES, "date"):
        match transform:
            case "year":
                return f"year({column})", "integer"
            case "month":
                return f"date_format({column}, 'yyyy-MM')", "string"
            case "day":
                return f"cast({column} as date)", "date"
            case "hour" if kind != "date":
                return f"date_format({column}, 'yyyy-MM-dd-HH')", "string"
    width = re.fullmatch(r"truncate\[(\d+)\]", transform)
    if width is not None and kind == "string":
        return f"substring({column}, 0, {width[1]})", "string"
    # An intermediate result of the expression is almost twice the width.
    if width is not None and kind in _WHOLE and int(width[1]) <= 2**30:
        return f"{column} - (({column} % {width[1]}) + {width[1]}) % {width[1]}", kind
    return None


def _spelt(path: Iterable[StructField]) -> str:
    """Return the column path for an expression, quoted only where necessary: delta-spark never quotes."""
    return ".".join(column.name if _PLAIN.fullmatch(column.name) else f"`{column.name.replace('`', '``')}`" for column in path)


def _check_zone(partition: Partition, table: str, time_zone: str) -> None:
    """Raise `Unsupported` if the expression gives other values than the transform in the session's time zone.

    TIMESTAMP_NTZ values do not depend on the zone, except for hours that a daylight saving change skips.
    """
    kind = str(partition.path[-1].data_type)
    depends = partition.expression is not None and (
        kind == "timestamp" or (kind == "timestamp_ntz" and partition.transform == "hour")
    )
    if depends and not _UTC.fullmatch(time_zone):
        raise Unsupported(
            f"The Iceberg table {table} is partitioned by {partition.name}, the {partition.transform} of {_spelt(partition.path)} in UTC. A "
            f"generated column of a Delta table is that in the session's time zone, {time_zone}: its values would be others than those of "
            "the files, and readers would leave out rows. Convert in a session of UTC (spark.sql.session.timeZone), and write and query "
            "with other engines in UTC as well.",
            code="TAHOE_ICEBERG_PARTITION_TIME_ZONE",
            table=table,
            column=partition.name,
        )


# -- values ------------------------------------------------------------------------------------------------------------------


def _value(file: IcebergFile, partition: Partition, table: str) -> Any:
    """Return a file's partition value as the Python type of its column.

    PyIceberg returns the dates and timestamps of manifests, and the results of transforms of them, as numbers.
    """
    if (partition.source, partition.transform) not in file.partition:
        raise InvalidRequest(
            f"The Iceberg table {table} has undergone partition evolution: its file {file.name} is not partitioned by {partition.name}, as "
            "the table is now. Let an Iceberg engine rewrite the older files (rewrite_data_files).",
            code="DELTA_CLONE_INCOMPATIBLE_SOURCE.ICEBERG_UNDERGONE_PARTITION_EVOLUTION",
            table=table,
            file=file.name,
        )
    value = file.partition[partition.source, partition.transform]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        return _of_number(value, partition.transform, str(partition.kind))
    except OverflowError as error:
        raise Unsupported(
            f"File {file.name} of the Iceberg table {table} is of the partition {partition.name} = {value}, by {partition.transform}: a time "
            "outside of the years 0001 to 9999, whose text Delta and Iceberg write differently. Let an Iceberg engine move these rows away "
            "first.",
            code="TAHOE_ICEBERG_PARTITION_VALUE",
            table=table,
            file=file.name,
        ) from error


def _of_number(value: int, transform: str, kind: str) -> Any:
    match transform:
        case "year":
            return _month(12 * value).year
        case "month":
            at = _month(value)
            return f"{at.year:04}-{at.month:02}"
        case "hour":
            hour = _EPOCH + timedelta(hours=value)
            return f"{hour.year:04}-{hour.month:02}-{hour.day:02}-{hour.hour:02}"
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=value)
    if kind in _TIMES:
        at_once = _EPOCH + timedelta(microseconds=value)
        return at_once.replace(tzinfo=UTC) if kind == "timestamp" else at_once
    return value


def _month(number: int) -> date:
    """The first day of a month, counted from January 1970."""
    year = 1970 + number // 12
    if not 1 <= year <= 9999:
        raise OverflowError(year)
    return date(year, number % 12 + 1, 1)


# -- checks of the values --------------------------------------------------------------------------------------------------


def bounds_of(footer: FileMetaData, columns: pa.Schema, partitions: Sequence[Partition]) -> Bounds:
    """Return the bounds of the source columns of generated numbers and times. Strings are left out: footers may have truncated bounds.

    Args:
        columns: the Arrow schema of the file.
    """
    sources = {
        partition.source
        for partition in partitions
        if partition.expression is not None and str(partition.path[-1].data_type) != "string"
    }
    if not sources:
        return {}
    places = {place: number for number, place in places_in_file(columns) if number in sources}
    merged: dict[int, tuple[Any, Any]] = {}
    silent = set[int]()
    for group in range(footer.num_row_groups):
        for number, bounds in _in_group(footer.row_group(group), places):
            if bounds is None:
                silent.add(number)
                continue
            least, greatest = merged.get(number, bounds)
            merged[number] = min(least, bounds[0]), max(greatest, bounds[1])
    return {number: bounds for number, bounds in merged.items() if number not in silent}


def _in_group(group: Any, places: Mapping[str, int]) -> Iterator[tuple[int, tuple[Any, Any] | None]]:
    """Yield the id and the bounds of each column of a row group; None if it has no bounds. All-NULL columns are left out."""
    for at in range(group.num_columns):
        column = group.column(at)
        number = places.get(column.path_in_schema)
        if number is None:
            continue
        statistics = column.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == column.num_values:
            continue
        try:
            yield number, (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None
        except (ValueError, OverflowError):  # a time outside the range of Python's datetime
            yield number, None


def check_bounds(files: Sequence[IcebergFile], bounds: Sequence[Bounds], partitions: Iterable[Partition], table: str) -> None:
    """Refuse a table in which the footer bounds of a file contradict its partition value: old versions of Iceberg rounded times before 1970
    towards 1970.

    Raises `Unsupported` (``TAHOE_ICEBERG_PARTITION_VALUE``).
    """
    for partition in partitions:
        bounded = [
            (file, by_source[partition.source])
            for file, by_source in zip(files, bounds, strict=True)
            if partition.source in by_source
        ]
        if partition.expression is None or not bounded:
            continue
        base = replace(partition.path[-1], name="c")
        values = pa.array([value for _, both in bounded for value in both], to_arrow_type(base.data_type))
        expression, _ = _generated(partition.transform, "c", str(base.data_type)) or ("", "")
        try:
            made = compute(parse_expression(expression, StructType((base,))), pa.table({"c": values})).to_pylist()
        except InvalidRequest as error:  # a number so close to its type's minimum that it cannot be rounded down
            raise Unsupported(
                f"The Iceberg table {table} has values of {_spelt(partition.path)} from which {partition.name} cannot be generated as "
                f"'{partition.expression}': {error} Give these rows another value with an Iceberg engine first.",
                code="TAHOE_ICEBERG_PARTITION_VALUE",
                table=table,
                column=partition.name,
            ) from error
        for at, (file, both) in enumerate(bounded):
            expected = _value(file, partition, table)
            if any(value != expected for value in made[2 * at : 2 * at + 2]):
                raise Unsupported(
                    f"File {file.name} of the Iceberg table {table} is of the partition {partition.name} = {expected}, and has values of "
                    f"{_spelt(partition.path)} from {both[0]} to {both[1]}, whose {partition.transform} is not that: a filter would leave "
                    "out rows. Let an Iceberg engine rewrite the file (rewrite_data_files).",
                    code="TAHOE_ICEBERG_PARTITION_VALUE",
                    table=table,
                    file=file.name,
                )
