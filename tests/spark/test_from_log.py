"""Queries that the log answers have the result of a scan, and read no file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.clientserver import JavaClient

from tahoe import Table
from tahoe.spark.catalog import session_catalog
from tahoe.spark.scan import snapshot_plans

ENABLED = "spark.databricks.delta.optimizeMetadataQuery.enabled"
FROM_LOG = [
    "SELECT count(*) FROM {t}",
    "SELECT count(1) + 1 AS x, count(p), 'a' FROM {t}",
    "SELECT DISTINCT p FROM {t}",
    "SELECT w, p AS q FROM {t} GROUP BY p, w",
    "SELECT count(*) FROM {t} WHERE p = '1'",
    "SELECT count(*) FROM {t} WHERE p IN ('1', '2') AND NOT p = '2'",
    "SELECT count(*) FROM {t} WHERE p IS NULL",
    "SELECT (SELECT count(*) FROM {t}) + 1",
    "SELECT count(*) FROM {t} HAVING count(*) > 1",
    "SELECT DISTINCT w FROM {t} WHERE p > '0'",
    "SELECT DISTINCT p, p AS q, w FROM {t}",
]
WITHOUT_VECTORS = [
    "SELECT min(n), max(n), min(d), max(d), min(e), max(b), count(e), count(n) FROM {t}",
    "SELECT max(id) - min(id) FROM {t} WHERE p = '1'",
]
BY_A_SCAN = [
    "SELECT max(f), min(s), max(t) FROM {t}",
    "SELECT count(*) FROM {t} WHERE p = '1' AND id > 5",
    "SELECT count(*) FROM {t} WHERE p > 0 OR id < 9",
    "SELECT count(DISTINCT p) FROM {t}",
    "SELECT count(*) FILTER (WHERE id > 3) FROM {t}",
    "SELECT p, count(*) FROM {t} GROUP BY p",
    "SELECT sum(id) FROM {t}",
]
ROWS = """
    SELECT id, CASE WHEN id % 4 = 3 THEN NULL ELSE CAST(id % 4 AS string) END AS p, timestamp'2020-01-01' + make_dt_interval(id % 2) AS w,
        CAST(id AS int) AS n, date_add(date'2020-01-01', CAST(id AS int)) AS d, CAST(NULL AS bigint) AS e, CAST(id % 7 AS tinyint) AS b,
        double(id) AS f, string(id) AS s, timestamp'2020-01-01' AS t
    FROM range(60)"""


@pytest.fixture(scope="module", params=["plain", "mapped", "vectors"])
def table(request, spark):
    name = f"from_log_{request.param}"
    properties = {
        "plain": "'delta.enableDeletionVectors' = 'false'",
        "mapped": "'delta.columnMapping.mode' = 'name'",
        "vectors": "'delta.enableDeletionVectors' = 'true'",
    }[request.param]
    spark.sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p, w) TBLPROPERTIES ({properties}) AS {ROWS}")
    if request.param == "mapped":
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN n TO m")
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN m TO n")
    if request.param == "vectors":
        spark.sql(f"DELETE FROM {name} WHERE id % 5 = 1")
        spark.sql(f"DELETE FROM {name} WHERE p = '2'")
    yield name
    spark.sql(f"DROP TABLE {name}")


def answers(spark, query):
    """The rows, and whether a file was read."""
    frame = spark.sql(query)
    rows = sorted(map(str, frame.collect()))
    return rows, "FileScan" in frame._jdf.queryExecution().toString()


@pytest.mark.parametrize("query", [*FROM_LOG, *WITHOUT_VECTORS, *BY_A_SCAN])
def test_the_answer_is_that_of_a_scan(spark, table, query):
    rows, scanned = answers(spark, query.format(t=table))
    assert scanned == (query in BY_A_SCAN or (query in WITHOUT_VECTORS and "vectors" in table))
    spark.conf.set(ENABLED, "false")
    try:
        expected, scanned = answers(spark, query.format(t=table))
    finally:
        spark.conf.unset(ENABLED)
    assert scanned
    assert rows == expected


def test_a_frame_that_follows_its_table_counts_the_newest_version(spark, path):
    spark.range(3).write.format("delta").save(path)
    frame, then = spark.read.format("delta").load(path), spark.read.format("delta").option("versionAsOf", 0).load(path)
    assert (frame.count(), then.count()) == (3, 3)
    spark.range(4).write.format("delta").mode("append").save(path)
    assert (frame.count(), then.count()) == (7, 3)
    frame.createOrReplaceTempView("counted")
    spark.range(1).write.format("delta").mode("overwrite").save(path)
    assert spark.sql("SELECT count(*), max(id) FROM counted").collect() == [(1, 0)]
    assert spark.sql(f"SELECT count(*) FROM delta.`{path}` VERSION AS OF 1").collect() == [(7,)]


def test_further_queries_of_a_version_reuse_its_plan(spark, path, monkeypatch):
    Table(path).append(pa.table({"id": [1, 2]}))
    spark.sql(f"CREATE TABLE reused USING delta LOCATION '{path}'")
    versions, read_snapshot = [], snapshot_plans.read_snapshot

    def recorded(spark, snapshot, **options):
        versions.append(snapshot.version)
        return read_snapshot(spark, snapshot, **options)

    monkeypatch.setattr(snapshot_plans, "read_snapshot", recorded)
    tables = (f"delta.`{path}`", "reused")
    frame = spark.read.format("delta").load(path)
    try:
        for expected in ([1, 2], [1, 1, 2, 2], [1, 2]):
            for name in tables * 2:
                assert sorted(row.id for row in spark.sql(f"SELECT id FROM {name}").collect()) == expected
                again = spark.read.format("delta").load(path)
                assert again.join(frame, frame["id"] == again["id"]).select(again["id"]).distinct().count() == 2
                assert spark.sql(f"SELECT COUNT(*) FROM {name} a JOIN {name} b ON a.id = b.id").first()[0] == sum(
                    expected.count(number) ** 2 for number in set(expected)
                )
            if len(expected) == 2:
                Table(path).append(pa.table({"id": [1, 2]}))
            else:
                Table(path).restore(0)
    finally:
        spark.sql("DROP TABLE reused")
    assert versions == [0, 1, 2], "one plan for each version"


def test_a_repeated_query_of_names_makes_few_calls_of_the_jvm(spark, path, monkeypatch):
    sources = {"counted_delta": "delta", "counted_parquet": "parquet"}
    for name, source in sources.items():
        spark.sql(f"CREATE TABLE {name} USING {source} LOCATION '{path}/{source}' AS SELECT 1 AS id")
    try:
        for name in sources:
            query = f"SELECT a.id FROM {name} a JOIN {name} b ON a.id = b.id"
            assert [spark.sql(query).collect() for _ in range(2)] == [[(1,)], [(1,)]]
            commands, send = [], JavaClient.send_command

            def counted(client, command, *arguments, commands=commands, send=send, **named):
                # PySpark releases objects of the JVM at any time.
                commands.extend(() if command.startswith("m") else (command,))
                return send(client, command, *arguments, **named)

            with monkeypatch.context() as patched:
                patched.setattr(JavaClient, "send_command", counted)
                spark.sql(query)
            assert len(commands) <= 14, commands
    finally:
        for name in sources:
            spark.sql(f"DROP TABLE {name}")


def test_a_new_table_with_an_earlier_name_is_read(spark, path):
    rows = []
    for number, source in enumerate(("delta", "delta", "parquet", "delta")):
        spark.sql(f"CREATE TABLE renewed_name USING {source} LOCATION '{path}/{number}' AS SELECT {number} AS id")
        rows += [spark.table("renewed_name").first().id for _ in range(2)]
        spark.sql("DROP TABLE renewed_name")
    assert rows == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_table_replaced_while_it_is_loaded_is_one_table(spark, path, monkeypatch):
    """The location that is read and the catalog's entry are those of the same table."""

    def create(number: int) -> None:
        spark.sql(f"CREATE TABLE replaced_name USING delta LOCATION '{path}/{number}' AS SELECT {number} AS id")

    def replacing(spark, location, options, original=session_catalog.table_at):
        monkeypatch.setattr(session_catalog, "table_at", original)
        spark.sql("DROP TABLE replaced_name")
        create(1)
        return original(spark, location, options)

    entries, filled = [], session_catalog.filled
    monkeypatch.setattr(session_catalog, "filled", lambda jvm, entry, *rest: entries.append(entry) or filled(jvm, entry, *rest))
    monkeypatch.setattr(session_catalog, "table_at", replacing)
    create(0)
    try:
        assert spark.table("replaced_name").first().id == 0
        assert [entry.location().getPath() for entry in entries] == [f"{path}/0"]
        assert spark.table("replaced_name").first().id == 1
    finally:
        spark.sql("DROP TABLE replaced_name")


