"""Statements that do and refuse the same in a classic session and over Spark Connect, found by running each in both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from tahoe.base.exceptions import TahoeError
from tahoe.tables import DeltaTable


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A session with a partitioned table `t` of two rows, and an empty table `u` with the same columns."""
    for name in ("t", "u", "made"):
        either_session.sql(f"DROP TABLE IF EXISTS {name}")  # of another module
    for name in ("t", "u"):
        either_session.sql(f"CREATE TABLE {name} (id INT, p STRING, v DOUBLE) USING delta PARTITIONED BY (p)")
    either_session.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
    yield either_session
    for name in ("t", "u", "made"):
        either_session.sql(f"DROP TABLE IF EXISTS {name}")


def rows(spark: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, spark.sql(query).collect()))


def code_of(spark: Any, statement: str) -> str:
    return code_with(spark, statement, None)


def code_with(spark: Any, statement: str, values: Any) -> str:
    with pytest.raises((TahoeError, PySparkException)) as raised:
        spark.sql(statement, args=values).collect()
    error = raised.value
    return error.code if isinstance(error, TahoeError) else str(error.getCondition())


def code_of_frame(frame: Any, column: str) -> str:
    with pytest.raises(PySparkException) as raised:
        frame.select(column).collect()
    return str(raised.value.getCondition())


class TestSeveralInserts:
    def test_they_write_a_table_that_they_read(self, session: Any) -> None:
        session.sql("FROM t INSERT INTO t SELECT id + 100, p, v INSERT INTO u SELECT id + 200, p, v")
        assert rows(session, "SELECT id FROM t") == [(1,), (2,), (101,), (102,)]
        assert rows(session, "SELECT id FROM u") == [(201,), (202,)]

    def test_all_read_the_rows_before_the_statement(self, session: Any) -> None:
        session.sql("FROM default.t AS s INSERT INTO t SELECT id + 100, p, v INSERT INTO t SELECT s.id + 200, p, v")
        assert rows(session, "SELECT id FROM t") == [(1,), (2,), (101,), (102,), (201,), (202,)]

    def test_a_named_query_may_have_the_name_of_the_table(self, session: Any) -> None:
        session.sql("WITH t AS (SELECT 7 AS id) FROM t INSERT INTO t SELECT id, 'x', 0 INSERT INTO u SELECT id, 'y', 0")
        assert rows(session, "SELECT id, p FROM t") == [(1, "a"), (2, "b"), (7, "x")]
        assert rows(session, "SELECT id, p FROM u") == [(7, "y")]


class TestInsert:
    def test_options_are_those_of_a_writer(self, session: Any) -> None:
        session.sql(
            "INSERT INTO t WITH ('mergeSchema' = 'true', 'userMetadata' = 'why') SELECT 3 AS id, 'a' AS p, 3 AS v, 9 AS w"
        )
        assert rows(session, "SELECT id, w FROM t WHERE w IS NOT NULL") == [(3, 9)]
        session.sql("INSERT OVERWRITE t WITH ('partitionOverwriteMode' = 'dynamic') SELECT 4 AS id, 'a' AS p, 4 AS v, 9 AS w")
        assert rows(session, "SELECT id FROM t") == [(2,), (4,)]
        assert session.sql("DESCRIBE HISTORY t").collect()[1].userMetadata == "why"

    def test_an_option_is_written_once(self, session: Any) -> None:
        for _ in range(2):
            session.sql("INSERT INTO t WITH ('txnAppId' = 'app', 'txnVersion' = '1') (id) VALUES (5)")
        assert rows(session, "SELECT count(*) FROM t WHERE id = 5") == [(1,)]

    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("INSERT INTO t PARTITION (p = 'c', p = 'd') VALUES (4, 4)", "DUPLICATE_KEY"),
            ("INSERT INTO t (id, nowhere) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
            ("INSERT WITH SCHEMA EVOLUTION INTO t (id, nowhere) VALUES (1, 2)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
            ("INSERT OVERWRITE t WITH (replaceUsing = 'id') VALUES (4, 'd', 4)", "DELTA_OPERATION_NOT_ALLOWED"),
            ("INSERT OVERWRITE DIRECTORY '{folder}/d' USING delta SELECT * FROM t", "DELTA_OPERATION_NOT_ALLOWED"),
            ("INSERT INTO delta.`{folder}/nothing` VALUES (1)", "PATH_NOT_FOUND"),
        ],
    )
    def test_what_is_refused_changes_nothing(self, session: Any, tmp_path: Path, statement: str, code: str) -> None:
        if "WITH SCHEMA EVOLUTION" in statement and session.version < "4.2":
            pytest.skip("Spark has the words since 4.2")
        assert code_of(session, statement.replace("{folder}", str(tmp_path))) == code
        assert rows(session, "SELECT * FROM t") == [(1, "a", 1.0), (2, "b", 2.0)]
        assert not list(tmp_path.iterdir())


