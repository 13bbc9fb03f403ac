"""Enforces a table's rules for rows that Spark writes to data files: NOT NULL, CHECK, invariants, generated columns.

    rows ─► fitted ─► texts limited ─► '' of partition columns is NULL ─► generated columns ─► one CASE that fails for the first invalid row

Everything becomes a Spark expression, evaluated by the job that writes the files: an invalid row makes the job fail, and its writer deletes
the written files. Catalyst gets only expressions that the allow-list (`tahoe.protocol.constraints`) has accepted, regenerated from the
parsed form. They are analyzed under settings that preserve the parsed meaning, whatever the session's own settings are; only the session's
time zone applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvariantViolation, Unsupported
from tahoe.expr.tree.expression import Expression, Reference, references_of
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.write.completion import Completion, refuse_incomplete
from tahoe.protocol.column_values.identity import IdentityColumn, overflow
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import GENERATED, Constraints, Generated, constraints_of, null_found, violated
from tahoe.schema.evolve import without_void
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, is_geospatial
from tahoe.schema.walk import paths_of_type
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.spark.jvm.errors import raising, raising_with_values
from tahoe.spark.jvm.stored_defaults import default_column
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.settings import setting_of
from tahoe.spark.write.fitting import ANSI_CASTS, Casts, cast_or_fail, fitted
from tahoe.spark.write.limited import limited_columns
from tahoe.spark.write.stored_expressions import StoredExpressions, session_of_stored_expressions
from tahoe.txn.transaction import Transaction

_FLAG = "__tahoe_compute_"
_VOID, _STRING = PrimitiveType("void"), PrimitiveType("string")


def enforced(
    data: DataFrame,
    config: TableConfig,
    also: Sequence[str] = (),
    *,
    completion: Completion | None = None,
    casts: Casts = ANSI_CASTS,
) -> DataFrame:
    """Return the rows as the table stores them: its columns with its types, missing ones numbered and computed, all checked.

    A row that violates a rule makes the query that reads the result fail with `InvariantViolation`, which names the table, the rule and the
    values of that row. A transaction whose rows all come from here may declare that it enforces `tahoe.protocol.features.ENFORCED`.

    Args:
        data: columns are matched by name, case-insensitively; omitted generated columns are computed.
        config: of the coming commit.
        also: extra columns of the data, which are passed through after the table's.
        completion: the identity columns that the data lacks; None if it has all of them. `write_files` needs it too.
        casts: how values are cast.

    Raises:
        SchemaMismatch: raised by `fitted`.
        Unsupported, InvalidRequest, CorruptTable: a rule that cannot be enforced, by name; raised before any query runs.
    """
    spark, jvm = data.sparkSession, Jvm.of(data.sparkSession)
    constraints, stored = constraints_of(config, session_time_zone(spark)), StoredExpressions(spark, config)
    present = {name.lower() for name in data.columns}
    if completion is None:
        refuse_incomplete(config, present, "This write", "Give the rows that column.")
    rows = fitted(data, config.table, config.schema, also, casts)
    if completion is not None and (filled := _filled_in(spark, completion, config)):
        rows = _selected(rows, config, filled, rows.columns)
    if limited := limited_columns(spark, config):
        rows = _selected(rows, config, limited, rows.columns)
    rows = _without_empty_partitions(rows, config, constraints)
    absent = [generated for generated in constraints.generated if generated.column.name.lower() not in present]
    if absent:
        rows = _computed(rows, constraints, stored, config, {generated.column.name: sf.lit(True) for generated in absent})
    remaining = replace(constraints, generated=tuple(generated for generated in constraints.generated if generated not in absent))
    rules = [*_required(rows, config, also), *_conditions(jvm, remaining, stored, config)]
    return _checked(rows, rules, config) if rules else rows


def session_time_zone(spark: SparkSession) -> str:
    """Return the time zone in which texts and dates become timestamps."""
    name = "spark.sql.session.timeZone"
    known = None if is_classic(spark) else setting_of(spark, name)
    return str(spark.conf.get(name)) if known is None else known


def in_session_zone(spark: SparkSession, transaction: Transaction) -> Transaction:
    """Return the transaction, whose expressions are evaluated in the session's time zone from now on."""
    transaction.time_zone = session_time_zone(spark)
    return transaction


