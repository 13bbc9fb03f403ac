"""Tables and rows to merge, and how results are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from pyspark.sql import SparkSession

from tahoe import Table
from tahoe.log.files.commits import read_commit
from tahoe.tables import DeltaTable

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
ON = "t.id = s.id"
Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("amount", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("notes", pa.map_(pa.string(), pa.int64())),
    ]
)


def row(number: int | None, part: str | None, amount: float | None) -> Row:
    """A row with something in every kind of column."""
    tags = None if number is None else [str(number), None]
    return {
        "id": number,
        "part": part,
        "amount": amount,
        "tags": tags,
        "place": {"city": part, "zip": number},
        "notes": [("n", number)],
    }


BEFORE = pa.Table.from_pylist(
    [row(1, "a", 1.0), row(2, "a", 2.0), row(3, "b", None), row(4, "b", 4.0), row(5, None, 5.0), row(None, "a", 6.0)], SCHEMA
)
NEWS = pa.Table.from_pylist(
    [row(2, "a", 20.0), row(4, "c", 40.0), row(5, "b", None), row(6, "a", 60.0), row(7, None, 70.0), row(None, "b", 80.0)], SCHEMA
)


def target(spark: SparkSession, table: Table) -> DeltaTable:
    return DeltaTable.forPath(spark, table.url).alias("t")


def reported(rows: pa.Table) -> list[str]:
    """The rows as comparable values, in an order of their own."""
    return sorted(str(item) for item in rows.select(sorted(rows.column_names)).to_pylist())


def as_deltalake_reads(table: Table) -> pa.Table:
    other = deltalake.DeltaTable(table.url)
    return pa.table(deltalake.QueryBuilder().register("t", other).execute("SELECT * FROM t").read_all())


def held_blocks(spark: SparkSession) -> int:
    """How many results the executors keep."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def last(table: Table, kind: type) -> list[Any]:
    return [action for action in read_commit(table.store, table.version()) if isinstance(action, kind)]


def amounts(table: Table) -> dict[Any, Any]:
    rows = table.to_arrow().to_pylist()
    assert len({item["id"] for item in rows}) == len(rows)
    return {item["id"]: item["amount"] for item in rows}


def two_files(
    path: Path, properties: dict[str, str] | None = None, rows: pa.Table = BEFORE, partition_by: tuple[str, ...] = ()
) -> Table:
    """A table of two files, or of some for each partition."""
    table = Table.create(path, rows.schema, partition_by=partition_by, properties=properties)
    table.append(rows.slice(0, 3))
    table.append(rows.slice(3))
    return table


def amounts_before() -> dict[Any, Any]:
    return {item["id"]: item["amount"] for item in BEFORE.to_pylist()}
