"""Statistics of a file: the values collected from rows, truncation and rounding, and the JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.protocol.statistics.bounds import truncate_max, truncate_min
from tahoe.protocol.statistics.collect import (
    FileStatistics,
    indexed_columns,
    statistics_of_table,
    stats_arrow_type,
    string_prefix_length,
)
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import ArrayType, DecimalType, MapType, PrimitiveType, StructField, StructType

LAST = "\U0010ffff"


def statistics(**columns: Any) -> FileStatistics:
    data = pa.table(columns)
    return statistics_of_table(data, from_arrow_schema(data.schema))


def bounds(values: pa.Array) -> tuple[Any, Any]:
    actual = statistics(x=values)
    return actual.min_values.get("x"), actual.max_values.get("x")


def test_the_json_has_the_layout_and_spelling_of_the_reference() -> None:
    actual = statistics(
        i=pa.array([3, None, -1], pa.int32()),
        x=[0.5, 1.5, None],
        dec=pa.array([Decimal("1.10"), None, Decimal("-12345678901234567890.12")], pa.decimal128(38, 2)),
        s=["b\n", "a", None],
        d=[date(2020, 1, 2), date(1, 1, 1), None],
        t=pa.array([datetime(2020, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        n=pa.array([datetime(2020, 1, 1, 0, 0, 0, 123_000)] * 3, pa.timestamp("us")),
        o=[True, None, False],
        st=pa.array([{"x": 1, "y": [1]}, None, {"x": None, "y": None}]),
    )
    assert actual.to_json() == (
        '{"numRecords":3,'
        '"minValues":{"i":-1,"x":0.5,"dec":-12345678901234567890.12,"s":"a","d":"0001-01-01",'
        '"t":"2020-01-01T00:00:00.123Z","n":"2020-01-01T00:00:00.123","st":{"x":1}},'
        '"maxValues":{"i":3,"x":1.5,"dec":1.10,"s":"b\\n","d":"2020-01-02",'
        '"t":"2020-01-01T00:00:00.124Z","n":"2020-01-01T00:00:00.123","st":{"x":1}},'
        '"nullCount":{"i":1,"x":1,"dec":1,"s":1,"d":1,"t":0,"n":0,"o":1,"st":{"x":2,"y":2}}}'
    )
    assert json.loads(actual.to_json())["numRecords"] == 3


def test_reading_the_json_back_gives_the_same_statistics() -> None:
    actual = statistics(dec=pa.array([Decimal("12345678901234567890.12")], pa.decimal128(38, 2)), s=["é😀"], x=[0.1])
    read_back = FileStatistics.from_json(actual.to_json())
    assert read_back.to_json() == actual.to_json()
    assert read_back.max_values["dec"] == Decimal("12345678901234567890.12")


def test_wide_bounds_are_said_and_tight_ones_go_without_saying() -> None:
    assert '"tightBounds":false' in statistics(x=[1]).widened().to_json()
    assert "tightBounds" not in statistics(x=[1]).to_json()
    assert not FileStatistics.from_json('{"numRecords":1,"tightBounds":false}').tight_bounds
    assert FileStatistics.from_json('{"numRecords":1}').tight_bounds


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"numRecords":"x"}', '{"numRecords":null}', "[" * 100_000])
def test_malformed_json_is_a_corrupt_table(text: str) -> None:
    with pytest.raises(CorruptTable, match="statistics of a file are malformed"):
        FileStatistics.from_json(text)


def test_nan_hides_the_greatest_value_and_leaves_the_least() -> None:
    assert bounds(pa.array([1.0, math.nan])) == (1.0, None)
    assert bounds(pa.array([math.nan, None])) == (None, None)
    assert bounds(pa.array([1.0, math.nan], pa.float32())) == (1.0, None)


def test_infinity_is_no_json_and_left_out() -> None:
    assert bounds(pa.array([-math.inf, 1.0])) == (None, 1.0)
    assert bounds(pa.array([1.0, math.inf])) == (1.0, None)


def test_zeros_are_written_so_that_either_zero_lies_between_the_bounds() -> None:
    def signs(values: list[float]) -> list[float]:
        return [math.copysign(1, bound) for bound in bounds(pa.array(values))]

    assert signs([0.0, -0.0]) == [-1, 1]
    assert signs([-0.0]) == [-1, 1]
    assert signs([0.0]) == [1, 1]


def test_a_float_is_written_with_the_digits_of_its_double() -> None:
    assert bounds(pa.array([0.1], pa.float32())) == (0.10000000149011612, 0.10000000149011612)


@pytest.mark.parametrize(
    ("microseconds", "least", "greatest"),
    [
        (0, "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.000"),
        (1, "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.001"),
        (-1, "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000"),
        (-1000, "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999", None),
        (2**62, None, None),
    ],
)
def test_timestamps_are_rounded_outwards_to_milliseconds(microseconds: int, least: str | None, greatest: str | None) -> None:
    assert bounds(pa.array([microseconds], pa.timestamp("us"))) == (least, greatest)
    zoned = (least and least + "Z", greatest and greatest + "Z")
    assert bounds(pa.array([microseconds], pa.timestamp("us", "UTC"))) == zoned


def test_a_date_that_python_does_not_know_has_no_bounds() -> None:
    assert bounds(pa.array([10_000_000], pa.date32())) == (None, None)


def test_only_null_counts_are_kept_for_types_without_an_order() -> None:
    actual = statistics(
        o=[True, None], b=[b"x", None], list=[[1], None], map=pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32()))
    )
    assert actual.min_values == actual.max_values == {}
    assert actual.null_count == {"o": 1, "b": 1, "list": 1, "map": 1}


def test_columns_that_are_all_null_or_missing_have_no_bounds() -> None:
    schema = StructType((StructField("x", PrimitiveType("integer")), StructField("gone", PrimitiveType("string"))))
    actual = statistics_of_table(pa.table({"x": pa.array([None, None], pa.int32())}), schema)
    assert actual.to_json() == '{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{"x":2,"gone":2}}'


def test_an_empty_file_has_counts_of_zero() -> None:
    assert (
        statistics(x=pa.array([], pa.int64())).to_json() == '{"numRecords":0,"minValues":{},"maxValues":{},"nullCount":{"x":0}}'
    )


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_texts_may_be_stored_in_any_way(kind: pa.DataType) -> None:
    values = pa.array(["b", "a", None])
    stored = values.dictionary_encode() if pa.types.is_dictionary(kind) else values.cast(kind)
    schema = StructType((StructField("x", PrimitiveType("string")),))
    actual = statistics_of_table(pa.table({"x": stored}), schema)
    assert (actual.min_values, actual.max_values, actual.null_count) == ({"x": "a"}, {"x": "b"}, {"x": 1})


def test_statistics_carry_physical_names() -> None:
    inner = StructField("y", PrimitiveType("integer"), metadata={"delta.columnMapping.physicalName": "col-2"})
    outer = StructField("x", StructType((inner,)), metadata={"delta.columnMapping.physicalName": "col-1"})
    data = pa.table({"col-1": pa.array([{"col-2": 5}])})
    actual = statistics_of_table(data, StructType((outer,)))
    assert actual.min_values == {"col-1": {"col-2": 5}}


@pytest.mark.parametrize(
    ("text", "greatest"),
    [
        ("a" * 32, "a" * 32),
        ("a" * 33, "a" * 32 + "\x7f"),
        ("a" * 32 + "\x7f", "a" * 32 + LAST),
        ("a" * 32 + "é", "a" * 32 + LAST),
        ("a" * 31 + "😀b", "a" * 31 + "😀" + "\x7f"),
        ("a" * 31 + "😀😀", "a" * 31 + "😀" + LAST),
        ("a" * 32 + LAST + "b", "a" * 32 + LAST + "\x7f"),
        ("a" * 32 + LAST, "a" * 32 + LAST),
        (LAST * 16, LAST * 16),
        (LAST * 32, LAST * 32),
        (LAST * 40, None),
    ],
)
def test_a_greatest_text_is_cut_and_made_greater(text: str, greatest: str | None) -> None:
    assert truncate_max(text, 32) == greatest


@given(
    st.text(st.sampled_from(["a", "\x7e", "\x7f", "é", "\ud7ff", "\ue000", "\uffff", "😀", LAST]), max_size=90),
    st.integers(1, 40),
)
def test_bounds_of_texts_enclose_the_text_by_its_bytes(text: str, length: int) -> None:
    least, greatest = truncate_min(text, length), truncate_max(text, length)
    assert least is not None
    assert least.encode() <= text.encode()
    assert greatest is None or text.encode() <= greatest.encode()
    assert greatest is not None or LAST in text


def test_a_prefix_of_no_characters_means_no_bounds() -> None:
    assert truncate_min("a", 0) is None
    assert truncate_max("a", 0) is None
    assert string_prefix_length({"delta.dataSkippingStringPrefixLength": "5"}) == 5
    assert string_prefix_length({}) == 32


WIDE = StructType(
    (
        StructField("p", PrimitiveType("string")),
        StructField("a", PrimitiveType("integer")),
        StructField("st", StructType((StructField("x", PrimitiveType("integer")), StructField("y.z", PrimitiveType("string"))))),
        StructField("list", ArrayType(PrimitiveType("integer"))),
        *(StructField(f"c{i}", PrimitiveType("integer")) for i in range(40)),
    )
)


def names(configuration: dict[str, str]) -> list[str]:
    return ["/".join(column.name for column in leaf) for leaf in indexed_columns(WIDE, ["P"], configuration)]


def test_the_first_32_leaves_without_partition_columns_are_indexed_by_default() -> None:
    actual = names({})
    assert len(actual) == 32
    assert actual[:5] == ["a", "st/x", "st/y.z", "list", "c0"]


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"delta.dataSkippingNumIndexedCols": "2"}, ["a", "st/x"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingStatsColumns": "c1, A"}, ["a", "c1"]),
        ({"delta.dataSkippingStatsColumns": "st"}, ["st/x", "st/y.z"]),
        ({"delta.dataSkippingStatsColumns": "st.`y.z`,p,gone"}, ["st/y.z"]),
        ({"delta.dataSkippingStatsColumns": "c0", "delta.dataSkippingNumIndexedCols": "5"}, ["c0"]),
    ],
)
def test_properties_choose_the_columns(configuration: dict[str, str], expected: list[str]) -> None:
    assert names(configuration) == expected


def test_minus_one_indexes_all_leaves() -> None:
    assert len(names({"delta.dataSkippingNumIndexedCols": "-1"})) == 44


def test_a_property_that_is_no_number_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"delta.dataSkippingNumIndexedCols = 'many' is no whole number"):
        names({"delta.dataSkippingNumIndexedCols": "many"})


def test_a_malformed_list_of_columns_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no list of columns"):
        names({"delta.dataSkippingStatsColumns": "a..b"})


def test_the_arrow_type_mirrors_the_columns() -> None:
    schema = StructType(
        (
            StructField("dec", DecimalType(10, 2)),
            StructField("o", PrimitiveType("boolean")),
            StructField("m", MapType(PrimitiveType("string"), PrimitiveType("integer"))),
            StructField("st", StructType((StructField("t", PrimitiveType("timestamp")),))),
        )
    )
    within = pa.struct({"dec": pa.decimal128(10, 2), "st": pa.struct({"t": pa.timestamp("us", "UTC")})})
    counts = pa.struct({"dec": pa.int64(), "o": pa.int64(), "m": pa.int64(), "st": pa.struct({"t": pa.int64()})})
    assert stats_arrow_type(schema) == pa.struct(
        {"numRecords": pa.int64(), "minValues": within, "maxValues": within, "nullCount": counts, "tightBounds": pa.bool_()}
    )
    assert stats_arrow_type(schema, []) == pa.struct({"numRecords": pa.int64(), "tightBounds": pa.bool_()})
