"""Constant expressions in the text of a query, which the server evaluates: the arguments of table functions, and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from tahoe.expr.tree.predicate import text_literal
from tahoe.spark.names.server_catalog import plain_sql
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.sql.dialect import STRING, Cursor, tokenize

_OPERATORS = ("+", "-", "*", "/", "||", "::")
_TIMES = ("timestampasof", "startingtimestamp", "endingtimestamp")


@dataclass(frozen=True, slots=True)
class Constant:
    """The value of an expression.

    Args:
        kind: Spark's name of its type.
        text: as Spark writes it in the session's time zone; None for NULL.
    """

    kind: str
    text: str | None


def constant_of(
    spark: SparkSession, expression: str, values: object = None, frames: Mapping[str, DataFrame] | None = None
) -> Constant:
    """Evaluate an expression without columns. A literal needs no request.

    Args:
        values: of the query's parameters, as ``spark.sql`` takes them.
        frames: DataFrames for placeholders in the expression.

    Raises Spark's error for an expression that it cannot resolve or evaluate.
    """
    cursor = Cursor(expression, tokenize(expression))
    if len(cursor.tokens) == 1 and cursor.peek().kind == STRING:
        return Constant("string", cursor.string())
    if expression.strip().isdecimal():
        return Constant("bigint", expression.strip())
    named = values if isinstance(values, Mapping) else None
    row = plain_sql(spark, f"SELECT typeof({expression}), CAST({expression} AS STRING)", named, **frames or {}).collect()[0]
    return Constant(str(row[0]), None if row[1] is None else str(row[1]))


def with_identifiers(spark: SparkSession, text: str, values: object = None) -> str:
    """Return a statement in which IDENTIFIER has texts in place of other constant expressions.

    Args:
        values: of the statement's parameters.

    An expression that the server cannot evaluate stays, so that it raises the error for the statement.
    """
    cursor, parts, place = Cursor(text, tokenize(text)), list[str](), 0
    while not cursor.at_end:
        if cursor.next().is_word("IDENTIFIER") and cursor.peek().is_symbol("("):
            start = cursor.peek().stop
            inner = cursor.bracketed()
            name = _name_in(spark, inner, values)
            if name is not None:
                parts += [text[place:start], text_literal(name)]
                place = cursor.peek(-1).start
    return "".join([*parts, text[place:]])


def _name_in(spark: SparkSession, expression: str, values: object) -> str | None:
    tokens = tokenize(expression)
    if len(tokens) == 1 and tokens[0].kind == STRING:
        return None
    try:
        return constant_of(spark, expression, values).text
    except (AnalysisException, ParseException):
        return None


VERSION_WORDS, TIME_WORDS = ("VERSION", "SYSTEM_VERSION"), ("TIMESTAMP", "SYSTEM_TIME")
"""The words that begin a version and a time in a query."""


def take_version(cursor: Cursor) -> str:
    """Consume the version after such a word, a number or a text; return its text."""
    if cursor.peek().is_symbol("-"):
        cursor.fail("a version")
    return cursor.string() if cursor.peek().kind == STRING else cursor.next().text


def take_value(cursor: Cursor) -> str:
    """Consume an expression without comparisons, as after ``TIMESTAMP AS OF``; return its text."""
    start = cursor.peek().start
    _take_operand(cursor)
    while cursor.peek().is_symbol(*_OPERATORS):
        cursor.next()
        _take_operand(cursor)
    return cursor.text[start : cursor.peek(-1).stop]


def _take_operand(cursor: Cursor) -> None:
    while cursor.peek().is_symbol("-", "+"):
        cursor.next()
    if cursor.peek().is_symbol("("):
        _take_brackets(cursor)
        return
    token = cursor.next()
    if token.is_word("INTERVAL"):
        _take_operand(cursor)
        cursor.next()  # the unit
    elif token.is_word("TIMESTAMP", "DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ") and cursor.peek().kind == STRING:
        cursor.next()
    elif cursor.peek().is_symbol("("):
        _take_brackets(cursor)


def _take_brackets(cursor: Cursor) -> None:
    cursor.next()
    depth = 1
    while depth and not cursor.at_end:
        token = cursor.next()
        depth += token.is_symbol("(") - token.is_symbol(")")


def in_utc(spark: SparkSession, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a reader with times that name their zone: the server's Python does not know the session's."""
    return {
        key: parsed_timestamp(spark, str(value)).isoformat() if key.lower() in _TIMES else value for key, value in options.items()
    }
