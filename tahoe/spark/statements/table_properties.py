"""Properties of a Delta table: SHOW TBLPROPERTIES, and ALTER TABLE … SET and UNSET TBLPROPERTIES, as the parser made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.frames import text_columns
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import target_of
from tahoe.table import Table

__all__ = ["PROPERTY_STATEMENTS", "SHOWN_PROPERTIES", "shown_properties"]

SHOWN_PROPERTIES = text_columns("key", "value")
"""The columns of SHOW TBLPROPERTIES."""


def _show(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    key = str(plan.propertyKey().get()) if plan.propertyKey().isDefined() else None
    table = target.named.table
    return Command("SHOW TBLPROPERTIES", lambda: sorted(_shown(spark, table, key).items()), SHOWN_PROPERTIES)


def _set(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    properties, table = Jvm.of(spark).dictionary(plan.properties()), target.named.table

    def run() -> None:
        table.set_properties(properties)

    return Command("ALTER TABLE … SET TBLPROPERTIES", run)


def _unset(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    names, if_exists = [str(key) for key in items(plan.propertyKeys())], bool(plan.ifExists())
    table = target.named.table

    def run() -> None:
        table.unset_properties(names, if_exists=if_exists)

    return Command("ALTER TABLE … UNSET TBLPROPERTIES", run)


PROPERTY_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "ShowTableProperties": _show,
    "SetTableProperties": _set,
    "UnsetTableProperties": _unset,
}
"""By the name of the plan's node."""


def shown_properties(spark: SparkSession, snapshot: Snapshot) -> dict[str, str]:
    """The configuration, and the protocol, without what Spark's settings say is secret."""
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


def _shown(spark: SparkSession, table: Table, key: str | None) -> dict[str, str]:
    """As SHOW TBLPROPERTIES tells them."""
    told = shown_properties(spark, table.snapshot())
    if key is None:
        return told
    return {key: told.get(key, f"Table {table.url} does not have property: {key}")}
