"""A Delta table for Spark's writers: one object is the table, the write builder, the write, and the relation that takes the rows.

Spark passes the rows of INSERT, append and overwrite as a DataFrame with the query's own columns. The statement's plan shows whether they
are matched by position or by name (`tahoe.spark.catalog.optimizer_rules`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import quoted_if_needed
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import store_anything
from tahoe.spark.catalog.optimizer_rules import PLANNED
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import WriterCall, insert_request, overwrite_of_matches, sets_schema
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.names.settings import settings_of
from tahoe.spark.versions.schema_evolution import plan_evolves
from tahoe.spark.write.arranged import arranged, arrangement

BY_DATAFRAME = "tahoe.byDataFrame"
"""An option of writes by name that do not come from SQL."""
_SQL = "org.apache.spark.sql"
# Spark requires BATCH_WRITE for dynamic partition overwrites, though they become appends (`tahoe.spark.catalog.optimizer_rules`).
# With ACCEPT_ANY_SCHEMA it neither casts nor counts the columns: Tahoe allows more casts than Spark's own rule of store assignment,
# and columns may be added.
_CAPABILITIES = ("ACCEPT_ANY_SCHEMA", "V1_BATCH_WRITE", "BATCH_WRITE", "OVERWRITE_BY_FILTER", "TRUNCATE", "OVERWRITE_DYNAMIC")


def writable(spark: SparkSession, entry: JavaObject, table: Table, config: TableConfig) -> JavaObject:
    """Return the writable table for one statement.

    Args:
        entry: Spark's ``V1Table`` with the name, columns and partitioning.
        config: of the version that the statement was analyzed with.
    """
    methods = _WritableTable(spark, table, config, str(entry.name()))
    return proxy(spark, entry, methods, (*_METHODS, *_FLUENT), _INTERFACES, fluent=_FLUENT)


_INTERFACES = (
    f"{_SQL}.connector.catalog.SupportsWrite",
    f"{_SQL}.connector.write.SupportsOverwriteV2",
    f"{_SQL}.connector.write.SupportsDynamicOverwrite",
    f"{_SQL}.connector.write.V1Write",
    f"{_SQL}.sources.InsertableRelation",
    PLANNED,
)
_METHODS = ("capabilities", "canOverwrite", "description", "supportedCustomMetrics", "reportDriverMetrics", "insert", "accept")
_FLUENT = ("newWriteBuilder", "truncate", "overwrite", "overwriteDynamicPartitions", "build", "toInsertableRelation")


class _WritableTable:
    """The methods answered in Python. Those of `_FLUENT` return the table in the JVM."""

    def __init__(self, spark: SparkSession, table: Table, config: TableConfig, named: str) -> None:
        self._spark, self._jvm, self._table, self._config, self._named = spark, Jvm.of(spark), table, config, named
        self._options: Mapping[str, str] = {}
        self._mode, self._where, self._by_partition = "append", "", False
        self._by_name: bool | None = None
        self._evolves = False

    # -- Table and SupportsWrite -------------------------------------------------------------------------------------------

    def capabilities(self) -> JavaObject:
        """Return the capabilities for Spark's planner."""
        return self._jvm.cached("write capabilities", self._created_capabilities)

    def _created_capabilities(self) -> JavaObject:
        kind = self._jvm.java_class(f"{_SQL}.connector.catalog.TableCapability")
        abilities = self._jvm.java_class("java.util.HashSet")()
        for name in _CAPABILITIES:
            abilities.add(kind.valueOf(name))
        return abilities

    def newWriteBuilder(self, info: JavaObject) -> None:  # noqa: N802 - Spark's name
        """Set the writer's options."""
        self._options = self._jvm.options(info.options())

    # -- WriteBuilder ------------------------------------------------------------------------------------------------------

    def truncate(self) -> None:
        """Replace all rows."""
        self.overwrite([])

    def canOverwrite(self, predicates: JavaObject) -> bool:  # noqa: N802 - Spark's name
        """Accept any predicate; `overwrite` rejects those that cannot be translated."""
        return True

    def overwrite(self, predicates: JavaObject) -> None:
        """Replace the rows for which all predicates are true."""
        texts = [_condition_text(self._jvm, predicate) for predicate in predicates]
        self._mode, self._where = "overwrite", " AND ".join(text for text in texts if text != "TRUE")

    def overwriteDynamicPartitions(self) -> None:  # noqa: N802 - Spark's name
        """Replace the partitions of the written rows."""
        self._mode, self._by_partition = "overwrite", True

    def build(self) -> None:
        """The table is the write."""

    # -- Consumer ----------------------------------------------------------------------------------------------------------

    def accept(self, plan: JavaObject) -> None:
        """Read the settings of the statement's plan before it is executed."""
        self._by_name = bool(plan.isByName())
        self._evolves = plan_evolves(plan)

    # -- V1Write and InsertableRelation ------------------------------------------------------------------------------------

    def toInsertableRelation(self) -> None:  # noqa: N802 - Spark's name
        """The table is the relation that takes the rows."""

    def description(self) -> str:
        """Return the text for Spark's own messages."""
        return "Tahoe"

    def supportedCustomMetrics(self) -> JavaObject:  # noqa: N802 - Spark's name
        """Return no metrics."""
        return self._jvm.array(f"{_SQL}.connector.metric.CustomMetric", [])

    def reportDriverMetrics(self) -> JavaObject:  # noqa: N802 - Spark's name
        """Return no metrics."""
        return self._jvm.array(f"{_SQL}.connector.metric.CustomTaskMetric", [])

    def insert(self, data: JavaObject, overwrite: bool) -> None:
        """Write the rows of a Dataset in one commit."""
        options, settings = dict(self._options), settings_of(self._spark)
        is_statement = options.pop(BY_DATAFRAME, None) is None
        if self._where:
            options["replaceWhere"] = self._where
        if self._by_partition:
            options["partitionOverwriteMode"] = "dynamic"
        mode = "Overwrite" if self._mode == "overwrite" else "Append"
        call = WriterCall(mode, options, evolves=self._evolves)
        request = insert_request(call, settings, same_types=sets_schema(call), stores=store_anything)
        if request.matching is not None:
            raise overwrite_of_matches(request.matching.text)
        assert self._by_name is not None, "the plan of a write is known before it runs"
        how = arrangement(self._spark, self._named, request.options, by_name=self._by_name, is_statement=is_statement)
        insert(self._table, arranged(DataFrame(data, self._spark), self._config, how), request)


