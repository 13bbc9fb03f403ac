"""Statistics from Parquet footers: the values taken, and those that are not trusted."""

from __future__ import annotations

import io
import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.protocol.statistics.collect import FileStatistics, statistics_of_footer, statistics_of_table
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType


def file_of(data: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(data, sink, **options)
    return sink.getvalue()


def footer_of(data: pa.Table, **options: Any) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(file_of(data, **options)))


def from_footer(schema: StructType | None = None, column_mapping_mode: str = "none", **columns: Any) -> FileStatistics:
    data = pa.table(columns)
    return statistics_of_footer(
        footer_of(data), schema or from_arrow_schema(data.schema), column_mapping_mode=column_mapping_mode
    )


def as_type(data_type: DataType, values: pa.Array) -> tuple[Any, Any]:
    """Bounds of a column `x` that now has this type in the table."""
    actual = from_footer(StructType((StructField("x", data_type),)), x=values)
    return actual.min_values.get("x"), actual.max_values.get("x")


@pytest.mark.parametrize("as_integers", [True, False], ids=["decimals-as-integers", "decimals-as-bytes"])
def test_a_footer_has_the_statistics_of_its_rows(as_integers: bool) -> None:
    data = pa.table(
        {
            "i": pa.array([3, None, -1], pa.int8()),
            "l": [2**62, None, -(2**62)],
            "small": pa.array([Decimal("1.10"), None, Decimal("-1.10")], pa.decimal128(5, 2)),
            "middle": pa.array([Decimal("1.10"), None, Decimal("-1.10")], pa.decimal128(15, 2)),
            "large": pa.array([Decimal("1.10"), None, Decimal("-1.10")], pa.decimal128(38, 2)),
            "s": ["b" * 40, "a" * 40, None],
            "d": [date(2020, 1, 2), date(1960, 1, 1), None],
            "t": pa.array([1, -1, None], pa.timestamp("us", "UTC")),
            "n": pa.array([1, -1, None], pa.timestamp("us")),
            "o": [True, None, False],
            "b": [b"x", None, b"y"],
            "st": pa.array([{"x": 1, "in": {"y": "q"}}, None, {"x": None, "in": None}]),
        }
    )
    schema = from_arrow_schema(data.schema)
    expected = statistics_of_table(data, schema)
    for rows in (1, 2, 3):
        footer = footer_of(data, row_group_size=rows, store_decimal_as_integer=as_integers)
        assert statistics_of_footer(footer, schema) == expected


def test_a_footer_that_leaves_nan_out_gives_no_greatest_float() -> None:
    actual = from_footer(x=[1.0, math.nan, 2.0], y=pa.array([0.0, None, -1.5], pa.float32()), z=[math.nan] * 3)
    assert actual.min_values == {"x": 1.0, "y": -1.5}
    assert actual.max_values == {}
    assert actual.null_count == {"x": 0, "y": 1, "z": 0}


def by_parquet_mr(data: pa.Table, version: str, **numbers: float) -> pq.FileMetaData:
    """The footer as if parquet-mr had written it, with numbers of the same length put in the place of others."""
    content = file_of(data, use_dictionary=False, column_encoding="PLAIN")
    body, footer = (
        content[: -8 - int.from_bytes(content[-8:-4], "little")],
        content[-8 - int.from_bytes(content[-8:-4], "little") :],
    )
    name = b"parquet-cpp-arrow version " + pa.cpp_version.encode()
    footer = footer.replace(name, f"parquet-mr version {version}".encode().ljust(len(name)))
    for old, new in ((12345.5, numbers["greatest"]), (-12345.5, numbers["least"])):
        footer = footer.replace(struct.pack("<d", old), struct.pack("<d", new))
    return pq.read_metadata(io.BytesIO(body + footer))


