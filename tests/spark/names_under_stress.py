"""Names used by many threads and in many ways at once: `test_names_under_stress` runs it in the tests' session, and as a program of its own
where PySpark's threads are not pinned to threads of the JVM (``PYSPARK_PIN_THREAD=false``), which is another gateway.

As a program it prints one line a life that passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import tahoe
from tahoe.base.exceptions import InvalidRequest
from tahoe.tables import DeltaTable

__all__ = ["LIVES"]

THREADS = 4


def threads_work_side_by_side(spark: SparkSession, folder: Path) -> None:
    """Threads make, write, change, read, join and drop tables of their own, and all append to one and read it."""
    spark.sql("CREATE TABLE stress.shared (writer INT, step INT) USING delta")

    def life(number: int) -> int:
        name = f"stress.t{number}"
        spark.sql(f"CREATE TABLE {name} USING delta AS SELECT id, id % 10 AS p FROM range(100)")
        for step in range(2):
            spark.sql(f"INSERT INTO stress.shared VALUES ({number}, {step})")
            spark.sql(f"UPDATE {name} SET p = {number * 10 + step} WHERE id % 5 = {step}")
            mine = spark.sql(f"SELECT DISTINCT p FROM {name} WHERE id % 5 = {step}").collect()
            assert mine == [(number * 10 + step,)], mine
            seen = spark.sql(f"SELECT count(*) FROM stress.shared WHERE writer = {number}").first()[0]
            assert seen == step + 1, (number, step, seen)
        joined = spark.table(name).join(sf.broadcast(spark.table("stress.shared")), sf.col("writer") == number)
        assert joined.count() == 200
        spark.sql(f"DROP TABLE {name}")
        return number

    with ThreadPoolExecutor(THREADS) as pool:
        assert sorted(pool.map(life, range(THREADS))) == list(range(THREADS))
    assert spark.table("stress.shared").count() == 2 * THREADS
    assert spark.sql("DESCRIBE HISTORY stress.shared").count() == 2 * THREADS + 1


def views_over_views(spark: SparkSession, folder: Path) -> None:
    """Views of SQL and of DataFrames, temporary and permanent, four deep, show the table's rows at the time of reading."""
    spark.sql("CREATE TABLE stress.base USING delta AS SELECT id, id % 3 AS k FROM range(9)")
    spark.sql("CREATE VIEW stress.v1 AS SELECT * FROM stress.base WHERE id > 0")
    spark.sql("CREATE TEMPORARY VIEW v2 AS SELECT k, count(*) AS n FROM stress.v1 GROUP BY k")
    spark.table("v2").where("n > 0").createOrReplaceTempView("v3")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW v4 AS SELECT a.k, a.n, b.id FROM v3 a JOIN stress.v1 b ON a.k = b.k AND b.id < 3")
    assert sorted(spark.table("v4").collect()) == [(1, 3, 1), (2, 3, 2)]
    spark.sql("DELETE FROM stress.base WHERE id = 4")
    spark.sql("INSERT INTO stress.base VALUES (2, 2)")
    assert sorted(spark.table("v4").collect()) == [(1, 2, 1), (2, 4, 2), (2, 4, 2)]
    spark.sql("INSERT OVERWRITE stress.base SELECT 1, 1")
    assert spark.table("v4").collect() == [(1, 1, 1)]


def two_sessions_have_two_databases(spark: SparkSession, folder: Path) -> None:
    """Tables of one name in two databases, each the current one of a session; both sessions write and read by turns and side by side."""
    spark.sql("CREATE DATABASE IF NOT EXISTS stress_other")
    sessions = [spark.newSession(), spark.newSession()]
    for number, (session, database) in enumerate(zip(sessions, ("stress", "stress_other"), strict=True)):
        session.sql(f"USE {database}")
        session.sql(f"CREATE TABLE same USING delta AS SELECT {number} AS who, id FROM range(10)")
        session.sql("CREATE TEMPORARY VIEW mine AS SELECT who FROM same")

    def write(place: int) -> None:
        for step in range(4):
            sessions[place].sql(f"INSERT INTO same VALUES ({place}, {100 + step})")
            sessions[place].range(1).selectExpr(f"{place} AS who", "500L AS id").write.insertInto("same")
            assert {row.who for row in sessions[place].table("mine").collect()} == {place}

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    for place, session in enumerate(sessions):
        assert session.table("same").count() == 18
        assert session.sql("SELECT DISTINCT who FROM same").collect() == [(place,)]
        assert DeltaTable.forName(session, "same").toDF().count() == 18
    spark.sql("DROP DATABASE stress_other CASCADE")


def a_batch_of_a_stream_writes_by_name(spark: SparkSession, folder: Path) -> None:
    """``foreachBatch`` runs in a copy of the session, on a thread of the JVM's: MERGE, INSERT and saveAsTable by name in it."""
    spark.range(12).selectExpr("id", "id % 4 AS k").write.parquet(str(folder / "source"))
    spark.sql("CREATE TABLE stress.upserted (k BIGINT, n BIGINT) USING delta")

    def upsert(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        batch.groupBy("k").agg(sf.count("*").alias("n")).createOrReplaceTempView("changes")
        session.sql(
            "MERGE INTO stress.upserted t USING changes s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
        )
        batch.write.format("delta").mode("append").saveAsTable("stress.raw")
        session.sql("INSERT INTO stress.upserted SELECT -1, count(*) FROM stress.raw")

    stream = spark.readStream.schema("id BIGINT, k BIGINT").parquet(str(folder / "source"))
    query = stream.writeStream.foreachBatch(upsert).option("checkpointLocation", str(folder / "at")).trigger(availableNow=True)
    assert query.start().awaitTermination(600)
    assert sorted(spark.table("stress.upserted").collect()) == [(-1, 12), (0, 3), (1, 3), (2, 3), (3, 3)]
    assert spark.table("stress.raw").count() == 12


def a_table_is_replaced_between_analysis_and_execution(spark: SparkSession, folder: Path) -> None:
    """A DataFrame of a table that is replaced shows the new rows if they have its columns, and otherwise raises an error with the reason."""
    spark.sql("CREATE TABLE stress.replaced USING delta AS SELECT 1 AS a, 'x' AS b")
    remaining = spark.table("stress.replaced").select("a")
    spark.sql("CREATE OR REPLACE TABLE stress.replaced USING delta AS SELECT 2 AS a, 'y' AS b")
    assert remaining.select("*").collect() == [(2,)]
    spark.sql("CREATE OR REPLACE TABLE stress.replaced USING delta AS SELECT 'three' AS a")
    with pytest.raises(InvalidRequest) as raised:
        remaining.select("*").collect()
    assert raised.value.code == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    spark.sql("DROP TABLE stress.replaced")
    spark.sql("CREATE TABLE stress.replaced USING delta AS SELECT 4 AS a, 'z' AS b")
    assert spark.table("stress.replaced").collect() == [(4, "z")]


LIVES: Mapping[str, Callable[[SparkSession, Path], None]] = {
    life.__name__: life
    for life in (
        threads_work_side_by_side,
        views_over_views,
        two_sessions_have_two_databases,
        a_batch_of_a_stream_writes_by_name,
        a_table_is_replaced_between_analysis_and_execution,
    )
}


def main(folder: str, *names: str) -> None:
    """Some lives, in a session of its own."""
    settings = {
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = tahoe.enable(builder.getOrCreate())
    spark.sql("CREATE DATABASE stress")
    for name in names:
        (Path(folder) / name).mkdir()
        LIVES[name](spark, Path(folder) / name)
        sys.stdout.write(f"PASSED {name}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
