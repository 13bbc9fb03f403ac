"""Metadata changes past which a stream can read, and changes that stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.stream.schema_changes import ReadSchema
from tahoe.stream.source_options import IgnoredChanges

LONG, INT, STRING = PrimitiveType("long"), PrimitiveType("integer"), PrimitiveType("string")
MAPPING = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
WIDENING = Protocol(3, 7, frozenset({"typeWidening", "columnMapping"}), frozenset({"typeWidening", "columnMapping"}))


def field(name: str, kind: DataType = LONG, nullable: bool = True, physical: str | None = None) -> StructField:
    ids: dict[str, Any] = {}
    if physical is not None:
        ids = {"delta.columnMapping.id": ord(physical[-1]), "delta.columnMapping.physicalName": physical}
    return StructField(name, kind, nullable, ids)


def config(*fields: StructField, mapped: bool = False, protocol: Protocol | None = None, **more: Any) -> TableConfig:
    metadata = Metadata("t", StructType(fields).to_json(), configuration=MAPPING if mapped else {})
    return TableConfig(protocol or Protocol(2, 5), replace(metadata, **more), "memory://t")


def code_of(read: TableConfig, data: TableConfig, version: int, **more: Any) -> str | None:
    try:
        ReadSchema(read, 10, **more).check(data, version)
    except InvalidRequest as error:
        return error.code
    return None


A, B = field("a"), field("b", STRING)


@pytest.mark.parametrize("version", [3, 17])
def test_the_same_schema_and_other_properties_do_not_stop_a_stream(version: int) -> None:
    assert code_of(config(A, B), config(A, B, configuration={"delta.appendOnly": "true"}), version) is None


def test_a_missing_column_is_read_as_null_and_a_new_one_stops_the_stream_once() -> None:
    assert code_of(config(A, B), config(A), 3) is None
    with pytest.raises(InvalidRequest, match="from its last position") as caught:
        ReadSchema(config(A), 10).check(config(A, B), 17)
    assert caught.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_the_code_depends_on_whether_a_start_is_set() -> None:
    assert code_of(config(A), config(A, B), 17, has_start=True) == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (config(A), config(A, B)),
        (config(field("A")), config(A)),
        (config(field("a", INT)), config(A)),
        (config(field("a", nullable=False)), config(A)),
        (config(field("a", ArrayType(LONG, False))), config(field("a", ArrayType(LONG, True)))),
        (config(field("a", MapType(LONG, LONG, False))), config(field("a", MapType(LONG, LONG, True)))),
        (config(field("a", ArrayType(INT, True))), config(field("a", ArrayType(LONG, True)))),
        (config(field("s", StructType((A,)))), config(field("s", StructType((A, B))))),
        (config(A, B, partition_columns=("b",)), config(A, B)),
    ],
    ids=["lost", "case", "narrower", "not null", "elements", "values", "element type", "nested", "partitions"],
)
def test_older_rows_that_the_schema_cannot_represent_stop_the_stream_permanently(read: TableConfig, data: TableConfig) -> None:
    with pytest.raises(InvalidRequest, match="Start a new stream") as caught:
        ReadSchema(read, 10).check(data, 3)
    assert caught.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (config(A), config(field("a", nullable=False))),
        (config(field("s", StructType((A, B)))), config(field("s", StructType((A,))))),
        (config(A), config(field("a", PrimitiveType("void")))),
    ],
)
def test_older_rows_with_fewer_columns_are_read(read: TableConfig, data: TableConfig) -> None:
    assert code_of(read, data, 3) is None


def test_a_wider_type_stops_the_stream_once_and_then_reads_narrower_values() -> None:
    narrow, wide = config(field("a", INT), protocol=WIDENING), config(A, protocol=WIDENING)
    assert code_of(wide, narrow, 3) is None
    assert code_of(config(A), config(field("a", INT)), 3) == "DELTA_SCHEMA_CHANGED_WITH_VERSION", "the table does not widen types"
    with pytest.raises(InvalidRequest, match="from its last position"):
        ReadSchema(narrow, 10).check(wide, 17)


MAPPED = config(field("a", physical="p1"), field("b", physical="p2"), mapped=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MAPPED, config(field("a", physical="p1"), field("c", physical="p2"), mapped=True)),
        (MAPPED, config(field("a", physical="p1"), mapped=True)),
        (MAPPED, config(field("a", physical="p1"), field("b", physical="p3"), mapped=True)),
        (MAPPED, config(field("a", physical="p1"), field("b", physical="p2"))),
    ],
    ids=["renamed", "dropped", "dropped and recreated", "mapping taken off"],
)
def test_columns_renamed_or_dropped_by_column_mapping_stop_the_stream_from_either_side(
    old: TableConfig, new: TableConfig
) -> None:
    expected = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    assert (code_of(new, old, 3), code_of(old, new, 17)) == (expected, expected)


def test_switching_column_mapping_on_changes_no_rows() -> None:
    mapped = config(field("a", physical="a"), mapped=True)
    assert (code_of(mapped, config(A), 3), code_of(config(A), mapped, 17)) == (None, None)


def test_a_replaced_table_is_detected() -> None:
    assert code_of(config(A), config(A, id="other"), 17) == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_an_unknown_protocol_stops_the_stream() -> None:
    unknown = Protocol(3, 7, frozenset({"fromTomorrow"}), frozenset({"fromTomorrow"}))
    with pytest.raises(Unsupported, match="fromTomorrow"):
        ReadSchema(config(A), 10).check(config(A, protocol=unknown), 17)


RENAMED = config(field("a", physical="p1"), field("c", physical="p2"), mapped=True)
DROPPED = config(field("a", physical="p1"), mapped=True)
PARTITIONED = config(A, B, partition_columns=("b",))
NOT_NULL = config(field("a", nullable=False))
COLUMNS, PARTITIONS, NULLS, START = (
    IgnoredChanges(**{name: True}) for name in ("column_mapping", "partition_columns", "nullability", "before_start")
)


@pytest.mark.parametrize(
    ("read", "data", "ignored", "others"),
    [
        (RENAMED, MAPPED, COLUMNS, (PARTITIONS, NULLS)),
        (DROPPED, MAPPED, COLUMNS, (PARTITIONS, NULLS)),
        (replace(MAPPED, metadata=replace(MAPPED.metadata, partition_columns=("a",))), MAPPED, COLUMNS, (NULLS, START)),
        (replace(MAPPED, metadata=replace(MAPPED.metadata, partition_columns=("a",))), MAPPED, PARTITIONS, (NULLS, START)),
        (PARTITIONED, config(A, B), PARTITIONS, (COLUMNS, NULLS)),
        (NOT_NULL, config(A), NULLS, (COLUMNS, PARTITIONS)),
        (config(field("a", ArrayType(LONG, False))), config(field("a", ArrayType(LONG))), NULLS, (COLUMNS, PARTITIONS)),
        (config(field("a", MapType(LONG, LONG, False))), config(field("a", MapType(LONG, LONG))), NULLS, (COLUMNS, PARTITIONS)),
    ],
)
def test_older_rows_past_a_change_that_the_user_ignores(
    read: TableConfig, data: TableConfig, ignored: IgnoredChanges, others: tuple[IgnoredChanges, ...]
) -> None:
    assert code_of(read, data, 3, ignored=ignored) is None
    assert all(code_of(read, data, 3, ignored=other) is not None for other in others)


def test_newer_columns_stop_the_stream_although_renames_are_ignored() -> None:
    assert code_of(MAPPED, RENAMED, 17, ignored=COLUMNS) == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert code_of(MAPPED, DROPPED, 17, ignored=COLUMNS) is None
    assert code_of(config(A), config(A, B), 3, ignored=COLUMNS) == "DELTA_SCHEMA_CHANGED_WITH_VERSION", "no column mapping"


def test_the_version_of_the_start_is_not_compared_if_the_user_wants_it() -> None:
    reads = ReadSchema(config(A), 10, ignored=START)
    reads.check(config(A, B), 3, is_start=True)
    with pytest.raises(InvalidRequest):
        reads.check(config(A, B), 3)
    with pytest.raises(InvalidRequest, match="schemaTrackingLocation"):
        ReadSchema(RENAMED, 10, ignored=START).check(MAPPED, 3, is_start=True)
    with pytest.raises(InvalidRequest):
        ReadSchema(config(A), 10).check(config(A, B), 3, is_start=True)
