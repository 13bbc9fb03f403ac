"""A SQL statement on Delta tables: its name, its syntax, its validation, its execution and its result columns, each in one definition.

    class of `DeltaStatement`    a statement that only Delta has: parsed here, from text, to a frozen value
    record `SparkStatement`      a statement of Spark's parser, by the node of its plan

The lists of both are in `tahoe.spark.statements.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.snapshot.read_errors import naming_table
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.names.entries import NamedTable, table_named
from tahoe.spark.names.new_entries import names_view
from tahoe.spark.statements.command import Command, Rows
from tahoe.spark.statements.targets import Target, is_missing, target_of
from tahoe.sql.dialect import Cursor
from tahoe.sql.table_name import TableName


class DeltaStatement(ABC):
    """A statement that only Delta has; a subclass is a frozen dataclass of the parsed values.

    Attributes:
        words: its name in plans and errors.
        first_words: the words with which its text may begin, if they are not only the first one of `words`.
        columns: of the result; a schema, or its DDL text.
        is_query: whether it changes nothing.
    """

    __slots__ = ()
    words: ClassVar[str]
    first_words: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[StructType | str] = StructType()
    is_query: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def parse(cls, cursor: Cursor) -> Self | None:
        """Parse a statement; return None for another one with the same first word. Raises `SqlSyntaxError`."""

    @abstractmethod
    def command(self, spark: SparkSession) -> Command | None:
        """Validate the statement and return its execution; None if it is a statement of Spark after all."""

    def _command(self, run: Callable[[], Rows]) -> Command:
        columns = cast(StructType, DataType.fromDDL(self.columns)) if isinstance(self.columns, str) else self.columns
        return Command(self.words, run, columns, is_query=self.is_query)


def delta_statements(*kinds: type[DeltaStatement]) -> tuple[type[DeltaStatement], ...]:
    """Return the classes; a type checker rejects one that lacks a method."""
    return kinds


@dataclass(frozen=True, slots=True)
class TableStatement(DeltaStatement):
    """A statement on an existing Delta table.

    Attributes:
        other_format_code: the class of the error for a table of another format.
        refuses_views: whether a view has an error of its own.
    """

    other_format_code: ClassVar[str] = "DELTA_ONLY_OPERATION"
    refuses_views: ClassVar[bool] = True

    table: TableName

    @abstractmethod
    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """Execute the statement; return the rows of its result."""

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether Spark executes the text, whose name is not that of a Delta table."""
        return False

    def on_other_table(self, spark: SparkSession) -> Command | None:
        """Return the execution on a table of another format; None if there is none."""
        return None

    def command(self, spark: SparkSession) -> Command | None:
        """See `DeltaStatement.command`. Raises `NotFound`, or `InvalidRequest` for a view, if the name is not that of a Delta table."""
        named = table_named(spark, self.table.identifiers)
        if named is not None:
            return self._command(lambda: self.run(spark, named))
        if self.is_of_spark(spark):
            return None
        if self.refuses_views and names_view(spark, self.table.identifiers):
            raise InvalidRequest(
                f"'{self.words}' expects a table but {self.table} is a view. Name the Delta table that the view reads.",
                code="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                table=str(self.table),
            )
        command = self.on_other_table(spark)
        if command is None:
            raise self._not_found(spark)
        return command

    def _not_found(self, spark: SparkSession) -> NotFound:
        if is_missing(spark, self.table.identifiers):
            return NotFound(
                f"There is no table '{self.table}'. Check the name, or the database that is in use.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=str(self.table),
            )
        return NotFound(
            f"'{self.table}' is not a Delta table, and {self.words} is for these. Name one by its name in the catalog, or by its path, "
            "delta.`/path`.",
            code=self.other_format_code,
            table=str(self.table),
        )


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """A statement that Spark's parser supports.

    Args:
        words: its name in plans and errors.
        node: the name of its plan's node.
        fields: the supported fields of the node, separated by blanks; a value in another one is an error. None for a statement that is
            rejected on every Delta table, whose fields are irrelevant.
        resolve: validates the plan of this statement and returns the execution (`execution`); None if Spark executes it.
        columns: of the result.
        is_query: whether it changes nothing.
    """

    words: str
    node: str
    fields: str | None
    resolve: Resolve
    columns: StructType = field(default_factory=StructType)
    is_query: bool = False

    def command(self, spark: SparkSession, plan: JavaObject) -> Command | None:
        """Validate a plan and return its execution; None if Spark executes it. Raises `UnresolvedName`."""
        return self.resolve(self, spark, plan)

    def execution(self, run: Callable[[], Rows], columns: StructType | None = None) -> Command:
        """Return the command for a function that executes the statement.

        Args:
            columns: of the result, if they depend on the table.
        """
        return Command(self.words, run, self.columns if columns is None else columns, is_query=self.is_query)


Resolve = Callable[[SparkStatement, SparkSession, JavaObject], Command | None]


def on_table(field: str, prepare: Callable[[SparkSession, JavaObject, Target], Callable[[], Rows]]) -> Resolve:
    """Return the function `SparkStatement.resolve` of a statement on one table.

    Args:
        field: the field of the plan with the table.
        prepare: validates the plan and returns the function that executes the statement.
    """

    def resolve(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
        target = target_of(spark, getattr(plan, field)())
        if target is None:
            return None
        with naming_table(target.named.table.url):
            run = prepare(spark, plan, target)

        def execute() -> Rows:
            with naming_table(target.named.table.url):
                return run()

        return statement.execution(execute)

    return resolve
