"""The catalog of a Spark Connect server without Tahoe: views over Delta tables, cached queries, and the columns of tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.tables import DeltaTable
from tests.spark.connect_server import connected, remote


@pytest.fixture
def session(connect: Any) -> Iterator[Any]:
    """A session with the table `t (id, name)`."""
    with remote():
        connect.sql("CREATE DATABASE views")
        connect.sql("USE views")
        connect.sql("CREATE TABLE t (id INT, name STRING) USING delta")
        connect.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield connect
        connect.sql("USE default")
        connect.sql("DROP DATABASE views CASCADE")


def rows(session: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(text).collect())


def test_a_permanent_view_reads_the_newest_rows(session: Any) -> None:
    session.sql(
        "CREATE VIEW v (key COMMENT 'the key', label) COMMENT 'rows AS SELECT' AS SELECT id, name || '{}' AS n FROM t WHERE id > 1"
    )
    session.sql("INSERT INTO t VALUES (3, 'c')")
    assert rows(session, "SELECT * FROM v") == [(2, "b{}"), (3, "c{}")]
    assert rows(session, "SELECT x.key, v.label FROM v x JOIN views.v ON x.key = v.key") == [(2, "b{}"), (3, "c{}")]
    assert session.table("v").columns == session.read.table("v").columns == ["key", "label"]
    assert rows(session, "DESCRIBE v") == [("key", "int", "the key"), ("label", "string", None)]


def test_a_view_finds_its_tables_in_the_database_of_its_creation(session: Any) -> None:
    session.sql("CREATE TABLE p USING parquet AS SELECT 2 AS id")
    session.sql("CREATE VIEW inner_view AS WITH c AS (SELECT * FROM t) SELECT c.id, name FROM c JOIN p ON c.id = p.id")
    session.sql("CREATE VIEW outer_view AS SELECT count(*) AS n FROM inner_view")
    session.sql("USE default")
    session.sql("CREATE TABLE t USING delta AS SELECT 7 AS id, 'other' AS name")
    try:
        assert rows(session, "SELECT * FROM views.inner_view") == [(2, "b")]
        assert rows(session, "SELECT * FROM views.outer_view") == [(1,)]
    finally:
        session.sql("DROP TABLE t")


def test_a_view_may_name_columns_that_the_table_got_later(session: Any) -> None:
    session.sql("CREATE VIEW star AS SELECT * FROM t")
    session.sql("CREATE VIEW following WITH SCHEMA EVOLUTION AS SELECT * FROM t")
    session.sql("ALTER TABLE t ADD COLUMNS (size DOUBLE)")
    session.sql("CREATE VIEW newer AS SELECT id, size FROM t")
    session.sql("INSERT INTO t VALUES (3, 'c', 0.5)")
    assert rows(session, "SELECT * FROM newer WHERE id > 2") == [(3, 0.5)]
    assert rows(session, "SELECT * FROM star WHERE id > 2") == [(3, "c")]
    assert rows(session, "SELECT * FROM following WHERE id > 2") == [(3, "c", 0.5)]
    session.sql("ALTER VIEW star AS SELECT size, size AS again FROM t")
    assert rows(session, "SELECT * FROM star WHERE size > 0") == [(0.5, 0.5)]


def test_a_view_casts_to_the_types_of_its_creation(session: Any) -> None:
    properties = "'delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name'"
    columns = "id INT, s STRUCT<a: INT, `b c`: ARRAY<DECIMAL(5, 2)>>, m MAP<STRING, DATE>"
    session.sql(f"CREATE TABLE w ({columns}) USING delta TBLPROPERTIES ({properties})")
    session.sql("CREATE VIEW v AS SELECT * FROM w")
    before = session.table("v").schema
    session.sql("ALTER TABLE w ALTER COLUMN id TYPE BIGINT")
    assert session.table("w").schema["id"].dataType.simpleString() == "bigint"
    assert session.table("v").schema == before


def test_a_permanent_view_is_the_source_of_a_merge_and_no_target(session: Any) -> None:
    session.sql("CREATE VIEW v AS SELECT id, upper(name) AS name FROM t")
    session.sql("MERGE INTO t USING v ON t.id = v.id AND v.id = 2 WHEN MATCHED THEN UPDATE SET *")
    assert rows(session, "SELECT * FROM t") == [(1, "a"), (2, "B")]
    for statement in ("DELETE FROM v", "UPDATE v SET id = 1", "MERGE INTO v USING t ON false WHEN MATCHED THEN DELETE"):
        with pytest.raises(InvalidRequest, match=r"v is a view of the catalog\. Name the table"):
            session.sql(statement)
    with pytest.raises(InvalidRequest, match=r"EXPECT_TABLE_NOT_VIEW.*'OPTIMIZE' expects a table but v is a view"):
        session.sql("OPTIMIZE v")
    with pytest.raises(AnalysisException, match="EXPECT_TABLE_NOT_VIEW"):
        session.sql("INSERT INTO v VALUES (1, 'x')")


def test_a_temporary_view_has_its_columns_and_comments(session: Any) -> None:
    session.sql("CREATE TEMPORARY VIEW tv (key COMMENT 'the key', label) AS SELECT * FROM t")
    try:
        assert rows(session, "DESCRIBE tv") == [("key", "int", "the key"), ("label", "string", None)]
        assert rows(session, "SELECT key FROM tv") == [(1,), (2,)]
        with pytest.raises(
            InvalidRequest, match=r"CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS.*lists 1 columns \(key\)"
        ):
            session.sql("CREATE OR REPLACE TEMPORARY VIEW tv (key) AS SELECT * FROM t")
        with pytest.raises(InvalidRequest, match=r"DELTA_CANNOT_RESOLVE_COLUMN.*column key of the temporary view tv"):
            session.sql("DELETE FROM tv")
        session.sql("ALTER VIEW tv AS SELECT id FROM t")
        assert rows(session, "SELECT * FROM tv") == [(1,), (2,)]
    finally:
        session.sql("DROP VIEW tv")


@pytest.fixture
def views(session: Any) -> Iterator[dict[str, str]]:
    """Temporary views of the rows of `t` with an odd key, by the way of their creation, with the names for queries."""
    frame = session.table("t").where("id % 2 = 1")
    frame.createTempView("of_frame")
    frame.createGlobalTempView("of_all")
    session.sql("CREATE TEMPORARY VIEW of_query AS SELECT * FROM t WHERE id % 2 = 1")
    session.sql("CREATE TEMPORARY VIEW of_view AS SELECT v.* FROM of_query v JOIN of_frame USING (id)")
    location = session.sql("DESCRIBE DETAIL t").first().location
    session.sql(f"CREATE TEMPORARY VIEW of_source USING delta OPTIONS (path '{location}')")
    yield {name: name for name in ("of_frame", "of_query", "of_view", "of_source")} | {"of_all": "global_temp.of_all"}
    for name in ("of_frame", "of_query", "of_view", "of_source", "global_temp.of_all"):
        session.sql(f"DROP VIEW IF EXISTS {name}")


def test_temporary_views_show_the_newest_rows(session: Any, views: dict[str, str]) -> None:
    session.sql("INSERT INTO t VALUES (3, 'c')")
    for name in views.values():
        assert rows(session, f"SELECT * FROM {name} WHERE id <> 2") == [(1, "a"), (3, "c")], name
        assert session.table(name).where("id = 3").count() == 1, name
    first, second = session.table("of_query"), session.table("of_query")
    assert first.join(second, first.id < second.id).select(first.id, second.name).collect() == [(1, "c")]
    assert session.table("of_query").select("of_query.id").count() == 2
    session.sql("MERGE INTO t USING of_query q ON t.id = q.id WHEN MATCHED THEN UPDATE SET name = q.name || '!'")
    assert rows(session, "SELECT name FROM of_frame") == [("a!",), ("c!",)]


def test_a_temporary_view_of_a_version_keeps_it(session: Any) -> None:
    session.sql("CREATE OR REPLACE TEMPORARY VIEW of_version AS SELECT * FROM t VERSION AS OF 1")
    session.sql("DELETE FROM t")
    assert rows(session, "SELECT * FROM of_version") == [(1, "a"), (2, "b")]
    session.sql("DROP VIEW of_version")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TEMPORARY VIEW of_query AS SELECT 5 AS id, 'x' AS name",
        "CREATE OR REPLACE TEMPORARY VIEW of_query AS SELECT id + 4 AS id, 'x' AS name FROM t WHERE id = 1",
        "ALTER VIEW of_query AS SELECT 5 AS id, 'x' AS name",
    ],
)
def test_a_replaced_temporary_view_shows_its_new_rows(session: Any, views: dict[str, str], statement: str) -> None:
    session.sql(statement)
    assert rows(session, "SELECT * FROM of_query") == [(5, "x")]
    assert rows(session, "SELECT * FROM of_view") == [(1, "a")]


def test_a_view_of_files_replaces_one_of_a_table(session: Any, views: dict[str, str], tmp_path: Path) -> None:
    session.range(3).select("id", sf.lit("x").alias("name")).write.json(str(tmp_path / "files"))
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_query USING json OPTIONS (path '{tmp_path}/files')")
    assert rows(session, "SELECT count(*) FROM of_query") == [(3,)]


def test_a_cached_temporary_view_keeps_the_rows_of_then(session: Any, views: dict[str, str]) -> None:
    session.sql("INSERT INTO t VALUES (3, 'c')")
    session.sql("CACHE TABLE of_query")
    session.catalog.cacheTable("global_temp.of_all")
    session.sql("INSERT INTO t VALUES (5, 'e')")
    for name in ("of_query", "global_temp.of_all"):
        assert rows(session, f"SELECT id FROM {name}") == [(1,), (3,)]
        assert "InMemoryRelation" in session.table(name)._explain_string()
    session.catalog.clearCache()


@pytest.mark.parametrize("method", ["newSession", "cloneSession"])
def test_a_session_of_a_session_has_delta_enabled(session: Any, views: dict[str, str], method: str) -> None:
    if not hasattr(type(session), method):
        pytest.skip(f"this PySpark has no {method} in Spark Connect")
    another = getattr(session, method)()
    session.sql("INSERT INTO t VALUES (3, 'c')")
    assert rows(another, "SELECT id FROM views.t") == [(1,), (2,), (3,)]
    assert rows(another, "DELETE FROM views.t WHERE id = 1") == [(1,)]
    if method == "cloneSession":
        assert rows(another, "SELECT id FROM of_query") == rows(session, "SELECT id FROM of_query") == [(3,)]
    another.client.close()


def test_a_session_beside_the_active_one_changes_tables_by_itself(session: Any) -> None:
    """PySpark's `localCheckpoint` and parser of types use the active session of the process."""
    another = connected(f"sc://{session.client._builder.endpoint}")
    assert type(session).active() is not another
    another.sql("USE views")
    another.sql("CREATE TABLE u (id INT, twice INT GENERATED ALWAYS AS (id * 2)) USING delta CLUSTER BY (id)")
    source = another.range(2, 4).selectExpr("CAST(id AS INT) AS id", "'new' AS name")
    DeltaTable.forName(another, "t").alias("t").merge(
        source.alias("s"), "t.id = s.id"
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    another.sql("MERGE INTO u USING t ON u.id = t.id WHEN NOT MATCHED AND t.id > 1 THEN INSERT (id) VALUES (t.id)")
    other_rows = another.sql("SELECT 9 AS id, 'a' AS name")
    other_rows.write.format("delta").mode("overwrite").option("replaceUsing", "name").saveAsTable("t")
    assert rows(session, "SELECT * FROM t") == rows(another, "SELECT * FROM t") == [(2, "new"), (3, "new"), (9, "a")]
    assert rows(session, "SELECT * FROM u") == [(2, 4), (3, 6)]
    DeltaTable.create(another).tableName("c").addColumn("x", "ARRAY<INT>").execute()
    another.stop()
    assert session.table("c").dtypes == [("x", "array<int>")]
    session.sql("UPDATE u SET id = 5 WHERE id = 2")
    assert rows(session, "SELECT max(twice) FROM u") == [(10,)]


def test_a_table_with_its_database_is_found_beside_a_temporary_view(session: Any) -> None:
    session.sql("CREATE TEMPORARY VIEW t AS SELECT 'temporary' AS which")
    try:
        assert rows(session, "SELECT * FROM t") == [("temporary",)]
        session.sql("DELETE FROM views.t WHERE id = 1")
        assert rows(session, "SELECT * FROM views.t") == [(2, "b")]
    finally:
        session.sql("DROP VIEW t")


@pytest.mark.parametrize("source", ["t VERSION AS OF 1", "delta.`/tmp/t`", "table_changes('t', 0)"])
def test_a_permanent_view_refuses_rows_that_the_catalog_does_not_know(session: Any, source: str) -> None:
    with pytest.raises(Unsupported, match="in the permanent view v is not supported in a session of Spark Connect"):
        session.sql(f"CREATE VIEW v AS SELECT * FROM {source}")


def test_the_comment_of_a_table_is_not_taken_for_its_format(session: Any) -> None:
    session.sql("CREATE TABLE p (id INT) USING parquet COMMENT 'x\nProvider: delta\nLocation: /elsewhere'")
    session.sql("INSERT INTO p VALUES (5)")
    assert rows(session, "SELECT * FROM p") == [(5,)]
    session.sql("CREATE VIEW v AS SELECT 'x\nType: MANAGED\nProvider: delta\nLocation: /elsewhere' AS text")
    assert len(rows(session, "SELECT * FROM v")) == 1


def test_a_query_is_cached_under_a_new_name_and_a_table_is_not(session: Any) -> None:
    session.sql("CACHE TABLE cached OPTIONS ('storageLevel' = 'MEMORY_ONLY') AS SELECT id + 1 AS id FROM t")
    try:
        assert rows(session, "SELECT * FROM cached") == [(2,), (3,)]
        assert "InMemoryRelation" in session.table("cached")._explain_string()
    finally:
        session.sql("UNCACHE TABLE cached")
        session.sql("DROP VIEW cached")
    with pytest.raises(Unsupported, match=r"CACHE TABLE of t is not supported.*CACHE TABLE a_new_name AS SELECT \* FROM t"):
        session.sql("CACHE TABLE t")
    with pytest.raises(InvalidRequest, match="'nowhere' is no storage level"):
        session.sql("CACHE TABLE cached OPTIONS ('storageLevel' = 'nowhere') AS SELECT * FROM t")


def test_a_table_is_sampled_and_read_with_options(session: Any) -> None:
    assert (
        rows(session, "TABLE t")
        == rows(session, "SELECT * FROM t TABLESAMPLE (100 PERCENT) WHERE t.id > 0")
        == [(1, "a"), (2, "b")]
    )
    assert rows(session, "SELECT x.id FROM t TABLESAMPLE (0 ROWS) x") == []
    session.sql("DELETE FROM t WHERE id = 1")
    assert rows(session, "SELECT t.id FROM t WITH ('versionAsOf' = '1')") == [(1,), (2,)]
    assert rows(session, "(SELECT id, name FROM t) UNION ALL TABLE t") == [(2, "b"), (2, "b")]


@pytest.mark.parametrize(
    "write",
    [
        "INSERT INTO p SELECT * FROM t",
        "INSERT INTO p TABLE t",
        "WITH w AS (SELECT * FROM t WHERE name <> '{id}') INSERT OVERWRITE TABLE p SELECT * FROM w",
        "CREATE TABLE q USING parquet COMMENT 'of {t}' AS SELECT * FROM t",
        "CREATE TABLE q USING csv TABLE t",
    ],
)
def test_rows_of_a_table_are_written_to_another_format(session: Any, write: str) -> None:
    session.sql("CREATE TABLE p (id INT, name STRING) USING parquet")
    session.sql(write)
    assert rows(session, f"SELECT * FROM {'q' if write.startswith('CREATE') else 'p'}") == [(1, "a"), (2, "b")]


def test_all_parts_of_an_insert_into_several_tables_read_the_same_version(session: Any) -> None:
    session.sql("CREATE TABLE p (id INT, name STRING) USING parquet")
    session.sql(
        "FROM t INSERT INTO t SELECT id + 10, name WHERE id = 1 INSERT INTO p SELECT * INSERT INTO t SELECT id + 20, name"
    )
    assert rows(session, "SELECT * FROM p") == [(1, "a"), (2, "b")]
    assert [key for key, _ in rows(session, "SELECT * FROM t")] == [1, 2, 11, 21, 22]
    session.sql("CREATE TABLE q LIKE p USING parquet")
    session.sql("FROM t AS x INSERT OVERWRITE p SELECT x.* WHERE id > 20 INSERT INTO q SELECT id, '{x}' WHERE id = 11")
    assert rows(session, "SELECT id FROM p UNION ALL SELECT id FROM q") == [(11,), (21,), (22,)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH t AS (SELECT * FROM t WHERE id = 1) SELECT * FROM t", [(1, "a")]),
        ("WITH t (a, b) AS (SELECT 7, 'x') SELECT t.a FROM t", [(7,)]),
        (
            "WITH t (a, b) AS (SELECT id + 1, name FROM t), u AS (SELECT max(a) AS a FROM t) SELECT t.b FROM t JOIN u USING (a)",
            [("b",)],
        ),
        ("SELECT t.name FROM (WITH t AS (SELECT 2 AS id) SELECT * FROM t) x JOIN t USING (id)", [("b",)]),
        ("SELECT name FROM (TABLE t) x WHERE id IN (FROM t |> AGGREGATE max(id))", [("b",)]),
    ],
)
def test_a_common_table_expression_may_have_the_name_of_a_table(session: Any, text: str, expected: list[object]) -> None:
    assert rows(session, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TABLE t |> WHERE t.id = 1 |> SELECT t.name", [("a",)]),
        ("SELECT * FROM (TABLE views.t |> JOIN VALUES (2) AS v(n) ON t.id = v.n |> SELECT t.*) x", [(2, "b")]),
        ("WITH t (a) AS (SELECT 7) TABLE t |> WHERE t.a = 7", [(7,)]),
    ],
)
def test_pipe_operators_name_the_table_after_table(session: Any, text: str, expected: list[object]) -> None:
    assert rows(session, text) == expected


