"""Queries in sessions of Spark Connect: each reference to a Delta table, by path or by name, becomes a DataFrame that reads the table.

A server resolves neither ``delta.`/path` `` nor the location of a table of a Python data source. So the client finds the references in the
text, and sends the query with one DataFrame for each (PySpark's ``spark.sql(text, name=frame)``). All other text stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.names.entries import NamedTable, table_named
from tahoe.sql.dialect import STRING, Cursor, Token, tokenize
from tahoe.sql.table_name import TableName, name_at

_JOINS = {"JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "SEMI", "ANTI", "LATERAL", "ON", "USING"}
_CLAUSES = {
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "WINDOW",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "OFFSET",
    "PIVOT",
    "UNPIVOT",
    "WITH",
}
_VERSIONS = {"FOR", "VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME", "TABLESAMPLE"}
_SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "INSERT", "MAP", "REDUCE", "SET", "WHEN", "THEN", "ELSE", "END"}
_NO_ALIAS = _JOINS | _CLAUSES | _VERSIONS | _SETS
"""The words after a table name that are no alias."""
_ENDS_OF_FROM = (_CLAUSES | _SETS) - {"PIVOT", "UNPIVOT", "MAP", "REDUCE"}
"""The words after which a comma does not continue a FROM."""
_PREFIX = "tahoe_reference_"


@dataclass(frozen=True, slots=True)
class Reference:
    """A table name in a query.

    Args:
        start, stop: its place in the text, with the clause of its version.
        options: of the version: ``versionAsOf`` or ``timestampAsOf``.
        needs_alias: whether no alias follows.
    """

    name: TableName
    start: int
    stop: int
    options: Mapping[str, str]
    needs_alias: bool


def references(text: str) -> Iterator[Reference]:
    """Yield the names of tables in FROM and JOIN, and after TABLE, in their order; names of common table expressions are left out."""
    cursor = Cursor(text, tokenize(text))
    named_here = set(_common_table_expressions(cursor.tokens))
    # For each open parenthesis, whether a comma continues a FROM.
    lists, is_relation = [False], False
    while not cursor.at_end:
        token = cursor.next()
        if token.is_symbol("("):
            lists.append(is_relation)
        elif token.is_symbol(")"):
            lists = lists[:-1] or [False]
            is_relation = False
            continue
        elif _begins_relation(cursor, token, lists[-1]):
            lists[-1] = is_relation = True
            cursor.take("STREAM")
        else:
            is_relation = False
            if token.is_word(*_ENDS_OF_FROM) or (token.is_word("LATERAL") and cursor.peek().is_word("VIEW")):
                lists[-1] = False
        if is_relation and not cursor.at_end and not cursor.peek().is_symbol("("):
            is_relation = False
            reference = _reference(cursor)
            if reference is not None and not (len(reference.name.parts) == 1 and reference.name.parts[0].lower() in named_here):
                yield reference


def _begins_relation(cursor: Cursor, token: Token, in_list: bool) -> bool:
    """Whether a relation follows the token before the cursor."""
    previous = cursor.peek(-2) if cursor.place > 1 else None
    is_distinct = previous is not None and previous.is_word("DISTINCT")  # IS DISTINCT FROM
    if token.is_word("FROM", "JOIN"):
        return not is_distinct
    return (token.is_symbol(",") and in_list) or (token.is_word("TABLE") and cursor.place == 1)


def _reference(cursor: Cursor) -> Reference | None:
    named = name_at(cursor)
    if named is None or cursor.peek().is_word("LATERAL", "VALUES", "SELECT"):
        return None
    name, count = named
    start, stop = cursor.peek().start, cursor.peek(count - 1).stop
    if cursor.peek(count).is_symbol("("):
        return None  # a function
    cursor.place += count
    options, stop = _version(cursor, stop)
    following = cursor.peek()
    needs_alias = following.name is None or (following.kind != "name" and following.text.upper() in _NO_ALIAS)
    return Reference(name, start, stop, options, needs_alias)


def _version(cursor: Cursor, stop: int) -> tuple[dict[str, str], int]:
    place = cursor.place
    cursor.take("FOR")
    for words, option in ((("VERSION", "SYSTEM_VERSION"), "versionAsOf"), (("TIMESTAMP", "SYSTEM_TIME"), "timestampAsOf")):
        for word in words:
            if cursor.take(word, "AS", "OF"):
                token = cursor.peek()
                value = cursor.string() if token.kind == STRING else cursor.next().text
                return {option: value}, cursor.tokens[cursor.place - 1].stop
    cursor.place = place
    return {}, stop


def _common_table_expressions(tokens: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(tokens[:-2]):
        if token.name is not None and tokens[place + 1].is_word("AS") and tokens[place + 2].is_symbol("("):
            yield token.name.lower()


def delta_references(spark: SparkSession, text: str) -> list[tuple[Reference, NamedTable]]:
    """Return the references to Delta tables in a query."""
    known: dict[TableName, NamedTable | None] = {}
    delta = []
    for reference in references(text):
        if reference.name not in known:
            known[reference.name] = table_named(spark, reference.name.identifiers)
        named = known[reference.name]
        if named is not None:
            delta.append((reference, named))
    return delta


def with_frames(spark: SparkSession, text: str, has_frames: bool) -> tuple[str, dict[str, Any]]:
    """Return the text with a placeholder for each reference to a Delta table, and the DataFrames of the placeholders.

    Args:
        has_frames: whether the text has placeholders already, so that braces in it are escaped.
    """
    parts, frames, place = [], dict[str, Any](), 0
    for number, (reference, named) in enumerate(delta_references(spark, text)):
        key = f"{_PREFIX}{number}"
        frames[key] = frame_of(spark, named, reference.options)
        alias = "" if reference.name.path is not None or not reference.needs_alias else reference.name.parts[-1]
        shown = f" AS {quote_identifier(alias)}" if alias else ""
        parts += [_escaped(text[place : reference.start], has_frames), f"{{{key}}}{shown}"]
        place = reference.stop
    if not frames:
        return text, {}
    return "".join([*parts, _escaped(text[place:], has_frames)]), frames


def frame_of(spark: SparkSession, named: NamedTable, options: Mapping[str, str]) -> DataFrame:
    """Return the rows of a table.

    Args:
        options: of the reader.
    """
    frame: DataFrame = spark.read.format("delta").options(**options).load(named.table.url)
    return frame


def _escaped(text: str, has_frames: bool) -> str:
    return text if has_frames else text.replace("{", "{{").replace("}", "}}")
