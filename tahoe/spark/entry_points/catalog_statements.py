"""`spark.catalog` on Delta tables, in all sessions: its methods that do the work of a statement of SQL, most of them new in PySpark 4.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.partition import hive_folder
from tahoe.spark.entry_points.wrapping import enabled_table, wrap_newer
from tahoe.spark.statements.rejected import rejection


def wrap_statements(catalog: type) -> None:
    """Replace the methods that a class of PySpark has: the catalog of classic sessions, or that of Spark Connect."""
    for name, run in _STATEMENTS.items():
        wrap_newer(catalog, name, _running(run))


def _running(run: Callable[..., object]) -> Callable[..., object]:
    def call(original: Callable[..., object], catalog: Any, tableName: str, *positional: Any, **named: Any) -> object:  # noqa: N803 - PySpark's
        spark = catalog._sparkSession
        table = enabled_table(spark, tableName)
        return (
            original(catalog, tableName, *positional, **named)
            if table is None
            else run(spark, str(table.name), *positional, **named)
        )

    return call


def _truncate(spark: Any, name: str) -> None:
    spark.sql(f"TRUNCATE TABLE {name}")


def _properties(spark: Any, name: str) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}


def _create_statement(spark: Any, name: str, asSerde: bool = False) -> str:  # noqa: N803 - PySpark's name
    return str(spark.sql(f"SHOW CREATE TABLE {name}{' AS SERDE' if asSerde else ''}").collect()[0][0])


def _partitions(spark: Any, name: str) -> list[Any]:
    """Return a ``TablePartition`` for each partition, with its name as Spark writes it: ``day=2026-01-31/hour=7``."""
    from pyspark.sql.catalog import TablePartition  # newer PySpark

    partitions = spark.sql(f"SHOW PARTITIONS {name}")
    texts = partitions.select(
        *(partitions[quote_identifier(column)].cast("string").alias(column) for column in partitions.columns)
    )
    return [TablePartition(hive_folder(partitions.columns, row.asDict())) for row in texts.collect()]


def _analyze(spark: Any, name: str, noScan: bool = False) -> None:  # noqa: N803 - PySpark's name
    raise rejection("AnalyzeTable", name)


def _recover(spark: Any, name: str) -> None:
    raise rejection("RecoverPartitions", name)


_STATEMENTS: dict[str, Callable[..., object]] = {
    "truncateTable": _truncate,
    "getTableProperties": _properties,
    "getCreateTableString": _create_statement,
    "listPartitions": _partitions,
    "analyzeTable": _analyze,
    "recoverPartitions": _recover,
}
