"""The demonstration's checksum differs for different rows, and only for them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from demo.checksum import checksum

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", None, "b"],
        "value": [1.5, float("nan"), None],
        "day": [date(2013, 1, 1), None, date(2013, 1, 2)],
        "at": pa.array([datetime(2013, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "price": [Decimal("1.25"), Decimal("0.00"), None],
        "place": pa.array([{"x": 1.0, "y": "q"}, None, {"x": None, "y": "q"}], pa.struct({"x": pa.float64(), "y": pa.string()})),
    }
)


def test_the_order_of_rows_columns_and_chunks_does_not_matter() -> None:
    turned = ROWS.take([2, 0, 1]).select(list(reversed(ROWS.column_names)))
    assert checksum(turned) == checksum(ROWS)
    assert checksum(pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1)])) == checksum(ROWS)


def test_the_width_of_types_does_not_matter() -> None:
    wide = pa.table(
        {
            "id": ROWS["id"].cast(pa.int32()),
            "name": ROWS["name"].cast(pa.large_string()).dictionary_encode(),
            "value": ROWS["value"],
            "day": ROWS["day"].cast(pa.date64()),
            "at": ROWS["at"].cast(pa.timestamp("ns", "America/New_York")),
            "price": ROWS["price"].cast(pa.decimal128(20, 2)),
            "place": ROWS["place"],
        }
    )
    assert checksum(wide) == checksum(ROWS)
    assert checksum(ROWS.set_column(1, "name", ROWS["name"].cast(pa.string_view()))) == checksum(ROWS)


def test_a_struct_that_is_null_equals_one_of_nulls() -> None:
    place = pa.array([{"x": 1.0, "y": "q"}, {"x": None, "y": None}, {"x": None, "y": "q"}], ROWS["place"].type)
    assert checksum(ROWS.set_column(6, "place", place)) == checksum(ROWS)


@pytest.mark.parametrize(
    "changed",
    [
        ROWS.slice(0, 2),
        pa.concat_tables([ROWS, ROWS.slice(0, 1)]),
        ROWS.rename_columns(["id", "name", "value", "day", "at", "price", "elsewhere"]),
        ROWS.set_column(0, "id", pa.array([1, 2, 4])),
        ROWS.set_column(1, "name", pa.array(["a", "", "b"])),
        ROWS.set_column(1, "name", pa.array([None, "a", "b"])),
        ROWS.set_column(2, "value", pa.array([1.5, None, float("nan")])),
        ROWS.set_column(2, "value", pa.array([1.5, float("nan"), 0.0])),
        ROWS.set_column(5, "price", pa.array([Decimal("1.26"), Decimal("0.00"), None])),
        ROWS.drop_columns(["day"]),
    ],
)
def test_any_other_difference_does(changed: pa.Table) -> None:
    assert checksum(changed) != checksum(ROWS)


def test_values_exchanged_between_rows_are_noticed() -> None:
    swapped = ROWS.set_column(0, "id", pa.array([2, 1, 3], pa.int64()))
    assert checksum(swapped) != checksum(ROWS)
