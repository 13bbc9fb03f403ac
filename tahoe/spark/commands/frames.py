"""The history and the details of a table, as DataFrames and as rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tahoe.api.table import Table
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.storage import hadoop_path


def history_frame(spark: SparkSession, table: Table, limit: int | None = None) -> DataFrame:
    """Return the commits in the table's log, newest first (`HISTORY`).

    Args:
        limit: the maximum number of commits.
    """
    return local_frame(spark, history_rows(table, limit), HISTORY)


def detail_frame(spark: SparkSession, table: Table, name: str | None = None) -> DataFrame:
    """Return one row about the newest version (`DETAIL`).

    Args:
        name: the table's name in the session's catalog.
    """
    return local_frame(spark, detail_rows(table, name), DETAIL)


def history_rows(table: Table, limit: int | None = None) -> list[tuple[object, ...]]:
    """Return the rows of `history_frame`."""
    return [tuple(_plain(commit[column.name], column.dataType) for column in HISTORY) for commit in table.history(limit)]


def detail_rows(table: Table, name: str | None = None) -> list[tuple[object, ...]]:
    """Return the row of `detail_frame`; the location is formatted as a Hadoop path."""
    detail = table.detail()
    detail |= {"location": hadoop_path(detail["location"]), "name": name or detail["name"]}
    return [tuple(_plain(detail[column.name], column.dataType) for column in DETAIL)]


def detail_rows_of_folder(path: str) -> list[tuple[object, ...]]:
    """Return the row of `detail_frame` for a folder without a Delta table, as delta-spark has it: only the location is known."""
    return detail_rows_of_fields({"location": path, "properties": {}})


def detail_rows_of_fields(fields: Mapping[str, object]) -> list[tuple[object, ...]]:
    """Return the row of `detail_frame` with these fields; the others are null."""
    return [tuple(fields.get(column.name) for column in DETAIL)]


def text_columns(*names: str) -> StructType:
    """Return a schema of string columns."""
    return StructType([StructField(name, StringType()) for name in names])


HISTORY = StructType(
    [
        StructField("version", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("userId", StringType()),
        StructField("userName", StringType()),
        StructField("operation", StringType()),
        StructField("operationParameters", MapType(StringType(), StringType())),
        StructField("job", text_columns("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")),
        StructField("notebook", text_columns("notebookId")),
        StructField("clusterId", StringType()),
        StructField("readVersion", LongType()),
        StructField("isolationLevel", StringType()),
        StructField("isBlindAppend", BooleanType()),
        StructField("operationMetrics", MapType(StringType(), StringType())),
        StructField("userMetadata", StringType()),
        StructField("engineInfo", StringType()),
    ]
)
"""The columns of `DeltaTable.history`."""

DETAIL = StructType(
    [
        StructField("format", StringType()),
        StructField("id", StringType()),
        StructField("name", StringType()),
        StructField("description", StringType()),
        StructField("location", StringType()),
        StructField("createdAt", TimestampType()),
        StructField("lastModified", TimestampType()),
        StructField("partitionColumns", ArrayType(StringType())),
        StructField("clusteringColumns", ArrayType(StringType())),
        StructField("numFiles", LongType()),
        StructField("sizeInBytes", LongType()),
        StructField("properties", MapType(StringType(), StringType())),
        StructField("minReaderVersion", IntegerType()),
        StructField("minWriterVersion", IntegerType()),
        StructField("tableFeatures", ArrayType(StringType())),
    ]
)
"""The columns of `DeltaTable.detail`."""


def _plain(value: object, data_type: DataType) -> object:
    """Return a value of commitInfo, which is free-form JSON, converted to the column's type."""
    if value is None:
        return None
    match data_type:
        case StringType():
            return str(value)
        case LongType() | IntegerType():
            return int(value) if isinstance(value, (int, str)) and str(value).lstrip("-").isdecimal() else None
        case BooleanType():
            return value if isinstance(value, bool) else None
        case StructType():
            fields = value if isinstance(value, dict) else {}
            return tuple(_plain(fields.get(column.name), column.dataType) for column in data_type)
    return value
