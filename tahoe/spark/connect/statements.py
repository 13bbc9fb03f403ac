"""``spark.sql`` in sessions of Spark Connect: statements on Delta tables run from the client, all other text goes to the server.

text ─┬─ Delta's own statements (`tahoe.spark.statements.registry`) ─┐
      ├─ MERGE, UPDATE, DELETE, INSERT (`tahoe.sql.dml`) ──┼─► commands of this folder ─► one commit of the client
      ├─ CREATE, ALTER, DESCRIBE, … (`tahoe.sql.ddl`) ───┘
      └─ a query ─► its Delta tables become DataFrames (`tahoe.spark.connect.queries`) ─► the server
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.protocol.column_values.default_values import is_keyword
from tahoe.spark.commands.merge.builder import RESULT
from tahoe.spark.commands.merge.statement import MergeRequest, Term
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.connect import definitions
from tahoe.spark.connect.conditions import as_sql
from tahoe.spark.connect.constants import as_literals, constant_of, with_identifiers
from tahoe.spark.connect.insert_statement import insert_rows
from tahoe.spark.connect.merge import merge
from tahoe.spark.connect.queries import ReferenceRows, delta_rows, queried_tables, with_frames, with_named_frames, with_versions
from tahoe.spark.connect.remote_changes import delete, update
from tahoe.spark.connect.requests.client_requests import forget_persisted
from tahoe.spark.connect.view_targets import target_of_view
from tahoe.spark.connect.views import as_temporary, cache_view, create_temporary_view, prepare_cache, prepare_permanent_view
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.names.entries import NamedTable, relation_on_server, table_named
from tahoe.spark.names.error_names import COMMANDS, MERGE_STATEMENTS, with_classes
from tahoe.spark.names.server_catalog import ServerEntry
from tahoe.spark.names.settings import setting_of
from tahoe.spark.names.temporary_views import forget_view, rows_of_view
from tahoe.spark.statements.create_like import other_format
from tahoe.spark.statements.registry import parse
from tahoe.spark.statements.rejected import directory_rejection, rejection, rejection_of
from tahoe.spark.statements.statement_types import DeltaStatement
from tahoe.spark.statements.whole_table import move, require_name
from tahoe.sql import ddl, dml
from tahoe.sql.catalog_ddl import CatalogDdl, catalog_ddl, names_in_script
from tahoe.sql.described import Describe, Other
from tahoe.sql.dialect import Cursor, SqlSyntaxError, tokenize
from tahoe.sql.immediate_statement import ExecuteImmediate, execute_immediate
from tahoe.sql.parameters import SqlText, Values, all_literals, values_for, with_values
from tahoe.sql.selects import has_subquery
from tahoe.sql.short_names import QueriedTable, with_short_names
from tahoe.sql.table_name import TableName
from tahoe.sql.view_statements import CacheStatement, ViewStatement, cache_statement, view_statement

RunSql = Callable[..., DataFrame]
"""PySpark's own ``spark.sql``: text, and then its other arguments."""

_AFFECTED = StructType([StructField("num_affected_rows", LongType())])
_ROW_STATEMENTS = ("DELETE", "UPDATE", "MERGE", "INSERT", "WITH", "FROM")
_QUERIES = ("SELECT", "VALUES", "TABLE", "", "BEGIN")
_VERSION_BY_PARAMETER = re.compile(r"\bAS\s+OF\b.*[:?]", re.IGNORECASE | re.DOTALL)
_EXPLAIN_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_IDENTIFIER = re.compile(r"\bIDENTIFIER\s*\(", re.IGNORECASE)
_FUNCTION = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMP\w*\s+)?FUNCTION\b", re.IGNORECASE)
_STATEMENT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)


def run_sql(
    original: RunSql, spark: SparkSession, text: str, values: object = None, frames: dict[str, Any] | None = None
) -> DataFrame:
    """Run a text as ``spark.sql`` does.

    Args:
        values: of the parameters in the text.
        frames: DataFrames and other values for placeholders in the text.
    """
    text, frames = with_named_frames(spark, text, frames or {})
    word = _first_word(text)
    if isinstance(values, dict | list | tuple) and _binds(word, text):
        texts = _with_texts(values)
        if all_literals(texts):
            text, values = with_values(text, texts), None
    if word != "BEGIN" and _IDENTIFIER.search(text) is not None:
        text = with_identifiers(spark, text, values)
    if word == "EXECUTE" and (immediate := execute_immediate(text)) is not None:
        return _executed(original, spark, immediate, values)
    statements, own = _Statements(original, spark, values, frames), parse(text)
    if own is not None:
        result = _own_statement(spark, own)
        return statements.unchanged(text) if result is None else result
    try:
        result = statements.run(word, text)
    except SqlSyntaxError:
        _refuse_changes_of_delta(spark, text)
        result = statements.query(text) if word in ("CREATE", "INSERT") else None
    return statements.unchanged(text) if result is None else result


