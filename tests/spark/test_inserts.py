"""INSERT that omits columns, and cached rows of a table that is written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException

from tahoe import DeltaTable
from tahoe.base.exceptions import SchemaMismatch
from tests.spark.entries import named  # noqa: F401 - a fixture


@pytest.fixture
def doubled(spark):
    """The name of a partitioned table with a generated column."""
    spark.sql(
        "CREATE TABLE doubled (id INT, name STRING, twice INT GENERATED ALWAYS AS (id * 2), day DATE) USING delta PARTITIONED BY (day)"
    )
    yield "doubled"
    spark.sql("DROP TABLE doubled")


def test_columns_left_out_are_computed_or_null(spark, doubled):
    spark.sql(f"DECLARE OR REPLACE VARIABLE target STRING DEFAULT '{doubled}'")
    location = spark.sql(f"DESCRIBE DETAIL {doubled}").first()["location"]
    for statement in (
        "(id, name) VALUES (1, 'listed')",
        "BY NAME SELECT 'by name' AS name, 2 AS id",
        "(TWICE, ID) VALUES (6, 3)",
        "PARTITION (day = '2024-01-01') (id) VALUES (4)",
        "PARTITION (day) (id, day) VALUES (5, DATE'2024-01-02')",
    ):
        spark.sql(f"INSERT INTO {doubled} {statement}")
    spark.sql("INSERT INTO IDENTIFIER(target) (id) VALUES (6)")
    spark.sql(f"INSERT INTO delta.`{location}` (id) SELECT :v", {"v": 7})
    spark.sql(f"INSERT INTO {doubled} BY NAME SELECT :v AS id", {"v": 8})
    rows = spark.sql(f"SELECT id, name, twice, CAST(day AS STRING) FROM {doubled} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [
        (1, "listed", 2, None),
        (2, "by name", 4, None),
        (3, None, 6, None),
        (4, None, 8, "2024-01-01"),
        (5, None, 10, "2024-01-02"),
        *((id, None, id * 2, None) for id in (6, 7, 8)),
    ]
    spark.sql(f"INSERT OVERWRITE {doubled} PARTITION (day = '2024-01-01') (id) VALUES (9)")
    assert {row["id"] for row in spark.table(doubled).collect()} == {1, 2, 3, 5, 6, 7, 8, 9}
    spark.sql(f"INSERT OVERWRITE {doubled} (name, id) SELECT name, id FROM {doubled} WHERE id < 3")
    assert [tuple(row)[:3] for row in spark.table(doubled).orderBy("id").collect()] == [(1, "listed", 2), (2, "by name", 4)]


def test_in_a_script_that_makes_the_table(spark):
    spark.conf.set("spark.sql.scripting.enabled", "true")
    try:
        spark.sql(
            "BEGIN CREATE TABLE scripted (id INT, g INT GENERATED ALWAYS AS (id + 1)) USING delta; "
            "INSERT INTO scripted (id) VALUES (1); INSERT INTO scripted BY NAME SELECT 2 AS id; END"
        )
        assert sorted(tuple(row) for row in spark.table("scripted").collect()) == [(1, 2), (2, 3)]
    finally:
        spark.conf.unset("spark.sql.scripting.enabled")
        spark.sql("DROP TABLE IF EXISTS scripted")


def test_a_required_column_left_out_and_an_unknown_column_are_errors(spark, doubled, named):  # noqa: F811
    table = named("SELECT id, 'n' AS name FROM range(2)")
    spark.sql(f"CREATE OR REPLACE TABLE {table.name} (id BIGINT NOT NULL, name STRING) USING delta")
    with pytest.raises(SchemaMismatch, match="'id'"):
        spark.sql(f"INSERT INTO {table.name} (name) VALUES ('x')")
    for text, match in (
        ("(id, id) VALUES (7, 7)", "COLUMN_ALREADY_EXISTS"),
        ("(nope) VALUES (7)", "nope"),
        ("BY NAME SELECT 1 AS nope", "DELTA_METADATA_MISMATCH"),
        ("(id) VALUES ('x')", "CAST_INVALID_INPUT"),
        ("VALUES (1, 'x')", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("(id) VALUES (1, 2)", "INSERT_COLUMN_ARITY_MISMATCH"),
    ):
        with pytest.raises(PySparkException, match=match):
            spark.sql(f"INSERT INTO {doubled} {text}")
    spark.conf.set("spark.sql.defaultColumn.useNullsForMissingDefaultValues", "false")
    try:
        with pytest.raises(AnalysisException):
            spark.sql(f"INSERT INTO {doubled} (id) VALUES (1)")
    finally:
        spark.conf.unset("spark.sql.defaultColumn.useNullsForMissingDefaultValues")
    assert spark.table(doubled).count() == 0


def test_tables_of_other_formats_are_sparks_own(spark):
    spark.sql("CREATE TABLE left_out_parquet (a INT, b INT) USING parquet")
    try:
        spark.sql("INSERT INTO left_out_parquet (b) VALUES (2)")
        assert spark.table("left_out_parquet").collect() == [(None, 2)]
    finally:
        spark.sql("DROP TABLE left_out_parquet")


def test_a_cached_table_shows_writes_of_this_session_and_stays_cached(spark, named):  # noqa: F811
    table = named("SELECT id FROM range(3)")
    frame = spark.table(table.name).where("id >= 0").cache()
    spark.sql(f"CACHE TABLE {table.name}")
    try:
        for change, expected in (
            (lambda: spark.sql(f"INSERT INTO {table.name} VALUES (9)"), [0, 1, 2, 9]),
            (lambda: spark.sql(f"DELETE FROM {table.name} WHERE id = 1"), [0, 2, 9]),
            (lambda: DeltaTable.forPath(spark, table.path).update(set={"id": "id + 1"}), [1, 3, 10]),
        ):
            change()
            assert spark.catalog.isCached(table.name)
            assert "InMemoryTableScan" in _plan(spark.table(table.name)) and "InMemoryTableScan" in _plan(frame)
            assert [row.id for row in spark.table(table.name).orderBy("id").collect()] == expected
            assert [row.id for row in frame.orderBy("id").collect()] == expected
        table.table.append(pa.table({"id": [50]}))  # by another writer than this session's
        assert 50 in {row.id for row in spark.table(table.name).collect()}
    finally:
        spark.catalog.clearCache()


def test_whether_there_is_a_table_at_a_path(spark, named, tmp_path):  # noqa: F811
    table = named("SELECT 1 AS id")
    assert spark.catalog.tableExists(table.names[1]) and spark.catalog.tableExists(table.name)
    assert not spark.catalog.tableExists(f"delta.`{tmp_path}/none`") and not spark.catalog.tableExists("none_such")
    with pytest.raises(AnalysisException):  # a database of that name, not a path
        spark.sql("DELETE FROM delta.none_such")


def _plan(frame) -> str:
    return frame._jdf.queryExecution().optimizedPlan().toString().replace("InMemoryRelation", "InMemoryTableScan")
