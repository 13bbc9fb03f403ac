"""Queries in sessions of Spark Connect: each reference to a Delta table, by path or by name, becomes a DataFrame that reads the table.

A server resolves neither ``delta.`/path` `` nor the location of a table of a Python data source. So the client finds the references in the
text, and sends the query with one DataFrame for each (PySpark's ``spark.sql(text, name=frame)``). All other text stays as it is.

A view over Delta tables becomes the DataFrame of its query in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.sql_formatter import SQLStringFormatter

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.catalog.table_changes import (
    BOUNDS,
    BY_NAME,
    BY_PATH,
    bound_of,
    changes_between,
    check_count,
    no_delta_table,
    not_constant_bound,
    not_constant_table,
    null_table,
)
from tahoe.spark.connect.changes_clause import ClauseBound, options_of_clause, take_changes
from tahoe.spark.connect.constants import TIME_WORDS, VERSION_WORDS, Constant, constant_of, take_value, take_version
from tahoe.spark.names.entries import NamedTable, parts_of, relation_on_server, table_named
from tahoe.spark.names.error_names import READERS_OF_TABLES, TIMES_IN_QUERIES, with_classes
from tahoe.spark.names.requested_changes import changes_request
from tahoe.spark.names.server_catalog import SESSION_CATALOG, ServerEntry, plain_sql
from tahoe.spark.names.server_views import ServerView, server_view
from tahoe.spark.names.temporary_views import rows_of_view
from tahoe.spark.versions.connect_frames import under_name
from tahoe.sql.dialect import QUERY_WORDS, Cursor, Token, tokenize
from tahoe.sql.dml import expression_until
from tahoe.sql.named_queries import NamedQuery, named_queries
from tahoe.sql.relation_words import ENDS_OF_FROM, begins_alias
from tahoe.sql.selects import has_subquery
from tahoe.sql.short_names import MOST_PARTS, QualifiedText, QueriedTable, Replacement
from tahoe.sql.table_name import TableName, name_at

_FUNCTIONS_WITH_FROM = {"EXTRACT", "OVERLAY", "SUBSTR", "SUBSTRING", "TRIM"}
_KINDS_OF_TIMES = ("string", "timestamp", "timestamp_ntz", "date", "void")
_PREFIX = "tahoe_reference_"


@dataclass(frozen=True, slots=True)
class Reference:
    """A table, or its change data feed, in a query.

    Args:
        name: of the table; None for a table function, whose arguments name it.
        start, stop: its place in the text, with the clauses of its version, options and sample.
        name_stop: the end of the name.
        needs_alias: whether no alias follows.
        alias: the one that follows.
        version, timestamp: the texts of the expressions after ``VERSION AS OF`` and ``TIMESTAMP AS OF``.
        changes: the bounds of a CHANGES clause; none without one.
        options: of the reader, after WITH.
        sample: ``TABLESAMPLE (…)``; empty if there is none.
        function: ``table_changes`` or ``table_changes_by_path``.
        arguments: the texts of the function's arguments.
        is_stream: whether STREAM stands before it.
        keyword: replaces the text between the start and the name: FROM for TABLE with pipe operators, which may name the table.
    """

    name: TableName | None
    start: int
    stop: int
    name_stop: int
    needs_alias: bool
    version: str | None = None
    timestamp: str | None = None
    changes: tuple[ClauseBound, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    sample: str = ""
    function: str = ""
    arguments: tuple[str, ...] = ()
    is_stream: bool = False
    keyword: str = ""
    alias: str | None = None

    @property
    def is_specific(self) -> bool:
        """Whether it reads something else than the rows of the newest version."""
        return bool(self.version or self.timestamp or self.options or self.changes or self.is_stream)


@dataclass(frozen=True, slots=True)
class ReferenceRows:
    """The rows of a reference to a Delta table, or to a view over some.

    Args:
        table: None for a view, and for a change data feed.
    """

    reference: Reference
    frame: DataFrame
    table: NamedTable | None = None

    @property
    def name(self) -> tuple[str, ...]:
        """The parts of the table's or view's name; empty for a path and for a table function."""
        name = self.reference.name
        if name is None or name.path is not None:
            return ()
        return name.parts if self.table is None else tuple(self.table.full_name_parts)


def references(text: str) -> Iterator[Reference]:
    """Yield the names of tables in FROM and JOIN, and after TABLE, in their order; names of common table expressions are left out."""
    cursor = Cursor(text, tokenize(text))
    named, in_functions = list(named_queries(cursor.tokens)), set(_froms_of_functions(cursor.tokens))
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
        elif cursor.place - 1 not in in_functions and _begins_relation(cursor, token, lists[-1]):
            lists[-1] = is_relation = True
        else:
            is_relation = False
            if token.is_word(*ENDS_OF_FROM) or (token.is_word("LATERAL") and cursor.peek().is_word("VIEW")):
                lists[-1] = False
        if is_relation and not cursor.at_end and not cursor.peek().is_symbol("("):
            is_relation, place = False, cursor.place
            reference = _reference(cursor, takes_alias=not token.is_word("TABLE"))
            if reference is not None and token.is_word("TABLE") and _pipes(cursor):
                reference = replace(reference, start=token.start, needs_alias=True, keyword="FROM ")
            if reference is not None and not _is_named_query(reference, place, named):
                yield reference


def _pipes(cursor: Cursor) -> bool:
    return cursor.peek().is_symbol("|") and cursor.peek(1).is_symbol(">")


def _is_named_query(reference: Reference, place: int, queries: Sequence[NamedQuery]) -> bool:
    name = reference.name
    return name is not None and len(name.parts) == 1 and any(query.is_meant(name.parts[0], place) for query in queries)


def _froms_of_functions(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places of FROM in calls such as ``extract(YEAR FROM day)``."""
    for place, (name, bracket) in enumerate(pairwise(tokens)):
        if name.is_word(*_FUNCTIONS_WITH_FROM) and bracket.is_symbol("("):
            depth = 0
            for inner in range(place + 1, len(tokens)):
                depth += tokens[inner].is_symbol("(") - tokens[inner].is_symbol(")")
                if depth == 1 and tokens[inner].is_word("FROM"):
                    yield inner
                if depth == 0:
                    break


