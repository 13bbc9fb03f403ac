"""CREATE, ALTER, DESCRIBE and SHOW of Delta tables in sessions of Spark Connect. Spark's parser of types reads column definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Column as CatalogColumn
from pyspark.sql.types import StructType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.progress import shown
from tahoe.ops.tables.alter_columns import ColumnChange, stage_add_columns, stage_change_columns, stage_replace_columns
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.column_edits import FIRST, NewColumn, Position
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import GENERATION_EXPRESSION, StructField
from tahoe.schema.types import StructType as DeltaStruct
from tahoe.snapshot.read_errors import naming_table
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.frames import text_columns
from tahoe.spark.commands.named import Creation
from tahoe.spark.connect.constants import constant_of
from tahoe.spark.connect.creation import make_table
from tahoe.spark.copies.catalog_table import catalog_table
from tahoe.spark.jvm.translate import catalog_string, from_spark_schema, to_spark_schema, with_shown_metadata
from tahoe.spark.names.entries import NamedTable
from tahoe.spark.names.options import path_option
from tahoe.spark.names.server_catalog import server_entry
from tahoe.spark.statements.create_like import definition_of_delta, exists_already, without_view_properties
from tahoe.spark.statements.create_table import bucketing_not_allowed, expression_not_allowed
from tahoe.spark.statements.describe import (
    check_partitions,
    column_rows,
    creation_text,
    described_column,
    extended_rows,
    partitions,
)
from tahoe.spark.statements.table_properties import properties_shown, set_properties, unset_properties
from tahoe.spark.versions.connect_frames import parsed_type
from tahoe.spark.write.server_defaults import check_default_by_server
from tahoe.sql import ddl as parsed
from tahoe.sql.described import Describe
from tahoe.sql.table_name import table_name
from tahoe.txn.transaction import Operation

Rows = Iterable[Sequence[Any]]


def created(spark: SparkSession, statement: parsed.Create, query: Callable[[], DataFrame] | None) -> None:
    """Run CREATE or REPLACE TABLE, with or without AS SELECT."""
    if statement.has_buckets:
        raise bucketing_not_allowed()
    if statement.partition_expression is not None:
        raise expression_not_allowed(statement.partition_expression)
    options = {name: value for name, value in statement.options.items() if name.lower() != "path"}
    path = path_option(statement.options)
    if path is not None and statement.location is not None:
        raise InvalidRequest(
            f"CREATE TABLE {statement.table} names two folders: LOCATION '{statement.location}' and the option path, '{path}'. Name one.",
            code="DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
            table=str(statement.table),
        )
    definition = TableDefinition(
        DeltaStruct(tuple(_columns(spark, statement.columns))),
        statement.partition_by,
        statement.properties,
        statement.comment,
        cluster_by=statement.cluster_by,
        by_statement=True,
    )
    make_table(
        spark, Creation(statement.table.identifiers, statement.how, definition, statement.location or path, options, query)
    )


def created_like(spark: SparkSession, statement: parsed.CreateLike, source: NamedTable | None) -> None:
    """Run CREATE TABLE LIKE.

    Args:
        source: the Delta table; None for a table of another format or a view.
    """
    if not statement.if_not_exists and server_entry(spark, statement.table.identifiers) is not None:
        raise exists_already(str(statement.table))
    definition = (
        _like_other_format(spark, statement)
        if source is None
        else definition_of_delta(source.table.snapshot(), statement.properties)
    )
    how = "createIfNotExists" if statement.if_not_exists else "create"
    make_table(spark, Creation(statement.table.identifiers, how, definition, statement.location))


def _like_other_format(spark: SparkSession, statement: parsed.CreateLike) -> TableDefinition:
    name, source = str(statement.source), catalog_table(spark, statement.source.identifiers)
    if source is None:  # a temporary view
        return TableDefinition(from_spark_schema(spark.table(name).schema), properties=statement.properties)
    properties = {} if source.is_view else source.properties()
    return TableDefinition(
        source.schema(),
        tuple(source.partition_schema().names),
        {**without_view_properties(properties), **statement.properties},
        spark.catalog.getTable(name).description or None,
    )


def listed_columns(snapshot: Snapshot) -> list[CatalogColumn]:
    """Return the columns as ``spark.catalog.listColumns`` does."""
    partitioned_by = set(snapshot.partition_columns)
    return [
        CatalogColumn(
            name=column.name,
            description=column.metadata.get("comment"),
            dataType=catalog_string(column.dataType),
            nullable=column.nullable,
            isPartition=column.name in partitioned_by,
            isBucket=False,
            isCluster=False,
        )
        for column in to_spark_schema(with_shown_metadata(snapshot.schema))
    ]


def altered(spark: SparkSession, table: Table, statement: parsed.TableStatement) -> None:
    """Run ALTER TABLE; errors name the table."""
    with naming_table(table.url):
        _alter(spark, table, statement)


def _alter(spark: SparkSession, table: Table, statement: parsed.TableStatement) -> None:
    match statement:
        case parsed.AddColumns():
            new = zip(statement.columns, _columns(spark, statement.columns), strict=True)
            _commit(table, stage_add_columns, [NewColumn(_path(text.path), column, _position(text)) for text, column in new])
        case parsed.ReplaceColumns():
            _commit(table, stage_replace_columns, DeltaStruct(tuple(_columns(spark, statement.columns))))
        case parsed.CommentOn():
            table.set_properties({"comment": statement.comment})
        case parsed.DropColumns():
            table.drop_columns(statement.columns, if_exists=statement.if_exists)
        case parsed.RenameColumn():
            table.rename_column(statement.column, statement.name)
        case parsed.ChangeColumns():
            with shown() as progress:
                _commit(table, stage_change_columns, [_change(spark, column) for column in statement.columns], progress)
        case parsed.SetProperties():
            set_properties(spark, table, statement.properties)
        case parsed.UnsetProperties():
            unset_properties(spark, table, statement.names)
        case parsed.ClusterBy():
            table.cluster_by(statement.columns)


def _commit(table: Table, stage: Callable[..., Operation | None], *arguments: object) -> None:
    """Commit what a function of `tahoe.ops.tables.alter_columns` stages; nothing if it returns None."""
    transaction = table.begin()
    operation = stage(transaction, transaction.existing(), *arguments)
    if operation is not None:
        table.commit(transaction, operation)


def _path(text: str) -> tuple[str, ...]:
    named = table_name(text) if text else None
    return () if named is None else named.identifiers


def _position(column: parsed.ColumnText) -> Position | None:
    return FIRST if column.is_first else None if column.position is None else Position(column.position)


def _change(spark: SparkSession, changed: parsed.ChangedColumn) -> ColumnChange:
    column = None if changed.data_type is None else _columns(spark, [parsed.ColumnText(f"c {changed.data_type}")])[0]
    return ColumnChange(
        _path(changed.column),
        data_type=None if column is None else column.data_type,
        declared=None if column is None else column.metadata.get(DECLARED_TYPE),
        nullable=changed.nullable,
        comment=changed.comment,
        position=None if changed.after is None else Position(changed.after) if changed.after else FIRST,
        default=changed.default,
        by_spark=partial(check_default_by_server, spark),
    )


def _columns(spark: SparkSession, columns: Sequence[parsed.ColumnText]) -> list[StructField]:
    """Return the columns, with Delta's metadata for generated, default and identity values. One request to the server."""
    if not columns:
        return []
    schema = cast(StructType, parsed_type(spark, ", ".join(column.ddl for column in columns)))
    return [_with_metadata(field, column) for field, column in zip(from_spark_schema(schema), columns, strict=True)]


