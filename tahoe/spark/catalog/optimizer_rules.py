"""Optimizer rules that intercept writes and commands, whichever way they arrive, in Python.

    PlannedWrites    a write by a table's name: the writer gets its plan
    RawCommands      Spark's own command on a Delta table, which would change it without its log: an error
    DroppedNames     DROP and RENAME of tables with a coordinator: the coordinator is notified after Spark has run the command

Rules are classes, so each is compiled (`tahoe.spark.jvm.compiled`). Copies of a session have its rules too; a second call adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import add_optimizer_rule
from tahoe.spark.jvm.proxies import Proxied, answered, is_proxy
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import COORDINATOR, table_at
from tahoe.spark.names.entries import SESSION_CATALOG, entry_at, is_delta, location_of, table_identifier
from tahoe.spark.names.new_entries import is_managed
from tahoe.spark.statements.command import Command, as_plan
from tahoe.spark.versions.execute_immediate import HINT
from tahoe.spark.versions.members import has_field
from tahoe.store.location import table_url

PLANNED = "java.util.function.Consumer"
"""The interface of a writer that receives its plan."""


def plan_writes(spark: SparkSession) -> None:
    """Pass the plans of writes by a table's name to their writers, which are thus aware whether columns are matched by name.

    A dynamic partition overwrite, which Spark plans only for writers in the JVM, becomes an append; its writer replaces the partitions
    (`tahoe.spark.catalog.writable`).
    """
    add_optimizer_rule(spark, "PlannedWrites", lambda: _PlannedWrites(Jvm.of(spark)))


class _PlannedWrites(Proxied):
    """``plan → plan``."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    @answered
    def apply(self, plan: JavaObject) -> JavaObject:
        """Return the append for a Delta table; the plan itself for every other table."""
        write = plan.write()
        if write.isEmpty() or not is_proxy(write.get()):
            return plan
        write.get().accept(plan)
        if str(plan.nodeName()) != "OverwritePartitionsDynamic":
            return plan
        # An append has the fields of an overwrite, and the query that becomes the DataFrame.
        parts = items(plan.productIterator().toSeq())
        return self._jvm.catalyst("plans.logical.AppendData")(*parts, self._jvm.option(plan.query()))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


# These correctly change only catalog entries.
_OF_ENTRIES = ("AlterTableRenameCommand", "AlterTableRename", "AlterTableSetLocationCommand", "AlterTableSetLocation")


def refuse_raw_commands(spark: SparkSession) -> None:
    """Reject Spark's own commands that would change a Delta table without its log.

    The parser turns statements on Delta tables into Tahoe's commands (`tahoe.spark.statements`). The text of EXECUTE IMMEDIATE may
    have passed another parser (`tahoe.spark.versions.execute_immediate`); such commands would truncate files, or alter only the catalog
    entry.
    """
    add_optimizer_rule(spark, "RawCommands", lambda: _RawCommandCheck(spark))


