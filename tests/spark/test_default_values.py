"""Default values on Spark: statements of every kind, DataFrames, and texts of other writers, which are understood and never executed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pyspark.errors import PySparkException

from tahoe import Table
from tahoe.base.exceptions import TahoeError
from tahoe.schema.types import StructType
from tahoe.tables import DeltaTable
from tahoe.txn.transaction import Operation

ENABLED = "TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')"


@pytest.fixture
def table(spark, tmp_path):
    name = f"delta.`{tmp_path}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, n BIGINT DEFAULT 40 + 2, s STRING DEFAULT 'new', at TIMESTAMP DEFAULT current_timestamp()) "
        f"USING delta {ENABLED}"
    )
    return name


def rows(spark, table, *columns):
    return sorted((tuple(row) for row in spark.table(table).select(*columns or ("id", "n", "s")).collect()), key=str)


def test_statements_and_frames_fill_in_omitted_columns(spark, table, tmp_path):
    metadata = [column.metadata for column in Table(str(tmp_path)).schema()]
    assert metadata == [
        {},
        {"CURRENT_DEFAULT": "40 + 2"},
        {"CURRENT_DEFAULT": "'new'"},
        {"CURRENT_DEFAULT": "current_timestamp()"},
    ]
    spark.sql(f"INSERT INTO {table} (id) VALUES (1)")
    spark.sql(f"INSERT INTO {table} VALUES (2, DEFAULT, NULL, DEFAULT)")
    spark.sql(f"INSERT INTO {table} (id, s) VALUES (3, DEFAULT)")
    spark.createDataFrame([(4, "df")], "id INT, s STRING").write.format("delta").mode("append").save(str(tmp_path))
    assert rows(spark, table) == [(1, 42, "new"), (2, 42, None), (3, 42, "new"), (4, 42, "df")]
    times = [row[0] for row in spark.table(table).select("at").collect()]
    assert all(abs(datetime.now() - at) < timedelta(hours=25) for at in times)


def test_update_and_merge_know_the_word(spark, table, tmp_path):
    spark.sql(f"INSERT INTO {table} VALUES (1, 7, 'a', NULL), (2, 7, 'b', NULL)")
    spark.sql(f"UPDATE {table} SET n = DEFAULT, s = DEFAULT WHERE id = 1")
    DeltaTable.forPath(spark, str(tmp_path)).update("id = 2", {"s": "default"})
    assert rows(spark, table) == [(1, 42, "new"), (2, 7, "new")]
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1), (5), (6) AS s (id)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s = 'm', "
        "n = DEFAULT WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id, n, s) VALUES (s.id, DEFAULT, 'x') WHEN NOT MATCHED THEN INSERT (id) "
        "VALUES (s.id)"
    )
    assert rows(spark, table) == [(1, 42, "m"), (2, 7, "new"), (5, 42, "x"), (6, 42, "new")]


def test_alter_column_and_its_refusals(spark, table, tmp_path):
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN s DROP DEFAULT")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN n SET DEFAULT 5 * 2")
    spark.sql(f"INSERT INTO {table} (id) VALUES (1)")
    assert rows(spark, table) == [(1, 10, None)]
    assert "DEFAULT 5 * 2" in spark.sql(f"SHOW CREATE TABLE {table}").first()[0]
    plain = f"delta.`{tmp_path}/plain`"
    enabling = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"
    for statement, error in (
        (f"CREATE TABLE {plain} (n INT DEFAULT 1) USING delta", enabling),
        (f"CREATE TABLE {plain} (n INT, m INT) USING delta", None),
        (f"ALTER TABLE {plain} ALTER COLUMN n SET DEFAULT 1", enabling),
        (
            f"ALTER TABLE {table} ADD COLUMN z INT DEFAULT 1",
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        ),
        (f"ALTER TABLE {table} ALTER COLUMN n SET DEFAULT 'x'", "INVALID_DEFAULT_VALUE"),
    ):
        if error is None:
            spark.sql(statement)
            continue
        with pytest.raises((TahoeError, PySparkException), match=error):
            spark.sql(statement)


def test_a_text_of_another_writer_is_not_executed(spark, table, tmp_path):
    of_others = Table(str(tmp_path))
    transaction = of_others.begin()
    columns = [
        replace(item, metadata={"CURRENT_DEFAULT": "reflect('java.lang.System', 'getProperty', 'user.home')"})
        if item.name == "s"
        else item
        for item in of_others.schema()
    ]
    schema = StructType(tuple(columns)).to_json()
    transaction.set_metadata(replace(transaction.existing().metadata, schema_string=schema))
    transaction.enforces = frozenset({"allowColumnDefaults"})
    of_others.commit(transaction, Operation("OTHER WRITER"))
    for statement in (f"INSERT INTO {table} (id) VALUES (1)", f"INSERT INTO {table} VALUES (1, 2, DEFAULT, NULL)"):
        with pytest.raises(TahoeError, match="'reflect' is not on the list"):
            spark.sql(statement)
    assert spark.table(table).count() == 0


def test_a_stream_fills_in_defaults_of_its_batches(either_session, tmp_path):
    spark, source, target = either_session, str(tmp_path / "source"), str(tmp_path / "target")
    spark.sql(
        f"CREATE TABLE delta.`{target}` (id BIGINT, n BIGINT DEFAULT 42, at TIMESTAMP DEFAULT current_timestamp(), day DATE DEFAULT "
        f"current_date(), u STRING DEFAULT current_user(), m MAP<STRING, INT> DEFAULT map('a', 1)) USING delta {ENABLED}"
    )

    def run(checkpoint, columns="id"):
        spark.range(2).write.format("delta").mode("append").save(source)
        rows = spark.readStream.format("delta").load(source).selectExpr(*columns.split(", "))
        writer = rows.writeStream.format("delta").option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).start(target).awaitTermination()

    run("first")
    run("first")
    run("second", "id, 'me' AS U, DATE'2026-01-31' AS day")
    rows = spark.read.format("delta").load(target)
    assert rows.where("n = 42 AND m['a'] = 1").count() == 4 + 6
    assert rows.groupBy("u").count().where("u = 'me'").first()[1] == 6
    assert (
        rows.where("u = current_user() AND day >= current_date() - 1 AND at > current_timestamp() - INTERVAL 1 HOUR").count() == 4
    )
    assert rows.where("u <> 'me'").select("at").distinct().count() == 2
