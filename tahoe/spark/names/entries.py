"""A table's entries in the session's catalog, in delta-spark's form, so that each can read the other's entries.

An entry contains the table's location and owner; schema, partitioning and properties come from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK, Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT, defaults_of
from tahoe.protocol.features import Feature
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.jvm.translate import with_shown_metadata
from tahoe.spark.names.server_catalog import ServerEntry, server_entry, server_relation
from tahoe.spark.versions.column_types import check_column_types
from tahoe.sql.table_name import TableName, table_name

SESSION_CATALOG = "spark_catalog"
"""Spark's name of the only catalog of a session that contains Delta tables."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A Delta table named in a statement.

    Args:
        table: the table itself.
        name: in the user's spelling.
        entry: the session catalog's entry (a ``CatalogTable``); None for a table named by its path, and in a session of Spark Connect.
        on_server: the entry in a session of Spark Connect.
    """

    table: Table
    name: TableName
    entry: JavaObject | None = None
    on_server: ServerEntry | None = None

    @property
    def full_name_parts(self) -> tuple[str, ...]:
        """Catalog, database and name; the user's spelling for a table named by its path."""
        if self.on_server is not None:
            return self.on_server.parts
        if self.entry is None:
            return self.name.identifiers
        identifier = self.entry.identifier()
        return SESSION_CATALOG, str(identifier.database().get()), str(identifier.table())

    @property
    def full_name(self) -> str:
        """The name in delta-spark's form: ``spark_catalog.db.t``, or ``delta.`/path` ``."""
        return str(self.name) if self.is_by_path else ".".join(self.full_name_parts)

    @property
    def is_managed(self) -> bool:
        """Whether the catalog has an entry, which owns the table's folder."""
        if self.on_server is not None:
            return self.on_server.is_managed
        return self.entry is not None and str(self.entry.tableType().name()) == "MANAGED"

    @property
    def is_by_path(self) -> bool:
        """Whether it is named by its path."""
        return self.entry is None and self.on_server is None


def table_named(spark: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    """Return the Delta table with this name in the session; None for every other name: a table of another format or catalog, a view,
    nothing.

    Args:
        parts: the identifiers of the name, as in ``spark_catalog.db.t``, ``db.t``, ``t`` or ``delta.`/path` ``.
    """
    if not is_classic(spark):
        return _table_on_server(spark, parts)
    entry = entry_of(spark, parts)
    if entry is not None:
        name = TableName(None, tuple(parts))
        return NamedTable(table_at(spark, location_of(entry), {}), name, entry) if is_delta(entry) else None
    path = path_of(parts)
    return None if path is None else NamedTable(table_at(spark, path, {}), TableName(path))


def delta_table_named(spark: SparkSession, name: str) -> NamedTable:
    """Return the Delta table of a name, which Spark parses. Raises `InvalidRequest` (`DELTA_MISSING_DELTA_TABLE`) if there is none."""
    match = table_named(spark, parts_of(spark, name))
    if match is None:
        raise InvalidRequest(
            f"{name} is not a Delta table. Name one by its name in the catalog, or by its path: DeltaTable.forPath(spark, path).",
            code="DELTA_MISSING_DELTA_TABLE",
            table=name,
        )
    return match


def _table_on_server(spark: SparkSession, parts: Sequence[str]) -> NamedTable | None:
    relation = relation_on_server(spark, parts)
    return relation if isinstance(relation, NamedTable) else None


def relation_on_server(spark: SparkSession, parts: Sequence[str]) -> NamedTable | ServerEntry | None:
    """Return what has this name in a session of Spark Connect: a Delta table, or the entry of a view or a table of another format."""
    path = path_of(parts)
    if path is not None:
        return NamedTable(table_at(spark, path, {}), TableName(path))
    entry = server_relation(spark, parts)
    if entry is None or not entry.is_delta:
        return entry
    return NamedTable(table_at(spark, entry.location, {}), TableName(None, tuple(parts)), on_server=entry)


def parts_of(spark: SparkSession, name: str) -> tuple[str, ...]:
    """Return the identifiers of a name, parsed by Spark. Raises PySpark's ``ParseException`` for an invalid name."""
    if not is_classic(spark):
        parsed = table_name(name)
        return (name,) if parsed is None else parsed.identifiers
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return tuple(str(part) for part in items(parts))


def path_of(parts: Sequence[str]) -> str | None:
    """Return the path in ``delta.`/path` ``; None for another name such as ``delta.t``: the table `t` of a database named delta."""
    words = [part.lower() for part in parts[:-1]]
    return parts[-1] if words in (["delta"], [SESSION_CATALOG, "delta"]) and "/" in parts[-1] else None


def entry_of(spark: SparkSession, parts: Sequence[str]) -> JavaObject | None:
    """Return the ``CatalogTable`` with this name in the session's catalog; None if there is none, and for temporary views, which take
    precedence.
    """
    state = spark._jsparkSession.sessionState()
    if len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != SESSION_CATALOG):
        return None
    if len(parts) < 3 and str(state.catalogManager().currentCatalog().name()).lower() != SESSION_CATALOG:
        return None
    if len(parts) == 1 and state.catalog().getTempView(parts[0]).isDefined():
        return None
    identifier = table_identifier(Jvm.of(spark), parts)
    return entry_at(state.catalog(), identifier)


