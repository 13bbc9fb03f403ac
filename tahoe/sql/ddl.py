"""CREATE, REPLACE, ALTER, DESCRIBE, SHOW and TRUNCATE of a table as values. Column definitions and queries are slices of the user's text.

Spark's own parser reads these statements in a classic session. A client of Spark Connect has no parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tahoe.sql.described import Describe, Other, describe, show
from tahoe.sql.dialect import STRING, Cursor, tokenize
from tahoe.sql.dml import expression_until, quoted_path
from tahoe.sql.table_name import TableName, table_name, take_table


@dataclass(frozen=True, slots=True)
class ColumnText:
    """A column definition.

    Args:
        ddl: name, type, NOT NULL and COMMENT, which Spark's parser of types reads.
        path: the struct into which a column is added, as text; empty for a column of the table.
        generated: the expression of ``GENERATED ALWAYS AS (…)``.
        identity: of ``GENERATED … AS IDENTITY``: start, step, and whether writers may pass values.
        position: ``FIRST``, the column after which it is placed, or None.
    """

    ddl: str
    path: str = ""
    generated: str | None = None
    identity: tuple[int, int, bool] | None = None
    default: str | None = None
    position: str | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """``CREATE | REPLACE TABLE …``, with or without AS SELECT.

    Args:
        how: ``create``, ``createIfNotExists``, ``replace`` or ``createOrReplace``.
        provider: in lower case; None if it is not stated.
        partition_expression: the first column of PARTITIONED BY that is a function of a column.
        has_buckets: whether it has the clause CLUSTERED BY.
        head: the text before the query; empty without one.
    """

    table: TableName
    how: str
    columns: tuple[ColumnText, ...] = ()
    provider: str | None = None
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] | None = None
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    query: str | None = None
    partition_expression: str | None = None
    has_buckets: bool = False
    head: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CreateLike:
    """``CREATE TABLE [IF NOT EXISTS] t LIKE source …``.

    Args:
        provider: in lower case; None if it is not stated.
    """

    table: TableName
    source: TableName
    if_not_exists: bool = False
    provider: str | None = None
    location: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ALTER TABLE t ADD COLUMNS (…)``."""

    table: TableName
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """``ALTER TABLE t REPLACE COLUMNS (…)``."""

    table: TableName
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """``ALTER TABLE t DROP COLUMNS [IF EXISTS] (…)``."""

    table: TableName
    columns: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``ALTER TABLE t RENAME COLUMN a TO b``."""

    table: TableName
    column: str
    name: str


@dataclass(frozen=True, slots=True)
class ChangedColumn:
    """What becomes of one column; None for what stays.

    Args:
        default: the text of the default; empty to drop it.
        after: the column before it; empty for the first place.
    """

    column: str
    data_type: str | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """``ALTER TABLE t ALTER COLUMN c …, d …``, or ``CHANGE COLUMN c c type …`` as in Hive."""

    table: TableName
    columns: tuple[ChangedColumn, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``ALTER TABLE t SET TBLPROPERTIES (…)``."""

    table: TableName
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``ALTER TABLE t UNSET TBLPROPERTIES [IF EXISTS] (…)``."""

    table: TableName
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """``ALTER TABLE t CLUSTER BY (…) | NONE``."""

    table: TableName
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommentOn:
    """``COMMENT ON TABLE t IS '…' | NULL``. The comment is empty for NULL."""

    table: TableName
    comment: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """``ALTER TABLE t SET LOCATION '…'``."""

    table: TableName
    location: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """``TRUNCATE TABLE t [PARTITION (…)]``.

    Args:
        partition: the text in the brackets after PARTITION; None without it.
    """

    table: TableName
    partition: str | None = None


TableStatement = (
    Create
    | CreateLike
    | AddColumns
    | ReplaceColumns
    | DropColumns
    | RenameColumn
    | ChangeColumns
    | SetProperties
    | UnsetProperties
    | ClusterBy
    | CommentOn
    | SetLocation
    | Truncate
    | Describe
    | Other
)
_OTHERS = (
    ("MSCK", "REPAIR", "TABLE"),
    ("REPAIR", "TABLE"),
)


def table_statement(text: str) -> TableStatement | None:
    """Parse a statement on a table; None for any other text. Raises `SqlSyntaxError`."""
    cursor = Cursor(text, tokenize(text))
    statement = _statement(cursor)
    if statement is not None and not isinstance(statement, Other):
        cursor.end()
    return statement


def _statement(cursor: Cursor) -> TableStatement | None:
    if cursor.take("ALTER", "TABLE"):
        return _alter(cursor)
    if cursor.take("TRUNCATE", "TABLE"):
        truncated = take_table(cursor) or cursor.fail("a table")
        return Truncate(truncated, cursor.bracketed() if cursor.take("PARTITION") else None)
    if cursor.take("DESCRIBE") or cursor.take("DESC"):
        return describe(cursor)
    if cursor.take("SHOW"):
        statement = show(cursor)
        if statement is not None:
            return statement
        cursor.place = 0
    if cursor.take("COMMENT", "ON", "TABLE"):
        return _comment_on(cursor)
    if cursor.take("COMMENT", "ON", "COLUMN"):
        return _comment_on_column(cursor)
    for words in _OTHERS:
        if cursor.take(*words):
            table = take_table(cursor)
            return None if table is None else Other(table, " ".join(words))
    return _create(cursor)


# -- CREATE and REPLACE --------------------------------------------------------------------------------------------------------


def _create(cursor: Cursor) -> Create | CreateLike | None:
    how = "create"
    if cursor.take("CREATE", "OR", "REPLACE"):
        how = "createOrReplace"
    elif cursor.take("REPLACE"):
        how = "replace"
    elif not cursor.take("CREATE"):
        return None
    cursor.take("EXTERNAL")
    if not cursor.take("TABLE"):
        return None
    if cursor.take("IF", "NOT", "EXISTS"):
        how = "createIfNotExists"
    table = take_table(cursor)
    if table is None:
        return None
    if cursor.take("LIKE"):
        return _like(cursor, table, how == "createIfNotExists")
    parts: dict[str, Any] = {}
    if cursor.peek().is_symbol("("):
        parts["columns"] = _unplaced(cursor, cursor.listed(lambda: _column(cursor)))
    while not cursor.at_end and not cursor.peek().is_symbol(";") and "query" not in parts:
        if cursor.comes("USING") and parts.keys() - {"columns"}:
            cursor.fail("USING before the other clauses")
        _creation_part(cursor, parts)
    return Create(table, how, **parts)


def _like(cursor: Cursor, table: TableName, if_not_exists: bool) -> CreateLike:
    source = take_table(cursor) or cursor.fail("a table")
    parts: dict[str, Any] = {}
    while not cursor.at_end and not cursor.peek().is_symbol(";"):
        if not cursor.comes("USING") and not cursor.comes("LOCATION") and not cursor.comes("TBLPROPERTIES"):
            cursor.fail("USING, LOCATION or TBLPROPERTIES")
        _creation_part(cursor, parts)
    return CreateLike(table, source, if_not_exists, **parts)


def _creation_part(cursor: Cursor, parts: dict[str, Any]) -> None:
    """Parse a clause into parts of the statement; each clause may stand once."""
    clause = _creation_clause(cursor)
    typed = clause.pop("columns", ())
    if not clause.keys().isdisjoint(parts):
        cursor.fail("each clause once")
    parts |= clause
    if typed:
        parts["columns"] = (*parts.get("columns", ()), *typed)


def _creation_clause(cursor: Cursor) -> dict[str, Any]:
    if cursor.take("USING"):
        return {"provider": cursor.identifier().lower()}
    if cursor.take("PARTITIONED", "BY"):
        listed = cursor.listed(lambda: _partition_column(cursor))
        expressions = [name + text for name, text in listed if text.startswith("(")]
        if expressions:
            return {"partition_expression": expressions[0]}
        typed = tuple(ColumnText(f"{quoted_path([name])} {text}") for name, text in listed if text)
        return {"partition_by": tuple(name for name, _ in listed), "columns": typed}
    if cursor.take("CLUSTERED", "BY"):
        _take_buckets(cursor)
        return {"has_buckets": True}
    if cursor.take("CLUSTER", "BY"):
        return {"cluster_by": tuple(cursor.listed(lambda: quoted_path(cursor.dotted())))}
    if cursor.take("LOCATION"):
        return {"location": cursor.string()}
    if cursor.take("COMMENT"):
        return {"comment": cursor.string()}
    if cursor.take("TBLPROPERTIES"):
        return {"properties": _properties(cursor)}
    if cursor.take("OPTIONS"):
        return {"options": cursor.pairs(lambda: _pair(cursor, None))}
    if not (cursor.take("AS") or cursor.begins_query):
        cursor.fail("USING, PARTITIONED BY, CLUSTER BY, LOCATION, COMMENT, TBLPROPERTIES, OPTIONS or AS")
    return {"head": cursor.text[: cursor.peek().start], "query": cursor.rest().rstrip().rstrip(";")}


def _take_buckets(cursor: Cursor) -> None:
    """Consume ``(columns) [SORTED BY (columns)] INTO n BUCKETS``."""
    cursor.bracketed()
    if cursor.take("SORTED", "BY"):
        cursor.bracketed()
    cursor.need("INTO")
    cursor.integer()
    cursor.need("BUCKETS")


def _partition_column(cursor: Cursor) -> tuple[str, str]:
    """Parse a name, and what follows it: a type, or the arguments of a function in brackets."""
    name = cursor.identifier()
    is_plain = cursor.peek().is_symbol(",", ")")
    return name, "" if is_plain else expression_until(cursor, ",", ")")


def _column(cursor: Cursor) -> ColumnText:
    """Parse ``name type [NOT NULL] [DEFAULT e] [GENERATED …] [COMMENT '…'] [FIRST | AFTER c]``."""
    if cursor.peek().is_word("CONSTRAINT") and cursor.peek(2).is_word("CHECK", "PRIMARY", "UNIQUE", "FOREIGN"):
        cursor.fail("columns; ALTER TABLE … ADD CONSTRAINT adds constraints to the new table")
    *path, name = cursor.dotted()
    texts, attributes = [quoted_path([name])], dict[str, Any]()
    while not cursor.at_end and not cursor.peek().is_symbol(",", ")", ";"):
        if cursor.take("GENERATED"):
            attributes |= _generated(cursor)
        elif cursor.take("DEFAULT"):
            attributes["default"] = expression_until(cursor, ",", ")", "NOT NULL", "COMMENT", "GENERATED", "FIRST", "AFTER")
        elif cursor.take("FIRST"):
            attributes["is_first"] = True
        elif cursor.take("AFTER"):
            attributes["position"] = cursor.identifier()
        elif cursor.take("COMMENT"):
            start = cursor.peek().start
            cursor.string()
            texts.append("COMMENT " + cursor.text[start : cursor.tokens[cursor.place - 1].stop])
        else:
            texts.append(_type_part(cursor))
    return ColumnText(" ".join(texts), quoted_path(path) if path else "", **attributes)


def _unplaced(cursor: Cursor, columns: Sequence[ColumnText]) -> tuple[ColumnText, ...]:
    if any(column.is_first or column.position for column in columns):
        cursor.fail("no FIRST or AFTER: the columns are in the order of the list")
    return tuple(columns)


def _type_part(cursor: Cursor) -> str:
    """Consume a word of the type, with the brackets after it."""
    token = cursor.next()
    text, depth = token.text, int(token.is_symbol("<", "("))
    while depth and not cursor.at_end:
        token = cursor.next()
        text += (" " if text[-1:].isalnum() and token.text[:1].isalnum() else "") + token.text
        depth += token.is_symbol("<", "(") - token.is_symbol(">", ")")
    if cursor.peek().is_symbol("<", "("):
        text += _type_part(cursor)
    return text


def _generated(cursor: Cursor) -> dict[str, Any]:
    explicit = cursor.take("BY", "DEFAULT")
    if not explicit:
        cursor.need("ALWAYS")
    cursor.need("AS")
    if not cursor.take("IDENTITY"):
        return {"generated": cursor.bracketed()}
    start, step = 1, 1
    if cursor.take_symbol("("):
        while not cursor.take_symbol(")"):
            if cursor.take("START", "WITH"):
                start = int(cursor.number())
            else:
                cursor.need("INCREMENT", "BY")
                step = int(cursor.number())
            cursor.take_symbol(",")
    return {"identity": (start, step, explicit)}


def _properties(cursor: Cursor) -> dict[str, str]:
    """Parse ``('key' = 'value', …)``; a value is a text, a number, TRUE or FALSE."""
    return cursor.pairs(lambda: _pair(cursor, _PROPERTY))


def _pair(cursor: Cursor, unquoted: re.Pattern[str] | None) -> tuple[str, str]:
    """Parse ``key [=] value``.

    Args:
        unquoted: the pattern of a value that is no text in quotes; None for any expression.
    """
    key = cursor.key()
    cursor.take_symbol("=")
    if cursor.peek().kind == STRING:
        return key, cursor.string()
    value = expression_until(cursor, ",", ")")
    if unquoted is not None and unquoted.fullmatch(value) is None:
        cursor.fail(f"a value in quotes for the property {key}")
    return key, value


_PROPERTY = re.compile(r"true|false|\d+|\d*\.\d+|\d+\.", re.IGNORECASE)


# -- ALTER ---------------------------------------------------------------------------------------------------------------------


def _alter(cursor: Cursor) -> TableStatement | None:
    table = take_table(cursor) or cursor.fail("a table")
    if cursor.take("ADD"):
        if not (cursor.take("COLUMNS") or cursor.take("COLUMN")):
            return _other(cursor, table, "ADD")
        columns = cursor.listed(lambda: _column(cursor)) if cursor.peek().is_symbol("(") else _listed_columns(cursor)
        if any(column.generated is not None or column.identity is not None for column in columns):
            cursor.fail("no GENERATED column: the rows of the table would lack its values")
        return AddColumns(table, tuple(columns))
    if cursor.take("REPLACE", "COLUMNS"):
        return ReplaceColumns(table, _unplaced(cursor, cursor.listed(lambda: _column(cursor))))
    if cursor.take("DROP"):
        if not (cursor.take("COLUMNS") or cursor.take("COLUMN")):
            return _other(cursor, table, "DROP")
        if_exists = cursor.take("IF", "EXISTS")
        names = _names(cursor)
        return DropColumns(table, names, if_exists)
    if cursor.take("RENAME"):
        if not cursor.take("COLUMN"):
            return None  # the entry in the catalog gets another name
        column = quoted_path(cursor.dotted())
        cursor.need("TO")
        name = cursor.identifier()
        return RenameColumn(table, column, name)
    if cursor.take("SET", "TBLPROPERTIES"):
        return SetProperties(table, _properties(cursor))
    if cursor.take("SET", "LOCATION"):
        return SetLocation(table, cursor.string())
    if cursor.take("UNSET", "TBLPROPERTIES"):
        cursor.take("IF", "EXISTS")
        return UnsetProperties(table, tuple(cursor.listed(lambda: cursor.key())))
    if cursor.take("CLUSTER", "BY"):
        return ClusterBy(table, () if cursor.take("NONE") else _names(cursor))
    is_as_in_hive = cursor.take("CHANGE")
    if is_as_in_hive or cursor.take("ALTER"):
        cursor.take("COLUMN")
        return _changes(cursor, table, is_as_in_hive=is_as_in_hive)
    if cursor.comes("RECOVER", "PARTITIONS"):
        return Other(table, "ALTER TABLE RECOVER PARTITIONS")
    if cursor.comes("SET", "SERDE") or cursor.comes("SET", "SERDEPROPERTIES"):
        return Other(table, "ALTER TABLE SET SERDEPROPERTIES")
    if cursor.take("PARTITION"):
        cursor.bracketed()
        words = "RENAME PARTITION" if cursor.comes("RENAME") else "PARTITION … " + cursor.peek().text.upper()
        return Other(table, f"ALTER TABLE {words}")
    return Other(table, f"ALTER TABLE {cursor.peek().text.upper()}")


def _other(cursor: Cursor, table: TableName, word: str) -> Other:
    """Return ``ALTER TABLE … ADD PARTITION``, for instance."""
    _ = cursor.take("IF", "EXISTS") or cursor.take("IF", "NOT", "EXISTS")
    return Other(table, f"ALTER TABLE {word}{' PARTITION' if cursor.comes('PARTITION') else ''}")


def _changes(cursor: Cursor, table: TableName, *, is_as_in_hive: bool) -> ChangeColumns:
    columns = [_change(cursor, is_as_in_hive=is_as_in_hive)]
    while cursor.take_symbol(","):
        columns.append(_change(cursor, is_as_in_hive=False))
    return ChangeColumns(table, tuple(columns))


def _change(cursor: Cursor, *, is_as_in_hive: bool) -> ChangedColumn:
    names = cursor.dotted()
    parts: dict[str, Any] = {}
    if cursor.take("TYPE"):
        parts["data_type"] = _type_part(cursor)
    elif cursor.take("SET", "NOT", "NULL") or cursor.take("DROP", "NOT", "NULL"):
        parts["nullable"] = cursor.tokens[cursor.place - 3].is_word("DROP")
    elif cursor.take("SET", "DEFAULT"):
        parts["default"] = expression_until(cursor, ",")
    elif cursor.take("DROP", "DEFAULT"):
        parts["default"] = ""
    elif cursor.take("COMMENT"):
        parts["comment"] = cursor.string()
    elif (after := _place(cursor)) is not None:
        parts["after"] = after
    elif is_as_in_hive and (cursor.peek().name or "").lower() == names[-1].lower():
        cursor.next()
        parts = {"data_type": _type_part(cursor), "comment": cursor.string() if cursor.take("COMMENT") else None}
        parts["after"] = _place(cursor)
    else:
        cursor.fail("TYPE, SET, DROP, COMMENT, FIRST or AFTER; after CHANGE COLUMN also the same name and a type")
    return ChangedColumn(quoted_path(names), **parts)


def _place(cursor: Cursor) -> str | None:
    """Consume FIRST or AFTER; return the column before, empty for FIRST, None for neither."""
    if cursor.take("FIRST"):
        return ""
    return cursor.identifier() if cursor.take("AFTER") else None


def _listed_columns(cursor: Cursor) -> list[ColumnText]:
    columns = [_column(cursor)]
    while cursor.take_symbol(","):
        columns.append(_column(cursor))
    return columns


def _names(cursor: Cursor) -> tuple[str, ...]:
    if cursor.peek().is_symbol("("):
        return tuple(cursor.listed(lambda: quoted_path(cursor.dotted())))
    names = [quoted_path(cursor.dotted())]
    while cursor.take_symbol(","):
        names.append(quoted_path(cursor.dotted()))
    return tuple(names)


def _comment_on(cursor: Cursor) -> CommentOn:
    table = take_table(cursor) or cursor.fail("a table")
    return CommentOn(table, _comment(cursor))


def _comment_on_column(cursor: Cursor) -> ChangeColumns:
    start = cursor.peek().start
    *names, column = cursor.dotted()
    # The last three tokens are the end of the table's name, a point, and the column.
    table = (table_name(cursor.text[start : cursor.peek(-3).stop]) if names else None) or cursor.fail("a column of a table")
    return ChangeColumns(table, (ChangedColumn(quoted_path([column]), comment=_comment(cursor)),))


def _comment(cursor: Cursor) -> str:
    """Parse ``IS '…'``, or ``IS NULL`` for an empty comment."""
    cursor.need("IS")
    return "" if cursor.take("NULL") else cursor.string()
