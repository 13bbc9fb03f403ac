"""The result of `df.write.format("delta")`: rows, files, commits, and nothing after a refusal."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest, TahoeError, Unsupported
from tahoe.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tests.spark.written import actions, data_files, ids, info, load, write


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

    def test_only_files_that_tasks_report_are_in_the_table(self, spark, path):
        """A task leaves a file in the folder of its job, as one does that dies after it has moved its files there."""
        write(spark.range(3), path)

        def leaving(batches):
            from pathlib import Path
            from shutil import copy
            from uuid import UUID

            def is_of_a_job(folder):
                try:
                    return UUID(folder.name)
                except ValueError:
                    return None

            rows = list(batches)  # Spark sends them when it has the folder
            (job,) = filter(is_of_a_job, Path(path).iterdir())
            copy(next(Path(path).glob("*.parquet")), job / "part-00007-dead.c000.snappy.parquet")
            yield from rows
            assert (job / "part-00007-dead.c000.snappy.parquet").exists()

        write(spark.range(3, 5, 1, 1).mapInArrow(leaving, "id long"), path)
        assert ids(spark, path) == [0, 1, 2, 3, 4]
        assert not list(Path(path).rglob("part-00007-*"))

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
        query.start().awaitTermination(600)
        assert ids(spark, path) == [0, 1, 2]

    def test_a_table_may_be_overwritten_with_its_own_rows(self, spark, path):
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

    def test_rows_that_match_rows_of_the_source_are_replaced(self, spark, path):
        write(spark.range(40).repartition(4), path)
        chance = spark.range(3).selectExpr("id * 7 + CAST(rand() * 5 AS INT) AS id").alias("s")
        write(chance, path, "overwrite", replaceOn="t.id <=> s.id", targetAlias="t")
        written = [json.loads(add.stats)["minValues"]["id"] for add in actions(path, 1, AddFile)]
        assert ids(spark, path) == list(range(40)) and set(written) & set(range(40))
        write(spark.sql("SELECT 39L AS id UNION ALL SELECT 40L"), path, "overwrite", replaceUsing="id")
        assert ids(spark, path) == list(range(41))

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


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (
                {"replaceWhere": "id = 1", "partitionOverwriteMode": "dynamic"},
                "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            ),
            ({"replaceOn": "true", "replaceUsing": "id"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
            ({"replaceUsing": "id", "dataChange": "false"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
            ({"replaceUsing": "id", "overwriteSchema": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
            ({"replaceUsing": "id"}, "DELTA_PATH_DOES_NOT_EXIST"),
            ({"useNullIntolerantEqualityWithDPO": "true"}, "DELTA_ILLEGAL_OPTION"),
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

    def test_buckets_are_refused_by_name(self, spark, path):
        with pytest.raises(Unsupported, match="bucketBy"):
            spark.range(1).write.format("delta").bucketBy(2, "id").save(path)
        with pytest.raises(Unsupported, match="bucketBy"):
            spark.range(1).write.format("delta").bucketBy(2, "id").saveAsTable("t")
        with pytest.raises(InvalidRequest, match="path"):
            spark.range(1).write.format("delta").save()

    def test_a_table_with_a_rule_that_says_too_little_is_not_written(self, spark, tmp_path):
        from tests.spark.test_reading import write_log

        schema = StructType(
            (StructField("id", PrimitiveType("long"), True, {"delta.identity.start": 1, "delta.identity.step": 1}),)
        )
        write_log(tmp_path, Protocol(1, 6), Metadata("x", schema.to_json()))
        with pytest.raises(CorruptTable, match=r"DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA\] Column 'id'"):
            write(spark.range(1), str(tmp_path))
        assert list(data_files(str(tmp_path))) == []


def test_a_failed_write_waits_for_its_running_tasks_before_it_deletes_their_files(spark, tmp_path):
    # One task fails at once; the other creates its second file a second later.
    rows = spark.range(0, 6, 1, 2).selectExpr(
        "id", "if(id = 0, raise_error('refused'), aggregate(sequence(0, 3000000), id, (sum, each) -> sum + each)) AS sum"
    )
    with pytest.raises(Exception, match="refused"):
        rows.write.format("delta").option("maxRecordsPerFile", 1).save(f"{tmp_path}/t")
    time.sleep(1.5)
    assert list(tmp_path.rglob("*")) == []
    spark.range(2).write.format("delta").save(f"{tmp_path}/t")
    assert spark.read.format("delta").load(f"{tmp_path}/t").count() == 2
