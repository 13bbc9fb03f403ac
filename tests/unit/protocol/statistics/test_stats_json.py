"""Columns of statistics texts to columns of structs: rows line up, odd values are unknown, and one odd row costs nobody else."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.protocol.statistics.stats_json import parse_statistics
from tests.sampling import examples

NARROW = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"x": pa.int32()})})


def parse(*texts: str | None, wanted: pa.StructType = NARROW) -> list[Any]:
    actual = parse_statistics(pa.array(texts, pa.string()), wanted)
    assert actual.type == wanted
    assert len(actual) == len(texts)
    return actual.to_pylist()


def one(value: Any, kind: pa.DataType) -> Any:
    """How one member of that JSON text is read."""
    return parse(f'{{"v":{value}}}', wanted=pa.struct({"v": kind}))[0]["v"]


def test_only_the_wanted_members_are_read() -> None:
    assert parse('{"numRecords":3,"minValues":{"x":1,"y":"b"},"maxValues":{"x":{"deep":[1,{}]}},"tightBounds":true}') == [
        {"numRecords": 3, "minValues": {"x": 1}}
    ]


def test_rows_line_up_around_nulls() -> None:
    assert parse(None, '{"numRecords":1}', None, '{"numRecords":2,"minValues":{"x":5}}', None) == [
        None,
        {"numRecords": 1, "minValues": None},
        None,
        {"numRecords": 2, "minValues": {"x": 5}},
        None,
    ]
    assert parse() == []
    assert parse(None, None) == [None, None]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("1", pa.int8(), 1),
        ("300", pa.int8(), None),
        ("1.0", pa.int64(), 1),
        ("1.5", pa.int64(), None),
        ('"1"', pa.int64(), None),
        ("9223372036854775807", pa.int64(), 2**63 - 1),
        ("true", pa.int64(), None),
        ("1", pa.float64(), 1.0),
        ("1e2", pa.float64(), 100.0),
        ("0.1", pa.float32(), 0.10000000149011612),
        ('"NaN"', pa.float64(), None),
        ('"-Infinity"', pa.float64(), None),
        ("1.25", pa.decimal128(5, 2), Decimal("1.25")),
        ("1", pa.decimal128(5, 2), Decimal("1.00")),
        ("1E+2", pa.decimal128(5, 2), Decimal("100.00")),
        ("1.255", pa.decimal128(5, 2), None),
        ("12345678901234567890.12", pa.decimal128(38, 2), Decimal("12345678901234567890.12")),
        ('"2020-01-02"', pa.date32(), date(2020, 1, 2)),
        ('"yesterday"', pa.date32(), None),
        ('"2020-01-02T03:04:05.678Z"', pa.timestamp("us", "UTC"), datetime(2020, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)),
        ('"2000-01-01T00:00:00.000-08:00"', pa.timestamp("us", "UTC"), datetime(2000, 1, 1, 8, tzinfo=UTC)),
        ('"2020-01-02T03:04:05.678901"', pa.timestamp("us"), datetime(2020, 1, 2, 3, 4, 5, 678_901)),
        ('"2020-01-02"', pa.timestamp("us"), datetime(2020, 1, 2)),
        ('"+10000-01-01T00:00:00.000Z"', pa.timestamp("us", "UTC"), None),
        ('"a\\ud83d\\ude00"', pa.string(), "a😀"),
        ('"\\ud83d"', pa.string(), None),
        ('"\\u0000"', pa.string(), "\x00"),
        ('"NaN"', pa.string(), "NaN"),
        ("1", pa.string(), None),
        ("true", pa.bool_(), True),
        ("null", pa.int64(), None),
        ("{}", pa.int64(), None),
        ("[1]", pa.string(), None),
    ],
)
def test_each_spelling_of_a_value(value: str, kind: pa.DataType, expected: Any) -> None:
    assert one(value, kind) == expected


@pytest.mark.parametrize(
    "odd",
    [
        "",
        " ",
        "{",
        "}",
        "null",
        "[]",
        "1",
        '"x"',
        "{}{}",
        '{"numRecords":1}{',
        "not json",
        '{"numRecords":1,"numRecords":2',
        "[" * 50_000,
    ],
)
def test_a_text_that_is_no_statistics_is_unknown_and_the_others_stay_in_their_rows(odd: str) -> None:
    before, actual, after = parse('{"numRecords":1}', odd, '{"numRecords":3}')
    assert (before["numRecords"], after["numRecords"]) == (1, 3)
    assert actual is None or actual["numRecords"] is None


def test_one_odd_value_spoils_no_other_row_of_many() -> None:
    texts = [f'{{"numRecords":{i},"minValues":{{"x":{i}}}}}' for i in range(2_000)]
    texts[700] = '{"numRecords":700,"minValues":{"x":"seven hundred"}}'
    actual = parse(*texts)
    assert [row["numRecords"] for row in actual] == list(range(2_000))
    assert [i for i, row in enumerate(actual) if row["minValues"]["x"] is None] == [700]


def test_a_name_that_looks_like_a_value_is_left_alone() -> None:
    expected = pa.struct({"minValues": pa.struct({"NaN": pa.float64(), "s": pa.string()})})
    text = '{"minValues":{"NaN":"NaN","s":"say \\":\\"NaN\\" aloud"}}'
    assert parse(text, wanted=expected) == [{"minValues": {"NaN": None, "s": 'say ":"NaN" aloud'}}]


def test_chunks_slices_and_other_string_types_are_read_alike() -> None:
    texts = ['{"numRecords":1}', None, '{"numRecords":3}', '{"numRecords":4}']
    expected = parse(*texts)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(texts, kind)
        assert parse_statistics(array, NARROW).to_pylist() == expected
        assert parse_statistics(array.slice(1, 2), NARROW).to_pylist() == expected[1:3]
        assert (
            parse_statistics(pa.chunked_array([array.slice(2), array.slice(0, 2)]), NARROW).to_pylist()
            == expected[2:] + expected[:2]
        )


def test_many_rows_are_read_in_slices_and_come_back_in_order() -> None:
    texts = pa.array([None if i % 10 == 3 else f'{{"numRecords":{i},"padding":"{"x" * 20}"}}' for i in range(70_000)])
    actual = parse_statistics(texts, pa.struct({"numRecords": pa.int64()}))
    assert [row and row["numRecords"] for row in actual.to_pylist()] == [None if i % 10 == 3 else i for i in range(70_000)]


NUMBERS = st.none() | st.integers(-(2**40), 2**40) | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(60))
@given(st.lists(st.none() | st.dictionaries(st.sampled_from(["numRecords", "minValues", "other"]), NUMBERS), max_size=8))
def test_whatever_the_json_holds_a_member_is_its_number_or_unknown(values: list[dict[str, Any] | None]) -> None:
    actual = parse(*[None if value is None else json.dumps(value) for value in values])
    for value, row in zip(values, actual, strict=True):
        if value is None:
            assert row is None
            continue
        number = value.get("numRecords")
        written = Decimal(json.dumps(number)) if isinstance(number, int | float) else Decimal("NaN")
        whole = written == written.to_integral_value() and abs(written) < 2**63
        assert row["numRecords"] == (int(written) if whole else None)
        assert row["minValues"] is None
