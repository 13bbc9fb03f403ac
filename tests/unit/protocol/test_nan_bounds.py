"""The tag of files whose greatest floats count NaN."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tahoe.protocol.actions import AddFile
from tahoe.protocol.nan_bounds import are_nan_counted, has_greatest_float, is_nan_counted, with_statistics, with_stats_text
from tahoe.protocol.statistics.bounds import NAN_COUNTED
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_table
from tahoe.schema.types import PrimitiveType, StructField, StructType

INNER = StructType((StructField("y", PrimitiveType("float")),))
SCHEMA = StructType(
    (StructField("id", PrimitiveType("long")), StructField("x", PrimitiveType("double")), StructField("st", INNER))
)
LEAVES = indexed_columns(SCHEMA, (), {})
TAG = {NAN_COUNTED: "true"}


def file_with(row: dict[str, Any], **members: Any) -> AddFile:
    statistics = statistics_of_table(pa.Table.from_pylist([row]), SCHEMA)
    return with_statistics(AddFile("f", {}, 1, 1, True, **members), statistics, LEAVES)


@pytest.mark.parametrize(
    ("row", "tags"),
    [
        ({"id": 1}, None),
        ({"id": 1, "x": 1.0}, TAG),
        ({"id": 1, "x": math.nan}, None),
        ({"id": 1, "x": math.inf}, None),
        ({"id": 1, "st": {"y": 1.0}}, TAG),
        ({"id": 1, "x": math.nan, "st": {"y": 1.0}}, TAG),
    ],
)
def test_a_file_with_a_greatest_float_has_the_tag(row: dict[str, Any], tags: dict[str, str] | None) -> None:
    add = file_with(row)
    assert add.tags == tags
    assert is_nan_counted(add.tags) == (tags is not None)


def test_other_tags_stay_and_the_tag_goes_with_the_statistics() -> None:
    add = file_with({"x": 1.0}, tags={"other": "1"})
    assert add.tags == {"other": "1", **TAG}
    again = with_statistics(add, statistics_of_table(pa.table({"x": [math.nan]}), SCHEMA), LEAVES)
    assert again.tags == {"other": "1"}
    assert with_stats_text(add, "{}", nan_counted=False).tags == {"other": "1"}
    assert not has_greatest_float(statistics_of_table(pa.table({"id": [1]}), SCHEMA), LEAVES)


@pytest.mark.parametrize("tags", [None, {}, {"other": "true"}, {NAN_COUNTED: None}, {NAN_COUNTED: "false"}])
def test_no_other_tag_says_so(tags: Any) -> None:
    assert not is_nan_counted(tags)
    column = pa.array([None if tags is None else list(tags.items()), list(TAG.items())], pa.map_(pa.string(), pa.string()))
    assert are_nan_counted(pa.table({"tags": column})).to_pylist() == [None, True]


def test_where_no_tags_were_read_nothing_is_known() -> None:
    assert are_nan_counted(pa.table({"path": ["a", "b"]})).to_pylist() == [None, None]
    empty = pa.table({"tags": pa.array([None], pa.map_(pa.string(), pa.string()))})
    assert are_nan_counted(empty).to_pylist() == [None]
    assert are_nan_counted(empty.slice(0, 0)).to_pylist() == []
