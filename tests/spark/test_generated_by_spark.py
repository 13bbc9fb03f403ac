"""Generated columns that only Spark can evaluate, in a classic session and over Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.types import LongType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvariantViolation, TahoeError
from tahoe.tables import DeltaTable

DIGESTS = {"a": "61", "b": "62", "c": "63"}


@pytest.fixture
def table(either_session: Any, path: str) -> DeltaTable:
    """Rows of three generated columns: two of them only Spark can evaluate, and one is the partition."""
    either_session.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, word STRING, digest STRING GENERATED ALWAYS AS (hex(word)), "
        "twice BIGINT GENERATED ALWAYS AS (id * 2), part STRING GENERATED ALWAYS AS (translate(word, 'abc', 'xyz'))) USING delta "
        "PARTITIONED BY (part) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    either_session.sql(f"INSERT INTO delta.`{path}` (id, word) VALUES (1, 'a'), (2, 'b')")
    return DeltaTable.forPath(either_session, path)


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.toDF().select("id", "word", "digest", "twice", "part").collect())


def row(number: int, word: str) -> tuple[Any, ...]:
    return number, word, DIGESTS[word], number * 2, word.translate(str.maketrans("abc", "xyz"))


def test_missing_values_are_computed_and_present_ones_compared(either_session: Any, table: DeltaTable, path: str) -> None:
    assert rows_of(table) == [row(1, "a"), row(2, "b")]
    either_session.sql(f"INSERT INTO delta.`{path}` (digest, word, id) VALUES ('{DIGESTS['c']}', 'c', 3), (NULL, NULL, NULL)")
    either_session.sql(f"DELETE FROM delta.`{path}` WHERE id IS NULL")
    assert rows_of(table)[2:] == [row(3, "c")]
    with pytest.raises(InvariantViolation, match=r"`digest` <=> hex\(word\)") as raised:
        either_session.sql(f"INSERT INTO delta.`{path}` (digest, word, id) VALUES ('{DIGESTS['c']}', 'a', 4)")
    assert raised.value.facts["values"] == {"digest": DIGESTS["c"], "word": "a"}
    assert len(rows_of(table)) == 3


def test_rows_of_a_dataframe(either_session: Any, table: DeltaTable, path: str) -> None:
    frame = either_session.createDataFrame([("c", 3)], "WORD string, id long").selectExpr("id", "WORD")
    frame.write.format("delta").mode("append").save(path)
    assert rows_of(table)[2:] == [row(3, "c")]
    with pytest.raises(InvariantViolation, match=" - word : c"):
        frame.selectExpr("id", "WORD", "'x' DIGEST").write.format("delta").mode("append").save(path)
    frame.selectExpr("9L id", "WORD").write.format("delta").mode("overwrite").option("replaceWhere", "part = 'z'").save(path)
    assert rows_of(table) == [row(1, "a"), row(2, "b"), row(9, "c")]


def test_changed_rows_are_computed_again(either_session: Any, table: DeltaTable, path: str) -> None:
    table.update("id = 1", {"word": "'c'"})
    source = either_session.createDataFrame([(2, "a"), (5, "b")], "id long, word string").alias("s")
    clauses = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"word": "s.word"})
    clauses.whenNotMatchedInsert(values={"id": "s.id", "word": "s.word"}).execute()
    assert rows_of(table) == [row(1, "c"), row(2, "a"), row(5, "b")]
    feed = either_session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3).load(path)
    inserted = feed.where("_change_type in ('insert', 'update_postimage')").select("id", "digest").collect()
    assert sorted(map(tuple, inserted)) == [(2, DIGESTS["a"]), (5, DIGESTS["b"])]
    with pytest.raises(InvariantViolation, match="digest"):
        table.update("id = 1", {"digest": "'x'"})


def test_a_constraint_over_a_generated_column(either_session: Any, table: DeltaTable, path: str) -> None:
    condition = "regexp_count(digest, '^6[12]$') + regexp_count(CAST(twice AS STRING), '^[0-9]$') = 2"
    either_session.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT begins CHECK ({condition})")
    with pytest.raises(InvariantViolation, match="begins"):
        either_session.sql(f"INSERT INTO delta.`{path}` (id, word) VALUES (3, 'c')")
    either_session.sql(f"INSERT INTO delta.`{path}` (id, word) VALUES (3, 'a')")
    assert rows_of(table)[2:] == [row(3, "a")]


def test_the_builder(either_session: Any, path: str) -> None:
    builder = DeltaTable.create(either_session).location(path).addColumn("word", "string")
    table = builder.addColumn("length", LongType(), generatedAlwaysAs="CAST(levenshtein(word, '') AS BIGINT)").execute()
    either_session.createDataFrame([("four",)], "word string").write.format("delta").mode("append").save(path)
    assert [tuple(found) for found in table.toDF().collect()] == [("four", 4)]
    assert Table(path).snapshot().schema.field("length").is_generated


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        ("d INT GENERATED ALWAYS AS (hex(word))", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("d STRING GENERATED ALWAYS AS (hex(nothing))", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (
            "d STRING GENERATED ALWAYS AS (hex(word)), e STRING GENERATED ALWAYS AS (hex(d))",
            "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
        ),
        ("d STRING GENERATED ALWAYS AS (uuid())", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("d BIGINT GENERATED ALWAYS AS (sum(id))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("d STRING GENERATED ALWAYS AS (reflect('a.B', 'c', word))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
    ],
)
def test_expressions_that_are_refused(either_session: Any, path: str, definition: str, code: str) -> None:
    with pytest.raises(Exception, match=r"GENERATED|UNRESOLVED_COLUMN") as raised:
        either_session.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, word STRING, {definition}) USING delta")
    assert not Path(path, "_delta_log").exists()
    if isinstance(either_session, ConnectSession):  # Spark rejects the statement itself in a classic session
        assert isinstance(raised.value, TahoeError)
        assert raised.value.code == code


@pytest.fixture
def in_california(either_session: Any) -> Iterator[Any]:
    zone = either_session.conf.get("spark.sql.session.timeZone")
    either_session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    yield either_session
    either_session.conf.set("spark.sql.session.timeZone", zone)


def test_expressions_read_the_wall_clock_of_the_session(in_california: Any, path: str) -> None:
    """Some are evaluated by Tahoe in the tasks of a server, some by Spark."""
    in_california.sql(
        f"CREATE TABLE delta.`{path}` (at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
        "hour STRING GENERATED ALWAYS AS (lpad(hour(at), 2, '0')), seen TIMESTAMP DEFAULT TIMESTAMP'2026-01-31 00:00:00') USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    at = "TIMESTAMP'2026-01-01 23:00:00'"
    in_california.sql(f"INSERT INTO delta.`{path}` (at) VALUES ({at})")
    in_california.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT old CHECK (at < '2026-01-02 00:00:00')")
    in_california.sql(f"INSERT INTO delta.`{path}` (at, day) VALUES ({at}, DATE'2026-01-01')")
    in_california.sql(f"UPDATE delta.`{path}` SET at = at + INTERVAL 1 MINUTE")
    expected = ("2026-01-01 23:01:00", date(2026, 1, 1), "23", "2026-01-31 00:00:00")
    found = in_california.sql(f"SELECT CAST(at AS STRING), day, hour, CAST(seen AS STRING) FROM delta.`{path}`").collect()
    assert list(map(tuple, found)) == [expected] * 2
    with pytest.raises(InvariantViolation, match="day"):
        in_california.sql(f"INSERT INTO delta.`{path}` (at, day) VALUES ({at}, DATE'2026-01-02')")
    with pytest.raises(InvariantViolation, match="old"):
        in_california.sql(f"INSERT INTO delta.`{path}` (at) VALUES (TIMESTAMP'2026-01-02 01:00:00')")


def test_a_stream_reads_the_wall_clock_of_the_session(in_california: Any, path: str) -> None:
    rows = in_california.sql("SELECT TIMESTAMP'2026-01-01 23:00:00' AS at")
    rows.write.format("delta").save(f"{path}/source")
    in_california.sql(
        f"CREATE TABLE delta.`{path}/target` (at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) USING delta"
    )
    stream = in_california.readStream.format("delta").load(f"{path}/source").writeStream.format("delta")
    stream.option("checkpointLocation", f"{path}/checkpoint").trigger(availableNow=True).start(
        f"{path}/target"
    ).awaitTermination()
    assert in_california.read.format("delta").load(f"{path}/target").first().day == date(2026, 1, 1)


def test_rows_are_copied_in_another_time_zone(in_california: Any, path: str) -> None:
    in_california.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    rows = in_california.sql("SELECT id, TIMESTAMP'2026-01-01 23:00:00' AS at FROM range(0, 4, 1, 1)")
    rows.write.format("delta").mode("append").save(path)
    Table(path).delete("id = 0")
    in_california.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    in_california.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    assert Table(path).to_arrow(columns=["id", "day"]).sort_by("id").to_pylist() == [
        {"id": 2, "day": date(2026, 1, 1)},
        {"id": 3, "day": date(2026, 1, 1)},
    ]


def test_streams_are_completed_and_checked(either_session: Any, path: str, tmp_path: Path) -> None:
    either_session.sql(
        f"CREATE TABLE delta.`{path}` (n INT, w STRING, h STRING GENERATED ALWAYS AS (hex(w)), u STRING GENERATED ALWAYS AS (upper(w))) "
        "USING delta"
    )
    either_session.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT sound CHECK (soundex(w) <> 'X000' AND length(u) > 0)")

    def run(number: int, *columns: str) -> None:
        source, checkpoint = str(tmp_path / f"source{number}"), str(tmp_path / f"checkpoint{number}")
        either_session.range(number, number + 1).selectExpr("CAST(id AS INT) n", *columns).write.format("delta").save(source)
        rows = either_session.readStream.format("delta").load(source)
        writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint).option("mergeSchema", "true")
        writer.trigger(availableNow=True).start(path).awaitTermination()

    run(1, "'ab' AS w")
    run(2, "'cd' AS w", "hex('cd') AS H", "7 AS more")
    for number, columns in ((3, ("'x' AS w",)), (4, ("'ab' AS w", "'wrong' AS h")), (5, ("'ab' AS w", "'wrong' AS u"))):
        with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
            run(number, *columns)
    stored = either_session.read.format("delta").load(path).orderBy("n").collect()
    assert stored == [(1, "ab", "6162", "AB", None), (2, "cd", "6364", "CD", 7)]
    assert Table(path).check(deep=True) == []
