"""CREATE TABLE … LIKE: an empty Delta table with the columns, partitioning, properties and comment of another table or view."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
from tahoe.spark.statements.create_table import given
from tahoe.spark.statements.targets import name_parts
from tahoe.spark.versions.like_command import identifier_parts

__all__ = ["LIKE_STATEMENTS"]

_OWN = frozenset({"delta.columnMapping.maxColumnId", MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION})
"""The properties that each table generates for itself."""


def _like(spark: SparkSession, plan: JavaObject) -> Command | None:
    """Handle ``CreateTableLike``."""
    target, source = name_parts(spark, plan.name()), name_parts(spark, plan.source())
    location, has_serde = given(plan.location()), plan.serdeInfo().isDefined()
    return None if target is None or source is None else _command(spark, plan, target, source, location, has_serde)


def _like_before(spark: SparkSession, plan: JavaObject) -> Command | None:
    """Handle ``CreateTableLikeCommand`` (`tahoe.spark.versions.like_command`)."""
    target, source = (identifier_parts(name) for name in (plan.targetTable(), plan.sourceTable()))
    uri = given(plan.fileFormat().locationUri())
    location = None if uri is None else str(Jvm.of(spark).catalyst("catalog.CatalogUtils").URIToString(uri))
    return _command(spark, plan, target, source, location, plan.fileFormat().inputFormat().isDefined())


LIKE_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "CreateTableLike": _like,
    "CreateTableLikeCommand": _like_before,
}
"""Handlers by the name of the plan node."""


def _command(
    spark: SparkSession,
    plan: JavaObject,
    target: tuple[str, ...],
    source: tuple[str, ...],
    location: str | None,
    has_serde: bool,
) -> Command | None:
    provider = given(plan.provider())
    by_delta = provider is not None and str(provider).lower() == "delta"
    from_delta = table_named(spark, source) is not None
    if not in_session_catalog(spark, target) or not (by_delta or from_delta):
        return None
    if not by_delta and (provider is not None or has_serde):
        raise Unsupported(
            f"CREATE TABLE … LIKE makes a Delta table of a Delta table ({'.'.join(source)}), no table of another format. Leave the format "
            "out, or use CREATE TABLE … AS SELECT * FROM … LIMIT 0.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=".".join(source),
        )
    properties = Jvm.of(spark).dictionary(plan.properties())
    how = "createIfNotExists" if plan.ifNotExists() else "create"

    def run() -> None:
        if how == "create" and entry_of(spark, target) is not None:
            raise InvalidRequest(
                f"Table {'.'.join(target)} already exists. Choose another name, drop the table, or write IF NOT EXISTS.",
                code="DELTA_TABLE_ALREADY_EXISTS",
                table=".".join(target),
            )
        definition = _definition(spark, source, properties)
        make_table(spark, Creation(target, how, definition, location))

    return Command("CREATE TABLE LIKE", run)


def _definition(spark: SparkSession, source: tuple[str, ...], properties: Mapping[str, str]) -> TableDefinition:
    named = table_named(spark, source)
    if named is not None:
        return _of_delta(named.table.snapshot(), properties)
    schema = from_spark_schema(spark.table(".".join(f"`{part.replace('`', '``')}`" for part in source)).schema)
    entry = entry_of(spark, source)
    if entry is None:  # a temporary view
        return TableDefinition(schema, properties=properties)
    columns, jvm = entry.partitionColumnNames(), Jvm.of(spark)
    return TableDefinition(
        schema,
        tuple(str(column) for column in items(columns)),
        {**_without_views_own(jvm.dictionary(entry.properties())), **properties},
        given(entry.comment()),
    )


def _of_delta(snapshot: Snapshot, properties: Mapping[str, str]) -> TableDefinition:
    protocol = snapshot.protocol
    features = {f"delta.feature.{name}": "supported" for name in (protocol.writer_features or ()) if name != Feature.CLUSTERING}
    kept = {key: value for key, value in snapshot.metadata.configuration.items() if key not in _OWN}
    return TableDefinition(
        without_marks(fresh(snapshot.schema)),
        snapshot.partition_columns,
        {**features, **kept, **properties},
        snapshot.metadata.description,
    )


def _without_views_own(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(("view.", "transient_"))}