@pytest.mark.parametrize(
    ("version", "least", "greatest", "expected"),
    [
        ("1.13.1", 1.0, 2.0, ({"x": 1.0}, {"x": 2.0})),
        ("1.17.0", 1.0, math.nan, ({"x": 1.0}, {})),
        ("1.17.0", math.nan, math.nan, ({}, {})),
        ("1.17.0", -0.0, 0.0, ({"x": -0.0}, {"x": 0.0})),
        ("1.17.0", -math.inf, 2.0, ({}, {"x": 2.0})),
        ("1.99.0", 1.0, 2.0, ({"x": 1.0}, {})),  # the behavior of later versions for NaN is unknown
    ],
)
def test_the_greatest_float_counts_where_the_writer_is_known_to_show_nan(
    version: str, least: float, greatest: float, expected: tuple[dict[str, float], dict[str, float]]
) -> None:
    data = pa.table({"x": [12345.5, -12345.5]})
    footer = by_parquet_mr(data, version, least=least, greatest=greatest)
    assert footer.created_by.startswith("parquet-mr")
    actual = statistics_of_footer(footer, from_arrow_schema(data.schema))
    assert (actual.min_values, actual.max_values) == expected


def test_texts_that_the_writer_left_without_bounds_have_none() -> None:
    actual = from_footer(x=["b" * 5_000, "a"], y=["b", "a"])
    assert actual.min_values == {"y": "a"}
    data = pa.table({"x": ["a", "b", "c" * 5_000, "d"]})
    assert statistics_of_footer(footer_of(data, row_group_size=2), from_arrow_schema(data.schema)).min_values == {}


def test_row_groups_that_are_all_null_or_empty_do_not_spoil_the_others() -> None:
    data = pa.table({"x": pa.array([None, None, 5, 7], pa.int32())})
    actual = statistics_of_footer(footer_of(data, row_group_size=2), from_arrow_schema(data.schema))
    assert (actual.min_values, actual.max_values, actual.null_count) == ({"x": 5}, {"x": 7}, {"x": 2})
    empty = from_footer(x=pa.array([], pa.int32()))
    assert (empty.num_records, empty.min_values, empty.null_count) == (0, {}, {"x": 0})


def test_a_footer_without_statistics_gives_the_number_of_rows_alone() -> None:
    data = pa.table({"x": [1, 2]})
    actual = statistics_of_footer(footer_of(data, write_statistics=False), from_arrow_schema(data.schema))
    assert actual == FileStatistics(2)


def test_int96_timestamps_have_no_bounds() -> None:
    data = pa.table({"x": pa.array([1, 2], pa.timestamp("us", "UTC"))})
    actual = statistics_of_footer(footer_of(data, use_deprecated_int96_timestamps=True), from_arrow_schema(data.schema))
    assert (actual.min_values, actual.max_values) == ({}, {})


def test_nulls_of_arrays_and_maps_count_only_when_there_is_none() -> None:
    maps = pa.map_(pa.string(), pa.int32())
    actual = from_footer(full=[[1], [2]], empty=[[1], []], null=[[1], None], map=pa.array([[("k", None)], [("k", 1)]], maps))
    assert actual.null_count == {"full": 0, "map": 0}


def test_columns_that_the_file_does_not_have_count_as_null() -> None:
    schema = StructType((StructField("x", PrimitiveType("long")), StructField("later", PrimitiveType("string"))))
    assert from_footer(schema, x=[1, 2]).null_count == {"x": 0, "later": 2}


def test_names_with_dots_are_not_taken_for_structs() -> None:
    inside = StructType((StructField("b", PrimitiveType("long")),))
    schema = StructType((StructField("a.b", PrimitiveType("long")), StructField("a", inside)))
    actual = from_footer(schema, **{"a.b": [1], "a": pa.array([{"b": 2}])})
    assert actual.min_values == {"a.b": 1, "a": {"b": 2}}


