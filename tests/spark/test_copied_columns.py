"""Tables after random changes that copy columns as bytes: five readers return the same rows."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe import Table
from tahoe.ops.rows import changed_columns
from tests.interop.engines import canonical, read_deltalake, read_duckdb
from tests.interop.iceberg import read_pyiceberg
from tests.sampling import FIRST_OR_ALL

SCHEMA = pa.schema(
    [
        ("part", pa.string()),  # DuckDB reads a mapped partition column only if it is the first
        ("id", pa.int64()),
        ("number", pa.int32()),
        ("text", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("pair", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
ICEBERG = {
    "delta.enableIcebergCompatV2": "true",
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "false",
}
VALUES = {
    "number": ["number + 1", "NULL", "CAST(id AS INT)"],
    "text": ["concat(text, '!')", "NULL", "'equal'"],
    "price": ["price + 1", "1.25"],
    "day": ["DATE'2026-01-31'", "NULL"],
    "pair.b": ["'new'"],
}


def rows(chance: random.Random, first: int, count: int) -> pa.Table:
    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    records = [
        {
            "id": number,
            "number": some(chance.randrange(40)),
            "text": some(f"text {chance.randrange(90)}"),
            "price": some(Decimal(chance.randrange(10_000)) / 100),
            "day": some(date(2026, 1, 1) + timedelta(chance.randrange(60))),
            "pair": some({"a": chance.randrange(9), "b": some("b")}),
            "part": chance.choice("abc"),
        }
        for number in range(first, first + count)
    ]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def condition(chance: random.Random) -> str:
    low = chance.randrange(400)
    return chance.choice([f"id % 9 = {low % 9}", f"id BETWEEN {low} AND {low + 60}", f"part = 'a' AND id > {low}", "number < 7"])


def change(table: Table, chance: random.Random, step: int) -> None:
    kind = chance.choice(["update", "update", "update", "delete", "append", "merge"])
    if kind == "update":
        columns = chance.sample(sorted(VALUES), chance.randrange(1, 4))
        table.update({column: chance.choice(VALUES[column]) for column in columns}, condition(chance))
    elif kind == "delete":
        table.delete(f"({condition(chance)}) AND id % 3 = 0")
    elif kind == "append":
        table.append(rows(chance, 1000 * (step + 1), 50))
    else:
        source = rows(chance, chance.randrange(400), 40)
        table.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()


@pytest.mark.parametrize("first", FIRST_OR_ALL)
def test_every_reader_returns_the_same_rows(spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    copied = []
    rewritten = changed_columns.ChangedColumns.rewritten

    def noted(self: Any, changes: Any, *more: Any) -> Any:
        by_path = rewritten(self, changes, *more)
        copied.append(len(by_path))
        return by_path

    monkeypatch.setattr(changed_columns.ChangedColumns, "rewritten", noted)
    for seed in range(1 if first else 12):
        chance, folder = random.Random(seed), f"{path}/{seed}"
        table = Table.create(folder, SCHEMA, partition_by=["part"] if seed % 2 else [], properties=ICEBERG)
        table.append(rows(chance, 0, 400), max_rows_per_file=100)
        for step in range(8):
            change(table, chance, step)
        expected = canonical(table.to_arrow())
        location = table.uniform.sync().metadata_location
        readers = {
            "Spark": spark.read.format("delta").load(folder).toArrow(),
            "deltalake": read_deltalake(folder),
            "DuckDB": read_duckdb(folder),
            "PyIceberg": read_pyiceberg(str(location)),
        }
        for name, read in readers.items():
            assert canonical(read.select(SCHEMA.names)) == expected, (seed, name)
        assert table.check(deep=True, strict=True) == [], seed
    assert sum(copied) > 0
