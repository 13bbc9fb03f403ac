"""DELETE, UPDATE, MERGE and INSERT as values. Conditions, expressions and queries are slices of the user's text, which Spark evaluates.

Spark's own parser reads these statements in a classic session. A client of Spark Connect has no parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.sql.dialect import QUERY_WORDS, STRING, Cursor, tokenize
from tahoe.sql.table_name import TableName, take_table

_CLAUSES = ("SET", "WHERE", "USING", "ON", "WHEN", "VALUES", "SELECT", "BY", "PARTITION", "REPLACE", "TABLE", "FROM", "WITH")


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM t [AS a] [WHERE condition]``."""

    table: TableName
    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE t [AS a] SET column = value, … [WHERE condition]``."""

    table: TableName
    alias: str | None
    values: tuple[tuple[str, str], ...]
    where: str | None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A WHEN clause.

    Args:
        kind: ``MATCHED``, ``NOT_MATCHED`` or ``NOT_MATCHED_BY_SOURCE``.
        action: ``UPDATE``, ``DELETE`` or ``INSERT``.
        values: None for ``UPDATE SET *`` and ``INSERT *``.
    """

    kind: str
    action: str
    condition: str | None
    values: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True)
class Merge:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO t [AS a] USING source [AS b] ON condition WHEN …``.

    Args:
        source: a query.
        source_alias: None for a query without a name.
    """

    table: TableName
    alias: str | None
    source: str
    source_alias: str | None
    on: str
    clauses: tuple[MergeClause, ...]
    schema_evolution: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO | OVERWRITE [TABLE] t [WITH (…)] [PARTITION (…)] [(columns)] [BY NAME] query``, or ``INSERT INTO t [AS a] [BY NAME]
    REPLACE WHERE condition | ON condition | USING (columns) query``.

    Args:
        replaced: the options of a writer for the rows that REPLACE names.
        source_alias: after the query in brackets of REPLACE ON.
        columns: of the column list; None without one.
        partition: the columns of PARTITION, each with its value as text; None for a value from the query.
        query: with the named queries of a WITH before INSERT.
        options: of a writer, after WITH.
        head: the text before the query, from INSERT on.
    """

    table: TableName
    overwrite: bool
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    schema_evolution: bool = False
    source_alias: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    head: str = field(default="", compare=False)


RowStatement = Delete | Update | Merge | Insert


def row_statement(text: str) -> RowStatement | None:
    """Parse a statement that changes rows; None for any other text. Raises `SqlSyntaxError`."""
    cursor = Cursor(text, tokenize(text))
    queries = _named_queries(cursor)
    # DELETE and UPDATE could name such a query only in a subquery.
    if cursor.take("DELETE", "FROM"):
        return _delete(cursor)
    if cursor.take("UPDATE"):
        return _update(cursor)
    if cursor.take("MERGE"):
        return _merge(cursor, queries)
    return _insert(cursor, queries) if cursor.take("INSERT") else None


def several_inserts(text: str) -> tuple[str, ...]:
    """Return a statement for each INSERT of ``FROM … INSERT … SELECT … INSERT … SELECT …``; nothing for any other text.

    Raises `SqlSyntaxError`.
    """
    cursor, inserts = Cursor(text, tokenize(text)), []
    queries = _named_queries(cursor)
    if not cursor.comes("FROM"):
        return ()
    source = expression_until(cursor, "INSERT")
    while cursor.take("INSERT"):
        target = expression_until(cursor, "SELECT", "MAP", "REDUCE")
        inserts.append(f"{queries}INSERT {target} {source} {expression_until(cursor, 'INSERT')}")
    if inserts:
        cursor.end()
    return tuple(inserts)


def expression_until(cursor: Cursor, *stops: str) -> str:
    """Return the user's text from here to one of these keywords or symbols outside of brackets and CASE … END, or to the end.

    Args:
        stops: ``NOT NULL`` for these two words.
    """
    start, depth, end = cursor.peek().start, 0, cursor.peek().start
    while not cursor.at_end:
        token = cursor.peek()
        ends = token.is_symbol(*stops, ";") or token.is_word(*stops)
        is_not_null = token.is_word("NOT") and cursor.peek(1).is_word("NULL") and "NOT NULL" in stops
        if depth == 0 and (ends or is_not_null):
            break
        depth += token.is_symbol("(", "[") + token.is_word("CASE") - token.is_symbol(")", "]")
        depth -= token.is_word("END") and depth > 0
        end = token.stop
        cursor.place += 1
    if end == start:
        cursor.fail("an expression")
    return cursor.text[start:end]