def recomputed(data: DataFrame, config: TableConfig, where: Mapping[str, Column]) -> DataFrame:
    """Return rows of a table with some generated columns recomputed.

    Args:
        data: all columns of the table, with its types, and any others.
        where: the rows to recompute, by the generated column's name in the table's spelling; other rows keep their values.
    """
    constraints = constraints_of(config, session_time_zone(data.sparkSession))
    flagged = [(name, f"{_FLAG}{number}") for number, name in enumerate(where)]
    rows = data.select("*", *(where[name].alias(flag) for name, flag in flagged))
    flags = {name: sf.col(flag) for name, flag in flagged}
    return _computed(rows, constraints, StoredExpressions(data.sparkSession, config), config, flags).drop(
        *(flag for _, flag in flagged)
    )


def _filled_in(spark: SparkSession, completion: Completion, config: TableConfig) -> dict[str, Column]:
    """Return the values of the columns that the data lacks and the table fills in."""
    jvm = Jvm.of(spark)
    values = {identity.name: _identity_values(jvm, identity, config.table) for identity in completion.identities}
    for default in completion.defaults:
        column = default.column
        values[column.name] = cast_or_fail(jvm, default_column(spark, default, config.table), column.data_type)
    return values


@dataclass(frozen=True, slots=True)
class _Rule:
    """A condition that makes a row invalid.

    Args:
        broken: never NULL.
        values: columns of the row for the error, by their names in it.
    """

    broken: Column
    values: Mapping[str, Column]
    error: Callable[[Mapping[str, str | None]], InvariantViolation]


def _checked(rows: DataFrame, rules: Sequence[_Rule], config: TableConfig) -> DataFrame:
    """Return the rows; evaluating the first column fails for a row that violates a rule."""

    def error(texts: list[str | None]) -> InvariantViolation:
        rule = rules[int(texts[0] or 0)]
        return rule.error(dict(zip(rule.values, texts[1:], strict=True)))

    failing = raising_with_values(error)
    first, *rest = rows.columns
    checked = sf.col(quote_identifier(first))
    for number, rule in reversed(list(enumerate(rules))):
        checked = sf.when(rule.broken, failing([sf.lit(number), *rule.values.values()])).otherwise(checked)
    return _selected(rows, config, {first: checked}, [first, *rest])


def _computed(
    rows: DataFrame, constraints: Constraints, stored: StoredExpressions, config: TableConfig, where: Mapping[str, Column]
) -> DataFrame:
    jvm = Jvm.of(rows.sparkSession)
    computed = {}
    for generated in constraints.generated:
        if generated.column.name in where:
            values = cast_or_fail(jvm, _value(generated, stored, config), generated.column.data_type)
            computed[generated.column.name] = sf.when(where[generated.column.name], values).otherwise(
                sf.col(quote_identifier(generated.column.name))
            )
    return _selected(rows, config, computed, rows.columns)


def _value(generated: Generated, stored: StoredExpressions, config: TableConfig) -> Column:
    _refuse_void_in_struct(generated.value, f"the generated column '{generated.column.name}'", config)
    return stored.value(generated)


def _refuse_void_in_struct(expression: Expression, subject: str, config: TableConfig) -> None:
    for reference in references_of(expression):
        if len(reference.path) > 1 and any(part == _VOID for part in _types_on(reference, config.schema)):
            raise Unsupported(
                f"Table {config.table}: {subject} reads {reference}, a void field inside a struct, which Spark's data files do not have. "
                "Write with tahoe.Table, or give the field a type.",
                code="TAHOE_VOID_IN_STRUCT",
                table=config.table,
                column=".".join(reference.path),
            )


def _types_on(reference: Reference, schema: StructType) -> Iterator[DataType]:
    data_type: DataType = schema
    for name in reference.path:
        assert isinstance(data_type, StructType)
        data_type = data_type.field(name).data_type
        yield data_type


