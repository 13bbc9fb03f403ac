"""`spark.readStream`: new rows of a table, and the effect of each kind of commit during a stream."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError
from tahoe.ops.rows.insert import WriteOptions
from tahoe.store.stream_records import streams_of

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
BY_NAME, BY_ID = ({"delta.columnMapping.mode": mode} for mode in ("name", "id"))

Rows = list[tuple[Any, ...]]


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int32()), "part": [str(value % 2) for value in values]})


def stream(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(path)


class Running:
    """A query and the rows that it has given, a list for each batch that had some."""

    def __init__(self, rows: DataFrame, checkpoint: Path, **trigger: Any) -> None:
        self.batches: list[Rows] = []
        writer = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        self.query = writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        rows = sorted(tuple(row) for row in batch.collect())
        if rows:
            self.batches.append(rows)

    def new(self) -> Rows:
        """The rows since the last call, all commits waited for."""
        self.query.processAllAvailable()
        actual = sorted(row for batch in self.batches for row in batch)
        self.batches.clear()
        return actual

    def stopped_with(self) -> str:
        """The error class with which the query stopped."""
        with pytest.raises(StreamingQueryException) as caught:
            self.query.processAllAvailable()
        text = str(caught.value)
        assert "Py4J" not in text and "Traceback" not in text
        return text.partition("terminated with exception: [")[2].partition("]")[0]


@contextmanager
def running(rows: DataFrame, checkpoint: Path) -> Iterator[Running]:
    started = Running(rows, checkpoint)
    try:
        yield started
    finally:
        started.query.stop()


def available(rows: DataFrame, checkpoint: Path, **trigger: Any) -> list[Rows]:
    """The batches of a query that runs up to the present."""
    started = Running(rows, checkpoint, **(trigger or {"availableNow": True}))
    started.query.awaitTermination()
    return started.batches


@dataclass(frozen=True)
class Midway:
    """A change of the table ``{t}``, which has the rows 0 to 3 in two files, during a stream.

    Args:
        statements: after the stream gave all that was there, and before row 9 is appended.
        gives: the rows of the stream then; None if it fails.
        stops: the error class that it stops with.
        begun_again: the rows of the stream after a restart from its checkpoint; None if it fails again.
    """

    name: str
    statements: tuple[str, ...]
    gives: Rows | None = None
    stops: str = ""
    begun_again: Rows | None = None
    properties: tuple[dict[str, str], ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    clusters: bool = False


APPENDED = [(9, "1")]
CHANGED, SCHEMA = "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SCHEMA_CHANGED_WITH_VERSION"
GONE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
MIDWAY = [
    Midway("optimize", ("OPTIMIZE {t}",), APPENDED),
    Midway("clustering", ("OPTIMIZE {t} FULL",), APPENDED, clusters=True),
    Midway("purge of vectors", ("REORG TABLE {t} APPLY (PURGE)",), APPENDED, properties=(VECTORS,)),
    Midway("vacuum", ("VACUUM {t} DRY RUN", "VACUUM {t}"), APPENDED),
    Midway("delete of rows", ("DELETE FROM {t} WHERE id = 3",), stops=CHANGED),
    Midway("delete of rows by a vector", ("DELETE FROM {t} WHERE id = 3",), stops=CHANGED, properties=(VECTORS,)),
    Midway("delete of files", ("DELETE FROM {t} WHERE id > 1",), stops="DELTA_SOURCE_IGNORE_DELETE"),
    Midway("delete of files, ignored", ("DELETE FROM {t} WHERE id > 1",), APPENDED, options=(("ignoreDeletes", True),)),
    Midway("update, skipped", ("UPDATE {t} SET part = 'x' WHERE id = 3",), APPENDED, options=(("skipChangeCommits", True),)),
    Midway(
        "update, ignored",
        ("UPDATE {t} SET part = 'x' WHERE id = 3",),
        [(2, "0"), (3, "x"), *APPENDED],
        options=(("ignoreChanges", True),),
    ),
    Midway("overwrite", ("INSERT OVERWRITE {t} VALUES (7, '1')",), stops=CHANGED),
    Midway(
        "restore", ("INSERT INTO {t} VALUES (8, '0')", "RESTORE TABLE {t} TO VERSION AS OF 1"), stops="DELTA_SOURCE_IGNORE_DELETE"
    ),
    Midway("a column more", ("ALTER TABLE {t} ADD COLUMN more INT",), stops=SCHEMA, begun_again=[(9, "1", None)]),
    Midway("a column renamed", ("ALTER TABLE {t} RENAME COLUMN part TO other",), stops=GONE, properties=(BY_NAME,)),
    Midway("a column dropped", ("ALTER TABLE {t} DROP COLUMN part",), stops=GONE, properties=(BY_ID,)),
]


@pytest.mark.parametrize("case", MIDWAY, ids=lambda case: case.name)
def test_a_commit_during_a_batch(spark: SparkSession, path: str, tmp_path: Path, case: Midway) -> None:
    """Each as documented: files that were only rewritten are not rows, changes and other schemas stop the stream and say so."""
    table, options = Table(path), dict(case.options)
    values = WriteOptions(properties={name: value for group in case.properties for name, value in group.items()})
    if case.clusters:
        spark.sql(f"CREATE TABLE delta.`{path}` (id INT, part STRING) USING delta CLUSTER BY (id)")
        table.append(ids(0, 1))
    else:
        table.write(ids(0, 1), values)
    table.append(ids(2, 3))
    with running(stream(spark, path, **options), tmp_path / "at") as query:
        assert query.new() == [(0, "0"), (1, "1"), (2, "0"), (3, "1")]
        for statement in case.statements:
            spark.sql(statement.format(t=f"delta.`{path}`"))
        columns = table.snapshot().schema.names
        table.append(ids(9).select(["id"]) if "part" not in columns else ids(9))
        if case.gives is not None:
            assert query.new() == case.gives
            return
        assert query.stopped_with() == case.stops
    with running(stream(spark, path, **options), tmp_path / "at") as query:
        if case.begun_again is None:
            assert query.stopped_with() == case.stops
        else:
            assert query.new() == case.begun_again


def test_a_wider_type_stops_the_stream_once(spark: SparkSession, path: str, tmp_path: Path) -> None:
    """Written as another writer would: a table of which this version of Tahoe only reads."""
    table = Table(path)
    table.append(ids(1))
    log = Path(path) / "_delta_log"
    metadata = next(line for text in (log / f"{0:020}.json").read_text().splitlines() if "metaData" in (line := json.loads(text)))
    schema = json.loads(metadata["metaData"]["schemaString"])
    schema["fields"][0] |= {
        "type": "long",
        "metadata": {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]},
    }
    metadata["metaData"]["schemaString"] = json.dumps(schema)
    features = ["typeWidening", "appendOnly", "invariants"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features[:1], "writerFeatures": features}
    large = 2**40
    with running(stream(spark, path), tmp_path / "at") as query:
        assert query.new() == [(1, "1")]
        (log / f"{1:020}.json").write_text(json.dumps({"protocol": {**protocol}}) + "\n" + json.dumps(metadata))
        pq.write_table(pa.table({"id": pa.array([large], pa.int64()), "part": ["0"]}), f"{path}/wide.parquet")
        size = (Path(path) / "wide.parquet").stat().st_size
        add = {"path": "wide.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
        (log / f"{2:020}.json").write_text(json.dumps({"add": add}))
        assert query.stopped_with() == SCHEMA
    with running(stream(spark, path), tmp_path / "at") as query:
        assert query.new() == [(large, "0")]


def test_another_table_in_its_place_stops_the_stream(spark: SparkSession, path: str, tmp_path: Path) -> None:
    Table(path).append(ids(1))
    with running(stream(spark, path), tmp_path / "at") as query:
        assert query.new() == [(1, "1")]
        Table(f"{path}2").append(ids(2))
        os.rename(path, f"{path}3")
        os.rename(f"{path}2", path)  # immediately, or the stream finds no table
        assert query.stopped_with() == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_stream_continues_after_its_table_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """As after an overwrite: REPLACE keeps the table's id, which delta-spark does not."""
    spark.sql("CREATE OR REPLACE TABLE replaced (id INT) USING delta")
    spark.sql("INSERT INTO replaced VALUES (1)")
    rows = spark.readStream.option("skipChangeCommits", "true").table("replaced")
    assert available(rows, tmp_path) == [[(1,)]]
    spark.sql("CREATE OR REPLACE TABLE replaced USING delta AS SELECT 2 AS id")
    spark.sql("INSERT INTO replaced VALUES (3)")
    assert available(rows, tmp_path) == [[(3,)]]
    spark.sql("DROP TABLE replaced")


