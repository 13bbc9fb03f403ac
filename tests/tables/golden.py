"""Tables of other writers, with the expected answers: their folders, their contents, and the comparison.

The tables are data beside the checkout, ``../shared/golden``; tests that need them skip where they are absent. Nothing here knows
how a table is read, so that the Arrow reader and the Spark reader must give the same answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError, Unsupported
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = [
    "ABSENT",
    "HIVE_ROWS",
    "REFUSED",
    "ROOT",
    "WITHOUT_DATA",
    "GoldenTable",
    "Refusal",
    "assert_same_rows",
    "dat_tables",
    "golden_tables",
    "hive_tables",
]

ROOT = Path(__file__).parents[3] / "shared" / "golden"
ABSENT = "the golden tables are not beside the checkout (../shared/golden)"


@dataclass(frozen=True, slots=True)
class GoldenTable:
    """One version of one table, and the answer.

    Args:
        name: for the test's id.
        path: the table's folder.
        version: to read; None for the newest.
        expected: folder of Parquet files with the rows.
        metadata: version and protocol that the answer states, where it does.
    """

    name: str
    path: Path
    version: int | None
    expected: Path
    metadata: dict[str, Any] | None = None

    def rows(self) -> pa.Table:
        """The rows expected, with Delta's types."""
        table = pa.concat_tables([_parquet(file) for file in sorted(self.expected.glob("*.parquet"))])
        correct = _CORRECTIONS.get(self.name)
        return table if correct is None else correct(table)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A table that must not be read, with the expected message.

    Args:
        says: parts of the message.
    """

    name: str
    error: type[TahoeError]
    says: tuple[str, ...]

    @property
    def path(self) -> Path:
        return ROOT / "golden-tables" / self.name / "delta"


REFUSED = (
    Refusal("data-reader-absolute-paths-escaped-chars", CorruptTable, ("metaData",)),
    Refusal("deltalog-invalid-protocol-version", Unsupported, ("99",)),
    Refusal("deltalog-state-reconstruction-from-checkpoint-missing-metadata", CorruptTable, ("metaData",)),
    Refusal("deltalog-state-reconstruction-from-checkpoint-missing-protocol", CorruptTable, ("protocol",)),
    Refusal("deltalog-state-reconstruction-without-metadata", CorruptTable, ("metaData",)),
    Refusal("deltalog-state-reconstruction-without-protocol", CorruptTable, ("protocol",)),
    Refusal("no-delta-log-folder", NotFound, ("no-delta-log-folder",)),
    Refusal("versions-not-contiguous", CorruptTable, ("1",)),
)
"""Each for its reason: no metadata, an unknown protocol, a gap (version 1 of the last one), …"""

WITHOUT_DATA = {
    "canonicalized-paths-normal-a": 0,
    "canonicalized-paths-normal-b": 0,
    "canonicalized-paths-special-a": 0,
    "canonicalized-paths-special-b": 0,
    "checkpoint": 1,
    "delete-re-add-same-file-different-transactions": 2,
    "deltalog-commit-info": 1,
    "log-replay-special-characters-b": 1,
    "update-deleted-directory": 10,
}
"""Tables whose data files are absent: their log can be read, and lists so many live files."""


HIVE_ROWS = {"deltatbl-map-types-correctly": 1, "deltatbl-partition-prune": 5}
"""Rows of the tables for Hive's connector; the others have 10. None of them has a null."""


def dat_tables() -> list[GoldenTable]:
    """The Delta Acceptance Tests: every version that has an answer."""
    actual = []
    for folder in sorted((ROOT / "dat" / "out" / "reader_tests" / "generated").glob("*")):
        for expected in sorted((folder / "expected").glob("*")):
            metadata = json.loads((expected / "table_version_metadata.json").read_text())
            version = None if expected.name == "latest" else int(expected.name.removeprefix("v"))
            actual.append(
                GoldenTable(f"{folder.name}-{expected.name}", folder / "delta", version, expected / "table_content", metadata)
            )
    return actual


def golden_tables() -> list[GoldenTable]:
    """Delta's own golden tables that have an answer."""
    folders = sorted((ROOT / "golden-tables").glob("*"))
    return [GoldenTable(f.name, f / "delta", None, f / "expected") for f in folders if any((f / "expected").glob("*.parquet"))]