def _begins_relation(cursor: Cursor, token: Token, in_list: bool) -> bool:
    """Whether a relation follows the token before the cursor."""
    previous = cursor.peek(-2) if cursor.place > 1 else None
    is_distinct = previous is not None and previous.is_word("DISTINCT")  # IS DISTINCT FROM
    if token.is_word("FROM", "JOIN"):
        return not is_distinct
    return (token.is_symbol(",") and in_list) or (token.is_word("TABLE") and _may_begin_query(cursor, previous))


def _may_begin_query(cursor: Cursor, previous: Token | None) -> bool:
    """Whether a query may follow the token before the last one."""
    if previous is not None and previous.is_word("ALL", "DISTINCT") and cursor.place > 2:
        previous = cursor.peek(-3)
    return previous is None or previous.is_symbol("(", ")") or previous.is_word("UNION", "EXCEPT", "INTERSECT", "MINUS")


def _reference(cursor: Cursor, *, takes_alias: bool) -> Reference | None:
    is_stream = _takes_stream(cursor)
    start = cursor.peek().start
    in_brackets = is_stream and cursor.take_symbol("(")
    named = name_at(cursor)
    is_named_table = cursor.comes("TABLE") and not (cursor.peek(1).is_symbol("(") or cursor.peek(-1).is_symbol("("))
    if named is None or (cursor.peek().is_word("LATERAL", *QUERY_WORDS) and not is_named_table):
        return None
    name, count = named
    if cursor.peek(count).is_symbol("("):
        function = ".".join(name.parts).lower()
        return _call(cursor, function) if function in (BY_NAME, BY_PATH) else None
    cursor.place += count
    name_stop = cursor.peek(-1).stop
    if in_brackets:
        cursor.need_symbol(")")
    version, timestamp = _version(cursor)
    changes, options, sample = take_changes(cursor), tuple(cursor.with_options().items()), _sample(cursor)
    has_alias = takes_alias and begins_alias(cursor.peek())
    return Reference(
        name,
        start,
        cursor.peek(-1).stop,
        name_stop,
        takes_alias and not has_alias,
        version,
        timestamp,
        changes,
        options,
        sample,
        is_stream=is_stream,
        alias=cursor.peek(int(cursor.comes("AS"))).name if has_alias else None,
    )


