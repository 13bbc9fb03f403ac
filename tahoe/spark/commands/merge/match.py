"""The first half of a MERGE on Spark: computes the pairs of matching rows and the clause that applies to each row. Nothing is written.

    source ─► stored: read once for the whole MERGE ─► range or list of its keys ─► target files that may contain them
    target ⋈ source ─► stored: for each pair its clause, the position of the target row, and the resulting row

The target is scanned once and joined once. The stored rows are on the executors, in memory or on their disks, and the second half reads
nothing else: a non-deterministic expression is evaluated once, for finding and for writing rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import Action, Kind
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.evolve import without_void
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.changes import CHANGE_TYPE
from tahoe.spark.commands.assignments import Fit, Value, assigned, fitting
from tahoe.spark.commands.merge.statement import Plan, Step
from tahoe.spark.commands.row_changes import FILE, ROW, of_kind
from tahoe.spark.commands.source_rows import StoredRows, sent_to_all
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.frame_columns import column_in
from tahoe.spark.write.fitting import Place, classic_cast

SOURCE_ROW = "__tahoe_source_row"
"""The column that numbers the source rows."""
CLAUSE = "__tahoe_clause"
"""The column with the number of the clause that applies to a row; null for none."""
BEFORE = "__tahoe_before"
"""The struct column with the target row before the MERGE; only if the change data feed needs it."""

_UPSERT = [(Kind.MATCHED, Action.UPDATE), (Kind.NOT_MATCHED, Action.INSERT)]


def numbered(source: DataFrame) -> DataFrame:
    """Return the source with `SOURCE_ROW`."""
    return source.select("*", sf.monotonically_increasing_id().alias(SOURCE_ROW))


def with_identities(rows: DataFrame, shape: DataFrame) -> DataFrame:
    """Return the rows with the attribute ids of `shape`, so that expressions resolved on it apply to them.

    Args:
        rows: the columns of `shape`, and then any others.
    """
    spark, jvm = rows.sparkSession, Jvm.of(rows.sparkSession)
    alias, none, empty = jvm.catalyst("expressions.Alias"), jvm.option(None), jvm.seq()
    plan, resolved = (frame._jdf.queryExecution().analyzed() for frame in (rows, shape))
    columns = list(items(plan.output()))
    for number, (name, column) in enumerate(zip(shape.columns, items(resolved.output()), strict=True)):
        columns[number] = alias(columns[number], name, column.exprId(), empty, none, empty)
    return jvm.frame(spark._jsparkSession, jvm.catalyst("plans.logical.Project")(jvm.seq(*columns), plan), spark)


def is_upsert(plan: Plan, before: TableConfig) -> bool:
    """Return whether a source row writes the same values whether it matches or not, and none of the target row; then pairs need no values
    (`of_source`).

    Args:
        before: the current table.
    """
    after = plan.config
    if [(step.kind, step.action) for step in plan.steps] != _UPSERT or any(step.condition is not None for step in plan.steps):
        return False
    if after.properties.enable_change_data_feed or materialized_columns(before) is not None:
        return False
    jvm = Jvm.of(plan.sides.target.sparkSession)
    source = plan.sides.source._jdf.queryExecution().analyzed().outputSet()
    for column in without_void(after.schema):
        update, insert = (_whole_value(step, column.name) for step in plan.steps)
        if update is None or insert is None or update.data_type != insert.data_type:
            return False
        updated_value, inserted_value = jvm.expression(update.column), jvm.expression(insert.column)
        if not (updated_value.references().subsetOf(source) and updated_value.semanticEquals(inserted_value)):
            return False
    return True


def pairs_of(plan: Plan, before: TableConfig) -> DataFrame:
    """Return the matched target rows, each with its source row, and the unmatched target rows that a clause changes.

    Args:
        plan: bound to the files to be read, with row positions, and to the stored source.
        before: the current table.

    Returns:
        `FILE`, `ROW`, `SOURCE_ROW`, `CLAUSE`; if there are updates, the columns of the table after the MERGE and the row ids, NULL for rows
        without; `BEFORE` if the change data feed is on.
    """
    target, source = plan.sides.target, plan.sides.source
    steps = plan.of(Kind.MATCHED, Kind.NOT_MATCHED_BY_SOURCE)
    by_source = bool(plan.of(Kind.NOT_MATCHED_BY_SOURCE))
    joined = target.join(source, plan.on, "left" if by_source else "inner")
    matched = source[SOURCE_ROW].isNotNull()
    guards = {Kind.MATCHED: matched, Kind.NOT_MATCHED_BY_SOURCE: ~matched}
    number = first_true([(step, guards[step.kind] if by_source else None) for step in steps])
    # In its own projection, so that each condition is evaluated once.
    chosen = joined.select("*", number.alias(CLAUSE))
    if by_source:
        chosen = chosen.where(matched | sf.col(CLAUSE).isNotNull())
    columns = [target[FILE], target[ROW], source[SOURCE_ROW], sf.col(CLAUSE)]
    if plan.is_upsert:
        return chosen.select(*columns)
    if steps and plan.config.properties.enable_change_data_feed:
        fields = [column_in(target, column.name).alias(column.name) for column in before.schema]
        columns.append(sf.struct(*fields).alias(BEFORE))
    updates = [step for step in steps if step.action == Action.UPDATE]
    tracked = materialized_columns(before)
    if updates and tracked is not None:
        # The version stays NULL, which means that of the coming commit.
        columns.append(target[tracked.row_id])
    return chosen.select(*columns, *_outcomes(plan, updates, before.schema))


def inserted(plan: Plan, pairs: StoredRows) -> DataFrame:
    """Return the rows to insert for source rows without a match: `CLAUSE`, and the table's columns.

    Args:
        plan: bound to the stored source.
    """
    steps = plan.of(Kind.NOT_MATCHED)
    matched = sent_to_all(pairs).where(sf.col(SOURCE_ROW).isNotNull()).select(SOURCE_ROW)
    unmatched = plan.sides.source.join(matched, SOURCE_ROW, "left_anti")
    chosen = unmatched.select("*", first_true([(step, None) for step in steps]).alias(CLAUSE)).where(sf.col(CLAUSE).isNotNull())
    return chosen.select(CLAUSE, *_outcomes(plan, steps, StructType(())))


def of_source(plan: Plan, pairs: StoredRows | None = None) -> DataFrame:
    """Return the rows that an upsert (`is_upsert`) writes: the table's columns.

    Args:
        plan: bound to the stored source.
        pairs: return one row for each pair; if None, one row for each source row.
    """
    source, jvm, config = plan.sides.source, Jvm.of(plan.sides.source.sparkSession), plan.config
    insert = plan.steps[-1]
    values = []
    for column in without_void(config.schema):
        fit = fitting(classic_cast(jvm), Place(config.table, (column.name,), plan.casts))
        values.append(assigned(fit, column.data_type, None, insert.inside(column.name)).alias(column.name))
    rows = source if pairs is None else source.join(sent_to_all(pairs).select(SOURCE_ROW), SOURCE_ROW)
    return rows.select(*values)


def is_of(steps: Iterable[Step]) -> Column:
    """Return whether one of these clauses applies to a row of the pairs or of the new rows."""
    numbers = [step.number for step in steps]
    return sf.coalesce(sf.col(CLAUSE).isin(numbers), sf.lit(False)) if numbers else sf.lit(False)


def rows_before(pairs: DataFrame, steps: Iterable[Step], names: Iterable[str]) -> DataFrame:
    """Return the deleted and the updated rows as they were, with their ``_change_type``.

    Args:
        pairs: with `BEFORE`, one for each target row that a clause changes.
        names: the columns of the table before the MERGE.
    """
    columns = [sf.col(f"{BEFORE}.{quote_identifier(name)}").alias(name) for name in names]
    kind = sf.when(is_of(step for step in steps if step.action == Action.DELETE), "delete").otherwise("update_preimage")
    return of_kind(pairs, kind).select(*columns, CHANGE_TYPE.name)


def together(rows: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, by column name; missing columns are null."""
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), rows)


