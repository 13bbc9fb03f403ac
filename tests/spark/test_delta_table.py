"""`tahoe.tables.DeltaTable` and its builder, as programs written for delta-spark use them."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeError
from tahoe.spark.commands.frames import DETAIL, HISTORY
from tahoe.tables import DeltaTable, IdentityGenerator


@pytest.fixture
def table(spark, path) -> DeltaTable:
    spark.range(3).selectExpr("id", "id % 2 p").write.format("delta").partitionBy("p").option(
        "delta.checkpointInterval", "5"
    ).save(path)
    spark.range(1).selectExpr("id", "0L p").write.format("delta").mode("append").option("userMetadata", "why").save(path)
    return DeltaTable.forPath(spark, path)


def test_to_df_is_the_newest_version_and_an_alias_names_it(spark, table, path):
    assert table.toDF().count() == 4
    spark.range(1).selectExpr("id", "0L p").write.format("delta").mode("append").save(path)
    assert table.toDF().count() == 5
    assert table.alias("t").toDF().where("t.id = 2").count() == 1


def test_history_has_the_references_columns_newest_first(table):
    history = table.history()
    assert history.schema == HISTORY
    rows = history.collect()
    assert [row.version for row in rows] == [1, 0]
    assert rows[0].operation == "WRITE"
    assert rows[0].operationParameters == {"mode": "Append", "partitionBy": "[]"}
    assert rows[0].operationMetrics["numOutputRows"] == "1"
    assert rows[0].userMetadata == "why"
    assert rows[0].isBlindAppend is True
    assert rows[0].readVersion == 0
    assert isinstance(rows[0].timestamp, datetime)
    assert table.history(1).count() == 1
    with pytest.raises(ValueError, match="limit needs to be an int"):
        table.history("1")  # type: ignore[arg-type]


def test_detail_has_the_references_columns(table, path):
    detail = table.detail()
    assert detail.schema == DETAIL
    row = detail.first()
    assert row.format == "delta"
    assert row.location == f"file:{path}"
    assert row.partitionColumns == ["p"]
    assert row.numFiles == Table(path).snapshot().num_files
    assert row.properties == {"delta.checkpointInterval": "5"}
    assert (row.minReaderVersion, row.minWriterVersion) == (1, 2)
    assert row.tableFeatures == ["appendOnly", "invariants"]


def test_tables_are_found_by_path_and_by_the_name_of_a_path(spark, table, path, tmp_path):
    assert DeltaTable.isDeltaTable(spark, path)
    assert DeltaTable.isDeltaTable(spark, f"delta.`{path}`")
    assert DeltaTable.isDeltaTable(spark, f"{path}/p=1")
    assert not DeltaTable.isDeltaTable(spark, f"{path}/_delta_log")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "nothing"))
    assert DeltaTable.forName(spark, f"delta.`{path}`").toDF().count() == 4
    with pytest.raises(NotFound):
        DeltaTable.forPath(spark, str(tmp_path / "nothing"))
    with pytest.raises(InvalidRequest, match="not a Delta table") as raised:
        DeltaTable.forName(spark, "db.table")
    assert raised.value.code == "DELTA_MISSING_DELTA_TABLE"


def test_a_builder_creates_a_table(spark, path):
    made = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "bigint", nullable=False, comment="the key")
        .addColumns([StructField("a", IntegerType())])
        .addColumn("p", LongType())
        .partitionedBy("p")
        .comment("made here")
        .property("delta.appendOnly", "true")
        .execute()
    )
    schema = made.toDF().schema
    assert schema.simpleString() == "struct<id:bigint,a:int,p:bigint>"
    assert (schema["id"].nullable, schema["id"].metadata) == (False, {"comment": "the key"})
    metadata = Table(path).snapshot().metadata
    assert (metadata.partition_columns, metadata.description, metadata.configuration) == (
        ("p",),
        "made here",
        {"delta.appendOnly": "true"},
    )
    first = made.history().first()
    assert first.operation == "CREATE TABLE"
    assert first.operationParameters["partitionBy"] == '["p"]'


def test_create_refuses_an_existing_table_and_create_if_not_exists_leaves_it(spark, table, path):
    with pytest.raises(InvalidRequest) as raised:
        DeltaTable.create(spark).location(path).addColumn("x", "int").execute()
    assert raised.value.code == "DELTA_TABLE_ALREADY_EXISTS"
    remaining = DeltaTable.createIfNotExists(spark).location(path).addColumn("x", "int").execute()
    assert remaining.toDF().columns == ["id", "p"]


def test_replace_needs_a_table_and_create_or_replace_does_not(spark, path):
    with pytest.raises(NotFound) as raised:
        DeltaTable.replace(spark).location(path).addColumn("x", "int").execute()
    assert raised.value.code == "DELTA_CANNOT_REPLACE_MISSING_TABLE"
    DeltaTable.createOrReplace(spark).location(path).addColumn("x", "int").execute()
    spark.sql("select 1 x").write.format("delta").mode("append").save(path)
    replaced = DeltaTable.replace(spark).tableName(f"delta.`{path}`").addColumn("y", "string").execute()
    assert replaced.toDF().columns == ["y"]
    assert replaced.toDF().count() == 0
    assert replaced.history().first().operation == "REPLACE TABLE"
    assert spark.read.format("delta").option("versionAsOf", 1).load(path).count() == 1


def test_without_a_session_the_active_one_is_taken(spark, path):
    assert DeltaTable.create().location(path).addColumn("x", "int").execute().toDF().columns == ["x"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda builder: builder.tableName(1), TypeError),
        (lambda builder: builder.tableName("no_such_db.name").addColumn("a", "int").execute(), AnalysisException),
        (lambda builder: builder.location(1), TypeError),
        (lambda builder: builder.comment(1), TypeError),
        (lambda builder: builder.addColumn(1, "int"), TypeError),
        (lambda builder: builder.addColumn("a", 1), TypeError),
        (lambda builder: builder.addColumn("a", "1"), ParseException),
        (lambda builder: builder.addColumn("a", "int", nullable=1), TypeError),
        (lambda builder: builder.addColumn("a", "int", comment=1), TypeError),
        (lambda builder: builder.addColumn("a", "int", generatedAlwaysAs=1), TypeError),
        (lambda builder: builder.addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(step=0)), ValueError),
        (lambda builder: builder.addColumn("a", "bigint", generatedByDefaultAs=""), TypeError),
        (
            lambda builder: builder.addColumn("a", "int", generatedAlwaysAs="", generatedByDefaultAs=IdentityGenerator()),
            ValueError,
        ),
        (lambda builder: builder.addColumns([1]), TypeError),
        (lambda builder: builder.addColumns(1), TypeError),
        (lambda builder: builder.partitionedBy(1), TypeError),
        (lambda builder: builder.partitionedBy([1]), TypeError),
        (lambda builder: builder.clusterBy(1), TypeError),
        (lambda builder: builder.clusterBy([1]), TypeError),
        (lambda builder: builder.property(1, "1"), TypeError),
        (lambda builder: builder.property("1", 1), TypeError),
        (lambda builder: builder.execute(), InvalidRequest),
        (lambda builder: builder.location("/tmp/x").addColumns(StructType([])).partitionedBy("a").execute(), InvalidRequest),
    ],
)
def test_a_builder_refuses_wrong_arguments(spark, call, error):
    with pytest.raises(error):
        call(DeltaTable.create(spark))


def test_a_protocol_is_raised_and_never_lowered(spark, table):
    table.upgradeTableProtocol(1, 3)
    table.upgradeTableProtocol(1, 2)
    actual = table.detail().first()
    assert (actual.minReaderVersion, actual.minWriterVersion) == (1, 3)
    table.addFeatureSupport("deletionVectors")
    actual = table.detail().first()
    assert (actual.minReaderVersion, actual.minWriterVersion) == (3, 7)
    assert actual.tableFeatures == ["appendOnly", "checkConstraints", "deletionVectors", "invariants"]
    with pytest.raises(InvalidRequest) as error:
        table.addFeatureSupport("abc")
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda table: table.upgradeTableProtocol("1", 3), "The readerVersion needs to be an integer but got '<class 'str'>'"),
        (lambda table: table.upgradeTableProtocol(1, []), "The writerVersion needs to be an integer"),
        (lambda table: table.addFeatureSupport(1), "featureName needs to be a string"),
        (lambda table: table.dropFeatureSupport("a", 1), "truncateHistory needs to be a boolean"),
        (lambda table: table.restoreToVersion("0"), "version needs to be an int but got '<class 'str'>'"),
        (lambda table: table.restoreToTimestamp(0), "timestamp needs to be a string"),
        (lambda table: table.clone(1), "target needs to be a string"),
        (lambda table: table.clone("a", properties={"k": 1}), "All property values including 1 needs to be a string"),
        (lambda table: table.cloneAtVersion(True, "a"), "version needs to be an int"),
        (lambda table: table.cloneAtTimestamp("2024-01-01", "a", isShallow=1), "isShallow needs to be a boolean"),
    ],
)
def test_arguments_of_another_type_are_refused_in_delta_sparks_words(table, call, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        call(table)
    assert isinstance(error.value, TahoeError) and error.value.code == "TAHOE_WRONG_ARGUMENT"


BEGINNINGS = {
    "delete": lambda table, rows: table.delete("id = 1 AND"),
    "update where": lambda table, rows: table.update("id = 1 OR", {"p": "0"}),
    "update to": lambda table, rows: table.update(set={"p": "0 MORE"}),
    "merge": lambda table, rows: table.alias("t").merge(rows, "t.id = s.id AND").whenMatchedDelete().execute(),
    "clause": lambda table, rows: table.alias("t").merge(rows, "t.id = s.id").whenMatchedDelete("s.id = 1 AS x").execute(),
    "value": lambda table, rows: table.alias("t").merge(rows, "t.id = s.id").whenMatchedUpdate(set={"p": "1 x"}).execute(),
}


@pytest.mark.parametrize("part", BEGINNINGS)
def test_the_last_word_of_an_expression_is_not_taken_for_an_alias(either_session, path, part):
    either_session.range(3).selectExpr("id", "id % 2 p").write.format("delta").save(path)
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        BEGINNINGS[part](DeltaTable.forPath(either_session, path), either_session.range(2).alias("s"))
    assert Table(path).snapshot().version == 0


@pytest.mark.parametrize("option", [{"replaceWhere": "id = 1 AND"}, {"replaceOn": "t.id = s.id MORE", "targetAlias": "t"}])
def test_options_that_replace_rows_have_no_alias(either_session, path, option):
    rows = either_session.range(3).alias("s")
    rows.write.format("delta").save(path)
    with pytest.raises(Exception, match=r"PARSE_SYNTAX_ERROR|is not a condition"):
        rows.write.format("delta").mode("overwrite").options(**option).save(path)
    assert Table(path).snapshot().version == 0


def test_columns_of_a_named_table_have_its_name_before_them(either_session):
    spark = either_session
    for name in ("named_target", "named_source"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} (id INT, v STRING) USING delta")
    spark.sql("INSERT INTO named_target VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql("INSERT INTO named_source VALUES (2, 'B')")
    target, source = DeltaTable.forName(spark, "named_target"), spark.table("named_source")
    assert target.toDF().where("named_target.id < 3 AND default.named_target.v > 'a'").count() == 1
    target.delete("default.named_target.id = 1")
    target.update("named_target.id = 3", {"named_target.v": "concat(spark_catalog.default.named_target.v, '!')"})
    target.merge(source, "named_target.id = named_source.id").whenMatchedUpdate(set={"v": "default.named_source.v"}).execute()
    assert sorted(map(tuple, target.toDF().collect())) == [(2, "B"), (3, "c!")]
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        target.alias("t").toDF().where("named_target.id = 1").count()
    for name in ("named_target", "named_source"):
        spark.sql(f"DROP TABLE {name}")
