"""The arguments of a stream's writer and the settings of its session, in both kinds of session.

Spark tells a Python data source, which writes the streams of Spark Connect, neither of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tests.session_settings import with_settings
from tests.spark.written import codec_of, data_files

_DELTA = "spark.databricks.delta."


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "target")


def writer_of(spark: Any, folder: Path, *columns: str, checkpoint: bool = True) -> Any:
    """A writer of six rows of one task."""
    source = str(folder / "source")
    spark.range(0, 6, 1, 1).selectExpr(*columns or ("id", "id % 2 AS Kind")).write.format("delta").save(source)
    writer = spark.readStream.format("delta").load(source).writeStream.trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "checkpoint")) if checkpoint else writer


def layout(table: Table) -> tuple[tuple[str, ...], int]:
    return table.snapshot().partition_columns, table.to_arrow().num_rows


@pytest.mark.parametrize("way", ["keyword", "list", "method"])
def test_partition_columns(either_session, tmp_path, target, way):
    writer = writer_of(either_session, tmp_path)
    match way:
        case "keyword":
            query = writer.start(target, format="delta", partitionBy="kind")
        case "list":
            query = writer.start(target, "delta", "append", ["Kind"], "numbers")
        case _:
            query = writer.format("delta").partitionBy("KIND").start(target)
    query.awaitTermination()
    assert layout(Table(target)) == (("Kind",), 6)


def test_a_partition_column_with_a_comma(either_session, tmp_path, target):
    name = "a, `b`"
    either_session.sql(
        f"CREATE TABLE delta.`{target}` (id BIGINT, `a, ``b``` BIGINT) USING delta PARTITIONED BY (`a, ``b```) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    writer_of(either_session, tmp_path)
    rows = either_session.readStream.format("delta").load(str(tmp_path / "source")).selectExpr("id", "Kind AS `a, ``b```")
    writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.partitionBy(name).start(target, "delta").awaitTermination()
    assert layout(Table(target)) == ((name,), 6)


@pytest.mark.parametrize("way", ["start", "toTable"])
def test_clustering_columns(either_session, tmp_path, target, way):
    writer = writer_of(either_session, tmp_path).format("delta").clusterBy("Kind")
    name = f"delta.`{target}`"
    query = writer.start(target) if way == "start" else writer.toTable(name)
    query.awaitTermination()
    detail = either_session.sql(f"DESCRIBE DETAIL {name}").first()
    assert detail.clusteringColumns == ["Kind"] and detail.partitionColumns == []


def test_a_named_table_at_a_path(either_session, tmp_path, target):
    either_session.sql("DROP TABLE IF EXISTS streamed_to_a_path")
    writer = writer_of(either_session, tmp_path).option("path", target)
    writer.toTable("streamed_to_a_path", "delta", "append", "Kind").awaitTermination()
    assert layout(Table(target)) == (("Kind",), 6)
    assert either_session.table("streamed_to_a_path").count() == 6


def test_a_writer_is_started_again(either_session, tmp_path, target):
    writer = writer_of(either_session, tmp_path).format("delta").option("path", target).partitionBy("Kind")
    for _ in range(2):
        writer.start().awaitTermination()
    assert layout(Table(target)) == (("Kind",), 6)


def test_a_query_that_cannot_be_written_does_not_start(either_session, tmp_path, target):
    writer = writer_of(either_session, tmp_path).format("delta")
    with pytest.raises(Unsupported, match="DELTA_UNSUPPORTED_OUTPUT_MODE"):
        writer.outputMode("update").start(target)
    writer.outputMode("append")
    with pytest.raises(Unsupported, match="replaceWhere"):
        writer.start(target, replaceWhere="id = 1")
    writer = either_session.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format("delta")
    with pytest.raises(InvalidRequest, match="DELTA_PATH_DOES_NOT_EXIST"):
        writer.start()
    with pytest.raises((InvalidRequest, AnalysisException), match="nothing"):
        writer.start(target, partitionBy="nothing")
    writer = either_session.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format("delta")
    with pytest.raises(InvalidRequest, match="TAHOE_AMBIGUOUS_TABLE"):
        writer.option("path", target).start(f"{target}2")
    assert not os.path.exists(target)


@pytest.mark.parametrize("name", ["numbers", None])
def test_checkpoints_in_the_folder_of_a_setting(either_session, tmp_path, target, name):
    writer = writer_of(either_session, tmp_path, checkpoint=False).format("delta")
    with with_settings(either_session, {"spark.sql.streaming.checkpointLocation": f"{tmp_path}/checkpoints/"}):
        for _ in range(2):
            writer.start(target, queryName=name).awaitTermination()
    folders = os.listdir(tmp_path / "checkpoints")
    assert folders == ["numbers"] if name else len(folders) == 2
    assert Table(target).to_arrow().num_rows == (6 if name else 12)


def test_settings_of_the_session(either_session, tmp_path, target):
    settings = {
        f"{_DELTA}properties.defaults.enableChangeDataFeed": "true",
        f"{_DELTA}commitInfo.userMetadata": "by a stream",
        "spark.sql.parquet.compression.codec": "gzip",
        "spark.sql.files.maxRecordsPerFile": "2",
    }
    with with_settings(either_session, settings):
        writer_of(either_session, tmp_path).format("delta").start(target).awaitTermination()
    table = Table(target)
    assert table.snapshot().metadata.configuration["delta.enableChangeDataFeed"] == "true"
    assert table.history()[0]["userMetadata"] == "by a stream"
    assert [codec_of(file) for file in data_files(target)] == ["GZIP"] * 3


def test_the_session_lets_the_schema_evolve(either_session, tmp_path, target):
    either_session.range(1).write.format("delta").save(target)
    with with_settings(either_session, {f"{_DELTA}schema.autoMerge.enabled": "true"}):
        writer_of(either_session, tmp_path).format("delta").start(target).awaitTermination()
    assert Table(target).schema().names == ["id", "Kind"]


def test_the_session_sets_no_limits_for_texts(either_session, tmp_path, target):
    either_session.sql(f"CREATE TABLE delta.`{target}` (id BIGINT, word VARCHAR(2)) USING delta")
    with with_settings(either_session, {"spark.sql.legacy.charVarcharAsString": "true"}):
        writer = writer_of(either_session, tmp_path, "id", "'long' AS word")
        writer.start(target, "delta").awaitTermination()
    assert set(Table(target).to_arrow()["word"].to_pylist()) == {"long"}
