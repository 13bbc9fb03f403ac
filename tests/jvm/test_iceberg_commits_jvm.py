"""Iceberg's Java library in Spark writes Delta tables through `tahoe serve --writable`.

After each statement the readers of both sides see the same rows, and the table fulfils the specification.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import tahoe
from scripts.follow_page import examples
from tests.interop.engines import canonical, read_deltalake, read_duckdb
from tests.interop.test_iceberg_rest import TOKEN, start
from tests.pages import ROOT

pytestmark = pytest.mark.jvm

GUIDE = ROOT / "docs/guide/iceberg-writes.md"
LINEAGE = "_row_id", "_last_updated_sequence_number"
WITHOUT_WIDENING = ("deltalake",)
"""Readers that do not know the table feature typeWidening."""

MODES = ("copy-on-write", "merge-on-read")


@dataclass(frozen=True)
class Lake:
    """A writable warehouse, Spark's catalog `lake` of it, and its namespace `sales`."""

    spark: SparkSession
    url: str
    root: Path

    def path(self, name: str) -> Path:
        return self.root / "sales" / name

    def table(self, name: str) -> tahoe.Table:
        return tahoe.Table(self.path(name))

    def run(self, statement: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.spark.sql(statement).collect()]

    def refused(self, statement: str, match: str) -> None:
        with pytest.raises((PySparkException, Py4JJavaError), match=match):
            self.run(statement)

    def snapshots(self, name: str) -> list[int]:
        rows = self.run(f"SELECT snapshot_id FROM lake.sales.{name}.snapshots ORDER BY committed_at")
        return [row["snapshot_id"] for row in rows]

    def readers(self, name: str) -> Mapping[str, Callable[[], pa.Table]]:
        path = str(self.path(name))
        return {
            "deltalake": lambda: read_deltalake(path),
            "DuckDB": lambda: read_duckdb(path),
            "delta-spark": lambda: self.spark.read.format("delta").load(path).toArrow(),
            "Iceberg in Spark": lambda: self.spark.table(f"lake.sales.{name}").toArrow(),
            "PyIceberg": lambda: RestCatalog("served", uri=self.url, token=TOKEN).load_table(("sales", name)).scan().to_arrow(),
        }

    def assert_rows(self, name: str, rows: list[tuple[Any, ...]], *without: str) -> None:
        """Every reader except those in `without` sees these rows, whose values are in the order of the columns, and the table is valid."""
        table = self.table(name)
        arrow = table.to_arrow()
        expected = pa.table(
            [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), arrow.schema.types, strict=True)]
            if rows
            else [pa.nulls(0, kind) for kind in arrow.schema.types],
            names=arrow.schema.names,
        )
        assert canonical(arrow) == canonical(expected)
        for reader, read in self.readers(name).items():
            assert reader in without or canonical(read()) == canonical(expected), reader
        assert table.check(strict=True, deep=True) == []

    def row_ids(self, name: str) -> dict[int, tuple[int, int]]:
        """The row id and the last change of each `id`, equal in both formats."""
        actual = self.spark.table(f"lake.sales.{name}").select("id", *LINEAGE).collect()
        delta = self.spark.read.format("delta").load(str(self.path(name)))
        theirs = delta.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
        ids = {row[0]: (row[1], row[2]) for row in actual}
        assert ids == {row[0]: (row[1], row[2]) for row in theirs}
        return ids