def _with_metadata(field: StructField, column: parsed.ColumnText) -> StructField:
    metadata = dict(field.metadata)
    if column.generated is not None:
        metadata[GENERATION_EXPRESSION] = column.generated
    if column.default is not None:
        metadata[CURRENT_DEFAULT] = column.default
    if column.identity is not None:
        start, step, explicit = column.identity
        metadata |= identity_metadata(start, step, allow_explicit=explicit)
    return replace(field, metadata=metadata)


def described(spark: SparkSession, named: NamedTable, statement: Describe) -> tuple[StructType, Rows]:
    """Return the columns and the rows of DESCRIBE and SHOW."""
    snapshot = named.table.snapshot()
    match statement.kind:
        case "SHOW COLUMNS":
            return text_columns("col_name"), [(name,) for name in snapshot.schema.names]
        case "SHOW TBLPROPERTIES":
            return text_columns("key", "value"), sorted(properties_shown(spark, named, statement.key).items())
        case "column":
            return text_columns("info_name", "info_value"), list(described_column(named, statement.column))
        case "SHOW CREATE TABLE":
            return text_columns("createtab_stmt"), [(creation_text(spark, named),)]
        case "SHOW PARTITIONS":
            pattern = {name: constant_of(spark, value).text for name, value in statement.partition}
            check_partitions(snapshot, named, pattern)
            columns = to_spark_schema(DeltaStruct(tuple(snapshot.schema.field(name) for name in snapshot.partition_columns)))
            return columns, partitions(snapshot, pattern)
    rows = list(column_rows(snapshot))
    if statement.kind == "extended":
        rows += extended_rows(spark, named, snapshot)
    return text_columns("col_name", "data_type", "comment"), rows