def _takes_stream(cursor: Cursor) -> bool:
    """Consume the word STREAM before a name; a table may have that name too."""
    comes = cursor.comes("STREAM") and (cursor.peek(1).is_symbol("(") or begins_alias(cursor.peek(1)))
    return comes and cursor.take("STREAM")


def _sample(cursor: Cursor) -> str:
    """Consume ``TABLESAMPLE (…) [REPEATABLE (…)]`` and return its text."""
    start = cursor.peek().start
    if not cursor.take("TABLESAMPLE"):
        return ""
    cursor.bracketed()
    if cursor.take("REPEATABLE"):
        cursor.bracketed()
    return cursor.text[start : cursor.peek(-1).stop]


def _call(cursor: Cursor, function: str) -> Reference:
    called = cursor.next()
    arguments = tuple(cursor.listed(lambda: expression_until(cursor, ",", ")")))
    needs_alias = not begins_alias(cursor.peek())
    return Reference(None, called.start, cursor.peek(-1).stop, called.stop, needs_alias, function=function, arguments=arguments)


def _version(cursor: Cursor) -> tuple[str | None, str | None]:
    place = cursor.place
    cursor.take("FOR")
    if any(cursor.take(word, "AS", "OF") for word in VERSION_WORDS):
        return take_version(cursor), None
    if any(cursor.take(word, "AS", "OF") for word in TIME_WORDS):
        return None, take_value(cursor)
    cursor.place = place
    return None, None


def delta_rows(spark: SparkSession, text: str, values: object = None, named: Collection[str] = ()) -> list[ReferenceRows]:
    """Return the references to Delta tables, and to views over such, in a query.

    Args:
        values: of the query's parameters.
        named: names that the text has for DataFrames.
    """
    known: dict[TableName, NamedTable | DataFrame | None] = {TableName(None, (name,)): None for name in named}
    delta = []
    for reference in references(text):
        name = reference.name
        if name is None:
            delta.append(_changes(spark, reference, values))
            continue
        if name not in known:
            known[name] = _delta_relation(spark, name.identifiers)
        relation = known[name]
        if isinstance(relation, NamedTable):
            delta.append(_rows_of(spark, reference, relation, values))
        elif relation is not None:
            _refuse_clauses(reference)
            delta.append(ReferenceRows(reference, relation))
    return delta


def _rows_of(spark: SparkSession, reference: Reference, named: NamedTable, values: object) -> ReferenceRows:
    url, options = named.table.url, dict(reference.options)
    if reference.changes:
        options |= options_of_clause(spark, reference.changes, values)
        return ReferenceRows(reference, changes_of(spark, url, options, is_stream=reference.is_stream))
    options |= _time_travel(spark, reference, values)
    with with_classes(TIMES_IN_QUERIES if reference.timestamp is not None else READERS_OF_TABLES):
        return ReferenceRows(reference, _frame(spark, url, options, is_stream=reference.is_stream), named)


def changes_of(spark: SparkSession, url: str, options: Mapping[str, str], *, is_stream: bool = False) -> DataFrame:
    """Return the changes of a table.

    Args:
        options: of ``spark.read.changes``.
        is_stream: whether they are read as a stream.

    Raises the errors of `tahoe.spark.names.requested_changes.changes_request`.
    """
    request = changes_request(spark, options)
    return request.labelled(_frame(spark, url, request.options, is_stream=is_stream))


def _refuse_clauses(view: Reference) -> None:
    """Reject a version and options of a view, which belong to its tables."""
    if view.version is None and view.timestamp is None and not view.options and not view.changes:
        return
    raise InvalidRequest(
        f"{view.name} is a view, which has no versions and no options. Leave the clause out, or name the table.",
        code="UNSUPPORTED_FEATURE.TIME_TRAVEL" if not view.options else "DELTA_UNSUPPORTED_SOURCE",
        table=str(view.name),
    )