def _first_word(text: str) -> str:
    first = _STATEMENT.match(text)
    return "" if first is None else first[1].upper()


def _binds(word: str, text: str) -> bool:
    """Whether the client runs a part of a text with parameters: a statement, or a query that names a table or a version by one."""
    return word not in _QUERIES or _IDENTIFIER.search(text) is not None or _VERSION_BY_PARAMETER.search(text) is not None


def _with_texts(values: Values) -> Values:
    """Return the values of parameters, with the texts of column expressions that are comparisons of constants."""

    def text_if_known(value: object) -> object:
        text = as_sql(value) if isinstance(value, Column) else None
        return value if text is None else SqlText(text)

    if isinstance(values, Mapping):
        return {name: text_if_known(value) for name, value in values.items()}
    return [text_if_known(value) for value in values]


def _executed(original: RunSql, spark: SparkSession, immediate: ExecuteImmediate, values: object) -> DataFrame:
    """Run the statement of EXECUTE IMMEDIATE. Raises the error that Spark has for its text."""
    text = constant_of(spark, immediate.text, values).text
    if text is None or _first_word(text) in ("", "EXECUTE"):
        return original(spark, f"EXECUTE IMMEDIATE {immediate.text}", values)
    text = with_values(text, values_for(text, as_literals(spark, immediate.arguments, values)))
    return run_sql(original, spark, f"SET VARIABLE ({immediate.into}) = ({text})" if immediate.into else text)


def _own_statement(spark: SparkSession, statement: DeltaStatement) -> DataFrame | None:
    """Run a statement that only Delta has; return None if it is one of Spark, on a table of another format."""
    command = statement.command(spark)
    if command is None:
        return None
    with with_classes(COMMANDS.get(command.described, COMMANDS[""])):
        rows = command.run() or ()
    return local_frame(spark, rows, command.columns)


