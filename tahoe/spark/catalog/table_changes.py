"""``table_changes('db.t', start[, end])`` and ``table_changes_by_path('/path', start[, end])``: the change data feed in SQL.

Both are table functions of the session, implemented here: Spark calls them with resolved arguments while it resolves a query, and uses the
returned plan.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.spark.jvm.bridge import JavaObject, Jvm, handle_of
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import parts_of, table_named
from tahoe.spark.names.options import ChangeRange
from tahoe.spark.scan.change_feed import read_changes
from tahoe.spark.statements.targets import is_missing

_BY_NAME, _BY_PATH = "table_changes", "table_changes_by_path"
_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("string", "timestamp")


def register_table_changes(spark: SparkSession) -> None:
    """Register both functions in the session; copies of the session have them too."""
    Jvm.of(spark)
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    for name in (_BY_NAME, _BY_PATH):
        registry.createOrReplaceTempFunction(name, _TableChanges(spark, name), "scala_udf")


class _TableChanges(Proxied):
    """``arguments → plan``."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name = spark, name

    @answered
    def apply(self, arguments: JavaObject) -> JavaObject:
        """Return the plan of the feed."""
        values, spark = list(items(arguments)), _active(self._spark)
        if not 2 <= len(values) <= 3:
            raise InvalidRequest(
                f"{'not enough' if len(values) < 2 else 'too many'} args, for function {self._name}: it takes 2 or 3 arguments, "
                f"({'path' if self._name == _BY_PATH else 'table'}, start[, end]), found {len(values)}.",
                code="INCORRECT_NUMBER_OF_ARGUMENTS",
                function=self._name,
            )
        if not _is_constant(spark, values[0]):
            raise InvalidRequest(
                f"The table of {self._name} must be a constant text, found {values[0].sql()}. Write its name in quotes.",
                code="DELTA_UNSUPPORTED_EXPRESSION",
                function=self._name,
            )
        table = self._table(spark, _text(spark, values[0]))
        start, end = (
            self._bound(spark, value, name) for value, name in zip((*values[1:], None)[:2], ("start", "end"), strict=True)
        )
        changes = ChangeRange(start[0], end[0], start[1], end[1])
        return read_changes(spark, table, changes)._jdf.logicalPlan()

    def _table(self, spark: SparkSession, named: str | None) -> Table:
        if named is None:
            raise InvalidRequest(
                f"{self._name} is given NULL for a table. Name one.", code="DELTA_UNSUPPORTED_EXPRESSION", function=self._name
            )
        if self._name == _BY_PATH:
            return table_at(spark, named, {})
        delta_table = table_named(spark, parts_of(spark, named))
        if delta_table is None:
            if is_missing(spark, parts_of(spark, named)):
                raise NotFound(
                    f"There is no table '{named}'. Check the name, or the database that is in use.",
                    code="TABLE_OR_VIEW_NOT_FOUND",
                    table=named,
                )
            raise NotFound(
                f"{named} is not a Delta table. {self._name} is only supported for Delta tables: name one of the catalog, or use {_BY_PATH} "
                "with its path.",
                code="DELTA_TABLE_ONLY_OPERATION",
                table=named,
            )
        return delta_table.table

    def _bound(self, spark: SparkSession, expression: JavaObject | None, name: str) -> tuple[int | None, str | None]:
        """Return a version, or a timestamp as text; neither for an omitted bound."""
        if expression is None:
            return None, None
        kind = str(expression.dataType().simpleString())
        if not _is_constant(spark, expression):
            raise InvalidRequest(
                f"The {name} of {self._name} must be constant, found {expression.sql()}. Write a version or a time.",
                code="DELTA_CDC_NON_CONSTANT_ARGUMENT",
                function=self._name,
            )
        text = _text(spark, expression)
        if text is None:
            raise InvalidRequest(
                f"CDC read start/end parameters cannot be null; the {name} of {self._name} is. Write a version or a time.",
                code="DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
                function=self._name,
            )
        if kind in _NUMBERS:
            return int(text), None
        if kind in _TIMES:
            return None, text
        raise InvalidRequest(
            f"Unsupported expression type ({kind}) for the {name} of {self._name}. The supported types are [INT, BIGINT] for versions and "
            "[STRING, TIMESTAMP] for times.",
            code="DELTA_UNSUPPORTED_EXPRESSION",
            function=self._name,
        )

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


def _is_constant(spark: SparkSession, expression: JavaObject) -> bool:
    """Return whether the expression is constant: without columns and subqueries."""
    subqueries = Jvm.of(spark).catalyst("trees.TreePattern").PLAN_EXPRESSION()
    return bool(expression.deterministic() and expression.references().isEmpty() and not expression.containsPattern(subqueries))


def _text(spark: SparkSession, expression: JavaObject) -> str | None:
    """Return the value of a constant expression, formatted by Spark in the session's time zone."""
    jvm = Jvm.of(spark)
    one_row = jvm.frame(spark._jsparkSession, jvm.catalyst("plans.logical.OneRowRelation")(), spark)
    value = one_row.select(jvm.column(expression).cast("string")).collect()[0][0]
    return None if value is None else str(value)


def _active(spark: SparkSession) -> SparkSession:
    """Return the session that resolves the query: the one with the function, or a copy of it."""
    java = Jvm.of(spark).java_class("org.apache.spark.sql.classic.SparkSession").active()
    return spark if java.equals(spark._jsparkSession) else handle_of(spark, java)
