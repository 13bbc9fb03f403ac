"""Valid and invalid Well-Known Binary."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.well_known_binary import fault_of, first_fault


def wkb(kind: int, *parts: bytes, counted: bool = True, order: str = "<") -> bytes:
    head = bytes([order == "<"]) + struct.pack(f"{order}I", kind)
    return head + (struct.pack(f"{order}I", len(parts)) if counted else b"") + b"".join(parts)


def xy(*numbers: float, order: str = "<") -> bytes:
    return struct.pack(f"{order}{len(numbers)}d", *numbers)


POINT = wkb(1, xy(1, 2), counted=False)
RING = struct.pack("<I", 4) + xy(0, 0, 1, 0, 1, 1, 0, 0)
POLYGON, LINE = wkb(3, RING), wkb(2, xy(0, 0), xy(1, 1))


@pytest.mark.parametrize(
    "value",
    [
        *(POINT, LINE, POLYGON, wkb(2), wkb(7)),
        wkb(1, xy(1, 2, order=">"), counted=False, order=">"),
        *(wkb(1001, xy(1, 2, 3), counted=False), wkb(2001, xy(1, 2, 3), counted=False), wkb(3001, xy(1, 2, 3, 4), counted=False)),
        *(wkb(4, POINT, POINT), wkb(5, LINE), wkb(6, POLYGON), wkb(7, POINT, wkb(7, POLYGON), wkb(4, POINT))),
        wkb(1, xy(float("nan"), float("nan")), counted=False),
    ],
)
def test_geometries(value):
    assert fault_of(value) is None and fault_of(value, in_degrees=True) is None
    for end in range(len(value)):
        assert fault_of(value[:end]) == "it ends too early"
    assert fault_of(value + b"..") == "2 bytes follow its end"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"POINT(1 2)", "its byte order is 80"),
        (wkb(0), "its type is 0x0"),
        (wkb(8), "its type is 0x8"),
        (wkb(0x20000001, struct.pack("<I", 4326), xy(1, 2), counted=False), "its type is 0x20000001"),  # PostGIS's own form
        (wkb(4, LINE), "a part of it has the type 2"),
        (wkb(7, wkb(1001, xy(1, 2, 3), counted=False)), "a part of it has the type 1001"),
        (wkb(2, *[b""] * 3)[:5] + b"\xff\xff\xff\xff", "it ends too early"),
    ],
)
def test_bytes_that_are_no_well_known_binary(value, fault):
    assert str(fault_of(value)).startswith(fault)


def test_collections_in_collections_have_an_end():
    value = wkb(7)
    for _ in range(50):
        value = wkb(7, value)
    assert fault_of(value) == "collections in it are nested too deep"


@pytest.mark.parametrize(("x", "y"), [(181, 0), (-180.5, 0), (0, 90.5), (0, -91), (float("inf"), 0)])
def test_geographies_are_in_degrees(x, y):
    value = wkb(1, xy(x, y), counted=False)
    assert fault_of(value) is None and "longitude" in str(fault_of(value, in_degrees=True))


def test_columns_are_looked_through_at_every_depth():
    geography = PrimitiveType("geography(OGC:CRS84, SPHERICAL)")
    far = wkb(1, xy(200, 0), counted=False)
    binary = pa.binary()
    for data_type, arrow, good, bad in (
        (geography, binary, POINT, far),
        (ArrayType(geography), pa.list_(binary), [POINT, None], [POINT, far]),
        (StructType((StructField("g", geography),)), pa.struct([("g", binary)]), {"g": POINT}, {"g": far}),
        (MapType(PrimitiveType("string"), geography), pa.map_(pa.string(), binary), [("k", POINT)], [("k", far)]),
    ):
        assert first_fault(pa.array([good, None], arrow), data_type) is None
        assert "longitude" in str(first_fault(pa.array([None, good, bad], arrow), data_type))
    assert first_fault(pa.array([b"x"]), PrimitiveType("binary")) is None