@pytest.fixture(scope="module")
def lake(jvm: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    root = tmp_path_factory.mktemp("ware house")
    process, url = start(root, "--writable", TAHOE_WRITE_TOKEN=TOKEN)
    settings = next(each.text for each in examples(GUIDE) if each.language == "properties")
    for line in settings.replace("http://127.0.0.1:8181", url).splitlines():
        jvm.conf.set(*line.split())
    jvm.conf.set("spark.sql.catalog.lake.token", TOKEN)
    jvm.conf.set("spark.sql.catalog.lake.cache-enabled", "false")  # Delta changes the tables, too
    jvm.sql("CREATE NAMESPACE lake.sales")
    yield Lake(jvm, url, root)
    process.send_signal(signal.SIGINT)
    complaints = process.communicate(timeout=200)[1]
    # Spark leaves connections open, and the server says how many it closed.
    assert all(line.startswith("connections: ") for line in complaints.splitlines()), complaints
    assert process.returncode in (0, 130)


def modes(mode: str, version: int) -> str:
    operations = ", ".join(f"'write.{operation}.mode' = '{mode}'" for operation in ("delete", "update", "merge"))
    return f"TBLPROPERTIES ('format-version' = '{version}', {operations})"


def metric(table: tahoe.Table, name: str) -> int:
    return int(table.history()[0]["operationMetrics"][name])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_changed(lake: Lake, mode: str, version: int) -> None:
    name = f"changed_{version}_{mode[0]}"
    lake.run(
        f"CREATE TABLE lake.sales.{name} (id BIGINT NOT NULL, name STRING COMMENT 'of it', part STRING) USING iceberg "
        f"PARTITIONED BY (part) {modes(mode, version)}"
    )
    lake.assert_rows(name, [])
    lake.run(f"INSERT INTO lake.sales.{name} SELECT id, concat('n', id), if(id < 6, 'a b/%', NULL) FROM range(12)")
    rows = {number: (number, f"n{number}", "a b/%" if number < 6 else None) for number in range(12)}

    def assert_rows() -> None:
        lake.assert_rows(name, list(rows.values()))
        assert metric(lake.table(name), "numRewrittenFiles") == 0

    assert_rows()
    lake.run(f"DELETE FROM lake.sales.{name} WHERE id IN (1, 7, 8)")
    for number in (1, 7, 8):
        del rows[number]
    assert_rows()
    lake.run(f"UPDATE lake.sales.{name} SET name = 'updated' WHERE id IN (2, 9)")
    rows |= {2: (2, "updated", "a b/%"), 9: (9, "updated", None)}
    assert_rows()
    lake.run(
        f"MERGE INTO lake.sales.{name} t USING (SELECT * FROM VALUES (2L, 'm'), (3L, 'm'), (90L, 'm') v(id, name)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name, part) VALUES (s.id, s.name, 'new') "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 10 THEN UPDATE SET name = 'left'"
    )
    del rows[3]
    rows |= {2: (2, "m", "a b/%"), 90: (90, "m", "new"), 10: (10, "left", None)}
    assert_rows()
    (result,) = lake.run(f"CALL lake.system.rewrite_data_files(table => 'sales.{name}', options => map('rewrite-all', 'true'))")
    assert result["failed_data_files_count"] == 0 < result["added_data_files_count"] == 3
    assert lake.table(name).history()[0]["operation"] == "ICEBERG REPLACE"
    assert_rows()
    lake.run(f"DELETE FROM lake.sales.{name} WHERE part = 'new'")
    del rows[90]
    assert_rows()
    lake.table(name).update({"name": "'by Delta'"}, "id = 4")
    rows[4] = (4, "by Delta", "a b/%")
    lake.assert_rows(name, list(rows.values()))
    lake.run(f"DELETE FROM lake.sales.{name} WHERE id = 5")
    del rows[5]
    assert_rows()
    files = lake.table(name).files()
    assert (files["deletionVector"].null_count < files.num_rows) == (version == 3 and mode == "merge-on-read")
    lake.run(f"TRUNCATE TABLE lake.sales.{name}")
    lake.assert_rows(name, [])


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids(lake: Lake, mode: str) -> None:
    name = f"ids_{mode[0]}"
    lake.run(f"CREATE TABLE lake.sales.{name} USING iceberg {modes(mode, 3)} AS SELECT id, 'n' name FROM range(0, 10, 1, 1)")
    ids = lake.row_ids(name)
    assert ids == {number: (number, 0) for number in range(10)}
    lake.run(f"UPDATE lake.sales.{name} SET name = 'x' WHERE id IN (3, 4)")
    ids |= {number: (number, 1) for number in (3, 4)}
    assert lake.row_ids(name) == ids
    lake.run(
        f"MERGE INTO lake.sales.{name} t USING (SELECT explode(array(4L, 20L)) id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
        "name = 'm' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'm')"
    )
    actual = lake.row_ids(name)
    assert actual.pop(20)[1] == 2
    ids[4] = (4, 2)
    assert actual == ids
    before = lake.row_ids(name)
    lake.run(f"CALL lake.system.rewrite_data_files(table => 'sales.{name}', options => map('rewrite-all', 'true'))")
    assert lake.row_ids(name) == before
    lake.table(name).optimize()
    lake.table(name).update({"name": "'d'"}, "id = 4")
    assert lake.row_ids(name) == before | {4: (4, lake.table(name).version())}
    assert lake.table(name).check(strict=True, deep=True) == []


@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_overwritten(lake: Lake, version: int) -> None:
    name = f"overwritten_{version}"
    lake.run(
        f"CREATE TABLE lake.sales.{name} (id BIGINT, part INT, day DATE) USING iceberg PARTITIONED BY (part, day) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    lake.run(f"INSERT INTO lake.sales.{name} SELECT id, CAST(id % 3 AS INT), NULL FROM range(6)")
    rows: list[tuple[Any, ...]] = [(number, number % 3, None) for number in range(6)]
    lake.assert_rows(name, rows)
    lake.run(f"INSERT OVERWRITE lake.sales.{name} PARTITION (part = 1) SELECT 7, NULL")
    rows = [row for row in rows if row[1] != 1] + [(7, 1, None)]
    lake.assert_rows(name, rows)
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.run(f"INSERT OVERWRITE lake.sales.{name} VALUES (8, 2, NULL), (9, 9, NULL)")
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    rows = [row for row in rows if row[1] != 2] + [(8, 2, None), (9, 9, None)]
    lake.assert_rows(name, rows)
    lake.spark.sql("SELECT 10L id, 9 part, CAST(NULL AS DATE) day").writeTo(f"lake.sales.{name}").overwritePartitions()
    rows = [row for row in rows if row[1] != 9] + [(10, 9, None)]
    lake.assert_rows(name, rows)
    lake.run(f"INSERT OVERWRITE lake.sales.{name} VALUES (1, 1, NULL)")
    lake.assert_rows(name, [(1, 1, None)])


def test_a_table_is_created_with_rows_of_every_type(lake: Lake) -> None:
    lake.run(
        "CREATE TABLE lake.sales.made USING iceberg PARTITIONED BY (p) COMMENT 'all types' TBLPROPERTIES ('team' = 'x') AS "
        "SELECT 1L id, 1 i, 1.5F f, 2.5D d, CAST(1.25 AS DECIMAL(10, 2)) m, 't' s, X'00ff' b, true o, DATE '2026-01-02' p, "
        "TIMESTAMP '2026-01-02 03:04:05.123456' z, TIMESTAMP_NTZ '2026-01-02 03:04:05.123456' n, "
        "named_struct('x', 1, 'y', array('a', NULL)) st, map('k', named_struct('v', 1)) mp"
    )
    table = lake.table("made")
    assert (table.version(), table.history()[0]["operation"]) == (0, "ICEBERG APPEND")
    (row,) = table.to_arrow().to_pylist()
    lake.assert_rows("made", [tuple(row.values())])
    assert (row["s"], row["b"], row["st"], row["mp"]) == ("t", b"\0\xff", {"x": 1, "y": ["a", None]}, [("k", {"v": 1})])
    # No NULL in the map: PyIceberg reads it as an empty map.
    lake.run("INSERT INTO lake.sales.made SELECT 2L, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, map()")
    lake.assert_rows("made", [tuple(row.values()), (2, *[None] * 11, [])])
    assert {row["col_name"]: row["data_type"] for row in lake.run("DESCRIBE TABLE EXTENDED lake.sales.made")}[
        "Comment"
    ] == "all types"


def test_columns_are_changed(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.shaped (id BIGINT NOT NULL, name STRING, n INT) USING iceberg")
    lake.run("INSERT INTO lake.sales.shaped VALUES (1, 'one', 1)")
    lake.table("shaped").set_properties({"delta.enableTypeWidening": "true"})
    lake.run("ALTER TABLE lake.sales.shaped ADD COLUMNS (more STRUCT<x: INT> COMMENT 'new' AFTER id, e DECIMAL(5, 2))")
    rows: list[tuple[Any, ...]] = [(1, None, "one", 1, None)]

    def assert_rows() -> None:
        lake.assert_rows("shaped", rows, *WITHOUT_WIDENING)

    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped ADD COLUMN more.y ARRAY<INT>")
    lake.run("INSERT INTO lake.sales.shaped VALUES (2, named_struct('x', 1, 'y', array(1)), 'two', 2, 1.5)")
    rows.append((2, {"x": 1, "y": [1]}, "two", 2, Decimal("1.50")))
    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped RENAME COLUMN name TO label")
    lake.run("ALTER TABLE lake.sales.shaped ALTER COLUMN n FIRST")
    rows = [(n, number, more, label, e) for number, more, label, n, e in rows]
    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped ALTER COLUMN n TYPE BIGINT")
    lake.run("ALTER TABLE lake.sales.shaped ALTER COLUMN e TYPE DECIMAL(10, 2)")
    lake.run(f"INSERT INTO lake.sales.shaped VALUES ({2**40}, 3, NULL, 'three', 12345678.5)")
    rows.append((2**40, 3, None, "three", Decimal("12345678.50")))
    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped DROP COLUMNS (label, more.x)")
    rows = [(n, number, more and {"y": more["y"]}, e) for n, number, more, _, e in rows]
    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped ADD COLUMN label STRING")
    lake.run("INSERT INTO lake.sales.shaped VALUES (4, 4, NULL, NULL, 'again')")
    rows = [*((*row, None) for row in rows), (4, 4, None, None, "again")]
    assert_rows()
    lake.run("ALTER TABLE lake.sales.shaped ALTER COLUMN id DROP NOT NULL")
    lake.run("ALTER TABLE lake.sales.shaped ALTER COLUMN label COMMENT 'said'")
    lake.run("UPDATE lake.sales.shaped SET id = NULL, label = 'x' WHERE n = 2")
    rows = [(n, None, *rest, "x") if n == 2 else (n, number, *rest, label) for n, number, *rest, label in rows]
    assert_rows()
    assert lake.table("shaped").schema().find("label").metadata["comment"] == "said"
    lake.refused("ALTER TABLE lake.sales.shaped ALTER COLUMN n TYPE STRING", "string")


def test_a_partition_column_is_renamed(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.sections (id BIGINT, part STRING) USING iceberg PARTITIONED BY (part)")
    lake.run("INSERT INTO lake.sales.sections VALUES (1, 'a'), (2, 'b')")
    lake.run("ALTER TABLE lake.sales.sections RENAME COLUMN part TO section")
    lake.run("INSERT OVERWRITE lake.sales.sections PARTITION (section = 'b') SELECT 3")
    lake.assert_rows("sections", [(1, "a"), (3, "b")], "DuckDB")  # reads renamed partition columns as NULL: docs/limitations.md
    lake.refused("ALTER TABLE lake.sales.sections DROP COLUMN section", "partition")


def test_properties_are_set_and_removed(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.described (id BIGINT) USING iceberg")
    lake.run(
        "ALTER TABLE lake.sales.described SET TBLPROPERTIES ('team' = 'x', 'comment' = 'words', 'write.target-file-size-bytes' = '1000000')"
    )
    shown = {row["key"]: row["value"] for row in lake.run("SHOW TBLPROPERTIES lake.sales.described")}
    assert (shown["team"], shown["write.target-file-size-bytes"]) == ("x", "1000000")
    assert lake.table("described").detail()["description"] == "words"
    lake.run("ALTER TABLE lake.sales.described UNSET TBLPROPERTIES ('team')")
    assert "team" not in {row["key"] for row in lake.run("SHOW TBLPROPERTIES lake.sales.described")}
    lake.run("ALTER TABLE lake.sales.described WRITE DISTRIBUTED BY PARTITION")
    lake.run("INSERT INTO lake.sales.described VALUES (1)")
    lake.assert_rows("described", [(1,)])
    lake.refused("ALTER TABLE lake.sales.described SET TBLPROPERTIES ('delta.appendOnly' = 'true')", "delta.appendOnly")


def test_snapshots_are_read_and_restored(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.history (id BIGINT, name STRING) USING iceberg")
    for number in range(3):
        lake.run(f"INSERT INTO lake.sales.history VALUES ({number}, 'n')")
    first, second, _ = lake.snapshots("history")
    assert lake.run(f"SELECT id FROM lake.sales.history VERSION AS OF {first}") == [{"id": 0}]
    lake.run(f"CALL lake.system.rollback_to_snapshot('sales.history', {first})")
    assert lake.table("history").history()[0]["operation"] == "RESTORE"
    lake.assert_rows("history", [(0, "n")])
    lake.run(f"CALL lake.system.set_current_snapshot('sales.history', {second})")
    lake.assert_rows("history", [(0, "n"), (1, "n")])
    lake.run("INSERT INTO lake.sales.history VALUES (7, 'after')")
    lake.assert_rows("history", [(0, "n"), (1, "n"), (7, "after")])
    assert len(lake.snapshots("history")) == 4, "one for each INSERT, none for a rollback"
    lake.run("CALL lake.system.rewrite_manifests('sales.history')")
    lake.assert_rows("history", [(0, "n"), (1, "n"), (7, "after")])
    lake.refused("CALL lake.system.expire_snapshots('sales.history')", "Cannot expire snapshots: GC is disabled")
    lake.refused("CALL lake.system.remove_orphan_files('sales.history')", "Cannot delete orphan files: GC is disabled")
    lake.assert_rows("history", [(0, "n"), (1, "n"), (7, "after")])


def test_a_stream_appends_every_row_once(lake: Lake, tmp_path: Path) -> None:
    lake.run("CREATE TABLE lake.sales.streamed (id BIGINT) USING iceberg")
    source = tahoe.Table.create(tmp_path / "source", pa.schema([("id", pa.int64())]))

    def run_stream(target: str, rows: Any, checkpoint: str) -> None:
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        query = (
            writer.format("iceberg").toTable(target)
            if target.startswith("lake.")
            else writer.format("delta").option("path", target).start()
        )
        assert query.awaitTermination(200)

    def rows_of_source() -> Any:
        return lake.spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(source.url)

    for number in range(3):
        source.append(pa.table({"id": [2 * number, 2 * number + 1]}))
    run_stream("lake.sales.streamed", rows_of_source(), "there")
    lake.assert_rows("streamed", [(number,) for number in range(6)])
    assert lake.table("streamed").version() == 3
    lake.run("CALL lake.system.rewrite_data_files(table => 'sales.streamed', options => map('rewrite-all', 'true'))")
    source.append(pa.table({"id": [6]}))
    run_stream("lake.sales.streamed", rows_of_source(), "there")
    lake.assert_rows("streamed", [(number,) for number in range(7)])
    copy = tmp_path / "copy"
    run_stream(str(copy), lake.spark.readStream.format("delta").load(str(lake.path("streamed"))), "back")
    assert sorted(tahoe.Table(copy).to_arrow()["id"].to_pylist()) == list(range(7))


def test_a_delta_commit_between_makes_the_client_retry_or_fail(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.shared (id BIGINT, name STRING) USING iceberg")
    lake.run("INSERT INTO lake.sales.shared VALUES (1, 'one')")
    stale = lake.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(lake.spark._jsparkSession, "lake.sales.shared")
    lake.table("shared").append(pa.table({"id": [2], "name": ["two"]}))
    stale.newAppend().commit()
    stale.updateProperties().set("after", "Delta").commit()
    stale.updateSchema().renameColumn("name", "label").commit()
    lake.assert_rows("shared", [(1, "one"), (2, "two")])
    assert lake.table("shared").schema().names == ["id", "label"]


def test_a_table_made_by_delta_is_written(lake: Lake) -> None:
    properties = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.enableIcebergCompatV3": "true",
        "delta.enableDeletionVectors": "true",
    }
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = tahoe.Table.create(lake.path("ours"), schema, properties=properties)
    table.append(pa.table({"id": range(4), "name": list("abcd")}, schema=schema))
    table.add_constraint("positive", "id >= 0")
    ids = lake.row_ids("ours")
    lake.run(
        "ALTER TABLE lake.sales.ours SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
    )
    lake.run("DELETE FROM lake.sales.ours WHERE id = 1")
    lake.run("UPDATE lake.sales.ours SET name = 'x' WHERE id = 2")
    lake.assert_rows("ours", [(0, "a"), (2, "x"), (3, "d")])
    del ids[1]
    ids[2] = (ids[2][0], lake.table("ours").version())
    assert lake.row_ids("ours") == ids
    assert metric(lake.table("ours"), "numRewrittenFiles") == 1, "files of the client have other column names"
    version = lake.table("ours").version()
    lake.refused("INSERT INTO lake.sales.ours VALUES (-1, 'negative')", "positive")
    assert lake.table("ours").version() == version


def test_a_table_is_replaced_with_other_columns_types_and_partitions(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.swapped (id BIGINT NOT NULL, day DATE, name STRING) USING iceberg")
    lake.run("INSERT INTO lake.sales.swapped VALUES (1, DATE '2026-01-01', 'a'), (2, DATE '2026-01-02', 'b')")
    lake.table("swapped").add_constraint("small", "id < 10")
    before = lake.snapshots("swapped")[-1]
    lake.run(
        "CREATE OR REPLACE TABLE lake.sales.swapped USING iceberg PARTITIONED BY (kind) AS "
        "SELECT 'x' AS id, 7 AS kind, 1.5D AS more UNION ALL SELECT 'y', 8, NULL"
    )
    lake.assert_rows("swapped", [("x", 7, 1.5), ("y", 8, None)])
    assert lake.table("swapped").snapshot().partition_columns == ("kind",)
    lake.run("INSERT INTO lake.sales.swapped VALUES ('z', 9, 2.5)")
    lake.assert_rows("swapped", [("x", 7, 1.5), ("y", 8, None), ("z", 9, 2.5)])
    old = lake.run(f"SELECT id, name FROM lake.sales.swapped VERSION AS OF {before} ORDER BY id")
    assert [(row["id"], row["name"]) for row in old] == [(1, "a"), (2, "b")]
    assert lake.table("swapped").snapshot(1).scan().to_arrow().num_rows == 2
    lake.refused(
        "REPLACE TABLE lake.sales.swapped (id BIGINT, a INT) USING iceberg PARTITIONED BY (id)",
        "is partitioned by kind integer, and the",
    )
    lake.refused("REPLACE TABLE lake.sales.swapped (id BIGINT) USING iceberg", "replaces it by one that is not partitioned")
    lake.refused(
        "REPLACE TABLE lake.sales.swapped (id BIGINT, kind STRING) USING iceberg PARTITIONED BY (kind)",
        "by kind string. Delta's rules",
    )
    lake.run(
        "REPLACE TABLE lake.sales.swapped (id BIGINT NOT NULL COMMENT 'again', kind INT) USING iceberg PARTITIONED BY (kind) "
        "TBLPROPERTIES ('own' = 'kept')"
    )
    lake.assert_rows("swapped", [])
    lake.run("INSERT INTO lake.sales.swapped VALUES (100, 1)")
    lake.assert_rows("swapped", [(100, 1)])
    operations = [commit["operation"] for commit in lake.table("swapped").history()]
    assert operations == [
        *("ICEBERG APPEND", "ICEBERG REPLACE TABLE", "ICEBERG APPEND", "ICEBERG REPLACE TABLE"),
        *("ADD CONSTRAINT", "ICEBERG APPEND", "CREATE TABLE"),
    ]
    lake.run("CREATE OR REPLACE TABLE lake.sales.first USING iceberg AS SELECT 1L AS id")
    lake.run("CREATE OR REPLACE TABLE lake.sales.first USING iceberg AS SELECT id + 1 AS id FROM lake.sales.first")
    lake.assert_rows("first", [(2,)])


def equality_deletes(lake: Lake, of_table: str, partition: int | None, **values: Any) -> None:
    """Commit deletes by value with Iceberg's Java library, as Flink's writer does; Spark has no statement for them."""
    jvm = lake.spark._jvm
    assert jvm is not None
    iceberg = jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(lake.spark._jsparkSession, f"lake.sales.{of_table}")
    schema = table.schema().select([*values])
    ids = lake.spark.sparkContext._gateway.new_array(jvm.int, len(values))
    for place, column in enumerate(values):
        ids[place] = schema.findField(column).fieldId()
    key = None
    if partition is not None:
        key = iceberg.data.GenericRecord.create(table.spec().partitionType())
        key.setField("p", partition)
    files = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).build()
    factory = iceberg.data.GenericAppenderFactory(table.schema(), table.spec(), ids, schema, None)
    file = files.newOutputFile() if key is None else files.newOutputFile(table.spec(), key)
    writer = factory.newEqDeleteWriter(file, iceberg.FileFormat.PARQUET, key)
    record = iceberg.data.GenericRecord.create(schema)
    for column, value in values.items():
        record.setField(column, value)
    writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_are_deleted_by_value_in_their_partition(lake: Lake, version: str) -> None:
    name = f"upserts{version}"
    lake.run(
        f"CREATE TABLE lake.sales.{name} (id INT, p INT, name STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    lake.run(f"INSERT INTO lake.sales.{name} VALUES (1, 0, 'a'), (2, 0, 'b'), (1, 1, 'c'), (2, 1, NULL), (3, 1, NULL)")
    equality_deletes(lake, name, 0, id=1)
    lake.assert_rows(name, [(1, 1, "c"), (2, 0, "b"), (2, 1, None), (3, 1, None)])
    equality_deletes(lake, name, 1, id=3, name=None)
    lake.assert_rows(name, [(1, 1, "c"), (2, 0, "b"), (2, 1, None)])
    lake.run(f"CREATE TABLE lake.sales.flat{version} USING iceberg AS SELECT id, name FROM lake.sales.{name}")
    equality_deletes(lake, f"flat{version}", None, id=2)
    lake.assert_rows(f"flat{version}", [(1, "c")])


def test_tables_are_renamed_and_dropped(lake: Lake) -> None:
    lake.run("CREATE TABLE lake.sales.before (id BIGINT) USING iceberg")
    lake.run("INSERT INTO lake.sales.before VALUES (1)")
    lake.run("ALTER TABLE lake.sales.before RENAME TO sales.after")
    lake.assert_rows("after", [(1,)])
    assert "after" in {row["tableName"] for row in lake.run("SHOW TABLES IN lake.sales")}
    lake.refused("DROP TABLE lake.sales.after PURGE", "Cannot purge table: GC is disabled")
    (newest,) = lake.run("SELECT file FROM lake.sales.after.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    lake.run("DROP TABLE lake.sales.after")
    assert not lake.path("after").exists()
    lake.refused("SELECT * FROM lake.sales.after", "cannot be found")
    lake.run(f"CALL lake.system.register_table(table => 'sales.after', metadata_file => '{newest['file']}')")
    lake.assert_rows("after", [(1,)])
    lake.run("DROP TABLE lake.sales.after")
    lake.run("CREATE NAMESPACE lake.other")
    lake.run("DROP NAMESPACE lake.other")
    assert "other" not in {row["namespace"] for row in lake.run("SHOW NAMESPACES IN lake")}


def test_identifier_fields_are_set_and_dropped(lake: Lake) -> None:
    def identifiers() -> set[str]:
        return RestCatalog("served", uri=lake.url, token=TOKEN).load_table("sales.keyed").schema().identifier_field_names()

    lake.run("CREATE TABLE lake.sales.keyed (id BIGINT NOT NULL, region STRING NOT NULL) USING iceberg")
    lake.run("ALTER TABLE lake.sales.keyed SET IDENTIFIER FIELDS id, region")
    assert identifiers() == {"id", "region"}
    lake.run("INSERT INTO lake.sales.keyed VALUES (1, 'a')")
    lake.run("ALTER TABLE lake.sales.keyed DROP IDENTIFIER FIELDS region")
    assert identifiers() == {"id"}
    lake.assert_rows("keyed", [(1, "a")])


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_table_of_a_hadoop_catalog_is_registered(lake: Lake, format_version: int) -> None:
    name = f"moved{format_version}"
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(lake.root)}.items():
        lake.spark.conf.set(f"spark.sql.catalog.hadoop{key}", value)
    properties = f"TBLPROPERTIES ('format-version' = '{format_version}', 'write.delete.mode' = 'merge-on-read')"
    lake.run(f"CREATE TABLE hadoop.sales.{name} (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day) {properties}")
    lake.run(f"INSERT INTO hadoop.sales.{name} VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-01'), (3, NULL)")
    if format_version == 2:
        lake.run(f"DELETE FROM hadoop.sales.{name} WHERE id = 1")
    else:
        lake.run(f"DELETE FROM hadoop.sales.{name} WHERE day = DATE '2026-01-01'")
    rows = [tuple(row.values()) for row in lake.run(f"SELECT * FROM hadoop.sales.{name}")]
    newest = max(lake.path(name).glob("metadata/v*.metadata.json"))
    lake.run(f"CALL lake.system.register_table(table => 'sales.{name}', metadata_file => '{newest}')")
    lake.assert_rows(name, rows)
    lake.run(f"INSERT INTO lake.sales.{name} VALUES (4, DATE '2026-01-04')")
    lake.assert_rows(name, [*rows, (4, date(2026, 1, 4))])
    lake.refused(f"CALL lake.system.register_table(table => 'sales.{name}', metadata_file => '{newest}')", "already")


REFUSED = {
    "CREATE TABLE lake.sales.bucketed (id BIGINT) USING iceberg PARTITIONED BY (bucket(4, id))": "partition transform 'bucket",
    "CREATE TABLE lake.sales.zoned (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')": "variant",
    "ALTER TABLE lake.sales.fixed ADD PARTITION FIELD days(day)": "partition transform 'day'",
    "ALTER TABLE lake.sales.fixed WRITE ORDERED BY id": "sort order",
    "ALTER TABLE lake.sales.fixed CREATE BRANCH audit": "branch 'audit'",
    "ALTER TABLE lake.sales.fixed CREATE TAG end": "tag 'end'",
    "ALTER TABLE lake.sales.fixed SET TBLPROPERTIES ('format-version' = '3')": "format version",
    "CREATE OR REPLACE TABLE lake.sales.fixed (id BIGINT) USING iceberg PARTITIONED BY (bucket(4, id))": "partition transform 'bucket",
    "CREATE VIEW lake.sales.seen AS SELECT 1": "does not support endpoint",
}


@pytest.fixture(scope="module")
def fixed(lake: Lake) -> str:
    lake.run("CREATE TABLE lake.sales.fixed (id BIGINT NOT NULL, day DATE) USING iceberg")
    lake.run("INSERT INTO lake.sales.fixed VALUES (1, NULL)")
    return "fixed"


@pytest.mark.parametrize("statement", REFUSED, ids=lambda statement: statement.split("lake.sales.")[1])
def test_other_statements_are_refused_by_name(lake: Lake, fixed: str, statement: str) -> None:
    version = lake.table(fixed).version()
    lake.refused(statement, REFUSED[statement])
    assert lake.table(fixed).version() == version
    assert {path.name for path in (lake.root / "sales").iterdir()}.isdisjoint({"bucketed", "zoned", "seen"})