def test_by_id_the_field_id_decides_and_not_the_name() -> None:
    def field(name: str, identifier: int) -> StructField:
        metadata = {"delta.columnMapping.id": identifier, "delta.columnMapping.physicalName": f"col-{identifier}"}
        return StructField(name, PrimitiveType("long"), metadata=metadata)

    stored = pa.schema(
        [
            pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "2"}),
            pa.field("y", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        ]
    )
    footer = footer_of(pa.table({"x": [20], "y": [10]}, schema=stored))
    schema = StructType((field("a", 1), field("b", 2), field("c", 3)))
    actual = statistics_of_footer(footer, schema, column_mapping_mode="id")
    assert actual.min_values == {"col-1": 10, "col-2": 20}
    assert actual.null_count == {"col-1": 0, "col-2": 0, "col-3": 1}
    without_ids = statistics_of_footer(footer_of(pa.table({"col-1": [1]})), schema, column_mapping_mode="id")
    assert without_ids == FileStatistics(1)


def test_by_name_the_physical_name_decides() -> None:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    schema = StructType((StructField("a", PrimitiveType("long"), metadata=metadata),))
    actual = from_footer(schema, "name", **{"a": [1], "col-1": [2]})
    assert actual.min_values == {"col-1": 2}


def test_a_file_with_a_narrower_type_counts_with_the_wider_one() -> None:
    assert as_type(PrimitiveType("long"), pa.array([1, 2], pa.int32())) == (1, 2)
    assert as_type(PrimitiveType("double"), pa.array([1, 2], pa.int32())) == (1, 2)
    assert as_type(DecimalType(12, 2), pa.array([1, 2], pa.int32())) == (1, 2)
    assert as_type(DecimalType(12, 4), pa.array([Decimal("1.25")], pa.decimal128(5, 2))) == (Decimal("1.25"), Decimal("1.25"))
    assert as_type(PrimitiveType("double"), pa.array([0.1], pa.float32())) == (0.10000000149011612, None)
    midnight = "2020-01-01T00:00:00.000"
    assert as_type(PrimitiveType("timestamp_ntz"), pa.array([date(2020, 1, 1)])) == (midnight, midnight)


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (PrimitiveType("string"), pa.array([1])),
        (PrimitiveType("string"), pa.array([b"x"])),
        (PrimitiveType("integer"), pa.array([1.5])),
        (PrimitiveType("long"), pa.array([1], pa.uint64())),
        (PrimitiveType("float"), pa.array([1.5], pa.float64())),
        (PrimitiveType("date"), pa.array([1], pa.int32())),
        (PrimitiveType("timestamp"), pa.array([datetime(2020, 1, 1)], pa.timestamp("us"))),
        (PrimitiveType("timestamp_ntz"), pa.array([1], pa.timestamp("us", "UTC"))),
        (PrimitiveType("timestamp"), pa.array([1], pa.timestamp("ns", "UTC"))),
        (DecimalType(5, 1), pa.array([Decimal("1.25")], pa.decimal128(5, 2))),
    ],
    ids=str,
)
def test_a_file_of_another_type_has_no_bounds(data_type: DataType, values: pa.Array) -> None:
    assert as_type(data_type, values) == (None, None)


@pytest.mark.parametrize("metadata", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}], ids=str)
def test_days_of_the_old_calendar_have_no_bounds(metadata: dict[str, str]) -> None:
    data = pa.table({"d": [date(1500, 1, 1)], "x": [1]}).replace_schema_metadata(metadata)
    assert statistics_of_footer(footer_of(data), from_arrow_schema(data.schema)).min_values == {"x": 1}
    modern = data.replace_schema_metadata({"org.apache.spark.version": "4.0.0"})
    assert statistics_of_footer(footer_of(modern), from_arrow_schema(data.schema)).min_values == {"d": "1500-01-01", "x": 1}


def test_years_that_python_does_not_know_have_no_bounds() -> None:
    actual = from_footer(d=pa.array([10_000_000], pa.date32()), t=pa.array([2**62], pa.timestamp("us", "UTC")), x=[1])
    assert actual.min_values == {"x": 1}
