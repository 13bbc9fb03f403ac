"""Names of geometries and geographies, and their mark in Arrow."""

from __future__ import annotations

import pickle
import struct

import pyarrow as pa
import pytest

from tahoe.schema.arrow import from_arrow_schema, to_arrow_schema
from tahoe.schema.cast import READ, conform
from tahoe.schema.geospatial import WellKnownBinary, name_of_mark, normalised
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

POINT = b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1, 2)
GEOMETRY, GEOGRAPHY = PrimitiveType("geometry(OGC:CRS84)"), PrimitiveType("geography(OGC:CRS84, SPHERICAL)")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("geometry", "geometry(OGC:CRS84)"),
        ("geometry( EPSG:3857 )", "geometry(EPSG:3857)"),
        ("geometry(EPSG:4326)", "geometry(OGC:CRS84)"),
        ("geometry(srid:0)", "geometry(SRID:0)"),
        ("geography", "geography(OGC:CRS84, SPHERICAL)"),
        ("geography(OGC:CRS84, spherical)", "geography(OGC:CRS84, SPHERICAL)"),
        ("geography(vincenty)", "geography(OGC:CRS84, VINCENTY)"),
        ("geography(EPSG:4258)", "geography(EPSG:4258, SPHERICAL)"),
        *((wrong, None) for wrong in ("geometry()", "geometryx", "geometry(SRID:ANY)", "geometry(a:b,c:d)", "geography(x)")),
        *(
            (wrong, None)
            for wrong in ("geography()", "geography(,spherical)", "geography(a:b, c:d)", 'geometry({"type":"x"})', "string")
        ),
    ],
)
def test_names_have_one_form(text, name):
    """As delta-spark, the kernels and Spark write them."""
    assert normalised(text) == name


def test_arrow_marks_geometries_at_every_depth():
    schema = StructType(
        (
            StructField("g", GEOMETRY),
            StructField("s", StructType((StructField("h", GEOGRAPHY),))),
            StructField("a", ArrayType(PrimitiveType("geometry(EPSG:3857)"))),
            StructField("m", MapType(PrimitiveType("string"), PrimitiveType("geometry(SRID:0)"))),
        )
    )
    arrow = to_arrow_schema(schema)
    assert arrow.field("g").type == pa.binary() and from_arrow_schema(arrow) == schema
    assert from_arrow_schema(pa.schema([("x", pa.binary())])).fields[0].data_type == PrimitiveType("binary")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (b"", "geometry(SRID:0)"),
        (b"{}", "geometry(SRID:0)"),
        (b'{"crs":"0","crs_type":"srid"}', "geometry(SRID:0)"),
        (b'{"crs":{"id":{"authority":"EPSG","code":3857}}}', "geometry(EPSG:3857)"),
        (b'{"crs":"OGC:CRS84","edges":"karney"}', "geography(OGC:CRS84, KARNEY)"),
        (b'{"crs":{"type":"x"}}', None),
        (b"no json", None),
        (b"[]", None),
    ],
)
def test_geospatial_types_of_other_libraries_are_read_from_arrow(said, name):
    """GeoArrow's metadata, as GeoPandas and DuckDB write it."""
    marked = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": said}
    assert name_of_mark(pa.field("g", pa.binary(), metadata=marked)) == name
    assert name_of_mark(pa.field("g", pa.binary(), metadata={**marked, "ARROW:extension:name": "geoarrow.point"})) is None


def test_the_type_of_a_file_goes_through_pickle_and_reading():
    kind = WellKnownBinary(GEOGRAPHY.name)
    assert pickle.loads(pickle.dumps(kind)).name == GEOGRAPHY.name and name_of_mark(pa.field("g", kind)) == GEOGRAPHY.name
    assert name_of_mark(pa.field("u", pa.uuid())) is None
    stored = conform(pa.array([POINT, None], pa.large_binary()), GEOGRAPHY, kind, READ)
    assert stored.type == kind and conform(stored, GEOGRAPHY, pa.binary(), READ).to_pylist() == [POINT, None]
