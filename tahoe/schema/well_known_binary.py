"""Whether bytes are one geometry in Well-Known Binary, as Parquet demands it: ISO's form, with Z and M, and nothing after its end
(Geospatial.md of apache/parquet-format; OGC Simple feature access). Readers fail on anything else, Spark among them.
"""

from __future__ import annotations

import struct
from math import isnan

import pyarrow as pa

from tahoe.schema.geospatial import is_geography_name
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType, is_geospatial

_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_PART = {4: _POINT, 5: _LINE, 6: _POLYGON}
_MOST_NESTED = 32


def first_fault(values: pa.Array, data_type: DataType) -> str | None:
    """Describe the fault of the first invalid value of a column, at any depth; None if all values are valid."""
    match data_type:
        case StructType(fields):
            parts = values.flatten()
            return next(
                (fault for part, field in zip(parts, fields, strict=True) if (fault := first_fault(part, field.data_type))), None
            )
        case ArrayType(element):
            return first_fault(values.flatten(), element)
        case MapType(key, value):
            values_present = values.drop_null()
            start, end = (
                (values_present.offsets[0].as_py(), values_present.offsets[-1].as_py()) if len(values_present) else (0, 0)
            )
            return first_fault(values_present.keys[start:end], key) or first_fault(values_present.items[start:end], value)
        case PrimitiveType(name) if is_geospatial(data_type):
            stored = values.storage if isinstance(values, pa.ExtensionArray) else values
            in_degrees = is_geography_name(name)
            for value in stored:
                fault = fault_of(value.as_py(), in_degrees=in_degrees) if value.is_valid else None
                if fault is not None:
                    return fault
    return None


def fault_of(value: bytes, *, in_degrees: bool = False) -> str | None:
    """Describe the fault of a value; None if it is a valid geometry.

    Args:
        in_degrees: coordinates must be a longitude and a latitude, from -180 to 180 and from -90 to 90.
    """
    try:
        end = _Reader(value, in_degrees).geometry(0, None, 0)
    except struct.error:
        return "it ends too early"
    except _Fault as fault:
        return str(fault)
    return None if end == len(value) else f"{len(value) - end} bytes follow its end"


class _Fault(Exception):
    """Describes the fault of a value."""


class _Reader:
    def __init__(self, value: bytes, in_degrees: bool) -> None:
        self._value = value
        self._in_degrees = in_degrees

    def geometry(self, at: int, expected: tuple[int, int] | None, depth: int) -> int:
        """Where the geometry that begins at `at` ends.

        Args:
            expected: the kind and dimensions that it must have as a part of another; the kind 0 for any.
        """
        if depth > _MOST_NESTED:
            raise _Fault("collections in it are nested too deep")
        order = struct.unpack_from("B", self._value, at)[0]
        if order > 1:
            raise _Fault(f"its byte order is {order}, expected 0 or 1")
        endian = "<" if order else ">"
        code = struct.unpack_from(f"{endian}I", self._value, at + 1)[0]
        dimensions, kind = divmod(code, 1000)
        if dimensions > 3 or not _POINT <= kind <= _COLLECTION:
            raise _Fault(f"its type is {code:#x}; known are ISO's 1 to 7, and these plus 1000, 2000 and 3000")
        if expected is not None and (expected[0] not in (0, kind) or expected[1] != dimensions):
            raise _Fault(f"a part of it has the type {code}")
        width = 2 + (dimensions in (1, 3)) + (dimensions in (2, 3))
        at += 5
        if kind == _POINT:
            return self._points(at, endian, 1, width)
        count, at = self._count(at, endian)
        if kind == _LINE:
            return self._points(at, endian, count, width)
        for _ in range(count):
            if kind == _POLYGON:
                ring, at = self._count(at, endian)
                at = self._points(at, endian, ring, width)
            else:
                at = self.geometry(at, (_PART.get(kind, 0), dimensions), depth + 1)
        return at

    def _count(self, at: int, endian: str) -> tuple[int, int]:
        return struct.unpack_from(f"{endian}I", self._value, at)[0], at + 4

    def _points(self, at: int, endian: str, count: int, width: int) -> int:
        end = at + 8 * width * count
        if end > len(self._value):
            raise _Fault("it ends too early")
        if self._in_degrees:
            numbers = struct.unpack_from(f"{endian}{width * count}d", self._value, at)
            for x, y in zip(numbers[::width], numbers[1::width], strict=True):
                if not (isnan(x) or -180 <= x <= 180) or not (isnan(y) or -90 <= y <= 90):
                    raise _Fault(f"{x!r}, {y!r} is no longitude from -180 to 180 with a latitude from -90 to 90")
        return end
