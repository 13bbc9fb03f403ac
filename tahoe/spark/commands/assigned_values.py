"""The values that MERGE and UPDATE assign, as Spark expressions bound to the frames of the statement.

A value is cast to its column's type as in a write: the query fails if it does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.ops.rows.assigned_places import lacks_fields
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
    """The new value of a column or of a struct field.

    Args:
        path: the names from the column to the field, in the spelling of the table's schema.
        keeps_fields: whether fields that the value's structs lack keep their old values.
    """

    path: tuple[str, ...]
    value: Value
    keeps_fields: bool = False

    def inside(self) -> Assignment:
        """Return the assignment relative to its outermost column: without that column's name."""
        return replace(self, path=self.path[1:])


def assigned(jvm: Jvm, place: Place, target: DataType, old: Value | None, assignments: Sequence[Assignment]) -> Column:
    """Return a column's value after the assignments, in the column's type.

    Args:
        place: the column.
        target: the column's type, without void.
        old: the value and type before; None, which is treated as NULL, if there is none.
        assignments: the assignments to the column or inside it, with paths that omit the column's name. Assigning to a field of a NULL struct
            makes the other fields NULL.
    """
    for assignment in assignments:
        if not assignment.path and assignment.keeps_fields:
            return _keeping(jvm, place, target, old, assignment.value)
        if not assignment.path:
            return fitted_value(jvm, assignment.value.column, assignment.value.data_type, target, place)
    if not assignments:
        if old is None:
            return fitted_value(jvm, None, target, target, place)
        return fitted_value(jvm, old.column, old.data_type, target, place)
    assert isinstance(target, StructType)
    fields = []
    for field in target:
        inside = [assignment.inside() for assignment in assignments if assignment.path[0] == field.name]
        fields.append(assigned(jvm, place.inside(field.name), field.data_type, _field(old, field.name), inside).alias(field.name))
    return sf.struct(*fields)


def _keeping(jvm: Jvm, place: Place, target: DataType, old: Value | None, new: Value) -> Column:
    """Return the new value, with the old values of struct fields that it lacks; NULL if both are NULL."""
    source = new.data_type
    if (
        old is None
        or not isinstance(target, StructType)
        or not isinstance(source, StructType)
        or not lacks_fields(source, target)
    ):
        return fitted_value(jvm, new.column, source, target, place)
    fields = []
    for field in target:
        inside, old_field, new_field = place.inside(field.name), _field(old, field.name), _field(new, field.name)
        value = assigned(
            jvm, inside, field.data_type, old_field, [Assignment((), new_field, True)] if new_field is not None else []
        )
        fields.append(value.alias(field.name))
    return sf.when(old.column.isNotNull() | new.column.isNotNull(), sf.struct(*fields))


def _field(struct: Value | None, name: str) -> Value | None:
    if struct is None or not isinstance(struct.data_type, StructType):
        return None
    field = struct.data_type.find(name)
    return None if field is None else Value(struct.column.getField(field.name), field.data_type)
