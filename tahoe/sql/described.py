"""DESCRIBE of a table, and SHOW COLUMNS, TBLPROPERTIES, PARTITIONS and CREATE TABLE, as values."""

from __future__ import annotations

from dataclasses import dataclass

from tahoe.sql.dialect import STRING, Cursor, tokenize
from tahoe.sql.dml import partition_value
from tahoe.sql.table_name import TableName, take_table


@dataclass(frozen=True, slots=True)
class Describe:
    """``DESCRIBE [TABLE] [EXTENDED] t [column]``, and SHOW COLUMNS, TBLPROPERTIES, PARTITIONS and CREATE TABLE.

    Args:
        kind: ``columns``, ``extended``, ``column``, ``SHOW COLUMNS``, ``SHOW TBLPROPERTIES``, ``SHOW PARTITIONS`` or ``SHOW CREATE TABLE``.
        key: the only property to show.
        partition: the columns of PARTITION, each with its value as text.
        column: the names that lead to the described column.
    """

    table: TableName
    kind: str
    key: str | None = None
    partition: tuple[tuple[str, str], ...] = ()
    column: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """A statement on a table that is not supported.

    Args:
        words: its name.
    """

    table: TableName
    words: str


def describe(cursor: Cursor) -> Describe | Other | None:
    """Parse a statement after DESCRIBE; None if it describes another thing than a table or its column."""
    if cursor.peek().is_word(
        "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "FUNCTION", "QUERY", "SELECT", "WITH", "HISTORY", "DETAIL"
    ):
        return None
    cursor.take("TABLE")
    kind = "extended" if cursor.take("EXTENDED") or cursor.take("FORMATTED") else "columns"
    table = take_table(cursor)
    if table is None or cursor.comes("AS"):
        return None
    if cursor.take("PARTITION"):
        return Other(table, "DESCRIBE TABLE PARTITION")
    if cursor.at_end or cursor.peek().is_symbol(";"):
        return Describe(table, kind)
    column = tuple(cursor.dotted())
    return Describe(table, "column", column=column) if cursor.at_end or cursor.peek().is_symbol(";") else None


def show(cursor: Cursor) -> Describe | Other | None:
    """Parse a statement after SHOW; None if it shows another thing, or if its syntax is wrong, of which Spark's parser informs."""
    if cursor.take("CREATE", "TABLE"):
        table = take_table(cursor)
        if table is None:
            return None
        if cursor.take("AS", "SERDE"):
            return Other(table, "SHOW CREATE TABLE … AS SERDE")
        return Describe(table, "SHOW CREATE TABLE")
    for word in ("COLUMNS", "TBLPROPERTIES", "PARTITIONS"):
        if cursor.take(word):
            if word == "COLUMNS" and not (cursor.take("IN") or cursor.take("FROM")):
                return None
            table = take_table(cursor)
            key = None
            if table is not None and word == "TBLPROPERTIES" and cursor.take_symbol("("):
                key = cursor.key()
                cursor.need_symbol(")")
            has_partition = word == "PARTITIONS" and cursor.take("PARTITION")
            partition = cursor.listed(lambda: _fixed_value(cursor)) if has_partition else []
            values = dict(filter(None, partition))
            if len(values) < len(partition):
                return None  # a value that is no constant, or a column twice: Spark's parser raises an error
            if table is None or not (cursor.at_end or cursor.peek().is_symbol(";")):
                return None
            return Describe(table, f"SHOW {word}", key, tuple(values.items()))
    return None


def _fixed_value(cursor: Cursor) -> tuple[str, str] | None:
    """Parse a column of PARTITION and its value, one constant; return None for anything else."""
    name, value = partition_value(cursor)
    if value is None:
        return None
    tokens = tokenize(value)
    if len(tokens) == 1:
        is_constant = tokens[0].is_literal
    else:
        is_constant = len(tokens) == 2 and (tokens[0].is_symbol("-") or tokens[1].kind == STRING)
    return (name, value) if is_constant else None
