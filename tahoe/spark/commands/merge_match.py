"""The first half of a MERGE on Spark: which rows of the two sides match, and which clause each row falls to. Nothing is written.

    source ─► held: read once, kept for the whole MERGE ─► range or list of its keys ─► files of the target that may hold them
    target ⋈ source ─► held: for each pair its clause, the place of the target's row, and the row as the clause makes it

One scan of the target, one join. What is held is on the executors, in memory or on their disks, and is the only thing that the second half
reads: however often an expression would give another answer, rows are found and written by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.expr.predicate import FALSE, Predicate, all_of, quote_identifier
from tahoe.ops.merge_clauses import Action, Kind
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.evolve import without_void
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.merge_statement import Plan, Step
from tahoe.spark.commands.merge_values import Value, assigned
from tahoe.spark.jvm import JavaObject, Jvm
from tahoe.spark.relation import condition_of_plan
from tahoe.spark.row_changes import FILE, ROW

__all__ = ["BEFORE", "CLAUSE", "SOURCE_ROW", "Held", "Source", "held", "inserted", "pairs_of", "pruning", "source_held"]

SOURCE_ROW = "__tahoe_source_row"
"""The column that numbers the rows of the source."""
CLAUSE = "__tahoe_clause"
"""The column of the number of the clause that a row falls to; null for none."""
BEFORE = "__tahoe_before"
"""The column of a struct of the target's row as it was, where the change data feed needs it."""

_MOST_VALUES_NAMED = 200
# Larger sides are shuffled, unless the session's own threshold is higher.
_MOST_BYTES_BROADCAST = 64 * 1024 * 1024
_RANGED = {"byte", "short", "integer", "long", "date", "string", "timestamp", "timestamp_ntz"}


@dataclass(frozen=True)
class Held:
    """Rows that were computed once and are kept by the executors; they are never computed anew: should they be lost, the query fails."""

    frame: DataFrame
    blocks: JavaObject

    @property
    def bytes(self) -> int:
        """What the rows take up, in memory and on disk."""
        number = self.blocks.id()
        found = self.frame.sparkSession.sparkContext._jsc.sc().getRDDStorageInfo()
        return sum(int(one.memSize()) + int(one.diskSize()) for one in found if one.id() == number)


@contextmanager
def held(frame: DataFrame) -> Iterator[Held]:
    """The rows of a query, kept until the end of the block; they are computed by the first query that reads them."""
    kept = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK)
    blocks = kept._jdf.queryExecution().logical().rdd()
    try:
        yield Held(kept, blocks)
    finally:
        blocks.unpersist(False)


@dataclass(frozen=True)
class Source:
    """The source's rows, numbered.

    Args:
        rows: how many.
        keys: what is known of those that the target's must equal.
    """

    held: Held
    rows: int
    keys: tuple[Key, ...]

    def frame(self) -> DataFrame:
        """Marked to be sent to all executors, where it is small enough."""
        frame = self.held.frame
        threshold = _bytes(frame.sparkSession, "spark.sql.autoBroadcastJoinThreshold")
        if threshold < 0 or self.held.bytes > max(threshold, _MOST_BYTES_BROADCAST):
            return frame
        return sf.broadcast(frame)


@dataclass(frozen=True)
class Key:
    """An expression over the target that must equal one over the source.

    Args:
        target: the Catalyst expression.
        values: what it can equal: a range, or all values; None where the source has NULLs only.
    """

    target: JavaObject
    low: Column | None
    high: Column | None
    values: tuple[Column, ...] | None

    def condition(self, jvm: Jvm) -> Column:
        mine = jvm.column(self.target)
        if self.low is None or self.high is None:
            return sf.lit(False)
        if self.values is not None:
            return mine.isin(*self.values)
        return (mine >= self.low) & (mine <= self.high)


def numbered(source: DataFrame) -> DataFrame:
    """The source with `SOURCE_ROW`."""
    return source.select("*", sf.monotonically_increasing_id().alias(SOURCE_ROW))


