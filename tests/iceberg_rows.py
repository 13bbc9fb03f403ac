"""Rows of Iceberg tables that are partitioned by transforms, written by PyIceberg: files, metadata and values of partitions.

Its own ``append`` divides rows by a library of Rust that is not among the requirements; here its transforms in Python divide them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import write_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, WriteTask
from pyiceberg.typedef import Record

__all__ = ["append_partitioned"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Key:
    """A `pyiceberg.partitioning.PartitionKey`, which knows no two fields of one column."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.partition = Record(*values)

    def to_path(self) -> str:
        return f"of-{uuid.uuid4()}"  # the name of a folder has no meaning, and PyIceberg cannot print years beyond 9999


def append_partitioned(table: Table, rows: pa.Table, partition: tuple[Any, ...] | None = None) -> list[DataFile]:
    """Append rows as one snapshot, a file for each partition, and return the files.

    Args:
        partition: the partition of the files in the table, whether it is right or not.
    """
    divided: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows.to_pylist()):
        divided.setdefault(tuple(_values(table, row)) if partition is None else partition, []).append(number)
    numbers, write_uuid = count(), uuid.uuid4()
    tasks = (
        WriteTask(write_uuid, next(numbers), table.schema(), rows.take(places).to_batches(), partition_key=_Key(values))  # type: ignore[arg-type]
        for values, places in divided.items()
    )
    files = list(write_file(table.io, table.metadata, tasks))
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)
    return files


def _values(table: Table, row: dict[str, Any]) -> Iterable[Any]:
    schema = table.schema()
    for field in table.spec().fields:
        value: Any = row
        for name in schema.find_column_name(field.source_id).split("."):  # type: ignore[union-attr]
            value = None if value is None else value[name]
        yield field.transform.transform(schema.find_field(field.source_id).field_type)(_number(value))


def _number(value: Any) -> Any:
    """Dates and timestamps as transforms take them."""
    if isinstance(value, datetime):
        past = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value
