"""The methods of `spark.catalog` that do the work of a statement of SQL, on Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tests.spark.connect_server import remote


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A classic session, and a session of Spark Connect, with a table `listed` of three rows."""
    yield from with_table(either_session)


def with_table(spark: Any) -> Iterator[Any]:
    spark.sql(
        "CREATE TABLE listed (id INT, day DATE, `of.kind` STRING) USING delta PARTITIONED BY (day, `of.kind`) TBLPROPERTIES ('a.b' = 'c')"
    )
    spark.sql("INSERT INTO listed VALUES (1, DATE'2026-01-31', 'x/y'), (2, DATE'2026-01-31', NULL), (3, NULL, 'z')")
    yield spark
    spark.sql("DROP TABLE listed")


def operations(spark: Any) -> list[str]:
    return [row.operation for row in spark.sql("DESCRIBE HISTORY listed").collect()]


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="PySpark has these methods since 4.2")
def test_methods_answer_as_the_statements(session: Any) -> None:
    catalog = session.catalog
    properties = {row[0]: row[1] for row in session.sql("SHOW TBLPROPERTIES listed").collect()}
    assert catalog.getTableProperties("listed") == properties
    assert properties["a.b"] == "c"
    assert catalog.getCreateTableString("listed") == session.sql("SHOW CREATE TABLE listed").collect()[0][0]
    assert "'a.b' = 'c'" in catalog.getCreateTableString("listed")
    with pytest.raises((TahoeError, PySparkException), match="SERDE"):
        catalog.getCreateTableString("listed", asSerde=True)
    null = "__HIVE_DEFAULT_PARTITION__"
    assert sorted(partition.partition for partition in catalog.listPartitions("listed")) == [
        f"day=2026-01-31/of.kind={null}",
        "day=2026-01-31/of.kind=x%2Fy",
        f"day={null}/of.kind=z",
    ]
    with pytest.raises(InvalidRequest) as raised:
        catalog.analyzeTable("listed", noScan=True)
    assert raised.value.code == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
    catalog.truncateTable("listed")
    assert session.table("listed").count() == 0
    assert operations(session) == ["TRUNCATE", "WRITE", "CREATE TABLE"]
    catalog.truncateTable(f"delta.`{session.sql('DESCRIBE DETAIL listed').first().location}`")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="PySpark has these methods since 4.2")
def test_other_tables_are_left_to_spark(session: Any) -> None:
    session.sql("CREATE TABLE of_parquet (id INT) USING parquet TBLPROPERTIES ('a.b' = 'c')")
    session.sql("INSERT INTO of_parquet VALUES (1)")
    assert session.catalog.getTableProperties("of_parquet")["a.b"] == "c"
    session.catalog.truncateTable("of_parquet")
    assert session.table("of_parquet").count() == 0
    session.catalog.dropTable("of_parquet")
    with pytest.raises(PySparkException) as raised:
        session.catalog.truncateTable("of_parquet")
    assert raised.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="PySpark has these methods since 4.2")
def test_tables_and_databases_are_dropped_with_their_files(session: Any) -> None:
    catalog = session.catalog
    catalog.createDatabase("to_drop")
    session.sql("CREATE TABLE to_drop.t (id INT) USING delta")
    with pytest.raises(PySparkException) as raised:
        catalog.dropDatabase("to_drop")
    assert raised.value.getCondition() == "SCHEMA_NOT_EMPTY"
    location = session.sql("DESCRIBE DETAIL to_drop.t").first().location
    catalog.dropTable("to_drop.t")
    catalog.dropTable("to_drop.t", ifExists=True)
    with pytest.raises(TahoeError):
        session.read.format("delta").load(location).count()
    catalog.dropDatabase("to_drop", cascade=True)


def test_partitions_are_not_recovered(session: Any) -> None:
    with pytest.raises(InvalidRequest) as raised:
        session.catalog.recoverPartitions("listed")
    assert raised.value.code == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"


