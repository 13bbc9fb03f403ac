"""Parse partition values from folder names, ``day=2026-03-01/region=a%2Fb``, as Spark and Hive write them. Pure text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.protocol.partition import HIVE_NULL, deserialize, serialize
from tahoe.schema.types import DataType, PrimitiveType, StructType

_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def folder_values(name: str) -> list[tuple[str, str | None]]:
    """Return the partition columns and values in a file's name, outermost first; None for Hive's name of NULL.

    Only the innermost sequence of adjacent folders with an equals sign counts: ``a=1/b=2`` in ``x/a=1/b=2/y/f.parquet``.
    """
    pairs: list[tuple[str, str | None]] = []
    for folder in reversed(name.split("/")[:-1]):
        column, equals, value = folder.partition("=")
        if equals and column:
            text = _unescaped(value)
            pairs.append((_unescaped(column), None if text in ("", HIVE_NULL) else text))
        elif pairs:
            break
    return pairs[::-1]


class PartitionReader:
    """Reads the partition values of files from their names.

    Args:
        columns: the partition columns, in order.
        url: the folder's URL, for error messages.
        time_zone: the zone of timestamps without one; the log stores instants.
        bad_values_are_null: read a value that cannot be cast to its column's type as NULL; else refuse it.
    """

    def __init__(self, columns: StructType, url: str, time_zone: str = "UTC", *, bad_values_are_null: bool = False) -> None:
        self._columns = columns
        self._url = url
        self._zone = zone_of(time_zone)
        self._bad_values_are_null = bad_values_are_null

    def values(self, name: str) -> dict[str, str | None]:
        """Return the partition values of a file, as the log stores them.

        Raises:
            InvalidRequest: ``DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME``, ``DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME``:
                the folders name other columns; ``DELTA_FAILED_CAST_PARTITION_VALUE``: a value is not of its column's type.
        """
        pairs = folder_values(name)
        names, columns = [column for column, _ in pairs], self._columns.names
        if len(names) != len(columns):
            raise InvalidRequest(
                f"Expecting {len(columns)} partition column(s): {_listed(columns)}, but found {len(names)} partition column(s): "
                f"{_listed(names)} from parsing the file name: {self._url}/{name}. Name the partition columns of the folders: "
                "PARTITIONED BY (column type, …).",
                code="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
                table=self._url,
                file=name,
            )
        for expected, column in zip(columns, names, strict=True):
            if expected.lower() != column.lower():
                raise InvalidRequest(
                    f"Expecting partition column {expected}, but found partition column {column} from parsing the file name: "
                    f"{self._url}/{name}. Name the partition columns in the order of the folders.",
                    code="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                    table=self._url,
                    file=name,
                )
        return {
            column.name: self._value(text, column.data_type, column.name, name)
            for column, (_, text) in zip(self._columns, pairs, strict=True)
        }

    def _value(self, text: str | None, data_type: DataType, column: str, name: str) -> str | None:
        if text is None:
            return None
        try:
            return serialize(self._typed(text, data_type), data_type)
        except TahoeError as error:
            if self._bad_values_are_null:
                return None
            raise InvalidRequest(
                f"Failed to cast partition value `{text[:100]}` to {data_type}: column {column} of the file {self._url}/{name}. Give the "
                "column another type, or rename the folder.",
                code="DELTA_FAILED_CAST_PARTITION_VALUE",
                table=self._url,
                file=name,
                column=column,
            ) from error

    def _typed(self, text: str, data_type: DataType) -> Any:
        if data_type == PrimitiveType("timestamp"):
            for kind in ("timestamp_ntz", "date"):  # no zone in the text: use the configured zone
                local = _or_none(lambda kind=kind: deserialize(text, PrimitiveType(kind)))  # type: ignore[misc]
                if local is not None:
                    timestamp = local if isinstance(local, datetime) else datetime(local.year, local.month, local.day)
                    return timestamp.replace(tzinfo=self._zone)
        return deserialize(text, data_type)


def _or_none(read: Callable[[], object]) -> Any:
    try:
        return read()
    except TahoeError:
        return None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(names) + "]"
