"""DESCRIBE and SHOW: the columns, partitions, details and history of a table from the log.

The rows are those of Spark's commands for tables of a version 2 catalog, as in delta-spark, and those of Delta's own DESCRIBE DETAIL and
DESCRIBE HISTORY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from tahoe.base.exceptions import CorruptTable, InvalidRequest, TahoeError
from tahoe.expr.tree.predicate import quoted_if_needed, text_literal
from tahoe.log.replay import add_files
from tahoe.ops.tables.cluster_by import clustered_by, clustering_columns
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT
from tahoe.protocol.column_values.identity import identity_of
from tahoe.protocol.partition import deserialize
from tahoe.schema.column_edits import not_there
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import GENERATION_EXPRESSION, schema_from_json
from tahoe.schema.types import StructField as DeltaField
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.frames import (
    DETAIL,
    HISTORY,
    detail_rows,
    detail_rows_of_fields,
    detail_rows_of_folder,
    history_rows,
    text_columns,
)
from tahoe.spark.copies.catalog_table import catalog_table
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.spark.jvm.translate import to_spark_schema
from tahoe.spark.names.entries import NamedTable, has_entry
from tahoe.spark.names.error_names import NO_TABLE, reading
from tahoe.spark.statements.command import Command, Rows
from tahoe.spark.statements.statement_types import Resolve, SparkStatement, TableStatement, delta_statements, on_table
from tahoe.spark.statements.table_properties import redacted, shown_properties
from tahoe.spark.statements.targets import Target, target_of
from tahoe.spark.versions.members import has_field
from tahoe.sql.dialect import STRING, Cursor
from tahoe.sql.table_name import take_table_or_path

Row = tuple[Any, ...]


def _describe(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], Rows]:
    if has_field(plan, "partitionSpec") and not plan.partitionSpec().isEmpty():
        raise InvalidRequest(
            f"Operation not allowed: `DESCRIBE TABLE PARTITION` is not supported for Delta tables: {target.named.name}. Use SHOW PARTITIONS.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=str(target.named.name),
        )
    named, is_extended = target.named, bool(plan.isExtended())

    def run() -> Iterator[Row]:
        snapshot = named.table.snapshot()
        yield from column_rows(snapshot)
        if is_extended:
            yield from extended_rows(spark, named, snapshot)

    return run


def column_rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the rows of DESCRIBE TABLE."""
    columns = {column.name: column for column in _columns(snapshot)}
    for column in columns.values():
        yield _column_row(column)
    if snapshot.partition_columns:
        yield "# Partition Information", "", ""
        yield "# col_name", "data_type", "comment"
        for name in snapshot.partition_columns:
            yield _column_row(columns[name])


def extended_rows(spark: SparkSession, named: NamedTable, snapshot: Snapshot) -> Iterator[Row]:
    """Yield the rows that DESCRIBE TABLE EXTENDED adds."""
    entry, on_server = named.entry, named.on_server
    yield "", "", ""
    yield "# Detailed Table Information", "", ""
    yield "Name", named.full_name, ""
    yield "Type", "MANAGED" if named.is_managed else "EXTERNAL", ""
    if snapshot.metadata.description is not None:
        yield "Comment", snapshot.metadata.description, ""
    yield "Location", hadoop_path(snapshot.store.url), ""
    yield "Provider", "delta", ""
    if entry is not None:
        owner = str(entry.owner())
    else:
        owner = "" if on_server is None else on_server.owner
    if owner:
        yield "Owner", owner, ""
    if named.is_managed:
        yield "Is_managed_location", "true", ""
    properties = ",".join(f"{key}={value}" for key, value in sorted(shown_properties(spark, snapshot).items()))
    yield "Table Properties", f"[{properties}]", ""


def _describe_column(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], Rows]:
    parts = [str(part) for part in items(plan.column().nameParts())]
    return lambda: described_column(target.named, parts)


