"""Reads over Spark Connect: the newest version, only some files, and only some columns. Statements whose table is named by a variable, by an
expression or by a temporary view."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSourceReader

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, Unsupported
from tests.operations.operations import made
from tests.spark.connect_server import remote


def test_a_filter_skips_files_of_its_own_scan_alone(connect: Any, tmp_path: Path) -> None:
    """Spark keeps the files of a pushed filter in a relation that it may use again."""
    path = made(str(tmp_path / "t"))
    with remote():
        frame = connect.read.format("delta").load(path)
        assert frame.columns == ["id", "p", "s", "n"]  # the server keeps the relation
        assert [frame.where("id < 2").count(), frame.count(), len(frame.where("id > 9").collect()), len(frame.collect())] == [
            2,
            12,
            2,
            12,
        ]
        assert frame.where("id < 2").union(frame.where("id > 8")).union(frame).count() == 17
        frame.createOrReplaceTempView("pushed")
        counts = ["(SELECT count(*) FROM {} WHERE id < 2)", "(SELECT count(*) FROM {} WHERE id > 5)", "(SELECT count(*) FROM {})"]
        assert tuple(connect.sql(f"SELECT {', '.join(counts).format(*['pushed'] * 3)}").first()) == (2, 6, 12)
        assert tuple(connect.sql(f"SELECT {', '.join(counts).format(*[f'delta.`{path}`'] * 3)}").first()) == (2, 6, 12)
        expression = f"WITH t AS (SELECT * FROM delta.`{path}`) SELECT {', '.join(counts).format(*['t'] * 3)}"
        assert tuple(connect.sql(expression).first()) == (2, 6, 12)
        named = f"SELECT {', '.join(counts)}".format(*["{t}"] * 3)
        assert tuple(connect.sql(named, t=frame).first()) == (2, 6, 12)
        assert frame.persist().count() == 12
        assert frame.where("id < 2").count() == 2
        frame.unpersist()
        if not hasattr(DataSourceReader, "pushFilters"):
            return  # PySpark 4.0 pushes no filters
        for file in (tmp_path / "t").rglob("*.parquet"):
            if Table(path).files(filter="id > 9")["path"].to_pylist().count(str(file.relative_to(tmp_path / "t"))) == 0:
                file.unlink()
        assert sorted(row.id for row in frame.where("id > 9").collect()) == [10, 11]
        assert [row.id for row in connect.sql(f"SELECT id FROM delta.`{path}` WHERE id > 10").collect()] == [11]
        expression = f"WITH t AS (SELECT id, p FROM delta.`{path}`), u AS (SELECT * FROM t WHERE t.id > 10) SELECT u.id FROM u"
        assert [row.id for row in connect.sql(expression).collect()] == [11]


def test_a_frame_that_is_used_again_shows_the_newest_rows(connect: Any, tmp_path: Path) -> None:
    """The server keeps the relation of a plan that it has executed."""
    path = made(str(tmp_path / "t"))
    with remote():
        frame = connect.read.format("delta").load(path)
        joined = frame.join(frame.select("id"), "id")
        stored = connect.read.format("delta").load(path).persist()
        assert [len(each.collect()) for each in (frame, joined, stored)] == [12, 12, 12]
        Table(path).delete("id < 4")
        assert [len(each.collect()) for each in (frame, joined, stored)] == [8, 8, 12]
        assert frame.localCheckpoint().count() == 8
        frame.write.parquet(str(tmp_path / "copy"))
        assert connect.read.parquet(str(tmp_path / "copy")).count() == 8
        connect.catalog.clearCache()
        assert len(stored.collect()) == len(stored.persist().collect()) == 8
        Table(path).delete()
        connect.sql("CLEAR CACHE")
        assert len(stored.collect()) == 0


def test_a_query_reads_one_version_of_a_table_beside_a_writer(connect: Any, tmp_path: Path) -> None:
    path, is_done = str(tmp_path / "t"), Event()
    table = Table(path)
    table.append(pa.table({"id": [0]}))

    def append() -> None:
        while not is_done.is_set() and table.snapshot().version < 3000:
            table.append(pa.table({"id": [table.snapshot().version]}))

    writer = Thread(target=append)
    with remote():
        writer.start()
        try:
            for _ in range(4):
                left, right = (connect.read.format("delta").load(path).alias(name) for name in ("a", "b"))
                joined = left.join(right, "id", "full_outer").where("a.id IS NULL OR b.id IS NULL")
                assert joined.count() == 0
                query = f"SELECT (SELECT count(*) FROM delta.`{path}`) - (SELECT count(*) FROM delta.`{path}`)"
                assert connect.sql(query).collect() == [(0,)]
            version = table.snapshot().version
            assert left.union(right).count() > 2 * version  # a DataFrame that is used again reads the newest version
        finally:
            is_done.set()
            writer.join()


def test_queries_read_the_columns_that_they_name(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"))
    table = f"delta.`{path}`"
    with remote():
        frame = connect.read.format("delta").load(path)
        assert frame.select("id").where("s IS NULL").collect() == [(7,)]
        assert frame.where("p = 1").agg(sf.sum("id")).first()[0] == 1 + 4 + 7 + 10
        assert frame.select("n.b").distinct().collect() == [("x",)]
        assert frame.select(sf.lit(1)).count() == 12
        assert frame.where("id < 3").select("*").columns == frame.columns
        assert frame.where("id = 2").drop("n").collect() == [(2, 2, "text 2")]
        other = frame.withColumnRenamed("id", "other").select("other", "p")
        assert frame.join(other, frame["id"] == sf.col("other")).select(frame["id"], "other").count() == 12
        assert frame.union(frame).select("p").distinct().count() == 3
        assert frame.toDF("a", "b", "c", "d").select("c").where("a = 3").collect() == [("text 3",)]
        assert frame.groupBy("p").pivot("id", [1, 2]).count().count() == 3
        assert frame.groupBy().sum().columns == ["sum(id)", "sum(p)"]
        assert connect.sql(f"SELECT count(*), max(s) FROM {table} WHERE id * 2 > 6").collect() == [(8, "text 9")]
        assert connect.sql(f"SELECT c FROM {table} AS x(a, b, c, d) WHERE a = 1").collect() == [("text 1",)]
        assert len(connect.sql(f"SELECT * FROM {table} NATURAL JOIN {table} AS other").columns) == 4
        assert connect.sql(f"SELECT t.n.a FROM {table} AS t WHERE `ID` = 5").collect() == [(5,)]
        assert connect.sql(f"SELECT (SELECT max(id) FROM {table}) + p FROM {table} WHERE id = 1").collect() == [(12,)]
        plan = frame.select("id").where("p = 1")
        assert plan.collect() == [(1,), (4,), (7,), (10,)] and frame.count() == 12 and len(frame.first()) == 4
        named = connect.read.format("delta").option("queryNames", "id").load(path)
        with pytest.raises(Exception, match="queryNames"):
            named.count()


def test_file_metadata_is_a_hidden_column(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = Table.create(path, {"id": "long", "v": "string"}, properties={"delta.enableRowTracking": "true"})
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table.append(pa.table({"id": [3], "v": ["c"]}))
    table.delete("id = 1")
    files = {row: f"file:{path}/{name}" for row, name in enumerate(table.files()["path"].to_pylist())}
    with remote():
        frame, by_path = connect.read.format("delta").load(path), f"delta.`{path}`"
        metadata = frame.select("_metadata").schema["_metadata"].dataType
        assert [name for name in metadata.names if "row" in name] == [
            "row_index",
            "row_id",
            "base_row_id",
            "default_row_commit_version",
            "row_commit_version",
        ]
        rows = (
            frame.select("*", "_metadata.row_id", frame.metadataColumn("_metadata")["file_path"].alias("f"))
            .orderBy("id")
            .collect()
        )
        assert [tuple(row)[:3] for row in rows] == [(2, "b", 1), (3, "c", 2)]
        assert {row.f for row in rows} == set(files.values())
        assert frame.where("_metadata.row_id = 2").orderBy("_metadata.row_id").collect() == [(3, "c")]
        assert frame.columns == ["id", "v"]
        joined = connect.sql(
            f"SELECT a.*, b._metadata.row_id AS r FROM {by_path} AS a JOIN {by_path} AS b USING (id) WHERE id > 2"
        )
        assert [joined.columns, joined.collect(), joined.where("r = 0").count()] == [["id", "v", "r"], [(3, "c", 2)], 0]
        versions = connect.sql(
            f"SELECT *, _metadata.row_commit_version FROM {by_path} VERSION AS OF 1 WHERE _metadata.row_index = 0"
        )
        assert versions.collect() == [(1, "a", 1)]
        sizes = connect.sql(
            f"SELECT sum(DISTINCT _metadata.file_size), max(_metadata.file_modification_time) > '2020-01-01' FROM {by_path}"
        )
        assert tuple(sizes.first()) == (sum(set(table.files()["size"].to_pylist())), True)
        with pytest.raises(Unsupported, match=r"_metadata\.file_path"):
            frame.select(sf.input_file_name()).collect()


def test_texts_that_are_built_at_run_time(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"))
    with remote():
        connect.sql(f"CREATE TABLE at_run_time USING delta LOCATION '{path}'")
        connect.sql("DECLARE OR REPLACE VARIABLE most BIGINT")
        connect.sql("DECLARE OR REPLACE VARIABLE name STRING DEFAULT 'at_run_time'")
        connect.sql("EXECUTE IMMEDIATE 'SELECT max(id) FROM at_run_time WHERE id < ?' INTO most USING 5")
        assert connect.sql("SELECT most").first()[0] == 4
        assert connect.sql("EXECUTE IMMEDIATE 'DELETE FROM at_run_time WHERE id = :id' USING :x AS id", {"x": 4}).first()[0] == 1
        assert connect.sql("SELECT count(*), max(IDENTIFIER('id')) FROM IDENTIFIER(name)").first() == (11, 11)
        assert connect.sql("DELETE FROM IDENTIFIER(concat(:name, '')) WHERE id = 0", {"name": "at_run_time"}).first()[0] == 1
        with pytest.raises(AnalysisException, match="missing"):
            connect.sql("SELECT * FROM IDENTIFIER(missing)").collect()
        with pytest.raises(Unsupported, match="function that reads Delta tables"):
            connect.sql("CREATE TEMPORARY FUNCTION ids() RETURNS TABLE (id BIGINT) RETURN SELECT id FROM at_run_time")


def test_rows_are_changed_through_a_temporary_view(connect: Any, tmp_path: Path) -> None:
    path = made(str(tmp_path / "t"))
    with remote():
        frame = connect.read.format("delta").load(path)
        frame.createOrReplaceTempView("whole")
        connect.sql(f"CREATE OR REPLACE TEMP VIEW some AS SELECT id, s FROM delta.`{path}`")
        frame.where("id > 1").createOrReplaceTempView("filtered")
        assert connect.sql("DELETE FROM whole WHERE id = 0").first() == (1,)
        assert connect.sql("UPDATE some AS x SET s = 'new' WHERE x.id = 1").first() == (1,)
        merge = "MERGE INTO {} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
        assert connect.sql(merge.format("whole")).first().num_deleted_rows == 1
        rows = connect.sql("SELECT id, s FROM whole ORDER BY id LIMIT 2").collect()
        assert [(row.id, row.s == "new") for row in rows] == [(1, True), (3, False)]
        version = Table(path).snapshot().version
        for statement, error in (
            ("DELETE FROM filtered", InvalidRequest),
            (merge.format("some"), InvalidRequest),
            ("UPDATE some SET s = '' WHERE p = 1", AnalysisException),
            ("INSERT INTO whole SELECT * FROM whole", InvalidRequest),
        ):
            with pytest.raises(error):
                connect.sql(statement)
        assert Table(path).snapshot().version == version


def test_constraints_that_only_spark_evaluates(connect: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, {"k": "long", "v": "string"}).append(pa.table({"k": [1], "v": ["ab-1"]}))
    with remote():
        add = f"ALTER TABLE delta.`{path}` ADD CONSTRAINT"
        connect.sql(f"{add} pattern CHECK (regexp_extract(v, '^([a-z]+)-', 1) <> '')")
        version = Table(path).snapshot().version
        for statement, error, message in (
            (f"{add} violated CHECK (regexp_count(v, 'b') = 0)", InvariantViolation, "1 row"),
            (f"{add} code CHECK (reflect('java.lang.System', 'lineSeparator') IS NOT NULL)", Unsupported, "reflect"),
            (f"{add} number CHECK (regexp_count(v, 'b'))", InvalidRequest, "NON_BOOLEAN"),
            (f"INSERT INTO delta.`{path}` VALUES (2, '-2')", InvariantViolation, "v : -2"),
            (f"INSERT INTO delta.`{path}` (k) VALUES (2)", InvariantViolation, "v : None"),
            (f"UPDATE delta.`{path}` SET v = 'x'", InvariantViolation, "v : x"),
        ):
            with pytest.raises(error, match=message):
                connect.sql(statement)
        assert Table(path).snapshot().version == version
        connect.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'b-2')")
        connect.sql(f"UPDATE delta.`{path}` SET v = concat('x', v)")
        rows = connect.createDataFrame([(3, "c-3")], "k long, v string")
        rows.write.format("delta").mode("append").save(path)
    assert Table(path).to_arrow().sort_by("k")["v"].to_pylist() == ["xab-1", "xb-2", "c-3"]
