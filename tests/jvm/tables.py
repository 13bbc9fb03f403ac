"""Tables of many shapes, written by Tahoe without Spark, and their expected rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from tahoe import Table

__all__ = ["ICEBERG", "TABLES", "rows_of_all_types"]

TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("real", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("text", pa.string()),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("place", pa.struct([("x", pa.float64()), ("name", pa.string())])),
        ("part", pa.string()),
    ]
)


def rows_of_all_types(start: int, count: int) -> pa.Table:
    rows = [
        {
            "id": i,
            "flag": i % 2 == 0,
            "small": i % 100,
            "number": -i,
            "real": i / 4,
            "amount": Decimal(i * 100 + 7) / 100,
            "text": f"text ü {i}" if i % 5 else None,
            "data": bytes([i % 256]),
            "day": dt.date(2020, 1, 1) + dt.timedelta(i),
            "moment": dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i, microseconds=i),
            "tags": [str(i), None] if i % 3 else [],
            "counts": {"a": i},
            "place": {"x": float(i), "name": f"n{i}"} if i % 4 else None,
            "part": ["a", "b c", "d/e=f", None][i % 4],
        }
        for i in range(start, start + count)
    ]
    return pa.Table.from_pylist(rows, TYPES)


def plain(path: str) -> Table:
    table = Table.create(path, TYPES, properties={"delta.checkpointInterval": "3"})
    for start in range(0, 50, 10):
        table.append(rows_of_all_types(start, 10))
    return table


def partitioned(path: str) -> Table:
    table = Table.create(path, TYPES, partition_by=["part", "day"])
    table.append(rows_of_all_types(0, 12))
    table.overwrite(rows_of_all_types(100, 4), dynamic_partitions=True)
    return table


def sidecars(path: str) -> Table:
    """V2 checkpoints every second version, of which each names sidecars of the one before."""
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2", "delta.enableDeletionVectors": "true"}
    table = Table.create(path, TYPES, partition_by=["part"], properties=properties)
    for start in range(0, 60, 10):
        table.append(rows_of_all_types(start, 10))
    table.delete("id % 7 = 3")
    table.delete("part = 'a'")
    table.append(rows_of_all_types(60, 10))
    return table


def changed_with_vectors(path: str) -> Table:
    return _changed(path, {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})


def changed_by_rewriting(path: str) -> Table:
    return _changed(path, {})


def mapped(path: str) -> Table:
    return _changed(path, {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"})


def tracked(path: str) -> Table:
    return _changed(path, {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"})


def uniform(path: str) -> Table:
    return _changed(path, _ICEBERG_V2, partition_by=["part"])


def _changed(path: str, properties: dict[str, str], partition_by: list[str] | None = None) -> Table:
    table = Table.create(path, TYPES, properties=properties, partition_by=partition_by or [])
    table.append(rows_of_all_types(0, 40))
    table.append(rows_of_all_types(40, 40))
    table.delete("id % 7 = 3")
    table.update({"text": "concat(text, '!')", "place.x": "-1"}, "id between 10 and 30")
    table.checkpoint()
    merge = table.merge(rows_of_all_types(70, 20), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("number = -75")
    return table


_ICEBERG_V2 = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}

TABLES: dict[str, Callable[[str], Table]] = {
    make.__name__: make
    for make in (plain, partitioned, sidecars, changed_with_vectors, changed_by_rewriting, mapped, tracked, uniform)
}
ICEBERG: dict[str, Callable[[str], Table]] = {"uniform": uniform}
