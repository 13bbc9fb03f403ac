"""ALTER TABLE statements on columns, from the parser's plans: ADD, DROP, RENAME, ALTER (CHANGE) and REPLACE COLUMNS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.ops.tables.alter_columns import (
    ColumnChange,
    stage_add_columns,
    stage_change_columns,
    stage_drop_columns,
    stage_rename_column,
    stage_replace_columns,
)
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT
from tahoe.schema.collations import check_no_new_collations
from tahoe.schema.column_edits import FIRST, NewColumn, Path, Position
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import StructField, StructType, schema_from_json
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.stored_defaults import check_default_on_spark
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import target_of
from tahoe.spark.versions.column_specs import default_text, drops_comment, new_default
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["COLUMN_STATEMENTS"]

_Stage = Callable[[Transaction, Snapshot], Operation | None]


def _adding(spark: SparkSession, plan: JavaObject) -> _Stage:
    columns = [_new_column(spark, one) for one in items(plan.columnsToAdd())]
    return lambda transaction, snapshot: stage_add_columns(transaction, snapshot, columns)


def _dropping(spark: SparkSession, plan: JavaObject) -> _Stage:
    paths, if_exists = [_path(one) for one in items(plan.columnsToDrop())], bool(plan.ifExists())
    return lambda transaction, snapshot: stage_drop_columns(transaction, snapshot, paths, if_exists=if_exists)


def _renaming(spark: SparkSession, plan: JavaObject) -> _Stage:
    path, name = _path(plan.column()), str(plan.newName())
    return lambda transaction, snapshot: stage_rename_column(transaction, snapshot, path, name)


def _altering(spark: SparkSession, plan: JavaObject) -> _Stage:
    changes = [_change(spark, one) for one in items(plan.specs())]
    return lambda transaction, snapshot: stage_change_columns(transaction, snapshot, changes)


def _replacing(spark: SparkSession, plan: JavaObject) -> _Stage:
    columns = StructType(tuple(_new_column(spark, one).column for one in items(plan.columnsToAdd())))
    return lambda transaction, snapshot: stage_replace_columns(transaction, snapshot, columns)


def _command(
    spark: SparkSession, plan: JavaObject, words: str, staging: Callable[[SparkSession, JavaObject], _Stage]
) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    stage, table = staging(spark, plan), target.named.table
    return Command(words, lambda: _run(table, stage))


def _run(table: Table, stage: _Stage) -> None:
    transaction = table.begin()
    operation = stage(transaction, transaction.existing())
    if operation is not None:
        table.commit(transaction, operation)


COLUMN_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "AddColumns": partial(_command, words="ALTER TABLE … ADD COLUMNS", staging=_adding),
    "DropColumns": partial(_command, words="ALTER TABLE … DROP COLUMNS", staging=_dropping),
    "RenameColumn": partial(_command, words="ALTER TABLE … RENAME COLUMN", staging=_renaming),
    "AlterColumns": partial(_command, words="ALTER TABLE … ALTER COLUMN", staging=_altering),
    "ReplaceColumns": partial(_command, words="ALTER TABLE … REPLACE COLUMNS", staging=_replacing),
}
"""Handlers by the name of the plan node."""


# -- parts -------------------------------------------------------------------------------------------------------------------


def _new_column(spark: SparkSession, one: JavaObject) -> NewColumn:
    """Convert a ``QualifiedColType``."""
    name, parent = str(one.colName()), _path(one.path().get()) if one.path().isDefined() else ()
    metadata = {"comment": str(one.comment().get())} if one.comment().isDefined() else {}
    if one.default().isDefined():
        metadata[CURRENT_DEFAULT] = default_text(one.default().get())
    column = _field(spark, name, one.dataType(), bool(one.nullable()), metadata)
    return NewColumn(parent, column, _position(one.position()))


def _change(spark: SparkSession, one: JavaObject) -> ColumnChange:
    """Convert an ``AlterColumnSpec``."""
    path = _path(one.column())
    wanted = _field(spark, path[-1], one.newDataType().get(), True, {}) if one.newDataType().isDefined() else None
    if wanted is not None:
        check_no_new_collations(StructType((wanted,)))
    return ColumnChange(
        path,
        data_type=None if wanted is None else wanted.data_type,
        declared=None if wanted is None else wanted.metadata.get(DECLARED_TYPE),
        nullable=bool(one.newNullability().get()) if one.newNullability().isDefined() else None,
        comment=str(one.newComment().get()) if one.newComment().isDefined() else "" if drops_comment(one) else None,
        position=_position(one.newPosition()),
        default=new_default(one),
        by_spark=partial(check_default_on_spark, spark),
    )


def _field(spark: SparkSession, name: str, data_type: JavaObject, nullable: bool, metadata: Mapping[str, str]) -> StructField:
    """Return the column in Delta's form: char and varchar are strings, and the metadata contains their length."""
    field: dict[str, Any] = {"name": name, "type": json.loads(data_type.json()), "nullable": nullable, "metadata": metadata}
    jvm = Jvm.of(spark)
    parsed = jvm.data_type(json.dumps({"type": "struct", "fields": [field]}))
    stored = jvm.catalyst("util.CharVarcharUtils").replaceCharVarcharWithStringInSchema(parsed)
    return schema_from_json(str(stored.json())).fields[0]


def _path(name: JavaObject) -> Path:
    return tuple(str(part) for part in items(name.name()))


def _position(position: JavaObject) -> Position | None:
    if position.isEmpty():
        return None
    stated = position.get().position()
    return Position(str(stated.column())) if str(stated.getClass().getSimpleName()) == "After" else FIRST
