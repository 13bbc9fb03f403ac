"""Determines the files of a table that may contain rows that match a source row: from the conditions on the table alone, and from the keys
of the source, which one job over the source computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import FALSE, Comparison, In, Literal, Predicate, all_of
from tahoe.expr.tree.predicate import Column as PredicateColumn
from tahoe.schema.mapping import without_mapping
from tahoe.schema.types import DataType, DecimalType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.source_rows import StoredRows
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.translate import Names, to_column
from tahoe.spark.scan.file_index import opaque_columns
from tahoe.spark.scan.relation import condition_of_plan

_MOST_VALUES_NAMED = 200
# Conditions with the values pay only if files may be skipped; collecting many takes one more query.
_FEWEST_FILES = 8
_MOST_ROWS_HERE = 50_000
"""The keys of so many rows are collected by one job of one stage; aggregates take two queries of two jobs each."""


@dataclass(frozen=True)
class Candidates:
    """The size of the source, and the condition that it implies for target rows.

    Args:
        source_rows: how many rows the source has.
        predicate: true for every target row that a source row may match.
    """

    source_rows: int
    predicate: Predicate


def candidates(
    snapshot: Snapshot, target: DataFrame, source: StoredRows, on: JavaObject, of_target: Sequence[Column] = ()
) -> Candidates:
    """Count the source rows and derive a condition from their keys.

    Args:
        target: `tahoe.spark.scan.relation.shape_of` the snapshot.
        source: the first query here computes its rows.
        on: the Catalyst expression, over the columns of both sides, that is true for matching rows.
        of_target: further conditions on the target's columns alone.
    """
    parts = list(conjuncts(on))
    keys = list(_keys(snapshot, target, source.frame, parts))
    condition, rows = _of_target_alone(snapshot, target, parts, of_target), source.count()
    if rows == 0:
        return Candidates(0, FALSE)
    if rows > _MOST_ROWS_HERE:
        return candidates_of(snapshot, source.frame, keys, condition)
    values = _values_of(source.frame, keys)
    condition = all_of([condition, *(key.spanned_by(texts) for key, texts in values)])
    few = [(key, texts) for key, texts in values if 1 < len(texts) <= _MOST_VALUES_NAMED]
    if few and len(snapshot.files_matching(condition)) >= _FEWEST_FILES:
        condition = all_of([condition, *(key.one_of(texts) for key, texts in few)])
    return Candidates(rows, condition)


def _values_of(source: DataFrame, keys: Sequence[Key]) -> list[tuple[Key, list[object]]]:
    """Return the distinct values of each key, in the form of `Key.as_text`, without NULL."""
    if not keys:
        return []
    rows = source.select(*(key.as_text(key.source).alias(f"key{number}") for number, key in enumerate(keys))).toArrow()
    return [(key, column.drop_null().unique().to_pylist()) for key, column in zip(keys, rows.columns, strict=True)]


def candidates_of(snapshot: Snapshot, source: DataFrame, keys: Sequence[Key], of_target: Predicate) -> Candidates:
    """Count the source rows and derive a condition from aggregates of these keys.

    Args:
        source: the stored rows; the first query here computes them.
        of_target: a condition that every matching row of the target fulfills.
    """
    aggregates = [sf.count("*").alias("rows")]
    for number, key in enumerate(keys):
        aggregates += [
            key.as_text(sf.min(key.source)).alias(f"low{number}"),
            key.as_text(sf.max(key.source)).alias(f"high{number}"),
            sf.approx_count_distinct(key.source).alias(f"values{number}"),
        ]
    row = source.agg(*aggregates).first()
    assert row is not None
    if not row["rows"]:
        return Candidates(0, FALSE)
    predicates = [of_target]
    predicates += [key.between(row[f"low{number}"], row[f"high{number}"]) for number, key in enumerate(keys)]
    condition = all_of(predicates)
    few = [key for number, key in enumerate(keys) if 1 < row[f"values{number}"] <= _MOST_VALUES_NAMED]
    if few and len(snapshot.files_matching(condition)) >= _FEWEST_FILES:
        # The count is an estimate, but a good one: few values reach the driver.
        named = source.agg(*(sf.collect_set(key.as_text(key.source)) for key in few)).first()
        assert named is not None
        condition = all_of([condition, *(key.one_of(values) for key, values in zip(few, named, strict=True))])
    return Candidates(row["rows"], condition)


@dataclass(frozen=True)
class Key:
    """A column of the target that must equal an expression over the source.

    Args:
        data_type: of the column.
        source: of type `type_name`: the column's type or a wider one.
    """

    column: PredicateColumn
    data_type: DataType
    source: Column
    type_name: str

    def as_text(self, values: Column) -> Column:
        """Return the values in a form that does not depend on this process's time zone."""
        return sf.unix_micros(values) if self.type_name == "timestamp" else values.cast("string")

    def between(self, low: object, high: object) -> Predicate:
        """Return the condition that the column's value is between two values of `as_text`."""
        # Nothing equals NULL.
        return FALSE if low is None or high is None else self.spanned_by([low, high])

    def spanned_by(self, texts: Sequence[object]) -> Predicate:
        """Return the condition that the column's value is between the least and the greatest of some values of `as_text`."""
        try:
            values = [self._parsed(text) for text in texts]
        except (ValueError, OverflowError):
            # Python has no value for a date beyond the year 9999, for example.
            return all_of([])
        if not values:
            return FALSE
        least, most = min(values), max(values)
        if str(self.data_type) in _LARGEST:
            largest = _LARGEST[str(self.data_type)]
            if least > largest or most < -largest - 1:
                return FALSE
            least, most = max(least, -largest - 1), min(most, largest)
        if least == most:
            return Comparison("=", self.column, Literal(least, self.data_type))
        return all_of(
            [
                Comparison(">=", self.column, Literal(least, self.data_type)),
                Comparison("<=", self.column, Literal(most, self.data_type)),
            ]
        )

    def one_of(self, texts: Sequence[object]) -> Predicate:
        """Return the condition that the column's value is one of the values of `as_text`."""
        try:
            values = [self._parsed(value) for value in texts]
        except (ValueError, OverflowError):
            return all_of([])
        largest = _LARGEST.get(str(self.data_type))
        fitting = [value for value in values if largest is None or -largest - 1 <= value <= largest]
        return In(self.column, tuple(Literal(value, self.data_type) for value in fitting)) if fitting else FALSE

    def _parsed(self, text: object) -> Any:
        return Decimal(str(text)) if isinstance(self.data_type, DecimalType) else READ[self.type_name](text)


READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    "string": str,
    "date": date.fromisoformat,
    "timestamp": lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros),
    "timestamp_ntz": datetime.fromisoformat,
}
"""Parsers of the values of keys, by the names of their types."""
_LARGEST: Mapping[str, int] = {"byte": 2**7 - 1, "short": 2**15 - 1, "integer": 2**31 - 1}


def _of_target_alone(
    snapshot: Snapshot, target: DataFrame, parts: Sequence[JavaObject], of_target: Sequence[Column]
) -> Predicate:
    """Return the parts of the conditions that involve only the target."""
    jvm, shape = Jvm.of(target.sparkSession), target
    target_columns = target._jdf.queryExecution().analyzed().outputSet()
    conditions = [*(jvm.column(part) for part in parts if part.references().subsetOf(target_columns)), *of_target]
    if not conditions:
        return all_of([])
    for condition in conditions:
        shape = shape.where(condition)
    return all_of(condition_of_plan(snapshot, shape._jdf.queryExecution().optimizedPlan()).predicates)


def _keys(snapshot: Snapshot, target: DataFrame, source: DataFrame, parts: Sequence[JavaObject]) -> Iterator[Key]:
    jvm = Jvm.of(source.sparkSession)
    target_columns = target._jdf.queryExecution().analyzed().outputSet()
    source_columns = source._jdf.queryExecution().analyzed().outputSet()
    # The condition uses the table's logical names.
    names = Names(without_mapping(snapshot.schema), opaque_columns(snapshot))
    for part in parts:
        if part.getClass().getSimpleName() != "EqualTo":
            continue
        left, right = part.left(), part.right()
        if left.references().isEmpty() or right.references().isEmpty():
            continue
        if left.references().subsetOf(source_columns) and right.references().subsetOf(target_columns):
            left, right = right, left
        if not (left.references().subsetOf(target_columns) and right.references().subsetOf(source_columns)):
            continue
        type_name = str(right.dataType().json()).strip('"')
        column = to_column(left, names)
        if column is not None and (type_name in READ or isinstance(column[1], DecimalType)):
            yield Key(*column, jvm.column(right), type_name)


def conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    """Yield the Catalyst expressions whose conjunction is `expression`."""
    if expression.getClass().getSimpleName() == "And":
        yield from conjuncts(expression.left())
        yield from conjuncts(expression.right())
    else:
        yield expression
