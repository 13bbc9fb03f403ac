"""Tables with geometries and geographies, without Spark."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe import Table
from tahoe.base.exceptions import InvalidRequest, SchemaMismatch, TahoeError
from tahoe.expr.tree.predicate import Column, Comparison, IsNull, Literal
from tahoe.schema.types import ArrayType, PrimitiveType, StructField, StructType

GEOMETRY, GEOGRAPHY = PrimitiveType("geometry(OGC:CRS84)"), PrimitiveType("geography(OGC:CRS84, SPHERICAL)")
SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("g", GEOMETRY),
        StructField("h", GEOGRAPHY),
        StructField("s", StructType((StructField("z", PrimitiveType("geometry(EPSG:3857)")),))),
        StructField("a", ArrayType(PrimitiveType("geometry(SRID:0)"))),
    )
)
PLAIN = pa.schema(
    [
        *(("id", pa.int64()), ("g", pa.binary()), ("h", pa.binary())),
        *(("s", pa.struct([("z", pa.binary())])), ("a", pa.list_(pa.binary()))),
    ]
)


def point(x: float, y: float) -> bytes:
    return b"\x01\x01\x00\x00\x00" + struct.pack("<dd", x, y)


ROWS = [
    {"id": 1, "g": point(1, 2), "h": point(10, 20), "s": {"z": point(3, 4)}, "a": [point(5, 6), None]},
    {"id": 2, "g": None, "h": None, "s": None, "a": None},
]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table.create(tmp_path / "t", SCHEMA)
    made.append(pa.Table.from_pylist(ROWS, PLAIN))
    return made


def logical_types(table: Table, path: Path) -> dict[str, str]:
    (name,) = table.snapshot().files()["path"].to_pylist()
    schema = pq.read_metadata(path / "t" / name).schema
    return {schema.column(i).path: str(schema.column(i).logical_type) for i in range(len(schema))}


def test_a_table_and_its_files_have_the_same_columns(table: Table, tmp_path: Path) -> None:
    assert table.snapshot().protocol.reader_features == frozenset({"geospatial"})
    assert logical_types(table, tmp_path) == {
        "id": "None",
        "g": "Geometry(crs=)",
        "h": "Geography(crs=, algorithm=spherical)",
        "s.z": "Geometry(crs=EPSG:3857)",
        "a.list.element": "Geometry(crs=SRID:0)",
    }
    (stats,) = table.snapshot().files()["stats"].to_pylist()
    assert '"nullCount":{"id":0,"g":1,"h":1,"s":{"z":1},"a":1}' in stats and '"maxValues":{"id":2}' in stats
    rows = table.to_arrow()
    assert rows.to_pylist() == ROWS and rows.schema.field("g").metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert table.check(deep=True, strict=True) == []


def test_rows_that_arrow_marks_make_the_same_table(table: Table, tmp_path: Path) -> None:
    other = Table(tmp_path / "other")
    other.append(table.to_arrow())
    assert other.snapshot().schema == SCHEMA
    table.append(other.to_arrow())
    table.update({"id": "3"}, "id = 2")
    table.delete("g IS NULL AND id = 3")
    table.optimize()
    assert table.to_arrow().to_pylist() == [ROWS[0], ROWS[0]]
    assert (
        logical_types(table, tmp_path)["h"] == "Geography(crs=, algorithm=spherical)"
        and table.check(deep=True, strict=True) == []
    )


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [("g", b"POINT(1 2)", "byte order"), ("g", point(1, 2)[:-1], "too early"), ("h", point(200, 0), "longitude")],
)
def test_bytes_that_are_no_geometry_are_refused(table: Table, column: str, value: bytes, why: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"column '{column}'.*no geometry in Well-Known Binary.*{why}"):
        table.append(pa.table({"id": [3], column: [value]}))
    assert table.version() == 1


@pytest.mark.parametrize(
    "text", ["g = X'00'", "g IN (X'00')", "g <=> NULL", "cast(g AS string) = 'x'", "length(g) > 1", "g > h", "g = 'x'"]
)
def test_geometries_are_not_compared(table: Table, text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        table.to_arrow(filter=text)
    assert error.value.code == "DATATYPE_MISMATCH"


def test_predicates_neither(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="only IS NULL") as error:
        table.to_arrow(filter=Comparison("=", Column(("g",)), Literal(point(1, 2), PrimitiveType("binary"))))
    assert error.value.code == "DATATYPE_MISMATCH"
    assert table.to_arrow(filter=IsNull(Column(("g",))))["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("DELTA_INVALID_PARTITION_COLUMN_TYPE", {"partition_by": ["g"]}),
        ("DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", {"cluster_by": ["g"]}),
        ("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE", {"properties": {"delta.enableIcebergCompatV2": "true"}}),
        ("DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE", {"properties": {"delta.enableIcebergCompatV3": "true"}}),
    ],
)
def test_impossible_uses_of_a_geometry_are_refused(tmp_path: Path, code: str, arguments: dict[str, object]) -> None:
    with pytest.raises(TahoeError) as error:
        Table.create(tmp_path / "t", StructType(SCHEMA.fields[:2]), **arguments)
    assert error.value.code == code and not (tmp_path / "t" / "_delta_log").exists()


def test_a_geometry_has_no_default(tmp_path: Path) -> None:
    column = StructField("g", GEOMETRY, True, {"CURRENT_DEFAULT": "NULL"})
    with pytest.raises(InvalidRequest) as error:
        Table.create(
            tmp_path / "t", StructType((SCHEMA.fields[0], column)), properties={"delta.feature.allowColumnDefaults": "supported"}
        )
    assert error.value.code == "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES"


def test_a_table_that_is_there_is_asked_first_and_keeps_the_name_that_it_has(tmp_path: Path) -> None:
    for name in ("geospatial", "geospatial-dev"):
        table = Table(tmp_path / name)
        table.append(pa.table({"id": [1]}))
        with pytest.raises(InvalidRequest, match=r"'delta.feature.geospatial' = 'supported'"):
            table.add_columns(StructType((SCHEMA.fields[1],)))
        table.add_feature(name)
        table.add_columns(StructType((SCHEMA.fields[1],)))
        table.append(pa.table({"id": [2], "g": [point(1, 2)]}))
        assert table.snapshot().protocol.reader_features == frozenset({name}) and table.check(deep=True, strict=True) == []


def test_the_feature_goes_after_its_columns(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", StructType(SCHEMA.fields[:2]), properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(InvalidRequest, match="geometry/geography types: g and") as error:
        table.drop_feature("geospatial")
    assert error.value.code == "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE"
    assert "must be dropped first" in str(table.drop_feature("geospatial", dry_run=True).obstacle)
    table.drop_columns(["g"])
    table.drop_feature("geospatial")
    assert "geospatial" not in table.snapshot().config.features
