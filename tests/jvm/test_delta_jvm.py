"""delta-spark reads tables of Tahoe with equal rows, and Tahoe those of delta-spark; both write one table in turn."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tests.interop.engines import canonical
from tests.jvm.tables import TABLES, rows_of_all_types

pytestmark = pytest.mark.jvm


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return canonical(frame.toArrow())


def same(left: pa.Table, right: DataFrame) -> bool:
    return canonical(left) == rows(right)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_the_jvm_reads_every_version_of_our_tables(jvm: SparkSession, path: str, make: Callable[[str], Table]) -> None:
    table = make(path)
    for version in range(table.version() + 1):
        theirs = jvm.read.format("delta").option("versionAsOf", version).load(path)
        assert same(table.to_arrow(version=version), theirs), version


def test_the_jvm_reads_our_change_feed(jvm: SparkSession, path: str) -> None:
    table = TABLES["changed_with_vectors"](path)
    theirs = jvm.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    ours = table.changes(1).drop(["_commit_timestamp"])
    assert same(ours, theirs.drop("_commit_timestamp"))


def test_the_jvm_reads_our_row_ids(jvm: SparkSession, path: str) -> None:
    table = TABLES["tracked"](path)
    ours = table.to_arrow(columns=["id"], row_ids=True)
    theirs = jvm.read.format("delta").load(path).selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version")
    names = ["id", "row_id", "row_commit_version"]
    assert canonical(ours.rename_columns(names)) == rows(theirs.toDF(*names))


@pytest.mark.parametrize("properties", ["", "'delta.enableDeletionVectors' = 'true'", "'delta.columnMapping.mode' = 'name'"])
def test_we_read_every_version_of_the_jvms_tables(jvm: SparkSession, path: str, properties: str) -> None:
    jvm.createDataFrame(rows_of_all_types(0, 30)).createOrReplaceTempView("source")
    clause = f"TBLPROPERTIES ({properties})" if properties else ""
    jvm.sql(f"CREATE TABLE delta.`{path}` USING delta {clause} PARTITIONED BY (part) AS SELECT * FROM source")
    jvm.sql(f"DELETE FROM delta.`{path}` WHERE id % 5 = 1")
    jvm.sql(f"UPDATE delta.`{path}` SET text = upper(text), place.x = 3 WHERE id > 20")
    jvm.sql(
        f"MERGE INTO delta.`{path}` t USING source s ON t.id = s.id + 2 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    jvm.sql(f"OPTIMIZE delta.`{path}`")
    table = Table(path)
    for version in range(table.version() + 1):
        assert same(table.to_arrow(version=version), jvm.read.format("delta").option("versionAsOf", version).load(path)), version
    assert table.check() == []


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_table_changed_by_turns_stays_right(jvm: SparkSession, path: str, vectors: str, policy: str) -> None:
    properties = {
        "delta.enableDeletionVectors": vectors,
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointInterval": "4" if policy == "classic" else "1",
        "delta.checkpointPolicy": policy,
    }
    table = Table.create(path, pa.schema([("id", pa.int64()), ("v", pa.int64())]), properties=properties)
    expected = {}
    for turn in range(5):
        fresh = pa.table({"id": pa.array(range(turn * 20, turn * 20 + 20), pa.int64()), "v": pa.array([turn] * 20, pa.int64())})
        expected |= {row["id"]: row["v"] for row in fresh.to_pylist()}
        if turn % 2:
            jvm.createDataFrame(fresh).write.format("delta").mode("append").save(path)
            jvm.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = {turn}")
        else:
            table.append(fresh)
            table.delete(f"id % 10 = {turn}")
        expected = {key: value for key, value in expected.items() if key % 10 != turn}
        if turn % 2:
            table.update({"v": "v + 100"}, "id % 3 = 0")
        else:
            jvm.sql(f"UPDATE delta.`{path}` SET v = v + 100 WHERE id % 3 = 0")
        expected = {key: value + 100 if key % 3 == 0 else value for key, value in expected.items()}
        actual = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
        assert actual == expected
        assert {row.id: row.v for row in jvm.read.format("delta").load(path).collect()} == expected
    assert table.check() == []
