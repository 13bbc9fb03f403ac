"""EXECUTE IMMEDIATE: a statement whose text is the value of an expression, with values for its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.expr.parse.lexer import SYMBOL
from tahoe.sql.dialect import Cursor, SqlSyntaxError, tokenize
from tahoe.sql.dml import expression_until
from tahoe.sql.parameters import SqlText


@dataclass(frozen=True, slots=True)
class ExecuteImmediate:
    """``EXECUTE IMMEDIATE text [INTO variable, …] [USING value [AS name], …]``.

    Args:
        text: the expression whose value is the statement.
        into: the text of the variables' names; empty without INTO.
        arguments: the values of the parameters, as expressions in brackets, with their names; None for a value without one. The name of a
            variable is its own.
    """

    text: str
    into: str
    arguments: tuple[tuple[str | None, SqlText], ...]


def execute_immediate(text: str) -> ExecuteImmediate | None:
    """Parse EXECUTE IMMEDIATE; return None for any other text, and for one that Spark refuses."""
    cursor = Cursor(text, tokenize(text))
    if not cursor.take("EXECUTE", "IMMEDIATE"):
        return None
    try:
        query, into = expression_until(cursor, "INTO", "USING"), ""
        if cursor.take("INTO"):
            into = expression_until(cursor, "USING")
        arguments = _arguments(cursor) if cursor.take("USING") else ()
        cursor.end()
    except SqlSyntaxError:
        return None
    return ExecuteImmediate(query, into, tuple(arguments))


def _arguments(cursor: Cursor) -> Sequence[tuple[str | None, SqlText]]:
    if cursor.peek().is_symbol("(") and _is_list(cursor):
        return cursor.listed(lambda: _argument(cursor))
    arguments = [_argument(cursor)]
    while cursor.take_symbol(","):
        arguments.append(_argument(cursor))
    return arguments


def _is_list(cursor: Cursor) -> bool:
    """Whether the bracket at the cursor is that of all values, and not of the first one, as in ``(1 + 2) * 3, 4``."""
    place = cursor.place
    cursor.bracketed()
    is_last = cursor.at_end or cursor.peek().is_symbol(";")
    cursor.place = place
    return is_last


def _argument(cursor: Cursor) -> tuple[str | None, SqlText]:
    start = cursor.place
    text = expression_until(cursor, ",", ")", "AS")
    tokens, name = cursor.tokens[start : cursor.place], None
    if cursor.take("AS"):
        name = cursor.identifier()
    elif len(tokens) > 1 and tokens[-1].name is not None and (tokens[-2].kind != SYMBOL or tokens[-2].is_symbol(")", "]")):
        name, text = tokens[-1].name, cursor.text[tokens[0].start : tokens[-2].stop]
    elif not tokens[-1].text[0].isdigit() and all(token.name is not None or token.is_symbol(".") for token in tokens):
        name = tokens[-1].name  # of a variable
    return name, SqlText(text if len(tokenize(text)) == 1 else f"({text})")