IGNORED = (
    "TRUNCATE TABLE listed PARTITION (day = DATE'2026-01-31')",
    "TRUNCATE TABLE listed id",
    "ALTER TABLE listed SET TBLPROPERTIES ('x' = 'y') AND MORE",
    "ALTER TABLE listed UNSET TBLPROPERTIES ('a.b') CASCADE",
    "ALTER TABLE listed CLUSTER BY (id) AND MORE",
    "ALTER TABLE listed CLUSTER BY NONE id",
    "ALTER TABLE listed ADD COLUMNS (more INT) CASCADE",
    "ALTER TABLE listed ALTER COLUMN id COMMENT 'x' MORE",
    "SHOW CREATE TABLE listed MORE",
    "SHOW TBLPROPERTIES listed ('a.b') MORE",
    "COMMENT ON TABLE listed IS 'x' MORE",
    "DELETE FROM listed PARTITION (day = DATE'2026-01-31')",
    "DELETE FROM listed WHERE id = 1 LIMIT 1",
    "UPDATE listed SET id = 2 WHERE id = 1 LIMIT 1",
    "MERGE INTO listed USING listed s ON listed.id = s.id WHEN MATCHED THEN DELETE MORE",
    "INSERT INTO listed VALUES (1, NULL, NULL) MORE AND MORE",
    "VACUUM listed DRY RUN MORE",
    "OPTIMIZE listed MORE",
    "OPTIMIZE listed ZORDER BY (id) MORE",
    "RESTORE TABLE listed TO VERSION AS OF 0 MORE",
    "DESCRIBE HISTORY listed MORE",
    "DESCRIBE DETAIL listed MORE",
    "REORG TABLE listed APPLY (PURGE) MORE",
    "ALTER TABLE listed ADD CONSTRAINT positive CHECK (id > 0) MORE",
    "ALTER TABLE listed DROP CONSTRAINT positive CASCADE",
    "ALTER TABLE listed DROP FEATURE appendOnly MORE",
    "ALTER TABLE listed RENAME COLUMN id TO number MORE",
    "CREATE TABLE other SHALLOW CLONE listed MORE",
    "DELETE FROM listed WHERE id = 1 AND",
    "DELETE FROM listed WHERE id = 1 MORE",
    "DELETE FROM listed WHERE id = 1) OR (id = 2",
    "DELETE FROM listed WHERE day IS NULL LIMIT",
    "UPDATE listed SET id = 2 MORE WHERE id = 1",
    "UPDATE listed SET id = 2 AS more WHERE id = 1",
    "UPDATE listed SET id = 2 WHERE id = 1 AND",
    "MERGE INTO listed USING (SELECT 1 AS id) s ON listed.id = s.id MORE WHEN MATCHED THEN DELETE",
    "MERGE INTO listed USING (SELECT 1 AS id) s ON listed.id = s.id WHEN MATCHED AND s.id = 1 OR THEN DELETE",
    "MERGE INTO listed USING (SELECT 1 AS id) s ON listed.id = s.id WHEN MATCHED THEN UPDATE SET id = 3 MORE",
    "MERGE INTO listed USING (SELECT 9 AS id) s ON listed.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1 MORE)",
    "INSERT INTO listed REPLACE WHERE id = 1 MORE SELECT 1, NULL, NULL",
    "INSERT INTO listed PARTITION (day = DATE'2026-01-31' MORE, `of.kind` = 'a') VALUES (1)",
    "ALTER TABLE listed SET TBLPROPERTIES ('x' MORE = 'y')",
    "ALTER TABLE listed SET TBLPROPERTIES ('x' = 1 + 1)",
    "ALTER TABLE listed SET TBLPROPERTIES ('x' = y)",
    "ALTER TABLE listed SET TBLPROPERTIES ('x' = '1', 'x' = '2')",
    "ALTER TABLE listed ADD CONSTRAINT positive CHECK (id > 0 AND)",
    "ALTER TABLE listed ADD CONSTRAINT positive CHECK (hash(id) <> 0 MORE)",
    "VACUUM listed RETAIN 1 68 HOURS DRY RUN",
    "REORG TABLE listed WHERE day IS NULL MORE APPLY (PURGE)",
    "OPTIMIZE listed WHERE day IS NULL AND",
    "CREATE TABLE other (a INT) USING delta COMMENT 'a' COMMENT 'b'",
    "CREATE TABLE other (a INT) USING delta USING delta",
    "CREATE TABLE other (a INT) USING delta TBLPROPERTIES ('a' = 'b') TBLPROPERTIES ('c' = 'd')",
    "CREATE TABLE other (a INT) USING delta TBLPROPERTIES ('a' = 'b', 'a' = 'c')",
    "CREATE TEMPORARY VIEW PARTITIONED BY (id) v AS SELECT * FROM listed",
    "CREATE TEMPORARY VIEW other TBLPROPERTIES ('a' = 'b') AS SELECT * FROM listed",
    "GENERATE symlink_format_manifest FOR TABLE listed MORE",
)


