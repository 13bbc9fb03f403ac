"""The comparison on which the golden tables rely detects differences."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.tables.golden import assert_same_rows

NESTED = pa.struct({"l": pa.list_(pa.float64()), "m": pa.map_(pa.string(), pa.timestamp("us", "UTC"))})


def rows(*values, kind=NESTED):
    return pa.table({"a": pa.array(values, kind)})


ROW = {"l": [1.0, None, float("nan")], "m": [("x", datetime(2020, 1, 1)), ("y", None)]}
TURNED = {"l": [1.0, None, float("nan")], "m": [("y", None), ("x", datetime(2020, 1, 1))]}


def test_rows_in_any_order_and_maps_in_any_order_are_the_same():
    assert_same_rows(rows(ROW, None, {"l": []}), rows({"l": []}, TURNED, None))


def test_nullability_and_the_width_of_offsets_are_no_difference():
    assert_same_rows(
        rows("a", kind=pa.large_string()), pa.table({"a": ["a"]}, schema=pa.schema([pa.field("a", pa.string(), False)]))
    )


DIFFERENT = [
    (rows(ROW), rows(ROW, ROW)),
    (rows(ROW), rows(None)),
    (rows(ROW), rows({**ROW, "l": [1.0, None, 2.0]})),
    (rows(ROW), rows({**ROW, "l": []})),
    (rows(ROW), rows({**ROW, "l": None})),
    (rows(ROW), rows({**ROW, "m": [("x", datetime(2020, 1, 1, 0, 0, 0, 1)), ("y", None)]})),
    (rows(0.0, kind=pa.float64()), rows(-0.0, kind=pa.float64())),
    (rows(1, kind=pa.int64()), rows(1, kind=pa.int32())),
    (rows(1, 2, kind=pa.int64()), rows(2, 2, kind=pa.int64())),
    (rows(1, kind=pa.timestamp("us")), rows(1, kind=pa.timestamp("us", "UTC"))),
    (rows(Decimal("1.0"), kind=pa.decimal128(5, 1)), rows(Decimal("1.0"), kind=pa.decimal128(5, 2))),
    (rows("", kind=pa.string()), rows(None, kind=pa.string())),
    (rows("a", kind=pa.string()), rows(b"a", kind=pa.binary())),
    (pa.table({"a": [1], "b": [2]}), pa.table({"b": [2], "a": [1]})),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_difference_of_value_type_or_column_is_reported(one, other):
    assert_same_rows(one, one)
    for actual, expected in ((one, other), (other, one)):
        with pytest.raises(AssertionError):
            assert_same_rows(actual, expected)