def _selected(rows: DataFrame, config: TableConfig, changed: Mapping[str, Column], names: Sequence[str]) -> DataFrame:
    """Return these columns; the changed ones are computed in `session_of_stored_expressions`."""
    spark, jvm = rows.sparkSession, Jvm.of(rows.sparkSession)
    # With new aliases, so that no earlier alias of the data can be taken for a struct with that name.
    plain = [sf.col(quote_identifier(name)).alias(name) for name in rows.columns]
    absent = [sf.lit(None).alias(column.name) for column in config.schema if column.data_type == _VOID]
    frame = jvm.frame(session_of_stored_expressions(spark), rows._jdf.queryExecution().analyzed(), spark)
    frame = frame.select(*plain, *absent)
    # The optimizer must not move this condition, which is always true: below a limit, rows that are cut off would fail the job too.
    columns = {name: sf.when(sf.spark_partition_id() >= 0, values) for name, values in changed.items()}
    frame = frame.select(*(columns.get(name, sf.col(quote_identifier(name))).alias(name) for name in names))
    return jvm.frame(spark._jsparkSession, frame._jdf.queryExecution().analyzed(), spark)


def _without_empty_partitions(rows: DataFrame, config: TableConfig, constraints: Constraints) -> DataFrame:
    """Replace empty strings of partition columns by NULL, as in the log, if a rule reads the column."""
    names = [
        column.name
        for column in config.partition_schema
        if column.data_type == _STRING and (column.name in constraints.columns or not column.nullable)
    ]
    if not names:
        return rows
    columns = {column: sf.nullif(sf.col(quote_identifier(column)), sf.lit("")) for column in names}
    return rows.select(*(columns.get(column, sf.col(quote_identifier(column))).alias(column) for column in rows.columns))


# ---- values that must not be null


def _required(rows: DataFrame, config: TableConfig, also: Sequence[str]) -> Iterator[_Rule]:
    source_schema = from_spark_schema(rows.drop(*also).schema) if also else from_spark_schema(rows.schema)
    for column in without_void(config.schema):
        source = source_schema.field(column.name)
        values = sf.col(quote_identifier(column.name))
        if not column.nullable and source.nullable:
            yield _null_rule(values.isNull(), (column.name,), config.table)
        whole = _Part((column.name,), column.data_type, source.data_type, source.nullable)
        for path, broken in _nulls(values, whole, in_collection=False):
            yield _null_rule(broken, path, config.table)


