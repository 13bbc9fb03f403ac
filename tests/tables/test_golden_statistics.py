"""Statistics from footers, compared with those that delta-spark wrote for the same files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from tahoe.protocol.statistics.collect import FileStatistics, Leaf, indexed_columns, statistics_of_footer
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructType, schema_from_json
from tests.tables.golden import ABSENT, ROOT

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason=ABSENT)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A data file of a golden table with its actions in the log."""

    path: Path
    schema: StructType
    indexed: list[Leaf]
    column_mapping_mode: str
    statistics: FileStatistics


def test_footers_have_the_statistics_that_the_reference_computed() -> None:
    compared = 0
    for file in written_files():
        metadata = pq.read_metadata(file.path)
        actual = statistics_of_footer(metadata, file.schema, file.indexed, column_mapping_mode=file.column_mapping_mode)
        assert actual.num_records == file.statistics.num_records
        without_order = set(int96_columns(metadata))
        for leaf in file.indexed:
            compared += compare_leaf(file, leaf, actual, without_order)
    assert compared > 1_500


def compare_leaf(file: WrittenFile, leaf: Leaf, found: FileStatistics, without_order: set[str]) -> int:
    """How many members were the same; fails where one is another than it should be."""
    path = [column.physical_name for column in leaf]
    kind = leaf[-1].data_type
    where = (str(file.path), path)
    same = 0
    for ours, theirs in (
        (found.min_values, file.statistics.min_values),
        (found.max_values, file.statistics.max_values),
        (found.null_count, file.statistics.null_count),
    ):
        mine, reference = at(ours, path), at(theirs, path)
        if mine is None and (isinstance(kind, ArrayType | MapType) or ".".join(path) in without_order):
            continue  # a footer cannot know
        if isinstance(kind, PrimitiveType) and kind.name in ("timestamp", "timestamp_ntz") and isinstance(mine, str):
            later = moment(mine) - moment(reference)
            assert later == timedelta(0) or (ours is found.max_values and later == timedelta(milliseconds=1)), where
        elif kind == PrimitiveType("float") and mine is not None:
            assert mine == pytest.approx(float(reference), rel=2**-23), where
        else:
            assert as_number(mine) == as_number(reference), where
        same += mine is not None
    return same


def written_files() -> Iterator[WrittenFile]:
    for log in sorted(ROOT.glob("**/_delta_log")):
        metadata: dict[str, Any] | None = None
        for commit in sorted(log.glob("*.json")):
            for line in commit.read_text("utf-8").splitlines():
                action = json.loads(line) if line.startswith("{") else {}
                metadata = action.get("metaData", metadata)
                add = action.get("add")
                path = log.parent / unquote(add["path"]) if add else None
                if metadata and add and add.get("stats") and path and path.is_file():
                    schema = schema_from_json(metadata["schemaString"])
                    configuration = metadata["configuration"]
                    yield WrittenFile(
                        path,
                        schema,
                        indexed_columns(schema, metadata["partitionColumns"], configuration),
                        configuration.get("delta.columnMapping.mode", "none"),
                        FileStatistics.from_json(add["stats"]),
                    )


def int96_columns(metadata: pq.FileMetaData) -> Iterator[str]:
    for i in range(metadata.num_columns):
        column = metadata.schema.column(i)
        if column.physical_type == "INT96":
            yield column.path


def at(tree: Mapping[str, Any], path: list[str]) -> Any:
    actual: Any = tree
    for name in path:
        actual = actual.get(name) if isinstance(actual, Mapping) else None
    return actual


def moment(text: str) -> datetime:
    actual = datetime.fromisoformat(text)
    return actual.astimezone(UTC) if actual.tzinfo else actual.replace(tzinfo=UTC)


def as_number(value: Any) -> Any:
    """Numbers by their digits: the reference's log has them as JSON."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value) if isinstance(value, int | Decimal) else value