def test_statements_have_frames_and_values_of_python(session: Any) -> None:
    frame = session.createDataFrame([(2, "z"), (3, "{c}")], "id INT, name STRING")
    merge = "MERGE INTO t USING {source} AS s ON t.id = s.id AND s.name <> {name} WHEN MATCHED THEN UPDATE SET * "
    session.sql(merge + "WHEN NOT MATCHED THEN INSERT *", source=frame, name="{x}")
    assert rows(session, "SELECT * FROM t") == [(1, "a"), (2, "z"), (3, "{c}")]
    session.sql("DELETE FROM t WHERE name = {name}", name="{c}")
    session.sql("INSERT INTO t SELECT id + {more}, '{{}}' FROM {source} WHERE {source[id]} = 3", source=frame, more=1)
    assert rows(session, "SELECT * FROM t JOIN (SELECT 4 AS id) USING (id)") == [(4, "{}")]
    query = session.sql(
        "SELECT t.*, '{{x}}' AS text FROM t LEFT ANTI JOIN {source} AS s USING (id) WHERE id > {least}", source=frame, least=1
    )
    assert query.collect() == [(4, "{}", "{x}")]
    assert session.sql("SELECT count(*) FROM {source} WHERE name = '{{c}}'", source=frame).collect() == [(1,)]
    with pytest.raises(KeyError, match="nowhere"):
        session.sql("DELETE FROM t WHERE name = {nowhere}", name="a")


