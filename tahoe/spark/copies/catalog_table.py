"""A table of another format than Delta in the catalog, as CONVERT, CLONE and DESCRIBE DETAIL need it, in both kinds of session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import dirname

from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import quote_identifier, text_literal
from tahoe.schema.types import StructType, schema_from_json
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.entries import entry_of, location_of, unescaped
from tahoe.spark.names.new_entries import is_view
from tahoe.spark.names.server_catalog import (
    SESSION_CATALOG,
    ServerEntry,
    add_entry,
    drop_entry,
    plain_sql,
    rows_of_sql,
    server_entry,
)
from tahoe.store.location import split_url, table_url

_HIVE_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_TRANSIENT = "transient_lastDdlTime"


@dataclass(frozen=True, slots=True)
class CatalogTable(ABC):
    """An entry of the session's catalog.

    Args:
        spark: the session.
        parts: catalog, database and name.
        provider: the format, in lower case; ``hive`` for a table of Hive, ``unknown`` if the entry has none.
        location: the path or URL, unescaped; empty for a view, and for a table that has none, such as one of JDBC.
        is_view: whether it is a view.
    """

    spark: SparkSession
    parts: tuple[str, ...]
    provider: str
    location: str
    is_view: bool

    @property
    def name(self) -> str:
        """The full name, for errors."""
        return ".".join(self.parts)

    @property
    def quoted(self) -> str:
        """The full name in backticks."""
        return ".".join(map(quote_identifier, self.parts))

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table."""
        return self.provider == "delta"

    @property
    def is_parquet(self) -> bool:
        """Whether its files are Parquet."""
        return self.provider == "parquet"

    @abstractmethod
    def details(self) -> Mapping[str, object]:
        """Return the fields of the row of DESCRIBE DETAIL that are known; the others are null."""

    @abstractmethod
    def schema(self) -> StructType:
        """Return all columns."""

    @abstractmethod
    def partition_schema(self) -> StructType:
        """Return the partition columns."""

    @abstractmethod
    def properties(self) -> dict[str, str]:
        """Return the properties that the user has set."""

    @abstractmethod
    def partition_locations(self) -> Sequence[str]:
        """Return the paths or URLs of the partitions in the catalog, unescaped."""

    @abstractmethod
    def check_can_become_delta(self) -> None:
        """Raise an error if `become_delta` is not possible."""

    @abstractmethod
    def become_delta(self) -> None:
        """Make it the entry of the Delta table in its folder, whose log has all other metadata."""

    def folders_below(self, root: str) -> list[str]:
        """Return the folders of the partitions, relative to the table's folder.

        Args:
            root: the URL of the table's folder.

        Raises `Unsupported` (``TAHOE_PATH_OUTSIDE_TABLE``) for a partition elsewhere.
        """
        *store, folder = split_url(root)
        below = []
        for location in self.partition_locations():
            *own_store, path = split_url(table_url(location))
            if own_store != store or not path.startswith(f"{folder}/"):
                raise Unsupported(
                    f"The catalog has a partition of {self.name} at {table_url(location)}, which is not below the table's folder {root}: "
                    "paths of a table never leave its folder. Move the partition there first.",
                    code="TAHOE_PATH_OUTSIDE_TABLE",
                    table=root,
                    path=path,
                )
            below.append(path[len(folder) + 1 :])
        return below


def catalog_table(spark: SparkSession, parts: Sequence[str]) -> CatalogTable | None:
    """Return the entry with this name; None if there is none, and for temporary views, which take precedence."""
    if is_classic(spark):
        entry = entry_of(spark, parts)
        return None if entry is None else _of_session(spark, entry)
    on_server = server_entry(spark, parts)
    return None if on_server is None else _of_server(spark, on_server)


# -- classic sessions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SessionTable(CatalogTable):
    """An entry of a classic session's catalog.

    Args:
        entry: the ``CatalogTable`` of the JVM.
    """

    entry: JavaObject

    @property
    def is_parquet(self) -> bool:
        """See `CatalogTable.is_parquet`; those of Hive have a class for it."""
        serde = self.entry.storage().serde()
        of_hive = self.provider == "hive" and serde.isDefined() and str(serde.get()) == _HIVE_PARQUET
        return self.provider == "parquet" or of_hive

    def details(self) -> Mapping[str, object]:
        """See `CatalogTable.details`."""
        uri = self.entry.storage().locationUri()
        return {
            "format": str(self.entry.provider().get()) if self.entry.provider().isDefined() else None,
            "name": self.name,
            "description": str(self.entry.comment().get()) if self.entry.comment().isDefined() else "",
            "location": str(uri.get().toString()) if uri.isDefined() else None,
            "createdAt": datetime.fromtimestamp(self.entry.createTime() / 1000, UTC),
            "partitionColumns": [str(column) for column in items(self.entry.partitionColumnNames())],
            "properties": Jvm.of(self.spark).dictionary(self.entry.properties()),
        }

    def schema(self) -> StructType:
        """See `CatalogTable.schema`."""
        return schema_from_json(str(self.entry.schema().json()))

    def partition_schema(self) -> StructType:
        """See `CatalogTable.partition_schema`."""
        return schema_from_json(str(self.entry.partitionSchema().json()))

    def properties(self) -> dict[str, str]:
        """See `CatalogTable.properties`."""
        properties = Jvm.of(self.spark).dictionary(self.entry.properties())
        return {key: value for key, value in properties.items() if key != _TRANSIENT}

    def partition_locations(self) -> Sequence[str]:
        """See `CatalogTable.partition_locations`."""
        catalog, jvm = self.spark._jsparkSession.sessionState().catalog(), Jvm.of(self.spark)
        partitions = items(catalog.listPartitions(self.entry.identifier(), jvm.option(None)))
        return [location_of(copied(self.entry, storage=partition.storage())) for partition in partitions]

    def check_can_become_delta(self) -> None:
        """See `CatalogTable.check_can_become_delta`: every entry can."""

    def become_delta(self) -> None:
        """See `CatalogTable.become_delta`: the entry gets another provider."""
        jvm, catalog = Jvm.of(self.spark), self.spark._jsparkSession.sessionState().catalog()
        nothing = jvm.option(None)
        storage = copied(self.entry.storage(), inputFormat=nothing, outputFormat=nothing, serde=nothing)
        changed = copied(
            self.entry,
            provider=jvm.option("delta"),
            schema=jvm.java_class("org.apache.spark.sql.types.StructType")(),
            partitionColumnNames=jvm.seq(),
            properties=jvm.map({}),
            storage=storage,
        )
        catalog.alterTable(changed)
        catalog.refreshTable(self.entry.identifier())


