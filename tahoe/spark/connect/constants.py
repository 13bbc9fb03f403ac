"""Constant expressions in the text of a query, which the server evaluates: the arguments of table functions, and times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import text_literal
from tahoe.spark.names.server_catalog import plain_sql
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.sql.dialect import STRING, Cursor, tokenize
from tahoe.sql.parameters import SqlText, literal

_HAS_LITERALS = re.compile(
    r"(?:void|boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*|string|date|timestamp|timestamp_ntz|interval .*)$"
)
"""The types whose values Spark casts to texts and back."""
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


def as_literals(
    spark: SparkSession, arguments: Sequence[tuple[str | None, SqlText]], values: object = None
) -> list[tuple[str | None, SqlText]]:
    """Return the values of EXECUTE IMMEDIATE as literals: the name of a variable could be that of a column in the statement.

    Args:
        arguments: the values behind USING, with their names.
        values: of the parameters in them, as ``spark.sql`` takes them.

    Raises:
        Unsupported: a value that may depend on a variable has a type without literals.
        AnalysisException: Spark's error for an expression that it cannot resolve.
    """
    computed = [value.text for _, value in arguments if not _is_literal(value.text)]
    if not computed:
        return list(arguments)
    named = values if isinstance(values, Mapping) else None
    # In digits, since the text of a binary value need not be one.
    columns = ", ".join(f"typeof({text}), hex(CAST({text} AS STRING))" for text in computed)
    row = plain_sql(spark, f"SELECT {columns}", named).collect()[0]
    literals = {text: _as_literal(text, row[2 * place], row[2 * place + 1]) for place, text in enumerate(computed)}
    return [(name, SqlText(literals.get(value.text, value.text))) for name, value in arguments]


def _is_literal(expression: str) -> bool:
    tokens = [token for token in tokenize(expression) if not token.is_symbol("(", ")", "-")]
    if len(tokens) == 1:
        return tokens[0].is_literal
    return len(tokens) == 2 and tokens[0].name is not None and tokens[1].kind == STRING  # such as DATE'2026-01-31'


def _as_literal(expression: str, kind: str, digits: str | None) -> str:
    """Return the literal of a value; for a type without literals an expression that means the same in every statement.

    Args:
        digits: the bytes of the value's text, hexadecimal; None for NULL.
    """
    if kind == "binary":
        return f"CAST(NULL AS {kind})" if digits is None else f"X'{digits}'"
    if _HAS_LITERALS.match(kind) is not None:
        return _literal(kind, None if digits is None else bytes.fromhex(digits).decode())
    variable = tokenize(expression.removeprefix("(").removesuffix(")"))
    if all(token.name is not None or token.is_symbol(".") for token in variable):
        return f"system.session.{variable[-1].text}"
    # The brackets around it stand behind its last name.
    names = [(token, following) for token, following in pairwise(tokenize(expression)) if token.name is not None]
    if all(token.is_literal or following.is_symbol("(") for token, following in names):
        return expression  # the names in it are those of functions
    raise Unsupported(
        f"USING {expression} in EXECUTE IMMEDIATE is not supported over Spark Connect: a value of type {kind} has no literal. Give a "
        "variable that has the value.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )


def _literal(kind: str, text: str | None) -> str:
    if text is None:
        return f"CAST(NULL AS {kind})"
    if kind == "int":
        return str(literal(int(text)))
    if kind == "string":
        return text_literal(text)
    return f"{kind.upper()}{text_literal(text)}" if kind in ("date", "timestamp") else f"CAST({text_literal(text)} AS {kind})"


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
        name = constant_of(spark, expression, values)
        return name.text if name.kind.startswith("string") else None
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