class _Statements:
    """Runs parsed statements; each method returns None for a table of another format, whose statement the server runs."""

    def __init__(self, original: RunSql, spark: SparkSession, values: object, frames: dict[str, Any]) -> None:
        self._original, self._spark = original, spark
        self._values, self._frames = values, frames

    def run(self, word: str, text: str) -> DataFrame | None:
        """Run a statement or a query.

        Args:
            word: the first one of the text.
        """
        if word == "EXPLAIN":
            return self.explain(text)
        if word == "BEGIN":
            _refuse_scripts(self._spark, text)
            return None
        if word == "INSERT" and dml.writes_directory_of_delta(text):
            raise directory_rejection()
        if word in ("FROM", "WITH") and (inserts := dml.several_inserts(text)):
            return self.inserts(text, inserts)
        if word in _ROW_STATEMENTS and (rows := dml.row_statement(text)) is not None:
            return self.row_statement(rows)
        if (statement := ddl.table_statement(text)) is not None:
            return self.table_statement(statement)
        if word == "CACHE" and (cached := cache_statement(text)) is not None:
            return self.cache(text, cached)
        if word == "CLEAR":
            forget_persisted(self._spark.client)
        view = view_statement(text) if word in ("CREATE", "ALTER") else None
        if view is not None:
            return self.view(text, view)
        delta = self._delta_rows(text)
        if delta and word == "CREATE":
            if _FUNCTION.match(text) is None:
                return None  # Spark's parser refuses it
            raise Unsupported(
                "A function that reads Delta tables cannot be created in a session of Spark Connect: the server would read them by their "
                "names, which it does not resolve. Use a view, or a classic session.",
                code="TAHOE_SPARK_CONNECT",
            )
        return self._query(text, delta)

    def unchanged(self, text: str) -> DataFrame:
        """Let the server run a text."""
        return self._query(text, ())

    def query(self, text: str) -> DataFrame:
        """Run a query."""
        return self._query(text, self._delta_rows(text))

    def _delta_rows(self, text: str) -> list[ReferenceRows]:
        return delta_rows(self._spark, text, self._values, self._frames)

    def _query(self, text: str, delta: Sequence[ReferenceRows], head: str = "") -> DataFrame:
        placed, frames = with_frames(text, delta, self._frames, head=head)
        return self._original(self._spark, placed, self._values, **frames)

    def explain(self, text: str) -> DataFrame:
        """Return the plan of a query; that of a change of a Delta table is refused."""
        cursor = Cursor(text, tokenize(text))
        cursor.need("EXPLAIN")
        any(cursor.take(mode) for mode in _EXPLAIN_MODES)
        head, explained = text[: cursor.peek().start], text[cursor.peek().start :]
        changes = dml.row_statement(explained) if cursor.peek().is_word(*_ROW_STATEMENTS) else None
        if changes is not None and table_named(self._spark, changes.table.identifiers) is not None:
            raise Unsupported(
                f"EXPLAIN of a change of the Delta table {changes.table} is not supported in a session of Spark Connect. EXPLAIN a query.",
                code="TAHOE_SPARK_CONNECT",
                table=str(changes.table),
            )
        return self._query(explained, self._delta_rows(explained), head)

    def _written_by_server(self, head: str, query: str | None) -> DataFrame | None:
        """Run a statement that writes the rows of a query over Delta tables to a table of another format."""
        delta = () if query is None else self._delta_rows(query)
        return self._query(str(query), delta, head) if delta else None

    def view(self, text: str, view: ViewStatement) -> DataFrame:
        """Create or alter a view; over Delta tables, the client makes the rows of a temporary one, and the server stores any other."""
        if view.source == "delta" and view.scope:
            create_temporary_view(self._spark.read.format("delta").options(**dict(view.options)).load(), view)
            return self._nothing()
        delta = self._delta_rows(view.query)
        if not delta:
            result = self.unchanged(text)
            if view.scope or view.alters:
                forget_view(self._spark, view.parts)
            return result
        if (temporary := as_temporary(self._spark, view)) is not None:
            create_temporary_view(self._query(view.query, delta), temporary)
            return self._nothing()
        prepare_permanent_view(self._spark, view, delta)
        return self.unchanged(text)

    def cache(self, text: str, statement: CacheStatement) -> DataFrame:
        """Cache the rows of a query under a new name, or of a temporary view; a Delta table itself is refused."""
        if statement.query is None:
            prepare_cache(self._spark, statement.name.identifiers)
            return self.unchanged(text)
        delta = self._delta_rows(statement.query)
        if not delta:
            return self.unchanged(text)
        cache_view(self._query(statement.query, delta), statement)
        return self._nothing()

    def row_statement(self, statement: dml.RowStatement) -> DataFrame | None:
        """Run DELETE, UPDATE, MERGE or INSERT."""
        named = relation_on_server(self._spark, statement.table.identifiers)
        if isinstance(statement, dml.Insert):
            if not isinstance(named, NamedTable):
                if named is not None and named.is_temporary and rows_of_view(self._spark, named) is not None:
                    raise _insert_into_view(str(statement.table))
                return self._written_by_server(statement.head, statement.query)
            insert_rows(self._spark, named, statement, self.query)
            return self._nothing()
        if named is None or (isinstance(named, ServerEntry) and not named.is_view):
            return None
        self._require_literals()
        if isinstance(named, NamedTable):
            statement = self._with_short_names(statement, named)
        table = named.table if isinstance(named, NamedTable) else self._table_of_view(named, statement)
        target = CommandTarget(self._spark, table, statement.alias or _last(statement.table))
        match statement:
            case dml.Delete():
                return self._counted(delete(target, statement.where).num_affected_rows)
            case dml.Update():
                return self._counted(update(target, statement.values, statement.where).num_affected_rows)
        return self._merge(target, statement)

    def _with_short_names(
        self, statement: dml.Delete | dml.Update | dml.Merge, target: NamedTable
    ) -> dml.Delete | dml.Update | dml.Merge:
        """Return a statement whose conditions and assignments name the tables by their aliases."""
        into = None if target.is_by_path else QueriedTable(target.full_name_parts, alias=statement.alias)
        source = None
        if isinstance(statement, dml.Merge) and statement.source_alias is not None:
            tables = self._tables_in(statement.source, into)
            source = next(
                (table for table in tables if table.name[-1] == statement.source_alias), QueriedTable((statement.source_alias,))
            )
            source = QueriedTable(source.name)
        return with_short_names(
            statement, into, source, lambda text: self._tables_in(text, into, source) if has_subquery(text) else ()
        )

    def _tables_in(self, query: str, *around: QueriedTable | None) -> list[QueriedTable]:
        """Return the tables in a query.

        Args:
            around: those of the statement; the database of a table with the same name is looked up.
        """
        short = {table.key[-1] for table in around if table is not None}
        tables = list(queried_tables(query))
        if any(len(table.name) == 1 and table.key[0] in short for table in tables):
            tables = list(queried_tables(query, self._delta_rows(query)))
        return [replace(table, takes_alias=False) for table in tables]

    def _table_of_view(self, entry: ServerEntry, statement: dml.Delete | dml.Update | dml.Merge) -> Table:
        """Return the table whose rows a statement changes through a view, after checking the columns that it names."""
        view = target_of_view(self._spark, entry, statement.alias) if entry.is_temporary else None
        if view is None:
            raise _view_as_target(entry, str(statement.table))
        match statement:
            case dml.Delete():
                view.check_columns([] if statement.where is None else [statement.where])
            case dml.Update():
                values = [value for _, value in statement.values if not is_keyword(value)]
                assigned = [column for column, _ in statement.values]
                view.check_columns([*values, *assigned, *([] if statement.where is None else [statement.where])])
            case dml.Merge():
                view.view.check_all(view.table.schema().names)
        return view.table

    def inserts(self, text: str, parts: tuple[str, ...]) -> DataFrame:
        """Run the parts of an INSERT into several tables, one after the other.

        Args:
            text: the whole statement, which the server runs if no target is a Delta table.
        """
        statements = [dml.row_statement(part) for part in parts]
        if not any(each is not None and table_named(self._spark, each.table.identifiers) for each in statements):
            return self.query(text)
        self._require_literals()
        # All parts read the same versions, also of a table that an earlier part changes.
        versions = dict[TableName, int | None]()
        for part in [with_versions(self._spark, part, versions) for part in parts]:
            statement = dml.row_statement(part)
            if statement is None or self.row_statement(statement) is None:
                self.unchanged(part)
        return self._nothing()

    def _require_literals(self) -> None:
        if self._values:
            raise Unsupported(
                "The parameters of DELETE, UPDATE, MERGE and FROM … INSERT on Delta tables must be literals in a session of Spark Connect: "
                "numbers, texts, dates and so on, no column expressions. Pass such values, or use DeltaTable.",
                code="TAHOE_SPARK_CONNECT",
            )

    def _merge(self, target: CommandTarget, statement: dml.Merge) -> DataFrame:
        source = self.query(statement.source)
        source = source if statement.source_alias is None else source.alias(statement.source_alias)
        clauses: tuple[Clause[Term], ...] = tuple(
            Clause(Kind[clause.kind], Action[clause.action], clause.condition, clause.values) for clause in statement.clauses
        )
        request = MergeRequest(source, statement.on, clauses, schema_evolution=statement.schema_evolution)
        with with_classes(MERGE_STATEMENTS):
            return local_frame(self._spark, [merge(target, request).counts], RESULT)

    def table_statement(self, statement: ddl.TableStatement) -> DataFrame | None:
        """Run CREATE, ALTER, DESCRIBE, SHOW or TRUNCATE."""
        if isinstance(statement, ddl.Create):
            return self._create(statement)
        if isinstance(statement, ddl.CreateLike):
            return self._create_like(statement)
        named = table_named(self._spark, statement.table.identifiers)
        if named is None:
            return None
        with with_classes(COMMANDS[""]):
            return self._on_table(named, statement)

    def _on_table(self, named: NamedTable, statement: ddl.TableStatement) -> DataFrame:
        match statement:
            case Other():
                raise rejection_of(statement.words, str(statement.table)) or Unsupported(
                    f"{statement.words} on the Delta table {statement.table} is not supported in a session of Spark Connect: it would "
                    "change the server's catalog, and commit nothing to the table. Nothing was changed. Use the methods of DeltaTable or "
                    "of tahoe.Table, or a classic session.",
                    code="DELTA_OPERATION_NOT_ALLOWED",
                    operation=statement.words,
                    table=str(statement.table),
                )
            case ddl.Truncate(partition=str()):
                raise rejection("TruncatePartition", str(statement.table))
            case ddl.Truncate():
                named.table.snapshot()  # a missing table has another error class here than in commands that change rows
                run_row_command(CommandTarget(self._spark, named.table), "TRUNCATE", stage_truncate)
            case ddl.SetLocation():
                require_name(named)
                move(self._spark, named, statement.location)
            case Describe():
                columns, rows = definitions.described(self._spark, named, statement)
                return local_frame(self._spark, rows, columns)
            case _:
                definitions.altered(self._spark, named.table, statement)
        return self._nothing()

    def _create(self, statement: ddl.Create) -> DataFrame | None:
        provider = _provider(self._spark, statement)
        if statement.table.path is None and provider != "delta":
            return self._written_by_server(statement.head, statement.query)
        if statement.table.path is not None and statement.provider not in (None, "delta"):
            raise InvalidRequest(
                f"{statement.table} is a Delta table, and USING {statement.provider} names another format.",
                code="DELTA_OPERATION_NOT_ALLOWED",
                table=str(statement.table),
            )
        query = None if statement.query is None else lambda: self.query(str(statement.query))
        definitions.created(self._spark, statement, query)
        return self._nothing()

    def _create_like(self, statement: ddl.CreateLike) -> DataFrame | None:
        source = table_named(self._spark, statement.source.identifiers)
        if statement.provider != "delta" and (source is None or statement.provider is not None):
            if source is not None:
                raise other_format(str(statement.source))
            return None
        definitions.created_like(self._spark, statement, source)
        return self._nothing()

    def _counted(self, rows: int) -> DataFrame:
        return local_frame(self._spark, [(rows,)], _AFFECTED)

    def _nothing(self) -> DataFrame:
        return local_frame(self._spark, (), StructType())


