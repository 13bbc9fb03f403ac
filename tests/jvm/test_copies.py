"""Clones and converted tables of Tahoe's, read and changed by delta-spark, and shallow clones of delta-spark's, read by Tahoe."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable

pytestmark = pytest.mark.jvm

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string()})
TRACKED = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"}


def table_of(path: Path, properties: dict[str, str]) -> Table:
    table = Table.create(path, SCHEMA, partition_by=["p"], properties=properties)
    table.append(pa.table({"id": range(20), "p": ["a b", "c"] * 10}, SCHEMA))
    table.delete("id in (3, 4)")
    return table


def ids(jvm: SparkSession, path: Path) -> list[int]:
    return sorted(row.id for row in jvm.read.format("delta").load(str(path)).collect())


@pytest.mark.parametrize("properties", [{}, TRACKED], ids=["plain", "tracked"])
@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_is_one_to_delta_spark(jvm: SparkSession, tmp_path: Path, properties: dict[str, str], shallow: bool) -> None:
    source, clone = table_of(tmp_path / "the source", properties), tmp_path / "clone"
    left = [item for item in range(20) if item not in (3, 4)]
    source.clone(str(clone), shallow=shallow)
    assert ids(jvm, clone) == left
    jvm.sql(f"DELETE FROM delta.`{clone}` WHERE id = 5")
    jvm.sql(f"INSERT INTO delta.`{clone}` VALUES (100, 'c')")
    assert sorted(Table(clone).to_arrow()["id"].to_pylist()) == sorted([*(item for item in left if item != 5), 100])
    assert Table(clone).check(deep=True) == [] and ids(jvm, tmp_path / "the source") == left
    if properties:
        frame = jvm.sql(f"SELECT id, _metadata.row_id AS r FROM delta.`{clone}` ORDER BY id")
        values = Table(clone).to_arrow(row_ids=True).sort_by("id")["_row_id"].to_pylist()
        assert [row.r for row in frame.collect()] == values and len(set(values)) == len(values)


def test_a_shallow_clone_of_delta_spark_is_read_once_its_source_allows_it(jvm: SparkSession, tmp_path: Path) -> None:
    source, clone = table_of(tmp_path / "source", TRACKED), tmp_path / "clone"
    jvm.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source.store.url}`")
    with pytest.raises(CorruptTable, match="allow_shallow_clone"):
        Table(clone).to_arrow()
    source.allow_shallow_clone(str(clone))
    assert Table(clone).to_arrow().sort_by("id") == source.to_arrow().sort_by("id")
    jvm.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        jvm.sql(f"VACUUM delta.`{source.store.url}` RETAIN 0 HOURS")
    finally:
        jvm.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert Table(clone).to_arrow().num_rows == 18


def test_a_converted_folder_is_a_table_to_delta_spark(jvm: SparkSession, tmp_path: Path) -> None:
    for day in ("2026-03-01", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"id": [1, 2, 3], "name": ["x", None, "y"]}), tmp_path / f"day={day}" / "a.parquet")
    Table(tmp_path).convert_to_delta({"day": "date"})
    frame = jvm.read.format("delta").load(str(tmp_path))
    assert frame.where("day = '2026-03-01' and id > 1").count() == 2 and frame.where("day is null").count() == 3
    jvm.sql(f"UPDATE delta.`{tmp_path}` SET name = 'z' WHERE id = 2")
    assert Table(tmp_path).check(deep=True) == [] and Table(tmp_path).to_arrow(filter="name = 'z'").num_rows == 2
