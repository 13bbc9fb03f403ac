"""CHECK constraints and generated columns that only Spark can evaluate: the functions they call, their types, and the rows they reject.

The text comes from a table, so it passes the allow-list of `tahoe.protocol.constraints` first, which has no function that runs code.
Catalyst decides on the types. A function that the user registered under the name of a built-in one is refused: another writer would not
have it.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.engine_functions import ENGINE_TYPE, engine_functions_in
from tahoe.expr.tree.expression import Expression
from tahoe.ops.tables.constrain import count_violations, stage_add_constraint
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import Constraints, Generated, check_generated_type, check_new, constraints_of, spark_text
from tahoe.schema.types import DataType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_schema
from tahoe.table import Table

__all__ = ["add_constraint", "check_functions", "check_new_on_spark", "session_of_stored_expressions"]

_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
"""Settings on which the meaning of an expression's text depends."""
_BACKSLASHES = "spark.sql.parser.escapedStringLiterals"
"""One of them too, but deprecated: Spark warns about it, so it is reset only if somebody has set it."""


def session_of_stored_expressions(spark: SparkSession) -> JavaObject:
    """A copy of the JVM session in which the text of a stored expression has the meaning that the allow-list gave it."""
    is_set = spark.conf.get(_BACKSLASHES, "false") != "false"
    return Jvm.of(spark).session_with(spark, {**_MEANING, _BACKSLASHES: "false"} if is_set else _MEANING)


def check_functions(spark: SparkSession, constraints: Constraints) -> None:
    """Raise `Unsupported` if the session has its own function under the name of one that a constraint or a generated column calls."""
    for expression, text, subject in constraints.expressions():
        for name in engine_functions_in(expression):
            if not _is_built_in(spark, name):
                raise Unsupported(
                    f"Table {constraints.table}: {subject} ({text[:200]}) calls {name}, which is not Spark's built-in function in this "
                    f"session. Drop the function {name} that the session registered, and run the statement again.",
                    code="DELTA_UDF_IN_GENERATED_COLUMN"
                    if subject.startswith("the generated")
                    else "DELTA_UDF_IN_CHECK_CONSTRAINT",
                    table=constraints.table,
                    function=name,
                )


def check_new_on_spark(spark: SparkSession, config: TableConfig) -> None:
    """As `check_new`; Catalyst finds the types of expressions that only Spark can evaluate. A Connect client has no Catalyst to ask.

    Raises:
        As `check_new`; `InvalidRequest` for an expression that Catalyst does not accept.
    """
    check_new(config, by_spark=is_classic(spark))
    constraints = constraints_of(config)
    if not any(engine_functions_in(expression) for expression, _, _ in constraints.expressions()):
        return
    check_functions(spark, constraints)
    for check in constraints.checks:
        _check_condition(spark, config, check.condition, check.text, f"CHECK constraint '{check.name}'")
    for generated in constraints.generated:
        if engine_functions_in(generated.value):
            _check_generated(spark, config, generated)


def add_constraint(spark: SparkSession, table: Table, name: str, condition: str) -> int:
    """Add a CHECK constraint after counting the rows that violate it, with Spark if only Spark can evaluate it; the new version.

    Raises:
        As `tahoe.ops.tables.constrain.stage_add_constraint`, but for functions that only Spark can evaluate.
    """

    def count(snapshot: Snapshot, added: Constraints) -> int:
        [check] = added.checks
        if not engine_functions_in(check.condition):
            return count_violations(snapshot, added)
        check_functions(spark, added)
        _check_condition(spark, snapshot.config, check.condition, check.text, f"CHECK constraint '{check.name}'")
        rows = spark.read.format("delta").option("versionAsOf", snapshot.version).load(table.url)
        return _evaluated(rows, sf.expr(spark_text(check.condition))).where("not coalesce(value, false)").count()

    transaction = table.begin()
    operation = stage_add_constraint(transaction, transaction.existing(), name, condition, count)
    return table.commit(transaction, operation).version


def _check_condition(spark: SparkSession, config: TableConfig, condition: Expression, text: str, subject: str) -> None:
    if condition.data_type != ENGINE_TYPE:
        return
    found = _type_of(spark, config, condition, text, subject)
    if str(found) != "boolean":
        raise InvalidRequest(
            f"Table {config.table}: {subject} ({text[:200]}) is of type {found}; a condition must be boolean.",
            code="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            table=config.table,
        )


def _check_generated(spark: SparkSession, config: TableConfig, generated: Generated) -> None:
    subject = f"the generated column '{generated.column.name}'"
    check_generated_type(generated, _type_of(spark, config, generated.value, generated.text, subject), config.table)


def _type_of(spark: SparkSession, config: TableConfig, expression: Expression, text: str, subject: str) -> DataType:
    rows = spark.createDataFrame([], to_spark_schema(config.schema))
    try:
        return from_spark_schema(_evaluated(rows, sf.expr(spark_text(expression))).schema).field("value").data_type
    except AnalysisException as error:
        raise InvalidRequest(
            f"Table {config.table}: Spark does not accept {subject} ({text[:200]}). {error}",
            code=error.getCondition(),
            table=config.table,
        ) from error


def _evaluated(rows: DataFrame, value: Column) -> DataFrame:
    spark = rows.sparkSession
    frame = Jvm.of(spark).frame(session_of_stored_expressions(spark), rows._jdf.queryExecution().analyzed(), spark)
    return frame.select(value.alias("value"))


def _is_built_in(spark: SparkSession, name: str) -> bool:
    identifier = Jvm.of(spark).java_class("org.apache.spark.sql.catalyst.FunctionIdentifier").apply(name)
    info = spark._jsparkSession.sessionState().catalog().lookupFunctionInfo(identifier)
    return str(info.getSource()) == "built-in"