def described_column(named: NamedTable, parts: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of DESCRIBE of a column.

    Args:
        parts: the names that lead to the column.
    """
    if len(parts) > 1:
        raise InvalidRequest(
            f"DESC TABLE COLUMN does not support nested columns: {'.'.join(parts)} of table {named.name}. Describe the table.",
            code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
            column=".".join(parts),
        )
    snapshot = named.table.snapshot()
    column = snapshot.schema.find(parts[0])
    if column is None:
        raise not_there(snapshot.schema, (parts[0],))
    name, data_type, comment = _column_row(_columns(snapshot)[column.name])
    yield "col_name", name
    yield "data_type", data_type
    yield "comment", "NULL" if comment is None else comment


def _show_columns(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], Rows]:
    _refuse_other_namespace(plan, target)
    table = target.named.table
    return lambda: [(name,) for name in table.schema().names]


def _refuse_other_namespace(plan: JavaObject, target: Target) -> None:
    """Reject ``SHOW COLUMNS IN a.t IN b``, which names two databases."""
    stated = [str(part) for part in items(plan.namespace().get())] if plan.namespace().isDefined() else []
    named = list(target.named.name.identifiers[:-1])
    if stated and named and [part.lower() for part in stated[-1:]] != [part.lower() for part in named[-1:]]:
        raise InvalidRequest(
            f"SHOW COLUMNS with conflicting namespaces: `{'.'.join(stated)}` != `{'.'.join(named)}`. Leave one of them out.",
            code="SHOW_COLUMNS_WITH_CONFLICT_NAMESPACE",
            table=str(target.named.name),
        )


def _show_partitions(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    named, snapshot = target.named, target.named.table.snapshot()
    spec = plan.pattern().get().spec() if plan.pattern().isDefined() else None
    pattern = {} if spec is None else {str(name): spec.apply(name) for name in items(spec.keys().toSeq())}
    check_partitions(snapshot, named, pattern)
    columns = StructType([_columns(snapshot)[name] for name in snapshot.partition_columns])
    return statement.execution(lambda: partitions(named.table.snapshot(), pattern), columns)


def check_partitions(snapshot: Snapshot, named: NamedTable, pattern: Iterable[str]) -> None:
    """Refuse SHOW PARTITIONS of a table without partitions, and a pattern with other columns than the partition columns."""
    if not snapshot.partition_columns:
        raise InvalidRequest(
            f"SHOW PARTITIONS is not allowed on a table that is not partitioned: {named.name}. Name a partitioned table.",
            code="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            table=str(named.name),
        )
    others = [name for name in pattern if name.lower() not in {column.lower() for column in snapshot.partition_columns}]
    if others:
        raise InvalidRequest(
            f"Non-partitioning column(s) {', '.join(others)} are specified for SHOW PARTITIONS; table {named.name} is partitioned by "
            f"{', '.join(snapshot.partition_columns)}.",
            code="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
            table=str(named.name),
        )


def partitions(snapshot: Snapshot, pattern: Mapping[str, str | None]) -> list[Row]:
    """Return the values of each partition.

    Args:
        pattern: values of some partition columns, as the log has them; other partitions are left out.
    """
    columns = [snapshot.schema.field(name) for name in snapshot.partition_columns]
    fixed = {
        position: _value_of_pattern(value, column)
        for position, column in enumerate(columns)
        for name, value in pattern.items()
        if name.lower() == column.name.lower()
    }
    partitions = {
        tuple(deserialize(add.partition_values.get(column.physical_name), column.data_type) for column in columns)
        for add in add_files(snapshot.files())
    }
    matching = [row for row in partitions if all(row[position] == value for position, value in fixed.items())]
    return sorted(matching, key=lambda row: [(value is not None, str(type(value)), value) for value in row])


def _value_of_pattern(value: str | None, column: DeltaField) -> object:
    try:
        return deserialize(value, column.data_type)
    except CorruptTable:
        raise InvalidRequest(
            f"The value '{value}' of PARTITION cannot be cast to {column.data_type}, the type of column {column.name}. Give another value.",
            code="CAST_INVALID_INPUT",
            column=column.name,
        ) from None


def _show_create(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], Rows]:
    named = target.named
    if plan.asSerde():
        raise InvalidRequest(
            f"Operation not allowed: `SHOW CREATE TABLE … AS SERDE` is not supported for Delta tables: {named.name}. Leave AS SERDE out.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=str(named.name),
        )
    return lambda: [(creation_text(spark, named),)]


def creation_text(spark: SparkSession, named: NamedTable) -> str:
    """Return the statement that creates a table with these columns."""
    snapshot = named.table.snapshot()
    quoted = ".".join(quoted_if_needed(part) for part in named.full_name_parts)
    lines = [
        f"CREATE TABLE {quoted} (",
        ",\n".join(f"  {_definition(column)}" for column in _columns(snapshot)) + ")",
        "USING delta",
    ]
    if snapshot.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(quoted_if_needed(name) for name in snapshot.partition_columns)})")
    if clustering_columns(snapshot):
        lines.append(f"CLUSTER BY ({', '.join(clustered_by(snapshot))})")
    if not named.is_by_path and not named.is_managed:
        lines.append(f"LOCATION {text_literal(snapshot.store.url)}")
    if snapshot.metadata.description is not None:
        lines.append(f"COMMENT {text_literal(snapshot.metadata.description)}")
    properties = redacted(spark, snapshot.metadata.configuration)
    if properties:
        pairs = ",\n".join(f"  {text_literal(key)} = {text_literal(value)}" for key, value in sorted(properties.items()))
        lines.append(f"TBLPROPERTIES (\n{pairs})")
    return "\n".join(lines) + "\n"


def _query(words: str, node: str, fields: str, resolve: Resolve, *columns: str) -> SparkStatement:
    return SparkStatement(words, node, fields, resolve, text_columns(*columns), is_query=True)


DESCRIBING_STATEMENTS = (
    _query(
        "DESCRIBE TABLE",
        "DescribeRelation",
        "relation partitionSpec isExtended output",
        on_table("relation", _describe),
        *("col_name", "data_type", "comment"),
    ),
    _query(
        "DESCRIBE TABLE … COLUMN",
        "DescribeColumn",
        "relation column isExtended output",
        on_table("relation", _describe_column),
        *("info_name", "info_value"),
    ),
    _query("SHOW COLUMNS", "ShowColumns", "child namespace output", on_table("child", _show_columns), "col_name"),
    _query("SHOW PARTITIONS", "ShowPartitions", "table pattern output", _show_partitions),
    _query("SHOW CREATE TABLE", "ShowCreateTable", "child asSerde output", on_table("child", _show_create), "createtab_stmt"),
)


# -- DESCRIBE DETAIL and DESCRIBE HISTORY -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeDetail(TableStatement):
    """``DESCRIBE DETAIL …``.

    Args:
        is_text: its path is a string, not an identifier.
    """

    words, first_words = "DESCRIBE DETAIL", ("DESC", "DESCRIBE")
    columns, is_query = DETAIL, True
    is_text: bool = False

    @classmethod
    def parse(cls, cursor: Cursor) -> DescribeDetail | None:
        """See `DeltaStatement.parse`."""
        cursor.place += 1
        if not cursor.take("DETAIL"):
            return None
        is_text = cursor.peek().kind == STRING
        if (table := take_table_or_path(cursor)) is None:
            return None
        cursor.end()
        return DescribeDetail(table, is_text)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        full_name = None if named.is_by_path else named.full_name
        if not self.is_text:
            return list(detail_rows(named.table, full_name))
        try:
            with reading(named.table, "DELTA_FILE_NOT_FOUND"):
                return list(detail_rows(named.table, full_name))
        except TahoeError as error:
            if error.code != NO_TABLE:
                raise
            return detail_rows_of_folder(self.table.identifiers[-1])

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether it describes a column of a table with the name ``detail``."""
        return has_entry(spark, ["detail"])

    def on_other_table(self, spark: SparkSession) -> Command | None:
        """Return the rows of a table of another format, from its catalog entry."""
        entry = catalog_table(spark, self.table.identifiers)
        return None if entry is None else self._command(lambda: detail_rows_of_fields(entry.details()))


@dataclass(frozen=True, slots=True)
class DescribeHistory(TableStatement):
    """``DESCRIBE HISTORY … [LIMIT n]``."""

    words, first_words = "DESCRIBE HISTORY", ("DESC", "DESCRIBE")
    columns, is_query = HISTORY, True
    limit: int | None

    @classmethod
    def parse(cls, cursor: Cursor) -> DescribeHistory | None:
        """See `DeltaStatement.parse`."""
        cursor.place += 1
        if not cursor.take("HISTORY") or (table := take_table_or_path(cursor)) is None:
            return None
        limit = cursor.integer() if cursor.take("LIMIT") else None
        cursor.end()
        return DescribeHistory(table, limit)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        return history_rows(named.table, self.limit)

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether it describes a column of a table with the name ``history``."""
        return has_entry(spark, ["history"])


DETAIL_STATEMENTS = delta_statements(DescribeDetail, DescribeHistory)


# -- parts -------------------------------------------------------------------------------------------------------------------


def _columns(snapshot: Snapshot) -> StructType:
    """Return the columns as a PySpark schema."""
    return to_spark_schema(snapshot.schema)


def _column_row(column: StructField) -> Row:
    return column.name, _type(column), column.metadata.get("comment")


def _type(column: StructField) -> str:
    return str(column.metadata.get(DECLARED_TYPE, column.dataType.simpleString()))


def _definition(column: StructField) -> str:
    comment = column.metadata.get("comment")
    generation = column.metadata.get(GENERATION_EXPRESSION)
    parts = [
        f"{quoted_if_needed(column.name)} {_type(column).upper() if column.dataType.simpleString().isidentifier() else _type(column)}",
        "" if generation is None else f"GENERATED ALWAYS AS ({generation})",
        _identity(column),
        "" if column.nullable else "NOT NULL",
        "" if CURRENT_DEFAULT not in column.metadata else f"DEFAULT {column.metadata[CURRENT_DEFAULT]}",
        "" if comment is None else f"COMMENT {text_literal(comment)}",
    ]
    return " ".join(part for part in parts if part)


def _identity(column: StructField) -> str:
    identity = identity_of(schema_from_json(f'{{"type":"struct","fields":[{column.json()}]}}').fields[0], "")
    if identity is None:
        return ""
    how = "BY DEFAULT" if identity.allows_explicit else "ALWAYS"
    return f"GENERATED {how} AS IDENTITY (START WITH {identity.start} INCREMENT BY {identity.step})"
