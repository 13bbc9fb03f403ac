"""Delta's Java class in the view of the JVM, as MLflow and other Python libraries call it."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaPackage
from pyspark.sql import SparkSession

from tahoe.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.spark.entry_points import java_delta_table
from tahoe.spark.entry_points.java_delta_table import add_java_delta_table


def java_table(spark: SparkSession) -> Any:
    return spark._jvm.io.delta.tables.DeltaTable


def newest_version(table: Any) -> int:
    row = table.history(1).head()
    return row.get(row.fieldIndex("version"))


def test_the_version_of_a_table_is_read_by_path_and_by_name(spark, path):
    spark.sql(f"CREATE OR REPLACE TABLE of_java USING delta LOCATION '{path}' AS SELECT 1 AS id")
    spark.sql("INSERT INTO of_java VALUES (2)")
    session = spark._jsparkSession
    by_name = java_table(spark).forName(session, "`of_java`")
    assert newest_version(java_table(spark).forPath(session, path)) == 1
    assert newest_version(by_name) == 1
    assert by_name.history().count() == 2
    detail = by_name.detail().head()
    assert detail.get(detail.fieldIndex("name")) == "spark_catalog.default.of_java"
    spark.sql("DROP TABLE of_java")


def test_a_missing_table_and_another_method_raise_errors_that_name_them(spark, path):
    table = java_table(spark)
    with pytest.raises(NotFound, match="/table is not a Delta table"):
        table.forPath(spark._jsparkSession, path)
    with pytest.raises(InvalidRequest, match="not_there is not a Delta table"):
        table.forName(spark._jsparkSession, "not_there")
    with pytest.raises(Unsupported, match=r"DeltaTable\.convertToDelta is not supported"):
        table.convertToDelta(spark._jsparkSession, path)
    spark.range(1).write.format("delta").save(path)
    with pytest.raises(Unsupported, match=r"DeltaTable\.vacuum is not supported"):
        table.forPath(spark._jsparkSession, path).vacuum()


def test_a_session_without_delta_is_refused(spark, path):
    spark.range(1).write.format("delta").save(path)
    other = spark._jsparkSession.newSession()
    with pytest.raises(InvalidRequest, match="Delta is enabled"):
        java_table(spark).forPath(other, path)


def test_other_names_below_io_are_those_of_the_jvm(spark):
    add_java_delta_table(spark)
    view = spark._jvm
    assert isinstance(view.io.netty.buffer.ByteBuf, JavaClass)
    assert type(view.io.netty) is JavaPackage
    assert type(view.io.delta.sharing) is JavaPackage
    assert type(view.io.delta.tables.DeltaColumnBuilder) is JavaPackage
    assert isinstance(view.io, JavaPackage)


def test_the_class_of_the_jar_is_used_if_it_is_there(spark, monkeypatch):
    monkeypatch.setattr(java_delta_table, "_CLASS", "io.netty.buffer.ByteBuf")
    assert isinstance(spark._jvm.io.netty.buffer.ByteBuf, JavaClass)
