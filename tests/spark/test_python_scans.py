"""Tables on S3 in a session whose Spark has no S3A: rows pass through Python workers, and everything else is as on a local disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvariantViolation, NotFound, TahoeError, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.spark.jvm import file_systems
from tahoe.spark.scan.python_scan import _in_utc
from tahoe.store.object_store import open_store
from tahoe.tables import DeltaTable
from tests.spark.scanned_tables import add, write_log

Options = dict[str, str]


def outcomes(
    work: Callable[[str, Options], list[Any]], s3_url: str, hadoop: Options, folder: Path
) -> tuple[list[Any], list[Any]]:
    return work(s3_url, hadoop), work(str(folder / "table"), {})


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


EVERY_TYPE = """
    id, cast(id AS int) AS i, cast(id % 100 AS tinyint) AS b, cast(id AS float) / 3 AS f, id / 7 AS d, cast(id AS decimal(20, 3)) AS m,
    concat('té-', id) AS s, cast(concat('x', id) AS binary) AS y, id % 2 = 0 AS t, date'2026-01-01' + cast(id AS int) AS day,
    timestamp'2026-03-08 01:30:00' + make_interval(0, 0, 0, 0, cast(id AS int)) AS at, timestamp_ntz'2026-01-01 00:00:00' AS ntz,
    IF(id % 3 = 0, NULL, named_struct('a', id, 'inner', named_struct('c', array(id, NULL), 'e', map('k', id)))) AS n,
    array(named_struct('x', id)) AS l, map(id, named_struct('v', concat('v', id))) AS p,
    parse_json(concat('{"a":', id, '}')) AS v, cast(NULL AS string) AS nothing
