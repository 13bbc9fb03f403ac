"""What the session's catalog holds of a table: entries as delta-spark makes them, so that either reads what the other wrote.

An entry says where the table is, and who made it; schema, partitioning and properties are the log's, and are filled in from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import SparkSession

from tahoe.clock import SYSTEM_CLOCK
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT, Moment, defaults_of
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.jvm.spatial_types import check_geospatial_types
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.jvm.translate import with_shown_metadata
from tahoe.sql.table_name import TableName
from tahoe.table import Table

__all__ = [
    "SESSION_CATALOG",
    "NamedTable",
    "entry_at",
    "entry_of",
    "filled",
    "is_delta",
    "location_of",
    "parts_of",
    "path_of",
    "table_identifier",
    "table_named",
]

SESSION_CATALOG = "spark_catalog"
"""Spark's name of the one catalog of a session that holds Delta tables."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A Delta table as a statement named it.

    Args:
        table: the table itself.
        name: as the user wrote it.
        entry: what the session's catalog holds (a ``CatalogTable``); None for a table named by its path.
    """

    table: Table
    name: TableName
    entry: JavaObject | None = None

    @property
    def full_name_parts(self) -> tuple[str, ...]:
        """Catalog, database and name; of a table named by its path, what the user wrote."""
        if self.entry is None:
            return self.name.identifiers
        identifier = self.entry.identifier()
        return SESSION_CATALOG, str(identifier.database().get()), str(identifier.table())

    @property
    def full_name(self) -> str:
        """As the reference calls it: ``spark_catalog.db.t``, or ``delta.`/path` ``."""
        return str(self.name) if self.entry is None else ".".join(self.full_name_parts)


def table_named(spark: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    """The Delta table of that name in the session; None for every other name: a table of another format or catalog, a view, nothing.

    Args:
        parts: the identifiers of the name, as in ``spark_catalog.db.t``, ``db.t``, ``t`` or ``delta.`/path` ``.
    """
    entry = entry_of(spark, parts)
    if entry is not None:
        name = TableName(None, tuple(parts))
        return NamedTable(table_at(spark, location_of(entry), {}), name, entry) if is_delta(entry) else None
    path = path_of(parts)
    return None if path is None else NamedTable(table_at(spark, path, {}), TableName(path))


def parts_of(spark: SparkSession, name: str) -> tuple[str, ...]:
    """The identifiers of a name, as Spark reads it. Raises PySpark's ``ParseException`` for what is none."""
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return tuple(str(part) for part in items(parts))


def path_of(parts: Sequence[str]) -> str | None:
    """The path in ``delta.`/path` ``; None for another name, as ``delta.t`` is: the table `t` of a database of that name."""
    words = [part.lower() for part in parts[:-1]]
    return parts[-1] if words in (["delta"], [SESSION_CATALOG, "delta"]) and "/" in parts[-1] else None


def entry_of(spark: SparkSession, parts: Sequence[str]) -> JavaObject | None:
    """The ``CatalogTable`` of that name in the session's catalog; None where there is none, and for temporary views, which come first."""
    state = spark._jsparkSession.sessionState()
    if len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != SESSION_CATALOG):
        return None
    if len(parts) < 3 and str(state.catalogManager().currentCatalog().name()).lower() != SESSION_CATALOG:
        return None
    if len(parts) == 1 and state.catalog().getTempView(parts[0]).isDefined():
        return None
    identifier = table_identifier(Jvm.of(spark), parts)
    return entry_at(state.catalog(), identifier)


def entry_at(catalog: JavaObject, identifier: JavaObject) -> JavaObject | None:
    """The ``CatalogTable`` under a ``TableIdentifier`` in a ``SessionCatalog``; None where there is none."""
    return catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None


def table_identifier(jvm: Jvm, parts: Sequence[str]) -> JavaObject:
    """Spark's ``TableIdentifier`` of a name of at most three parts."""
    database, catalog = (parts[-2] if len(parts) > 1 else None), (parts[-3] if len(parts) > 2 else None)
    return jvm.catalyst("TableIdentifier")(parts[-1], jvm.option(database), jvm.option(catalog))


def is_delta(entry: JavaObject) -> bool:
    """Whether an entry is one of a Delta table."""
    provider = entry.provider()
    return provider.isDefined() and str(provider.get()).lower() == "delta"


def location_of(entry: JavaObject) -> str:
    """The path or URL of the table that an entry names, as it is: what a URI writes as ``%20`` is a space."""
    uri = entry.location()
    text = str(uri.toString())
    # Hadoop's `Path` reads a URI so. Without a percent sign there is nothing to read, and no further call to pay.
    return text if "%" not in text else unquote(text)


def filled(jvm: Jvm, entry: JavaObject, snapshot: Snapshot, writing: SparkSession | None = None) -> JavaObject:
    """The entry with the schema and the partition columns of a version, as Spark's analyzer wants them.

    Args:
        writing: the session, for a statement that writes: it shall know the columns' default values. None for one that reads.
    """
    schema = with_shown_metadata(snapshot.schema)
    if writing is not None:
        schema = _with_defaults(schema, snapshot, writing)
    check_geospatial_types(schema)
    return copied(
        entry,
        schema=jvm.data_type(schema.to_json()),
        partitionColumnNames=jvm.seq(*snapshot.partition_columns),
    )


def _with_defaults(shown: StructType, snapshot: Snapshot, spark: SparkSession) -> StructType:
    """The columns with their defaults under Spark's keys, which Spark reads as SQL: not the table's texts, but what was understood of
    them."""
    config, moment = snapshot.config, Moment(SYSTEM_CLOCK.now_ms(), str(spark.conf.get("spark.sql.session.timeZone")))
    if "allowColumnDefaults" not in config.features:
        return shown
    written = written_default(spark, config.table)
    texts = {one.column.name: written(one) for one in defaults_of(config.schema, config.table, moment)}
    return StructType(
        tuple(
            replace(column, metadata={**column.metadata, CURRENT_DEFAULT: texts[column.name], EXISTS_DEFAULT: "NULL"})
            if column.name in texts
            else column
            for column in shown
        )
    )
