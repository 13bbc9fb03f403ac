"""What `df.write.format("delta")` leaves behind: rows, files, commits, and nothing where it must refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import InvalidRequest, SchemaMismatch, TahoeError, Unsupported
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.table import Table


def write(frame: DataFrame, path: str, mode: str = "append", partition_by: str | None = None, **options: Any) -> None:
    frame.write.save(path, format="delta", mode=mode, partitionBy=partition_by, **options)


def load(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)


def ids(spark: SparkSession, path: str) -> list[int]:
    return sorted(row.id for row in load(spark, path).select("id").collect())


def actions(path: str, version: int, kind: type) -> list[Any]:
    return [action for action in read_commit(Table(path).store, version) if isinstance(action, kind)]


def info(path: str, version: int) -> dict[str, Any]:
    return dict(actions(path, version, CommitInfo)[0].values)


def data_files(path: str) -> Iterator[Path]:
    return (file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts)


class TestModes:
    def test_the_first_write_creates_the_table(self, spark, path):
        spark.range(10).write.format("delta").save(path)
        assert ids(spark, path) == list(range(10))
        assert actions(path, 0, Protocol) == [Protocol(1, 2)]
        assert all(column.nullable for column in Table(path).schema())
        assert Table(path).check() == []

    def test_append_adds_overwrite_replaces(self, spark, path):
        write(spark.range(3), path)
        write(spark.range(3, 5), path)
        assert ids(spark, path) == [0, 1, 2, 3, 4]
        write(spark.range(7, 9), path, "overwrite")
        assert ids(spark, path) == [7, 8]
        assert [row["version"] for row in Table(path).history()] == [2, 1, 0]

    @pytest.mark.parametrize("mode", ["error", "errorifexists", "default"])
    def test_without_a_mode_a_table_that_is_there_is_refused(self, spark, path, mode):
        write(spark.range(1), path)
        with pytest.raises(InvalidRequest) as raised:
            write(spark.range(1), path, mode)
        assert raised.value.code == "DELTA_PATH_EXISTS"
        assert Table(path).version() == 0

    def test_ignore_writes_only_where_there_is_no_table(self, spark, path):
        write(spark.range(2), path, "ignore")
        write(spark.range(5), path, "ignore")
        assert ids(spark, path) == [0, 1]
        assert Table(path).version() == 0

    def test_every_way_to_spell_a_write(self, spark, path):
        frame = spark.range(1)
        frame.write.save(path, format="delta", mode="overwrite")
        frame.write.mode("append").option("path", path).format("DELTA").save()
        frame.write.save(path=path, format="delta", mode="append", userMetadata="kept")
        assert ids(spark, path) == [0, 0, 0]
        assert info(path, 2)["userMetadata"] == "kept"

    def test_an_empty_frame_makes_a_table_without_files(self, spark, path):
        write(spark.range(0), path)
        assert load(spark, path).count() == 0
        assert Table(path).snapshot().num_files == 0
        assert list(data_files(path)) == []
        write(spark.range(0), path)
        assert Table(path).version() == 0  # nothing to commit

    def test_nothing_is_left_beside_the_data_files(self, spark, path):
        write(spark.range(10).withColumn("p", sf.col("id") % 2), path, partition_by="p")
        left = [file.name for file in Path(path).rglob("*") if file.is_file() and "_delta_log" not in file.parts]
        assert len(left) >= 2
        assert all(name.startswith("part-") and name.endswith(".parquet") for name in left)

    def test_a_failing_job_leaves_nothing(self, spark, path):
        write(spark.range(1), path)
        before = sorted(data_files(path))
        frame = spark.range(10).select(
            sf.when(sf.col("id") == 7, sf.raise_error(sf.lit("no seven"))).otherwise(sf.col("id")).alias("id")
        )
        with pytest.raises(Exception, match="no seven"):
            write(frame, path)
        assert sorted(data_files(path)) == before
        assert Table(path).version() == 0
        assert [item.name for item in Path(path).iterdir() if item.is_dir()] == ["_delta_log"]

    def test_writers_side_by_side_all_get_in(self, spark, path):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: write(spark.range(i, i + 1), path), range(8)))
        assert ids(spark, path) == list(range(8))
        assert Table(path).version() == 7

    def test_a_stream_writes_its_batches_each_once(self, spark, path, tmp_path):
        (tmp_path / "in").mkdir()
        for i in range(3):
            spark.range(i, i + 1).write.mode("append").parquet(str(tmp_path / "in"))

        def append(frame: DataFrame, batch: int) -> None:
            for _ in range(2):
                frame.write.format("delta").mode("append").option("txnAppId", "s").option("txnVersion", batch).save(path)

        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        query = (
            stream.writeStream.foreachBatch(append).option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True)
        )
        query.start().awaitTermination(60)
        assert ids(spark, path) == [0, 1, 2]

    def test_a_table_may_be_overwritten_with_what_is_read_of_it(self, spark, path):
        write(spark.range(4), path)
        write(load(spark, path).where("id > 1"), path, "overwrite")
        assert ids(spark, path) == [2, 3]

    def test_an_append_reads_nothing_of_the_table(self, spark, path):
        write(spark.range(1), path)
        write(spark.range(1), path)
        assert info(path, 1)["isBlindAppend"] is True
        write(spark.range(1), path, "overwrite")
        assert info(path, 2)["isBlindAppend"] is False


class TestCommits:
    def test_operation_parameters_and_metrics_are_the_references(self, spark, path):
        frame = spark.range(100).withColumn("p", sf.col("id") % 2).repartition(1)
        frame.write.format("delta").partitionBy("p").save(path)
        first = info(path, 0)
        assert first["operation"] == "WRITE"
        assert first["operationParameters"] == {"mode": "ErrorIfExists", "partitionBy": '["p"]'}
        adds = actions(path, 0, AddFile)
        assert first["operationMetrics"] == {
            "numFiles": "2",
            "numOutputRows": "100",
            "numOutputBytes": str(sum(add.size for add in adds)),
        }
        write(frame.where("p = 1"), path, "overwrite", replaceWhere="p = 1", userMetadata="again")
        second = info(path, 1)
        assert second["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "p = 1"}
        assert second["operationMetrics"]["numRemovedFiles"] == "1"
        assert second["operationMetrics"]["numCopiedRows"] == "0"
        assert second["userMetadata"] == "again"

    def test_files_have_the_references_names_and_statistics_from_their_footers(self, spark, path):
        write(spark.range(10).selectExpr("id", "concat('t', id) s", "id % 2 p"), path, partition_by="p")
        for add in actions(path, 0, AddFile):
            assert add.path.startswith(f"p={add.partition_values['p']}/part-0000")
            assert add.path.endswith(".c000.snappy.parquet")
            stored = pq.read_table(Path(path) / add.path)
            stats = json.loads(add.stats)
            assert stats["numRecords"] == stored.num_rows
            assert stats["minValues"]["id"] == min(stored["id"].to_pylist())
            assert stats["maxValues"]["s"] == max(stored["s"].to_pylist())
            assert stats["nullCount"] == {"id": 0, "s": 0}

    def test_an_application_writes_each_of_its_versions_once(self, spark, path):
        for version in (1, 1, 2, 1):
            write(spark.range(1), path, txnAppId="job", txnVersion=version)
        assert ids(spark, path) == [0, 0]
        write(spark.range(1), path, txnAppId="another", txnVersion=1)
        assert ids(spark, path) == [0, 0, 0]

    def test_properties_and_defaults_of_the_session_go_into_a_new_table(self, spark, path):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "7")
        write(session.range(1), path, **{"delta.appendOnly": "true"})
        assert Table(path).snapshot().metadata.configuration == {"delta.checkpointInterval": "7", "delta.appendOnly": "true"}
        with pytest.raises(InvalidRequest) as raised:
            write(session.range(1), path, "overwrite")
        assert raised.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"

    def test_data_change_false_rearranges(self, spark, path):
        write(spark.range(4).repartition(2), path)
        write(load(spark, path).repartition(1), path, "overwrite", dataChange="false")
        assert all(not action.data_change for action in actions(path, 1, AddFile) + actions(path, 1, RemoveFile))
        assert ids(spark, path) == [0, 1, 2, 3]

    def test_files_are_cut_and_compressed_as_asked(self, spark, path):
        write(spark.range(10).repartition(1), path, maxRecordsPerFile=4, compression="zstd")
        assert sorted(json.loads(add.stats)["numRecords"] for add in actions(path, 0, AddFile)) == [2, 4, 4]
        file = next(data_files(path))
        assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


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
        found = load(session, path).selectExpr("id", "unix_seconds(p) s").collect()
        assert {row.id: row.s for row in found} == {0: 1793523600, 1: 1793527200}

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
        one = add(tmp_path, "a.parquet", rows, stats='{"numRecords":10}', deletion_vector=inline_descriptor(BitMap64([0, 9])))
        features = frozenset(["deletionVectors"])
        write_log(tmp_path, Protocol(3, 7, features, features), Metadata("x", schema.to_json()), one)
        write(spark.createDataFrame([(5,)], "id long"), str(tmp_path), "overwrite", replaceWhere="id >= 5")
        assert ids(spark, str(tmp_path)) == [1, 2, 3, 4, 5]


class TestSchemas:
    @pytest.fixture
    def table(self, spark, path) -> str:
        write(spark.createDataFrame([(1, "a", (1, "x"))], "id long, name string, s struct<a: int, b: string>"), path)
        return path

    def test_columns_are_matched_by_name_without_regard_to_case(self, spark, table):
        write(spark.createDataFrame([("b", 2)], "NAME string, Id long"), table)
        assert [tuple(row) for row in load(spark, table).orderBy("id").select("id", "name").collect()] == [(1, "a"), (2, "b")]

    def test_fields_of_structs_too_and_what_is_missing_is_null(self, spark, table):
        write(spark.createDataFrame([(2, ("y", 5))], "id long, s struct<B: string, A: int>"), table)
        write(spark.createDataFrame([(3, ("z",)), (4, None)], "id long, s struct<b: string>"), table)
        rows = {row.id: row.s and tuple(row.s) for row in load(spark, table).collect()}
        assert rows == {1: (1, "x"), 2: (5, "y"), 3: (None, "z"), 4: None}

    def test_elements_of_arrays_and_maps_too(self, spark, path):
        write(spark.sql("select array(struct(1 as a, 'x' as b)) l, map('k', struct(1 as a)) m"), path)
        write(spark.sql("select array(struct('y' as B, 2 as A)) l, map('k', struct(5S as a)) m"), path)
        rows = sorted(str(row.asDict(recursive=True)) for row in load(spark, path).collect())
        assert rows == [
            "{'l': [{'a': 1, 'b': 'x'}], 'm': {'k': {'a': 1}}}",
            "{'l': [{'a': 2, 'b': 'y'}], 'm': {'k': {'a': 5}}}",
        ]

    def test_an_unknown_column_is_refused_with_its_name_its_type_and_the_remedy(self, spark, table):
        with pytest.raises(SchemaMismatch) as raised:
            write(spark.createDataFrame([(2, 1.5)], "id long, price double"), table)
        assert raised.value.code == "DELTA_METADATA_MISMATCH"
        for part in ("price", "double", "mergeSchema"):
            assert part in str(raised.value)

    def test_a_type_that_cannot_be_stored_is_refused_with_both_types(self, spark, table):
        with pytest.raises(SchemaMismatch) as raised:
            write(spark.createDataFrame([("one",)], "id string"), table)
        for part in ("id", "long", "string", "Cast"):
            assert part in str(raised.value)
        assert Table(table).version() == 0

    def test_nothing_is_cast_but_what_parquet_stores_alike(self, spark, path):
        write(spark.createDataFrame([(1,)], "id int"), path)
        write(spark.createDataFrame([(2,)], "id short"), path)
        write(spark.createDataFrame([(3,)], "id byte"), path)
        write(spark.sql("SELECT NULL AS id"), path)
        for mode in ("append", "overwrite"):
            for query in ("3L", "'4'", "5.0D", "6.00BD", "DATE'2026-01-01'", "true", "array(1)"):
                with pytest.raises(AnalysisException, match="DELTA_FAILED_TO_MERGE_FIELDS"):
                    write(spark.sql(f"SELECT {query} AS id"), path, mode, mergeSchema="true")
                with pytest.raises(SchemaMismatch, match="Cast the data to integer"):
                    write(spark.sql(f"SELECT {query} AS ID"), path, mode)
        assert Table(path).version() == 3
        assert [row.id for row in load(spark, path).orderBy("id").collect()] == [None, 1, 2, 3]

    @pytest.mark.parametrize(
        ("columns", "written"),
        [
            ("struct<a:long>", "named_struct('a', 1)"),
            ("array<long>", "array(1)"),
            ("map<string,long>", "map('a', 1)"),
            ("decimal(10,2)", "1.0BD"),
            ("timestamp", "DATE'2026-01-01'"),
            ("timestamp", "timestamp_ntz'2026-01-01 00:00:00'"),
            ("string", "1"),
            ("long", "1"),
            ("byte", "1"),
        ],
    )
    def test_types_inside_of_types_must_be_the_same_too(self, spark, path, columns, written):
        write(spark.createDataFrame([], f"v {columns}"), path)
        with pytest.raises(SchemaMismatch, match="DELTA_FAILED_TO_MERGE_FIELDS"):
            write(spark.sql(f"SELECT {written} AS v"), path)

    @pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")
    def test_replace_where_means_nothing_to_an_append_but_stands_in_the_history(self, spark, path):
        write(spark.range(3), path)
        write(spark.range(3, 5), path, "append", replaceWhere="id < 2")
        assert ids(spark, path) == [0, 1, 2, 3, 4]
        assert info(path, 1)["operationParameters"] == {"mode": "Append", "partitionBy": "[]", "predicate": "id < 2"}

    def test_merge_schema_adds_columns_and_fields(self, spark, table):
        new = spark.sql("select 2L id, 1.5D price, struct(7 as a, true as c) s")
        write(new, table, mergeSchema="true")
        assert load(spark, table).schema.simpleString() == (
            "struct<id:bigint,name:string,s:struct<a:int,b:string,c:boolean>,price:double>"
        )
        assert load(spark, table).where("id = 2").first().asDict(recursive=True) == {
            "id": 2,
            "name": None,
            "s": {"a": 7, "b": None, "c": True},
            "price": 1.5,
        }

    def test_the_sessions_setting_merges_too(self, spark, table):
        session = spark.newSession()
        session.conf.set("spark.tahoe.enabled", "true")
        session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
        write(session.sql("select 2L id, 3 more"), table)
        assert load(spark, table).columns == ["id", "name", "s", "more"]

    def test_overwrite_schema_replaces_it(self, spark, table):
        with pytest.raises(SchemaMismatch):
            write(spark.sql("select 'one' id"), table, "overwrite")
        write(spark.sql("select 'one' id"), table, "overwrite", overwriteSchema="true")
        assert load(spark, table).schema.simpleString() == "struct<id:string>"
        assert load(spark, table).first().id == "one"

    def test_not_null_is_enforced_at_every_depth(self, spark, path):
        inner = StructType((StructField("b", PrimitiveType("long"), False),))
        schema = StructType((StructField("id", PrimitiveType("long"), False), StructField("s", inner)))
        Table.create(path, schema)
        write(spark.sql("select 1L id, named_struct('b', 2L) s"), path)
        for query, column in (
            ("select cast(null as bigint) id, named_struct('b', 1L) s", "id"),
            ("select 2L id, cast(null as struct<b: bigint>) s", "s.b"),
            ("select 3L id, named_struct('b', cast(null as bigint)) s", "s.b"),
        ):
            with pytest.raises(InvalidRequest) as raised:
                write(spark.sql(query), path)
            assert raised.value.code == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
            assert f"'{column}'" in str(raised.value)
        with pytest.raises(SchemaMismatch) as missing:
            write(spark.sql("select named_struct('b', 1L) s"), path)
        assert missing.value.code == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"
        assert ids(spark, path) == [1]

    def test_a_void_column_is_in_the_schema_and_not_in_the_files(self, spark, path):
        write(spark.sql("select 1L id, null nothing"), path)
        assert load(spark, path).schema.simpleString() == "struct<id:bigint,nothing:void>"
        assert pq.read_schema(next(data_files(path))).names == ["id"]
        write(spark.sql("select 2L id, 'now' nothing"), path, mergeSchema="true")
        assert {row.id: row.nothing for row in load(spark, path).collect()} == {1: None, 2: "now"}

    def test_types_that_delta_does_not_have_are_refused_by_column(self, spark, path):
        with pytest.raises(Unsupported, match="'span'"):
            write(spark.sql("select interval '1' day span"), path)
        assert not Table(path).exists()

    def test_timestamps_are_stored_in_microseconds_with_statistics(self, spark, path):
        moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
        write(spark.createDataFrame([(moment, moment.replace(tzinfo=None))], "t timestamp, n timestamp_ntz"), path)
        stored = pq.ParquetFile(next(data_files(path))).schema_arrow
        assert stored.field("t").type == pa.timestamp("us", "UTC")
        assert "t" in json.loads(actions(path, 0, AddFile)[0].stats)["minValues"]
        assert load(spark, path).selectExpr("t = timestamp'2026-01-02 03:04:05.678901'", "cast(n as string)").first() == (
            True,
            "2026-01-02 03:04:05.678901",
        )

    def test_every_value_comes_back(self, spark, path):
        frame = spark.sql(
            """select 1Y b, 2S s, 3 i, 4L l, 1.5F f, 2.5D d, 1.25BD n, true t, 'x' c, X'00FF' y, date'0001-01-01' a,
            timestamp'9999-12-31 23:59:59.999999' z, timestamp_ntz'1582-10-10 00:00:00' o, array(1, null) e,
            map('k', array(null, 'v')) m, named_struct('p', named_struct('q', 1)) r, cast('NaN' as double) x, cast(null as string) u"""
        )
        write(frame, path)
        assert str(load(spark, path).collect()) == str(frame.collect())  # as text, for NaN is not itself in Python
        assert Table(path).to_arrow().num_rows == 1


class TestColumnMapping:
    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_files_have_physical_names_and_ids_and_read_back(self, spark, path, mode):
        frame = spark.sql("select 1L `a b`, named_struct('x,y', 2, 'l', array(named_struct('=', 3))) s, map('k', 4) m, 'p1' p")
        frame.write.format("delta").partitionBy("p").option("delta.columnMapping.mode", mode).save(path)
        schema = Table(path).schema()
        stored = pq.read_schema(next(data_files(path)))
        assert stored.names == [column.physical_name for column in schema if column.name != "p"]
        assert [int(f.metadata[b"PARQUET:field_id"]) for f in stored] == [c.field_id for c in schema if c.name != "p"]
        inner = stored.field(1).type.field(0)
        assert int(inner.metadata[b"PARQUET:field_id"]) == schema.field("s").data_type.fields[0].field_id
        assert load(spark, path).collect() == frame.collect()
        write(frame, path)
        assert load(spark, path).where("s.`x,y` = 2 and p = 'p1'").count() == 2
        assert Table(path).to_arrow().num_rows == 2
        assert {name for add in actions(path, 0, AddFile) for name in add.partition_values} == {schema.field("p").physical_name}

    def test_names_that_parquet_cannot_have_need_column_mapping(self, spark, path):
        with pytest.raises(InvalidRequest) as raised:
            write(spark.sql("select 1 `a b`"), path)
        assert raised.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"

    def test_with_iceberg_compat_partition_columns_and_nested_ids_are_in_the_files(self, spark, path):
        frame = spark.sql(
            "select 1L id, array(array(1)) l, map('k', array(named_struct('f', 1))) m, named_struct('in', array('x')) s, 'a' p"
        )
        options = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
        frame.write.format("delta").partitionBy("p").options(**options).save(path)
        schema = Table(path).schema()
        file = next(data_files(path))
        stored = pq.ParquetFile(file)
        assert stored.schema_arrow.names[-1] == schema.field("p").physical_name
        text = str(stored.schema)
        assert "field_id=-1 element" not in text
        assert "field_id=-1 key " not in text.replace("\n", " ")
        nested = schema.field("l").metadata["delta.columnMapping.nested.ids"]
        element = stored.schema_arrow.field(1).type.value_field
        name = schema.field("l").physical_name
        assert int(element.metadata[b"PARQUET:field_id"]) == nested[f"{name}.element"]
        assert int(element.type.value_field.metadata[b"PARQUET:field_id"]) == nested[f"{name}.element.element"]
        add = actions(path, 0, AddFile)[0]
        assert add.size == file.stat().st_size
        assert stored.read().num_rows == 1
        assert load(spark, path).collect() == frame.collect()
        assert Table(path).check() == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (
                {"replaceWhere": "id = 1", "partitionOverwriteMode": "dynamic"},
                "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            ),
            (
                {"overwriteSchema": "true", "partitionOverwriteMode": "dynamic"},
                "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            ),
            ({"replaceWhere": "id = 1", "dataChange": "false"}, "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET"),
            ({"txnAppId": "a"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
            ({"txnAppId": "a", "txnVersion": "-1"}, "DELTA_ILLEGAL_OPTION"),
            ({"partitionOverwriteMode": "other"}, "DELTA_ILLEGAL_OPTION"),
            ({"mergeSchema": "yes"}, "DELTA_ILLEGAL_OPTION"),
            ({"maxRecordsPerFile": "many"}, "DELTA_ILLEGAL_OPTION"),
            ({"delta.noSuchThing": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ],
        ids=lambda value: str(value),
    )
    def test_options_that_cannot_be_followed_are_refused_before_anything_is_written(self, spark, path, options, code):
        with pytest.raises(TahoeError) as raised:
            write(spark.range(1), path, "overwrite", **options)
        assert raised.value.code == code
        assert not Path(path).exists()

    @pytest.mark.parametrize("option", ["replaceOn", "replaceUsing", "targetAlias"])
    def test_options_of_the_reference_that_are_not_there_are_named(self, spark, path, option):
        with pytest.raises(Unsupported, match=option):
            write(spark.range(1), path, "overwrite", **{option: "id"})

    def test_clusters_and_buckets_are_refused_by_name(self, spark, path):
        with pytest.raises(Unsupported, match="bucketBy"):
            spark.range(1).write.format("delta").bucketBy(2, "id").save(path)
        with pytest.raises(Unsupported, match="clusterBy"):
            spark.range(1).write.format("delta").clusterBy("id").save(path)
        with pytest.raises(Unsupported, match="bucketBy"):
            spark.range(1).write.format("delta").bucketBy(2, "id").saveAsTable("t")
        with pytest.raises(InvalidRequest, match="path"):
            spark.range(1).write.format("delta").save()

    def test_a_table_with_a_rule_that_is_not_enforced_is_not_written(self, spark, tmp_path):
        from tests.spark.test_reading import write_log

        schema = StructType(
            (StructField("id", PrimitiveType("long"), True, {"delta.identity.start": 1, "delta.identity.step": 1}),)
        )
        write_log(tmp_path, Protocol(1, 6), Metadata("x", schema.to_json()))
        with pytest.raises(Unsupported, match=r"identityColumns \(column id\)"):
            write(spark.range(1), str(tmp_path))
        assert list(data_files(str(tmp_path))) == []