def hive_tables() -> list[Path]:
    """Tables for Hive's connector, which come without answers; see `HIVE_ROWS`."""
    return sorted((ROOT / "golden-tables" / "hive" / "delta").glob("*"))


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """The same columns in the same order with the same Delta types, and the same rows in any order.

    Values are the same when their type's own equality says so, NaN is itself, 0.0 is not -0.0, and timestamps are equal to the
    microsecond.
    """
    assert actual.column_names == expected.column_names
    types, expected_rows = from_arrow_schema(actual.schema), from_arrow_schema(expected.schema)
    for column, other in zip(types, expected_rows, strict=True):
        assert _without_nullability(column.data_type) == _without_nullability(other.data_type), f"type of {column.name}"
    if actual.num_rows == expected.num_rows and _arrow_can_compare(actual.schema):
        names = [str(i) for i in range(actual.num_columns)]  # Arrow takes dots in the names of sort keys for paths
        keys = [(name, "ascending") for name in names]
        ours, theirs = actual.rename_columns(names), expected.cast(actual.schema).rename_columns(names)
        assert ours.sort_by(keys).equals(theirs.sort_by(keys)), "the rows differ"
        return
    our_rows, their_rows = _sorted_rows(actual), _sorted_rows(expected)
    assert len(our_rows) == len(their_rows), f"{len(our_rows)} rows, expected {len(their_rows)}"
    for item, other in zip(our_rows, their_rows, strict=True):
        assert item == other


def _parquet(file: Path) -> pa.Table:
    """A file of an answer. Spark wrote them: INT96 is a timestamp in UTC."""
    read = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
    int96 = {read.schema.column(i).path for i in range(len(read.schema)) if read.schema.column(i).physical_type == "INT96"}
    table = read.read()
    return pa.table({f.name: _with_zone(table[f.name], f.name, f.type, int96) for f in table.schema})


def _with_zone(values: pa.ChunkedArray, path: str, data_type: pa.DataType, int96: set[str]) -> pa.ChunkedArray:
    """INT96 comes without a zone from Arrow."""
    target = _type_with_zone(path, data_type, int96)
    return values if target == data_type else values.cast(target)


def _type_with_zone(path: str, data_type: pa.DataType, int96: set[str]) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(data_type):
        return pa.timestamp("us", "UTC") if path in int96 or data_type.tz else pa.timestamp("us")
    if types.is_list(data_type):
        inner = _type_with_zone(f"{path}.list.element", data_type.value_type, int96)
        return pa.list_(data_type.value_field.with_type(inner))
    if types.is_map(data_type):
        key = _type_with_zone(f"{path}.key_value.key", data_type.key_type, int96)
        return pa.map_(
            key, data_type.item_field.with_type(_type_with_zone(f"{path}.key_value.value", data_type.item_type, int96))
        )
    if types.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        return pa.struct([f.with_type(_type_with_zone(f"{path}.{f.name}", f.type, int96)) for f in fields])
    return data_type


def _arrow_can_compare(schema: pa.Schema) -> bool:
    """Whether Arrow sorts all columns, and its equality is the one wanted; much faster for the tables of a million rows."""
    return not any(pa.types.is_nested(t) or pa.types.is_floating(t) or pa.types.is_null(t) for t in schema.types)


def _sorted_rows(table: pa.Table) -> list[str]:
    types = [column.data_type for column in from_arrow_schema(table.schema)]
    columns = [[_spelled(v, t) for v in _values(table.column(i), t)] for i, t in enumerate(types)]
    return sorted("|".join(row) for row in zip(*columns, strict=True))


def _values(column: pa.ChunkedArray, data_type: DataType) -> list[Any]:
    """Python values; timestamps at the top as microseconds, since Python's own end at the year 9999."""
    if isinstance(data_type, PrimitiveType) and data_type.name.startswith("timestamp"):
        return column.cast(pa.int64()).to_pylist()
    return column.to_pylist()


def _spelled(value: Any, data_type: DataType) -> str:
    """A text that is equal for equal values only."""
    if value is None:
        return "∅"
    match data_type:
        case StructType():
            return "{" + ",".join(_spelled(value[f.name], f.data_type) for f in data_type) + "}"
        case ArrayType(element):
            return "[" + ",".join(_spelled(item, element) for item in value) + "]"
        case MapType(key, item_type):
            return "<" + ",".join(sorted(f"{_spelled(k, key)}:{_spelled(v, item_type)}" for k, v in value)) + ">"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def _without_nullability(data_type: DataType) -> DataType:
    match data_type:
        case StructType(fields):
            return StructType(tuple(replace(f, data_type=_without_nullability(f.data_type), nullable=True) for f in fields))
        case ArrayType(element):
            return ArrayType(_without_nullability(element))
        case MapType(key, value):
            return MapType(_without_nullability(key), _without_nullability(value))
    return data_type


def _as_if_written_in_utc(table: pa.Table) -> pa.Table:
    """The partition value has no time zone; the answer was made in California, while Tahoe reads such values as UTC."""
    index = table.schema.get_field_index("as_timestamp")
    there = ZoneInfo("America/Los_Angeles")
    moved = [v and v.astimezone(there).replace(tzinfo=UTC) for v in table.column(index).to_pylist()]
    return table.set_column(index, "as_timestamp", pa.array(moved, pa.timestamp("us", "UTC")))


_CORRECTIONS: dict[str, Callable[[pa.Table], pa.Table]] = {"data-reader-partition-values": _as_if_written_in_utc}
