"""A data file whose footer contradicts its statistics in the log is reported; a consistent one is not."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.snapshot.footer_cross_check import contradiction

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", None, "c"], "price": [0.5, 1.5, 2.5]})
RIGHT: dict[str, Any] = {
    "numRecords": 3,
    "minValues": {"id": 1, "name": "a", "price": 0.5},
    "maxValues": {"id": 3, "name": "c", "price": 2.5},
    "nullCount": {"id": 0, "name": 1, "price": 0},
}
COLUMNS = {"id": "id", "name": "name", "price": "price"}


def footer(rows: pa.Table = ROWS, **options: Any) -> pq.FileMetaData:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def reported(stats: Any, columns: dict[str, str | None] | None = None, *, has_vector: bool = False, **options: Any) -> str | None:
    text = stats if isinstance(stats, str | None) else json.dumps(stats)
    return contradiction(footer(**options), text, COLUMNS if columns is None else columns, has_vector=has_vector)


@pytest.mark.parametrize("stats", [RIGHT, None, "", "{", "[" * 100_000, "7", {}, {"numRecords": "3"}, {"numRecords": -1}])
def test_equal_and_missing_statistics_are_no_contradiction(stats: Any) -> None:
    assert reported(stats) is None


def test_another_number_of_rows_is_reported() -> None:
    assert reported(RIGHT | {"numRecords": 4}) == "it has 3 rows, but the table's log says 4"


def test_a_column_that_the_log_knows_values_of_must_be_in_the_file() -> None:
    assert "no column 'name', of which the table's log knows 2 values" in str(reported(RIGHT, COLUMNS | {"name": None}))
    assert reported(RIGHT | {"nullCount": {"name": 3}}, COLUMNS | {"name": None}) is None
    assert reported(RIGHT, COLUMNS | {"added later": None}) is None


@pytest.mark.parametrize(
    ("side", "column", "value"), [("minValues", "id", 0), ("maxValues", "id", 4), ("maxValues", "name", "b")]
)
def test_other_bounds_are_reported_unless_they_may_be_wide_or_of_some_rows(side: str, column: str, value: Any) -> None:
    wrong = RIGHT | {side: RIGHT[side] | {column: value}}
    assert f"column '{column}'" in str(reported(wrong))
    assert reported(wrong, has_vector=True) is None
    assert reported(wrong | {"tightBounds": False}) is None
    assert reported(wrong, write_statistics=False) is None


@pytest.mark.parametrize("greatest", ["c\ufffd", "c\U0010ffff", "c" * 32, 7, None])
def test_texts_that_were_cut_are_not_compared(greatest: Any) -> None:
    assert reported(RIGHT | {"maxValues": {"name": greatest}}) is None


def test_bounds_are_those_of_all_row_groups() -> None:
    assert reported(RIGHT, row_group_size=1) is None
