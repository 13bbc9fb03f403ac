"""Writes into partitions, and overwrites of a part of a table: dynamic ones, and `replaceWhere`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.spark.written import actions, data_files, ids, info, load, write


class TestPartitions:
    VALUES = (
        ("string", "concat('ö /%=?', id)", "ö /%=?1"),
        ("int", "cast(id as int)", "1"),
        ("double", "id * 1.5D", "1.5"),
        ("decimal(9,2)", "cast(id as decimal(9,2))", "1.00"),
        ("boolean", "id = 1", "true"),
        ("date", "date_add(date'2026-01-01', cast(id as int))", "2026-01-02"),
        ("timestamp", "timestamp_seconds(id)", "1970-01-01T00:00:01.000000Z"),
        ("timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00.5' + make_dt_interval(0, 0, 0, id)", "2026-01-01 00:00:01.5"),
        ("binary", "cast(concat('b', id) as binary)", "b1"),
    )

    @pytest.mark.parametrize(("name", "expression", "text"), VALUES, ids=[name for name, _, _ in VALUES])
    def test_values_of_every_type_come_back_and_prune(self, spark, path, name, expression, text):
        frame = spark.range(3).selectExpr("id", f"case when id < 2 then {expression} end as p")
        frame.write.format("delta").partitionBy("p").save(path)
        written = {row.id: row.p for row in frame.collect()}
        assert {row.id: row.p for row in load(spark, path).collect()} == written
        assert [row.id for row in load(spark, path).where(sf.col("p") == sf.lit(written[1])).collect()] == [1]
        assert {add.partition_values["p"] for add in actions(path, 0, AddFile)} >= {text, None}
        assert Table(path).to_arrow().num_rows == 3
        assert Table(path).check() == []

    @pytest.mark.parametrize("mapping", ["none", "name"])
    def test_names_of_columns_may_hold_dots_and_back_ticks(self, spark, path, mapping):
        inner = sf.struct(sf.lit(1).alias("x.y"), sf.lit(2).alias("`"))
        frame = spark.range(4).select(
            sf.col("id").alias("a.b"),
            (sf.col("id") % 2).alias("p.q"),
            sf.lit("x").alias("t`k"),
            sf.lit(1).alias("_u"),
            inner.alias("s.t"),
        )
        for mode in ("error", "append"):
            writer = frame.write.format("delta").mode(mode).partitionBy("p.q", "_u")
            writer.option("delta.columnMapping.mode", mapping).save(path)
        assert load(spark, path).columns == frame.columns
        assert load(spark, path).where("`p.q` = 1 and `a.b` >= 1 and `s.t`.`x.y` = 1 and `t``k` = 'x' and _u = 1").count() == 4

    def test_an_empty_text_is_null(self, spark, path):
        frame = spark.createDataFrame([(1, ""), (2, None), (3, "x")], "id long, p string")
        frame.write.format("delta").partitionBy("p").save(path)
        assert {row.id: row.p for row in load(spark, path).collect()} == {1: None, 2: None, 3: "x"}

    def test_an_empty_text_does_not_go_into_a_partition_column_that_must_not_be_null(self, spark, path):
        schema = StructType((StructField("id", PrimitiveType("long")), StructField("p", PrimitiveType("string"), False)))
        Table.create(path, schema, partition_by=["p"])
        with pytest.raises(InvalidRequest) as raised:
            write(spark.createDataFrame([(1, ""), (2, "x")], "id long, p string"), path)
        assert raised.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
        assert list(data_files(path)) == []

    def test_times_where_clocks_go_back_are_kept_apart(self, spark, path):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        frame = session.range(2).selectExpr("id", "timestamp_seconds(1793523600 + id * 3600) p")
        frame.write.format("delta").partitionBy("p").save(path)
        assert len({add.partition_values["p"] for add in actions(path, 0, AddFile)}) == 2
        actual = load(session, path).selectExpr("id", "unix_seconds(p) s").collect()
        assert {row.id: row.s for row in actual} == {0: 1793523600, 1: 1793527200}

    def test_another_partitioning_than_the_tables_is_refused_unless_the_schema_is_overwritten(self, spark, path):
        frame = spark.range(4).selectExpr("id", "id % 2 a", "id % 3 b")
        frame.write.format("delta").partitionBy("a").save(path)
        with pytest.raises(InvalidRequest, match="partitioned by"):
            frame.write.format("delta").mode("append").partitionBy("b").save(path)
        frame.write.format("delta").mode("append").partitionBy("A").save(path)
        frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy("b").save(path)
        assert Table(path).snapshot().partition_columns == ("b",)
        frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
        assert Table(path).snapshot().partition_columns == ()

    def test_dynamic_overwrite_replaces_the_partitions_that_the_data_has(self, spark, path):
        frame = spark.range(6).selectExpr("id", "case when id % 3 = 2 then null else id % 3 end p")
        frame.write.format("delta").partitionBy("p").save(path)
        new = spark.createDataFrame([(10, 1), (11, None)], "id long, p long")
        write(new, path, "overwrite", partitionOverwriteMode="dynamic")
        assert ids(spark, path) == [0, 3, 10, 11]
        assert info(path, 1)["operationParameters"]["isDynamicPartitionOverwrite"] is True

    def test_the_sessions_setting_makes_overwrites_dynamic_and_the_option_wins(self, spark, path):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        frame = session.range(4).selectExpr("id", "id % 2 p")
        frame.write.format("delta").partitionBy("p").save(path)
        write(session.createDataFrame([(9, 1)], "id long, p long"), path, "overwrite")
        assert ids(session, path) == [0, 2, 9]
        write(session.createDataFrame([(8, 1)], "id long, p long"), path, "overwrite", partitionOverwriteMode="static")
        assert ids(session, path) == [8]


class TestReplaceWhere:
    @pytest.fixture
    def table(self, spark, path) -> str:
        """Ids 0 to 29 in three partitions p = id // 10, q = id % 5; one file a partition."""
        frame = spark.range(30).selectExpr("id", "cast(id div 10 as int) p", "cast(id % 5 as int) q").repartition(1)
        frame.write.format("delta").partitionBy("p").save(path)
        return path

    def test_a_condition_on_partitions_removes_whole_files_and_writes_none_again(self, spark, table):
        write(spark.createDataFrame([(99, 1, 0)], "id long, p int, q int"), table, "overwrite", replaceWhere="p = 1")
        assert ids(spark, table) == [*range(10), *range(20, 30), 99]
        assert len(actions(table, 1, AddFile)) == 1
        assert len(actions(table, 1, RemoveFile)) == 1

    def test_a_condition_on_data_keeps_the_other_rows(self, spark, table):
        write(spark.createDataFrame([(25, 2, 7)], "id long, p int, q int"), table, "overwrite", replaceWhere="id >= 25")
        assert ids(spark, table) == list(range(26))
        assert len(actions(table, 1, RemoveFile)) == 1
        assert info(table, 1)["operationMetrics"]["numCopiedRows"] == "5"

    def test_rows_for_which_the_condition_is_null_are_kept(self, spark, path):
        write(spark.createDataFrame([(1, None), (2, 5)], "id long, v int"), path)
        write(spark.createDataFrame([(3, 5)], "id long, v int"), path, "overwrite", replaceWhere="v = 5")
        assert ids(spark, path) == [1, 3]

    def test_files_without_a_matching_row_stay(self, spark, table):
        write(spark.createDataFrame([], "id long, p int, q int"), table, "overwrite", replaceWhere="id in (3, 14, 1000)")
        assert ids(spark, table) == [i for i in range(30) if i not in (3, 14)]
        assert len(actions(table, 1, RemoveFile)) == 2

    def test_any_condition_that_spark_understands_will_do(self, spark, table):
        new = spark.createDataFrame([(4, 0, 4)], "id long, p int, q int")
        write(new, table, "overwrite", replaceWhere="pmod(id, 5) = 4 and upper(cast(p as string)) = '0'")
        assert ids(spark, table) == [i for i in range(30) if i != 9]

    def test_a_row_that_does_not_fulfil_the_condition_is_refused_and_nothing_changes(self, spark, table):
        new = spark.createDataFrame([(1, 1, 0), (99, 2, 0)], "id long, p int, q int")
        with pytest.raises(InvalidRequest) as raised:
            write(new, table, "overwrite", replaceWhere="p = 1")
        assert raised.value.code == "DELTA_REPLACE_WHERE_MISMATCH"
        assert "Traceback" not in str(raised.value)
        assert Table(table).version() == 0

    @pytest.mark.parametrize(
        "properties",
        [
            {},
            {"delta.enableDeletionVectors": "true"},
            {"delta.enableChangeDataFeed": "true"},
            {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
            {"delta.enableRowTracking": "true"},
            {"delta.columnMapping.mode": "name"},
        ],
        ids=lambda properties: "-".join(properties) or "plain",
    )
    def test_whatever_the_table_keeps_of_its_rows_is_kept(self, spark, path, properties):
        frame = spark.range(20).selectExpr("id", "cast(id div 10 as int) p").repartition(1)
        frame.write.format("delta").partitionBy("p").options(**properties).save(path)
        write(spark.createDataFrame([(13, 1), (14, 1)], "id long, p int"), path, "overwrite", replaceWhere="id between 12 and 15")
        write(spark.createDataFrame([(100, 1)], "id long, p int"), path, "overwrite", replaceWhere="id in (13, 100)")
        assert ids(spark, path) == [*range(12), 14, *range(16, 20), 100]
        assert Table(path).to_arrow().num_rows == 18
        assert Table(path).check() == []
        if "delta.enableDeletionVectors" in properties:
            assert any(add.deletion_vector for add in actions(path, 1, AddFile))
        if "delta.enableChangeDataFeed" in properties:
            changes = Table(path).changes(start_version=2).to_pylist()
            assert sorted((change["_change_type"], change["id"]) for change in changes) == [("delete", 13), ("insert", 100)]
        if "delta.enableRowTracking" in properties:
            rows = {row["id"]: row["_row_id"] for row in Table(path).to_arrow(row_ids=True).to_pylist()}
            assert len(set(rows.values())) == 18
            before = {row["id"]: row["_row_id"] for row in Table(path).to_arrow(version=0, row_ids=True).to_pylist()}
            assert all(rows[i] == before[i] for i in (10, 11, 16, 19))

    def test_two_that_replace_different_partitions_side_by_side_both_get_in(self, spark, table):
        def replace(p: int) -> None:
            write(spark.createDataFrame([(100 + p, p, 0)], "id long, p int, q int"), table, "overwrite", replaceWhere=f"p = {p}")

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(replace, range(3)))
        assert ids(spark, table) == [100, 101, 102]

    def test_an_append_only_table_is_refused_before_a_file_is_written(self, spark, path):
        spark.range(3).write.format("delta").option("delta.appendOnly", "true").save(path)
        before = sorted(data_files(path))
        for options in ({}, {"replaceWhere": "id = 1"}):
            with pytest.raises(InvalidRequest) as raised:
                write(spark.range(1, 2), path, "overwrite", **options)
            assert raised.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
        assert sorted(data_files(path)) == before

    def test_dead_rows_of_deletion_vectors_do_not_come_back(self, spark, tmp_path):
        from pyroaring import BitMap64

        from tahoe.protocol.dv import inline_descriptor
        from tests.spark.test_reading import add, write_log

        schema = StructType((StructField("id", PrimitiveType("long")),))
        rows = pa.table({"id": list(range(10))})
        first = add(tmp_path, "a.parquet", rows, stats='{"numRecords":10}', deletion_vector=inline_descriptor(BitMap64([0, 9])))
        features = frozenset(["deletionVectors"])
        write_log(tmp_path, Protocol(3, 7, features, features), Metadata("x", schema.to_json()), first)
        write(spark.createDataFrame([(5,)], "id long"), str(tmp_path), "overwrite", replaceWhere="id >= 5")
        assert ids(spark, str(tmp_path)) == [1, 2, 3, 4, 5]


def test_partitions_whose_files_come_into_one_random_folder_keep_their_rows(spark, path, monkeypatch):
    monkeypatch.setattr("tahoe.spark.write.writer._LETTERS", "a")
    rows = spark.range(6).selectExpr("id", "id % 3 AS p").coalesce(1)
    rows.write.format("delta").partitionBy("p").option("delta.randomizeFilePrefixes", "true").save(path)
    table = Table(path)
    assert len(table.files()) == 3 and {name.split("/")[0] for name in table.files()["path"].to_pylist()} == {"aa"}
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(6)) and table.check(deep=True) == []