@pytest.mark.parametrize("mode", ["", "FORMATTED", "extended"])
def test_a_query_is_explained_and_a_change_is_not(session: Any, mode: str) -> None:
    assert "BatchScan delta" in session.sql(f"EXPLAIN {mode} SELECT '{{}}' AS text, t.* FROM t ; -- all").first()[0]
    for change in ("DELETE FROM t", "WITH w AS (SELECT 1) INSERT INTO t SELECT 1, 'x'"):
        with pytest.raises(Unsupported, match="EXPLAIN of a change of the Delta table t is not supported"):
            session.sql(f"EXPLAIN {mode} {change}")
    with pytest.raises(AnalysisException, match="PARSE_SYNTAX_ERROR"):
        session.sql(f"EXPLAIN {mode} UPDATE t SET")


def test_a_version_that_a_part_of_a_statement_unsets_does_not_count_for_the_next_part(session: Any) -> None:
    settings = {"txnAppId": "app", "txnVersion": "1", "txnVersion.autoReset.enabled": "true"}
    for name, value in settings.items():
        session.conf.set(f"spark.databricks.delta.write.{name}", value)
    try:
        with pytest.raises(InvalidRequest, match="needs both txnAppId and txnVersion"):
            session.sql("FROM t INSERT INTO t SELECT id + 10, name INSERT INTO t SELECT id + 20, name")
    finally:
        for name in settings:
            session.conf.unset(f"spark.databricks.delta.write.{name}")
    assert [key for key, _ in rows(session, "SELECT * FROM t")] == [1, 2, 11, 12]


