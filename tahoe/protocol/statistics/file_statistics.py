"""`FileStatistics`: the statistics of one data file as a value, and their JSON (PROTOCOL.md, "Per-file Statistics")."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.protocol.statistics.bounds import Leaf


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The statistics of one data file.

    Args:
        num_records: rows in the file, including deleted ones.
        min_values: nested by physical names; the values are JSON's: int, float or `Decimal`, str, bool. A missing value is unknown.
        max_values: as `min_values`.
        null_count: nested as well.
        tight_bounds: False if rows may have been deleted since the statistics were collected.
    """

    num_records: int
    min_values: Mapping[str, Any] = field(default_factory=dict)
    max_values: Mapping[str, Any] = field(default_factory=dict)
    null_count: Mapping[str, Any] = field(default_factory=dict)
    tight_bounds: bool = True

    def to_json(self) -> str:
        """Return the text of `AddFile.stats`."""
        value: dict[str, Any] = {
            "numRecords": self.num_records,
            "minValues": self.min_values,
            "maxValues": self.max_values,
            "nullCount": self.null_count,
        }
        if not self.tight_bounds:
            value["tightBounds"] = False
        return _to_json(value)

    @classmethod
    def from_json(cls, text: str) -> FileStatistics:
        """Parse the statistics of `AddFile.stats`; numbers with a fraction become exact `Decimal` values.

        Raises:
            CorruptTable: the text is not JSON, or has no row count.
        """
        try:
            value = json.loads(text, parse_float=Decimal)
            return cls(
                num_records=int(value["numRecords"]),
                min_values=value.get("minValues") or {},
                max_values=value.get("maxValues") or {},
                null_count=value.get("nullCount") or {},
                tight_bounds=value.get("tightBounds") is not False,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptTable(
                f"The statistics of a file are malformed ({error!r}): {text[:200]}", code="TAHOE_CORRUPT_STATISTICS"
            ) from error

    def widened(self) -> FileStatistics:
        """Return the same statistics after rows were deleted by a vector: the bounds are still valid, but no longer tight."""
        return replace(self, tight_bounds=False)

    def without(self, names: Collection[str]) -> FileStatistics:
        """Return the same statistics without those of some top-level columns, by their physical names."""
        parts = (self.min_values, self.max_values, self.null_count)
        least, greatest, nulls = ({name: value for name, value in part.items() if name not in names} for part in parts)
        return replace(self, min_values=least, max_values=greatest, null_count=nulls)


class StatisticsBuilder:
    """Builds the statistics of a file, leaf by leaf; None is unknown and left out."""

    def __init__(self, num_records: int) -> None:
        self._num_records = num_records
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}
        self._nulls: dict[str, Any] = {}

    def add(self, leaf: Leaf, least: object, greatest: object, nulls: int | None) -> None:
        """Add the statistics of one leaf column; a value of None is omitted."""
        path = [column.physical_name for column in leaf]
        for tree, value in ((self._least, least), (self._greatest, greatest), (self._nulls, nulls)):
            if value is not None:
                for name in path[:-1]:
                    tree = tree.setdefault(name, {})
                tree[path[-1]] = value

    def statistics(self) -> FileStatistics:
        """Return the file's statistics, with all leaves added so far."""
        return FileStatistics(self._num_records, self._least, self._greatest, self._nulls)


def _to_json(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return encode_basestring(value)
        case Decimal():
            return f"{value:f}"
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ",".join(f"{encode_basestring(name)}:{_to_json(inner)}" for name, inner in value.items()) + "}"
    raise InvalidRequest(
        f"A value of type {type(value).__name__} has no place in statistics.",
        code="TAHOE_STATISTICS_VALUE",
        type=type(value).__name__,
    )
