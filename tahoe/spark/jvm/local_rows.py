"""Converts rows from Python to Spark: the results of statements, and small DataFrames.

    rows ─► JSON ─► Spark's reader of JSON, called as a function ─► Catalyst rows ─┬─► a local relation: a DataFrame
                                                                                 └─► rows for a SQL command

All of it happens in the driver. PySpark's `createDataFrame` makes an RDD of Python objects instead, and each query over it starts a job and
a Python worker: if that failed after a commit, a completed statement would look failed, and a retry would apply it twice.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import created
from tahoe.spark.versions.connect_frames import local_table, with_known_columns
from tahoe.txn.after_commit import logged_after_commit

Row = Sequence[Any]
_OF_ARROW = {LongType: pa.int64(), IntegerType: pa.int32(), StringType: pa.string(), BooleanType: pa.bool_()}
"""The types whose values PySpark's client and Arrow convert alike."""


def local_frame(spark: SparkSession, rows: Iterable[Row], columns: StructType) -> DataFrame:
    """Return a DataFrame of local rows. Showing or collecting it starts neither a job nor a Python worker.

    Args:
        spark: in Spark Connect the client sends the rows with the plan.
        rows: one value for each column, as PySpark's `createDataFrame` accepts it; a struct as a tuple or as a dictionary.
    """
    values = list(rows)
    if not is_classic(spark):
        return _sent_frame(spark, values, columns)
    jvm = Jvm.of(spark)
    java_type = jvm.data_type(columns.json())
    # Without rows, columns of every type work, even of types that JSON lacks.
    catalyst = _catalyst_rows(jvm, values, columns, java_type).toSeq(java_type) if values else jvm.seq()
    attributes = jvm.catalyst("types.DataTypeUtils").toAttributes(java_type)
    return jvm.frame(spark._jsparkSession, created(jvm, "plans.logical.LocalRelation", attributes, catalyst), spark)


def _sent_frame(spark: SparkSession, rows: Sequence[Row], columns: StructType) -> DataFrame:
    types = [_OF_ARROW.get(type(column.dataType)) for column in columns]
    if not rows or None in types:
        return with_known_columns(spark.createDataFrame(rows, columns), columns)
    values = [pa.array(of_column, data_type) for of_column, data_type in zip(zip(*rows, strict=True), types, strict=True)]
    return local_table(spark, pa.Table.from_arrays(values, columns.names), columns)


def scala_rows(jvm: Jvm, rows: Iterable[Row], columns: StructType) -> JavaObject:
    """Return a Scala ``Seq`` of ``Row``, the result of a Spark command. The arguments are those of `local_frame`."""
    values = list(rows)
    if not values:
        return jvm.seq()
    java_type = jvm.data_type(columns.json())
    catalyst = _catalyst_rows(jvm, values, columns, java_type)
    return jvm.catalyst("CatalystTypeConverters").convertToScala(catalyst, _array_of(jvm, java_type)).toSeq()


class Result:
    """The result of a statement that commits. Create it before the statement runs, and call `of` afterwards.

    Args:
        columns: the result's columns, or their DDL text.
    """

    def __init__(self, spark: SparkSession, columns: StructType | str) -> None:
        self._spark = spark
        self._columns = cast(StructType, DataType.fromDDL(columns)) if isinstance(columns, str) else columns
        self._empty = local_frame(spark, (), self._columns)

    def of(self, rows: Iterable[Row]) -> DataFrame:
        """Return the DataFrame. If the rows cannot be brought into the JVM, this is logged and the DataFrame is empty, as the commit
        succeeded.
        """
        with logged_after_commit("The statement is committed, but its result could not be made, and is empty"):
            return local_frame(self._spark, rows, self._columns)
        return self._empty


def _catalyst_rows(jvm: Jvm, rows: Sequence[Row], columns: StructType, java_type: JavaObject) -> JavaObject:
    """Return Catalyst's array of the rows.

    Args:
        java_type: `columns` in the JVM.
    """
    text = jvm.catalyst("expressions.Literal").create(json.dumps(_plain(rows, ArrayType(columns))), jvm.data_type('"string"'))
    # With an explicit format, so that a session with Spark 2's time parser reads the same time.
    options = jvm.map({"mode": "FAILFAST", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"})
    return created(jvm, "expressions.JsonToStructs", _array_of(jvm, java_type), options, text, jvm.option("UTC")).eval(None)


def _array_of(jvm: Jvm, java_type: JavaObject) -> JavaObject:
    return jvm.java_class("org.apache.spark.sql.types.ArrayType")(java_type, True)


def _plain(value: Any, data_type: DataType) -> Any:
    """Convert a value to JSON that Spark reads as the same value."""
    if value is None:
        return None
    match data_type:
        case StructType() if isinstance(value, dict):
            return {column.name: _plain(value.get(column.name), column.dataType) for column in data_type}
        case StructType():
            return {column.name: _plain(part, column.dataType) for column, part in zip(data_type, value, strict=True)}
        case ArrayType():
            return [_plain(element, data_type.elementType) for element in value]
        case MapType():
            return {str(key): _plain(part, data_type.valueType) for key, part in value.items()}
        case TimestampType():
            instant = value if value.tzinfo is not None else value.astimezone()
            # `strftime` writes the year 1 with one digit.
            return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case BinaryType():
            return b64encode(value).decode()
        case DateType() | TimestampNTZType() | DecimalType():
            return str(value).replace(" ", "T")
    return value
