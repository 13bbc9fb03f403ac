"""The changes of a Delta table for ``spark.read.changes`` and CHANGES clauses, which Spark resolves by its catalog since 4.2."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.names.requested_changes import other_options, request_of
from tahoe.spark.scan.change_feed import read_requested_changes


def recorded_changes(spark: SparkSession, table: Table, context: JavaObject) -> JavaObject:
    """Return the ``Changelog`` of a table.

    Args:
        context: of ``TableCatalog.loadChangelog``. Its options are left out: since Spark 4.3 they are incomplete, unlike those of a scan.

    Raises the errors of a query of the changes.
    """
    rows = _Rows(spark, table, context)
    return compiled_object(Jvm.of(spark), "RecordedChanges", table.url, rows.without_options._jdf.schema(), rows)


class _Rows(Proxied):
    """``options of a scan → rows``."""

    def __init__(self, spark: SparkSession, table: Table, context: JavaObject) -> None:
        self._spark, self._table, self._context = spark, table, context

    @cached_property
    def without_options(self) -> DataFrame:
        """The requested changes for a scan without options of its own. Raises as `_with`."""
        return self._with({})

    @answered
    def apply(self, options: JavaObject) -> JavaObject:
        """Return the rows for the options of a scan."""
        others = other_options(Jvm.of(self._spark).options(options))
        return (self._with(others) if others else self.without_options)._jdf

    def _with(self, options: Mapping[str, str]) -> DataFrame:
        """Return the requested changes.

        Raises: see `tahoe.spark.names.requested_changes.request_of` and `tahoe.spark.scan.change_feed.read_requested_changes`.
        """
        return read_requested_changes(self._spark, self._table, request_of(self._spark, self._context, options))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)
