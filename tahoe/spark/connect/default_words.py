"""DEFAULT among the VALUES of an INSERT in sessions of Spark Connect, whose server does not know the table's default values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tahoe.expr.tree.expression import Reference
from tahoe.ops.rows.defaults import Defaults
from tahoe.schema.types import StructType
from tahoe.sql.dialect import Token, tokenize


def mentions_default(query: str) -> bool:
    """Whether a query is a list of VALUES with the keyword DEFAULT."""
    tokens = tokenize(query)
    return bool(tokens) and tokens[0].is_word("VALUES") and any(token.is_word("DEFAULT") for token in tokens)


def with_default_values(query: str, columns: Sequence[str], schema: StructType, defaults: Defaults) -> str:
    """Return the list of VALUES with the default of its column for each value that is the keyword DEFAULT.

    Args:
        columns: that get the values, in their order.
        schema: of the table.

    Raises `InvalidRequest` for a default that cannot be used.
    """
    parts, start = [], 0
    for position, token in _default_words(tokenize(query)):
        column = schema.find(columns[position]) if position < len(columns) else None
        if column is not None:
            parts += [query[start : token.start], defaults.text(Reference((column.name,), column.data_type))]
            start = token.stop
    return "".join([*parts, query[start:]])


def _default_words(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield each DEFAULT that is a whole value, with the position of its value in the row."""
    depth = position = 0
    for previous, token, following in zip(tokens, tokens[1:], (*tokens[2:], Token("symbol", ",", 0)), strict=False):
        if token.is_symbol("("):
            position = 0 if depth == 0 else position
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        elif token.is_symbol(",") and depth == 1:
            position += 1
        elif token.is_word("DEFAULT") and depth <= 1:
            is_whole = (previous.is_symbol("(", ",") or previous.is_word("VALUES")) and following.is_symbol(")", ",", ";")
            if is_whole:
                yield position if depth else 0, token