def _delta_relation(spark: SparkSession, parts: Sequence[str]) -> NamedTable | DataFrame | None:
    """Return a Delta table, or the rows of a view over Delta tables; None for every other name."""
    relation = relation_on_server(spark, parts)
    if not isinstance(relation, ServerEntry):
        return relation
    if relation.is_temporary:
        return rows_of_view(spark, relation)
    return _view_rows(spark, server_view(spark, relation)) if relation.is_view else None


def _view_rows(spark: SparkSession, view: ServerView) -> DataFrame | None:
    """Return the rows of a view over Delta tables; None for another."""
    query = _qualified(view.query, view.namespace)
    rows = delta_rows(spark, query)
    if not rows:
        return None
    text, frames = with_frames(query, rows, {})
    return view.of_query(plain_sql(spark, text, **frames))


def _qualified(query: str, namespace: Sequence[str]) -> str:
    """Return the query of a view with its database before the names of tables that have none."""
    database, parts, place = "".join(f"{quote_identifier(part)}." for part in namespace), [], 0
    for reference in references(query):
        if reference.name is not None and len(reference.name.parts) == 1:
            parts += [query[place : reference.start], database, query[reference.start : reference.name_stop]]
            place = reference.name_stop
    return "".join([*parts, query[place:]])


def _time_travel(spark: SparkSession, reference: Reference, values: object) -> dict[str, str]:
    if reference.version is not None:
        return {"versionAsOf": reference.version}
    if reference.timestamp is None:
        return {}
    time = _time_of(spark, reference.timestamp, values)
    return {"timestampAsOf": reference.timestamp if time.text is None else time.text}


def _time_of(spark: SparkSession, expression: str, values: object) -> Constant:
    """Return the value after ``TIMESTAMP AS OF``, in which a subquery may read Delta tables."""
    delta = delta_rows(spark, expression, values) if has_subquery(expression) else []
    text, frames = with_frames(expression, delta, {})
    time = constant_of(spark, text, values, frames)
    return time if time.kind in _KINDS_OF_TIMES else constant_of(spark, f"CAST({text} AS TIMESTAMP)", values, frames)


def _changes(spark: SparkSession, call: Reference, values: object) -> ReferenceRows:
    """Return the change data feed that a table function reads. Raises the errors of `tahoe.spark.catalog.table_changes`."""
    function, (named, *bounds) = call.function, call.arguments or ("",)
    check_count(function, len(call.arguments))
    if has_subquery(named):
        raise not_constant_table(function, named)
    for name, bound in zip(BOUNDS, bounds, strict=False):
        if has_subquery(bound):
            raise not_constant_bound(function, name, bound)
    constant = constant_of(spark, named, values)
    table = constant.text
    if table is None:
        raise null_table(function)
    if not constant.kind.startswith("string"):
        raise not_constant_table(function, named)
    url = table if function == BY_PATH else _table_of_changes(spark, function, table).table.url
    constants = (constant_of(spark, bound, values) for bound in bounds)
    ends = [bound_of(function, name, end.kind, end.text) for name, end in zip(BOUNDS, constants, strict=False)]
    return ReferenceRows(call, _frame(spark, url, changes_between(ends).as_options()))


def _table_of_changes(spark: SparkSession, function: str, table: str) -> NamedTable:
    named = table_named(spark, parts_of(spark, table))
    if named is None:
        raise no_delta_table(function, table, is_missing=not spark.catalog.tableExists(table))
    return named


def with_named_frames(spark: SparkSession, text: str, values: Mapping[str, Any]) -> tuple[str, dict[str, DataFrame]]:
    """Return the text of ``spark.sql(text, name=value, …)`` with its values, and with a name of a table for each DataFrame.

    Raises the errors of PySpark's formatter.
    """
    if not values:
        return text, {}
    formatter: Any = SQLStringFormatter(cast("Any", spark))
    formatted = formatter.format(text, **values)
    return formatted, {name: frame for frame, name in formatter._temp_views}


