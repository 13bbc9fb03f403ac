"""Definitions of tables that do and refuse the same in a classic session and over Spark Connect: without columns, as copies, elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from tahoe.tables import DeltaTable
from tests.spark.test_statements_alike import code_of, rows

NAMES = ("t", "u", "made", "moved")


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A session without the tables of `NAMES`."""
    for name in NAMES:
        either_session.sql(f"DROP TABLE IF EXISTS {name}")  # of another module
    yield either_session
    for name in NAMES:
        either_session.sql(f"DROP TABLE IF EXISTS {name}")


class TestTableWithoutColumns:
    @pytest.mark.parametrize("external", [False, True])
    def test_it_gets_the_columns_of_its_first_rows(self, session: Any, tmp_path: Path, external: bool) -> None:
        location = f"LOCATION '{tmp_path}/t'" if external else ""
        session.sql(f"CREATE TABLE t USING delta {location}")
        assert code_of(session, "SELECT * FROM t") == "DELTA_READ_TABLE_WITHOUT_COLUMNS"
        assert rows(session, "DESCRIBE t") == [] and session.table("t").columns == []
        session.createDataFrame([(1, "a")], "id INT, p STRING").write.option("mergeSchema", "true").mode("append").format(
            "delta"
        ).saveAsTable("t")
        assert rows(session, "SELECT * FROM t") == [(1, "a")]
        session.sql("INSERT INTO t VALUES (2, 'b')")
        assert rows(session, "SELECT p FROM t WHERE id = 2") == [("b",)]

    def test_its_first_columns_may_be_added(self, session: Any) -> None:
        session.sql("CREATE TABLE t USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')")
        session.sql("ALTER TABLE t ADD COLUMN id INT")
        session.sql("INSERT INTO t VALUES (1)")
        session.sql("CREATE VIEW made_view AS SELECT id + 1 AS next FROM t")
        try:
            assert rows(session, "SELECT * FROM made_view") == [(2,)]
        finally:
            session.sql("DROP VIEW made_view")
        assert code_of(session, "DELETE FROM t") == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class TestCopies:
    def test_a_clone_is_dropped_with_its_files(self, session: Any) -> None:
        session.sql("CREATE TABLE t (id INT, c CHAR(2)) USING delta")
        session.sql("INSERT INTO t VALUES (1, 'a')")
        for depth in ("SHALLOW", "DEEP", "SHALLOW"):
            session.sql(f"CREATE TABLE made {depth} CLONE t")
            assert rows(session, "SELECT * FROM made") == [(1, "a ")]
            session.sql("DROP TABLE made")
        assert code_of(session, "CREATE TABLE made SHALLOW CLONE t VERSION AS OF 9") == "DELTA_VERSION_NOT_FOUND"
        assert not session.catalog.tableExists("made")

    def test_a_parquet_table_is_cloned_and_described(self, session: Any) -> None:
        session.sql("CREATE TABLE t (id INT, p STRING) USING parquet PARTITIONED BY (p) COMMENT 'rows' TBLPROPERTIES ('k' = 'v')")
        session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b c'), (3, NULL)")
        session.sql("CREATE TABLE made SHALLOW CLONE t")
        assert rows(session, "SELECT id FROM made WHERE p = 'b c'") == [(2,)]
        (detail,) = session.sql("DESCRIBE DETAIL t").collect()
        assert (detail.format, detail.name, detail.description) == ("parquet", "spark_catalog.default.t", "rows")
        assert detail.partitionColumns == ["p"] and detail.properties["k"] == "v" and detail.numFiles is None
        assert detail.location.endswith("/t") and detail.createdAt is not None

    def test_a_parquet_table_elsewhere_is_converted(self, session: Any, tmp_path: Path) -> None:
        session.sql(
            f"CREATE TABLE t (id INT, p STRING) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t 1' COMMENT 'rows'"
        )
        session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b c'), (3, NULL)")
        assert code_of(session, "CONVERT TO DELTA t PARTITIONED BY (p INT)") == "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
        assert DeltaTable.convertToDelta(session, "t").toDF().count() == 3
        session.sql("UPDATE t SET id = 20 WHERE p = 'b c'")
        assert rows(session, "SELECT id FROM t WHERE p = 'b c'") == [(20,)]
        first = session.sql("DESCRIBE HISTORY t").collect()[-1]
        assert (first.operation, first.operationParameters["catalogTable"]) == ("CONVERT", "`spark_catalog`.`default`.`t`")
        session.sql("CONVERT TO DELTA t")  # does nothing
        assert rows(session, "SELECT count(*) FROM t") == [(3,)]

    def test_a_partition_outside_the_table_is_refused(self, session: Any, tmp_path: Path) -> None:
        session.sql(f"CREATE TABLE t (id INT, p STRING) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
        session.sql(f"ALTER TABLE t ADD PARTITION (p = 'q') LOCATION '{tmp_path}/elsewhere'")
        session.sql("INSERT INTO t VALUES (1, 'a'), (2, 'q')")
        for statement in ("CONVERT TO DELTA t", "CREATE TABLE made SHALLOW CLONE t"):
            assert code_of(session, statement) == "TAHOE_PATH_OUTSIDE_TABLE"
        assert rows(session, "SELECT id FROM t") == [(1,), (2,)] and not session.catalog.tableExists("made")


class TestLocation:
    def test_the_name_gets_another_table(self, session: Any, tmp_path: Path) -> None:
        session.sql("CREATE TABLE moved (id INT, p STRING) USING delta PARTITIONED BY (p)")
        session.sql(f"CREATE TABLE delta.`{tmp_path}/a b` (id INT, p STRING) USING delta PARTITIONED BY (p)")
        session.sql(f"CREATE TABLE delta.`{tmp_path}/c` (id INT) USING delta")
        session.sql(f"INSERT INTO delta.`{tmp_path}/a b` VALUES (9, 'z')")
        session.sql(f"ALTER TABLE moved SET LOCATION '{tmp_path}/a b'")
        session.sql("INSERT INTO moved VALUES (10, 'y')")
        assert (
            rows(session, f"SELECT * FROM delta.`{tmp_path}/a b`")
            == rows(session, "SELECT * FROM moved")
            == [(9, "z"), (10, "y")]
        )
        for location, code in (("c", "DELTA_SET_LOCATION_SCHEMA_MISMATCH"), ("none", "DELTA_MISSING_DELTA_TABLE")):
            assert code_of(session, f"ALTER TABLE moved SET LOCATION '{tmp_path}/{location}'") == code
        by_path = f"ALTER TABLE delta.`{tmp_path}/c` SET LOCATION '{tmp_path}/a b'"
        assert code_of(session, by_path) == "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER"
        assert rows(session, "SELECT id FROM moved") == [(9,), (10,)]


class TestSubqueriesInExpressions:
    @pytest.fixture(autouse=True)
    def tables(self, session: Any) -> None:
        for name, values in (("t", "(1, 'x'), (2, 'y')"), ("u", "(1, '{'), (5, 'y')")):
            session.sql(f"CREATE TABLE {name} (id INT, p STRING) USING delta")
            session.sql(f"INSERT INTO {name} VALUES {values}")

    @pytest.mark.parametrize(
        "condition",
        [
            "id IN (SELECT id FROM u WHERE p = '{')",
            "EXISTS (SELECT 1 FROM default.u WHERE u.id = t.id)",
            "id = (SELECT max(id) - 1 FROM t)",
            "id IN (SELECT id FROM u VERSION AS OF 1 AS o WHERE o.p = '{')",
        ],
    )
    def test_a_filter_reads_tables_by_name(self, session: Any, condition: str) -> None:
        assert [row.id for row in session.table("t").where(condition).collect()] == [1]

    def test_columns_and_frames_of_other_sources_read_them(self, session: Any, tmp_path: Path) -> None:
        frame = session.range(3).where("id IN (SELECT id FROM t)").withColumn("m", sf.expr("(SELECT max(id) FROM u)"))
        assert frame.columns == ["id", "m"]
        assert sorted(map(tuple, frame.collect())) == [(1, 5), (2, 5)]
        session.sql("UPDATE u SET id = 7 WHERE id = 5")
        again = session.range(3).where("id IN (SELECT id FROM t)").withColumn("m", sf.expr("(SELECT max(id) FROM u)"))
        assert sorted(map(tuple, again.collect())) == [(1, 7), (2, 7)]
        again.write.format("delta").save(f"{tmp_path}/made")
        again.createOrReplaceTempView("made_view")
        assert rows(session, "SELECT m FROM made_view") == [(7,), (7,)]
        session.catalog.dropTempView("made_view")
        assert [row.viewName for row in session.sql("SHOW VIEWS").collect() if row.viewName.startswith("tahoe")] == []

    def test_errors_are_those_of_the_subquery(self, session: Any) -> None:
        for condition, code in (
            ("id IN (SELECT id FROM nowhere)", "TABLE_OR_VIEW_NOT_FOUND"),
            ("id IN (SELECT missing FROM u)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ):
            with pytest.raises(AnalysisException) as raised:
                session.table("t").where(condition).collect()
            assert raised.value.getCondition() == code
