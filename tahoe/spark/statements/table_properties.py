"""Properties of a Delta table: SHOW TBLPROPERTIES, ALTER TABLE … SET and UNSET TBLPROPERTIES, and CLUSTER BY, from the parser's plans."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.frames import text_columns
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import SESSION_CATALOG, NamedTable
from tahoe.spark.names.settings import is_on, setting_of
from tahoe.spark.statements.command import Rows
from tahoe.spark.statements.create_table import column_text
from tahoe.spark.statements.statement_types import SparkStatement, on_table
from tahoe.spark.statements.targets import Target, option_value


def _show(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], Rows]:
    key, named = option_value(plan.propertyKey()), target.named
    return lambda: sorted(properties_shown(spark, named, key).items())


def _set(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    properties, table = Jvm.of(spark).dictionary(plan.properties()), target.named.table

    return lambda: set_properties(spark, table, properties)


def set_properties(spark: SparkSession, table: Table, properties: Mapping[str, str]) -> None:
    """Run ALTER TABLE … SET TBLPROPERTIES with the session's settings, in both kinds of session.

    Raises `InvalidRequest` (``DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE``) and the errors of `tahoe.api.table.Table.set_properties`.
    """
    _check_removal_of_mapping(spark, table, [key for key, value in properties.items() if value.lower() == "none"])
    at_once = setting_of(spark, _FILES_PER_COMMIT)
    table.set_properties(dict(properties), files_per_commit=None if at_once is None else int(at_once))


def _unset(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    names, table = [str(key) for key in items(plan.propertyKeys())], target.named.table
    return lambda: unset_properties(spark, table, names)


def unset_properties(spark: SparkSession, table: Table, names: Sequence[str]) -> None:
    """Run ALTER TABLE … UNSET TBLPROPERTIES; as in delta-spark, with and without IF EXISTS, it ignores a property that is not set."""
    _check_removal_of_mapping(spark, table, names)
    table.unset_properties(list(names), if_exists=True)


_FILES_PER_COMMIT = "spark.databricks.delta.rowTracking.backfill.maxNumFiles"
_ALLOWS_REMOVAL = "spark.databricks.delta.columnMapping.allowRemoval"
_MODE = "delta.columnMapping.mode"


def _check_removal_of_mapping(spark: SparkSession, table: Table, names: Sequence[str]) -> None:
    """Reject the removal of column mapping, which rewrites every file, if the session forbids it."""
    if _MODE.lower() not in map(str.lower, names) or is_on(spark, _ALLOWS_REMOVAL, usual=True):
        return
    mode = table.snapshot().config.column_mapping_mode
    if mode != "none":
        raise InvalidRequest(
            f"Column mapping of table {table.url} cannot be changed from '{mode}' to 'none': {_ALLOWS_REMOVAL} is false in this session. "
            "Set it to true, since every file is then rewritten.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=table.url,
        )


def _cluster_by(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    spec = option_value(plan.clusterBySpec())
    columns = [] if spec is None else [column_text(reference) for reference in items(spec.columnNames())]
    table = target.named.table

    def run() -> None:
        table.cluster_by(columns)

    return run


PROPERTY_STATEMENTS = (
    SparkStatement(
        "SHOW TBLPROPERTIES",
        "ShowTableProperties",
        "table propertyKey output",
        on_table("table", _show),
        text_columns("key", "value"),
        is_query=True,
    ),
    SparkStatement("ALTER TABLE … SET TBLPROPERTIES", "SetTableProperties", "table properties", on_table("table", _set)),
    SparkStatement(
        "ALTER TABLE … UNSET TBLPROPERTIES", "UnsetTableProperties", "table propertyKeys ifExists", on_table("table", _unset)
    ),
    SparkStatement("ALTER TABLE … CLUSTER BY", "AlterTableClusterBy", "table clusterBySpec", on_table("table", _cluster_by)),
)


def shown_properties(spark: SparkSession, snapshot: Snapshot) -> dict[str, str]:
    """Return the configuration and the protocol, with the values redacted that Spark's settings declare secret."""
    protocol = snapshot.protocol
    properties = {
        **snapshot.metadata.configuration,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{name}": "supported" for name in (protocol.reader_features or ())},
        **{f"delta.feature.{name}": "supported" for name in (protocol.writer_features or ())},
    }
    return redacted(spark, properties)


def redacted(spark: SparkSession, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the values redacted that Spark's settings declare secret."""
    if not is_classic(spark):
        pattern = re.compile(str(spark.conf.get("spark.redaction.string.regex", _SECRET_KEYS) or _SECRET_KEYS))
        return {key: _REDACTED if pattern.search(key) else value for key, value in properties.items()}
    jvm = Jvm.of(spark)
    return jvm.dictionary(spark._jsparkSession.sessionState().conf().redactOptions(jvm.map(dict(properties))))


_SECRET_KEYS, _REDACTED = "(?i)secret|password|token|access[.]?key|credential", "*********(redacted)"


def properties_shown(spark: SparkSession, named: NamedTable, key: str | None) -> dict[str, str]:
    """Return the properties as in SHOW TBLPROPERTIES.

    Args:
        key: the only one; None for all.
    """
    properties = shown_properties(spark, named.table.snapshot())
    if key is None:
        return properties
    name = named.full_name if not named.is_by_path else f"{SESSION_CATALOG}.{named.full_name}"
    return {key: properties.get(key, f"Table {name} does not have property: {key}")}