def _of_session(spark: SparkSession, entry: JavaObject) -> CatalogTable:
    provider = str(entry.provider().get()).lower() if entry.provider().isDefined() else "unknown"
    parts = (SESSION_CATALOG, str(entry.database()), str(entry.identifier().table()))
    location = location_of(entry) if entry.storage().locationUri().isDefined() else ""
    return _SessionTable(spark, parts, provider, location, is_view(entry), entry)


# -- Spark Connect ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ServerTable(CatalogTable):
    """An entry of the catalog of a Spark Connect server, which the client knows from Spark's own statements."""

    entry: ServerEntry

    def details(self) -> Mapping[str, object]:
        """See `CatalogTable.details`."""
        described = {str(row[0]): str(row[1]) for row in rows_of_sql(self.spark, f"DESCRIBE TABLE EXTENDED {self.quoted}")}
        return {
            "format": described.get("Provider"),
            "name": self.name,
            "description": described.get("Comment", ""),
            "location": described.get("Location"),
            "createdAt": self._time(described.get("Created Time", "")),
            "partitionColumns": self.partition_schema().names,
            "properties": self.properties(),
        }

    def _time(self, text: str) -> datetime | None:
        """Return the time in a text of Java's ``Date``, such as ``Mon Nov 30 17:58:51 UTC 2026``."""
        time = text_literal(text.partition(" ")[2])
        (row,) = plain_sql(self.spark, f"SELECT unix_seconds(try_to_timestamp({time}, 'MMM dd HH:mm:ss zzz yyyy'))").collect()
        return None if row[0] is None else datetime.fromtimestamp(row[0], UTC)

    def schema(self) -> StructType:
        """See `CatalogTable.schema`."""
        return from_spark_schema(self.spark.table(self.quoted).schema)

    def partition_schema(self) -> StructType:
        """See `CatalogTable.partition_schema`."""
        columns = self.spark.catalog.listColumns(self.quoted)
        partitioned_by = {str(column.name) for column in columns if column.isPartition}
        return (
            StructType(tuple(column for column in self.schema() if column.name in partitioned_by))
            if partitioned_by
            else StructType(())
        )

    def properties(self) -> dict[str, str]:
        """See `CatalogTable.properties`."""
        return {str(row[0]): str(row[1]) for row in rows_of_sql(self.spark, f"SHOW TBLPROPERTIES {self.quoted}")}

    def partition_locations(self) -> Sequence[str]:
        """See `CatalogTable.partition_locations`: those with files. The server lists them with one request."""
        return sorted({dirname(unescaped(file)) for file in self.spark.table(self.quoted).inputFiles()})

    def check_can_become_delta(self) -> None:
        """See `CatalogTable.check_can_become_delta`: the server can only drop an entry and add another."""
        if self.entry.is_managed:
            raise Unsupported(
                f"In a session of Spark Connect, the managed table {self.name} cannot be converted by its name: its entry in the server's "
                f"catalog would have to be dropped, and its files with it. Convert its folder, {self.provider}.`{self.location}`, and "
                "give the folder a new name (CREATE TABLE … USING delta LOCATION …), or use a classic session.",
                code="TAHOE_SPARK_CONNECT",
                table=self.name,
            )

    def become_delta(self) -> None:
        """See `CatalogTable.become_delta`: an entry of the same name takes the place of the old one, which has no files of its own."""
        columns = self.spark.table(self.quoted).schema
        drop_entry(self.spark, self.parts)
        try:
            add_entry(self.spark, self.parts, columns, self.location, self.entry.comment)
        except BaseException as error:
            place = text_literal(self.location)
            error.add_note(
                f"{self.name} is converted, and has no entry now: CREATE TABLE {self.quoted} USING delta LOCATION {place}"
            )
            raise


def _of_server(spark: SparkSession, entry: ServerEntry) -> CatalogTable:
    provider = entry.provider or "unknown"
    return _ServerTable(spark, entry.parts, provider, entry.location, entry.is_view, entry)
