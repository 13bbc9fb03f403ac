"""`spark.sql` of a session with Delta on: queries that read tables by path, and the statements of Delta."""

from __future__ import annotations

from datetime import UTC

import pyspark
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import tahoe
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.tables import DeltaTable

FIVE = "SELECT id, concat('n', id) AS name FROM range(5)"


IS_OLDEST = pyspark.__version__.startswith("4.0")


@pytest.fixture(scope="module")
def path(spark, tmp_path_factory) -> str:
    """A table of three versions: five rows, three properties, one row more. Tests only read it."""
    actual = str(tmp_path_factory.mktemp("sql") / "it's a `table`")
    spark.sql(FIVE).coalesce(1).write.format("delta").save(actual)
    spark.sql(
        f"ALTER TABLE {named(actual)} SET TBLPROPERTIES ('delta.checkpointInterval' = 7, owner.team = 'flights', my.password = 'hidden')"
    )
    spark.sql("SELECT 5L AS id, 'five' AS name").coalesce(1).write.format("delta").mode("append").save(actual)
    return actual


def named(path: str) -> str:
    quoted = path.replace("`", "``")
    return f"delta.`{quoted}`"


def first(spark, text: str, *args, **values) -> tuple:
    return tuple(spark.sql(text, *args, **values).first())


def test_a_table_is_read_by_its_path_at_any_version(spark, path):
    t = named(path)
    actual = first(spark, f"DESCRIBE HISTORY {t} LIMIT 2")[1]  # of version 2; as PySpark gives it: in the zone of this process
    when = actual.astimezone(UTC).replace(tzinfo=None)
    # Beside an expression of a time, Spark 4.0 and 4.1 take a path in IDENTIFIER(…) for a format of files.
    by_expression = t if pyspark.__version__.startswith(("4.0", "4.1")) else "IDENTIFIER('{}')".format(t.replace("'", "''"))
    actual = first(
        spark,
        f"""
        SELECT (SELECT count(*) FROM {t}), (SELECT count(*) FROM {t} VERSION AS OF 0),
               (SELECT count(*) FROM {t} FOR SYSTEM_VERSION AS OF '1' AS x WHERE x.id > 1), -- FROM delta.`/nowhere`
               (SELECT count(*) FROM {t} TIMESTAMP AS OF CAST('{when}' AS TIMESTAMP) - INTERVAL 1 MICROSECOND t),
               (SELECT count(*) FROM {t} FOR SYSTEM_TIME AS OF '{when}'),
               (SELECT count(*) FROM {named(path + "@v1")}), (SELECT count(*) FROM {by_expression}),
               (SELECT max(_metadata.row_index) FROM {t} VERSION AS OF 2), 'FROM delta.`/nowhere`'
        """,
    )
    assert actual == (6, 5, 3, 5, 6, 5, 6, 4, "FROM delta.`/nowhere`")


def test_it_is_joined_with_views_other_formats_and_itself(spark, path, tmp_path):
    t = named(path)
    spark.range(3).selectExpr("id", "id * 10 AS ten").createOrReplaceTempView("tens")
    spark.range(6).write.parquet(str(tmp_path / "other"))
    actual = first(
        spark,
        f"""
        WITH few AS (SELECT * FROM {t} WHERE id < 3)
        SELECT sum(ten), count(*) FROM few JOIN tens USING (id) JOIN parquet.`{tmp_path / "other"}` p ON p.id = few.id, {t} AS u(k, v)
        WHERE u.k = few.id AND few.id IN (SELECT id FROM {t} VERSION AS OF 0)
        """,
    )
    assert actual == (30, 3)


