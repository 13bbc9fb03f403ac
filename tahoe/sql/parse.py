"""From a text to the statement that it is: what is Delta's is understood or refused by name, all else is None and goes to Spark as it is.

Tables are named by path, ``delta.`/path` ``. Expressions and queries are slices of the user's own text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.sql.dialect import STRING, WORD, Cursor, tokenize
from tahoe.sql.references import path_at, references
from tahoe.sql.statements import (
    AddConstraint,
    Delete,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropConstraint,
    Purge,
    Query,
    SetProperties,
    ShowProperties,
    Statement,
    SyncMetadata,
    TableAtPath,
    UnsetProperties,
    Update,
    UpgradeUniform,
)

__all__ = ["may_be_delta", "parse", "with_values"]

# Statements of Delta that may name their table by a string alone.
_BY_STRING = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:desc|describe|vacuum|optimize)\b", re.IGNORECASE | re.DOTALL)


def may_be_delta(text: str) -> bool:
    """A quick look: False says for certain that `parse` would give None."""
    return "delta" in text.lower() or _BY_STRING.match(text) is not None


def parse(text: str) -> Statement | None:
    """The statement, or None for what is not Delta's.

    Raises:
        Unsupported: Delta's, and not in this version of Tahoe.
        SqlSyntaxError: it begins as a statement of Delta and goes on otherwise.
    """
    if not may_be_delta(text):
        return None
    tokens = tokenize(text)
    if not tokens:
        return None
    cursor = Cursor(text, tokens)
    known = _STATEMENTS.get(tokens[0].text.upper()) if tokens[0].kind == WORD else None
    found = known(cursor) if known is not None else None
    if found is not None:
        return found
    cursor.place = 0
    if cursor.comes("SET") and not cursor.peek(1).is_word("VAR", "VARIABLE"):
        return None  # what follows is the value of a setting, whatever it looks like
    _refuse(cursor)
    read = references(text, tokens)
    return Query(text, read, is_kept=not tokens[0].is_word(*_RUN_ONCE)) if read else None


_RUN_ONCE = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "INSERT", "EXPLAIN", "DESCRIBE")


def with_values(text: str, values: Mapping[str, str] | Sequence[str]) -> str:
    """The text with SQL in the place of its parameters.

    Args:
        values: SQL literals, by name for ``:name``, in order for ``?``.

    Raises `InvalidRequest` (`UNBOUND_SQL_PARAMETER`) for a parameter without a value.
    """
    given = iter(values.values() if isinstance(values, Mapping) else values)
    parts, stop, before = [], 0, None
    tokens = tokenize(text)
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        found, end = None, token.stop
        named = token.is_symbol(":") and after is not None and after.start == token.stop and after.kind == WORD
        if named and after is not None and not (before is not None and before.is_symbol(":") and before.stop == token.start):
            if not isinstance(values, Mapping) or after.text not in values:
                raise _unbound(f":{after.text}")
            found, end = values[after.text], after.stop
        elif token.is_symbol("?"):
            found = next(given, None) if not isinstance(values, Mapping) else None
            if found is None:
                raise _unbound("?")
        if found is not None:
            parts += [text[stop : token.start], found]
            stop = end
        before = token
    return "".join([*parts, text[stop:]])


def _unbound(parameter: str) -> InvalidRequest:
    return InvalidRequest(f"Found the unbound parameter {parameter}. Give its value in args.", code="UNBOUND_SQL_PARAMETER")


# -- statements --------------------------------------------------------------------------------------------------------------


def _alter(cursor: Cursor) -> Statement | None:
    if not cursor.take("ALTER", "TABLE") or (table := _table(cursor)) is None:
        return None
    if cursor.take("SET", "TBLPROPERTIES"):
        properties = _properties(cursor, with_values=True)
        cursor.end()
        return SetProperties(table, {key: value or "" for key, value in properties})
    if cursor.take("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.take("IF", "EXISTS")
        names = tuple(key for key, _ in _properties(cursor, with_values=False))
        cursor.end()
        return UnsetProperties(table, names, if_exists)
    if cursor.take("ADD", "CONSTRAINT"):
        name = cursor.identifier()
        cursor.need("CHECK")
        cursor.need_symbol("(")
        condition = cursor.slice_until(")")
        cursor.need_symbol(")")
        cursor.end()
        return AddConstraint(table, name, condition)
    if cursor.take("DROP", "CONSTRAINT"):
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.identifier()
        cursor.end()
        return DropConstraint(table, name, if_exists)
    words = " ".join(token.text.upper() for token in cursor.tokens[cursor.place : cursor.place + 2] if token.kind == WORD)
    raise _unsupported(f"ALTER TABLE … {words}", table)


def _show(cursor: Cursor) -> Statement | None:
    if not cursor.take("SHOW", "TBLPROPERTIES") or (table := _table(cursor)) is None:
        return None
    key = None
    if cursor.take_symbol("("):
        key = _key(cursor)
        cursor.need_symbol(")")
    cursor.end()
    return ShowProperties(table, key)


def _describe(cursor: Cursor) -> Statement | None:
    cursor.place += 1
    if cursor.comes("DETAIL") or cursor.comes("HISTORY"):
        is_detail = cursor.next().is_word("DETAIL")
        described = _table_or_path(cursor)
        if described is None:
            return None
        limit = cursor.integer() if not is_detail and cursor.take("LIMIT") else None
        cursor.end()
        return DescribeDetail(described) if is_detail else DescribeHistory(described, limit)
    cursor.take("TABLE")
    table = _table(cursor)
    if table is None:
        return None
    cursor.end()
    return DescribeTable(table)


def _msck(cursor: Cursor) -> Statement | None:
    if not cursor.take("MSCK", "REPAIR", "TABLE") or (table := _table(cursor)) is None:
        return None
    if not cursor.take("SYNC", "METADATA"):
        raise _unsupported("MSCK REPAIR TABLE (without SYNC METADATA)", table)
    cursor.end()
    return SyncMetadata(table)


def _reorg(cursor: Cursor) -> Statement | None:
    if not cursor.take("REORG", "TABLE") or (table := _table(cursor)) is None:
        return None
    where = cursor.slice_until("APPLY") if cursor.take("WHERE") else None
    cursor.need("APPLY")
    cursor.need_symbol("(")
    if cursor.take("PURGE"):
        cursor.need_symbol(")")
        cursor.end()
        return Purge(table, where)
    if where is not None:
        cursor.fail("PURGE")
    cursor.need("UPGRADE", "UNIFORM")
    cursor.need_symbol("(")
    cursor.need("ICEBERG_COMPAT_VERSION")
    cursor.need_symbol("=")
    version = cursor.integer()
    cursor.need_symbol(")")
    cursor.need_symbol(")")
    cursor.end()
    return UpgradeUniform(table, version)


def _delete(cursor: Cursor) -> Statement | None:
    if not cursor.take("DELETE", "FROM") or (table := _table(cursor)) is None:
        return None
    alias = _alias(cursor, "WHERE")
    where = _condition(cursor, "DELETE", table)
    cursor.end()
    return Delete(table, alias, where)


def _update(cursor: Cursor) -> Statement | None:
    if not cursor.take("UPDATE") or (table := _table(cursor)) is None:
        return None
    alias = _alias(cursor, "SET")
    cursor.need("SET")
    values: dict[str, str] = {}
    while True:
        column = cursor.slice_until("=")
        cursor.need_symbol("=")
        if column in values:
            raise InvalidRequest(
                f"UPDATE of table {table.written} sets column {column} twice.", code="TAHOE_ASSIGNED_TWICE", column=column
            )
        values[column] = cursor.slice_until(",", "WHERE", ";")
        if not cursor.take_symbol(","):
            break
    where = _condition(cursor, "UPDATE", table)
    cursor.end()
    return Update(table, alias, values, where)


_STATEMENTS: Mapping[str, Callable[[Cursor], Statement | None]] = {
    "ALTER": _alter,
    "SHOW": _show,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "MSCK": _msck,
    "REORG": _reorg,
    "DELETE": _delete,
    "UPDATE": _update,
}


# -- what is Delta's and not here --------------------------------------------------------------------------------------------

_TARGETS = (
    *("INSERT INTO", "INSERT INTO TABLE", "INSERT OVERWRITE", "INSERT OVERWRITE TABLE", "INSERT WITH SCHEMA EVOLUTION INTO"),
    *("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO", "COPY INTO", "TRUNCATE TABLE"),
    *("OPTIMIZE", "VACUUM", "RESTORE", "RESTORE TABLE", "FSCK REPAIR TABLE", "ANALYZE TABLE", "COMMENT ON TABLE"),
    *("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE", "REPLACE TABLE"),
    *("DROP TABLE", "DROP TABLE IF EXISTS", "CACHE TABLE", "CACHE LAZY TABLE", "UNCACHE TABLE", "REFRESH TABLE", "REFRESH"),
    *("SHOW CREATE TABLE", "SHOW COLUMNS IN", "SHOW COLUMNS FROM", "SHOW PARTITIONS"),
    *("DESCRIBE EXTENDED", "DESCRIBE FORMATTED", "DESCRIBE TABLE EXTENDED", "DESCRIBE TABLE FORMATTED"),
    *("DESC EXTENDED", "DESC FORMATTED", "DESC TABLE EXTENDED", "DESC TABLE FORMATTED"),
    "GENERATE SYMLINK_FORMAT_MANIFEST FOR TABLE",
)


def _refuse(cursor: Cursor) -> None:
    """Raises `Unsupported` where the text is a statement of Delta that this version of Tahoe does not know."""
    for target in _TARGETS:
        words = target.split()
        if cursor.take(*words):
            table = _table_or_path(cursor) if len(words) == 1 else _table(cursor)
            if table is not None:
                raise _unsupported(target, table)
            cursor.place = 0
    if cursor.comes("CONVERT", "TO", "DELTA"):
        raise _unsupported("CONVERT TO DELTA", None)
    if (cursor.comes("CREATE") or cursor.comes("REPLACE")) and (what := _creates_delta(cursor)):
        raise _unsupported(what, None)


def _creates_delta(cursor: Cursor) -> str | None:
    """Whether a statement that creates something creates a Delta table, and how it says so."""
    words = [token for token in cursor.tokens[:6] if token.kind == WORD]
    if not any(token.is_word("TABLE") for token in words):
        return None
    depth = 0
    for place, token in enumerate(cursor.tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        after = cursor.tokens[place + 1] if place + 1 < len(cursor.tokens) else None
        if depth or after is None:
            continue
        if token.is_word("AS", "SELECT"):
            return None
        if token.is_word("USING") and (after.name or "").lower() == "delta":
            return "CREATE TABLE … USING delta"
        if token.is_word("CLONE") and (after.name or "").lower() == "delta":
            return "CREATE TABLE … CLONE"
    return None


def _unsupported(what: str, table: TableAtPath | None) -> Unsupported:
    of = f" (table {table.written})" if table is not None else ""
    return Unsupported(
        f"The SQL statement {what}{of} is not in this version of Tahoe. Use DeltaTable, df.write.format('delta'), or another Delta client.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        statement=what,
    )


# -- parts -------------------------------------------------------------------------------------------------------------------


def _table(cursor: Cursor) -> TableAtPath | None:
    """The table by path that comes; None where another name does."""
    found = path_at(cursor)
    if found is None:
        return None
    start = cursor.peek().start
    cursor.place += found[1]
    return TableAtPath(found[0], cursor.text[start : cursor.peek(-1).stop])


def _table_or_path(cursor: Cursor) -> TableAtPath | None:
    """As `_table`, or the path as a string."""
    if cursor.peek().kind != STRING:
        return _table(cursor)
    start = cursor.peek().start
    path = cursor.string()
    return TableAtPath(path, cursor.text[start : cursor.peek(-1).stop])


def _alias(cursor: Cursor, *stops: str) -> str | None:
    if cursor.take("AS"):
        return cursor.identifier()
    if cursor.at_end or cursor.peek().is_word(*stops) or cursor.peek().name is None:
        return None
    return cursor.identifier()


def _condition(cursor: Cursor, what: str, table: TableAtPath) -> str | None:
    if not cursor.take("WHERE"):
        return None
    where = cursor.slice_until(";")
    if references(where, tokenize(where)):
        raise Unsupported(
            f"The condition of {what} on table {table.written} has a subquery, which is not in this version of Tahoe. Use MERGE "
            "(DeltaTable.merge) with the query as its source.",
            code="DELTA_UNSUPPORTED_SUBQUERY",
            statement=what,
        )
    return where


def _properties(cursor: Cursor, *, with_values: bool) -> list[tuple[str, str | None]]:
    found = cursor.listed(lambda: _property(cursor))
    keys = [key for key, _ in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"Found duplicate keys '{twice}'. Name each property once.", code="DUPLICATE_KEY", property=twice)
    wrong = [key for key, value in found if (value is None) == with_values]
    if wrong:
        rule = "Values must be specified" if with_values else "Values should not be specified"
        raise InvalidRequest(f"{rule} for key(s): [{','.join(wrong)}].", code="PARSE_SYNTAX_ERROR", property=wrong[0])
    return found


def _property(cursor: Cursor) -> tuple[str, str | None]:
    """``key``, ``key value`` or ``key = value``."""
    key = _key(cursor)
    has_value = cursor.take_symbol("=")
    token = cursor.peek()
    if token.is_symbol(",", ")"):
        if has_value:
            cursor.fail("a value")
        return key, None
    if token.kind == STRING:
        return key, cursor.string()
    value = cursor.slice_until(",", ")")
    if token.is_word("TRUE", "FALSE"):
        return key, value.lower()
    if not _NUMBER.fullmatch(value):
        raise InvalidRequest(
            f"The value of property '{key}' must be a string, a number, TRUE or FALSE, found {value}. Put it in quotes.",
            code="PARSE_SYNTAX_ERROR",
            property=key,
        )
    return key, value


_NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")


def _key(cursor: Cursor) -> str:
    if cursor.peek().kind == STRING:
        return cursor.string()
    parts = [cursor.identifier()]
    while cursor.take_symbol("."):
        parts.append(cursor.identifier())
    return ".".join(parts)