def source_held(kept: Held, plan: Plan) -> Source:
    """The source, counted. One job, which is the only one that runs the source's own plan; one more over what it kept where some key has few
    values.

    Args:
        plan: bound to the source as it was before.
    """
    jvm = Jvm.of(kept.frame.sparkSession)
    pairs = list(_keys(plan))
    asked = [sf.count("*").alias("rows")]
    for number, (_, theirs) in enumerate(pairs):
        column = jvm.column(theirs)
        asked += [
            _told(sf.min(column), theirs).alias(f"low{number}"),
            _told(sf.max(column), theirs).alias(f"high{number}"),
            sf.approx_count_distinct(column).alias(f"values{number}"),
        ]
    row = kept.frame.agg(*asked).first()
    assert row is not None
    few = [number for number in range(len(pairs)) if 1 < row[f"values{number}"] <= _MOST_VALUES_NAMED]
    named: dict[int, Any] = {}
    if few:
        lists = [_told(jvm.column(pairs[number][1]), pairs[number][1]) for number in few]
        all_values = kept.frame.agg(*(sf.collect_set(column) for column in lists)).first()
        assert all_values is not None
        named = dict(zip(few, all_values, strict=True))
    keys = []
    for number, (mine, theirs) in enumerate(pairs):
        low, high = (None if row[name] is None else _meant(row[name], theirs) for name in (f"low{number}", f"high{number}"))
        values = tuple(_meant(value, theirs) for value in named[number]) if number in named else None
        keys.append(Key(mine, low, high, values))
    return Source(kept, row["rows"], tuple(keys))


def pruning(snapshot: Snapshot, plan: Plan, source: Source) -> Predicate:
    """True for every row of the target that a row of the source may match: what the condition says of the target alone, and the range or the
    list of the source's keys.

    Args:
        plan: bound to `tahoe.spark.relation.shape_of`.
    """
    if not source.rows:
        return FALSE
    jvm = Jvm.of(plan.sides.target.sparkSession)
    mine = plan.sides.target._jdf.queryExecution().analyzed().outputSet()
    parts = [jvm.column(part) for part in plan.parts if part.references().subsetOf(mine)]
    parts += [key.condition(jvm) for key in source.keys]
    shape = plan.sides.target
    for part in parts:
        shape = shape.where(part)
    return all_of(condition_of_plan(snapshot, shape._jdf.queryExecution().optimizedPlan()).predicates)


def pairs_of(plan: Plan, before: TableConfig, after: TableConfig) -> DataFrame:
    """The rows of the target that match, each with its row of the source, and those that none matches but a clause takes.

    Args:
        plan: bound to the files to be read, with their places, and to the source as it is held.
        before: the table as it is.
        after: the table as it will be.

    Returns:
        `FILE`, `ROW`, `SOURCE_ROW`, `CLAUSE`; where there are updates, the columns of the table as they will be, and the ids of rows
        that have some, NULL for other rows; `BEFORE` where the change data feed is on.
    """
    target, source = plan.sides.target, plan.sides.source
    steps = plan.of(Kind.MATCHED, Kind.NOT_MATCHED_BY_SOURCE)
    by_source = bool(plan.of(Kind.NOT_MATCHED_BY_SOURCE))
    joined = target.join(source, plan.on, "left" if by_source else "inner")
    matched = source[SOURCE_ROW].isNotNull()
    guards = {Kind.MATCHED: matched, Kind.NOT_MATCHED_BY_SOURCE: ~matched}
    number = _first_true([(step, guards[step.kind] if by_source else None) for step in steps])
    # In a projection of its own, so that each condition is evaluated once.
    chosen = joined.select("*", number.alias(CLAUSE))
    if by_source:
        chosen = chosen.where(matched | sf.col(CLAUSE).isNotNull())
    columns = [target[FILE], target[ROW], source[SOURCE_ROW], sf.col(CLAUSE)]
    if steps and after.properties.enable_change_data_feed:
        fields = [target[quote_identifier(one.name)].alias(one.name) for one in before.schema]
        columns.append(sf.struct(*fields).alias(BEFORE))
    updates = [step for step in steps if step.action == Action.UPDATE]
    tracked = materialized_columns(before)
    if updates and tracked is not None:
        # The version is left NULL: that of the commit to come.
        columns.append(target[tracked.row_id])
    return chosen.select(*columns, *_outcomes(plan, updates, before.schema, after.schema))