def _provider(spark: SparkSession, statement: ddl.Create | CatalogDdl) -> str:
    """Return the format of a new table: the statement's, otherwise the session's."""
    return statement.provider or (setting_of(spark, "spark.sql.sources.default") or "parquet").lower()


def _view_as_target(view: ServerEntry, name: str) -> TahoeError:
    if view.is_temporary:
        return Unsupported(
            f"The temporary view {name} is of no Delta table that this client knows, so no rows can be changed through it. Name the table.",
            code="TAHOE_SPARK_CONNECT",
            table=name,
        )
    return InvalidRequest(
        f"UPDATE, DELETE and MERGE only support Delta tables, and {name} is a view of the catalog. Name the table.",
        code="DELTA_UNSUPPORTED_SOURCE",
        table=name,
    )


def _insert_into_view(name: str) -> TahoeError:
    return InvalidRequest(
        f"{name} is a temporary view of Delta tables, and INSERT needs a table. Name the table.",
        code="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        table=name,
    )


def _last(name: TableName) -> str | None:
    return None if name.path is not None else name.parts[-1]


# -- text that is left to the server ---------------------------------------------------------------------------------------------


def _refuse_scripts(spark: SparkSession, text: str) -> None:
    """Reject a script that reads, changes, creates or alters a Delta table: the server finds no table, or changes only its catalog."""
    for statement in catalog_ddl(text):
        if _is_of_delta(spark, statement):
            raise Unsupported(
                f"{statement.words} of the Delta table {statement.table} in a script is not supported in a session of Spark Connect. Run the "
                "statement by itself.",
                code="DELTA_OPERATION_NOT_ALLOWED",
                operation=statement.words,
                table=str(statement.table),
            )
    for name in names_in_script(text):
        if name.path is not None or table_named(spark, name.identifiers) is not None:
            raise Unsupported(
                f"A script that names the Delta table {name} is not supported in a session of Spark Connect: the server runs all of it, and "
                "does not resolve the table. Run its statements one by one.",
                code="TAHOE_SPARK_CONNECT",
                table=str(name),
            )


def _refuse_changes_of_delta(spark: SparkSession, text: str) -> None:
    """Within the handling of a syntax error: raise it again if the text would change a Delta table's entry in the server's catalog."""
    if any(_is_of_delta(spark, statement) for statement in catalog_ddl(text)):
        raise


def _is_of_delta(spark: SparkSession, statement: CatalogDdl) -> bool:
    if statement.table is not None and statement.table.path is not None:
        return True
    if statement.creates:
        return _provider(spark, statement) == "delta"
    return statement.table is not None and table_named(spark, statement.table.identifiers) is not None
