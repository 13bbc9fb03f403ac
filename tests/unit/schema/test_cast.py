"""Casts that writers and readers share: exact or an error, in every nesting."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tahoe.schema.arrow import from_arrow_type, to_arrow_type
from tahoe.schema.cast import (
    GIVEN,
    READ,
    STORED,
    CannotCast,
    conform,
    find_by_id,
    find_logical,
    find_physical,
    nulls_where_forbidden,
)
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

P = PrimitiveType
MICROS, MICROS_UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


def stored(values, source, target: DataType):
    return conform(pa.array(values, source), target, to_arrow_type(target), GIVEN, ("c",))


def read(values, source, target: DataType):
    return conform(pa.array(values, source), target, to_arrow_type(target), STORED, ("c",))


STORED_VALUES = [
    ([1, None], pa.uint64(), P("byte"), [1, None]),
    ([1, None], pa.int64(), P("double"), [1.0, None]),
    ([2**60 + 1], pa.int64(), P("double"), [float(2**60)]),
    ([2.0, None], pa.float64(), P("integer"), [2, None]),
    ([0.1], pa.float64(), DecimalType(10, 2), [Decimal("0.10")]),
    ([7], pa.int64(), DecimalType(3, 2), [Decimal("7.00")]),
    ([Decimal("1.50")], pa.decimal128(10, 2), DecimalType(5, 1), [Decimal("1.5")]),
    ([Decimal("2.00")], pa.decimal128(10, 2), P("long"), [2]),
    ([Decimal("2.50")], pa.decimal128(10, 2), P("double"), [2.5]),
    ([5], pa.int16(), P("string"), ["5"]),
    ([True], pa.bool_(), P("string"), ["true"]),
    ([date(2020, 1, 2)], pa.date32(), P("string"), ["2020-01-02"]),
    ([b"x"], pa.binary(), P("string"), ["x"]),
    (["x"], pa.large_string(), P("string"), ["x"]),
    (["x"], pa.string_view(), P("string"), ["x"]),
    ([b"ab"], pa.binary(2), P("binary"), [b"ab"]),
    (["a", "a"], pa.dictionary(pa.int8(), pa.string()), P("string"), ["a", "a"]),
    ([None], pa.null(), P("date"), [None]),
    ([date(2020, 1, 2)], pa.date32(), P("timestamp"), [datetime(2020, 1, 2, tzinfo=UTC)]),
    ([date(2020, 1, 2)], pa.date64(), P("date"), [date(2020, 1, 2)]),
    ([datetime(2020, 1, 2)], MICROS, P("timestamp"), [datetime(2020, 1, 2, tzinfo=UTC)]),
    ([datetime(2020, 1, 2, tzinfo=UTC)], pa.timestamp("ms", "Asia/Tokyo"), P("timestamp_ntz"), [datetime(2020, 1, 2)]),
    ([datetime(2020, 1, 2), None], pa.timestamp("s"), P("date"), [date(2020, 1, 2), None]),
    ([1_000], pa.timestamp("ns"), P("timestamp_ntz"), [datetime(1970, 1, 1, 0, 0, 0, 1)]),
    ([[1], None], pa.large_list(pa.int8()), ArrayType(P("long")), [[1], None]),
    ([[1, 2]], pa.list_(pa.int8(), 2), ArrayType(P("long")), [[1, 2]]),
]


@pytest.mark.parametrize(("values", "source", "target", "expected"), STORED_VALUES)
def test_values_are_stored_as_the_tables_type(values, source, target, expected):
    actual = stored(values, source, target)
    assert actual.type == to_arrow_type(target)
    assert actual.to_pylist() == expected
    actual.validate(full=True)


REFUSED = [
    ([300], pa.int64(), P("byte")),
    ([1.5], pa.float64(), P("integer")),
    ([float("nan")], pa.float64(), P("long")),
    ([100], pa.int64(), DecimalType(3, 2)),
    ([Decimal("1.25")], pa.decimal128(10, 2), DecimalType(5, 1)),
    ([Decimal("2.50")], pa.decimal128(10, 2), P("long")),
    ([1e300], pa.float64(), DecimalType(10, 2)),
    ([1.5], pa.float64(), P("string")),
    ([datetime(2020, 1, 2)], MICROS, P("string")),
    ([b"\xff"], pa.binary(), P("string")),
    ([1], pa.timestamp("ns"), P("timestamp_ntz")),
    ([datetime(2020, 1, 2, 3)], MICROS, P("date")),
    ([2**62], pa.timestamp("s"), P("timestamp_ntz")),
    ([[1]], pa.list_(pa.int64()), P("long")),
    ([1], pa.int64(), StructType((StructField("x", P("long")),))),
]


@pytest.mark.parametrize(("values", "source", "target"), REFUSED)
def test_values_that_would_change_are_refused(values, source, target):
    with pytest.raises(CannotCast) as raised:
        stored(values, source, target)
    assert raised.value.path == ("c",)


READ_VALUES = [
    ([1], pa.int32(), P("long"), [1]),
    ([200], pa.uint8(), P("short"), [200]),
    ([1], pa.int64(), P("byte"), [1]),
    ([1.5], pa.float32(), P("double"), [1.5]),
    ([3], pa.int16(), P("double"), [3.0]),
    ([3], pa.int32(), DecimalType(10, 0), [Decimal(3)]),
    ([3], pa.int64(), DecimalType(20, 0), [Decimal(3)]),
    ([3], pa.int32(), DecimalType(12, 2), [Decimal("3.00")]),
    ([Decimal("1.5")], pa.decimal128(5, 1), DecimalType(10, 3), [Decimal("1.500")]),
    ([Decimal("1.5")], pa.decimal256(50, 1), DecimalType(10, 1), [Decimal("1.5")]),
    ([date(2020, 1, 2)], pa.date32(), P("timestamp_ntz"), [datetime(2020, 1, 2)]),
    ([1500], pa.timestamp("ns"), P("timestamp"), [datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    ([-1], pa.timestamp("ns", "UTC"), P("timestamp"), [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]),
    ([1], pa.timestamp("ms", "UTC"), P("timestamp_ntz"), [datetime(1970, 1, 1, 0, 0, 0, 1000)]),
    ([b"text"], pa.binary(), P("string"), ["text"]),
    (["text"], pa.string(), P("binary"), [b"text"]),
    (["a"], pa.dictionary(pa.int8(), pa.string()), P("string"), ["a"]),
]


@pytest.mark.parametrize(("values", "source", "target", "expected"), READ_VALUES)
def test_other_encodings_and_narrower_types_are_read(values, source, target, expected):
    assert read(values, source, target).to_pylist() == expected


UNREADABLE = [
    ([1.5], pa.float64(), P("float")),
    ([1], pa.int64(), P("double")),
    ([2**40], pa.int64(), P("integer")),
    ([1], pa.int64(), P("string")),
    ([date(2020, 1, 2)], pa.date32(), P("timestamp")),
    ([datetime(2020, 1, 2)], MICROS, P("date")),
    ([b"\xff"], pa.binary(), P("string")),
    ([True], pa.bool_(), P("integer")),
    ([1], pa.int64(), P("timestamp")),
]


@pytest.mark.parametrize(("values", "source", "target"), UNREADABLE)
def test_other_types_in_a_file_are_refused(values, source, target):
    with pytest.raises(CannotCast):
        read(values, source, target)


NESTED = StructType(
    (
        StructField("m", MapType(P("string"), StructType((StructField("x", P("long")), StructField("new", P("date")))))),
        StructField("a", ArrayType(ArrayType(P("double")))),
    )
)
SOURCE = pa.struct(
    [
        pa.field("A", pa.list_(pa.large_list(pa.float32()))),
        pa.field("m", pa.map_(pa.large_string(), pa.struct([pa.field("gone", pa.int8()), pa.field("X", pa.int32())]))),
    ]
)
ROWS = [
    {"A": [[1.0], None, []], "m": [("k", {"gone": 1, "X": 2}), ("l", None)]},
    None,
    {"A": None, "m": None},
    {"A": [], "m": [("n", {"gone": None, "X": None})]},
]
EXPECTED = [
    {"m": [("k", {"x": 2, "new": None}), ("l", None)], "a": [[1.0], None, []]},
    None,
    {"m": None, "a": None},
    {"m": [("n", {"x": None, "new": None})], "a": []},
]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("rule", [GIVEN, READ])
def test_nested_values_keep_their_shape_also_in_slices(start, rule):
    array = pa.array(ROWS, SOURCE).slice(start)
    target = to_arrow_type(NESTED)
    actual = conform(array, NESTED, target, rule)
    actual.validate(full=True)
    assert actual.type == target
    assert actual.to_pylist() == EXPECTED[start:]
    assert from_arrow_type(actual.type) == NESTED


def test_an_error_inside_a_collection_names_the_path_to_it():
    with pytest.raises(CannotCast) as raised:
        stored(
            [{"a": [[1, 300]]}],
            pa.struct({"a": pa.list_(pa.list_(pa.int64()))}),
            StructType((StructField("a", ArrayType(ArrayType(P("byte")))),)),
        )
    assert raised.value.path == ("c", "a", "element", "element")


def test_fields_are_found_by_name_by_physical_name_or_by_id():
    struct = pa.struct(
        [pa.field("A", pa.int8(), metadata={"PARQUET:field_id": "7"}), pa.field("col-1", pa.int8()), pa.field("a", pa.int8())]
    )
    column = StructField("a", P("byte"), metadata={"delta.columnMapping.physicalName": "COL-1", "delta.columnMapping.id": 7})
    assert find_logical(struct, column) == 2
    assert find_physical(struct, column) == 1
    assert find_by_id(struct, column) == 0
    assert find_logical(pa.struct({"A": pa.int8()}), column) == 0
    assert find_by_id(struct, StructField("a", P("byte"), metadata={"delta.columnMapping.id": 8})) is None


REQUIRED = StructType(
    (
        StructField("s", StructType((StructField("x", P("long"), nullable=False),))),
        StructField("a", ArrayType(P("long"), contains_null=False)),
        StructField("m", MapType(P("string"), P("long"), value_contains_null=False)),
    )
)


@pytest.mark.parametrize(
    ("row", "paths"),
    [
        ({"s": None, "a": None, "m": None}, []),
        ({"s": {"x": 1}, "a": [1], "m": [("k", 1)]}, []),
        ({"s": {"x": None}, "a": [], "m": []}, [("c", "s", "x")]),
        ({"s": None, "a": [1, None], "m": [("k", None)]}, [("c", "a", "element"), ("c", "m", "value")]),
    ],
)
def test_nulls_are_found_where_they_must_not_be_and_not_inside_null_structs(row, paths):
    kind = pa.struct({"s": pa.struct({"x": pa.int64()}), "a": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())})
    for rows in ([row], [None, row]):
        array = pa.array(rows, kind).slice(len(rows) - 1)
        assert list(nulls_where_forbidden(array, REQUIRED, ("c",))) == paths