"""


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_every_type_is_written_and_read(
    spark: SparkSession, s3_url: str, s3a_settings: Options, tmp_path: Path, mode: str
) -> None:
    def work(url: str, options: Options) -> list[Any]:
        rows = spark.range(60).selectExpr(f"struct({EVERY_TYPE}) AS r").select("r.*")
        rows.write.format("delta").options(**options).option("delta.columnMapping.mode", mode).save(url)
        frame = spark.read.format("delta").options(**options).load(url)
        return [
            frame.schema,
            rows_of(frame),
            rows_of(frame.where("n.inner.c[0] > 50 AND day > '2026-01-10'").select("n.inner", "p", "s")),
            frame.where("at >= timestamp'2026-03-10 00:00:00'").count(),
            frame.agg(sf.sum("m")).collect(),
        ]

    there, here = outcomes(work, s3_url, s3a_settings, tmp_path)
    assert there == here


def test_partition_values_of_every_type(spark: SparkSession, s3_url: str, s3a_settings: Options, tmp_path: Path) -> None:
    columns = ["s", "day", "at", "m", "t", "y"]

    def work(url: str, options: Options) -> list[Any]:
        rows = spark.range(12).selectExpr(
            "id",
            "CASE id % 4 WHEN 0 THEN 'a/b %41' WHEN 1 THEN 'é' WHEN 2 THEN NULL ELSE '__HIVE_DEFAULT_PARTITION__' END AS s",
            "date'2026-01-01' + cast(id % 2 AS int) AS day",
            "timestamp'2026-11-01 01:30:00' AS at",
            "cast(1.50 AS decimal(5, 2)) AS m",
            "id > 5 AS t",
            "cast('b' AS binary) AS y",
        )
        rows.write.format("delta").options(**options).partitionBy(*columns).save(url)
        frame = spark.read.format("delta").options(**options).load(url)
        return [
            rows_of(frame),
            rows_of(frame.where("s = 'é' AND at = timestamp'2026-11-01 01:30:00'")),
            rows_of(frame.where("s IS NULL").select("t")),
            rows_of(frame.groupBy("day", "m").count()),
        ]

    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        there, here = outcomes(work, s3_url, s3a_settings, tmp_path)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert there == here


def test_texts_are_compared_by_their_collation(
    spark: SparkSession, s3_url: str, s3a_settings: Options, s3_options: Options, tmp_path: Path
) -> None:
    column = StructField("s", PrimitiveType("string"), True, {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}})
    files = [add(tmp_path, f"{text}.parquet", pa.table({"s": [text]})) for text in ("lower", "LOWER", "other")]
    write_log(
        tmp_path, Protocol(3, 7, frozenset(), frozenset({"collations"})), Metadata("x", StructType((column,)).to_json()), *files
    )
    store = open_store(s3_url, s3_options)
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        store.put(str(file.relative_to(tmp_path)), file.read_bytes())
    for url, options in ((str(tmp_path), {}), (s3_url, s3a_settings)):
        frame = spark.read.format("delta").options(**options).load(url)
        assert rows_of(frame.where("s = 'Lower'")) == ["Row(s='LOWER')", "Row(s='lower')"]
        assert frame.where("s > 'Lower'").count() == 1
        assert frame.groupBy("s").count().count() == 2


def test_a_partition_value_without_a_zone_is_in_the_zone_of_the_session() -> None:
    assert _in_utc("2026-01-01 00:00:00", "America/Los_Angeles") == "2026-01-01T08:00:00.000000Z"
    assert _in_utc("2026-01-01T00:00:00Z", "America/Los_Angeles") == "2026-01-01T00:00:00Z"
    assert (_in_utc(None, "UTC"), _in_utc("", "UTC"), _in_utc("no time", "UTC")) == (None, "", "no time")


def test_changes_feed_row_ids_and_versions(spark: SparkSession, s3_url: str, s3a_settings: Options, tmp_path: Path) -> None:
    def work(url: str, options: Options) -> list[Any]:
        created = (
            spark.range(100)
            .selectExpr("id", "id % 3 AS p", "named_struct('a', id) AS n")
            .repartition(2, "id")
            .sortWithinPartitions("id")
        )
        writer = created.write.format("delta").options(**options).option("delta.enableChangeDataFeed", "true")
        writer.option("delta.enableDeletionVectors", "true").option("delta.enableRowTracking", "true").save(url)
        table = DeltaTable.forPath(spark, url, options)
        table.delete("id < 10")
        table.update("id < 20", {"n": "named_struct('a', -id)"})
        source = spark.range(15, 105).selectExpr("id", "7L AS p", "named_struct('a', 0L) AS n")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll("s.id < 50")
        merge.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.id = 12").execute()
        reader = spark.read.format("delta").options(**options)
        feed = (
            spark.read.format("delta")
            .options(**options)
            .option("readChangeFeed", "true")
            .option("startingVersion", "1")
            .load(url)
        )
        frame = reader.load(url)
        return [
            rows_of(frame),
            rows_of(feed.drop("_commit_timestamp")),
            rows_of(feed.where("_change_type = 'delete' AND _commit_version = 1").select("id")),
            rows_of(frame.select("id", "_metadata.row_id", "_metadata.row_commit_version")),
            rows_of(frame.where("id < 22").select("id", "_metadata.row_index", "_metadata.file_size")),
            rows_of(reader.option("versionAsOf", "1").load(url)),
        ]

    there, here = outcomes(work, s3_url, s3a_settings, tmp_path)
    # Sizes of files depend on their writer.
    assert [len(part) for part in there] == [len(part) for part in here]
    assert there[:4] + there[5:] == here[:4] + here[5:]


def test_the_scan_reads_only_the_columns_and_files_that_a_query_needs(
    spark: SparkSession, s3_url: str, s3a_settings: Options, s3_options: Options
) -> None:
    for start in (0, 100):
        rows = spark.range(start, start + 100, 1, 1).selectExpr("id", "id AS a", "named_struct('b', id, 'c', id) AS n")
        rows.write.format("delta").options(**s3a_settings).mode("append").save(s3_url)
    frame = spark.read.format("delta").options(**s3a_settings).load(s3_url)
    query = frame.where("id < 10").select("n.b")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    (scan,) = [line for line in plan.splitlines() if "MapInArrow" in line]
    assert "[id#" in scan and "n#" in scan and "a#" not in scan
    secret = s3a_settings["fs.s3a.secret.key"]
    assert secret not in query._jdf.queryExecution().toString()
    second = frame.where("id = 150").select("_metadata.file_path").first()
    assert second is not None
    assert second[0].startswith("s3a://")
    open_store(s3_url, s3_options).delete(second[0].rpartition("/")[2])
    assert query.count() == 10
    with pytest.raises(NotFound, match=second[0].rpartition("/")[2]) as missing:
        frame.select("a").collect()
    assert missing.value.code == "DELTA_FILE_NOT_FOUND"


def test_options_of_files_apply_or_are_refused(spark: SparkSession, s3_url: str, s3a_settings: Options) -> None:
    writer = spark.range(100).repartition(1).write.format("delta").options(**s3a_settings)
    writer.option("maxRecordsPerFile", "30").option("compression", "zstd").save(s3_url)
    files = spark.read.format("delta").options(**s3a_settings).load(s3_url).inputFiles()
    assert len(files) == 4
    assert all(file.endswith(".zstd.parquet") for file in files)
    with pytest.raises(Unsupported, match=r"parquet\.block\.size"):
        writer.mode("append").option("parquet.block.size", "1024").save(s3_url)
    with pytest.raises(Unsupported, match=r"aws_region.*fs\.s3a"):
        spark.read.format("delta").options(**s3a_settings).option("aws_region", "us-east-1").load(s3_url)
    with pytest.raises(Unsupported, match=r"_metadata\.file_path") as refused:
        spark.read.format("delta").options(**s3a_settings).load(s3_url).select(sf.input_file_name()).collect()
    assert refused.value.code == "TAHOE_INPUT_FILE_NAME"


def test_rules_of_the_table_apply(spark: SparkSession, s3_url: str, s3a_settings: Options) -> None:
    spark.range(3).write.format("delta").options(**s3a_settings).option("delta.constraints.small", "id < 10").save(s3_url)
    with pytest.raises(InvariantViolation, match="small"):
        spark.range(20).write.format("delta").options(**s3a_settings).mode("append").save(s3_url)
    frame = spark.read.format("delta").options(**s3a_settings).load(s3_url)
    assert frame.count() == 3
    with pytest.raises(TahoeError):
        DeltaTable.forPath(spark, s3_url, s3a_settings).update(set={"id": "id + 8"})
    assert rows_of(frame) == ["Row(id=0)", "Row(id=1)", "Row(id=2)"]


def test_a_stream_reads_and_writes(spark: SparkSession, s3_url: str, s3a_settings: Options, tmp_path: Path) -> None:
    spark = spark.newSession()  # whose planner no scan has prepared
    source, target = f"{s3_url}/a", f"{s3_url}/b"
    spark.range(10).write.format("delta").options(**s3a_settings).save(source)
    stream = spark.readStream.format("delta").options(**s3a_settings).load(source).where("id > 2")
    for expected in (7, 9):
        query = (
            stream.writeStream.format("delta").options(**s3a_settings).option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        query.trigger(availableNow=True).start(target).awaitTermination()
        assert spark.read.format("delta").options(**s3a_settings).load(target).count() == expected
        spark.range(20, 22).write.format("delta").options(**s3a_settings).mode("append").save(source)


def test_one_line_of_the_log_says_so(
    spark: SparkSession, s3_url: str, s3a_settings: Options, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_systems, "_REPORTED", set())
    with caplog.at_level(logging.WARNING, logger="tahoe"):
        spark.range(2).write.format("delta").options(**s3a_settings).save(s3_url)
        assert spark.read.format("delta").options(**s3a_settings).load(s3_url).count() == 2
    (line,) = [record.message for record in caplog.records if "hadoop-aws" in record.message]
    assert "Python workers" in line


def test_char_columns_compare_with_padded_texts(spark: SparkSession, s3_url: str, s3a_settings: Options, tmp_path: Path) -> None:
    def work(url: str, options: Options) -> list[Any]:
        rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id INT, c STRING")
        rows = rows.select("id", sf.col("c").alias("c", metadata={DECLARED_TYPE: "char(3)"}))
        rows.write.format("delta").options(**options).save(url)
        frame = spark.read.format("delta").options(**options).load(url)
        filtered = rows_of(frame.where("c = 'a'").selectExpr("id", "concat('<', c, '>')"))
        table = DeltaTable.forPath(spark, url, options)
        table.update("c = 'a'", {"id": sf.lit(10)})
        table.delete("c IN ('b', 'x')")
        source = spark.sql("SELECT 30 AS id")
        table.alias("t").merge(source.alias("s"), "t.c = 'c'").whenMatchedUpdate(set={"id": "s.id"}).execute()
        return [filtered, rows_of(spark.read.format("delta").options(**options).load(url))]

    there, here = outcomes(work, s3_url, s3a_settings, tmp_path)
    assert there == here
    assert there == [["Row(id=1, concat(<, c, >)='<a  >')"], ["Row(id=10, c='a  ')", "Row(id=30, c='c  ')"]]
