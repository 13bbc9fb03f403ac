"""Properties of a Delta table: SHOW TBLPROPERTIES, ALTER TABLE … SET and UNSET TBLPROPERTIES, and CLUSTER BY, from the parser's plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.frames import text_columns
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import SESSION_CATALOG, NamedTable
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.create_table import column_text, given
from tahoe.spark.statements.targets import target_of

__all__ = ["PROPERTY_STATEMENTS", "SHOWN_PROPERTIES", "shown_properties"]

SHOWN_PROPERTIES = text_columns("key", "value")
"""The columns of SHOW TBLPROPERTIES."""


def _show(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    key = str(plan.propertyKey().get()) if plan.propertyKey().isDefined() else None
    named = target.named
    return Command("SHOW TBLPROPERTIES", lambda: sorted(_shown(spark, named, key).items()), SHOWN_PROPERTIES, is_query=True)


def _set(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    properties, table = Jvm.of(spark).dictionary(plan.properties()), target.named.table

    def run() -> None:
        _check_removal_of_mapping(spark, table, [key for key, value in properties.items() if value.lower() == "none"])
        at_once = spark.conf.get(_FILES_PER_COMMIT, None)
        table.set_properties(properties, files_per_commit=None if at_once is None else int(at_once))

    return Command("ALTER TABLE … SET TBLPROPERTIES", run)


def _unset(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    names, table = [str(key) for key in items(plan.propertyKeys())], target.named.table

    def run() -> None:
        _check_removal_of_mapping(spark, table, names)
        # As in delta-spark, the statement ignores a property that is not set, with IF EXISTS and without.
        table.unset_properties(names, if_exists=True)

    return Command("ALTER TABLE … UNSET TBLPROPERTIES", run)


_FILES_PER_COMMIT = "spark.databricks.delta.rowTracking.backfill.maxNumFiles"
_ALLOWS_REMOVAL = "spark.databricks.delta.columnMapping.allowRemoval"
_MODE = "delta.columnMapping.mode"


def _check_removal_of_mapping(spark: SparkSession, table: Table, names: Sequence[str]) -> None:
    """Reject the removal of column mapping, which rewrites every file, if the session forbids it."""
    if _MODE.lower() not in map(str.lower, names) or str(spark.conf.get(_ALLOWS_REMOVAL, "true")).lower() != "false":
        return
    mode = table.snapshot().config.column_mapping_mode
    if mode != "none":
        raise InvalidRequest(
            f"Column mapping of table {table.url} cannot be changed from '{mode}' to 'none': {_ALLOWS_REMOVAL} is false in this session. "
            "Set it to true, for every file is then written anew.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=table.url,
        )


def _cluster_by(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    spec, table = given(plan.clusterBySpec()), target.named.table
    columns = [] if spec is None else [column_text(reference) for reference in items(spec.columnNames())]

    def run() -> None:
        table.cluster_by(columns)

    return Command("ALTER TABLE … CLUSTER BY", run)


PROPERTY_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "ShowTableProperties": _show,
    "SetTableProperties": _set,
    "UnsetTableProperties": _unset,
    "AlterTableClusterBy": _cluster_by,
}
"""Handlers by the name of the plan node."""


def shown_properties(spark: SparkSession, snapshot: Snapshot) -> dict[str, str]:
    """Return the configuration and the protocol, with the values redacted that Spark's settings declare secret."""
    protocol = snapshot.protocol
    told = {
        **snapshot.metadata.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{name}": "supported" for name in (protocol.reader_features or ())},
        **{f"delta.feature.{name}": "supported" for name in (protocol.writer_features or ())},
    }
    jvm = Jvm.of(spark)
    return jvm.dictionary(spark._jsparkSession.sessionState().conf().redactOptions(jvm.map(told)))


def _shown(spark: SparkSession, named: NamedTable, key: str | None) -> dict[str, str]:
    """Return the properties as in SHOW TBLPROPERTIES."""
    told = shown_properties(spark, named.table.snapshot())
    if key is None:
        return told
    name = named.full_name if named.entry is not None else f"{SESSION_CATALOG}.{named.full_name}"
    return {key: told.get(key, f"Table {name} does not have property: {key}")}
