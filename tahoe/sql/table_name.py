"""`TableName`: how a statement or a call names a table, by its path or by a name of a catalog; the one place that reads such names.

delta.`/path`   spark_catalog.delta.`/path`   IDENTIFIER('delta.`/path`')   ──► a path
table   schema.table   catalog.schema.table                                 ──► a catalog name
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tahoe.expr.parse.lexer import string_value
from tahoe.sql.dialect import NAME, STRING, Cursor, tokenize


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table: a path or a catalog name.

    Args:
        path: the text between the back-ticks; None for a catalog name.
        parts: the identifiers of a catalog name, the table's own last; empty for a path.
    """

    path: str | None
    parts: tuple[str, ...] = ()

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The identifiers that Spark's catalog knows it by."""
        return self.parts if self.path is None else ("delta", self.path)

    def __str__(self) -> str:
        """As SQL writes it."""
        return ".".join(part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`" for part in self.identifiers)


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def table_name(text: str) -> TableName | None:
    """Parse a text that is only the name of a table; None for any other text."""
    cursor = Cursor(text, tokenize(text))
    named = name_at(cursor)
    return named[0] if named is not None and named[1] == len(cursor.tokens) else None


def name_at(cursor: Cursor) -> tuple[TableName, int] | None:
    """Return the next table name and its number of tokens; None if no name follows. The cursor does not advance.

    A path may have ``spark_catalog.`` before it, and may be the string in ``IDENTIFIER('…')``.
    """
    if _is_identifier_call(cursor):
        inside = table_name(string_value(cursor.peek(2).text))
        return None if inside is None else (inside, 4)
    parts: list[str] = []
    place = 0
    while (name := cursor.peek(place).name) is not None:
        parts.append(name)
        if not cursor.peek(place + 1).is_symbol("."):
            break
        place += 2
    if not parts or name is None:
        return None
    words = [part.lower() for part in parts[:-1]]
    if words in (["delta"], ["spark_catalog", "delta"]) and cursor.peek(place).kind == NAME:
        return TableName(parts[-1]), place + 1
    return TableName(None, tuple(parts)), place + 1


def take_table(cursor: Cursor) -> TableName | None:
    """Consume a table name and return it; None if no name follows."""
    named = name_at(cursor)
    if named is None:
        return None
    cursor.place += named[1]
    return named[0]


def take_table_or_path(cursor: Cursor) -> TableName | None:
    """Consume a table name, or a path as a string."""
    return TableName(cursor.string()) if cursor.peek().kind == STRING else take_table(cursor)


def _is_identifier_call(cursor: Cursor) -> bool:
    is_call = cursor.comes("IDENTIFIER") and cursor.peek(1).is_symbol("(") and cursor.peek(3).is_symbol(")")
    return is_call and cursor.peek(2).kind == STRING
