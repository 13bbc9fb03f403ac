"""A Delta table as Spark's writers see it: table, builder of a write, the write, and the relation that takes the rows, in one.

Spark hands over the rows of INSERT, append and overwrite as a DataFrame with the query's own columns. Which of them are meant by their
places, and which by name, the plan of the statement says (`tahoe.spark.catalog.planned_writes`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tahoe.exceptions import Unsupported
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import store_anything
from tahoe.spark.catalog.condition_text import condition_text
from tahoe.spark.catalog.planned_writes import PLANNED
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import insert_request
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import has_field
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.names.settings import settings_of
from tahoe.spark.write.arranged import arranged, arrangement
from tahoe.table import Table

__all__ = ["BY_DATAFRAME", "writable"]

BY_DATAFRAME = "tahoe.byDataFrame"
"""An option of writes by name that are not SQL's."""
_SQL = "org.apache.spark.sql"
# Spark asks for BATCH_WRITE where partitions are overwritten, though it then gets an append (`tahoe.spark.catalog.planned_writes`).
# With ACCEPT_ANY_SCHEMA it neither casts nor counts the columns: what may be cast is more than Spark's own rule of store assignment allows,
# and columns may be added.
_CAPABILITIES = ("ACCEPT_ANY_SCHEMA", "V1_BATCH_WRITE", "BATCH_WRITE", "OVERWRITE_BY_FILTER", "TRUNCATE", "OVERWRITE_DYNAMIC")


def writable(spark: SparkSession, shown: JavaObject, table: Table, config: TableConfig) -> JavaObject:
    """The table for one statement to write to.

    Args:
        shown: Spark's ``V1Table`` of it, whose name, columns and partitioning it has.
        config: of the version that the statement was analyzed with.
    """
    answers = _WritableTable(spark, table, config, str(shown.name()))
    answers.itself = stand_in(spark, shown, answers, _METHODS, _INTERFACES)
    return answers.itself


_INTERFACES = (
    f"{_SQL}.connector.catalog.SupportsWrite",
    f"{_SQL}.connector.write.SupportsOverwriteV2",
    f"{_SQL}.connector.write.SupportsDynamicOverwrite",
    f"{_SQL}.connector.write.V1Write",
    f"{_SQL}.sources.InsertableRelation",
    PLANNED,
)
_METHODS = (
    *("capabilities", "newWriteBuilder", "truncate", "canOverwrite", "overwrite", "overwriteDynamicPartitions", "build"),
    *("toInsertableRelation", "description", "supportedCustomMetrics", "reportDriverMetrics", "insert", "accept"),
)


class _WritableTable:
    """What Python answers; most of it is `itself`."""

    itself: JavaObject

    def __init__(self, spark: SparkSession, table: Table, config: TableConfig, named: str) -> None:
        self._spark, self._jvm, self._table, self._config, self._named = spark, Jvm.of(spark), table, config, named
        self._options: Mapping[str, str] = {}
        self._mode, self._where, self._by_partition = "append", "", False
        self._by_name: bool | None = None
        self._evolves = False

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

    # -- Consumer ----------------------------------------------------------------------------------------------------------

    def accept(self, plan: JavaObject) -> None:
        """The statement's plan, which this is the write of, before it is executed."""
        self._by_name = bool(plan.isByName())
        # Before 4.2, Spark has no INSERT WITH SCHEMA EVOLUTION.
        self._evolves = has_field(plan, "withSchemaEvolution") and bool(plan.withSchemaEvolution())

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
        given, settings = dict(self._options), settings_of(self._spark)
        is_statement = given.pop(BY_DATAFRAME, None) is None
        if self._where:
            given["replaceWhere"] = self._where
        if self._by_partition:
            given["partitionOverwriteMode"] = "dynamic"
        mode = "Overwrite" if self._mode == "overwrite" else "Append"
        request = insert_request(mode, None, given, settings, merge_schema=self._evolves, same_types=False, stores=store_anything)
        if request.matching is not None:
            raise Unsupported(
                f"INSERT OVERWRITE replaces all rows, and not those that match '{request.matching.shown}'. Use "
                "df.write.mode('overwrite').insertInto with the option.",
                code="DELTA_OPERATION_NOT_ALLOWED",
            )
        assert self._by_name is not None, "the plan of a write is known before it runs"
        how = arrangement(self._spark, self._named, request.options, by_name=self._by_name, is_statement=is_statement)
        insert(self._table, arranged(DataFrame(data, self._spark), self._config, how), request)