# -- the condition of an overwrite, which Spark passes as a tree of named predicates, as equivalent SQL ------------------------------

_INFIX = ("AND", "OR", "=", "<=>", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")
_FUNCTIONS = ("ABS", "CEIL", "CHAR_LENGTH", "COALESCE", "CONCAT", "FLOOR", "GREATEST", "LEAST", "LOWER", "SUBSTRING", "UPPER")
_PATTERNS = {"STARTS_WITH": "startswith", "ENDS_WITH": "endswith", "CONTAINS": "contains"}


def _condition_text(jvm: Jvm, node: JavaObject) -> str:
    """Return the SQL text of a predicate or of a part of it.

    Raises:
        Unsupported: an unsupported function; the message contains its name.
    """
    kind = str(node.getClass().getSimpleName())
    if kind == "LiteralValue":
        return str(compiled_object(jvm, "LiteralText", node).toString())
    if kind == "FieldReference":
        return ".".join(quoted_if_needed(str(part)) for part in node.fieldNames())
    if kind in ("AlwaysTrue", "AlwaysFalse"):
        return kind.removeprefix("Always").upper()
    if kind == "Cast":
        return f"CAST({_condition_text(jvm, node.expression())} AS {node.dataType().sql()})"
    if kind == "Extract":
        return f"EXTRACT({node.field()} FROM {_condition_text(jvm, node.source())})"
    if not kind.endswith(("Predicate", "And", "Or", "Not", "ScalarExpression")):
        raise _unknown(node, kind)
    parts, name = [_condition_text(jvm, child) for child in node.children()], str(node.name())
    if name in _INFIX and len(parts) == 2:
        return f"({parts[0]} {name} {parts[1]})"
    if name in _FUNCTIONS:
        return f"{name.lower()}({', '.join(parts)})"
    if name in _PATTERNS:
        return f"{_PATTERNS[name]}({parts[0]}, {parts[1]})"
    match name:
        case "NOT":
            return f"(NOT {parts[0]})"
        case "IS_NULL":
            return f"({parts[0]} IS NULL)"
        case "IS_NOT_NULL":
            return f"({parts[0]} IS NOT NULL)"
        case "IN":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    raise _unknown(node, name)


def _unknown(node: JavaObject, name: str) -> Unsupported:
    return Unsupported(
        f"The condition of an overwrite may not contain {name} ({str(node.toString())[:200]}). Compare columns with constants, or DELETE the "
        "rows first.",
        code="DELTA_UNSUPPORTED_EXPRESSION",
        expression=name,
    )