class TestTimeTravel:
    def test_a_subquery_over_a_delta_table_is_a_time(self, session: Any) -> None:
        if "connect" not in type(session).__module__ and session.version < "4.2":
            pytest.skip("Spark's analyzer has no relation for the table of the subquery before 4.2")
        session.sql("CREATE TABLE made (at TIMESTAMP) USING delta")
        first = session.sql("DESCRIBE HISTORY t").collect()[-1].timestamp
        session.createDataFrame([(first,)], "at TIMESTAMP").write.format("delta").mode("append").saveAsTable("made")
        assert rows(session, "SELECT * FROM t TIMESTAMP AS OF (SELECT max(at) FROM made)") == []

    @pytest.mark.parametrize(
        ("clause", "code"),
        [
            ("TIMESTAMP AS OF NULL", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"),
            ("TIMESTAMP AS OF 'x'", "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"),
            ("TIMESTAMP AS OF 5", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
            ("VERSION AS OF -1", "PARSE_SYNTAX_ERROR"),
        ],
    )
    def test_errors_have_the_classes_of_the_analyzer(self, session: Any, clause: str, code: str) -> None:
        assert code_of(session, f"SELECT * FROM t {clause}") == code


class TestParameters:
    """Spark takes parameters in all places since 4.1; over Connect, the client does it for every version."""

    @pytest.fixture(autouse=True)
    def has_parameters(self, session: Any) -> None:
        if "connect" not in type(session).__module__ and session.version < "4.1":
            pytest.skip("Spark has no such parameters before 4.1")

    @pytest.mark.parametrize(
        ("query", "values", "expected"),
        [
            ("SELECT id FROM t VERSION AS OF :v WHERE id < :i", {"v": 1, "i": 2}, [(1,)]),
            ("SELECT id FROM t VERSION AS OF ?", [0], []),
            ("SELECT id FROM t TIMESTAMP AS OF CAST(:at AS TIMESTAMP)", {"at": "2100-01-01"}, None),
        ],
    )
    def test_of_a_query(self, session: Any, query: str, values: Any, expected: list[tuple[Any, ...]] | None) -> None:
        if expected is None:
            with pytest.raises((TahoeError, PySparkException), match="DELTA_TIMESTAMP_GREATER_THAN_COMMIT"):
                session.sql(query, args=values).collect()
        else:
            assert sorted(map(tuple, session.sql(query, args=values).collect())) == expected

    def test_of_statements_that_only_delta_has(self, session: Any) -> None:
        session.sql("RESTORE TABLE t TO VERSION AS OF :v", args={"v": 0})
        assert rows(session, "SELECT * FROM t") == []
        session.sql("OPTIMIZE t WHERE p = ?", args=["it's"])
        assert session.sql("DESCRIBE HISTORY t LIMIT :n", args={"n": 2}).count() == 2
        with pytest.raises(TahoeError, match=r"RETAIN|retention"):
            session.sql("VACUUM t RETAIN :hours HOURS", args={"hours": 0})
        assert code_with(session, "VACUUM t RETAIN :hours HOURS", {}) == "UNBOUND_SQL_PARAMETER"

    def test_of_definitions(self, session: Any) -> None:
        session.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = :x)", args={"x": "it's"})
        assert ("a", "it's") in rows(session, "SHOW TBLPROPERTIES t")
        session.sql("CREATE TABLE made USING delta COMMENT :c AS SELECT * FROM t VERSION AS OF :v", args={"c": "why", "v": 0})
        assert session.sql("DESCRIBE DETAIL made").first().description == "why"

    def test_a_column_of_a_constant_is_a_value(self, session: Any) -> None:
        session.sql("DELETE FROM t WHERE id = :i AND p = :p", args={"i": sf.lit(1), "p": sf.lit("a")})
        assert rows(session, "SELECT id FROM t") == [(2,)]


class TestCreateTable:
    def test_the_option_path_is_the_location(self, session: Any, tmp_path: Path) -> None:
        session.sql(f"CREATE TABLE made (id INT) USING delta OPTIONS (Path = '{tmp_path}/made')")
        assert (tmp_path / "made" / "_delta_log").is_dir()
        session.sql("INSERT INTO made VALUES (1)")
        assert rows(session, f"SELECT * FROM delta.`{tmp_path}/made`") == [(1,)]
        assert session.catalog.getTable("made").tableType == "EXTERNAL"

    @pytest.mark.parametrize(
        ("clause", "code"),
        [
            ("(a INT, d DATE) USING delta CLUSTERED BY (a) SORTED BY (d) INTO 4 BUCKETS", "DELTA_OPERATION_NOT_ALLOWED_DETAIL"),
            ("(a INT, d DATE) USING delta PARTITIONED BY (years(d))", "DELTA_OPERATION_NOT_ALLOWED"),
            ("LIKE u", ""),
        ],
    )
    def test_what_is_refused_makes_no_table(self, session: Any, clause: str, code: str) -> None:
        if clause == "LIKE u":
            assert code_of(session, "CREATE TABLE t LIKE u") == "DELTA_TABLE_ALREADY_EXISTS"
        else:
            assert code_of(session, f"CREATE TABLE made {clause}") == code
        assert not session.catalog.tableExists("made")

    def test_a_frame_is_not_partitioned_by_expressions(self, session: Any) -> None:
        with pytest.raises(TahoeError, match="Partitioning by expressions") as raised:
            session.table("t").writeTo("made").using("delta").partitionedBy(sf.partitioning.years("p")).create()
        assert raised.value.code == "DELTA_OPERATION_NOT_ALLOWED"
        session.table("t").writeTo("made").using("delta").partitionedBy("p", sf.col("id")).create()
        assert rows(session, "SHOW PARTITIONS made") == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (
            "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 'q')",
            "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        ),
        ("ALTER TABLE t DROP IF EXISTS PARTITION (p = 'a')", "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"),
        (
            "ALTER TABLE t PARTITION (p = 'a') RENAME TO PARTITION (p = 'b')",
            "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
        ),
        ("ALTER TABLE t RECOVER PARTITIONS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("ALTER TABLE t SET SERDEPROPERTIES ('a' = 'b')", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("DESCRIBE t PARTITION (p = 'a')", "DELTA_OPERATION_NOT_ALLOWED"),
        ("DESCRIBE t s.x", "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"),
        ("DESCRIBE t nowhere", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("MSCK REPAIR TABLE t", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ("MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "PARSE_SYNTAX_ERROR"),
        (
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
            "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        ),
        ("VACUUM delta.`{folder}/nothing`", "DELTA_MISSING_DELTA_TABLE"),
        ("TRUNCATE TABLE delta.`{folder}/nothing`", "DELTA_MISSING_DELTA_TABLE"),
        ("ALTER TABLE delta.`{folder}/nothing` ADD COLUMN x INT", "DELTA_MISSING_DELTA_TABLE"),
        ("DESCRIBE HISTORY delta.`{folder}/nothing`", "DELTA_TABLE_ONLY_OPERATION"),
        ("SELECT * FROM delta.`{folder}/nothing`", "PATH_NOT_FOUND"),
    ],
)
def test_a_statement_is_refused_with_the_error_class_of_delta_spark(
    session: Any, tmp_path: Path, statement: str, code: str
) -> None:
    assert code_of(session, statement.replace("{folder}", str(tmp_path))) == code


class TestNamesOfColumns:
    @pytest.mark.parametrize("name", ["t", "default.t", "spark_catalog.default.t"])
    def test_a_frame_has_the_name_of_its_table(self, session: Any, name: str) -> None:
        frame, other = session.table("t"), session.read.table("default.u")
        assert sorted(row.id for row in frame.select(f"{name}.id").collect()) == [1, 2]
        assert frame.select(f"{name}.*").columns == ["id", "p", "v"]
        assert frame.join(other, sf.col(f"{name}.id") == sf.col("u.id"), "left").where("u.id IS NULL").count() == 2
        assert code_of_frame(frame.alias("x"), f"{name}.id") == "UNRESOLVED_COLUMN.WITH_SUGGESTION"

    def test_a_frame_of_a_view_has_its_name(self, session: Any) -> None:
        session.table("t").createOrReplaceTempView("shown")
        assert session.table("shown").select("shown.id").count() == 2
        session.catalog.dropTempView("shown")

    def test_the_source_of_a_merge_has_the_name_of_its_table(self, session: Any) -> None:
        session.sql("INSERT INTO u VALUES (1, 'z', 5)")
        target = DeltaTable.forName(session, "t").alias("target")
        target.merge(session.table("u"), "target.id = u.id").whenMatchedUpdate(set={"v": "u.v"}).execute()
        assert rows(session, "SELECT id, v FROM t") == [(1, 5.0), (2, 2.0)]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT default.t.id FROM t", [(1,), (2,)]),
            ("SELECT DEFAULT.T.p, `default`.`t`.v FROM spark_catalog.default.t WHERE default.t.id = 1", [("a", 1.0)]),
            (
                "SELECT default.t.* FROM default.t LEFT JOIN u ON default.t.id = default.u.id WHERE u.id IS NULL",
                [(1, "a", 1.0), (2, "b", 2.0)],
            ),
            ("SELECT 'default.t.id' FROM t /* default.t.id */ WHERE id = 1", [("default.t.id",)]),
        ],
    )
    def test_columns_of_a_query_have_a_database(self, session: Any, query: str, expected: list[tuple[Any, ...]]) -> None:
        assert rows(session, query) == expected

    def test_an_alias_hides_the_database(self, session: Any) -> None:
        assert code_of(session, "SELECT default.t.id FROM t AS x") == "UNRESOLVED_COLUMN.WITH_SUGGESTION"

    def test_columns_of_statements_have_a_database(self, session: Any) -> None:
        session.sql("INSERT INTO u VALUES (1, 'z', 5), (3, 'z', 5)")
        session.sql(
            "MERGE INTO default.t USING default.u ON default.t.id = default.u.id WHEN MATCHED THEN UPDATE SET default.t.v = default.u.v "
            "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (default.u.id, default.u.p)"
        )
        session.sql("UPDATE default.t SET default.t.v = default.t.v + 1 WHERE default.t.id = 1")
        session.sql("DELETE FROM t WHERE default.t.id = 2")
        assert rows(session, "SELECT * FROM t") == [(1, "a", 6.0), (3, "z", None)]


def test_a_merge_calls_functions_of_sql(session: Any) -> None:
    session.sql("CREATE TEMPORARY FUNCTION next_of(x INT) RETURNS INT RETURN x + 1")
    session.sql("INSERT INTO u VALUES (0, 'z', 5), (8, 'z', 5)")
    result = session.sql(
        "MERGE INTO t USING u ON next_of(u.id) = t.id WHEN MATCHED AND next_of(next_of(t.id)) > 2 THEN UPDATE SET v = next_of(u.id) * 10 "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (next_of(u.id), u.p) "
        "WHEN NOT MATCHED BY SOURCE AND next_of(t.id) = 3 THEN DELETE"
    )
    assert tuple(result.first()) == (3, 1, 1, 1)
    assert rows(session, "SELECT * FROM t") == [(1, "a", 10.0), (9, "z", None)]
    session.sql("DROP TEMPORARY FUNCTION next_of")


def test_a_column_is_described_with_its_comment(session: Any) -> None:
    session.sql("ALTER TABLE t CHANGE COLUMN v v DOUBLE COMMENT 'the value'")
    for statement, comment in (
        ("DESCRIBE t V", "the value"),
        ("DESC EXTENDED default.t v", "the value"),
        ("DESCRIBE TABLE t p", "NULL"),
    ):
        assert {row.info_name: row.info_value for row in session.sql(statement).collect()}["comment"] == comment


def test_names_of_inserted_columns_are_case_sensitive_if_the_session_is(session: Any) -> None:
    session.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert code_of(session, "INSERT INTO t (ID) VALUES (5)") == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    finally:
        session.conf.unset("spark.sql.caseSensitive")
    session.sql("INSERT INTO t (ID) VALUES (5)")
    assert rows(session, "SELECT id FROM t") == [(1,), (2,), (5,)]


def test_a_frame_lists_its_files(session: Any, tmp_path: Path) -> None:
    session.sql("INSERT INTO t VALUES (3, 'a b', 3)")
    session.range(1).coalesce(1).write.parquet(f"{tmp_path}/plain")
    newest, first = session.table("t"), session.read.option("versionAsOf", 1).table("t")
    assert len(newest.inputFiles()) == 3
    assert set(first.inputFiles()) < set(newest.inputFiles())
    assert set(newest.alias("a").join(first.alias("b"), "id").inputFiles()) == set(newest.inputFiles())
    assert len(session.sql("SELECT id FROM t UNION ALL SELECT id FROM u").inputFiles()) == 3
    assert [url for url in newest.inputFiles() if not (url.startswith("file:///") and "/t/p=" in url)] == []
    assert any("/p=a%20b/" in url for url in newest.inputFiles())
    plain = session.read.parquet(f"{tmp_path}/plain")
    files = plain.union(newest.select("id")).inputFiles()
    assert len(files) == 4 and set(plain.inputFiles()) < set(files)
    assert session.range(3).inputFiles() == []


def test_a_persisted_frame_has_the_rows_that_its_session_writes(session: Any) -> None:
    newest, first = session.table("t").where("id < 10").cache(), session.read.option("versionAsOf", 1).table("t").cache()
    pairs = newest.alias("a").join(session.table("t").alias("b"), "id").select("id", "a.v")
    assert (newest.count(), first.count(), pairs.count()) == (2, 2, 2)
    for statement, expected in (
        ("INSERT INTO t VALUES (3, 'c', 3)", 3),
        ("INSERT INTO u VALUES (4, 'c', 3)", 3),
        ("DELETE FROM t WHERE id = 1", 2),
    ):
        session.sql(statement)
        assert (newest.count(), first.count(), pairs.count()) == (expected, 2, expected)
    assert newest.storageLevel.useMemory
    newest.unpersist()
    first.unpersist()
    assert not newest.storageLevel.useMemory
    assert newest.count() == 2


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("id = id", "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"),
        ("t.nowhere = s.id", "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"),
        ("t.id + s.id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("max(t.id) = s.id", "INVALID_WHERE_CONDITION"),
    ],
)
def test_a_condition_of_replace_on_is_refused_without_internal_columns(session: Any, condition: str, code: str) -> None:
    writer = session.table("t").alias("s").write.format("delta").mode("overwrite")
    with pytest.raises((TahoeError, PySparkException)) as raised:
        writer.option("replaceOn", condition).option("targetAlias", "t").saveAsTable("t")
    error = raised.value
    assert (error.code if isinstance(error, TahoeError) else str(error.getCondition())) == code
    assert "__tahoe" not in str(error).partition("JVM stacktrace")[0]


def test_clauses_of_merge_have_an_order(session: Any) -> None:
    merge = "MERGE INTO t USING u ON t.id = u.id"
    delete, insert = "WHEN MATCHED THEN DELETE", "WHEN NOT MATCHED THEN INSERT *"
    unmatched = "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    for clauses in ((insert, delete), (unmatched, insert), (unmatched, delete)):
        assert code_of(session, " ".join((merge, *clauses))) == "PARSE_SYNTAX_ERROR"
    assert rows(session, "SELECT id FROM t") == [(1,), (2,)]
    session.sql(" ".join((merge, delete, insert, unmatched)))
    assert rows(session, "SELECT id FROM t") == []


def test_rows_are_cast_if_the_columns_change(session: Any) -> None:
    for query in ("SELECT '3' AS id, 'c' AS p, 1.5D AS v, 7 AS w", "SELECT 4.9D AS id, 'c' AS p, '2.5' AS v, 8 AS x"):
        session.sql(query).write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable("t")
    assert rows(session, "SELECT * FROM t WHERE id > 2") == [(3, "c", 1.5, 7, None), (4, "c", 2.5, None, 8)]
    writer = session.sql("SELECT 'three' AS id, 'c' AS p").write.format("delta").mode("append").option("mergeSchema", "true")
    with pytest.raises((TahoeError, PySparkException), match="CAST_INVALID_INPUT"):
        writer.saveAsTable("t")


def test_a_late_range_of_the_feed_is_allowed_by_a_setting(session: Any, tmp_path: Path) -> None:
    setting = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
    session.sql("CREATE TABLE made (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    session.sql("INSERT INTO made VALUES (1)")
    assert code_of(session, "SELECT * FROM table_changes('made', 0, '2200-01-01')") == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    session.conf.set(setting, "true")
    try:
        assert rows(session, "SELECT id FROM table_changes('made', 0, '2200-01-01')") == [(1,)]
        assert rows(session, "SELECT id FROM table_changes('made', '2200-01-01')") == []
        assert rows(session, "SELECT id FROM table_changes('made', 2)") == []
        for start, version in ({"startingTimestamp": "2200-01-01"}, 2), ({"startingVersion": "3"}, 3):
            stream = session.readStream.format("delta").options(readChangeFeed="true", **start).table("made").select("id")
            writer = stream.writeStream.format("delta").option("checkpointLocation", f"{tmp_path}/{version}")
            copy = f"{tmp_path}/copy-{version}"
            for expected in ([], [(version,)]):
                assert writer.trigger(availableNow=True).start(copy).awaitTermination(120)
                assert rows(session, f"SELECT id FROM delta.`{copy}`") == expected
                if not expected:
                    session.sql(f"INSERT INTO made VALUES ({version})")
    finally:
        session.conf.unset(setting)


def test_all_commits_have_the_user_metadata_of_the_session(session: Any) -> None:
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    statements = (
        "INSERT INTO t VALUES (3, 'c', 3)",
        "UPDATE t SET v = 0 WHERE id = 1",
        "ALTER TABLE t ADD COLUMNS (n INT)",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)",
        "COMMENT ON TABLE t IS 'x'",
        "OPTIMIZE t ZORDER BY (id)",
        "VACUUM t",
        "TRUNCATE TABLE t",
        "RESTORE TABLE t TO VERSION AS OF 1",
    )
    session.conf.set(setting, "why")
    try:
        for statement in statements:
            session.sql(statement).collect()
        DeltaTable.forName(session, "t").upgradeTableProtocol(1, 3)
        session.sql("SELECT 4 AS id, 'd' AS p, 4D AS v").write.option("userMetadata", "own").insertInto("t")
    finally:
        session.conf.unset(setting)
    commits = session.sql("DESCRIBE HISTORY t").select("version", "userMetadata").collect()
    assert [row.userMetadata for row in commits] == ["own", *["why"] * (len(commits) - 3), None, None]
    assert len(commits) >= len(statements) + 3


def test_settings_of_properties_are_followed(session: Any) -> None:
    session.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    settings = {
        "spark.databricks.delta.columnMapping.allowRemoval": "false",
        "spark.databricks.delta.rowTracking.backfill.maxNumFiles": "1",
    }
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        for statement in (
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
            "UNSET TBLPROPERTIES ('delta.columnMapping.mode')",
        ):
            assert code_of(session, f"ALTER TABLE t {statement}") == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
        session.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    finally:
        for name in settings:
            session.conf.unset(name)
    operations = [row.operation for row in session.sql("DESCRIBE HISTORY t").collect()]
    assert operations.count("ROW TRACKING BACKFILL") == 1  # the last files get their ids with the property


def test_a_stream_casts_its_rows(session: Any, tmp_path: Path) -> None:
    session.sql("INSERT INTO u VALUES (7, '8', 9.7)")

    def write(checkpoint: str, *columns: str, **options: str) -> None:
        writer = session.readStream.table("u").selectExpr(*columns).writeStream.format("delta").options(**options)
        query = writer.option("checkpointLocation", f"{tmp_path}/{checkpoint}").trigger(availableNow=True).toTable("t")
        query.awaitTermination(60)
        if query.exception() is not None:
            raise query.exception()

    write("first", "v AS id", "id AS p", "p AS v")
    assert rows(session, "SELECT * FROM t WHERE id > 2") == [(9, "7", 8.0)]
    write("second", "CAST(id + 3 AS STRING) AS id", "p", "7 AS w", mergeSchema="true")
    assert rows(session, "SELECT * FROM t WHERE id > 9") == [(10, "8", None, 7)]
    with pytest.raises((TahoeError, PySparkException), match="CAST_INVALID_INPUT"):
        write("third", "'ten' AS id", "p")
    assert rows(session, "SELECT count(*) FROM t") == [(4,)]


@pytest.mark.parametrize("partitioned", [False, True])
def test_filters_find_floats_that_are_no_doubles(session: Any, partitioned: bool) -> None:
    session.sql(
        f"CREATE TABLE made (id INT, f FLOAT, s STRUCT<f: FLOAT>) USING delta {'PARTITIONED BY (f)' if partitioned else ''}"
    )
    for number, value in enumerate(("1.1F", "2.2F", "-0.3F")):  # each in a file of its own
        session.sql(f"INSERT INTO made VALUES ({number}, {value}, struct({value}))")
        for condition in ("f = {v}", "s.f = {v}", "f >= {v} AND f <= {v}", "f IN ({v}, 7F)", "NOT f <> {v}"):
            where = condition.format(v=value)
            assert rows(session, f"SELECT id FROM made WHERE {where}") == [(number,)], where
    assert rows(session, "SELECT id FROM made WHERE f IN (1.1F, 2.2F, 3F, 4F, 5F, 6F, 7F, 8F, 9F, 10F, 11F, 12F)") == [(0,), (1,)]
    assert rows(session, "SELECT id FROM made WHERE f = 1.1D") == []
    session.sql("UPDATE made SET id = 10 WHERE f = 1.1F")
    session.sql("DELETE FROM made WHERE f = 2.2F")
    session.sql("MERGE INTO made USING (SELECT -0.3F AS f) AS s ON made.f = s.f WHEN MATCHED THEN DELETE")
    assert rows(session, "SELECT id FROM made") == [(10,)]


def test_variables_behind_using_are_no_columns_of_the_statement(session: Any) -> None:
    spark = session
    spark.sql("CREATE TABLE made USING delta AS SELECT CAST(id AS INT) AS id, 'a' AS s, array(id) AS l FROM range(6)")
    for variable in (
        "id = 5",
        's = "it`s"',
        "l = array(3L)",
        "day = DATE'2024-02-29'",
        "x = 1.5D",
        "none = CAST(NULL AS INT)",
        "b = X'00FF'",
    ):
        spark.sql(f"DECLARE OR REPLACE VARIABLE {variable}")
    immediate = "EXECUTE IMMEDIATE 'SELECT {} FROM made' USING {}".format
    assert rows(spark, immediate("count(*) FILTER (WHERE id = :id)", "id")) == [(1,)]
    assert rows(spark, immediate("count(*) FILTER (WHERE l = :l)", "system.session.l")) == [(1,)]
    assert rows(spark, immediate("DISTINCT :day, :x, :none, :b", "day, x, none, b AS b")) == [
        (date(2024, 2, 29), 1.5, None, b"\0\xff")
    ]
    assert rows(spark, "EXECUTE IMMEDIATE 'UPDATE made SET s = ? WHERE id = ?' USING s, 3")[0][0] == 1
    assert rows(spark, "SELECT s FROM made WHERE id = 3") == [("it`s",)]
    assert rows(spark, "EXECUTE IMMEDIATE 'DELETE FROM made WHERE id = :value' USING id AS value")[0][0] == 1
    assert rows(spark, "SELECT count(*) FROM made") == [(5,)]
