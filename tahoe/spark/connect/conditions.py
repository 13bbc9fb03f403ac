"""Conditions in sessions of Spark Connect: the server evaluates them, and the client derives from them which files to read.

A condition as text, and a column of comparisons, are also parsed by Tahoe: partition values and statistics then select files, and concurrent
commits conflict only with these. If Tahoe cannot parse a condition, all files are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import NullType

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.row_condition import RowCondition, row_condition
from tahoe.expr.tree.predicate import text_literal
from tahoe.schema.types import StructType
from tahoe.spark.commands.conditions import (
    OF_CONDITIONS,
    ExpressionRules,
    beyond_a_row,
    by_chance,
    is_that_of_session,
    subquery_in,
)
from tahoe.spark.connect.remote_rows import RemoteVersion
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.portable.file_metadata import METADATA, has_own_metadata
from tahoe.spark.scan.relation import Alias
from tahoe.spark.write.enforce import session_time_zone
from tahoe.sql.dialect import Token, tokenize
from tahoe.sql.selects import subqueries_in
from tahoe.sql.short_names import Qualifier, Replacement, qualifiers, replaced

_NOT_DETERMINISTIC = {
    *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id"),
    *("input_file_name", "input_file_block_start", "input_file_block_length", "reflect", "try_reflect", "java_method"),
}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STAR = re.compile(r"(^|[.(,])\s*\*")
_ANALYZED = re.compile(r"^== Analyzed Logical Plan ==\n[^\n]*\nFilter ([^\n]*)$", re.MULTILINE)
_BEYOND_A_ROW = (
    "INVALID_WHERE_CONDITION",
    "MISSING_GROUP_BY",
    "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "UNSUPPORTED_GENERATOR",
    "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
)
_OPERATORS = {"==": "=", "<=>": "<=>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "and": "AND", "or": "OR"}
_TESTS = {"isNull": "IS NULL", "isNotNull": "IS NOT NULL", "isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


@dataclass(frozen=True, slots=True)
class RemoteCondition:
    """The rows of a version that the user's condition selects.

    Args:
        column: the condition; None for every row.
        text: as the history shows it; None for every row.
        meaning: the condition as Tahoe understands it; None if it cannot be parsed.
        reads_metadata: whether it may read the column `_metadata`.
    """

    column: Column | None
    text: str | None
    meaning: RowCondition | None
    reads_metadata: bool = False


def resolve_condition(
    version: RemoteVersion, condition: str | Column | None, operation: str, rules: ExpressionRules = OF_CONDITIONS
) -> RemoteCondition:
    """Return the selected rows; rejects an invalid condition before rows are read.

    Raises:
        Unsupported: a subquery (``DELTA_UNSUPPORTED_SUBQUERY``).
        InvalidRequest: a non-deterministic function (``INVALID_NON_DETERMINISTIC_EXPRESSIONS``), a condition that is not boolean.
        AnalysisException: PySpark's own, for an invalid expression.
    """
    schema = version.snapshot.schema
    if condition is None:
        return RemoteCondition(None, None, row_condition(None, schema))
    text = text_of(condition)
    check_expression(text, f"the condition of {operation}", rules)
    column = column_of(condition)
    reads_metadata = may_read_metadata(schema, condition)
    shown = check_boolean(version.shape(metadata=reads_metadata), column, text, f"The condition of {operation}")
    parsed = condition if isinstance(condition, str) else as_sql(condition)
    meaning = meaning_of(parsed, schema, version.alias, session_time_zone(version.spark))
    if meaning is not None and not is_that_of_session(version.spark, meaning):
        meaning = None
    return RemoteCondition(column, shown, meaning, reads_metadata)


@contextmanager
def of_one_row(text: str, where: str, rules: ExpressionRules) -> Iterator[None]:
    """Turn the server's error for an aggregate, window or generator function in a filter into that of a classic session."""
    try:
        yield
    except AnalysisException as error:
        # PySpark 4.0 has no name for the error of a window function.
        if str(error.getCondition()).startswith(_BEYOND_A_ROW) or "window functions inside WHERE" in str(error):
            raise beyond_a_row(text, where, rules.aggregates) from None
        raise


def check_boolean(
    rows: DataFrame,
    column: Column,
    text: str,
    where: str,
    code: str = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
    rules: ExpressionRules = OF_CONDITIONS,
) -> str:
    """Return a condition over the rows as delta-spark logs it: Catalyst's text, with attribute numbers.

    Raises `InvalidRequest` if it is not boolean; PySpark's `AnalysisException` if it is invalid.
    """
    selected: Any = rows.where(column)
    with of_one_row(text, where[0].lower() + where[1:], rules):
        try:
            plan = str(selected._explain_string(extended=True))
        except AnalysisException as error:
            if error.getCondition() != "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
                raise
            # In a filter, so that an aggregate is refused as such.
            data_type = rows.where(column.isNull()).select(column.alias("condition")).schema[0].dataType
            if isinstance(data_type, NullType):
                raise
            message = f"{where} must be true or false, but {text} is {data_type.simpleString()}."
            raise InvalidRequest(message, code=code) from None
    condition = _ANALYZED.search(plan)
    return text if condition is None else condition[1]


