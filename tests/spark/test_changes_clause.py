"""``SELECT … FROM t CHANGES FROM VERSION 1`` and ``spark.read.changes``, which Spark has since 4.2: the change data feed of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tests.spark.connect_server import remote

pytestmark = pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark has the CHANGES clause since 4.2")

FIRST = [(1, "insert", 1), (2, "insert", 1)]
UPDATED = [(1, "update_postimage", 2), (1, "update_preimage", 2)]
REPLACED = [(1, "delete", 2), (1, "insert", 2)]
LAST = [(2, "delete", 3)]


@pytest.fixture
def session(either_session: Any) -> Any:
    """A classic session, and a session of Spark Connect."""
    return either_session


@pytest.fixture
def changed(session: Any, tmp_path: Path) -> Iterator[Path]:
    """The path of the table `changed`: two rows are inserted, one is updated, the other one is deleted."""
    path = tmp_path / "changed"
    fill(session, "changed", path)
    yield path
    session.sql("DROP TABLE changed")


def fill(session: Any, name: str, path: Path) -> None:
    session.sql(
        f"CREATE TABLE {name} (id INT, name STRING, parts STRUCT<a: INT, b: STRING>) USING delta LOCATION '{path}' "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    session.sql(f"INSERT INTO {name} VALUES (1, 'a', struct(1, 'x')), (2, 'b', NULL)")
    session.sql(f"UPDATE {name} SET name = 'z' WHERE id = 1")
    session.sql(f"DELETE FROM {name} WHERE id = 2")


def summary(rows: Any) -> list[tuple[int, str, int]]:
    return sorted(tuple(row) for row in rows.select("id", "_change_type", "_commit_version").collect())


RANGES = {
    "VERSION 1": FIRST + REPLACED + LAST,
    "VERSION 1 TO VERSION 2": FIRST + REPLACED,
    "VERSION '2' TO VERSION '2'": REPLACED,
    "VERSION 1 EXCLUSIVE TO VERSION 3 EXCLUSIVE": REPLACED,
    "VERSION 1 INCLUSIVE TO VERSION 1 INCLUSIVE": FIRST,
    "SYSTEM_VERSION 3": LAST,
    "VERSION 3 TO VERSION 99": LAST,
    "TIMESTAMP '2020-01-01'": FIRST + REPLACED + LAST,
    "VERSION 1 WITH (computeUpdates = 'true')": FIRST + UPDATED + LAST,
    "VERSION 3 WITH (deduplicationMode = 'none')": LAST,
}


def test_a_clause_gives_the_changes_of_its_range(session: Any, changed: Path) -> None:
    for text, expected in RANGES.items():
        assert summary(session.sql(f"SELECT * FROM changed CHANGES FROM {text}")) == sorted(expected), text
    rows = session.sql(
        f"SELECT c.parts.b, _commit_timestamp FROM delta.`{changed}` CHANGES FROM VERSION 1 AS c WHERE c.name = 'z'"
    )
    assert [row[0] for row in rows.collect()] == ["x"]
    assert rows.schema.simpleString() == "struct<b:string,_commit_timestamp:timestamp>"


def test_a_reader_gives_the_changes_of_its_range(session: Any, changed: Path) -> None:
    assert summary(session.read.option("startingVersion", 1).changes("changed")) == sorted(FIRST + REPLACED + LAST)
    options = {"startingVersion": "1", "startingBoundInclusive": "false", "endingVersion": "2", "computeUpdates": "true"}
    assert summary(session.read.options(**options).changes(f"delta.`{changed}`")) == UPDATED
    session.sql("INSERT INTO changed VALUES (3, 'c', NULL)")
    assert summary(session.read.option("startingVersion", 4).changes("changed")) == [(3, "insert", 4)]


def test_times_are_those_of_commits(session: Any, changed: Path) -> None:
    first, second, third = (datetime.fromtimestamp(Table(str(changed)).snapshot(v).timestamp_ms / 1000, UTC) for v in (1, 2, 3))
    assert first < second < third

    def between(start: datetime, end: datetime, **options: object) -> list[tuple[int, str, int]]:
        bounds = {"startingTimestamp": text(start), "endingTimestamp": text(end)}
        return summary(session.read.options(**bounds, **options).changes("changed"))

    assert between(first, second) == sorted(FIRST + REPLACED)
    assert between(first, second, startingBoundInclusive=False) == REPLACED
    assert between(first, third, startingBoundInclusive=False, endingBoundInclusive=False) == REPLACED
    almost = timedelta(microseconds=1)
    assert between(first + almost, third - almost, startingBoundInclusive=False, endingBoundInclusive=False) == REPLACED
    clause = f"TIMESTAMP '{text(first)}' EXCLUSIVE TO TIMESTAMP '{text(third)}' EXCLUSIVE"
    assert summary(session.sql(f"SELECT * FROM changed CHANGES FROM {clause}")) == REPLACED


def text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")


def test_queries_combine_changes(session: Any, changed: Path) -> None:
    joined = "SELECT a.id FROM changed CHANGES FROM VERSION 3 a JOIN changed CHANGES FROM VERSION 1 TO VERSION 1 b ON a.id = b.id"
    assert [tuple(row) for row in session.sql(joined).collect()] == [(2,)]
    named = "WITH c AS (SELECT * FROM changed CHANGES FROM VERSION 2 EXCLUSIVE) SELECT * FROM c UNION ALL SELECT * FROM c"
    assert summary(session.sql(named)) == LAST * 2
    session.sql("CREATE TEMPORARY VIEW changes_of_changed AS SELECT * FROM changed CHANGES FROM VERSION 3")
    assert summary(session.table("changes_of_changed")) == LAST
    session.sql("DROP VIEW changes_of_changed")
    counted = "SELECT count(*) FROM changed CHANGES FROM VERSION 1 WHERE _change_type = 'insert' AND parts.a < 7"
    assert session.sql(counted).collect()[0][0] == 2
    assert summary(session.sql("SELECT * FROM IDENTIFIER('changed') CHANGES FROM VERSION 3")) == LAST


REFUSED = {
    "VERSION 9": (InvalidRequest, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
    "VERSION 3 TO VERSION 1": (InvalidRequest, "DELTA_INVALID_CDC_RANGE"),
    "VERSION 2 EXCLUSIVE TO VERSION 2": (InvalidRequest, "DELTA_INVALID_CDC_RANGE"),
    "VERSION 0 TO VERSION 0 EXCLUSIVE": (InvalidRequest, "DELTA_INVALID_CDC_RANGE"),
    "VERSION 'x'": (InvalidRequest, "DELTA_VERSION_INVALID"),
    "VERSION 1 WITH (deduplicationMode = 'netChanges')": (Unsupported, "TAHOE_OPTION_NOT_SUPPORTED"),
    "VERSION 1 WITH (versionAsOf = '1')": (InvalidRequest, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
}


def test_a_wrong_range_is_refused(session: Any, changed: Path) -> None:
    for clause, (kind, code) in REFUSED.items():
        with pytest.raises(kind) as raised:
            session.sql(f"SELECT * FROM changed CHANGES FROM {clause}").collect()
        assert raised.value.code == code, clause
    with pytest.raises(InvalidRequest) as raised:
        session.read.changes("changed").collect()
    assert raised.value.code == "DELTA_NO_START_FOR_CDC_READ"
    with pytest.raises((InvalidRequest, PySparkException), match=r"maybe"):
        session.read.option("startingVersion", 1).option("startingBoundInclusive", "maybe").changes("changed").collect()


def test_tables_without_a_feed_are_refused(session: Any, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE without_feed (id INT) USING delta LOCATION '{tmp_path}/without_feed'")
    session.sql(f"CREATE TABLE of_parquet (id INT) USING parquet LOCATION '{tmp_path}/of_parquet'")
    with pytest.raises(InvalidRequest) as raised:
        session.sql("SELECT * FROM without_feed CHANGES FROM VERSION 0").collect()
    assert raised.value.code == "DELTA_MISSING_CHANGE_DATA"
    for read in (
        lambda: session.sql("SELECT * FROM of_parquet CHANGES FROM VERSION 0"),
        lambda: session.read.option("startingVersion", 0).changes("of_parquet"),
    ):
        with pytest.raises(PySparkException) as error:
            read().collect()
        assert error.value.getCondition() == "UNSUPPORTED_FEATURE.CHANGE_DATA_CAPTURE"
    session.sql("DROP TABLE of_parquet")
    session.sql("DROP TABLE without_feed")


def test_streams_give_changes(session: Any, changed: Path, tmp_path: Path) -> None:
    options = {"startingVersion": "1", "startingBoundInclusive": "false", "computeUpdates": "true"}
    assert written(session, session.readStream.options(**options).changes("changed"), tmp_path / "by_name") == [*UPDATED, *LAST]
    by_path = session.readStream.option("startingVersion", 2).changes(f"delta.`{changed}`")
    assert written(session, by_path, tmp_path / "by_path") == [*REPLACED, *LAST]
    with pytest.raises(Unsupported) as raised:
        written(session, session.readStream.options(startingVersion=1, endingVersion=2).changes("changed"), tmp_path / "ending")
    assert raised.value.code == "TAHOE_OPTION_NOT_SUPPORTED"


def test_streams_in_sql_give_changes(session: Any, changed: Path, tmp_path: Path) -> None:
    query = "SELECT * FROM STREAM changed CHANGES FROM VERSION 1 EXCLUSIVE WITH (computeUpdates = 'true')"
    assert written(session, session.sql(query), tmp_path / "sql") == [*UPDATED, *LAST]


def test_streams_in_sql_read_tables_over_connect(connect: Any, tmp_path: Path) -> None:
    """In a classic session: test_streams_together.py."""
    with remote():
        connect.sql(f"CREATE TABLE from_stream (id INT) USING delta LOCATION '{tmp_path}/from_stream'")
        for number in (1, 2):
            connect.sql(f"INSERT INTO from_stream VALUES ({number})")
        by_path = f"SELECT id + 10 FROM STREAM delta.`{tmp_path}/from_stream` WITH (startingVersion = 2)"
        both = f"SELECT x.id FROM STREAM(from_stream) x UNION ALL {by_path}"
        named = "WITH s AS (SELECT from_stream.id FROM STREAM from_stream WHERE id > 1) SELECT s.id FROM s JOIN from_stream t ON s.id = t.id"
        for number, (query, ids) in enumerate({both: [1, 2, 12], named: [2]}.items()):
            assert connect.sql(query).isStreaming
            rows = connect.sql(query).writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/{number}")
            rows.trigger(availableNow=True).start(f"{tmp_path}/rows{number}").awaitTermination()
            assert sorted(row[0] for row in connect.read.parquet(f"{tmp_path}/rows{number}").collect()) == ids
        assert connect.sql("SELECT stream.id FROM from_stream AS stream").count() == 2
        with pytest.raises(PySparkException, match=r"writeStream\.start"):
            connect.sql("INSERT INTO from_stream SELECT * FROM STREAM from_stream")
        connect.sql(f"CREATE TABLE stream (id INT) USING delta LOCATION '{tmp_path}/named_stream'")
        assert connect.sql("SELECT stream.id FROM stream WHERE id > 0").collect() == []
        assert connect.sql("SELECT * FROM stream").collect() == []
        for name in ("stream", "from_stream"):
            connect.sql(f"DROP TABLE {name}")


def written(session: Any, stream: Any, folder: Path) -> list[tuple[int, str, int]]:
    rows = stream.select("id", "_change_type", "_commit_version").writeStream.format("parquet")
    query = rows.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start(f"{folder}/rows")
    query.awaitTermination()
    return summary(session.read.parquet(f"{folder}/rows"))


def test_a_missing_table_is_named(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as error:
        spark.sql("SELECT * FROM missing CHANGES FROM VERSION 0")
    assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


def test_permanent_views_and_statements_read_changes(spark: SparkSession, tmp_path: Path) -> None:
    fill(spark, "in_views", tmp_path / "in_views")
    spark.sql("CREATE VIEW view_of_changes AS SELECT id, _change_type, _commit_version FROM in_views CHANGES FROM VERSION 3")
    assert summary(spark.table("view_of_changes")) == LAST
    assert summary(spark.sql("EXECUTE IMMEDIATE 'SELECT * FROM in_views CHANGES FROM VERSION 3'")) == LAST
    spark.sql("CREATE TABLE of_changes USING delta AS SELECT * FROM in_views CHANGES FROM VERSION 2 TO VERSION 2")
    assert summary(spark.table("of_changes")) == REPLACED
    for name in ("VIEW view_of_changes", "TABLE of_changes", "TABLE in_views"):
        spark.sql(f"DROP {name}")


def test_cached_changes_let_statements_succeed_and_are_not_stale(spark: SparkSession, tmp_path: Path) -> None:
    fill(spark, "with_cache", tmp_path / "with_cache")
    by_clause = spark.sql("SELECT * FROM with_cache CHANGES FROM VERSION 3").cache()
    by_reader = spark.read.option("startingVersion", 3).changes("with_cache").cache()
    assert (by_clause.count(), by_reader.count()) == (1, 1)
    spark.sql("INSERT INTO with_cache VALUES (3, 'c', NULL)")
    assert (by_clause.count(), by_reader.count()) == (2, 2)
    spark.sql("UPDATE with_cache SET name = 'd' WHERE id = 3")
    assert (by_clause.count(), by_reader.count()) == (4, 4)
    spark.sql("DROP TABLE with_cache")


def test_filters_of_a_clause_skip_files(spark: SparkSession, tmp_path: Path) -> None:
    fill(spark, "filtered", tmp_path / "filtered")
    query = "SELECT name FROM filtered CHANGES FROM VERSION 1 WHERE id = 1 AND _commit_version IN (1, 2) AND (name = 'a' OR name IS NULL)"
    rows = spark.sql(query)
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert (
        "EqualTo(id,1)" in plan
        and "In(_commit_version" in plan
        and "ReadSchema: struct<id:int,name:string,_commit_version" in plan
    )
    assert sorted(row[0] for row in rows.collect()) == ["a", "a"]
    spark.sql("DROP TABLE filtered")


def test_columns_of_any_name_are_read(spark: SparkSession) -> None:
    properties = "delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name'"
    spark.sql(f"CREATE TABLE odd_names (`a.b` INT, `c``d` STRING, `x y` DATE) USING delta TBLPROPERTIES ({properties})")
    spark.sql("INSERT INTO odd_names VALUES (1, 'x', DATE'2020-01-01'), (2, 'y', NULL)")
    rows = spark.sql("SELECT `c``d` FROM odd_names CHANGES FROM VERSION 1 WHERE `a.b` > 0 AND `x y` <= DATE'2020-01-01'")
    assert [row[0] for row in rows.collect()] == ["x"]
    spark.sql("DROP TABLE odd_names")
