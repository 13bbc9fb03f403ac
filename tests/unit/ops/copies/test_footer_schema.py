"""The columns of a table by the footers of its files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.copies.footer_schema import footer_schema, merged
from tahoe.schema.types import StructType


def footer(schema: pa.Schema, **options) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


def schema_of(*columns, **options) -> StructType:
    return footer_schema(footer(pa.schema(columns), **options), "f.parquet")


def test_every_column_is_nullable_at_every_depth():
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    actual = schema_of(
        pa.field("s", inner, nullable=False), pa.field("l", pa.list_(pa.field("element", pa.int8(), nullable=False)))
    )
    assert str(actual) == "struct<s:struct<x:integer>,l:array<byte>>"
    assert all(column.nullable for column in actual) and actual.field("s").data_type.fields[0].nullable
    assert actual.field("l").data_type.contains_null


def test_timestamps_of_int96_are_instants():
    nested = pa.struct([pa.field("at", pa.timestamp("ns"))])
    actual = schema_of(("t", pa.timestamp("ns")), ("s", nested), ("n", pa.int64()), use_deprecated_int96_timestamps=True)
    assert str(actual) == "struct<t:timestamp,s:struct<at:timestamp>,n:long>"


def test_timestamps_are_of_the_kind_that_the_file_says():
    assert str(schema_of(("a", pa.timestamp("us")), ("b", pa.timestamp("ms", "UTC")))) == "struct<a:timestamp_ntz,b:timestamp>"


def test_nanoseconds_and_unknown_types_are_refused_by_name():
    with pytest.raises(Unsupported, match=r"Column t of f\.parquet"):
        schema_of(("t", pa.timestamp("ns")), version="2.6")
    with pytest.raises(Unsupported, match=r"f\.parquet"):
        schema_of(("t", pa.time64("us")))


def test_the_schema_that_spark_recorded_comes_first():
    note = '{"type":"struct","fields":[{"name":"n","type":"short","nullable":false,"metadata":{"comment":"c","own":"x"}}]}'
    schema = pa.schema([("n", pa.int32())], {"org.apache.spark.sql.parquet.row.metadata": note})
    (column,) = footer_schema(footer(schema), "f")
    assert (str(column.data_type), column.nullable, dict(column.metadata)) == ("short", True, {"comment": "c"})
    schema = pa.schema([("n", pa.int32())], {"org.apache.spark.sql.parquet.row.metadata": '{"type":"struct","fields":[{}]}'})
    assert str(footer_schema(footer(schema), "f")) == "struct<n:integer>"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *((kind, "DELTA_UNSUPPORTED_DATA_TYPES") for kind in ("interval day to second", "time(6)")),
        *(
            (kind, "DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES")
            for kind in ("geometry(OGC:CRS84)", "geography(OGC:CRS84, SPHERICAL)")
        ),
    ],
)
def test_spark_types_that_delta_lacks_are_refused_and_not_read_as_their_storage_type(kind, code):
    note = f'{{"type":"struct","fields":[{{"name":"x","type":"{kind}","nullable":true,"metadata":{{}}}}]}}'
    schema = pa.schema([("x", pa.int64())], {"org.apache.spark.sql.parquet.row.metadata": note})
    with pytest.raises(Unsupported, match="'x'") as error:
        footer_schema(footer(schema), "f")
    assert error.value.code == code


class _Wkb(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> _Wkb:
        return cls()


def test_geometries_are_refused_and_not_read_as_bytes():
    pa.register_extension_type(_Wkb())
    try:
        written = footer(pa.schema([("g", _Wkb())]))
    finally:
        pa.unregister_extension_type("geoarrow.wkb")
    assert "Geometry" in str(written.schema.column(0).logical_type)
    with pytest.raises(Unsupported, match="geometries or geographies, the type of column 'g' of f"):
        footer_schema(written, "f")


def test_columns_of_all_files_come_together():
    first = schema_of(("a", pa.int16()), ("s", pa.struct([("x", pa.int32())])), ("v", pa.null()))
    two = schema_of(("A", pa.int32()), ("s", pa.struct([("y", pa.string())])), ("b", pa.date32()), ("v", pa.string()))
    assert str(merged(first, two, "f")) == "struct<a:integer,s:struct<x:integer,y:string>,v:string,b:date>"


@pytest.mark.parametrize("other", [pa.int64(), pa.string(), pa.list_(pa.int32())])
def test_types_that_no_reading_serves_are_refused(other):
    with pytest.raises(InvalidRequest, match=r"column s\.x") as caught:
        merged(schema_of(("s", pa.struct([("x", pa.int32())]))), schema_of(("s", pa.struct([("x", other)]))), "f")
    assert caught.value.code == "DELTA_FAILED_TO_MERGE_FIELDS"
