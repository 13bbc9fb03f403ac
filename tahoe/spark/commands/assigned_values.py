"""The values that a MERGE gives to rows, as expressions of Spark's own, bound to the frames of its two sides.

A value is cast to its column as a write casts it: one that does not fit makes the query fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.schema.types import DataType, StructType
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.write.fitting import Place, fitted_value

__all__ = ["Assignment", "Value", "assigned"]


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its type."""

    column: Column
    data_type: DataType


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, or a field of a struct, and its new value.

    Args:
        path: the names that lead to it, as the table's schema spells them.
    """

    path: tuple[str, ...]
    value: Value


def assigned(jvm: Jvm, place: Place, target: DataType, old: Value | None, given: Sequence[Assignment]) -> Column:
    """A column's value, in its type, after the assignments.

    Args:
        place: the column.
        target: the column's type, without void.
        old: the value before, of the type before; None where there is none, which is as NULL.
        given: the assignments to the column or inside of it, their paths without its own name. A NULL struct around a field that is
            assigned to becomes one of NULLs.
    """
    for one in given:
        if not one.path:
            return fitted_value(jvm, one.value.column, one.value.data_type, target, place)
    if not given:
        if old is None:
            return fitted_value(jvm, None, target, target, place)
        return fitted_value(jvm, old.column, old.data_type, target, place)
    assert isinstance(target, StructType)
    fields = []
    for field in target:
        inside = [Assignment(one.path[1:], one.value) for one in given if one.path[0] == field.name]
        fields.append(assigned(jvm, place.inside(field.name), field.data_type, _field(old, field.name), inside).alias(field.name))
    return sf.struct(*fields)


def _field(struct: Value | None, name: str) -> Value | None:
    if struct is None or not isinstance(struct.data_type, StructType):
        return None
    found = struct.data_type.find(name)
    return None if found is None else Value(struct.column.getField(found.name), found.data_type)
