"""`spark_catalog` of a session: for readers and commands, a Delta table is a ``V1Table`` with the schema of its log; for writers, it is a
table that takes a DataFrame (`tahoe.spark.catalog.writable`).

A requested version is stored in the entry's catalog name, where the cache of relations finds it and no name in a query refers to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.catalog.described_names import DescribedName, describing
from tahoe.spark.catalog.recorded_changes import recorded_changes
from tahoe.spark.catalog.relation_cache import LoadedTable, LoadedTables
from tahoe.spark.catalog.writable import writable
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.jvm.records import copied, created
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import SESSION_CATALOG, entry_at, filled, is_delta, location_of, path_of, table_identifier
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.options import ReadRequest, travelling, version_of
from tahoe.spark.names.snapshots import requested_snapshot
from tahoe.spark.versions.table_context import Travel, requested

_CONNECTOR = "org.apache.spark.sql.connector"


def session_catalog(spark: SparkSession, original: JavaObject, entries: JavaObject, answers: object) -> JavaObject:
    """Return the proxy for Spark's own session catalog.

    Args:
        original: Spark's own catalog.
        entries: the ``SessionCatalog`` with the entries of its tables.
        answers: `CatalogAnswers`, or a JVM function as for `tahoe.spark.jvm.proxies.proxy`.
    """
    return proxy(
        spark,
        original,
        answers,
        ["dropTable", "loadChangelog", "loadTable", "purgeTable", "tableExists"],
        _interfaces(original),
        described=describing(Jvm.of(spark), entries),
    )


def _interfaces(original: JavaObject) -> list[str]:
    """Return the connector interfaces of Spark's own catalog. The many copies of a session have catalogs of the same class."""
    kind = original.getClass()
    name = str(kind.getName())
    if name not in _INTERFACES:
        names = [str(interface.getName()) for interface in kind.getInterfaces()]
        _INTERFACES[name] = [name for name in names if name.startswith(_CONNECTOR)]
    return _INTERFACES[name]


_INTERFACES: dict[str, list[str]] = {}


_MOST_CACHED = 64


@dataclass(frozen=True, slots=True)
class _CachedTable:
    """A table returned to readers: reused while entry and version are the same, because creating it takes dozens of calls."""

    snapshot: Snapshot
    key: str
    table: JavaObject


