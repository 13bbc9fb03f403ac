"""Statements that Spark parses and that Delta tables do not support: each is rejected by name, as in delta-spark.

Spark would apply some of them to only the catalog's entry, without the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.statement_types import SparkStatement
from tahoe.spark.statements.targets import target_of

_NOT_ALLOWED, _NOT_SUPPORTED = "DELTA_OPERATION_NOT_ALLOWED", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
_NO_PARTITIONS = "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"
_NOT_OF_TABLES = "UNSUPPORTED_FEATURE.TABLE_OPERATION"
_PARTITIONS = "The partitions of a Delta table are those of its rows: write rows, or DELETE them."
_SERDE = "The data of a Delta table is Parquet as its log says; use SET TBLPROPERTIES for properties."
_WORDS: Mapping[str, tuple[str, str, str]] = {
    "AddPartitions": ("ALTER TABLE ADD PARTITION", _NO_PARTITIONS, _PARTITIONS),
    "DropPartitions": ("ALTER TABLE DROP PARTITION", _NO_PARTITIONS, _PARTITIONS),
    "RenamePartitions": ("ALTER TABLE RENAME PARTITION", _NO_PARTITIONS, "UPDATE the rows' partition columns."),
    "RecoverPartitions": (
        "ALTER TABLE RECOVER PARTITIONS",
        _NOT_SUPPORTED,
        "The log knows all partitions; there is nothing to recover.",
    ),
    "RepairTable": (
        "MSCK REPAIR TABLE",
        _NOT_SUPPORTED,
        "The log knows all partitions. For Iceberg metadata write MSCK REPAIR TABLE … SYNC METADATA.",
    ),
    "SetTableSerDeProperties": ("ALTER TABLE SET SERDEPROPERTIES", _NOT_SUPPORTED, _SERDE),
    "AlterTableCollation": ("ALTER TABLE DEFAULT COLLATION", _NOT_ALLOWED, "Give collations in queries."),
    "AnalyzeTable": ("ANALYZE TABLE", _NOT_SUPPORTED, "Statistics are collected with each write and stored in the log."),
    "AnalyzeColumn": ("ANALYZE TABLE", _NOT_SUPPORTED, "Statistics are collected with each write and stored in the log."),
    "CreateIndex": ("CREATE INDEX", _NOT_ALLOWED, "Cluster the table by the column instead: ALTER TABLE … CLUSTER BY (…)."),
    "DropIndex": ("DROP INDEX", _NOT_ALLOWED, "A Delta table has no indexes."),
    "LoadData": ("LOAD DATA", _NOT_SUPPORTED, "Read the files and INSERT their rows, so that the log knows them."),
    "ShowTablePartition": ("SHOW TABLE EXTENDED … PARTITION", _NO_PARTITIONS, "Use SHOW PARTITIONS."),
    "DescribeTablePartition": ("DESCRIBE TABLE PARTITION", _NOT_ALLOWED, "Use SHOW PARTITIONS, or DESCRIBE without PARTITION."),
    "TruncatePartition": (
        "TRUNCATE TABLE PARTITION",
        "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
        "TRUNCATE TABLE on Delta tables does not support partition predicates; use DELETE to delete specific partitions or rows.",
    ),
    "AddConstraint": (
        "ALTER TABLE ADD CONSTRAINT … PRIMARY KEY, UNIQUE or FOREIGN KEY",
        _NOT_OF_TABLES,
        "Only CHECK constraints are supported: ALTER TABLE … ADD CONSTRAINT name CHECK (condition).",
    ),
}


def rejection(node: str, table: str) -> InvalidRequest:
    """Return the error for a statement.

    Args:
        node: Spark's node for it.
        table: the name of the Delta table.
    """
    words, code, remedy = _WORDS[node]
    return InvalidRequest(
        f"Operation not allowed: `{words}` is not supported for Delta tables: {table}. {remedy}",
        code=code,
        operation=words,
        table=table,
    )


def rejection_of(words: str, table: str) -> InvalidRequest | None:
    """Return the error for a statement by its words; None if they are those of no rejected statement."""
    node = next((node for node, (rejected, _, _) in _WORDS.items() if rejected == words), None)
    return None if node is None else rejection(node, table)


def directory_rejection() -> Unsupported:
    """Return the error for ``INSERT OVERWRITE DIRECTORY … USING delta``: files without a commit would not be a table."""
    return Unsupported(
        "INSERT OVERWRITE DIRECTORY writes files, and cannot write a Delta table. Use INSERT OVERWRITE delta.`/path`, or CREATE OR REPLACE "
        "TABLE delta.`/path` AS SELECT.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )


def _reject(node: str, _: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.child())
    if target is None:
        return None
    raise rejection(node, str(target.named.name))


REJECTED_STATEMENTS = tuple(SparkStatement(words, node, None, partial(_reject, node)) for node, (words, _, _) in _WORDS.items())
