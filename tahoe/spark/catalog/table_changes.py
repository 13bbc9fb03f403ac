"""``table_changes('db.t', start[, end])`` and ``table_changes_by_path('/path', start[, end])``: the change data feed in SQL.

Both are table functions of the session, implemented here: Spark calls them with resolved arguments while it resolves a query, and uses the
returned plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

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

Bound: TypeAlias = tuple[int | None, str | None]
"""A version, or a timestamp as text; neither for an end that is not given."""
BY_NAME, BY_PATH = "table_changes", "table_changes_by_path"
BOUNDS = ("start", "end")
_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("string", "timestamp")


def register_table_changes(spark: SparkSession) -> None:
    """Register both functions in the session; copies of the session have them too."""
    Jvm.of(spark)
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    for name in (BY_NAME, BY_PATH):
        registry.createOrReplaceTempFunction(name, _TableChanges(spark, name), "scala_udf")


class _TableChanges(Proxied):
    """``arguments → plan``."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark, self._name = spark, name

    @answered
    def apply(self, arguments: JavaObject) -> JavaObject:
        """Return the plan of the feed."""
        values, spark = list(items(arguments)), _active(self._spark)
        check_count(self._name, len(values))
        kind = str(values[0].dataType().simpleString())
        if not (_is_constant(spark, values[0]) and kind.startswith(("string", "void"))):
            raise not_constant_table(self._name, str(values[0].sql()))
        table = self._table(spark, _text(spark, values[0]))
        bounds = [self._bound(spark, value, name) for value, name in zip(values[1:], BOUNDS, strict=False)]
        return read_changes(spark, table, changes_between(bounds))._jdf.logicalPlan()

    def _table(self, spark: SparkSession, named: str | None) -> Table:
        if named is None:
            raise null_table(self._name)
        if self._name == BY_PATH:
            return table_at(spark, named, {})
        delta_table = table_named(spark, parts_of(spark, named))
        if delta_table is None:
            raise no_delta_table(self._name, named, is_missing=is_missing(spark, parts_of(spark, named)))
        return delta_table.table

    def _bound(self, spark: SparkSession, expression: JavaObject, name: str) -> Bound:
        if not _is_constant(spark, expression):
            raise not_constant_bound(self._name, name, str(expression.sql()))
        return bound_of(self._name, name, str(expression.dataType().simpleString()), _text(spark, expression))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)


# -- rules of the arguments, for Spark Connect too ----------------------------------------------------------------------------------


def check_count(function: str, count: int) -> None:
    """Refuse another number of arguments than two or three."""
    if not 2 <= count <= 3:
        raise InvalidRequest(
            f"{'not enough' if count < 2 else 'too many'} args, for function {function}: it takes 2 or 3 arguments, "
            f"({'path' if function == BY_PATH else 'table'}, start[, end]), found {count}.",
            code="INCORRECT_NUMBER_OF_ARGUMENTS",
            function=function,
        )


def bound_of(function: str, name: str, kind: str, text: str | None) -> Bound:
    """Return one end of the feed.

    Args:
        name: one of `BOUNDS`.
        kind: Spark's name of the argument's type.
        text: the argument as Spark writes it in the session's time zone; None for NULL.
    """
    if text is None:
        raise InvalidRequest(
            f"CDC read start/end parameters cannot be null; the {name} of {function} is. Write a version or a time.",
            code="DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
            function=function,
        )
    if kind in _NUMBERS:
        return int(text), None
    if kind in _TIMES:
        return None, text
    raise InvalidRequest(
        f"Unsupported expression type ({kind}) for the {name} of {function}. The supported types are [INT, BIGINT] for versions and "
        "[STRING, TIMESTAMP] for times.",
        code="DELTA_UNSUPPORTED_EXPRESSION",
        function=function,
    )


def changes_between(bounds: Sequence[Bound]) -> ChangeRange:
    """Return the range between the start and the end, which may be absent."""
    start, end = (*bounds, (None, None))[:2]
    return ChangeRange(start[0], end[0], start[1], end[1])


def not_constant_table(function: str, found: str) -> InvalidRequest:
    """The error for a first argument that is no constant."""
    return InvalidRequest(
        f"The table of {function} must be a constant text, found {found}. Write its name in quotes.",
        code="DELTA_UNSUPPORTED_EXPRESSION",
        function=function,
    )


def not_constant_bound(function: str, name: str, found: str) -> InvalidRequest:
    """The error for a start or an end that is no constant."""
    return InvalidRequest(
        f"The {name} of {function} must be constant, found {found}. Write a version or a time.",
        code="DELTA_CDC_NON_CONSTANT_ARGUMENT",
        function=function,
    )


def null_table(function: str) -> InvalidRequest:
    """The error for a table that is NULL."""
    return InvalidRequest(
        f"{function} is given NULL for a table. Name one.", code="DELTA_UNSUPPORTED_EXPRESSION", function=function
    )


def no_delta_table(function: str, named: str, *, is_missing: bool) -> NotFound:
    """The error for a name of no Delta table."""
    if is_missing:
        return NotFound(
            f"There is no table '{named}'. Check the name, or the database that is in use.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=named,
        )
    return NotFound(
        f"{named} is not a Delta table. {function} is only supported for Delta tables: name one of the catalog, or use {BY_PATH} "
        "with its path.",
        code="DELTA_TABLE_ONLY_OPERATION",
        table=named,
    )


# -- parts ---------------------------------------------------------------------------------------------------------------------------


def _is_constant(spark: SparkSession, expression: JavaObject) -> bool:
    """Return whether the expression is constant: without columns, those of an outer query either, and subqueries."""
    patterns = Jvm.of(spark).catalyst("trees.TreePattern")
    varies = any(map(expression.containsPattern, (patterns.PLAN_EXPRESSION(), patterns.OUTER_REFERENCE())))
    return bool(expression.deterministic() and expression.references().isEmpty() and not varies)


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
