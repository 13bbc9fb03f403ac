"""Converts Arrow arrays from one shape to another, for readers and writers, with exact casts of single values.

`conform` walks an array and a Delta type in parallel, takes each field from the array by the rule that the caller passes (by logical
name, by physical name, by id), fills missing fields with null, and passes values without parts to the rule's cast.
Only the arrays that a cast changes are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import nulls
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, is_geospatial
from tahoe.schema.variant_bytes import MalformedVariant
from tahoe.schema.variant_shredding import is_shredded, unshredded

Find = Callable[[pa.DataType, StructField], int | None]
"""Returns the position of a field among the children of an Arrow struct, or None."""
Cast = Callable[[pa.Array, pa.DataType], pa.Array]
"""Casts values without parts to another Arrow type; raises `CannotCast` or `pyarrow.ArrowInvalid`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of `conform`: finds the field of a column in an array, and casts values that have no parts."""

    find: Find
    cast: Cast


FIELD_ID = b"PARQUET:field_id"
"""The key under which Arrow's metadata holds a field's id in a Parquet file."""
_VARIANT = PrimitiveType("variant")
_LARGEST = pa.decimal128(38, 0)


class CannotCast(Exception):
    """The two types, or some of the values, are incompatible; `path` is the location below the column."""

    def __init__(self, source: pa.DataType, target: pa.DataType, path: tuple[str, ...], reason: str | None = None) -> None:
        super().__init__(reason or f"{source} does not go into {target}")
        self.source = source
        self.target = target
        self.path = path
        self.reason = reason


def conform(array: pa.Array, data_type: DataType, target: pa.DataType, rule: Rule, path: tuple[str, ...] = ()) -> pa.Array:
    """Convert the array to the Arrow type `target`, which has the shape of `data_type` and any names.

    Args:
        array: values of one column.
        data_type: the Delta type of the values; the rule finds its fields in the array.
        target: the Arrow type to build, with its field names, nullability and metadata.
        path: where the array is below its column, for errors.
    """
    if data_type == _VARIANT and not pa.types.is_null(array.type):
        return _conform_variant(array, target, path)
    if isinstance(array, pa.ExtensionArray) and is_geospatial(data_type):
        array = array.storage
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, conform(array, data_type, target.storage_type, rule, path))
    if array.type == target and not isinstance(data_type, StructType | ArrayType | MapType):
        return array
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), data_type, target, rule, path)
    if data_type == PrimitiveType("void") or pa.types.is_null(array.type):
        return nulls(len(array), target)
    match data_type:
        case StructType():
            return _conform_struct(array, data_type, target, rule, path)
        case ArrayType():
            return _conform_list(array, data_type, target, rule, path)
        case MapType():
            return _conform_map(array, data_type, target, rule, path)
    try:
        return rule.cast(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CannotCast(array.type, target, path, str(error)) from error
    except CannotCast as error:
        raise CannotCast(error.source, error.target, path, error.reason) from error


def find_logical(struct: pa.DataType, column: StructField) -> int | None:
    """Find a field by logical name: exactly, else case-insensitively, as Spark."""
    return _named(struct, column.name)


def find_physical(struct: pa.DataType, column: StructField) -> int | None:
    """Find a field by physical name: exactly, else case-insensitively."""
    return _named(struct, column.physical_name)


def find_by_id(struct: pa.DataType, column: StructField) -> int | None:
    """Find a field by Parquet field id (column mapping mode ``id``); a column without an id, as in the change data feed, by name."""
    if column.field_id is None:
        return find_physical(struct, column)
    field_id = str(column.field_id).encode()
    for index in range(struct.num_fields):
        metadata = struct.field(index).metadata
        if metadata is not None and metadata.get(FIELD_ID) == field_id:
            return index
    return None


def nulls_where_forbidden(array: pa.Array, data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths below a column that contain a null although their field, element or map value must not be null.

    A null inside a null struct does not count: there is no such field then.
    """
    match data_type:
        case StructType(fields):
            # Flattened, a child is null where its parent is, regardless of the value in its own slot.
            for child, column in zip(array.flatten(), fields, strict=True):
                inner = (*path, column.name)
                if not column.nullable and _has_own_nulls(child, array):
                    yield inner
                yield from nulls_where_forbidden(child, column.data_type, inner)
        case ArrayType(element, contains_null):
            values = array.flatten()
            if not contains_null and values.null_count:
                yield (*path, "element")
            yield from nulls_where_forbidden(values, element, (*path, "element"))
        case MapType(key, value, value_contains_null):
            array = array.drop_null()
            start, end = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
            items = array.items[start:end]
            if not value_contains_null and items.null_count:
                yield (*path, "value")
            yield from nulls_where_forbidden(array.keys[start:end], key, (*path, "key"))
            yield from nulls_where_forbidden(items, value, (*path, "value"))