def test_parameters_and_formatted_values_keep_their_meaning(spark, path):
    t = named(path)
    version = "0" if IS_OLDEST else ":v"  # Spark 4.0 takes no parameter there
    assert first(spark, f"SELECT name FROM {t} VERSION AS OF {version} WHERE id = :id", {"v": 0, "id": 4}) == ("n4",)
    assert first(spark, f"SELECT name FROM {t} WHERE id = ?", [5]) == ("five",)
    frame = spark.range(2)
    assert first(spark, f"SELECT count(*) FROM {t} JOIN {{frame}} f USING (id) WHERE id > {{least}}", frame=frame, least=0) == (
        1,
    )


def test_a_temporary_view_shows_the_newest_version_whenever_it_is_read(spark, tmp_path):
    spark.range(2).coalesce(1).write.format("delta").save(str(tmp_path / "t"))
    t = named(str(tmp_path / "t"))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW newest AS SELECT id + 1 AS next FROM {t}")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW oldest AS SELECT * FROM {t} VERSION AS OF 0")
    frame = spark.sql(f"SELECT * FROM {t}")
    spark.range(1).coalesce(1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    assert first(spark, "SELECT (SELECT count(*) FROM newest), (SELECT count(*) FROM oldest), sum(next) FROM newest") == (3, 2, 4)
    assert frame.count() == 3
    spark.sql(f"CREATE VIEW permanent AS SELECT * FROM {t} VERSION AS OF 0 UNION ALL SELECT * FROM {t}")
    try:
        assert spark.table("permanent").count() == 5
    finally:
        spark.sql("DROP VIEW permanent")


def test_other_formats_are_written_from_it(spark, path, tmp_path):
    out = tmp_path / "out"
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{out}' USING parquet SELECT id FROM {named(path)}")
    assert spark.read.parquet(str(out)).count() == 6
    spark.sql(f"CREATE TABLE made_from_delta USING parquet LOCATION '{tmp_path / 'ctas'}' AS SELECT * FROM {named(path)}")
    try:
        spark.sql(f"INSERT INTO made_from_delta TABLE {named(path)}")
        assert first(spark, "SELECT count(*), max(name) FROM made_from_delta") == (12, "n4")
    finally:
        spark.sql("DROP TABLE made_from_delta")


def test_all_references_of_a_statement_see_one_version(spark, tmp_path, monkeypatch):
    spark.range(9).coalesce(1).write.format("delta").save(str(tmp_path / "t"))
    t, asked = named(str(tmp_path / "t")), []
    real = tahoe.Table.snapshot

    def behind_our_back(table, *which):
        asked.append(table)
        if len(asked) % 2:
            tahoe.Table(tmp_path / "t").delete(f"id = {len(asked)}")
        return real(table, *which)

    with monkeypatch.context() as patched:
        patched.setattr(tahoe.Table, "snapshot", behind_our_back)
        left, other = first(spark, f"SELECT (SELECT count(*) FROM {t}), count(*) FROM {t} a JOIN {t} b USING (id)")
    assert left == other < 9
    assert len(asked) > 2


def test_tables_by_name_are_paths_for_spark_table_too(spark, plain, path):
    assert spark.table(named(path)).count() == 6
    assert spark.read.option("versionAsOf", 0).table(named(path)).count() == 5
    copy = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    assert first(copy, f"SELECT count(*) FROM {named(path)}") == (6,)
    assert first(tahoe.enable(spark.newSession()), f"SELECT count(*) FROM {named(path)}") == (6,)
    with pytest.raises(AnalysisException):
        spark.table("delta.nothing")


def test_a_session_in_which_delta_is_off_is_left_alone(plain, path):
    for text in (f"DESCRIBE DETAIL {named(path)}", f"DELETE FROM {named(path)}"):
        with pytest.raises((AnalysisException, ParseException)):
            plain.sql(text)


def test_errors_of_spark_speak_of_the_users_own_text(spark, path):
    t = named(path)
    with pytest.raises(AnalysisException) as unresolved:
        spark.sql(f"SELECT nope FROM {t} VERSION AS OF 1")
    assert "nope" in str(unresolved.value)
    with pytest.raises(ParseException) as syntax:
        spark.sql(f"SELECT * FROM {t} WHERE id = = 1")
    assert t in str(syntax.value)
    with pytest.raises(AnalysisException, match="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR"):
        spark.sql(f"SELECT * FROM {t} TIMESTAMP AS OF rand()")


def test_errors_of_delta_come_as_they_are(spark, path):
    t = named(path)
    with pytest.raises(NotFound, match="0 to 2"):
        spark.sql(f"SELECT * FROM {t} VERSION AS OF 9")
    with pytest.raises(NotFound, match="no version from 2001"):
        spark.sql(f"SELECT * FROM {t} TIMESTAMP AS OF DATE'2001-01-01'")
    with pytest.raises(NotFound, match=r"Path does not exist: file:///nowhere\. It is not a Delta table"):
        spark.sql("SELECT * FROM delta.`/nowhere`")
    with pytest.raises(InvalidRequest, match="must be a version"):
        spark.sql(f"SELECT * FROM {t} VERSION AS OF 'new'")
    with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"):
        spark.sql(f"ALTER TABLE {t} DROP FEATURE deletionVectors")


def test_a_feature_is_dropped(spark, tmp_path):
    path = str(tmp_path / "dropped")
    spark.range(6).write.format("delta").save(path)
    t = named(path)
    spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {t} WHERE id = 1")
    before = spark.sql(f"SELECT * FROM {t}").collect()
    with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"):
        spark.sql(f"ALTER TABLE {t} DROP FEATURE deletionVectors TRUNCATE HISTORY")
    spark.conf.set("spark.databricks.delta.tableFeatures.fastDropFeature.enabled", "false")
    try:
        with pytest.raises(InvalidRequest, match="DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"):
            spark.sql(f"ALTER TABLE {t} DROP FEATURE 'deletionVectors'")
    finally:
        spark.conf.unset("spark.databricks.delta.tableFeatures.fastDropFeature.enabled")
    assert spark.sql(f"ALTER TABLE {t} DROP FEATURE deletionVectors").collect() == []
    assert sorted(spark.sql(f"SELECT * FROM {t}").collect()) == sorted(before)
    assert spark.sql(f"DESCRIBE DETAIL {t}").first().tableFeatures == ["appendOnly", "checkpointProtection", "invariants"]
    DeltaTable.forPath(spark, path).addFeatureSupport("VacuumProtocolCheck")
    DeltaTable.forPath(spark, path).dropFeatureSupport("vacuumProtocolCheck")
    assert "vacuumProtocolCheck" not in spark.sql(f"DESCRIBE DETAIL {t}").first().tableFeatures


def test_descriptions_of_a_table(spark, path):
    t = named(path)
    detail = spark.sql(f"DESCRIBE DETAIL {t}").first()
    assert (detail["format"], detail["numFiles"], detail["properties"]["owner.team"]) == ("delta", 2, "flights")
    history = spark.sql(f"DESC HISTORY {t}").select("version", "operation").collect()
    assert [tuple(row) for row in history] == [(2, "WRITE"), (1, "SET TBLPROPERTIES"), (0, "WRITE")]
    shown = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {t}").collect()}
    assert shown["delta.checkpointInterval"] == "7" and shown["delta.minReaderVersion"] == "1"
    assert "redacted" in shown["my.password"]
    assert first(spark, f"SHOW TBLPROPERTIES {t} (owner.team)") == ("owner.team", "flights")
    assert "does not have property" in first(spark, f"SHOW TBLPROPERTIES {t} ('nope')")[1]
    assert [tuple(row)[:2] for row in spark.sql(f"DESCRIBE {t}").collect()] == [("id", "bigint"), ("name", "string")]


def test_rows_and_properties_are_changed_by_statements(spark, tmp_path):
    spark.sql(FIVE).coalesce(1).write.format("delta").save(str(tmp_path / "t"))
    t, table = named(str(tmp_path / "t")), tahoe.Table(tmp_path / "t")
    assert first(spark, f"DELETE FROM {t} AS x WHERE x.id = :id", {"id": 1}) == (1,)
    assert first(
        spark, f"UPDATE {t} x SET x.name = concat(x.name, 'WHERE, SET'), id = 10 - id WHERE id > {{least}}", least=2
    ) == (2,)
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])[-1] == {"id": 7, "name": "n3WHERE, SET"}
    spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES (delta.appendOnly = true, comment = 'mine', k 1)")
    assert table.snapshot().metadata.configuration == {"delta.appendOnly": "true", "k": "1"}
    assert table.snapshot().metadata.description == "mine"
    spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS (delta.appendOnly, nope)")
    spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES (nope)")  # no error, as with the reference
    with pytest.raises(ParseException, match="LOCATION clause"):
        spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('location' = '1')")
    with pytest.raises(InvalidRequest, match="DELTA_CANNOT_MODIFY_TABLE_PROPERTY"):
        spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.maxColumnId' = '1')")
    spark.sql(f"ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 100)")
    spark.sql(f"ALTER TABLE {t} DROP CONSTRAINT small")
    assert [row["operation"] for row in table.history(5)] == [
        "DROP CONSTRAINT",
        "ADD CONSTRAINT",
        "UNSET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "SET TBLPROPERTIES",
    ]
    assert table.history(4)[3]["operationParameters"] == {"properties": '["delta.appendOnly","nope"]', "ifExists": "true"}


