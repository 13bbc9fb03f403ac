"""CREATE and REPLACE TABLE, with or without rows: one commit in the table's log. `tahoe.spark.commands.named` adds the catalog entry.

no table ─► CREATE TABLE [AS SELECT]        table ─► [CREATE OR] REPLACE TABLE [AS SELECT]: same table and history, other rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, NotFound
from tahoe.log.replay import add_files
from tahoe.ops.rows.insert import OverwriteActions, WriteOptions, already_written, write_operation
from tahoe.ops.tables.cluster_by import stage_clustering
from tahoe.ops.tables.create import create_operation, exists_already, new_metadata
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.schema.types import StructType
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.jvm.bridge import is_classic
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.scan.inputs import inputs_of
from tahoe.spark.write.enforce import enforced
from tahoe.spark.write.server_defaults import check_default_by_server
from tahoe.spark.write.server_rules import check_new_by_server
from tahoe.spark.write.stored_expressions import check_new_on_spark
from tahoe.spark.write.writer import FileOptions, write_files
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

_OPERATIONS = {
    "create": "CREATE TABLE",
    "createIfNotExists": "CREATE TABLE",
    "replace": "REPLACE TABLE",
    "createOrReplace": "CREATE OR REPLACE TABLE",
}


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """The definition of a new table.

    Args:
        cluster_by: columns, nested ones as ``a.b``; None if not specified.
        by_statement: whether a Spark statement defines it.
        is_managed: whether dropping its catalog entry deletes its files; for the history.
    """

    schema: StructType
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    is_managed: bool = False
    cluster_by: tuple[str, ...] | None = None
    by_statement: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a new table.

    Args:
        data: its column names and types define the table's.
        parameters: additional operation parameters for the history.
        app: application id and version of an idempotent write.
        write: writes the files; None for a classic session.
    """

    data: DataFrame
    files: FileOptions = field(default_factory=FileOptions)
    parameters: Mapping[str, object] = field(default_factory=dict)
    app: tuple[str, int] | None = None
    write: WriteRows | None = None


WriteRows: TypeAlias = Callable[[Transaction, Rows], list[AddFile]]


def create_table(
    target: CommandTarget,
    definition: TableDefinition,
    mode: str,
    rows: Rows | None = None,
    *,
    user_metadata: str | None = None,
) -> None:
    """Create the table.

    Args:
        mode: ``create`` (the table must not exist), ``createIfNotExists``, ``replace`` (it must exist), ``createOrReplace``. Replacing keeps
            the table's identity and history, and removes its rows.
        rows: written in the same commit; `definition` has their schema.

    Raises:
        InvalidRequest: ``DELTA_TABLE_ALREADY_EXISTS``; an invalid schema, partitioning or property; a generated column or
            constraint that could not be enforced (`check_new_on_spark`, `check_new_by_server`).
        NotFound: ``DELTA_CANNOT_REPLACE_MISSING_TABLE``.
    """
    table = target.table
    transaction = table.begin()
    snapshot = transaction.snapshot
    if snapshot is not None and mode == "createIfNotExists":
        return
    _check_existence(table, snapshot is not None, mode)
    if snapshot is not None:
        snapshot.config.refuse_if_append_only()
    if rows is not None and already_written(transaction, rows.app):
        return
    metadata = new_metadata(
        definition.schema,
        table.clock,
        partition_by=definition.partition_by,
        properties=definition.properties,
        description=definition.comment,
        table_id=None if snapshot is None else snapshot.metadata.id,
    )
    transaction.set_metadata(metadata)
    transaction.enforces = ENFORCED
    clustered_by = stage_clustering(transaction, definition.cluster_by)
    _check_new(target.spark, future_config(transaction), by_statement=definition.by_statement)
    metrics = _stage(transaction, rows, mode)
    # Properties that request features change the protocol and are not stored in the table.
    operation = create_operation(
        future_config(transaction).metadata, _OPERATIONS[mode], is_managed=definition.is_managed, cluster_by=clustered_by
    )
    if rows is not None:
        parameters = {**operation.parameters, **rows.parameters}
        operation = Operation(f"{operation.name} AS SELECT", parameters, metrics)
        transaction.inputs = inputs_of(rows.data)
    try:
        table.commit(transaction, operation, user_metadata=user_metadata)
    except DeltaConcurrentModificationException:
        # A concurrent commit created the table, which is all that was requested.
        if mode != "createIfNotExists" or not table.exists():
            raise


def _check_new(spark: SparkSession, config: TableConfig, *, by_statement: bool) -> None:
    if is_classic(spark):
        check_new_on_spark(spark, config, by_statement=by_statement)
        return
    check_new_by_server(spark, config)
    for column in config.schema:
        check_default_by_server(spark, column, config)


def _check_existence(table: Table, exists: bool, mode: str) -> None:
    if exists and mode == "create":
        raise exists_already(table.url, "Use createIfNotExists or createOrReplace, or choose another place.")
    if not exists and mode == "replace":
        raise NotFound(
            f"There is no table at {table.url} to replace. Use createOrReplace or create.",
            code="DELTA_CANNOT_REPLACE_MISSING_TABLE",
            table=table.url,
        )


def _stage(transaction: Transaction, rows: Rows | None, mode: str) -> Mapping[str, int | str]:
    """Stage the rows' files and the removal of existing files; return the metrics."""
    adds = [] if rows is None else _written(transaction, rows)
    removed: list[RemoveFile] = []
    snapshot = transaction.snapshot
    if snapshot is not None or (rows is not None and mode == "createOrReplace"):
        transaction.read_whole_table()  # as in delta-spark, also if there is no table to replace
    if snapshot is not None:
        now = transaction.clock.now_ms()
        removed = [add.remove(now) for add in add_files(snapshot.files())]
    transaction.stage(*removed, *adds)
    if rows is not None and rows.app is not None:
        transaction.stage_app(*rows.app)
    return write_operation(adds, OverwriteActions(tuple(removed)), WriteOptions("overwrite"), created=snapshot is None).metrics


def _written(transaction: Transaction, rows: Rows) -> list[AddFile]:
    config = future_config(transaction)
    if rows.write is not None:
        adds = rows.write(transaction, rows)
    else:
        with job_progress(rows.data.sparkSession, transaction.clock):
            adds = write_files(enforced(rows.data, config), config, transaction, rows.files)
    return [tagged(config, replace(add, data_change=True)) for add in adds]
