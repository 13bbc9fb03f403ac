"""The column statistics of manifests, compared with the data files: counts, and bounds for every value.

Bounds are decoded by PyIceberg and data is read by PyArrow, by field ids; nothing of `tahoe.uniform` is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, PrimitiveType

import tahoe
from tahoe.testing.iceberg_verifier import live_entries, newest_document

__all__ = ["check_statistics"]

_UNBOUNDED = ("binary",)


def check_statistics(table: tahoe.Table) -> int:
    """Compare every file of the newest snapshot with its entry; return the number of compared bounds."""
    document = newest_document(table.store)
    assert document is not None
    if not document["snapshots"]:
        return 0
    types = _types(document)
    looked_at = 0
    for url, entry in live_entries(table.store, document["snapshots"][-1]).items():
        file = entry["data_file"]
        leaves = dict(_leaves(pq.read_table(url.removeprefix("file://"), partitioning=None)))
        assert all(len(values) == file["record_count"] for values in leaves.values())
        looked_at += _check_file(file, leaves, types, _partition_ids(document))
    return looked_at


def _check_file(
    file: dict[str, Any], leaves: dict[int, pa.ChunkedArray], types: dict[int, PrimitiveType], partition_ids: set[int]
) -> int:
    values_said, nulls_said, lower, upper = (
        {item["key"]: item["value"] for item in file[name] or []}
        for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    )
    assert set(nulls_said) | set(lower) | set(upper) <= set(values_said)
    assert set(values_said.values()) <= {file["record_count"]}
    for number, values in leaves.items():
        if number not in types or number in partition_ids:
            continue
        assert values_said[number] == file["record_count"]
        assert nulls_said[number] == values.null_count, f"nulls of column {number} in {file['file_path']}"
        _check_bounds(types[number], values.drop_null(), lower.get(number), upper.get(number))
    for number in set(types) - set(leaves):
        assert number not in lower and number not in upper, "a column that the file does not have"
    return len(lower) + len(upper)


def _check_bounds(data_type: PrimitiveType, values: pa.ChunkedArray, lower: bytes | None, upper: bytes | None) -> None:
    actual = [_plain(value) for value in values]
    numbers = [value for value in actual if not (isinstance(value, float) and math.isnan(value))]
    if not numbers or str(data_type) in _UNBOUNDED:
        assert lower is None and upper is None
        return
    least, greatest = min(map(_order, numbers)), max(map(_order, numbers))
    if str(data_type) == "boolean":  # Delta keeps no bounds of it
        return
    if (
        lower is None and isinstance(least[0], float) and math.isinf(least[0])
    ):  # JSON, and so Delta's statistics, have no infinity
        return
    assert lower is not None, f"no lower bound of {data_type}, least {least!r}"
    low = _decoded(data_type, lower)
    assert _order(low) <= least, f"{low!r} is above {least!r}"
    # Delta's statistics have milliseconds, and other writers cut the upper one too: Tahoe's reaches up, and 999 are added to all.
    slack = 999 if str(data_type).startswith("timestamp") else 0
    if not isinstance(low, str | float):
        assert least[0] - low <= slack, f"{data_type}: {low!r} is far below {least!r}"
    if len(numbers) < len(actual):
        assert upper is None, "NaN is the greatest number to Spark and DuckDB: there is no bound above it"
        return
    no_text_is_above = isinstance(greatest[0], bytes) and greatest[0].startswith("\U0010ffff".encode() * 32)
    if upper is None and (no_text_is_above or (isinstance(greatest[0], float) and math.isinf(greatest[0]))):
        return
    assert upper is not None, f"no upper bound of {data_type}, greatest {greatest!r}"
    high = _decoded(data_type, upper)
    assert greatest <= _order(high), f"{high!r} is below {greatest!r}"
    if not isinstance(high, str | float):
        assert high - greatest[0] <= 2 * slack, f"{data_type}: {high!r} is far above {greatest!r}"


def _decoded(data_type: PrimitiveType, bound: bytes) -> Any:
    if isinstance(data_type, DecimalType):  # exactly: Decimal's arithmetic rounds to 28 digits
        digits = tuple(map(int, str(abs(number := int.from_bytes(bound, "big", signed=True)))))
        return Decimal((int(number < 0), digits, -data_type.scale))
    return from_bytes(data_type, bound)


def _order(value: Any) -> tuple[Any, ...]:
    """As Iceberg orders values: −0.0 before 0.0, text by its bytes."""
    if isinstance(value, float):
        return (value, math.copysign(1, value))
    return (value.encode(),) if isinstance(value, str) else (value,)


def _plain(value: pa.Scalar) -> Any:
    """As PyIceberg gives bounds: days and microseconds are numbers."""
    if pa.types.is_timestamp(value.type) or pa.types.is_date32(value.type):
        return value.value
    actual = value.as_py()
    return Decimal(actual) if isinstance(actual, Decimal) else actual


def _types(document: dict[str, Any]) -> dict[int, PrimitiveType]:
    """The columns that statistics are kept for: primitives, not inside lists and maps."""
    (schema,) = (
        Schema.model_validate(item) for item in document["schemas"] if item["schema-id"] == document["current-schema-id"]
    )
    actual: dict[int, PrimitiveType] = {}

    def walk(fields: Any) -> None:
        for field in fields:
            if field.field_type.is_struct:
                walk(field.field_type.fields)
            elif field.field_type.is_primitive:
                actual[field.field_id] = field.field_type

    walk(schema.fields)
    return actual


def _partition_ids(document: dict[str, Any]) -> set[int]:
    return {field["source-id"] for spec in document["partition-specs"] for field in spec["fields"]}


def _leaves(rows: pa.Table) -> Iterator[tuple[int, pa.ChunkedArray]]:
    for name in rows.column_names:
        yield from _inner(rows.schema.field(name), rows.column(name))


def _inner(field: pa.Field, values: pa.ChunkedArray) -> Iterator[tuple[int, pa.ChunkedArray]]:
    if not pa.types.is_nested(field.type):
        yield int(field.metadata[b"PARQUET:field_id"]), values
    elif pa.types.is_struct(field.type):
        for i in range(field.type.num_fields):
            part = pc.struct_field(values, [i])
            yield from _inner(field.type.field(i), part)
