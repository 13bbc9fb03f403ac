"""DataFrames of Spark Connect whose columns the client knows, so that it need not ask the server, and that belong to their own session.

PySpark's `createDataFrame` reads settings of the server before it creates a DataFrame, and methods such as `mapInArrow` and `toArrow`
request the columns: each is a round to a distant server, and a request for columns carries the whole plan. `localCheckpoint` and
`DataType.fromDDL` use the active session of the process, which may be another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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


def under_name(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return the rows under the name of their table, by which expressions qualify columns: ``t.id``, ``db.t.id``.

    Args:
        parts: of the name; PySpark's own `alias` takes only the last one.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    frame: Any = rows
    return ConnectFrame(_named_rows()(frame._plan, parts), frame.sparkSession)


def with_alias_of(rows: DataFrame, other: DataFrame) -> DataFrame:
    """Return the rows under the alias of another DataFrame, which has one."""
    plan: Any = other._plan
    return under_name(rows, (*getattr(plan, "qualifier", ()), plan._alias))


@cache
def _named_rows() -> Any:
    from pyspark.sql.connect.plan import SubqueryAlias

    class NamedRows(SubqueryAlias):
        """The plan of rows under a name with a qualifier, which PySpark's own aliases lack."""

        def __init__(self, child: Any, parts: Sequence[str]) -> None:
            super().__init__(child, parts[-1])
            self.qualifier = tuple(parts[:-1])

        def plan(self, session: Any) -> Any:
            """Return the message of the plan."""
            relation = super().plan(session)
            relation.subquery_alias.qualifier.extend(self.qualifier)
            return relation

    return NamedRows


def parsed_type(spark: SparkSession, text: str) -> DataType:
    """Return the type in a text, or the columns of a table as a struct, as Spark's parser reads it. Raises PySpark's errors."""
    parser: Any = spark
    parsed: DataType = parser._parse_ddl(text)
    return parsed