def _whole_value(step: Step, name: str) -> Value | None:
    """Return the value that the clause assigns to the column; None if a part of the old value stays."""
    return next(
        (assignment.value for assignment in step.inside(name) if not assignment.path and not assignment.keeps_fields), None
    )


def _outcomes(plan: Plan, steps: Sequence[Step], before: StructType) -> list[Column]:
    """Return the table's columns, computed by the clause of the row."""
    if not steps:
        return []
    target, after = plan.sides.target, plan.config
    jvm = Jvm.of(target.sparkSession)
    outcomes = []
    for column in without_void(after.schema):
        fit, existing = fitting(classic_cast(jvm), Place(after.table, (column.name,), plan.casts)), before.find(column.name)
        old = None if existing is None else Value(column_in(target, existing.name), existing.data_type)
        outcomes.append(outcome(steps, column, old, fit))
    return outcomes


def outcome(steps: Sequence[Step], column: StructField, old: Value | None, fit: Fit) -> Column:
    """Return a column of the table, computed by the clause of the row; there is at least one clause."""
    value: Column | None = None
    for step in steps:
        new = assigned(fit, column.data_type, old, step.inside(column.name))
        applies = sf.col(CLAUSE) == step.number
        value = sf.when(applies, new) if value is None else value.when(applies, new)
    assert value is not None
    return value.alias(column.name)


def first_true(steps: Sequence[tuple[Step, Column | None]]) -> Column:
    """Return the number of the first clause whose guard and condition are true; null if there is none."""
    first: Column | None = None
    for step, guard in steps:
        parts = [part for part in (guard, step.condition) if part is not None]
        holds = sf.lit(True)
        for part in parts:
            holds = holds & part
        first = sf.when(holds, step.number) if first is None else first.when(holds, step.number)
    return sf.lit(None).cast("int") if first is None else first