def check_expression(text: str, where: str, rules: ExpressionRules = OF_CONDITIONS) -> None:
    """Reject the subqueries and the non-deterministic functions in an expression that the rules do not allow."""
    if not set(subqueries_in(text)) <= set(rules.subqueries):
        raise subquery_in(text, where)
    if rules.chance is not None and any(_is_by_chance(*following) for following in pairwise(tokenize(text))):
        raise by_chance(text, where, rules.chance)


def _is_by_chance(function: Token, bracket: Token) -> bool:
    return bracket.is_symbol("(") and function.name is not None and function.name.lower() in _NOT_DETERMINISTIC


def columns_in(schema: StructType, *conditions: str | Column) -> tuple[str, ...] | None:
    """Return the columns of a table that conditions may refer to; None if all of them may.

    A column counts if its name is among the words of a text, whatever the word means there: a column too many only costs time.
    """
    texts = [text_of(condition) for condition in conditions]
    if not all(_WORD.fullmatch(name) for name in schema.names) or any(_STAR.search(text) for text in texts):
        return None
    words = {word.lower() for text in texts for word in _WORD.findall(text)}
    return tuple(name for name in schema.names if name.lower() in words)


def may_read_metadata(schema: StructType, *expressions: str | Column) -> bool:
    """Return whether expressions may read the column `_metadata`, which a column of the table with this name hides."""
    words = {word.lower() for expression in expressions for word in _WORD.findall(text_of(expression))}
    return METADATA in words and not has_own_metadata(schema)


def text_of(condition: str | Column) -> str:
    """Return an expression as the user wrote it; for a column expression, PySpark's text."""
    if isinstance(condition, str):
        return condition
    text = str(condition)
    return text[len("Column<'") : -len("'>")] if text.startswith("Column<'") else text


def meaning_of(text: str | None, schema: StructType, alias: Alias | None, time_zone: str) -> RowCondition | None:
    """Return a condition as Tahoe understands it; None if it cannot be parsed.

    Args:
        alias: the qualifier that columns may have, or its parts, of which the first may be left out.
    """
    if text is None:
        return None
    try:
        return row_condition(_without_qualifier(text, alias), schema, time_zone)
    except (InvalidRequest, Unsupported):
        return None  # the server understands more; then all files are read


def _without_qualifier(text: str, alias: Alias | None) -> str:
    if alias is None:
        return text
    names = tuple(part.lower() for part in ((alias,) if isinstance(alias, str) else alias))
    tokens = tokenize(text)

    def without(qualifier: Qualifier) -> Iterator[Replacement]:
        for count in range(len(names), 0, -1):
            if qualifier.names[:count] == names[-count:]:
                yield Replacement(tokens[qualifier.place].start, tokens[qualifier.place + 2 * count - 1].stop, "")
                return

    return replaced(text, chain.from_iterable(map(without, qualifiers(tokens))))


def as_sql(column: Column) -> str | None:
    """Return a column of PySpark's Connect client as SQL text; None if it is more than comparisons of columns and constants."""
    return _as_sql(column._expr)


def _as_sql(expression: Any) -> str | None:
    kind = type(expression).__name__
    if kind == "SQLExpression":
        return f"({expression._expr})"
    if kind == "ColumnReference":
        return str(expression._unparsed_identifier)
    if kind == "LiteralExpression":
        return _literal(expression._value, expression._dataType.typeName())
    if kind != "UnresolvedFunction":
        return None
    parts = [_as_sql(part) for part in expression._args]
    if None in parts:
        return None
    name = str(expression._name)
    if name in _OPERATORS and len(parts) == 2:
        return f"({parts[0]} {_OPERATORS[name]} {parts[1]})"
    if name in _TESTS and len(parts) == 1:
        return f"({parts[0]} {_TESTS[name]})"
    if name in ("not", "!") and len(parts) == 1:
        return f"(NOT {parts[0]})"
    return f"({parts[0]} IN ({', '.join(map(str, parts[1:]))}))" if name == "in" and len(parts) > 1 else None


def _literal(value: object, kind: str) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and kind in ("integer", "long", "short", "byte"):
        return str(value)
    if isinstance(value, str) and kind == "string":
        return text_literal(value)
    return None
