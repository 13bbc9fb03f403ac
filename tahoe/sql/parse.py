"""Parses the statements that only Delta has; the result is None for every other text, which Spark parses.

Spark's own statements on Delta tables are parsed by Spark (`tahoe.spark.statements`). A table is a catalog name, a path such as
``delta.`/path` ``, or after some keywords a path as a string. Expressions are slices of the user's own text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tahoe.expr.parse.lexer import string_value
from tahoe.sql.dialect import STRING, Cursor, tokenize
from tahoe.sql.statements import (
    AddConstraint,
    Clone,
    ComputeStatistics,
    Convert,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    Fsck,
    Generate,
    NotYet,
    Optimize,
    Purge,
    Restore,
    Statement,
    SyncIdentity,
    SyncMetadata,
    UpgradeUniform,
    Vacuum,
)
from tahoe.sql.table_name import TableName, name_at

__all__ = ["parse"]


def parse(text: str) -> Statement | None:
    """Parse a statement that only Delta has; return None for any other text.

    Raises `SqlSyntaxError`: the text begins like a statement of Delta and continues with invalid syntax.
    """
    first = _FIRST.match(text)
    if first is None or first[1].upper() not in _STATEMENTS:
        return None
    cursor = Cursor(text, tokenize(text))
    return _STATEMENTS[first[1].upper()](cursor) if cursor.tokens else None


_FIRST = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)


# -- statements --------------------------------------------------------------------------------------------------------------


def _alter(cursor: Cursor) -> Statement | None:
    if not cursor.take("ALTER", "TABLE") or (table := _table(cursor)) is None:
        return None
    if cursor.take("ADD", "CONSTRAINT"):
        name = cursor.identifier()
        if not cursor.take("CHECK"):
            return None
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
    if cursor.take("ALTER") or cursor.take("CHANGE"):
        return _sync_identity(cursor, table)
    if cursor.take("DROP", "FEATURE"):
        feature = cursor.string() if cursor.peek().kind == STRING else cursor.identifier()
        truncates = cursor.take("TRUNCATE", "HISTORY")
        cursor.end()
        return DropFeature(table, feature, truncates)
    return None


def _sync_identity(cursor: Cursor, table: TableName) -> Statement | None:
    """Parse ALTER COLUMN … SYNC IDENTITY; Spark parses the other changes of a column."""
    if cursor.comes("COLUMN") and not cursor.peek(1).is_word("SYNC"):
        cursor.place += 1
    parts = [cursor.next().name]
    while cursor.take_symbol("."):
        parts.append(cursor.next().name)
    column = tuple(part for part in parts if part is not None)
    if len(column) < len(parts) or not cursor.take("SYNC", "IDENTITY"):
        return None
    cursor.end()
    return SyncIdentity(table, column)


def _describe(cursor: Cursor) -> Statement | None:
    cursor.place += 1
    if not (cursor.comes("DETAIL") or cursor.comes("HISTORY")):
        return None
    is_detail, is_text = cursor.next().is_word("DETAIL"), cursor.peek().kind == STRING
    if (described := _table_or_path(cursor)) is None:
        return None
    limit = cursor.integer() if not is_detail and cursor.take("LIMIT") else None
    cursor.end()
    return DescribeDetail(described, is_text) if is_detail else DescribeHistory(described, limit)


def _msck(cursor: Cursor) -> Statement | None:
    if not cursor.take("MSCK", "REPAIR", "TABLE") or (table := _table(cursor)) is None:
        return None
    if not cursor.take("SYNC", "METADATA"):
        return None
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


def _optimize(cursor: Cursor) -> Statement | None:
    cursor.need("OPTIMIZE")
    if (table := _table_or_path(cursor)) is None:
        return None
    is_full = cursor.take("FULL")
    where = cursor.slice_until("ZORDER", ";") if cursor.take("WHERE") else None
    columns = _zorder_columns(cursor) if cursor.take("ZORDER", "BY") else []
    cursor.end()
    return Optimize(table, where, tuple(columns), is_full)


def _zorder_columns(cursor: Cursor) -> list[str]:
    """Parse columns, with or without brackets; return each as SQL text, in back-ticks if it needs them."""

    def column() -> str:
        parts = [cursor.identifier()]
        while cursor.take_symbol("."):
            parts.append(cursor.identifier())
        return ".".join(map(_quoted, parts))

    if cursor.peek().is_symbol("("):
        return cursor.listed(column)
    columns = [column()]
    while cursor.take_symbol(","):
        columns.append(column())
    return columns


def _quoted(name: str) -> str:
    """Return a name, in back-ticks if it needs them."""
    return name if re.fullmatch(r"\w+", name) else "`" + name.replace("`", "``") + "`"


def _vacuum(cursor: Cursor) -> Statement | None:
    cursor.need("VACUUM")
    if (table := _table_or_path(cursor)) is None:
        return None
    found: dict[str, Any] = {}
    while not cursor.at_end and not cursor.peek().is_symbol(";"):
        name, value = _vacuum_modifier(cursor)
        if name in found:  # each of them once
            cursor.place -= 1
            cursor.fail("the end of the statement")
        found[name] = value
    cursor.end()
    return Vacuum(table, **found)


def _vacuum_modifier(cursor: Cursor) -> tuple[str, object]:
    """Parse a modifier of VACUUM; return the field of `Vacuum` and its value."""
    if cursor.take("FULL"):
        return "is_lite", False
    if cursor.take("LITE"):
        return "is_lite", True
    if cursor.take("DRY", "RUN"):
        return "dry_run", True
    if cursor.take("USING", "INVENTORY"):
        if cursor.take_symbol("("):
            query = cursor.slice_until(")")
            cursor.need_symbol(")")
            return "inventory", query
        if (named := _table(cursor)) is not None:
            return "inventory", f"SELECT * FROM {named}"
        cursor.fail("a table, or a query in brackets")
    cursor.need("RETAIN")
    hours = cursor.number()
    cursor.need("HOURS")
    return "retain_hours", hours


def _restore(cursor: Cursor) -> Statement | None:
    cursor.need("RESTORE")
    cursor.take("TABLE")
    if (table := _table_or_path(cursor)) is None:
        return None
    cursor.take("TO")
    cursor.take("FOR")
    version, timestamp = _time_travel(cursor)
    if version is None and timestamp is None:
        cursor.fail("VERSION AS OF or TIMESTAMP AS OF")
    cursor.end()
    return Restore(table, version, timestamp)


def _time_travel(cursor: Cursor) -> tuple[int | None, str | None]:
    """Parse a version or a time, if there is one."""
    if cursor.take("VERSION", "AS", "OF") or cursor.take("SYSTEM_VERSION", "AS", "OF"):
        return _version(cursor), None
    if cursor.take("TIMESTAMP", "AS", "OF") or cursor.take("SYSTEM_TIME", "AS", "OF"):
        return None, cursor.string()
    return None, None


def _convert(cursor: Cursor) -> Statement | None:
    cursor.need("CONVERT", "TO", "DELTA")
    if (table := _table(cursor)) is None:
        cursor.fail("a table, or parquet.`/path`")
    assert table is not None
    statistics, partition_by = True, None
    while not cursor.at_end and not cursor.peek().is_symbol(";"):
        if statistics and cursor.take("NO", "STATISTICS"):
            statistics = False
            continue
        if partition_by is not None:
            cursor.fail("the end of the statement")
        cursor.need("PARTITIONED", "BY")
        cursor.need_symbol("(")
        partition_by = cursor.slice_until(")")
        cursor.need_symbol(")")
    cursor.end()
    return Convert(table, statistics, partition_by)


def _version(cursor: Cursor) -> int:
    """Parse a version: a number, or a string with a number."""
    if cursor.peek().kind != STRING:
        return cursor.integer()
    place, text = cursor.place, cursor.string().strip()
    if not text.isdecimal():
        cursor.place = place
        cursor.fail("a version")
    return int(text)


def _later(*words: str) -> Callable[[Cursor], Statement | None]:
    """Parse a statement that is not supported yet; its table, or a path as a string, follows the words."""

    def parsed(cursor: Cursor) -> Statement | None:
        if not cursor.take(*words):
            return None
        cursor.take("TABLE")
        return NotYet(" ".join(words), _table_or_path(cursor))

    return parsed


def _analyze(cursor: Cursor) -> Statement | None:
    """Parse ANALYZE TABLE … COMPUTE DELTA STATISTICS; without ``DELTA`` it is a statement of Spark."""
    if not cursor.take("ANALYZE", "TABLE") or (table := _table(cursor)) is None:
        return None
    if not cursor.take("COMPUTE", "DELTA", "STATISTICS"):
        return None
    cursor.end()
    return ComputeStatistics(table)


def _fsck(cursor: Cursor) -> Statement | None:
    cursor.need("FSCK", "REPAIR")
    cursor.take("TABLE")
    if (table := _table_or_path(cursor)) is None:
        return None
    dry_run = cursor.take("DRY", "RUN")
    cursor.end()
    return Fsck(table, dry_run)


def _generate(cursor: Cursor) -> Statement | None:
    cursor.need("GENERATE")
    mode = cursor.identifier()
    cursor.need("FOR", "TABLE")
    table = _table(cursor)
    if table is None:
        cursor.fail("a table")
    assert table is not None
    cursor.end()
    return Generate(table, mode)


def _clone(cursor: Cursor) -> Statement | None:
    """Parse a CLONE statement; without ``CLONE`` after the name it is a statement of Spark."""
    cursor.take("CREATE")
    how = "createOrReplace" if cursor.take("OR", "REPLACE") else "replace" if cursor.take("REPLACE") else "create"
    if not cursor.take("TABLE"):
        return None
    if cursor.take("IF", "NOT", "EXISTS"):
        how = "createIfNotExists" if how == "create" else "both"
    table = _table(cursor)
    is_shallow = table is not None and cursor.take("SHALLOW", "CLONE")
    if table is None or not (is_shallow or cursor.take("DEEP", "CLONE") or cursor.take("CLONE")):
        return None
    if how == "both":
        cursor.fail("REPLACE, or IF NOT EXISTS, and not both")
    source = _table(cursor)
    if source is None:
        cursor.fail("the table to be cloned")
    assert source is not None
    version, timestamp = _time_travel(cursor)
    properties = cursor.listed(lambda: _property(cursor)) if cursor.take("TBLPROPERTIES") else []
    location = cursor.string() if cursor.take("LOCATION") else None
    cursor.end()
    return Clone(table, how, source, is_shallow, version, timestamp, tuple(properties), location)


def _property(cursor: Cursor) -> tuple[str, str]:
    """Parse ``'key' = 'value'``; the key may be a string or a name with dots, and the equals sign is optional."""
    if cursor.peek().kind == STRING:
        key = cursor.next().text
        key = string_value(key)
    else:
        parts = [cursor.identifier()]
        while cursor.take_symbol("."):
            parts.append(cursor.identifier())
        key = ".".join(parts)
    cursor.take_symbol("=")
    value = cursor.string() if cursor.peek().kind == STRING else cursor.next().text
    return key, value


_STATEMENTS: Mapping[str, Callable[[Cursor], Statement | None]] = {
    "ALTER": _alter,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "MSCK": _msck,
    "REORG": _reorg,
    "CREATE": _clone,
    "REPLACE": _clone,
    "OPTIMIZE": _optimize,
    "VACUUM": _vacuum,
    "RESTORE": _restore,
    "CONVERT": _convert,
    "FSCK": _fsck,
    "ANALYZE": _analyze,
    "COPY": _later("COPY", "INTO"),
    "GENERATE": _generate,
}


# -- parts -------------------------------------------------------------------------------------------------------------------


def _table(cursor: Cursor) -> TableName | None:
    """Parse a table name; None if none follows."""
    found = name_at(cursor)
    if found is None:
        return None
    cursor.place += found[1]
    return found[0]


def _table_or_path(cursor: Cursor) -> TableName | None:
    """Parse a table name or a path as a string."""
    return TableName(cursor.string()) if cursor.peek().kind == STRING else _table(cursor)