def read_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values of a data file to the table's type: from another encoding of the same type, or from a type that was widened since."""
    types, source = pa.types, array.type
    if types.is_timestamp(target):
        return _to_timestamp(array, target, floor=True)
    if types.is_string(target) and (is_text(source) or _is_bytes(source)):
        return array.cast(target)
    if types.is_binary(target) and (is_text(source) or _is_bytes(source)):
        return array.cast(target)
    if types.is_integer(target) and types.is_integer(source):
        return array.cast(target)
    if types.is_decimal(target) and (types.is_decimal(source) or types.is_integer(source)):
        return _to_decimal(array, target)
    if types.is_float64(target) and (types.is_floating(source) or (types.is_integer(source) and source.bit_width <= 32)):
        return array.cast(target)
    if types.is_float32(target) and types.is_float16(source):
        return array.cast(target)
    if types.is_date32(target) and types.is_date64(source):
        return array.cast(target)
    raise CannotCast(source, target, ())


def store_cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a user's values to the table's type exactly: a value that would change is an error, except for the rounding of floating-point
    numbers. (`tahoe.schema.evolve.can_store` defines the allowed pairs of types.)
    """
    types, source = pa.types, array.type
    if types.is_timestamp(target) and (types.is_timestamp(source) or types.is_date(source)):
        return _to_timestamp(array, target, floor=False)
    if types.is_date32(target) and types.is_timestamp(source):
        return _midnights(array, target)
    if (
        types.is_floating(target)
        and types.is_primitive(source)
        and not types.is_temporal(source)
        and not types.is_boolean(source)
    ):
        return array.cast(target, safe=False)
    if types.is_decimal(target) and types.is_floating(source):
        return array.cast(target)
    if types.is_decimal(target):
        return _to_decimal(array, target)
    if types.is_string(target) and not (is_text(source) or _is_bytes(source) or _has_one_text(source)):
        raise CannotCast(source, target, (), f"the text of a {source} differs between engines; cast it to a string first")
    return array.cast(target)


GIVEN = Rule(find_logical, store_cast)
"""The rule for a user's data: columns by their logical names, and exact values."""
READ = Rule(find_logical, read_cast)
"""The rule for rows that were read, by logical names."""
STORED = Rule(find_physical, read_cast)
"""The rule for rows in data files, by physical names."""


def _named(struct: pa.DataType, name: str) -> int | None:
    index = struct.get_field_index(name)
    if index >= 0:
        return int(index)
    lowered = name.lower()
    return next((i for i in range(struct.num_fields) if struct.field(i).name.lower() == lowered), None)


def _conform_struct(array: pa.Array, data_type: StructType, target: pa.DataType, rule: Rule, path: tuple[str, ...]) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise CannotCast(array.type, target, path)
    children = []
    for index, column in enumerate(data_type):
        position = rule.find(array.type, column)
        field_type = target.field(index).type
        if position is None:
            children.append(nulls(len(array), field_type))
        else:
            children.append(conform(array.field(position), column.data_type, field_type, rule, (*path, column.name)))
    fields = [target.field(index) for index in range(target.num_fields)]
    mask = array.is_null() if array.null_count else None
    if not children:
        return pa.array([None if null else {} for null in array.is_null().to_pylist()], target)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _conform_list(array: pa.Array, data_type: ArrayType, target: pa.DataType, rule: Rule, path: tuple[str, ...]) -> pa.Array:
    types = pa.types
    if types.is_large_list(array.type) or types.is_fixed_size_list(array.type) or types.is_list_view(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if not types.is_list(array.type):
        raise CannotCast(array.type, target, path)
    values = conform(array.values, data_type.element_type, target.value_type, rule, (*path, "element"))
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values])