def test_no_part_of_a_statement_is_ignored(session: Any) -> None:
    for statement in IGNORED:
        with pytest.raises((TahoeError, PySparkException)):
            session.sql(statement).collect()
        assert operations(session) == ["WRITE", "CREATE TABLE"], statement
    with pytest.raises((InvalidRequest, Unsupported)) as raised:
        session.sql(IGNORED[0])
    assert raised.value.code == "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"


@pytest.mark.skipif(pyspark.__version__ < "4.3", reason="Spark has COMMENT ON COLUMN since 4.3")
def test_a_comment_on_a_column_is_in_the_log(session: Any) -> None:
    session.sql("COMMENT ON COLUMN listed.id IS 'key'")
    assert session.sql("DESCRIBE listed").first().comment == "key"
    session.sql("COMMENT ON COLUMN listed.id IS NULL")
    assert not session.sql("DESCRIBE listed").first().comment
    assert operations(session)[:2] == ["CHANGE COLUMN", "CHANGE COLUMN"]


def test_conditions_call_functions_of_sql(session: Any) -> None:
    session.sql("CREATE TEMPORARY FUNCTION successor(x INT) RETURNS INT RETURN x + 1")
    session.sql("DELETE FROM listed WHERE successor(id) = 2 AND day IS NOT NULL")
    session.sql("UPDATE listed SET id = successor(id) WHERE successor(id) = 4")
    assert sorted(row.id for row in session.table("listed").collect()) == [2, 4]
    session.sql("DROP TEMPORARY FUNCTION successor")


SCRIPTS = (
    "BEGIN INSERT INTO listed VALUES (9, NULL, NULL); SELECT 1; END",
    "BEGIN DECLARE n INT DEFAULT 0; SET n = (SELECT max(id) FROM listed); SELECT n; END",
    "BEGIN DELETE FROM listed; END",
)


def test_scripts_on_delta_tables_are_refused_over_connect(connect: Any) -> None:
    with remote():
        for spark in with_table(connect):
            for script in SCRIPTS:
                with pytest.raises(Unsupported, match="Run its statements one by one"):
                    spark.sql(script)
            assert operations(spark) == ["WRITE", "CREATE TABLE"]
            if pyspark.__version__ >= "4.1":  # which has scripts
                assert spark.sql("BEGIN SELECT 1; END").collect()[0][0] == 1


def test_tables_are_listed_with_their_type_and_comment(either_session: Any, tmp_path: Path) -> None:
    spark, comment = either_session, "it's \\ Type: X"
    for name in ("at_a_place", "at_home", "of_files"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE at_a_place USING delta LOCATION '{tmp_path}/delta' COMMENT \"it's \\\\ Type: X\" AS SELECT 1 AS id")
    spark.sql("CREATE TABLE at_home (id INT) USING delta")
    spark.sql(f"CREATE TABLE of_files (id INT) USING parquet LOCATION '{tmp_path}/files'")
    expected = {"at_a_place": (comment, "EXTERNAL"), "at_home": (None, "MANAGED"), "of_files": (None, "EXTERNAL")}
    tables = [*spark.catalog.listTables(), *map(spark.catalog.getTable, expected)]
    assert [table.name for table in tables if table.name in expected] == sorted(expected) + list(expected)
    for table in tables:
        assert (table.description, table.tableType) == expected.get(table.name, (table.description, table.tableType))
    path = spark.table("at_a_place").select("_metadata.file_path").first().file_path
    assert path.startswith(f"file:{tmp_path}/delta/part-")
    for name in expected:
        spark.sql(f"DROP TABLE {name}")
    assert (tmp_path / "delta" / "_delta_log").exists()
