"""Delta's Java class ``io.delta.tables.DeltaTable`` for Python libraries that call it as ``spark._jvm.io.delta.tables.DeltaTable``.

MLflow reads the version of a table that way (docs/design/017). The class has the two methods by which a table is opened, and a table has
its history and detail. All other names below ``io`` are looked up in the JVM, and so is the class: the one of delta-spark's JAR is used if
it is there.
"""

# ruff: noqa: N802 - the names are Delta's

from __future__ import annotations

from typing import NoReturn

from py4j.java_gateway import JavaClass, JavaPackage
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.commands.frames import detail_frame, history_frame
from tahoe.spark.entry_points.wrapping import is_enabled
from tahoe.spark.jvm.bridge import JavaObject, Jvm, handle_of
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import delta_table_named

__all__ = ["add_java_delta_table"]

_PACKAGE = "io"
_CLASS = "io.delta.tables.DeltaTable"


def add_java_delta_table(spark: SparkSession) -> None:
    """Let the view of the JVM of a classic session find the class. A second call does nothing."""
    view = Jvm.of(spark).gateway.jvm
    vars(view).setdefault(_PACKAGE, _Package(_PACKAGE, view._gateway_client, view._id, spark))


class _Package(JavaPackage):  # type: ignore[misc]
    """A Java package on the path to the class."""

    def __init__(self, name: str, client: JavaObject, view: JavaObject, spark: SparkSession) -> None:
        super().__init__(name, client, view)
        self._spark = spark

    def __getattr__(self, name: str) -> object:
        full_name = f"{self._fqn}.{name}"
        if _CLASS.startswith(f"{full_name}."):
            return _Package(full_name, self._gateway_client, self._jvm_id, self._spark)
        member = super().__getattr__(name)  # py4j returns a package for each name that it does not find
        return _DeltaTableClass(self._spark) if full_name == _CLASS and not isinstance(member, JavaClass) else member


class _DeltaTableClass:
    """The static methods of the class.

    Args:
        spark: a session of the same application.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def forPath(self, session: JavaObject, path: str) -> _JavaDeltaTable:
        """Return the table at a path. Raises `tahoe.exceptions.NotFound` if there is none."""
        spark = self._enabled(session)
        return _JavaDeltaTable(spark, table_at(spark, path, {}))

    def forName(self, session: JavaObject, name: str) -> _JavaDeltaTable:
        """Return the table of a name in the session's catalog. Raises `tahoe.exceptions.InvalidRequest` if there is none."""
        spark = self._enabled(session)
        named = delta_table_named(spark, name)
        return _JavaDeltaTable(spark, named.table, None if named.entry is None else named.full_name)

    def _enabled(self, session: JavaObject) -> SparkSession:
        spark = handle_of(self._spark, session)
        if not is_enabled(spark):
            raise InvalidRequest(
                f"{_CLASS} needs a session in which Delta is enabled, and this one is not: tahoe.enable(spark).",
                code="TAHOE_SESSION_NOT_ENABLED",
            )
        return spark

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(name)


class _JavaDeltaTable:
    """A table as an object of the class; its frames are the JVM's."""

    def __init__(self, spark: SparkSession, table: Table, name: str | None = None) -> None:
        table.snapshot()  # raises an error unless there is a Delta table
        self._spark, self._table, self._name = spark, table, name

    def history(self, limit: int | None = None) -> JavaObject:
        """Return the commits in the table's log, newest first, at most `limit`."""
        return history_frame(self._spark, self._table, limit)._jdf

    def detail(self) -> JavaObject:
        """Return one row about the newest version."""
        return detail_frame(self._spark, self._table, self._name)._jdf

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(name)


def _refuse(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise Unsupported(
        f"{_CLASS}.{name} is not supported: Tahoe has no JAR. Use delta.tables.DeltaTable or tahoe.tables.DeltaTable in Python.",
        code="TAHOE_JAVA_METHOD_NOT_SUPPORTED",
        method=name,
    )