def _delete(cursor: Cursor) -> Delete:
    table = take_table(cursor) or cursor.fail("a table")
    alias = _alias(cursor)
    where = expression_until(cursor) if cursor.take("WHERE") else None
    cursor.end()
    return Delete(table, alias, where)


def _update(cursor: Cursor) -> Update | None:
    table = take_table(cursor)
    if table is None:
        return None
    alias = _alias(cursor)
    cursor.need("SET")
    values = _assignments(cursor, "WHERE")
    where = expression_until(cursor) if cursor.take("WHERE") else None
    cursor.end()
    return Update(table, alias, values, where)


def _merge(cursor: Cursor, queries: str) -> Merge:
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.need("INTO")
    table = take_table(cursor) or cursor.fail("a table")
    alias = _alias(cursor)
    cursor.need("USING")
    source, source_alias = _source(cursor, queries)
    cursor.need("ON")
    on = expression_until(cursor, "WHEN")
    clauses: list[MergeClause] = []
    while cursor.take("WHEN"):
        clauses.append(_clause(cursor, clauses[-1].kind if clauses else _KINDS[0]))
    if not clauses:
        cursor.fail("WHEN")
    cursor.end()
    return Merge(table, alias, source, source_alias, on, tuple(clauses), evolves)


def _source(cursor: Cursor, queries: str) -> tuple[str, str | None]:
    if cursor.peek().is_symbol("("):
        query = cursor.bracketed()
        return f"{queries}SELECT * FROM ({query})" if queries else query, _alias(cursor)
    table = take_table(cursor) or cursor.fail("a table, or a query in brackets")
    alias = _alias(cursor)
    return f"{queries}SELECT * FROM {table}", alias or (table.parts[-1] if table.path is None else None)


_KINDS = ("MATCHED", "NOT_MATCHED", "NOT_MATCHED_BY_SOURCE")
"""The order in which Spark's grammar has the clauses."""


def _clause(cursor: Cursor, previous: str) -> MergeClause:
    """Parse a clause after WHEN.

    Args:
        previous: the kind of the clause before it.
    """
    start, kind = cursor.place, "MATCHED"
    if cursor.take("NOT"):
        kind = "NOT_MATCHED"
    cursor.need("MATCHED")
    if kind == "NOT_MATCHED" and cursor.take("BY", "SOURCE"):
        kind = "NOT_MATCHED_BY_SOURCE"
    elif kind == "NOT_MATCHED":
        cursor.take("BY", "TARGET")
    if _KINDS.index(kind) < _KINDS.index(previous):
        cursor.place = start
        cursor.fail("the clauses in the order WHEN MATCHED, WHEN NOT MATCHED, WHEN NOT MATCHED BY SOURCE")
    condition = expression_until(cursor, "THEN") if cursor.take("AND") else None
    cursor.need("THEN")
    if cursor.peek().is_word("INSERT") is not (kind == "NOT_MATCHED"):
        cursor.fail("INSERT" if kind == "NOT_MATCHED" else "UPDATE or DELETE")
    if cursor.take("DELETE"):
        return MergeClause(kind, "DELETE", condition, ())
    if cursor.take("UPDATE"):
        cursor.need("SET")
        if kind == "NOT_MATCHED_BY_SOURCE" and cursor.peek().is_symbol("*"):
            cursor.fail("a column: there is no row of the source")
        return MergeClause(kind, "UPDATE", condition, None if cursor.take_symbol("*") else _assignments(cursor, "WHEN"))
    cursor.need("INSERT")
    if cursor.take_symbol("*"):
        return MergeClause(kind, "INSERT", condition, None)
    columns = cursor.listed(lambda: quoted_path(cursor.dotted()))
    cursor.need("VALUES")
    values = cursor.listed(lambda: expression_until(cursor, ",", ")"))
    if len(columns) != len(values):
        cursor.fail(f"{len(columns)} values for {len(columns)} columns, and not {len(values)}")
    return MergeClause(kind, "INSERT", condition, tuple(zip(columns, values, strict=True)))


def writes_directory_of_delta(text: str) -> bool:
    """Whether a text is ``INSERT OVERWRITE [LOCAL] DIRECTORY ['path'] USING delta``."""
    cursor = Cursor(text, tokenize(text))
    if not cursor.take("INSERT", "OVERWRITE"):
        return False
    cursor.take("LOCAL")
    if not cursor.take("DIRECTORY"):
        return False
    if cursor.peek().kind == STRING:
        cursor.next()
    return cursor.comes("USING", "DELTA")


