"""DataFrames of Spark Connect whose columns the client knows, so that it need not ask the server, and that belong to their own session.

PySpark's `createDataFrame` reads settings of the server before it creates a DataFrame, and methods such as `mapInArrow` and `toArrow`
request the columns: each is a round to a distant server, and a request for columns carries the whole plan. `localCheckpoint` and
`DataType.fromDDL` use the active session of the process, which may be another one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

_BYTES_IN_A_PLAN = 500_000
"""The most bytes of rows within a plan. PySpark sends larger ones on their own, in pieces whose size is a setting of the server."""


def local_table(spark: SparkSession, rows: pa.Table, columns: StructType) -> DataFrame:
    """Return a DataFrame of these rows.

    Args:
        spark: a session of Spark Connect.
        rows: a table with one row at least, with the names of the columns.
    """
    if rows.nbytes > _BYTES_IN_A_PLAN:
        return with_known_columns(spark.createDataFrame(rows, columns), columns)
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import LocalRelation

    session: Any = spark
    return with_known_columns(ConnectFrame(LocalRelation(rows, schema=columns.json()), session), columns)


def with_known_columns(frame: DataFrame, columns: StructType) -> DataFrame:
    """Note the columns that a DataFrame has, and return it. Those of classic sessions stay as they are."""
    noted: Any = frame
    if "_cached_schema" in vars(frame):  # `hasattr` would ask a classic DataFrame for a column with this name
        noted._cached_schema = columns
    return frame


def checkpointed(frame: DataFrame) -> DataFrame:
    """Return the rows of a query as its session's server stores them (`DataFrame.localCheckpoint`)."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    stored: Any = frame.localCheckpoint()
    session: Any = frame.sparkSession
    stored._plan._spark_session = session  # it frees the rows there
    return ConnectFrame(stored._plan, session)


def alias_of(frame: DataFrame) -> str | None:
    """Return the alias of a DataFrame; None without one."""
    plan: Any = frame._plan
    return str(plan._alias) if any(kind.__name__ == "SubqueryAlias" for kind in type(plan).__mro__) else None


def parsed_type(spark: SparkSession, text: str) -> DataType:
    """Return the type in a text, or the columns of a table as a struct, as Spark's parser reads it. Raises PySpark's errors."""
    parser: Any = spark
    parsed: DataType = parser._parse_ddl(text)
    return parsed
