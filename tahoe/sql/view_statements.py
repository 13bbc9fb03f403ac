"""Parses CREATE VIEW, ALTER VIEW … AS and CACHE TABLE for a client that resolves the tables of the query."""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.sql.dialect import Cursor, SqlSyntaxError, tokenize
from tahoe.sql.table_name import TableName, take_table


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column in the list after the name of a view."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ViewStatement:
    """A statement that gives a view its query.

    Args:
        query: the text after AS; empty for a view of a data source.
        columns: the list after the name; empty if there is none.
        alters: whether it is ALTER VIEW.
        replaces: whether it has OR REPLACE.
        scope: ``TEMPORARY`` or ``GLOBAL TEMPORARY``; empty for a permanent view.
        comment: of the view.
        source: the format after USING, in lower case; empty for a view of a query.
        options: of the source.
    """

    name: TableName
    query: str
    columns: tuple[ViewColumn, ...] = ()
    alters: bool = False
    replaces: bool = False
    scope: str = ""
    comment: str | None = None
    source: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The identifiers by which the view is found."""
        return (*(["global_temp"] if self.scope.startswith("GLOBAL") else []), *self.name.identifiers)


def view_statement(text: str) -> ViewStatement | None:
    """Parse a statement; None for every other text, one that Spark does not accept among them."""
    cursor = Cursor(text, tokenize(text))
    try:
        return _altered(cursor) if cursor.take("ALTER", "VIEW") else _created(cursor)
    except SqlSyntaxError:
        return None


@dataclass(frozen=True, slots=True)
class CacheStatement:
    """``CACHE [LAZY] TABLE name [OPTIONS (…)] [[AS] query]``.

    Args:
        storage_level: its option; None if there is none.
        query: of a new temporary view; None if the name is that of a table or view.
    """

    name: TableName
    is_lazy: bool
    storage_level: str | None
    query: str | None


def cache_statement(text: str) -> CacheStatement | None:
    """Parse a statement; None for every other text, and for other options."""
    cursor = Cursor(text, tokenize(text))
    try:
        cursor.need("CACHE")
        is_lazy = cursor.take("LAZY")
        cursor.need("TABLE")
        name, level = take_table(cursor), None
        if cursor.take("OPTIONS"):
            cursor.need_symbol("(")
            level = _storage_level(cursor)
            cursor.need_symbol(")")
        cursor.take("AS")
        query = cursor.rest() if _begins_query(cursor) else None
        if query is None:
            cursor.end()
    except SqlSyntaxError:
        return None
    return None if name is None else CacheStatement(name, is_lazy, level, query)


def _storage_level(cursor: Cursor) -> str:
    key, value = cursor.pair()
    if key.lower() != "storagelevel":
        cursor.fail("the option storageLevel")
    return value


def _altered(cursor: Cursor) -> ViewStatement | None:
    name = take_table(cursor)
    cursor.take("AS")
    return None if name is None or not _begins_query(cursor) else ViewStatement(name, cursor.rest(), alters=True)


def _begins_query(cursor: Cursor) -> bool:
    if cursor.comes("WITH", "SCHEMA") and not cursor.peek(2).is_word("AS"):
        return False
    return cursor.begins_query


def _created(cursor: Cursor) -> ViewStatement | None:
    cursor.need("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    is_global = cursor.take("GLOBAL")
    is_temporary = cursor.take("TEMPORARY") or cursor.take("TEMP")
    cursor.need("VIEW")
    has_condition = cursor.take("IF", "NOT", "EXISTS")
    name = take_table(cursor)
    if name is None or (has_condition and is_temporary):
        return None
    columns = tuple(cursor.listed(lambda: _column(cursor))) if cursor.peek().is_symbol("(") else ()
    comment = None
    while not cursor.take("AS") and not cursor.comes("USING"):
        if cursor.take("COMMENT"):
            comment = cursor.string()
        elif not _takes_clause(cursor, is_temporary=is_temporary):
            cursor.fail("AS and a query")
    scope = ("GLOBAL " if is_global else "") + "TEMPORARY" if is_temporary else ""
    source, options = _source(cursor)
    query = "" if source else cursor.rest()
    return ViewStatement(name, query, columns, replaces=replaces, scope=scope, comment=comment, source=source, options=options)


def _source(cursor: Cursor) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Consume ``USING source [OPTIONS (…)]``."""
    if not cursor.take("USING"):
        return "", ()
    source = cursor.identifier().lower()
    options = tuple(cursor.pairs().items()) if cursor.take("OPTIONS") else ()
    cursor.end()
    return source, options


def _column(cursor: Cursor) -> ViewColumn:
    return ViewColumn(cursor.identifier(), cursor.string() if cursor.take("COMMENT") else None)


def _takes_clause(cursor: Cursor, *, is_temporary: bool) -> bool:
    """Consume a clause of which the client needs nothing; return whether one came."""
    if cursor.take("TBLPROPERTIES"):
        if is_temporary:
            cursor.fail("no TBLPROPERTIES of a temporary view")
        cursor.bracketed()
    elif cursor.take("PARTITIONED", "ON"):
        cursor.bracketed()
    elif cursor.take("DEFAULT", "COLLATION"):
        cursor.next()
    elif cursor.take("WITH", "SCHEMA"):
        cursor.take("TYPE")
        cursor.next()
    else:
        return False
    return True
