"""Type widening: the allowed type changes of a column, automatic or on request, and their record in the schema.

PROTOCOL.md, "Type Widening". Files keep the types that they were written with; readers convert. Pure functions over Delta's types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tahoe.base.exceptions import CorruptTable, Unsupported
from tahoe.schema.mapping import explode, transform_fields, transform_with_path, without_mapping
from tahoe.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_from_json,
)

TYPE_CHANGES_KEY = "delta.typeChanges"
"""The key of a field's metadata that records its earlier types."""
WIDENING_MODES = ("ALWAYS", "SAME_FAMILY_TYPE", "NEVER")
"""The type changes that schema evolution may make automatically: all allowed ones; only numbers to numbers of their kind and dates to
timestamps without a time zone; or none. The names are those of delta-spark's setting ``typeWidening.allowAutomaticWidening``."""
_INTEGRALS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_NUMBERS = (*_INTEGRALS, "float", "double")
_UP_CASTS_OF_TIMES = {
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp", "long"),
    ("long", "timestamp"),
}
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}


@dataclass(frozen=True, slots=True)
class Widening:
    """The types that schema evolution widens automatically.

    Args:
        mode: one of `WIDENING_MODES`.
        for_iceberg: whether the table is also converted to Iceberg, which supports fewer changes.
        stored_alike: whether byte, short and int become a wider one of these three whatever the mode, as in a DataFrame write with
            ``mergeSchema``.
    """

    mode: str
    for_iceberg: bool = False
    stored_alike: bool = False

    def allows(self, old: DataType, new: DataType) -> bool:
        """Whether a column of type `old` becomes one of type `new`."""
        if self.stored_alike and is_stored_alike(old, new):
            return True
        if self.mode == "NEVER" or not is_widening(old, new):
            return False
        if self.mode == "SAME_FAMILY_TYPE" and not _is_same_family(old, new):
            return False
        return not self.for_iceberg or is_iceberg_widening(old, new)


NO_WIDENING = Widening("NEVER")


def is_widening(source: DataType, target: DataType) -> bool:
    """Whether the type change is one that the specification allows (PROTOCOL.md, "Type Widening"). Equal types are none."""
    match source, target:
        case PrimitiveType(old), DecimalType(precision, scale) if old in _INTEGRALS:
            return precision - scale >= (20 if old == "long" else 10)
        case DecimalType(), DecimalType():
            more_scale = target.scale - source.scale
            return source != target and more_scale >= 0 and target.precision - source.precision >= more_scale
        case PrimitiveType(old), PrimitiveType(new):
            if old in _INTEGRALS and new in _INTEGRALS:
                return _INTEGRALS[old] < _INTEGRALS[new]
            return (old, new) == ("date", "timestamp_ntz") or (new == "double" and old in ("byte", "short", "integer", "float"))
    return False


def is_stored_alike(source: DataType, target: DataType) -> bool:
    """Whether `target` is wider than `source` and Parquet stores both as INT32, so that every reader of a file supports either."""
    return (str(source), str(target)) in (("byte", "short"), ("byte", "integer"), ("short", "integer"))


def is_up_cast(source: DataType, target: DataType) -> bool:
    """Whether Spark casts single values of `source` to `target` without losing any (its ``Cast.canUpCast``); equal types are one, too."""
    match source, target:
        case _ if source == target or source == PrimitiveType("void"):
            return True
        case PrimitiveType("variant"), _:
            return False
        case PrimitiveType() | DecimalType(), PrimitiveType("string"):
            return True
        case PrimitiveType(old), PrimitiveType(new):
            if old in _NUMBERS and new in _NUMBERS:
                return _NUMBERS.index(old) < _NUMBERS.index(new)
            return (old, new) in _UP_CASTS_OF_TIMES
    return _is_wider_decimal(source, target)


def _is_wider_decimal(source: DataType, target: DataType) -> bool:
    """Whether both are decimals or whole numbers, and the target has the digits of the source, before and after the point."""
    old, new = _as_decimal(source), _as_decimal(target)
    if old is None or new is None:
        return False
    return old.precision - old.scale <= new.precision - new.scale and old.scale <= new.scale


def _as_decimal(data_type: DataType) -> DecimalType | None:
    if isinstance(data_type, PrimitiveType) and data_type.name in _INTEGRALS:
        return DecimalType(_INTEGRALS[data_type.name], 0)
    return data_type if isinstance(data_type, DecimalType) else None


def is_iceberg_widening(source: DataType, target: DataType) -> bool:
    """Whether Iceberg supports a type change that Delta allows (PROTOCOL.md, "Writer Requirements for Type Widening")."""
    match source, target:
        case PrimitiveType(old), PrimitiveType(new):
            return (old in _INTEGRALS and new in _INTEGRALS) or (old, new) == ("float", "double")
        case DecimalType(), DecimalType():
            return source.scale == target.scale
    return False


