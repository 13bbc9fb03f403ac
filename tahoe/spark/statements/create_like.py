"""CREATE TABLE … LIKE: an empty Delta table with the columns, partitioning, properties and comment of another table or view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.column_values.identity import without_marks
from tahoe.protocol.features import Feature
from tahoe.protocol.row_tracking import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from tahoe.schema.widening import fresh
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.entries import entry_of, table_named
from tahoe.spark.names.new_entries import in_session_catalog
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.statement_types import SparkStatement
from tahoe.spark.statements.targets import name_parts, option_value
from tahoe.spark.versions.like_command import identifier_parts

_GENERATED = frozenset({"delta.columnMapping.maxColumnId", MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION})
"""The properties that each table generates for itself."""


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses that the plans of Spark versions represent differently.

    Args:
        has_serde: whether there is a Hive format, as in STORED AS.
    """

    target: tuple[str, ...]
    source: tuple[str, ...]
    location: str | None
    has_serde: bool


def _like(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Handle ``CreateTableLike``."""
    target, source = name_parts(spark, plan.name()), name_parts(spark, plan.source())
    if target is None or source is None:
        return None
    location, has_serde = option_value(plan.location()), bool(plan.serdeInfo().isDefined())
    return _command(statement, spark, plan, _Clauses(target, source, location, has_serde))


def _like_before(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Handle ``CreateTableLikeCommand`` (`tahoe.spark.versions.like_command`)."""
    target, source = identifier_parts(plan.targetTable()), identifier_parts(plan.sourceTable())
    uri = option_value(plan.fileFormat().locationUri())
    location = None if uri is None else str(Jvm.of(spark).catalyst("catalog.CatalogUtils").URIToString(uri))
    has_serde = bool(plan.fileFormat().inputFormat().isDefined())
    return _command(statement, spark, plan, _Clauses(target, source, location, has_serde))


LIKE_STATEMENTS = (
    SparkStatement(
        "CREATE TABLE LIKE", "CreateTableLike", "name source location provider serdeInfo properties ifNotExists", _like
    ),
    SparkStatement(
        "CREATE TABLE LIKE",
        "CreateTableLikeCommand",
        "targetTable sourceTable fileFormat provider properties ifNotExists",
        _like_before,
    ),
)


def _command(statement: SparkStatement, spark: SparkSession, plan: JavaObject, clauses: _Clauses) -> Command | None:
    provider = option_value(plan.provider())
    by_delta = provider is not None and str(provider).lower() == "delta"
    from_delta = table_named(spark, clauses.source) is not None
    if not in_session_catalog(spark, clauses.target) or not (by_delta or from_delta):
        return None
    source, target = ".".join(clauses.source), ".".join(clauses.target)
    if not by_delta and (provider is not None or clauses.has_serde):
        raise other_format(source)
    properties = Jvm.of(spark).dictionary(plan.properties())
    how = "createIfNotExists" if plan.ifNotExists() else "create"

    def run() -> None:
        if how == "create" and entry_of(spark, clauses.target) is not None:
            raise exists_already(target)
        make_table(spark, Creation(clauses.target, how, _definition(spark, clauses.source, properties), clauses.location))

    return statement.execution(run)


def exists_already(target: str) -> InvalidRequest:
    """Return the error for a name in use."""
    return InvalidRequest(
        f"Table {target} already exists. Choose another name, drop the table, or write IF NOT EXISTS.",
        code="DELTA_TABLE_ALREADY_EXISTS",
        table=target,
    )


def other_format(source: str) -> Unsupported:
    """Return the error for a new table of another format than its Delta source."""
    return Unsupported(
        f"CREATE TABLE … LIKE makes a Delta table of a Delta table ({source}), no table of another format. Leave the format out, or use "
        "CREATE TABLE … AS SELECT * FROM … LIMIT 0.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        table=source,
    )


def _definition(spark: SparkSession, source: tuple[str, ...], properties: Mapping[str, str]) -> TableDefinition:
    named = table_named(spark, source)
    if named is not None:
        return definition_of_delta(named.table.snapshot(), properties)
    schema = from_spark_schema(spark.table(".".join(f"`{part.replace('`', '``')}`" for part in source)).schema)
    entry = entry_of(spark, source)
    if entry is None:  # a temporary view
        return TableDefinition(schema, properties=properties)
    columns, jvm = entry.partitionColumnNames(), Jvm.of(spark)
    return TableDefinition(
        schema,
        tuple(str(column) for column in items(columns)),
        {**without_view_properties(jvm.dictionary(entry.properties())), **properties},
        option_value(entry.comment()),
    )


def definition_of_delta(snapshot: Snapshot, properties: Mapping[str, str]) -> TableDefinition:
    """Return the definition of a new table like a Delta table.

    Args:
        properties: of the statement; they take precedence.
    """
    protocol = snapshot.protocol
    features = {f"delta.feature.{name}": "supported" for name in (protocol.writer_features or ()) if name != Feature.CLUSTERING}
    copied = {key: value for key, value in snapshot.metadata.configuration.items() if key not in _GENERATED}
    return TableDefinition(
        without_marks(fresh(snapshot.schema)),
        snapshot.partition_columns,
        {**features, **copied, **properties},
        snapshot.metadata.description,
    )


def without_view_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a source without those that Spark keeps for itself."""
    return {key: value for key, value in properties.items() if not key.startswith(("view.", "transient_"))}
