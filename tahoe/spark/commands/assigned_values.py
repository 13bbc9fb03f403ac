"""The values that a MERGE gives to rows, as expressions of Spark's own, bound to the frames of its two sides.

A value is cast to its column as a write casts it: one that does not fit makes the query fail.
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
    """A column, or a field of a struct, and its new value.

    Args:
        path: the names that lead to it, as the table's schema spells them.
        keeps_fields: the fields that structs of the value lack keep what they have.
    """

    path: tuple[str, ...]
    value: Value
    keeps_fields: bool = False

    def inside(self) -> Assignment:
        """The assignment as the column that it is inside of sees it: without that column's name."""
        return replace(self, path=self.path[1:])


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
        if not one.path and one.keeps_fields:
            return _keeping(jvm, place, target, old, one.value)
        if not one.path:
            return fitted_value(jvm, one.value.column, one.value.data_type, target, place)
    if not given:
        if old is None:
            return fitted_value(jvm, None, target, target, place)
        return fitted_value(jvm, old.column, old.data_type, target, place)
    assert isinstance(target, StructType)
    fields = []
    for field in target:
        inside = [one.inside() for one in given if one.path[0] == field.name]
        fields.append(assigned(jvm, place.inside(field.name), field.data_type, _field(old, field.name), inside).alias(field.name))
    return sf.struct(*fields)


def _keeping(jvm: Jvm, place: Place, target: DataType, old: Value | None, new: Value) -> Column:
    """The new value, with the old fields of structs where it lacks them; NULL where both are."""
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
        inside, kept, given = place.inside(field.name), _field(old, field.name), _field(new, field.name)
        value = assigned(jvm, inside, field.data_type, kept, [Assignment((), given, True)] if given is not None else [])
        fields.append(value.alias(field.name))
    return sf.when(old.column.isNotNull() | new.column.isNotNull(), sf.struct(*fields))


def _field(struct: Value | None, name: str) -> Value | None:
    if struct is None or not isinstance(struct.data_type, StructType):
        return None
    found = struct.data_type.find(name)
    return None if found is None else Value(struct.column.getField(found.name), found.data_type)
