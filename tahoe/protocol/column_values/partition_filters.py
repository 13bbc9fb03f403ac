"""Filters on a base column, as filters on the partition columns that are generated from it (PROTOCOL.md, "Generated Columns"). Pure.

    day = CAST(at AS DATE), at >= 12:00 of the 5th ─► day >= the 4th          k = length(s), s = 'abc' ─► k = 3

An implied filter only leaves out files in which no row can match:

- An expression that grows with its column turns every comparison into one; other expressions use only equality. Columns that
  are one date or time together, as year, month and day, grow together (`tahoe.protocol.column_values.time_parts`).
- A timestamp was formatted in the time zone of its writer, which is not recorded. Any zone's wall clock is less than
  sixteen hours away from UTC's, so bounds are that much wider, and equality means one of the possible days; other expressions that
  depend on a time zone imply nothing.
- The log stores the empty text as NULL, so partitions of texts that are NULL stay.
- Text of a date grows with it only from year 0 to 9999; the first character of other years is less than a digit, so they stay.
"""

from __future__ import annotations

from collections.abc import Iterable

from tahoe.base.exceptions import TahoeError
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.common_types import same_type
from tahoe.expr.tree.expression import references_of
from tahoe.expr.tree.predicate import And, Or, Predicate, all_of, any_of, normalise
from tahoe.protocol.column_values.generated_partition import GeneratedPartition
from tahoe.protocol.column_values.monotonic_expressions import grows
from tahoe.protocol.column_values.time_parts import TimeParts, time_parts
from tahoe.schema.types import GENERATION_EXPRESSION, PrimitiveType, StructField, StructType

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def generated_partitions(schema: StructType, partition_columns: Iterable[str]) -> tuple[GeneratedPartition, ...]:
    """Return the partition columns of a table to which filters on another column can apply.

    An expression that is not understood is skipped: readers do not need it.
    """
    base = StructType(tuple(column for column in schema if not column.is_generated))
    columns = (schema.field(name) for name in partition_columns)
    understood = (_understood(column, base) for column in columns if column.is_generated)
    return tuple(partition for partition in understood if partition is not None)


def with_implied(predicate: Predicate, partitions: Iterable[GeneratedPartition]) -> Predicate:
    """Return the predicate, and the predicates that it implies for the partitions of the rows for which it is true."""
    normal, generated = normalise(predicate), tuple(partitions)
    sources: tuple[GeneratedPartition | TimeParts, ...] = (*generated, *time_parts(generated))
    conditions = [implied for source in sources if (implied := _implied(normal, source)) is not None]
    return all_of((predicate, *conditions)) if conditions else predicate


def _implied(predicate: Predicate, partition: GeneratedPartition | TimeParts) -> Predicate | None:
    match predicate:
        case And(parts):
            conditions = [condition for part in parts if (condition := _implied(part, partition)) is not None]
            return all_of(conditions) if conditions else None
        case Or(parts):
            each = [_implied(part, partition) for part in parts]
            return None if not each or None in each else any_of(condition for condition in each if condition is not None)
    return partition.implied(predicate)


def _understood(column: StructField, schema: StructType) -> GeneratedPartition | None:
    try:
        value = parse_expression(str(column.metadata[GENERATION_EXPRESSION]), schema)
    except TahoeError:
        return None
    read = references_of(value)
    if len(read) != 1 or not read[0].by_bytes or not same_type(value.data_type, column.data_type):
        return None  # other types were cast when they were written
    if read[0].data_type in _FLOATS and value != read[0]:
        return None  # 0.0 and -0.0 are equal but distinct values
    return GeneratedPartition(column, value, read[0], grows(value))
