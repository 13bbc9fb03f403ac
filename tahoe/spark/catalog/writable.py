"""A Delta table as Spark's writers see it: table, builder of a write, the write, and the relation that takes the rows, in one.

Spark resolves INSERT, append and overwrite against the table's schema, casts, and hands over a DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tahoe.spark.catalog.condition_text import condition_text
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import insert_request
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.names.settings import settings_of
from tahoe.table import Table

__all__ = ["writable"]

_SQL = "org.apache.spark.sql"
# Spark asks for BATCH_WRITE where partitions are overwritten, though it then gets an append (`tahoe.spark.catalog.dynamic_overwrite`).
_CAPABILITIES = ("V1_BATCH_WRITE", "BATCH_WRITE", "OVERWRITE_BY_FILTER", "TRUNCATE", "OVERWRITE_DYNAMIC")


def writable(spark: SparkSession, shown: JavaObject, table: Table) -> JavaObject:
    """The table for one statement to write to.

    Args:
        shown: Spark's ``V1Table`` of it, whose name, columns and partitioning it has.
    """
    answers = _WritableTable(spark, table)
    answers.itself = stand_in(spark, shown, answers, _METHODS, _INTERFACES)
    return answers.itself


_INTERFACES = (
    f"{_SQL}.connector.catalog.SupportsWrite",
    f"{_SQL}.connector.write.SupportsOverwriteV2",
    f"{_SQL}.connector.write.SupportsDynamicOverwrite",
    f"{_SQL}.connector.write.V1Write",
    f"{_SQL}.sources.InsertableRelation",
)
_METHODS = (
    *("capabilities", "newWriteBuilder", "truncate", "canOverwrite", "overwrite", "overwriteDynamicPartitions", "build"),
    *("toInsertableRelation", "description", "supportedCustomMetrics", "reportDriverMetrics", "insert"),
)


class _WritableTable:
    """What Python answers; most of it is `itself`."""

    itself: JavaObject

    def __init__(self, spark: SparkSession, table: Table) -> None:
        self._spark, self._jvm, self._table = spark, Jvm.of(spark), table
        self._options: Mapping[str, str] = {}
        self._mode, self._where, self._by_partition = "append", "", False

    # -- Table and SupportsWrite -------------------------------------------------------------------------------------------

    def capabilities(self) -> JavaObject:
        """What Spark's planner may do with the table."""
        kind, abilities = (
            self._jvm.java_class(f"{_SQL}.connector.catalog.TableCapability"),
            self._jvm.java_class("java.util.HashSet")(),
        )
        for name in _CAPABILITIES:
            abilities.add(kind.valueOf(name))
        return abilities

    def newWriteBuilder(self, info: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """Itself, with the options of the writer."""
        self._options = self._jvm.options(info.options())
        return self.itself

    # -- WriteBuilder ------------------------------------------------------------------------------------------------------

    def truncate(self) -> JavaObject:
        """All rows are replaced."""
        return self.overwrite([])

    def canOverwrite(self, predicates: JavaObject) -> bool:  # noqa: N802 - Spark's name
        """Any predicate is taken; what cannot be said is refused when it is given."""
        return True

    def overwrite(self, predicates: JavaObject) -> JavaObject:
        """The rows for which all predicates are true are replaced."""
        texts = [condition_text(self._jvm, one) for one in predicates]
        self._mode, self._where = "overwrite", " AND ".join(text for text in texts if text != "TRUE")
        return self.itself

    def overwriteDynamicPartitions(self) -> JavaObject:  # noqa: N802 - Spark's name
        """The partitions that the rows have are replaced."""
        self._mode, self._by_partition = "overwrite", True
        return self.itself

    def build(self) -> JavaObject:
        """The write: itself."""
        return self.itself

    # -- V1Write and InsertableRelation ------------------------------------------------------------------------------------

    def toInsertableRelation(self) -> JavaObject:  # noqa: N802 - Spark's name
        """What takes the rows: itself."""
        return self.itself

    def description(self) -> str:
        """For Spark's own texts."""
        return "Tahoe"

    def supportedCustomMetrics(self) -> JavaObject:  # noqa: N802 - Spark's name
        """None."""
        return self._jvm.array(f"{_SQL}.connector.metric.CustomMetric", [])

    def reportDriverMetrics(self) -> JavaObject:  # noqa: N802 - Spark's name
        """None."""
        return self._jvm.array(f"{_SQL}.connector.metric.CustomTaskMetric", [])

    def insert(self, data: JavaObject, overwrite: bool) -> None:
        """Write the rows of a Dataset, in one commit."""
        given = dict(self._options)
        if self._where:
            given["replaceWhere"] = self._where
        if self._by_partition:
            given["partitionOverwriteMode"] = "dynamic"
        request = insert_request(
            "Overwrite" if self._mode == "overwrite" else "Append",
            None,
            given,
            settings_of(self._spark),
            same_types=False,  # Spark has cast the rows already, by its store assignment policy
        )
        insert(self._table, DataFrame(data, self._spark), request)
