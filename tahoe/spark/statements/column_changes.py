"""ALTER TABLE statements on columns, from the parser's plans: ADD, DROP, RENAME, ALTER (CHANGE) and REPLACE COLUMNS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.progress import shown
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
from tahoe.spark.statements.statement_types import SparkStatement, on_table
from tahoe.spark.statements.targets import Target
from tahoe.spark.versions.column_specs import default_text, drops_comment, new_default
from tahoe.txn.transaction import Operation, Transaction

_Stage = Callable[[Transaction, Snapshot], Operation | None]


def _add(spark: SparkSession, plan: JavaObject) -> _Stage:
    columns = [_new_column(spark, column) for column in items(plan.columnsToAdd())]
    return lambda transaction, snapshot: stage_add_columns(transaction, snapshot, columns)


def _drop(spark: SparkSession, plan: JavaObject) -> _Stage:
    paths, if_exists = [_path(column) for column in items(plan.columnsToDrop())], bool(plan.ifExists())
    return lambda transaction, snapshot: stage_drop_columns(transaction, snapshot, paths, if_exists=if_exists)


def _rename(spark: SparkSession, plan: JavaObject) -> _Stage:
    path, name = _path(plan.column()), str(plan.newName())
    return lambda transaction, snapshot: stage_rename_column(transaction, snapshot, path, name)


def _alter(spark: SparkSession, plan: JavaObject) -> _Stage:
    changes = [_change(spark, spec) for spec in items(plan.specs())]

    def stage(transaction: Transaction, snapshot: Snapshot) -> Operation | None:
        with shown(transaction.clock) as progress:
            return stage_change_columns(transaction, snapshot, changes, progress)

    return stage


def _replace(spark: SparkSession, plan: JavaObject) -> _Stage:
    columns = StructType(tuple(_new_column(spark, column).column for column in items(plan.columnsToAdd())))
    return lambda transaction, snapshot: stage_replace_columns(transaction, snapshot, columns)


def _statement(words: str, node: str, fields: str, staging: Callable[[SparkSession, JavaObject], _Stage]) -> SparkStatement:
    def prepare(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
        return partial(_run, target.named.table, staging(spark, plan))

    return SparkStatement(words, node, fields, on_table("table", prepare))


def _run(table: Table, stage: _Stage) -> None:
    transaction = table.begin()
    operation = stage(transaction, transaction.existing())
    if operation is not None:
        table.commit(transaction, operation)


COLUMN_STATEMENTS = (
    _statement("ALTER TABLE … ADD COLUMNS", "AddColumns", "table columnsToAdd", _add),
    _statement("ALTER TABLE … DROP COLUMNS", "DropColumns", "table columnsToDrop ifExists", _drop),
    _statement("ALTER TABLE … RENAME COLUMN", "RenameColumn", "table column newName", _rename),
    _statement("ALTER TABLE … ALTER COLUMN", "AlterColumns", "table specs fromCommentOn", _alter),
    _statement("ALTER TABLE … REPLACE COLUMNS", "ReplaceColumns", "table columnsToAdd", _replace),
)


# -- parts -------------------------------------------------------------------------------------------------------------------


def _new_column(spark: SparkSession, parsed: JavaObject) -> NewColumn:
    """Convert a ``QualifiedColType``."""
    name, parent = str(parsed.colName()), _path(parsed.path().get()) if parsed.path().isDefined() else ()
    metadata = {"comment": str(parsed.comment().get())} if parsed.comment().isDefined() else {}
    if parsed.default().isDefined():
        metadata[CURRENT_DEFAULT] = default_text(parsed.default().get())
    column = _field(spark, name, parsed.dataType(), bool(parsed.nullable()), metadata)
    return NewColumn(parent, column, _position(parsed.position()))


def _change(spark: SparkSession, spec: JavaObject) -> ColumnChange:
    """Convert an ``AlterColumnSpec``."""
    path = _path(spec.column())
    new_type = _field(spark, path[-1], spec.newDataType().get(), True, {}) if spec.newDataType().isDefined() else None
    if new_type is not None:
        check_no_new_collations(StructType((new_type,)))
    return ColumnChange(
        path,
        data_type=None if new_type is None else new_type.data_type,
        declared=None if new_type is None else new_type.metadata.get(DECLARED_TYPE),
        nullable=bool(spec.newNullability().get()) if spec.newNullability().isDefined() else None,
        comment=str(spec.newComment().get()) if spec.newComment().isDefined() else "" if drops_comment(spec) else None,
        position=_position(spec.newPosition()),
        default=new_default(spec),
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