def _named_queries(cursor: Cursor) -> str:
    """Consume ``WITH name AS (…), …`` before a statement; return it, or an empty text if the statement does not begin so."""
    if not cursor.comes("WITH"):
        return ""
    start, depth = cursor.peek().start, 0
    while not cursor.at_end:
        token = cursor.next()
        depth += token.is_symbol("(") - token.is_symbol(")")
        # After the query in brackets follows another one, or the statement.
        if depth == 0 and token.is_symbol(")") and not cursor.peek().is_symbol(",") and not cursor.comes("AS"):
            break
    return cursor.text[start : cursor.peek().start]


def _is_named_table(cursor: Cursor) -> bool:
    """Whether the word TABLE that comes next is the name of the table: the columns or the query follow it."""
    after = cursor.peek(1)
    return cursor.comes("TABLE") and (after.is_symbol("(") or after.is_word("BY", "FROM", "REPLACE", "SELECT", "VALUES", "WITH"))


def _insert(cursor: Cursor, queries: str) -> Insert | None:
    start = cursor.peek(-1).start
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    overwrite = cursor.take("OVERWRITE")
    if not overwrite:
        cursor.need("INTO")
    if overwrite and (cursor.comes("DIRECTORY") or cursor.comes("LOCAL", "DIRECTORY")):
        return None
    if not _is_named_table(cursor):
        cursor.take("TABLE")
    table = take_table(cursor) or cursor.fail("a table")
    options = cursor.with_options()
    partition = cursor.listed(lambda: partition_value(cursor)) if cursor.take("PARTITION") else []
    alias = cursor.identifier() if cursor.take("AS") else None
    by_name = cursor.take("BY", "NAME")
    replaced = _replaced(cursor, alias or table.identifiers[-1])
    if alias is not None and "targetAlias" not in replaced:
        cursor.fail("REPLACE ON after an alias")
    if overwrite and replaced:
        cursor.fail("a query: REPLACE goes with INSERT INTO")
    columns = None
    if cursor.peek().is_symbol("(") and not cursor.peek(1).is_word(*QUERY_WORDS):
        columns = tuple(cursor.listed(cursor.identifier))
    if cursor.at_end:
        cursor.fail("a query")
    head = cursor.text[start : cursor.peek().start]
    if "targetAlias" in replaced and cursor.peek().is_symbol("("):
        query, source_alias = cursor.bracketed(), _alias(cursor)
        cursor.end()
    else:
        query, source_alias = cursor.rest().rstrip().rstrip(";"), None
    return Insert(
        table, overwrite, queries + query, columns, by_name, tuple(partition), replaced, evolves, source_alias, options, head
    )


def _replaced(cursor: Cursor, alias: str) -> dict[str, str]:
    """Parse ``REPLACE WHERE condition``, ``REPLACE ON condition`` or ``REPLACE USING (columns)``, if one comes.

    Args:
        alias: the name of the table in the condition of REPLACE ON.
    """
    if cursor.take("REPLACE", "WHERE"):
        return {"replaceWhere": expression_until(cursor, *QUERY_WORDS)}
    if cursor.take("REPLACE", "ON"):
        return {"replaceOn": _condition_before_query(cursor), "targetAlias": alias}
    if cursor.take("REPLACE", "USING"):
        return {"replaceUsing": ", ".join(cursor.listed(cursor.identifier))}
    return {}


def _condition_before_query(cursor: Cursor) -> str:
    """Consume a condition up to a query, which may be in brackets."""
    start, depth = cursor.peek().start, 0
    while not cursor.at_end:
        begins_query = cursor.peek().is_word(*QUERY_WORDS) or (
            cursor.peek().is_symbol("(") and cursor.peek(1).is_word(*QUERY_WORDS)
        )
        if depth == 0 and begins_query:
            break
        token = cursor.next()
        depth += token.is_symbol("(") - token.is_symbol(")")
    return cursor.text[start : cursor.peek(-1).stop] if cursor.peek().start > start else cursor.fail("a condition")


def partition_value(cursor: Cursor) -> tuple[str, str | None]:
    """Parse a column of PARTITION, and its value as text; None without a value."""
    name = cursor.identifier()
    return name, expression_until(cursor, ",", ")") if cursor.take_symbol("=") else None


def _alias(cursor: Cursor) -> str | None:
    if cursor.take("AS"):
        return cursor.identifier()
    token = cursor.peek()
    return None if token.name is None or token.is_word(*_CLAUSES) else cursor.identifier()


def _assignments(cursor: Cursor, *stops: str) -> tuple[tuple[str, str], ...]:
    values = []
    while True:
        key = quoted_path(cursor.dotted())
        cursor.need_symbol("=")
        values.append((key, expression_until(cursor, ",", *stops)))
        if not cursor.take_symbol(","):
            return tuple(values)


def quoted_path(parts: list[str]) -> str:
    """Return a name of several parts, each in back-ticks."""
    return ".".join(map(quote_identifier, parts))