class CatalogAnswers:
    """The methods answered in Python.

    Args:
        original: Spark's own catalog.
        spark: the session whose catalog it is.
        entries: its ``SessionCatalog``, with the entries of its tables.
        tables: records the loaded tables.
    """

    def __init__(self, original: JavaObject, spark: SparkSession, entries: JavaObject, tables: LoadedTables) -> None:
        self._original, self._spark, self._entries, self._loaded_tables, self._jvm = (
            original,
            spark,
            entries,
            tables,
            Jvm.of(spark),
        )
        self._cached: dict[DescribedName, _CachedTable] = {}

    def loadTable(self, described: str, subject: JavaObject, *how: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """Return the table with this name; a Delta table in the requested version, or a writable one.

        Args:
            described: the text that `DescribedName` parses.
            subject: the entry that it describes; the ``Identifier`` if it describes none.
            how: see `tahoe.spark.versions.table_context.requested`.
        """
        name = DescribedName.of(described)
        path = path_of(name.parts)
        if path is not None:
            return self._at_path(name.parts, path, *how)
        if name.entry_number is not None:
            return self._loaded(name, lambda: subject, table_at(self._spark, name.location, {}), *how)
        if (travelled := self._travelled(name.parts)) is not None:
            return travelled
        self._loaded_tables.forget("\0".join((SESSION_CATALOG, *name.parts)))
        return self._original.loadTable(subject, *how)

    def loadChangelog(self, described: str, subject: JavaObject, context: JavaObject, options: JavaObject) -> JavaObject:  # noqa: N802
        """Return the changes of the Delta table with this name; Spark calls this since 4.2. The arguments are those of `loadTable`."""
        name = DescribedName.of(described)
        location = path_of(name.parts)
        if location is None and name.entry_number is not None:
            location = name.location
        if location is None:
            self._original.loadTable(subject)  # if no table has the name, its error says so
            return self._original.loadChangelog(subject, context, options)
        return recorded_changes(self._spark, table_at(self._spark, location, {}), context)

    # ``TableNames.java`` answers these for Delta tables.

    def tableExists(self, _: str, name: JavaObject) -> bool:  # noqa: N802 - Spark's name
        """Return whether there is a table at a path, or with a name that the catalog cannot have."""
        return bool(self._original.tableExists(name))

    def dropTable(self, _: str, name: JavaObject) -> bool:  # noqa: N802 - Spark's name
        """Drop a table that is no Delta table; return whether there was one."""
        return bool(self._original.dropTable(name))

    def purgeTable(self, _: str, name: JavaObject) -> bool:  # noqa: N802 - Spark's name
        """Drop a table that is no Delta table as `dropTable`, and do not move its files to the trash."""
        return bool(self._original.purgeTable(name))

    def _travelled(self, parts: tuple[str, ...]) -> JavaObject | None:
        """Resolve ``name@v3`` to a version of the table `name`, if no table has the full name."""
        if len(parts) != 2 or "@" not in parts[1] or self._entry(parts) is not None:
            return None
        request = travelling(ReadRequest(parts[1]))
        entry = None if request is None else self._entry((parts[0], request.path))
        if request is None or entry is None or not is_delta(entry):
            return None
        snapshot = requested_snapshot(self._spark, replace(request, path=location_of(entry)), {})
        return self._reader_table(entry, snapshot, LoadedTable(snapshot, None), travelled=True)

    def _entry(self, parts: tuple[str, ...]) -> JavaObject | None:
        return entry_at(self._entries, table_identifier(self._jvm, parts))

    def _at_path(self, parts: tuple[str, ...], path: str, *how: JavaObject) -> JavaObject:
        table = table_at(self._spark, path, {})
        entry = partial(self._path_entry, parts[0], path)
        if "@" in path and not table.exists() and (request := travelling(ReadRequest(path))) is not None:
            # ``path@v3``, if there is no table at this path.
            snapshot = requested_snapshot(self._spark, request, {})
            return self._reader_table(entry(), snapshot, LoadedTable(snapshot, None))
        return self._loaded(DescribedName(parts, None, path), entry, table, *how)

    def _path_entry(self, database: str, path: str) -> JavaObject:
        jvm = self._jvm
        identifier = table_identifier(jvm, (SESSION_CATALOG, database, path))
        location = jvm.java_class("org.apache.hadoop.fs.Path")(path).toUri()
        storage = copied(jvm.catalyst("catalog.CatalogStorageFormat").empty(), locationUri=jvm.option(location))
        schema = jvm.java_class("org.apache.spark.sql.types.StructType")()
        kind = jvm.catalyst("catalog.CatalogTableType").EXTERNAL()
        return created(jvm, "catalog.CatalogTable", identifier, kind, storage, schema, jvm.option("delta"))

    def _loaded(self, name: DescribedName, entry: Callable[[], JavaObject], table: Table, *how: JavaObject) -> JavaObject:
        """Return the table with a name.

        Args:
            entry: gets the entry from the catalog, or creates one for a path.
        """
        travel, writes = requested(*how)
        snapshot = _snapshot(table, travel)
        if writes:
            return writable(self._spark, self._v1(filled(self._jvm, entry(), snapshot, self._spark)), table, snapshot.config)
        if travel is not None:
            return self._reader_table(entry(), snapshot, LoadedTable(snapshot, None), travelled=True)
        cached = self._cached.get(name)
        if cached is not None and cached.snapshot is snapshot:
            self._loaded_tables.record(cached.key, LoadedTable(snapshot, table))
            return cached.table
        return self._reader_table(entry(), snapshot, LoadedTable(snapshot, table), cache_key=name)

    def _reader_table(
        self,
        entry: JavaObject,
        snapshot: Snapshot,
        loaded: LoadedTable,
        *,
        travelled: bool = False,
        cache_key: DescribedName | None = None,
    ) -> JavaObject:
        """Return the table for readers; the cache of relations will return its plan."""
        filled_entry = filled(self._jvm, entry, snapshot)
        identifier = filled_entry.identifier()
        if travelled:
            identifier = copied(identifier, catalog=self._jvm.option(f"{SESSION_CATALOG}@{snapshot.version}"))
            filled_entry = copied(filled_entry, identifier=identifier)
        key, table = _key(identifier), self._v1(filled_entry)
        self._loaded_tables.record(key, loaded)
        if cache_key is not None:
            while len(self._cached) >= _MOST_CACHED:
                self._cached.pop(next(iter(self._cached)), None)
            self._cached[cache_key] = _CachedTable(snapshot, key, table)
        return table

    def _v1(self, entry: JavaObject) -> JavaObject:
        return self._jvm.java_class(f"{_CONNECTOR}.catalog.V1Table")(entry)


def _key(identifier: JavaObject) -> str:
    return "\0".join(str(part) for part in (identifier.catalog().get(), identifier.database().get(), identifier.table()))


def _snapshot(table: Table, travel: Travel) -> Snapshot:
    with reading(table):
        if isinstance(travel, int):
            return table.snapshot(timestamp=datetime.fromtimestamp(travel / 1_000_000, UTC))
        return table.snapshot(None if travel is None else version_of(travel))
