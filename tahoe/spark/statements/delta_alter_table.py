"""ALTER TABLE in the forms that only Delta has: constraints, DROP FEATURE, SYNC IDENTITY."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.commands.upkeep import drop_feature_of
from tahoe.spark.names.entries import NamedTable
from tahoe.spark.names.new_entries import names_view
from tahoe.spark.names.settings import assumes_if_exists, is_on
from tahoe.spark.statements.statement_types import TableStatement, delta_statements
from tahoe.spark.write.new_constraints import add_constraint
from tahoe.sql.dialect import STRING, Cursor
from tahoe.sql.table_name import TableName, take_table


class _ConstraintStatement(TableStatement):
    """A statement that Spark executes on tables of other formats."""

    __slots__ = ()

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether the table has another format; a view is rejected."""
        return not names_view(spark, self.table.identifiers)


@dataclass(frozen=True, slots=True)
class AddConstraint(_ConstraintStatement):
    """``ALTER TABLE … ADD CONSTRAINT name CHECK (condition)``; Spark parses other kinds of constraints."""

    words = "ALTER TABLE … ADD CONSTRAINT"
    name: str
    condition: str

    @classmethod
    def parse(cls, cursor: Cursor) -> AddConstraint | None:
        """See `DeltaStatement.parse`."""
        if (table := _altered(cursor, "ADD", "CONSTRAINT")) is None:
            return None
        name = cursor.identifier()
        if not cursor.take("CHECK"):
            return None
        condition = cursor.bracketed()
        cursor.end()
        return AddConstraint(table, name, condition)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        add_constraint(spark, named.table, self.name, self.condition)


@dataclass(frozen=True, slots=True)
class DropConstraint(_ConstraintStatement):
    """``ALTER TABLE … DROP CONSTRAINT [IF EXISTS] name``."""

    words = "ALTER TABLE … DROP CONSTRAINT"
    name: str
    if_exists: bool

    @classmethod
    def parse(cls, cursor: Cursor) -> DropConstraint | None:
        """See `DeltaStatement.parse`."""
        if (table := _altered(cursor, "DROP", "CONSTRAINT")) is None:
            return None
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.identifier()
        cursor.end()
        return DropConstraint(table, name, if_exists)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        named.table.drop_constraint(self.name, if_exists=self.if_exists or assumes_if_exists(spark))


@dataclass(frozen=True, slots=True)
class DropFeature(TableStatement):
    """``ALTER TABLE … DROP FEATURE name [TRUNCATE HISTORY]``."""

    words = "ALTER TABLE … DROP FEATURE"
    feature: str
    truncates_history: bool

    @classmethod
    def parse(cls, cursor: Cursor) -> DropFeature | None:
        """See `DeltaStatement.parse`."""
        if (table := _altered(cursor, "DROP", "FEATURE")) is None:
            return None
        feature = cursor.string() if cursor.peek().kind == STRING else cursor.identifier()
        truncates = cursor.take("TRUNCATE", "HISTORY")
        cursor.end()
        return DropFeature(table, feature, truncates)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        drop_feature_of(spark, named.table, self.feature, truncates_history=self.truncates_history)


_MAY_LOWER = "spark.databricks.delta.identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled"


@dataclass(frozen=True, slots=True)
class SyncIdentity(TableStatement):
    """``ALTER TABLE … ALTER | CHANGE [COLUMN] column SYNC IDENTITY``; Spark parses the other changes of a column.

    Args:
        column: the parts of its name.
    """

    words = "ALTER TABLE … SYNC IDENTITY"
    other_format_code = "DELTA_IDENTITY_COLUMNS_ALTER_NON_DELTA_FORMAT"
    column: tuple[str, ...]

    @classmethod
    def parse(cls, cursor: Cursor) -> SyncIdentity | None:
        """See `DeltaStatement.parse`."""
        table = _altered(cursor)
        if table is None or not (cursor.take("ALTER") or cursor.take("CHANGE")):
            return None
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

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        named.table.sync_identity(".".join(map(quote_identifier, self.column)), may_lower=is_on(spark, _MAY_LOWER))


def _altered(cursor: Cursor, *words: str) -> TableName | None:
    """Parse ``ALTER TABLE name`` and these words; return None if the text is another one."""
    table = take_table(cursor) if cursor.take("ALTER", "TABLE") else None
    return table if cursor.take(*words) else None


ALTER_STATEMENTS = delta_statements(AddConstraint, DropConstraint, DropFeature, SyncIdentity)