def _null_rule(broken: Column, path: tuple[str, ...], table: str) -> _Rule:
    return _Rule(broken, {}, lambda _: null_found(path, table))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a column's values.

    Args:
        path: its path.
        target: its type in the table.
        source: its type in the rows, and whether nulls are possible in it.
        nullable: whether it, or a struct around it, may be null according to the rows' type.
    """

    path: tuple[str, ...]
    target: DataType
    source: DataType
    nullable: bool

    def inside(self, name: str, target: DataType, source: DataType, nullable: bool) -> _Part:
        return _Part((*self.path, name), target, source, nullable)


def _nulls(values: Column, part: _Part, *, in_collection: bool) -> Iterator[tuple[tuple[str, ...], Column]]:
    """Yield the parts of a value that must not be null, each with the condition that it is.

    A field that must not be null forbids nulls of the structs around it too, as in delta-spark, except for structs in lists and maps.
    """
    match part.target, part.source:
        case StructType() as target, StructType() as source:
            for field in target:
                source_field = source.field(field.name)
                inner = part.inside(field.name, field.data_type, source_field.data_type, part.nullable or source_field.nullable)
                child = values.getField(field.name)
                if not field.nullable and (source_field.nullable if in_collection else inner.nullable):
                    yield inner.path, (values.isNotNull() & child.isNull()) if in_collection else child.isNull()
                yield from _nulls(child, inner, in_collection=in_collection)
        case ArrayType() as target, ArrayType() as source:
            element = part.inside("element", target.element_type, source.element_type, source.contains_null)
            yield from _nulls_among(values, element, target.contains_null)
        case MapType() as target, MapType() as source:
            key = part.inside("key", target.key_type, source.key_type, False)
            yield from _nulls_among(sf.map_keys(values), key, False)
            value = part.inside("value", target.value_type, source.value_type, source.value_contains_null)
            yield from _nulls_among(sf.map_values(values), value, target.value_contains_null)


def _nulls_among(values: Column, part: _Part, allowed: bool) -> Iterator[tuple[tuple[str, ...], Column]]:
    """Yield array elements, or parts of them, that must not be null, each with the condition that one is.

    Args:
        part: any element.
        allowed: whether the table's elements may be null.
    """
    if part.nullable and not allowed:
        yield part.path, _any(values, lambda element: element.isNull())
    # The paths are determined with a placeholder value; the condition is created inside the lambda, over its own variable.
    for number, (path, _) in enumerate(_nulls(sf.lit(None), part, in_collection=True)):

        def broken(element: Column, number: int = number) -> Column:
            return list(_nulls(element, part, in_collection=True))[number][1]

        yield path, _any(values, broken)


def _any(values: Column, condition: Callable[[Column], Column]) -> Column:
    return sf.coalesce(sf.exists(values, lambda element: condition(element)), sf.lit(False))


# ---- CHECK constraints, invariants, and generated columns that the data contains


def _conditions(jvm: Jvm, constraints: Constraints, stored: StoredExpressions, config: TableConfig) -> Iterator[_Rule]:
    for check in constraints.checks:
        _refuse_void_in_struct(check.condition, f"CHECK constraint '{check.name}'", config)
        yield _condition(stored.condition(check), references_of(check.condition), config.table, check.name, check.text)
    for generated in constraints.generated:
        stored_value = Reference((generated.column.name,), generated.column.data_type)
        holds = sf.col(quote_identifier(generated.column.name)).eqNullSafe(
            cast_or_fail(jvm, _value(generated, stored, config), generated.column.data_type)
        )
        text = f"{stored_value} <=> {generated.text}"
        yield _condition(holds, (stored_value, *references_of(generated.value)), config.table, GENERATED, text)


def _condition(holds: Column, reads: Sequence[Reference], table: str, name: str, text: str) -> _Rule:
    values = {".".join(reference.path): _for_error(reference) for reference in reads}
    return _Rule(~sf.coalesce(holds, sf.lit(False)), values, lambda row: violated(table, name, text, row))


def _for_error(reference: Reference) -> Column:
    """Return the value of a column for an error. Spark cannot convert a geometry to text."""
    column = sf.col(str(reference))
    if paths_of_type(StructType((StructField("", reference.data_type),)), is_geospatial):
        return sf.when(column.isNotNull(), sf.lit(f"a value of type {reference.data_type}"))
    return column


# ---- identity columns: task p of n ─► base + (p + k·n)·step for its row number k from 0
#
# Tasks need no coordination, and no two generate the same value; there are gaps if tasks have different numbers of rows, as in
# delta-spark. The greatest values are read from the footers of the files (`tahoe.spark.executors.footers`).

_ROW_OF_TASK = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of a task; the bits above are the task's number."""


def _identity_values(jvm: Jvm, column: IdentityColumn, table: str) -> Column:
    """Return the values of an identity column, for a projection that each row passes exactly once on its way into a file.

    Nothing between the projection and the task that runs it may merge rows of several tasks (a union, `coalesce`).
    """
    row = sf.monotonically_increasing_id().bitwiseAND(sf.lit(_ROW_OF_TASK))
    number = row * _tasks(jvm).cast("long") + sf.spark_partition_id()
    beyond = sf.try_multiply(number, sf.lit(column.step).cast("long"))
    value = sf.try_add(beyond, sf.lit(column.base).cast("long"))
    return sf.coalesce(value, raising(overflow(column.name, table)).cast("long"))


def _tasks(jvm: Jvm) -> Column:
    """Return the number of tasks in the stage that evaluates the expression; 1 if the driver evaluates it."""
    task = "org.apache.spark.TaskContext"
    kind = jvm.java_class("org.apache.spark.sql.types.ObjectType")(jvm.reflected(task))
    # Both are non-deterministic, so that only the task evaluates them.
    context = jvm.catalyst("expressions.objects.StaticInvoke")(
        jvm.reflected(task), kind, "get", jvm.seq(), jvm.seq(), True, True, False, jvm.option(None)
    )
    count = jvm.catalyst("expressions.objects.Invoke")(
        context, "numPartitions", jvm.data_type('"integer"'), jvm.seq(), jvm.seq(), True, True, False
    )
    return sf.coalesce(jvm.column(count), sf.lit(1))
