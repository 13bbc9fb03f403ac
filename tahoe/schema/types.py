"""Delta's data types as frozen values, and their JSON form (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
from tahoe.base.json_values import compact_json
from tahoe.base.wording import suggestion
from tahoe.schema.geospatial import MIXED_CRS, is_geospatial_name, normalised

PRIMITIVES = frozenset(
    {
        *("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"),
        *("byte", "short", "integer", "long", "float", "double"),
        *("void", "variant"),
    }
)
GENERATION_EXPRESSION = "delta.generationExpression"
"""The key of a generated column's expression in its metadata."""
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts; `name` is the specification's own: ``string``, ``long``, ``timestamp_ntz``, …

    A geometry or geography has its parameters in the name, in the form of `tahoe.schema.geospatial.normalised`.
    """

    name: str

    def to_json_value(self) -> Any:
        """Return the type's value in `schemaString`: its name."""
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """A number of up to 38 digits, `scale` of them after the point."""

    precision: int
    scale: int

    def to_json_value(self) -> Any:
        """Return the type's value in `schemaString`: ``decimal(10,2)``."""
        return str(self)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of elements of one type."""

    element_type: DataType
    contains_null: bool = True

    def to_json_value(self) -> Any:
        """Return the type's value in `schemaString`, an object."""
        return {"type": "array", "elementType": self.element_type.to_json_value(), "containsNull": self.contains_null}

    def __str__(self) -> str:
        return f"array<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from non-null keys of one type to values of another."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    def to_json_value(self) -> Any:
        """Return the type's value in `schemaString`, an object."""
        return {
            "type": "map",
            "keyType": self.key_type.to_json_value(),
            "valueType": self.value_type.to_json_value(),
            "valueContainsNull": self.value_contains_null,
        }

    def __str__(self) -> str:
        return f"map<{self.key_type},{self.value_type}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """One column or nested field. `metadata` contains the specification's keys (``delta.columnMapping.id``, …) and any others."""

    name: str
    data_type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values (PROTOCOL.md, "Column Mapping")."""
        return str(self.metadata.get("delta.columnMapping.physicalName", self.name))

    @property
    def field_id(self) -> int | None:
        """The column id of column mapping, or None."""
        number = self.metadata.get("delta.columnMapping.id")
        return None if number is None else int(number)

    @property
    def is_generated(self) -> bool:
        """Whether an expression over other columns computes the values (PROTOCOL.md, "Generated Columns")."""
        return GENERATION_EXPRESSION in self.metadata

    def to_json_value(self) -> Any:
        """Return the field's object in `schemaString`, its metadata included."""
        return {
            "name": self.name,
            "type": self.data_type.to_json_value(),
            "nullable": self.nullable,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields in order, such as the schema of a table. Names are looked up case-insensitively."""

    fields: tuple[StructField, ...] = ()

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> list[str]:
        """The names of the fields, in order."""
        return [column.name for column in self.fields]

    def find(self, name: str) -> StructField | None:
        """Return the field of that name, first exactly, then case-insensitively (Spark's rule); None if there is none."""
        for column in self.fields:
            if column.name == name:
                return column
        lowered = name.lower()
        return next((column for column in self.fields if column.name.lower() == lowered), None)

    def field(self, name: str) -> StructField:
        """Return the field of `find`; a missing field raises `InvalidRequest`, which lists the existing names."""
        column = self.find(name)
        if column is None:
            raise InvalidRequest(
                f"There is no column '{name}'; the columns are: {', '.join(self.names)}.{suggestion(name, self.names)}",
                code="DELTA_COLUMN_NOT_FOUND",
                column=name,
            )
        return column

    def resolve(self, path: tuple[str, ...]) -> StructField | None:
        """Return the nested field at `path` through structs, or None."""
        column = self.find(path[0])
        for part in path[1:]:
            if column is None or not isinstance(column.data_type, StructType):
                return None
            column = column.data_type.find(part)
        return column

    def select(self, names: list[str]) -> StructType:
        """Return a struct of these fields, in this order. Raises `InvalidRequest` for a missing field."""
        return StructType(tuple(self.field(name) for name in names))

    def without(self, names: set[str]) -> StructType:
        """Return a struct without the fields of these names, compared exactly."""
        return StructType(tuple(column for column in self.fields if column.name not in names))

    def to_json_value(self) -> Any:
        """Return the type's value in `schemaString`, an object."""
        return {"type": "struct", "fields": [column.to_json_value() for column in self.fields]}

    def to_json(self) -> str:
        """Return the text of `Metadata.schema_string`."""
        return compact_json(self.to_json_value())

    def __str__(self) -> str:
        return f"struct<{','.join(f'{column.name}:{column.data_type}' for column in self.fields)}>"


DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType


def is_geospatial(data_type: DataType) -> bool:
    """Whether the type is a geometry or a geography."""
    return isinstance(data_type, PrimitiveType) and is_geospatial_name(data_type.name)


def is_opaque(data_type: DataType) -> bool:
    """Whether values can be compared and cast only by Spark's special functions: variants, geometries and geographies."""
    return data_type == PrimitiveType("variant") or is_geospatial(data_type)


def schema_from_json(text: str) -> StructType:
    """Parse `Metadata.schema_string`. Raises `CorruptTable` for types and forms that the specification does not define."""
    if not isinstance(text, str):
        raise CorruptTable(f"The table's metaData action has no schemaString. {_REPAIR}", code="DELTA_SCHEMA_NOT_SET")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptTable(f"The table's schema is not valid JSON ({error}). {_REPAIR}", code="TAHOE_CORRUPT_SCHEMA") from error
    try:
        parsed = _type(value)
    except RecursionError as error:
        raise CorruptTable(f"The table's schema is nested too deep to be read. {_REPAIR}", code="TAHOE_CORRUPT_SCHEMA") from error
    if not isinstance(parsed, StructType):
        raise CorruptTable(f"The table's schema must be a struct, found {parsed}. {_REPAIR}", code="TAHOE_CORRUPT_SCHEMA")
    return parsed


def leaves(schema: StructType, prefix: tuple[StructField, ...] = ()) -> Iterator[tuple[StructField, ...]]:
    """Yield each leaf column as the chain of fields that leads to it, in schema order; arrays and maps are leaves."""
    for column in schema:
        if isinstance(column.data_type, StructType):
            yield from leaves(column.data_type, (*prefix, column))
        else:
            yield (*prefix, column)


def parts_of(data_type: DataType) -> Iterator[DataType]:
    """Yield the type itself and the element, key and value types of arrays and maps, but not the fields of structs."""
    yield data_type
    match data_type:
        case ArrayType(element):
            yield from parts_of(element)
        case MapType(key, value):
            yield from parts_of(key)
            yield from parts_of(value)


def is_same_type(left: DataType, right: DataType, *, case_sensitive: bool = True) -> bool:
    """Return whether types are equal except for nullability and metadata: the names of fields and their order included."""
    match left, right:
        case StructType(), StructType():
            names, others = left.names, right.names
            if not case_sensitive:
                names, others = [name.lower() for name in names], [name.lower() for name in others]
            return names == others and all(
                is_same_type(a.data_type, b.data_type, case_sensitive=case_sensitive) for a, b in zip(left, right, strict=True)
            )
        case ArrayType(), ArrayType():
            return is_same_type(left.element_type, right.element_type, case_sensitive=case_sensitive)
        case MapType(), MapType():
            return is_same_type(left.key_type, right.key_type, case_sensitive=case_sensitive) and is_same_type(
                left.value_type, right.value_type, case_sensitive=case_sensitive
            )
    return left == right


_REPAIR = "Restore the metaData action of the log."
_MOST_DIGITS = 38


def _type(value: Any, path: tuple[str, ...] = ()) -> DataType:
    if isinstance(value, str):
        return _named(value, path)
    match value.get("type") if isinstance(value, dict) else None:
        case "struct":
            fields = _member(value, "fields", list, path)
            return StructType(tuple(_field(item, path) for item in fields))
        case "array":
            element = _type(_member(value, "elementType", (str, dict), path), (*path, "element"))
            return ArrayType(element, _member(value, "containsNull", bool, path))
        case "map":
            key = _type(_member(value, "keyType", (str, dict), path), (*path, "key"))
            items = _type(_member(value, "valueType", (str, dict), path), (*path, "value"))
            return MapType(key, items, _member(value, "valueContainsNull", bool, path))
    raise _broken(path, f"a type that the specification does not know: {json.dumps(value)[:200]}")


def _field(value: object, path: tuple[str, ...]) -> StructField:
    if not isinstance(value, dict):
        raise _broken(path, f"a field that is no object: {json.dumps(value)[:200]}")
    name = _member(value, "name", str, path)
    inside = (*path, name)
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise _broken(inside, f"metadata that is no object: {json.dumps(metadata)[:200]}")
    data_type = _type(_member(value, "type", (str, dict), inside), inside)
    return StructField(name, data_type, _member(value, "nullable", bool, inside), metadata or {})


def _member(value: Mapping[str, object], name: str, kind: type | tuple[type, ...], path: tuple[str, ...]) -> Any:
    member = value.get(name)
    if isinstance(member, kind):
        return member
    raise _broken(path, f"no right '{name}', which the specification demands, in {json.dumps(value)[:200]}")


def _broken(path: tuple[str, ...], fault: str) -> CorruptTable:
    where = f"Column '{'.'.join(path)}' of the table's schema" if path else "The table's schema"
    return CorruptTable(f"{where} has {fault}. {_REPAIR}", code="TAHOE_CORRUPT_SCHEMA", column=".".join(path))


def _named(name: str, path: tuple[str, ...]) -> DataType:
    if name in PRIMITIVES:
        return PrimitiveType(name)
    if name == "null":
        return PrimitiveType("void")
    if name == "decimal":
        return DecimalType(10, 0)
    geospatial = normalised(name)
    if geospatial is not None:
        return PrimitiveType(geospatial)
    match = _DECIMAL.fullmatch(name)
    if match:
        precision, scale = (int(digits[:10]) for digits in match.groups())
        if not (1 <= precision <= _MOST_DIGITS and 0 <= scale <= precision):
            limits = f"a precision is from 1 to {_MOST_DIGITS}, and a scale from 0 to the precision"
            raise _broken(path, f"the type {name[:60]}, but {limits}")
        return DecimalType(precision, scale)
    where = f" of column '{'.'.join(path)}'" if path else ""
    if MIXED_CRS in name.upper():
        raise Unsupported(
            f"Geospatial type '{name[:200]}'{where} has an unsupported srid: values of one column have one system of coordinates. Give it "
            "its number, as in GEOMETRY(4326).",
            code="DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED",
            type=name,
            column=".".join(path),
        )
    raise Unsupported(
        f"The type '{name[:200]}'{where} is not supported by this version of Tahoe. Use a client that knows it; where it may, "
        "that can write the values to a column of another type.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        type=name,
        column=".".join(path),
    )
