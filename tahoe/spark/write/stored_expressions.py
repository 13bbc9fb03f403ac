"""CHECK constraints, generated columns and defaults as Spark columns: how their texts are parsed, their types, and the rows they reject.

A text comes from a table. Expressions that the allow-list of `tahoe.protocol.constraints` accepts are regenerated from the parsed form;
expressions that only Spark can evaluate must first pass the lists of `tahoe.spark.jvm.stored_trees`. Catalyst then determines the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.engine_text import engine_text
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.expression import EngineText, Expression, engine_text_in
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import (
    Check,
    Constraints,
    Generated,
    base_columns,
    cannot_enforce,
    check_generated_type,
    check_new,
    constraints_of,
    spark_text,
)
from tahoe.schema.collations import is_collated
from tahoe.schema.types import StructType
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.session_copies import session_with
from tahoe.spark.jvm.stored_defaults import check_default_on_spark
from tahoe.spark.jvm.stored_trees import Bound, Stored, StoredTrees, Use
from tahoe.spark.names.settings import setting_of

BACKSLASHES = "spark.sql.parser.escapedStringLiterals"
MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    BACKSLASHES: "false",
}
"""Settings on which the meaning of an expression's text depends, with the values for which it is the one that Tahoe's parser finds."""


def other_settings(spark: SparkSession, names: Iterable[str] = MEANING) -> Iterator[tuple[str, str]]:
    """Yield the settings of the session, of `MEANING`, that give texts another meaning, with their values."""
    for name in names:
        actual = setting_of(spark, name)
        if actual is not None and actual.lower() != MEANING[name].lower():
            yield name, actual


def session_of_stored_expressions(spark: SparkSession) -> JavaObject:
    """Return a copy of the JVM session in which a stored expression's text has the meaning that the allow-list parsed."""
    # Spark warns about the setting, which is deprecated, so it is reset only if it was set.
    is_set = next(other_settings(spark, [BACKSLASHES]), None) is not None
    return session_with(spark, {name: value for name, value in MEANING.items() if is_set or name != BACKSLASHES})


class StoredExpressions:
    """The constraints and generated columns of a table as checked Spark columns.

    Args:
        config: of the table or the coming commit.
        by_statement: the attribute of `Stored`.
    """

    def __init__(self, spark: SparkSession, config: TableConfig, *, by_statement: bool = False) -> None:
        self._spark, self._config, self._jvm, self._by_statement = spark, config, Jvm.of(spark), by_statement

    def condition(self, check: Check) -> Column:
        """Return the condition of a CHECK constraint or an invariant; raises the errors of `StoredTrees.bound`."""
        return self._column(check.condition, lambda engine: self.bound_check(check.name, engine))

    def value(self, generated: Generated) -> Column:
        """Return the value of a generated column; raises the errors of `StoredTrees.bound`."""
        return self._column(generated.value, lambda engine: self.bound_generated(generated, engine))

    def bound_check(self, name: str, engine: EngineText) -> Bound:
        """Return a condition that only Spark can evaluate; raises the errors of `StoredTrees.bound`."""
        return self._bound(engine, "CHECK_CONSTRAINT", f"CHECK constraint '{name}'", self._config.schema)

    def bound_generated(self, generated: Generated, engine: EngineText) -> Bound:
        """Return a value that only Spark can evaluate; raises the errors of `StoredTrees.bound`."""
        subject = f"the generated column '{generated.column.name}'"
        return self._bound(engine, "GENERATED_COLUMN", subject, base_columns(self._config.schema))

    def _column(self, expression: Expression, bound: Callable[[EngineText], Bound]) -> Column:
        engine = engine_text_in(expression)
        return sf.expr(spark_text(expression)) if engine is None else self._jvm.column(bound(engine).tree)

    def _bound(self, engine: EngineText, use: Use, subject: str, reads: StructType) -> Bound:
        stored = Stored(engine, use, self._config.table, subject, reads, self._by_statement)
        if any(is_collated(stored.reads.field(reference.path[0])) for reference in stored.engine.reads):
            raise cannot_enforce(stored.table, stored.subject, stored.engine)
        return self._trees.bound(stored)

    @cached_property
    def _trees(self) -> StoredTrees:
        return StoredTrees(self._spark, session_of_stored_expressions(self._spark))


def check_new_on_spark(spark: SparkSession, config: TableConfig, *, by_statement: bool = False) -> None:
    """Check the schema like `check_new`; Catalyst determines the types of expressions that only Spark can evaluate.

    Args:
        by_statement: whether a Spark statement creates the table, which Spark checks before delta-spark does.

    Raises:
        The errors of `check_new` and of `StoredTrees.bound`; ``UNSUPPORTED_EXPRESSION_GENERATED_COLUMN`` if Spark rejects the statement.
    """
    constraints = constraints_of(config)
    if by_statement:
        _check_statement(spark, config, constraints)
    check_new(config, by_spark=True)
    for column in config.schema:
        check_default_on_spark(spark, column, config)
    stored = StoredExpressions(spark, config)
    for check in constraints.checks:
        if engine := engine_text_in(check.condition):
            stored.bound_check(check.name, engine)
    for generated in constraints.generated:
        if engine := engine_text_in(generated.value):
            check_generated_type(generated, stored.bound_generated(generated, engine).data_type, config.table)


def _check_statement(spark: SparkSession, config: TableConfig, constraints: Constraints) -> None:
    """Reject generated columns that Spark itself rejects in CREATE TABLE."""
    stored = StoredExpressions(spark, config, by_statement=True)
    names = {generated.column.name for generated in constraints.generated}
    for generated in constraints.generated:
        engine = engine_text_in(generated.value)
        if engine is None:
            data_type = parse_expression(generated.text, config.schema).data_type
        else:
            read = {
                reference.path[0] for reference in engine_text(generated.text, config.schema, engine.code, engine.reason).reads
            }
            if engine.code == "DELTA_COLUMN_NOT_FOUND" and (generated_inputs := sorted(read & names)):
                raise _refused_by_spark(config, generated, f"it reads the generated column {generated_inputs[0]}")
            data_type = stored.bound_generated(generated, engine).data_type
        if not Jvm.of(spark).can_cast("canUpCast", data_type, generated.column.data_type):
            raise _refused_by_spark(
                config, generated, f"its values are {data_type}, which may not fit into {generated.column.data_type}"
            )


def _refused_by_spark(config: TableConfig, generated: Generated, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"Table {config.table}: the generated column '{generated.column.name}' ({generated.text[:200]}) cannot be created: {why}.",
        code="UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        table=config.table,
        column=generated.column.name,
    )
