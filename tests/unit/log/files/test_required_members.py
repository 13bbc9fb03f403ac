"""Demanded members and partition values are demanded of commits, read one by one and as columns, and of checkpoints of every kind."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.expr.tree.predicate import Column, Comparison, IsNull, Literal, Predicate
from tahoe.log.files.paths import commit_name
from tahoe.log.replay import LogReader, add_files
from tahoe.log.segment import segment_for
from tahoe.schema.types import PrimitiveType
from tahoe.testing.log_builder import METADATA, PROTOCOL, SCHEMA, Log, add, memory_log

IN_A: Predicate = Comparison("=", Column(("part",)), Literal("a", PrimitiveType("string")))
IN_NONE: Predicate = IsNull(Column(("part",)))
LOW: Predicate = Comparison("<", Column(("id",)), Literal(5, PrimitiveType("long")))
ANSWERS: list[Predicate | None] = [None, IN_A, IN_NONE, LOW]


@pytest.fixture(params=["one by one", "as columns"])
def _reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tahoe.log.tail._BYTES_WORTH_COLUMNS", 0 if request.param == "as columns" else 1 << 40)


def _read(log: Log, predicate: Predicate | None) -> list[str]:
    if predicate is None:
        return sorted(file.path for file in log.live())
    segment = segment_for(log.store)
    return sorted(file.path for file in add_files(LogReader(log.store, segment).scan(predicate, SCHEMA, ("part",))))


def _damage(log: Log, version: int, path: str, change: Any) -> None:
    """Rewrite a commit with the `add` of that path changed."""
    lines = [json.loads(line) for line in log.store.get(commit_name(version)).splitlines()]
    for line in lines:
        if line.get("add", {}).get("path") == path:
            change(line["add"])
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    log.store.put(commit_name(version), text.encode())


FAULTS = {
    "no partitionValues": lambda value: value.pop("partitionValues"),
    "null for partitionValues": lambda value: value.update(partitionValues=None),
    "partitionvalues": lambda value: value.update(partitionvalues=value.pop("partitionValues")),
    "no key": lambda value: value.update(partitionValues={}),
    "another key": lambda value: value.update(partitionValues={"q": "a"}),
    "the key in another case": lambda value: value.update(partitionValues={"Part": "a"}),
    "no key, and tags that have it as null": lambda value: value.update(partitionValues={}, tags={"part": None}),
    "no size": lambda value: value.pop("size"),
    "a negative size": lambda value: value.update(size=-1),
    "a vector misspelt": lambda value: value.update(deletionvector=None),
}


@pytest.mark.usefixtures("_reader")
@pytest.mark.parametrize("fault", FAULTS)
def test_an_action_without_a_required_field_is_not_read_as_null(fault: str) -> None:
    log = memory_log()
    log.begin(add("x", part=None), add("y", part=None))
    log.commit(add("a1"), add("a2"), add("n", part=None), add("b", part="b"))
    _damage(log, 1, "a1", FAULTS[fault])
    for predicate in ANSWERS:
        with pytest.raises(CorruptTable) as caught:
            _read(log, predicate)
        assert log.store.url in caught.value.message


@pytest.mark.usefixtures("_reader")
def test_nulls_that_are_written_are_read_as_nulls() -> None:
    log = memory_log()
    log.begin(add("x", part=None), add("y"))
    log.commit(add("n", part=None), add('q"}', part='"part":null}'), add("é", part="é"))
    assert _read(log, None) == sorted(["x", "y", "n", 'q"}', "é"])
    assert _read(log, IN_NONE) == ["n", "x"]


KINDS = ["classic", "multi-part", "v2 json", "v2 parquet", "v2 json without sidecars"]


def _checkpoint(log: Log, kind: str) -> None:
    match kind:
        case "classic":
            log.classic()
        case "multi-part":
            log.multi_part(3)
        case "v2 json without sidecars":
            log.v2("json", sidecars=0)
        case _:
            log.v2(kind.removeprefix("v2 "))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [{"partition_values": {}}, {"partition_values": {"PART": "a"}}, {"size": None}, {"size": -1}])
def test_a_checkpoint_that_lost_a_demanded_member_gives_way_to_the_commits_or_is_refused(
    kind: str, change: dict[str, Any]
) -> None:
    log = memory_log()
    log.begin(add("x", part=None), add("a1"), add("a2"), add("b", part="b"))
    right = log.versions[-1]
    log.versions[-1] = {key: replace(file, **change) if file.path == "a1" else file for key, file in right.items()}
    _checkpoint(log, kind)
    log.versions[-1] = right
    log.commit()
    assert [_read(log, predicate) for predicate in ANSWERS] == [
        ["a1", "a2", "b", "x"],
        ["a1", "a2"],
        ["x"],
        ["a1", "a2", "b", "x"],
    ]
    log.store.delete(commit_name(0))
    for predicate in [None, IN_A, LOW] if "size" in change else ANSWERS:
        with pytest.raises(CorruptTable, match=r"partition column is 'part'|partition column 'part'|'size'"):
            _read(log, predicate)


def test_parsed_partition_values_do_not_hide_a_file_without_partition_values() -> None:
    log = memory_log()
    log.begin(*(add(f"b{i}", part="b") for i in range(10)), *(add(f"a{i}") for i in range(10)))
    log.versions[-1] = {key: replace(f, partition_values={}) if f.path == "a3" else f for key, f in log.versions[-1].items()}
    name = log.classic()
    table = pq.read_table(pa.BufferReader(log.store.get(name)))
    adds = table.column("add").combine_chunks()
    parsed = pa.array([{"part": "b"}] * len(adds), pa.struct([("part", pa.string())]))  # a lie: no file is in 'a'
    members = [*adds.flatten(), parsed]
    fields = [*adds.type, pa.field("partitionValues_parsed", parsed.type)]
    struct = pa.StructArray.from_arrays(members, fields=fields, mask=adds.is_null())
    sink = pa.BufferOutputStream()
    pq.write_table(table.set_column(table.schema.get_field_index("add"), "add", struct), sink, row_group_size=5)
    log.store.put(name, sink.getvalue().to_pybytes())
    log.commit()
    log.store.delete(commit_name(0))
    with pytest.raises(CorruptTable, match="partition column 'part'"):
        _read(log, IN_A)


@pytest.mark.parametrize(
    "wrong", ["add.partitionvalues", "add.Size", "Remove", "domainmetadata", "add.deletionvector", "metaData.ID"]
)
def test_a_checkpoint_with_a_column_spelled_in_another_case_gives_way_to_the_commits(wrong: str) -> None:
    log = memory_log()
    log.begin(add("a1"), add("n", part=None))
    name = log.classic()
    table = pq.read_table(pa.BufferReader(log.store.get(name)))
    action, _, member = wrong.partition(".")
    known = next((field for field in table.schema if field.name.lower() == action.lower()), None)
    if known is None:
        table = table.append_column(action, pa.nulls(len(table), pa.struct([("domain", pa.string())])))
    elif not member:
        table = table.rename_columns([action if n == known.name else n for n in table.column_names])
    else:
        struct = table.column(known.name).combine_chunks()
        fields = [f.with_name(member) if f.name.lower() == member.lower() else f for f in struct.type]
        renamed = pa.StructArray.from_arrays(struct.flatten(), fields=fields, mask=struct.is_null())
        if not any(f.name == member for f in fields):
            extra = pa.nulls(len(struct), pa.string())
            renamed = pa.StructArray.from_arrays([*struct.flatten(), extra], fields=[*fields, pa.field(member, pa.string())])
        table = table.set_column(table.schema.get_field_index(known.name), known.name, renamed)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    log.store.put(name, sink.getvalue().to_pybytes())
    log.commit()
    assert _read(log, IN_NONE) == ["n"]
    log.store.delete(commit_name(0))
    with pytest.raises(CorruptTable, match="specification spells"):
        _read(log, IN_NONE)


def test_the_partitions_of_today_are_asked_of_the_files_of_today() -> None:
    log = memory_log()
    old = add("old", partition_values={"name": "n"})
    log.commit(PROTOCOL, replace(METADATA, partition_columns=("name",)), old)
    log.commit(replace(METADATA, partition_columns=("part",)), old.remove(1), add("new"))
    assert _read(log, IN_A) == ["new"]
    assert [file.path for file in log.live(0)] == ["old"]