def with_type_changes(old: StructType, new: StructType) -> StructType:
    """Return the new schema with type changes recorded in the metadata of each field whose type, element, key or value became wider.

    Fields are the same if their names and physical names are.
    """
    before = dict(explode(old))

    def recorded(path: tuple[str, ...], column: StructField) -> StructField:
        was = before.get(path)
        if was is None or was.physical_name != column.physical_name:
            return column
        changes = [_change_record(*change) for change in _changes(was.data_type, column.data_type, ())]
        earlier = list(column.metadata.get(TYPE_CHANGES_KEY) or ())
        return replace(column, metadata={**column.metadata, TYPE_CHANGES_KEY: [*earlier, *changes]}) if changes else column

    return transform_with_path(new, recorded)


def without_type_changes(schema: StructType) -> StructType:
    """Return the schema without its recorded type changes; valid once every file has the types of the schema."""
    return transform_fields(
        schema, lambda column: replace(column, metadata={k: v for k, v in column.metadata.items() if k != TYPE_CHANGES_KEY})
    )


def fresh(schema: StructType) -> StructType:
    """Return the schema for a new table, without the metadata about another table's files: ids, physical names and earlier types."""
    return without_type_changes(without_mapping(schema))


def is_lossless(source: DataType, target: DataType) -> bool:
    """Whether every value of `source` is one of `target`, and files of the one can be read as the other.

    It allows more than `is_widening`: the preview of type widening let an integer become every decimal that is wide enough for it (a byte
    decimal(3 + k1, k2), not decimal(10 + k1, k2)), and delta-kernel reads tables of that time. No writer may make such a change today.
    """
    match source, target:
        case PrimitiveType(old), DecimalType(precision, scale) if old in _DIGITS:
            return precision - scale >= _DIGITS[old]
    return is_widening(source, target)


def check_type_changes(schema: StructType) -> None:
    """Refuse to read a table one of whose columns went through a type change that may have lost values (`is_lossless`).

    Raises `Unsupported`, ``DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA``, naming the column and both types; `CorruptTable` for a change
    that is not recorded as the specification demands.
    """
    for path, column in explode(schema):
        for change in _entries(column):
            if not isinstance(change, dict) or not {"fromType", "toType"} <= set(change):
                raise CorruptTable(
                    f"Column '{'.'.join(path)}' has a type change ({TYPE_CHANGES_KEY}) without fromType and toType: "
                    f"{json.dumps(change)[:200]}. Restore the metaData action of the log.",
                    code="TAHOE_CORRUPT_SCHEMA",
                    column=".".join(path),
                )
            old, new = _type_named(change["fromType"]), _type_named(change["toType"])
            if not is_lossless(old, new):
                name = ".".join((*path, *filter(None, str(change.get("fieldPath") or "").split("."))))
                raise Unsupported(
                    f"Column '{name}' was changed from {old} to {new} (feature typeWidening), a change that the specification "
                    "does not allow. Rewrite the table with the client that changed it.",
                    code="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
                    column=name,
                )


def preview_type_changes(schema: StructType) -> dict[str, str]:
    """Return the columns with a type change that only the preview of type widening allowed (`is_lossless`, not `is_widening`), each with a
    description of the change. For a schema that has passed `check_type_changes`."""
    previews = {}
    for path, column in explode(schema):
        for change in column.metadata.get(TYPE_CHANGES_KEY) or ():
            old, new = _type_named(change["fromType"]), _type_named(change["toType"])
            if not is_widening(old, new):
                previews[path[0]] = f"{old} to {new}"
    return previews


def _type_named(value: object) -> DataType:
    field = {"name": "type", "type": value, "nullable": True}
    return schema_from_json(json.dumps({"type": "struct", "fields": [field]})).fields[0].data_type


def type_changes_of(column: StructField) -> Iterator[tuple[tuple[str, ...], DataType, DataType]]:
    """Return the recorded type changes of a field: the path below it (``element``, ``key``, ``value``), the old type and the new type. For a
    schema that has passed `check_type_changes`."""
    for change in _entries(column):
        path = tuple(filter(None, str(change.get("fieldPath") or "").split(".")))
        yield path, _type_named(change["fromType"]), _type_named(change["toType"])


def _entries(column: StructField) -> list[Any]:
    changes = column.metadata.get(TYPE_CHANGES_KEY) or ()
    return list(changes) if isinstance(changes, list | tuple) else [changes]


def _is_same_family(old: DataType, new: DataType) -> bool:
    match old, new:
        case PrimitiveType(one), PrimitiveType(other):
            return not (one in _INTEGRALS and other == "double")
    return isinstance(old, DecimalType)


def _changes(old: DataType, new: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], DataType, DataType]]:
    """Yield the type changes of one field. Structs are left out: their fields record their own."""
    match old, new:
        case ArrayType(), ArrayType():
            yield from _changes(old.element_type, new.element_type, (*path, "element"))
        case MapType(), MapType():
            yield from _changes(old.key_type, new.key_type, (*path, "key"))
            yield from _changes(old.value_type, new.value_type, (*path, "value"))
        case _ if is_widening(old, new):
            yield path, old, new


def _change_record(path: tuple[str, ...], old: DataType, new: DataType) -> dict[str, str]:
    change = {"fromType": str(old.to_json_value()), "toType": str(new.to_json_value())}
    return {**change, "fieldPath": ".".join(path)} if path else change
