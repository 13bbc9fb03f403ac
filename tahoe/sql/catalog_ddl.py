"""Recognizes statements that create or alter a table in a catalog, with the table and its format.

It parses only the parts that a client needs to reject some of these statements; any other text is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.sql.dialect import Cursor, tokenize
from tahoe.sql.table_name import TableName, name_at

_HIVE = (("STORED", "AS"), ("STORED", "BY"), ("ROW", "FORMAT"))


@dataclass(frozen=True, slots=True)
class CatalogDdl:
    """A statement that creates, replaces, alters or comments on a table.

    Args:
        words: its first words, such as ``CREATE TABLE``.
        table: the name in the statement; None for ``IDENTIFIER(…)`` of an expression.
        creates: whether it creates or replaces the table.
        provider: the format in the statement, in lower case; None if it has none.
    """

    words: str
    table: TableName | None
    creates: bool
    provider: str | None = None


def catalog_ddl(text: str) -> tuple[CatalogDdl, ...]:
    """Return the statements of a text, which may be a script, that create, replace, alter or comment on a table."""
    cursor, statements = Cursor(text, tokenize(text)), []
    begins = True
    while not cursor.at_end:
        statement = _statement(cursor) if begins else None
        if statement is not None:
            statements.append(statement)
        else:
            # In a script, a statement begins after one of these.
            token = cursor.next()
            begins = token.is_symbol(";") or token.is_word("BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "EXPLAIN")
            begins = begins or (cursor.place > 1 and token.is_word("EXTENDED", "FORMATTED", "CODEGEN", "COST"))
    return tuple(statements)


def names_in_script(text: str) -> tuple[TableName, ...]:
    """Return the names in a script that may be those of tables, which its statements read or change."""
    cursor, names = Cursor(text, tokenize(text)), list[TableName]()
    while not cursor.at_end:
        if cursor.next().is_word(*_BEFORE_TABLES) and (named := name_at(cursor)) is not None:
            names.append(named[0])
    return tuple(dict.fromkeys(names))


_BEFORE_TABLES = ("FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "UPDATE", "USING")


def _statement(cursor: Cursor) -> CatalogDdl | None:
    place = cursor.place
    if cursor.take("ALTER", "TABLE"):
        return CatalogDdl("ALTER TABLE", _table(cursor), False)
    if cursor.take("COMMENT", "ON", "TABLE"):
        return CatalogDdl("COMMENT ON TABLE", _table(cursor), False)
    replaces = cursor.take("REPLACE") or cursor.take("CREATE", "OR", "REPLACE")
    if replaces or cursor.take("CREATE"):
        cursor.take("EXTERNAL")
        if cursor.take("TABLE"):
            cursor.take("IF", "NOT", "EXISTS")
            name = _table(cursor)
            return CatalogDdl("REPLACE TABLE" if replaces else "CREATE TABLE", name, True, _provider(cursor))
    cursor.place = place
    return None


def _table(cursor: Cursor) -> TableName | None:
    named = name_at(cursor)
    if named is None or (cursor.comes("IDENTIFIER") and cursor.peek(1).is_symbol("(") and named[1] == 1):
        return None
    cursor.place += named[1]
    return named[0]


def _provider(cursor: Cursor) -> str | None:
    """Return the format after USING, before the query or the end of the statement."""
    depth = 0
    while not cursor.at_end:
        if depth == 0 and any(cursor.comes(*words) for words in _HIVE):
            return "hive"
        token = cursor.next()
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        elif depth == 0 and (token.is_word("AS") or token.is_symbol(";")):
            cursor.place -= token.is_symbol(";")
            return None
        elif depth == 0 and token.is_word("USING") and cursor.peek().name is not None:
            return cursor.identifier().lower()
    return None