def has_entry(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return whether the session's catalog has a table or a permanent view with this name; a temporary view takes precedence."""
    return (entry_of(spark, parts) if is_classic(spark) else server_entry(spark, parts)) is not None


def entry_at(catalog: JavaObject, identifier: JavaObject) -> JavaObject | None:
    """Return the ``CatalogTable`` for a ``TableIdentifier`` in a ``SessionCatalog``, or None."""
    return catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None


def table_identifier(jvm: Jvm, parts: Sequence[str]) -> JavaObject:
    """Return Spark's ``TableIdentifier`` for a name of at most three parts."""
    database, catalog = (parts[-2] if len(parts) > 1 else None), (parts[-3] if len(parts) > 2 else None)
    return jvm.catalyst("TableIdentifier")(parts[-1], jvm.option(database), jvm.option(catalog))


def is_delta(entry: JavaObject) -> bool:
    """Return whether an entry is that of a Delta table."""
    provider = entry.provider()
    return provider.isDefined() and str(provider.get()).lower() == "delta"


def location_of(entry: JavaObject) -> str:
    """Return the unescaped path or URL of the table in an entry: ``%20`` in the URI becomes a space."""
    return unescaped(str(entry.location().toString()))


def unescaped(uri: str) -> str:
    """Return the path or URL of an entry's URI: ``%20`` becomes a space, as in Hadoop's ``Path``."""
    return unquote(uri)


def filled(jvm: Jvm, entry: JavaObject, snapshot: Snapshot, writing: SparkSession | None = None) -> JavaObject:
    """Return the entry with the schema and the partition columns of a version, as Spark's analyzer expects them.

    Args:
        writing: the session, for a statement that writes: the schema then includes column defaults. None for one that reads.
    """
    schema = with_shown_metadata(snapshot.schema)
    if writing is not None:
        schema = _with_defaults(schema, snapshot, writing)
    check_column_types(schema)
    return copied(
        entry,
        schema=jvm.data_type(schema.to_json()),
        partitionColumnNames=jvm.seq(*snapshot.partition_columns),
    )


def _with_defaults(schema: StructType, snapshot: Snapshot, spark: SparkSession) -> StructType:
    """Return the columns with their defaults under Spark's keys, which Spark reads as SQL: not the table's texts, but texts generated from
    their parsed form.
    """
    config, moment = snapshot.config, Moment(SYSTEM_CLOCK.now_ms(), str(spark.conf.get("spark.sql.session.timeZone")))
    if Feature.ALLOW_COLUMN_DEFAULTS not in config.features:
        return schema
    written = written_default(spark, config.table)
    texts = {default.column.name: written(default) for default in defaults_of(config.schema, config.table, moment)}
    return StructType(
        tuple(
            replace(column, metadata={**column.metadata, CURRENT_DEFAULT: texts[column.name], EXISTS_DEFAULT: "NULL"})
            if column.name in texts
            else column
            for column in schema
        )
    )
