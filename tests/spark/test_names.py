"""Tables by name through PySpark's own methods, and the life of their entries: adoption, renaming, moving, dropping."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, SchemaMismatch, TahoeError, Unsupported
from tahoe.spark.entry_points.wrapping import is_enabled
from tahoe.tables import DeltaTable
from tests.spark.test_create import entry

DATABASE = "named"


@pytest.fixture(scope="module", autouse=True)
def database(spark) -> Iterator[None]:
    spark.sql(f"CREATE DATABASE {DATABASE}")
    yield
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture
def name(spark, request) -> Iterator[str]:
    actual = f"{DATABASE}.t{abs(hash(request.node.name))}"
    yield actual
    spark.sql(f"DROP TABLE IF EXISTS {actual}")


def six(spark: SparkSession) -> DataFrame:
    """Six rows, half of them of each partition."""
    return spark.range(6).withColumn("k", sf.col("id") % 2).coalesce(1)


def history(spark: SparkSession, name: str) -> tuple[str, dict[str, str], dict[str, str]]:
    row = DeltaTable.forName(spark, name).history(1).first()
    return row.operation, row.operationParameters, row.operationMetrics


def rows(spark: SparkSession, name: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=str)


class TestSaveAsTable:
    def test_it_creates_and_each_mode_does_as_it_says_of_a_table_that_is_there(self, spark, name):
        frame = six(spark)
        frame.write.format("delta").partitionBy("k").option("delta.appendOnly", "false").saveAsTable(name)
        operation, parameters, metrics = history(spark, name)
        assert (operation, parameters["partitionBy"], parameters["isManaged"], metrics["numOutputRows"]) == (
            "CREATE TABLE AS SELECT",
            '["k"]',
            "true",
            "6",
        )
        assert parameters["properties"] == '{"delta.appendOnly":"false"}'
        with pytest.raises(AnalysisException) as raised:
            frame.write.format("delta").saveAsTable(name)
        assert raised.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
        frame.write.format("delta").mode("ignore").saveAsTable(name)
        assert len(rows(spark, name)) == 6
        frame.write.mode("append").saveAsTable(name)  # whatever the default format
        assert history(spark, name)[0] == "WRITE"
        assert len(rows(spark, name)) == 12

    def test_an_overwrite_keeps_schema_and_properties_unless_it_is_asked_to_change_them(self, spark, name):
        six(spark).write.format("delta").partitionBy("k").option("delta.appendOnly", "false").saveAsTable(name)
        wider = six(spark).withColumn("z", sf.lit(1))
        with pytest.raises(SchemaMismatch):
            wider.write.format("delta").mode("overwrite").saveAsTable(name)
        with pytest.raises(InvalidRequest, match="partitioned by"):
            six(spark).write.format("delta").mode("overwrite").partitionBy("id").saveAsTable(name)
        six(spark).where("id < 2").write.format("delta").mode("overwrite").saveAsTable(name)
        operation, parameters, metrics = history(spark, name)
        assert (operation, parameters["isV1SaveAsTableOverwrite"]) == ("CREATE OR REPLACE TABLE AS SELECT", "true")
        assert (parameters["partitionBy"], parameters["properties"]) == ('["k"]', '{"delta.appendOnly":"false"}')
        assert (metrics["numOutputRows"], metrics["numRemovedFiles"]) == ("2", "2")
        wider.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(name)
        assert spark.table(name).columns == ["id", "k", "z"]
        assert history(spark, name)[1]["canOverwriteSchema"] == "true"

    def test_options_of_a_write_hold_by_name_too(self, spark, name, tmp_path):
        six(spark).write.format("delta").option("path", str(tmp_path / "t")).partitionBy("k").saveAsTable(name)
        assert entry(spark, name)["type"] == "EXTERNAL"
        assert Table(str(tmp_path / "t")).version() == 0
        six(spark).withColumn("z", sf.lit(1)).write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(name)
        only = spark.sql("SELECT 100L AS id, 1L AS k, 2 AS z")
        only.write.format("delta").mode("overwrite").option("replaceWhere", "k = 1").saveAsTable(name)
        assert (history(spark, name)[0], history(spark, name)[1]["predicate"]) == ("WRITE", "k = 1")
        only.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").saveAsTable(name)
        assert history(spark, name)[1]["isDynamicPartitionOverwrite"] == "true"
        assert [row for row in rows(spark, name) if row[1] == 1] == [(100, 1, 2)]
        assert len(rows(spark, name)) == 7

    def test_tables_of_other_formats_are_as_they_were(self, spark, name):
        six(spark).write.format("parquet").saveAsTable(name)
        assert entry(spark, name)["provider"] == "parquet"
        with pytest.raises(InvalidRequest) as raised:
            six(spark).write.format("delta").mode("overwrite").saveAsTable(name)
        assert raised.value.code == "DELTA_NOT_A_DELTA_TABLE"
        six(spark).write.mode("append").saveAsTable(name)
        assert len(rows(spark, name)) == 12

    def test_rows_are_inserted_by_position(self, spark, name):
        six(spark).write.format("delta").saveAsTable(name)
        six(spark).toDF("k", "id").write.insertInto(name)
        spark.sql("SELECT 7L AS a, 8L AS b").write.format("delta").insertInto(name)
        assert len(rows(spark, name)) == 13
        assert (7, 8) in rows(spark, name)
        spark.sql("SELECT 7L AS a, 8L AS b").write.insertInto(name, overwrite=True)
        assert rows(spark, name) == [(7, 8)]


class TestWriteTo:
    def test_a_table_is_created_replaced_and_written_to(self, spark, name):
        six(spark).writeTo(name).using("delta").partitionedBy(sf.col("k")).tableProperty("a", "b").create()
        operation, parameters, _ = history(spark, name)
        assert (operation, parameters["partitionBy"], parameters["properties"]) == (
            "CREATE TABLE AS SELECT",
            '["k"]',
            '{"a":"b"}',
        )
        with pytest.raises(AnalysisException) as raised:
            six(spark).writeTo(name).using("delta").create()
        assert raised.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
        six(spark).writeTo(name).append()
        six(spark).where("k = 0").writeTo(name).overwritePartitions()
        assert len(rows(spark, name)) == 9
        six(spark).where("k = 1").writeTo(name).overwrite(sf.col("k") == 1)
        assert len(rows(spark, name)) == 6
        six(spark).withColumn("z", sf.lit(1)).writeTo(name).option("mergeSchema", True).append()
        assert spark.table(name).columns == ["id", "k", "z"]
        spark.range(2).writeTo(name).using("delta").replace()
        assert (history(spark, name)[0], rows(spark, name)) == ("REPLACE TABLE AS SELECT", [(0,), (1,)])
        spark.range(1).writeTo(name).using("delta").createOrReplace()
        assert history(spark, name)[0] == "CREATE OR REPLACE TABLE AS SELECT"

    def test_impossible_names_are_refused(self, spark, name):
        with pytest.raises(AnalysisException, match="cannot be found"):
            spark.range(1).writeTo(name).using("delta").replace()
        with pytest.raises(AnalysisException, match="cannot be found"):
            spark.range(1).writeTo(name).append()
        with pytest.raises(Unsupported, match="years"):
            spark.sql("SELECT now() AS t").writeTo(name).using("delta").partitionedBy(sf.partitioning.years("t")).create()
        spark.range(1).writeTo(name).using("parquet").create()
        assert entry(spark, name)["provider"] == "parquet"


def test_builders_know_names_places_and_both(spark, name, tmp_path):
    def builder(made):
        return made.tableName(name).addColumn("a", "int", nullable=False, comment="foo").property("foo", "bar").comment("of a")

    with pytest.raises(AnalysisException, match="cannot be found"):
        builder(DeltaTable.replace(spark)).execute()
    made = builder(DeltaTable.create(spark)).location(str(tmp_path / "t")).execute()
    assert entry(spark, name)["type"] == "EXTERNAL"
    assert made.toDF().schema["a"].metadata == {"comment": "foo"}
    with pytest.raises(AnalysisException, match=f"{name.rpartition('.')[2]}.*already exists"):
        builder(DeltaTable.create(spark)).execute()
    assert DeltaTable.createIfNotExists(spark).tableName(name).addColumn("b", "int").execute().toDF().columns == ["a"]
    assert DeltaTable.createOrReplace(spark).tableName(name).addColumn("b", "int").execute().toDF().columns == ["b"]
    with pytest.raises(InvalidRequest) as raised:
        builder(DeltaTable.replace(spark)).location(str(tmp_path / "elsewhere")).execute()
    assert raised.value.code == "DELTA_TABLE_LOCATION_MISMATCH"
    assert DeltaTable.forName(spark, name).history().count() == 2


def test_the_catalog_of_a_session_makes_and_shows_tables(spark, name, tmp_path):
    made = spark.catalog.createTable(name, source="delta", schema=six(spark).schema, description="six")
    assert (made.columns, entry(spark, name)["type"], entry(spark, name)["comment"]) == (["id", "k"], "MANAGED", "six")
    assert [column.name for column in spark.catalog.listColumns(name)] == ["id", "k"]
    spark.catalog.refreshTable(name)
    six(spark).write.format("delta").save(str(tmp_path / "t"))
    other = f"{name}_other"
    assert spark.catalog.createTable(other, path=str(tmp_path / "t"), source="delta").count() == 6
    assert spark.catalog.tableExists(other)
    assert entry(spark, other)["type"] == "EXTERNAL"
    spark.sql(f"DROP TABLE {other}")
    assert Table(str(tmp_path / "t")).exists()


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory) -> str:
    actual = str(tmp_path_factory.mktemp("adopted") / "t")
    spark.sql(
        f"CREATE TABLE delta.`{actual}` (id BIGINT NOT NULL, k INT COMMENT 'c', g INT GENERATED ALWAYS AS (k + 1)) USING delta "
        "PARTITIONED BY (k) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'a' = 'b')"
    )
    return actual


class TestAdoption:
    """A table that is there gets a name."""

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'a' = 'b')",
            "(id BIGINT NOT NULL, k INT COMMENT 'c', g INT GENERATED ALWAYS AS (k + 1)) PARTITIONED BY (k)",
        ],
    )
    def test_nothing_or_the_true_value_is_accepted(self, spark, place, name, said):
        columns, clauses = (said, "") if said.startswith("(") else ("", said)
        columns, _, partitions = columns.partition(" PARTITIONED")
        partitions = f"PARTITIONED{partitions}" if partitions else ""
        spark.sql(f"CREATE TABLE {name} {columns} USING delta {partitions} {clauses} LOCATION '{place}'")
        assert spark.table(name).columns == ["id", "k", "g"]
        assert Table(place).version() == 0

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("(id BIGINT) USING delta", "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
            (
                "(id BIGINT, k INT COMMENT 'c', g INT GENERATED ALWAYS AS (k + 1)) USING delta PARTITIONED BY (k)",
                "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            ),
            (
                "(id BIGINT NOT NULL, k INT COMMENT 'c', g INT GENERATED ALWAYS AS (k + 2)) USING delta PARTITIONED BY (k)",
                "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            ),
            (
                "(id BIGINT NOT NULL, k INT COMMENT 'c', g INT GENERATED ALWAYS AS (k + 1)) USING delta",
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
            ),
            ("USING delta TBLPROPERTIES ('a' = 'c')", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"),
        ],
    )
    def test_false_definitions_are_refused(self, spark, place, name, text, code):
        with pytest.raises(TahoeError) as raised:
            spark.sql(f"CREATE TABLE {name} {text} LOCATION '{place}'")
        assert raised.value.code == code
        assert entry(spark, name) is None

    def test_a_folder_with_something_else_is_refused(self, spark, name, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        for text in ("(a INT) USING delta", "USING delta AS SELECT 1 AS a"):
            columns, _, rest = text.partition("USING delta")
            with pytest.raises(InvalidRequest) as raised:
                spark.sql(f"CREATE TABLE {name} {columns} USING delta LOCATION '{tmp_path}' {rest}")
            assert raised.value.code == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
        managed = (
            Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / f"{DATABASE}.db" / name.rpartition(".")[2]
        )
        managed.mkdir(parents=True)
        (managed / "notes.txt").write_text("mine")
        with pytest.raises(InvalidRequest) as raised:
            spark.sql(f"CREATE TABLE {name} (a INT) USING delta")
        assert raised.value.code == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
        (managed / "notes.txt").unlink()


def test_a_table_is_renamed_moved_and_dropped(spark, name, tmp_path):
    six(spark).write.format("delta").saveAsTable(name)
    managed = Path(DeltaTable.forName(spark, name)._table.url.removeprefix("file://"))
    spark.sql(f"ALTER TABLE {name} RENAME TO {name}_new")
    assert (spark.catalog.tableExists(name), len(rows(spark, f"{name}_new"))) == (False, 6)
    assert not managed.exists()
    six(spark).where("id < 2").write.format("delta").save(str(tmp_path / "two"))
    spark.sql(f"ALTER TABLE {name}_new RENAME TO {name}")
    spark.sql(f"ALTER TABLE {name} SET LOCATION '{tmp_path / 'two'}'")
    assert len(rows(spark, name)) == 2
    spark.range(1).write.format("delta").save(str(tmp_path / "narrow"))
    for text, code in (
        (f"ALTER TABLE {name} SET LOCATION '{tmp_path / 'narrow'}'", "DELTA_SET_LOCATION_SCHEMA_MISMATCH"),
        (f"ALTER TABLE {name} SET LOCATION '{tmp_path / 'nothing'}'", "DELTA_MISSING_DELTA_TABLE"),
        (f"ALTER TABLE {name} PARTITION (k = 1) SET LOCATION '{tmp_path}'", "DELTA_OPERATION_NOT_ALLOWED"),
        (f"ALTER TABLE delta.`{tmp_path / 'two'}` SET LOCATION '/x'", "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER"),
    ):
        with pytest.raises(TahoeError) as raised:
            spark.sql(text)
        assert raised.value.code == code
    assert len(rows(spark, name)) == 2


def test_a_dropped_managed_table_takes_its_files_along_and_its_name_starts_again(spark, name):
    six(spark).write.format("delta").saveAsTable(name)
    six(spark).write.format("delta").mode("append").saveAsTable(name)
    place = Path(DeltaTable.forName(spark, name)._table.url.removeprefix("file://"))
    spark.sql(f"DROP TABLE {name}")
    assert not place.exists()
    spark.sql(f"CREATE TABLE {name} (other STRING) USING delta")
    assert (DeltaTable.forName(spark, name)._table.version(), spark.table(name).columns) == (0, ["other"])


def test_names_that_spark_does_not_take_are_refused_before_anything_is_written(spark, tmp_path):
    for odd in ("a b", "a;b", "ümlaut", "a@b"):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(f"CREATE TABLE {DATABASE}.`{odd}` USING delta LOCATION '{tmp_path / 't'}' AS SELECT 1 AS a")
        assert raised.value.getCondition() == "INVALID_SCHEMA_OR_RELATION_NAME"
    assert not (tmp_path / "t").exists()
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.range(1).write.format("delta").option("path", str(tmp_path / "t")).saveAsTable("no_such_db.t")
    assert not (tmp_path / "t").exists()


def test_one_of_many_who_create_a_table_at_once_makes_it(spark, name):
    def create(number: int) -> bool:
        try:
            spark.sql(f"CREATE TABLE {name} USING delta AS SELECT {number} AS a")
        except (AnalysisException, DeltaConcurrentModificationException, InvalidRequest):
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(create, range(4)))
    assert made.count(True) == 1
    assert rows(spark, name) == [(made.index(True),)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (a INT) USING delta"), range(4)))


def test_a_table_is_made_like_another_one(spark, name, tmp_path):
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'key', k INT, g INT GENERATED ALWAYS AS (k + 1)) USING delta PARTITIONED BY (k) "
        "COMMENT 'first' TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.feature.vacuumProtocolCheck' = 'supported', 'a' = 'b')"
    )
    like = f"{name}_like"
    spark.sql(f"CREATE TABLE {like} LIKE {name} LOCATION '{tmp_path / 'like'}' TBLPROPERTIES ('a' = 'c')")
    first, second = (DeltaTable.forName(spark, item)._table.snapshot() for item in (name, like))
    assert spark.table(like).schema == spark.table(name).schema
    assert second.schema.field("g").metadata["delta.generationExpression"] == "k + 1"
    assert (second.partition_columns, second.metadata.description) == (("k",), "first")
    assert second.metadata.configuration == {**first.metadata.configuration, "a": "c"}
    assert second.protocol == first.protocol
    assert second.metadata.id != first.metadata.id
    assert second.schema.field("k").physical_name != first.schema.field("k").physical_name
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE TABLE {like} LIKE {name}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {like} LIKE {name}")
    with pytest.raises(Unsupported, match="no table of another format"):
        spark.sql(f"CREATE TABLE {name}_parquet LIKE {name} USING parquet")
    spark.sql(f"DROP TABLE {like}")
    six(spark).createOrReplaceTempView("six_rows")
    spark.sql(f"CREATE TABLE {like} LIKE six_rows USING delta")
    assert spark.table(like).columns == ["id", "k"]
    spark.sql(f"DROP TABLE {like}")


def test_a_version_may_stand_in_a_name_and_in_a_readers_options(spark, name):
    spark.sql(f"CREATE TABLE {name} USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS SELECT id FROM range(3)")
    spark.range(3, 5).write.format("delta").mode("append").saveAsTable(name)
    database, table = name.split(".")
    assert spark.table(f"{database}.`{table}@v0`").count() == 3
    assert spark.sql(f"SELECT count(*) FROM {database}.`{table}@v0` JOIN {name} USING (id)").first()[0] == 3
    assert spark.read.option("versionAsOf", 0).table(name).count() == 3
    changes = spark.read.option("readChangeFeed", "true").option("startingVersion", 1).table(name)
    assert sorted((row.id, row._change_type) for row in changes.collect()) == [(3, "insert"), (4, "insert")]
    assert DeltaTable.isDeltaTable(spark, DeltaTable.forName(spark, name)._table.url)


def test_two_sessions_have_their_own_database_and_one_name(spark, name):
    table = name.rpartition(".")[2]
    other = spark.newSession()
    assert is_enabled(other)
    other.sql(f"USE {DATABASE}")
    other.range(4).write.format("delta").saveAsTable(table)
    spark.range(1).write.format("delta").saveAsTable(table)  # in the database `default`
    try:
        assert (other.table(table).count(), spark.table(table).count(), spark.table(name).count()) == (4, 1, 4)
    finally:
        spark.sql(f"DROP TABLE {table}")


def test_where_delta_is_the_default_source_a_table_without_a_format_is_deltas(spark, name):
    session = spark.newSession()
    session.sql(f"CREATE TABLE {name} (a INT)")
    assert entry(session, name)["provider"] == "parquet"
    session.sql(f"DROP TABLE {name}")
    session.conf.set("spark.sql.sources.default", "delta")
    for make in (
        lambda: session.sql(f"CREATE TABLE {name} (a INT)"),
        lambda: session.sql(f"CREATE TABLE {name} AS SELECT 1 AS a"),
        lambda: session.range(1).write.saveAsTable(name),
        lambda: session.range(1).writeTo(name).create(),
        lambda: session.catalog.createTable(name, schema=session.range(1).schema),
    ):
        make()
        assert entry(session, name)["provider"] == "delta"
        session.sql(f"DROP TABLE {name}")


def test_pandas_on_spark_has_names_too(spark, name, monkeypatch):
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", "1")  # else it warns that it is not set
    import pyspark.pandas as ps

    spark.conf.set("spark.sql.ansi.enabled", "false")  # Spark 4.0's does not work with ANSI's rules
    try:
        ps.DataFrame({"a": [1, 2]}).to_table(name, format="delta", index_col="i")
        assert ps.read_table(name, index_col="i")["a"].sum() == 3
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
