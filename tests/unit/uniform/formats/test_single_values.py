"""Bounds are never narrower than the statistics allow, and have the bytes of Iceberg's appendix D."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.types import DecimalType as TheirDecimal
from pyiceberg.types import DoubleType, FloatType, LongType, StringType, TimestampType, TimestamptzType

from tahoe.base.exceptions import Unsupported
from tahoe.schema.types import DecimalType, PrimitiveType
from tahoe.uniform.formats.single_values import codec_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(value: datetime) -> int:
    return (value.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def parsed(value: object) -> object:
    """Parse a value as statistics in the log are parsed."""
    return json.loads(json.dumps(value), parse_float=str)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_a_timestamp_is_within_the_bounds_from_its_truncated_statistic(value):
    truncated = f"{value:%H:%M:%S}.{value.microsecond // 1000:03d}"
    text = f"{value.year:04d}-{value.month:02d}-{value.day:02d}T{truncated}"
    for name, suffix, their_type in (("timestamp", "Z", TimestamptzType()), ("timestamp_ntz", "", TimestampType())):
        codec = codec_of(PrimitiveType(name))
        low, high = codec.lower(text + suffix), codec.upper(text + suffix)
        assert from_bytes(their_type, low) <= micros(value) <= from_bytes(their_type, high)
        assert from_bytes(their_type, high) - from_bytes(their_type, low) == 999


def test_timestamps_with_an_offset_are_brought_to_utc():
    codec = codec_of(PrimitiveType("timestamp"))
    assert codec.lower("2020-01-01T00:00:00.000-08:00") == struct.pack("<q", micros(datetime(2020, 1, 1, 8)))


@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("timestamp", "2020-01-01T00:00:00.000"),  # without a zone the time is ambiguous
        ("timestamp_ntz", "2020-01-01T00:00:00.000Z"),
        ("timestamp", "+12020-01-01T00:00:00.000Z"),
        ("timestamp", 17),
        ("date", "+12020-01-01"),
        ("date", "yesterday"),
        ("integer", "seven"),
        ("integer", 2**31),
        ("long", 2**63),
        ("integer", True),
        ("integer", 1.5),
        ("double", "NaN"),
        ("double", math.nan),
        ("float", True),
        ("float", 1e300),
        ("boolean", 1),
        ("string", 5),
        ("binary", "abc"),
        ("long", {"nested": 1}),
    ],
)
def test_a_statistic_without_a_sound_bound_gives_none(name, statistic):
    codec = codec_of(PrimitiveType(name))
    assert codec.lower(statistic) is None
    assert codec.upper(statistic) is None


@given(st.floats(allow_nan=False))
def test_doubles_are_bounds_of_themselves_and_zeros_are_widened(value):
    codec = codec_of(PrimitiveType("double"))
    text = parsed(value) if math.isfinite(value) else str(value).replace("inf", "Infinity")
    low, high = from_bytes(DoubleType(), codec.lower(text)), from_bytes(DoubleType(), codec.upper(text))
    assert low == value == high
    if value == 0:
        assert math.copysign(1, low) == -1
        assert math.copysign(1, high) == 1


@given(st.floats(width=32, allow_nan=False))
def test_floats_keep_their_32_bits(value):
    codec = codec_of(PrimitiveType("float"))
    assert from_bytes(FloatType(), codec.lower(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_have_bounds(value):
    codec = codec_of(PrimitiveType("long"))
    assert codec.lower(parsed(value)) == codec.upper(parsed(value)) == to_bytes(LongType(), value)


@given(st.text())
def test_strings_are_utf_8(value):
    assert codec_of(PrimitiveType("string")).upper(value) == to_bytes(StringType(), value)


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18))
def test_decimals_are_exact(unscaled, scale):
    value = Decimal(unscaled).scaleb(-scale)
    codec = codec_of(DecimalType(18, scale))
    for text in (str(value), int(value) if value == int(value) else str(value)):
        assert (
            codec.lower(text) == codec.upper(text) == to_bytes(TheirDecimal(18, scale), value.quantize(Decimal(1).scaleb(-scale)))
        )


def test_decimals_with_more_digits_than_the_column_are_rounded_outward():
    codec = codec_of(DecimalType(5, 1))
    assert codec.lower("-1.25") == to_bytes(TheirDecimal(5, 1), Decimal("-1.3"))
    assert codec.upper("-1.25") == to_bytes(TheirDecimal(5, 1), Decimal("-1.2"))


@pytest.mark.parametrize("text", ["0.25", "-0.25", "-12.5", "7", "-7", "1e1", "1.5E1", "+1.5", ".5", "00.10", "12.000"])
def test_decimals_in_any_spelling_are_those_of_python(text):
    codec = codec_of(DecimalType(12, 2))
    expected = int(Decimal(text).scaleb(2))
    assert int.from_bytes(codec.lower(text), "big", signed=True) == expected
    assert int.from_bytes(codec.upper(text), "big", signed=True) == expected


def test_dates_count_days():
    codec = codec_of(PrimitiveType("date"))
    assert codec.lower("1969-12-31") == struct.pack("<i", -1)
    assert codec.upper(date(2020, 1, 1)) == struct.pack("<i", 18262)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (PrimitiveType("string"), "späß %/"),
        (PrimitiveType("binary"), b"\0\xff"),
        (PrimitiveType("boolean"), False),
        (PrimitiveType("byte"), -128),
        (PrimitiveType("long"), -(2**63)),
        (PrimitiveType("float"), -0.5),
        (PrimitiveType("double"), 1e300),
        (PrimitiveType("date"), date(1, 1, 1)),
        (PrimitiveType("timestamp"), datetime(1960, 1, 1, 1, 2, 3, 456789, tzinfo=UTC)),
        (PrimitiveType("timestamp_ntz"), datetime(9999, 1, 1, 1, 2, 3, 456789)),
        (DecimalType(38, 10), Decimal("-1234567890123456789012345678.0123456789")),
        (DecimalType(4, 0), Decimal("9999")),
    ],
)
def test_a_partition_value_is_read_back_as_it_was_written(data_type, value):
    codec = codec_of(data_type)
    value_in_tuple = codec.from_python(value)
    data = codec.encode(value_in_tuple)
    assert codec.decode(b"\x07" + data + b"\x07", 1) == (value_in_tuple, len(data) + 1)


@pytest.mark.parametrize("name", ["void", "variant"])
def test_a_type_that_iceberg_lacks_is_refused_by_name(name):
    with pytest.raises(Unsupported, match=name):
        codec_of(PrimitiveType(name))
