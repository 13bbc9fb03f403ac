"""Metrics and partition values of a manifest, compared with the footer of the file."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.uniform.commits.client_manifests import DATA, ClientFile
from tahoe.uniform.commits.manifest_metrics import contradiction, wrong_row_ids


def footer(kind: pa.DataType, values: Sequence[Any], **options: Any) -> pq.FileMetaData:
    schema = pa.schema([pa.field("c", kind, metadata={"PARQUET:field_id": "7"})])
    target = io.BytesIO()
    pq.write_table(pa.table({"c": values}, schema=schema), target, **options)
    return pq.read_metadata(target)


def problem(found: pq.FileMetaData, lower: bytes | None = None, upper: bytes | None = None, **counts: int) -> str | None:
    bounds = [{} if bound is None else {7: bound} for bound in (lower, upper)]
    named = {name: {7: count} for name, count in counts.items()}
    file = ClientFile("f", DATA, "PARQUET", 3, 9, lower_bounds=bounds[0], upper_bounds=bounds[1], **named)  # type: ignore[arg-type]
    return contradiction(file, found, {})


def long(number: int) -> bytes:
    return struct.pack("<q", number)


def test_counts_are_compared() -> None:
    actual = footer(pa.int64(), [1, None, 3])
    assert problem(actual, value_counts=3, null_counts=1) is None
    assert problem(actual, value_counts=4) == "has in column 7 3 values, and 4 by its manifest"
    assert problem(actual, null_counts=0) == "has in column 7 1 NULLs, and 0 by its manifest"


@pytest.mark.parametrize(
    ("kind", "values", "lower", "upper", "above", "below"),
    [
        (pa.int64(), [5, None, 9], long(5), long(9), long(6), long(8)),
        (pa.int32(), [5, 9], struct.pack("<i", 5), struct.pack("<i", 9), struct.pack("<i", 6), long(-1)),
        (pa.float64(), [-0.5, 2.5], struct.pack("<d", -0.5), struct.pack("<d", 2.5), struct.pack("<d", 0), struct.pack("<d", 2)),
        (
            pa.float32(),
            [1.5, float("nan")],
            struct.pack("<f", 1.5),
            struct.pack("<f", 1.5),
            struct.pack("<f", 2),
            struct.pack("<f", 1),
        ),
        (pa.bool_(), [True, True], b"\1", b"\1", b"\1\1", b"\0"),
        (pa.string(), ["bb", "dd"], b"b", b"de", b"e", b"a"),
        (pa.date32(), [date(1970, 1, 6)], struct.pack("<i", 5), struct.pack("<i", 5), struct.pack("<i", 6), struct.pack("<i", 4)),
        (pa.timestamp("us"), [datetime(1970, 1, 1, 0, 0, 1)], long(10**6), long(10**6), long(10**6 + 1), long(0)),
    ],
)
def test_bounds_are_compared(
    kind: pa.DataType, values: list[Any], lower: bytes, upper: bytes, above: bytes, below: bytes
) -> None:
    actual = footer(kind, values)
    assert problem(actual, lower, upper) is None
    assert "below the lower bound" in str(problem(actual, above))
    assert "above the upper bound" in str(problem(actual, upper=below))


def test_truncated_texts_and_other_units_contradict_nothing() -> None:
    assert problem(footer(pa.string(), ["bbb", "ddd"]), b"c", b"c") is None
    assert problem(footer(pa.timestamp("ns"), [datetime(1970, 1, 2)]), long(10**18), long(0)) is None
    assert problem(footer(pa.decimal128(30, 2), [Decimal("1.00")]), b"\x7f", b"\0") is None
    assert problem(footer(pa.int64(), [1], write_statistics=False), long(5), long(0)) is None
    assert problem(footer(pa.int64(), [None, None]), long(5), long(0)) is None


@pytest.mark.parametrize("stored", [b"", b"abc", long(1) + b"x"])
def test_a_bound_of_another_length_is_a_contradiction(stored: bytes) -> None:
    assert "bound" in str(problem(footer(pa.int64(), [1]), stored))


@pytest.mark.parametrize(
    ("values", "partition", "expected"),
    [
        ([4, 4], 4, None),
        ([4, 4], 5, "other values than the partition value"),
        ([4, 5], 5, None),  # the footer proves nothing; the rows are written again
        ([4, 4], None, "no NULL"),
        ([None, None], 4, "only NULL"),
        ([None, None], None, None),
        ([], 4, None),
    ],
)
def test_partition_values_are_compared(values: list[Any], partition: Any, expected: str | None) -> None:
    actual = contradiction(ClientFile("f", DATA, "PARQUET", 3, 9), footer(pa.int64(), values), {7: partition})
    assert (expected in actual) if expected is not None and actual is not None else actual is expected


@pytest.mark.parametrize(
    ("values", "options", "is_right"),
    [
        ([0, None, 5], {}, True),
        ([None], {}, True),
        ([6], {}, False),
        ([-1, 2], {}, False),
        ([2], {"write_statistics": False}, False),
        ([None], {"write_statistics": False}, False),
    ],
)
def test_row_ids_are_those_of_the_table(values: list[int | None], options: dict[str, Any], is_right: bool) -> None:
    actual = footer(pa.int64(), values, **options)
    assert (wrong_row_ids(actual, {7: 5}) is None) == is_right
    assert wrong_row_ids(actual, {8: 5}) is None


def test_row_ids_are_numbers() -> None:
    assert wrong_row_ids(footer(pa.string(), ["a"]), {7: 5}) is not None