def test_a_timestamp_in_the_condition_of_reorg_is_in_the_time_zone_of_the_session(spark, tmp_path):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.sql("SELECT id, TIMESTAMP '2026-01-01 00:00:00' AS at FROM range(4)").coalesce(1)
        rows.write.format("delta").partitionBy("at").option("delta.enableDeletionVectors", "true").save(str(tmp_path / "t"))
        t = named(str(tmp_path / "t"))
        spark.sql(f"DELETE FROM {t} WHERE id = 0")
        (row,) = spark.sql(f"REORG TABLE {t} WHERE at = '2026-01-01 00:00:00' APPLY (PURGE)").collect()
        assert (row.metrics.numFilesRemoved, row.metrics.totalConsideredFiles) == (1, 1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_table_is_upgraded_to_uniform_and_synchronised(spark, tmp_path):
    frame = spark.sql("SELECT id, array(id, null) AS list, map('k', id) AS m, timestamp_seconds(id) AS at FROM range(4)")
    frame.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(tmp_path / "t"))
    t, table = named(str(tmp_path / "t")), tahoe.Table(tmp_path / "t")
    spark.sql(f"DELETE FROM {t} WHERE id = 0")
    (row,) = spark.sql(f"REORG TABLE {t} APPLY (PURGE)").collect()
    done, (new,) = row.metrics, table.files()["size"].to_pylist()
    assert (row.path, done.numFilesAdded, done.numFilesRemoved, done.totalConsideredFiles) == (f"file:{tmp_path / 't'}", 1, 1, 1)
    assert tuple(done.filesAdded) == (new, new, float(new), 1, new)
    assert tuple(done.deletionVectorStats) == (1, 1)
    assert (done.zOrderStats, done.clusteringStats, done.numTableColumns) == (None, None, 4)
    (row,) = spark.sql(f"REORG TABLE {t} APPLY (PURGE)").collect()
    assert (row.metrics.numFilesRemoved, row.metrics.filesRemoved["min"], row.metrics.deletionVectorStats) == (0, None, None)
    assert table.files()["deletionVector"].null_count == table.files().num_rows
    spark.sql(f"REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
    spark.sql(f"MSCK REPAIR TABLE {t} SYNC METADATA")
    status = table.uniform.status()
    assert (status.enabled, status.lag_versions, status.last_error) == (True, 0, None)
    assert sorted(row["id"] for row in spark.sql(f"SELECT * FROM {t}").collect()) == [1, 2, 3]
