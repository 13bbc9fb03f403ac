"""Metadata differences for a stream, the changes that its user must allow, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.stream.tracked_changes import AllowedChanges, NonAdditiveChanges, check_goes_on, differ, source_hash

LONG, INT, STRING = PrimitiveType("long"), PrimitiveType("integer"), PrimitiveType("string")


def field(name: str, kind: DataType = LONG, nullable: bool = True, physical: str | None = None, **metadata: Any) -> StructField:
    named = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return StructField(name, kind, nullable, {**named, **metadata})


def config(*fields: StructField, protocol: Protocol | None = None, **more: Any) -> TableConfig:
    return TableConfig(protocol or Protocol(2, 5), replace(Metadata("t", StructType(fields).to_json()), **more), "memory://t")


A, B = field("a"), field("b", STRING)
BASE = config(A, B)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (config(A, B, description="x", configuration={"mine": "1"}), False),
        (config(replace(A, metadata={"delta.identity.highWaterMark": 7, "delta.generationExpression": "b"}), B), False),
        (config(A, B, configuration={"delta.appendOnly": "true"}), True),
        (config(A, B, protocol=Protocol(1, 2)), True),
        (config(A, B, partition_columns=("b",)), True),
        (config(A), True),
        (config(replace(A, metadata={"comment": "x"}), B), True),
    ],
    ids=["not Delta's", "writers'", "property", "protocol", "partitions", "column", "comment"],
)
def test_differences_of_metadata_for_readers(other: TableConfig, expected: bool) -> None:
    assert differ(BASE, other) == differ(other, BASE) == expected


def nested(name: str, kind: DataType) -> StructField:
    return field("s", StructType((field(name, kind, physical="p1"),)), physical="p0")


def listed(kind: DataType) -> StructField:
    return field("l", ArrayType(kind, True))


def mapped(kind: DataType) -> StructField:
    return field("m", MapType(INT, kind, True))


@pytest.mark.parametrize(
    ("old", "new", "description", "kinds"),
    [
        ((A,), (A, B), "", ()),
        ((A, B), (A,), "'b' was dropped", ("Drop",)),
        ((A, B), (A, field("c", STRING)), "'b' was dropped", ("Drop",)),
        ((field("x", physical="p"),), (field("y", physical="p"),), "'x' was renamed to 'y'", ("Rename",)),
        ((field("a"),), (field("a", physical="a"),), "", ()),
        (
            (nested("f", INT),),
            (nested("g", LONG),),
            "'s.f' was renamed to 's.g', 's.g' became long from integer",
            ("Rename", "TypeChange"),
        ),
        ((field("x", physical="p"),), (field("x", STRING, physical="q"),), "'x' was dropped", ("Drop",)),
        ((listed(INT),), (listed(LONG),), "'l.element' became long from integer", ("TypeChange",)),
        ((mapped(INT),), (mapped(LONG),), "'m.value' became long from integer", ("TypeChange",)),
    ],
)
def test_changes_that_must_be_allowed(old: Any, new: Any, description: str, kinds: tuple[str, ...]) -> None:
    changes = NonAdditiveChanges.between(StructType(old), StructType(new))
    assert (str(changes), bool(changes), changes.kinds) == (
        description,
        bool(description),
        tuple(f"allowSourceColumn{kind}" for kind in kinds),
    )


PLACE = "file:/at/sources/0"
PREFIX = "spark.databricks.delta.streaming."


@pytest.mark.parametrize(
    ("options", "settings", "goes_on"),
    [
        ({}, {}, False),
        ({"Rename": "always"}, {}, True),
        ({"Rename": "7"}, {}, True),
        ({"Rename": "6"}, {}, False),
        ({"Drop": "always"}, {}, False),
        ({}, {"Rename": "always"}, True),
        ({}, {"Rename": '"Always"'}, True),
        ({}, {"Rename": "7"}, False),
        ({}, {"RenameAndDrop": "always"}, True),
        ({}, {f"Rename.ckpt_{source_hash(PLACE)}": "7"}, True),
        ({}, {f"RenameAndDrop.ckpt_{source_hash(PLACE)}": "always"}, True),
        ({}, {"Rename.ckpt_1": "7", "TypeChange": "always"}, False),
    ],
    ids=str,
)
def test_options_and_settings_allow_a_rename(options: dict[str, str], settings: dict[str, str], goes_on: bool) -> None:
    allowed = AllowedChanges(
        {f"allowSourceColumn{kind}": value for kind, value in options.items()},
        {f"{PREFIX}allowSourceColumn{kind}": value for kind, value in settings.items()},
    )
    old, new = config(field("x", physical="p")), config(field("y", physical="p"))
    if goes_on:
        check_goes_on(old, new, (3, 7), allowed, PLACE)
        return
    with pytest.raises(InvalidRequest, match="'allowSourceColumnRename' to '7'") as caught:
        check_goes_on(old, new, (3, 7), allowed, PLACE)
    assert caught.value.code == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    assert f"allowSourceColumnRename.ckpt_{source_hash(PLACE)}" in caught.value.message


def test_a_type_change_that_is_not_widening_always_stops_a_stream() -> None:
    everything = {f"allowSourceColumn{kind}": "always" for kind in ("Rename", "Drop", "TypeChange")}
    for new in (config(field("a", INT)), config(field("a", nullable=False)), config(field("a", STRING))):
        with pytest.raises(InvalidRequest, match="Start a new") as caught:
            check_goes_on(config(A), new, (3, 7), AllowedChanges(everything), PLACE)
        assert caught.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


@pytest.mark.parametrize(
    ("text", "expected"), [("", 0), ("a", 97), ("file:/tmp/x/sources/0", -314208263), ("Ünïcødé 🎿", -1040240276)]
)
def test_the_hash_matches_java_s(text: str, expected: int) -> None:
    assert source_hash(text) == expected