def _conform_map(array: pa.Array, data_type: MapType, target: pa.DataType, rule: Rule, path: tuple[str, ...]) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise CannotCast(array.type, target, path)
    keys = conform(array.keys, data_type.key_type, target.key_type, rule, (*path, "key"))
    items = conform(array.items, data_type.value_type, target.item_type, rule, (*path, "value"))
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[entries])


def _conform_variant(array: pa.Array, target: pa.DataType, path: tuple[str, ...]) -> pa.Array:
    """Convert a variant to its two parts, in any order; a shredded variant is reassembled. For a null variant both parts are empty, because
    neither may be null."""
    if is_shredded(array.type):
        try:
            array = unshredded(array)
        except MalformedVariant as error:
            raise CannotCast(
                array.type, target, path, f"a shredded variant of it is not as the specification has it: {error}"
            ) from error
    names = [field.name for field in array.type.fields] if pa.types.is_struct(array.type) else []
    if not {"value", "metadata"} <= set(names):
        raise CannotCast(array.type, target, path, "a variant is a struct of value and metadata, both binary")
    parts = [array.field(names.index(field.name)) for field in target.fields]
    if not all(_is_bytes(part.type) for part in parts):
        raise CannotCast(array.type, target, path, "value and metadata of a variant are binary")
    parts = [part.cast(pa.binary()) for part in parts]
    missing = array.is_null()
    if any(pc.any(pc.and_(part.is_null(), pc.invert(missing))).as_py() for part in parts if part.null_count):
        raise CannotCast(array.type, target, path, "value and metadata of a variant must not be null")
    filled = [part.fill_null(b"") if part.null_count else part for part in parts]
    return pa.StructArray.from_arrays(filled, fields=target.fields, mask=missing if array.null_count else None)


def _to_timestamp(array: pa.Array, target: pa.DataType, *, floor: bool) -> pa.Array:
    """Cast timestamps and dates to microseconds; a timestamp without a zone is taken as UTC and vice versa.

    `floor`: nanoseconds are rounded down, because values of other writers cannot be refused; otherwise they are an error.
    """
    source = array.type
    if pa.types.is_date(source):
        if target.tz is not None and floor:
            raise CannotCast(source, target, ())
        return array.cast(pa.timestamp("us")).view(target)
    if not pa.types.is_timestamp(source):
        raise CannotCast(source, target, ())
    naive = array.view(pa.timestamp(source.unit))
    if floor and source.unit == "ns":
        naive = pc.floor_temporal(naive, unit="microsecond")
    return naive.cast(pa.timestamp("us")).view(target)


def _midnights(array: pa.Array, target: pa.DataType) -> pa.Array:
    naive = array.view(pa.timestamp(array.type.unit))
    days = naive.cast(target)
    if not pc.all(pc.equal(days.cast(naive.type), naive)).as_py() and len(array) > array.null_count:
        raise CannotCast(array.type, target, (), "some of its timestamps have a time of day, which a date would lose")
    return days


def _to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_integer(array.type):
        # Arrow requires a precision for every value of the integer type, but only the actual values must fit.
        array = array.cast(_LARGEST)
    return array.cast(target)


def is_text(data_type: pa.DataType) -> bool:
    """Whether an Arrow type is one of texts, in any of its layouts."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type))


def _has_one_text(data_type: pa.DataType) -> bool:
    """Whether the text of a type's values is the same in Arrow and in Spark; users must cast values of other types themselves."""
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_boolean(data_type) or types.is_date32(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_binary_view(data_type)
        or types.is_fixed_size_binary(data_type)
    )


def _has_own_nulls(child: pa.Array, parent: pa.Array) -> bool:
    if not child.null_count:
        return False
    if not parent.null_count:
        return True
    return bool(pc.any(pc.and_(child.is_null(), parent.is_valid())).as_py())