class _RawCommandCheck(Proxied):
    """``command → command``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, command: JavaObject) -> JavaObject:
        """Return the command itself. Raises `Unsupported` for a command on a Delta table."""
        kind = str(command.getClass().getSimpleName())
        field = next((name for name in ("tableName", "table") if has_field(command, name)), None)
        if kind in _OF_ENTRIES or field is None:
            return command
        identifier = getattr(command, field)()
        if str(identifier.getClass().getSimpleName()) != "TableIdentifier":
            return command
        entry = entry_at(self._spark._jsparkSession.sessionState().catalog(), identifier)
        if entry is not None and is_delta(entry):
            name = str(entry.identifier().unquotedString())
            raise Unsupported(
                f"{kind} would change table {name} past its log; nothing was changed. {HINT}",
                code="DELTA_OPERATION_NOT_ALLOWED",
                table=name,
            )
        return command

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


def notify_coordinator(spark: SparkSession) -> None:
    """Notify the coordinators of dropped and renamed tables, in sessions with a coordinator.

    Spark's own commands delete and move the folders of managed tables without notifying the coordinator: a new table at the same location
    would see the commits of its predecessor, and a renamed table would be unknown. An external table stays in place when its name is
    dropped, and so does the coordinator's knowledge of it.
    """
    add_optimizer_rule(spark, "DroppedNames", lambda: _NameCommands(spark), coordinator=COORDINATOR)


class _NameCommands(Proxied):
    """``command → command``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @answered
    def apply(self, command: JavaObject) -> JavaObject:
        """Return the command itself, or one that also notifies the coordinator afterwards."""
        session_command = self._session_catalog_command(command)
        if session_command is None:
            return command
        kind = str(session_command.nodeName())
        if kind.startswith("DropTable"):
            tables = [] if session_command.isView() else [session_command.tableName()]
        elif kind.startswith("DropDatabase"):
            tables = self._tables_in(session_command)
        else:
            return self._renamed(session_command)
        stores = [store for table in tables if (store := self._coordinated(table)) is not None]
        return self._then(session_command, partial(_forget, stores)) if stores else command

    def _session_catalog_command(self, command: JavaObject) -> JavaObject | None:
        """Return Spark's command for its own catalog; the general command for all catalogs does the same there."""
        jvm, kind = Jvm.of(self._spark), str(command.nodeName())
        if kind not in ("DropTable", "DropNamespace"):
            return command if has_field(command, "isView") or has_field(command, "cascade") else None
        named = command.child()
        if not str(named.getClass().getSimpleName()).startswith("Resolved") or str(named.catalog().name()) != SESSION_CATALOG:
            return None
        commands = "org.apache.spark.sql.execution.command"
        if kind == "DropNamespace":
            database = ".".join(str(part) for part in items(named.namespace()))
            return jvm.java_class(f"{commands}.DropDatabaseCommand")(database, command.ifExists(), command.cascade())
        parts = [str(part) for part in (*named.identifier().namespace(), named.identifier().name())]
        if len(parts) != 2:
            return None
        identifier = table_identifier(jvm, (SESSION_CATALOG, *parts))
        return jvm.java_class(f"{commands}.DropTableCommand")(identifier, command.ifExists(), False, command.purge())

    def _renamed(self, command: JavaObject) -> JavaObject:
        old, new = command.oldName(), command.newName()
        store = None if command.isView() else self._coordinated(old)
        if store is None:
            return command

        def move(store: CoordinatedStore) -> None:
            database = old.database() if new.database().isEmpty() else new.database()
            entry = entry_at(self._catalog, Jvm.of(self._spark).catalyst("TableIdentifier")(new.table(), database))
            if entry is not None and (url := table_url(location_of(entry))) != store.url:
                store.coordinator.move(store.url, url)

        return self._then(command, partial(move, store))

    def _then(self, command: JavaObject, notify: Callable[[], None]) -> JavaObject:
        def run() -> None:
            command.run(self._spark._jsparkSession)  # it returns no rows
            notify()

        return as_plan(self._spark, Command(str(command.nodeName()), run))

    @property
    def _catalog(self) -> JavaObject:
        return self._spark._jsparkSession.sessionState().catalog()

    def _tables_in(self, command: JavaObject) -> list[JavaObject]:
        name = command.databaseName()
        if not command.cascade() or not self._catalog.databaseExists(name):
            return []
        return list(items(self._catalog.listTables(name)))

    def _coordinated(self, identifier: JavaObject) -> CoordinatedStore | None:
        """Return the storage of a managed Delta table that a coordinator manages, otherwise None."""
        entry = None if self._catalog.isTempView(identifier) else entry_at(self._catalog, identifier)
        if entry is None or not is_delta(entry) or not is_managed(entry):
            return None
        store = table_at(self._spark, location_of(entry), {}).store
        return store if isinstance(store, CoordinatedStore) and store.managed() is not None else None

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


def _forget(stores: list[CoordinatedStore]) -> None:
    for store in stores:
        if next(store.inner.walk("_delta_log"), None) is not None:
            raise InvalidRequest(
                f"The name of table {store.url} is dropped and its log is still there, so that {store.coordinator!r} goes on to manage it. "
                "Delete the folder, and call the coordinator's forget(table.url).",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                table=store.url,
            )
        store.coordinator.forget(store.url)