def with_frames(
    text: str, delta: Sequence[ReferenceRows], named: Mapping[str, DataFrame], *, head: str = ""
) -> tuple[str, dict[str, DataFrame]]:
    """Return the text with a placeholder for each of these references, and the DataFrames of the placeholders.

    Args:
        delta: of the text (`delta_rows`).
        named: DataFrames by the names that the text has for them (`with_named_frames`).
        head: a text that is placed before it, without references to Delta tables.
    """
    if not delta and not named:
        return head + text, {}
    tables = {table.start: table for table in queried_tables(text, delta)}
    qualified = QualifiedText(text, list(tables.values()))
    whole, frames = qualified.whole_names(), dict(named)
    edits = [replace(each, text=_escaped(each.text, ())) for each in qualified.replacements(whole)]
    for number, rows in enumerate(delta):
        key, reference = f"{_PREFIX}{number}", rows.reference
        frames[key] = rows.frame
        alias = tables[reference.start].alias_among(whole) if rows.name and reference.needs_alias else None
        shown = "" if alias is None else _escaped(f" AS {quote_identifier(alias)}", ())
        sample = f" {reference.sample}" if reference.sample else ""
        before = reference.keyword or (" " if reference.is_stream else "")  # the name may have been in brackets
        edits.append(Replacement(reference.start, reference.stop, f"{before}{{{key}}}{sample}{shown}"))
    parts, place = [_escaped(head, named)], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [_escaped(text[place : edit.start], named), edit.text]
        place = edit.stop
    return "".join([*parts, _escaped(text[place:], named)]), frames


def queried_tables(text: str, delta: Sequence[ReferenceRows] = ()) -> Iterator[QueriedTable]:
    """Yield the tables in a query, apart from paths.

    Args:
        delta: those that a DataFrame replaces (`delta_rows`).
    """
    names = {rows.reference.start: rows.name for rows in delta}
    for reference in references(text):
        name = names.get(reference.start) or _full_name(reference)
        if name:
            takes_alias = reference.start in names and reference.needs_alias
            yield QueriedTable(name, reference.start, reference.stop, reference.alias, takes_alias)


def _full_name(reference: Reference) -> tuple[str, ...]:
    """Return the parts of a table's name, with the session's catalog if only a database is in the text; empty for a path."""
    parts = () if reference.name is None else reference.name.parts
    return (SESSION_CATALOG, *parts)[-MOST_PARTS:] if len(parts) > 1 else parts


def with_versions(spark: SparkSession, text: str, versions: dict[TableName, int | None]) -> str:
    """Return the text with a version after each Delta table that has none.

    Args:
        versions: of the tables that were resolved before, None for those of other formats; it receives the others.
    """
    parts, place = [], 0
    for reference in references(text):
        name = reference.name
        if name is None or reference.is_specific:
            continue
        if name not in versions:
            named = table_named(spark, name.identifiers)
            versions[name] = None if named is None else named.table.snapshot().version
        if versions[name] is not None:
            parts.append(f"{text[place : reference.name_stop]} VERSION AS OF {versions[name]}")
            place = reference.name_stop
    return "".join([*parts, text[place:]])


def rows_named(spark: SparkSession, parts: Sequence[str], options: Mapping[str, str]) -> DataFrame | None:
    """Return the rows of a Delta table, or of a view over Delta tables; None for every other name.

    Args:
        options: of the reader, for a table.
    """
    relation = _delta_relation(spark, parts)
    if relation is None:
        return None
    if not isinstance(relation, NamedTable):
        return under_name(relation, parts[-1:])
    with with_classes(READERS_OF_TABLES):
        rows = _frame(spark, relation.table.url, options)
    return rows if relation.is_by_path else under_name(rows, relation.full_name_parts)


def _frame(spark: SparkSession, url: str, options: Mapping[str, str], *, is_stream: bool = False) -> DataFrame:
    reader: Any = spark.readStream if is_stream else spark.read
    frame: DataFrame = reader.format("delta").options(**options).load(url)
    return frame


def _escaped(text: str, named: Iterable[str]) -> str:
    """Return the text with its braces escaped, and with a placeholder for each of these names."""
    text = text.replace("{", "{{").replace("}", "}}")
    for name in named:
        text = text.replace(name, f"{{{name}}}")
    return text
