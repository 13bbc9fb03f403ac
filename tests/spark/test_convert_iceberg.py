"""CONVERT TO DELTA and CLONE of an Iceberg table, by SQL and by `DeltaTable`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, MonthTransform, TruncateTransform, YearTransform

import tahoe
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.tables import DeltaTable
from tests.iceberg_rows import append_partitioned

EXPECTED = [(1, "a", None), (2, "b", None), (3, None, None), (4, "d", 40)]


@pytest.fixture
def iceberg(tmp_path: Path):
    """The folder of a table whose column was renamed, and one added, between two files; partitioned by `p`."""
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None], "p": ["x y", "x y", "z"]})
    table = catalog.create_table("db.t", rows.schema)
    with table.update_spec() as change:
        change.add_identity("p")
    table.append(rows)
    with table.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("more", table.schema().find_type("id"))
    table.append(pa.table({"id": pa.array([4], pa.int64()), "label": ["d"], "p": ["z"], "more": pa.array([40], pa.int64())}))
    catalog.engine.dispose()
    return table.location().removeprefix("file://")


def rows(spark, path):
    return sorted((row.id, row.label, row.more) for row in spark.read.format("delta").load(str(path)).collect())


def test_convert_by_sql(spark, iceberg):
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CONVERT TO DELTA iceberg.`{iceberg}` PARTITIONED BY (p STRING)")
    assert caught.value.getErrorClass() == "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES"
    assert spark.sql(f"CONVERT TO DELTA iceberg.`{iceberg}` NO STATISTICS").collect() == []
    assert rows(spark, iceberg) == EXPECTED
    lines = (Path(iceberg) / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    info = next(action["commitInfo"] for line in lines if "commitInfo" in (action := json.loads(line)))
    expected = {"numFiles": 3, "partitionedBy": "[]", "collectStats": False, "sourceFormat": "iceberg"}
    assert info["operationParameters"] == expected
    assert spark.sql(f"SELECT label FROM delta.`{iceberg}` WHERE p = 'x y' AND label > 'a'").first()[0] == "b"
    spark.sql(f"DELETE FROM delta.`{iceberg}` WHERE label = 'a'")
    spark.sql(f"INSERT INTO delta.`{iceberg}` (id, label, p, more) VALUES (5, 'e', 'x y', 50)")
    assert rows(spark, iceberg) == [*EXPECTED[1:], (5, "e", 50)]
    assert tahoe.Table(iceberg).check(deep=True) == []


def test_convert_by_delta_table(spark, iceberg):
    table = DeltaTable.convertToDelta(spark, f"iceberg.`{iceberg}`")
    assert table.toDF().count() == 4
    assert tahoe.Table(iceberg).snapshot().partition_columns == ("p",)


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_clone(spark, iceberg, tmp_path, kind):
    clone = tmp_path / "clone"
    (row,) = spark.sql(f"CREATE TABLE delta.`{clone}` {kind} CLONE iceberg.`{iceberg}`").collect()
    assert row.source_num_of_files == 3 and row.num_copied_files == (0 if kind == "SHALLOW" else 3)
    assert rows(spark, clone) == EXPECTED and not tahoe.Table(iceberg).exists()
    commit = tahoe.Table(clone).history()[0]["operationParameters"]
    assert commit == {"source": f"iceberg.`{iceberg}`", "sourceVersion": "-1"}
    spark.sql(f"UPDATE delta.`{clone}` SET more = 1 WHERE id < 3")
    assert rows(spark, clone) == [(1, "a", 1), (2, "b", 1), *EXPECTED[2:]]
    assert tahoe.Table(clone).check(deep=True) == []
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/other` {kind} CLONE iceberg.`{iceberg}` VERSION AS OF 1")
    assert caught.value.getErrorClass() == "TABLE_OR_VIEW_NOT_FOUND"


# -- partitions that are made of a column -------------------------------------------------------------------------------------

TIMES = [
    datetime(2024, 2, 29, 23, 30, tzinfo=UTC),
    datetime(2024, 3, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, tzinfo=UTC),
    None,
]
BY = {
    "at": [(DayTransform(), "at_day")],
    "later": [(HourTransform(), "later_hour")],
    "day": [(YearTransform(), "day_year")],
    "due": [(MonthTransform(), "due_month")],
    "id": [(TruncateTransform(10), "id_trunc")],
    "name": [(TruncateTransform(2), "name_trunc"), (BucketTransform(4), "some")],
}
MADE = {
    "at_day": "date",
    "later_hour": "string",
    "day_year": "int",
    "due_month": "string",
    "id_trunc": "bigint",
    "name_trunc": "string",
}


@pytest.fixture
def transformed(tmp_path: Path):
    """The folder of a table of four rows, which is partitioned by transforms of its columns."""
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    names = pa.array(["abc", "é𝄞z", None, "x"])
    times, days = pa.array(TIMES, pa.timestamp("us", "UTC")), pa.array([at and at.date() for at in TIMES])
    ids = pa.array([1, -1, -10, 10], pa.int64())
    rows = pa.table({"id": ids, "at": times, "later": times, "day": days, "due": days, "name": names})
    table = catalog.create_table("db.t", rows.schema)
    with table.update_spec() as change:
        for source, fields in BY.items():
            for transform, name in fields:
                change.add_field(source, transform, name)
    append_partitioned(table, rows)
    catalog.engine.dispose()
    return table.location().removeprefix("file://")


@pytest.mark.parametrize("how", ["CONVERT", "SHALLOW", "DEEP"])
def test_partitions_computed_from_a_column_become_generated_columns(spark, transformed, tmp_path, how):
    path = transformed if how == "CONVERT" else tmp_path / "clone"
    if how == "CONVERT":
        spark.sql(f"CONVERT TO DELTA iceberg.`{path}`")
    else:
        spark.sql(f"CREATE TABLE delta.`{path}` {how} CLONE iceberg.`{transformed}`")
    table = f"delta.`{path}`"
    kinds = {field.name: field.dataType.simpleString() for field in spark.table(table).schema}
    assert {name: kinds[name] for name in MADE} == MADE and tahoe.Table(path).snapshot().partition_columns == tuple(MADE)
    first = spark.table(table).collect()
    assert len(first) == 4
    # The table gives equal rows equal values, and so may external writers: Spark compares them with the expressions.
    spark.sql(f"INSERT INTO {table} (id, at, later, day, due, name) SELECT id, at, later, day, due, name FROM {table}")
    spark.table(table).limit(0).union(spark.createDataFrame(first, spark.table(table).schema)).write.format("delta").mode(
        "append"
    ).save(str(path))
    actual = spark.table(table).collect()
    assert sorted(map(str, actual)) == sorted(3 * list(map(str, first)))
    assert spark.read.format("delta").option("versionAsOf", 0).load(str(path)).count() == 4
    known = tahoe.Table(path)
    for where in ("at >= '2024-03-01'", "at = '1969-12-31 23:00:00'", "id = -10", "name = 'abc'"):
        assert spark.table(table).where(where).count() == 3, where
        assert known.files(where).num_rows < known.files().num_rows, where
    assert known.check(deep=True) == []


def test_partitions_that_depend_on_the_time_zone_are_converted_in_utc(spark, transformed, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for statement in (
            f"CONVERT TO DELTA iceberg.`{transformed}`",
            f"CREATE TABLE delta.`{tmp_path}/clone` CLONE iceberg.`{transformed}`",
        ):
            with pytest.raises(Unsupported) as caught:
                spark.sql(statement)
            assert caught.value.getErrorClass() == "TAHOE_ICEBERG_PARTITION_TIME_ZONE"
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.sql(f"CONVERT TO DELTA iceberg.`{transformed}`")
        for zone in ("America/New_York", "Pacific/Apia"):  # no row is lost in any reader's or writer's time zone
            spark.conf.set("spark.sql.session.timeZone", zone)
            table = f"delta.`{transformed}`"
            for at in TIMES[:3]:
                assert spark.table(table).where(f"at = timestamp_micros({int(at.timestamp())} * 1000000L)").count() == 1
        spark.sql(f"INSERT INTO {table} (id, at) SELECT id + 100, at FROM {table}")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert spark.table(table).where("at = '2024-02-29 23:30:00'").count() == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