def test_commits_gone_from_the_log_stop_the_stream_or_are_passed_over(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    table.append(ids(0))
    assert available(stream(spark, path), tmp_path / "at") == [[(0, "0")]]
    table.append(ids(1))
    table.append(ids(2))
    table.checkpoint()
    for version in (0, 1):
        (Path(path) / f"_delta_log/{version:020}.json").unlink()
    started = Running(stream(spark, path), tmp_path / "at")
    assert started.stopped_with() == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert available(stream(spark, path, failOnDataLoss=False), tmp_path / "at") == [[(2, "0")]]


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({}, [[0, 1, 2, 3, 4]]),
        ({"maxFilesPerTrigger": 2}, [[0, 1], [2, 3], [4]]),
        ({"maxBytesPerTrigger": "1b"}, [[0], [1], [2], [3], [4]]),
        ({"startingVersion": 3}, [[3, 4]]),
        ({"startingVersion": "latest"}, []),
        ({"startingTimestamp": "2001-01-01", "maxFilesPerTrigger": 4}, [[0, 1, 2, 3], [4]]),
        ({"excludeRegex": "part-"}, []),
    ],
    ids=str,
)
def test_where_it_begins_and_how_much_a_batch_has(
    spark: SparkSession, path: str, tmp_path: Path, options: dict[str, object], batches: list[list[int]]
) -> None:
    table = Table(path)
    for item in range(5):
        time.sleep(0.002)  # a snapshot's files come by their times, in milliseconds
        table.append(ids(item))
    actual = available(stream(spark, path, **options), tmp_path / "at")
    assert [[row[0] for row in batch] for batch in actual] == batches
    (known,) = streams_of(table.store)
    assert (known.version, str(tmp_path / "at") in known.checkpoint) == (5, True)
    table.append(ids(8))
    (after,) = available(stream(spark, path, **options), tmp_path / "at") or [[]]
    assert [row[0] for row in after] == ([] if "excludeRegex" in options else [8])