def inserted(plan: Plan, pairs: DataFrame, schema: StructType) -> DataFrame:
    """The rows that come of rows of the source that match none: `CLAUSE`, and the table's columns.

    Args:
        plan: bound to the source as it is held.
    """
    steps = plan.of(Kind.NOT_MATCHED)
    met = pairs.where(sf.col(SOURCE_ROW).isNotNull()).select(SOURCE_ROW).distinct()
    alone = plan.sides.source.join(met, SOURCE_ROW, "left_anti")
    chosen = alone.select("*", _first_true([(step, None) for step in steps]).alias(CLAUSE)).where(sf.col(CLAUSE).isNotNull())
    return chosen.select(CLAUSE, *_outcomes(plan, steps, StructType(()), schema))


def _outcomes(plan: Plan, steps: Sequence[Step], before: StructType, schema: StructType) -> list[Column]:
    """The table's columns, by the clause of the row."""
    if not steps:
        return []
    target = plan.sides.target
    jvm = Jvm.of(target.sparkSession)
    found = []
    for column in without_void(schema):
        known = before.find(column.name)
        old = None if known is None else Value(target[quote_identifier(known.name)], known.data_type)
        value: Column | None = None
        for step in steps:
            new = assigned(jvm, column.data_type, old, step.inside(column.name))
            is_mine = sf.col(CLAUSE) == step.number
            value = sf.when(is_mine, new) if value is None else value.when(is_mine, new)
        assert value is not None
        found.append(value.alias(column.name))
    return found


def _first_true(steps: Sequence[tuple[Step, Column | None]]) -> Column:
    """The number of the first clause whose guard and condition are true; null where none is."""
    found: Column | None = None
    for step, guard in steps:
        parts = [part for part in (guard, step.condition) if part is not None]
        holds = sf.lit(True)
        for part in parts:
            holds = holds & part
        found = sf.when(holds, step.number) if found is None else found.when(holds, step.number)
    return sf.lit(None).cast("int") if found is None else found


def _keys(plan: Plan) -> Iterator[tuple[JavaObject, JavaObject]]:
    """The expressions over the target and over the source that must be equal, of types whose values have an order."""
    mine = plan.sides.target._jdf.queryExecution().analyzed().outputSet()
    theirs = plan.sides.source._jdf.queryExecution().analyzed().outputSet()
    for part in plan.parts:
        if part.getClass().getSimpleName() != "EqualTo":
            continue
        one, other = part.left(), part.right()
        if one.references().isEmpty() or other.references().isEmpty():
            continue
        if one.references().subsetOf(theirs) and other.references().subsetOf(mine):
            one, other = other, one
        name = _type_name(other)
        if not (one.references().subsetOf(mine) and other.references().subsetOf(theirs)):
            continue
        if name in _RANGED or name.startswith("decimal("):
            yield one, other


def _type_name(expression: JavaObject) -> str:
    return str(expression.dataType().json()).strip('"')


def _told(values: Column, expression: JavaObject) -> Column:
    """A value in a form that is the same here, whatever the time zone of this process."""
    return sf.unix_micros(values) if _type_name(expression) == "timestamp" else values.cast("string")


def _meant(told: Any, expression: JavaObject) -> Column:
    """The constant that `_told` told of."""
    name = _type_name(expression)
    if name == "timestamp":
        return sf.timestamp_micros(sf.lit(told))
    return sf.lit(told) if name == "string" else sf.lit(told).cast({"integer": "int", "long": "bigint"}.get(name, name))


def _bytes(spark: SparkSession, setting: str) -> int:
    return int(spark._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold())