@pytest.mark.parametrize("clause", ["VERSION AS OF 0", "TIMESTAMP AS OF '2020-01-01'", "WITH ('versionAsOf' = '0')"])
def test_a_view_has_no_versions(session: Any, clause: str) -> None:
    session.sql("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(InvalidRequest, match="v is a view, which has no versions"):
        session.sql(f"SELECT * FROM v {clause}")


def test_columns_are_listed_as_in_a_classic_session(connect: Any, spark: Any) -> None:
    listed = []
    for session, context in ((spark, nullcontext()), (connect, remote())):
        with context:
            session.sql(
                "CREATE TABLE of_columns (id BIGINT NOT NULL COMMENT 'key', p INT, s VARCHAR(3)) USING delta PARTITIONED BY (p)"
            )
            try:
                session.sql("ALTER TABLE of_columns ADD COLUMNS (added STRUCT<a: INT, b: ARRAY<DECIMAL(5, 2)>>)")
                listed.append((session.catalog.listColumns("of_columns"), session.catalog.listColumns("default.of_columns")))
                if session is connect:
                    with pytest.raises(Unsupported, match="CACHE TABLE of of_columns is not supported"):
                        session.catalog.cacheTable("of_columns")
            finally:
                session.sql("DROP TABLE of_columns")
    assert listed[1] == listed[0]
    assert [column.name for column in listed[1][0]] == ["id", "p", "s", "added"]