def test_a_huge_commit_is_split_and_a_stopped_query_goes_on_in_its_middle(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    table.append(ids(0))
    rows = stream(spark, path, maxFilesPerTrigger=2, startingVersion=1)
    spark.range(10, 15).selectExpr("int(id) id", "'x' part").repartition(5, "id").write.format("delta").mode("append").save(path)
    files = len(table.snapshot().files()) - 1
    assert files > 2
    actual = available(rows, tmp_path / "at")
    assert [row[0] for row in sorted(row for batch in actual for row in batch)] == [10, 11, 12, 13, 14]
    assert len(actual) == -(-files // 2)
    # The checkpoint as it was in the middle of the commit.
    forget_batches(tmp_path / "at", ("offsets", "commits"), *range(1, len(actual) + 1))
    position = json.loads((tmp_path / "at" / "offsets" / "0").read_text().splitlines()[-1])
    assert (position["reservoirVersion"], position["index"]) == (1, 1)
    assert available(rows, tmp_path / "at") == actual[1:]
    assert available(rows, tmp_path / "all", once=True) == [sorted(row for batch in actual for row in batch)]


def forget_batches(checkpoint: Path, kinds: tuple[str, ...], *numbers: int) -> None:
    """Remove batches from the checkpoint, as if the query had been stopped before."""
    for number in numbers:
        for kind in kinds:
            (checkpoint / kind / str(number)).unlink(missing_ok=True)
            (checkpoint / kind / f".{number}.crc").unlink(missing_ok=True)


@pytest.mark.damages_tables
def test_a_restart_reads_a_planned_batch_again_and_no_completed_one(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    for value in (0, 1):
        table.append(ids(value))
        assert available(stream(spark, path), tmp_path / "at") == [[(value, str(value))]]
    assert available(stream(spark, path), tmp_path / "at") == []
    forget_batches(tmp_path / "at", ("commits",), 1)
    assert available(stream(spark, path), tmp_path / "at") == [[(1, "1")]]
    # Neither the commits nor the files of the completed batches are needed any more.
    table.append(ids(2))
    table.checkpoint()
    for gone in (*table.snapshot(1).files()["path"].to_pylist(), *(f"_delta_log/{version:020}.json" for version in (0, 1))):
        (Path(path) / gone).unlink()
    assert available(stream(spark, path), tmp_path / "at") == [[(2, "0")]]


def test_the_feed_as_a_stream(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    table.write(ids(0, 1), WriteOptions(properties=FEED))
    spark.sql(f"UPDATE delta.`{path}` SET part = 'x' WHERE id = 1")
    rows = stream(spark, path, readChangeFeed="true", startingVersion=0)
    assert rows.columns == ["id", "part", "_change_type", "_commit_version", "_commit_timestamp"]
    (actual,) = available(rows.drop("_commit_timestamp"), tmp_path / "at")
    assert actual == [
        (0, "0", "insert", 0),
        (1, "1", "insert", 0),
        (1, "1", "update_preimage", 1),
        (1, "x", "update_postimage", 1),
    ]
    table.delete("id = 0")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    assert available(rows.drop("_commit_timestamp"), tmp_path / "at") == [[(0, "0", "delete", 2)]]
    batch = spark.read.format("delta").options(readChangeFeed="true", startingVersion=0).load(path)
    whole = available(rows, tmp_path / "whole")
    assert [row for rows in whole for row in rows] == sorted(tuple(row) for row in batch.collect())
    # Without a start the rows that are there come first, as inserts.
    first = available(stream(spark, path, readChangeData="true").drop("_commit_timestamp"), tmp_path / "first")
    assert [row[:3] for rows in first for row in rows] == [(1, "x", "insert")]


def test_by_name_with_vectors_mapping_and_partitions_in_two_queries_at_once(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS streamed")
    spark.sql(
        "CREATE TABLE streamed (id INT, `a b,;` STRUCT<`x y`: INT>, part STRING) USING delta PARTITIONED BY (part) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'id', 'delta.enableDeletionVectors' = 'true')"
    )
    try:
        spark.sql("INSERT INTO streamed SELECT int(id), struct(int(id)), string(id % 2) FROM range(6)")
        spark.sql("DELETE FROM streamed WHERE id IN (2, 3)")
        rows = spark.readStream.table("streamed")
        with running(rows.where("part = '0'"), tmp_path / "a") as even, running(rows.select("id"), tmp_path / "b") as whole:
            assert even.new() == [(0, (0,), "0"), (4, (4,), "0")]
            assert whole.new() == [(0,), (1,), (4,), (5,)]
            spark.sql("INSERT INTO streamed VALUES (8, struct(80), '0')")
            assert (even.new(), whole.new()) == ([(8, (80,), "0")], [(8,)])
        counted = rows.groupBy("part").count().writeStream.outputMode("complete").format("memory").queryName("counted")
        query = counted.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination()
        assert sorted(map(tuple, spark.table("counted").collect())) == [("0", 3), ("1", 2)]
        both = rows.select("id").union(rows.select("id"))
        assert sorted(row for batch in available(both, tmp_path / "d") for row in batch) == sorted(
            [(0,), (1,), (4,), (5,), (8,)] * 2
        )
    finally:
        spark.sql("DROP TABLE streamed")


def test_the_progress_shows_how_far_behind_it_is(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    for item in range(4):
        table.append(ids(item))
    sizes = table.snapshot().files().column("size").to_pylist()
    started = Running(stream(spark, path, maxFilesPerTrigger=3), tmp_path / "at", availableNow=True)
    started.query.awaitTermination()
    first, last = ({**item["sources"][0], **item["sources"][0]["metrics"]} for item in started.query.recentProgress)
    assert last["description"] == f"DeltaSource[{table.url}]"
    assert (int(first["version"]), int(first["newestVersion"]), int(first["versionsBehind"])) == (3, 3, 1)
    assert (int(first["numFilesOutstanding"]), int(first["numBytesOutstanding"])) == (1, sizes[0])
    assert int(first["millisecondsBehind"]) > 0
    assert [int(last[name]) for name in ("version", "versionsBehind", "millisecondsBehind", "numFilesOutstanding")] == [
        3,
        0,
        0,
        0,
    ]
    for item in range(4):
        table.append(ids(item))
    started = Running(stream(spark, path, maxFilesPerTrigger=1), tmp_path / "at", availableNow=True)
    started.query.awaitTermination()
    behind = [int(item["sources"][0]["metrics"]["numFilesOutstanding"]) for item in started.query.recentProgress]
    assert behind == [3, 2, 1, 0]


def test_the_columns_are_those_of_the_dataframe(spark: SparkSession, path: str, tmp_path: Path) -> None:
    """A DataFrame made before the schema changed would give rows under wrong names."""
    Table(path).append(ids(1))
    rows = stream(spark, path)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN more INT")
    assert Running(rows, tmp_path / "at").stopped_with() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert available(stream(spark, path), tmp_path / "at") == [[(1, "1", None)]]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"startingVersion": 1, "startingTimestamp": "2020-01-01"}, "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET"),
        ({"startingVersion": "first"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingTimestamp": "yesterday"}, "DELTA_TIMESTAMP_INVALID"),
        ({"maxFilesPerTrigger": 0}, "DELTA_ILLEGAL_OPTION"),
        ({"maxBytesPerTrigger": "many"}, "DELTA_ILLEGAL_OPTION"),
        ({"ignoreDeletes": "perhaps"}, "DELTA_ILLEGAL_OPTION"),
        ({"excludeRegex": "("}, "DELTA_REGEX_OPT_SYNTAX_ERROR"),
        ({"versionAsOf": 0}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ({"endingVersion": 0}, "TAHOE_OPTION_NOT_SUPPORTED"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused_at_once(
    spark: SparkSession, path: str, options: dict[str, object], code: str
) -> None:
    Table(path).append(ids(1))
    with pytest.raises(TahoeError) as caught:
        stream(spark, path, **options)
    assert caught.value.code == code


def test_a_missing_table_and_a_single_version_are_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(TahoeError) as caught:
        stream(spark, path)
    assert path in str(caught.value)
    Table(path).append(ids(1))
    with pytest.raises(TahoeError) as caught:
        stream(spark, f"{path}@v0")
    assert caught.value.code == "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"
    with pytest.raises(TahoeError) as caught:
        spark.readStream.format("delta").schema("id STRING").load(path)
    assert caught.value.code == "DELTA_READ_SOURCE_SCHEMA_CONFLICT"
    assert spark.readStream.format("delta").schema("id INT, part STRING").load(path).isStreaming


def test_other_formats_and_sessions_without_delta_stay_as_they_are(spark: SparkSession, plain: SparkSession, path: str) -> None:
    assert spark.readStream.format("rate").load().columns == ["timestamp", "value"]
    Table(path).append(ids(1))
    rows = plain.readStream.format("delta").load(path)
    assert rows._jdf.queryExecution().analyzed().getClass().getSimpleName() == "StreamingRelationV2"


@dataclass(frozen=True)
class Tracked:
    """A change of the table ``{t}``, which has the columns id and part and the rows 0 and 1, under a stream that tracks its schema.

    Args:
        statements: in the middle of the stream; row 9 is appended before them, and `after` behind them.
        after: values of a row, as SQL.
        gives: the rows of the stream in the end, restarted as often as it stops at a change that it may read past.
        needs: the option that lets it go on; none where it goes on by itself.
    """

    name: str
    statements: tuple[str, ...]
    after: str
    gives: Rows
    needs: str = ""
    properties: tuple[tuple[str, str], ...] = (("delta.columnMapping.mode", "name"),)


TRACKED = [
    Tracked("a column more", ("ALTER TABLE {t} ADD COLUMN more INT",), "10, '0', 5", [(10, "0", 5)]),
    Tracked(
        "a column renamed",
        ("ALTER TABLE {t} RENAME COLUMN part TO other",),
        "10, '0'",
        [(10, "0")],
        "allowSourceColumnRename",
    ),
    Tracked(
        "a wider type",
        ("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",),
        "10000000000, '0'",
        [(10000000000, "0")],
        "allowSourceColumnTypeChange",
        (("delta.enableTypeWidening", "true"),),
    ),
    Tracked(
        "renamed and back, dropped and made anew, at once",
        (
            "ALTER TABLE {t} RENAME COLUMN part TO other",
            "ALTER TABLE {t} RENAME COLUMN other TO part",
            "ALTER TABLE {t} DROP COLUMN part",
            "ALTER TABLE {t} ADD COLUMN part INT",
        ),
        "10, 7",
        [(10, 7)],
        "allowSourceColumnDrop",
    ),
]


@pytest.mark.parametrize("case", TRACKED, ids=lambda case: case.name)
def test_a_stream_that_tracks_its_schema_continues(spark: SparkSession, path: str, tmp_path: Path, case: Tracked) -> None:
    """Rows before a change come under the old names, those after it under the new ones, each once; in between the stream stops."""
    place = tmp_path / "at"
    tracking = {"schemaTrackingLocation": str(place / "schemas")}
    table = Table(path)
    table.write(ids(0, 1), WriteOptions(properties=dict(case.properties)))

    def run(**options: object) -> Rows:
        return [row for batch in available(stream(spark, path, **tracking, **options), place) for row in batch]

    assert run() == [(0, "0"), (1, "1")]
    table.append(ids(9))
    for statement in case.statements:
        spark.sql(statement.format(t=f"delta.`{path}`"))
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ({case.after})")
    started = Running(stream(spark, path, **tracking), place)
    assert started.stopped_with() == "DELTA_STREAMING_METADATA_EVOLUTION"
    assert started.batches == [[(9, "1")]]
    if case.needs:
        started = Running(stream(spark, path, **tracking), place)
        assert started.stopped_with() == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
        # As the error says: by the stream's own setting, up to this version.
        setting = re.search(r"spark\.databricks\.delta\.streaming\.\S+\.ckpt_-?\d+", str(started.query.exception()))
        assert setting is not None and case.needs in setting[0]
        spark.conf.set(setting[0], table.version() - 1)
    assert run() == case.gives
    table.append(table.to_arrow().slice(0, 1))
    assert len(run()) == 1
    if case.needs:
        spark.conf.unset(setting[0])


def test_where_a_schema_log_may_not_be(spark: SparkSession, path: str, tmp_path: Path) -> None:
    Table(path).append(ids(1))
    outside = stream(spark, path, schemaTrackingLocation=str(tmp_path / "elsewhere"))
    assert Running(outside, tmp_path / "at").stopped_with() == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    shared = str(tmp_path / "both/schemas")
    twice = [stream(spark, path, schemaTrackingLocation=shared, streamingSourceTrackingId="x") for _ in range(2)]
    assert Running(twice[0].union(twice[1]), tmp_path / "both").stopped_with() == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    place = tmp_path / "apart"
    apart = [stream(spark, path, schemaTrackingLocation=str(place), streamingSourceTrackingId=name) for name in ("y", "z")]
    assert available(apart[0].union(apart[1]), place) == [[(1, "1"), (1, "1")]]


@pytest.mark.damages_tables
def test_a_data_file_that_was_vacuumed_under_a_stream(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table(path)
    table.append(ids(0))
    assert available(stream(spark, path), tmp_path / "at") == [[(0, "0")]]
    table.append(ids(1))
    table.append(ids(2))
    gone = table.snapshot(1).files()["path"].to_pylist()[-1]
    (Path(path) / gone).unlink()
    started = Running(stream(spark, path), tmp_path / "at")
    assert started.stopped_with() == "DELTA_FILE_NOT_FOUND"
    message = str(started.query.exception())
    assert gone in message and "version 1 of table" in message and table.url in message and "failOnDataLoss" in message
    assert available(stream(spark, path, failOnDataLoss=False), tmp_path / "at") == [[(2, "0")]]