def test_a_repeated_query_uses_changed_settings(spark, path):
    instant = "timestamp_millis(0)"
    spark.sql(f"CREATE TABLE zoned USING delta LOCATION '{path}' PARTITIONED BY (at) AS SELECT 1 AS id, {instant} AS at")
    before = spark.conf.get("spark.sql.session.timeZone")
    texts = []
    try:
        for zone in ("UTC", "UTC", "Asia/Tokyo", "UTC"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            texts.append(spark.sql("SELECT cast(at AS STRING) FROM zoned").first()[0])
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        spark.sql("DROP TABLE zoned")
    assert texts == ["1970-01-01 00:00:00", "1970-01-01 00:00:00", "1970-01-01 09:00:00", "1970-01-01 00:00:00"]


def test_a_limit_reads_the_files_that_it_needs(spark, path):
    table = Table.create(path, spark.range(0).toArrow().schema)
    for first in range(0, 30, 10):
        table.append(spark.range(first, first + 10).toArrow())
    frame = spark.read.format("delta").load(path)
    for count, files in ((1, 1), (10, 1), (11, 2), (29, 3), (31, 3)):
        assert frame.limit(count).count() == min(count, 30)
        assert files_of(frame.limit(count)) == files
    assert files_of(frame.where("id > 12").limit(2)) == 3, "a filter on data leaves open how many rows a file gives"
    assert frame.where("id >= 28").limit(5).count() == 2
    assert frame.limit(5).where("id > 100").count() == 0


def test_a_count_that_a_file_leaves_open_is_made_by_a_scan(spark, path):
    table = Table.create(path, spark.range(0).toArrow().schema)
    table.append(spark.range(5).toArrow())
    commit = Path(path, "_delta_log", "00000000000000000001.json")
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    commit.with_suffix(".crc").unlink()
    assert answers(spark, f"SELECT count(*) FROM delta.`{path}`") == (["Row(count(1)=5)"], True)


def files_of(frame) -> int:
    """How many files the executed scan lists."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return len(plan.collectLeaves().apply(0).relation().location().inputFiles())
