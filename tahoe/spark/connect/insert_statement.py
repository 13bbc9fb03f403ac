"""INSERT in sessions of Spark Connect: its columns, its partitions, and DEFAULT among its VALUES, whose value the server does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.expression import Reference
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.defaults import Defaults
from tahoe.schema.column_edits import not_there
from tahoe.schema.types import StructType
from tahoe.spark.commands.saved import Save
from tahoe.spark.commands.write_options import WriterCall, matching_option, overwrite_of_matches
from tahoe.spark.connect.writes_by_name import insert_into
from tahoe.spark.names.entries import NamedTable
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.names.settings import is_case_sensitive, setting_of
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.server_defaults import written_by_server
from tahoe.sql.dialect import Token, tokenize
from tahoe.sql.dml import Insert


def insert_rows(spark: SparkSession, named: NamedTable, statement: Insert, query: Callable[[str], DataFrame]) -> None:
    """Run an INSERT.

    Args:
        query: returns the rows of a query.
    """
    _check_partition(statement)
    with reading(named.table):
        if statement.columns is not None:
            _check_columns(statement, statement.columns, named.table.schema(), case_sensitive=is_case_sensitive(spark))
        _insert(spark, named, statement, query)


def _insert(spark: SparkSession, named: NamedTable, statement: Insert, query: Callable[[str], DataFrame]) -> None:
    rows = query(_with_defaults(spark, named, statement))
    if statement.columns is not None:
        rows = _listed(rows, statement.columns)
    options = {**statement.options, **statement.replaced}
    matching = matching_option(statement.options) if statement.overwrite else None
    if matching is not None:
        raise overwrite_of_matches(statement.options[matching])
    overwrite = statement.overwrite or bool(statement.replaced)
    if statement.partition:
        rows, condition = _partitioned(rows, named, statement)
        if statement.overwrite:
            options |= _replaced_partitions(spark, statement, condition)
    if statement.source_alias is not None:
        rows = rows.alias(statement.source_alias)
    call = WriterCall("Overwrite" if overwrite else "Append", options, evolves=statement.schema_evolution)
    by_name = statement.by_name or statement.columns is not None or bool(statement.partition)
    insert_into(spark, named, Save(named.name.identifiers, rows, call), by_name=by_name, is_statement=True)


def _check_partition(insert: Insert) -> None:
    """Reject a column that PARTITION names twice."""
    twice = _named_twice(name for name, _ in insert.partition)
    if twice is not None:
        raise InvalidRequest(
            f"PARTITION of the INSERT into {insert.table} contains the duplicate key {twice}. Name it once.",
            code="DUPLICATE_KEY",
            column=twice,
        )


def _check_columns(insert: Insert, columns: Sequence[str], schema: StructType, *, case_sensitive: bool) -> None:
    """Reject a list of columns that names one twice, or one whose value PARTITION fixes, or one that the table lacks."""
    twice = _named_twice(columns)
    if twice is not None:
        raise InvalidRequest(
            f"The INSERT into {insert.table} lists the column {twice} twice. Name it once.",
            code="COLUMN_ALREADY_EXISTS",
            column=twice,
        )
    fixed = {name.lower() for name, value in insert.partition if value is not None}
    for column in columns:
        if column.lower() in fixed:
            raise InvalidRequest(
                f"The INSERT into {insert.table} lists the column {column}, whose value is in PARTITION. Name it once.",
                code="STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
                column=column,
            )
        if schema.find(column) is None or (case_sensitive and column not in schema.names):
            raise not_there(schema, (column,))


def _named_twice(names: Iterable[str]) -> str | None:
    before = set[str]()
    for name in names:
        if name.lower() in before:
            return name
        before.add(name.lower())
    return None


def _listed(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    if len(rows.columns) != len(columns):
        raise InvalidRequest(
            f"The INSERT lists {len(columns)} columns ({', '.join(columns)}), and its query returns {len(rows.columns)}.",
            code="INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        )
    return rows.toDF(*columns)


def _with_defaults(spark: SparkSession, named: NamedTable, statement: Insert) -> str:
    """Return the query of an INSERT, without the keyword DEFAULT in a list of VALUES."""
    if not mentions_default(statement.query):
        return statement.query
    config = named.table.snapshot().config
    moment = Moment(named.table.clock.now_ms(), session_time_zone(spark))
    defaults = Defaults(config, moment, written_by_server(spark, config))
    fixed = {name.lower() for name, value in statement.partition if value is not None}
    columns = statement.columns or tuple(name for name in config.schema.names if name.lower() not in fixed)
    return with_default_values(statement.query, columns, config.schema, defaults)


def _partitioned(rows: DataFrame, named: NamedTable, statement: Insert) -> tuple[DataFrame, str]:
    """Return the rows with the values of PARTITION (…), by name, and the condition of these partitions."""
    partitioned_by = [name.lower() for name in named.table.snapshot().partition_columns]
    for name, _ in statement.partition:
        if name.lower() not in partitioned_by:
            raise InvalidRequest(
                f"PARTITION clause cannot contain the non-partition column: {name}. Table {statement.table} is partitioned by "
                f"{', '.join(partitioned_by) or 'nothing'}. Give the column in the query.",
                code="NON_PARTITION_COLUMN",
                column=name,
            )
    fixed = {name: value for name, value in statement.partition if value is not None}
    if statement.columns is None:
        lowered = {name.lower() for name in fixed}
        rows = _listed(rows, tuple(name for name in named.table.schema().names if name.lower() not in lowered))
    rows = rows.select("*", *(column_of(value).alias(name) for name, value in fixed.items()))
    return rows, " AND ".join(f"{quote_identifier(name)} <=> {value}" for name, value in fixed.items())


def _replaced_partitions(spark: SparkSession, statement: Insert, condition: str) -> dict[str, str]:
    """Return the option of an INSERT OVERWRITE that names partitions: those of the condition, or in dynamic mode those of the rows."""
    mode = str(setting_of(spark, "spark.sql.sources.partitionOverwriteMode") or "static").lower()
    if mode == "dynamic" and any(value is None for _, value in statement.partition):
        return {"partitionOverwriteMode": "dynamic"}
    return {"replaceWhere": condition} if condition else {}


def mentions_default(query: str) -> bool:
    """Whether a query is a list of VALUES with the keyword DEFAULT."""
    tokens = tokenize(query)
    return bool(tokens) and tokens[0].is_word("VALUES") and any(token.is_word("DEFAULT") for token in tokens)


def with_default_values(query: str, columns: Sequence[str], schema: StructType, defaults: Defaults) -> str:
    """Return the list of VALUES with the default of its column for each value that is the keyword DEFAULT.

    Args:
        columns: that get the values, in their order.
        schema: of the table.

    Raises `InvalidRequest` for a default that cannot be used.
    """
    parts, start = [], 0
    for position, token in _default_words(tokenize(query)):
        column = schema.find(columns[position]) if position < len(columns) else None
        if column is not None:
            parts += [query[start : token.start], defaults.text(Reference((column.name,), column.data_type))]
            start = token.stop
    return "".join([*parts, query[start:]])


def _default_words(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Yield each DEFAULT that is a whole value, with the position of its value in the row."""
    depth = position = 0
    for previous, token, following in zip(tokens, tokens[1:], (*tokens[2:], Token("symbol", ",", 0)), strict=False):
        if token.is_symbol("("):
            position = 0 if depth == 0 else position
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        elif token.is_symbol(",") and depth == 1:
            position += 1
        elif token.is_word("DEFAULT") and depth <= 1:
            is_whole = (previous.is_symbol("(", ",") or previous.is_word("VALUES")) and following.is_symbol(")", ",", ";")
            if is_whole:
                yield position if depth else 0, token
