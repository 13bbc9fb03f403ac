"""The metaData of a table must be valid before it is used; the error names the table, the column and the remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tahoe.base.exceptions import CorruptTable, TahoeError
from tahoe.protocol.actions import Metadata, Protocol
from tahoe.protocol.config import TableConfig

LONG = {"type": "long", "nullable": True, "metadata": {}}


def mapped(name: str, number: Any, physical: Any = None, **more: Any) -> dict[str, Any]:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical or f"p-{name}"}
    return {"name": name, "type": "long", "nullable": True, "metadata": {k: v for k, v in keys.items() if v is not None}, **more}


def config(fields: Any, *, partition: tuple[str, ...] = (), mode: str | None = None) -> TableConfig:
    configuration = {} if mode is None else {"delta.columnMapping.mode": mode}
    schema = json.dumps({"type": "struct", "fields": fields})
    return TableConfig(Protocol(2, 5), Metadata("id", schema, partition, configuration), "memory://m/t")


def named(name: str, kind: Any = "long", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}


def struct(*fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "two columns by case": ({"fields": [named("a"), named("A")]}, "a"),
    "two columns alike": ({"fields": [named("a"), named("a")]}, "a"),
    "two fields of a struct by case": ({"fields": [named("s", struct(named("x"), named("X")))]}, "s.x"),
    "two fields in an array": (
        {"fields": [named("s", {"type": "array", "elementType": struct(named("x"), named("X")), "containsNull": True})]},
        "s.element.x",
    ),
    "partitioned by what is not there": ({"fields": [named("a")], "partition": ("b",)}, "b"),
    "partitioned twice": ({"fields": [named("a")], "partition": ("a", "a")}, "a"),
    "partitioned twice by case": ({"fields": [named("a")], "partition": ("a", "A")}, "a"),
    "partitioned by a struct": ({"fields": [named("a", struct(named("x")))], "partition": ("a",)}, "a"),
    "a decimal of 99 digits": ({"fields": [named("d", "decimal(99,99)")]}, "d"),
    "a decimal with more scale than precision": ({"fields": [named("d", "decimal(5,6)")]}, "d"),
    "a decimal of no digits": ({"fields": [named("d", "decimal(0,0)")]}, "d"),
    "a decimal with a negative scale": ({"fields": [named("d", "decimal(5,-1)")]}, "d"),
    "a decimal of a number without end": ({"fields": [named("d", f"decimal({'9' * 6000},1)")]}, "d"),
    "a decimal deep inside": ({"fields": [named("s", struct(named("d", "decimal(39,1)")))]}, "s.d"),
    "an unknown type": ({"fields": [named("t", "int128")]}, "t"),
    "a type that is no type": ({"fields": [named("t", {"type": "set"})]}, "t"),
    "no type": ({"fields": [{"name": "t", "nullable": True}]}, "t"),
    "no nullable": ({"fields": [{"name": "t", "type": "long"}]}, "t"),
    "nullable is a text": ({"fields": [named("t", nullable="false")]}, "t"),
    "metadata is a text": ({"fields": [named("t", metadata="x")]}, "t"),
    "no name": ({"fields": [LONG]}, "'name'"),
    "a field that is no object": ({"fields": ["a"]}, "a"),
    "fields that are no array": ({"fields": {}}, "fields"),
    "an array without containsNull": ({"fields": [named("l", {"type": "array", "elementType": "long"})]}, "l"),
    "a map without its value": ({"fields": [named("m", {"type": "map", "keyType": "long", "valueContainsNull": True})]}, "m"),
    "no id": ({"fields": [mapped("a", None)], "mode": "name"}, "'a' has no id"),
    "no id in mode id": ({"fields": [mapped("a", None)], "mode": "id"}, "'a' has no id"),
    "no mapping at all": ({"fields": [named("a")], "mode": "name"}, "'a' has no id"),
    "no physical name": (
        {"fields": [named("a", metadata={"delta.columnMapping.id": 1})], "mode": "id"},
        "'a' has no physical name",
    ),
    "no id deep inside": ({"fields": [mapped("s", 1, type=struct(mapped("x", None)))], "mode": "name"}, "'s.x' has no id"),
    "an id twice": ({"fields": [mapped("a", 1), mapped("b", 1)], "mode": "id"}, "same column mapping id 1"),
    "an id twice, once deep": (
        {"fields": [mapped("s", 1, type=struct(mapped("x", 1)))], "mode": "id"},
        "same column mapping id 1",
    ),
    "a physical name twice": ({"fields": [mapped("a", 1, "p"), mapped("b", 2, "p")], "mode": "name"}, "same physical name 'p'"),
    "an id that is a text": ({"fields": [mapped("a", "x")], "mode": "id"}, "'x', which is no id"),
    "a negative id": ({"fields": [mapped("a", -1)], "mode": "id"}, "-1, which is no id"),
    "a physical name that is a number": ({"fields": [mapped("a", 1, 7)], "mode": "name"}, "7, which is no name"),
    "an unknown mode": ({"fields": [mapped("a", 1)], "mode": "both"}, "delta.columnMapping.mode"),
}


@pytest.mark.parametrize("case", WRONG)
def test_metadata_that_contradicts_itself_is_refused(case: str) -> None:
    values, says = WRONG[case]
    with pytest.raises(TahoeError) as caught:
        config(**values).ensure_readable()
    assert says in caught.value.message
    assert "memory://m/t" in caught.value.message


def test_valid_configurations_are_readable() -> None:
    config([named("a"), named("s", struct(named("a"), named("b")))], partition=("a",)).ensure_readable()
    config([mapped("a", 1), mapped("s", 2, type=struct(mapped("a", 3)))], mode="id").ensure_readable()
    config([mapped("a", 1)], mode="name", partition=("a",)).ensure_readable()
    config([{"name": "d", "type": "decimal(38,38)", "nullable": True, "metadata": None}]).ensure_readable()
    with pytest.raises(CorruptTable):
        config([named("a")], partition=("b",)).ensure_readable()
